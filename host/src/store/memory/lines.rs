//! A file of JSON lines that is changed line by line: what is not touched stays byte for byte as it was.

use std::fmt;
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

/// A line that can't be read, and where it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage {
    pub path: PathBuf,
    pub line: usize,
    pub why: String,
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}:{}: this line can't be read and is left as it is: {}. Mend or remove it",
            self.path.display(),
            self.line,
            self.why
        )
    }
}

/// One line with what it means.
#[derive(Debug, Clone)]
pub struct Item<T> {
    raw: Vec<u8>,
    value: Result<T, String>,
}

#[derive(Debug)]
pub struct Lines<T> {
    path: PathBuf,
    items: Vec<Item<T>>,
    changed: bool,
}

impl<T: DeserializeOwned + Serialize> Lines<T> {
    pub(super) fn parse(path: &Path, bytes: &[u8]) -> Lines<T> {
        let mut raw: Vec<&[u8]> = bytes.split(|byte| *byte == b'\n').collect();
        if raw.last().is_some_and(|last| last.is_empty()) {
            raw.pop();
        }
        let item = |raw: &[u8]| Item {
            raw: raw.to_vec(),
            value: serde_json::from_slice(raw).map_err(|error| error.to_string()),
        };
        Lines { path: path.to_owned(), items: raw.into_iter().map(item).collect(), changed: false }
    }

    pub fn values(&self) -> impl DoubleEndedIterator<Item = &T> {
        self.items.iter().filter_map(|item| item.value.as_ref().ok())
    }

    pub fn items(&self) -> impl DoubleEndedIterator<Item = (&Item<T>, &T)> {
        self.items.iter().filter_map(|item| Some((item, item.value.as_ref().ok()?)))
    }

    /// Empty lines are ignored; anything else that can't be read is reported.
    pub(super) fn damage(&self) -> Vec<Damage> {
        let lines = (1..).zip(&self.items).filter(|(_, item)| !item.raw.trim_ascii().is_empty());
        let damage = |(line, item): (usize, &Item<T>)| {
            let why = item.value.as_ref().err()?.clone();
            Some(Damage { path: self.path.clone(), line, why })
        };
        lines.filter_map(damage).collect()
    }

    pub fn push(&mut self, value: T) {
        let raw = serde_json::to_vec(&value).unwrap_or_default();
        self.changed = true;
        self.items.push(Item { raw, value: Ok(value) });
    }

    /// Puts a line that was taken from elsewhere at the end, with these fields beside its own.
    pub fn put(&mut self, mut item: Item<T>, more: &[(&str, Value)]) {
        let mut fields = item.fields();
        fields.extend(more.iter().map(|(name, value)| ((*name).to_owned(), value.clone())));
        item.raw = Value::Object(fields).to_string().into_bytes();
        self.changed = true;
        self.items.push(item);
    }

    /// Takes the first line that fits out of the file.
    pub fn take(&mut self, fits: impl Fn(&T) -> bool) -> Option<Item<T>> {
        let at = self.items.iter().position(|item| item.value.as_ref().is_ok_and(&fits))?;
        self.changed = true;
        Some(self.items.remove(at))
    }

    /// Gives the first line that fits a new meaning. Fields this version does not know stay.
    pub fn replace(&mut self, fits: impl Fn(&T) -> bool, value: T) -> bool {
        let Some(item) = self.items.iter_mut().find(|item| item.value.as_ref().is_ok_and(&fits)) else {
            return false;
        };
        item.set(value);
        self.changed = true;
        true
    }

    /// Drops the oldest lines beyond a number; what can't be read is never one of them.
    pub(super) fn keep_newest(&mut self, at_most: usize) {
        let mut surplus = self.values().count().saturating_sub(at_most);
        if surplus == 0 {
            return;
        }
        self.changed = true;
        self.items.retain(|item| {
            let drops = surplus > 0 && item.value.is_ok();
            surplus -= usize::from(drops);
            !drops
        });
    }

    /// The whole file, if anything is different.
    pub(super) fn changed(&self) -> Option<Vec<u8>> {
        self.changed.then(|| {
            let lines = self.items.iter().flat_map(|item| [item.raw.as_slice(), b"\n"]);
            lines.collect::<Vec<_>>().concat()
        })
    }
}

impl<T: DeserializeOwned + Serialize> Item<T> {
    /// All fields of the line, also those this version does not know.
    pub fn fields(&self) -> Map<String, Value> {
        match serde_json::from_slice(&self.raw) {
            Ok(Value::Object(fields)) => fields,
            Ok(_) | Err(_) => Map::new(),
        }
    }

    /// A field that is a text.
    pub fn text(&self, name: &str) -> Option<String> {
        self.fields().get(name)?.as_str().map(str::to_owned)
    }

    pub fn without(mut self, names: &[&str]) -> Item<T> {
        let mut fields = self.fields();
        fields.retain(|name, _| !names.contains(&name.as_str()));
        self.raw = Value::Object(fields).to_string().into_bytes();
        self
    }

    pub fn with(mut self, value: T) -> Item<T> {
        self.set(value);
        self
    }

    fn set(&mut self, value: T) {
        let mut fields = self.fields();
        if let Ok(Value::Object(new)) = serde_json::to_value(&value) {
            fields.extend(new);
        }
        self.raw = Value::Object(fields).to_string().into_bytes();
        self.value = Ok(value);
    }
}
