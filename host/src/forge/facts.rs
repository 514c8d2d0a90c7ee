//! What the rules need of a request: the threads that are ours, what became of them, and what was posted.

use std::collections::{BTreeMap, BTreeSet};

use archeflow_core::strategies::review::{RequestFacts, ThreadFacts};

use super::{ForgeThread, PostRecord, RequestState, marks};
use crate::git::diff_lines::{ShownFile, lines_gone};
use crate::git::{ObjectId, Repo};

/// The facts, and which thread of the forge each of them is about.
#[derive(Debug, Clone, Default)]
pub struct OwnThreads {
    pub facts: RequestFacts,
    pub threads: Vec<usize>,
    /// Reviews whose summary the forge has.
    pub summaries: BTreeSet<String>,
}

/// The lines that went since a commit, by commit; nothing if it is not here.
type Gone = BTreeMap<String, Option<BTreeMap<String, BTreeSet<u32>>>>;

impl OwnThreads {
    pub fn read(
        state: &RequestState,
        repo: &Repo,
        shown: &BTreeMap<String, ShownFile>,
        record: &PostRecord,
    ) -> OwnThreads {
        let mut own = OwnThreads::default();
        let mut gone = Gone::new();
        for (at, thread) in state.threads.iter().enumerate() {
            let Some(mut facts) = facts_of(thread) else { continue };
            facts.line_changed = is_changed(thread, &state.view.head, repo, &mut gone);
            own.facts.threads.push(facts);
            own.threads.push(at);
        }
        for summary in state.summaries.iter().filter_map(|body| marks::summary(body)) {
            own.facts.summarised.extend(summary.listed);
            own.facts.refused.extend(summary.refused);
            own.summaries.insert(summary.run_id);
        }
        own.facts.has_summary = !own.summaries.is_empty();
        own.facts.can_close = state.can_close;
        own.facts.posted = record.posted().clone();
        let lines = |file: &ShownFile| file.lines.keys().copied().collect();
        own.facts.shown = shown.iter().map(|(path, file)| (path.clone(), lines(file))).collect();
        own
    }
}

/// A thread that this account began and whose marker names a finding. Anybody can write a marker, so one in another's
/// comment says nothing.
fn facts_of(thread: &ForgeThread) -> Option<ThreadFacts> {
    let opening = thread.comments.first().filter(|comment| comment.is_own)?;
    let (fingerprint, raised_by) = marks::finding(&opening.body)?;
    let own = |body: &str| marks::finding(body).is_some() || marks::reply(body).is_some();
    let replies = thread.comments.iter().filter(|comment| comment.is_own);
    Some(ThreadFacts {
        fingerprint,
        raised_by,
        file: archeflow_core::text::quote_path(thread.file.as_bytes()),
        closed: thread.is_closed,
        closed_by_other: thread.closed_by_other,
        last_word: replies.filter_map(|comment| marks::reply(&comment.body)).next_back(),
        person_last: thread.comments.last().is_some_and(|last| !last.is_own || !own(&last.body)),
        line_changed: false,
    })
}

/// By comparing with the commit that the thread was begun at; if that is not here, the forge's own word.
fn is_changed(thread: &ForgeThread, head: &str, repo: &Repo, gone: &mut Gone) -> bool {
    let (began_at, line) = &thread.began_at;
    let known = gone.entry(began_at.clone()).or_insert_with(|| {
        let (from, to) = (parse(repo, began_at)?, parse(repo, head)?);
        lines_gone(repo, &from, &to).ok()
    });
    let path = archeflow_core::text::quote_path(thread.file.as_bytes());
    match known {
        Some(gone) if *line > 0 => gone.get(&path).is_some_and(|lines| lines.contains(line)),
        Some(_) | None => thread.is_outdated,
    }
}

fn parse(repo: &Repo, commit: &str) -> Option<ObjectId> {
    let commit = ObjectId::parse(commit.as_bytes()).ok()?;
    repo.has_commit(&commit).ok()?.then_some(commit)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::forge::ForgeComment;
    use archeflow_core::strategies::review::ThreadWord;

    fn comment(body: &str, is_own: bool) -> ForgeComment {
        ForgeComment { body: body.to_owned(), is_own }
    }

    #[test]
    fn f_26_only_threads_that_this_account_began_are_ours() {
        let begun = marks::comment_marker("f1", &["guardian".to_owned()]);
        let resolved = marks::reply_marker(ThreadWord::Resolved, "f1");
        let thread = |comments: Vec<ForgeComment>| ForgeThread { comments, ..ForgeThread::default() };
        let facts = |comments| facts_of(&thread(comments));
        assert_eq!(facts(vec![]), None);
        assert_eq!(facts(vec![comment(&begun, false)]), None, "a marker of another account");
        assert_eq!(facts(vec![comment("by hand", true), comment(&begun, true)]), None);
        let rows = [
            (vec![comment(&begun, true)], None, false),
            (vec![comment(&begun, true), comment("no", false)], None, true),
            // The same account is used by a person as well.
            (vec![comment(&begun, true), comment("no", true)], None, true),
            (vec![comment(&begun, true), comment(&resolved, true)], Some(ThreadWord::Resolved), false),
            (vec![comment(&begun, true), comment(&resolved, false)], None, true),
        ];
        for (comments, last_word, person_last) in rows {
            let shown = format!("{comments:?}");
            let known = facts(comments).map(|facts| (facts.fingerprint, facts.last_word, facts.person_last));
            assert_eq!(known, Some(("f1".to_owned(), last_word, person_last)), "{shown}");
        }
    }
}
