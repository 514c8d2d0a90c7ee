//! When a virtue is pushed too far: what can be seen, and what is done about it.

use serde::{Deserialize, Serialize};

use super::{Archetype, Role, Shadow};

/// Stands where an archetype would, for a shadow of the process.
pub const SYSTEM: &str = "system";

/// The shadows an archetype can fall into. On the wire one is a name, several are a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "OneOrSeveral", into = "OneOrSeveral")]
pub struct ShadowSet(pub Vec<Shadow>);

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum OneOrSeveral {
    One(Shadow),
    Several(Vec<Shadow>),
}

impl From<OneOrSeveral> for ShadowSet {
    fn from(wire: OneOrSeveral) -> ShadowSet {
        match wire {
            OneOrSeveral::One(shadow) => ShadowSet(vec![shadow]),
            OneOrSeveral::Several(shadows) => ShadowSet(shadows),
        }
    }
}

impl From<ShadowSet> for OneOrSeveral {
    fn from(ShadowSet(shadows): ShadowSet) -> OneOrSeveral {
        match shadows.as_slice() {
            [shadow] => OneOrSeveral::One(*shadow),
            _ => OneOrSeveral::Several(shadows),
        }
    }
}

impl From<Shadow> for ShadowSet {
    fn from(shadow: Shadow) -> ShadowSet {
        ShadowSet(vec![shadow])
    }
}

impl ShadowSet {
    /// The shadows that an archetype's header names, each with all others of the archetype it belongs to. If the header
    /// names none the program knows: those its role is prone to.
    pub fn of(archetype: &Archetype) -> ShadowSet {
        let named = archetype.shadow.split(',').filter_map(Shadow::parse);
        let mut families: Vec<&str> = named.map(|shadow| shadow.about().archetype).collect();
        if families.is_empty() {
            families.extend(match archetype.role {
                Role::Explorer => Some("explorer"),
                Role::Creator => Some("creator"),
                Role::Maker => Some("maker"),
                Role::Gatekeeper => Some("guardian"),
                Role::Reviewer => None,
            });
        }
        let belongs = |shadow: &Shadow| families.contains(&shadow.about().archetype);
        ShadowSet(Shadow::ALL.iter().copied().filter(belongs).collect())
    }
}

/// A shadow of the process that belongs to no single archetype.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SystemShadow {
    TunnelVision,
    EchoChamber,
    GoldPlating,
    AnalysisParalysis,
    CargoCult,
    BrokenWindow,
    ScopeCreep,
}

impl SystemShadow {
    pub const ALL: [SystemShadow; 7] = [
        SystemShadow::TunnelVision,
        SystemShadow::EchoChamber,
        SystemShadow::GoldPlating,
        SystemShadow::AnalysisParalysis,
        SystemShadow::CargoCult,
        SystemShadow::BrokenWindow,
        SystemShadow::ScopeCreep,
    ];

    pub fn name(self) -> &'static str {
        match self {
            SystemShadow::TunnelVision => "tunnel_vision",
            SystemShadow::EchoChamber => "echo_chamber",
            SystemShadow::GoldPlating => "gold_plating",
            SystemShadow::AnalysisParalysis => "analysis_paralysis",
            SystemShadow::CargoCult => "cargo_cult",
            SystemShadow::BrokenWindow => "broken_window",
            SystemShadow::ScopeCreep => "scope_creep",
        }
    }

    pub fn parse(word: &str) -> Option<SystemShadow> {
        SystemShadow::ALL.into_iter().find(|shadow| shadow.name() == word)
    }
}

/// One trigger that fired: what was measured, and the number it went past.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sighting {
    /// A stable word in snake case, the same as the threshold's key.
    pub trigger: String,
    pub measured: u64,
    pub threshold: u64,
    /// The sentence for people, with both numbers.
    pub detail: String,
}

/// What a detection leads to. The first three are the escalation steps (AF-138, AF-147).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ShadowAction {
    /// Reported, and nothing else.
    Note,
    Correct,
    Replace,
    /// A person decides.
    Escalate,
    /// A hard break.
    Break,
}

impl ShadowAction {
    pub fn name(self) -> &'static str {
        match self {
            ShadowAction::Note => "note",
            ShadowAction::Correct => "correct",
            ShadowAction::Replace => "replace",
            ShadowAction::Escalate => "escalate",
            ShadowAction::Break => "break",
        }
    }
}
