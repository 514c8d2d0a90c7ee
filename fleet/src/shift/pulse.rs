//! Heartbeats, leases and what the worker is asked to do: on a thread and a connection of their own, so that nothing which
//! takes long keeps a lease from being extended.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use archeflow_host::clock;
use archeflow_host::platform::machine;

use super::{Shift, ShiftObserver};
use crate::bus::{Bus, BusError, Heard};
use crate::message::{self, Control, ControlCommand, FORMAT, Heartbeat};
use crate::names;
use crate::nats::NatsBus;

const BEAT: Duration = Duration::from_secs(10);
/// How soon an end is noticed.
const LOOK: Duration = Duration::from_millis(100);

impl Shift<'_> {
    /// Until the worker has ended.
    pub(super) fn pulse(&self, bus: &NatsBus, over: &AtomicBool, observer: &dyn ShiftObserver) {
        let mut heard = bus.hear(&names::control(&self.shop.join.name)).ok();
        let mut next = Instant::now();
        while !over.load(Ordering::SeqCst) {
            self.shop.notices.take().iter().for_each(|text| observer.warn(text));
            if Instant::now() >= next {
                next = Instant::now() + self.period();
                self.extend_all(bus);
                if let Err(BusError::Denied(why)) = self.beat(bus) {
                    observer.warn(&format!("the server accepts no heartbeats: {why}"));
                }
                if self.list().is_empty() {
                    // A worker may wait for days, with little of the program in use.
                    machine::release_program();
                }
            }
            match &heard {
                Some(receiver) => match receiver.recv_timeout(LOOK) {
                    Ok(said) => {
                        self.obey(&said, observer);
                        next = Instant::now();
                    }
                    Err(std::sync::mpsc::RecvTimeoutError::Timeout) => {}
                    Err(std::sync::mpsc::RecvTimeoutError::Disconnected) => heard = None,
                },
                None => {
                    heard = bus.hear(&names::control(&self.shop.join.name)).ok();
                    std::thread::sleep(LOOK);
                }
            }
        }
    }

    /// Six times in a lease, but every ten seconds at least.
    fn period(&self) -> Duration {
        BEAT.min(self.lease() / 6)
    }

    fn extend_all(&self, bus: &NatsBus) {
        for held in self.held() {
            // What goes wrong here shows in the journal: a line of somebody else.
            if held.hold.extend(bus) {
                let _ = held.keep();
            }
        }
    }

    fn beat(&self, bus: &NatsBus) -> Result<(), BusError> {
        let beat = Heartbeat {
            v: FORMAT,
            worker: self.shop.join.name.clone(),
            version: self.shop.clones.env().version.to_owned(),
            slots: self.slots,
            draining: self.is_draining(),
            offers: self.offers.clone(),
            holds: self.tasks().iter().map(|task| task.held.clone()).collect(),
            free_bytes: machine::free_space(self.shop.clones.folder()).unwrap_or(0),
            done: *self.shop.done(),
            at: clock::now(),
        };
        let text = serde_json::to_vec(&beat).map_err(|error| BusError::Wrong(error.to_string()))?;
        bus.say(&names::heartbeat(&self.shop.join.name), &text)
    }

    fn obey(&self, said: &Heard, observer: &dyn ShiftObserver) {
        let control: Control = match message::read(&said.bytes) {
            Ok(control) => control,
            Err(why) => return observer.warn(&format!("a message to this worker is ignored: {why}")),
        };
        match control.command {
            ControlCommand::Drain => {
                if !self.drain() {
                    observer.note("takes nothing new, and ends when what it has is done");
                }
            }
            ControlCommand::Cancel(which) => {
                self.tasks().iter().filter(|task| task.held == which).for_each(|task| task.cancel());
            }
        }
    }
}
