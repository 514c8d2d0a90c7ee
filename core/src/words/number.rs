//! Numbers that are written as decimals and compared as whole numbers.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::Millionths;

/// A number between 0 and 1, written as a decimal. Held in millionths so that equality is exact.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Share(pub Millionths);

impl Share {
    pub const ONE: Share = Share(1_000_000);

    /// `part` of `whole`, truncated; 0 for 0 of 0.
    pub fn of(part: u64, whole: u64) -> Share {
        Share((part * 1_000_000).checked_div(whole).and_then(|n| u32::try_from(n).ok()).unwrap_or(0))
    }
}

impl Serialize for Share {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(f64::from(self.0) / 1e6)
    }
}

impl<'de> Deserialize<'de> for Share {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Share, D::Error> {
        let number = f64::deserialize(deserializer)?;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "clamped to 0..=1e6 first"
        )]
        Ok(Share((number * 1e6).round().clamp(0.0, 1e6) as u32))
    }
}

/// Dollars in millionths, written as a decimal number of dollars.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Money(pub u64);

impl Serialize for Money {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[expect(clippy::cast_precision_loss, reason = "exact below nine billion dollars")]
        serializer.serialize_f64(self.0 as f64 / 1e6)
    }
}

impl<'de> Deserialize<'de> for Money {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Money, D::Error> {
        let number = f64::deserialize(deserializer)?;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped first")]
        Ok(Money((number * 1e6).round().clamp(0.0, 9e15) as u64))
    }
}
