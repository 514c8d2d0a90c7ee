//! The program's own eyes on a change (D-07): what a model must not be trusted to point out about its own work.
//!
//! Plain scanning of paths, modes and text. Where it is wrong it is wrong on the careful side, and a person can
//! lower a sign's severity in their own configuration.

pub use super::content::{BinaryContent, turns_text};
pub use super::credentials::{credential, masked, without_credentials};
pub use super::testing::{
    Strength, StrengthReader, adds_a_test, has_tests_inside, is_test_path, steers_collection, strength,
    strength_in, strength_of_line,
};
use std::collections::BTreeSet;

use super::testing::keys_of_tests;
use crate::model::{Counted, FileStatus, Sign, Signs};
use crate::rules::client_files::configured_client;

/// What the scan is given of one changed file.
#[derive(Debug, Clone, Default)]
pub struct ScannedFile<'a> {
    /// Quoted as git quotes.
    pub path: &'a str,
    pub status: Option<FileStatus>,
    pub old_mode: u32,
    pub new_mode: u32,
    pub binary: bool,
    pub new_size: u64,
    /// Lines removed or replaced.
    pub removed: u64,
    /// Before and after, for test files; nothing where there is none.
    pub old: Strength,
    pub new: Strength,
    /// The first added line with a credential: its number in the new file, and the kind.
    pub credential: Option<(u32, &'static str)>,
    /// What the bytes of a binary file are.
    pub content: BinaryContent,
    /// The first added line whose order on a screen is not that of its bytes.
    pub turned: Option<u32>,
}

const SYMLINK: u32 = 0o120_000;
const GITLINK: u32 = 0o160_000;

pub fn look(files: &[ScannedFile<'_>], binary_bytes: u64) -> Signs {
    let mut seen = Vec::new();
    for file in files {
        let mut note = |sign, line, detail: String| {
            seen.push(Counted { sign, path: file.path.to_owned(), line, detail });
        };
        let deleted = file.status == Some(FileStatus::Deleted);
        if is_ci(file.path) {
            note(Sign::CiChanged, 0, format!("CI configuration changed: {}", file.path));
        }
        if is_own_state(file.path) {
            note(Sign::OwnStateChanged, 0, format!("archeflow's own files changed: {}", file.path));
        }
        if !deleted && file.new_mode == SYMLINK && file.old_mode != SYMLINK {
            note(Sign::SymlinkAdded, 0, format!("symbolic link added: {}", file.path));
        }
        if file.new_mode == GITLINK || file.old_mode == GITLINK || file.path == ".gitmodules" {
            note(Sign::SubmoduleChanged, 0, format!("submodule changed: {}", file.path));
        }
        if let Some(sign) = steers(file.path) {
            note(sign, 0, format!("{}: {}", stirring(sign), file.path));
        }
        if configures_a_linter(file.path) {
            let detail = format!("the configuration of a linter or formatter changed: {}", file.path);
            note(Sign::LinterChanged, 0, detail);
        }
        if file.binary && !deleted {
            let (size, kind) = (file.new_size, file.content.name());
            let detail = format!("binary file of {size} bytes, {kind}: {}", file.path);
            let sign = match file.content {
                BinaryContent::Text => Sign::HiddenText,
                BinaryContent::Program(_) => Sign::RunsCode,
                // Whatever its first bytes are, something runs or reads it as text.
                BinaryContent::Unknown | BinaryContent::Data(_) if is_run(file) => Sign::HiddenText,
                BinaryContent::Unknown | BinaryContent::Data(_) if size > binary_bytes => Sign::LargeBinary,
                BinaryContent::Unknown | BinaryContent::Data(_) => Sign::BinaryChanged,
            };
            note(sign, 0, detail);
        }
        if let Some(line) = file.turned {
            let detail = format!("characters that change the order of text on a screen: {}", file.path);
            note(Sign::HiddenText, line, detail);
        }
        if let Some((line, kind)) = file.credential {
            note(Sign::Credential, line, format!("{kind} in {}", file.path));
        }
    }
    seen.extend(weaker_tests(files));
    seen.sort();
    Signs { seen }
}

/// A file with the executable bit, or with a name by which an interpreter or compiler takes it for text.
fn is_run(file: &ScannedFile<'_>) -> bool {
    const ENDINGS: [&str; 64] = [
        "sh", "bash", "zsh", "fish", "ksh", "ps1", "psm1", "bat", "cmd", "vbs", "py", "pyw", "pth", "rb",
        "erb", "pl", "pm", "php", "lua", "tcl", "r", "jl", "js", "mjs", "cjs", "jsx", "ts", "tsx", "vue",
        "svelte", "html", "htm", "svg", "xml", "css", "rs", "go", "java", "kt", "scala", "swift", "c", "h",
        "cc", "cpp", "cs", "ex", "exs", "sql", "mk", "gradle", "cmake", "dart", "zig", "nix", "tf", "yml",
        "yaml", "toml", "json", "ini", "cfg", "conf", "md",
    ];
    const NAMES: [&str; 10] = [
        "makefile",
        "gnumakefile",
        "dockerfile",
        "containerfile",
        "rakefile",
        "gemfile",
        "jenkinsfile",
        "vagrantfile",
        "procfile",
        "justfile",
    ];
    let name = file.path.trim_matches('"').rsplit('/').next().unwrap_or_default().to_lowercase();
    let ending = name.rsplit_once('.').map(|(_, ending)| ending);
    file.new_mode & 0o170_111 > 0o100_000
        || ending.map_or(NAMES.contains(&name.as_str()), |ending| ENDINGS.contains(&ending))
}

/// What judges a change, by path: what the test command runs, and what that reads in.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Judges {
    pub run: BTreeSet<String>,
    pub read_in: BTreeSet<String>,
}

impl Judges {
    /// What the command itself names.
    pub fn of(command: &str) -> Judges {
        Judges { run: scripts_of(command), read_in: BTreeSet::new() }
    }

    pub fn contains(&self, path: &str) -> bool {
        self.run.contains(path) || self.read_in.contains(path)
    }

    /// Takes in what a file among them names, and returns what is new.
    pub fn take_in(&mut self, path: &str, text: &str, command: &str) -> Vec<String> {
        let runs =
            read_by("make").iter().chain(read_by("npm")).any(|name| path.rsplit('/').next() == Some(*name));
        let named =
            named_in(path, text, command).into_iter().filter(|path| !self.contains(path)).collect::<Vec<_>>();
        let known = if runs { &mut self.run } else { &mut self.read_in };
        known.extend(named.iter().cloned());
        named
    }
}

/// Changes to what judges the change itself (L-09, R-07): a script that the test command runs or reads in, or the file that says
/// what it runs, if lines of it are removed or replaced, or lines are added that end it early or pass over a failure. Adding
/// checks is ordinary work. A script outside the tests that they read in may be the program that they test, so
/// only what makes it do less counts.
pub fn own_judges(files: &[ScannedFile<'_>], judges: &Judges) -> Vec<Counted> {
    let changes = |file: &&ScannedFile<'_>| {
        let path = file.path.trim_matches('"');
        if steers_collection(path) && file.new.skips > file.old.skips {
            return true;
        }
        let adds_only = file.status == Some(FileStatus::Modified) && file.removed == 0 && !file.binary;
        let escapes = file.new.escapes > file.old.escapes;
        let counts = if !keys_of_tests(path).is_empty() {
            file.new.named != file.old.named
        } else {
            !adds_only || escapes
        };
        let does_less = file.binary || escapes || file.new.does < file.old.does;
        judges.run.contains(path) && counts
            || judges.read_in.contains(path) && counts && (is_test_path(path) || does_less)
    };
    let sign = |file: &ScannedFile<'_>| {
        let hidden = file.binary && file.status != Some(FileStatus::Deleted);
        let (sign, what) = match hidden {
            true => (Sign::HiddenText, "what the test command runs changed, and no diff shows it"),
            false => (Sign::TestCommandChanged, "what the test command runs changed"),
        };
        Counted { sign, path: file.path.to_owned(), line: 0, detail: format!("{what}: {}", file.path) }
    };
    files.iter().filter(changes).map(sign).collect()
}

/// What says which tests are run in projects of Node.
const OF_NODE: [&str; 11] = [
    "package.json",
    "jest.config.js",
    "jest.config.cjs",
    "jest.config.mjs",
    "jest.config.ts",
    "vitest.config.js",
    "vitest.config.mjs",
    "vitest.config.ts",
    "vitest.config.mts",
    ".mocharc.json",
    ".mocharc.yml",
];

/// What a tool reads to know what it is to run.
fn read_by(tool: &str) -> &'static [&'static str] {
    match tool {
        "make" | "gmake" => &["Makefile", "makefile", "GNUmakefile"],
        "npm" | "yarn" | "pnpm" | "npx" | "jest" | "vitest" | "mocha" => &OF_NODE,
        "pytest" | "py.test" => &["pytest.ini", "tox.ini", "pyproject.toml", "setup.cfg"],
        "just" => &["justfile", "Justfile"],
        "tox" => &["tox.ini"],
        "rake" => &["Rakefile"],
        _ => &[],
    }
}

/// The files of the tree that a file among those that judge a change names as part of it: what a shell script reads in, what the
/// scripts of `package.json` run, and what a rule of a makefile runs. Which of them exist is left open.
fn named_in(path: &str, text: &str, command: &str) -> BTreeSet<String> {
    let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
    let inside = |found: BTreeSet<String>| -> BTreeSet<String> {
        let whole = |path: String| if folder.is_empty() { path } else { format!("{folder}/{path}") };
        found.into_iter().map(whole).collect()
    };
    match name {
        "package.json" => inside(in_scripts(text)),
        "Makefile" | "makefile" | "GNUmakefile" => inside(in_rules(text, command)),
        _ => {
            let read_in = text.lines().filter_map(read_in).collect::<BTreeSet<_>>();
            let beside = inside(read_in.iter().map(|path| (*path).to_owned()).collect());
            read_in.into_iter().map(str::to_owned).chain(beside.iter().map(|path| plain(path))).collect()
        }
    }
}

/// What `"test": "node check.js"` runs.
fn in_scripts(text: &str) -> BTreeSet<String> {
    let is_test = |line: &&str| keys_of_tests("package.json").iter().any(|key| line.contains(key));
    let values = text.lines().flat_map(|line| line.split_inclusive("\",")).filter(is_test);
    let commands = values.filter_map(|value| value.rsplit_once("\":"));
    commands.flat_map(|(_, command)| scripts_of(&command.replace("\\\"", "\""))).collect()
}

/// What the rules that a command of `make` names run, with those that they depend on, and what is included.
fn in_rules(text: &str, command: &str) -> BTreeSet<String> {
    let mut wanted: BTreeSet<&str> = command.split_whitespace().collect();
    // Rules may stand before those that need them.
    for _ in 0..RULES_DEEP {
        for (names, needs) in text.lines().filter_map(rule) {
            if names.split_whitespace().any(|name| wanted.contains(name)) {
                wanted.extend(needs.split_whitespace());
            }
        }
    }
    let (mut found, mut runs) = (BTreeSet::new(), false);
    for line in text.lines() {
        if let Some((names, _)) = rule(line) {
            runs = names.split_whitespace().any(|name| wanted.contains(name));
        } else if let Some(recipe) = line.strip_prefix('\t').filter(|_| runs) {
            found.extend(scripts_of(recipe.trim_start_matches(['@', '-', '+'])));
        }
        let included = line.trim_start_matches('-').strip_prefix("include ");
        found.extend(included.into_iter().flat_map(str::split_whitespace).map(str::to_owned));
    }
    found
}

/// The names of a rule of a makefile, and what it needs.
fn rule(line: &str) -> Option<(&str, &str)> {
    let (names, needs) = line.split_once(':').filter(|_| !line.starts_with(['\t', '#']))?;
    (!needs.starts_with('=')).then_some((names, needs))
}

/// How far rules that need others are followed.
const RULES_DEEP: usize = 5;

/// The file that a line of a shell script reads in: `. lib.sh`, `source ./lib.sh`, `. "$(dirname "$0")/lib.sh"`.
pub fn read_in(line: &str) -> Option<&str> {
    let begins = |part: &&str| part.starts_with(". ") || part.starts_with("source ");
    let parts = line.split([';', '&', '|']).map(|part| part.trim_start().trim_start_matches("then "));
    // `. "$(cd "$(dirname "$0")" && pwd)/lib.sh"` is one command.
    let mut parts = line.contains("pwd)").then(|| line.trim_start()).into_iter().chain(parts);
    let (_, rest) = parts.find(begins)?.split_once(' ')?;
    // What a variable or a command says is left out: it is the folder.
    let behind = rest.rfind(['$', ')', '}']).map_or("", |at| rest.get(at + 1..).unwrap_or_default());
    let path = if behind.is_empty() { rest } else { behind.split_once('/').map_or(behind, |(_, path)| path) };
    let path = path.split_whitespace().next()?.trim_matches(['"', '\'', ';']);
    Some(path.trim_start_matches("./")).filter(|path| !path.is_empty())
}

/// A path without `.` and `..`.
fn plain(path: &str) -> String {
    let mut parts = Vec::new();
    for part in path.split('/') {
        match part {
            "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    parts.join("/")
}

/// What runs a script that follows it.
const INTERPRETERS: [&str; 20] = [
    "sh", "bash", "dash", "zsh", "ksh", "fish", "python", "python3", "node", "ruby", "perl", "php", "deno",
    "bun", "run", "env", "time", "exec", "source", ".",
];

/// The files of the tree that a test command runs: `sh tests/run.sh`, `cd app && ./check`, `python -m tests.run`. What it
/// only reads or passes on is none. Which of them exist is left open.
pub fn scripts_of(command: &str) -> BTreeSet<String> {
    let (mut scripts, mut folder) = (BTreeSet::new(), String::new());
    for part in command.split([';', '|', '&', '(', ')', '\n']) {
        let mut words =
            part.split(|c: char| c.is_whitespace() || "\"'`".contains(c)).filter(|w| !w.is_empty());
        let mut before = "";
        // Variables and flags may precede what is run.
        for word in words.by_ref() {
            let path = word.trim_start_matches("./");
            match (before, word) {
                ("cd", _) => {
                    folder = if path.is_empty() || word.starts_with('/') { String::new() } else { folder };
                    folder = format!("{folder}{}/", path.trim_end_matches('/'));
                    break;
                }
                ("-m", _) => {
                    scripts.insert(format!("{folder}{}.py", path.replace('.', "/")));
                    scripts.extend(read_by(path).iter().map(|file| format!("{folder}{file}")));
                    break;
                }
                (_, "cd") => {}
                _ if word.starts_with('-') || word.contains('=') || INTERPRETERS.contains(&word) => {}
                _ => {
                    scripts.insert(format!("{folder}{path}"));
                    scripts.extend(read_by(path).iter().map(|file| format!("{folder}{file}")));
                    break;
                }
            }
            before = word;
        }
    }
    scripts
}

/// Test files removed, and cases or assertions taken out. Moving tests between files is not weakening them, so a
/// loss counts only when the whole change has fewer than before.
fn weaker_tests(files: &[ScannedFile<'_>]) -> Vec<Counted> {
    let is_test = |file: &&ScannedFile<'_>| is_test_path(file.path) || has_tests_inside(file.path);
    let tests: Vec<&ScannedFile<'_>> = files.iter().filter(is_test).collect();
    let before = tests.iter().fold(Strength::default(), |sum, file| sum.plus(file.old));
    let after = tests.iter().fold(Strength::default(), |sum, file| sum.plus(file.new));
    let mut seen = Vec::new();
    for file in tests {
        let (old, new) = (file.old, file.new);
        let path = file.path.to_owned();
        if file.status == Some(FileStatus::Deleted) {
            let is_data = !old.has_tests() && is_test_path(file.path);
            let had_tests = old.has_tests() && (after.cases < before.cases || after.asserts < before.asserts);
            if had_tests || is_data {
                let detail = format!("test file removed: {} ({} cases)", file.path, old.cases);
                seen.push(Counted { sign: Sign::TestsRemoved, path, line: 0, detail });
            }
            continue;
        }
        let fewer_cases = new.cases < old.cases && after.cases < before.cases;
        let fewer_asserts = new.asserts < old.asserts && after.asserts < before.asserts;
        // A new test that is skipped takes nothing away; one that ran before and is skipped now does.
        let fewer_run = new.skips > old.skips && new.runs() < old.runs() && after.runs() < before.runs();
        // A script without cases to count that does nothing any more, such as one replaced by `exit 0`.
        let emptied = old.does > 0 && new.does == 0;
        // What git calls binary now, no reviewer sees.
        let turned_binary = file.binary && old.does > 0;
        if fewer_cases || fewer_asserts || fewer_run || emptied || turned_binary {
            let detail = format!(
                "tests weakened in {}: cases {} to {}, assertions {} to {}, skips {} to {}",
                file.path, old.cases, new.cases, old.asserts, new.asserts, old.skips, new.skips
            );
            seen.push(Counted { sign: Sign::TestsWeakened, path, line: 0, detail });
        }
    }
    seen
}

/// What of the signs is kept when there are very many, so that they fit into the log: of each sign as many as fit
/// into its share of `most` bytes, and then one that counts the others.
pub fn bounded(signs: Signs, most: usize) -> Signs {
    if signs.seen.iter().map(in_the_log).sum::<usize>() <= most {
        return signs;
    }
    let share = most / Sign::ALL.len();
    let mut kept: Vec<Counted> = Vec::new();
    for sign in Sign::ALL {
        let all: Vec<&Counted> = signs.seen.iter().filter(|counted| counted.sign == sign).collect();
        let mut left = share.saturating_sub(LONGEST_NAME * 5);
        let fits = |counted: &&&Counted| {
            let bytes = in_the_log(counted);
            let fits = bytes <= left;
            left = left.saturating_sub(bytes);
            fits
        };
        let fitting = all.iter().take_while(fits).count();
        kept.extend(all.iter().take(fitting).copied().cloned());
        if let Some(next) = all.get(fitting) {
            let path = beginning(&next.path);
            let detail = match all.len() - fitting {
                1 => beginning(&next.detail),
                more => format!("{more} more: {}", beginning(&next.detail)),
            };
            kept.push(Counted { sign, path, line: next.line, detail });
        }
    }
    kept.sort();
    Signs { seen: kept }
}

/// Bytes of a name that is too long for the log.
const LONGEST_NAME: usize = 300;
/// Bytes around a sign's words in the log.
const ENVELOPE: usize = 100;

fn in_the_log(counted: &Counted) -> usize {
    written(&counted.path) + written(&counted.detail) + ENVELOPE
}

/// Bytes of a text in the log, where quotes and backslashes take two and control characters six.
fn written(text: &str) -> usize {
    let extra = |c: char| match c {
        '"' | '\\' => 1,
        c if c.is_control() => 5,
        _ => 0,
    };
    text.len() + text.chars().map(extra).sum::<usize>()
}

fn beginning(text: &str) -> String {
    if text.len() <= LONGEST_NAME {
        return text.to_owned();
    }
    let mut end = LONGEST_NAME;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}…", &text[..end])
}

fn is_ci(path: &str) -> bool {
    const FOLDERS: [&str; 6] =
        [".github/workflows/", ".github/actions/", ".circleci/", ".buildkite/", ".ci/", ".woodpecker/"];
    const FILES: [&str; 10] = [
        ".gitlab-ci.yml",
        ".travis.yml",
        "Jenkinsfile",
        "azure-pipelines.yml",
        "bitbucket-pipelines.yml",
        ".drone.yml",
        "appveyor.yml",
        ".appveyor.yml",
        ".cirrus.yml",
        "cloudbuild.yaml",
    ];
    let path = path.trim_matches('"');
    FOLDERS.iter().any(|folder| path.starts_with(folder)) || FILES.contains(&path)
}

/// Files that tools run without being asked, that a build or test run executes, or that coding agents obey.
fn steers(path: &str) -> Option<Sign> {
    const RUN_FILES: [&str; 10] = [
        ".envrc",
        ".gitattributes",
        ".pre-commit-config.yaml",
        "lefthook.yml",
        ".lefthook.yml",
        ".npmrc",
        ".yarnrc.yml",
        ".pnpmfile.cjs",
        "sitecustomize.py",
        "usercustomize.py",
    ];
    const RUN_FOLDERS: [&str; 6] =
        [".husky", ".githooks", ".git-hooks", ".devcontainer", ".vscode", ".cargo"];
    const BUILD_FILES: [&str; 34] = [
        "build.rs",
        "package.json",
        "makefile",
        "gnumakefile",
        "justfile",
        "taskfile.yml",
        "cmakelists.txt",
        "meson.build",
        "configure",
        "setup.py",
        "setup.cfg",
        "conftest.py",
        "noxfile.py",
        "tox.ini",
        "pytest.ini",
        "rakefile",
        "gruntfile.js",
        "gulpfile.js",
        "pyproject.toml",
        "pytest.toml",
        ".pytest.ini",
        ".coveragerc",
        ".rspec",
        "karma.conf.js",
        "phpunit.xml",
        "phpunit.xml.dist",
        "nextest.toml",
        "spec_helper.rb",
        "build.gradle",
        "build.gradle.kts",
        "pom.xml",
        "build.xml",
        "dockerfile",
        "docker-compose.yml",
    ];
    /// With any ending: `jest.config.ts`.
    const TEST_RUNNERS: [&str; 6] = [
        "jest.config.",
        "jest.setup.",
        "vitest.config.",
        "playwright.config.",
        "cypress.config.",
        ".mocharc.",
    ];
    let path = path.trim_matches('"').to_lowercase();
    let (folders, name) = path.rsplit_once('/').unwrap_or(("", &path));
    let configures_tests = TEST_RUNNERS.iter().any(|start| name.starts_with(start));
    let is_in = |known: &[&str]| folders.split('/').any(|folder| known.contains(&folder));
    match () {
        () if configured_client(&path).is_some() => Some(Sign::SteersAgents),
        () if RUN_FILES.contains(&name) || is_in(&RUN_FOLDERS) => Some(Sign::RunsCode),
        () if BUILD_FILES.contains(&name) || configures_tests => Some(Sign::BuildChanged),
        () => None,
    }
}

/// Configuration of linters, type checkers and formatters.
fn configures_a_linter(path: &str) -> bool {
    const FILES: [&str; 37] = [
        ".flake8",
        "ruff.toml",
        ".ruff.toml",
        "pylintrc",
        ".pylintrc",
        "mypy.ini",
        ".mypy.ini",
        "pyrightconfig.json",
        ".bandit",
        "clippy.toml",
        ".clippy.toml",
        "rustfmt.toml",
        ".rustfmt.toml",
        "deny.toml",
        ".eslintignore",
        ".prettierignore",
        "tslint.json",
        "biome.json",
        "biome.jsonc",
        ".rubocop.yml",
        ".rubocop_todo.yml",
        ".shellcheckrc",
        ".clang-format",
        ".clang-tidy",
        "checkstyle.xml",
        "detekt.yml",
        ".editorconfig",
        ".scalafmt.conf",
        "phpcs.xml",
        "phpstan.neon",
        "phpstan-baseline.neon",
        ".php-cs-fixer.php",
        ".swiftlint.yml",
        ".yamllint",
        ".credo.exs",
        ".formatter.exs",
        "ktlint.yml",
    ];
    /// With any ending.
    const STARTS: [&str; 8] = [
        ".eslintrc",
        "eslint.config.",
        ".prettierrc",
        "prettier.config.",
        ".stylelintrc",
        "stylelint.config.",
        ".golangci.",
        ".markdownlint",
    ];
    let path = path.trim_matches('"').to_lowercase();
    let name = path.rsplit('/').next().unwrap_or_default();
    FILES.contains(&name) || STARTS.iter().any(|start| name.starts_with(start))
}

fn stirring(sign: Sign) -> &'static str {
    match () {
        () if sign == Sign::SteersAgents => "a file that coding agents obey changed",
        () if sign == Sign::BuildChanged => "a file that builds or tests execute changed",
        () => "a file that tools run by themselves changed",
    }
}

fn is_own_state(path: &str) -> bool {
    path.trim_matches('"').split('/').any(|part| part == ".archeflow")
}
