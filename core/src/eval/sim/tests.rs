//! Rates of many draws, texts as the engine reads them, and the computed rates against simulated runs.

use std::collections::BTreeMap;

use serde_json::json;

use super::review::{judgement, named_flaw};
use super::{
    ExpectedRates, NOTES, SimAnswer, SimCall, SimMaker, SimPopulation, SimReviewer, SimSetup, SimShape,
    WorkState, answer, built_in_populations, expected,
};
use crate::model::{Answer, AnswerBody, Review, Role, Severity, Status, Verdict};
use crate::read;
use crate::rules::evidence;

const BASE: &str = "def total(a):\n    return 0\n";
const RIGHT: &str = "def total(a):\n    return sum(round(x, 2) for x in a)\n";
const WRONG: &str = "def total(a):\n    return round(sum(a), 2)\n";

fn files(text: &str) -> BTreeMap<String, String> {
    [("total.py".to_owned(), text.to_owned())].into()
}

fn setup(seed: u64, maker: SimMaker, reviewer: SimReviewer) -> SimSetup {
    let population = SimPopulation { maker, reviewer, ..SimPopulation::default() };
    SimSetup { v: 1, seed, population, right: files(RIGHT), wrong: files(WRONG) }
}

fn never() -> SimReviewer {
    SimReviewer { recall: 0.0, false_alarms: 0.0, rewords: 0.0, ..SimReviewer::default() }
}

fn call<'a>(archetype: &'a str, cycle: u32, work: &'a BTreeMap<String, String>) -> SimCall<'a> {
    SimCall { archetype, phase: "check", cycle, purpose: "work", attempt: 1, work, prompt: "" }
}

fn made(setup: &SimSetup, cycle: u32, work: &BTreeMap<String, String>, prompt: &str) -> SimAnswer {
    answer(setup, SimCall { prompt, phase: "do", ..call("maker", cycle, work) })
}

/// The work after an answer of the Maker.
fn after(work: &BTreeMap<String, String>, made: &SimAnswer) -> BTreeMap<String, String> {
    let mut work = work.clone();
    made.remove.iter().for_each(|path| drop(work.remove(path)));
    work.extend(made.write.iter().cloned());
    work
}

fn understood(role: Role, archetype: &str, text: &str) -> Answer {
    let answer = read::answer(role, archetype, text.as_bytes());
    assert!(answer.problems.is_empty(), "{:?}\n{text}", answer.problems);
    assert_eq!(answer.status, Status::Done, "{text}");
    answer
}

fn reviewed(setup: &SimSetup, call: SimCall<'_>) -> Review {
    let role = if call.archetype == "guardian" { Role::Gatekeeper } else { Role::Reviewer };
    match understood(role, call.archetype, &answer(setup, call).text).said {
        AnswerBody::Review(review) => review,
        other @ (AnswerBody::Prose | AnswerBody::Proposal(_)) => panic!("{other:?}"),
    }
}

/// Whether a review keeps a change from landing, as the engine counts it.
fn blocks(review: &Review) -> bool {
    let counts = |finding| evidence::weigh(finding).is_none();
    review.verdict == Some(Verdict::Rejected)
        && review.findings.iter().any(|finding| finding.severity > Severity::Info && counts(finding))
}

#[test]
fn ev_90_a_population_is_read_with_defaults_and_faults_name_their_key() {
    let read = |value: serde_json::Value| SimPopulation::read(&value.to_string());
    let population = read(json!({
        "maker": {"wrong": 1},
        "reviewer": {"recall": 0.3, "shadow": 0.5},
        "archetypes": {"guardian": {"recall": 0.9}},
        "tokens": {"maker": {"input": 5, "output": 6, "dollars": 0.5}},
    }))
    .unwrap_or_else(|fault| panic!("{fault}"));
    let maker = SimMaker { wrong: 1.0, ..SimMaker::default() };
    assert_eq!(population.maker, maker);
    assert_eq!(
        population.reviewer("guardian"),
        &SimReviewer { recall: 0.9, shadow: 0.5, ..SimReviewer::default() }
    );
    assert_eq!(
        population.reviewer("skeptic"),
        &SimReviewer { recall: 0.3, shadow: 0.5, ..SimReviewer::default() }
    );
    assert_eq!(population.tokens.maker.input, 5);
    for (value, parts) in [
        (
            json!({"maker": {"wrong": 1.5}, "reviewer": {"recall": -0.1}}),
            ["maker.wrong is 1.5", "reviewer.recall"],
        ),
        (json!({"maker": {"wrongs": 1}}), ["unknown field `wrongs`", "`wrong`"]),
        (json!({"archetypes": {"sage": {"shadow": 2}}}), ["archetypes.sage.shadow", "from 0 to 1"]),
        (json!({"maker": {"wrong": "often"}}), ["not a population", "often"]),
        (json!({"makers": {}}), ["unknown field `makers`", "`maker`"]),
        (json!([]), ["not a population", "maker"]),
    ] {
        let fault = read(value.clone()).err().unwrap_or_default();
        assert!(parts.iter().all(|part| fault.contains(part)), "{value}: {fault}");
    }
    let names: Vec<&str> = built_in_populations().iter().map(|(name, _)| *name).collect();
    assert_eq!(names, ["fair", "careless", "noisy", "blind", "restless", "shadowed"]);
    for (name, population) in built_in_populations() {
        assert_eq!(population.check(), Ok(()), "{name}");
        let again = serde_json::to_string(&population).map_err(|error| error.to_string());
        assert_eq!(again.and_then(|text| SimPopulation::read(&text)), Ok(population), "{name}");
    }
}

#[test]
fn ev_91_a_setup_is_read_as_it_was_written_and_leads_nowhere_else() {
    let setup = SimSetup::new(
        7,
        SimPopulation::default(),
        |path| (path == "a.py").then(|| BASE.to_owned()),
        [("b.py".to_owned(), RIGHT.to_owned())].into(),
        [("a.py".to_owned(), WRONG.to_owned())].into(),
    );
    assert_eq!(setup.right.get("a.py").map(String::as_str), Some(BASE));
    assert_eq!(setup.wrong.get("b.py"), None);
    let text = serde_json::to_string(&setup).unwrap_or_default();
    assert_eq!(SimSetup::read(&text), Ok(setup.clone()));
    for path in ["../a", "/a", "a/../../b", ".git/config", "a/.GIT/x", "", "a//b"] {
        let bad = SimSetup { right: [(path.to_owned(), String::new())].into(), ..setup.clone() };
        let text = serde_json::to_string(&bad).unwrap_or_default();
        let fault = SimSetup::read(&text).err().unwrap_or_default();
        assert!(fault.contains("leads out of the working copy"), "{path}: {fault}");
    }
    for (bad, part) in [
        (SimSetup { v: 2, ..setup.clone() }, "version 1"),
        (SimSetup { right: BTreeMap::new(), ..setup.clone() }, "right is empty"),
        (
            SimSetup {
                population: SimPopulation {
                    maker: SimMaker { breaks: 3.0, ..SimMaker::default() },
                    ..SimPopulation::default()
                },
                ..setup
            },
            "population: maker.breaks is 3",
        ),
    ] {
        let text = serde_json::to_string(&bad).unwrap_or_default();
        let fault = SimSetup::read(&text).err().unwrap_or_default();
        assert!(fault.contains(part), "{fault}");
    }
}

#[test]
fn ev_92_the_maker_writes_one_solution_and_changes_it_when_it_is_sent_back() {
    let always = |wrong, fixes, fixes_unasked, breaks| {
        setup(1, SimMaker { wrong, fixes, fixes_unasked, breaks }, never())
    };
    let base = files(BASE);
    let named = format!(
        "- `c1-1` **CRITICAL** total.py:2: {}",
        super::review::text(
            &setup(1, SimMaker::default(), SimReviewer { recall: 1.0, ..never() }),
            call("guardian", 1, &files(WRONG)),
        )
    );
    assert!(named_flaw(&named).is_some(), "{named}");
    for (setup, cycle, work, prompt, wanted) in [
        (always(0.0, 0.0, 0.0, 1.0), 1, &base, "", WorkState::Right),
        (always(1.0, 1.0, 1.0, 0.0), 1, &base, "", WorkState::Wrong),
        (always(1.0, 1.0, 0.0, 0.0), 2, &files(WRONG), named.as_str(), WorkState::Right),
        (always(1.0, 1.0, 0.0, 0.0), 2, &files(WRONG), "", WorkState::Wrong),
        (always(1.0, 0.0, 1.0, 0.0), 2, &files(WRONG), "", WorkState::Right),
        (always(0.0, 0.0, 0.0, 1.0), 2, &files(RIGHT), "", WorkState::Wrong),
        (always(1.0, 1.0, 1.0, 0.0), 2, &files(RIGHT), "", WorkState::Right),
    ] {
        let made = made(&setup, cycle, work, prompt);
        understood(Role::Maker, "maker", &made.text);
        assert_eq!(setup.state(&after(work, &made)), wanted, "cycle {cycle}: {prompt}");
        assert_eq!(made.write.first().map(|(path, _)| path.as_str()), Some(NOTES));
    }
    // Asked for tests or for another answer, it leaves the solution as it is.
    let setup = always(1.0, 1.0, 1.0, 1.0);
    for purpose in ["tests", "correct"] {
        for text in [RIGHT, WRONG] {
            let work = files(text);
            let made = answer(&setup, SimCall { purpose, attempt: 2, ..call("maker", 2, &work) });
            assert_eq!(after(&work, &made).get("total.py").map(String::as_str), Some(text), "{purpose}");
        }
    }
    // The ids of the feedback are answered.
    assert!(made(&setup, 2, &base, &named).text.contains("- c1-1: Fixed"));
    // Without a wrong solution, the base stays as it is.
    let setup = SimSetup { wrong: BTreeMap::new(), ..always(1.0, 1.0, 0.0, 0.0) };
    let first = made(&setup, 1, &base, "");
    assert_eq!(first.write.len(), 1, "{first:?}");
    let second = made(&setup, 2, &after(&base, &first), &named);
    assert_eq!(setup.state(&after(&base, &second)), WorkState::Right);
}

#[test]
fn ev_93_files_of_one_solution_only_are_removed_with_it() {
    let wrong: BTreeMap<_, _> = [("extra.py".to_owned(), WRONG.to_owned())].into();
    let setup =
        SimSetup { wrong, ..setup(1, SimMaker { fixes_unasked: 1.0, ..SimMaker::default() }, never()) };
    let work: BTreeMap<_, _> = [("extra.py".to_owned(), WRONG.to_owned())].into();
    assert_eq!(setup.state(&work), WorkState::Wrong);
    let made = made(&setup, 2, &work, "");
    assert_eq!(made.remove, ["extra.py"]);
    assert_eq!(setup.state(&after(&work, &made)), WorkState::Right);
}

#[test]
fn ev_94_plan_and_research_are_read_without_problems_and_list_all_files() {
    let setup = setup(1, SimMaker::default(), never());
    let work = files(BASE);
    for (archetype, phase) in [("creator", "plan"), ("planner", "plan")] {
        let text = answer(&setup, SimCall { phase, ..call(archetype, 1, &work) }).text;
        let AnswerBody::Proposal(proposal) = understood(Role::Creator, archetype, &text).said else {
            panic!("{text}")
        };
        assert_eq!(proposal.files, ["total.py", NOTES]);
        assert!(proposal.has_test_strategy && proposal.missing.is_empty(), "{proposal:?}");
    }
    let text = answer(&setup, SimCall { phase: "plan", ..call("explorer", 1, &work) }).text;
    let explored = understood(Role::Explorer, "explorer", &text);
    assert!(explored.traits.recommendation, "{text}");
    // An archetype that is not built in acts by its phase.
    assert!(!answer(&setup, SimCall { phase: "do", ..call("builder", 1, &work) }).write.is_empty());
    assert!(answer(&setup, call("reader", 1, &work)).text.starts_with("VERDICT: APPROVED\n"));
    // The code of the prompt ends the deciding lines.
    let prompt = "End this line with the code ab12, as in `STATUS: DONE ab12`";
    let text = answer(&setup, SimCall { prompt, ..call("sage", 1, &work) }).text;
    assert_eq!(text, "VERDICT: APPROVED ab12\nFINDINGS: 0\n\nSTATUS: DONE ab12\n");
}

#[test]
fn ev_95_findings_cite_the_flaw_and_only_those_with_evidence_count() {
    let of = |reviewer| setup(3, SimMaker::default(), reviewer);
    let (right, wrong) = (files(RIGHT), files(WRONG));
    for archetype in ["guardian", "skeptic", "sage", "trickster", "reader"] {
        let sees = of(SimReviewer { recall: 1.0, ..never() });
        let review = reviewed(&sees, call(archetype, 1, &wrong));
        let [finding] = review.findings.as_slice() else { panic!("{review:?}") };
        assert_eq!((finding.location.as_str(), finding.severity), ("total.py:2", Severity::Critical));
        assert!(finding.evidence.contains("return round(sum(a), 2)"), "{finding:?}");
        assert!(blocks(&review), "{review:?}");
        assert!(reviewed(&sees, call(archetype, 1, &right)).findings.is_empty());

        for (unfounded, counts) in [(0.0, true), (1.0, false)] {
            let noisy = of(SimReviewer { false_alarms: 1.0, unfounded, ..never() });
            let review = reviewed(&noisy, call(archetype, 1, &right));
            assert_eq!((review.verdict, blocks(&review)), (Some(Verdict::Rejected), counts), "{review:?}");
            assert_eq!(named_flaw(&format!("{review:?}")), None);
            // Asked for evidence, it keeps a claim without any as advice.
            let asked = SimCall { purpose: "correct", attempt: 2, ..call(archetype, 1, &right) };
            assert_eq!(blocks(&reviewed(&noisy, asked)), counts);
            assert_eq!(reviewed(&noisy, asked).verdict == Some(Verdict::Approved), !counts);
        }
        let grave = of(SimReviewer { false_alarms: 1.0, alarm_critical: 1.0, ..never() });
        let review = reviewed(&grave, call(archetype, 1, &right));
        assert!(review.findings.iter().all(|finding| finding.severity == Severity::Critical));
    }
}

#[test]
fn ev_96_the_same_input_gives_the_same_answer_and_rewording_changes_the_words_only() {
    let sees = |rewords| setup(11, SimMaker::default(), SimReviewer { recall: 1.0, rewords, ..never() });
    let work = files(WRONG);
    let text = |setup: &SimSetup, cycle| answer(setup, call("guardian", cycle, &work)).text;
    assert_eq!(text(&sees(0.0), 1), text(&sees(0.0), 1));
    assert_eq!(text(&sees(0.0), 1), text(&sees(0.0), 2));
    let place = |text: &str| text.contains("| total.py:2 | CRITICAL | testing |");
    let (first, second) = (text(&sees(1.0), 1), text(&sees(1.0), 2));
    assert_ne!(first, second);
    assert!(place(&first) && place(&second) && named_flaw(&second).is_some(), "{second}");
}

#[test]
fn ev_97_a_shadow_has_the_form_that_its_detector_looks_for() {
    let dark = setup(5, SimMaker::default(), SimReviewer { shadow: 1.0, ..never() });
    let work = files(RIGHT);
    let answered = |archetype| {
        let role = if archetype == "guardian" { Role::Gatekeeper } else { Role::Reviewer };
        understood(role, archetype, &answer(&dark, call(archetype, 1, &work)).text)
    };
    let count = |answer: &Answer| match &answer.said {
        AnswerBody::Review(review) => review.findings.len(),
        AnswerBody::Prose | AnswerBody::Proposal(_) => 0,
    };
    let (guardian, skeptic) = (answered("guardian"), answered("skeptic"));
    assert_eq!((count(&guardian), guardian.traits.grave_remedied), (3, 0));
    assert_eq!((count(&skeptic), skeptic.traits.remedied), (8, 0));
    assert_eq!(answered("trickster").traits.without_steps, 5);
    assert_eq!(answered("sage").traits.considers, 3);
    // They count where shadows are not looked for.
    for archetype in ["guardian", "skeptic", "sage", "trickster"] {
        assert!(blocks(&reviewed(&dark, call(archetype, 1, &work))), "{archetype}");
    }
}

/// How a run ends whose agents are simulated: landed, and right. `judge` says whether reviewer and cycle block, and names the flaw.
fn run(
    setup: &SimSetup,
    shape: SimShape,
    judge: impl Fn(&SimSetup, SimCall<'_>) -> (bool, bool, bool),
) -> (bool, bool) {
    const NAMES: [&str; 5] = ["guardian", "skeptic", "sage", "trickster", "reader"];
    let mut work = files(BASE);
    let mut feedback = "";
    for cycle in 1..=shape.cycles {
        work = after(&work, &made(setup, cycle, &work, feedback));
        let first_alone = shape.first_alone_from.is_some_and(|from| cycle >= from);
        let (mut blocked, mut named) = (false, false);
        for (at, archetype) in NAMES.into_iter().take(shape.reviewers as usize).enumerate() {
            let (silent, blocks, names) = judge(setup, call(archetype, cycle, &work));
            blocked |= blocks;
            named |= names;
            if at == 0 && first_alone && silent {
                break;
            }
        }
        if !blocked {
            return (true, setup.state(&work) == WorkState::Right);
        }
        feedback = if named {
            "The visible tests pass and yet the task's own inputs lead to a wrong result"
        } else {
            ""
        };
    }
    (false, setup.state(&work) == WorkState::Right)
}

fn measured(
    runs: u64,
    population: &SimPopulation,
    shape: SimShape,
    judge: impl Fn(&SimSetup, SimCall<'_>) -> (bool, bool, bool),
) -> ExpectedRates {
    let mut ends = [0_u32; 4];
    for seed in 0..runs {
        let setup = SimSetup { population: population.clone(), ..setup(seed, SimMaker::default(), never()) };
        let at = match run(&setup, shape, &judge) {
            (true, true) => 0,
            (true, false) => 1,
            (false, false) => 2,
            (false, true) => 3,
        };
        ends[at] += 1;
    }
    let [solved, wrongly_landed, rightly_held_back, wrongly_held_back] =
        ends.map(|count| f64::from(count) / runs as f64);
    ExpectedRates { solved, wrongly_landed, rightly_held_back, wrongly_held_back }
}

fn each(rates: ExpectedRates) -> [f64; 4] {
    let ExpectedRates { solved, wrongly_landed, rightly_held_back, wrongly_held_back } = rates;
    [solved, wrongly_landed, rightly_held_back, wrongly_held_back]
}

/// Within five standard errors: one in two million.
fn agree(what: &str, runs: u64, found: ExpectedRates, computed: ExpectedRates) {
    for (found, computed) in each(found).into_iter().zip(each(computed)) {
        let error = (computed * (1.0 - computed) / runs as f64).sqrt();
        assert!((found - computed).abs() <= 5.0 * error + 1e-9, "{what}: {found}, computed {computed}");
    }
}

fn by_draws(evidence: bool) -> impl Fn(&SimSetup, SimCall<'_>) -> (bool, bool, bool) {
    move |setup, call| {
        let judgement = judgement(setup, call);
        let counts = judgement.false_alarm && !(judgement.unfounded && evidence);
        (
            !judgement.finds_flaw && !judgement.false_alarm,
            judgement.finds_flaw || counts,
            judgement.finds_flaw,
        )
    }
}

#[test]
fn ev_98_computed_rates_are_those_of_many_simulated_runs() {
    const RUNS: u64 = 100_000;
    let custom = SimPopulation {
        maker: SimMaker { wrong: 0.5, fixes: 0.6, fixes_unasked: 0.3, breaks: 0.2 },
        reviewer: SimReviewer { recall: 0.4, false_alarms: 0.5, unfounded: 0.6, ..never() },
        ..SimPopulation::default()
    };
    let gated = |reviewers, cycles, from| SimShape {
        first_alone_from: Some(from),
        ..SimShape::new(reviewers, cycles)
    };
    for (shape, evidence) in [
        (SimShape::new(0, 1), true),
        (SimShape::new(1, 2), true),
        (SimShape::new(3, 3), true),
        (gated(3, 2, 1), true),
        (gated(4, 3, 2), true),
        (SimShape { evidence: false, ..SimShape::new(2, 3) }, false),
    ] {
        let computed = expected(&custom, shape);
        let sum: f64 = each(computed).iter().sum();
        assert!((sum - 1.0).abs() < 1e-12, "{computed:?}");
        agree(&format!("{shape:?}"), RUNS, measured(RUNS, &custom, shape, by_draws(evidence)), computed);
    }
}

#[test]
fn ev_99_texts_as_the_engine_reads_them_come_to_the_computed_rates() {
    const RUNS: u64 = 2_000;
    let by_text = |setup: &SimSetup, call: SimCall<'_>| {
        let review = reviewed(setup, call);
        let names = review.findings.iter().any(|finding| named_flaw(&finding.description).is_some());
        (review.findings.is_empty(), blocks(&review), names)
    };
    for name in ["fair", "careless", "noisy", "blind", "restless"] {
        let population = SimPopulation::named(name).unwrap_or_default();
        let shape = SimShape::new(2, 2);
        agree(name, RUNS, measured(RUNS, &population, shape, by_text), expected(&population, shape));
    }
}

#[test]
fn ev_100_rates_that_are_worked_out_by_hand() {
    let population = SimPopulation {
        maker: SimMaker { wrong: 0.5, fixes: 1.0, fixes_unasked: 0.0, breaks: 0.0 },
        reviewer: SimReviewer { recall: 0.5, ..never() },
        ..SimPopulation::default()
    };
    for (reviewers, cycles, solved, wrongly_landed, rightly_held_back) in [
        (0, 1, 0.5, 0.5, 0.0),
        (1, 1, 0.5, 0.25, 0.25),
        (1, 2, 0.75, 0.25, 0.0),
        (2, 1, 0.5, 0.125, 0.375),
        (2, 2, 0.875, 0.125, 0.0),
    ] {
        let wanted = ExpectedRates { solved, wrongly_landed, rightly_held_back, wrongly_held_back: 0.0 };
        let found = expected(&population, SimShape::new(reviewers, cycles));
        for (found, wanted) in each(found).into_iter().zip(each(wanted)) {
            assert!(
                (found - wanted).abs() < 1e-12,
                "{reviewers} reviewers, {cycles} cycles: {found}, not {wanted}"
            );
        }
    }
}
