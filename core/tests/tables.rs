//! Executes the tables of `docs/rules`: a page and its test are one. A row that does not hold fails with the page
//! and the line it stands on.

#![expect(clippy::wildcard_enum_match_arm, reason = "a row asks for one kind of line and ignores the rest")]

mod common {
    pub(crate) mod page;
    pub(crate) mod world;
}

use std::collections::{BTreeMap, BTreeSet};

use archeflow_core::event::{
    Decision, DecisionPoint, Entry, Event, EvidenceDone, OldTests, Order, Ran, Share, TestsRan, Tracked,
    Trend, Unfounded, Verb,
};
use archeflow_core::model::{
    ARCHETYPES, Boundaries, CATEGORIES, Change, ChangedFile, Citation, Convergence, Counted, Destination,
    Domain, FileStatus, Finding, Flaw, Models, Outcome, Overlap, PROGRAM, Participant, Phase, Proposal,
    Raised, Reason, Role, RunStatus, Severity, Sight, Sign, Signs, Status, Strategy, TestCounts, Tier,
    Workflow, ZeroPolicy, pipeline_team, team,
};
use archeflow_core::projections::view::passed_over;
use archeflow_core::read;
use archeflow_core::rules::attention::{ContextSources, allowed, look};
use archeflow_core::rules::caches::{self, CacheTool};
use archeflow_core::rules::convergence::{self, ConvergenceCounts};
use archeflow_core::rules::gates::{self, Clearance, TestFirst};
use archeflow_core::rules::identity::FindingClaim;
use archeflow_core::rules::keeping::{self, KeepDecision, RunFate};
use archeflow_core::rules::proposals::{self, ProjectFiles, ProposedCommand};
use archeflow_core::rules::run_names::{self, Meaning, NamedRun, RunState, RunUse};
use archeflow_core::rules::selection::{Wishes, select};
use archeflow_core::rules::{
    alternatives, evidence, pollution, raised, ran, red_base, routing, signs, tiers, trial, unmade,
};
use archeflow_core::settings::KeepSettings;

use common::page::{Page, Row, folder};
use common::world::{self, Played, World};

#[test]
fn af_073_d_05_evidence() {
    let mut page = Page::open("evidence");
    page.check("Weighing a finding", |row| {
        let finding = Finding {
            source: source_of(row).to_owned(),
            location: "src/a.rs:10".to_owned(),
            file: "src/a.rs".to_owned(),
            line: 10,
            severity: row.word("severity", severity),
            category: "reliability".to_owned(),
            flaw: None,
            description: row.get("description").to_owned(),
            fix: String::new(),
            evidence: row.get("evidence").to_owned(),
            citations: citations(row),
            anchor: String::new(),
            reproduction: None,
        };
        let unless_weak = if evidence::is_unrelated(&finding) { "asked first" } else { "stands" };
        row.expect("result", evidence::weigh(&finding).map_or(unless_weak, Unfounded::name));
    });
    page.check("What the tallies count", |row| {
        let played = World::script("fast", row.get("findings"), "").play();
        row.expect("downgrades", played.count("evidence.downgrade"));
        let boundary = played.run.cycles.first().and_then(|cycle| cycle.boundary.as_ref());
        let Some(boundary) = boundary else { row.fail("the cycle has no boundary") };
        row.expect("critical", boundary.critical);
        row.expect("warning", boundary.warning);
        row.expect("info", boundary.info);
        let review = played.run.cycles.first().and_then(|cycle| cycle.review("guardian"));
        let kept = review.map(|review| review.findings.clone()).unwrap_or_default();
        let written: Vec<Finding> = row.get("findings").split_whitespace().map(world::finding).collect();
        assert_eq!(kept, written, "the reviewer's own answer was altered");
    });
    page.close();
}

fn source_of(row: &Row) -> &str {
    if row.has("source") { row.get("source") } else { "guardian" }
}

/// `<place> [quoting] unseen|there|missing|unrelated`; several are separated by `;`. What is quoted is the first code
/// span of the evidence, or else of the description.
fn citations(row: &Row) -> Vec<Citation> {
    let first = |cell: &str| row.get(cell).split('`').nth(1).map(str::to_owned);
    let span = first("evidence").or_else(|| first("description"));
    let read = |text: &str| {
        let words: Vec<&str> = text.split_whitespace().collect();
        let ([place, state] | [place, "quoting", state]) = words[..] else {
            row.fail(&format!("'{text}' is not a citation"))
        };
        let (file, line) = place_of(place);
        let holds = match state {
            "unseen" => None,
            "there" | "unrelated" => Some(true),
            "missing" => Some(false),
            other => row.fail(&format!("a citation can't be '{other}'")),
        };
        let quote = span.clone().filter(|_| words.contains(&"quoting"));
        let related = (state == "unrelated").then_some(false);
        Citation { file, line, quote, holds, related }
    };
    row.get("citation").split(';').map(str::trim).filter(|text| !text.is_empty()).map(read).collect()
}

/// Runs that record an older way of comparing are decided as they were.
#[test]
fn m_08_the_words_of_a_finding_route_it_in_new_runs_only() {
    let mut finding = plain_finding("trickster", "security", None);
    finding.file = "src/app.rs".to_owned();
    finding.severity = Severity::Warning;
    finding.fix = "Add a test for it".to_owned();
    for (overlap, destination) in
        [(Overlap::Weighed, Destination::Maker), (Overlap::Min, Destination::Creator)]
    {
        let policy = Convergence { overlap, ..Convergence::default() };
        let merged = convergence::merge(std::slice::from_ref(&finding), &policy);
        let routes: Vec<Destination> = merged.iter().map(|found| found.routes_to).collect();
        assert_eq!(routes, [destination], "{overlap:?}");
    }
}

#[test]
fn af_090_af_091_cl_25_m_08_routing() {
    let mut page = Page::open("routing");
    page.check("Missing tests", |row| {
        let mut finding = plain_finding(row.get("source"), row.get("category"), row.maybe("flaw", flaw));
        row.get("description").clone_into(&mut finding.description);
        row.get("fix").clone_into(&mut finding.fix);
        row.expect("destination", routing::route(&finding).name());
    });
    page.check("Destinations", |row| {
        let finding = plain_finding(row.get("source"), row.get("category"), row.maybe("flaw", flaw));
        row.expect("destination", routing::route(&finding).name());
    });
    let rows: BTreeSet<(String, String, String)> = page
        .table("Destinations")
        .rows
        .iter()
        .map(|row| (row.get("source").to_owned(), row.get("category").to_owned(), row.get("flaw").to_owned()))
        .collect();
    for source in ["guardian", "skeptic", "sage", "trickster", PROGRAM] {
        for category in CATEGORIES {
            let flaws: &[&str] =
                if category == "reliability" { &["", "design flaw", "test gap"] } else { &[""] };
            for flaw in flaws {
                let key = (source.to_owned(), category.to_owned(), (*flaw).to_owned());
                assert!(rows.contains(&key), "docs/rules/routing.md has no row for {key:?}");
            }
        }
    }
    page.close();
}

#[test]
fn af_094_dedup() {
    let mut page = Page::open("dedup");
    page.check("Merging", |row| {
        let policy = Convergence::default();
        let findings: Vec<Finding> = list(row.get("findings")).map(|text| described(row, text)).collect();
        let merged = convergence::merge(&findings, &policy);
        let mut backwards = findings;
        backwards.reverse();
        assert_eq!(merged, convergence::merge(&backwards, &policy), "the order of arrival matters");
        for finding in backwards.iter().filter(|finding| finding.severity > Severity::Info) {
            let kept = |found: &Tracked| {
                let mut also = found.also.iter();
                found.description == finding.description
                    || also.any(|remark| remark.description == finding.description)
            };
            assert!(merged.iter().any(kept), "J-06: '{}' is lost", finding.description);
        }
        let written: Vec<String> = merged.iter().map(tracked_line).collect();
        row.expect("counts as", written.join("; "));
    });
    page.close();
}

/// `<source> <SEVERITY> <category>[(flaw)] <place>[: <description>]`.
fn described(row: &Row, text: &str) -> Finding {
    let (text, description) = text.split_once(": ").unwrap_or((text, "the value is lost"));
    let words: Vec<&str> = text.split_whitespace().collect();
    let [source, grade, category, place] = words[..] else { row.fail(&format!("'{text}' is not a finding")) };
    let (category, kind) = match category.split_once('(') {
        Some((category, kind)) => (category, flaw(&kind.trim_end_matches(')').replace('-', " "))),
        None => (category, None),
    };
    let (file, line) = place_of(place);
    let severity = severity(grade).unwrap_or_else(|| row.fail(&format!("'{grade}' is not a severity")));
    let mut finding = plain_finding(source, category, kind);
    description.clone_into(&mut finding.description);
    Finding { file, line, severity, ..finding }
}

fn tracked_line(found: &Tracked) -> String {
    let place = match (found.file.as_str(), found.line) {
        ("", _) => "nowhere".to_owned(),
        (file, 0) => file.to_owned(),
        (file, line) => format!("{file}:{line}"),
    };
    let (sources, severity, to) = (found.source.join("+"), found.severity.name(), found.routes_to.name());
    format!("{sources} {severity} {} {place} to {to}", found.category)
}

#[test]
fn af_101_af_102_cl_18_m_d14_j_05_identity() {
    let mut page = Page::open("identity");
    page.check("Same or different", |row| {
        let trend = compare(row, row.get("earlier"), row.get("later"));
        row.expect("verdict", if trend.persistent == 1 { "same" } else { "different" });
        let back = compare(row, row.get("later"), row.get("earlier"));
        assert_eq!(trend.persistent, back.persistent, "identity is not symmetric");
    });
    page.check("Points", |row| {
        let (a, b) = (identified(row, row.get("earlier")), identified(row, row.get("later")));
        let likeness = FindingClaim::of_tracked(&a).compare(&FindingClaim::of_tracked(&b));
        row.expect("points", likeness.points);
        row.expect("needed", likeness.needed);
    });
    page.check("One to one", |row| {
        let trend = compare(row, row.get("earlier"), row.get("later"));
        row.expect("persistent", trend.persistent);
        row.expect("new", trend.new);
        row.expect("resolved", trend.resolved);
    });
    page.close();
}

fn compare(row: &Row, earlier: &str, later: &str) -> Trend {
    let overlap = row.has("overlap").then(|| row.get("overlap"));
    let overlap = match overlap {
        None | Some("weighed") => Overlap::Weighed,
        Some("min") => Overlap::Min,
        Some("jaccard") => Overlap::Jaccard,
        Some(other) => row.fail(&format!("no overlap is called '{other}'")),
    };
    let policy = Convergence { overlap, ..Convergence::default() };
    let read = |text: &str| -> Vec<Tracked> { list(text).map(|one| identified(row, one)).collect() };
    let (before, _) = convergence::follow(read(earlier), &[], &policy);
    let (_, trend) = convergence::follow(read(later), &[&before], &policy);
    trend.unwrap_or_else(|| row.fail("there is no trend"))
}

/// `<sources> · <category> · <place> · <description>`.
fn identified(row: &Row, text: &str) -> Tracked {
    let parts: Vec<&str> = text.split('·').map(str::trim).collect();
    let [sources, category, place, description] = parts[..] else {
        row.fail(&format!("'{text}' has not four parts"))
    };
    let (file, line) = place_of(place);
    Tracked {
        id: String::new(),
        file,
        line,
        category: category.to_owned(),
        severity: Severity::Warning,
        source: sources.split('+').map(str::to_owned).collect(),
        description: description.to_owned(),
        fix: String::new(),
        routes_to: Destination::Maker,
        cycles_open: 1,
        regression_of: None,
        anchor: String::new(),
        also: Vec::new(),
    }
}

#[test]
fn af_103_to_af_108_cl_05_to_cl_08_cl_10_cl_19_m_d15_convergence() {
    let mut page = Page::open("convergence");
    for heading in ["Two cycles", "Three cycles and more", "Waiting for a second zero"] {
        page.check(heading, pattern);
    }
    page.check("Bands", |row| {
        let counts = ConvergenceCounts {
            resolved: row.number("resolved"),
            new: row.number("new"),
            regressed: row.number("regressed"),
            persistent: row.number("persistent"),
        };
        let (score, status) = convergence::judge(counts, &Convergence::default());
        row.expect("score", decimal(score.0));
        row.expect("status", status.name());
    });
    page.close();
}

/// Follows a pattern of findings to its last cycle. The cycles before must not have stopped the run, or the row
/// could not happen.
fn pattern(row: &Row) {
    let zero_policy = match row.has("zero policy").then(|| row.get("zero policy")) {
        None | Some("immediate") => ZeroPolicy::Immediate,
        Some("two_consecutive") => ZeroPolicy::TwoConsecutive,
        Some(other) => row.fail(&format!("no zero policy is called '{other}'")),
    };
    let stop_without_baseline = row.has("stop without baseline") && row.yes("stop without baseline");
    let policy = Convergence { zero_policy, stop_without_baseline, ..Convergence::default() };
    let mut cycles: Vec<Vec<Tracked>> = Vec::new();
    let mut trends: Vec<Trend> = Vec::new();
    let patterns: Vec<&str> = row.get("cycles").split('/').collect();
    for (n, cycle) in (1..).zip(&patterns) {
        let words = cycle.split_whitespace().filter(|word| *word != "-");
        let mut found: Vec<Finding> = words.map(world::finding).collect();
        let merged = convergence::merge(&found, &policy);
        let history: Vec<&[Tracked]> = cycles.iter().map(Vec::as_slice).collect();
        let (open, trend) = convergence::follow(merged, &history, &policy);
        found.reverse();
        let again = convergence::follow(convergence::merge(&found, &policy), &history, &policy);
        assert_eq!((&open, &trend), (&again.0, &again.1), "the order of arrival matters");
        cycles.push(open);
        let Some(trend) = trend else { continue };
        let stop = convergence::stop(&trend, &trends.iter().collect::<Vec<_>>(), &policy);
        if n < patterns.len() {
            assert!(stop.is_none(), "the run would have stopped in cycle {n} already: {stop:?}");
            trends.push(trend);
            continue;
        }
        row.expect("resolved", trend.resolved);
        row.expect("new", trend.new);
        row.expect("regressed", trend.regressed);
        row.expect("persistent", trend.persistent);
        row.expect("oscillating", trend.oscillating.len());
        row.expect("score", decimal(trend.score.0));
        row.expect("status", trend.status.name());
        row.expect("decision", stop.map_or("continue", |stop| stop.reason.name()));
    }
}

#[test]
fn a1_a2_a3_af_053_af_063_af_071_af_081_m_05_gates() {
    let mut page = Page::open("gates");
    page.check("Confidence (A3)", |row| {
        let scores = format!(
            "{} {} {}",
            row.get("task understanding"),
            row.get("solution completeness"),
            row.get("risk coverage")
        );
        let gate =
            gates::confidence(world::confidence(&scores), row.word("workflow", Workflow::parse), 500_000);
        row.expect("ask a person", yes(gate.ask));
        row.expect("fast becomes standard", yes(gate.upgrade));
        row.expect("mini-Explorer", yes(gate.research));
    });
    page.check("Test-first", |row| {
        let change = Change { test_files: row.number("test files"), ..change_of(row.get("changed")) };
        let proposal = Proposal { has_test_strategy: row.yes("test strategy"), ..Proposal::default() };
        let domain = row.word("domain", domain);
        // A journal from before M-05 has no such field; it goes on as it began.
        for (column, prose_passes) in [("verdict", true), ("earlier", false)] {
            let verdict = match gates::test_first(&change, Some(&proposal), domain, prose_passes) {
                TestFirst::Passes => "passes",
                TestFirst::SendBack => "back for tests",
                TestFirst::Warn => "warning",
            };
            row.expect(column, verdict);
        }
    });
    page.check("Test files", |row| row.expect("test", yes(signs::is_test_path(row.get("path")))));
    page.check("Planned files", |row| {
        let change = change_of(row.get("changed"));
        let planned = row.get("planned").split("; ").filter(|path| !path.is_empty());
        row.expect("named", unmade::unmade(planned, &change).join("; "));
    });
    page.check("Fast path (A2)", |row| {
        let facts = Clearance {
            approved: row.yes("approved"),
            gravest: row.maybe("gravest", severity),
            verified: row.yes("status tokens"),
            raised_by_program: row.yes("program's finding"),
            workflow: row.word("workflow", Workflow::parse),
            escalated: row.yes("escalated"),
            cycle: row.number("cycle"),
        };
        row.expect("others", if gates::fast_path(facts).is_ok() { "skipped" } else { "run" });
    });
    page.check("Escalation (A1)", |row| {
        let escalates =
            gates::escalates(row.word("workflow", Workflow::parse), row.number("CRITICALs of the Guardian"));
        row.expect("escalates", yes(escalates));
    });
    page.check("The gates in a run", scenario);
    page.close();
}

#[test]
fn af_020_af_021_af_022_cl_21_selection() {
    let mut page = Page::open("selection");
    for heading in ["What the task says", "Who says it"] {
        page.check(heading, |row| {
            let flow = |column: &str| row.has(column).then(|| row.maybe(column, Workflow::parse)).flatten();
            let plan = |column: &str| row.has(column).then(|| row.maybe(column, strategy)).flatten();
            let wishes = Wishes {
                workflow_flag: flow("--workflow"),
                workflow_config: flow("configured workflow"),
                strategy_flag: plan("--strategy"),
                strategy_config: plan("configured strategy"),
            };
            let (strategy, workflow, chosen) = select(row.get("task"), &wishes);
            row.expect("strategy", strategy.name());
            row.expect("workflow", workflow.name());
            row.expect("signals against", chosen.against.len());
        });
    }
    page.check("Cycles", |row| {
        row.expect("cycles at most", row.word("workflow", Workflow::parse).max_cycles());
    });
    page.close();
}

#[test]
fn af_001_af_014_af_023_teams() {
    let mut page = Page::open("teams");
    page.check("Archetypes", |row| {
        let name = row.get("archetype");
        let header = header(name);
        for key in ["phase", "role", "virtue", "shadow", "tier"] {
            row.expect(key, header.get(key).map_or("nothing", String::as_str));
        }
        assert_eq!(header.get("name").map(String::as_str), Some(name));
        for workflow in Workflow::ALL {
            let tier = tiers::resolve(&Models::default(), workflow, name, row.word("tier", Tier::parse));
            row.expect("tier", tier.name());
        }
    });
    let names: BTreeSet<String> = page.table("Archetypes").column("archetype").into_iter().collect();
    assert_eq!(names, ARCHETYPES.iter().map(|(name, _)| (*name).to_owned()).collect());
    page.check("Seats", |row| {
        let seats = match row.get("run") {
            "pipeline" => pipeline_team(),
            name => team(Workflow::parse(name).unwrap_or_else(|| row.fail("no such workflow"))),
        };
        let of = |wanted: Phase| {
            let sits = |seat: &&Participant| phase(seat.role) == wanted;
            seats.iter().filter(sits).map(|seat| seat.archetype.as_str()).collect::<Vec<_>>().join(", ")
        };
        row.expect("plan", of(Phase::Plan));
        row.expect("do", of(Phase::Do));
        row.expect("check", of(Phase::Check));
        for seat in &seats {
            let role = header(&seat.archetype).get("role").and_then(|name| role(name));
            assert_eq!(role, Some(seat.role), "the header of {} says another role", seat.archetype);
        }
    });
    page.check("Tier resolution", |row| {
        let models = models(row);
        let own = header(row.get("archetype")).get("tier").and_then(|tier| Tier::parse(tier));
        let own = own.unwrap_or_else(|| row.fail("the archetype has no tier of its own"));
        let tier = tiers::resolve(&models, row.word("workflow", Workflow::parse), row.get("archetype"), own);
        row.expect("tier", tier.name());
    });
    page.close();
}

fn phase(role: Role) -> Phase {
    match role {
        Role::Explorer | Role::Creator => Phase::Plan,
        Role::Maker => Phase::Do,
        Role::Gatekeeper | Role::Reviewer => Phase::Check,
    }
}

/// `default=…`, `archetypes.<name>=…`, `workflows.<name>.default=…`, `workflows.<name>.archetypes.<name>=…`.
fn models(row: &Row) -> Models {
    let mut models = Models::default();
    for setting in row.get("models").split(',').map(str::trim).filter(|setting| !setting.is_empty()) {
        let read =
            setting.split_once('=').and_then(|(key, tier)| Some((key.trim(), Tier::parse(tier.trim())?)));
        let (key, tier) = read.unwrap_or_else(|| row.fail(&format!("'{setting}' sets nothing")));
        match key.split('.').collect::<Vec<_>>()[..] {
            ["default"] => models.default = Some(tier),
            ["archetypes", name] => drop(models.archetypes.insert(name.to_owned(), tier)),
            ["workflows", name, ref rest @ ..] => {
                let workflow = Workflow::parse(name).unwrap_or_else(|| row.fail("no such workflow"));
                let table = models.workflows.entry(workflow).or_default();
                match rest {
                    ["default"] => table.default = Some(tier),
                    ["archetypes", name] => drop(table.archetypes.insert((*name).to_owned(), tier)),
                    _ => row.fail(&format!("'{key}' is no setting")),
                }
            }
            _ => row.fail(&format!("'{key}' is no setting")),
        }
    }
    models
}

/// The `key: value` lines between the marks at the top of a built-in persona.
fn header(archetype: &str) -> BTreeMap<String, String> {
    let text = ARCHETYPES.iter().find(|(name, _)| *name == archetype).map_or("", |(_, text)| *text);
    let lines = text.lines().skip_while(|line| *line != "---").skip(1).take_while(|line| *line != "---");
    let pairs = lines.filter_map(|line| line.split_once(':'));
    pairs.map(|(key, value)| (key.trim().to_owned(), value.trim().to_owned())).collect()
}

fn sees(archetype: &str) -> BTreeSet<Sight> {
    let header = header(archetype);
    let words = header.get("sees").map(String::as_str).unwrap_or_default().split(',').map(str::trim);
    let known = |word: &str| Sight::ALL.into_iter().find(|sight| sight.name() == word);
    words.map(|word| known(word).unwrap_or_else(|| panic!("{archetype} wants to see '{word}'"))).collect()
}

#[test]
fn af_030_to_af_039_d_14_attention() {
    const THINGS: [&str; 8] = [
        "task",
        "research",
        "proposal",
        "risks",
        "diff",
        "summary",
        "Creator's feedback",
        "Maker's feedback",
    ];
    let mut page = Page::open("attention");
    let marker = |thing: &str| format!("marker of the {thing}");
    let desk = |left_out: &str| {
        let some = |thing: &str| (thing != left_out).then(|| marker(thing));
        ContextSources {
            task: marker("task"),
            unplanned: false,
            research: some("research"),
            proposal: some("proposal"),
            risks: some("risks"),
            diff: some("diff"),
            summary: some("summary"),
            creator_feedback: some("Creator's feedback"),
            maker_feedback: some("Maker's feedback"),
        }
    };
    page.check("Who sees what", |row| {
        let name = row.get("archetype");
        let role =
            header(name).get("role").and_then(|word| role(word)).unwrap_or_else(|| row.fail("no such role"));
        let seen = look(role, &sees(name), &desk(""));
        assert_eq!(seen.missing, Vec::<&str>::new());
        for thing in THINGS {
            let shown = seen.sections.iter().any(|(_, text)| *text == marker(thing));
            row.expect(thing, yes(shown));
        }
        let expected = THINGS.iter().filter(|thing| row.yes(thing)).count();
        assert_eq!(seen.sections.len(), expected, "{name} is shown something that is on no desk");
        assert!(sees(name).is_subset(&allowed(role)), "{name} asks for more than its role allows");
    });
    let names: BTreeSet<String> = page.table("Who sees what").column("archetype").into_iter().collect();
    assert_eq!(names, ARCHETYPES.iter().map(|(name, _)| (*name).to_owned()).collect());
    page.check("What is missing", |row| {
        let (name, thing) = (row.get("archetype"), row.get("missing"));
        let role =
            header(name).get("role").and_then(|word| role(word)).unwrap_or_else(|| row.fail("no such role"));
        let seen = look(role, &sees(name), &desk(thing));
        row.expect("outcome", if seen.missing.is_empty() { "skipped" } else { "error" });
    });
    page.check("Without a plan", |row| {
        let name = row.get("archetype");
        let role =
            header(name).get("role").and_then(|word| role(word)).unwrap_or_else(|| row.fail("no such role"));
        let sources = ContextSources { unplanned: true, proposal: None, risks: None, ..desk("") };
        let seen = look(role, &sees(name), &sources);
        assert_eq!(seen.missing, Vec::<&str>::new());
        for thing in ["task", "diff", "summary", "Maker's feedback"] {
            row.expect(thing, yes(seen.sections.iter().any(|(_, text)| *text == marker(thing))));
        }
    });
    page.check("The most a role may see", |row| {
        let role = row.word("role", role);
        for sight in Sight::ALL {
            row.expect(sight.name(), yes(allowed(role).contains(&sight)));
        }
    });
    page.close();
}

#[test]
fn d_16_outcomes() {
    let mut page = Page::open("outcomes");
    page.check("Exit codes", |row| {
        let outcome = Outcome {
            status: row.word("status", run_status),
            reason: row.word("reason", reason),
            detail: String::new(),
        };
        row.expect("exit", outcome.exit_code());
    });
    let told: BTreeSet<String> = page.table("Exit codes").column("reason").into_iter().collect();
    for reason in Reason::ALL {
        assert!(
            told.contains(reason.name()),
            "docs/rules/outcomes.md does not tell how '{}' ends",
            reason.name()
        );
    }
    page.close();
}

#[test]
fn u_10_preflight() {
    let mut page = Page::open("preflight");
    page.check("Runs", |row| {
        scenario(row);
        let played = World::script(row.get("run"), row.get("reviews"), row.get("world")).play();
        row.expect("sent", played.agents());
    });
    page.check("Names of failing tests", |row| {
        let line = row.get("line").replace('␛', "\u{1b}");
        let names = read::failing_tests(&format!("some output\n{line}\nmore of it\n"));
        row.expect("name", names.join(", "));
    });
    let lines = |text: &str| text.replace('⏎', "\n");
    page.check("Names of tests that ran", |row| {
        let named = read::named_tests(&format!("some output\n{}\nmore\n", row.get("line")));
        row.expect("passed", named.passed.into_iter().collect::<Vec<_>>().join(", "));
        row.expect("failed", named.failed.into_iter().collect::<Vec<_>>().join(", "));
    });
    page.check("Whether the others ran", |row| {
        let (before, now) =
            (read::named_tests(&lines(row.get("before"))), read::named_tests(&lines(row.get("now"))));
        row.expect("why not", red_base::unproven(&before, &now, row.get("command")));
    });
    page.check("How many ran", |row| {
        let counts = read::test_counts(&lines(row.get("output")));
        let says =
            |of: fn(TestCounts) -> u32| counts.map(|counts| of(counts).to_string()).unwrap_or_default();
        row.expect("passed", says(|counts| counts.passed));
        row.expect("failed", says(|counts| counts.failed));
        row.expect("skipped", says(|counts| counts.skipped));
    });
    page.close();
}

#[test]
fn u_13_what_init_proposes() {
    let mut page = Page::open("init");
    page.check("What `archeflow init` proposes", |row| {
        let files: BTreeMap<&str, &str> =
            row.get("files").split(", ").map(|file| file.split_once(": ").unwrap_or((file, ""))).collect();
        let read = |name: &str| match (name, files.get(name).copied().unwrap_or_default()) {
            ("package.json", "test script") => r#"{"scripts":{"test":"node --test"}}"#.to_owned(),
            ("package.json", "test script dependencies") => {
                r#"{"scripts":{"test":"mocha"},"devDependencies":{"mocha":"^11"}}"#.to_owned()
            }
            ("package.json", "no test specified") => {
                r#"{"scripts":{"test":"echo \"Error: no test specified\" && exit 1"}}"#.to_owned()
            }
            ("package.json", "other scripts") => r#"{"scripts":{"build":"tsc"}}"#.to_owned(),
            ("package.json", "no scripts") => "{}".to_owned(),
            ("package.json", "broken") => "{".to_owned(),
            ("Makefile", target) => format!("{target}:\n\ttrue\n"),
            (_, _) => String::new(),
        };
        let found = proposals::propose(&ProjectFiles { has: &|name| files.contains_key(name), read: &read });
        let shown =
            |command: Option<ProposedCommand>| command.map_or_else(String::new, |proposed| proposed.command);
        row.expect("setup", shown(found.setup));
        row.expect("tests", shown(found.tests));
        row.expect("cache", found.cache.join(", "));
    });
    page.close();
}

#[test]
fn r_05_what_is_kept_between_tests() {
    let mut page = Page::open("caches");
    page.check("Folders", |row| {
        let files: Vec<&str> = row.get("files").split(", ").collect();
        let found = caches::tool_of(row.get("folder"), &files);
        row.expect("result", found.map_or_else(str::to_owned, |CacheTool::Cargo| "cargo".to_owned()));
    });
    page.check("Configuration of Cargo", |row| {
        let found = caches::check_config(row.get("configuration"));
        row.expect("result", found.map_or_else(str::to_owned, |()| "kept".to_owned()));
    });
    page.check("Files that decide", |row| {
        row.expect("decides", if caches::decides(row.get("file")) { "yes" } else { "no" }.to_owned());
    });
    let entry = |package: &str| {
        let name = package.trim_end_matches('+');
        let source = if name == package { "" } else { "source = \"registry+https://example.org\"\n" };
        format!("[[package]]\nname = \"{name}\"\nversion = \"1.0.0\"\n{source}\n")
    };
    page.check("Packages that are kept", |row| {
        let lock: String = row.get("packages").split(", ").map(entry).collect();
        let pinned: Vec<String> = caches::pinned_packages(&lock).into_iter().collect();
        row.expect("pinned", pinned.join(", "));
    });
    page.check("What Cargo built", |row| {
        let (package, hash) = caches::unit_of(row.get("name")).unwrap_or_default();
        row.expect("package", package.to_owned());
        row.expect("hash", hash.to_owned());
    });
    // What was tried by hand.
    page.table("What was tried");
    page.close();
}

#[test]
fn d_05_trials() {
    let mut page = Page::open("trials");
    let ran = |text: &str| match text {
        "" => None,
        "timeout" => Some(Ran { why: "stopped after 120 s".to_owned(), ..Ran::default() }),
        code => Some(Ran { exit: Some(code.parse().unwrap()), ..Ran::default() }),
    };
    page.check("Table", |row| {
        let (change, base) = (ran(row.get("on change")).unwrap(), ran(row.get("on base")));
        let done = EvidenceDone { start_seq: 1, change, base };
        let (trial, said) = trial::judge(row.get("regression") == "yes", &done);
        row.expect("trial", trial.name());
        assert!(!said.is_empty());
    });
    page.close();
}

fn tests_ran(words: &str) -> TestsRan {
    let changed = words.split_once("changes ").map(|(_, path)| path.to_owned());
    TestsRan {
        counts: read::test_counts(words),
        changed: changed.into_iter().collect(),
        ..TestsRan::default()
    }
}

#[test]
fn d_07_raised() {
    let mut page = Page::open("raised");
    page.check("Signs", |row| {
        let (old, new) = (row.get("old text").replace('⏎', "\n"), row.get("new text").replace('⏎', "\n"));
        let line = expanded(row.get("added line")).replace("<RLO>", "\u{202e}");
        let (old_mode, new_mode) = modes(row);
        let size = row.get("binary bytes");
        let file = signs::ScannedFile {
            path: row.get("path"),
            status: row.maybe("status", file_status),
            old_mode,
            new_mode,
            binary: !size.is_empty(),
            new_size: size.parse().unwrap_or(0),
            removed: 0,
            old: signs::strength_in(row.get("path"), &old),
            new: signs::strength_in(row.get("path"), &new),
            credential: signs::credential(&line).map(|kind| (7, kind)),
            content: signs::BinaryContent::of(new.replace('␀', "\0").as_bytes()),
            turned: signs::turns_text(&line).then_some(7),
        };
        let seen = signs::look(&[file], Raised::default().binary_bytes).seen;
        let names: Vec<&str> = seen.iter().map(|counted| counted.sign.name()).collect();
        row.expect("sign", if names.is_empty() { "none".to_owned() } else { names.join(", ") });
    });
    page.check("What counts as a test", |row| {
        for (column, counted) in [("cases", 0_usize), ("assertions", 1), ("do not run", 2)] {
            for mark in row.get(column).split('`').skip(1).step_by(2) {
                let line = signs::strength_in("tests/a", &mark.replace('…', "x"));
                let seen = [line.cases, line.asserts, line.skips];
                assert!(seen[counted] > 0, "'{mark}' does not count under '{column}': {line:?}");
            }
        }
    });
    page.check("What ran", |row| {
        let sign = ran::weaker(&tests_ran(row.get("base")), &tests_ran(row.get("change")));
        row.expect("sign", sign.map_or("none".to_owned(), |counted| counted.sign.name().to_owned()));
    });
    page.check("The tests from before", |row| {
        let old = (!row.get("old tests").is_empty()).then(|| OldTests {
            result: world::tested(Some(row.get("old tests"))),
            counts: read::test_counts(row.get("their output")),
            artifact: "act-old-tests-7.log".to_owned(),
        });
        let counted = ran::old_fail(&TestsRan { old, ..tests_ran(row.get("change")) });
        if let Some(counted) = &counted {
            assert!(
                counted.detail.ends_with("act-old-tests-*.log)")
                    || counted.detail.ends_with(": see act-old-tests-*.log")
            );
        }
        row.expect("sign", counted.map_or("none".to_owned(), |counted| counted.sign.name().to_owned()));
    });
    page.check("Moving tests", |row| {
        let text = |column: &str| row.get(column).replace('⏎', "\n");
        let (from_old, from_new, to_new) =
            (text("first, before"), text("first, after"), text("second, after"));
        let status = if from_new.is_empty() { FileStatus::Deleted } else { FileStatus::Modified };
        let first = signs::ScannedFile {
            path: "tests/first.rs",
            status: Some(status),
            old: signs::strength(&from_old),
            new: signs::strength(&from_new),
            ..signs::ScannedFile::default()
        };
        let second = signs::ScannedFile {
            path: "tests/second.rs",
            status: Some(FileStatus::Added),
            new: signs::strength(&to_new),
            ..signs::ScannedFile::default()
        };
        let seen = signs::look(&[first, second], Raised::default().binary_bytes).seen;
        let names: Vec<&str> = seen.iter().map(|counted| counted.sign.name()).collect();
        row.expect("sign", if names.is_empty() { "none".to_owned() } else { names.join(", ") });
    });
    page.check("What judges the change itself", |row| {
        let text = |column: &str| row.get(column).replace('⏎', "\n");
        let file = signs::ScannedFile {
            path: row.get("path"),
            status: row.maybe("status", file_status),
            removed: row.get("removed lines").parse().unwrap_or(0),
            binary: row.get("removed lines") == "binary",
            old: signs::strength_in(row.get("path"), &text("old text")),
            new: signs::strength_in(row.get("path"), &text("new text")),
            ..signs::ScannedFile::default()
        };
        let command = row.get("test command");
        let read_in = text("read in").replace('⇥', "\t");
        let mut judges = signs::Judges::of(command);
        for path in judges.run.clone() {
            judges.take_in(&path, &read_in, command);
        }
        let seen = signs::own_judges(&[file], &judges);
        let names: Vec<&str> = seen.iter().map(|counted| counted.sign.name()).collect();
        row.expect("sign", if names.is_empty() { "none".to_owned() } else { names.join(", ") });
    });
    page.check("What a sign means", |row| {
        let sign = row.word("sign", sign);
        let (category, fix) = raised::meaning(sign);
        row.expect("category", category);
        row.expect("fix", fix);
        let counted = Counted { sign, path: "a".to_owned(), line: 0, detail: "seen".to_owned() };
        let finding = raised::finding(&counted, &Raised::default());
        row.expect("severity", finding.severity.name());
        assert_eq!((finding.source.as_str(), evidence::weigh(&finding)), (PROGRAM, None));
        let lower = Raised { severity: BTreeMap::from([(sign, Severity::Warning)]), ..Raised::default() };
        assert_eq!(raised::finding(&counted, &lower).severity, Severity::Warning);
    });
    let told: BTreeSet<String> = page.table("What a sign means").column("sign").into_iter().collect();
    assert_eq!(told, Sign::ALL.iter().map(|sign| sign.name().to_owned()).collect());
    page.check("No model can waive it", scenario);
    page.close();
}

/// `{n}` stands for n letters, so that the page holds nothing that looks like a credential itself.
fn expanded(text: &str) -> String {
    let mut written = String::new();
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once('{') {
        let number = behind.split_once('}').and_then(|(n, after)| Some((n.parse::<usize>().ok()?, after)));
        let Some((n, after)) = number else { break };
        written.push_str(before);
        written.push_str(&"x".repeat(n));
        rest = after;
    }
    written + rest
}

/// `<old> to <new>` in git's octal, or one for both.
fn modes(row: &Row) -> (u32, u32) {
    let octal =
        |text: &str| u32::from_str_radix(text, 8).unwrap_or_else(|_| row.fail("the mode is not octal"));
    match row.get("mode").split_once(" to ") {
        Some((old, new)) => (octal(old), octal(new)),
        None if row.get("mode").is_empty() => (0o100_644, 0o100_644),
        None => (octal(row.get("mode")), octal(row.get("mode"))),
    }
}

#[test]
fn af_160_m_07_events() {
    const PROMISED: [&str; 16] = [
        "run.start",
        "agent.start",
        "agent.complete",
        "agent.failed",
        "agent.timeout",
        "phase.transition",
        "decision",
        "decision.point",
        "review.verdict",
        "evidence.downgrade",
        "fix.applied",
        "cycle.boundary",
        "wiggum.break",
        "run.complete",
        "run.merged",
        "finding.raised",
    ];
    let mut page = Page::open("events");
    page.check("Types", |row| {
        let known = Event::TYPES.iter().find(|(name, _)| *name == row.get("type"));
        let Some((_, verb)) = known else { row.fail("there is no such type") };
        let verb = match verb {
            Verb::Decided => "decided",
            Verb::Ordered => "ordered",
            Verb::Reported => "reported",
        };
        row.expect("verb", verb);
        assert!(row.get("meaning").len() > 10, "the type has no meaning");
    });
    page.check("Decisions and alternatives", |row| {
        let point = DecisionPoint {
            archetype: PROGRAM.to_owned(),
            rule: row.get("rule").to_owned(),
            input: "facts".to_owned(),
            decision: row.get("decision").to_owned(),
            confidence: Share::ONE,
        };
        let record = alternatives::of(&point, row.word("workflow", Workflow::parse));
        row.expect("what", record.as_ref().map_or("", |record| record.what.as_str()));
        let others = record.as_ref().map(|record| record.alternatives.join("; "));
        row.expect("alternatives", others.unwrap_or_default());
        if let Some(record) = record {
            assert_eq!((&record.rule, &record.chosen), (&point.rule, &point.decision));
            assert!(record.rationale.starts_with("facts; "), "{}", record.rationale);
        }
    });
    let told = page.table("Types").column("type");
    let names: BTreeSet<&str> = told.iter().map(String::as_str).collect();
    assert_eq!(names.len(), told.len(), "a type is told twice");
    assert_eq!(names, Event::TYPES.iter().map(|(name, _)| *name).collect());
    for name in PROMISED {
        assert!(names.contains(name), "{name} is promised to scripts");
    }
    page.close();
}

#[test]
fn af_040_af_041_d_02_status() {
    let mut page = Page::open("status");
    for heading in ["What happens next", "Nobody is there"] {
        page.check(heading, |row| {
            let mut world = World::script(row.get("run"), "-", row.get("world"));
            let (archetype, status) = (row.get("agent"), row.word("status", status));
            world.statuses.insert(archetype.to_owned(), status);
            let answered = |entry: &Entry| {
                entry.event.name() == "agent.complete" && entry.agent.as_deref() == Some(archetype)
            };
            let log = world.play_until(|log| log.iter().any(answered)).log;
            let after = log.iter().position(answered).map_or(&[][..], |at| &log[at..]);
            let rule = after.iter().find_map(|entry| match &entry.event {
                Event::Decision(Decision::DecisionPoint(point))
                    if ["AF-040", "D-02"].contains(&point.rule.as_str()) =>
                {
                    Some(point.rule.as_str())
                }
                _ => None,
            });
            row.expect("noted", rule.unwrap_or_default());
            row.expect("next", next_steps(after));
        });
    }
    page.close();
}

/// What is ordered next, or how the run ends.
fn next_steps(entries: &[Entry]) -> String {
    let step = |entry: &Entry| match &entry.event {
        Event::Order(Order::AgentStart(start)) => Some(start.archetype.clone()),
        Event::Order(Order::QuestionAsked(_)) => Some("question".to_owned()),
        Event::Order(Order::MergeStart(_)) => Some("merge".to_owned()),
        Event::Decision(Decision::RunComplete(end)) => {
            Some(format!("{} {}", end.status.name(), end.reason.name()))
        }
        _ => None,
    };
    entries.iter().filter_map(step).collect::<Vec<_>>().join(", ")
}

#[test]
fn af_109_cl_09_cl_12_af_190_af_191_stops() {
    let mut page = Page::open("stops");
    let headings = [
        "Cycles",
        "Approval",
        "Landing",
        "Agents that fail",
        "Pipeline",
        "Teams without a plan or a review",
        "Switched off",
    ];
    let mut outcomes = Page::open("outcomes");
    let told: BTreeSet<(String, String)> = outcomes
        .table("Exit codes")
        .rows
        .iter()
        .map(|row| (row.get("status").to_owned(), row.get("reason").to_owned()))
        .collect();
    for heading in headings {
        page.check(heading, |row| {
            scenario(row);
            let pair = (row.get("status").to_owned(), row.get("reason").to_owned());
            assert!(told.contains(&pair), "docs/rules/outcomes.md does not tell of {pair:?}");
        });
    }
    page.check("Accounts", |row| {
        scenario(row);
        let played = World::script(row.get("run"), row.get("reviews"), row.get("world")).play();
        row.expect("sent", played.ways());
        row.expect("reopens", played.reopens());
    });
    page.check("What the Maker is told again", |row| {
        let played = World::script(row.get("run"), row.get("reviews"), row.get("world")).play();
        let note = played.last_note(row.get("attempt"));
        if !note.contains(row.get("is told of")) {
            row.fail(&format!("it is told '{note}'"));
        }
    });
    page.close();
}

#[test]
fn j_04_j_07_objections() {
    let mut page = Page::open("objections");
    page.check("Ends", |row| {
        scenario(row);
        let played = World::script(row.get("run"), row.get("reviews"), row.get("world")).play();
        let complete = played.run.complete.as_ref();
        row.expect("open", complete.map_or(0, |end| end.unresolved.len()));
        let end = played.run.cycle().and_then(|cycle| cycle.boundary.as_ref());
        row.expect("passed over", end.and_then(|end| passed_over(&end.passed_over)).unwrap_or_default());
    });
    page.check("Who looks again", scenario);
    page.close();
}

/// Plays a row and compares whatever it says about the end.
fn scenario(row: &Row) {
    let world = World::script(row.get("run"), row.get("reviews"), row.get("world"));
    let played = world.play();
    let told = |column: &str| row.has(column);
    let wrong = |played: &Played| {
        let end = played.run.outcome.as_ref().map_or("", |outcome| outcome.detail.as_str());
        format!("{} {} ({end}), sent: {}", played.status(), played.reason(), played.agents())
    };
    if row.get("status") != played.status() || row.get("reason") != played.reason() {
        row.fail(&format!("the run ends {}", wrong(&played)));
    }
    row.expect("exit", played.exit());
    if told("cycles") {
        row.expect("cycles", played.run.number());
    }
    if told("break") {
        row.expect("break", played.broke());
    }
    if told("agents") {
        row.expect("agents", played.agents());
    }
    if told("actions") {
        row.expect("actions", played.actions());
    }
    if told("checkpoints") {
        row.expect("checkpoints", played.count("policy.checkpoint"));
    }
    if told("fixes") {
        row.expect("fixes", played.run.fixes_total);
    }
}

#[test]
fn af_138_af_147_af_150_af_156_cl_03_cl_26_policy() {
    let mut page = Page::open("policy");
    for heading in
        ["The ladder", "Shadows of the system", "Checkpoints", "Findings that rise", "The gravest break wins"]
    {
        page.check(heading, scenario);
    }
    page.check("Too much in one brief", |row| {
        let (all, critical): (u32, u32) = (row.number("findings"), row.number("critical"));
        let open: Vec<Tracked> = (0..all).map(|n| tracked_theme(n, n < critical)).collect();
        let open: Vec<&Tracked> = open.iter().collect();
        let (single, themes) = pollution::themes(&open, &Boundaries::default());
        row.expect("told one by one", single.len());
        row.expect("themes", themes.len());
    });
    page.check("How full is too full", |row| {
        let (characters, window): (u32, u32) = (row.number("characters"), row.number("window"));
        let full = pollution::fills(characters as usize, u64::from(window), &Boundaries::default());
        row.expect("too full", if full { "yes" } else { "no" });
    });
    page.close();
}

/// Findings of seven categories in turn.
fn tracked_theme(n: u32, critical: bool) -> Tracked {
    let category = CATEGORIES.get(n as usize % 7).copied().unwrap_or_default().to_owned();
    Tracked {
        id: format!("src/{n}.rs:{category}"),
        file: format!("src/{n}.rs"),
        line: n,
        category,
        severity: if critical { Severity::Critical } else { Severity::Warning },
        source: vec!["guardian".to_owned()],
        description: format!("finding {n}"),
        fix: String::new(),
        routes_to: Destination::Maker,
        cycles_open: 1,
        regression_of: None,
        anchor: String::new(),
        also: Vec::new(),
    }
}

#[test]
fn every_rule_page_is_executed() {
    /// Executed by tests of their own.
    const ELSEWHERE: &[&str] = &[
        "answers",
        "budget",
        "domains",
        "endings",
        "filekinds",
        "leaks",
        "lenses",
        "loop",
        "memory",
        "replay",
        "scoring",
        "shadows",
        "signals",
    ];
    let own = include_str!("tables.rs");
    let files = std::fs::read_dir(folder()).unwrap();
    let mut pages = 0;
    for file in files {
        let path = file.unwrap().path();
        let Some(name) = path.file_name().and_then(|name| name.to_str()?.strip_suffix(".md")) else {
            continue;
        };
        let here = own.contains(&format!("Page::open(\"{name}\")"));
        assert!(here || ELSEWHERE.contains(&name), "no test executes docs/rules/{name}.md");
        pages += 1;
    }
    assert!(pages > 10, "the pages are gone");
}

fn plain_finding(source: &str, category: &str, flaw: Option<Flaw>) -> Finding {
    Finding {
        source: source.to_owned(),
        location: String::new(),
        file: String::new(),
        line: 0,
        severity: Severity::Warning,
        category: category.to_owned(),
        flaw,
        description: String::new(),
        fix: String::new(),
        evidence: String::new(),
        citations: Vec::new(),
        anchor: String::new(),
        reproduction: None,
    }
}

/// `file:line`, `file`, or `nowhere`.
fn place_of(place: &str) -> (String, u32) {
    match place.split_once(':') {
        Some((file, line)) => {
            (file.to_owned(), line.parse().unwrap_or_else(|_| panic!("'{place}' is no place")))
        }
        None if place == "nowhere" => (String::new(), 0),
        None => (place.to_owned(), 0),
    }
}

fn list(text: &str) -> impl Iterator<Item = &str> {
    text.split(';').map(str::trim).filter(|one| !one.is_empty())
}

fn yes(it_is: bool) -> &'static str {
    if it_is { "yes" } else { "no" }
}

fn decimal(millionths: u32) -> String {
    let written = format!("{}.{:06}", millionths / 1_000_000, millionths % 1_000_000);
    let short = written.trim_end_matches('0');
    if short.ends_with('.') { format!("{short}0") } else { short.to_owned() }
}

fn severity(word: &str) -> Option<Severity> {
    [Severity::Info, Severity::Warning, Severity::Critical]
        .into_iter()
        .find(|severity| severity.name() == word)
}

fn flaw(word: &str) -> Option<Flaw> {
    match word {
        "design flaw" => Some(Flaw::DesignFlaw),
        "test gap" => Some(Flaw::TestGap),
        _ => None,
    }
}

fn role(word: &str) -> Option<Role> {
    match word {
        "explorer" => Some(Role::Explorer),
        "creator" => Some(Role::Creator),
        "maker" => Some(Role::Maker),
        "gatekeeper" => Some(Role::Gatekeeper),
        "reviewer" => Some(Role::Reviewer),
        _ => None,
    }
}

fn strategy(word: &str) -> Option<Strategy> {
    [Strategy::Pdca, Strategy::Pipeline].into_iter().find(|strategy| strategy.name() == word)
}

/// By the paths in it.
fn change_of(files: &str) -> Change {
    Change {
        commit: String::new(),
        tree: String::new(),
        kept_as: String::new(),
        files: files.split_whitespace().map(changed_file).collect(),
        files_left_out: 0,
        test_files: 0,
        commits: 1,
        uncommitted: false,
        signs: Signs::default(),
        notes: Vec::new(),
    }
}

fn changed_file(path: &str) -> ChangedFile {
    ChangedFile {
        path: path.to_owned(),
        status: FileStatus::Modified,
        added: 1,
        deleted: 0,
        content: String::new(),
    }
}

fn domain(word: &str) -> Option<Domain> {
    [Domain::Code, Domain::Writing, Domain::Research].into_iter().find(|domain| domain.name() == word)
}

fn status(word: &str) -> Option<Status> {
    let all =
        [Status::Unverified, Status::Done, Status::DoneWithConcerns, Status::NeedsContext, Status::Blocked];
    all.into_iter().find(|status| status.name() == word)
}

fn run_status(word: &str) -> Option<RunStatus> {
    let all = [
        RunStatus::Merged,
        RunStatus::AwaitingMerge,
        RunStatus::AwaitingAnswer,
        RunStatus::Stopped,
        RunStatus::Failed,
        RunStatus::WiggumBreak,
        RunStatus::DryRun,
        RunStatus::Reviewed,
    ];
    all.into_iter().find(|status| status.name() == word)
}

fn reason(word: &str) -> Option<Reason> {
    Reason::ALL.into_iter().find(|reason| reason.name() == word)
}

fn sign(word: &str) -> Option<Sign> {
    Sign::ALL.into_iter().find(|sign| sign.name() == word)
}

fn file_status(word: &str) -> Option<FileStatus> {
    match word {
        "added" => Some(FileStatus::Added),
        "modified" => Some(FileStatus::Modified),
        "deleted" => Some(FileStatus::Deleted),
        "type changed" => Some(FileStatus::TypeChanged),
        _ => None,
    }
}

#[test]
fn u_12_names_of_runs() {
    let mut page = Page::open("names");
    let known: Vec<NamedRun> = page
        .table("Resolving a name")
        .rows
        .iter()
        .map(|row| NamedRun {
            id: row.get("id").to_owned(),
            task: row.get("task").to_owned(),
            state: RunState::Closed,
            asks: false,
        })
        .collect();
    let ids = |found: Vec<usize>| -> String {
        found.into_iter().map(|at| known[at].id.clone()).collect::<Vec<_>>().join(", ")
    };
    page.check("Results", |row| {
        let (result, runs) = match run_names::resolve(row.get("name"), &known) {
            Meaning::One(at) => ("one", vec![at]),
            Meaning::Several(found) => ("several", found),
            Meaning::None(near) => ("none", near),
        };
        row.expect("result", result);
        row.expect("runs", ids(runs));
    });
    page.check("Short names", |row| {
        let at = known.iter().position(|run| run.id == row.get("id"));
        let Some(at) = at else { row.fail("there is no such run above") };
        row.expect("short name", run_names::short(at, &known));
    });
    page.check("No name", |row| {
        let read = |text: &str| {
            let name = text.trim_end_matches('?');
            let state = RunState::ALL.into_iter().find(|state| state.name() == name);
            let Some(state) = state else { row.fail(&format!("no run is '{text}'")) };
            NamedRun { id: text.to_owned(), task: String::new(), state, asks: name != text }
        };
        let listed = row.get("runs").split(',').map(str::trim).filter(|text| !text.is_empty());
        let mut runs: Vec<NamedRun> = listed.map(read).collect();
        runs.reverse();
        let usage = row.word("command", |word| RunUse::ALL.into_iter().find(|usage| usage.name() == word));
        let places = |found: Vec<usize>| {
            found.into_iter().map(|at| format!("@{}", runs.len() - at)).collect::<Vec<_>>().join(", ")
        };
        row.expect(
            "result",
            match run_names::default(usage, &runs) {
                Meaning::One(at) => places(vec![at]),
                Meaning::Several(found) => places(found),
                Meaning::None(_) => "none".to_owned(),
            },
        );
    });
    page.close();
}

#[test]
fn u_14_what_is_kept_on_disk() {
    let bounds = KeepSettings { cache_megabytes: 1_000, ..KeepSettings::default() };
    let mut page = Page::open("keeping");
    let fate = |row: &Row| row.word("run", |word| RunFate::ALL.into_iter().find(|fate| fate.name() == word));
    let days = |row: &Row, column: &str| u64::from(row.number(column));
    let count = |row: &Row| days(row, "newer");
    let is = |row: &Row, decided: KeepDecision| {
        let (result, why) = match decided {
            KeepDecision::Keep(why) => ("keep", why),
            KeepDecision::Remove(why) => ("remove", why),
        };
        row.expect("result", result);
        row.expect("why", why);
    };
    page.check("Working copies", |row| {
        let facts = keeping::CopyFacts {
            held: row.yes("held"),
            pending: row.yes("pending"),
            run: fate(row),
            idle_days: days(row, "idle"),
            asked: row.yes("asked"),
        };
        is(row, keeping::copy(facts, &bounds));
    });
    page.check("Runs", |row| {
        let facts = keeping::RunFacts {
            run: fate(row),
            age_days: days(row, "age"),
            newer: count(row),
            others_driven: row.yes("others driven"),
        };
        is(row, keeping::run(facts, &bounds));
    });
    page.check("Installed dependencies", |row| {
        let facts = keeping::SetupFacts {
            held: row.yes("held"),
            complete: row.yes("complete"),
            idle_days: days(row, "idle"),
            megabytes: days(row, "MB"),
            newer_megabytes: days(row, "MB newer"),
        };
        is(row, keeping::setup(facts, &bounds));
    });
    page.check("Changes under review", |row| {
        let facts = keeping::ReviewStoreFacts {
            complete: row.yes("complete"),
            run: fate(row),
            age_days: days(row, "age"),
            newer: count(row),
        };
        is(row, keeping::review_store(facts));
    });
    page.check("Homes of clients", |row| is(row, keeping::home(fate(row))));
    page.check("Temporary folders", |row| is(row, keeping::temporary(row.yes("maker is alive"))));
    page.check("Trees that passed their tests", |row| is(row, keeping::passed(days(row, "minutes"))));
    page.check("Records of runs", |row| is(row, keeping::record(days(row, "age"), &bounds)));
    page.check("Refs without a run", |row| {
        let facts = keeping::LooseRefFacts {
            age_days: days(row, "age"),
            run_is_older: row.yes("run is older"),
            others_driven: row.yes("others driven"),
        };
        is(row, keeping::loose_ref(facts, &bounds));
    });
    page.close();
}
