//! The types a setting can fill. A type decides for itself which values it takes, so that no row needs code of its own.

use std::collections::BTreeMap;

use super::{SettingValue, share_of};
use crate::model::{
    Approval, ConfidenceFloor, Domain, FailAction, LimitMode, MergeStrategy, Money, OnPostMergeFailure,
    Overlap, Severity, Tier, ZeroPolicy,
};
use crate::rules::system::ScopeLevel;

/// A field of a policy that a setting fills.
pub trait SettingField {
    /// `None`: nothing is set.
    fn read(&self) -> Option<SettingValue>;
    /// Whether the field takes such a value; if not, it stays as it is.
    fn write(&mut self, value: &SettingValue) -> bool;
}

/// A choice among words.
pub trait SettingWord: Copy + PartialEq + 'static {
    const WORDS: &'static [(&'static str, Self)];
}

impl<T: SettingWord> SettingField for T {
    fn read(&self) -> Option<SettingValue> {
        T::WORDS.iter().find(|(_, value)| value == self).map(|(word, _)| SettingValue::Word(word))
    }

    fn write(&mut self, value: &SettingValue) -> bool {
        let SettingValue::Word(word) = value else { return false };
        put(self, T::WORDS.iter().find(|(known, _)| known == word).map(|(_, value)| *value))
    }
}

impl<T: SettingWord> SettingField for Option<T> {
    fn read(&self) -> Option<SettingValue> {
        self.as_ref().and_then(SettingField::read)
    }

    fn write(&mut self, value: &SettingValue) -> bool {
        let SettingValue::Word(word) = value else { return false };
        put(self, T::WORDS.iter().find(|(known, _)| known == word).map(|(_, value)| Some(*value)))
    }
}

/// Sets a place if there is something to set it to.
fn put<T>(place: &mut T, value: Option<T>) -> bool {
    match value {
        Some(value) => {
            *place = value;
            true
        }
        None => false,
    }
}

impl SettingField for bool {
    fn read(&self) -> Option<SettingValue> {
        Some(SettingValue::Switch(*self))
    }

    fn write(&mut self, value: &SettingValue) -> bool {
        let SettingValue::Switch(on) = value else { return false };
        put(self, Some(*on))
    }
}

impl SettingField for u32 {
    fn read(&self) -> Option<SettingValue> {
        Some(SettingValue::Whole(u64::from(*self)))
    }

    fn write(&mut self, value: &SettingValue) -> bool {
        let SettingValue::Whole(n) = value else { return false };
        put(self, u32::try_from(*n).ok())
    }
}

impl SettingField for u64 {
    fn read(&self) -> Option<SettingValue> {
        Some(SettingValue::Whole(*self))
    }

    fn write(&mut self, value: &SettingValue) -> bool {
        let SettingValue::Whole(n) = value else { return false };
        put(self, Some(*n))
    }
}

impl SettingField for Option<u64> {
    fn read(&self) -> Option<SettingValue> {
        self.map(SettingValue::Whole)
    }

    fn write(&mut self, value: &SettingValue) -> bool {
        let SettingValue::Whole(n) = value else { return false };
        put(self, Some(Some(*n)))
    }
}

/// The threshold of a trigger; `None` is `off`.
impl SettingField for Option<u32> {
    fn read(&self) -> Option<SettingValue> {
        Some(self.map_or(SettingValue::Word("off"), |n| SettingValue::Whole(u64::from(n))))
    }

    fn write(&mut self, value: &SettingValue) -> bool {
        match value {
            SettingValue::Word("off") => put(self, Some(None)),
            SettingValue::Whole(n) => put(self, u32::try_from(*n).ok().map(Some)),
            SettingValue::Switch(_)
            | SettingValue::Wholes(_)
            | SettingValue::Millionths(_)
            | SettingValue::Money(_)
            | SettingValue::Word(_)
            | SettingValue::Text(_)
            | SettingValue::Names(_) => false,
        }
    }
}

impl SettingField for ConfidenceFloor {
    fn read(&self) -> Option<SettingValue> {
        Some(SettingValue::Millionths(self.0))
    }

    fn write(&mut self, value: &SettingValue) -> bool {
        let SettingValue::Millionths(floor) = value else { return false };
        put(&mut self.0, Some(*floor))
    }
}

impl SettingField for Option<Money> {
    fn read(&self) -> Option<SettingValue> {
        self.map(|Money(micro)| SettingValue::Money(micro))
    }

    fn write(&mut self, value: &SettingValue) -> bool {
        let SettingValue::Money(micro) = value else { return false };
        put(self, Some(Some(Money(*micro))))
    }
}

impl SettingField for Money {
    fn read(&self) -> Option<SettingValue> {
        Some(SettingValue::Money(self.0))
    }

    fn write(&mut self, value: &SettingValue) -> bool {
        let SettingValue::Money(micro) = value else { return false };
        put(&mut self.0, Some(*micro))
    }
}

impl SettingField for Option<Tier> {
    fn read(&self) -> Option<SettingValue> {
        self.map(|tier| SettingValue::Word(tier.name()))
    }

    fn write(&mut self, value: &SettingValue) -> bool {
        let SettingValue::Word(word) = value else { return false };
        put(self, Tier::parse(word).map(Some))
    }
}

/// Empty is not set.
impl SettingField for String {
    fn read(&self) -> Option<SettingValue> {
        (!self.is_empty()).then(|| SettingValue::Text(self.clone()))
    }

    fn write(&mut self, value: &SettingValue) -> bool {
        put(self, text(value))
    }
}

impl SettingField for Option<String> {
    fn read(&self) -> Option<SettingValue> {
        self.clone().map(SettingValue::Text)
    }

    fn write(&mut self, value: &SettingValue) -> bool {
        put(self, text(value).map(Some))
    }
}

fn text(value: &SettingValue) -> Option<String> {
    match value {
        SettingValue::Text(text) => Some(text.clone()),
        SettingValue::Word(word) => Some((*word).to_owned()),
        SettingValue::Switch(_)
        | SettingValue::Whole(_)
        | SettingValue::Wholes(_)
        | SettingValue::Millionths(_)
        | SettingValue::Money(_)
        | SettingValue::Names(_) => None,
    }
}

impl SettingField for Vec<String> {
    fn read(&self) -> Option<SettingValue> {
        Some(SettingValue::Names(self.clone()))
    }

    fn write(&mut self, value: &SettingValue) -> bool {
        let SettingValue::Names(names) = value else { return false };
        put(self, Some(names.clone()))
    }
}

impl SettingField for Vec<u64> {
    fn read(&self) -> Option<SettingValue> {
        Some(SettingValue::Wholes(self.clone()))
    }

    fn write(&mut self, value: &SettingValue) -> bool {
        let SettingValue::Wholes(list) = value else { return false };
        put(self, Some(list.clone()))
    }
}

/// Projects with percents, written `shop=40`.
impl SettingField for BTreeMap<String, u64> {
    fn read(&self) -> Option<SettingValue> {
        let shares = self.iter().map(|(project, percent)| format!("{project}={percent}"));
        Some(SettingValue::Names(shares.collect()))
    }

    fn write(&mut self, value: &SettingValue) -> bool {
        let SettingValue::Names(shares) = value else { return false };
        put(self, shares.iter().map(|text| share_of(text)).collect())
    }
}

/// The words of an enum that is a setting. On the wire they are the same.
macro_rules! words {
    ($($name:ident { $($word:literal $variant:ident),* })*) => {
        $(impl SettingWord for $name {
            const WORDS: &'static [(&'static str, Self)] = &[$(($word, $name::$variant)),*];
        })*
    };
}

words! {
    Approval { "step" EveryPass, "every_pass" EveryPass, "goal_complete" GoalComplete }
    Domain { "code" Code, "writing" Writing, "research" Research }
    FailAction { "warn" Warn, "abort" Abort }
    LimitMode { "either_suffices" EitherSuffices, "both_required" BothRequired }
    MergeStrategy { "no-ff" NoFf, "squash" Squash, "rebase" Rebase }
    OnPostMergeFailure { "halt" Halt, "cycle_back" CycleBack }
    Overlap { "weighed" Weighed, "min" Min, "jaccard" Jaccard }
    ScopeLevel { "double" Double, "outside_files" OutsideFiles }
    Severity { "INFO" Info, "WARNING" Warning, "CRITICAL" Critical }
    ZeroPolicy { "immediate" Immediate, "two_consecutive" TwoConsecutive }
}
