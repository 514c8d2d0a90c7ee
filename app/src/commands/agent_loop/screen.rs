//! The state of a loop: whose turn it is, the last messages, and what to type.

use std::path::Path;

use archeflow_core::event::Order;
use archeflow_core::model::{LoopState, Speaker, counted};
use archeflow_core::projections::view::Tone;
use archeflow_core::run::{AgentLoop, Run};
use archeflow_core::strategies::agent_loop::view as loop_view;
use archeflow_host::agent_loop::cycle::{CycleFile, PATH, continues};
use archeflow_host::store::journal::Journal;
use archeflow_host::store::places::Places;
use serde_json::{Value, json};

use crate::render::text::{Paint, cut, pad, safe_line};

/// Number of last messages that are shown.
const LAST: usize = 4;
const WIDE: usize = 100;

pub(super) struct Screen<'a> {
    id: &'a str,
    run: &'a Run,
    root: &'a Path,
    /// The process that drives it now.
    pid: Option<u32>,
    /// A remark about the cycle file; empty if all is well.
    file: Option<String>,
}

impl<'a> Screen<'a> {
    pub(super) fn of(places: &'a Places, state: &Path, id: &'a str, run: &'a Run) -> Screen<'a> {
        let me = std::process::id();
        let pid = Journal::driver(&places.events(), id).map(|holder| holder.pid).filter(|pid| *pid != me);
        let pid = pid.filter(|_| run.outcome.is_none());
        Screen { id, run, root: places.root(), pid, file: about_file(places.root(), state, run) }
    }

    /// For `loop status`.
    pub(super) fn text(&self) -> String {
        format!("{}\n", self.lines(Paint::for_stdout()).join("\n"))
    }

    /// For a command that drove it to its state.
    pub(super) fn print(&self) {
        tell!();
        for line in self.lines(Paint::for_stderr()) {
            tell!("{line}");
        }
    }

    fn lines(&self, paint: Paint) -> Vec<String> {
        let Some(agent_loop) = &self.run.agent_loop else { return vec![format!("{} is no loop", self.id)] };
        let mut lines = vec![paint.bold(&format!("Loop {}", self.id))];
        let mut say = |label: &str, text: &str| lines.push(format!("{} {text}", pad(label, 9)));
        say("Goal", &cut(&safe_line(&agent_loop.goal), WIDE));
        say("State", &paint.tone(self.tone(), &self.state(agent_loop)));
        let pause = self.run.policy().looping.pause_after;
        say(
            "Step",
            &format!(
                "{}, INSUFFICIENT {} of {pause} in a row",
                self.run.number().max(1),
                agent_loop.place.insufficient
            ),
        );
        let ran = agent_loop.battery.as_ref().or(agent_loop.last_battery.as_ref());
        if let Some(done) = ran {
            say("Battery", &loop_view::battery(done));
        }
        if let Some(archived) = agent_loop.archived.as_ref().filter(|archived| !archived.path.is_empty()) {
            say("Archive", &safe_line(&archived.path));
        }
        say("File", &format!("{PATH} ({})", counted(agent_loop.blocks, "block")));
        if let Some(about) = &self.file {
            lines.push(format!("{} {}", pad("", 9), paint.tone(Tone::Caution, &safe_line(about))));
        }
        for alert in &agent_loop.told {
            let text = format!("{} {}", pad("Alert", 9), alert.name().replace('_', " "));
            lines.push(paint.tone(Tone::Caution, &text));
        }
        last_message(agent_loop, paint, &mut lines);
        self.asked(paint, &mut lines);
        self.next(paint, &mut lines);
        lines
    }

    fn asked(&self, paint: Paint, lines: &mut Vec<String>) {
        let Some((_, question)) = self.run.question() else {
            if let Some(outcome) = &self.run.outcome {
                lines.push(format!("\n{}", safe_line(&outcome.detail)));
            }
            return;
        };
        lines.push(format!("\n{}", paint.bold(&safe_line(&question.question))));
        lines.extend(question.details.iter().map(|detail| format!("  {}", cut(&safe_line(detail), WIDE))));
    }

    fn next(&self, paint: Paint, lines: &mut Vec<String>) {
        let commands = self.commands();
        if commands.is_empty() {
            return;
        }
        lines.push(format!("\n{}", paint.bold("Next")));
        let widest = commands.iter().map(|(command, _)| command.chars().count()).max().unwrap_or(0);
        for (command, meaning) in commands {
            lines.push(format!("  {}  {}", paint.accent(&pad(&command, widest)), paint.dim(meaning)));
        }
    }

    fn commands(&self) -> Vec<(String, &'static str)> {
        commands(self.id, self.run, self.pid.is_some())
    }

    fn state(&self, agent_loop: &AgentLoop) -> String {
        let state = agent_loop.place.state;
        let turn = match (state, self.pid) {
            (_, Some(pid)) => match state.whose() {
                Some(who) => format!("the {} is at work (pid {pid})", who.name()),
                None => format!("it lands (pid {pid})"),
            },
            (LoopState::Archived, _) => "landed and archived".to_owned(),
            (LoopState::Stopped, _) => "ended by a person".to_owned(),
            (LoopState::Failed, _) => "it can't continue".to_owned(),
            (_, None) if self.run.question().is_some() => "your turn".to_owned(),
            (_, None) => match state.whose() {
                Some(Speaker::Human) => "your turn".to_owned(),
                Some(who) => format!("the {}'s turn, and no process drives it", who.name()),
                None => "landing, and no process drives it".to_owned(),
            },
        };
        format!("{}: {turn}", state.name())
    }

    fn tone(&self) -> Tone {
        match self.run.loop_state() {
            LoopState::Archived => Tone::Good,
            LoopState::Failed | LoopState::Stopped => Tone::Bad,
            LoopState::Idle
            | LoopState::Align
            | LoopState::Waiting
            | LoopState::Gate
            | LoopState::Execute
            | LoopState::Evaluate
            | LoopState::Approval
            | LoopState::Landing
            | LoopState::Paused => Tone::Caution,
        }
    }

    pub(super) fn json(&self) -> Value {
        let agent_loop = self.run.agent_loop.as_deref();
        let question = self.run.question().map(|(seq, question)| {
            json!({ "seq": seq, "kind": question.kind, "question": question.question, "details": question.details })
        });
        let notes: Vec<Value> = agent_loop
            .map(|agent_loop| agent_loop.notes.as_slice())
            .unwrap_or_default()
            .iter()
            .map(|note| json!({ "by": note.by.map(Speaker::name), "step": note.step, "text": note.text }))
            .collect();
        let state = self.run.loop_state();
        let battery = agent_loop
            .and_then(|agent_loop| agent_loop.battery.as_ref().or(agent_loop.last_battery.as_ref()));
        let outcome = self.run.outcome.as_ref();
        let commands: Vec<String> = self.commands().into_iter().map(|(command, _)| command).collect();
        json!({
            "run_id": self.id,
            "status": outcome.map_or("running", |outcome| outcome.status.name()),
            "reason": outcome.map_or("running", |outcome| outcome.reason.name()),
            "detail": outcome.map(|outcome| outcome.detail.clone()),
            "state": state.name(),
            "turn": if self.run.question().is_some() { Some("Human") } else { state.whose().map(Speaker::name) },
            "goal": agent_loop.map(|agent_loop| agent_loop.goal.clone()),
            "project": agent_loop.map(|agent_loop| agent_loop.opened.project.clone()),
            "cycle_id": agent_loop.map(|agent_loop| agent_loop.opened.cycle_id.clone()),
            "step": self.run.number(),
            "insufficient": agent_loop.map(|agent_loop| agent_loop.place.insufficient),
            "pause_after": self.run.policy().looping.pause_after,
            "battery": battery,
            "alerts": agent_loop.map(|agent_loop| agent_loop.told.iter().map(|alert| alert.name()).collect::<Vec<_>>()),
            "said": notes,
            "question": question,
            "file": self.root.join(PATH).to_string_lossy(),
            "blocks": agent_loop.map(|agent_loop| agent_loop.blocks),
            "file_note": self.file,
            "archive": agent_loop.and_then(|agent_loop| agent_loop.archived.as_ref()).map(|archived| archived.path.clone()),
            "pid": self.pid,
            "merged_oid": self.run.complete.as_ref().and_then(|complete| complete.merged_oid.clone()),
            "events": self.root.join(format!(".archeflow/events/{}.jsonl", self.id)).to_string_lossy(),
            "next": commands,
        })
    }
}

fn last_message(agent_loop: &AgentLoop, paint: Paint, lines: &mut Vec<String>) {
    if agent_loop.notes.is_empty() {
        return;
    }
    lines.push(format!("\n{}", paint.bold("Said last")));
    let from = agent_loop.notes.len().saturating_sub(LAST);
    for note in agent_loop.notes.iter().skip(from) {
        let who = note.by.map_or("program", Speaker::name);
        let text = cut(&safe_line(&note.text), WIDE);
        lines.push(format!(
            "  {} {} {text}",
            paint.dim(&pad(&format!("step {}", note.step), 8)),
            pad(who, 8)
        ));
    }
}

/// What can be typed now, the most likely first.
pub(super) fn commands(id: &str, run: &Run, driven: bool) -> Vec<(String, &'static str)> {
    if !driven {
        return loop_view::next_steps(id, run, run.outcome.as_ref());
    }
    let stop = ("archeflow loop stop".to_owned(), "end it; the work is kept on its branch");
    vec![(format!("archeflow watch {id}"), "see it as it happens"), stop]
}

/// Only while people may still write in it.
fn about_file(root: &Path, state: &Path, run: &Run) -> Option<String> {
    let agent_loop = run.agent_loop.as_ref()?;
    // What is being appended at this moment is not in the log yet.
    let appending = run.open.values().any(|order| matches!(order, Order::LoopAppend(_)));
    if appending || !archeflow_host::agent_loop::open::is_open(run) {
        return None;
    }
    let seen = CycleFile::new(root, state).look();
    if agent_loop.blocks > 0 && seen.as_ref().is_ok_and(|seen| seen.text.trim().is_empty()) {
        return Some(
            "the file is gone; it is written again, from the journal, with the next block".to_owned(),
        );
    }
    match seen.and_then(|seen| continues(&seen, &agent_loop.seal).map(|()| seen)) {
        Err(error) => Some(error.to_string()),
        Ok(seen) if seen.past.fresh.trim().is_empty() => None,
        Ok(seen) => {
            let lines = seen.past.fresh.lines().filter(|line| !line.trim().is_empty()).count();
            let lines = counted(lines, "line");
            Some(format!(
                "{lines} of yours from line {} on; archeflow loop answer takes them up",
                seen.past.fresh_line
            ))
        }
    }
}
