//! Posts the result of a review, one request at a time. Each is recorded before and after it is sent; what a killed
//! session had sent is found on the forge by its marker, so it is not in the next posting.

use super::connection::{Connection, ForgeError};
use super::{CheckDraft, CommentDraft, ForgeRequest, PostRecord, ReplyDraft, RequestState};
use crate::failpoint;
use archeflow_core::text::log_line;

/// Everything that is to be posted.
#[derive(Debug, Clone)]
pub struct Posting {
    pub run_id: String,
    /// `None` if nothing is new, or it is there already.
    pub summary: Option<String>,
    pub comments: Vec<CommentDraft>,
    pub replies: Vec<ReplyDraft>,
    pub check: CheckDraft,
    pub sarif: Vec<u8>,
}

/// What was posted, and what the forge did not take.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PostResult {
    pub comments: usize,
    pub replies: usize,
    pub closed: usize,
    pub reopened: usize,
    pub notes: Vec<String>,
}

/// Who sends, and what it is about.
struct Poster<'a> {
    connection: &'a mut Connection,
    record: &'a mut PostRecord,
    run_id: &'a str,
}

impl Poster<'_> {
    /// One step, once.
    fn step(&mut self, step: &str, request: &ForgeRequest, posted: &[String]) -> Result<bool, ForgeError> {
        if self.record.is_done(self.run_id, step) {
            return Ok(false);
        }
        if self.connection.is_dry() {
            return self.connection.ask(request).map(|_| true);
        }
        self.record.begin(self.run_id, step)?;
        failpoint::pass("forge.begun");
        self.connection.ask(request)?;
        failpoint::pass("forge.sent");
        self.record.end(self.run_id, step, posted)?;
        Ok(true)
    }
}

/// Posts it. An error leaves what was posted before it, and posting again goes on from there. A forge that takes no comment
/// at some line gets no summary yet: [`ForgeError::Lines`] says which findings that one has to list.
pub fn post(
    connection: &mut Connection,
    record: &mut PostRecord,
    state: &RequestState,
    posting: &Posting,
) -> Result<PostResult, ForgeError> {
    let forge = connection.forge();
    let view = &state.view;
    let mut result = PostResult::default();
    let mut poster = Poster { connection, record, run_id: &posting.run_id };
    let requests = forge.review(view, posting.summary.as_deref(), &posting.comments);
    let last = requests.len().saturating_sub(1);
    let (mut without, mut why) = (Vec::new(), String::new());
    for (at, (fingerprints, request)) in requests.iter().enumerate() {
        let is_summary = at == last && posting.summary.is_some();
        if is_summary && !without.is_empty() {
            break;
        }
        let step =
            if is_summary { "summary".to_owned() } else { format!("comment:{}", fingerprints.join(",")) };
        match poster.step(&step, request, fingerprints) {
            Ok(was_sent) => result.comments += if was_sent { fingerprints.len() } else { 0 },
            Err(error) if !fingerprints.is_empty() && is_about_content(&error) => {
                without.extend(fingerprints.iter().cloned());
                why = error.to_string();
            }
            Err(error) => return Err(error),
        }
    }
    if !without.is_empty() {
        return Err(ForgeError::Lines { fingerprints: without, why });
    }
    for reply in &posting.replies {
        let Some(thread) = state.threads.get(reply.thread) else { continue };
        if let Some(body) = &reply.body {
            let step = format!("{}:{}", reply.word.name(), thread.id);
            result.replies += usize::from(poster.step(&step, &forge.reply(view, thread, body), &[])?);
        }
        let Some((close, request)) =
            reply.close.and_then(|close| Some((close, forge.close(view, thread, close)?)))
        else {
            continue;
        };
        match poster.connection.ask(&request) {
            Ok(_) => *(if close { &mut result.closed } else { &mut result.reopened }) += 1,
            // GraphQL refuses with 200. One note is enough: what a token may not do, it may not do for the next thread.
            Err(error) if matches!(error.status(), Some(200 | 403 | 404)) => {
                let said = format!(
                    "a thread was not resolved or opened again: {}",
                    log_line(&error.to_string(), 300)
                );
                if !result.notes.iter().any(|note| note.starts_with("a thread ")) {
                    result.notes.push(said);
                }
            }
            Err(error) => return Err(error),
        }
    }
    let checked = poster.connection.with(|ask| forge.check(view, &posting.check, ask));
    if let Err(error) = checked {
        refused(&mut result, "the check was not published", error)?;
    }
    if let Some(request) = forge.sarif(view, &posting.sarif)
        && let Err(error) = poster.step("sarif", &request, &[])
    {
        refused(&mut result, "code scanning did not take the SARIF", error)?;
    }
    Ok(result)
}

/// The forge understood the request, did nothing, and has something against what it says: for comments, most likely a line
/// that it does not show.
fn is_about_content(error: &ForgeError) -> bool {
    matches!(error.status(), Some(400 | 422))
}

/// A token need not be allowed everything, and not every repository has code scanning.
fn refused(result: &mut PostResult, what: &str, error: ForgeError) -> Result<(), ForgeError> {
    if !matches!(error.status(), Some(403 | 404)) {
        return Err(error);
    }
    result.notes.push(format!("{what}: {}", log_line(&error.to_string(), 300)));
    Ok(())
}
