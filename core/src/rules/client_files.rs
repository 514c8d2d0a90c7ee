//! Files of a repository that configure a coding agent: its settings, hooks, plugins, skills, servers and
//! instructions. Agents get a working copy without them, and a change to one is a sign.

/// A client, and the names it looks for: a file or folder of any depth, or a path of several parts.
type ClientNames = (&'static str, &'static [&'static str]);

/// All clients that are known to obey files of a repository, also those that are only reached through a protocol.
pub const CLIENT_FILES: [ClientNames; 16] = [
    ("Claude Code", &[".claude", ".claude-plugin", "CLAUDE.md", "CLAUDE.local.md", ".mcp.json"]),
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
];

/// The client that is configured by the file at `path`, if one is. Upper and lower case are the same, as on file
/// systems that do not tell them apart.
pub fn configured_client(path: &str) -> Option<&'static str> {
    let path = folded(path.trim_matches('"'));
    let parts: Vec<&str> = path.split('/').collect();
    let is_in = |name: &str| {
        let name = folded(name);
        let wanted: Vec<&str> = name.split('/').collect();
        parts.windows(wanted.len()).any(|window| window == wanted)
    };
    CLIENT_FILES.iter().find(|(_, names)| names.iter().any(|name| is_in(name))).map(|(client, _)| *client)
}

/// By way of upper case: the long `ſ` is an `s` there, and the Kelvin sign is a `k` in lower case.
fn folded(text: &str) -> String {
    text.to_uppercase().to_lowercase()
}
