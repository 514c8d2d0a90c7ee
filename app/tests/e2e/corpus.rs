//! The review corpus (`tests/review-corpus`): real-looking changes, scripted reviewers, and tables that say where every
//! finding has to end up. The tables are read from its README, and nothing else may be in a result.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::audit;
use crate::harness::{Outcome, Test, each};

/// AF-073, AF-094, D-05, D-07: true, hedged, mis-cited, duplicated, refutable and raised, each in its class.
#[test]
fn af_073_af_094_d_05_d_07_every_finding_of_the_corpus_lands_in_its_class() {
    let expected = table("Findings");
    let sets = table("A change set");
    let named: BTreeSet<String> = sets.iter().map(|set| name_of(&set["set"])).collect();
    assert_eq!(named, folders(), "the table of change sets and the folders");
    let strangers = expected.iter().filter(|row| !named.contains(&row["set"])).count();
    assert_eq!(strangers, 0, "rows of unknown change sets");
    each(sets, |set| {
        let name = name_of(&set["set"]);
        let test = laid_out(&corpus().join(&name), &set["taken as"]);
        let more = told_of(&set["taken as"], &name);
        let found = test.reviewed(&corpus().join(&name).join("reviews"), &more, "json");
        let rows: Vec<&Row> = expected.iter().filter(|row| row["set"] == name).collect();
        compare(&name, &rows, &found);
    });
}

/// Every planted defect is documented, and no control has one.
#[test]
fn the_corpus_says_what_is_planted_in_it() {
    let sets = table("A change set");
    let clean = |set: &&Row| set["planted"] == "clean";
    assert!(sets.len() >= 14 && sets.iter().filter(clean).count() >= 4, "{} sets", sets.len());
    for set in &sets {
        let folder = corpus().join(name_of(&set["set"]));
        let defects = read(&folder.join("defects.md"));
        assert_eq!(defects.contains("clean: none"), clean(&set), "{}", folder.display());
        assert!(!read(&folder.join("about.md")).is_empty(), "{}", folder.display());
        let reviewers: Vec<String> = reviewers(&folder.join("reviews"));
        assert_eq!(reviewers.join("+"), set["reviewers"], "{}", folder.display());
    }
}

/// Findings are known again by the code they are about, not by its line, its file or their wording.
#[test]
fn review_delta_lists_new_resolved_persistent_and_regressed() {
    let folder = corpus().join("pushes");
    let test = from_base(&folder.join("base"));
    for row in table("Pushes") {
        let push = &row["push"];
        test.git(["checkout", "-q", "-f", "HEAD", "--", "."]);
        for path in test.git(["ls-files", "-o", "--exclude-standard"]).lines() {
            fs::remove_file(test.repo.join(path)).unwrap();
        }
        apply(&test, &folder.join(format!("push-{push}.patch")), &[]);
        let answers = folder.join(format!("push-{push}"));
        let news = test.reviewed(&answers, &["--since-last".to_owned()], "json");
        let all = test.run(&["review", "--run", news["run_id"].as_str().unwrap(), "--format", "json"]);
        let all = parsed(&all);
        let since = |word: &str| {
            let those = list(&all["findings"]);
            let those = those.filter(|found| found["since"] == word && found["standing"] == "counts");
            words_of(those)
        };
        let wanted = |column: &str| -> Vec<String> {
            let mut words: Vec<String> =
                row[column].split(", ").filter(|word| *word != "-").map(str::to_owned).collect();
            words.sort();
            words
        };
        for column in ["new", "regressed", "persistent"] {
            assert_eq!(since(column), wanted(column), "push {push}: {column}");
        }
        assert_eq!(words_of(list(&all["resolved"])), wanted("resolved"), "push {push}: resolved");
        assert_eq!(all["compared"], push != "1", "push {push}");
        let told = list(&news["findings"]).filter(|found| found["since"] == "persistent").count();
        assert_eq!(told, 0, "push {push}: only news is told");
        let again = test.review(&answers, &["--since-last".to_owned()], "terminal");
        assert_eq!((again.code, again.stdout.as_str()), (0, ""), "push {push} once more: {again}");
        for format in ["markdown", "github"] {
            let again = test.run(&["review", "--run", &again.id, "--since-last", "--format", format]);
            assert_eq!((again.code, again.stdout.as_str()), (0, ""), "push {push} once more: {again}");
        }
    }
}

/// A baseline holds by the word of the user or of the base; a change can't bring its own pardon along.
#[test]
fn review_baseline_comes_from_the_base_or_the_user() {
    const PLACE: &str = ".archeflow/baseline.json";
    const REASON: &str = "paid for next month";
    let name = "04-python-report-query";
    let folder = corpus().join(name);
    let answers = folder.join("reviews");
    let accepted = {
        let test = laid_out(&folder, "working tree");
        let path = test.base().join("accepted.json").display().to_string();
        let more = ["--write-baseline", &path, "--reason", REASON].map(str::to_owned);
        test.review(&answers, &more, "json");
        read(Path::new(&path))
    };
    each(table("Baseline"), |row| {
        let test = from_base(&folder.join("base"));
        let mut more = vec!["--fail-on".to_owned(), "critical".to_owned()];
        match row["the baseline is"].as_str() {
            "nowhere" => {}
            "named on the command line" => {
                let path = test.base().join("accepted.json");
                fs::write(&path, &accepted).unwrap();
                more.extend(["--baseline".to_owned(), path.display().to_string()]);
            }
            "in the base commit" => {
                test.file(PLACE, &accepted);
                test.git(["add", "-f", PLACE]);
                test.git(["commit", "-q", "-m", "Accept what we know"]);
            }
            "brought along by the change" => {
                test.file(PLACE, &accepted);
                test.git(["add", "-f", PLACE]);
            }
            other => panic!("no way to bring a baseline: {other}"),
        }
        apply(&test, &folder.join("change.patch"), &["--index"]);
        more.push("--staged".to_owned());
        let outcome = test.review(&answers, &more, "json");
        let found = parsed(&outcome);
        assert_eq!(outcome.code.to_string(), row["exit"], "{}: {outcome}", row["the baseline is"]);
        let of_reviewers = list(&found["findings"]).filter(|found| found["sources"][0] != "program");
        let classes: BTreeSet<&str> = of_reviewers
            .filter(|found| found["said"] != "INFO" && found["standing"] != "advice")
            .map(|found| found["standing"].as_str().unwrap_or_default())
            .collect();
        assert_eq!(classes, BTreeSet::from([row["class"].as_str()]), "{}", row["the baseline is"]);
        let unexplained = list(&found["findings"])
            .filter(|found| found["standing"] == "accepted" && found["why"] != REASON)
            .count();
        assert_eq!(unexplained, 0, "the reason is told");
        let raised = list(&found["findings"]).any(|found| found["rule"] == "own_state_changed");
        assert_eq!(raised, row["the baseline is"] == "brought along by the change");
    });
}

/// A flood is taken in up to its bound, what is left out is said, and nobody's terminal is flooded in turn.
#[test]
fn review_handles_ten_thousand_findings() {
    let test = from_base(&corpus().join("13-sql-customer-totals/base"));
    apply(&test, &corpus().join("13-sql-customer-totals/change.patch"), &[]);
    let rows: String = (1..=10_000)
        .map(|n| {
            let line = n % 19 + 1;
            format!(
                "| schema/reports.sql:{line} | WARNING | quality | Column {n} has no comment | Add one |\n"
            )
        })
        .collect();
    let answers = test.base().join("answers");
    fs::create_dir_all(&answers).unwrap();
    let head = "| Location | Severity | Category | Description | Fix |\n|---|---|---|---|---|\n";
    let text = format!("VERDICT: REJECTED\nFINDINGS: 10000\n\n{head}{rows}\nSTATUS: DONE\n");
    fs::write(answers.join("guardian.md"), text).unwrap();
    let outcome = test.review(&answers, &[], "json");
    let found = parsed(&outcome);
    let counted = list(&found["findings"]).filter(|found| found["standing"] == "counts").count();
    assert_eq!(counted, KEPT, "{}", outcome.stderr);
    assert_eq!(found["counts"]["warning"], KEPT, "what counts is listed");
    let gaps = found["coverage"]["gaps"].to_string();
    assert!(gaps.contains(&format!("guardian had {} more findings", 10_000 - KEPT)), "{gaps}");
    let id = found["run_id"].as_str().unwrap();
    for format in ["terminal", "markdown", "github"] {
        let shown = test.run(&["review", "--run", id, "--format", format]);
        assert!(!shown.stdout.is_empty() && shown.stdout.len() < 300_000, "{format}: {}", shown.stdout.len());
    }
}

/// What is kept of one answer (`docs/rules/answers.md`).
const KEPT: usize = 500;

/// R14: nothing a reviewer or a change says can control a terminal, a page or a workflow.
#[test]
fn r14_hostile_answers_are_inert_in_every_format() {
    let test = from_base(&corpus().join("13-sql-customer-totals/base"));
    apply(&test, &corpus().join("13-sql-customer-totals/change.patch"), &[]);
    let evil =
        "\u{1b}[2J\u{1b}]0;owned\u{7}</script><script>alert(1)</script>\u{202e}txt.exe\u{2066}\u{9b}31m";
    test.file("evil.sql", format!("-- {evil}\nSELECT 1;\n"));
    let answers = test.base().join("answers");
    fs::create_dir_all(&answers).unwrap();
    let text = format!(
        "{evil}\n\nVERDICT: REJECTED\n\n| Location | Severity | Category | Description | Fix | Evidence |\n\
         |---|---|---|---|---|---|\n| evil.sql:1 | CRITICAL | security | Bad {evil} ::error file=x::pwned <img src=x> | Fix {evil} | \
         evil.sql:1 `{evil}` |\n| schema/reports.sql:1 | WARNING | quality | ::set-output name=a::b %0A::warning::c | [x](javascript:alert(1)) | |\n\n\
         STATUS: DONE\n"
    );
    fs::write(answers.join("guardian.md"), text).unwrap();
    let id = parsed(&test.review(&answers, &[], "json"))["run_id"].as_str().unwrap().to_owned();
    for format in ["terminal", "markdown", "json", "sarif", "rdjson", "github"] {
        let shown = test.run(&["review", "--run", &id, "--format", format]);
        assert!(shown.stdout.contains("Bad "), "{format}: {}", shown.stdout);
        let controls = |c: char| c.is_control() && !matches!(c, '\n' | '\t');
        let turns = |c: char| matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
        let bad: Vec<char> = shown.stdout.chars().filter(|c| controls(*c) || turns(*c)).collect();
        assert!(bad.is_empty(), "{format} prints {bad:?}");
        if format == "markdown" {
            let outside: String = shown.stdout.split("```").step_by(2).collect();
            assert!(!outside.contains("<script") && !outside.contains("<img"), "{outside}");
        }
        if format == "github" {
            let orders = shown.stdout.lines().filter(|line| line.starts_with("::"));
            let known = ["::error ", "::warning ", "::notice ", "::group::", "::endgroup::"];
            for order in orders {
                assert!(known.iter().any(|word| order.starts_with(word)), "{order}");
                assert!(!order.starts_with("::error file=x"), "{order}");
            }
        }
    }
}

// One door to the program.

impl Test {
    /// `archeflow review` by the reviewers who have an answer in this folder; nothing of the user's may change.
    fn review(&self, answers: &Path, more: &[String], format: &str) -> Outcome {
        let script = format!(
            "#!/bin/sh\ncat > {{base}}/tmp/brief-$ARCHEFLOW_ROLE\nexec cat '{}'/$ARCHEFLOW_ROLE.md\n",
            answers.display()
        );
        let agent = self.base().join("agents/reviewer.sh");
        fs::write(&agent, script.replace("{base}", &self.base().display().to_string())).unwrap();
        // The second word makes the folder visible in the sandbox.
        let agent = format!("cmd:sh {} {}", agent.display(), answers.display());
        // Answers that were written before the brief can't repeat its code.
        self.configure(&format!("agents:\n  uncoded: ['{agent}']\n"));
        self.open_base();
        let who = reviewers(answers).join(",");
        let mut arguments =
            vec!["review", "--reviewers", &who, "--verify", "--format", format, "--agent", &agent];
        arguments.extend(more.iter().map(String::as_str));
        let before = (audit::manifest(self), self.git(["status", "--porcelain"]));
        let outcome = self.run(&arguments);
        let after = (audit::manifest(self), self.git(["status", "--porcelain"]));
        assert!(before == after, "a review touched something of the user's: {arguments:?}");
        outcome
    }

    fn reviewed(&self, answers: &Path, more: &[String], format: &str) -> Value {
        let outcome = self.review(answers, more, format);
        assert_eq!(outcome.code, 0, "{outcome}");
        parsed(&outcome)
    }
}

/// The arguments that name this change.
fn told_of(taken_as: &str, set: &str) -> Vec<String> {
    match taken_as {
        "working tree" => Vec::new(),
        "staged" => vec!["--staged".to_owned()],
        "branch" => vec!["--branch".to_owned(), "change".to_owned()],
        "commits" => vec!["--commit".to_owned(), "HEAD~1..HEAD".to_owned()],
        "patch" => {
            let patch = corpus().join(set).join("change.patch");
            vec!["--patch".to_owned(), patch.display().to_string()]
        }
        other => panic!("no way to take a change: {other}"),
    }
}

fn parsed(outcome: &Outcome) -> Value {
    serde_json::from_str(&outcome.stdout).unwrap_or_else(|error| panic!("{error}\n{outcome}"))
}

/// A repository with the base, and the change where its kind of subject looks for it.
fn laid_out(folder: &Path, taken_as: &str) -> Test {
    let test = from_base(&folder.join("base"));
    let (patch, about) = (folder.join("change.patch"), folder.join("about.md"));
    match taken_as {
        "working tree" => apply(&test, &patch, &[]),
        "staged" => apply(&test, &patch, &["--index"]),
        "branch" => {
            test.git(["switch", "-q", "-c", "change"]);
            apply(&test, &patch, &["--index"]);
            test.git(["commit", "-q", "-F", &about.display().to_string()]);
            test.git(["switch", "-q", "main"]);
        }
        "commits" => {
            apply(&test, &patch, &["--index"]);
            test.git(["commit", "-q", "-F", &about.display().to_string()]);
        }
        _ => {}
    }
    test
}

fn from_base(base: &Path) -> Test {
    let test = Test::empty("repo").unshadowed();
    for (path, text) in files_below(base) {
        test.file(path.strip_prefix(base).unwrap(), text);
    }
    test.commit("The base");
    test
}

fn apply(test: &Test, patch: &Path, how: &[&str]) {
    let patch = patch.display().to_string();
    test.git(["apply"].iter().chain(how).copied().chain([patch.as_str()]));
}

fn files_below(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(files_below(&path));
        } else {
            let bytes = fs::read(&path).unwrap();
            found.push((path, bytes));
        }
    }
    found
}

// Comparing with a table.

/// Takes each expected row out of what was found; nothing may be missing and nothing left.
fn compare(set: &str, rows: &[&Row], found: &Value) {
    let mut left: Vec<&Value> = list(&found["findings"]).collect();
    let mut faults = Vec::new();
    for row in rows {
        let wanted = ["place", "rule", "said", "class", "trial", "sources"].map(|column| row[column].clone());
        let words = row["words"].to_lowercase();
        let is_it = |found: &&Value| {
            let said = found["description"].as_str().unwrap_or_default().to_lowercase();
            told(found) == wanted && said.contains(&words)
        };
        match left.iter().position(is_it) {
            Some(at) => drop(left.remove(at)),
            None => faults.push(format!("missing: {wanted:?} {words}")),
        }
    }
    faults.extend(
        left.iter().map(|found| format!("not in the table: {:?} {}", told(found), found["description"])),
    );
    faults.extend(out_of_order(found));
    assert!(faults.is_empty(), "{set}:\n{}", faults.join("\n"));
}

/// A finding in the columns of the table.
fn told(found: &Value) -> [String; 6] {
    let word = |value: &Value| value.as_str().unwrap_or("-").to_owned();
    let place = match (found["file"].as_str(), found["line"].as_u64()) {
        (None, _) => "-".to_owned(),
        (Some(file), None) => file.to_owned(),
        (Some(file), Some(line)) => format!("{file}:{line}"),
    };
    let class = match found["standing"].as_str() {
        Some("advice") => word(&found["why"]),
        _ => word(&found["standing"]),
    };
    let sources: Vec<String> = list(&found["sources"]).map(word).collect();
    [
        place,
        word(&found["rule"]),
        word(&found["said"]),
        class,
        word(&found["trial"]["result"]),
        sources.join("+"),
    ]
}

/// Confirmed ones come first and refuted ones last, and what does not count is worth no more than advice.
fn out_of_order(found: &Value) -> Vec<String> {
    let rank = |found: &Value| match (found["standing"].as_str(), found["trial"]["result"].as_str()) {
        (Some("counts"), Some("confirmed")) => 0,
        (Some("counts"), _) => 1,
        (Some("refuted"), _) => 3,
        _ => 2,
    };
    let ranks: Vec<i32> = list(&found["findings"]).map(rank).collect();
    let mut faults = Vec::new();
    if !ranks.is_sorted() {
        faults.push(format!("out of order: {ranks:?}"));
    }
    for found in list(&found["findings"]) {
        let worth = if matches!(found["standing"].as_str(), Some("advice" | "refuted")) {
            "INFO"
        } else {
            found["said"].as_str().unwrap_or_default()
        };
        if found["severity"] != worth {
            faults.push(format!("{} is worth {}, not {worth}", found["description"], found["severity"]));
        }
    }
    faults
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn words_of<'a>(those: impl Iterator<Item = &'a Value>) -> Vec<String> {
    let mut words: Vec<String> =
        those.map(|one| one["rule"].as_str().unwrap_or_default().to_owned()).collect();
    words.sort();
    words
}

// Reading the corpus.

fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/review-corpus").canonicalize().unwrap()
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The folders that are change sets: they begin with a number.
fn folders() -> BTreeSet<String> {
    let entries = fs::read_dir(corpus()).unwrap().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    names.filter(|name| name.starts_with(|c: char| c.is_ascii_digit())).collect()
}

fn reviewers(answers: &Path) -> Vec<String> {
    let entries = fs::read_dir(answers).unwrap().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let mut names: Vec<String> =
        names.filter_map(|name| name.strip_suffix(".md").map(str::to_owned)).collect();
    names.sort();
    names
}

type Row = BTreeMap<String, String>;

/// The last table under a heading of the README, by its columns.
fn table(heading: &str) -> Vec<Row> {
    let text = read(&corpus().join("README.md"));
    let (_, section) = text.split_once(&format!("\n## {heading}\n")).unwrap();
    let section = section.split("\n## ").next().unwrap_or_default();
    let mut tables: Vec<Vec<Vec<String>>> = vec![Vec::new()];
    for line in section.lines() {
        match line.strip_prefix("| ").and_then(|line| line.strip_suffix(" |")) {
            Some(cells) => {
                let cells = cells.split(" | ").map(|cell| cell.trim_matches('`').to_owned()).collect();
                tables.last_mut().unwrap().push(cells);
            }
            None if !line.starts_with('|') => tables.push(Vec::new()),
            None => {}
        }
    }
    let rows = tables.into_iter().rev().find(|rows| !rows.is_empty()).unwrap();
    let (head, rows) = rows.split_first().unwrap();
    let row = |cells: &Vec<String>| {
        assert_eq!(cells.len(), head.len(), "{heading}: {cells:?}");
        head.iter().cloned().zip(cells.iter().cloned()).collect()
    };
    rows.iter().map(row).collect()
}

/// `[name](link)`.
fn name_of(link: &str) -> String {
    link.trim_start_matches('[').split(']').next().unwrap_or(link).to_owned()
}
