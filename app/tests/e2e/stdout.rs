//! Standard output that takes nothing: the program says so, or ends quietly, and never claims success.

use std::fs::OpenOptions;
use std::process::Stdio;

use crate::harness::Test;

const COMMANDS: [&[&str]; 8] = [
    &["--help"],
    &["--version"],
    &["completions", "bash"],
    &["list"],
    &["list", "--json"],
    &["config", "show"],
    &["explain", "guardian"],
    &["show", "no-such-run", "--json"],
];

#[test]
fn m_b5_a_full_disk_is_reported_and_is_no_success() {
    let test = Test::new();
    for arguments in COMMANDS {
        let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
        let mut command = test.command(env!("CARGO_BIN_EXE_archeflow"));
        let output = command
            .args(arguments)
            .current_dir(&test.repo)
            .stdin(Stdio::null())
            .stdout(full)
            .stderr(Stdio::piped())
            .output()
            .unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(30), "{arguments:?}: {stderr}");
        assert!(stderr.contains("could not be written to standard output"), "{arguments:?}: {stderr}");
    }
}

#[test]
fn a_reader_that_went_away_ends_the_command_quietly() {
    let test = Test::new();
    for arguments in COMMANDS {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut command = test.command(env!("CARGO_BIN_EXE_archeflow"));
        let output = command
            .args(arguments)
            .current_dir(&test.repo)
            .stdin(Stdio::null())
            .stdout(writer)
            .stderr(Stdio::piped())
            .output()
            .unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        let code = if arguments.contains(&"no-such-run") { 2 } else { 141 };
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {stderr}");
        assert!(!stderr.contains("standard output") && !stderr.contains("panic"), "{arguments:?}: {stderr}");
    }
}
