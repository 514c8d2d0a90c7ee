//! Reading answers: the tables of `docs/rules/answers.md`, the corpus, the forms of findings, and properties.
#![expect(clippy::unwrap_used, reason = "a test that panics has failed, which is what it is for")]
#![expect(clippy::disallowed_methods, reason = "the tests read the corpus; only the core itself is pure")]

mod common {
    pub(crate) mod work;
}

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use archeflow_core::accept::accept;
use archeflow_core::model::{
    ARCHETYPES, Answer, AnswerBody, CATEGORIES, Disposition, Finding, Flaw, Proposal, Review, Role, Severity,
    Status,
};
use archeflow_core::read::{answer, answer_in, section};

use common::work::worked;

const ROLES: [Role; 5] = [Role::Explorer, Role::Creator, Role::Maker, Role::Gatekeeper, Role::Reviewer];

fn read(role: Role, text: &str) -> Answer {
    answer(role, "sage", text.as_bytes())
}

fn review(text: &str) -> (Review, Vec<String>) {
    let answer = read(Role::Reviewer, text);
    let AnswerBody::Review(review) = answer.said else { panic!("not a review") };
    (review, answer.problems)
}

fn proposal(text: &str) -> (Proposal, Vec<String>) {
    let answer = read(Role::Creator, text);
    let AnswerBody::Proposal(proposal) = answer.said else { panic!("not a proposal") };
    (proposal, answer.problems)
}

fn verdict(answer: &Answer) -> &'static str {
    match &answer.said {
        AnswerBody::Review(review) => review.verdict.map_or("none", archeflow_core::model::Verdict::name),
        AnswerBody::Prose | AnswerBody::Proposal(_) => "none",
    }
}

fn findings(answer: &Answer) -> usize {
    match &answer.said {
        AnswerBody::Review(review) => review.findings.len(),
        AnswerBody::Prose | AnswerBody::Proposal(_) => 0,
    }
}

// Tables in Markdown.

fn core_dir() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn page() -> String {
    std::fs::read_to_string(core_dir().join("../docs/rules/answers.md")).unwrap()
}

/// The rows of the table whose first column has this name.
fn table(page: &str, column: &str) -> Vec<Vec<String>> {
    let start = format!("| {column} |");
    let rows = page.lines().skip_while(|line| !line.starts_with(&start)).skip(2);
    let rows: Vec<_> = rows.take_while(|line| line.starts_with('|')).map(cells).collect();
    assert!(rows.len() > 5, "no table {column}");
    rows
}

fn cells(row: &str) -> Vec<String> {
    let row = row.trim().trim_start_matches('|').replace("\\|", "\u{1}");
    let row = row.strip_suffix('|').unwrap();
    row.split('|').map(|cell| unquoted(&cell.trim().replace('\u{1}', "|"))).collect()
}

fn unquoted(cell: &str) -> String {
    let ticks = cell.chars().take_while(|c| *c == '`').count();
    if ticks == 0 || cell == "``" {
        return if ticks == 0 { cell.to_owned() } else { String::new() };
    }
    let inner = &cell[ticks..cell.len() - ticks];
    let padded = ticks > 1 && inner.starts_with(' ') && inner.ends_with(' ');
    let inner = if padded { &inner[1..inner.len() - 1] } else { inner };
    let head = "| Location | Severity | Category | Description | Fix |\n|---|---|---|---|---|\n";
    unescaped(inner).replace("{head}", head)
}

fn unescaped(text: &str) -> String {
    let mut out = String::new();
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        match chars.next() {
            Some('n') => out.push('\n'),
            Some('r') => out.push('\r'),
            Some('t') => out.push('\t'),
            Some('\\') => out.push('\\'),
            Some('u') => {
                let hex: String = chars.by_ref().skip(1).take_while(|c| *c != '}').collect();
                out.push(char::from_u32(u32::from_str_radix(&hex, 16).unwrap()).unwrap());
            }
            other => panic!("unknown escape {other:?} in {text}"),
        }
    }
    out
}

fn yes_or_no(answer: &Answer) -> &'static str {
    if answer.problems.is_empty() { "no" } else { "yes" }
}

#[test]
fn m_d3_status_table() {
    let page = page();
    let page = &page[page.find("## Status").unwrap()..];
    for row in table(page, "Answer") {
        let answer = read(Role::Maker, &row[0]);
        let seen = (answer.status.name(), yes_or_no(&answer));
        assert_eq!(seen, (row[1].as_str(), row[2].as_str()), "{:?}: {:?}", row[0], answer.problems);
    }
}

#[test]
fn m_d9_confidence_table() {
    for row in table(&page(), "Cell") {
        let text = format!(
            "## Confidence\n| Axis | Score |\n|---|---|\n| Task understanding | {} |\n| Risk coverage | 1 |\n| Solution completeness | 0 |",
            row[0]
        );
        let (proposal, problems) = proposal(&text);
        let seen = proposal.confidence.task_understanding;
        assert_eq!(seen.map_or("unreadable".to_owned(), |m| m.to_string()), row[1], "{:?}", row[0]);
        assert_eq!(problems.is_empty(), seen.is_some(), "{:?}: {problems:?}", row[0]);
        assert_eq!(proposal.confidence.risk_coverage, Some(1_000_000));
        assert_eq!(proposal.confidence.solution_completeness, Some(0));
    }
}

#[test]
fn m_d8_location_table() {
    for row in table(&page(), "Location") {
        // In a cell of its own: the location as such, beside fields that add nothing.
        let cell = row[0].replace('|', "\\|");
        let text = format!(
            "| Where | Severity | Category | Issue | Fix |\n|-|-|-|-|-|\n| {cell} | INFO | quality | x | y |"
        );
        let (review, _) = review(&text);
        let finding = &review.findings[0];
        assert_eq!(finding.location, row[0].trim(), "kept as written");
        assert_eq!(
            (finding.file.as_str(), finding.line.to_string()),
            (row[1].as_str(), row[2].clone()),
            "{:?}",
            row[0]
        );
        assert_eq!(finding.citations.len(), usize::from(!finding.file.is_empty()), "{:?}", row[0]);
    }
}

#[test]
fn m_d4_m_d6_m_d7_verdict_and_findings_table() {
    let page = page();
    let page = &page[page.find("## Verdicts").unwrap()..];
    for row in table(page, "Answer") {
        for role in [Role::Gatekeeper, Role::Reviewer] {
            let answer = read(role, &row[0]);
            let seen = (verdict(&answer), findings(&answer).to_string(), yes_or_no(&answer));
            let wanted = (row[1].as_str(), row[2].clone(), row[3].as_str());
            assert_eq!(seen, wanted, "{:?}: {:?}", row[0], answer.problems);
        }
    }
}

#[test]
fn r_08_s_07_how_an_answer_ends_table() {
    let page = std::fs::read_to_string(core_dir().join("../docs/rules/endings.md")).unwrap();
    let rows = table(&page, "role");
    assert!(rows.len() > 20, "the table is read");
    for row in rows {
        let role = match row[0].as_str() {
            "guardian" => Role::Gatekeeper,
            "maker" => Role::Maker,
            _ => Role::Explorer,
        };
        let code = if row[1] == "coded" { "c0de" } else { "" };
        let answer = answer_in(role, &row[0], row[2].as_bytes(), &[], code);
        let outcome = match accept(role, &answer, true, !code.is_empty()) {
            Ok(()) => format!("counts: {}, {}", answer.status.name(), verdict(&answer)),
            Err((_, why)) => format!("again: {why}"),
        };
        assert_eq!(outcome, row[3], "{row:?}: {:?}", answer.problems);
    }
}

/// What became of each finding's reproduction, as the table says it.
fn tried(review: &Review) -> String {
    let told = review.findings.iter().map(|finding| {
        let Some(reproduction) = &finding.reproduction else { return "-".to_owned() };
        let mut told = reproduction.command.replace('\n', "⏎");
        let files: Vec<&str> = reproduction.files.iter().map(|file| file.path.as_str()).collect();
        if !files.is_empty() {
            told += &format!(" [{}]", files.join(" "));
        }
        told + if reproduction.regression { "" } else { " new" }
    });
    told.collect::<Vec<_>>().join(", ")
}

const ROWS: &str = "VERDICT: REJECTED\n\n| Location | Severity | Category | Description | Fix |\n|-|-|-|-|-|\n\
                    | a.rs:1 | CRITICAL | security | x | y |\n| b.rs:2 | WARNING | quality | x | y |\n";

fn with_fences(text: &str) -> String {
    let text = text.replace("{rows}", ROWS).replace("{sh}", "```sh\n").replace("{text}", "```\n");
    text.replace("{end}", "\n```\n")
}

#[test]
fn d_05_reproductions_table() {
    for row in table(&page(), "Review") {
        for role in [Role::Gatekeeper, Role::Reviewer] {
            let answer = read(role, &with_fences(&row[0]));
            let AnswerBody::Review(review) = &answer.said else { panic!("not a review") };
            let seen = (tried(review), yes_or_no(&answer));
            assert_eq!(seen, (row[1].clone(), row[2].as_str()), "{:?}: {:?}", row[0], answer.problems);
            assert_eq!(review.unread, None, "a reproduction never declines a review: {:?}", row[0]);
            assert_eq!(verdict(&answer), "REJECTED", "{:?}", row[0]);
        }
    }
}

/// Whoever does what the brief says is understood.
#[test]
fn d_05_reviewer_instructions_match_the_reader() {
    let told = archeflow_core::guide::reproductions(120_000);
    assert!(told.contains("120 seconds"), "{told}");
    let shown: Vec<&str> = told.split('`').skip(1).step_by(2).collect();
    let [heading, entry, command, file, _, new] = shown[..] else { panic!("{shown:?}") };
    for (entry, wanted) in [(entry, "-, x [tests/test_repro.py]"), (new, "-, x [tests/test_repro.py] new")] {
        let text = format!("{ROWS}\n## {heading}\n\n{entry}\n```{file}\ny\n```\n```{command}\nx\n```\n");
        let (review, problems) = review(&text);
        assert_eq!((tried(&review).as_str(), problems), (wanted, vec![]));
    }
}

/// What stands under the heading beside reproductions is read as anywhere else.
#[test]
fn d_05_no_finding_hides_below_reproductions() {
    let more = "\n## Reproductions\n\n### Finding 1\n```sh\nx\n```\n\n";
    for (line, findings, declined) in [
        ("- [WARNING] c.rs:3 (quality): z. Fix: y", 3, false),
        ("CRITICAL: the door is open", 3, false),
        ("This is CRITICAL: the door is open", 2, true),
        ("VERDICT: APPROVED", 2, true),
    ] {
        let (review, _) = review(&format!("{ROWS}{more}{line}\n"));
        assert_eq!((review.findings.len(), review.unread.is_some()), (findings, declined), "{line}");
    }
}

#[test]
fn d_05_reproductions_are_bounded() {
    let entry = |body: &str| format!("{ROWS}\n## Reproductions\n\n### Finding 1\n{body}");
    let sh = |bytes| format!("```sh\n{}\n```\n", "x".repeat(bytes));
    let file = |n: usize, bytes| format!("```text t/{n}\n{}\n```\n", "x".repeat(bytes));
    let files = |count| (0..count).map(|n| file(n, 1)).collect::<String>();
    for (body, fits) in [
        (sh(4_096), true),
        (sh(4_097), false),
        (file(0, 49_151) + &sh(1), true),
        (file(0, 49_152) + &sh(1), false),
        (files(8) + &sh(1), true),
        (files(9) + &sh(1), false),
        (file(1, 1) + &file(1, 1) + &sh(1), false),
    ] {
        let (review, problems) = review(&entry(&body));
        assert_eq!(review.findings[0].reproduction.is_some(), fits, "{problems:?}");
        assert_eq!(problems.is_empty(), fits, "{problems:?}");
    }
}

/// Content keeps its shape, without the indentation of the list it stands in.
#[test]
fn d_05_files_of_a_reproduction_keep_their_shape() {
    let text = format!(
        "{ROWS}\n## Reproductions\n\n- Finding 1\n\n  ````python t/a.py\n  def f():\n\n      ```\n  ````\n\n  ```sh\n  a \\\n    b\n  ```\n"
    );
    let (review, problems) = review(&text);
    assert_eq!(problems, Vec::<String>::new());
    let tried = review.findings[0].reproduction.clone().unwrap();
    assert_eq!(tried.files[0].content, "def f():\n\n    ```\n");
    assert_eq!(tried.command, "a \\\n  b");
}

// The corpus.

fn role(name: &str) -> Role {
    serde_json::from_value(serde_json::Value::String(name.to_owned())).unwrap()
}

fn seeds(folder: &str) -> Vec<(String, Vec<u8>)> {
    let dir = core_dir().join("tests/corpus").join(folder);
    let entries = std::fs::read_dir(&dir).unwrap().map(|entry| entry.unwrap().path());
    let name = |path: &Path| format!("{folder}/{}", path.file_name().unwrap().to_str().unwrap());
    let mut seeds: Vec<_> = entries.map(|path| (name(&path), std::fs::read(&path).unwrap())).collect();
    seeds.sort();
    assert!(!seeds.is_empty());
    seeds
}

fn expected() -> String {
    std::fs::read_to_string(core_dir().join("tests/corpus/expected.md")).unwrap()
}

#[test]
fn corpus_reads_as_expected() {
    let mut left: BTreeSet<String> = ["findings", "status", "confidence"]
        .iter()
        .flat_map(|folder| seeds(folder))
        .map(|(name, _)| name)
        .collect();
    for row in table(&expected(), "File") {
        assert!(left.remove(&row[0]), "{} is listed twice or not there", row[0]);
        let bytes = std::fs::read(core_dir().join("tests/corpus").join(&row[0])).unwrap();
        let answer = answer(role(&row[1]), "guardian", &bytes);
        let seen =
            [answer.status.name(), verdict(&answer), &findings(&answer).to_string(), yes_or_no(&answer)]
                .map(str::to_owned);
        assert_eq!(seen, row[2..6], "{}: {:?}", row[0], answer.problems);
    }
    assert_eq!(left, BTreeSet::new(), "seeds without an expectation");
}

#[test]
fn m_d9_corpus_confidence() {
    for row in table(&expected(), "Seed") {
        let text = std::fs::read_to_string(core_dir().join("tests/corpus").join(&row[0])).unwrap();
        let (proposal, _) = proposal(&text);
        let seen = proposal.confidence.task_understanding.map_or("unreadable".to_owned(), |m| m.to_string());
        assert_eq!(seen, row[1], "{}", row[0]);
        assert_eq!(proposal.confidence.solution_completeness, Some(900_000));
        assert_eq!(proposal.confidence.risk_coverage, Some(900_000));
    }
}

#[test]
fn i10_m_d11_m_s16_m_s17_every_seed_is_read_in_every_role_and_shown_text_never_controls() {
    for folder in ["findings", "status", "confidence", "bytes", "ansi", "inject"] {
        for (name, bytes) in seeds(folder) {
            for role in ROLES {
                let answer = answer(role, "guardian", &bytes);
                bounded(&answer, &name);
                shown_never_controls(role, &String::from_utf8_lossy(&bytes), &name);
            }
        }
    }
    for (name, bytes) in seeds("inject") {
        let answer = answer(Role::Gatekeeper, "guardian", &bytes);
        assert_eq!(answer.status, Status::Unverified, "{name}");
        // The one seed that is an approval, word for word: a file name. It has no status, so it opens nothing.
        let bare = name == "inject/filename.txt";
        assert_eq!(verdict(&answer), if bare { "APPROVED" } else { "none" }, "{name}");
    }
}

fn bounded(answer: &Answer, name: &str) {
    assert!(answer.summary.chars().count() <= 160, "{name}");
    assert!(answer.remark.chars().count() <= 1000, "{name}");
    assert!(answer.problems.len() <= 101, "{name}");
    assert!(findings(answer) <= 500, "{name}");
    if let AnswerBody::Review(review) = &answer.said {
        for f in &review.findings {
            for text in [&f.location, &f.description, &f.fix, &f.evidence] {
                assert!(text.chars().count() <= 4100, "{name}");
            }
            if let Some(tried) = &f.reproduction {
                assert!(!tried.command.is_empty() && tried.command.len() <= 4_096, "{name}");
                assert!(tried.files.len() <= 8, "{name}");
                assert!(tried.files.iter().all(|file| file.content.len() <= 65_536), "{name}");
            }
            assert!(
                !f.location.is_empty() && !f.category.is_empty() && !f.description.is_empty(),
                "{name}: {f:?}"
            );
        }
    }
}

fn shown_never_controls(role: Role, text: &str, name: &str) {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    // An answer that is a fence and nothing else may be the answer itself.
    let fenced = format!("The file:\n\n{fence}\n{text}\n{fence}\n");
    let quoted: String = text.split(['\n', '\r']).map(|line| format!("> {line}\n")).collect();
    let commented = format!("<!--\n{}", text.replace("-->", ""));
    for shown in [fenced, quoted, commented] {
        let answer = read(role, &shown);
        assert_eq!(
            (answer.status, verdict(&answer), findings(&answer)),
            (Status::Unverified, "none", 0),
            "{name}"
        );
    }
}

// The forms of findings.

fn only(text: &str) -> Finding {
    let (review, problems) = review(&format!("VERDICT: REJECTED\n\n{text}\n\nSTATUS: DONE\n"));
    assert_eq!(problems, Vec::<String>::new(), "{text}");
    assert_eq!(review.findings.len(), 1, "{text}: {:?}", review.findings);
    review.findings[0].clone()
}

#[test]
fn one_finding_in_every_form() {
    let forms = [
        "| Location | Severity | Category | Description | Fix | Evidence |\n|---|---|---|---|---|---|\n| src/a.rs:10 | CRITICAL | security | SQL from input | bind it | `x` |",
        "| # | Evidence | Recommendation | Issue | category | SEVERITY | File:Line |\n|:-:|---|---|---|---|---|---|\n| 1 | `x` | bind it | SQL from input | Security | **Critical** | src/a.rs:10 |",
        "| File | Line | Severity | Category | Finding | Suggestion | Proof |\n| src/a.rs | 10 | critical | security | SQL from input | bind it | `x` |",
        "### CRITICAL: SQL from input\n\n- **Location:** src/a.rs:10\n- **Category:** security\n- **Fix:** bind it\n- **Evidence:** `x`",
        "### [CRITICAL] src/a.rs:10 — SQL from input\nCategory: security\nFix: bind it\nEvidence: `x`",
        "### 1. 🔴 CRITICAL (security) src/a.rs:10: SQL from input\n\n**Fix**: bind it\n\n**Evidence**: `x`",
        // D13
        "### 1. CRITICAL, security: SQL from input\nLocation: src/a.rs:10\nFix: bind it\nEvidence: `x`",
        "**1. CRITICAL, security**: SQL from input\nLocation: src/a.rs:10\nFix: bind it\nEvidence: `x`",
        "### 1. SQL from input (CRITICAL)\nCategory: security\nLocation: src/a.rs:10\nFix: bind it\nEvidence: `x`",
        "### CRITICAL\nLocation: src/a.rs:10\nCategory: security\nDescription: SQL from input\nFix: bind it\nEvidence: `x`",
        "### Finding 1: SQL from input\n- Severity: CRITICAL\n- Location: src/a.rs:10\n- Category: security\n- Fix: bind it\n- Evidence: `x`",
        "Severity: CRITICAL\nCategory: security\nLocation: src/a.rs:10\nIssue: SQL from input\nSuggestion: bind it\nProof: `x`",
        "**Location**: src/a.rs:10\n\n**Severity**: CRITICAL\n\n**Category**: security\n\n**Description**: SQL from input\n\n**Fix**: bind it\n\n**Evidence**: `x`",
        "- **CRITICAL** src/a.rs:10 (security): SQL from input Fix: bind it Evidence: `x`",
        "- **[CRITICAL]** src/a.rs:10 — security — SQL from input **Fix:** bind it **Evidence:** `x`",
        "1. [CRITICAL] [security] src/a.rs:10: SQL from input\n   - Fix: bind it\n   - Evidence: `x`",
        "- src/a.rs:10 — CRITICAL — security — SQL from input\n    - Fix: bind it\n\n    - Evidence: `x`",
        "- 🔴 **CRITICAL — src/a.rs:10 — security**: SQL from input Fix: bind it Evidence: `x`",
        "- **CRITICAL** (`src/a.rs:10`, security): SQL from input Fix: bind it Evidence: `x`",
        "1. **src/a.rs:10** - CRITICAL (security) - SQL from input Fix: bind it Evidence: `x`",
        "CRITICAL: src/a.rs:10 (security) SQL from input\nFix: bind it\nEvidence: `x`",
        "## Critical findings (1)\n\n- src/a.rs:10 (security): SQL from input\n  Fix: bind it\n  Evidence: `x`",
        "```json\n{\"findings\": [{\"location\": \"src/a.rs:10\", \"severity\": \"CRITICAL\", \"category\": \"security\", \"description\": \"SQL from input\", \"fix\": \"bind it\", \"evidence\": \"`x`\"}]}\n```",
        "```json\n[{\"file\": \"src/a.rs\", \"line\": 10, \"severity\": \"critical\", \"category\": \"Security\", \"issue\": \"SQL from input\", \"suggestion\": \"bind it\", \"proof\": \"`x`\"}]\n```",
    ];
    for form in forms {
        let finding = only(form);
        let seen = (finding.severity, finding.file.as_str(), finding.line, finding.category.as_str());
        assert_eq!(seen, (Severity::Critical, "src/a.rs", 10, "security"), "{form}");
        let seen = (finding.description.as_str(), finding.fix.as_str(), finding.evidence.as_str());
        assert_eq!(seen, ("SQL from input", "bind it", "`x`"), "{form}");
        assert_eq!(finding.source, "sage");
    }
}

#[test]
fn several_findings_stay_apart() {
    let texts = [
        "### CRITICAL: one\nLocation: a.rs:1\nCategory: security\n\n### WARNING: two\nLocation: b.rs:2\nCategory: quality\n",
        "Severity: CRITICAL\nLocation: a.rs:1\nCategory: security\nDescription: one\nSeverity: WARNING\nLocation: b.rs:2\nCategory: quality\nDescription: two",
        "Location: a.rs:1\nSeverity: CRITICAL\nCategory: security\nDescription: one\n\nLocation: b.rs:2\nSeverity: WARNING\nCategory: quality\nDescription: two",
        "- [CRITICAL] a.rs:1 (security): one\n- [WARNING] b.rs:2 (quality): two",
        "- [CRITICAL] a.rs:1 (security): one\n  more of it\n\n- [WARNING] b.rs:2 (quality): two",
        "- CRITICAL: a.rs:1 (security): one\n  b.rs:2 — WARNING — quality — two",
        "## Critical\n- a.rs:1 (security): one\n\n## Warnings\n- b.rs:2 (quality): two\n\n## Info\nNone.",
        "- [CRITICAL] a.rs:1 (security): one\n\n| Where | Severity | Category | Issue | Fix |\n|-|-|-|-|-|\n| b.rs:2 | WARNING | quality | two | - |",
        "### CRITICAL: one\nLocation: a.rs:1\nCategory: security\n```json\n[{\"location\":\"b.rs:2\",\"severity\":\"WARNING\",\"category\":\"quality\",\"description\":\"two\"}]\n```",
    ];
    for text in texts {
        let (review, problems) = review(&format!("{text}\n\nVERDICT: REJECTED\nFINDINGS: 2\nSTATUS: DONE"));
        assert_eq!(problems, Vec::<String>::new(), "{text}");
        let seen: Vec<_> =
            review.findings.iter().map(|f| (f.severity, f.location.as_str(), f.category.as_str())).collect();
        let wanted = [(Severity::Critical, "a.rs:1", "security"), (Severity::Warning, "b.rs:2", "quality")];
        assert_eq!(seen, wanted, "{text}");
        assert!(review.findings[1].description.contains("two"), "{text}");
        assert!(!review.findings[0].description.contains("two"), "{text}");
    }
}

#[test]
fn a_finding_keeps_the_code_shown_below_it() {
    let finding = only(
        "### WARNING: leaks\nLocation: src/a.rs:3\nCategory: reliability (test gap)\nEvidence:\n\n```sh\n$ cargo test\nCRITICAL: boom\n```\nFix: close it",
    );
    assert!(finding.evidence.contains("CRITICAL: boom"));
    assert_eq!(finding.fix, "close it");
    assert_eq!(finding.flaw, Some(Flaw::TestGap));
}

#[test]
fn categories() {
    let rows = [
        ("Security", "security", None),
        ("**breaking change**", "breaking-change", None),
        ("Breaking_Change", "breaking-change", None),
        ("reliability (design flaw)", "reliability", Some(Flaw::DesignFlaw)),
        ("Reliability (Test-Gap)", "reliability", Some(Flaw::TestGap)),
        ("reliability: test gap", "reliability", Some(Flaw::TestGap)),
        ("reliability", "reliability", None),
        ("security (auth)", "security", None),
        ("design (test gap)", "design", None),
        ("Accessibility", "accessibility", None),
        ("voice and tone", "voice-and-tone", None),
    ];
    for (cell, category, flaw) in rows {
        let finding =
            only(&format!("|Where|Severity|Category|Issue|Fix|\n|-|-|-|-|-|\n|a.rs:1|INFO|{cell}|x|y|"));
        assert_eq!((finding.category.as_str(), finding.flaw), (category, flaw), "{cell}");
    }
}

#[test]
fn citations() {
    type Cited<'a> = (&'a str, u32, Option<&'a str>);
    let rows: [(&str, &str, &[Cited]); 13] = [
        ("x", "", &[("src/a.rs", 10, None)]),
        (
            "see app/b.py:3 and localhost/x.html:80",
            "internal/c.go:4 `c()`",
            &[("src/a.rs", 10, None), ("app/b.py", 3, None), ("internal/c.go", 4, Some("c()"))],
        ),
        ("x", "Line 10: `let x = 1;`", &[("src/a.rs", 10, Some("let x = 1;"))]),
        ("x", "`src/a.rs:10` `let x = 1;`", &[("src/a.rs", 10, Some("let x = 1;"))]),
        ("x", "`let x = 1;` at src/a.rs:10.", &[("src/a.rs", 10, Some("let x = 1;"))]),
        ("see lib/b.rs:3", "", &[("src/a.rs", 10, None), ("lib/b.rs", 3, None)]),
        (
            "x",
            "main.py:7 (`f()`), src/c.rs:9: `g()`",
            &[("src/a.rs", 10, None), ("main.py", 7, Some("f()")), ("src/c.rs", 9, Some("g()"))],
        ),
        ("x", "2. Panic at line 19: `a / b`", &[("src/a.rs", 10, None), ("src/a.rs", 19, Some("a / b"))]),
        ("x", "src/b.rs line 4 has `y`", &[("src/a.rs", 10, None), ("src/b.rs", 4, None)]),
        (
            "Node.js and example.com:443 and 127.0.0.1:80 and 12:30",
            "http://x.dev/a.rs:3 and /etc/passwd:1 and ../x.rs:2",
            &[("src/a.rs", 10, None)],
        ),
        ("x", "run `cargo test`", &[("src/a.rs", 10, None)]),
        ("src/a.rs:10 again", "src/a.rs:10", &[("src/a.rs", 10, None)]),
        ("x", "`src/a.rs:10-12`: `a` and `b`", &[("src/a.rs", 10, Some("a"))]),
    ];
    for (description, evidence, wanted) in rows {
        let finding = only(&format!(
            "| Where | Severity | Category | Issue | Fix | Evidence |\n|-|-|-|-|-|-|\n| src/a.rs:10 | INFO | design | {description} | y | {evidence} |"
        ));
        let seen: Vec<_> =
            finding.citations.iter().map(|c| (c.file.as_str(), c.line, c.quote.as_deref())).collect();
        assert_eq!(seen, wanted, "{description} / {evidence}");
        assert_eq!(finding.evidence, evidence, "kept whole");
        assert!(finding.citations.iter().all(|c| c.holds.is_none()));
    }
}

#[test]
fn accepted_and_rejected_rows_are_all_rows() {
    let mut random = Random(7);
    for _ in 0..200 {
        let rows = 1 + random.below(8);
        let severities = ["CRITICAL", "warning", "Info", "URGENT", "", "CRITICAL!", "\u{421}RITICAL"];
        let mut text =
            String::from("REJECTED\n\n| Where | Severity | Category | Issue | Fix |\n|-|-|-|-|-|\n");
        for row in 0..rows {
            let fix = ["| y |", "| |", "|", "| y | z |"][random.below(4)];
            text += &format!("| a.rs:{row} | {} | design | x {fix}\n", severities[random.below(7)]);
        }
        let (review, problems) = review(&text);
        let complaints = problems.iter().filter(|problem| problem.starts_with("line ")).count();
        assert_eq!(review.findings.len() + complaints, rows, "{text}{problems:?}");
    }
}

#[test]
fn problems_name_their_line() {
    let (_, problems) = review(
        "APPROVED\n\n|Where|Severity|Category|Issue|Fix|\n|-|-|-|-|-|\n|a.rs:1|URGENT|x|y|z|\n\nCRITICAL: boo",
    );
    assert_eq!(problems.len(), 2);
    assert!(problems[0].starts_with("line 5: unknown severity \"URGENT\""), "{problems:?}");
    assert!(problems[1].starts_with("line 7: "), "{problems:?}");
}

#[test]
fn m_d5_too_many_findings_are_counted() {
    let row = "| a.rs:1 | INFO | design | x | y |\n";
    let text = format!(
        "APPROVED\nFINDINGS: 10000\n\n| Where | Severity | Category | Issue | Fix |\n|-|-|-|-|-|\n{}",
        row.repeat(10_000)
    );
    let (review, problems) = review(&text);
    assert_eq!(review.findings.len(), 500);
    assert_eq!(review.declared, Some(10_000));
    let left_out = "9500 findings left out: only the 500 most severe are kept";
    assert_eq!(problems, [left_out]);
    assert_eq!(review.unread.as_deref(), Some(left_out), "no approval without all of them");
}

#[test]
fn too_many_findings_keep_the_most_severe() {
    let row = |n: u32, severity: &str| format!("| a.rs:{n} | {severity} | design | x | y |\n");
    let rows: String = (1..=1_000).map(|n| row(n, if n % 250 == 0 { "CRITICAL" } else { "INFO" })).collect();
    let text = format!("REJECTED\n\n| Where | Severity | Category | Issue | Fix |\n|-|-|-|-|-|\n{rows}");
    let (review, problems) = review(&text);
    let lines: Vec<u32> = review.findings.iter().map(|finding| finding.line).collect();
    let wanted: Vec<u32> = (1..=497).chain([500, 750, 1_000]).collect();
    assert_eq!(lines, wanted);
    assert_eq!(problems, ["500 findings left out: only the 500 most severe are kept"]);
    assert_eq!(review.unread, None, "a rejection stands");
}

/// An answer has to fit into a line of the log, which has at most 262,144 bytes.
#[test]
fn i11_what_is_kept_of_a_long_review_fits_into_a_line() {
    let nasty = "\"\\\u{1}\u{7}é".repeat(200);
    let row = format!("| a.rs:1 | CRITICAL | design | {nasty} b.rs:2 | {nasty} | b.rs:3 `{nasty}` |\n");
    let files = format!("```sh t/a.sh\n{}\n```\n", "\"\n".repeat(10_000));
    let reproduction = |n: usize| format!("### Finding {n}\n\n```sh\nx\n```\n\n{files}\n");
    let text = format!(
        "REJECTED\n\n| Where | Severity | Category | Issue | Fix | Evidence |\n|-|-|-|-|-|-|\n{}\n## Reproductions\n\n{}",
        row.repeat(600),
        (1..=6).map(reproduction).collect::<String>()
    );
    let (review, problems) = review(&text);
    let line = serde_json::to_string(&review).unwrap();
    assert!((100_000..250_000).contains(&line.len()), "{} bytes", line.len());
    assert_eq!(review.findings.iter().filter(|finding| finding.reproduction.is_some()).count(), 1);
    assert!(problems.iter().any(|problem| problem.contains("findings left out")), "{problems:?}");
    assert!(problems.iter().any(|problem| problem.contains("too long")), "{problems:?}");
}

// Proposals.

#[test]
fn the_examples_of_the_archetypes_are_read_without_a_problem() {
    for (name, text) in ARCHETYPES {
        let example = text.split("```text\n").nth(1).unwrap().split("\n```").next().unwrap();
        let role = role(text.split("\nrole: ").nth(1).unwrap().lines().next().unwrap());
        let answer = answer(role, name, example.as_bytes());
        assert_eq!(
            (answer.status, answer.problems.len()),
            (Status::Done, 0),
            "{name}: {:?}",
            answer.problems
        );
        match answer.said {
            AnswerBody::Prose => {}
            AnswerBody::Proposal(proposal) => {
                assert_eq!(proposal.files, ["src/http/limit.rs", "tests/http.rs"]);
                assert_eq!((proposal.alternatives, proposal.has_test_strategy), (2, true));
                assert_eq!(proposal.missing, Vec::<String>::new());
                assert_eq!(proposal.confidence.risk_coverage, Some(700_000));
                assert_eq!(answer.prior[0].disposition, Disposition::Fixed);
            }
            AnswerBody::Review(review) => {
                assert_eq!(review.findings.len(), 1, "{name}");
                let finding = &review.findings[0];
                assert!(
                    finding.citations.iter().any(|c| c.quote.is_some() && c.line == finding.line),
                    "{finding:?}"
                );
            }
        }
    }
}

#[test]
fn proposal_in_other_words() {
    let (proposal, problems) = proposal(
        "# Proposal\n\n**Architecture decisions:**\nOne.\n\n### 2. Files to change\n1. src/a.rs: new\n2. **`src/b c.rs`** (edit)\n   - touch `c.rs`\n3. `Makefile`\n4. Update lib/d.rs too\n5. `src/a.rs` again\n- New:\n  - `e.rs:10`\n\n### Alternatives considered\n| A | Why |\n|---|---|\n| x | y |\n| z | w |\n| q | r |\n\n### Test strategy\nn/a\n\n### Confidence (table)\n- **Task understanding**: 0.8 (clear)\n- Solution completeness = 0.75\n- Risk coverage: 0.6 - 0.7\n\n### 6. Risks and mitigations\nNone known.\n",
    );
    assert_eq!(proposal.files, ["src/a.rs", "src/b c.rs", "Makefile", "lib/d.rs", "e.rs"]);
    assert_eq!(proposal.alternatives, 3);
    assert!(!proposal.has_test_strategy);
    assert_eq!(proposal.missing, Vec::<String>::new());
    let confidence = proposal.confidence;
    assert_eq!(confidence.task_understanding, Some(800_000));
    assert_eq!(confidence.solution_completeness, Some(750_000));
    assert_eq!(confidence.risk_coverage, None);
    assert_eq!(problems.len(), 1, "{problems:?}");
}

#[test]
fn confidence_in_other_tables() {
    let read = |table: &str| proposal(&format!("## Confidence\n{table}\n")).0.confidence;
    let all = |c: archeflow_core::model::Confidence| {
        [c.task_understanding, c.solution_completeness, c.risk_coverage]
    };
    let wanted = [Some(900_000), Some(800_000), Some(700_000)];
    let tables = [
        "| Score | Why | Axis |\n|---|---|---|\n| 0.9 | 0.1 | **Task understanding** |\n| **0.8** | x | Solution completeness |\n| 0.7 | y | Risk coverage |",
        "| Task understanding | Solution completeness | Risk coverage |\n|---|---|---|\n| 0.9 | 0.8 | 0.7 |",
        "| Task understanding | 0.9 |\n| Solution completeness | 0.8 |\n| Risk coverage | 0.7 |",
        "Task understanding: 0.9\nSolution completeness: 0.8\nRisk coverage: 0.7.",
        "| Axis | Score |\n|---|---|\n| Task understanding | 0.9 |\n| Task understanding | 0.90 |\n| Solution completeness | 0.8 |\n| Risk coverage | 0.7 |",
    ];
    for table in tables {
        assert_eq!(all(read(table)), wanted, "{table}");
    }
    let twice = read(
        "| Axis | Score |\n|---|---|\n| Risk coverage | 0.9 |\n| Risk coverage | 0.2 |\n| Risk coverage | 0.9 |",
    );
    assert_eq!(twice.risk_coverage, None);
    let shown = read("```\n| Risk coverage | 0.9 |\n```\n> | Risk coverage | 0.9 |");
    assert_eq!(shown.risk_coverage, None);
    assert_eq!(proposal("| Risk coverage | 0.9 |").0.confidence.risk_coverage, None, "not under its heading");
}

#[test]
fn m_d8_unsafe_files_are_not_listed() {
    let (proposal, problems) = proposal("## Files\n- `/etc/passwd`\n- `../x.rs`\n- `src/a.rs`\n");
    assert_eq!(proposal.files, ["src/a.rs"]);
    assert_eq!(problems.iter().filter(|p| p.contains("not a path")).count(), 2);
}

#[test]
fn prior_issues() {
    let answer = read(
        Role::Maker,
        "## Prior issues\n- F1 overflow: **Fixed**, saturating add\n- F2: Deferred\n- F3 was not fixed\n- F4: Disputed - it was fixed before\n\n| Issue | Disposition |\n|---|---|\n| F5 fixed size | Accepted |\n\n```\nF6: Fixed\n```\n- F7 fixed or deferred\n\n## Other\n- F8: Fixed\n",
    );
    let seen: Vec<_> = answer.prior.iter().map(|p| (p.disposition, p.text.as_str())).collect();
    let wanted = [
        (Disposition::Fixed, "F1 overflow: **Fixed**, saturating add"),
        (Disposition::Deferred, "F2: Deferred"),
        (Disposition::Disputed, "F4: Disputed - it was fixed before"),
        (Disposition::Accepted, "F5 fixed size | Accepted"),
    ];
    assert_eq!(seen, wanted);
    assert_eq!(answer.problems.len(), 1, "F7: {:?}", answer.problems);
}

#[test]
fn sections() {
    let text = "intro\n\n## 6. Risks and mitigations:\r\n- a\r\n### Detail\r\nb\r\n```\r\n## Files\r\n```\r\n## Files\r\nc\r\n\r\n**Notes**\r\nd\r\n\r\nQuestions:\r\ne\r\n# End\r\nf";
    assert_eq!(section(text, "risks"), Some("- a\r\n### Detail\r\nb\r\n```\r\n## Files\r\n```\r\n"));
    assert_eq!(section(text, "Detail"), Some("b\r\n```\r\n## Files\r\n```\r\n"));
    assert_eq!(section(text, "Files"), Some("c\r\n\r\n**Notes**\r\nd\r\n\r\nQuestions:\r\ne\r\n"));
    assert_eq!(section(text, "Notes"), Some("d\r\n\r\n"));
    assert_eq!(section(text, "questions"), Some("e\r\n"));
    assert_eq!(section(text, "End"), Some("f"));
    assert_eq!(section(text, "File"), None);
    assert_eq!(section(text, ""), None);
    assert_eq!(section("## Files", "Files"), Some(""));
    assert_eq!(section("## **Test Strategy** (cases)\nx", "Test strategy"), Some("x"));
    assert_eq!(section("> ## Files\n> x", "Files"), None);
}

#[test]
fn remark_and_summary() {
    let answer = read(
        Role::Explorer,
        "# Report\n\n**Looked** at [the code](src/a.rs).\n\nI need to know:\n\n1. Which `db`?\n\n2. Which port?\n\nSTATUS: NEEDS_CONTEXT\n",
    );
    assert_eq!(answer.summary, "Looked at the code.");
    assert_eq!(answer.remark, "I need to know:\n\n1. Which `db`?\n\n2. Which port?");
    assert_eq!(answer.words, 18);
    let answer =
        read(Role::Maker, "Done.\n\n## Concerns\nSlow.\n\n## Tests\nGreen.\n\nSTATUS: DONE_WITH_CONCERNS");
    assert_eq!((answer.summary.as_str(), answer.remark.as_str()), ("Done.", "Slow."));
    let answer = read(Role::Maker, "First.\n\nNo disk.\nNo network.\n\nSTATUS: BLOCKED");
    assert_eq!(answer.remark, "No disk.\nNo network.");
    assert_eq!(read(Role::Maker, "x\n\nSTATUS: DONE").remark, "");
}

#[test]
fn m_d1_bytes_of_other_encodings() {
    let text = "Gr\u{fc}n\r\nSTATUS: DONE\r\n";
    let little: Vec<u8> =
        [0xFF, 0xFE].into_iter().chain(text.encode_utf16().flat_map(u16::to_le_bytes)).collect();
    let big: Vec<u8> =
        [0xFE, 0xFF].into_iter().chain(text.encode_utf16().flat_map(u16::to_be_bytes)).collect();
    for bytes in [little, big, text.as_bytes().to_vec()] {
        let answer = answer(Role::Maker, "maker", &bytes);
        assert_eq!((answer.status, answer.summary.as_str()), (Status::Done, "Gr\u{fc}n"));
    }
    assert_eq!(answer(Role::Maker, "maker", b"caf\xe9\nSTATUS: DONE").status, Status::Done);
}

// Properties.

/// xorshift64*: enough chance for tests, and the same every time.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 16
    }

    fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() % u64::try_from(bound).unwrap()).unwrap()
    }

    fn words(&mut self, words: &[&str], most: usize) -> String {
        let count = 1 + self.below(most);
        (0..count).map(|_| words[self.below(words.len())]).collect::<Vec<_>>().join(" ")
    }

    /// Text made of what readers stumble over.
    fn hostile(&mut self, pieces: usize) -> String {
        const PIECES: [&str; 60] = [
            "Verdict: All good\n",
            "**Status:** Passed\n",
            "---\nstatus: clean\n---\n",
            "~~",
            "HIGH",
            "HIGH-01: ",
            "## Critical Issues\n",
            "### CR-01: x\n",
            "判定：通过\n",
            "{\"verdict\":\"APPROVED\",\"findings\":[]}",
            "## Reproductions\n",
            "### Finding 1\n",
            "Finding 2 (new)\n",
            "```sh\n",
            "```text t/a\n",
            "\n```\n",
            "\n",
            "\n",
            "\n\n",
            "\r",
            " ",
            "    ",
            "\t",
            "|",
            "||",
            "\\|",
            "`",
            "```",
            "```json\n",
            "~~~",
            "> ",
            "- ",
            "1. ",
            "# ",
            "### ",
            "**",
            "STATUS: DONE",
            "STATUS:",
            "VERDICT: APPROVED",
            "REJECTED",
            "CRITICAL",
            "[WARNING]",
            "info",
            "Severity: ",
            "Location: ",
            "src/a.rs:10",
            "(security)",
            ":",
            "—",
            "\u{200b}",
            "é",
            "漢",
            "@@ -1 +1 @@",
            "+",
            "<!--",
            "-->",
            "|---|---|",
            "{\"severity\":\"INFO\"}",
            "FINDINGS: 1",
            "## Prior issues\n- fixed",
        ];
        (0..pieces).map(|_| PIECES[self.below(PIECES.len())]).collect()
    }
}

fn render(findings: &[Finding]) -> String {
    let escaped = |text: &str| text.replace('|', "\\|");
    let flaw = |f: &Finding| match f.flaw {
        Some(Flaw::DesignFlaw) => " (design flaw)",
        Some(Flaw::TestGap) => " (test gap)",
        None => "",
    };
    let rows = findings.iter().map(|f| {
        format!(
            "| {} | {} | {}{} | {} | {} | {} |\n",
            escaped(&f.location),
            f.severity.name(),
            f.category,
            flaw(f),
            escaped(&f.description),
            escaped(&f.fix),
            escaped(&f.evidence)
        )
    });
    let head =
        "| Location | Severity | Category | Description | Fix | Evidence |\n|---|---|---|---|---|---|\n";
    format!(
        "VERDICT: REJECTED\nFINDINGS: {}\n\n{head}{}\nSTATUS: DONE\n",
        findings.len(),
        rows.collect::<String>()
    )
}

#[test]
fn what_is_rendered_is_read_back() {
    let words = [
        "the",
        "name",
        "a|b",
        "`x | y`",
        "`",
        "leaks\\",
        "CRITICAL:",
        "src/b.rs:3",
        "é漢",
        "**bold**",
        "STATUS: DONE",
        "APPROVED",
        "0,8",
    ];
    let mut random = Random(42);
    for _ in 0..300 {
        let findings: Vec<Finding> = (0..=random.below(6))
            .map(|_| {
                let category = CATEGORIES[random.below(CATEGORIES.len())];
                let flaw = [None, Some(Flaw::DesignFlaw), Some(Flaw::TestGap)][random.below(3)];
                let line = u32::try_from(random.below(500)).unwrap();
                Finding {
                    source: "sage".to_owned(),
                    location: format!("src/m{}.rs:{line}", random.below(9)),
                    file: String::new(),
                    line,
                    severity: [Severity::Info, Severity::Warning, Severity::Critical][random.below(3)],
                    category: category.to_owned(),
                    flaw: flaw.filter(|_| category == "reliability"),
                    description: random.words(&words, 8),
                    fix: format!("do {}", random.words(&words, 4)),
                    evidence: format!("saw {}", random.words(&words, 6)),
                    citations: Vec::new(),
                    anchor: String::new(),
                    reproduction: None,
                }
            })
            .collect();
        let text = render(&findings);
        let (review, problems) = review(&text);
        assert_eq!(problems, Vec::<String>::new(), "{text}");
        let read: Vec<Finding> = review
            .findings
            .into_iter()
            .map(|f| Finding { file: String::new(), citations: Vec::new(), ..f })
            .collect();
        assert_eq!(read, findings, "{text}");
    }
}

#[test]
fn text_after_a_token_never_gives_done() {
    let mut random = Random(3);
    for _ in 0..3000 {
        let more = random.hostile(6);
        if more.trim().is_empty() || more.contains("STATUS: DONE") {
            continue;
        }
        for separator in ["\n", "\n\n", "\r\n", "\r", " x"] {
            let text = format!("work\nSTATUS: DONE{separator}{more}");
            assert_ne!(read(Role::Maker, &text).status, Status::Done, "{text:?}");
        }
    }
}

#[test]
fn m_d4_hostile_text_is_read_in_every_role() {
    let mut random = Random(99);
    for _ in 0..1500 {
        let text = random.hostile(40);
        for role in ROLES {
            let answer = read(role, &text);
            bounded(&answer, &text);
        }
        let without_json = text.replace("json", "");
        shown_never_controls(Role::Reviewer, &without_json, &text);
        for heading in ["Files", "Risks", "CRITICAL", ""] {
            let _ = section(&text, heading);
        }
    }
}

#[test]
fn bytes_cut_anywhere_are_read() {
    let whole = render(&[only("- **CRITICAL** src/a.rs:10 (security): é漢字 `x` Fix: y")]);
    for end in 0..whole.len() {
        for role in ROLES {
            let _ = answer(role, "sage", &whole.as_bytes()[..end]);
        }
    }
}

#[test]
fn m_s20_much_of_anything_is_read_quickly() {
    let (size, most) = (200_000, 2_000_000);
    let head = "| Location | Severity | Category | Description | Fix |\n|---|---|---|---|---|\n";
    let backticks: String = (1..2000).map(|n| "`".repeat(n) + " ").collect();
    let repeated = [
        "|",
        "`",
        " ",
        "\n",
        "\r",
        "x",
        "* ",
        "- ",
        "> ",
        "#",
        "# x\n",
        "CRITICAL ",
        "CRITICAL/",
        "CRITICAL: 0, ",
        "INFO",
        "[](",
        "](",
        "[",
        "(",
        ":",
        "a:1 ",
        "`a.rs:1` ",
        "**",
        "_",
        "\\|",
        "```\n",
        "~~~\n~~~~\n",
        "<!--",
        "- [INFO]\n",
        "### CRITICAL\n",
        "Severity: INFO\n",
        "Location: a\n\n",
        "| a | CRITICAL |\n",
        "|-|\n",
        "STATUS: DONE\n",
        "APPROVED\n",
        "\t",
        "漢",
        "line 1 ",
        "Fix: ",
        "## Reproductions\n",
        "Finding 1\n```sh\nx\n```\n",
        "src/a.rs:1\n",
        "## Files\n- `a`\n",
        "Task understanding: ",
        "fixed ",
        "\u{200b}",
        "[{\"a\":",
        "x\n\n",
        "- x\n\n    y\n\n",
        "Verdict: All good - no issues, ",
        "Verdict: All good\n",
        "Status: PASS\n",
        "---\n",
        "~~",
        "## High\n### CR-01: x\n",
        "## Verdict\n",
        "{\n",
        "判定：",
    ];
    let mut texts: Vec<String> = repeated.iter().map(|piece| piece.repeat(size / piece.len())).collect();
    texts.extend(["|", "`", " ", "\n", "x", "a.rs:1 "].map(|piece| piece.repeat(most / piece.len())));
    texts.push(format!("{head}| a.rs:1 | INFO | design | {} | y |", "a.rs:1 `x` ".repeat(size / 11)));
    texts.push(format!("{head}| a.rs:1 | INFO | design | x | {backticks} |"));
    texts.push(format!("---\n{}\n---\n", "status: clean\n".repeat(most / 28)));
    texts.push(format!(
        "REJECTED\n```\n{head}{}```\n",
        "| a.rs:1 | INFO | design | x | y |\n".repeat(size / 34)
    ));
    texts.push(format!("```\n{}```\n", "VERDICT: APPROVED\nSTATUS: DONE\n".repeat(size / 31)));
    texts.push(format!("[{}{{}}]", "{\"severity\":\"INFO\"},\n".repeat(size / 21)));
    texts.push(format!("## Confidence\n## Files\n- {}", "a/b ".repeat(size / 4)));
    texts.push(format!("## Prior issues\n- {}", "fixed: ".repeat(size / 7)));
    texts.push(format!("```json\n{}", "[".repeat(size)));
    texts.push(format!("```json\n[{}\n```", "{\"severity\":\"INFO\"},".repeat(size / 20)));
    for text in &texts {
        for role in [Role::Creator, Role::Reviewer] {
            let start = worked();
            bounded(&read(role, text), "big");
            let spent = worked().saturating_sub(start);
            let shown: String = text.chars().take(30).collect();
            // Far above what a linear reader needs, far below what a quadratic one would.
            assert!(spent.as_secs() < 8, "{shown:?} as {role:?} took {spent:?}");
        }
    }
}

// The words of `docs/rules/answers.md`.

/// The rows of a table of words, each with its words sorted.
fn words_of(column: &str) -> Vec<(String, Vec<String>)> {
    let page = page();
    let start = format!("| {column} | Words |");
    let rows =
        page.lines().skip_while(|line| *line != start).skip(2).take_while(|line| line.starts_with('|'));
    let rows: Vec<_> = rows.map(cells).collect();
    assert!(!rows.is_empty(), "no table {column}");
    let sorted = |cell: &str| {
        let mut words: Vec<String> = cell.split(", ").map(str::to_owned).collect();
        words.sort();
        words
    };
    rows.iter().map(|row| (row[0].clone(), sorted(&row[1]))).collect()
}

fn grouped<'a>(pairs: impl Iterator<Item = (&'a str, &'a str)>) -> Vec<(String, Vec<String>)> {
    let mut groups: Vec<(String, Vec<String>)> = Vec::new();
    for (word, group) in pairs {
        match groups.iter_mut().find(|(name, _)| name == group) {
            Some((_, words)) => words.push(word.to_owned()),
            None => groups.push((group.to_owned(), vec![word.to_owned()])),
        }
    }
    groups.iter_mut().for_each(|(_, words)| words.sort());
    groups
}

#[test]
fn j_08_the_words_of_the_code_are_those_of_the_page() {
    use archeflow_core::read::words;
    let severities = words::SEVERITIES.iter().map(|(word, severity)| (*word, severity.name()));
    assert_eq!(grouped(severities), words_of("Severity"));
    let verdicts = words::VERDICTS.iter().map(|(word, verdict)| (*word, verdict.name()));
    assert_eq!(grouped(verdicts), words_of("Verdict"));
    assert_eq!(grouped(words::columns()), words_of("Field"));
    let phrases = [
        ("beside an approval", &words::BESIDE_APPROVAL[..]),
        ("take a verdict back", &words::TAKEN_BACK[..]),
        ("take an approval back in prose", &words::WITHDRAWALS[..]),
        ("turn that round, before it", &words::NO_WITHDRAWAL[..]),
        ("take it back as a sentence", &words::REJECTED_AFTER_ALL[..]),
        ("take it back in capitals, alone in a sentence or behind its colon", &words::REJECTED_ALONE[..]),
        ("label a verdict", &words::VERDICT_LABELS[..]),
        ("label a summary", &words::SUMMARY_LABELS[..]),
    ];
    let phrases = phrases.iter().flat_map(|(group, words)| words.iter().map(move |word| (*word, *group)));
    assert_eq!(grouped(phrases), words_of("Phrases"));
}

/// No word means two things, and each is read as what the table says.
#[test]
fn j_08_every_word_is_read() {
    use archeflow_core::read::words;
    let unique: BTreeSet<&str> = words::VERDICTS.iter().map(|(word, _)| *word).collect();
    assert_eq!(unique.len(), words::VERDICTS.len());
    let unique: BTreeSet<&str> = words::SEVERITIES.iter().map(|(word, _)| *word).collect();
    assert_eq!(unique.len(), words::SEVERITIES.len());
    let rows = "| Where | Severity | Issue |\n|-|-|-|\n";
    for (word, verdict) in words::VERDICTS {
        let row = match verdict {
            archeflow_core::model::Verdict::Approved => "",
            archeflow_core::model::Verdict::Rejected => "| a.rs:1 | WARNING | x |\n",
        };
        for label in ["Verdict", "**Decision**", "判定"] {
            for said in [word.to_owned(), word.to_uppercase(), word.replace(' ', "_")] {
                let (review, problems) = review(&format!("{label}: {said}\n\n{rows}{row}"));
                assert_eq!((review.verdict, problems), (Some(verdict), vec![]), "{label}: {said}");
            }
        }
    }
    for (word, severity) in words::SEVERITIES {
        for said in [word.to_owned(), word.to_uppercase(), format!("**{word}**")] {
            let (review, _) = review(&format!("REJECTED\n\n{rows}| a.rs:1 | {said} | x |\n"));
            assert_eq!(review.findings.first().map(|found| found.severity), Some(severity), "{said}");
        }
    }
}

/// A review that is cut off, or has lines removed, is never an approval if the whole one rejects.
#[test]
fn j_08_a_cut_rejection_is_never_an_approval() {
    let head = "| Location | Severity | Category | Description | Fix |\n|---|---|---|---|---|\n";
    let row = "| src/a.rs:10 | CRITICAL | security | APPROVED was said before | return it |\n";
    let asked = format!("VERDICT: REJECTED\nFINDINGS: 1\n\n{head}{row}\nSTATUS: DONE\n");
    let last = format!(
        "I looked at all of it.\n\n{head}{row}\nVERDICT: REJECTED - not yet\nFINDINGS: 1\n\nSTATUS: DONE\n"
    );
    let wrapped = format!("```text\n{asked}```\n");
    let free = "---\nstatus: issues_found\nfindings:\n  critical: 1\n---\n\n# Review\n\n**Status:** issues_found\n\n## Critical\n\n### CR-01: The door is open\n\n**File:** `src/a.rs:10`\n**Fix:** close it\n".to_owned();
    let words = "## Verdict\n\nNot approved: the door is open.\n\n- [HIGH] src/a.rs:10: the door is open\n"
        .to_owned();
    for whole in [asked, last, wrapped, free, words] {
        assert_eq!(verdict(&read(Role::Reviewer, &whole)), "REJECTED", "{whole}");
        for end in 0..whole.len() {
            let cut = answer(Role::Reviewer, "sage", &whole.as_bytes()[..end]);
            assert_ne!(verdict(&cut), "APPROVED", "{}", &whole[..end]);
        }
        let lines: Vec<&str> = whole.lines().collect();
        for gone in 0..lines.len() {
            let left: Vec<&str> = [&lines[..gone], &lines[gone + 1..]].concat();
            assert_ne!(verdict(&read(Role::Reviewer, &left.join("\n"))), "APPROVED", "{left:?}");
        }
    }
}

/// Whatever is written beside an approval that the tables do not have, it is none.
#[test]
fn l_02_an_approval_with_unknown_words_is_unclear() {
    let beside = [
        " but",
        " if green",
        "?",
        "??",
        " (not yet)",
        ", I think",
        ": maybe",
        " - pending tests",
        " (revoked)",
        " *",
        " unless it breaks",
        " conditionally",
        " (was REJECTED)",
        " ~~",
        " / REJECTED",
        " ⚠\u{fe0f}",
        " pending",
        " in principle",
        " for now",
        " with conditions",
        ", tests not run",
        "\u{200b}",
        " no",
        " not",
    ];
    for beside in beside {
        let clear = beside == " *";
        for line in [
            format!("VERDICT: APPROVED{beside}"),
            format!("APPROVED{beside}"),
            format!("## APPROVED{beside}"),
        ] {
            for text in
                [format!("{line}\n\nSTATUS: DONE"), format!("VERDICT: APPROVED\n\n{line}\n\nSTATUS: DONE")]
            {
                let seen = verdict(&read(Role::Gatekeeper, &text));
                assert_eq!(seen == "APPROVED", clear, "{text}");
            }
        }
    }
}

/// Texts that a hurried reader would take for an approval.
#[test]
fn l_02_what_is_no_approval_in_free_text() {
    let texts = [
        "# Review\n\n**Status:** Approved pending the fix below",
        "# Review\n\n**Status:** Pass, except for the login",
        "## Verdict\n\nApproved once the tests are green.",
        "## Verdict\n\nApproved? I would wait.",
        "## Decision\n\n~~Approved~~ see below",
        "## Summary\n\nThe last round was approved. This one is not.",
        "# Review\n\n**Result:** PASS\n\n## Critical\n\n- src/a.rs:1: the door is open",
        "# Review\n\n**Verdict:** All good\n\n### HIGH-02: The door is open\n\n**File:** src/a.rs:1",
        "# Review\n\n**Verdict:** LGTM\n\n## Login\n\n**Status:** Changes requested",
        "---\nstatus: passed\nfindings:\n  high: 2\n---\n\n# Review",
        "---\nstatus: passed\nverdict: rejected\n---\n\n# Review",
        "The file begins with:\n\n---\nstatus: passed\n---\n",
        "# Review\n\n> **Verdict:** APPROVED",
        "# Review\n\n    Verdict: APPROVED",
        "# Review\n\n| Verdict | APPROVED |",
        "# Review\n\nI can't say Verdict: APPROVED yet.",
        "# Review\n\nVerdict: not yet APPROVED",
        "# Review\n\nVerdict: unapproved",
        "# Review\n\nVerdict: approved by the previous reviewer",
        "# Review\n\nVerdict: no issues found, but it does not compile",
        "# Review\n\nVerdict: APPROVED/REJECTED",
        "# Review\n\n- [ ] APPROVED\n- [x] REJECTED",
        "{\"verdict\":\"APPROVED\",\"verdict\":\"REJECTED\",\"findings\":[]}",
        "{\"verdict\":\"APPROVED?\",\"findings\":[]}",
        "{\"verdict\":\"APPROVED\",\"findings\":[]}\nVERDICT: REJECTED",
    ];
    for text in texts {
        for ending in ["", "\n\nSTATUS: DONE\n"] {
            let answer = read(Role::Gatekeeper, &format!("{text}{ending}"));
            assert_ne!(verdict(&answer), "APPROVED", "{text}: {:?}", answer.problems);
            assert!(!answer.problems.is_empty(), "{text}");
        }
    }
}

/// The code of a brief (S-07): a hint can't have it, so it approves nothing where the brief named one.
#[test]
fn j_08_an_approval_that_may_be_a_quotation_does_not_count() {
    use archeflow_core::read::answer_in;
    let read = |text: &str, code: &str| {
        verdict(&answer_in(Role::Gatekeeper, "guardian", text.as_bytes(), &[], code))
    };
    let front = "---\nstatus: clean\n---\n\n# Review\n";
    let status = "# Review\n\n**Status:** Passed\n";
    let wrapped = "```\nVERDICT: APPROVED\nFINDINGS: 0\n\nSTATUS: DONE\n```\n";
    for text in [front, status, wrapped] {
        assert_eq!((read(text, ""), read(text, "c0de")), ("APPROVED", "none"), "{text}");
    }
    let rejected = "---\nstatus: issues_found\n---\n\n## High\n\n- src/a.rs:1: the door is open\n";
    assert_eq!(read(rejected, "c0de"), "REJECTED", "a rejection needs no code");
    let coded = "```\nVERDICT: APPROVED c0de\nFINDINGS: 0\n\nSTATUS: DONE c0de\n```\n";
    assert_eq!(read(coded, "c0de"), "APPROVED");
    let both = format!("{front}\nVERDICT: REJECTED c0de\n\n- [HIGH] src/a.rs:1: the door is open\n");
    assert_eq!(read(&both, "c0de"), "REJECTED", "what has the code decides");
    let words = "Verdict: All good c0de\n";
    assert_eq!(read(words, "c0de"), "APPROVED", "other words with the code");
}
