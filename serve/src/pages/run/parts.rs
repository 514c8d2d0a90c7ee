//! Parts of a run that are lists: findings, agents, artifacts.

use archeflow_core::projections::live::LiveAgent;
use archeflow_core::projections::story::{Kept, Life};
use archeflow_core::projections::view::capital;
use archeflow_core::text::{revealed, short_line};
use archeflow_host::store::{files, names};
use maud::{Markup, html};

use super::super::Fields;
use super::{change, panel, panels};
use crate::report::html as report;
use crate::run_model::RunModel;
use crate::server::Ui;

/// Of an artifact.
const BYTES: u64 = 400_000;
const LINES: usize = 4_000;
const LISTED: usize = 200;

pub(super) fn findings(ui: &Ui, run: &RunModel) -> Markup {
    let story = &run.story;
    let open = run.open_findings();
    let closed: Vec<Life> = story.lives.iter().filter(|life| !life.is_open()).cloned().collect();
    let none = open.is_empty() && closed.is_empty();
    html! {
        div.stack {
            @for (title, lives) in [("Open", open), ("Closed", closed)] {
                @if !lives.is_empty() {
                    section.panel aria-label=(title) {
                        header { h2 { (title) } span.small.muted.num { (lives.len()) } }
                        @for life in lives.iter().take(LISTED) { (change::finding(ui, run, life)) }
                    }
                }
            }
            @if none {
                (panel("Findings", &html! { p.muted { "No finding above INFO was open at the end of any cycle." } }))
            }
            @if let Some(others) = report::others(story) { (panel("Not counted, or raised by the program", &others)) }
            @if let Some(plot) = report::converging(story) { (panel("Convergence", &plot)) }
            @if !story.corrections.is_empty() { (panel("Shadows and corrections", &report::corrections(story))) }
            @if !story.questions.is_empty() { (panel("Questions", &report::questions(story))) }
        }
    }
}

/// Every start of an agent, the newest first.
pub(super) fn agents(run: &RunModel) -> Markup {
    let agents: Vec<&LiveAgent> = run.live.agents.iter().rev().take(LISTED).collect();
    let cycles: Vec<u32> = agents.iter().map(|agent| agent.cycle).fold(Vec::new(), |mut seen, cycle| {
        if seen.last() != Some(&cycle) {
            seen.push(cycle);
        }
        seen
    });
    html! {
        div.stack {
            @for cycle in cycles {
                section.panel aria-label={ "Agents of cycle " (cycle) } {
                    header { h2 { "Cycle " (cycle) } }
                    @for agent in agents.iter().filter(|agent| agent.cycle == cycle) { (panels::one_agent(run, agent)) }
                }
            }
            @if agents.is_empty() { (panel("Agents", &html! { p.muted { "None was started yet." } })) }
        }
    }
}

pub(super) fn artifacts(run: &RunModel) -> Markup {
    let artifacts = &run.story.artifacts;
    let link = |kept: &Kept| format!("{}/artifact?cycle={}&name={}", run.address(), kept.cycle, kept.name);
    let inner = html! {
        p.muted.small { "In " code { ".archeflow/artifacts/" (run.id) "/" } "; those of earlier cycles in " code { "cycle-<n>/" } "." }
        table.plain {
            thead { tr { th scope="col" { "Cycle" } th scope="col" { "File" } th scope="col" { "By" } th.num scope="col" { "#" } } }
            tbody {
                @for kept in artifacts.iter().take(LISTED) {
                    tr {
                        td.num { (kept.cycle) }
                        td {
                            @if names::valid_name(&kept.name) {
                                a.link href=(link(kept)) { code { (kept.name) } }
                            } @else {
                                code { (short_line(&kept.name, 120)) }
                            }
                        }
                        td { (short_line(&capital(&kept.by), 40)) }
                        td.num.muted { (kept.seq) }
                    }
                }
            }
        }
        @if artifacts.is_empty() { p.muted { "None yet." } }
    };
    panel("Artifacts", &inner)
}

/// One artifact as text; nothing if the run has none of that name. With the reason if artifacts could not be brought here.
pub(super) fn artifact(run: &RunModel, fields: &Fields, away: Option<&str>) -> Option<Markup> {
    let (name, cycle) = (fields.get("name")?, fields.get("cycle")?.parse::<u32>().ok()?);
    let kept = run.story.artifacts.iter().find(|kept| kept.name == name && kept.cycle == cycle)?;
    if !names::valid_name(&kept.name) {
        return None;
    }
    let folder = run.repository.root.join(".archeflow/artifacts").join(&run.id);
    let archived = folder.join(format!("cycle-{cycle}")).join(&kept.name);
    let read = |path: &std::path::Path| files::read_capped(path, BYTES).ok();
    let bytes = read(&archived).or_else(|| read(&folder.join(&kept.name)));
    let inner = html! {
        @match &bytes {
            Some(bytes) => {
                @let text = String::from_utf8_lossy(bytes);
                pre.text tabindex="0" { @for line in text.lines().take(LINES) { (revealed(line, 2_000)) "\n" } }
                @if text.is_empty() { p.muted { "It is empty." } }
                @if text.lines().count() > LINES { p.muted { "The rest is in the file." } }
            }
            None if let Some(why) = away => p.muted { "It could not be read from the fleet: " (short_line(why, 300)) },
            None => p.muted { "It is larger than " (BYTES / 1_000) " kB, or gone. Its folder: " code { (short_line(&folder.display().to_string(), 300)) } },
        }
    };
    let title = format!("{}, cycle {cycle}, by the {}", kept.name, short_line(&capital(&kept.by), 40));
    Some(panel(&title, &inner))
}
