//! Files that configure coding agents are in no working copy of an agent, and nothing of them is lost.

use super::*;

/// A repository with files that configure clients, some of them nested, and its base commit.
fn with_client_files() -> (World, ObjectId) {
    let world = World::new();
    world
        .write("CLAUDE.md", "old\n")
        .write(".claude/settings.json", "{}\n")
        .write("dir/AGENTS.md", "nested\n");
    let base = world.write(".opencode/plugin/p.js", "evil\n").commit("configured");
    (world, base)
}

const CLIENT_FILES: [&str; 4] =
    ["CLAUDE.md", ".claude/settings.json", "dir/AGENTS.md", ".opencode/plugin/p.js"];

#[test]
fn c_01_files_that_configure_clients_are_in_no_copy_of_an_agent() {
    let (world, base) = with_client_files();
    for kind in [WorkspaceKind::Maker, WorkspaceKind::Reader] {
        for _ in 0..2 {
            let mut slot = world.pool().take(kind, "run", &base).unwrap();
            let tree = slot.tree();
            assert_eq!(fs::read_to_string(tree.join("dir/b.txt")).unwrap(), "b\n");
            assert!(CLIENT_FILES.iter().all(|path| !tree.join(path).exists()), "{kind:?}");
            assert!(!tree.join(".claude").exists() && !tree.join(".opencode").exists());
            assert_eq!(world.git_in(&tree, &["status", "--porcelain"]), "", "git shows no deletion");
            assert!(slot.verify_clean().unwrap().is_empty());
            slot.abandon().unwrap();
        }
    }
    let scratch = world.pool().take(WorkspaceKind::Scratch, "run", &base).unwrap();
    assert!(CLIENT_FILES.iter().all(|path| scratch.tree().join(path).exists()), "tests see everything");
}

#[test]
fn c_01_untouched_client_files_come_back_and_written_ones_are_collected() {
    let (world, base) = with_client_files();
    let shown = |commit: &ObjectId| {
        world
            .git(&["diff", "--no-renames", "--name-status", base.as_str(), commit.as_str()])
            .replace('\t', " ")
    };
    type Work = fn(&World, &Path);
    let rows: [(&str, Work, &str); 7] = [
        ("nothing", |_, _| {}, ""),
        ("another file", |_, tree| put(tree, "new.txt", "new\n"), "A new.txt"),
        (
            "commits all",
            |world, tree| {
                put(tree, "new.txt", "new\n");
                world.git_in(tree, &["add", "-A"]);
                world.git_in(tree, &["commit", "-q", "-a", "-m", "all"]);
            },
            "A new.txt",
        ),
        (
            "writes some",
            |_, tree| {
                put(tree, "CLAUDE.md", "new\n");
                put(tree, ".mcp.json", "{}\n");
            },
            "A .mcp.json\nM CLAUDE.md",
        ),
        (
            "writes and commits one",
            |world, tree| {
                put(tree, "CLAUDE.md", "new\n");
                world.git_in(tree, &["add", "CLAUDE.md"]);
                world.git_in(tree, &["commit", "-q", "-m", "one"]);
            },
            "M CLAUDE.md",
        ),
        (
            "puts its work aside and back",
            |world, tree| {
                put(tree, "dir/b.txt", "new\n");
                world.git_in(tree, &["stash", "-q"]);
                world.git_in(tree, &["checkout", "-q", "--", "."]);
                world.git_in(tree, &["reset", "-q", "--hard"]);
                assert!(CLIENT_FILES.iter().all(|path| !tree.join(path).exists()), "still left out");
                world.git_in(tree, &["stash", "pop", "-q"]);
            },
            "M dir/b.txt",
        ),
        (
            "deletes one",
            |world, tree| {
                world.git_in(tree, &["rm", "-q", "--cached", "--sparse", "CLAUDE.md"]);
                world.git_in(tree, &["commit", "-q", "-m", "gone"]);
            },
            "D CLAUDE.md",
        ),
    ];
    for (what, work, wanted) in rows {
        let mut slot = world.pool().take(WorkspaceKind::Maker, "run", &base).unwrap();
        work(&world, &slot.tree());
        let made = collect(&mut slot, &base);
        slot.publish(&[(made.commit.clone(), "refs/heads/archeflow/run".to_owned())]).unwrap();
        assert_eq!(shown(&made.commit), wanted, "{what}");
        // What was collected is in the next copy's commit, and again in no copy.
        drop(slot);
        let mut next = world.pool().take(WorkspaceKind::Maker, "run", &made.commit).unwrap();
        assert!(CLIENT_FILES.iter().all(|path| !next.tree().join(path).exists()), "{what}");
        assert!(!next.tree().join(".mcp.json").exists());
        assert_eq!(world.git_in(&next.tree(), &["status", "--porcelain"]), "", "{what}");
        let again = collect(&mut next, &made.commit);
        assert_eq!(again.commit, made.commit, "{what}: nothing is lost by being left out");
        next.abandon().unwrap();
    }
}

#[test]
fn c_01_ignored_client_files_of_an_earlier_agent_are_removed() {
    let world = World::new();
    let base = world.write(".gitignore", "*.local.json\nbuilt/\n").commit("ignores");
    let mut slot = world.pool().take(WorkspaceKind::Maker, "run", &base).unwrap();
    put(&slot.tree(), ".claude/settings.local.json", "{}");
    put(&slot.tree(), "built/AGENTS.md", "evil");
    put(&slot.tree(), "built/cache", "kept");
    assert_eq!(collect(&mut slot, &base).commit, base);
    drop(slot);
    let slot = world.pool().take(WorkspaceKind::Maker, "run", &base).unwrap();
    assert!(!slot.tree().join(".claude").exists() && !slot.tree().join("built/AGENTS.md").exists());
    assert!(slot.tree().join("built/cache").exists(), "other ignored files are a cache");
}

#[test]
fn c_01_work_beside_hidden_files_survives_a_crash() {
    let (world, base) = with_client_files();
    let slot = world.pool().take(WorkspaceKind::Maker, "run", &base).unwrap();
    put(&slot.tree(), ".claude/settings.json", "made\n");
    drop(slot);
    let mut left = world.pool().pending(Some("run")).unwrap();
    let made = collect(&mut left[0], &base);
    let show = |path: &str| world.git(&["show", &format!("{}:{path}", made.commit)]);
    left[0].publish(&[(made.commit.clone(), "refs/archeflow/keep/run/do.1".to_owned())]).unwrap();
    assert_eq!((show(".claude/settings.json"), show("CLAUDE.md")), ("made".to_owned(), "old".to_owned()));
}
