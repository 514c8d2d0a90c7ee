//! The events of a run as a graph of causes (AF-161), and as a tree that can be read (BX-09).
//!
//! The graph is the `parent` field of the log. The tree shows every event exactly once: below its cause, or below the root where
//! it is part of the frame (transitions, boundaries, sessions, the end) or where its causes are not in the log. An
//! event with several causes keeps naming all of them.

use std::collections::BTreeMap;

use crate::event::{Built, Decision, Entry, Event, Order, Report, Verb};
use crate::model::{Phase, Seq, Speaker, TurnEvent, counted};
use crate::projections::view::{capital, open_counts, seconds};
use crate::text::one_line;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dag {
    /// In the order of the tree, parents first.
    pub nodes: Vec<Node>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    pub seq: Seq,
    pub kind: &'static str,
    pub phase: Phase,
    pub agent: Option<String>,
    pub verb: Verb,
    /// A few words about it, on one line. Text of others: each format escapes it its own way.
    pub label: String,
    /// The causes, as the log has them.
    pub parents: Vec<Seq>,
    /// Its place in the tree.
    pub under: Option<Seq>,
    pub depth: usize,
    /// The last of its siblings, and whether each of those above it is: for drawing branches.
    pub last: Vec<bool>,
    /// It names causes that are not in the log before it.
    pub orphan: bool,
}

impl Node {
    /// The causes the tree does not show by its place.
    pub fn other_parents(&self) -> &[Seq] {
        let shown = self.under.is_some_and(|under| self.parents == [under]);
        if shown { &[] } else { &self.parents }
    }
}

impl Dag {
    pub fn of(log: &[Entry]) -> Dag {
        let root = log.first().map(|entry| entry.seq);
        let mut below: BTreeMap<Seq, Vec<usize>> = BTreeMap::new();
        let mut known: BTreeMap<Seq, usize> = BTreeMap::new();
        let mut placed: Vec<(Option<Seq>, bool)> = Vec::with_capacity(log.len());
        for (at, entry) in log.iter().enumerate() {
            let (under, orphan) = place(entry, root, &known);
            if let Some(under) = under {
                below.entry(under).or_default().push(at);
            }
            placed.push((under, orphan));
            known.insert(entry.seq, at);
        }
        Dag { nodes: walk(log, &placed, &below) }
    }
}

/// The event it is placed below, and whether its causes are missing.
fn place(entry: &Entry, root: Option<Seq>, known: &BTreeMap<Seq, usize>) -> (Option<Seq>, bool) {
    if known.is_empty() {
        return (None, false);
    }
    let there: Vec<Seq> = entry.parent.iter().copied().filter(|seq| known.contains_key(seq)).collect();
    let orphan = there.len() < entry.parent.len() || entry.parent.is_empty();
    if orphan || is_frame(&entry.event) {
        return (root, orphan);
    }
    (there.last().copied(), false)
}

/// What gives a run its frame.
fn is_frame(event: &Event) -> bool {
    matches!(
        event,
        Event::Report(Report::RunStart(_) | Report::SessionStart(_))
            | Event::Report(Report::SessionEnd(_) | Report::RunReentered(_) | Report::RunRolledBack(_))
            | Event::Report(Report::RunPaused(_) | Report::RunResumed(_))
            | Event::Report(Report::ReviewOpened(_) | Report::LoopOpened(_))
            | Event::Report(Report::RunContinued(_) | Report::RunDiscarded(_) | Report::MergeRequested(_))
            | Event::Decision(Decision::PhaseTransition(_) | Decision::WorkflowEscalated(_))
            | Event::Decision(
                Decision::CycleBoundary(_) | Decision::WiggumBreak(_) | Decision::RunComplete(_)
            )
    )
}

/// Parents first, siblings in the order of the log. A stack of its own: a chain may be as long as the log.
fn walk(log: &[Entry], placed: &[(Option<Seq>, bool)], below: &BTreeMap<Seq, Vec<usize>>) -> Vec<Node> {
    let mut nodes = Vec::with_capacity(log.len());
    let mut stack: Vec<(usize, Vec<bool>)> = Vec::new();
    if !log.is_empty() {
        stack.push((0, Vec::new()));
    }
    while let Some((at, last)) = stack.pop() {
        let (Some(entry), Some((under, orphan))) = (log.get(at), placed.get(at)) else { continue };
        let children = below.get(&entry.seq).map_or(&[][..], Vec::as_slice);
        for (n, child) in children.iter().enumerate().rev() {
            // No screen is wide enough for deeper branches, so a long chain costs no more than its length.
            let mut lines = last.clone();
            if lines.len() < DEEPEST {
                lines.push(n + 1 == children.len());
            }
            stack.push((*child, lines));
        }
        nodes.push(Node {
            seq: entry.seq,
            kind: entry.event.name(),
            phase: entry.phase,
            agent: entry.agent.clone(),
            verb: entry.event.verb(),
            label: label(&entry.event),
            parents: entry.parent.clone(),
            under: *under,
            depth: 0,
            last,
            orphan: *orphan,
        });
    }
    let mut depths: BTreeMap<Seq, usize> = BTreeMap::new();
    for node in &mut nodes {
        node.depth = node.under.and_then(|under| depths.get(&under)).map_or(0, |depth| depth + 1);
        depths.insert(node.seq, node.depth);
    }
    nodes
}

/// How deep branches are remembered.
pub const DEEPEST: usize = 24;

/// What an event is about, in a few words. Text of others: each format escapes it its own way.
pub fn label(event: &Event) -> String {
    let text = match event {
        Event::Report(Report::RunStart(start)) => start.task.clone(),
        Event::Report(Report::SessionStart(session)) => format!("session {}, {}", session.fence, session.why),
        Event::Report(Report::SessionEnd(end)) => format!("signal {}", end.signal),
        Event::Report(Report::RunPaused(paused)) => format!("by {}", paused.by),
        Event::Report(Report::RunResumed(resumed)) => format!("by {}", resumed.by),
        Event::Report(Report::RunRolledBack(back)) => {
            format!("to the end of {} in cycle {}", back.phase.name(), back.cycle)
        }
        Event::Report(Report::RunReentered(again)) => format!("from {}", again.phase.name()),
        Event::Report(Report::ReviewOpened(opened)) => {
            format!("{}, {} parts", opened.subject.label(), opened.parts.len())
        }
        Event::Order(Order::EvidenceStart(start)) => {
            format!("{}: {}", capital(&start.archetype), start.reproduction.command)
        }
        Event::Report(Report::EvidenceDone(done)) => match done.change.exit {
            Some(code) => format!("exit {code} on the change"),
            None => done.change.why.clone(),
        },
        Event::Report(Report::RunContinued(continued)) => format!("{} more", continued.cycles),
        Event::Report(Report::RunDiscarded(_)) => "given up".to_owned(),
        Event::Report(Report::MergeRequested(_)) => "a person says: land it".to_owned(),
        Event::Decision(Decision::PhaseTransition(to)) => {
            format!("cycle {}: {} → {}", to.cycle, to.from, to.to.name())
        }
        Event::Decision(Decision::DecisionPoint(point)) => format!("{} {}", point.rule, point.decision),
        Event::Decision(Decision::DecisionRecord(record)) => {
            format!("{}: {}, not {}", record.what, record.chosen, record.alternatives.join(" or "))
        }
        Event::Decision(Decision::WorkflowEscalated(up)) => {
            format!("{} becomes {}", up.from.name(), up.to.name())
        }
        Event::Decision(Decision::AgentSkipped(skipped)) => {
            format!("{} skipped: {}", capital(&skipped.archetype), skipped.reason)
        }
        Event::Decision(Decision::ReviewVerdict(said)) => {
            let n = said.findings.len();
            let findings = counted(n, "finding");
            format!("{} {}, {findings}", capital(&said.archetype), said.verdict.name())
        }
        Event::Decision(Decision::EvidenceDowngrade(down)) => {
            format!("{} to {}: {}", down.from.name(), down.to.name(), down.description)
        }
        Event::Decision(Decision::FindingRaised(raised)) => {
            format!("{} {}", raised.finding.severity.name(), raised.finding.description)
        }
        Event::Decision(Decision::FixApplied(fix)) => fix.finding.clone(),
        Event::Decision(Decision::CycleBoundary(end)) => {
            format!("cycle {}: {}", end.cycle, open_counts(end))
        }
        Event::Decision(Decision::ShadowDetected(seen)) => {
            format!("{}: {} ({})", capital(&seen.archetype), seen.shadow, seen.action.name())
        }
        Event::Decision(Decision::BudgetStep(step)) => {
            format!("{} % of the {}'s budget", step.step, step.limit)
        }
        Event::Decision(Decision::PolicyCheckpoint(checkpoint)) => {
            format!("{}: {}", checkpoint.number, checkpoint.why)
        }
        Event::Decision(Decision::WiggumBreak(broke)) => broke.detail.clone(),
        Event::Decision(Decision::RunComplete(end)) => {
            let fixes =
                if end.fixes_total == 1 { "1 fix".to_owned() } else { format!("{} fixes", end.fixes_total) };
            let agents = counted(end.agents_total, "agent");
            format!("{} ({}) [{agents}, {fixes}]", end.status.name(), end.reason.name())
        }
        Event::Order(Order::AgentStart(start)) => {
            format!("{} {}, {}", capital(&start.archetype), start.purpose.name(), start.model.name())
        }
        Event::Report(Report::AgentComplete(done)) => {
            format!("{} answered in {}", capital(&done.archetype), seconds(done.duration_ms))
        }
        Event::Report(Report::AgentFailed(failed)) => {
            format!("{} failed: {}", capital(&failed.archetype), failed.reason)
        }
        Event::Report(Report::AgentTimeout(failed)) => {
            format!("{} timed out: {}", capital(&failed.0.archetype), failed.0.reason)
        }
        Event::Report(Report::AgentUsage(usage)) => {
            format!("{} has used {}", capital(&usage.archetype), usage.estimated_cost_usd.shown())
        }
        Event::Report(Report::AgentLost(lost)) => {
            format!("{} lost: {}", capital(&lost.archetype), lost.reason)
        }
        Event::Order(Order::MergeStart(start)) => format!("try {}", start.attempt),
        Event::Report(Report::MergeBuilt(built)) => match &built.built {
            Built::Candidate { commit, .. } => format!("candidate {}", short(commit)),
            Built::Conflict { paths } => format!("conflict in {}", paths.join(", ")),
            Built::Nothing => "nothing to merge".to_owned(),
            Built::BaseGone { .. } => "the base is gone".to_owned(),
            Built::NotSigned { what } => format!("not signed: {what}"),
            Built::Fault { what } => what.clone(),
        },
        Event::Order(Order::PreflightStart(start)) => {
            let commands = [&start.setup_command, &start.test_command];
            commands.into_iter().flatten().map(String::as_str).collect::<Vec<_>>().join(", ")
        }
        Event::Report(Report::PreflightDone(done)) => crate::projections::view::preflight::outcome(done),
        Event::Order(Order::TestsStart(tests)) => tests.command.clone(),
        Event::Report(Report::TestsDone(done)) => {
            format!("{:?} in {}", done.result, seconds(done.duration_ms)).to_lowercase()
        }
        Event::Order(Order::HookStart(hook)) => hook.point.name().to_owned(),
        Event::Report(Report::HookDone(done)) => {
            format!("{}: {}", done.point.name(), if done.ok { "ok" } else { "failed" })
        }
        Event::Order(Order::MergeIntent(intent)) => format!("{} to {}", intent.target, short(&intent.new)),
        Event::Report(Report::RunMerged(merged)) => {
            format!("{} is at {}", merged.base, short(&merged.commit))
        }
        Event::Report(Report::MergeRefused(refused)) => refused.detail.clone(),
        Event::Report(Report::RevertRequested(_)) => "a person asks to revert it".to_owned(),
        Event::Order(Order::RevertStart(start)) => {
            format!("revert {}, try {}", short(&start.landed), start.attempt)
        }
        Event::Report(Report::RevertBuilt(built)) => match &built.built {
            Built::Candidate { commit, .. } => format!("candidate {}", short(commit)),
            Built::Conflict { paths } => format!("conflict in {}", paths.join(", ")),
            Built::Nothing => "nothing to revert".to_owned(),
            Built::BaseGone { .. } => "the landing is not in the branch".to_owned(),
            Built::NotSigned { what } | Built::Fault { what } => what.clone(),
        },
        Event::Order(Order::RevertIntent(revert)) => format!("take back {}", short(&revert.landed)),
        Event::Report(Report::RunReverted(reverted)) => format!("taken back by {}", short(&reverted.commit)),
        Event::Report(Report::RevertRefused(refused)) => refused.detail.clone(),
        Event::Order(Order::QuestionAsked(asked)) => asked.question.clone(),
        Event::Report(Report::QuestionAnswered(answered)) => answered.text.clone(),
        Event::Report(Report::QuestionDeferred(_)) => "not answered".to_owned(),
        Event::Report(Report::LoopOpened(opened)) => format!("{}: {}", opened.cycle_id, opened.goal),
        Event::Report(Report::LoopHeard(heard)) => match heard.word {
            Some(word) => format!("{} {}", word.name(), heard.text),
            None => heard.text.clone(),
        },
        Event::Decision(Decision::LoopTurn(turn)) => {
            let who = turn.by.map_or("the program", Speaker::name);
            let heard = turn.heard.map_or("refused", TurnEvent::name);
            format!("{who}: {heard}, {} → {}", turn.from.name(), turn.to.name())
        }
        Event::Decision(Decision::LoopAlert(alert)) => format!("{}: {}", alert.alert.name(), alert.detail),
        Event::Order(Order::LoopAppend(append)) => {
            format!("block {} of the {}", append.number, append.speaker.name())
        }
        Event::Report(Report::LoopAppended(appended)) => counted(appended.blocks, "block"),
        Event::Report(Report::LoopEdited(edited)) => edited.what.clone(),
        Event::Order(Order::BatteryStart(start)) => format!("on {}", short(&start.commit)),
        Event::Report(Report::BatteryDone(done)) => format!(
            "tests {}, linter {}, security {}",
            done.tests.end.name(),
            done.linter.end.name(),
            done.security.end.name()
        ),
        Event::Order(Order::LoopArchive(archive)) => format!("{:?}", archive.ending).to_lowercase(),
        Event::Report(Report::LoopArchived(archived)) => archived.path.clone(),
    };
    one_line(&text)
}

fn short(oid: &str) -> &str {
    oid.get(..10).unwrap_or(oid)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{MergeRequested, PhaseTransition, SessionEnd};

    fn entry(seq: Seq, parent: &[Seq], event: impl Into<Event>) -> Entry {
        Entry { seq, at: 0, parent: parent.to_vec(), phase: Phase::Plan, agent: None, event: event.into() }
    }

    fn transition() -> PhaseTransition {
        PhaseTransition { from: "start".to_owned(), to: Phase::Plan, cycle: 1, artifacts_so_far: Vec::new() }
    }

    /// BX-09: every event once, frame and orphans below the root, several causes all named.
    #[test]
    fn bx_09_every_event_is_in_the_tree_once() {
        let plain = || crate::event::RevertRefused { start_seq: 0, why: None, detail: "x".to_owned() };
        let log = [
            entry(1, &[], MergeRequested::default()),
            entry(2, &[1], plain()),
            entry(3, &[2], plain()),
            entry(4, &[2, 3], transition()),
            entry(5, &[2, 3], plain()),
            entry(6, &[77], plain()),
            entry(7, &[9], plain()),
            entry(8, &[], SessionEnd { signal: 2 }),
            entry(9, &[1], transition()),
        ];
        let told: Vec<_> = Dag::of(&log)
            .nodes
            .into_iter()
            .map(|node| (node.seq, node.under, node.depth, node.orphan, node.other_parents().to_vec()))
            .collect();
        assert_eq!(
            told,
            [
                (1, None, 0, false, vec![]),
                (2, Some(1), 1, false, vec![]),
                (3, Some(2), 2, false, vec![]),
                (5, Some(3), 3, false, vec![2, 3]),
                (4, Some(1), 1, false, vec![2, 3]),
                (6, Some(1), 1, true, vec![77]),
                (7, Some(1), 1, true, vec![9]),
                (8, Some(1), 1, true, vec![]),
                (9, Some(1), 1, false, vec![]),
            ]
        );
        assert!(Dag::of(&[]).nodes.is_empty());
    }

    /// A log that is one chain of causes costs no more than its length, and no stack.
    #[test]
    fn bx_09_a_long_chain_is_walked() {
        let plain = || crate::event::RevertRefused { start_seq: 0, why: None, detail: String::new() };
        let log: Vec<Entry> = (1..=20_000)
            .map(|seq| entry(seq, &if seq == 1 { Vec::new() } else { vec![seq - 1] }, plain()))
            .collect();
        let dag = Dag::of(&log);
        assert_eq!((dag.nodes.len(), dag.nodes[19_999].depth), (20_000, 19_999));
        assert!(dag.nodes.iter().all(|node| node.last.len() <= DEEPEST));
    }
}
