//! What a conductor does beside waiting: takes reports, hears heartbeats, gives orders again, cancels, removes what was
//! answered.

use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Arc, Weak};
use std::thread;
use std::time::{Duration, Instant};

use archeflow_core::model::Seq;
use archeflow_core::sprint::event::RunEnd;

use super::desk::Report;
use super::{NAP, Shared, put, stopped};
use crate::bus::{BusError, BusSeq, Delivery, Heard, Kept, Lease};
use crate::message::{self, Control, ControlCommand, FORMAT, FleetOrder, FleetReport, Held, Unreadable};
use crate::{names, worker};

/// Reports that are taken at a time.
const REPORTS: usize = 256;
/// How long one question for reports waits. A crew that was dropped is noticed as late as that.
const WAIT: Duration = Duration::from_secs(5);
/// All workers.
const EVERYBODY: &str = "af1.hb.>";
/// When a report comes back that was written by a newer version.
const LATER: Duration = Duration::from_secs(30);

pub(super) fn start(shared: &Arc<Shared>) {
    // Until the first orders are given, workers have found it.
    let _ = shared.bus.prepare(&names::orders(&message::class(&shared.how.needs)));
    let weak = Arc::downgrade(shared);
    thread::spawn(move || take_reports(&weak));
    let weak = Arc::downgrade(shared);
    thread::spawn(move || make_rounds(&weak));
}

/// The conductor, while there is one.
fn present(weak: &Weak<Shared>) -> Option<Arc<Shared>> {
    weak.upgrade().filter(|shared| !shared.desk().is_over)
}

fn take_reports(weak: &Weak<Shared>) {
    while let Some(shared) = present(weak) {
        let queue = names::reports(&shared.how.sprint);
        match shared.bus.take_some(&queue, REPORTS, WAIT) {
            // It was abandoned meanwhile: these are the next conductor's.
            Ok(some) if shared.desk().is_over => {
                for delivery in some {
                    let _ = shared.bus.lease(&delivery.token, Lease::Back(Duration::ZERO));
                }
            }
            Ok(some) => {
                let dropped: Vec<String> =
                    some.into_iter().filter_map(|delivery| shared.hear_report(delivery)).collect();
                shared.bus.done_with(&dropped);
            }
            Err(_) => thread::sleep(NAP),
        }
    }
}

fn make_rounds(weak: &Weak<Shared>) {
    let mut heard: Option<Receiver<Heard>> = None;
    let mut state = Rounds { next: Instant::now(), sweep: None, room: 0, lack: None, was_lack_shown: false };
    while let Some(shared) = present(weak) {
        match &heard {
            None => match shared.bus.hear(EVERYBODY) {
                Ok(beats) => heard = Some(beats),
                Err(_) => thread::sleep(NAP),
            },
            Some(beats) => match beats.recv_timeout(NAP.min(shared.how.lease / 6)) {
                Ok(beat) => {
                    let all = std::iter::once(beat).chain(beats.try_iter());
                    let now = shared.now();
                    let mut desk = shared.desk();
                    all.filter_map(|beat| message::read(&beat.bytes).ok())
                        .for_each(|beat| desk.dispatch.heard(beat, now));
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => heard = None,
            },
        }
        shared.round(&mut state);
    }
}

/// What was seen in the last round.
struct Rounds {
    next: Instant,
    sweep: Option<Instant>,
    room: u32,
    /// What keeps all orders from being taken, and since when.
    lack: Option<(String, Instant)>,
    was_lack_shown: bool,
}

impl Shared {
    fn round(&self, state: &mut Rounds) {
        let now = self.now();
        let room = self.desk().dispatch.room(&self.how.needs, now);
        if room != state.room {
            state.room = room;
            self.wake();
        }
        if Instant::now() < state.next {
            return;
        }
        state.next = Instant::now() + NAP.min(self.how.lease / 6);
        self.note_lack(state, now);
        if self.desk().is_stopping {
            self.cancel(now);
        } else {
            let overdue = self.desk().dispatch.overdue(now);
            overdue.iter().for_each(|order| self.give_again(order));
        }
        if state.sweep.is_none_or(|at| at.elapsed() >= self.how.lease) {
            state.sweep = Some(Instant::now());
            // Another time, if the server is away.
            let _ = self.sweep();
        }
    }

    /// A worker says within a third of a lease that it is there.
    fn note_lack(&self, state: &mut Rounds, now: u64) {
        let lack = self.desk().dispatch.lack(&self.how.needs, now);
        match (lack, &state.lack) {
            (None, _) => (state.lack, state.was_lack_shown) = (None, false),
            (Some(lack), Some((known, since))) if lack == *known => {
                if !state.was_lack_shown && since.elapsed() >= self.how.lease / 3 {
                    state.was_lack_shown = true;
                    self.desk().lack = Some(lack);
                    self.wake();
                }
            }
            (Some(lack), _) => {
                (state.lack, state.was_lack_shown) = (Some((lack, Instant::now())), false);
            }
        }
    }

    /// Nobody has had it for long. If a copy is still in the queue, the server does not hand it out.
    fn give_again(&self, order: &FleetOrder) {
        self.remove_copies(order.seq);
        if let Ok(copy) = put(&*self.bus, order) {
            self.desk().published(order.seq, copy);
        }
    }

    /// Positions begin anew when a server has lost everything: only what is this order is removed.
    fn remove_copies(&self, seq: Seq) {
        let copies = self.desk().copies.remove(&seq).unwrap_or_default();
        for copy in copies {
            let kept = self.bus.next_from(names::ORDERS, "af1.o.>", copy);
            if let Ok(Some(kept)) = kept
                && kept.seq == copy
                && self.order_of(&kept).is_some_and(|order| order.seq == seq)
            {
                let _ = self.bus.remove(names::ORDERS, copy);
            }
        }
    }

    /// Cancels at the workers that have an order of this sprint, until it is reported. One that nobody has is removed from
    /// the queue; it is over when nobody said since that they have it.
    fn cancel(&self, now: u64) {
        let lease_ms = u64::try_from(self.how.lease.as_millis()).unwrap_or(u64::MAX);
        let (mut asked, mut unheld) = (Vec::new(), Vec::new());
        {
            let desk = self.desk();
            for (order, alive_at) in desk.dispatch.open() {
                let mut holders: Vec<String> =
                    desk.dispatch.holders(order.seq, now).map(str::to_owned).collect();
                if holders.is_empty() {
                    let is_over = now.saturating_sub(alive_at) >= lease_ms / 3;
                    unheld.push((order.seq, worker::run_of(order), is_over));
                    // One of them may have just taken it.
                    holders.extend(desk.dispatch.workers(now).map(|beat| beat.worker.clone()));
                }
                asked.extend(holders.into_iter().map(|worker| (worker, order.seq)));
            }
        }
        for (worker, seq) in asked {
            let held = Held { sprint: self.how.sprint.clone(), seq };
            let control = Control { v: FORMAT, command: ControlCommand::Cancel(held) };
            if let Ok(bytes) = serde_json::to_vec(&control) {
                let _ = self.bus.say(&names::control(&worker), &bytes);
            }
        }
        for (seq, run, is_over) in unheld {
            self.remove_copies(seq);
            if is_over {
                self.desk().answer(seq, stopped(&run));
            }
        }
    }

    /// What the server has of orders that an earlier session left.
    pub(super) fn find_left(&self) -> Result<(), BusError> {
        self.each_kept(names::ORDERS, "af1.o.>", |kept| {
            if let Some(order) = self.order_of(&kept) {
                self.desk().found(order, kept.seq);
            }
        })?;
        // Reports that the earlier session had taken come again when its lease ends; here they are at once.
        self.each_kept(names::REPORTS, &names::reports(&self.how.sprint), |kept| {
            if let Ok((seq, end)) = read_report(&kept.bytes) {
                self.desk().reported(seq, end, None);
            }
        })
    }

    /// Removes orders that were answered.
    fn sweep(&self) -> Result<(), BusError> {
        let mut answered: Vec<BusSeq> = Vec::new();
        self.each_kept(names::ORDERS, "af1.o.>", |kept| {
            let Some(order) = self.order_of(&kept) else { return };
            let desk = self.desk();
            if !desk.dispatch.is_open(order.seq) && !desk.left.contains(&order.seq) {
                answered.push(kept.seq);
            }
        })?;
        // Their workers acknowledge them right after the report: only what is still there is removed.
        answered.iter().try_for_each(|seq| self.bus.remove(names::ORDERS, *seq))
    }

    fn each_kept(&self, stream: &str, subject: &str, mut see: impl FnMut(Kept)) -> Result<(), BusError> {
        let mut next = 1;
        while let Some(kept) = self.bus.next_from(stream, subject, next)? {
            next = kept.seq + 1;
            see(kept);
        }
        Ok(())
    }

    /// An order of this sprint.
    fn order_of(&self, kept: &Kept) -> Option<FleetOrder> {
        let order = message::read_order(&kept.bytes).ok()?;
        (order.sprint == self.how.sprint).then_some(order)
    }

    /// Returns the delivery to be acknowledged now, if it is of no use.
    fn hear_report(&self, delivery: Delivery) -> Option<String> {
        match read_report(&delivery.bytes) {
            Ok((seq, end)) => {
                let token = delivery.token;
                match self.desk().reported(seq, end, Some(token.clone())) {
                    Report::Taken => None,
                    Report::Dropped => Some(token),
                }
            }
            Err(Unreadable::Newer { .. }) => {
                self.warn("a report was written by a newer version: update archeflow here".to_owned());
                let _ = self.bus.lease(&delivery.token, Lease::Back(LATER));
                None
            }
            Err(Unreadable::Broken(why)) => {
                self.warn(format!("a report can't be read: {why}"));
                let _ = self.bus.lease(&delivery.token, Lease::Never);
                None
            }
        }
    }
}

fn read_report(bytes: &[u8]) -> Result<(Seq, RunEnd), Unreadable> {
    let report: FleetReport = message::read(bytes)?;
    match report.event.ends().as_slice() {
        [end] => Ok((report.start_seq, (*end).clone())),
        _ => Err(Unreadable::Broken("it answers no order".to_owned())),
    }
}
