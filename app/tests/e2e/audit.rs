//! The auditor: what must hold after every start of the program, whatever it was asked to do. It knows the promises
//! (FAULTS section 5) and nothing of the implementation.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::harness::{Outcome, Test};

/// Everything of the user's, by name: `file:`, `ref:`, `git:` (HEAD, index, config, hooks, logs), `home:`.
pub(crate) type Manifest = BTreeMap<String, Vec<u8>>;

/// The world before the program was started.
pub(crate) struct Before {
    pub(crate) manifest: Manifest,
    /// The journals as they were; they may only grow.
    pub(crate) journals: BTreeMap<String, Vec<u8>>,
}

impl Before {
    pub(crate) fn take(test: &Test) -> Before {
        let ids = test.run_ids();
        let journals = ids.into_iter().map(|id| (id.clone(), test.journal_bytes(&id))).collect();
        Before { manifest: manifest(test), journals }
    }
}

/// Every objection, empty when there is none.
pub(crate) fn after(test: &Test, before: &Before, outcome: &Outcome) -> Vec<String> {
    let mut faults = Vec::new();
    faults.extend(terminal(outcome));
    faults.extend(answer(outcome));
    for id in test.run_ids() {
        let old = before.journals.get(&id).cloned().unwrap_or_default();
        faults.extend(history(&id, &old, &test.journal_bytes(&id)));
        let journal = test.repo.join(format!(".archeflow/events/{id}.jsonl"));
        faults.extend(crate::replay::differs_unchanged(&journal));
    }
    if !outcome.journal.is_empty() {
        faults.extend(honest(outcome));
        faults.extend(orphans(&outcome.journal));
        faults.extend(reachable(test, &outcome.journal));
        faults.extend(landed(test, &outcome.journal));
    }
    faults.extend(untouched(test, &before.manifest, &manifest(test), outcome));
    faults
}

/// I1: nothing of the user's changes except by a merge that passed.
pub(crate) fn untouched(test: &Test, old: &Manifest, new: &Manifest, outcome: &Outcome) -> Vec<String> {
    let merged = fresh_merge(outcome);
    let touched = merged.as_ref().map(|merged| changed_paths(test, merged)).unwrap_or_default();
    let names: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
    let mut faults = Vec::new();
    for name in names.into_iter().filter(|name| old.get(*name) != new.get(*name)) {
        let own = name.starts_with("ref:refs/heads/archeflow/")
            || name.starts_with("ref:refs/archeflow/")
            || name.starts_with("git:logs/refs/heads/archeflow");
        // A program that is killed while it writes leaves the file beside the one it meant, and the next start removes it.
        let half_written = name.starts_with("git:.archeflow-")
            && name.ends_with(".tmp")
            && (outcome.killed || !new.contains_key(name));
        let by_others = test_allows(test, name);
        let by_merge = merged.as_ref().is_some_and(|merged| {
            let branch = &merged.target;
            *name == format!("ref:{branch}")
                || *name == format!("git:logs/{branch}")
                || name.starts_with("git:") && (name.ends_with("logs/HEAD") || name.ends_with("index"))
                || name.strip_prefix("file:").is_some_and(|path| touched.contains(path))
        });
        if !(own || half_written || by_others || by_merge) {
            faults.push(format!("I1: {name} changed"));
        }
    }
    if let Some(merged) = merged.filter(|_| !outcome.killed) {
        let tip = new.get(&format!("ref:{}", merged.target)).map(|oid| text(oid));
        if tip.as_deref() != Some(&merged.new) && !test_allows(test, &format!("ref:{}", merged.target)) {
            faults.push(format!("I1: {} is at {tip:?}, not at the merge", merged.target));
        }
    }
    faults
}

struct Merge {
    target: String,
    old: String,
    new: String,
}

/// The merge this start of the program made, if it made one. One that was killed may be on its way to it (I1).
fn fresh_merge(outcome: &Outcome) -> Option<Merge> {
    let intended = outcome.fresh("merge.intent").filter(|_| outcome.killed);
    let Some(merged) = outcome.fresh("run.merged").or(intended) else { return fresh_revert(outcome) };
    let word = |key: &str| merged[key].as_str().map(str::to_owned);
    let reverted = outcome.fresh("run.reverted").and_then(|reverted| reverted["commit"].as_str());
    let new = reverted.map(str::to_owned).or_else(|| word("commit")).or_else(|| word("new"))?;
    Some(Merge { target: word("base").or_else(|| word("ref"))?, old: word("old")?, new })
}

/// The same for a landing that a person takes back.
fn fresh_revert(outcome: &Outcome) -> Option<Merge> {
    let line = outcome.journal.iter().rfind(|line| line["type"] == "revert.intent")?;
    let done = outcome.fresh("run.reverted").is_some() || outcome.killed;
    let (intent, tested) = (&line["data"], &line["data"]["tested"]);
    let word = |value: &Value| value.as_str().map(str::to_owned);
    let (target, old, new) = (word(&intent["ref"])?, word(&tested["old"])?, word(&tested["new"])?);
    done.then_some(Merge { target, old, new })
}

fn changed_paths(test: &Test, merge: &Merge) -> BTreeSet<String> {
    let output = test.try_git(["diff-tree", "-r", "-z", "--name-only", &merge.old, &merge.new]);
    output
        .stdout
        .split(|byte| *byte == 0)
        .filter(|path| !path.is_empty())
        .map(|path| String::from_utf8_lossy(path).into_owned())
        .collect()
}

fn test_allows(test: &Test, name: &str) -> bool {
    test.allowed().iter().any(|key| name.starts_with(key.as_str()))
}

/// I3: dense, causal, well-formed, and only ever longer.
pub(crate) fn history(id: &str, old: &[u8], new: &[u8]) -> Vec<String> {
    let mut faults = Vec::new();
    if !new.starts_with(old) {
        faults.push(format!("I3: the journal of {id} is not what it was, with more lines"));
    }
    if !new.is_empty() && !new.ends_with(b"\n") {
        faults.push(format!("I3: the journal of {id} has a torn last line"));
    }
    let mut answered: BTreeMap<u64, u64> = BTreeMap::new();
    for (at, line) in new.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).enumerate() {
        let expected = at as u64 + 1;
        let Ok(line) = serde_json::from_slice::<Value>(line) else {
            faults.push(format!("I3: line {expected} of {id} is no JSON"));
            continue;
        };
        if line["seq"].as_u64() != Some(expected) {
            faults.push(format!("I3: line {expected} of {id} says it is {}", line["seq"]));
        }
        if line["run_id"] != id {
            faults.push(format!("I3: line {expected} of {id} belongs to {}", line["run_id"]));
        }
        for key in ["ts", "ms", "run_id", "seq", "parent", "type", "phase", "agent", "data"] {
            if line.get(key).is_none() {
                faults.push(format!("SCHEMAS 1: line {expected} of {id} has no {key}"));
            }
        }
        let parents = line["parent"].as_array().cloned().unwrap_or_default();
        if (line["type"] == "run.start") != parents.is_empty() {
            faults.push(format!("AF-161: line {expected} ({}) has the parents {parents:?}", line["type"]));
        }
        if parents.iter().any(|parent| parent.as_u64().is_none_or(|parent| parent == 0 || parent >= expected))
        {
            faults.push(format!("AF-161: line {expected} has a parent that is not before it: {parents:?}"));
        }
        if let Some(order) = line["data"]["start_seq"].as_u64()
            && line["type"] != "question.deferred"
            && let Some(before) = answered.insert(order, expected)
        {
            faults.push(format!("I3: order {order} is answered by line {before} and by line {expected}"));
        }
    }
    faults
}

/// I12: the exit code, the object and the last line say the same.
pub(crate) fn honest(outcome: &Outcome) -> Vec<String> {
    let mut faults = Vec::new();
    if !outcome.drives || outcome.killed {
        return faults;
    }
    let Some(last) = outcome.journal.last() else { return faults };
    let unreverted = last["data"]["revert_refused"].as_str();
    let refused = (matches!(outcome.code, 2 | 20 | 21 | 30 | 40) || unreverted.is_some())
        && outcome.json["status"] == "failed";
    match last["type"].as_str().unwrap_or_default() {
        "run.complete" => {
            let data = &last["data"];
            let agrees = data["exit_code"].as_i64() == Some(i64::from(outcome.code))
                && ["status", "reason"].iter().all(|key| data[*key] == outcome.json[*key]);
            if !agrees && !refused {
                faults.push(format!(
                    "I12: exit {} and {}, but the log ends with {data}",
                    outcome.code, outcome.json
                ));
            }
            if !refused {
                faults.extend(said(outcome, data));
            }
        }
        "session.end" => {
            let signal = last["data"]["signal"].as_i64().unwrap_or_default();
            if i64::from(outcome.code) != 128 + signal && !refused {
                faults.push(format!("I12: exit {} after signal {signal}", outcome.code));
            }
        }
        other if !refused => {
            faults.push(format!("I12: exit {}, but the log ends with {other}", outcome.code));
        }
        _ => {}
    }
    let done = matches!(outcome.json["status"].as_str(), Some("merged" | "dry_run"))
        || outcome.json["reason"] == "discarded";
    if (outcome.code == 0) != done {
        faults.push(format!("I12: exit {} with status {}", outcome.code, outcome.json["status"]));
    }
    faults
}

/// D9: what is printed of the findings of a run that has ended is what its log says.
fn said(outcome: &Outcome, end: &Value) -> Vec<String> {
    let mut faults = Vec::new();
    for key in ["unresolved", "fixes_total"] {
        if end[key] != outcome.json[key] {
            faults
                .push(format!("D9: {key} is {} in the log, but {} is printed", end[key], outcome.json[key]));
        }
    }
    let boundaries = outcome.journal.iter().filter(|line| line["type"] == "cycle.boundary");
    let landing = boundaries.filter(|line| line["data"]["next_action"] == "merge");
    let all = landing.filter(|line| line["data"]["passed_over"].as_array().is_none_or(Vec::is_empty)).count();
    if outcome.stderr.matches("All approved").count() > all {
        faults.push(format!("D9: 'All approved' of {all} cycles that all approved"));
    }
    faults
}

/// INTERFACES 1: with `--json` exactly one object, with every promised key; never anything else on standard output.
pub(crate) fn answer(outcome: &Outcome) -> Vec<String> {
    const KEYS: [&str; 11] = [
        "run_id",
        "status",
        "exit_code",
        "reason",
        "cycles",
        "branch",
        "merged_oid",
        "artifacts",
        "events",
        "cost_usd",
        "unresolved",
    ];
    if !outcome.drives || outcome.killed || outcome.stdout.is_empty() && outcome.code == 2 {
        return Vec::new();
    }
    let Some(object) = outcome.json.as_object() else {
        return vec!["INTERFACES 1: standard output is not one JSON object".to_owned()];
    };
    let mut faults: Vec<String> = KEYS
        .iter()
        .filter(|key| !object.contains_key(**key))
        .map(|key| format!("INTERFACES 1: the object has no {key}"))
        .collect();
    if object.get("exit_code").and_then(Value::as_i64) != Some(i64::from(outcome.code)) {
        faults.push(format!(
            "INTERFACES 1: exit {} but exit_code {:?}",
            outcome.code,
            object.get("exit_code")
        ));
    }
    faults
}

/// M-D2, M-S12: where there is no terminal, no control character is ever printed.
pub(crate) fn terminal(outcome: &Outcome) -> Vec<String> {
    let hostile = |c: &char| {
        let c = *c;
        (c.is_control() && !matches!(c, '\n' | '\t'))
            || matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
    };
    [("error", &outcome.stderr), ("output", &outcome.stdout)]
        .into_iter()
        .filter(|(_, text)| text.chars().any(|c| hostile(&c)))
        .map(|(stream, text)| {
            let found: Vec<char> = text.chars().filter(|c| hostile(c)).take(3).collect();
            format!("M-S12: {found:?} on standard {stream}")
        })
        .collect()
}

/// I5: nobody of this run is left.
pub(crate) fn orphans(journal: &[Value]) -> Vec<String> {
    let begun = std::time::Instant::now();
    loop {
        let alive = left_now(journal);
        if alive.is_empty() || begun.elapsed() > std::time::Duration::from_secs(60) {
            return alive;
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
}

/// The same at this moment, without waiting for anybody to end.
pub(crate) fn left_now(journal: &[Value]) -> Vec<String> {
    let tags: Vec<String> = journal
        .iter()
        .filter(|line| line["type"] == "session.start")
        .filter_map(|line| line["data"]["tag"].as_str())
        .map(|tag| format!("ARCHEFLOW_TAG={tag}."))
        .collect();
    tagged(&tags).into_iter().map(|who| format!("I5: {who} is still there")).collect()
}

fn tagged(tags: &[String]) -> Vec<String> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    entries
        .flatten()
        .filter(|entry| entry.file_name().to_string_lossy().chars().all(|c| c.is_ascii_digit()))
        .filter(|entry| {
            let environ = fs::read(entry.path().join("environ")).unwrap_or_default();
            environ
                .split(|byte| *byte == 0)
                .any(|variable| tags.iter().any(|tag| variable.starts_with(tag.as_bytes())))
        })
        .filter(|entry| {
            let stat = fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
            !stat.rsplit(')').next().unwrap_or_default().trim_start().starts_with(['Z', 'X'])
        })
        .map(|entry| {
            let line = fs::read(entry.path().join("cmdline")).unwrap_or_default();
            format!("{} ({})", entry.file_name().to_string_lossy(), text(&line).replace('\0', " "))
        })
        .collect()
}

/// I2: every commit the journal names can be reached from a ref.
pub(crate) fn reachable(test: &Test, journal: &[Value]) -> Vec<String> {
    let mut named = BTreeSet::new();
    journal.iter().for_each(|line| collect(&line["data"], &mut named));
    let commits: Vec<String> = named
        .into_iter()
        .filter(|oid| text(&test.try_git(["cat-file", "-t", oid]).stdout).trim() == "commit")
        .collect();
    let all = test.try_git(["rev-list", "--all"]);
    let known: BTreeSet<String> = text(&all.stdout).lines().map(str::to_owned).collect();
    commits
        .into_iter()
        .filter(|commit| !known.contains(commit))
        .map(|commit| format!("I2: the commit {commit} is in the journal and under no ref"))
        .collect()
}

fn collect(value: &Value, named: &mut BTreeSet<String>) {
    match value {
        Value::String(text) => {
            if text.len() == 40 && text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
                named.insert(text.clone());
            }
        }
        Value::Array(values) => values.iter().for_each(|value| collect(value, named)),
        Value::Object(fields) => fields.values().for_each(|value| collect(value, named)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// U-10: the base was red, somebody accepted that, and no other test fails.
fn failed_before(journal: &[Value], tested: &Value) -> bool {
    let of = |kind: &'static str| {
        journal.iter().filter(move |line| line["type"] == kind).map(|line| &line["data"])
    };
    let allowed = journal.first().is_some_and(|line| line["data"]["config"]["allow_red_base"] == true);
    let answered = || of("question.answered").any(|answer| answer["text"] == "yes");
    let before: Vec<&Value> =
        of("preflight.done").filter_map(|done| done["tests"]["failing"].as_array()).flatten().collect();
    let now = tested["failing"].as_array().map_or(&[][..], Vec::as_slice);
    (allowed || answered()) && !now.is_empty() && now.iter().all(|name| before.contains(&name))
}

/// Whether a copy of the run landed it on a remote, which the turn there says; the copy's journal has the tests.
fn landed_elsewhere(test: &Test, journal: &[Value], merged: &Value) -> bool {
    let started = journal.iter().find(|line| line["seq"] == merged["start_seq"]);
    let is_start = started.is_some_and(|line| line["type"] == "merge.start");
    let remote = word(merged, "base").starts_with("refs/remotes/");
    let turns = || text(&test.try_git(["ls-remote", "origin", "*archeflow/turn/*"]).stdout);
    is_start && remote && turns().contains(&word(merged, "commit"))
}

/// I8: what landed is what was tested, on what was there.
pub(crate) fn landed(test: &Test, journal: &[Value]) -> Vec<String> {
    let mut faults = Vec::new();
    let mut tested: Option<&Value> = None;
    let command = journal.first().map(|line| &line["data"]["config"]["test_command"]);
    let has_command =
        command.is_some_and(|command| command.as_str().is_some_and(|command| !command.is_empty()));
    for line in journal {
        let data = &line["data"];
        match line["type"].as_str().unwrap_or_default() {
            "tests.done" => tested = Some(data),
            "run.merged" => {
                let tree =
                    text(&test.try_git(["rev-parse", &format!("{}^{{tree}}", word(data, "commit"))]).stdout);
                if tree.trim() != word(data, "tree") {
                    faults.push(format!(
                        "I8: landed {} has the tree {tree}, not {}",
                        data["commit"], data["tree"]
                    ));
                }
                let fine = |tested: &Value| tested["result"] == "passed" || failed_before(journal, tested);
                let passed = tested.is_some_and(|tested| tested["tree"] == data["tree"] && fine(tested));
                if has_command && !passed && !landed_elsewhere(test, journal, data) {
                    faults.push(format!("I8: landed {} but tested {tested:?}", data["tree"]));
                }
                let kept =
                    test.try_git(["merge-base", "--is-ancestor", &word(data, "old"), &word(data, "commit")]);
                if !kept.status.success() {
                    faults.push(format!("I8: {} is no ancestor of what landed", data["old"]));
                }
            }
            "revert.intent" if data["tested"].is_object() => {
                let revert = &data["tested"];
                let passed = tested
                    .is_some_and(|tested| tested["tree"] == revert["tree"] && tested["result"] == "passed");
                if has_command && !passed {
                    faults.push(format!("I8: reverted to {} but tested {tested:?}", revert["tree"]));
                }
            }
            _ => {}
        }
    }
    faults
}

fn word(data: &Value, key: &str) -> String {
    data[key].as_str().unwrap_or_default().to_owned()
}

pub(crate) fn manifest(test: &Test) -> Manifest {
    let mut manifest = Manifest::new();
    for (at, tree) in test.trees().iter().enumerate() {
        let prefix = if at == 0 { "file:".to_owned() } else { format!("file{at}:") };
        files(
            tree,
            tree,
            &prefix,
            &|path| {
                path.starts_with(".git") && is_git(path)
                    || path == ".archeflow"
                    || path.starts_with(".archeflow/")
            },
            &mut manifest,
        );
    }
    let own = |path: &str| path.starts_with(".local/state/archeflow") || path.starts_with(".cache");
    files(&test.home(), &test.home(), "home:", &own, &mut manifest);
    let git = PathBuf::from(test.git(["rev-parse", "--path-format=absolute", "--git-common-dir"]));
    let other = |path: &str| {
        ["objects", "refs", "packed-refs", "modules", "lfs"].iter().any(|name| path.starts_with(name))
    };
    files(&git, &git, "git:", &other, &mut manifest);
    for line in test.git(["for-each-ref", "--format=%(refname) %(objectname)"]).lines() {
        if let Some((name, oid)) = line.split_once(' ') {
            manifest.insert(format!("ref:{name}"), oid.as_bytes().to_vec());
        }
    }
    manifest
}

/// `.git` itself and what is below it, not `.gitignore`.
fn is_git(path: &str) -> bool {
    path == ".git" || path.starts_with(".git/")
}

fn files(root: &Path, folder: &Path, prefix: &str, skip: &dyn Fn(&str) -> bool, manifest: &mut Manifest) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        let below = path.strip_prefix(root).unwrap_or(&path);
        let name = String::from_utf8_lossy(below.as_os_str().as_bytes()).into_owned();
        if skip(&name) {
            continue;
        }
        let Ok(meta) = path.symlink_metadata() else { continue };
        if meta.is_dir() {
            files(root, &path, prefix, skip, manifest);
            continue;
        }
        let content = if meta.is_symlink() {
            fs::read_link(&path).map(|to| to.as_os_str().as_bytes().to_vec()).unwrap_or_default()
        } else {
            fs::read(&path).unwrap_or_default()
        };
        let mut value = format!("{:o} ", meta.mode()).into_bytes();
        value.extend(content);
        manifest.insert(format!("{prefix}{name}"), value);
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
