//! GitLab: every thread is a discussion of its own, so there is one request for each comment.

use serde_json::{Value, json};

use super::connection::ForgeError;
use super::remote::ForgeAddress;
use super::{
    Ask, CheckDraft, CommentDraft, Forge, ForgeComment, ForgeRequest, ForgeThread, RequestDraft,
    RequestState, RequestView, all_pages, number_at, segment, text_at,
};

pub(super) struct Gitlab {
    pub(super) address: ForgeAddress,
}

/// A commit status has this many characters.
const STATUS_AT_MOST: usize = 255;

impl Gitlab {
    fn path(&self, rest: &str) -> String {
        let project = segment(&format!("{}/{}", self.address.owner, self.address.name));
        format!("{}/projects/{project}/{rest}", self.address.prefix)
    }

    fn of_request(&self, number: u32, rest: &str) -> String {
        self.path(&format!("merge_requests/{number}{rest}"))
    }
}

fn view(answer: &Value) -> Option<RequestView> {
    let view = RequestView {
        number: number_at(answer, &["iid"]),
        title: text_at(answer, &["title"]),
        body: text_at(answer, &["description"]),
        head: text_at(answer, &["sha"]),
        base: text_at(answer, &["diff_refs", "base_sha"]),
        base_branch: text_at(answer, &["target_branch"]),
        is_open: text_at(answer, &["state"]) == "opened",
        url: text_at(answer, &["web_url"]),
        start: text_at(answer, &["diff_refs", "start_sha"]),
    };
    (view.number > 0 && !view.head.is_empty()).then_some(view)
}

/// A discussion at a line; `None` for what is about the request as a whole, and for notes of GitLab itself.
fn thread(discussion: &Value, me: u64) -> Option<ForgeThread> {
    let notes = discussion["notes"].as_array()?;
    let notes: Vec<&Value> = notes.iter().filter(|note| note["system"] != true).collect();
    let first = *notes.first()?;
    let position = first.get("position").filter(|position| position.is_object())?;
    let closer = notes.iter().filter_map(|note| note["resolved_by"]["id"].as_u64()).next_back();
    let line = number_at(position, &["new_line"]);
    Some(ForgeThread {
        id: text_at(discussion, &["id"]),
        file: text_at(position, &["new_path"]),
        line,
        began_at: (text_at(position, &["head_sha"]), line),
        is_outdated: false,
        is_closed: first["resolved"] == true,
        closed_by_other: closer.is_some_and(|closer| closer != me),
        comments: notes.iter().map(|note| comment(note, me)).collect(),
    })
}

fn comment(note: &Value, me: u64) -> ForgeComment {
    ForgeComment { body: text_at(note, &["body"]), is_own: note["author"]["id"].as_u64() == Some(me) }
}

impl Forge for Gitlab {
    fn view(&self, number: u32, ask: Ask<'_>) -> Result<RequestView, ForgeError> {
        let request = ForgeRequest::get(self.of_request(number, ""));
        view(&ask(&request)?).ok_or_else(|| ForgeError::nonsense(&request, "it describes no merge request"))
    }

    fn state(&self, number: u32, ask: Ask<'_>) -> Result<RequestState, ForgeError> {
        let view = self.view(number, ask)?;
        let request = ForgeRequest::get(format!("{}/user", self.address.prefix));
        let me = ask(&request)?["id"].as_u64();
        let me = me.ok_or_else(|| ForgeError::nonsense(&request, "it names no account"))?;
        let discussions = all_pages(&self.of_request(number, "/discussions"), "per_page", ask)?;
        let threads = discussions.iter().filter_map(|one| thread(one, me)).collect();
        let notes = discussions.iter().filter_map(|one| one["notes"].as_array()?.first());
        let own = notes.map(|note| comment(note, me)).filter(|note| note.is_own);
        let summaries = own.map(|note| note.body).collect();
        Ok(RequestState { view, threads, summaries, can_close: true })
    }

    fn review(
        &self,
        view: &RequestView,
        summary: Option<&str>,
        comments: &[CommentDraft],
    ) -> Vec<(Vec<String>, ForgeRequest)> {
        let mut requests = Vec::new();
        for one in comments {
            let mut position = json!({
                "position_type": "text", "base_sha": view.base, "start_sha": view.start, "head_sha": view.head,
                "new_path": one.path, "old_path": one.old_path, "new_line": one.line,
            });
            // A line that the change leaves as it is is named by both numbers.
            if let Some(old_line) = one.old_line {
                position["old_line"] = old_line.into();
            }
            let body = json!({ "body": one.body, "position": position });
            let path = self.of_request(view.number, "/discussions");
            requests.push((vec![one.fingerprint.clone()], ForgeRequest::send("POST", path, body)));
        }
        if let Some(summary) = summary {
            let path = self.of_request(view.number, "/notes");
            requests.push((Vec::new(), ForgeRequest::send("POST", path, json!({ "body": summary }))));
        }
        requests
    }

    fn reply(&self, view: &RequestView, thread: &ForgeThread, body: &str) -> ForgeRequest {
        let path = self.of_request(view.number, &format!("/discussions/{}/notes", segment(&thread.id)));
        ForgeRequest::send("POST", path, json!({ "body": body }))
    }

    fn close(&self, view: &RequestView, thread: &ForgeThread, close: bool) -> Option<ForgeRequest> {
        let path = self.of_request(view.number, &format!("/discussions/{}", segment(&thread.id)));
        Some(ForgeRequest::send("PUT", path, json!({ "resolved": close })))
    }

    fn check(&self, view: &RequestView, check: &CheckDraft, ask: Ask<'_>) -> Result<(), ForgeError> {
        let description: String = check.title.chars().take(STATUS_AT_MOST).collect();
        let state = if check.passed { "success" } else { "failed" };
        let body = json!({ "state": state, "name": "archeflow", "description": description });
        ask(&ForgeRequest::send("POST", self.path(&format!("statuses/{}", segment(&view.head))), body))
            .map(drop)
    }

    fn sarif(&self, _: &RequestView, _: &[u8]) -> Option<ForgeRequest> {
        None
    }

    fn branch(&self, name: &str, ask: Ask<'_>) -> Result<Option<String>, ForgeError> {
        let request = ForgeRequest::get(self.path(&format!("repository/branches/{}", segment(name))));
        match ask(&request) {
            Ok(answer) => Ok(Some(text_at(&answer, &["commit", "id"])).filter(|sha| !sha.is_empty())),
            Err(error) if error.status() == Some(404) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn request_of(&self, branch: &str, ask: Ask<'_>) -> Result<Option<RequestView>, ForgeError> {
        let query = format!("merge_requests?state=opened&source_branch={}", segment(branch));
        let request = ForgeRequest::get(self.path(&query));
        let answer = ask(&request)?;
        let Some(all) = answer.as_array() else { return Err(ForgeError::nonsense(&request, "no list")) };
        // A fork can have a branch of that name.
        let own = |one: &&Value| one["source_project_id"] == one["target_project_id"];
        Ok(all.iter().filter(own).find_map(view))
    }

    fn open(&self, draft: &RequestDraft) -> ForgeRequest {
        let title = if draft.is_draft { format!("Draft: {}", draft.title) } else { draft.title.clone() };
        let body = json!({
            "source_branch": draft.branch, "target_branch": draft.base, "title": title, "description": draft.body,
        });
        ForgeRequest::send("POST", self.path("merge_requests"), body)
    }

    fn opened(&self, answer: &Value) -> Option<RequestView> {
        view(answer)
    }
}
