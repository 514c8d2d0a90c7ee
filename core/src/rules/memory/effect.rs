//! Whether injected lessons helped (BX-30).

use super::Shared;
use crate::event::Tracked;
use crate::model::{Lesson, Memory};

/// A lesson that was given, and its similarity to the nearest finding of the run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LessonEffect {
    pub lesson_id: String,
    pub lesson_desc: String,
    pub helpful: bool,
    pub keyword_overlap_pct: u32,
}

/// What a lesson warned of and what came up all the same share words; a lesson nothing came near to has helped.
pub fn effects<'a>(
    told: impl IntoIterator<Item = &'a Lesson>,
    findings: &[Tracked],
    policy: &Memory,
) -> Vec<LessonEffect> {
    let effect = |lesson: &Lesson| {
        let nearest = findings
            .iter()
            .map(|found| Shared::between(&lesson.description, &found.description))
            .max_by(|a, b| a.compare(*b))
            .unwrap_or(Shared { words: 0, of: 0 });
        LessonEffect {
            lesson_id: lesson.id.clone(),
            lesson_desc: lesson.description.clone(),
            helpful: !nearest.reaches(policy.ineffective_percent),
            keyword_overlap_pct: nearest.percent(),
        }
    };
    told.into_iter().map(effect).collect()
}
