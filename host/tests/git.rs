//! The git room against real repositories. Names carry the rule or fault they prove.

#![expect(clippy::unwrap_used, reason = "a test that cannot set up its world should stop at once")]

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant, SystemTime};

use archeflow_host::git::content::CommitFiles;
use archeflow_host::git::land::{
    BuildResult, BuildStrategy, Committer, LandAttempt, Move, Recovered, Work, build, land, recover, revert,
    verify,
};
use archeflow_host::git::repo::Error as RepoError;
use archeflow_host::git::runner::{GitCommand, check_version_text};
use archeflow_host::git::workspace::{CollectLimits, Error as WorkError, Pool, Slot, WorkspaceKind};
use archeflow_host::git::{GitEnv, Identity, ObjectId, Repo, change};
use tempfile::TempDir;

#[path = "git/client_files.rs"]
mod client_files;
#[path = "git/copies_ahead.rs"]
mod copies_ahead;
#[path = "git/hostile_copies.rs"]
mod hostile_copies;

/// A user with a home, a repository and a state directory.
struct World {
    dir: TempDir,
    root: PathBuf,
}

impl World {
    /// A repository with one commit on `main`.
    fn new() -> World {
        let world = World::empty("repo", &["init", "-q", "-b", "main"]);
        world.write("a.txt", "a\n").write("dir/b.txt", "b\n").write("other.txt", "other\n");
        world.write(".gitignore", "*.log\nbuild/\n");
        world.commit("first");
        world
    }

    fn empty(name: &str, init: &[&str]) -> World {
        let dir = TempDir::new().unwrap();
        let root = dir.path().join(name);
        fs::create_dir_all(&root).unwrap();
        fs::create_dir_all(dir.path().join("home")).unwrap();
        fs::write(
            dir.path().join("home/.gitconfig"),
            "[user]\n\tname = User\n\temail = user@example.org\n[gc]\n\tauto = 0\n",
        )
        .unwrap();
        let world = World { dir, root };
        world.git(init);
        world
    }

    fn env(&self) -> GitEnv {
        let home: OsString = self.dir.path().join("home").into();
        let variables = [("HOME", home), ("GIT_CONFIG_NOSYSTEM", "1".into())];
        GitEnv::new(variables.map(|(name, value)| (name.into(), value)))
    }

    fn state(&self) -> PathBuf {
        self.dir.path().join("state")
    }

    fn open(&self) -> Repo {
        Repo::open(&self.root, &self.state(), &self.env()).unwrap()
    }

    fn pool(&self) -> Pool {
        Pool::new(&self.state(), &self.open())
    }

    fn git(&self, args: &[&str]) -> String {
        self.git_in(&self.root, args)
    }

    fn git_in(&self, dir: &Path, args: &[&str]) -> String {
        let output = self.try_git(dir, args);
        assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).trim_end().to_owned()
    }

    fn try_git(&self, dir: &Path, args: &[&str]) -> std::process::Output {
        Command::new("git")
            .args(args)
            .current_dir(dir)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("HOME", self.dir.path().join("home"))
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .output()
            .unwrap()
    }

    fn write(&self, path: impl AsRef<OsStr>, content: impl AsRef<[u8]>) -> &World {
        put(&self.root, path, content);
        self
    }

    fn read(&self, path: &str) -> String {
        fs::read_to_string(self.root.join(path)).unwrap()
    }

    fn commit(&self, message: &str) -> ObjectId {
        self.git(&["add", "-A"]);
        self.git(&["commit", "-q", "-m", message]);
        self.oid("HEAD")
    }

    fn oid(&self, name: &str) -> ObjectId {
        ObjectId::parse(self.git(&["rev-parse", "--verify", name]).as_bytes()).unwrap()
    }

    /// A change made in a maker's slot and published as the run's branch.
    fn made(&self, change: impl FnOnce(&Path)) -> (ObjectId, ObjectId) {
        let base = self.oid("main");
        let mut slot = self.pool().take(WorkspaceKind::Maker, "run", &base).unwrap();
        change(&slot.tree());
        let made = collect(&mut slot, &base);
        slot.publish(&[(made.commit.clone(), "refs/heads/archeflow/run".to_owned())]).unwrap();
        (base, made.commit)
    }

    /// Everything of the user's that must not change by accident.
    fn manifest(&self) -> BTreeMap<PathBuf, (u32, Vec<u8>)> {
        let mut all = BTreeMap::new();
        manifest(&self.root, &mut all);
        all
    }

    fn status(&self) -> String {
        self.git(&["status", "--porcelain", "--untracked-files=all", "--ignored"])
    }
}

fn put(root: &Path, path: impl AsRef<OsStr>, content: impl AsRef<[u8]>) {
    let file = root.join(Path::new(path.as_ref()));
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(file, content).unwrap();
}

fn manifest(dir: &Path, all: &mut BTreeMap<PathBuf, (u32, Vec<u8>)>) {
    for entry in fs::read_dir(dir).unwrap().flatten() {
        let path = entry.path();
        let meta = fs::symlink_metadata(&path).unwrap();
        if path.ends_with(".git") {
            continue;
        }
        if meta.is_dir() {
            manifest(&path, all);
        } else if meta.is_symlink() {
            all.insert(path.clone(), (0, fs::read_link(&path).unwrap().into_os_string().into_vec()));
        } else {
            all.insert(path.clone(), (meta.permissions().mode(), fs::read(&path).unwrap()));
        }
    }
}

fn me() -> Identity {
    identity("Me", "me@example.org")
}

fn unsigned(identity: &Identity) -> Committer<'_> {
    Committer { identity, signing: None }
}

fn identity(name: &str, email: &str) -> Identity {
    Identity {
        name: name.to_owned(),
        email: email.to_owned(),
        committer_name: name.to_owned(),
        committer_email: email.to_owned(),
        configured: true,
    }
}

fn collect(slot: &mut Slot, base: &ObjectId) -> archeflow_host::git::workspace::Collected {
    slot.collect(base, "made", &me(), CollectLimits::default()).unwrap()
}

fn built(
    repo: &Repo,
    strategy: BuildStrategy,
    target: &ObjectId,
    base: &ObjectId,
    work: &ObjectId,
) -> BuildResult {
    let (identity, keep) = (me(), "refs/archeflow/keep/run/merge-1");
    build(repo, strategy, &Work { target, work, base, message: "land it\n", by: unsigned(&identity), keep })
        .unwrap()
}

fn commit_of(built: BuildResult) -> (ObjectId, ObjectId) {
    let BuildResult::Commit { oid, tree } = built else { panic!("{built:?}") };
    (oid, tree)
}

fn to_main(old: &ObjectId, new: &ObjectId) -> Move {
    Move { branch: "refs/heads/main".to_owned(), old: old.clone(), new: new.clone() }
}

// ---- the runner ----

#[test]
fn runner_moves_much_data_both_ways_and_keeps_its_deadline() {
    let world = World::new();
    let git = || GitCommand::new(&world.root.join(".git")).unwrap();
    let big = vec![b'x'; 8 << 20];
    let oid = git().args(["hash-object", "-w", "--stdin"]).input(big.clone()).done().unwrap();
    let oid = String::from_utf8(oid.line().to_vec()).unwrap();
    assert_eq!(git().args(["cat-file", "blob", &oid]).done().unwrap().stdout, big);
    let cut = git().args(["cat-file", "blob", &oid]).cap(10).done().unwrap();
    assert_eq!((cut.stdout.len(), cut.total), (10, 8 << 20));
    let began = Instant::now();
    let slow = git().setting("alias.slow=!sleep 1000").arg("slow").deadline(Duration::from_millis(200)).run();
    assert!(matches!(slow, Err(archeflow_host::git::runner::Error::TimedOut { .. })), "{slow:?}");
    assert!(began.elapsed() < Duration::from_secs(600));
}

/// The receiver of a pack that finds the disk full ends long before the sender has sent it.
#[test]
fn m_b5_a_sender_ends_when_nobody_receives() {
    let world = World::new();
    let git = || GitCommand::new(&world.root.join(".git")).unwrap();
    let oid = git().args(["hash-object", "-w", "--stdin"]).input(vec![b'x'; 8 << 20]).done().unwrap();
    let oid = String::from_utf8(oid.line().to_vec()).unwrap();
    let ended = git()
        .args(["cat-file", "blob", &oid])
        .deadline(Duration::from_secs(300))
        .pipe_into(git().args(["hash-object", "--no-such-option"]))
        .unwrap_err();
    assert!(!matches!(ended, archeflow_host::git::runner::Error::TimedOut { .. }), "{ended}");
}

#[test]
fn m_e37_git_versions() {
    for (text, good) in [
        ("git version 2.38.0", true),
        ("git version 2.47.3", true),
        ("git version 3.0", true),
        ("git version 2.50.1 (Apple Git-155)", true),
        ("git version 2.37.9", false),
        ("git version 1.9.1", false),
        ("something else", false),
    ] {
        assert_eq!(check_version_text(text).is_ok(), good, "{text}");
    }
}

// ---- names ----

#[test]
fn d11_paths_are_quoted_as_git_quotes_them() {
    let world = World::new();
    let names: Vec<Vec<u8>> = odd_names();
    for name in &names {
        put(&world.root, OsStr::from_bytes(name), "x");
    }
    world.git(&["add", "-A"]);
    let listed = world.git(&["-c", "core.quotePath=false", "ls-files"]);
    for name in names {
        let quoted = change::quote_path(&name);
        // What is not UTF-8 git prints raw, and the log escapes.
        let is_utf8 = std::str::from_utf8(&name).is_ok();
        assert!(!is_utf8 || listed.lines().any(|line| line == quoted), "{quoted} is not in\n{listed}");
        assert_eq!(change::unquote_path(&quoted), Some(name));
    }
    for bad in ["\"", "\"a", "\"a\\\"", "\"\\9\"", "\"\\12\"", "\"a\"b\""] {
        assert_eq!(change::unquote_path(bad), None, "{bad}");
    }
}

fn odd_names() -> Vec<Vec<u8>> {
    let mut names: Vec<Vec<u8>> =
        ["a b", "tab\there", "new\nline", "q\"uote", "back\\slash", "-dash", ":(glob)*"]
            .iter()
            .chain(&["ünï/cödé", "e\u{301}", "bell\u{7}", "\u{1}\u{7f}", "a\r", "#hash", " lead", "trail "])
            .map(|name| name.as_bytes().to_vec())
            .collect();
    names.push(b"not-utf8-\xff\xfe".to_vec());
    names.push(vec![b'n'; 255]);
    names
}

// ---- repository shapes ----

#[test]
fn m_e1_m_e2_m_e3_shapes_that_are_refused_say_what_to_do() {
    let world = World::new();
    let open = |path: &Path| Repo::open(path, &world.state(), &world.env());
    assert!(matches!(open(world.dir.path()), Err(RepoError::NotARepository { .. })));
    assert!(matches!(open(&world.root.join("nowhere")), Err(RepoError::NotARepository { .. })));
    assert!(matches!(open(&world.root.join(".git")), Err(RepoError::InsideGitDir { .. })));
    assert!(matches!(open(&world.root.join(".git/refs")), Err(RepoError::InsideGitDir { .. })));
    assert_eq!(
        open(&world.root.join("dir")).unwrap().work_tree(),
        Some(&*fs::canonicalize(&world.root).unwrap())
    );
    let repo = world.open();
    assert_eq!(repo.target(None).unwrap().branch, "refs/heads/main");
    assert!(matches!(repo.target(Some("no")), Err(RepoError::NoSuchBranch { .. })));
    assert!(matches!(repo.target(Some("a..b")), Err(RepoError::BadName { .. })));
    assert!(matches!(repo.target(Some("@{-1}")), Err(RepoError::BadName { .. })));
    world.git(&["checkout", "-q", "--detach"]);
    assert!(matches!(repo.target(None), Err(RepoError::Detached)));
    assert_eq!(repo.target(Some("main")).unwrap().oid, world.oid("main"));
    let unborn = World::empty("repo", &["init", "-q", "-b", "main"]);
    let error = unborn.open().target(None).unwrap_err();
    assert!(error.to_string().contains("make a first commit"), "{error}");
}

/// The whole way, from opening to the landed change, in repositories of many shapes.
#[test]
fn shapes_that_work() {
    let hook = "#!/bin/sh\necho ran >> \"$(dirname \"$0\")/RAN\"\nexit 1\n";
    let shapes: Vec<(&str, World)> = vec![
        ("master only", {
            let world = World::empty("repo", &["init", "-q", "-b", "master"]);
            world.write("a.txt", "a\n").commit("first");
            world.git(&["branch", "-m", "master", "main"]);
            world
        }),
        ("M-E30 path with newline", {
            let world = World::empty("re po\nü\"x", &["init", "-q", "-b", "main"]);
            world.write("a.txt", "a\n").commit("first");
            world
        }),
        ("M-E8 sha256", {
            let world = World::empty("repo", &["init", "-q", "-b", "main", "--object-format=sha256"]);
            world.write("a.txt", "a\n").commit("first");
            world
        }),
        ("M-E8 reftable", {
            let world = World::empty("repo", &["init", "-q", "-b", "main", "--ref-format=reftable"]);
            world.write("a.txt", "a\n").commit("first");
            world
        }),
        ("M-E5 shallow", {
            let origin = World::new();
            origin.write("a.txt", "a2\n").commit("second");
            let url = format!("file://{}", origin.root.display());
            let world = World::empty("repo", &["init", "-q", "-b", "none"]);
            fs::remove_dir_all(&world.root).unwrap();
            world.git_in(world.dir.path(), &["clone", "-q", "--depth", "1", &url, "repo"]);
            world
        }),
        ("M-E24 submodule", {
            let world = World::new();
            let inner = World::new();
            let url = format!("file://{}", inner.root.display());
            world.git(&["-c", "protocol.file.allow=always", "submodule", "--quiet", "add", &url, "sub"]);
            world.commit("with submodule");
            world
        }),
        ("M-E25 filter that is missing", {
            let world = World::new();
            world.write(".gitattributes", "*.bin filter=lfs diff=lfs merge=lfs -text\n");
            world.write("big.bin", "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n");
            world.commit("pointer");
            world
        }),
        ("M-E16 failing hooks", {
            let world = World::new();
            for name in
                ["pre-commit", "commit-msg", "prepare-commit-msg", "post-checkout", "reference-transaction"]
                    .iter()
                    .chain(&["post-index-change", "post-merge", "update", "pre-push"])
            {
                let file = world.root.join(".git/hooks").join(name);
                put(&world.root, &file, hook);
                fs::set_permissions(&file, PermissionsExt::from_mode(0o755)).unwrap();
            }
            world
        }),
        ("M-E18 hanging signer", {
            let world = World::new();
            let signer = world.dir.path().join("signer");
            put(&world.root, &signer, "#!/bin/sh\nsleep 600\n");
            fs::set_permissions(&signer, PermissionsExt::from_mode(0o755)).unwrap();
            world.git(&["config", "commit.gpgsign", "true"]);
            world.git(&["config", "gpg.program", signer.to_str().unwrap()]);
            world
        }),
        ("M-E17 M-E33 packed, with replace refs, hooksPath missing", {
            let world = World::new();
            world.write("a.txt", "a2\n").commit("second");
            world.git(&["replace", "HEAD~1", "HEAD"]);
            world.git(&["pack-refs", "--all"]);
            world.git(&["repack", "-adq"]);
            world.git(&["config", "core.hooksPath", "/nonexistent"]);
            world
        }),
        ("M-E31 eol conversion", {
            let world = World::new();
            world.git(&["config", "core.autocrlf", "true"]);
            world.write(".gitattributes", "*.txt text eol=crlf\n").write("crlf.txt", "x\r\ny\r\n");
            world.commit("crlf");
            fs::remove_file(world.root.join("a.txt")).unwrap();
            world.git(&["checkout", "-q", "--", "."]);
            world
        }),
    ];
    for (name, world) in shapes {
        fs::remove_file(world.root.join(".git/hooks/RAN")).ok();
        let before = world.open().fingerprint();
        let (base, work) = world.made(|tree| {
            put(tree, "new.txt", "new\n");
            put(tree, "a.txt", "changed\n");
        });
        let repo = world.open();
        let (merge, tree) = commit_of(built(&repo, BuildStrategy::NoFf, &base, &base, &work));
        let step = to_main(&base, &merge);
        assert!(matches!(land(&repo, &step).unwrap(), LandAttempt::Moved { .. }), "{name}");
        verify(&repo, &step, &tree, None).unwrap();
        assert_eq!(world.read("new.txt").trim_end(), "new", "{name}");
        assert_eq!(world.read("a.txt").trim_end(), "changed", "{name}");
        assert!(!world.root.join(".git/hooks/RAN").exists(), "{name}: a hook ran");
        assert_eq!(repo.fingerprint(), before, "{name}");
        assert_eq!(world.git(&["status", "--porcelain"]), "", "{name}");
        assert_eq!(recover(&repo, &step, SystemTime::now()).unwrap(), Recovered::AlreadyDone, "{name}");
    }
}

#[test]
fn m_e4_bare_and_m_e23_linked_worktrees() {
    let world = World::new();
    let linked = world.dir.path().join("linked tree");
    world.git(&["checkout", "-q", "-b", "elsewhere"]);
    world.git(&["worktree", "add", "-q", linked.to_str().unwrap(), "main"]);
    let (base, work) = world.made(|tree| put(tree, "new.txt", "new\n"));
    let repo = world.open();
    let (merge, _) = commit_of(built(&repo, BuildStrategy::NoFf, &base, &base, &work));
    let landed = land(&repo, &to_main(&base, &merge)).unwrap();
    assert_eq!(landed, LandAttempt::Moved { trees: vec![fs::canonicalize(&linked).unwrap()] });
    assert_eq!(fs::read_to_string(linked.join("new.txt")).unwrap(), "new\n");
    assert!(!world.root.join("new.txt").exists());
    assert_eq!(world.git_in(&linked, &["status", "--porcelain"]), "");

    let bare = World::empty("bare.git", &["init", "-q", "--bare", "-b", "main"]);
    world.git(&["push", "-q", bare.root.to_str().unwrap(), "main"]);
    let (base, work) = bare.made(|tree| put(tree, "second.txt", "x"));
    let repo = bare.open();
    assert_eq!(repo.work_tree(), None);
    let (merge, _) = commit_of(built(&repo, BuildStrategy::NoFf, &base, &base, &work));
    assert_eq!(land(&repo, &to_main(&base, &merge)).unwrap(), LandAttempt::Moved { trees: vec![] });
}

#[test]
fn m_e19_identity_and_m_e9_dirty_summary() {
    let world = World::new();
    let known = identity("User", "user@example.org");
    assert_eq!(*world.open().identity(), known);
    world.write("a.txt", "mine").write("x", "").write("y", "").write("dir/b.txt", "staged");
    world.git(&["add", "dir/b.txt"]);
    let dirty = world.open().dirty_summary().unwrap();
    assert_eq!((dirty.staged, dirty.modified, dirty.untracked), (1, 1, 2));
    fs::remove_file(world.dir.path().join("home/.gitconfig")).unwrap();
    assert_eq!(world.open().identity().email, "archeflow@localhost");
    assert!(!world.open().identity().configured);
}

#[test]
fn r8_fingerprint_sees_tampering() {
    let world = World::new();
    let repo = world.open();
    for file in ["config", "hooks/pre-commit", "info/attributes", "info/exclude", "objects/info/alternates"] {
        let before = repo.fingerprint();
        assert_eq!(repo.fingerprint(), before);
        let path = world.root.join(".git").join(file);
        let mut bytes = fs::read(&path).unwrap_or_default();
        bytes.extend_from_slice(b"# more\n");
        put(&world.root, &path, bytes);
        assert_ne!(repo.fingerprint(), before, "{file}");
    }
}

// ---- workspaces ----

#[test]
fn d10_workspace_round_trip() {
    let world = World::new();
    world.write("gone.txt", "x").write("run.sh", "#!/bin/sh\n").write("swap", "file");
    let base = world.commit("more");
    let before = world.manifest();
    let mut slot = world.pool().take(WorkspaceKind::Maker, "run", &base).unwrap();
    let tree = slot.tree();
    assert_eq!(world.git_in(&tree, &["status", "--porcelain"]), "");
    assert_eq!(world.git_in(&tree, &["log", "-1", "--format=%H %an"]), format!("{base} User"));
    put(&tree, "committed.txt", "by the agent\n");
    world.git_in(&tree, &["add", "-A"]);
    world.git_in(&tree, &["commit", "-q", "-m", "agent"]);
    let agent = world.git_in(&tree, &["rev-parse", "HEAD"]);
    put(&tree, "a.txt", "changed\n");
    put(&tree, "build/ignored.o", "ignored");
    fs::remove_file(tree.join("gone.txt")).unwrap();
    fs::set_permissions(tree.join("run.sh"), PermissionsExt::from_mode(0o755)).unwrap();
    fs::remove_file(tree.join("swap")).unwrap();
    put(&tree, "swap/inner", "now a directory");
    fs::remove_dir_all(tree.join("dir")).unwrap();
    symlink("/etc", tree.join("dir")).unwrap();
    symlink("/etc/passwd", tree.join("link")).unwrap();
    for name in odd_names() {
        put(&tree, OsStr::from_bytes(&name), &name);
    }
    let made = collect(&mut slot, &base);
    assert!(made.committed_by_agent && made.uncommitted && made.stray_heads.is_empty(), "{made:?}");
    std::thread::sleep(Duration::from_millis(1100)); // a commit's date has whole seconds
    assert_eq!(collect(&mut slot, &base), made, "collecting again finds the same");
    let refs = [
        (made.commit.clone(), "refs/heads/archeflow/run".to_owned()),
        (made.commit.clone(), "refs/archeflow/keep/run/do.1".to_owned()),
    ];
    slot.publish(&refs).unwrap();
    slot.publish(&refs).unwrap();
    assert_eq!(world.oid("archeflow/run"), made.commit);
    assert_eq!(world.git(&["rev-parse", "archeflow/run~1"]), agent);
    assert_eq!(world.manifest(), before, "the user's files are untouched");
    let repo = world.open();
    let mut listed: BTreeMap<Vec<u8>, String> =
        repo.list_dir(&made.commit, b"").unwrap().into_iter().map(|entry| (entry.path, entry.mode)).collect();
    for name in odd_names() {
        assert_eq!(change::blob_at(&repo, &made.commit, &name).unwrap(), Some(name.clone()));
        assert_eq!(listed.remove(&name).as_deref(), Some("100644"));
    }
    let rest: Vec<(String, String)> =
        listed.into_iter().map(|(path, mode)| (String::from_utf8(path).unwrap(), mode)).collect();
    let expected = [
        (".gitignore", "100644"),
        ("a.txt", "100644"),
        ("committed.txt", "100644"),
        ("dir", "120000"),
        ("link", "120000"),
        ("other.txt", "100644"),
        ("run.sh", "100755"),
        ("swap/inner", "100644"),
    ];
    assert_eq!(rest, expected.map(|(path, mode)| (path.to_owned(), mode.to_owned())));
    drop(slot);
    // The same run finds its ignored files again; another run finds nothing of it.
    let slot = take_at(&world, "run", &made.commit, &tree);
    assert!(tree.join("build/ignored.o").exists());
    drop_unused(slot, &made.commit);
    put(&tree, "dirty.txt", "left behind");
    put(&tree, "a.txt", "dirty");
    let _slot = take_at(&world, "another", &base, &tree);
    assert!(!tree.join("build").exists() && !tree.join("dirty.txt").exists());
    let mut fresh = BTreeMap::new();
    manifest(&tree, &mut fresh);
    let fresh: Vec<_> = fresh
        .into_iter()
        .map(|(path, rest)| (path.strip_prefix(&tree).unwrap().to_owned(), rest.1))
        .collect();
    let user: Vec<_> = before
        .into_iter()
        .map(|(path, rest)| (path.strip_prefix(&world.root).unwrap().to_owned(), rest.1))
        .collect();
    assert_eq!(fresh, user);
    assert_eq!(world.git_in(&tree, &["status", "--porcelain", "--ignored"]), "");
}

/// The copy at this very place. Another test may be forking right now, and for that moment its child holds every lock
/// of this process.
fn take_at(world: &World, run: &str, commit: &ObjectId, tree: &Path) -> Slot {
    let begun = std::time::Instant::now();
    loop {
        let slot = world.pool().take(WorkspaceKind::Maker, run, commit).unwrap();
        if slot.tree() == tree || begun.elapsed().as_secs() > 300 {
            assert_eq!(slot.tree(), tree);
            return slot;
        }
    }
}

fn drop_unused(mut slot: Slot, base: &ObjectId) {
    let made = collect(&mut slot, base);
    assert_eq!((&made.commit, made.uncommitted), (base, false), "{made:?}");
}

#[test]
fn i2_unpublished_work_is_never_handed_out_again() {
    let world = World::new();
    let base = world.oid("main");
    let slot = world.pool().take(WorkspaceKind::Maker, "run", &base).unwrap();
    put(&slot.tree(), "precious.txt", "work");
    let tree = slot.tree();
    drop(slot); // the program died here
    let other = world.pool().take(WorkspaceKind::Maker, "run", &base).unwrap();
    assert_ne!(other.tree(), tree);
    drop_unused(other, &base);
    assert!(world.pool().pending(Some("someone else")).unwrap().is_empty());
    let mut found = world.pool().pending(Some("run")).unwrap();
    assert_eq!(found.len(), 1);
    let mut slot = found.remove(0);
    assert_eq!((slot.tree(), slot.base()), (tree.clone(), Some(&base)));
    let made = collect(&mut slot, &base);
    slot.publish(&[(made.commit.clone(), "refs/archeflow/keep/run/do.1".to_owned())]).unwrap();
    assert_eq!(world.git(&["show", "refs/archeflow/keep/run/do.1:precious.txt"]), "work");
    drop(slot);
    assert!(world.pool().pending(None).unwrap().is_empty());
}

#[test]
fn m_c20_deleted_tree_and_replaced_tree() {
    let world = World::new();
    let base = world.oid("main");
    let decoy = world.dir.path().join("decoy");
    put(&decoy, "sentinel", "must stay");
    put(&decoy, ".git/HEAD", "must stay");
    let mut slot = world.pool().take(WorkspaceKind::Maker, "run", &base).unwrap();
    let tree = slot.tree();
    fs::remove_dir_all(&tree).unwrap();
    assert!(matches!(
        slot.collect(&base, "m", &me(), CollectLimits::default()),
        Err(WorkError::TreeGone { .. })
    ));
    symlink(&decoy, &tree).unwrap();
    assert!(matches!(
        slot.collect(&base, "m", &me(), CollectLimits::default()),
        Err(WorkError::TreeGone { .. })
    ));
    slot.abandon().unwrap();
    drop(slot);
    let mut slot = take_at(&world, "run", &base, &tree);
    assert!(!fs::symlink_metadata(&tree).unwrap().is_symlink());
    assert_eq!(fs::read_to_string(tree.join("a.txt")).unwrap(), "a\n");
    // The agent's .git as a link elsewhere, and a directory as a link elsewhere.
    fs::remove_dir_all(tree.join(".git")).unwrap();
    symlink(decoy.join(".git"), tree.join(".git")).unwrap();
    fs::remove_dir_all(tree.join("dir")).unwrap();
    symlink(&decoy, tree.join("dir")).unwrap();
    put(&tree, "made.txt", "made");
    let made = collect(&mut slot, &base);
    assert!(!made.committed_by_agent && made.uncommitted && !made.notes.is_empty(), "{made:?}");
    slot.publish(&[(made.commit, "refs/archeflow/keep/run/do.1".to_owned())]).unwrap();
    drop(slot);
    let slot = world.pool().take(WorkspaceKind::Maker, "next", &base).unwrap();
    assert_eq!(fs::read_to_string(slot.tree().join("dir/b.txt")).unwrap(), "b\n");
    assert_eq!(fs::read_to_string(decoy.join("sentinel")).unwrap(), "must stay");
    assert_eq!(fs::read_to_string(decoy.join(".git/HEAD")).unwrap(), "must stay");
}

#[test]
fn m_c22_rewritten_history_is_kept_aside() {
    let world = World::new();
    let base = world.write("a.txt", "2\n").commit("second");
    let mut slot = world.pool().take(WorkspaceKind::Maker, "run", &base).unwrap();
    let tree = slot.tree();
    // A branch left behind, then history rewritten from the parent of the base.
    world.git_in(&tree, &["checkout", "-q", "-b", "side"]);
    put(&tree, "side.txt", "side");
    world.git_in(&tree, &["add", "-A"]);
    world.git_in(&tree, &["commit", "-q", "-m", "side"]);
    let side = world.git_in(&tree, &["rev-parse", "HEAD"]);
    world.git_in(&tree, &["checkout", "-q", "archeflow"]);
    world.git_in(&tree, &["commit", "-q", "--amend", "-m", "rewritten"]);
    put(&tree, "work.txt", "work");
    world.git_in(&tree, &["add", "-A"]);
    world.git_in(&tree, &["commit", "-q", "-m", "on rewritten"]);
    let stray = world.git_in(&tree, &["rev-parse", "HEAD"]);
    world.git_in(&tree, &["pack-refs", "--all"]);
    world.git_in(&tree, &["repack", "-adq"]);
    let made = collect(&mut slot, &base);
    let strays: BTreeSet<&str> = made.stray_heads.iter().map(ObjectId::as_str).collect();
    assert_eq!(strays, BTreeSet::from([side.as_str(), stray.as_str()]));
    assert!(!made.committed_by_agent && made.uncommitted);
    let mut refs = vec![(made.commit.clone(), "refs/heads/archeflow/run".to_owned())];
    slot.publish(&refs).unwrap();
    drop(slot);
    assert_eq!(world.pool().pending(Some("run")).unwrap().len(), 1, "the strays are not published yet");
    let mut slot = world.pool().pending(Some("run")).unwrap().remove(0);
    let made = collect(&mut slot, &base);
    refs[0].0 = made.commit.clone();
    for (n, stray) in made.stray_heads.iter().enumerate() {
        refs.push((stray.clone(), format!("refs/archeflow/keep/run/stray-{n}")));
    }
    slot.publish(&refs).unwrap();
    drop(slot);
    assert!(world.pool().pending(None).unwrap().is_empty());
    assert!(world.git(&["log", "--all", "--format=%H"]).contains(&stray));
    assert_eq!(world.git(&["rev-parse", "archeflow/run~1"]), base.as_str());
    assert_eq!(world.git(&["show", "archeflow/run:work.txt"]), "work");
}

#[test]
fn m_c24_hostile_git_config_runs_nothing() {
    let world = World::new();
    let base = world.oid("main");
    let pwned = world.dir.path().join("PWNED");
    let script = world.dir.path().join("evil.sh");
    put(world.dir.path(), &script, format!("#!/bin/sh\necho \"$0 $*\" >> {}\ncat\n", pwned.display()));
    fs::set_permissions(&script, PermissionsExt::from_mode(0o755)).unwrap();
    let evil = script.to_str().unwrap();
    let secret = World::new();
    secret.write("secret.txt", "secret").commit("secret");
    let mut slot = world.pool().take(WorkspaceKind::Maker, "run", &base).unwrap();
    let tree = slot.tree();
    put(&tree, "work.txt", "work");
    world.git_in(&tree, &["add", "-A"]);
    world.git_in(&tree, &["commit", "-q", "-m", "agent"]);
    let arm = |tree: &Path| {
        let config = format!(
            "[core]\n\trepositoryformatversion = 0\n\tfsmonitor = {evil}\n\thooksPath = {}\n\tpager = {evil}\n\
             \tsshCommand = {evil}\n\teditor = {evil}\n\talternateRefsCommand = {evil}\n\
             [diff]\n\texternal = {evil}\n[diff \"tc\"]\n\ttextconv = {evil}\n\tcommand = {evil}\n\
             [filter \"fl\"]\n\tclean = {evil}\n\tsmudge = {evil}\n\tprocess = {evil}\n\trequired = true\n\
             [merge \"md\"]\n\tdriver = {evil}\n[gpg]\n\tprogram = {evil}\n[commit]\n\tgpgsign = true\n\
             [uploadpack]\n\tpackObjectsHook = {evil}\n[credential]\n\thelper = {evil}\n",
            tree.join(".git/hooks").display()
        );
        put(tree, ".git/config", config);
        for hook in ["post-checkout", "pre-commit", "reference-transaction", "post-index-change"] {
            put(tree, format!(".git/hooks/{hook}"), fs::read(&script).unwrap());
            fs::set_permissions(tree.join(".git/hooks").join(hook), PermissionsExt::from_mode(0o755))
                .unwrap();
        }
        put(tree, ".git/info/attributes", "* filter=fl diff=tc merge=md\n");
    };
    put(&tree, "nested/x", "x");
    world.git_in(&tree.join("nested"), &["init", "-q"]);
    world.git_in(&tree.join("nested"), &["add", "-A"]);
    world.git_in(&tree.join("nested"), &["commit", "-q", "-m", "nested"]);
    put(&tree, "hollow/x", "x");
    world.git_in(&tree.join("hollow"), &["init", "-q"]);
    arm(&tree);
    arm(&tree.join("nested"));
    put(&tree, ".gitattributes", "* filter=fl diff=tc merge=md\n");
    put(&tree, "a.txt", "changed by the agent\n");
    // A link into another repository's objects would carry its content out.
    put(&tree, ".git/objects/info/alternates", format!("{}\n", secret.root.join(".git/objects").display()));
    put(&tree, ".git/refs/heads/thief", format!("{}\n", secret.oid("main")));
    let made = collect(&mut slot, &base);
    assert!(made.committed_by_agent && made.uncommitted, "{made:?}");
    assert_eq!(made.nested, [b"hollow".to_vec(), b"nested".to_vec()]);
    assert!(made.stray_heads.is_empty(), "{made:?}");
    assert_eq!(collect(&mut slot, &base).tree, made.tree);
    slot.verify_clean().unwrap();
    slot.publish(&[(made.commit.clone(), "refs/heads/archeflow/run".to_owned())]).unwrap();
    drop(slot);
    let slot = world.pool().take(WorkspaceKind::Maker, "run", &made.commit).unwrap();
    drop(slot);
    world.write("b2.txt", "meanwhile");
    let target = world.commit("meanwhile");
    let repo = world.open();
    change::changed(&repo, &base, &made.commit).unwrap();
    change::diff_text(&repo, &base, &made.commit, 1 << 20).unwrap();
    for strategy in [BuildStrategy::NoFf, BuildStrategy::Squash, BuildStrategy::Rebase] {
        commit_of(built(&repo, strategy, &target, &base, &made.commit));
    }
    let seen = fs::read_to_string(&pwned).unwrap_or_default();
    assert_eq!(seen, "", "the agent's code ran");
}

#[test]
fn m_e24_submodule_slots_and_hidden_leftovers() {
    let world = World::new();
    let inner = World::new();
    let url = format!("file://{}", inner.root.display());
    world.git(&["-c", "protocol.file.allow=always", "submodule", "--quiet", "add", &url, "sub"]);
    let base = world.commit("with submodule");
    let slot = world.pool().take(WorkspaceKind::Maker, "one", &base).unwrap();
    let tree = slot.tree();
    put(&tree, "sub/left", "hidden from git");
    put(&tree, "dir/.git/config", "hidden too");
    drop_unused(slot, &base);
    let slot = take_at(&world, "two", &base, &tree);
    assert!(!tree.join("sub/left").exists() && !tree.join("dir/.git").exists());
    drop_unused(slot, &base);
}

#[test]
fn d_10_m_c19_too_much_is_left_out_and_noted() {
    let world = World::new();
    let base = world.oid("main");
    let mut slot = world.pool().take(WorkspaceKind::Maker, "run", &base).unwrap();
    put(&slot.tree(), "huge", vec![0; 4096]);
    put(&slot.tree(), "a.txt", "changed");
    let made = slot.collect(&base, "m", &me(), CollectLimits { bytes: 1000, files: 10 }).unwrap();
    assert_eq!(made.skipped, [b"huge".to_vec()]);
    slot.publish(&[(made.commit.clone(), "refs/archeflow/keep/run/1".to_owned())]).unwrap();
    drop(slot);
    assert_eq!(world.git(&["show", &format!("{}:a.txt", made.commit)]), "changed");
    assert_eq!(world.pool().pending(None).unwrap().len(), 1, "what was left out is still there");
}

#[test]
fn d10_readers_cannot_keep_what_they_change() {
    let world = World::new();
    let base = world.oid("main");
    let slot = world.pool().take(WorkspaceKind::Reader, "run", &base).unwrap();
    let tree = slot.tree();
    assert_eq!(fs::metadata(tree.join("a.txt")).unwrap().permissions().mode() & 0o222, 0);
    assert_eq!(fs::metadata(tree.join("dir")).unwrap().permissions().mode() & 0o222, 0);
    assert_eq!(slot.verify_clean().unwrap(), Vec::<Vec<u8>>::new());
    for dir in [&tree, &tree.join("dir")] {
        fs::set_permissions(dir, PermissionsExt::from_mode(0o755)).unwrap();
    }
    fs::remove_file(tree.join("a.txt")).unwrap();
    put(&tree, "a.txt", "tampered");
    put(&tree, "dir/new", "new");
    assert_eq!(slot.verify_clean().unwrap(), [b"a.txt".to_vec(), b"dir/new".to_vec()]);
    drop(slot);
    let next = world.write("a.txt", "next\n").commit("next");
    let slot = world.pool().take(WorkspaceKind::Reader, "run", &next).unwrap();
    assert_eq!((slot.tree(), slot.verify_clean().unwrap().len()), (tree.clone(), 0));
    assert_eq!(fs::read_to_string(tree.join("a.txt")).unwrap(), "next\n");
    assert_eq!(fs::metadata(tree.join("a.txt")).unwrap().permissions().mode() & 0o222, 0);
    assert!(!tree.join("dir/new").exists());
}

#[test]
fn i7_m_n5_no_two_holders_share_a_slot() {
    let world = World::new();
    let base = world.oid("main");
    let taken: Vec<Slot> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..6)
            .map(|n| {
                let (world, base) = (&world, &base);
                scope.spawn(move || {
                    world.pool().take(WorkspaceKind::Scratch, &format!("run-{n}"), base).unwrap()
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let trees: BTreeSet<PathBuf> = taken.iter().map(Slot::tree).collect();
    assert_eq!(trees.len(), 6);
    drop(taken);
    let again = world.pool().take(WorkspaceKind::Scratch, "run-3", &base).unwrap();
    assert!(trees.contains(&again.tree()));
    assert_eq!(again.owner(), "run-3");
}

/// Run by hand, in release mode: `cargo test --release -- --ignored`.
#[test]
#[ignore = "measures time"]
fn d10_what_a_slot_costs() {
    let world = World::new();
    for n in 0..20_000 {
        put(&world.root, format!("d{}/e{}/f{n}.txt", n % 100, n % 7), format!("file {n}\n").repeat(20));
    }
    let base = world.commit("many");
    world.git(&["repack", "-adq"]);
    let next = world.write("d1/e1/f1.txt", "next").commit("next");
    world.git(&["status", "--porcelain"]);
    let time = |what: &mut dyn FnMut()| {
        let began = Instant::now();
        what();
        began.elapsed()
    };
    let best = |what: &mut dyn FnMut()| (0..5).map(|_| time(what)).min().unwrap();
    let added = world.dir.path().join("added-0");
    let pool = world.pool();
    let (mut add, mut cold, mut held) = (Duration::MAX, Duration::MAX, Vec::new());
    for n in 0..3 {
        let dir = world.dir.path().join(format!("added-{n}"));
        let args = ["worktree", "add", "-q", "--detach", dir.to_str().unwrap(), base.as_str()];
        add = add.min(time(&mut || _ = world.git(&args)));
        cold =
            cold.min(time(&mut || held.push(pool.make_ready(WorkspaceKind::Maker, "run", &base).unwrap())));
    }
    drop(held);
    std::thread::sleep(Duration::from_secs(2));
    let _ = pool.make_ready(WorkspaceKind::Maker, "run", &base).unwrap();
    let warm = best(&mut || _ = pool.make_ready(WorkspaceKind::Maker, "run", &base).unwrap());
    let status = best(&mut || _ = world.git_in(&added, &["status", "--porcelain", "-uall"]));
    let other = time(&mut || _ = pool.make_ready(WorkspaceKind::Maker, "other", &base).unwrap());
    let moved = time(&mut || _ = pool.make_ready(WorkspaceKind::Maker, "other", &next).unwrap());
    let reader = time(&mut || _ = pool.take(WorkspaceKind::Reader, "run", &base).unwrap());
    let reader_warm = best(&mut || _ = pool.take(WorkspaceKind::Reader, "run", &base).unwrap());
    let report = format!(
        "add {add:?} cold {cold:?}; status {status:?} warm {warm:?} other owner {other:?} moved {moved:?}; \
         reader {reader:?} warm {reader_warm:?}"
    );
    assert!(warm <= status + status / 5 && cold <= add, "{report}");
}

#[test]
fn r9_publishing_refuses_foreign_and_checked_out_refs() {
    let world = World::new();
    let (_, work) = world.made(|tree| put(tree, "x", "x"));
    let base = world.oid("main");
    let mut slot = world.pool().take(WorkspaceKind::Maker, "run", &base).unwrap();
    let mut publish = |commit: &ObjectId, name: &str| slot.publish(&[(commit.clone(), name.to_owned())]);
    for name in
        ["refs/heads/main", "refs/tags/v1", "refs/archeflow/../heads/main", "refs/archeflow/keep/a\nb"]
    {
        assert!(matches!(publish(&work, name), Err(WorkError::ForeignRef { .. })), "{name}");
    }
    // A ref that must go back: what it pointed at stays reachable.
    publish(&base, "refs/heads/archeflow/run").unwrap();
    assert_eq!(world.oid(&format!("refs/archeflow/keep/replaced/{work}")), work);
    world.git(&["checkout", "-q", "archeflow/run"]);
    assert!(matches!(publish(&work, "refs/heads/archeflow/run"), Err(WorkError::CheckedOut { .. })));
    world.git(&["checkout", "-q", "main"]);
    publish(&work, "refs/heads/archeflow/run").unwrap();
    let taken = World::new();
    taken.git(&["branch", "archeflow"]);
    let base = taken.oid("main");
    let mut slot = taken.pool().take(WorkspaceKind::Maker, "run", &base).unwrap();
    let error = slot.publish(&[(base, "refs/heads/archeflow/run".to_owned())]);
    assert!(matches!(error, Err(WorkError::NameTaken)), "{error:?}");
}

// ---- changes ----

#[test]
fn facts_about_a_change() {
    let world = World::new();
    world.write("bin", [0, 1, 2]).write("gone", "1\n2\n").write("exec", "x\n");
    let base = world.commit("base");
    world.write("bin", [0, 1, 2, 3]).write("a.txt", "a\nb\nc").write("new\nline", "1\n2\n");
    fs::remove_file(world.root.join("gone")).unwrap();
    fs::remove_file(world.root.join("other.txt")).unwrap();
    symlink("a.txt", world.root.join("other.txt")).unwrap();
    fs::set_permissions(world.root.join("exec"), PermissionsExt::from_mode(0o755)).unwrap();
    let commit = world.commit("change");
    let repo = world.open();
    let facts: Vec<String> = change::changed(&repo, &base, &commit)
        .unwrap()
        .iter()
        .map(|one| {
            let path = change::quote_path(&one.path);
            let (old, new) = (&one.old_mode, &one.new_mode);
            format!("{path} {:?} {old}>{new} {:?} {:?} {}", one.status, one.added, one.deleted, one.size_new)
        })
        .collect();
    let expected = [
        "a.txt Modified 100644>100644 Some(2) Some(0) 5",
        "bin Modified 100644>100644 None None 4",
        "exec Modified 100644>100755 Some(0) Some(0) 2",
        "gone Deleted 100644>000000 Some(0) Some(2) 0",
        "\"new\\nline\" Added 000000>100644 Some(2) Some(0) 4",
        "other.txt TypeChanged 100644>120000 Some(1) Some(1) 5",
    ];
    assert_eq!(facts, expected);
    let whole = change::diff_text(&repo, &base, &commit, 1 << 20).unwrap();
    assert!(whole.truncated_at.is_none() && whole.bytes.windows(4).any(|part| part == b"\n+b\n"));
    let cut = change::diff_text(&repo, &base, &commit, 20).unwrap();
    assert_eq!((cut.bytes.len(), cut.truncated_at), (20, Some(whole.bytes.len() as u64)));
    // AF-166: what landed on the target meanwhile is not part of the diff.
    world.git(&["checkout", "-q", "-b", "elsewhere", base.as_str()]);
    let ahead = world.write("meanwhile", "x").commit("meanwhile");
    assert_eq!(change::diff_text(&repo, &ahead, &commit, 1 << 20).unwrap(), whole);
    let mut tree = CommitFiles::open(&repo, &commit);
    assert_eq!(tree.line_count(b"a.txt").unwrap(), Some(3));
    assert_eq!(tree.line(b"a.txt", 3).unwrap(), Some(b"c".to_vec()));
    assert_eq!(tree.line(b"a.txt", 4).unwrap(), None);
    assert_eq!(tree.line(b"a.txt", 0).unwrap(), None);
    assert_eq!(tree.line(b"new\nline", 2).unwrap(), Some(b"2".to_vec()));
    for missing in
        [b"gone".as_slice(), b"dir", b"", b"./a.txt", b"../a.txt", b"/a.txt", b"no\nway", b"dir//b.txt"]
    {
        assert!(!tree.exists(missing).unwrap(), "{}", change::quote_path(missing));
    }
    assert_eq!(repo.read_blob(&commit, b"a.txt", 5).unwrap(), Some(b"a\nb\nc".to_vec()));
    assert_eq!(repo.read_blob(&commit, b"a.txt", 4).unwrap(), None);
}

// ---- landing ----

#[test]
fn strategies_conflicts_and_moved_bases() {
    let world = World::new();
    let (base, work) = world.made(|tree| {
        put(tree, "new.txt", "new\n");
        world.git_in(tree, &["add", "-A"]);
        world.git_in(tree, &["commit", "-q", "-m", "step one", "--author", "Agent <a@b>"]);
        world.git_in(tree, &["commit", "-q", "--allow-empty", "-m", "nothing"]);
        put(tree, "a.txt", "by work\n");
    });
    let repo = world.open();
    let target = world.write("dir/b.txt", "meanwhile\n").commit("meanwhile");
    let shape = |oid: &ObjectId| {
        world.git(&["log", "--format=%an:%cn:%s:%p", "--abbrev=40", &format!("{target}..{oid}")])
    };
    let mut trees = BTreeSet::new();
    let (merge, tree) = commit_of(built(&repo, BuildStrategy::NoFf, &target, &base, &work));
    assert!(shape(&merge).starts_with(&format!("Me:Me:land it:{target} {work}")), "{}", shape(&merge));
    assert_eq!(world.oid("refs/archeflow/keep/run/merge-1"), merge);
    trees.insert(tree);
    let (squash, tree) = commit_of(built(&repo, BuildStrategy::Squash, &target, &base, &work));
    assert_eq!(shape(&squash), format!("Me:Me:land it:{target}"));
    trees.insert(tree);
    let (rebase, tree) = commit_of(built(&repo, BuildStrategy::Rebase, &target, &base, &work));
    let lines: Vec<String> =
        shape(&rebase).lines().map(|line| line.rsplit_once(':').unwrap().0.to_owned()).collect();
    assert_eq!(lines, ["Me:Me:made", "Agent:Me:step one"]);
    trees.insert(tree);
    assert_eq!(trees.len(), 1, "all strategies give the same tree");
    for strategy in [BuildStrategy::NoFf, BuildStrategy::Squash, BuildStrategy::Rebase] {
        // M-F17
        assert_eq!(built(&repo, strategy, &target, &base, &base), BuildResult::Nothing);
        assert_eq!(built(&repo, strategy, &merge, &base, &work), BuildResult::Nothing);
        // M-E20
        world.git(&["checkout", "-q", "--orphan", &format!("rewritten{strategy:?}")]);
        let rewritten = world.commit("rewritten");
        world.git(&["checkout", "-q", "main"]);
        assert_eq!(built(&repo, strategy, &rewritten, &base, &work), BuildResult::BaseGone);
        // M-F1
        world.git(&["checkout", "-q", "-b", &format!("conflict{strategy:?}"), base.as_str()]);
        let conflicting = world.write("a.txt", "by somebody\n").commit("conflict");
        world.git(&["checkout", "-q", "main"]);
        let conflict = BuildResult::Conflict { paths: vec![b"a.txt".to_vec()] };
        assert_eq!(built(&repo, strategy, &conflicting, &base, &work), conflict);
    }
    let identity = me();
    let work = Work {
        target: &target,
        work: &merge,
        base: &base,
        message: "m",
        by: unsigned(&identity),
        keep: "refs/archeflow/x",
    };
    world.git(&["reset", "-q", "--hard", target.as_str()]);
    let error = build(&repo, BuildStrategy::Rebase, &work).unwrap_err();
    assert!(error.to_string().contains("no-ff"), "{error}");
}

/// A change with every kind of path, landed on a tree that is full of the user's own work.
fn rich(world: &World) -> (ObjectId, ObjectId) {
    world.write("mod.txt", "old content\n").write("gone.txt", "bye\n").write("deep/er/gone.txt", "bye\n");
    world.write("exec.sh", "#!/bin/sh\n").write("to-dir", "file\n").write("to-file/x", "x\n");
    world.write("to-link", "file\n").write("staged.txt", "s\n").write("edited.txt", "e\n");
    let base = world.commit("rich");
    let (_, work) = world.made(|tree| {
        put(tree, "mod.txt", "new content, longer\n");
        fs::remove_file(tree.join("gone.txt")).unwrap();
        fs::remove_dir_all(tree.join("deep")).unwrap();
        put(tree, "added/deep/n.txt", "added\n");
        put(tree, "new\nline \u{fc}", "odd\n");
        fs::set_permissions(tree.join("exec.sh"), PermissionsExt::from_mode(0o755)).unwrap();
        fs::remove_file(tree.join("to-dir")).unwrap();
        put(tree, "to-dir/inner", "inner\n");
        fs::remove_dir_all(tree.join("to-file")).unwrap();
        put(tree, "to-file", "file\n");
        fs::remove_file(tree.join("to-link")).unwrap();
        symlink("mod.txt", tree.join("to-link")).unwrap();
    });
    let (merge, _) = commit_of(built(&world.open(), BuildStrategy::NoFf, &base, &base, &work));
    (base, merge)
}

fn users_work(world: &World) {
    world.write("staged.txt", "staged by me\n");
    world.git(&["add", "staged.txt"]);
    world.write("staged.txt", "and edited again\n").write("edited.txt", "edited by me\n");
    world.write("untracked.txt", "mine\n").write("noise.log", "ignored\n").write("intent.txt", "i\n");
    world.git(&["add", "-N", "intent.txt"]);
    fs::remove_file(world.root.join("a.txt")).unwrap();
}

#[test]
fn i1_m_f3_m_f4_landing_keeps_the_users_other_work() {
    let world = World::new();
    let (base, merge) = rich(&world);
    users_work(&world);
    let (before, status) = (world.manifest(), world.status());
    let staged = world.git(&["ls-files", "-s", "--", "staged.txt", "edited.txt", "intent.txt", "a.txt"]);
    let repo = world.open();
    let step = to_main(&base, &merge);
    assert_eq!(
        land(&repo, &step).unwrap(),
        LandAttempt::Moved { trees: vec![repo.work_tree().unwrap().to_owned()] }
    );
    assert_eq!(world.oid("main"), merge);
    assert_eq!(world.status(), status, "the same work of the user's, and nothing else");
    assert_eq!(
        world.git(&["ls-files", "-s", "--", "staged.txt", "edited.txt", "intent.txt", "a.txt"]),
        staged
    );
    let touched: BTreeSet<PathBuf> = change::changed(&repo, &base, &merge)
        .unwrap()
        .iter()
        .map(|one| world.root.join(OsStr::from_bytes(&one.path)))
        .collect();
    let others = |all: BTreeMap<PathBuf, (u32, Vec<u8>)>| -> BTreeMap<_, _> {
        all.into_iter().filter(|(path, _)| !touched.contains(path)).collect()
    };
    assert_eq!(others(world.manifest()), others(before));
    assert_eq!(land(&repo, &step).unwrap(), LandAttempt::BranchMoved { now: Some(merge.clone()) });
    assert!(world.git(&["reflog", "-1", "main"]).contains("archeflow: land"));
    // M-F3: and back again, as a new commit through the same door.
    let identity = me();
    let undone =
        revert(&repo, &merge, &merge, &base, "undo", unsigned(&identity), "refs/archeflow/keep/run/revert-1")
            .unwrap();
    let (undo, tree) = commit_of(undone);
    assert_eq!(tree, repo.tree_of(&base).unwrap());
    assert!(matches!(land(&repo, &to_main(&merge, &undo)).unwrap(), LandAttempt::Moved { .. }));
    assert_eq!(world.status(), status);
    // M-F4: somebody built on it.
    world.git(&["reset", "-q", "--hard", merge.as_str()]);
    let tip = world.write("mod.txt", "built on it\n").commit("built on it");
    let conflict =
        revert(&repo, &tip, &merge, &base, "undo", unsigned(&identity), "refs/archeflow/keep/run/revert-2")
            .unwrap();
    assert_eq!(conflict, BuildResult::Conflict { paths: vec![b"mod.txt".to_vec()] });
}

#[test]
fn m_e10_dirty_overlap_is_left_alone() {
    type Mess = fn(&World);
    let cases: &[(&str, &str, Mess)] = &[
        ("edited", "mod.txt", |w| _ = w.write("mod.txt", "mine")),
        ("staged", "mod.txt", |w| {
            w.write("mod.txt", "mine").git(&["add", "mod.txt"]);
        }),
        ("staged, disk as before", "mod.txt", |w| {
            w.write("mod.txt", "mine").git(&["add", "mod.txt"]);
            w.write("mod.txt", "old content\n");
        }),
        ("deleted", "gone.txt", |w| fs::remove_file(w.root.join("gone.txt")).unwrap()),
        ("mode changed", "exec.sh", |w| {
            fs::set_permissions(w.root.join("exec.sh"), PermissionsExt::from_mode(0o755)).unwrap();
        }),
        ("untracked", "added/deep/n.txt", |w| _ = w.write("added/deep/n.txt", "mine")),
        ("same content untracked", "added/deep/n.txt", |w| _ = w.write("added/deep/n.txt", "added\n")),
        ("ignored (M-E11)", "added/deep/n.txt", |w| {
            put(&w.root, ".git/info/exclude", "n.txt\n");
            w.write("added/deep/n.txt", "mine");
        }),
        ("file for a directory", "added", |w| _ = w.write("added", "mine")),
        ("link for a directory", "added", |w| symlink("/tmp", w.root.join("added")).unwrap()),
        ("stranger in a directory that becomes a file", "to-file/own.log", |w| {
            _ = w.write("to-file/own.log", "mine");
        }),
        ("intent to add", "added/deep/n.txt", |w| {
            w.write("added/deep/n.txt", "mine").git(&["add", "-N", "added/deep/n.txt"]);
        }),
        ("assume-unchanged", "mod.txt", |w| {
            w.git(&["update-index", "--assume-unchanged", "mod.txt"]);
            w.write("mod.txt", "mine");
        }),
        ("skip-worktree", "mod.txt", |w| {
            w.git(&["update-index", "--skip-worktree", "mod.txt"]);
            w.write("mod.txt", "mine");
        }),
    ];
    for (name, path, mess) in cases {
        let world = World::new();
        let (base, merge) = rich(&world);
        users_work(&world);
        mess(&world);
        let index = world.git(&["ls-files", "-s", "-v"]);
        let before = (world.manifest(), world.status());
        let landed = land(&world.open(), &to_main(&base, &merge)).unwrap();
        assert_eq!(landed, LandAttempt::Dirty { paths: vec![path.as_bytes().to_vec()] }, "{name}");
        assert_eq!((world.manifest(), world.status()), before, "{name}");
        assert_eq!(world.git(&["ls-files", "-s", "-v"]), index, "{name}");
        assert_eq!(world.oid("main"), base, "{name}");
        assert!(!world.root.join(".git/refs/heads/main.lock").exists(), "{name}");
    }
}

#[test]
fn m_e12_m_e13_busy_repositories_are_left_alone() {
    let marks =
        ["MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "BISECT_LOG", "rebase-merge/x", "rebase-apply/x"];
    for mark in marks {
        let world = World::new();
        let (base, merge) = rich(&world);
        put(&world.root.join(".git"), mark, format!("{base}\n"));
        let repo = world.open();
        assert_eq!(repo.operations(&repo.target(None).unwrap()).unwrap().len(), 1, "{mark}");
        assert!(matches!(land(&repo, &to_main(&base, &merge)).unwrap(), LandAttempt::Busy { .. }), "{mark}");
        assert_eq!(world.read("mod.txt"), "old content\n");
    }
    let world = World::new();
    let (base, merge) = rich(&world);
    let repo = world.open();
    for lock in [".git/index.lock", ".git/refs/heads/main.lock"] {
        world.write(lock, "");
        let before = world.manifest();
        assert!(matches!(land(&repo, &to_main(&base, &merge)).unwrap(), LandAttempt::Busy { .. }), "{lock}");
        assert!(world.root.join(lock).exists(), "somebody else's lock stays");
        assert_eq!(world.manifest(), before);
        fs::remove_file(world.root.join(lock)).unwrap();
    }
    // A rebase of the branch, which has HEAD detached meanwhile.
    world.git(&["checkout", "-q", "--detach"]);
    put(&world.root, ".git/rebase-merge/head-name", "refs/heads/main\n");
    assert!(matches!(land(&repo, &to_main(&base, &merge)).unwrap(), LandAttempt::Busy { .. }));
}

#[test]
fn r9_a_failing_move_is_put_back() {
    // The user's own filter fails on one path: seen before anything is touched, or, when the change itself
    // turns the filter on, only after other paths were written.
    for seen_before in [true, false] {
        let world = World::new();
        let bad = world.write("bad.bin", "old\n").commit("bad");
        world.git(&["config", "filter.bad.smudge", "false"]);
        world.git(&["config", "filter.bad.clean", "cat"]);
        world.git(&["config", "filter.bad.required", "true"]);
        if seen_before {
            put(&world.root, ".git/info/attributes", "bad.bin filter=bad\n");
        }
        let (base, work) = world.made(|tree| {
            put(tree, "bad.bin", "new\n");
            put(tree, "a.txt", "new\n");
            put(tree, "zzz/added", "new\n");
            fs::remove_file(tree.join("dir/b.txt")).unwrap();
            if !seen_before {
                put(tree, ".gitattributes", "bad.bin filter=bad\n");
            }
        });
        assert_eq!(base, bad);
        let repo = world.open();
        let (merge, _) = commit_of(built(&repo, BuildStrategy::NoFf, &base, &base, &work));
        let before = (world.manifest(), world.git(&["ls-files", "-s"]));
        let landed = land(&repo, &to_main(&base, &merge)).unwrap();
        assert!(matches!(landed, LandAttempt::Busy { .. }), "{landed:?}");
        assert_eq!(world.oid("main"), base);
        assert_eq!((world.manifest(), world.git(&["ls-files", "-s"])), before, "{landed:?}");
    }
}

/// One state a crash can leave a path in.
#[derive(Debug, Clone, Copy)]
enum Left {
    Old,
    New,
    Absent,
    Torn,
}

#[test]
fn i1_roll_forward_from_every_half_moved_state() {
    let template = World::new();
    let (base, merge) = rich(&template);
    users_work(&template);
    let paths: Vec<Vec<u8>> =
        change::changed(&template.open(), &base, &merge).unwrap().into_iter().map(|one| one.path).collect();
    let all = [Left::Old, Left::New, Left::Absent, Left::Torn];
    let mut states: Vec<(Vec<Left>, bool, bool)> = Vec::new();
    for seed in 0..24_usize {
        let pick = |n: usize| all[(seed * 7 + n * (seed + 3) + n * n) % 4];
        states.push(((0..paths.len()).map(pick).collect(), seed % 3 == 0, seed % 4 == 1));
    }
    for left in all {
        states.push((vec![left; paths.len()], matches!(left, Left::New), false));
    }
    for (n, (lefts, index_new, branch_new)) in states.into_iter().enumerate() {
        let world = World { dir: TempDir::new().unwrap(), root: PathBuf::new() };
        let world = World { root: world.dir.path().join("repo"), ..world };
        copy(template.dir.path(), world.dir.path());
        let status = world.status();
        let repo = world.open();
        for (path, left) in paths.iter().zip(&lefts) {
            leave(&world, &repo, &base, &merge, path, *left);
        }
        if index_new {
            let listing = template.git(&["diff-tree", "-r", "-z", base.as_str(), merge.as_str()]);
            move_index(&world, listing.as_bytes());
        }
        if branch_new {
            world.git(&["update-ref", "refs/heads/main", merge.as_str()]);
        }
        let since = SystemTime::now();
        for lock in [".git/index.lock", ".git/HEAD.lock", ".git/refs/heads/main.lock"].iter().take(n % 4) {
            world.write(lock, "");
        }
        // The user edits something else after the crash.
        world.write("other.txt", "edited after the crash\n");
        let step = to_main(&base, &merge);
        let recovered = recover(&repo, &step, since).unwrap();
        let untouched = lefts.iter().all(|left| matches!(left, Left::Old)) && !index_new && !branch_new;
        let expected = match (untouched, index_new && branch_new) {
            (true, _) => Recovered::NotStarted,
            (false, true) => Recovered::AlreadyDone,
            (false, false) => Recovered::Completed,
        };
        assert_eq!(recovered, expected, "{n} {lefts:?} {index_new} {branch_new}");
        if expected != Recovered::Completed {
            continue;
        }
        assert_eq!(world.oid("main"), merge, "{n}");
        let mut wanted: Vec<String> = status.lines().map(str::to_owned).collect();
        wanted.push(" M other.txt".to_owned());
        wanted.sort();
        let mut now: Vec<String> = world
            .git(&["status", "--porcelain", "--untracked-files=all", "--ignored"])
            .lines()
            .map(str::to_owned)
            .collect();
        now.sort();
        assert_eq!(now, wanted, "{n} {lefts:?} {index_new} {branch_new}");
        assert_eq!(world.read("other.txt"), "edited after the crash\n");
        assert_eq!(recover(&repo, &step, SystemTime::now()).unwrap(), Recovered::AlreadyDone, "{n}");
    }
}

/// Kills git's own move of the tree at every file system call, then recovers.
#[test]
#[ignore = "needs strace"]
fn m_a6_i1_kill_sweep() {
    const CALLS: &str = "openat,write,pwrite64,rename,unlink,unlinkat,mkdir,rmdir,close,symlink,chmod,fchmod";
    let template = World::new();
    let (base, merge) = rich(&template);
    users_work(&template);
    for n in 1..1000 {
        let world = World { dir: TempDir::new().unwrap(), root: PathBuf::new() };
        let world = World { root: world.dir.path().join("repo"), ..world };
        copy(template.dir.path(), world.dir.path());
        let status = world.status();
        let since = SystemTime::now();
        let killed = Command::new("strace")
            .args(["-f", "-o", "/dev/null", "-e", &format!("trace={CALLS}")])
            .args(["-e", &format!("inject={CALLS}:signal=KILL:when={n}")])
            .args(["git", "read-tree", "-m", "-u", base.as_str(), merge.as_str()])
            .current_dir(&world.root)
            .status()
            .unwrap();
        let repo = world.open();
        let step = to_main(&base, &merge);
        let mut recovered = recover(&repo, &step, since).unwrap();
        if recovered == Recovered::NotStarted {
            assert!(matches!(land(&repo, &step).unwrap(), LandAttempt::Moved { .. }), "{n}");
            recovered = Recovered::Completed;
        }
        assert_eq!(recovered, Recovered::Completed, "{n}");
        assert_eq!((world.oid("main"), world.status()), (merge.clone(), status), "{n}");
        if killed.success() {
            return;
        }
    }
}

fn copy(from: &Path, to: &Path) {
    let done = Command::new("cp").arg("-a").arg(from.join(".")).arg(to).status().unwrap();
    assert!(done.success());
}

/// Leaves one path as a crash could have, as far as the paths around it allow.
fn leave(world: &World, repo: &Repo, base: &ObjectId, merge: &ObjectId, path: &[u8], left: Left) {
    let side = |commit: &ObjectId| change::blob_at(repo, commit, path).unwrap();
    let file = world.root.join(OsStr::from_bytes(path));
    let (old, new) = (side(base), side(merge));
    let bytes = match left {
        Left::Old => return,
        Left::New => new,
        Left::Torn => new.map(|bytes| bytes[..bytes.len() / 2].to_vec()),
        Left::Absent => None,
    };
    let link = path == b"to-link";
    if old.is_some() || bytes.is_none() {
        fs::remove_file(&file).ok();
    }
    let Some(bytes) = bytes else { return };
    if fs::symlink_metadata(&file).is_ok_and(|meta| meta.is_dir()) || file.parent().unwrap().is_file() {
        return;
    }
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    if link {
        // A link is made at once or not at all.
        symlink("mod.txt", &file).unwrap();
        return;
    }
    fs::write(&file, bytes).unwrap();
    if path == b"exec.sh" {
        fs::set_permissions(&file, PermissionsExt::from_mode(0o755)).unwrap();
    }
}

fn move_index(world: &World, listing: &[u8]) {
    let mut fields = listing.split(|byte| *byte == 0);
    while let (Some(meta), Some(path)) = (fields.next(), fields.next()) {
        let meta = String::from_utf8_lossy(meta).into_owned();
        let words: Vec<&str> = meta.trim_start_matches(':').split(' ').collect();
        let path = String::from_utf8_lossy(path).into_owned();
        if words[1] == "000000" {
            world.git(&["update-index", "--force-remove", "--", &path]);
        } else {
            let info = format!("{},{},{path}", words[1], words[3]);
            world.git(&["update-index", "--add", "--replace", "--cacheinfo", &info]);
        }
    }
}

#[test]
fn i1_recovery_stops_at_the_users_work() {
    type Mess = fn(&World);
    let cases: &[(&str, &str, Mess)] = &[
        ("edited", "mod.txt", |w| _ = w.write("mod.txt", "MY EDIT\n")),
        ("own file at an added path", "added/deep/n.txt", |w| _ = w.write("added/deep/n.txt", "MINE\n")),
        ("edited where deleted", "gone.txt", |w| _ = w.write("gone.txt", "KEEP\n")),
        ("staged", "mod.txt", |w| {
            w.write("mod.txt", "MY EDIT\n").git(&["add", "mod.txt"]);
            w.write("mod.txt", "old content\n");
        }),
        ("link retargeted", "to-link", |w| {
            fs::remove_file(w.root.join("to-link")).unwrap();
            symlink("elsewhere", w.root.join("to-link")).unwrap();
        }),
    ];
    for (name, path, mess) in cases {
        let world = World::new();
        let (base, merge) = rich(&world);
        // Half moved: one path is new already.
        fs::set_permissions(world.root.join("exec.sh"), PermissionsExt::from_mode(0o755)).unwrap();
        mess(&world);
        let before = world.manifest();
        let recovered = recover(&world.open(), &to_main(&base, &merge), SystemTime::now()).unwrap();
        let Recovered::Stopped { path: at, .. } = recovered else { panic!("{name}: {recovered:?}") };
        assert_eq!(at, path.as_bytes(), "{name}");
        assert_eq!((world.manifest(), world.oid("main")), (before, base), "{name}");
    }
    let world = World::new();
    let (base, merge) = rich(&world);
    let repo = world.open();
    let step = to_main(&base, &merge);
    // M-E14: a lock from before the move is somebody else's; so is one that a living process has open.
    let since = SystemTime::now();
    world.write(".git/index.lock", "");
    let later = SystemTime::now() + Duration::from_secs(60);
    assert!(matches!(recover(&repo, &step, later).unwrap(), Recovered::Stopped { .. }));
    let held = fs::File::open(world.root.join(".git/index.lock")).unwrap();
    assert!(matches!(recover(&repo, &step, since).unwrap(), Recovered::Stopped { .. }));
    assert!(world.root.join(".git/index.lock").exists());
    drop(held);
    assert_eq!(recover(&repo, &step, since).unwrap(), Recovered::NotStarted);
    let moved = world.write("x", "x").commit("moved on");
    assert_eq!(
        recover(&repo, &step, SystemTime::now()).unwrap(),
        Recovered::BranchMoved { now: Some(moved) }
    );
}

#[test]
fn i8_m_f18_verification_notices_the_wrong_tree() {
    let world = World::new();
    let (base, merge) = rich(&world);
    let repo = world.open();
    let tree = repo.tree_of(&merge).unwrap();
    let step = to_main(&base, &merge);
    let check =
        |tree: &ObjectId, step: &Move, allowed| verify(&repo, step, tree, allowed).map_err(|e| e.to_string());
    assert!(check(&tree, &step, None).unwrap_err().contains("does not contain"));
    land(&repo, &step).unwrap();
    check(&tree, &step, None).unwrap();
    assert!(check(&repo.tree_of(&base).unwrap(), &step, None).unwrap_err().contains("was tested"));
    let some = BTreeSet::from([b"mod.txt".to_vec()]);
    assert!(check(&tree, &step, Some(&some)).unwrap_err().contains("did not touch"));
    world.write("later", "x").commit("later");
    check(&tree, &step, None).unwrap();
    assert!(land(&repo, &to_main(&world.oid("main"), &merge)).is_err(), "never backwards");
}

#[test]
fn m_f16_a_race_for_the_branch_has_one_winner() {
    let world = World::new();
    let (base, merge) = rich(&world);
    let repo = world.open();
    let rival = world.git(&["commit-tree", "-p", base.as_str(), "-m", "rival", "HEAD^{tree}"]);
    std::thread::scope(|scope| {
        let landing = scope.spawn(|| land(&repo, &to_main(&base, &merge)).unwrap());
        let swap = world.try_git(&world.root, &["update-ref", "refs/heads/main", &rival, base.as_str()]);
        let landed = landing.join().unwrap();
        assert_ne!(swap.status.success(), matches!(landed, LandAttempt::Moved { .. }), "{landed:?}");
    });
    assert!(["M", ""].contains(&world.git(&["diff", "--name-status", "HEAD"]).get(..1).unwrap_or("")));
}
