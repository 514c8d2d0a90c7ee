//! The entry in Codex's `config.toml`: a table of its own at the end of the file.

use toml::de::DeTable;

pub(super) const ENTRY: &str = include_str!("../../../plugin/codex/config.toml");

/// The text with the entry. An entry that is there already is the user's, whatever it says.
pub(super) fn add(text: &str) -> Result<String, String> {
    if has_entry(text)? {
        return Ok(text.to_owned());
    }
    let gap = match text {
        "" => "",
        text if text.ends_with("\n\n") => "",
        text if text.ends_with('\n') => "\n",
        _ => "\n\n",
    };
    let after = format!("{text}{gap}{ENTRY}");
    // Servers may be written in a way that nothing can be added to at another place.
    match has_entry(&after) {
        Ok(true) => Ok(after),
        Ok(false) | Err(_) => {
            Err("the entry can't be added behind `mcp_servers` as it is written there".to_owned())
        }
    }
}

/// The text without the entry, if that is as [`add`] wrote it.
pub(super) fn remove(text: &str) -> Result<String, String> {
    if !has_entry(text)? {
        return Ok(text.to_owned());
    }
    let after = text.split_once(ENTRY).map(|(above, below)| match below {
        "" => above.strip_suffix("\n\n").map_or_else(|| above.to_owned(), |above| format!("{above}\n")),
        below => format!("{above}{below}"),
    });
    match after {
        Some(after) if has_entry(&after) == Ok(false) => Ok(after),
        Some(_) | None => {
            Err("its entry for archeflow has been changed; remove it where it is written".to_owned())
        }
    }
}

fn has_entry(text: &str) -> Result<bool, String> {
    let table = DeTable::parse(text).map_err(|error| {
        let line = error.span().map(|span| text[..span.start.min(text.len())].lines().count().max(1));
        let line = line.map(|line| format!("line {line}: ")).unwrap_or_default();
        format!("{line}{}", error.message())
    })?;
    let servers = table.get_ref().get("mcp_servers");
    Ok(servers.and_then(|servers| servers.get_ref().get("archeflow")).is_some())
}
