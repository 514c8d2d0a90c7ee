//! A forge of our own: a small server that remembers what is posted, and answers as GitHub, GitLab or Gitea would.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::Command;
use std::sync::{Arc, Mutex, MutexGuard};

use serde_json::{Value, json};

use crate::harness::LONG;

pub(crate) const TOKEN: &str = "t0ken-that-nobody-prints";
/// The account of the token, and that of a person.
const ME: u64 = 1;
pub(crate) const PERSON: u64 = 2;

#[derive(Debug, Clone)]
pub(crate) struct StandInThread {
    pub(crate) path: String,
    pub(crate) line: u64,
    pub(crate) commit: String,
    /// The account that resolved it.
    pub(crate) resolved_by: Option<u64>,
    /// Account and text.
    pub(crate) comments: Vec<(u64, String)>,
}

/// An answer that is given once, to the first request that begins like this.
pub(crate) struct Fault {
    request: &'static str,
    status: &'static str,
    headers: String,
    body: String,
    /// The request is performed all the same, and only its answer is lost.
    performs: bool,
}

impl Fault {
    pub(crate) fn new(request: &'static str, status: &'static str, headers: &str, body: &str) -> Fault {
        Fault { request, status, headers: headers.to_owned(), body: body.to_owned(), performs: false }
    }

    pub(crate) fn after(request: &'static str, status: &'static str, headers: &str, body: &str) -> Fault {
        Fault { performs: true, ..Fault::new(request, status, headers, body) }
    }
}

#[derive(Default)]
pub(crate) struct ForgeContent {
    pub(crate) head: String,
    pub(crate) base: String,
    pub(crate) is_closed: bool,
    pub(crate) threads: Vec<StandInThread>,
    /// Comments on the whole request, by account.
    pub(crate) summaries: Vec<(u64, String)>,
    pub(crate) checks: Vec<Value>,
    pub(crate) statuses: Vec<Value>,
    pub(crate) uploads: usize,
    pub(crate) opened: Vec<Value>,
    /// Where branches are looked up.
    pub(crate) bare: PathBuf,
    pub(crate) faults: Vec<Fault>,
    /// Lines of files that git shows in the diff and the forge does not.
    pub(crate) hidden: Vec<(&'static str, u64)>,
    /// Whether a conversation can be resolved, where that depends on the version.
    pub(crate) is_old: bool,
    /// Only apps may make checks.
    pub(crate) no_checks: bool,
    /// Every request that is no question, as `METHOD path`.
    pub(crate) log: Vec<String>,
    /// Every request, as its parts.
    pub(crate) asked: Vec<Value>,
}

#[derive(Clone)]
pub(crate) struct StandIn {
    pub(crate) kind: &'static str,
    pub(crate) port: u16,
    content: Arc<Mutex<ForgeContent>>,
}

struct Asked {
    method: String,
    path: String,
    query: String,
    headers: BTreeMap<String, String>,
    body: Value,
}

type Answer = (&'static str, Value);

const OK: &str = "200 OK";
const CREATED: &str = "201 Created";

fn not_found() -> Answer {
    ("404 Not Found", json!({ "message": "Not Found" }))
}

fn unprocessable(why: &str) -> Answer {
    ("422 Unprocessable Entity", json!({ "message": why }))
}

impl StandIn {
    pub(crate) fn start(kind: &'static str) -> StandIn {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let stand_in = StandIn { kind, port, content: Arc::default() };
        let serving = stand_in.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                serving.serve(&stream);
            }
        });
        stand_in
    }

    pub(crate) fn content(&self) -> MutexGuard<'_, ForgeContent> {
        self.content.lock().unwrap()
    }

    /// The user's settings for it.
    pub(crate) fn settings(&self) -> String {
        format!("forge: {{kind: {}, url: 'http://127.0.0.1:{}'}}\n", self.kind, self.port)
    }

    fn serve(&self, stream: &TcpStream) {
        let Some(asked) = Asked::read(stream) else { return };
        let mut content = self.content();
        // A query of GraphQL is named by how it begins.
        let line = format!("{} {} {}", asked.method, asked.path, asked.text("query"));
        let fault = content.faults.iter().position(|fault| line.starts_with(fault.request));
        let fault = fault.map(|at| content.faults.remove(at));
        let performs = fault.as_ref().is_none_or(|fault| fault.performs);
        let performed = performs.then(|| self.answer(&mut content, &asked));
        let (status, headers, body) = match (fault, performed) {
            (None, Some((status, body))) => (status, String::new(), body.to_string()),
            (Some(fault), _) => (fault.status, fault.headers, fault.body),
            (None, None) => return,
        };
        drop(content);
        let length = if headers.contains("content-length") {
            String::new()
        } else {
            format!("content-length: {}\r\n", body.len())
        };
        let answer = format!(
            "HTTP/1.1 {status}\r\n{headers}content-type: application/json\r\nconnection: close\r\n{length}\r\n{body}"
        );
        let mut stream = stream;
        let _ = stream.write_all(answer.as_bytes());
    }

    fn answer(&self, content: &mut ForgeContent, asked: &Asked) -> Answer {
        let sent = asked.headers.get("authorization").map(String::as_str).unwrap_or_default();
        let scheme = if matches!(self.kind, "gitea" | "forgejo") { "token" } else { "Bearer" };
        if sent != format!("{scheme} {TOKEN}") {
            return ("401 Unauthorized", json!({ "message": "Bad credentials" }));
        }
        let is_read = asked.method == "GET"
            || asked.body["query"].as_str().is_some_and(|query| query.starts_with("query"));
        if !is_read {
            content.log.push(format!("{} {}", asked.method, asked.path));
        }
        let header = |name: &str| asked.headers.get(name).cloned();
        content.asked.push(json!({
            "method": asked.method, "path": asked.path, "query": asked.query, "body": asked.body,
            "accept": header("accept"), "content-type": header("content-type"),
            "x-github-api-version": header("x-github-api-version"),
        }));
        match self.kind {
            "github" => github(content, asked),
            "gitlab" => gitlab(content, asked),
            _ => gitea(content, asked),
        }
    }
}

impl Asked {
    fn read(stream: &TcpStream) -> Option<Asked> {
        stream.set_read_timeout(Some(LONG)).ok()?;
        let mut reader = BufReader::new(stream);
        let mut first = String::new();
        reader.read_line(&mut first).ok()?;
        let mut words = first.split(' ');
        let (method, target) = (words.next()?.to_owned(), words.next()?.to_owned());
        let mut headers = BTreeMap::new();
        loop {
            let mut line = String::new();
            reader.read_line(&mut line).ok()?;
            let Some((name, value)) = line.trim().split_once(": ") else { break };
            headers.insert(name.to_lowercase(), value.to_owned());
        }
        let length = headers.get("content-length").map_or(0, |length| length.parse().unwrap());
        let mut body = vec![0; length];
        reader.read_exact(&mut body).ok()?;
        let body = serde_json::from_slice(&body).unwrap_or(Value::Null);
        let (path, query) = target.split_once('?').unwrap_or((&target, ""));
        Some(Asked { method, path: path.to_owned(), query: query.to_owned(), headers, body })
    }

    fn number(&self, name: &str) -> Option<usize> {
        let mut pairs = self.query.split('&').filter_map(|pair| pair.split_once('='));
        pairs.find_map(|(known, value)| if known == name { value.parse().ok() } else { None })
    }

    /// The page that is asked for. No forge gives more than a number of its own, whatever one asks for.
    fn page(&self, all: Vec<Value>, most: usize) -> Value {
        let wanted = self.number("per_page").or(self.number("limit")).unwrap_or(30).min(most);
        let first = (self.number("page").unwrap_or(1) - 1) * wanted;
        json!(all.into_iter().skip(first).take(wanted).collect::<Vec<Value>>())
    }

    fn text(&self, name: &str) -> String {
        self.body[name].as_str().unwrap_or_default().to_owned()
    }
}

impl ForgeContent {
    fn begin(&mut self, path: &Value, line: &Value, body: &Value) -> bool {
        let (Some(path), Some(line), Some(body)) = (path.as_str(), line.as_u64(), body.as_str()) else {
            return false;
        };
        if self.hides(path, line) {
            return false;
        }
        let comment = (ME, body.to_owned());
        let commit = self.head.clone();
        self.threads.push(StandInThread {
            path: path.to_owned(),
            line,
            commit,
            resolved_by: None,
            comments: vec![comment],
        });
        true
    }

    fn hides(&self, path: &str, line: u64) -> bool {
        self.hidden.contains(&(path, line))
    }

    fn branch(&self, name: &str) -> Option<String> {
        let name = name.replace("%2F", "/");
        let output = Command::new("git")
            .args(["rev-parse", "--verify", "-q", &format!("refs/heads/{name}")])
            .env("GIT_DIR", &self.bare)
            .output()
            .ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    }

    fn open(&mut self, mut request: Value, head: &str) -> Value {
        let number = 40 + self.opened.len() as u64;
        request["number"] = number.into();
        request["iid"] = number.into();
        request["state"] = "open".into();
        request["sha"] = "1".repeat(40).into();
        request["html_url"] = format!("https://forge.example.org/r/{number}").into();
        request["web_url"] = request["html_url"].clone();
        request["head"] = json!({ "ref": head, "sha": "1".repeat(40) });
        self.opened.push(request.clone());
        request
    }
}

fn pull(content: &ForgeContent) -> Value {
    json!({
        "number": 7, "title": "Second line", "body": "As agreed.", "state": if content.is_closed { "closed" } else { "open" },
        "html_url": "https://forge.example.org/o/r/pull/7",
        "head": { "sha": content.head, "ref": "topic" }, "base": { "sha": content.base, "ref": "main" },
    })
}

fn github(content: &mut ForgeContent, asked: &Asked) -> Answer {
    if asked.path == "/api/graphql" {
        return graphql(content, asked);
    }
    let Some(path) = asked.path.strip_prefix("/api/v3/repos/o/r/") else { return not_found() };
    match (asked.method.as_str(), path) {
        ("GET", "pulls/7") => (OK, pull(content)),
        ("POST", "pulls/7/reviews") => {
            if asked.body["commit_id"] != content.head.as_str() || asked.body["event"] != "COMMENT" {
                return unprocessable("commit_id is not part of the pull request");
            }
            let comments = asked.body["comments"].as_array().cloned().unwrap_or_default();
            // All of it or nothing.
            let place = |one: &Value| Some((one["path"].as_str()?.to_owned(), one["line"].as_u64()?));
            let is_refused = |one: &Value| {
                one["side"] != "RIGHT" || place(one).is_none_or(|(path, line)| content.hides(&path, line))
            };
            if comments.iter().any(is_refused) {
                return unprocessable("pull_request_review_thread.line must be part of the diff");
            }
            for comment in comments {
                assert!(content.begin(&comment["path"], &comment["line"], &comment["body"]));
            }
            content.summaries.push((ME, asked.text("body")));
            (OK, json!({ "id": 1 }))
        }
        ("POST", "check-runs") if content.no_checks => {
            ("403 Forbidden", json!({ "message": "You must authenticate via a GitHub App." }))
        }
        ("POST", "check-runs") => {
            let mut check = asked.body.clone();
            let notes = check["output"]["annotations"].as_array().map_or(0, Vec::len);
            if notes > 50 {
                return unprocessable("too many annotations");
            }
            check["id"] = (100 + content.checks.len()).into();
            check["output"]["annotations_count"] = notes.into();
            content.checks.push(check.clone());
            (CREATED, check)
        }
        ("POST", "code-scanning/sarifs") => {
            content.uploads += 1;
            ("202 Accepted", json!({ "id": "x" }))
        }
        ("GET", "pulls") => (OK, asked.page(content.opened.clone(), 100)),
        ("POST", "pulls") => {
            let head = asked.text("head");
            (CREATED, content.open(asked.body.clone(), &head))
        }
        ("GET", path) if path.ends_with("/check-runs") => (OK, json!({ "check_runs": content.checks })),
        ("PATCH", path) => {
            let id = path.strip_prefix("check-runs/").and_then(|id| id.parse::<u64>().ok());
            let more = asked.body["output"]["annotations"].as_array().map_or(0, Vec::len);
            let check = content.checks.iter_mut().find(|check| check["id"].as_u64() == id);
            let Some(check) = check else { return not_found() };
            let had = check["output"]["annotations_count"].as_u64().unwrap();
            check["output"]["annotations_count"] = (had + more as u64).into();
            (OK, check.clone())
        }
        ("POST", path) if path.starts_with("statuses/") => {
            content.statuses.push(asked.body.clone());
            (CREATED, json!({}))
        }
        ("GET", path) => match path.strip_prefix("branches/").and_then(|name| content.branch(name)) {
            Some(sha) => (OK, json!({ "commit": { "sha": sha, "id": sha } })),
            None => not_found(),
        },
        _ => not_found(),
    }
}

fn graphql(content: &mut ForgeContent, asked: &Asked) -> Answer {
    let query = asked.text("query");
    let of = |list: &str, nodes: Vec<Value>, most: usize| {
        let first = asked.body["variables"]["after"].as_str().map_or(0, |after| after.parse().unwrap());
        let more = nodes.len() > first + most;
        let nodes: Vec<Value> = nodes.into_iter().skip(first).take(most).collect();
        let end = (first + nodes.len()).to_string();
        let page = json!({ "pageInfo": { "hasNextPage": more, "endCursor": end }, "nodes": nodes });
        let request = json!({ list: page });
        (
            OK,
            json!({ "data": { "viewer": { "login": "bot[bot]" }, "repository": { "pullRequest": request } } }),
        )
    };
    let login = |account: u64| if account == ME { "bot" } else { "person" };
    if query.starts_with("query Threads(") {
        let node = |(at, thread): (usize, &StandInThread)| {
            let comment = |(account, body): &(u64, String)| json!({ "body": body, "viewerDidAuthor": *account == ME, "originalCommit": { "oid": thread.commit } });
            let comments: Vec<Value> = thread.comments.iter().map(comment).collect();
            json!({
                "id": format!("T{at}"), "isResolved": thread.resolved_by.is_some(), "isOutdated": false,
                "path": thread.path, "line": thread.line, "originalLine": thread.line,
                "resolvedBy": thread.resolved_by.map(|by| json!({ "login": login(by) })),
                "opening": { "nodes": comments[..1] },
                "latest": { "totalCount": comments.len(), "nodes": comments[comments.len().saturating_sub(30)..] },
            })
        };
        return of("reviewThreads", content.threads.iter().enumerate().map(node).collect(), 50);
    }
    if query.starts_with("query Reviews(") {
        let node =
            |(account, body): &(u64, String)| json!({ "body": body, "viewerDidAuthor": *account == ME });
        return of("reviews", content.summaries.iter().map(node).collect(), 100);
    }
    let id =
        asked.body["variables"]["thread"].as_str().and_then(|id| id.strip_prefix('T')?.parse::<usize>().ok());
    let Some(thread) = id.and_then(|id| content.threads.get_mut(id)) else {
        return (OK, json!({ "data": null, "errors": [{ "message": "Could not resolve to a node" }] }));
    };
    if query.starts_with("mutation Reply(") {
        thread.comments.push((ME, asked.body["variables"]["body"].as_str().unwrap_or_default().to_owned()));
    } else {
        thread.resolved_by = query.starts_with("mutation Resolve(").then_some(ME);
    }
    (OK, json!({ "data": {} }))
}

fn gitlab(content: &mut ForgeContent, asked: &Asked) -> Answer {
    if asked.path == "/api/v4/user" {
        return (OK, json!({ "id": ME }));
    }
    let Some(path) = asked.path.strip_prefix("/api/v4/projects/o%2Fr/") else { return not_found() };
    let number = |text: &str| text.parse::<usize>().ok();
    match (asked.method.as_str(), path) {
        ("GET", "merge_requests/7") => (
            OK,
            json!({
                "iid": 7, "title": "Second line", "description": "As agreed.", "sha": content.head,
                "state": if content.is_closed { "merged" } else { "opened" }, "target_branch": "main",
                "web_url": "https://forge.example.org/o/r/-/merge_requests/7",
                "diff_refs": { "base_sha": content.base, "head_sha": content.head, "start_sha": content.base },
            }),
        ),
        ("GET", "merge_requests/7/discussions") => {
            let mut all = Vec::new();
            for (at, thread) in content.threads.iter().enumerate() {
                let note = |(account, body): &(u64, String)| {
                    json!({
                        "body": body, "author": { "id": account }, "system": false, "resolved": thread.resolved_by.is_some(),
                        "resolved_by": thread.resolved_by.map(|by| json!({ "id": by })),
                        "position": { "new_path": thread.path, "new_line": thread.line, "head_sha": thread.commit },
                    })
                };
                let notes: Vec<Value> = thread.comments.iter().map(note).collect();
                all.push(json!({ "id": at.to_string(), "notes": notes }));
            }
            for (account, body) in &content.summaries {
                all.push(json!({ "id": "n", "notes": [{ "body": body, "author": { "id": account }, "system": false }] }));
            }
            (OK, asked.page(all, 100))
        }
        ("POST", "merge_requests/7/discussions") => {
            let position = asked.body["position"].clone();
            let fits = position["head_sha"] == content.head.as_str() && position["position_type"] == "text";
            if !fits || !content.begin(&position["new_path"], &position["new_line"], &asked.body["body"]) {
                return ("400 Bad Request", json!({ "message": "position is invalid" }));
            }
            (CREATED, json!({}))
        }
        ("POST", "merge_requests/7/notes") => {
            content.summaries.push((ME, asked.text("body")));
            (CREATED, json!({}))
        }
        ("POST", path) if path.starts_with("statuses/") => {
            content.statuses.push(asked.body.clone());
            (CREATED, json!({}))
        }
        ("GET", "merge_requests") => (OK, asked.page(content.opened.clone(), 100)),
        ("POST", "merge_requests") => {
            let head = asked.text("source_branch");
            (CREATED, content.open(asked.body.clone(), &head))
        }
        (method, path) => {
            if let Some(name) = path.strip_prefix("repository/branches/") {
                let found = content.branch(name);
                return found.map_or_else(not_found, |sha| (OK, json!({ "commit": { "id": sha } })));
            }
            let rest = path.strip_prefix("merge_requests/7/discussions/").unwrap_or_default();
            let (id, verb) = rest.split_once('/').unwrap_or((rest, ""));
            let Some(thread) = number(id).and_then(|id| content.threads.get_mut(id)) else {
                return not_found();
            };
            match (method, verb) {
                ("POST", "notes") => thread.comments.push((ME, asked.text("body"))),
                ("PUT", "") => thread.resolved_by = (asked.body["resolved"] == true).then_some(ME),
                _ => return not_found(),
            }
            (OK, json!({}))
        }
    }
}

fn gitea(content: &mut ForgeContent, asked: &Asked) -> Answer {
    const RESOLVE: &str = "/repos/{owner}/{repo}/pulls/comments/{id}/resolve";
    match asked.path.as_str() {
        "/api/v1/user" => return (OK, json!({ "id": ME })),
        "/swagger.v1.json" if content.is_old => return (OK, json!({ "paths": {} })),
        "/swagger.v1.json" => return (OK, json!({ "paths": { RESOLVE: {} } })),
        _ => {}
    }
    let Some(path) = asked.path.strip_prefix("/api/v1/repos/o/r/") else { return not_found() };
    match (asked.method.as_str(), path) {
        ("GET", "pulls/7") => (OK, pull(content)),
        // Comments belong to a review that names the commit; they themselves name the one that last changed the line.
        ("GET", "pulls/7/reviews") => {
            let said = |(at, (account, body)): (usize, &(u64, String))| json!({ "id": at + 1, "body": body, "user": { "id": account }, "comments_count": 0 });
            let begun = |(at, thread): (usize, &StandInThread)| json!({ "id": at + 100_000, "body": "", "user": { "id": thread.comments[0].0 }, "commit_id": thread.commit, "comments_count": thread.comments.len() });
            let said = content.summaries.iter().enumerate().map(said);
            let begun = content.threads.iter().enumerate().map(begun);
            (OK, asked.page(said.chain(begun).collect(), 50))
        }
        ("GET", path) if path.starts_with("pulls/7/reviews/") => {
            let id = path.strip_prefix("pulls/7/reviews/").and_then(|rest| rest.strip_suffix("/comments"));
            let at = id.and_then(|id| id.parse::<usize>().ok()?.checked_sub(100_000)).unwrap();
            let thread = &content.threads[at];
            let comment = |(nth, (account, body)): (usize, &(u64, String))| {
                json!({
                    "id": at * 100_000 + nth, "body": body, "user": { "id": account }, "path": thread.path,
                    "position": thread.line, "original_position": 0, "original_commit_id": "",
                    "commit_id": "0".repeat(40), "resolver": thread.resolved_by.map(|by| json!({ "id": by })),
                })
            };
            (OK, thread.comments.iter().enumerate().map(comment).collect())
        }
        ("POST", "pulls/7/reviews") => {
            let comments = asked.body["comments"].as_array().cloned().unwrap_or_default();
            let hides = |one: &Value| {
                let line = one["new_position"].as_u64().unwrap_or(0);
                content.hides(one["path"].as_str().unwrap_or_default(), line)
            };
            if comments.iter().any(hides) {
                return unprocessable("no such line");
            }
            for comment in comments {
                let same = |thread: &&mut StandInThread| {
                    comment["path"] == thread.path.as_str() && comment["new_position"] == thread.line
                };
                if let Some(thread) = content.threads.iter_mut().find(same) {
                    thread.comments.push((ME, comment["body"].as_str().unwrap_or_default().to_owned()));
                } else if !content.begin(&comment["path"], &comment["new_position"], &comment["body"]) {
                    return unprocessable("no such line");
                }
            }
            content.summaries.push((ME, asked.text("body")));
            (OK, json!({}))
        }
        ("POST", path) if path.starts_with("statuses/") => {
            content.statuses.push(asked.body.clone());
            (CREATED, json!({}))
        }
        ("GET", "pulls") => (OK, asked.page(content.opened.clone(), 50)),
        ("POST", "pulls") => {
            let head = asked.text("head");
            (CREATED, content.open(asked.body.clone(), &head))
        }
        (_, path) => {
            if let Some(name) = path.strip_prefix("branches/") {
                let found = content.branch(name);
                return found.map_or_else(not_found, |sha| (OK, json!({ "commit": { "id": sha } })));
            }
            let rest = path.strip_prefix("pulls/comments/").unwrap_or_default();
            let Some((id, verb)) = rest.split_once('/') else { return not_found() };
            let thread = id.parse::<usize>().ok().and_then(|id| content.threads.get_mut(id / 100_000));
            let Some(thread) = thread.filter(|_| !content.is_old) else { return not_found() };
            thread.resolved_by = (verb == "resolve").then_some(ME);
            ("204 No Content", Value::Null)
        }
    }
}
