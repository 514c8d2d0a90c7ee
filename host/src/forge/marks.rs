//! Marks in comments, by which a later session knows its own. They are HTML comments in the last line, where text of
//! agents can't come: what they wrote is before it, and escaped.

use std::collections::BTreeSet;

use archeflow_core::strategies::review::ThreadWord;

/// Findings that a summary lists by name.
const LISTED_AT_MOST: usize = 300;

/// Ends a comment that begins a thread.
pub fn comment_marker(fingerprint: &str, raised_by: &[String]) -> String {
    let names: Vec<String> = raised_by.iter().map(|name| word(name)).collect();
    format!("<!-- archeflow-by:{} -->\n<!-- archeflow:{} -->", names.join(","), word(fingerprint))
}

/// Ends a reply.
pub fn reply_marker(word_said: ThreadWord, fingerprint: &str) -> String {
    format!("<!-- archeflow-{}:{} -->", word_said.name(), word(fingerprint))
}

/// Ends a summary. It names the findings that have no thread of their own, and those whose lines the forge refused.
pub fn summary_marker(run_id: &str, listed: &[String], refused: &[String]) -> String {
    let names = |all: &[String]| {
        let all: Vec<String> = all.iter().take(LISTED_AT_MOST).map(|one| word(one)).collect();
        all.join(",")
    };
    let refused = match names(refused) {
        none if none.is_empty() => none,
        names => format!("<!-- archeflow-refused:{names} -->\n"),
    };
    let (listed, run_id) = (names(listed), word(run_id));
    format!("{refused}<!-- archeflow-listed:{listed} -->\n<!-- archeflow-review:{run_id} -->")
}

/// Nothing that could end the comment.
fn word(text: &str) -> String {
    let plain = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-');
    text.chars().filter(plain).collect::<String>().replace("--", "-")
}

/// The value of this mark in a line.
fn value<'a>(line: Option<&'a str>, mark: &str) -> Option<&'a str> {
    line?.trim().strip_prefix("<!-- ")?.strip_prefix(mark)?.strip_prefix(':')?.strip_suffix(" -->")
}

/// The last line, and the two before it.
fn last_lines(body: &str) -> [Option<&str>; 3] {
    let mut lines = body.trim_end().lines().rev();
    [lines.next(), lines.next(), lines.next()]
}

/// The finding that a comment begins a thread about, and who raised it.
pub(super) fn finding(body: &str) -> Option<(String, Vec<String>)> {
    let [last, before, _] = last_lines(body);
    let fingerprint = value(last, "archeflow").filter(|value| !value.is_empty())?;
    Some((fingerprint.to_owned(), list(value(before, "archeflow-by"))))
}

pub(super) fn reply(body: &str) -> Option<ThreadWord> {
    let [last, ..] = last_lines(body);
    ThreadWord::ALL.into_iter().find(|word| value(last, &format!("archeflow-{}", word.name())).is_some())
}

/// The finding that a reply is about.
pub(super) fn reply_about(body: &str) -> Option<String> {
    let [last, ..] = last_lines(body);
    let value =
        ThreadWord::ALL.into_iter().find_map(|word| value(last, &format!("archeflow-{}", word.name())));
    value.map(str::to_owned)
}

/// What the program itself reads in a summary.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct SummaryMarks {
    /// The review that it is of.
    pub(super) run_id: String,
    /// Findings that it lists.
    pub(super) listed: BTreeSet<String>,
    /// Those of them whose lines the forge refused.
    pub(super) refused: BTreeSet<String>,
}

pub(super) fn summary(body: &str) -> Option<SummaryMarks> {
    let [last, before, third] = last_lines(body);
    let run_id = value(last, "archeflow-review")?.to_owned();
    let set = |line, mark| list(value(line, mark)).into_iter().collect();
    Some(SummaryMarks {
        run_id,
        listed: set(before, "archeflow-listed"),
        refused: set(third, "archeflow-refused"),
    })
}

fn list(names: Option<&str>) -> Vec<String> {
    names.unwrap_or_default().split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn f_20_marks_are_read_back_and_only_from_the_end() {
        let by = ["guardian".to_owned(), "sage".to_owned()];
        let body = format!("words\n\n{}", comment_marker("ab12", &by));
        assert_eq!(finding(&body), Some(("ab12".to_owned(), by.to_vec())));
        assert_eq!(finding(&format!("{body}\r\n")), Some(("ab12".to_owned(), by.to_vec())));
        assert_eq!(finding("<!-- archeflow:ab12 -->").map(|(of, _)| of).as_deref(), Some("ab12"));
        for other in
            ["", "words", &format!("{body}\nmore"), "`<!-- archeflow:ab12 -->` x", "<!-- archeflow: -->"]
        {
            assert_eq!(finding(other), None, "{other}");
        }
        for said in ThreadWord::ALL {
            let body = format!("words\n{}", reply_marker(said, "ab12"));
            assert_eq!((reply(&body), finding(&body)), (Some(said), None));
            assert_eq!(reply_about(&body).as_deref(), Some("ab12"));
        }
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<String>>();
        for refused in [&[][..], &["b", "c"]] {
            let body =
                format!("words\n{}", summary_marker("2026-01-01-x", &names(&["a", "b"]), &names(refused)));
            let set = |all: &[&str]| names(all).into_iter().collect::<BTreeSet<String>>();
            let wanted = SummaryMarks {
                run_id: "2026-01-01-x".to_owned(),
                listed: set(&["a", "b"]),
                refused: set(refused),
            };
            assert_eq!(summary(&body), Some(wanted), "{body}");
        }
        assert_eq!(summary("words"), None);
        assert!(!comment_marker("x --> <b>", &["-->".to_owned()]).contains("<b>"));
    }
}
