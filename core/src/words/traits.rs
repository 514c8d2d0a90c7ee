//! What the text of an answer is like, counted when it is read. Shadows are told by these numbers, so the log has
//! to hold them: the text itself is an artifact.

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct Traits {}

impl Traits {
    pub fn is_plain(&self) -> bool {
        *self == Traits::default()
    }
}
