//! `cargo xtask docs`: the tables of the manual that are generated from the code.

use std::path::Path;
use std::process::ExitCode;

use archeflow_host::backends;
use archeflow_host::config::approval;

use crate::tidy::{Tree, faults};

/// A page, and the function that writes its table again; `None` if the page does not mark where the table is.
type GeneratedPage = (&'static str, fn(&str) -> Option<String>);

const PAGES: [GeneratedPage; 2] =
    [("docs/configuration.md", approval::in_manual), ("docs/agents.md", backends::in_manual)];

pub(crate) fn write(root: &Path) -> ExitCode {
    for (name, table) in PAGES {
        if let Err(error) = update(&root.join(name), table) {
            eprintln!("{name}: {error}");
            return ExitCode::FAILURE;
        }
        println!("{name} is up to date");
    }
    if let Err(error) = list_tests(root) {
        eprintln!("{}: {error}", faults::PAGE);
        return ExitCode::FAILURE;
    }
    println!("{} is up to date", faults::PAGE);
    ExitCode::SUCCESS
}

fn update(path: &Path, table: fn(&str) -> Option<String>) -> Result<(), String> {
    let page = std::fs::read_to_string(path).map_err(|error| error.to_string())?;
    let page = table(&page).ok_or("it does not mark where its table begins and ends")?;
    std::fs::write(path, page).map_err(|error| error.to_string())
}

/// The tests of each fault, read from the whole tree.
fn list_tests(root: &Path) -> Result<(), String> {
    let tree = Tree::read(root).map_err(|error| error.to_string())?;
    let path = root.join(faults::PAGE);
    let page = std::fs::read_to_string(&path).map_err(|error| error.to_string())?;
    std::fs::write(path, faults::in_manual(&tree, &page)).map_err(|error| error.to_string())
}
