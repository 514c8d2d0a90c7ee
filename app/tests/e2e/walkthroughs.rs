//! What the documentation tells a newcomer to type, typed as it stands (U-18).

use std::fs;

use crate::harness::Test;
use crate::screen::Pty;

const README: &str = include_str!("../../../README.md");

/// The first fenced block behind these words.
fn block(words: &str, kind: &str) -> &'static str {
    let behind = README.split(words).nth(1).unwrap_or_else(|| panic!("the README no longer says '{words}'"));
    let fenced = behind.split(&format!("```{kind}\n")).nth(1).unwrap();
    fenced.split("\n```").next().unwrap()
}

#[test]
fn u_18_the_first_run_of_the_readme_goes_as_it_is_shown() {
    let test = Test::empty("repo").without_tests();
    test.file("greet.sh", "echo \"Hello, world\"\n");
    test.file("tests/run.sh", "[ \"$(sh greet.sh)\" = \"Hello, world\" ]\n");
    test.commit("Greet the world");
    fs::write(test.home().join("stand-in.sh"), block("use a stand-in that prints replies", "sh")).unwrap();

    let shown = block("`tests/run.sh` that checks it", "console");
    let (typed, screen) = shown.split_once('\n').unwrap();
    let command = typed.strip_prefix("$ archeflow ").unwrap();
    let path = std::path::Path::new(env!("CARGO_BIN_EXE_archeflow")).parent().unwrap().to_owned();
    let script = format!("PATH={}:$PATH; archeflow {command}", path.display());
    let pty = Pty::run(&test, &["sh", "-c", &script], (120, 60));
    let (before, after) = screen.split_once("[y/N] y\n").unwrap();
    for line in before.lines().filter(|line| line.starts_with('[')) {
        sees(&pty, line);
    }
    pty.see("sh tests/run.sh").see("[y/N]").press("y\n");
    after.lines().filter(|line| line.starts_with('[')).for_each(|line| sees(&pty, line));
    let (code, _) = pty.says("merged (approved): landed on main");
    assert_eq!(code, 0);
    assert_eq!(test.read("greet.sh"), "echo \"Hello, ${1:-world}\"\n");
}

/// A line of progress, apart from times and commits.
fn sees(pty: &Pty, line: &str) {
    let (doing, outcome) = line.split_once("->").unwrap();
    pty.see(doing.trim_end());
    let words: Vec<&str> = outcome.split_whitespace().take_while(|word| !word.starts_with('(')).collect();
    let named = |word: &&str| !(word.len() == 10 && word.chars().all(|c| c.is_ascii_hexdigit()));
    let words: Vec<&str> = words.into_iter().filter(named).collect();
    pty.see(&words.join(" "));
}
