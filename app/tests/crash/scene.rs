//! The stage: a repository with a user's unfinished work in it, scripted agents, and the program as a process.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::ops::Deref;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::user::{LONG, PROGRAM, TestUser, as_strs, run_ids};

/// Content that only a Maker writes, committed by it or left lying in its working copy.
pub(crate) const TOKENS: [&str; 4] =
    ["token-one-committed", "token-one-loose", "token-two-committed", "token-two-loose"];

pub(crate) const TASK: &str = "Greet people politely";
pub(crate) const TESTS: &str = "sh tests/run.sh";

/// Two cycles: the Guardian and the Sage object in the first, the mini-Explorer is sent in the second, then it lands.
/// No scene looks at the attempt, so a repeated one ends the same.
const PLAY: &str = r#"
== explorer purpose=research ==
say <<END
## Risks

Names with spaces: real, quoting mitigates it.

STATUS: DONE
END

== explorer ==
say <<END
## Affected files

- `greet.sh`: one function.

## Recommendation

Change it in place.

STATUS: DONE
END

== creator cycle=1 ==
say <<END
## Architecture

One function stays one function.

## Files

- `greet.sh`: the greeting (2 minutes)
- `tests/run.sh`: a check (2 minutes)

## Alternatives

- A table: rejected, one language.

## Test strategy

- The greeting is polite.

## Confidence

| Axis | Score |
|---|---|
| Task understanding | 0.95 |
| Solution completeness | 0.9 |
| Risk coverage | 0.9 |

## Risks

- None to speak of. Mitigation: none.

STATUS: DONE
END

== creator cycle=2 ==
say <<END
## Architecture

Refuse an empty name.

## Files

- `greet.sh`: a check (2 minutes)
- `old.txt`: goes (1 minute)

## Alternatives

- Greet nobody: rejected.

## Test strategy

- An empty name is refused.

## Confidence

| Axis | Score |
|---|---|
| Task understanding | 0.95 |
| Solution completeness | 0.9 |
| Risk coverage | 0.2 |

## Risks

- Names with spaces. Mitigation: quoting.

## Prior issues

- `greet.sh:reliability`: Fixed, an empty name is refused.

STATUS: DONE
END

== maker cycle=1 ==
write greet.sh <<END
# token-one-committed
greet() {
    echo "Good day, $1"
}
END
sh t=$(cat /proc/sys/kernel/random/uuid); git add -A && git commit -q -m "Be polite ($t)" && echo "$t" >>"{base}/ledger"
write tests/run.sh <<END
# token-one-loose
. ./greet.sh
[ "$(greet Ann)" = "Good day, Ann" ] || exit 1
END
write docs/new.md <<END
A page.
END
say <<END
## Summary

Polite now.

## Changes

- `greet.sh`, `tests/run.sh`, `docs/new.md`

## Tests

Pass.

STATUS: DONE
END

== maker cycle=2 ==
write greet.sh <<END
# token-one-committed
# token-two-committed
greet() {
    [ -n "$1" ] || return 1
    echo "Good day, $1"
}
END
sh t=$(cat /proc/sys/kernel/random/uuid); git add -A && git commit -q -m "Refuse nobody ($t)" && echo "$t" >>"{base}/ledger"
delete old.txt
append tests/run.sh <<END
# token-two-loose
greet "" && exit 1
exit 0
END
say <<END
## Summary

An empty name is refused.

## Changes

- `greet.sh`, `tests/run.sh`

## Tests

Pass.

## Prior issues

- `greet.sh:reliability`: Fixed, an empty name is refused.

STATUS: DONE
END

== guardian cycle=1 ==
say <<END
VERDICT: REJECTED
FINDINGS: 1

| Location | Severity | Category | Description | Fix | Evidence |
|---|---|---|---|---|---|
| greet.sh:3 | WARNING | reliability | An empty name is greeted | Refuse it | `greet.sh:3` `echo "Good day, $1"`; to reproduce: `. ./greet.sh; greet ""` |

STATUS: DONE
END

== skeptic ==
say <<END
VERDICT: APPROVED
FINDINGS: 0

STATUS: DONE
END

== sage ==
say <<END
VERDICT: APPROVED
FINDINGS: 1

| Location | Severity | Category | Description | Fix | Evidence |
|---|---|---|---|---|---|
| greet.sh | WARNING | quality | The name might be better | Rename it | |

STATUS: DONE
END

== guardian ==
say <<END
VERDICT: APPROVED
FINDINGS: 0

STATUS: DONE
END
"#;

/// How a process of ours ended.
#[derive(Debug, Clone)]
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) killed: bool,
    pub(crate) said: String,
}

pub(crate) struct Scene {
    user: TestUser,
    pub(crate) play: PathBuf,
}

impl Deref for Scene {
    type Target = TestUser;

    fn deref(&self) -> &TestUser {
        &self.user
    }
}

impl Scene {
    pub(crate) fn new() -> Scene {
        let scene = Scene::with_play(PLAY);
        scene.make_dirty();
        scene
    }

    /// A repository with nothing unfinished in it, and agents that follow `play`.
    pub(crate) fn with_play(play: &str) -> Scene {
        let user = TestUser::new();
        let scene = Scene { play: user.write("agents.play", play), user };
        let files = [
            ("greet.sh", "greet() {\n    echo \"Hello $1\"\n}\n"),
            ("tests/run.sh", ". ./greet.sh\n[ \"$(greet Ann)\" = \"Hello Ann\" ] || exit 1\n"),
            ("old.txt", "to go\n"),
            ("keep.txt", "as committed\n"),
            ("staged.txt", "as committed\n"),
            (".gitignore", "*.secret\n"),
        ];
        scene.own_repository(&scene.repo(), &files);
        scene.open_base();
        scene
    }

    /// Work of the user's own that has nothing to do with the run: modified, staged, untracked, ignored.
    fn make_dirty(&self) {
        let repo = self.repo();
        fs::write(repo.join("keep.txt"), "modified, not staged\n").unwrap();
        fs::write(repo.join("staged.txt"), "staged\n").unwrap();
        self.git(&["add", "staged.txt"]);
        fs::write(repo.join("staged.txt"), "staged, then modified\n").unwrap();
        fs::create_dir(repo.join("mine")).unwrap();
        fs::write(repo.join("mine/todo.txt"), "untracked\n").unwrap();
        fs::write(repo.join("local.secret"), "ignored\n").unwrap();
    }

    pub(crate) fn repo(&self) -> PathBuf {
        self.base().join("repo")
    }

    pub(crate) fn events(&self) -> PathBuf {
        self.repo().join(".archeflow/events")
    }

    pub(crate) fn git(&self, args: &[&str]) -> String {
        self.git_in(&self.repo(), args)
    }

    /// The ids of the runs that have a journal.
    pub(crate) fn ids(&self) -> Vec<String> {
        run_ids(&self.repo())
    }

    pub(crate) fn id(&self) -> String {
        self.ids().into_iter().next().unwrap()
    }

    pub(crate) fn journal(&self) -> PathBuf {
        self.events().join(format!("{}.jsonl", self.id()))
    }

    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = self.user.command(PROGRAM);
        command.args(args).current_dir(self.repo());
        command
    }

    pub(crate) fn call(&self, args: &[&str], failpoint: Option<&str>) -> Ended {
        let mut command = self.command(args);
        if let Some(failpoint) = failpoint {
            command.env("ARCHEFLOW_FAILPOINT", failpoint);
        }
        call(command)
    }

    /// The arguments of the run everything here is about.
    pub(crate) fn run_args(&self) -> Vec<String> {
        let agent = format!("script:{}", self.play.display());
        let args = ["run", TASK, "--workflow", "standard", "--strategy", "pdca", "--agent", &agent]
            .into_iter()
            .chain(["--test-command", TESTS, "--auto-merge", "--unattended"]);
        args.map(str::to_owned).collect()
    }

    pub(crate) fn run(&self, failpoint: Option<&str>) -> Ended {
        self.call(&as_strs(&self.run_args()), failpoint)
    }

    pub(crate) fn resume(&self, failpoint: Option<&str>) -> Ended {
        self.call(&["resume", &self.id(), "--unattended", "--auto-merge"], failpoint)
    }

    /// Which places the program passes, and how often.
    pub(crate) fn traced(&self, mut command: Command) -> (Ended, BTreeMap<String, u64>) {
        let file = self.base().join("trace");
        command.env("ARCHEFLOW_FAILPOINT_TRACE", &file);
        let ended = call(command);
        let mut places = BTreeMap::new();
        for place in fs::read_to_string(file).unwrap_or_default().lines() {
            *places.entry(place.to_owned()).or_default() += 1;
        }
        (ended, places)
    }
}

pub(crate) fn git(dir: &Path, args: &[&str]) -> String {
    let output = Command::new("git")
        .args(["-C".as_ref(), dir.as_os_str()])
        .args(args)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_OPTIONAL_LOCKS", "0")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "git {args:?}: {said}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Starts the program with its words in a file, so that a child that outlives it holds up nobody.
pub(crate) fn start(mut command: Command) -> (Child, PathBuf) {
    let dir = command.get_envs().find(|(name, _)| *name == OsStr::new("TMPDIR")).and_then(|(_, dir)| dir);
    let dir = dir.map_or_else(std::env::temp_dir, PathBuf::from);
    let said = tempfile::Builder::new().prefix("said-").tempfile_in(dir).unwrap();
    let (file, path) = said.keep().unwrap();
    command.stdout(file.try_clone().unwrap()).stderr(file).process_group(0);
    (command.spawn().unwrap(), path)
}

pub(crate) fn finish(child: &mut Child, said: &Path) -> Ended {
    let deadline = Instant::now() + LONG;
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        if Instant::now() > deadline {
            child.kill().unwrap();
            panic!("the program hangs: {}", fs::read_to_string(said).unwrap_or_default());
        }
        std::thread::sleep(Duration::from_millis(3));
    };
    Ended {
        code: status.code(),
        killed: status.signal() == Some(9),
        said: fs::read_to_string(said).unwrap_or_default(),
    }
}

fn call(command: Command) -> Ended {
    let (mut child, said) = start(command);
    finish(&mut child, &said)
}
