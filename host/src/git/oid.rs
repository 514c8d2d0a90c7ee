//! The name of a git object.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A full object name in lower-case hexadecimal: 40 digits for SHA-1, 64 for SHA-256.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ObjectId(String);

/// The text is not the full name of an object.
#[derive(Debug, thiserror::Error)]
#[error("`{0}` is not a full object name")]
pub struct NotAnOid(String);

impl ObjectId {
    /// Reads an object name; abbreviations are refused.
    pub fn parse(text: &[u8]) -> Result<ObjectId, NotAnOid> {
        let right = matches!(text.len(), 40 | 64)
            && text.iter().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        let text = String::from_utf8_lossy(text).into_owned();
        if right { Ok(ObjectId(text)) } else { Err(NotAnOid(text)) }
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The all-zero name that means "no object" to git.
    pub fn is_zero(&self) -> bool {
        self.0.bytes().all(|byte| byte == b'0')
    }

    /// The all-zero name in the same hash format.
    pub(crate) fn zero_like(&self) -> ObjectId {
        ObjectId("0".repeat(self.0.len()))
    }
}

impl fmt::Display for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl TryFrom<String> for ObjectId {
    type Error = NotAnOid;

    fn try_from(text: String) -> Result<ObjectId, NotAnOid> {
        ObjectId::parse(text.as_bytes())
    }
}

impl From<ObjectId> for String {
    fn from(oid: ObjectId) -> String {
        oid.0
    }
}
