//! Clients with a name of their own: what is started, and what recordings of the real ones are read as. The rows stand
//! in `docs/agents.md`.

use std::collections::BTreeSet;
use std::error::Error;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use archeflow_core::event::{Failure, Session};
use archeflow_core::rules::ledger::Stated;
use archeflow_core::words::{Money, Tier};
use archeflow_host::backends::cli::{self, Client, Errand, Heard, Start};

type Result<T = ()> = std::result::Result<T, Box<dyn Error>>;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/captures")
}

/// The cells of the table below a heading.
fn rows(heading: &str) -> Result<Vec<Vec<String>>> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/agents.md");
    let page = std::fs::read_to_string(page)?;
    let (_, below) = page.split_once(heading).ok_or("no such heading")?;
    let table =
        below.lines().skip_while(|line| !line.starts_with('|')).take_while(|line| line.starts_with('|'));
    let cells = |line: &str| -> Vec<String> {
        line.trim_matches('|').split('|').map(|cell| cell.trim().trim_matches('`').to_owned()).collect()
    };
    Ok(table.skip(2).map(cells).collect())
}

fn heard(client: &Client, recording: &str) -> Result<(Heard, Vec<String>)> {
    let path = root().join(client.name).join(format!("{recording}.jsonl"));
    let text = std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let mut heard = Heard::default();
    let notes = text.lines().filter_map(|line| client.hear(line, &mut heard)).collect();
    Ok((heard, notes))
}

/// The word of the table: what the client gave up for, or was struggling with, or was refused.
fn fault(client: &Client, heard: &Heard) -> Result<String> {
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
    assert!(rows.len() > 40, "{} rows", rows.len());
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
        assert!(heard.session.starts_with(session.as_str()), "{at}: session {}", heard.session);
        if let Some(before) = before {
            assert_eq!(heard.session, before.id, "{at}: the same session");
        }
    }
    Ok(())
}

#[test]
fn no_recording_is_forgotten() -> Result {
    let told: BTreeSet<_> = rows("### How their signs are read")?
        .iter()
        .map(|row| Path::new(&row[0]).join(format!("{}.jsonl", row[1])))
        .collect();
    let mut there = BTreeSet::new();
    for client in cli::ALL.into_iter().filter(|client| !client.program.is_empty()) {
        for entry in std::fs::read_dir(root().join(client.name))? {
            there.insert(Path::new(client.name).join(entry?.file_name()));
        }
    }
    assert_eq!(told, there);
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
        (
            "claude",
            "e401-r1",
            &[
                "waits for its provider: authentication_failed (401)",
                "Invalid API key · Fix external API key",
            ][..],
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
    let variables: Vec<(OsString, OsString)> =
        variables.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
    let (tree, home, tier) = (Path::new("/tree"), Path::new("/its/own"), Tier::Haiku);
    let errand =
        Errand { writes, tier, model, tree, home, me: Path::new("/me"), resumes, variables: &variables };
    Ok(cli::find(name).ok_or("no such client")?.command(&errand))
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
            "--tools Read,Grep,Glob --allowedTools Read,Grep,Glob --permission-mode default",
            "Bash,Edit,Write",
        ),
        ("codex", "-s read-only", "-s workspace-write"),
    ] {
        let (reading, making) =
            (line(&start(name, false, "", &[], None)?), line(&start(name, true, "", &[], None)?));
        assert!(reading.contains(reader) && !reading.contains(maker), "{reading}");
        assert!(making.contains(maker) && !making.contains(reader), "{making}");
    }
    Ok(())
}

#[test]
fn issue_4_the_users_settings_stay_out_and_the_login_comes_along() -> Result {
    let own = [("HOME", "/users/jo"), ("ANTHROPIC_API_KEY", "sk-1"), ("CODEX_API_KEY", "sk-2")];
    for (name, out, folder, key, login) in [
        (
            "claude",
            "--setting-sources  --strict-mcp-config",
            "CLAUDE_CONFIG_DIR",
            "ANTHROPIC_API_KEY",
            "/users/jo/.claude/.credentials.json",
        ),
        ("codex", "--ignore-user-config", "CODEX_HOME", "CODEX_API_KEY", "/users/jo/.codex/auth.json"),
    ] {
        let start = start(name, true, "", &own, None)?;
        assert!(line(&start).contains(out), "{}", line(&start));
        assert!(!line(&start).contains("sk-"), "no key on a command line");
        let value = |name: &str| {
            start.env.iter().rev().find(|(known, _)| known == name).map(|(_, value)| value.clone())
        };
        assert_eq!(value(folder), Some("/its/own".into()), "{name}");
        assert!(value(key).is_some() && value("HOME").is_none(), "{name}");
        let keys = start.env.iter().filter(|(_, value)| value.to_string_lossy().starts_with("sk-"));
        assert_eq!(keys.count(), 1, "{name} gets its own key and no other");
        let lent: Vec<_> = start.lent.iter().map(|lent| lent.from.display().to_string()).collect();
        assert_eq!(lent, [login]);
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
        ("codex", "gpt-5.5", None, "-m gpt-5.5"),
        ("codex", "", Some(&session), " resume 1-2-3 -"),
    ] {
        let line = line(&start(name, true, model, &[], resumes)?);
        assert!(line.contains(wanted), "{line}");
    }
    assert!(!line(&start("codex", true, "", &[], None)?).contains("-m "));
    let elsewhere = start("codex", true, "", &[("OPENAI_BASE_URL", "http://127.0.0.1:1/v1\"x")], None)?;
    assert!(line(&elsewhere).contains(r#"base_url="http://127.0.0.1:1/v1\"x""#), "{}", line(&elsewhere));
    assert_eq!(Stated::read("0.0008"), Stated::Amount(Money(800)));
    Ok(())
}
