//! `archeflow list --fleet`: the runs and sprints of a fleet.

use archeflow_core::projections::board::{BoardHeading, SprintBoard, SprintFacts};
use archeflow_core::projections::inbox;
use archeflow_host::clock;
use archeflow_host::sprint::queue::QueueFolder;
use archeflow_host::sprint::reading::{self, SprintReader};
use serde_json::{Value, json};

use super::{FleetRun, FleetView};
use crate::commands::list::ago;
use crate::failure::Failure;
use crate::output::CommandOutput;
use crate::render::text::{Paint, cut, pad, pad_after, safe_line, stdout_width};

pub(crate) fn list(fleet: &FleetView, limit: Option<usize>, json: bool) -> Result<CommandOutput, Failure> {
    let mut runs = fleet.runs()?;
    let skip = limit.map_or(0, |limit| runs.len().saturating_sub(limit));
    let runs = runs.split_off(skip);
    let sprints = sprints(fleet);
    if json {
        let runs: Vec<Value> = runs.iter().map(FleetRun::json).collect();
        let sprints: Vec<Value> = sprints.iter().map(|sprint| json!(sprint)).collect();
        return Ok(CommandOutput::json(json!({ "runs": runs, "sprints": sprints })));
    }
    let mut out = String::new();
    if runs.is_empty() {
        put!(
            out,
            "The fleet has no runs yet. A conductor starts them: archeflow sprint run {}",
            fleet.flag()
        );
    } else {
        table(&mut out, &runs);
    }
    if !sprints.is_empty() {
        let paint = Paint::for_stdout();
        put!(out, "\n{}", paint.bold("Sprints"));
        for sprint in &sprints {
            let state = safe_line(&sprint.state);
            put!(out, "  {}  {}", safe_line(&sprint.id), paint.tone(sprint.tone, &state));
            put!(out, "    {}", safe_line(&sprint.counts));
        }
    }
    Ok(CommandOutput::text(out))
}

/// Each with how far it has come, oldest first. One that can't be read is left out: `archeflow watch` says why.
fn sprints(fleet: &FleetView) -> Vec<BoardHeading> {
    let place = QueueFolder::at(&fleet.mirror.projects());
    let ids = reading::sprint_ids(&place);
    let read = ids.iter().filter_map(|id| SprintReader::open(&place, id).ok());
    let headings = read.map(|mut reader| {
        reader.is_copy = true;
        let facts = SprintFacts {
            id: &reader.id,
            sprint: &reader.sprint,
            chronicle: &reader.chronicle,
            driven: reader.is_driven(),
        };
        SprintBoard::of(facts, clock::now(), |_, _| None).heading
    });
    headings.collect()
}

impl FleetRun {
    pub(super) fn json(&self) -> Value {
        json!({
            "run_id": self.id, "status": self.status, "task": self.task, "ts": self.ts, "repository": self.repository,
            "worker": self.worker, "cost_usd": self.cost, "broken": self.broken,
        })
    }
}

fn table(out: &mut String, runs: &[FleetRun]) {
    let (paint, wide, now) = (Paint::for_stdout(), stdout_width(), clock::now());
    let last = |run: &FleetRun| match wide {
        Some(_) if run.at > 0 => ago(now, run.at),
        Some(_) | None => safe_line(&run.ts),
    };
    let titles = ["REPOSITORY", "RUN", "WORKER", "STATUS", "COST", "LAST"];
    let cells = |run: &FleetRun| {
        [
            cut(&safe_line(&run.repository), 24),
            safe_line(&run.id),
            cut(&safe_line(&run.worker), 40),
            safe_line(&run.status),
            run.cost.shown(),
            last(run),
        ]
    };
    let rows: Vec<[String; 6]> = runs.iter().map(cells).collect();
    let mut widths = titles.map(str::len);
    for row in &rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let room = wide.map_or(60, |wide| wide.saturating_sub(widths.iter().map(|width| width + 2).sum()));
    let heading: String =
        titles.iter().zip(widths).map(|(title, width)| format!("{}  ", pad(title, width))).collect();
    put!(out, "{}", paint.dim(&format!("{heading}TASK")));
    for (run, row) in runs.iter().zip(&rows) {
        let mut line = String::new();
        for ((cell, width), title) in row.iter().zip(widths).zip(titles) {
            let cell = match title {
                "STATUS" => pad_after(cell, &paint.tone(inbox::tone(&run.status), cell), width),
                "LAST" => paint.dim(&pad(cell, width)),
                _ => pad(cell, width),
            };
            line.push_str(&cell);
            line.push_str("  ");
        }
        if room >= 8 {
            line.push_str(&cut(&safe_line(&run.task), room));
        }
        put!(out, "{}", line.trim_end());
    }
}
