//! What a client said about itself. Read leniently: a capability that is written in an unknown way is not there.

use std::path::PathBuf;

use archeflow_host::platform::process::{Pid, numbered};
use serde_json::Value;

use super::address::path_of;
use super::document::ColumnUnit;

#[derive(Debug, Default)]
pub(super) struct EditorClient {
    pub(super) unit: ColumnUnit,
    /// A diagnostic can point to other places.
    pub(super) related: bool,
    /// Code actions may be more than commands.
    pub(super) literals: bool,
    /// It opens a document when asked.
    pub(super) shows_documents: bool,
    /// It offers choices with a message.
    pub(super) offers_choices: bool,
    /// The process that started this one and ends without it.
    pub(super) parent: Option<Pid>,
    pub(super) folders: Vec<PathBuf>,
}

impl EditorClient {
    pub(super) fn read(params: &Value) -> EditorClient {
        let capability = |path: &str| params.pointer(&format!("/capabilities/{path}"));
        let is_true = |path: &str| capability(path).and_then(Value::as_bool).unwrap_or(false);
        let is_there = |path: &str| capability(path).is_some_and(|value| !value.is_null());
        let encodings = capability("general/positionEncodings").and_then(Value::as_array);
        let utf8 = encodings.is_some_and(|all| all.iter().any(|one| one == ColumnUnit::Utf8.name()));
        let parent = params["processId"].as_u64().and_then(|number| u32::try_from(number).ok());
        EditorClient {
            unit: if utf8 { ColumnUnit::Utf8 } else { ColumnUnit::Utf16 },
            related: is_true("textDocument/publishDiagnostics/relatedInformation"),
            literals: is_there("textDocument/codeAction/codeActionLiteralSupport"),
            shows_documents: is_true("window/showDocument/support"),
            offers_choices: is_there("window/showMessage/messageActionItem"),
            parent: parent.and_then(numbered),
            folders: folders(params),
        }
    }
}

/// The folders of the workspace, or the root that older clients name.
fn folders(params: &Value) -> Vec<PathBuf> {
    let named = params["workspaceFolders"].as_array();
    let named = named.into_iter().flatten().filter_map(|folder| path_of(folder["uri"].as_str()?));
    let named: Vec<PathBuf> = named.collect();
    if !named.is_empty() {
        return named;
    }
    let root = params["rootUri"].as_str().and_then(path_of);
    root.or_else(|| params["rootPath"].as_str().map(PathBuf::from)).into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn u_16_a_client_is_read_leniently() {
        for (params, unit, folders) in [
            (json!(null), ColumnUnit::Utf16, vec![]),
            (json!({ "capabilities": 7, "processId": "x", "rootUri": 3 }), ColumnUnit::Utf16, vec![]),
            (json!({ "rootUri": "file:///a", "rootPath": "/b" }), ColumnUnit::Utf16, vec!["/a"]),
            (json!({ "rootUri": null, "rootPath": "/b" }), ColumnUnit::Utf16, vec!["/b"]),
            (
                json!({
                    "rootUri": "file:///a",
                    "workspaceFolders": [{ "uri": "file:///c" }, { "uri": "other:x" }, 4],
                    "capabilities": { "general": { "positionEncodings": ["utf-16", "utf-8"] } },
                }),
                ColumnUnit::Utf8,
                vec!["/c"],
            ),
        ] {
            let client = EditorClient::read(&params);
            let expected: Vec<PathBuf> = folders.into_iter().map(PathBuf::from).collect();
            assert_eq!((client.unit, client.folders), (unit, expected), "{params}");
        }
    }
}
