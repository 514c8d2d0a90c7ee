//! What it costs to be asked for the version.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::{Bench, Goal, Row, Rows, best, ms};

const SPAWNS: u32 = 200;

pub(super) fn measure(bench: &Bench) -> Rows {
    let start = |program: &std::path::Path, args: &[&str]| {
        best(SPAWNS, || {
            let begun = Instant::now();
            let status = Command::new(program).args(args).stdin(Stdio::null()).stdout(Stdio::null()).status();
            status.map(|_| begun.elapsed())
        })
    };
    let floor = start("/bin/true".as_ref(), &[])?;
    let before = children_cpu()?;
    let ours = start(&bench.program, &["--version"])?;
    let cpu = children_cpu()?.saturating_sub(before) / SPAWNS;
    Ok(vec![
        Row {
            what: "start-up: --version against /bin/true".to_owned(),
            floor: Some(ms(floor)),
            ours: ms(ours),
            unit: "ms",
            goal: Goal::Times(4.0),
        },
        Row {
            what: "start-up: CPU time of --version".to_owned(),
            floor: None,
            ours: ms(cpu),
            unit: "ms",
            goal: Goal::AtMost(2.0),
        },
    ])
}

/// The CPU time of all children that have been waited for, from the kernel's own account.
pub(super) fn children_cpu() -> std::io::Result<Duration> {
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    let after_name = stat.rsplit(')').next().unwrap_or_default();
    let ticks: u64 =
        after_name.split_whitespace().skip(13).take(2).filter_map(|n| n.parse::<u64>().ok()).sum();
    let per_second = rustix::param::clock_ticks_per_second();
    Ok(Duration::from_nanos(ticks * 1_000_000_000 / per_second))
}
