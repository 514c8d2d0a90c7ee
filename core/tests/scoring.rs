//! Executes `docs/rules/scoring.md`.
#![expect(clippy::wildcard_enum_match_arm, reason = "a row asks for few kinds of lines")]

#[expect(dead_code, reason = "shared with the tests of the other pages")]
mod common {
    pub(crate) mod page;
    pub(crate) mod world;
}

use archeflow_core::event::{CostSource, Decision, Entry, Event, Order, Report, Unfounded};
use archeflow_core::model::{Disposition, Millionths, Money, Prior, Tier};
use archeflow_core::rules::scoring::{self, Record, Score};

use common::page::{Page, Row};
use common::world::{World, score};

#[test]
fn af_170_af_171_cl_29_bx_31_m_04_scoring() {
    let mut page = Page::open("scoring");
    page.check("Dimensions", |row| {
        let score = Score {
            archetype: "guardian".to_owned(),
            model: Tier::Sonnet,
            total: row.number("findings"),
            info: row.number("info"),
            standing: row.number("stand"),
            useful: row.number("useful"),
            fixed: row.number("fixed"),
            contradicted: row.number("contradicted"),
            impact: row.yes("impact"),
            cost: row.maybe("cost", Money::parse).unwrap_or_default(),
            cost_is_known: row.maybe("cost", Money::parse).is_some(),
            tokens: 0,
        };
        row.expect("signal", score.signal_to_noise().millionths());
        row.expect("fixes", score.fix_rate().millionths());
        row.expect("efficiency", score.cost_efficiency().millionths());
        row.expect("accuracy", score.accuracy().millionths());
        row.expect("composite", score.composite());
    });
    page.check("From a run", |row| {
        let mut log = World::script(row.get("run"), row.get("reviews"), row.get("world")).play().log;
        says(row, &mut log);
        let scores = scoring::scores(&log);
        let Some(score) = scores.iter().find(|score| score.archetype == row.get("who")) else {
            row.fail("it has no score")
        };
        row.expect("findings", score.total);
        row.expect("info", score.info);
        row.expect("stand", score.standing);
        row.expect("useful", score.useful);
        row.expect("fixed", score.fixed);
        row.expect("contradicted", score.contradicted);
        row.expect("impact", if score.impact { "yes" } else { "no" });
        row.expect("composite", score.composite());
    });
    page.check("Trend", |row| {
        let (before, lately) = (number(row, "the five before"), number(row, "the last five"));
        let runs = row.number("runs");
        let records =
            (0..runs).map(|n| record(n, Tier::Haiku, if n + 5 < runs { before } else { lately }, 0));
        let trend = standing(&records.collect::<Vec<_>>()).trend;
        row.expect("trend", trend.map_or("", scoring::Course::name));
    });
    page.check("Advice", |row| {
        let (tier, composite) = (row.word("tier", Tier::parse), number(row, "score"));
        let records: Vec<Record> =
            (0..row.number("runs")).map(|n| record(n, tier, composite, number(row, "signal"))).collect();
        let advice = standing(&records).advice;
        let tier_of = |tier: Option<Tier>| tier.map_or("", Tier::name);
        row.expect("value", advice.map_or("", |advice| advice.value.name()));
        row.expect("low score: try", tier_of(advice.and_then(|advice| advice.upgrade)));
        row.expect("high signal: promote", tier_of(advice.and_then(|advice| advice.promote)));
    });
    page.close();
}

/// Lets an answer of the run add a disposition.
fn says(row: &Row, log: &mut [Entry]) {
    let words: Vec<&str> = row.get("says").split_whitespace().collect();
    for entry in log {
        match (&mut entry.event, words.as_slice()) {
            (Event::Decision(Decision::EvidenceDowngrade(down)), ["citation", "missing"]) => {
                down.reason = Unfounded::CitationNotFound;
            }
            (Event::Report(Report::AgentComplete(complete)), ["cost", "reserved"]) => {
                complete.cost_source = Some(CostSource::Reserved);
            }
            (Event::Order(Order::AgentStart(start)), [who, "runs", agent]) if start.archetype == *who => {
                (*agent).clone_into(&mut start.agent);
            }
            (_, [_, "runs", _]) => {}
            (Event::Report(Report::AgentComplete(complete)), [who, how, of])
                if complete.archetype == *who =>
            {
                let disposition = match *how {
                    "accepted" => Disposition::Accepted,
                    "disputed" => Disposition::Disputed,
                    other => row.fail(&format!("nobody says '{other}'")),
                };
                complete.answer.prior.push(Prior { disposition, text: (*of).to_owned() });
            }
            _ => {}
        }
    }
}

fn number(row: &Row, column: &str) -> Millionths {
    row.word(column, score)
}

fn record(n: u32, model: Tier, composite: Millionths, signal_to_noise: Millionths) -> Record {
    Record { run_id: format!("run-{n}"), archetype: "sage".to_owned(), model, composite, signal_to_noise }
}

fn standing(records: &[Record]) -> scoring::ScoreSummary {
    let report = scoring::report(records);
    assert_eq!(report.len(), 1);
    report[0].clone()
}

/// D-13: who comes first in a review changes nothing; archetypes and tiers are kept apart.
#[test]
fn d_13_order_changes_no_score() {
    let of = |reviews: &str| scoring::scores(&World::script("standard", reviews, "").play().log);
    assert_eq!(of("A B! C? sage:D / A sage:D"), of("sage:D C? B! A / sage:D A"));
    let mixed = [record(0, Tier::Haiku, 1, 1), record(1, Tier::Sonnet, 2, 2), record(2, Tier::Haiku, 3, 3)];
    let report = scoring::report(&mixed);
    let found: Vec<_> =
        report.iter().map(|standing| (standing.model, standing.runs, standing.mean)).collect();
    assert_eq!(found, [(Tier::Haiku, 2, 2), (Tier::Sonnet, 1, 2)]);
}
