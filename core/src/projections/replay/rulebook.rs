//! The rules behind decisions: each in one sentence, and the page that has its table.
//!
//! A rule that decides something and is not here can't be explained; the simulation looks for such.

/// One rule as `archeflow show --why` prints it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rule {
    /// Its number in the specification, as in the log.
    pub number: &'static str,
    /// In `docs/rules`, without its ending.
    pub page: &'static str,
    /// A word or two to find it by.
    pub topic: &'static str,
    pub says: &'static str,
}

impl Rule {
    /// Path of the page in the program's repository.
    pub fn path(&self) -> String {
        format!("docs/rules/{}.md", self.page)
    }
}

pub fn find(number: &str) -> Option<&'static Rule> {
    RULES.iter().find(|rule| rule.number.eq_ignore_ascii_case(number))
}

const fn rule(number: &'static str, page: &'static str, topic: &'static str, says: &'static str) -> Rule {
    Rule { number, page, topic, says }
}

/// In the order of a run.
pub const RULES: [Rule; 53] = [
    rule(
        "AF-020",
        "selection",
        "strategy",
        "The strategy is the requested one; otherwise it is chosen from the words of the task.",
    ),
    rule(
        "AF-022",
        "selection",
        "workflow",
        "The workflow is the requested one; otherwise it is chosen from the words of the task. It determines the team and the number of cycles.",
    ),
    rule(
        "AF-004",
        "domains",
        "domain",
        "The domain is the configured one; otherwise it is detected from the project's files.",
    ),
    rule(
        "AF-013",
        "memory",
        "lessons",
        "Lessons of earlier runs are given to agents if domain and archetype match; the journal records which agent got which.",
    ),
    rule("AF-156", "policy", "pollution", "A brief that would hold too much is cut to what counts most."),
    rule(
        "A3",
        "gates",
        "confidence",
        "A plan whose confidence is below the floor is not built as it is: low understanding asks a person, low completeness makes a fast run a standard one, low risk coverage sends the mini-Explorer.",
    ),
    rule(
        "AF-056",
        "gates",
        "research",
        "The mini-Explorer looks at the named risks only, and the run can continue without it.",
    ),
    rule(
        "AF-144",
        "shadows",
        "analysis paralysis",
        "When planning takes too long, research stops and the run continues with known gaps.",
    ),
    rule(
        "AF-063",
        "gates",
        "test first",
        "A change without a test file goes back to the Maker once if the proposal has a test strategy; otherwise it is only noted.",
    ),
    rule(
        "AF-040",
        "status",
        "status",
        "Concerns are noted and the run continues; an agent that needs context or is blocked stops it until a person decides.",
    ),
    rule(
        "D-02",
        "status",
        "unverified",
        "An answer without a status token counts as done, but the fast path does not trust it.",
    ),
    rule(
        "CL-12",
        "stops",
        "failures",
        "A failed attempt is retried if the run needs the role; otherwise the run continues without it.",
    ),
    rule(
        "C6",
        "stops",
        "accounts",
        "An account that was limited is not used until it is available again; if a fallback agent is configured, it takes over for the rest of the run.",
    ),
    rule(
        "D-07",
        "raised",
        "raised findings",
        "What the program detects in a change is a finding that no agent can dismiss.",
    ),
    rule(
        "AF-080",
        "evidence",
        "verdicts",
        "A review approves when it says so and has no CRITICAL; everything else is a rejection.",
    ),
    rule(
        "A2",
        "gates",
        "fast path",
        "When the gatekeeper approves with nothing above INFO, the other reviewers are skipped; not in an escalated run, in the first cycle of a thorough one, or after an unverified answer.",
    ),
    rule(
        "AF-188",
        "stops",
        "rollback",
        "A person takes a run that has not landed back to the end of a phase, and it goes on from there.",
    ),
    rule(
        "AF-190",
        "stops",
        "pipeline",
        "In the pipeline the Skeptic reviews only if the Guardian found something.",
    ),
    rule(
        "AF-073",
        "evidence",
        "evidence",
        "A finding above INFO needs evidence: an existing line, command output, or a quotation. Without evidence it counts as INFO.",
    ),
    rule(
        "J-04",
        "evidence",
        "rejections",
        "A reviewer that rejects a change with nothing that counts is asked for evidence once; if it insists, a person decides.",
    ),
    rule(
        "U-10",
        "preflight",
        "tests that failed before",
        "Failing tests that failed on the base commit, too, do not keep a change from landing if that was accepted; they are compared by name.",
    ),
    rule(
        "AF-138",
        "policy",
        "shadows",
        "Escalation steps for an archetype's shadow: correct, replace, then a person decides; three in one cycle break the run.",
    ),
    rule(
        "CL-03",
        "policy",
        "many shadows",
        "Several different shadows in one cycle are reported to the user: the task may be too large.",
    ),
    rule(
        "AF-147",
        "policy",
        "system shadows",
        "Escalation steps for a system shadow: correct, ask a person, then break the run.",
    ),
    rule(
        "A1",
        "gates",
        "escalation",
        "Two CRITICALs of the Guardian in a fast run make it a standard one from the next cycle on.",
    ),
    rule(
        "AF-121",
        "memory",
        "regressions",
        "A finding that an earlier run had resolved and that is back comes before new ones.",
    ),
    rule(
        "CL-34",
        "stops",
        "fixes",
        "A finding that is gone and that an agent reports as fixed counts as a fix.",
    ),
    rule(
        "AF-191",
        "stops",
        "targeted fix",
        "The pipeline sends the Maker for exactly one targeted fix, then everything is reviewed again.",
    ),
    rule(
        "AF-109",
        "stops",
        "convergence",
        "In this order: findings that undo each other stop the run; approval lands it; failing tests, no convergence, a persistent CRITICAL or the last cycle stop it; otherwise another cycle begins.",
    ),
    rule(
        "AF-150",
        "policy",
        "checkpoint",
        "A checkpoint after a given amount of work or cycles: if quality has fallen, no other cycle begins.",
    ),
    rule(
        "AF-151",
        "budget",
        "budget",
        "Budget steps: a warning, cheaper reviewers, no other cycle, all agents stopped.",
    ),
    rule(
        "AF-152",
        "policy",
        "breaks",
        "The Wiggum Break is the one circuit breaker: a hard one halts now, a soft one lets the cycle end.",
    ),
    rule(
        "AF-155",
        "policy",
        "breaks",
        "A break is written down with its trigger and the open findings before the run ends.",
    ),
    rule("CL-26", "policy", "rising findings", "More findings in every cycle stop the run."),
    rule(
        "AF-177",
        "memory",
        "lessons",
        "The journal of each run records which agent was given which lessons.",
    ),
    rule("D-16", "outcomes", "outcome", "Status and reason together give the exit code."),
    rule("PJ-01", "loop", "goal", "A loop begins with a goal that says something."),
    rule(
        "PJ-02",
        "loop",
        "questions",
        "If the Planner asks a question, nothing happens until a person has answered.",
    ),
    rule("PJ-04", "loop", "plan", "One atomic step is planned, and the Actor carries it out."),
    rule(
        "MX-06",
        "loop",
        "gate",
        "A plan of high risk, of little confidence or with a forbidden command waits for a yes; so does the plan of all loops.",
    ),
    rule("PJ-05", "loop", "step", "A step within its limits goes to the Judge."),
    rule(
        "PJ-06",
        "loop",
        "step failed",
        "A step that reports failure or is too large is undone and planned again.",
    ),
    rule(
        "PJ-07",
        "loop",
        "loop failed",
        "A forbidden command, or a blocker that can't be removed, ends a loop.",
    ),
    rule("PJ-08", "loop", "pass", "A PASS that nothing objects to goes to a person."),
    rule(
        "MX-01",
        "loop",
        "goal of many steps",
        "Before the last step of a goal, a PASS continues without a question if so configured.",
    ),
    rule(
        "PJ-09",
        "loop",
        "insufficient",
        "A step that does not pass is planned again; five in a row pause the loop.",
    ),
    rule(
        "PJ-11",
        "loop",
        "approval",
        "An approved step is landed and archived; if landing fails, the person is asked again.",
    ),
    rule("PJ-12", "loop", "changes", "A person who asks for changes sends the loop back to the Planner."),
    rule("PJ-13", "loop", "restart", "A person restarts a paused loop, which resets the count, or ends it."),
    rule("PJ-14", "loop", "stop", "A person may stop a loop at any time."),
    rule(
        "PJ-22",
        "loop",
        "routing",
        "A signal without meaning in the current state changes nothing; a verdict that can't be read goes to a person.",
    ),
    rule(
        "PJ-51",
        "loop",
        "unreadable",
        "An answer without a block that can be routed is asked for once more; then a person is asked.",
    ),
    rule("PJ-60", "loop", "alerts", "Notices of a loop are printed and stop nothing."),
];
