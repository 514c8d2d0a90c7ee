//! What the program itself holds against a change (D-07). No model can waive it.

use crate::model::{Counted, Finding, PROGRAM, Raised, Severity, Sign, Signs};

pub fn findings(signs: &Signs, policy: &Raised) -> Vec<(Sign, Finding)> {
    let mut seen = signs.seen.clone();
    seen.sort();
    seen.iter().map(|counted| (counted.sign, finding(counted, policy))).collect()
}

pub fn finding(counted: &Counted, policy: &Raised) -> Finding {
    let (category, fix) = meaning(counted.sign);
    let location =
        if counted.line > 0 { format!("{}:{}", counted.path, counted.line) } else { counted.path.clone() };
    Finding {
        source: PROGRAM.to_owned(),
        location,
        file: counted.path.clone(),
        line: counted.line,
        severity: policy.severity.get(&counted.sign).copied().unwrap_or_else(|| severity(counted.sign)),
        category: category.to_owned(),
        flaw: None,
        description: counted.detail.clone(),
        fix: fix.to_owned(),
        evidence: format!("seen by the program in the change ({})", counted.sign.name()),
        citations: Vec::new(),
        anchor: String::new(),
        reproduction: None,
    }
}

/// How grave a sign is unless the user has said otherwise. What ordinary work changes every day is pointed out and does not
/// keep it from landing.
fn severity(sign: Sign) -> Severity {
    match sign {
        Sign::BuildChanged | Sign::BinaryChanged | Sign::LinterChanged => Severity::Info,
        // They keep nothing from landing, and are named wherever the landing is.
        Sign::TestCommandChanged | Sign::OldTestsFail => Severity::Warning,
        Sign::TestsRemoved
        | Sign::TestsWeakened
        | Sign::CiChanged
        | Sign::OwnStateChanged
        | Sign::Credential
        | Sign::SymlinkAdded
        | Sign::SubmoduleChanged
        | Sign::LargeBinary
        | Sign::TestsFailing
        | Sign::RunsCode
        | Sign::SteersAgents
        | Sign::HiddenText
        | Sign::NotShown
        | Sign::NamesClash => Severity::Critical,
    }
}

/// Category and remedy of each sign; the table of `docs/rules/raised.md`.
pub fn meaning(sign: Sign) -> (&'static str, &'static str) {
    match sign {
        Sign::TestsRemoved => ("testing", "Restore the removed tests."),
        Sign::TestsWeakened => ("testing", "Restore the assertions and cases that were taken out."),
        Sign::CiChanged => ("security", "Take the change to the CI configuration out."),
        Sign::OwnStateChanged => ("security", "Take the change under .archeflow/ out."),
        Sign::Credential => ("security", "Remove the credential from the change and its history."),
        Sign::SymlinkAdded => ("security", "Use a regular file instead of a symbolic link."),
        Sign::SubmoduleChanged => ("dependency", "Take the submodule change out."),
        Sign::LargeBinary => ("quality", "Keep the binary out of the repository."),
        Sign::TestsFailing => ("testing", "Make the test command pass on the merged tree."),
        Sign::RunsCode => ("security", "Take the file out: tools run it without being asked."),
        Sign::BuildChanged => ("security", "Read what the build, the installation or the tests now run."),
        Sign::SteersAgents => ("security", "Take the file out: coding agents obey it."),
        Sign::BinaryChanged => ("quality", "Make sure the binary is meant and where it came from."),
        Sign::HiddenText => (
            "security",
            "Store it as UTF-8 without NUL bytes or characters that change the order: as it is, no diff shows it.",
        ),
        Sign::NotShown => ("security", "Make the change smaller, so that reviewers can see all of it."),
        Sign::NamesClash => ("quality", "Give the files names that differ in more than case."),
        Sign::LinterChanged => ("quality", "Read what the linter or formatter no longer reports."),
        Sign::TestCommandChanged => ("testing", "Read what the test command runs now."),
        Sign::OldTestsFail => ("testing", "Read what the changed tests no longer ask for."),
    }
}
