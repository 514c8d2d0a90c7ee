//! What a finding is filed under where tools ask for rules: by category for reviewers, by sign for the program.

use archeflow_core::model::{PROGRAM, Severity, Sign};
use archeflow_core::rules::raised;
use archeflow_core::strategies::review::{Listed, Standing};
use archeflow_core::text::identifier;

/// A rule as tools get it.
pub(super) struct Rule {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) about: String,
    pub(super) help: String,
    /// As grave as it gets.
    pub(super) severity: Severity,
    /// From 0.0 to 10.0, for what is about security.
    pub(super) score: Option<&'static str>,
}

/// `archeflow/security`, `archeflow/program/credential`; `archeflow/advice/security` for claims without evidence.
pub(super) fn id(found: &Listed) -> String {
    match (&found.standing, sign(found)) {
        (Standing::Unfounded(_), _) => format!("archeflow/advice/{}", identifier(&found.rule)),
        (_, Some(sign)) => format!("archeflow/program/{}", sign.name()),
        (_, None) => format!("archeflow/{}", identifier(&found.rule)),
    }
}

pub(super) fn rule(found: &Listed) -> Rule {
    let id = id(found);
    let category = identifier(&found.category);
    let security = category == "security";
    match (&found.standing, sign(found)) {
        (Standing::Unfounded(_), _) => Rule {
            about: format!("Advice on {category} for which no evidence was given or found"),
            help: "A reviewer claimed this without evidence. It does not count against the change."
                .to_owned(),
            name: name(&["advice", &identifier(&found.rule)]),
            severity: Severity::Info,
            score: None,
            id,
        },
        (_, Some(sign)) => Rule {
            about: format!("The program itself saw this in the change: {}", sign.name().replace('_', " ")),
            help: format!("{} No reviewer can waive it.", raised::meaning(sign).1),
            name: name(&["program", sign.name()]),
            severity: Severity::Critical,
            score: security.then_some("9.1"),
            id,
        },
        (_, None) => Rule {
            about: format!("What reviewers found about {category}"),
            help: about(&category).to_owned(),
            name: name(&[&category]),
            severity: if security { Severity::Critical } else { Severity::Warning },
            score: security.then_some("7.5"),
            id,
        },
    }
}

/// One sentence for each built-in category; lenses add others.
fn about(category: &str) -> &'static str {
    match category {
        "security" => "The change allows access, disclosure or damage that should be prevented.",
        "reliability" => "The change can fail, hang or lose something where it should not.",
        "breaking-change" => "The change breaks something others depend on.",
        "dependency" => "The change brings in, moves or drops something of others in a way that matters.",
        "quality" => "The change is harder to understand or to keep than it needs to be.",
        "scalability" => "The change will not keep up with more of what it is for.",
        "testing" => "The change is not tested where it should be, or its tests show nothing.",
        "design" => "The change solves it in a way that will not hold.",
        "consistency" => "The change does something differently from what is around it.",
        _ => "A category of this repository's lenses, or one that a reviewer chose.",
    }
}

fn sign(found: &Listed) -> Option<Sign> {
    let raised = found.sources.iter().any(|source| source == PROGRAM);
    Sign::ALL.into_iter().find(|sign| raised && sign.name() == found.rule)
}

/// `ProgramCredential`.
fn name(words: &[&str]) -> String {
    let parts = words.iter().flat_map(|word| word.split(['-', '_'])).filter(|part| !part.is_empty());
    let name: String =
        std::iter::once("Archeflow").chain(parts).map(archeflow_core::projections::view::capital).collect();
    name
}
