//! Executes `docs/rules/memory.md`, and proves that the order in which things arrive changes nothing.

mod common {
    #[expect(dead_code, reason = "other tests need more of it")]
    pub(crate) mod page;
}

use std::collections::BTreeSet;

use archeflow_core::event::{
    CycleBoundary, Entry, Event, NextAction, Past, RunComplete, RunStart, ShadowDetected, Tracked,
};
use archeflow_core::model::{
    Boundaries, Destination, Lesson, LessonKind, Memory, Phase, Policy, Reason, Resolved, RunStatus,
    Severity, ShadowAction,
};
use archeflow_core::rules::convergence::keywords;
use archeflow_core::rules::memory::{
    Archived, LessonUpdate, Lived, Shared, crowded_out, decision_points, deferred, effects, learn,
    lessons_section, mark, regressions, retires, select, tags, tell,
};

use archeflow_core::text::short_line;
use common::page::{Page, Row};

const SAID: &str = "The session token is written to the access log";
const ELSE: &str = "Nobody checks whether cycles overlap";

fn lesson(id: &str, frequency: u32) -> Lesson {
    Lesson {
        id: id.to_owned(),
        ts: String::new(),
        run_id: "first".to_owned(),
        kind: LessonKind::Pattern,
        source: "guardian".to_owned(),
        description: SAID.to_owned(),
        frequency,
        severity: "WARNING".to_owned(),
        domain: "code".to_owned(),
        tags: Vec::new(),
        archetype: None,
        last_seen_run: "first".to_owned(),
        runs_since_last_seen: 0,
        ineffective: 0,
    }
}

fn tracked(id: &str, description: &str, cycles_open: u32) -> Tracked {
    Tracked {
        id: id.to_owned(),
        file: "src/a.rs".to_owned(),
        line: 3,
        category: "security".to_owned(),
        severity: Severity::Warning,
        source: vec!["guardian".to_owned()],
        description: description.to_owned(),
        fix: String::new(),
        routes_to: Destination::Maker,
        cycles_open,
        regression_of: None,
        anchor: String::new(),
        also: Vec::new(),
    }
}

fn lived(findings: Vec<Tracked>) -> Lived {
    let (run_id, ts, domain) = ("now".to_owned(), "2026-04-08T10:00:00Z".to_owned(), "code".to_owned());
    Lived { run_id, ts, domain, findings, ..Lived::default() }
}

/// A text of so many words, beginning with the n-th there is.
fn text(from: u32, words: u32) -> String {
    (from..from + words).map(|n| format!("word{n}")).collect::<Vec<_>>().join(" ")
}

#[test]
fn af_013_af_112_af_156_af_175_af_176_bx_30_cl_18_memory() {
    let mut page = Page::open("memory");
    page.check("Same or different words", |row| {
        let (one, other, shared) = (row.number("one"), row.number("other"), row.number("shared"));
        let (one, other) = (text(0, one), text(one - shared, other));
        let policy = Memory::default();
        let between = Shared::between(&one, &other);
        assert_eq!(between, Shared::between(&other, &one), "which text comes first matters");
        row.expect("same issue", yes(between.reaches(policy.match_percent)));
        let told = Lesson { description: one, ..lesson("m-001", 2) };
        let effect = effects([&told], &[tracked("a", &other, 1)], &policy);
        row.expect("told and came back", yes(effect.iter().any(|effect| !effect.helpful)));
    });
    page.check("Words of a text", |row| {
        row.expect("words", keywords(row.get("text")).into_iter().collect::<Vec<_>>().join(" "));
    });
    page.check("Who is told", |row| {
        let lesson = Lesson {
            kind: row.word("type", LessonKind::parse),
            domain: row.get("domain").to_owned(),
            archetype: row.maybe("for", |name| Some(name.to_owned())),
            ..lesson("m-001", row.number("frequency"))
        };
        let lessons = [lesson];
        let telling = tell(&lessons, "code", "guardian", &Memory::default(), &Boundaries::default());
        row.expect("told", yes(!telling.lessons.is_empty()));
        row.expect("why", telling.lessons.first().map_or("", |(_, why)| why.name()));
    });
    page.check("How many", |row| {
        let lessons: Vec<Lesson> =
            (1..=row.number("candidates")).map(|n| lesson(&format!("m-{n:03}"), 2)).collect();
        let memory = Memory { max_lessons: row.number("largest"), ..Memory::default() };
        let telling = tell(&lessons, "code", "guardian", &memory, &Boundaries::default());
        row.expect("told", telling.lessons.len());
        row.expect("candidates", telling.candidates);
    });
    page.check("In which order", |row| {
        let read = |word: &str| {
            let (id, frequency) = word.split_once(':').unwrap_or_else(|| row.fail("no frequency"));
            lesson(id, frequency.parse().unwrap_or_else(|_| row.fail("no number")))
        };
        let lessons: Vec<Lesson> = row.get("lessons").split_whitespace().map(read).collect();
        let telling = tell(&lessons, "code", "maker", &Memory::default(), &Boundaries::default());
        let ids: Vec<&str> = telling.lessons.iter().map(|(lesson, _)| lesson.id.as_str()).collect();
        row.expect("told", ids.join(" "));
    });
    page.check("What a run teaches", teaches);
    page.check("Fading", |row| {
        let lesson = Lesson {
            kind: row.word("type", LessonKind::parse),
            runs_since_last_seen: row.number("unseen before"),
            ..lesson("m-001", row.number("frequency"))
        };
        let steps = learn(&lived(vec![]), std::slice::from_ref(&lesson), &[], None, 2);
        let after = steps.first().map_or(&lesson, |step| &step.lesson);
        row.expect("frequency after", after.frequency);
        row.expect("unseen after", after.runs_since_last_seen);
        row.expect("archived", archived(steps.first()));
    });
    page.check("What did not help", |row| {
        let lesson =
            Lesson { ineffective: row.number("marked before"), ..lesson("m-001", row.number("frequency")) };
        let mut lived = lived(vec![tracked("a", SAID, 3)]);
        lived.blamed.insert("m-001".to_owned());
        let steps = learn(&lived, &[lesson], &[], None, 2);
        let [step] = steps.as_slice() else { row.fail(&format!("{} steps", steps.len())) };
        row.expect("frequency after", step.lesson.frequency);
        row.expect("marked after", step.lesson.ineffective);
        row.expect("archived", archived(Some(step)));
    });
    page.check("What stays away", |row| {
        let why = row.word("archived because", Archived::parse);
        let retired: Vec<Lesson> = retires(why).then(|| lesson("m-001", 0)).into_iter().collect();
        let steps = learn(&lived(vec![tracked("a", SAID, 1)]), &[], &retired, None, 2);
        row.expect("learned anew", yes(!steps.is_empty()));
    });
    page.check("Regressions", |row| {
        let shared = row.number("shared");
        let same = |column: &str, is: &str| {
            if row.get(column) == "same" { is.to_owned() } else { "other".to_owned() }
        };
        let old = Resolved {
            run_id: "first".to_owned(),
            file: same("file", "src/a.rs"),
            line: 400,
            category: same("category", "security"),
            description: text(10 - shared, 10),
        };
        let open = [tracked("a", &text(0, 10), 1)];
        row.expect("regression", yes(!regressions(&open, &[old], &Memory::default()).is_empty()));
    });
    page.check("Warnings put off", |row| {
        let left: Vec<u32> = row.get("runs left").split_whitespace().filter_map(|n| n.parse().ok()).collect();
        row.expect("put off", deferred(&left));
    });
    page.close();
}

fn teaches(row: &Row) {
    let known: Vec<Lesson> =
        row.maybe("lesson before", |n| n.parse().ok()).map(|n| lesson("m-001", n)).into_iter().collect();
    let mut findings = Vec::new();
    for (n, word) in row.get("findings").split_whitespace().enumerate() {
        let (what, cycles) = word.split_once(':').unwrap_or_else(|| row.fail("no cycles"));
        let description = if what == "same" { SAID } else { ELSE };
        findings.push(tracked(&format!("f{n}"), description, cycles.parse().unwrap_or(0)));
    }
    let steps = learn(&lived(findings.clone()), &known, &[], None, 2);
    findings.reverse();
    assert_eq!(steps, learn(&lived(findings), &known, &[], None, 2), "the order of arrival matters");
    let about = |step: &&LessonUpdate| Shared::between(&step.lesson.description, SAID).reaches(50);
    let Some(step) = steps.iter().find(about) else { row.fail("nothing became of it") };
    row.expect("lesson after", step.lesson.frequency);
    row.expect("what", step.what.name());
    assert_eq!(steps.iter().filter(about).count(), 1, "one run counts once");
}

fn archived(step: Option<&LessonUpdate>) -> &'static str {
    step.and_then(|step| step.archived).map_or("", Archived::name)
}

fn yes(it_is: bool) -> &'static str {
    if it_is { "yes" } else { "no" }
}

#[test]
fn af_175_a_run_that_ends_twice_teaches_once() {
    let run = lived(vec![tracked("a", SAID, 1)]);
    let first = learn(&run, &[lesson("m-001", 1)], &[], None, 2);
    let after: Vec<Lesson> = first.into_iter().map(|step| step.lesson).collect();
    assert_eq!(after.first().map(|lesson| lesson.frequency), Some(2));
    assert_eq!(learn(&run, &after, &[], Some(&BTreeSet::from(["a".to_owned()])), 2), []);
    assert_eq!(
        learn(&run, &after, &[], Some(&BTreeSet::new()), 2),
        [],
        "even when nobody noted what was learned"
    );
    assert_eq!(learn(&run, &after, &[], None, 2), [], "nor that it was");
    let more = lived(vec![tracked("a", SAID, 1), tracked("b", ELSE, 1)]);
    let second = learn(&more, &after, &[], Some(&BTreeSet::from(["a".to_owned()])), 2);
    assert_eq!(second.len(), 1, "{second:?}");
}

#[test]
fn af_177_lessons_per_archetype_are_frozen_and_fit() {
    let lessons: Vec<Lesson> = (1..=14)
        .map(|n| Lesson {
            archetype: (n > 12).then(|| "sage".to_owned()),
            description: format!("lesson number {n}"),
            ..lesson(&format!("m-{n:03}"), if n > 12 { 3 } else { 2 })
        })
        .collect();
    let names = ["maker".to_owned(), "sage".to_owned()];
    let mut past = Past::default();
    select(&lessons, "code", &names, &Policy::default(), &mut past);
    assert_eq!(past.told["maker"].len(), 10);
    assert_eq!(past.told["sage"][..3], ["m-013", "m-014", "m-001"]);
    assert_eq!(past.lessons.len(), 12, "whatever anybody is told, once");
    assert_eq!(past.fitted["maker"], 12);
    let none = BTreeSet::new();
    let text = lessons_section(&past, "sage", &none).unwrap_or_default();
    assert!(text.contains("- m-013 (seen 3 times): lesson number 13\n- m-014"), "{text}");
    assert_eq!(lessons_section(&past, "guardian", &none), None);
}

#[test]
fn af_145_a_lesson_that_did_not_help_is_not_given_again() {
    let told = vec!["m-001".to_owned(), "m-002".to_owned()];
    let mut past = Past { lessons: vec![lesson("m-001", 2), lesson("m-002", 2)], ..Past::default() };
    past.told.insert("maker".to_owned(), told.clone());
    let rest = lessons_section(&past, "maker", &BTreeSet::from(["m-001".to_owned()])).unwrap_or_default();
    assert!(!rest.contains("m-001") && rest.contains("m-002"), "{rest}");
    assert_eq!(lessons_section(&past, "maker", &told.into_iter().collect()), None);
}

#[test]
fn af_156_the_log_says_when_lessons_were_left_out() {
    let rules = |lessons: u32| -> Vec<(&'static str, String)> {
        let lessons: Vec<Lesson> = (1..=lessons).map(|n| lesson(&format!("m-{n:03}"), 2)).collect();
        let (mut past, team) = (Past::default(), ["maker".to_owned()]);
        select(&lessons, "code", &team, &Policy::default(), &mut past);
        let said = decision_points(&past, &team, &Boundaries::default());
        said.into_iter().map(|(rule, _, decision)| (rule, decision)).collect()
    };
    assert_eq!(rules(0), []);
    assert_eq!(rules(1), [("AF-013", "told: maker m-001".to_owned())]);
    assert_eq!(rules(15).len(), 1);
    assert_eq!(rules(16)[1], ("AF-156", "only the 5 most frequent are told".to_owned()));
}

#[test]
fn af_121_the_latest_run_that_resolved_it_is_named() {
    let old = |run_id: &str| Resolved {
        run_id: run_id.to_owned(),
        file: "src/a.rs".to_owned(),
        line: 0,
        category: "security".to_owned(),
        description: SAID.to_owned(),
    };
    let mut open = [tracked("a", SAID, 1), tracked("b", ELSE, 1)];
    mark(&mut open, &[old("one"), old("two")], &Memory::default());
    assert_eq!(open.map(|found| found.regression_of), [Some("two".to_owned()), None]);
}

#[test]
fn af_176_the_weakest_make_room_and_preferences_stay() {
    let preference = Lesson { kind: LessonKind::Preference, ..lesson("m-001", 1) };
    let old = Lesson { runs_since_last_seen: 4, ..lesson("m-004", 1) };
    let lessons = [preference, lesson("m-002", 3), lesson("m-003", 1), old];
    assert!(crowded_out(&lessons, 4).is_empty());
    assert_eq!(crowded_out(&lessons, 3), ["m-004"]);
    assert_eq!(crowded_out(&lessons, 1), ["m-004", "m-003", "m-002"]);
    assert_eq!(crowded_out(&lessons, 0), ["m-004", "m-003", "m-002"]);
}

#[test]
fn r14_what_is_kept_of_others_is_one_harmless_line() {
    assert_eq!(short_line("two\nlines\tand \x1b[31mred \u{202e}back", 99), "two lines and [31mred back");
    assert_eq!(short_line("abcdef", 6), "abcdef");
    assert_eq!(short_line("abcdefg", 6), "abcde…");
    assert_eq!(
        tags("security", "The token, the TOKEN is written to a log file on disk"),
        ["security", "token", "written", "file", "disk"]
    );
}

#[test]
fn af_145_af_146_the_log_says_what_there_is_to_learn() {
    let shadow = |shadow: &str, detail: &str| ShadowDetected {
        archetype: "system".to_owned(),
        shadow: shadow.to_owned(),
        trigger: String::new(),
        measured: 1,
        threshold: 1,
        action: ShadowAction::Note,
        cycle: 1,
        count: 1,
        count_in_cycle: 1,
        sightings: Vec::new(),
        detail: detail.to_owned(),
        looked_at: 0,
        target: detail.split(':').next().unwrap_or_default().to_owned(),
        stop: None,
    };
    let end = |status| RunComplete {
        status,
        reason: Reason::ALL[0],
        detail: String::new(),
        exit_code: 0,
        cycles: 1,
        agents_total: 1,
        fixes_total: 0,
        branch: String::new(),
        merged_oid: None,
        question: None,
        unresolved: Vec::new(),
        reopens_at: None,
        revert_refused: None,
    };
    let boundary = |open: Vec<Tracked>| CycleBoundary {
        extra_cycle: false,
        cycle: 1,
        max_cycles: 2,
        exit_condition: String::new(),
        met: false,
        fixes_applied: 0,
        next_action: NextAction::CycleBack,
        critical: 0,
        warning: 0,
        info: 0,
        convergence: None,
        stop: None,
        open,
        passed_over: Vec::new(),
    };
    let log = |events: Vec<Event>| -> Vec<Entry> {
        let entry =
            |(seq, event)| Entry { seq, at: 0, parent: vec![], phase: Phase::Act, agent: None, event };
        (1..).zip(events).map(entry).collect()
    };
    let lived = Lived::of(
        "r",
        "t",
        &log(vec![
            RunStart::default().into(),
            shadow("cargo_cult", "m-007: told to the maker, and it came back").into(),
            shadow("broken_window", "3 warnings").into(),
            boundary(vec![tracked("a", SAID, 2), tracked("b", ELSE, 1)]).into(),
            boundary(vec![tracked("a", SAID, 1)]).into(),
            end(RunStatus::Stopped).into(),
            end(RunStatus::Merged).into(),
        ]),
    );
    assert_eq!(lived.blamed, BTreeSet::from(["m-007".to_owned()]));
    assert!(lived.broken_window && lived.is_over() && lived.landed());
    let seen: Vec<(&str, u32)> =
        lived.findings.iter().map(|found| (found.id.as_str(), found.cycles_open)).collect();
    assert_eq!(seen, [("a", 2), ("b", 1)], "each once, with the longest time it was open");
    assert_eq!((lived.resolved.len(), lived.warnings), (1, 1));
    let early = Lived::of("r", "t", &log(vec![end(RunStatus::Failed).into()]));
    assert!(!early.is_over(), "where nobody looked, nothing was missing");
    for (status, over) in [
        (RunStatus::Merged, true),
        (RunStatus::AwaitingMerge, true),
        (RunStatus::Stopped, true),
        (RunStatus::WiggumBreak, true),
        (RunStatus::Failed, true),
        (RunStatus::AwaitingAnswer, false),
        (RunStatus::DryRun, false),
    ] {
        assert_eq!(
            Lived::of("r", "t", &log(vec![boundary(vec![]).into(), end(status).into()])).is_over(),
            over,
            "{status:?}"
        );
    }
}
