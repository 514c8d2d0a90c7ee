//! Which lines of a review are verdicts, and what they say.
//!
//! Two kinds of lines state a verdict. A *claim* says by itself that it is one: `Verdict: …` and the word alone. It
//! counts wherever it is, and one that can't be read leaves the review without a verdict. A *hint* is a verdict only
//! because of its position: the front matter, a `Status:` line at the head of the review, the line under a heading
//! `Verdict`. Hints may not contradict a claim, and an approval that rests on hints alone has to meet more conditions
//! (decision 063).

use super::findings;
use super::lines::{LineKind, TextLine};
use super::sections;
use super::status;
use super::table;
use super::text::{bullet, first_word, head, is_emoji, is_markup, tail};
use super::words::{
    self, BESIDE_APPROVAL, SUMMARY_LABELS, TAKEN_BACK, VERDICT_LABELS, first_letters, letter_bit,
};
use crate::model::Verdict;

/// A line about the whole review is short.
pub(super) const MAX_LINE: usize = 2000;

/// A label is shorter.
const MAX_LABEL: usize = 40;

/// Front matter is metadata; a longer one is something else.
const MAX_FRONT: usize = 400;

/// What a line says about the whole review.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct VerdictClaim {
    /// None: it can't be read.
    pub verdict: Option<Verdict>,
    pub wording: Wording,
}

impl VerdictClaim {
    const UNCLEAR: VerdictClaim = VerdictClaim { verdict: None, wording: Wording::Other };

    pub(crate) fn asked(verdict: Option<Verdict>) -> VerdictClaim {
        VerdictClaim { verdict, wording: Wording::Asked }
    }

    fn rejected(wording: Wording) -> VerdictClaim {
        VerdictClaim { verdict: Some(Verdict::Rejected), wording }
    }
}

/// The words of a verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wording {
    /// Those the brief asks for, and none beside an approval.
    Asked,
    Other,
    /// It only says that there are findings.
    Issues,
}

/// A verdict read from a phrase.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reading {
    Verdict(VerdictClaim),
    /// It begins with a verdict and something is wrong with it.
    Unclear,
    /// It says nothing about a verdict.
    Silent,
}

/// The claim a line makes, if it makes one.
pub(crate) fn claim(text: &str) -> Option<VerdictClaim> {
    let first = first_word(text);
    const FIRST: u32 = first_letters(&VERDICT_LABELS) | first_letters(&ALONE);
    let opens = |phrases: &[&str]| phrases.iter().any(|phrase| begins(phrase, first));
    let may_open = has_letter_of(first, FIRST);
    if first.is_empty() || first.is_ascii() && !(may_open && (opens(&VERDICT_LABELS) || opens(&ALONE))) {
        return None;
    }
    let line = Undecorated::of(text)?;
    if line.text.contains("~~") {
        return claims_when_unstruck(&line).then_some(VerdictClaim::UNCLEAR);
    }
    if let Some((label, value)) = labelled(line.text)
        && is_label(label, &VERDICT_LABELS)
    {
        let value = value.trim_matches(is_decoration);
        return (!value.is_empty()).then(|| of_value_on(value, text));
    }
    bare(&line, text)
}

/// A verdict that is a value, as in JSON.
pub(crate) fn of_value(value: &str) -> VerdictClaim {
    of_value_on(value.trim(), value)
}

fn of_value_on(value: &str, line: &str) -> VerdictClaim {
    match read(value, line) {
        Reading::Verdict(claim) => claim,
        Reading::Unclear | Reading::Silent => VerdictClaim::UNCLEAR,
    }
}

fn claims_when_unstruck(line: &Undecorated<'_>) -> bool {
    let text = line.text.replace("~~", "");
    claim(&text).is_some()
}

/// The words that are a verdict without a label.
const ALONE: [&str; 6] =
    ["approved", "rejected", "request changes", "changes requested", "changes required", "not approved"];

/// A verdict alone on its line. In capitals it is one with anything beside it, so that `APPROVED? Not yet` is seen.
fn bare(line: &Undecorated<'_>, whole: &str) -> Option<VerdictClaim> {
    let first = line.text.chars().next()?;
    if !matches!(first.to_ascii_lowercase(), 'a' | 'r' | 'c' | 'n') {
        return None;
    }
    let words = head(
        line.text,
        line.text
            .find(|c: char| !c.is_ascii_alphabetic() && !matches!(c, ' ' | '_' | '-'))
            .unwrap_or(line.text.len()),
    );
    let phrase = words::key(words);
    let (_, name, rest) = words::verdict(&phrase)?;
    if !ALONE.contains(&name) {
        return None;
    }
    let written = line.text.get(..name.len())?;
    let shouted = written.chars().all(|c| !c.is_lowercase());
    let alone = rest.is_empty()
        && tail(line.text, written.len()).chars().all(|c| is_decoration(c) || matches!(c, '.' | '!'));
    if alone && (shouted || line.plain) {
        return Some(of_value_on(line.text, whole));
    }
    if !shouted || line.listed {
        return None;
    }
    Some(of_value_on(line.text, whole))
}

/// Whether a phrase begins with this word, in any case.
fn begins(phrase: &str, word: &str) -> bool {
    let rest = phrase.get(word.len()..).filter(|rest| rest.is_empty() || rest.starts_with(' '));
    rest.is_some() && phrase.get(..word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word))
}

/// Whether a word in ASCII begins with one of these letters. A no is certain, and spares most lines a closer look.
fn has_letter_of(word: &str, letters: u32) -> bool {
    word.bytes().next().is_some_and(|first| letter_bit(first) & letters != 0)
}

/// A line without heading marks, a list marker and what decorates it.
struct Undecorated<'a> {
    text: &'a str,
    listed: bool,
    /// Neither a heading nor an item of a list.
    plain: bool,
}

impl<'a> Undecorated<'a> {
    /// Rows of a table and added lines of a diff have no say here.
    fn of(text: &'a str) -> Option<Undecorated<'a>> {
        let text = text.trim();
        if text.len() > MAX_LINE || text.starts_with('+') || table::is_row(text) {
            return None;
        }
        let title = text.trim_start_matches('#').trim_start();
        let inner = bullet(title).map_or(title, |width| tail(title, width));
        let listed = inner.len() < title.len();
        let plain = !listed && title.len() == text.len();
        Some(Undecorated { text: inner.trim_matches(is_decoration), listed, plain })
    }
}

pub(super) fn is_decoration(c: char) -> bool {
    is_markup(c) || is_emoji(c)
}

/// `Verdict: x` in any markup, and with the colon of any script.
fn labelled(text: &str) -> Option<(&str, &str)> {
    let (at, colon) = text.char_indices().take(MAX_LABEL).find(|(_, c)| matches!(c, ':' | '：'))?;
    let label = head(text, at).trim_matches(is_decoration);
    Some((label, tail(text, at + colon.len_utf8())))
}

fn is_label(label: &str, labels: &[&str]) -> bool {
    if label.len() > MAX_LABEL {
        return false;
    }
    let plain = label.bytes().all(|b| b.is_ascii_alphabetic() || b == b' ');
    if plain {
        return labels.iter().any(|known| known.eq_ignore_ascii_case(label));
    }
    labels.contains(&words::key(label).as_str())
}

/// What divides a verdict from what is said beside it.
fn divides(c: char) -> bool {
    matches!(
        c,
        ',' | ';'
            | '.'
            | '!'
            | '?'
            | '('
            | ')'
            | '['
            | ']'
            | ':'
            | '/'
            | '|'
            | '—'
            | '–'
            | '，'
            | '。'
            | '；'
            | '：'
            | '（'
            | '）'
            | '？'
            | '！'
    )
}

/// Signs beside an approval that say the opposite, or that something is left.
fn objects(c: char) -> bool {
    matches!(c, '❌' | '✖' | '✗' | '✘' | '⛔' | '🚫' | '🛑' | '⚠' | '🔴' | '🟡' | '🟠')
}

/// Reads a phrase, `whole` being the line it is on.
fn read(value: &str, whole: &str) -> Reading {
    let parts: Vec<String> = value
        .split(divides)
        .flat_map(|part| part.split(" - "))
        .flat_map(|part| part.split(" -- "))
        .map(words::key)
        .filter(|part| !part.is_empty())
        .collect();
    let Some(first) = parts.first() else { return Reading::Silent };
    let Some((verdict, name, rest)) = words::verdict(first) else {
        return if counts_grave(first) {
            Reading::Verdict(VerdictClaim::rejected(Wording::Other))
        } else {
            Reading::Silent
        };
    };
    let taken_back = |part: &String| TAKEN_BACK.iter().any(|word| part.contains(word));
    if value.contains("~~") || parts.iter().any(taken_back) {
        return Reading::Unclear;
    }
    match verdict {
        Verdict::Approved => {
            let beside =
                |part: &str| part.is_empty() || BESIDE_APPROVAL.contains(&part) || findings::says_none(part);
            let more = |part: &String| {
                beside(part)
                    || words::verdict(part)
                        .is_some_and(|(verdict, _, rest)| verdict == Verdict::Approved && beside(rest))
            };
            let clear = beside(rest)
                && parts.iter().skip(1).all(more)
                && !value.contains(['?', '？'])
                && !whole.contains(objects);
            if !clear {
                return Reading::Unclear;
            }
            let asked = name == "approved" && rest.is_empty() && parts.len() == 1;
            let wording = if asked { Wording::Asked } else { Wording::Other };
            Reading::Verdict(VerdictClaim { verdict: Some(Verdict::Approved), wording })
        }
        Verdict::Rejected => {
            let asks = value.find(divides).is_some_and(|at| tail(value, at).starts_with(['?', '？']));
            let approves = |part: &String| {
                words::verdict(part).is_some_and(|(verdict, _, rest)| {
                    verdict == Verdict::Approved && (rest.is_empty() || BESIDE_APPROVAL.contains(&rest))
                })
            };
            if asks || value.contains("APPROVED") && name != "not approved" || parts.iter().any(approves) {
                return Reading::Unclear;
            }
            Reading::Verdict(VerdictClaim::rejected(match name {
                "rejected" => Wording::Asked,
                "issues" | "issues found" => Wording::Issues,
                _ => Wording::Other,
            }))
        }
    }
}

/// `2 critical issues found`: a number that is not zero, of something that blocks.
fn counts_grave(phrase: &str) -> bool {
    let mut words = phrase.split(' ');
    let counted = words.next().is_some_and(|n| n.parse::<u32>().is_ok_and(|n| n > 0));
    let grave =
        words.next().is_some_and(|word| matches!(word, "critical" | "blocking" | "blocker" | "blockers"));
    let of = |word: &str| {
        matches!(
            word,
            "issue"
                | "issues"
                | "finding"
                | "findings"
                | "problem"
                | "problems"
                | "found"
                | "remain"
                | "remaining"
                | "open"
        )
    };
    counted && grave && words.all(of)
}

/// What the position of a line makes a verdict.
#[derive(Debug, Default)]
pub(crate) struct Hints {
    pub said: Vec<(usize, VerdictClaim)>,
    /// Lines that reject a part of what is reviewed.
    pub objections: Vec<usize>,
    /// The line that ends the front matter, if there is one.
    pub front: usize,
    /// Findings above INFO that the front matter counts.
    pub counted: u32,
}

/// The hints of a review.
pub(crate) fn hints(lines: &[TextLine]) -> Hints {
    let mut hints = Hints { front: front_matter(lines), ..Hints::default() };
    for (at, line) in lines.iter().enumerate().take(hints.front) {
        hints.metadata(at, line.text);
    }
    let mut region = Region::Head;
    for (at, line) in lines.iter().enumerate().skip(hints.front) {
        if line.kind != LineKind::Plain {
            continue;
        }
        if line.text.trim_start().starts_with('#')
            && let Some((level, title)) = sections::heading(line)
        {
            region = region.below(level, title);
            continue;
        }
        hints.own_line(at, line, region);
        region = match region {
            Region::Verdict => Region::Whole,
            // Prose ends the head: what follows it may be what it introduces.
            Region::Head if !is_heads_line(line.text) => Region::Part,
            Region::Head | Region::Whole | Region::Part => region,
        };
    }
    hints
}

/// `**Date:** …`, a verdict or a rule: what the head of a review is made of.
fn is_heads_line(text: &str) -> bool {
    let bare = text.trim();
    let labelled = labelled(bare).is_some_and(|(_, value)| !value.trim_matches(is_decoration).is_empty());
    labelled || bare.chars().all(|c| matches!(c, '-' | '*' | '_' | '=' | ' ')) || claim(text).is_some()
}

/// What the lines under a heading are about.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Region {
    /// The title and the labelled lines around it.
    Head,
    /// The first line under a heading `Verdict`.
    Verdict,
    /// Under a heading about all of the review.
    Whole,
    Part,
}

impl Region {
    fn below(self, level: usize, title: &str) -> Region {
        let title = words::key(sections::unnumber(title).trim_end_matches([':', ' ']));
        if is_label(&title, &VERDICT_LABELS) {
            return Region::Verdict;
        }
        if is_label(&title, &SUMMARY_LABELS) || matches!(title.as_str(), "summary" | "executive summary") {
            return Region::Whole;
        }
        if self == Region::Head && level == 1 { Region::Head } else { Region::Part }
    }
}

impl Hints {
    fn own_line(&mut self, at: usize, line: &TextLine<'_>, region: Region) {
        let first = first_word(line.text);
        const FIRST: u32 = first_letters(&SUMMARY_LABELS);
        let labels =
            || has_letter_of(first, FIRST) && SUMMARY_LABELS.iter().any(|label| begins(label, first));
        if region != Region::Verdict && first.is_ascii() && !labels() {
            return;
        }
        let Some(own) = Undecorated::of(line.text) else { return };
        if region == Region::Verdict && claim(line.text).is_none() {
            self.take(at, read(own.text, line.text), true);
            return;
        }
        let Some((label, value)) = labelled(own.text) else { return };
        if !is_label(label, &SUMMARY_LABELS) || status::is_token(line.text) {
            return;
        }
        let reading = read(value.trim_matches(is_decoration), line.text);
        match region {
            // A recommendation is also the label of a finding's fix: only a verdict and nothing else is one.
            Region::Head | Region::Whole | Region::Verdict => {
                self.take(at, reading, !label.eq_ignore_ascii_case("recommendation"));
            }
            Region::Part => {
                if matches!(reading, Reading::Verdict(VerdictClaim { verdict: Some(Verdict::Rejected), .. }))
                {
                    self.objections.push(at);
                }
            }
        }
    }

    fn take(&mut self, at: usize, reading: Reading, also_unclear: bool) {
        match reading {
            Reading::Verdict(claim) => self.said.push((at, claim)),
            Reading::Unclear if also_unclear => self.said.push((at, VerdictClaim::UNCLEAR)),
            Reading::Unclear | Reading::Silent => {}
        }
    }

    /// A line of the front matter: the verdict, or a number of findings.
    fn metadata(&mut self, at: usize, text: &str) {
        let Some((name, value)) = text.split_once(':') else { return };
        let value = value.split(" #").next().unwrap_or(value).trim().trim_matches(['"', '\'']);
        let name = name.trim();
        if let Some(severity) = words::severity_of(name) {
            let number = value.parse().unwrap_or(0);
            if severity > crate::model::Severity::Info {
                self.counted = self.counted.saturating_add(number);
            }
            return;
        }
        let whole = !text.starts_with([' ', '\t', '-']);
        if whole && (is_label(name, &VERDICT_LABELS) || is_label(name, &SUMMARY_LABELS)) {
            self.take(at, read(value, text), true);
        }
    }
}

/// The line behind the front matter: `---`, keys of YAML, `---`, at the very start.
fn front_matter(lines: &[TextLine]) -> usize {
    let rule = |line: &TextLine| line.text.trim_end() == "---";
    if !lines.first().is_some_and(rule) {
        return 0;
    }
    let mut inner = lines.iter().enumerate().skip(1).take(MAX_FRONT);
    let end = inner.find(|(_, line)| rule(line) || !is_metadata(line.text));
    end.filter(|(at, line)| rule(line) && *at > 1).map_or(0, |(at, _)| at + 1)
}

/// A key, an item of a list, a comment or something deeper.
fn is_metadata(text: &str) -> bool {
    let bare = text.trim_start();
    bare.is_empty() || bare.len() < text.len() || bare.starts_with(['-', '#']) || text.contains(':')
}
