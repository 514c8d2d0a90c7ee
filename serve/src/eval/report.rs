//! One evaluation as a document.

use archeflow_core::eval::report::{ArmReport, TaskCell, TrapCell};
use archeflow_core::eval::{
    ArmConclusion, Bounds, EvalMeasure, EvalPlan, EvalReport, PairedComparison, TrialOutcome,
};

use super::document::{
    Block, Cell, Document, Picture, Section, Table, cell, cell_with, number, words as column,
};
use super::{most, pictures, words};

pub(super) const SIMULATED: &str = "Simulated agents: this says nothing about a model.";

const RATES: [EvalMeasure; 6] = [
    EvalMeasure::Solved,
    EvalMeasure::WronglyLanded,
    EvalMeasure::RightlyHeldBack,
    EvalMeasure::WronglyHeldBack,
    EvalMeasure::Failed,
    EvalMeasure::Trapped,
];

const AMOUNTS: [EvalMeasure; 5] = [
    EvalMeasure::Cycles,
    EvalMeasure::Tokens,
    EvalMeasure::Dollars,
    EvalMeasure::Minutes,
    EvalMeasure::Decisions,
];

/// `started` is the moment in the plan as people write it; `notes` is what was skipped in the folder.
pub fn document(report: &EvalReport, started: &str, notes: &[String]) -> Document {
    let plan = &report.plan;
    let mut warnings = Vec::new();
    if plan.simulated {
        warnings.push(SIMULATED.to_owned());
    }
    if (report.done as u64) < report.planned {
        warnings.push(format!(
            "Not finished: {} of {} trials are done. Figures change until the last one has ended.",
            report.done, report.planned
        ));
    }
    Document {
        eyebrow: "ArcheFlow evaluation".to_owned(),
        title: format!("Evaluation of {} on {}", plan.agent, plan.suite),
        lead: lead(report),
        warnings,
        facts: facts(report, started),
        sections: [
            Some(about(report, notes)),
            Some(outcomes(report)),
            comparisons(report),
            Some(costs(report)),
            reviewers(report),
            Some(tasks(report)),
            traps(report),
            incomplete(report),
            hints(report),
        ]
        .into_iter()
        .flatten()
        .collect(),
        foot: format!(
            "Made by archeflow eval report from eval.json and trials.jsonl. Intervals have a confidence of {}. \
             Repeats of a task are averaged first: the tasks are the sample, not the trials.",
            words::percent(report.confidence)
        ),
    }
}

/// The conclusion about all arms.
fn lead(report: &EvalReport) -> String {
    if report.comparisons.is_empty() {
        return "There is one arm only, so nothing is compared.".to_owned();
    }
    conclusions(&report.comparisons, &format!("than {}", report.baseline), words::measure(report.measure))
}

/// Which are better, which worse, and for which nothing is shown.
pub(super) fn conclusions(comparisons: &[PairedComparison], than: &str, measure: &str) -> String {
    let named = |wanted: fn(&ArmConclusion) -> bool| -> Vec<&str> {
        comparisons.iter().filter(|one| wanted(&one.conclusion)).map(|one| one.arm.as_str()).collect()
    };
    let better = named(|one| matches!(one, ArmConclusion::Better));
    let worse = named(|one| matches!(one, ArmConclusion::Worse));
    let open = named(|one| matches!(one, ArmConclusion::Undecided { .. }));
    let mut parts = Vec::new();
    for (word, arms) in [("Better", &better), ("Worse", &worse)] {
        if !arms.is_empty() {
            parts.push(format!("{word} {than} in {measure}: {}.", words::names(arms.iter().copied())));
        }
    }
    if better.is_empty() && worse.is_empty() {
        parts.push(format!("No winner is named: no arm is shown to be better or worse {than} in {measure}."));
    } else if !open.is_empty() {
        parts.push(format!("No winner is named for {}.", words::names(open)));
    }
    parts.join(" ")
}

fn facts(report: &EvalReport, started: &str) -> Vec<(&'static str, String, String)> {
    let plan = &report.plan;
    let digest: String = plan.suite_digest.chars().take(12).collect();
    let repeats = words::count(plan.repeats as usize, "repeat");
    let spent: u64 = report
        .arms
        .iter()
        .filter_map(|arm| Some((arm.measures.figures.get(&EvalMeasure::Dollars)?.mean, arm.measures.trials)))
        .map(|(mean, trials)| (mean * trials as f64 * 1e6) as u64)
        .fold(0, u64::saturating_add);
    let budget = plan
        .budget
        .map(|budget| format!("budget {}", words::figure(EvalMeasure::Dollars, budget.0 as f64 / 1e6)));
    vec![
        ("Suite", plan.suite.clone(), format!("digest {digest}")),
        ("Agent", plan.agent.clone(), kind_of_agents(plan).to_owned()),
        ("Started", started.to_owned(), format!("archeflow {}", plan.version)),
        ("Trials", format!("{} of {}", report.done, report.planned), "done of planned".to_owned()),
        ("Tasks", plan.tasks.len().to_string(), repeats),
        ("Arms", plan.arms.len().to_string(), format!("baseline {}", report.baseline)),
        ("Decides", words::measure(report.measure).to_owned(), "the other measures are hints".to_owned()),
        (
            if plan.simulated { "Simulated cost, about" } else { "Cost, about" },
            words::figure(EvalMeasure::Dollars, spent as f64 / 1e6),
            budget.unwrap_or_else(|| format!("seed {}", plan.seed)),
        ),
    ]
}

fn section(id: &'static str, title: &str, blocks: Vec<Block>) -> Section {
    Section { id, title: title.to_owned(), blocks }
}

fn about(report: &EvalReport, notes: &[String]) -> Section {
    let plan = &report.plan;
    let mut blocks = Vec::new();
    if !plan.about.is_empty() {
        blocks.push(Block::Text(plan.about.clone()));
    }
    let rows = report.arms.iter().map(|arm| {
        let name = arm.measures.arm.clone();
        let is_baseline = if name == report.baseline { "baseline" } else { "" };
        vec![cell_with(name, is_baseline), cell(arm.about.clone()), cell(arm.measures.trials.to_string())]
    });
    blocks.push(Block::Table(Table {
        caption: "Arms: the configurations that were compared".to_owned(),
        head: vec![column("Arm"), column("Description"), number("Trials")],
        rows: rows.collect(),
        left_out: 0,
        class: "about",
    }));
    if !notes.is_empty() {
        blocks.push(Block::Text("Skipped in the folder:".to_owned()));
        blocks.push(Block::List(notes.iter().take(most::NAMED).cloned().collect()));
    }
    section("about", "What was evaluated", blocks)
}

fn rate_and_interval(arm: &ArmReport, measure: EvalMeasure) -> Cell {
    match arm.measures.figures.get(&measure) {
        Some(found) => {
            cell_with(words::figure(measure, found.mean), words::interval(measure, found.interval))
        }
        None => cell(words::NOTHING),
    }
}

fn outcomes(report: &EvalReport) -> Section {
    let mut blocks = Vec::new();
    if let Some(svg) = pictures::outcomes(&report.arms) {
        let key = TrialOutcome::ALL.map(|one| (pictures::outcome_class(one), words::outcome(one)));
        blocks.push(Block::Picture(Picture {
            svg,
            caption: "Trials of each arm by outcome. Solved: landed, and the hidden tests pass. Wrongly landed: landed, \
                      and they fail. Held back: the run kept its work from the branch, rightly if the hidden tests fail \
                      on it, else wrongly."
                .to_owned(),
            key: key.to_vec(),
        }));
    }
    let mut head = vec![column("Arm")];
    head.extend(RATES.map(|measure| number(words::measure(measure))));
    head.push(number("unmeasured"));
    let rows = report.arms.iter().map(|arm| {
        let mut row = vec![cell(arm.measures.arm.clone())];
        row.extend(RATES.map(|measure| rate_and_interval(arm, measure)));
        row.push(cell(arm.measures.unmeasured.to_string()));
        row
    });
    blocks.push(Block::Table(Table {
        caption: format!(
            "Share of the tasks with each outcome, with intervals of {}. Trapped: fell into a trap, of the tasks that \
             have one. Unmeasured: trials whose hidden tests could not be run; they count in no share.",
            words::percent(report.confidence)
        ),
        head,
        rows: rows.collect(),
        left_out: 0,
        class: "",
    }));
    section("outcomes", "Outcomes", blocks)
}

fn costs(report: &EvalReport) -> Section {
    let mut head = vec![column("Arm")];
    head.extend(AMOUNTS.map(|measure| number(words::measure(measure))));
    let rows = report.arms.iter().map(|arm| {
        let mut row = vec![cell(arm.measures.arm.clone())];
        row.extend(AMOUNTS.map(|measure| rate_and_interval(arm, measure)));
        row
    });
    let mut blocks = Vec::new();
    if let Some((cost, svg)) = pictures::cost(&report.arms) {
        let caption = format!(
            "Share of the tasks that each arm solved against its mean {} per trial. Up and to the left is better. \
             The lines are the intervals of the share.",
            words::measure(cost)
        );
        blocks.push(Block::Picture(Picture { svg, caption, key: Vec::new() }));
    }
    blocks.push(Block::Table(Table {
        caption: "Mean per trial, with its interval. Tokens include what came from a cache; decisions are those asked of \
                  people."
            .to_owned(),
        head,
        rows: rows.collect(),
        left_out: 0,
        class: "",
    }));
    section("costs", "Cost and effort", blocks)
}

/// A row of figures about one comparison.
pub(super) fn comparison_row(one: &PairedComparison, alpha: f64) -> Vec<Cell> {
    let (verdict, class) = words::verdict(&one.conclusion);
    let least = words::visible_difference(one).unwrap_or_else(|| words::NOTHING.to_owned());
    let tasks = if one.unpaired > 0 { format!("{} not on both sides", one.unpaired) } else { String::new() };
    vec![
        cell_with(one.tasks.to_string(), tasks),
        cell_with(
            one.mean_difference
                .map_or_else(|| words::NOTHING.to_owned(), |mean| words::signed(one.measure, mean)),
            if one.interval.is_some() {
                words::signed_interval(one.measure, one.interval)
            } else {
                String::new()
            },
        ),
        cell(words::chance(one.test.p)),
        cell(words::chance(one.p_corrected)),
        cell(least),
        Cell {
            text: verdict.to_owned(),
            more: words::reasons(one, alpha),
            class: match class {
                "good" => "because good",
                "bad" => "because bad",
                _ => "because quiet",
            },
        },
    ]
}

pub(super) fn comparison_head(first: &str, difference: &str) -> Vec<super::document::Head> {
    vec![
        column(first),
        number("Tasks"),
        number(difference),
        number("Exact p"),
        number("Corrected p"),
        number("Detectable"),
        column("Conclusion"),
    ]
}

/// How to read a table of comparisons.
pub(super) fn how_to_read(comparisons: &[PairedComparison], confidence: f64, power: f64) -> String {
    let Some(first) = comparisons.first() else { return String::new() };
    format!(
        "Paired by task. p is how often chance alone gives a difference like this ({}), corrected for {} after Holm. A \
         winner is named only if the interval of {} excludes 0 and the corrected p is below {}. Detectable is the \
         smallest true difference that is found with a chance of {}.",
        words::test(first.test.test),
        words::count(first.comparisons, "comparison"),
        words::percent(confidence),
        words::short(1.0 - confidence),
        words::percent(power),
    )
}

fn comparisons(report: &EvalReport) -> Option<Section> {
    if report.comparisons.is_empty() {
        return None;
    }
    let alpha = 1.0 - report.confidence;
    let measure = words::measure(report.measure);
    let mut blocks = Vec::new();
    let title = format!("Difference to {} in {measure}", report.baseline);
    if let Some(svg) = pictures::differences(&report.comparisons, &title) {
        blocks.push(Block::Picture(Picture {
            svg,
            caption: format!(
                "{title}: mean over the tasks, with its interval. The line is no difference; a dot is filled only if a \
                 winner is named."
            ),
            key: vec![("d-better", "better"), ("d-worse", "worse"), ("d-open", "no winner")],
        }));
    }
    let rows = report.comparisons.iter().map(|one| {
        let mut row = vec![cell(one.arm.clone())];
        row.extend(comparison_row(one, alpha));
        row
    });
    blocks.push(Block::Table(Table {
        caption: format!("Each arm minus {}, in {measure}", report.baseline),
        head: comparison_head("Arm", "Difference"),
        rows: rows.collect(),
        left_out: 0,
        class: "",
    }));
    blocks.push(Block::Text(how_to_read(&report.comparisons, report.confidence, report.power)));
    blocks.push(Block::Text("What these tasks can show:".to_owned()));
    blocks.push(Block::List(report.comparisons.iter().take(most::NAMED).map(words::power).collect()));
    let mut compared = section("comparisons", "", blocks);
    compared.title = format!("Compared with {}", report.baseline);
    Some(compared)
}

fn reviewers(report: &EvalReport) -> Option<Section> {
    let share = |share: Option<f64>, interval: Option<Bounds>| match share {
        Some(share) => {
            let measure = EvalMeasure::Solved;
            cell_with(words::figure(measure, share), words::interval(measure, interval))
        }
        None => cell(words::NOTHING),
    };
    let mut rows: Vec<Vec<Cell>> = Vec::new();
    for arm in &report.arms {
        for (reviewer, found) in &arm.measures.reviewers {
            rows.push(vec![
                cell(arm.measures.arm.clone()),
                cell(reviewer.clone()),
                cell(found.confirmed.to_string()),
                cell(found.refuted.to_string()),
                cell(found.missed.to_string()),
                share(found.precision, found.precision_interval),
                share(found.recall, found.recall_interval),
            ]);
        }
    }
    if rows.is_empty() {
        return None;
    }
    let left_out = rows.len().saturating_sub(most::ROWS);
    rows.truncate(most::ROWS);
    let table = Table {
        caption: "Findings of each reviewer. Precision: the share of its findings that name a real flaw. Recall: the share \
                  of the flaws it was shown that it found. Intervals are over tasks."
            .to_owned(),
        head: vec![
            column("Arm"),
            column("Reviewer"),
            number("Confirmed"),
            number("Refuted"),
            number("Missed"),
            number("Precision"),
            number("Recall"),
        ],
        rows,
        left_out,
        class: "",
    };
    Some(section("reviewers", "Reviewers", vec![Block::Table(table)]))
}

fn arm_columns(report: &EvalReport, first: &str) -> Vec<super::document::Head> {
    let mut head = vec![column(first)];
    head.extend(report.arms.iter().map(|arm| column(arm.measures.arm.clone())));
    head
}

fn tasks(report: &EvalReport) -> Section {
    let planned = report.plan.repeats;
    let shown = |found: &TaskCell| {
        let measured = found.trials.saturating_sub(found.unmeasured);
        if measured == 0 {
            return Cell { text: words::NOTHING.to_owned(), more: String::new(), class: "none" };
        }
        let class = match (f64::from(found.solved) * 4.0 / f64::from(measured)).ceil() as u32 {
            0 => "h0",
            1 => "h1",
            2 => "h2",
            3 => "h3",
            _ => "h4",
        };
        let missing = if measured < planned { "incomplete" } else { "" };
        Cell { text: format!("{} of {measured}", found.solved), more: missing.to_owned(), class }
    };
    let rows = report.tasks.iter().take(most::TASKS).map(|task| {
        let mut row = vec![cell_with(task.name.clone(), task.language.clone().unwrap_or_default())];
        row.extend(task.arms.iter().map(shown));
        row
    });
    let table = Table {
        caption: "Trials that solved the task, of those measured. The darker the cell, the more were solved."
            .to_owned(),
        head: arm_columns(report, "Task"),
        rows: rows.collect(),
        left_out: report.tasks.len().saturating_sub(most::TASKS),
        class: "heat",
    };
    section("tasks", "Tasks", vec![Block::Table(table)])
}

fn traps(report: &EvalReport) -> Option<Section> {
    let shown = |found: &TrapCell| {
        if found.trials == 0 {
            return Cell { text: words::NOTHING.to_owned(), more: String::new(), class: "none" };
        }
        let class = match (f64::from(found.fallen) * 3.0 / f64::from(found.trials)).ceil() as u32 {
            0 => "h0",
            1 => "f1",
            2 => "f2",
            _ => "f3",
        };
        Cell { text: format!("{} of {}", found.fallen, found.trials), more: String::new(), class }
    };
    let mut rows: Vec<Vec<Cell>> = Vec::new();
    for task in &report.tasks {
        for trap in &task.traps {
            let mut row = vec![cell_with(task.name.clone(), trap.trap.clone())];
            row.extend(trap.arms.iter().map(shown));
            rows.push(row);
        }
    }
    if rows.is_empty() {
        return None;
    }
    let left_out = rows.len().saturating_sub(most::ROWS);
    rows.truncate(most::ROWS);
    let table = Table {
        caption: "Trials that fell into the trap, of those that met it.".to_owned(),
        head: arm_columns(report, "Task and trap"),
        rows,
        left_out,
        class: "heat",
    };
    Some(section("traps", "Traps", vec![Block::Table(table)]))
}

fn incomplete(report: &EvalReport) -> Option<Section> {
    if report.incomplete.is_empty() {
        return None;
    }
    let rows = report.incomplete.iter().take(most::ROWS).map(|one| {
        vec![
            cell(one.task.clone()),
            cell(one.arm.clone()),
            cell(format!("{} of {}", one.done, one.planned)),
            cell(one.unmeasured.to_string()),
        ]
    });
    let table = Table {
        caption: "Tasks that lack trials or results in an arm. A task without results in one of two arms is left out of \
                  their comparison."
            .to_owned(),
        head: vec![column("Task"), column("Arm"), number("Trials done"), number("Unmeasured")],
        rows: rows.collect(),
        left_out: report.incomplete.len().saturating_sub(most::ROWS),
        class: "narrow",
    };
    Some(section("incomplete", "Incomplete tasks", vec![Block::Table(table)]))
}

fn hints(report: &EvalReport) -> Option<Section> {
    let table =
        hint_table(&report.hints, format!("Each arm minus {}, in the other measures", report.baseline))?;
    Some(section("hints", "Other measures", vec![Block::Text(HINTS.to_owned()), Block::Table(table)]))
}

pub(super) const HINTS: &str = "These are hints. The correction is over arms and not over measures, so of many measures one \
                                may differ by chance. To decide by one of them, choose it before the evaluation.";

/// Differences in all measures, a row per arm and a column per measure.
pub(super) fn hint_table(hints: &[PairedComparison], caption: String) -> Option<Table> {
    let measures: Vec<EvalMeasure> = EvalMeasure::ALL
        .into_iter()
        .filter(|measure| hints.iter().any(|one| one.measure == *measure))
        .collect();
    let mut arms: Vec<&str> = Vec::new();
    for one in hints {
        if !arms.contains(&one.arm.as_str()) {
            arms.push(&one.arm);
        }
    }
    if arms.is_empty() {
        return None;
    }
    let mut rows = Vec::new();
    for arm in arms {
        for measure in &measures {
            if let Some(one) = hints.iter().find(|one| one.arm == arm && one.measure == *measure) {
                rows.push(vec![
                    cell(arm),
                    cell(words::measure(*measure)),
                    cell_with(
                        one.mean_difference.map_or_else(String::new, |mean| words::signed(*measure, mean)),
                        one.interval.map_or_else(String::new, |bounds| {
                            words::signed_interval(*measure, Some(bounds))
                        }),
                    ),
                    cell(words::chance(one.test.p)),
                    cell(words::chance(one.p_corrected)),
                    cell(one.tasks.to_string()),
                ]);
            }
        }
    }
    let left_out = rows.len().saturating_sub(most::ROWS);
    rows.truncate(most::ROWS);
    Some(Table {
        caption,
        head: vec![
            column("Arm"),
            column("Measure"),
            number("Difference"),
            number("Exact p"),
            number("Corrected p"),
            number("Tasks"),
        ],
        rows,
        left_out,
        class: "",
    })
}

fn kind_of_agents(plan: &EvalPlan) -> &'static str {
    match (plan.simulated, plan.rules_only) {
        (true, true) => "simulated; rules only, in memory",
        (true, false) => "simulated",
        (false, _) => "",
    }
}
