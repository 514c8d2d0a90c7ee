//! Intervals that need drawing, and everything that reports and comparisons of evaluations are made from.

use std::collections::{BTreeMap, BTreeSet};

use super::across::{ChangedPart, EvalDifference};
use super::measure::{ArmMeasures, EvalMeasure};
use super::paired::{ArmConclusion, compare};
use super::plan::{EvalPlan, PlannedArm, PlannedTask};
use super::random::SeededRandom;
use super::report::{EvalReport, IncompleteTask, ReportOptions, TrapCell};
use super::resample::{SamplingOptions, share_interval};
use super::trial::{EvalTrial, ReviewerCounts, TrialEnd, TrialKey, TrialOutcome, TrialSet};
use crate::model::Money;

fn plan(tasks: usize, arms: &[&str], repeats: u32) -> EvalPlan {
    EvalPlan {
        v: EvalPlan::FORMAT,
        suite: "small".to_owned(),
        about: String::new(),
        suite_digest: "d1".to_owned(),
        tasks: (0..tasks).map(task).collect(),
        arms: arms
            .iter()
            .map(|name| PlannedArm {
                name: (*name).to_owned(),
                about: String::new(),
                digest: format!("of {name}"),
            })
            .collect(),
        repeats,
        agent: "model-a".to_owned(),
        simulated: false,
        population: String::new(),
        rules_only: false,
        seed: 7,
        budget: None,
        version: "1.0.0".to_owned(),
        started: 1_775_606_400_000,
    }
}

fn task(number: usize) -> PlannedTask {
    PlannedTask {
        name: format!("t{number:02}"),
        language: None,
        traps: BTreeSet::new(),
        dollars: None,
        seconds: 600,
    }
}

/// All trials of the plan; each is solved with the arm's chance.
fn trials(plan: &EvalPlan, chances: &[(&str, f64)], seed: u64) -> TrialSet {
    let mut random = SeededRandom::new(seed);
    let of_key = |key: TrialKey| {
        let chance = chances.iter().find(|(arm, _)| *arm == key.arm).map_or(0.5, |(_, chance)| *chance);
        let mut trial = EvalTrial::new(key, TrialEnd::Landed, Some(random.unit() < chance));
        trial.money = Money(random.below(1_000_000) as u64);
        trial
    };
    plan.trials().map(of_key).collect()
}

fn quick() -> SamplingOptions {
    SamplingOptions { resamples: 1_000, ..SamplingOptions::default() }
}

fn options(baseline: &str) -> ReportOptions<'_> {
    ReportOptions { baseline, measure: EvalMeasure::Solved, sampling: quick() }
}

#[test]
fn ev_110_amounts_and_reviewers_have_intervals_if_tasks_are_drawn() {
    let plan = plan(12, &["single"], 2);
    let mut random = SeededRandom::new(3);
    let reviewed: TrialSet = trials(&plan, &[], 3)
        .iter()
        .cloned()
        .map(|mut trial| {
            let counts = ReviewerCounts { confirmed: random.below(3) as u32, refuted: 1, missed: 1 };
            trial.reviewers.insert("sage".to_owned(), counts);
            trial
        })
        .collect();
    let counted = ArmMeasures::of(&reviewed, "single", 0.95);
    let sampled = ArmMeasures::sampled(&reviewed, "single", quick());
    for measure in EvalMeasure::ALL {
        let (Some(before), Some(after)) = (counted.figures.get(&measure), sampled.figures.get(&measure))
        else {
            assert_eq!(measure, EvalMeasure::Trapped);
            continue;
        };
        assert_eq!(before.mean.to_bits(), after.mean.to_bits());
        assert_eq!(before.interval.is_some(), measure.is_rate());
        assert!(after.interval.unwrap().contains(after.mean), "{measure:?} {after:?}");
        if measure.is_rate() {
            assert_eq!(before.interval, after.interval);
        }
    }
    let (before, after) = (counted.reviewers["sage"], sampled.reviewers["sage"]);
    assert_eq!((before.precision, before.recall), (after.precision, after.recall));
    assert_eq!((before.precision_interval, before.recall_interval), (None, None));
    let interval = after.precision_interval.unwrap();
    assert!(interval.contains(after.precision.unwrap()) && interval.width() > 0.05, "{after:?}");
    assert_eq!(sampled, ArmMeasures::sampled(&reviewed, "single", quick()));
}

/// The truth is known, findings of one task resemble each other, and the interval is to cover it at the stated rate.
#[test]
fn ev_111_intervals_of_shares_cover_the_truth() {
    for (share, tasks) in [(0.5, 24), (0.9, 24), (0.7, 12), (1.0, 24)] {
        let mut random = SeededRandom::new(11);
        let mut covered = 0;
        for round in 0..400 {
            let counts: Vec<(f64, f64)> = (0..tasks)
                .map(|_| {
                    // Each task is somewhat easier or harder; the mean over all tasks is the share.
                    let spread = 0.2_f64.min(1.0 - share);
                    let chance = share + spread * (2.0 * random.unit() - 1.0);
                    let hits = (0..4).filter(|_| random.unit() < chance).count() as f64;
                    (hits, 4.0 - hits)
                })
                .collect();
            let options = SamplingOptions { resamples: 400, seed: round, ..SamplingOptions::default() };
            covered += u32::from(share_interval(&counts, options).unwrap().contains(share));
        }
        assert!((368..=400).contains(&covered), "{covered} of 400 for {share} with {tasks} tasks");
    }
    assert_eq!(share_interval(&[], quick()), None);
    assert_eq!(share_interval(&[(1.0, 2.0), (0.0, 0.0)], quick()), None);
    // A reviewer without an error may make one tomorrow.
    let faultless = share_interval(&[(2.0, 0.0); 10], quick()).unwrap();
    assert!(faultless.lower < 0.95 && faultless.upper >= 1.0, "{faultless:?}");
}

#[test]
fn ev_112_a_report_names_what_is_missing_and_counts_every_trial() {
    let mut plan = plan(12, &["single", "full"], 2);
    plan.tasks[0].traps.insert("order".to_owned());
    let mut all: Vec<EvalTrial> =
        trials(&plan, &[("single", 0.0), ("full", 1.0)], 1).iter().cloned().collect();
    for trial in all.iter_mut().filter(|trial| trial.key.task == "t00") {
        trial.traps_set.insert("order".to_owned());
        if trial.key.arm == "single" && trial.key.repeat == 1 {
            trial.traps_fallen.insert("order".to_owned());
        }
    }
    // One trial is missing, one has no result of the hidden tests.
    all.retain(|trial| {
        (trial.key.task.as_str(), trial.key.arm.as_str(), trial.key.repeat) != ("t01", "full", 2)
    });
    for trial in &mut all {
        if trial.key.task == "t02" && trial.key.arm == "single" && trial.key.repeat == 1 {
            trial.hidden_pass = None;
        }
    }
    let report = EvalReport::of(&plan, &all.into_iter().collect(), options("single"));
    assert_eq!((report.planned, report.done), (48, 47));
    let missing = |task: &str, arm: &str, done, unmeasured| IncompleteTask {
        task: task.to_owned(),
        arm: arm.to_owned(),
        done,
        planned: 2,
        unmeasured,
    };
    assert_eq!(report.incomplete, [missing("t01", "full", 1, 0), missing("t02", "single", 2, 1)]);
    let single = &report.arms[0];
    assert_eq!(single.measures.arm, "single");
    assert_eq!(
        single.outcomes,
        BTreeMap::from([(TrialOutcome::WronglyLanded, 23), (TrialOutcome::Unmeasured, 1)])
    );
    assert_eq!(report.arms[1].outcomes, BTreeMap::from([(TrialOutcome::Solved, 23)]));
    let trap = &report.tasks[0].traps;
    assert_eq!(trap.len(), 1);
    assert_eq!(trap[0].arms, [TrapCell { fallen: 1, trials: 2 }, TrapCell { fallen: 0, trials: 2 }]);
    assert_eq!((report.tasks[1].arms[1].solved, report.tasks[1].arms[1].trials), (1, 1));
    assert_eq!(report.comparisons.len(), 1);
    assert_eq!(report.comparisons[0].conclusion, ArmConclusion::Better);
    assert!(report.hints.iter().all(|one| one.measure != EvalMeasure::Solved));
    // A plan whose number of trials no type holds is not walked through.
    plan.repeats = u32::MAX;
    let huge = EvalReport::of(&plan, &TrialSet::default(), options("single"));
    assert_eq!((huge.planned, huge.done), (24 * u64::from(u32::MAX), 0));
}

#[test]
fn ev_113_two_evaluations_are_paired_by_task_and_arm() {
    let first = plan(20, &["single", "full", "old"], 3);
    let mut second = plan(24, &["full", "single"], 3);
    second.tasks.remove(0);
    second.agent = "model-b".to_owned();
    second.arms[0].digest = "other".to_owned();
    let before = trials(&first, &[("single", 0.5), ("full", 0.2)], 5);
    let after = trials(&second, &[("single", 0.5), ("full", 0.9)], 6);
    let found = EvalDifference::of((&first, &before), (&second, &after), None, EvalMeasure::Solved, quick());
    assert_eq!(found.arms, ["single", "full"]);
    assert_eq!((found.tasks.len(), found.only_first.len(), found.only_second.len()), (19, 1, 4));
    assert_eq!(found.arms_only_first, ["old"]);
    let changed: Vec<ChangedPart> = found.changes.iter().map(|one| one.what).collect();
    assert_eq!(changed, [ChangedPart::Agent, ChangedPart::ArmDigest]);
    assert!(!found.is_other_suite());
    let [single, full] = found.comparisons.as_slice() else { panic!("{found:?}") };
    assert_eq!((single.tasks, single.unpaired, single.comparisons), (19, 5, 2));
    assert!(matches!(single.conclusion, ArmConclusion::Undecided { .. }), "{single:?}");
    assert_eq!(full.conclusion, ArmConclusion::Better);
    // The same figures as for two arms of one evaluation, and the other sign the other way round.
    let renamed = |set: &TrialSet, name: &str| -> Vec<EvalTrial> {
        set.of_arm("full")
            .cloned()
            .map(|mut trial| {
                trial.key.arm = name.to_owned();
                trial
            })
            .collect()
    };
    let one: TrialSet = [renamed(&before, "a"), renamed(&after, "b")].concat().into_iter().collect();
    let alone = compare(&one, EvalMeasure::Solved, "a", &["b"], quick()).remove(0);
    let restricted =
        EvalDifference::of((&first, &before), (&second, &after), Some("full"), EvalMeasure::Solved, quick());
    let [only] = restricted.comparisons.as_slice() else { panic!("{restricted:?}") };
    assert_eq!(
        (only.mean_difference, only.interval, only.test, only.p_corrected.to_bits()),
        (alone.mean_difference, alone.interval, alone.test, alone.p_corrected.to_bits())
    );
    let back =
        EvalDifference::of((&second, &after), (&first, &before), Some("full"), EvalMeasure::Solved, quick());
    assert_eq!(back.comparisons[0].conclusion, ArmConclusion::Worse);
    assert_eq!(back.comparisons[0].mean_difference, only.mean_difference.map(|mean| -mean));
    let none =
        EvalDifference::of((&first, &before), (&second, &after), Some("old"), EvalMeasure::Solved, quick());
    assert!(none.comparisons.is_empty() && none.arms.is_empty());
}
