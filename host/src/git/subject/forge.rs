//! Pull requests, read with GitHub's own client. It runs as the user would run it, in the repository, with limits; what
//! it prints is data.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;

use super::store::SubjectStore;
use super::{Error, PullRequestFacts, ResolvedSubject, about, names, patch};
use crate::git::remote::{job, program, quiet_env};
use crate::git::{ObjectId, Repo};
use crate::proc::{self, Cause, JobEnd, Sink, Watch};

const TALK: Duration = Duration::from_secs(120);
const DIFF: Duration = Duration::from_secs(600);
const ANSWER: u64 = 4 * 1024 * 1024;
const LARGEST_DIFF: u64 = 200 * 1024 * 1024;

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
    let gh = RequestClient::find(store.repo, number)?;
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
    Ok(subject(number, (&view.title, &view.body), base, commit, &commits))
}

/// A request that was read by other means. Its commits are here, so that what is reviewed is what the forge has.
pub(super) fn read_request(
    store: &SubjectStore<'_>,
    number: u32,
    read: &PullRequestFacts,
) -> Result<ResolvedSubject, Error> {
    let wrong = |error: &dyn std::fmt::Display| Error::Forge { number, said: error.to_string() };
    let missing = |what: &str| Error::NotFetched {
        what: format!("{what} of pull request {number}"),
        fetch: read.fetch.clone(),
    };
    let head = ObjectId::parse(read.head.as_bytes()).map_err(|error| wrong(&error))?;
    let onto = ObjectId::parse(read.base.as_bytes()).map_err(|error| wrong(&error))?;
    if !store.repo.has_commit(&head)? {
        return Err(missing("the head"));
    }
    if !store.repo.has_commit(&onto)? {
        return Err(Error::NotFetched {
            what: format!("{}, which pull request {number} is for,", read.base_branch),
            fetch: format!("origin {}", shell_word(&read.base_branch)),
        });
    }
    let base = names::parted(store.repo, &onto, &head)?;
    let commits = about::commits(&store.borrowing, &base, &head)?;
    Ok(subject(number, (&read.title, &read.body), base, head, &commits))
}

fn subject(
    number: u32,
    (title, body): (&str, &str),
    base: ObjectId,
    commit: ObjectId,
    commits: &str,
) -> ResolvedSubject {
    let mut said = about::quoted_section("What the pull request says", &format!("{title}\n\n{body}"));
    if !commits.is_empty() {
        said.push_str(&format!("\n{commits}"));
    }
    ResolvedSubject {
        base,
        commit,
        title: format!("#{number} {title}"),
        key: format!("pr:{number}"),
        said,
        notes: Vec::new(),
        nothing: format!("pull request {number} changes no file"),
    }
}

struct RequestClient {
    program: PathBuf,
    place: PathBuf,
    env: Vec<(OsString, OsString)>,
    number: u32,
}

impl RequestClient {
    fn find(repo: &Repo, number: u32) -> Result<RequestClient, Error> {
        let program = program(repo, "gh").ok_or(Error::NoForge { number })?;
        let env = quiet_env(repo);
        let place = repo.work_tree().unwrap_or(repo.git_dir()).to_owned();
        Ok(RequestClient { program, place, env, number })
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
        let args = args.map(OsString::from).collect();
        let tag = format!("forge.{}.{verb}", std::process::id());
        let job = job(&self.program, args, self.env.clone(), &self.place, (stdout, total, tag));
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
            Cause::NotStarted(why) => Err(self.wrong(format!("it could not be started ({why})"))),
        }
    }

    fn wrong(&self, said: String) -> Error {
        Error::Forge { number: self.number, said }
    }
}

/// What a forge's own client prints in the user's repository; nothing if it is not installed or fails.
pub(crate) fn forge_client(repo: &Repo, name: &str, args: &[&str]) -> Option<String> {
    let program = program(repo, name)?;
    let place = repo.work_tree().unwrap_or(repo.git_dir());
    let tag = format!("forge.{}.{name}", std::process::id());
    let args = args.iter().map(OsString::from).collect();
    let how = (Sink::Memory { keep: ANSWER }, TALK, tag);
    let ended = proc::run(job(&program, args, quiet_env(repo), place, how), &Watch::new(), &mut |_, _| {});
    (ended.cause == Cause::Exited(0)).then(|| String::from_utf8_lossy(&ended.stdout.bytes).into_owned())
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
