//! What becomes of objections (`docs/rules/objections.md`), counted from the lines alone.

use archeflow_core::event::{
    CycleBoundary, EvidenceDowngrade, FixApplied, RunComplete, Tracked, TrendStatus, Unfounded,
};
use archeflow_core::model::{Change, ExitWhen, Finding, Overlap, PROGRAM, Severity};

use super::{Auditor, Kept, holds};

/// Where not all files of a change are known, any file may be one of them.
pub(super) fn in_the_change(work: Option<&Change>, file: &str) -> bool {
    work.is_some_and(|work| work.files_left_out > 0 || work.files.iter().any(|changed| changed.path == file))
}

/// How much a finding may lose.
pub(super) fn weakened(down: &EvidenceDowngrade) -> Kept {
    let least = if down.reason == Unfounded::LineUnrelated { Severity::Warning } else { Severity::Info };
    holds(down.to == least && down.to < down.from, "a finding loses no more than its reason takes")
}

impl Auditor<'_> {
    /// Whether WARNINGs of a rejection land; no CRITICAL does, unless the team says so.
    pub(super) fn passes_over(&self, boundary: &CycleBoundary) -> Result<bool, String> {
        let exit = self.request()?.overlay.exit;
        if self.pipeline() {
            holds(boundary.critical == 0, "nothing CRITICAL lands")?;
            return Ok(true);
        }
        let raised = self.cycle.raised.iter().any(|(_, found)| found.severity == Severity::Critical);
        let always = exit == ExitWhen::Always && !raised;
        holds(boundary.critical == 0 || always, "nothing CRITICAL lands")?;
        let trend = boundary.convergence.as_ref().map(|trend| trend.status);
        Ok(match exit {
            ExitWhen::AllApproved => false,
            ExitWhen::NoCritical | ExitWhen::Always => true,
            ExitWhen::Convergence => trend == Some(TrendStatus::Converging),
        })
    }

    /// A finding that counts is on the list of its boundary, with its author and no less grave.
    pub(super) fn lists_what_is_open(
        &self,
        boundary: &CycleBoundary,
        weighed: &[(&str, Severity, &Finding)],
    ) -> Kept {
        let policy = &self.request()?.config.convergence;
        let sure: Vec<_> = weighed
            .iter()
            .filter(|(_, severity, found)| *severity >= policy.tracked && self.surely_counts(found))
            .collect();
        let weighs = policy.overlap == Overlap::Weighed;
        for (name, severity, found) in &sure {
            let place = |file: &str, category: &str| file == found.file && category == found.category;
            let at_place = |open: &Tracked| place(&open.file, &open.category);
            let in_words = |open: &Tracked| {
                let mut also = open.also.iter();
                open.description == found.description
                    || also.any(|remark| remark.description == found.description)
            };
            let known = |open: &Tracked| if weighs { in_words(open) } else { at_place(open) };
            let lists = |open: &Tracked| by(open, name) && open.severity >= *severity && known(open);
            holds(boundary.open.iter().any(lists), "what is open is listed with its author")?;
            // Two findings of one reviewer are two; where only places are compared, they may have joined others there.
            let own = sure.iter().filter(|(author, _, other)| {
                author == name && (weighs || place(&other.file, &other.category))
            });
            let listed =
                boundary.open.iter().filter(|open| if weighs { by(open, name) } else { at_place(open) });
            holds(own.count() <= listed.count(), "no finding stands for two of its author")?;
        }
        holds(
            boundary.fixes_applied as usize == self.cycle.fixed.len(),
            "a boundary counts the fixes of its cycle",
        )
    }

    /// Not one that a person may have accepted, or that the present answer may have.
    fn surely_counts(&self, found: &Finding) -> bool {
        let aside = self.cycle.all_set_aside();
        let unsure = self.cycle.unsure(&aside).iter().any(|other| std::ptr::eq(*other, found));
        let accepted =
            self.accepted.iter().any(|known| known.file == found.file && known.category == found.category);
        !unsure && !accepted
    }

    /// What is repaired was open, and its authors looked at the new version.
    pub(super) fn repaired(&self, fix: &FixApplied) -> Kept {
        let mut authors = fix.source.split('+').filter(|name| *name != PROGRAM);
        holds(
            authors.all(|name| self.cycle.answers.contains_key(name)),
            "what is repaired was looked at by its authors",
        )?;
        let before = self.cycle.number.checked_sub(1).and_then(|cycle| self.boundaries.get(&cycle));
        let was_open = before.is_some_and(|before| before.open.iter().any(|open| open.id == fix.finding));
        // Reviews from another run were not always weighed before they were answered.
        let inherited =
            self.cycle.imported || self.cycle.before.iter().any(|(.., found)| found.file == fix.file);
        let inherited = self.pipeline() && inherited;
        holds(was_open || inherited, "what is repaired was open")?;
        let accepted = self.accepted.iter().any(|known| known.id == fix.finding);
        holds(!accepted, "what a person accepted is not repaired")
    }

    /// The end of a run lists what its last boundary leaves open.
    pub(super) fn ends_with_what_is_open(&self, complete: &RunComplete) -> Kept {
        let Some(boundary) =
            self.boundaries.get(&self.cycle.number).filter(|_| self.cycle.boundary.is_some())
        else {
            return Ok(());
        };
        let mut open: Vec<_> =
            boundary.open.iter().map(|open| (open.severity, &open.category, &open.description)).collect();
        let lines = complete.unresolved.iter();
        let mut told: Vec<_> = lines.map(|line| (line.severity, &line.category, &line.description)).collect();
        open.sort();
        told.sort();
        holds(open == told, "the end lists what is open")
    }
}

fn by(open: &Tracked, name: &str) -> bool {
    open.source.iter().any(|source| source == name)
}
