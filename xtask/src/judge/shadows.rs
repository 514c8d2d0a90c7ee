//! Fair reviews that are called sick. `d_shadows.jsonl` names its reviews without their texts, so free reviews that can
//! be read (`a_free.jsonl`) take their place, each as one of every reviewer, beside the samples of this repository. How large
//! the change under a free review was is not in the data: it counts as a large one.

use std::path::Path;

use archeflow_core::model::{
    Answer, AnswerBody, Change, ChangedFile, Domain, FileStatus, Role, Shadow, Shadows, Signs,
};
use archeflow_core::read;
use archeflow_core::rules::shadows::{Facts, check};
use serde_json::Value;

use super::{Measure, Measures, share, text};

const REVIEWERS: [(&str, Role, Shadow); 4] = [
    ("guardian", Role::Gatekeeper, Shadow::Paranoid),
    ("skeptic", Role::Reviewer, Shadow::Paralytic),
    ("trickster", Role::Reviewer, Shadow::FalseAlarm),
    ("sage", Role::Reviewer, Shadow::Bureaucrat),
];

/// Lines of every file in the change.
const USUAL: u32 = 50;
const LARGE: u32 = 1_000;

/// Alarms on fair reviews, of a hundred.
const GOAL: f64 = 0.01;

pub(super) fn measure(items: &[Value]) -> Measures {
    let (mut looked, mut alarms) = (0, Vec::new());
    for item in items {
        for (archetype, role, shadow) in REVIEWERS {
            let answer = read::answer(role, archetype, text(item, "text").as_bytes());
            let AnswerBody::Review(review) = &answer.said else { continue };
            if review.verdict.is_none() {
                continue;
            }
            looked += 1;
            let mut files: Vec<String> = review.findings.iter().map(|finding| finding.file.clone()).collect();
            files.push("src/rest_of_the_change.rs".to_owned());
            alarms.extend(alarm(text(item, "id"), shadow, &answer, files, LARGE));
        }
    }
    let mut rows = vec![row("fair reviews called sick, free text", looked, alarms)];
    let (mut looked, mut alarms) = (0, Vec::new());
    for (archetype, role, shadow) in REVIEWERS {
        for (name, files, body) in samples(archetype)? {
            let answer = read::answer(role, archetype, body.as_bytes());
            looked += 1;
            alarms.extend(alarm(&format!("{archetype}: {name}"), shadow, &answer, files, USUAL));
        }
    }
    rows.push(row("fair reviews called sick, own samples", looked, alarms));
    Ok(rows)
}

fn row(what: &str, looked: u32, alarms: Vec<String>) -> Measure {
    let called = u32::try_from(alarms.len()).unwrap_or(u32::MAX);
    Measure {
        what: what.to_owned(),
        baseline: "any finding: all".to_owned(),
        figure: format!("{called} of {looked}"),
        goal: "1 %".to_owned(),
        met: looked > 0 && share(called, looked) <= GOAL,
        mistakes: alarms,
    }
}

fn alarm(name: &str, shadow: Shadow, answer: &Answer, files: Vec<String>, lines: u32) -> Option<String> {
    let change = changed(files, lines);
    let facts = Facts {
        answer,
        change: Some(&change),
        proposal: None,
        items: 0,
        task: "",
        domain: Domain::Code,
        reviews_without_approval: 1,
    };
    let seen = check(shadow, &facts, &Shadows::default());
    seen.first().map(|sighting| format!("{name}: {} {}", shadow.name(), sighting.detail))
}

fn changed(files: Vec<String>, lines: u32) -> Change {
    let file = |path| ChangedFile {
        path,
        status: FileStatus::Modified,
        added: lines,
        deleted: 0,
        content: String::new(),
    };
    Change {
        commit: String::new(),
        tree: String::new(),
        kept_as: String::new(),
        files: files.into_iter().map(file).collect(),
        files_left_out: 0,
        test_files: 1,
        commits: 2,
        uncommitted: false,
        signs: Signs::default(),
        notes: Vec::new(),
    }
}

/// Name, changed files and text of each healthy sample.
fn samples(archetype: &str) -> Result<Vec<(String, Vec<String>, String)>, String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join(format!("../core/tests/corpus/shadows/{archetype}/healthy.md"));
    let page = std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let sample = |part: &str| {
        let (head, body) = part.split_once("-->")?;
        let name = head.split(';').next().unwrap_or_default().trim().to_owned();
        let changed = head.split(';').find_map(|field| field.trim().strip_prefix("changed:"));
        let files = changed.unwrap_or_default().split(',');
        let files = files.filter_map(|file| file.split_whitespace().next()).map(str::to_owned).collect();
        // A sample may be repeated to a length in the tests; here it counts as it is.
        Some((name, files, body.trim_start().to_owned()))
    };
    Ok(page.split("<!-- sample: ").skip(1).filter_map(sample).collect())
}
