//! The tools of models without a client, in trees that mean harm.

use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use archeflow_host::model_agent::talk::ToolCall;
use archeflow_host::model_agent::tools::{Bench, offers};

type Result<T = ()> = std::result::Result<T, Box<dyn std::error::Error>>;

struct Scene {
    folder: tempfile::TempDir,
}

impl Scene {
    /// A working copy with traps in it, beside a secret.
    fn new() -> Result<Scene> {
        let scene = Scene { folder: tempfile::tempdir()? };
        let tree = scene.tree();
        std::fs::create_dir_all(tree.join("src/deep"))?;
        std::fs::create_dir_all(tree.join(".git"))?;
        std::fs::write(scene.folder.path().join("secret"), "SECRET")?;
        std::fs::write(tree.join("src/a.txt"), "one\ntwo\nthree\ntwo\n")?;
        std::fs::write(tree.join("src/deep/b.rs"), "fn two() {}\n")?;
        std::fs::write(tree.join("src/binary"), b"two\0two")?;
        std::fs::write(tree.join("src/empty"), "")?;
        std::fs::write(tree.join(".git/config"), "two")?;
        symlink("../secret", tree.join("out"))?;
        symlink("/etc", tree.join("etc"))?;
        symlink(scene.folder.path(), tree.join("up"))?;
        symlink("src/a.txt", tree.join("inside"))?;
        symlink("nowhere", tree.join("dangling"))?;
        let file = std::fs::File::create(tree.join("huge"))?;
        file.set_len(3 << 30)?;
        rustix::fs::mknodat(
            rustix::fs::CWD,
            tree.join("fifo"),
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::RWXU,
            0,
        )?;
        Ok(scene)
    }

    fn tree(&self) -> std::path::PathBuf {
        self.folder.path().join("tree")
    }

    fn use_tool(&self, writes: bool, name: &str, input: &Value) -> (bool, String) {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let variables = vec![("PATH".into(), path)];
        let bench = Bench::new(&self.tree(), writes, variables, Duration::from_secs(600));
        let call = ToolCall { id: "1".to_owned(), name: name.to_owned(), input: input.to_string() };
        let used = bench.work(&call);
        (used.outcome.failed, used.outcome.text)
    }
}

#[test]
fn issue_4_nothing_outside_of_the_working_copy_is_reached() -> Result {
    let scene = Scene::new()?;
    let root = scene.tree().display().to_string();
    for path in [
        "out",
        "etc/hostname",
        "up/secret",
        "inside",
        "dangling",
        "../secret",
        "src/../../secret",
        "/etc/hostname",
        "fifo",
        ".git/config",
        ".GIT/config",
        "src/.git/x",
        "a\u{0}b",
        "",
        ".",
        "src",
        "src/a.txt/x",
        "nothing",
        &format!("{root}/../secret"),
        &"x/".repeat(200),
        &"x".repeat(5_000),
    ] {
        let began = Instant::now();
        for (name, input) in [
            ("read", json!({"path": path})),
            ("edit", json!({"path": path, "old": "SECRET", "new": "x"})),
            ("search", json!({"text": "SECRET", "path": path})),
        ] {
            let (failed, said) = scene.use_tool(true, name, &input);
            assert!(failed || name == "search", "{name} {path:?}: {said}");
            assert!(!said.contains("SECRET"), "{name} {path:?}: {said}");
        }
        if path != "nothing" {
            let (failed, said) = scene.use_tool(true, "write", &json!({"path": path, "content": "x"}));
            assert!(failed, "write {path:?}: {said}");
        }
        assert!(began.elapsed() < Duration::from_secs(300), "{path:?} waits");
    }
    assert_eq!(std::fs::read_to_string(scene.folder.path().join("secret"))?, "SECRET");
    assert_eq!(std::fs::read_to_string(scene.tree().join(".git/config"))?, "two");
    assert!(!scene.tree().join("nowhere").exists());
    let (failed, said) = scene.use_tool(true, "read", &json!({"path": format!("{root}/src/a.txt")}));
    assert!(!failed && said.contains("1\tone"), "a path from the root of the machine may be meant: {said}");
    Ok(())
}

#[test]
fn issue_4_tools_do_what_they_say() -> Result {
    let scene = Scene::new()?;
    for (name, input, wanted) in [
        (
            "list",
            json!({}),
            "etc (a link)\nfifo (no ordinary file)\nhuge\ninside (a link)\nout (a link)\nsrc/\nup (a link)",
        ),
        ("list", json!({"path": "src", "recursive": true}), "a.txt\nbinary\ndeep/\nempty\ndeep/b.rs"),
        ("list", json!({"path": "nothing"}), "error: nothing is not there"),
        ("read", json!({"path": "src/a.txt"}), "1\tone\n2\ttwo\n3\tthree\n4\ttwo"),
        (
            "read",
            json!({"path": "src/a.txt", "from": 2, "lines": "1"}),
            "2\ttwo\n[4 lines in all; read on with from: 3]",
        ),
        ("read", json!({"path": "src/a.txt", "from": 9}), "error: the file has 4 lines"),
        ("read", json!({"path": "src/binary"}), "error: src/binary is not text"),
        ("read", json!({"path": "src/empty"}), "the file is empty"),
        ("read", json!({"path": "huge"}), "error: huge is not text"),
        ("read", json!({"path": 5}), "error: `path` is missing, or no text"),
        ("read", json!([1]), "error: the input is not a JSON object"),
        (
            "search",
            json!({"text": "two"}),
            "src/a.txt:2: two\nsrc/a.txt:4: two\nsrc/deep/b.rs:1: fn two() {}",
        ),
        (
            "search",
            json!({"text": "TWO", "ignore_case": true, "ending": ".rs"}),
            "src/deep/b.rs:1: fn two() {}",
        ),
        ("search", json!({"text": "two", "path": "src/deep"}), "src/deep/b.rs:1: fn two() {}"),
        ("search", json!({"text": "two", "path": "src/a.txt"}), "src/a.txt:2: two\nsrc/a.txt:4: two"),
        ("search", json!({"text": "four"}), "nothing was found"),
        ("search", json!({"text": ""}), "error: `text` has to be part of one line"),
        (
            "edit",
            json!({"path": "src/a.txt", "old": "two", "new": "2"}),
            "error: `old` is in src/a.txt 2 times",
        ),
        ("edit", json!({"path": "src/a.txt", "old": "four", "new": "4"}), "error: `old` is not in src/a.txt"),
        ("edit", json!({"path": "src/a.txt", "old": "one\n", "new": "1\n"}), "src/a.txt is changed"),
        ("edit", json!({"path": "src/binary", "old": "x", "new": "y"}), "error: `old` is not in src/binary"),
        ("write", json!({"path": "new/deep/c.txt", "content": "c"}), "new/deep/c.txt has 1 bytes now"),
        ("write", json!({"path": "src/a.txt"}), "error: `content` is missing"),
        ("run", json!({"command": "cat src/a.txt; echo err >&2"}), "1\ntwo\nthree\ntwo\nerr"),
        ("run", json!({"command": "exit 3"}), "error: exit 3"),
        ("run", json!({"command": "true"}), "exit 0, nothing printed"),
        ("run", json!({"command": "cat"}), "exit 0, nothing printed"),
        (
            "fly",
            json!({}),
            "error: there is no tool of that name; there are: list, read, search, write, edit, run",
        ),
    ] {
        let (_, said) = scene.use_tool(true, name, &input);
        assert!(said.contains(wanted), "{name} {input}: {said}");
    }
    assert_eq!(std::fs::read_to_string(scene.tree().join("src/a.txt"))?, "1\ntwo\nthree\ntwo\n");
    assert_eq!(std::fs::read_to_string(scene.tree().join("new/deep/c.txt"))?, "c");
    Ok(())
}

#[test]
fn issue_4_a_reader_changes_nothing() -> Result {
    let scene = Scene::new()?;
    for (name, input) in [
        ("write", json!({"path": "x", "content": "x"})),
        ("edit", json!({"path": "src/a.txt", "old": "one", "new": "x"})),
        ("run", json!({"command": "touch x"})),
    ] {
        let (failed, said) = scene.use_tool(false, name, &input);
        assert!(failed && said.contains("your role may read"), "{name}: {said}");
    }
    assert!(!scene.tree().join("x").exists());
    assert_eq!(std::fs::read_to_string(scene.tree().join("src/a.txt"))?, "one\ntwo\nthree\ntwo\n");
    let names: Vec<&str> = offers(false).iter().map(|offer| offer.name).collect();
    assert_eq!(names, ["list", "read", "search"]);
    Ok(())
}

#[test]
fn issue_4_a_command_ends_with_its_time_and_says_no_more_than_its_share() -> Result {
    let scene = Scene::new()?;
    let began = Instant::now();
    let (failed, said) =
        scene.use_tool(true, "run", &json!({"command": "echo before; sleep 3000", "seconds": 5}));
    assert!(failed && said.contains("stopped after 5 s") && said.contains("before"), "{said}");
    assert!(began.elapsed() < Duration::from_secs(600));
    let (_, said) =
        scene.use_tool(true, "run", &json!({"command": "yes 0123456789 | head -c 3000000; echo end"}));
    assert!(said.len() < 60_000 && said.contains("left out") && said.ends_with("end\n"), "{}", said.len());
    Ok(())
}

/// What git ignores is not searched.
#[test]
fn issue_4_what_is_ignored_is_not_searched() -> Result {
    let scene = Scene::new()?;
    std::fs::remove_dir_all(scene.tree().join(".git"))?;
    let git = |words: &str| scene.use_tool(true, "run", &json!({"command": format!("git {words}")}));
    assert!(!git("init -q .").0);
    std::fs::write(scene.tree().join(".gitignore"), "deep\n")?;
    std::fs::write(scene.tree().join("--weird name"), "two\n")?;
    let (_, said) = scene.use_tool(false, "search", &json!({"text": "two"}));
    assert_eq!(said, "--weird name:1: two\nsrc/a.txt:2: two\nsrc/a.txt:4: two");
    // A configuration that wants something run is not asked.
    std::fs::write(
        scene.tree().join(".git/config"),
        "[core]\n\tfsmonitor = touch pwned\n\tpager = touch pwned\n[alias]\n\tls-files = !touch pwned\n",
    )?;
    scene.use_tool(false, "search", &json!({"text": "two"}));
    assert!(!Path::new(&scene.tree().join("pwned")).exists());
    Ok(())
}
