//! Recorded journals as telemetry. Their times are whole seconds, as those of old journals are.

use serde_json::Value;

use super::names::{METRICS, NAMES, SCHEMA_URL};
use super::*;

const RECORDED: [(&str, &str); 2] = [
    (
        "2026-11-15-greet-people-by-name",
        include_str!("../../../../app/tests/recorded/2026-11-15-greet-people-by-name.jsonl"),
    ),
    (
        "2026-11-15-greet-people-by-name-2",
        include_str!("../../../../app/tests/recorded/2026-11-15-greet-people-by-name-2.jsonl"),
    ),
];

fn entries(journal: &str) -> Vec<Entry> {
    let line = |line: &str| {
        let value: Value = serde_json::from_str(line).unwrap();
        let number = |at: std::ops::Range<usize>| value["ts"].as_str().unwrap()[at].parse::<u64>().unwrap();
        let at = ((number(11..13) * 60 + number(14..16)) * 60 + number(17..19)) * 1_000;
        let lines = value["parent"].as_array().unwrap().iter().map(|line| line.as_u64().unwrap());
        Entry {
            seq: value["seq"].as_u64().unwrap(),
            at: 1_700_000_000_000 + at,
            parent: lines.collect(),
            phase: serde_json::from_value(value["phase"].clone()).unwrap(),
            agent: value["agent"].as_str().map(str::to_owned),
            event: Event::read(value["type"].as_str().unwrap(), value["data"].clone()).unwrap().unwrap(),
        }
    };
    journal.lines().map(line).collect()
}

fn of(run_id: &str, entries: &[Entry], content: bool) -> Telemetry {
    Telemetry::of(TelemetryInputs { run_id, entries, tools: &BTreeMap::new(), content })
}

/// Each span's name below its parent's, in the order in which they began.
fn tree(telemetry: &Telemetry) -> Vec<String> {
    fn below(all: &[TelemetrySpan], parent: Option<SpanId>, depth: usize, out: &mut Vec<String>) {
        let mut children: Vec<_> = all.iter().filter(|span| span.parent == parent).collect();
        children.sort_by_key(|span| span.began);
        for span in children {
            out.push(format!("{}{}", "  ".repeat(depth), span.name));
            below(all, Some(span.id), depth + 1, out);
        }
    }
    let mut out = Vec::new();
    below(&telemetry.spans, None, 0, &mut out);
    out
}

fn texts(telemetry: &Telemetry) -> String {
    let mut all = vec![telemetry.run.clone(), telemetry.version.clone()];
    let mut take = |name: &str, attributes: &Attributes| {
        all.push(name.to_owned());
        all.extend(attributes.iter().map(|(name, value)| format!("{name}={value:?}")));
    };
    for span in &telemetry.spans {
        take(&format!("{} {:?}", span.name, span.error), &span.attributes);
    }
    for record in &telemetry.records {
        take(&record.name, &record.attributes);
    }
    all.join("\n")
}

#[test]
fn otel_a_run_is_a_tree_in_the_order_of_its_lines() {
    let (id, journal) = RECORDED[0];
    let telemetry = of(id, &entries(journal), false);
    let expected = "invoke_workflow standard\n  plan\n    invoke_agent explorer\n    invoke_agent creator\n  do\n    \
                    invoke_agent maker\n  check\n    invoke_agent guardian";
    let drawn = tree(&telemetry);
    assert!(drawn.join("\n").starts_with(expected), "{drawn:#?}");
    assert_eq!(drawn.len(), telemetry.spans.len(), "all hang together");
    assert_eq!(
        (telemetry.open, telemetry.spans.last().unwrap().parent),
        (0, None),
        "the run itself comes last"
    );
    let by_id: BTreeMap<SpanId, &TelemetrySpan> =
        telemetry.spans.iter().map(|span| (span.id, span)).collect();
    assert_eq!(by_id.len(), telemetry.spans.len(), "no id twice");
    for span in &telemetry.spans {
        let Some(parent) = span.parent.map(|id| by_id[&id]) else { continue };
        assert!(parent.began < span.began && span.ended <= parent.ended, "{} in {}", span.name, parent.name);
    }
    let mut starts: Vec<u64> = telemetry.spans.iter().map(|span| span.began).collect();
    starts.sort_unstable();
    starts.dedup();
    assert_eq!(
        starts.len(),
        telemetry.spans.len(),
        "no two begin at once, though all lines are of few seconds"
    );
    for record in &telemetry.records {
        assert!(by_id.contains_key(&record.span), "{}", record.name);
    }
    let verdict = telemetry.records.iter().find(|record| record.name == "gen_ai.evaluation.result").unwrap();
    assert_eq!(by_id[&verdict.span].name, "invoke_agent guardian");
    assert!(SCHEMA_URL.ends_with(names::CONVENTIONS));
}

/// So what was sent while the run was driven never changes, and sending it again adds nothing.
#[test]
fn otel_a_longer_journal_only_adds() {
    for (id, journal) in RECORDED {
        let entries = entries(journal);
        let whole = of(id, &entries, true);
        assert_eq!(of(id, &entries, true), whole);
        for length in 1..entries.len() {
            let part = of(id, &entries[..length], true);
            assert_eq!(part.trace, whole.trace);
            assert_eq!(part.spans[..], whole.spans[..part.spans.len()], "{length} lines");
            assert_eq!(part.records[..], whole.records[..part.records.len()], "{length} lines");
            let rest = whole.clone().after(part.line);
            assert_eq!(part.spans.len() + rest.spans.len(), whole.spans.len());
            assert_eq!(part.records.len() + rest.records.len(), whole.records.len());
        }
    }
    assert_ne!(of("a", &entries(RECORDED[0].1), false).trace, of("b", &entries(RECORDED[0].1), false).trace);
}

/// Not by the name of the run either, which is made from the task.
#[test]
fn otel_task_paths_and_words_are_sent_only_by_choice() {
    for (id, journal) in RECORDED {
        let entries = entries(journal);
        let request = entries[0].event.body::<RunStart>().unwrap();
        let words = [request.task.as_str(), id, &request.branch, "greet", "Greet", ".sh", "src/", "tests/"];
        let plain = texts(&of(id, &entries, false));
        for word in words {
            assert!(!plain.contains(word), "'{word}' is in it\n{plain}");
        }
        let full = texts(&of(id, &entries, true));
        for word in [request.task.as_str(), id, &request.branch] {
            assert!(full.contains(word), "'{word}' is not in it\n{full}");
        }
        assert!(plain.contains("2026-11-15-"), "the date stays\n{plain}");
    }
}

#[test]
fn otel_a_line_with_a_secret_is_never_sent() {
    let mut entries = entries(RECORDED[0].1);
    let Event::Report(Report::RunStart(request)) = &mut entries[0].event else { panic!("no request") };
    request.task = "Use the key\nghp_a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8\nand test it".to_owned();
    let sent = texts(&of("r", &entries, true));
    assert!(!sent.contains("a1B2c3D4e5") && sent.contains("[a line with a forge token]"), "{sent}");
    assert!(sent.contains("Use the key") && sent.contains("and test it"), "{sent}");
}

#[test]
fn otel_every_name_is_in_the_table_and_in_the_manual() {
    let manual = include_str!("../../../../docs/telemetry.md");
    for (id, journal) in RECORDED {
        let telemetry = of(id, &entries(journal), true);
        let spans = telemetry.spans.iter().map(|span| &span.attributes);
        for attributes in spans.chain(telemetry.records.iter().map(|record| &record.attributes)) {
            for (name, _) in attributes.iter() {
                assert!(NAMES.iter().any(|known| known.name == name), "{name}");
            }
        }
    }
    for known in NAMES {
        let content = if known.content { "only with content" } else { "always" };
        let row = format!("| `{}` | {} | {content} | {} |", known.name, known.on, known.meaning);
        assert!(manual.contains(&row), "missing in docs/telemetry.md:\n{row}");
    }
    for (name, unit, meaning) in METRICS {
        let row = format!("| `{name}` | `{unit}` | {meaning} |");
        assert!(manual.contains(&row), "missing in docs/telemetry.md:\n{row}");
    }
    assert!(manual.contains(SCHEMA_URL));
}

#[test]
fn otel_times_rise_whatever_the_clock_does() {
    let mut all = entries(RECORDED[0].1);
    all.truncate(4);
    for (entry, at) in all.iter_mut().zip([5_000, 5_000, 2_000, 6_001]) {
        entry.at = at;
    }
    assert_eq!(times(&all), [5_000_000_000, 5_000_001_000, 5_000_002_000, 6_001_000_000]);
    all[0].at = u64::MAX;
    assert_eq!(times(&all)[3], u64::MAX, "nothing overflows");
}

#[test]
fn otel_tools_are_below_their_agent_and_within_its_time() {
    let mut entries = entries(RECORDED[0].1);
    let (seq, at) = entries
        .iter()
        .find(|entry| entry.event.body::<AgentStart>().is_some_and(|start| start.archetype == "maker"))
        .map(|entry| (entry.seq, entry.at))
        .unwrap();
    entries.iter_mut().filter(|entry| entry.seq > seq).for_each(|entry| entry.at += 5_000);
    let used = |name: &str, began, ended, failed| ToolUse {
        id: format!("call {name}"),
        name: name.to_owned(),
        began,
        ended,
        failed,
    };
    let tools = BTreeMap::from([(
        seq,
        vec![
            used("Read", at, Some(at), false),
            used("Bash", at.saturating_sub(60_000), Some(at + 90_000_000), true),
            used("Edit\u{202e}\n<b>", at, None, false),
        ],
    )]);
    let telemetry =
        Telemetry::of(TelemetryInputs { run_id: "r", entries: &entries, tools: &tools, content: false });
    let agent = telemetry.spans.iter().find(|span| span.name == "invoke_agent maker").unwrap();
    let found: Vec<_> = telemetry.spans.iter().filter(|span| span.parent == Some(agent.id)).collect();
    let names: Vec<_> = found.iter().map(|span| (span.name.as_str(), span.error.as_deref())).collect();
    assert_eq!(names[..2], [("execute_tool Read", None), ("execute_tool Bash", Some("tool_error"))]);
    assert!(!names[2].0.contains(['\u{202e}', '\n']), "{names:?}");
    let mut last = agent.began;
    for span in found {
        assert!(last < span.began && span.began <= span.ended && span.ended <= agent.ended, "{}", span.name);
        last = span.began;
    }
}

/// An agent that died with the program ended with that session, not when it was found days later.
#[test]
fn otel_a_lost_agent_ends_with_its_session() {
    let mut all = entries(RECORDED[0].1);
    let at = all.iter().position(|entry| entry.event.body::<AgentStart>().is_some()).unwrap();
    all.truncate(at + 1);
    let start = all[at].clone();
    let archetype = start.event.body::<AgentStart>().unwrap().archetype.clone();
    let days = 3 * 86_400_000;
    let session = all.iter().find_map(|entry| entry.event.body::<SessionStart>()).unwrap().clone();
    let lost = AgentLost {
        archetype,
        start_seq: start.seq,
        reason: String::new(),
        kept_as: None,
        estimated_cost_usd: None,
        cost_source: None,
        tokens: None,
    };
    let entry =
        |n: u64, event: Event| Entry { seq: start.seq + n, at: start.at + days + n, event, ..start.clone() };
    all.push(entry(1, session.into()));
    all.push(entry(2, lost.into()));
    let telemetry = of("r", &all, false);
    let span = telemetry.spans.last().unwrap();
    assert_eq!((span.error.as_deref(), span.ended - span.began), (Some("lost"), 0));
    assert_eq!(telemetry.open, 2, "the run and its phase");
}

#[test]
fn otel_numbers_are_counted_from_the_beginning() {
    let telemetry = of("r", &entries(RECORDED[0].1), false);
    let agents = telemetry.spans.iter().filter(|span| span.name.starts_with("invoke_agent")).count() as u64;
    let found: Vec<&str> = telemetry.metrics.iter().map(|metric| metric.name.0).collect();
    assert!(
        found.contains(&"gen_ai.client.operation.duration") && found.contains(&"archeflow.findings"),
        "{found:?}"
    );
    for metric in &telemetry.metrics {
        let MetricPoints::Histogram { bounds, points } = &metric.points else { continue };
        let mut all = 0;
        for point in points {
            assert_eq!(point.buckets.len(), bounds.len() + 1);
            assert_eq!(point.buckets.iter().sum::<u64>(), point.count);
            assert!(point.least <= point.most && point.sum >= point.most);
            all += point.count;
        }
        if metric.name == names::DURATION {
            assert_eq!(all, agents);
        }
    }
}
