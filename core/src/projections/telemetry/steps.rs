//! What an order and the report that answers it say in a span.

use super::names::TelemetryName;
use super::values::{Attributes, TelemetryKind};
use super::{names, word};
use crate::event::{
    AgentComplete, AgentFailed, AgentLost, AgentStart, AgentTimeout, Built, CostSource, EvidenceDone,
    HookDone, LoopHeard, MergeBuilt, MergeRefused, Order, Player, PreflightDone, QuestionAnswered,
    QuestionDeferred, Report, RevertBuilt, RevertRefused, RunMerged, RunReverted, Tested, TestsDone, Tokens,
};
use crate::model::Money;
use crate::text::short_line;

/// Name, kind and attributes of the span that an order begins; nothing for bookkeeping.
pub(super) fn begun(order: &Order, shared: Attributes) -> Option<(String, TelemetryKind, Attributes)> {
    use TelemetryKind::{Client, Internal};
    let plain = |name: &str, attributes| Some((name.to_owned(), Internal, attributes));
    match order {
        Order::AgentStart(start) => {
            let name = plain_name(&start.archetype);
            let attributes = shared
                .with(names::OPERATION, "invoke_agent")
                .with(names::AGENT, name.as_str())
                .with(names::PROVIDER, provider(start))
                .with(names::REQUEST_MODEL, request_model(start))
                .with(names::ROLE, word(&start.role))
                .with(names::PURPOSE, start.purpose.name())
                .with(names::ATTEMPT, start.attempt);
            Some((format!("invoke_agent {name}"), Client, attributes))
        }
        Order::PreflightStart(start) => {
            let command = start.test_command.as_deref().unwrap_or_default();
            plain(
                "preflight",
                shared.with(names::COMMIT, start.commit.as_str()).said(names::COMMAND, command),
            )
        }
        Order::EvidenceStart(start) => {
            plain("evidence", shared.with(names::AGENT, plain_name(&start.archetype)))
        }
        Order::BatteryStart(_) => plain("checks", shared),
        Order::TestsStart(start) => plain(
            "tests",
            shared
                .with(names::TREE, start.tree.as_str())
                .with(names::COMMIT, start.commit.as_str())
                .said(names::COMMAND, &start.command),
        ),
        Order::HookStart(start) => {
            let point = word(&start.point);
            let attributes = shared.with(names::HOOK, point.as_str()).said(names::COMMAND, &start.command);
            plain(&format!("hook {point}"), attributes)
        }
        Order::MergeStart(start) => plain("merge.build", shared.said(names::BRANCH, &start.target)),
        Order::MergeIntent(intent) => plain(
            "merge",
            shared
                .with(names::TREE, intent.tree.as_str())
                .with(names::COMMIT, intent.new.as_str())
                .said(names::BRANCH, &intent.target),
        ),
        Order::RevertStart(start) => plain("revert.build", shared.said(names::BRANCH, &start.target)),
        Order::RevertIntent(intent) => plain(
            "revert",
            shared.with(names::COMMIT, intent.landed.as_str()).said(names::BRANCH, &intent.target),
        ),
        Order::QuestionAsked(asked) => plain(
            "question",
            shared.with(names::QUESTION, word(&asked.kind)).said(names::QUESTION_WORDS, &asked.question),
        ),
        Order::LoopAppend(_) | Order::LoopArchive(_) => None,
    }
}

/// How an attempt of an agent ended.
pub(super) struct AgentEnd<'a> {
    pub(super) tokens: Option<Tokens>,
    pub(super) duration_ms: Option<u64>,
    pub(super) cost: Option<Money>,
    pub(super) source: Option<CostSource>,
    player: Option<&'a Player>,
    pub(super) error: Option<String>,
    said: (TelemetryName, &'a str),
}

impl AgentEnd<'_> {
    pub(super) fn of(report: &Report) -> Option<AgentEnd<'_>> {
        let failed = match report.body::<AgentTimeout>() {
            Some(AgentTimeout(failed)) => Some(failed),
            None => report.body::<AgentFailed>(),
        };
        if let Some(failed) = failed {
            return Some(AgentEnd {
                tokens: failed.tokens,
                duration_ms: Some(failed.duration_ms),
                cost: failed.estimated_cost_usd,
                source: failed.cost_source,
                player: failed.played.as_ref(),
                error: Some(word(&failed.kind)),
                said: (names::DETAIL, &failed.reason),
            });
        }
        if let Some(lost) = report.body::<AgentLost>() {
            return Some(AgentEnd {
                tokens: lost.tokens,
                duration_ms: None,
                cost: lost.estimated_cost_usd,
                source: lost.cost_source,
                player: None,
                error: Some("lost".to_owned()),
                said: (names::DETAIL, &lost.reason),
            });
        }
        let done = report.body::<AgentComplete>()?;
        Some(AgentEnd {
            tokens: done.tokens,
            duration_ms: Some(done.duration_ms),
            cost: done.estimated_cost_usd,
            source: done.cost_source,
            player: done.played.as_ref(),
            error: None,
            said: (names::SUMMARY, &done.summary),
        })
    }

    fn add_to(&self, attributes: Attributes) -> Attributes {
        let model = self.player.map(|player| player.model.as_str()).filter(|model| !model.is_empty());
        let cached = |count: u64| (count > 0).then_some(count);
        let (name, text) = self.said;
        attributes
            .maybe(names::RESPONSE_MODEL, model)
            .maybe(names::INPUT_TOKENS, self.tokens.map(|tokens| tokens.input))
            .maybe(names::OUTPUT_TOKENS, self.tokens.map(|tokens| tokens.output))
            .maybe(names::CACHE_READ, self.tokens.and_then(|tokens| cached(tokens.cache_read)))
            .maybe(names::CACHE_WRITE, self.tokens.and_then(|tokens| cached(tokens.cache_write)))
            .maybe(names::COST, self.cost)
            .maybe(names::COST_SOURCE, self.source.map(|source| word(&source)))
            .said(name, text)
    }
}

/// What a report adds, and what went wrong in one word.
pub(super) fn ended(report: &Report, attributes: Attributes) -> (Attributes, Option<String>) {
    if let Some(end) = AgentEnd::of(report) {
        return (end.add_to(attributes), end.error);
    }
    let result = |attributes: Attributes, good: bool| {
        let result = if good { "passed" } else { "failed" };
        (attributes.with(names::RESULT, result), (!good).then(|| result.to_owned()))
    };
    if let Some(done) = report.body::<TestsDone>() {
        let word = word(&done.result);
        let attributes = attributes
            .with(names::RESULT, word.as_str())
            .maybe(names::EXIT_CODE, done.exit)
            .said(names::DETAIL, &done.failing.join(", "));
        return (attributes, (done.result != Tested::Passed).then_some(word));
    }
    if let Some(done) = report.body::<PreflightDone>() {
        return result(attributes, done.is_passed());
    }
    if let Some(done) = report.body::<HookDone>() {
        return result(attributes.said(names::DETAIL, &done.reason), done.ok);
    }
    if let Some(done) = report.body::<EvidenceDone>() {
        return (attributes.maybe(names::EXIT_CODE, done.change.exit), None);
    }
    let candidate = report.body::<MergeBuilt>().map(|done| &done.built);
    if let Some(built) = candidate.or_else(|| report.body::<RevertBuilt>().map(|done| &done.built)) {
        return (built_as(attributes, built), built_error(built));
    }
    if let Some(merged) = report.body::<RunMerged>() {
        let attributes = attributes.with(names::RESULT, "merged");
        return (attributes.with(names::COMMIT, merged.commit.as_str()), None);
    }
    if let Some(refused) = report.body::<MergeRefused>() {
        let attributes = attributes.with(names::RESULT, "refused").said(names::DETAIL, &refused.detail);
        return (attributes, Some(word(&refused.why)));
    }
    if report.body::<RunReverted>().is_some() {
        return (attributes.with(names::RESULT, "reverted"), None);
    }
    if let Some(refused) = report.body::<RevertRefused>() {
        let attributes = attributes.with(names::RESULT, "refused").said(names::DETAIL, &refused.detail);
        return (attributes, Some(refused.why.map_or_else(|| "refused".to_owned(), |why| word(&why))));
    }
    if let Some(answered) = report.body::<QuestionAnswered>() {
        let attributes = attributes
            .with(names::RESULT, "answered")
            .maybe(names::BY, Some(answered.by.as_str()).filter(|by| !by.is_empty()))
            .said(names::ANSWER_WORDS, &answered.text);
        return (attributes, None);
    }
    if report.body::<LoopHeard>().is_some() {
        return (attributes.with(names::RESULT, "answered"), None);
    }
    if report.body::<QuestionDeferred>().is_some() {
        return (attributes.with(names::RESULT, "deferred"), None);
    }
    (attributes, None)
}

fn built_as(attributes: Attributes, built: &Built) -> Attributes {
    let attributes = attributes.with(names::RESULT, word(built));
    match built {
        Built::Candidate { commit, tree, .. } => {
            attributes.with(names::TREE, tree.as_str()).with(names::COMMIT, commit.as_str())
        }
        Built::Conflict { paths } => attributes.said(names::DETAIL, &paths.join(", ")),
        Built::NotSigned { what } | Built::Fault { what } => attributes.said(names::DETAIL, what),
        Built::Nothing | Built::BaseGone { .. } => attributes,
    }
}

fn built_error(built: &Built) -> Option<String> {
    match built {
        Built::Candidate { .. } | Built::Nothing => None,
        Built::Conflict { .. } | Built::BaseGone { .. } | Built::NotSigned { .. } | Built::Fault { .. } => {
            Some(word(built))
        }
    }
}

/// The client of an agent spec, which may be a whole command line with paths.
fn client(start: &AgentStart) -> &str {
    let head = start.agent.split(':').next().unwrap_or_default();
    let plain = !head.is_empty()
        && head.len() <= 32
        && head.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-');
    if plain { head } else { "_OTHER" }
}

/// Who serves the model, in the words of the conventions where there is one.
pub(super) fn provider(start: &AgentStart) -> String {
    let name = match client(start) {
        "claude" | "anthropic" => "anthropic",
        "codex" | "openai" => "openai",
        "gemini" => "gcp.gemini",
        client => client,
    };
    name.to_owned()
}

/// The model of the spec; the tier where it names none, and where it is a command.
pub(super) fn request_model(start: &AgentStart) -> String {
    let rest = start.agent.split_once(':').map_or("", |(_, rest)| rest);
    let model = rest.split('@').next().unwrap_or_default();
    let names_models = !matches!(client(start), "cmd" | "script" | "sim" | "acp" | "_OTHER");
    let plain =
        !model.is_empty() && !model.contains(char::is_whitespace) && !model.starts_with(['/', '.', '~']);
    if names_models && plain { short_line(model, 80) } else { start.model.name().to_owned() }
}

/// A name that agents or files chose, short and on one line.
pub(super) fn plain_name(name: &str) -> String {
    short_line(name, 80)
}
