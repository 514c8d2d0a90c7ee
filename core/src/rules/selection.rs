//! Which strategy and which workflow a task gets by default (AF-020..AF-022, CL-21).

use crate::event::Chosen;
use crate::model::{Strategy, Workflow};

const PIPELINE_WORDS: [&str; 4] = ["fix", "bug", "patch", "hotfix"];
const PDCA_WORDS: [&str; 3] = ["refactor", "redesign", "review"];
const THOROUGH_WORDS: [&str; 22] = [
    "security",
    "secure",
    "auth",
    "authentication",
    "authorization",
    "login",
    "password",
    "passwords",
    "token",
    "tokens",
    "secret",
    "secrets",
    "crypto",
    "encryption",
    "permission",
    "permissions",
    "vulnerability",
    "breaking",
    "migration",
    "injection",
    "oauth",
    "tls",
];
const THOROUGH_PHRASES: [&str; 3] = ["public api", "breaking change", "backwards incompatible"];
const FAST_WORDS: [&str; 16] = [
    "typo",
    "typos",
    "rename",
    "comment",
    "comments",
    "docs",
    "documentation",
    "readme",
    "small",
    "trivial",
    "minor",
    "tweak",
    "bump",
    "wording",
    "spelling",
    "whitespace",
];

/// The choices of user and configuration, in order of precedence (AF-020).
#[derive(Debug, Clone, Default)]
pub struct Wishes {
    pub workflow_flag: Option<Workflow>,
    pub workflow_config: Option<Workflow>,
    pub strategy_flag: Option<Strategy>,
    pub strategy_config: Option<Strategy>,
}

pub fn select(task: &str, wishes: &Wishes) -> (Strategy, Workflow, Chosen) {
    let (workflow, workflow_by) = workflow(task, wishes);
    let (strategy, strategy_by, against) = strategy(task, workflow, wishes);
    (strategy, workflow, Chosen { strategy_by, workflow_by, domain_by: String::new(), against })
}

fn workflow(task: &str, wishes: &Wishes) -> (Workflow, String) {
    if let Some(workflow) = wishes.workflow_flag {
        return (workflow, "flag".to_owned());
    }
    if let Some(workflow) = wishes.workflow_config {
        return (workflow, "configuration".to_owned());
    }
    let text = task.to_lowercase();
    if let Some(word) = first_word(&text, &THOROUGH_WORDS) {
        return (Workflow::Thorough, format!("the task says '{word}'"));
    }
    if let Some(phrase) = THOROUGH_PHRASES.iter().find(|phrase| text.contains(**phrase)) {
        return (Workflow::Thorough, format!("the task says '{phrase}'"));
    }
    if let Some(word) = first_word(&text, &FAST_WORDS) {
        return (Workflow::Fast, format!("the task says '{word}'"));
    }
    (Workflow::Standard, "default".to_owned())
}

fn strategy(task: &str, workflow: Workflow, wishes: &Wishes) -> (Strategy, String, Vec<String>) {
    if let Some(strategy) = wishes.strategy_flag {
        return (strategy, "flag".to_owned(), Vec::new());
    }
    if let Some(strategy) = wishes.strategy_config {
        return (strategy, "configuration".to_owned(), Vec::new());
    }
    let text = task.to_lowercase();
    let mut signals: Vec<(Strategy, String)> = Vec::new();
    if wishes.workflow_flag == Some(Workflow::Thorough) {
        signals.push((Strategy::Pdca, "--workflow thorough".to_owned()));
    }
    if let Some(word) = first_word(&text, &PIPELINE_WORDS) {
        signals.push((Strategy::Pipeline, format!("the task says '{word}'")));
    }
    if let Some(word) = first_word(&text, &PDCA_WORDS) {
        signals.push((Strategy::Pdca, format!("the task says '{word}'")));
    }
    if workflow == Workflow::Fast && files_named(task) == 1 {
        signals.push((Strategy::Pipeline, "a fast workflow that names a single file".to_owned()));
    }
    if workflow == Workflow::Thorough {
        signals.push((Strategy::Pdca, "a thorough workflow".to_owned()));
    }
    let Some((chosen, by)) = signals.first().cloned() else {
        return (Strategy::Pdca, "default".to_owned(), Vec::new());
    };
    let against = signals.iter().filter(|(other, _)| *other != chosen).map(|(_, why)| why.clone()).collect();
    (chosen, by, against)
}

/// The first of the task's words, as whole words, that is in the list.
fn first_word<'a>(text: &'a str, list: &[&str]) -> Option<&'a str> {
    text.split(|c: char| !c.is_alphanumeric()).find(|word| list.contains(word))
}

fn files_named(task: &str) -> usize {
    let looks_like_a_file = |word: &&str| {
        let word = word.trim_matches(|c: char| !c.is_alphanumeric());
        word.rsplit_once('.').is_some_and(|(stem, extension)| {
            !stem.is_empty()
                && (1..=4).contains(&extension.len())
                && extension.chars().all(|c| c.is_ascii_alphabetic())
        })
    };
    task.split_whitespace().filter(looks_like_a_file).count()
}
