//! Runs as OpenTelemetry (docs/telemetry.md): what is sent, that sending again adds nothing, that a run never waits for it,
//! and what real collectors make of it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};

use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message;
use serde_json::{Value, json};

use crate::accounts;
use crate::harness::{LONG, Outcome, Test};
use crate::hub::{ENDS, PLANS, Projects, ROOM};
use crate::ui::Browser;
use crate::user::{PROGRAM, printed, wait_until};

/// What a fast run that lands is, as a tree.
const LANDED: &str = "invoke_workflow fast
  preflight
  plan
    invoke_agent creator
  do
    invoke_agent maker
  check
    invoke_agent guardian
  act
    merge.build
    tests
    merge";

/// A collector on this machine that hands on what it is sent, and answers with this.
struct Collector {
    port: u16,
    requests: Receiver<Request>,
}

struct Request {
    path: String,
    /// Names in lower case.
    headers: BTreeMap<String, String>,
    body: Vec<u8>,
}

impl Collector {
    fn new() -> Collector {
        Collector::answering(Some(
            "200 OK\r\ncontent-type: application/x-protobuf\r\ncontent-length: 0\r\n\r\n",
        ))
    }

    /// Status, headers and body; nothing means never.
    fn answering(answer: Option<&'static str>) -> Collector {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let (send, requests) = channel();
        std::thread::spawn(move || {
            let mut held = Vec::new();
            for stream in listener.incoming().map_while(Result::ok) {
                let Some(request) = read(&stream) else { continue };
                if let Some(answer) = answer {
                    let _ = (&stream).write_all(format!("HTTP/1.1 {answer}").as_bytes());
                } else {
                    held.push(stream);
                }
                let _ = send.send(request);
            }
        });
        Collector { port, requests }
    }

    fn address(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Everything that has come.
    fn taken(&self) -> Taken {
        let mut taken = Taken::default();
        self.requests.try_iter().for_each(|request| taken.take(&request));
        taken
    }
}

fn read(stream: &TcpStream) -> Option<Request> {
    stream.set_read_timeout(Some(LONG)).ok()?;
    let mut reader = BufReader::new(stream);
    let mut first = String::new();
    reader.read_line(&mut first).ok()?;
    let mut headers = BTreeMap::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim().split_once(": ") else { break };
        headers.insert(name.to_lowercase(), value.to_owned());
    }
    let length = headers.get("content-length").and_then(|length| length.parse().ok())?;
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    if headers.get("content-encoding").is_some_and(|kind| kind == "gzip") {
        body = unpacked(&body);
    }
    Some(Request { path: first.split(' ').nth(1)?.to_owned(), headers, body })
}

/// What rotel passes on is compressed, whatever its settings say.
fn unpacked(bytes: &[u8]) -> Vec<u8> {
    let mut gzip =
        Command::new("gzip").arg("-dc").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    gzip.stdin.take().unwrap().write_all(bytes).unwrap();
    gzip.wait_with_output().unwrap().stdout
}

/// What collectors were sent.
#[derive(Default)]
struct Taken {
    paths: Vec<String>,
    spans: Vec<Span>,
    records: Vec<(String, BTreeMap<String, String>)>,
    metrics: BTreeSet<String>,
    resource: BTreeMap<String, String>,
    /// All bytes, for what must not be in them.
    bytes: Vec<u8>,
}

impl Taken {
    fn take(&mut self, request: &Request) {
        self.paths.push(request.path.clone());
        self.bytes.extend(&request.body);
        match request.path.as_str() {
            "/v1/traces" => {
                let message = ExportTraceServiceRequest::decode(request.body.as_slice()).unwrap();
                for group in message.resource_spans {
                    let named = group.resource.unwrap_or_default().attributes;
                    self.resource = named.iter().map(|pair| (pair.key.clone(), text(&pair.value))).collect();
                    self.spans.extend(group.scope_spans.into_iter().flat_map(|scope| scope.spans));
                }
            }
            "/v1/logs" => {
                let message = ExportLogsServiceRequest::decode(request.body.as_slice()).unwrap();
                let scopes = message.resource_logs.into_iter().flat_map(|group| group.scope_logs);
                for record in scopes.flat_map(|scope| scope.log_records) {
                    let known = record.attributes.iter().map(|pair| (pair.key.clone(), text(&pair.value)));
                    self.records.push((record.event_name, known.collect()));
                }
            }
            "/v1/metrics" => {
                let message = ExportMetricsServiceRequest::decode(request.body.as_slice()).unwrap();
                let scopes = message.resource_metrics.into_iter().flat_map(|group| group.scope_metrics);
                self.metrics.extend(scopes.flat_map(|scope| scope.metrics).map(|metric| metric.name));
            }
            other => panic!("nothing is at {other}"),
        }
    }

    /// Names by depth, in the order in which the spans began.
    fn tree(&self) -> String {
        let spans = self.spans.iter().map(|span| SpanLine {
            id: hex(&span.span_id),
            parent: hex(&span.parent_span_id),
            name: span.name.clone(),
            began: span.start_time_unix_nano.to_string(),
        });
        drawn(&spans.collect::<Vec<_>>())
    }

    fn says(&self, words: &str) -> bool {
        self.bytes.windows(words.len()).any(|window| window == words.as_bytes())
    }
}

fn text(value: &Option<opentelemetry_proto::tonic::common::v1::AnyValue>) -> String {
    let json = serde_json::to_value(value).unwrap();
    let value = json.as_object().and_then(|fields| fields.values().next().cloned()).unwrap_or_default();
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

struct SpanLine {
    id: String,
    /// Empty for the run.
    parent: String,
    name: String,
    /// Compares as the time does.
    began: String,
}

fn drawn(spans: &[SpanLine]) -> String {
    fn below(spans: &[SpanLine], parent: &str, depth: usize, out: &mut Vec<String>) {
        let mut children: Vec<_> = spans.iter().filter(|span| span.parent == parent).collect();
        children.sort_by_key(|span| &span.began);
        for span in children {
            out.push(format!("{}{}", "  ".repeat(depth), span.name));
            below(spans, &span.id, depth + 1, out);
        }
    }
    let mut out = Vec::new();
    below(spans, "", 0, &mut out);
    out.join("\n")
}

fn landed(test: &Test) -> Outcome {
    test.go(&["--auto-merge"]).ended("merged", "approved", 0)
}

#[test]
fn otel_a_run_arrives_as_a_tree_in_order_and_twice_is_the_same() {
    let collector = Collector::new();
    let test = Test::new().play("").env("OTEL_SERVICE_NAME", "my-team");
    let test = test.env("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20k3y");
    let id = landed(&test).id;
    let sent = test.run(&["export", "otlp", &id, "--to", &collector.address(), "--json"]);
    assert_eq!(sent.code, 0, "{sent}");
    let first: Vec<Request> = collector.requests.try_iter().collect();
    test.run(&["export", "otlp", &id, "--to", &collector.address()]);
    let second: Vec<Request> = collector.requests.try_iter().collect();
    let bodies =
        |requests: &[Request]| requests.iter().map(|request| request.body.clone()).collect::<Vec<_>>();
    assert_eq!(bodies(&first), bodies(&second), "the same bytes");

    let mut taken = Taken::default();
    for request in &first {
        assert_eq!(request.headers["authorization"], "Bearer k3y");
        assert_eq!(request.headers["content-type"], "application/x-protobuf");
        taken.take(request);
    }
    assert_eq!(taken.paths, ["/v1/traces", "/v1/logs", "/v1/metrics"]);
    assert_eq!(taken.tree(), LANDED);
    assert_eq!(taken.resource["service.name"], "my-team");
    assert!(taken.metrics.contains("gen_ai.client.operation.duration"), "{:?}", taken.metrics);
    let verdict = taken.records.iter().find(|(name, _)| name == "gen_ai.evaluation.result").unwrap();
    assert_eq!(verdict.1["gen_ai.evaluation.name"], "guardian");
    assert_eq!(verdict.1["gen_ai.evaluation.score.label"], "APPROVED");
    assert!(taken.records.iter().any(|(name, _)| name == "archeflow.cycle.boundary"));
    let object: Value = serde_json::from_str(&sent.stdout).unwrap();
    assert_eq!(object["trace_id"], hex(&taken.spans[0].trace_id));
    assert_eq!(object["sent"]["traces"], taken.spans.len());

    // Nothing of the task, of files or of agents, unless it is asked for.
    let words = ["app.txt", "Nothing to object to", &id, test.repo.to_str().unwrap(), "k3y"];
    words.iter().for_each(|word| assert!(!taken.says(word), "'{word}' was sent"));
    test.run(&["export", "otlp", &id, "--content", "--to", &collector.address()]);
    let full = collector.taken();
    assert!(full.says(&id) && !full.says("k3y"));
    assert_eq!(full.tree(), LANDED);
}

#[test]
fn otel_tools_are_below_their_agent() {
    let collector = Collector::new();
    let test = accounts::test();
    let tool = |content: Value, kind: &str| json!({"type": kind, "message": {"model": "sonnet-9", "content": [content]}});
    let uses = tool(
        json!({"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "cat hidden"}}),
        "assistant",
    );
    let ends = tool(json!({"type": "tool_result", "tool_use_id": "t1", "is_error": true}), "user");
    let file = test.base().join("say/maker");
    let said = fs::read_to_string(&file).unwrap();
    let (init, rest) = said.split_once('\n').unwrap();
    fs::write(&file, format!("{init}\n{uses}\n{ends}\n{rest}")).unwrap();
    let id = test.go(&["--agent", "claude", "--auto-merge"]).ended("merged", "approved", 0).id;
    test.run(&["export", "otlp", &id, "--to", &collector.address()]);
    let taken = collector.taken();
    assert!(taken.tree().contains("    invoke_agent maker\n      execute_tool Bash\n"), "{}", taken.tree());
    let span = |name: &str| taken.spans.iter().find(|span| span.name == name).unwrap();
    let known = |name: &str, attribute: &str| {
        let pair = span(name).attributes.iter().find(|pair| pair.key == attribute);
        pair.map(|pair| text(&pair.value)).unwrap_or_default()
    };
    assert_eq!(known("execute_tool Bash", "error.type"), "tool_error");
    assert_eq!(known("invoke_agent maker", "gen_ai.provider.name"), "anthropic");
    assert_eq!(known("invoke_agent maker", "gen_ai.response.model"), "sonnet-9");
    assert_eq!(known("invoke_agent maker", "gen_ai.usage.input_tokens"), "10");
    assert!(taken.metrics.contains("gen_ai.client.token.usage"), "{:?}", taken.metrics);
    assert!(!taken.says("hidden"), "what a tool was given stays here");
}

#[test]
fn otel_a_run_is_sent_while_it_is_driven_each_span_once() {
    let collector = Collector::new();
    let test = Test::new().play("").config(&format!("telemetry:\n  otlp: {}\n", collector.address()));
    let ended = test.go(&["--unattended"]).ended("awaiting_merge", "approved", 10);
    assert!(!ended.stderr.contains("telemetry"), "{ended}");
    test.run(&["merge", &ended.id]).ended("merged", "approved", 0);
    let taken = collector.taken();
    let ids: BTreeSet<&Vec<u8>> = taken.spans.iter().map(|span| &span.span_id).collect();
    let mut seen = BTreeMap::new();
    taken.spans.iter().for_each(|span| {
        seen.entry(span.span_id.clone()).or_insert_with(|| span.clone());
    });
    assert!(
        taken.spans.iter().all(|span| seen[&span.span_id] == *span),
        "a span that was sent never changes"
    );
    test.run(&["export", "otlp", &ended.id, "--to", &collector.address()]);
    let whole = collector.taken();
    assert_eq!(ids, whole.spans.iter().map(|span| &span.span_id).collect(), "nothing is left for later");
    let tree = whole.tree();
    assert!(tree.starts_with("invoke_workflow fast\n"), "{tree}");
    assert!(tree.contains("\n  invoke_workflow fast\n"), "the merge is a part of its own\n{tree}");
    let mut trees = tree.lines().map(str::trim);
    assert!(trees.any(|name| name == "tests") && trees.any(|name| name == "merge"), "{tree}");
    assert!(!taken.says("app.txt") && !taken.says(&ended.id), "content only by choice");
}

/// The run ends as it would have, with one line of warning that leads on.
#[test]
fn otel_a_collector_that_is_down_leaves_the_run_unharmed() {
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let broken = Collector::answering(Some("503 Service Unavailable\r\ncontent-length: 0\r\n\r\n"));
    let plain = Test::new().play("");
    let kinds =
        |outcome: &Outcome| outcome.journal.iter().map(|line| line["type"].clone()).collect::<Vec<_>>();
    let expected = kinds(&landed(&plain));
    for (port, words) in [(closed, "was not reached"), (broken.port, "answers 503 to traces")] {
        let test =
            Test::new().play("").config(&format!("telemetry:\n  otlp: http://127.0.0.1:{port}/hidden\n"));
        let ended = landed(&test);
        assert_eq!(kinds(&ended), expected);
        assert_eq!(ended.stderr.matches("telemetry was not sent").count(), 1, "{ended}");
        for word in [
            words,
            &format!("http://127.0.0.1:{port}"),
            "The run is not affected",
            &format!("archeflow export otlp {}", ended.id),
        ] {
            assert!(ended.stderr.contains(word), "'{word}' is not in it\n{ended}");
        }
        assert!(!ended.stderr.contains("hidden"), "{ended}");
    }
}

#[test]
fn otel_a_collector_that_never_answers_is_waited_for_two_seconds() {
    let silent = Collector::answering(None);
    let test = Test::new().play("").config(&format!("telemetry:\n  otlp: {}\n", silent.address()));
    fs::write(test.overdue(), "").unwrap();
    let ended = landed(&test);
    assert!(ended.stderr.contains("no answer within"), "{ended}");
    assert_eq!(ended.stderr.matches("telemetry was not sent").count(), 1, "{ended}");
}

#[test]
fn otel_an_answer_that_is_no_success_names_the_address_and_the_remedy() {
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let test = Test::new().play("");
    let id = landed(&test).id;
    let rows = [
        (
            "401 Unauthorized\r\ncontent-length: 0\r\n\r\n",
            "answers 401 to traces",
            "OTEL_EXPORTER_OTLP_HEADERS",
        ),
        ("404 Not Found\r\ncontent-length: 0\r\n\r\n", "answers 404 to traces", "before /v1/traces"),
        ("413 Content Too Large\r\ncontent-length: 0\r\n\r\n", "answers 413", "limit"),
        ("429 Too Many Requests\r\nretry-after: 0\r\ncontent-length: 0\r\n\r\n", "answers 429", "later"),
        (
            "500 Internal Server Error\r\ncontent-type: text/plain\r\ncontent-length: 4\r\n\r\nboom",
            "answers 500 to traces: boom",
            "own log",
        ),
        (
            "302 Found\r\nlocation: http://127.0.0.1:1/\r\ncontent-length: 0\r\n\r\n",
            "answers 302",
            "not followed",
        ),
        (
            "200 OK\r\ncontent-type: text/html\r\ncontent-length: 6\r\n\r\n<html>",
            "no OTLP: it is text/html",
            "4318",
        ),
        (
            "200 OK\r\ncontent-type: application/json\r\ncontent-length: 58\r\n\r\n{\"partialSuccess\":{\"rejectedSpans\":\"2\",\"errorMessage\":\"\"}}",
            "refused 2 of the traces",
            "which and why",
        ),
        ("nonsense\r\n\r\n", "was not reached", "4318"),
    ];
    for (answer, words, remedy) in rows {
        let collector = Collector::answering(Some(answer));
        let address = collector.address();
        test.run(&["export", "otlp", &id, "--to", &address]).refused(30, &[&address, words, remedy]);
        if answer.starts_with("429") {
            assert_eq!(collector.requests.try_iter().count(), 3, "tried again");
        }
    }
    let address = format!("http://127.0.0.1:{closed}");
    test.run(&["export", "otlp", &id, "--to", &address]).refused(30, &[&address, "was not reached", "4318"]);
    test.run(&["export", "otlp", &id]).refused(2, &["no address", "--to http://127.0.0.1:4318"]);
    test.run(&["export", "otlp", &id, "--to", "localhost:4318"])
        .refused(2, &["--to does not begin with http://"]);
    test.run(&["export", "otlp", "no-such-run", "--to", &address]).refused(2, &["no-such-run"]);
}

/// Some take traces and nothing else.
#[test]
fn otel_what_an_address_does_not_take_is_said_and_no_error() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let Some(request) = read(&stream) else { continue };
            let status = if request.path == "/v1/traces" { "200 OK" } else { "405 Method Not Allowed" };
            let _ = (&stream).write_all(format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\n\r\n").as_bytes());
        }
    });
    let test = Test::new().play("").config(&format!("telemetry:\n  otlp: {address}\n"));
    let ended = landed(&test);
    assert!(!ended.stderr.contains("telemetry"), "{ended}");
    let sent = test.run(&["export", "otlp", &ended.id]);
    assert!(
        sent.code == 0 && sent.stdout.contains("logs     none: this address takes no such data"),
        "{sent}"
    );
}

#[test]
fn otel_a_repository_can_not_set_it() {
    let test = Test::new().play("");
    test.file(".archeflow/config.yaml", "telemetry:\n  otlp: http://127.0.0.1:9\n  content: true\n")
        .commit("Send me");
    let words =
        [".archeflow/config.yaml:2", "telemetry.otlp", "telemetry.content", "a repository can't set it"];
    test.go(&["--unattended"]).refused(2, &words);
}

#[test]
fn otel_what_would_be_sent_is_printed_or_written_and_not_sent() {
    let collector = Collector::new();
    let test = Test::new().play("").env("OTEL_EXPORTER_OTLP_ENDPOINT", collector.address());
    let id = landed(&test).id;
    let shown = test.run(&["export", "otlp", &id, "--dry-run"]);
    let object: Value = serde_json::from_str(&shown.stdout).unwrap();
    let spans = object["traces"][0]["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().unwrap().clone();
    assert_eq!(spans.len(), LANDED.lines().count());
    assert_eq!(
        object["traces"][0]["resourceSpans"][0]["schemaUrl"],
        "https://opentelemetry.io/schemas/1.41.0"
    );
    assert_eq!(spans[0]["traceId"].as_str().unwrap().len(), 32, "ids are hexadecimal");
    let file = test.base().join("out.json");
    test.run(&["export", "otlp", &id, "-o", file.to_str().unwrap()]);
    assert_eq!(serde_json::from_slice::<Value>(&fs::read(file).unwrap()).unwrap(), object);
    assert_eq!(collector.requests.try_iter().count(), 0, "nothing was sent");
    test.run(&["export", "otlp", &id]);
    assert_eq!(collector.requests.try_iter().count(), 3, "the address of the environment");
}

#[test]
fn otel_nothing_is_sent_from_inside_of_a_run() {
    let collector = Collector::new();
    let scene = format!(
        "== maker ==\nsh cd {{repo}}; {PROGRAM} export otlp last --to {} ; echo $? > {{base}}/code\n\
         sh echo made >> src/app.txt\nsh echo true > tests/app_test.sh\nsay <<END\nDone.\n\nSTATUS: DONE\nEND\n\n",
        collector.address()
    );
    let test = Test::new().play(&scene);
    test.go(&["--unattended"]);
    assert_eq!(fs::read_to_string(test.base().join("code")).unwrap(), "21\n");
    assert_eq!(collector.requests.try_iter().count(), 0);
}

/// A sprint with one item that landed and one that failed.
fn sprint(more: &str) -> Projects {
    const MAKES: &str = "\n== maker ==\nsh mkdir -p src tests && echo made >> \"src/$(echo \"$ARCHEFLOW_RUN_ID\" | cut -d. -f2).txt\"\n\
        sh echo true >> tests/work_test.sh\nsh case \"$ARCHEFLOW_RUN_ID\" in *.red*) echo red > src/red;; esac";
    let world = Projects::new(&["shop", "till"]);
    world.write("agents.play", &[PLANS, MAKES, ENDS].concat());
    world.configure(&format!("sprint: {{{ROOM}}}\n{more}"));
    world.add("good", "shop", &[]);
    world.add("red", "till", &[]);
    let output = world.begin("test ! -e src/red", &[], &[]).wait_with_output().unwrap();
    assert_eq!(world.statuses()["good"], "completed", "{}", printed(&output));
    world
}

#[test]
fn otel_a_sprint_sends_its_runs_and_is_numbers_for_prometheus() {
    let collector = Collector::new();
    let world = sprint(&format!("telemetry: {{otlp: '{}'}}\n", collector.address()));
    let traces: BTreeSet<Vec<u8>> = collector.taken().spans.into_iter().map(|span| span.trace_id).collect();
    assert_eq!(traces.len(), 2, "each run of a sprint sends itself");
    let output = world.sprint(&["report", "--prometheus"]);
    let text = String::from_utf8(output.stdout).unwrap();
    for words in [
        "# TYPE archeflow_sprint_items gauge\n",
        "state=\"completed\"} 1\n",
        "state=\"failed\"} 1\n",
        "# TYPE archeflow_sprint_runs_total counter\n",
        "project=\"shop\"} ",
    ] {
        assert!(text.contains(words), "'{words}' is not in it\n{text}");
    }
    let file = world.base().join("sprint.prom");
    world.sprint(&["report", "--prometheus", "-o", file.to_str().unwrap()]);
    assert_eq!(fs::read_to_string(file).unwrap(), text, "for the textfile collector");
}

/// The numbers of the pages, to who has the key.
fn numbers(browser: &Browser, key: &str) -> String {
    let head = format!("GET /metrics HTTP/1.1\r\nAuthorization: Bearer {key}");
    let mut stream = TcpStream::connect(("127.0.0.1", browser.port)).unwrap();
    let request = format!("{head}\r\nHost: 127.0.0.1:{}\r\nConnection: close\r\n\r\n", browser.port);
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

fn key(test: &Test) -> String {
    fs::read_to_string(test.home().join(".local/state/archeflow/metrics-key")).unwrap()
}

#[test]
fn otel_pages_serve_numbers_to_who_has_the_key() {
    let test = Test::new().play("");
    let id = test.go(&["--unattended"]).ended("awaiting_merge", "approved", 10).id;
    let browser = Browser::open(&test, &["--prometheus"]);
    let first = key(&test);
    let answer = numbers(&browser, &first);
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    for words in [
        "content-type: text/plain; version=0.0.4",
        "\narcheflow_repositories 1\n",
        "\narcheflow_runs{status=\"awaiting_merge\"} 1\n",
        "\narcheflow_runs_waiting 1\n",
        "\narcheflow_runs_running 0\n",
    ] {
        assert!(answer.contains(words), "'{words}' is not in it\n{answer}");
    }
    assert!(!answer.contains(&id) && !answer.contains(test.repo.to_str().unwrap()), "{answer}");
    assert!(numbers(&browser, &first.replace(char::is_numeric, "a")).starts_with("HTTP/1.1 401"));
    assert!(browser.get("/metrics").starts_with("HTTP/1.1 200"), "the cookie will do");
    drop(browser);
    let again = Browser::open(&test, &["--prometheus"]);
    assert_eq!(key(&test), first, "the key stays");
    assert!(numbers(&again, &first).starts_with("HTTP/1.1 200"));
    drop(again);
    let without = Browser::open(&test, &[]);
    assert!(numbers(&without, &first).starts_with("HTTP/1.1 401"));
    assert!(without.get("/metrics").starts_with("HTTP/1.1 404"));
}

// With what others wrote: `cargo xtask test telemetry` installs it and starts these.

/// A program that ends with the test.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A port that nobody used a moment ago.
fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

fn wanted(variable: &str) -> PathBuf {
    let found = std::env::var_os(variable);
    found.map_or_else(|| panic!("{variable} is not set: cargo xtask test telemetry"), PathBuf::from)
}

fn started(command: &mut Command, log: &Path, port: u16) -> Server {
    let file = fs::File::create(log).unwrap();
    let errors = file.try_clone().unwrap();
    let mut server = Server(command.stdin(Stdio::null()).stdout(file).stderr(errors).spawn().unwrap());
    let says = || fs::read_to_string(log).unwrap_or_default();
    let open = || TcpStream::connect(("127.0.0.1", port)).is_ok();
    wait_until(open, || format!("nothing listens on {port}\n{}", says()));
    assert!(server.0.try_wait().unwrap().is_none(), "{}", says());
    server
}

/// rotel takes everything and passes it on, decoded and written again by its own code.
#[test]
#[ignore = "needs rotel from PyPI"]
fn otel_rotel_passes_on_what_it_is_sent_with_a_collector() {
    let behind = Collector::new();
    let test = Test::new().play("");
    let (http, grpc) = (free_port(), free_port());
    let mut command = Command::new(wanted("ARCHEFLOW_ROTEL"));
    command.args(["start", "--exporter", "otlp", "--otlp-exporter-protocol", "http"]);
    command.args(["--otlp-exporter-endpoint", &behind.address()]);
    command.args(["--otlp-http-endpoint", &format!("127.0.0.1:{http}")]);
    command.args(["--otlp-grpc-endpoint", &format!("127.0.0.1:{grpc}")]);
    let _rotel = started(&mut command, &test.base().join("rotel.log"), http);
    let id = landed(&test).id;
    let sent = test.run(&["export", "otlp", &id, "--to", &format!("http://127.0.0.1:{http}")]);
    assert_eq!(sent.code, 0, "{sent}");
    let mut taken = Taken::default();
    while taken.spans.is_empty() || taken.records.is_empty() || taken.metrics.is_empty() {
        taken.take(&behind.requests.recv_timeout(LONG).unwrap());
    }
    assert_eq!(taken.tree(), LANDED);
    assert_eq!(taken.resource["service.name"], "archeflow");
    assert!(taken.records.iter().any(|(name, _)| name == "gen_ai.evaluation.result"));
}

/// What we send, read by the messages that OpenTelemetry publishes for Python, and the JSON compared with it; and the
/// texts for Prometheus, read by its own client.
#[test]
#[ignore = "needs opentelemetry-proto and prometheus_client from PyPI"]
fn otel_python_reads_messages_and_numbers_with_a_collector() {
    const SCRIPT: &str = r#"
import json, sys
from google.protobuf import json_format
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest as Traces
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest as Logs
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest as Metrics
from prometheus_client.parser import text_string_to_metric_families as families
folder = sys.argv[1]
whole = json.load(open(folder + "/dry.json"))
import base64
def ids(value):
    """Hexadecimal in OTLP, base64 in the JSON of protobuf."""
    if isinstance(value, list): return [ids(one) for one in value]
    if not isinstance(value, dict): return value
    return {name: base64.b64encode(bytes.fromhex(one)).decode() if name in ("traceId", "spanId", "parentSpanId") else ids(one)
            for name, one in value.items()}
for name, kind in (("traces", Traces), ("logs", Logs), ("metrics", Metrics)):
    sent = kind.FromString(open(f"{folder}/{name}.bin", "rb").read())
    written = json_format.ParseDict(ids(whole[name][0]), kind())
    assert sent == written, name
    assert sent.ByteSize() > 500, name
for file in ("sprint.prom", "ui.prom"):
    found = {family.name: family for family in families(open(f"{folder}/{file}").read())}
    print(file, sorted(found))
    assert all(family.documentation and family.type in ("gauge", "counter") and family.samples for family in found.values()), found
print("good")
"#;
    let collector = Collector::new();
    let test = Test::new().play("");
    let id = landed(&test).id;
    test.run(&["export", "otlp", &id, "--to", &collector.address(), "--content"]);
    for request in collector.requests.try_iter() {
        let name = request.path.rsplit('/').next().unwrap().to_owned();
        fs::write(test.base().join(format!("{name}.bin")), request.body).unwrap();
    }
    let dry = test.base().join("dry.json");
    test.run(&["export", "otlp", &id, "--content", "-o", dry.to_str().unwrap()]);
    let world = sprint("");
    let file = test.base().join("sprint.prom");
    world.sprint(&["report", "--prometheus", "-o", file.to_str().unwrap()]);
    let browser = Browser::open(&test, &["--prometheus"]);
    let answer = numbers(&browser, &key(&test));
    fs::write(test.base().join("ui.prom"), answer.split_once("\r\n\r\n").unwrap().1).unwrap();
    let output =
        Command::new(wanted("ARCHEFLOW_OTEL_PYTHON")).args(["-c", SCRIPT]).arg(test.base()).output().unwrap();
    assert!(printed(&output).contains("good"), "{}", printed(&output));
}

/// Phoenix draws the tree, knows the agents, and a second export adds nothing.
#[test]
#[ignore = "needs arize-phoenix from PyPI"]
fn otel_phoenix_draws_the_tree_once_with_a_collector() {
    let test = Test::new().play("");
    let (port, grpc) = (free_port(), free_port());
    let address = format!("http://127.0.0.1:{port}");
    let work = test.base().join("phoenix");
    let mut command = Command::new(wanted("ARCHEFLOW_PHOENIX"));
    command.arg("serve").env("PHOENIX_WORKING_DIR", &work).env("PHOENIX_HOST", "127.0.0.1");
    command.env("PHOENIX_PORT", port.to_string()).env("PHOENIX_GRPC_PORT", grpc.to_string());
    command.env("PHOENIX_TELEMETRY_ENABLED", "false");
    let _phoenix = started(&mut command, &test.base().join("phoenix.log"), port);
    let id = landed(&test).id;
    for _ in 0..2 {
        let sent = test.run(&["export", "otlp", &id, "--to", &address]);
        assert_eq!(sent.code, 0, "{sent}");
    }
    let spans = || {
        let answer = fetched(port, "/v1/projects/default/spans?limit=100");
        let value: Value = serde_json::from_str(&answer).unwrap_or_default();
        value["data"].as_array().cloned().unwrap_or_default()
    };
    let count = LANDED.lines().count();
    wait_until(|| spans().len() >= count, || format!("{:?}", spans()));
    let word = |span: &Value, name: &str| span[name].as_str().unwrap_or_default().to_owned();
    let lines: Vec<SpanLine> = spans()
        .iter()
        .map(|span| SpanLine {
            id: word(&span["context"], "span_id"),
            parent: word(span, "parent_id"),
            name: word(span, "name"),
            began: word(span, "start_time"),
        })
        .collect();
    assert_eq!(drawn(&lines), LANDED, "once, though it was sent twice");
    let agents = spans().iter().filter(|span| word(span, "span_kind") == "AGENT").count();
    assert_eq!(agents, 3);
}

/// The body of an answer.
fn fetched(port: u16, path: &str) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    let request = format!("GET {path} HTTP/1.0\r\nHost: 127.0.0.1:{port}\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    let _ = stream.read_to_string(&mut answer);
    answer.split_once("\r\n\r\n").map(|(_, body)| body.to_owned()).unwrap_or_default()
}
