//! Which lessons are injected into an archetype's prompt (AF-013, BX-30, AF-156).

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use super::{GENERAL, USER};
use crate::event::Past;
use crate::model::named::named;
use crate::model::{Boundaries, Lesson, LessonKind, Memory, Policy};

named! {
    /// Why a lesson is injected.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
    pub enum LessonReason {
        /// The user wants it so.
        Preference = "preference",
        /// So frequent that all archetypes get it.
        Frequent = "frequent",
        /// A person wrote it, for this domain and this archetype.
        Written = "written",
        /// Seen often enough, in this domain, for this archetype.
        Recurring = "recurring",
    }
}

/// The lessons for one archetype.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Telling<'a> {
    /// The most frequent first.
    pub lessons: Vec<(&'a Lesson, LessonReason)>,
    /// How many would have fitted.
    pub candidates: usize,
}

/// Too many lessons are ignored by models: above the limit of a brief only the first few are injected (AF-156).
pub fn tell<'a>(
    lessons: &'a [Lesson],
    domain: &str,
    archetype: &str,
    memory: &Memory,
    boundaries: &Boundaries,
) -> Telling<'a> {
    let mut told: Vec<(&Lesson, LessonReason)> = lessons
        .iter()
        .filter_map(|lesson| Some((lesson, fits(lesson, domain, archetype, memory)?)))
        .collect();
    told.sort_by_key(|(lesson, _)| (Reverse(lesson.frequency), lesson.id.len(), &lesson.id));
    let candidates = told.len();
    let at_most = if candidates > boundaries.lessons_at_most as usize {
        boundaries.lessons_kept.min(memory.max_lessons)
    } else {
        memory.max_lessons
    };
    told.truncate(at_most as usize);
    Telling { lessons: told, candidates }
}

fn fits(lesson: &Lesson, domain: &str, archetype: &str, memory: &Memory) -> Option<LessonReason> {
    let for_this_one = lesson.archetype.as_ref().is_none_or(|only| only == archetype);
    let here = lesson.domain == domain || lesson.domain == GENERAL;
    if lesson.kind == LessonKind::Preference {
        return for_this_one.then_some(LessonReason::Preference);
    }
    if lesson.frequency >= memory.always_threshold {
        return Some(LessonReason::Frequent);
    }
    if lesson.frequency >= memory.inject_threshold && here && for_this_one {
        return Some(LessonReason::Recurring);
    }
    (lesson.source == USER && here && for_this_one).then_some(LessonReason::Written)
}

/// The same for every agent that may be started. The past keeps the injected lessons, and which agent gets which.
pub fn select<'n>(
    lessons: &[Lesson],
    domain: &str,
    archetypes: impl IntoIterator<Item = &'n String>,
    policy: &Policy,
    past: &mut Past,
) {
    let mut chosen: BTreeMap<&str, &Lesson> = BTreeMap::new();
    for archetype in archetypes {
        let telling = tell(lessons, domain, archetype, &policy.memory, &policy.boundaries);
        chosen.extend(telling.lessons.iter().map(|(lesson, _)| (lesson.id.as_str(), *lesson)));
        let ids: Vec<String> = telling.lessons.iter().map(|(lesson, _)| lesson.id.clone()).collect();
        if ids.len() < telling.candidates {
            past.fitted.insert(archetype.clone(), u32::try_from(telling.candidates).unwrap_or(u32::MAX));
        }
        if !ids.is_empty() {
            past.told.insert(archetype.clone(), ids);
        }
    }
    past.lessons = chosen.into_values().cloned().collect();
}

/// The decision points at the start of a run: the rule, the input, the decision.
pub fn decision_points(
    past: &Past,
    team: &[String],
    boundaries: &Boundaries,
) -> Vec<(&'static str, String, String)> {
    let told = |name: &String| Some(format!("{name} {}", past.told.get(name)?.join(" ")));
    let told: Vec<String> = team.iter().filter_map(told).collect();
    let mut said = Vec::new();
    if !told.is_empty() {
        said.push((
            "AF-013",
            format!("{} lessons of earlier runs", past.lessons.len()),
            format!("told: {}", told.join(", ")),
        ));
    }
    let crowded: Vec<String> = team
        .iter()
        .filter_map(|name| Some((name, *past.fitted.get(name)?)))
        .filter(|(_, fitted)| *fitted > boundaries.lessons_at_most)
        .map(|(name, fitted)| format!("{fitted} for the {name}"))
        .collect();
    if !crowded.is_empty() {
        let input =
            format!("lessons that fit: {}, more than {}", crowded.join(", "), boundaries.lessons_at_most);
        said.push(("AF-156", input, format!("only the {} most frequent are told", boundaries.lessons_kept)));
    }
    said
}

/// The section of a brief; the brief puts it between fences. What this run has shown to be of no help is not injected
/// again (AF-145).
pub fn lessons_section(past: &Past, archetype: &str, ineffective: &BTreeSet<String>) -> Option<String> {
    let ids: Vec<&String> =
        past.told.get(archetype)?.iter().filter(|id| !ineffective.contains(*id)).collect();
    if ids.is_empty() {
        return None;
    }
    let mut text = String::from("What earlier runs of this project ran into, the most frequent first:\n");
    for lesson in ids.into_iter().filter_map(|id| past.lessons.iter().find(|lesson| lesson.id == *id)) {
        let often = match (lesson.kind, lesson.frequency) {
            (LessonKind::Preference, _) => "the user prefers this".to_owned(),
            (_, 1) => "seen once".to_owned(),
            (_, n) => format!("seen {n} times"),
        };
        let _ = write!(text, "\n- {} ({often}): {}", lesson.id, lesson.description);
    }
    Some(text)
}
