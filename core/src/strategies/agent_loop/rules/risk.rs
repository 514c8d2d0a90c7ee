//! Whether a person must approve before the Actor starts (PJ-21, PJ-61, MX-03, MX-06, PC-13).

use crate::model::named::named;
use crate::model::{LoopPolicy, Risk};

named! {
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Gate {
        Open = "open",
        /// It continues, with a notice.
        Told = "told",
        Ask = "ask",
    }
}

/// The higher of the Planner's risk and that of the kinds of work. An unnamed risk is not low.
pub fn of(said: Option<Risk>, kinds: &[&str], policy: &LoopPolicy) -> Risk {
    let risks = &policy.risks;
    let holds = |list: &[String], kind: &str| list.iter().any(|known| known.eq_ignore_ascii_case(kind));
    let of_kind = |kind: &&str| match kind {
        kind if holds(&risks.high, kind) => Risk::High,
        kind if holds(&risks.low, kind) => Risk::Low,
        _ => Risk::Medium,
    };
    said.unwrap_or(Risk::Medium).max(kinds.iter().map(of_kind).max().unwrap_or(Risk::Low))
}

/// `approved`: a person approved this very plan. A low confidence is a question as well.
pub fn gate(risk: Risk, confidence: Option<u32>, approved: bool, policy: &LoopPolicy) -> Gate {
    let unsure = confidence.is_some_and(|confidence| confidence < policy.confidence_floor);
    match risk {
        _ if approved => Gate::Open,
        Risk::High => Gate::Ask,
        Risk::Low | Risk::Medium if unsure => Gate::Ask,
        Risk::Medium => Gate::Told,
        Risk::Low => Gate::Open,
    }
}
