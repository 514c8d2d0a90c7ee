//! Places where tests end the program, as a crash would: at once, leaving everything else as it is.
//!
//! `ARCHEFLOW_FAILPOINT=<place>:<n>` kills the program with SIGKILL the n-th time the place is passed;
//! `ARCHEFLOW_FAILPOINT_TRACE=<file>` writes down every place as it is passed; `ARCHEFLOW_FAILPOINT_PAUSE=<place>=<file>`
//! makes the file at that place and waits there until it is removed; `ARCHEFLOW_FAILPOINT_PANIC=<place>:<n>` makes
//! the thread panic there. `ARCHEFLOW_FAILPOINT_LIMITS=<file>` stops the clocks of all jobs until the file is there, so
//! that a test about a time limit says when it counts, and no other limit is reached however slow the machine is; the
//! file is removed when a job is asked to end. The limits of notifications count if the file is there when one is sent. `ARCHEFLOW_FAILPOINT_GRACE=endless` lets a job that was asked to end take
//! its time for ever, unless it is killed. `ARCHEFLOW_FAILPOINT_CLOCK=<seconds>` makes the wall clock of the program wrong by
//! that time. Only in builds with debug assertions; a release has no such door.

/// Every place, with what has and what has not happened there.
pub const PLACES: [(&str, &str); 34] = [
    ("recorded", "a batch of lines is on disk; nothing that follows from it is"),
    ("replica.sent", "a batch is on its way to the replica; its answer is not known"),
    ("replica.answered", "the replica has a batch; nothing that follows from it has begun"),
    ("projected", "the files that follow from a batch are written; observers have not heard of it"),
    ("observed", "index and progress are written; the batch's orders are not performed"),
    ("performed", "an order is carried out; its report is not recorded"),
    ("swept", "resuming: what the last session left running is ended"),
    ("caught_up", "resuming: files that follow from the log are made again; no open order is performed"),
    ("agent.housed", "an agent has its folder and its working copy; it is not started"),
    ("agent.ended", "an agent's process has ended; nothing says so"),
    ("agent.done", "`done.json` says that an agent's process has ended"),
    ("work.collected", "a Maker's work is taken in from its working copy; no ref keeps it"),
    ("work.published", "refs keep a Maker's work; nothing else says so"),
    ("merge.built", "a merge commit is built and kept"),
    ("tests.ran", "the test command has ended"),
    ("turn.taken", "landing on a remote: it says that this session may land; nothing else has happened"),
    ("land.begun", "landing: the target was seen at its old value; nothing holds it there"),
    ("land.prepared", "landing: the target ref is held at its old value; no file has moved"),
    ("land.moved", "landing: the user's files have moved; the ref has not"),
    ("land.committed", "landing: the ref has moved"),
    ("recover.settled", "recovering a landing: the user's files are moved on; the ref is not"),
    ("recover.done", "recovering a landing: files and ref are moved on"),
    ("loop.appended", "a block is in the cycle file of a loop; nothing else records it"),
    ("loop.kept", "a snapshot of the cycle file is in the archive; nothing else says so"),
    ("battery.ran", "the Judge's checks were run; their result is not recorded"),
    ("revert.built", "the commit that takes a landing back is built and kept"),
    ("rollback.files", "going back to the end of a phase: the artifacts are as they were; the branch is not"),
    ("import.refs", "importing a run: its commits and refs are here; its files are not"),
    ("import.files", "importing a run: its files are here; its journal is as it was"),
    ("forge.begun", "posting: a request is recorded as under way; it is not sent"),
    ("forge.sent", "posting: a request was answered; nothing records it"),
    ("cleaning.renamed", "cleaning up: a folder has its temporary name; nothing in it is removed"),
    (
        "cleaning.part_removed",
        "cleaning up: the artifacts of a run are removed; its refs and its journal are not",
    ),
    ("cleaning.unlisted", "cleaning up: a run is off the list; its journal is still there"),
];

/// Says that a place is passed.
#[cfg(debug_assertions)]
pub(crate) fn pass(place: &str) {
    use std::io::Write;
    use std::sync::atomic::{AtomicU64, Ordering};
    static PASSED: [AtomicU64; PLACES.len()] = [const { AtomicU64::new(0) }; PLACES.len()];
    let known = PLACES.iter().position(|(name, _)| *name == place).and_then(|at| PASSED.get(at));
    let Some(counter) = known else { panic!("the failpoint {place} is not in the list") };
    let times = counter.fetch_add(1, Ordering::SeqCst) + 1;
    if let Some(file) = std::env::var_os("ARCHEFLOW_FAILPOINT_TRACE")
        && let Ok(mut file) = std::fs::OpenOptions::new().create(true).append(true).open(file)
    {
        let _ = file.write_all(format!("{place}\n").as_bytes());
    }
    if let Ok(pause) = std::env::var("ARCHEFLOW_FAILPOINT_PAUSE")
        && let Some((_, file)) = pause.split_once('=').filter(|(wanted, _)| *wanted == place)
        && times == 1
        && std::fs::write(file, "").is_ok()
    {
        while std::path::Path::new(file).exists() {
            std::thread::sleep(std::time::Duration::from_millis(2));
        }
    }
    if std::env::var("ARCHEFLOW_FAILPOINT").is_ok_and(|wanted| wanted == format!("{place}:{times}")) {
        crate::platform::process::kill_self();
    }
    let panics = std::env::var("ARCHEFLOW_FAILPOINT_PANIC");
    let panics = panics.is_ok_and(|wanted| wanted == format!("{place}:{times}"));
    assert!(!panics, "asked to panic at {place}");
}

/// How often a job with stopped clocks checks whether they still are.
#[cfg(debug_assertions)]
const LOOK: std::time::Duration = std::time::Duration::from_millis(20);

/// While the clocks of jobs are stopped: when to look again.
#[cfg(debug_assertions)]
pub(crate) fn limits_wait() -> Option<std::time::Duration> {
    let file = std::env::var_os("ARCHEFLOW_FAILPOINT_LIMITS")?;
    (!std::path::Path::new(&file).exists()).then_some(LOOK)
}

/// The limit of one notification: none to speak of while the clocks are stopped.
#[cfg(debug_assertions)]
pub(crate) fn notification_limit(limit: std::time::Duration) -> std::time::Duration {
    if limits_wait().is_some() { ENDLESS } else { limit }
}

/// How long the end of the program waits for notifications, which have limits of their own.
#[cfg(debug_assertions)]
pub(crate) fn last_wait(limit: std::time::Duration) -> std::time::Duration {
    if std::env::var_os("ARCHEFLOW_FAILPOINT_LIMITS").is_some() { ENDLESS } else { limit }
}

#[cfg(debug_assertions)]
const ENDLESS: std::time::Duration = std::time::Duration::from_secs(3_600);

#[cfg(not(debug_assertions))]
pub(crate) fn notification_limit(limit: std::time::Duration) -> std::time::Duration {
    limit
}

#[cfg(not(debug_assertions))]
pub(crate) fn last_wait(limit: std::time::Duration) -> std::time::Duration {
    limit
}

/// A job is asked to end: no other is to reach a limit for the same reason.
#[cfg(debug_assertions)]
pub(crate) fn limit_reached() {
    if let Some(file) = std::env::var_os("ARCHEFLOW_FAILPOINT_LIMITS") {
        let _ = std::fs::remove_file(file);
    }
}

/// Whether a job that was asked to end is never killed for being slow.
#[cfg(debug_assertions)]
pub(crate) fn endless_grace() -> bool {
    std::env::var_os("ARCHEFLOW_FAILPOINT_GRACE").is_some_and(|word| word == "endless")
}

/// How far the wall clock is wrong.
#[cfg(debug_assertions)]
pub(crate) fn clock_error_ms() -> i64 {
    static ERROR: std::sync::OnceLock<i64> = std::sync::OnceLock::new();
    *ERROR.get_or_init(|| {
        let seconds = std::env::var("ARCHEFLOW_FAILPOINT_CLOCK").ok();
        seconds.and_then(|seconds| seconds.parse::<i64>().ok()).unwrap_or(0).saturating_mul(1_000)
    })
}

#[cfg(not(debug_assertions))]
pub(crate) fn clock_error_ms() -> i64 {
    0
}

#[cfg(not(debug_assertions))]
pub(crate) fn endless_grace() -> bool {
    false
}

#[cfg(not(debug_assertions))]
pub(crate) fn limits_wait() -> Option<std::time::Duration> {
    None
}

#[cfg(not(debug_assertions))]
pub(crate) fn limit_reached() {}

#[cfg(not(debug_assertions))]
pub(crate) fn pass(_: &str) {}
