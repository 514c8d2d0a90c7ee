//! Documents of a made-up evaluation with 24 tasks, 8 arms and 3 repeats, of hardly any trials, and of hostile text.

#![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

use std::collections::{BTreeMap, BTreeSet};

use archeflow_core::eval::exact::{PairedTest, TestResult};
use archeflow_core::eval::paired::UndecidedReason;
use archeflow_core::eval::report::ReportOptions;
use archeflow_core::eval::trial::ReviewerCounts;
use archeflow_core::eval::{
    ArmConclusion, EvalDifference, EvalMeasure, EvalPlan, EvalReport, EvalTrial, PairedComparison,
    PlannedArm, PlannedTask, SamplingOptions, SeededRandom, TrialEnd, TrialKey, TrialSet,
};
use archeflow_core::event::Tokens;
use archeflow_core::model::Money;

use super::{Document, difference, report, words};

/// Name, chance to be right, chance to notice a wrong change, and cost in dollars.
const ARMS: [(&str, f64, f64, f64); 8] = [
    ("single", 0.45, 0.0, 0.11),
    ("self-review", 0.5, 0.2, 0.17),
    ("reviewers-only", 0.55, 0.5, 0.32),
    ("pdca-generic", 0.6, 0.45, 0.41),
    ("no-shadows", 0.7, 0.6, 0.47),
    ("no-evidence", 0.66, 0.4, 0.44),
    ("no-convergence", 0.68, 0.6, 0.62),
    ("full", 0.76, 0.7, 0.51),
];

fn example_plan(tasks: usize, arms: usize, repeats: u32) -> EvalPlan {
    let task = |number: usize| PlannedTask {
        name: format!("task-{number:02}"),
        language: Some(["python", "rust", "go", "javascript"][number % 4].to_owned()),
        traps: if number.is_multiple_of(3) {
            BTreeSet::from(["tempting-change".to_owned()])
        } else {
            BTreeSet::new()
        },
        dollars: None,
        seconds: 600,
    };
    let arm = |(name, ..): &(&str, f64, f64, f64)| PlannedArm {
        name: (*name).to_owned(),
        about: format!("The arm {name}."),
        digest: format!("{name}-1"),
    };
    EvalPlan {
        v: EvalPlan::FORMAT,
        suite: "small".to_owned(),
        about: "Tasks of a test".to_owned(),
        suite_digest: "0123456789abcdef".to_owned(),
        tasks: (0..tasks).map(task).collect(),
        arms: ARMS.iter().take(arms).map(arm).collect(),
        repeats,
        agent: "some-model".to_owned(),
        simulated: false,
        population: String::new(),
        rules_only: false,
        seed: 1,
        budget: Some(Money::DOLLAR),
        version: "1.2.3".to_owned(),
        started: 1_775_606_400_000,
    }
}

/// Every trial of the plan. Each task has a difficulty that all arms share.
fn example_trials(plan: &EvalPlan, seed: u64) -> TrialSet {
    let mut random = SeededRandom::new(seed);
    let difficulty: BTreeMap<String, f64> =
        plan.tasks.iter().map(|task| (task.name.clone(), 0.6 * (random.unit() - 0.5))).collect();
    let mut one = |key: TrialKey| {
        let (_, right, notices, dollars) = ARMS.into_iter().find(|(name, ..)| *name == key.arm).unwrap();
        let passes = random.unit() < right - difficulty[&key.task];
        let held = if passes { random.unit() < 0.06 } else { random.unit() < notices };
        let end = match (random.unit() < 0.03, held) {
            (true, _) => TrialEnd::Failed,
            (false, true) => TrialEnd::HeldBack,
            (false, false) => TrialEnd::Landed,
        };
        let mut trial = EvalTrial::new(key, end, Some(passes));
        trial.traps_set = plan.tasks.iter().find(|task| task.name == trial.key.task).unwrap().traps.clone();
        if !passes && random.unit() < 0.6 {
            trial.traps_fallen = trial.traps_set.clone();
        }
        trial.cycles = 1 + random.below(3) as u32;
        let input = 20_000 + random.below(90_000) as u64;
        trial.tokens = Tokens { input, output: input / 9, cache_read: input / 2, cache_write: 0 };
        trial.money = Money((dollars * (0.5 + random.unit()) * 1e6) as u64);
        trial.seconds = Some(60 + random.below(400) as u64);
        if notices > 0.3 {
            for name in ["guardian", "sage"] {
                let counts = ReviewerCounts {
                    confirmed: random.below(3) as u32,
                    refuted: random.below(2) as u32,
                    missed: random.below(2) as u32,
                };
                trial.reviewers.insert(name.to_owned(), counts);
            }
        }
        trial
    };
    plan.trials().map(&mut one).collect()
}

fn quick() -> SamplingOptions {
    SamplingOptions { resamples: 300, ..SamplingOptions::default() }
}

fn drawn(plan: &EvalPlan, trials: &TrialSet) -> Document {
    let baseline = plan.arms[0].name.as_str();
    let options = ReportOptions { baseline, measure: EvalMeasure::Solved, sampling: quick() };
    report::document(&EvalReport::of(plan, trials, options), "2026-04-08T00:00:00Z", &[])
}

/// Every picture has a name and a description, no id occurs twice, and nothing is loaded from elsewhere.
fn assert_sound(page: &str) {
    for (open, close) in [("<svg", "</svg>"), ("<table", "</table>"), ("<section", "</section>")] {
        assert_eq!(page.matches(open).count(), page.matches(close).count(), "{open}");
    }
    assert_eq!(page.matches("role=\"img\"").count(), page.matches("<desc ").count());
    assert_eq!(page.matches("<table").count(), page.matches("<caption>").count());
    // Of two attributes of one name a browser takes the first.
    for tag in page.split('<').filter_map(|part| part.split_once('>')).map(|(tag, _)| tag) {
        assert!(tag.matches(" class=").count() <= 1, "{tag}");
    }
    let ids: Vec<&str> =
        page.split(" id=\"").skip(1).filter_map(|rest| rest.split_once('"')).map(|(id, _)| id).collect();
    assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), ids.len(), "{ids:?}");
    for named in page.split("aria-labelledby=\"").skip(1).filter_map(|rest| rest.split_once('"')) {
        assert!(named.0.split(' ').all(|id| ids.contains(&id)), "{}", named.0);
    }
    for outside in [
        "<script", "http:", "https:", "url(", "@import", " src=", "<link", " style=", "NaN", "\"inf", ">inf",
        "$inf",
    ] {
        assert!(!page.contains(outside), "the page contains {outside}");
    }
}

#[test]
fn ev_117_a_report_shows_every_part_in_markdown_and_html() {
    let plan = example_plan(24, 8, 3);
    let mut trials: TrialSet = TrialSet::default();
    for trial in example_trials(&plan, 5).iter() {
        // One task has fewer trials in one arm.
        if (trial.key.task.as_str(), trial.key.arm.as_str()) != ("task-07", "full") {
            trials.add(trial.clone());
        }
    }
    let document = drawn(&plan, &trials);
    let text = document.markdown();
    for part in [
        "# Evaluation of some-model on small",
        "Not finished: 573 of 576 trials",
        "## What was evaluated",
        "## Outcomes",
        "## Compared with single",
        "with these 23 tasks a difference below",
        "would probably not be seen",
        "## Cost and effort",
        "## Reviewers",
        "| guardian |",
        "## Tasks",
        "## Traps",
        "## Incomplete tasks",
        "| task-07 | full | 0 of 3 | 0 |",
        "## Other measures",
        "wrongly held back",
    ] {
        assert!(text.contains(part), "{part} is missing in\n{text}");
    }
    assert!(!text.contains("imulated agents"), "{text}");
    for line in text.lines().filter(|line| line.starts_with('|')) {
        assert!(line.ends_with('|'), "{line}");
    }
    let page = document.html();
    assert_sound(&page);
    assert_eq!(page.matches("role=\"img\"").count(), 3);
    assert!(page.contains("prefers-color-scheme: dark") && page.contains("@media print"));
    // The same trials give the same page.
    assert_eq!(page, drawn(&plan, &trials).html());

    let simulated = EvalPlan { simulated: true, ..plan };
    let document = drawn(&simulated, &trials);
    for text in [document.markdown(), document.html()] {
        assert!(text.contains("Simulated agents: this says nothing about a model."), "{text}");
    }
}

#[test]
fn ev_118_hardly_any_trials_make_a_sound_page() {
    for (tasks, arms, repeats, done) in
        [(1, 1, 1, 0), (1, 1, 1, 1), (1, 2, 1, 2), (2, 2, 1, 1), (3, 8, 2, 7), (2, 2, 1, 4)]
    {
        let plan = example_plan(tasks, arms, repeats);
        let mut trials: TrialSet = TrialSet::default();
        for trial in example_trials(&plan, 2).iter().take(done) {
            trials.add(EvalTrial::new(trial.key.clone(), trial.end, None));
        }
        let document = drawn(&plan, &trials);
        assert_sound(&document.html());
        assert!(document.markdown().contains("## Tasks"));
        let other =
            EvalDifference::of((&plan, &trials), (&plan, &trials), None, EvalMeasure::Tokens, quick());
        let compared = difference::document(&other, ["", ""], &[], 0.8);
        assert_sound(&compared.html());
        assert!(compared.markdown().contains("only chance is behind a difference"));
    }
}

#[test]
fn ev_119_every_reason_without_a_winner_is_said_in_words() {
    let of = |conclusion| PairedComparison {
        measure: EvalMeasure::RightlyHeldBack,
        baseline: "single".to_owned(),
        arm: "full".to_owned(),
        tasks: 24,
        unpaired: 0,
        differing: 3,
        mean_difference: Some(0.1),
        interval: None,
        test: TestResult { test: PairedTest::SignFlip, p: 0.2 },
        p_corrected: 0.4,
        comparisons: 2,
        spread: None,
        detectable: Some(0.2134),
        conclusion,
    };
    let mut said = BTreeSet::new();
    for reason in [
        UndecidedReason::NoTasksInCommon,
        UndecidedReason::SingleTask,
        UndecidedReason::IntervalContainsZero,
        UndecidedReason::NotSignificant,
        UndecidedReason::NoBetterSide,
    ] {
        let one = of(ArmConclusion::Undecided { because: vec![reason] });
        assert_eq!(words::verdict(&one.conclusion).0, "no winner");
        let text = words::reasons(&one, 0.05);
        assert!(text.split(' ').count() >= 4 && !text.contains('_'), "{text}");
        assert!(said.insert(text.clone()), "{text}");
    }
    assert_eq!(words::reasons(&of(ArmConclusion::Better), 0.05), "");
    assert_eq!(
        words::power(&of(ArmConclusion::Better)),
        "full: with these 24 tasks a difference below 0.21 would probably not be seen."
    );
    let few = PairedComparison { tasks: 3, detectable: Some(2.77), ..of(ArmConclusion::Better) };
    assert_eq!(
        words::power(&few),
        "full: with these 3 tasks no difference would probably be seen, however large."
    );
    let dollars = PairedComparison { measure: EvalMeasure::Dollars, ..few };
    assert!(words::power(&dollars).contains("below $2.77"), "{}", words::power(&dollars));
    for (measure, value, text) in [
        (EvalMeasure::Solved, 0.5, "+0.50"),
        (EvalMeasure::Solved, -0.001, "0.00"),
        (EvalMeasure::Tokens, -1_234_567.4, "−1,234,567"),
        (EvalMeasure::Dollars, -0.25, "−$0.25"),
        (EvalMeasure::Dollars, 0.0123, "+$0.0123"),
        (EvalMeasure::Minutes, 12.34, "+12.3"),
    ] {
        assert_eq!(words::signed(measure, value), text);
    }
}

#[test]
fn ev_120_text_of_others_stays_text() {
    const HOSTILE: &str = "</td><script>alert(1)</script>|**b**\u{1b}[2J\u{202e}\n# x\" onload=\"y";
    let mut plan = example_plan(3, 2, 1);
    let trials = example_trials(&plan, 1);
    let mut renamed = TrialSet::default();
    for trial in trials.iter() {
        let mut trial = trial.clone();
        trial.key.task.push_str(HOSTILE);
        trial.key.arm.push_str(HOSTILE);
        trial.traps_set.insert(HOSTILE.to_owned());
        trial.reviewers.insert(HOSTILE.to_owned(), ReviewerCounts { confirmed: 1, refuted: 0, missed: 0 });
        renamed.add(trial);
    }
    for text in [&mut plan.suite, &mut plan.about, &mut plan.agent, &mut plan.version, &mut plan.suite_digest]
    {
        text.push_str(HOSTILE);
    }
    for task in &mut plan.tasks {
        task.name.push_str(HOSTILE);
        task.language = Some(HOSTILE.to_owned());
    }
    for arm in &mut plan.arms {
        arm.name.push_str(HOSTILE);
        arm.about.push_str(HOSTILE);
    }
    let options =
        ReportOptions { baseline: &plan.arms[0].name, measure: EvalMeasure::Solved, sampling: quick() };
    let notes = [HOSTILE.to_owned()];
    let found = EvalReport::of(&plan, &renamed, options);
    let mut later = plan.clone();
    later.agent.push('2');
    let across =
        EvalDifference::of((&plan, &renamed), (&later, &renamed), None, EvalMeasure::Solved, quick());
    for document in [
        report::document(&found, HOSTILE, &notes),
        difference::document(&across, [HOSTILE, HOSTILE], &notes, 0.8),
    ] {
        let page = document.html();
        assert!(page.contains("&lt;script&gt;"), "{page}");
        assert!(!page.contains("<script") && !page.contains("\" onload=\""), "{page}");
        assert!(!page.contains(['\u{1b}', '\u{202e}']));
        let text = document.markdown();
        assert!(!text.contains("<script") && !text.contains("**b**") && !text.contains("\n# x"), "{text}");
        assert!(!text.contains(['\u{1b}', '\u{202e}']));
        // A bar in a name begins no cell.
        for table in text.split("\n\n").filter(|block| block.starts_with("| ")) {
            let cells = |line: &str| line.replace("\\|", "").matches('|').count();
            let head = cells(table.lines().next().unwrap());
            assert!(table.lines().all(|line| cells(line) == head), "{table}");
        }
    }
}
