//! Which tier a role gets (AF-014): the first of four settings that is given, else the archetype's own.

use crate::model::{Models, Tier, Workflow};

pub fn resolve(models: &Models, workflow: Workflow, archetype: &str, own: Tier) -> Tier {
    let of_workflow = models.workflows.get(&workflow);
    of_workflow
        .and_then(|table| table.archetypes.get(archetype).copied())
        .or_else(|| of_workflow.and_then(|table| table.default))
        .or_else(|| models.archetypes.get(archetype).copied())
        .or(models.default)
        .unwrap_or(own)
}
