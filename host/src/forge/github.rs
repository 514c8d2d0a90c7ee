//! GitHub: REST, and GraphQL for threads, which REST can neither list with their state nor resolve.

use std::io::Write as _;

use base64::Engine as _;
use serde_json::{Value, json};

use super::connection::ForgeError;
use super::remote::ForgeAddress;
use super::{
    Ask, CheckDraft, CheckNote, CommentDraft, Forge, ForgeComment, ForgeRequest, ForgeThread, RequestDraft,
    RequestState, RequestView, number_at, segment, text_at,
};

pub(super) struct Github {
    pub(super) address: ForgeAddress,
}

/// The name of the check, and of the status where a check is not allowed.
const CHECK: &str = "archeflow";
/// Annotations in one request.
const NOTES: usize = 50;
/// A commit status has this many characters.
const STATUS_AT_MOST: usize = 140;

/// Threads of a request, by page. The first comment is what began it, the last ones tell who spoke last.
const THREADS: &str = "query Threads($owner: String!, $name: String!, $number: Int!, $after: String) {
  viewer { login }
  repository(owner: $owner, name: $name) { pullRequest(number: $number) {
    reviewThreads(first: 50, after: $after) {
      pageInfo { hasNextPage endCursor }
      nodes {
        id isResolved isOutdated path line originalLine
        resolvedBy { login }
        opening: comments(first: 1) { nodes { body viewerDidAuthor originalCommit { oid } } }
        latest: comments(last: 30) { totalCount nodes { body viewerDidAuthor } }
      }
    }
  } }
}";

const REVIEWS: &str = "query Reviews($owner: String!, $name: String!, $number: Int!, $after: String) {
  repository(owner: $owner, name: $name) { pullRequest(number: $number) {
    reviews(first: 100, after: $after) {
      pageInfo { hasNextPage endCursor }
      nodes { body viewerDidAuthor }
    }
  } }
}";

const REPLY: &str = "mutation Reply($thread: ID!, $body: String!) {
  addPullRequestReviewThreadReply(input: { pullRequestReviewThreadId: $thread, body: $body }) { comment { id } }
}";

const RESOLVE: &str = "mutation Resolve($thread: ID!) {
  resolveReviewThread(input: { threadId: $thread }) { thread { id } }
}";

const REOPEN: &str = "mutation Reopen($thread: ID!) {
  unresolveReviewThread(input: { threadId: $thread }) { thread { id } }
}";

impl Github {
    fn path(&self, rest: &str) -> String {
        let ForgeAddress { prefix, owner, name, .. } = &self.address;
        format!("{prefix}/repos/{}/{}/{rest}", segment(owner), segment(name))
    }

    fn graphql(&self, query: &str, variables: &Value, reads: bool) -> ForgeRequest {
        let root = self.address.prefix.strip_suffix("/v3").unwrap_or(&self.address.prefix);
        let body = json!({ "query": query, "variables": variables });
        ForgeRequest { method: "POST", path: format!("{root}/graphql"), body: Some(body), reads }
    }

    /// All nodes of a list in a request, and the login of this account where the query asks for it.
    fn nodes(
        &self,
        query: &str,
        list: &str,
        number: u32,
        ask: Ask<'_>,
    ) -> Result<(Vec<Value>, String), ForgeError> {
        let (mut all, mut after) = (Vec::new(), Value::Null);
        for _ in 0..super::PAGES {
            let variables = json!({ "owner": self.address.owner, "name": self.address.name, "number": number, "after": after });
            let request = self.graphql(query, &variables, true);
            let answer = ask(&request)?;
            let page = &answer["data"]["repository"]["pullRequest"][list];
            let Some(nodes) = page["nodes"].as_array() else {
                return Err(ForgeError::nonsense(&request, "it has no list of that name"));
            };
            all.extend(nodes.iter().cloned());
            let login = text_at(&answer, &["data", "viewer", "login"]);
            if page["pageInfo"]["hasNextPage"] != true {
                return Ok((all, login));
            }
            after = page["pageInfo"]["endCursor"].clone();
        }
        let request = self.graphql(query, &Value::Null, true);
        Err(ForgeError::nonsense(&request, "it never ends"))
    }

    fn status(&self, view: &RequestView, check: &CheckDraft) -> ForgeRequest {
        let description: String = check.title.chars().take(STATUS_AT_MOST).collect();
        let state = if check.passed { "success" } else { "failure" };
        let body = json!({ "state": state, "context": CHECK, "description": description });
        ForgeRequest::send("POST", self.path(&format!("statuses/{}", segment(&view.head))), body)
    }

    /// The check of this run that is there already: its id, and how many annotations it has.
    fn known_check(
        &self,
        view: &RequestView,
        run_id: &str,
        ask: Ask<'_>,
    ) -> Result<Option<(u64, usize)>, ForgeError> {
        let path =
            self.path(&format!("commits/{}/check-runs?check_name={CHECK}&per_page=100", segment(&view.head)));
        let answer = ask(&ForgeRequest::get(path))?;
        let checks = answer["check_runs"].as_array().cloned().unwrap_or_default();
        let own = checks.iter().find(|check| text_at(check, &["external_id"]) == run_id);
        Ok(own.and_then(|check| {
            let notes = check["output"]["annotations_count"].as_u64().unwrap_or(0);
            Some((check["id"].as_u64()?, usize::try_from(notes).ok()?))
        }))
    }
}

/// A request, in the form that Gitea and Forgejo took over.
pub(super) fn view(answer: &Value) -> Option<RequestView> {
    let view = RequestView {
        number: number_at(answer, &["number"]),
        title: text_at(answer, &["title"]),
        body: text_at(answer, &["body"]),
        head: text_at(answer, &["head", "sha"]),
        base: text_at(answer, &["base", "sha"]),
        base_branch: text_at(answer, &["base", "ref"]),
        is_open: text_at(answer, &["state"]) == "open",
        url: text_at(answer, &["html_url"]),
        start: String::new(),
    };
    (view.number > 0 && !view.head.is_empty()).then_some(view)
}

/// A bot has another name in GraphQL than elsewhere.
fn account(login: &str) -> &str {
    login.strip_suffix("[bot]").unwrap_or(login)
}

fn thread(node: &Value, me: &str) -> Option<ForgeThread> {
    let comment = |node: &Value| ForgeComment {
        body: text_at(node, &["body"]),
        is_own: node["viewerDidAuthor"] == true,
    };
    let opening = node["opening"]["nodes"].as_array()?.first()?;
    let latest = node["latest"]["nodes"].as_array()?;
    let total = node["latest"]["totalCount"].as_u64().unwrap_or(0);
    let mut comments: Vec<ForgeComment> = latest.iter().map(comment).collect();
    if total > latest.len() as u64 {
        comments.insert(0, comment(opening));
    }
    let closer = text_at(node, &["resolvedBy", "login"]);
    Some(ForgeThread {
        id: text_at(node, &["id"]),
        file: text_at(node, &["path"]),
        line: number_at(node, &["line"]),
        began_at: (text_at(opening, &["originalCommit", "oid"]), number_at(node, &["originalLine"])),
        is_outdated: node["isOutdated"] == true,
        is_closed: node["isResolved"] == true,
        closed_by_other: !closer.is_empty() && account(&closer) != account(me),
        comments,
    })
}

fn annotation(note: &CheckNote) -> Value {
    json!({
        "path": note.path, "start_line": note.line, "end_line": note.line, "annotation_level": note.level,
        "title": note.title, "message": note.message,
    })
}

impl Forge for Github {
    fn view(&self, number: u32, ask: Ask<'_>) -> Result<RequestView, ForgeError> {
        let request = ForgeRequest::get(self.path(&format!("pulls/{number}")));
        view(&ask(&request)?).ok_or_else(|| ForgeError::nonsense(&request, "it describes no pull request"))
    }

    fn state(&self, number: u32, ask: Ask<'_>) -> Result<RequestState, ForgeError> {
        let view = self.view(number, ask)?;
        let (threads, me) = self.nodes(THREADS, "reviewThreads", number, ask)?;
        let threads = threads.iter().filter_map(|node| thread(node, &me)).collect();
        let (reviews, _) = self.nodes(REVIEWS, "reviews", number, ask)?;
        let own = reviews.iter().filter(|review| review["viewerDidAuthor"] == true);
        let summaries = own.map(|review| text_at(review, &["body"])).collect();
        Ok(RequestState { view, threads, summaries, can_close: true })
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
            .map(|one| json!({ "path": one.path, "line": one.line, "side": "RIGHT", "body": one.body }))
            .collect();
        let body = json!({
            "commit_id": view.head, "event": "COMMENT", "body": summary.unwrap_or_default(), "comments": at_lines,
        });
        let fingerprints = comments.iter().map(|one| one.fingerprint.clone()).collect();
        let path = self.path(&format!("pulls/{}/reviews", view.number));
        vec![(fingerprints, ForgeRequest::send("POST", path, body))]
    }

    fn reply(&self, _: &RequestView, thread: &ForgeThread, body: &str) -> ForgeRequest {
        self.graphql(REPLY, &json!({ "thread": thread.id, "body": body }), false)
    }

    fn close(&self, _: &RequestView, thread: &ForgeThread, close: bool) -> Option<ForgeRequest> {
        let query = if close { RESOLVE } else { REOPEN };
        Some(self.graphql(query, &json!({ "thread": thread.id }), false))
    }

    /// Only apps may make checks; with a person's token it is a status.
    fn check(&self, view: &RequestView, check: &CheckDraft, ask: Ask<'_>) -> Result<(), ForgeError> {
        let known = match self.known_check(view, &check.run_id, ask) {
            Err(error) if matches!(error.status(), Some(403 | 404)) => None,
            other => other?,
        };
        let output = |notes: &[CheckNote]| {
            let annotations: Vec<Value> = notes.iter().map(annotation).collect();
            json!({ "title": check.title, "summary": check.summary, "annotations": annotations })
        };
        let conclusion = if check.passed { "success" } else { "failure" };
        let (id, sent) = match known {
            Some((id, sent)) => (id.to_string(), sent),
            None => {
                let first = check.notes.get(..NOTES).unwrap_or(&check.notes);
                let body = json!({
                    "name": CHECK, "head_sha": view.head, "status": "completed", "conclusion": conclusion,
                    "external_id": check.run_id, "output": output(first),
                });
                match ask(&ForgeRequest::send("POST", self.path("check-runs"), body)) {
                    Ok(answer) => (answer["id"].to_string(), first.len()),
                    Err(error) if matches!(error.status(), Some(403 | 404)) => {
                        return ask(&self.status(view, check)).map(drop);
                    }
                    Err(error) => return Err(error),
                }
            }
        };
        for more in check.notes.get(sent..).unwrap_or_default().chunks(NOTES) {
            let path = self.path(&format!("check-runs/{}", segment(&id)));
            ask(&ForgeRequest::send("PATCH", path, json!({ "output": output(more) })))?;
        }
        Ok(())
    }

    fn sarif(&self, view: &RequestView, sarif: &[u8]) -> Option<ForgeRequest> {
        let packed = base64::engine::general_purpose::STANDARD.encode(gzip(sarif).ok()?);
        let body = json!({
            "commit_sha": view.head, "ref": format!("refs/pull/{}/head", view.number), "sarif": packed,
            "tool_name": "archeflow",
        });
        Some(ForgeRequest::send("POST", self.path("code-scanning/sarifs"), body))
    }

    fn branch(&self, name: &str, ask: Ask<'_>) -> Result<Option<String>, ForgeError> {
        let request = ForgeRequest::get(self.path(&format!("branches/{}", segment(name))));
        match ask(&request) {
            Ok(answer) => Ok(Some(text_at(&answer, &["commit", "sha"])).filter(|sha| !sha.is_empty())),
            Err(error) if error.status() == Some(404) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn request_of(&self, branch: &str, ask: Ask<'_>) -> Result<Option<RequestView>, ForgeError> {
        let head = segment(&format!("{}:{branch}", self.address.owner));
        let request = ForgeRequest::get(self.path(&format!("pulls?state=open&head={head}")));
        let answer = ask(&request)?;
        let Some(all) = answer.as_array() else { return Err(ForgeError::nonsense(&request, "no list")) };
        Ok(all.iter().filter(|one| text_at(one, &["head", "ref"]) == branch).find_map(view))
    }

    fn open(&self, draft: &RequestDraft) -> ForgeRequest {
        let body = json!({
            "title": draft.title, "head": draft.branch, "base": draft.base, "body": draft.body, "draft": draft.is_draft,
        });
        ForgeRequest::send("POST", self.path("pulls"), body)
    }

    fn opened(&self, answer: &Value) -> Option<RequestView> {
        view(answer)
    }
}

/// A gzip file: the same packed bytes as git's, with another head and another sum.
fn gzip(bytes: &[u8]) -> std::io::Result<Vec<u8>> {
    const HEAD: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255];
    let mut packed = gix_zlib::stream::deflate::Write::new(Vec::new(), gix_zlib::Compression::BEST_SPEED);
    packed.write_all(bytes)?;
    packed.flush()?;
    let packed = packed.into_inner();
    let inner = packed.get(2..packed.len().saturating_sub(4)).unwrap_or_default();
    let length = u32::try_from(bytes.len() % (1 << 32)).unwrap_or(0);
    Ok([&HEAD, inner, &crc32fast::hash(bytes).to_le_bytes(), &length.to_le_bytes()].concat())
}
