//! Runs a reviewer's reproduction, in scratch copies that are thrown away.
//!
//! A model wrote the command, and a person allowed it with `--verify`. It has no access to: the user's tree, index and
//! refs (it runs in a copy of its own), whatever in the environment looks like a credential, the user's home and
//! temporary folder; in the sandbox also none to the network and to any file outside. `docs/review.md` says so.

use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::sync::mpsc::Sender;
use std::time::Duration;

use archeflow_core::event::{EvidenceDone, EvidenceStart, Ran};
use archeflow_core::model::{Reproduction, Seq};

use super::{ExecutorFault, Message, report, tail};
use crate::backends::cli::ALL;
use crate::git::ObjectId;
use crate::git::workspace::{Slot, WorkspaceKind};
use crate::model_agent::tools::tree::ToolTree;
use crate::platform::files as os;
use crate::platform::removal::remove_tree;
use crate::proc::{self, Cause, Job, JobLimits, Sink};
use crate::sandbox::{SandboxFacts, SandboxPolicy};
use crate::world::World;

/// What of the output goes into the log, and what into the artifact.
const TAIL: u64 = 1_500;
const KEPT: u64 = 1024 * 1024;

/// The command as `sh -c` runs it, both streams in one. The outer shell stays, so that a crash of the inner one has an
/// exit code too. No file may grow beyond a gigabyte.
const AROUND: &str = "exec 2>&1\nulimit -f 2097152\n/bin/sh -c \"$1\"\nexit $?";

pub(super) fn perform(world: &World, seq: Seq, start: &EvidenceStart, send: &Sender<Message>) {
    let before = match world.user_state() {
        Ok(before) => before,
        Err(error) => {
            let fault = ExecutorFault::Unperformed { order: seq, why: error.to_string() };
            let _ = send.send(Message::Trouble(fault));
            return;
        }
    };
    let done = trial(world, seq, start);
    if let Some(what) = world.changed_since(&before) {
        let who = format!("a reproduction of the {}", start.archetype);
        let _ = send.send(Message::Trouble(ExecutorFault::Tampered { who, what }));
        return;
    }
    // Stopped by the user, it has proved nothing: it runs again when the review is resumed.
    if let Some(done) = done {
        report(send, seq, done);
    }
}

/// Where it does not fail on the change, the base has nothing to add.
fn trial(world: &World, seq: Seq, start: &EvidenceStart) -> Option<EvidenceDone> {
    let on = |commit: &str, which: &str| {
        let name = format!("check-evidence-{seq}-{which}.log");
        let at = ReproductionTree {
            world,
            seq,
            commit,
            log: &world.artifacts().join(name),
            total_ms: start.total_ms,
        };
        at.run(&start.reproduction)
    };
    let change = on(&start.change, "change")?;
    let fails = change.exit.is_some_and(|code| code != 0);
    let base = match start.base.as_deref().filter(|_| fails) {
        Some(base) => Some(on(base, "base")?),
        None => None,
    };
    Some(EvidenceDone { start_seq: seq, change, base })
}

/// One tree to run it on.
struct ReproductionTree<'a> {
    world: &'a World,
    seq: Seq,
    commit: &'a str,
    log: &'a Path,
    total_ms: u64,
}

impl ReproductionTree<'_> {
    /// `None` when the user stopped it.
    fn run(&self, reproduction: &Reproduction) -> Option<Ran> {
        let slot = match self.scratch_copy(reproduction) {
            Ok(slot) => slot,
            Err(why) => return Some(Ran { why, ..Ran::default() }),
        };
        let ended = self.shell(&slot.tree(), &reproduction.command);
        // A copy that can't be removed now is recreated before it is used again.
        let _ = slot.throw_away();
        let why = match ended.cause {
            Cause::Exited(_) => String::new(),
            Cause::Signaled(signal) => format!("ended by signal {signal}"),
            Cause::Silent | Cause::TooLong => format!("stopped after {} s", self.total_ms.div_ceil(1_000)),
            Cause::OverLimit(ref what) => format!("stopped: {what}"),
            Cause::Stopped => return None,
            Cause::NotStarted(ref why) => why.to_string(),
        };
        let exit = match ended.cause {
            Cause::Exited(code) => Some(code),
            Cause::Signaled(_)
            | Cause::Silent
            | Cause::TooLong
            | Cause::Stopped
            | Cause::OverLimit(_)
            | Cause::NotStarted(_) => None,
        };
        let tail = String::from_utf8_lossy(&tail(self.log, TAIL)).trim().to_owned();
        let duration_ms = u64::try_from(ended.duration.as_millis()).unwrap_or(u64::MAX);
        Some(Ran { exit, why, tail, duration_ms })
    }

    /// A copy of the commit with the reproduction's files in it. Its owner is this one run of it alone, so nothing that
    /// another left behind is in it.
    fn scratch_copy(&self, reproduction: &Reproduction) -> Result<Slot, String> {
        let commit = ObjectId::parse(self.commit.as_bytes()).map_err(|error| error.to_string())?;
        let owner = format!("{}.evidence.{}", self.world.run_id, self.seq);
        let slot = self.world.pool.take(WorkspaceKind::Scratch, &owner, &commit);
        let slot = slot.map_err(|error| format!("no scratch copy: {error}"))?;
        let laid =
            slot.expend().map_err(|error| error.to_string()).and_then(|()| lay_in(&slot, reproduction));
        if let Err(why) = laid {
            let _ = slot.throw_away();
            return Err(why);
        }
        Ok(slot)
    }

    fn shell(&self, tree: &Path, command: &str) -> proc::JobEnd {
        let tag = format!("{}.{}", self.world.tag, self.seq);
        let scratch = self.world.state.join("tmp").join(&tag);
        let (home, temporary) = (scratch.join("home"), scratch.join("tmp"));
        let _ = os::make_private(&home).and_then(|()| os::make_private(&temporary));
        let policy = |facts: SandboxFacts<'_>| SandboxPolicy::for_command(facts, tree);
        let sandbox = match self.world.sandbox_for(&scratch, policy) {
            Ok(sandbox) => sandbox,
            Err(error) => return proc::JobEnd::not_started(&error),
        };
        let mut env = harmless(&self.world.env);
        env.push(("HOME".into(), home.into()));
        env.push(("TMPDIR".into(), temporary.into()));
        let job = Job {
            program: "/bin/sh".into(),
            args: vec!["-c".into(), AROUND.into(), "sh".into(), command.into()],
            env,
            cwd: tree.to_path_buf(),
            stdin: Vec::new(),
            stdout: Sink::File { path: self.log.to_path_buf(), keep: KEPT },
            stderr: Sink::nothing(),
            limits: JobLimits { total: Duration::from_millis(self.total_ms), ..JobLimits::default() },
            tag,
            sandbox,
        };
        let ended = proc::run(job, &self.world.watch, &mut |_, _| {});
        let _ = remove_tree(&scratch);
        ended
    }
}

/// R19: no link of the reviewed tree is followed, neither above a file nor in its place.
fn lay_in(slot: &Slot, reproduction: &Reproduction) -> Result<(), String> {
    let tree = ToolTree::new(&slot.tree());
    for file in &reproduction.files {
        let laid = tree.parts(&file.path).and_then(|parts| tree.write(&parts, file.content.as_bytes()));
        laid.map_err(|why| format!("a file of it can't be laid into the copy: {why}"))?;
    }
    Ok(())
}

/// Parts of the names of variables with secret values.
const CREDENTIALS: [&str; 15] = [
    "KEY",
    "TOKEN",
    "SECRET",
    "PASSW",
    "PASSPHRASE",
    "CREDENTIAL",
    "AUTH",
    "COOKIE",
    "SESSION",
    "PRIVATE",
    "ACCESS",
    "SIGNING",
    "_PAT",
    "WEBHOOK",
    "PROXY",
];

/// Beginnings of names that belong to accounts.
const ACCOUNTS: [&str; 12] = [
    "AWS_", "AZURE_", "GOOGLE_", "GCP_", "GCLOUD_", "GITHUB_", "GITLAB_", "GH_", "NPM_", "DOCKER_", "SSH_",
    "GPG_",
];

/// Names that lead into the user's home.
const HOMES: [&str; 4] = ["HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME"];

/// What children get, without what looks like a credential or leads to where those are kept. The toolchain of a Rust
/// user is found by way of the home; it is named, since there is nothing secret in it.
fn harmless(env: &[(OsString, OsString)]) -> Vec<(OsString, OsString)> {
    let mut left: Vec<(OsString, OsString)> =
        env.iter().filter(|(name, _)| is_harmless(name)).cloned().collect();
    let has = |wanted: &str| env.iter().find(|(name, _)| name == wanted).map(|(_, value)| Path::new(value));
    let toolchain = has("HOME").map(|home| home.join(".rustup")).filter(|rustup| rustup.is_dir());
    if let Some(rustup) = toolchain.filter(|_| has("RUSTUP_HOME").is_none()) {
        left.push(("RUSTUP_HOME".into(), rustup.into()));
    }
    left
}

fn is_harmless(name: &OsStr) -> bool {
    let Some(name) = name.to_str() else { return false };
    // Ours: it keeps git from asking questions.
    if name == "GIT_ASKPASS" || name.starts_with("GIT_CONFIG_") {
        return true;
    }
    let upper = name.to_ascii_uppercase();
    let of_client = ALL.iter().any(|client| client.own.contains(&name));
    !(of_client
        || HOMES.contains(&name)
        || CREDENTIALS.iter().any(|part| upper.contains(part))
        || ACCOUNTS.iter().any(|start| upper.starts_with(start)))
}

#[cfg(test)]
mod tests {
    use super::is_harmless;

    #[test]
    fn d_05_what_looks_like_a_credential_stays_with_us() {
        for name in [
            "ANTHROPIC_API_KEY",
            "OPENAI_API_KEY",
            "CLAUDE_CODE_OAUTH_TOKEN",
            "MY_TOKEN",
            "npm_config__authToken",
            "DB_PASSWORD",
            "PGPASSWORD",
            "SSH_AUTH_SOCK",
            "SSH_AGENT_PID",
            "AWS_PROFILE",
            "GITHUB_ENV",
            "GH_HOST",
            "HTTPS_PROXY",
            "http_proxy",
            "HOME",
            "XDG_CONFIG_HOME",
            "SENTRY_WEBHOOK",
            "GITHUB_PAT",
        ] {
            assert!(!is_harmless(name.as_ref()), "{name}");
        }
        for name in
            ["PATH", "LANG", "LC_ALL", "TZ", "USER", "CARGO_HOME", "RUSTUP_HOME", "GIT_ASKPASS", "TERM"]
        {
            assert!(is_harmless(name.as_ref()), "{name}");
        }
    }
}
