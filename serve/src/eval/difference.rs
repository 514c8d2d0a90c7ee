//! Two evaluations of the same tasks as a document.

use archeflow_core::eval::EvalDifference;
use archeflow_core::eval::across::{ChangedPart, PlanChange};

use super::document::{Block, Document, Picture, Section, Table, cell, words as column};
use super::report::{
    HINTS, SIMULATED, comparison_head, comparison_row, conclusions, hint_table, how_to_read,
};
use super::{pictures, words};

/// `started` are the moments in the two plans as people write them; `notes` is what was skipped in the folders.
pub fn document(found: &EvalDifference, started: [&str; 2], notes: &[String], power: f64) -> Document {
    let [first_started, second_started] = started;
    let (first, second) = (&found.first, &found.second);
    let mut warnings = Vec::new();
    if first.simulated || second.simulated {
        warnings.push(SIMULATED.to_owned());
    }
    if found.is_other_suite() {
        warnings.push(
            "The files of the suite differ between the two, so tasks of the same name may not be the same task."
                .to_owned(),
        );
    }
    let mut lead = conclusions(&found.comparisons, "in B than in A", words::measure(found.measure));
    if found.comparisons.is_empty() {
        "The two have no arm in common, so nothing is compared.".clone_into(&mut lead);
    }
    Document {
        eyebrow: "ArcheFlow evaluations compared".to_owned(),
        title: format!("B: {} against A: {}", second.agent, first.agent),
        lead,
        warnings,
        facts: vec![
            ("A", first.agent.clone(), format!("{first_started}, archeflow {}", first.version)),
            ("B", second.agent.clone(), format!("{second_started}, archeflow {}", second.version)),
            (
                "Tasks in both",
                found.tasks.len().to_string(),
                format!("of {} in A and {} in B", first.tasks.len(), second.tasks.len()),
            ),
            (
                "Arms compared",
                found.arms.len().to_string(),
                format!("{} trials in A, {} in B", found.first_done, found.second_done),
            ),
        ],
        sections: [Some(changes(found, notes)), comparisons(found, power), hints(found)]
            .into_iter()
            .flatten()
            .collect(),
        foot: format!(
            "Made by archeflow eval compare. Every difference is B minus A, over the tasks that both have. Intervals have a \
             confidence of {}.",
            words::percent(found.confidence)
        ),
    }
}

fn changes(found: &EvalDifference, notes: &[String]) -> Section {
    let mut blocks = Vec::new();
    if found.changes.is_empty() {
        blocks.push(Block::Text(
            "Suite, agent, version, seed, repeats and arms are the same: only chance is behind a difference."
                .to_owned(),
        ));
    } else {
        let row = |one: &PlanChange| {
            vec![cell(part(one)), cell(shortened(one, &one.first)), cell(shortened(one, &one.second))]
        };
        blocks.push(Block::Table(Table {
            caption: "What may be behind a difference, besides chance".to_owned(),
            head: vec![column(""), column("A"), column("B")],
            rows: found.changes.iter().map(row).collect(),
            left_out: 0,
            class: "narrow",
        }));
    }
    let lists = [
        ("Tasks in A only", &found.only_first),
        ("Tasks in B only", &found.only_second),
        ("Arms in A only", &found.arms_only_first),
        ("Arms in B only", &found.arms_only_second),
    ];
    let mut items: Vec<String> = lists
        .into_iter()
        .filter(|(_, names)| !names.is_empty())
        .map(|(what, names)| format!("{what}: {}.", words::names(names.iter().map(String::as_str))))
        .collect();
    items.extend(notes.iter().take(super::most::NAMED).map(|note| format!("Skipped: {note}")));
    if !items.is_empty() {
        blocks.push(Block::List(items));
    }
    Section { id: "changes", title: "What differs".to_owned(), blocks }
}

fn part(change: &PlanChange) -> String {
    let word = match change.what {
        ChangedPart::Suite => "suite",
        ChangedPart::SuiteDigest => "files of the suite (digest)",
        ChangedPart::Agent => "agent",
        ChangedPart::Simulated => "answers come from",
        ChangedPart::Version => "version of archeflow",
        ChangedPart::Seed => "seed",
        ChangedPart::Repeats => "repeats",
        ChangedPart::ArmDigest => "files of the arm (digest)",
    };
    change.arm.as_ref().map_or_else(|| word.to_owned(), |arm| format!("{word} {arm}"))
}

fn shortened(change: &PlanChange, value: &str) -> String {
    match change.what {
        ChangedPart::SuiteDigest | ChangedPart::ArmDigest => value.chars().take(12).collect(),
        ChangedPart::Suite
        | ChangedPart::Agent
        | ChangedPart::Simulated
        | ChangedPart::Version
        | ChangedPart::Seed
        | ChangedPart::Repeats => value.to_owned(),
    }
}

fn comparisons(found: &EvalDifference, power: f64) -> Option<Section> {
    if found.comparisons.is_empty() {
        return None;
    }
    let measure = words::measure(found.measure);
    let title = format!("Difference in {measure}, B minus A");
    let mut blocks = Vec::new();
    if let Some(svg) = pictures::differences(&found.comparisons, &title) {
        blocks.push(Block::Picture(Picture {
            svg,
            caption: format!(
                "{title}: mean over the tasks of each arm, with its interval. The line is no difference; a dot is filled \
                 only if a winner is named."
            ),
            key: vec![("d-better", "better in B"), ("d-worse", "worse in B"), ("d-open", "no winner")],
        }));
    }
    let rows = found.comparisons.iter().map(|one| {
        let mut row = vec![cell(one.arm.clone())];
        row.extend(comparison_row(one, 1.0 - found.confidence));
        row
    });
    blocks.push(Block::Table(Table {
        caption: title,
        head: comparison_head("Arm", "B minus A"),
        rows: rows.collect(),
        left_out: 0,
        class: "",
    }));
    blocks.push(Block::Text(how_to_read(&found.comparisons, found.confidence, power)));
    blocks.push(Block::List(found.comparisons.iter().take(super::most::NAMED).map(words::power).collect()));
    Some(Section { id: "comparisons", title: format!("B compared with A in {measure}"), blocks })
}

fn hints(found: &EvalDifference) -> Option<Section> {
    let table = hint_table(&found.hints, "B minus A in the other measures".to_owned())?;
    let blocks = vec![Block::Text(HINTS.to_owned()), Block::Table(table)];
    Some(Section { id: "hints", title: "Other measures".to_owned(), blocks })
}
