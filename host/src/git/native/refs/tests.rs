//! Refs of our own that this process moves, against those that git moves.

#![expect(clippy::unwrap_used, reason = "a test")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{RefChange, RefLog, Refs};
use crate::git::ObjectId;
use crate::git::native::tests::Sample;
use crate::git::user_config::LoggedRefs;

const OWN: &str = "refs/heads/archeflow/run";
const KEPT: &str = "refs/archeflow/keep/run/1-maker.1";

#[test]
fn i15_refs_of_our_own_move_as_git_moves_them() {
    for format in ["sha1", "sha256"] {
        let (ours, gits) = (Sample::new(format), Sample::new(format));
        let log = RefLog { which: LoggedRefs::Branches, message: "archeflow: publish" };
        let commits = [&ours, &gits].map(|sample| {
            sample.write(b"a", "1");
            let first = sample.commit("one");
            sample.write(b"a", "2");
            (first, sample.commit("two"))
        });
        let (first, second) = &commits[0];
        let refs = Refs::of(&ours.git_dir).unwrap();
        let change = |name, new, old| RefChange { name, new, old };
        refs.change(&[change(OWN, first, None), change(KEPT, first, None)], &log).unwrap();
        assert_eq!([ours.oid(OWN), ours.oid(KEPT)], [first.clone(), first.clone()]);
        refs.change(&[change(OWN, second, Some(first))], &log).unwrap();
        assert_eq!(ours.oid(OWN), *second);

        let (first, second) = &commits[1];
        for (name, new, old) in [(OWN, first, ""), (KEPT, first, ""), (OWN, second, first.as_str())] {
            gits.git(&["update-ref", "-m", "archeflow: publish", name, new.as_str(), old]);
        }
        // The files that there are, and what the logs say but for names and times.
        let listed = |sample: &Sample| {
            let mut found = BTreeMap::new();
            for folder in
                ["refs/heads/archeflow", "refs/archeflow", "logs/refs/heads/archeflow", "logs/refs/archeflow"]
            {
                below(&sample.git_dir, Path::new(folder), &mut found);
            }
            let commits = if std::ptr::eq(sample, &raw const ours) { &commits[0] } else { &commits[1] };
            let words = |text: String| {
                let named = text.replace(commits.0.as_str(), "ONE").replace(commits.1.as_str(), "TWO");
                let lines = named.lines().map(|line| match (line.split_once('\t'), line.split_once(" ")) {
                    (Some((start, message)), _) => {
                        let pair: Vec<&str> = start.split(' ').take(2).collect();
                        format!("{} {message}", pair.join(" "))
                    }
                    (None, _) => line.to_owned(),
                });
                lines.collect::<Vec<_>>().join("\n")
            };
            found.into_iter().map(|(name, text)| (name, words(text))).collect::<BTreeMap<_, _>>()
        };
        assert_eq!(listed(&ours), listed(&gits));
        ours.git(&["reflog", "show", OWN]);
        ours.git(&["fsck", "--strict"]);
    }
}

fn below(git_dir: &Path, folder: &Path, found: &mut BTreeMap<PathBuf, String>) {
    for entry in fs::read_dir(git_dir.join(folder)).into_iter().flatten() {
        let name = folder.join(entry.unwrap().file_name());
        if git_dir.join(&name).is_dir() {
            below(git_dir, &name, found);
        } else {
            found.insert(name.clone(), fs::read_to_string(git_dir.join(&name)).unwrap());
        }
    }
}

#[test]
fn i15_a_ref_that_is_not_as_expected_is_left_alone() {
    let sample = Sample::new("sha1");
    sample.write(b"a", "1");
    let first = sample.commit("one");
    sample.write(b"a", "2");
    let second = sample.commit("two");
    let log = RefLog { which: LoggedRefs::Branches, message: "m" };
    let refs = Refs::of(&sample.git_dir).unwrap();
    let change = |name, new, old| refs.change(&[RefChange { name, new, old }], &log);
    change(OWN, &first, None).unwrap();
    // There already, at another commit, in the way of another one, below another one, not ours, locked by git.
    assert!(change(OWN, &second, None).is_err());
    assert!(change(OWN, &first, Some(&second)).is_err());
    assert!(change("refs/heads/archeflow", &first, None).is_err());
    assert!(change("refs/heads/archeflow/run/x", &first, None).is_err());
    assert!(change("refs/heads/main", &second, Some(&second)).is_err());
    fs::write(sample.git_dir.join(format!("{OWN}.lock")), "").unwrap();
    assert!(change(OWN, &second, Some(&first)).is_err());
    fs::remove_file(sample.git_dir.join(format!("{OWN}.lock"))).unwrap();
    // In the packed list it is found, and what comes back as a file wins.
    sample.git(&["pack-refs", "--all"]);
    assert!(change("refs/heads/archeflow/run/x", &first, None).is_err());
    change(OWN, &second, Some(&first)).unwrap();
    assert_eq!(sample.oid(OWN), second);
    // Of several, none moves if one can't.
    let both = [
        RefChange { name: KEPT, new: &second, old: None },
        RefChange { name: OWN, new: &first, old: Some(&first) },
    ];
    assert!(refs.change(&both, &log).is_err());
    assert_eq!(refs.find(KEPT), Ok(None));
    let left: Vec<_> = fs::read_dir(sample.git_dir.join("refs/heads/archeflow")).unwrap().collect();
    assert_eq!(left.len(), 1, "neither locks nor temporary files: {left:?}");
}

#[test]
fn i15_a_lock_of_a_killed_process_of_ours_is_no_obstacle() {
    let sample = Sample::new("sha1");
    sample.write(b"a", "1");
    let first = sample.commit("one");
    let folder = sample.git_dir.join("refs/heads/archeflow");
    fs::create_dir_all(&folder).unwrap();
    let mut dead = Command::new("true").spawn().unwrap();
    dead.wait().unwrap();
    let left = folder.join(format!(".archeflow-{}-7.tmp", dead.id()));
    fs::write(&left, "half").unwrap();
    fs::hard_link(&left, folder.join("run.lock")).unwrap();
    let log = RefLog { which: LoggedRefs::Known, message: "m" };
    let change = [RefChange { name: OWN, new: &first, old: None }];
    Refs::of(&sample.git_dir).unwrap().change(&change, &log).unwrap();
    assert_eq!(sample.oid(OWN), first);
    assert!(!left.exists());
    // One of a process that lives is respected.
    let living = folder.join(format!(".archeflow-{}-7.tmp", std::os::unix::process::parent_id()));
    fs::write(&living, "half").unwrap();
    fs::hard_link(&living, folder.join("run.lock")).unwrap();
    let again = [RefChange { name: OWN, new: &first, old: Some(&first) }];
    assert!(Refs::of(&sample.git_dir).unwrap().change(&again, &log).is_err());
}

#[test]
fn i15_a_keep_ref_is_made_once_and_git_reads_it() {
    let sample = Sample::new("sha1");
    let (one, other) = (sample.commit("one"), sample.commit("other"));
    let refs = Refs::of(&sample.git_dir).unwrap();
    let log = RefLog { which: LoggedRefs::Branches, message: "m" };
    let create = |name: &str, new: &ObjectId| refs.create(&[RefChange { name, new, old: None }], &log);
    let name = "refs/archeflow/keep/run/1/do";
    create(name, &one).unwrap();
    assert_eq!(sample.oid(name), one);
    assert!(create(name, &other).is_err(), "the name is taken");
    sample.git(&["pack-refs", "--all"]);
    assert!(create(name, &other).is_err(), "the name is taken in packed-refs");
    assert_eq!(sample.oid(name), one);
    for in_the_way in ["refs/archeflow/keep/run/1/do/more", "refs/archeflow/keep/run/1"] {
        assert!(create(in_the_way, &one).is_err(), "{in_the_way}");
    }
    for foreign in ["refs/heads/main2", "refs/tags/other", "refs/archeflow/keep/a..b"] {
        assert!(create(foreign, &one).is_err(), "{foreign}");
    }
    let locked = "refs/archeflow/keep/run/2/do";
    fs::create_dir_all(sample.git_dir.join("refs/archeflow/keep/run/2")).unwrap();
    fs::write(sample.git_dir.join(format!("{locked}.lock")), "").unwrap();
    assert!(create(locked, &one).is_err(), "git has it locked");
    let left: Vec<_> = fs::read_dir(sample.git_dir.join("refs/archeflow/keep/run/2")).unwrap().collect();
    assert_eq!(left.len(), 1, "{left:?}");
    assert_eq!(
        sample.git(&["for-each-ref", "--format=%(refname)", "refs/archeflow/"]),
        format!("{name}\n").as_bytes()
    );
}

/// CI found a lock for the end of the last phase, which nothing would ever have removed: the run had ended.
#[test]
fn i15_a_process_killed_while_it_makes_a_keep_ref_leaves_nothing_among_the_refs() {
    let sample = Sample::new("sha1");
    let one = sample.commit("one");
    let refs = Refs::of(&sample.git_dir).unwrap();
    let log = RefLog { which: LoggedRefs::Branches, message: "m" };
    let mut dead = Command::new("true").spawn().unwrap();
    dead.wait().unwrap();
    let left = sample.git_dir.join(format!(".archeflow-{}-7.tmp", dead.id()));
    let living = sample.git_dir.join(format!(".archeflow-{}-7.tmp", std::os::unix::process::parent_id()));
    fs::write(&left, "half").unwrap();
    fs::write(&living, "half").unwrap();
    // What versions before this one left behind is removed as well.
    let folder = sample.git_dir.join("refs/archeflow/keep/run/1");
    fs::create_dir_all(&folder).unwrap();
    let old = folder.join(format!(".archeflow-{}-7.tmp", dead.id()));
    fs::write(&old, "half").unwrap();
    fs::hard_link(&old, folder.join("act.lock")).unwrap();
    let names = ["refs/archeflow/keep/run/1/act", "refs/archeflow/keep/run/1/do"];
    refs.create(&names.map(|name| RefChange { name, new: &one, old: None }), &log).unwrap();
    assert!(!left.exists() && living.exists());
    let mut there: Vec<_> = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    there.sort();
    assert_eq!(there, ["act", "do"]);
    for name in names {
        assert_eq!(sample.oid(name), one);
    }
}
