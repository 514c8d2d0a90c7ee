//! The only place that runs git.
//!
//! Every command gets an environment built from nothing, a fixed set of settings that keeps hooks, filters,
//! monitors, signers, pagers, editors and prompts from running, a closed or given standard input, and a
//! deadline. A command's standard streams are moved by one `poll` loop, so no amount of output can block it.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use crate::platform::Errno;
use crate::platform::children;
use crate::platform::files::{self as os, is_executable};
use crate::platform::poll::{self, PollFd, PollFlags};
use crate::platform::process::{self, Pid, Signal, kill_process_group};
use crate::proc::{GIT_OF, TAG};

use super::files;
use super::repo::GitEnv;

/// The oldest git that can build a merge without a working tree.
pub const MINIMUM: (u32, u32) = (2, 38);

const DEADLINE: Duration = Duration::from_secs(120);

/// Settings on every command line. They outrank every configuration file.
const SETTINGS: &[&str] = &[
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.untrackedCache=keep",
    "gc.auto=0",
    "maintenance.auto=false",
    "commit.gpgsign=false",
    "diff.external=",
    "core.pager=cat",
    "protocol.allow=never",
    "core.quotePath=false",
    "submodule.recurse=false",
    "advice.detachedHead=false",
];

const DURABLE: &[&str] = &["core.fsync=committed,loose-object,reference,index", "core.fsyncMethod=fsync"];

const FIXED_ENV: &[(&str, &str)] = &[
    ("LC_ALL", "C"),
    ("TZ", "UTC"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_ASKPASS", "/bin/false"),
    ("SSH_ASKPASS", ""),
    ("GIT_EDITOR", "false"),
    ("GIT_SEQUENCE_EDITOR", "false"),
    ("GIT_LITERAL_PATHSPECS", "1"),
    ("GIT_NO_REPLACE_OBJECTS", "1"),
    ("GIT_NO_LAZY_FETCH", "1"),
    ("GIT_LFS_SKIP_SMUDGE", "1"),
    ("GIT_AUTHOR_NAME", "archeflow"),
    ("GIT_AUTHOR_EMAIL", "archeflow@localhost"),
    ("GIT_COMMITTER_NAME", "archeflow"),
    ("GIT_COMMITTER_EMAIL", "archeflow@localhost"),
];

/// The same person in the log of a ref.
pub(super) const WRITER: &str = "archeflow <archeflow@localhost>";

const NO_CONFIG_FILES: &[(&str, &str)] =
    &[("GIT_CONFIG_GLOBAL", "/dev/null"), ("GIT_CONFIG_NOSYSTEM", "1"), ("GIT_ATTR_NOSYSTEM", "1")];

/// Why git gave no usable answer.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("git was not found in an absolute directory of PATH; install git {}.{} or newer", MINIMUM.0, MINIMUM.1)]
    Missing,
    #[error("git {found} is too old; install git {}.{} or newer", MINIMUM.0, MINIMUM.1)]
    TooOld { found: String },
    #[error("git {what} could not be run")]
    Io { what: String, source: io::Error },
    #[error("git {what} gave no answer within {} s and was ended", after.as_secs())]
    TimedOut { what: String, after: Duration },
    #[error("git {what} failed ({status}): {stderr}")]
    Failed { what: String, status: ExitStatus, stderr: String },
    #[error("git {what} answered something unexpected: {answer}")]
    Unexpected { what: String, answer: String },
}

/// What a command printed and how it ended.
#[derive(Debug)]
pub struct Output {
    pub status: ExitStatus,
    /// At most [`GitCommand::cap`] bytes.
    pub stdout: Vec<u8>,
    /// How many bytes were printed in all.
    pub total: u64,
    pub stderr: Vec<u8>,
}

impl Output {
    /// Standard output without the one newline that ends it.
    pub fn line(&self) -> &[u8] {
        self.stdout.strip_suffix(b"\n").unwrap_or(&self.stdout)
    }
}

/// One git command in the making.
#[derive(Debug)]
pub struct GitCommand {
    command: Command,
    pub(super) what: String,
    input: Vec<u8>,
    input_file: Option<File>,
    deadline: Duration,
    cap: usize,
    settings: bool,
    args: Vec<OsString>,
    extra: Vec<String>,
    durable: bool,
}

impl GitCommand {
    /// A command on exactly this git directory, reading no configuration file but the one in it.
    pub fn new(git_dir: &Path) -> Result<GitCommand, Error> {
        let mut git = GitCommand::bare_command()?;
        git.command.env("GIT_DIR", git_dir).envs(NO_CONFIG_FILES.iter().copied()).current_dir("/");
        Ok(git)
    }

    /// A command on the user's git directory that also reads the user's own configuration files, for the few
    /// steps that must treat the user's files as the user's own git would. Hooks and monitors stay off.
    pub fn with_user_config(git_dir: &Path, env: &GitEnv) -> Result<GitCommand, Error> {
        let mut git = GitCommand::bare_command()?;
        git.command.env("GIT_DIR", git_dir).envs(env.configuration()).current_dir("/");
        Ok(git)
    }

    /// A question asked in the user's own environment, so that git's own refusals (such as that of a
    /// repository owned by another user) are honoured. No settings are forced on it.
    pub fn as_user(directory: &Path, env: &GitEnv) -> Result<GitCommand, Error> {
        let mut git = GitCommand::bare_command()?;
        git.command.envs(env.configuration()).current_dir(directory);
        git.settings = false;
        Ok(git)
    }

    fn bare_command() -> Result<GitCommand, Error> {
        let mut command = Command::new(program()?);
        command.env_clear();
        for name in ["PATH", "HOME"] {
            if let Some(value) = std::env::var_os(name) {
                command.env(name, value);
            }
        }
        if let Some(tag) = std::env::var_os(TAG) {
            let mut marked = OsString::from(GIT_OF);
            marked.push(tag);
            command.env(TAG, marked);
        }
        command.envs(FIXED_ENV.iter().copied()).env("GIT_OPTIONAL_LOCKS", "0");
        process::own_group(&mut command);
        Ok(GitCommand {
            command,
            what: String::new(),
            input: Vec::new(),
            input_file: None,
            deadline: DEADLINE,
            cap: usize::MAX,
            settings: true,
            args: Vec::new(),
            extra: Vec::new(),
            durable: true,
        })
    }

    pub fn work_tree(mut self, tree: &Path) -> GitCommand {
        self.command.env("GIT_WORK_TREE", tree).current_dir(tree);
        self
    }

    pub fn index_file(mut self, index: &Path) -> GitCommand {
        self.command.env("GIT_INDEX_FILE", index);
        self
    }

    /// Reads and writes objects in this store instead of the git directory's own.
    pub fn object_dir(mut self, objects: &Path) -> GitCommand {
        self.command.env("GIT_OBJECT_DIRECTORY", objects);
        self
    }

    pub fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> GitCommand {
        self.command.env(name, value);
        self
    }

    /// One more setting for this command only, as `name=value`.
    pub fn setting(mut self, setting: &str) -> GitCommand {
        self.extra.push(setting.to_owned());
        self
    }

    /// For data that can be made again after a power loss: no fsync.
    pub fn scratch(mut self) -> GitCommand {
        self.durable = false;
        self
    }

    /// Lets git write back a refreshed index; only for indexes of our own.
    pub fn refreshing(self) -> GitCommand {
        self.env("GIT_OPTIONAL_LOCKS", "1")
    }

    pub fn arg(mut self, arg: impl AsRef<OsStr>) -> GitCommand {
        self.args.push(arg.as_ref().to_owned());
        self
    }

    pub fn args<A: AsRef<OsStr>>(mut self, args: impl IntoIterator<Item = A>) -> GitCommand {
        self.args.extend(args.into_iter().map(|arg| arg.as_ref().to_owned()));
        self
    }

    /// Bytes for standard input, which is closed after them.
    pub fn input(mut self, bytes: impl Into<Vec<u8>>) -> GitCommand {
        self.input = bytes.into();
        self
    }

    /// Standard input from a file, for what is too large to be held.
    pub fn input_file(mut self, file: File) -> GitCommand {
        self.input_file = Some(file);
        self
    }

    pub fn deadline(mut self, deadline: Duration) -> GitCommand {
        self.deadline = deadline;
        self
    }

    /// Keeps only the first `bytes` of standard output; the rest is read and counted.
    pub fn cap(mut self, bytes: usize) -> GitCommand {
        self.cap = bytes;
        self
    }

    /// Runs the command to its end, whatever its exit status.
    pub fn run(mut self) -> Result<Output, Error> {
        let child = self.start()?;
        let input = std::mem::take(&mut self.input);
        let output = self.attend(child, input.clone())?;
        if !(output.stdout.is_empty() && was_asked_to_end(output.status)) {
            return Ok(output);
        }
        // Between fork and its own process group a child can be hit by what a terminal sends to all of ours. It has
        // done nothing by then.
        let again = children::spawn(&mut self.command);
        let child = again.map_err(|source| Error::Io { what: self.what.clone(), source })?;
        self.attend(child, input)
    }

    /// Runs the command and passes on its output as it comes, so that none of it is collected. An error of the
    /// taker ends the command. A failing exit status is an error.
    pub fn stream(mut self, take: Taker<'_>) -> Result<(), Error> {
        let child = self.start()?;
        let input = std::mem::take(&mut self.input);
        let mut output = self.attend_taking(child, input.clone(), Some(&mut *take))?;
        if output.total == 0 && was_asked_to_end(output.status) {
            // As in `run`: it was hit before it began.
            let again = children::spawn(&mut self.command);
            let child = again.map_err(|source| Error::Io { what: self.what.clone(), source })?;
            output = self.attend_taking(child, input, Some(take))?;
        }
        if output.status.success() { Ok(()) } else { Err(failed(self.what, &output)) }
    }

    pub(super) fn attend(&self, child: Child, input: Vec<u8>) -> Result<Output, Error> {
        self.attend_taking(child, input, None)
    }

    fn attend_taking(
        &self,
        mut child: Child,
        input: Vec<u8>,
        take: Option<Taker<'_>>,
    ) -> Result<Output, Error> {
        let mut pump = Pump::new(self.what.clone(), self.deadline);
        pump.feed(child.stdin.take(), input)?;
        let cap = if take.is_some() { 0 } else { self.cap };
        let stdout = pump.drain(child.stdout.take(), cap);
        pump.sinks[stdout].take = take;
        let stderr = pump.drain(child.stderr.take(), STDERR_CAP);
        let status = pump.finish(&mut [&mut child])?.remove(0);
        let (stdout, total) = pump.taken(stdout);
        Ok(Output { status, stdout, total, stderr: pump.taken(stderr).0 })
    }

    /// Runs the command and makes a failing exit status an error.
    pub fn done(self) -> Result<Output, Error> {
        let (what, output) = self.described()?;
        if output.status.success() { Ok(output) } else { Err(failed(what, &output)) }
    }

    /// Runs a command that answers a question by exit status 0 (yes) or 1 (no).
    pub fn yes(self) -> Result<bool, Error> {
        let (what, output) = self.described()?;
        match output.status.code() {
            Some(0) => Ok(true),
            Some(1) => Ok(false),
            _ => Err(failed(what, &output)),
        }
    }

    fn described(mut self) -> Result<(String, Output), Error> {
        self.describe();
        let what = self.what.clone();
        Ok((what, self.run()?))
    }

    /// Runs this command with its output as the input of `next`.
    pub fn pipe_into(mut self, mut next: GitCommand) -> Result<Output, Error> {
        let mut first = self.start()?;
        let between = first.stdout.take().map_or_else(Stdio::null, Stdio::from);
        let mut second = match next.start_with_stdin(between) {
            Ok(child) => child,
            Err(error) => {
                end(&mut [&mut first]);
                return Err(error);
            }
        };
        // The command keeps its end of the pipe. As long as that is open, the first would write to nobody when the
        // second has ended, and never end itself.
        next.command.stdin(Stdio::null());
        let mut pump = Pump::new(format!("{} | {}", self.what, next.what), self.deadline);
        pump.feed(first.stdin.take(), std::mem::take(&mut self.input))?;
        let first_stderr = pump.drain(first.stderr.take(), STDERR_CAP);
        let stdout = pump.drain(second.stdout.take(), next.cap);
        let stderr = pump.drain(second.stderr.take(), STDERR_CAP);
        let statuses = pump.finish(&mut [&mut first, &mut second])?;
        let (stdout, total) = pump.taken(stdout);
        let ends = [(&self.what, first_stderr, statuses[0]), (&next.what, stderr, statuses[1])];
        for (what, stderr, status) in ends.into_iter().rev() {
            let stderr = pump.taken(stderr).0;
            if !status.success() {
                return Err(failed(what.clone(), &Output { status, stdout, total, stderr }));
            }
        }
        Ok(Output { status: statuses[1], stdout, total, stderr: Vec::new() })
    }

    /// Starts a command that will be talked with line by line.
    pub(super) fn converse(mut self) -> Result<Conversation, Error> {
        let mut child = self.start_with_stdin(Stdio::piped())?;
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
        Ok(Conversation { what: self.what, child, stdin, stdout, deadline: self.deadline })
    }

    fn start(&mut self) -> Result<Child, Error> {
        let stdin = match self.input_file.take() {
            Some(file) => Stdio::from(file),
            None if self.input.is_empty() => Stdio::null(),
            None => Stdio::piped(),
        };
        self.start_with_stdin(stdin)
    }

    pub(super) fn start_with_stdin(&mut self, stdin: Stdio) -> Result<Child, Error> {
        if self.settings {
            let durable: &[&str] = if self.durable { DURABLE } else { &["core.fsync=none"] };
            let extra = self.extra.iter().map(String::as_str);
            for setting in SETTINGS.iter().chain(durable).copied().chain(extra) {
                self.command.args(["-c", setting]);
            }
        }
        self.describe();
        self.command.args(&self.args).stdin(stdin).stdout(Stdio::piped()).stderr(Stdio::piped());
        children::spawn(&mut self.command).map_err(|source| Error::Io { what: self.what.clone(), source })
    }

    fn describe(&mut self) {
        let words: Vec<_> = self.args.iter().take(4).map(|arg| arg.to_string_lossy()).collect();
        self.what = words.join(" ").escape_debug().to_string();
    }
}

/// By a signal that asks; the one this runner ends its children with is another.
fn was_asked_to_end(status: ExitStatus) -> bool {
    const ASKING: [Signal; 3] = [Signal::HUP, Signal::INT, Signal::TERM];
    process::killed_by(status).is_some_and(|signal| ASKING.iter().any(|asking| asking.as_raw() == signal))
}

pub(super) fn failed(what: String, output: &Output) -> Error {
    let stderr = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Error::Failed { what, status: output.status, stderr }
}

const STDERR_CAP: usize = 64 * 1024;

/// Takes what a command prints, as it comes.
pub type Taker<'a> = &'a mut dyn FnMut(&[u8]) -> io::Result<()>;

/// Moves bytes between us and one or two processes until all of them have ended.
struct Pump<'a> {
    what: String,
    started: Instant,
    deadline: Duration,
    sinks: Vec<Sink<'a>>,
    source: Option<(ChildStdin, Vec<u8>, usize)>,
}

struct Sink<'a> {
    from: Option<OwnedFd>,
    bytes: Vec<u8>,
    cap: usize,
    total: u64,
    take: Option<Taker<'a>>,
}

impl<'a> Pump<'a> {
    fn new(what: String, deadline: Duration) -> Pump<'a> {
        Pump { what, started: Instant::now(), deadline, sinks: Vec::new(), source: None }
    }

    fn feed(&mut self, stdin: Option<ChildStdin>, input: Vec<u8>) -> Result<(), Error> {
        if let Some(stdin) = stdin {
            poll::never_block(&stdin).map_err(|e| self.io(e))?;
            self.source = Some((stdin, input, 0));
        }
        Ok(())
    }

    fn drain(&mut self, from: Option<impl Into<OwnedFd>>, cap: usize) -> usize {
        self.sinks.push(Sink { from: from.map(Into::into), bytes: Vec::new(), cap, total: 0, take: None });
        self.sinks.len() - 1
    }

    fn taken(&mut self, sink: usize) -> (Vec<u8>, u64) {
        let sink = &mut self.sinks[sink];
        (std::mem::take(&mut sink.bytes), sink.total)
    }

    fn finish(&mut self, children: &mut [&mut Child]) -> Result<Vec<ExitStatus>, Error> {
        match self.until_ended(children) {
            Ok(()) => {}
            Err(error) => {
                end(children);
                return Err(error);
            }
        }
        children.iter_mut().map(|child| children::wait(child).map_err(|e| self.io(e))).collect()
    }

    fn until_ended(&mut self, children: &[&mut Child]) -> Result<(), Error> {
        let mut running = Vec::new();
        for child in children {
            running.push(process::exit_notice(Pid::from_child(child)).map_err(|e| self.io(e))?);
        }
        let mut scratch = vec![0; 64 * 1024];
        while self.source.is_some() || self.sinks.iter().any(|s| s.from.is_some()) || !running.is_empty() {
            let ready = self.wait(&running)?;
            if ready[0] {
                self.push()?;
            }
            for (sink, _) in self.sinks.iter_mut().zip(&ready[1..]).filter(|(_, ready)| **ready) {
                sink.pull(&mut scratch).map_err(|source| Error::Io { what: self.what.clone(), source })?;
            }
            let mut ended = ready[1 + self.sinks.len()..].iter();
            running.retain(|_| !ended.next().copied().unwrap_or(false));
        }
        Ok(())
    }

    /// Which of: the source, each sink, each process, has something for us.
    fn wait(&self, running: &[OwnedFd]) -> Result<Vec<bool>, Error> {
        let left = self.deadline.checked_sub(self.started.elapsed()).unwrap_or_default();
        if left.is_zero() {
            return Err(Error::TimedOut { what: self.what.clone(), after: self.deadline });
        }
        let mut places = vec![None; 1 + self.sinks.len() + running.len()];
        let mut polled: Vec<PollFd<'_>> = Vec::new();
        if let Some((stdin, ..)) = &self.source {
            places[0] = Some(polled.len());
            polled.push(PollFd::new(stdin, PollFlags::OUT));
        }
        for (n, sink) in self.sinks.iter().enumerate() {
            if let Some(from) = &sink.from {
                places[1 + n] = Some(polled.len());
                polled.push(PollFd::new(from, PollFlags::IN));
            }
        }
        for (n, process) in running.iter().enumerate() {
            places[1 + self.sinks.len() + n] = Some(polled.len());
            polled.push(PollFd::new(process, PollFlags::IN));
        }
        match poll::wait(&mut polled, Some(left)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => return Err(self.io(errno.into())),
        }
        Ok(places.iter().map(|place| place.is_some_and(|n| !polled[n].revents().is_empty())).collect())
    }

    fn push(&mut self) -> Result<(), Error> {
        let Some((stdin, input, done)) = &mut self.source else { return Ok(()) };
        match stdin.write(&input[*done..]) {
            Ok(n) => *done += n,
            // A command may end before it read everything; its exit status decides.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => *done = input.len(),
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
            Err(error) => return Err(self.io(error)),
        }
        if *done == input.len() {
            self.source = None;
        }
        Ok(())
    }

    fn io(&self, source: io::Error) -> Error {
        Error::Io { what: self.what.clone(), source }
    }
}

impl Sink<'_> {
    fn pull(&mut self, scratch: &mut [u8]) -> io::Result<()> {
        let Some(from) = &self.from else { return Ok(()) };
        match poll::read(from, scratch) {
            Ok(0) => self.from = None,
            Ok(n) => {
                self.total += n as u64;
                let room = self.cap.saturating_sub(self.bytes.len()).min(n);
                self.bytes.extend_from_slice(&scratch[..room]);
                if let Some(take) = &mut self.take {
                    take(&scratch[..n])?;
                }
            }
            Err(Errno::INTR | Errno::AGAIN) => {}
            Err(errno) => return Err(errno.into()),
        }
        Ok(())
    }
}

/// Ends processes we started, with whatever they started in their process group.
pub(super) fn end(children: &mut [&mut Child]) {
    for child in children {
        // Not waited for yet, so the number still belongs to this child.
        let _ = kill_process_group(Pid::from_child(child), Signal::KILL);
        let _ = children::wait(child);
    }
}

/// A running command that answers line by line. Dropping it closes its input and waits for its end.
pub(super) struct Conversation {
    what: String,
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: Option<ChildStdout>,
    deadline: Duration,
}

impl Conversation {
    pub(super) fn say(&mut self, words: &[u8]) -> Result<(), Error> {
        let Some(stdin) = &mut self.stdin else { return Ok(()) };
        stdin.write_all(words).map_err(|source| Error::Io { what: self.what.clone(), source })
    }

    /// Reads one line and requires it to be `expected`.
    pub(super) fn expect(&mut self, expected: &str) -> Result<(), Error> {
        let line = self.read_line()?;
        if line == expected.as_bytes() {
            return Ok(());
        }
        self.stdin = None;
        let mut stderr = Vec::new();
        if let Some(pipe) = self.child.stderr.take() {
            let _ = pipe.take(STDERR_CAP as u64).read_to_end(&mut stderr);
        }
        let answer = format!("{}{}", String::from_utf8_lossy(&line), String::from_utf8_lossy(&stderr));
        Err(Error::Unexpected { what: self.what.clone(), answer: answer.trim().to_owned() })
    }

    fn read_line(&mut self) -> Result<Vec<u8>, Error> {
        let started = Instant::now();
        let mut line = Vec::new();
        let Some(stdout) = &mut self.stdout else { return Ok(line) };
        let io = |source| Error::Io { what: self.what.clone(), source };
        loop {
            let left = self.deadline.checked_sub(started.elapsed()).unwrap_or_default();
            let ready = poll::wait(&mut [PollFd::new(stdout, PollFlags::IN)], Some(left));
            match ready {
                Err(Errno::INTR) => continue,
                Err(errno) => return Err(io(errno.into())),
                Ok(0) => {
                    end(&mut [&mut self.child]);
                    return Err(Error::TimedOut { what: self.what.clone(), after: self.deadline });
                }
                Ok(_) => {}
            }
            let mut byte = [0];
            if stdout.read(&mut byte).map_err(io)? == 0 || byte[0] == b'\n' {
                return Ok(line);
            }
            line.push(byte[0]);
        }
    }
}

impl Drop for Conversation {
    fn drop(&mut self) {
        self.stdin = None;
        self.stdout = None;
        let ended = process::exit_notice(Pid::from_child(&self.child)).and_then(|exit| {
            Ok(poll::wait(&mut [PollFd::new(&exit, PollFlags::IN)], Some(Duration::from_secs(10)))?)
        });
        match ended {
            Ok(n) if n > 0 => drop(children::wait(&mut self.child)),
            Ok(_) => end(&mut [&mut self.child]),
            Err(_) => drop(children::wait(&mut self.child)),
        }
    }
}

/// Refuses a git that cannot build merges without a working tree.
pub fn check_version() -> Result<(), Error> {
    static CHECKED: OnceLock<()> = OnceLock::new();
    if CHECKED.get().is_some() {
        return Ok(());
    }
    let output = GitCommand::bare_command()?.arg("version").done()?;
    let text = String::from_utf8_lossy(output.line()).into_owned();
    check_version_text(&text)?;
    CHECKED.get_or_init(|| ());
    Ok(())
}

/// The same, asked once for each git there is: `known` keeps what git answered, and which file it was.
pub fn check_version_once(known: &Path) -> Result<(), Error> {
    let file = program()?;
    let Ok(meta) = std::fs::metadata(file) else { return check_version() };
    let stamp = format!("{:?} {:?} {:?}\n", file, os::identity(&meta), os::times(&meta));
    if std::fs::read(known).is_ok_and(|text| text == stamp.as_bytes()) {
        return Ok(());
    }
    check_version()?;
    // Asked again next time if this fails.
    let _ = files::write(known, stamp.as_bytes());
    Ok(())
}

/// Judges what `git version` printed.
pub fn check_version_text(text: &str) -> Result<(), Error> {
    let found = text.strip_prefix("git version ").unwrap_or(text).to_owned();
    let mut numbers = found.split(['.', ' ', '-']).map_while(|part| part.parse::<u32>().ok());
    match (numbers.next(), numbers.next()) {
        (Some(major), Some(minor)) if (major, minor) >= MINIMUM => Ok(()),
        _ => Err(Error::TooOld { found }),
    }
}

/// Where git is, looked up once; relative entries of PATH are ignored.
fn program() -> Result<&'static Path, Error> {
    static PROGRAM: OnceLock<Option<PathBuf>> = OnceLock::new();
    let find = || {
        let path = std::env::var_os("PATH")?;
        let directories = std::env::split_paths(&path).filter(|directory| directory.is_absolute());
        directories.map(|directory| directory.join("git")).find(|file| is_program(file))
    };
    PROGRAM.get_or_init(find).as_deref().ok_or(Error::Missing)
}

fn is_program(file: &Path) -> bool {
    file.is_file() && is_executable(file)
}
