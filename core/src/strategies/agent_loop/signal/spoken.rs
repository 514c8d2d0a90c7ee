//! From the text of a role, or of a person, to what the log keeps of it: the block that counts, as it was routed, and
//! what the program sees beside it. The text itself is the artifact.

use super::route::amounts_to;
use super::{How, Route, RouteFault, RouteMode, Signal, SignalBlocks, read, route};
use crate::model::{Answer, ChangedFile, LoopPolicy, Speaker, Status, StepSize, Token, TurnSignal};
use crate::read::{lines, text, words};
use crate::strategies::agent_loop::rules::commands;

/// No more deviations than this are kept of one block.
const MAX_DEVIATIONS: usize = 20;
const MAX_SUMMARY: usize = 300;
const MAX_KINDS: usize = 10;
const MAX_QUESTIONS: usize = 10;

/// What an Actor's step really did: the difference from where the step began, not from where the run did.
#[derive(Debug, Clone, Copy, Default)]
pub struct ActorStep<'a> {
    pub files: &'a [ChangedFile],
    /// Files beyond those that are listed.
    pub files_left_out: u32,
    /// The lines it added, without their marks.
    pub added: &'a str,
    /// The files its plan names.
    pub planned: &'a [String],
}

/// The answer of a role. Any text is an answer: one without a block is marked as such (PJ-51).
pub fn answer(by: Speaker, bytes: &[u8], step: Option<ActorStep<'_>>, policy: &LoopPolicy) -> Answer {
    let text = text::decode(bytes);
    let mut spoken = spoken(&text, policy);
    if let Some(step) = step.filter(|_| by == Speaker::Actor) {
        let found = commands::forbidden(step.added, &policy.forbidden);
        let found = found.map(|(line, pattern)| format!("{pattern} in added line {line}"));
        spoken.forbidden = spoken.forbidden.take().or(found);
        spoken.size = Some(size(step));
        spoken.unplanned = unplanned(step);
    }
    Answer {
        status: Status::Done,
        words: text.lines().map(words).sum(),
        summary: spoken.summary.clone(),
        spoken: Some(Box::new(spoken)),
        ..Answer::default()
    }
}

/// The last block of a text, in the way the policy reads blocks.
pub fn spoken(text: &str, policy: &LoopPolicy) -> TurnSignal {
    let reading = read(text);
    let forbidden = commands::forbidden(text, &policy.forbidden);
    let forbidden = forbidden.map(|(line, pattern)| format!("{pattern} on line {line}"));
    let Some(signal) = reading.last() else {
        return TurnSignal { fault: nothing(&reading), forbidden, ..TurnSignal::default() };
    };
    let mode = if policy.strict { RouteMode::Strict } else { RouteMode::Tolerant };
    let (result, fault) = match route(signal, mode) {
        Route::To(_, result) => (result, String::new()),
        Route::Refused(fault) => (signal.result, refused(fault, signal)),
    };
    TurnSignal {
        agent: signal.agent,
        result,
        next: signal.next,
        fault,
        summary: text::cap(&signal.summary, MAX_SUMMARY),
        risk: signal.risk,
        confidence: signal.confidence,
        kinds: kinds(text),
        questions: questions(text),
        deviations: deviations(signal),
        forbidden,
        unplanned: Vec::new(),
        size: None,
    }
}

fn nothing(reading: &SignalBlocks) -> String {
    match reading.shown.first() {
        Some(line) => format!("no block of its own; the one on line {line} is only shown"),
        None => "no block".to_owned(),
    }
}

/// Why a block is asked back, with the line and, where that is it, the combination (L-01, L-10).
fn refused(fault: RouteFault, signal: &Signal) -> String {
    let why = match fault {
        RouteFault::NoAgent => format!(
            "line {} names none of Human, Planner, Actor, Judge as author",
            line_of(signal, &[How::UnknownAgent, How::SeveralAgents, How::MissingAgent])
        ),
        RouteFault::NoNext if signal.deviates(How::MissingNext) => "it has no line `Next`".to_owned(),
        RouteFault::NoNext => {
            format!(
                "line {} names none of Human, Planner, Actor, Judge as next",
                line_of(signal, &[How::UnknownNext])
            )
        }
        RouteFault::Conflict => {
            format!(
                "line {} contradicts an earlier line with the same label",
                line_of(signal, &[How::Conflict])
            )
        }
        RouteFault::Withdrawn => {
            let line = line_of(signal, &[How::WithdrawnResult, How::HedgedResult]);
            format!("line {line} withdraws or hedges the result")
        }
        RouteFault::Illegal => illegal(signal),
        RouteFault::NotStrict => {
            let first = signal.deviations.iter().find(|deviation| deviation.how.breaks_the_pattern());
            let first =
                first.map(|deviation| format!(" (line {}: {})", deviation.line, deviation.how.name()));
            format!("it does not match the grammar exactly{}", first.unwrap_or_default())
        }
    };
    format!("the block on lines {} to {} can't be routed: {why}", signal.first, signal.last)
}

fn line_of(signal: &Signal, hows: &[How]) -> usize {
    let found = signal.deviations.iter().find(|deviation| hows.contains(&deviation.how));
    found.map_or(signal.first, |deviation| deviation.line)
}

fn illegal(signal: &Signal) -> String {
    let (Some(agent), Some(next)) = (signal.agent, signal.next) else { return "illegal".to_owned() };
    let result = signal.result.map_or("nothing clear", Token::name);
    let allowed = Speaker::ALL.into_iter().filter(|next| amounts_to(agent, signal.result, *next).is_some());
    let allowed: Vec<&str> = allowed.map(Speaker::name).collect();
    let allowed = match allowed.as_slice() {
        [] => String::new(),
        names => format!("; after it {} can be next", names.join(" or ")),
    };
    format!("illegal: {} says {result} and names {} as next{allowed}", agent.name(), next.name())
}

fn deviations(signal: &Signal) -> Vec<String> {
    let told = signal.deviations.iter().take(MAX_DEVIATIONS);
    told.map(|deviation| format!("line {}: {}", deviation.line, deviation.how.name())).collect()
}

/// The kinds of work behind a `Kind:` on a line of its own (MX-06).
fn kinds(text: &str) -> Vec<String> {
    let lines = lines::scan(text);
    let plain = lines.iter().filter(|line| line.kind == lines::LineKind::Plain);
    let named = plain.filter_map(|line| {
        let line = text::plain(text::unbullet(line.text.trim()));
        let (label, rest) = line.split_once(':')?;
        matches!(label.trim().to_lowercase().as_str(), "kind" | "kinds").then(|| rest.to_owned())
    });
    let kinds: Vec<String> = named.flat_map(|rest| rest.split(',').map(word).collect::<Vec<_>>()).collect();
    kinds.into_iter().filter(|kind| !kind.is_empty()).take(MAX_KINDS).collect()
}

/// Lines that end with a question mark, outside of what is merely shown.
fn questions(text: &str) -> Vec<String> {
    let lines = lines::scan(text);
    let plain = lines.iter().filter(|line| line.kind == lines::LineKind::Plain);
    let asked = plain.map(|line| text::plain(text::unbullet(line.text.trim())));
    // The summary of its block is shown anyway.
    let asked = asked.filter(|line| line.trim_end().ends_with('?') && !line.contains("Summary:"));
    asked.take(MAX_QUESTIONS).map(|line| text::cap(&line, MAX_SUMMARY)).collect()
}

fn word(kind: &str) -> String {
    let kind = kind.trim().trim_end_matches('.').to_lowercase().replace([' ', '-'], "_");
    text::cap(&kind, 40)
}

/// A file is planned if the plan names it, the end of its path, or a folder it is in. A plan that names no file plans all.
fn unplanned(step: ActorStep<'_>) -> Vec<String> {
    if step.planned.is_empty() {
        return Vec::new();
    }
    let is_planned = |path: &str| {
        step.planned.iter().any(|planned| {
            let planned = planned.trim_start_matches("./").trim_end_matches('/');
            path == planned
                || path.strip_suffix(planned).is_some_and(|before| before.ends_with('/'))
                || path.strip_prefix(planned).is_some_and(|rest| rest.starts_with('/'))
        })
    };
    let paths = step.files.iter().map(|file| file.path.as_str()).filter(|path| !is_planned(path));
    paths.take(MAX_KINDS).map(str::to_owned).collect()
}

fn size(step: ActorStep<'_>) -> StepSize {
    let lines = step
        .files
        .iter()
        .fold(0_u32, |sum, file| sum.saturating_add(file.added).saturating_add(file.deleted));
    let files = u32::try_from(step.files.len()).unwrap_or(u32::MAX).saturating_add(step.files_left_out);
    let docs_only = !step.files.is_empty()
        && step.files_left_out == 0
        && step.files.iter().all(|file| is_doc(&file.path));
    StepSize { lines, files, docs_only }
}

/// Text for people. Its folder does not matter: a script below `docs` is a script.
fn is_doc(path: &str) -> bool {
    let path = path.trim_matches('"').to_lowercase();
    [".md", ".markdown", ".rst", ".adoc", ".txt"].iter().any(|ending| path.ends_with(ending))
}
