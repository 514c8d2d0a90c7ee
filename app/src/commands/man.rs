//! Manual pages, from the same descriptions as `--help`. Only in builds with the feature `man`, for `cargo xtask dist`: the
//! released program does not contain this.

use std::ffi::OsString;
use std::process::ExitCode;

use clap_mangen::Man;
use serde_json::{Map, Value};

use crate::output::CommandOutput;

/// `archeflow __man` prints one JSON object: the name of each page and its text.
pub(crate) fn run(arguments: &[OsString]) -> Option<ExitCode> {
    arguments.get(1).filter(|word| *word == "__man")?;
    let mut root = crate::args::command();
    root.build();
    let mut pages = Map::new();
    add(&root, &mut pages);
    Some(ExitCode::from(CommandOutput::json(Value::Object(pages)).print()))
}

fn add(command: &clap::Command, pages: &mut Map<String, Value>) {
    let inner = command.get_subcommands().filter(|inner| !inner.is_hide_set() && inner.get_name() != "help");
    inner.for_each(|inner| add(inner, pages));
    let page = Man::new(command.clone());
    let mut text = Vec::new();
    // Writing into memory does not fail.
    let _ = page.render(&mut text);
    pages.insert(page.get_filename(), String::from_utf8_lossy(&text).into_owned().into());
}
