//! Gitea and Forgejo. Comments at the same line are a conversation, so a reply is one more comment there. Whether a
//! conversation can be resolved by a request differs by version, so the server is asked for its own description.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::connection::ForgeError;
use super::github::view;
use super::marks;
use super::remote::ForgeAddress;
use super::{
    Ask, CheckDraft, CommentDraft, Forge, ForgeComment, ForgeRequest, ForgeThread, RequestDraft,
    RequestState, RequestView, all_pages, number_at, segment, text_at,
};

pub(super) struct Gitea {
    pub(super) address: ForgeAddress,
}

/// A commit status has this many characters.
const STATUS_AT_MOST: usize = 255;
/// The request that resolves a conversation, as the description of the API names it.
const RESOLVE: &str = "/repos/{owner}/{repo}/pulls/comments/{id}/resolve";

impl Gitea {
    fn path(&self, rest: &str) -> String {
        let ForgeAddress { prefix, owner, name, .. } = &self.address;
        format!("{prefix}/repos/{}/{}/{rest}", segment(owner), segment(name))
    }

    /// The description is beside the API, and an old server has none.
    fn can_close(&self, ask: Ask<'_>) -> bool {
        let root = self.address.prefix.strip_suffix("/api/v1").unwrap_or_default();
        let described = ask(&ForgeRequest::get(format!("{root}/swagger.v1.json")));
        described.is_ok_and(|described| described["paths"].get(RESOLVE).is_some())
    }

    /// A review with comments at lines; also how a conversation is replied to.
    fn submit(&self, view: &RequestView, body: &str, comments: &[Value]) -> ForgeRequest {
        let body = json!({ "event": "COMMENT", "body": body, "commit_id": view.head, "comments": comments });
        ForgeRequest::send("POST", self.path(&format!("pulls/{}/reviews", view.number)), body)
    }
}

/// A comment with the commit that its review is about. Comments name the commit that last changed their line instead,
/// where the line may have another number.
type Located = (Value, String);

/// The threads of a request. Comments at one line are one conversation, whoever began it and however many findings it is
/// about. So each comment of ours that names a finding begins a thread.
fn conversations(comments: &[Located], me: u64) -> Vec<ForgeThread> {
    let mut by_line: BTreeMap<(String, u32), Vec<&Located>> = BTreeMap::new();
    for located in comments {
        let comment = &located.0;
        let line = number_at(comment, &["position"]).max(number_at(comment, &["original_position"]));
        by_line.entry((text_at(comment, &["path"]), line)).or_default().push(located);
    }
    by_line.into_iter().flat_map(|(place, all)| threads_at(&place, all, me)).collect()
}

/// A reply of ours names its finding; the word of a person counts for every thread that is there already. The first comment
/// has the number that requests name.
fn threads_at((file, line): &(String, u32), mut all: Vec<&Located>, me: u64) -> Vec<ForgeThread> {
    all.sort_by_key(|(comment, _)| comment["id"].as_u64());
    let mut threads: Vec<(String, ForgeThread)> = Vec::new();
    for (comment, commit) in all {
        let one = said(comment, me);
        let own = Some(one.body.as_str()).filter(|_| one.is_own);
        let begins = own.and_then(marks::finding).map(|(fingerprint, _)| fingerprint);
        let about = own.and_then(marks::reply_about);
        if begins.is_some() || threads.is_empty() {
            let thread = ForgeThread {
                id: comment["id"].as_u64().unwrap_or(0).to_string(),
                file: file.clone(),
                line: *line,
                began_at: (commit.clone(), *line),
                is_outdated: number_at(comment, &["position"]) == 0,
                ..ForgeThread::default()
            };
            threads.push((begins.clone().unwrap_or_default(), thread));
        }
        let closer = comment["resolver"]["id"].as_u64();
        let last = threads.len() - 1;
        for (at, (fingerprint, thread)) in threads.iter_mut().enumerate() {
            let is_for = match (&begins, &about) {
                (Some(_), _) => at == last,
                (None, Some(about)) => about == fingerprint,
                (None, None) => true,
            };
            if is_for {
                thread.comments.push(one.clone());
                thread.is_closed |= closer.is_some();
                thread.closed_by_other |= closer.is_some_and(|closer| closer != me);
            }
        }
    }
    threads.into_iter().map(|(_, thread)| thread).collect()
}

fn said(comment: &Value, me: u64) -> ForgeComment {
    ForgeComment { body: text_at(comment, &["body"]), is_own: comment["user"]["id"].as_u64() == Some(me) }
}

impl Forge for Gitea {
    fn view(&self, number: u32, ask: Ask<'_>) -> Result<RequestView, ForgeError> {
        let request = ForgeRequest::get(self.path(&format!("pulls/{number}")));
        view(&ask(&request)?).ok_or_else(|| ForgeError::nonsense(&request, "it describes no pull request"))
    }

    fn state(&self, number: u32, ask: Ask<'_>) -> Result<RequestState, ForgeError> {
        let view = self.view(number, ask)?;
        let request = ForgeRequest::get(format!("{}/user", self.address.prefix));
        let me = ask(&request)?["id"].as_u64();
        let me = me.ok_or_else(|| ForgeError::nonsense(&request, "it names no account"))?;
        let reviews = all_pages(&self.path(&format!("pulls/{number}/reviews")), "limit", ask)?;
        let mut comments = Vec::new();
        for review in reviews.iter().filter(|review| review["comments_count"] != 0) {
            let Some(id) = review["id"].as_u64() else { continue };
            let request = ForgeRequest::get(self.path(&format!("pulls/{number}/reviews/{id}/comments")));
            let answer = ask(&request)?;
            let Value::Array(more) = answer else { return Err(ForgeError::nonsense(&request, "no list")) };
            let commit = text_at(review, &["commit_id"]);
            comments.extend(more.into_iter().map(|comment| (comment, commit.clone())));
        }
        let own = reviews.iter().map(|review| said(review, me)).filter(|review| review.is_own);
        let summaries = own.map(|review| review.body).collect();
        let can_close = self.can_close(ask);
        Ok(RequestState { view, threads: conversations(&comments, me), summaries, can_close })
    }

    fn review(
        &self,
        view: &RequestView,
        summary: Option<&str>,
        comments: &[CommentDraft],
    ) -> Vec<(Vec<String>, ForgeRequest)> {
        if summary.is_none() && comments.is_empty() {
            return Vec::new();
        }
        let at_lines: Vec<Value> = comments
            .iter()
            .map(|one| json!({ "path": one.path, "new_position": one.line, "body": one.body }))
            .collect();
        let fingerprints = comments.iter().map(|one| one.fingerprint.clone()).collect();
        vec![(fingerprints, self.submit(view, summary.unwrap_or_default(), &at_lines))]
    }

    fn reply(&self, view: &RequestView, thread: &ForgeThread, body: &str) -> ForgeRequest {
        let comment = json!({ "path": thread.file, "new_position": thread.line, "body": body });
        self.submit(view, "", &[comment])
    }

    fn close(&self, _: &RequestView, thread: &ForgeThread, close: bool) -> Option<ForgeRequest> {
        let verb = if close { "resolve" } else { "unresolve" };
        let path = self.path(&format!("pulls/comments/{}/{verb}", segment(&thread.id)));
        Some(ForgeRequest { method: "POST", path, body: None, reads: false })
    }

    fn check(&self, view: &RequestView, check: &CheckDraft, ask: Ask<'_>) -> Result<(), ForgeError> {
        let description: String = check.title.chars().take(STATUS_AT_MOST).collect();
        let state = if check.passed { "success" } else { "failure" };
        let body = json!({ "state": state, "context": "archeflow", "description": description });
        ask(&ForgeRequest::send("POST", self.path(&format!("statuses/{}", segment(&view.head))), body))
            .map(drop)
    }

    fn sarif(&self, _: &RequestView, _: &[u8]) -> Option<ForgeRequest> {
        None
    }

    fn branch(&self, name: &str, ask: Ask<'_>) -> Result<Option<String>, ForgeError> {
        let request = ForgeRequest::get(self.path(&format!("branches/{}", segment(name))));
        match ask(&request) {
            Ok(answer) => Ok(Some(text_at(&answer, &["commit", "id"])).filter(|sha| !sha.is_empty())),
            Err(error) if error.status() == Some(404) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn request_of(&self, branch: &str, ask: Ask<'_>) -> Result<Option<RequestView>, ForgeError> {
        let all = all_pages(&self.path("pulls"), "state=open&limit", ask)?;
        // A fork can have a branch of that name.
        let own = |one: &&Value| one["head"]["repo_id"] == one["base"]["repo_id"];
        let mut those = all.iter().filter(own).filter(|one| text_at(one, &["head", "ref"]) == branch);
        Ok(those.find_map(view))
    }

    fn open(&self, draft: &RequestDraft) -> ForgeRequest {
        let title = if draft.is_draft { format!("WIP: {}", draft.title) } else { draft.title.clone() };
        let body = json!({ "title": title, "head": draft.branch, "base": draft.base, "body": draft.body });
        ForgeRequest::send("POST", self.path("pulls"), body)
    }

    fn opened(&self, answer: &Value) -> Option<RequestView> {
        view(answer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use archeflow_core::strategies::review::ThreadWord;

    #[test]
    fn f_28_a_conversation_of_gitea_has_a_thread_for_each_finding() {
        let comment = |id: u64, user: u64, body: &str, resolver: Option<u64>| {
            let resolver = resolver.map(|id| json!({ "id": id }));
            let comment = json!({
                "id": id, "user": { "id": user }, "body": body, "path": "a", "position": 3, "resolver": resolver,
            });
            (comment, format!("commit-{id}"))
        };
        let begun = |of: &str| format!("x\n{}", marks::comment_marker(of, &["guardian".to_owned()]));
        let gone = marks::reply_marker(ThreadWord::Resolved, "f");
        let comments = [
            comment(5, 2, "a word", None),
            comment(1, 2, &begun("f"), None),
            comment(2, 1, &begun("f"), Some(1)),
            comment(3, 1, &begun("g"), None),
            comment(4, 1, &gone, None),
        ];
        let threads = conversations(&comments, 1);
        let seen: Vec<(&str, &str, bool, Vec<&str>)> = threads
            .iter()
            .map(|one| {
                let bodies = one.comments.iter().map(|comment| comment.body.as_str()).collect();
                (one.id.as_str(), one.began_at.0.as_str(), one.is_closed, bodies)
            })
            .collect();
        let (f, g) = (begun("f"), begun("g"));
        let wanted = vec![
            // A stranger's, with our marker in it.
            ("1", "commit-1", false, vec![f.as_str(), "a word"]),
            ("2", "commit-2", true, vec![f.as_str(), gone.as_str(), "a word"]),
            ("3", "commit-3", false, vec![g.as_str(), "a word"]),
        ];
        assert_eq!(seen, wanted);
    }
}
