//! The plain list form of a queue (BX-28): `- [ ] text | workflow | depends: text | done: condition`.
//!
//! Lines of other kinds are prose and stay out of it. A line that begins like an entry and can't be read is reported
//! with its number; the others count all the same.

/// An entry of the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedTask {
    pub line: usize,
    pub done: bool,
    pub text: String,
    pub workflow: Option<String>,
    /// The texts of entries it waits for.
    pub depends: Vec<String>,
    /// What must hold when it is done, in the author's words.
    pub condition: Option<String>,
}

/// A line that can't be read, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListFault {
    pub line: usize,
    pub why: String,
}

pub fn read(text: &str) -> (Vec<ListedTask>, Vec<ListFault>) {
    let (mut entries, mut faults) = (Vec::new(), Vec::new());
    for (line, content) in (1..).zip(text.lines()) {
        match entry(line, content.trim_end()) {
            Some(Ok(entry)) => entries.push(entry),
            Some(Err(why)) => faults.push(ListFault { line, why }),
            None => {}
        }
    }
    (entries, faults)
}

/// `None` for prose.
fn entry(line: usize, content: &str) -> Option<Result<ListedTask, String>> {
    let rest = content.trim_start().strip_prefix(['-', '*'])?.trim_start().strip_prefix('[')?;
    let (mark, rest) = rest.split_once(']')?;
    let done = match mark.trim() {
        "" => false,
        "x" | "X" => true,
        other => return Some(Err(format!("'[{other}]' is neither '[ ]' nor '[x]'"))),
    };
    let mut parts = rest.split('|').map(str::trim);
    let text = parts.next().unwrap_or_default().to_owned();
    if text.is_empty() {
        return Some(Err("it has no text".to_owned()));
    }
    let mut listed = ListedTask { line, done, text, workflow: None, depends: Vec::new(), condition: None };
    for part in parts.filter(|part| !part.is_empty()) {
        if let Err(why) = take(&mut listed, part) {
            return Some(Err(why));
        }
    }
    Some(Ok(listed))
}

fn take(listed: &mut ListedTask, part: &str) -> Result<(), String> {
    let labelled =
        part.split_once(':').map(|(label, value)| (label.trim().to_ascii_lowercase(), value.trim()));
    match labelled {
        Some((label, value)) if label == "depends" => {
            listed
                .depends
                .extend(value.split(',').map(str::trim).filter(|on| !on.is_empty()).map(str::to_owned));
        }
        Some((label, value)) if label == "done" => listed.condition = Some(value.to_owned()),
        Some(_) | None if listed.workflow.is_none() && !part.contains(char::is_whitespace) => {
            listed.workflow = Some(part.to_owned());
        }
        Some(_) | None => {
            return Err(format!("'{part}' is no workflow, 'depends: …' or 'done: …'"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bx_28_a_list_is_read_line_by_line() {
        let plain = |line, text: &str| ListedTask {
            line,
            done: false,
            text: text.to_owned(),
            workflow: None,
            depends: Vec::new(),
            condition: None,
        };
        let text = "# Queue\r\n\
                    - [ ] Fix the login | fast\r\n\
                    - [x] Old thing\r\n\
                    prose with | pipes\n\
                    * [ ] Add limits | standard | depends: Fix the login, Old thing | done: 429 after ten\n\
                    - [ ]   \n\
                    - [?] odd\n\
                    - [ ] two words | not a workflow\n\
                    \t- [ ] nested |  | Done: x | DEPENDS:\n\
                    - plain bullet\n";
        let (entries, faults) = read(text);
        let expected = vec![
            ListedTask { workflow: Some("fast".to_owned()), ..plain(2, "Fix the login") },
            ListedTask { done: true, ..plain(3, "Old thing") },
            ListedTask {
                workflow: Some("standard".to_owned()),
                depends: vec!["Fix the login".to_owned(), "Old thing".to_owned()],
                condition: Some("429 after ten".to_owned()),
                ..plain(5, "Add limits")
            },
            ListedTask { condition: Some("x".to_owned()), ..plain(9, "nested") },
        ];
        assert_eq!(entries, expected);
        let lines: Vec<usize> = faults.iter().map(|fault| fault.line).collect();
        assert_eq!(lines, [6, 7, 8]);
    }
}
