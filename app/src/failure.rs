//! What went wrong, sorted by who must act: one message, one hint, one exit code.

use std::path::Path;

use archeflow_host::forge::ForgeError;
use archeflow_host::git::repo::Error as RepoError;
use archeflow_host::git::signing::SigningFault;
use archeflow_host::git::workspace;
use archeflow_host::store::{files, journal};
use archeflow_host::{config, drive, executors, log, open, review, rollback};

use crate::output::CommandOutput;
use crate::render::text::safe;

#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) code: u8,
    /// A stable word for scripts.
    pub(crate) reason: &'static str,
    pub(crate) message: String,
    pub(crate) hint: String,
    /// The run it happened to, as its object would be; `None` when there is no run.
    pub(crate) run: Option<serde_json::Value>,
}

impl Failure {
    pub(crate) fn new(
        code: u8,
        reason: &'static str,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) -> Failure {
        Failure { code, reason, message: message.into(), hint: hint.into(), run: None }
    }

    pub(crate) fn usage(message: impl Into<String>, hint: impl Into<String>) -> Failure {
        Failure::new(2, "usage", message, hint)
    }

    pub(crate) fn report(&self, json: bool) -> u8 {
        let code =
            if json { CommandOutput::json(self.object()).with_code(self.code).print() } else { self.code };
        tell!("error: {}", safe(&self.message));
        if !self.hint.is_empty() {
            tell!("  {}", safe(&self.hint));
        }
        code
    }

    fn object(&self) -> serde_json::Value {
        let mut object = self.run.clone().unwrap_or_else(|| {
            serde_json::json!({
                "run_id": null, "cycles": 0, "branch": null, "merged_oid": null, "artifacts": null, "events": null,
                "cost_usd": 0.0, "unresolved": [],
            })
        });
        object["status"] = "failed".into();
        object["exit_code"] = self.code.into();
        object["reason"] = self.reason.into();
        object["detail"] = self.message.as_str().into();
        object["hint"] = self.hint.as_str().into();
        object
    }
}

impl From<ForgeError> for Failure {
    fn from(error: ForgeError) -> Failure {
        let message = error.to_string();
        match error {
            ForgeError::NoForge => Failure::usage(
                message,
                "Set it to the address of the repository: git remote set-url origin https://github.com/<owner>/<name>",
            ),
            ForgeError::UnknownHost { host } => Failure::usage(
                message,
                format!(
                    "Name it in your own configuration, e.g. forge: {{kind: gitlab, url: 'https://{host}'}}; \
                     kinds: github, gitlab, gitea, forgejo"
                ),
            ),
            ForgeError::Token(_) => Failure::new(
                30,
                "no_token",
                message,
                "Set the variable, or log in with the forge's client; docs/pull-requests.md says what the token needs.",
            ),
            ForgeError::Git(_)
            | ForgeError::Unreachable { .. }
            | ForgeError::Refused { .. }
            | ForgeError::Limited { .. }
            | ForgeError::Nonsense { .. }
            | ForgeError::Lines { .. }
            | ForgeError::Record(_) => Failure::new(30, "forge", message, ""),
        }
    }
}

impl From<review::Error> for Failure {
    fn from(error: review::Error) -> Failure {
        let message = error.to_string();
        match error {
            review::Error::Start(error) => (*error).into(),
            review::Error::Files(error) => error.into(),
            review::Error::Subject(_) => {
                Failure::usage(message, "See what can be reviewed: archeflow review --help")
            }
            review::Error::NoReviewer { .. } => Failure::usage(message, "Example: --reviewers guardian,sage"),
            review::Error::Baseline(_) => Failure::usage(message, "See docs/review.md for its form."),
            review::Error::Parts(_) | review::Error::Git(_) => {
                Failure::new(30, "git_fault", message, "Check that git works here: git status")
            }
            review::Error::Io { .. } => Failure::new(30, "environment", message, ""),
        }
    }
}

impl From<open::Error> for Failure {
    fn from(error: open::Error) -> Failure {
        let message = error.to_string();
        match error {
            open::Error::Repo(error) => error.into(),
            open::Error::Git(_) => {
                Failure::new(30, "git_fault", message, "Check that git works here: git status")
            }
            open::Error::Files(error) => error.into(),
            open::Error::Config(faults) => faults.into(),
            open::Error::Trust(config::trust::TrustError::Refused { .. }) => Failure::new(
                21,
                "refused",
                message,
                "Put the file's owner and mode right (yours alone), then try again.",
            ),
            open::Error::Trust(_) => Failure::new(30, "environment", message, ""),
            open::Error::Backend(_) => Failure::usage(message, "Example: --agent 'cmd:./my-agent.sh'"),
            open::Error::Journal(error) => error.into(),
            open::Error::Log(error) => error.into(),
            open::Error::Untrusted { .. } => Failure::new(
                20,
                "untrusted",
                message,
                "Review its commands and approve them: archeflow trust",
            ),
            open::Error::Instructions { .. } => Failure::usage(message, "Change `agents.instructions`."),
            open::Error::FewFiles { .. } => {
                Failure::new(30, "environment", message, "Raise the limit: ulimit -n 1024")
            }
            open::Error::NoSandbox { remedy, .. } => Failure::new(
                21,
                "no_sandbox",
                message,
                format!("{remedy}. Without any protection: --unsafe-no-sandbox"),
            ),
            open::Error::Filtered { .. } => Failure::new(
                21,
                "filters",
                message,
                "Nothing was started: agents and tests would see pointers instead of content. If that will do, set in your configuration: git.filters: pointers",
            ),
            open::Error::Bare { .. } => {
                Failure::new(21, "refused", message, "Use --repo with a clone that has one.")
            }
            open::Error::Foreign { .. } => Failure::new(
                21,
                "refused",
                message,
                "It can be looked at: archeflow show <id>. If you started it (before this version, or the repository was moved), see its commands and take it over: archeflow trust --run <id>",
            ),
            open::Error::Committed { .. } => Failure::new(
                21,
                "refused",
                message,
                "Look at it: archeflow show <id>. Start a new run: archeflow run",
            ),
            open::Error::NoRun { .. } | open::Error::BadId { .. } => {
                Failure::usage(message, "See the runs there are: archeflow list")
            }
            open::Error::NeverBegan { .. } => Failure::usage(
                message,
                "Nothing was done and nothing is lost: start it again with archeflow run",
            ),
            open::Error::NoAgent => Failure::usage(
                message,
                "Name an agent, e.g. --agent claude or --agent 'cmd:./my-agent.sh', or try one without any agent: archeflow demo",
            ),
            open::Error::NoArtifact { .. } | open::Error::BadArtifact { .. } => {
                Failure::usage(message, "Nothing was started.")
            }
            open::Error::Merged { .. } => Failure::usage(message, "Start a new run instead."),
            open::Error::Frozen { .. } => Failure::usage(message, "Leave the flag out, or start a new run."),
            open::Error::AgentMissing { .. } => {
                Failure::new(30, "agent_missing", message, "Install it, or name another: --agent <spec>")
            }
            open::Error::SubjectGone { .. } => Failure::usage(message, "archeflow review --help says how."),
            open::Error::Remote { .. } => Failure::new(
                30,
                "remote",
                message,
                "Nothing was started. See what there is: git remote -v; try: git fetch <remote>",
            ),
            open::Error::NoTask => {
                Failure::usage(message, "Say what is to be done: archeflow run \"Add rate limiting\"")
            }
        }
    }
}

impl From<RepoError> for Failure {
    fn from(error: RepoError) -> Failure {
        let message = error.to_string();
        match error {
            RepoError::NotARepository { .. } => {
                Failure::new(21, "refused", message, "Go to a git repository, or name one: --repo <dir>")
            }
            RepoError::InsideGitDir { .. } => Failure::new(21, "refused", message, ""),
            RepoError::Unborn { .. } => {
                Failure::new(21, "refused", message, "git add -A && git commit -m 'First commit'")
            }
            RepoError::Detached => {
                Failure::new(21, "refused", message, "Name it: --target <branch>, or check a branch out.")
            }
            RepoError::NoIdentity => Failure::new(
                21,
                "no_identity",
                message,
                "git config --global user.name 'Your Name' && git config --global user.email you@example.org",
            ),
            RepoError::Signing(SigningFault::Git(_)) => Failure::new(30, "git_fault", message, ""),
            RepoError::Signing(_) => Failure::new(
                21,
                "refused",
                message,
                "Nothing was started. To land unsigned commits here: git config commit.gpgsign false",
            ),
            RepoError::NoSuchBranch { .. } | RepoError::BadName { .. } => {
                Failure::usage(message, "See the branches there are: git branch")
            }
            RepoError::Git(_) => Failure::new(30, "git_fault", message, ""),
            RepoError::Io { path, source } if files::is_unwritable(source.kind()) => {
                Failure::new(30, "environment", message, unwritable_remedy(&path))
            }
            RepoError::Io { .. } => Failure::new(30, "environment", message, ""),
        }
    }
}

impl From<files::Error> for Failure {
    fn from(error: files::Error) -> Failure {
        let message = error.to_string();
        let unwritable = error.is_unwritable();
        match error {
            files::Error::Io { path, .. } if unwritable => {
                Failure::new(30, "environment", message, unwritable_remedy(&path))
            }
            files::Error::Refused { .. } => {
                Failure::new(21, "refused", message, "Put that right, then try again. Nothing was touched.")
            }
            files::Error::TooLarge { .. } | files::Error::Io { .. } => Failure::new(
                30,
                "environment",
                message,
                "Free space or fix permissions, then: archeflow resume <id>",
            ),
        }
    }
}

/// What to do about a folder that can't be written.
fn unwritable_remedy(path: &Path) -> String {
    let of_repository = path.components().any(|part| part.as_os_str() == ".archeflow");
    let remedy = match of_repository {
        true => "Make the folder .archeflow of the repository writable for you",
        false => "Make that folder writable for you, or name another one: export XDG_STATE_HOME=<folder>",
    };
    format!("{remedy}, then try again. Nothing was changed there.")
}

impl From<config::Faults> for Failure {
    fn from(faults: config::Faults) -> Failure {
        Failure::new(
            2,
            "configuration",
            faults.to_string(),
            "Nothing was started. All keys: docs/configuration.md",
        )
    }
}

impl From<journal::Error> for Failure {
    fn from(error: journal::Error) -> Failure {
        let message = error.to_string();
        match error {
            journal::Error::Damaged { .. } => Failure::new(
                40,
                "damaged",
                message,
                "Nothing was touched. Restore the file from a backup, or start a new run; its work is under refs/archeflow/keep/.",
            ),
            journal::Error::Held { .. } => {
                Failure::new(21, "held", message, "Wait for it, or stop that process first.")
            }
            journal::Error::BadName { .. } | journal::Error::Missing { .. } => {
                Failure::usage(message, "See the runs there are: archeflow list")
            }
            journal::Error::File(error) => error.into(),
            journal::Error::Exists { .. }
            | journal::Error::TooLarge { .. }
            | journal::Error::Unwritable { .. }
            | journal::Error::OutOfTurn { .. }
            | journal::Error::Changed { .. }
            | journal::Error::Poisoned { .. } => {
                Failure::new(30, "environment", message, "Put that right, then: archeflow resume <id>")
            }
        }
    }
}

impl From<log::Error> for Failure {
    fn from(error: log::Error) -> Failure {
        let message = error.to_string();
        match error {
            log::Error::Journal(error) => error.into(),
            log::Error::Newer { .. } => Failure::new(40, "newer_log", message, ""),
            log::Error::Unreadable { .. } => Failure::new(40, "damaged", message, ""),
            log::Error::Unwritable(_) => Failure::new(30, "environment", message, ""),
        }
    }
}

impl From<drive::Error> for Failure {
    fn from(error: drive::Error) -> Failure {
        let message = error.to_string();
        match error {
            drive::Error::Log(error) => error.into(),
            drive::Error::Rollback(rollback::Error::Branch(workspace::Error::CheckedOut { .. })) => {
                Failure::new(
                    10,
                    "checked_out",
                    message,
                    "Check another branch out, then: archeflow resume <id>",
                )
            }
            drive::Error::Rollback(rollback::Error::Branch(_) | rollback::Error::Git(_)) => {
                Failure::new(30, "git_fault", message, "Then: archeflow resume <id>")
            }
            drive::Error::Rollback(rollback::Error::Files(error)) => error.into(),
            drive::Error::Desk(executors::DeskError::Git(_)) => Failure::new(30, "git_fault", message, ""),
            drive::Error::Desk(_) => {
                Failure::new(40, "damaged", message, "The log is intact: archeflow show <id>")
            }
            drive::Error::Trouble(executors::ExecutorFault::Tampered { .. }) => {
                Failure::new(21, "tampered", message, "When it is right again: archeflow resume <id>")
            }
            drive::Error::Trouble(executors::ExecutorFault::Artifact { .. }) | drive::Error::Artifact(_) => {
                Failure::new(
                    30,
                    "environment",
                    message,
                    "Free space or fix permissions, then: archeflow resume <id>",
                )
            }
            drive::Error::Replica { .. } => {
                Failure::new(30, "replica", message, "Nothing is lost: archeflow resume <id>")
            }
            drive::Error::Behind { .. } => Failure::new(
                21,
                "behind",
                message,
                "Nothing was started. Another session has continued the run: bring its journal up to date first.",
            ),
            drive::Error::Fenced { set_aside, .. } => {
                let only_here = set_aside
                    .map(|path| format!(" The lines that only this session had are in {}.", path.display()));
                Failure::new(
                    21,
                    "fenced",
                    message,
                    format!("Nothing more was started.{}", only_here.unwrap_or_default()),
                )
            }
            drive::Error::Trouble(executors::ExecutorFault::Unperformed { .. })
            | drive::Error::Stuck
            | drive::Error::LetGo => Failure::new(
                30,
                "bug",
                message,
                "Please report it with the output of: archeflow show <id> --json",
            ),
        }
    }
}
