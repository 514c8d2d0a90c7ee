//! The most memory the program itself held in a run.

use std::fs::create_dir;
use std::process::Stdio;
use std::thread::sleep;
use std::time::Duration;

use super::{Bench, Goal, Row, Rows, engine};

pub(super) fn measure(bench: &Bench) -> Rows {
    let repo = bench.folder.path().join("repo-memory");
    engine::sample(&repo)?;
    let folder = bench.folder.path().join("seen-memory");
    create_dir(&folder)?;
    let mut child =
        engine::command(bench, &repo, &folder).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
    let mut peak = 0;
    while child.try_wait()?.is_none() {
        // The kernel keeps the high-water mark; the last look before the end has it.
        peak = peak.max(high_water_kb(child.id()).unwrap_or(0));
        sleep(Duration::from_millis(2));
    }
    if peak == 0 {
        return Err("the kernel told no memory for the run".into());
    }
    #[expect(clippy::cast_precision_loss, reason = "a size for people")]
    let ours = peak as f64 * 1024.0 / 1e6;
    Ok(vec![Row {
        what: "peak memory of a run".to_owned(),
        floor: None,
        ours,
        unit: "MB",
        goal: Goal::AtMost(12.0),
    }])
}

pub(super) fn high_water_kb(pid: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.split_whitespace().next()?.parse().ok()
}
