//! Writing and editing.

use super::tree::ToolTree;
use super::{Input, needed};

const FILE_AT_MOST: usize = 8 * 1024 * 1024;

pub(super) fn write(tree: &ToolTree, input: &Input) -> Result<String, String> {
    let parts = tree.parts(needed(input, "path")?)?;
    let content = needed(input, "content")?;
    tree.write(&parts, fits(content)?)?;
    Ok(format!("{} has {} bytes now", parts.join("/"), content.len()))
}

pub(super) fn edit(tree: &ToolTree, input: &Input) -> Result<String, String> {
    let parts = tree.parts(needed(input, "path")?)?;
    let (old, new) = (needed(input, "old")?, needed(input, "new")?);
    let path = parts.join("/");
    if old.is_empty() {
        return Err("`old` is empty; use `write` for a new file".to_owned());
    }
    let bytes = tree.read(&parts, FILE_AT_MOST as u64 + 1)?;
    if bytes.len() > FILE_AT_MOST {
        return Err(format!("{path} is too large to be edited"));
    }
    let text = String::from_utf8(bytes).map_err(|_| format!("{path} is not text"))?;
    match text.matches(old).count() {
        0 => Err(format!("`old` is not in {path}; read it again, spaces count")),
        1 => {
            tree.write(&parts, fits(&text.replacen(old, new, 1))?)?;
            Ok(format!("{path} is changed"))
        }
        times => Err(format!("`old` is in {path} {times} times; give more of what is around it")),
    }
}

fn fits(text: &str) -> Result<&[u8], String> {
    if text.len() > FILE_AT_MOST {
        Err(format!("more than {FILE_AT_MOST} bytes"))
    } else {
        Ok(text.as_bytes())
    }
}
