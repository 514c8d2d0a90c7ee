//! `archeflow mcp` with clients that do everything at once, too early, too late or not at all, and with users who set
//! limits.

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::control::WAITS;
use crate::harness::{Test, each, review, says};
use crate::mcp::{Client, FINDING, NEW, PROGRAM, choice, configured, result};
use crate::ui::{journal, wait_for_end};

const OLD: &str = "2025-11-25";
const GREETING: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#;

/// A Maker whose work costs three dollars.
const DEAR: &str = "== maker ==\nsh echo made >> src/app.txt; echo case >> tests/check_test.sh\ncommit Add\n\
    usage 1000 1000 3.00\nsay <<END\nDone.\n\nSTATUS: DONE\nEND\n\n";

fn run_to_rest(client: &mut Client, budget: u32) -> String {
    let started = client.call("run", json!({ "task": "Add a line", "budget": budget }));
    let id = started["run_id"].as_str().unwrap_or_else(|| panic!("{started}")).to_owned();
    client.wait(&id);
    id
}

fn accept(choice: &str) -> Value {
    json!({ "action": "accept", "content": { "choice": choice, "sure": true } })
}

/// A user whose client for the forge is this script.
fn with_forge(script: &str) -> Test {
    let test = configured("", "");
    let program = test.base().join("agents/gh");
    fs::write(&program, script.replace("{base}", &test.base().display().to_string())).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", test.base().join("agents").display(), std::env::var("PATH").unwrap());
    test.env("PATH", path)
}

#[test]
fn mc_23_calls_at_the_same_time_get_runs_of_their_own() {
    let test = configured("", "");
    let mut client = Client::open(&test, OLD);
    let task = |n: usize| format!("Rewrite the configuration loader so that it reads the file of module {n}");
    let calls: Vec<i32> = (0..4)
        .map(|n| {
            let arguments = json!({ "task": task(n), "budget": 1 });
            client.ask("tools/call", json!({ "name": "run", "arguments": arguments }))
        })
        .collect();
    for (n, call) in calls.into_iter().enumerate() {
        let answer = client.answer_to(call);
        let started = result(&answer);
        let id = started["run_id"].as_str().unwrap_or_else(|| panic!("{started}"));
        let begun = journal(&test, id);
        assert!(begun[0].to_string().contains(&task(n)), "{}", begun[0]);
    }
    assert_eq!(test.run_ids().len(), 4);
    for id in test.run_ids() {
        wait_for_end(&test, &id);
    }
    client.close();
}

/// The command may end with another exit code than 0, since the run waits again or the tests fail.
#[test]
fn mc_24_a_decision_that_was_carried_out_is_reported_so() {
    let asks = format!(
        "== maker attempt=1 cycle=1 ==\nsay <<END\nWhich colour?\n\nSTATUS: NEEDS_CONTEXT\nEND\n\n{}",
        review("guardian", "REJECTED", &[FINDING])
    );
    for version in [OLD, NEW] {
        let test = configured(&asks, "");
        let mut client = Client::open(&test, version);
        let id = run_to_rest(&mut client, 5);
        let decided = client.decide(&id, |question| {
            let choice = choice(question, "answer");
            json!({ "action": "accept", "content": { "choice": choice, "text": "Blue" } })
        });
        assert_eq!(decided["status"], "decided", "{decided}");
        let lines = wait_for_end(&test, &id);
        assert!(lines.iter().any(|line| line["type"] == "question.answered" && line["data"]["by"] == "mcp"));
        client.close();
    }

    let test = configured(DEAR, "");
    let mut client = Client::open(&test, OLD);
    let id = run_to_rest(&mut client, 1);
    let mut raise = |sure: bool| {
        client.decide(&id, |question| {
            let text = question["message"].as_str().unwrap();
            assert!(text.contains("limit from $1.00 to $"), "{text}");
            let choice = choice(question, "raise the budget");
            json!({ "action": "accept", "content": { "choice": choice, "sure": sure } })
        })
    };
    assert_eq!(raise(false)["status"], "not_confirmed");
    let decided = raise(true);
    assert_eq!(decided["status"], "decided", "{decided}");
    client.wait(&id);
    let continued = journal(&test, &id).into_iter().find(|line| line["type"] == "run.continued").unwrap();
    assert_eq!(continued["data"]["by"], "mcp");

    let test = configured("", "mcp:\n  decide: true\n");
    let mut client = Client::open(&test, OLD);
    let id = run_to_rest(&mut client, 5);
    test.file("tests/check.sh", "exit 1\n").commit("Break the tests");
    let decided = client.decide(&id, |question| accept(&choice(question, "land")));
    assert_eq!(decided["status"], "decided", "{decided}");
    assert_ne!(client.wait(&id)["status"], "merged");
}

#[test]
fn mc_25_work_that_is_slow_to_begin_is_working_and_stops_nobody() {
    let slow = "#!/bin/sh\nwhile [ ! -e {base}/go ]; do sleep 0.05; done\n\
        echo \"no: https://bob:$SECRET@example.org/x TOKEN=$SECRET\" >&2\nexit 1\n";
    let secret = format!("ghp_{}", "a1B2".repeat(9));
    let test = with_forge(slow).env("SECRET", &secret);
    let mut client = Client::open(&test, OLD);
    let of = json!({ "of": "pr", "ref": "7", "wait_s": 0 });
    let calls: Vec<i32> =
        (0..20).map(|_| client.ask("tools/call", json!({ "name": "review", "arguments": of }))).collect();
    let mut ids = Vec::new();
    for call in calls {
        let working = result(&client.answer_to(call));
        assert_eq!(working["status"], "working", "{working}");
        ids.push(working["run_id"].as_str().unwrap().to_owned());
    }
    let waits: Vec<i32> = ids
        .iter()
        .map(|id| client.ask("tools/call", json!({ "name": "wait", "arguments": { "run_id": id } })))
        .collect();
    // The others wait for a journal; this one does not.
    assert_eq!(client.call("status", json!({ "run_id": ids[0] }))["status"], "working");
    assert_eq!(client.call("status", json!({}))["runs"], json!([]));
    fs::write(test.base().join("go"), "").unwrap();
    for wait in waits {
        let failed = result(&client.answer_to(wait));
        assert!(failed["exit_code"].is_number() && failed["error"].is_string(), "{failed}");
        assert!(!failed.to_string().contains(&secret), "{failed}");
    }
    client.close();
}

#[test]
fn mc_26_a_pipe_is_no_patch() {
    let test = configured("", "");
    let pipe = test.base().join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let path = pipe.display().to_string();
    let typed = test.run(&["review", "--patch", &path]);
    assert_eq!(typed.code, 2, "{typed}");
    assert!(typed.stderr.contains("not a regular file") && typed.stderr.contains("--patch -"), "{typed}");
    // A shell's own pipe ends with its command.
    let words = format!("{PROGRAM} review --agent {} --patch <(git diff HEAD~0)", test.agent());
    let piped = test.command("bash").args(["-c", &words]).current_dir(&test.repo).output().unwrap();
    assert!(String::from_utf8_lossy(&piped.stderr).contains("holds no diff"), "{piped:?}");
    let mut client = Client::open(&test, NEW);
    for path in [path.as_str(), "/dev/zero", "/"] {
        let refused = client.call("review", json!({ "of": "patch", "ref": path }));
        assert_eq!(refused["exit_code"], 2, "{refused}");
    }
    client.close();
}

#[test]
fn mc_27_a_client_that_begins_wrongly_is_told_and_may_begin_again() {
    let test = configured("", "");
    let mut client = Client::silent(&test, OLD, json!({}));
    let notes = [
        json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }),
        json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 1 } }),
        json!({ "jsonrpc": "2.0", "method": "notifications/unknown" }),
        json!({ "jsonrpc": "2.0", "id": 77, "result": {} }),
        json!({ "jsonrpc": "2.0", "id": 78, "error": { "code": 1, "message": "x" } }),
    ];
    let future = json!({
        "io.modelcontextprotocol/protocolVersion": "2099-01-01", "io.modelcontextprotocol/clientCapabilities": {},
    });
    for (method, params, words) in [
        ("initialize", json!({}), "initialize can't be read"),
        (
            "initialize",
            json!({ "protocolVersion": "2025-11-25", "capabilities": { "elicitation": 5 }, "clientInfo": { "name": "x" } }),
            "'clientInfo'",
        ),
        ("initialize", json!({ "protocolVersion": 7 }), "'protocolVersion'"),
        ("tools/list", json!({}), "_meta"),
        ("tools/list", json!({ "_meta": future }), ""),
        ("no/such", json!({}), "_meta"),
    ] {
        let refused = client.request(method, params);
        let said = refused["error"]["message"].as_str().unwrap_or_else(|| panic!("{refused}"));
        assert!(said.contains(words) && !said.contains("Some(") && !said.contains("struct"), "{said}");
        notes.iter().for_each(|note| client.send(note));
    }
    assert!(client.request("ping", json!({}))["result"].is_object());
    client.write(&GREETING.replace("\"id\":1", "\"id\":\"a\""));
    let ready = client.until(|message| message["id"] == "a");
    assert_eq!(ready["result"]["serverInfo"]["name"], "archeflow", "{ready}");
    notes.iter().for_each(|note| client.send(note));
    assert_eq!(client.call("status", json!({}))["runs"], json!([]));
    let late = client.request("initialize", json!({ "capabilities": 3 }));
    assert!(late["error"]["message"].as_str().unwrap().contains("initialize can't be read"), "{late}");
    client.close();
}

#[test]
fn mc_28_of_an_answer_and_a_cancellation_the_first_counts() {
    let test = configured("", "mcp:\n  decide: true\n");
    let mut client = Client::open(&test, OLD);
    let id = run_to_rest(&mut client, 5);
    let before = test.journal_bytes(&id);
    let ask = |client: &mut Client| {
        let call = client.ask("tools/call", json!({ "name": "decide", "arguments": { "run_id": id } }));
        let question = client.until(|message| message["method"] == "elicitation/create");
        let answer = accept(&choice(&question["params"], "land"));
        let cancel =
            json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": call } });
        let answer = json!({ "jsonrpc": "2.0", "id": question["id"], "result": answer });
        (cancel, answer, question["id"].clone())
    };
    for is_slow in [true, false] {
        let (cancel, answer, question) = ask(&mut client);
        client.send(&cancel);
        if !is_slow {
            client.send(&answer);
        }
        let withdrawn = client.until(|message| message["method"] == "notifications/cancelled");
        assert_eq!(withdrawn["params"]["requestId"], question, "{withdrawn}");
        client.send(&answer);
        assert_eq!(client.call("status", json!({ "run_id": id }))["status"], "awaiting_merge");
        assert_eq!(test.journal_bytes(&id), before, "nothing was done");
    }
    let (cancel, answer, _) = ask(&mut client);
    client.send(&answer);
    client.send(&cancel);
    let landing = test.wait_for("merge.requested", None);
    assert_eq!(landing["data"]["by"], "mcp", "{landing}");
    assert_eq!(client.wait(&id)["status"], "merged");
    client.close();
}

#[test]
fn mc_29_the_users_own_limit_is_the_most_a_model_can_ask_for() {
    let test = configured("", "costs:\n  budget_usd: 2\n");
    let mut client = Client::open(&test, NEW);
    for (asked, counts) in [(500, 2), (1, 1)] {
        let started = client.call("run", json!({ "task": "Add a line", "budget": asked }));
        assert_eq!(started["budget"].is_string(), asked != counts, "{started}");
        let id = started["run_id"].as_str().unwrap();
        let begun = journal(&test, id)[0].to_string();
        assert!(begun.contains(&format!("\"budget_usd\":{counts}")), "{begun}");
        wait_for_end(&test, id);
    }
    client.close();
}

#[test]
fn mc_30_a_foreign_journal_is_shown_as_one() {
    let test = configured("", "mcp:\n  decide: true\n");
    let mut own = Client::open(&test, OLD);
    let id = run_to_rest(&mut own, 5);
    assert_eq!(own.call("wait", json!({ "run_id": id })).get("foreign"), None);
    own.close();
    // Somebody has committed it, and this is their repository.
    test.git(["add", "-Af", ".archeflow"]);
    test.git(["commit", "-q", "-m", "Journals"]);
    test.git(["clone", "-q", ".", "../clone"]);
    let mut client = Client::open_in(&test, &test.base().join("clone"), OLD);
    for tool in ["wait", "status", "findings", "why"] {
        let shown = client.call(tool, json!({ "run_id": id }));
        assert_eq!(shown["foreign"], true, "{tool}: {shown}");
        assert!(shown["note"].as_str().unwrap().contains("did not start"), "{shown}");
        assert!(!shown.to_string().contains("archeflow merge"), "{shown}");
    }
    for part in ["report", "findings", "why"] {
        let uri = format!("archeflow://run/{id}/{part}");
        let read = client.request("resources/read", json!({ "uri": uri }));
        let text = read["result"]["contents"][0]["text"].as_str().unwrap_or_default();
        assert!(text.contains("did not start"), "{part}: {read}");
    }
    let refused = client.call("decide", json!({ "run_id": id }));
    assert!(refused["error"].as_str().unwrap().contains("archeflow trust --run"), "{refused}");
    client.close();
}

#[test]
fn mc_31_an_amount_is_typed_and_damage_is_named() {
    let test = configured("", "costs:\n  budget_usd: 0\n");
    test.file("src/app.txt", "line 1\nline two\n");
    let mut client = Client::open(&test, OLD);
    let stopped = client.call("review", json!({}));
    let id = stopped["run_id"].as_str().unwrap_or_else(|| panic!("{stopped}")).to_owned();
    assert_eq!(client.wait(&id)["decision"]["choices"].as_array().map(Vec::len), None);
    for (text, status) in [("", "not_understood"), ("much", "not_understood"), ("5", "decided")] {
        let decided = client.decide(&id, |question| {
            assert!(
                question["requestedSchema"]["properties"]["text"]["description"]
                    .as_str()
                    .unwrap()
                    .contains("dollars")
            );
            let choice = choice(question, "parts that are left");
            json!({ "action": "accept", "content": { "choice": choice, "text": text } })
        });
        assert_eq!(decided["status"], status, "{decided}");
    }
    assert_eq!(client.wait(&id)["status"], "reviewed");

    let path = test.repo.join(format!(".archeflow/events/{id}.jsonl"));
    let whole = fs::read_to_string(&path).unwrap();
    fs::write(&path, whole.replacen('\n', "\nno line of a journal\n", 1)).unwrap();
    let damaged = client.call("wait", json!({ "run_id": id }));
    assert_eq!(damaged["status"], "damaged", "{damaged}");
    let refused = client.call("decide", json!({ "run_id": id }));
    assert!(refused["error"].as_str().unwrap().contains("can't be read to its end"), "{refused}");
    client.close();
}

#[test]
fn mc_32_a_rejection_without_evidence_is_visible() {
    let nowhere = FINDING.replace("src/app.txt:2", "src/none.txt:1");
    let test = configured(&review("guardian", "REJECTED", &[&nowhere]), "");
    test.file("src/app.txt", "line 1\nline two\n");
    let mut client = Client::open(&test, NEW);
    let reviewed = client.call("review", json!({}));
    let id = reviewed["run_id"].as_str().unwrap();
    for object in
        [client.wait(id), client.call("findings", json!({ "run_id": id, "file": "./src//none.txt" }))]
    {
        assert_eq!((&object["counts"]["advice"], &object["findings"]), (&1.into(), &json!([])), "{object}");
        assert_eq!(object["advice"][0]["description"], "The second line is wrong.", "{object}");
    }
    client.close();
}

#[test]
fn mc_33_what_is_not_new_is_left_out_and_counted() {
    let test = configured(&review("guardian", "REJECTED", &[FINDING]), "");
    test.file("src/app.txt", "line 1\nline two\n");
    let mut client = Client::open(&test, OLD);
    let first = client.call("review", json!({}));
    client.wait(first["run_id"].as_str().unwrap());
    let again = client.call("review", json!({ "since_last": true, "wait_s": 0 }));
    let news = client.wait(again["run_id"].as_str().unwrap());
    assert_eq!((&news["findings"], &news["counts"]["critical"]), (&json!([]), &1.into()), "{news}");
    assert!(news["since_last"].as_str().unwrap().starts_with("1 of the counted findings"), "{news}");
    client.close();
}

#[test]
fn mc_34_a_model_is_shown_the_runs_of_its_own_repository() {
    let test = configured("", "");
    let other = test.base().join("other");
    let lines = "line 1\n";
    test.own_repository(&other, &[("src/app.txt", lines), ("tests/check.sh", "true\n")]);
    let mut there = Client::open_in(&test, &other, OLD);
    let secret = there.call("run", json!({ "task": "Secret project Zeta", "budget": 5 }));
    there.wait(secret["run_id"].as_str().unwrap());
    let mut here = Client::open(&test, OLD);
    let listed = here.call("status", json!({}));
    assert_eq!(listed["runs"], json!([]), "{listed}");
    assert!(listed["elsewhere"].as_str().unwrap().starts_with("1 more wait"), "{listed}");
    assert!(!listed.to_string().contains("Zeta"), "{listed}");
    assert_eq!(there.call("status", json!({}))["runs"][0]["run_id"], secret["run_id"]);
}

#[test]
fn mc_35_what_the_user_allows_is_read_when_it_is_needed() {
    let test = configured("", "mcp:\n  decide: true\n");
    let mut client = Client::open(&test, OLD);
    let id = run_to_rest(&mut client, 5);
    let file = test.home().join(".config/archeflow/config.yaml");
    let yaml = fs::read_to_string(&file).unwrap();
    let forbid = || fs::write(&file, yaml.replace("decide: true", "decide: false")).unwrap();
    let before = test.journal_bytes(&id);
    let refused = client.decide(&id, |question| {
        let choice = choice(question, "land");
        forbid();
        accept(&choice)
    });
    assert_eq!(refused["status"], "not_allowed", "{refused}");
    client.decide(&id, |question| {
        let labels = question["requestedSchema"]["properties"]["choice"]["enum"].to_string().to_lowercase();
        assert!(!labels.contains("land"), "{labels}");
        json!({ "action": "decline" })
    });
    assert_eq!(test.journal_bytes(&id), before, "nothing was done");
    client.close();
}

#[test]
fn mc_37_a_client_that_does_not_read_does_not_keep_the_server() {
    let test = configured("", "");
    // It reads nothing at all, or has closed that side.
    each([true, false], |is_open| {
        let mut child = test
            .command(PROGRAM)
            .arg("mcp")
            .current_dir(&test.repo)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut to = child.stdin.take().unwrap();
        let output = child.stdout.take().filter(|_| is_open);
        writeln!(to, "{GREETING}").unwrap();
        for n in 2..40 {
            let list = json!({ "jsonrpc": "2.0", "id": n, "method": "tools/list" });
            // The server may have ended already.
            let _ = writeln!(to, "{list}");
        }
        if is_open {
            drop(to);
            assert!(child.wait().unwrap().success());
        } else {
            assert!(child.wait().unwrap().success());
            drop(to);
        }
        drop(output);
    });
}

#[test]
fn mc_38_an_id_is_used_for_one_request_at_a_time() {
    let test = configured(WAITS, "");
    let mut client = Client::open(&test, OLD);
    let started = client.call("run", json!({ "task": "Add a line", "budget": 5 }));
    let wait = json!({ "name": "wait", "arguments": { "run_id": started["run_id"] } });
    client.send(&json!({ "jsonrpc": "2.0", "id": 500, "method": "tools/call", "params": wait }));
    client.send(&json!({ "jsonrpc": "2.0", "id": 500, "method": "tools/list" }));
    let refused = client.until(|message| message.get("error").is_some());
    assert!(refused["error"]["message"].as_str().unwrap().contains("id 500"), "{refused}");
    assert!(refused["id"].is_null(), "{refused}");
    test.wait_for_file("working");
    fs::write(test.base().join("go"), "").unwrap();
    assert_eq!(result(&client.answer_to(500))["run_id"], started["run_id"]);
    client.send(&json!({ "jsonrpc": "2.0", "id": 500, "method": "tools/list" }));
    assert!(client.answer_to(500)["result"]["tools"].is_array());
    client.close();
}

#[test]
fn mc_39_what_hides_is_filtered_or_written_out() {
    let test = configured(&says("guardian", "VERDICT: APPROVED\nFINDINGS: 0\n\nSTATUS: DONE"), "");
    let hidden = "a\u{202e}b\u{e0041}c";
    test.file("src/app.txt", format!("line 1\n{hidden}\u{1b}[31m\n"));
    let mut client = Client::open(&test, NEW);
    let added = client.call("sprint", json!({ "action": "add", "task": hidden }));
    assert_eq!(added["item"]["task"], "abc", "{added}");
    let missing = client.call("sprint", json!({ "action": "add", "task": "x", "project": "nowhere" }));
    assert!(missing["error"].as_str().unwrap().contains("there is no folder"), "{missing}");
    assert_eq!(client.call("sprint", json!({}))["items"].as_array().unwrap().len(), 1);
    let reviewed = client.call("review", json!({}));
    let id = reviewed["run_id"].as_str().unwrap();
    client.wait(id);
    let read = client.request("resources/read", json!({ "uri": format!("archeflow://run/{id}/diff") }));
    let text = read["result"]["contents"][0]["text"].as_str().unwrap();
    assert!(text.contains("a⟨U+202E⟩b⟨U+E0041⟩c⟨U+001B⟩[31m"), "{text}");
    assert!(!text.contains('\u{202e}') && !text.contains('\u{1b}'), "{text}");
    client.close();
}
