//! What the rules cost: shadows, budget and memory, in the step after a long review.

use std::collections::BTreeMap;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use archeflow_core::event::{AgentComplete, AgentStart, Decision, Event, Order, Past, Report, RunStart};
use archeflow_core::model::{
    AnswerBody, Change, ChangedFile, FileStatus, Lesson, LessonKind, Money, Resolved, Role, Seq, Shadow,
};
use archeflow_core::read;
use archeflow_core::run::Run;

use super::storage::{self, MadeUp};
use super::{Goal, Row, Rows, ms};

const BYTES: usize = 200_000;
const FINDINGS: usize = 100;
const FILES: usize = 40;
const LESSONS: usize = 10;
/// Cycles that are over before the one that is measured.
const CYCLES: u32 = 2;
const TRIES: u32 = 300;
/// What all rules together may add to a step.
const MOST: f64 = 0.2;

pub(super) fn measure(_: &super::Bench) -> Rows {
    let text = review();
    let (with, without) = (Step::before(true, &text)?, Step::before(false, &text)?);
    with.goes_on_like(&without)?;
    let (mut on, mut off) = (Duration::MAX, Duration::MAX);
    for _ in 0..TRIES {
        on = on.min(with.take().0);
        off = off.min(without.take().0);
    }
    let reading = looked_at(Role::Reviewer, &text);
    let deciding = on.saturating_sub(off);
    let mut rows = vec![
        row("rules of a step, 100 findings", ms(reading + deciding), Goal::AtMost(MOST)),
        row("  of which traits of a 200 kB review", ms(reading), Goal::None),
        row("  of which deciding", ms(deciding), Goal::None),
        row("  the same step without rules", ms(off), Goal::None),
        row("  reading the whole answer", ms(read_whole(&text)), Goal::None),
    ];
    for (role, name) in [(Role::Explorer, "Explorer"), (Role::Creator, "Creator"), (Role::Maker, "Maker")] {
        let what = format!("traits of a 200 kB answer, {name}");
        rows.push(row(&what, ms(looked_at(role, &text)), Goal::None));
    }
    Ok(rows)
}

/// Reads the long review this many times.
pub(super) fn read_answers(times: u32) {
    let text = review();
    for _ in 0..times {
        std::hint::black_box(read::answer(Role::Reviewer, "sage", text.as_bytes()));
    }
}

/// Takes the measured step this many times.
pub(super) fn take_steps(times: u32) -> Result<(), Box<dyn std::error::Error>> {
    let step = Step::before(true, &review())?;
    for _ in 0..times {
        std::hint::black_box(step.take());
    }
    Ok(())
}

fn row(what: &str, ours: f64, goal: Goal) -> Row {
    Row { what: what.to_owned(), floor: None, ours, unit: "ms", goal }
}

/// The time it takes to count what an answer is like, without reading it.
fn looked_at(role: Role, text: &str) -> Duration {
    let read = read::Untold::new(role, "sage", text);
    shortest(|| read.traits())
}

fn read_whole(text: &str) -> Duration {
    shortest(|| read::answer(Role::Reviewer, "sage", text.as_bytes()))
}

fn shortest<T>(mut act: impl FnMut() -> T) -> Duration {
    let once = |act: &mut dyn FnMut() -> T| {
        let begun = Instant::now();
        std::hint::black_box(act());
        begun.elapsed()
    };
    (0..TRIES).map(|_| once(&mut act)).min().unwrap_or_default()
}

/// A run that waits for its last reviewer, and that reviewer's answer.
struct Step {
    run: Run,
    report: AgentComplete,
}

impl Step {
    fn before(rules: bool, text: &str) -> Result<Step, Box<dyn std::error::Error>> {
        let made_up = MadeUp { failures: 0, endless: true };
        let mut run = Run::default();
        run.hear(0, request(rules));
        run.hear(0, storage::session());
        loop {
            run.settle(0);
            let orders: Vec<(Seq, Order)> =
                run.open.iter().map(|(seq, order)| (*seq, order.clone())).collect();
            if run.outcome.is_some() || orders.is_empty() {
                return Err(format!("the made-up run ends too early: {:?}", run.outcome).into());
            }
            for (seq, order) in orders {
                let Some(mut report) = made_up.answer(seq, &order) else { continue };
                match (&order, &mut report) {
                    // The last of those who work side by side is the one to wait for.
                    (Order::AgentStart(start), _)
                        if run.number() > CYCLES && start.role == Role::Reviewer && run.open.len() == 1 =>
                    {
                        let report = long(made_up.done(seq, start), start, text);
                        return Ok(Step { run, report });
                    }
                    (Order::AgentStart(start), Report::AgentComplete(complete)) => {
                        complete.duration_ms = 40_000;
                        complete.change = complete.change.take().map(wide);
                        complete.estimated_cost_usd = Money::parse("0.05");
                        complete.answer.traits.test_run = start.role == Role::Maker;
                        fill(&mut complete.answer.said, start.cycle);
                    }
                    (_, _) => {}
                }
                run.hear(0, report);
            }
        }
    }

    fn take(&self) -> (Duration, Vec<String>) {
        let (mut run, report) = (self.run.clone(), self.report.clone());
        let begun = Instant::now();
        let heard = run.hear(0, report);
        let entries = run.settle(0);
        let took = begun.elapsed();
        drop(heard);
        (took, entries.iter().map(|entry| comparable_text(&entry.event)).collect())
    }

    /// Both have to do the same work, or the difference says nothing about the rules.
    fn goes_on_like(&self, other: &Step) -> Result<(), String> {
        let findings = match &self.report.answer.said {
            AnswerBody::Review(review) => review.findings.len(),
            AnswerBody::Prose | AnswerBody::Proposal(_) => 0,
        };
        if findings != FINDINGS {
            return Err(format!("the review has {findings} findings instead of {FINDINGS}"));
        }
        let (with, without) = (self.take().1, other.take().1);
        if with == without {
            return Ok(());
        }
        Err(format!("with rules the step goes on differently: {with:?} against {without:?}"))
    }
}

/// What a line says as far as rules may change it.
fn comparable_text(event: &Event) -> String {
    if let Event::Decision(Decision::ShadowDetected(seen)) = event {
        return format!("{}: {}", seen.archetype, seen.detail);
    }
    event.name().to_owned()
}

/// A plan that lists every file, and findings that show what they claim: no agent is in a shadow here.
fn fill(said: &mut AnswerBody, cycle: u32) {
    match said {
        AnswerBody::Prose => {}
        AnswerBody::Proposal(proposal) => proposal.files = (0..FILES).map(path).collect(),
        AnswerBody::Review(review) => {
            for finding in &mut review.findings {
                finding.file = path(cycle as usize);
                finding.location = format!("{}:10", finding.file);
                finding.evidence = "Line 10: `let total = sum(&parts);`".to_owned();
                finding.citations.iter_mut().for_each(|citation| citation.file.clone_from(&finding.file));
            }
        }
    }
}

/// A report with the long review in it, its citations looked up.
fn long(report: AgentComplete, start: &AgentStart, text: &str) -> AgentComplete {
    let mut answer = read::answer(Role::Reviewer, &start.archetype, text.as_bytes());
    if let AnswerBody::Review(review) = &mut answer.said {
        let citations = review.findings.iter_mut().flat_map(|finding| &mut finding.citations);
        citations.for_each(|citation| citation.holds = Some(true));
    }
    AgentComplete { answer, duration_ms: 90_000, ..report }
}

fn wide(change: Change) -> Change {
    let file = |n: usize| ChangedFile {
        path: path(n),
        status: FileStatus::Modified,
        added: 300,
        deleted: 40,
        content: String::new(),
    };
    Change { files: (0..FILES).map(file).collect(), test_files: 4, commits: 8, ..change }
}

fn request(rules: bool) -> RunStart {
    let mut request = storage::request();
    request.config.shadows.enabled = rules;
    if !rules {
        return request;
    }
    let named = ["explorer", "creator", "maker", "guardian", "skeptic", "trickster", "sage"];
    request.shadows =
        named.into_iter().map(str::to_owned).zip(Shadow::ALL.iter().map(|shadow| (*shadow).into())).collect();
    request.config.costs.budget_usd = Money::parse("500");
    request.config.costs.daily_usd = Money::parse("900");
    let mut words = Words(7);
    let lesson = |n: usize| lesson(n, words.strange(18));
    let lessons: Vec<Lesson> = (1..=LESSONS).map(lesson).collect();
    let told = lessons.iter().map(|lesson| lesson.id.clone()).collect();
    request.past = Past {
        resolved: (0..LESSONS).map(|n| resolved(n, words.strange(40))).collect(),
        told: BTreeMap::from([("sage".to_owned(), told)]),
        lessons,
        ..Past::default()
    };
    request
}

fn lesson(n: usize, description: String) -> Lesson {
    Lesson {
        id: format!("m-{n:03}"),
        ts: String::new(),
        run_id: "manual".to_owned(),
        kind: LessonKind::Pattern,
        source: "guardian".to_owned(),
        description,
        frequency: 3,
        severity: "WARNING".to_owned(),
        domain: "code".to_owned(),
        tags: Vec::new(),
        archetype: None,
        last_seen_run: String::new(),
        runs_since_last_seen: 0,
        ineffective: 0,
    }
}

fn resolved(n: usize, description: String) -> Resolved {
    let category = CATEGORIES.get(n % CATEGORIES.len()).copied().unwrap_or_default().to_owned();
    Resolved { run_id: format!("run-{n}"), file: path(n), line: 10, category, description }
}

fn path(n: usize) -> String {
    let folders = ["http", "store", "queue", "config", "report"];
    format!("src/{}/part{n:02}.rs", folders.get(n % folders.len()).copied().unwrap_or_default())
}

const CATEGORIES: [&str; 4] = ["reliability", "quality", "testing", "security"];

/// A review of N bytes: a part about each file, with prose and shown code, then the table of findings.
fn review() -> String {
    let mut words = Words(1);
    let mut table = "| Location | Severity | Category | Description | Fix | Evidence |\n\
                     |---|---|---|---|---|---|\n"
        .to_owned();
    for n in 0..FINDINGS {
        let (file, line) = (path(n % FILES), 10 + n * 3);
        let category = CATEGORIES.get(n % CATEGORIES.len()).copied().unwrap_or_default();
        let severity = if n % 3 == 0 { "INFO" } else { "WARNING" };
        let (description, fix) = (words.some(75), words.some(35));
        let (name, other) = (words.one(), words.one());
        table += &format!(
            "| {file}:{line} | {severity} | {category} | {description}. | Change it so that {fix}. | Line {line}: \
             `let {name} = {other}(&{name}, {n});` |\n"
        );
    }
    let mut text = String::new();
    for part in (0..FILES).cycle() {
        if text.len() + table.len() > BYTES {
            break;
        }
        let file = path(part);
        text += &format!("## {} in {file}\n\n", words.some(3));
        for _ in 0..4 {
            text += &format!("{}. See `{}` in {file}:{part}.\n", words.some(14), words.one());
        }
        text += &format!("\n- {}\n- {}\n\n", words.some(12), words.some(9));
        text += &format!("```rust\nfn {}() {{\n    {}();\n}}\n```\n\n", words.one(), words.one());
    }
    format!("{text}VERDICT: REJECTED\nFINDINGS: {FINDINGS}\n\n{table}\nSTATUS: DONE\n")
}

/// Words one after another, always the same and never in the same order.
struct Words(u64);

impl Words {
    const KNOWN: &str = "the a that which when after before while where under over with without from into between \
        request response handler queue worker buffer reader writer parser token header value field record \
        table column index cursor session cookie timeout retry limit counter clock timer thread channel \
        lock guard mutex socket stream packet frame block chunk offset length capacity bound check branch \
        loop call caller callee argument result error message warning trace span level logger format \
        string byte letter number total sum average ratio percent threshold window range edge corner case \
        drops keeps loses copies moves reads writes sends takes gives holds waits blocks wakes sleeps ends \
        begins closes leaves enters counts skips misses repeats grows shrinks overflows wraps rounds \
        empty full stale fresh slow quick early late wrong right missing double single nested hidden open \
        partial silent noisy large small long short first second last next other same different shared \
        configuration environment installation migration transaction connection subscription permission \
        customer invoice payment address country currency language calendar holiday schedule shipment";

    fn one(&mut self) -> &'static str {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        static KNOWN: LazyLock<Vec<&str>> = LazyLock::new(|| Words::KNOWN.split_whitespace().collect());
        let at = usize::try_from(self.0 >> 40).unwrap_or(0) % KNOWN.len();
        KNOWN.get(at).copied().unwrap_or_default()
    }

    fn some(&mut self, count: usize) -> String {
        let words: Vec<&str> = (0..count).map(|_| self.one()).collect();
        words.join(" ")
    }

    /// Mostly words that no finding has, so that nothing comes back.
    fn strange(&mut self, count: usize) -> String {
        let backwards: String = self.some(count * 3 / 4).chars().rev().collect();
        format!("{} {backwards}", self.some(count / 4))
    }
}
