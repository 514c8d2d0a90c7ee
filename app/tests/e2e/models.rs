//! Models without a client, through the front door: the loop of our own against a server that says what it is told to.
//! It speaks the Anthropic Messages, OpenAI Chat Completions and Ollama interfaces, as much of each as the loop uses.

use std::collections::{BTreeMap, VecDeque};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::harness::{LONG, Outcome, Test, as_strs, each, review, running, signal};
use crate::wire::signed;

/// What the model does when it is asked.
#[derive(Debug, Clone)]
pub(crate) enum Reply {
    Say(String),
    /// Wants tools used, with these inputs.
    Use(Vec<(&'static str, Value)>),
    /// The provider refuses with this status, a header and a text.
    Refuse(u16, &'static str, &'static str),
    /// No answer at all.
    Hang,
    /// Half an answer, and then nothing for ever.
    Stall,
    /// Half an answer, and then the end.
    Drop,
    /// Something else altogether, with status 200.
    Page(&'static str, &'static str),
    /// An answer that is stopped by its length, or declined.
    Stopped(&'static str),
}

/// One request as it came.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    who: String,
    path: String,
    head: String,
    body: Value,
}

pub(crate) struct Server {
    pub(crate) address: String,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    script: Mutex<BTreeMap<String, VecDeque<Reply>>>,
    asked: Mutex<Vec<Asked>>,
}

/// Every answer uses the same, so that sums are told at a glance.
const USED: (u64, u64) = (100, 20);

impl Server {
    pub(crate) fn new(script: &[(&str, &[Reply])]) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let script =
            script.iter().map(|(who, replies)| ((*who).to_owned(), replies.iter().cloned().collect()));
        let shared = Arc::new(Shared { script: Mutex::new(script.collect()), ..Shared::default() });
        let serving = Arc::clone(&shared);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let shared = Arc::clone(&serving);
                std::thread::spawn(move || shared.serve(&stream));
            }
        });
        Server { address, shared }
    }

    fn asked(&self) -> Vec<Asked> {
        self.shared.asked.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn asked_by(&self, who: &str) -> Vec<Asked> {
        self.asked().into_iter().filter(|asked| asked.who == who).collect()
    }
}

impl Shared {
    fn serve(&self, mut stream: &TcpStream) {
        let Some((path, head, body)) = request(stream) else { return };
        let body: Value = serde_json::from_slice(&body).unwrap_or(Value::Null);
        let reply = self.next(&path, &head, &body);
        let (kind, events) = match &reply {
            Reply::Hang => {
                std::thread::sleep(LONG);
                return;
            }
            Reply::Refuse(status, header, text) => {
                let error = json!({"type": "error", "error": {"type": "as_scripted", "message": text}});
                let more = if header.is_empty() { String::new() } else { format!("{header}\r\n") };
                return send(
                    stream,
                    &format!("{status} Refused"),
                    &format!("{more}content-type: application/json"),
                    &error.to_string(),
                );
            }
            Reply::Page(kind, text) => return send(stream, "200 OK", &format!("content-type: {kind}"), text),
            Reply::Say(_) | Reply::Use(_) | Reply::Stall | Reply::Drop | Reply::Stopped(_) => {
                match path.as_str() {
                    "/v1/messages" => ("text/event-stream", message_events(&body, &reply)),
                    "/v1/chat/completions" => ("text/event-stream", chat_events(&body, &reply)),
                    "/api/chat" => ("application/x-ndjson", ollama_lines(&body, &reply)),
                    _ => ("application/json", vec![json!({}).to_string()]),
                }
            }
        };
        let text = events.concat();
        match reply {
            Reply::Stall | Reply::Drop => {
                let head =
                    format!("HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ncontent-length: 99999\r\n\r\n");
                let half = events.get(..events.len() / 2 + 1).unwrap_or_default().concat();
                let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(half.as_bytes()));
                if matches!(reply, Reply::Stall) {
                    std::thread::sleep(LONG);
                }
            }
            Reply::Say(_)
            | Reply::Use(_)
            | Reply::Stopped(_)
            | Reply::Hang
            | Reply::Refuse(..)
            | Reply::Page(..) => {
                send(stream, "200 OK", &format!("content-type: {kind}"), &text);
            }
        }
    }

    fn next(&self, path: &str, head: &str, body: &Value) -> Reply {
        let text = body.to_string();
        let mut script = self.script.lock().unwrap_or_else(PoisonError::into_inner);
        let who = script.keys().find(|who| text.contains(&format!("you are the {who}."))).cloned();
        let who = if path.ends_with("/models") { "models".to_owned() } else { who.unwrap_or_default() };
        let asked =
            Asked { who: who.clone(), path: path.to_owned(), head: head.to_owned(), body: body.clone() };
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).push(asked);
        let Some(replies) = script.get_mut(&who) else { return Reply::Refuse(400, "", "nobody is expected") };
        let last = replies.len() == 1;
        let reply = if last { replies.front().cloned() } else { replies.pop_front() };
        match reply {
            Some(Reply::Say(said)) => Reply::Say(signed(&said, &text)),
            other => other.unwrap_or(Reply::Hang),
        }
    }
}

fn request(stream: &TcpStream) -> Option<(String, String, Vec<u8>)> {
    let mut reader = BufReader::new(stream);
    let mut head = String::new();
    let mut length = 0;
    loop {
        let from = head.len();
        if reader.read_line(&mut head).ok()? == 0 {
            return None;
        }
        let line = head.get(from..)?.trim().to_lowercase();
        if line.is_empty() {
            break;
        }
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().ok()?;
        }
    }
    let path = head.split(' ').nth(1)?.to_owned();
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some((path, head, body))
}

fn send(mut stream: &TcpStream, status: &str, headers: &str, body: &str) {
    let head = format!(
        "HTTP/1.1 {status}\r\n{headers}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        body.len()
    );
    let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body.as_bytes()));
}

fn fresh() -> u64 {
    static NEXT: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(1);
    NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed)
}

const HALF: &str = "half an answer that goes on";

/// What is said, what is called, and why it stops, in the words of each interface.
fn parts(reply: &Reply) -> (String, Vec<(&'static str, Value)>, &'static str) {
    match reply {
        Reply::Say(text) => (text.clone(), Vec::new(), "done"),
        Reply::Use(calls) => (String::new(), calls.clone(), "tools"),
        Reply::Stopped(why) => ("An answer".to_owned(), Vec::new(), why),
        Reply::Stall | Reply::Drop | Reply::Hang | Reply::Refuse(..) | Reply::Page(..) => {
            (HALF.to_owned(), Vec::new(), "done")
        }
    }
}

/// Cut in the middle, as a stream would be.
fn halves(text: &str) -> (&str, &str) {
    let middle = (0..=text.len() / 2).rev().find(|at| text.is_char_boundary(*at));
    text.split_at(middle.unwrap_or(0))
}

fn message_events(body: &Value, reply: &Reply) -> Vec<String> {
    let (text, calls, why) = parts(reply);
    let stop = match why {
        "tools" => "tool_use",
        "cut" => "max_tokens",
        "refused" => "refusal",
        _ => "end_turn",
    };
    let usage = json!({"input_tokens": USED.0 - 30, "cache_read_input_tokens": 20, "cache_creation_input_tokens": 10, "output_tokens": 1});
    let message = json!({"id": format!("msg_{}", fresh()), "type": "message", "role": "assistant", "model": body["model"], "content": [], "usage": usage});
    let mut events = vec![json!({"type": "message_start", "message": message}), json!({"type": "ping"})];
    let (first, second) = halves(&text);
    events.push(
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
    );
    for part in [first, second] {
        events.push(
            json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": part}}),
        );
    }
    events.push(json!({"type": "content_block_stop", "index": 0}));
    for (n, (name, input)) in (1..).zip(calls) {
        let block =
            json!({"type": "tool_use", "id": format!("toolu_{}", fresh()), "name": name, "input": {}});
        events.push(json!({"type": "content_block_start", "index": n, "content_block": block}));
        let input = input.to_string();
        let (a, b) = halves(&input);
        for part in [a, b] {
            let delta = json!({"type": "input_json_delta", "partial_json": part});
            events.push(json!({"type": "content_block_delta", "index": n, "delta": delta}));
        }
        events.push(json!({"type": "content_block_stop", "index": n}));
    }
    events.push(
        json!({"type": "message_delta", "delta": {"stop_reason": stop}, "usage": {"output_tokens": USED.1}}),
    );
    events.push(json!({"type": "message_stop"}));
    events
        .iter()
        .map(|event| format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap()))
        .collect()
}

fn chat_events(body: &Value, reply: &Reply) -> Vec<String> {
    let (text, calls, why) = parts(reply);
    let stop = match why {
        "tools" => "tool_calls",
        "cut" => "length",
        "refused" => "content_filter",
        _ => "stop",
    };
    let chunk = |delta: Value, stop: Value| json!({"object": "chat.completion.chunk", "model": body["model"], "choices": [{"index": 0, "delta": delta, "finish_reason": stop}]});
    let (first, second) = halves(&text);
    let mut events = vec![chunk(json!({"role": "assistant", "content": ""}), Value::Null)];
    for part in [first, second] {
        events.push(chunk(json!({"content": part}), Value::Null));
    }
    for (n, (name, input)) in calls.into_iter().enumerate() {
        let function = json!({"name": name, "arguments": ""});
        let call =
            json!({"index": n, "id": format!("call_{}", fresh()), "type": "function", "function": function});
        events.push(chunk(json!({"tool_calls": [call]}), Value::Null));
        let input = input.to_string();
        let (a, b) = halves(&input);
        for part in [a, b] {
            let call = json!({"index": n, "function": {"arguments": part}});
            events.push(chunk(json!({"tool_calls": [call]}), Value::Null));
        }
    }
    events.push(chunk(json!({}), json!(stop)));
    let usage = json!({"prompt_tokens": USED.0, "completion_tokens": USED.1, "prompt_tokens_details": {"cached_tokens": 20}});
    events.push(
        json!({"object": "chat.completion.chunk", "model": body["model"], "choices": [], "usage": usage}),
    );
    let mut lines: Vec<String> = events.iter().map(|event| format!("data: {event}\n\n")).collect();
    lines.insert(1, ": a comment\n\n".to_owned());
    lines.push("data: [DONE]\n\n".to_owned());
    lines
}

fn ollama_lines(body: &Value, reply: &Reply) -> Vec<String> {
    let (text, calls, why) = parts(reply);
    let line = |message: Value| json!({"model": body["model"], "message": message, "done": false});
    let (first, second) = halves(&text);
    let mut lines: Vec<Value> =
        [first, second].map(|part| line(json!({"role": "assistant", "content": part}))).to_vec();
    lines.extend(calls.into_iter().map(|(name, input)| {
        let call = json!({"function": {"name": name, "arguments": input}});
        line(json!({"role": "assistant", "content": "", "tool_calls": [call]}))
    }));
    let reason = if why == "cut" { "length" } else { "stop" };
    lines.push(json!({
        "model": body["model"], "message": {"role": "assistant", "content": ""}, "done": true, "done_reason": reason,
        "prompt_eval_count": USED.0, "eval_count": USED.1,
    }));
    lines.iter().map(|line| format!("{line}\n")).collect()
}

const PROPOSAL: &str = "## Architecture\n\nA line. Rationale: asked for.\n\n## Files\n\n- `src/app.txt`\n- `tests/app_test.sh`\n\n\
    ## Alternatives\n\n- none: rejected\n\n## Test strategy\n\n- the line is there\n\n## Confidence\n\n\
    | Axis | Score |\n|---|---|\n| Task understanding | 0.95 |\n| Solution completeness | 0.9 |\n\
    | Risk coverage | 0.9 |\n\n## Risks\n\n- None.\n\nSTATUS: DONE\n";
const MADE: &str = "I added the line and its test.\n\nSTATUS: DONE\n";
const APPROVED: &str = "VERDICT: APPROVED\nFINDINGS: 0\n\nSTATUS: DONE\n";

/// Keys no file and no command line may ever show.
const KEY: &str = "sk-canary-e7c1f0a94b7d";
const WRONG_KEY: &str = "sk-canary-of-another-host";

fn say(text: &str) -> Reply {
    Reply::Say(text.to_owned())
}

fn calls(calls: &[(&'static str, Value)]) -> Reply {
    Reply::Use(calls.to_vec())
}

/// What a Maker does: looks, changes one file in place, writes another, and runs the test.
fn work() -> Vec<Reply> {
    vec![
        calls(&[
            ("list", json!({})),
            ("read", json!({"path": "src/app.txt"})),
            ("search", json!({"text": "line 20"})),
        ]),
        calls(&[
            ("edit", json!({"path": "src/app.txt", "old": "line 20\n", "new": "line 20\nmade\n"})),
            ("write", json!({"path": "tests/app_test.sh", "content": "grep -q made src/app.txt\n"})),
        ]),
        calls(&[("run", json!({"command": "sh tests/app_test.sh && echo it holds"}))]),
        say(MADE),
    ]
}

const PROVIDERS: [&str; 3] = ["anthropic", "openai", "ollama"];

const QUICK: &str = "retries:\n  busy_waits_seconds: [0]\nlimits:\n  silence_seconds: 600\nmodels:\n  retry_waits_seconds: [0]\n  keys: [\"127.0.0.1=KEY_OF_MINE\"]\n";

/// A test whose user has a key for this server and for others.
fn test(provider: &str, server: &Server) -> (Test, String) {
    let test = Test::new().config(QUICK).env("KEY_OF_MINE", KEY);
    match provider {
        "anthropic" => (
            test.env("ANTHROPIC_API_KEY", WRONG_KEY).env("ANTHROPIC_BASE_URL", &server.address),
            "anthropic".to_owned(),
        ),
        "openai" => (
            test.env("OPENAI_API_KEY", WRONG_KEY).env("ANTHROPIC_API_KEY", WRONG_KEY),
            format!("openai:gpt-5@{}/v1", server.address),
        ),
        _ => (
            test.env("OLLAMA_HOST", server.address.trim_start_matches("http://"))
                .env("OPENAI_API_KEY", WRONG_KEY),
            "ollama".to_owned(),
        ),
    }
}

fn lines<'a>(outcome: &'a Outcome, kind: &str, who: &str) -> Vec<&'a Value> {
    outcome.journal.iter().filter(|line| line["type"] == kind && line["agent"] == who).collect()
}

/// Every file beneath a folder that has one of the keys in it.
fn files_with_keys(folder: &Path) -> Vec<String> {
    files_with(folder, &[KEY, WRONG_KEY])
}

fn files_with(folder: &Path, words: &[&str]) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => found.extend(files_with(&path, words)),
            Ok(kind) if kind.is_file() => {
                let bytes = std::fs::read(&path).unwrap_or_default();
                let has = |key: &str| bytes.windows(key.len()).any(|window| window == key.as_bytes());
                if words.iter().any(|word| has(word)) {
                    found.push(path.display().to_string());
                }
            }
            Ok(_) | Err(_) => {}
        }
    }
    found
}

#[test]
fn issue_4_a_whole_run_lands_with_each_provider() {
    each(PROVIDERS, |provider| {
        let server = Server::new(&[
            ("creator", &[calls(&[("read", json!({"path": "src/app.txt"}))]), say(PROPOSAL)]),
            ("maker", &work()),
            (
                "guardian",
                &[
                    calls(&[
                        ("write", json!({"path": "evil.txt", "content": "evil"})),
                        ("run", json!({"command": "echo evil > src/evil.txt"})),
                        ("read", json!({"path": "/etc/hostname"})),
                        ("no_such_tool", json!({})),
                    ]),
                    say(APPROVED),
                ],
            ),
        ]);
        let (test, spec) = test(provider, &server);
        let outcome = test.go(&["--agent", &spec, "--auto-merge"]).ended("merged", "approved", 0);
        assert!(test.read("src/app.txt").ends_with("line 20\nmade\n"), "{outcome}");
        assert!(!test.repo.join("evil.txt").exists() && !test.repo.join("src/evil.txt").exists());
        for who in ["creator", "maker", "guardian"] {
            let complete = lines(&outcome, "agent.complete", who);
            let [complete] = complete.as_slice() else { panic!("{provider} {who}: {outcome}") };
            let asked = server.asked_by(who).len() as u64;
            let mut tokens = json!({"input": USED.0 * asked, "output": USED.1 * asked});
            if provider != "ollama" {
                tokens["cache_read"] = json!(20 * asked);
            }
            if provider == "anthropic" {
                tokens["cache_write"] = json!(10 * asked);
            }
            assert_eq!(complete["data"]["tokens"], tokens, "{provider} {who}");
            assert!(
                !complete["data"]["notes"].to_string().contains("read-only"),
                "{who} changed its checkout"
            );
            let cost = complete["data"]["estimated_cost_usd"].as_f64().unwrap();
            assert_eq!(cost > 0.0, provider != "ollama", "BX-16 {provider}: {cost}");
        }
        // A reader is offered no tool that changes anything, and told so when it tries.
        let guardian = server.asked_by("guardian");
        let offered = guardian[0].body["tools"].to_string();
        assert!(offered.contains("\"search\"") && !offered.contains("\"run\""), "{provider}: {offered}");
        let told = guardian[1].body.to_string();
        for words in ["your role may read", "outside of the working copy", "there is no tool of that name"] {
            assert!(told.contains(words), "{provider}: '{words}' is not in {told}");
        }
        let stream = outcome.artifact(&format!(
            "attempts/{}-guardian/stream.jsonl",
            lines(&outcome, "agent.start", "guardian")[0]["seq"]
        ));
        assert!(stream.contains("\"denied\""), "{stream}");
        let made = server.asked_by("maker");
        let last = made.last().unwrap().body.to_string();
        for words in ["src/app.txt:20: line 20", "20\\tline 20", "tests/", "is changed", "it holds"] {
            assert!(last.contains(words), "{provider}: '{words}' is not in {last}");
        }
        let shown = outcome.stderr.contains(&server.address);
        assert_eq!(
            shown,
            provider != "ollama",
            "a place that is not the usual one is told: {}",
            outcome.stderr
        );
    });
}

#[test]
fn r5_i9_m_s7_a_key_goes_to_its_host_and_is_written_nowhere() {
    each(PROVIDERS, |provider| {
        let spill = "env; cat /proc/self/environ";
        let server = Server::new(&[
            ("creator", &[say(PROPOSAL)]),
            ("maker", &[vec![calls(&[("run", json!({"command": spill}))])], work()].concat()),
            ("guardian", &[Reply::Refuse(401, "", "no"), say(APPROVED)]),
        ]);
        let (test, spec) = test(provider, &server);
        let mut lines = Vec::new();
        let arguments = test.arguments("Add a line", &["--agent", &spec, "--auto-merge"]);
        let arguments = as_strs(&arguments);
        let outcome = test.during(&arguments, |child| {
            while child.try_wait().unwrap().is_none() {
                lines.extend(running(""));
                std::thread::sleep(Duration::from_millis(5));
            }
        });
        assert_eq!(outcome.code, 31, "{outcome}");
        let loops = lines.iter().filter(|line| line.contains("__model") && line.contains(&server.address));
        assert!(loops.count() > 0, "{provider}: the loop was seen at work");
        assert!(!lines.iter().any(|line| line.contains("sk-canary")), "no key on a command line");
        assert_eq!(files_with_keys(&test.base()), Vec::<String>::new(), "{provider}");
        assert!(!outcome.stderr.contains("sk-canary") && !outcome.stdout.contains("sk-canary"));
        for asked in server.asked() {
            let head = asked.head.to_lowercase();
            let wanted = match provider {
                "anthropic" => format!("x-api-key: {KEY}"),
                _ => format!("authorization: bearer {KEY}"),
            };
            assert!(head.contains(&wanted) && !head.contains(WRONG_KEY), "{provider}: {head}");
            assert!(!asked.body.to_string().contains("sk-canary"), "{provider}: a command saw a key");
        }
    });
}

#[test]
fn r_11_a_key_that_a_provider_echoes_is_written_nowhere() {
    each(PROVIDERS, |provider| {
        let server = Server::new(&[("creator", &[Reply::Refuse(401, "", KEY)])]);
        let (test, spec) = test(provider, &server);
        let arguments = test.arguments("Add a line", &["--agent", &spec, "--auto-merge"]);
        let outcome = test.run(&as_strs(&arguments));
        assert_eq!(outcome.code, 31, "{outcome}");
        assert!(outcome.stderr.contains("***"), "{outcome}");
        assert!(!outcome.stderr.contains("sk-canary") && !outcome.stdout.contains("sk-canary"), "{provider}");
        assert_eq!(files_with_keys(&test.base()), Vec::<String>::new(), "{provider}");
    });
}

/// Clients and commands that repeat the key or the login they were given, as a provider's error does.
#[test]
fn r_11_a_key_that_a_client_repeats_is_written_nowhere() {
    const LOGIN: &str = "at-0a1b2c3d4e5f6g7h8i9j-canary";
    let say = "printf '{\"type\":\"result\",\"is_error\":true,\"result\":\"invalid %s, %.16s… %s\"}\\n'";
    let rows = [
        ("claude", "claude", "ANTHROPIC_API_KEY"),
        ("codex", "codex", "CODEX_API_KEY"),
        ("cmd:sh {base}/bin/mine", "mine", "KEY_OF_MINE"),
    ];
    each(rows, |(agent, program, variable)| {
        let test = Test::new().unsandboxed().env(variable, KEY).config(QUICK);
        let test = test.config("agents:\n  env: [KEY_OF_MINE]\n");
        let bin = test.base().join("bin");
        std::fs::create_dir_all(&bin).unwrap();
        let home = test.base().join("home/.codex");
        std::fs::create_dir_all(&home).unwrap();
        std::fs::write(home.join("auth.json"), format!("{{\"tokens\":{{\"access_token\":\"{LOGIN}\"}}}}"))
            .unwrap();
        let login = "$(cat \"$CODEX_HOME/auth.json\" 2> /dev/null | tr -d '{}\"')";
        let script = format!(
            "#!/bin/sh\nif [ \"$1\" = --version ]; then echo 1.0; exit; fi\ncat > /dev/null\n\
             {say} \"${variable}\" \"${variable}\" \"{login}\"\necho \"401 ${variable}\" >&2\nexit 1\n"
        );
        std::fs::write(bin.join(program), script).unwrap();
        test.sh(&format!("chmod +x {}", bin.join(program).display()));
        let test = test.env("PATH", format!("{}:/usr/bin:/bin", bin.display()));
        let agent = agent.replace("{base}", &test.base().display().to_string());
        let outcome = test.go(&["--agent", &agent]);
        assert_ne!(outcome.code, 0, "{outcome}");
        assert!(!outcome.to_string().contains("sk-canary"), "{outcome}");
        assert_eq!(
            files_with(&test.base(), &[KEY, &KEY[..16]]),
            Vec::<String>::new(),
            "{program}: {outcome}"
        );
        assert_eq!(files_with(&test.repo, &[LOGIN]), Vec::<String>::new(), "{program}");
        let kept = files_with(&test.repo.join(".archeflow"), &["invalid ***, ***"]);
        assert!(!kept.is_empty(), "{program}: what it said is kept: {outcome}");
    });
}

#[test]
fn m_s6_a_key_of_one_host_is_not_sent_to_another() {
    let server = Server::new(&[("creator", &[say("no key was asked for")])]);
    let test = Test::new().env("OPENAI_API_KEY", WRONG_KEY);
    let spec = format!("openai:x@{}", server.address);
    let _ = test.go(&["--agent", &spec, "--auto-merge"]);
    assert!(!server.asked().is_empty(), "it was asked, without a key");
    assert!(server.asked().iter().all(|asked| !asked.head.contains("canary")));
}

#[test]
fn m_g8_m_s6_a_redirect_is_not_followed() {
    each([301, 302, 303, 307, 308], |status| {
        let other = Server::new(&[("creator", &[say(PROPOSAL)])]);
        let header = format!("location: {}/v1/messages", other.address);
        let server = Server::new(&[("creator", &[Reply::Refuse(status, header.leak(), "")])]);
        let (test, spec) = test("anthropic", &server);
        let outcome = test.go(&["--agent", &spec, "--auto-merge"]).ended("failed", "agent_failures", 30);
        assert!(outcome.to_string().contains("redirect"), "{outcome}");
        assert!(other.asked().is_empty(), "{status}: the other host heard of it");
    });
}

#[test]
fn m_s6_nothing_is_asked_without_encryption_or_by_a_repositorys_wish() {
    for (spec, words) in [
        ("openai:x@http://example.org", "https://"),
        ("openai:x@http://127.0.0.1.example.org/v1", "https://"),
        ("openai:x@ftp://127.0.0.1", "no address"),
        ("ollama@https://example.org", "allow_remote"),
        ("ollama@http://10.0.0.1", "https://"),
    ] {
        Test::new().go(&["--agent", spec]).refused(2, &[words, spec]);
    }
    let server = Server::new(&[]);
    for yaml in [
        format!("agents:\n  default: openai:x@{}\n", server.address),
        format!("agents:\n  guardian: anthropic@{}\n", server.address),
        format!("models:\n  ollama:\n    base_url: {}\n", server.address),
        "models:\n  keys: [\"127.0.0.1=HOME\"]\n".to_owned(),
        "models:\n  ollama:\n    allow_remote: true\n".to_owned(),
    ] {
        let test = Test::new().env("OPENAI_API_KEY", KEY).env("ANTHROPIC_API_KEY", KEY);
        test.file(".archeflow/config.yaml", &yaml);
        test.file(
            ".env",
            format!("ANTHROPIC_BASE_URL={0}\nOPENAI_BASE_URL={0}\nOLLAMA_HOST={0}\n", server.address),
        );
        test.commit("A host of the repository's choice");
        test.go(&["--agent", "ollama", "--auto-merge"])
            .refused(2, &[".archeflow/config.yaml:", "a repository can't"]);
        assert!(server.asked().is_empty(), "{yaml}");
    }
}

#[test]
fn af_138_a_correction_resumes_the_same_session() {
    each(PROVIDERS, |provider| {
        let stray = calls(&[("write", json!({"path": "src/stray.txt", "content": "stray"}))]);
        let [look, change, run, made] = work().try_into().unwrap_or_else(|_| panic!("four steps"));
        let server = Server::new(&[
            ("creator", &[say(PROPOSAL)]),
            (
                "maker",
                &[
                    look,
                    change,
                    stray,
                    run,
                    made.clone(),
                    calls(&[("run", json!({"command": "rm src/stray.txt"}))]),
                    made,
                ],
            ),
            ("guardian", &[say(APPROVED)]),
        ]);
        let (test, spec) = test(provider, &server);
        let outcome = test.go(&["--agent", &spec, "--auto-merge"]).ended("merged", "approved", 0);
        let starts = lines(&outcome, "agent.start", "maker");
        assert_eq!(starts[1]["data"]["purpose"], "correct", "{outcome}");
        let complete = lines(&outcome, "agent.complete", "maker");
        assert_eq!(complete[0]["data"]["session"]["id"], complete[1]["data"]["session"]["id"]);
        let (first, second) =
            (&complete[0]["data"]["tokens"]["input"], &complete[1]["data"]["tokens"]["input"]);
        assert_eq!((first, second), (&json!(500), &json!(200)), "{provider}: each its own");
        let last = server.asked_by("maker").pop().unwrap().body.to_string();
        assert!(last.contains("stray.txt") && last.contains("# Correction"), "{provider}: one conversation");
        assert!(!test.repo.join("src/stray.txt").exists());
    });
}

#[test]
fn m_g3_a_limit_that_passes_is_waited_for() {
    each(PROVIDERS, |provider| {
        let limited = Reply::Refuse(429, "retry-after: 0", "slow down");
        let server = Server::new(&[
            ("creator", &[limited.clone(), Reply::Drop, limited.clone(), say(PROPOSAL)]),
            ("maker", &[vec![Reply::Refuse(529, "", "overloaded")], work()].concat()),
            ("guardian", &[limited.clone(), limited, say(APPROVED)]),
        ]);
        let (test, spec) = test(provider, &server);
        let test = test.config(&QUICK.replace("[0]", "[0, 0, 0]"));
        let outcome = test.go(&["--agent", &spec, "--auto-merge"]).ended("merged", "approved", 0);
        assert_eq!(outcome.times("creator/"), 1, "{provider}: our own retry was enough\n{outcome}");
        let tokens = &lines(&outcome, "agent.complete", "creator")[0]["data"]["tokens"];
        let least = if provider == "ollama" { 100 } else { 200 };
        assert!(tokens["input"].as_u64() >= Some(least), "{provider}: what broke off is counted: {tokens}");
        assert!(tokens["output"].as_u64() > Some(20) || provider == "ollama", "{provider}: {tokens}");
    });
}

#[test]
fn m_g2_m_g4_m_g7_faults_of_a_provider_are_distinguished_within_our_clocks() {
    let long = "prompt is too long: 250000 tokens > 200000 maximum";
    let rows = [
        ("401", Reply::Refuse(401, "", "invalid key"), ("stopped", "not_signed_in", 31), "auth"),
        ("429 for ever", Reply::Refuse(429, "", "slow down"), ("stopped", "provider_busy", 31), "rate_limit"),
        ("quota", Reply::Refuse(429, "", "insufficient_quota"), ("stopped", "provider_busy", 31), "quota"),
        ("500 for ever", Reply::Refuse(500, "", "oh"), ("stopped", "provider_busy", 31), "overload"),
        ("too long", Reply::Refuse(400, "", long), ("failed", "agent_failures", 30), "context_too_long"),
        ("404", Reply::Refuse(404, "", "no such model"), ("failed", "agent_failures", 30), "refused"),
        ("hangs", Reply::Hang, ("failed", "agent_failures", 30), "network"),
        ("stalls", Reply::Stall, ("failed", "agent_failures", 30), "network"),
        ("drops", Reply::Drop, ("failed", "agent_failures", 30), "network"),
        (
            "a page",
            Reply::Page("text/html", "<html>hello</html>"),
            ("failed", "agent_failures", 30),
            "garbled",
        ),
        ("nothing", Reply::Page("application/json", ""), ("failed", "agent_failures", 30), "garbled"),
        (
            "other JSON",
            Reply::Page("application/json", "[1, 2]"),
            ("failed", "agent_failures", 30),
            "garbled",
        ),
        ("cut off", Reply::Stopped("cut"), ("failed", "agent_failures", 30), "garbled"),
        ("declined", Reply::Stopped("refused"), ("failed", "agent_failures", 30), "refused"),
        ("says nothing", say(" "), ("failed", "agent_failures", 30), "garbled"),
    ];
    let all = rows.iter().flat_map(|row| PROVIDERS.map(|provider| (provider, row.clone())));
    // Ollama has no word for declining.
    let all = all.filter(|(provider, row)| !(*provider == "ollama" && row.0 == "declined"));
    each(all, |(provider, (what, reply, (status, reason, code), kind))| {
        let waits = matches!(reply, Reply::Hang | Reply::Stall);
        let server = Server::new(&[("creator", &[reply])]);
        let (mut test, spec) = test(provider, &server);
        if waits {
            test = test.config(&QUICK.replace("silence_seconds: 600", "silence_seconds: 2"));
        }
        let outcome = test.go(&["--agent", &spec, "--auto-merge"]);
        let said = (outcome.json["status"].as_str(), outcome.json["reason"].as_str(), outcome.code);
        assert_eq!(said, (Some(status), Some(reason), code), "{provider} {what}: {outcome}");
        let kinds: Vec<&Value> = outcome
            .journal
            .iter()
            .map(|line| &line["data"]["kind"])
            .filter(|kind| kind.is_string())
            .collect();
        assert!(kinds.iter().any(|found| *found == kind), "{provider} {what}: {kinds:?} {outcome}");
    });
}

#[test]
fn m_g1_a_server_that_is_not_there_is_a_matter_of_the_network() {
    each(PROVIDERS, |provider| {
        let gone = Server { address: "http://127.0.0.1:1".to_owned(), shared: Arc::default() };
        let (test, spec) = test(provider, &gone);
        let outcome = test.go(&["--agent", &spec]).ended("failed", "agent_failures", 30);
        assert!(
            outcome.journal.iter().any(|line| line["data"]["kind"] == "network"),
            "{provider}: {outcome}"
        );
    });
}

#[test]
fn issue_4_a_missing_key_stops_the_run_and_says_what_to_do() {
    let outcome = Test::new().go(&["--agent", "anthropic"]).ended("stopped", "not_signed_in", 31);
    assert!(outcome.to_string().contains("ANTHROPIC_API_KEY"), "{outcome}");
    let outcome = Test::new().go(&["--agent", "openai:x@https://openrouter.ai/api/v1"]);
    let outcome = outcome.ended("stopped", "not_signed_in", 31);
    assert!(outcome.to_string().contains("openrouter.ai=VARIABLE"), "{outcome}");
}

#[test]
fn issue_4_the_only_model_of_a_server_is_taken() {
    let one = r#"{"object": "list", "data": [{"id": "tiny"}]}"#;
    let two = r#"{"object": "list", "data": [{"id": "tiny"}, {"id": "huge"}]}"#;
    for (models, asked, words) in [(one, 1, "tiny"), (two, 0, "tiny, huge"), ("{}", 0, "names no model")] {
        let server = Server::new(&[
            ("models", &[Reply::Page("application/json", models)]),
            ("creator", &[Reply::Refuse(401, "", "enough")]),
        ]);
        let (test, _) = test("openai", &server);
        let outcome = test.go(&["--agent", &format!("openai@{}", server.address)]);
        let creator = server.asked_by("creator");
        assert_eq!(creator.len(), asked, "{models}: {outcome}");
        assert!(
            creator.iter().all(|asked| asked.body["model"] == "tiny" && asked.path == "/v1/chat/completions")
        );
        assert!(asked == 1 || outcome.to_string().contains(words), "{outcome}");
    }
}

#[test]
fn issue_4_turns_have_an_end() {
    let again = calls(&[("list", json!({}))]);
    let server = Server::new(&[("creator", &[again])]);
    let (test, spec) = test("openai", &server);
    let test = test.config(&QUICK.replace("models:\n", "models:\n  max_turns: 3\n"));
    let outcome = test.go(&["--agent", &spec]).ended("failed", "agent_failures", 30);
    let asked = server.asked_by("creator");
    assert_eq!(asked.len(), 6, "three requests in each of two attempts: {outcome}");
    assert_eq!(asked[2].body["tool_choice"], "none");
    assert!(asked[2].body.to_string().contains("your last use of tools"));
}

#[test]
fn i4_a_budget_is_never_undercut() {
    each(["anthropic", "openai"], |provider| {
        let server = Server::new(&[
            ("creator", &[calls(&[("list", json!({}))]), Reply::Drop, say(PROPOSAL)]),
            ("maker", &work()),
            ("guardian", &[say(APPROVED)]),
        ]);
        let (test, spec) = test(provider, &server);
        let outcome =
            test.go(&["--agent", &spec, "--auto-merge", "--budget", "5"]).ended("merged", "approved", 0);
        let requests = server.asked().len() as u64;
        // The cheapest anybody could charge: every request at the price of the cheapest model with all of it cached.
        let (cheapest_input, cheapest_output) = (0.005, 0.4);
        let charged = (cheapest_input * (USED.0 * requests) as f64
            + cheapest_output * (USED.1 * requests) as f64)
            / 1e6;
        let cost = outcome.json["cost_usd"].as_f64().unwrap();
        assert!(cost >= charged, "{provider}: {cost} for {requests} requests");
        let tokens: u64 =
            outcome.events("agent.complete").iter().filter_map(|line| line["tokens"]["input"].as_u64()).sum();
        assert!(tokens >= USED.0 * requests, "{provider}: {tokens} tokens for {requests} requests");
    });
}

#[test]
fn issue_4_a_stopped_loop_leaves_nothing_running() {
    let word = format!("left-behind-by-a-loop-{}", std::process::id());
    let stuck = format!("touch {word}; echo made >> src/app.txt; setsid tail -f {word} & tail -f {word}");
    let server = Server::new(&[
        ("creator", &[say(PROPOSAL)]),
        ("maker", &[vec![calls(&[("run", json!({"command": stuck}))])], work()].concat()),
        ("guardian", &[say(APPROVED)]),
    ]);
    let (test, spec) = test("openai", &server);
    let test = test.config("models:\n  retry_waits_seconds: [0]\n");
    let arguments = test.arguments("Add a line", &["--agent", &spec, "--auto-merge"]);
    let arguments = as_strs(&arguments);
    let stopped = test.during(&arguments, |child| {
        let begun = Instant::now();
        while running(&format!("-f\0{word}")).is_empty() {
            assert!(begun.elapsed() < LONG, "no command ran");
            std::thread::sleep(Duration::from_millis(20));
        }
        signal(child, "TERM");
    });
    assert_eq!(stopped.code, 143, "{stopped}");
    assert_eq!(running(&format!("-f\0{word}")), [""; 0], "something was left running");
    assert!(test.git(["log", "--all", "-p"]).contains("+made"), "I2: what it had done is kept");
}

/// A small model that nobody scripted: what it says is mostly nonsense, and nonsense has to be told as such.
///
/// ```sh
/// ARCHEFLOW_REAL_MODEL=http://127.0.0.1:8080 cargo test -p archeflow --test e2e real_small_model -- --ignored
/// ```
#[test]
#[ignore = "needs a server with a small model: ARCHEFLOW_REAL_MODEL=http://127.0.0.1:<port>"]
fn issue_4_a_real_small_model_answers_a_skeptics_brief() {
    let url = std::env::var("ARCHEFLOW_REAL_MODEL").expect("ARCHEFLOW_REAL_MODEL names the server");
    let doubt = "src/app.txt:1 | WARNING | reliability | It may break | Guard it | `line 1`";
    let test = Test::new().play(&review("guardian", "REJECTED", &[doubt])).unshadowed();
    let skeptic = format!("skeptic=openai@{url}");
    let outcome = test.go(&["--workflow", "standard", "--agent-for", &skeptic, "--auto-merge"]);
    assert!(outcome.times("skeptic/") > 0, "the Skeptic was asked: {outcome}");
    let complete = lines(&outcome, "agent.complete", "skeptic");
    let failed = lines(&outcome, "agent.failed", "skeptic");
    assert_eq!(
        complete.len() + failed.len(),
        outcome.times("skeptic/"),
        "every attempt has an end: {outcome}"
    );
    for line in failed {
        let seq = &line["data"]["start_seq"];
        let stream = outcome.artifact(&format!("attempts/{seq}-skeptic/stream.jsonl"));
        assert_eq!(line["data"]["kind"], "garbled", "{outcome}");
        assert!(stream.contains("\"type\":\"answer\"") && stream.contains("\"type\":\"used\""), "{stream}");
    }
    assert!([0, 14].contains(&outcome.code), "{outcome}");
}
