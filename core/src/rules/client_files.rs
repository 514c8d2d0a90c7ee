//! Files of a repository that configure a coding agent: its settings, hooks, plugins, skills, servers and
//! instructions. Agents get a working copy without them, and a change to one is a sign.

use std::collections::BTreeMap;
use std::sync::LazyLock;

/// A client, and the names it looks for: a file or folder of any depth, or a path of several parts.
type ClientNames = (&'static str, &'static [&'static str]);

/// All clients that are known to obey files of a repository, also those that are only reached through a protocol.
pub const CLIENT_FILES: [ClientNames; 20] = [
    (
        "Claude Code",
        &[".claude", ".claude-plugin", ".claude.json", "CLAUDE.md", "CLAUDE.local.md", ".mcp.json"],
    ),
    ("Codex", &[".codex", ".codex-plugin", "AGENTS.md", "AGENTS.override.md", ".agents"]),
    ("Gemini CLI", &[".gemini", "GEMINI.md", ".geminiignore"]),
    ("OpenCode", &[".opencode", "opencode.json", "opencode.jsonc"]),
    ("Goose", &[".goose", ".goosehints", ".goosehints.local", ".gooseignore"]),
    (
        "Copilot",
        &[
            ".copilot",
            "copilot-instructions.md",
            ".github/instructions",
            ".github/prompts",
            ".github/agents",
            ".github/chatmodes",
            ".github/skills",
            ".github/hooks",
            ".github/mcp.json",
            ".vscode/mcp.json",
        ],
    ),
    ("Cursor", &[".cursor", ".cursorrules", ".cursorignore"]),
    ("Windsurf", &[".windsurf", ".windsurfrules", ".codeiumignore"]),
    ("Qwen Code", &[".qwen", "QWEN.md", ".qwenignore"]),
    (
        "Cline, Roo and Kilo",
        &[".cline", ".clinerules", ".clineignore", ".roo", ".roorules", ".roomodes", ".kilocode"],
    ),
    ("aider", &[".aider.conf.yml", ".aider.model.settings.yml", ".aiderignore"]),
    ("Crush", &[".crush", "crush.json", ".crush.json", "CRUSH.md", ".crushignore"]),
    ("Kiro and Amazon Q", &[".kiro", ".amazonq"]),
    (
        "Junie, Augment and Continue",
        &[".junie", ".augment", ".augment-guidelines", ".continue", ".continuerc.json"],
    ),
    ("OpenHands, Factory and Amp", &[".openhands", ".factory", ".amp", "AGENT.md"]),
    ("Pi, Vibe and Warp", &[".pi", ".vibe", "WARP.md"]),
    ("Zed", &[".rules", ".zed"]),
    ("Trae, Replit and Devin", &[".trae", ".replit", ".devin"]),
    ("Qodo, CodeBuddy and Rovo Dev", &[".qodo", ".codebuddy", ".rovodev"]),
    ("JetBrains and several clients", &[".idea", "llms.txt"]),
];

/// The client that is configured by the file at `path`, if one is. Upper and lower case are the same, as on file
/// systems that do not tell them apart.
pub fn configured_client(path: &str) -> Option<&'static str> {
    let path = folded(path.trim_matches('"'));
    let mut first: Option<usize> = None;
    let mut rest = Some(path.as_str());
    while let Some(here) = rest {
        let (part, after) = here.split_once('/').map_or((here, None), |(part, after)| (part, Some(after)));
        let begins = FOLDED.get(part).into_iter().flatten();
        let fits = begins.filter(|(more, _)| follows(after, more)).map(|(_, client)| *client).min();
        first = first.into_iter().chain(fits).min();
        rest = after;
    }
    first.and_then(|client| CLIENT_FILES.get(client)).map(|(client, _)| *client)
}

/// The names by their first parts, each with what must come after it and the place of its client in the list: a path is
/// looked up and not compared with every name, since a commit has many paths.
static FOLDED: LazyLock<BTreeMap<String, Vec<(String, usize)>>> = LazyLock::new(|| {
    let mut folded_names: BTreeMap<String, Vec<(String, usize)>> = BTreeMap::new();
    for (place, (_, names)) in CLIENT_FILES.iter().enumerate() {
        for name in names.iter().map(|name| folded(name)) {
            let (part, more) = name.split_once('/').unwrap_or((&name, ""));
            folded_names.entry(part.to_owned()).or_default().push((more.to_owned(), place));
        }
    }
    folded_names
});

/// Whether the rest of a path begins with these parts.
fn follows(path: Option<&str>, more: &str) -> bool {
    let rest =
        |path: &str| path.strip_prefix(more).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    more.is_empty() || path.is_some_and(rest)
}

/// By way of upper case: the long `ſ` is an `s` there, and the Kelvin sign is a `k` in lower case.
fn folded(text: &str) -> String {
    if text.is_ascii() { text.to_ascii_lowercase() } else { text.to_uppercase().to_lowercase() }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The definition: some parts of the path, one after the other, are those of a name.
    fn by_comparing(path: &str) -> Option<&'static str> {
        let path = path.trim_matches('"').to_uppercase().to_lowercase();
        let parts: Vec<&str> = path.split('/').collect();
        let is_in = |name: &str| {
            let name = name.to_lowercase();
            let wanted: Vec<&str> = name.split('/').collect();
            parts.windows(wanted.len()).any(|window| window == wanted)
        };
        CLIENT_FILES.iter().find(|(_, names)| names.iter().any(|name| is_in(name))).map(|(client, _)| *client)
    }

    #[test]
    fn c_01_a_path_is_looked_up_as_if_it_were_compared_with_every_name() {
        let mut found = 0;
        for name in CLIENT_FILES.iter().flat_map(|(_, names)| names.iter()) {
            let (first, _) = name.split_once('/').unwrap_or((name, ""));
            for path in [
                (*name).to_owned(),
                format!("a/{name}"),
                format!("{name}/b"),
                format!("\"a/{name}/b/c.md\""),
                name.to_uppercase(),
                name.replace('s', "ſ").replace('k', "\u{212a}"),
                format!("{first}/{name}"),
                format!("{name}/.claude"),
                format!(".pi/{name}"),
                format!("x{name}"),
                format!("{name}x"),
                format!("{name}x/y"),
                first.to_owned(),
                format!("{first}/other"),
                format!("{first}//{name}/"),
            ] {
                assert_eq!(configured_client(&path), by_comparing(&path), "{path}");
                found += usize::from(configured_client(&path).is_some());
            }
        }
        assert!(found > 300, "{found}");
        assert_eq!(
            [configured_client(""), configured_client("/"), configured_client("src/lib.rs")],
            [None; 3]
        );
    }
}
