//! What became of each finding, cycle by cycle (AF-110, AF-111).

use std::collections::BTreeMap;

use crate::event::{CycleBoundary, Tracked, Trend};
use crate::model::{Destination, Remark, Severity};
use crate::run::Run;

/// How a finding stood at the end of a cycle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum State {
    /// Not found yet, or gone for good.
    Absent,
    New,
    Persistent,
    Resolved,
    /// Back after at least two cycles without it.
    Regressed,
    /// There two cycles ago, gone in the last, back now.
    Oscillating,
    /// Somebody took it as it is.
    Accepted,
}

impl State {
    pub const ALL: [State; 7] = [
        State::New,
        State::Persistent,
        State::Regressed,
        State::Oscillating,
        State::Resolved,
        State::Accepted,
        State::Absent,
    ];

    pub fn name(self) -> &'static str {
        match self {
            State::Absent => "absent",
            State::New => "new",
            State::Persistent => "persistent",
            State::Resolved => "resolved",
            State::Regressed => "regressed",
            State::Oscillating => "oscillating",
            State::Accepted => "accepted",
        }
    }

    pub fn is_open(self) -> bool {
        match self {
            State::New | State::Persistent | State::Regressed | State::Oscillating => true,
            State::Absent | State::Resolved | State::Accepted => false,
        }
    }
}

/// A finding from its first cycle to the last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Life {
    pub id: String,
    pub file: String,
    pub line: u32,
    pub category: String,
    pub severity: Severity,
    pub source: Vec<String>,
    pub description: String,
    /// What other reviewers wrote about it.
    pub also: Vec<Remark>,
    pub fix: String,
    pub routes_to: Destination,
    /// The earlier run that had resolved it (AF-121).
    pub regression_of: Option<String>,
    /// One for each cycle that ended.
    pub states: Vec<State>,
}

impl Life {
    pub fn is_open(&self) -> bool {
        self.states.last().is_some_and(|state| state.is_open())
    }

    pub fn place(&self) -> String {
        match (self.file.as_str(), self.line) {
            ("", _) => self.id.clone(),
            (file, 0) => file.to_owned(),
            (file, line) => format!("{file}:{line}"),
        }
    }
}

/// The other side of a finding that went away and came back: what was open while it was gone, and no longer is.
pub fn other_side<'a>(lives: &'a [Life], life: &Life) -> Vec<&'a Life> {
    let open = |life: &Life, at: usize| life.states.get(at).is_some_and(|state| state.is_open());
    let first = (0..life.states.len()).find(|at| open(life, *at)).unwrap_or(0);
    let last = life.states.len().saturating_sub(1);
    let gone: Vec<usize> = (first..last).filter(|at| !open(life, *at)).collect();
    if !open(life, last) {
        return Vec::new();
    }
    let was_instead = |other: &&Life| gone.iter().any(|at| open(other, *at)) && !open(other, last);
    lives.iter().filter(was_instead).collect()
}

/// What a person took as it is: by id, the cycle it was accepted in and the finding as it was then.
pub(super) type Accepted = BTreeMap<String, (u32, Tracked)>;

/// Every finding that was ever open at the end of a cycle: those still open first, the gravest first among them.
pub(super) fn lives(run: &Run, accepted: &Accepted) -> Vec<Life> {
    let ends: Vec<&CycleBoundary> = run.cycles.iter().filter_map(|cycle| cycle.boundary.as_deref()).collect();
    let mut lives: BTreeMap<&str, Life> = BTreeMap::new();
    for (at, end) in ends.iter().enumerate() {
        let classes = end.convergence.as_ref().map(classes);
        for found in &end.open {
            let life = lives.entry(&found.id).or_insert_with(|| born(found, ends.len()));
            renew(life, found);
            let state = classes
                .as_ref()
                .and_then(|classes| classes.get(found.id.as_str()))
                .copied()
                .unwrap_or(State::New);
            if let Some(slot) = life.states.get_mut(at) {
                *slot = state;
            }
        }
    }
    // Judged anew in the very cycle it was accepted in, a finding is not among the open ones any more.
    for (id, (cycle, found)) in accepted {
        let life = lives.entry(id).or_insert_with(|| born(found, ends.len()));
        let at = ends.iter().position(|end| end.cycle == *cycle);
        if let Some(slot) = at.and_then(|at| life.states.get_mut(at)).filter(|state| !state.is_open()) {
            *slot = State::Accepted;
            renew(life, found);
        }
    }
    let mut lives: Vec<Life> = lives.into_values().collect();
    lives.iter_mut().for_each(|life| note_ends(life, accepted));
    lives.sort_by(|a, b| {
        (b.is_open(), b.severity)
            .cmp(&(a.is_open(), a.severity))
            .then_with(|| first(a).cmp(&first(b)))
            .then_with(|| a.id.cmp(&b.id))
    });
    lives
}

/// The gravest class of each id; an oscillating finding is a regressed one, too.
fn classes(trend: &Trend) -> BTreeMap<&str, State> {
    let all = [
        (&trend.new_ids, State::New),
        (&trend.persistent_ids, State::Persistent),
        (&trend.regressed_ids, State::Regressed),
        (&trend.oscillating, State::Oscillating),
    ];
    all.into_iter().flat_map(|(ids, state)| ids.iter().map(move |id| (id.as_str(), state))).collect()
}

fn born(found: &Tracked, cycles: usize) -> Life {
    Life {
        id: found.id.clone(),
        file: String::new(),
        line: 0,
        category: String::new(),
        severity: found.severity,
        source: Vec::new(),
        description: String::new(),
        also: Vec::new(),
        fix: String::new(),
        routes_to: found.routes_to,
        regression_of: None,
        states: vec![State::Absent; cycles],
    }
}

/// The latest words about it count.
fn renew(life: &mut Life, found: &Tracked) {
    life.file.clone_from(&found.file);
    life.line = found.line;
    life.category.clone_from(&found.category);
    life.severity = found.severity;
    life.source.clone_from(&found.source);
    life.description.clone_from(&found.description);
    life.also.clone_from(&found.also);
    life.fix.clone_from(&found.fix);
    life.routes_to = found.routes_to;
    life.regression_of.clone_from(&found.regression_of);
}

/// Where it was open and is not any more, it was resolved, or somebody accepted it.
fn note_ends(life: &mut Life, accepted: &Accepted) {
    for at in 1..life.states.len() {
        let gone = life.states[at] == State::Absent && life.states[at - 1].is_open();
        if gone {
            let last = !life.states[at..].iter().any(|state| state.is_open());
            let taken = last && accepted.contains_key(&life.id);
            life.states[at] = if taken { State::Accepted } else { State::Resolved };
        }
    }
}

fn first(life: &Life) -> usize {
    life.states.iter().position(|state| state.is_open()).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tracked() -> Tracked {
        Tracked {
            id: "a".to_owned(),
            file: String::new(),
            line: 0,
            category: String::new(),
            severity: Severity::Warning,
            source: Vec::new(),
            description: String::new(),
            fix: String::new(),
            routes_to: Destination::Maker,
            cycles_open: 1,
            regression_of: None,
            anchor: String::new(),
            also: Vec::new(),
        }
    }

    /// AF-110: the states of a finding that is open in some cycles and not in others.
    #[test]
    fn af_110_what_goes_is_resolved_or_accepted() {
        use State::{Absent as A, Accepted as C, New as N, Oscillating as O, Persistent as P, Resolved as R};
        for (given, accepted, told) in [
            (vec![N, P, A], false, vec![N, P, R]),
            (vec![N, A, A], false, vec![N, R, A]),
            (vec![N, A, O, A], false, vec![N, R, O, R]),
            (vec![A, N, A], true, vec![A, N, C]),
            (vec![N, A, O, A], true, vec![N, R, O, C]),
            (vec![N, P], true, vec![N, P]),
            (vec![], false, vec![]),
        ] {
            let mut life = Life { states: given.clone(), ..born(&tracked(), 0) };
            let by_person = accepted.then(|| ("a".to_owned(), (1, tracked())));
            note_ends(&mut life, &by_person.into_iter().collect());
            assert_eq!(life.states, told, "{given:?} {accepted}");
        }
    }

    #[test]
    fn af_106_the_other_side_is_what_was_open_while_a_finding_was_gone() {
        use State::{Absent as A, New as N, Oscillating as O, Persistent as P, Resolved as R};
        let life = |id: &str, states: &[State]| Life {
            id: id.to_owned(),
            states: states.to_vec(),
            ..born(&tracked(), 0)
        };
        let side = |back: &[State], other: &[State]| {
            let lives = [life("back", back), life("other", other)];
            other_side(&lives, &lives[0]).iter().map(|life| life.id.clone()).collect::<Vec<_>>()
        };
        assert_eq!(side(&[N, R, O], &[A, N, R]), ["other"]);
        assert!(side(&[N, R, O], &[N, R, A]).is_empty(), "it was gone as well");
        assert!(side(&[N, R, O], &[A, N, P]).is_empty(), "it is still open");
        assert!(side(&[N, P, P], &[A, N, R]).is_empty(), "it was never gone");
        assert!(side(&[N, R, A], &[A, N, R]).is_empty(), "it is not back");
        assert!(side(&[], &[]).is_empty());
    }
}
