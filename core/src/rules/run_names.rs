//! Which run a person means: by a short name, or by naming none (U-12). The tables are in `docs/rules/names.md`.
//!
//! A name means the same run whatever is to be done with it; only a name that was left out depends on the command.

use crate::model::named::named;
use crate::model::{Outcome, Reason, RunStatus};
use crate::run::Run;
use crate::text::nearest::{distance, is_near};
use crate::text::plain_words;

/// A run that a name can mean.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedRun {
    pub id: String,
    pub task: String,
    pub state: RunState,
    /// It has an open question.
    pub asks: bool,
}

named! {
    /// What can be done with a run.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum RunState {
        /// A process drives it.
        Running = "running",
        /// A process drives it and starts nothing new.
        Paused = "paused",
        /// It has not ended and no process drives it.
        Interrupted = "interrupted",
        AwaitingAnswer = "awaiting_answer",
        AwaitingMerge = "awaiting_merge",
        /// A step failed for reasons outside the change: `resume` tries it again.
        Failed = "failed",
        Stopped = "stopped",
        /// A dry run; a yes continues it.
        Planned = "planned",
        /// Merged, discarded, reviewed, a loop that has ended, or a run that was not started here.
        Closed = "closed",
    }
}

named! {
    /// What a command does with a run.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum RunUse {
        Show = "show",
        Watch = "watch",
        Merge = "merge",
        Resume = "resume",
        Answer = "answer",
        Continue = "continue",
        Pause = "pause",
        Stop = "stop",
        Discard = "discard",
    }
}

/// What a name comes to; the numbers are places in the list of runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Meaning {
    One(usize),
    /// Newest first.
    Several(Vec<usize>),
    /// With the nearest names, the likeliest first.
    None(Vec<usize>),
}

/// The run that a name means, in a list with the newest last.
pub fn resolve(name: &str, runs: &[NamedRun]) -> Meaning {
    let name = name.trim();
    if let Some(at) = runs.iter().rposition(|run| run.id == name) {
        return Meaning::One(at);
    }
    if let Some(back) = counted(name) {
        return runs.len().checked_sub(back).map_or(Meaning::None(Vec::new()), Meaning::One);
    }
    let wish = Wish::of(name);
    for is_meant in [Wish::is_slug, Wish::begins, Wish::has_words] {
        let found: Vec<usize> = (0..runs.len()).rev().filter(|at| is_meant(&wish, &runs[*at])).collect();
        match found[..] {
            [] => {}
            [at] => return Meaning::One(at),
            _ => return Meaning::Several(found),
        }
    }
    Meaning::None(nearest(&wish, runs))
}

/// The run that is meant where a command names none.
pub fn default(usage: RunUse, runs: &[NamedRun]) -> Meaning {
    let fits: Vec<usize> = (0..runs.len()).rev().filter(|at| is_fit(usage, &runs[*at])).collect();
    let newest = runs.len().checked_sub(1);
    match usage {
        RunUse::Show => newest,
        RunUse::Watch => fits.first().copied().or(newest),
        RunUse::Merge | RunUse::Resume => fits.first().copied(),
        RunUse::Answer | RunUse::Continue | RunUse::Pause | RunUse::Stop | RunUse::Discard => {
            match fits[..] {
                [at] => Some(at),
                [] => None,
                _ => return Meaning::Several(fits),
            }
        }
    }
    .map_or(Meaning::None(Vec::new()), Meaning::One)
}

fn is_fit(usage: RunUse, run: &NamedRun) -> bool {
    use RunState::{AwaitingAnswer, AwaitingMerge, Closed, Failed, Interrupted, Paused, Running, Stopped};
    match usage {
        RunUse::Show => true,
        RunUse::Watch | RunUse::Stop => matches!(run.state, Running | Paused),
        RunUse::Pause => run.state == Running,
        RunUse::Merge => run.state == AwaitingMerge,
        RunUse::Resume => matches!(run.state, Interrupted | Paused | Failed),
        // Whether to merge is asked as well, but has a command of its own.
        RunUse::Answer => run.asks && !matches!(run.state, Closed | AwaitingMerge),
        RunUse::Continue => run.state == Stopped,
        RunUse::Discard => {
            matches!(run.state, Interrupted | AwaitingAnswer | AwaitingMerge | Failed | Stopped)
        }
    }
}

/// The shortest name that means this run, cut between words; its id where there is none.
pub fn short(at: usize, runs: &[NamedRun]) -> String {
    let Some(run) = runs.get(at) else { return String::new() };
    let slug = slug(&run.id);
    let ends = slug.match_indices('-').map(|(end, _)| end).chain([slug.len()]);
    let names = ends.filter_map(|end| slug.get(..end)).filter(|name| counted(name).is_none());
    let mut fit = names.filter(|name| resolve(name, runs) == Meaning::One(at));
    fit.next().unwrap_or(&run.id).to_owned()
}

/// The part of an id after its date: the words of the task.
pub fn slug(id: &str) -> &str {
    let is_date = id.get(..11).is_some_and(|date| {
        date.bytes().enumerate().all(|(at, byte)| match at {
            4 | 7 | 10 => byte == b'-',
            _ => byte.is_ascii_digit(),
        })
    });
    id.get(11..).filter(|rest| is_date && !rest.is_empty()).unwrap_or(id)
}

/// `last` and `@1` are the newest, `@2` the one before.
fn counted(name: &str) -> Option<usize> {
    if name.eq_ignore_ascii_case("last") {
        return Some(1);
    }
    name.strip_prefix('@').and_then(|number| number.parse().ok()).filter(|back| *back > 0)
}

/// A name in the forms in which it is compared.
struct Wish {
    /// As it was typed, in small letters.
    typed: String,
    /// As a run of that task would be called.
    slug: Option<String>,
    words: Vec<String>,
}

impl Wish {
    fn of(name: &str) -> Wish {
        let slug = Some(plain_words(name)).filter(|slug| !slug.is_empty());
        Wish { typed: name.to_lowercase(), slug, words: words(name) }
    }

    fn is_slug(&self, run: &NamedRun) -> bool {
        let slug = slug(&run.id);
        slug.eq_ignore_ascii_case(&self.typed) || self.slug.as_deref() == Some(slug)
    }

    fn begins(&self, run: &NamedRun) -> bool {
        let (id, slug) = (run.id.to_lowercase(), slug(&run.id).to_lowercase());
        let typed = !self.typed.is_empty() && (id.starts_with(&self.typed) || slug.starts_with(&self.typed));
        typed || self.slug.as_deref().is_some_and(|wish| slug.starts_with(wish))
    }

    /// Every word of the name begins a word of the task, or of the id, which has them in plain letters.
    fn has_words(&self, run: &NamedRun) -> bool {
        let known: Vec<String> = words(&run.task).into_iter().chain(words(slug(&run.id))).collect();
        let is_there = |word: &String| known.iter().any(|known| known.starts_with(word.as_str()));
        !self.words.is_empty() && self.words.iter().all(is_there)
    }
}

fn words(text: &str) -> Vec<String> {
    let parts = text.split(|c: char| !c.is_alphanumeric()).filter(|part| !part.is_empty());
    parts.map(str::to_lowercase).collect()
}

/// The runs with a similar id or words, at most three.
fn nearest(wish: &Wish, runs: &[NamedRun]) -> Vec<usize> {
    const LONGEST: usize = 128;
    const MOST: usize = 3;
    if wish.typed.is_empty() || wish.typed.len() > LONGEST {
        return Vec::new();
    }
    let mut near: Vec<(usize, usize)> = (0..runs.len())
        .rev()
        .filter_map(|at| {
            let (id, slug) = (&runs[at].id, slug(&runs[at].id));
            // Few people type a whole name: the words are also compared as far as they were typed.
            let begun = slug.get(..wish.typed.len()).unwrap_or(slug);
            let edits = [id.as_str(), slug, begun].map(|name| distance(&wish.typed, name));
            let least = edits.into_iter().min()?;
            is_near(least, &wish.typed).then_some((least, at))
        })
        .collect();
    near.sort_by_key(|(edits, _)| *edits);
    near.into_iter().map(|(_, at)| at).take(MOST).collect()
}

impl RunState {
    pub fn of(run: &Run, driven: bool) -> RunState {
        match &run.outcome {
            _ if run.rules().is_closed(run) => RunState::Closed,
            None if driven && run.paused.is_some() => RunState::Paused,
            None if driven => RunState::Running,
            None => RunState::Interrupted,
            Some(Outcome { reason: Reason::Discarded, .. }) => RunState::Closed,
            Some(outcome) => match outcome.status {
                RunStatus::Merged | RunStatus::Reviewed => RunState::Closed,
                RunStatus::AwaitingMerge => RunState::AwaitingMerge,
                RunStatus::AwaitingAnswer => RunState::AwaitingAnswer,
                RunStatus::DryRun => RunState::Planned,
                RunStatus::Failed | RunStatus::Stopped | RunStatus::WiggumBreak => {
                    if can_be_tried_again(outcome) { RunState::Failed } else { RunState::Stopped }
                }
            },
        }
    }
}

/// A step failed for reasons outside the change.
pub fn can_be_tried_again(outcome: &Outcome) -> bool {
    outcome.status == RunStatus::Failed
        || matches!(outcome.reason, Reason::ProviderBusy | Reason::NotSignedIn | Reason::AgentFailures)
}
