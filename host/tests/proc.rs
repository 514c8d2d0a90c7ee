//! Supervision of child processes against children that misbehave in every way we know of.
//!
//! Rows through one door: `job` makes a job of a shell script, `check` runs it and compares, and every test ends
//! with no tagged process alive. The numbers in the names are those of the fault matrix. Which process is whose
//! depends on what else runs in this process, so the tests take turns.

#![expect(clippy::unwrap_used, reason = "a failed step fails the test")]

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use archeflow_host::platform::children;
use archeflow_host::proc::{
    self, Cause, Job, JobEnd, JobLimits, NotStarted, Sink, Stream, TAG, Watch, become_subreaper, finish_all,
    kill_leftovers,
};
use rustix::process::{Pid, Signal, kill_process};

const MS: Duration = Duration::from_millis(1);

/// Longer than anything here takes on a machine that is ever so busy: reached only by what is broken.
const LONG: Duration = Duration::from_secs(600);

fn limits() -> JobLimits {
    JobLimits { silence: LONG, total: LONG, grace: 200 * MS, drain: 200 * MS }
}

fn job(tag: &str, script: &str) -> Job {
    Job {
        program: "sh".into(),
        args: vec!["-c".into(), script.into()],
        env: vec![("PATH".into(), std::env::var_os("PATH").unwrap())],
        cwd: std::env::temp_dir(),
        stdin: Vec::new(),
        stdout: Sink::memory(),
        stderr: Sink::memory(),
        limits: limits(),
        tag: unique(tag),
        sandbox: None,
    }
}

fn unique(tag: &str) -> String {
    format!("test-{}-{tag}/", std::process::id())
}

fn run(job: Job) -> JobEnd {
    proc::run(job, &Watch::new(), &mut |_, _| {})
}

/// One test at a time; whoever panicked before has nothing to say here.
fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    let guard = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    become_subreaper();
    guard
}

/// The processes that are alive and satisfy a condition on one of their files in `/proc`.
fn alive(file: &str, condition: impl Fn(&[u8]) -> bool) -> Vec<i32> {
    let numbers = fs::read_dir("/proc").unwrap();
    let numbers = numbers.filter_map(|item| item.ok()?.file_name().to_str()?.parse::<i32>().ok());
    let is_alive = |number: &i32| {
        let stat = fs::read_to_string(format!("/proc/{number}/stat")).unwrap_or_default();
        stat.rsplit_once(')').is_some_and(|(_, rest)| !rest.starts_with(" Z"))
    };
    let fits = |number: &i32| fs::read(format!("/proc/{number}/{file}")).is_ok_and(|bytes| condition(&bytes));
    numbers.filter(fits).filter(is_alive).collect()
}

fn tagged(tag: &str) -> Vec<i32> {
    let wanted = format!("{TAG}={tag}");
    alive("environ", |bytes| bytes.split(|&byte| byte == 0).any(|entry| entry.starts_with(wanted.as_bytes())))
}

fn assert_no_survivors() {
    let all = tagged(&format!("test-{}-", std::process::id()));
    assert!(all.is_empty(), "alive: {all:?}");
}

fn with_words(words: &str) -> Vec<i32> {
    let wanted: Vec<u8> = words.split(' ').flat_map(|word| [word.as_bytes(), b"\0"].concat()).collect();
    alive("cmdline", |bytes| bytes == wanted)
}

/// A script, what to change of the job, and what is expected: the cause, the leftovers and stdout. Scripts have words to
/// wait with, so that none of them guesses how long another process takes.
struct Row {
    name: &'static str,
    script: &'static str,
    change: fn(&mut Job),
    cause: Cause,
    leftovers: usize,
    stdout: &'static str,
}

/// `made`: until the file `$f` is there. `gone`: until the process that wrote its number into `$f` has ended.
const WORDS: &str = "
    f=$(mktemp -u); export f
    made() { until [ -s \"$f\" ]; do sleep 0.01; done; rm \"$f\"; }
    gone() { until [ -s \"$f\" ]; do sleep 0.01; done; while [ -e /proc/$(cat \"$f\")/exe ]; do sleep 0.01; done; rm \"$f\"; }
";

const ROW: Row =
    Row { name: "", script: "", change: |_| {}, cause: Cause::Exited(0), leftovers: 0, stdout: "" };

fn check(rows: &[Row]) {
    let _turn = turn();
    for row in rows {
        let mut job = job(row.name, &format!("{WORDS}{}", row.script));
        (row.change)(&mut job);
        let ended = run(job);
        let text = String::from_utf8_lossy(&ended.stdout.bytes);
        assert_eq!(ended.cause, row.cause, "{}", row.name);
        assert_eq!(ended.leftovers, row.leftovers, "{}", row.name);
        assert_eq!(text, row.stdout, "{}", row.name);
        assert!(ended.duration < LONG, "{}: {:?}", row.name, ended.duration);
        assert_no_survivors();
    }
}

#[test]
fn m_c2_m_c3_m_c7_the_leader_ends_by_itself() {
    check(&[
        Row { name: "c2", script: "exit 1", cause: Cause::Exited(1), ..ROW },
        Row { name: "c3", script: "exit 0", ..ROW },
        Row { name: "c7-segv", script: "kill -SEGV $$", cause: Cause::Signaled(11), ..ROW },
        Row {
            name: "c7-kill",
            script: "echo so far; kill -KILL $$",
            cause: Cause::Signaled(9),
            stdout: "so far\n",
            ..ROW
        },
        Row { name: "code", script: "exit 255", cause: Cause::Exited(255), ..ROW },
        Row { name: "tag", script: "echo ${ARCHEFLOW_TAG#*-*-}", stdout: "tag/\n", ..ROW },
        Row { name: "core", script: "ulimit -c", stdout: "0\n", ..ROW },
    ]);
}

#[test]
fn m_c8_m_c10_m_c11_m_c15_limits_strike() {
    let silent: fn(&mut Job) = |job| job.limits.silence = 300 * MS;
    // Where something is to be heard first, there is time for it.
    let patient: fn(&mut Job) = |job| {
        job.limits.silence = 5_000 * MS;
        job.limits.grace = LONG;
    };
    let short: fn(&mut Job) = |job| job.limits.total = 5_000 * MS;
    check(&[
        Row {
            name: "c8",
            script: "echo a; exec sleep 999",
            change: patient,
            cause: Cause::Silent,
            stdout: "a\n",
            ..ROW
        },
        Row {
            name: "c8-closed",
            script: "exec >&- 2>&-; sleep 999",
            change: silent,
            cause: Cause::Silent,
            ..ROW
        },
        Row {
            name: "c10",
            script: "printf xxxxx; while :; do printf y >&2; sleep 0.1; done",
            change: short,
            cause: Cause::TooLong,
            stdout: "xxxxx",
            ..ROW
        },
        Row {
            name: "c11",
            script: "trap '' TERM INT; (trap '' TERM INT; sleep 999) & while :; do sleep 1; done",
            change: silent,
            cause: Cause::Silent,
            ..ROW
        },
        Row { name: "c15", script: "kill -STOP $$", change: silent, cause: Cause::Silent, ..ROW },
        Row {
            name: "c15-ignoring",
            script: "trap '' TERM; kill -STOP $$; sleep 999",
            change: silent,
            cause: Cause::Silent,
            ..ROW
        },
        Row {
            name: "asked",
            script: "trap 'echo bye; exit 3' TERM; echo hello; sleep 999 & wait",
            change: patient,
            cause: Cause::Silent,
            stdout: "hello\nbye\n",
            ..ROW
        },
    ]);
}

#[test]
fn m_c12_nothing_stays_behind() {
    check(&[
        Row { name: "plain", script: "sleep 999 & echo x", leftovers: 1, stdout: "x\n", ..ROW },
        Row { name: "quiet", script: "sleep 999 >/dev/null 2>&1 &", leftovers: 1, ..ROW },
        Row {
            name: "ignoring",
            script: "trap '' TERM; (sleep 999 & echo x > $f; wait) >/dev/null 2>&1 & made",
            leftovers: 2,
            ..ROW
        },
        Row { name: "setsid", script: "setsid sleep 999 >/dev/null 2>&1 & sleep 0.1", leftovers: 1, ..ROW },
        Row {
            name: "double-fork",
            script: "(setsid sh -c 'sleep 999 & echo $$ > $f' >/dev/null 2>&1 &); gone",
            leftovers: 1,
            ..ROW
        },
        Row {
            name: "cleared",
            script: "env -i setsid sleep 999 >/dev/null 2>&1 & sleep 0.1",
            leftovers: 1,
            ..ROW
        },
        Row {
            name: "tree",
            script: "setsid sh -c 'env -i sleep 999 & sleep 999 & sleep 999 & echo x > $f; wait' >/dev/null 2>&1 & made",
            leftovers: 4,
            ..ROW
        },
        Row {
            name: "stopped",
            script: "setsid sh -c 'kill -STOP $$' >/dev/null 2>&1 & sleep 0.1",
            leftovers: 1,
            ..ROW
        },
        Row {
            name: "forced",
            script: "setsid sleep 999 & sleep 999 & sleep 999",
            change: |job| job.limits.silence = 2_000 * MS,
            cause: Cause::Silent,
            leftovers: 1,
            ..ROW
        },
        Row { name: "ended", script: "(setsid sh -c 'echo $$ > $f' &); gone", ..ROW },
    ]);
}

/// In a container the session of the program is one from outside, which has no number inside.
#[test]
#[expect(clippy::print_stderr, reason = "what was not tested is said")]
fn m_c12_nothing_stays_behind_in_a_container_either() {
    const CONTAINER: [&str; 6] =
        ["--user", "--map-root-user", "--pid", "--fork", "--mount-proc", "--kill-child"];
    let contained = |program: &std::path::Path, args: &[&str]| {
        let mut command = Command::new("unshare");
        command.args(CONTAINER).arg(program).args(args).stdin(Stdio::null());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = children::spawn(&mut command).ok()?;
        let (mut out, mut err) = (String::new(), String::new());
        child.stdout.take()?.read_to_string(&mut out).ok()?;
        child.stderr.take()?.read_to_string(&mut err).ok()?;
        Some((children::wait(&mut child).ok()?.success(), out + &err))
    };
    let _turn = turn();
    if contained("true".as_ref(), &[]).is_none_or(|(works, _)| !works) {
        eprintln!("skipped: this machine does not let us make a process namespace");
        return;
    }
    let me = std::env::current_exe().unwrap();
    let (passed, said) = contained(&me, &["--exact", "m_c12_nothing_stays_behind"]).unwrap();
    assert!(passed && said.contains("1 passed"), "{said}");
}

/// Every member forks its successor and leaves, some into a session of its own, so that every walk comes too late.
#[test]
fn m_c13_a_fork_bomb_in_miniature_ends() {
    let _turn = turn();
    for trial in 0..trials() {
        let script = "
            chain() { chain & }
            (chain) >/dev/null 2>&1 &
            export S='setsid sh -c \"$S\" >/dev/null 2>&1 &'
            sh -c \"$S\"
            setsid sh -c 'for i in 1 2 3 4 5 6 7 8; do (for j in 1 2 3 4; do sleep 999 & done; sleep 999) & done; wait' >/dev/null 2>&1 &
            setsid sh -c 'chain() { chain & }; chain' >/dev/null 2>&1 &
            sleep 0.03";
        let ended = run(job(&format!("c13-{trial}"), script));
        assert_eq!(ended.cause, Cause::Exited(0));
        assert_no_survivors();
    }
}

/// A long watch for once: `PROC_TRIALS=200`.
fn trials() -> u32 {
    std::env::var("PROC_TRIALS").ok().and_then(|number| number.parse().ok()).unwrap_or(20)
}

#[test]
fn m_c16_input_is_given_and_ends() {
    let ten: fn(&mut Job) = |job| job.stdin = vec![b'x'; 10_000_000];
    check(&[
        Row { name: "c16-none", script: "cat; echo end", stdout: "end\n", ..ROW },
        Row {
            name: "c16-some",
            script: "cat; echo end",
            change: |job| job.stdin = b"in\n".into(),
            stdout: "in\nend\n",
            ..ROW
        },
        Row { name: "c16-all", script: "wc -c", change: ten, stdout: "10000000\n", ..ROW },
        Row { name: "c16-never", script: "echo done", change: ten, stdout: "done\n", ..ROW },
        Row {
            name: "c16-closed",
            script: "exec <&-; sleep 0.1; echo done",
            change: ten,
            stdout: "done\n",
            ..ROW
        },
        Row { name: "c16-part", script: "head -c 70000 | wc -c", change: ten, stdout: "70000\n", ..ROW },
        Row {
            name: "c16-unread",
            script: "sleep 999",
            change: |job| {
                job.stdin = vec![b'x'; 10_000_000];
                job.limits.silence = 300 * MS;
            },
            cause: Cause::Silent,
            ..ROW
        },
    ]);
}

/// Input and output larger than any pipe at the same time: neither side may wait for the other.
#[test]
fn m_c16_an_echo_of_any_bytes_is_exact() {
    let _turn = turn();
    let bytes: Vec<u8> = (0..3_000_000_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let all: Vec<u8> = (0..=255).collect();
    for given in [bytes, all, vec![0], b"\xff\xfe\xc3".to_vec()] {
        let mut job = job("echo", "tee /dev/stderr");
        job.stdin.clone_from(&given);
        job.stdout = Sink::Memory { keep: 10_000_000 };
        job.stderr = Sink::Memory { keep: 10_000_000 };
        let mut heard = (Vec::new(), Vec::new());
        let ended = proc::run(job, &Watch::new(), &mut |stream, chunk| match stream {
            Stream::Stdout => heard.0.extend_from_slice(chunk),
            Stream::Stderr => heard.1.extend_from_slice(chunk),
        });
        assert_eq!(ended.cause, Cause::Exited(0));
        assert!(ended.stdout.bytes == given && ended.stderr.bytes == given);
        assert!(heard.0 == given && heard.1 == given);
        assert!(!ended.stdout.truncated);
    }
    assert_no_survivors();
}

#[test]
fn m_c17_there_is_no_terminal_to_ask() {
    check(&[
        Row {
            name: "c17-session",
            script: "read -r _ _ _ _ group session tty _ </proc/$$/stat; [ $group = $$ ] && [ $session = $$ ] && echo $tty",
            stdout: "0\n",
            ..ROW
        },
        Row {
            name: "c17",
            script: "(: </dev/tty) 2>/dev/null && echo tty || echo none",
            stdout: "none\n",
            ..ROW
        },
    ]);
}

/// In a process of its own: the peak of this one is that of all its tests together.
#[test]
fn m_c18_a_flood_is_counted_and_memory_stays_small() {
    let _turn = turn();
    let job = play("part_flooded", "exec");
    let ended = run(job);
    assert_eq!(ended.cause, Cause::Exited(0), "{}", String::from_utf8_lossy(&ended.stdout.bytes));
    assert_no_survivors();
}

#[test]
#[ignore = "a part played for another test"]
fn part_flooded() {
    become_subreaper();
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("out");
    let mut job = job("c18", "printf head; head -c 300000000 /dev/zero; printf tail");
    job.stdout = Sink::File { path: path.clone(), keep: 4_000_000 };
    let ended = run(job);
    let peak = peak_kib();
    assert_eq!(ended.cause, Cause::Exited(0));
    let report = &ended.stdout;
    assert_eq!((report.bytes_total, report.bytes_kept, report.truncated), (300_000_008, 4_000_000, true));
    let file = fs::read(&path).unwrap();
    assert!(file.starts_with(b"head\0") && file.ends_with(b"\0tail"));
    let line = b"[archeflow: 296000008 bytes left out]\n";
    assert!(file.windows(line.len()).any(|window| window == line));
    assert!(peak < 64 * 1024, "peak {peak} KiB");
}

fn peak_kib() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

#[test]
fn m_c18_a_flood_does_not_delay_the_limit() {
    let _turn = turn();
    let mut job = job("yes", "yes");
    job.stdout = Sink::nothing();
    job.limits.total = 500 * MS;
    let ended = run(job);
    assert_eq!(ended.cause, Cause::TooLong);
    assert!(ended.stdout.bytes_total > 0);
    assert_no_survivors();
}

/// What a job adopts and loses while it runs is reaped then, not hours later.
#[test]
fn i5_the_dead_do_not_pile_up() {
    let _turn = turn();
    let script = "for i in 1 2 3; do (setsid true &); done; while :; do echo tick; sleep 0.05; done";
    let watch = Watch::new();
    let begun = Instant::now();
    let ended = proc::run(job("p1", script), &watch, &mut |_, _| {
        let me = format!(" {} ", std::process::id());
        let dead = zombies().into_iter().filter(|fields| fields.starts_with(&format!(" Z{me}"))).count();
        if begun.elapsed() > 200 * MS && dead == 0 {
            watch.stop();
        }
    });
    assert_eq!(ended.cause, Cause::Stopped);
    assert_no_survivors();
}

fn zombies() -> Vec<String> {
    let numbers = fs::read_dir("/proc").unwrap();
    let stats = numbers.filter_map(|item| fs::read_to_string(item.ok()?.path().join("stat")).ok());
    stats.filter_map(|stat| Some(stat.rsplit_once(')')?.1.to_owned())).collect()
}

#[test]
fn m_c12_a_background_process_that_holds_stdout_does_not_keep_us() {
    check(&[
        Row { name: "holds", script: "sleep 999 & echo x", leftovers: 1, stdout: "x\n", ..ROW },
        Row { name: "floods", script: "yes >&2 & echo x", leftovers: 1, stdout: "x\n", ..ROW },
        Row {
            name: "late",
            script: "(sleep 0.05; echo late) & echo x",
            stdout: "x\nlate\n",
            change: |job| job.limits.drain = LONG,
            ..ROW
        },
    ]);
}

#[test]
fn m_c1_what_cannot_start_says_why() {
    let _turn = turn();
    let home = tempfile::tempdir().unwrap();
    let plain = home.path().join("plain");
    fs::write(&plain, "no program").unwrap();
    let cause = |change: &dyn Fn(&mut Job)| {
        let mut job = job("c1", "exit 0");
        change(&mut job);
        let ended = run(job);
        assert_eq!((ended.leftovers, ended.stdout.bytes_total), (0, 0));
        let Cause::NotStarted(why) = ended.cause else { panic!("{:?}", ended.cause) };
        why
    };
    assert!(
        matches!(cause(&|job| job.program = "no-such-program".into()), NotStarted::NotFound(text) if text.contains("no-such-program"))
    );
    assert!(matches!(cause(&|job| job.program = plain.clone().into()), NotStarted::Permission(_)));
    assert!(
        matches!(cause(&|job| job.cwd = "/no/such/place".into()), NotStarted::Other(text) if text.contains("/no/such/place"))
    );
    assert!(matches!(cause(&|job| job.stdout = Sink::file("/no/such/file")), NotStarted::Other(_)));
    assert!(matches!(cause(&|job| job.args.push("x".repeat(4_000_000).into())), NotStarted::Other(_)));
    assert!(matches!(cause(&|job| job.args.push("a\0b".into())), NotStarted::Other(_)));
}

/// Runs a script and does something to its watch as soon as it says `ready`.
fn interrupt(tag: &str, script: &str, grace: Duration, act: impl Fn(&Watch) + Send + 'static) -> JobEnd {
    let watch = Watch::new();
    let (tell, told) = mpsc::channel();
    let other = watch.clone();
    let thread = thread::spawn(move || {
        told.recv().unwrap();
        act(&other);
    });
    let mut job = job(tag, script);
    job.limits.grace = grace;
    let ended = proc::run(job, &watch, &mut |_, _| {
        let _ = tell.send(());
    });
    thread.join().unwrap();
    ended
}

#[test]
fn m_h1_m_h2_a_watch_ends_a_job_from_another_thread() {
    let _turn = turn();
    let (short, long) = (200 * MS, LONG);
    let polite = "trap 'echo bye; exit 0' TERM; echo ready; sleep 999 & wait";
    let stop = interrupt("stop", polite, long, Watch::stop);
    assert_eq!((&stop.cause, stop.stdout.bytes.as_slice()), (&Cause::Stopped, b"ready\nbye\n".as_slice()));

    let deaf = "trap '' TERM; echo ready; while :; do sleep 999; done";
    let stop = interrupt("stop-deaf", deaf, short, Watch::stop);
    assert_eq!(stop.cause, Cause::Stopped);
    assert!(stop.duration >= short && stop.duration < long, "{:?}", stop.duration);

    let kill = interrupt("kill", deaf, long, Watch::kill_now);
    assert_eq!(kill.cause, Cause::Stopped);
    assert!(kill.duration < long, "{:?}", kill.duration);

    let both = interrupt("both", deaf, long, |watch| {
        watch.stop();
        thread::sleep(50 * MS);
        watch.kill_now();
    });
    assert_eq!(both.cause, Cause::Stopped);
    assert!(both.duration < long, "{:?}", both.duration);
    assert_no_survivors();
}

#[test]
fn a_stopped_watch_starts_nothing() {
    let _turn = turn();
    let watch = Watch::new();
    watch.stop();
    let ended = proc::run(job("late", "echo x"), &watch, &mut |_, _| {});
    assert_eq!((ended.cause, ended.stdout.bytes_total), (Cause::Stopped, 0));
}

#[test]
fn m_c9_output_itself_may_end_the_job() {
    let _turn = turn();
    let watch = Watch::new();
    let ended = proc::run(job("c9", "echo result; sleep 999"), &watch, &mut |_, _| watch.stop());
    assert_eq!((ended.cause, ended.stdout.bytes), (Cause::Stopped, b"result\n".to_vec()));
    assert!(ended.duration < LONG);
    assert_no_survivors();
}

#[test]
fn one_watch_ends_many_jobs() {
    let _turn = turn();
    let watch = Watch::new();
    thread::scope(|scope| {
        let jobs: Vec<_> = (0..4)
            .map(|n| {
                let watch = &watch;
                scope.spawn(move || proc::run(job(&format!("many-{n}"), "sleep 999"), watch, &mut |_, _| {}))
            })
            .collect();
        thread::sleep(100 * MS);
        watch.stop();
        for job in jobs {
            assert_eq!(job.join().unwrap().cause, Cause::Stopped);
        }
    });
    assert_no_survivors();
}

/// Each job sweeps its own escapees and never its neighbours', which may still be at work.
#[test]
fn m_c12_parallel_jobs_answer_for_their_own() {
    let _turn = turn();
    let folder = tempfile::tempdir().unwrap();
    let gates = ["go", "gone", "pid"].map(|name| folder.path().join(name));
    for gate in &gates[..2] {
        assert!(Command::new("mkfifo").arg(gate).status().unwrap().success());
    }
    // Both wait at a gate, however long the others take.
    let [go, gone, pid] = gates.each_ref().map(|gate| gate.display());
    let script = format!(
        "(setsid sh -c 'echo $$ > {pid}; read x < {go}; echo alive; : > {gone}' &); read x < {gone}
         while [ -e /proc/$(cat {pid})/exe ]; do sleep 0.01; done; exit 0"
    );
    thread::scope(|scope| {
        let slow = scope.spawn(|| run(job("slow", &script)));
        until(|| tagged(&unique("slow")).len() == 2);
        let quick: Vec<_> = (0..3)
            .map(|n| {
                let script =
                    "setsid sleep 999 >/dev/null 2>&1 & setsid sleep 999 >/dev/null 2>&1 & sleep 0.1";
                scope.spawn(move || (n, run(job(&format!("quick-{n}"), script))))
            })
            .collect();
        for thread in quick {
            let (n, ended) = thread.join().unwrap();
            assert_eq!((ended.cause, ended.leftovers), (Cause::Exited(0), 2), "job {n}");
            assert!(tagged(&unique(&format!("quick-{n}"))).is_empty());
        }
        assert_eq!(tagged(&unique("slow")).len(), 2, "a neighbour was hurt");
        fs::write(&gates[0], "go\n").unwrap();
        let slow = slow.join().unwrap();
        assert_eq!((slow.leftovers, slow.stdout.bytes.as_slice()), (0, b"alive\n".as_slice()));
    });
    assert_no_survivors();
}

#[test]
fn m_c12_who_hides_from_everyone_is_swept_by_the_last() {
    let _turn = turn();
    let folder = tempfile::tempdir().unwrap();
    let over = folder.path().join("over");
    let waits = format!("until [ -e {} ]; do sleep 0.05; done", over.display());
    let hides = "env -i setsid sleep 98761 >/dev/null 2>&1 &
                 until [ \"$(cat /proc/$!/comm)\" = sleep ]; do sleep 0.01; done";
    thread::scope(|scope| {
        let last = scope.spawn(|| run(job("last", &waits)));
        until(|| !tagged(&unique("last")).is_empty());
        let hider = run(job("hider", hides));
        assert_eq!(hider.leftovers, 0);
        assert_eq!(with_words("sleep 98761").len(), 1);
        fs::write(&over, "").unwrap();
        assert_eq!(last.join().unwrap().leftovers, 1);
    });
    assert_eq!(with_words("sleep 98761").len(), 0);
    assert_no_survivors();
}

/// A process that looks like a leftover to everyone but the kernel, started by us and not to be touched.
struct Decoy(std::process::Child);

fn decoy(tag: &str) -> Decoy {
    let mut command = Command::new("sh");
    command.args(["-c", "sleep 98762 & wait", &format!("{TAG}={tag}")]).env_remove(TAG);
    command.env("NOT_ARCHEFLOW_TAG", tag).env("OTHER", format!("{TAG}={tag}"));
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let decoy = Decoy(children::spawn(&mut command).unwrap());
    until(|| with_words("sleep 98762").len() == 1);
    decoy
}

impl Decoy {
    fn is_alive(&mut self) -> bool {
        self.0.try_wait().unwrap().is_none() && with_words("sleep 98762").len() == 1
    }
}

/// Also when the test fails: what it leaves would hold the next one up.
impl Drop for Decoy {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = children::wait(&mut self.0);
        finish_all();
    }
}

#[test]
fn i5_m_h14_a_decoy_survives() {
    let _turn = turn();
    let tag = unique("decoy");
    let mut decoy = decoy(&tag);
    let ended = run(job("decoy", "setsid sleep 999 >/dev/null 2>&1 & sleep 0.1"));
    assert_eq!(ended.leftovers, 1);
    assert_eq!(kill_leftovers(&tag), 0);
    assert_eq!(kill_leftovers(""), 0);
    assert_eq!(finish_all(), 0);
    assert!(decoy.is_alive());
    drop(decoy);
    assert_eq!(with_words("sleep 98762").len(), 0);
    assert_no_survivors();
}

/// A program of ours that was killed may have been amid a landing. Its git comes to its end, also one that it was just
/// about to start, which does not say yet what it is; what only says it is one is killed all the same, a little later.
#[test]
fn i5_m_h14_a_git_of_ours_may_finish_and_no_impostor_survives() {
    let _turn = turn();
    let folder = tempfile::tempdir().unwrap();
    let [done, born] = ["done", "born"].map(|name| folder.path().join(name));
    let git = format!("{TAG}=git-of:{} setsid sh -c", unique("git"));
    let gits = format!("{git} 'sleep 0.1; touch {}' & {git} 'sleep 98763; :' &", done.display());
    let mut job = play("part_about_to_start", &format!("{gits} DONE={} setsid", born.display()));
    job.args[1].push(" > /dev/null & sleep 0.1");
    let ended = run(job);
    assert!(done.exists(), "it was killed half-way");
    assert!(born.exists(), "it was killed before it began");
    assert_eq!((ended.leftovers, with_words("sleep 98763").len()), (2, 0));
    assert_no_survivors();
}

/// The shell plays an orchestrator that died: what it started has the tag and no parent of ours.
#[test]
fn i5_leftovers_of_a_dead_orchestrator_are_found_by_tag() {
    let _turn = turn();
    let tag = unique("dead");
    let mut decoy = decoy(&tag);
    let script = "for i in 1 2 3; do setsid sh -c 'sleep 999; :' & done; setsid sh -c 'trap \"\" TERM; kill -STOP $$' & sleep 0.1";
    let mut command = Command::new("sh");
    command.args(["-c", script]).env(TAG, format!("{tag}do.1")).stdout(Stdio::null());
    let mut orchestrator = children::spawn(&mut command).unwrap();
    children::wait(&mut orchestrator).unwrap();
    until(|| tagged(&tag).len() == 7);
    assert_eq!(kill_leftovers(&unique("other")), 0);
    assert_eq!(kill_leftovers(&tag), 7);
    assert_no_survivors();
    assert!(decoy.is_alive());
}

/// This test binary once more, as another program that plays the named part.
fn play(part: &str, before: &str) -> Job {
    let mut job = job(part, &format!("{before} \"$0\" --exact {part} --ignored --nocapture"));
    job.args.push(std::env::current_exe().unwrap().into());
    job
}

#[test]
#[ignore = "a part played for another test"]
fn part_about_to_start() {
    std::thread::sleep(Duration::from_millis(100));
    std::fs::write(std::env::var_os("DONE").unwrap(), "").unwrap();
}

#[test]
#[ignore = "a part played for another test"]
fn part_orchestrator() {
    become_subreaper();
    say(&std::process::id().to_string());
    run(job("part", "trap '' TERM; setsid sleep 999 & exec sleep 999"));
}

fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "\nsays {line}").and_then(|()| out.flush()).unwrap();
}

fn said(chunk: &[u8]) -> Vec<i32> {
    let text = String::from_utf8_lossy(chunk).into_owned();
    text.lines().filter_map(|line| line.strip_prefix("says ")?.parse().ok()).collect()
}

#[test]
fn i5_kill_9_takes_the_leader_along_and_resume_finds_the_rest() {
    let _turn = turn();
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "part_orchestrator", "--ignored", "--nocapture"]).stdout(Stdio::piped());
    let mut orchestrator = children::spawn(&mut command).unwrap();
    let mut lines = BufReader::new(orchestrator.stdout.take().unwrap()).lines();
    lines.find(|line| line.as_ref().unwrap().starts_with("says ")).unwrap().unwrap();
    let tag = format!("test-{}-", orchestrator.id());
    until(|| tagged(&tag).len() == 2);
    orchestrator.kill().unwrap();
    children::wait(&mut orchestrator).unwrap();
    until(|| tagged(&tag).len() == 1);
    assert_eq!(kill_leftovers(&tag), 1);
    assert_eq!(tagged(&tag).len(), 0);
    finish_all();
    assert_no_survivors();
}

fn until(condition: impl Fn() -> bool) {
    let begun = Instant::now();
    while !condition() {
        assert!(begun.elapsed() < LONG, "waited in vain");
        thread::sleep(5 * MS);
    }
}

#[test]
#[ignore = "a part played for another test"]
fn part_listener() {
    let (tell, told) = mpsc::channel();
    proc::signals::listen(move |signal| tell.send(signal).unwrap()).unwrap();
    let child =
        children::spawn(Command::new("grep").args(["SigBlk", "/proc/self/status"]).stdout(Stdio::piped()));
    let mask = child.unwrap().wait_with_output().unwrap().stdout;
    assert!(mask.ends_with(b"\t0000000000000000\n"), "{}", String::from_utf8_lossy(&mask));
    say(&std::process::id().to_string());
    for signal in told {
        say(&(-signal).to_string());
        if signal == Signal::TERM.as_raw() {
            return;
        }
    }
}

/// Sends each of the three signals, the last of which ends the listener, and collects what it heard.
fn heard_by_listener(before: &str) -> Vec<i32> {
    let mut pid = None;
    let mut heard = Vec::new();
    let ended = proc::run(play("part_listener", before), &Watch::new(), &mut |_, chunk| {
        for number in said(chunk) {
            if number < 0 {
                heard.push(-number);
            } else {
                pid = Pid::from_raw(number);
            }
            let next = match heard.last() {
                None if !before.ends_with("nohup") => Signal::HUP,
                None => {
                    kill_process(pid.unwrap(), Signal::HUP).unwrap();
                    Signal::INT
                }
                Some(1) => Signal::INT,
                Some(2) => Signal::TERM,
                Some(_) => return,
            };
            kill_process(pid.unwrap(), next).unwrap();
        }
    });
    assert_eq!(ended.cause, Cause::Exited(0), "{}", String::from_utf8_lossy(&ended.stdout.bytes));
    heard
}

#[test]
fn m_h3_m_h4_signals_arrive_and_an_ignored_hangup_stays_ignored() {
    let _turn = turn();
    assert_eq!(heard_by_listener("exec env --default-signal=HUP"), [1, 2, 15]);
    assert_eq!(heard_by_listener("exec nohup"), [2, 15]);
    assert_no_survivors();
}

#[test]
fn m_a7_a_panic_in_the_listener_leaves_nothing_running() {
    let _turn = turn();
    let result = thread::spawn(|| {
        proc::run(job("panic", "echo x; sleep 999"), &Watch::new(), &mut |_, _| panic!("on purpose"))
    });
    assert!(result.join().is_err());
    finish_all();
    assert_no_survivors();
    assert!(children::lock().is_empty());
}

#[test]
#[ignore = "a part played for another test"]
fn part_deafened() {
    become_subreaper();
    let ended = run(job("deafened", "(setsid sleep 999 >/dev/null 2>&1 &); sleep 0.1; exit 7"));
    assert_eq!((ended.cause, ended.leftovers), (Cause::Exited(7), 1));
}

#[test]
fn exit_codes_arrive_even_when_sigchld_was_ignored_at_the_start() {
    let _turn = turn();
    let ended = run(play("part_deafened", "exec env --ignore-signal=CHLD"));
    assert_eq!(ended.cause, Cause::Exited(0), "{}", String::from_utf8_lossy(&ended.stdout.bytes));
    assert_no_survivors();
}
