//! The tables of `docs/agents.md`, which tests of clients and of the bridge play their recordings against.

use std::error::Error;
use std::path::Path;

/// The cells of the table below a heading.
pub(crate) fn rows(heading: &str) -> Result<Vec<Vec<String>>, Box<dyn Error>> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/agents.md");
    let page = std::fs::read_to_string(page)?;
    let (_, below) = page.split_once(heading).ok_or("no such heading")?;
    let table =
        below.lines().skip_while(|line| !line.starts_with('|')).take_while(|line| line.starts_with('|'));
    let cells = |line: &str| -> Vec<String> {
        line.trim_matches('|').split('|').map(|cell| cell.trim().trim_matches('`').to_owned()).collect()
    };
    Ok(table.skip(2).map(cells).collect())
}
