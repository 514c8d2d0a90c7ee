//! The files of `plugin/`, as they are in the repository.

/// A path below the folder of the client's pieces, and the text.
pub(super) type Piece = (&'static str, &'static str);

macro_rules! plugin {
    ($path:literal) => {
        include_str!(concat!("../../../plugin/", $path))
    };
}

/// The folder of the skill has its name.
pub(super) const SKILL_FOLDER: &str = "quality-loop";
pub(super) const SKILL: &str = plugin!("archeflow/skills/quality-loop/SKILL.md");

/// Claude Code's own, which OpenCode reads as well.
pub(super) const COMMANDS: [Piece; 4] = [
    ("af-review.md", plugin!("archeflow/commands/af-review.md")),
    ("af-run.md", plugin!("archeflow/commands/af-run.md")),
    ("af-sprint.md", plugin!("archeflow/commands/af-sprint.md")),
    ("af-status.md", plugin!("archeflow/commands/af-status.md")),
];

/// A marketplace with one plugin.
pub(super) const CLAUDE: [Piece; 9] = [
    (".claude-plugin/marketplace.json", plugin!(".claude-plugin/marketplace.json")),
    ("archeflow/.claude-plugin/plugin.json", plugin!("archeflow/.claude-plugin/plugin.json")),
    ("archeflow/.mcp.json", plugin!("archeflow/.mcp.json")),
    ("archeflow/commands/af-review.md", COMMANDS[0].1),
    ("archeflow/commands/af-run.md", COMMANDS[1].1),
    ("archeflow/commands/af-sprint.md", COMMANDS[2].1),
    ("archeflow/commands/af-status.md", COMMANDS[3].1),
    ("archeflow/hooks/hooks.json", plugin!("archeflow/hooks/hooks.json")),
    ("archeflow/skills/quality-loop/SKILL.md", SKILL),
];

/// An extension.
pub(super) const GEMINI: [Piece; 5] = [
    ("gemini-extension.json", plugin!("gemini/gemini-extension.json")),
    ("commands/af/review.toml", plugin!("gemini/commands/af/review.toml")),
    ("commands/af/run.toml", plugin!("gemini/commands/af/run.toml")),
    ("commands/af/sprint.toml", plugin!("gemini/commands/af/sprint.toml")),
    ("commands/af/status.toml", plugin!("gemini/commands/af/status.toml")),
];
