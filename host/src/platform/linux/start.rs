//! Starts a program without copying this process first. `fork` copies the page tables of everything that is mapped, and
//! every page that is written to afterwards; here the child borrows the memory until it has become the program.
//!
//! `std` does the same where nothing has to be done in between. A session of its own, and the death of its parent, have to
//! be asked for by the child itself.

#![expect(
    unsafe_code,
    reason = "a child that borrows our memory, as `posix_spawn` makes it; it makes system calls only"
)]

use std::ffi::{CStr, CString, OsStr, OsString, c_char, c_int, c_void};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::ptr;

use rustix::fs::{Mode, OFlags, open};
use rustix::io::fcntl_dupfd_cloexec;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::Pid;

use crate::platform::session::{SessionCommand, SessionLeader};

/// What the child needs between its start and the program, made before: it must not allocate.
struct Plan {
    cwd: CString,
    /// The places where the program may be, in order.
    places: Vec<CString>,
    /// Whether one place was named, so that there is no other to look at.
    is_named: bool,
    /// Ends with null, as the next two.
    args: Vec<*const c_char>,
    env: Vec<*const c_char>,
    /// `/bin/sh`, a place that is filled in, and the arguments: for a script without a first line that names its shell.
    script: Vec<*const c_char>,
    /// Become 0, 1 and 2.
    streams: [RawFd; 3],
    files: Vec<RawFd>,
    parent: libc::pid_t,
    /// Why it could not be started, written by the child.
    failure: c_int,
}

const SHELL: &CStr = c"/bin/sh";
/// Where programs are when no `PATH` says so.
const USUAL: &str = "/bin:/usr/bin";
const STACK: usize = 64 * 1024;
const LAST_SIGNAL: c_int = 64;

pub(in crate::platform) fn start_session(start: &SessionCommand<'_>) -> io::Result<SessionLeader> {
    let (input, stdin) = if start.reads {
        let (theirs, ours) = pipe_with(PipeFlags::CLOEXEC)?;
        (theirs, Some(ours))
    } else {
        (open("/dev/null", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?, None)
    };
    let (stdout, output) = pipe_with(PipeFlags::CLOEXEC)?;
    let (stderr, errors) = pipe_with(PipeFlags::CLOEXEC)?;
    let streams = [above_streams(input)?, above_streams(output)?, above_streams(errors)?];
    let args = c_strings(std::iter::once(start.program).chain(start.args.iter().map(OsString::as_os_str)))?;
    let env = start.env.iter().map(|(name, value)| {
        let mut pair = name.clone();
        pair.push("=");
        pair.push(value);
        pair
    });
    let env = env.map(|pair| c_string(&pair)).collect::<io::Result<Vec<_>>>()?;
    let mut script = vec![SHELL.as_ptr(), ptr::null()];
    script.extend(args.iter().skip(1).map(|arg| arg.as_ptr()));
    script.push(ptr::null());
    let mut plan = Plan {
        cwd: c_string(start.cwd.as_os_str())?,
        places: places(start)?,
        is_named: start.program.as_bytes().contains(&b'/'),
        args: pointers(&args),
        env: pointers(&env),
        script,
        streams: [streams[0].as_raw_fd(), streams[1].as_raw_fd(), streams[2].as_raw_fd()],
        files: start.files.iter().map(AsRawFd::as_raw_fd).collect(),
        // SAFETY: it only reads a number.
        parent: unsafe { libc::getpid() },
        failure: 0,
    };
    let pid = clone(&mut plan)?;
    if plan.failure != 0 {
        // SAFETY: it is our own child, which nobody else waits for: it is not registered yet.
        unsafe { libc::waitpid(pid, ptr::null_mut(), 0) };
        return Err(io::Error::from_raw_os_error(plan.failure));
    }
    let pid = Pid::from_raw(pid).ok_or(io::ErrorKind::Other)?;
    Ok(SessionLeader {
        pid,
        stdin: stdin.map(Into::into),
        stdout: Some(stdout.into()),
        stderr: Some(stderr.into()),
    })
}

/// A number that is none of the standard streams, so that none of those is closed by becoming another.
fn above_streams(file: OwnedFd) -> io::Result<OwnedFd> {
    if file.as_raw_fd() > 2 { Ok(file) } else { Ok(fcntl_dupfd_cloexec(file.as_fd(), 3)?) }
}

fn c_string(text: &OsStr) -> io::Result<CString> {
    CString::new(text.as_bytes()).map_err(|_| io::ErrorKind::InvalidInput.into())
}

fn c_strings<'a>(texts: impl Iterator<Item = &'a OsStr>) -> io::Result<Vec<CString>> {
    texts.map(c_string).collect()
}

fn pointers(texts: &[CString]) -> Vec<*const c_char> {
    texts.iter().map(|text| text.as_ptr()).chain([ptr::null()]).collect()
}

/// As `execvp` looks for a program.
fn places(start: &SessionCommand<'_>) -> io::Result<Vec<CString>> {
    let program = start.program.as_bytes();
    if program.is_empty() {
        return Err(io::ErrorKind::NotFound.into());
    }
    if program.contains(&b'/') {
        return Ok(vec![c_string(start.program)?]);
    }
    let path = start.env.get(OsStr::new("PATH")).map_or(OsStr::new(USUAL), OsString::as_os_str);
    let folders = path.as_bytes().split(|byte| *byte == b':');
    let place = |folder: &[u8]| {
        let name = if folder.is_empty() { program.to_vec() } else { [folder, b"/", program].concat() };
        c_string(&OsString::from_vec(name))
    };
    folders.map(place).collect()
}

/// Returns when the child has become the program, or has failed to.
fn clone(plan: &mut Plan) -> io::Result<libc::pid_t> {
    let mut stack: Vec<MaybeUninit<u128>> = Vec::with_capacity(STACK / size_of::<u128>());
    let room = stack.spare_capacity_mut();
    let top: *mut c_void = room.as_mut_ptr_range().end.cast();
    let mut all = MaybeUninit::<libc::sigset_t>::uninit();
    let mut before = MaybeUninit::<libc::sigset_t>::uninit();
    let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
    // SAFETY: `all` is filled before it is read, and `before` by the call that gets it. No handler of ours runs in the
    // child, which begins with all signals blocked. This thread stands still until the child has left our memory, so
    // that plan and stack are the child's alone; other threads know of neither. The stack grows down from its end, which
    // is aligned for a u128.
    let (pid, error) = unsafe {
        libc::sigfillset(all.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr());
        let pid = libc::clone(become_program, top, flags, ptr::from_mut(plan).cast());
        let error = io::Error::last_os_error();
        libc::pthread_sigmask(libc::SIG_SETMASK, before.as_ptr(), ptr::null_mut());
        (pid, error)
    };
    if pid < 0 { Err(error) } else { Ok(pid) }
}

/// The child. Its end says nothing; `failure` does.
extern "C" fn become_program(plan: *mut c_void) -> c_int {
    let plan: *mut Plan = plan.cast();
    // SAFETY: the parent made it for us and waits.
    let plan = unsafe { &mut *plan };
    plan.failure = fail_to_become(plan);
    // SAFETY: it ends this process without running anything of the parent's.
    unsafe { libc::_exit(127) }
}

/// Only returns when it has failed, with the reason.
fn fail_to_become(plan: &mut Plan) -> c_int {
    // SAFETY: system calls on values of our own and pointers that the parent keeps alive; nothing is allocated, no lock is
    // taken and no memory of the parent is written but the plan and `errno` of the thread that waits for us.
    unsafe {
        for signal in 1..=LAST_SIGNAL {
            let mut action = MaybeUninit::<libc::sigaction>::uninit();
            if libc::sigaction(signal, ptr::null(), action.as_mut_ptr()) != 0 {
                continue;
            }
            let mut action = action.assume_init();
            let is_ignored = action.sa_sigaction == libc::SIG_IGN && signal != libc::SIGPIPE;
            if action.sa_sigaction != libc::SIG_DFL && !is_ignored {
                action.sa_sigaction = libc::SIG_DFL;
                libc::sigaction(signal, &raw const action, ptr::null_mut());
            }
        }
        for (number, stream) in (0..).zip(&plan.streams) {
            if libc::dup2(*stream, number) < 0 {
                return errno();
            }
        }
        for file in &plan.files {
            if libc::fcntl(*file, libc::F_SETFD, 0) < 0 {
                return errno();
            }
        }
        if libc::chdir(plan.cwd.as_ptr()) != 0
            || libc::setsid() < 0
            || libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) != 0
        {
            return errno();
        }
        // A parent that died before the request was in place would never be noticed.
        if libc::getppid() != plan.parent {
            return libc::ESRCH;
        }
        let none = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        if libc::setrlimit(libc::RLIMIT_CORE, &raw const none) != 0 {
            return errno();
        }
        let mut open = MaybeUninit::<libc::sigset_t>::uninit();
        libc::sigemptyset(open.as_mut_ptr());
        libc::sigprocmask(libc::SIG_SETMASK, open.as_ptr(), ptr::null_mut());
    }
    try_places(plan)
}

fn try_places(plan: &mut Plan) -> c_int {
    let mut failure = libc::ENOENT;
    for place in &plan.places {
        // SAFETY: all lists end with null, and what they point at is kept alive by the parent.
        let why = unsafe {
            libc::execve(place.as_ptr(), plan.args.as_ptr(), plan.env.as_ptr());
            errno()
        };
        match why {
            libc::ENOEXEC => {
                if let Some(slot) = plan.script.get_mut(1) {
                    *slot = place.as_ptr();
                }
                // SAFETY: as above.
                return unsafe {
                    libc::execve(SHELL.as_ptr(), plan.script.as_ptr(), plan.env.as_ptr());
                    errno()
                };
            }
            // It may be elsewhere; one that may not be run is worth telling.
            libc::EACCES if !plan.is_named => failure = why,
            libc::ENOENT | libc::ENOTDIR | libc::ESTALE | libc::ENODEV | libc::ETIMEDOUT
                if !plan.is_named => {}
            _ => return why,
        }
    }
    failure
}

fn errno() -> c_int {
    // SAFETY: the place of this thread's own error number.
    unsafe { *libc::__errno_location() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;
    use std::fs;
    use std::io::{Read, Write};
    use std::os::unix::fs::PermissionsExt;
    use std::path::Path;

    fn start<'a>(program: &'a str, args: &'a [OsString], cwd: &'a Path, path: &str) -> SessionCommand<'a> {
        let env = BTreeMap::from([("PATH".into(), path.into()), ("ODD".into(), "a=b\nc".into())]);
        SessionCommand { program: OsStr::new(program), args, env, cwd, reads: true, files: Vec::new() }
    }

    fn said(start: &SessionCommand<'_>) -> io::Result<String> {
        let mut leader = start.spawn()?;
        if let Some(mut stdin) = leader.stdin.take() {
            stdin.write_all(b"heard")?;
        }
        let mut text = String::new();
        leader.stdout.take().expect("a pipe").read_to_string(&mut text)?;
        assert!(leader.wait()?.success());
        Ok(text)
    }

    #[test]
    fn i15_a_program_gets_its_words_its_place_and_a_session_of_its_own() -> io::Result<()> {
        let folder = tempfile::tempdir()?;
        let script = "echo \"$0|$1|$ODD|$PWD\"; cat; echo; ps -o sid= -p $$; echo $$; trap; ulimit -c";
        let args: Vec<OsString> = ["-c", script, "zero", "o n e"].map(OsString::from).to_vec();
        let text = said(&start("sh", &args, folder.path(), "/nowhere:/usr/bin:/bin"))?;
        let lines: Vec<&str> = text.lines().map(str::trim).collect();
        let place = fs::canonicalize(folder.path())?;
        assert_eq!(lines[..2], ["zero|o n e|a=b", &format!("c|{}", place.display())]);
        assert_eq!(lines[2], "heard");
        assert_eq!(lines[3], lines[4], "it leads its session");
        assert_eq!(lines[5..], ["0"], "no trap is set and no core is dumped");
        Ok(())
    }

    #[test]
    fn i15_a_script_without_a_shell_of_its_own_is_run_by_the_usual_one() -> io::Result<()> {
        let folder = tempfile::tempdir()?;
        let script = folder.path().join("bare");
        fs::write(&script, "cat >/dev/null; echo ran $1\n")?;
        fs::set_permissions(&script, fs::Permissions::from_mode(0o755))?;
        let args = [OsString::from("with this")];
        let path = format!("/usr/bin:/bin:{}", folder.path().display());
        assert_eq!(said(&start("bare", &args, folder.path(), &path))?, "ran with this\n");
        assert_eq!(said(&start("./bare", &args, folder.path(), "/usr/bin:/bin"))?, "ran with this\n");
        Ok(())
    }

    #[test]
    fn i15_why_a_program_was_not_started_is_known() -> io::Result<()> {
        let folder = tempfile::tempdir()?;
        let plain = folder.path().join("plain");
        fs::write(&plain, "no program")?;
        let kind = |program: &str, cwd: &Path, path: &str| {
            start(program, &[], cwd, path).spawn().map(|_| ()).map_err(|error| error.kind())
        };
        let path = format!("{}:/usr/bin", folder.path().display());
        let at = folder.path();
        assert_eq!(kind("no-such-program", at, &path), Err(io::ErrorKind::NotFound));
        assert_eq!(kind("plain", at, &path), Err(io::ErrorKind::PermissionDenied));
        assert_eq!(kind("plain/below", at, &path), Err(io::ErrorKind::NotADirectory));
        assert_eq!(kind("true", &at.join("gone"), &path), Err(io::ErrorKind::NotFound));
        assert_eq!(kind("", at, &path), Err(io::ErrorKind::NotFound));
        assert_eq!(kind("a\0b", at, &path), Err(io::ErrorKind::InvalidInput));
        Ok(())
    }
}
