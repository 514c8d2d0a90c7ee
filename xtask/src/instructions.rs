//! `cargo xtask instructions`: how many instructions the program takes for work that is always the same.
//!
//! Time says little on a machine that others use; the count hardly changes from one run to the next, so that it shows
//! when code becomes slower little by little. Valgrind counts. The counts that are expected are in
//! `xtask/instructions.txt`; one that is exceeded by far is a failure. They hold for one compiler and for processors with
//! the same instructions, since code looks for those; elsewhere nothing is compared.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use crate::bench::{COUNTED, prepare};
use crate::test::{self, Done};

/// Room for other processors and compilers, in percent.
const ROOM: u64 = 15;

const HEAD: &str = "\
# Instructions, counted by valgrind. Renew with `cargo xtask instructions --renew` when a change is worth its cost, and
# say so in its commit; renew it as well when a change saves many, so that they stay saved.
";

/// What the program's start is called among the counted.
const STARTUP: &str = "startup";

pub(crate) fn run(root: &Path, args: &[&str]) -> ExitCode {
    let done = match args {
        [] => check(root),
        ["--renew"] => renew(root),
        _ => Err("it takes no argument but --renew".to_owned()),
    };
    match done {
        Ok(_) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("xtask instructions: {why}");
            ExitCode::FAILURE
        }
    }
}

/// The work itself, in the process that is counted.
pub(crate) fn work(name: &str, folder: &str) -> ExitCode {
    let Some((_, work)) = COUNTED.iter().find(|(known, _)| *known == name) else {
        eprintln!("xtask: nothing that is counted is called '{name}'");
        return ExitCode::from(2);
    };
    match work(Path::new(folder)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {name}: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Compares with what is expected.
pub(crate) fn check(root: &Path) -> Result<Done, String> {
    let expected = read(root)?;
    let (then, now) = (expected.made_by, maker()?);
    if then != now {
        return Ok(Done::Skipped(format!("the file was counted with {then}, and this is {now}")));
    }
    let expected = expected.counts;
    let counted = count(root)?;
    let mut over = Vec::new();
    println!("{:<10} {:>14} {:>14} {:>8}", "work", "expected", "counted", "change");
    for (name, now) in &counted {
        let Some(before) = expected.get(name).copied() else {
            return Err(format!("{} has no line '{name}': {RENEW}", file(root).display()));
        };
        println!("{name:<10} {before:>14} {now:>14} {:>8}", change(before, *now));
        if *now > before / 100 * (100 + ROOM) {
            over.push(format!("{name} {}", change(before, *now)));
        }
    }
    if over.is_empty() {
        return Ok(Done::Well);
    }
    Err(format!(
        "more instructions than expected: {}. Find out why (`valgrind --tool=callgrind`), or, if it is worth it, {RENEW}",
        over.join(", ")
    ))
}

const RENEW: &str = "renew the file with `cargo xtask instructions --renew`";

fn change(before: u64, now: u64) -> String {
    let percent = i128::from(now) * 100 / i128::from(before.max(1)) - 100;
    format!("{percent:+} %")
}

fn renew(root: &Path) -> Result<Done, String> {
    let mut text = format!("{HEAD}{MADE_BY} {}\n", maker()?);
    for (name, count) in count(root)? {
        let _ = writeln!(text, "{name} {count}");
    }
    std::fs::write(file(root), text).map_err(|error| format!("{}: {error}", file(root).display()))?;
    Ok(Done::Well)
}

fn file(root: &Path) -> PathBuf {
    root.join("xtask/instructions.txt")
}

const MADE_BY: &str = "counted with";

/// Instructions of processors that code looks for when it starts.
const LOOKED_FOR: [&str; 6] = ["sse4_2", "pclmulqdq", "avx", "avx2", "bmi2", "sha_ni"];

/// The compiler and the kind of processor.
fn maker() -> Result<String, String> {
    let compiler = test::version(&["rustc", "--version"]).ok_or("rustc does not say its version")?;
    let about = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let flags = about.lines().find_map(|line| line.strip_prefix("flags")).unwrap_or_default();
    let has = |name: &&str| flags.split_whitespace().any(|flag| flag == *name);
    let found: Vec<&str> = LOOKED_FOR.into_iter().filter(|name| has(name)).collect();
    Ok(format!("{} on a processor with {}", compiler.trim(), found.join(" ")))
}

/// What the file says.
struct ExpectedCounts {
    made_by: String,
    counts: BTreeMap<String, u64>,
}

fn read(root: &Path) -> Result<ExpectedCounts, String> {
    let text = std::fs::read_to_string(file(root))
        .map_err(|error| format!("{}: {error}; {RENEW}", file(root).display()))?;
    parse(&text)
        .map_err(|line| format!("{}: '{line}' is not a name and a number; {RENEW}", file(root).display()))
}

/// What the file says, or the line that can't be read.
fn parse(text: &str) -> Result<ExpectedCounts, String> {
    let made_by =
        text.lines().find_map(|line| line.strip_prefix(MADE_BY)).unwrap_or_default().trim().to_owned();
    let is_count =
        |line: &&str| !line.starts_with('#') && !line.starts_with(MADE_BY) && !line.trim().is_empty();
    let lines = text.lines().filter(is_count);
    let pair = |line: &str| {
        let (name, count) = line.split_once(' ')?;
        Some((name.to_owned(), count.trim().parse().ok()?))
    };
    let counts = lines.map(|line| pair(line).ok_or_else(|| line.to_owned())).collect::<Result<_, _>>()?;
    Ok(ExpectedCounts { made_by, counts })
}

/// Counts everything, in builds for distribution.
fn count(root: &Path) -> Result<BTreeMap<String, u64>, String> {
    if !test::is_there("valgrind") {
        return Err("valgrind is MISSING; `cargo xtask test tools` installs it".to_owned());
    }
    test::through(
        root,
        &["cargo", "build", "--profile", "dist", "--package", "archeflow", "--package", "xtask"],
        &[],
    )?;
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    prepare(folder.path()).map_err(|error| format!("the journal to be folded: {error}"))?;
    let place = folder.path().display().to_string();
    let (me, program) = (test::built(root, "dist", "xtask"), test::built(root, "dist", "archeflow"));
    let mut counted = BTreeMap::new();
    counted.insert(STARTUP.to_owned(), instructions(&[&program, "--version"])?);
    for (name, _) in COUNTED {
        counted.insert(name.to_owned(), instructions(&[&me, "__counted", name, &place])?);
    }
    Ok(counted)
}

/// The instructions of a process with all its threads.
fn instructions(words: &[&str]) -> Result<u64, String> {
    let tool = ["--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null"];
    let output = Command::new("valgrind")
        .args(tool)
        .args(words)
        .output()
        .map_err(|error| format!("valgrind can't be started: {error}"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        return Err(format!("{}: {said}", words.join(" ")));
    }
    refs(&said).ok_or_else(|| format!("valgrind does not say how many instructions there were: {said}"))
}

/// `==1== I refs:      56,594,568`, with more blanks in some versions.
fn refs(said: &str) -> Option<u64> {
    let line = said.lines().find(|line| line.split_whitespace().skip(1).take(2).eq(["I", "refs:"]))?;
    line.split_whitespace().last()?.replace(',', "").parse().ok()
}

#[cfg(test)]
mod tests {
    use super::{parse, refs};

    #[test]
    fn counts_are_read() {
        assert_eq!(refs("==1== x\n==1== \n==1== I   refs:      56,594,568\n"), Some(56_594_568));
        assert_eq!(refs("==1== I refs: 7"), Some(7));
        assert_eq!(refs("==1== D refs: 7"), None);
        let expected = parse("# a\ncounted with rustc 1\n\nfold 12\nread 3\n").expect("two lines");
        assert_eq!(expected.made_by, "rustc 1");
        let counts: Vec<_> = expected.counts.into_iter().collect();
        assert_eq!(counts, [("fold".to_owned(), 12), ("read".to_owned(), 3)]);
        assert_eq!(parse("fold x").err().as_deref(), Some("fold x"));
    }
}
