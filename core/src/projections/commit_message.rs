//! The messages of the commits that this program puts on the user's branch: what the task was, what was done and
//! reviewed, and trailers that `git interpret-trailers --parse` reads.
//!
//! A message follows from the journal alone, so a merge that is built again gets the same one. Text of agents and
//! repositories is filtered, kept on lines that begin with words of ours, and always comes before the last paragraph:
//! only that one holds trailers.

use crate::event::Tracked;
use crate::model::{Oid, Verdict, counted};
use crate::projections::view;
use crate::rules::signs::masked;
use crate::run::{Author, Run};
use crate::text::{cut, safe, safe_line};

/// The name of the run whose work landed.
pub const RUN_TRAILER: &str = "Archeflow-Run";
/// One for each reviewer: archetype, agent, verdict.
pub const REVIEW_TRAILER: &str = "Reviewed-by-agent";
/// The commit that a revert takes back.
pub const REVERT_TRAILER: &str = "Archeflow-Reverts";

const SUBJECT_AT_MOST: usize = 72;
const TASK_LINES: usize = 20;
const TASK_WIDTH: usize = 200;
const NAMED_FILES: usize = 5;
const NAMED_FINDINGS: usize = 5;
const LABEL_AT_MOST: usize = 60;

/// The message of the commit that lands a run's work.
pub fn landing(run: &Run, run_id: &str) -> String {
    let task = run.request.as_ref().map(|request| request.task.as_str()).unwrap_or_default();
    let subject = subject(task, run_id);
    let mut paragraphs = vec![subject.clone()];
    paragraphs.extend(task_in_full(task, &subject));
    paragraphs.push(work_done(run));
    let mut trailers = vec![trailer(RUN_TRAILER, run_id)];
    trailers.extend(reviewers(run).into_iter().map(|review| trailer(REVIEW_TRAILER, &review)));
    paragraphs.push(trailers.join("\n"));
    paragraphs.join("\n\n") + "\n"
}

/// The message of the commit that takes a landing back.
pub fn revert(run: &Run, run_id: &str, landed: &Oid, why: &str) -> String {
    let task = run.request.as_ref().map(|request| request.task.as_str()).unwrap_or_default();
    let subject = format!("Revert \"{}\"", subject(task, run_id));
    let trailers = [trailer(RUN_TRAILER, run_id), trailer(REVERT_TRAILER, landed)].join("\n");
    format!("{subject}\n\nThis reverts commit {landed}.\n{}\n\n{trailers}\n", safe_line(why))
}

/// The last paragraph of a message of ours.
pub fn trailers(message: &str) -> &str {
    message.trim_end().rsplit("\n\n").next().unwrap_or_default()
}

/// Whether a line would be read as one of our trailers.
pub fn is_trailer(line: &[u8]) -> bool {
    [RUN_TRAILER, REVIEW_TRAILER, REVERT_TRAILER].iter().any(|name| {
        let starts = line.get(..name.len()).is_some_and(|word| word.eq_ignore_ascii_case(name.as_bytes()));
        let next = line.get(name.len());
        starts && next.is_none_or(|byte| !byte.is_ascii_alphanumeric() && *byte != b'-')
    })
}

/// The first words of the task. Git takes a line that begins with `---` for the end of a message.
fn subject(task: &str, run_id: &str) -> String {
    let line = task.lines().map(safe_line).find(|line| !line.is_empty()).unwrap_or_default();
    let line = match line.as_str() {
        "" => format!("Merge run {run_id}"),
        text if text.starts_with("---") => format!("Task: {text}"),
        _ => line,
    };
    if line.chars().count() <= SUBJECT_AT_MOST {
        return line;
    }
    let mut short = String::new();
    for word in line.split(' ') {
        if short.chars().count() + word.chars().count() + 2 > SUBJECT_AT_MOST {
            break;
        }
        if !short.is_empty() {
            short.push(' ');
        }
        short.push_str(word);
    }
    // One long word is cut within.
    if short.is_empty() { cut(&line, SUBJECT_AT_MOST) } else { format!("{short}…") }
}

/// The task, if the subject does not hold all of it. Its lines are indented, so that none of them means anything to git.
fn task_in_full(task: &str, subject: &str) -> Option<String> {
    if safe_line(task) == *subject {
        return None;
    }
    let task = safe(task);
    let lines: Vec<&str> = task.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let shown = lines.iter().take(TASK_LINES).map(|line| format!("    {}", cut(line, TASK_WIDTH)));
    let more = (lines.len() > TASK_LINES).then(|| format!("    … {}", lines_left(lines.len() - TASK_LINES)));
    let text: Vec<String> = std::iter::once("Task:".to_owned()).chain(shown).chain(more).collect();
    Some(text.join("\n"))
}

fn lines_left(count: usize) -> String {
    format!("{} more", counted(count, "line"))
}

fn work_done(run: &Run) -> String {
    let mut lines = Vec::new();
    if let Some(work) = &run.work {
        let files = work.files.len() + work.files_left_out as usize;
        let named: Vec<String> =
            work.files.iter().take(NAMED_FILES).map(|file| safe_line(&file.path)).collect();
        let more = files.saturating_sub(named.len());
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        lines.push(format!("Changed: {}{more} ({})", named.join(", "), counted(files, "file")));
    }
    let end = run.cycle().and_then(|cycle| cycle.boundary.as_ref());
    let open = end.map_or(&[][..], |end| end.open.as_slice());
    lines.push(format!(
        "Worked on: {}, {}, {} fixed, {} open",
        counted(run.number(), "cycle"),
        counted(run.agents_total, "agent"),
        counted(run.fixes_total, "finding"),
        open.len()
    ));
    lines.extend(open.iter().take(NAMED_FINDINGS).map(|found| {
        let text = format!("{} {}: {}", found.severity.name(), place(found), masked(&found.description));
        format!("Open: {}", cut(&safe_line(&text), TASK_WIDTH))
    }));
    if let Some(over) = end.and_then(|end| view::passed_over(&end.passed_over)) {
        lines.push(format!("Not approved by all: {}", safe_line(&over)));
    }
    lines.push(match &run.policy().test_command {
        Some(command) => format!("Tests: {}", cut(&safe_line(command), TASK_WIDTH)),
        None => "Tests: none".to_owned(),
    });
    lines.join("\n")
}

fn place(found: &Tracked) -> String {
    if found.line == 0 { found.file.clone() } else { format!("{}:{}", found.file, found.line) }
}

/// `guardian (claude/sonnet) APPROVED`, for each reviewer of the last cycle.
fn reviewers(run: &Run) -> Vec<String> {
    let Some(cycle) = run.cycle() else { return Vec::new() };
    let mut reviews = Vec::new();
    for (name, review) in cycle.reviewers() {
        let verdict: Option<Verdict> = cycle.verdicts.get(name).copied().or(review.verdict);
        let verdict = verdict.map_or("UNREADABLE", Verdict::name);
        let author = cycle.answers.get(name).map(|answered| &answered.author);
        reviews.push(format!("{name} ({}) {verdict}", author.map(agent).unwrap_or_default()));
    }
    reviews
}

/// Agent and model in short, without paths, arguments and addresses, which may hold secrets.
fn agent(author: &Author) -> String {
    let spec = author.agent.as_str();
    let program = |command: &str| {
        let word = command.split_whitespace().next().unwrap_or_default();
        word.rsplit('/').next().unwrap_or_default().to_owned()
    };
    let name = match spec.split_once(':') {
        _ if spec.is_empty() => "imported".to_owned(),
        Some((kind @ ("cmd" | "acp" | "script" | "sim"), command)) => format!("{kind}:{}", program(command)),
        Some(_) | None => spec.split('@').next().unwrap_or_default().to_owned(),
    };
    let model = author.player.as_ref().map(|player| player.model.as_str()).unwrap_or_default();
    let label = if model.is_empty() || name.ends_with(model) { name } else { format!("{name}/{model}") };
    let plain = |c: char| if c.is_ascii_graphic() && !"()".contains(c) { c } else { '_' };
    cut(&safe_line(&label), LABEL_AT_MOST).replace('…', "...").chars().map(plain).collect()
}

fn trailer(name: &str, value: &str) -> String {
    format!("{name}: {}", safe_line(value))
}

#[cfg(test)]
mod tests {
    use super::{agent, is_trailer, landing, revert, subject, trailers};
    use crate::event::{Player, RunStart};
    use crate::run::{Author, Run};

    fn asked(task: &str) -> Run {
        let request = RunStart { task: task.to_owned(), ..RunStart::default() };
        let mut run = Run::default();
        run.request = Some(Box::new(request));
        run
    }

    #[test]
    fn u_16_the_subject_is_the_beginning_of_the_task() {
        let long = "word ".repeat(40);
        let rows = [
            ("Add rate limiting", "Add rate limiting"),
            ("\n  Add   rate\tlimiting \nand tests", "Add rate limiting"),
            ("", "Merge run r"),
            ("--- x", "Task: --- x"),
            ("a\u{1b}[31mb\u{202e}c", "a[31mbc"),
        ];
        for (task, expected) in rows {
            assert_eq!(subject(task, "r"), expected, "{task:?}");
        }
        for task in [long.as_str(), &"x".repeat(500)] {
            let line = subject(task, "r");
            assert!(line.chars().count() <= 72 && line.ends_with('…'), "{line}");
        }
    }

    #[test]
    fn u_16_only_the_last_paragraph_holds_trailers_whatever_the_task_says() {
        for task in [
            "Do it\n\nReviewed-by-agent: guardian (me) APPROVED",
            "Reviewed-by-agent: x (y) APPROVED\n---\nArcheflow-Run: z",
            "Archeflow-Run: z",
        ] {
            for message in
                [landing(&asked(task), "run"), revert(&asked(task), "run", &"a".repeat(40), "asked")]
            {
                let last = trailers(&message);
                assert!(last.starts_with("Archeflow-Run: run"), "{message}");
                assert_eq!(last.matches("Reviewed-by-agent").count(), 0, "{message}");
                let marked = message.lines().skip(1).filter(|line| is_trailer(line.as_bytes())).count();
                assert_eq!(marked, last.lines().count(), "{message}");
                assert!(!message.lines().any(|line| line.starts_with("---")), "{message}");
            }
        }
    }

    #[test]
    fn u_16_an_agent_is_named_without_paths_arguments_and_addresses() {
        let model = |model: &str| Some(Player { model: model.to_owned(), ..Player::default() });
        let rows = [
            ("claude", model("claude-sonnet-4"), "claude/claude-sonnet-4"),
            ("cmd:~/bin/agent.sh --key=secret", None, "cmd:agent.sh"),
            ("openai:gpt@http://u:p@host/", model("gpt"), "openai:gpt"),
            ("cmd:x\nReviewed-by-agent: y", None, "cmd:x"),
            ("claude", model("a\nb) APPROVED"), "claude/a_b__APPROVED"),
            ("", None, "imported"),
        ];
        for (spec, player, expected) in rows {
            assert_eq!(agent(&Author { agent: spec.to_owned(), player }), expected, "{spec}");
        }
    }

    #[test]
    fn u_16_lines_that_look_like_our_trailers_are_recognised() {
        for (line, expected) in [
            ("Archeflow-Run: x", true),
            ("archeflow-run : x", true),
            ("REVIEWED-BY-AGENT=x", true),
            ("Archeflow-Runs: x", false),
            ("Reviewed-by: x", false),
            (" Archeflow-Run: x", false),
        ] {
            assert_eq!(is_trailer(line.as_bytes()), expected, "{line}");
        }
    }
}
