//! The thread that decides, with times given to it and channels that only count.

#![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

use archeflow_core::rules::notifying::{AGAIN_MS, THERE_MS};
use tempfile::TempDir;

use super::*;
use crate::store::presence::Presence;

const NOW: u64 = 1_800_000_000_000;

struct Counting {
    desk: Desk,
    sent: Receiver<Delivery>,
    dir: TempDir,
}

impl Counting {
    fn new(acted_at: Option<u64>) -> Counting {
        let dir = tempfile::tempdir().unwrap();
        let (desk, sent) = desk(&dir, acted_at);
        Counting { desk, sent, dir }
    }

    /// Another process with the same state folder.
    fn again(self) -> Counting {
        let (desk, sent) = desk(&self.dir, None);
        Counting { desk, sent, dir: self.dir }
    }

    fn opens(&mut self, line: Seq, still: Option<Still>) {
        let mut notice = Notice::test();
        notice.line = line;
        let watched = vec![Watched::run(Path::new("/repo"), "r"), Watched::Inbox];
        let notice = OpenNotice { notice, subject: subject(), watched, still, sent_at: None };
        self.desk.hear(Post::Open(Box::new(notice)), NOW);
    }

    /// How many messages are sent at this moment; all of them arrive.
    fn at(&mut self, after: u64) -> usize {
        self.desk.look(NOW + after);
        let sent: Vec<Delivery> = self.sent.try_iter().collect();
        for delivery in &sent {
            self.answers(delivery.line, after, Ok(()));
        }
        sent.len()
    }

    fn answers(&mut self, line: Seq, after: u64, result: Result<(), String>) {
        self.desk.hear(Post::Delivered { channel: "command", subject: subject(), line, result }, NOW + after);
    }

    fn troubles(&self) -> usize {
        lock(&self.desk.troubles).len()
    }
}

fn subject() -> Subject {
    ("/repo".into(), "r".to_owned())
}

fn desk(dir: &TempDir, acted_at: Option<u64>) -> (Desk, Receiver<Delivery>) {
    let (send, sent) = channel();
    let desk = Desk {
        state: dir.path().to_owned(),
        link: None,
        queues: vec![("command", send)],
        open: Vec::new(),
        on_their_way: 0,
        acted_at,
        failed: BTreeSet::new(),
        troubles: Troubles::default(),
    };
    (desk, sent)
}

#[test]
fn notify_once_and_again_after_an_hour_while_it_waits() {
    let mut counting = Counting::new(None);
    counting.opens(4, None);
    assert_eq!([0, 1, AGAIN_MS - 1, AGAIN_MS, AGAIN_MS + 1].map(|at| counting.at(at)), [1, 0, 0, 1, 0]);
    counting.opens(4, None);
    assert_eq!(counting.at(AGAIN_MS + 2), 0, "the same question");
    counting.opens(9, None);
    assert_eq!(counting.at(AGAIN_MS + 3), 1, "another one");
    counting.desk.hear(Post::Closed(subject()), NOW);
    assert_eq!(counting.at(AGAIN_MS * 9), 0, "it is answered");
}

#[test]
fn notify_a_resumed_run_repeats_nothing_within_the_hour() {
    let mut counting = Counting::new(None);
    counting.opens(4, None);
    assert_eq!(counting.at(0), 1);
    let mut resumed = counting.again();
    resumed.opens(4, None);
    assert_eq!([1, AGAIN_MS - 1, AGAIN_MS].map(|at| resumed.at(at)), [0, 0, 1]);
}

#[test]
fn notify_what_no_channel_took_is_tried_by_the_next_process() {
    let mut counting = Counting::new(None);
    counting.opens(4, None);
    counting.desk.look(NOW);
    assert_eq!(counting.sent.try_iter().count(), 1);
    counting.answers(4, 0, Err("no".to_owned()));
    assert_eq!((counting.at(1), counting.troubles()), (0, 1), "not at once again");
    counting.answers(4, 1, Err("no".to_owned()));
    assert_eq!(counting.troubles(), 1, "reported once");
    let mut resumed = counting.again();
    resumed.opens(4, None);
    assert_eq!(resumed.at(2), 1);
}

#[test]
fn notify_nothing_while_somebody_watches() {
    for subject in [Watched::run(Path::new("/repo"), "r"), Watched::Inbox] {
        let mut counting = Counting::new(None);
        let watcher = Presence::hold(counting.dir.path(), &subject).unwrap();
        counting.opens(4, None);
        assert_eq!((counting.at(0), counting.at(AGAIN_MS * 2)), (0, 0), "{subject:?}");
        drop(watcher);
        assert_eq!(counting.at(AGAIN_MS * 2 + 1), 1, "it still waits when they leave");
    }
}

#[test]
fn notify_a_person_at_the_terminal_has_a_minute() {
    let mut counting = Counting::new(Some(NOW));
    counting.opens(4, None);
    assert_eq!(counting.at(THERE_MS - 1), 0);
    counting.desk.hear(Post::Acted, NOW + THERE_MS - 1);
    assert_eq!([THERE_MS, 2 * THERE_MS - 2, 2 * THERE_MS - 1].map(|at| counting.at(at)), [0, 0, 1]);
}

#[test]
fn notify_what_others_answered_is_not_sent() {
    let mut counting = Counting::new(None);
    counting.opens(4, Some(Box::new(|| false)));
    assert_eq!((counting.at(0), counting.desk.open.len()), (0, 0));
}
