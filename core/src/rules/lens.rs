//! Lenses on top of one another (BX-07), and what of them reaches whom.
//!
//! Left to right: lists are united, of two numbers or words the later one counts, and what to attend to is joined.

use std::collections::{BTreeMap, BTreeSet};

use crate::model::{Attention, Lens, Participant, Role, Tier};
use crate::persona::{first_of, role_name};

/// One lens that does what all of them do.
pub fn stack(lenses: impl IntoIterator<Item = Lens>) -> Lens {
    let mut all = Lens::default();
    for lens in lenses {
        unite(&mut all.names, lens.names);
        unite(&mut all.finding_categories, lens.finding_categories);
        for (moment, paths) in lens.context {
            unite(all.context.entry(moment).or_default(), paths);
        }
        for (name, attention) in lens.attention {
            add(all.attention.entry(name).or_default(), attention);
        }
        all.shadow_overrides.extend(lens.shadow_overrides);
        for (category, proofs) in lens.evidence {
            all.evidence.entry(category).or_default().extend(proofs);
        }
        all.model_overrides.extend(lens.model_overrides);
    }
    all
}

/// Lays one layer of attention over another.
pub fn add(below: &mut Attention, above: Attention) {
    below.weight = above.weight.or(below.weight);
    join(&mut below.extra_focus, &above.extra_focus);
    unite(&mut below.extra_categories, above.extra_categories);
}

/// The entries of a table for one participant: those for its role first, then those for its own name.
pub fn attention_of(table: &BTreeMap<String, Attention>, seat: &Participant) -> Attention {
    let mut all = Attention::default();
    for (_, attention) in addressed(table, seat) {
        add(&mut all, attention.clone());
    }
    all
}

/// The tier a table gives a participant, if any; its own name counts more than its role.
pub fn tier_of(table: &BTreeMap<String, Tier>, seat: &Participant) -> Option<Tier> {
    addressed(table, seat).last().map(|(_, tier)| **tier)
}

/// The entries that match this participant, the most exact last. The gatekeeper is matched by `gatekeeper` and by
/// `guardian`: a table written for the built-in team holds for a team with other names.
pub fn addressed<'a, T>(table: &'a BTreeMap<String, T>, seat: &Participant) -> Vec<(&'a String, &'a T)> {
    let mut names = vec![role_name(seat.role)];
    if seat.role != Role::Reviewer {
        names.push(first_of(seat.role));
    }
    names.push(&seat.archetype);
    let mut seen = BTreeSet::new();
    names.into_iter().filter(|name| seen.insert(*name)).filter_map(|name| table.get_key_value(name)).collect()
}

/// Every category there is beside the built-in ones, each once, in the order they were named.
pub fn categories(lens: &Lens) -> Vec<String> {
    let mut all = lens.finding_categories.clone();
    for attention in lens.attention.values() {
        unite(&mut all, attention.extra_categories.clone());
    }
    all
}

pub fn unite(all: &mut Vec<String>, more: Vec<String>) {
    for item in more {
        if !all.contains(&item) {
            all.push(item);
        }
    }
}

fn join(focus: &mut String, more: &str) {
    if !more.is_empty() && !focus.is_empty() {
        focus.push_str("; ");
    }
    focus.push_str(more);
}
