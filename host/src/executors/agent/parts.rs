//! A reviewer whose diff is too long for one brief: it is started once for each part, and the reviews become one.
//!
//! Each part has a folder within the attempt's. After a crash the parts that were done are read again, and the attempt is
//! lost if one of them was running.

use std::path::{Path, PathBuf};
use std::sync::mpsc::Sender;

use archeflow_core::event::{AgentComplete, Report};
use archeflow_core::model::Money;
use archeflow_core::read;

use super::super::meter::EarlierParts;
use super::super::{Message, artifact_name};
use super::folder::code_in;
use super::{ANSWER, Attempt, Fault, without_code};
use crate::platform::files as os;
use crate::store::files;

impl Attempt<'_> {
    pub(super) fn perform_parts(&self, send: &Sender<Message>) -> Result<Report, Fault> {
        let briefs = &self.inputs.parts;
        self.write_folder()?;
        let mut done: Vec<AgentComplete> = Vec::with_capacity(briefs.len());
        let mut earlier = EarlierParts::default();
        for (n, brief) in briefs.iter().enumerate() {
            let folder = part_folder(&self.folder, n);
            let part = Attempt::new(self.world, self.inputs, brief, earlier, folder);
            let report = part.perform(send)?;
            let Report::AgentComplete(complete) = report else {
                return Ok(with_earlier(report, earlier, (n + 1, briefs.len())));
            };
            earlier.count += 1;
            earlier.cost = earlier.cost.plus(complete.estimated_cost_usd.unwrap_or(Money::ZERO));
            earlier.tokens = earlier.with(complete.tokens);
            done.push(*complete);
        }
        self.whole(done, earlier)
    }

    /// One report for all parts.
    fn whole(&self, parts: Vec<AgentComplete>, used: EarlierParts) -> Result<Report, Fault> {
        let count = parts.len();
        let mut text = Vec::new();
        for n in 0..count {
            let folder = part_folder(&self.folder, n);
            let said = files::read_capped(&folder.join(ANSWER), super::READ_AT_MOST);
            text.extend(format!("# Part {} of {count}\n\n", n + 1).into_bytes());
            text.extend(without_code(said.unwrap_or_default(), &code_in(&folder)));
            text.extend(b"\n\n");
        }
        let name = artifact_name(&self.inputs.start);
        self.write_artifact(&name, &text)?;
        let path = self.folder.join(ANSWER);
        os::write_private(&path, &text).map_err(|error| self.trouble(&path, &error))?;
        let duration_ms = parts.iter().map(|part| part.duration_ms).sum();
        let brief_chars = parts.iter().map(|part| part.brief_chars).max().unwrap_or(0);
        let mut notes = vec![format!("it was shown the diff in {count} parts")];
        for note in parts.iter().flat_map(|part| &part.notes) {
            if !notes.contains(note) {
                notes.push(note.clone());
            }
        }
        let known = parts.iter().all(|part| part.estimated_cost_usd.is_some());
        let (mut cost_source, mut played) = (None, None);
        for part in &parts {
            // The least certain source is that of the sum.
            cost_source = cost_source.max(part.cost_source);
            played = played.or_else(|| part.played.clone());
        }
        let answer = read::of_parts(parts.into_iter().map(|part| part.answer).collect());
        let complete = AgentComplete {
            archetype: self.inputs.start.archetype.clone(),
            start_seq: self.inputs.seq,
            duration_ms,
            artifacts: vec![name],
            digest: files::digest(&text),
            summary: answer.summary.clone(),
            model: self.inputs.start.model,
            answer,
            change: None,
            tokens: used.tokens,
            estimated_cost_usd: known.then_some(used.cost),
            cost_source,
            notes,
            session: None,
            played,
            brief_chars,
        };
        Ok(complete.into())
    }
}

fn part_folder(attempt: &Path, n: usize) -> PathBuf {
    attempt.join(format!("part-{}", n + 1))
}

/// The end of a part that gave no answer is the end of the attempt, and what the parts before it cost belongs to it. A
/// conversation about one part can't be resumed for all.
fn with_earlier(mut report: Report, earlier: EarlierParts, (part, count): (usize, usize)) -> Report {
    let more = |cost: &mut Option<Money>| *cost = Some(cost.unwrap_or(Money::ZERO).plus(earlier.cost));
    if let Report::AgentLost(lost) = &mut report {
        more(&mut lost.estimated_cost_usd);
        lost.tokens = earlier.with(lost.tokens);
        return report;
    }
    let failed = if let Report::AgentFailed(failed) = &mut report {
        failed
    } else if let Report::AgentTimeout(late) = &mut report {
        &mut late.0
    } else {
        return report;
    };
    failed.reason = format!("part {part} of {count} of the diff: {}", failed.reason);
    more(&mut failed.estimated_cost_usd);
    failed.tokens = earlier.with(failed.tokens);
    failed.session = None;
    report
}
