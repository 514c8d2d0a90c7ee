//! The names that leave the machine, in one table: those of OpenTelemetry in one version of its conventions, and our own.
//! `docs/telemetry.md` shows the same table.

/// The version of OpenTelemetry's semantic conventions. All `gen_ai.*` names are still in development and will be renamed.
pub const CONVENTIONS: &str = "1.41.0";
/// As messages name that version.
pub const SCHEMA_URL: &str = "https://opentelemetry.io/schemas/1.41.0";

/// One name, and whether its value can hold a task, a path, or words of agents and people.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TelemetryName {
    pub name: &'static str,
    /// Where it is used: `run`, `phase`, `agent`, `tool`, `step`, `record`, `metric`.
    pub on: &'static str,
    /// Sent only with `telemetry.content: true`.
    pub content: bool,
    pub meaning: &'static str,
}

macro_rules! names {
    ($($const:ident $name:literal $on:literal $content:literal $meaning:literal;)*) => {
        $(pub const $const: TelemetryName =
            TelemetryName { name: $name, on: $on, content: $content, meaning: $meaning };)*

        /// All of them.
        pub const NAMES: &[TelemetryName] = &[$($const,)*];
    };
}

names! {
    OPERATION "gen_ai.operation.name" "run, agent, tool" false "`invoke_workflow`, `invoke_agent` or `execute_tool`";
    WORKFLOW "gen_ai.workflow.name" "run" false "`fast`, `standard`, `thorough`, or the strategy of a review or a loop";
    AGENT "gen_ai.agent.name" "agent, record" false "the archetype";
    PROVIDER "gen_ai.provider.name" "agent" false "`anthropic`, `openai`, `gcp.gemini`, or the name of the client";
    REQUEST_MODEL "gen_ai.request.model" "agent" false "the model that was asked for, or its tier";
    RESPONSE_MODEL "gen_ai.response.model" "agent" false "the model that answered, as its client reports it";
    INPUT_TOKENS "gen_ai.usage.input_tokens" "agent" false "tokens read, those of the cache included";
    OUTPUT_TOKENS "gen_ai.usage.output_tokens" "agent" false "tokens written";
    CACHE_READ "gen_ai.usage.cache_read.input_tokens" "agent" false "of the input, tokens from the cache";
    CACHE_WRITE "gen_ai.usage.cache_creation.input_tokens" "agent" false "of the input, tokens put into the cache";
    TOKEN_TYPE "gen_ai.token.type" "metric" false "`input` or `output`";
    TOOL "gen_ai.tool.name" "tool" false "the tool, as the client calls it";
    TOOL_CALL "gen_ai.tool.call.id" "tool" false "the call, as the client calls it";
    EVALUATION "gen_ai.evaluation.name" "record" false "the reviewer whose verdict it is";
    EVALUATION_LABEL "gen_ai.evaluation.score.label" "record" false "`APPROVED` or `REJECTED`";
    EVALUATION_WORDS "gen_ai.evaluation.explanation" "record" true "the findings, in the reviewer's words";
    ERROR "error.type" "run, agent, tool, step" false "what went wrong, in one word";
    RECORD_ID "log.record.uid" "record" false "the same whenever the record is sent";
    RUN_ID "archeflow.run.id" "all" false "the date and a digest of the run's id, which holds words of the task";
    RUN_NAME "archeflow.run.name" "run" true "the run's id";
    RUN_PART "archeflow.run.part" "run" false "1, and one more each time an ended run goes on";
    STATUS "archeflow.run.status" "run" false "how the run ended: `merged`, `awaiting_answer`, `stopped` …";
    REASON "archeflow.run.reason" "run, record" false "why, in the words of the exit codes";
    CYCLES "archeflow.run.cycles" "run" false "cycles so far";
    AGENTS "archeflow.run.agents" "run" false "agents started so far";
    TASK "archeflow.task" "run" true "the task";
    DETAIL "archeflow.detail" "run, agent, step, record" true "the reason in a sentence";
    STRATEGY "archeflow.strategy" "run" false "`pdca`, `pipeline`, `review` or `loop`";
    PHASE "archeflow.phase" "phase, agent, step, record" false "`plan`, `do`, `check` or `act`";
    CYCLE "archeflow.cycle" "phase, agent, record" false "the number of the cycle";
    ROLE "archeflow.agent.role" "agent" false "the role of the archetype";
    PURPOSE "archeflow.agent.purpose" "agent" false "why it was started: `work`, `retry`, `fix` …";
    ATTEMPT "archeflow.agent.attempt" "agent" false "which start of the archetype in the cycle";
    SUMMARY "archeflow.agent.summary" "agent" true "the beginning of its answer";
    COST "archeflow.cost.usd" "agent, record" false "cost in dollars";
    COST_SOURCE "archeflow.cost.source" "agent, metric" false "`reported`, `priced` or `reserved`";
    TREE "archeflow.tree" "step" false "the tree that was tested or merged";
    COMMIT "archeflow.commit" "step" false "the commit that was tested or merged";
    RESULT "archeflow.result" "step, record" false "how it ended, in one word";
    EXIT_CODE "archeflow.exit_code" "run, step" false "the exit code";
    COMMAND "archeflow.command" "step" true "the command";
    BRANCH "archeflow.branch" "run, step" true "the branch";
    HOOK "archeflow.hook" "step" false "`run-start`, `pre-merge` …";
    QUESTION "archeflow.question" "step" false "what kind of question it is";
    QUESTION_WORDS "archeflow.question.text" "step" true "the question";
    ANSWER_WORDS "archeflow.answer.text" "step" true "the answer of a person";
    BY "archeflow.by" "step, record" false "where a decision came from: `ui`, `mcp`, `control`; missing if it was typed";
    SEQ "archeflow.seq" "record" false "the line of the journal";
    RULE "archeflow.rule" "record" false "the rule that decided";
    CHOICE "archeflow.choice" "record" false "what was decided, unless that names paths or commands";
    FACTS "archeflow.facts" "record" true "what the rule looked at";
    CONFIDENCE "archeflow.confidence" "record" false "between 0 and 1";
    NEXT "archeflow.next_action" "record" false "`merge`, `cycle_back` or `stop`";
    SCORE "archeflow.convergence.score" "record" false "between 0 and 1";
    TREND "archeflow.convergence.status" "record" false "`converging`, `stalling`, `diverging` or `stuck`";
    CRITICAL "archeflow.findings.critical" "record" false "number of CRITICAL findings";
    WARNING "archeflow.findings.warning" "record" false "number of WARNING findings";
    INFO "archeflow.findings.info" "record" false "number of INFO findings";
    SEVERITY "archeflow.finding.severity" "record, metric" false "`CRITICAL`, `WARNING` or `INFO`";
    FINDING "archeflow.finding.text" "record" true "a finding, with its place";
    SHADOW "archeflow.shadow" "record" false "the shadow that was detected";
    ACTION "archeflow.action" "record" false "what follows";
    STEP "archeflow.budget.percent" "record" false "the step of the budget that was passed";
    FENCE "archeflow.session" "record" false "the number of the session";
    SANDBOX "archeflow.sandbox" "record" false "what held commands to their policy";
}

/// A metric: name, unit, meaning.
pub type MetricName = (&'static str, &'static str, &'static str);

pub const TOKEN_USAGE: MetricName =
    ("gen_ai.client.token.usage", "{token}", "Tokens of each attempt of an agent");
pub const DURATION: MetricName =
    ("gen_ai.client.operation.duration", "s", "Duration of each attempt of an agent");
pub const RUN_COST: MetricName = ("archeflow.run.cost", "{USD}", "Cost of all agents so far, in dollars");
pub const FINDINGS: MetricName =
    ("archeflow.findings", "{finding}", "Findings that were open at the end of the last cycle");

/// All of them.
pub const METRICS: &[MetricName] = &[TOKEN_USAGE, DURATION, RUN_COST, FINDINGS];

/// The buckets that the conventions prescribe.
pub const TOKEN_BOUNDS: &[f64] = &[
    1.0,
    4.0,
    16.0,
    64.0,
    256.0,
    1_024.0,
    4_096.0,
    16_384.0,
    65_536.0,
    262_144.0,
    1_048_576.0,
    4_194_304.0,
    16_777_216.0,
    67_108_864.0,
];
pub const DURATION_BOUNDS: &[f64] =
    &[0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92];
