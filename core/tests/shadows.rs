//! The shadows: every threshold of `docs/rules/shadows.md` just below, at and just above it, and a corpus of answers,
//! healthy and sick, that says whether the detectors can be believed (AF-130..AF-146).

mod common {
    #[expect(dead_code, reason = "other pages use more of the reader than this one")]
    pub(crate) mod page;
}

use std::collections::BTreeSet;
use std::path::PathBuf;

use archeflow_core::event::Tracked;
use archeflow_core::model::{
    ARCHETYPES, Answer, AnswerBody, Change, ChangedFile, Citation, Destination, Disposition, Domain,
    FileStatus, Finding, Lesson, LessonKind, Overlap, Prior, Proposal, Review, Role, Severity, Shadow,
    ShadowSet, Shadows, Sighting, Signs, Status, SystemShadow, SystemShadows, Traits, Verdict, Workflow,
};
use archeflow_core::persona;
use archeflow_core::read;
use archeflow_core::rules::shadows::{self, Facts, check, correction};
use archeflow_core::rules::signs::is_test_path;
use archeflow_core::rules::system::{self, Situation};

use common::page::{Page, Row};

#[test]
fn af_130_to_af_137_cl_15_cl_16_cl_17_cl_20_cl_27_archetype_shadows() {
    let mut page = Page::open("shadows");
    page.check("Thresholds", |row| {
        let policy =
            serde_json::json!({"shadows": Shadows::default(), "system_shadows": SystemShadows::default()});
        let found = row.get("key").split('.').try_fold(&policy, |place, step| place.get(step));
        let Some(found) = found else { row.fail("no such key") };
        row.expect("default", found.as_u64().map_or_else(|| found.to_string(), |n| n.to_string()));
    });
    let mut named: BTreeSet<String> = BTreeSet::new();
    for &shadow in Shadow::ALL {
        let heading = title(shadow.name());
        named.extend(
            page.table(&heading).column("trigger").iter().map(|word| format!("{}.{word}", shadow.name())),
        );
        page.check(&heading, |row| {
            let (facts, policy) = (numbers(row), policy(row));
            let seen = check(shadow, &facts.facts(), &policy);
            row.expect("fires", fired(&seen, row.get("trigger")));
            let off = Shadows { enabled: false, ..policy };
            assert!(check(shadow, &facts.facts(), &off).is_empty(), "a switched-off detector fires");
            assert!(seen.iter().all(|sighting| !sighting.detail.is_empty()));
            seen.iter().for_each(|sighting| reads_well(&sighting.detail));
            let words = correction(shadow, &seen, false);
            assert!(seen.iter().all(|sighting| words.contains(&sighting.detail)), "{words}");
        });
    }
    for trigger in triggers(&serde_json::to_value(Shadows::default()).expect("it is there")) {
        assert!(named.contains(&trigger), "docs/rules/shadows.md has no row for {trigger}");
    }
    system_tables(&mut page);
    page.close();
}

/// `1 file`, never `1 files`.
fn reads_well(detail: &str) {
    let words: Vec<&str> = detail.split_whitespace().collect();
    let odd = words.windows(2).find(|pair| pair[0] == "1" && pair[1].ends_with('s') && pair[1] != "is");
    assert!(odd.is_none(), "{detail}");
}

/// The thresholds of a policy: those that can be off.
fn triggers(policy: &serde_json::Value) -> Vec<String> {
    let plain = ["ratio", "by_evidence", "any", "strict", "few_files", "reviewers", "escalates"];
    let mut found = Vec::new();
    for (shadow, thresholds) in policy.as_object().into_iter().flatten() {
        for (name, _) in thresholds.as_object().into_iter().flatten() {
            let shapes = name.ends_with("_floor") || name.ends_with("_percent") || name.ends_with("_lines");
            if !shapes && !name.ends_with("_seconds") && !plain.contains(&name.as_str()) {
                found.push(format!("{shadow}.{name}"));
            }
        }
    }
    found
}

fn title(name: &str) -> String {
    let words = name.replace('_', " ");
    words.chars().take(1).flat_map(char::to_uppercase).chain(words.chars().skip(1)).collect()
}

fn fired(seen: &[Sighting], trigger: &str) -> &'static str {
    if seen.iter().any(|sighting| sighting.trigger == trigger) { "yes" } else { "no" }
}

/// Facts that own what they are made of.
#[derive(Default)]
struct Own {
    answer: Answer,
    change: Option<Change>,
    proposal: Option<Proposal>,
    task: String,
    domain: Domain,
    reviews: u32,
}

impl Own {
    fn facts(&self) -> Facts<'_> {
        Facts {
            answer: &self.answer,
            change: self.change.as_ref(),
            proposal: self.proposal.as_ref(),
            items: self
                .proposal
                .as_ref()
                .map_or(0, |proposal| u32::try_from(proposal.files.len()).unwrap_or(u32::MAX)),
            task: &self.task,
            domain: self.domain,
            reviews_without_approval: self.reviews,
        }
    }
}

/// `name value, name value`: numbers of an answer, a change and a review, in the words of the page.
fn numbers(row: &Row) -> Own {
    let mut own = Own { task: "Give the discount from 100 euros on".to_owned(), ..Own::default() };
    let mut traits = serde_json::to_value(Traits::default()).expect("it is there");
    let mut review: Option<Review> = None;
    for part in row.get("answer").split(',').map(str::trim).filter(|part| !part.is_empty()) {
        let (name, value) = part.rsplit_once(' ').unwrap_or((part, ""));
        let n: u32 = value.parse().unwrap_or(0);
        match name {
            "task" => own.task = value.to_owned(),
            "words" => own.answer.words = n,
            "status" => own.answer.status = Status::NeedsContext,
            "writing" => own.domain = Domain::Writing,
            "reviews" => own.reviews = n,
            "approved" => review.get_or_insert_default().verdict = Some(Verdict::Approved),
            "changed" => own.change.get_or_insert_with(change).files.extend(files("src/c", n, "rs")),
            "documents" => own.change.get_or_insert_with(change).files.extend(files("docs/d", n, "md")),
            "deleted" => {
                let gone = files("src/g", n, "rs").map(|file| ChangedFile {
                    status: FileStatus::Deleted,
                    added: 0,
                    ..file
                });
                own.change.get_or_insert_with(change).files.extend(gone);
            }
            "test files" => own.change.get_or_insert_with(change).test_files = n,
            "commits" => own.change.get_or_insert_with(change).commits = n,
            "lines" => own.change.get_or_insert_with(change).files.push(file("src/big.rs", n)),
            "wiring" => own.change.get_or_insert_with(change).files.push(file("src/mod.rs", n)),
            "lock" => own.change.get_or_insert_with(change).files.push(file("Cargo.lock", n)),
            "planned" => own
                .proposal
                .get_or_insert_default()
                .files
                .extend(files("src/c", n, "rs").map(|file| file.path)),
            "critical" | "warning" | "info" | "genuine critical" | "genuine warning" | "untouched"
            | "untouched info" | "cited from outside" | "fixed" | "steps" | "shown critical" | "claim"
            | "verified warning" => {
                let review = review.get_or_insert_default();
                review.findings.extend((0..n).map(|_| finding(name)));
            }
            other => {
                let known: Traits =
                    serde_json::from_value(serde_json::json!({other: n})).unwrap_or_else(|_| {
                        serde_json::from_value(serde_json::json!({other: true})).expect("it is there")
                    });
                let set = serde_json::to_value(known).expect("it is there");
                let Some(set) = set.as_object().filter(|set| !set.is_empty() || n == 0) else {
                    row.fail(&format!("'{other}' is no number of an answer"))
                };
                for (name, value) in set {
                    traits.as_object_mut().expect("it is there").insert(name.clone(), value.clone());
                }
            }
        }
    }
    own.answer.traits = serde_json::from_value(traits).expect("it is there");
    if let Some(review) = review {
        own.answer.said = AnswerBody::Review(review);
    }
    own
}

fn change() -> Change {
    Change {
        commit: String::new(),
        tree: String::new(),
        kept_as: String::new(),
        files: Vec::new(),
        files_left_out: 0,
        test_files: 0,
        commits: 2,
        uncommitted: false,
        signs: Signs::default(),
        notes: Vec::new(),
    }
}

fn file(path: &str, added: u32) -> ChangedFile {
    ChangedFile {
        path: path.to_owned(),
        status: FileStatus::Modified,
        added,
        deleted: 0,
        content: String::new(),
    }
}

fn files(stem: &str, count: u32, ending: &str) -> impl Iterator<Item = ChangedFile> {
    (1..=count).map(move |n| file(&format!("{stem}{n}.{ending}"), 20))
}

/// A finding in `src/c1.rs`, which every change of the page holds, unless its kind says otherwise.
fn finding(kind: &str) -> Finding {
    let severity = match kind {
        "critical" | "genuine critical" | "shown critical" => Severity::Critical,
        "info" | "untouched info" => Severity::Info,
        _ => Severity::Warning,
    };
    let outside = matches!(kind, "untouched" | "untouched info" | "cited from outside");
    let path = if outside { "src/elsewhere.rs" } else { "src/c1.rs" };
    let mut citations =
        vec![Citation { file: path.to_owned(), line: 7, quote: None, holds: None, related: None }];
    if kind == "cited from outside" {
        citations.push(Citation {
            file: "src/c1.rs".to_owned(),
            line: 3,
            quote: None,
            holds: None,
            related: None,
        });
    }
    if kind == "claim" {
        citations.clear();
    }
    if kind == "verified warning" {
        citations.iter_mut().for_each(|citation| citation.holds = Some(true));
    }
    let genuine = kind.starts_with("genuine");
    let text = |wanted: bool, text: &str| if wanted { text.to_owned() } else { String::new() };
    Finding {
        source: String::new(),
        location: format!("{path}:7"),
        file: path.to_owned(),
        line: 7,
        severity,
        category: "reliability".to_owned(),
        flaw: None,
        description: "The loop is never left".to_owned(),
        fix: text(genuine || kind == "fixed", "Leave it"),
        evidence: text(
            genuine || matches!(kind, "steps" | "shown critical"),
            "1. Send one request. 2. It hangs at `loop`.",
        ),
        citations,
        anchor: String::new(),
        reproduction: None,
    }
}

/// `name value` pairs laid over the defaults of the policy; `off` switches a threshold off.
fn policy(row: &Row) -> Shadows {
    let mut policy = serde_json::to_value(Shadows::default()).expect("it is there");
    set(row, &mut policy);
    serde_json::from_value(policy).expect("it is there")
}

fn set(row: &Row, policy: &mut serde_json::Value) {
    for part in row.get("policy").split(',').map(str::trim).filter(|part| !part.is_empty()) {
        let Some((name, value)) = part.split_once(' ') else { row.fail("a policy is a name and a value") };
        let mut place = &mut *policy;
        for step in name.split('.') {
            place =
                place.get_mut(step).unwrap_or_else(|| row.fail(&format!("no threshold is called '{name}'")));
        }
        *place = match value {
            "off" => serde_json::Value::Null,
            "true" => true.into(),
            number => number.parse::<u32>().unwrap_or_else(|_| row.fail("not a number")).into(),
        };
    }
}

// System shadows.

fn system_tables(page: &mut Page) {
    let mut named: BTreeSet<String> = BTreeSet::new();
    for shadow in SystemShadow::ALL {
        let heading = title(shadow.name());
        named.extend(
            page.table(&heading).column("trigger").iter().map(|word| format!("{}.{word}", shadow.name())),
        );
        page.check(&heading, |row| system_row(shadow, row));
    }
    let policy = serde_json::to_value(SystemShadows::default()).expect("it is there");
    for trigger in triggers(&policy) {
        assert!(named.contains(&trigger), "docs/rules/shadows.md has no row for {trigger}");
    }
}

fn system_row(shadow: SystemShadow, row: &Row) {
    let mut policy = serde_json::to_value(SystemShadows::default()).expect("it is there");
    set(row, &mut policy);
    let policy: SystemShadows = serde_json::from_value(policy).expect("it is there");
    let world = World::read(row);
    let seen: Vec<Sighting> = world
        .see(&policy)
        .into_iter()
        .filter(|(seen, _)| *seen == shadow)
        .map(|(_, sighting)| sighting)
        .collect();
    row.expect("fires", fired(&seen, row.get("trigger")));
    for sighting in &seen {
        assert!(system::remedy(shadow, sighting).starts_with(&sighting.detail));
    }
}

struct World {
    reviews: Vec<(String, Review, Verdict)>,
    change: Option<Change>,
    proposal: Option<Proposal>,
    numbers: [u64; 5],
    workflow: Workflow,
    open: Vec<Tracked>,
    prior: Vec<Prior>,
    lessons: Vec<Lesson>,
}

impl World {
    /// `reviewer: file/category file/category` for reviews, and `name value` for the rest, divided by `;`.
    fn read(row: &Row) -> World {
        let mut world = World {
            reviews: Vec::new(),
            change: None,
            proposal: None,
            numbers: [600_000, 60_000, 60_000, 1, 0],
            workflow: Workflow::Standard,
            open: Vec::new(),
            prior: Vec::new(),
            lessons: Vec::new(),
        };
        for part in row.get("situation").split(';').map(str::trim).filter(|part| !part.is_empty()) {
            world.take(row, part);
        }
        world
    }

    fn take(&mut self, row: &Row, part: &str) {
        let (name, value) =
            part.split_once(':').map_or((part, ""), |(name, value)| (name.trim(), value.trim()));
        let n = value.parse::<u64>().unwrap_or(0);
        let count = u32::try_from(n).expect("it is there");
        match name {
            "guardian" | "skeptic" | "sage" | "trickster" => self.review(name, value),
            "changed" => self.change.get_or_insert_with(change).files.extend(files("src/c", count, "rs")),
            "tests" => self.change.get_or_insert_with(change).files.extend(files("tests/t", count, "rs")),
            "planned" => {
                let planned = files("src/c", count, "rs").map(|file| file.path);
                self.proposal.get_or_insert_default().files.extend(planned);
            }
            "folder" => self.proposal.get_or_insert_default().files.push(value.to_owned()),
            "check ms" => self.numbers[0] = n,
            "plan ms" => self.numbers[1] = n,
            "do ms" => self.numbers[2] = n,
            "explorer starts" => self.numbers[3] = n,
            "deferred" => self.numbers[4] = n,
            "workflow" => self.workflow = Workflow::parse(value).expect("it is there"),
            "open of" => {
                let open = tracked(value, Severity::Warning);
                self.open.push(Tracked { source: vec![value.to_owned()], ..open });
            }
            "open critical" => self.open.push(tracked(value, Severity::Critical)),
            "open warning" => self.open.push(tracked(value, Severity::Warning)),
            "fixed" => self.prior.push(Prior { disposition: Disposition::Fixed, text: value.to_owned() }),
            "deferred by maker" => {
                self.prior.push(Prior { disposition: Disposition::Deferred, text: value.to_owned() });
            }
            "lesson" => self.lessons.push(lesson(value)),
            "finding" => {
                let described = Finding { description: value.to_owned(), ..finding("warning") };
                let review = Review { findings: vec![described], ..Review::default() };
                self.reviews.push(("guardian".to_owned(), review, Verdict::Rejected));
            }
            other => row.fail(&format!("no situation has a '{other}'")),
        }
    }

    fn review(&mut self, name: &str, findings: &str) {
        let read = |word: &str| {
            let (place, category) = word.split_once('/').unwrap_or((word, "quality"));
            let path = format!("src/{place}.rs");
            Finding {
                file: path.clone(),
                location: path,
                category: category.to_owned(),
                // Findings of one category say the same here, those of different ones have no word in common.
                description: format!("kind{category}"),
                ..finding("warning")
            }
        };
        let findings: Vec<Finding> = findings.split_whitespace().map(read).collect();
        let verdict = if findings.is_empty() { Verdict::Approved } else { Verdict::Rejected };
        let review = Review { verdict: Some(verdict), findings, ..Review::default() };
        self.reviews.push((name.to_owned(), review, verdict));
    }

    fn see(&self, policy: &SystemShadows) -> Vec<(SystemShadow, Sighting)> {
        let [check_ms, plan_ms, do_ms, starts, deferred] = self.numbers;
        let findings: Vec<Finding> =
            self.reviews.iter().flat_map(|(_, review, _)| review.findings.clone()).collect();
        let now = Situation {
            workflow: self.workflow,
            reviews: self
                .reviews
                .iter()
                .map(|(name, review, verdict)| (name.as_str(), review, *verdict))
                .collect(),
            change: self.change.as_ref(),
            proposal: self.proposal.as_ref(),
            check_ms,
            plan_ms,
            do_ms,
            explorer_starts: u32::try_from(starts).expect("it is there"),
            open_before: &self.open,
            maker_prior: &self.prior,
            lessons: &self.lessons,
            grave: findings.iter().filter(|finding| finding.severity > Severity::Info).collect(),
            deferred_warnings: u32::try_from(deferred).expect("it is there"),
            overlap: Overlap::Weighed,
        };
        let mut seen = system::after_do(&now, policy);
        seen.extend(system::after_check(&now, policy));
        seen.extend(system::at_end(&now, policy));
        seen
    }
}

fn tracked(description: &str, severity: Severity) -> Tracked {
    let (to, description) = match description.strip_prefix("(creator) ") {
        Some(rest) => (Destination::Creator, rest),
        None => (Destination::Maker, description),
    };
    Tracked {
        id: format!("src/c1.rs:quality:{}", description.len()),
        file: "src/c1.rs".to_owned(),
        line: 7,
        category: "quality".to_owned(),
        severity,
        source: vec!["sage".to_owned()],
        description: description.to_owned(),
        fix: String::new(),
        routes_to: to,
        cycles_open: 1,
        regression_of: None,
        anchor: String::new(),
        also: Vec::new(),
    }
}

fn lesson(description: &str) -> Lesson {
    Lesson {
        id: "m-012".to_owned(),
        ts: String::new(),
        run_id: "manual".to_owned(),
        kind: LessonKind::Pattern,
        source: "guardian".to_owned(),
        description: description.to_owned(),
        frequency: 2,
        severity: "WARNING".to_owned(),
        domain: "code".to_owned(),
        tags: Vec::new(),
        archetype: None,
        last_seen_run: String::new(),
        runs_since_last_seen: 0,
        ineffective: 0,
    }
}

/// An archetype may have several shadows: the first that shows is the one that is corrected (AF-138).
#[test]
fn an_answer_is_checked_for_every_shadow_of_its_archetype() {
    let both = ShadowSet(vec![Shadow::Paranoid, Shadow::RabbitHole]);
    let mut own = Own::default();
    assert_eq!(shadows::first(&both, &own.facts(), &Shadows::default()), None);
    own.answer.words = 5_000;
    let (shadow, seen) = shadows::first(&both, &own.facts(), &Shadows::default()).expect("words without end");
    assert_eq!((shadow, seen[0].trigger.as_str()), (Shadow::RabbitHole, "words"));
    let one = ShadowSet::from(Shadow::Paranoid);
    assert_eq!(shadows::first(&one, &own.facts(), &Shadows::default()), None);
}

#[test]
fn one_shadow_is_a_name_on_the_wire_and_several_are_a_list() {
    for (set, wire) in [
        (ShadowSet::from(Shadow::Paranoid), "\"paranoid\""),
        (ShadowSet(vec![Shadow::Paranoid, Shadow::Rogue]), "[\"paranoid\",\"rogue\"]"),
    ] {
        assert_eq!(serde_json::to_string(&set).expect("plain data"), wire);
        assert_eq!(serde_json::from_str::<ShadowSet>(wire).expect("what was written"), set);
    }
}

/// A header names a shadow; the other shadows of the same archetype belong to it too.
#[test]
fn an_archetype_has_all_shadows_of_its_family() {
    for (_, text) in ARCHETYPES {
        let archetype = persona::parse(text).expect("a built-in archetype").archetype;
        let ShadowSet(set) = ShadowSet::of(&archetype);
        let named = Shadow::parse(&archetype.shadow).expect("a built-in archetype names its shadow");
        assert!(set.contains(&named), "{}: {set:?}", archetype.name);
        for shadow in Shadow::ALL {
            let its = shadow.about().archetype == archetype.name;
            assert_eq!(set.contains(shadow), its, "{}: {}", archetype.name, shadow.name());
        }
    }
    for shadow in Shadow::ALL {
        let archetype = shadow.about().archetype;
        assert!(ARCHETYPES.iter().any(|(name, _)| *name == archetype), "{} is of {archetype}", shadow.name());
    }
}

// The corpus.

/// The archetype, its role, and its shadow.
const CORPUS: [(&str, Role, Shadow); 7] = [
    ("explorer", Role::Explorer, Shadow::RabbitHole),
    ("creator", Role::Creator, Shadow::OverArchitect),
    ("maker", Role::Maker, Shadow::Rogue),
    ("guardian", Role::Gatekeeper, Shadow::Paranoid),
    ("skeptic", Role::Reviewer, Shadow::Paralytic),
    ("trickster", Role::Reviewer, Shadow::FalseAlarm),
    ("sage", Role::Reviewer, Shadow::Bureaucrat),
];

const AT_LEAST: usize = 30;

#[test]
fn af_137_healthy_answers_show_no_shadow() {
    let mut wrong = Vec::new();
    for (archetype, role, shadow) in CORPUS {
        let samples = samples(archetype, "healthy");
        if samples.len() < AT_LEAST {
            wrong.push(format!("{archetype}: only {} healthy samples", samples.len()));
        }
        for sample in samples {
            let own = sample.facts(archetype, role);
            let seen = check(shadow, &own.facts(), &Shadows::default());
            if !seen.is_empty() {
                wrong.push(format!("{} fires {seen:?}\n  {:?}", sample.place, own.answer.traits));
            }
            if let AnswerBody::Review(Review { unread: Some(why), .. }) = &own.answer.said {
                wrong.push(format!("{} can't be read: {why}", sample.place));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn af_130_to_af_136_sick_answers_show_the_trigger_they_name() {
    let mut wrong = Vec::new();
    for (archetype, role, shadow) in CORPUS {
        let samples = samples(archetype, "sick");
        if samples.len() < AT_LEAST {
            wrong.push(format!("{archetype}: only {} sick samples", samples.len()));
        }
        let mut named: BTreeSet<String> = BTreeSet::new();
        for sample in samples {
            let own = sample.facts(archetype, role);
            let seen = check(shadow, &own.facts(), &Shadows::default());
            let trigger = sample.get("fires").unwrap_or_else(|| panic!("{}: fires?", sample.place));
            named.insert(format!("{}.{trigger}", shadow.name()));
            if fired(&seen, trigger) == "no" {
                wrong.push(format!(
                    "{} does not fire {trigger}: {seen:?}\n  {:?}",
                    sample.place, own.answer.traits
                ));
            }
        }
        let policy = serde_json::to_value(Shadows::default()).expect("it is there");
        let ours = triggers(&policy).into_iter().filter(|trigger| trigger.starts_with(shadow.name()));
        // Where one alone is enough it has a name of its own; the corpus is judged by the defaults.
        for trigger in ours.filter(|trigger| trigger != "paralytic.alternatives" && !named.contains(trigger))
        {
            wrong.push(format!("no sick sample fires {trigger}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

struct Sample {
    place: String,
    facts: Vec<(String, String)>,
    text: String,
}

/// A sample begins with a comment that gives its name and its facts, and ends where the next one begins:
/// `<!-- sample: name; changed: src/a.rs 20, tests/a.rs 9; planned: src/a.rs -->`.
#[expect(clippy::disallowed_methods, reason = "the test reads the corpus; the core itself opens nothing")]
fn samples(archetype: &str, health: &str) -> Vec<Sample> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join(format!("tests/corpus/shadows/{archetype}/{health}.md"));
    let text = std::fs::read_to_string(&path).unwrap_or_default();
    let mut samples = Vec::new();
    for part in text.split("<!-- sample: ").skip(1) {
        let (head, body) = part.split_once("-->").expect("a header ends");
        let mut fields = head.split(';').map(str::trim);
        let name = fields.next().unwrap_or_default();
        let facts = fields.filter(|field| !field.is_empty()).map(|field| {
            let (key, value) = field.split_once(':').unwrap_or((field, ""));
            (key.trim().to_owned(), value.trim().to_owned())
        });
        let place = format!("{archetype}/{health}: {name}");
        samples.push(Sample { place, facts: facts.collect(), text: body.trim_start().to_owned() });
    }
    let names: BTreeSet<&str> = samples.iter().map(|sample| sample.place.as_str()).collect();
    assert_eq!(names.len(), samples.len(), "{archetype}/{health} has two samples of one name");
    samples
}

impl Sample {
    fn get(&self, key: &str) -> Option<&str> {
        self.facts.iter().find(|(known, _)| known == key).map(|(_, value)| value.as_str())
    }

    fn facts(&self, archetype: &str, role: Role) -> Own {
        for (key, _) in &self.facts {
            let known = ["fires", "changed", "planned", "task", "domain", "reviews", "commits", "repeat"];
            assert!(known.contains(&key.as_str()), "{}: what is '{key}'?", self.place);
        }
        let answer = read::answer(role, archetype, self.body().as_bytes());
        let changed = self.get("changed").map(|list| {
            let files: Vec<ChangedFile> = list.split(',').map(changed_file).collect();
            let tests = files.iter().filter(|file| is_test_path(&file.path)).count();
            let commits = self.get("commits").map_or(2, |n| n.parse().expect("a number"));
            Change { files, test_files: u32::try_from(tests).expect("it is there"), commits, ..change() }
        });
        let planned = self.get("planned").map(|list| Proposal {
            files: list.split(',').map(|path| path.trim().to_owned()).collect(),
            has_test_strategy: true,
            ..Proposal::default()
        });
        let own_plan = match &answer.said {
            AnswerBody::Proposal(proposal) => Some(proposal.clone()),
            AnswerBody::Prose | AnswerBody::Review(_) => None,
        };
        Own {
            change: changed,
            proposal: planned.or(own_plan),
            task: self.get("task").unwrap_or("Give the discount from 100 euros on").to_owned(),
            domain: match self.get("domain") {
                Some("writing") => Domain::Writing,
                Some("research") => Domain::Research,
                Some(_) | None => Domain::Code,
            },
            reviews: self.get("reviews").map_or(0, |n| n.parse().expect("a number")),
            answer,
        }
    }

    /// With `repeat: n`, what stands between two lines `<!-- again -->` is there n times: a rabbit hole is long.
    fn body(&self) -> String {
        let Some(times) = self.get("repeat") else { return self.text.clone() };
        let times: usize = times.parse().expect("a number");
        let parts: Vec<&str> = self.text.split("<!-- again -->").collect();
        let [before, again, after] = parts[..] else { panic!("{}: what is repeated?", self.place) };
        format!("{before}{}{after}", again.repeat(times))
    }
}

/// `src/a.rs 20`, or `src/a.rs -20` for a file that is gone.
fn changed_file(text: &str) -> ChangedFile {
    let (path, lines) = text.trim().rsplit_once(' ').unwrap_or((text.trim(), "10"));
    let gone = lines.starts_with('-');
    let lines: u32 = lines.trim_start_matches('-').parse().expect("a number of lines");
    ChangedFile {
        path: path.to_owned(),
        status: if gone { FileStatus::Deleted } else { FileStatus::Modified },
        added: if gone { 0 } else { lines },
        deleted: if gone { lines } else { 0 },
        content: String::new(),
    }
}

#[test]
fn j_03_rejections_with_verified_findings_are_no_shadow_and_corrections_press_for_no_approval() {
    let policy = Shadows::default();
    for reviews in 1..=50 {
        let mut own = Own { reviews, change: Some(change()), ..Own::default() };
        let findings = vec![finding("verified warning"), finding("claim")];
        let review = Review { verdict: Some(Verdict::Rejected), findings, ..Review::default() };
        own.answer.said = AnswerBody::Review(review);
        assert_eq!(check(Shadow::Paranoid, &own.facts(), &policy), [], "review {reviews}");
    }
    let mut own = Own { reviews: 3, change: Some(change()), ..Own::default() };
    let findings = vec![finding("claim")];
    own.answer.said =
        AnswerBody::Review(Review { verdict: Some(Verdict::Rejected), findings, ..Review::default() });
    let seen = check(Shadow::Paranoid, &own.facts(), &policy);
    let words = correction(Shadow::Paranoid, &seen, false);
    assert!(words.contains("Your verdict is your own") && words.contains("prove it"), "{words}");
    // Journals from before keep their rule, and are written back without the new word.
    let old: Shadows =
        serde_json::from_value(serde_json::json!({ "paranoid": { "no_approvals": 3 } })).expect("old");
    assert!(!old.paranoid.by_evidence && !old.weightier_cause);
    assert!(!serde_json::to_string(&old).expect("it is there").contains("by_evidence"));
}
