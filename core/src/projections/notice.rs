//! A message to a person who does not look: what `status` lists as waiting, short enough to leave the machine.

use serde::Serialize;

use super::inbox::InboxItem;
use crate::model::named::named;
use crate::model::{Reason, RunStatus, Seq, counted};
use crate::rules::signs::credential;
use crate::run::Run;
use crate::sprint::Sprint;
use crate::sprint::event::SprintStop;
use crate::sprint::queue::ItemStatus;
use crate::text::{shell_word, short_line};

/// The most characters of a question that leave the machine.
const QUESTION: usize = 200;
/// Names and commands have a bound, too.
const LINE: usize = 400;

named! {
    /// What a message is about, in the words of `notify.on`.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
    #[serde(rename_all = "snake_case")]
    pub enum NoticeEvent {
        /// A question is open, a change waits to be merged, or a review has findings.
        Decision = "decision",
        /// A run or a sprint stopped without a result: a Wiggum Break, failed agents, failed tests, a fault.
        Break = "break",
        Budget = "budget",
        SprintDone = "sprint_done",
        /// Somebody tries the channels.
        Test = "test",
    }
}

/// One message. Nothing in it drives a terminal or hides from its reader.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Notice {
    pub event: NoticeEvent,
    pub title: String,
    /// The id of the run or sprint.
    pub run: String,
    pub repository: String,
    pub question: String,
    /// The command to type, from anywhere.
    pub command: String,
    /// The line of the journal that it is about: another line, another message.
    #[serde(skip)]
    pub line: Seq,
}

impl Notice {
    /// Nothing, if the run needs nobody: it works, is merged, or was stopped or paused by a person.
    pub fn of_run(item: &InboxItem, run: &Run) -> Option<Notice> {
        let asks = run.question().is_some();
        let event = match &run.outcome {
            _ if !item.waiting => return None,
            None if asks => NoticeEvent::Decision,
            None => return None,
            Some(outcome) if outcome.reason == Reason::Budget => NoticeEvent::Budget,
            Some(outcome) => match outcome.status {
                RunStatus::AwaitingMerge | RunStatus::AwaitingAnswer | RunStatus::Reviewed => {
                    NoticeEvent::Decision
                }
                RunStatus::Stopped | RunStatus::Failed | RunStatus::WiggumBreak if asks => {
                    NoticeEvent::Decision
                }
                RunStatus::Stopped
                | RunStatus::Failed
                | RunStatus::WiggumBreak
                | RunStatus::Merged
                | RunStatus::DryRun => NoticeEvent::Break,
            },
        };
        let what = match event {
            NoticeEvent::Decision => "Decision needed",
            NoticeEvent::Budget => "Budget used up",
            NoticeEvent::Break | NoticeEvent::SprintDone | NoticeEvent::Test => "Run stopped",
        };
        let about = About { id: &item.run_id, place: &item.repository, command: &item.next };
        Some(about.notice(event, what, &item.detail, run.decision_line()))
    }

    /// A fault stopped the process that drove a run, so nobody drives it. `item` is the run as interrupted.
    pub fn of_fault(item: &InboxItem, run: &Run, why: &str) -> Notice {
        let about = About { id: &item.run_id, place: &item.repository, command: &item.next };
        about.notice(NoticeEvent::Break, "Run interrupted", why, run.lines)
    }

    /// The end of a sprint; nothing if it goes on, or a person ended it.
    pub fn of_sprint_end(sprint: &Sprint, id: &str, place: &str) -> Option<Notice> {
        let (why, detail) = sprint.end.as_ref()?;
        let (event, what) = match why {
            SprintStop::Done => (NoticeEvent::SprintDone, "Sprint done"),
            SprintStop::Budget => (NoticeEvent::Budget, "Sprint stopped: budget used up"),
            SprintStop::TaskFailures | SprintStop::Quality => (NoticeEvent::Break, "Sprint stopped"),
            SprintStop::Declined => return None,
        };
        let count = |status: ItemStatus| {
            let taken = sprint.items.values().filter(|known| known.item.status == status);
            (taken.count() as u64, status.name())
        };
        let counts = [ItemStatus::Completed, ItemStatus::Failed, ItemStatus::Blocked, ItemStatus::Pending]
            .map(count)
            .into_iter()
            .filter(|(n, _)| *n > 0)
            .map(|(n, name)| format!("{n} {name}"))
            .collect::<Vec<_>>()
            .join(", ");
        let detail = [counts.as_str(), detail.as_str()].into_iter().filter(|text| !text.is_empty());
        let detail = detail.collect::<Vec<_>>().join(": ");
        let command = format!("archeflow sprint report {id} --root {}", shell_word(place));
        let about = About { id, place, command: &command };
        Some(about.notice(event, what, &detail, sprint.lines))
    }

    /// A sprint asks at its terminal whether these items may begin.
    pub fn of_batch(items: &[String], id: &str, place: &str, line: Seq) -> Notice {
        let n = u32::try_from(items.len()).unwrap_or(u32::MAX);
        let detail = format!("Let {} run? {}", counted(n, "item"), items.join(", "));
        let about = About { id, place, command: "Answer in the terminal of the sprint" };
        about.notice(NoticeEvent::Decision, "Decision needed", &detail, line)
    }

    /// To try a channel.
    pub fn test() -> Notice {
        let about = About { id: "test", place: "", command: "archeflow notify test" };
        let mut notice = about.notice(NoticeEvent::Test, "", "archeflow can reach you this way.", 0);
        notice.title = "archeflow: test message".to_owned();
        notice
    }

    /// What people read: the question, and below it the command.
    pub fn body(&self) -> String {
        format!("{}\n{}", self.question, self.command)
    }
}

struct About<'a> {
    id: &'a str,
    place: &'a str,
    command: &'a str,
}

impl About<'_> {
    fn notice(&self, event: NoticeEvent, what: &str, detail: &str, line: Seq) -> Notice {
        let question = match credential(detail) {
            None => short_line(detail, QUESTION),
            Some(kind) => format!("Not sent, because it seems to hold a {kind}: look at the run."),
        };
        let run = short_line(self.id, LINE);
        Notice {
            event,
            title: format!("archeflow: {what} ({run})"),
            run,
            repository: short_line(self.place, LINE),
            question,
            command: short_line(self.command, LINE),
            line,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{Order, QuestionAsked, QuestionKind};
    use crate::model::Outcome;
    use crate::projections::inbox::InboxRun;

    fn notice(run: &Run) -> Option<Notice> {
        let found =
            InboxRun { run_id: "r", name: "r", repository: "/a b", here: false, interrupted: false, run };
        InboxItem::of(found).and_then(|item| Notice::of_run(&item, run))
    }

    fn outcome(status: RunStatus, reason: Reason, detail: &str) -> Outcome {
        Outcome { status, reason, detail: detail.to_owned() }
    }

    fn ended(status: RunStatus, reason: Reason) -> Run {
        let mut run = Run::default();
        (run.outcome, run.lines) = (Some(outcome(status, reason, "why")), 7);
        run
    }

    fn asking(question: &str) -> Run {
        let asked = QuestionAsked {
            kind: QuestionKind::NeedsContext,
            archetype: String::new(),
            question: question.to_owned(),
            details: Vec::new(),
            unanswered: outcome(RunStatus::AwaitingAnswer, Reason::NeedsContext, ""),
        };
        let mut run = Run::default();
        run.lines = 9;
        run.open.insert(5, Order::QuestionAsked(Box::new(asked)));
        run
    }

    #[test]
    fn notify_only_about_what_needs_a_person() {
        use NoticeEvent::{Break, Budget, Decision};
        let rows = [
            (RunStatus::AwaitingMerge, Reason::Approved, Some((Decision, 7))),
            (RunStatus::AwaitingAnswer, Reason::NeedsContext, Some((Decision, 7))),
            (RunStatus::Reviewed, Reason::FindingsOpen, Some((Decision, 7))),
            (RunStatus::WiggumBreak, Reason::Oscillation, Some((Break, 7))),
            (RunStatus::Failed, Reason::AgentFailures, Some((Break, 7))),
            (RunStatus::Stopped, Reason::MaxCycles, Some((Break, 7))),
            (RunStatus::Stopped, Reason::Budget, Some((Budget, 7))),
            (RunStatus::Merged, Reason::Approved, None),
            (RunStatus::Reviewed, Reason::Approved, None),
            (RunStatus::DryRun, Reason::DryRun, None),
            (RunStatus::Stopped, Reason::Discarded, None),
        ];
        for (status, reason, expected) in rows {
            let sent = notice(&ended(status, reason)).map(|notice| (notice.event, notice.line));
            assert_eq!(sent, expected, "{status:?} {reason:?}");
        }
        assert_eq!(notice(&Run::default()), None, "it works");
        let mut paused = Run::default();
        paused.paused = Some("socket".to_owned());
        assert_eq!(notice(&paused), None, "who paused it knows");
        let asks = notice(&asking("Which one?"));
        let asks = asks.map(|one| (one.event, one.line, one.question, one.command));
        let command = "archeflow answer r \"…\" --repo '/a b'".to_owned();
        assert_eq!(asks, Some((Decision, 5, "Which one?".to_owned(), command)));
    }

    #[test]
    fn notify_nothing_hostile_and_nothing_secret_leaves_the_machine() {
        let hidden = "a\u{1b}]0;x\u{7}\u{202e}b\u{200b}\n\u{9b}31mc\t$(d)";
        let token = format!("use {}_{}", "ghp", "16C7e42F292c6912E7710c838347Ae178B4a");
        let secret = "Not sent, because it seems to hold a forge token: look at the run.";
        let rows = [(hidden, "a]0;xb 31mc $(d)".to_owned()), (token.as_str(), secret.to_owned())];
        for (question, expected) in rows {
            let sent = notice(&asking(question)).map(|notice| notice.question);
            assert_eq!(sent, Some(expected), "{question:?}");
        }
        let long = notice(&asking(&"ä".repeat(900))).map(|notice| notice.question).unwrap_or_default();
        assert_eq!((long.chars().count(), long.ends_with('…')), (200, true));
    }
}
