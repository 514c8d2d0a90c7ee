//! Which tests are run once the whole suite has crashed (PJ-50): those that the change touches, where the runner can be
//! told that.
//!
//! A command is only taken apart if it is plain words: what a shell makes of anything else is not ours to guess. The
//! same goes for the names of files, which agents choose.

/// Beyond this it is the whole suite again.
const FILES_AT_MOST: usize = 50;

/// What may come before the runner, word by word.
const BEFORE: [&[&str]; 12] = [
    &["npx"],
    &["bunx"],
    &["pnpm", "exec"],
    &["yarn", "exec"],
    &["uv", "run"],
    &["poetry", "run"],
    &["pipenv", "run"],
    &["hatch", "run"],
    &["python", "-m"],
    &["python3", "-m"],
    &["bundle", "exec"],
    &["env"],
];

/// How a runner is given the tests to run.
#[derive(Clone, Copy)]
enum Takes {
    /// Files with one of these endings.
    Files(&'static [&'static str]),
    /// The same, behind `--`.
    FilesBehind(&'static [&'static str]),
    /// The folders of such files.
    Folders(&'static [&'static str]),
    /// `--test <name>` for `tests/<name>.rs`.
    Targets,
}

const SCRIPTS: &[&str] = &["js", "jsx", "ts", "tsx", "mjs", "cjs", "mts", "cts"];

const RUNNERS: [(&[&str], Takes); 20] = [
    (&["pytest"], Takes::Files(&["py"])),
    (&["py.test"], Takes::Files(&["py"])),
    (&["jest"], Takes::Files(SCRIPTS)),
    (&["vitest"], Takes::Files(SCRIPTS)),
    (&["mocha"], Takes::Files(SCRIPTS)),
    (&["ava"], Takes::Files(SCRIPTS)),
    (&["node", "--test"], Takes::Files(SCRIPTS)),
    (&["bun", "test"], Takes::Files(SCRIPTS)),
    (&["deno", "test"], Takes::Files(SCRIPTS)),
    (&["yarn", "test"], Takes::Files(SCRIPTS)),
    (&["pnpm", "test"], Takes::Files(SCRIPTS)),
    (&["npm", "test"], Takes::FilesBehind(SCRIPTS)),
    (&["npm", "run", "test"], Takes::FilesBehind(SCRIPTS)),
    (&["npm", "t"], Takes::FilesBehind(SCRIPTS)),
    (&["rspec"], Takes::Files(&["rb"])),
    (&["bats"], Takes::Files(&["bats"])),
    (&["mix", "test"], Takes::Files(&["exs"])),
    (&["go", "test"], Takes::Folders(&["go"])),
    (&["cargo", "test"], Takes::Targets),
    (&["cargo", "t"], Takes::Targets),
];

/// The command with only the tests among these files; nothing where its runner is not known, or no test is among them.
pub fn fewer(command: &str, changed: &[&str]) -> Option<String> {
    if !command.chars().all(|c| is_plain(c) || c == ' ') {
        return None;
    }
    let words: Vec<&str> = command.split(' ').filter(|word| !word.is_empty()).collect();
    let start = runner_at(&words);
    let (name, takes) =
        RUNNERS.iter().find(|(name, _)| words.get(start..).is_some_and(|rest| rest.starts_with(name)))?;
    let (head, rest) = words.split_at(start + name.len());
    let picked = picked(*takes, changed.iter().copied().filter(|path| is_safe(path)), rest)?;
    let (kept, behind) = match rest.iter().position(|word| *word == "--") {
        Some(at) => rest.split_at(at),
        None => (rest, &rest[rest.len()..]),
    };
    let kept = kept.iter().copied().filter(|word| !covers(word, &picked));
    let mut all: Vec<&str> = head.iter().copied().chain(kept).collect();
    match takes {
        Takes::FilesBehind(_) => {
            all.push("--");
            all.extend(behind.iter().skip(1).copied().filter(|word| !covers(word, &picked)));
            all.extend(picked.iter().map(String::as_str));
        }
        Takes::Files(_) | Takes::Folders(_) | Takes::Targets => {
            all.extend(picked.iter().map(String::as_str));
            all.extend(behind);
        }
    }
    Some(all.join(" "))
}

/// Behind variables and whatever only starts the runner.
fn runner_at(words: &[&str]) -> usize {
    let mut at = 0;
    while let Some(rest) = words.get(at..).filter(|rest| !rest.is_empty()) {
        match BEFORE.iter().find(|before| rest.starts_with(before)) {
            Some(before) => at += before.len(),
            None if rest[0].contains('=') && !rest[0].starts_with('-') => at += 1,
            None => break,
        }
    }
    at
}

fn picked<'a>(takes: Takes, files: impl Iterator<Item = &'a str>, rest: &[&str]) -> Option<Vec<String>> {
    let mut picked: Vec<String> = match takes {
        Takes::Files(endings) | Takes::FilesBehind(endings) => {
            files.filter(|path| is_test(path, endings)).map(str::to_owned).collect()
        }
        Takes::Folders(endings) => {
            let folder = |path: &str| {
                path.rsplit_once('/').map_or(".".to_owned(), |(folder, _)| format!("./{folder}"))
            };
            files.filter(|path| is_test(path, endings)).map(folder).collect()
        }
        Takes::Targets => {
            // Which package a file belongs to is not to be seen from its name, nor what is meant with one chosen.
            let chosen = [
                "-p",
                "--package",
                "--manifest-path",
                "--workspace",
                "--all",
                "--test",
                "--lib",
                "--bin",
                "--doc",
            ];
            if rest
                .iter()
                .take_while(|word| **word != "--")
                .any(|word| chosen.contains(&word.split('=').next().unwrap_or_default()))
            {
                return None;
            }
            let name = |path: &str| {
                path.strip_prefix("tests/")?
                    .strip_suffix(".rs")
                    .filter(|name| !name.contains('/'))
                    .map(str::to_owned)
            };
            files.filter_map(name).map(|name| format!("--test={name}")).collect()
        }
    };
    picked.sort();
    picked.dedup();
    (1..=FILES_AT_MOST).contains(&picked.len()).then_some(picked)
}

/// By its own name: a file beside tests, such as shared helpers, is none, and a runner that finds no test in what
/// it is given fails.
fn is_test(path: &str, endings: &[&str]) -> bool {
    let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
    let Some((stem, ending)) = name.rsplit_once('.') else { return false };
    let named = stem.starts_with("test_")
        || ["_test", "-test", ".test", "_spec", "-spec", ".spec"].iter().any(|end| stem.ends_with(end))
        || folder.split('/').any(|part| part == "__tests__")
        || ending == "bats";
    named && endings.contains(&ending)
}

/// A word that asks for more than what was picked, such as the folder it is in.
fn covers(word: &str, picked: &[String]) -> bool {
    if matches!(word, "." | "./" | "./..." | "..." | "--all-targets" | "--tests") {
        return true;
    }
    let plain =
        |path: &str| path.trim_start_matches("./").trim_end_matches("...").trim_end_matches('/').to_owned();
    let word = plain(word);
    !word.is_empty()
        && !word.starts_with('-')
        && picked.iter().any(|path| {
            plain(path).strip_prefix(&word).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        })
}

fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || "_./:=,@%+-".contains(c)
}

fn is_safe(path: &str) -> bool {
    !path.is_empty() && !path.starts_with('-') && path.chars().all(is_plain)
}
