//! Clients with a name of their own: what is started, and what recordings of the real ones are read as. The rows are
//! in `docs/agents.md`.

use std::collections::BTreeSet;
use std::error::Error;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use archeflow_core::event::{Failure, Session};
use archeflow_core::model::{AnswerBody, Money, Role, Tier};
use archeflow_core::read;
use archeflow_core::rules::ledger::Stated;
use archeflow_host::backends::cli::{Client, CommandInputs, Start};
use archeflow_host::backends::{self, cli};
use archeflow_host::client_output::ClientOutput;

#[path = "common/page.rs"]
mod page;

use page::rows;

type Result<T = ()> = std::result::Result<T, Box<dyn Error>>;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/captures")
}

fn heard(client: &Client, recording: &str) -> Result<(ClientOutput, Vec<String>)> {
    let path = root().join(client.name).join(format!("{recording}.jsonl"));
    let text = std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let mut heard = ClientOutput::default();
    let notes = text.lines().filter_map(|line| client.hear(line, &mut heard)).collect();
    Ok((heard, notes))
}

/// The word of the table: what the client gave up for, or was struggling with, or was refused.
fn fault(client: &Client, heard: &ClientOutput) -> Result<String> {
    let named =
        |kind: Failure| serde_json::to_value(kind).map(|name| name.as_str().unwrap_or_default().to_owned());
    let struggled = heard.hitch.as_ref().filter(|_| !heard.finished);
    Ok(match heard.fault.as_ref().or(struggled) {
        Some(fault) => named(fault.kind)?,
        None if !heard.finished => "unfinished".to_owned(),
        None if heard.denied.iter().any(|tool| client.needs(tool)) => named(Failure::PermissionDenied)?,
        None => "-".to_owned(),
    })
}

#[test]
fn issue_4_recordings_of_real_clients_are_read_as_the_page_says() -> Result {
    let rows = rows("### How their signs are read")?;
    assert!(rows.len() > 90, "{} rows", rows.len());
    for row in &rows {
        let [name, recording, _, _, after, wanted, answer, tokens, dollars, session] = row.as_slice() else {
            return Err(format!("{row:?} has not ten cells").into());
        };
        let at = format!("{name}/{recording}");
        let client = cli::find(name).ok_or("no such client")?;
        let (heard, _) = heard(client, recording)?;
        assert_eq!(fault(client, &heard)?, *wanted, "{at}: fault");
        if answer != "-" {
            assert_eq!(heard.answer.lines().next(), Some(answer.as_str()), "{at}: answer");
        }
        let before = if after == "-" { None } else { client.session(&self::heard(client, after)?.0) };
        let usage = client.usage(&heard, before.as_ref());
        let told = usage.tokens.map_or_else(
            || "-".to_owned(),
            |tokens| {
                format!("{} {} {} {}", tokens.input, tokens.output, tokens.cache_read, tokens.cache_write)
            },
        );
        assert_eq!(told, *tokens, "{at}: tokens");
        let cost = if dollars == "-" { Stated::Nothing } else { Stated::read(dollars) };
        assert_eq!(usage.cost, cost, "{at}: dollars");
        let session = if session == "-" { "" } else { session };
        assert!(heard.session.starts_with(session), "{at}: session {}", heard.session);
        if let Some(before) = before {
            assert_eq!(heard.session, before.id, "{at}: the same session");
        }
    }
    Ok(())
}

#[test]
fn the_manual_lists_every_agent() -> Result {
    let page = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/agents.md"))?;
    let wanted = backends::in_manual(&page).ok_or("docs/agents.md does not mark where its list is")?;
    assert!(page == wanted, "docs/agents.md is out of date; run `cargo xtask docs`");
    Ok(())
}

#[test]
fn no_recording_is_forgotten() -> Result {
    let told: BTreeSet<_> = rows("### How their signs are read")?
        .iter()
        .map(|row| Path::new(&row[0]).join(format!("{}.jsonl", row[1])))
        .collect();
    let mut there = BTreeSet::new();
    for client in cli::ALL.into_iter().filter(|client| !client.is_own()) {
        for entry in std::fs::read_dir(root().join(client.name))? {
            there.insert(Path::new(client.name).join(entry?.file_name()));
        }
    }
    assert_eq!(told, there);
    Ok(())
}

#[test]
fn issue_4_an_answer_in_a_form_is_found_and_checked() -> Result {
    for (name, recording, wanted) in [
        ("claude", "form", "1 finding"),
        ("claude", "form-mended", "1 finding"),
        ("claude", "form-never", "it is not JSON"),
        ("claude", "form-broken", "it is not JSON"),
        ("codex", "form", "1 finding"),
        ("codex", "form-never", "it is not JSON"),
        ("codex", "form-broken", "the answer.verdict is \"fine\""),
    ] {
        let (heard, _) = heard(cli::find(name).ok_or("no such client")?, recording)?;
        let given = heard.form.as_ref().unwrap_or(&heard.answer);
        let found = match read::render(Role::Gatekeeper, given) {
            Ok(markdown) => match read::answer(Role::Gatekeeper, "guardian", markdown.as_bytes()).said {
                AnswerBody::Review(review) if review.unread.is_none() => {
                    format!("{} finding", review.findings.len())
                }
                other @ (AnswerBody::Prose | AnswerBody::Proposal(_) | AnswerBody::Review(_)) => {
                    format!("{other:?}")
                }
            },
            Err(why) => why,
        };
        assert_eq!(found, wanted, "{name}/{recording}");
    }
    Ok(())
}

#[test]
fn issue_4_a_schema_reaches_the_client() -> Result {
    let claude = line(&start_with("claude", false, "", &[], None, Some("{schema}"))?);
    assert!(claude.contains("--json-schema {schema}"), "{claude}");
    let resumed = Session { id: "1-2-3".to_owned(), counted: None };
    let codex = start_with("codex", false, "", &[], Some(&resumed), Some("{schema}"))?;
    assert!(line(&codex).contains("--output-schema /its/own/answer.schema.json resume 1-2-3 -"), "{codex:?}");
    assert_eq!(codex.files, [(PathBuf::from("/its/own/answer.schema.json"), "{schema}".to_owned())]);
    for client in cli::ALL {
        let without = start(client.name, false, "", &[], None)?;
        let written = without.files.iter().any(|(path, _)| path.ends_with("answer.schema.json"));
        assert!(!line(&without).contains("schema") && !written, "{without:?}");
    }
    Ok(())
}

#[test]
fn issue_4_people_see_what_a_client_does() -> Result {
    for (name, recording, wanted) in [
        (
            "claude",
            "success",
            &[
                "I will create the file.",
                "edits /repo/hello.txt",
                "runs wc -c hello.txt",
                "Done: hello.txt has 6 bytes.",
            ][..],
        ),
        (
            "codex",
            "patch",
            &["Patch.", "edits /repo/hello.txt", "runs apply_patch '*** Begin Patch", "Done."][..],
        ),
        ("claude", "form", &["I have read it.", "gives its answer"][..]),
        ("codex", "form", &["gives its answer"][..]),
        (
            "claude",
            "e401-r1",
            &[
                "waits for its provider: authentication_failed (401)",
                "Invalid API key · Fix external API key",
            ][..],
        ),
        (
            "gemini",
            "success",
            &["edits /repo/hello.txt", "runs wc -c hello.txt", "Done: hello.txt has 6 bytes."][..],
        ),
        (
            "opencode",
            "success",
            &[
                "I will create the file.",
                "edits /repo/hello.txt",
                "runs wc -c hello.txt",
                "Done: hello.txt has 6 bytes.",
            ][..],
        ),
        (
            "opencode",
            "reader",
            &["was refused write", "Now.", "was refused bash", "Now.", "VERDICT: APPROVED"][..],
        ),
        (
            "opencode",
            "refused",
            &[
                "waits for its provider: Cannot connect to API: Unable to connect. Is the computer able to access the url?",
            ][..],
        ),
        (
            "goose",
            "success",
            &["edits /repo/hello.txt", "runs wc -c hello.txt", "Done: hello.txt has 6 bytes."][..],
        ),
    ] {
        let (_, notes) = heard(cli::find(name).ok_or("no such client")?, recording)?;
        assert_eq!(notes, wanted, "{name}/{recording}");
    }
    Ok(())
}

/// What no attempt may be charged for: the provider never let it begin.
#[test]
fn i4_an_attempt_that_was_turned_away_has_not_worked() -> Result {
    for (name, recording, worked) in [
        ("claude", "e401-r1", false),
        ("claude", "e429-r1", false),
        ("claude", "success", true),
        ("codex", "401", false),
        ("codex", "refused", false),
        ("codex", "ctxfail", true),
        ("codex", "success", true),
        ("gemini", "401", false),
        ("gemini", "too-long", false),
        ("gemini", "drop", true),
        ("gemini", "success", true),
        ("opencode", "429", false),
        ("opencode", "refused", false),
        ("opencode", "ctx", true),
        ("opencode", "success", true),
        ("goose", "401", false),
        ("goose", "ctx", true),
        ("goose", "success", true),
    ] {
        let (heard, _) = heard(cli::find(name).ok_or("no such client")?, recording)?;
        assert_eq!(heard.worked, worked, "{name}/{recording}");
    }
    Ok(())
}

fn start(
    name: &str,
    writes: bool,
    model: &str,
    variables: &[(&str, &str)],
    resumes: Option<&Session>,
) -> Result<Start> {
    start_with(name, writes, model, variables, resumes, None)
}

fn start_with(
    name: &str,
    writes: bool,
    model: &str,
    variables: &[(&str, &str)],
    resumes: Option<&Session>,
    schema: Option<&str>,
) -> Result<Start> {
    let variables: Vec<(OsString, OsString)> =
        variables.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
    let (tree, home, tier) = (Path::new("/tree"), Path::new("/its/own"), Tier::Haiku);
    let inputs = CommandInputs {
        writes,
        tier,
        model,
        tree,
        home,
        me: Path::new("/me"),
        resumes,
        schema,
        share: None,
        variables: &variables,
        usual_provider: false,
        readable: None,
    };
    Ok(cli::find(name).ok_or("no such client")?.command(&inputs))
}

fn line(start: &Start) -> String {
    let words = start.invocation.args.iter().map(|arg| arg.to_string_lossy());
    words.collect::<Vec<_>>().join(" ")
}

#[test]
fn issue_4_only_the_maker_may_write() -> Result {
    for (name, reader, maker) in [
        (
            "claude",
            // Nothing is allowed in advance, so reads outside of the checkout are refused (C-07).
            "--tools Read,Grep,Glob --permission-mode default --setting-sources",
            "Bash,Edit,Write",
        ),
        ("codex", "-s read-only", "-s workspace-write"),
        ("goose", "--no-profile --with-builtin analyze", "--no-profile --with-builtin developer"),
    ] {
        let (reading, making) =
            (line(&start(name, false, "", &[], None)?), line(&start(name, true, "", &[], None)?));
        assert!(reading.contains(reader) && !reading.contains(maker), "{reading}");
        assert!(making.contains(maker) && !making.contains(reader), "{making}");
    }
    Ok(())
}

#[test]
fn c_07_without_our_sandbox_a_reader_of_codex_reads_listed_paths_only() -> Result {
    let readable = ["/repo/objects".into(), "/odd \"name\"".into()];
    let started = |writes| -> Result<String> {
        let inputs = CommandInputs {
            writes,
            tier: Tier::Haiku,
            model: "",
            tree: Path::new("/tree"),
            home: Path::new("/its/own"),
            me: Path::new("/me"),
            resumes: None,
            schema: None,
            share: None,
            variables: &[],
            usual_provider: false,
            readable: Some(&readable),
        };
        Ok(line(&cli::find("codex").ok_or("no such client")?.command(&inputs)))
    };
    let reading = started(false)?;
    let rules = r#""/repo/objects"="read","/odd \"name\""="read","/tree"="read",":minimal"="read""#;
    assert!(reading.contains(&format!("permissions.archeflow={{filesystem={{{rules}}}}}")), "{reading}");
    // Codex ignores the profile when both are given.
    assert!(!reading.contains("-s "), "{reading}");
    assert!(started(true)?.contains("-s workspace-write"));
    Ok(())
}

#[test]
fn c_08_commands_of_codex_get_settings_of_git_whole_or_not_at_all() -> Result {
    let line = line(&start("codex", true, "", &[], None)?);
    // `*KEY*` takes GIT_CONFIG_KEY_0; with GIT_CONFIG_COUNT alone no git command works.
    assert!(line.contains(r#""*KEY*""#) && line.contains(r#""GIT_CONFIG_*""#), "{line}");
    Ok(())
}

/// What a client is to find in its own folder.
fn file(start: &Start, name: &str) -> Result<String> {
    let found = start.files.iter().find(|(path, _)| path == &Path::new("/its/own").join(name));
    Ok(found.ok_or_else(|| format!("no {name}"))?.1.clone())
}

#[test]
fn issue_4_settings_say_who_may_write() -> Result {
    let (write, shell) = (r#""write_file""#, r#""run_shell_command""#);
    for (name, writes, at, has, has_not) in [
        ("gemini", false, ".gemini/settings.json", vec![r#""core":["read_file""#], vec![write, shell]),
        ("gemini", true, ".gemini/settings.json", vec![write, shell, r#""maxAttempts":2"#], vec![]),
        (
            "gemini",
            false,
            ".gemini/policies/archeflow.toml",
            vec![r#"decision = "deny""#, write],
            vec!["allow"],
        ),
        (
            "gemini",
            true,
            ".gemini/policies/archeflow.toml",
            vec![r#"decision = "allow""#, shell],
            vec!["deny"],
        ),
        (
            "opencode",
            false,
            "config/opencode/opencode.json",
            vec![r#""*":"deny""#, r#""read":"allow""#],
            vec![r#""edit":"#, r#""bash":"#],
        ),
        (
            "opencode",
            true,
            "config/opencode/opencode.json",
            vec![r#""*":"deny""#, r#""edit":"allow""#, r#""bash":"allow""#],
            vec!["task"],
        ),
    ] {
        let text = file(&start(name, writes, "", &[], None)?, at)?;
        assert!(has.iter().all(|word| text.contains(word)), "{name} {writes}: {text}");
        assert!(!has_not.iter().any(|word| text.contains(word)), "{name} {writes}: {text}");
        if Path::new(at).extension().is_some_and(|end| end == "json") {
            serde_json::from_str::<serde_json::Value>(&text)?;
        }
    }
    Ok(())
}

#[test]
fn issue_4_gemini_signs_in_the_way_its_user_does() -> Result {
    for (variables, way) in [
        (&[][..], "oauth-personal"),
        (&[("GEMINI_API_KEY", "k")][..], "gemini-api-key"),
        (&[("GEMINI_API_KEY", "k"), ("GOOGLE_GENAI_USE_VERTEXAI", "true")][..], "vertex-ai"),
    ] {
        let text = file(&start("gemini", true, "", variables, None)?, ".gemini/settings.json")?;
        assert!(text.contains(&format!(r#""selectedType":"{way}""#)), "{text}");
    }
    Ok(())
}

/// A repository that brings settings for a client has no say: it could name another host.
#[test]
fn r5_m_s5_a_repository_chooses_nothing_for_its_clients() -> Result {
    for (name, variable, value) in [
        ("gemini", "GEMINI_CLI_TRUST_WORKSPACE", "false"),
        ("opencode", "OPENCODE_DISABLE_PROJECT_CONFIG", "1"),
        ("goose", "CONTEXT_FILE_NAMES", "[]"),
    ] {
        let start = start(name, true, "", &[], None)?;
        assert!(start.env.contains(&(variable.into(), value.into())), "{name}");
    }
    Ok(())
}

#[test]
fn issue_4_opencode_gives_the_users_folders_to_the_commands_it_runs() -> Result {
    let variables = [("HOME", "/users/jo"), ("XDG_DATA_HOME", "/da\"ta")];
    let start = start("opencode", true, "", &variables, None)?;
    let companion = file(&start, "companion.js")?;
    assert!(companion.contains(r#"XDG_CONFIG_HOME: undefined, XDG_DATA_HOME: "/da\"ta""#), "{companion}");
    let linked: Vec<_> = start.linked.iter().map(|linked| linked.from.display().to_string()).collect();
    assert_eq!(linked, ["/da\"ta/opencode/auth.json", "/users/jo/.local/state/opencode/model.json"]);
    for (model, off) in [("", true), ("openai/gpt-5.5", true), ("opencode/big-pickle", false)] {
        let text = file(&self::start("opencode", true, model, &[], None)?, "config/opencode/opencode.json")?;
        assert_eq!(text.contains(r#""disabled_providers":["opencode"]"#), off, "{model}: {text}");
    }
    Ok(())
}

#[test]
fn issue_4_m_c29_the_users_settings_stay_out_and_the_login_comes_along() -> Result {
    let own = [
        ("HOME", "/users/jo"),
        ("ANTHROPIC_API_KEY", "sk-1"),
        ("CODEX_API_KEY", "sk-2"),
        ("GEMINI_API_KEY", "sk-3"),
    ];
    for (name, out, folder, keys, logins) in [
        (
            "claude",
            "--setting-sources  --strict-mcp-config",
            ("CLAUDE_CONFIG_DIR", ""),
            &["ANTHROPIC_API_KEY"][..],
            &["/users/jo/.claude/.credentials.json"][..],
        ),
        (
            "codex",
            "--ignore-user-config",
            ("CODEX_HOME", ""),
            &["CODEX_API_KEY"][..],
            &["/users/jo/.codex/auth.json"][..],
        ),
        (
            "gemini",
            "-o stream-json",
            ("GEMINI_CLI_HOME", ""),
            &["GEMINI_API_KEY"][..],
            &["/users/jo/.gemini/oauth_creds.json", "/users/jo/.gemini/google_accounts.json"][..],
        ),
        (
            "opencode",
            "--agent archeflow",
            ("XDG_DATA_HOME", "data"),
            // With keys of two providers and none named it gets neither (C-08).
            &[][..],
            &["/users/jo/.local/share/opencode/auth.json", "/users/jo/.local/state/opencode/model.json"][..],
        ),
        (
            "goose",
            "--no-profile",
            ("GOOSE_PATH_ROOT", ""),
            &["ANTHROPIC_API_KEY"][..],
            &["/users/jo/.config/goose/secrets.yaml"][..],
        ),
    ] {
        let start = start(name, true, "", &own, None)?;
        assert!(line(&start).contains(out), "{}", line(&start));
        assert!(!line(&start).contains("sk-"), "no key on a command line");
        let value = |name: &str| {
            start.env.iter().rev().find(|(known, _)| known == name).map(|(_, value)| value.clone())
        };
        let (variable, below) = folder;
        assert_eq!(value(variable).map(PathBuf::from), Some(Path::new("/its/own").join(below)), "{name}");
        assert!(value("HOME").is_none(), "{name}");
        let secret = start.env.iter().filter(|(_, value)| value.to_string_lossy().starts_with("sk-"));
        let passed: BTreeSet<_> = secret.map(|(name, _)| name.to_string_lossy().into_owned()).collect();
        assert_eq!(passed, keys.iter().map(|key| (*key).to_owned()).collect(), "{name} gets its own keys");
        let linked: Vec<_> = start.linked.iter().map(|linked| linked.from.display().to_string()).collect();
        assert_eq!(linked, logins);
        let away =
            start.linked.iter().map(|linked| &linked.to).chain(start.files.iter().map(|(path, _)| path));
        assert!(away.into_iter().all(|path| path.starts_with("/its/own")), "{name} writes at home only");
    }
    Ok(())
}

#[test]
fn issue_4_models_and_sessions_are_passed_on() -> Result {
    let session = Session { id: "1-2-3".to_owned(), counted: None };
    for (name, model, resumes, wanted) in [
        ("claude", "", None, "--model haiku"),
        ("claude", "claude-x", None, "--model claude-x"),
        ("claude", "", Some(&session), "--resume 1-2-3"),
        ("codex", "", None, "-m gpt-6-luna"),
        ("codex", "gpt-5.5", None, "-m gpt-5.5"),
        ("codex", "", Some(&session), " resume 1-2-3 -"),
        ("gemini", "", None, "-m flash-lite"),
        ("gemini", "gemini-2.5-pro", None, "-m gemini-2.5-pro"),
        ("gemini", "", Some(&session), "--resume 1-2-3"),
        ("opencode", "local/qwen3:8b", None, "-m local/qwen3:8b"),
        ("opencode", "", Some(&session), "-s 1-2-3"),
        ("goose", "openrouter/qwen/qwen3", None, "--provider openrouter --model qwen/qwen3"),
        ("goose", "gpt-5.5", None, "developer --model gpt-5.5"),
        ("goose", "", None, "-n archeflow -i -"),
        ("goose", "", Some(&session), "-n 1-2-3 -r -i -"),
    ] {
        let line = line(&start(name, true, model, &[], resumes)?);
        assert!(line.contains(wanted), "{line}");
    }
    for name in ["codex", "opencode", "goose"] {
        let elsewhere = [("OPENAI_BASE_URL", "http://127.0.0.1:1/v1")];
        let line = line(&start(name, true, "", &elsewhere, None)?);
        assert!(!line.contains("-m ") && !line.contains("--model"), "{line}");
    }
    let elsewhere = start("codex", true, "", &[("OPENAI_BASE_URL", "http://127.0.0.1:1/v1\"x")], None)?;
    assert!(line(&elsewhere).contains(r#"base_url="http://127.0.0.1:1/v1\"x""#), "{}", line(&elsewhere));
    assert_eq!(Stated::read("0.0008"), Stated::Amount(Money(800)));
    Ok(())
}

#[test]
fn r6_a_model_without_a_client_gets_its_key_and_only_that_by_a_variable() -> Result {
    let variables = [
        ("HOME", "/users/jo"),
        ("ANTHROPIC_API_KEY", "sk-a"),
        ("OPENAI_API_KEY", "sk-o"),
        ("ARCHEFLOW_KEY@a.example", "sk-x"),
    ];
    for (name, rest, writes, wanted) in [
        ("anthropic", "", false, Some("sk-a")),
        ("openai", "gpt-5", true, Some("sk-o")),
        ("openai", "m@https://a.example/v1", true, Some("sk-x")),
        ("openai", "m@https://b.example/v1", true, None),
        ("openai", "m@http://127.0.0.1:1", true, None),
        ("ollama", "", true, None),
    ] {
        let start = start(name, writes, rest, &variables, None)?;
        let (program, line) = (start.invocation.program.to_string_lossy().into_owned(), line(&start));
        assert!(program == "/me" && line.starts_with("__model {"), "{program} {line}");
        assert!(!line.contains("sk-"), "no key on a command line: {line}");
        assert!(line.contains(&format!("\"writes\":{writes}")), "{line}");
        let keys: Vec<_> = start.env.iter().map(|(_, value)| value.to_string_lossy().into_owned()).collect();
        assert_eq!(keys, wanted.into_iter().collect::<Vec<_>>(), "{name}:{rest}");
    }
    Ok(())
}
