//! Ways out of the sandbox that attacks found (rows R of the red team's second list): each test has the number of its row.
//! They are tried at each level that this machine has.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use crate::harness::{TASK, Test, each};
use crate::sandbox::without_bwrap;
use crate::screen::Pty;
use crate::user::{PROGRAM, as_strs};

/// A run whose tests and Maker do this, with all that is there and without bubblewrap.
fn at_each_level(check: impl Fn(Test) + Sync) {
    each([false, true], |only_landlock| {
        let test = Test::new();
        let path = only_landlock.then(|| without_bwrap(&test));
        check(path.into_iter().fold(test, |test, path| test.env("PATH", path)));
    });
}

/// What the tests of the last run printed.
fn tests_said(test: &Test) -> String {
    let id = test.run_ids().pop().unwrap();
    fs::read_to_string(test.repo.join(format!(".archeflow/artifacts/{id}/base-tests.log"))).unwrap()
}

fn made(first: &str) -> String {
    format!(
        "== maker ==\n{first}\nsh echo made >> src/app.txt; echo case >> tests/check_test.sh\ncommit Work\n\
         say <<END\n## Summary\n\nDone.\n\n## Tests\n\nall pass\n\nSTATUS: DONE\nEND\n\n"
    )
}

/// Prints and refuses what is open besides the streams and the shell's own copies of them.
const OPEN: &str = "for n in 3 4 5 6 7 8 9; do if test -e /proc/self/fd/$n; then echo open: $n; exit 1; fi; done; echo nothing is open";

#[test]
fn r_02_what_the_caller_has_open_is_not_open_inside() {
    at_each_level(|test| {
        let (secret, log) = (test.base().join("secret"), test.base().join("log"));
        fs::write(&secret, "precious").unwrap();
        let test = test.play(&made(&format!("sh {OPEN}"))).tests(&format!("{OPEN}; sh tests/check.sh"));
        let files = format!("exec 7</ 9<'{}' 8>>'{}'; exec \"$0\" \"$@\"", secret.display(), log.display());
        let mut shell = test.command("sh");
        shell.args(["-c", &files, PROGRAM]).args(test.arguments(TASK, &["--auto-merge"]));
        let output = shell.current_dir(&test.repo).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{said}\n{}", tests_said(&test));
        assert!(tests_said(&test).contains("nothing is open"), "{said}");
        assert!(test.read("src/app.txt").ends_with("made\n"), "{said}");
    });
}

/// Opening one for writing changes nothing.
const SETTINGS: &str = "for f in /proc/sys/kernel/panic /proc/sys/kernel/core_pattern /proc/sysrq-trigger /proc/mtrr /proc/acpi/wakeup; do \
     if (: > $f) 2>/dev/null; then echo writable: $f; exit 1; fi; done; echo nothing is writable";

/// As root: other users are kept from it by the kernel.
#[test]
fn r_01_no_setting_of_the_kernel_can_be_changed_from_inside() {
    at_each_level(|test| {
        let test =
            test.play(&made(&format!("sh {SETTINGS}"))).tests(&format!("{SETTINGS}; sh tests/check.sh"));
        let merged = test.go(&["--auto-merge"]).ended("merged", "approved", 0);
        assert!(tests_said(&test).contains("nothing is writable"), "{merged}");
    });
}

#[test]
fn r_03_the_terminal_of_the_user_is_not_open_inside() {
    at_each_level(|test| {
        let open = "t=$(cat tests/pts); if (: < $t) 2>/dev/null || (: > $t) 2>/dev/null; then echo open: $t; exit 1; fi; \
                    echo kept from $t";
        let test = test.play(&made(&format!("sh {open}"))).tests(&format!("{open}; sh tests/check.sh"));
        let script =
            "tty > tests/pts && git add -A && git commit -qm 'Name the terminal' && exec \"$0\" \"$@\"";
        let arguments = test.arguments(TASK, &["--auto-merge"]);
        let program = [&["sh", "-c", script, PROGRAM][..], &as_strs(&arguments)].concat();
        let (code, said) = Pty::run(&test, &program, (100, 30)).says("merged");
        assert!(
            code == 0 && tests_said(&test).contains("kept from /dev/pts/"),
            "{}",
            String::from_utf8_lossy(&said)
        );
    });
}

#[test]
fn r_01_a_bubblewrap_that_lets_programs_out_is_not_used() {
    let test = Test::new();
    let path = without_bwrap(&test);
    let script = format!(
        "#!/bin/sh\nwhile [ \"$1\" != -- ]; do shift; done\nshift 2; name=$1; order=$2; shift 3\n\
         exec {PROGRAM} \"$name\" \"$order\" {PROGRAM} \"$@\"\n"
    );
    let bwrap = test.write("bin/bwrap", &script);
    fs::set_permissions(&bwrap, fs::Permissions::from_mode(0o755)).unwrap();
    let test = test.env("PATH", path).play("");
    let merged = test.go(&["--auto-merge"]).ended("merged", "approved", 0);
    assert_eq!(merged.events("session.start")[0]["sandbox"], "landlock", "{merged}");
    let doctor = test.run(&["doctor"]);
    assert!(
        doctor.stdout.contains("bwrap is not used: ") && doctor.stdout.contains("can be read"),
        "{doctor}"
    );
    assert_eq!(fs::read_dir(test.base().join("tmp")).unwrap().count(), 0, "the bait is removed");
}
