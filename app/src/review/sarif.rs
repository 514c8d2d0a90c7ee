//! SARIF 2.1.0, for code scanning and viewers.
//!
//! It is always the whole review, also where only news were asked for: code scanning takes what is missing for fixed.
//! For the same reason what was refuted or resolved is no result, which would become an alert; it is among the
//! properties of the run.

use std::collections::BTreeMap;

use archeflow_core::model::{PROGRAM, Severity, Verdict};
use archeflow_core::strategies::review::{Frame, KnownFinding, Listed, Reviewer, Since, Standing};
use serde::Serialize;
use serde_json::{Value, json};

use super::rules::{self, Rule};
use super::{Sheet, most, words};
use archeflow_core::text::{log_line, log_text};

const SCHEMA: &str =
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json";
const ROOT: &str = "%SRCROOT%";
/// Code scanning wants a place for everything. This is the one of what is about no file.
const NOWHERE: &str = "whole-change";
/// No system has longer paths, and viewers stumble over longer addresses.
const LONGEST: usize = 4_096;

pub(super) fn draw(sheet: &Sheet<'_>, most_results: usize) -> Log {
    let listed = || sheet.all().filter(|(found, _)| found.standing != Standing::Refuted);
    let cut = listed().count().saturating_sub(most_results);
    let players = sheet.reviewed.reviewers.iter().map(player).collect();
    let mut filed = Filed { players, ..Filed::default() };
    let results =
        listed().take(most_results).map(|(found, frame)| result(sheet, found, frame, &mut filed)).collect();
    let root = sheet.repository_root.map(folder);
    let version_control_provenance = root.as_ref().map(|root| {
        let revision = log_line(&sheet.reviewed.commit, 100);
        json!([{ "repositoryUri": root, "revisionId": revision, "mappedTo": { "uriBaseId": ROOT } }])
    });
    let run = Run {
        tool: json!({ "driver": {
            "name": "archeflow",
            "fullName": format!("archeflow {}", log_line(sheet.version, 40)),
            "semanticVersion": log_line(sheet.version, 40),
            "shortDescription": { "text": "Reviews of a change by agents with different roles, checked by a program." },
            "rules": filed.rules,
        } }),
        automation_details: json!({ "id": automation(sheet), "description": { "text": about(sheet) } }),
        invocations: [invocation(sheet, cut, most_results)],
        original_uri_base_ids: json!({ ROOT: base(root.as_deref()) }),
        version_control_provenance,
        column_kind: "unicodeCodePoints",
        results,
        properties: properties(sheet),
    };
    Log { schema: SCHEMA, version: "2.1.0", runs: [run] }
}

#[derive(Serialize)]
pub(super) struct Log {
    #[serde(rename = "$schema")]
    schema: &'static str,
    version: &'static str,
    runs: [Run; 1],
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Run {
    tool: Value,
    automation_details: Value,
    invocations: [Value; 1],
    original_uri_base_ids: Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    version_control_provenance: Option<Value>,
    column_kind: &'static str,
    results: Vec<SarifResult>,
    properties: Value,
}

/// A result. There may be thousands, so that they are no trees of values.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SarifResult {
    rule_id: String,
    rule_index: usize,
    level: &'static str,
    message: Text,
    locations: [Location; 1],
    partial_fingerprints: Fingerprints,
    #[serde(skip_serializing_if = "Option::is_none")]
    baseline_state: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    suppressions: Option<Value>,
    properties: Provenance,
}

#[derive(Serialize)]
struct Text {
    text: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Location {
    physical_location: PhysicalLocation,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct PhysicalLocation {
    artifact_location: Artifact,
    #[serde(skip_serializing_if = "Option::is_none")]
    region: Option<Region>,
    #[serde(skip_serializing_if = "Option::is_none")]
    context_region: Option<Region>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Artifact {
    uri: String,
    uri_base_id: &'static str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Region {
    start_line: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    end_line: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    snippet: Option<Text>,
}

#[derive(Serialize)]
struct Fingerprints {
    #[serde(rename = "archeflowFinding/v1")]
    own: String,
    /// The one that code scanning knows an alert again by.
    #[serde(rename = "primaryLocationLineHash")]
    scanning: String,
}

/// Reviewer, evidence, and whether it was reproduced.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Provenance {
    generated_by: &'static str,
    sources: Vec<String>,
    reviewers: Vec<Value>,
    category: String,
    said: &'static str,
    standing: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    since: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    evidence: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    trial: Option<Value>,
}

/// The rules that were needed, each once, in the order they were.
#[derive(Default)]
struct Filed {
    /// Agents of the reviewers, in their order.
    players: Vec<Value>,
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

fn result(sheet: &Sheet<'_>, found: &Listed, frame: Option<&Frame>, filed: &mut Filed) -> SarifResult {
    let (rule_id, rule_index) = filed.index(found);
    let fingerprint = log_line(&found.fingerprint, 100);
    SarifResult {
        rule_id,
        rule_index,
        level: level(found.severity),
        message: Text { text: message(found) },
        locations: [Location { physical_location: place(found, frame) }],
        partial_fingerprints: Fingerprints { own: fingerprint.clone(), scanning: fingerprint },
        baseline_state: found.since.map(state),
        suppressions: suppressions(found),
        properties: provenance(sheet, found, &filed.players),
    }
}

fn suppressions(found: &Listed) -> Option<Value> {
    let Standing::Accepted(reason) = &found.standing else { return None };
    let reason = log_line(reason, most::PARAGRAPH);
    Some(json!([{ "kind": "external", "status": "accepted", "justification": reason }]))
}

/// Plain text; what a viewer would take for a link is broken up.
fn message(found: &Listed) -> String {
    words::message(found).replace("](", "] (")
}

fn place(found: &Listed, frame: Option<&Frame>) -> PhysicalLocation {
    let Some(uri) = Some(address(&found.file)).filter(|uri| !uri.is_empty() && found.file.len() <= LONGEST)
    else {
        let artifact_location = Artifact { uri: NOWHERE.to_owned(), uri_base_id: ROOT };
        return PhysicalLocation { artifact_location, region: None, context_region: None };
    };
    let artifact_location = Artifact { uri, uri_base_id: ROOT };
    if found.line == 0 {
        return PhysicalLocation { artifact_location, region: None, context_region: None };
    }
    let snippet = frame.and_then(|frame| cited(found, frame)).map(|text| Text { text });
    let region = Region { start_line: found.line, end_line: None, snippet };
    let around = frame.filter(|frame| frame.first > 0 && !frame.lines.is_empty());
    PhysicalLocation { artifact_location, region: Some(region), context_region: around.map(context) }
}

fn context(frame: &Frame) -> Region {
    let text: Vec<String> = frame.lines.iter().map(|text| log_text(text, most::CODE)).collect();
    let more = u32::try_from(frame.lines.len().saturating_sub(1)).unwrap_or(u32::MAX);
    let end_line = Some(frame.first.saturating_add(more));
    Region { start_line: frame.first, end_line, snippet: Some(Text { text: text.join("\n") }) }
}

fn cited(found: &Listed, frame: &Frame) -> Option<String> {
    let at = usize::try_from(found.line.checked_sub(frame.first)?).ok()?;
    frame.lines.get(at).map(|text| log_text(text, most::CODE))
}

/// A path as a relative address: percent signs for everything but the plainest letters.
fn address(path: &str) -> String {
    let mut out = String::with_capacity(path.len());
    // A first part with a colon would read as a scheme, and a leading slash as a place outside.
    for byte in path.trim_start_matches('/').bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => {
                out.push(char::from(byte));
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

fn provenance(sheet: &Sheet<'_>, found: &Listed, players: &[Value]) -> Provenance {
    let raised = |(reviewer, _): &(&Reviewer, &Value)| found.sources.contains(&reviewer.archetype);
    let those = sheet.reviewed.reviewers.iter().zip(players).filter(raised);
    Provenance {
        generated_by: if found.sources == [PROGRAM] { "program" } else { "ai" },
        sources: found.sources.iter().map(|source| log_line(source, 200)).collect(),
        reviewers: those.map(|(_, player)| player.clone()).collect(),
        category: log_line(&found.category, 100),
        said: found.said.name(),
        standing: words::standing(found),
        why: words::why(found).map(|why| log_line(why, most::SENTENCE)),
        since: found.since.map(words::since),
        evidence: (!found.evidence.is_empty()).then(|| log_line(&found.evidence, most::PARAGRAPH)),
        trial: found.trial.as_ref().map(|tried| {
            json!({
                "result": tried.trial.name(), "detail": log_line(&tried.detail, most::SENTENCE),
                "command": log_line(&tried.command, most::SENTENCE),
            })
        }),
    }
}

fn player(reviewer: &Reviewer) -> Value {
    let player = reviewer.player.as_ref();
    let said = |of: Option<&String>| of.map(|text| log_line(text, 200)).filter(|text| !text.is_empty());
    json!({
        "archetype": log_line(&reviewer.archetype, 200),
        "vendor": said(player.map(|player| &player.vendor)),
        "model": said(player.map(|player| &player.model)),
        "clientVersion": said(player.map(|player| &player.version)),
    })
}

/// What happened, and what was not looked at.
fn invocation(sheet: &Sheet<'_>, cut: usize, most: usize) -> Value {
    let mut said = words::gaps(sheet.reviewed);
    if cut > 0 {
        said.push(format!("{cut} findings are left out: code scanning takes {most} in a run."));
    }
    let notes: Vec<Value> =
        said.iter().map(|text| json!({ "level": "warning", "message": { "text": text } })).collect();
    let ended = sheet.reviewed.outcome.as_ref().is_some_and(|outcome| outcome.exit_code() == 0);
    json!({ "executionSuccessful": ended, "toolExecutionNotifications": notes })
}

/// Reviews of the same thing have the same category; the part behind the last slash is the run.
fn automation(sheet: &Sheet<'_>) -> String {
    let kind = sheet.reviewed.subject.kind.name().replace(' ', "-");
    format!("archeflow/{kind}/{}", log_line(sheet.run_id, 100))
}

fn about(sheet: &Sheet<'_>) -> String {
    format!("Review of {}: {}", words::subject(sheet.reviewed), words::counts(sheet.reviewed))
}

fn properties(sheet: &Sheet<'_>) -> Value {
    let reviewed = sheet.reviewed;
    let refuted = reviewed.findings.iter().filter(|found| found.standing == Standing::Refuted);
    json!({
        "runId": log_line(sheet.run_id, 100),
        "base": log_line(&reviewed.base, 100),
        "commit": log_line(&reviewed.commit, 100),
        "wholeChangeReviewed": reviewed.is_whole(),
        "summarisedFiles": reviewed.summarised,
        "reviewers": reviewed.reviewers.iter().map(reviewer).collect::<Vec<_>>(),
        "refuted": refuted.take(most::RESULTS).map(|found| json!({
            "fingerprint": log_line(&found.fingerprint, 100), "ruleId": rules::id(found),
            "place": log_line(&found.place(), most::SENTENCE), "text": log_line(&found.description, most::SENTENCE),
        })).collect::<Vec<_>>(),
        "resolved": reviewed.resolved.iter().take(most::RESULTS).map(resolved).collect::<Vec<_>>(),
    })
}

fn reviewer(reviewer: &Reviewer) -> Value {
    json!({
        "archetype": log_line(&reviewer.archetype, 200),
        "agent": log_line(&reviewer.agent, 200),
        "verdict": reviewer.verdict.map(Verdict::name),
        "missedParts": reviewer.missed,
    })
}

fn resolved(known: &KnownFinding) -> Value {
    json!({
        "fingerprint": log_line(&known.fingerprint, 100), "rule": log_line(&known.rule, 100),
        "file": log_line(&known.file, most::SENTENCE), "text": log_line(&known.description, most::SENTENCE),
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
