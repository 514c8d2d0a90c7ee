//! Provider accounts: which program works with which, which of them are limited, and which were given up (C6). Only
//! remembers; `rules/breaker.rs` says how long to keep away, and `steps/accounts.rs` what follows.

use std::collections::{BTreeMap, BTreeSet};

use crate::event::{AgentFailed, AgentStart, Failure, Player};
use crate::model::{Reason, Seq};

use super::Run;

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Accounts {
    /// Open breakers, by account. A closed one is not there.
    pub open: BTreeMap<String, Breaker>,
    /// Accounts others have taken over from, until a person opens the run again.
    pub given_up: BTreeSet<String>,
    /// The account each archetype was last sent to.
    pub last: BTreeMap<String, String>,
    /// The account on which each archetype last failed.
    pub failed: BTreeMap<String, String>,
}

/// What is known of an account that turned somebody away, and has served nobody since.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Breaker {
    /// The line that opened it.
    pub since: Seq,
    pub at: u64,
    pub quota: bool,
    /// In which time the provider said it would serve again.
    pub told_ms: Option<u64>,
    /// How often in a row whoever opened it was turned away.
    pub times: u32,
    /// It has ended the run before: the next attempt is the one that finds out.
    pub parked: bool,
}

/// The program behind an answer, and who really played.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Author {
    pub agent: String,
    pub player: Option<Player>,
}

impl Run {
    /// The account behind a program, as it was told when the run or its session began.
    pub fn account_of(&self, agent: &str) -> String {
        self.account_behind(agent).to_owned()
    }

    fn account_behind<'a>(&'a self, agent: &'a str) -> &'a str {
        let anew = self.session.as_ref().and_then(|session| session.accounts.get(agent));
        anew.or_else(|| self.policy().agents.accounts.get(agent)).map_or(agent, String::as_str)
    }

    /// Who would play this archetype now: the agent named on this session's command line, else the one frozen with the
    /// request, else whoever takes over from it.
    pub fn agent_for(&self, archetype: &str) -> String {
        if self.accounts.given_up.is_empty() {
            return self.first_for(archetype).to_owned();
        }
        let line = self.line_of(archetype);
        let serves = |agent: &&String| !self.accounts.given_up.contains(&self.account_of(agent));
        line.iter().find(serves).or(line.first()).cloned().unwrap_or_default()
    }

    /// Everybody who can play this archetype, in order.
    pub(crate) fn line_of(&self, archetype: &str) -> Vec<String> {
        let own = self.first_for(archetype).to_owned();
        [own].into_iter().chain(self.policy().agents.fallback.iter().cloned()).collect()
    }

    fn first_for(&self, archetype: &str) -> &str {
        let anew = self.session.as_ref().map(|session| &session.agents);
        let anew = anew.and_then(|agents| agents.get(archetype).or_else(|| agents.get("")));
        anew.map_or_else(|| self.policy().agents.of(archetype), String::as_str)
    }

    /// Somebody on another account begins with a clean sheet.
    pub(super) fn note_account(&mut self, start: &AgentStart) {
        let is_last = |last: &String| last == self.billed_to(start);
        if self.accounts.last.get(&start.archetype).is_some_and(is_last) {
            return;
        }
        let account = self.billed(start);
        let before = self.accounts.last.insert(start.archetype.clone(), account.clone());
        if before.is_some_and(|before| before != account) {
            let cycle = self.cycle_mut();
            cycle.busy.remove(&start.archetype);
            cycle.failures.remove(&start.archetype);
        }
    }

    pub(super) fn note_failure(&mut self, start: &AgentStart) {
        let is_last = |last: &String| last == self.billed_to(start);
        if !self.accounts.failed.get(&start.archetype).is_some_and(is_last) {
            let account = self.billed(start);
            self.accounts.failed.insert(start.archetype.clone(), account);
        }
    }

    /// Somebody was turned away. Of several who went side by side, the one with the longest way back counts.
    pub(super) fn note_limit(
        &mut self,
        start: &AgentStart,
        seq: Seq,
        at: u64,
        failed: &AgentFailed,
        times: u32,
    ) {
        let account = self.billed(start);
        let known = self.accounts.open.get(&account);
        let beside = known.filter(|known| failed.start_seq < known.since);
        let breaker = Breaker {
            since: seq,
            // Lines are dated by the second: the end of it, so that nobody is early after a replay.
            at: (at / 1_000 + 1).saturating_mul(1_000),
            quota: failed.kind == Failure::Quota || beside.is_some_and(|known| known.quota),
            told_ms: failed.reopens_in_ms.max(beside.and_then(|known| known.told_ms)),
            times: times.max(beside.map_or(0, |known| known.times)),
            parked: known.is_some_and(|known| known.parked),
        };
        self.accounts.open.insert(account, breaker);
    }

    /// The account has served somebody who went after its breaker had opened. Whoever was out before proves nothing.
    pub(super) fn note_served(&mut self, start: &AgentStart, start_seq: Seq) {
        let account = self.billed_to(start);
        if self.accounts.open.get(account).is_some_and(|breaker| breaker.since < start_seq) {
            let account = account.to_owned();
            self.accounts.open.remove(&account);
        }
    }

    /// Somebody else plays this archetype, and everybody on the same account, from now on.
    pub(super) fn give_up_account(&mut self, archetype: &str) {
        let account = self.account_of(&self.agent_for(archetype));
        self.accounts.given_up.insert(account);
        self.ended.remove(archetype);
    }

    pub(super) fn note_end(&mut self, reason: Reason) {
        if reason == Reason::ProviderBusy {
            self.accounts.open.values_mut().for_each(|breaker| breaker.parked = true);
        }
    }

    /// Whose limits an attempt goes by; logs of old do not say.
    pub fn billed(&self, start: &AgentStart) -> String {
        self.billed_to(start).to_owned()
    }

    fn billed_to<'a>(&'a self, start: &'a AgentStart) -> &'a str {
        if start.account.is_empty() { self.account_behind(&start.agent) } else { &start.account }
    }
}
