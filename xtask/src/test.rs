//! `cargo xtask test`: everything a change must pass, in one command, on a machine with Rust, git and a package
//! manager.
//!
//! The output of every step streams through. The end is a table of steps and one line, `N passed, M failed`, that
//! counts tests over all binaries.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant};

use crate::{collectors, dist, instructions, nats_server, schemas, scratch, targets, tidy};

use tools::install;
pub(crate) use tools::{is_there, version};

mod budget;
mod real_clients;
mod tools;
mod user;

/// Runs of the made-up world, in release; the debug tests play fewer.
const SEEDS: &str = "4000";

struct Step {
    name: &'static str,
    needs: Needs,
    /// What it computes from nothing, on all cores together; generous where that is little. A step that ends while those in
    /// parallel run may be charged with theirs.
    minutes: u64,
    what: &'static str,
    run: fn(&Path, &mut Count) -> Result<Done, String>,
}

/// What a step needs beyond this repository and a debug build, and so when it can be left out.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Needs {
    Nothing,
    /// Minutes: the program is killed at every place, or simulates thousands of runs.
    Minutes,
    /// Real clients, which are large.
    Clients,
    /// Chromium and Neovim.
    Browser,
    /// The message server of a fleet.
    Server,
}

pub(crate) enum Done {
    Well,
    /// Not run, and why that is no failure.
    Skipped(String),
}

/// Tests, over all binaries.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
struct Count {
    passed: u64,
    failed: u64,
    /// The names of those that failed.
    names: Vec<String>,
}

const STEPS: [Step; 23] = [
    Step {
        name: "tools",
        needs: Needs::Nothing,
        minutes: 5,
        what: "required tools are installed",
        run: tools::run,
    },
    Step {
        name: "tidy",
        needs: Needs::Nothing,
        minutes: 5,
        what: "conventions that no compiler checks",
        run: tidy_step,
    },
    Step { name: "fmt", needs: Needs::Nothing, minutes: 5, what: "formatting", run: fmt },
    Step { name: "clippy", needs: Needs::Nothing, minutes: 20, what: "lints, warnings denied", run: clippy },
    Step {
        name: "doc",
        needs: Needs::Nothing,
        minutes: 15,
        what: "documentation, warnings denied",
        run: doc,
    },
    Step { name: "tests", needs: Needs::Nothing, minutes: 60, what: "all tests but the proofs", run: tests },
    Step {
        name: "user",
        needs: Needs::Nothing,
        minutes: 10,
        what: "the sandbox tests again, as an ordinary user",
        run: user::run,
    },
    Step {
        name: "crash",
        needs: Needs::Minutes,
        minutes: 20,
        what: "the program is killed at every failpoint and resumed",
        run: crash,
    },
    Step {
        name: "sprint",
        needs: Needs::Minutes,
        minutes: 10,
        what: "sixty items over twenty repositories, undisturbed and killed",
        run: sprint,
    },
    Step {
        name: "fleet",
        needs: Needs::Server,
        minutes: 20,
        what: "the fleet with a real server, and workers that are killed and paused",
        run: fleet,
    },
    Step {
        name: "browser",
        needs: Needs::Browser,
        minutes: 10,
        what: "reports and pages in a real browser, findings in a real editor",
        run: browser,
    },
    Step {
        name: "schemas",
        needs: Needs::Clients,
        minutes: 10,
        what: "SARIF output, checked by another project's validator",
        run: schemas_step,
    },
    Step {
        name: "telemetry",
        needs: Needs::Clients,
        minutes: 20,
        what: "runs in real collectors",
        run: telemetry,
    },
    Step {
        name: "clients",
        needs: Needs::Clients,
        minutes: 10,
        what: "real clients, about 2 GB the first time",
        run: real_clients::fetch,
    },
    Step {
        name: "smoke",
        needs: Needs::Clients,
        minutes: 20,
        what: "each real client lands a run, with a scripted model",
        run: real_clients::smoke,
    },
    Step {
        name: "matrix",
        needs: Needs::Clients,
        minutes: 60,
        what: "everything that real clients may do, with a scripted model",
        run: real_clients::matrix,
    },
    Step {
        name: "simulation",
        needs: Needs::Minutes,
        minutes: 40,
        what: "4,000 simulated runs",
        run: simulation,
    },
    Step { name: "demo", needs: Needs::Nothing, minutes: 40, what: "the README's first command", run: demo },
    Step {
        name: "instructions",
        needs: Needs::Minutes,
        minutes: 60,
        what: "no more instructions than expected",
        run: instructions_step,
    },
    Step {
        name: "macos",
        needs: Needs::Minutes,
        minutes: 30,
        what: "linted and linked for macOS",
        run: macos,
    },
    Step {
        name: "musl",
        needs: Needs::Minutes,
        minutes: 30,
        what: "a static binary runs the demo",
        run: musl,
    },
    Step {
        name: "packages",
        needs: Needs::Minutes,
        minutes: 30,
        what: "the files of a release are made, installed and removed",
        run: packages,
    },
    Step {
        name: "deny",
        needs: Needs::Nothing,
        minutes: 40,
        what: "licences and sources of dependencies",
        run: deny,
    },
];

/// Steps that run in parallel with those after them.
const BESIDE: [&str; 2] = ["smoke", "matrix"];

/// Steps that take many minutes and rarely fail alone. They run with `--full`, or if they are named.
const FULL: [&str; 6] = ["telemetry", "matrix", "instructions", "macos", "musl", "packages"];

/// The flags, each with what it leaves out.
const FLAGS: [(&str, &[Needs]); 4] = [
    ("--quick", &[Needs::Minutes, Needs::Clients, Needs::Browser, Needs::Server]),
    ("--without-clients", &[Needs::Clients]),
    ("--without-browser", &[Needs::Browser]),
    ("--without-server", &[Needs::Server]),
];

/// What was asked for.
struct Asked<'a> {
    named: Vec<&'a str>,
    full: bool,
    left_out: Vec<(&'static str, &'static [Needs])>,
}

impl Asked<'_> {
    fn read<'a>(args: &[&'a str]) -> Result<Asked<'a>, String> {
        let (mut flags, named): (Vec<&str>, Vec<&str>) = args.iter().partition(|arg| arg.starts_with('-'));
        let all = flags.len();
        flags.retain(|flag| *flag != "--full");
        let full = flags.len() < all;
        if let Some(unknown) = flags.iter().find(|arg| !FLAGS.iter().any(|(flag, _)| flag == *arg)) {
            return Err(format!(
                "no flag is called '{unknown}'. Known: {}, --full",
                FLAGS.map(|(flag, _)| flag).join(", ")
            ));
        }
        if let Some(unknown) = named.iter().find(|name| !STEPS.iter().any(|step| step.name == **name)) {
            let known = STEPS.map(|step| step.name).join(", ");
            return Err(format!("no step is called '{unknown}'. Known: {known}"));
        }
        let left_out = FLAGS.into_iter().filter(|(flag, _)| flags.contains(flag)).collect();
        Ok(Asked { named, full, left_out })
    }

    fn wants(&self, step: &Step) -> bool {
        self.named.is_empty() || self.named.contains(&step.name)
    }

    /// Why this step does not run.
    fn without(&self, step: &Step) -> Option<String> {
        let flag = self.left_out.iter().find(|(_, needs)| needs.contains(&step.needs));
        let only_full = FULL.contains(&step.name) && !self.full && self.named.is_empty();
        flag.map(|(flag, _)| format!("left out: {flag}"))
            .or_else(|| only_full.then(|| "left out: runs with --full".to_owned()))
    }
}

pub(crate) fn run(root: &Path, args: &[&str]) -> ExitCode {
    let asked = match Asked::read(args) {
        Ok(asked) => asked,
        Err(why) => {
            eprintln!("xtask test: {why}");
            return ExitCode::from(2);
        }
    };
    let steps: Vec<&Step> = STEPS.iter().filter(|step| asked.wants(step)).collect();
    let begun = Instant::now();
    let results = run_all(root, &asked, &steps);
    let good = results.iter().all(|result| !result.failed);
    close(&results, begun.elapsed());
    if good { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

struct StepResult {
    step: &'static Step,
    word: String,
    failed: bool,
    took: Duration,
    /// What its commands computed, on all cores; unknown outside Linux, and for steps in parallel with others.
    computed: Option<Duration>,
    count: Count,
}

/// One step after the other up to the first that fails. The real clients spend most of their time waiting for retries, so
/// they run in parallel with the builds that follow, and are waited for in any case.
fn run_all(root: &Path, asked: &Asked<'_>, steps: &[&'static Step]) -> Vec<StepResult> {
    std::thread::scope(|scope| {
        let (mut results, mut beside) = (Vec::new(), Vec::new());
        for &step in steps {
            if let Some(word) = asked.without(step) {
                let (failed, took, computed, count) = Default::default();
                results.push(StepResult { step, word, failed, took, computed, count });
            } else if BESIDE.contains(&step.name) {
                beside.push(scope.spawn(|| run_step(root, step)));
            } else {
                results.push(run_step(root, step));
            }
            if results.last().is_some_and(|result| result.failed) {
                break;
            }
        }
        let unwind = |panic| std::panic::resume_unwind(panic);
        results.extend(beside.into_iter().map(|thread| thread.join().unwrap_or_else(unwind)));
        results.sort_by_key(|result| steps.iter().position(|step| step.name == result.step.name));
        results
    })
}

fn run_step(root: &Path, step: &'static Step) -> StepResult {
    println!("\n==> {}: {}", step.name, step.what);
    let (begun, before, mut count) = (Instant::now(), budget::computed(), Count::default());
    let mut result = (step.run)(root, &mut count);
    let alone = !BESIDE.contains(&step.name);
    let computed =
        budget::computed().zip(before).map(|(now, before)| now.saturating_sub(before)).filter(|_| alone);
    if let (Ok(_), Some(why)) = (&result, computed.and_then(|computed| budget::over(step, computed))) {
        result = Err(why);
    }
    let word = match &result {
        Ok(Done::Well) => "ok".to_owned(),
        Ok(Done::Skipped(why)) => format!("skipped: {why}"),
        Err(why) => format!("FAILED: {why}"),
    };
    println!("<== {}: {word} ({:.1} s)", step.name, begun.elapsed().as_secs_f64());
    StepResult { step, word, failed: result.is_err(), took: begun.elapsed(), computed, count }
}

fn close(results: &[StepResult], whole: Duration) {
    println!("\n{:<12} {:>8} {:>9}  result", "step", "seconds", "computed");
    for StepResult { step, word, took, computed, .. } in results {
        let computed = computed.map_or_else(String::new, |computed| format!("{:.1}", computed.as_secs_f64()));
        println!("{:<12} {:>8.1} {computed:>9}  {word}", step.name, took.as_secs_f64());
    }
    println!("{:<12} {:>8.1}", "all", whole.as_secs_f64());
    let names: Vec<&str> =
        results.iter().flat_map(|result| &result.count.names).map(String::as_str).collect();
    if !names.is_empty() {
        println!("\nfailed: {}", names.join(", "));
    }
    let sum = |number: fn(&Count) -> u64| results.iter().map(|result| number(&result.count)).sum::<u64>();
    println!("\n{} passed, {} failed", sum(|count| count.passed), sum(|count| count.failed));
}

fn tidy_step(root: &Path, _: &mut Count) -> Result<Done, String> {
    if tidy::run(root) == ExitCode::SUCCESS { Ok(Done::Well) } else { Err("tidy has complaints".to_owned()) }
}

fn fmt(root: &Path, _: &mut Count) -> Result<Done, String> {
    through(root, &["cargo", "fmt", "--all", "--check"], &[])?;
    // Modules that a macro declares are not visited by `cargo fmt`.
    let folder = root.join("core/src/rules/shadows");
    let listing = std::fs::read_dir(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut files: Vec<String> =
        listing.flatten().map(|entry| entry.path().to_string_lossy().into_owned()).collect();
    files.sort();
    let mut words = vec!["rustfmt", "--check", "--edition", "2024"];
    words.extend(files.iter().map(String::as_str));
    through(root, &words, &[])
}

fn clippy(root: &Path, _: &mut Count) -> Result<Done, String> {
    through(root, &["cargo", "clippy", "--workspace", "--all-targets", "--", "-D", "warnings"], &[])
}

fn doc(root: &Path, _: &mut Count) -> Result<Done, String> {
    through(root, &["cargo", "doc", "--workspace", "--no-deps"], &[("RUSTDOCFLAGS", "-D warnings")])
}

/// Each test runs once: one that fails now and then has a reason to be found.
fn tests(root: &Path, count: &mut Count) -> Result<Done, String> {
    let names = test_binaries(root).map_err(|error| format!("the tests can't be listed: {error}"))?;
    let mut words = vec!["cargo", "test", "--workspace", "--no-fail-fast", "--lib", "--bins"];
    for name in names.iter().filter(|name| !PROOFS.contains(&name.as_str())) {
        words.extend(["--test", name]);
    }
    in_memory(root, &words, count)
}

/// Binaries of tests that take minutes or a server, and are steps of their own.
const PROOFS: [&str; 9] =
    ["crash", "proof_sprint", "nats", "cluster", "shared", "conductor", "views", "fleet_views", "fleet"];

/// The names of all integration tests, each once, though several crates may have one of that name.
fn test_binaries(root: &Path) -> std::io::Result<BTreeSet<String>> {
    let mut names = BTreeSet::new();
    for member in ["core", "host", "serve", "fleet", "app"] {
        for entry in std::fs::read_dir(root.join(member).join("tests"))? {
            let path = entry?.path();
            let name = path.file_stem().filter(|_| path.extension().is_some_and(|end| end == "rs"));
            names.extend(name.map(|name| name.to_string_lossy().into_owned()));
        }
    }
    Ok(names)
}

fn crash(root: &Path, count: &mut Count) -> Result<Done, String> {
    in_memory(root, &["cargo", "test", "-p", "archeflow", "--test", "crash", "--no-fail-fast"], count)
}

/// Runs test binaries with their files in memory, where there is enough of it.
fn in_memory(root: &Path, words: &[&str], count: &mut Count) -> Result<Done, String> {
    let folder = scratch::folder();
    let place = folder.as_ref().map(|folder| folder.path().display().to_string());
    let env: Vec<(&str, &str)> = place.iter().map(|place| ("TMPDIR", place.as_str())).collect();
    counted(root, words, &env, count)
}

/// One after the other, since each of them fills the machine.
fn sprint(root: &Path, count: &mut Count) -> Result<Done, String> {
    let words = ["cargo", "test", "-p", "archeflow", "--test", "proof_sprint", "--", "--include-ignored"];
    in_memory(root, &[&words[..], &["--test-threads=1"]].concat(), count)
}

/// What a fleet asks of its server, and what happens when that is killed, wiped or full.
fn fleet(root: &Path, count: &mut Count) -> Result<Done, String> {
    let program = nats_server::fetch(root)?;
    let env = [(nats_server::VARIABLE, program.as_str())];
    let words = ["cargo", "test", "-p", "archeflow-fleet", "-p", "archeflow", "--no-fail-fast"];
    let fleet = PROOFS.iter().filter(|name| !["crash", "proof_sprint"].contains(name));
    let tests: Vec<&str> = fleet.flat_map(|name| ["--test", name]).collect();
    // Each of them starts servers and processes of its own.
    counted(root, &[&words[..], &tests, &["--", "--test-threads=2"]].concat(), &env, count)
}

/// Hostile text must be inert where it is really shown: no other check can say so.
fn browser(root: &Path, count: &mut Count) -> Result<Done, String> {
    if !is_there("chromium") {
        install("chromium");
    }
    if !is_there("chromium") {
        let why =
            "chromium is MISSING and could not be installed; without it: cargo xtask test --without-browser";
        return Err(why.to_owned());
    }
    if !is_there("nvim") {
        install("neovim");
    }
    if !is_there("nvim") {
        let why =
            "neovim is MISSING and could not be installed; without it: cargo xtask test --without-browser";
        return Err(why.to_owned());
    }
    let axe = axe(root)?;
    let words = ["cargo", "test", "-p", "archeflow", "--test", "e2e", "--", "--ignored"];
    let words = [&words[..], &["in_a_browser", "in_an_editor"]].concat();
    counted(root, &words, &[("ARCHEFLOW_AXE", &axe)], count)
}

/// The rules of accessibility that pages are checked by: a package of npm, below `target/axe`.
fn axe(root: &Path) -> Result<String, String> {
    const AXE: &str = "axe-core@4.14.0";
    let folder = root.join("target/axe");
    let program = folder.join("node_modules/axe-core/axe.min.js");
    if !program.is_file() {
        std::fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        let place = folder.display().to_string();
        through(
            root,
            &["npm", "install", "--silent", "--no-audit", "--no-fund", "--prefix", &place, AXE],
            &[],
        )?;
    }
    Ok(program.display().to_string())
}

fn schemas_step(root: &Path, _: &mut Count) -> Result<Done, String> {
    schemas::check(root).map(|()| Done::Well)
}

/// What collectors of others make of a run.
fn telemetry(root: &Path, count: &mut Count) -> Result<Done, String> {
    let places = collectors::fetch(root)?;
    let env: Vec<(&str, &str)> = places.iter().map(|(name, place)| (*name, place.as_str())).collect();
    let words = ["cargo", "test", "-p", "archeflow", "--test", "e2e", "--", "--ignored", "with_a_collector"];
    counted(root, &words, &env, count)
}

fn simulation(root: &Path, count: &mut Count) -> Result<Done, String> {
    let words = ["cargo", "test", "--release", "-p", "archeflow-core", "--test", "simulation"];
    counted(root, &words, &[("ARCHEFLOW_SEEDS", SEEDS)], count)
}

fn demo(root: &Path, _: &mut Count) -> Result<Done, String> {
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let place = folder.path().join("demo").display().to_string();
    through(root, &["cargo", "run", "--", "demo", "--quick", "--dir", &place], &[])
}

/// Where there is no valgrind there is nothing to count with.
fn instructions_step(root: &Path, _: &mut Count) -> Result<Done, String> {
    if !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        return Ok(Done::Skipped("the expected numbers are for Linux on x86-64".to_owned()));
    }
    instructions::check(root)
}

fn macos(root: &Path, _: &mut Count) -> Result<Done, String> {
    targets::macos(root)
}

fn musl(root: &Path, _: &mut Count) -> Result<Done, String> {
    targets::musl(root)
}

fn packages(root: &Path, _: &mut Count) -> Result<Done, String> {
    if !is_there("dpkg-deb") {
        install("dpkg");
    }
    dist::step(root)
}

/// Licences, bans and sources block; advisories only inform, since they change without us.
fn deny(root: &Path, _: &mut Count) -> Result<Done, String> {
    if version(&["cargo", "deny", "--version"]).is_none() {
        return Ok(Done::Skipped("cargo-deny is not installed".to_owned()));
    }
    if let Err(why) = through(root, &["cargo", "deny", "check", "advisories"], &[]) {
        println!("note, not a failure: advisories: {why}");
    }
    through(root, &["cargo", "deny", "--offline", "check", "licenses", "bans", "sources"], &[])
}

/// Where a build with this profile puts a program.
pub(crate) fn built(root: &Path, profile: &str, program: &str) -> String {
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), Into::into);
    target.join(profile).join(program).display().to_string()
}

/// Runs a command with its output going straight through.
pub(crate) fn through(root: &Path, words: &[&str], env: &[(&str, &str)]) -> Result<Done, String> {
    println!("$ {}", words.join(" "));
    let status = command(words).current_dir(root).envs(env.iter().copied()).status();
    ended(words, status)
}

/// A test binary prints a line for each test; the slowest takes a few minutes on a busy machine.
const SILENCE: Duration = Duration::from_secs(15 * 60);

/// The same for test binaries, whose results are counted on the way; one that hangs is a failure, not a wait.
fn counted(root: &Path, words: &[&str], env: &[(&str, &str)], count: &mut Count) -> Result<Done, String> {
    build_tests(root, words, env)?;
    let said: String = env.iter().map(|(name, value)| format!("{name}={value} ")).collect();
    println!("$ {said}{}", words.join(" "));
    let mut child = command(words)
        .current_dir(root)
        .envs(env.iter().copied())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| format!("{}: {error}", words.join(" ")))?;
    let (send, lines) = std::sync::mpsc::channel();
    if let Some(stdout) = child.stdout.take() {
        let read = move || {
            let lines = BufReader::new(stdout).split(b'\n').map_while(Result::ok);
            lines.map_while(|line| send.send(line).ok()).for_each(drop);
        };
        std::thread::spawn(read);
    }
    let mut screen = std::io::stdout();
    loop {
        match lines.recv_timeout(SILENCE) {
            Ok(line) => {
                // In one piece: another step may be printing.
                let _ = screen.write_all(&[&line[..], b"\n"].concat());
                count.add(&String::from_utf8_lossy(&line));
            }
            Err(RecvTimeoutError::Disconnected) => return ended(words, child.wait()),
            Err(RecvTimeoutError::Timeout) => {
                let _ = child.kill();
                let _ = child.wait();
                let minutes = SILENCE.as_secs() / 60;
                return Err(format!(
                    "`{}` printed nothing for {minutes} minutes: a test hangs",
                    words.join(" ")
                ));
            }
        }
    }
}

/// Before silence is measured: on a busy machine a compiler works for longer without a word than any test.
fn build_tests(root: &Path, words: &[&str], env: &[(&str, &str)]) -> Result<Done, String> {
    let of_cargo = words.split(|word| *word == "--").next().unwrap_or_default();
    match of_cargo {
        ["cargo", "test", ..] => through(root, &[of_cargo, &["--no-run"]].concat(), env),
        _ => Ok(Done::Well),
    }
}

fn ended(words: &[&str], status: std::io::Result<std::process::ExitStatus>) -> Result<Done, String> {
    match status {
        Ok(status) if status.success() => Ok(Done::Well),
        Ok(status) => Err(format!("`{}` ended with {status}", words.join(" "))),
        Err(error) => Err(format!("`{}` could not be started: {error}", words.join(" "))),
    }
}

pub(crate) fn command(words: &[&str]) -> Command {
    let mut command = Command::new(words.first().copied().unwrap_or("false"));
    command.args(words.iter().skip(1)).stdin(Stdio::null());
    // The variables cargo set for this very program would make every inner build a different one.
    for (name, _) in std::env::vars_os() {
        let name = name.to_string_lossy();
        if name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_") || name == "CARGO_CRATE_NAME"
        {
            command.env_remove(name.as_ref());
        }
    }
    command
}

impl Count {
    /// Takes in a line such as `test result: ok. 12 passed; 0 failed; 1 ignored; ...`.
    fn add(&mut self, line: &str) {
        let failed =
            line.trim_start().strip_prefix("test ").and_then(|rest| rest.strip_suffix(" ... FAILED"));
        self.names.extend(failed.map(str::to_owned));
        let Some(result) = line.trim_start().strip_prefix("test result: ") else { return };
        let before = |word: &str| {
            let words: Vec<&str> = result.split([' ', ';', '.']).filter(|word| !word.is_empty()).collect();
            let at = words.iter().position(|found| *found == word)?;
            words.get(at.checked_sub(1)?)?.parse::<u64>().ok()
        };
        self.passed += before("passed").unwrap_or(0);
        self.failed += before("failed").unwrap_or(0);
    }
}

#[cfg(test)]
mod tests;
