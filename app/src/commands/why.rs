//! `archeflow show <id> --why`: every decision, or one of them in full (AF-196).

use archeflow_core::event::{CycleBoundary, DecisionRecord, Entry, Tracked, Verb};
use archeflow_core::projections::replay::decision::{self, ExplainedDecision};
use archeflow_core::projections::replay::{rulebook, timeline};
use archeflow_core::projections::view;
use archeflow_core::rules::identity::FindingClaim;
use archeflow_host::clock;

use crate::commands::replay::two_places;
use crate::failure::Failure;
use crate::render::text::{pad, safe_line};

/// Every decision on a line of its own.
pub(crate) fn list(entries: &[Entry]) -> String {
    let mut out = String::new();
    for entry in entries {
        if let Some(why) = view::why(entry) {
            put!(
                out,
                "#{:<4} {} {} {}: {} => {}",
                entry.seq,
                clock::written(entry.at),
                pad(&safe_line(&why.rule), 7),
                safe_line(&why.who),
                safe_line(&why.input),
                safe_line(&why.decision)
            );
        }
        if let Some(record) = entry.event.body::<DecisionRecord>() {
            put!(out, "      instead of: {}", safe_line(&record.alternatives.join("; ")));
        }
    }
    out
}

/// The decisions a line number, a rule, an archetype or a topic names, each in full.
pub(crate) fn explain(id: &str, entries: &[Entry], what: &str) -> Result<String, Failure> {
    let decisions = timeline::of(entries);
    let named: Vec<&ExplainedDecision> = match what.trim_start_matches('#').parse::<u64>() {
        Ok(seq) => decisions.iter().filter(|decision| decision.seq == seq).collect(),
        Err(_) => decisions.iter().filter(|decision| is_about(decision, what)).collect(),
    };
    if named.is_empty() {
        return Err(nothing(id, entries, &decisions, what));
    }
    let mut out = String::new();
    for (at, decision) in named.into_iter().enumerate() {
        if at > 0 {
            put!(out);
        }
        print(&mut out, decision, entries);
    }
    Ok(out)
}

fn is_about(decision: &ExplainedDecision, what: &str) -> bool {
    let topic = rulebook::find(&decision.rule).map_or("", |rule| rule.topic);
    decision.rule.eq_ignore_ascii_case(what)
        || decision.who.eq_ignore_ascii_case(what)
        || topic.eq_ignore_ascii_case(what)
}

/// What there is instead.
fn nothing(id: &str, entries: &[Entry], decisions: &[ExplainedDecision], what: &str) -> Failure {
    let seqs: Vec<String> = decisions.iter().map(|decision| decision.seq.to_string()).collect();
    let mut topics: Vec<&str> = decisions
        .iter()
        .filter_map(|decision| rulebook::find(&decision.rule))
        .map(|rule| rule.topic)
        .collect();
    topics.sort_unstable();
    topics.dedup();
    let hint = format!("Decisions are in the lines {}. Topics: {}", seqs.join(", "), topics.join(", "));
    let seq = what.trim_start_matches('#').parse::<u64>().ok();
    let message = match entries.iter().find(|entry| Some(entry.seq) == seq) {
        Some(entry) => format!("line #{} of {id} is no decision but {}", entry.seq, entry.event.name()),
        None if seq.is_some() => format!("{id} has no line #{what}; its last is #{}", entries.len()),
        None => format!("no decision of {id} is about '{what}'"),
    };
    Failure::usage(message, hint)
}

fn print(out: &mut String, decision: &ExplainedDecision, entries: &[Entry]) {
    let rule = rulebook::find(&decision.rule);
    let topic = rule.map_or_else(String::new, |rule| format!(", {}", rule.topic));
    let place = match decision.cycle {
        0 => "before the first cycle".to_owned(),
        cycle => format!("cycle {cycle}, {}", view::capital(decision.phase.name())),
    };
    put!(
        out,
        "#{} {}{topic} ({place}, {})",
        decision.seq,
        safe_line(&decision.rule),
        clock::written(decision.at)
    );
    let mut line = |what: &str, text: &str| {
        if !text.is_empty() {
            put!(out, "  {} {}", pad(what, 11), safe_line(text));
        }
    };
    line("decided", &decision.decision);
    line("concerns", &decision.who);
    line("instead of", &decision.alternatives.join("; "));
    line("because", &decision.rationale);
    line("looked at", &decision.input);
    line("confidence", &decision.confidence.map(two_places).unwrap_or_default());
    line("the rule", rule.map_or("", |rule| rule.says));
    line("written in", &rule.map(|rule| format!("{} ({})", rule.path(), rule.number)).unwrap_or_default());
    line("follows", &causes(decision, entries));
    line("led to", &effects(decision, entries));
    for (finding, remarks) in findings(decision, entries) {
        line("finding", &finding);
        remarks.iter().for_each(|remark| line("", remark));
    }
}

/// The findings that a cycle left open, each with what other reviewers wrote about it and why it is the one of the cycle
/// before.
fn findings(decision: &ExplainedDecision, entries: &[Entry]) -> Vec<(String, Vec<String>)> {
    let ends: Vec<(u64, &CycleBoundary)> =
        entries.iter().filter_map(|entry| Some((entry.seq, entry.event.body::<CycleBoundary>()?))).collect();
    let Some(at) = ends.iter().position(|(seq, _)| is_decided_by(decision, *seq, entries)) else {
        return Vec::new();
    };
    let before = at.checked_sub(1).and_then(|at| ends.get(at)).map_or(&[][..], |(_, end)| &end.open);
    let open = ends.get(at).map_or(&[][..], |(_, end)| &end.open);
    open.iter().map(|found| (found.id.clone(), remarks(found, before))).collect()
}

/// The end of a cycle stands right behind the decision, with the record of the alternatives between them.
fn is_decided_by(decision: &ExplainedDecision, boundary: u64, entries: &[Entry]) -> bool {
    if boundary == decision.seq {
        return true;
    }
    let between = entries.iter().filter(|entry| entry.seq > decision.seq && entry.seq < boundary);
    boundary > decision.seq && between.into_iter().all(|entry| entry.event.body::<DecisionRecord>().is_some())
}

fn remarks(found: &Tracked, before: &[Tracked]) -> Vec<String> {
    let mut remarks: Vec<String> = found
        .also
        .iter()
        .map(|remark| format!("{} writes about it: {}", view::capital(&remark.source), remark.description))
        .collect();
    if found.cycles_open > 1 {
        let claim = FindingClaim::of_tracked(found);
        let compared = before.iter().map(|known| (known, claim.compare(&FindingClaim::of_tracked(known))));
        let nearest =
            compared.filter(|(_, likeness)| likeness.is_same()).max_by_key(|(_, likeness)| likeness.points);
        if let Some((known, likeness)) = nearest {
            remarks.push(format!("the same as {} of the cycle before: {likeness}", known.id));
        }
    }
    remarks
}

fn named(entry: &Entry) -> String {
    let who = entry.agent.as_ref().map_or_else(String::new, |agent| format!(" {agent}"));
    format!("#{} {}{who}", entry.seq, entry.event.name())
}

/// The lines that caused it (AF-161).
fn causes(decision: &ExplainedDecision, entries: &[Entry]) -> String {
    let own = entries.iter().find(|entry| entry.seq == decision.seq);
    let parents = own.map(|entry| entry.parent.as_slice()).unwrap_or_default();
    let told = entries.iter().filter(|entry| parents.contains(&entry.seq)).map(named);
    told.collect::<Vec<_>>().join(", ")
}

/// What was ordered or ended before the next report.
fn effects(decision: &ExplainedDecision, entries: &[Entry]) -> String {
    let after = entries.iter().skip_while(|entry| entry.seq <= decision.seq);
    let until = after.take_while(|entry| entry.event.verb() != Verb::Reported);
    let told: Vec<String> = until
        .filter(|entry| entry.event.verb() == Verb::Ordered || entry.event.name() == "run.complete")
        .map(|entry| format!("#{} {}", entry.seq, decision::describe(&entry.event).decision))
        .collect();
    told.join(", ")
}
