//! What a reviewer brought forward for a finding, and what the program found when it looked (D-05).

use crate::event::CycleBoundary;
use crate::model::{AnswerBody, Citation, Finding, ReproductionResult};
use crate::run::{Cycle, Run};

use super::Life;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Evidence {
    /// The archetype.
    pub source: String,
    /// In the reviewer's own words.
    pub text: String,
    pub citations: Vec<Citation>,
    /// The command of a reproduction, and what came of it if it was run.
    pub reproduction: Option<(String, Option<Reproduced>)>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reproduced {
    pub result: ReproductionResult,
    pub words: String,
    /// The end of what it printed.
    pub output: String,
}

/// Of each reviewer that raised it, in the last cycle in which it was open.
pub fn evidence(run: &Run, life: &Life) -> Vec<Evidence> {
    let mut ended =
        run.cycles.iter().filter_map(|cycle| cycle.boundary.as_deref().map(|boundary| (cycle, boundary)));
    let last = life.states.iter().rposition(|state| state.is_open());
    let at = last.and_then(|last| ended.nth(last));
    at.map_or_else(Vec::new, |(cycle, boundary)| of_cycle(cycle, boundary, life))
}

fn of_cycle(cycle: &Cycle, boundary: &CycleBoundary, life: &Life) -> Vec<Evidence> {
    let Some(tracked) = boundary.open.iter().find(|found| found.id == life.id) else { return Vec::new() };
    let is_it = |source: &str, finding: &Finding| {
        let words = finding.description == tracked.description
            || tracked
                .also
                .iter()
                .any(|remark| remark.source == source && remark.description == finding.description);
        finding.file == tracked.file && words
    };
    let mut found = Vec::new();
    for (source, answered) in cycle.answers.iter().filter(|(source, _)| tracked.source.contains(source)) {
        let AnswerBody::Review(review) = &answered.answer.said else { continue };
        for (number, finding) in (0..).zip(&review.findings) {
            if is_it(source, finding) {
                let trial = cycle.trials.get(&(source.clone(), number));
                found.push(Evidence {
                    source: source.clone(),
                    text: finding.evidence.clone(),
                    citations: finding.citations.clone(),
                    reproduction: finding.reproduction.as_ref().map(|reproduction| {
                        let ran = trial.map(|(result, words, output)| Reproduced {
                            result: *result,
                            words: words.clone(),
                            output: output.clone(),
                        });
                        (reproduction.command.clone(), ran)
                    }),
                });
            }
        }
    }
    found
}
