//! Tests without assumptions about distributions, and the correction for several of them.

use serde::Serialize;

use super::random::SeededRandom;
use super::special::binomial_at_most;

/// The test that a p value comes from. Every one is two-sided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "test")]
pub enum PairedTest {
    /// [`mcnemar`]: one trial per task and arm, with yes or no as result.
    McNemar,
    /// [`sign_flip`] over all signs.
    SignFlip,
    /// [`sign_flip`] over random signs, because there are too many for all.
    SampledSignFlip { draws: u32 },
}

/// How often a difference like the one seen would occur if the arms did not differ.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct TestResult {
    #[serde(flatten)]
    pub test: PairedTest,
    pub p: f64,
}

/// With more differing tasks than this, signs are drawn.
pub const ALL_SIGNS_UP_TO: usize = 32;

/// McNemar's exact test. Only tasks that one arm alone solved say which arm is better; without a difference each of them
/// is a toss of a coin, and p is the chance of tosses at least as uneven.
pub fn mcnemar(only_first: u64, only_second: u64) -> TestResult {
    let tosses = only_first.saturating_add(only_second);
    let fewer = only_first.min(only_second);
    // At a tie the two tails overlap.
    let p = if only_first == only_second { 1.0 } else { 2.0 * binomial_at_most(fewer, tosses, 0.5) };
    TestResult { test: PairedTest::McNemar, p: p.min(1.0) }
}

/// The sign-flip test, an exact test for means of pairs. Without a difference between the arms, each task's difference
/// could as well have the other sign; p is the share of all combinations of signs whose sum is at least as far from 0.
///
/// With differences of 1 and -1 it is McNemar's test. All signs are counted up to [`ALL_SIGNS_UP_TO`] differing tasks.
/// Beyond that `draws` combinations are drawn, and the one that was seen counts as one of them, so that p is never 0.
pub fn sign_flip(differences: &[f64], draws: u32, seed: u64) -> TestResult {
    let differing: Vec<f64> = differences.iter().copied().filter(|one| one.abs() > 0.0).collect();
    let all: f64 = differing.iter().map(|one| one.abs()).sum();
    // Sums in another order differ in their last digits; those count as equal.
    let at_least = differing.iter().sum::<f64>().abs() - 1e-9 * all;
    if differing.len() > ALL_SIGNS_UP_TO {
        return sampled_sign_flip(&differing, at_least, draws.max(1), seed);
    }
    if at_least <= 0.0 {
        return TestResult { test: PairedTest::SignFlip, p: 1.0 };
    }
    // Every sum of all is a sum of the first half plus one of the second: sorted, those that reach far enough are counted
    // without looking at each.
    let (first, second) = differing.split_at(differing.len() / 2);
    let (first, mut second) = (signed_sums(first), signed_sums(second));
    second.sort_by(f64::total_cmp);
    let reaching = |sum: &f64| second.len() - second.partition_point(|other| other + sum < at_least);
    let count: usize = first.iter().map(reaching).sum();
    let combinations = first.len() as f64 * second.len() as f64;
    TestResult { test: PairedTest::SignFlip, p: (2.0 * count as f64 / combinations).min(1.0) }
}

fn sampled_sign_flip(differing: &[f64], at_least: f64, draws: u32, seed: u64) -> TestResult {
    let mut random = SeededRandom::new(seed);
    let mut is_as_far = || {
        let (mut signs, mut sum) = (0, 0.0);
        for (position, one) in differing.iter().enumerate() {
            if position % 64 == 0 {
                signs = random.next_u64();
            }
            sum += if signs & 1 == 1 { *one } else { -one };
            signs >>= 1;
        }
        sum.abs() >= at_least
    };
    let count = (0..draws).filter(|_| is_as_far()).count();
    let p = (count as f64 + 1.0) / (f64::from(draws) + 1.0);
    TestResult { test: PairedTest::SampledSignFlip { draws }, p }
}

/// The sums of these numbers under all combinations of signs.
fn signed_sums(numbers: &[f64]) -> Vec<f64> {
    numbers
        .iter()
        .fold(vec![0.0], |sums, number| sums.iter().flat_map(|sum| [sum + number, sum - number]).collect())
}

/// Holm's correction, in the order given. Of several comparisons without a difference one is easily significant by
/// chance: the smallest p is multiplied by their number, the next by one less, and none is below a smaller one's, so that
/// the chance of any false winner stays below alpha.
pub fn holm(ps: &[f64]) -> Vec<f64> {
    let mut ascending: Vec<(usize, f64)> = ps.iter().copied().enumerate().collect();
    ascending.sort_by(|(_, one), (_, other)| one.total_cmp(other));
    let mut least = 0.0_f64;
    for (rank, (_, p)) in ascending.iter_mut().enumerate() {
        least = least.max((*p * (ps.len() - rank) as f64).min(1.0));
        *p = least;
    }
    ascending.sort_by_key(|(position, _)| *position);
    ascending.into_iter().map(|(_, p)| p).collect()
}
