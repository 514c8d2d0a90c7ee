//! The rules that stand behind decisions: what each says, and the page that has its table.
//!
//! A rule that decides something and is not here can't be explained; the simulation looks for such.

/// One rule as `archeflow show --why` tells it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rule {
    /// The statement of the specification, as it stands in the log.
    pub number: &'static str,
    /// In `docs/rules`, without its ending.
    pub page: &'static str,
    /// A word or two to find it by.
    pub topic: &'static str,
    pub says: &'static str,
}

impl Rule {
    /// Where the page lies in the repository of the program.
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
pub const RULES: [Rule; 50] = [
    rule(
        "AF-020",
        "selection",
        "strategy",
        "The strategy is the one that was asked for; else the words of the task choose it.",
    ),
    rule(
        "AF-022",
        "selection",
        "workflow",
        "The workflow is the one that was asked for; else the words of the task choose it. It says who sits and for how many cycles.",
    ),
    rule(
        "AF-004",
        "domains",
        "domain",
        "The domain is the one that was named; else the project's files tell it.",
    ),
    rule(
        "AF-013",
        "memory",
        "lessons",
        "Lessons of earlier runs are told where their domain and archetype fit, and it is written down who was told what.",
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
        "The mini-Explorer looks at the named risks only, and the run can go on without it.",
    ),
    rule(
        "AF-144",
        "shadows",
        "analysis paralysis",
        "When planning eats the time of doing, there is no more research: the run goes on with known gaps.",
    ),
    rule(
        "AF-063",
        "gates",
        "test first",
        "A change without a test file goes back once, if the proposal has a test strategy; without one it is noted.",
    ),
    rule(
        "AF-040",
        "status",
        "status",
        "Concerns are noted and the run goes on; who needs something or is blocked stops it for a person.",
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
        "A failed attempt of a role the run needs is tried again; without the others it goes on.",
    ),
    rule(
        "C6",
        "stops",
        "accounts",
        "A provider account that turns somebody away is left alone until it serves again; where somebody else is named, they take over for the rest of the run.",
    ),
    rule(
        "D-07",
        "raised",
        "raised findings",
        "What the program itself sees in a change is a finding like any other, and nobody can talk it away.",
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
        "When the gatekeeper approves with nothing above INFO, the other reviewers are spared; not in an escalated run, nor in the first cycle of a thorough one, nor on an unverified answer.",
    ),
    rule(
        "AF-190",
        "stops",
        "pipeline",
        "In the pipeline the Skeptic looks only when the Guardian found something.",
    ),
    rule(
        "AF-073",
        "evidence",
        "evidence",
        "A finding above INFO needs evidence: a line that is there, a run, or a quotation. Without it, it counts as INFO.",
    ),
    rule(
        "AF-138",
        "policy",
        "shadows",
        "The ladder of an archetype's shadow: corrected, then replaced, then a person decides; three in one cycle break the run.",
    ),
    rule(
        "CL-03",
        "policy",
        "many shadows",
        "Several different shadows in one cycle are told to the user: the task may be too large.",
    ),
    rule(
        "AF-147",
        "policy",
        "system shadows",
        "The ladder of a shadow of the process: acted upon, then a person is asked, then the run breaks.",
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
        "A finding that an earlier run had resolved and that is back comes before fresh ones.",
    ),
    rule(
        "CL-34",
        "stops",
        "fixes",
        "A finding that is gone, and of which somebody says it was fixed, counts as a fix.",
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
        "Findings that undo each other stop everything; then approval lands it; then failing tests, no convergence, a CRITICAL that stays, or the last cycle stop it; only then another cycle begins.",
    ),
    rule(
        "AF-150",
        "policy",
        "checkpoint",
        "After so much work or so many cycles it is looked at how things stand; where quality falls, no other cycle begins.",
    ),
    rule(
        "AF-151",
        "budget",
        "budget",
        "The ladder of spending: a warning, cheaper reviewers, no other cycle, everybody called in.",
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
    rule("AF-177", "memory", "lessons", "Which lessons were told to whom is written down for every run."),
    rule("D-16", "outcomes", "outcome", "Status and reason together give the exit code."),
    rule("PJ-01", "loop", "goal", "A loop begins with a goal that says something."),
    rule("PJ-02", "loop", "questions", "Where the Planner asks, nobody acts until a person has answered."),
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
        "A step that failed, by its own word or by its size, is taken back and planned anew.",
    ),
    rule(
        "PJ-07",
        "loop",
        "loop failed",
        "A forbidden command, or a blocker that nobody can remove, ends a loop.",
    ),
    rule("PJ-08", "loop", "pass", "A PASS that nothing objects to goes to a person."),
    rule(
        "MX-01",
        "loop",
        "goal of many steps",
        "Before the last step of a goal a PASS goes on without a question, where that was asked for.",
    ),
    rule(
        "PJ-09",
        "loop",
        "insufficient",
        "What does not pass is planned anew; five in a row pause the loop.",
    ),
    rule(
        "PJ-11",
        "loop",
        "approval",
        "What a person approves is landed and archived; what does not land goes back to the person.",
    ),
    rule("PJ-12", "loop", "changes", "A person who asks for changes sends the loop back to the Planner."),
    rule(
        "PJ-13",
        "loop",
        "restart",
        "A paused loop is started again by a person, and the count begins anew; or it is given up.",
    ),
    rule("PJ-14", "loop", "stop", "A person may stop a loop at any time."),
    rule(
        "PJ-22",
        "loop",
        "routing",
        "Words that mean nothing where the loop is change nothing; a verdict that nobody can tell goes to a person.",
    ),
    rule(
        "PJ-51",
        "loop",
        "unreadable",
        "An answer without a block that can be routed is asked for once more; then a person is asked.",
    ),
    rule("PJ-60", "loop", "alerts", "What people should know of a loop is told; it stops nothing."),
];
