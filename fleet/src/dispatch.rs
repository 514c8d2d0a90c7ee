//! Which orders a conductor has out, and which of them it has to give again. Orders are hints: giving one twice is safe, but
//! costs the steps that are under way, so it is done only when nobody has held it for three leases.

use std::collections::BTreeMap;

use archeflow_core::model::Seq;

use crate::message::{FleetOrder, Heartbeat};

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
        let late = self.open.values_mut().filter(|open| now.saturating_sub(open.alive_at) >= limit);
        late.map(|open| {
            open.alive_at = now;
            open.order.again += 1;
            open.order.clone()
        })
        .collect()
    }

    /// Workers heard of within three leases.
    pub fn workers(&self, now: u64) -> impl Iterator<Item = &Heartbeat> {
        let limit = LEASES * self.lease_ms;
        let alive = self.workers.values().filter(move |(_, at)| now.saturating_sub(*at) < limit);
        alive.map(|(beat, _)| beat)
    }

    /// The most items that may be under way: every slot, and a tenth more, so that a slot that becomes free finds an order.
    pub fn room(&self, now: u64) -> u32 {
        let slots: u32 = self.workers(now).filter(|beat| !beat.draining).map(|beat| beat.slots).sum();
        slots.saturating_add(slots.div_ceil(10))
    }
}
