//! Runs judged again: every row of `docs/rules/replay.md`, and the rulebook against the pages it names.

#![expect(
    clippy::unwrap_used,
    clippy::wildcard_enum_match_arm,
    reason = "a test that can't set up its world should stop at once, and answers only orders"
)]

mod common {
    #[expect(dead_code, reason = "other pages use more of the reader than this one")]
    pub(crate) mod page;
    #[expect(dead_code, reason = "other pages ask the world for more than this one")]
    pub(crate) mod world;
}

use std::collections::BTreeMap;

use archeflow_core::event::{Entry, Event, Report, ReviewVerdict, RunStart};
use archeflow_core::model::{Phase, Verdict, Workflow};
use archeflow_core::projections::replay::rulebook::{self, RULES};
use archeflow_core::projections::replay::weights::{self, WeighingError, Weight};
use archeflow_core::projections::replay::whatif::{End, PolicyChange, refold};

use common::page::{Page, Row, folder};
use common::world::World;

#[test]
fn bx_12_d_13_af_180_replay() {
    let mut page = Page::open("replay");
    page.check("Weights", |row| {
        let threshold = weights::threshold(row.get("threshold")).unwrap();
        let weighed = weights::weigh(&verdicts(row), &given(row), threshold).unwrap();
        row.expect("strict", weighed.strict.name());
        row.expect("weighted", weighed.weighted.name());
        row.expect("strictness", format!("{}.{:03}", weighed.strictness / 1_000, weighed.strictness % 1_000));
    });
    page.check("What can't be weighed", |row| {
        let why = match weights::weigh(&verdicts(row), &given(row), weights::THRESHOLD) {
            Ok(_) => "it can",
            Err(WeighingError::NoVerdict) => "no verdict",
            Err(WeighingError::Stranger { .. }) => "stranger",
            Err(WeighingError::Weightless) => "weightless",
        };
        row.expect("why", why);
    });
    page.check("Numbers", |row| {
        let weight = weights::weight(row.get("text")).map(|weight| weight.to_string());
        row.expect("weight", weight.unwrap_or_default());
    });
    page.check("Other policy", other_policy);
    page.close();
}

/// `guardian+ sage-` as lines of a log, each after a verdict that is not the last.
fn verdicts(row: &Row) -> Vec<Entry> {
    let mut log = Vec::new();
    for word in row.get("verdicts").split_whitespace() {
        let (name, sign) = word.split_at(word.len() - 1);
        let said = |sign: &str| if sign == "+" { Verdict::Approved } else { Verdict::Rejected };
        let earlier = if sign == "+" { "-" } else { "+" };
        for verdict in [said(earlier), said(sign)] {
            let event = ReviewVerdict {
                archetype: name.to_owned(),
                verdict,
                findings: Vec::new(),
                same_model: false,
            }
            .into();
            let (seq, parent, agent) = (1, Vec::new(), None);
            log.push(Entry { seq, at: 0, parent, phase: Phase::Check, agent, event });
        }
    }
    log
}

fn given(row: &Row) -> BTreeMap<String, Weight> {
    let pair = |word: &str| {
        let (name, number) = word.split_once('=').unwrap();
        (name.to_owned(), weights::weight(number).unwrap())
    };
    row.get("weights").split_whitespace().map(pair).collect()
}

fn other_policy(row: &Row) {
    let log = World::script(row.get("run"), row.get("reviews"), row.get("world")).play().log;
    let Event::Report(Report::RunStart(start)) = &log[0].event else {
        row.fail("a log begins with its request")
    };
    let start = altered(row, start);
    let result = refold(&log, &PolicyChange { start, auto_merge: None });
    let first = result.differences.first();
    row.expect("differs", first.map_or("", |first| first.rule()));
    let told = |what: &str, told: Option<&str>| {
        let (wanted, told) = (row.get(what), told.unwrap_or_default());
        if !told.starts_with(wanted) || wanted.is_empty() != told.is_empty() {
            row.fail(&format!("under '{what}' the page says '{wanted}', the code says '{told}'"));
        }
    };
    told("was", first.and_then(|first| Some(first.was.as_ref()?.decision.as_str())));
    told("would be", first.and_then(|first| Some(first.would.as_ref()?.decision.as_str())));
    let (ends, because) = match &result.end {
        End::Known(outcome) => (outcome.reason.name().to_owned(), String::new()),
        End::StillOpen => ("open".to_owned(), String::new()),
        End::Unknown(unknown) => (unknown.ordered.join("; "), unknown.why.clone()),
    };
    told("ends", Some(&ends));
    if !because.contains(row.get("because")) || because.is_empty() != row.get("because").is_empty() {
        row.fail(&format!("it is unknown because '{because}'"));
    }
}

/// The request with the setting of this row.
fn altered(row: &Row, start: &RunStart) -> RunStart {
    let mut start = start.clone();
    let Some((key, value)) = row.get("what if").split_once('=') else { return start };
    match key {
        "cycles" => start.max_cycles = value.parse().unwrap(),
        "workflow" => {
            start.workflow = Workflow::parse(value).unwrap();
            start.max_cycles = start.config.cycles(start.workflow);
        }
        key => {
            let mut policy = serde_json::to_value(&start.config).unwrap();
            let mut at = &mut policy;
            for part in key.split('.') {
                at = &mut at[part];
            }
            *at = serde_json::from_str(value).unwrap_or_else(|_| value.into());
            start.config = serde_json::from_value(policy).unwrap();
        }
    }
    start
}

#[test]
#[expect(clippy::disallowed_methods, reason = "the test reads the pages; the core itself opens nothing")]
fn af_196_every_rule_names_a_page_that_has_it() {
    for rule in RULES {
        let path = folder().join(format!("{}.md", rule.page));
        let page = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(page.contains(rule.number), "docs/rules/{}.md does not tell of {}", rule.page, rule.number);
        assert_eq!(
            rulebook::find(&rule.number.to_lowercase()),
            Some(&rule),
            "{} stands there twice",
            rule.number
        );
    }
}

/// A journal from before `decision` existed has the same choices and gets no line more, in a replay neither.
#[test]
fn m_07_an_earlier_journal_decides_the_same_without_alternatives() {
    let names = |world: &str| -> Vec<(&'static str, Vec<u64>)> {
        let log = World::script("standard", "A B! / clean", world).play().log;
        let start = log[0].event.body::<RunStart>().unwrap().clone();
        let differences = refold(&log, &PolicyChange { start, auto_merge: None }).differences;
        assert!(differences.is_empty(), "{world}: {differences:?}");
        log.iter().map(|entry| (entry.event.name(), entry.parent.clone())).collect()
    };
    let (now, earlier) = (names(""), names("earlier journal"));
    let plain = |lines: &[(&'static str, Vec<u64>)]| -> Vec<&'static str> {
        lines.iter().map(|(name, _)| *name).filter(|name| *name != "decision").collect()
    };
    assert_eq!(plain(&now), plain(&earlier));
    assert!(earlier.iter().all(|(name, _)| *name != "decision"));
    let mut decisions = 0;
    for (at, (_, parent)) in now.iter().enumerate().filter(|(_, (name, _))| *name == "decision") {
        assert_eq!((now[at - 1].0, parent.as_slice()), ("decision.point", [at as u64].as_slice()));
        decisions += 1;
    }
    assert!(decisions > 5, "{decisions}");
}
