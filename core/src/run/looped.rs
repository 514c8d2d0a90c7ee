//! A loop, as its log tells it so far. It remembers; what follows is decided elsewhere.

use crate::event::LoopOpened;
use crate::words::LoopState;

use super::Run;

/// What is remembered of a loop.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Looped {
    pub opened: LoopOpened,
}

impl Run {
    /// Where a loop is; idle where this is none.
    pub fn loop_state(&self) -> LoopState {
        LoopState::Idle
    }
}
