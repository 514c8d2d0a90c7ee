//! Everything outside of the members: the server, git, their disks, the bill, and who acts next.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Duration;

use archeflow_fleet::bus::{Bus, BusError, BusSeq, Delivery, Expect, Heard, Kept, Lease, Put, PutEnd};
use archeflow_fleet::hold::Hold;

/// How often what goes wrong, in thousandths of all turns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Faults {
    pub(crate) lost_requests: u64,
    pub(crate) lost_answers: u64,
    pub(crate) kills: u64,
    pub(crate) pauses: u64,
    pub(crate) cuts: u64,
    pub(crate) duplicates: u64,
    pub(crate) forgets: u64,
    pub(crate) wipes: u64,
}

impl Faults {
    pub(crate) const NONE: Faults = Faults {
        lost_requests: 0,
        lost_answers: 0,
        kills: 0,
        pauses: 0,
        cuts: 0,
        duplicates: 0,
        forgets: 0,
        wipes: 0,
    };
    pub(crate) const DEATHS: Faults = Faults {
        lost_requests: 30,
        lost_answers: 40,
        kills: 15,
        pauses: 10,
        cuts: 10,
        duplicates: 60,
        ..Faults::NONE
    };
    pub(crate) const AMNESIA: Faults = Faults { forgets: 8, wipes: 2, ..Faults::DEATHS };

    /// Whether the server keeps what it acknowledged.
    pub(crate) fn is_forgetful(self) -> bool {
        self.forgets > 0 || self.wipes > 0
    }
}

/// A promise that was broken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Violation {
    LandedTwice(String),
    NeverLanded(String),
    /// A step whose result had been acknowledged was paid again.
    PaidAgain(String),
    /// An effect without its line on the bus.
    BeganWithoutTurn(String),
    /// What landed was tested on another commit.
    NotWhatWasTested(String),
    /// A worker began an order that it was performing.
    BegunTwice(String),
    Stuck(String),
}

pub(crate) const LEASE_MS: u64 = 60_000;
/// Faults happen in the first turns only: then everything must come to its end.
const TROUBLED: u64 = 1_500;
const LAST_TURN: u64 = 60_000;

/// A member that is killed unwinds with this.
pub(crate) struct Killed;

struct Chance(u64);

impl Chance {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) % end.max(1)
    }
}

/// An order in the work queue.
struct Queued {
    seq: BusSeq,
    subject: String,
    bytes: Vec<u8>,
    times: u64,
    /// When it may be handed out again.
    free_at: u64,
    token: String,
}

/// The turn of a run in git.
#[derive(Debug, Clone, PartialEq, Eq)]
enum TurnRef {
    Taken(u64),
    Landed,
}

/// One slot of a worker, or the conductor. What happens to one happens to all on its machine.
struct Member {
    machine: usize,
    /// Its machine went down, which it has not noticed yet.
    is_dead: bool,
    paused_until: u64,
    cut_until: u64,
    git_cut_until: u64,
    is_over: bool,
}

pub(crate) struct State {
    chance: Chance,
    pub(crate) faults: Faults,
    turn: u64,
    pub(crate) now: u64,
    current: usize,
    members: Vec<Member>,
    pub(crate) violation: Option<Violation>,
    pub(crate) is_over: bool,
    // The server.
    kept: Vec<Kept>,
    next_seq: BusSeq,
    queue: VecDeque<Queued>,
    listeners: Vec<(String, Sender<Heard>)>,
    // Everything that was ever acknowledged, forgotten or not.
    accepted: Vec<Kept>,
    // Git.
    pub(crate) target: Vec<String>,
    turns: BTreeMap<String, TurnRef>,
    next_turn: u64,
    // The memory of machines: what their slots have, and the orders that are being performed.
    pub(crate) holds: BTreeMap<usize, Vec<Arc<Hold>>>,
    performed: BTreeSet<(usize, u64)>,
    // Disks: journals by machine and run, and the conductor's log.
    pub(crate) disks: BTreeMap<(usize, String), Vec<String>>,
    pub(crate) log: BTreeMap<u64, (String, bool)>,
    // Steps paid, by run.
    bill: BTreeMap<(String, String), u64>,
    sessions: u64,
}

pub(crate) struct World {
    state: Mutex<State>,
    wakes: Vec<Condvar>,
}

impl World {
    /// Each member is on the machine of this number.
    pub(crate) fn new(seed: u64, faults: Faults, machines: &[usize]) -> Arc<World> {
        let mut chance = Chance(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        chance.below(1);
        let state = State {
            chance,
            faults,
            turn: 0,
            now: 0,
            current: 0,
            members: machines.iter().map(|machine| Member::on(*machine)).collect(),
            violation: None,
            is_over: false,
            kept: Vec::new(),
            next_seq: 1,
            queue: VecDeque::new(),
            listeners: Vec::new(),
            accepted: Vec::new(),
            target: Vec::new(),
            turns: BTreeMap::new(),
            next_turn: 0,
            holds: BTreeMap::new(),
            performed: BTreeSet::new(),
            disks: BTreeMap::new(),
            log: BTreeMap::new(),
            bill: BTreeMap::new(),
            sessions: 0,
        };
        Arc::new(World { state: Mutex::new(state), wakes: machines.iter().map(|_| Condvar::new()).collect() })
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Lets somebody else act, until it is this member's turn again. A member may be killed here.
    pub(crate) fn turn(&self, me: usize) -> MutexGuard<'_, State> {
        let mut state = self.state();
        state.pass();
        self.wakes[state.current].notify_one();
        while state.current != me {
            state = self.wakes[me].wait(state).unwrap_or_else(std::sync::PoisonError::into_inner);
        }
        let kills = state.faults.kills;
        let dies = state.happens(kills);
        if dies {
            state.kill_machine_of(me);
        }
        let is_dead = std::mem::take(&mut state.members[me].is_dead);
        if state.is_over || is_dead {
            drop(state);
            std::panic::resume_unwind(Box::new(Killed));
        }
        state
    }

    /// Waits for the first turn.
    pub(crate) fn enter(&self, me: usize) {
        let mut state = self.state();
        while state.current != me {
            state = self.wakes[me].wait(state).unwrap_or_else(std::sync::PoisonError::into_inner);
        }
    }

    /// This member does nothing more.
    pub(crate) fn leave(&self, me: usize) {
        let mut state = self.state();
        state.members[me].is_over = true;
        if state.members.iter().any(|member| !member.is_over) {
            state.pass();
            self.wakes[state.current].notify_one();
        }
    }
}

impl Member {
    fn on(machine: usize) -> Member {
        let (paused_until, cut_until, git_cut_until) = (0, 0, 0);
        Member { machine, is_dead: false, paused_until, cut_until, git_cut_until, is_over: false }
    }
}

impl State {
    /// Chooses who acts next, and what goes wrong meanwhile.
    fn pass(&mut self) {
        self.turn += 1;
        // Each member acts about every three seconds, however many there are.
        self.now += self.chance.below(6_000 / self.members.len() as u64);
        if self.turn > LAST_TURN && self.violation.is_none() {
            self.fail(Violation::Stuck(format!("{:?}", self.log)));
        }
        let faults = self.faults;
        if self.happens(faults.pauses) {
            let one = self.any_member();
            let until = self.now + self.chance.below(5 * LEASE_MS);
            self.on_machine_of(one).for_each(|member| member.paused_until = until);
        }
        if self.happens(faults.cuts) {
            let one = self.any_member();
            let until = self.now + self.chance.below(5 * LEASE_MS);
            self.on_machine_of(one).for_each(|member| member.cut_until = until);
        }
        if self.happens(faults.cuts) {
            let one = self.any_member();
            let until = self.now + self.chance.below(2 * LEASE_MS);
            self.on_machine_of(one).for_each(|member| member.git_cut_until = until);
        }
        if self.happens(faults.forgets) {
            let many = usize::try_from(self.chance.below(4)).unwrap();
            let left = self.kept.len().saturating_sub(many);
            self.kept.truncate(left);
            // Positions are given again.
            self.next_seq = self.kept.last().map_or(1, |kept| kept.seq + 1);
        }
        if self.happens(faults.wipes) {
            self.kept.clear();
            self.queue.clear();
            self.next_seq = 1;
        }
        let awake: Vec<usize> = (0..self.members.len()).filter(|one| self.may_act(*one)).collect();
        let any: Vec<usize> = (0..self.members.len()).filter(|one| !self.members[*one].is_over).collect();
        let among = if awake.is_empty() || self.is_over { any } else { awake };
        let at = self.chance.below(among.len() as u64);
        self.current = among[usize::try_from(at).unwrap()];
    }

    fn may_act(&self, one: usize) -> bool {
        !self.members[one].is_over && self.members[one].paused_until <= self.now
    }

    fn on_machine_of(&mut self, one: usize) -> impl Iterator<Item = &mut Member> {
        let machine = self.members[one].machine;
        self.members.iter_mut().filter(move |member| member.machine == machine)
    }

    fn kill_machine_of(&mut self, one: usize) {
        self.on_machine_of(one).for_each(|member| member.is_dead = true);
        let machine = self.members[one].machine;
        self.holds.remove(&machine);
        self.performed.retain(|(on, _)| *on != machine);
    }

    pub(crate) fn slots_of(&self, machine: usize) -> u32 {
        let slots = self.members.iter().filter(|member| member.machine == machine).count();
        u32::try_from(slots).unwrap()
    }

    /// A slot of this machine begins an order.
    pub(crate) fn begins(&mut self, machine: usize, seq: u64) {
        if !self.performed.insert((machine, seq)) {
            self.fail(Violation::BegunTwice(format!("order {seq} on machine {machine}")));
        }
    }

    pub(crate) fn ends(&mut self, machine: usize, seq: u64) {
        self.performed.remove(&(machine, seq));
    }

    fn any_member(&mut self) -> usize {
        let count = self.members.len() as u64;
        usize::try_from(self.chance.below(count)).unwrap()
    }

    /// Whether a fault happens now.
    pub(crate) fn happens(&mut self, thousandths: u64) -> bool {
        self.turn < TROUBLED && thousandths > 0 && self.chance.below(1_000) < thousandths
    }

    pub(crate) fn fail(&mut self, violation: Violation) {
        self.violation.get_or_insert(violation);
        self.is_over = true;
    }

    pub(crate) fn next_session(&mut self) -> u64 {
        self.sessions += 1;
        self.sessions
    }

    fn is_cut(&self, me: usize) -> bool {
        self.members[me].cut_until > self.now
    }

    /// An agent works on a step of a run, for money. Its line must have been acknowledged to this very session.
    pub(crate) fn pay(&mut self, run: &str, step: &str, session: &str, subject: &str) {
        let line = format!("order {step} {session}");
        let has = |kept: &Kept, line: &str| {
            kept.subject == subject && String::from_utf8_lossy(&kept.bytes).lines().any(|one| one == line)
        };
        let done = format!("done {step}");
        let position = |line: &str| self.accepted.iter().position(|kept| has(kept, line));
        match (position(&line), position(&done)) {
            (None, _) => self.fail(Violation::BeganWithoutTurn(format!("{run} {step} by {session}"))),
            // One that was paused after its line was acknowledged may begin later than the one who took over has ended.
            (Some(ordered), Some(done)) if done < ordered && !self.faults.is_forgetful() => {
                self.fail(Violation::PaidAgain(format!("{run} {step} by {session}")));
            }
            (Some(_), _) => {}
        }
        *self.bill.entry((run.to_owned(), step.to_owned())).or_default() += 1;
    }

    /// Steps that were paid more than once, how often altogether.
    pub(crate) fn paid_again(&self) -> u64 {
        self.bill.values().map(|times| times - 1).sum()
    }

    /// Takes the turn of a run in git: `None` if it has landed.
    pub(crate) fn take_turn(&mut self, me: usize, run: &str) -> Result<Option<u64>, ()> {
        if self.members[me].git_cut_until > self.now {
            return Err(());
        }
        if self.turns.get(run) == Some(&TurnRef::Landed) {
            return Ok(None);
        }
        self.next_turn += 1;
        self.turns.insert(run.to_owned(), TurnRef::Taken(self.next_turn));
        Ok(Some(self.next_turn))
    }

    pub(crate) fn tip(&self) -> usize {
        self.target.len()
    }

    /// One push of target and turn: both or neither. `mine` is `None` for one who forgets the turn.
    pub(crate) fn push(
        &mut self,
        me: usize,
        run: &str,
        (old, tested_on): (usize, usize),
        mine: Option<u64>,
    ) -> Result<bool, ()> {
        if self.members[me].git_cut_until > self.now {
            return Err(());
        }
        let has_turn = mine.is_none_or(|mine| self.turns.get(run) == Some(&TurnRef::Taken(mine)));
        if self.target.len() != old || !has_turn {
            return Ok(false);
        }
        if self.target.iter().any(|landed| landed == run) {
            self.fail(Violation::LandedTwice(run.to_owned()));
        }
        if old != tested_on {
            self.fail(Violation::NotWhatWasTested(run.to_owned()));
        }
        self.target.push(run.to_owned());
        self.turns.insert(run.to_owned(), TurnRef::Landed);
        let faults = self.faults;
        if self.happens(faults.lost_answers) { Err(()) } else { Ok(true) }
    }
}

/// The server, as one member sees it.
pub(crate) struct SimBus {
    pub(crate) world: Arc<World>,
    pub(crate) me: usize,
}

impl SimBus {
    fn call<T>(&self, act: impl FnOnce(&mut State) -> T) -> Result<T, BusError> {
        let mut state = self.world.turn(self.me);
        let none = || BusError::NoAnswer("lost".to_owned());
        let faults = state.faults;
        if state.is_cut(self.me) || state.happens(faults.lost_requests) {
            return Err(none());
        }
        let done = act(&mut state);
        if state.happens(faults.lost_answers) { Err(none()) } else { Ok(done) }
    }
}

fn matches(pattern: &str, subject: &str) -> bool {
    pattern.strip_suffix('>').map_or(pattern == subject, |start| subject.starts_with(start))
}

impl Bus for SimBus {
    fn put(&self, put: Put<'_>) -> Result<PutEnd, BusError> {
        self.call(|state| {
            let last = state.kept.iter().rev().find(|kept| kept.subject == put.subject);
            let last = last.map_or(0, |kept| kept.seq);
            if let Expect::Last(expected) = put.expect
                && expected != last
            {
                return PutEnd::Refused;
            }
            let (seq, at) = (state.next_seq, state.now * 1_000 + state.turn);
            state.next_seq += 1;
            let (subject, bytes) = (put.subject.to_owned(), put.bytes.to_vec());
            if put.subject.starts_with("af1.o.") || put.subject.starts_with("af1.r.") {
                let (times, free_at, token) = (0, 0, String::new());
                state.queue.push_back(Queued { seq, subject, bytes, times, free_at, token });
                return PutEnd::Kept(seq);
            }
            let headers =
                put.headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
            let kept = Kept { subject, seq, at, headers, bytes };
            state.accepted.push(kept.clone());
            state.kept.push(kept);
            PutEnd::Kept(seq)
        })
    }

    fn last(&self, subject: &str) -> Result<Option<Kept>, BusError> {
        self.call(|state| state.kept.iter().rev().find(|kept| kept.subject == subject).cloned())
    }

    fn next_from(&self, _stream: &str, subject: &str, seq: BusSeq) -> Result<Option<Kept>, BusError> {
        self.call(|state| {
            state.kept.iter().find(|kept| kept.seq >= seq && matches(subject, &kept.subject)).cloned()
        })
    }

    fn take(&self, queue: &str, _wait: Duration) -> Result<Option<Delivery>, BusError> {
        self.call(|state| {
            let (now, faults) = (state.now, state.faults);
            let twice = state.happens(faults.duplicates);
            let next_token = state.turn;
            let one =
                state.queue.iter_mut().find(|one| one.subject == queue && (one.free_at <= now || twice))?;
            one.times += 1;
            one.free_at = now + LEASE_MS;
            one.token = format!("{}.{next_token}", one.seq);
            Some(Delivery {
                subject: one.subject.clone(),
                seq: one.seq,
                times: one.times,
                headers: Vec::new(),
                bytes: one.bytes.clone(),
                token: one.token.clone(),
            })
        })
    }

    fn lease(&self, token: &str, lease: Lease) -> Result<(), BusError> {
        self.call(|state| {
            let now = state.now;
            // One that was handed out again since is not the one who says so any more.
            let Some(at) = state.queue.iter().position(|one| one.token == token) else { return };
            match lease {
                Lease::Extend => state.queue[at].free_at = now + LEASE_MS,
                Lease::Done | Lease::Never => drop(state.queue.remove(at)),
                Lease::Back(delay) => {
                    state.queue[at].free_at = now + u64::try_from(delay.as_millis()).unwrap();
                }
            }
        })
    }

    fn say(&self, subject: &str, bytes: &[u8]) -> Result<(), BusError> {
        self.call(|state| {
            let heard = Heard { subject: subject.to_owned(), bytes: bytes.to_vec() };
            state
                .listeners
                .retain(|(pattern, send)| !matches(pattern, subject) || send.send(heard.clone()).is_ok());
        })
    }

    fn hear(&self, subject: &str) -> Result<Receiver<Heard>, BusError> {
        let (send, receive) = channel();
        self.world.state().listeners.push((subject.to_owned(), send));
        Ok(receive)
    }
}

/// All runs that ever landed, each once.
pub(crate) fn landed(state: &State) -> BTreeSet<&str> {
    state.target.iter().map(String::as_str).collect()
}
