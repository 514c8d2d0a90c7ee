//! How much one step may change (PJ-30, PC-01), and the one exception (PJ-52). Counted from the real diff.

use crate::model::named::named;
use crate::model::{LimitMode, LoopPolicy, Risk};

pub use crate::model::StepSize as Size;

named! {
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Scope {
        Within = "within",
        /// A little over, in documentation of low risk: the Judge may allow it.
        Tolerated = "tolerated",
        Exceeded = "exceeded",
    }
}

/// An unnamed risk is not low.
pub fn scope(size: Size, risk: Option<Risk>, policy: &LoopPolicy) -> Scope {
    let holds = |lines: bool, files: bool| match policy.limit_mode {
        LimitMode::EitherSuffices => lines || files,
        LimitMode::BothRequired => lines && files,
    };
    let files = size.files <= policy.files;
    if holds(size.lines <= policy.lines, files) {
        return Scope::Within;
    }
    let nearly =
        u64::from(size.lines) * 100 < u64::from(policy.lines) * (100 + u64::from(policy.docs_tolerance));
    let lenient = size.docs_only && risk == Some(Risk::Low);
    if lenient && holds(nearly, files) { Scope::Tolerated } else { Scope::Exceeded }
}
