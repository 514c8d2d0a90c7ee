//! Reproductions that reviewers attach, run for real: what they prove, and what they can't reach.

#![expect(clippy::unwrap_used, reason = "a test that cannot set up its world should stop at once")]
#![expect(clippy::wildcard_enum_match_arm, reason = "every other message is a failed test")]

use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use archeflow_core::event::{EvidenceDone, EvidenceStart, Order, Report};
use archeflow_core::model::{Reproduction, Scratch};
use archeflow_core::rules::trial;
use archeflow_core::run::Run;
use archeflow_core::settings::KeepSettings;
use archeflow_host::executors::{self, ExecutorFault, Message};
use archeflow_host::git::{GitEnv, Repo};
use archeflow_host::platform::children;
use archeflow_host::proc;
use archeflow_host::store::places::Places;
use archeflow_host::world::{World, WorldSandbox, allowed_env};
use tempfile::TempDir;

/// Longer than anything here takes on a busy machine.
const LONG: u64 = 120_000;

/// A repository with two commits: the script answers 42 in the first, 41 in the second.
struct Scene {
    dir: TempDir,
    world: Arc<World>,
    base: String,
    change: String,
}

impl Scene {
    fn new() -> Scene {
        proc::become_subreaper();
        let dir = TempDir::new().unwrap();
        let (root, home, state) =
            (dir.path().join("repo"), dir.path().join("home"), dir.path().join("state"));
        for folder in [&root, &home, &state] {
            fs::create_dir_all(folder).unwrap();
        }
        fs::write(home.join(".gitconfig"), "[user]\n\tname = User\n\temail = user@example.org\n").unwrap();
        fs::write(home.join("secret"), "SECRET").unwrap();
        let git = |args: &[&str]| {
            let mut git = Command::new("git");
            git.args(args).current_dir(&root).env_clear().env("PATH", std::env::var_os("PATH").unwrap());
            said(git.env("HOME", &home).env("GIT_CONFIG_NOSYSTEM", "1")).trim().to_owned()
        };
        git(&["init", "-q", "-b", "main"]);
        fs::write(root.join("answer.sh"), "echo 42\n").unwrap();
        fs::write(root.join(".gitignore"), "*.cache\n").unwrap();
        symlink(&home, root.join("out")).unwrap();
        symlink("nowhere", root.join("dangling")).unwrap();
        git(&["add", "-A"]);
        git(&["commit", "-q", "-m", "one"]);
        let base = git(&["rev-parse", "HEAD"]);
        fs::write(root.join("answer.sh"), "echo 41\n").unwrap();
        fs::write(root.join("new.sh"), "exit 3\n").unwrap();
        git(&["add", "-A"]);
        git(&["commit", "-q", "-m", "two"]);
        let change = git(&["rev-parse", "HEAD"]);
        // What the user has not committed is theirs.
        fs::write(root.join("answer.sh"), "echo mine\n").unwrap();
        let world = Arc::new(world(&root, &home, state));
        Scene { dir, world, base, change }
    }

    fn start(&self, reproduction: Reproduction, total_ms: u64) -> EvidenceStart {
        let base = reproduction.regression.then(|| self.base.clone());
        let (archetype, change) = ("guardian".to_owned(), self.change.clone());
        EvidenceStart { archetype, index: 0, cycle: 1, reproduction, change, base, total_ms }
    }

    fn message(&self, start: &EvidenceStart) -> Message {
        let (post, inbox) = channel();
        let order = Order::from(start.clone());
        executors::perform(&self.world, &Run::default(), 7, &order, false, &post).unwrap();
        inbox.recv_timeout(Duration::from_secs(600)).unwrap()
    }

    fn run_within(&self, reproduction: Reproduction, total_ms: u64) -> EvidenceDone {
        match self.message(&self.start(reproduction, total_ms)) {
            Message::Report { order: 7, report: Report::EvidenceDone(done) } => *done,
            other => panic!("{other:?}"),
        }
    }

    fn run(&self, command: &str, files: &[(&str, &str)], regression: bool) -> EvidenceDone {
        self.run_within(reproduction(command, files, regression), LONG)
    }

    /// What a command prints on the change.
    fn prints(&self, command: &str) -> String {
        let done = self.run(command, &[], false);
        assert_eq!(done.change.exit, Some(0), "{command}: {done:?}");
        done.change.tail
    }

    fn root(&self) -> PathBuf {
        self.dir.path().join("repo")
    }
}

/// Started the way the program starts its own, or the sweep after another test's job would take it for a leftover.
fn said(command: &mut Command) -> String {
    let mut child = children::spawn(command.stdout(Stdio::piped())).unwrap();
    let mut text = String::new();
    child.stdout.take().unwrap().read_to_string(&mut text).unwrap();
    assert!(children::wait(&mut child).unwrap().success(), "{command:?}");
    text
}

fn world(root: &std::path::Path, home: &std::path::Path, state: PathBuf) -> World {
    let env = GitEnv::new([("HOME".into(), home.into()), ("GIT_CONFIG_NOSYSTEM".into(), "1".into())]);
    let repo = Repo::open(root, &state, &env).unwrap();
    let places = Places::open(root).unwrap();
    fs::create_dir_all(places.artifacts().join("r1")).unwrap();
    let all = [
        ("PATH", std::env::var_os("PATH").unwrap()),
        ("HOME", home.into()),
        ("ANTHROPIC_API_KEY", "leak-1".into()),
        ("DEPLOY_TOKEN", "leak-2".into()),
        ("SSH_AUTH_SOCK", "leak-3".into()),
        ("AWS_PROFILE", "leak-4".into()),
        ("XDG_CONFIG_HOME", home.into()),
        ("FLAVOUR", "vanilla".into()),
        ("UNLISTED", "leak-5".into()),
    ];
    let listed =
        ["ANTHROPIC_API_KEY", "DEPLOY_TOKEN", "SSH_AUTH_SOCK", "AWS_PROFILE", "FLAVOUR"].map(str::to_owned);
    let env = allowed_env(all.map(|(name, value)| (name.into(), value)), &listed);
    let tag = format!("evidence-{}", root.display());
    World::new(
        repo,
        places,
        state,
        "r1".to_owned(),
        tag,
        "/bin/false".into(),
        (env, vec![]),
        BTreeMap::new(),
        WorldSandbox::Off,
        KeepSettings::default(),
    )
}

fn reproduction(command: &str, files: &[(&str, &str)], regression: bool) -> Reproduction {
    let files = files
        .iter()
        .map(|(path, content)| Scratch { path: (*path).to_owned(), content: (*content).to_owned() });
    Reproduction { command: command.to_owned(), files: files.collect(), regression }
}

#[test]
fn d_05_what_a_reproduction_proves() {
    let scene = Scene::new();
    let is_42 = "test \"$(sh answer.sh)\" = 42";
    let test = ("t/repro.sh", "test \"$(sh answer.sh)\" = 42 || exit 5\n");
    for (command, files, regression, change, base, verdict) in [
        (is_42, &[][..], true, Some(1), Some(Some(0)), "confirmed"),
        (is_42, &[][..], false, Some(1), None, "confirmed"),
        ("sh t/repro.sh", &[test][..], true, Some(5), Some(Some(0)), "confirmed"),
        ("test \"$(sh answer.sh)\" = 41", &[][..], true, Some(0), None, "refuted"),
        ("true", &[][..], false, Some(0), None, "refuted"),
        ("false", &[][..], true, Some(1), Some(Some(1)), "not_reproduced"),
        ("test -e new.sh || exit 9; sh new.sh", &[][..], true, Some(3), Some(Some(9)), "not_reproduced"),
        ("sh new.sh", &[][..], false, Some(3), None, "confirmed"),
        ("no-such-command-here", &[][..], false, Some(127), None, "not_reproduced"),
        ("./answer.sh", &[][..], false, Some(126), None, "not_reproduced"),
        ("kill -SEGV $$", &[][..], false, Some(139), None, "confirmed"),
        ("kill -KILL $$", &[][..], false, Some(137), None, "not_reproduced"),
        ("kill -KILL $PPID; sleep 60", &[][..], false, None, None, "not_reproduced"),
        ("if", &[][..], true, Some(2), Some(Some(2)), "not_reproduced"),
    ] {
        let done = scene.run(command, files, regression);
        let seen = (done.change.exit, done.base.as_ref().map(|base| base.exit));
        assert_eq!(seen, (change, base), "{command}: {done:?}");
        assert_eq!(trial::judge(regression, &done).0.name(), verdict, "{command}: {done:?}");
    }
    assert_eq!(fs::read_to_string(scene.root().join("answer.sh")).unwrap(), "echo mine\n");
}

#[test]
fn d_05_what_it_prints_is_kept_up_to_a_size() {
    let scene = Scene::new();
    let done = scene.run("echo out; echo err >&2; exit 1", &[], false);
    assert_eq!(done.change.tail, "out\nerr");
    let done = scene.run("yes | head -c 9000000; echo end; exit 1", &[], false);
    assert!(done.change.tail.len() <= 1_500 && done.change.tail.ends_with("end"));
    let log = scene.world.artifacts().join("check-evidence-7-change.log");
    assert!(fs::metadata(log).unwrap().len() < 1_100_000);
    assert_eq!(scene.prints("cat"), "", "nobody types");
}

#[test]
fn d_05_what_takes_too_long_is_ended_with_all_it_started() {
    let scene = Scene::new();
    let begun = Instant::now();
    let done = scene.run_within(reproduction("sleep 1000 & sleep 1000", &[], true), 300);
    assert!(begun.elapsed() < Duration::from_secs(600));
    assert_eq!((done.change.exit, &done.base), (None, &None));
    assert_eq!(done.change.why, "stopped after 1 s");
}

#[test]
fn d_05_what_outlives_the_command_is_ended() {
    let scene = Scene::new();
    let pid = scene.dir.path().join("pid");
    // In a session of its own, with nothing of ours open and its parent gone.
    let command = format!(
        "(setsid sh -c 'echo $$ > {0}.new && mv {0}.new {0}; exec sleep 1000' </dev/null >/dev/null 2>&1 &)\n\
         while ! test -e {0}; do sleep 0.01; done; exit 4",
        pid.display()
    );
    assert_eq!(scene.run(&command, &[], false).change.exit, Some(4));
    let left = fs::read_to_string(pid).unwrap();
    let state = fs::read_to_string(format!("/proc/{}/stat", left.trim())).unwrap_or_default();
    let alive = !state.is_empty() && !state.contains(") Z ") && !state.contains(") X ");
    assert!(!alive, "{left} is still there: {state}");
}

#[test]
fn r19_files_are_laid_into_the_copy_and_nowhere_else() {
    let scene = Scene::new();
    let home = scene.dir.path().join("home");
    for path in [
        "out/planted",
        "out",
        "dangling",
        "dangling/x",
        "../planted",
        "t/../../planted",
        "/tmp/planted-by-archeflow",
        ".git/config",
        "t/.Git/x",
        "answer.sh/x",
    ] {
        let done = scene.run("true", &[(path, "planted")], true);
        assert_eq!((done.change.exit, &done.base), (None, &None), "{path}");
        assert!(done.change.why.starts_with("a file of it can't be laid into the copy"), "{path}: {done:?}");
    }
    let names: Vec<_> = fs::read_dir(&home).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names.len(), 2, "{names:?}");
    assert!(!std::path::Path::new("/tmp/planted-by-archeflow").exists());
    // A file that is there is replaced, in the copy.
    let done = scene.run("test \"$(sh answer.sh)\" = 7", &[("answer.sh", "echo 7\n"), ("a/b/c", "x")], false);
    assert_eq!(done.change.exit, Some(0), "{done:?}");
}

#[test]
fn d_05_credentials_and_the_home_are_not_visible() {
    let scene = Scene::new();
    let printed = scene.prints("env");
    assert!(!printed.contains("leak"), "{printed}");
    assert!(printed.contains("FLAVOUR=vanilla"), "{printed}");
    let home = scene.dir.path().join("home").display().to_string();
    assert!(!printed.contains(&format!("={home}\n")), "{printed}");
    let state = scene.dir.path().join("state");
    for name in ["HOME", "TMPDIR"] {
        let place = scene.prints(&format!("touch \"${name}/x\" && echo \"${name}\""));
        assert!(place.starts_with(&state.display().to_string()), "{name}: {place}");
        assert!(!std::path::Path::new(&place).exists(), "{name} is gone afterwards");
    }
}

#[test]
fn d_05_nothing_is_left_for_the_next_one() {
    let scene = Scene::new();
    let dirty = "echo x > a.cache; echo x > b; mkdir -p c/.git d && chmod 0 d; rm answer.sh; echo x > ../planted; exit 1";
    assert_eq!(scene.run(dirty, &[("t/x", "x")], true).change.exit, Some(1));
    assert_eq!(scene.prints("ls -A | sort | tr '\\n' ' '"), ".git .gitignore answer.sh dangling new.sh out");
    assert_eq!(scene.prints("sh answer.sh"), "41");
}

#[test]
fn d_05_refs_index_and_tree_stay_as_they_were() {
    let scene = Scene::new();
    let print = |what: &str| {
        let mut git = Command::new("git");
        let args: &[&str] = match what {
            "refs" => &["for-each-ref"],
            "index" => &["ls-files", "-s"],
            _ => &["status", "--porcelain", "--ignored"],
        };
        git.args(args).current_dir(scene.root()).env("HOME", scene.dir.path().join("home"));
        said(&mut git)
    };
    let before = ["refs", "index", "status"].map(print);
    scene.run(
        "git checkout -q -b evil 2>&1; git add -A; git commit -q --allow-empty -m x; git tag t; exit 1",
        &[],
        true,
    );
    assert_eq!(["refs", "index", "status"].map(print), before);
}

#[test]
fn r8_who_reaches_into_the_users_git_configuration_stops_everything() {
    let scene = Scene::new();
    let config = scene.root().join(".git/config");
    let command = format!("printf '[core]\\n\\tfsmonitor = evil\\n' >> {}", config.display());
    let start = scene.start(reproduction(&command, &[], false), LONG);
    match scene.message(&start) {
        Message::Trouble(ExecutorFault::Tampered { who, .. }) => {
            assert_eq!(who, "a reproduction of the guardian");
        }
        other => panic!("{other:?}"),
    }
}

/// Performed again after the program died in the middle: a copy that was out begins from nothing.
#[test]
fn d_05_an_order_left_open_is_performed_again() {
    let scene = Scene::new();
    let commit = archeflow_host::git::ObjectId::parse(scene.change.as_bytes()).unwrap();
    let slot = scene
        .world
        .pool
        .take(archeflow_host::git::workspace::WorkspaceKind::Scratch, "dead", &commit)
        .unwrap();
    slot.expend().unwrap();
    fs::write(slot.tree().join("left.cache"), "x").unwrap();
    fs::write(slot.tree().join("answer.sh"), "echo 99\n").unwrap();
    drop(slot);
    assert_eq!(scene.prints("sh answer.sh; ls *.cache 2>/dev/null || echo none"), "41\nnone");
}

#[test]
fn d_05_a_missing_commit_is_reported() {
    let scene = Scene::new();
    let mut start = scene.start(reproduction("true", &[], false), LONG);
    start.change = "f".repeat(40);
    match scene.message(&start) {
        Message::Report { report: Report::EvidenceDone(done), .. } => {
            assert!(done.change.why.starts_with("no scratch copy"), "{done:?}");
        }
        other => panic!("{other:?}"),
    }
}
