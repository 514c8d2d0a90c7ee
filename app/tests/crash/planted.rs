//! Who checks the auditor: every check fails on a violation that was put there on purpose.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use archeflow_core::event::{Event, Report};

use super::audit::{self, TARGET, Users};
use super::proof::{self, golden};
use super::scene::{Scene, TOKENS};
use crate::user::wait_until;

/// A standard run that ended well, to be spoilt; a copy each time.
struct Spoilt {
    scene: Scene,
    before: Users,
}

fn spoilt() -> Spoilt {
    let scene = Scene::new();
    let before = Users::look(&scene.repo());
    assert_eq!(scene.run(None).code, Some(0));
    proof::check(&scene, &before, golden()).unwrap();
    Spoilt { scene, before }
}

/// One finished run for all who only look at copies of its parts.
fn finished() -> &'static Spoilt {
    static FINISHED: OnceLock<Spoilt> = OnceLock::new();
    FINISHED.get_or_init(spoilt)
}

fn told(found: audit::Found, what: &str) {
    let said = found.expect_err(what);
    assert!(said.contains(what), "{said}");
}

#[test]
fn a_touched_user_is_noticed() {
    let Spoilt { scene, before } = spoilt();
    let repo = scene.repo();
    let users = || audit::users_work(&repo, &before, 1);
    let spoil = |path: &str, text: &str, what: &str| {
        let path = repo.join(path);
        let was = fs::read(&path).ok();
        fs::write(&path, text).unwrap();
        told(users(), what);
        match was {
            Some(was) => fs::write(&path, was).unwrap(),
            None => fs::remove_file(&path).unwrap(),
        }
        users().unwrap();
    };
    spoil("keep.txt", "other", "keep.txt");
    spoil("mine/todo.txt", "other", "todo.txt");
    spoil("local.secret", "other", "local.secret");
    spoil("greet.sh", "other", "greet.sh");
    spoil("old.txt", "back again", "old.txt");
    spoil("litter.txt", "left behind", "litter.txt");
    spoil(".git/index.lock", "", "lock files");
    spoil(".git/hooks/pre-commit", "exit 1", "settings");
    // The index, another branch, and a target that moved once more.
    scene.git(&["update-index", "--cacheinfo", "100644,e69de29bb2d1d6434b8b29ae775ad8c2e48c5391,staged.txt"]);
    told(users(), "index");
    scene.git(&["update-index", "--add", "staged.txt"]);
    scene.git(&["branch", "stray"]);
    assert!(users().is_err());
    scene.git(&["branch", "-D", "stray"]);
    scene.git(&["update-ref", TARGET, "main^1"]);
    told(users(), "moved 2 times");
}

#[test]
fn lost_work_is_noticed() {
    let repo = finished().scene.repo();
    audit::reachable(&repo, TOKENS).unwrap();
    told(audit::reachable(&repo, ["a token nobody wrote"]), "no ref leads to it");
    // Work that only an unreachable commit holds counts as lost.
    let Spoilt { scene, .. } = spoilt();
    let blob = scene.base().join("blob");
    fs::write(&blob, "only-in-a-loose-object\n").unwrap();
    scene.git(&["hash-object", "-w", &blob.display().to_string()]);
    told(audit::reachable(&scene.repo(), ["only-in-a-loose-object"]), "no ref leads to it");
}

fn copy_of_journal(dir: &Path) -> (PathBuf, Vec<u8>) {
    let journal = finished().scene.journal();
    let bytes = fs::read(&journal).unwrap();
    let copy = dir.join(journal.file_name().unwrap());
    fs::write(&copy, &bytes).unwrap();
    (copy, bytes)
}

#[test]
fn a_damaged_log_is_noticed() {
    let dir = tempfile::tempdir().unwrap();
    let (copy, bytes) = copy_of_journal(dir.path());
    audit::journal(&copy).unwrap();
    audit::prefix(&bytes[..100], &copy).unwrap();
    let lines: Vec<&[u8]> = bytes.split_inclusive(|byte| *byte == b'\n').collect();
    for gone in [0, 4, lines.len() - 2] {
        let without: Vec<&[u8]> =
            lines.iter().enumerate().filter(|(at, _)| *at != gone).map(|(_, l)| *l).collect();
        fs::write(&copy, without.concat()).unwrap();
        assert!(audit::journal(&copy).is_err(), "line {gone} is gone");
    }
    let mut flipped = bytes.clone();
    flipped[bytes.len() / 2] ^= 1;
    fs::write(&copy, &flipped).unwrap();
    assert!(audit::journal(&copy).is_err());
    told(audit::prefix(&bytes, &copy), "gone or changed");
    fs::write(&copy, &bytes[..bytes.len() - 10]).unwrap();
    told(audit::prefix(&bytes, &copy), "gone or changed");
}

#[test]
fn another_decision_is_noticed() {
    let golden = golden();
    audit::same_decisions(&golden.decisions, &golden.entries).unwrap();
    for (at, _) in golden.decisions.iter().enumerate() {
        let mut other = golden.decisions.clone();
        other.remove(at);
        assert!(audit::same_decisions(&other, &golden.entries).is_err(), "decision {at}");
    }
    let repeated = [&golden.entries[..], &golden.entries[golden.entries.len() - 1..]].concat();
    assert!(audit::same_decisions(&golden.decisions, &repeated).is_err());
    told(audit::ends(&repeated, 1), "ended 2 times");
    told(audit::ends(&golden.entries[..5], 1), "ended 0 times");
    let sent = audit::sent(&golden.entries);
    audit::sent_as_often(&golden.entries, sent).unwrap();
    told(audit::sent_as_often(&golden.entries, sent + 1), "agents were sent");
}

#[test]
fn an_orphan_is_noticed() {
    let entries = audit::journal(&finished().scene.journal()).unwrap();
    audit::no_process(&entries).unwrap();
    let tag = entries.iter().find_map(|entry| {
        if let Event::Report(Report::SessionStart(session)) = &entry.event {
            Some(session.tag.clone())
        } else {
            None
        }
    });
    let mut orphan = std::process::Command::new("sleep")
        .arg("60")
        .env("ARCHEFLOW_TAG", format!("{}.12", tag.unwrap()))
        .spawn()
        .unwrap();
    // A process shows its environment only a moment after it was started.
    wait_until(|| audit::no_process(&entries).is_err(), || "the orphan was not noticed".to_owned());
    told(audit::no_process(&entries), "is alive");
    orphan.kill().unwrap();
    orphan.wait().unwrap();
}

#[test]
fn a_wrong_index_is_noticed() {
    let scene = &finished().scene;
    let id = scene.id();
    audit::listed(&scene.events(), &id, "merged").unwrap();
    told(audit::listed(&scene.events(), &id, "stopped"), "says merged");
    told(audit::listed(&scene.events(), "another", "merged"), "does not know");
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("index.jsonl"), "{\"run_id\":\n").unwrap();
    told(audit::listed(dir.path(), &id, "merged"), "can't be read");
}

#[test]
fn a_wrong_artifact_is_noticed() {
    let found = audit::artifacts(&finished().scene.repo(), &finished().scene.id());
    let golden = &golden().artifacts;
    audit::same_artifacts(golden, &found).unwrap();
    for path in found.keys() {
        let mut other = found.clone();
        other.remove(path);
        told(audit::same_artifacts(golden, &other), "is missing");
        other.insert(path.clone(), "something else".to_owned());
        told(audit::same_artifacts(golden, &other), "differs");
    }
    let mut more = found;
    more.insert("more.md".into(), String::new());
    told(audit::same_artifacts(golden, &more), "too many");
}

#[test]
fn an_untested_landing_is_noticed() {
    let Spoilt { scene, .. } = finished();
    let entries = audit::journal(&scene.journal()).unwrap();
    audit::tested_is_landed(&scene.repo(), &entries).unwrap();
    let untested: Vec<_> = entries
        .into_iter()
        .filter(|entry| !matches!(entry.event, Event::Report(Report::TestsDone(_))))
        .collect();
    told(audit::tested_is_landed(&scene.repo(), &untested), "nobody tested");
}
