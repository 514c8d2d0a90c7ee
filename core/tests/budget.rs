//! Executes `docs/rules/budget.md`, and proves I4 with random runs: whatever crashes, keeps silent about its cost or
//! talks nonsense, the ledger holds at least what was really charged, and nobody starts past a limit.
#![expect(
    clippy::unwrap_used,
    clippy::wildcard_enum_match_arm,
    reason = "a test that says why it fails and asks for few kinds of lines"
)]

#[expect(dead_code, reason = "shared with the tests of the other pages")]
mod common {
    pub(crate) mod page;
    pub(crate) mod world;
}
#[expect(dead_code, reason = "shared with the simulation")]
mod sim {
    pub(crate) mod chance;
    pub(crate) mod ledger;
    pub(crate) mod loops;
    pub(crate) mod world;
}

use std::collections::BTreeMap;

use archeflow_core::event::{
    AgentLost, AgentStart, BudgetEffect, Decision, Entry, Event, Order, Report, RunContinued, Tokens, Verb,
};
use archeflow_core::model::{Costs, Money, Reason, Role, Seq, Tier};
use archeflow_core::rules::ledger::{self, Stated, Usage};
use archeflow_core::rules::prices;
use archeflow_core::run::Run;

use common::page::{Page, Row};
use common::world::{World, dollars};
use sim::chance::{Chance, word};

#[test]
fn af_151_cl_13_bx_24_i4_c_03_c_06_m_g9_m_g10_budget() {
    let mut page = Page::open("budget");
    page.check("What an attempt counts with", counts_with);
    page.check("What is set aside", |row| {
        let costs = Costs { per_agent_usd: money(row, "per agent"), ..page_of_prices() };
        let role = row.word("role", role);
        let tier = row.word("tier", Tier::parse);
        row.expect("set aside", plain(ledger::reservation(&costs, row.get("agent"), role, tier)));
    });
    page.check("The ladder", |row| {
        let costs = Costs { warn_at_percent: row.number("warn at"), ..Costs::default() };
        let effect = ledger::effect(&costs, amount(row, "spent"), amount(row, "limit"));
        row.expect("in force", effect.map_or("", named));
    });
    page.check("The gate", |row| {
        let committed = amount(row, "spent").plus(amount(row, "set aside"));
        assert_eq!(row.yes("starts"), ledger::admits(committed, amount(row, "share"), amount(row, "limit")));
    });
    page.check("The share of a running agent", |row| {
        let share = |cap| ledger::share(amount(row, "spent"), amount(row, "others hold"), cap);
        let share = money(row, "limit").map(share);
        let used_up = ledger::is_used_up(amount(row, "used"), amount(row, "set aside"), share);
        assert_eq!(row.yes("stopped"), used_up);
    });
    page.check("Cheaper reviewers", |row| {
        row.expect("next cheaper", ledger::cheaper(row.word("tier", Tier::parse)).name());
    });
    page.check("Runs under a budget", |row| {
        let played = World::script(row.get("run"), row.get("reviews"), row.get("world")).play();
        row.expect("status", played.status());
        row.expect("reason", played.reason());
        row.expect("exit", played.exit());
        row.expect("break", played.broke());
        row.expect("agents", played.agents());
        row.expect("spent", plain(played.run.spent));
        row.expect("steps", steps(&played.log));
        let last = starts(&played.log).filter(|start| start.role == Role::Gatekeeper).last();
        row.expect("tier", last.map_or("", |start| start.model.name()));
        assert_eq!(Run::replay(&played.log), played.run, "a replay comes to another sum");
    });
    page.close();
}

fn counts_with(row: &Row) {
    let numbers: Vec<u64> = row.get("tokens").split_whitespace().map(|n| n.parse().unwrap()).collect();
    let tokens = match numbers[..] {
        [] => None,
        [input, output, cache_read, cache_write] => Some(Tokens { input, output, cache_read, cache_write }),
        _ => row.fail("four numbers or none"),
    };
    let cost = match row.get("says") {
        "" => Stated::Nothing,
        text => Stated::read(text),
    };
    let usage = Usage { tokens, cost, model: row.get("model").to_owned() };
    let reserved = amount(row, "set aside");
    let counted = ledger::cost(&usage, &page_of_prices(), row.word("tier", Tier::parse), reserved);
    row.expect("counts", counted.map_or_else(String::new, |(cost, _)| plain(cost)));
    let known_by = counted.map_or_else(String::new, |(_, source)| format!("{source:?}").to_lowercase());
    row.expect("known by", known_by);
}

fn page_of_prices() -> Costs {
    Costs { prices: prices::built_in().tiers.clone(), ..Costs::default() }
}

fn amount(row: &Row, column: &str) -> Money {
    row.word(column, Money::parse)
}

fn money(row: &Row, column: &str) -> Option<Money> {
    row.maybe(column, Money::parse)
}

/// As the page writes it.
fn plain(money: Money) -> String {
    let text = format!("{}.{:06}", money.0 / 1_000_000, money.0 % 1_000_000);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn role(name: &str) -> Option<Role> {
    let all = [Role::Explorer, Role::Creator, Role::Maker, Role::Gatekeeper, Role::Reviewer];
    all.into_iter().find(|role| format!("{role:?}").to_lowercase() == name)
}

fn named(effect: BudgetEffect) -> &'static str {
    match effect {
        BudgetEffect::Warn => "warn",
        BudgetEffect::Downgrade => "downgrade",
        BudgetEffect::FinishThenStop => "finish_then_stop",
        BudgetEffect::StopNow => "stop_now",
    }
}

fn steps(log: &[Entry]) -> String {
    let of = |entry: &Entry| match &entry.event {
        Event::Decision(Decision::BudgetStep(step)) => Some(step.step.to_string()),
        _ => None,
    };
    log.iter().filter_map(of).collect::<Vec<_>>().join(" ")
}

fn starts(log: &[Entry]) -> impl Iterator<Item = &AgentStart> {
    log.iter().filter_map(|entry| match &entry.event {
        Event::Order(Order::AgentStart(start)) => Some(&**start),
        _ => None,
    })
}

/// A person who allows more: the ladder is climbed anew, what was spent stays spent, and who was not sent is sent.
#[test]
fn af_151_m_g14_a_person_raises_the_budget() {
    let stopped = World::script("fast", "clean", "budget: 0.6, per agent: 0.3, cost: all=0.15").play();
    assert_eq!((stopped.reason(), stopped.broke()), ("approved", ""), "there is room for all three");
    let stopped = World::script("fast", "clean", "budget: 0.5, per agent: 0.3, cost: all=0.15").play();
    assert_eq!(
        (stopped.reason(), stopped.broke(), plain(stopped.run.spent)),
        ("budget", "soft", "0.3".to_owned())
    );
    let (mut run, mut log) = (stopped.run, stopped.log);
    let more = RunContinued { cycles: 1, budget_usd: Some(dollars("0.61")), ..RunContinued::default() };
    log.push(run.hear(0, more));
    log.extend(run.settle(0));
    assert_eq!(plain(run.spent), "0.3", "what is spent stays spent");
    let guardian = starts(&log).last().unwrap();
    assert_eq!((guardian.archetype.as_str(), run.set_aside()), ("guardian", dollars("0.3")));
    assert_eq!(steps(&log), "50", "49 percent of the new limit; 60 of the old one had been told");
    let none = RunContinued { cycles: 1, ..RunContinued::default() };
    let (mut run, mut log) = (Run::replay(&log[..log.len() - 1]), Vec::new());
    log.push(run.hear(0, none));
    assert_eq!(run.limits()[0].cap, dollars("0.61"), "a word that says nothing of money changes nothing");
}

// I4

const SEEDS: u64 = if cfg!(debug_assertions) { 3_000 } else { 10_000 };

/// What the provider of the agents charged, kept apart from everything the program knows.
#[derive(Default)]
struct Provider {
    charged: BTreeMap<Seq, Money>,
}

impl Provider {
    fn total(&self) -> Money {
        self.charged.values().copied().sum()
    }
}

#[derive(Default, Debug)]
struct Seen {
    ends: BTreeMap<&'static str, u32>,
    lost: u32,
    nonsense: u32,
    silent: u32,
    called_in: u32,
    refused: u32,
}

#[test]
fn i4_m_g11_m_g13_m_g15_the_ledger_never_under_counts_and_no_agent_starts_past_a_limit() {
    let mut seen = Seen::default();
    for seed in 0..SEEDS {
        if let Err(what) = live(seed, &mut seen) {
            panic!("seed {seed}: {what}");
        }
    }
    for (end, at_least) in [("budget", 100), ("approved", 10), ("max_cycles", 4)] {
        assert!(seen.ends.get(end).is_some_and(|times| *times >= at_least), "too tame: {seen:?}");
    }
    let mishaps = [seen.lost, seen.nonsense, seen.silent, seen.refused];
    assert!(mishaps.iter().all(|times| *times > 20) && seen.called_in > 20, "too tame: {seen:?}");
}

/// One run, with crashes. Every attempt is charged at most what was set aside for it, unless it says what it cost: that
/// is what I4 promises under.
fn live(seed: u64, seen: &mut Seen) -> Result<(), String> {
    let mut chance = Chance::keyed(seed, &[word("budget")]);
    let mut world = sim::world::World::new(seed);
    world.request.config.costs = limits(&mut chance);
    if chance.percent(25) {
        // Nothing is set aside for these: the gate never stands in their way, only the stop does.
        world.request.config.agents.default = "script:a.play".to_owned();
    }
    let costs = world.request.config.costs.clone();
    let mut provider = Provider::default();
    let mut log: Vec<Entry> = Vec::new();
    let mut run = Run::default();
    let mut facts = sim::ledger::Ledger::default();
    let mut sum = Money::ZERO;
    log.push(run.hear(1, world.request.clone()));
    log.push(run.hear(1, world.session(&facts)));
    for _ in 0..400 {
        let before = log.len();
        log.extend(run.settle(1));
        checked(&log, before, &costs, seen)?;
        for entry in &log[before..] {
            // An agent is charged for from the moment it may have begun.
            if let Event::Order(Order::AgentStart(start)) = &entry.event {
                provider.charged.insert(entry.seq, part(&mut chance, start.reserved_usd));
            }
            assert_ne!(entry.event.verb(), Verb::Reported);
        }
        let held = run.spent.plus(run.set_aside());
        if held < provider.total() {
            return Err(format!("{held:?} are held, {:?} were charged", provider.total()));
        }
        if run.spent < sum {
            return Err("the sum was lowered".to_owned());
        }
        sum = run.spent;
        if let Some(outcome) = &run.outcome {
            *seen.ends.entry(outcome.reason.name()).or_default() += 1;
            let settled = run.set_aside() == Money::ZERO;
            return if settled { Ok(()) } else { Err("something is set aside after the end".to_owned()) };
        }
        if chance.percent(6) {
            // The program dies: what it knew is what the log says. Whoever was out is lost.
            run = Run::replay(&log);
            log.push(run.hear(1, world.session(&facts)));
            for (start_seq, start) in outside(&run) {
                seen.lost += 1;
                let (archetype, reason) = (start.archetype, "the program died".to_owned());
                log.push(run.hear(
                    1,
                    AgentLost {
                        archetype,
                        start_seq,
                        reason,
                        kept_as: None,
                        estimated_cost_usd: None,
                        cost_source: None,
                        tokens: None,
                    },
                ));
            }
            continue;
        }
        let called_in = run.broke.is_some() && run.open_agents().next().is_some();
        let open: Vec<(Seq, Order)> = run.open.iter().map(|(seq, order)| (*seq, order.clone())).collect();
        if open.is_empty() {
            return Err("neither ends nor waits".to_owned());
        }
        let (seq, order) = chance.pick(&open);
        let report = match &order {
            Order::AgentStart(start) if called_in => {
                seen.called_in += 1;
                let (archetype, reason) = (start.archetype.clone(), "stopped by the program".to_owned());
                AgentLost {
                    archetype,
                    start_seq: seq,
                    reason,
                    kept_as: None,
                    estimated_cost_usd: None,
                    cost_source: None,
                    tokens: None,
                }
                .into()
            }
            Order::AgentStart(start) => {
                let (usage, truth) = says(&mut chance, &costs, start, provider.charged[&seq], seen);
                provider.charged.insert(seq, truth);
                let cost =
                    ledger::cost(&usage, &costs, start.model, start.reserved_usd).map(|(cost, _)| cost);
                costing(world.answer(&facts, seq, &order), cost)
            }
            Order::QuestionAsked(question) => match world.reply(&facts, seq, question) {
                sim::world::Reply::Says(report) => report,
                sim::world::Reply::LeavesItOpen => return Ok(()),
            },
            order => world.answer(&facts, seq, order),
        };
        let entry = run.hear(1, report);
        facts.read(&entry);
        log.push(entry);
    }
    Err("does not come to an end".to_owned())
}

/// Limits tight enough to be felt.
fn limits(chance: &mut Chance) -> Costs {
    let cents = |chance: &mut Chance, most: u64| Money(chance.below(most) * 10_000 + chance.below(3));
    let mut costs = page_of_prices();
    costs.budget_usd = Some(cents(chance, 600));
    if chance.percent(50) {
        costs.per_agent_usd = Some(cents(chance, 60));
    }
    if chance.percent(30) {
        costs.daily_usd = Some(cents(chance, 600));
    }
    costs
}

/// Between nothing and all of it.
fn part(chance: &mut Chance, whole: Money) -> Money {
    Money(if whole.0 == 0 { 0 } else { chance.below(whole.0 + 1) })
}

/// What an agent says, and what it was really charged.
fn says(
    chance: &mut Chance,
    costs: &Costs,
    start: &AgentStart,
    so_far: Money,
    seen: &mut Seen,
) -> (Usage, Money) {
    let usage = |cost| Usage { cost, ..Usage::default() };
    match chance.below(6) {
        // The truth, which may be more than was set aside.
        0 | 1 => {
            // Dear reviewers use the budget up while others are still out.
            let most = if start.role == Role::Reviewer { 5_000_000 } else { 300_000 };
            let truth = Money(so_far.0 + chance.below(most) + 1);
            (usage(Stated::Amount(truth)), truth)
        }
        2 => {
            let tokens =
                Tokens { input: chance.below(200_000), output: chance.below(9_000) + 1, ..Tokens::default() };
            let (price, _) = prices::charged(costs, start.model, "").unwrap();
            let priced = ledger::priced(tokens, &price);
            (Usage { tokens: Some(tokens), ..Usage::default() }, priced)
        }
        3 => {
            seen.nonsense += 1;
            let text = chance.pick(&["-4", "NaN", "1e80", "999999999", "0", "none of your business"]);
            (usage(Stated::read(text)), so_far)
        }
        _ => {
            seen.silent += 1;
            (usage(Stated::Nothing), so_far)
        }
    }
}

fn costing(report: Report, cost: Option<Money>) -> Report {
    match report {
        Report::AgentComplete(mut complete) => {
            complete.estimated_cost_usd = cost;
            Report::AgentComplete(complete)
        }
        Report::AgentFailed(mut failed) => {
            failed.estimated_cost_usd = cost;
            Report::AgentFailed(failed)
        }
        Report::AgentTimeout(mut failed) => {
            failed.0.estimated_cost_usd = cost;
            Report::AgentTimeout(failed)
        }
        report => report,
    }
}

fn outside(run: &Run) -> Vec<(Seq, AgentStart)> {
    run.open_agents().map(|(seq, start)| (seq, start.clone())).collect()
}

/// From the log alone: the gate, each step once and in order, nobody after a hard break.
fn checked(log: &[Entry], from: usize, costs: &Costs, seen: &mut Seen) -> Result<(), String> {
    let mut spent = Money::ZERO;
    let mut out: BTreeMap<Seq, Money> = BTreeMap::new();
    let mut told: Vec<(String, u32)> = Vec::new();
    let mut broken = false;
    for (at, entry) in log.iter().enumerate() {
        match &entry.event {
            Event::Order(Order::AgentStart(start)) => {
                let held = spent.plus(out.values().copied().sum()).plus(start.reserved_usd);
                let cap = [costs.budget_usd, costs.daily_usd].into_iter().flatten().min().unwrap();
                if held > cap {
                    return Err(format!("{} starts with {held:?} of {cap:?}", start.archetype));
                }
                if broken {
                    return Err(format!("{} starts after a hard break", start.archetype));
                }
                out.insert(entry.seq, start.reserved_usd);
            }
            Event::Decision(Decision::BudgetStep(step)) => {
                let key = (step.limit.clone(), step.step);
                let again = told.contains(&key);
                let below = told.iter().any(|(limit, earlier)| *limit == step.limit && *earlier > step.step);
                if again || below {
                    return Err(format!(
                        "step {} of the {} is told again or too late",
                        step.step, step.limit
                    ));
                }
                told.push(key);
            }
            Event::Decision(Decision::WiggumBreak(broke)) => {
                broken |= broke.hard;
                if at >= from && broke.trigger == Reason::Budget && !broke.hard && !out.is_empty() {
                    return Err("a soft break cuts nobody short".to_owned());
                }
                seen.refused += u32::from(at >= from && !broke.hard && broke.trigger == Reason::Budget);
            }
            Event::Report(
                report @ (Report::AgentComplete(_)
                | Report::AgentFailed(_)
                | Report::AgentTimeout(_)
                | Report::AgentLost(_)),
            ) => {
                let reserved = out.remove(&report.answers().unwrap()).unwrap();
                spent = spent.plus(counted(report).unwrap_or(reserved));
            }
            _ => {}
        }
    }
    Ok(())
}

fn counted(report: &Report) -> Option<Money> {
    match report {
        Report::AgentComplete(complete) => complete.estimated_cost_usd,
        Report::AgentFailed(failed) => failed.estimated_cost_usd,
        Report::AgentTimeout(failed) => failed.0.estimated_cost_usd,
        _ => None,
    }
}

#[test]
fn m_g17_a_million_tiny_charges_are_exact() {
    let tiny = Money::parse("0.000001").unwrap();
    let sum = (0..1_000_000).fold(Money::ZERO, |sum, _| sum.plus(tiny));
    assert_eq!(sum, Money::DOLLAR);
    // What is finer is rounded up, never away.
    assert_eq!(Money::parse("0.0000004"), Some(tiny));
}
