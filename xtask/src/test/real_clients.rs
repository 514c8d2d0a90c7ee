//! The steps with real clients.

use std::path::Path;

use super::{Count, Done, counted};
use crate::clients;

pub(super) fn fetch(root: &Path, _: &mut Count) -> Result<Done, String> {
    clients::fetch(root).map(|()| Done::Well)
}

/// The tests that plain `cargo test` ignores, but for those that need something else. Two at a time: a client is a
/// large program, and more of them than cores only wait for each other.
///
/// Not in memory: Codex starts its helper through bubblewrap, with an empty `/dev`. A bubblewrap before 0.9 that is
/// installed on the machine then does not find the helper below `/dev/shm`, and every edit is refused.
pub(super) fn matrix(root: &Path, count: &mut Count) -> Result<Done, String> {
    let words =
        ["cargo", "test", "--package", "archeflow", "--test", "e2e", "--no-fail-fast", "--", "--ignored"];
    let which = [
        "--test-threads=2",
        "--skip",
        "in_a_browser",
        "--skip",
        "in_an_editor",
        "--skip",
        "with_a_collector",
        "--skip",
        "a_real_small_model",
        // A quarter of an hour on its own.
        "--skip",
        "intervals_cover_the_truth",
        "--skip",
        "pictures_of",
    ];
    counted(root, &[&words[..], &which].concat(), &[], count)
}

/// One path of each client, protocol and plugin. In memory as little as the rest of the matrix.
pub(super) fn smoke(root: &Path, count: &mut Count) -> Result<Done, String> {
    let words =
        ["cargo", "test", "--package", "archeflow", "--test", "e2e", "--no-fail-fast", "--", "--ignored"];
    let which = ["goes_through_everything", "mcp_clients::", "plugin_clients::", "--test-threads=2"];
    counted(root, &[&words[..], &which].concat(), &[("ARCHEFLOW_CASE", "a whole run lands")], count)
}
