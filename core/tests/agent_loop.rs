//! Executes `docs/rules/loop.md`, and plays the states of the loop.
#![expect(clippy::unwrap_used, reason = "a test that panics has failed, which is what it is for")]

mod common {
    #[expect(dead_code, reason = "this page needs only some of the reader")]
    pub(crate) mod page;
}

use std::collections::BTreeSet;

use archeflow_core::model::{LOOP_RULES, LimitMode, LoopPolicy, Risk, Speaker, Token};
use archeflow_core::strategies::agent_loop::rules::battery::{Battery, Check, objections};
use archeflow_core::strategies::agent_loop::rules::fewer::fewer;
use archeflow_core::strategies::agent_loop::rules::limits::{Scope, Size, scope};
use archeflow_core::strategies::agent_loop::rules::metrics::{Alert, LoopSnapshot, Tally, alerts};
use archeflow_core::strategies::agent_loop::rules::recovery::{LoopFault, remedy};
use archeflow_core::strategies::agent_loop::rules::states::{LoopPosition, State, TurnEvent, after};
use archeflow_core::strategies::agent_loop::rules::turn::{self, RoutedSignal, TurnFacts};
use archeflow_core::strategies::agent_loop::rules::{commands, diet, goal, risk};

use common::page::{Page, Row};

fn state(word: &str) -> Option<State> {
    State::ALL.into_iter().find(|state| state.name() == word)
}

fn turn_event(word: &str) -> Option<TurnEvent> {
    TurnEvent::ALL.into_iter().find(|heard| heard.name() == word)
}

fn list(text: &str) -> Vec<&str> {
    text.split(',').map(str::trim).filter(|word| !word.is_empty()).collect()
}

#[test]
fn pj_01_to_pj_17_states() {
    let mut page = Page::open("loop");
    let policy = LoopPolicy::default();
    page.check("States", |row| {
        let place = LoopPosition {
            state: row.word("state", state),
            insufficient: row.number("in a row"),
            failed: Some(0),
        };
        let Some(then) = after(place, row.word("heard", turn_event), policy.pause_after) else {
            row.fail("the code refuses this")
        };
        row.expect("becomes", then.state.name());
        row.expect("then in a row", then.insufficient);
        row.expect("whose turn", then.state.whose().map_or("", Speaker::name));
    });
    let table = page.table("States");
    let told: BTreeSet<(String, String)> =
        table.rows.iter().map(|row| (row.get("state").to_owned(), row.get("heard").to_owned())).collect();
    for state in State::ALL {
        for heard in TurnEvent::ALL {
            let legal =
                after(LoopPosition { state, insufficient: 0, failed: Some(0) }, heard, policy.pause_after)
                    .is_some();
            let row = told.contains(&(state.name().to_owned(), heard.name().to_owned()));
            assert_eq!(legal, row, "{} and {}: the page and the code differ", state.name(), heard.name());
        }
    }
    page.check("Sequences", |row| sequence(row, &policy));
}

fn sequence(row: &Row, policy: &LoopPolicy) {
    let mut place = LoopPosition { state: State::Align, insufficient: 0, failed: Some(0) };
    let mut seen = Vec::new();
    for word in row.get("said").split_whitespace() {
        let said: &[TurnEvent] = match word {
            "I" => &[TurnEvent::Plan, TurnEvent::Success, TurnEvent::Insufficient],
            "P" => &[TurnEvent::Plan, TurnEvent::Success, TurnEvent::Pass, TurnEvent::RequestChanges],
            "F" => &[TurnEvent::Plan, TurnEvent::Fail],
            "R" => &[TurnEvent::Restart],
            other => row.fail(&format!("nobody says '{other}'")),
        };
        for heard in said {
            place = after(place, *heard, policy.pause_after).unwrap();
        }
        seen.push(place.state.name());
    }
    row.expect("states", seen.join(" "));
}

/// Whatever is said in whatever order: nothing lands without a PASS and a person's yes, and nobody acts without a plan.
#[test]
fn pj_16_nothing_lands_without_a_pass_and_a_yes() {
    let mut chance: u64 = 4;
    let mut below = |bound: usize| {
        chance ^= chance >> 12;
        chance ^= chance << 25;
        chance ^= chance >> 27;
        usize::try_from(chance.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33).unwrap() % bound
    };
    let (mut ends, mut landed) = (BTreeSet::new(), 0);
    for _ in 0..1000 {
        let mut place = LoopPosition { state: State::Idle, insufficient: 0, failed: Some(0) };
        let mut story = Vec::new();
        for _ in 0..400 {
            let said = TurnEvent::ALL[below(TurnEvent::ALL.len())];
            // Or hardly any loop would live to see its end, or be refused five times in a row.
            if matches!(said, TurnEvent::Stop | TurnEvent::PassOn) && below(20) > 0 {
                continue;
            }
            let Some(then) = after(place, said, 5) else { continue };
            story.push(said);
            assert!(then.insufficient <= 5);
            if then.state == State::Execute {
                let planned = matches!(story.last(), Some(TurnEvent::Plan | TurnEvent::Approve));
                assert!(planned, "{story:?}");
            }
            if then.state == State::Archived {
                let told = &story[story.iter().rposition(|said| *said == TurnEvent::Goal).unwrap()..];
                let pass = told.iter().rposition(|said| *said == TurnEvent::Pass).unwrap();
                assert!(
                    !told[pass..].contains(&TurnEvent::Plan),
                    "work after the PASS was not judged: {told:?}"
                );
                assert!(told[pass..].contains(&TurnEvent::Approve), "{told:?}");
                landed += 1;
            }
            if then.state.is_end() {
                ends.insert(then.state);
            }
            place = then;
        }
    }
    assert!(landed > 20, "hardly ever played to its end: {landed}");
    assert_eq!(ends.len(), 4, "{ends:?}");
}

#[test]
fn pj_30_to_pj_68_the_other_tables() {
    let mut page = Page::open("loop");
    page.table("States");
    page.table("Sequences");
    let policy = LoopPolicy::default();
    page.check("Turns", |row| {
        let facts = list(row.get("facts"));
        let said = RoutedSignal {
            by: row.word("by", Speaker::parse),
            agent: row.word("agent", Speaker::parse),
            result: Token::ALL.into_iter().find(|token| token.name() == row.get("result")),
            next: row.word("next", Speaker::parse),
            facts: TurnFacts {
                gated: facts.contains(&"gated"),
                grave: facts.contains(&"grave"),
                objections: facts.contains(&"objections"),
                oversized: facts.contains(&"oversized"),
                nothing_done: facts.contains(&"nothing_done"),
                own_file: facts.contains(&"own_file"),
            },
            rules: LOOP_RULES,
        };
        assert_eq!(said.result.is_none(), row.get("result") == "unclear", "no such result");
        let state = row.word("state", state);
        let heard = turn::event_of(state, said);
        row.expect("heard", heard.as_ref().map_or("refused", |heard| heard.name()));
        if let Ok(heard) = heard {
            assert!(
                after(LoopPosition { state, insufficient: 0, failed: Some(0) }, heard, 5).is_some(),
                "heard and then refused"
            );
        }
    });
    page.check("Goals", |row| {
        row.expect(
            "vague",
            if goal::is_vague(row.get("goal"), &LoopPolicy::default()) { "yes" } else { "no" },
        );
    });
    page.check("Size of a step", |row| {
        let size =
            Size { lines: row.number("lines"), files: row.number("files"), docs_only: row.yes("docs only") };
        let mode = row.word("mode", |word| match word {
            "either_suffices" => Some(LimitMode::EitherSuffices),
            "both_required" => Some(LimitMode::BothRequired),
            _ => None,
        });
        let policy = LoopPolicy { limit_mode: mode, ..LoopPolicy::default() };
        row.expect("scope", scope(size, row.maybe("risk", Risk::parse), &policy).name());
    });
    page.check("Forbidden commands", |row| {
        let found = commands::forbidden(row.get("text"), &policy.forbidden);
        row.expect("found", found.map_or("", |(_, pattern)| pattern));
        let below = format!("first\n{}\n", row.get("text"));
        assert_eq!(commands::forbidden(&below, &policy.forbidden), found.map(|(_, pattern)| (2, pattern)));
    });
    page.check("Context", |row| {
        let refused = diet::refused(row.word("who", Speaker::parse), &list(row.get("documents")), &policy);
        row.expect("refused", refused.unwrap_or_default());
    });
    page.check("Troubles", |row| {
        row.expect(
            "remedy",
            remedy(row.word("trouble", LoopFault::parse), row.number("retries"), &LoopPolicy::default())
                .describe(),
        );
    });
    let troubles: BTreeSet<String> = page.table("Troubles").column("trouble").into_iter().collect();
    assert_eq!(troubles.len(), LoopFault::ALL.len(), "a trouble without a row");
    page.check("Fewer tests", |row| {
        let told = fewer(row.get("command"), &list(row.get("changed")));
        row.expect("fewer", told.unwrap_or_default());
    });
    page.check("The battery", |row| {
        let check = |column: &str| row.word(column, Check::parse);
        let scopes = [Scope::Within, Scope::Tolerated, Scope::Exceeded];
        let battery = Battery {
            tests: check("tests"),
            linter: check("linter"),
            security: check("security"),
            scope: row.word("scope", |word| scopes.into_iter().find(|scope| scope.name() == word)),
            judge: row.maybe("judge", |word| Some(word == "pass")),
        };
        row.expect("objections", objections(battery, &policy).join("; "));
    });
    page.check("Risk", |row| {
        let found = risk::of(row.maybe("said", Risk::parse), &list(row.get("kinds")), &policy);
        row.expect("risk", found.name());
        let confidence = row.maybe("confidence", |word| word.parse().ok());
        row.expect("gate", risk::gate(found, confidence, row.yes("approved"), &policy).name());
    });
    page.check("Alerts", |row| {
        let moment = LoopSnapshot {
            rounds_alone: row.number("rounds alone"),
            risk: row.maybe("risk", Risk::parse),
            approved: row.yes("approved"),
            insufficient: row.number("in a row"),
            since_checkpoint_ms: u64::from(row.number("minutes")) * 60_000,
        };
        let names: Vec<&str> = alerts(moment, &policy).into_iter().map(Alert::name).collect();
        row.expect("alerts", names.join(", "));
    });
    page.check("Figures", |row| figures(row, &policy));
    page.close();
}

fn figures(row: &Row, policy: &LoopPolicy) {
    let tally = Tally {
        succeeded: row.number("succeeded"),
        incomplete: row.number("incomplete"),
        failed: row.number("failed"),
        iterations: row.number("iterations"),
        passes: row.number("passes"),
        insufficient: row.number("insufficient"),
        paused: row.number("paused"),
        approvals: row.number("approvals"),
        approval_ms: u64::from(row.number("waited")),
    };
    let light = |column: &str, name: &str| row.expect(column, if name == "-" { "" } else { name });
    light("iterations light", tally.iterations(policy).name());
    light("pass light", tally.pass_rate(policy).name());
    light("pause light", tally.pause_rate(policy).name());
    row.expect("latency", tally.approval_latency().map_or_else(String::new, |ms| ms.to_string()));
}
