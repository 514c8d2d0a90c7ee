//! Maps and sets by the names of archetypes. Most names are there already, and none is copied to be looked up.

use std::collections::{BTreeMap, BTreeSet};

/// One more in a tally.
pub(super) fn count_one_more(tally: &mut BTreeMap<String, u32>, name: &str) -> u32 {
    if let Some(count) = tally.get_mut(name) {
        *count += 1;
        return *count;
    }
    tally.insert(name.to_owned(), 1);
    1
}

pub(super) fn set<T>(map: &mut BTreeMap<String, T>, name: &str, value: T) {
    match map.get_mut(name) {
        Some(known) => *known = value,
        None => drop(map.insert(name.to_owned(), value)),
    }
}

pub(super) fn insert_new(names: &mut BTreeSet<String>, name: &str) {
    if !names.contains(name) {
        names.insert(name.to_owned());
    }
}
