//! One review that has everything, in every format: as it looks, as its schema wants it, and as harmless as it must be.
//! `UPDATE=1` writes the snapshots again; the examples of `docs/review.md` are taken from them.

#![expect(clippy::unwrap_used, reason = "a test that can't set up its world should stop at once")]

use std::path::PathBuf;
use std::time::Duration;

use archeflow_core::event::{Artifact, Player, Tokens, Unfounded};
use archeflow_core::model::{
    Money, Outcome, Reason, Remark, ReproductionResult, ReviewPart, RunStatus, Severity, Subject,
    SubjectKind, Verdict,
};
use archeflow_core::strategies::review::{
    Frame, KnownFinding, Listed, Reviewed, Reviewer, Since, Standing, Tried,
};
use serde_json::Value;

use super::schema::faults;
use super::{Format, Look, Sheet, write};
use crate::render::text::{Paint, safe};
use archeflow_core::text::{code_block, markdown_comment, width, wrapped};

const NARROW: Look = Look { paint: Paint(false), width: 80 };

fn listed(rule: &str, severity: Severity, file: &str, line: u32, description: &str) -> Listed {
    let location = if line > 0 { format!("{file}:{line}") } else { file.to_owned() };
    Listed {
        fingerprint: archeflow_core::strategies::review::fingerprint(rule, file, "", description),
        rule: rule.to_owned(),
        severity,
        said: severity,
        standing: Standing::Yes,
        trial: None,
        since: None,
        known_as: String::new(),
        file: file.to_owned(),
        line,
        location,
        category: rule.to_owned(),
        description: description.to_owned(),
        fix: String::new(),
        evidence: String::new(),
        sources: vec!["guardian".to_owned()],
        also: Vec::new(),
        anchor: String::new(),
        places: Vec::new(),
    }
}

fn tried(trial: ReproductionResult, detail: &str, command: &str) -> Option<Tried> {
    Some(Tried { trial, detail: detail.to_owned(), command: command.to_owned(), tail: String::new() })
}

fn reviewer(archetype: &str, verdict: Option<Verdict>, findings: u32) -> Reviewer {
    Reviewer {
        archetype: archetype.to_owned(),
        verdict,
        findings,
        left_out: 0,
        missed: 0,
        missed_why: String::new(),
        agent: "claude".to_owned(),
        player: Some(Player {
            vendor: "anthropic".to_owned(),
            model: "claude-sonnet".to_owned(),
            version: "2.1.0".to_owned(),
        }),
        tokens: Tokens { input: 12_000, output: 345, cache_read: 4_000, cache_write: 0 },
        cost: Money(123_400),
    }
}

fn part() -> ReviewPart {
    let artifact = Artifact { name: "diff-1.patch".to_owned(), digest: "0".repeat(64) };
    ReviewPart { artifact, files: 3, lines: 40, bytes: 2_000 }
}

/// All standings, all trials, and every kind of place.
fn findings() -> Vec<Listed> {
    use Severity::{Critical, Info, Warning};
    let query = "The query is put together from what the caller sent: `{name}` goes into it as it is, so that a name with a quote in it \
                 becomes part of the command.";
    vec![
        Listed {
            trial: Some(Tried {
                trial: ReproductionResult::Confirmed,
                detail: "fails on the change, passes on the base".to_owned(),
                command: "cargo test injection".to_owned(),
                tail: "test injection ... FAILED".to_owned(),
            }),
            evidence: "src/db.rs:12 hands the text to `execute` without a parameter.".to_owned(),
            fix: "Bind the name as a parameter.".to_owned(),
            sources: vec!["guardian".to_owned(), "skeptic".to_owned()],
            also: vec![Remark {
                source: "skeptic".to_owned(),
                description: "The old code bound it; this is a step back.".to_owned(),
            }],
            since: Some(Since::Regressed),
            ..listed("security", Critical, "src/db.rs", 12, query)
        },
        Listed {
            category: "security".to_owned(),
            evidence: "seen by the program in the change (credential)".to_owned(),
            fix: "Remove the credential from the change and its history.".to_owned(),
            sources: vec!["program".to_owned()],
            since: Some(Since::New),
            ..listed("credential", Critical, "config/Schlüssel für 本番.env", 3, "A private key is added.")
        },
        Listed {
            trial: tried(
                ReproductionResult::NotReproduced,
                "fails without the change as well",
                "sh -c 'test -f /nowhere'",
            ),
            since: Some(Since::Persistent),
            said: Critical,
            ..listed("reliability", Warning, "src/long.rs", 2, "`the_needle` may be empty here.")
        },
        Listed {
            since: Some(Since::New),
            ..listed("quality", Info, "docs/notes and more.md", 0, "The page says nothing about the limit.")
        },
        Listed {
            location: "the design as a whole".to_owned(),
            since: Some(Since::Persistent),
            ..listed("design", Info, "", 0, "Two modules now do the same.")
        },
        Listed {
            standing: Standing::Unfounded(Unfounded::HedgeWithoutEvidence),
            said: Warning,
            since: Some(Since::New),
            ..listed("security", Info, "src/db.rs", 30, "This might perhaps be unsafe.")
        },
        Listed {
            standing: Standing::Unfounded(Unfounded::CitationNotFound),
            said: Critical,
            since: Some(Since::New),
            ..listed("testing", Info, "src/gone.rs", 900, "Nothing tests this.")
        },
        Listed {
            standing: Standing::Accepted("the table is read by nobody else".to_owned()),
            since: Some(Since::Persistent),
            ..listed("scalability", Warning, "src/db.rs", 40, "The whole table is read.")
        },
        Listed {
            standing: Standing::Refuted,
            said: Critical,
            trial: tried(ReproductionResult::Refuted, "passes on the change", "cargo test overflow"),
            since: Some(Since::New),
            ..listed("reliability", Info, "src/sum.rs", 7, "The sum overflows.")
        },
    ]
}

fn frames() -> Vec<Option<Frame>> {
    let code = |first: u32, lines: &[&str]| {
        Some(Frame { first, lines: lines.iter().map(|line| (*line).to_owned()).collect() })
    };
    let long =
        format!("\tlet found = {}.find(the_needle){};", "haystack.".repeat(20), ".map(one)".repeat(20));
    vec![
        code(
            10,
            &[
                "fn find(db: &Db, name: &str) -> Rows {",
                "\t// 名前で探す",
                "\tlet query = format!(\"select * from users where name = '{name}'\");",
                "\tdb.execute(&query)",
                "}",
            ],
        ),
        code(2, &["# \u{202e}evil\u{2066}", "鍵=\"-----BEGIN PRIVATE KEY-----\"", ""]),
        code(1, &["fn long() {", &long, "}"]),
    ]
}

fn whole() -> Reviewed {
    let mut missing = reviewer("trickster", None, 0);
    missing.missed = 1;
    missing.missed_why = "it ran out of time after 600s".to_owned();
    missing.player = None;
    missing.tokens = Tokens::default();
    missing.cost = Money::ZERO;
    Reviewed {
        subject: Subject {
            kind: SubjectKind::Branch,
            name: "feature/find-by-name".to_owned(),
            key: "branch:feature/find-by-name".to_owned(),
        },
        title: "Find users by name".to_owned(),
        base: "1a2b3c4d5e6f708192a3b4c5d6e7f8091a2b3c4d".to_owned(),
        commit: "9f8e7d6c5b4a39281706f5e4d3c2b1a09f8e7d6c".to_owned(),
        files: 7,
        added: 340,
        deleted: 12,
        parts: vec![part(), part()],
        parts_done: 2,
        summarised: 2,
        verify: true,
        reviewers: vec![
            reviewer("guardian", Some(Verdict::Rejected), 7),
            reviewer("skeptic", Some(Verdict::Approved), 2),
            missing,
        ],
        findings: findings(),
        resolved: vec![KnownFinding {
            fingerprint: "c".repeat(32),
            rule: "testing".to_owned(),
            file: "src/db.rs".to_owned(),
            line: 3,
            severity: Severity::Warning,
            description: "The empty name is not tested.".to_owned(),
            sources: vec!["guardian".to_owned()],
            anchor: String::new(),
            known_as: String::new(),
            resolved: false,
        }],
        compared: true,
        outcome: Some(Outcome {
            status: RunStatus::Reviewed,
            reason: Reason::FindingsOpen,
            detail: "2 CRITICAL".to_owned(),
        }),
    }
}

fn sheet<'a>(reviewed: &'a Reviewed, frames: &'a [Option<Frame>]) -> Sheet<'a> {
    Sheet {
        run_id: "2026-04-08-find-by-name",
        version: "0.1.0",
        reviewed,
        frames,
        since_last: false,
        plan: ".archeflow/artifacts/2026-04-08-find-by-name/plan.md",
        repository_root: Some("/home/me/my project"),
    }
}

fn drawn(format: Format, sheet: &Sheet<'_>, look: Look) -> String {
    let mut out = Vec::new();
    write(format, sheet, &mut out, look).unwrap();
    String::from_utf8(out).unwrap()
}

fn ending(format: Format) -> &'static str {
    match format {
        Format::Terminal | Format::Github => "txt",
        Format::Markdown => "md",
        Format::Json | Format::Rdjson => "json",
        Format::Sarif => "sarif",
    }
}

fn is_known(name: &str, text: &str) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/snapshots").join(name);
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&path, text).unwrap();
    }
    let known = std::fs::read_to_string(&path).unwrap_or_default();
    let differs = known.lines().zip(text.lines()).position(|(a, b)| a != b);
    assert!(known == text, "{name} differs from line {differs:?} on; UPDATE=1 if that is meant");
}

#[test]
fn af_003_a_review_looks_as_it_did_in_every_format() {
    let (reviewed, frames) = (whole(), frames());
    let mut sheet = sheet(&reviewed, &frames);
    for format in Format::ALL {
        let name = format!("review.{}.{}", format.name(), ending(format));
        is_known(&name, &drawn(format, &sheet, NARROW));
    }
    // Whatever NO_COLOR says where the tests run.
    crossterm::style::force_color_output(true);
    is_known(
        "review.colours.txt",
        &drawn(Format::Terminal, &sheet, Look { paint: Paint(true), width: 80 }).replace('\u{1b}', "␛"),
    );
    sheet.since_last = true;
    for format in [Format::Terminal, Format::Markdown, Format::Json] {
        let name = format!("review.since-last.{}.{}", format.name(), ending(format));
        is_known(&name, &drawn(format, &sheet, NARROW));
    }
}

/// The examples of the page, made again.
#[test]
fn af_003_the_page_shows_what_is_drawn() {
    let mut reviewed = whole();
    reviewed.findings.retain(|found| found.line == 12 || !found.counts());
    let frames = frames();
    let sheet = sheet(&reviewed, &frames);
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../docs/review.md");
    let known = std::fs::read_to_string(&path).unwrap();
    let mut page = known.clone();
    for format in [Format::Terminal, Format::Github] {
        let (before, rest) = page.split_once(&format!("<!-- example: {} -->\n", format.name())).unwrap();
        let (_, after) = rest.split_once("<!-- /example -->").unwrap();
        let example = code_block(&drawn(format, &sheet, NARROW));
        let name = format.name();
        page = format!("{before}<!-- example: {name} -->\n{example}<!-- /example -->{after}");
    }
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&path, &page).unwrap();
    }
    assert!(known == page || std::env::var_os("UPDATE").is_some(), "UPDATE=1 writes the examples anew");
}

fn schema(name: &str) -> Value {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../docs/schemas").join(name);
    serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap()
}

/// Reviews of every shape, by what is special about them.
fn shapes() -> Vec<(&'static str, Reviewed)> {
    let mut bare = whole();
    bare.findings.clear();
    bare.resolved.clear();
    bare.reviewers.clear();
    bare.outcome = None;
    bare.compared = false;
    let mut first = whole();
    first.findings.iter_mut().for_each(|found| found.since = None);
    first.compared = false;
    first.resolved.clear();
    let mut partial = whole();
    partial.parts_done = 1;
    let mut shapes = vec![("whole", whole()), ("bare", bare), ("first", first), ("partial", partial)];
    shapes.extend(HOSTILE.iter().map(|(name, text)| (*name, poisoned(text))));
    shapes.push(("endless", poisoned(&"endless ".repeat(12_500))));
    shapes
}

#[test]
fn af_003_what_machines_read_meets_its_schema() {
    let schemas = [
        (Format::Json, schema("review.schema.json")),
        (Format::Sarif, schema("vendor/sarif-2.1.0.json")),
        (Format::Rdjson, schema("vendor/rdjson.schema.json")),
    ];
    let frames = frames();
    for (name, reviewed) in shapes() {
        for since_last in [false, true] {
            for repository_root in [None, Some("/home/me/my project")] {
                let sheet = Sheet { since_last, repository_root, ..sheet(&reviewed, &frames) };
                for (format, schema) in &schemas {
                    let text = drawn(*format, &sheet, NARROW);
                    let value: Value = serde_json::from_str(&text).unwrap();
                    let faults = faults(schema, &value);
                    assert!(faults.is_empty(), "{name} as {}: {faults:#?}", format.name());
                }
            }
        }
    }
}

const HOSTILE: [(&str, &str); 14] = [
    ("script", "</script></title><script>own()</script><img src=x onerror=own()>"),
    ("escape", "a\u{1b}[2J\u{1b}]0;owned\u{7}\u{9b}31mb"),
    ("bidi", "left\u{202e}right\u{2066}\u{200b}\u{e0041}"),
    ("mention", "@everyone and @octo/team, #17, GH-18, o/r#19, a@example.com"),
    ("fence", "```\n# Owned\n````\n| a | b |\n- [ ] x"),
    ("commands", "::error::owned\n::set-output name=a::b\n  ::stop-commands::x\n##[add-mask]e\n::"),
    ("percent", "%0A::error::x %25 %0D%0A, a:b,line=3"),
    ("nul", "a\0b\u{7f}c\r\nd"),
    (
        "links",
        "[x](http://e.example) ![y](http://e.example/p.png) <http://e.example> https://e.example www.e.example",
    ),
    ("braces", "{0} {{ }} ${{ secrets.TOKEN }} $(id) `id`"),
    ("quotes", "\" ' \\ \\\" \\u0000"),
    ("path", "../../etc/passwd"),
    ("wide", "本番🔑e\u{301}\u{300}"),
    ("empty", ""),
];

/// The text behind or instead of every text of others.
fn poisoned(text: &str) -> Reviewed {
    let mut reviewed = whole();
    reviewed.subject.name = text.to_owned();
    reviewed.title = text.to_owned();
    for reviewer in &mut reviewed.reviewers {
        reviewer.agent = text.to_owned();
        reviewer.missed_why = text.to_owned();
        reviewer.player =
            Some(Player { vendor: text.to_owned(), model: text.to_owned(), version: text.to_owned() });
    }
    reviewed.reviewers[1].archetype = text.to_owned();
    for found in &mut reviewed.findings {
        for field in [
            &mut found.rule,
            &mut found.category,
            &mut found.file,
            &mut found.location,
            &mut found.description,
            &mut found.fix,
            &mut found.evidence,
        ] {
            *field = text.to_owned();
        }
        found.sources = vec![text.to_owned(), "program".to_owned()];
        let brief: String = text.chars().take(1_000).collect();
        found.also = vec![Remark { source: brief.clone(), description: brief }; 9];
        found.trial = tried(ReproductionResult::NotReproduced, text, text);
        if let Some(tried) = &mut found.trial {
            tried.tail = text.to_owned();
        }
        if let Standing::Accepted(reason) = &mut found.standing {
            *reason = text.to_owned();
        }
    }
    for known in &mut reviewed.resolved {
        known.rule = text.to_owned();
        known.file = text.to_owned();
        known.description = text.to_owned();
    }
    reviewed
}

#[test]
fn r14_m_s13_hostile_text_is_text_in_every_format() {
    let texts = HOSTILE.iter().map(|(_, text)| (*text).to_owned()).chain(["x".repeat(100_000)]);
    for text in texts {
        let reviewed = poisoned(&text);
        let lines: Vec<String> = text.lines().map(str::to_owned).collect();
        let frames = vec![Some(Frame { first: 1, lines }); reviewed.findings.len()];
        for since_last in [false, true] {
            let sheet = Sheet { since_last, plan: &text, ..sheet(&reviewed, &frames) };
            for format in Format::ALL {
                let drawn = drawn(format, &sheet, NARROW);
                let what = format!("{} of {:?}", format.name(), text.chars().take(40).collect::<String>());
                assert!(safe(&drawn) == drawn, "{what} has something that drives a terminal or hides");
                assert!(!drawn.contains("##["), "{what} commands a workflow");
                check(format, &drawn, &what);
            }
        }
    }
}

fn check(format: Format, drawn: &str, what: &str) {
    match format {
        Format::Json | Format::Sarif => {
            assert!(serde_json::from_str::<Value>(drawn).is_ok(), "{what} is no JSON");
        }
        Format::Rdjson => {
            let value: Value = serde_json::from_str(drawn).unwrap();
            for one in value["diagnostics"].as_array().unwrap() {
                is_inert(one["message"].as_str().unwrap(), what);
                assert!(!one["original_output"].as_str().unwrap().starts_with("::"), "{what}");
            }
        }
        Format::Terminal => {
            let wide = drawn.lines().find(|line| width(line) > NARROW.width);
            assert_eq!(wide, None, "{what} is wider than the terminal");
            let command = drawn.lines().find(|line| line.trim_start().starts_with("::"));
            assert_eq!(command, None, "{what} commands a workflow");
        }
        Format::Github => {
            for line in drawn.lines() {
                let (command, rest) = line.strip_prefix("::").unwrap().split_once("::").unwrap();
                let (level, properties) = command.split_once(' ').unwrap();
                assert!(["error", "warning", "notice"].contains(&level), "{what}: {line}");
                for property in properties.split(',') {
                    let (name, _) = property.split_once('=').unwrap();
                    assert!(["file", "line", "title"].contains(&name), "{what}: {line}");
                }
                assert!(!rest.is_empty());
            }
        }
        Format::Markdown => {
            is_inert(drawn, what);
            assert!(drawn.len() < 65_536, "{what} is too long for a comment");
        }
    }
}

/// Nothing in it is markup, a link, a mention or a command that is not ours.
fn is_inert(markdown: &str, what: &str) {
    let prose = without_code(markdown);
    for never in ["<script", "<img", "](http", "\n# Owned", "://", "www.e", "@e", "@o", "#17", "GH-1"] {
        assert!(!prose.contains(never), "{what} says '{never}' outside of code:\n{prose}");
    }
    let command = markdown.lines().find(|line| line.trim_start().starts_with("::"));
    assert_eq!(command, None, "{what} commands a workflow");
}

/// Markdown without its blocks and spans of code, where everything is text, and without what is escaped.
fn without_code(markdown: &str) -> String {
    let mut fence: Option<String> = None;
    let mut out = String::new();
    for line in markdown.lines() {
        let ticks: String = line.chars().take_while(|c| *c == '`').collect();
        match &fence {
            None if ticks.len() >= 3 => fence = Some(ticks),
            Some(open) if line == open => fence = None,
            Some(_) => {}
            None => {
                let bare =
                    line.replace("<code>", "`").replace("</code>", "`").replace("\\`", "").replace("\\]", "");
                out.extend(bare.split('`').step_by(2));
            }
        }
        out.push('\n');
    }
    assert_eq!(fence, None, "a fence is never closed:\n{markdown}");
    out
}

#[test]
fn r14_the_checks_see_what_they_look_for() {
    for (format, bad) in [
        (Format::Markdown, "see @everyone\n"),
        (Format::Markdown, "```\n```\n<img src=x>\n"),
        (Format::Markdown, "```text\n"),
        (Format::Github, "::set-output name=a::b\n"),
        (Format::Github, "owned\n"),
        (Format::Terminal, "    ::error::x\n"),
        (Format::Json, "{"),
    ] {
        let seen = std::panic::catch_unwind(|| check(format, bad, "a plant"));
        assert!(seen.is_err(), "{bad:?} passes as {}", format.name());
    }
}

#[test]
fn af_003_nothing_is_printed_when_nothing_is_new() {
    let mut reviewed = whole();
    reviewed.resolved.clear();
    reviewed.findings.iter_mut().for_each(|found| found.since = Some(Since::Persistent));
    let frames = frames();
    let sheet = Sheet { since_last: true, ..sheet(&reviewed, &frames) };
    for (format, silent) in [
        (Format::Terminal, true),
        (Format::Markdown, true),
        (Format::Github, true),
        (Format::Json, false),
        (Format::Sarif, false),
        (Format::Rdjson, false),
    ] {
        assert_eq!(drawn(format, &sheet, NARROW).is_empty(), silent, "{}", format.name());
    }
    let sarif: Value = serde_json::from_str(&drawn(Format::Sarif, &sheet, NARROW)).unwrap();
    assert_eq!(sarif["runs"][0]["results"].as_array().unwrap().len(), 8, "code scanning is told everything");
    let rdjson: Value = serde_json::from_str(&drawn(Format::Rdjson, &sheet, NARROW)).unwrap();
    assert_eq!(rdjson["diagnostics"].as_array().unwrap().len(), 0);
}

/// What this thread has worked, however busy the machine is.
fn worked() -> Duration {
    archeflow_host::platform::machine::thread_time()
}

fn many(n: usize) -> (Reviewed, Vec<Option<Frame>>) {
    let mut reviewed = whole();
    let frame = frames().remove(0);
    let one = |n: usize| Listed {
        fingerprint: format!("{n:032x}"),
        file: format!("src/f{n}.rs"),
        description: format!("{n} {}", "and so on ".repeat(20)),
        ..reviewed.findings[n % 3].clone()
    };
    reviewed.findings = (0..n).map(one).collect();
    (reviewed, vec![frame; n])
}

#[test]
fn r17_ten_thousand_findings_are_printed_in_bounded_time_and_space() {
    let (reviewed, frames) = many(10_000);
    let sheet = sheet(&reviewed, &frames);
    for format in Format::ALL {
        let began = worked();
        let text = drawn(format, &sheet, NARROW);
        let took = worked().saturating_sub(began);
        #[expect(clippy::print_stderr, reason = "for whoever looks with --nocapture")]
        {
            eprintln!("{}: {took:?}, {} bytes", format.name(), text.len());
        }
        // More than it takes on a slow machine without optimisation, and far less than anything quadratic would.
        assert!(took < Duration::from_secs(60), "{} took {took:?}", format.name());
        let told = match format {
            Format::Terminal => text.matches("src/f").count() == 10_000,
            Format::Markdown => text.len() < 65_536 && text.contains("more findings than fit here"),
            Format::Github => text.lines().count() == 21 && text.contains("9980 more than can be shown"),
            Format::Json => text.matches("\"rule\": ").count() == 10_001,
            Format::Sarif => text.matches("\"ruleId\": ").count() == 10_000,
            Format::Rdjson => text.matches("\"original_output\": ").count() == 10_000,
        };
        assert!(told, "{} does not say what it leaves out", format.name());
    }
}

#[test]
fn r17_code_scanning_gets_no_more_than_it_takes_with_a_note() {
    let (reviewed, _) = many(25);
    let sarif = serde_json::to_value(super::sarif::draw(&sheet(&reviewed, &[]), 20)).unwrap();
    let run = &sarif["runs"][0];
    assert_eq!(run["results"].as_array().unwrap().len(), 20);
    let told = &run["invocations"][0]["toolExecutionNotifications"][1]["message"]["text"];
    assert_eq!(told, "5 findings are left out: code scanning takes 20 in a run.");
    let endless = poisoned(&"x".repeat(5_000));
    let sarif = serde_json::to_value(super::sarif::draw(&sheet(&endless, &[]), 20)).unwrap();
    let place = &sarif["runs"][0]["results"][0]["locations"][0]["physicalLocation"];
    assert_eq!(place["artifactLocation"]["uri"], "whole-change", "no viewer reads an address of that length");
}

#[test]
fn af_122_m_h9_no_terminal_is_too_narrow() {
    for (name, reviewed) in shapes() {
        for columns in [20, 33, 400] {
            let frames = frames();
            let look = Look { paint: Paint(false), width: columns };
            let text = drawn(Format::Terminal, &sheet(&reviewed, &frames), look);
            assert!(!text.is_empty(), "{name} at {columns}");
        }
    }
}

#[test]
fn af_003_formats_go_by_name() {
    for format in Format::ALL {
        assert_eq!(Format::parse(format.name()), Ok(format));
    }
    let told = Format::parse("xml").unwrap_err();
    assert_eq!(
        told,
        "'xml' is no format of a review; there are terminal, markdown, json, sarif, rdjson, github"
    );
}

#[test]
fn r14_prose_and_fences_hold_whatever_is_in_them() {
    for (text, inert) in [
        ("@a #1 GH-2", "@&#8203;a \\#&#8203;1 GH-&#8203;2"),
        ("http://x www.y", "http:&#8203;//x www.&#8203;y"),
        ("std::io a:b", "std::io a:b"),
        ("<b> & `c` *d* [e](f) ![g]", "&lt;b&gt; &amp; `c` \\*d\\* \\[e\\](f) \\!\\[g\\]"),
    ] {
        assert_eq!(markdown_comment(text, 400), inert);
    }
    assert_eq!(code_block("a"), "```text\na\n```\n");
    assert_eq!(code_block("````\n"), "`````text\n````\n`````\n");
}

#[test]
fn af_003_words_are_wrapped_by_the_columns_they_take() {
    for (text, lines) in [
        ("one two three", vec!["one two", "three"]),
        ("本番本番 本番", vec!["本番本番", "本番"]),
        ("abcdefghijklmnop x", vec!["abcdefgh", "ijklmnop", "x"]),
        ("", vec![""]),
    ] {
        assert_eq!(wrapped(text, 8, 8), lines, "{text}");
    }
}
