//! What this process finds out and writes by itself, against git: over repositories with everything that is odd, and over
//! working copies that were changed at random.

#![expect(clippy::unwrap_used, reason = "a test")]

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use super::{
    CopyIndex, DifferenceKind, NewFiles, ObjectKind, Objects, Refs, is_ref_name, move_index, move_to, status,
    take_in,
};
use crate::git::change::{self, ChangedPath, PathStatus};
use crate::git::{GitEnv, Identity, ObjectId, Repo, files};

pub(super) struct Sample {
    folder: tempfile::TempDir,
    format: &'static str,
    pub(super) git_dir: PathBuf,
    /// The repository that objects are borrowed from.
    _lender: Option<tempfile::TempDir>,
}

impl Sample {
    pub(super) fn new(format: &'static str) -> Sample {
        let folder = tempfile::tempdir().unwrap();
        let git_dir = folder.path().join("repo/.git");
        let sample = Sample { folder, format, git_dir, _lender: None };
        fs::create_dir(sample.tree()).unwrap();
        sample.git(&["init", "-q", "-b", "main", "--object-format", format]);
        fs::write(sample.git_dir.join("info/attributes"), "* -text -filter -ident !eol\n").unwrap();
        sample
    }

    fn tree(&self) -> PathBuf {
        self.folder.path().join("repo")
    }

    pub(super) fn git(&self, args: &[&str]) -> Vec<u8> {
        self.git_with(&self.tree(), args, b"")
    }

    fn git_with(&self, tree: &Path, args: &[&str], input: &[u8]) -> Vec<u8> {
        self.git_on(tree, None, args, input)
    }

    /// On a tree of the user's, or on one beside this git directory, with an index of its own.
    fn git_on(&self, tree: &Path, index: Option<&Path>, args: &[&str], input: &[u8]) -> Vec<u8> {
        let mut command = Command::new("git");
        command.args(["-c", "core.quotePath=false", "-c", "gc.auto=0"]).args(args).current_dir(tree);
        command.env_clear().env("PATH", std::env::var_os("PATH").unwrap()).env("HOME", self.folder.path());
        command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1");
        for (role, name, email) in
            [("AUTHOR", "A", "a@example.invalid"), ("COMMITTER", "C", "c@example.invalid")]
        {
            command.env(format!("GIT_{role}_NAME"), name).env(format!("GIT_{role}_EMAIL"), email);
        }
        if let Some(index) = index {
            command.env("GIT_DIR", &self.git_dir).env("GIT_WORK_TREE", tree).env("GIT_INDEX_FILE", index);
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        std::io::Write::write_all(&mut child.stdin.take().unwrap(), input).unwrap();
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
        output.stdout
    }

    pub(super) fn commit(&self, message: &str) -> ObjectId {
        self.git(&["add", "-A"]);
        self.git(&["commit", "-q", "--allow-empty", "-m", message]);
        self.oid("HEAD")
    }

    pub(super) fn oid(&self, name: &str) -> ObjectId {
        ObjectId::parse(self.git(&["rev-parse", "--verify", name]).trim_ascii()).unwrap()
    }

    fn objects(&self) -> Objects {
        Objects::open(&self.git_dir.join("objects"), self.format).unwrap()
    }

    pub(super) fn write(&self, path: &[u8], bytes: impl AsRef<[u8]>) {
        let file = self.tree().join(files::path(path));
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, bytes).unwrap();
    }

    /// Three commits with everything odd: names, modes, links, submodules, line ends, a large file, nothing at all.
    fn odd(&self) -> Vec<ObjectId> {
        let mut commits = vec![self.commit("empty")];
        let names: [&[u8]; 14] = [
            b"plain.txt",
            b"with space",
            b"-dash",
            b"new\nline",
            b"tab\tquote\"back\\slash",
            b"not-\xff-utf8",
            b"caf\xc3\xa9",
            b"a",
            b"a.b",
            b"a-b",
            b"d/e/f/deep.txt",
            b"d/e.txt",
            b"d.txt",
            b"d-x/y",
        ];
        for name in names {
            self.write(name, [name, b"\nsecond line\n"].concat());
        }
        self.write(b"crlf.txt", "one\r\ntwo\r\n");
        self.write(b"no-newline", "one\ntwo");
        self.write(b"nothing", "");
        self.write(b"binary", [0_u8, 1, 2, 255].repeat(500));
        self.write(b"large", (0..60_000_u32).map(|n| format!("{n}\n")).collect::<String>());
        self.write(b"run.sh", "#!/bin/sh\n");
        fs::set_permissions(self.tree().join("run.sh"), fs::Permissions::from_mode(0o755)).unwrap();
        symlink("plain.txt", self.tree().join("link")).unwrap();
        symlink("/no/such\nplace", self.tree().join("d/dangling")).unwrap();
        let module = commits[0].to_string();
        self.git(&["update-index", "--add", "--cacheinfo", &format!("160000,{module},module")]);
        fs::create_dir(self.tree().join("module")).unwrap();
        self.git(&["add", "--", "."]);
        self.git(&["commit", "-q", "-m", "odd"]);
        commits.push(self.oid("HEAD"));
        // A file becomes a folder, a folder a file, a link a file, and a mode changes.
        fs::remove_file(self.tree().join("a")).unwrap();
        self.write(b"a/inner", "now a folder\n");
        fs::remove_dir_all(self.tree().join("d")).unwrap();
        self.write(b"d", "now a file\n");
        fs::remove_file(self.tree().join("link")).unwrap();
        self.write(b"link", "now a file\n");
        fs::set_permissions(self.tree().join("run.sh"), fs::Permissions::from_mode(0o644)).unwrap();
        self.write(
            b"large",
            (0..60_000_u32).filter(|n| n % 7 != 0).map(|n| format!("{n}\n")).collect::<String>(),
        );
        self.write(b"plain.txt", "other\n");
        self.git(&["add", "-A"]);
        self.git(&["commit", "-q", "-m", "turned over"]);
        commits.push(self.oid("HEAD"));
        commits
    }
}

/// Loose, packed with deltas, borrowed from another repository, and with names by SHA-256.
fn samples() -> Vec<(Sample, Vec<ObjectId>, &'static str)> {
    let mut all = Vec::new();
    for format in ["sha1", "sha256"] {
        let loose = Sample::new(format);
        let commits = loose.odd();
        all.push((loose, commits, "loose"));
        let packed = Sample::new(format);
        let commits = packed.odd();
        packed.git(&["repack", "-a", "-d", "-q", "-f"]);
        packed.git(&["pack-refs", "--all"]);
        all.push((packed, commits, "packed"));
        let lender = Sample::new(format);
        let commits = lender.odd();
        let borrower = Sample::new(format);
        let store = lender.git_dir.join("objects");
        fs::write(borrower.git_dir.join("objects/info/alternates"), format!("{}\n", store.display()))
            .unwrap();
        borrower.git(&["update-ref", "refs/heads/main", commits[2].as_str()]);
        all.push((Sample { _lender: Some(lender.folder), ..borrower }, commits, "borrowed"));
    }
    all
}

#[test]
fn i15_trees_blobs_and_history_are_what_git_says() {
    for (sample, commits, what) in samples() {
        let objects = sample.objects();
        for commit in &commits {
            let ours: Vec<u8> = objects
                .files(commit, b"")
                .unwrap()
                .iter()
                .flat_map(|one| {
                    let kind = if one.mode == "160000" { "commit" } else { "blob" };
                    [format!("{} {kind} {}\t", one.mode, one.oid).as_bytes(), &one.path, b"\0"].concat()
                })
                .collect();
            let theirs = sample.git(&["ls-tree", "-r", "-z", "--full-tree", commit.as_str()]);
            assert_eq!(String::from_utf8_lossy(&ours), String::from_utf8_lossy(&theirs), "{what}");
            for one in objects.files(commit, b"").unwrap().iter().filter(|one| one.mode != "160000") {
                let theirs = sample.git(&["cat-file", "blob", one.oid.as_str()]);
                assert_eq!(objects.read(&one.oid, ObjectKind::Blob).unwrap(), theirs, "{what}");
                let (oid, size) = objects.file(commit, &one.path).unwrap().unwrap();
                assert_eq!((oid, size), (one.oid.clone(), theirs.len() as u64), "{what}");
                assert_eq!(objects.name_of(ObjectKind::Blob, &theirs).unwrap(), one.oid, "{what}");
            }
            for prefix in ["d", "d/e", "a", "plain.txt", "absent", "d/absent"] {
                let ours = objects.files(commit, prefix.as_bytes()).unwrap();
                let args =
                    ["ls-tree", "-r", "-z", "--name-only", "--full-tree", commit.as_str(), "--", prefix];
                let theirs = sample.git(&args);
                let ours: Vec<u8> =
                    ours.iter().flat_map(|one| [one.path.as_slice(), b"\0"].concat()).collect();
                assert_eq!(ours, theirs, "{what}: {prefix}");
            }
            let tree = sample.oid(&format!("{commit}^{{tree}}"));
            assert_eq!(objects.tree_of(commit).unwrap(), tree, "{what}");
        }
        for (old, new) in commits.iter().flat_map(|old| commits.iter().map(move |new| (old, new))) {
            let theirs = sample.git(&[
                "diff-tree",
                "-r",
                "-z",
                "--raw",
                "--no-abbrev",
                "--no-renames",
                old.as_str(),
                new.as_str(),
            ]);
            let ours: Vec<u8> = objects.touched(old, new).unwrap().iter().flat_map(raw).collect();
            assert_eq!(String::from_utf8_lossy(&ours), String::from_utf8_lossy(&theirs), "{what}");
            let at = |oid| commits.iter().position(|one| one == oid).unwrap();
            assert_eq!(objects.is_ancestor(old, new), Ok(at(old) <= at(new)), "{what}");
            let base = &commits[at(old).min(at(new))];
            assert_eq!(objects.merge_base(old, new).as_ref(), Ok(base), "{what}");
        }
        assert_eq!(objects.distance(&commits[0], &commits[2]), Ok(2));
        let refs = Refs::of(&sample.git_dir).unwrap();
        assert_eq!(refs.find("refs/heads/main").unwrap().as_ref(), commits.last(), "{what}");
        assert_eq!(refs.find("refs/heads/other").unwrap(), None, "{what}");
        assert_eq!(refs.checked_out(&sample.git_dir).unwrap().as_deref(), Some("refs/heads/main"));
        assert_eq!(refs.any_below("refs/replace/"), Ok(false));
        sample.git(&["branch", "-q", "odd/name", commits[0].as_str()]);
        let ours =
            refs.all().unwrap().into_iter().map(|(name, oid)| format!("{name} {oid}\n")).collect::<String>();
        assert_eq!(
            ours.as_bytes(),
            sample.git(&["for-each-ref", "--format=%(refname) %(objectname)"]),
            "{what}"
        );
        sample.git(&["replace", commits[0].as_str(), commits[1].as_str()]);
        assert_eq!(refs.any_below("refs/replace/"), Ok(true));
        sample.git(&["pack-refs", "--all"]);
        assert_eq!(refs.any_below("refs/replace/"), Ok(true), "packed");
    }
}

fn raw(one: &ChangedPath) -> Vec<u8> {
    let letter = match one.status {
        PathStatus::Added => 'A',
        PathStatus::Modified => 'M',
        PathStatus::Deleted => 'D',
        PathStatus::TypeChanged => 'T',
    };
    let ChangedPath { old_mode, new_mode, old_oid, new_oid, .. } = one;
    let head = format!(":{old_mode} {new_mode} {old_oid} {new_oid} {letter}\0");
    [head.as_bytes(), &one.path, b"\0"].concat()
}

#[test]
fn i15_what_is_not_plain_is_asked_of_git() {
    let reftable = Sample::new("sha1");
    fs::create_dir(reftable.git_dir.join("reftable")).unwrap();
    assert!(Refs::of(&reftable.git_dir).is_err());
    let sample = Sample::new("sha1");
    let commits = sample.odd();
    let objects = sample.objects();
    // A merge is not one line.
    sample.git(&["checkout", "-q", "-b", "side", commits[1].as_str()]);
    sample.write(b"side", "side\n");
    let side = sample.commit("side");
    sample.git(&["checkout", "-q", "main"]);
    sample.git(&["merge", "-q", "--no-ff", "-m", "merge", "side"]);
    let merge = sample.oid("HEAD");
    assert!(objects.distance(&commits[0], &merge).is_err());
    assert_eq!(objects.is_ancestor(&side, &merge), Ok(true));
    assert_eq!(objects.is_ancestor(&side, &commits[2]), Ok(false));
    assert!(objects.merge_base(&side, &commits[2]).is_err(), "neither is on the way to the other");
    let refs = Refs::of(&sample.git_dir).unwrap();
    sample.git(&["symbolic-ref", "refs/heads/alias", "refs/heads/main"]);
    assert!(refs.find("refs/heads/alias").is_err());
    sample.git(&["checkout", "-q", "--detach"]);
    assert_eq!(refs.checked_out(&sample.git_dir).unwrap(), None);
    let absent = ObjectId::parse("1".repeat(40).as_bytes()).unwrap();
    assert!(objects.read(&absent, ObjectKind::Blob).is_err());
    assert_eq!(objects.has_commit(&absent), Ok(false));
    assert!(Objects::open(&sample.git_dir.join("objects"), "md5").is_err());
    for (name, right) in [
        ("refs/heads/a", true),
        ("refs/archeflow/keep/2026-11-17-x/1/do", true),
        ("refs/heads/a..b", false),
        ("refs/heads/a.lock", false),
        ("refs/heads/a b", false),
        ("refs/heads/", false),
        ("refs/heads/.a", false),
        ("refs/heads/a\\b", false),
    ] {
        let git = Command::new("git").args(["check-ref-format", name]).status().unwrap().success();
        assert_eq!((is_ref_name(name), git), (right, right), "{name}");
    }
}

/// Small numbers that look random and are the same each time.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }

    fn path(&mut self) -> Vec<u8> {
        let names: [&[u8]; 10] =
            [b"a", b"b", b"a.o", b"keep.o", b"build", b"x y", b"\xff", b"log", b"a-b", b"b.txt"];
        let depth = 1 + self.roll(3);
        let parts: Vec<&[u8]> =
            (0..depth).map(|_| names[usize::try_from(self.roll(names.len() as u64)).unwrap()]).collect();
        parts.join(&b"/"[..])
    }

    /// Changes something in a working copy.
    fn meddle(&mut self, tree: &Path) {
        let file = tree.join(files::path(&self.path()));
        match self.roll(9) {
            0..=2 => {
                let _ = fs::create_dir_all(file.parent().unwrap());
                let _ = fs::write(&file, format!("{}\n", self.roll(3)));
            }
            3 => {
                let _ = files::remove(&file);
            }
            4 => {
                let _ = fs::create_dir_all(file.parent().unwrap());
                let _ = symlink("b", &file);
            }
            5 if file.is_file() => {
                let mode = if self.roll(2) == 0 { 0o755 } else { 0o644 };
                fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
            }
            6 if file.is_file() => {
                // The same content, written again.
                let bytes = fs::read(&file).unwrap();
                fs::remove_file(&file).unwrap();
                fs::write(&file, bytes).unwrap();
            }
            7 => {
                let patterns = [
                    "*.o\n!keep.o\n",
                    "/build\n",
                    "log/\n",
                    "a/**\n",
                    "b*\n!b.txt\n",
                    "# nothing\n\\ \n",
                    "build/*\n",
                ];
                let text = patterns[usize::try_from(self.roll(patterns.len() as u64)).unwrap()];
                let folder =
                    if self.roll(2) == 0 { tree.to_owned() } else { file.parent().unwrap().to_owned() };
                if fs::create_dir_all(&folder).is_ok() {
                    let _ = fs::write(folder.join(".gitignore"), text);
                }
            }
            _ => {
                let _ = fs::create_dir_all(&file);
            }
        }
    }
}

/// A copy of our own: a git directory beside a tree, as workspaces have it.
struct Copied {
    index: PathBuf,
    tree: PathBuf,
}

impl Copied {
    fn new(sample: &Sample, name: &str) -> Copied {
        let tree = sample.folder.path().join(name);
        fs::create_dir(&tree).unwrap();
        Copied { index: sample.folder.path().join(format!("{name}.index")), tree }
    }

    fn git(&self, sample: &Sample, args: &[&str], input: &[u8]) -> Vec<u8> {
        sample.git_on(&self.tree, Some(&self.index), args, input)
    }

    fn status_by_git(&self, sample: &Sample, ignored: bool) -> Vec<(DifferenceKind, Vec<u8>)> {
        let ignored = if ignored { "--ignored=traditional" } else { "--ignored=no" };
        let args = [
            "status",
            "--porcelain=v1",
            "-z",
            "--untracked-files=all",
            "--no-renames",
            "--ignore-submodules=dirty",
            ignored,
        ];
        let listing = self.git(sample, &args, b"");
        let entries = listing.split(|byte| *byte == 0).filter(|entry| entry.len() > 3);
        let seen = entries.filter_map(|entry| {
            let seen = match entry[1] {
                b' ' => return None,
                b'?' => DifferenceKind::Untracked,
                b'!' => DifferenceKind::Ignored,
                b'D' => DifferenceKind::Missing,
                _ => DifferenceKind::Changed,
            };
            Some((seen, entry[3..].to_vec()))
        });
        seen.collect()
    }

    /// Every file with its kind, mode and content.
    fn shape(&self) -> BTreeMap<Vec<u8>, (u32, Vec<u8>)> {
        fn walk(top: &Path, folder: &Path, found: &mut BTreeMap<Vec<u8>, (u32, Vec<u8>)>) {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                let meta = fs::symlink_metadata(&path).unwrap();
                let name = crate::platform::files::bytes(path.strip_prefix(top).unwrap()).to_vec();
                if meta.is_dir() {
                    found.insert(name, (0, Vec::new()));
                    walk(top, &path, found);
                } else if meta.is_symlink() {
                    let to = fs::read_link(&path).unwrap();
                    found.insert(name, (1, crate::platform::files::bytes(&to).to_vec()));
                } else {
                    found.insert(name, (meta.permissions().mode(), fs::read(&path).unwrap()));
                }
            }
        }
        let mut found = BTreeMap::new();
        walk(&self.tree, &self.tree, &mut found);
        found
    }
}

#[test]
fn i15_a_checkout_is_byte_for_byte_that_of_git() {
    for format in ["sha1", "sha256"] {
        let sample = Sample::new(format);
        let commits = sample.odd();
        let objects = sample.objects();
        for (n, (from, to)) in [(1, 2), (2, 1), (1, 0), (0, 2), (2, 2)].into_iter().enumerate() {
            let (ours, theirs) =
                (Copied::new(&sample, &format!("ours-{n}")), Copied::new(&sample, &format!("theirs-{n}")));
            for (step, (from, to)) in
                [(None, &commits[from]), (Some(&commits[from]), &commits[to])].into_iter().enumerate()
            {
                move_to(&objects, (ours.index.clone(), format), &ours.tree, (from, to), NewFiles::Writable)
                    .unwrap();
                theirs.git(&sample, &["read-tree", "-m", "-u", to.as_str()], b"");
                assert_eq!(ours.shape(), theirs.shape(), "{n} {step}");
                let entries = |copy: &Copied| copy.git(&sample, &["ls-files", "--stage", "-z"], b"");
                assert_eq!(entries(&ours), entries(&theirs), "{n} {step}");
                // Git sees no difference in ours, nor do we in git's.
                assert_eq!(ours.git(&sample, &["diff-files", "--raw"], b""), b"", "{n} {step}");
                let mut index = CopyIndex::read(&theirs.index, format).unwrap();
                assert_eq!(status(&mut index, &objects, &theirs.tree, b"", true).unwrap(), [], "{n} {step}");
            }
        }
        let protected = Copied::new(&sample, "protected");
        move_to(
            &objects,
            (protected.index.clone(), format),
            &protected.tree,
            (None, &commits[1]),
            NewFiles::Protected,
        )
        .unwrap();
        let writable =
            protected.shape().into_values().filter(|(mode, _)| *mode > 1 && mode & 0o222 != 0).count();
        assert_eq!(writable, 0);
    }
}

#[test]
fn i15_names_that_git_refuses_are_not_written() {
    for name in [".git/config", ".GIT/config", "..", "git~1/config", ".git\u{200c}/x"] {
        let sample = Sample::new("sha1");
        let blob = sample.git_with(&sample.tree(), &["hash-object", "-w", "--stdin"], b"x");
        let blob = String::from_utf8(blob.trim_ascii().to_vec()).unwrap();
        let mut tree = blob;
        let mut kind = "100644 blob";
        for part in name.rsplit('/') {
            let line = format!("{kind} {tree}\t{part}\0");
            let made = sample.git_with(&sample.tree(), &["mktree", "-z"], line.as_bytes());
            (tree, kind) = (String::from_utf8(made.trim_ascii().to_vec()).unwrap(), "040000 tree");
        }
        let commit = sample.git_with(&sample.tree(), &["commit-tree", &tree], b"hostile");
        let commit = ObjectId::parse(commit.trim_ascii()).unwrap();
        let copy = Copied::new(&sample, "copy");
        let moved = move_to(
            &sample.objects(),
            (copy.index.clone(), "sha1"),
            &copy.tree,
            (None, &commit),
            NewFiles::Writable,
        );
        assert!(moved.is_err(), "{name}");
        assert!(copy.shape().is_empty(), "{name}");
    }
}

#[test]
fn i15_changed_copies_are_seen_and_taken_in_as_by_git() {
    const SEEDS: u64 = 60;
    let (mut plain, mut differences) = (0, 0);
    for seed in 0..SEEDS {
        let mut dice = Dice(seed);
        let sample = Sample::new(if seed % 4 == 0 { "sha256" } else { "sha1" });
        for _ in 0..30 {
            dice.meddle(&sample.tree());
        }
        sample.git(&["add", "-A", "-f"]);
        sample.git(&["commit", "-q", "--allow-empty", "-m", "start"]);
        let base = sample.oid("HEAD");
        let objects = sample.objects();
        let copy = Copied::new(&sample, "copy");
        move_to(&objects, (copy.index.clone(), sample.format), &copy.tree, (None, &base), NewFiles::Writable)
            .unwrap();
        for _ in 0..12 {
            dice.meddle(&copy.tree);
        }
        let excludes: &[u8] = if seed % 3 == 0 { b"*.o\n" } else { b"" };
        fs::write(sample.git_dir.join("info/exclude"), excludes).unwrap();
        for ignored in [false, true] {
            let mut index = CopyIndex::read(&copy.index, sample.format).unwrap();
            let Ok(ours) = status(&mut index, &objects, &copy.tree, excludes, ignored) else { continue };
            plain += 1;
            differences += ours.len();
            assert_eq!(ours, copy.status_by_git(&sample, ignored), "seed {seed}, ignored {ignored}");
        }
        let mut index = CopyIndex::read(&copy.index, sample.format).unwrap();
        let Ok(found) = status(&mut index, &objects, &copy.tree, excludes, false) else { continue };
        let of = |wanted: &[DifferenceKind]| -> Vec<&[u8]> {
            found.iter().filter(|(seen, _)| wanted.contains(seen)).map(|(_, path)| path.as_slice()).collect()
        };
        let (missing, present) =
            (of(&[DifferenceKind::Missing]), of(&[DifferenceKind::Changed, DifferenceKind::Untracked]));
        let theirs = {
            let other = sample.folder.path().join("other.index");
            fs::copy(&copy.index, &other).unwrap();
            let by_git = Copied { index: other, tree: copy.tree.clone() };
            let list = |paths: &[&[u8]]| -> Vec<u8> {
                paths.iter().flat_map(|path| [*path, b"\0"].concat()).collect()
            };
            by_git.git(&sample, &["update-index", "--force-remove", "-z", "--stdin"], &list(&missing));
            by_git.git(
                &sample,
                &["update-index", "--add", "--replace", "--remove", "-z", "--stdin"],
                &list(&present),
            );
            by_git.git(&sample, &["write-tree"], b"")
        };
        let place = (copy.index.clone(), sample.format);
        let ours = take_in(&objects, place, &copy.tree, &base, (&missing, &present)).unwrap();
        assert_eq!(ours.as_str().as_bytes(), theirs.trim_ascii(), "seed {seed}");
        let entries = copy.git(&sample, &["ls-files", "--stage", "-z"], b"");
        assert_eq!(
            copy.git(&sample, &["write-tree"], b"").trim_ascii(),
            ours.as_str().as_bytes(),
            "{entries:?}"
        );
        assert_eq!(copy.status_by_git(&sample, false), [], "seed {seed}");
        // The commit is one that git accepts, and moving the index back is what `read-tree -i -m` does.
        let commit = objects.commit_on(&ours, &[&base], "A message\n\nwith a body\n", &who(), false).unwrap();
        assert_eq!(
            sample.git(&["show", "-s", "--format=%T %P|%an|%ae|%cn|%B", commit.as_str()]),
            format!("{ours} {base}|Ada|ada@example.invalid|Bob|A message\n\nwith a body\n\n").as_bytes()
        );
        sample.git(&["fsck", "--strict", "--no-dangling", commit.as_str()]);
        move_index(&objects, (copy.index.clone(), sample.format), (&commit, &base)).unwrap();
        assert_eq!(
            copy.git(&sample, &["write-tree"], b"").trim_ascii(),
            objects.tree_of(&base).unwrap().as_str().as_bytes()
        );
    }
    // Almost everything here is plain: were it not, nothing would be tested.
    assert!(plain > SEEDS && differences > 500, "{plain} {differences}");
}

/// A file that changes in the moment in which the index is written keeps its times. Git knows it by the time of the index, or
/// by the size 0, and that must not be lost when the index is written again for another file.
#[test]
fn i15_a_change_in_the_moment_of_the_index_is_seen_by_every_look() {
    let sample = Sample::new("sha1");
    sample.write(b"changed", "old\n");
    sample.write(b"touched", "old\n");
    let base = sample.commit("start");
    let objects = sample.objects();
    for (name, content, later) in [("young", "new\n", Duration::ZERO), ("empty", "", Duration::from_secs(60))]
    {
        let copy = Copied::new(&sample, name);
        let (place, file) = ((copy.index.clone(), "sha1"), copy.tree.join("changed"));
        move_to(&objects, place, &copy.tree, (None, &base), NewFiles::Writable).unwrap();
        fs::write(&file, content).unwrap();
        let mut index = CopyIndex::read(&copy.index, "sha1").unwrap();
        for entry in index.file.entries_mut() {
            entry.stat = super::index::stat_of(&file).unwrap();
        }
        index.write().unwrap();
        let (changed, a_minute) = (fs::metadata(&file).unwrap().modified().unwrap(), Duration::from_secs(60));
        let seen = [(DifferenceKind::Changed, b"changed".to_vec())];
        for (look, later) in [later, a_minute, a_minute].into_iter().enumerate() {
            let written = fs::File::options().append(true).open(&copy.index).unwrap();
            written.set_modified(changed + later).unwrap();
            let mut index = CopyIndex::read(&copy.index, "sha1").unwrap();
            let ours = status(&mut index, &objects, &copy.tree, b"", false).unwrap();
            assert_eq!(ours, seen, "{name}, look {look}");
        }
        assert_eq!(copy.status_by_git(&sample, false), seen, "{name}");
    }
}

fn who() -> Identity {
    Identity {
        name: "Ada".to_owned(),
        email: "ada@example.invalid".to_owned(),
        committer_name: "Bob".to_owned(),
        committer_email: "bob@example.invalid".to_owned(),
        configured: true,
    }
}

#[test]
fn i15_names_that_git_would_tidy_up_are_left_to_it() {
    let sample = Sample::new("sha1");
    let base = sample.commit("start");
    let objects = sample.objects();
    let tree = objects.tree_of(&base).unwrap();
    for name in ["", " Ada", "Ada.", "A <b>", "A\nB", "\"Ada\""] {
        let by = Identity { name: name.to_owned(), ..who() };
        assert!(objects.commit_on(&tree, &[&base], "x", &by, false).is_err(), "{name:?}");
    }
    assert!(objects.commit_on(&tree, &[&base], "nul\0", &who(), false).is_err());
    assert!(objects.commit_on(&tree, &[&base], "x", &who(), true).is_ok());
}

#[test]
fn i15_files_left_out_are_neither_missing_nor_new() {
    let sample = Sample::new("sha1");
    sample.write(b"CLAUDE.md", "rules\n");
    sample.write(b"a", "a\n");
    let base = sample.commit("start");
    let objects = sample.objects();
    let copy = Copied::new(&sample, "copy");
    move_to(&objects, (copy.index.clone(), "sha1"), &copy.tree, (None, &base), NewFiles::Writable).unwrap();
    CopyIndex::read(&copy.index, "sha1").unwrap().mark(&[b"CLAUDE.md"], &[]).unwrap();
    fs::remove_file(copy.tree.join("CLAUDE.md")).unwrap();
    let look = |copy: &Copied| {
        let mut index = CopyIndex::read(&copy.index, "sha1").unwrap();
        status(&mut index, &objects, &copy.tree, b"", false).unwrap()
    };
    assert_eq!(look(&copy), []);
    assert_eq!(copy.status_by_git(&sample, false), []);
    assert_eq!(copy.git(&sample, &["ls-files", "-t"], b""), b"S CLAUDE.md\nH a\n");
    CopyIndex::read(&copy.index, "sha1").unwrap().mark(&[], &[b"CLAUDE.md"]).unwrap();
    assert_eq!(look(&copy), [(DifferenceKind::Missing, b"CLAUDE.md".to_vec())]);
}

#[test]
fn i15_counts_and_diffs_are_those_of_git() {
    let sample = Sample::new("sha1");
    let mut commits = sample.odd();
    sample.write(b"plain.txt", "other\nand more\n");
    sample.write(b"added", "no newline");
    fs::remove_file(sample.tree().join("binary")).unwrap();
    commits.push(sample.commit("small"));
    sample.git(&["mv", "with space", "renamed"]);
    commits.push(sample.commit("renamed"));
    let state = sample.folder.path().join("state");
    let pairs = commits.iter().flat_map(|old| commits.iter().map(move |new| (old, new)));
    for ((old, new), ready) in pairs.flat_map(|pair| [(pair, false), (pair, true)]) {
        // Opened anew: nothing is known yet.
        let repo = Repo::open(&sample.tree(), &state, &GitEnv::default()).unwrap();
        if ready {
            change::get_ready(&repo);
        }
        let theirs = change::counted_by_git(&repo, old, new).unwrap();
        assert_eq!(change::changed(&repo, old, new).unwrap(), theirs, "{old} {new}");
        let parted = change::parted(&repo, old, new).unwrap();
        let patch = ["diff-tree", "-r", "-p", "-M", "--full-index", parted.as_str(), new.as_str()];
        let theirs = sample.git(&patch);
        let ours = change::diff_text(&repo, old, new, usize::MAX).unwrap();
        assert_eq!((ours.bytes.as_slice(), ours.truncated_at), (theirs.as_slice(), None), "{old} {new}");
        let mut streamed = Vec::new();
        change::diff_stream(&repo, &parted, new, &mut |bytes| {
            streamed.extend_from_slice(bytes);
            Ok(())
        })
        .unwrap();
        assert_eq!(streamed, theirs, "{old} {new}");
        if theirs.len() > 10 {
            let cut = change::diff_text(&repo, old, new, 10).unwrap();
            assert_eq!((cut.bytes.as_slice(), cut.truncated_at), (&theirs[..10], Some(theirs.len() as u64)));
        }
    }
}
