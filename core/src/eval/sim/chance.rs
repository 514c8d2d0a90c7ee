//! Decisions by chance, each with a name.

use crate::eval::SeededRandom;

/// The chance of one agent. Each decision has its own number, so one more decision changes no other.
#[derive(Debug, Clone, Copy)]
pub(super) struct SimChance(u64);

impl SimChance {
    pub(super) fn new(seed: u64, agent: &str, cycle: u32) -> SimChance {
        SimChance(SeededRandom::new(seed).next_u64()).of(agent).of(&cycle.to_string())
    }

    /// The same for one more circumstance.
    pub(super) fn of(self, circumstance: &str) -> SimChance {
        // FNV-1a; the separator keeps `a`, `bc` and `ab`, `c` apart.
        let fold = |sum: u64, byte: u8| (sum ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01B3);
        let sum = circumstance.bytes().chain([0xFF]).fold(self.0, fold);
        SimChance(SeededRandom::new(sum).next_u64())
    }

    pub(super) fn happens(self, what: &str, rate: f64) -> bool {
        SeededRandom::new(self.of(what).0).unit() < rate
    }

    /// A number from 0 to `end - 1`.
    pub(super) fn pick(self, what: &str, end: usize) -> usize {
        SeededRandom::new(self.of(what).0).below(end)
    }
}
