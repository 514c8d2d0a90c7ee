//! The numbers shadows, budgets and memory are judged by. Part of the policy, so frozen into the first line of a log.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::thresholds::{
    AnalysisParalysis, Bureaucrat, EchoChamber, FalseAlarm, OverArchitect, Paralytic, Paranoid, RabbitHole,
    Rogue, ScopeCreep, TunnelVision,
};
use super::{Money, Tier};

/// Thresholds of the archetype shadows (AF-130..AF-138).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Shadows {
    /// `ARCHEFLOW_SHADOWS=off` and `shadows.enabled: false`.
    pub enabled: bool,
    /// So many detections of one shadow in one cycle are a hard break (CL-03).
    pub strikes_in_cycle: u32,
    /// So many distinct shadows in one cycle are told to the user.
    pub distinct_in_cycle: u32,
    /// And break the run.
    pub distinct_breaks: bool,
    /// Three detections with no clean check between are a hard break too.
    pub consecutive_break: bool,
    pub rabbit_hole: RabbitHole,
    pub over_architect: OverArchitect,
    pub rogue: Rogue,
    pub paranoid: Paranoid,
    pub paralytic: Paralytic,
    pub false_alarm: FalseAlarm,
    pub bureaucrat: Bureaucrat,
}

impl Default for Shadows {
    fn default() -> Self {
        Shadows {
            enabled: true,
            strikes_in_cycle: 3,
            distinct_in_cycle: 3,
            distinct_breaks: false,
            consecutive_break: true,
            rabbit_hole: RabbitHole::default(),
            over_architect: OverArchitect::default(),
            rogue: Rogue::default(),
            paranoid: Paranoid::default(),
            paralytic: Paralytic::default(),
            false_alarm: FalseAlarm::default(),
            bureaucrat: Bureaucrat::default(),
        }
    }
}

/// Thresholds of the system shadows (AF-140..AF-147).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SystemShadows {
    pub tunnel_vision: TunnelVision,
    pub echo_chamber: EchoChamber,
    /// So many things fixed that nobody had to fix, while a CRITICAL stayed open (AF-143).
    pub gold_plating: Option<u32>,
    pub analysis_paralysis: AnalysisParalysis,
    /// So many lessons that were told and came back as findings (AF-145).
    pub cargo_cult: Option<u32>,
    /// Words a finding has to share with a lesson to be what it warned of, in percent of the shorter.
    pub cargo_cult_percent: u32,
    /// So many WARNINGs left open by runs one after the other (AF-146).
    pub broken_window: Option<u32>,
    pub scope_creep: ScopeCreep,
}

impl Default for SystemShadows {
    fn default() -> Self {
        SystemShadows {
            tunnel_vision: TunnelVision::default(),
            echo_chamber: EchoChamber::default(),
            gold_plating: Some(1),
            analysis_paralysis: AnalysisParalysis::default(),
            cargo_cult: Some(1),
            cargo_cult_percent: 50,
            broken_window: Some(3),
            scope_creep: ScopeCreep::default(),
        }
    }
}

/// What a run may cost (AF-151, BX-24).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Costs {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub budget_usd: Option<Money>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub per_agent_usd: Option<Money>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub daily_usd: Option<Money>,
    /// Percent of a limit from which the user is warned.
    pub warn_at_percent: u32,
    /// From here on reviewers get the next cheaper tier.
    pub downgrade_at_percent: u32,
    /// From here on no other cycle begins.
    pub finish_at_percent: u32,
    /// An agent that says one attempt cost more than this is not believed.
    pub absurd_usd: Money,
    /// What each tier costs, as it was when the run began.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub prices: BTreeMap<Tier, Price>,
}

impl Default for Costs {
    fn default() -> Self {
        Costs {
            budget_usd: None,
            per_agent_usd: None,
            daily_usd: None,
            warn_at_percent: 50,
            downgrade_at_percent: 80,
            finish_at_percent: 95,
            absurd_usd: Money(1_000_000_000),
            prices: BTreeMap::new(),
        }
    }
}

/// Dollars per million tokens.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct Price {
    pub model: String,
    pub input: Money,
    pub output: Money,
    pub cache_read: Money,
    pub cache_write: Money,
    /// Tokens a prompt and its answer may have together.
    pub context_window: u64,
}

/// How much of the past is remembered and told (BX-30, AF-112, AF-156, AF-175).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Memory {
    /// Off: nothing is read, nothing is written.
    pub enabled: bool,
    /// A lesson seen in so many runs is told where its domain and its archetype fit.
    pub inject_threshold: u32,
    /// And from this many on, to everybody.
    pub always_threshold: u32,
    /// Lessons in one brief.
    pub max_lessons: u32,
    /// A lesson not seen for so many runs loses one.
    pub decay_after_runs: u32,
    /// Shared words, in percent of the shorter text, from which two texts speak of the same thing (CL-18).
    pub match_percent: u32,
    /// And from which a lesson that was told did not help.
    pub ineffective_percent: u32,
    /// A lesson that did not help so often is archived (AF-145).
    pub ineffective_limit: u32,
    /// A finding open for so many cycles counts for more (AF-112).
    pub persistent_cycles: u32,
    /// What it counts.
    pub persistent_boost: u32,
    /// The user's own lessons, which lie outside every repository, are told as well.
    pub share: bool,
}

impl Default for Memory {
    fn default() -> Self {
        Memory {
            enabled: true,
            inject_threshold: 2,
            always_threshold: 5,
            max_lessons: 10,
            decay_after_runs: 10,
            match_percent: 50,
            ineffective_percent: 30,
            ineffective_limit: 2,
            persistent_cycles: 2,
            persistent_boost: 2,
            share: false,
        }
    }
}

/// AF-150 and AF-156.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Boundaries {
    /// Work between two checkpoints.
    pub checkpoint_ms: u64,
    pub checkpoint_cycles: u32,
    /// More lessons than this in one brief are cut to [`Boundaries::lessons_kept`].
    pub lessons_at_most: u32,
    pub lessons_kept: u32,
    /// More findings than this in the feedback are told as [`Boundaries::themes`] themes.
    pub findings_at_most: u32,
    pub themes: u32,
    /// A brief above this share of the context window loses its examples.
    pub prompt_percent: u32,
    /// Cycles in a row with more findings than the one before that stop the run (CL-26).
    pub rising_cycles: u32,
}

impl Default for Boundaries {
    fn default() -> Self {
        Boundaries {
            checkpoint_ms: 45 * 60_000,
            checkpoint_cycles: 3,
            lessons_at_most: 15,
            lessons_kept: 5,
            findings_at_most: 20,
            themes: 5,
            prompt_percent: 50,
            rising_cycles: 2,
        }
    }
}
