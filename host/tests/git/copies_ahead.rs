//! Working copies that are made before somebody needs them, and that move to another commit.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::thread;

use archeflow_host::git::workspace::{Slot, WorkspaceKind};

use super::{World, manifest, put};

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
    assert!(world.pool().pending(None).unwrap().is_empty(), "as after a crash");
    let again = world.pool().make_ready(WorkspaceKind::Maker, "run", &base).unwrap();
    assert_eq!(again.tree(), tree);
    again.hand_to_maker("12-maker").unwrap();
    drop(again);
    assert_eq!(world.pool().pending(Some("run")).unwrap().len(), 1);
}

/// Two runs in one repository that are resumed at the same moment.
#[test]
fn i2_looking_for_the_work_of_one_run_does_not_hide_that_of_another() {
    let world = World::new();
    let base = world.oid("main");
    for owner in ["one", "two"] {
        drop(world.pool().take(WorkspaceKind::Maker, owner, &base).unwrap());
    }
    let pool = world.pool();
    thread::scope(|scope| {
        let looked = scope.spawn(|| (0..500).all(|_| pool.pending(Some("one")).unwrap().len() == 1));
        assert!((0..500).all(|_| pool.pending(Some("two")).unwrap().len() == 1));
        assert!(looked.join().unwrap());
    });
}

/// A copy with more than is taken in stays, and a later attempt has another one.
#[test]
fn i2_unpublished_work_belongs_to_the_attempt_that_made_it() {
    let world = World::new();
    let base = world.oid("main");
    for attempt in ["5-maker", "9-maker"] {
        let slot = world.pool().make_ready(WorkspaceKind::Maker, "run", &base).unwrap();
        slot.hand_to_maker(attempt).unwrap();
        put(&slot.tree(), "a.txt", attempt);
    }
    let left = world.pool().pending(Some("run")).unwrap();
    let of = |attempt: &str| {
        let found: Vec<&Slot> = left.iter().filter(|slot| slot.is_of(attempt)).collect();
        assert_eq!(found.len(), 1, "{attempt}");
        fs::read_to_string(found[0].tree().join("a.txt")).unwrap()
    };
    assert_eq!((of("9-maker"), of("5-maker")), ("9-maker".to_owned(), "5-maker".to_owned()));
    // From before attempts were named.
    let old = world.pool().take(WorkspaceKind::Maker, "older", &base).unwrap();
    assert!(old.is_of("5-maker") && old.is_of("9-maker"));
}
