//! Reports of recorded runs, compared with snapshots; and hostile text, which
//! must be nothing but text in every format. `UPDATE=1` writes the snapshots again.

#![expect(clippy::unwrap_used, reason = "a test that can't set up its world should stop at once")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use archeflow_core::event::{Entry, Event};
use archeflow_core::model::{Outcome, Phase};
use archeflow_core::projections::replay::rulebook;
use archeflow_core::projections::story::Story;
use archeflow_core::projections::story::dag::Dag;
use archeflow_core::projections::view;
use archeflow_core::run::Run;
use archeflow_host::clock;
use serde_json::Value;

use super::diff::Diff;
use super::{Report, graph, html, json, markdown, summary};
use crate::render::summary::json as run_json;
use crate::render::text::{Paint, safe};

pub(crate) const DEMO: &str = include_str!("../../tests/logs/demo.jsonl");
pub(crate) const BREAK: &str = include_str!("../../tests/logs/break.jsonl");
const CHANGE: &str = "diff --git a/till.sh b/till.sh\nindex 1..2 100644\n--- a/till.sh\n+++ b/till.sh\n\
                      @@ -1,3 +1,3 @@ total() {\n first\n-second\n+second & <third>\n last\n";

pub(crate) fn values(log: &str) -> Vec<Value> {
    log.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

pub(crate) fn entries(lines: &[Value]) -> Vec<Entry> {
    let entry = |line: &Value| Entry {
        seq: line["seq"].as_u64().unwrap(),
        at: clock::read(line["ts"].as_str().unwrap()),
        parent: line["parent"].as_array().unwrap().iter().filter_map(Value::as_u64).collect(),
        phase: Phase::parse(line["phase"].as_str().unwrap()).unwrap(),
        agent: line["agent"].as_str().map(str::to_owned),
        event: Event::read(line["type"].as_str().unwrap(), &line["data"]).unwrap().unwrap(),
    };
    lines.iter().map(entry).collect()
}

/// Every format of one run: by name, the text.
fn drawn(log: &[Entry], change: &str) -> [(&'static str, String); 7] {
    let (story, dag) = (Story::of("the-run", log), Dag::of(log));
    let diff = Diff::read(change, None, "git diff a...b".to_owned());
    let report = Report { story: &story, diff: &diff, dag: Some(&dag), written: clock::written };
    [
        ("md", markdown::draw(&report)),
        ("html", html::draw(&report)),
        ("txt", summary(&story) + "\n"),
        ("json", format!("{:#}\n", json::draw(&story, &diff))),
        ("dag.txt", graph::plain(&dag)),
        ("dot", graph::dot("the-run", &dag)),
        ("mmd", graph::mermaid(&dag)),
    ]
}

const RECORDED: [&str; 4] = [
    DEMO,
    BREAK,
    include_str!("../../tests/recorded/2026-11-15-greet-people-by-name.jsonl"),
    include_str!("../../tests/recorded/2026-11-15-greet-people-by-name-2.jsonl"),
];

/// Screen, report, `--json` of the run and of its report, and the log: one end, one count of findings, one count of fixes.
#[test]
fn u_16_what_is_said_of_a_run_is_what_is_recorded() {
    for text in &RECORDED {
        let lines = values(text);
        let log = entries(&lines);
        let end =
            lines.iter().rfind(|line| line["type"] == "run.complete").map(|line| &line["data"]).unwrap();
        let (mut run, mut screen) = (Run::default(), Vec::new());
        for entry in &log {
            run.apply(entry);
            screen
                .extend(view::line(&run, entry, None).map(|line| format!("{} {}", line.doing, line.outcome)));
        }
        let code = run.outcome.as_ref().map_or(0, Outcome::exit_code);
        let object = run_json(Path::new("repository"), "the-run", &run, run.outcome.as_ref(), code, None);
        let [(_, page), _, (_, line), (_, report), ..] = drawn(&log, "");
        let report: Value = serde_json::from_str(&report).unwrap();
        for json in [&object, &report] {
            for key in ["status", "reason", "exit_code", "fixes_total"] {
                assert_eq!(json[key], end[key], "{key}");
            }
        }
        let ended = format!("{} ({})", end["status"].as_str().unwrap(), end["reason"].as_str().unwrap());
        assert!(line.starts_with(&ended) && page.contains(&ended.replace(" (", "** (")), "{ended}: {line}");
        assert_eq!(object["unresolved"], end["unresolved"]);
        let findings = report["findings"].as_array().unwrap();
        let by_severity =
            |all: &[Value], severity: &str| all.iter().filter(|one| one["severity"] == severity).count();
        let open: Vec<Value> = findings.iter().filter(|one| one["open"] == true).cloned().collect();
        let unresolved = end["unresolved"].as_array().unwrap();
        for severity in ["CRITICAL", "WARNING"] {
            assert_eq!(
                by_severity(&open, severity),
                by_severity(unresolved, severity),
                "{severity}: {ended}"
            );
        }
        let is_fix = |line: &&Value| line["type"] == "fix.applied";
        assert_eq!(lines.iter().filter(is_fix).count(), count_of(&end["fixes_total"]), "{ended}");
        let resolved =
            findings.iter().filter(|one| one["states"].as_array().unwrap().last().unwrap() == "resolved");
        // The log of the break is older than the rule that what is resolved is a fix.
        if *text != BREAK {
            assert_eq!(resolved.count(), count_of(&end["fixes_total"]), "{ended}");
        }
        if let Some(count) = line.split(" | ").find_map(|part| part.strip_suffix(" open")) {
            assert!(count.ends_with(&format!("{} findings", open.len())), "{line}");
        }
        ends_agree(&lines, &screen, &report, &page);
    }
}

fn count_of(number: &Value) -> usize {
    usize::try_from(number.as_u64().unwrap()).unwrap()
}

/// The end of each cycle.
fn ends_agree(lines: &[Value], screen: &[String], report: &Value, page: &str) {
    let boundaries = lines.iter().filter(|line| line["type"] == "cycle.boundary").map(|line| &line["data"]);
    for (end, cycle) in boundaries.zip(report["cycles"].as_array().unwrap()) {
        let open = end["open"].as_array().unwrap();
        let of = |severity: &str| open.iter().filter(|one| one["severity"] == severity).count();
        let (critical, warning, info) = (of("CRITICAL"), of("WARNING"), count_of(&end["info"]));
        let counts = format!("{critical} CRITICAL, {warning} WARNING, {info} INFO");
        assert!(screen.iter().any(|line| line.contains(&counts)), "{counts}: {screen:#?}");
        let told = ["critical", "warning", "info"].map(|key| count_of(&cycle["end"][key]));
        assert_eq!(told, [critical, warning, info]);
        for key in ["next_action", "exit_condition"] {
            assert_eq!(cycle["end"][key], end[key], "{key}");
        }
    }
    let all_approved = |line: &&Value| {
        let (end, is_end) = (&line["data"], line["type"] == "cycle.boundary");
        is_end && end["next_action"] == "merge" && end["passed_over"].is_null()
    };
    let all_approved = lines.iter().filter(all_approved).count();
    assert_eq!(screen.iter().filter(|line| line.starts_with("All approved")).count(), all_approved);
    assert_eq!(page.matches("**approved**").count(), all_approved);
}

#[test]
fn bx_09_bx_10_recorded_runs_look_as_they_did() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/snapshots");
    for (name, log) in [("demo", DEMO), ("break", BREAK)] {
        for (ending, text) in
            drawn(&entries(&values(log)), CHANGE).into_iter().filter(|(ending, _)| *ending != "json")
        {
            let path = folder.join(format!("{name}.{ending}"));
            if std::env::var_os("UPDATE").is_some() {
                std::fs::write(&path, &text).unwrap();
            }
            let known = std::fs::read_to_string(&path).unwrap_or_default();
            let differs = known.lines().zip(text.lines()).position(|(a, b)| a != b);
            assert!(
                known == text,
                "{} differs from line {differs:?} on; UPDATE=1 if that is meant",
                path.display()
            );
        }
    }
}

#[test]
fn bx_10_what_a_report_must_say() {
    let [(_, markdown), (_, page), (_, line), ..] = drawn(&entries(&values(BREAK)), CHANGE);
    for words in [
        "oscillating",
        "AF-109",
        "src/app.txt",
        "Which one is right?",
        "archeflow continue the-run --ruling",
        "check-guardian.md",
        "Maker",
    ] {
        assert!(markdown.contains(words), "Markdown does not say '{words}'");
        assert!(page.contains(words), "HTML does not say '{words}'");
    }
    assert!(markdown.contains("| `src/app.txt:reliability` | CRITICAL | ● | ✓ | ◆ |"), "{markdown}");
    assert!(page.contains("aria-label=\"cycle 3: oscillating\""));
    assert_eq!(line.lines().count(), 1);
    assert!(line.starts_with("wiggum_break (oscillation): Add a line"), "{line}");
}

/// Every number leads to the rule's text in the same file, which needs no network.
#[test]
fn u_16_numbers_of_rules_are_links_within_the_page() {
    for log in [DEMO, BREAK] {
        let log = entries(&values(log));
        let page = drawn(&log, CHANGE)[1].1.clone();
        let story = Story::of("the-run", &log);
        assert!(!story.decisions.is_empty());
        for choice in &story.decisions {
            let number = &choice.why.rule;
            let rule = rulebook::find(number).unwrap_or_else(|| panic!("{number} is not in the rulebook"));
            let id = format!("rule-{}", number.to_lowercase());
            assert!(page.contains(&format!("href=\"#{id}\"")), "{number} is no link");
            assert_eq!(page.matches(&format!("id=\"{id}\"")).count(), 1, "{number}");
            assert!(page.contains(rule.says), "{number}");
        }
    }
    // A number that is in no rulebook is text.
    let mut lines = values(DEMO);
    for line in lines.iter_mut().filter(|line| line["type"] == "decision.point") {
        line["data"]["rule"] = "ZZ-1\"><script>".into();
    }
    let page = drawn(&entries(&lines), CHANGE)[1].1.clone();
    assert_eq!(html_faults(&page), Vec::<String>::new());
    assert!(page.contains("ZZ-1") && !page.contains("href=\"#rule-zz"));
}

/// U-17: what is drawn leaves no box, whatever its length: no label has a width of its own.
#[test]
fn u_17_labels_of_the_cycles_are_text_that_wraps() {
    let mut lines = values(DEMO);
    for line in lines.iter_mut().filter(|line| line["type"] == "run.merged") {
        line["data"]["base"] = format!("refs/heads/{}", "long".repeat(40)).into();
    }
    let page = drawn(&entries(&lines), CHANGE)[1].1.clone();
    let boxes: Vec<&str> = page.split("<li class=\"box").skip(1).collect();
    assert_eq!(boxes.len(), 17);
    for one in boxes {
        let one = one.split("</li>").next().unwrap();
        assert!(!one.contains("<text"), "{one}");
        assert!(one.contains("<p class=\"name t\">"), "{one}");
    }
    assert!(page.contains(&"long".repeat(40)), "it is not cut either");
}

const HOSTILE: &str = " </script></title></style><script>own()</script><img src=x onerror=own()> \" ' onload=own() \
                       \u{1b}]0;owned\u{7}\u{1b}[2J\u{9b}31m\u{202e}\u{2066}\u{200b}\r -->\\\" ]] | ```\n## Owned\n| a |\n\
                       ![x](http://e.example/x) [y](javascript:own()) <!-- & &lt; ; } { n1 --> n2 \\";

/// Puts hostile words behind every text of others. Words of ours, such as verdicts, have no blanks.
pub(crate) fn poison(value: &mut Value, key: &str) {
    const FREE: [&str; 12] = [
        "task",
        "location",
        "file",
        "category",
        "id",
        "description",
        "fix",
        "summary",
        "detail",
        "branch",
        "agent",
        "version",
    ];
    match value {
        Value::String(text) if text.contains(' ') || (FREE.contains(&key) && !text.is_empty()) => {
            text.push_str(HOSTILE);
        }
        Value::Array(all) => all.iter_mut().for_each(|one| poison(one, key)),
        Value::Object(map) => map.iter_mut().for_each(|(key, one)| poison(one, key)),
        Value::String(_) | Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn poisoned(log: &str) -> Vec<Entry> {
    let mut lines = values(log);
    lines.iter_mut().for_each(|line| poison(&mut line["data"], ""));
    entries(&lines)
}

#[test]
fn r14_m_s13_m_s25_hostile_text_is_text_in_every_format() {
    let change =
        format!("{CHANGE}diff --git a/x b/x\n--- a/x\n+++ b/x{HOSTILE}\n@@ -0,0 +1 @@\n+{HOSTILE}\n");
    for log in [DEMO, BREAK] {
        let drawn = drawn(&poisoned(log), &change);
        assert!(drawn[1].1.contains("own()"), "the poison is in there, as text");
        for (format, text) in &drawn {
            // JSON goes through `safe_json` on its way out.
            if *format != "json" {
                assert!(safe(text) == *text, "{format} has something that drives a terminal or hides");
            }
        }
        let [(_, markdown), (_, page), (_, line), _, _, (_, dot), (_, mermaid)] = &drawn;
        assert_eq!(html_faults(page), Vec::<String>::new());
        assert_eq!(line.lines().count(), 1);
        let prose = prose(markdown);
        for never in ["\n## Owned", "<script", "<img", "<!--", "](http", "](java"] {
            assert!(!prose.contains(never), "Markdown says '{never}' outside of code");
        }
        assert_eq!(dot_faults(dot), Vec::<String>::new());
        for row in mermaid.lines().filter(|row| row.contains('[')) {
            let label = row.split_once("[\"").and_then(|(_, rest)| rest.rsplit_once("\"]")).unwrap().0;
            assert!(!label.replace("<br/>", "").contains(['"', '<', '>', '`', '[', ']', '(', '{']), "{row}");
        }
    }
}

#[test]
fn r14_the_checks_see_what_they_look_for() {
    for bad in [
        "<script>x</script>",
        "<p onclick=\"x\">",
        "<a href=\"javascript:x\">",
        "<img src=\"x\">",
        "<p style=\"x\">",
        "<p>\u{1b}",
    ] {
        assert!(!html_faults(bad).is_empty(), "{bad}");
    }
    assert!(!dot_faults("digraph \"a\" {\n  n1 [label=\"a\"b\"];\n}\n").is_empty());
    assert!(!dot_faults("digraph \"a\" {\n  n1 [label=\"a\\\"];\n}\n").is_empty());
}

/// Every tag and attribute must be one the report uses, and every link one within the page.
fn html_faults(page: &str) -> Vec<String> {
    const TAGS: &str = "!doctype html head meta title style body svg defs symbol circle path rect text g use main header nav a p span strong em h1 h2 h3 h4 \
                        dl div dt dd section ul li code figure figcaption table thead tbody tr th td abbr details summary pre br footer";
    const ATTRIBUTES: &str = "html lang charset http-equiv content name class aria-hidden aria-label id viewBox r d role x y cx cy rx width height transform href \
                              scope title open colspan";
    let (tags, attributes): (BTreeSet<&str>, BTreeSet<&str>) =
        (TAGS.split_whitespace().collect(), ATTRIBUTES.split_whitespace().collect());
    let mut faults = Vec::new();
    let mut rest = page;
    while let Some((_, from)) = rest.split_once('<') {
        let Some((tag, after)) = from.split_once('>') else {
            faults.push("a tag that never ends".to_owned());
            break;
        };
        rest = after;
        let (name, mut inside) = tag.split_once(' ').unwrap_or((tag, ""));
        let name = name.trim_start_matches('/').trim_end_matches('/').to_lowercase();
        if !tags.contains(name.as_str()) {
            faults.push(format!("<{name}> is no tag of ours"));
        }
        while !inside.trim_matches([' ', '/']).is_empty() {
            let (attribute, value, left) = match inside.trim_start().split_once("=\"") {
                Some((attribute, more)) => {
                    let (value, left) = more.split_once('"').unwrap_or((more, ""));
                    (attribute, value, left)
                }
                None => (inside.trim(), "", ""),
            };
            let bare: Vec<&str> = attribute.trim_end_matches('/').split_whitespace().collect();
            faults.extend(
                bare.iter()
                    .filter(|word| !attributes.contains(**word))
                    .map(|word| format!("attribute {word}")),
            );
            if attribute.ends_with("href") && !value.starts_with('#') {
                faults.push(format!("a link to {value}"));
            }
            inside = left;
        }
    }
    if safe(page) != page {
        faults.push("something hidden".to_owned());
    }
    faults
}

/// Every line is one whole statement with its quotes closed.
fn dot_faults(dot: &str) -> Vec<String> {
    let mut faults = Vec::new();
    for row in dot.lines() {
        let (mut quoted, mut escaped, mut outside) = (false, false, String::new());
        for c in row.chars() {
            match c {
                _ if escaped => escaped = false,
                '\\' if quoted => escaped = true,
                '"' => quoted = !quoted,
                c if !quoted => outside.push(c),
                _ => {}
            }
        }
        let ends = outside.ends_with([';', '{', '}'])
            && !outside.trim_end_matches([';', '{', '}']).contains([';', '}']);
        if quoted || escaped || !ends {
            faults.push(row.to_owned());
        }
    }
    faults
}

/// Markdown without its code blocks and code spans, where everything is text anyway, and without what is escaped.
fn prose(markdown: &str) -> String {
    let mut fence: Option<String> = None;
    let mut out = String::new();
    for line in markdown.lines() {
        let ticks: String = line.chars().take_while(|c| *c == '`').collect();
        match &fence {
            None if ticks.len() >= 3 => fence = Some(ticks),
            Some(open) if line == open => fence = None,
            Some(_) => {}
            None => out.push_str(&without_code(line)),
        }
        out.push('\n');
    }
    out
}

fn without_code(line: &str) -> String {
    let mut out = String::new();
    let mut rest = line;
    while let Some(at) = rest.find(['\\', '`']) {
        let (before, from) = rest.split_at(at);
        out.push_str(before);
        let inside = &from[1..];
        let skipped = if from.starts_with('`') { inside.find('`').map_or(0, |end| end + 1) } else { 1 };
        rest = inside.get(skipped..).unwrap_or_default();
    }
    out + rest
}

#[test]
fn r17_ten_thousand_findings_and_endless_text_are_bounded() {
    let mut lines = values(BREAK);
    for line in lines.iter_mut().filter(|line| line["type"] == "cycle.boundary") {
        let one = line["data"]["open"][0].clone();
        let many = (0..10_000).map(|n| {
            let mut found = one.clone();
            found["id"] = format!("src/f{n}.rs:quality").into();
            found["description"] = format!("{n} {}", "endless ".repeat(40)).into();
            found
        });
        line["data"]["open"] = many.collect();
    }
    lines[0]["data"]["task"] = "x".repeat(5_000_000).into();
    let [(_, markdown), (_, page), (_, line), ..] = drawn(&entries(&lines), CHANGE);
    assert!(page.len() < 1_000_000 && markdown.len() < 1_000_000 && line.len() < 1_000);
    assert!(page.contains("… and 98") && markdown.contains("… and 98"), "what is left out is told");
}

#[test]
fn bx_10_a_log_of_any_length_makes_a_report() {
    let log = entries(&values(BREAK));
    for end in (0..=log.len()).step_by(4) {
        let drawn = drawn(&log[..end], "");
        assert!(drawn.iter().all(|(format, text)| *format == "dag.txt" || !text.is_empty()));
    }
    assert_eq!(Paint(false).bold("x"), "x");
}
