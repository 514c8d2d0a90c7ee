//! Sprints: where their queues are, and how far each has come. A queue is in no list, so it is looked for where the server
//! was started, in the repositories the user has run in, and in the folders around them.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use archeflow_core::model::Money;
use archeflow_core::projections::board::{self, BoardRow, RunProgress, SprintBoard, SprintFacts};
use archeflow_core::sprint::queue::{ItemStatus, QueueItem};
use archeflow_host::clock;
use archeflow_host::sprint::center;
use archeflow_host::sprint::queue::{Queue, QueueFolder};
use archeflow_host::sprint::reading::{self, SprintReader};
use archeflow_host::sprint::runs::Runs;
use archeflow_host::store::files;

use crate::catalog::key;
use crate::server::Ui;

/// A folder with a queue.
pub(crate) struct SprintFolder {
    /// Names it in addresses.
    pub(crate) key: String,
    pub(crate) place: QueueFolder,
    /// The newest first.
    pub(crate) sprints: Vec<String>,
    /// Its sprints are copies of those of a fleet.
    is_copy: bool,
}

impl SprintFolder {
    pub(crate) fn root(&self) -> &Path {
        self.place.root()
    }

    pub(crate) fn queue(&self) -> Option<Queue> {
        self.place.read().ok()
    }

    /// What `control-center.md` says.
    pub(crate) fn center(&self) -> Option<String> {
        let file = center::file(&self.place);
        // A link out of the folder shows what a cloned repository chooses.
        let inside = file.canonicalize().ok()?.starts_with(self.root().canonicalize().ok()?);
        let bytes = files::read_capped(&file, 400_000).ok().filter(|_| inside)?;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    }
}

pub(crate) fn folders(ui: &Ui) -> Vec<SprintFolder> {
    let roots: Vec<PathBuf> = ui.catalog.repositories().iter().map(|known| known.root.clone()).collect();
    let around = roots.iter().filter_map(|root| root.parent().map(Path::to_owned));
    let all: BTreeSet<PathBuf> = around.chain(roots.iter().cloned()).chain([ui.cwd.clone()]).collect();
    let folders = all.into_iter().map(|root| {
        let place = QueueFolder::at(&root);
        let mut sprints = reading::sprint_ids(&place);
        sprints.reverse();
        SprintFolder { key: key(&root), place, sprints, is_copy: ui.fleet.is_some() }
    });
    folders.filter(|folder| !folder.sprints.is_empty() || folder.place.file().is_file()).collect()
}

pub(crate) fn by_key(ui: &Ui, key: &str) -> Option<SprintFolder> {
    folders(ui).into_iter().find(|folder| folder.key == key)
}

/// A sprint as its log has it, and its items with their runs.
pub(crate) fn read(folder: &SprintFolder, id: &str) -> Option<(SprintReader, SprintBoard)> {
    let mut reader = SprintReader::open(&folder.place, id).ok()?;
    reader.is_copy = folder.is_copy;
    let facts = SprintFacts {
        id: &reader.id,
        sprint: &reader.sprint,
        chronicle: &reader.chronicle,
        driven: reader.is_driven(),
    };
    let (mut runs, root) = (Runs::default(), folder.root());
    let mut board = SprintBoard::of(facts, clock::now(), |project, run| {
        runs.look(&root.join(project), run).map(RunProgress::of)
    });
    let queue = folder.queue();
    let unknown =
        queue.iter().flat_map(Queue::items).filter(|item| !reader.sprint.items.contains_key(&item.id));
    board.rows.extend(unknown.filter(|item| !is_over(item.status)).map(queued));
    Some((reader, board))
}

fn is_over(status: ItemStatus) -> bool {
    match status {
        ItemStatus::Completed | ItemStatus::Cancelled => true,
        ItemStatus::Pending
        | ItemStatus::Proposed
        | ItemStatus::Blocked
        | ItemStatus::Failed
        | ItemStatus::Running => false,
    }
}

/// An item that the sprint has not seen: it was added after it ended.
fn queued(item: &QueueItem) -> BoardRow {
    BoardRow {
        item: item.id.clone(),
        project: item.project.clone(),
        state: item.status.name(),
        tone: board::tone(item.status),
        phase: "",
        cycle: None,
        findings: None,
        cost: Money::ZERO,
        elapsed: None,
        run: None,
        text: item.task.clone(),
    }
}
