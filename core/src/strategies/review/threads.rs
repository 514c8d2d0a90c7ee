//! What a review does with the threads of a pull request: which findings get one, and which threads are closed, opened
//! again or left alone. Pure: the host reads the forge and sends what is decided here.
//!
//! A thread is ours if this account began it and its marker names a finding. All others are never touched.

use std::collections::{BTreeMap, BTreeSet};

use crate::model::PROGRAM;

use super::results::{Listed, Reviewed, Standing};

/// More threads than this are not begun at once; the other findings are in the summary.
pub const THREADS_AT_MOST: usize = 20;

/// A thread of ours, as the forge has it now.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ThreadFacts {
    /// The finding it is about.
    pub fingerprint: String,
    /// The archetypes that raised it.
    pub raised_by: Vec<String>,
    pub file: String,
    /// It is marked as resolved, by whomever.
    pub closed: bool,
    /// The forge says that another account resolved it.
    pub closed_by_other: bool,
    /// What the last reply of this program says.
    pub last_word: Option<ThreadWord>,
    /// The last comment is not by this program.
    pub person_last: bool,
    /// The line it is about is not what it was when the thread began.
    pub line_changed: bool,
}

/// What a reply of this program says about its finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ThreadWord {
    Resolved,
    Back,
}

impl ThreadWord {
    pub const ALL: [ThreadWord; 2] = [ThreadWord::Resolved, ThreadWord::Back];

    pub fn name(self) -> &'static str {
        match self {
            ThreadWord::Resolved => "resolved",
            ThreadWord::Back => "back",
        }
    }
}

/// What is known besides the review's result.
#[derive(Debug, Clone, Default)]
pub struct RequestFacts {
    pub threads: Vec<ThreadFacts>,
    /// The lines of the new files that the forge shows, by path. A file without such lines is in the change as well.
    pub shown: BTreeMap<String, BTreeSet<u32>>,
    /// Findings that have been posted before, by their fingerprints. One without a thread was deleted by a person.
    pub posted: BTreeSet<String>,
    /// Findings that the summary of an earlier review lists.
    pub summarised: BTreeSet<String>,
    /// Findings whose lines the forge did not take for a thread, now or for an earlier review.
    pub refused: BTreeSet<String>,
    /// The forge has a summary of ours.
    pub has_summary: bool,
    /// The forge can resolve a thread by a request.
    pub can_close: bool,
}

/// One step on the forge. `finding` is a place in the review's list, `thread` one among the facts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ThreadAction {
    /// Begin a thread at the finding's line.
    Post {
        finding: usize,
    },
    /// Say that it is gone, unless that was said, and mark the thread as resolved if the forge can.
    Resolve {
        thread: usize,
        reply: bool,
        close: bool,
    },
    /// Say that it is back, unless that was said, and open the thread again if it is closed.
    Reopen {
        thread: usize,
        finding: usize,
        reply: bool,
        open: bool,
    },
    /// A person resolved or deleted the thread although the finding is still there: it may belong into the baseline.
    Propose {
        finding: usize,
    },
    Leave {
        thread: usize,
        why: LeftAlone,
    },
}

/// Why nothing happens to a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeftAlone {
    /// Its finding is still there, and the thread is open.
    Persistent,
    /// The baseline accepts the finding.
    Accepted,
    /// The finding is still raised, but does not count any more.
    DoesNotCount,
    /// The finding is gone and the thread is closed, or says so.
    Done,
    /// Another thread of ours is about the same finding.
    Duplicate,
    /// A person wrote last.
    PersonLast,
    /// No reviewer of the kind that raised it looked at the file.
    NotLookedAt,
    /// The line is as it was, so the finding may have been missed.
    LineUnchanged,
}

impl LeftAlone {
    /// Why an open thread stays open although its finding is not raised any more.
    pub fn reason(self) -> Option<&'static str> {
        match self {
            LeftAlone::PersonLast => Some("a person replied last"),
            LeftAlone::NotLookedAt => Some("no reviewer of the same archetype looked at the file"),
            LeftAlone::LineUnchanged => Some("the line did not change"),
            LeftAlone::Persistent
            | LeftAlone::Accepted
            | LeftAlone::DoesNotCount
            | LeftAlone::Done
            | LeftAlone::Duplicate => None,
        }
    }
}

/// Why a finding that counts has no thread of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnlyInSummary {
    /// Its line is not in the diff, or it names none.
    OutsideDiff,
    /// The forge took no comment at its line, which is in the diff by our own count.
    Refused,
    TooMany,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ThreadPlan {
    pub actions: Vec<ThreadAction>,
    pub only_in_summary: Vec<(usize, OnlyInSummary)>,
    /// There is something that a person has not been shown on the forge: a new summary is posted.
    pub has_news: bool,
}

/// What follows from a review for the threads of its request.
pub fn thread_plan(reviewed: &Reviewed, facts: &RequestFacts) -> ThreadPlan {
    let mut plan = ThreadPlan::default();
    let mut met = BTreeSet::new();
    let mut begun = 0;
    for (finding, listed) in reviewed.findings.iter().enumerate() {
        let mut own = (0..facts.threads.len()).filter(|at| {
            facts.threads.get(*at).is_some_and(|thread| is_about(thread, listed)) && !met.contains(at)
        });
        let first = own.next();
        let others: Vec<usize> = own.collect();
        for thread in others {
            met.insert(thread);
            plan.actions.push(ThreadAction::Leave { thread, why: LeftAlone::Duplicate });
        }
        if let Some(thread) = first {
            met.insert(thread);
            plan.actions
                .extend(facts.threads.get(thread).map(|known| raised(thread, known, finding, listed)));
            continue;
        }
        if !listed.counts() {
            continue;
        }
        if is_among(&facts.posted, listed) {
            plan.actions.push(ThreadAction::Propose { finding });
        } else if is_among(&facts.refused, listed) {
            plan.only_in_summary.push((finding, OnlyInSummary::Refused));
        } else if !is_shown(facts, listed) {
            plan.only_in_summary.push((finding, OnlyInSummary::OutsideDiff));
        } else if begun == THREADS_AT_MOST {
            plan.only_in_summary.push((finding, OnlyInSummary::TooMany));
        } else {
            begun += 1;
            plan.actions.push(ThreadAction::Post { finding });
        }
    }
    for (thread, known) in facts.threads.iter().enumerate().filter(|(at, _)| !met.contains(at)) {
        plan.actions.push(gone(thread, known, reviewed, facts));
    }
    let unseen = |(finding, _): &(usize, OnlyInSummary)| {
        reviewed.findings.get(*finding).is_some_and(|listed| !is_among(&facts.summarised, listed))
    };
    let speaks = |action: &ThreadAction| {
        matches!(
            action,
            ThreadAction::Post { .. }
                | ThreadAction::Resolve { reply: true, .. }
                | ThreadAction::Reopen { reply: true, .. }
        )
    };
    plan.has_news =
        !facts.has_summary || plan.actions.iter().any(speaks) || plan.only_in_summary.iter().any(unseen);
    plan
}

fn is_about(thread: &ThreadFacts, listed: &Listed) -> bool {
    thread.fingerprint == listed.fingerprint || thread.fingerprint == listed.identity()
}

fn is_among(fingerprints: &BTreeSet<String>, listed: &Listed) -> bool {
    fingerprints.contains(&listed.fingerprint) || fingerprints.contains(listed.identity())
}

fn is_shown(facts: &RequestFacts, listed: &Listed) -> bool {
    facts.shown.get(&listed.file).is_some_and(|lines| lines.contains(&listed.line))
}

/// This program closed the thread, and nobody did so after it.
fn closed_by_us(thread: &ThreadFacts) -> bool {
    thread.closed && !thread.closed_by_other && thread.last_word.is_some() && !thread.person_last
}

/// A thread whose finding is in the review.
fn raised(thread: usize, known: &ThreadFacts, finding: usize, listed: &Listed) -> ThreadAction {
    let why = match &listed.standing {
        Standing::Accepted(_) => LeftAlone::Accepted,
        Standing::Unfounded(_) | Standing::Refuted => LeftAlone::DoesNotCount,
        Standing::Yes if known.closed && !closed_by_us(known) => return ThreadAction::Propose { finding },
        Standing::Yes if known.closed || known.last_word == Some(ThreadWord::Resolved) => {
            let reply = known.last_word != Some(ThreadWord::Back);
            return ThreadAction::Reopen { thread, finding, reply, open: known.closed };
        }
        Standing::Yes => LeftAlone::Persistent,
    };
    ThreadAction::Leave { thread, why }
}

/// A thread whose finding is not raised any more: it was fixed, or missed.
fn gone(thread: usize, known: &ThreadFacts, reviewed: &Reviewed, facts: &RequestFacts) -> ThreadAction {
    let was_said = known.last_word == Some(ThreadWord::Resolved);
    let why = if known.closed || (was_said && !facts.can_close) {
        LeftAlone::Done
    } else if known.person_last {
        LeftAlone::PersonLast
    } else if !was_looked_at(known, reviewed, facts) {
        LeftAlone::NotLookedAt
    } else if !known.line_changed {
        LeftAlone::LineUnchanged
    } else {
        return ThreadAction::Resolve { thread, reply: !was_said, close: facts.can_close };
    };
    ThreadAction::Leave { thread, why }
}

/// One of those who raised it has seen the whole change, and the file is a part of it.
fn was_looked_at(known: &ThreadFacts, reviewed: &Reviewed, facts: &RequestFacts) -> bool {
    let whole = u32::try_from(reviewed.parts.len()).is_ok_and(|parts| reviewed.parts_done >= parts);
    let looked = |name: &String| {
        let mut those = reviewed.reviewers.iter().filter(|one| one.missed == 0 && one.verdict.is_some());
        name == PROGRAM || those.any(|one| one.archetype == *name)
    };
    whole && facts.shown.contains_key(&known.file) && known.raised_by.iter().any(looked)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Unfounded;
    use crate::model::{Oid, Severity, Subject, SubjectKind, Verdict};
    use crate::strategies::review::Reviewer;

    fn listed(fingerprint: &str, line: u32) -> Listed {
        Listed {
            fingerprint: fingerprint.to_owned(),
            rule: "testing".to_owned(),
            severity: Severity::Warning,
            said: Severity::Warning,
            standing: Standing::Yes,
            trial: None,
            since: None,
            known_as: String::new(),
            file: "a.rs".to_owned(),
            line,
            location: String::new(),
            category: "testing".to_owned(),
            description: "x".to_owned(),
            fix: String::new(),
            evidence: String::new(),
            sources: vec!["guardian".to_owned()],
            also: Vec::new(),
            anchor: String::new(),
            places: Vec::new(),
        }
    }

    fn reviewed(findings: Vec<Listed>) -> Reviewed {
        let guardian = Reviewer {
            archetype: "guardian".to_owned(),
            verdict: Some(Verdict::Rejected),
            findings: 1,
            left_out: 0,
            missed: 0,
            missed_why: String::new(),
            agent: String::new(),
            player: None,
            tokens: crate::event::Tokens::default(),
            cost: crate::model::Money::ZERO,
        };
        Reviewed {
            subject: Subject { kind: SubjectKind::PullRequest, name: "7".to_owned(), key: "pr:7".to_owned() },
            title: String::new(),
            base: Oid::default(),
            commit: Oid::default(),
            files: 1,
            added: 1,
            deleted: 0,
            parts: Vec::new(),
            parts_done: 0,
            summarised: 0,
            verify: false,
            reviewers: vec![guardian],
            findings,
            resolved: Vec::new(),
            compared: false,
            outcome: None,
        }
    }

    fn thread(fingerprint: &str) -> ThreadFacts {
        ThreadFacts {
            fingerprint: fingerprint.to_owned(),
            raised_by: vec!["guardian".to_owned()],
            file: "a.rs".to_owned(),
            line_changed: true,
            ..ThreadFacts::default()
        }
    }

    fn facts(threads: Vec<ThreadFacts>) -> RequestFacts {
        let lines: BTreeSet<u32> = (1..=99).collect();
        let shown = BTreeMap::from([("a.rs".to_owned(), lines), ("gone.rs".to_owned(), BTreeSet::new())]);
        RequestFacts { threads, shown, has_summary: true, can_close: true, ..RequestFacts::default() }
    }

    fn actions(reviewed: &Reviewed, facts: &RequestFacts) -> Vec<ThreadAction> {
        thread_plan(reviewed, facts).actions
    }

    const POST: ThreadAction = ThreadAction::Post { finding: 0 };
    const PROPOSE: ThreadAction = ThreadAction::Propose { finding: 0 };

    fn leave(why: LeftAlone) -> ThreadAction {
        ThreadAction::Leave { thread: 0, why }
    }

    #[test]
    fn f_01_a_finding_without_a_thread_gets_one_at_its_line() {
        assert_eq!(actions(&reviewed(vec![listed("f", 3)]), &facts(vec![])), [POST]);
        assert_eq!(
            actions(&reviewed(vec![listed("f", 3), listed("g", 4)]), &facts(vec![thread("f")])),
            [leave(LeftAlone::Persistent), ThreadAction::Post { finding: 1 }]
        );
    }

    #[test]
    fn f_02_a_persistent_finding_is_not_posted_again() {
        let plan = thread_plan(&reviewed(vec![listed("f", 3)]), &facts(vec![thread("f")]));
        assert_eq!(plan.actions, [leave(LeftAlone::Persistent)]);
        assert!(!plan.has_news, "no new summary either");
        // A person who replied changes nothing about it.
        let replied = ThreadFacts { person_last: true, ..thread("f") };
        assert_eq!(
            actions(&reviewed(vec![listed("f", 3)]), &facts(vec![replied])),
            [leave(LeftAlone::Persistent)]
        );
    }

    #[test]
    fn f_03_a_finding_is_known_by_the_fingerprint_it_was_first_seen_with() {
        let renamed = Listed { known_as: "f".to_owned(), ..listed("other", 3) };
        assert_eq!(
            actions(&reviewed(vec![renamed]), &facts(vec![thread("f")])),
            [leave(LeftAlone::Persistent)]
        );
    }

    /// A thread whose finding is gone is closed under three conditions, and one that is missing keeps it open.
    #[test]
    fn f_04_a_resolved_finding_closes_its_thread_under_three_conditions() {
        let resolve = |reply, close| ThreadAction::Resolve { thread: 0, reply, close };
        let whole = reviewed(vec![]);
        let missed = {
            let mut missed = whole.clone();
            missed.reviewers[0].missed = 1;
            missed
        };
        let silent = {
            let mut silent = whole.clone();
            silent.reviewers[0].verdict = None;
            silent
        };
        let rows = [
            ("all three", whole.clone(), thread("f"), resolve(true, true)),
            (
                "line as it was",
                whole.clone(),
                ThreadFacts { line_changed: false, ..thread("f") },
                leave(LeftAlone::LineUnchanged),
            ),
            (
                "a person wrote last",
                whole.clone(),
                ThreadFacts { person_last: true, ..thread("f") },
                leave(LeftAlone::PersonLast),
            ),
            (
                "another archetype",
                whole.clone(),
                ThreadFacts { raised_by: vec!["sage".to_owned()], ..thread("f") },
                leave(LeftAlone::NotLookedAt),
            ),
            ("it missed a part", missed, thread("f"), leave(LeftAlone::NotLookedAt)),
            ("it never answered", silent, thread("f"), leave(LeftAlone::NotLookedAt)),
            (
                "not in the change",
                whole.clone(),
                ThreadFacts { file: "b.rs".to_owned(), ..thread("f") },
                leave(LeftAlone::NotLookedAt),
            ),
            (
                "the file is deleted",
                whole.clone(),
                ThreadFacts { file: "gone.rs".to_owned(), ..thread("f") },
                resolve(true, true),
            ),
            (
                "raised by the program",
                whole.clone(),
                ThreadFacts { raised_by: vec![PROGRAM.to_owned()], ..thread("f") },
                resolve(true, true),
            ),
            (
                "killed between reply and close",
                whole.clone(),
                ThreadFacts { last_word: Some(ThreadWord::Resolved), ..thread("f") },
                resolve(false, true),
            ),
            (
                "closed already",
                whole.clone(),
                ThreadFacts { closed: true, ..thread("f") },
                leave(LeftAlone::Done),
            ),
        ];
        for (name, reviewed, thread, expected) in rows {
            assert_eq!(actions(&reviewed, &facts(vec![thread])), [expected], "{name}");
        }
    }

    #[test]
    fn f_05_a_forge_that_can_not_close_gets_one_reply() {
        let asked = |last_word| {
            let facts = facts(vec![ThreadFacts { last_word, ..thread("f") }]);
            actions(&reviewed(vec![]), &RequestFacts { can_close: false, ..facts })
        };
        assert_eq!(asked(None), [ThreadAction::Resolve { thread: 0, reply: true, close: false }]);
        assert_eq!(asked(Some(ThreadWord::Resolved)), [leave(LeftAlone::Done)]);
        assert_eq!(
            asked(Some(ThreadWord::Back)),
            [ThreadAction::Resolve { thread: 0, reply: true, close: false }]
        );
    }

    #[test]
    fn f_06_a_regressed_finding_opens_its_thread_again() {
        let reopen = |reply, open| ThreadAction::Reopen { thread: 0, finding: 0, reply, open };
        let rows = [
            (true, Some(ThreadWord::Resolved), reopen(true, true)),
            // The program was killed between the reply and the request that opens it.
            (true, Some(ThreadWord::Back), reopen(false, true)),
            // The forge can't close, so it was only said.
            (false, Some(ThreadWord::Resolved), reopen(true, false)),
            (false, Some(ThreadWord::Back), leave(LeftAlone::Persistent)),
        ];
        for (closed, last_word, expected) in rows {
            let thread = ThreadFacts { closed, last_word, ..thread("f") };
            assert_eq!(
                actions(&reviewed(vec![listed("f", 3)]), &facts(vec![thread])),
                [expected],
                "{closed} {last_word:?}"
            );
        }
    }

    #[test]
    fn f_07_a_thread_that_a_person_resolved_is_left_alone_and_proposed_for_the_baseline() {
        let rows = [
            ("without a word of ours", ThreadFacts { closed: true, ..thread("f") }),
            (
                "by another account",
                ThreadFacts {
                    closed: true,
                    closed_by_other: true,
                    last_word: Some(ThreadWord::Resolved),
                    ..thread("f")
                },
            ),
            (
                "after a reply",
                ThreadFacts {
                    closed: true,
                    person_last: true,
                    last_word: Some(ThreadWord::Resolved),
                    ..thread("f")
                },
            ),
        ];
        for (name, thread) in rows {
            let plan = thread_plan(&reviewed(vec![listed("f", 3)]), &facts(vec![thread]));
            assert_eq!(plan.actions, [PROPOSE], "{name}");
            assert!(!plan.has_news, "{name}");
        }
    }

    #[test]
    fn f_08_a_thread_that_a_person_deleted_is_not_posted_again() {
        let mut facts = facts(vec![]);
        facts.posted.insert("f".to_owned());
        assert_eq!(actions(&reviewed(vec![listed("f", 3)]), &facts), [PROPOSE]);
        assert_eq!(actions(&reviewed(vec![listed("g", 3)]), &facts), [POST]);
    }

    #[test]
    fn f_09_what_is_accepted_or_does_not_count_is_neither_posted_nor_touched() {
        let rows = [
            (Standing::Accepted("known".to_owned()), LeftAlone::Accepted),
            (Standing::Unfounded(Unfounded::NoEvidence), LeftAlone::DoesNotCount),
            (Standing::Refuted, LeftAlone::DoesNotCount),
        ];
        for (standing, why) in rows {
            let reviewed = reviewed(vec![Listed { standing, ..listed("f", 3) }]);
            assert_eq!(actions(&reviewed, &facts(vec![])), []);
            assert_eq!(actions(&reviewed, &facts(vec![thread("f")])), [leave(why)]);
        }
    }

    #[test]
    fn f_10_twenty_at_most_and_the_rest_in_the_summary() {
        let many = reviewed((1..=25).map(|n| listed(&format!("f{n}"), n)).collect());
        let plan = thread_plan(&many, &facts(vec![]));
        assert_eq!(plan.actions.len(), THREADS_AT_MOST);
        let rest: Vec<(usize, OnlyInSummary)> = (20..25).map(|n| (n, OnlyInSummary::TooMany)).collect();
        assert_eq!(plan.only_in_summary, rest);
        // Threads that exist do not count: the rest gets its turn.
        let known = (1..=20).map(|n| thread(&format!("f{n}"))).collect();
        let posts = actions(&many, &facts(known)).into_iter();
        let posts: Vec<ThreadAction> =
            posts.filter(|action| matches!(action, ThreadAction::Post { .. })).collect();
        assert_eq!(posts.len(), 5);
    }

    #[test]
    fn f_11_a_finding_outside_of_the_diff_is_only_in_the_summary_and_once() {
        for outside in [listed("f", 100), listed("f", 0), Listed { file: String::new(), ..listed("f", 3) }] {
            let reviewed = reviewed(vec![outside]);
            let mut facts = facts(vec![]);
            let plan = thread_plan(&reviewed, &facts);
            assert_eq!(plan.only_in_summary, [(0, OnlyInSummary::OutsideDiff)]);
            assert!(plan.has_news && plan.actions.is_empty());
            facts.summarised.insert("f".to_owned());
            assert!(!thread_plan(&reviewed, &facts).has_news, "it was in a summary before");
        }
    }

    #[test]
    fn f_12_a_first_review_is_posted_even_if_it_found_nothing() {
        let nothing = reviewed(vec![]);
        let first = RequestFacts { has_summary: false, ..facts(vec![]) };
        assert!(thread_plan(&nothing, &first).has_news);
        assert!(!thread_plan(&nothing, &facts(vec![])).has_news);
    }

    #[test]
    fn f_13_two_threads_about_a_finding_are_not_both_answered() {
        let closed = ThreadFacts { closed: true, last_word: Some(ThreadWord::Resolved), ..thread("f") };
        let plan = actions(&reviewed(vec![listed("f", 3)]), &facts(vec![thread("f"), closed]));
        let duplicate = ThreadAction::Leave { thread: 1, why: LeftAlone::Duplicate };
        assert_eq!(plan, [duplicate, leave(LeftAlone::Persistent)]);
    }

    #[test]
    fn f_15_a_finding_whose_line_the_forge_refused_is_in_the_summary_and_not_tried_again() {
        let reviewed = reviewed(vec![listed("f", 3), listed("g", 4)]);
        let mut facts = RequestFacts { refused: BTreeSet::from(["f".to_owned()]), ..facts(vec![]) };
        let plan = thread_plan(&reviewed, &facts);
        assert_eq!(plan.actions, [ThreadAction::Post { finding: 1 }]);
        assert_eq!(plan.only_in_summary, [(0, OnlyInSummary::Refused)]);
        facts.summarised.insert("f".to_owned());
        facts.threads.push(thread("g"));
        let plan = thread_plan(&reviewed, &facts);
        assert!(
            plan.actions == [ThreadAction::Leave { thread: 0, why: LeftAlone::Persistent }] && !plan.has_news
        );
    }
}
