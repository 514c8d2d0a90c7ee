use serde::{Deserialize, Serialize};

/// How many tests an output counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct TestCounts {
    pub passed: u32,
    pub failed: u32,
    /// Left out, ignored, or expected to fail: they prove nothing.
    #[serde(default, skip_serializing_if = "is_none")]
    pub skipped: u32,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
fn is_none(count: &u32) -> bool {
    *count == 0
}

impl TestCounts {
    /// Those whose result is one.
    pub fn ran(self) -> u32 {
        self.passed.saturating_add(self.failed)
    }

    #[must_use]
    pub fn plus(self, more: TestCounts) -> TestCounts {
        TestCounts {
            passed: self.passed.saturating_add(more.passed),
            failed: self.failed.saturating_add(more.failed),
            skipped: self.skipped.saturating_add(more.skipped),
        }
    }
}
