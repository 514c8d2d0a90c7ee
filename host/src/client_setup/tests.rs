#![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::Value;

use super::{CodingClient, SetupAction, SetupError, json_entry, pieces, toml_entry};

#[test]
fn pl_01_the_pieces_have_the_version_of_the_program() {
    for (name, text) in [pieces::CLAUDE[1], pieces::GEMINI[0]] {
        let manifest: Value = serde_json::from_str(text).unwrap();
        assert_eq!(manifest["version"], env!("CARGO_PKG_VERSION"), "{name}");
        assert_eq!(manifest["name"], "archeflow", "{name}");
    }
}

/// A file that nobody writes would be in the repository for nothing.
#[test]
fn pl_01_every_file_of_the_plugin_folder_is_in_the_program() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../plugin");
    let mut found = BTreeSet::new();
    let mut folders = vec![root.clone()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                found.insert(path.strip_prefix(&root).unwrap().to_str().unwrap().to_owned());
            }
        }
    }
    let claude = pieces::CLAUDE.iter().map(|(path, _)| (*path).to_owned());
    let gemini = pieces::GEMINI.iter().map(|(path, _)| format!("gemini/{path}"));
    let entries = ["codex/config.toml", "opencode/opencode.json"].map(str::to_owned);
    assert_eq!(found, claude.chain(gemini).chain(entries).collect());
}

#[test]
fn pl_01_commands_say_the_same_in_every_client() {
    for ((_, markdown), (name, gemini)) in pieces::COMMANDS.iter().zip(&pieces::GEMINI[1..]) {
        let (head, body) = markdown.strip_prefix("---\n").unwrap().split_once("\n---\n").unwrap();
        let description = head.lines().next().unwrap().strip_prefix("description: ").unwrap();
        let prompt = body.trim().replace("$ARGUMENTS", "{{args}}");
        let expected = format!("description = \"{description}\"\nprompt = '''\n{prompt}\n'''\n");
        assert_eq!(*gemini, expected, "{name}");
    }
}

/// A text, and the same with the entry; it comes out as it was.
#[test]
fn pl_02_an_entry_is_added_to_toml_and_nothing_else_changes() {
    let entry = toml_entry::ENTRY;
    for (before, after) in [
        ("", entry.to_owned()),
        ("a = 1\n", format!("a = 1\n\n{entry}")),
        (
            "# mine\n[mcp_servers.other]\ncommand = 'x'\n",
            format!("# mine\n[mcp_servers.other]\ncommand = 'x'\n\n{entry}"),
        ),
        (
            "s = '''\n[mcp_servers.archeflow]\n'''\n",
            format!("s = '''\n[mcp_servers.archeflow]\n'''\n\n{entry}"),
        ),
    ] {
        assert_eq!(toml_entry::add(before).as_deref(), Ok(after.as_str()));
        assert_eq!(toml_entry::add(&after).as_deref(), Ok(after.as_str()), "twice");
        assert_eq!(toml_entry::remove(&after).as_deref(), Ok(before), "{after}");
        assert_eq!(toml_entry::remove(before).as_deref(), Ok(before), "nothing to remove");
    }
    let without_end = format!("a = 1\n\n{entry}");
    assert_eq!(toml_entry::add("a = 1"), Ok(without_end));
    for own in
        ["mcp_servers.archeflow.command = '/opt/archeflow'\n", "[mcp_servers.archeflow.tools.review]\n"]
    {
        assert_eq!(toml_entry::add(own).as_deref(), Ok(own), "the user's own entry stays");
        assert!(toml_entry::remove(own).unwrap_err().contains("has been changed"));
    }
    let more = format!("{entry}[mcp_servers.archeflow.tools.review]\napproval_mode = 'approve'\n");
    assert!(toml_entry::remove(&more).is_err());
    assert_eq!(toml_entry::remove(&format!("a = 1\n\n{entry}[b]\n")).as_deref(), Ok("a = 1\n\n[b]\n"));
    for (broken, words) in [
        ("a = 1\nb = \n", "line 2"),
        ("mcp_servers = { a = { command = 'x' } }\n", "can't be added"),
        ("mcp_servers = 7\n", "can't be added"),
        ("[a]\n[a]\n", "duplicate"),
        ("\u{0}", "line 1"),
    ] {
        let why = toml_entry::add(broken).unwrap_err();
        assert!(why.contains(words), "{broken:?}: {why}");
    }
}

#[test]
fn pl_02_an_entry_is_added_to_json_with_comments_and_nothing_else_changes() {
    let member = r#""archeflow": { "type": "local", "command": ["archeflow", "mcp"], "enabled": true }"#;
    assert_eq!(json_entry::add("").as_deref(), Ok(json_entry::NEW_FILE));
    assert_eq!(json_entry::add(" \n").as_deref(), Ok(json_entry::NEW_FILE));
    assert!(json_entry::NEW_FILE.contains(member));
    for (before, after) in [
        ("{}", format!("{{\n  \"mcp\": {{\n    {member}\n  }}\n}}")),
        ("{\"theme\":\"x\"}", format!("{{\n  \"mcp\": {{\n    {member}\n  }},\"theme\":\"x\"}}")),
        (
            "// mine\n{ // \"mcp\": {\n  /* { \u{fc} */ \"a\": [1, 2,],\n}\n",
            format!(
                "// mine\n{{\n  \"mcp\": {{\n    {member}\n  }}, // \"mcp\": {{\n  /* {{ \u{fc} */ \"a\": [1, 2,],\n}}\n"
            ),
        ),
        (
            "{\n  \"mcp\": {\n    \"b\\\"}\": { \"type\": \"remote\", \"url\": \"https://x/{\" },\n  },\n}\n",
            format!(
                "{{\n  \"mcp\": {{\n    {member},\n    \"b\\\"}}\": {{ \"type\": \"remote\", \"url\": \"https://x/{{\" }},\n  }},\n}}\n"
            ),
        ),
        ("{\"a\":{\"mcp\":1},\"mcp\":{}}", format!("{{\"a\":{{\"mcp\":1}},\"mcp\":{{\n    {member}\n  }}}}")),
    ] {
        assert_eq!(json_entry::add(before).as_deref(), Ok(after.as_str()), "{before}");
        assert_eq!(json_entry::add(&after).as_deref(), Ok(after.as_str()), "twice");
        assert_eq!(json_entry::remove(before).as_deref(), Ok(before), "nothing to remove");
        let removed = json_entry::remove(&after).unwrap();
        assert!(!removed.contains("archeflow"), "{removed}");
        assert_eq!(json_entry::add(&removed).map(|text| text.contains(member)), Ok(true), "{removed}");
    }
    let between = format!("{{\"mcp\":{{\"a\":1,{member},\"b\":2}}}}");
    assert_eq!(json_entry::remove(&between).as_deref(), Ok("{\"mcp\":{\"a\":1,\"b\":2}}"));
    let last = "{\"mcp\":{\"a\":1 , \"archeflow\" : 7}}";
    assert_eq!(json_entry::remove(last).as_deref(), Ok("{\"mcp\":{\"a\":1 }}"));
    let own = "{\"mcp\":{\"archeflow\":{\"enabled\":false}}}";
    assert_eq!(json_entry::add(own).as_deref(), Ok(own), "the user's own entry stays");
    for (broken, words) in [
        ("{\n  \"a\": \n}", "line 3"),
        ("[]", "not an object"),
        ("{\"mcp\": []}", "`mcp` is not an object"),
        ("{} /* ", "no end"),
        ("{\"mcp\": {}, \"mcp\": {\"a\": 1}}", "can't add"),
        ("{\"a", "line 1"),
        ("{\"a\\", "line 1"),
        ("/", "line 1"),
        ("{\"mcp\":{\"archeflow", "line 1"),
    ] {
        let why = json_entry::add(broken).unwrap_err();
        assert!(why.contains(words), "{broken:?}: {why}");
        let _ = json_entry::remove(broken);
    }
}

/// A client writes its settings, too, and may do so while a person reads what would change.
#[test]
fn pl_06_what_was_not_shown_is_not_overwritten() {
    let home = tempfile::tempdir().unwrap();
    let variables = [("HOME".into(), home.path().into())];
    let config = home.path().join(".codex/config.toml");
    let plan = || CodingClient::Codex.plan(&variables, SetupAction::Install).unwrap();
    for (shown, meanwhile) in [(None, "a = 1\n"), (Some("a = 1\n"), "a = 2\n")] {
        let _ = std::fs::remove_dir_all(home.path().join(".codex"));
        std::fs::create_dir_all(home.path().join(".codex")).unwrap();
        if let Some(text) = shown {
            std::fs::write(&config, text).unwrap();
        }
        let planned = plan();
        std::fs::write(&config, meanwhile).unwrap();
        let refused = planned.carry_out().unwrap_err();
        assert!(refused.to_string().contains("changed meanwhile"), "{refused}");
        assert_eq!(std::fs::read_to_string(&config).unwrap(), meanwhile);
        plan().carry_out().unwrap();
        assert!(std::fs::read_to_string(&config).unwrap().starts_with(meanwhile));
    }
    assert!(matches!(CodingClient::Codex.plan(&[], SetupAction::Install), Err(SetupError::NoHome)));
    let relative = [("HOME".into(), "home".into())];
    assert!(matches!(CodingClient::Claude.plan(&relative, SetupAction::Remove), Err(SetupError::NoHome)));
}
