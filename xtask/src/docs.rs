//! `cargo xtask docs`: the tables of the manual that follow from the code.

use std::path::Path;
use std::process::ExitCode;

use archeflow_host::config::approval;

const PAGE: &str = "docs/configuration.md";

pub(crate) fn write(root: &Path) -> ExitCode {
    match settings(root) {
        Ok(()) => {
            println!("{PAGE} is up to date");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{PAGE}: {error}");
            ExitCode::FAILURE
        }
    }
}

fn settings(root: &Path) -> Result<(), String> {
    let path = root.join(PAGE);
    let page = std::fs::read_to_string(&path).map_err(|error| error.to_string())?;
    let page = approval::in_manual(&page).ok_or("it does not mark where its table begins and ends")?;
    std::fs::write(&path, page).map_err(|error| error.to_string())
}
