//! Working copies that are made before somebody needs them, and that move to another commit.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use archeflow_host::git::workspace::{Slot, WorkspaceKind};

use super::{World, manifest};

#[test]
fn i15_a_copy_brought_to_another_commit_is_like_a_new_one() {
    let world = World::new();
    world.write("dir/kept", "kept\n").write("dir/gone", "gone\n").write("turns/into", "a file\n");
    let first = world.write("link-to-be", "x").write("CLAUDE.md", "left out\n").commit("first");
    fs::remove_file(world.root.join("dir/gone")).unwrap();
    fs::remove_dir_all(world.root.join("turns")).unwrap();
    fs::remove_file(world.root.join("link-to-be")).unwrap();
    std::os::unix::fs::symlink("dir/kept", world.root.join("link-to-be")).unwrap();
    world.write("turns", "it is a file now\n").write("new/deep/er", "new\n").write("AGENTS.md", "left out\n");
    fs::set_permissions(world.root.join("dir/kept"), PermissionsExt::from_mode(0o755)).unwrap();
    let second = world.commit("second");

    let mut brought = world.pool().make_ready(WorkspaceKind::Reader, "run", &first).unwrap();
    brought.bring_to(&second).unwrap();
    let fresh = world.pool().make_ready(WorkspaceKind::Reader, "run", &second).unwrap();
    assert_ne!(brought.tree(), fresh.tree());
    let listed = |slot: &Slot| {
        let mut all = BTreeMap::new();
        manifest(&slot.tree(), &mut all);
        let tree = slot.tree();
        let inner = |path: PathBuf| path.strip_prefix(&tree).unwrap().to_path_buf();
        // The index holds times and numbers of files.
        let all = all.into_iter().map(|(path, found)| (inner(path), found));
        all.filter(|(path, _)| path != Path::new(".git/index")).collect::<BTreeMap<_, _>>()
    };
    assert_eq!(listed(&brought), listed(&fresh));
    for slot in [&brought, &fresh] {
        assert_eq!(slot.verify_clean().unwrap(), Vec::<Vec<u8>>::new());
        assert_eq!(slot.base(), Some(&second));
        assert_eq!(world.git_in(&slot.tree(), &["status", "--porcelain"]), "");
        assert_eq!(world.git_in(&slot.tree(), &["rev-parse", "HEAD"]), second.to_string());
    }
    // Back again, over the whole way.
    brought.bring_to(&first).unwrap();
    assert_eq!(world.git_in(&brought.tree(), &["status", "--porcelain"]), "");
    assert!(brought.tree().join("turns/into").is_file() && !brought.tree().join("CLAUDE.md").exists());
}

#[test]
fn i15_a_makers_copy_made_ahead_holds_no_work_before_it_is_handed_out() {
    let world = World::new();
    let base = world.oid("main");
    let ready = world.pool().make_ready(WorkspaceKind::Maker, "run", &base).unwrap();
    let tree = ready.tree();
    drop(ready);
    assert!(world.pool().pending(None).is_empty(), "as after a crash");
    let again = world.pool().make_ready(WorkspaceKind::Maker, "run", &base).unwrap();
    assert_eq!(again.tree(), tree);
    again.hand_to_maker().unwrap();
    drop(again);
    assert_eq!(world.pool().pending(Some("run")).len(), 1);
}
