//! The SIGNAL BLOCK of the Human/Planner/Actor/Judge loop (PJ-20..PJ-23): the author, the result and the next agent.
//!
//! Two thirds of the blocks in practice miss the grammar, so the reader is tolerant and reports it: every deviation has a
//! name and a line. It resolves what can be resolved without guessing and leaves the rest unrouted. Text that is merely
//! shown (fences, quotes, diffs, comments) is never control. The table in `docs/rules/signals.md` is executed.
//!
//! Deliberately absent: how many loops there were, whose turn it was, what follows. See `fields` for lines,
//! `values` for words, `route` for the next agent.

mod block;
mod fields;
mod render;
mod route;
mod spoken;
mod standing;
mod values;

pub use render::{Block, render};
pub use route::{Route, RouteFault, RouteMode, route};
pub use spoken::{ActorStep, answer, spoken};

use crate::model::{Risk, Speaker, Token};
use crate::read::lines::{self, LineKind};

/// The blocks of a text: all blocks in their order, and where blocks are merely shown.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SignalBlocks {
    pub signals: Vec<Signal>,
    /// Lines, counted from 1, on which a block begins that is quoted, fenced or part of a diff.
    pub shown: Vec<usize>,
}

impl SignalBlocks {
    /// The last block decides (PJ-23), even if it can't be routed: an older one is never taken in its place.
    pub fn last(&self) -> Option<&Signal> {
        self.signals.last()
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Signal {
    /// The lines of the block, counted from 1, both included.
    pub first: usize,
    pub last: usize,
    pub agent: Option<Speaker>,
    /// The result of the block, where that is a word of the grammar or an accepted one.
    pub result: Option<Token>,
    pub summary: String,
    pub next: Option<Speaker>,
    pub risk: Option<Risk>,
    /// 0 to 10, rounded down (PC-12).
    pub confidence: Option<u32>,
    pub signature: Option<Signature>,
    pub deviations: Vec<Deviation>,
}

impl Signal {
    pub fn deviates(&self, how: How) -> bool {
        self.deviations.iter().any(|deviation| deviation.how == how)
    }
}

/// PC-09: both forms are accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Signature {
    Project { project: String, agent: Option<Speaker>, step: String },
    Goal { goal: String, turn: String, step: String },
}

/// One way in which a block differs from the grammar, and the line it does so on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Deviation {
    pub line: usize,
    pub how: How,
}

macro_rules! deviations {
    ($($(#[$doc:meta])* $name:ident $text:literal $form:literal,)*) => {
        /// How a block can differ from the grammar.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub enum How {
            $($(#[$doc])* $name,)*
        }

        impl How {
            pub const ALL: &[How] = &[$(How::$name,)*];

            pub fn name(self) -> &'static str {
                match self {
                    $(How::$name => $text,)*
                }
            }

            /// Whether a strict reader would not have matched the block at all. The others are omissions beside it.
            pub fn breaks_the_pattern(self) -> bool {
                match self {
                    $(How::$name => $form,)*
                }
            }
        }
    };
}

deviations! {
    /// The line is no list item.
    NoMarker "no_list_marker" true,
    /// `*`, `+` or a number where a dash belongs.
    OtherMarker "other_list_marker" true,
    Indented "indented" true,
    /// Emphasis, code marks or a symbol at the label.
    DecoratedLabel "decorated_label" true,
    LabelCase "label_case" true,
    /// `=`, or a wide colon, or no space behind it.
    Separator "separator" true,
    /// `Loop Summary`, `Status`, `Next Agent`.
    OtherLabel "other_label" true,
    PipeForm "pipe_form" true,
    TableForm "table_form" true,
    Order "order" true,
    BlankLine "blank_line" true,
    ExtraField "extra_field" true,
    UnknownField "unknown_field" true,
    StrayText "stray_text" true,
    WrappedSummary "wrapped_summary" true,
    /// Given twice in the same words.
    Repeated "repeated_field" true,
    /// Given twice in different words.
    Conflict "conflicting_field" true,
    MissingAgent "missing_agent" true,
    MissingResult "missing_result" true,
    MissingSummary "missing_summary" true,
    MissingNext "missing_next" true,
    DecoratedAgent "decorated_agent" true,
    AgentWords "agent_with_more_words" true,
    SeveralAgents "several_agents" true,
    UnknownAgent "unknown_agent" true,
    DecoratedResult "decorated_result" true,
    ResultWords "result_with_more_words" true,
    SeveralResults "several_results" true,
    /// Accepted, but no word of the grammar (PC-02, PC-04).
    ExtendedResult "extended_result" true,
    /// A near word that practice uses for one of the grammar's.
    OtherResult "other_result" true,
    UnknownResult "unknown_result" true,
    /// Struck out, questioned or taken back.
    WithdrawnResult "withdrawn_result" true,
    /// With a condition, a doubt, or words beside a PASS that are not known.
    HedgedResult "hedged_result" true,
    /// A word that only another role may use.
    NotTheirs "result_of_another_agent" true,
    DecoratedNext "decorated_next" true,
    NextWords "next_with_more_words" true,
    /// The first one counts.
    SeveralNext "several_next" true,
    UnknownNext "unknown_next" true,
    /// A failure that goes to a person, which the grammar leaves out (PC-03); a PASS that goes to the Planner; a step that
    /// is done and goes elsewhere than to the Judge.
    ExtendedTriple "extended_triple" true,
    /// Known words in a combination that the grammar does not have (PJ-22).
    IllegalTriple "illegal_triple" false,
    MissingSignature "missing_signature" false,
    UnreadableSignature "unreadable_signature" false,
    SignatureDisagrees "signature_disagrees" false,
    MissingRisk "missing_risk" false,
    UnreadableRisk "unreadable_risk" false,
    ConfidenceScale "confidence_scale" false,
    UnreadableConfidence "unreadable_confidence" false,
}

/// Reads all blocks of a text. Never fails.
pub fn read(text: &str) -> SignalBlocks {
    let lines = lines::scan(text);
    let shown = (1..).zip(&lines).filter(|(_, line)| is_shown(line.kind));
    let shown = shown.filter(|(_, line)| fields::shows_an_agent(line.text)).map(|(number, _)| number);
    SignalBlocks { signals: block::blocks(&lines), shown: shown.collect() }
}

/// The same from bytes, in whatever encoding an editor left them.
pub fn read_bytes(bytes: &[u8]) -> SignalBlocks {
    read(&crate::read::text::decode(bytes))
}

fn is_shown(kind: LineKind) -> bool {
    match kind {
        LineKind::Plain | LineKind::Blank | LineKind::Open | LineKind::Close => false,
        LineKind::Fenced | LineKind::Quote | LineKind::Indented | LineKind::Diff | LineKind::Comment => true,
    }
}
