//! What an agent may do without asking a person: the Maker works within its copy, all other roles only read.
//!
//! This decides what agents ask about. What they do without asking is up to their mode, which is chosen here too, from
//! those they offer, and in the end up to the working copy: a reader's is write-protected and what changes in it is
//! dropped.

use std::path::{Component, Path, PathBuf};

use serde_json::Value;

use crate::client_output::text;

/// What an agent may do: whether it writes, and where.
#[derive(Debug, Clone)]
pub struct Permission {
    /// The Maker.
    pub writes: bool,
    /// Its working copy and its folder for temporary files, by every name they go by.
    pub places: Vec<PathBuf>,
}

/// The answer to a permission request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum PermissionAnswer {
    Granted(String),
    /// With the option to pick, if the agent offers one, and why.
    Refused {
        option: Option<String>,
        tool: String,
    },
}

/// What is known of a tool call. Agents report it in pieces.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct AcpToolCall {
    pub(super) kind: String,
    pub(super) title: String,
    pub(super) paths: Vec<PathBuf>,
}

/// Tools that change nothing.
const LOOKING: [&str; 3] = ["read", "search", "think"];

impl AcpToolCall {
    /// Adds the fields another message has about the call. Fields it lacks stay as they are.
    pub(super) fn learn(&mut self, said: &Value) {
        for (known, name) in [(&mut self.kind, "kind"), (&mut self.title, "title")] {
            if !text(said, name).is_empty() {
                text(said, name).clone_into(known);
            }
        }
        for path in paths(said) {
            if !self.paths.contains(&path) {
                self.paths.push(path);
            }
        }
    }
}

/// Every path a message names as touched: places, differences, and the usual names in the tool's input.
fn paths(said: &Value) -> Vec<PathBuf> {
    let listed = |name: &str| said.get(name).and_then(Value::as_array).into_iter().flatten();
    let told = listed("locations").chain(listed("content")).map(|place| text(place, "path"));
    let input = said.get("rawInput").unwrap_or(&Value::Null);
    let asked = ["path", "file_path", "filePath", "notebook_path"].map(|name| text(input, name));
    told.chain(asked).filter(|path| !path.is_empty()).map(PathBuf::from).collect()
}

impl Permission {
    /// Permission is granted once at a time: a permanent grant may be written into the user's settings.
    pub(super) fn judge(&self, call: &AcpToolCall, options: &Value) -> PermissionAnswer {
        let option = |kind: &str| {
            let offered = options.as_array()?.iter().find(|option| text(option, "kind") == kind)?;
            Some(text(offered, "optionId").to_owned())
        };
        let refused = |tool: String| PermissionAnswer::Refused { option: option("reject_once"), tool };
        let title = if call.title.is_empty() { &call.kind } else { &call.title };
        if let Some(path) = call.paths.iter().find(|path| !self.is_in_copy(path)) {
            return refused(format!("{title} (outside of its working copy: {})", path.display()));
        }
        if !self.may(&call.kind) {
            return refused(title.clone());
        }
        match option("allow_once") {
            Some(option) => PermissionAnswer::Granted(option),
            None => refused(call.kind.clone()),
        }
    }

    /// A change of mode is asked for like a tool; the one it has was chosen for it.
    fn may(&self, kind: &str) -> bool {
        if self.writes { kind != "switch_mode" } else { LOOKING.contains(&kind) }
    }

    /// By its name alone: the bridge is no sandbox and follows no links.
    fn is_in_copy(&self, path: &Path) -> bool {
        let Some(base) = self.places.first() else { return false };
        let plain = plain(&base.join(path));
        self.places.iter().any(|place| plain.starts_with(place))
    }

    /// The mode to work in, from those on offer, unless the one it has will do.
    pub(super) fn mode(&self, current: &str, offered: &[AcpMode]) -> Option<String> {
        let first = |fits: fn(&AcpMode) -> bool| offered.iter().find(|mode| fits(mode));
        let wanted = if self.writes {
            let current = offered.iter().find(|mode| mode.id == current)?;
            let confined = first(|mode| mode.id == "workspace-write");
            let working = || first(|mode| !mode.looks() && !mode.plans());
            confined.or_else(|| if current.looks() || current.plans() { working() } else { None })
        } else {
            first(|mode| mode.looks() && !mode.plans())
                .or_else(|| first(AcpMode::asks))
                .or_else(|| first(AcpMode::plans))
        };
        wanted.filter(|mode| mode.id != current).map(|mode| mode.id.clone())
    }
}

/// One of an agent's modes, with the agent's description.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct AcpMode {
    pub(super) id: String,
    pub(super) said: String,
}

impl AcpMode {
    /// From a list of modes or of the values of a setting, which name themselves differently.
    pub(super) fn list(list: Option<&Value>) -> Vec<AcpMode> {
        let list = list.and_then(Value::as_array).into_iter().flatten();
        let mode = |mode: &Value| {
            let id = if text(mode, "id").is_empty() { text(mode, "value") } else { text(mode, "id") };
            let said = format!("{id} {} {}", text(mode, "name"), text(mode, "description"));
            AcpMode { id: id.to_owned(), said: said.to_lowercase().replace(['-', '_'], " ") }
        };
        list.map(mode).filter(|mode| !mode.id.is_empty()).collect()
    }

    /// It can't write at all.
    fn looks(&self) -> bool {
        ["read only", "readonly", "disallows all edit"].iter().any(|words| self.said.contains(words))
    }

    /// It asks before it writes, so that the permission request decides.
    fn asks(&self) -> bool {
        ["always ask", "ask before every", "prompts for approval"]
            .iter()
            .any(|words| self.said.contains(words))
    }

    /// It looks, but has its own idea of what an answer is, and may drop what it is refused without a word.
    fn plans(&self) -> bool {
        self.id.eq_ignore_ascii_case("plan")
    }
}

/// A path without `.` and `..`, by its letters alone.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                plain.pop();
            }
            Component::Prefix(_) | Component::RootDir | Component::Normal(_) => plain.push(part),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn permission(writes: bool) -> Permission {
        Permission { writes, places: vec!["/copy".into(), "/scratch".into()] }
    }

    #[test]
    fn issue_4_the_maker_works_in_its_copy_and_others_look() {
        let options = json!([
            {"optionId": "always", "kind": "allow_always"}, {"optionId": "yes", "kind": "allow_once"},
            {"optionId": "no", "kind": "reject_once"},
        ]);
        for (call, maker, reader) in [
            (json!({"kind": "read", "locations": [{"path": "/copy/a"}]}), true, true),
            (json!({"kind": "search"}), true, true),
            (json!({"kind": "edit", "locations": [{"path": "/copy/a/b.rs"}]}), true, false),
            (json!({"kind": "edit", "locations": [{"path": "src/b.rs"}]}), true, false),
            (json!({"kind": "edit", "rawInput": {"file_path": "/scratch/x"}}), true, false),
            (json!({"kind": "execute", "title": "make"}), true, false),
            (json!({"kind": "delete", "locations": [{"path": "/copy/a"}]}), true, false),
            (json!({"kind": "move", "locations": [{"path": "/copy/a"}]}), true, false),
            (json!({"kind": "fetch"}), true, false),
            (json!({"kind": "other"}), true, false),
            (json!({}), true, false),
            (json!({"kind": "switch_mode", "title": "Ready to code?"}), false, false),
            (json!({"kind": "edit", "locations": [{"path": "/copy/../etc/passwd"}]}), false, false),
            (json!({"kind": "edit", "locations": [{"path": "../x"}]}), false, false),
            (json!({"kind": "edit", "locations": [{"path": "/copy/a"}, {"path": "/copyist"}]}), false, false),
            (
                json!({"kind": "edit", "content": [{"type": "diff", "path": "/users/jo/.bashrc"}]}),
                false,
                false,
            ),
            (json!({"kind": "edit", "rawInput": {"filePath": "/etc/hosts"}}), false, false),
            (json!({"kind": "read", "locations": [{"path": "/users/jo/.ssh/id"}]}), false, false),
        ] {
            let mut known = AcpToolCall::default();
            known.learn(&call);
            for (writes, wanted) in [(true, maker), (false, reader)] {
                let verdict = permission(writes).judge(&known, &options);
                let picked = match &verdict {
                    PermissionAnswer::Granted(option) => option.as_str(),
                    PermissionAnswer::Refused { option, .. } => option.as_deref().unwrap_or("none"),
                };
                assert_eq!(picked, if wanted { "yes" } else { "no" }, "writes {writes}: {call}");
            }
        }
    }

    #[test]
    fn issue_4_leave_is_never_given_for_good() {
        let call = AcpToolCall { kind: "edit".to_owned(), title: "Write a".to_owned(), paths: Vec::new() };
        let options = json!([{"optionId": "always", "kind": "allow_always"}]);
        let refused = PermissionAnswer::Refused { option: None, tool: "edit".to_owned() };
        assert_eq!(permission(true).judge(&call, &options), refused);
        assert_eq!(permission(true).judge(&call, &Value::Null), refused);
    }

    /// As the agents this was tried with describe their modes.
    #[test]
    fn issue_4_readers_get_a_mode_that_looks_or_asks() {
        let claude = json!([
            {"id": "default", "name": "Manual", "description": "Always ask before making changes"},
            {"id": "acceptEdits", "name": "Accept edits", "description": "Automatically accept all file edits"},
            {"id": "plan", "name": "Plan", "description": "Create a plan before making changes"},
            {"id": "auto", "name": "Auto", "description": "Claude handles permission decisions"},
        ]);
        let codex = json!([
            {"id": "read-only", "name": "Read-only", "description": "Requires approval to edit files."},
            {"id": "workspace-write", "name": "Workspace access", "description": "Edit workspace files; ask."},
            {"id": "agent", "name": "Auto review", "description": "Only ask for unsafe actions"},
            {"id": "agent-full-access", "name": "Full access", "description": "Unrestricted access"},
        ]);
        let gemini = json!([
            {"id": "default", "name": "Default", "description": "Prompts for approval"},
            {"id": "yolo", "name": "YOLO", "description": "Auto-approves all tools"},
            {"id": "plan", "name": "Plan", "description": "Read-only mode"},
        ]);
        let goose = json!([
            {"id": "auto", "name": "auto", "description": "Automatically approve tool calls"},
            {"id": "approve", "name": "approve", "description": "Ask before every tool call"},
            {"id": "smart_approve", "name": "smart_approve", "description": "Ask only for sensitive tool calls"},
            {"id": "chat", "name": "chat", "description": "Chat only, no tool calls"},
        ]);
        let opencode = json!([
            {"value": "build", "name": "build", "description": "The default agent."},
            {"value": "plan", "name": "plan", "description": "Plan mode. Disallows all edit tools."},
        ]);
        for (name, modes, current, reader, maker) in [
            ("claude", &claude, "default", None, None),
            ("claude", &claude, "acceptEdits", Some("default"), None),
            ("claude", &claude, "plan", Some("default"), Some("default")),
            ("codex", &codex, "agent", Some("read-only"), Some("workspace-write")),
            ("codex", &codex, "read-only", None, Some("workspace-write")),
            ("gemini", &gemini, "default", None, None),
            ("gemini", &gemini, "yolo", Some("default"), None),
            ("gemini", &gemini, "plan", Some("default"), Some("default")),
            ("goose", &goose, "auto", Some("approve"), None),
            ("opencode", &opencode, "build", Some("plan"), None),
            ("opencode", &opencode, "plan", None, Some("build")),
            ("nobody", &Value::Null, "", None, None),
        ] {
            let modes = AcpMode::list(Some(modes));
            assert_eq!(
                permission(false).mode(current, &modes).as_deref(),
                reader,
                "{name} reads in {current}"
            );
            assert_eq!(permission(true).mode(current, &modes).as_deref(), maker, "{name} makes in {current}");
        }
    }
}
