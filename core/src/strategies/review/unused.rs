//! Settings without effect on a review. Nothing lands, no test command runs and there is no Maker, so a repository's
//! values for them need no approval where somebody reviews.

/// Whether a review reads this setting. Every setting that is not listed here counts as read.
pub fn uses(key: &str) -> bool {
    const ONE: [&str; 7] = [
        "test_command",
        "extra_cycles",
        "confidence_floor",
        "limits.tests_seconds",
        "limits.maker_minutes",
        "limits.mini_explorer_minutes",
        "retries.moved_base",
    ];
    const GROUPS: [&str; 6] =
        ["max_cycles.", "git.", "hooks.pre-merge.", "hooks.post-merge.", "sprint.", "loop."];
    !ONE.contains(&key) && !GROUPS.iter().any(|group| key.starts_with(group))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::rows;

    #[test]
    fn u_01_what_a_review_never_runs_needs_no_approval() {
        for key in
            ["test_command", "hooks.pre-merge.command", "git.auto_merge", "loop.linter", "sprint.slots"]
        {
            assert!(!uses(key), "{key}");
        }
        for key in ["hooks.run-start.command", "hooks.run-complete.command", "agents.default", "agents.env"] {
            assert!(uses(key), "{key}");
        }
        let known = |key: &str| rows().any(|row| row.path == key);
        for key in ["test_command", "limits.tests_seconds", "limits.maker_minutes", "retries.moved_base"] {
            assert!(known(key), "{key} is no setting any more");
        }
    }
}
