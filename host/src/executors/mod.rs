//! Performs orders. Every order is carried out on a thread of its own (`hands.rs`) and answered by exactly one report.
//!
//! Each performer looks before it acts: what an order wants may have happened already, before a crash. So resuming
//! a run is nothing but performing its open orders again.

mod account;
mod agent;
pub(crate) mod build_cache;
pub(crate) mod checks;
mod citations;
pub(crate) mod client;
mod confined;
pub(crate) mod context;
mod done;
mod evidence;
mod held_key;
mod landing;
mod looking;
mod meter;
pub(crate) mod old_tests;
pub(crate) mod preflight;
mod reverting;
pub mod setup;
mod spelling;
mod usage;

use std::sync::Arc;
use std::sync::mpsc::Sender;

use archeflow_core::event::{AgentStart, Order, PreflightDone, PreflightStart, Report};
use archeflow_core::model::{Policy, Seq};
use archeflow_core::projections::commit_message;
use archeflow_core::run::Run;

use crate::agent_loop::orders;
use crate::clock;
use crate::control::Steering;
use crate::hands;
use crate::replica::ReplicaAnswer;
use crate::world::World;

pub(crate) use agent::{ANSWER, STREAM};
pub use citations::look_up_in_folder;
pub(crate) use citations::look_up_in_memory;
pub(crate) use citations::resolve as resolve_citations;
pub(crate) use client::remove_homes;
pub use context::Error as DeskError;
pub use looking::{WantedSigns, change_of};

/// What reaches the driver.
#[derive(Debug)]
pub enum Message {
    Report {
        order: Seq,
        report: Report,
    },
    /// What an agent prints while it works; shown, never written down.
    AgentLine {
        order: Seq,
        text: String,
    },
    /// A fault that stops the run outside of its own rules.
    Trouble(ExecutorFault),
    Signal(i32),
    /// Another process asks something of the run.
    Steer(Steering),
    /// The process that keeps a copy of the journal says something.
    Replica(ReplicaAnswer),
}

#[derive(Debug, thiserror::Error)]
pub enum ExecutorFault {
    #[error(
        "your repository changed while {who} worked: {what}. Nothing was put back: look at it, then resume"
    )]
    Tampered { who: String, what: String },
    #[error("could not write {path}: {why}")]
    Artifact { path: String, why: String },
    #[error("step {order} could not be carried out: {why}. Nothing is lost: resume")]
    Unperformed { order: Seq, why: String },
}

/// The setup and test commands on their own, without a run.
pub(crate) fn try_commands(world: &World, policy: &Policy, start: &PreflightStart) -> PreflightDone {
    world.note_setup(policy);
    preflight::perform(world, 0, start)
}

/// Starts an order on its way. The brief of an agent is written here, while the run can be looked at.
///
/// `left_open`: an earlier session may have begun with it.
pub fn perform(
    world: &Arc<World>,
    run: &Run,
    seq: Seq,
    order: &Order,
    left_open: bool,
    inbox: &Sender<Message>,
) -> Result<(), context::Error> {
    let since = recover_since(run, left_open);
    world.note_setup(run.policy());
    let lands = matches!(
        order,
        Order::MergeStart(_) | Order::TestsStart(_) | Order::HookStart(_) | Order::MergeIntent(_)
    );
    if !lands {
        landing::leave_turn(world);
    }
    let (world, send) = (Arc::clone(world), inbox.clone());
    match order {
        Order::AgentStart(start) => {
            let inputs = context::agent_inputs(&world, run, seq, start)?;
            spawn(inbox, seq, move || agent::perform(&world, &inputs, &send));
        }
        Order::MergeStart(start) => {
            let (start, message) = ((**start).clone(), commit_message::landing(run, &world.run_id));
            spawn(inbox, seq, move || report(&send, seq, landing::build(&world, seq, &start, &message)));
        }
        Order::PreflightStart(start) => {
            let start = (**start).clone();
            spawn(inbox, seq, move || report(&send, seq, preflight::perform(&world, seq, &start)));
        }
        Order::TestsStart(start) => {
            let (start, old) = ((**start).clone(), run.old_tests_of(start).cloned());
            spawn(inbox, seq, move || {
                report(&send, seq, checks::tests(&world, seq, &start, old.as_deref()));
            });
        }
        Order::EvidenceStart(start) => {
            let start = (**start).clone();
            spawn(inbox, seq, move || evidence::perform(&world, seq, &start, &send));
        }
        Order::LoopAppend(order) => {
            let (order, heard) = ((**order).clone(), run.heard_in_file());
            spawn(inbox, seq, move || report(&send, seq, orders::append(&world, seq, &order, &heard)));
        }
        Order::BatteryStart(start) => {
            let (start, policy) = ((**start).clone(), run.policy().looping.clone());
            spawn(inbox, seq, move || {
                if let Some(done) = orders::battery(&world, seq, &start, &policy) {
                    report(&send, seq, done);
                }
            });
        }
        Order::LoopArchive(order) => {
            let order = (**order).clone();
            spawn(inbox, seq, move || report(&send, seq, orders::snapshot(&world, seq, &order)));
        }
        Order::HookStart(start) => {
            let (start, limit_ms) = ((**start).clone(), run.policy().limits.hook_ms);
            spawn(inbox, seq, move || report(&send, seq, checks::hook(&world, seq, &start, limit_ms)));
        }
        Order::MergeIntent(intent) => {
            let (intent, work, chain) = ((**intent).clone(), run.work.clone(), run.landing.chain.clone());
            spawn(inbox, seq, move || {
                report(&send, seq, landing::land(&world, seq, &intent, (work.as_ref(), &chain), since));
            });
        }
        Order::RevertStart(start) => {
            let start = (**start).clone();
            let why = "A person asked for it: archeflow revert.";
            let message = commit_message::revert(run, &world.run_id, &start.landed, why);
            spawn(inbox, seq, move || report(&send, seq, reverting::build(&world, seq, &start, &message)));
        }
        Order::RevertIntent(intent) => {
            let intent = (**intent).clone();
            let why = "The tests failed after landing.";
            let message = commit_message::revert(run, &world.run_id, &intent.landed, why);
            spawn(inbox, seq, move || {
                report(&send, seq, reverting::revert(&world, seq, &intent, &message, since));
            });
        }
        // A question waits for a person; the driver puts it to them.
        Order::QuestionAsked(_) => {}
    }
    Ok(())
}

/// From when on a lock in the way of a landing can be our own dead child's; `None` when nothing can have been left
/// half done. In a resumed run, an earlier landing may have moved files and then been overtaken by another process
/// else's: its files are recognised, but no lock beside a new intent is ours.
fn recover_since(run: &Run, left_open: bool) -> Option<std::time::SystemTime> {
    const DAY: u64 = 86_400_000;
    let taken_up_again = run.session.as_ref().is_some_and(|session| session.fence > 1);
    match (left_open, taken_up_again) {
        (true, _) => Some(clock::instant(run.landing.since)),
        (false, true) => Some(clock::instant(clock::now() + DAY)),
        (false, false) => None,
    }
}

/// Reports an executor that never began or panicked to the driver; the next session performs the order again.
fn spawn(inbox: &Sender<Message>, order: Seq, work: impl FnOnce() + Send + 'static) {
    let hand = Hand { inbox: inbox.clone(), order };
    let begun = hands::start(move || {
        let _hand = hand;
        work();
    });
    if let Err(error) = begun {
        let why = format!("no thread could be started ({error})");
        let _ = inbox.send(Message::Trouble(ExecutorFault::Unperformed { order, why }));
    }
}

struct Hand {
    inbox: Sender<Message>,
    order: Seq,
}

impl Drop for Hand {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let why = "a fault of this program".to_owned();
            let _ = self.inbox.send(Message::Trouble(ExecutorFault::Unperformed { order: self.order, why }));
        }
    }
}

fn report(send: &Sender<Message>, order: Seq, report: impl Into<Report>) {
    let _ = send.send(Message::Report { order, report: report.into() });
}

/// The last bytes of a file; nothing when it can't be read.
pub(crate) fn tail(path: &std::path::Path, bytes: u64) -> Vec<u8> {
    use std::io::{Read, Seek, SeekFrom};
    let read = || -> std::io::Result<Vec<u8>> {
        let mut file = std::fs::File::open(path)?;
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(bytes)))?;
        let mut tail = Vec::new();
        file.take(bytes).read_to_end(&mut tail)?;
        Ok(tail)
    };
    read().unwrap_or_default()
}

/// The name of an agent's artifact (AF-165).
pub fn artifact_name(start: &AgentStart) -> String {
    use archeflow_core::model::{Purpose, Role};
    match (start.role, start.purpose) {
        (Role::Explorer, Purpose::Research) => "plan-mini-explorer.md".to_owned(),
        (Role::Explorer, _) => "plan-explorer.md".to_owned(),
        (Role::Creator, _) => "plan-creator.md".to_owned(),
        (Role::Maker, _) => "do-maker.md".to_owned(),
        (Role::Gatekeeper | Role::Reviewer, _) => format!("check-{}.md", start.archetype),
    }
}
