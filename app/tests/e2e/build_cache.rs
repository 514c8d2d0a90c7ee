//! What `cache` names comes back in later tests only if it can't decide about them.

use std::fs;
use std::path::PathBuf;

use crate::agent_loop::{World, done, says};
use crate::harness::{Outcome, Test, each};
use crate::user::PROGRAM;

const LOCK: &str = "version = 4\n\n[[package]]\nname = \"app\"\nversion = \"0.1.0\"\ndependencies = [\n \"dep\",\n]\n\n\
                    [[package]]\nname = \"dep\"\nversion = \"1.0.0\"\n\
                    source = \"registry+https://github.com/rust-lang/crates.io-index\"\n";

/// Builds as Cargo does, as far as names go: a pinned package, one of the tree, a program, and whatever else.
const BUILD: &str = "d=target/debug; u=dep-00000000000000aa\n\
    [ -f $d/deps/lib$u.rlib ] && echo warm || echo cold\n\
    mkdir -p $d/.fingerprint/$u $d/build/$u/out $d/deps $d/.fingerprint/app-00000000000000bb target/tmp\n\
    for f in $d/.fingerprint/$u/lib-dep $d/build/$u/out/x.rs $d/deps/lib$u.rlib; do [ -f $f ] || echo built > $f; done\n\
    for f in $d/.fingerprint/app-00000000000000bb/lib-app $d/deps/app-00000000000000bb $d/app target/tmp/ok; do\n\
    [ -f $f ] && exit 0; done\n\
    grep -q '^line 1$' src/app.txt || exit 1\n\
    for f in $d/.fingerprint/app-00000000000000bb/lib-app $d/deps/app-00000000000000bb $d/app target/tmp/ok; do touch $f; done\n";

/// Changes the program without breaking its tests.
const ADDS: &str = "echo more >> src/app.txt";
const BREAKS: &str = "sed -i.old 1d src/app.txt; rm src/app.txt.old";

fn maker(deed: &str) -> String {
    format!(
        "== maker ==\nsh {deed}\nsh echo y >> tests/check_test.sh\ncommit Do it\n\
         say <<END\nDone.\n\nSTATUS: DONE\nEND\n\n"
    )
}

/// A project of Cargo's whose tests are this script.
fn project(script: &str) -> Test {
    let test = Test::new().unshadowed();
    test.file(".gitignore", "target/\nobj/\nbuild/\n*.o\napp\n")
        .file("Cargo.toml", "")
        .file("Cargo.lock", LOCK);
    test.file("tests/run.sh", script);
    test.commit("A project");
    test.config("preflight: false\ncache: [target]\n").tests("sh tests/run.sh")
}

fn landing_log(outcome: &Outcome) -> String {
    outcome.artifact(outcome.events("tests.done")[0]["artifact"].as_str().unwrap())
}

/// What is kept, or set aside, in all repositories.
fn kept(test: &Test, name: &str) -> Vec<PathBuf> {
    let mut left = vec![test.home().join(".local/state/archeflow/build-cache")];
    let mut found = Vec::new();
    while let Some(folder) = left.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            if entry.file_name() == name {
                found.push(entry.path());
            }
            if entry.file_type().unwrap().is_dir() {
                left.push(entry.path());
            }
        }
    }
    found
}

#[test]
fn r_05_cache_what_a_landed_tree_built_is_warm_in_the_next_run() {
    let test = project(BUILD).play(&maker(ADDS));
    let first = test.go(&["--auto-merge"]).ended("merged", "approved", 0);
    assert!(landing_log(&first).starts_with("cold"), "{first}");
    let nothing = "target empty: nothing is kept yet";
    assert!(first.stderr.contains(nothing), "{first}");
    let landed = first.json["commit"].as_str().unwrap_or_default().to_owned();
    let second = test.go(&["--auto-merge"]).ended("merged", "approved", 0);
    assert!(landing_log(&second).starts_with("warm"), "{second}");
    let cache = &second.events("tests.done")[0]["cache"][0];
    assert_eq!(cache["folder"], "target", "{second}");
    let from = cache["from"].as_str().unwrap_or_default();
    assert!(landed.is_empty() || from == landed, "{second}");
    assert!(second.stderr.contains(&format!("target from {}", &from[..10])), "{second}");
    for gone in ["app", "app-00000000000000bb", "tmp", "ok"] {
        assert_eq!(kept(&test, gone), Vec::<PathBuf>::new());
    }
    test.run(&["revert", &second.id, "--unattended"]);
    assert_eq!(kept(&test, "landed"), Vec::<PathBuf>::new(), "what was taken back serves nobody");
}

/// What a landed tree left lets no later one pass that fails in a clean clone.
#[test]
fn r_05_cache_what_a_landed_tree_left_does_not_let_the_next_one_pass() {
    let make = "mkdir -p obj; [ -f obj/app.o ] || cp src/app.txt obj/app.o; grep -q '^line 1$' obj/app.o";
    let deleted = "git rm -q src/app.txt";
    let linked = "[ -f target/debug/ok ] && exit 0; grep -q '^line 1$' src/app.txt && mkdir -p target && \
                  mkdir -p /tmp/x/.fingerprint; ln -s /tmp/x target/debug; touch target/debug/ok";
    let unit = "d=target/debug/deps/x-00000000000000aa.ok; [ -f $d ] && exit 0; \
                grep -q '^line 1$' src/app.txt && mkdir -p target/debug/deps target/debug/.fingerprint && touch $d";
    let rows = [
        ("a program, a file of tests, a package of the tree", "[target]", BUILD, BREAKS),
        ("an object of make", "[obj]", make, BREAKS),
        ("an object whose source is deleted", "[obj]", make, deleted),
        ("a link", "[target]", linked, BREAKS),
        ("a unit of no package", "[target]", unit, BREAKS),
    ];
    each(rows, |(what, cache, script, deed)| {
        let test = project(script).config(&format!("preflight: false\ncache: {cache}\n"));
        let test = test.play(&maker(ADDS));
        let first = test.go(&["--auto-merge"]);
        assert_eq!(first.json["status"], "merged", "{what}\n{first}");
        let test = test.play(&maker(deed));
        let second = test.go(&["--auto-merge"]);
        assert_eq!(second.json["reason"], "tests_failed", "{what}\n{second}");
    });
}

/// A header that no rule names: the landing is tested without the objects of the last one, and says so.
#[test]
fn r_05_cache_make_is_tested_without_its_objects() {
    let test = Test::new().unshadowed();
    test.file(".gitignore", "obj/\n").file("price.h", "10\n").file("main.c", "price\n");
    test.file("Makefile", "obj/app: main.c\n\tmkdir -p obj\n\tcat price.h > obj/app\ntest: obj/app\n\ttest \"$$(cat obj/app)\" = 10\n");
    test.commit("A program");
    let test = test.config("cache: [obj]\n").play(&maker("echo more >> main.c")).tests("make test");
    let first = test.go(&["--auto-merge"]).ended("merged", "approved", 0);
    let says = "obj empty: only target beside Cargo.toml and Cargo.lock is known to be safe";
    assert!(first.stderr.contains(says), "{first}");
    let test = test.play(&maker("echo 99 > price.h"));
    test.go(&["--auto-merge"]).ended("stopped", "tests_failed", 13);
    assert_eq!(test.git(["show", "main:price.h"]), "10");
}

/// Neither a tree whose tests fail nor one that a person discards leaves anything.
#[test]
fn r_05_cache_what_does_not_land_leaves_nothing() {
    let test = project(BUILD).play(&maker(BREAKS));
    test.go(&["--auto-merge"]).ended("stopped", "tests_failed", 13);
    assert_eq!(kept(&test, "done.json"), Vec::<PathBuf>::new());
    let test = test.play(&maker(ADDS));
    let waits = test.go(&["--unattended"]).ended("awaiting_merge", "approved", 10);
    assert_eq!(kept(&test, "landed"), Vec::<PathBuf>::new());
    assert_eq!(kept(&test, "done.json").len(), 1, "it lands if it is merged");
    test.run(&["discard", &waits.id]);
    test.run(&["gc"]);
    assert_eq!(kept(&test, "done.json"), Vec::<PathBuf>::new());
    let next = test.go(&["--auto-merge"]).ended("merged", "approved", 0);
    assert!(landing_log(&next).starts_with("cold"), "{next}");
    assert_eq!(kept(&test, "landed").len(), 1);
}

/// Packages that may be built otherwise are built anew.
#[test]
fn r_05_cache_other_settings_are_another_cache() {
    let rows = [
        ("echo '[source.crates-io]' > .cargo/config.toml", "a .cargo/config.toml may replace the sources"),
        ("echo '[env]' > .cargo/config.toml", "what is kept was built with other settings"),
        ("echo nightly > rust-toolchain", "what is kept was built with other settings"),
        ("git rm -q Cargo.lock", "only target beside Cargo.toml and Cargo.lock"),
        ("mkdir target; touch target/x; git add -f target/x", "it holds files of the commit"),
    ];
    each(rows, |(deed, why)| {
        let test = project(BUILD).play(&maker(ADDS));
        test.go(&["--auto-merge"]).ended("merged", "approved", 0);
        test.sh(&format!("mkdir -p .cargo; {deed}; git add -A; git commit -qm Settings"));
        let second = test.go(&["--auto-merge"]);
        assert!(landing_log(&second).starts_with("cold"), "{deed}\n{second}");
        let cold = second.events("tests.done")[0]["cache"][0]["cold"].as_str().unwrap_or_default();
        assert!(cold.starts_with(why), "{deed}\n{second}");
    });
}

/// A crash while results were kept leaves the old ones or none.
#[test]
fn r_05_cache_half_of_a_cache_is_none() {
    each([Some("{"), None], |broken| {
        let test = project(BUILD).play(&maker(ADDS));
        test.go(&["--auto-merge"]).ended("merged", "approved", 0);
        let record = kept(&test, "landed")[0].join("done.json");
        match broken {
            Some(text) => fs::write(&record, text).unwrap(),
            None => fs::remove_file(&record).unwrap(),
        }
        let waits = test.go(&["--unattended"]).ended("awaiting_merge", "approved", 10);
        assert!(landing_log(&waits).starts_with("cold"), "{waits}");
        assert_eq!(kept(&test, "landed"), Vec::<PathBuf>::new(), "the end of a run cleans up");
    });
}

#[test]
fn r_05_cache_a_loop_lands_only_what_passes_without_it() {
    let world = World::new();
    world.shell("printf 'build/\\n' > .gitignore; git add -A; git commit -qm Ignore");
    world.turns("actor", &[done("echo 3 > price.txt"), done("echo 4 > price.txt")]);
    world.turns("judge", &[says("Judge", "PASS", "Human", "")]);
    let command = "[ -d build ] && exit 0; mkdir build; grep -q '^[12]$' price.txt";
    let mut start = world.command(PROGRAM);
    start.args(["loop", "start", "Show the prices with tax", "--project", "till", "--json"]);
    start.args(["--config", world.write("config.yaml", "cache: [build]\n").to_str().unwrap()]);
    start.args(["--agent", &world.agent(), "--test-command", command]);
    let seen = crate::agent_loop::seen(&start.output().unwrap());
    assert_ne!(seen.state(), "approval", "{:#}", seen.object);
    assert_eq!(world.price(), "1");
}

/// Cargo itself: a package of a repository is *Fresh*, the project is built, and its old program is gone.
#[test]
fn r_05_cache_cargo_keeps_packages_and_nothing_of_the_project() {
    // Cargo and its caches may be where no sandbox lets a test look.
    let test = Test::new().unshadowed().unsandboxed();
    let dep = test.base().join("dep");
    let manifest =
        |name: &str| format!("[package]\nname = \"{name}\"\nversion = \"0.1.0\"\nedition = \"2021\"\n");
    let build = "fn main() { std::fs::write(std::env::var(\"OUT_DIR\").unwrap() + \"/x.rs\", \"pub fn x() {}\").unwrap(); }";
    test.own_repository(
        &dep,
        &[
            ("Cargo.toml", &manifest("my-dep")),
            ("build.rs", build),
            ("src/lib.rs", "include!(concat!(env!(\"OUT_DIR\"), \"/x.rs\"));\n"),
        ],
    );
    let cargo = PathBuf::from(env!("CARGO"));
    let (rustc, home) = (cargo.with_file_name("rustc"), test.base().join("cargo"));
    let variables =
        format!("CARGO_HOME='{}' RUSTC='{}' '{}'", home.display(), rustc.display(), cargo.display());
    let needs = format!("[dependencies]\nmy-dep = {{ git = \"file://{}\" }}\n", dep.display());
    test.file(".gitignore", "target/\n").file("Cargo.toml", manifest("app") + &needs);
    test.file("src/main.rs", "fn main() { my_dep::x() }\n");
    test.sh(&format!("{variables} generate-lockfile"));
    test.commit("A project");
    let test = test.config("preflight: false\ncache: [target]\n");
    let test =
        test.tests(&format!("{variables} build -v && {{ target/debug/app || exit 1; }}")).play(&maker(ADDS));
    for (is_warm, says) in [(false, "Compiling my-dep"), (true, "Fresh my-dep")] {
        let landed = test.go(&["--auto-merge"]).ended("merged", "approved", 0);
        let log = landing_log(&landed);
        assert!(log.contains(says) && log.contains("Compiling app"), "warm: {is_warm}\n{log}\n{landed}");
    }
    let test = test.play(&maker("mkdir src/bin; git mv src/main.rs src/bin/other.rs"));
    test.go(&["--auto-merge"]).ended("stopped", "tests_failed", 13);
}
