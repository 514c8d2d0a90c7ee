//! Pull requests, read with GitHub's own client. It runs as the user would run it, in the repository, with limits; what
//! it prints is data.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;

use super::store::SubjectStore;
use super::{Error, ResolvedSubject, about, names, patch};
use crate::git::{ObjectId, Repo};
use crate::proc::{self, Cause, Job, JobEnd, JobLimits, Sink, Watch};

const TALK: Duration = Duration::from_secs(120);
const DIFF: Duration = Duration::from_secs(600);
const ANSWER: u64 = 4 * 1024 * 1024;
const LARGEST_DIFF: u64 = 200 * 1024 * 1024;

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

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct View {
    title: String,
    #[serde(default)]
    body: String,
    base_ref_oid: String,
    head_ref_oid: String,
    base_ref_name: String,
}

pub(super) fn pull_request(store: &SubjectStore<'_>, number: u32) -> Result<ResolvedSubject, Error> {
    let gh = Forge::find(store.repo, number)?;
    let view = gh.view()?;
    let named = |text: &str| ObjectId::parse(text.as_bytes()).map_err(|error| gh.wrong(error.to_string()));
    let (onto, head) = (named(&view.base_ref_oid)?, named(&view.head_ref_oid)?);
    if !store.repo.has_commit(&onto)? {
        let what = format!("{}, which pull request {number} is for,", view.base_ref_name);
        return Err(Error::NotFetched { what, fetch: format!("origin {}", shell_word(&view.base_ref_name)) });
    }
    let (base, commit, commits) = if store.repo.has_commit(&head)? {
        let base = names::parted(store.repo, &onto, &head)?;
        let commits = about::commits(&store.borrowing, &base, &head)?;
        (base, head, commits)
    } else {
        let diff = store.dir.join("diff");
        gh.diff(&diff)?;
        let remedy =
            format!("its commits are not here; get them with\n  git fetch origin pull/{number}/head");
        let name = format!("pull request {number}");
        let tree = patch::applied(store, &onto, &diff, &name, &view.base_ref_name, &remedy)?;
        (onto.clone(), store.commit(&tree, &onto)?, String::new())
    };
    let mut said =
        about::quoted_section("What the pull request says", &format!("{}\n\n{}", view.title, view.body));
    if !commits.is_empty() {
        said.push_str(&format!("\n{commits}"));
    }
    Ok(ResolvedSubject {
        base,
        commit,
        title: format!("#{number} {}", view.title),
        key: format!("pr:{number}"),
        said,
        notes: Vec::new(),
        nothing: format!("pull request {number} changes no file"),
    })
}

struct Forge {
    program: PathBuf,
    place: PathBuf,
    env: Vec<(OsString, OsString)>,
    number: u32,
}

impl Forge {
    fn find(repo: &Repo, number: u32) -> Result<Forge, Error> {
        let path = repo.env.get("PATH").cloned().or_else(|| std::env::var_os("PATH")).unwrap_or_default();
        let places = std::env::split_paths(&path).filter(|place| place.is_absolute());
        let mut programs = places.map(|place| place.join("gh"));
        let program = programs.find(|gh| gh.is_file()).ok_or(Error::NoForge { number })?;
        let own = std::env::vars_os().filter(|(name, _)| repo.env.get(&name.to_string_lossy()).is_none());
        let theirs = repo.env.configuration().map(|(name, value)| (name.clone(), value.clone()));
        let mut env: Vec<(OsString, OsString)> = own.chain(theirs).collect();
        let quiet = QUIET.iter().map(|(name, value)| (OsString::from(name), OsString::from(value)));
        env.retain(|(name, _)| !QUIET.iter().any(|(quiet, _)| name == quiet));
        env.extend(quiet);
        let place = repo.work_tree().unwrap_or(repo.git_dir()).to_owned();
        Ok(Forge { program, place, env, number })
    }

    fn view(&self) -> Result<View, Error> {
        const FIELDS: &str = "number,title,body,baseRefOid,headRefOid,baseRefName,headRefName";
        let ended = self.run(&["view", "--json", FIELDS], Sink::Memory { keep: ANSWER }, TALK)?;
        serde_json::from_slice(&ended.stdout.bytes)
            .map_err(|error| self.wrong(format!("its answer is odd ({error})")))
    }

    fn diff(&self, into: &Path) -> Result<(), Error> {
        let sink = Sink::File { path: into.to_owned(), keep: LARGEST_DIFF };
        let ended = self.run(&["diff"], sink, DIFF)?;
        match ended.stdout.error {
            Some(error) => Err(self.wrong(error)),
            None => Ok(()),
        }
    }

    fn run(&self, words: &[&str], stdout: Sink, total: Duration) -> Result<JobEnd, Error> {
        let number = self.number.to_string();
        let (verb, rest) = words.split_first().unwrap_or((&"view", &[]));
        let args = ["pr", verb, &number].into_iter().chain(rest.iter().copied());
        let job = Job {
            program: self.program.clone().into(),
            args: args.map(OsString::from).collect(),
            env: self.env.clone(),
            cwd: self.place.clone(),
            stdin: Vec::new(),
            stdout,
            stderr: Sink::memory(),
            limits: JobLimits { total, ..JobLimits::default() },
            tag: format!("forge.{}.{verb}", std::process::id()),
            sandbox: None,
        };
        let ended = proc::run(job, &Watch::new(), &mut |_, _| {});
        match &ended.cause {
            Cause::Exited(0) if ended.stdout.truncated => {
                Err(self.wrong(format!("its answer of {} bytes is too long", ended.stdout.bytes_total)))
            }
            Cause::Exited(0) => Ok(ended),
            Cause::Exited(_) => {
                Err(self.wrong(String::from_utf8_lossy(&ended.stderr.bytes).trim().to_owned()))
            }
            Cause::TooLong | Cause::Silent => {
                Err(self.wrong(format!("no answer within {} s", total.as_secs())))
            }
            Cause::OverLimit(what) => Err(self.wrong(what.clone())),
            Cause::Stopped => Err(self.wrong("it was stopped".to_owned())),
            Cause::Signaled(signal) => Err(self.wrong(format!("it was ended by signal {signal}"))),
            Cause::NotStarted(why) => Err(self.wrong(format!("it could not be started ({why:?})"))),
        }
    }

    fn wrong(&self, said: String) -> Error {
        Error::Forge { number: self.number, said }
    }
}

/// A name that a user may paste into a shell.
fn shell_word(name: &str) -> String {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "._/-".contains(letter);
    if !name.starts_with('-') && name.chars().all(plain) {
        name.to_owned()
    } else {
        "<its branch>".to_owned()
    }
}
