//! A loop, as its log tells it so far. It remembers; what follows is decided in `decide.rs`.

use std::collections::BTreeSet;

use crate::event::{
    Artifact, BatteryDone, BatteryStart, LoopAppend, LoopAppended, LoopArchived, LoopEdited, LoopHeard,
    LoopOpened, LoopTurn, Order, QuestionAsked, StepRange,
};
use crate::model::{
    Alert, Change, HookPoint, LoopState, Oid, Risk, Role, Seq, Speaker, StepSize, Token, TurnEvent,
    TurnSignal, Word,
};
use crate::strategies::agent_loop::rules::states::LoopPosition;

use crate::run::{Landing, Run};

/// No more than this is remembered for the next brief; the rest is in the log and in the cycle file.
const NOTES_AT_MOST: usize = 20;

/// So many characters of a person's words are told to agents; all of them are in the cycle file.
const WORDS_AT_MOST: usize = 4_000;

/// What is remembered of a loop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentLoop {
    pub opened: LoopOpened,
    /// The line of `loop.opened`.
    pub line: Seq,
    /// The goal, with what a person added to it before anybody began.
    pub goal: String,
    pub place: LoopPosition,
    /// The goal was taken up; idle after that is over.
    pub begun: bool,
    /// The last line a turn was written about.
    pub taken: Seq,
    /// What a person said that no turn is about yet.
    pub said: Option<PersonMessage>,
    pub plan: Option<Plan>,
    /// What the Planner or the Actor asked last.
    pub questions: Vec<String>,
    /// The agent a person has to answer, while one is waited for.
    pub asked_by: Option<Speaker>,
    /// The plan of all loops that a person approved (MX-02).
    pub whole_plan: Option<Artifact>,
    /// The latest answers of Actor and Judge, for the Planner.
    pub actor: Option<Artifact>,
    pub judge: Option<Artifact>,
    /// The work before the step under way: a step that fails is taken back to it.
    pub before: Option<Change>,
    pub battery: Option<BatteryDone>,
    /// What the step under way changed, counted, and the files of it that its plan does not name.
    pub size: Option<StepSize>,
    pub unplanned: Vec<String>,
    /// That of the step before, for the Planner.
    pub last_battery: Option<BatteryDone>,
    pub batteries: u32,
    /// Answers of the seat at hand that could not be read, in a row.
    pub unread: u32,
    /// What was said and found since the goal, for the Planner's brief.
    pub notes: Vec<Note>,
    /// Why steps did not pass since the last start, for the archive.
    pub blockers: Vec<String>,
    /// The step under way has its verdict.
    pub step_over: bool,
    /// A turn whose block is not in the file yet.
    pub owed: Option<Owed>,
    pub seal: String,
    pub blocks: u32,
    pub edited: Option<LoopEdited>,
    pub archived: Option<LoopArchived>,
    /// What kept the last landing from happening.
    pub not_landed: String,
    /// Why a person's last words changed nothing.
    pub refused: String,
    /// Digest of what was last heard from the file, so that it is not heard twice.
    pub heard: String,
    /// Rounds, and working time, since a person last spoke.
    pub rounds_alone: u32,
    pub alone_ms: u64,
    pub told: BTreeSet<Alert>,
}

/// A person's words, however they came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PersonMessage {
    pub line: Seq,
    pub word: Option<Word>,
    pub spoken: Option<Box<TurnSignal>>,
    pub text: String,
    /// They stand in the cycle file already.
    pub in_file: bool,
}

/// The plan that is acted upon, or asked about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    pub artifact: Artifact,
    pub summary: String,
    pub risk: Risk,
    /// The last step of the goal (MX-01).
    pub last: bool,
    /// A person said yes to this very plan.
    pub approved: bool,
    /// It has a forbidden command; a yes to it is a yes to that.
    pub forbidden: bool,
    /// What the person has to look at before saying so.
    pub why: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    pub by: Option<Speaker>,
    pub step: u32,
    pub text: String,
}

/// A block that has to be appended to the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owed {
    pub speaker: Speaker,
    pub artifact: Option<Artifact>,
    pub turn: LoopTurn,
    pub text: String,
    pub above: String,
    pub diff: Option<StepRange>,
}

impl AgentLoop {
    fn new(opened: LoopOpened, line: Seq) -> AgentLoop {
        AgentLoop {
            line,
            goal: opened.goal.clone(),
            place: LoopPosition {
                state: LoopState::Idle,
                insufficient: 0,
                failed: (opened.rules > 0).then_some(0),
            },
            begun: false,
            taken: 0,
            said: None,
            plan: None,
            questions: Vec::new(),
            asked_by: None,
            whole_plan: None,
            actor: None,
            judge: None,
            before: None,
            battery: None,
            size: None,
            unplanned: Vec::new(),
            last_battery: None,
            batteries: 0,
            unread: 0,
            notes: Vec::new(),
            blockers: Vec::new(),
            step_over: false,
            owed: None,
            seal: opened.seal.clone(),
            blocks: opened.blocks,
            edited: None,
            archived: None,
            not_landed: String::new(),
            refused: String::new(),
            heard: opened.heard.clone(),
            rounds_alone: 0,
            alone_ms: 0,
            told: BTreeSet::new(),
            opened,
        }
    }

    /// A person has spoken.
    fn not_alone(&mut self) {
        self.rounds_alone = 0;
        self.alone_ms = 0;
        self.told.clear();
    }

    fn note(&mut self, by: Option<Speaker>, step: u32, text: String) {
        if text.is_empty() {
            return;
        }
        self.notes.push(Note { by, step, text });
        if self.notes.len() > NOTES_AT_MOST {
            self.notes.remove(0);
        }
    }
}

impl Run {
    /// Where a loop is; idle where this is none.
    pub fn loop_state(&self) -> LoopState {
        self.agent_loop.as_ref().map_or(LoopState::Idle, |agent_loop| agent_loop.place.state)
    }

    /// Digest of what was last heard from the cycle file.
    pub fn heard_in_file(&self) -> String {
        self.agent_loop.as_ref().map(|agent_loop| agent_loop.heard.clone()).unwrap_or_default()
    }

    /// The commit the step under way began from: its size is counted from here (PJ-30).
    pub fn step_base(&self) -> Oid {
        let base = || self.request.as_ref().map(|request| request.base.commit.clone()).unwrap_or_default();
        let before = self.agent_loop.as_ref().and_then(|agent_loop| agent_loop.before.as_ref());
        before.map_or_else(base, |work| work.commit.clone())
    }

    pub(crate) fn open_loop(&mut self, line: Seq, opened: &LoopOpened) {
        if self.agent_loop.is_none() {
            self.agent_loop = Some(Box::new(AgentLoop::new(opened.clone(), line)));
        }
    }

    /// The next step begins: what the one before it came to is what the loop stands on.
    pub(crate) fn begin_step(&mut self) {
        let (work, number) = (self.work.clone(), self.number());
        let Some(agent_loop) = &mut self.agent_loop else { return };
        agent_loop.before = work;
        agent_loop.step_over = false;
        agent_loop.last_battery = agent_loop.battery.take().or(agent_loop.last_battery.take());
        agent_loop.batteries = 0;
        agent_loop.unread = 0;
        self.max_cycles = self.max_cycles.max(number);
    }

    /// A loop takes no part in what other runs are told: it ends as it ended, or goes on where it was.
    pub(crate) fn loop_asked_to_land(&mut self, line: Seq) {
        let approves = self.loop_state() == LoopState::Approval;
        let Some(agent_loop) = &mut self.agent_loop else { return };
        if approves {
            let text = "archeflow merge".to_owned();
            agent_loop.said =
                Some(PersonMessage { line, word: Some(Word::Approve), spoken: None, text, in_file: false });
            self.open.retain(|_, order| !matches!(order, Order::QuestionAsked(_)));
        }
        if !self.loop_is_over() {
            self.reopen();
        }
    }

    /// Nothing that a person says changes these any more.
    pub(crate) fn loop_is_over(&self) -> bool {
        let Some(agent_loop) = &self.agent_loop else { return false };
        agent_loop.place.state.is_closed(agent_loop.begun)
    }

    pub(crate) fn hear_person(&mut self, line: Seq, heard: &LoopHeard) {
        if self.agent_loop.is_none() || self.loop_is_over() {
            return;
        }
        let question = heard.start_seq.and_then(|seq| self.open.remove(&seq));
        if question.is_none() && heard.word != Some(Word::Stop) {
            return;
        }
        if let Some(agent_loop) = &mut self.agent_loop
            && !heard.digest.is_empty()
        {
            agent_loop.heard.clone_from(&heard.digest);
        }
        let said = PersonMessage {
            line,
            word: heard.word,
            spoken: heard.spoken.clone(),
            text: heard.text.clone(),
            in_file: heard.spoken.is_some(),
        };
        self.take_words(question.as_ref(), said);
    }

    /// The answer to a question of a loop, in free words.
    pub(crate) fn hear_answer(&mut self, line: Seq, question: &QuestionAsked, text: &str) {
        let said = PersonMessage { line, word: None, spoken: None, text: text.to_owned(), in_file: false };
        let question = Order::from(question.clone());
        self.take_words(Some(&question), said);
    }

    fn take_words(&mut self, question: Option<&Order>, said: PersonMessage) {
        self.reopen();
        let stops = said.word == Some(Word::Stop) || (said.word.is_none() && is_stop(&said.text));
        if stops {
            self.stop_agents();
        }
        let edited = matches!(question, Some(Order::QuestionAsked(asked))
            if asked.kind == crate::event::QuestionKind::LoopEdited);
        let Some(agent_loop) = &mut self.agent_loop else { return };
        agent_loop.edited = None;
        if edited && !stops {
            return;
        }
        if stops {
            // Whatever is wrong with the file, a person who stops does not have to mend it first.
            agent_loop.owed = agent_loop.owed.take().filter(|_| !edited);
        }
        if agent_loop.place.state == LoopState::Idle && !stops {
            agent_loop.goal = format!("{}\n{}", agent_loop.goal, said.text).trim().to_owned();
        }
        let word = if stops { Some(Word::Stop) } else { said.word };
        agent_loop.said = Some(PersonMessage { word, ..said });
    }

    /// Everybody who is out is forgotten; what moves a branch or writes a file is waited for.
    fn stop_agents(&mut self) {
        self.settle_open();
        self.open.retain(|_, order| {
            matches!(
                order,
                Order::LoopAppend(_)
                    | Order::LoopArchive(_)
                    | Order::HookStart(_)
                    | Order::MergeIntent(_)
                    | Order::RevertIntent(_)
            )
        });
    }

    /// What was written while somebody worked was not written about what that came to, so it answers nothing and approves
    /// nothing. Whoever is next is told, and a stop is a stop.
    pub(crate) fn apply_appended(&mut self, line: Seq, appended: &LoopAppended) {
        self.open.remove(&appended.start_seq);
        let number = self.number();
        let over = self.loop_is_over();
        let Some(agent_loop) = &mut self.agent_loop else { return };
        agent_loop.seal.clone_from(&appended.seal);
        agent_loop.blocks = appended.blocks;
        agent_loop.edited = None;
        agent_loop.heard.clear();
        if appended.theirs.is_empty() || over {
            return;
        }
        agent_loop.not_alone();
        if is_stop(&appended.theirs) {
            let (word, text) = (Some(Word::Stop), appended.theirs.clone());
            self.take_words(None, PersonMessage { line, word, spoken: None, text, in_file: true });
        } else {
            agent_loop.note(Some(Speaker::Human), number, bounded(&appended.theirs));
        }
    }

    pub(crate) fn order_append(&mut self) {
        if let Some(agent_loop) = &mut self.agent_loop {
            agent_loop.owed = None;
        }
    }

    /// Nothing was appended: the order stays owed until somebody has looked at the file.
    pub(crate) fn apply_edited(&mut self, edited: &LoopEdited) {
        let order = self.open.remove(&edited.start_seq);
        let Some(agent_loop) = &mut self.agent_loop else { return };
        agent_loop.edited = Some(edited.clone());
        let Some(Order::LoopAppend(append)) = order else { return };
        let LoopAppend { speaker, artifact, text, above, diff, .. } = *append;
        let turn = quiet_turn(agent_loop.place);
        agent_loop.owed = Some(Owed { speaker, artifact, turn, text, above, diff });
    }

    pub(crate) fn apply_turn(&mut self, turn: &LoopTurn) {
        let (number, planner) = (self.number(), self.sitting(Role::Creator));
        let step = StepRange { from: self.step_base(), to: self.tip() };
        let answered = self.cycle().and_then(|cycle| {
            cycle.answers.iter().find(|(_, found)| found.seq == turn.line).map(|(name, found)| {
                (name.clone(), found.artifact.clone(), found.answer.spoken.clone().unwrap_or_default())
            })
        });
        let Some(agent_loop) = &mut self.agent_loop else { return };
        agent_loop.taken = agent_loop.taken.max(turn.line);
        let said = agent_loop.said.take();
        let Some(heard) = turn.heard else {
            self.apply_unheard(turn, said.as_ref(), answered.map(|(name, ..)| name));
            return;
        };
        agent_loop.place =
            LoopPosition { state: turn.to, insufficient: turn.insufficient, failed: turn.failed };
        if turn.to == LoopState::Waiting {
            agent_loop.asked_by = turn.by;
        }
        agent_loop.begun |= heard == TurnEvent::Goal;
        agent_loop.unread = 0;
        agent_loop.refused.clear();
        agent_loop.owed =
            owed(agent_loop, turn, said.as_ref(), answered.as_ref().map(|(_, artifact, _)| artifact));
        // M-02: an Actor's block has the diff of its step above it.
        let shows = turn.by == Some(Speaker::Actor) && agent_loop.opened.rules > 0 && step.from != step.to;
        if let Some(owed) = agent_loop.owed.as_mut().filter(|_| shows) {
            owed.diff = Some(step);
        }
        let words = said.as_ref().map_or_else(|| turn.summary.clone(), |said| bounded(&said.text));
        let told = std::iter::once(words).chain(turn.why.iter().cloned());
        let told: Vec<String> = told.filter(|text| !text.is_empty()).collect();
        if heard != TurnEvent::Goal {
            agent_loop.note(turn.by, number, told.join("; "));
        }
        if turn.by == Some(Speaker::Human) {
            agent_loop.not_alone();
        }
        if let Some((_, artifact, spoken)) = answered {
            agent_loop.keep(heard, turn, artifact, &spoken);
        }
        match heard {
            TurnEvent::Fail | TurnEvent::GraveFail | TurnEvent::Insufficient => {
                agent_loop.rounds_alone += 1;
                agent_loop.blockers.push(format!("step {number}: {}", told.join("; ")));
            }
            TurnEvent::PassOn => agent_loop.rounds_alone += 1,
            TurnEvent::Approve if turn.from == LoopState::Gate => {
                if let Some(plan) = &mut agent_loop.plan {
                    plan.approved = true;
                    if agent_loop.opened.upfront && agent_loop.whole_plan.is_none() {
                        agent_loop.whole_plan = Some(plan.artifact.clone());
                    }
                }
            }
            TurnEvent::Restart => {
                agent_loop.blockers.clear();
                agent_loop.archived = None;
            }
            TurnEvent::NotLanded => agent_loop.not_landed = turn.why.join("; "),
            TurnEvent::Goal
            | TurnEvent::Questions
            | TurnEvent::Answer
            | TurnEvent::Plan
            | TurnEvent::GatedPlan
            | TurnEvent::Success
            | TurnEvent::NeedsPerson
            | TurnEvent::Pass
            | TurnEvent::Unclear
            | TurnEvent::Approve
            | TurnEvent::RequestChanges
            | TurnEvent::Landed
            | TurnEvent::Clear
            | TurnEvent::Stop => {}
        }
        self.follow_turn(heard, turn, &planner);
    }

    /// What a turn means for the rest of the run.
    fn follow_turn(&mut self, heard: TurnEvent, turn: &LoopTurn, planner: &str) {
        match heard {
            // The work of a step that failed, or that nobody judged, is kept under its ref and is no part of what lands.
            TurnEvent::Fail | TurnEvent::GraveFail | TurnEvent::NeedsPerson => {
                self.work = self.agent_loop.as_ref().and_then(|agent_loop| agent_loop.before.clone());
            }
            TurnEvent::Approve if turn.to == LoopState::Landing => {
                self.landing = Landing { agreed: true, ..Landing::default() };
                self.hooks.remove(&HookPoint::PreMerge);
                self.hooks.remove(&HookPoint::PostMerge);
            }
            TurnEvent::NotLanded => self.landing = Landing::default(),
            TurnEvent::Goal
            | TurnEvent::Questions
            | TurnEvent::Answer
            | TurnEvent::Plan
            | TurnEvent::GatedPlan
            | TurnEvent::Success
            | TurnEvent::Pass
            | TurnEvent::PassOn
            | TurnEvent::Insufficient
            | TurnEvent::Unclear
            | TurnEvent::Approve
            | TurnEvent::RequestChanges
            | TurnEvent::Landed
            | TurnEvent::Restart
            | TurnEvent::Clear
            | TurnEvent::Stop => {}
        }
        let over = self.agent_loop.as_ref().is_some_and(|agent_loop| agent_loop.step_over);
        if turn.to == LoopState::Align && !over && !self.cycles.is_empty() {
            self.cycle_mut().forget(planner);
        }
    }

    /// Words that mean nothing here. An agent has to answer anew; what a person says to an agent is told to it.
    fn apply_unheard(&mut self, turn: &LoopTurn, said: Option<&PersonMessage>, name: Option<String>) {
        let number = self.number();
        let Some(agent_loop) = &mut self.agent_loop else { return };
        match turn.by {
            Some(Speaker::Human) if turn.from.whose() == Some(Speaker::Human) => {
                agent_loop.refused = turn.why.join("; ");
            }
            Some(Speaker::Human) => {
                agent_loop.unread = 0;
                agent_loop.not_alone();
                let words = said.map(|said| bounded(&said.text)).unwrap_or_default();
                agent_loop.note(turn.by, number, words);
                agent_loop.owed = owed(agent_loop, turn, said, None);
            }
            Some(Speaker::Planner | Speaker::Actor | Speaker::Judge) | None => {
                agent_loop.unread += 1;
                agent_loop.refused = turn.why.join("; ");
                if let Some(name) = name {
                    self.cycle_mut().forget(&name);
                }
            }
        }
    }

    pub(crate) fn begin_battery(&mut self, start: &BatteryStart) {
        if let Some(agent_loop) = &mut self.agent_loop {
            agent_loop.batteries = start.attempt;
        }
    }

    pub(crate) fn end_battery(&mut self, done: BatteryDone) {
        self.open.remove(&done.start_seq);
        self.worked_alone(done.duration_ms);
        if let Some(agent_loop) = &mut self.agent_loop {
            agent_loop.battery = Some(done);
        }
    }

    pub(crate) fn keep_archive(&mut self, archived: LoopArchived) {
        self.open.remove(&archived.start_seq);
        if let Some(agent_loop) = &mut self.agent_loop {
            agent_loop.archived = Some(archived);
        }
    }

    pub(crate) fn note_alert(&mut self, alert: Alert) {
        if let Some(agent_loop) = &mut self.agent_loop {
            agent_loop.told.insert(alert);
        }
    }

    pub(crate) fn worked_alone(&mut self, ms: u64) {
        if let Some(agent_loop) = &mut self.agent_loop {
            agent_loop.alone_ms = agent_loop.alone_ms.saturating_add(ms);
        }
    }
}

impl AgentLoop {
    /// What an agent's turn leaves behind.
    fn keep(&mut self, heard: TurnEvent, turn: &LoopTurn, artifact: Artifact, spoken: &TurnSignal) {
        match turn.by {
            Some(Speaker::Planner) if matches!(heard, TurnEvent::Plan | TurnEvent::GatedPlan) => {
                self.plan = Some(Plan {
                    artifact,
                    summary: turn.summary.clone(),
                    risk: turn.risk.unwrap_or(Risk::Medium),
                    last: spoken.result == Some(Token::FinalPlanCreated),
                    approved: false,
                    forbidden: spoken.forbidden.is_some(),
                    why: turn.why.clone(),
                });
            }
            Some(Speaker::Planner) if heard == TurnEvent::Questions => {
                self.questions.clone_from(&spoken.questions);
            }
            Some(Speaker::Actor) => {
                if heard == TurnEvent::NeedsPerson {
                    self.questions.clone_from(&spoken.questions);
                }
                self.actor = Some(artifact);
                self.size = spoken.size;
                self.unplanned.clone_from(&spoken.unplanned);
                self.step_over = heard != TurnEvent::Success;
            }
            Some(Speaker::Judge) => {
                self.judge = Some(artifact);
                self.step_over = true;
            }
            Some(Speaker::Human | Speaker::Planner) | None => {}
        }
    }
}

fn owed(
    agent_loop: &AgentLoop,
    turn: &LoopTurn,
    said: Option<&PersonMessage>,
    artifact: Option<&Artifact>,
) -> Option<Owed> {
    let speaker = turn.by?;
    let goal = turn.heard == Some(TurnEvent::Goal);
    let in_file = match (goal, said) {
        (true, None) => agent_loop.opened.in_file,
        (true, Some(said)) => agent_loop.opened.in_file && said.in_file,
        (false, said) => said.is_some_and(|said| said.in_file),
    };
    if speaker == Speaker::Human && in_file {
        return None;
    }
    let text =
        if goal { agent_loop.goal.clone() } else { said.map(|said| said.text.clone()).unwrap_or_default() };
    let (above, diff) = (String::new(), None);
    Some(Owed { speaker, artifact: artifact.cloned(), turn: turn.clone(), text, above, diff })
}

/// For a block whose words are known already.
fn quiet_turn(place: LoopPosition) -> LoopTurn {
    LoopTurn {
        line: 0,
        by: None,
        heard: None,
        from: place.state,
        to: place.state,
        insufficient: place.insufficient,
        failed: place.failed,
        said: None,
        risk: None,
        summary: String::new(),
        why: Vec::new(),
        deviations: Vec::new(),
    }
}

fn bounded(text: &str) -> String {
    text.trim().chars().take(WORDS_AT_MOST).collect()
}

/// A person who says stop, and nothing else.
fn is_stop(text: &str) -> bool {
    text.trim().eq_ignore_ascii_case("stop")
}
