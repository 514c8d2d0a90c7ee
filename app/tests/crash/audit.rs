//! The auditor. It looks at disk, git and processes, and says what is wrong; it knows nothing of the program's insides
//! but the format of its log.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use archeflow_core::event::{Decision, Entry, Event, Order, Report, Verb};
use archeflow_core::run::Run;
use archeflow_host::log;
use archeflow_host::store::{index, journal::Journal};
use serde_json::{Value, json};

use super::scene::git;

pub(crate) type Found = Result<(), String>;

/// Everything of the user's: files, index, refs, stash, configuration, the reflog of the target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Users {
    files: BTreeMap<PathBuf, (u32, Vec<u8>)>,
    index: BTreeMap<String, String>,
    refs: BTreeMap<String, String>,
    head: String,
    stash: String,
    settings: BTreeMap<String, Vec<u8>>,
    moves: usize,
    locks: Vec<PathBuf>,
}

pub(crate) const TARGET: &str = "refs/heads/main";

impl Users {
    pub(crate) fn look(repo: &Path) -> Users {
        let mut files = BTreeMap::new();
        walk(repo, repo, &mut files);
        files.retain(|path, _| !path.starts_with(".git") && !path.starts_with(".archeflow"));
        let pairs = |text: String| -> BTreeMap<String, String> {
            let lines = text.lines().filter_map(|line| line.split_once('\t'));
            lines.map(|(what, name)| (name.to_owned(), what.to_owned())).collect()
        };
        let mut refs = pairs(git(repo, &["for-each-ref", "--format=%(objectname)%09%(refname)"]));
        refs.retain(|name, _| {
            !name.starts_with("refs/archeflow/") && !name.starts_with("refs/heads/archeflow/")
        });
        let settings = ["config", "info/exclude", "info/attributes", "hooks/pre-commit"];
        let settings = settings
            .map(|name| (name.to_owned(), fs::read(repo.join(".git").join(name)).unwrap_or_default()));
        let mut locks = Vec::new();
        let mut all = BTreeMap::new();
        walk(&repo.join(".git"), repo, &mut all);
        locks.extend(all.into_keys().filter(|path| path.extension().is_some_and(|end| end == "lock")));
        Users {
            files,
            index: pairs(git(repo, &["ls-files", "-s"])),
            refs,
            head: fs::read_to_string(repo.join(".git/HEAD")).unwrap_or_default(),
            stash: git(repo, &["stash", "list"]),
            settings: settings.into_iter().collect(),
            moves: git(repo, &["reflog", "show", "--format=%H", TARGET]).lines().count(),
            locks,
        }
    }

    pub(crate) fn target(&self) -> &str {
        self.refs.get(TARGET).map_or("", String::as_str)
    }
}

fn walk(dir: &Path, root: &Path, found: &mut BTreeMap<PathBuf, (u32, Vec<u8>)>) {
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        let (path, Ok(meta)) = (entry.path(), entry.path().symlink_metadata()) else { continue };
        if meta.is_dir() {
            walk(&path, root, found);
            continue;
        }
        let bytes = match fs::read_link(&path) {
            Ok(to) => to.as_os_str().as_bytes().to_vec(),
            Err(_) => fs::read(&path).unwrap_or_default(),
        };
        let name = path.strip_prefix(root).unwrap_or(&path).to_owned();
        found.insert(name, (meta.permissions().mode(), bytes));
    }
}

/// I1: nothing of the user's changed but the target branch, by `moves` steps, and exactly the paths that differ.
pub(crate) fn users_work(repo: &Path, before: &Users, moves: usize) -> Found {
    let now = Users::look(repo);
    if now.moves != before.moves + moves {
        return Err(format!("the target moved {} times, not {moves}", now.moves - before.moves));
    }
    if !now.locks.is_empty() {
        return Err(format!("lock files are left: {:?}", now.locks));
    }
    let mut expected = before.clone();
    expected.moves = now.moves;
    if moves > 0 {
        let new = git(repo, &["rev-parse", TARGET]).trim().to_owned();
        let old = before.target().to_owned();
        expected.refs.insert(TARGET.to_owned(), new.clone());
        let listing = git(repo, &["diff-tree", "-r", "--no-renames", &old, &new]);
        for line in listing.lines() {
            let (what, name) = line.split_once('\t').ok_or("diff-tree")?;
            let fields: Vec<&str> = what.split(' ').collect();
            let (mode, oid) = (fields[1], fields[3]);
            if mode == "000000" {
                expected.files.remove(Path::new(name));
                expected.index.remove(name);
                continue;
            }
            let bytes = git(repo, &["cat-file", "blob", oid]).into_bytes();
            let mode_on_disk = now.files.get(Path::new(name)).map_or(0, |(mode, _)| *mode);
            expected.files.insert(name.into(), (mode_on_disk, bytes));
            expected.index.insert(name.to_owned(), format!("{mode} {oid} 0"));
        }
    }
    let different = |a: &BTreeMap<PathBuf, (u32, Vec<u8>)>, b: &BTreeMap<PathBuf, (u32, Vec<u8>)>| {
        a.iter().find(|(path, what)| b.get(*path) != Some(what)).map(|(path, _)| path.clone())
    };
    let found = different(&expected.files, &now.files).or_else(|| different(&now.files, &expected.files));
    if let Some(path) = found {
        return Err(format!("the user's file {} is not what it has to be", path.display()));
    }
    if expected.index != now.index {
        return Err("the user's index is not what it has to be".to_owned());
    }
    if expected != now {
        return Err(format!("the user's refs or settings are not what they have to be: {now:?}"));
    }
    Ok(())
}

/// I2: what a Maker wrote can be reached from a ref.
pub(crate) fn reachable(repo: &Path, tokens: impl IntoIterator<Item = impl AsRef<str>>) -> Found {
    let all = git(repo, &["log", "--all", "-p", "-m", "--text"]);
    for token in tokens {
        if !all.contains(token.as_ref()) {
            return Err(format!("a Maker wrote {:?} and no ref leads to it", token.as_ref()));
        }
    }
    Ok(())
}

/// I3: the log verifies, its numbers are dense, and every way to fold it gives the same state.
pub(crate) fn journal(path: &Path) -> Result<Vec<Entry>, String> {
    let text = Journal::read(path).map_err(|error| error.to_string())?;
    let entries = log::entries(&text).map_err(|error| error.to_string())?;
    if let Some((at, entry)) = entries.iter().enumerate().find(|(at, entry)| entry.seq != *at as u64 + 1) {
        return Err(format!("line {} has number {}", at + 1, entry.seq));
    }
    if log::fold(&text).map_err(|error| error.to_string())? != Run::replay(&entries) {
        return Err("folding twice gives two states".to_owned());
    }
    orders_answered_once(&entries)?;
    Ok(entries)
}

/// Every effect is between its order and exactly one report.
fn orders_answered_once(entries: &[Entry]) -> Found {
    let mut open: Vec<u64> = Vec::new();
    for entry in entries {
        if entry.event.verb() == Verb::Ordered {
            open.push(entry.seq);
        }
        if matches!(entry.event, Event::Report(Report::QuestionDeferred(_))) {
            continue;
        }
        if let Some(order) = entry.event.answers() {
            let at = open.iter().position(|seq| *seq == order);
            let Some(at) = at else { return Err(format!("line {} answers no open order", entry.seq)) };
            open.remove(at);
        }
    }
    Ok(())
}

/// I3: what was on disk at a crash is the beginning of what is there now.
pub(crate) fn prefix(before: &[u8], path: &Path) -> Found {
    let now = fs::read(path).map_err(|error| error.to_string())?;
    let kept = now.starts_with(before);
    kept.then_some(()).ok_or_else(|| "lines that were on disk are gone or changed".to_owned())
}

/// The decisions in a log: what was concluded, without what happened on the way. Reviewers come back in any order.
pub(crate) fn decisions(entries: &[Entry]) -> Vec<String> {
    let mut list: Vec<(bool, String)> = Vec::new();
    for entry in entries {
        let mut data = Vec::new();
        entry.event.write(&mut serde_json::Serializer::new(&mut data)).unwrap();
        let data: Value = serde_json::from_slice(&data).unwrap();
        let kept = |names: &[&str]| -> Value {
            names
                .iter()
                .map(|name| ((*name).to_owned(), data[*name].clone()))
                .collect::<serde_json::Map<_, _>>()
                .into()
        };
        let what = match entry.event.name() {
            // Who played the roles is told as well; that is another matter.
            "review.verdict" => kept(&["archetype", "verdict", "findings"]),
            "evidence.downgrade" | "finding.raised" | "fix.applied" | "agent.skipped"
            | "workflow.escalated" | "wiggum.break" | "cycle.boundary" | "question.answered" => data.clone(),
            "decision.point" => kept(&["archetype", "rule", "decision"]),
            "phase.transition" => kept(&["to", "cycle", "artifacts_so_far"]),
            "question.asked" => kept(&["kind", "question"]),
            "merge.built" => json!(data["built"]["candidate"]["tree"]),
            "tests.done" => kept(&["tree", "result"]),
            "merge.intent" => kept(&["ref", "tree", "strategy"]),
            "run.merged" => kept(&["base", "tree"]),
            "merge.refused" => kept(&["why"]),
            "revert.intent" => kept(&["ref"]),
            "run.reverted" => json!("reverted"),
            "revert.refused" => json!("not reverted"),
            "run.complete" => kept(&["status", "reason", "exit_code", "cycles", "fixes_total", "unresolved"]),
            _ => continue,
        };
        // Answers to questions and deferrals carry line numbers of their own.
        let mut what = what;
        if let Some(fields) = what.as_object_mut() {
            fields.remove("start_seq");
        }
        list.push((entry.event.name() == "review.verdict", format!("{} {what}", entry.event.name())));
    }
    list.chunk_by_mut(|a, b| a.0 && b.0).for_each(<[(bool, String)]>::sort);
    list.into_iter().map(|(_, line)| line).collect()
}

/// I6: a crash changes no decision.
pub(crate) fn same_decisions(golden: &[String], entries: &[Entry]) -> Found {
    let found = decisions(entries);
    if found == golden {
        return Ok(());
    }
    let at = golden.iter().zip(&found).take_while(|(a, b)| a == b).count();
    Err(format!(
        "decision {at} differs: expected {:?}, found {:?}",
        golden.get(at).map_or("the end", String::as_str),
        found.get(at).map_or("the end", String::as_str)
    ))
}

/// I5: nobody carries the tag of any session of this run.
pub(crate) fn no_process(entries: &[Entry]) -> Found {
    let tags: Vec<String> = entries.iter().filter_map(|entry| tag(&entry.event)).collect();
    match tagged().into_iter().find(|(_, tag)| tags.iter().any(|known| tag.starts_with(known.as_str()))) {
        Some((process, tag)) => Err(format!("process {process} with tag {tag} is alive")),
        None => Ok(()),
    }
}

#[expect(clippy::wildcard_enum_match_arm, reason = "only one kind of line has a tag")]
fn tag(event: &Event) -> Option<String> {
    match event {
        Event::Report(Report::SessionStart(session)) => Some(session.tag.clone()),
        _ => None,
    }
}

/// Living processes with a tag in their environment.
pub(crate) fn tagged() -> Vec<(i32, String)> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(process) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        let environment = fs::read(entry.path().join("environ")).unwrap_or_default();
        let dead = fs::read_to_string(entry.path().join("stat"))
            .ok()
            .and_then(|stat| stat.rsplit_once(") ").map(|(_, rest)| rest.starts_with(['Z', 'X'])));
        for variable in environment.split(|byte| *byte == 0) {
            if let Some(tag) = variable.strip_prefix(b"ARCHEFLOW_TAG=")
                && dead == Some(false)
            {
                found.push((process, String::from_utf8_lossy(tag).into_owned()));
            }
        }
    }
    found
}

/// The list of runs says how this one stands.
pub(crate) fn listed(events: &Path, run_id: &str, status: &str) -> Found {
    let index = index::read(events).map_err(|error| error.to_string())?;
    if index.skipped > 0 {
        return Err(format!("{} lines of the index can't be read", index.skipped));
    }
    match index.runs.iter().find(|entry| entry.run_id == run_id) {
        Some(entry) if entry.status == status => Ok(()),
        Some(entry) => Err(format!("the index says {}, not {status}", entry.status)),
        None => Err("the index does not know the run".to_owned()),
    }
}

/// The artifacts of a run, without what belongs to single attempts and without names and times of this one run.
pub(crate) fn artifacts(repo: &Path, run_id: &str) -> BTreeMap<PathBuf, String> {
    let folder = repo.join(".archeflow/artifacts").join(run_id);
    let mut found = BTreeMap::new();
    walk(&folder, &folder, &mut found);
    found.retain(|path, _| {
        let name = path.to_string_lossy();
        !["attempts/", "act-tests-", "act-old-"].iter().any(|start| name.starts_with(start))
    });
    let mut all: BTreeMap<PathBuf, String> = BTreeMap::new();
    for (path, (_, bytes)) in found {
        let text = String::from_utf8_lossy(&bytes).replace(run_id, "<run>");
        let lines = text.lines().map(|line| match line.split_once("\"ts\":\"") {
            Some((head, rest)) => format!("{head}{}", rest.split_once('"').map_or("", |(_, tail)| tail)),
            None => line.to_owned(),
        });
        let text = lines.collect::<Vec<_>>().join("\n");
        all.insert(path, text);
    }
    all
}

pub(crate) fn same_artifacts(golden: &BTreeMap<PathBuf, String>, found: &BTreeMap<PathBuf, String>) -> Found {
    for (path, text) in golden {
        match found.get(path) {
            None => return Err(format!("the artifact {} is missing", path.display())),
            Some(now) if now != text => {
                return Err(format!("the artifact {} differs: {now:?}", path.display()));
            }
            Some(_) => {}
        }
    }
    match found.keys().find(|path| !golden.contains_key(*path)) {
        Some(path) => Err(format!("there is an artifact {} too many", path.display())),
        None => Ok(()),
    }
}

/// I8, I1: what landed is the tree whose tests passed, on the commit they were built on.
pub(crate) fn tested_is_landed(repo: &Path, entries: &[Entry]) -> Found {
    let mut tested = Vec::new();
    for entry in entries {
        if let Event::Report(Report::TestsDone(done)) = &entry.event
            && done.result == archeflow_core::event::Tested::Passed
        {
            tested.push(done.tree.clone());
        }
        if let Event::Report(Report::RunMerged(merged)) = &entry.event {
            let tree = git(repo, &["rev-parse", &format!("{}^{{tree}}", merged.commit)]).trim().to_owned();
            let first = git(repo, &["rev-parse", &format!("{}^1", merged.commit)]).trim().to_owned();
            if !tested.contains(&tree) || tree != merged.tree || first != merged.old {
                return Err(format!("{} landed, which nobody tested there", merged.commit));
            }
        }
    }
    Ok(())
}

pub(crate) fn sent(entries: &[Entry]) -> usize {
    entries.iter().filter(|entry| matches!(entry.event, Event::Order(Order::AgentStart(_)))).count()
}

/// M-A2: what was done before a crash is not done again.
pub(crate) fn sent_as_often(entries: &[Entry], times: usize) -> Found {
    let found = sent(entries);
    if found == times { Ok(()) } else { Err(format!("agents were sent {found} times, not {times}")) }
}

/// How often the run ended.
pub(crate) fn ends(entries: &[Entry], times: usize) -> Found {
    let found = entries
        .iter()
        .filter(|entry| matches!(entry.event, Event::Decision(Decision::RunComplete(_))))
        .count();
    if found == times { Ok(()) } else { Err(format!("the run ended {found} times, not {times}")) }
}
