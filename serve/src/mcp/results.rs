//! What a model is given: the objects of `--json`, cut to what it needs. Both the text and the structured content of a result
//! are this object, since clients hand on the one or the other.

use archeflow_core::rules::signs::without_credentials;
use archeflow_core::text::{short_line, short_text};
use serde_json::{Map, Value, json};

/// Findings, decisions, runs or items in one result.
pub(super) const MOST: usize = 50;
/// Characters of a description.
const DESCRIPTION: usize = 600;
const FIX: usize = 400;
const LINE: usize = 300;
/// Of a list within an object.
const ITEMS: usize = 20;

/// Some fields of an object, with their texts cut to a line.
fn some(object: &Value, fields: &[&str]) -> Map<String, Value> {
    let kept = fields.iter().filter_map(|name| {
        let value = object.get(*name).filter(|value| !value.is_null())?;
        // Agents and other programs may have said it, who print what they were given.
        let value = match value.as_str().filter(|_| *name == "detail") {
            Some(text) => cut(&without_credentials(text).into()),
            None => cut(value),
        };
        Some(((*name).to_owned(), value))
    });
    kept.collect()
}

fn cut(value: &Value) -> Value {
    match value {
        Value::String(text) => short_line(text, LINE).into(),
        Value::Array(items) => items.iter().take(ITEMS).map(cut).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => value.clone(),
    }
}

fn list<'a>(object: &'a Value, name: &str) -> &'a [Value] {
    object.get(name).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// What is asked of the findings of a run.
#[derive(Debug, Default)]
pub(super) struct Filter {
    pub(super) severity: Option<String>,
    pub(super) file: Option<String>,
}

impl Filter {
    fn takes(&self, finding: &Value) -> bool {
        let severe = self.severity.as_deref().is_none_or(|floor| rank(finding) <= rank_of(floor));
        let file = finding.get("file").and_then(Value::as_str).unwrap_or_default();
        let there = self.file.as_deref().is_none_or(|wanted| {
            let wanted = plain_path(wanted);
            let wanted = wanted.as_str();
            wanted.is_empty()
                || file == wanted
                || file.strip_prefix(wanted).is_some_and(|rest| rest.starts_with('/'))
        });
        severe && there
    }
}

/// Without what a path may have beside its names: `./src//x/` is `src/x`.
fn plain_path(path: &str) -> String {
    path.split('/').filter(|name| !matches!(*name, "" | ".")).collect::<Vec<_>>().join("/")
}

fn rank_of(severity: &str) -> usize {
    ["critical", "warning", "info"].iter().position(|known| known.eq_ignore_ascii_case(severity)).unwrap_or(3)
}

fn rank(finding: &Value) -> usize {
    rank_of(finding.get("severity").and_then(Value::as_str).unwrap_or_default())
}

/// Eight fields for each finding, whether a review or a run had it.
fn finding(found: &Value) -> Value {
    let text = |name: &str, most: usize| {
        found
            .get(name)
            .and_then(Value::as_str)
            .map(|text| short_text(text, most))
            .filter(|text| !text.is_empty())
    };
    let either = |one: &str, other: &str| found.get(one).or_else(|| found.get(other)).cloned();
    json!({
        "id": either("fingerprint", "id"),
        "severity": found.get("severity"),
        "file": text("file", LINE),
        "line": found.get("line").filter(|line| line.as_u64().is_some_and(|line| line > 0)),
        "category": text("category", LINE),
        "description": text("description", DESCRIPTION),
        "fix": text("fix", FIX),
        "reviewers": either("sources", "source"),
    })
}

/// Puts findings into an object, the most severe first, then those that are advice only, and says where the rest is.
fn put_findings(object: &mut Map<String, Value>, id: &str, findings: &[&Value], advice: &[&Value]) {
    let listed = |findings: &[&Value], most: usize| -> Vec<Value> {
        let mut findings = findings.to_vec();
        findings.sort_by_key(|found| rank(found));
        findings.iter().take(most).map(|found| finding(found)).collect()
    };
    let shown = listed(findings, MOST);
    let asides = listed(advice, MOST - shown.len());
    let more = (findings.len() + advice.len()).saturating_sub(shown.len() + asides.len());
    object.insert("findings".to_owned(), shown.into());
    if !asides.is_empty() {
        object.insert("advice".to_owned(), asides.into());
    }
    if more > 0 {
        object.insert("more_findings".to_owned(), more.into());
        object.insert("all_findings".to_owned(), format!("archeflow://run/{id}/findings").into());
    }
}

/// Of `review --run <id> --json`: the findings that count, and those that are advice, for example because their evidence is
/// not in the change. A reviewer may have rejected because of them.
pub(super) fn review(id: &str, printed: &Value, filter: &Filter) -> Value {
    let mut object = Map::new();
    object.insert("run_id".to_owned(), id.into());
    let outcome = printed.get("outcome").filter(|outcome| !outcome.is_null());
    let status = outcome.and_then(|outcome| outcome.get("status")).cloned();
    object.insert("status".to_owned(), status.unwrap_or_else(|| "working".into()));
    let reviewed = object.get("status").is_some_and(|status| *status == "reviewed");
    if let Some(detail) = outcome.filter(|_| !reviewed).and_then(|outcome| outcome.get("detail")?.as_str()) {
        let detail = short_line(&without_credentials(detail), DESCRIPTION);
        object.insert("detail".to_owned(), detail.into());
    }
    object.extend(some(printed, &["title"]));
    let empty = Value::Null;
    let counts =
        some(printed.get("counts").unwrap_or(&empty), &["critical", "warning", "info", "advice", "resolved"]);
    let counted =
        ["critical", "warning", "info", "advice"].iter().filter_map(|name| counts.get(*name)?.as_u64());
    let counted: u64 = counted.sum();
    object.insert("counts".to_owned(), counts.into());
    let verdicts =
        list(printed, "reviewers").iter().map(|one| Value::Object(some(one, &["archetype", "verdict"])));
    object.insert("reviewers".to_owned(), verdicts.collect());
    // Neither has a rejection that nobody answered.
    let unanswered = list(printed, "unanswered_rejections");
    if !unanswered.is_empty() {
        object.insert("unanswered_rejections".to_owned(), unanswered.iter().map(cut).collect());
    }
    // What nobody looked at has not passed.
    let gaps =
        printed.pointer("/coverage/gaps").filter(|gaps| gaps.as_array().is_some_and(|gaps| !gaps.is_empty()));
    object.extend(gaps.map(|gaps| ("not_reviewed".to_owned(), cut(gaps))));
    let standing =
        |found: &Value| found.get("standing").and_then(Value::as_str).unwrap_or_default().to_owned();
    let all = list(printed, "findings").iter();
    let (mut advice, mut findings): (Vec<&Value>, Vec<&Value>) = all
        .filter(|found| !matches!(standing(found).as_str(), "accepted" | "refuted"))
        .partition(|found| standing(found) == "advice");
    let news = u64::try_from(advice.len() + findings.len()).unwrap_or(u64::MAX);
    if printed.get("since_last").and_then(Value::as_bool) == Some(true) {
        let words = format!(
            "{} of the counted findings were in the review before and are not listed here; `findings` lists them",
            counted.saturating_sub(news)
        );
        object.insert("since_last".to_owned(), words.into());
    }
    advice.retain(|found| filter.takes(found));
    findings.retain(|found| filter.takes(found));
    put_findings(&mut object, id, &findings, &advice);
    object.into()
}

/// Of `report <id> --json`: the findings that are open.
pub(super) fn open_findings(id: &str, printed: &Value, filter: &Filter) -> Value {
    let mut object = Map::new();
    object.insert("run_id".to_owned(), id.into());
    object.extend(some(printed, &["status"]));
    let is_open = |found: &&Value| found.get("open").and_then(Value::as_bool) == Some(true);
    let findings: Vec<&Value> =
        list(printed, "findings").iter().filter(is_open).filter(|found| filter.takes(found)).collect();
    put_findings(&mut object, id, &findings, &[]);
    object.into()
}

/// Of `status <id> --json`.
pub(super) fn run(printed: &Value) -> Map<String, Value> {
    let fields = [
        "run_id",
        "status",
        "reason",
        "detail",
        "cycles",
        "cost_usd",
        "branch",
        "workflow",
        "merged_oid",
        "next",
    ];
    let mut object = some(printed, &fields);
    if object.get("status").is_some_and(|status| status == "running") {
        object.remove("reason");
        object.insert("status".to_owned(), "working".into());
    }
    if let Some(question) = printed.get("question").filter(|question| !question.is_null()) {
        object.insert("question".to_owned(), some(question, &["kind", "question", "details"]).into());
    }
    object
}

/// Of `status --json`: the runs of this repository. Of others, a model is told how many wait.
pub(super) fn inbox(printed: &Value, here: &str) -> Value {
    let is = |run: &Value, name: &str, text: &str| run.get(name).and_then(Value::as_str) == Some(text);
    let (runs, others): (Vec<&Value>, Vec<&Value>) =
        list(printed, "runs").iter().partition(|run| is(run, "repository", here));
    let fields = ["group", "run_id", "status", "task", "ts", "detail", "next"];
    let one = |run: &&Value| -> Value {
        let mut object = some(run, &fields);
        if run.get("foreign").and_then(Value::as_bool) == Some(true) {
            object.insert("foreign".to_owned(), true.into());
        }
        object.into()
    };
    let shown: Vec<Value> = runs.iter().take(MOST).map(one).collect();
    let mut object = json!({ "runs": shown, "more_runs": runs.len().saturating_sub(MOST) });
    let waiting = others.iter().filter(|run| is(run, "group", "waiting")).count();
    if waiting > 0 {
        object["elsewhere"] =
            format!("{waiting} more wait for the person in other repositories: archeflow status").into();
    }
    object
}

/// Of `replay timeline <id> --json`, the last ones.
pub(super) fn decisions(id: &str, printed: &Value, rule: Option<&str>) -> Value {
    let about = |decision: &&Value| {
        let is = |name: &str| {
            let text = decision.get(name).and_then(Value::as_str).unwrap_or_default();
            rule.is_some_and(|rule| rule.eq_ignore_ascii_case(text))
        };
        rule.is_none() || is("rule") || is("archetype")
    };
    let all: Vec<&Value> = list(printed, "decisions").iter().filter(about).collect();
    let fields = ["seq", "cycle", "phase", "rule", "archetype", "decision", "rationale", "input"];
    let left_out = all.len().saturating_sub(MOST);
    let shown: Vec<Value> =
        all.iter().skip(left_out).map(|decision| some(decision, &fields).into()).collect();
    let mut object = json!({ "run_id": id, "decisions": shown });
    if left_out > 0 {
        object["earlier_decisions"] = left_out.into();
        object["all_decisions"] = format!("archeflow://run/{id}/why").into();
    }
    object
}

/// A task of the queue.
pub(super) fn item(printed: &Value) -> Value {
    some(printed, &["id", "project", "task", "status", "priority", "estimate", "depends_on"]).into()
}

/// Of `sprint list --json`.
pub(super) fn queue(printed: &Value) -> Value {
    let items = list(printed, "items");
    let shown: Vec<Value> = items.iter().take(MOST).map(item).collect();
    let mut object = json!({ "items": shown, "more_items": items.len().saturating_sub(MOST) });
    if printed.get("paused").and_then(Value::as_bool) == Some(true) {
        object["paused"] = true.into();
    }
    object
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

    use super::*;

    #[test]
    fn mc_03_a_result_is_complete_and_short() {
        let finding = |n: usize, severity: &str| {
            json!({
                "fingerprint": format!("f{n}"), "severity": severity, "standing": "counts", "file": "src/a.rs", "line": n,
                "category": "security", "description": "x".repeat(5_000), "fix": "y", "sources": ["guardian"],
                "evidence": "z".repeat(5_000),
            })
        };
        let mut findings: Vec<Value> = (1..=60).map(|n| finding(n, "INFO")).collect();
        findings.push(finding(61, "CRITICAL"));
        findings.push(json!({ "fingerprint": "a", "severity": "INFO", "standing": "advice" }));
        let printed = json!({
            "findings": findings, "outcome": { "status": "reviewed", "detail": "x" }, "coverage": { "gaps": [] },
            "counts": { "critical": 1, "warning": 0, "info": 60 },
            "reviewers": [{ "archetype": "guardian", "verdict": "REJECTED", "tokens": {} }],
        });
        let object = review("r", &printed, &Filter::default());
        let shown = object["findings"].as_array().unwrap();
        assert_eq!((shown.len(), object["more_findings"].as_u64()), (MOST, Some(12)));
        assert_eq!(shown[0]["id"], "f61");
        assert_eq!(shown[0].as_object().unwrap().len(), 8);
        assert_eq!(object["reviewers"], json!([{ "archetype": "guardian", "verdict": "REJECTED" }]));
        assert!(object.to_string().len() < 60_000);
        let severe = Filter { severity: Some("critical".to_owned()), file: Some("src/".to_owned()) };
        assert_eq!(review("r", &printed, &severe)["findings"].as_array().unwrap().len(), 1);
        let elsewhere = Filter { severity: None, file: Some("sr".to_owned()) };
        assert_eq!(review("r", &printed, &elsewhere)["findings"], json!([]));
        let odd = Filter { severity: Some("critical".to_owned()), file: Some("./src//a.rs".to_owned()) };
        assert_eq!(review("r", &printed, &odd)["findings"].as_array().unwrap().len(), 1);
    }
}
