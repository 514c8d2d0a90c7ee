//! The `nats-server` of all tests that need one.

use std::path::{Path, PathBuf};

/// Downloaded by `cargo xtask test tools`.
pub(crate) fn server_program() -> PathBuf {
    let cache = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/nats-server/bin/nats-server");
    let target = std::env::var_os("CARGO_TARGET_DIR")
        .map(|target| Path::new(&target).join("nats-server/bin/nats-server"));
    let named = std::env::var_os("ARCHEFLOW_NATS_SERVER").map(PathBuf::from);
    let program = named.or(target).unwrap_or(cache);
    assert!(program.is_file(), "nats-server is MISSING at {}: cargo xtask test tools", program.display());
    program.canonicalize().unwrap()
}
