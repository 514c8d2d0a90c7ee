//! Remotes: the only module that fetches and pushes, and it does so only for what a person typed. Git runs as the user
//! would run it, with their configuration and keys, but without hooks, questions, tags, submodules or force.
//!
//! A run can land on a branch of a remote instead of one here ([`push_landing`]). Two refs decide there, moved by one push that the
//! remote accepts whole or not at all: the branch, which has to be where the tested commit expects it, and the *turn* of the
//! run, which says who may land it. A copy of the run that was continued elsewhere has taken the turn, or has landed.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::land::Move;
use super::repo::answered;
use super::runner;
use super::{GitEnv, ObjectId, Repo};
use crate::failpoint;
use crate::proc::{self, Cause, Job, JobEnd, JobLimits, Sink, Watch};

/// Asks no questions, opens no pager, and lets git run no monitor or hook.
const QUIET: &[(&str, &str)] = &[
    ("GH_PROMPT_DISABLED", "1"),
    ("GH_NO_UPDATE_NOTIFIER", "1"),
    ("GH_PAGER", "cat"),
    ("NO_COLOR", "1"),
    ("GIT_OPTIONAL_LOCKS", "0"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_CONFIG_COUNT", "2"),
    ("GIT_CONFIG_KEY_0", "core.fsmonitor"),
    ("GIT_CONFIG_VALUE_0", "false"),
    ("GIT_CONFIG_KEY_1", "core.hooksPath"),
    ("GIT_CONFIG_VALUE_1", "/dev/null"),
];

/// How long a remote may take.
const LIMIT: Duration = Duration::from_secs(600);
const ANSWER: u64 = 4 * 1024 * 1024;
const PREFIX: &str = "refs/remotes/";
/// The remote of a worker's clone.
pub const ORIGIN: &str = "origin";
/// Where the turns of runs are; some remotes accept no refs but branches.
const TURNS: [&str; 2] = ["refs/archeflow/turn/", "refs/heads/archeflow/turn/"];

/// A branch of a remote, as a run names it: `refs/remotes/<remote>/<branch>`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemoteBranch {
    pub remote: String,
    pub branch: String,
}

impl RemoteBranch {
    /// Nothing for a branch of the repository itself.
    pub fn parse(target: &str) -> Option<RemoteBranch> {
        let (remote, branch) = target.strip_prefix(PREFIX)?.split_once('/')?;
        Some(RemoteBranch { remote: remote.to_owned(), branch: branch.to_owned() })
    }

    /// Whether there is such a remote, and its branches have names that [`RemoteBranch::parse`] reads.
    pub fn is_known(&self, repo: &Repo) -> Result<bool, runner::Error> {
        let output =
            runner::GitCommand::with_user_config(&repo.common_dir, &repo.env)?.arg("remote").done()?;
        let names = String::from_utf8_lossy(&output.stdout).into_owned();
        Ok(!self.remote.contains('/') && names.lines().any(|name| name == self.remote))
    }

    /// Our copy of it.
    pub fn tracking(&self) -> String {
        format!("{PREFIX}{}/{}", self.remote, self.branch)
    }

    fn there(&self) -> String {
        format!("refs/heads/{}", self.branch)
    }
}

/// Brings the branch here. Nothing if the remote does not have it.
pub fn fetch(repo: &Repo, of: &RemoteBranch) -> Result<Option<ObjectId>, String> {
    let there = of.there();
    let Some(now) = listed(repo, &of.remote, &[&there])?.remove(&there) else { return Ok(None) };
    if repo.resolve(&of.tracking()).map_err(text)?.as_ref() == Some(&now) {
        return Ok(Some(now));
    }
    let refspec = format!("+{there}:{}", of.tracking());
    let fetched = git(repo, &[&FETCH[..], &["--end-of-options", &of.remote, &refspec]].concat());
    let here = repo.resolve(&of.tracking()).map_err(text)?;
    match fetched {
        Ok(_) => Ok(here),
        // Another run of this repository was faster, and had the ref locked.
        Err(_) if here.as_ref() == Some(&now) => Ok(here),
        Err(refused) => Err(said(refused)),
    }
}

const FETCH: [&str; 6] =
    ["fetch", "-q", "--no-tags", "--no-recurse-submodules", "--no-auto-maintenance", "--no-write-fetch-head"];

/// Makes a clone for a worker of a fleet. It has no files of the repository: runs have copies of their own.
pub fn clone(url: &str, into: &Path, env: &GitEnv) -> Result<(), String> {
    let above = into.parent().unwrap_or(into);
    let place = into.to_string_lossy();
    let args =
        ["clone", "-q", "--no-checkout", "--no-tags", "--origin", ORIGIN, "--end-of-options", url, &place];
    git_at(above, env, &args).map_err(said)?;
    for (name, value) in [("user.name", "archeflow worker"), ("user.email", "worker@archeflow.invalid")] {
        // Where nobody has said who they are, commits need a name all the same.
        if git_at(into, env, &["config", "--get", name]).is_err() {
            git_at(into, env, &["config", "--local", name, value]).map_err(said)?;
        }
    }
    Ok(())
}

/// Brings a worker's clone up to date, and the named branch with it.
pub fn refresh(clone: &Path, branch: &str, env: &GitEnv) -> Result<(), String> {
    let all = ["--prune", "--end-of-options", ORIGIN, "+refs/heads/*:refs/remotes/origin/*"];
    git_at(clone, env, &[&FETCH[..], &all].concat()).map_err(said)?;
    // Nothing is checked out, so the branch can be moved at any time.
    let here = format!("+{PREFIX}{ORIGIN}/{branch}:refs/heads/{branch}");
    let moved =
        git_at(clone, env, &[&FETCH[..], &["--update-head-ok", "--end-of-options", ".", &here]].concat());
    moved.map(drop).map_err(|refused| format!("it has no branch {branch}: {}", said(refused)))
}

/// Where a remote has a commit of a run. The name says the content, so that a session which has lost the run can add commits
/// and replace none.
fn kept_at(run_id: &str, commit: &ObjectId) -> String {
    format!("refs/archeflow/keep/{run_id}/{commit}")
}

/// Puts commits of a run where another machine finds them.
pub fn push_kept(
    repo: &Repo,
    remote: &str,
    run_id: &str,
    commits: &BTreeSet<ObjectId>,
) -> Result<(), String> {
    if commits.is_empty() {
        return Ok(());
    }
    let refspecs: Vec<String> =
        commits.iter().map(|commit| format!("{commit}:{}", kept_at(run_id, commit))).collect();
    let refspecs: Vec<&str> = refspecs.iter().map(String::as_str).collect();
    push(repo, remote, &[], &refspecs).map_err(|refused| {
        format!(
            "{remote} did not accept commits under refs/archeflow/keep/, which a fleet needs: {}",
            said(refused)
        )
    })
}

/// Brings commits of a run here.
pub fn fetch_kept(
    repo: &Repo,
    remote: &str,
    run_id: &str,
    commits: &BTreeSet<ObjectId>,
) -> Result<(), String> {
    let mut names = Vec::new();
    for commit in commits {
        if !repo.has_commit(commit).map_err(text)? {
            names.push(kept_at(run_id, commit));
        }
    }
    if names.is_empty() {
        return Ok(());
    }
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let fetched = git(repo, &[&FETCH[..], &["--end-of-options", remote], &names].concat());
    fetched.map(drop).map_err(|refused| format!("{remote} lacks the work of {run_id}: {}", said(refused)))
}

/// The commit that a landed one was built on; nothing for a first commit.
pub fn first_parent(repo: &Repo, commit: &ObjectId) -> Result<Option<ObjectId>, runner::Error> {
    let parent = format!("{commit}^1");
    let output = repo.side()?.args(["rev-parse", "--verify", "-q", "--end-of-options", &parent]).run()?;
    Ok(ObjectId::parse(output.line()).ok())
}

/// What a remote has of these refs.
fn listed(
    repo: &Repo,
    remote: &str,
    names: &[&str],
) -> Result<std::collections::BTreeMap<String, ObjectId>, String> {
    let ended =
        git(repo, &[&["ls-remote", "-q", "--end-of-options", remote], names].concat()).map_err(said)?;
    let printed = String::from_utf8_lossy(&ended.stdout.bytes).into_owned();
    let read = |line: &str| {
        let (oid, name) = line.split_once('\t')?;
        // A name is matched at its end, too.
        names.contains(&name).then_some((name.to_owned(), ObjectId::parse(oid.as_bytes()).ok()?))
    };
    Ok(printed.lines().filter_map(read).collect())
}

/// Who may land a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Turn {
    pub run_id: String,
    /// Of the session that has it; no two have the same.
    pub tag: String,
}

/// How a push that was to land ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PushedLanding {
    /// The branch has the commit, by this push or one before.
    Landed,
    BranchMoved {
        now: Option<ObjectId>,
    },
    /// Another session has the turn.
    TurnLost,
}

impl Turn {
    /// A commit that says whose turn it is. Its name depends on nothing else.
    fn commit(&self, repo: &Repo) -> Result<ObjectId, String> {
        let tree = answered(&["mktree"], &repo.side().map_err(text)?.arg("mktree").done().map_err(text)?)
            .map_err(text)?;
        let git = repo.side().map_err(text)?.args(["commit-tree", tree.as_str()]);
        let git = git.input(format!("The turn of {}\n\nsession {}\n", self.run_id, self.tag));
        let git = git.env("GIT_AUTHOR_DATE", "@0 +0000").env("GIT_COMMITTER_DATE", "@0 +0000");
        answered(&["commit-tree"], &git.done().map_err(text)?).map_err(text)
    }

    fn names(&self) -> [String; 2] {
        TURNS.map(|place| format!("{place}{}", self.run_id))
    }

    /// Takes the turn for this session, from the one that had it. A run that has landed has no turn left: then it is the
    /// commit that landed.
    pub fn take(&self, repo: &Repo, target: &RemoteBranch) -> Result<Option<ObjectId>, String> {
        let mine = self.commit(repo)?;
        let names = self.names();
        let found = listed(repo, &target.remote, &[&names[0], &names[1]])?;
        if let Some(branch) = repo.resolve(&target.tracking()).map_err(text)? {
            for at in found.values() {
                if repo.has_commit(at).map_err(text)? && repo.is_ancestor(at, &branch).map_err(text)? {
                    return Ok(Some(at.clone()));
                }
            }
        }
        let mut why = String::new();
        for name in names.iter().filter(|name| found.is_empty() || found.contains_key(*name)) {
            let old = found.get(name);
            if old == Some(&mine) {
                return Ok(None);
            }
            let lease = format!("--force-with-lease={name}:{}", old.map_or("", ObjectId::as_str));
            match push(repo, &target.remote, &[&lease], &[&format!("{mine}:{name}")]) {
                Ok(()) => {
                    failpoint::pass("turn.taken");
                    return Ok(None);
                }
                Err(refused) => why = said(refused),
            }
        }
        Err(format!("{} did not accept the turn of the run: {why}", target.remote))
    }
}

/// Moves the branch and the turn, or neither.
pub fn push_landing(
    repo: &Repo,
    target: &RemoteBranch,
    step: &Move,
    turn: Option<&Turn>,
) -> Result<PushedLanding, String> {
    let there = target.there();
    let mut names = vec![there.clone()];
    names.extend(turn.iter().flat_map(|turn| turn.names()));
    let wanted: Vec<&str> = names.iter().map(String::as_str).collect();
    let before = listed(repo, &target.remote, &wanted)?;
    let mut leases = vec![format!("--force-with-lease={there}:{}", step.old)];
    let mut refspecs = vec![format!("{}:{there}", step.new)];
    if let Some(turn) = turn {
        let mine = turn.commit(repo)?;
        let Some((name, now)) = turn.names().into_iter().find_map(|name| before.get_key_value(&name)) else {
            return Ok(PushedLanding::TurnLost);
        };
        if *now == step.new {
            return landed_already(repo, target, step);
        }
        if *now != mine {
            // What was landed instead is found when the next commit is built.
            let branch = fetch(repo, target)?;
            let is_in = match &branch {
                Some(branch) => {
                    repo.has_commit(now).map_err(text)? && repo.is_ancestor(now, branch).map_err(text)?
                }
                None => false,
            };
            return Ok(if is_in {
                PushedLanding::BranchMoved { now: branch }
            } else {
                PushedLanding::TurnLost
            });
        }
        leases.push(format!("--force-with-lease={name}:{mine}"));
        refspecs.push(format!("{}:{name}", step.new));
    }
    match before.get(&there) {
        Some(now) if *now == step.old => {}
        _ => {
            if landed_already(repo, target, step)? == PushedLanding::Landed {
                return Ok(PushedLanding::Landed);
            }
            return Ok(PushedLanding::BranchMoved { now: before.get(&there).cloned() });
        }
    }
    failpoint::pass("land.begun");
    let leases: Vec<&str> = leases.iter().map(String::as_str).collect();
    let refspecs: Vec<&str> = refspecs.iter().map(String::as_str).collect();
    let pushed = push(repo, &target.remote, &leases, &refspecs);
    failpoint::pass("land.committed");
    match pushed {
        Ok(()) => landed_already(repo, target, step),
        // The answer may be lost although the branch moved; the remote itself knows.
        Err(refused) => {
            let now = fetch(repo, target)?;
            let is_in = |now: &ObjectId| repo.is_ancestor(&step.new, now).unwrap_or(false);
            match now {
                Some(now) if is_in(&now) => Ok(PushedLanding::Landed),
                Some(now) if now == step.old => match turn {
                    Some(turn) if !turn.is_held(repo, target)? => Ok(PushedLanding::TurnLost),
                    _ => Err(format!("{} refused the push: {}", target.remote, said(refused))),
                },
                now => Ok(PushedLanding::BranchMoved { now }),
            }
        }
    }
}

impl Turn {
    fn is_held(&self, repo: &Repo, target: &RemoteBranch) -> Result<bool, String> {
        let (mine, names) = (self.commit(repo)?, self.names());
        let found = listed(repo, &target.remote, &[&names[0], &names[1]])?;
        Ok(found.values().any(|now| *now == mine))
    }
}

fn landed_already(repo: &Repo, target: &RemoteBranch, step: &Move) -> Result<PushedLanding, String> {
    let now = fetch(repo, target)?;
    match now {
        Some(now) if repo.is_ancestor(&step.new, &now).map_err(text)? => Ok(PushedLanding::Landed),
        now => Ok(PushedLanding::BranchMoved { now }),
    }
}

/// One push, whole or not at all.
pub(crate) fn push(repo: &Repo, remote: &str, options: &[&str], refspecs: &[&str]) -> Result<(), GitRefusal> {
    let args =
        ["push", "--porcelain", "--atomic", "--no-verify", "--no-follow-tags", "--recurse-submodules=no"];
    let args = [&args[..], options, &["--end-of-options", remote], refspecs].concat();
    git(repo, &args).map(drop)
}

/// Why a command of git did not succeed.
#[derive(Debug)]
pub(crate) struct GitRefusal(String);

pub(crate) fn said(refusal: GitRefusal) -> String {
    refusal.0
}

fn git(repo: &Repo, args: &[&str]) -> Result<JobEnd, GitRefusal> {
    git_at(repo.work_tree().unwrap_or(repo.git_dir()), &repo.env, args)
}

fn git_at(place: &Path, env: &GitEnv, args: &[&str]) -> Result<JobEnd, GitRefusal> {
    let git = program_of(env, "git").ok_or_else(|| GitRefusal("git was not found".to_owned()))?;
    let tag = format!("remote.{}.{}", std::process::id(), args.first().unwrap_or(&""));
    let how = (Sink::Memory { keep: ANSWER }, LIMIT, tag);
    let job = job(&git, args.iter().map(OsString::from).collect(), quiet(env), place, how);
    let ended = proc::run(job, &Watch::new(), &mut |_, _| {});
    let why = match &ended.cause {
        Cause::Exited(0) => return Ok(ended),
        Cause::Exited(_) => refusal(&ended),
        Cause::TooLong | Cause::Silent => format!("no answer within {} s", LIMIT.as_secs()),
        Cause::OverLimit(what) => what.clone(),
        Cause::Stopped => "it was stopped".to_owned(),
        Cause::Signaled(signal) => format!("it was ended by signal {signal}"),
        Cause::NotStarted(why) => format!("it could not be started ({why})"),
    };
    Err(GitRefusal(why))
}

/// What git says, without its advice, and what became of the refs.
fn refusal(ended: &JobEnd) -> String {
    let (said, table) =
        (String::from_utf8_lossy(&ended.stderr.bytes), String::from_utf8_lossy(&ended.stdout.bytes));
    let said = said.lines().filter(|line| !line.starts_with("hint:"));
    let refused =
        table.lines().filter(|line| line.starts_with('!')).filter_map(|line| line.rsplit('\t').next());
    said.chain(refused).map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<&str>>().join("\n")
}

/// A program that the user could start: never one in the current folder.
pub(super) fn program(repo: &Repo, name: &str) -> Option<PathBuf> {
    program_of(&repo.env, name)
}

fn program_of(env: &GitEnv, name: &str) -> Option<PathBuf> {
    let path = env.get("PATH").cloned().or_else(|| std::env::var_os("PATH")).unwrap_or_default();
    let places = std::env::split_paths(&path).filter(|place| place.is_absolute());
    places.map(|place| place.join(name)).find(|program| program.is_file())
}

pub(super) fn quiet_env(repo: &Repo) -> Vec<(OsString, OsString)> {
    quiet(&repo.env)
}

fn quiet(env: &GitEnv) -> Vec<(OsString, OsString)> {
    let own = std::env::vars_os().filter(|(name, _)| env.get(&name.to_string_lossy()).is_none());
    let theirs = env.configuration().map(|(name, value)| (name.clone(), value.clone()));
    let mut env: Vec<(OsString, OsString)> = own.chain(theirs).collect();
    let quiet = QUIET.iter().map(|(name, value)| (OsString::from(name), OsString::from(value)));
    env.retain(|(name, _)| !QUIET.iter().any(|(quiet, _)| name == quiet));
    env.extend(quiet);
    env
}

pub(super) fn job(
    program: &Path,
    args: Vec<OsString>,
    env: Vec<(OsString, OsString)>,
    cwd: &Path,
    (stdout, total, tag): (Sink, Duration, String),
) -> Job {
    Job {
        program: program.to_owned().into(),
        args,
        env,
        cwd: cwd.to_owned(),
        stdin: Vec::new(),
        stdout,
        stderr: Sink::memory(),
        limits: JobLimits { total, ..JobLimits::default() },
        tag,
        sandbox: None,
    }
}

fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}
