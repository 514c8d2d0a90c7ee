//! What a worker does with an order, from taking it to reporting it. Where runs are performed is behind a trait: clones and
//! processes in the program, a model in the simulation.

use std::time::Duration;

use archeflow_core::sprint::event::SprintEvent;

use crate::bus::{Bus, BusError, Expect, Put, PutEnd};
use crate::hold::{Hold, HoldEnd};
use crate::journal::{self, Found, JournalFault, JournalWriter, LocalLines};
use crate::message::{self, FORMAT, FleetOrder, FleetReport, Held, Unreadable, Work};
use crate::names;

/// When an order comes back that this worker can't perform, but another may.
const NOT_HERE: Duration = Duration::from_secs(30);

/// Why a run is not at its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotEnded {
    /// Another session has it.
    Fenced,
    /// The server was away for too long, or this worker is to stop. Another may continue.
    GaveUp(String),
}

/// Where runs are performed.
pub trait Place {
    /// Makes the run known here as the journal on the bus has it. Lines that are here only are kept if they continue it, else
    /// set aside.
    fn take_over(&self, order: &FleetOrder, run: &str, found: &Found) -> Result<(), NotEnded>;

    fn local(&self, order: &FleetOrder, run: &str) -> Box<dyn LocalLines>;

    /// Performs an order to its end. Whatever the run writes, `publish` is called with the number of its last line, and nothing
    /// follows from it before that returns.
    fn perform(
        &self,
        order: &FleetOrder,
        run: &str,
        publish: &mut dyn FnMut(u64) -> Result<(), NotEnded>,
    ) -> Result<SprintEvent, NotEnded>;

    /// Waits before the server is asked again. `false` when it has been away for too long, or the worker is to stop.
    fn be_patient(&self, tries: u32, why: &BusError) -> bool;

    /// A name for the next session, unique among all there ever are.
    fn session(&self) -> String;

    /// The version of the program that performs orders here.
    fn version(&self) -> &str {
        env!("CARGO_PKG_VERSION")
    }
}

/// Whether a version is this one or a later one. What is no version is later than all.
pub fn is_at_least(version: &str, wanted: &str) -> bool {
    let numbers = |text: &str| {
        let (numbers, _) = text.split_once(['-', '+']).unwrap_or((text, ""));
        numbers.split('.').map(|part| part.parse().unwrap_or(u64::MAX)).collect::<Vec<u64>>()
    };
    wanted.is_empty() || numbers(version) >= numbers(wanted)
}

/// The run that an order is about. Several that land together are reported by the last of them.
pub fn run_of(order: &FleetOrder) -> String {
    match &order.work {
        Work::Run { item, attempt, .. } => archeflow_core::sprint::run_id(&order.sprint, &item.id, *attempt),
        Work::Resume { run, .. } | Work::Land { run, .. } => run.clone(),
        Work::Batch { candidates } => candidates.last().map(|one| one.run_id.clone()).unwrap_or_default(),
        Work::Trial { trial } => archeflow_core::sprint::run_id(&order.sprint, &trial.name, 1),
    }
}

/// How workers and conductors name an order.
pub fn held(order: &FleetOrder) -> Held {
    Held { sprint: order.sprint.clone(), seq: order.seq }
}

/// Performs one order. Errors are those of the bus on the way; the order then comes back by itself.
pub fn serve(bus: &dyn Bus, place: &dyn Place, worker: &str, hold: &Hold) -> Result<Served, BusError> {
    let order = match message::read_order(&hold.begun_with().bytes) {
        Ok(order) => order,
        // A newer worker can.
        Err(Unreadable::Newer { .. }) => {
            hold.end(bus, HoldEnd::Back(NOT_HERE))?;
            return Ok(Served::NotForUs);
        }
        Err(Unreadable::Broken(why)) => {
            hold.end(bus, HoldEnd::Never)?;
            return Ok(Served::Broken(why));
        }
    };
    if !is_at_least(place.version(), &order.min_version) {
        hold.end(bus, HoldEnd::Back(NOT_HERE))?;
        return Ok(Served::NotForUs);
    }
    match perform(bus, place, &order) {
        Ok(event) => {
            report(bus, place, worker, &order, event)?;
            hold.end(bus, HoldEnd::Done)?;
            Ok(Served::Reported)
        }
        // Another has taken the run over, with an order of its own, and this one is dropped. Left in the queue it would come
        // back and take the run from somebody who is alive, again and again. If it was the same order after all, it is given
        // again once nobody holds it.
        Err(NotEnded::Fenced) => {
            let _ = hold.end(bus, HoldEnd::Overtaken);
            Ok(Served::Fenced)
        }
        Err(NotEnded::GaveUp(why)) => {
            // If that is not heard either, the lease ends by itself.
            let _ = hold.end(bus, HoldEnd::Back(Duration::ZERO));
            Ok(Served::GaveUp(why))
        }
    }
}

/// How an order was served.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Served {
    Reported,
    Fenced,
    GaveUp(String),
    NotForUs,
    Broken(String),
}

fn perform(bus: &dyn Bus, place: &dyn Place, order: &FleetOrder) -> Result<SprintEvent, NotEnded> {
    let run = run_of(order);
    let subject = names::run_journal(&run);
    let found = patiently(place, || journal::read(bus, &subject))?;
    place.take_over(order, &run, &found)?;
    let local = place.local(order, &run);
    let mut writer = JournalWriter::new(bus, subject, place.session(), &found);
    place.perform(order, &run, &mut |line| patiently(place, || writer.publish(&*local, line)))
}

/// Asks again while there is no answer.
fn patiently<T>(place: &dyn Place, mut once: impl FnMut() -> Result<T, JournalFault>) -> Result<T, NotEnded> {
    for tries in 1.. {
        match once() {
            Ok(done) => return Ok(done),
            Err(JournalFault::Fenced { .. }) => return Err(NotEnded::Fenced),
            Err(JournalFault::Bus(why @ (BusError::NoAnswer(_) | BusError::Full(_))))
                if place.be_patient(tries, &why) => {}
            Err(other) => return Err(NotEnded::GaveUp(other.to_string())),
        }
    }
    Err(NotEnded::GaveUp("no answer".to_owned()))
}

/// A report may arrive twice: the conductor counts one per order.
fn report(
    bus: &dyn Bus,
    place: &dyn Place,
    worker: &str,
    order: &FleetOrder,
    event: SprintEvent,
) -> Result<(), BusError> {
    let report = FleetReport { v: FORMAT, start_seq: order.seq, worker: worker.to_owned(), event };
    let bytes = serde_json::to_vec(&report).map_err(|error| BusError::Wrong(error.to_string()))?;
    let subject = names::reports(&order.sprint);
    let id = format!("{}:{}:{}", order.sprint, order.seq, order.again);
    let put = Put { subject: &subject, expect: Expect::Anything, id: Some(&id), headers: &[], bytes: &bytes };
    for tries in 1.. {
        match bus.put(put) {
            Ok(PutEnd::Kept(_) | PutEnd::Refused) => break,
            Err(why @ (BusError::NoAnswer(_) | BusError::Full(_))) if place.be_patient(tries, &why) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fl_136_versions_are_compared_by_their_numbers() {
        for (version, wanted, expected) in [
            ("0.4.0", "0.4.0", true),
            ("0.4.1", "0.4.0", true),
            ("0.10.0", "0.9.9", true),
            ("1.0.0", "0.9", true),
            ("0.4.0", "", true),
            ("0.4.0-rc.1", "0.4.0", true),
            ("0.3.9", "0.4.0", false),
            ("0.4", "0.4.1", false),
            ("0.4.0", "new", false),
        ] {
            assert_eq!(is_at_least(version, wanted), expected, "{version} for {wanted}");
        }
    }
}
