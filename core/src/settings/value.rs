//! A value that has been read, and how it is written.

use std::fmt;

/// The value of a setting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SettingValue {
    Switch(bool),
    Whole(u64),
    Wholes(Vec<u64>),
    Millionths(u32),
    /// In millionths of a dollar.
    Money(u64),
    Word(&'static str),
    Text(String),
    Names(Vec<String>),
}

impl SettingValue {
    pub(super) fn times(self, unit: u64) -> SettingValue {
        match self {
            SettingValue::Whole(n) => SettingValue::Whole(n.saturating_mul(unit)),
            SettingValue::Wholes(list) => {
                SettingValue::Wholes(list.into_iter().map(|n| n.saturating_mul(unit)).collect())
            }
            other @ (SettingValue::Switch(_)
            | SettingValue::Millionths(_)
            | SettingValue::Money(_)
            | SettingValue::Word(_)
            | SettingValue::Text(_)
            | SettingValue::Names(_)) => other,
        }
    }

    pub(super) fn divided(self, unit: u64) -> SettingValue {
        match self {
            // No file can have written such a time; a journal may hold it all the same.
            SettingValue::Whole(n) if n % unit != 0 => SettingValue::Text(format!("{n} ms")),
            SettingValue::Whole(n) => SettingValue::Whole(n / unit),
            SettingValue::Wholes(list) => SettingValue::Wholes(list.into_iter().map(|n| n / unit).collect()),
            other @ (SettingValue::Switch(_)
            | SettingValue::Millionths(_)
            | SettingValue::Money(_)
            | SettingValue::Word(_)
            | SettingValue::Text(_)
            | SettingValue::Names(_)) => other,
        }
    }
}

impl fmt::Display for SettingValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SettingValue::Switch(on) => write!(f, "{on}"),
            SettingValue::Whole(n) => write!(f, "{n}"),
            SettingValue::Wholes(list) => {
                let list: Vec<String> = list.iter().map(ToString::to_string).collect();
                write!(f, "[{}]", list.join(", "))
            }
            SettingValue::Millionths(1_000_000) => f.write_str("1.0"),
            SettingValue::Millionths(n) => {
                let places = format!("{n:06}");
                let places = places.trim_end_matches('0');
                write!(f, "0.{}", if places.is_empty() { "0" } else { places })
            }
            SettingValue::Money(micro) => {
                let places = format!("{:06}", micro % 1_000_000);
                let places = places.trim_end_matches('0');
                let dot = if places.is_empty() { "" } else { "." };
                write!(f, "{}{dot}{places}", micro / 1_000_000)
            }
            SettingValue::Word(word) => f.write_str(word),
            SettingValue::Text(text) => f.write_str(text),
            SettingValue::Names(names) => write!(f, "[{}]", names.join(", ")),
        }
    }
}

/// Digits only, and no leading zero that could be meant as octal.
pub fn whole_number(text: &str, least: u64, most: u64) -> Option<u64> {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit()) && (text == "0" || !text.starts_with('0'));
    text.parse().ok().filter(|n| digits && (least..=most).contains(n))
}

/// `shop=40`, with or without a percent sign.
pub fn share_of(text: &str) -> Option<(String, u64)> {
    let (project, percent) = text.rsplit_once('=')?;
    let percent = percent.trim();
    let percent = whole_number(percent.strip_suffix('%').unwrap_or(percent).trim_end(), 0, 100)?;
    let project = project.trim();
    let fits = !project.is_empty() && project.len() <= 200 && !project.contains(char::is_control);
    fits.then(|| (project.to_owned(), percent))
}
