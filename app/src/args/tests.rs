use archeflow_host::backends;
use clap::Command;

use super::command;

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

#[test]
fn the_readme_lists_every_command() {
    let readme = include_str!("../../../README.md");
    for known in command().get_subcommands().filter(|known| !known.is_hide_set()) {
        let name = format!("| `archeflow {}", known.get_name());
        let listed = readme.lines().filter_map(|line| line.strip_prefix(&name));
        assert!(listed.into_iter().any(|rest| rest.starts_with([' ', '`'])), "{name}");
    }
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
