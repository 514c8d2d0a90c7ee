//! Linter and formatter of a project, detected from its files: one row each. A command that is configured comes first.

use std::path::Path;

use archeflow_core::model::LoopPolicy;

use crate::store::files;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolKind {
    Linter,
    Formatter,
}

impl ToolKind {
    pub const ALL: [ToolKind; 2] = [ToolKind::Linter, ToolKind::Formatter];

    pub fn name(self) -> &'static str {
        match self {
            ToolKind::Linter => "linter",
            ToolKind::Formatter => "formatter",
        }
    }
}

/// What in a project's files shows that it uses a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// The file is there.
    There(&'static str),
    /// The file is there and has this in it.
    Says(&'static str, &'static str),
    /// `package.json` has a script of this name.
    Script(&'static str),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tool {
    pub kind: ToolKind,
    pub when: When,
    /// Fails where the tool is not installed.
    pub probe: &'static str,
    pub command: &'static str,
}

const fn tool(kind: ToolKind, when: When, probe: &'static str, command: &'static str) -> Tool {
    Tool { kind, when, probe, command }
}

/// All that hold are run, in this order.
pub static TOOLS: &[Tool] = &[
    tool(
        ToolKind::Linter,
        When::There("Cargo.toml"),
        "cargo clippy --version",
        "cargo clippy -q --all-targets",
    ),
    tool(ToolKind::Formatter, When::There("Cargo.toml"), "cargo fmt --version", "cargo fmt --all -- --check"),
    tool(ToolKind::Linter, When::Script("lint"), "command -v npm", "npm run --silent lint"),
    tool(
        ToolKind::Formatter,
        When::Script("format:check"),
        "command -v npm",
        "npm run --silent format:check",
    ),
    tool(ToolKind::Linter, When::Says("pyproject.toml", "[tool.ruff"), "command -v ruff", "ruff check ."),
    tool(ToolKind::Linter, When::There("ruff.toml"), "command -v ruff", "ruff check ."),
    tool(
        ToolKind::Formatter,
        When::Says("pyproject.toml", "[tool.ruff.format"),
        "command -v ruff",
        "ruff format --check .",
    ),
    tool(
        ToolKind::Formatter,
        When::Says("pyproject.toml", "[tool.black"),
        "command -v black",
        "black --check -q .",
    ),
    tool(ToolKind::Linter, When::There(".flake8"), "command -v flake8", "flake8"),
    tool(ToolKind::Linter, When::There("go.mod"), "command -v go", "go vet ./..."),
    tool(
        ToolKind::Formatter,
        When::There("go.mod"),
        "command -v gofmt",
        "unformatted=$(gofmt -l .); echo \"$unformatted\"; [ -z \"$unformatted\" ]",
    ),
    tool(ToolKind::Linter, When::There(".rubocop.yml"), "command -v rubocop", "rubocop"),
    tool(ToolKind::Formatter, When::There("mix.exs"), "command -v mix", "mix format --check-formatted"),
];

const LARGEST: u64 = 1024 * 1024;

/// The command for this kind; nothing where the project has none.
pub(super) fn command(kind: ToolKind, tree: &Path, policy: &LoopPolicy) -> Option<String> {
    let named = match kind {
        ToolKind::Linter => &policy.linter,
        ToolKind::Formatter => &policy.formatter,
    };
    if named.is_some() {
        return named.clone();
    }
    let found: Vec<&Tool> = detected(tree).filter(|tool| tool.kind == kind && policy.detect).collect();
    (!found.is_empty()).then(|| script(&found))
}

/// The tools that this project's files mention.
pub fn detected(tree: &Path) -> impl Iterator<Item = &'static Tool> {
    let tree = tree.to_path_buf();
    TOOLS.iter().filter(move |tool| holds(&tree, tool.when))
}

/// Each tool that is installed is run, and one that fails fails all. Where none is installed, the script ends as a shell
/// that finds no program.
fn script(tools: &[&Tool]) -> String {
    let each = tools.iter().map(|tool| {
        let Tool { probe, command, .. } = tool;
        format!("if {probe} >/dev/null 2>&1; then there=1; ({command}) || bad=$?; fi\n")
    });
    format!(
        "there=0 bad=0\n{}[ $there = 1 ] || {{ echo 'not installed'; exit 127; }}\nexit $bad",
        each.collect::<String>()
    )
}

fn holds(tree: &Path, when: When) -> bool {
    let text = |name: &str| files::read_capped(&tree.join(name), LARGEST).unwrap_or_default();
    match when {
        When::There(name) => tree.join(name).symlink_metadata().is_ok_and(|meta| meta.is_file()),
        When::Says(name, what) => String::from_utf8_lossy(&text(name)).contains(what),
        When::Script(name) => {
            let package: serde_json::Value =
                serde_json::from_slice(&text("package.json")).unwrap_or_default();
            package
                .get("scripts")
                .and_then(|scripts| scripts.get(name))
                .is_some_and(serde_json::Value::is_string)
        }
    }
}
