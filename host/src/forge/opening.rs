//! Opens a request for a branch. The branch has to be on the forge; pushing it is a step that a person asks for.

use super::connection::{Connection, ForgeError};
use super::remote::REMOTE;
use super::{RequestDraft, RequestView};
use crate::failpoint;
use crate::git::remote::{push, said};
use crate::git::{ObjectId, Repo};

/// What became of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Opening {
    /// The branch has a request already, which is left as it is.
    Exists(RequestView),
    Opened(RequestView),
    /// Only collected.
    Dry,
}

/// The commit that a branch is at on the forge.
pub fn branch_on_forge(connection: &mut Connection, branch: &str) -> Result<Option<String>, ForgeError> {
    let forge = connection.forge();
    connection.with(|ask| forge.branch(branch, ask))
}

/// Pushes a commit to a branch of `origin`.
pub fn push_branch(repo: &Repo, commit: &ObjectId, branch: &str) -> Result<(), ForgeError> {
    let pushed = push(repo, REMOTE, &[], &[&format!("{commit}:refs/heads/{branch}")]);
    pushed.map_err(|why| ForgeError::Git(format!("the branch was not pushed: {}", said(why))))
}

/// Opens the request, unless there is one: also one that a killed session opened.
pub fn open_request(connection: &mut Connection, draft: &RequestDraft) -> Result<Opening, ForgeError> {
    let forge = connection.forge();
    if let Some(view) = connection.with(|ask| forge.request_of(&draft.branch, ask))? {
        return Ok(Opening::Exists(view));
    }
    let request = forge.open(draft);
    failpoint::pass("forge.begun");
    let answer = connection.ask(&request)?;
    failpoint::pass("forge.sent");
    if connection.is_dry() {
        return Ok(Opening::Dry);
    }
    let opened = forge.opened(&answer).map(Opening::Opened);
    opened.ok_or_else(|| ForgeError::nonsense(&request, "it describes no request"))
}
