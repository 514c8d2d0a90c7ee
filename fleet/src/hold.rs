//! An order that a worker performs, with every delivery of it that the worker was given. A server hands an order out again when
//! its lease has ended, and a conductor gives one again that nobody seems to have. Either may come to the worker that still
//! performs it: then nothing is begun a second time, and the worker has one more delivery to extend and to acknowledge.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::bus::{Bus, BusError, Delivery, Lease};
use crate::message::Held;

pub struct Hold {
    /// Nothing for an order that can't be read.
    order: Option<Held>,
    begun_with: Delivery,
    copies: Mutex<Copies>,
}

struct Copies {
    /// One for each message of the server, in the order in which they came.
    all: Vec<OrderCopy>,
    has_ended: bool,
}

struct OrderCopy {
    delivery: Delivery,
    /// It came while the order was performed.
    is_late: bool,
}

/// How an order ends here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HoldEnd {
    Done,
    /// Another session has the run. What it had taken it from is dropped; what was handed out again since is not: nobody
    /// extended it.
    Overtaken,
    Back(Duration),
    Never,
}

impl Hold {
    pub fn new(order: Option<Held>, delivery: Delivery) -> Hold {
        let first = OrderCopy { delivery: delivery.clone(), is_late: false };
        let copies = Mutex::new(Copies { all: vec![first], has_ended: false });
        Hold { order, begun_with: delivery, copies }
    }

    fn copies(&self) -> MutexGuard<'_, Copies> {
        self.copies.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The delivery that it was begun with.
    pub fn begun_with(&self) -> &Delivery {
        &self.begun_with
    }

    /// The delivery that came last.
    pub fn latest(&self) -> Delivery {
        self.copies().all.last().map_or(&self.begun_with, |copy| &copy.delivery).clone()
    }

    /// Whether this is the order that is performed here. Its delivery is extended and acknowledged with the others then.
    pub fn adopt(&self, order: &Held, delivery: &Delivery) -> bool {
        if self.order.as_ref() != Some(order) {
            return false;
        }
        let mut copies = self.copies();
        if copies.has_ended {
            return false;
        }
        // Of one message only the last delivery counts.
        let is_same = |known: &Delivery| known.subject == delivery.subject && known.seq == delivery.seq;
        copies.all.retain(|copy| !is_same(&copy.delivery));
        copies.all.push(OrderCopy { delivery: delivery.clone(), is_late: true });
        true
    }

    /// Extends the lease of every delivery. Whether the server has heard it for the last one.
    pub fn extend(&self, bus: &dyn Bus) -> bool {
        let tokens: Vec<String> = self.copies().all.iter().map(|copy| copy.delivery.token.clone()).collect();
        tokens.iter().fold(false, |_, token| bus.lease(token, Lease::Extend).is_ok())
    }

    /// Adopts no delivery from now on, and answers all of them, the last one first. Of several that are handed back only the
    /// last one stays: two workers would perform the same order otherwise.
    pub(crate) fn end(&self, bus: &dyn Bus, end: HoldEnd) -> Result<(), BusError> {
        let all = {
            let mut copies = self.copies();
            copies.has_ended = true;
            std::mem::take(&mut copies.all)
        };
        let mut is_last = true;
        for copy in all.into_iter().rev() {
            let lease = match end {
                HoldEnd::Overtaken if copy.is_late && is_last => Lease::Back(Duration::ZERO),
                HoldEnd::Back(delay) if is_last => Lease::Back(delay),
                HoldEnd::Never => Lease::Never,
                HoldEnd::Done | HoldEnd::Overtaken | HoldEnd::Back(_) => Lease::Done,
            };
            is_last = false;
            bus.lease(&copy.delivery.token, lease)?;
        }
        Ok(())
    }
}
