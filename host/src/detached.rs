//! A command that lives on when this program ends: pages start the same commands that a person would type. What it prints
//! goes into a file without a name, so that it never waits for a reader.

use std::fs::File;
use std::io;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use crate::platform::children;
use crate::platform::files::{self as os, Mode, OFlags};
use crate::platform::process::{Pid, Signal, kill_process_group, own_group};

/// The most that is read of what it printed.
const SAID: usize = 8 * 1024;

pub struct Detached {
    /// Its exit code, once it has ended; nothing if a signal ended it.
    ended: Receiver<Option<i32>>,
    printed: Option<File>,
    /// What it prints on standard output, where that is wanted.
    output: Option<File>,
    group: Option<Pid>,
}

impl Detached {
    /// `state` is the folder for the file it prints to. On a full disk its words are lost, and nothing else.
    pub fn start(program: &Path, args: &[String], dir: &Path, state: &Path) -> io::Result<Detached> {
        Detached::begin(program, args, dir, state, None)
    }

    /// A command whose standard output is wanted; without a file for it, it is not started.
    pub fn start_for_output(
        program: &Path,
        args: &[String],
        dir: &Path,
        state: &Path,
    ) -> io::Result<Detached> {
        Detached::begin(program, args, dir, state, Some(nameless(state)?))
    }

    fn begin(
        program: &Path,
        args: &[String],
        dir: &Path,
        state: &Path,
        output: Option<File>,
    ) -> io::Result<Detached> {
        let printed = nameless(state).ok();
        let errors = printed.as_ref().and_then(|file| file.try_clone().ok());
        let mut command = Command::new(program);
        command.args(args).current_dir(dir).stdin(Stdio::null());
        let wanted = output.as_ref().map(File::try_clone).transpose()?;
        command.stdout(wanted.map_or_else(Stdio::null, Stdio::from));
        command.stderr(errors.map_or_else(Stdio::null, Stdio::from));
        let mut child = children::spawn(own_group(&mut command))?;
        let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        let (tell, ended) = channel();
        let wait = move || {
            let code = children::wait(&mut child).ok().and_then(|status| status.code());
            // Nobody may be interested any more.
            let _ = tell.send(code);
        };
        std::thread::Builder::new().name("detached".into()).stack_size(128 * 1024).spawn(wait)?;
        Ok(Detached { ended, printed, output, group })
    }

    /// Its exit code, once.
    pub fn ended(&self) -> Option<Option<i32>> {
        self.ended.try_recv().ok()
    }

    /// Waits for its end. One that takes longer lives on.
    pub fn ended_within(&self, limit: Duration) -> Option<Option<i32>> {
        self.ended.recv_timeout(limit).ok()
    }

    /// Waits until it has ended, and reads what it printed on standard output.
    pub fn output(&self, limit: Duration, longest: u64) -> io::Result<Vec<u8>> {
        let ended = self.ended.recv_timeout(limit);
        if ended == Err(RecvTimeoutError::Timeout) {
            // Nobody waits for it any more.
            if let Some(group) = self.group {
                let _ = kill_process_group(group, Signal::KILL);
            }
            return Err(io::Error::other(format!("it has not ended within {} s", limit.as_secs())));
        }
        self.read_output(longest)
    }

    /// What it printed on standard output so far.
    pub fn read_output(&self, longest: u64) -> io::Result<Vec<u8>> {
        let Some(file) = &self.output else { return Ok(Vec::new()) };
        let length = file.metadata()?.len();
        if length > longest {
            return Err(io::Error::other(format!("{length} bytes are too many; start the command itself")));
        }
        let mut bytes = vec![0; usize::try_from(length).unwrap_or(usize::MAX)];
        let got = os::read_at(file, &mut bytes, 0)?;
        bytes.truncate(got);
        Ok(bytes)
    }

    /// The end of what it printed so far.
    pub fn said(&self) -> String {
        let Some(file) = &self.printed else { return String::new() };
        let length = file.metadata().map_or(0, |meta| meta.len());
        let mut bytes = vec![0; SAID];
        let got = os::read_at(file, &mut bytes, length.saturating_sub(SAID as u64)).unwrap_or(0);
        bytes.truncate(got);
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

fn nameless(folder: &Path) -> io::Result<File> {
    let mut random = [0; 8];
    crate::platform::machine::random(&mut random)?;
    let name: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
    let path = folder.join(format!("said-{name}"));
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::APPEND | OFlags::CLOEXEC;
    let file = File::from(os::open(&path, flags, Mode::RUSR | Mode::WUSR)?);
    std::fs::remove_file(&path)?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

    use super::*;

    #[test]
    fn u_16_a_detached_command_says_how_it_ended_and_leaves_no_file() {
        let folder = tempfile::tempdir().unwrap();
        let args = ["-c".to_owned(), "echo a word >&2; exit 7".to_owned()];
        let started = Detached::start(Path::new("/bin/sh"), &args, folder.path(), folder.path()).unwrap();
        assert_eq!(started.ended.recv().unwrap(), Some(7));
        assert_eq!(started.said(), "a word\n");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        let args = ["-c".to_owned(), "echo an object; echo a word >&2; exit 3".to_owned()];
        let output = |longest| {
            let sh = Path::new("/bin/sh");
            let started = Detached::start_for_output(sh, &args, folder.path(), folder.path()).unwrap();
            started.output(Duration::from_secs(600), longest)
        };
        assert_eq!(output(100).unwrap(), b"an object\n");
        assert!(output(9).unwrap_err().to_string().contains("10 bytes are too many"));
        let lost = Path::new("/nonexistent/folder");
        assert!(Detached::start_for_output(Path::new("/bin/sh"), &args, folder.path(), lost).is_err());
        let args = ["-c".to_owned(), "echo a word >&2; exit 7".to_owned()];
        let started = Detached::start(Path::new("/bin/sh"), &args, folder.path(), lost).unwrap();
        assert_eq!((started.ended.recv().unwrap(), started.said().as_str()), (Some(7), ""));
    }
}
