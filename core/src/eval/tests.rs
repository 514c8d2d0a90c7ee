//! Published and hand-worked values, properties, and input that is hardly any. How often intervals cover the truth:
//! `resample/tests.rs`.

use std::collections::{BTreeMap, BTreeSet};

use super::exact::{ALL_SIGNS_UP_TO, PairedTest, holm, mcnemar, sign_flip};
use super::interval::{Bounds, clopper_pearson};
use super::measure::{ArmMeasures, EvalMeasure, task_means};
use super::paired::{ArmConclusion, PairedComparison, UndecidedReason, compare, conclude};
use super::power::{detectable_difference, fewest_differing, tasks_needed};
use super::random::SeededRandom;
use super::resample::{SamplingOptions, mean_interval};
use super::special::{binomial_at_most, incomplete_beta, normal_cdf, normal_quantile, t_quantile};
use super::trial::{EvalTrial, ReviewerCounts, TrialEnd, TrialKey, TrialOutcome, TrialSet};
use crate::event::Tokens;
use crate::model::Money;

fn close(found: f64, expected: f64, within: f64) {
    assert!((found - expected).abs() <= within, "{found}, not {expected} within {within}");
}

fn key(task: &str, arm: &str, repeat: u32) -> TrialKey {
    TrialKey { task: task.to_owned(), arm: arm.to_owned(), repeat }
}

fn trial(task: &str, arm: &str, repeat: u32, solved: bool) -> EvalTrial {
    EvalTrial::new(key(task, arm, repeat), TrialEnd::Landed, Some(solved))
}

/// One trial per task and arm: which tasks each arm solved.
fn solved(rows: &[(&str, &[bool])]) -> TrialSet {
    let of_arm = |(arm, tasks): &(&str, &[bool])| -> Vec<EvalTrial> {
        tasks.iter().enumerate().map(|(n, solved)| trial(&format!("t{n:02}"), arm, 1, *solved)).collect()
    };
    rows.iter().flat_map(of_arm).collect()
}

fn one(trials: &TrialSet, measure: EvalMeasure) -> PairedComparison {
    let found = compare(trials, measure, "base", &["new"], quick());
    assert_eq!(found.len(), 1);
    found.into_iter().next().unwrap()
}

fn quick() -> SamplingOptions {
    SamplingOptions { resamples: 1_000, ..SamplingOptions::default() }
}

fn because(reasons: &[UndecidedReason]) -> ArmConclusion {
    ArmConclusion::Undecided { because: reasons.to_vec() }
}

#[test]
fn ev_01_the_outcome_follows_from_end_and_hidden_tests() {
    let rows = [
        (TrialEnd::Landed, Some(true), TrialOutcome::Solved),
        (TrialEnd::Landed, Some(false), TrialOutcome::WronglyLanded),
        (TrialEnd::Landed, None, TrialOutcome::Unmeasured),
        (TrialEnd::HeldBack, Some(true), TrialOutcome::WronglyHeldBack),
        (TrialEnd::HeldBack, Some(false), TrialOutcome::RightlyHeldBack),
        (TrialEnd::HeldBack, None, TrialOutcome::Unmeasured),
        (TrialEnd::Failed, Some(true), TrialOutcome::Failed),
        (TrialEnd::Failed, None, TrialOutcome::Failed),
        (TrialEnd::OverLimit, Some(true), TrialOutcome::Failed),
        (TrialEnd::OverLimit, Some(false), TrialOutcome::Failed),
    ];
    for (end, hidden, expected) in rows {
        assert_eq!(EvalTrial::new(key("t", "a", 1), end, hidden).outcome(), expected, "{end:?} {hidden:?}");
    }
}

#[test]
fn ev_02_a_record_is_a_line_that_later_versions_may_extend() {
    let mut full = trial("parse-dates", "full", 2, true);
    full.traps_set = BTreeSet::from(["red-herring".to_owned()]);
    full.tokens = Tokens { input: 1_000, output: 50, cache_read: 800, cache_write: 0 };
    full.money = Money::parse("0.0123").unwrap();
    full.reviewers.insert("guardian".to_owned(), ReviewerCounts { confirmed: 1, refuted: 2, missed: 3 });
    let line = serde_json::to_string(&full).unwrap();
    assert!(
        line.starts_with(r#"{"v":1,"task":"parse-dates","arm":"full","repeat":2,"end":"landed""#),
        "{line}"
    );
    assert_eq!(EvalTrial::read(&line), Ok(full));

    let short =
        r#"{"v":1,"task":"t","arm":"a","repeat":1,"end":"held_back","hidden_pass":false,"mood":{"x":[1]}}"#;
    let read = EvalTrial::new(key("t", "a", 1), TrialEnd::HeldBack, Some(false));
    assert_eq!(EvalTrial::read(short), Ok(EvalTrial { seconds: None, ..read }));

    let newer = EvalTrial::read(r#"{"v":2,"task":"t"}"#).unwrap_err();
    assert!(newer.contains("format 2") && newer.contains("update"), "{newer}");
    for bad in
        ["", "[]", "{\"v\":1}", r#"{"v":1,"task":"t","arm":"a","repeat":1,"end":"exploded"}"#, &line[..40]]
    {
        let why = EvalTrial::read(bad).unwrap_err();
        assert!(why.contains("remove the line"), "{why}");
    }
    for end in TrialEnd::ALL {
        assert_eq!(serde_json::to_value(end).unwrap(), end.name());
    }
    for outcome in TrialOutcome::ALL {
        assert_eq!(serde_json::to_value(outcome).unwrap(), outcome.name());
    }
    for measure in EvalMeasure::ALL {
        assert_eq!(serde_json::to_value(measure).unwrap(), measure.name());
    }
}

#[test]
fn ev_03_the_first_record_of_a_run_counts() {
    let mut set: TrialSet = [trial("t", "a", 1, true), trial("t", "a", 1, false)].into_iter().collect();
    assert_eq!(set.len(), 1);
    assert_eq!(set.get(&key("t", "a", 1)).map(EvalTrial::outcome), Some(TrialOutcome::Solved));
    assert!(!set.add(trial("t", "a", 1, false)));
    assert!(set.add(trial("t", "b", 1, false)));
    assert_eq!(set.arms(), BTreeSet::from(["a", "b"]));
}

#[test]
fn ev_04_distributions_agree_with_published_tables() {
    for (z, p) in [(0.0, 0.5), (1.0, 0.841_344_746), (-1.96, 0.024_997_895), (3.0, 0.998_650_102)] {
        close(normal_cdf(z), p, 1e-9);
    }
    close(normal_quantile(0.975), 1.959_963_985, 1e-9);
    assert!(normal_cdf(-40.0) <= 0.0 && normal_cdf(40.0) >= 1.0);
    for (freedom, t) in
        [(1.0, 12.706_205), (2.0, 4.302_653), (10.0, 2.228_139), (23.0, 2.068_658), (120.0, 1.979_930)]
    {
        close(t_quantile(0.975, freedom), t, 1e-6);
        close(t_quantile(0.025, freedom), -t, 1e-6);
    }
    // I_x(1, b) = 1 - (1 - x)^b, and of ten tosses at most three are heads in 176 of 1024 cases.
    close(incomplete_beta(0.3, 1.0, 4.0), 1.0 - 0.7_f64.powi(4), 1e-13);
    close(binomial_at_most(3, 10, 0.5), 176.0 / 1_024.0, 1e-13);
    close(binomial_at_most(0, 20, 0.1), 0.9_f64.powi(20), 1e-13);
    close(binomial_at_most(20, 20, 0.1), 1.0, 0.0);
}

#[test]
fn ev_05_clopper_and_pearson() {
    // The first four are in printed tables; the others were worked out from binomial sums.
    let rows = [
        (0.0, 20.0, 0.0, 0.168_433),
        (1.0, 10.0, 0.002_529, 0.445_016),
        (5.0, 10.0, 0.187_086, 0.812_914),
        (10.0, 10.0, 0.691_503, 1.0),
        (8.0, 200.0, 0.017_425, 0.077_292),
        (185.0, 200.0, 0.879_316, 0.957_417),
    ];
    for (hits, tries, lower, upper) in rows {
        let found = clopper_pearson(hits, tries, 0.95);
        close(found.lower, lower, 1e-6);
        close(found.upper, upper, 1e-6);
    }
    assert_eq!(clopper_pearson(0.0, 0.0, 0.95), Bounds { lower: 0.0, upper: 1.0 });
    assert_eq!(clopper_pearson(2.0, 9.0, f64::NAN), clopper_pearson(2.0, 9.0, 0.95));
    // More hits never lower an end, and more confidence or fewer tries never narrow the interval.
    for hits in 0..40 {
        let at = |hits: u32| clopper_pearson(f64::from(hits), 40.0, 0.95);
        assert!(at(hits).lower <= at(hits + 1).lower && at(hits).upper <= at(hits + 1).upper);
        let sure = clopper_pearson(f64::from(hits), 40.0, 0.99);
        assert!(sure.width() > at(hits).width());
        assert!(clopper_pearson(f64::from(hits) / 2.0, 20.0, 0.95).width() > at(hits).width());
    }
}

/// Worked out from binomial chances, without simulation.
#[test]
fn ev_06_clopper_and_pearson_always_cover_as_stated_and_wilson_does_not() {
    let wilson = |hits: f64, tries: f64| {
        let z2 = 1.959_964_f64.powi(2);
        let center = (hits + z2 / 2.0) / (tries + z2);
        let half = (z2 * (hits * (tries - hits) / tries + z2 / 4.0)).sqrt() / (tries + z2);
        Bounds { lower: center - half, upper: center + half }
    };
    for tries in [24_u64, 100] {
        let exactly = |hits: u64, p: f64| {
            let less = if hits == 0 { 0.0 } else { binomial_at_most(hits - 1, tries, p) };
            binomial_at_most(hits, tries, p) - less
        };
        let least = |interval: &dyn Fn(f64, f64) -> Bounds| {
            let bounds: Vec<Bounds> = (0..=tries).map(|hits| interval(hits as f64, tries as f64)).collect();
            let covered = |p: f64| -> f64 {
                let inside = (0..=tries).zip(&bounds).filter(|(_, bounds)| bounds.contains(p));
                inside.map(|(hits, _)| exactly(hits, p)).sum()
            };
            (1..100).map(|share| covered(f64::from(share) / 400.0)).fold(1.0, f64::min)
        };
        let (exact, narrow) = (least(&|hits, tries| clopper_pearson(hits, tries, 0.95)), least(&wilson));
        assert!(exact >= 0.95, "{exact} of {tries}");
        assert!(narrow < 0.92, "{narrow} of {tries}");
    }
}

#[test]
fn ev_07_mcnemar() {
    let rows = [
        (0, 0, 1.0),
        (4, 4, 1.0),
        (5, 0, 0.062_5),
        (0, 6, 0.031_25),
        (10, 2, 158.0 / 4_096.0),
        (1, 8, 20.0 / 512.0),
        // Ratings of a prime minister (Agresti 1990), as the R package exact2x2 prints it.
        (86, 150, 3.716e-5),
    ];
    for (first, second, p) in rows {
        close(mcnemar(first, second).p, p, 5e-9);
        close(mcnemar(second, first).p, p, 5e-9);
    }
    // The more uneven, the smaller.
    for first in 0..10 {
        assert!(mcnemar(first, 20 - first).p < mcnemar(first + 1, 19 - first).p + 1e-12);
        assert!(mcnemar(0, first + 2).p < mcnemar(0, first + 1).p);
    }
}

#[test]
fn ev_08_the_sign_flip_test() {
    let p = |differences: &[f64]| {
        let found = sign_flip(differences, 1_000, 1);
        assert_eq!(found.test, PairedTest::SignFlip);
        found.p
    };
    close(p(&[]), 1.0, 0.0);
    close(p(&[0.0, 0.0]), 1.0, 0.0);
    close(p(&[0.5]), 1.0, 0.0);
    close(p(&[1.0, -1.0]), 1.0, 0.0);
    close(p(&[1.0, 2.0, 3.0]), 2.0 / 8.0, 0.0);
    close(p(&[3.0, 2.0, -1.0]), 4.0 / 8.0, 0.0);
    close(p(&[0.0, 3.0, 2.0, -1.0, 0.0]), 4.0 / 8.0, 0.0);
    // Darwin's maize, in eighths of an inch: 863 of 32,768 on each side (Fisher 1935).
    let maize = [49.0, -67.0, 8.0, 16.0, 6.0, 23.0, 28.0, 41.0, 14.0, 29.0, 56.0, 24.0, 75.0, 60.0, -48.0];
    close(p(&maize), 2.0 * 863.0 / 32_768.0, 1e-12);
    // Neither sign, nor unit, nor order matter, though thirds can't be written exactly.
    close(p(&maize.map(|one| -one / 3.0)), 2.0 * 863.0 / 32_768.0, 1e-12);
    let mut turned = maize;
    turned.reverse();
    close(p(&turned), p(&maize), 1e-15);
}

#[test]
fn ev_09_with_single_trials_both_tests_agree() {
    for first in 0..8_usize {
        for second in 0..8_usize {
            let signs: Vec<f64> = [vec![-1.0; first], vec![1.0; second], vec![0.0; 3]].concat();
            close(sign_flip(&signs, 100, 1).p, mcnemar(first as u64, second as u64).p, 1e-12);
        }
    }
}

#[test]
fn ev_10_many_signs_are_drawn_and_p_is_never_zero() {
    let far = vec![1.0; ALL_SIGNS_UP_TO + 1];
    let found = sign_flip(&far, 999, 5);
    assert_eq!(found.test, PairedTest::SampledSignFlip { draws: 999 });
    close(found.p, 0.001, 1e-12);
    assert_eq!(sign_flip(&far, 999, 5), found);
    // Close to what counting all gives: 22 of 33 for one arm.
    let mixed: Vec<f64> = (0..33).map(|n| if n % 3 == 0 { -1.0 } else { 1.0 }).collect();
    close(sign_flip(&mixed, 20_000, 5).p, mcnemar(11, 22).p, 0.01);
    close(sign_flip(&mixed, 0, 5).p, sign_flip(&mixed, 1, 5).p, 0.0);
}

#[test]
fn ev_11_holm() {
    let rows: [(&[f64], &[f64]); 5] = [
        (&[], &[]),
        (&[0.04], &[0.04]),
        (&[0.01, 0.04, 0.03], &[0.03, 0.06, 0.06]),
        (&[0.2, 0.001, 0.015, 0.02], &[0.2, 0.004, 0.045, 0.045]),
        (&[0.9, 0.8], &[1.0, 1.0]),
    ];
    for (ps, expected) in rows {
        let found = holm(ps);
        assert_eq!(found.len(), expected.len());
        for (found, expected) in found.iter().zip(expected) {
            close(*found, *expected, 1e-12);
        }
    }
}

#[test]
fn ev_12_power_agrees_with_the_usual_tables() {
    // Pairs for a difference of this many standard deviations, 80 % power, 5 % two-sided (G*Power).
    for (difference, tasks) in [(0.2, 199), (0.3, 90), (0.5, 34), (0.6, 24), (0.8, 15)] {
        let found = tasks_needed(difference, 1.0, 0.05, 0.8).unwrap();
        assert!(found.abs_diff(tasks) <= 1, "{found} tasks, not {tasks}, for {difference}");
        assert_eq!(tasks_needed(-difference * 7.0, 7.0, 0.05, 0.8), Some(found));
        let least = detectable_difference(1.0, found, 0.05, 0.8).unwrap();
        assert!(
            least <= difference && detectable_difference(1.0, found - 1, 0.05, 0.8).unwrap() > difference
        );
    }
    let at = |spread, tasks, alpha, power| detectable_difference(spread, tasks, alpha, power).unwrap();
    for tasks in 2..60 {
        assert!(at(1.0, tasks + 1, 0.05, 0.8) < at(1.0, tasks, 0.05, 0.8));
        assert!(at(1.0, tasks, 0.05, 0.9) > at(1.0, tasks, 0.05, 0.8));
        assert!(at(1.0, tasks, 0.01, 0.8) > at(1.0, tasks, 0.05, 0.8));
        close(at(3.0, tasks, 0.05, 0.8), 3.0 * at(1.0, tasks, 0.05, 0.8), 1e-9);
    }
    for (spread, tasks) in [(0.0, 24), (1.0, 1), (1.0, 0), (f64::NAN, 24)] {
        assert_eq!(detectable_difference(spread, tasks, 0.05, 0.8), None);
    }
    assert_eq!(tasks_needed(0.0, 1.0, 0.05, 0.8), None);
    assert_eq!(tasks_needed(0.1, 0.0, 0.05, 0.8), None);
    // 2 / 2^6 is the first below 0.05; with seven arms it is 2 / 2^9.
    assert_eq!((fewest_differing(0.05, 1), fewest_differing(0.05, 7)), (6, 9));
}

#[test]
fn ev_13_repeats_are_averaged_before_tasks_are() {
    let mut trials: TrialSet =
        [trial("a", "x", 1, true), trial("b", "x", 1, false), trial("b", "x", 2, false)]
            .into_iter()
            .collect();
    let mut last = trial("b", "x", 3, true);
    last.cycles = 3;
    last.seconds = Some(180);
    last.money = Money::DOLLAR;
    last.tokens = Tokens { input: 200, output: 100, cache_read: 150, cache_write: 0 };
    trials.add(last);
    trials.add(EvalTrial::new(key("c", "x", 1), TrialEnd::HeldBack, None));
    let found = ArmMeasures::of(&trials, "x", 0.95);
    assert_eq!((found.tasks, found.trials, found.unmeasured), (3, 5, 1));
    let figure = |measure| found.figures[&measure];
    // Two tasks with 1 and 1/3, not four runs with 1/2.
    let solved = figure(EvalMeasure::Solved);
    assert_eq!(solved.tasks, 2);
    close(solved.mean, 2.0 / 3.0, 1e-12);
    assert_eq!(solved.interval, Some(clopper_pearson(1.0 + 1.0 / 3.0, 2.0, 0.95)));
    // Over three tasks with 0, 1 and 0.
    close(figure(EvalMeasure::Cycles).mean, 1.0 / 3.0, 1e-12);
    close(figure(EvalMeasure::Cycles).median, 0.0, 0.0);
    close(figure(EvalMeasure::Minutes).mean, 1.0 / 3.0, 1e-12);
    close(figure(EvalMeasure::Dollars).mean, 1.0 / 9.0, 1e-12);
    close(figure(EvalMeasure::Tokens).mean, 100.0 / 3.0, 1e-12);
    assert_eq!(figure(EvalMeasure::Cycles).interval, None);
    // No task has a trap.
    assert!(!found.figures.contains_key(&EvalMeasure::Trapped));
    let nothing = ArmMeasures::of(&trials, "unknown", 0.95);
    assert_eq!((nothing.tasks, nothing.figures.len()), (0, 0));
}

#[test]
fn ev_14_traps_count_where_there_are_any() {
    let trap = BTreeSet::from(["injected-order".to_owned()]);
    let mut avoided = trial("a", "x", 1, true);
    avoided.traps_set.clone_from(&trap);
    let mut fallen = trial("b", "x", 1, false);
    fallen.traps_set.clone_from(&trap);
    fallen.traps_fallen = trap;
    let trials: TrialSet = [avoided, fallen, trial("c", "x", 1, true)].into_iter().collect();
    let means: Vec<f64> =
        task_means(&trials, "x", EvalMeasure::Trapped).values().map(|task| task.mean).collect();
    assert_eq!(means, [0.0, 1.0]);
}

#[test]
fn ev_15_precision_and_recall_of_reviewers() {
    let counts = |confirmed, refuted, missed| ReviewerCounts { confirmed, refuted, missed };
    let rows = [
        ("a", 1, "sage", counts(1, 1, 0)),
        ("a", 2, "sage", counts(3, 1, 2)),
        ("b", 1, "sage", counts(2, 0, 3)),
        ("b", 2, "guardian", counts(0, 0, 0)),
    ];
    let reviewed = rows.map(|(task, repeat, reviewer, counts)| EvalTrial {
        reviewers: BTreeMap::from([(reviewer.to_owned(), counts)]),
        ..trial(task, "x", repeat, true)
    });
    let found = ArmMeasures::of(&reviewed.into_iter().collect(), "x", 0.95).reviewers;
    let sage = found["sage"];
    assert_eq!((sage.confirmed, sage.refuted, sage.missed), (6, 2, 5));
    // Per task: 2 right, 1 wrong, 1 missed, and 2 right, 0 wrong, 3 missed.
    close(sage.precision.unwrap(), 4.0 / 5.0, 1e-12);
    close(sage.recall.unwrap(), 4.0 / 8.0, 1e-12);
    assert_eq!((found["guardian"].precision, found["guardian"].recall), (None, None));
}

#[test]
fn ev_16_a_winner_needs_both_interval_and_test() {
    let bounds = |lower, upper| Some(Bounds { lower, upper });
    let up = |interval, p| conclude(EvalMeasure::Solved, Some(0.2), interval, p, 0.05);
    assert_eq!(up(bounds(0.1, 0.3), 0.01), ArmConclusion::Better);
    assert_eq!(
        conclude(EvalMeasure::Solved, Some(-0.2), bounds(-0.3, -0.1), 0.01, 0.05),
        ArmConclusion::Worse
    );
    // Fewer are better.
    assert_eq!(
        conclude(EvalMeasure::WronglyLanded, Some(-0.2), bounds(-0.3, -0.1), 0.01, 0.05),
        ArmConclusion::Better
    );
    assert_eq!(conclude(EvalMeasure::Dollars, Some(0.2), bounds(0.1, 0.3), 0.01, 0.05), ArmConclusion::Worse);
    // Zero on an end, by rounding too, and p at alpha.
    for lower in [-0.1, 0.0, 1e-17] {
        assert_eq!(up(bounds(lower, 0.3), 0.01), because(&[UndecidedReason::IntervalContainsZero]));
    }
    assert_eq!(up(bounds(0.1, 0.3), 0.05), because(&[UndecidedReason::NotSignificant]));
    assert_eq!(
        up(bounds(0.0, 0.3), 0.05),
        because(&[UndecidedReason::IntervalContainsZero, UndecidedReason::NotSignificant])
    );
    assert_eq!(
        conclude(EvalMeasure::RightlyHeldBack, Some(0.2), bounds(0.1, 0.3), 0.01, 0.05),
        because(&[UndecidedReason::NoBetterSide])
    );
}

#[test]
fn ev_17_hardly_any_input_is_undecided() {
    let nothing = one(&TrialSet::default(), EvalMeasure::Solved);
    assert_eq!(nothing.conclusion, because(&[UndecidedReason::NoTasksInCommon]));
    assert_eq!(
        (nothing.tasks, nothing.mean_difference, nothing.interval, nothing.detectable),
        (0, None, None, None)
    );
    close(nothing.p_corrected, 1.0, 0.0);

    let apart: TrialSet = [trial("a", "base", 1, true), trial("b", "new", 1, true)].into_iter().collect();
    let found = one(&apart, EvalMeasure::Solved);
    assert_eq!((found.tasks, found.unpaired), (0, 2));
    assert_eq!(found.conclusion, because(&[UndecidedReason::NoTasksInCommon]));

    let single = one(&solved(&[("base", &[false]), ("new", &[true])]), EvalMeasure::Solved);
    assert_eq!((single.tasks, single.differing, single.interval), (1, 1, None));
    assert_eq!(single.conclusion, because(&[UndecidedReason::SingleTask]));

    for solved_by_all in [true, false] {
        let results = [solved_by_all; 24];
        let equal = one(&solved(&[("base", &results), ("new", &results)]), EvalMeasure::Solved);
        close(equal.mean_difference.unwrap(), 0.0, 0.0);
        close(equal.test.p, 1.0, 0.0);
        // Nothing seen is not nothing there.
        assert!(equal.interval.unwrap().width() > 0.1, "{equal:?}");
        assert!(equal.detectable.unwrap() > 0.05, "{equal:?}");
        let reasons = [UndecidedReason::IntervalContainsZero, UndecidedReason::NotSignificant];
        assert_eq!(equal.conclusion, because(&reasons));
    }
    // Amounts that all are equal have no spread.
    let free = one(&solved(&[("base", &[true; 9]), ("new", &[true; 9])]), EvalMeasure::Dollars);
    assert_eq!((free.interval, free.detectable), (Some(Bounds { lower: 0.0, upper: 0.0 }), None));
    let text = serde_json::to_string(&free).unwrap();
    assert!(text.contains(r#""test":"sign_flip","p":1.0"#) && !text.contains("NaN"), "{text}");
    // All differ alike: the interval has no width, and the test says that three tasks are too few.
    let alike = one(&solved(&[("base", &[false; 3]), ("new", &[true; 3])]), EvalMeasure::Solved);
    assert!(matches!(alike.conclusion, ArmConclusion::Undecided { .. }), "{alike:?}");
    // No arm to compare, and options that can't be used.
    assert_eq!(compare(&apart, EvalMeasure::Solved, "base", &["base"], quick()), []);
    let odd = SamplingOptions { confidence: f64::NAN, resamples: 0, seed: 1, power: -3.0 };
    assert!(compare(&apart, EvalMeasure::Solved, "base", &["new"], odd)[0].p_corrected >= 1.0);
    assert_eq!(odd.checked().confidence.to_bits(), 0.95_f64.to_bits());
}

#[test]
fn ev_18_a_clear_difference_is_found_and_corrected_for_the_number_of_arms() {
    let none = [false; 12];
    let most: Vec<bool> = (0..12).map(|task| task < 8).collect();
    let trials =
        solved(&[("base", &none), ("new", &most), ("b", &none), ("c", &none), ("d", &none), ("e", &none)]);
    let alone = one(&trials, EvalMeasure::Solved);
    assert_eq!(alone.test.test, PairedTest::McNemar);
    close(alone.test.p, 2.0 / 256.0, 1e-12);
    assert_eq!((alone.differing, alone.conclusion), (8, ArmConclusion::Better));
    let among = |arms: &[&str]| compare(&trials, EvalMeasure::Solved, "base", arms, quick()).remove(0);
    close(among(&["new", "b", "new", "base"]).p_corrected, 4.0 / 256.0, 1e-12);
    // The correction is about the test; the interval is the same.
    let five = among(&["new", "b", "c", "d", "e"]);
    close(five.p_corrected, 10.0 / 256.0, 1e-12);
    assert_eq!(five.interval, alone.interval);
    assert!(five.detectable > alone.detectable);
    let strict = SamplingOptions { confidence: 0.99, ..quick() };
    let found = compare(&trials, EvalMeasure::Solved, "base", &["new", "b"], strict).remove(0);
    assert_eq!(found.conclusion, because(&[UndecidedReason::NotSignificant]));
}

#[test]
fn ev_19_order_does_not_matter_and_the_seed_decides() {
    let mut random = SeededRandom::new(9);
    let mut all: Vec<EvalTrial> = Vec::new();
    for task in 0..15 {
        for repeat in 1..=3 {
            for (arm, share) in [("base", 0.4), ("new", 0.7)] {
                let mut one = trial(&format!("t{task}"), arm, repeat, random.unit() < share);
                one.money = Money(random.below(900_000) as u64);
                all.push(one);
            }
        }
    }
    let in_order: TrialSet = all.iter().cloned().collect();
    for measure in [EvalMeasure::Solved, EvalMeasure::Dollars] {
        let expected = one(&in_order, measure);
        assert_eq!(one(&in_order, measure), expected);
        for _ in 0..5 {
            for last in (1..all.len()).rev() {
                all.swap(last, random.below(last + 1));
            }
            let shuffled: TrialSet = all.iter().cloned().collect();
            assert_eq!(one(&shuffled, measure), expected);
            assert_eq!(ArmMeasures::of(&shuffled, "new", 0.95), ArmMeasures::of(&in_order, "new", 0.95));
        }
        let other = SamplingOptions { seed: 2, ..quick() };
        let reseeded = compare(&in_order, measure, "base", &["new"], other).remove(0);
        assert_eq!((reseeded.test, reseeded.mean_difference), (expected.test, expected.mean_difference));
        assert_ne!(reseeded.interval, expected.interval);
        // Swapped arms: the same figures with the other sign.
        let swapped = compare(&in_order, measure, "new", &["base"], quick()).remove(0);
        let (here, there) = (expected.interval.unwrap(), swapped.interval.unwrap());
        close(here.lower, -there.upper, 0.02);
        close(here.upper, -there.lower, 0.02);
        close(expected.test.p, swapped.test.p, 1e-12);
    }
    // The generator is the published one: the first numbers of seed 1234567.
    let mut known = SeededRandom::new(1_234_567);
    assert_eq!([known.next_u64(), known.next_u64()], [6_457_827_717_110_365_317, 3_203_168_211_198_807_973]);
    assert_eq!(known.below(0), 0);
    // More confidence is wider; the mean is always inside; a shift moves both ends.
    let values = [0.1, -0.4, 0.3, 0.9, 0.2, 0.2, -0.1, 0.6];
    let at = |confidence| mean_interval(&values, None, SamplingOptions { confidence, ..quick() }).unwrap();
    assert!(at(0.8).width() < at(0.95).width() && at(0.95).width() < at(0.99).width());
    assert!(at(0.5).contains(0.225));
    let moved = mean_interval(&values.map(|one| one + 5.0), None, quick()).unwrap();
    close(moved.lower, at(0.95).lower + 5.0, 1e-9);
    close(moved.upper, at(0.95).upper + 5.0, 1e-9);
    assert!(mean_interval(&values, Some(1.0), quick()).unwrap().width() > at(0.95).width());
    assert_eq!(mean_interval(&[0.3], Some(1.0), quick()), None);
}
