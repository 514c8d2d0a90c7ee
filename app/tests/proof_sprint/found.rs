//! A sprint that is killed while it sweeps up after a killed run can leave a git of that run behind, stopped for ever.
//! The next life of the sprint finds it by its tag and lets it go on.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use super::world::{World, rows};

#[test]
fn i5_every_git_of_a_run_bears_the_tag_of_its_sprint() {
    let world = World::new(rows("ok-01 q1 P1 completed"));
    let (tools, tags) = (world.base().join("tools"), world.base().join("tags"));
    let real = world.own("sh").args(["-c", "command -v git"]).output().unwrap();
    let real = String::from_utf8(real.stdout).unwrap();
    let script =
        format!("#!/bin/sh\necho \"$ARCHEFLOW_TAG\" >> {}\nexec {} \"$@\"\n", tags.display(), real.trim());
    fs::create_dir(&tools).unwrap();
    fs::write(tools.join("git"), script).unwrap();
    fs::set_permissions(tools.join("git"), fs::Permissions::from_mode(0o755)).unwrap();
    let mut started = world.start_on(&format!("{}:{}", tools.display(), std::env::var("PATH").unwrap()));
    assert_eq!(super::finish(&world, &mut started.0), Some(0), "{}", world.said());
    let tags = fs::read_to_string(tags).unwrap();
    let log = world.log();
    let sprint = log[0]["run_id"].as_str().unwrap();
    // What an agent starts bears the tag of its attempt, which begins in the same way.
    let prefix = format!("{sprint}.");
    let of = |tag: &str| tag.strip_prefix("git-of:").unwrap_or(tag).starts_with(&prefix);
    // The few that the sprint starts itself bear none: nobody sweeps them up.
    let (own, tagged): (Vec<&str>, Vec<&str>) = tags.lines().partition(|tag| tag.is_empty());
    let strange: Vec<&&str> = tagged.iter().filter(|tag| !of(tag)).collect();
    assert!(tagged.len() > 20 && own.len() < 10 && strange.is_empty(), "{prefix} {own:?} {strange:?}");
}

/// Killed again and again, a sprint lets a git go on that its last life has stopped.
#[test]
fn i5_a_git_that_was_stopped_continues_in_the_next_session() {
    let world = World::new(rows("ok-01 q1 P1 completed\nhang-02-creator q2 P1 failed"));
    let mut first = world.start();
    super::wait_for(&world, &mut first.0, 2_000);
    first.0.kill().unwrap();
    first.0.wait().unwrap();
    let log = world.log();
    let session = log.iter().find(|line| line["type"] == "sprint.session").unwrap();
    let tag = format!("git-of:{}.7", session["data"]["tag"].as_str().unwrap());
    let gone = world.base().join("gone-on");
    let script = format!("kill -STOP $$; : > {}", gone.display());
    let mut git = world.own("sh").args(["-c", &script]).env("ARCHEFLOW_TAG", tag).spawn().unwrap();
    let stat = format!("/proc/{}/stat", git.id());
    while !fs::read_to_string(&stat).unwrap().contains(") T ") {
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
    let mut second = world.start();
    let status = git.wait().unwrap();
    assert!(status.success() && gone.exists(), "{status}");
    second.0.kill().unwrap();
}
