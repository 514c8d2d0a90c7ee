//! Which archetypes take part, in which order, when a cycle is good enough, for how many cycles. A team is the short form, a workflow
//! the long one.

use std::collections::{BTreeMap, BTreeSet};

use archeflow_core::model::{Archetype, Domain, ExitWhen, Participant, Phase, Role, Sight, Workflow};
use archeflow_core::persona::{self, role_name};

use super::super::Fault;
use super::super::yaml::{Value, YamlEntry, YamlNode};
use super::sheet::{Sheet, join};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Team {
    pub name: String,
    pub path: String,
    pub seats: Vec<Participant>,
    pub exit: ExitWhen,
    pub max_cycles: Option<u32>,
    /// The built-in workflow whose rules for escalation and the fast path hold.
    pub like: Option<Workflow>,
    pub domain: Option<Domain>,
    pub phases: BTreeMap<Phase, String>,
    pub inputs: BTreeMap<Phase, BTreeSet<Sight>>,
}

const DOMAINS: [(&str, Domain); 3] =
    [("code", Domain::Code), ("writing", Domain::Writing), ("research", Domain::Research)];
const LIKES: [(&str, Workflow); 3] =
    [("fast", Workflow::Fast), ("standard", Workflow::Standard), ("thorough", Workflow::Thorough)];
const PHASES: [Phase; 3] = [Phase::Plan, Phase::Do, Phase::Check];
const MOST_CYCLES: u32 = 10;

pub(super) fn team(
    name: &str,
    path: &str,
    bytes: &[u8],
    archetypes: &BTreeMap<String, Archetype>,
) -> Result<Team, Vec<Fault>> {
    Sheet::read(path, bytes, archetypes, |sheet, entries| {
        let known = ["name", "description", "plan", "do", "check", "exit", "max_cycles", "domain", "like"];
        let fields = sheet.fields("", entries, &known);
        sheet.name(&fields, name);
        sheet.text("description", fields.get("description"));
        let mut seats = Vec::new();
        for phase in PHASES {
            seats.extend(sit(sheet, phase, phase.name(), fields.get(phase.name())));
        }
        let exit = exit(sheet, "exit", fields.get("exit"));
        let left_empty = |phase: Phase| is_empty_list(fields.get(phase.name()));
        complete(sheet, &seats, exit, left_empty);
        Some(Team {
            name: name.to_owned(),
            path: path.to_owned(),
            seats,
            exit,
            max_cycles: sheet.whole("max_cycles", fields.get("max_cycles"), 1, MOST_CYCLES),
            like: sheet.word("like", fields.get("like"), &LIKES),
            domain: sheet.word("domain", fields.get("domain"), &DOMAINS),
            phases: BTreeMap::new(),
            inputs: BTreeMap::new(),
        })
    })
}

pub(super) fn workflow(
    name: &str,
    path: &str,
    bytes: &[u8],
    archetypes: &BTreeMap<String, Archetype>,
) -> Result<Team, Vec<Fault>> {
    Sheet::read(path, bytes, archetypes, |sheet, entries| {
        let fields = sheet.fields("", entries, &["name", "description", "like", "domain", "phases", "act"]);
        sheet.name(&fields, name);
        sheet.text("description", fields.get("description"));
        let phases = sheet.section("phases", fields.get("phases"));
        let phases = sheet.fields("phases", phases, &["plan", "do", "check"]);
        let act = sheet.section("act", fields.get("act"));
        let act = sheet.fields("act", act, &["exit_when", "max_cycles"]);
        let mut team = Team {
            name: name.to_owned(),
            path: path.to_owned(),
            seats: Vec::new(),
            exit: exit(sheet, "act.exit_when", act.get("exit_when")),
            max_cycles: sheet.whole("act.max_cycles", act.get("max_cycles"), 1, MOST_CYCLES),
            like: sheet.word("like", fields.get("like"), &LIKES),
            domain: sheet.word("domain", fields.get("domain"), &DOMAINS),
            phases: BTreeMap::new(),
            inputs: BTreeMap::new(),
        };
        for phase in PHASES {
            one_phase(sheet, &mut team, phase, phases.get(phase.name()));
        }
        let empty: Vec<Phase> =
            PHASES.into_iter().filter(|phase| leaves_empty(phases.get(phase.name()))).collect();
        complete(sheet, &team.seats, team.exit, |phase| empty.contains(&phase));
        Some(team)
    })
}

fn one_phase(sheet: &mut Sheet<'_>, team: &mut Team, phase: Phase, entry: Option<&&YamlEntry>) {
    let section = join("phases", phase.name());
    let entries = sheet.section(&section, entry);
    let fields = sheet.fields(&section, entries, &["archetypes", "parallel", "description", "inputs"]);
    let key = join(&section, "archetypes");
    let seats = sit(sheet, phase, &key, fields.get("archetypes"));
    // One agent after the other plans and makes; reviewers go side by side, after the gatekeeper.
    let side_by_side = phase == Phase::Check;
    let only = if side_by_side { ("true", true) } else { ("false", false) };
    sheet.word(&join(&section, "parallel"), fields.get("parallel"), &[only]);
    if let Some(text) = sheet.text(&join(&section, "description"), fields.get("description")) {
        team.phases.insert(phase, text);
    }
    if fields.contains_key("inputs") {
        let inputs = inputs(sheet, &join(&section, "inputs"), fields.get("inputs"), &seats);
        team.inputs.insert(phase, inputs);
    }
    team.seats.extend(seats);
}

/// What the phase's archetypes are shown of what they may see. Never more.
fn inputs(
    sheet: &mut Sheet<'_>,
    key: &str,
    entry: Option<&&YamlEntry>,
    seats: &[Participant],
) -> BTreeSet<Sight> {
    let archetypes = sheet.archetypes;
    let sees = |seat: &Participant| {
        archetypes.get(&seat.archetype).map(|known| known.sees.clone()).unwrap_or_default()
    };
    let seen: BTreeSet<Sight> = seats.iter().flat_map(sees).collect();
    let names: Vec<&str> = seen.iter().map(|sight| sight.name()).collect();
    let allowed = format!("what the archetypes of this phase see: {}", names.join(", "));
    let listed = sheet.list(key, entry, &allowed, |text| names.contains(&text));
    let inputs: BTreeSet<Sight> =
        seen.iter().copied().filter(|sight| listed.iter().any(|(name, _)| *name == sight.name())).collect();
    if let (Some(entry), Some(blind)) = (entry, seats.iter().find(|seat| sees(seat).is_disjoint(&inputs))) {
        let allowed = format!("something that `{}` sees too", blind.archetype);
        sheet.wrong(key, &entry.value, &allowed);
    }
    inputs
}

fn exit(sheet: &mut Sheet<'_>, key: &str, entry: Option<&&YamlEntry>) -> ExitWhen {
    let words = ExitWhen::ALL.map(|exit| (exit.name(), exit));
    sheet.word(key, entry, &words).unwrap_or_default()
}

/// The participants of one phase, in the order of the file.
fn sit(sheet: &mut Sheet<'_>, phase: Phase, key: &str, entry: Option<&&YamlEntry>) -> Vec<Participant> {
    let archetypes = sheet.archetypes;
    let fitting: Vec<&str> = archetypes
        .values()
        .filter(|archetype| archetype.phase == phase)
        .map(|archetype| archetype.name.as_str())
        .collect();
    let allowed = format!("archetypes of this phase: {}", fitting.join(", "));
    let listed = sheet.list(key, entry, &allowed, |name| fitting.contains(&name));
    let mut seats: Vec<Participant> = Vec::new();
    for (name, node) in listed {
        let Some(archetype) = archetypes.get(name) else { continue };
        check_order(sheet, key, node, archetype.role, &seats);
        seats.push(Participant { archetype: name.to_owned(), role: archetype.role });
    }
    seats
}

/// An order that is not possible is an error; nothing is rearranged.
fn check_order(sheet: &mut Sheet<'_>, key: &str, node: &YamlNode, role: Role, before: &[Participant]) {
    if role != Role::Reviewer && before.iter().any(|seat| seat.role == role) {
        sheet.wrong(key, node, &format!("one {} at most", role_name(role)));
    } else if role == Role::Explorer && !before.is_empty() {
        sheet.wrong(key, node, "the explorer before the creator");
    } else if role == Role::Gatekeeper && !before.is_empty() {
        sheet.wrong(key, node, "the gatekeeper before the other reviewers");
    }
}

/// A team has a plan, a change and a look at it. Only a team that says so does without the first or the last, as baselines do.
fn complete(
    sheet: &mut Sheet<'_>,
    seats: &[Participant],
    exit: ExitWhen,
    left_empty: impl Fn(Phase) -> bool,
) {
    let has = |role: Role| seats.iter().any(|seat| seat.role == role);
    if !has(Role::Creator) && !left_empty(Phase::Plan) {
        let text = "`plan` names no creator; allowed: exactly one creator, or the empty list `[]` for a team that \
                    works from the task alone";
        sheet.fault((0, 0), text.to_owned());
    }
    if !has(Role::Maker) {
        sheet.fault((0, 0), "`do` names no maker; allowed: exactly one maker".to_owned());
    }
    let reviews = seats.iter().any(|seat| persona::phase(seat.role) == Phase::Check);
    let is_waived = left_empty(Phase::Check) && exit == ExitWhen::Always;
    if !reviews && !is_waived {
        let text = "`check` is empty; allowed: at least one reviewer, or the empty list `[]` together with the exit \
                    `always`";
        sheet.fault((0, 0), text.to_owned());
    }
}

fn is_empty_list(entry: Option<&&YamlEntry>) -> bool {
    entry.is_some_and(|entry| matches!(&entry.value.value, Value::List(items) if items.is_empty()))
}

/// The same for a phase of a workflow file.
fn leaves_empty(phase: Option<&&YamlEntry>) -> bool {
    let Some(Value::Map(entries)) = phase.map(|entry| &entry.value.value) else { return false };
    is_empty_list(entries.iter().find(|entry| entry.key == "archetypes").as_ref())
}
