//! Where a loop is: the state, whose turn it is, what was said last, and what to type.

use std::path::Path;

use archeflow_core::event::Event;
use archeflow_core::run::{Looped, Run};
use archeflow_core::view::{self, Tone};
use archeflow_core::words::{LoopState, Speaker, counted};
use archeflow_host::looped::cycle::{CycleFile, PATH, continues};
use archeflow_host::store::journal::Journal;
use archeflow_host::store::places::Places;
use serde_json::{Value, json};

use crate::faces::text::{Paint, cut, pad, safe_line};

/// So many of the last things that were said are shown.
const LAST: usize = 4;
const WIDE: usize = 100;

pub(super) struct Screen<'a> {
    id: &'a str,
    run: &'a Run,
    root: &'a Path,
    /// The process that drives it now.
    pid: Option<u32>,
    /// What is to be said about the cycle file; nothing where all is well.
    file: Option<String>,
}

impl<'a> Screen<'a> {
    pub(super) fn of(places: &'a Places, state: &Path, id: &'a str, run: &'a Run) -> Screen<'a> {
        let me = std::process::id();
        let pid = Journal::driver(&places.events(), id).map(|holder| holder.pid).filter(|pid| *pid != me);
        let pid = pid.filter(|_| run.outcome.is_none());
        Screen { id, run, root: places.root(), pid, file: about_file(places.root(), state, run) }
    }

    /// For whoever asked.
    pub(super) fn print(&self) {
        for line in self.lines(Paint::for_stdout()) {
            out!("{line}");
        }
    }

    /// For whoever drove it to where it is.
    pub(super) fn tell(&self) {
        tell!();
        for line in self.lines(Paint::for_stderr()) {
            tell!("{line}");
        }
    }

    fn lines(&self, paint: Paint) -> Vec<String> {
        let Some(looped) = &self.run.looped else { return vec![format!("{} is no loop", self.id)] };
        let mut lines = vec![paint.bold(&format!("Loop {}", self.id))];
        let mut say = |label: &str, text: &str| lines.push(format!("{} {text}", pad(label, 9)));
        say("Goal", &cut(&safe_line(&looped.goal), WIDE));
        say("State", &paint.tone(self.tone(), &self.state(looped)));
        let pause = self.run.policy().looping.pause_after;
        say(
            "Step",
            &format!(
                "{}, INSUFFICIENT {} of {pause} in a row",
                self.run.number().max(1),
                looped.place.insufficient
            ),
        );
        let ran = looped.battery.as_ref().or(looped.last_battery.as_ref());
        if let Some(done) = ran {
            say("Battery", &view::battery(done));
        }
        if let Some(archived) = looped.archived.as_ref().filter(|archived| !archived.path.is_empty()) {
            say("Archive", &safe_line(&archived.path));
        }
        say("File", &format!("{PATH} ({})", counted(looped.blocks, "block")));
        if let Some(about) = &self.file {
            lines.push(format!("{} {}", pad("", 9), paint.tone(Tone::Caution, &safe_line(about))));
        }
        for alert in &looped.told {
            let text = format!("{} {}", pad("Alert", 9), alert.name().replace('_', " "));
            lines.push(paint.tone(Tone::Caution, &text));
        }
        said(looped, paint, &mut lines);
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
            lines.push(format!("  {}  {}", paint.cyan(&pad(&command, widest)), paint.dim(meaning)));
        }
    }

    fn commands(&self) -> Vec<(String, &'static str)> {
        commands(self.id, self.run, self.pid.is_some())
    }

    fn state(&self, looped: &Looped) -> String {
        let state = looped.place.state;
        let turn = match (state, self.pid) {
            (_, Some(pid)) => match state.whose() {
                Some(who) => format!("the {} is at work (pid {pid})", who.name()),
                None => format!("it lands (pid {pid})"),
            },
            (LoopState::Archived, _) => "landed and archived".to_owned(),
            (LoopState::Stopped, _) => "ended by a person".to_owned(),
            (LoopState::Failed, _) => "nobody can go on".to_owned(),
            (_, None) if self.run.question().is_some() => "your turn".to_owned(),
            (_, None) => match state.whose() {
                Some(Speaker::Human) => "your turn".to_owned(),
                Some(who) => format!("the turn of the {}, and nobody drives it", who.name()),
                None => "on its way into the branch, and nobody drives it".to_owned(),
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
        let looped = self.run.looped.as_deref();
        let question = self.run.question().map(|(seq, question)| {
            json!({ "seq": seq, "kind": question.kind, "question": question.question, "details": question.details })
        });
        let notes: Vec<Value> = looped
            .map(|looped| looped.notes.as_slice())
            .unwrap_or_default()
            .iter()
            .map(|note| json!({ "by": note.by.map(Speaker::name), "step": note.step, "text": note.text }))
            .collect();
        let state = self.run.loop_state();
        let battery = looped.and_then(|looped| looped.battery.as_ref().or(looped.last_battery.as_ref()));
        let outcome = self.run.outcome.as_ref();
        let commands: Vec<String> = self.commands().into_iter().map(|(command, _)| command).collect();
        json!({
            "run_id": self.id,
            "status": outcome.map_or("running", |outcome| outcome.status.name()),
            "reason": outcome.map_or("running", |outcome| outcome.reason.name()),
            "detail": outcome.map(|outcome| outcome.detail.clone()),
            "state": state.name(),
            "turn": if self.run.question().is_some() { Some("Human") } else { state.whose().map(Speaker::name) },
            "goal": looped.map(|looped| looped.goal.clone()),
            "project": looped.map(|looped| looped.opened.project.clone()),
            "cycle_id": looped.map(|looped| looped.opened.cycle_id.clone()),
            "step": self.run.number(),
            "insufficient": looped.map(|looped| looped.place.insufficient),
            "pause_after": self.run.policy().looping.pause_after,
            "battery": battery,
            "alerts": looped.map(|looped| looped.told.iter().map(|alert| alert.name()).collect::<Vec<_>>()),
            "said": notes,
            "question": question,
            "file": self.root.join(PATH).to_string_lossy(),
            "blocks": looped.map(|looped| looped.blocks),
            "file_note": self.file,
            "archive": looped.and_then(|looped| looped.archived.as_ref()).map(|archived| archived.path.clone()),
            "pid": self.pid,
            "merged_oid": self.run.complete.as_ref().and_then(|complete| complete.merged_oid.clone()),
            "events": self.root.join(format!(".archeflow/events/{}.jsonl", self.id)).to_string_lossy(),
            "next": commands,
        })
    }
}

fn said(looped: &Looped, paint: Paint, lines: &mut Vec<String>) {
    if looped.notes.is_empty() {
        return;
    }
    lines.push(format!("\n{}", paint.bold("Said last")));
    let from = looped.notes.len().saturating_sub(LAST);
    for note in looped.notes.iter().skip(from) {
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
        return view::next_steps_of_loop(id, run, run.outcome.as_ref());
    }
    let stop = ("archeflow loop stop".to_owned(), "end it; what was done stays on its branch");
    vec![(format!("archeflow watch {id}"), "see it as it happens"), stop]
}

/// Only while somebody may still write in it.
fn about_file(root: &Path, state: &Path, run: &Run) -> Option<String> {
    let looped = run.looped.as_ref()?;
    // What is being appended at this moment is not in the log yet.
    let appending = run.open.values().any(|order| matches!(order, Event::LoopAppend(_)));
    if appending || !archeflow_host::looped::open::is_open(run) {
        return None;
    }
    let seen = CycleFile::new(root, state).look();
    match seen.and_then(|seen| continues(&seen, &looped.seal).map(|()| seen)) {
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
