//! The order in which targets are built. See README.md.

use std::collections::{BTreeMap, BTreeSet};

/// Returns all names in the order of the build, or the names that can never be built.
pub fn order(targets: &[(&str, &[&str])]) -> Result<Vec<String>, Vec<String>> {
    let names: BTreeSet<&str> = targets.iter().map(|(name, _)| *name).collect();
    let mut missing: BTreeMap<&str, usize> = names.iter().map(|name| (*name, 0)).collect();
    let mut needed_by: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (name, dependencies) in targets {
        for dependency in dependencies.iter().filter(|dependency| names.contains(*dependency)) {
            // A repeated dependency is released once, so it must be counted once.
            if needed_by.entry(dependency).or_default().insert(name) {
                *missing.entry(name).or_default() += 1;
            }
        }
    }
    let mut ready: BTreeSet<&str> = names.iter().copied().filter(|name| missing[name] == 0).collect();
    let mut done = Vec::new();
    while let Some(name) = ready.pop_first() {
        done.push(name.to_string());
        missing.remove(name);
        for user in needed_by.remove(name).unwrap_or_default() {
            let count = missing.entry(user).or_default();
            *count -= 1;
            if *count == 0 {
                ready.insert(user);
            }
        }
    }
    if missing.is_empty() {
        Ok(done)
    } else {
        Err(missing.into_keys().map(str::to_string).collect())
    }
}
