//! Pull requests on GitHub, GitLab, Gitea and Forgejo (docs/pull-requests.md): what is there, and what a review or a run
//! puts there.
//!
//! A forge builds requests as values and reads answers; [`Connection`] is the only place that sends them. What to do about
//! threads is decided by [`archeflow_core::strategies::review::thread_plan`]. Nothing here decides, and nothing here is
//! called while agents run: they never come near a token.

mod connection;
mod facts;
mod gitea;
mod github;
mod gitlab;
mod marks;
mod opening;
mod post;
mod record;
mod remote;
mod token;

use archeflow_core::strategies::review::ThreadWord;
use serde_json::Value;

use crate::git::subject::PullRequestFacts;

pub use connection::{Connection, ForgeError, SentRequest};
pub use facts::OwnThreads;
pub use marks::{comment_marker, reply_marker, summary_marker};
pub use opening::{Opening, branch_on_forge, open_request, push_branch};
pub use post::{PostResult, Posting, post};
pub use record::PostRecord;
pub use remote::{ForgeAddress, ForgeKind};

/// One request to a forge, without its token.
#[derive(Debug, Clone, PartialEq)]
pub struct ForgeRequest {
    pub method: &'static str,
    /// From the root of the server, with its query.
    pub path: String,
    pub body: Option<Value>,
    /// It only reads, although GraphQL asks by POST.
    pub reads: bool,
}

impl ForgeRequest {
    fn get(path: String) -> ForgeRequest {
        ForgeRequest { method: "GET", path, body: None, reads: true }
    }

    fn send(method: &'static str, path: String, body: Value) -> ForgeRequest {
        ForgeRequest { method, path, body: Some(body), reads: false }
    }
}

/// Sends a request and gives its answer.
pub(crate) type Ask<'a> = &'a mut dyn FnMut(&ForgeRequest) -> Result<Value, ForgeError>;

/// A pull or merge request as the forge has it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RequestView {
    pub number: u32,
    pub title: String,
    pub body: String,
    /// The commit it proposes.
    pub head: String,
    /// The commit it is compared with.
    pub base: String,
    pub base_branch: String,
    pub is_open: bool,
    /// The address for people.
    pub url: String,
    /// GitLab's third commit: where the target branch was.
    start: String,
}

impl RequestView {
    /// What a review of it begins with.
    pub fn facts(&self, kind: ForgeKind) -> PullRequestFacts {
        let fetch = match kind {
            ForgeKind::Gitlab => format!("origin merge-requests/{}/head", self.number),
            ForgeKind::Github | ForgeKind::Gitea | ForgeKind::Forgejo => {
                format!("origin pull/{}/head", self.number)
            }
        };
        PullRequestFacts {
            title: self.title.clone(),
            body: self.body.clone(),
            base: self.base.clone(),
            head: self.head.clone(),
            base_branch: self.base_branch.clone(),
            fetch,
        }
    }
}

/// A thread as the forge has it, ours or not.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ForgeThread {
    /// What requests about it name.
    pub id: String,
    pub file: String,
    pub line: u32,
    /// The commit and the line it was begun at.
    pub began_at: (String, u32),
    /// The forge itself says that the line has changed.
    pub is_outdated: bool,
    pub is_closed: bool,
    pub closed_by_other: bool,
    pub comments: Vec<ForgeComment>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ForgeComment {
    pub body: String,
    /// The account of the token wrote it.
    pub is_own: bool,
}

/// Everything about a request that a decision needs.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RequestState {
    pub view: RequestView,
    pub threads: Vec<ForgeThread>,
    /// Comments of this account on the request as a whole.
    pub summaries: Vec<String>,
    /// The forge can resolve threads by a request.
    pub can_close: bool,
}

/// A comment at a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommentDraft {
    pub fingerprint: String,
    pub path: String,
    /// The name before the change, if it is another.
    pub old_path: String,
    pub line: u32,
    /// The number of the same line before the change; none if it is added.
    pub old_line: Option<u32>,
    pub body: String,
}

/// A note of a check at a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckNote {
    pub path: String,
    pub line: u32,
    /// `failure`, `warning` or `notice`.
    pub level: &'static str,
    pub title: String,
    pub message: String,
}

/// The result of a review as a check of a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckDraft {
    pub run_id: String,
    pub passed: bool,
    pub title: String,
    pub summary: String,
    pub notes: Vec<CheckNote>,
}

/// A request to be opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestDraft {
    pub branch: String,
    pub base: String,
    pub title: String,
    pub body: String,
    pub is_draft: bool,
}

/// A reply to a thread of ours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplyDraft {
    /// Among the threads of the state.
    pub thread: usize,
    pub word: ThreadWord,
    /// Nothing if it was said before.
    pub body: Option<String>,
    /// What becomes of the thread; nothing if it stays as it is.
    pub close: Option<bool>,
}

/// What differs between forges: the form of requests and of answers.
pub(crate) trait Forge {
    /// Reads a request.
    fn view(&self, number: u32, ask: Ask<'_>) -> Result<RequestView, ForgeError>;
    /// Reads a request with its threads and our summaries.
    fn state(&self, number: u32, ask: Ask<'_>) -> Result<RequestState, ForgeError>;
    /// Posts comments and a summary, in as few requests as the forge allows. Each comes with the fingerprints it posts.
    fn review(
        &self,
        view: &RequestView,
        summary: Option<&str>,
        comments: &[CommentDraft],
    ) -> Vec<(Vec<String>, ForgeRequest)>;
    fn reply(&self, view: &RequestView, thread: &ForgeThread, body: &str) -> ForgeRequest;
    /// Resolves a thread, or opens it again; nothing if this forge can't.
    fn close(&self, view: &RequestView, thread: &ForgeThread, close: bool) -> Option<ForgeRequest>;
    /// Publishes the result at the commit.
    fn check(&self, view: &RequestView, check: &CheckDraft, ask: Ask<'_>) -> Result<(), ForgeError>;
    /// Uploads SARIF, where the forge takes it.
    fn sarif(&self, view: &RequestView, sarif: &[u8]) -> Option<ForgeRequest>;
    /// The commit that a branch is at on the forge.
    fn branch(&self, name: &str, ask: Ask<'_>) -> Result<Option<String>, ForgeError>;
    /// The open request of a branch.
    fn request_of(&self, branch: &str, ask: Ask<'_>) -> Result<Option<RequestView>, ForgeError>;
    fn open(&self, draft: &RequestDraft) -> ForgeRequest;
    /// The address and number in the answer to [`Forge::open`].
    fn opened(&self, answer: &Value) -> Option<RequestView>;
}

/// One path segment of an address.
fn segment(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~') {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

/// A text in an answer, by the names that lead to it; empty if it is missing.
fn text_at(value: &Value, path: &[&str]) -> String {
    let found = path.iter().try_fold(value, |value, name| value.get(name));
    found.and_then(Value::as_str).unwrap_or_default().to_owned()
}

fn number_at(value: &Value, path: &[&str]) -> u32 {
    let found = path.iter().try_fold(value, |value, name| value.get(name)).and_then(Value::as_u64);
    found.and_then(|number| u32::try_from(number).ok()).unwrap_or(0)
}

/// Entries asked for in one request. A server may give fewer, so only an empty page is the last.
const PAGE: usize = 100;
/// More pages than a request of people has.
const PAGES: usize = 100;

/// All entries of a list that comes in pages.
fn all_pages(path: &str, query: &str, ask: Ask<'_>) -> Result<Vec<Value>, ForgeError> {
    let mut all = Vec::new();
    for page in 1..=PAGES {
        let request = ForgeRequest::get(format!("{path}?{query}={PAGE}&page={page}"));
        let answer = ask(&request)?;
        let Value::Array(entries) = answer else { return Err(ForgeError::nonsense(&request, "no list")) };
        if entries.is_empty() {
            return Ok(all);
        }
        all.extend(entries);
    }
    let request = ForgeRequest::get(path.to_owned());
    Err(ForgeError::nonsense(&request, "it never ends"))
}
