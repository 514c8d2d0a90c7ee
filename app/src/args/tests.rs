use std::collections::BTreeSet;

use archeflow_host::backends;
use clap::Command;

use super::{Cli, Parser, command, tried};

fn help(path: &[&str]) -> String {
    let mut found = command();
    for name in path {
        found = found.find_subcommand(name).expect("a command of that name").clone();
    }
    found.render_long_help().to_string()
}

#[test]
fn every_command_that_takes_an_agent_lists_all_of_them() {
    for path in [&[][..], &["run"], &["review"], &["loop", "start"], &["sprint", "run"]] {
        let help = help(path);
        for (form, title) in backends::forms() {
            assert!(help.contains(form) && help.contains(title), "{path:?}: {form}\n{help}");
        }
    }
}

/// The first cells of a table in the README, without their backticks. Cells that are no code are left out.
fn readme_table(head: &str) -> Vec<String> {
    let readme = include_str!("../../../README.md");
    let rows =
        readme.lines().skip_while(|line| *line != head).skip(2).take_while(|line| line.starts_with('|'));
    // A bar inside of a cell is escaped.
    let cells = rows.filter_map(|row| row.strip_prefix("| `")?.split_once("` |").map(|(cell, _)| cell));
    cells.map(|cell| cell.replace("\\|", "|")).collect()
}

#[test]
fn u_18_the_readme_lists_every_command_and_no_other() {
    let listed = readme_table("| Command | What it does |");
    let visible = |command: &Command| {
        let names = command.get_subcommands().filter(|known| !known.is_hide_set());
        names.map(|known| known.get_name().to_owned()).collect::<BTreeSet<String>>()
    };
    let root = command();
    let words = |row: &String| row.split(' ').map(str::to_owned).collect::<Vec<_>>();
    let names: BTreeSet<String> = listed.iter().filter_map(|row| words(row).get(1).cloned()).collect();
    assert_eq!(names, visible(&root));
    for group in root.get_subcommands().filter(|known| known.has_subcommands() && !known.is_hide_set()) {
        let rows =
            listed.iter().map(words).filter(|row| row.get(1).is_some_and(|name| name == group.get_name()));
        let inner = rows.filter_map(|row| row.get(2).cloned());
        let inner: BTreeSet<String> =
            inner.flat_map(|cell| cell.split('|').map(str::to_owned).collect::<Vec<_>>()).collect();
        assert_eq!(inner, visible(group), "{}", group.get_name());
    }
}

#[test]
fn u_18_the_readme_lists_every_agent_and_no_other() {
    let forms: Vec<&str> = backends::forms().into_iter().map(|(form, _)| form).collect();
    assert_eq!(readme_table("| Agent | What it is |"), forms);
}

/// Plain words: an imperative or a noun phrase, and defaults written in one way.
#[test]
fn help_texts_are_imperatives_or_noun_phrases() {
    fn check(command: &Command) {
        let about = command.get_about().map(ToString::to_string);
        let arguments = command.get_arguments().filter_map(|one| one.get_help()).map(ToString::to_string);
        for text in about.into_iter().chain(arguments) {
            let first = text.split(' ').next().unwrap_or_default();
            let asks = ["What", "Who", "Where", "How", "Those", "Nobody"].contains(&first);
            let words = ["if not given", "so many", "is meant", "told", "plays"];
            assert!(!asks && !words.iter().any(|word| text.contains(word)), "{}: {text}", command.get_name());
            assert!(!text.ends_with('.'), "{}: {text}", command.get_name());
        }
        command.get_subcommands().for_each(check);
    }
    check(&command());
}

/// A worker is parsed without the other commands.
#[test]
fn a_worker_is_given_the_same_by_its_own_tree_as_by_that_of_all_commands() {
    for (line, is_known) in [
        ("worker --join w7.join", true),
        (
            "worker --join w7.join --slots 6 --label gpu --label big --folder w --wait --unsafe-no-sandbox",
            true,
        ),
        ("worker drain w7 --join boss.join", true),
        ("worker", false),
        ("worker --join w7.join --slots 0", false),
        ("worker --join w7.join drain", false),
        ("worker --help", false),
        ("worker drain --help", false),
        ("worker --version", false),
        ("worker --nothing", false),
        ("help worker", false),
    ] {
        let words: Vec<std::ffi::OsString> =
            std::iter::once("archeflow").chain(line.split(' ')).map(Into::into).collect();
        assert_eq!(super::worker::alone(&words).is_some(), is_known, "{line}");
        let shown = |parsed: Result<Cli, clap::Error>| match parsed {
            Ok(cli) => format!("{:?}", cli.command),
            Err(error) => error.to_string(),
        };
        assert_eq!(shown(tried(&words)), shown(Cli::try_parse_from(&words)), "{line}");
    }
}
