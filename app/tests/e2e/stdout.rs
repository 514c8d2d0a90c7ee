//! U-07: output that can't be written. A full disk or quota is reported and is no success; a reader that went away ends
//! the command quietly; a run goes on whatever becomes of its screen.

use std::fs::{File, OpenOptions};
use std::process::{Output, Stdio};

use crate::harness::Test;

/// The reader went away: the exit code of a program ended by SIGPIPE.
const NO_READER: i32 = 128 + 13;

/// Arguments that a usage line does not show as required.
const MORE: [(&str, &[&str]); 13] = [
    ("eval run", &["x", "--arms", "single", "--agent", "sim:fair"]),
    ("fleet status", &["--fleet", "x"]),
    ("fleet gc", &["--fleet", "x"]),
    ("fleet budget", &["x", "--fleet", "x"]),
    ("fleet add", &["worker", "x"]),
    ("completions", &["bash"]),
    ("continue", &["x", "--one-more-cycle"]),
    ("forget", &["--gone"]),
    ("memory add", &["x"]),
    ("run", &["x"]),
    ("demo", &["--quick", "--dir", "{base}/sample"]),
    ("replay compare", &["x", "y"]),
    ("rollback", &["x", "--to", "1:do"]),
];

/// Servers, which run until they are stopped, and hooks, which never fail the session of a client: they print no result.
const WITHOUT_RESULT: [&str; 7] =
    ["lsp", "mcp", "ui", "fleet serve", "worker drain", "hook claude-session-start", "hook claude-stop"];

/// Every command with arguments it accepts, from the program's own help: a new command is in here by itself. What fails
/// after parsing prints its failure as JSON, so each one has something to print.
fn every_command(test: &Test) -> Vec<Vec<String>> {
    let mut calls = vec![vec!["--version".to_owned()]];
    collect(test, Vec::new(), &mut calls);
    calls
}

fn collect(test: &Test, path: Vec<String>, calls: &mut Vec<Vec<String>>) {
    let help = [path.clone(), vec!["--help".to_owned()]].concat();
    let text = String::from_utf8(started(test, &help, Stdio::piped()).stdout).unwrap();
    calls.push(help);
    let commands: Vec<&str> = text
        .lines()
        .skip_while(|line| *line != "Commands:")
        .skip(1)
        .take_while(|line| !line.is_empty())
        .filter_map(|line| line.split_whitespace().next())
        .filter(|name| *name != "help")
        .collect();
    if commands.is_empty() {
        if !WITHOUT_RESULT.contains(&path.join(" ").as_str()) {
            calls.push(call(test, path, &text));
        }
        return;
    }
    for name in commands {
        collect(test, [path.clone(), vec![name.to_owned()]].concat(), calls);
    }
}

/// A command that is no group, with what it requires.
fn call(test: &Test, path: Vec<String>, help: &str) -> Vec<String> {
    let more = MORE.iter().find(|(known, _)| *known == path.join(" "));
    let required = help.lines().find_map(|line| line.strip_prefix("Usage: ")).unwrap_or_default();
    let required = required.split_whitespace().filter(|word| word.starts_with('<'));
    let arguments: Vec<String> = match more {
        Some((_, words)) => {
            words.iter().map(|word| word.replace("{base}", &test.base().display().to_string())).collect()
        }
        None => required.map(|_| "x".to_owned()).collect(),
    };
    let json = help.lines().any(|line| line.trim_start().starts_with("--json"));
    [path, arguments, if json { vec!["--json".to_owned()] } else { Vec::new() }].concat()
}

fn started(test: &Test, arguments: &[String], stdout: impl Into<Stdio>) -> Output {
    let mut command = test.command(env!("CARGO_BIN_EXE_archeflow"));
    command.args(arguments).current_dir(&test.repo).stdin(Stdio::null());
    command.stdout(stdout).stderr(Stdio::piped()).output().unwrap()
}

fn full() -> File {
    OpenOptions::new().write(true).open("/dev/full").unwrap()
}

fn closed() -> std::io::PipeWriter {
    std::io::pipe().unwrap().1
}

#[test]
fn m_b5_u07_every_command_reports_a_full_disk() {
    let test = Test::new();
    let calls = every_command(&test);
    assert!(calls.len() > 80, "{calls:#?}");
    for arguments in calls {
        let output = started(&test, &arguments, full());
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(30), "{arguments:?}: {stderr}");
        let said = stderr.lines().filter(|line| line.contains("could not be written to standard output"));
        assert_eq!(said.count(), 1, "{arguments:?}: {stderr}");
        assert!(!stderr.contains("panicked"), "{arguments:?}: {stderr}");
    }
}

#[test]
fn u_07_every_command_ends_quietly_when_its_reader_is_gone() {
    let test = Test::new();
    for arguments in every_command(&test) {
        let output = started(&test, &arguments, closed());
        let stderr = String::from_utf8_lossy(&output.stderr);
        // A command that failed for a reason of its own keeps its code.
        let own = || started(&test, &arguments, Stdio::piped()).status.code();
        let code = output.status.code();
        assert!(code != Some(0) && (code == Some(NO_READER) || code == own()), "{arguments:?}: {output:?}");
        assert!(!stderr.contains("standard output") && !stderr.contains("panic"), "{arguments:?}: {stderr}");
    }
}

#[test]
fn u_07_a_size_limit_is_reported_like_a_full_disk() {
    let test = Test::new();
    let file = test.base().join("script");
    let line = format!("ulimit -f 1; exec {} completions bash", env!("CARGO_BIN_EXE_archeflow"));
    let mut shell = test.command("sh");
    let output = shell.args(["-c", &line]).stdout(File::create(file).unwrap()).output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(30), "{stderr}");
    assert!(stderr.contains("could not be written to standard output"), "{stderr}");
}

#[test]
fn u_07_a_run_outlives_its_screen() {
    let test = Test::new().play("");
    let arguments = test.arguments("Add a line to the app", &["--auto-merge", "--json"]);
    let output = {
        let mut command = test.command(env!("CARGO_BIN_EXE_archeflow"));
        command.args(&arguments).current_dir(&test.repo).stdin(Stdio::null());
        command.stdout(full()).stderr(full()).output().unwrap()
    };
    // The result is lost, so this is no success; the run is complete.
    assert_eq!(output.status.code(), Some(30));
    let id = test.run_ids().pop().unwrap();
    let status = test.run(&["status", &id, "--json"]);
    assert_eq!(status.json["status"], "merged", "{status}");
    let again = started(&test, &test.arguments("Add another line", &["--auto-merge", "--json"]), full());
    let stderr = String::from_utf8_lossy(&again.stderr);
    assert!(stderr.contains("it is recorded: archeflow show "), "{stderr}");
}

#[test]
fn u_07_a_document_that_is_not_written_is_named_with_the_way_to_write_it() {
    let test = Test::new().play("");
    let merged = test.go(&["--auto-merge"]).ended("merged", "approved", 0);
    let nowhere = test.base().join("no/such/folder/report.md");
    let report = test.run(&["report", &merged.id, "-o", nowhere.to_str().unwrap()]);
    assert_eq!(report.code, 30, "{report}");
    assert!(report.stderr.contains(&format!("archeflow report {}", merged.id)), "{report}");
    // A device is not replaced by a file.
    test.run(&["report", &merged.id, "-o", "/dev/full"]).refused(21, &["not a regular file"]);
}
