//! Values that a shell completes. The shell starts the program with [`VARIABLE`] set and the words typed so far; what
//! can be named is looked up then. Nothing here starts a process or writes a file, and an error completes nothing.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use archeflow_core::model::{ARCHETYPES, Reason, Workflow};
use archeflow_core::rules::run_names::{self, Meaning, NamedRun};
use archeflow_core::settings;
use archeflow_host::backends;
use clap_complete::CompleteEnv;
use clap_complete::engine::{ArgValueCandidates, ArgValueCompleter, CompletionCandidate};
use clap_complete::env::Shells;

use crate::args::Shell;
use crate::commands::naming;
use crate::render::text::{cut, safe_line};
use crate::review::Format;

/// Set by the completion scripts to the name of the shell.
const VARIABLE: &str = "_ARCHEFLOW_COMPLETE";
const NAME: &str = "archeflow";
/// Columns of a task beside an id.
const TASK: usize = 60;
/// The newest runs that are offered.
const MOST: usize = 200;

/// Answers a shell that asks for completions; `None` in every other process.
pub(crate) fn answer(arguments: &[OsString]) -> Option<ExitCode> {
    std::env::var_os(VARIABLE)?;
    let cwd = std::env::current_dir().ok();
    let completed = CompleteEnv::with_factory(super::command)
        .var(VARIABLE)
        .completer(NAME)
        .try_complete(arguments.iter().cloned(), cwd.as_deref());
    match completed {
        Ok(true) => Some(ExitCode::SUCCESS),
        Ok(false) => None,
        Err(error) => {
            tell!("error: {}", safe_line(&error.to_string()));
            Some(ExitCode::from(2))
        }
    }
}

/// The script that a shell reads once. It asks the program for every completion.
pub(crate) fn script(shell: Shell) -> std::io::Result<String> {
    let name = match shell {
        Shell::Bash => "bash",
        Shell::Elvish => "elvish",
        Shell::Fish => "fish",
        Shell::Powershell => "powershell",
        Shell::Zsh => "zsh",
    };
    let mut script = Vec::new();
    let shells = Shells::builtins();
    let Some(completer) = shells.completer(name) else {
        return Err(std::io::Error::other(format!("no completions are known for {name}")));
    };
    completer.write_registration(VARIABLE, NAME, NAME, NAME, &mut script)?;
    Ok(String::from_utf8_lossy(&script).into_owned())
}

/// Runs of the repository, the newest first, each with its task: their ids, and once something is typed also names
/// without the date.
pub(crate) fn runs() -> ArgValueCompleter {
    ArgValueCompleter::new(|typed: &OsStr| {
        let typed = typed.to_string_lossy();
        runs_matching(&typed, &known_runs())
    })
}

fn runs_matching(typed: &str, runs: &[NamedRun]) -> Vec<CompletionCandidate> {
    let newest = || runs.iter().enumerate().rev().take(MOST);
    let ids = newest().map(|(_, run)| (run.id.as_str(), run));
    let slugs = newest().filter(|_| !typed.is_empty()).filter_map(|(at, run)| {
        let slug = run_names::slug(&run.id);
        (slug != run.id && run_names::resolve(slug, runs) == Meaning::One(at)).then_some((slug, run))
    });
    ids.chain(slugs)
        .filter(|(name, _)| name.starts_with(typed))
        .map(|(name, run)| candidate(name, &cut(&safe_line(&run.task), TASK)))
        .collect()
}

/// The runs of the folder that `--repo` names, or that the shell is in.
fn known_runs() -> Vec<NamedRun> {
    repository().map(|root| naming::runs_in(&root.join(EVENTS))).unwrap_or_default()
}

const EVENTS: &str = ".archeflow/events";

/// The nearest folder with runs; git is not asked.
fn repository() -> Option<PathBuf> {
    let cwd = std::env::current_dir().ok()?;
    let words: Vec<OsString> = std::env::args_os().collect();
    let start = named_repository(&words).map_or_else(|| cwd.clone(), |named| cwd.join(named));
    start.ancestors().find(|folder| folder.join(EVENTS).is_dir()).map(Path::to_path_buf)
}

fn named_repository(words: &[OsString]) -> Option<PathBuf> {
    let joined = words.iter().find_map(|word| word.to_str()?.strip_prefix("--repo=").map(PathBuf::from));
    let behind = || words.windows(2).find(|pair| pair[0] == "--repo").map(|pair| PathBuf::from(&pair[1]));
    joined.or_else(behind)
}

/// Fixed values.
pub(crate) fn words(words: &'static [&'static str]) -> ArgValueCandidates {
    ArgValueCandidates::new(|| words.iter().map(CompletionCandidate::new).collect())
}

pub(crate) fn formats() -> ArgValueCandidates {
    ArgValueCandidates::new(|| {
        Format::ALL.iter().map(|format| CompletionCandidate::new(format.name())).collect()
    })
}

pub(crate) fn archetypes() -> ArgValueCandidates {
    ArgValueCandidates::new(|| with_files("archetypes", archetype_names()))
}

/// `guardian=`, to be followed by an agent.
pub(crate) fn agents_by_archetype() -> ArgValueCandidates {
    ArgValueCandidates::new(|| {
        archetype_names().iter().map(|name| CompletionCandidate::new(format!("{name}="))).collect()
    })
}

fn archetype_names() -> Vec<&'static str> {
    ARCHETYPES.iter().map(|(name, _)| *name).collect()
}

pub(crate) fn workflows() -> ArgValueCandidates {
    ArgValueCandidates::new(|| {
        with_files("workflows", Workflow::ALL.iter().map(|workflow| workflow.name()).collect())
    })
}

/// What `explain` knows: archetypes, workflows and reasons.
pub(crate) fn explained() -> ArgValueCandidates {
    ArgValueCandidates::new(|| {
        let workflows = Workflow::ALL.iter().map(|workflow| workflow.name());
        let reasons = Reason::ALL.iter().map(|reason| reason.name());
        let names = archetype_names().into_iter().chain(workflows).chain(["pipeline"]).chain(reasons);
        names.map(CompletionCandidate::new).collect()
    })
}

/// The part of each form of an agent that is always the same.
pub(crate) fn agents() -> ArgValueCandidates {
    ArgValueCandidates::new(|| {
        let fixed = |form: &'static str| form.split(['[', '<']).next().unwrap_or(form);
        backends::forms().into_iter().map(|(form, title)| candidate(fixed(form), title)).collect()
    })
}

/// `costs.budget_usd=` and the like. A key with a name in it ends before that name.
pub(crate) fn settings() -> ArgValueCandidates {
    ArgValueCandidates::new(|| {
        let keys = settings::rows().map(|row| match row.path.split_once('<') {
            Some((before, _)) => candidate(before, row.help),
            None => candidate(&format!("{}=", row.path), row.help),
        });
        keys.collect()
    })
}

/// Built-in names and those of files in this repository's configuration.
fn with_files(folder: &str, mut names: Vec<&'static str>) -> Vec<CompletionCandidate> {
    names.dedup();
    let built_in = names.iter().map(CompletionCandidate::new);
    let folder = repository().map(|root| root.join(".archeflow").join(folder));
    let files = folder.and_then(|folder| std::fs::read_dir(folder).ok()).into_iter().flatten().flatten();
    let stems = files.filter_map(|file| Some(file.path().file_stem()?.to_str()?.to_owned()));
    let brought = stems.filter(|stem| !names.contains(&stem.as_str())).take(MOST);
    built_in.chain(brought.map(|stem| CompletionCandidate::new(safe_line(&stem)))).collect()
}

fn candidate(value: &str, help: &str) -> CompletionCandidate {
    let help = (!help.is_empty()).then(|| help.to_owned().into());
    CompletionCandidate::new(value).help(help)
}

#[cfg(test)]
mod tests {
    use archeflow_core::rules::run_names::RunState;

    use super::*;

    #[test]
    fn u_12_ids_are_offered_and_names_without_a_date_once_they_are_begun() {
        let run = |id: &str, task: &str| NamedRun {
            id: id.to_owned(),
            task: task.to_owned(),
            state: RunState::Closed,
            asks: false,
        };
        let runs = [
            run("2026-04-06-fix-it", "Fix it"),
            run("2026-04-07-add-it", "Add it"),
            run("2026-04-08-fix-it", "Fix it\u{1b}[2J"),
        ];
        for (typed, expected) in [
            ("", "2026-04-08-fix-it 2026-04-07-add-it 2026-04-06-fix-it"),
            ("2026-04-07", "2026-04-07-add-it"),
            ("ad", "add-it"),
            ("fix", ""),
            ("zzz", ""),
        ] {
            let found = runs_matching(typed, &runs);
            let values: Vec<_> = found.iter().map(|one| one.get_value().to_string_lossy()).collect();
            assert_eq!(values.join(" "), expected, "{typed}");
            let helps = found.iter().filter_map(CompletionCandidate::get_help);
            assert!(helps.clone().count() == found.len(), "{typed}");
            assert!(!helps.map(ToString::to_string).any(|help| help.contains('\u{1b}')), "{typed}");
        }
    }

    #[test]
    fn u_12_the_folder_that_was_named_is_completed_for() {
        for (line, expected) in [
            ("archeflow show --repo /a", Some("/a")),
            ("archeflow show --repo=/b x", Some("/b")),
            ("archeflow show x", None),
            ("archeflow show --repo", None),
        ] {
            let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            assert_eq!(named_repository(&words), expected.map(PathBuf::from), "{line}");
        }
    }
}
