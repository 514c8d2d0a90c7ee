//! What is read in reviews: those in the form the brief asks for and in variants of it, and those in free text.

use archeflow_core::model::{AnswerBody, Finding, Review, Role, Severity, Verdict};
use archeflow_core::read;
use serde_json::Value;

use super::{Measure, Measures, number, share, text};

/// Texts are stored up to this length, while a person counted the findings of the whole.
const CUT: usize = 4000;

fn review(text: &str) -> Result<Review, String> {
    match read::answer(Role::Gatekeeper, "guardian", text.as_bytes()).said {
        AnswerBody::Review(review) => Ok(review),
        AnswerBody::Prose | AnswerBody::Proposal(_) => Err("a reviewer's answer is no review".to_owned()),
    }
}

// The form that was asked for.

type Placed = (String, u32, String);

fn placed(finding: &Finding) -> Placed {
    (finding.file.clone(), finding.line, finding.severity.name().to_owned())
}

/// All of these reviews reject.
pub(super) fn asked(items: &[Value]) -> Measures {
    let (mut whole, mut half, mut named, mut refused, mut trivial) = (0, 0, 0, 0, 0);
    let mut mistakes = Vec::new();
    for item in items {
        let review = review(text(item, "text"))?;
        let truth = item.get("truth").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        let mut wanted: Vec<Placed> = truth
            .iter()
            .map(|found| {
                (text(found, "file").to_owned(), number(found, "line"), text(found, "severity").to_owned())
            })
            .collect();
        wanted.sort();
        trivial += u32::from(trivially(text(item, "text"), &wanted));
        let mut seen: Vec<Placed> = review.findings.iter().map(placed).collect();
        seen.sort();
        let complete = seen == wanted && review.verdict == Some(Verdict::Rejected);
        match &review.unread {
            None if complete => whole += 1,
            None => {
                half += 1;
                mistakes.push(format!(
                    "{}: half-read, {} findings of {}",
                    text(item, "id"),
                    seen.len(),
                    wanted.len()
                ));
            }
            Some(why) => {
                refused += 1;
                named += u32::from(why.starts_with("line "));
                mistakes.push(format!("{}: refused: {why}", text(item, "id")));
            }
        }
    }
    let count = u32::try_from(items.len()).unwrap_or(u32::MAX);
    Ok(vec![Measure {
        what: "ways to write the asked review".to_owned(),
        baseline: format!("{trivial} of {count} (cells of the asked table)"),
        figure: format!(
            "{whole} of {count} read, {half} half-read, {named} of {refused} refused name the line"
        ),
        goal: "29 of 30 read, 0 half-read, what is refused names the line".to_owned(),
        met: half == 0 && named == refused && share(whole, count) >= 29.0 / 30.0,
        mistakes,
    }])
}

/// Rows of the table as the brief shows it, and a line with the verdict.
fn trivially(text: &str, wanted: &[Placed]) -> bool {
    let mut seen: Vec<Placed> = text
        .lines()
        .filter_map(|line| {
            let cells: Vec<&str> = line.split('|').map(str::trim).collect();
            let (file, number) = cells.get(1)?.rsplit_once(':')?;
            let severity = cells.get(2).filter(|cell| ["CRITICAL", "WARNING", "INFO"].contains(cell))?;
            Some((file.to_owned(), number.parse().ok()?, (*severity).to_owned()))
        })
        .collect();
    seen.sort();
    text.lines().any(|line| line == "VERDICT: REJECTED") && seen == wanted
}

// Free text.

#[derive(Default)]
struct Verdicts {
    accepted: u32,
    right: u32,
    false_approvals: u32,
}

impl Verdicts {
    fn add(&mut self, person: &str, read: Option<Verdict>) {
        let letter = match read {
            Some(Verdict::Approved) => "A",
            Some(Verdict::Rejected) => "R",
            None => return,
        };
        self.accepted += 1;
        self.right += u32::from(letter == person);
        self.false_approvals += u32::from(letter == "A" && person != "A");
    }

    fn shown(&self, count: u32) -> String {
        format!(
            "{:.0} % accepted, {:.1} % of them right, {} false approvals",
            100.0 * share(self.accepted, count),
            100.0 * share(self.right, self.accepted),
            self.false_approvals
        )
    }
}

/// How many findings of a kind were read, against how many a person counted.
#[derive(Default)]
struct Counted {
    both: u32,
    read: u32,
    person: u32,
}

impl Counted {
    fn add(&mut self, read: u32, person: u32) {
        self.both += read.min(person);
        self.read += read;
        self.person += person;
    }

    fn recall(&self) -> f64 {
        share(self.both, self.person)
    }

    fn precision(&self) -> f64 {
        share(self.both, self.read)
    }
}

pub(super) fn free(items: &[Value]) -> Measures {
    let count = u32::try_from(items.len()).unwrap_or(u32::MAX);
    let (mut verdicts, mut trivial) = (Verdicts::default(), Verdicts::default());
    let (mut all, mut grave, mut trivial_all) = (Counted::default(), Counted::default(), Counted::default());
    let (mut wrong, mut miscounted) = (Vec::new(), Vec::new());
    for item in items {
        let (id, page) = (text(item, "id"), text(item, "text"));
        let person = item.get("person").unwrap_or(&Value::Null);
        let said = text(person, "verdict");
        let review = review(page)?;
        // What a run would accept: read without a question left. An approval counts even so.
        let approved = review.verdict == Some(Verdict::Approved);
        let accepted = review.verdict.filter(|_| approved || review.unread.is_none());
        verdicts.add(said, accepted);
        trivial.add(said, first_word(page));
        if accepted.map(Verdict::name).map(|name| &name[..1]) != Some(said) {
            let read = accepted.map_or("neither", Verdict::name);
            let why = review.unread.as_deref().unwrap_or("nothing unread");
            wrong.push(format!("{id}: a person says {said}, read is {read}: {why}"));
        }
        let visible = |name: &str| visible(page, number(person, name));
        let read = u32::try_from(review.findings.len()).unwrap_or(u32::MAX);
        all.add(read, visible("findings"));
        trivial_all.add(lines_with_severity(page), visible("findings"));
        let above = review.findings.iter().filter(|finding| finding.severity > Severity::Info).count();
        grave.add(u32::try_from(above).unwrap_or(u32::MAX), visible("above_minor"));
        if read != visible("findings") {
            miscounted.push(format!("{id}: {read} findings read, a person sees {}", visible("findings")));
        }
    }
    let figure =
        |counted: &Counted| format!("recall {:.2} precision {:.2}", counted.recall(), counted.precision());
    let met = |counted: &Counted| counted.recall() >= 0.7 && counted.precision() >= 0.9;
    let goal = "recall 0.70 precision 0.90 (counts are approximate)";
    Ok(vec![
        Measure {
            what: "verdicts in free text".to_owned(),
            baseline: format!("{} (first line with the word)", trivial.shown(count)),
            figure: verdicts.shown(count),
            goal: "70 % accepted, 97 % of them right, 0 false approvals".to_owned(),
            met: share(verdicts.accepted, count) >= 0.7
                && share(verdicts.right, verdicts.accepted) >= 0.97
                && verdicts.false_approvals == 0,
            mistakes: wrong,
        },
        Measure {
            what: "findings in free text".to_owned(),
            baseline: format!("{} (lines with a severity)", figure(&trivial_all)),
            figure: figure(&all),
            goal: goal.to_owned(),
            met: met(&all),
            mistakes: miscounted,
        },
        Measure {
            what: "findings above minor".to_owned(),
            baseline: "-".to_owned(),
            figure: figure(&grave),
            goal: goal.to_owned(),
            met: met(&grave),
            mistakes: Vec::new(),
        },
    ])
}

/// The trivial rule: the first line with a word for a verdict wins.
fn first_word(page: &str) -> Option<Verdict> {
    page.lines().find_map(|line| {
        let line = line.to_lowercase();
        let approves = line.contains("approved") || line.contains("all good");
        let rejects = line.contains("rejected") || line.contains("issues_found") || line.contains("changes");
        match (approves, rejects) {
            (_, true) => Some(Verdict::Rejected),
            (true, false) => Some(Verdict::Approved),
            (false, false) => None,
        }
    })
}

fn lines_with_severity(page: &str) -> u32 {
    let words = ["critical", "warning", "high", "medium", "low", "info", "major", "minor"];
    let named = |line: &&str| {
        let line = line.to_lowercase();
        words.iter().any(|word| line.contains(word))
    };
    u32::try_from(page.lines().filter(named).count()).unwrap_or(u32::MAX)
}

/// Of a text that was cut, only the findings whose numbered headings are left can be read.
fn visible(page: &str, counted: u32) -> u32 {
    if page.chars().count() < CUT || counted < 2 {
        return counted;
    }
    let numbered = |line: &&str| {
        let title = line.trim_start_matches('#');
        let name =
            title.trim_start().split(|c: char| !c.is_ascii_alphanumeric() && c != '-').next().unwrap_or("");
        title.len() < line.len()
            && name.starts_with(|c: char| c.is_ascii_uppercase())
            && name.contains('-')
            && name.ends_with(|c: char| c.is_ascii_digit())
    };
    counted.min(u32::try_from(page.lines().filter(numbered).count()).unwrap_or(u32::MAX))
}
