//! Conversations with real agents, played again: the recordings are in `captures/acp`, what is read from them stands in
//! `docs/agents.md`.

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::path::{Path, PathBuf};

use archeflow_core::event::Failure;
use archeflow_host::acp::{AcpAction, AcpTask, Permission, Talk};
use archeflow_host::client_output::{ClientOutput, own};
use serde_json::{Value, json};

#[path = "common/page.rs"]
mod page;

use page::rows;

type Result<T = ()> = std::result::Result<T, Box<dyn Error>>;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/captures/acp")
}

fn task(writes: bool, resumes: Option<&str>) -> AcpTask {
    AcpTask {
        permission: Permission { writes, places: vec!["/repo".into()] },
        tree: "/repo".into(),
        resumes: resumes.map(str::to_owned),
        brief: "The brief.".to_owned(),
        transcripts: Vec::new(),
    }
}

/// A conversation and all that came of it.
struct Played {
    talk: Talk,
    /// What was said to the agent, by method; answers under the empty name.
    said: Vec<(String, Value)>,
    heard: ClientOutput,
    notes: Vec<String>,
    over: bool,
}

impl Played {
    fn begin(task: AcpTask) -> Played {
        let (talk, out) = Talk::begin(task);
        let mut played =
            Played { talk, said: Vec::new(), heard: ClientOutput::default(), notes: Vec::new(), over: false };
        played.act(out);
        played
    }

    fn hear(&mut self, line: &str) {
        if !self.over {
            let out = self.talk.hear(line);
            self.act(out);
        }
    }

    fn act(&mut self, out: Vec<AcpAction>) {
        for out in out {
            match out {
                AcpAction::Say(message) => {
                    let method = message["method"].as_str().unwrap_or_default().to_owned();
                    self.said.push((method, message));
                }
                AcpAction::Tell(line) => {
                    let line = serde_json::from_str(&line.print()).unwrap_or_default();
                    self.notes.extend(own::hear(&line, &mut self.heard));
                }
                AcpAction::End => self.over = true,
            }
        }
    }

    /// The number under which we asked for this.
    fn number(&self, method: &str) -> Option<u64> {
        self.said.iter().find(|(said, _)| said == method)?.1["id"].as_u64()
    }

    /// Plays a recording: the agent's answers get the numbers of our own questions. What was not asked then is granted.
    fn play(&mut self, recording: &str) -> Result {
        let path = root().join(format!("{recording}.jsonl"));
        let text = std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        let mut methods = BTreeMap::new();
        for line in text.lines() {
            let (side, line) = line.split_at_checked(4).ok_or("a line without a side")?;
            let mut message: Value = serde_json::from_str(line)?;
            if side == ">>> " {
                let method = message["method"].as_str().unwrap_or_default().to_owned();
                if method == "session/cancel" {
                    let out = self.talk.cancel();
                    self.act(out);
                }
                if !method.is_empty() {
                    methods.insert(message["id"].to_string(), method);
                }
            } else if message["method"].is_null() {
                let method = methods.get(&message["id"].to_string()).ok_or("an answer to no question")?;
                let Some(number) = self.number(method) else { continue };
                message["id"] = json!(number);
                self.hear(&message.to_string());
            } else {
                self.hear(line);
            }
            for granted in ["session/set_mode", "session/set_config_option"] {
                let asked = self.number(granted).filter(|_| !methods.values().any(|known| known == granted));
                if let Some(number) = asked {
                    self.hear(&json!({"jsonrpc": "2.0", "id": number, "result": {}}).to_string());
                }
            }
        }
        Ok(())
    }

    /// The word of the table.
    fn fault(&self) -> Result<String> {
        let named = |kind: Failure| {
            serde_json::to_value(kind).map(|name| name.as_str().unwrap_or_default().to_owned())
        };
        Ok(match &self.heard.fault {
            Some(fault) => named(fault.kind)?,
            None if !self.heard.finished => "unfinished".to_owned(),
            None => "-".to_owned(),
        })
    }

    fn mode(&self) -> &str {
        let set = |(method, _): &&(String, Value)| method.starts_with("session/set_");
        self.said.iter().find(set).map_or("-", |(_, message)| {
            let params = &message["params"];
            params["modeId"].as_str().or_else(|| params["value"].as_str()).unwrap_or("-")
        })
    }
}

#[test]
fn issue_4_recordings_of_agents_are_read_as_the_page_says() -> Result {
    let rows = rows("### How agents that speak ACP are read")?;
    assert!(rows.len() > 20, "{} rows", rows.len());
    for row in &rows {
        let [recording, who, _, mode, refused, fault, answer, tokens, model] = row.as_slice() else {
            return Err(format!("{row:?} has not nine cells").into());
        };
        let mut played = Played::begin(task(who == "Maker", None));
        played.play(recording)?;
        let heard = &played.heard;
        assert_eq!(played.mode(), mode, "{recording}: mode");
        let dash = |text: String| if text.is_empty() { "-".to_owned() } else { text };
        assert_eq!(dash(heard.denied.join("; ")), *refused, "{recording}: refused");
        assert_eq!(played.fault()?, *fault, "{recording}: fault");
        assert_eq!(dash(heard.answer.lines().next().unwrap_or_default().to_owned()), *answer, "{recording}");
        let told = heard.tokens.map(|tokens| {
            format!("{} {} {} {}", tokens.input, tokens.output, tokens.cache_read, tokens.cache_write)
        });
        assert_eq!(dash(told.unwrap_or_default()), *tokens, "{recording}: tokens");
        assert_eq!(dash(heard.model.clone()), *model, "{recording}: model");
        let goes_on = recording.starts_with("goose") || recording == "opencode-stuck";
        assert!(played.over != (fault == "unfinished" && goes_on), "{recording}: end");
    }
    Ok(())
}

#[test]
fn no_recording_is_forgotten() -> Result {
    let told: BTreeSet<_> = rows("### How agents that speak ACP are read")?
        .iter()
        .map(|row| format!("{}.jsonl", row[0]))
        .collect();
    let there: std::io::Result<BTreeSet<_>> = std::fs::read_dir(root())?
        .map(|entry| entry.map(|entry| entry.file_name().to_string_lossy().into_owned()))
        .collect();
    assert_eq!(told, there?);
    Ok(())
}

#[test]
fn issue_4_people_see_what_an_agent_does() -> Result {
    for (recording, writes, wanted) in [
        (
            "claude-works",
            true,
            &[
                "I will create the file.",
                "edits /repo/hello.txt",
                "runs wc -c hello.txt",
                "Done: hello.txt has 6 bytes.",
            ][..],
        ),
        (
            "opencode-works",
            true,
            &[
                "I will create the file.",
                "edits /repo/hello.txt",
                "runs wc -c hello.txt",
                "Done: hello.txt has 6 bytes.",
            ][..],
        ),
        (
            "gemini-reads",
            false,
            &[
                "was refused Writing to evil.txt",
                "I do it.",
                "was refused echo evil > evil.txt; echo evil > src/evil.txt",
                "VERDICT: APPROVED",
            ][..],
        ),
    ] {
        let mut played = Played::begin(task(writes, None));
        played.play(recording)?;
        assert_eq!(played.notes, wanted, "{recording}");
    }
    Ok(())
}

/// What no attempt may be charged for, and what every other one is.
#[test]
fn i4_an_attempt_that_was_turned_away_has_not_worked() -> Result {
    for (recording, worked) in [
        ("claude-401", false),
        ("codex-401", false),
        ("codex-429", false),
        ("gemini-401", false),
        ("goose-401", false),
        ("opencode-401", false),
        ("goose-works", true),
        ("gemini-works", true),
        ("opencode-stuck", true),
    ] {
        let mut played = Played::begin(task(true, None));
        played.play(recording)?;
        assert_eq!(played.heard.worked, worked, "{recording}");
    }
    Ok(())
}

fn answer(played: &mut Played, method: &str, result: &Value) -> Result {
    let number = played.number(method).ok_or_else(|| format!("{method} was not asked"))?;
    played.hear(&json!({"jsonrpc": "2.0", "id": number, "result": result, "error": null}).to_string());
    Ok(())
}

fn update(played: &mut Played, update: &Value) {
    let params = json!({"sessionId": "s", "update": update});
    played.hear(&json!({"jsonrpc": "2.0", "method": "session/update", "params": params}).to_string());
}

fn chunk(text: &str) -> Value {
    json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}})
}

fn greeting(loads: bool) -> Value {
    json!({"protocolVersion": 1, "agentCapabilities": {"loadSession": loads}})
}

/// A conversation up to where the turn begins.
fn asked(task: AcpTask) -> Result<Played> {
    let mut played = Played::begin(task);
    answer(&mut played, "initialize", &greeting(true))?;
    answer(&mut played, "session/new", &json!({"sessionId": "s"}))?;
    Ok(played)
}

#[test]
fn issue_4_no_files_and_no_terminals_are_offered_or_given() -> Result {
    let mut played = asked(task(true, None))?;
    let offered = &played.said[0].1["params"]["clientCapabilities"];
    assert_eq!(*offered, json!({"fs": {"readTextFile": false, "writeTextFile": false}, "terminal": false}));
    assert_eq!(played.said[1].1["params"], json!({"cwd": "/repo", "mcpServers": []}));
    for (id, method) in [
        (json!(7), "fs/read_text_file"),
        (json!("x"), "fs/write_text_file"),
        (json!(0), "terminal/create"),
        (json!(9), "session/request_permission"),
    ] {
        played.hear(&json!({"jsonrpc": "2.0", "id": id, "method": method}).to_string());
        let said = &played.said.last().ok_or("nothing was said")?.1;
        assert_eq!((&said["id"], &said["error"]["code"]), (&id, &json!(-32601)), "{method}");
    }
    Ok(())
}

#[test]
fn af_138_a_session_taken_up_again_repeats_nothing() -> Result {
    let mut played = Played::begin(task(true, Some("s")));
    answer(&mut played, "initialize", &greeting(true))?;
    assert_eq!(
        played.said[1].1["params"],
        json!({"sessionId": "s", "cwd": "/repo", "mcpServers": []}),
        "loaded"
    );
    update(&mut played, &chunk("What was said before."));
    update(&mut played, &json!({"sessionUpdate": "tool_call", "toolCallId": "t", "kind": "edit"}));
    answer(&mut played, "session/load", &json!({}))?;
    assert!(played.notes.is_empty() && !played.heard.worked, "{:?}", played.notes);
    update(&mut played, &chunk("Corrected."));
    answer(&mut played, "session/prompt", &json!({"stopReason": "end_turn"}))?;
    assert_eq!((played.heard.answer.as_str(), played.heard.session.as_str()), ("Corrected.", "s"));
    Ok(())
}

#[test]
fn af_138_only_a_session_that_can_be_loaded_is_reported() -> Result {
    for loads in [true, false] {
        let mut played = Played::begin(task(true, None));
        answer(&mut played, "initialize", &greeting(loads))?;
        answer(&mut played, "session/new", &json!({"sessionId": "s"}))?;
        assert_eq!(played.heard.session.is_empty(), !loads);
    }
    Ok(())
}

#[test]
fn issue_4_what_is_not_understood_changes_nothing() -> Result {
    let mut played = asked(task(false, None))?;
    let before = played.said.len();
    for line in [
        "",
        "Welcome to the agent!",
        "{",
        "[]",
        "null",
        "\u{feff}{}",
        r#"{"jsonrpc":"2.0","method":"_vendor/news","params":{"sessionId":"s"}}"#,
        r#"{"jsonrpc":"2.0","method":"session/update"}"#,
        r#"{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"_new"}}}"#,
        r#"{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"other","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"not ours"}}}}"#,
        r#"{"jsonrpc":"2.0","id":1,"result":{}}"#,
        r#"{"jsonrpc":"2.0","id":99,"result":{"stopReason":"end_turn"}}"#,
        r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error"}}"#,
    ] {
        played.hear(line);
    }
    update(
        &mut played,
        &json!({"sessionUpdate": "agent_thought_chunk", "content": {"type": "text", "text": "hm"}}),
    );
    update(&mut played, &json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "image"}}));
    assert!(!played.over && played.notes.is_empty() && played.said.len() == before);
    update(&mut played, &chunk("Still here."));
    answer(&mut played, "session/prompt", &json!({"stopReason": "end_turn"}))?;
    assert_eq!(played.heard.answer, "Still here.");
    Ok(())
}

#[test]
fn issue_4_the_answer_is_the_last_message() -> Result {
    let named = |id: &str, text: &str| json!({"sessionUpdate": "agent_message_chunk", "messageId": id, "content": {"type": "text", "text": text}});
    let tool = |id: &str| json!({"sessionUpdate": "tool_call", "toolCallId": id, "title": "x"});
    let late = json!({"sessionUpdate": "tool_call_update", "toolCallId": "a", "title": "summed up"});
    for (what, updates, wanted) in [
        ("in pieces", vec![chunk("one "), chunk("answer")], "one answer"),
        ("a tool between", vec![chunk("first"), tool("a"), chunk("last")], "last"),
        ("news of an old tool between", vec![tool("a"), chunk("one "), late, chunk("answer")], "one answer"),
        ("other names", vec![named("1", "first"), named("2", "la"), named("2", "st")], "last"),
        ("a tool at the end", vec![chunk("only"), tool("a")], "only"),
        ("an empty piece at the end", vec![chunk("first"), tool("a"), chunk("last"), chunk("")], "last"),
    ] {
        let mut played = asked(task(true, None))?;
        for one in &updates {
            update(&mut played, one);
        }
        answer(&mut played, "session/prompt", &json!({"stopReason": "end_turn"}))?;
        assert_eq!(played.heard.answer, wanted, "{what}");
    }
    Ok(())
}

#[test]
fn i11_an_answer_without_end_is_no_answer() -> Result {
    let mut played = asked(task(false, None))?;
    let piece = chunk(&"\u{1}".repeat(100_000));
    for _ in 0..30 {
        update(&mut played, &piece);
    }
    answer(&mut played, "session/prompt", &json!({"stopReason": "end_turn"}))?;
    assert_eq!((played.fault()?.as_str(), played.heard.answer.len()), ("garbled", 0));
    Ok(())
}

#[test]
fn issue_4_a_turn_is_called_off_once_and_only_if_there_is_one() -> Result {
    let mut early = Played::begin(task(true, None));
    assert_eq!(early.talk.cancel(), [AcpAction::End]);
    let mut played = asked(task(true, None))?;
    let out = played.talk.cancel();
    played.act(out);
    let (method, said) = played.said.last().ok_or("nothing was said")?;
    assert_eq!((method.as_str(), &said["params"]), ("session/cancel", &json!({"sessionId": "s"})));
    let options = json!([{"optionId": "yes", "kind": "allow_once"}]);
    let params =
        json!({"sessionId": "s", "toolCall": {"toolCallId": "t", "kind": "edit"}, "options": options});
    played.hear(
        &json!({"jsonrpc": "2.0", "id": 5, "method": "session/request_permission", "params": params})
            .to_string(),
    );
    let said = &played.said.last().ok_or("nothing was said")?.1;
    assert_eq!(said["result"]["outcome"], json!({"outcome": "cancelled"}), "nothing more is granted");
    answer(&mut played, "session/prompt", &json!({"stopReason": "cancelled"}))?;
    assert!(played.over && !played.heard.finished && played.heard.fault.is_none());
    Ok(())
}

#[test]
fn issue_4_another_version_of_the_protocol_is_not_guessed_at() -> Result {
    for version in [json!(2), Value::Null] {
        let mut played = Played::begin(task(true, None));
        answer(&mut played, "initialize", &json!({"protocolVersion": version}))?;
        assert!(played.over && played.said.len() == 1);
        assert_eq!(played.fault()?, "exit");
    }
    Ok(())
}

/// Some agents end their turn when one tool is refused. A reader has lost nothing by it.
#[test]
fn c_10_a_reader_that_stops_over_a_refusal_is_asked_to_continue() {
    let answer = |id: u64, result: Value| json!({"jsonrpc": "2.0", "id": id, "result": result}).to_string();
    let refused = || {
        let call = json!({"toolCallId": "t", "kind": "edit", "title": "edit app.txt"});
        let options =
            json!([{"optionId": "yes", "kind": "allow_once"}, {"optionId": "no", "kind": "reject_once"}]);
        let params = json!({"sessionId": "s", "toolCall": call, "options": options});
        json!({"jsonrpc": "2.0", "id": 70, "method": "session/request_permission", "params": params})
            .to_string()
    };
    let ended = json!({"stopReason": "end_turn", "_meta": {"quota": {"token_count": {"input_tokens": 10, "output_tokens": 1}}}});
    for (writes, stops, answers) in [(false, 1, true), (false, 3, true), (false, 4, false), (true, 1, false)]
    {
        let mut played = Played::begin(task(writes, None));
        played.hear(&answer(1, json!({"protocolVersion": 1})));
        played.hear(&answer(2, json!({"sessionId": "s"})));
        for turn in 0..stops {
            // A Maker is refused what would change its mode.
            let asked = if writes { refused().replace("\"edit\"", "\"switch_mode\"") } else { refused() };
            played.hear(&asked);
            played.hear(&answer(3 + turn, ended.clone()));
        }
        let text = json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "The answer."}});
        let params = json!({"sessionId": "s", "update": text});
        played.hear(&json!({"jsonrpc": "2.0", "method": "session/update", "params": params}).to_string());
        played.hear(&answer(3 + stops, ended.clone()));
        let prompts = played.said.iter().filter(|(method, _)| method == "session/prompt").count();
        assert_eq!(prompts as u64, if writes { 1 } else { 1 + stops.min(3) }, "{writes} {stops}");
        let kind = played.heard.fault.as_ref().map(|fault| fault.kind);
        assert_eq!(kind, (!answers).then_some(Failure::PermissionDenied), "{writes} {stops}");
        if answers {
            assert_eq!(played.heard.answer, "The answer.");
            let counted = played.heard.tokens.map(|tokens| (tokens.input, tokens.output));
            assert_eq!(counted, Some((10 * (stops + 1), stops + 1)), "all turns are counted");
        }
    }
}
