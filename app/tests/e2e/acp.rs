//! Agents that speak ACP: a stand-in of our own that does what it is told, and the real ones against a scripted model.
//! The latter need what `cargo xtask clients` fetches, so they are asked for by name:
//!
//! ```sh
//! cargo xtask clients && cargo test -p archeflow --test e2e acp -- --ignored
//! ```

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::client_files::{INJECTED, hostile, nothing_obeyed};
use crate::harness::{LONG, Outcome, Test, as_strs, each, running, signal};
use crate::model::{Model, Reply};

/// An agent in shell. Each role has a turn of its own; what a test puts in place of `{special}` may say otherwise.
const STAND_IN: &str = r##"#!/bin/sh
log() { printf '%s\n' "$ARCHEFLOW_ROLE $1" >> '{base}/agent.log'; }
say() { printf '%s\n' "$1"; }
answer() { say '{"jsonrpc":"2.0","id":'"$id"',"result":'"$1"'}'; }
fail() { say '{"jsonrpc":"2.0","id":'"$id"',"error":'"$1"'}'; }
update() { say '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s1","update":'"$1"'}}'; }
tell() { update '{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"'"$(printf '%s' "$1" | sed -E "s/(VERDICT: [A-Z]+|STATUS: [A-Z_]+)/\1 $code/g")"'"}}'; }
ended() { answer '{"stopReason":"end_turn","usage":{"inputTokens":1,"outputTokens":1}}'; }
# Asks for leave: a kind and a path. Says whether it was given.
ask() {
    say '{"jsonrpc":"2.0","id":"p1","method":"session/request_permission","params":{"sessionId":"s1","toolCall":{"toolCallId":"'"$1-$2"'","title":"'"$1 $2"'","kind":"'"$1"'","status":"pending","locations":[{"path":"'"$2"'"}]},"options":[{"optionId":"always","kind":"allow_always"},{"optionId":"yes","kind":"allow_once"},{"optionId":"no","kind":"reject_once"}]}}'
    read -r reply
    case $reply in
        *'"id":"p1"'*'"optionId":"yes"'*) log "was given $1 ${2#"$PWD"/}" ;;
        *'"id":"p1"'*'"optionId":"no"'*) log "was refused $1 ${2#"$PWD"/}"; return 1 ;;
        *) log "heard $reply"; return 1 ;;
    esac
}
greet() { answer '{"protocolVersion":1,"agentInfo":{"name":"@us/stand-in","version":"1.2.3"},"agentCapabilities":{"loadSession":true}}'; }
opened() { answer '{"sessionId":"s1"}'; }
loaded() { log loaded; again=yes; tell 'VERDICT: REJECTED, in another life'; answer null; }
creator_turn() { tell '{proposal}'; ended; }
maker_turn() {
    tell 'I begin.'
    ask edit "$PWD/src/app.txt" && echo made >> src/app.txt
    ask edit tests/app_test.sh && echo 'grep -q made src/app.txt' > tests/app_test.sh
    ask edit '{base}/outside.txt' && echo evil > '{base}/outside.txt'
    ask execute ''
    tell 'I added the line and its test.\n\nSTATUS: DONE\n'
    ended
}
guardian_turn() {
    tell 'I look.'
    ask read "$PWD/src/app.txt"
    ask edit "$PWD/src/evil.txt" && echo evil > src/evil.txt
    ask execute '' && echo evil > evil.txt
    say '{"jsonrpc":"2.0","id":7,"method":"fs/write_text_file","params":{"sessionId":"s1","path":"'"$PWD"'/evil.txt","content":"evil"}}'
    read -r reply
    case $reply in *'"code":-32601'*'"id":7'*) log 'was told -32601' ;; *) log "heard $reply" ;; esac
    tell 'VERDICT: APPROVED\nFINDINGS: 0\n\n'
    tell 'STATUS: DONE\n'
    ended
}
cancelled() { log cancelled; answer '{"stopReason":"cancelled"}'; exit 0; }
{special}
while read -r line; do
    case $line in
        *'"method":"session/cancel"'*) cancelled; continue ;;
    esac
    id=${line#*\"id\":}
    id=${id%%,*}
    case $line in
        *'"method":"initialize"'*) greet ;;
        *'"method":"session/new"'*) opened ;;
        *'"method":"session/load"'*'"sessionId":"s1"'*) loaded ;;
        *'"method":"session/prompt"'*)
            code=${line##*'as in `STATUS: DONE '}
            code=${code%%'`'*}
            "${ARCHEFLOW_ROLE}_turn" ;;
    esac
done
"##;

const PROPOSAL: &str = "## Architecture\n\nA line. Rationale: asked for.\n\n## Files\n\n- `src/app.txt`\n- `tests/app_test.sh`\n\n\
    ## Alternatives\n\n- none: rejected\n\n## Test strategy\n\n- the line is there\n\n## Confidence\n\n\
    | Axis | Score |\n|---|---|\n| Task understanding | 0.95 |\n| Solution completeness | 0.9 |\n\
    | Risk coverage | 0.9 |\n\n## Risks\n\n- None.\n\nSTATUS: DONE\n";

/// A test and the spec of its stand-in.
fn stand_in(special: &str, config: &str) -> (Test, String) {
    let test = Test::new().config(config);
    test.open_base();
    let base = test.base().display().to_string();
    let text = STAND_IN
        .replace("{special}", special)
        .replace("{base}", &base)
        .replace("{proposal}", &PROPOSAL.replace('\n', "\\n"));
    let file = test.base().join("agents/stand-in");
    fs::write(&file, text).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
    let spec = format!("acp:{}", file.display());
    (test, spec)
}

fn log(test: &Test) -> Vec<String> {
    let text = fs::read_to_string(test.base().join("agent.log")).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

fn lines<'a>(outcome: &'a Outcome, kind: &str, who: &str) -> Vec<&'a Value> {
    outcome.journal.iter().filter(|line| line["type"] == kind && line["agent"] == who).collect()
}

#[test]
fn issue_4_permission_is_given_only_to_the_maker_in_its_copy() {
    let (test, spec) = stand_in("", "");
    let outcome = test.go(&["--agent", &spec, "--auto-merge"]).ended("merged", "approved", 0);
    assert!(test.read("src/app.txt").ends_with("made\n"), "{outcome}");
    let outside = test.base().join("outside.txt").display().to_string();
    assert_eq!(
        log(&test),
        [
            "maker was given edit src/app.txt",
            "maker was given edit tests/app_test.sh",
            &format!("maker was refused edit {outside}"),
            "maker was given execute ",
            "guardian was given read src/app.txt",
            "guardian was refused edit src/evil.txt",
            "guardian was refused execute ",
            "guardian was told -32601",
        ]
    );
    assert!(!test.base().join("outside.txt").exists());
    let guardian = lines(&outcome, "agent.complete", "guardian");
    assert!(!guardian[0]["data"]["notes"].to_string().contains("read-only"), "{outcome}");
    let maker = lines(&outcome, "agent.complete", "maker");
    assert_eq!(maker[0]["data"]["session"]["id"], "s1");
    assert!(maker[0]["data"]["tokens"].is_null(), "I4: the last request is no statement");
    assert!(
        outcome.artifact("do-maker.md").starts_with("I added the line"),
        "the last message is the answer"
    );
}

#[test]
fn af_138_a_correction_takes_up_the_session_of_an_acp_agent() {
    let special = r#"
maker_turn() {
    if test "$again"; then rm src/stray.txt; else echo made >> src/app.txt; echo x > tests/app_test.sh; echo x > src/stray.txt; fi
    tell 'I did it.\n\nSTATUS: DONE\n'
    ended
}"#;
    let (test, spec) = stand_in(special, "");
    let outcome = test.go(&["--agent", &spec, "--auto-merge"]).ended("merged", "approved", 0);
    let starts = lines(&outcome, "agent.start", "maker");
    assert_eq!(starts[1]["data"]["purpose"], "correct", "{outcome}");
    assert_eq!(log(&test).iter().filter(|line| *line == "maker loaded").count(), 1, "{:?}", log(&test));
    assert!(!test.repo.join("src/stray.txt").exists());
}

#[test]
fn issue_4_ends_of_acp_agents_that_misbehave() {
    let busy = "retries:\n  busy_waits_seconds: [0]\n";
    let silent = "limits:\n  silence_seconds: 1\n";
    let turn = |what: &str| format!("creator_turn() {{ {what}; }}");
    let error = |code: i32, said: &str| turn(&format!(r#"fail '{{"code":{code},"message":"{said}"}}'"#));
    let stops = |why: &str| turn(&format!(r#"tell half; answer '{{"stopReason":"{why}"}}'"#));
    let merged = (("merged", "approved", 0), "");
    let failed = |kind| (("failed", "agent_failures", 30), kind);
    each(
        vec![
            ("garbage", "printf 'Welcome!\\n\\n{\\n[1]\\n\\377\\n'".to_owned(), "", merged),
            ("a huge line", "head -c 17000000 /dev/zero | tr '\\0' x; echo".to_owned(), "", merged),
            ("vendor's news", "say '{\"jsonrpc\":\"2.0\",\"method\":\"_us/news\"}'".to_owned(), "", merged),
            ("ends early", "echo 'no licence' >&2; exit 3".to_owned(), "", failed("exit")),
            ("ends well, early", turn("exit 0"), "", failed("exit")),
            ("is killed", turn("kill -SEGV $$"), "", failed("signal")),
            ("can't be run", "exit 127".to_owned(), "", failed("not_started")),
            ("closes its output", turn("exec >&-; sleep 600"), "", failed("exit")),
            (
                "another version",
                "greet() { answer '{\"protocolVersion\":2}'; }".to_owned(),
                "",
                failed("exit"),
            ),
            ("never greets", "greet() { touch {base}/overdue; }".to_owned(), silent, failed("silence")),
            (
                "never reads",
                "touch {base}/overdue; while :; do sleep 1; done".to_owned(),
                silent,
                failed("silence"),
            ),
            ("401", error(-32000, "Authentication required"), "", (("stopped", "not_signed_in", 31), "auth")),
            ("429", error(429, "slow down"), busy, (("stopped", "provider_busy", 31), "rate_limit")),
            ("500", error(-32603, "API Error: 500"), busy, (("stopped", "provider_busy", 31), "overload")),
            ("too long", error(-32603, "prompt is too long"), "", failed("context_too_long")),
            (
                "told as an answer",
                turn("tell 'Ran into this error: Status: 401'; answer '{\"stopReason\":\"end_turn\"}'"),
                "",
                (("stopped", "not_signed_in", 31), "auth"),
            ),
            ("refuses", stops("refusal"), "", failed("refused")),
            ("cut off", stops("max_tokens"), "", failed("garbled")),
            ("out of turns", stops("max_turn_requests"), "", failed("exit")),
            ("says nothing", turn("ended"), "", failed("empty")),
            ("stops when refused", turn("ask edit x; ended"), "", failed("permission_denied")),
        ],
        |(name, special, config, (end, kind))| {
            let (test, spec) = stand_in(&special, config);
            let outcome = test.go(&["--agent", &spec, "--auto-merge"]);
            let said = (outcome.json["status"].as_str(), outcome.json["reason"].as_str(), outcome.code);
            assert_eq!(said, (Some(end.0), Some(end.1), end.2), "{name}\n{outcome}");
            if !kind.is_empty() {
                let kinds: Vec<_> =
                    outcome.journal.iter().filter_map(|line| line["data"]["kind"].as_str()).collect();
                assert!(kinds.contains(&kind), "{name}: {kinds:?}\n{outcome}");
            }
            if name == "ends early" {
                assert!(outcome.stderr.contains("exit code 3") && outcome.stderr.contains("no licence"));
            }
        },
    );
}

/// C-03: what an agent's transcript says it has used counts while it works, and ends it when nothing is left.
#[test]
fn c_03_an_acp_agent_is_stopped_when_its_share_is_used_up() {
    let special = r#"
maker_turn() {
    echo made >> src/app.txt
    folder="$HOME/.codex/sessions/2026/11/16"
    mkdir -p "$folder"
    for n in 1 2 3 4 5 6 7 8 9; do
        printf '{"type":"event_msg","payload":{"type":"token_count","info":{"total_token_usage":{"total_tokens":%s},"last_token_usage":{"input_tokens":10000,"output_tokens":0}}}}\n' "$n" >> "$folder/rollout-s1.jsonl"
        tell "request $n"
    done
    read -r reply
}"#;
    let (test, spec) = stand_in(special, "costs:\n  per_agent_usd: 0.01\nretries:\n  attempts: 0\n");
    let test = test.meanwhile(&["home:."]);
    let outcome = test.go(&["--agent", &spec, "--auto-merge", "--budget", "0.2"]);
    let outcome = outcome.ended("wiggum_break", "budget", 11);
    let failed = lines(&outcome, "agent.failed", "maker");
    let [failed] = failed.as_slice() else { panic!("{outcome}") };
    let data = &failed["data"];
    assert_eq!((data["kind"].clone(), data["cost_source"].clone()), (json!("budget"), json!("priced")));
    assert!(data["estimated_cost_usd"].as_f64() >= Some(0.19), "{outcome}");
    assert!(data["kept_as"].is_string(), "its work is kept\n{outcome}");
    assert!(outcome.stderr.contains("share of the budget"), "{outcome}");
    let why = test.run(&["show", &outcome.id, "--why"]).stdout;
    assert!(why.contains("I4") && why.contains("it is stopped"), "{why}");
    assert!(lines(&outcome, "agent.usage", "maker").len() <= 9, "{outcome}");
    let again = test.run(&["replay", "timeline", &outcome.id]);
    assert_eq!(again.code, 0, "{again}");
}

#[test]
fn m_c1_an_acp_agent_that_is_not_there_is_named_beforehand() {
    let outcome = Test::new().go(&["--agent", "acp:/no/such/agent --acp"]);
    assert!(outcome.stderr.contains("/no/such/agent") && outcome.code != 0, "{outcome}");
    assert!(outcome.journal.is_empty(), "{outcome}");
}

fn await_life(word: &str) {
    let begun = Instant::now();
    while running(word).is_empty() {
        assert!(begun.elapsed() < LONG, "{word} never ran");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn issue_4_a_stopped_acp_agent_is_called_off_and_leaves_nothing_running() {
    let word = |which: &str| format!("acp-left-{}-{which}", std::process::id());
    // One gives in, one hears nothing; both have started something that belongs to nobody.
    for (which, special, gives_in) in
        [("gives", "", true), ("deaf", "trap '' TERM HUP INT; cancelled() { :; }; deaf=yes", false)]
    {
        let word = word(which);
        let special = format!(
            "maker_turn() {{ echo made >> src/app.txt; touch '{word}'; setsid tail -f '{word}' >/dev/null 2>&1 & \
             test \"$deaf\" && while :; do sleep 1; done; :; }}\n{special}"
        );
        let (test, spec) = stand_in(&special, "");
        let arguments = test.arguments("Add a line", &["--agent", &spec, "--auto-merge"]);
        let arguments = as_strs(&arguments);
        let stopped = test.during(&arguments, |child| {
            await_life(&format!("-f\0{word}"));
            signal(child, "TERM");
        });
        assert_eq!(stopped.code, 143, "{which}: {stopped}");
        assert_eq!(running(&word), [""; 0], "{which}: something was left running");
        assert_eq!(log(&test).contains(&"maker cancelled".to_owned()), gives_in, "{which}");
        assert!(test.git(["log", "--all", "-p"]).contains("+made"), "I2: what it had done is kept");
    }
}

// The real ones.

/// An agent as the tests start it, below `target/clients`, and the tools its model asks for.
struct Row {
    command: &'static str,
    shell: fn(&str) -> Reply,
    write: fn() -> Reply,
    /// What its user has set up: variables, and a file of settings with its place in the home directory.
    variables: &'static [(&'static str, &'static str)],
    settings: (&'static str, &'static str),
    /// It tells the tokens of the whole turn. Side errands may be in them.
    counts: bool,
    /// Its mode stops every way of writing, or it asks before.
    holds: bool,
    /// It tries again by itself for longer than our clocks allow.
    retries: bool,
    /// Cases that it tells in another way.
    differs: &'static [(&'static str, &'static str)],
}

const WORK: &str = "echo made >> src/app.txt; echo 'grep -q made src/app.txt' > tests/app_test.sh";
const EVIL: &str = "echo evil > evil.txt; echo evil > src/evil.txt";
const MADE: &str = "I added the line and its test.\n\nSTATUS: DONE\n";
const APPROVED: &str = "VERDICT: APPROVED\nFINDINGS: 0\n\nSTATUS: DONE\n";

const CLAUDE: Row = Row {
    command: "claude-agent-acp/node_modules/.bin/claude-agent-acp",
    shell: |command| Reply::Use("Bash", json!({"command": command, "description": "work"})),
    write: || Reply::Use("Write", json!({"file_path": "evil.txt", "content": "evil"})),
    variables: &[
        ("ANTHROPIC_API_KEY", "test"),
        ("ANTHROPIC_BASE_URL", "{address}"),
        ("CLAUDE_CODE_MAX_RETRIES", "0"),
        ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
        ("DISABLE_AUTOUPDATER", "1"),
    ],
    settings: (".claude/settings.json", "{}"),
    counts: true,
    holds: true,
    retries: false,
    differs: &[],
};

const CODEX: Row = Row {
    command: "codex-acp/node_modules/.bin/codex-acp",
    shell: |command| Reply::Use("exec_command", json!({"cmd": command})),
    write: || Reply::Use("exec_command", json!({"cmd": EVIL})),
    variables: &[("LOCAL_API_KEY", "test")],
    settings: (
        ".codex/config.toml",
        "model = \"gpt-5.5\"\nmodel_provider = \"local\"\ncheck_for_update_on_startup = false\n\
         [analytics]\nenabled = false\n[model_providers.local]\nname = \"local\"\nbase_url = \"{address}/v1\"\n\
         wire_api = \"responses\"\nenv_key = \"LOCAL_API_KEY\"\nrequest_max_retries = 0\nstream_max_retries = 0\n",
    ),
    counts: true,
    holds: true,
    retries: false,
    differs: &[],
};

const GEMINI: Row = Row {
    command: "gemini/node_modules/.bin/gemini --acp --skip-trust -m gemini-2.5-flash",
    shell: |command| Reply::Use("run_shell_command", json!({"command": command, "description": "work"})),
    write: || Reply::Use("write_file", json!({"file_path": "evil.txt", "content": "evil"})),
    variables: &[
        ("GEMINI_API_KEY", "test"),
        ("GOOGLE_GEMINI_BASE_URL", "{address}"),
        ("GEMINI_CLI_NO_RELAUNCH", "true"),
    ],
    settings: (
        ".gemini/settings.json",
        r#"{"security": {"auth": {"selectedType": "gemini-api-key"}, "folderTrust": {"enabled": false}},
            "general": {"disableAutoUpdate": true, "enableAutoUpdate": false},
            "privacy": {"usageStatisticsEnabled": false}, "telemetry": {"enabled": false}}"#,
    ),
    counts: true,
    holds: true,
    retries: true,
    differs: &[],
};

const OPENCODE: Row = Row {
    command: "opencode/node_modules/.bin/opencode acp",
    shell: |command| Reply::Use("bash", json!({"command": command, "description": "work"})),
    write: || Reply::Use("write", json!({"filePath": "evil.txt", "content": "evil"})),
    variables: &[
        ("OPENCODE_DISABLE_AUTOUPDATE", "1"),
        ("OPENCODE_DISABLE_MODELS_FETCH", "1"),
        ("OPENCODE_DISABLE_LSP_DOWNLOAD", "1"),
        ("OPENCODE_DISABLE_DEFAULT_PLUGINS", "1"),
    ],
    settings: (
        ".config/opencode/opencode.json",
        r#"{"autoupdate": false, "share": "disabled", "model": "local/scripted", "small_model": "local/scripted",
            "provider": {"local": {"npm": "@ai-sdk/openai-compatible", "name": "local",
                "options": {"baseURL": "{address}/v1", "apiKey": "test"},
                "models": {"scripted": {"name": "scripted", "tool_call": true,
                    "limit": {"context": 128000, "output": 8000}}}}}}"#,
    ),
    counts: false,
    holds: false,
    retries: true,
    // It hands on the words of its provider without the status, and the scripted ones say nothing. What is too
    // long it sums up first, which the script does not expect.
    differs: &[("401", "exit"), ("429", "exit"), ("500", "exit"), ("too long", "exit")],
};

const GOOSE: Row = Row {
    command: "goose/node_modules/.bin/goose acp --with-builtin developer",
    shell: |command| Reply::Use("shell", json!({"command": command})),
    write: || Reply::Use("write", json!({"path": "evil.txt", "content": "evil"})),
    variables: &[
        ("GOOSE_PROVIDER", "openai"),
        ("GOOSE_MODEL", "scripted"),
        ("GOOSE_MODE", "auto"),
        ("OPENAI_HOST", "{address}"),
        ("OPENAI_BASE_PATH", "v1/chat/completions"),
        ("OPENAI_API_KEY", "test"),
        ("GOOSE_DISABLE_KEYRING", "1"),
        ("GOOSE_TELEMETRY_ENABLED", "false"),
        ("GOOSE_DISABLE_SESSION_NAMING", "true"),
    ],
    settings: (".config/goose/config.yaml", ""),
    counts: false,
    holds: true,
    retries: true,
    // It sums up what was said and then says nothing.
    differs: &[("too long", "empty")],
};

fn say(text: &str) -> Reply {
    Reply::Say(text.to_owned())
}

/// An agent that has tried so often tries for ever.
const TRIES: usize = 3;

fn clients() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/clients").canonicalize().unwrap()
}

/// A test whose user has set up this agent, and its spec.
fn real(row: &Row, model: &Model) -> (Test, String) {
    real_with(row, model, "")
}

/// The same with more in the user's configuration.
fn real_with(row: &Row, model: &Model, more: &str) -> (Test, String) {
    let program = clients().join(row.command);
    let there = PathBuf::from(program.to_string_lossy().split(' ').next().unwrap());
    assert!(there.exists(), "{} is not there: run `cargo xtask clients`", there.display());
    let names: Vec<&str> = row.variables.iter().map(|(name, _)| *name).collect();
    let config = format!(
        "agents:\n  env: [{}]\nretries:\n  busy_waits_seconds: [0]\nlimits:\n  silence_seconds: 10\n{more}",
        names.join(", "),
    );
    let mut test = Test::new().config(&config);
    let (place, text) = row.settings;
    let place = test.home().join(place);
    fs::create_dir_all(place.parent().unwrap()).unwrap();
    fs::write(place, text.replace("{address}", &model.address)).unwrap();
    let node = clients().join("node22/node_modules/node/bin");
    // The agents are the user's own and keep their sessions where they always do.
    test = test.meanwhile(&["home:."]);
    test = test.env("PATH", format!("{}:/usr/local/bin:/usr/bin:/bin", node.display()));
    for (name, value) in row.variables {
        test = test.env(name, value.replace("{address}", &model.address));
    }
    (test, format!("acp:{}", program.display()))
}

/// All that is asked of a real agent, one thing after the other, in two parts so that nobody waits too long for a word.
fn works(row: &Row) {
    lands_and_reviews_without_writing(row);
    obeys_no_repository(row);
    takes_up_its_session(row);
    leaves_nothing_running(row);
}

fn lands_and_reviews_without_writing(row: &Row) {
    let model = Model::new(&[
        ("creator", &[say(PROPOSAL)]),
        ("maker", &[(row.shell)(WORK), say(MADE)]),
        ("guardian", &[(row.write)(), (row.shell)(EVIL), say(APPROVED)]),
    ]);
    let (test, spec) = real(row, &model);
    let outcome = test.go(&["--agent", &spec, "--auto-merge"]).ended("merged", "approved", 0);
    assert!(test.read("src/app.txt").ends_with("made\n"), "{outcome}");
    assert!(!test.repo.join("evil.txt").exists() && !test.repo.join("src/evil.txt").exists());
    assert!(model.asked_by("guardian").len() >= 3, "{spec}: it did try");
    for who in ["creator", "maker", "guardian"] {
        let complete = lines(&outcome, "agent.complete", who);
        let [complete] = complete.as_slice() else { panic!("{who}: {outcome}") };
        let asked = model.asked_by(who).len() as u64;
        let tokens = &complete["data"]["tokens"];
        assert_eq!(tokens.is_object(), row.counts, "{who}: {tokens}");
        assert!(!row.counts || tokens["input"].as_u64() >= Some(100 * asked), "{who}: I4 {tokens}");
        assert!(complete["data"]["session"]["id"].is_string(), "{who}");
        let changed = complete["data"]["notes"].to_string().contains("read-only");
        assert!(!changed || !row.holds, "{who} changed its checkout\n{outcome}");
    }
}

/// C-02: what the repository brings is obeyed by no adapter either.
fn obeys_no_repository(row: &Row) {
    let model = Model::new(&[
        ("creator", &[say(PROPOSAL)]),
        ("maker", &[(row.shell)("cat src/app.txt"), (row.shell)(WORK), say(MADE)]),
        ("guardian", &[say(APPROVED)]),
    ]);
    let (test, spec) = real(row, &model);
    let marks = hostile(&test);
    let outcome = test.go(&["--agent", &spec, "--auto-merge"]).ended("merged", "approved", 0);
    nothing_obeyed(&test, &marks, &spec);
    for who in ["creator", "maker", "guardian"] {
        assert!(!format!("{:?}", model.asked_by(who)).contains(INJECTED), "{spec}: {who}\n{outcome}");
    }
}

fn takes_up_its_session(row: &Row) {
    let stray = format!("{WORK}; echo stray > src/stray.txt");
    let model = Model::new(&[
        ("creator", &[say(PROPOSAL)]),
        ("maker", &[(row.shell)(&stray), say(MADE), (row.shell)("rm src/stray.txt"), say(MADE)]),
        ("guardian", &[say(APPROVED)]),
    ]);
    let (test, spec) = real(row, &model);
    let outcome = test.go(&["--agent", &spec, "--auto-merge"]).ended("merged", "approved", 0);
    // Gemini writes over a session that is taken up within the minute it began in; then the whole brief is sent.
    let failed = lines(&outcome, "agent.failed", "maker");
    if row.command.starts_with("gemini") && !failed.is_empty() {
        assert!(failed[0]["data"]["reason"].to_string().contains("No previous sessions found"), "{outcome}");
        return;
    }
    let complete = lines(&outcome, "agent.complete", "maker");
    let [first, corrected] = complete.as_slice() else { panic!("{outcome}") };
    assert_eq!(first["data"]["session"]["id"], corrected["data"]["session"]["id"], "{spec}");
    // Not the last one that was asked: some ask for a name of the conversation beside it.
    let asked: Vec<String> = model.asked_by("maker").iter().map(ToString::to_string).collect();
    // Goose may leave out a call of a tool that is long done; its answer stays.
    let whole = |text: &String| text.contains("I added the line") && text.contains("# Correction");
    assert!(asked.iter().any(whole), "{spec}: one conversation\n{asked:#?}");
    assert!(!test.repo.join("src/stray.txt").exists());
}

fn distinguishes_faults(row: &Row) {
    for (what, reply, (status, reason, code), kinds) in [
        ("401", Reply::Status(401), ("stopped", "not_signed_in", 31), &["auth"][..]),
        ("429", Reply::Status(429), ("stopped", "provider_busy", 31), &["rate_limit"]),
        ("500", Reply::Status(500), ("stopped", "provider_busy", 31), &["overload"]),
        ("too long", Reply::TooLong, ("failed", "agent_failures", 30), &["context_too_long"]),
        ("hangs", Reply::Hang, ("failed", "agent_failures", 30), &["silence"]),
    ] {
        // Agents that try again by themselves for minutes are ended by our clocks, and say nothing about it.
        let tries = row.retries && matches!(what, "429" | "500" | "too long");
        let model = Model::new(&[("creator", &[reply])]);
        let (test, spec) = real(row, &model);
        model.makes_overdue(test.overdue(), if tries { TRIES } else { usize::MAX });
        let outcome = test.go(&["--agent", &spec, "--auto-merge"]);
        let said = (outcome.json["status"].as_str(), outcome.json["reason"].as_str(), outcome.code);
        let kind = |line: &Value| line["data"]["kind"].as_str().map(str::to_owned);
        let told: Vec<String> = outcome.journal.iter().filter_map(kind).collect();
        let differs = said.1 == Some("agent_failures")
            && told.iter().all(|kind| row.differs.contains(&(what, kind.as_str())));
        let expected = said == (Some(status), Some(reason), code)
            && told.iter().all(|kind| kinds.contains(&kind.as_str()));
        let ended = tries && said.1 == Some("agent_failures") && told.iter().all(|kind| kind == "silence");
        assert!(expected || differs || ended, "{spec} {what}: {said:?} {told:?}\n{outcome}");
    }
}

fn leaves_nothing_running(row: &Row) {
    let word = format!("acp-real-{}-{}", std::process::id(), row.command.len());
    let command = format!("{WORK}; touch {word}; setsid tail -f {word} & tail -f {word}");
    let model = Model::new(&[
        ("creator", &[say(PROPOSAL)]),
        ("maker", &[(row.shell)(&command), say(MADE)]),
        ("guardian", &[say(APPROVED)]),
    ]);
    let (test, spec) = real(row, &model);
    let arguments = test.arguments("Add a line", &["--agent", &spec, "--auto-merge"]);
    let arguments = as_strs(&arguments);
    let stopped = test.during(&arguments, |child| {
        await_life(&format!("-f\0{word}"));
        signal(child, "TERM");
    });
    assert_eq!(stopped.code, 143, "{spec}: {stopped}");
    assert_eq!(running(&word), [""; 0], "{spec}: something was left running");
    assert!(test.git(["log", "--all", "-p"]).contains("+made"), "I2: what it had done is kept");
}

#[test]
#[ignore = "needs the real agents: cargo xtask clients"]
fn c_03_acp_claude_agent_acp_is_stopped_when_its_share_is_used_up() {
    is_stopped_for_its_cost(&CLAUDE);
}

#[test]
#[ignore = "needs the real agents: cargo xtask clients"]
fn c_03_acp_codex_acp_is_stopped_when_its_share_is_used_up() {
    is_stopped_for_its_cost(&CODEX);
}

/// C-03: a Maker that never comes to an end.
fn is_stopped_for_its_cost(row: &Row) {
    let replies: Vec<Reply> = (0..1_000).map(|n| (row.shell)(&format!("echo {n}"))).collect();
    let model = Model::new(&[("creator", &[say(PROPOSAL)]), ("maker", &replies)]);
    let (test, spec) = real_with(row, &model, "costs:\n  per_agent_usd: 0.0005\n");
    let outcome = test.go(&["--agent", &spec, "--auto-merge", "--budget", "0.02"]);
    let outcome = outcome.ended("wiggum_break", "budget", 11);
    let failed = lines(&outcome, "agent.failed", "maker");
    assert_eq!(
        failed.last().map(|failed| failed["data"]["kind"].clone()),
        Some(json!("budget")),
        "{outcome}"
    );
}

#[test]
#[ignore = "needs the real agents: cargo xtask clients"]
fn issue_4_acp_claude_agent_acp_works() {
    works(&CLAUDE);
}

#[test]
#[ignore = "needs the real agents: cargo xtask clients"]
fn issue_4_acp_claude_agent_acp_distinguishes_faults() {
    distinguishes_faults(&CLAUDE);
}

#[test]
#[ignore = "needs the real agents: cargo xtask clients"]
fn issue_4_acp_codex_acp_works() {
    works(&CODEX);
}

#[test]
#[ignore = "needs the real agents: cargo xtask clients"]
fn issue_4_acp_codex_acp_distinguishes_faults() {
    distinguishes_faults(&CODEX);
}

#[test]
#[ignore = "needs the real agents: cargo xtask clients"]
fn issue_4_acp_gemini_works() {
    works(&GEMINI);
}

#[test]
#[ignore = "needs the real agents: cargo xtask clients"]
fn issue_4_acp_gemini_distinguishes_faults() {
    distinguishes_faults(&GEMINI);
}

#[test]
#[ignore = "needs the real agents: cargo xtask clients"]
fn issue_4_acp_opencode_works() {
    works(&OPENCODE);
}

#[test]
#[ignore = "needs the real agents: cargo xtask clients"]
fn issue_4_acp_opencode_distinguishes_faults() {
    distinguishes_faults(&OPENCODE);
}

#[test]
#[ignore = "needs the real agents: cargo xtask clients"]
fn issue_4_acp_goose_works() {
    works(&GOOSE);
}

#[test]
#[ignore = "needs the real agents: cargo xtask clients"]
fn issue_4_acp_goose_distinguishes_faults() {
    distinguishes_faults(&GOOSE);
}
