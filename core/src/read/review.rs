//! A review: the verdict, the declared count and the findings, and whether they fit together (D-04).

use super::Problems;
use super::findings::{self, ParsedFindings};
use super::lines::{LineKind, TextLine};
use super::reproductions;
use super::table;
use super::text::{bullet, first_word, is_none, tail};
use super::transcripts;
use super::verdict::{self, Hints, MAX_LINE, VerdictClaim, Wording, is_decoration};
use super::withdrawn;
use super::words;
use crate::model::{Review, Severity, Verdict};

/// What is known about a review before it is read.
#[derive(Clone, Copy, Default)]
pub(crate) struct ReviewContext<'c> {
    /// Beside the built-in ones.
    pub categories: &'c [String],
    /// A verdict has the code of the brief, so everything without it is a quotation.
    pub coded: bool,
    /// The brief named a code, and no verdict has it.
    pub uncoded: bool,
}

pub(crate) fn review(
    source: &str,
    lines: &[TextLine],
    context: ReviewContext<'_>,
    problems: &mut Problems,
) -> Review {
    let before = problems.count();
    let section = reproductions::range(lines);
    let mut hints = verdict::hints(lines);
    if context.coded {
        hints.said.clear();
    }
    let mut outside = section.map(|section| reproductions::without(lines, section));
    if hints.front > 0 {
        let own = outside.get_or_insert_with(|| lines.to_vec());
        own.iter_mut().take(hints.front).for_each(|line| line.kind = LineKind::Blank);
    }
    let own = outside.as_deref().unwrap_or(lines);
    let said: Vec<(usize, &str)> = own_text(lines).filter(|(at, _)| *at >= hints.front).collect();
    let mut found = findings::findings(source, own, context.categories, problems);
    let mut claims: Vec<_> =
        said.iter().filter_map(|(at, text)| Some((*at, verdict::claim(text)?))).collect();
    claims.append(&mut found.verdicts);
    let stated = agree_on_verdict(&claims, &hints, problems);
    if stated.is_some_and(|claim| claim.verdict == Some(Verdict::Rejected)) && found.accepted == 0 {
        read_shown_rows(source, own, context, problems, &mut found);
    }
    let verdict =
        stated.and_then(|claim| accepted_verdict(claim, &claims, &hints, context, own, &found, problems));
    let rejected = verdict == Some(Verdict::Rejected);
    if !rejected {
        for (line, severity) in &found.unplaced {
            problems.at(*line, format_args!("a {} finding without a location", severity.name()));
        }
    }
    let declared = agree_on_count(&said, problems);
    let miscounted = declared.and_then(|declared| miscounted(declared, found.accepted));
    // Who rejects and miscounts by one has rejected; more than one may be a finding that was lost.
    let by_one = declared.is_some_and(|declared| {
        usize::try_from(declared).is_ok_and(|declared| declared.abs_diff(found.accepted) == 1)
    });
    let tolerated = rejected && found.accepted > 0 && by_one;
    if let Some(miscounted) = miscounted.clone().filter(|_| !tolerated) {
        problems.note(miscounted);
    }
    if rejected && found.accepted == 0 {
        problems.note("rejected without a finding that could be read".to_owned());
    }
    let mut unread = problems.since(before);
    if let Some(miscounted) = miscounted.filter(|_| tolerated) {
        problems.note(miscounted);
    }
    transcripts::attach(own, &found.fences, &mut found.findings);
    if let Some(section) = section {
        reproductions::attach(lines, section, &mut found.findings, problems);
    }
    let left_out = findings::keep_the_gravest(&mut found.findings, found.accepted);
    if left_out > 0 {
        let kept = found.findings.len();
        let said = format!("{left_out} findings left out: only the {kept} most severe are kept");
        // A rejection is valid with only its most severe findings. An approval is none without all of them (D-04).
        unread = unread.or_else(|| (!rejected).then(|| said.clone()));
        problems.note(said);
    }
    let left_out = u32::try_from(left_out).unwrap_or(u32::MAX);
    Review { verdict, declared, findings: found.findings, left_out, unread }
}

fn own_text<'r>(lines: &'r [TextLine<'r>]) -> impl Iterator<Item = (usize, &'r str)> {
    lines
        .iter()
        .enumerate()
        .filter(|(_, line)| line.kind == LineKind::Plain)
        .map(|(at, line)| (at, line.text))
}

fn miscounted(declared: u32, read: usize) -> Option<String> {
    (usize::try_from(declared) != Ok(read)).then(|| format!("{declared} findings declared, {read} read"))
}

/// A rejection whose only findings are a table in a fence means that table.
fn read_shown_rows(
    source: &str,
    lines: &[TextLine],
    context: ReviewContext<'_>,
    problems: &mut Problems,
    found: &mut ParsedFindings,
) {
    if found.shown == 0 {
        return;
    }
    let unfenced = findings::with_shown_tables(lines);
    let mut second = Problems::default();
    let again = findings::findings(source, &unfenced, context.categories, &mut second);
    if again.accepted > 0 && second.count() == 0 && problems.count() == found.shown {
        *problems = Problems::default();
        *found = again;
    }
}

/// Whether a line claims to be a verdict, readable or not.
pub(super) fn is_verdict(text: &str) -> bool {
    verdict::claim(text).is_some()
}

/// A line about the whole review, which ends whatever is above it.
pub(crate) fn is_control(text: &str) -> bool {
    verdict::claim(text).is_some() || count_on(text).is_some()
}

/// The verdict all lines agree on. Claims come first; hints decide only where there is no claim.
fn agree_on_verdict(
    claims: &[(usize, VerdictClaim)],
    hints: &Hints,
    problems: &mut Problems,
) -> Option<VerdictClaim> {
    let said = || claims.iter().chain(&hints.said);
    let Some((_, first)) = said().next() else {
        problems.note("no verdict".to_owned());
        return None;
    };
    if let Some((at, _)) = said().find(|(_, claim)| claim.verdict.is_none()) {
        problems.at(*at, "a verdict that could not be read");
        return None;
    }
    if let Some((at, _)) = said().find(|(_, claim)| claim.verdict != first.verdict) {
        problems.at(*at, "the verdict contradicts an earlier one");
        return None;
    }
    let asked = claims.iter().find(|(_, claim)| claim.wording == Wording::Asked);
    let other = said().find(|(_, claim)| claim.wording == Wording::Other);
    Some(asked.or(other).map_or(*first, |(_, claim)| *claim))
}

/// The verdict if nothing speaks against it. An approval that is not in the words asked for stands only beside
/// nothing that could be an objection, and only if it can't be a quotation (decision 063).
fn accepted_verdict(
    stated: VerdictClaim,
    claims: &[(usize, VerdictClaim)],
    hints: &Hints,
    context: ReviewContext<'_>,
    own: &[TextLine],
    found: &ParsedFindings,
    problems: &mut Problems,
) -> Option<Verdict> {
    let line = claims.first().or(hints.said.first()).map_or(0, |(at, _)| *at);
    let grave = hints.counted > 0 || found.findings.iter().any(|finding| finding.severity > Severity::Info);
    let objection = match (stated.verdict?, stated.wording) {
        (Verdict::Rejected, Wording::Issues) => {
            (!grave).then_some("it names issues, and none above INFO could be read")
        }
        (Verdict::Rejected, Wording::Asked | Wording::Other) => None,
        (Verdict::Approved, wording) => {
            let asked = wording == Wording::Asked && !claims.is_empty();
            if context.uncoded {
                Some("an approval without the code of the brief, which may be a quotation")
            } else if asked {
                None
            } else if grave {
                Some("it approves in other words and has findings above INFO")
            } else if !hints.objections.is_empty() {
                Some("it approves in other words and a part is rejected")
            } else {
                None
            }
        }
    };
    if stated.verdict == Some(Verdict::Approved)
        && let Some(at) = withdrawn::taken_back(own, line)
    {
        problems.at(at, "an unclear verdict: the approval is taken back");
        return None;
    }
    if let Some(objection) = objection {
        problems.at(line, format_args!("an unclear verdict: {objection}"));
        return None;
    }
    stated.verdict
}

fn agree_on_count(said: &[(usize, &str)], problems: &mut Problems) -> Option<u32> {
    let mut declared = None;
    for (at, count) in said.iter().filter_map(|(at, text)| Some((*at, count_on(text)?))) {
        match (declared, count) {
            (_, None) => problems.at(at, "a number of findings that could not be read"),
            (None, Some(count)) => declared = Some(count),
            (Some(before), Some(count)) if before != count => {
                problems.at(at, format_args!("{count} findings declared, {before} before"));
            }
            (Some(_), Some(_)) => {}
        }
    }
    declared
}

/// `FINDINGS: 3`. `Some(None)` begins with a number and is not one.
fn count_on(text: &str) -> Option<Option<u32>> {
    let value = after_keyword(undecorated(text)?, "findings")?;
    let value = value.trim_matches(|c| is_decoration(c) || c == '.');
    if value.is_empty() {
        return None;
    }
    if is_none(value) {
        return Some(Some(0));
    }
    // `Findings: 0 critical, 2 high` is a tally.
    let mut named = value.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).skip(1);
    let tally = named.next().is_some_and(|word| words::severity_of(word).is_some());
    (!tally && value.starts_with(|c: char| c.is_ascii_digit())).then(|| value.parse().ok())
}

/// The line without heading marks, a list marker and what decorates it. Rows of a table and added lines of a diff have
/// no say here.
fn undecorated(text: &str) -> Option<&str> {
    if text.len() > MAX_LINE || !first_word(text).eq_ignore_ascii_case("findings") {
        return None;
    }
    let text = text.trim();
    if text.starts_with('+') || table::is_row(text) {
        return None;
    }
    let text = text.trim_start_matches('#').trim_start();
    let text = bullet(text).map_or(text, |width| tail(text, width));
    Some(text.trim_matches(is_decoration))
}

fn after_keyword<'a>(text: &'a str, keyword: &str) -> Option<&'a str> {
    let (word, rest) = text.split_at_checked(keyword.len())?;
    if !word.eq_ignore_ascii_case(keyword) {
        return None;
    }
    rest.trim_start_matches(['*', '_', '`']).strip_prefix(':')
}
