//! SARIF 2.1.0, for code scanning and viewers.
//!
//! It is always the whole review, also where only news were asked for: code scanning takes what is missing for fixed.
//! For the same reason what was refuted or resolved is no result, which would become an alert; it stands among the
//! properties of the run.

use std::collections::BTreeMap;

use archeflow_core::review::{Frame, Known, Listed, Reviewer, Since, Standing};
use archeflow_core::words::Severity;
use serde_json::{Value, json};

use super::rules::{self, Rule};
use super::text::{line, lines};
use super::{Sheet, most, words};

const SCHEMA: &str =
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json";
const ROOT: &str = "%SRCROOT%";
/// Code scanning wants a place for everything. This is the one of what is about no file.
const NOWHERE: &str = "whole-change";

pub(super) fn draw(sheet: &Sheet<'_>) -> Value {
    let listed = || sheet.all().filter(|(found, _)| found.standing != Standing::Refuted);
    let cut = listed().count().saturating_sub(most::RESULTS);
    let mut filed = Filed::default();
    let results: Vec<Value> =
        listed().take(most::RESULTS).map(|(found, frame)| result(sheet, found, frame, &mut filed)).collect();
    let mut run = json!({
        "tool": { "driver": {
            "name": "archeflow",
            "fullName": format!("archeflow {}", line(sheet.version, 40)),
            "semanticVersion": line(sheet.version, 40),
            "shortDescription": { "text": "Reviews of a change by agents with different roles, checked by a program." },
            "rules": filed.rules,
        } },
        "automationDetails": { "id": automation(sheet), "description": { "text": about(sheet) } },
        "invocations": [invocation(sheet, cut)],
        "columnKind": "unicodeCodePoints",
        "results": results,
        "properties": properties(sheet),
    });
    let root = sheet.repository_root.map(folder);
    run["originalUriBaseIds"] = json!({ ROOT: base(root.as_deref()) });
    if let Some(root) = &root {
        run["versionControlProvenance"] = json!([{
            "repositoryUri": root, "revisionId": line(&sheet.reviewed.commit, 100), "mappedTo": { "uriBaseId": ROOT },
        }]);
    }
    json!({ "$schema": SCHEMA, "version": "2.1.0", "runs": [run] })
}

/// The rules that were needed, each once, in the order they were.
#[derive(Default)]
struct Filed {
    rules: Vec<Value>,
    index: BTreeMap<String, usize>,
}

impl Filed {
    fn index(&mut self, found: &Listed) -> (String, usize) {
        let id = rules::id(found);
        if let Some(at) = self.index.get(&id) {
            return (id, *at);
        }
        self.index.insert(id.clone(), self.rules.len());
        self.rules.push(rule(&rules::rule(found)));
        (id, self.rules.len() - 1)
    }
}

fn rule(rule: &Rule) -> Value {
    let mut properties =
        json!({ "tags": ["ai-review"], "precision": "medium", "problem.severity": problem(rule.severity) });
    if let Some(score) = rule.score {
        properties["tags"] = json!(["ai-review", "security"]);
        properties["security-severity"] = score.into();
    }
    json!({
        "id": rule.id,
        "name": rule.name,
        "shortDescription": { "text": rule.about },
        "fullDescription": { "text": format!("{}. {}", rule.about, rule.help) },
        "help": { "text": rule.help },
        "defaultConfiguration": { "level": level(rule.severity) },
        "properties": properties,
    })
}

fn result(sheet: &Sheet<'_>, found: &Listed, frame: Option<&Frame>, filed: &mut Filed) -> Value {
    let (rule, index) = filed.index(found);
    let fingerprint = line(&found.fingerprint, 100);
    let mut result = json!({
        "ruleId": rule,
        "ruleIndex": index,
        "level": level(found.severity),
        "message": { "text": message(found) },
        "locations": [location(found, frame)],
        // The second is the one that code scanning knows an alert again by.
        "partialFingerprints": { "archeflowFinding/v1": fingerprint, "primaryLocationLineHash": fingerprint },
        "properties": provenance(sheet, found),
    });
    if let Some(since) = found.since {
        result["baselineState"] = state(since).into();
    }
    if let Standing::Accepted(reason) = &found.standing {
        let reason = line(reason, most::PARAGRAPH);
        result["suppressions"] =
            json!([{ "kind": "external", "status": "accepted", "justification": reason }]);
    }
    result
}

/// Plain text; what a viewer would take for a link is broken up.
fn message(found: &Listed) -> String {
    words::message(found).replace("](", "] (")
}

fn location(found: &Listed, frame: Option<&Frame>) -> Value {
    let uri = if found.file.is_empty() { NOWHERE.to_owned() } else { address(&found.file) };
    let mut place = json!({ "artifactLocation": { "uri": uri, "uriBaseId": ROOT } });
    if !found.file.is_empty() && found.line > 0 {
        place["region"] = json!({ "startLine": found.line });
        if let Some(cited) = frame.and_then(|frame| cited(found, frame)) {
            place["region"]["snippet"] = json!({ "text": cited });
        }
        if let Some(frame) = frame.filter(|frame| frame.first > 0 && !frame.lines.is_empty()) {
            let text: Vec<String> = frame.lines.iter().map(|text| lines(text, most::CODE)).collect();
            let last = u32::try_from(frame.lines.len() - 1).unwrap_or(u32::MAX).saturating_add(frame.first);
            place["contextRegion"] =
                json!({ "startLine": frame.first, "endLine": last, "snippet": { "text": text.join("\n") } });
        }
    }
    json!({ "physicalLocation": place })
}

fn cited(found: &Listed, frame: &Frame) -> Option<String> {
    let at = usize::try_from(found.line.checked_sub(frame.first)?).ok()?;
    frame.lines.get(at).map(|text| lines(text, most::CODE))
}

/// A path as a relative address: percent signs for everything but the plainest letters.
fn address(path: &str) -> String {
    let mut out = String::with_capacity(path.len());
    // A first part with a colon would read as a scheme, and a leading slash as a place outside.
    for byte in path.trim_start_matches('/').bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => {
                out.push(char::from(byte))
            }
            byte => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

fn folder(root: &str) -> String {
    format!("file:///{}/", address(root).trim_end_matches('/'))
}

fn base(root: Option<&str>) -> Value {
    let mut base = json!({ "description": { "text": "The root of the reviewed repository." } });
    if let Some(root) = root {
        base["uri"] = root.into();
    }
    base
}

/// Who says so, by what, and whether it was tried.
fn provenance(sheet: &Sheet<'_>, found: &Listed) -> Value {
    let raised = |reviewer: &&Reviewer| found.sources.contains(&reviewer.archetype);
    let reviewers = sheet.reviewed.reviewers.iter().filter(raised).map(|reviewer| {
        let player = reviewer.player.as_ref();
        let said = |of: Option<&String>| of.map(|text| line(text, 200)).filter(|text| !text.is_empty());
        json!({
            "archetype": line(&reviewer.archetype, 200),
            "vendor": said(player.map(|player| &player.vendor)),
            "model": said(player.map(|player| &player.model)),
            "clientVersion": said(player.map(|player| &player.version)),
        })
    });
    let text = |text: &str| (!text.is_empty()).then(|| line(text, most::PARAGRAPH));
    json!({
        "generatedBy": "ai",
        "sources": found.sources.iter().map(|source| line(source, 200)).collect::<Vec<_>>(),
        "reviewers": reviewers.collect::<Vec<_>>(),
        "category": line(&found.category, 100),
        "said": found.said.name(),
        "standing": words::standing(found),
        "why": words::why(found).map(|why| line(why, most::SENTENCE)),
        "since": found.since.map(words::since),
        "evidence": text(&found.evidence),
        "fix": text(&found.fix),
        "trial": found.trial.as_ref().map(|tried| json!({
            "result": tried.trial.name(), "detail": line(&tried.detail, most::SENTENCE),
            "command": line(&tried.command, most::SENTENCE),
        })),
    })
}

/// What happened, and what was not looked at.
fn invocation(sheet: &Sheet<'_>, cut: usize) -> Value {
    let mut said = words::gaps(sheet.reviewed);
    if cut > 0 {
        said.push(format!("{cut} findings are left out: code scanning takes {} in a run.", most::RESULTS));
    }
    let notes: Vec<Value> =
        said.iter().map(|text| json!({ "level": "warning", "message": { "text": text } })).collect();
    let ended = sheet.reviewed.outcome.as_ref().is_some_and(|outcome| outcome.exit_code() == 0);
    json!({ "executionSuccessful": ended, "toolExecutionNotifications": notes })
}

/// Reviews of the same thing have the same category; the part behind the last slash is the run.
fn automation(sheet: &Sheet<'_>) -> String {
    let kind = sheet.reviewed.subject.kind.name().replace(' ', "-");
    format!("archeflow/{kind}/{}", line(sheet.run_id, 100))
}

fn about(sheet: &Sheet<'_>) -> String {
    format!("Review of {}: {}", words::subject(sheet.reviewed), words::counts(sheet.reviewed))
}

fn properties(sheet: &Sheet<'_>) -> Value {
    let reviewed = sheet.reviewed;
    let refuted = reviewed.findings.iter().filter(|found| found.standing == Standing::Refuted);
    json!({
        "runId": line(sheet.run_id, 100),
        "base": line(&reviewed.base, 100),
        "commit": line(&reviewed.commit, 100),
        "wholeChangeReviewed": reviewed.is_whole(),
        "summarisedFiles": reviewed.summarised,
        "reviewers": reviewed.reviewers.iter().map(reviewer).collect::<Vec<_>>(),
        "refuted": refuted.take(most::RESULTS).map(|found| json!({
            "fingerprint": line(&found.fingerprint, 100), "ruleId": rules::id(found),
            "place": line(&found.place(), most::SENTENCE), "text": line(&found.description, most::SENTENCE),
        })).collect::<Vec<_>>(),
        "resolved": reviewed.resolved.iter().take(most::RESULTS).map(resolved).collect::<Vec<_>>(),
    })
}

fn reviewer(reviewer: &Reviewer) -> Value {
    json!({
        "archetype": line(&reviewer.archetype, 200),
        "agent": line(&reviewer.agent, 200),
        "verdict": reviewer.verdict.map(|verdict| verdict.name()),
        "missedParts": reviewer.missed,
    })
}

fn resolved(known: &Known) -> Value {
    json!({
        "fingerprint": line(&known.fingerprint, 100), "rule": line(&known.rule, 100),
        "file": line(&known.file, most::SENTENCE), "text": line(&known.description, most::SENTENCE),
    })
}

/// What is back after it was resolved was not there in the baseline.
fn state(since: Since) -> &'static str {
    match since {
        Since::New | Since::Regressed => "new",
        Since::Persistent => "unchanged",
    }
}

fn level(severity: Severity) -> &'static str {
    match severity {
        Severity::Critical => "error",
        Severity::Warning => "warning",
        Severity::Info => "note",
    }
}

fn problem(severity: Severity) -> &'static str {
    match severity {
        Severity::Critical => "error",
        Severity::Warning => "warning",
        Severity::Info => "recommendation",
    }
}
