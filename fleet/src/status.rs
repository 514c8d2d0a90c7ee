//! A fleet as it is now: workers by their heartbeats, classes, streams, budgets, accounts that are shut and sprints. Read only.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::time::{Duration, Instant};

use archeflow_core::model::{Money, counted};
use archeflow_core::projections::prometheus::{PrometheusText, dollars, whole};
use archeflow_core::text::{byte_size, pad, safe_line};
use archeflow_host::clock;
use serde::Serialize;
use serde_json::Value;

use crate::accounts::Accounts;
use crate::bus::{Bus, BusError};
use crate::cleaning::{is_sprint_end, readable};
use crate::ledger::Ledger;
use crate::message::{self, Heartbeat, WorkerCounts, satisfies};
use crate::names::{JOURNALS, ORDERS};
use crate::nats::{NatsBus, stream_names};

/// More than this between two clocks is shown.
const SKEW_MS: u64 = 30_000;
/// Sprints that are listed: all that have not ended, and the newest of the others.
const ENDED_SPRINTS: usize = 5;
const SPRINTS: &str = "af1.j.sprint.";

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct FleetStatus {
    /// When it was read, in milliseconds since 1970.
    pub at: u64,
    /// The version of the server.
    pub server: String,
    pub workers: Vec<WorkerStatus>,
    /// Members that are workers and were not heard.
    pub silent: Vec<String>,
    pub classes: Vec<ClassStatus>,
    /// When the oldest order was given that nobody has answered.
    pub oldest_order_at: Option<u64>,
    pub streams: Vec<StreamStatus>,
    pub budgets: Vec<BudgetStatus>,
    pub accounts: Vec<AccountStatus>,
    /// Why the records of others can't be read.
    pub unreadable_accounts: Vec<String>,
    pub sprints: Vec<SprintStatus>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct WorkerStatus {
    pub name: String,
    pub version: String,
    pub slots: u32,
    pub draining: bool,
    pub offers: BTreeSet<String>,
    /// Orders under way, as `<sprint>:<line>`.
    pub holds: Vec<String>,
    pub free_bytes: u64,
    /// Since the worker was started.
    pub done: WorkerCounts,
    pub heard_at: u64,
    /// Its clock minus that of this machine; the time on the way is in it.
    pub skew_ms: i64,
}

/// Orders that need the same.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ClassStatus {
    pub needs: BTreeSet<String>,
    pub waiting: u64,
    pub leased: u64,
    /// Workers that satisfy it and take orders.
    pub workers: usize,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct StreamStatus {
    pub name: String,
    pub messages: u64,
    pub bytes: u64,
    pub limit: u64,
    pub copies: u64,
    /// Servers that follow the one that leads.
    pub followers: Vec<FollowerStatus>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FollowerStatus {
    pub server: String,
    /// Messages that it does not have yet.
    pub lag: u64,
    pub current: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BudgetStatus {
    pub name: String,
    /// Nothing for unlimited.
    pub cap_usd: Option<Money>,
    pub spent_usd: Money,
    pub held_usd: Money,
    pub held_by: BTreeMap<String, Money>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AccountStatus {
    pub account: String,
    pub until: u64,
    pub trial: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SprintStatus {
    pub sprint: String,
    pub last_line_at: u64,
    pub ended: bool,
}

/// Listens for this time at most, and reads the rest meanwhile. It ends earlier when all of `expected` were heard; with none
/// expected nobody knows who is missing.
pub fn look(bus: &NatsBus, expected: &BTreeSet<String>, limit: Duration) -> Result<FleetStatus, BusError> {
    let (beats, begun) = (bus.hear("af1.hb.>")?, Instant::now());
    let orders = bus.stream_info(ORDERS)?;
    let mut status = FleetStatus {
        server: bus.server_version(),
        oldest_order_at: oldest(&orders),
        streams: stream_names()
            .map(|name| Ok(stream(name, &bus.stream_info(name)?)))
            .collect::<Result<_, BusError>>()?,
        budgets: budgets(bus)?,
        sprints: sprints(bus)?,
        ..FleetStatus::default()
    };
    let queues = bus.queue_infos(ORDERS)?;
    let mut heard: BTreeMap<String, WorkerStatus> = BTreeMap::new();
    loop {
        let is_complete = !expected.is_empty() && expected.iter().all(|name| heard.contains_key(name));
        let left = limit.saturating_sub(begun.elapsed());
        if is_complete || left.is_zero() {
            break;
        }
        let Ok(message) = beats.recv_timeout(left) else { break };
        // A worker of a newer version is shown as silent, with the others.
        if let Ok(beat) = message::read::<Heartbeat>(&message.bytes) {
            heard.insert(beat.worker.clone(), worker(beat, clock::now()));
        }
    }
    status.at = clock::now();
    let (shut, unreadable) = Accounts::new(bus).all()?;
    status.unreadable_accounts = unreadable;
    status.accounts = shut
        .into_iter()
        .filter(|shut| shut.until > status.at || shut.trial.is_some())
        .map(|shut| AccountStatus { account: shut.account, until: shut.until, trial: shut.trial })
        .collect();
    status.silent = expected.iter().filter(|name| !heard.contains_key(*name)).cloned().collect();
    status.workers = heard.into_values().collect();
    status.classes = queues.iter().filter_map(|queue| class(queue, &status.workers)).collect();
    Ok(status)
}

fn worker(beat: Heartbeat, now: u64) -> WorkerStatus {
    let signed = |ms: u64| i64::try_from(ms).unwrap_or(i64::MAX);
    WorkerStatus {
        name: beat.worker,
        version: beat.version,
        slots: beat.slots,
        draining: beat.draining,
        offers: beat.offers,
        holds: beat.holds.iter().map(|held| format!("{}:{}", held.sprint, held.seq)).collect(),
        free_bytes: beat.free_bytes,
        done: beat.done,
        heard_at: now,
        skew_ms: signed(beat.at).saturating_sub(signed(now)),
    }
}

fn oldest(orders: &Value) -> Option<u64> {
    let has_some = orders["state"]["messages"].as_u64().unwrap_or(0) > 0;
    let text = orders["state"]["first_ts"].as_str().filter(|_| has_some)?;
    Some(clock::read(&format!("{}Z", text.get(..19)?)))
}

fn stream(name: &str, info: &Value) -> StreamStatus {
    let number = |value: &Value| value.as_u64().unwrap_or(0);
    let others = info["cluster"]["replicas"].as_array().cloned().unwrap_or_default();
    let follower = |one: &Value| FollowerStatus {
        server: one["name"].as_str().unwrap_or_default().to_owned(),
        lag: number(&one["lag"]),
        current: one["current"] == true && one["offline"] != true,
    };
    StreamStatus {
        name: name.to_owned(),
        messages: number(&info["state"]["messages"]),
        bytes: number(&info["state"]["bytes"]),
        limit: number(&info["config"]["max_bytes"]),
        copies: number(&info["config"]["num_replicas"]),
        followers: others.iter().map(follower).collect(),
    }
}

/// A class by its queue; nothing for queues of other kinds.
fn class(queue: &Value, workers: &[WorkerStatus]) -> Option<ClassStatus> {
    let name = queue["config"]["filter_subject"].as_str()?.strip_prefix("af1.o.")?;
    let needs: BTreeSet<String> =
        if name == "any" { BTreeSet::new() } else { name.split('+').map(readable).collect() };
    let number = |key: &str| queue[key].as_u64().unwrap_or(0);
    let able = workers.iter().filter(|worker| !worker.draining && satisfies(&worker.offers, &needs)).count();
    Some(ClassStatus {
        waiting: number("num_pending"),
        leased: number("num_ack_pending"),
        workers: able,
        needs,
    })
}

fn budgets(bus: &NatsBus) -> Result<Vec<BudgetStatus>, BusError> {
    let budget = |state: crate::ledger::LedgerState| BudgetStatus {
        name: state.name,
        cap_usd: state.cap,
        spent_usd: state.spent,
        held_usd: state.held.values().copied().sum(),
        held_by: state.held,
    };
    Ok(Ledger::all(bus)?.into_iter().map(budget).collect())
}

fn sprints(bus: &NatsBus) -> Result<Vec<SprintStatus>, BusError> {
    let mut all = Vec::new();
    for subject in bus.subjects(JOURNALS, &format!("{SPRINTS}>"))?.into_keys() {
        let Some(last) = bus.last(&subject)? else { continue };
        let sprint = readable(subject.trim_start_matches(SPRINTS));
        all.push(SprintStatus { sprint, last_line_at: last.at, ended: is_sprint_end(&last.bytes) });
    }
    all.sort_by_key(|sprint| (sprint.ended, std::cmp::Reverse(sprint.last_line_at)));
    let open = all.iter().filter(|sprint| !sprint.ended).count();
    all.truncate(open + ENDED_SPRINTS);
    Ok(all)
}

impl ClassStatus {
    fn name(&self) -> String {
        if self.needs.is_empty() {
            "any".to_owned()
        } else {
            self.needs.iter().cloned().collect::<Vec<_>>().join(" ")
        }
    }
}

/// For people.
pub fn text(status: &FleetStatus) -> String {
    let mut out = String::new();
    let ago = |at: u64| since(status.at.saturating_sub(at));
    let copies = status.streams.iter().map(|stream| stream.copies).max().unwrap_or(1);
    let copies = if copies == 1 { "one copy".to_owned() } else { format!("{copies} copies") };
    let _ = writeln!(out, "Server: nats-server {}, {copies} of each stream", safe_line(&status.server));
    let rows = status.workers.iter().map(|worker| {
        let mut notes = Vec::new();
        if worker.draining {
            notes.push("draining".to_owned());
        }
        if worker.skew_ms.unsigned_abs() > SKEW_MS {
            let word = if worker.skew_ms > 0 { "ahead" } else { "behind" };
            notes.push(format!("its clock is {} {word}", since(worker.skew_ms.unsigned_abs())));
        }
        if worker.done.taken_over > 0 {
            notes.push(format!(
                "{} taken over, {} repeated",
                counted(worker.done.taken_over, "run"),
                counted(worker.done.steps_repeated, "step")
            ));
        }
        vec![
            worker.name.clone(),
            worker.version.clone(),
            format!("{}/{}", worker.holds.len(), worker.slots),
            ago(worker.heard_at),
            byte_size(worker.free_bytes),
            notes.join(", "),
        ]
    });
    let silent = status.silent.iter().map(|name| {
        let cell = String::new;
        vec![name.clone(), cell(), cell(), cell(), cell(), "not heard".to_owned()]
    });
    table(&mut out, "Worker", &["version", "busy", "heard", "free disk", ""], rows.chain(silent).collect());
    let rows = status.classes.iter().map(|class| {
        let note = if class.workers == 0 && class.waiting > 0 { "no worker satisfies this" } else { "" };
        let numbers = [class.waiting, class.leased].map(|number| number.to_string());
        let [waiting, leased] = numbers;
        vec![class.name(), waiting, leased, class.workers.to_string(), note.to_owned()]
    });
    table(&mut out, "Class", &["waiting", "leased", "workers", ""], rows.collect());
    let rows = status.sprints.iter().map(|sprint| {
        let word = if sprint.ended { "ended" } else { "" };
        vec![sprint.sprint.clone(), ago(sprint.last_line_at), word.to_owned()]
    });
    table(&mut out, "Sprint", &["last line", ""], rows.collect());
    let rows = status.budgets.iter().map(|budget| {
        let cap = budget.cap_usd.map_or_else(|| "unlimited".to_owned(), Money::shown);
        vec![budget.name.clone(), cap, budget.spent_usd.shown(), budget.held_usd.shown()]
    });
    table(&mut out, "Budget", &["cap", "spent", "reserved"], rows.collect());
    let rows = status.accounts.iter().map(|shut| {
        let trial = shut.trial.as_ref().map(|run| format!("{run} tries")).unwrap_or_default();
        vec![shut.account.clone(), format!("in {}", since(shut.until.saturating_sub(status.at))), trial]
    });
    table(&mut out, "Account shut", &["opens", ""], rows.collect());
    for why in &status.unreadable_accounts {
        let _ = writeln!(out, "\nwarning: an account is skipped: {}", safe_line(why));
    }
    let rows = status.streams.iter().map(|stream| {
        let behind = stream.followers.iter().filter(|one| !one.current || one.lag > 0);
        let notes: Vec<String> = behind
            .map(|one| {
                let state = if one.current { "" } else { " (not current)" };
                format!("{} lags {}{state}", one.server, one.lag)
            })
            .collect();
        let used = format!("{} of {}", byte_size(stream.bytes), byte_size(stream.limit));
        vec![stream.name.clone(), used, stream.messages.to_string(), notes.join(", ")]
    });
    table(&mut out, "Stream", &["used", "messages", ""], rows.collect());
    out
}

/// A table with a head, if it has rows.
fn table(out: &mut String, first: &str, others: &[&str], rows: Vec<Vec<String>>) {
    if rows.is_empty() {
        return;
    }
    let head = [first].iter().chain(others).map(|cell| (*cell).to_owned()).collect();
    let all: Vec<Vec<String>> = std::iter::once(head)
        .chain(rows)
        .map(|row: Vec<String>| row.iter().map(|cell| safe_line(cell)).collect())
        .collect();
    let wide =
        |column: usize| all.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max();
    out.push('\n');
    for row in &all {
        let cells: Vec<String> =
            row.iter().enumerate().map(|(column, cell)| pad(cell, wide(column).unwrap_or(0))).collect();
        let _ = writeln!(out, "{}", cells.join("  ").trim_end());
    }
}

/// `12 s`, `5 min`, `3 h`, `9 d`.
fn since(ms: u64) -> String {
    match ms / 1_000 {
        seconds @ 0..120 => format!("{seconds} s"),
        seconds @ 120..7_200 => format!("{} min", seconds / 60),
        seconds @ 7_200..172_800 => format!("{} h", seconds / 3_600),
        seconds => format!("{} d", seconds / 86_400),
    }
}

/// For Prometheus. docs/fleet-operations.md lists every metric.
pub fn prometheus(status: &FleetStatus) -> String {
    let mut text = PrometheusText::default();
    let seconds = |ms: u64| Duration::from_millis(ms).as_secs_f64();
    let exact = |number: u64| number as f64;
    let draining = status.workers.iter().filter(|worker| worker.draining).count();
    text.gauge("archeflow_fleet_workers", "Workers by state: active, draining, silent.");
    for (state, count) in
        [("active", status.workers.len() - draining), ("draining", draining), ("silent", status.silent.len())]
    {
        text.sample(&[("state", state)], whole(count));
    }
    let mut workers = |name: &'static str, help: &str, value: &dyn Fn(&WorkerStatus) -> f64| {
        text.gauge(name, help);
        for worker in &status.workers {
            text.sample(&[("worker", &worker.name), ("version", &worker.version)], value(worker));
        }
    };
    workers("archeflow_fleet_worker_slots", "Orders that the worker performs at once.", &|worker| {
        f64::from(worker.slots)
    });
    workers("archeflow_fleet_worker_orders", "Orders that it holds.", &|worker| whole(worker.holds.len()));
    workers("archeflow_fleet_worker_free_bytes", "Free disk of the worker.", &|worker| {
        worker.free_bytes as f64
    });
    workers("archeflow_fleet_worker_clock_skew_seconds", "Its clock minus this machine's.", &|worker| {
        worker.skew_ms as f64 / 1e3
    });
    let mut totals = |name: &'static str, help: &str, value: &dyn Fn(&WorkerCounts) -> u64| {
        text.counter(name, help);
        for worker in &status.workers {
            text.sample(
                &[("worker", &worker.name), ("version", &worker.version)],
                exact(value(&worker.done)),
            );
        }
    };
    totals("archeflow_fleet_worker_orders_total", "Orders taken since its start.", &|done| done.orders);
    totals("archeflow_fleet_worker_taken_over_total", "Runs continued after another worker.", &|done| {
        done.taken_over
    });
    totals("archeflow_fleet_worker_steps_repeated_total", "Agents paid twice for it.", &|done| {
        done.steps_repeated
    });
    let mut classes = |name: &'static str, help: &str, value: &dyn Fn(&ClassStatus) -> u64| {
        text.gauge(name, help);
        for class in &status.classes {
            text.sample(&[("class", &class.name())], exact(value(class)));
        }
    };
    classes("archeflow_fleet_orders_waiting", "Orders that no worker has taken.", &|class| class.waiting);
    classes("archeflow_fleet_orders_leased", "Orders that a worker has.", &|class| class.leased);
    classes("archeflow_fleet_class_workers", "Workers that satisfy the class and take orders.", &|class| {
        class.workers as u64
    });
    text.gauge(
        "archeflow_fleet_oldest_order_seconds",
        "Age of the oldest order without a report; 0 without one.",
    );
    text.sample(&[], status.oldest_order_at.map_or(0.0, |at| seconds(status.at.saturating_sub(at))));
    let mut streams = |name: &'static str, help: &str, value: &dyn Fn(&StreamStatus) -> u64| {
        text.gauge(name, help);
        for stream in &status.streams {
            text.sample(&[("stream", &stream.name)], exact(value(stream)));
        }
    };
    streams("archeflow_fleet_stream_bytes", "Bytes that the stream keeps.", &|stream| stream.bytes);
    streams("archeflow_fleet_stream_limit_bytes", "Bytes that it may keep.", &|stream| stream.limit);
    streams("archeflow_fleet_stream_messages", "Messages that it keeps.", &|stream| stream.messages);
    streams("archeflow_fleet_stream_copies", "Servers that should have it.", &|stream| stream.copies);
    streams("archeflow_fleet_stream_followers_behind", "Servers that do not have all of it.", &|stream| {
        stream.followers.iter().filter(|one| !one.current).count() as u64
    });
    streams("archeflow_fleet_stream_lag", "Messages that the slowest server lags behind.", &|stream| {
        stream.followers.iter().map(|one| one.lag).max().unwrap_or(0)
    });
    let mut budgets = |name: &'static str, help: &str, value: &dyn Fn(&BudgetStatus) -> Option<Money>| {
        text.gauge(name, help);
        for budget in &status.budgets {
            if let Some(money) = value(budget) {
                text.sample(&[("budget", &budget.name)], dollars(money));
            }
        }
    };
    budgets("archeflow_fleet_budget_cap_usd", "Most that may be spent; absent if unlimited.", &|one| {
        one.cap_usd
    });
    budgets("archeflow_fleet_budget_spent_usd", "Spent so far.", &|one| Some(one.spent_usd));
    budgets("archeflow_fleet_budget_reserved_usd", "Reserved for runs under way.", &|one| Some(one.held_usd));
    text.gauge(
        "archeflow_fleet_account_shut_seconds",
        "Seconds until an account that is shut is tried again.",
    );
    for shut in &status.accounts {
        text.sample(&[("account", &shut.account)], seconds(shut.until.saturating_sub(status.at)));
    }
    text.gauge(
        "archeflow_fleet_sprint_idle_seconds",
        "Seconds since the last line of a sprint that has not ended.",
    );
    for sprint in status.sprints.iter().filter(|sprint| !sprint.ended) {
        text.sample(&[("sprint", &sprint.sprint)], seconds(status.at.saturating_sub(sprint.last_line_at)));
    }
    text.finish()
}

#[cfg(test)]
#[path = "status/tests.rs"]
mod tests;
