//! One review out of the reviews of a diff's parts.

use crate::model::{Answer, AnswerBody, Review, Traits, Verdict};

use super::status::care;
use super::{Problems, findings, proposal};

/// The answer that several answers of one reviewer amount to. It approves only if all of them do, and of their statuses
/// the one counts that a person has to look at most. Remarks and problems name their part.
pub fn of_parts(answers: Vec<Answer>) -> Answer {
    let count = answers.len();
    let mut whole = Answer::default();
    let mut problems = Problems::default();
    let mut review = Review { verdict: Some(Verdict::Approved), ..Review::default() };
    for (n, answer) in answers.into_iter().enumerate() {
        let of_part = |text: String| format!("part {} of {count}: {text}", n + 1);
        if n == 0 || care(answer.status) > care(whole.status) {
            whole.status = answer.status;
        }
        if !answer.remark.is_empty() {
            whole.remark += if whole.remark.is_empty() { "" } else { "\n" };
            whole.remark += &of_part(answer.remark);
        }
        if whole.summary.is_empty() {
            whole.summary = answer.summary;
        }
        whole.words = whole.words.saturating_add(answer.words);
        whole.traits = added(whole.traits, answer.traits);
        whole.prior.extend(
            answer.prior.into_iter().filter(|prior| !whole.prior.contains(prior)).collect::<Vec<_>>(),
        );
        answer.problems.into_iter().for_each(|problem| problems.note(of_part(problem)));
        let AnswerBody::Review(part) = answer.said else { continue };
        review.verdict = match (review.verdict, part.verdict) {
            (Some(Verdict::Rejected), _) | (_, Some(Verdict::Rejected)) => Some(Verdict::Rejected),
            (None, _) | (_, None) => None,
            (Some(Verdict::Approved), Some(Verdict::Approved)) => Some(Verdict::Approved),
        };
        review.declared = match part.declared {
            Some(more) => Some(review.declared.unwrap_or(0).saturating_add(more)),
            None => review.declared,
        };
        review.findings.extend(part.findings);
        review.left_out = review.left_out.saturating_add(part.left_out);
        review.unread = review.unread.or(part.unread.map(of_part));
    }
    // Together they may be too much for a line of the log, as one review may be.
    let found = review.findings.len();
    let left_out = findings::keep_the_gravest(&mut review.findings, found);
    if left_out > 0 {
        let said =
            format!("{left_out} findings left out: only the {} most severe are kept", found - left_out);
        if review.verdict != Some(Verdict::Rejected) {
            review.unread.get_or_insert_with(|| said.clone());
        }
        problems.note(said);
        review.left_out = review.left_out.saturating_add(u32::try_from(left_out).unwrap_or(u32::MAX));
    }
    whole.prior.truncate(proposal::MAX_PRIOR);
    whole.problems = problems.into_vec();
    whole.said = AnswerBody::Review(review);
    whole
}

/// Findings are counted together; a concern that was repeated most often within a part stays the measure for that.
fn added(one: Traits, other: Traits) -> Traits {
    let sum = |of: fn(&Traits) -> u32| of(&one).saturating_add(of(&other));
    let either = |of: fn(&Traits) -> bool| of(&one) || of(&other);
    Traits {
        recommendation: either(|traits| traits.recommendation),
        tangents: sum(|traits| traits.tangents),
        files: sum(|traits| traits.files),
        bare_files: sum(|traits| traits.bare_files),
        patterns: either(|traits| traits.patterns),
        synthesis: either(|traits| traits.synthesis),
        abstractions: sum(|traits| traits.abstractions),
        future_proof: sum(|traits| traits.future_proof),
        items: sum(|traits| traits.items),
        items_beyond: sum(|traits| traits.items_beyond),
        packages: sum(|traits| traits.packages),
        test_run: either(|traits| traits.test_run),
        deviations: sum(|traits| traits.deviations),
        remedied: sum(|traits| traits.remedied),
        grave_remedied: sum(|traits| traits.grave_remedied),
        compromised: sum(|traits| traits.compromised),
        reworded: one.reworded.max(other.reworded),
        impossible: sum(|traits| traits.impossible),
        without_steps: sum(|traits| traits.without_steps),
        considers: sum(|traits| traits.considers),
        trivial_docs: sum(|traits| traits.trivial_docs),
        actionable: sum(|traits| traits.actionable),
        actionable_words: sum(|traits| traits.actionable_words),
    }
}

#[cfg(test)]
mod tests {
    use super::of_parts;
    use crate::model::{AnswerBody, Role, Severity, Status, Verdict};
    use crate::read::answer;

    const APPROVES: &str = "VERDICT: APPROVED\nFINDINGS: 0\n\nSTATUS: DONE\n";
    const REJECTS: &str = "| Location | Severity | Category | Description | Fix |\n|---|---|---|---|---|\n\
        | a.rs:1 | CRITICAL | security | the key is in the log | remove it |\n\n\
        VERDICT: REJECTED\nFINDINGS: 1\n\nSTATUS: DONE\n";
    const BLOCKED: &str = "VERDICT: APPROVED\nFINDINGS: 0\n\n## Blocker\n\nno access\n\nSTATUS: BLOCKED\n";

    #[test]
    fn s_03_the_findings_of_all_parts_fit_into_a_line_of_the_log() {
        let many: String = (1..=400)
            .map(|n| {
                format!("| a.rs:{n} | WARNING | quality | number {n} of this part is wrong | mend it |\n")
            })
            .collect();
        let head = "| Location | Severity | Category | Description | Fix |\n|---|---|---|---|---|\n";
        let text = format!("{head}{many}\nVERDICT: REJECTED\nFINDINGS: 400\n\nSTATUS: DONE\n");
        let part = answer(Role::Gatekeeper, "guardian", text.as_bytes());
        let grave = answer(Role::Gatekeeper, "guardian", REJECTS.as_bytes());
        let whole = of_parts(vec![part.clone(), part, grave]);
        let AnswerBody::Review(review) = &whole.said else { panic!("{whole:?}") };
        assert_eq!((review.findings.len(), review.left_out), (500, 301));
        assert!(
            review.findings.iter().any(|finding| finding.severity == Severity::Critical),
            "the gravest stay"
        );
        assert!(whole.problems.iter().any(|problem| problem.contains("301 findings left out")));
    }

    #[test]
    fn s_03_all_parts_have_to_approve() {
        use Verdict::{Approved, Rejected};
        for (parts, verdict, findings, status) in [
            (vec![APPROVES, APPROVES], Some(Approved), 0, Status::Done),
            (vec![APPROVES, REJECTS], Some(Rejected), 1, Status::Done),
            (vec![REJECTS, APPROVES, REJECTS], Some(Rejected), 2, Status::Done),
            (vec![APPROVES, "fine\n\nSTATUS: DONE\n"], None, 0, Status::Done),
            (vec!["fine\n\nSTATUS: DONE\n", REJECTS], Some(Rejected), 1, Status::Done),
            (vec![APPROVES, "VERDICT: APPROVED\nFINDINGS: 0\n"], Some(Approved), 0, Status::Unverified),
            (vec![BLOCKED, APPROVES], Some(Approved), 0, Status::Blocked),
        ] {
            let read = |text: &&str| answer(Role::Gatekeeper, "guardian", text.as_bytes());
            let whole = of_parts(parts.iter().map(read).collect());
            let AnswerBody::Review(review) = &whole.said else { panic!("{parts:?}: {whole:?}") };
            assert_eq!((review.verdict, review.findings.len()), (verdict, findings), "{parts:?}");
            assert_eq!(whole.status, status, "{parts:?}");
            if status == Status::Blocked {
                assert_eq!(whole.remark, "part 1 of 2: no access");
            }
        }
    }
}
