//! What the screen shows: a [`LiveRun`], and where the person at the screen is in it.

use archeflow_core::projections::live::{Driven, LiveRun};

use super::page::Page;

#[derive(Debug, Default)]
pub(crate) struct View {
    pub(crate) live: LiveRun,
    /// A question was put to the person at this terminal.
    pub(crate) asked: bool,
    /// Turns while agents are running.
    pub(crate) frame: usize,
    pub(crate) colour: bool,
    /// Columns and rows.
    pub(crate) size: (u16, u16),
    /// Shown for a while from then on.
    pub(crate) warning: Option<(u64, String)>,
    pub(crate) pane: Pane,
    /// The row each pane is on; at the end of the list while there is none.
    pub(crate) at: [Option<usize>; Pane::ALL.len()],
    pub(crate) over: Over,
    /// The run of this process has ended; the screen is there only to be read.
    pub(crate) stays: bool,
    /// It ended while a page was read, so its end was not shown yet.
    pub(crate) unread_end: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Pane {
    #[default]
    Agents,
    Findings,
    Decisions,
}

impl Pane {
    pub(crate) const ALL: [Pane; 3] = [Pane::Agents, Pane::Findings, Pane::Decisions];

    pub(crate) fn index(self) -> usize {
        match self {
            Pane::Agents => 0,
            Pane::Findings => 1,
            Pane::Decisions => 2,
        }
    }
}

/// What is drawn over the panes.
#[derive(Debug, Default)]
pub(crate) enum Over {
    #[default]
    Nothing,
    Page(Page),
    Answer(Answering),
    /// A question about the view itself.
    Choose(Choice),
    /// Something to know; any key takes it away.
    Note(Vec<String>),
    /// How the run ended, and what to type next.
    End,
}

/// An answer in the making. The last row is for words of one's own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Answering {
    pub(crate) choices: &'static [&'static str],
    pub(crate) chosen: usize,
    pub(crate) text: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Choice {
    /// Stop the run?
    Stop,
    /// Leave the view of a run this process drives?
    Leave,
}

impl View {
    pub(crate) fn new(run_id: &str, driven: Driven, colour: bool) -> View {
        View { live: LiveRun::new(run_id, driven), colour, size: (80, 24), ..View::default() }
    }

    /// The run that this process drove has ended. A page that is being read stays.
    pub(crate) fn stay(&mut self) {
        self.stays = true;
        self.asked = false;
        self.live.driven = Driven::Nobody;
        if matches!(self.over, Over::Page(_)) {
            self.unread_end = true;
        } else {
            self.show_end();
        }
    }

    pub(crate) fn show_end(&mut self) {
        self.unread_end = false;
        self.over = Over::End;
    }

    pub(crate) fn rows(&self, pane: Pane) -> usize {
        match pane {
            Pane::Agents => self.live.agents.len(),
            Pane::Findings => self.live.findings.len(),
            Pane::Decisions => self.live.decisions.len(),
        }
    }

    /// The selected row of a pane: the last, unless the user moved.
    pub(crate) fn row(&self, pane: Pane) -> usize {
        let last = self.rows(pane).saturating_sub(1);
        self.at[pane.index()].map_or(last, |at| at.min(last))
    }
}
