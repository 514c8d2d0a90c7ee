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

impl Money {
    pub const ZERO: Money = Money(0);
    pub const DOLLAR: Money = Money(1_000_000);

    /// A decimal number of dollars, also with an exponent. What is finer than a millionth is rounded up: nothing that
    /// was spent is rounded away. `None` for what is no number, is negative, or is more than can be written exactly.
    pub fn parse(text: &str) -> Option<Money> {
        let (mantissa, exponent) = match text.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().ok()?),
            None => (text, 0),
        };
        let (whole, part) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let digits = format!("{whole}{part}");
        let plain =
            !whole.is_empty() && digits.len() <= 30 && digits.bytes().all(|byte| byte.is_ascii_digit());
        let number: u128 = digits.parse().ok().filter(|_| plain)?;
        let shift =
            i32::try_from(part.len()).ok().and_then(|places| exponent.checked_sub(places)?.checked_add(6))?;
        let scale = 10_u128.checked_pow(shift.unsigned_abs());
        let micro = match (shift >= 0, scale) {
            _ if number == 0 => 0,
            (true, scale) => number.checked_mul(scale?)?,
            (false, Some(scale)) => number.div_ceil(scale),
            (false, None) => 1,
        };
        u64::try_from(micro).ok().filter(|micro| *micro <= Money::MOST).map(Money)
    }

    /// More than this is not written exactly.
    const MOST: u64 = 9_000_000_000_000_000;

    /// In dollars, to the last millionth.
    pub fn written(self) -> String {
        format!("{}.{:06}", self.0 / 1_000_000, self.0 % 1_000_000)
    }

    #[must_use]
    pub fn plus(self, other: Money) -> Money {
        Money(self.0.saturating_add(other.0))
    }

    /// For people: `$1.28`, and finer where it is less than a cent. Rounded up to what is shown.
    pub fn shown(self) -> String {
        let (unit, places) = if self.0 >= 10_000 || self.0 == 0 { (10_000, 2) } else { (100, 4) };
        let parts = self.0.div_ceil(unit);
        let whole = 10_u64.pow(places);
        let width = places as usize;
        format!("${}.{:0width$}", parts / whole, parts % whole)
    }
}

impl std::iter::Sum for Money {
    fn sum<I: Iterator<Item = Money>>(amounts: I) -> Money {
        amounts.fold(Money::ZERO, Money::plus)
    }
}

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
