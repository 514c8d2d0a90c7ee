//! What every end-to-end test begins with: a folder of its own with a user's home in it, the program as a process that
//! sees nothing of the machine but its path, git, logs that are read while they grow, and waiting for events.
//!
//! Agents, repositories and what must hold are in the files that use this.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_archeflow");

/// Longer than anything takes on a machine that is ever so busy: only what is broken takes so long.
pub(crate) const LONG: Duration = Duration::from_secs(900);

/// A user's folders, removed with the test.
pub(crate) struct TestUser {
    dir: TempDir,
    /// Agents may leave marks in the folder.
    opened: AtomicBool,
}

impl TestUser {
    pub(crate) fn new() -> TestUser {
        let dir = TempDir::with_prefix("archeflow-test-").unwrap();
        let user = TestUser { dir, opened: AtomicBool::new(false) };
        for folder in ["home/.config/archeflow", "tmp"] {
            fs::create_dir_all(user.base().join(folder)).unwrap();
        }
        user
    }

    pub(crate) fn base(&self) -> PathBuf {
        self.dir.path().canonicalize().unwrap()
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.base().join("home")
    }

    /// Time limits of agents and of tests count only while this file is there, so a slow machine reaches none. Whoever
    /// is to be overdue makes the file and then says nothing more.
    pub(crate) fn overdue(&self) -> PathBuf {
        self.base().join("overdue")
    }

    /// A file beside the repositories; `{base}` stands for this user's folder.
    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.base().join(name);
        fs::write(&path, text.replace("{base}", &self.base().display().to_string())).unwrap();
        path
    }

    /// The user's own configuration.
    pub(crate) fn configure(&self, yaml: &str) {
        self.write("home/.config/archeflow/config.yaml", yaml);
        self.open_sandbox();
    }

    /// For agents that leave marks in this user's folder, or wait for some: the sandbox lets them, as the user may choose.
    pub(crate) fn open_base(&self) {
        self.opened.store(true, Ordering::Relaxed);
        self.open_sandbox();
    }

    fn open_sandbox(&self) {
        let path = self.home().join(".config/archeflow/config.yaml");
        let yaml = fs::read_to_string(&path).unwrap_or_default();
        if self.opened.load(Ordering::Relaxed) && !yaml.contains("sandbox:") {
            let _ = fs::write(path, format!("{yaml}\nsandbox:\n  write: [\"{}\"]\n", self.base().display()));
        }
    }

    /// A child with the environment of this user and nothing else.
    pub(crate) fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        command
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.home())
            .env("TMPDIR", self.base().join("tmp"))
            .env("TERM", "xterm-256color")
            .env("LANG", "C.UTF-8")
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("ARCHEFLOW_FAILPOINT_LIMITS", self.overdue())
            .current_dir(self.base())
            .stdin(Stdio::null());
        command
    }

    /// Git with the user's eyes, which leaves no lock and no trace.
    pub(crate) fn git_in<I: AsRef<OsStr>>(
        &self,
        dir: &Path,
        arguments: impl IntoIterator<Item = I>,
    ) -> String {
        let mut git = self.command("git");
        git.args(["-c", "user.name=Jo User", "-c", "user.email=jo@example.org"]);
        git.env("GIT_OPTIONAL_LOCKS", "0").current_dir(dir).args(arguments);
        let output = git.output().unwrap();
        assert!(output.status.success(), "{git:?}: {}", printed(&output));
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// A repository on `main` with these files in its first commit, if there are any.
    pub(crate) fn repository(&self, dir: &Path, files: &[(&str, &str)]) {
        fs::create_dir_all(dir).unwrap();
        for (name, text) in files {
            let path = dir.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        self.git_in(dir, ["init", "-q", "-b", "main"]);
        if !files.is_empty() {
            self.git_in(dir, ["add", "-A"]);
            self.git_in(dir, ["commit", "-q", "-m", "First"]);
        }
    }

    /// A repository whose user has said who they are.
    pub(crate) fn own_repository(&self, dir: &Path, files: &[(&str, &str)]) {
        self.repository(dir, files);
        let config = dir.join(".git/config");
        let who = "[user]\n\tname = Jo User\n\temail = jo@example.org\n";
        fs::write(&config, fs::read_to_string(&config).unwrap() + who).unwrap();
    }

    /// Waits until a file beside the repositories is there.
    pub(crate) fn wait_for_file(&self, name: &str) {
        let path = self.base().join(name);
        wait_until(|| path.exists(), || format!("{} did not come", path.display()));
    }
}

/// Waits for an event; one that never comes is told with these words.
#[track_caller]
pub(crate) fn wait_until(is: impl Fn() -> bool, else_told: impl Fn() -> String) {
    let begun = Instant::now();
    while !is() {
        assert!(begun.elapsed() < LONG, "{}", else_told());
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// All that a program printed.
pub(crate) fn printed(output: &Output) -> String {
    format!("{}\n{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// The lines of a log that may be growing.
pub(crate) fn parse_lines(bytes: &[u8]) -> Vec<Value> {
    bytes.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok()).collect()
}

/// The same of a log in which every whole line must be one.
pub(crate) fn whole_lines(text: &str) -> Vec<Value> {
    let lines = text.split_inclusive('\n').filter(|line| line.ends_with('\n'));
    lines.map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The logs in a folder, by name.
pub(crate) fn logs_in(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut logs: Vec<PathBuf> =
        entries.filter(|path| path.extension().is_some_and(|end| end == "jsonl")).collect();
    logs.sort();
    logs
}

/// The ids of the runs of a repository, shortest first.
pub(crate) fn run_ids(repo: &Path) -> Vec<String> {
    let logs = logs_in(&repo.join(".archeflow/events"));
    let names = logs.iter().filter_map(|path| path.file_stem()?.to_str().map(str::to_owned));
    let mut ids: Vec<String> = names.filter(|name| name != "index").collect();
    ids.sort_by_key(|id| (id.len(), id.clone()));
    ids
}

pub(crate) fn as_strs(arguments: &[String]) -> Vec<&str> {
    arguments.iter().map(String::as_str).collect()
}

/// The processes on this machine, each with this file of its folder in `/proc`.
pub(crate) fn processes(file: &str) -> Vec<(i32, Vec<u8>)> {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    numbers.filter_map(|pid: i32| Some((pid, fs::read(format!("/proc/{pid}/{file}")).ok()?))).collect()
}

/// Shell that reads the brief, and signs what it gives to `sign`.
pub(crate) const SIGN: &str = r#"brief=$(cat)
code=$(printf '%s\n' "$brief" | sed -n 's/.*as in `STATUS: DONE \([0-9a-f]*\)`.*/\1/p' | tail -n 1)
sign() { sed -E "s/(VERDICT: [A-Z]+|STATUS: [A-Z_]+)/\1 $code/g"; }
"#;
