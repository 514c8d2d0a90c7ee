//! `archeflow mcp` as a client speaks to it: JSON lines over standard input and output of the built program, in both eras of
//! the protocol.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{Receiver, channel};

use serde_json::{Value, json};

use crate::control::WAITS;
use crate::harness::{LONG, Test, each, review};
use crate::ui::{journal, wait_for_end};
use crate::user::printed;

pub(super) const PROGRAM: &str = env!("CARGO_BIN_EXE_archeflow");

pub(super) const FINDING: &str =
    "src/app.txt:2 | CRITICAL | reliability | The second line is wrong. | Put it right. | `line 2`";

/// Versions of the protocol, with a handshake and without.
const ERAS: [&str; 4] = ["2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"];
pub(super) const NEW: &str = "2026-07-28";

/// A client that has started the server.
pub(super) struct Client {
    pub(super) child: Child,
    to: Option<ChildStdin>,
    from: Receiver<Value>,
    version: &'static str,
    capabilities: Value,
    number: i32,
    /// What came while something else was waited for.
    kept: Vec<Value>,
}

impl Client {
    /// Without a word said.
    pub(super) fn silent(test: &Test, version: &'static str, capabilities: Value) -> Client {
        Client::silent_in(test, &test.repo, version, capabilities)
    }

    fn silent_in(test: &Test, folder: &Path, version: &'static str, capabilities: Value) -> Client {
        let mut child = test
            .command(PROGRAM)
            .arg("mcp")
            .current_dir(folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let to = child.stdin.take();
        let out = BufReader::new(child.stdout.take().unwrap());
        let (tell, from) = channel();
        std::thread::spawn(move || {
            for line in out.lines().map_while(Result::ok) {
                if tell.send(serde_json::from_str(&line).unwrap()).is_err() {
                    return;
                }
            }
        });
        Client { child, to, from, version, capabilities, number: 0, kept: Vec::new() }
    }

    pub(super) fn open_with(test: &Test, version: &'static str, capabilities: &Value) -> Client {
        Client::silent(test, version, capabilities.clone()).greeted()
    }

    /// For another repository of the user.
    pub(super) fn open_in(test: &Test, folder: &Path, version: &'static str) -> Client {
        Client::silent_in(test, folder, version, json!({ "elicitation": {} })).greeted()
    }

    fn greeted(mut self) -> Client {
        let (version, capabilities) = (self.version, self.capabilities.clone());
        let client = &mut self;
        if version == NEW {
            let found = client.request("server/discover", json!({}));
            let versions = found["result"]["supportedVersions"].as_array().unwrap();
            assert!(versions.contains(&NEW.into()), "{found}");
            return self;
        }
        let params = json!({
            "protocolVersion": version, "capabilities": capabilities, "clientInfo": { "name": "test", "version": "1" },
        });
        let ready = client.request("initialize", params);
        assert_eq!(ready["result"]["protocolVersion"], version, "{ready}");
        assert_eq!(ready["result"]["serverInfo"]["name"], "archeflow");
        client.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        self
    }

    /// A client whose user can be asked.
    pub(super) fn open(test: &Test, version: &'static str) -> Client {
        Client::open_with(test, version, &json!({ "elicitation": {} }))
    }

    pub(super) fn write(&mut self, line: &str) {
        let to = self.to.as_mut().unwrap();
        to.write_all(format!("{line}\n").as_bytes()).unwrap();
        to.flush().unwrap();
    }

    pub(super) fn send(&mut self, message: &Value) {
        self.write(&message.to_string());
    }

    /// Sends a request; gives its id.
    pub(super) fn ask(&mut self, method: &str, mut params: Value) -> i32 {
        self.number += 1;
        if self.version == NEW {
            params["_meta"]["io.modelcontextprotocol/protocolVersion"] = NEW.into();
            params["_meta"]["io.modelcontextprotocol/clientInfo"] = json!({ "name": "test", "version": "1" });
            params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = self.capabilities.clone();
        }
        let id = self.number;
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        id
    }

    pub(super) fn answer_to(&mut self, id: i32) -> Value {
        self.until(|message| message["id"] == id && message.get("method").is_none())
    }

    pub(super) fn request(&mut self, method: &str, params: Value) -> Value {
        let id = self.ask(method, params);
        self.answer_to(id)
    }

    /// The structured result of a tool; the text says the same.
    pub(super) fn call(&mut self, tool: &str, arguments: Value) -> Value {
        let mut params = json!({ "name": tool });
        params["arguments"] = arguments;
        result(&self.request("tools/call", params))
    }

    pub(super) fn until(&mut self, is: impl Fn(&Value) -> bool) -> Value {
        if let Some(at) = self.kept.iter().position(&is) {
            return self.kept.remove(at);
        }
        loop {
            let message = self.from.recv_timeout(LONG);
            let message = message.unwrap_or_else(|_| panic!("nothing more comes after {:#?}", self.kept));
            if is(&message) {
                return message;
            }
            self.kept.push(message);
        }
    }

    /// Waits until a run is more than under way.
    pub(super) fn wait(&mut self, id: &str) -> Value {
        loop {
            let result = self.call("wait", json!({ "run_id": id }));
            if result["status"] != "working" {
                return result;
            }
        }
    }

    /// Calls `decide`, lets `person` answer what they are shown, and gives the result.
    pub(super) fn decide(&mut self, id: &str, person: impl FnOnce(&Value) -> Value) -> Value {
        let params = json!({ "name": "decide", "arguments": { "run_id": id } });
        if self.version == NEW {
            let asked = self.request("tools/call", params.clone());
            let wanted = &asked["result"];
            assert_eq!(wanted["resultType"], "input_required", "{asked}");
            let question = &wanted["inputRequests"]["decision"];
            assert_eq!(question["method"], "elicitation/create", "{asked}");
            let mut again = params;
            again["inputResponses"] = json!({ "decision": person(&question["params"]) });
            again["requestState"] = wanted["requestState"].clone();
            return result(&self.request("tools/call", again));
        }
        let call = self.ask("tools/call", params);
        let question = self.until(|message| message["method"] == "elicitation/create");
        let answer = person(&question["params"]);
        self.send(&json!({ "jsonrpc": "2.0", "id": question["id"], "result": answer }));
        let answer = self.answer_to(call);
        result(&answer)
    }

    pub(super) fn close(mut self) {
        drop(self.to.take());
        assert!(self.child.wait().unwrap().success());
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(super) fn result(answer: &Value) -> Value {
    let result = &answer["result"];
    let text: Value = serde_json::from_str(result["content"][0]["text"].as_str().unwrap_or("null")).unwrap();
    assert_eq!(text, result["structuredContent"], "{answer}");
    assert_eq!(result["isError"], text.get("error").is_some(), "{answer}");
    text
}

/// The user's own configuration names the agents, since a model can't.
pub(super) fn configured(scenes: &str, more: &str) -> Test {
    let test = Test::new().play(scenes);
    test.configure(&format!(
        "workflow: fast\ntest_command: sh tests/check.sh\nagents:\n  default: \"{}\"\n{more}",
        test.agent()
    ));
    test
}

/// The choice whose label has these words.
pub(super) fn choice(question: &Value, words: &str) -> String {
    let labels = question["requestedSchema"]["properties"]["choice"]["enum"].as_array().unwrap();
    let label = labels.iter().filter_map(Value::as_str).find(|label| label.to_lowercase().contains(words));
    label.unwrap_or_else(|| panic!("no choice with {words} in {question}")).to_owned()
}

#[test]
fn mc_10_a_model_has_a_change_reviewed_in_every_era() {
    each(ERAS, |version| {
        // The reviewer answers when the client was told that the review is under way.
        let gate = "\nsh while [ ! -e {base}/go ]; do sleep 0.05; done\nsay";
        let test = configured(&review("guardian", "REJECTED", &[FINDING]).replacen("\nsay", gate, 1), "");
        test.file("src/app.txt", "line 1\nline two\n");
        let mut client = Client::open(&test, version);
        let tools = client.request("tools/list", json!({}));
        let names: Vec<&str> = tools["result"]["tools"]
            .as_array()
            .unwrap()
            .iter()
            .filter_map(|tool| tool["name"].as_str())
            .collect();
        assert_eq!(names, ["review", "run", "wait", "status", "findings", "why", "sprint", "decide"]);

        let params = json!({ "name": "review", "arguments": {}, "_meta": { "progressToken": "p" } });
        let call = client.ask("tools/call", params);
        let progress = client.until(|message| message["method"] == "notifications/progress");
        assert_eq!(progress["params"]["progressToken"], "p");
        std::fs::write(test.base().join("go"), "").unwrap();
        let answer = client.answer_to(call);
        let mut reviewed = result(&answer);
        if reviewed["status"] == "working" {
            reviewed = client.wait(reviewed["run_id"].as_str().unwrap());
        }
        assert_eq!(
            (reviewed["status"].as_str(), &reviewed["counts"]["critical"]),
            (Some("reviewed"), &1.into())
        );
        let finding = &reviewed["findings"][0];
        for (field, value) in [
            ("severity", "CRITICAL"),
            ("file", "src/app.txt"),
            ("description", "The second line is wrong."),
            ("fix", "Put it right."),
        ] {
            assert_eq!(finding[field], value, "{reviewed}");
        }
        assert_eq!((&finding["line"], &finding["reviewers"]), (&2.into(), &json!(["guardian"])));

        let id = reviewed["run_id"].as_str().unwrap().to_owned();
        let only = json!({ "run_id": id, "severity": "critical", "file": "src" });
        assert_eq!(client.call("findings", only)["findings"][0], *finding);
        let none = json!({ "run_id": id, "file": "README.md" });
        assert_eq!(client.call("findings", none)["findings"], json!([]));
        assert!(!client.call("why", json!({ "run_id": id }))["decisions"].as_array().unwrap().is_empty());
        assert_eq!(client.call("status", json!({ "run_id": id }))["status"], "reviewed");
        assert_eq!(client.call("status", json!({}))["runs"][0]["run_id"], id);
        let again = client.call("review", json!({ "of": "staged" }));
        assert_eq!(again["status"], "nothing_to_review", "{again}");

        for (part, words) in
            [("report", "# "), ("diff", "+line two"), ("findings", "\"evidence\""), ("why", "guardian")]
        {
            let read =
                client.request("resources/read", json!({ "uri": format!("archeflow://run/{id}/{part}") }));
            let text = read["result"]["contents"][0]["text"].as_str().unwrap_or_default();
            assert!(text.contains(words), "{part}: {read}");
        }
        let runs = client.request("resources/read", json!({ "uri": "archeflow://runs" }));
        assert!(runs["result"]["contents"][0]["text"].as_str().unwrap().contains(&id), "{runs}");
        let templates = client.request("resources/templates/list", json!({}));
        assert_eq!(templates["result"]["resourceTemplates"].as_array().unwrap().len(), 4);
        assert_eq!(
            client.request("resources/list", json!({}))["result"]["resources"][0]["uri"],
            "archeflow://runs"
        );
        assert_eq!(
            client.request("prompts/list", json!({}))["result"]["prompts"].as_array().unwrap().len(),
            2
        );
        let prompt = json!({ "name": "run", "arguments": { "task": "Fix it", "budget": "3" } });
        let text =
            client.request("prompts/get", prompt)["result"]["messages"][0]["content"]["text"].to_string();
        assert!(text.contains("Fix it") && text.contains("3 dollars"), "{text}");
        client.close();
    });
}

#[test]
fn mc_11_bad_input_gets_an_error_and_harms_nothing() {
    each(["2025-11-25", NEW], |version| {
        let test = configured(WAITS, "");
        let mut client = Client::silent(&test, version, json!({}));
        // Before anything was agreed on.
        for line in ["", "{", "[]", "null", r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#] {
            client.write(line);
        }
        let early = client.request("tools/list", json!({}));
        assert_eq!(early.get("error").is_some(), version != NEW, "{early}");
        drop(client);

        let mut client = Client::open(&test, version);
        let started = client.call("run", json!({ "task": "Add a line", "budget": 5 }));
        let id = started["run_id"].as_str().unwrap().to_owned();
        assert_eq!(started["status"], "working", "{started}");
        test.wait_for_file("working");
        let huge = format!("{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"{}\"}}", "x".repeat(5_000_000));
        for (line, code) in [
            ("{\"jsonrpc\": \"2.0\", \"id\": 1, ", -32700),
            ("not JSON", -32700),
            ("\u{feff}\u{202e}", -32700),
            ("[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}]", -32600),
            ("{\"jsonrpc\":\"1.0\",\"id\":1,\"method\":\"ping\"}", -32600),
            ("{\"id\":{},\"method\":7}", -32600),
            (huge.as_str(), -32600),
        ] {
            client.write(line);
            let error = client.until(|message| message.get("error").is_some());
            assert_eq!(error["error"]["code"], code, "{} {error}", &line[..line.len().min(60)]);
            assert!(error["error"]["message"].as_str().unwrap().len() < 400, "{error}");
        }
        for (method, params, code, words) in [
            ("tools/call", json!({ "name": "merge", "arguments": {} }), -32602, "known: review, run"),
            ("tools/call", json!({ "name": 7 }), -32602, "'name' has to be a text"),
            ("tools/call", json!({ "name": "status", "arguments": [] }), -32602, "'arguments' an object"),
            ("prompts/get", json!({ "name": "merge" }), -32602, "known: review, run"),
            ("prompts/get", json!({ "name": "run" }), -32602, "needs 'task'"),
            ("archeflow/merge", json!({}), -32601, "no method"),
        ] {
            let answer = client.request(method, params);
            assert_eq!(answer["error"]["code"], code, "{answer}");
            assert!(answer["error"]["message"].as_str().unwrap().contains(words), "{answer}");
        }
        for uri in ["archeflow://run/nope/report", "archeflow://run/../../x/why", "file:///etc/passwd", ""] {
            let answer = client.request("resources/read", json!({ "uri": uri }));
            assert!(answer["error"]["message"].as_str().unwrap().contains("no resource"), "{answer}");
        }
        for (tool, arguments, words) in [
            ("run", json!({ "task": "x" }), "'budget' is missing"),
            (
                "run",
                json!({ "task": "x", "budget": 1, "test_command": "true" }),
                "no argument 'test_command'",
            ),
            ("review", json!({ "verify": true }), "no argument 'verify'"),
            ("review", json!({ "of": "branch", "ref": "no-such-branch" }), "no-such-branch"),
            ("review", json!({ "of": "branch", "ref": "--write-baseline=x" }), "--write-baseline=x"),
            ("wait", json!({ "run_id": "../../etc", "wait_s": 0 }), "no run"),
            ("wait", json!({ "run_id": id, "wait_s": 1000 }), "from 0 to 50"),
            ("decide", json!({ "run_id": id, "answer": "yes" }), "no argument 'answer'"),
            ("why", json!({ "run_id": "nope" }), "no run 'nope'"),
        ] {
            let failed = client.call(tool, arguments);
            assert!(failed["error"].as_str().unwrap_or_default().contains(words), "{tool}: {failed}");
        }
        assert_eq!(client.call("decide", json!({ "run_id": id }))["status"], "nothing_to_decide");
        let working = client.call("wait", json!({ "run_id": id, "wait_s": 0 }));
        assert_eq!(working["status"], "working", "{working}");
        assert!(!working["progress"].as_array().unwrap().is_empty(), "{working}");
        fs::write(test.base().join("go"), "").unwrap();
        assert_eq!(client.wait(&id)["status"], "awaiting_merge");
        client.close();
    });
}

/// A person decides, by an answer that the client brings; the model has no way to.
#[test]
fn mc_12_a_person_lands_a_change_by_an_answer_in_the_client() {
    each(["2025-06-18", "2025-11-25", NEW], |version| {
        let test = configured("", "mcp:\n  decide: true\n");
        let mut client = Client::open(&test, version);
        let started = client.call("run", json!({ "task": "Add a line", "budget": 5 }));
        let id = started["run_id"].as_str().unwrap().to_owned();
        let waits = client.wait(&id);
        assert_eq!(waits["status"], "awaiting_merge", "{waits}");
        let commands = waits["decision"]["choices"].to_string();
        assert!(commands.contains("archeflow merge") && commands.contains("archeflow discard"), "{waits}");

        let before = test.journal_bytes(&id);
        let answers = [
            (json!({ "action": "decline" }), "declined"),
            (json!({ "action": "cancel" }), "declined"),
            (json!({ "action": "accept" }), "not_understood"),
            (
                json!({ "action": "accept", "content": { "choice": "9. Merge", "sure": true } }),
                "not_understood",
            ),
        ];
        for (answer, status) in answers {
            assert_eq!(client.decide(&id, |_| answer.clone())["status"], status, "{answer}");
        }
        let unsure = client.decide(&id, |question| {
            let text = question["message"].as_str().unwrap();
            assert!(text.contains("Add a line") && text.contains(&id), "{text}");
            json!({ "action": "accept", "content": { "choice": choice(question, "land"), "sure": false } })
        });
        assert_eq!(unsure["status"], "not_confirmed");
        assert_eq!(test.journal_bytes(&id), before, "nothing was done");

        let decided = client.decide(&id, |question| {
            json!({ "action": "accept", "content": { "choice": choice(question, "land"), "sure": true } })
        });
        assert_eq!(decided["status"], "decided", "{decided}");
        assert_eq!(client.wait(&id)["status"], "merged");
        let events = wait_for_end(&test, &id);
        let requested = events.iter().find(|line| line["type"] == "merge.requested").unwrap();
        assert_eq!(requested["data"]["by"], "mcp");
        assert!(test.read("src/app.txt").contains("made in cycle 1"));
        client.close();
    });
}

#[test]
fn mc_13_landing_is_typed_unless_the_user_allows_it() {
    each(["2025-11-25", NEW], |version| {
        let test = configured("", "");
        let mut client = Client::open(&test, version);
        let started = client.call("run", json!({ "task": "Add a line", "budget": 5 }));
        let id = started["run_id"].as_str().unwrap().to_owned();
        assert_eq!(client.wait(&id)["status"], "awaiting_merge");
        // The change can be given up in the client, and landed only where it is typed.
        let kept = client.decide(&id, |question| {
            let text = question["message"].as_str().unwrap();
            assert!(
                text.contains(&format!("type: archeflow merge {id}")) && text.contains("mcp.decide"),
                "{text}"
            );
            let labels =
                question["requestedSchema"]["properties"]["choice"]["enum"].to_string().to_lowercase();
            assert!(!labels.contains("merge") && !labels.contains("land"), "{labels}");
            json!({ "action": "accept", "content": { "choice": "1. Merge", "sure": true } })
        });
        assert_eq!(kept["status"], "not_understood");

        // A client that can't ask says what to type.
        let mut mute = Client::open_with(&test, version, &json!({}));
        let typed = mute.call("decide", json!({ "run_id": id }));
        assert_eq!(typed["status"], "person_has_to_type", "{typed}");
        assert_eq!(typed["choices"][0]["command"], format!("archeflow merge {id}"));
        assert!(typed["tell_the_person"].as_str().unwrap().contains("Type one of these"), "{typed}");
        assert!(journal(&test, &id).iter().all(|line| line["type"] != "merge.requested"));

        let gone = client.decide(&id, |question| {
            // Somebody else decides meanwhile.
            test.run(&["merge", &id]).ended("merged", "approved", 0);
            json!({ "action": "accept", "content": { "choice": choice(question, "give"), "sure": true } })
        });
        let status = gone["status"].as_str().unwrap();
        assert!(["moved", "nothing_to_decide"].contains(&status), "{gone}");
        assert_eq!(journal(&test, &id).last().unwrap()["data"]["status"], "merged");
    });
}

/// A word of the person's can land a change too, where a rejection is asked about.
#[test]
fn mc_13_passing_over_a_rejection_is_typed_as_well() {
    let nowhere = FINDING.replace("src/app.txt:2", "src/none.txt:1");
    let test = configured(&review("guardian", "REJECTED", &[&nowhere]), "");
    let mut client = Client::open(&test, NEW);
    let started = client.call("run", json!({ "task": "Add a line", "budget": 5 }));
    let id = started["run_id"].as_str().unwrap().to_owned();
    let waits = client.wait(&id);
    assert_eq!(
        (&waits["status"], &waits["question"]["kind"]),
        (&"awaiting_answer".into(), &"rejection".into())
    );
    let kept = client.decide(&id, |question| {
        let labels = question["requestedSchema"]["properties"]["choice"]["enum"].to_string().to_lowercase();
        assert!(!labels.contains("answer") && labels.contains("give it up"), "{labels}");
        json!({ "action": "accept", "content": { "choice": "1. Answer the question", "text": "land" } })
    });
    assert_eq!(kept["status"], "not_understood", "{kept}");
    client.close();
}

/// A file of a repository can't allow it.
#[test]
fn mc_13_no_repository_lets_a_change_land_in_a_client() {
    let test = Test::new();
    test.file(".archeflow/config.yaml", "mcp:\n  decide: true\n").commit("Configure");
    let shown = test.run(&["config", "show"]);
    assert!(shown.code != 0 || !shown.stdout.contains("mcp.decide = true"), "{shown}");
    let refused = test.play("").go(&[]);
    assert!(refused.code != 0 && refused.stderr.contains("mcp.decide"), "{refused}");
}

#[test]
fn mc_14_what_was_started_goes_on_without_the_server() {
    each([false, true], |killed| {
        let test = configured(WAITS, "");
        let mut client = Client::open(&test, "2025-11-25");
        let started = client.call("run", json!({ "task": "Add a line", "budget": 5 }));
        let id = started["run_id"].as_str().unwrap().to_owned();
        test.wait_for_file("working");
        client.ask("tools/call", json!({ "name": "wait", "arguments": { "run_id": id } }));
        if killed {
            client.child.kill().unwrap();
            client.child.wait().unwrap();
        } else {
            client.close();
        }
        fs::write(test.base().join("go"), "").unwrap();
        wait_for_end(&test, &id);
        let mut other = Client::open(&test, NEW);
        assert_eq!(other.wait(&id)["status"], "awaiting_merge");
        other.close();
    });
}

#[test]
fn mc_15_an_agent_of_a_run_gets_no_server() {
    let scene = format!(
        "== maker ==\nsh cd {{repo}}; {PROGRAM} mcp < /dev/null > {{base}}/said 2>&1; echo $? > {{base}}/code\n\
         sh cd {{repo}}; env -i HOME=$HOME PATH=$PATH setsid {PROGRAM} mcp < /dev/null; echo $? >> {{base}}/code\n\
         sh echo y >> src/app.txt; echo y >> tests/check_test.sh\ncommit Work\nsay <<END\nDone.\n\nSTATUS: DONE\nEND\n\n"
    );
    let test = Test::new().play(&scene);
    test.go(&["--auto-merge"]).ended("merged", "approved", 0);
    assert_eq!(fs::read_to_string(test.base().join("code")).unwrap(), "21\n21\n");
    assert!(fs::read_to_string(test.base().join("said")).unwrap().contains("can't serve coding agents"));
}

#[test]
fn mc_16_an_unapproved_repository_is_refused() {
    let test = configured("", "");
    test.file(".archeflow/config.yaml", "setup_command: touch ran\n").commit("Configure");
    let mut client = Client::open(&test, "2025-11-25");
    let refused = client.call("run", json!({ "task": "Add a line", "budget": 5 }));
    assert_eq!(refused["exit_code"], 20, "{refused}");
    assert!(refused["error"].as_str().unwrap().contains("archeflow trust"), "{refused}");
    assert!(test.run_ids().is_empty() && !test.repo.join("ran").exists());
    client.close();
}

#[test]
fn mc_17_a_task_is_proposed_and_approved_by_a_person() {
    let test = configured("", "");
    let mut client = Client::open(&test, NEW);
    assert_eq!(client.call("sprint", json!({}))["items"], json!([]));
    let added =
        client.call("sprint", json!({ "action": "add", "task": "--id=x $(touch y)", "priority": "P1" }));
    assert_eq!(
        (&added["item"]["status"], &added["item"]["priority"]),
        (&"proposed".into(), &"P1".into()),
        "{added}"
    );
    let listed = client.call("sprint", json!({ "action": "list" }));
    assert_eq!(
        (&listed["items"][0]["status"], &listed["items"][0]["task"]),
        (&"proposed".into(), &"--id=x $(touch y)".into())
    );
    let wrong = client.call("sprint", json!({ "action": "add", "task": "x", "priority": "P9" }));
    assert!(wrong["error"].as_str().unwrap().contains("P9"), "{wrong}");
    client.close();
}

#[test]
fn mc_18_a_folder_without_a_repository_is_named_and_no_secret_option_is_taken() {
    let test = Test::new();
    let elsewhere = test.base().join("tmp");
    let answer = |arguments: &[&str], folder: &std::path::Path, lines: &str| {
        let mut child = test
            .command(PROGRAM)
            .arg("mcp")
            .args(arguments)
            .current_dir(folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let _ = child.stdin.take().unwrap().write_all(lines.as_bytes());
        child.wait_with_output().unwrap()
    };
    // Nobody says a word.
    assert!(answer(&[], &test.repo, "").status.success());
    for option in [&["--config", "x.yaml"][..], &["--unsafe-no-sandbox"], &["--repo", "nowhere"]] {
        let output = answer(option, &test.repo, "");
        assert_eq!(output.status.code(), Some(2), "{option:?} {}", printed(&output));
    }
    let hello = json!({
        "jsonrpc": "2.0", "id": 1, "method": "initialize",
        "params": { "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } },
    });
    let call = json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": { "name": "review", "arguments": {} } });
    let output = answer(&[], &elsewhere, &format!("{hello}\n{call}\n"));
    assert!(printed(&output).contains("repository"), "{}", printed(&output));
}
