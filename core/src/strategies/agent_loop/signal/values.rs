//! What the words behind a label mean.

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

fn speakers(value: &str) -> Vec<Speaker> {
    value.split(|c: char| !c.is_alphanumeric()).filter_map(Speaker::parse).collect()
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

/// The result. Two different words are none: a verdict is never guessed.
pub(super) fn result(value: &str) -> (Option<Token>, Vec<How>) {
    let found: Vec<(Token, bool)> = words(value).filter_map(|word| token(&word)).collect();
    let Some((first, is_other)) = found.first().copied() else { return (None, vec![How::UnknownResult]) };
    if found.iter().any(|(other, _)| *other != first) {
        return (None, vec![How::SeveralResults]);
    }
    if is_taken_back(value) {
        return (None, vec![How::UnknownResult]);
    }
    let mut notes = Vec::new();
    if is_other {
        notes.push(How::OtherResult);
    } else if !first.is_of_the_grammar() {
        notes.push(How::ExtendedResult);
    }
    let single = words(value).count() == 1;
    let exact = token_exactly(value).is_some() || (is_other && undecorated(value) == value);
    match (exact, single) {
        (true, true) => {}
        (_, true) => notes.push(How::DecoratedResult),
        (_, false) => notes.push(How::ResultWords),
    }
    (Some(first), notes)
}

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

/// `NOT PASS`, `PASS if …`: words that take a result back. `PASS, no findings` is none of them.
fn is_taken_back(value: &str) -> bool {
    let words: Vec<String> = words(value).collect();
    let at = words.iter().position(|word| token(word).is_some()).unwrap_or(0);
    let before = ["NOT", "NO", "NEVER", "ALMOST", "NEARLY", "NON", "CANNOT", "WOULD", "SHOULD"];
    let behind = ["IF", "UNLESS", "PENDING", "ONCE", "EXCEPT", "PROVIDED"];
    let among = |word: &String, list: &[&str]| list.contains(&word.as_str());
    (0..).zip(&words).any(|(n, word)| (n < at && among(word, &before)) || among(word, &behind))
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
