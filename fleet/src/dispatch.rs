//! Which orders a conductor has out, and which of them it has to give again. Orders are hints: giving one twice is safe, but
//! costs the steps that are under way, so it is done only when nobody has held it for three leases, although a worker had
//! room for it.

use std::collections::{BTreeMap, BTreeSet};

use archeflow_core::model::Seq;

use crate::message::{FleetOrder, Heartbeat, satisfies};

/// Leases that pass without a sign of life.
const LEASES: u64 = 3;

/// Times are milliseconds of one clock of this process.
#[derive(Debug)]
pub struct Dispatch {
    sprint: String,
    lease_ms: u64,
    open: BTreeMap<Seq, OpenOrder>,
    workers: BTreeMap<String, (Heartbeat, u64)>,
}

#[derive(Debug)]
struct OpenOrder {
    order: FleetOrder,
    /// When it was given, or somebody last said that they have it.
    alive_at: u64,
}

impl Dispatch {
    pub fn new(sprint: &str, lease_ms: u64) -> Dispatch {
        let (open, workers) = (BTreeMap::new(), BTreeMap::new());
        Dispatch { sprint: sprint.to_owned(), lease_ms, open, workers }
    }

    /// An order that is about to be published.
    pub fn give(&mut self, order: FleetOrder, now: u64) {
        self.open.insert(order.seq, OpenOrder { order, alive_at: now });
    }

    /// Whether the order was still open.
    pub fn answered(&mut self, seq: Seq) -> bool {
        self.open.remove(&seq).is_some()
    }

    pub fn heard(&mut self, beat: Heartbeat, now: u64) {
        for held in beat.holds.iter().filter(|held| held.sprint == self.sprint) {
            if let Some(open) = self.open.get_mut(&held.seq) {
                open.alive_at = now;
            }
        }
        self.workers.insert(beat.worker.clone(), (beat, now));
    }

    /// Orders to be published again, and counted as given from now on.
    pub fn overdue(&mut self, now: u64) -> Vec<FleetOrder> {
        let limit = LEASES * self.lease_ms;
        let is_late = |open: &OpenOrder| now.saturating_sub(open.alive_at) >= limit;
        if !self.open.values().any(is_late) {
            return Vec::new();
        }
        let free: Vec<BTreeSet<String>> = self
            .workers(now)
            .filter(|beat| !beat.draining && beat.holds.len() < beat.slots as usize)
            .map(|beat| beat.offers.clone())
            .collect();
        let mut again = Vec::new();
        for open in self.open.values_mut().filter(|open| is_late(open)) {
            open.alive_at = now;
            // Otherwise it waits for a slot, as it should.
            if free.iter().any(|offers| satisfies(offers, &open.order.needs)) {
                open.order.again += 1;
                again.push(open.order.clone());
            }
        }
        again
    }

    /// Workers heard of within three leases.
    pub fn workers(&self, now: u64) -> impl Iterator<Item = &Heartbeat> {
        let limit = LEASES * self.lease_ms;
        let alive = self.workers.values().filter(move |(_, at)| now.saturating_sub(*at) < limit);
        alive.map(|(beat, _)| beat)
    }

    /// The orders that are open, each with the time since which nobody has said that they have it.
    pub fn open(&self) -> impl Iterator<Item = (&FleetOrder, u64)> {
        self.open.values().map(|open| (&open.order, open.alive_at))
    }

    pub fn is_open(&self, seq: Seq) -> bool {
        self.open.contains_key(&seq)
    }

    /// The workers that said in their last heartbeat that they have an order.
    pub fn holders(&self, seq: Seq, now: u64) -> impl Iterator<Item = &str> {
        let has = move |beat: &&Heartbeat| {
            beat.holds.iter().any(|held| held.seq == seq && held.sprint == self.sprint)
        };
        self.workers(now).filter(has).map(|beat| beat.worker.as_str())
    }

    /// The most items that may be under way: every slot of workers that satisfy these needs, without those that other sprints
    /// use, and a tenth more, so that a slot that becomes free finds an order.
    pub fn room(&self, needs: &BTreeSet<String>, now: u64) -> u32 {
        let others = |beat: &Heartbeat| beat.holds.iter().filter(|held| held.sprint != self.sprint).count();
        let free =
            |beat: &Heartbeat| beat.slots.saturating_sub(u32::try_from(others(beat)).unwrap_or(u32::MAX));
        let fit = self.workers(now).filter(|beat| !beat.draining && satisfies(&beat.offers, needs));
        let slots: u32 = fit.map(free).sum();
        slots.saturating_add(slots.div_ceil(10))
    }

    /// What keeps every order with these needs from being taken, in words.
    pub fn lack(&self, needs: &BTreeSet<String>, now: u64) -> Option<String> {
        let workers: Vec<&Heartbeat> = self.workers(now).filter(|beat| !beat.draining).collect();
        if workers.is_empty() {
            return Some("no worker is there".to_owned());
        }
        if workers.iter().any(|beat| satisfies(&beat.offers, needs)) {
            return None;
        }
        let is_offered = |need: &&String| workers.iter().any(|beat| beat.offers.contains(*need));
        let missing: Vec<&str> = needs.iter().filter(|need| !is_offered(need)).map(String::as_str).collect();
        if missing.is_empty() {
            let all: Vec<&str> = needs.iter().map(String::as_str).collect();
            return Some(format!("no worker offers {} together", all.join(", ")));
        }
        Some(format!("no worker offers {}", missing.join(", ")))
    }
}
