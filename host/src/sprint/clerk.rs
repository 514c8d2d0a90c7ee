//! Claims and results, written into the queue on one thread: what was ordered while the file was being written goes
//! into the next writing together. A long queue is written once for many items then, and not once for each.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;

use archeflow_core::model::Seq;
use archeflow_core::sprint::event::SprintEvent;
use archeflow_core::sprint::queue::{ItemStatus, QueueItem};

use super::crew::{SprintCrew, SprintSetup};
use super::drive::SprintMessage;
use super::queue::{Claim, Error, Queue};
use super::queue_copy::QueueCopy;

pub(super) enum QueueOrder {
    Claim { item: String },
    Settle { item: String, fence: Option<u64>, status: ItemStatus, note: String, run: Option<String> },
}

/// What came of an order.
enum Done {
    Claimed { fence: Option<u64>, left: Option<(QueueItem, String)> },
    Settled,
}

pub(super) struct QueueClerk {
    orders: Sender<(Seq, QueueOrder)>,
}

impl QueueClerk {
    pub(super) fn start(
        setup: SprintSetup,
        crew: Arc<dyn SprintCrew>,
        copy: Arc<Mutex<QueueCopy>>,
        post: Sender<SprintMessage>,
    ) -> QueueClerk {
        let (orders, inbox) = channel();
        thread::spawn(move || work(&setup, &crew, &copy, &inbox, &post));
        QueueClerk { orders }
    }

    pub(super) fn give(&self, seq: Seq, order: QueueOrder) {
        // Its thread ends with the driver.
        let _ = self.orders.send((seq, order));
    }
}

/// Until the driver is gone.
fn work(
    setup: &SprintSetup,
    crew: &Arc<dyn SprintCrew>,
    copy: &Mutex<QueueCopy>,
    inbox: &Receiver<(Seq, QueueOrder)>,
    post: &Sender<SprintMessage>,
) {
    while let Ok(first) = inbox.recv() {
        let orders: Vec<(Seq, QueueOrder)> = std::iter::once(first).chain(inbox.try_iter()).collect();
        let done = setup.place.change_copy(copy, |queue| {
            orders
                .iter()
                .map(|(_, order)| perform(queue, &setup.sprint_id, order))
                .collect::<Result<Vec<_>, _>>()
        });
        match done {
            Ok(done) => {
                let seqs = orders.iter().map(|(seq, _)| *seq);
                seqs.zip(done).for_each(|(seq, done)| report(crew, post, seq, done));
            }
            // All orders stay open: the next session performs them again.
            Err(error) => {
                let seq = orders.first().map_or(0, |(seq, _)| *seq);
                let _ = post.send(SprintMessage::Report(seq, Err(error)));
            }
        }
    }
}

/// An item is taken unless another process has it, and settled only while it is still ours.
fn perform(queue: &mut Queue, sprint_id: &str, order: &QueueOrder) -> Result<Done, Error> {
    match order {
        QueueOrder::Claim { item } => {
            let claim = queue.claim(item, sprint_id)?;
            let fence = claim.as_ref().map(|claim| claim.fence);
            let run = claim.and_then(|claim| claim.run);
            Ok(Done::Claimed { fence, left: queue.get(item).cloned().zip(run) })
        }
        QueueOrder::Settle { item, fence, status, note, run } => {
            let claim = fence.map(|fence| Claim { sprint: sprint_id.to_owned(), fence, run: run.clone() });
            queue.settle(item, claim.as_ref(), *status, note)?;
            Ok(Done::Settled)
        }
    }
}

/// Looking for an earlier run may take a while, and nobody else waits for it.
fn report(crew: &Arc<dyn SprintCrew>, post: &Sender<SprintMessage>, seq: Seq, done: Done) {
    let say = |event| SprintMessage::Report(seq, Ok(event));
    match done {
        Done::Settled => drop(post.send(say(SprintEvent::Settled { start_seq: seq }))),
        Done::Claimed { fence, left: None } => {
            drop(post.send(say(SprintEvent::Claimed { start_seq: seq, fence, left: None })));
        }
        Done::Claimed { fence, left: Some((item, run)) } => {
            let (crew, post) = (Arc::clone(crew), post.clone());
            thread::spawn(move || {
                let left = crew.left(&item, &run);
                let event = SprintEvent::Claimed { start_seq: seq, fence, left };
                let _ = post.send(SprintMessage::Report(seq, Ok(event)));
            });
        }
    }
}
