//! The order in which targets are built. See README.md.

use std::collections::{BTreeMap, BTreeSet};

/// Returns all names in the order of the build, or the names that can never be built.
pub fn order(targets: &[(&str, &[&str])]) -> Result<Vec<String>, Vec<String>> {
    let names: BTreeSet<&str> = targets.iter().map(|(name, _)| *name).collect();
    let mut missing: BTreeMap<&str, usize> = names.iter().map(|name| (*name, 0)).collect();
    let mut needed_by: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (name, dependencies) in targets {
        // Generated build files repeat dependencies.
        let mut dependencies = dependencies.to_vec();
        dependencies.dedup();
        for dependency in dependencies.into_iter().filter(|dependency| names.contains(dependency)) {
            *missing.entry(name).or_default() += 1;
            needed_by.entry(dependency).or_default().insert(name);
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
