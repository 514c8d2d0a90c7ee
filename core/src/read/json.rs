//! JSON that agents wrote, read more strictly than `serde_json` does by itself: a key that is given twice is an error,
//! whatever its case, numbers stay as written, and nothing is nested deeper than a person would.

use std::collections::BTreeSet;
use std::fmt;

use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

const MAX_DEPTH: usize = 32;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Json {
    Null,
    Bool(bool),
    /// As written: nothing here computes with it.
    Number(String),
    Text(String),
    List(Vec<Json>),
    /// In the order written. A key that is given twice is an error.
    Map(Vec<(String, Json)>),
}

impl Json {
    pub(crate) fn get(&self, key: &str) -> Option<&Json> {
        match self {
            Json::Map(entries) => {
                entries.iter().find(|(name, _)| name.eq_ignore_ascii_case(key)).map(|(_, v)| v)
            }
            Json::Null | Json::Bool(_) | Json::Number(_) | Json::Text(_) | Json::List(_) => None,
        }
    }

    /// The text of a string or a number.
    pub(crate) fn scalar(&self) -> Option<&str> {
        match self {
            Json::Number(text) | Json::Text(text) => Some(text),
            Json::Null | Json::Bool(_) | Json::List(_) | Json::Map(_) => None,
        }
    }
}

/// One value and nothing after it, or `None`.
pub(crate) fn parse(text: &str) -> Option<Json> {
    value(serde_json::from_str(text).ok()?, 0)
}

/// Raw text is checked JSON already; each step into it reads one level.
fn value(raw: &RawValue, depth: usize) -> Option<Json> {
    let text = raw.get();
    match text.bytes().next()? {
        _ if depth > MAX_DEPTH => None,
        b'{' => map(serde_json::from_str::<Entries>(text).ok()?, depth),
        b'[' => {
            let items: Vec<&RawValue> = serde_json::from_str(text).ok()?;
            items.into_iter().map(|item| value(item, depth + 1)).collect::<Option<_>>().map(Json::List)
        }
        b'"' => serde_json::from_str(text).ok().map(Json::Text),
        b't' | b'f' => Some(Json::Bool(text == "true")),
        b'n' => Some(Json::Null),
        _ => Some(Json::Number(text.to_owned())),
    }
}

fn map(entries: Entries<'_>, depth: usize) -> Option<Json> {
    let mut seen = BTreeSet::new();
    let read = entries.0.into_iter().map(|(key, raw)| {
        let fresh = seen.insert(key.to_ascii_lowercase());
        value(raw, depth + 1).filter(|_| fresh).map(|value| (key, value))
    });
    read.collect::<Option<_>>().map(Json::Map)
}

/// The entries of a map in the order written, with those that are given twice.
struct Entries<'a>(Vec<(String, &'a RawValue)>);

impl<'de> Deserialize<'de> for Entries<'de> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct InOrder;
        impl<'de> Visitor<'de> for InOrder {
            type Value = Entries<'de>;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("a map")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut from: A) -> Result<Self::Value, A::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = from.next_entry()? {
                    entries.push(entry);
                }
                Ok(Entries(entries))
            }
        }
        from.deserialize_map(InOrder)
    }
}

#[cfg(test)]
mod tests {
    use super::{Json, parse};

    #[test]
    fn m_a9_m_s19_strict_and_bounded() {
        for good in ["null", " [1, -0.5e+3, \"a\\u00e9\\ud83d\\ude00\"] ", "{\"a\": {\"b\": []}}"] {
            assert!(parse(good).is_some(), "{good}");
        }
        let bad = [
            "",
            "[1,]",
            "{a:1}",
            "01",
            "1 2",
            "\"\n\"",
            "\"\\ud800\"",
            "{\"a\":1,\"a\":2}",
            "[",
            "+1",
            "NaN",
            "{\"a\":1,\"A\":2}",
            "[1e]",
            "{\"a\": tru}",
        ];
        for bad in bad {
            assert_eq!(parse(bad), None, "{bad}");
        }
        assert_eq!(parse(&"[".repeat(1_000_000)), None);
        let deep = |n: usize| format!("{}{}", "[".repeat(n), "]".repeat(n));
        assert!(parse(&deep(32)).is_some());
        assert_eq!(parse(&deep(34)), None);
        assert_eq!(parse("[true]"), Some(Json::List(vec![Json::Bool(true)])));
        let written = ["0.90", "1e999", "12345678901234567890123"];
        for number in written {
            assert_eq!(parse(number), Some(Json::Number(number.to_owned())));
        }
    }
}
