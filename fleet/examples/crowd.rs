//! Made-up workers for measurements: they take orders and report them as performed, without git and agents. What is left is
//! the work of the server and of the conductor.
//!
//! ```text
//! crowd work <slots> <milliseconds> <join file>…      until standard input ends; each order takes that long
//! crowd appends <a second> <count> <join file>
//! ```
//!
//! Both print one JSON object with what was measured. Of each order that is its wait: from the server's disk to the worker, and
//! how much of that there was a free slot. A conductor gives a tenth more orders than there are slots, and those wait for one.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "what it measures is its output")]

use std::error::Error;
use std::io::Read;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use archeflow_core::model::{Money, Reason, RunStatus};
use archeflow_core::sprint::event::{RunEnd, SprintEvent};
use archeflow_fleet::bus::{Bus, Delivery, Expect, Lease, Put, PutEnd};
use archeflow_fleet::join::JoinFile;
use archeflow_fleet::message::{self, FORMAT, FleetOrder, FleetReport, Heartbeat, Held, Work, WorkerCounts};
use archeflow_fleet::names;
use archeflow_fleet::nats::{NatsBus, NatsOptions};
use archeflow_fleet::worker::run_of;
use archeflow_host::clock;
use serde_json::json;

type Fault = Box<dyn Error + Send + Sync>;

/// A line of a journal has about this length.
const LINE: usize = 600;
const WAIT: Duration = Duration::from_secs(2);
const BEAT: Duration = Duration::from_secs(10);

fn main() -> Result<(), Fault> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["work", slots, takes, joins @ ..] if !joins.is_empty() => {
            work(slots.parse()?, Duration::from_millis(takes.parse()?), joins)
        }
        ["appends", rate, count, join] => appends(rate.parse()?, count.parse()?, join),
        _ => Err(
            "crowd work <slots> <milliseconds> <join file>… | crowd appends <a second> <count> <join file>"
                .into(),
        ),
    }
}

/// What all workers share.
#[derive(Default)]
struct Crowd {
    over: AtomicBool,
    orders: AtomicU64,
    waits: Mutex<Vec<OrderWait>>,
    /// How long an order is worked on.
    takes: Duration,
}

/// In milliseconds.
#[derive(Clone, Copy)]
struct OrderWait {
    from_disk: f64,
    with_free_slot: f64,
}

fn work(slots: u32, takes: Duration, joins: &[&str]) -> Result<(), Fault> {
    let crowd = Crowd { takes, ..Crowd::default() };
    let members: Vec<Member> =
        joins.iter().map(|join| Member::join(Path::new(join), slots)).collect::<Result<_, Fault>>()?;
    thread::scope(|scope| {
        for member in &members {
            scope.spawn(|| member.beat(&crowd));
            for _ in 0..slots {
                scope.spawn(|| member.serve(&crowd));
            }
        }
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        crowd.over.store(true, Ordering::SeqCst);
    });
    let waits = crowd.waits.into_inner().unwrap_or_else(PoisonError::into_inner);
    let orders = crowd.orders.into_inner();
    let dispatch = figures(waits.iter().map(|wait| wait.from_disk).collect());
    let free = figures(waits.iter().map(|wait| wait.with_free_slot).collect());
    println!("{}", json!({ "orders": orders, "dispatch_ms": dispatch, "with_free_slot_ms": free }));
    Ok(())
}

struct Member {
    name: String,
    slots: u32,
    bus: NatsBus,
    holds: Mutex<Vec<Held>>,
}

impl Member {
    fn join(file: &Path, slots: u32) -> Result<Member, Fault> {
        let join = JoinFile::read(file)?;
        let bus = NatsBus::connect(&join, NatsOptions::default())?;
        Ok(Member { name: join.name, slots, bus, holds: Mutex::default() })
    }

    fn beat(&self, crowd: &Crowd) {
        let mut last: Option<Instant> = None;
        while !crowd.over.load(Ordering::SeqCst) {
            if last.is_none_or(|last| last.elapsed() >= BEAT) {
                let beat = Heartbeat {
                    v: FORMAT,
                    worker: self.name.clone(),
                    version: env!("CARGO_PKG_VERSION").to_owned(),
                    slots: self.slots,
                    draining: false,
                    offers: ["os:linux".to_owned()].into(),
                    holds: self.holds.lock().unwrap_or_else(PoisonError::into_inner).clone(),
                    free_bytes: 1 << 30,
                    done: WorkerCounts::default(),
                    at: clock::now(),
                };
                let said = serde_json::to_vec(&beat).unwrap_or_default();
                let _ = self.bus.say(&names::heartbeat(&self.name), &said);
                last = Some(Instant::now());
            }
            thread::sleep(Duration::from_millis(100));
        }
    }

    fn serve(&self, crowd: &Crowd) {
        let mut free_at = None;
        while !crowd.over.load(Ordering::SeqCst) {
            let asked_at = *free_at.get_or_insert_with(clock::now);
            let Ok(Some(delivery)) = self.bus.take("any", WAIT) else { continue };
            free_at = None;
            if let Some(kept_at) = kept_at(&delivery) {
                let (now, since) = (clock::now(), kept_at.max(asked_at));
                let from_disk = now.saturating_sub(kept_at) as f64;
                let wait = OrderWait { from_disk, with_free_slot: now.saturating_sub(since) as f64 };
                crowd.waits.lock().unwrap_or_else(PoisonError::into_inner).push(wait);
            }
            if let Err(error) = self.perform(&delivery, crowd.takes) {
                eprintln!("{}: {error}", self.name);
                continue;
            }
            crowd.orders.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// One line in the run's journal, the report, and the order is done with.
    fn perform(&self, delivery: &Delivery, takes: Duration) -> Result<(), Fault> {
        let order: FleetOrder = message::read_order(&delivery.bytes)?;
        let held = Held { sprint: order.sprint.clone(), seq: order.seq };
        self.holds.lock().unwrap_or_else(PoisonError::into_inner).push(held.clone());
        let run = run_of(&order);
        let line = vec![b'x'; LINE];
        let subject = names::run_journal(&run);
        let headers = [(names::SESSION, self.name.as_str()), (names::FIRST, "1"), (names::LINES, "1")];
        self.bus.put(Put {
            subject: &subject,
            expect: Expect::Anything,
            id: None,
            headers: &headers,
            bytes: &line,
        })?;
        thread::sleep(takes);
        let report = FleetReport {
            v: FORMAT,
            start_seq: order.seq,
            worker: self.name.clone(),
            event: event(&order, run)?,
        };
        let id = format!("{}:{}:{}", order.sprint, order.seq, order.again);
        self.bus.put(Put {
            subject: &names::reports(&order.sprint),
            expect: Expect::Anything,
            id: Some(&id),
            headers: &[],
            bytes: &serde_json::to_vec(&report)?,
        })?;
        self.bus.lease(&delivery.token, Lease::Done)?;
        self.holds.lock().unwrap_or_else(PoisonError::into_inner).retain(|one| *one != held);
        Ok(())
    }
}

/// A run is approved, and its landing lands.
fn event(order: &FleetOrder, run_id: String) -> Result<SprintEvent, Fault> {
    let end = |status, landed_as| RunEnd {
        run_id,
        status: Some(status),
        reason: Some(Reason::Approved),
        detail: String::new(),
        cycles: 1,
        cost_usd: Money(1),
        took_ms: 1,
        stopped: false,
        landed_as,
        accounts: Vec::new(),
        busy: None,
    };
    match &order.work {
        Work::Run { .. } | Work::Resume { .. } | Work::Trial { .. } => {
            Ok(SprintEvent::Ended { start_seq: order.seq, end: end(RunStatus::AwaitingMerge, None) })
        }
        Work::Land { .. } => {
            let commit = Some("0".repeat(40));
            Ok(SprintEvent::Landed { start_seq: order.seq, end: end(RunStatus::Merged, commit) })
        }
        Work::Batch { .. } => Err("an order for several runs".into()),
    }
}

/// When the server kept an order, in milliseconds since 1970: it is the last number but one of a delivery's name.
fn kept_at(delivery: &Delivery) -> Option<u64> {
    let nanoseconds: u64 = delivery.token.rsplit('.').nth(1)?.parse().ok()?;
    Some(nanoseconds / 1_000_000)
}

/// Appends with an expectation, evenly spread, each to a journal of its own.
fn appends(rate: u32, count: u32, join: &str) -> Result<(), Fault> {
    let join = JoinFile::read(Path::new(join))?;
    let buses: Vec<NatsBus> =
        (0..rate).map(|_| NatsBus::connect(&join, NatsOptions::default())).collect::<Result<_, _>>()?;
    let took = Mutex::new(Vec::new());
    let begun = Instant::now();
    let tag = clock::now();
    thread::scope(|scope| {
        for (bus, n) in buses.iter().zip(0u32..) {
            let took = &took;
            scope.spawn(move || {
                let subject = names::run_journal(&format!("appends-{tag}-{n}"));
                let mut last = 0;
                for turn in 0..count.div_ceil(rate) {
                    let at = Duration::from_secs(turn.into()) + Duration::from_secs(1) * n / rate;
                    thread::sleep(at.saturating_sub(begun.elapsed()));
                    let (first, asked) = ((turn + 1).to_string(), Instant::now());
                    let headers = [(names::SESSION, "s"), (names::FIRST, &first), (names::LINES, "1")];
                    let line = vec![b'x'; LINE];
                    let put = Put {
                        subject: &subject,
                        expect: Expect::Last(last),
                        id: None,
                        headers: &headers,
                        bytes: &line,
                    };
                    match bus.put(put) {
                        Ok(PutEnd::Kept(seq)) => last = seq,
                        other => eprintln!("{subject}: {other:?}"),
                    }
                    let ms = asked.elapsed().as_secs_f64() * 1e3;
                    took.lock().unwrap_or_else(PoisonError::into_inner).push(ms);
                }
            });
        }
    });
    println!(
        "{}",
        json!({ "append_ms": figures(took.into_inner().unwrap_or_else(PoisonError::into_inner)) })
    );
    Ok(())
}

fn figures(mut all: Vec<f64>) -> serde_json::Value {
    all.sort_by(f64::total_cmp);
    let at =
        |hundredths: usize| all.get((all.len() * hundredths / 100).min(all.len().saturating_sub(1))).copied();
    json!({ "count": all.len(), "p50": at(50), "p99": at(99), "longest": all.last() })
}
