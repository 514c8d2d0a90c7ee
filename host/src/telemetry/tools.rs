//! Which tools an agent used and when, as its client printed it: a line in a file of the attempt's folder when a use begins
//! and when it ends. The journal does not need them, so a file that is missing or torn costs spans and nothing else.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use archeflow_core::projections::telemetry::ToolUse;
use memchr::memmem;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::client_output::text;
use crate::clock;
use crate::store::files;

/// Below an attempt's folder.
pub(crate) const TOOLS: &str = "tools.jsonl";

/// Uses of one attempt that are noted.
const MOST: usize = 2_000;
/// The largest file that is read.
const AT_MOST: u64 = 4 * 1024 * 1024;
/// The longest name or id that is kept.
const LONGEST: usize = 200;

/// One line of the file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct ToolLine {
    ms: u64,
    id: String,
    /// Nothing where a use ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tool: Option<String>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    failed: bool,
}

/// What a client says about tools in one line of its output.
#[derive(Debug, Clone, PartialEq, Eq)]
enum ToolNews {
    Began { id: String, tool: String },
    Ended { id: String, failed: bool },
}

/// Writes the file while an agent works.
pub(crate) struct ToolLog {
    path: PathBuf,
    file: Option<File>,
    noted: usize,
}

impl ToolLog {
    pub(crate) fn new(folder: &Path) -> ToolLog {
        ToolLog { path: folder.join(TOOLS), file: None, noted: 0 }
    }

    /// Takes in a line that the client printed.
    pub(crate) fn hear(&mut self, client: &str, line: &[u8]) {
        if self.noted >= MOST || !speaks_of_tools(line) {
            return;
        }
        let Ok(value) = serde_json::from_slice::<Value>(line) else { return };
        for news in news(client, &value) {
            self.note(news);
        }
    }

    fn note(&mut self, news: ToolNews) {
        let ms = clock::now();
        let line = match news {
            ToolNews::Began { id, tool } => ToolLine { ms, id, tool: Some(tool), failed: false },
            ToolNews::Ended { id, failed } => ToolLine { ms, id, tool: None, failed },
        };
        let Ok(mut text) = serde_json::to_string(&line) else { return };
        text.push('\n');
        if self.file.is_none() {
            self.file = File::options().create(true).append(true).open(&self.path).ok();
        }
        let written = self.file.as_mut().is_some_and(|file| file.write_all(text.as_bytes()).is_ok());
        // On a full disk the agent works on.
        self.noted = if written { self.noted + 1 } else { MOST };
    }
}

/// Most lines are text of the model, and some are whole files.
fn speaks_of_tools(line: &[u8]) -> bool {
    [&b"\"tool"[..], b"\"item."].iter().any(|word| memmem::find(line, word).is_some())
}

fn news(client: &str, line: &Value) -> Vec<ToolNews> {
    let began = |id: &str, tool: &str| ToolNews::Began { id: short(id), tool: short(tool) };
    let ended = |id: &str, failed: bool| ToolNews::Ended { id: short(id), failed };
    let blocks = |pointer: &str| line.pointer(pointer).and_then(Value::as_array).cloned().unwrap_or_default();
    let kind = text(line, "type");
    match client {
        "claude" => blocks("/message/content")
            .iter()
            .filter_map(|block| match text(block, "type") {
                "tool_use" => Some(began(text(block, "id"), text(block, "name"))),
                "tool_result" => Some(ended(text(block, "tool_use_id"), is_true(block, "is_error"))),
                _ => None,
            })
            .collect(),
        "codex" => {
            let item = line.get("item").unwrap_or(&Value::Null);
            let tool = match text(item, "type") {
                "mcp_tool_call" => text(item, "tool"),
                tool @ ("command_execution" | "file_change" | "web_search") => tool,
                _ => return Vec::new(),
            };
            match kind {
                "item.started" => vec![began(text(item, "id"), tool)],
                "item.completed" => vec![ended(text(item, "id"), text(item, "status") == "failed")],
                _ => Vec::new(),
            }
        }
        "gemini" => match kind {
            "tool_use" => vec![began(text(line, "tool_id"), text(line, "tool_name"))],
            "tool_result" => vec![ended(text(line, "tool_id"), text(line, "status") == "error")],
            _ => Vec::new(),
        },
        // One line for the whole use, when it has ended.
        "opencode" if kind == "tool_use" => {
            let part = line.get("part").unwrap_or(&Value::Null);
            let failed = part.pointer("/state/status").and_then(Value::as_str) == Some("error");
            let id = text(part, "callID");
            vec![began(id, text(part, "tool")), ended(id, failed)]
        }
        "goose" => blocks("/message/content")
            .iter()
            .filter_map(|block| match text(block, "type") {
                "toolRequest" => {
                    let name = block.pointer("/toolCall/value/name").and_then(Value::as_str);
                    Some(began(text(block, "id"), name.unwrap_or_default()))
                }
                "toolResponse" => {
                    Some(ended(text(block, "id"), block.pointer("/toolResult/error").is_some()))
                }
                _ => None,
            })
            .collect(),
        _ => Vec::new(),
    }
}

fn is_true(value: &Value, name: &str) -> bool {
    value.get(name).and_then(Value::as_bool).unwrap_or(false)
}

fn short(text: &str) -> String {
    text.chars().take(LONGEST).collect()
}

/// The uses in the folder of an attempt and in those of its parts, in their order. A line that is torn or foreign is
/// left out.
pub(super) fn read(folder: &Path) -> Vec<ToolUse> {
    let mut folders = vec![folder.to_owned()];
    let parts = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    folders.extend(parts.filter(|path| path.join(TOOLS).is_file()));
    folders.sort();
    let mut uses: Vec<ToolUse> = Vec::new();
    for folder in folders {
        let bytes = files::read_capped(&folder.join(TOOLS), AT_MOST).unwrap_or_default();
        let mut open: BTreeMap<String, usize> = BTreeMap::new();
        for line in bytes.split(|byte| *byte == b'\n') {
            let Ok(line) = serde_json::from_slice::<ToolLine>(line) else { continue };
            match line.tool {
                Some(name) if uses.len() < MOST => {
                    open.insert(line.id.clone(), uses.len());
                    uses.push(ToolUse { id: line.id, name, began: line.ms, ended: None, failed: false });
                }
                Some(_) => {}
                None => {
                    if let Some(used) = open.remove(&line.id).and_then(|at| uses.get_mut(at)) {
                        (used.ended, used.failed) = (Some(line.ms), line.failed);
                    }
                }
            }
        }
    }
    uses
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

    use super::*;

    #[test]
    fn otel_each_client_says_in_its_own_way_which_tools_it_uses() {
        let rows: [(&str, &[&str]); 5] = [
            (
                "claude",
                &[
                    r#"{"type":"assistant","message":{"content":[{"type":"text","text":"tool"},{"type":"tool_use","id":"a","name":"Bash","input":{"command":"secret"}}]}}"#,
                    r#"{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"a","is_error":true}]}}"#,
                ],
            ),
            (
                "codex",
                &[
                    r#"{"type":"item.started","item":{"id":"a","type":"command_execution","command":"secret"}}"#,
                    r#"{"type":"item.completed","item":{"id":"a","type":"command_execution","status":"failed"}}"#,
                    r#"{"type":"item.completed","item":{"id":"b","type":"agent_message"}}"#,
                ],
            ),
            (
                "gemini",
                &[
                    r#"{"type":"tool_use","tool_name":"read_file","tool_id":"a","parameters":{"file_path":"secret"}}"#,
                    r#"{"type":"tool_result","tool_id":"a","status":"error"}"#,
                ],
            ),
            (
                "opencode",
                &[
                    r#"{"type":"tool_use","part":{"callID":"a","tool":"bash","state":{"status":"error","input":{"command":"secret"}}}}"#,
                ],
            ),
            (
                "goose",
                &[
                    r#"{"type":"message","message":{"content":[{"type":"toolRequest","id":"a","toolCall":{"value":{"name":"shell","arguments":{"command":"secret"}}}}]}}"#,
                    r#"{"type":"message","message":{"content":[{"type":"toolResponse","id":"a","toolResult":{"error":"no"}}]}}"#,
                ],
            ),
        ];
        for (client, lines) in rows {
            let dir = tempfile::tempdir().unwrap();
            let mut log = ToolLog::new(dir.path());
            log.hear(client, b"no JSON with \"tool in it");
            lines.iter().for_each(|line| log.hear(client, line.as_bytes()));
            let written = std::fs::read_to_string(dir.path().join(TOOLS)).unwrap();
            assert!(!written.contains("secret"), "{client}: {written}");
            let uses = read(dir.path());
            let shown: Vec<_> =
                uses.iter().map(|used| (used.id.as_str(), used.failed, used.ended.is_some())).collect();
            assert_eq!(shown, [("a", true, true)], "{client}");
        }
    }

    #[test]
    fn otel_a_torn_or_foreign_line_costs_only_itself() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(read(dir.path()), []);
        std::fs::create_dir(dir.path().join("part-1")).unwrap();
        let lines = "{\"ms\":5,\"id\":\"a\",\"tool\":\"Read\"}\nnonsense\n{\"ms\":9,\"id\":\"x\"}\n{\"ms\":7,\"id\":\"a\"}\n{\"ms\":8,\"id\":\"b\",\"to";
        std::fs::write(dir.path().join(TOOLS), lines).unwrap();
        std::fs::write(dir.path().join("part-1").join(TOOLS), "{\"ms\":10,\"id\":\"a\",\"tool\":\"Bash\"}\n")
            .unwrap();
        let used = |name: &str, began, ended| ToolUse {
            id: "a".to_owned(),
            name: name.to_owned(),
            began,
            ended,
            failed: false,
        };
        assert_eq!(read(dir.path()), [used("Read", 5, Some(7)), used("Bash", 10, None)]);
    }
}
