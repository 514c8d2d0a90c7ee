//! Every kind of subject of a review, against real repositories. Each row also proves that nothing of the user's was
//! touched: no byte, no mode and no date in the working tree or in `.git`.

#![expect(clippy::unwrap_used, reason = "a test that cannot set up its world should stop at once")]

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use archeflow_host::git::change::{self, PathStatus, quote_path};
use archeflow_host::git::subject::{Error, ReviewSubject, ReviewTarget, reopen, take};
use archeflow_host::git::workspace::{Pool, WorkspaceKind};
use archeflow_host::git::{GitEnv, ObjectId, Repo};
use archeflow_host::platform::children::{spawn, wait};
use tempfile::TempDir;

/// A user with a home, a repository and a state directory.
struct World {
    dir: TempDir,
    root: PathBuf,
}

impl World {
    /// A repository with one commit on `main`.
    fn new() -> World {
        let world = World::empty();
        world.write("a.txt", "a\n").write("dir/b.txt", "b\n").write("other.txt", "other\n");
        world.write(".gitignore", "*.log\nbuild/\n");
        world.commit("first");
        world
    }

    fn empty() -> World {
        let dir = TempDir::new().unwrap();
        let root = dir.path().join("repo");
        fs::create_dir_all(&root).unwrap();
        fs::create_dir_all(dir.path().join("home")).unwrap();
        fs::create_dir_all(dir.path().join("bin")).unwrap();
        let config = "[user]\n\tname = User\n\temail = user@example.org\n[gc]\n\tauto = 0\n\
                      [protocol \"file\"]\n\tallow = always\n";
        fs::write(dir.path().join("home/.gitconfig"), config).unwrap();
        let world = World { dir, root };
        world.git(&["init", "-q", "-b", "main"]);
        world
    }

    fn path(&self) -> OsString {
        let mut path = self.dir.path().join("bin").into_os_string();
        path.push(":");
        path.push(std::env::var_os("PATH").unwrap());
        path
    }

    fn env(&self) -> GitEnv {
        let home: OsString = self.dir.path().join("home").into();
        let variables = [("HOME", home), ("GIT_CONFIG_NOSYSTEM", "1".into()), ("PATH", self.path())];
        GitEnv::new(variables.map(|(name, value)| (name.into(), value)))
    }

    fn state(&self) -> PathBuf {
        self.dir.path().join("state")
    }

    fn open(&self) -> Repo {
        Repo::open(&self.root, &self.state(), &self.env()).unwrap()
    }

    fn git(&self, args: &[&str]) -> String {
        let output = self.try_git(args);
        assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).trim_end().to_owned()
    }

    fn try_git(&self, args: &[&str]) -> Output {
        let mut git = Command::new("git");
        git.args(args).current_dir(&self.root).env_clear();
        git.env("PATH", self.path())
            .env("HOME", self.dir.path().join("home"))
            .env("GIT_CONFIG_NOSYSTEM", "1");
        run(&mut git)
    }

    fn write(&self, path: impl AsRef<OsStr>, content: impl AsRef<[u8]>) -> &World {
        let file = self.root.join(Path::new(path.as_ref()));
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, content).unwrap();
        self
    }

    fn remove(&self, path: &str) -> &World {
        fs::remove_file(self.root.join(path)).unwrap();
        self
    }

    fn commit(&self, message: &str) -> ObjectId {
        self.git(&["add", "-A"]);
        self.git(&["commit", "-q", "-m", message]);
        self.oid("HEAD")
    }

    fn oid(&self, name: &str) -> ObjectId {
        ObjectId::parse(self.git(&["rev-parse", "--verify", name]).as_bytes()).unwrap()
    }

    /// A program that leaves a mark when it runs.
    fn trap(&self) -> String {
        let place = self.dir.path().join("bin/trap");
        let mark = self.mark();
        fs::write(&place, format!("#!/bin/sh\necho \"$0 $*\" >> '{}'\ncat\n", mark.display())).unwrap();
        fs::set_permissions(&place, fs::Permissions::from_mode(0o755)).unwrap();
        place.display().to_string()
    }

    fn mark(&self) -> PathBuf {
        self.dir.path().join("mark")
    }

    /// Everything of the user's that must stay as it is.
    fn fingerprint(&self) -> BTreeMap<PathBuf, (u32, i64, i64, Vec<u8>)> {
        let mut all = BTreeMap::new();
        fingerprint(&self.root, &mut all);
        all
    }

    /// Takes a subject and sees that nothing of the user's has moved.
    fn take(&self, ask: &ReviewTarget) -> Result<ReviewSubject, Error> {
        let store = self.state().join("reviews").join(format!("run.{}", next_number()));
        let repo = self.open();
        let before = self.fingerprint();
        let taken = take(&repo, &store, ask);
        let after = self.fingerprint();
        for (path, was) in &before {
            assert_eq!(Some(was), after.get(path), "{} was changed", path.display());
        }
        assert_eq!(before.len(), after.len(), "something was added");
        assert!(!self.mark().exists(), "ran: {}", fs::read_to_string(self.mark()).unwrap());
        assert_eq!(store.exists(), taken.is_ok(), "half a store");
        taken
    }
}

/// Started as one of the program's own children: what it does not know, the sweep after a job takes for a leftover.
fn run(command: &mut Command) -> Output {
    let mut child =
        spawn(command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped())).unwrap();
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    child.stdout.take().unwrap().read_to_end(&mut stdout).unwrap();
    child.stderr.take().unwrap().read_to_end(&mut stderr).unwrap();
    Output { status: wait(&mut child).unwrap(), stdout, stderr }
}

/// A number that no other store of this process has.
fn next_number() -> usize {
    use std::sync::atomic::{AtomicUsize, Ordering};
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

fn fingerprint(place: &Path, all: &mut BTreeMap<PathBuf, (u32, i64, i64, Vec<u8>)>) {
    let meta = fs::symlink_metadata(place).unwrap();
    let content = if meta.is_file() {
        fs::read(place).unwrap()
    } else if meta.is_symlink() {
        fs::read_link(place).unwrap().as_os_str().as_bytes().to_vec()
    } else {
        Vec::new()
    };
    // Where new content equals an object that is there already, git renews that object's date, which keeps it from being
    // cleaned away while somebody borrows it.
    let object = meta.is_file() && place.to_string_lossy().contains("/.git/objects/");
    let date = if object { (0, 0) } else { (meta.mtime(), meta.mtime_nsec()) };
    all.insert(place.to_owned(), (meta.mode(), date.0, date.1, content));
    if meta.is_dir() {
        for entry in fs::read_dir(place).unwrap() {
            fingerprint(&entry.unwrap().path(), all);
        }
    }
}

/// What differs from base to commit, one line each: letter, mode where it is not plain, path, new content.
fn shown(taken: &ReviewSubject) -> Vec<String> {
    let changed = change::changed(&taken.repo, &taken.base, &taken.commit).unwrap();
    let line = |one: change::ChangedPath| {
        let letter = match one.status {
            PathStatus::Added => "A",
            PathStatus::Modified => "M",
            PathStatus::Deleted => "D",
            PathStatus::TypeChanged => "T",
        };
        let mode = match one.new_mode.as_str() {
            "100644" | "000000" => String::new(),
            other => format!("{other} "),
        };
        let content = match one.new_mode.as_str() {
            "000000" | "160000" => String::new(),
            _ => {
                let bytes = taken.repo.read_blob(&taken.commit, &one.path, 1 << 20).unwrap().unwrap();
                format!(" = {}", String::from_utf8_lossy(&bytes).escape_debug())
            }
        };
        format!("{letter} {mode}{}{content}", quote_path(&one.path))
    };
    changed.into_iter().map(line).collect()
}

fn branch(name: &str, base: Option<&str>) -> ReviewTarget {
    ReviewTarget::Branch { branch: name.to_owned(), base: base.map(str::to_owned) }
}

fn commits(range: &str) -> ReviewTarget {
    ReviewTarget::Commits { range: range.to_owned() }
}

fn patch(text: impl Into<Vec<u8>>, base: Option<&str>) -> ReviewTarget {
    ReviewTarget::Patch { bytes: text.into(), name: "fix.patch".to_owned(), base: base.map(str::to_owned) }
}

type Row = (&'static str, fn(&World), ReviewTarget, &'static [&'static str]);

/// The one door: a state of a repository, a question, and what differs.
fn check(rows: Vec<Row>) {
    for (name, set_up, ask, expected) in rows {
        let world = World::new();
        set_up(&world);
        let taken = world.take(&ask).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(shown(&taken), expected, "{name}");
        assert!(!taken.title.is_empty() && !taken.title.contains('\n'), "{name}: {}", taken.title);
        let listed = taken.about.rsplit("## Changed files\n\n").next().unwrap();
        assert_eq!(listed.lines().filter(|line| line.starts_with("    ")).count(), expected.len(), "{name}");
        let again = world.take(&ask).unwrap();
        assert_eq!((again.base, again.commit), (taken.base, taken.commit), "{name}: not the same twice");
    }
}

/// The same for what can't be reviewed: the words that the error must have.
fn refused(rows: Vec<Row>) {
    for (name, set_up, ask, words) in rows {
        let world = World::new();
        set_up(&world);
        let Err(error) = world.take(&ask) else { panic!("{name}: was taken") };
        for word in words {
            assert!(error.to_string().contains(word), "{name}: {word:?} is not in {error}");
        }
    }
}

fn nothing(_: &World) {}

#[test]
fn issue_5_working_trees() {
    check(vec![
        (
            "staged, changed and new",
            |w| {
                w.write("a.txt", "staged\n").git(&["add", "a.txt"]);
                w.write("dir/b.txt", "changed\n").write("new/c.txt", "new\n").write("x.log", "ignored\n");
                w.write("build/out", "ignored\n");
            },
            ReviewTarget::WorkingTree,
            &["M a.txt = staged\\n", "M dir/b.txt = changed\\n", "A new/c.txt = new\\n"],
        ),
        (
            "staged and then changed again",
            |w| {
                w.write("a.txt", "staged\n").git(&["add", "a.txt"]);
                w.write("a.txt", "and more\n");
            },
            ReviewTarget::WorkingTree,
            &["M a.txt = and more\\n"],
        ),
        (
            "deleted, in the index and only in the tree",
            |w| {
                w.git(&["rm", "-q", "a.txt"]);
                w.remove("other.txt");
            },
            ReviewTarget::WorkingTree,
            &["D a.txt", "D other.txt"],
        ),
        (
            "the user's own lists of ignored files",
            |w| {
                fs::create_dir_all(w.dir.path().join("home/.config/git")).unwrap();
                fs::write(w.dir.path().join("home/.config/git/ignore"), "*.mine\n").unwrap();
                fs::write(w.root.join(".git/info/exclude"), "*.here\n").unwrap();
                w.write("x.mine", "").write("x.here", "").write("x.txt", "x\n");
            },
            ReviewTarget::WorkingTree,
            &["A x.txt = x\\n"],
        ),
        (
            "a promise to add, executable bits, links",
            |w| {
                w.write("later.txt", "later\n").git(&["add", "-N", "later.txt"]);
                fs::set_permissions(w.root.join("a.txt"), fs::Permissions::from_mode(0o755)).unwrap();
                w.remove("other.txt");
                symlink("/etc/passwd", w.root.join("other.txt")).unwrap();
                symlink("nowhere", w.root.join("link")).unwrap();
            },
            ReviewTarget::WorkingTree,
            &[
                "M 100755 a.txt = a\\n",
                "A later.txt = later\\n",
                "A 120000 link = nowhere",
                "T 120000 other.txt = /etc/passwd",
            ],
        ),
        (
            "file modes that the user's git does not look at",
            |w| {
                w.git(&["config", "core.fileMode", "false"]);
                fs::set_permissions(w.root.join("a.txt"), fs::Permissions::from_mode(0o755)).unwrap();
                w.write("other.txt", "x\n");
            },
            ReviewTarget::WorkingTree,
            &["M other.txt = x\\n"],
        ),
        (
            "a directory for a file, a file for a directory, a link for a directory",
            |w| {
                w.write("deep/in/x.txt", "x\n").write("deep/y.txt", "y\n").commit("more");
                w.remove("a.txt").write("a.txt/inside", "i\n");
                fs::remove_dir_all(w.root.join("dir")).unwrap();
                w.write("dir", "now a file\n");
                fs::rename(w.root.join("deep"), w.dir.path().join("elsewhere")).unwrap();
                symlink(w.dir.path().join("elsewhere"), w.root.join("linked")).unwrap();
                symlink("linked", w.root.join("deep")).unwrap();
                w.remove("linked");
            },
            ReviewTarget::WorkingTree,
            &[
                "D a.txt",
                "A a.txt/inside = i\\n",
                "A 120000 deep = linked",
                "D deep/in/x.txt",
                "D deep/y.txt",
                "A dir = now a file\\n",
                "D dir/b.txt",
            ],
        ),
        (
            "r_9 odd names",
            |w| {
                w.write("-rf", "dash\n").write("line\nbreak", "newline\n").write(" lead", "space\n");
                w.write(OsStr::from_bytes(b"\xff\xfe.txt"), "bytes\n").write(":(glob)*", "magic\n");
                w.write("`tick`", "tick\n");
            },
            ReviewTarget::WorkingTree,
            &[
                "A  lead = space\\n",
                "A -rf = dash\\n",
                "A :(glob)* = magic\\n",
                "A `tick` = tick\\n",
                "A \"line\\nbreak\" = newline\\n",
                "A \"\\377\\376.txt\" = bytes\\n",
            ],
        ),
        (
            "pipes are never opened",
            |w| {
                w.remove("a.txt").write("other.txt", "x\n");
                for name in ["a.txt", "new-pipe"] {
                    assert!(run(Command::new("mkfifo").arg(w.root.join(name))).status.success());
                }
            },
            ReviewTarget::WorkingTree,
            &["D a.txt", "M other.txt = x\\n"],
        ),
        (
            "the program's own directory, except what is tracked",
            |w| {
                w.write(".archeflow/config.yaml", "a: 1\n").commit("tracked");
                w.write(".archeflow/config.yaml", "a: 2\n").write(".archeflow/costs/x", "x\n");
                w.write("sub/.archeflow/y", "y\n");
            },
            ReviewTarget::WorkingTree,
            &["M .archeflow/config.yaml = a: 2\\n", "A sub/.archeflow/y = y\\n"],
        ),
        (
            "line ends as the user has them",
            |w| {
                w.write(".gitattributes", "*.win text eol=crlf\n").write("x.win", "one\r\ntwo\r\n");
                w.commit("windows");
                w.git(&["config", "core.autocrlf", "true"]);
                w.write("a.txt", "a\r\nb\r\n").write("x.win", "one\r\n2\r\n").write("other.txt", "other\r\n");
            },
            ReviewTarget::WorkingTree,
            &["M a.txt = a\\nb\\n", "M x.win = one\\n2\\n"],
        ),
        (
            "what is marked as unchanged, and what is not checked out",
            |w| {
                w.git(&["update-index", "--assume-unchanged", "a.txt"]);
                w.git(&["update-index", "--skip-worktree", "dir/b.txt"]);
                w.write("a.txt", "hidden\n").remove("dir/b.txt").write("other.txt", "x\n");
            },
            ReviewTarget::WorkingTree,
            &["M other.txt = x\\n"],
        ),
        (
            "a sparse checkout with a sparse index",
            |w| {
                w.write("far/away/x", "x\n").write("near/y", "y\n").commit("wide");
                w.git(&["sparse-checkout", "set", "--cone", "--sparse-index", "near"]);
                assert!(!w.root.join("far").exists());
                w.write("near/y", "changed\n");
            },
            ReviewTarget::WorkingTree,
            &["M near/y = changed\\n"],
        ),
        (
            "a split index",
            |w| {
                w.git(&["update-index", "--split-index"]);
                w.write("a.txt", "x\n").git(&["add", "a.txt"]);
                w.write("other.txt", "y\n");
            },
            ReviewTarget::WorkingTree,
            &["M a.txt = x\\n", "M other.txt = y\\n"],
        ),
        (
            "names of objects twice as long",
            |w| {
                fs::remove_dir_all(w.root.join(".git")).unwrap();
                w.git(&["init", "-q", "-b", "main", "--object-format=sha256"]);
                w.commit("first");
                w.write("a.txt", "x\n");
            },
            ReviewTarget::WorkingTree,
            &["M a.txt = x\\n"],
        ),
        (
            "a detached head",
            |w| {
                w.git(&["checkout", "-q", "--detach"]);
                w.write("a.txt", "x\n");
            },
            ReviewTarget::WorkingTree,
            &["M a.txt = x\\n"],
        ),
        (
            "a change of the same size in the same second as the index",
            |w| {
                for _ in 0..20 {
                    w.write("a.txt", "1\n").git(&["add", "a.txt"]);
                    w.write("a.txt", "2\n");
                }
            },
            ReviewTarget::WorkingTree,
            &["M a.txt = 2\\n"],
        ),
        (
            "the index alone",
            |w| {
                w.write("a.txt", "staged\n").git(&["add", "a.txt"]);
                w.write("a.txt", "not staged\n").write("new.txt", "new\n").write("later.txt", "later\n");
                w.git(&["add", "-N", "later.txt"]);
            },
            ReviewTarget::Staged,
            &["M a.txt = staged\\n"],
        ),
    ]);
}

#[test]
fn issue_5_what_cannot_be_read_is_named() {
    let world = World::new();
    world.write("secret.txt", "x\n");
    let secret = world.root.join("secret.txt");
    fs::set_permissions(&secret, fs::Permissions::from_mode(0o000)).unwrap();
    // Nothing is unreadable to the superuser.
    if fs::read(&secret).is_err() {
        let error =
            take(&world.open(), &world.state().join("reviews/run"), &ReviewTarget::WorkingTree).unwrap_err();
        assert!(error.to_string().contains("secret.txt"), "{error}");
    }
}

#[test]
fn issue_5_branches_and_commits() {
    fn forked(w: &World) {
        w.git(&["checkout", "-q", "-b", "feature"]);
        w.write("f.txt", "1\n").commit("Begin\n\nBecause.");
        w.write("f.txt", "2\n").commit("Go on");
        w.git(&["checkout", "-q", "main"]);
        w.write("a.txt", "main went on\n").commit("Main");
        w.git(&["tag", "-a", "-m", "tagged", "v1", "feature~1"]);
    }
    check(vec![
        ("a branch", forked, branch("feature", None), &["A f.txt = 2\\n"]),
        ("a branch by its full name", forked, branch("refs/heads/feature", None), &["A f.txt = 2\\n"]),
        ("a branch since another", forked, branch("feature", Some("feature~1")), &["M f.txt = 2\\n"]),
        ("a tag for a base", forked, branch("feature", Some("v1")), &["M f.txt = 2\\n"]),
        ("two dots", forked, commits("main..feature"), &["A f.txt = 2\\n"]),
        ("three dots", forked, commits("main...feature"), &["A f.txt = 2\\n"]),
        ("to where we are", forked, commits("HEAD~1.."), &["M a.txt = main went on\\n"]),
        ("one commit", forked, commits("feature"), &["M f.txt = 2\\n"]),
        (
            "the first commit of all",
            forked,
            commits("main~1"),
            &[
                "A .gitignore = *.log\\nbuild/\\n",
                "A a.txt = a\\n",
                "A dir/b.txt = b\\n",
                "A other.txt = other\\n",
            ],
        ),
        (
            "the main line, as the remote names it",
            |w| {
                w.git(&["branch", "-m", "main", "develop"]);
                w.git(&["update-ref", "refs/remotes/origin/develop", "HEAD"]);
                w.git(&["symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/develop"]);
                w.write("unpushed", "u\n").commit("Only here");
                w.git(&["checkout", "-q", "-b", "main"]);
                w.write("x", "x\n").commit("Not the main line");
            },
            branch("main", None),
            &["A x = x\\n"],
        ),
        (
            "what of the main line is not with the remote",
            |w| {
                w.git(&["update-ref", "refs/remotes/origin/main", "HEAD"]);
                w.git(&["symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/main"]);
                w.write("x", "x\n").commit("Not pushed");
            },
            branch("main", None),
            &["A x = x\\n"],
        ),
        (
            "a branch of a remote",
            |w| {
                forked(w);
                w.git(&["update-ref", "refs/remotes/origin/theirs", "feature"]);
            },
            branch("origin/theirs", None),
            &["A f.txt = 2\\n"],
        ),
        (
            "a name that is a tag and a branch",
            |w| {
                forked(w);
                w.git(&["tag", "feature", "main"]);
            },
            branch("feature", None),
            &["A f.txt = 2\\n"],
        ),
        (
            "a merge, against its first parent",
            |w| {
                forked(w);
                w.git(&["merge", "-q", "-m", "Merge", "feature"]);
            },
            commits("HEAD"),
            &["A f.txt = 2\\n"],
        ),
    ]);
}

const DIFF: &str = "diff --git a/a.txt b/a.txt\n--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-a\n+patched\n";

#[test]
fn issue_5_patches() {
    let mail = "From 1234567890123456789012345678901234567890 Mon Sep 17 00:00:00 2001\n\
                From: Somebody <some@example.org>\nDate: Thu, 1 Jan 2026 00:00:00 +0000\n\
                Subject: [PATCH 1/2] =?UTF-8?q?Say=20it=20b=C3=A9tter?=\n\nBecause it was bad.\n\
                ## Changed files\n---\n a.txt | 2 +-\n\n";
    let second = "From 1234567890123456789012345678901234567890 Mon Sep 17 00:00:00 2001\n\
                  From: Somebody <some@example.org>\nSubject: [PATCH 2/2] Once more\n\n---\n";
    let again = DIFF.replace("-a\n", "-patched\n").replace("+patched\n", "+again\n");
    let series = format!("{mail}{DIFF}-- \n2.47.0\n\n{second}{again}-- \n2.47.0\n\n");
    check(vec![
        ("a diff", nothing, patch(DIFF, None), &["M a.txt = patched\\n"]),
        ("words before it", nothing, patch(format!("See below.\n\n{DIFF}"), None), &["M a.txt = patched\\n"]),
        (
            "without prefixes",
            nothing,
            patch("--- dir/b.txt\n+++ dir/b.txt\n@@ -1 +1 @@\n-b\n+c\n", None),
            &["M dir/b.txt = c\\n"],
        ),
        ("mails", nothing, patch(series, None), &["M a.txt = again\\n"]),
        (
            "a mail whose lines end as on Windows",
            nothing,
            patch(format!("{mail}{DIFF}").replace('\n', "\r\n"), None),
            &["M a.txt = patched\\n"],
        ),
        (
            "a base that is not HEAD, whatever lies in the tree",
            |w| {
                w.write("a.txt", "other\n").commit("second");
                w.write("a.txt", "dirty\n");
            },
            patch(DIFF, Some("HEAD~1")),
            &["M a.txt = patched\\n"],
        ),
        (
            "new, deleted, renamed, executable",
            nothing,
            patch(
                "diff --git a/other.txt b/moved.txt\nsimilarity index 100%\nrename from other.txt\nrename to moved.txt\n\
                 diff --git a/a.txt b/a.txt\ndeleted file mode 100644\n--- a/a.txt\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n\
                 diff --git a/run b/run\nnew file mode 100755\n--- /dev/null\n+++ b/run\n@@ -0,0 +1 @@\n+x\n",
                None,
            ),
            &["D a.txt", "A moved.txt = other\\n", "D other.txt", "A 100755 run = x\\n"],
        ),
    ]);
}

#[test]
fn issue_5_what_patches_say() {
    let world = World::new();
    let mail = "From: Somebody <some@example.org>\nDate: Thu, 1 Jan 2026 00:00:00 +0000\n\
                Subject: [PATCH] =?UTF-8?q?Say=20it=20b=C3=A9tter?=\n\nBecause.\n\n## Changed files\n\n    A evil\n---\n";
    let taken = world.take(&patch(format!("{mail}{DIFF}"), None)).unwrap();
    assert_eq!(taken.title, "Say it bétter");
    assert_eq!(taken.key, "patch:fix.patch");
    let expected = "## What the patch says\n\n> Say it bétter\n>\n> Because.\n>\n> ## Changed files\n>\n>     A evil\n\n\
                    ## Changed files\n\n    M +1 -1 a.txt\n";
    assert_eq!(taken.about, expected);
}

fn outside(path: &str) -> ReviewTarget {
    patch(format!("--- /dev/null\n+++ b/{path}\n@@ -0,0 +1 @@\n+x\n"), None)
}

#[test]
fn issue_5_refused() {
    refused(vec![
        ("a clean tree", nothing, ReviewTarget::WorkingTree, &["nothing to review", "as it was committed"]),
        ("nothing staged", |w| _ = w.write("a.txt", "x"), ReviewTarget::Staged, &["nothing is staged"]),
        (
            "conflicts",
            |w| {
                w.git(&["checkout", "-q", "-b", "other"]);
                w.write("a.txt", "one\n").commit("one");
                w.git(&["checkout", "-q", "main"]);
                w.write("a.txt", "two\n").commit("two");
                assert!(!w.try_git(&["merge", "-q", "other"]).status.success());
            },
            ReviewTarget::WorkingTree,
            &["conflicts", "a.txt"],
        ),
        (
            "a mistyped branch",
            |w| drop(w.git(&["branch", "feature"])),
            branch("featrue", None),
            &["did you mean `feature`"],
        ),
        ("an option for a branch", nothing, branch("--all", None), &["--all", "main"]),
        ("an option for a base", nothing, branch("main", Some("--exec=x")), &["--exec=x"]),
        ("an option for a range", nothing, commits("--output=x..HEAD"), &["--output=x"]),
        ("an empty name", nothing, commits(""), &["no branch or commit"]),
        ("a byte no name has", nothing, branch("a\0b", None), &["a\\0b"]),
        ("a branch without a base", nothing, branch("main", None), &["--base"]),
        (
            "a branch that is merged",
            |w| drop(w.git(&["branch", "old"])),
            branch("old", None),
            &["nothing that main"],
        ),
        (
            "a patch for something else",
            |w| drop(w.write("a.txt", "x\n").commit("x")),
            patch(DIFF, None),
            &["a.txt:1", "--base", "HEAD"],
        ),
        ("no patch", nothing, patch("hello\n", None), &["fix.patch", "no diff"]),
        ("an empty patch", nothing, patch("", None), &["no diff"]),
        ("a path out of the tree", nothing, outside("../evil"), &["../evil"]),
        ("an absolute path", nothing, outside("/tmp/evil"), &["evil"]),
        ("a path into .git", nothing, outside(".git/config"), &[".git/config"]),
        ("a path into .GIT", nothing, outside("x/.GIT/hooks/y"), &[".GIT"]),
        (
            "a path through a link that the patch makes",
            nothing,
            patch(
                "diff --git a/l b/l\nnew file mode 120000\n--- /dev/null\n+++ b/l\n@@ -0,0 +1 @@\n+/tmp\n\\ No newline at end of file\n\
                 diff --git a/l/evil b/l/evil\nnew file mode 100644\n--- /dev/null\n+++ b/l/evil\n@@ -0,0 +1 @@\n+x\n",
                None,
            ),
            &["l/evil"],
        ),
    ]);
}

#[test]
fn issue_5_m_e32_a_hostile_repository_runs_nothing() {
    let asks = [
        ReviewTarget::WorkingTree,
        ReviewTarget::Staged,
        branch("work", None),
        commits("work"),
        patch(DIFF, Some("work~1")),
    ];
    for ask in asks {
        let world = World::new();
        let trap = world.trap();
        world.git(&["checkout", "-q", "-b", "work"]);
        world.write("big.bin", "1\n").write("seen.txt", "1\n").commit("work");
        let attributes = "* filter=x diff=x merge=x ident\n*.txt working-tree-encoding=UTF-16\n";
        world.write(".gitattributes", attributes).write("big.bin", "2\n").write("seen.txt", "2\n");
        fs::write(world.root.join(".git/info/attributes"), "[attr]binary filter=x\n* filter=x diff=x\n")
            .unwrap();
        fs::write(world.dir.path().join("attributes"), "* filter=x diff=x\n").unwrap();
        // Only what lies in the index as it is; adding would run the filter before we look.
        let hash = world.git(&["hash-object", "-w", "--no-filters", "seen.txt"]);
        world.git(&["update-index", "--add", "--cacheinfo", &format!("100644,{hash},seen.txt")]);
        let attributes = world.dir.path().join("attributes").display().to_string();
        for (name, value) in [
            ("filter.x.clean", trap.as_str()),
            ("filter.x.smudge", &trap),
            ("filter.x.process", &trap),
            ("filter.x.required", "true"),
            ("diff.x.command", &trap),
            ("diff.x.textconv", &trap),
            ("merge.x.driver", &trap),
            ("diff.external", &trap),
            ("core.fsmonitor", &trap),
            ("core.attributesFile", &attributes),
            ("core.pager", &trap),
            ("core.editor", &trap),
            ("core.sshCommand", &trap),
            ("credential.helper", &trap),
            ("gpg.program", &trap),
            ("commit.gpgSign", "true"),
            ("log.showSignature", "true"),
            ("alias.diff-files", &format!("!{trap}")),
            ("core.hooksPath", &world.dir.path().join("bin").display().to_string()),
        ] {
            world.git(&["config", name, value]);
        }
        for hook in ["post-index-change", "pre-commit", "reference-transaction", "fsmonitor-watchman"] {
            fs::copy(world.dir.path().join("bin/trap"), world.dir.path().join("bin").join(hook)).unwrap();
            fs::create_dir_all(world.root.join(".git/hooks")).unwrap();
            fs::copy(world.dir.path().join("bin/trap"), world.root.join(".git/hooks").join(hook)).unwrap();
        }
        let _ = fs::remove_file(world.mark());
        let taken = world.take(&ask).unwrap();
        assert!(!shown(&taken).is_empty(), "{ask:?}");
        assert!(!world.mark().exists(), "{ask:?}");
    }
}

#[test]
fn issue_5_untouched_filtered_files_are_no_change() {
    let world = World::new();
    world.git(&["config", "filter.x.clean", "tr a-z A-Z"]);
    world.git(&["config", "filter.x.smudge", "tr A-Z a-z"]);
    world.write(".gitattributes", "*.bin filter=x\n").write("one.bin", "one\n").write("two.bin", "two\n");
    world.commit("filtered");
    world.write("two.bin", "changed\n").write("a.txt", "x\n");
    let taken = world.take(&ReviewTarget::WorkingTree).unwrap();
    assert_eq!(shown(&taken), ["M a.txt = x\\n", "M two.bin = changed\\n"]);
    assert!(taken.about.contains("two.bin goes through a filter"), "{}", taken.about);
}

#[test]
fn issue_5_submodules_and_nested_repositories_are_not_entered() {
    let world = World::new();
    let inner = world.dir.path().join("inner");
    fs::create_dir_all(&inner).unwrap();
    let inner_text = inner.display().to_string();
    world.git(&["init", "-q", "-b", "main", &inner_text]);
    world.git(&["-C", &inner_text, "commit", "-q", "--allow-empty", "-m", "one"]);
    world.git(&["submodule", "--quiet", "add", &inner_text, "sub"]);
    world.git(&["commit", "-q", "-m", "with a submodule"]);
    // A submodule that moved on but was not staged is as the index has it; one that was staged is a change.
    world.git(&["-C", "sub", "commit", "-q", "--allow-empty", "-m", "two"]);
    world.write("a.txt", "x\n").write("sub/dirty", "x\n");
    world.git(&["init", "-q", "nested"]);
    world.write("nested/file", "x\n");
    world.git(&["init", "-q", "full"]);
    world.git(&["-C", "full", "commit", "-q", "--allow-empty", "-m", "one"]);
    world.write("full/file", "x\n");
    let taken = world.take(&ReviewTarget::WorkingTree).unwrap();
    assert_eq!(shown(&taken), ["M a.txt = x\\n"]);
    for name in ["nested", "full"] {
        assert!(taken.about.contains(&format!("{name} is a repository of its own")), "{}", taken.about);
    }
    world.git(&["add", "sub"]);
    assert_eq!(shown(&world.take(&ReviewTarget::WorkingTree).unwrap()), ["M a.txt = x\\n", "M 160000 sub"]);
    assert_eq!(shown(&world.take(&ReviewTarget::Staged).unwrap()), ["M 160000 sub"]);
    fs::remove_dir_all(world.root.join("sub")).unwrap();
    assert_eq!(shown(&world.take(&ReviewTarget::WorkingTree).unwrap()), ["M a.txt = x\\n", "M 160000 sub"]);
}

#[test]
fn issue_5_a_repository_without_a_commit() {
    let world = World::empty();
    world.write("a.txt", "a\n").write("b.txt", "b\n").git(&["add", "a.txt"]);
    let taken = world.take(&ReviewTarget::WorkingTree).unwrap();
    assert_eq!(shown(&taken), ["A a.txt = a\\n", "A b.txt = b\\n"]);
    assert_eq!((taken.title.as_str(), taken.key.as_str()), ("Working tree on main", "working-tree@main"));
    assert_eq!(shown(&world.take(&ReviewTarget::Staged).unwrap()), ["A a.txt = a\\n"]);
    let new = "--- /dev/null\n+++ b/x\n@@ -0,0 +1 @@\n+x\n";
    assert_eq!(shown(&world.take(&patch(new, None)).unwrap()), ["A x = x\\n"]);
    let Err(error) = world.take(&branch("main", None)) else { panic!("there is none") };
    assert!(error.to_string().contains("no branch yet"), "{error}");
}

#[test]
fn issue_5_bare_and_shallow_and_linked() {
    let world = World::new();
    world.write("a.txt", "second\n").commit("second");
    world.write("a.txt", "third\n").commit("third");
    let at = |name: &str| world.dir.path().join(name).display().to_string();
    let source = format!("file://{}", world.root.display());
    world.git(&["clone", "-q", "--bare", &source, &at("bare")]);
    world.git(&["clone", "-q", "--depth", "2", &source, &at("shallow")]);
    world.git(&["worktree", "add", "-q", "-b", "linked", &at("tree")]);
    let open = |name: &str| Repo::open(Path::new(&at(name)), &world.state(), &world.env()).unwrap();
    let take = |name: &str, ask: &ReviewTarget| {
        take(&open(name), &world.state().join(format!("{name}.{}", next_number())), ask)
    };
    assert_eq!(shown(&take("bare", &commits("HEAD")).unwrap()), ["M a.txt = third\\n"]);
    assert!(matches!(take("bare", &ReviewTarget::WorkingTree), Err(Error::NoWorkingTree)));
    assert_eq!(shown(&take("shallow", &commits("HEAD")).unwrap()), ["M a.txt = third\\n"]);
    let Err(error) = take("shallow", &commits("HEAD~1")) else { panic!("its parent is not here") };
    assert!(error.to_string().contains("--deepen"), "{error}");
    fs::write(Path::new(&at("tree")).join("a.txt"), "linked\n").unwrap();
    let taken = take("tree", &ReviewTarget::WorkingTree).unwrap();
    assert_eq!(
        (shown(&taken), taken.key.as_str()),
        (vec!["M a.txt = linked\\n".to_owned()], "working-tree@linked")
    );
}

#[test]
fn issue_5_a_split_index_with_marks() {
    let world = World::new();
    world.git(&["update-index", "--split-index"]);
    world.git(&["update-index", "--skip-worktree", "dir/b.txt"]);
    world.git(&["update-index", "--assume-unchanged", "other.txt"]);
    world.write("a.txt", "x\n").write("other.txt", "hidden\n").remove("dir/b.txt");
    let repo = world.open();
    let shared = fs::read_dir(repo.git_dir()).unwrap().flatten();
    let shared = shared.map(|e| e.path()).find(|p| p.display().to_string().contains("sharedindex.")).unwrap();
    let taken = world.take(&ReviewTarget::WorkingTree).unwrap();
    assert_eq!(shown(&taken), ["M a.txt = x\\n"]);
    // Without its other half the index is of no use, to git neither.
    fs::remove_file(shared).unwrap();
    assert!(world.take(&ReviewTarget::WorkingTree).is_err());
}

/// `git commit <file>` shows its hooks an index that is not the usual one.
#[test]
fn issue_5_a_hook_reviews_what_is_about_to_be_committed() {
    let world = World::new();
    world.write("a.txt", "about to be\n").git(&["add", "a.txt"]);
    fs::rename(world.root.join(".git/index"), world.root.join(".git/next-index-1.lock")).unwrap();
    world.git(&["reset", "-q"]);
    world.write("other.txt", "another time\n").git(&["add", "other.txt"]);
    for (named, expected) in [
        (".git/next-index-1.lock", "M a.txt = about to be\\n"),
        (".git/index", "M other.txt = another time\\n"),
        ("../state/index", "M other.txt = another time\\n"),
    ] {
        let home: OsString = world.dir.path().join("home").into();
        let env = GitEnv::new([("HOME".into(), home), ("GIT_INDEX_FILE".into(), named.into())]);
        let repo = Repo::open(&world.root, &world.state(), &env).unwrap();
        let store = world.state().join(format!("reviews/run-{}", next_number()));
        assert_eq!(shown(&take(&repo, &store, &ReviewTarget::Staged).unwrap()), [expected], "{named}");
    }
}

#[test]
fn issue_5_what_branches_say() {
    let world = World::new();
    world.git(&["checkout", "-q", "-b", "feature"]);
    for n in 0..105 {
        world.git(&["commit", "-q", "--allow-empty", "-m", &format!("Step {n}\n\n## Changed files\x1b[31m")]);
    }
    for n in 0..510 {
        world.write(format!("many/{n:03}"), "x\n");
    }
    world.write("image", b"\0\0").commit("The last");
    let taken = world.take(&branch("feature", None)).unwrap();
    assert_eq!(taken.title, "Branch feature, since it left main");
    assert_eq!(taken.key, "branch:feature");
    assert!(taken.about.starts_with("## Commits\n\n6 earlier ones are left out.\n\n> "), "{}", taken.about);
    assert!(taken.about.contains(" Step 104\n>\n> ## Changed files[31m\n\n> "), "{}", taken.about);
    assert!(
        taken.about.contains(" The last\n\n## Changed files\n\n    A binary image\n    A +1 -0 many/000\n")
    );
    assert!(taken.about.ends_with("    A +1 -0 many/498\n\nand 11 more\n"), "{}", taken.about);
}

#[test]
fn issue_5_stores_lend_to_working_copies() {
    let world = World::new();
    let repo = world.open();
    let reviews = world.state().join("reviews");
    let mut commits = Vec::new();
    for n in 0..4 {
        world.write("a.txt", format!("{n}\n"));
        let taken = take(&repo, &reviews.join(format!("run-{n}")), &ReviewTarget::WorkingTree).unwrap();
        let slot =
            Pool::new(&world.state(), &taken.repo).take(WorkspaceKind::Reader, "run", &taken.commit).unwrap();
        assert_eq!(fs::read_to_string(slot.tree().join("a.txt")).unwrap(), format!("{n}\n"));
        assert!(slot.verify_clean().unwrap().is_empty());
        let log = world.git(&["-C", &slot.tree().display().to_string(), "diff", "--stat", "HEAD~1"]);
        assert!(log.contains("a.txt"), "{log}");
        commits.push(taken.commit);
    }
    assert!(!repo.has_commit(&commits[0]).unwrap());
    assert!(reopen(&repo, &reviews.join("run-0")).unwrap().has_commit(&commits[0]).unwrap());
    // A copy that was lent what is gone now is made anew.
    fs::remove_dir_all(&reviews).unwrap();
    assert!(reopen(&repo, &reviews.join("run-3")).is_none());
    let head = world.oid("HEAD");
    let slot = Pool::new(&world.state(), &repo).take(WorkspaceKind::Reader, "run", &head).unwrap();
    assert_eq!(fs::read_to_string(slot.tree().join("a.txt")).unwrap(), "a\n");
}

#[test]
fn issue_5_twenty_thousand_files() {
    let world = World::new();
    for n in 0..20_000 {
        let path = world.root.join(format!("many/{}/{n}", n % 100));
        if n < 100 {
            fs::create_dir_all(path.parent().unwrap()).unwrap();
        }
        fs::write(path, format!("{n}\n")).unwrap();
    }
    let repo = world.open();
    let taken = take(&repo, &world.state().join("reviews/run"), &ReviewTarget::WorkingTree).unwrap();
    assert_eq!(change::changed(&taken.repo, &taken.base, &taken.commit).unwrap().len(), 20_000);
    // One pack and its index, and what little git writes one by one: trees and the commit.
    let mut files = BTreeMap::new();
    fingerprint(&world.state().join("reviews/run/objects"), &mut files);
    assert!(files.len() < 1000, "{} files", files.len());
    assert!(taken.about.ends_with("and 19500 more\n"));
}

/// A stand-in for GitHub's client: answers from files, and says what it was asked.
fn gh(world: &World, script: &str) {
    let place = world.dir.path().join("bin/gh");
    let asked = world.dir.path().join("asked");
    let text = format!("#!/bin/sh\necho \"$PWD $*\" >> '{}'\n{script}\n", asked.display());
    fs::write(&place, text).unwrap();
    fs::set_permissions(&place, fs::Permissions::from_mode(0o755)).unwrap();
}

/// What the stand-in says of a request from `head` to `base`; its diff is `DIFF`.
fn answers(base: &ObjectId, head: &str) -> String {
    format!(
        "case $2 in\nview) cat <<'END'\n{{\"number\":7,\"title\":\"Say it\\u001b better\",\"body\":\"Why:\\n## Changed files\",\
         \"baseRefOid\":\"{base}\",\"headRefOid\":\"{head}\",\"baseRefName\":\"main\",\"headRefName\":\"f\"}}\nEND\n;;\n\
         diff) cat <<'END'\n{DIFF}END\n;;\nesac"
    )
}

const PULL: ReviewTarget = ReviewTarget::PullRequest { number: 7, read: None };
const ELSEWHERE: &str = "1234567890123456789012345678901234567890";

#[test]
fn issue_5_pull_requests() {
    let world = World::new();
    let base = world.oid("HEAD");
    world.git(&["checkout", "-q", "-b", "f"]);
    let head = world.write("f.txt", "f\n").commit("Only here");
    world.git(&["checkout", "-q", "main"]);
    let later = world.write("a.txt", "main went on\n").commit("Main");

    gh(&world, &answers(&later, head.as_str()));
    let taken = world.take(&PULL).unwrap();
    assert_eq!((taken.base, taken.commit), (base.clone(), head));
    assert_eq!((taken.title.as_str(), taken.key.as_str()), ("#7 Say it better", "pr:7"));
    let told =
        "## What the pull request says\n\n> Say it better\n>\n> Why:\n> ## Changed files\n\n## Commits\n\n> ";
    assert!(taken.about.starts_with(told), "{}", taken.about);
    assert!(
        taken.about.ends_with(" Only here\n\n## Changed files\n\n    A +1 -0 f.txt\n"),
        "{}",
        taken.about
    );
    let asked = fs::read_to_string(world.dir.path().join("asked")).unwrap();
    let view = "pr view 7 --json number,title,body,baseRefOid,headRefOid,baseRefName,headRefName";
    assert_eq!(asked, format!("{} {view}\n", world.root.canonicalize().unwrap().display()));

    gh(&world, &answers(&base, ELSEWHERE));
    let taken = world.take(&PULL).unwrap();
    assert_eq!(shown(&taken), ["M a.txt = patched\\n"]);
    assert_eq!(taken.base, base);
    assert!(!taken.about.contains("## Commits"), "{}", taken.about);

    let elsewhere = ObjectId::parse(ELSEWHERE.as_bytes()).unwrap();
    for (name, script, words) in [
        ("a base that is not here", answers(&elsewhere, ELSEWHERE), &["git fetch origin main"][..]),
        (
            "a diff that does not apply",
            answers(&later, ELSEWHERE),
            &["a.txt:1", "git fetch origin pull/7/head"],
        ),
        ("not signed in", "echo 'gh auth login' >&2; exit 4".to_owned(), &["gh auth login"]),
        (
            "no such request",
            "echo 'no pull requests found' >&2; exit 1".to_owned(),
            &["no pull requests", "7"],
        ),
        ("nonsense", "echo '<html>'".to_owned(), &["odd"]),
        ("an endless answer", "head -c 5000000 /dev/zero".to_owned(), &["5000000 bytes", "too long"]),
        ("an option for an object", answers(&later, "--output=x"), &["--output=x"]),
    ] {
        gh(&world, &script);
        let Err(error) = world.take(&PULL) else { panic!("{name}: was taken") };
        for word in words {
            assert!(error.to_string().contains(word), "{name}: {word:?} is not in {error}");
        }
    }
}

#[test]
fn issue_5_without_a_client_for_the_forge_the_alternative_is_named() {
    let world = World::new();
    let nowhere: OsString = world.dir.path().join("bin").into();
    let home: OsString = world.dir.path().join("home").into();
    let env = GitEnv::new([("PATH".into(), nowhere), ("HOME".into(), home)]);
    let repo = Repo::open(&world.root, &world.state(), &env).unwrap();
    let Err(error) = take(&repo, &world.state().join("reviews/run"), &PULL) else { panic!("there is no gh") };
    assert!(matches!(error, Error::NoForge { number: 7 }), "{error}");
    assert!(error.to_string().contains("pull/7/head"), "{error}");
}

/// The patch is held once, by whoever asked; git has its own memory.
#[test]
fn issue_5_a_patch_of_a_hundred_megabytes() {
    let world = World::new();
    const LINES: usize = 1_000_000;
    let mut text = format!("--- /dev/null\n+++ b/big\n@@ -0,0 +1,{LINES} @@\n").into_bytes();
    text.reserve(LINES * 102);
    for _ in 0..LINES {
        text.push(b'+');
        text.extend([b'x'; 100]);
        text.push(b'\n');
    }
    let ask = patch(text, None);
    let before = peak();
    let taken = world.take(&ask).unwrap();
    // The kernel counts in batches, so that its figure can also be a little less.
    let more = peak().saturating_sub(before);
    assert!(more < 20 * 1024, "{more} KiB more than before");
    assert!(taken.about.contains("A +1000000 -0 big"), "{}", taken.about);
}

/// The most memory this process has held, in KiB; what other tests of it need meanwhile is little.
fn peak() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}
