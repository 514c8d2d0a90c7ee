//! Transcripts below findings (M-01): a command with its output or a test result in a fence, outside of the table. It is
//! evidence of the finding it speaks about.
//!
//! A single finding is that one. Among several, the text above the fence and the transcript itself name it: by its
//! number, its file and line, a name of code, or its file. No transcript is evidence of two findings: where two are
//! named alike it is evidence of none.

use std::collections::BTreeSet;

use super::draft::MAX_CELL;
use super::lines::{self, LineKind, TextLine};
use super::text::{cap, head, tail};
use super::{review, sections, status, table};
use crate::model::Finding;
use crate::rules::{evidence, identity};

/// Lines above a fence that may say what it is about.
const MAX_CAPTION: usize = 12;

const BY_NUMBER: u32 = 8;
const BY_LINE: u32 = 4;
const BY_NAME: u32 = 2;
const BY_FILE: u32 = 2;
const BY_WHOLE_PATH: u32 = 1;

/// Values that every program has: no names of something in particular.
const VALUES: [&str; 8] = ["none", "null", "nil", "true", "false", "self", "this", "undefined"];

/// Adds transcripts to the evidence of the findings they are about. `fences` are the lines that open them.
pub(super) fn attach(lines: &[TextLine], fences: &[usize], findings: &mut [Finding]) {
    for open in fences {
        let Some(transcript) = transcript(lines, *open) else { continue };
        let Some(index) = subject(lines, *open, &transcript, findings) else { continue };
        let Some(finding) = findings.get_mut(index) else { continue };
        let before = std::mem::take(&mut finding.evidence);
        let both = if before.is_empty() { transcript } else { format!("{before}\n{transcript}") };
        finding.evidence = cap(&both, MAX_CELL);
    }
}

/// The content of a fence that shows output.
fn transcript(lines: &[TextLine], open: usize) -> Option<String> {
    let info = lines::info(lines.get(open)?.text);
    let of_output = matches!(
        info.as_str(),
        "" | "text"
            | "txt"
            | "plaintext"
            | "console"
            | "terminal"
            | "output"
            | "log"
            | "sh"
            | "shell"
            | "bash"
            | "shell-session"
            | "pycon"
    );
    let body = lines.iter().skip(open + 1).take_while(|line| line.kind == LineKind::Fenced);
    let text = body.map(|line| line.text.trim_end()).collect::<Vec<_>>().join("\n");
    (of_output && evidence::is_transcript(&text)).then_some(text)
}

/// The finding that a transcript is about.
fn subject(lines: &[TextLine], open: usize, transcript: &str, findings: &[Finding]) -> Option<usize> {
    let near = caption(lines, open, false);
    let wide = caption(lines, open, true);
    let mut numbers = numbers(&near);
    if numbers.is_empty() {
        numbers = self::numbers(&wide);
    }
    if numbers.iter().any(|number| *number == 0 || *number > findings.len()) {
        return None;
    }
    for text in [format!("{near}\n{transcript}"), format!("{wide}\n{transcript}")] {
        let points: Vec<u32> = findings
            .iter()
            .enumerate()
            .map(|(index, finding)| {
                let numbered = if numbers.contains(&(index + 1)) { BY_NUMBER } else { 0 };
                numbered + named(&text, finding)
            })
            .collect();
        let most = points.iter().copied().max().unwrap_or(0);
        let mut best = points.iter().enumerate().filter(|(_, points)| **points == most);
        match (best.next(), best.next()) {
            (Some((index, _)), None) if most > 0 => return Some(index),
            (Some(_), Some(_)) if most > 0 => return None,
            _ => {}
        }
    }
    (findings.len() == 1 && !evidence::shows_success_only(transcript)).then_some(0)
}

/// The reviewer's own text above a fence: up to the last fence, or past fences up to the heading it is under. A table, a
/// verdict and a status are about something else.
fn caption(lines: &[TextLine], open: usize, past_fences: bool) -> String {
    let mut said = Vec::new();
    for line in lines.get(..open).unwrap_or(&[]).iter().rev() {
        match line.kind {
            LineKind::Plain => {
                let about_all = status::looks_like_one(line.text) || review::is_control(line.text);
                if about_all || table::is_row(line.text) || said.len() >= MAX_CAPTION {
                    break;
                }
                said.push(line.text);
                if sections::heading(line).is_some() {
                    break;
                }
            }
            LineKind::Close if !past_fences => break,
            LineKind::Blank
            | LineKind::Open
            | LineKind::Fenced
            | LineKind::Close
            | LineKind::Quote
            | LineKind::Indented
            | LineKind::Diff
            | LineKind::Comment => {}
        }
    }
    said.join("\n")
}

/// The numbers of findings in a text: `Finding 2`, `#2`.
fn numbers(text: &str) -> BTreeSet<usize> {
    let mut numbers = BTreeSet::new();
    let mut after_finding = false;
    for word in text.split_whitespace() {
        let word = word.trim_matches(|c: char| !c.is_alphanumeric() && c != '#');
        let digits = word.trim_start_matches('#');
        let marked = after_finding || word.len() == digits.len() + 1;
        if let Ok(number) = digits.parse()
            && marked
        {
            numbers.insert(number);
        }
        after_finding = ["finding", "issue", "row"].iter().any(|name| word.eq_ignore_ascii_case(name));
    }
    numbers
}

/// How clearly a text names a finding by its place or by a name of code.
fn named(text: &str, finding: &Finding) -> u32 {
    let mut points = 0;
    let last = finding.file.rsplit('/').next().unwrap_or_default();
    let behind: Vec<&str> = if last.is_empty() { Vec::new() } else { behind_name(text, last).collect() };
    if !behind.is_empty() {
        points += BY_FILE;
        points += if behind_name(text, &finding.file).next().is_some() { BY_WHOLE_PATH } else { 0 };
        let cites = |rest: &&str| finding.line > 0 && line_in(rest) == Some(finding.line);
        points += if behind.iter().any(cites) { BY_LINE } else { 0 };
    }
    let names = identity::names(&finding.description);
    let of_code = names.iter().filter(|name| !VALUES.contains(&name.as_str()));
    let shown: BTreeSet<String> = text
        .split(|c: char| !c.is_alphanumeric() && c != '_')
        .filter(|name| !name.is_empty())
        .map(str::to_lowercase)
        .collect();
    points + if of_code.into_iter().any(|name| shown.contains(name)) { BY_NAME } else { 0 }
}

/// What follows each mention of a file in a text, up to the end of the line.
fn behind_name<'t>(text: &'t str, name: &'t str) -> impl Iterator<Item = &'t str> {
    let part_of_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-');
    text.match_indices(name).filter_map(move |(at, _)| {
        let before = head(text, at).chars().next_back();
        let rest = tail(text, at + name.len());
        let apart = !before.is_some_and(|c| part_of_name(c) || c == '.') && !rest.starts_with(part_of_name);
        apart.then(|| rest.lines().next().unwrap_or_default())
    })
}

/// The line that follows the name of a file: `:5`, `", line 5`, `(5`, `#L5`, ` line 5`.
fn line_in(behind: &str) -> Option<u32> {
    let rest = behind.trim_start_matches(|c: char| c.is_whitespace() || "\"'`,".contains(c));
    let mut starts = [":", "(", "#L", "line ", "lines ", "L"].iter();
    let number = starts.find_map(|start| rest.strip_prefix(start))?;
    let digits = number.bytes().take_while(u8::is_ascii_digit).count();
    head(number, digits).parse().ok()
}

#[cfg(test)]
mod tests {
    use crate::model::{AnswerBody, Finding, Role};
    use crate::read::answer;
    use crate::rules::evidence;

    const ONE: &str = "| src/calc.py | CRITICAL | reliability | It fails for nothing | Check it |";
    const TWO: &str = "| src/calc.py:5 | CRITICAL | reliability | `sub_all` fails for nothing | Check it |\n\
                       | src/calc.py:9 | CRITICAL | reliability | `add_all` loses the last | Keep it |";
    const RUN: &str = "$ python -c 'import m'\nValueError: nothing";

    fn findings(rows: &str, below: &str) -> Vec<Finding> {
        let text = format!(
            "VERDICT: REJECTED\n\n| Location | Severity | Category | Description | Fix |\n|---|---|---|---|---|\n\
             {rows}\n\n{below}\n\nSTATUS: DONE\n"
        );
        let answer = answer(Role::Gatekeeper, "guardian", text.as_bytes());
        let AnswerBody::Review(review) = answer.said else { panic!("{text}") };
        assert_eq!(review.findings.len(), rows.lines().count(), "{text}");
        review.findings
    }

    /// The numbers of the findings that have evidence.
    fn shown(rows: &str, below: &str) -> Vec<usize> {
        let found = findings(rows, below);
        let with = found.iter().enumerate().filter(|(_, finding)| !finding.evidence.is_empty());
        with.map(|(index, _)| index + 1).collect()
    }

    fn fenced(info: &str, text: &str) -> String {
        format!("```{info}\n{text}\n```")
    }

    #[test]
    fn m_01_a_transcript_below_one_finding_is_its_evidence() {
        let found = findings(ONE, &format!("How I saw it:\n\n{}", fenced("console", RUN)));
        assert!(found.iter().all(|finding| evidence::weigh(finding).is_none()), "{found:?}");
        assert_eq!(found.first().map(|finding| finding.evidence.as_str()), Some(RUN));
        for (info, text) in [
            ("", "tests/t.py F\n1 failed, 3 passed in 0.2s"),
            ("text", "test result: FAILED. 3 passed; 1 failed; 0 ignored"),
            ("", "--- FAIL: TestSub (0.00s)\n    sub_test.go:9: got 3"),
            ("", "Ran 3 tests in 0.001s\n\nFAILED (failures=1)"),
            ("", "Traceback (most recent call last):\n  File \"m.py\", line 3, in sub\nTypeError"),
            ("text", "thread 'main' panicked at src/main.rs:3:5"),
        ] {
            let found = findings(ONE, &fenced(info, text));
            assert!(found.iter().all(|finding| evidence::weigh(finding).is_none()), "{text}");
        }
    }

    #[test]
    fn m_01_what_shows_nothing_is_no_transcript() {
        for (info, text) in [
            // A proposal, a command alone, code that prints tracebacks, a result that is fine.
            ("python", "def sub(a, b):\n    return a - b"),
            ("sh", "$ pytest -q"),
            ("sh", "pytest -q tests"),
            ("", "import traceback\ntraceback.print_exc()"),
            ("diff", "$ x\n-1 failed\n+2 failed"),
            ("console", "$ pytest -q\n12 passed in 0.2s"),
            ("", "test result: ok. 12 passed; 0 failed; 0 ignored"),
        ] {
            let found = findings(ONE, &fenced(info, text));
            assert!(found.iter().all(|finding| finding.evidence.is_empty()), "{text}");
            assert!(found.iter().all(|finding| evidence::weigh(finding).is_some()), "{text}");
        }
        // What passes can show a finding that it names.
        assert_eq!(shown(ONE, &fenced("", "$ pytest src/calc.py\n0 passed")), [1]);
    }

    #[test]
    fn m_01_among_several_findings_a_transcript_belongs_to_the_one_it_names() {
        let run = fenced("console", RUN);
        let file = fenced("", "$ python src/calc.py\nValueError");
        let line = fenced("", "$ python m.py\n  File \"src/calc.py\", line 9, in x\nValueError");
        let name = fenced("", "$ python -c 'add_all([])'\nIndexError");
        for (below, which) in [
            (run.clone(), vec![]),
            (file, vec![]),
            (line.clone(), vec![2]),
            (name, vec![2]),
            (format!("Finding 2:\n{run}"), vec![2]),
            (format!("### Finding #1\n\nI ran this.\n\n{run}\n\nAnd this:\n\n{run}"), vec![1]),
            (format!("For calc.py:5:\n{run}\n\nFor `src/calc.py:9`:\n{run}"), vec![1, 2]),
            (format!("For calc.py:5 and calc.py:9:\n{run}"), vec![]),
            (format!("Finding 3:\n{run}"), vec![]),
            (format!("Finding 1\n{line}"), vec![1]),
        ] {
            assert_eq!(shown(TWO, &below), which, "{below}");
        }
        // Also a single finding is not shown by what is about another one.
        assert_eq!(shown(ONE, &format!("Finding 2\n{run}")), Vec::<usize>::new());
    }

    #[test]
    fn m_01_a_transcript_under_reproductions_is_not_read_twice() {
        let found = findings(ONE, &format!("## Reproductions\n\nFinding 1\n\n{}", fenced("sh", "pytest -q")));
        assert!(found.iter().all(|finding| finding.reproduction.is_some() && finding.evidence.is_empty()));
    }
}
