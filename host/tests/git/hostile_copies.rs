//! What an agent or a test leaves in a working copy to make our own git wait or read for ever (S-06).

use std::os::unix::fs::symlink;

use super::*;

fn fifo(path: &Path) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let _ = fs::remove_file(path);
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

/// A repository with a commit in the copy.
fn nested(world: &World, dir: &Path) {
    put(dir, "x", "x");
    world.git_in(dir, &["init", "-q", "-b", "main"]);
    world.git_in(dir, &["add", "-A"]);
    world.git_in(dir, &["commit", "-q", "-m", "nested"]);
}

#[test]
fn s_06_fifos_where_git_looks_do_not_hold_up_a_collection() {
    let world = World::new();
    let base = world.oid("main");
    let mut slot = world.pool().take(WorkspaceKind::Maker, "run", &base).unwrap();
    let tree = slot.tree();
    for path in
        [".gitignore", ".gitattributes", ".gitmodules", "new/.gitignore", "dir/.gitattributes", "pipe"]
    {
        fifo(&tree.join(path));
    }
    nested(&world, &tree.join("inner"));
    fifo(&tree.join("inner/.git/HEAD"));
    put(&tree, "new/work.txt", "work");
    let made = collect(&mut slot, &base);
    slot.publish(&[(made.commit, "refs/heads/archeflow/run".to_owned())]).unwrap();
    assert_eq!(world.git(&["show", "archeflow/run:new/work.txt"]), "work");
}

#[test]
fn s_06_a_repository_inside_a_copy_leads_nowhere() {
    let world = World::new();
    let base = world.oid("main");
    let mut slot = world.pool().take(WorkspaceKind::Maker, "run", &base).unwrap();
    let tree = slot.tree();
    for name in ["refs", "common", "commonfile", "file", "link"] {
        nested(&world, &tree.join(name));
    }
    fs::remove_file(tree.join("refs/.git/refs/heads/main")).unwrap();
    symlink("/dev/zero", tree.join("refs/.git/refs/heads/main")).unwrap();
    symlink("/dev/zero", tree.join("refs/.git/packed-refs")).unwrap();
    symlink("/dev/zero", tree.join("common/.git/commondir")).unwrap();
    let elsewhere = world.dir.path().join("elsewhere");
    for name in ["commonfile", "file", "link"] {
        let copy = elsewhere.join(name);
        fs::create_dir_all(&elsewhere).unwrap();
        fs::rename(tree.join(name).join(".git"), &copy).unwrap();
        fs::remove_file(copy.join("refs/heads/main")).unwrap();
        symlink("/dev/zero", copy.join("refs/heads/main")).unwrap();
        symlink("/dev/zero", copy.join("packed-refs")).unwrap();
    }
    nested(&world, &tree.join("commonfile"));
    put(&tree, "commonfile/.git/commondir", elsewhere.join("commonfile").display().to_string());
    put(&tree, "file/.git", format!("gitdir: {}\n", elsewhere.join("file").display()));
    symlink(elsewhere.join("link"), tree.join("link/.git")).unwrap();
    put(&tree, "work.txt", "work");
    let made = collect(&mut slot, &base);
    slot.publish(&[(made.commit, "refs/heads/archeflow/run".to_owned())]).unwrap();
    assert_eq!(world.git(&["show", "archeflow/run:work.txt"]), "work");
    assert_eq!(world.git(&["show", "archeflow/run:file/x"]), "x", "its files are files of the copy");
    assert!(
        fs::symlink_metadata(elsewhere.join("link/refs/heads/main")).is_ok(),
        "nothing outside is touched"
    );
}

#[test]
fn s_06_a_copy_is_handed_out_again_after_a_test_left_fifos() {
    let world = World::new();
    let base = world.oid("main");
    let slot = world.pool().take(WorkspaceKind::Scratch, "run", &base).unwrap();
    let tree = slot.tree();
    fifo(&tree.join(".gitignore"));
    fifo(&tree.join("dir/.gitattributes"));
    drop(slot);
    let slot = world.pool().take(WorkspaceKind::Scratch, "run", &base).unwrap();
    assert_eq!(slot.tree(), tree);
    assert!(slot.verify_clean().unwrap().is_empty());
}
