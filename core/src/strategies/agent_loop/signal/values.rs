//! What the words behind a label mean.

use super::standing::{Standing, is_struck_out, standing, withdraws};
use super::{How, Signature};
use crate::model::{Risk, Speaker, Token};
use crate::read::text::{is_emoji, tail};

/// The author of the block. Nothing is guessed: two different names are none.
pub(super) fn agent(value: &str) -> (Option<Speaker>, Option<How>) {
    if let Some(speaker) = exactly(value) {
        return (Some(speaker), None);
    }
    let bare = undecorated(value);
    if let Some(speaker) = Speaker::parse(bare) {
        return (Some(speaker), Some(How::DecoratedAgent));
    }
    // Text in brackets or behind a dash explains; it does not name.
    let end = bare.find(['(', '[', ',', ';', '–', '—', '→', '>']).unwrap_or(bare.len());
    let named = speakers(bare.get(..end).unwrap_or(""));
    match named.as_slice() {
        [] => (None, Some(How::UnknownAgent)),
        [one, rest @ ..] if rest.iter().all(|other| other == one) => (Some(*one), Some(How::AgentWords)),
        _ => (None, Some(How::SeveralAgents)),
    }
}

/// The next agent: the first that is named.
pub(super) fn next(value: &str) -> (Option<Speaker>, Option<How>) {
    if let Some(speaker) = exactly(value) {
        return (Some(speaker), None);
    }
    if let Some(speaker) = Speaker::parse(undecorated(value)) {
        return (Some(speaker), Some(How::DecoratedNext));
    }
    let named = speakers(value);
    let Some(first) = named.first() else { return (None, Some(How::UnknownNext)) };
    let several = named.iter().any(|other| other != first);
    (Some(*first), Some(if several { How::SeveralNext } else { How::NextWords }))
}

fn exactly(value: &str) -> Option<Speaker> {
    Speaker::ALL.into_iter().find(|speaker| speaker.name() == value)
}

pub(super) fn first_speaker(value: &str) -> Option<Speaker> {
    speakers(value).first().copied()
}

/// The names in a text. `not the Actor` names nobody.
fn speakers(value: &str) -> Vec<Speaker> {
    let words = value.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    let mut denied = false;
    let mut named = Vec::new();
    for word in words {
        let speaker = Speaker::parse(word);
        named.extend(speaker.filter(|_| !denied));
        denied = word.eq_ignore_ascii_case("not") || (denied && word.eq_ignore_ascii_case("the"));
    }
    named
}

fn undecorated(value: &str) -> &str {
    value.trim_matches(|c: char| {
        matches!(c, '*' | '_' | '`' | '.' | '!' | '[' | ']' | '"' | '\'') || c.is_whitespace() || is_emoji(c)
    })
}

/// Words that practice uses for one of the grammar's, and that mean nothing else.
const OTHERS: [(&str, Token); 10] = [
    ("SUFFICIENT", Token::Pass),
    ("PASSED", Token::Pass),
    ("FAILED", Token::Fail),
    ("FAILURE", Token::Fail),
    ("SUCCEEDED", Token::Success),
    ("SUCCESSFUL", Token::Success),
    ("INITIALIZED", Token::Init),
    ("PLAN_REVISED", Token::PlanUpdated),
    ("PLAN_READY", Token::PlanCreated),
    ("CHANGES_REQUESTED", Token::RevisionRequested),
];

/// What an Actor calls a step that is done. A Judge that says so has judged nothing.
const DONE: [&str; 9] = [
    "COMPLETE",
    "COMPLETED",
    "DONE",
    "FINISHED",
    "LOOP_COMPLETE",
    "STEP_COMPLETE",
    "GOAL_COMPLETE",
    "TASK_COMPLETE",
    "IMPLEMENTED",
];

/// The result. Two different words are none: a verdict is never guessed.
pub(super) fn result(value: &str, agent: Option<Speaker>) -> (Option<Token>, Vec<How>) {
    let words: Vec<String> = without_none_failed(words(value).collect());
    let found: Vec<(Token, bool)> = words.iter().filter_map(|word| token(word)).collect();
    let Some((first, is_other)) = found.first().copied() else { return done(value, &words, agent) };
    // Struck out beside another word or not: what was written is not what counts.
    if is_struck_out(value) {
        return (None, vec![How::WithdrawnResult]);
    }
    if found.iter().any(|(other, _)| *other != first) {
        return (None, vec![How::SeveralResults]);
    }
    let at = words.iter().position(|word| token(word).is_some()).unwrap_or(0);
    match standing(value, &words, at, first) {
        Standing::Withdrawn => return (None, vec![How::WithdrawnResult]),
        Standing::Hedged => return (None, vec![How::HedgedResult]),
        Standing::Stands => {}
    }
    let mut notes = Vec::new();
    if is_other {
        notes.push(How::OtherResult);
    } else if !first.is_of_the_grammar() {
        notes.push(How::ExtendedResult);
    }
    let single = words.len() == 1;
    let exact = token_exactly(value).is_some() || (is_other && undecorated(value) == value);
    match (exact, single) {
        (true, true) => {}
        (_, true) => notes.push(How::DecoratedResult),
        (_, false) => notes.push(How::ResultWords),
    }
    (Some(first), notes)
}

/// `14 passed, 0 failed` names no failure.
fn without_none_failed(words: Vec<String>) -> Vec<String> {
    let none = |word: &String| matches!(word.as_str(), "0" | "NO" | "ZERO");
    let fails = |word: &String| token(word).is_some_and(|(token, _)| token == Token::Fail);
    let mut kept: Vec<String> = Vec::with_capacity(words.len());
    for word in words {
        if fails(&word) && kept.last().is_some_and(none) {
            kept.pop();
        } else {
            kept.push(word);
        }
    }
    kept
}

/// A value without a known word. An Actor that is done has succeeded as far as it can tell; it is judged in any case.
fn done(value: &str, words: &[String], agent: Option<Speaker>) -> (Option<Token>, Vec<How>) {
    let at = words.iter().position(|word| DONE.contains(&word.as_str()));
    let Some(at) = at.filter(|_| agent == Some(Speaker::Actor)) else {
        let withdrawn = is_struck_out(value) || withdraws(value);
        return (None, vec![if withdrawn { How::WithdrawnResult } else { How::UnknownResult }]);
    };
    match standing(value, words, at, Token::Success) {
        Standing::Stands => (Some(Token::Success), vec![How::OtherResult]),
        Standing::Hedged => (None, vec![How::HedgedResult]),
        Standing::Withdrawn => (None, vec![How::WithdrawnResult]),
    }
}

/// Whether another field for the same thing contradicts this result: it says something else, or takes it back.
pub(super) fn contradicts(value: &str, result: Option<Token>) -> bool {
    let Some(result) = result else { return false };
    let words: Vec<String> = words(value).collect();
    let other = words.iter().any(|word| token(word).is_some_and(|(other, _)| other != result));
    let at = words.iter().position(|word| token(word).is_some()).unwrap_or(words.len());
    let rejects = words.iter().any(|word| REJECTING.contains(&word.as_str()));
    other || rejects || standing(value, &words, at, Token::Success) == Standing::Withdrawn
}

const REJECTING: [&str; 6] = ["REJECTED", "REJECT", "DECLINED", "BLOCKED", "DENIED", "REFUSED"];

/// `PLAN CREATED` is two words and one token.
fn words(value: &str) -> impl Iterator<Item = String> {
    let text = value.to_ascii_uppercase();
    let text = ["PLAN CREATED", "PLAN UPDATED", "CLARIFICATION NEEDED", "PR MERGED", "REVISION REQUESTED"]
        .iter()
        .fold(text, |text, pair| text.replace(pair, &pair.replace(' ', "_")));
    let split: Vec<String> = text
        .split(|c: char| !c.is_alphanumeric() && c != '_')
        .map(|word| word.trim_matches('_').to_owned())
        .filter(|word| !word.is_empty())
        .collect();
    split.into_iter()
}

fn token(word: &str) -> Option<(Token, bool)> {
    let known = Token::ALL.into_iter().find(|token| token.name() == word).map(|token| (token, false));
    known.or_else(|| OTHERS.iter().find(|(other, _)| *other == word).map(|(_, token)| (*token, true)))
}

fn token_exactly(value: &str) -> Option<Token> {
    Token::ALL.into_iter().find(|token| token.name() == value)
}

/// The highest level that is named.
pub(super) fn risk(value: &str) -> Option<Risk> {
    value.split(|c: char| !c.is_alphanumeric()).filter_map(Risk::parse).max()
}

/// `7`, `7/10`, `7.5 of 10`: as it should be. `4/5` and `80 %` are on another scale.
pub(super) fn confidence(value: &str) -> (Option<u32>, Option<How>) {
    let bare = undecorated(value);
    let digits = bare.bytes().take_while(u8::is_ascii_digit).count();
    let Some(whole) = bare.get(..digits).and_then(|text| text.parse::<u32>().ok()) else {
        return (None, Some(How::UnreadableConfidence));
    };
    let rest = tail(bare, digits);
    let fraction =
        rest.strip_prefix(['.', ',']).map(|rest| rest.trim_start_matches(|c: char| c.is_ascii_digit()));
    let rest = fraction.unwrap_or(rest).trim_start();
    let scale: Option<u32> = match rest.strip_prefix('/').or_else(|| rest.strip_prefix("of ")) {
        Some(scale) => {
            let scale = scale.trim_start();
            let digits = scale.bytes().take_while(u8::is_ascii_digit).count();
            scale.get(..digits).and_then(|text| text.parse().ok())
        }
        None if rest.starts_with('%') => Some(100),
        None => Some(10),
    };
    match scale {
        Some(10) if whole <= 10 => (Some(whole), None),
        Some(scale @ (5 | 100)) if whole <= scale => (Some(whole * 10 / scale), Some(How::ConfidenceScale)),
        Some(_) | None => (None, Some(How::UnreadableConfidence)),
    }
}

/// `Project=x | Agent=Human | Step=2`, or `goal:loop:step`.
pub(super) fn signature(value: &str) -> Option<Signature> {
    let bare = undecorated(value);
    if !bare.contains('=') {
        let parts: Vec<&str> = bare.split(':').map(str::trim).collect();
        let [goal, turn, step] = parts.as_slice() else { return None };
        let full = !goal.is_empty() && !turn.is_empty() && !step.is_empty();
        return full.then(|| Signature::Goal {
            goal: (*goal).to_owned(),
            turn: (*turn).to_owned(),
            step: (*step).to_owned(),
        });
    }
    let of = |name: &str| {
        let pairs = bare.split(['|', ',', ';']).filter_map(|pair| pair.split_once('='));
        let mut named = pairs.filter(|(label, _)| undecorated(label).eq_ignore_ascii_case(name));
        named.next().map(|(_, value)| undecorated(value))
    };
    let (project, agent, step) = (of("project")?, of("agent")?, of("step")?);
    Some(Signature::Project {
        project: project.to_owned(),
        agent: first_speaker(agent),
        step: step.to_owned(),
    })
}

/// The author, where the signature has one: by name, or by the step's number (MX-04).
pub(super) fn signer(signature: &Signature) -> Option<Speaker> {
    match signature {
        Signature::Project { agent, .. } => *agent,
        Signature::Goal { step, .. } => match step.as_str() {
            "0" | "4" => Some(Speaker::Human),
            "1" => Some(Speaker::Planner),
            "2" => Some(Speaker::Actor),
            "3" => Some(Speaker::Judge),
            _ => None,
        },
    }
}
