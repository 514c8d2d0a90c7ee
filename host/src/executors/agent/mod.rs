//! Runs an agent and collects what it did: a working copy, the process, its answer, its commits.
//!
//! Every attempt has a folder of its own. `done.json` in it says that the process has ended; after a crash an
//! attempt with it is concluded without starting anything, and one without it is reported lost.

mod folder;
mod parts;
mod said;
mod work;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use archeflow_core::event::{
    AgentComplete, AgentFailed, AgentLost, AgentTimeout, CostSource, Failure, Money, Report, Tokens,
};
use archeflow_core::model::{Answer, Change, Role, Status};
use archeflow_core::rules::{ledger::Usage, prices, signs::without_credentials};
use archeflow_core::{accept, read};

use self::said::{last_lines, without_code};
use super::client::{self, Seat};
use super::confined::{AgentPlace, AgentSandbox};
use super::context::AgentInputs;
use super::done::{Done, End};
use super::held_key::KeyHolding;
use super::meter::{self, EarlierParts, UsageMeter};
use super::{ExecutorFault, Message, account, artifact_name, citations, report, spelling, usage};
use crate::backends::{AgentBackend, cli::Start};
use crate::failpoint;
use crate::git::user_state::UserState;
use crate::git::workspace::{self, Slot};
use crate::git::{ObjectId, change, runner};
use crate::hands;
use crate::platform::files as os;
use crate::platform::removal::remove_tree;
use crate::proc::{self, Job, JobLimits, Sink, Stream};
use crate::sandbox::PrivateFolders;
use crate::secrets::Secrets;
use crate::store::files;
use crate::strategies::MeasureFault;
use crate::world::{World, WorldSandbox};

/// The longest answer that is read; memory stays bounded whatever an agent prints (I11).
const READ_AT_MOST: u64 = 4_000_000;

/// The files with an attempt's answer and with what a client printed around it.
pub(crate) const ANSWER: &str = "answer.md";
const FORM: &str = "answer.json";

/// How often a running agent's files are looked at.
const LOOKS: Duration = Duration::from_millis(100);

/// What an agent writes about its own costs.
const USAGE: &str = "usage.json";
pub(crate) const STREAM: &str = "stream.jsonl";

struct Attempt<'a> {
    world: &'a World,
    inputs: &'a AgentInputs,
    /// The prompt of an agent that begins, and what was used before it on other parts of the same diff.
    brief: &'a str,
    earlier: EarlierParts,
    folder: PathBuf,
    /// The client that is driven, where it is one with a name of its own.
    seat: Option<Seat<'a>>,
}

pub(super) fn perform(world: &World, inputs: &AgentInputs, send: &Sender<Message>) {
    let folder =
        world.artifacts().join("attempts").join(format!("{}-{}", inputs.seq, inputs.start.archetype));
    let attempt = Attempt::new(world, inputs, &inputs.brief, EarlierParts::default(), folder);
    let performed = if inputs.parts.is_empty() { attempt.perform(send) } else { attempt.perform_parts(send) };
    match performed {
        Ok(event) => report(send, inputs.seq, event),
        Err(Fault::Trouble(trouble)) => {
            let _ = send.send(Message::Trouble(trouble));
        }
        Err(fault) => {
            report(send, inputs.seq, attempt.failed(Failure::WorkspaceGone, fault.to_string(), 0, None));
        }
    }
}

#[derive(Debug, thiserror::Error)]
enum Fault {
    #[error("its working copy could not be used: {0}")]
    Workspace(#[from] workspace::Error),
    #[error("git: {0}")]
    Git(#[from] runner::Error),
    #[error("{0}")]
    Trouble(ExecutorFault),
    #[error("'{0}' is not an object name")]
    Oid(String),
    #[error(transparent)]
    Measure(#[from] MeasureFault),
}

impl<'a> Attempt<'a> {
    fn new(
        world: &'a World,
        inputs: &'a AgentInputs,
        brief: &'a str,
        earlier: EarlierParts,
        folder: PathBuf,
    ) -> Attempt<'a> {
        let seat = match AgentBackend::parse(&inputs.start.agent, Path::new("/")) {
            Ok(AgentBackend::Cli(client, model)) => {
                let share = inputs.share.map(|share| Money(share.0.saturating_sub(earlier.cost.0)));
                Some(Seat::new(world, (&inputs.start, inputs.schema, share), (client, model), &folder))
            }
            Ok(AgentBackend::Cmd(_) | AgentBackend::Script(_) | AgentBackend::Sim(_)) | Err(_) => None,
        };
        Attempt { world, inputs, brief, earlier, folder, seat }
    }

    fn perform(&self, send: &Sender<Message>) -> Result<Report, Fault> {
        if let Some(done) = self.read_done() {
            return self.conclude(&done, self.pending()?.as_mut());
        }
        if self.folder.is_dir() {
            return self.lost(self.pending()?.as_mut(), "the program stopped while this agent was out");
        }
        let at = oid(&self.inputs.start.at)?;
        self.write_folder()?;
        // The parts of a diff follow each other without a pause.
        if self.inputs.start.wait_ms > 0 && self.earlier.count == 0 {
            self.wait();
        }
        if let Some(shut) = self.shut_by_another() {
            return Ok(shut);
        }
        let before = self.world.user_state()?;
        match self.inputs.start.role {
            Role::Maker => {
                let cut_short = self.keep_ref_of(self.inputs.start.attempt.saturating_sub(1));
                let from = client::continued_from(self.world, self.seat.as_ref(), at, &cut_short)?;
                let mut slot = self.world.copies.take_maker(&from, &self.name())?;
                self.world.copies.get_ready(self.inputs.next, &from);
                let done = self.run(&slot.tree(), false, send)?;
                change::get_ready(&self.world.repo);
                let concluded = self.untampered(&before).and_then(|()| self.conclude(&done, Some(&mut slot)));
                change::be_done(&self.world.repo);
                concluded
            }
            Role::Explorer | Role::Creator | Role::Gatekeeper | Role::Reviewer => {
                let reader = self.world.copies.take_reader(&at)?;
                self.world.copies.get_ready(self.inputs.next, &at);
                let mut done = self.run_only(&reader.slot.tree(), send);
                done.tampered_copy = !self.world.copies.return_reader(reader);
                self.write_done(&done)?;
                self.untampered(&before)?;
                self.conclude(&done, None)
            }
        }
    }

    /// R8, S-04: an agent that reached into the user's repository stops everything.
    fn untampered(&self, before: &UserState) -> Result<(), Fault> {
        let Some(what) = self.world.changed_since(before) else { return Ok(()) };
        let who = format!("the {}", self.inputs.start.archetype);
        Err(Fault::Trouble(ExecutorFault::Tampered { who, what }))
    }

    /// C6: another run found the account limited, and no request succeeded since. Nothing is started.
    fn shut_by_another(&self) -> Option<Report> {
        let account = self.inputs.start.account.as_str();
        let left = account::shut_for(self.world, account)?;
        let reason = format!("the account {account} is limited, as another run has found out");
        let mut failed = self.failure_of(Failure::Busy, reason, 0, None);
        (failed.estimated_cost_usd, failed.cost_source) = (Some(Money::ZERO), None);
        failed.reopens_in_ms = Some(left);
        Some(failed.into())
    }

    fn wait(&self) {
        account::share_limit(self.world, &self.inputs.start.account, self.inputs.start.wait_ms);
        let until = std::time::Instant::now() + Duration::from_millis(self.inputs.start.wait_ms);
        while std::time::Instant::now() < until && !self.world.agents_watch.is_stopping() {
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn run(&self, tree: &Path, tampered_copy: bool, send: &Sender<Message>) -> Result<Done, Fault> {
        let mut done = self.run_only(tree, send);
        done.tampered_copy = tampered_copy;
        self.write_done(&done)?;
        Ok(done)
    }

    fn run_only(&self, tree: &Path, send: &Sender<Message>) -> Done {
        let start = &self.inputs.start;
        let scratch = self.world.state.join("tmp").join(format!("{}.{}", self.world.tag, self.inputs.seq));
        let _ = os::private_directory().recursive(true).create(&scratch);
        let (agent, held) = match self.agent_with_key() {
            Ok(both) => both,
            Err(why) => return Done::not_started(why),
        };
        let mut begin = match self.begin(&agent, tree, held.as_ref()) {
            Ok(begin) => begin,
            Err(why) => return Done::not_started(why),
        };
        let tmp = match self.world.sandbox {
            WorldSandbox::Off => scratch.clone(),
            WorldSandbox::On { .. } => scratch.join("tmp"),
        };
        let mut env = self.env(&tmp);
        if let Some(held) = &held {
            env.retain(|(_, value)| !held.proxy.is_key(value));
        }
        let place = AgentPlace {
            agent: &agent,
            role: start.role,
            tree,
            private: PrivateFolders { home: self.private_home(&scratch), tmp: scratch.join("tmp") },
            scratch: &scratch,
            env: &env,
            held: held.as_ref(),
        };
        let mut confined = match AgentSandbox::make(self.world, &place, &mut begin) {
            Ok(confined) => confined,
            Err(error) => {
                let _ = remove_tree(&scratch);
                return Done::not_started(format!("its sandbox can't be made: {error}"));
            }
        };
        env.extend(begin.env);
        let secrets = Secrets::of_agent(&[&self.world.own, &env], &begin.linked);
        let job = Job {
            program: begin.invocation.program,
            args: begin.invocation.args,
            env,
            cwd: tree.to_path_buf(),
            stdin: self.prompt().as_bytes().to_vec(),
            stdout: Sink::file(self.folder.join(if self.seat.is_some() { STREAM } else { ANSWER })),
            stderr: Sink::file(self.folder.join("stderr.log")),
            limits: JobLimits {
                silence: Duration::from_millis(start.silence_ms),
                total: Duration::from_millis(start.total_ms),
                ..JobLimits::default()
            },
            tag: format!("{}.{}", self.world.tag, self.inputs.seq),
            sandbox: confined.sandbox.take(),
        };
        failpoint::pass("agent.housed");
        let watch = self.world.watch_attempt(self.inputs.seq);
        let ended = self.listened((job, &secrets), &watch, tree, send);
        if let Some(seat) = &self.seat {
            begin.linked.iter().for_each(|linked| client::unlink_file(seat.home(), linked));
        }
        let refused = confined.refused_hosts();
        confined.end();
        self.keep_usage(&tmp);
        hands::remove_folder(&scratch);
        failpoint::pass("agent.ended");
        let done = Done { refused_hosts: refused, ..Done::of(&ended) };
        let used_up = matches!(done.end, End::Stopped) && watch.asks_itself();
        if used_up { Done { end: End::UsedUp, ..done } } else { done }
    }

    /// Runs the process, and counts what a client uses: by its output as that comes, and by its files a few times a
    /// second. A command reports its usage when it ends.
    fn listened(
        &self,
        (job, secrets): (Job, &Secrets),
        watch: &proc::Watch,
        tree: &Path,
        send: &Sender<Message>,
    ) -> proc::JobEnd {
        let Some(seat) = &self.seat else {
            let mut line = AgentLine { order: self.inputs.seq, send, last: None };
            return proc::run_masked(job, secrets, watch, &mut |stream, bytes| line.hear(stream, bytes));
        };
        let meter = UsageMeter {
            order: self.inputs.seq,
            start: &self.inputs.start,
            costs: &self.inputs.costs,
            limited: self.inputs.share.is_some(),
            folder: self.folder.clone(),
            send: send.clone(),
            last: Usage::default(),
            earlier: self.earlier,
            told: Money::ZERO,
        };
        let ear = Mutex::new(seat.ear(tree, meter));
        let lock = || ear.lock().unwrap_or_else(PoisonError::into_inner);
        let (over, ended) = channel::<()>();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let ended = ended;
                while ended.recv_timeout(LOOKS) == Err(RecvTimeoutError::Timeout) {
                    lock().look(true);
                }
            });
            let ended = proc::run_masked(job, secrets, watch, &mut |stream, bytes| {
                if stream == Stream::Stdout {
                    lock().hear(bytes);
                }
            });
            lock().look(false);
            drop(over);
            ended
        })
    }

    /// Clients keep their home from one attempt to the next; others begin with an empty one.
    fn private_home(&self, scratch: &Path) -> PathBuf {
        self.seat.as_ref().map_or_else(|| scratch.join("home"), |seat| seat.home().to_path_buf())
    }

    /// The agent, and the proxy that holds its key if the user wants that.
    fn agent_with_key(&self) -> Result<(AgentBackend, Option<KeyHolding>), String> {
        let agent = AgentBackend::parse(&self.inputs.start.agent, Path::new("/"))
            .map_err(|error| error.to_string())?;
        let held = KeyHolding::open(self.world, &agent)?;
        Ok((agent, held))
    }

    fn begin(&self, agent: &AgentBackend, tree: &Path, held: Option<&KeyHolding>) -> Result<Start, String> {
        if let Some(seat) = &self.seat {
            return seat
                .prepare_home(self.world, tree, held)
                .map_err(|error| format!("its home can't be made: {error}"));
        }
        let invocation = agent.invocation(&self.world.me);
        Ok(Start { invocation, env: Vec::new(), linked: Vec::new(), files: Vec::new() })
    }

    /// The whole brief, unless a session is resumed.
    fn prompt(&self) -> &str {
        match self.seat.as_ref().and_then(Seat::resumes) {
            Some(_) => &self.inputs.correction,
            None => self.brief,
        }
    }

    /// Clients and models read the code in their brief. A command gets it in a variable as well: a script should not have to
    /// search for it.
    fn is_command(&self) -> bool {
        matches!(AgentBackend::parse(&self.inputs.start.agent, Path::new("/")), Ok(AgentBackend::Cmd(_)))
    }

    /// The environment of INTERFACES section 3.
    fn env(&self, scratch: &Path) -> Vec<(OsString, OsString)> {
        let start = &self.inputs.start;
        let identity = self.world.repo.identity();
        let mut env = self.world.env.clone();
        let mut set = |name: &str, value: OsString| env.push((name.into(), value));
        set("ARCHEFLOW_RUN_ID", self.world.run_id.clone().into());
        set("ARCHEFLOW_ROLE", start.archetype.clone().into());
        set("ARCHEFLOW_PHASE", phase(start.role).into());
        set("ARCHEFLOW_CYCLE", start.cycle.to_string().into());
        set("ARCHEFLOW_ATTEMPT", start.attempt.to_string().into());
        set("ARCHEFLOW_PURPOSE", start.purpose.name().into());
        set("ARCHEFLOW_MODEL", start.model.name().into());
        if self.is_command() {
            set("ARCHEFLOW_CODE", self.code().into());
        }
        set("ARCHEFLOW_USAGE_FILE", scratch.join(USAGE).into());
        set("TMPDIR", scratch.into());
        for who in ["AUTHOR", "COMMITTER"] {
            set(&format!("GIT_{who}_NAME"), identity.name.clone().into());
            set(&format!("GIT_{who}_EMAIL"), identity.email.clone().into());
        }
        env
    }

    /// From what is on disk to the report. Doing it twice gives the same twice.
    fn conclude(&self, done: &Done, slot: Option<&mut Slot>) -> Result<Report, Fault> {
        let spoken = self.seat.as_ref().map(Seat::spoken);
        let (said, left_out) = self.answer_bytes(spoken.as_ref());
        let start = &self.inputs.start;
        let in_form = spoken.as_ref().is_some_and(|spoken| spoken.form.is_some() && spoken.misfit.is_none());
        // The fields of a form can't be quotations.
        let code = if in_form { String::new() } else { self.code() };
        let mut answer = self.answer(&said, &code);
        let said = without_code(said, &self.code());
        let is_answer = match &answer.spoken {
            Some(spoken) => spoken.fault.is_empty(),
            None => answer.status != Status::Unverified,
        };
        let silent_after_answer = matches!(done.end, End::Silent | End::TooLong) && is_answer;
        let empty = said.iter().all(u8::is_ascii_whitespace);
        if matches!(done.end, End::Stopped) {
            // A signal stops everything; without one the program stopped it.
            let by_user = self.world.watch.is_stopping();
            return self.lost(slot, if by_user { "stopped by the user" } else { "stopped by the program" });
        }
        let failure = if silent_after_answer { None } else { self.failure(done, empty, left_out) };
        if let Some((kind, reason)) = failure {
            use Failure::{Auth, Exit, Network, Silence, TooLong};
            let refused = done.refused_hosts.as_ref();
            // Clients ask for more hosts than they need: it explains only what a missing host can lead to.
            let refused = refused.filter(|_| matches!(kind, Auth | Exit | Network | Silence | TooLong));
            let refused = refused.map(|why| format!("; {why}")).unwrap_or_default();
            let reason = reason + &refused;
            let kept_as = self.keep(slot)?;
            let mut failed = self.failed(kind, reason, done.duration_ms, kept_as);
            let never_began = matches!(done.end, End::NotStarted(_) | End::NoSandbox(_))
                || self.seat.as_ref().is_some_and(Seat::never_began);
            if let (true, Report::AgentFailed(failed)) = (never_began, &mut failed) {
                // What never began has cost nothing (M-G13).
                failed.estimated_cost_usd = Some(Money::ZERO);
                (failed.cost_source, failed.notes) = (None, Vec::new());
            }
            return Ok(failed);
        }
        let change = match start.role {
            Role::Maker => self.collect(slot)?,
            Role::Explorer | Role::Creator | Role::Gatekeeper | Role::Reviewer => None,
        };
        if let Some(conversation) = &self.inputs.conversation {
            let commit = change.as_ref().map_or(&start.at, |change| &change.commit);
            let answer = conversation.measure(self.world, &said, commit)?;
            return self.complete(done, silent_after_answer, &said, answer, change);
        }
        spelling::respell(&self.world.repo, &start.at, &mut answer)?;
        citations::resolve(&self.world.repo, &start.at, &self.inputs.changed, &mut answer)?;
        if let Err((kind, reason)) = accept::accept(start.role, &answer, change.is_some(), !code.is_empty()) {
            let reason = match answer.status {
                Status::Unverified => {
                    let has_it = self.is_command() && !code.is_empty();
                    let remedy = if has_it { " (a command has it in ARCHEFLOW_CODE)" } else { "" };
                    format!("{reason}{remedy}; {}", last_lines(&said))
                }
                Status::Done | Status::DoneWithConcerns | Status::NeedsContext | Status::Blocked => reason,
            };
            let kept_as = change.map(|change| change.kept_as);
            let misfit = spoken.and_then(|spoken| spoken.misfit);
            let misfit = misfit.map(|why| format!("; its form does not fit: {why}")).unwrap_or_default();
            return Ok(self.failed(kind, reason + &misfit, done.duration_ms, kept_as));
        }
        self.complete(done, silent_after_answer, &said, answer, change)
    }

    fn answer(&self, said: &[u8], code: &str) -> Answer {
        let start = &self.inputs.start;
        match &self.inputs.conversation {
            Some(conversation) => conversation.read(said),
            None => read::answer_in(start.role, &start.archetype, said, &self.inputs.categories, code),
        }
    }

    /// Why the process gave no answer, as far as its end shows. What a client reports itself comes first:
    /// its exit code is worth little.
    fn failure(&self, done: &Done, empty: bool, left_out: u64) -> Option<(Failure, String)> {
        let start = &self.inputs.start;
        if matches!(done.end, End::UsedUp) {
            let used = self.counted(&self.usage()).map_or(start.reserved_usd, |(cost, _)| cost);
            let reason =
                format!("it was stopped after {}: its share of the budget was used up", used.shown());
            return Some((Failure::Budget, reason));
        }
        if let Some(seat) = &self.seat {
            let cut_short = || match &done.end {
                End::Exited(code) if !seat.output().finished => {
                    Some(seat.cut_short(*code, &self.last_words()))
                }
                End::Exited(_)
                | End::Signaled(_)
                | End::Silent
                | End::TooLong
                | End::Stopped
                | End::UsedUp
                | End::OverLimit(_)
                | End::NotStarted(_)
                | End::NoSandbox(_) => None,
            };
            if let Some(failure) = seat.fault().or_else(cut_short).or_else(|| seat.refused()) {
                return Some(failure);
            }
        }
        match &done.end {
            End::Exited(0) if empty => {
                Some((Failure::Empty, "it exited with code 0 but printed nothing".to_owned()))
            }
            End::Exited(0) if left_out > 0 && matches!(start.role, Role::Gatekeeper | Role::Reviewer) => {
                let reason =
                    format!("it printed {} bytes; a review has at most {READ_AT_MOST}", done.said_bytes);
                Some((Failure::Garbled, reason))
            }
            End::Exited(0) | End::Stopped | End::UsedUp => None,
            End::Exited(75) => Some((Failure::Busy, "it asks to be retried later (exit 75)".to_owned())),
            End::Exited(code @ (126 | 127)) => Some((
                Failure::NotStarted,
                format!("its command can't be run (exit {code}): {}", self.last_words()),
            )),
            End::Exited(code) => {
                Some((Failure::Exit, format!("it ended with exit code {code}: {}", self.last_words())))
            }
            End::Signaled(signal) => Some((Failure::Signal, format!("it was killed by signal {signal}"))),
            End::Silent => {
                Some((Failure::Silence, format!("it was silent for {} s", start.silence_ms / 1_000)))
            }
            End::TooLong => {
                Some((Failure::TooLong, format!("it took longer than {} s", start.total_ms / 1_000)))
            }
            End::OverLimit(what) => Some((Failure::Signal, format!("it was stopped: {what}"))),
            End::NotStarted(why) => Some((Failure::NotStarted, why.clone())),
            End::NoSandbox(why) => Some((Failure::Exit, why.clone())),
        }
    }

    fn complete(
        &self,
        done: &Done,
        silent_after_answer: bool,
        said: &[u8],
        answer: Answer,
        change: Option<Change>,
    ) -> Result<Report, Fault> {
        let start = &self.inputs.start;
        let name = artifact_name(start);
        self.write_artifact(&name, said)?;
        let mut artifacts = vec![name];
        if let Some(change) = &change {
            let list: String = change.files.iter().map(|file| format!("{}\n", file.path)).collect();
            self.write_artifact("do-maker-files.txt", list.as_bytes())?;
            artifacts.push("do-maker-files.txt".to_owned());
        }
        let mut notes = self.inputs.notes.clone();
        let conversation = self.inputs.conversation.as_ref();
        notes.extend(conversation.and_then(|conversation| conversation.remark(self.world, said)));
        if done.leftovers > 0 {
            notes.push(format!("left {} processes behind; they were ended", done.leftovers));
        }
        if done.cut {
            notes.push(format!("printed {} bytes; the middle is not kept", done.said_bytes));
        }
        if silent_after_answer {
            notes.push("its answer was complete but it did not end; it was ended".to_owned());
        }
        if done.tampered_copy {
            notes.push("it changed its read-only checkout; the changes were dropped".to_owned());
        }
        let usage = self.usage();
        let counted = self.counted(&usage);
        let priced = counted.is_some_and(|(_, source)| source == CostSource::Priced);
        notes.extend(self.price_note(&usage).filter(|_| priced));
        let complete = AgentComplete {
            archetype: start.archetype.clone(),
            start_seq: self.inputs.seq,
            duration_ms: done.duration_ms,
            artifacts,
            digest: files::digest(said),
            summary: answer.summary.clone(),
            model: start.model,
            answer,
            change,
            tokens: usage.tokens,
            estimated_cost_usd: counted.map(|(cost, _)| cost),
            cost_source: counted.map(|(_, source)| source),
            notes,
            session: self.seat.as_ref().and_then(Seat::session),
            played: self.seat.as_ref().map(|seat| seat.player(self.world, true)),
            brief_chars: self.brief_chars(),
        };
        account::served(self.world, &start.account);
        Ok(complete.into())
    }

    fn lost(&self, slot: Option<&mut Slot>, reason: &str) -> Result<Report, Fault> {
        let kept_as = match self.inputs.start.role {
            Role::Maker => self.keep(slot)?,
            Role::Explorer | Role::Creator | Role::Gatekeeper | Role::Reviewer => None,
        };
        let (archetype, reason) = (self.inputs.start.archetype.clone(), reason.to_owned());
        let usage = self.usage();
        let counted = self.counted(&usage);
        let lost = AgentLost {
            archetype,
            start_seq: self.inputs.seq,
            reason,
            kept_as,
            estimated_cost_usd: counted.map(|(cost, _)| cost),
            cost_source: counted.map(|(_, source)| source),
            tokens: stated(&usage),
        };
        Ok(lost.into())
    }

    fn failed(&self, kind: Failure, reason: String, duration_ms: u64, kept_as: Option<String>) -> Report {
        let mut failed = self.failure_of(kind, reason, duration_ms, kept_as);
        failed.reason = without_credentials(&failed.reason);
        if let Some(reopens_in_ms) = failed.reopens_in_ms {
            account::share_limit(self.world, &self.inputs.start.account, reopens_in_ms);
        }
        if matches!(kind, Failure::Silence | Failure::TooLong) {
            AgentTimeout(failed).into()
        } else {
            failed.into()
        }
    }

    fn failure_of(
        &self,
        kind: Failure,
        reason: String,
        duration_ms: u64,
        kept_as: Option<String>,
    ) -> AgentFailed {
        let usage = self.usage();
        let counted = self.counted(&usage);
        let priced = counted.is_some_and(|(_, source)| source == CostSource::Priced);
        let seat = self.seat.as_ref();
        AgentFailed {
            archetype: self.inputs.start.archetype.clone(),
            start_seq: self.inputs.seq,
            kind,
            reason,
            duration_ms,
            kept_as,
            estimated_cost_usd: counted.map(|(cost, _)| cost),
            cost_source: counted.map(|(_, source)| source),
            tokens: stated(&usage),
            notes: self.price_note(&usage).filter(|_| priced).into_iter().collect(),
            reopens_in_ms: seat
                .filter(|_| kind.is_busy())
                .and_then(Seat::reopens)
                .map(|s| s.saturating_mul(1_000)),
            played: seat.map(|seat| seat.player(self.world, false)),
            brief_chars: self.brief_chars(),
            session: seat.and_then(|seat| seat.interrupted(kind)),
        }
    }

    fn brief_chars(&self) -> u64 {
        u64::try_from(self.prompt().chars().count()).unwrap_or(u64::MAX)
    }

    fn usage(&self) -> Usage {
        match &self.seat {
            Some(seat) => seat.usage(),
            None => usage::read(&self.folder.join(USAGE)),
        }
    }

    /// What this attempt counts with.
    fn counted(&self, usage: &Usage) -> Option<(Money, CostSource)> {
        let start = &self.inputs.start;
        meter::charged(start, &self.inputs.costs, usage, start.reserved_usd)
    }

    /// M-G9.
    fn price_note(&self, usage: &Usage) -> Option<String> {
        let (price, known) = prices::charged(&self.inputs.costs, self.inputs.start.model, &usage.model)?;
        let note = || {
            format!(
                "the price of the model '{}' is not known; that of {} is assumed: {} and {} for a million tokens in and out",
                usage.model,
                price.model,
                price.input.shown(),
                price.output.shown()
            )
        };
        (!known).then(note)
    }
}

/// The tokens of an attempt that gave no answer; zeros say nothing.
fn stated(usage: &Usage) -> Option<Tokens> {
    usage.tokens.filter(|tokens| *tokens != Tokens::default())
}

/// The last line an agent printed, a few times a second at most.
struct AgentLine<'a> {
    order: u64,
    send: &'a Sender<Message>,
    last: Option<std::time::Instant>,
}

impl AgentLine<'_> {
    fn hear(&mut self, _: Stream, bytes: &[u8]) {
        if self.last.is_some_and(|last| last.elapsed() < Duration::from_millis(200)) {
            return;
        }
        let tail = bytes.get(bytes.len().saturating_sub(400)..).unwrap_or_default();
        let text = String::from_utf8_lossy(tail);
        if let Some(line) = text.lines().rev().map(str::trim).find(|line| !line.is_empty()) {
            self.last = Some(std::time::Instant::now());
            let _ = self.send.send(Message::AgentLine { order: self.order, text: line.to_owned() });
        }
    }
}

fn phase(role: Role) -> &'static str {
    match role {
        Role::Explorer | Role::Creator => "plan",
        Role::Maker => "do",
        Role::Gatekeeper | Role::Reviewer => "check",
    }
}

fn oid(text: &str) -> Result<ObjectId, Fault> {
    ObjectId::parse(text.as_bytes()).map_err(|_| Fault::Oid(text.to_owned()))
}
