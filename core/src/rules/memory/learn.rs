//! What a finished run changes about the lessons (AF-112, AF-145, AF-175, AF-176).

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use super::{Lived, Shared};
use crate::event::Tracked;
use crate::model::named::named;
use crate::model::{Lesson, LessonKind, Memory, Severity};
use crate::rules::convergence::keywords;
use crate::text::short_line;

/// One lesson as it is afterwards.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LessonUpdate {
    pub lesson: Lesson,
    pub what: LessonChange,
    /// It is injected no more.
    pub archived: Option<Archived>,
}

named! {
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
    pub enum LessonChange {
        /// Seen for the first time.
        Created = "created",
        /// Seen in one more run.
        Reinforced = "reinforced",
        /// Seen again, and open for several cycles (AF-112).
        DoublyReinforced = "doubly_reinforced",
        /// It was injected, and the same finding came back (AF-145).
        Ineffective = "ineffective",
        /// Not seen in this run.
        Unseen = "unseen",
        /// Not seen for so long that it lost one.
        Decayed = "decayed",
    }
}

named! {
    /// Why a lesson was put away.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
    pub enum Archived {
        Decayed = "decayed",
        Ineffective = "ineffective",
        /// The user archived it.
        Forgotten = "forgotten",
        /// There were too many.
        CrowdedOut = "crowded_out",
    }
}

impl Archived {
    pub fn parse(word: &str) -> Option<Archived> {
        Archived::ALL.into_iter().find(|why| why.name() == word)
    }
}

/// Whether a lesson put away for this reason stays away: what the user forgot, or what never helped, is not learned
/// again at its next occasion.
pub fn retires(why: Archived) -> bool {
    matches!(why, Archived::Forgotten | Archived::Ineffective)
}

/// The lessons that change. `retired` are never learned again; `before` are the findings an earlier end of the same
/// run has taught already, `None` when there was none; `first` is the number of the next new lesson.
pub fn learn(
    lived: &Lived,
    known: &[Lesson],
    retired: &[Lesson],
    before: Option<&BTreeSet<String>>,
    first: u32,
) -> Vec<LessonUpdate> {
    let policy = &lived.policy.memory;
    let mut steps: BTreeMap<usize, LessonUpdate> = BTreeMap::new();
    if before.is_none() {
        for (at, lesson) in known.iter().enumerate().filter(|(_, lesson)| lived.blamed.contains(&lesson.id)) {
            steps.insert(at, blame(lesson, lived, policy));
        }
    }
    let (known_words, retired_words) = (words(known), words(retired));
    let mut created: Vec<Lesson> = Vec::new();
    for found in strongest_first(lived, before) {
        let lasting = found.cycles_open >= policy.persistent_cycles;
        let text = keywords(&found.description);
        let among_created = || nearest(&text, &created, &words(&created), policy);
        if let Some(at) = nearest(&text, known, &known_words, policy) {
            let Some(lesson) = known.get(at) else { continue };
            let counted = lesson.last_seen_run == lived.run_id || lived.blamed.contains(&lesson.id);
            if !counted {
                steps.entry(at).or_insert_with(|| reinforce(lesson, found, lasting, lived, policy));
            }
        } else if nearest(&text, retired, &retired_words, policy).is_none() && among_created().is_none() {
            let number = first.saturating_add(u32::try_from(created.len()).unwrap_or(u32::MAX));
            created.push(create(number, found, lasting, lived, policy));
        }
    }
    if before.is_none() {
        for (at, lesson) in known.iter().enumerate() {
            if lesson.kind != LessonKind::Preference && lesson.last_seen_run != lived.run_id {
                steps.entry(at).or_insert_with(|| age(lesson, policy));
            }
        }
    }
    let new = created.into_iter().map(|lesson| LessonUpdate {
        lesson,
        what: LessonChange::Created,
        archived: None,
    });
    steps.into_values().chain(new).collect()
}

/// Findings that lasted come first, so that what counts does not hang on the order of arrival (D-13).
fn strongest_first<'a>(lived: &'a Lived, before: Option<&BTreeSet<String>>) -> Vec<&'a Tracked> {
    let is_new = |found: &&Tracked| before.is_none_or(|before| !before.contains(&found.id));
    let mut found: Vec<&Tracked> = lived.findings.iter().filter(is_new).collect();
    found.sort_by_key(|found| (Reverse(found.cycles_open), Reverse(found.severity), &found.id));
    found
}

fn words(lessons: &[Lesson]) -> Vec<BTreeSet<String>> {
    lessons.iter().map(|lesson| keywords(&lesson.description)).collect()
}

/// The lesson that has most words in common with a text, if they are enough. Of equals the more frequent one, then
/// the older.
fn nearest(
    text: &BTreeSet<String>,
    lessons: &[Lesson],
    words: &[BTreeSet<String>],
    policy: &Memory,
) -> Option<usize> {
    let mut best: Option<(usize, Shared, &Lesson)> = None;
    for (at, (lesson, words)) in lessons.iter().zip(words).enumerate() {
        let shared = Shared::of(text, words);
        let better = best.is_none_or(|(_, most, other)| {
            let more = shared.compare(most).then(lesson.frequency.cmp(&other.frequency));
            more.then((other.id.len(), &other.id).cmp(&(lesson.id.len(), &lesson.id))).is_gt()
        });
        if shared.reaches(policy.match_percent) && better {
            best = Some((at, shared, lesson));
        }
    }
    best.map(|(at, ..)| at)
}

fn create(number: u32, found: &Tracked, lasting: bool, lived: &Lived, policy: &Memory) -> Lesson {
    const LONGEST: usize = 300;
    Lesson {
        id: format!("m-{number:03}"),
        ts: lived.ts.clone(),
        run_id: lived.run_id.clone(),
        kind: LessonKind::Pattern,
        source: found.source.join("+"),
        description: short_line(&found.description, LONGEST),
        frequency: if lasting { policy.persistent_boost } else { 1 },
        severity: found.severity.name().to_owned(),
        domain: lived.domain.clone(),
        tags: tags(&found.category, &found.description),
        archetype: None,
        last_seen_run: lived.run_id.clone(),
        runs_since_last_seen: 0,
        ineffective: 0,
    }
}

fn reinforce(
    lesson: &Lesson,
    found: &Tracked,
    lasting: bool,
    lived: &Lived,
    policy: &Memory,
) -> LessonUpdate {
    let mut lesson = seen_again(lesson, lived);
    lesson.frequency = lesson.frequency.saturating_add(if lasting { policy.persistent_boost } else { 1 });
    let grave = |name: &str| {
        [Severity::Info, Severity::Warning, Severity::Critical].iter().position(|s| s.name() == name)
    };
    if grave(found.severity.name()) > grave(&lesson.severity) {
        found.severity.name().clone_into(&mut lesson.severity);
    }
    let what = if lasting { LessonChange::DoublyReinforced } else { LessonChange::Reinforced };
    LessonUpdate { lesson, what, archived: None }
}

fn blame(lesson: &Lesson, lived: &Lived, policy: &Memory) -> LessonUpdate {
    let mut lesson = seen_again(lesson, lived);
    lesson.ineffective = lesson.ineffective.saturating_add(1);
    lesson.frequency = lesson.frequency.saturating_sub(1);
    let useless = lesson.ineffective >= policy.ineffective_limit || lesson.frequency == 0;
    LessonUpdate {
        lesson,
        what: LessonChange::Ineffective,
        archived: useless.then_some(Archived::Ineffective),
    }
}

fn seen_again(lesson: &Lesson, lived: &Lived) -> Lesson {
    Lesson { last_seen_run: lived.run_id.clone(), runs_since_last_seen: 0, ..lesson.clone() }
}

fn age(lesson: &Lesson, policy: &Memory) -> LessonUpdate {
    let mut lesson = lesson.clone();
    lesson.runs_since_last_seen = lesson.runs_since_last_seen.saturating_add(1);
    if lesson.runs_since_last_seen < policy.decay_after_runs {
        return LessonUpdate { lesson, what: LessonChange::Unseen, archived: None };
    }
    lesson.runs_since_last_seen = 0;
    lesson.frequency = lesson.frequency.saturating_sub(1);
    let archived = (lesson.frequency == 0).then_some(Archived::Decayed);
    LessonUpdate { lesson, what: LessonChange::Decayed, archived }
}

/// The weakest lessons beyond a number; a preference is never one of them.
pub fn crowded_out(lessons: &[Lesson], at_most: usize) -> Vec<String> {
    let mut weak: Vec<&Lesson> =
        lessons.iter().filter(|lesson| lesson.kind != LessonKind::Preference).collect();
    weak.sort_by_key(|lesson| {
        (lesson.frequency, Reverse(lesson.runs_since_last_seen), lesson.id.len(), &lesson.id)
    });
    let surplus = lessons.len().saturating_sub(at_most);
    weak.into_iter().take(surplus).map(|lesson| lesson.id.clone()).collect()
}

/// At most five words of four letters and more, the category first.
pub fn tags(category: &str, text: &str) -> Vec<String> {
    const MOST: usize = 5;
    const SHORTEST: usize = 4;
    let mut tags: Vec<String> = Vec::new();
    for word in std::iter::once(category).chain(text.split_whitespace()) {
        let word: String = word
            .chars()
            .filter(|c| c.is_alphanumeric() || *c == '-')
            .flat_map(char::to_lowercase)
            .take(40)
            .collect();
        if word.chars().count() >= SHORTEST && !tags.contains(&word) && tags.len() < MOST {
            tags.push(word);
        }
    }
    tags
}
