//! How many extra documents an agent may have, and which (PJ-31). Names are those of `docs/agent_docs`, without ending.

use crate::model::{LoopPolicy, Speaker};

/// The planning documents, in the order they are given.
pub const PLANNING: [&str; 4] = ["CODEBASE", "GOALS", "UX_PRINCIPLES", "DECISIONS"];

/// Documents about tests and quality, by their names: what a Judge is given by itself.
pub fn is_of_quality(doc: &str) -> bool {
    let doc = doc.to_lowercase();
    let planning = PLANNING.iter().any(|known| known.eq_ignore_ascii_case(&doc));
    !planning && ["test", "quality", "security", "style", "lint"].iter().any(|word| doc.contains(word))
}

/// Why this agent may not have these documents; nothing where it may.
pub fn refused(speaker: Speaker, docs: &[&str], policy: &LoopPolicy) -> Option<String> {
    let planning = |doc: &&str| PLANNING.iter().any(|known| known.eq_ignore_ascii_case(doc));
    let wrong = match speaker {
        Speaker::Human => return None,
        Speaker::Planner => docs.iter().find(|doc| !planning(doc)),
        Speaker::Actor => docs.first(),
        Speaker::Judge => docs.iter().find(|doc| planning(doc)),
    };
    if let Some(doc) = wrong {
        return Some(format!("{doc} is not for the {}", speaker.name()));
    }
    let many = u32::try_from(docs.len()).unwrap_or(u32::MAX) > policy.docs;
    many.then(|| format!("{} documents, {} at most", docs.len(), policy.docs))
}
