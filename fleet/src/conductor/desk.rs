//! What a conductor knows between two messages: who waits for which report, which reports are not acknowledged yet, and what
//! repositories were like.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::mpsc::Sender;

use archeflow_core::model::Seq;
use archeflow_core::sprint::event::RunEnd;

use super::IN_A_ROW;
use crate::bus::BusSeq;
use crate::dispatch::Dispatch;
use crate::message::FleetOrder;

pub(super) struct Desk {
    pub(super) dispatch: Dispatch,
    /// Orders that an earlier session left, and that were not answered in this one yet.
    pub(super) left: BTreeSet<Seq>,
    /// Orders of those that the server still has.
    found: BTreeMap<Seq, FleetOrder>,
    /// Reports of those that came before anybody waited.
    early: BTreeMap<Seq, RunEnd>,
    waiting: BTreeMap<Seq, Sender<RunEnd>>,
    /// Where the server has put an order.
    pub(super) copies: BTreeMap<Seq, BTreeSet<BusSeq>>,
    /// Deliveries of reports that are not in the sprint's log yet.
    unrecorded: BTreeMap<Seq, Vec<String>>,
    pub(super) is_stopping: bool,
    pub(super) is_over: bool,
    /// How often in a row a project's orders could not be begun, and why the last one.
    faults: BTreeMap<String, (u32, String)>,
    /// The accounts that the last run of a project worked with.
    pub(super) accounts: BTreeMap<String, Vec<String>>,
    pub(super) warnings: Vec<String>,
    /// What keeps all orders from being taken, if it was not shown yet.
    pub(super) lack: Option<String>,
}

/// What an order waits for.
pub(super) enum Waits {
    /// The sprint stops.
    Over,
    /// It is with the workers, or was answered.
    ForReport,
    /// It has to be given.
    ForOrder,
}

/// What becomes of a report.
pub(super) enum Report {
    /// It is acknowledged when the log has it.
    Taken,
    /// It is of no use, or was used before.
    Dropped,
}

impl Desk {
    pub(super) fn new(sprint: &str, lease_ms: u64, left: BTreeSet<Seq>) -> Desk {
        Desk {
            dispatch: Dispatch::new(sprint, lease_ms),
            left,
            found: BTreeMap::new(),
            early: BTreeMap::new(),
            waiting: BTreeMap::new(),
            copies: BTreeMap::new(),
            unrecorded: BTreeMap::new(),
            is_stopping: false,
            is_over: false,
            faults: BTreeMap::new(),
            accounts: BTreeMap::new(),
            warnings: Vec::new(),
            lack: None,
        }
    }

    /// An order of an earlier session that the server still has.
    pub(super) fn found(&mut self, order: FleetOrder, copy: BusSeq) {
        if self.left.contains(&order.seq) {
            self.copies.entry(order.seq).or_default().insert(copy);
            self.found.insert(order.seq, order);
        }
    }

    pub(super) fn wait_for(&mut self, seq: Seq, tell: Sender<RunEnd>, now: u64) -> Waits {
        if self.is_over || self.is_stopping {
            return Waits::Over;
        }
        if let Some(end) = self.early.remove(&seq) {
            let _ = tell.send(end);
            return Waits::ForReport;
        }
        self.waiting.insert(seq, tell);
        match self.found.remove(&seq) {
            Some(order) => {
                self.dispatch.give(order, now);
                Waits::ForReport
            }
            None => Waits::ForOrder,
        }
    }

    /// Whether it may be published.
    pub(super) fn give(&mut self, order: &FleetOrder, now: u64) -> bool {
        let may = self.is_waited_for(order.seq) && !self.is_stopping;
        // A report may have come while it waited for money.
        if may {
            self.dispatch.give(order.clone(), now);
        }
        may
    }

    pub(super) fn published(&mut self, seq: Seq, copy: BusSeq) {
        self.copies.entry(seq).or_default().insert(copy);
    }

    pub(super) fn forget(&mut self, seq: Seq) {
        self.dispatch.answered(seq);
        self.waiting.remove(&seq);
        self.copies.remove(&seq);
    }

    pub(super) fn is_waited_for(&self, seq: Seq) -> bool {
        self.waiting.contains_key(&seq)
    }

    pub(super) fn is_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Orders without an answer.
    pub(super) fn count_open(&self) -> usize {
        self.dispatch.open().count()
    }

    /// A report arrived. One of a run that was stopped counts only while this session stops runs: an earlier one may have
    /// cancelled it, and the order was given again since.
    pub(super) fn reported(&mut self, seq: Seq, end: RunEnd, token: Option<String>) -> Report {
        if end.stopped {
            if self.is_stopping {
                self.answer(seq, end);
            }
            return Report::Dropped;
        }
        let is_known =
            self.waiting.contains_key(&seq) || self.left.contains(&seq) || self.unrecorded.contains_key(&seq);
        if !is_known {
            return Report::Dropped;
        }
        self.unrecorded.entry(seq).or_default().extend(token);
        if self.waiting.contains_key(&seq) {
            self.answer(seq, end);
        } else if self.left.contains(&seq) {
            self.early.insert(seq, end);
        }
        Report::Taken
    }

    /// Ends the waiting for an order.
    pub(super) fn answer(&mut self, seq: Seq, end: RunEnd) {
        self.dispatch.answered(seq);
        if let Some(tell) = self.waiting.remove(&seq) {
            self.left.remove(&seq);
            let _ = tell.send(end);
        }
    }

    /// The deliveries to acknowledge, now that the log has the answers to these orders.
    pub(super) fn recorded(&mut self, answered: &[Seq]) -> Vec<String> {
        let mut tokens = Vec::new();
        for seq in answered {
            self.left.remove(seq);
            tokens.extend(self.unrecorded.remove(seq).unwrap_or_default());
        }
        tokens
    }

    /// How often in a row orders of this project could not be begun.
    pub(super) fn judge(&mut self, project: &str, is_unusable: bool, why: &str) -> u32 {
        if !is_unusable {
            self.faults.remove(project);
            return 0;
        }
        let fault = self.faults.entry(project.to_owned()).or_default();
        *fault = (fault.0 + 1, why.to_owned());
        fault.0
    }

    pub(super) fn held_back(&self, project: &str) -> Option<&str> {
        self.faults.get(project).filter(|(count, _)| *count >= IN_A_ROW).map(|(_, why)| why.as_str())
    }

    /// All that is waited for ends; the threads that listen end, too. Returns the reports that are not in the log.
    pub(super) fn abandon(&mut self) -> Vec<String> {
        self.is_over = true;
        // Without a sender, those who wait find that it was stopped.
        self.waiting.clear();
        std::mem::take(&mut self.unrecorded).into_values().flatten().collect()
    }
}
