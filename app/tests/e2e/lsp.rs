//! `archeflow lsp` as an editor speaks to it: over standard input and output of the built program.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};

use serde_json::{Value, json};

use crate::harness::{LONG, Test, review};
use crate::user::printed;

const FINDING: &str =
    "src/app.txt:2 | CRITICAL | reliability | The second line is wrong. | Put it right. | `line two`";

/// An editor that has just started the server.
struct Editor {
    child: Child,
    to: Option<ChildStdin>,
    from: Receiver<Value>,
    number: i32,
    /// What came while something else was waited for.
    kept: Vec<Value>,
}

impl Editor {
    fn start(mut program: Command) -> Editor {
        let mut child = program
            .arg("lsp")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let to = child.stdin.take();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        let (tell, from) = channel();
        std::thread::spawn(move || {
            while let Some(message) = message(&mut out) {
                if tell.send(message).is_err() {
                    return;
                }
            }
        });
        Editor { child, to, from, number: 0, kept: Vec::new() }
    }

    /// An editor with this folder open and these capabilities.
    fn open(test: &Test, capabilities: Value) -> Editor {
        Editor::open_at(test, &test.repo, capabilities)
    }

    fn open_at(test: &Test, folder: &Path, capabilities: Value) -> Editor {
        let mut editor = Editor::start(test.command(env!("CARGO_BIN_EXE_archeflow")));
        let mut params = json!({ "processId": std::process::id(), "rootUri": uri(folder) });
        params["capabilities"] = capabilities;
        let ready = editor.request("initialize", params);
        assert_eq!(ready["result"]["serverInfo"]["name"], "archeflow", "{ready}");
        editor.note("initialized", json!({}));
        editor
    }

    fn write(&mut self, bytes: &[u8]) {
        let to = self.to.as_mut().unwrap();
        to.write_all(bytes).unwrap();
        to.flush().unwrap();
    }

    fn send(&mut self, message: &Value) {
        let body = message.to_string();
        self.write(format!("Content-Length: {}\r\n\r\n{body}", body.len()).as_bytes());
    }

    fn note(&mut self, method: &str, params: Value) {
        let mut message = json!({ "jsonrpc": "2.0", "method": method });
        message["params"] = params;
        self.send(&message);
    }

    /// Sends a request and gives the response.
    fn request(&mut self, method: &str, params: Value) -> Value {
        self.number += 1;
        let id = self.number;
        let mut message = json!({ "jsonrpc": "2.0", "id": id, "method": method });
        message["params"] = params;
        self.send(&message);
        self.until(|message| message["id"] == id && message.get("method").is_none())
    }

    /// Answers a request of the server.
    fn respond(&mut self, request: &Value, result: Value) {
        let mut message = json!({ "jsonrpc": "2.0", "id": request["id"] });
        message["result"] = result;
        self.send(&message);
    }

    /// The first message that is like this.
    fn until(&mut self, is: impl Fn(&Value) -> bool) -> Value {
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

    fn said(&mut self, method: &str) -> Value {
        self.until(|message| message["method"] == method)
    }

    /// The next diagnostics of a file.
    fn diagnostics(&mut self, file: &Path) -> Vec<Value> {
        let message = self.until(|message| {
            message["method"] == "textDocument/publishDiagnostics" && message["params"]["uri"] == uri(file)
        });
        message["params"]["diagnostics"].as_array().unwrap().clone()
    }

    fn edit(&mut self, file: &Path, version: u32, changes: Value) {
        let mut params = json!({ "textDocument": { "uri": uri(file), "version": version } });
        params["contentChanges"] = changes;
        self.note("textDocument/didChange", params);
    }

    fn open_file(&mut self, file: &Path, text: &str) {
        let document = json!({ "uri": uri(file), "languageId": "text", "version": 1, "text": text });
        self.note("textDocument/didOpen", json!({ "textDocument": document }));
    }

    /// The actions on a line.
    fn actions(&mut self, file: &Path, line: u32) -> Vec<Value> {
        let at = json!({ "line": line, "character": 0 });
        let params = json!({
            "textDocument": { "uri": uri(file) }, "range": { "start": at, "end": at },
            "context": { "diagnostics": [] },
        });
        self.request("textDocument/codeAction", params)["result"].as_array().unwrap().clone()
    }

    /// Does what an action says.
    fn execute(&mut self, action: &Value) -> Value {
        let command = if action["command"].is_object() { &action["command"] } else { action };
        let params = json!({ "command": command["command"], "arguments": command["arguments"] });
        self.request("workspace/executeCommand", params)
    }

    fn end(mut self) -> ExitStatus {
        assert_eq!(self.request("shutdown", Value::Null)["result"], Value::Null);
        self.note("exit", Value::Null);
        self.child.wait().unwrap()
    }
}

impl Drop for Editor {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn message(from: &mut impl BufRead) -> Option<Value> {
    let mut length = 0;
    loop {
        let mut line = String::new();
        if from.read_line(&mut line).ok()? == 0 {
            return None;
        }
        if line.trim().is_empty() {
            break;
        }
        length = line.trim().strip_prefix("Content-Length: ").map_or(length, |text| text.parse().unwrap());
    }
    let mut body = vec![0; length];
    from.read_exact(&mut body).ok()?;
    Some(serde_json::from_slice(&body).unwrap())
}

fn uri(path: &Path) -> String {
    format!("file://{}", path.display())
}

fn range(diagnostic: &Value) -> [u64; 4] {
    ["/range/start/line", "/range/start/character", "/range/end/line", "/range/end/character"]
        .map(|place| diagnostic.pointer(place).and_then(Value::as_u64).unwrap())
}

fn insert(line: u32, text: &str) -> Value {
    replace([line, 0, line, 0], text)
}

fn replace([line, column, to_line, to_column]: [u32; 4], text: &str) -> Value {
    let range = json!({
        "start": { "line": line, "character": column }, "end": { "line": to_line, "character": to_column },
    });
    json!([{ "range": range, "text": text }])
}

/// A repository with one finding at its second line, in uncommitted work.
fn reviewed(scenes: &str) -> (Test, PathBuf) {
    let test = Test::new().play(scenes);
    let text = test.read("src/app.txt").replace("line 2\n", "line two\n");
    test.file("src/app.txt", text);
    assert_eq!(test.look(&[]).code, 0);
    let file = test.repo.join("src/app.txt");
    (test, file)
}

fn with_choices() -> Value {
    json!({
        "window": { "showMessage": { "messageActionItem": {} }, "showDocument": { "support": true } },
        "textDocument": {
            "codeAction": { "codeActionLiteralSupport": {} },
            "publishDiagnostics": { "relatedInformation": true },
        },
    })
}

#[test]
fn u_16_findings_are_diagnostics_that_follow_their_lines() {
    let (test, file) = reviewed(&review("guardian", "REJECTED", &[FINDING]));
    let mut editor = Editor::open(&test, json!({}));
    let shown = editor.diagnostics(&file);
    assert_eq!(shown.len(), 1, "{shown:?}");
    assert_eq!((&shown[0]["severity"], &shown[0]["source"]), (&1.into(), &"archeflow".into()));
    assert_eq!(shown[0]["code"].as_str().map(str::len), Some(32), "{shown:?}");
    let said = shown[0]["message"].as_str().unwrap();
    assert!(said.starts_with("The second line is wrong.") && said.contains("guardian"), "{said}");
    assert_eq!(range(&shown[0]), [1, 0, 1, 8]);

    let text = test.read("src/app.txt");
    editor.open_file(&file, &text);
    // The file is as it was, so nothing is published before the first edit.
    editor.edit(&file, 2, insert(0, "one\ntwo\n"));
    assert_eq!(range(&editor.diagnostics(&file)[0]), [3, 0, 3, 8], "lines before it");
    editor.edit(&file, 3, replace([3, 0, 3, 0], "  "));
    assert_eq!(range(&editor.diagnostics(&file)[0]), [3, 2, 3, 10], "indented");
    editor.edit(&file, 4, replace([3, 0, 3, 10], "line 2"));
    let shown = editor.diagnostics(&file);
    assert_eq!(range(&shown[0]), [3, 0, 3, 6], "another line in its place");
    assert!(shown[0]["message"].as_str().unwrap().contains("has changed since the review"), "{shown:?}");
    editor.edit(&file, 5, replace([3, 0, 4, 0], ""));
    assert_eq!(editor.diagnostics(&file), Vec::<Value>::new(), "deleted");
    editor.edit(&file, 6, json!([{ "text": text.replace('\n', "\r\n") }]));
    let shown = editor.diagnostics(&file);
    assert_eq!((range(&shown[0]), shown.len()), ([1, 0, 1, 8], 1), "undone, with other line ends");

    // On disk the line is elsewhere; that counts when the file is closed.
    test.file("src/app.txt", format!("first\n{text}"));
    editor.note("textDocument/didClose", json!({ "textDocument": { "uri": uri(&file) } }));
    assert_eq!(range(&editor.diagnostics(&file)[0]), [2, 0, 2, 8]);
    test.file("src/app.txt", format!("first\nsecond\n{text}"));
    assert_eq!(range(&editor.diagnostics(&file)[0]), [3, 0, 3, 8], "changed by another program");
    fs::remove_file(&file).unwrap();
    assert_eq!(editor.diagnostics(&file), Vec::<Value>::new());
    assert_eq!(editor.end().code(), Some(0));
}

#[test]
fn u_16_columns_are_in_the_unit_that_was_agreed_on() {
    let row = "src/app.txt:2 | WARNING | reliability | The call `wrong()` fails. | Drop it. | `wrong()`, also README.md:1";
    let test = Test::new().play(&review("guardian", "REJECTED", &[row]));
    let text = test.read("src/app.txt").replace("line 2\n", "\té😀 wrong() 😀\n");
    test.file("src/app.txt", &text);
    assert_eq!(test.look(&[]).code, 0);
    let file = test.repo.join("src/app.txt");
    for (encodings, agreed, columns) in [
        (json!(null), "utf-16", [5, 12]),
        (json!(["utf-32", "utf-16"]), "utf-16", [5, 12]),
        (json!(["utf-16", "utf-8"]), "utf-8", [8, 15]),
    ] {
        let mut editor = Editor::start(test.command(env!("CARGO_BIN_EXE_archeflow")));
        let mut capabilities = with_choices();
        capabilities["general"] = json!({ "positionEncodings": encodings });
        let folders = json!([{ "uri": uri(&test.repo), "name": "repo" }]);
        let params = json!({ "processId": null, "workspaceFolders": folders, "capabilities": capabilities });
        let ready = editor.request("initialize", params);
        assert_eq!(ready["result"]["capabilities"]["positionEncoding"], agreed);
        editor.note("initialized", json!({}));
        let shown = editor.diagnostics(&file);
        assert_eq!(range(&shown[0]), [1, columns[0], 1, columns[1]], "{agreed}");
        assert_eq!(shown[0]["severity"], 2);
        let related = &shown[0]["relatedInformation"][0]["location"];
        assert_eq!(related["uri"], uri(&test.repo.join("README.md")), "{shown:?}");
        assert_eq!(related["range"]["start"]["line"], 0);
        // An edit behind the emoji, in the same unit.
        editor.open_file(&file, &text);
        let column = u32::try_from(columns[0]).unwrap() - 1;
        editor.edit(&file, 2, replace([1, column, 1, column], "é"));
        let moved = if agreed == "utf-8" { 2 } else { 1 };
        assert_eq!(range(&editor.diagnostics(&file)[0]), [1, columns[0] + moved, 1, columns[1] + moved]);
    }
}

#[test]
fn u_16_a_finding_is_accepted_for_a_reason() {
    let (test, file) = reviewed(&review("guardian", "REJECTED", &[FINDING]));
    let mut editor = Editor::open(&test, with_choices());
    assert_eq!(editor.diagnostics(&file).len(), 1);
    assert!(editor.actions(&file, 0).is_empty(), "another line");
    let actions = editor.actions(&file, 1);
    let titles: Vec<&str> = actions.iter().filter_map(|action| action["title"].as_str()).collect();
    assert_eq!(
        titles,
        ["Show evidence: The second line is wrong.", "Accept this finding…: The second line is wrong."]
    );
    assert_eq!(actions[1]["kind"], "quickfix");
    let baseline = test.repo.join(".archeflow/baseline.json");
    // Closing the question decides nothing, and neither does an answer that was not offered.
    for answer in [Value::Null, json!({ "title": "whatever" })] {
        editor.execute(&actions[1]);
        let question = editor.said("window/showMessageRequest");
        let words = question["params"]["message"].as_str().unwrap();
        assert!(words.contains("src/app.txt:2") && words.contains("archeflow review --run"), "{words}");
        editor.respond(&question, answer);
        assert_eq!(editor.actions(&file, 1).len(), 2, "it is open as before");
    }
    assert!(!baseline.exists());
    let mut empty = actions[1].clone();
    empty["command"]["arguments"][0]["reason"] = " ".into();
    assert!(editor.execute(&empty)["error"]["message"].as_str().unwrap().contains("reason"));

    editor.execute(&actions[1]);
    let question = editor.said("window/showMessageRequest");
    editor.respond(&question, json!({ "title": "intended" }));
    assert_eq!(editor.diagnostics(&file), Vec::<Value>::new());
    let read = || serde_json::from_slice::<Value>(&fs::read(&baseline).unwrap()).unwrap();
    assert_eq!(read()["accepted"][0]["reason"], "intended");
    let late = editor.execute(&actions[1]);
    assert!(late["error"]["message"].as_str().unwrap().contains("not open any more"), "{late}");

    // Taken back by hand, it is there again; and a reason of one's own is never an option.
    fs::remove_file(&baseline).unwrap();
    assert_eq!(editor.diagnostics(&file).len(), 1);
    let mut own = actions[1].clone();
    own["command"]["arguments"][0]["reason"] = "--fail-on $(touch x) `y` 'z'".into();
    editor.execute(&own);
    let told = editor.said("window/showMessage");
    assert!(told["params"]["message"].as_str().unwrap().starts_with("Accepted:"), "{told}");
    assert_eq!(editor.diagnostics(&file), Vec::<Value>::new());
    assert_eq!(read()["accepted"][0]["reason"], "--fail-on $(touch x) `y` 'z'");

    // A client that can't ask gets an action for each reason.
    fs::remove_file(&baseline).unwrap();
    let mut plain = Editor::open(&test, json!({}));
    assert_eq!(plain.diagnostics(&file).len(), 1);
    let actions = plain.actions(&file, 1);
    assert_eq!(actions.len(), 4, "{actions:?}");
    assert!(actions.iter().all(|action| action["command"].is_string()), "commands only: {actions:?}");
    plain.execute(&actions[1]);
    assert_eq!(plain.diagnostics(&file), Vec::<Value>::new());
    assert_eq!(read()["accepted"][0]["reason"], "false positive");
}

#[test]
fn u_16_accepting_goes_wrong_loudly() {
    let (test, file) = reviewed(&review("guardian", "REJECTED", &[FINDING]));
    let mut editor = Editor::open(&test, json!({}));
    editor.diagnostics(&file);
    let actions = editor.actions(&file, 1);
    let baseline = test.repo.join(".archeflow/baseline.json");
    fs::write(&baseline, "{ not json").unwrap();
    editor.execute(&actions[1]);
    let told = editor.said("window/showMessage");
    let words = told["params"]["message"].as_str().unwrap();
    assert!(words.starts_with("The finding was not accepted:") && words.contains("baseline"), "{words}");
    assert_eq!(editor.actions(&file, 1).len(), 4, "it is open as before");
    for wrong in [json!(null), json!([]), json!([7]), json!([{ "run": "../x" }])] {
        let params = json!({ "command": "archeflow.accept", "arguments": wrong });
        let answer = editor.request("workspace/executeCommand", params);
        assert!(answer["error"]["message"].is_string(), "{answer}");
    }
    let mut other = actions[1].clone();
    other["arguments"][0]["repository"] = "/".into();
    assert!(editor.execute(&other)["error"]["message"].is_string());
    other["command"] = "archeflow.other".into();
    assert!(editor.execute(&other)["error"]["message"].is_string());
}

#[test]
fn u_16_evidence_is_a_document() {
    let (test, file) = reviewed(&review("guardian", "REJECTED", &[FINDING]));
    for (capabilities, method) in [(with_choices(), "window/showDocument"), (json!({}), "window/showMessage")]
    {
        let mut editor = Editor::open(&test, capabilities);
        editor.diagnostics(&file);
        let action = editor.actions(&file, 1).remove(0);
        let command = if action["command"].is_object() { &action["command"] } else { &action };
        let params = json!({ "command": command["command"], "arguments": command["arguments"] });
        editor.send(
            &json!({ "jsonrpc": "2.0", "id": 99, "method": "workspace/executeCommand", "params": params }),
        );
        let told = editor.said(method);
        let answer = editor.until(|message| message["id"] == 99);
        let place = answer["result"]["uri"].as_str().unwrap();
        if method == "window/showDocument" {
            assert_eq!(told["params"]["uri"], place);
            editor.respond(&told, json!({ "success": true }));
        }
        let page = fs::read_to_string(place.strip_prefix("file://").unwrap()).unwrap();
        for words in [
            "# critical `reliability` at `src/app.txt:2`",
            "The second line is wrong.",
            "> 2 | line two",
            "Put it right.",
            "guardian",
        ] {
            assert!(page.contains(words), "{words}\n{page}");
        }
    }
}

#[test]
fn u_16_a_newer_review_replaces_an_older_one() {
    let other = "src/app.txt:5 | WARNING | quality | The fifth line is long. | Cut it. | `line 5`";
    let scenes = review("guardian", "REJECTED", &[FINDING])
        + &review("sage", "REJECTED", &[other])
        + &review("skeptic", "APPROVED", &[]);
    let (test, file) = reviewed(&scenes);
    let mut editor = Editor::open(&test, json!({}));
    assert_eq!(range(&editor.diagnostics(&file)[0])[0], 1);
    assert_eq!(test.look(&["--reviewers", "sage"]).code, 0);
    let shown = editor.diagnostics(&file);
    assert_eq!((shown.len(), range(&shown[0])[0]), (1, 4), "{shown:?}");
    assert_eq!(test.look(&["--reviewers", "skeptic"]).code, 0);
    assert_eq!(editor.diagnostics(&file), Vec::<Value>::new(), "nothing is open any more");

    // A journal that came with the files is not this user's, and is not shown unasked.
    let copy = Test::new();
    crate::user::printed(
        &copy
            .command("cp")
            .args(["-r".as_ref(), test.repo.join(".archeflow").as_os_str(), copy.repo.as_os_str()])
            .output()
            .unwrap(),
    );
    assert!(copy.repo.join(".archeflow/events/index.jsonl").exists());
    let mut editor = Editor::open(&copy, json!({}));
    editor.open_file(&copy.repo.join("src/app.txt"), "x");
    editor.request("shutdown", Value::Null);
    editor.note("exit", Value::Null);
    editor.kept.extend(editor.from.iter());
    assert!(editor.kept.is_empty(), "{:?}", editor.kept);
}

#[test]
fn u_16_hostile_findings_stay_text() {
    let bad = "src/app.txt:2 | WARNING | security | Evil \u{1b}[31m red\u{202e}txt <script>alert(1)</script> [x](command:y) \u{200b}end `line two` | ![](http://x) | `line two`";
    let outside = [
        "../../etc/passwd:1 | WARNING | security | Outside of the tree by dots. | Fix. | `root`",
        "/etc/passwd:1 | WARNING | security | Outside of the tree, absolute. | Fix. | `root`",
        "src/app.txt:4000000000 | WARNING | quality | Far behind the end. | Fix. | `line`",
    ];
    let (test, file) = reviewed(&review("guardian", "REJECTED", &[&[bad], &outside[..]].concat()));
    let mut editor = Editor::open(&test, with_choices());
    let shown = editor.diagnostics(&file);
    assert_eq!(shown.len(), 1, "{shown:?}");
    let said = shown[0]["message"].as_str().unwrap();
    assert!(said.contains("Evil [31m redtxt <script>"), "{said}");
    let unsafe_one = |c: char| c.is_control() && c != '\n' || "\u{202e}\u{200b}".contains(c);
    assert!(!said.chars().any(unsafe_one), "{said:?}");
    let actions = editor.actions(&file, 1);
    assert!(!actions.iter().any(|action| action["title"].as_str().unwrap().chars().any(unsafe_one)));
    let answer = editor.execute(&actions[0]);
    let page = fs::read_to_string(answer["result"]["uri"].as_str().unwrap().strip_prefix("file://").unwrap())
        .unwrap();
    assert!(
        !page.contains("<script>")
            && !page.replace("\\]", "").contains("](")
            && !page.chars().any(unsafe_one),
        "{page}"
    );
    assert_eq!(editor.end().code(), Some(0));
}

#[test]
fn u_16_odd_clients_do_no_harm() {
    let (test, file) = reviewed(&review("guardian", "REJECTED", &[FINDING]));
    let program = || test.command(env!("CARGO_BIN_EXE_archeflow"));
    let mut editor = Editor::start(program());
    let early = editor.request("textDocument/codeAction", json!({}));
    assert_eq!(early["error"]["code"], -32002, "{early}");
    editor.note("textDocument/didOpen", json!({}));
    editor.request("initialize", json!({ "capabilities": {} }));
    assert_eq!(editor.request("initialize", json!({}))["error"]["code"], -32600);
    editor.note("initialized", json!({}));
    assert_eq!(editor.request("textDocument/hover", json!({}))["error"]["code"], -32601);
    assert_eq!(editor.request("textDocument/codeAction", json!({ "range": 7 }))["error"]["code"], -32602);
    editor.write(b"Content-Length: 3\r\n\r\n{{{");
    editor.send(&json!({ "id": 77, "params": 1 }));
    let answer = editor.until(|message| message["id"] == 77);
    assert_eq!(answer["error"]["code"], -32600, "{answer}");
    for document in ["untitled:Untitled-1", "git:/x", "file://other/x", "file:///nonexistent/x", "file:///"] {
        let params =
            json!({ "textDocument": { "uri": document, "languageId": "", "version": 1, "text": "x" } });
        editor.note("textDocument/didOpen", params);
        let change =
            json!({ "textDocument": { "uri": document, "version": 2 }, "contentChanges": [{ "text": "" }] });
        editor.note("textDocument/didChange", change);
        let at = json!({ "line": 0, "character": 0 });
        let params = json!({
            "textDocument": { "uri": document }, "range": { "start": at, "end": at }, "context": { "diagnostics": [] },
        });
        assert_eq!(editor.request("textDocument/codeAction", params)["result"], json!([]), "{document}");
    }
    // Without a folder, the repository is found by a file of it.
    editor.open_file(&file, "line 1\nnothing else\n");
    assert_eq!(range(&editor.diagnostics(&file)[0]), [1, 0, 1, 12]);
    editor.edit(&file, 2, replace([u32::MAX, u32::MAX, 0, 0], "\u{0}\r"));
    editor.edit(&file, 3, json!([{ "text": "line 1\nline two\n" }]));
    editor.until(|message| message["params"]["version"] == 3);
    editor.request("shutdown", Value::Null);
    assert_eq!(editor.request("textDocument/codeAction", json!({}))["error"]["code"], -32600);
    editor.note("exit", Value::Null);
    assert_eq!(editor.child.wait().unwrap().code(), Some(0));

    // Ends that no client asked for: without `shutdown`, without a word, without frames, and without the client.
    let mut hasty = Editor::open(&test, json!({}));
    hasty.note("exit", Value::Null);
    assert_eq!(hasty.child.wait().unwrap().code(), Some(1));
    let mut silent = Editor::open(&test, json!({}));
    silent.to = None;
    assert_eq!(silent.child.wait().unwrap().code(), Some(1));
    let mut garbled = Editor::open(&test, json!({}));
    garbled.write(b"no head at all\n\n");
    assert_eq!(garbled.child.wait().unwrap().code(), Some(30));
    let mut client = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
    let mut orphan = Editor::start(program());
    orphan.request("initialize", json!({ "processId": client.id(), "capabilities": {} }));
    client.kill().unwrap();
    client.wait().unwrap();
    assert_eq!(orphan.child.wait().unwrap().code(), Some(1));

    // An agent of a run is nobody's editor.
    let inside = program().arg("lsp").env("ARCHEFLOW_TAG", "x").output().unwrap();
    assert_eq!(inside.status.code(), Some(21), "{}", printed(&inside));
}

#[test]
fn u_16_files_of_all_kinds_are_shown() {
    let rows = [
        "latin.txt:1 | WARNING | quality | The first line has odd bytes. | Fix. | `caf`",
        "a b/é.txt:2 | WARNING | quality | The second line of an odd name. | Fix. | `zwei`",
        "README.md | WARNING | quality | The file as a whole is thin. | Fix. | README.md:2",
    ];
    let test = Test::new().play(&review("guardian", "REJECTED", &rows));
    test.file("latin.txt", b"caf\xe9 = 1\n").file("a b/é.txt", "eins\r\nzwei\r\n");
    test.file("README.md", "\n# The app\n");
    let outcome = test.look(&["--format", "json"]);
    let listed: Value = serde_json::from_str(&outcome.stdout).unwrap();
    let counts = |finding: &&Value| finding["standing"] == "counts";
    assert_eq!(listed["findings"].as_array().unwrap().iter().filter(counts).count(), 3, "{listed:#}");
    // The folder is reached by a link, and the editor keeps to its name.
    let link = test.base().join("link");
    std::os::unix::fs::symlink(&test.repo, &link).unwrap();
    let mut editor = Editor::open_at(&test, &link, json!({}));
    let mut shown: Vec<(String, [u64; 4])> = (0..3)
        .map(|_| {
            let params = editor.said("textDocument/publishDiagnostics")["params"].clone();
            (params["uri"].as_str().unwrap().to_owned(), range(&params["diagnostics"][0]))
        })
        .collect();
    shown.sort();
    let expected =
        [("README.md", [0, 0, 0, 0]), ("a%20b/%C3%A9.txt", [1, 0, 1, 4]), ("latin.txt", [0, 0, 0, 3])];
    let expected = expected.map(|(file, range)| (format!("{}/{file}", uri(&link)), range));
    assert_eq!(shown, expected);
    let large = "x\n".repeat(500_000) + "zwei\n";
    let file = link.join("a b/é.txt");
    let document =
        json!({ "uri": expected[1].0, "languageId": "", "version": 1, "text": format!("eins\n{large}") });
    editor.note("textDocument/didOpen", json!({ "textDocument": document }));
    let params = editor.said("textDocument/publishDiagnostics")["params"].clone();
    assert_eq!(range(&params["diagnostics"][0])[0], 500_001, "{}", file.display());
}

#[test]
fn u_16_one_finding_of_a_review_is_accepted_on_the_command_line() {
    let other = "src/app.txt:5 | WARNING | quality | The fifth line is long. | Cut it. | `line 5`";
    let (test, _) = reviewed(&review("guardian", "REJECTED", &[FINDING, other]));
    let id = test.run_ids().remove(0);
    let listed = |more: &[&str]| {
        let outcome = test.run(&[&["review", "--run", &id, "--format", "json"], more].concat());
        assert_eq!(outcome.code, 0, "{outcome}");
        serde_json::from_str::<Value>(&outcome.stdout).unwrap()
    };
    let first = listed(&[])["findings"][0]["fingerprint"].as_str().unwrap().to_owned();
    let accept = ["review", "--run", &id, "--accept"];
    test.run(&[&accept[..], &[&first]].concat()).refused(2, &["--reason"]);
    test.run(&[&accept[..], &["0123", "--reason", "x"]].concat()).refused(2, &["0123", "that counts"]);
    test.run(&[&accept[..], &[&first, "--reason", " "]].concat()).refused(2, &["for a reason"]);
    test.run(&["review", "--run", &id, "--reason", "x"]).refused(2, &["--accept"]);
    let inside = test
        .command(env!("CARGO_BIN_EXE_archeflow"))
        .args(&accept[..])
        .args([&first, "--reason", "x"])
        .env("ARCHEFLOW_TAG", "x")
        .current_dir(&test.repo)
        .output()
        .unwrap();
    assert_eq!(inside.status.code(), Some(21), "{}", printed(&inside));
    assert!(!test.repo.join(".archeflow/baseline.json").exists());
    let done = test.run(&[&accept[..], &[&first, "--reason", "as agreed"]].concat());
    assert_eq!(done.code, 0, "{done}");
    let written: Value = serde_json::from_str(&test.read(".archeflow/baseline.json")).unwrap();
    assert_eq!(written["accepted"], json!([{ "fingerprint": first, "reason": "as agreed" }]));
    let again = test.look(&["--baseline", ".archeflow/baseline.json", "--format", "json"]);
    let again: Value = serde_json::from_str(&again.stdout).unwrap();
    let standing = |finding: &Value| (finding["fingerprint"] == *first, finding["standing"].clone());
    let standings: Vec<(bool, Value)> = again["findings"].as_array().unwrap().iter().map(standing).collect();
    assert!(standings.contains(&(true, "accepted".into())), "{standings:?}");
    assert!(standings.contains(&(false, "counts".into())), "{standings:?}");
}
