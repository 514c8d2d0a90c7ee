//! Every run of `docs/rules/objections.md` keeps the promises of the simulation, and a log that a bug would have written does
//! not.

#![expect(
    clippy::unwrap_used,
    clippy::wildcard_enum_match_arm,
    reason = "a test that says why it fails, and asks for one kind of line"
)]

mod common {
    #[expect(dead_code, reason = "other pages use more of the reader than this one")]
    pub(crate) mod page;
    #[expect(dead_code, reason = "other pages ask the world for more than this one")]
    pub(crate) mod world;
}
mod sim {
    pub(crate) mod facts;
    pub(crate) mod promises;
}

use archeflow_core::event::{
    AgentSkipped, CycleBoundary, Decision, DecisionPoint, Entry, Event, EvidenceDowngrade, FixApplied,
    NextAction, Order, QuestionKind, Report, RunComplete, RunReentered, Unfounded,
};
use archeflow_core::model::{Phase, Severity};
use archeflow_core::projections::commit_message;
use archeflow_core::projections::story::Story;

use common::page::Page;
use common::world::{Played, World};
use sim::promises::audit;

#[test]
fn objections_every_row_keeps_the_promises() {
    let mut page = Page::open("objections");
    for table in ["Ends", "Who looks again"] {
        page.check(table, |row| {
            let played = World::script(row.get("run"), row.get("reviews"), row.get("world")).play();
            if let Err(why) = audit(&played.log) {
                row.fail(&why);
            }
            let told = commit_message::landing(&played.run, "run");
            let last = played.log.iter().filter_map(boundary_in).next_back().map(|last| last.open.len());
            let fixed = played.count("fix.applied");
            let open = last.unwrap_or_default();
            let finding = if fixed == 1 { "finding" } else { "findings" };
            let numbers = format!("{fixed} {finding} fixed, {open} open");
            if !told.contains(&numbers) {
                row.fail(&format!("the commit does not say '{numbers}': {told}"));
            }
            let story = Story::of("run", &played.log);
            let end = story.cycles.iter().rev().find_map(|cycle| cycle.end.as_ref());
            let told = end.map_or(0, |end| end.critical + end.warning);
            if usize::try_from(told) != Ok(open) {
                row.fail(&format!("D9: the report counts {told} open findings, and {open} are"));
            }
        });
    }
    page.close();
}

/// Those tables of `docs/rules/stops.md` whose settings the simulation has, too.
#[test]
fn objections_the_rows_about_stops_keep_the_promises() {
    let mut page = Page::open("stops");
    for table in ["Approval", "Landing", "Agents that fail", "Pipeline", "Accounts"] {
        for row in &page.table(table).rows {
            let played = World::script(row.get("run"), row.get("reviews"), row.get("world")).play();
            audit(&played.log).unwrap_or_else(|why| row.fail(&why));
        }
    }
}

/// A run that is re-entered amid Check has not weighed its reviews: what shows nothing is not held against the next version.
#[test]
fn objections_without_evidence_are_not_inherited_by_a_run_that_is_reentered() {
    let heard = |log: &[Entry]| {
        let of_guardian = |event: &Event| match event {
            Event::Report(Report::AgentComplete(complete)) => complete.archetype == "guardian",
            _ => false,
        };
        log.iter().any(|entry| of_guardian(&entry.event))
    };
    for phase in [Phase::Plan, Phase::Do, Phase::Act] {
        for (reviews, inherited) in [("A!?", 0), ("A!", 1), ("A? B", 1)] {
            let Played { mut run, log } = World::script("standard", reviews, "").play_until(heard);
            assert!(log.iter().all(|entry| boundary_in(entry).is_none()), "{reviews}: still in Check");
            let (proposal, making, change, reviews_brought) = (None, None, None, Vec::new());
            run.hear(run.last, RunReentered { phase, proposal, making, change, reviews: reviews_brought });
            let findings = run.cycle().map(|cycle| cycle.inherited.findings.len());
            assert_eq!(findings, Some(inherited), "{reviews}, re-entered at {phase:?}");
        }
    }
}

/// Plays, plants a bug in what was written, and expects the promise that it breaks.
fn planted(run: &str, reviews: &str, world: &str, bug: impl Fn(&mut Vec<Entry>), promise: &str) {
    let Played { mut log, .. } = World::script(run, reviews, world).play();
    assert_eq!(audit(&log), Ok(()), "{run}: {reviews}, before anything was planted");
    let before = log.clone();
    bug(&mut log);
    assert!(before != log, "{run}: {reviews}: nothing was planted");
    let found = audit(&log).expect_err(promise);
    assert!(found.starts_with(promise), "{run}: {reviews}: expected '{promise}', found '{found}'");
}

fn boundary_in(entry: &Entry) -> Option<&CycleBoundary> {
    match &entry.event {
        Event::Decision(Decision::CycleBoundary(boundary)) => Some(boundary),
        _ => None,
    }
}

fn last_boundary(log: &mut [Entry]) -> &mut CycleBoundary {
    let boundary = log.iter_mut().rev().find_map(|entry| match &mut entry.event {
        Event::Decision(Decision::CycleBoundary(boundary)) => Some(&mut **boundary),
        _ => None,
    });
    boundary.unwrap()
}

fn end(log: &mut [Entry]) -> &mut RunComplete {
    let end = log.iter_mut().rev().find_map(|entry| match &mut entry.event {
        Event::Decision(Decision::RunComplete(end)) => Some(end),
        _ => None,
    });
    end.unwrap()
}

fn downgrade(log: &mut [Entry], reason: Unfounded) -> &mut EvidenceDowngrade {
    let downgrade = log.iter_mut().find_map(|entry| match &mut entry.event {
        Event::Decision(Decision::EvidenceDowngrade(down)) if down.reason == reason => Some(down),
        _ => None,
    });
    downgrade.unwrap()
}

/// A choice that changes nothing stands where these lines were.
fn blot_out(log: &mut [Entry], lines: impl Fn(&Event) -> bool) {
    let nothing = log.iter().find_map(|entry| match &entry.event {
        Event::Decision(Decision::DecisionPoint(point)) => {
            Some(DecisionPoint { rule: "AF-109".to_owned(), ..(**point).clone() })
        }
        _ => None,
    });
    let nothing = nothing.unwrap();
    for entry in log.iter_mut().filter(|entry| lines(&entry.event)) {
        if entry.event.answers().is_some() {
            entry.parent = vec![1];
        }
        entry.event = nothing.clone().into();
    }
}

fn asks_a_person(event: &Event) -> bool {
    match event {
        Event::Order(Order::QuestionAsked(question)) => question.kind == QuestionKind::Rejection,
        Event::Report(Report::QuestionAnswered(_)) => true,
        _ => false,
    }
}

fn asks_the_author(event: &Event) -> bool {
    matches!(event, Event::Decision(Decision::DecisionPoint(point)) if point.rule == "J-04")
}

/// The last boundary and the end forget what is open, and the change lands.
fn lands(log: &mut [Entry]) {
    let boundary = last_boundary(log);
    (boundary.next_action, boundary.met, boundary.stop) = (NextAction::Merge, true, None);
}

fn forgets(log: &mut [Entry]) {
    last_boundary(log).open.clear();
    end(log).unresolved.clear();
}

fn forgets_and_counts_nothing(log: &mut [Entry]) {
    forgets(log);
    let boundary = last_boundary(log);
    (boundary.critical, boundary.warning) = (0, 0);
}

#[test]
fn objections_a_finding_whose_author_did_not_look_again_does_not_go_away() {
    // Its author failed, was replaced, or answers again: fewer are counted, or as many and none is listed.
    let rows = [
        ("pipeline", "skeptic:A! B / clean", "skeptic: fine exit"),
        ("standard", "sage:A! B / clean", "sage: fine exit"),
        ("standard", "sage:A B / clean", "sage: fine exit"),
        ("fast", "A!=", "guardian: sick sick, successor approves"),
        ("fast", "A!\"", "guardian: sick sick, successor approves, asked: withdraws"),
        ("thorough max 1", "A!=", "guardian: sick sick, successor approves"),
    ];
    for (run, reviews, world) in rows {
        let counted = |log: &mut Vec<Entry>| {
            forgets_and_counts_nothing(log);
            lands(log);
        };
        planted(run, reviews, world, counted, "what counts is counted");
        planted(run, reviews, world, |log| forgets(log), "what is open is listed with its author");
        let milder = |log: &mut Vec<Entry>| {
            last_boundary(log).open.iter_mut().for_each(|open| open.severity = Severity::Info);
        };
        planted(run, reviews, world, milder, "what is open is listed with its author");
        let of_another = |log: &mut Vec<Entry>| {
            last_boundary(log).open.iter_mut().for_each(|open| open.source = vec!["trickster".to_owned()]);
        };
        planted(run, reviews, world, of_another, "what is open is listed with its author");
    }
}

#[test]
fn objections_their_author_is_not_skipped() {
    for (run, reviews) in [("standard", "sage:A B / clean"), ("pipeline", "skeptic:A B! / clean")] {
        let author = if run == "standard" { "sage" } else { "skeptic" };
        let skips = |log: &mut Vec<Entry>| {
            let sent = log.iter_mut().rev().find(|entry| {
                matches!(&entry.event, Event::Order(Order::AgentStart(start)) if start.archetype == author)
            });
            let reason = "the Guardian has no findings".to_owned();
            let skipped = AgentSkipped { archetype: author.to_owned(), reason, failed: false };
            sent.unwrap().event = skipped.into();
        };
        planted(run, reviews, "", skips, "the author of an open objection looks again");
    }
}

#[test]
fn objections_nothing_lands_over_a_rejection_that_nothing_answers() {
    // No person was asked, whatever else the exit condition lets pass.
    let bare = [
        ("pipeline", "A!?", "attended"),
        ("pipeline", "sage:rejects", "attended"),
        ("fast", "A?", "attended"),
        ("fast", "A?", "attended, exit: no_critical"),
        ("fast", "A?", "attended, exit: convergence"),
    ];
    for (run, reviews, world) in bare {
        let promise = "no rejection without evidence is passed over but by a person (J-04)";
        planted(run, reviews, world, |log| blot_out(log, asks_a_person), promise);
        let stops = |log: &mut Vec<Entry>| blot_out(log, asks_the_author);
        planted(run, reviews, world, stops, "a reviewer is asked for evidence before a person is");
    }
    // It has a WARNING that counts, and neither the strategy nor the team passes over it.
    planted("fast", "A", "", |log| lands(log), "no founded rejection is passed over");
    planted("standard max 1", "sage:A B", "", |log| lands(log), "no founded rejection is passed over");
    // Where they do, it is named.
    for (run, world) in [("pipeline", ""), ("fast", "exit: no_critical")] {
        let unnamed = |log: &mut Vec<Entry>| last_boundary(log).passed_over.clear();
        planted(run, "A", world, unnamed, "a rejection that does not keep a change from landing is named");
    }
    // So is one that was set aside for a shadow, with what it found.
    for (run, reviews) in [("fast", "A"), ("fast", "A?"), ("thorough max 1", "sage:A")] {
        let name = if run == "fast" { "guardian" } else { "sage" };
        let world = format!("{name}: sick sick, successor approves");
        let unnamed = |log: &mut Vec<Entry>| last_boundary(log).passed_over.clear();
        planted(run, reviews, &world, unnamed, "a rejection that was set aside for a shadow is named");
        if reviews != "A?" {
            let promise = "what is open is listed with its author";
            planted(run, reviews, &world, |log| forgets(log), promise);
            let counted = |log: &mut Vec<Entry>| forgets_and_counts_nothing(log);
            planted(run, reviews, &world, counted, "what counts is counted");
        }
    }
    // And no CRITICAL lands.
    for (run, world) in [("pipeline", ""), ("fast", ""), ("fast", "exit: no_critical")] {
        planted(run, "A! / A!", world, |log| lands(log), "nothing CRITICAL lands");
    }
}

#[test]
fn objections_no_critical_loses_effect_before_its_author_was_asked() {
    let weak = "what has evidence counts";
    planted("pipeline", "A!~", "attended", |log| blot_out(log, asks_a_person), weak);
    planted("fast", "A^", "attended", |log| blot_out(log, asks_the_author), weak);
    let promise = "a finding loses no more than its reason takes";
    let more = |log: &mut Vec<Entry>| downgrade(log, Unfounded::LineUnrelated).to = Severity::Info;
    planted("pipeline", "A!~", "attended", more, promise);
    // Counted as less, without a line that says so.
    for (run, reviews) in [("fast", "A!~"), ("fast", "A!~ B"), ("fast", "A!")] {
        let less = |log: &mut Vec<Entry>| {
            let boundary = last_boundary(log);
            (boundary.critical, boundary.warning) = (0, boundary.warning + boundary.critical);
            boundary.open.iter_mut().for_each(|open| open.severity = Severity::Warning);
        };
        planted(run, reviews, "", less, "what counts is counted");
    }
}

#[test]
fn objections_fixes_are_the_same_number_everywhere() {
    for (run, reviews) in [("pipeline", "skeptic:A! B / clean"), ("standard", "sage:A! B / clean")] {
        let more = |log: &mut Vec<Entry>| last_boundary(log).fixes_applied += 1;
        planted(run, reviews, "", more, "a boundary counts the fixes of its cycle");
        planted(run, reviews, "", |log| end(log).fixes_total = 0, "fixes are counted");
        let fix = |event: &Event| matches!(event, Event::Decision(Decision::FixApplied(_)));
        planted(run, reviews, "", |log| blot_out(log, fix), "a boundary counts the fixes of its cycle");
        planted(run, reviews, "", |log| unfixes(log), "fixes are counted");
    }
    // The author failed, or nobody had raised it.
    for (source, finding, promise) in [
        ("skeptic", "src/a.rs:reliability", "what is repaired was looked at by its authors"),
        ("guardian", "src/x.rs:reliability", "what is repaired was open"),
    ] {
        let claims = |log: &mut Vec<Entry>| {
            let at = log.iter().rposition(|entry| boundary_in(entry).is_some()).unwrap() - 1;
            let file = finding.split(':').next().unwrap().to_owned();
            let fix = FixApplied { source: source.to_owned(), finding: finding.to_owned(), file, line: 10 };
            log[at].event = fix.into();
        };
        planted("pipeline", "skeptic:A! B / clean", "skeptic: fine exit", claims, promise);
    }
}

/// Fixes that only the boundary and the end know of.
fn unfixes(log: &mut [Entry]) {
    blot_out(log, |event| matches!(event, Event::Decision(Decision::FixApplied(_))));
    last_boundary(log).fixes_applied = 0;
}

#[test]
fn objections_a_merged_run_lists_what_it_leaves_open() {
    let rows = [
        ("fast", "A approved", ""),
        ("fast", "A", "exit: no_critical"),
        ("fast", "A!", "exit: always"),
        ("pipeline", "A", ""),
        ("pipeline", "A!~", "attended"),
        ("standard", "sage:A +credential approved / clean", "sage: fine exit"),
    ];
    for (run, reviews, world) in rows {
        planted(run, reviews, world, |log| forgets(log), "what is open is listed with its author");
        planted(run, reviews, world, |log| end(log).unresolved.clear(), "the end lists what is open");
        let other = |log: &mut Vec<Entry>| end(log).unresolved[0].severity = Severity::Info;
        planted(run, reviews, world, other, "the end lists what is open");
    }
    // Two findings of one reviewer are not told as one.
    let joined = |log: &mut Vec<Entry>| {
        let open = &mut last_boundary(log).open;
        let second = open.pop().unwrap();
        open[0].also.push(archeflow_core::model::Remark {
            source: second.source[0].clone(),
            description: second.description,
        });
        end(log).unresolved.truncate(1);
    };
    planted("fast", "A B approved", "", joined, "no finding stands for two of its author");
}
