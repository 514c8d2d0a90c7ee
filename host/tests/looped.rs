//! The hands of the loop: the file that people write too, the archives, the battery that is really executed.

#![expect(clippy::unwrap_used, reason = "a test that cannot set up its world should stop at once")]

use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use archeflow_core::model::{CheckEnd, LoopPolicy, Speaker};
use archeflow_core::settings::KeepSettings;
use archeflow_core::strategies::agent_loop::cyclefile::Ending;
use archeflow_host::agent_loop::battery::{self, BatteryResults, Wanted};
use archeflow_host::agent_loop::cycle::{CycleFile, PATH, unwritten};
use archeflow_host::agent_loop::{archive, diet};
use archeflow_host::git::{GitEnv, ObjectId, Repo};
use archeflow_host::platform::children;
use archeflow_host::proc;
use archeflow_host::store::files;
use archeflow_host::store::places::Places;
use archeflow_host::world::{World, WorldSandbox, allowed_env};
use tempfile::TempDir;

struct Tree {
    dir: TempDir,
}

impl Tree {
    fn new() -> Tree {
        let dir = TempDir::new().unwrap();
        fs::create_dir_all(dir.path().join("tree")).unwrap();
        Tree { dir }
    }

    fn root(&self) -> PathBuf {
        self.dir.path().join("tree")
    }

    fn file(&self) -> CycleFile {
        CycleFile::new(&self.root(), &self.dir.path().join("state"))
    }

    fn text(&self) -> String {
        fs::read_to_string(self.root().join(PATH)).unwrap()
    }

    fn write(&self, bytes: impl AsRef<[u8]>) {
        fs::create_dir_all(self.root().join("docs/context")).unwrap();
        fs::write(self.root().join(PATH), bytes).unwrap();
    }
}

#[test]
fn pj_32_existing_text_is_kept_and_a_person_writes_in_between() {
    let tree = Tree::new();
    let file = tree.file();
    let first = file.append(&unwritten(), Speaker::Human, "the goal\n").unwrap().past.seal;
    let before = tree.text();
    tree.write(format!("{before}\nMy remark, without a line end"));
    let mine = tree.text();
    assert_eq!(file.look().unwrap().past.fresh, "\nMy remark, without a line end");
    let second = file.append(&first, Speaker::Planner, "a plan\n").unwrap().past.seal;
    assert!(tree.text().starts_with(&mine), "{}", tree.text());
    // The same order, performed once more after a crash.
    assert_eq!(file.append(&first, Speaker::Planner, "a plan\n").unwrap().past.seal, second);
    assert_eq!(tree.text().matches("a plan").count(), 1);
    let now = file.look().unwrap();
    assert_eq!((now.past.blocks, now.past.seal, now.past.fresh.as_str()), (2, second, ""));
}

/// What was written behind the last block, was heard or not, and then stood before ours.
#[test]
fn pc_04_unread_text_is_distinguished_from_read_text() {
    for (heard, added, unheard) in [
        ("", "", ""),
        ("", "Mind the tax.\n", "Mind the tax.\n"),
        ("Yes.\n", "", ""),
        ("Yes, without a line end", "", "\n"),
        ("Yes, without a line end", "\nMind the tax.", "\nMind the tax.\n"),
        ("Yes.\n\nAnd more.\n", "Mind the tax.\n", "Mind the tax.\n"),
    ] {
        let tree = Tree::new();
        let file = tree.file();
        let first = file.append(&unwritten(), Speaker::Human, "the goal\n").unwrap().past.seal;
        let digest = files::digest(heard.as_bytes());
        tree.write(format!("{}{heard}{added}", tree.text()));
        for _ in ["at once", "once more, after a crash"] {
            let seen = file.append(&first, Speaker::Planner, "a plan\n").unwrap();
            assert_eq!(seen.unread(&digest), unheard, "{heard:?} {added:?}");
        }
    }
    let tree = Tree::new();
    tree.write("Changed after it was heard.\n");
    let seen = tree.file().append(&unwritten(), Speaker::Planner, "a plan\n").unwrap();
    assert_eq!(seen.unread(&files::digest(b"As it was.\n")), "Changed after it was heard.\n");
}

#[test]
fn pj_32_an_edited_past_is_refused_with_its_place_and_nothing_is_written() {
    type Edit = fn(&str) -> String;
    let rows: [(&str, Edit, &str); 6] = [
        (
            "a word of ours",
            |text| text.replace("a plan", "another plan"),
            "lines 5 to 6: block 2, of the Planner, was edited",
        ),
        (
            "a word before",
            |text| text.replace("the goal", "the gaol"),
            "lines 2 to 3: block 1, of the Human, was edited",
        ),
        ("a mark", |text| text.replace("begin 2", "begin 7"), "line"),
        ("emptied", |_| String::new(), "the blocks of this loop are gone"),
        (
            "cut short",
            |text| text.split("<!-- archeflow: begin 2").next().unwrap().to_owned(),
            "block 1 is not the last one",
        ),
        ("line ends", |text| text.replace('\n', "\r\n"), "a mark that is none of ours"),
    ];
    for (name, edit, why) in rows {
        let tree = Tree::new();
        let file = tree.file();
        let first = file.append(&unwritten(), Speaker::Human, "the goal").unwrap().past.seal;
        let second = file.append(&first, Speaker::Planner, "a plan").unwrap().past.seal;
        let edited = edit(&tree.text());
        tree.write(&edited);
        let error = file.append(&second, Speaker::Actor, "done").unwrap_err().to_string();
        assert!(error.contains(why) && error.contains("put the text back"), "{name}: {error}");
        assert_eq!(tree.text(), edited, "{name}");
    }
}

#[test]
fn pj_32_any_bytes_are_reported_and_kept() {
    let rows: [(&[u8], &str); 4] = [
        (b"one\ntwo \xff\n", "current_cycle.md:2 is not UTF-8"),
        (b"\xff\xfeh\x00i\x00", "current_cycle.md:1 is not UTF-8"),
        (b"<!-- archeflow: begin 1 Human -->\n", "lines 1 to 1: a mark that is none of ours"),
        (&[0_u8; 9 * 1024 * 1024], "larger than"),
    ];
    for (bytes, why) in rows {
        let tree = Tree::new();
        tree.write(bytes);
        let error = tree.file().append(&unwritten(), Speaker::Human, "x").unwrap_err().to_string();
        assert!(error.contains(why), "{error}");
        assert_eq!(fs::read(tree.root().join(PATH)).unwrap(), bytes);
        let error = tree.file().look().unwrap_err().to_string();
        assert!(error.contains(why), "{error}");
    }
}

#[test]
fn r19_no_link_leads_out_of_the_tree() {
    for place in ["docs", "docs/context", PATH, "docs/context/archive"] {
        let tree = Tree::new();
        let outside = tree.dir.path().join("outside");
        fs::create_dir_all(outside.join("context/archive")).unwrap();
        fs::write(outside.join("victim"), "theirs").unwrap();
        let link = tree.root().join(place);
        fs::create_dir_all(link.parent().unwrap()).unwrap();
        symlink(if place == PATH { outside.join("victim") } else { outside.clone() }, &link).unwrap();
        let wrote = tree.file().append(&unwritten(), Speaker::Human, "x").map(drop);
        let kept = archive::write(&tree.file(), "2026-11-15", Ending::Success, &[]).map(drop);
        let error = wrote.and(kept).unwrap_err().to_string();
        assert!(error.contains("symbolic link"), "{place}: {error}");
        assert_eq!(fs::read_to_string(outside.join("victim")).unwrap(), "theirs");
        assert!(!outside.join("context/current_cycle.md").exists());
        assert_eq!(fs::read_dir(&outside).unwrap().count(), 2, "{place}");
    }
}

#[test]
fn pj_32_the_file_keeps_the_rights_its_owner_gave_it() {
    let tree = Tree::new();
    tree.write("hello\n");
    fs::set_permissions(tree.root().join(PATH), fs::Permissions::from_mode(0o640)).unwrap();
    tree.file().append(&unwritten(), Speaker::Human, "x").unwrap();
    let mode = fs::metadata(tree.root().join(PATH)).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o640);
}

#[test]
fn pj_32_two_writers_lose_nothing() {
    let tree = Tree::new();
    let writer = |speaker: Speaker| {
        let file = tree.file();
        move || {
            for n in 0..20 {
                loop {
                    let seal = file.look().unwrap().past.seal;
                    if file.append(&seal, speaker, &format!("{} {n} said", speaker.name())).is_ok() {
                        break;
                    }
                }
            }
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(writer(Speaker::Actor));
        scope.spawn(writer(Speaker::Judge));
    });
    assert_eq!(tree.file().look().unwrap().past.blocks, 40);
    assert_eq!(tree.text().matches(" said\n").count(), 40);
}

#[test]
fn pj_55_to_pj_57_archives_have_their_names_and_are_never_written_over() {
    let tree = Tree::new();
    let file = tree.file();
    let blockers = vec!["tests fail".to_owned()];
    let rows: [(&str, Ending, &[String], &str); 4] = [
        ("one", Ending::Success, &[], "docs/context/archive/2026-11-15_cycle-001.md"),
        ("one", Ending::Success, &[], "docs/context/archive/2026-11-15_cycle-001.md"),
        ("two", Ending::Incomplete, &blockers, "docs/context/archive/2026-11-15_cycle-002_incomplete.md"),
        ("three", Ending::Failed, &blockers, "docs/context/archive/2026-11-15_cycle-003_failed.md"),
    ];
    for (text, ending, blockers, expected) in rows {
        tree.write(text);
        assert_eq!(archive::write(&file, "2026-11-15", ending, blockers).unwrap(), expected);
        let kept = fs::read_to_string(tree.root().join(expected)).unwrap();
        assert!(kept.starts_with(text), "{kept}");
        assert_eq!(kept.contains("- tests fail"), !blockers.is_empty(), "{kept}");
    }
    assert_eq!(archive::all(&file).unwrap().len(), 3);
}

/// A repository whose second commit is the step at hand.
struct Scene {
    _dir: TempDir,
    world: World,
    base: String,
    commit: String,
}

impl Scene {
    fn new(before: &[(&str, &str)], after: &[(&str, &str)]) -> Scene {
        proc::become_subreaper();
        let dir = TempDir::new().unwrap();
        let (root, home, state) =
            (dir.path().join("repo"), dir.path().join("home"), dir.path().join("state"));
        for folder in [&root, &home, &state] {
            fs::create_dir_all(folder).unwrap();
        }
        fs::write(home.join(".gitconfig"), "[user]\n\tname = User\n\temail = user@example.org\n").unwrap();
        let git = |args: &[&str]| {
            let mut git = Command::new("git");
            git.args(args).current_dir(&root).env_clear().env("PATH", std::env::var_os("PATH").unwrap());
            said(git.env("HOME", &home).env("GIT_CONFIG_NOSYSTEM", "1")).trim().to_owned()
        };
        let commit = |files: &[(&str, &str)], message: &str| {
            for (path, text) in files {
                let path = root.join(path);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, text).unwrap();
            }
            git(&["add", "-A"]);
            git(&["commit", "-q", "--allow-empty", "-m", message]);
            git(&["rev-parse", "HEAD"])
        };
        git(&["init", "-q", "-b", "main"]);
        let (base, commit) = (commit(before, "one"), commit(after, "two"));
        let world = world(&root, &home, state);
        Scene { _dir: dir, world, base, commit }
    }

    fn run(&self, tests: Option<&str>, policy: &LoopPolicy) -> BatteryResults {
        let wanted = Wanted {
            seq: 7,
            base: &self.base,
            commit: &self.commit,
            tests,
            part: false,
            limit_ms: 120_000,
            policy,
        };
        battery::run(&self.world, wanted).unwrap()
    }
}

fn said(command: &mut Command) -> String {
    let mut child = children::spawn(command.stdout(Stdio::piped())).unwrap();
    let mut text = String::new();
    child.stdout.take().unwrap().read_to_string(&mut text).unwrap();
    assert!(children::wait(&mut child).unwrap().success(), "{command:?}");
    text
}

fn world(root: &Path, home: &Path, state: PathBuf) -> World {
    let env = GitEnv::new([("HOME".into(), home.into()), ("GIT_CONFIG_NOSYSTEM".into(), "1".into())]);
    let repo = Repo::open(root, &state, &env).unwrap();
    let places = Places::open(root).unwrap();
    fs::create_dir_all(places.artifacts().join("r1")).unwrap();
    let all = [("PATH", std::env::var_os("PATH").unwrap()), ("HOME", home.into())];
    let env = allowed_env(all.map(|(name, value)| (name.into(), value)), &[]);
    let tag = format!("agent_loop-{}", root.display());
    World::new(
        repo,
        places,
        state,
        "r1".to_owned(),
        tag,
        PathBuf::new(),
        (env, Vec::new()),
        BTreeMap::new(),
        WorldSandbox::Off,
        KeepSettings::default(),
    )
}

fn linted(linter: &str) -> LoopPolicy {
    LoopPolicy { linter: Some(linter.to_owned()), ..LoopPolicy::default() }
}

#[test]
fn pj_44_the_battery_runs_on_the_commit_itself() {
    let scene = Scene::new(&[("a.txt", "1\n")], &[("a.txt", "2\n")]);
    let plain = LoopPolicy::default();
    let rows: [(Option<&str>, &LoopPolicy, CheckEnd, CheckEnd, &str); 8] = [
        (Some("grep -q 2 a.txt && echo 3 passed"), &plain, CheckEnd::Passed, CheckEnd::Missing, ""),
        (Some("grep -q 1 a.txt"), &plain, CheckEnd::Failed, CheckEnd::Missing, ""),
        (None, &plain, CheckEnd::Missing, CheckEnd::Missing, "no test command is set"),
        (
            Some("no-such-program"),
            &plain,
            CheckEnd::Crashed,
            CheckEnd::Missing,
            "its program is not installed",
        ),
        (Some("true"), &linted("grep -q 2 a.txt"), CheckEnd::Passed, CheckEnd::Passed, ""),
        (Some("true"), &linted("echo bad; exit 1"), CheckEnd::Passed, CheckEnd::Failed, ""),
        (Some("true"), &linted("no-such-linter"), CheckEnd::Passed, CheckEnd::Missing, ""),
        (Some("kill -9 $$"), &plain, CheckEnd::Crashed, CheckEnd::Missing, "killed by signal 9"),
    ];
    for (tests, policy, tested, linter, why) in rows {
        let report = scene.run(tests, policy);
        assert_eq!(report.end(&["tests"]), tested, "{tests:?}: {report:?}");
        assert_eq!(report.end(&["linter", "formatter"]), linter, "{tests:?}: {report:?}");
        assert_eq!(report.security(), CheckEnd::Passed, "{report:?}");
        assert_eq!(report.ran[0].why, why, "{tests:?}");
        let counted = tests.is_some_and(|tests| tests.contains("3 passed")).then_some(3);
        assert_eq!(report.ran[0].counts.map(|counts| counts.passed), counted, "{tests:?}");
    }
}

#[test]
fn pj_44_tools_are_detected_from_the_projects_files() {
    type Files = &'static [(&'static str, &'static str)];
    let rows: [(Files, &[&str]); 8] = [
        (&[("Cargo.toml", "")], &["cargo clippy -q --all-targets", "cargo fmt --all -- --check"]),
        (&[("package.json", r#"{"scripts": {"lint": "eslint ."}}"#)], &["npm run --silent lint"]),
        (&[("package.json", r#"{"scripts": {"build": "lint"}}"#)], &[]),
        (&[("package.json", "not json")], &[]),
        (&[("pyproject.toml", "[tool.ruff]\n[tool.black]\n")], &["ruff check .", "black --check -q ."]),
        (&[("pyproject.toml", "[project]\n")], &[]),
        (&[("go.mod", "module x\n")], &["go vet ./...", "gofmt"]),
        (&[], &[]),
    ];
    for (files, commands) in rows {
        let tree = Tree::new();
        for (path, text) in files {
            fs::write(tree.root().join(path), text).unwrap();
        }
        let found: Vec<&str> = battery::detected(&tree.root()).map(|tool| tool.command).collect();
        assert_eq!(found.len(), commands.len(), "{files:?}: {found:?}");
        for (found, wanted) in found.iter().zip(commands) {
            assert!(found.contains(wanted), "{files:?}: {found:?}");
        }
    }
}

#[test]
fn pj_44_a_tool_that_is_not_installed_is_missing_and_one_that_fails_fails() {
    let scene = Scene::new(&[], &[("pyproject.toml", "[tool.ruff]\n"), ("a.txt", "1\n")]);
    let none = scene.run(None, &LoopPolicy::default());
    // Where this machine has it, it passes on nothing.
    let installed = !said(Command::new("sh").args(["-c", "command -v ruff || :"])).is_empty();
    assert_eq!(
        none.end(&["linter"]),
        if installed { CheckEnd::Passed } else { CheckEnd::Missing },
        "{none:?}"
    );
    let off = scene.run(None, &LoopPolicy { detect: false, ..LoopPolicy::default() });
    assert_eq!(off.ran[1].why, "none was found for this project");
}

#[test]
fn pj_44_what_a_step_gives_away_is_found_with_its_place_and_shown_masked() {
    let key = ["AK", "IAIOSFODNN7QRTWPKE"].concat();
    let text = format!("one\n++ b/other.py\nkey = '{key}'\n");
    let scene = Scene::new(
        &[("a.py", "one\n"), ("old.py", &format!("k='{key}'\n"))],
        &[("a.py", &text), ("tests/t.py", "password = 'hunter2hunter'\n")],
    );
    let report = scene.run(None, &LoopPolicy::default());
    assert_eq!(report.security(), CheckEnd::Failed);
    let scan = report.scan.unwrap();
    let found: Vec<String> = scan
        .spotted
        .iter()
        .map(|leak| format!("{}:{} {} {}", leak.path, leak.line, leak.kind, leak.shown))
        .collect();
    assert_eq!(found, ["a.py:3 cloud access key AKIA… (20 characters)"]);
    assert_eq!(scan.lines, 3);
}

#[test]
fn pj_31_pj_33_documents_and_references() {
    let docs = [
        ("docs/agent_docs/CODEBASE.md", "c"),
        ("docs/agent_docs/DECISIONS.md", "d"),
        ("docs/agent_docs/GOALS.md", "g"),
        ("docs/agent_docs/QUALITY.md", "q"),
        ("docs/agent_docs/old/GOALS.md", "g"),
        ("src/till.sh", "x"),
    ];
    let scene = Scene::new(&[], &docs);
    let commit = ObjectId::parse(scene.commit.as_bytes()).unwrap();
    let repo = &scene.world.repo;
    assert_eq!(diet::names(repo, &commit).unwrap(), ["CODEBASE", "DECISIONS", "GOALS", "QUALITY"]);
    assert_eq!(diet::text(repo, &commit, "GOALS").unwrap().as_deref(), Some("g"));
    assert_eq!(diet::text(repo, &commit, "GONE").unwrap(), None);
    let plan = "Change `src/till.sh:3` and `src/gone.sh`.\nCreate `src/new.sh`. Run `cargo test`.";
    assert_eq!(diet::absent(repo, &commit, plan).unwrap(), ["src/gone.sh"]);
}
