//! Teams, workflows, lenses, domains and bundles: what is read, what is refused, and what a refusal says.

#![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

use archeflow_core::model::{DOMAINS, ExitWhen, LENSES, Phase, Sight, Workflow};
use archeflow_host::config::bundle::{self, Bundle};
use archeflow_host::config::{ConfigFile, Faults, Flags, Inputs, Offer, Settings};
use tempfile::TempDir;

const TEAM: &str = "name: night\nplan: [explorer, creator]\ndo: [maker]\ncheck: [guardian, sage]\n";
const WORKFLOW: &str = "name: slow\nlike: thorough\nphases:\n  plan:\n    archetypes: [creator]\n  do:\n    \
                        archetypes: [maker]\n  check:\n    archetypes: [sage]\n    parallel: true\n    \
                        inputs: [diff]\nact:\n  exit_when: no_critical\n  max_cycles: 4\n";
const LENS: &str = "name: glass\nfinding_categories: [cve]\ncontext_inject:\n  check: [docs/a.md]\nattention:\n  \
                    guardian:\n    weight: 1.5\n    extra_focus: logs\nevidence_rules:\n  - category: cve\n    \
                    requires: [line]\nmodel_overrides:\n  sage: opus\n";
const DOMAIN: &str = "name: writing\nconcepts:\n  module: act\nmetrics: [word_count]\nreview_focus:\n  sage: rhythm\n\
                      context: [docs/a.md]\nmodel_overrides:\n  sage: opus\n";
const POET: &str = "---\nname: poet\nrole: reviewer\nphase: check\ntier: cheap\nvirtue: ear\nshadow: purple\n\
                    sees: proposal, diff\nsummary: Hears the text.\n---\n\nRead aloud.\n";
const WARDEN: &str =
    "---\nname: warden\nrole: gatekeeper\nphase: check\nsummary: Both.\ncombines: guardian, poet\n---\n";

fn part(path: &str, text: &str) -> ConfigFile {
    (path.to_owned(), text.as_bytes().to_vec())
}

fn resolve(files: &[ConfigFile], approved: bool, flags: &Flags) -> Result<Settings, Faults> {
    Settings::resolve(&Inputs { repository: files, approved, user: &[], file: None, flags })
}

fn approved(files: &[(&str, &str)]) -> Result<Settings, Faults> {
    let files: Vec<ConfigFile> = files.iter().map(|(path, text)| part(path, text)).collect();
    resolve(&files, true, &Flags::default())
}

#[test]
fn what_is_built_in_can_be_read() {
    let shelf = approved(&[]).unwrap().shelf().clone();
    assert_eq!((shelf.lenses.len(), shelf.domains.len()), (LENSES.len(), DOMAINS.len()));
    assert!(shelf.teams.is_empty() && shelf.workflows.is_empty());
    let security = &shelf.lenses["security"].lens;
    assert_eq!(
        security.finding_categories,
        ["cve", "injection", "auth-bypass", "data-leak", "secrets-exposure"]
    );
    assert_eq!(security.attention["guardian"].weight, Some(150));
    assert_eq!(shelf.lenses["compliance-gdpr"].lens.attention["guardian"].weight, Some(130));
    assert_eq!(shelf.domains["writing"].concepts["module"], "chapter");
}

#[test]
fn bx_26_files_are_read_and_stand_over_what_is_built_in() {
    let settings = approved(&[
        (".archeflow/config.yaml", "workflow: slow\nlenses: [glass, security]\n"),
        (".archeflow/teams/night.yaml", TEAM),
        (".archeflow/workflows/slow.yaml", WORKFLOW),
        (".archeflow/lenses/glass.yaml", LENS),
        (".archeflow/lenses/security.yaml", "finding_categories: [moat]\n"),
        (".archeflow/domains/writing.yaml", DOMAIN),
        (".archeflow/archetypes/poet.md", POET),
        (".archeflow/archetypes/warden.md", WARDEN),
        (
            ".archeflow/teams/castle.yaml",
            "plan: [creator]\ndo: [maker]\ncheck: [warden, poet]\nexit: always\n",
        ),
    ])
    .unwrap();
    let slow = settings.workflow_file().unwrap();
    assert_eq!(
        (slow.exit, slow.max_cycles, slow.like),
        (ExitWhen::NoCritical, Some(4), Some(Workflow::Thorough))
    );
    assert!(slow.inputs[&Phase::Check].iter().eq(&[Sight::Diff]));
    assert_eq!(settings.workflow(), None);
    let names: Vec<&str> = settings.lenses().iter().map(|file| file.path.as_str()).collect();
    assert_eq!(names, [".archeflow/lenses/glass.yaml", ".archeflow/lenses/security.yaml"]);
    assert_eq!(settings.lenses()[1].lens.finding_categories, ["moat"]);
    let writing = &settings.shelf().domains["writing"];
    assert_eq!(
        (writing.concepts["module"].as_str(), writing.concepts["function"].as_str()),
        ("act", "scene")
    );
    assert_eq!(writing.review_focus["sage"], "rhythm");
    let castle = &settings.shelf().teams["castle"];
    assert_eq!(
        castle.seats.iter().map(|seat| seat.archetype.as_str()).collect::<Vec<_>>(),
        ["creator", "maker", "warden", "poet"]
    );
}

/// Every kind of file: a wrong value or an unknown key names file, line, key, value and what is allowed.
#[test]
fn a_wrong_word_in_any_file_is_an_error_with_its_place() {
    let (team, workflow) = (".archeflow/teams/night.yaml", ".archeflow/workflows/slow.yaml");
    let (lens, domain) = (".archeflow/lenses/glass.yaml", ".archeflow/domains/writing.yaml");
    let (poet, config) = (".archeflow/archetypes/poet.md", ".archeflow/config.yaml");
    for (path, good, from, to, fault) in [
        (
            team,
            TEAM,
            "name: night",
            "name: day",
            ":1: `name` is `day`; allowed: `night`, the name of the file",
        ),
        (
            team,
            TEAM,
            "name: night",
            "nam: night",
            ":1: unknown key `nam`; known here: name, description, plan, do",
        ),
        (team, TEAM, "[maker]", "[sage]", ":3: `do` is `sage`; allowed: archetypes of this phase: maker"),
        (team, TEAM, "[maker]", "maker", ":3: `do` is `maker`; allowed: a list of archetypes of this phase"),
        (team, TEAM, "[maker]", "[]", ": `do` names no maker; allowed: exactly one maker"),
        (
            team,
            TEAM,
            "[explorer, creator]",
            "[explorer]",
            ": `plan` names no creator; allowed: exactly one creator",
        ),
        (
            team,
            TEAM,
            "explorer, creator",
            "creator, explorer",
            ":2: `plan` is `explorer`; allowed: the explorer before",
        ),
        (
            team,
            TEAM,
            "guardian, sage",
            "sage, guardian",
            ":4: `check` is `guardian`; allowed: the gatekeeper before",
        ),
        (
            team,
            TEAM,
            "guardian, sage",
            "guardian, nobody",
            ":4: `check` is `nobody`; allowed: archetypes of this phase: gua",
        ),
        (team, TEAM, "guardian, sage", "sage, sage", ":4: `check` is `sage`; allowed: each entry once"),
        (
            team,
            TEAM,
            "[guardian, sage]",
            "[]",
            ": `check` is empty; allowed: at least one reviewer, or the empty list `[]` together with",
        ),
        (
            team,
            TEAM,
            "name: night",
            "exit: maybe",
            ":1: `exit` is `maybe`; allowed: all_approved, no_critical, conv",
        ),
        (
            team,
            TEAM,
            "name: night",
            "max_cycles: 11",
            ":1: `max_cycles` is `11`; allowed: a whole number from 1 to 10",
        ),
        (team, TEAM, "name: night", "like: slow", ":1: `like` is `slow`; allowed: fast, standard, thorough"),
        (team, TEAM, "name: night", "domain: law", ":1: `domain` is `law`; allowed: code, writing, research"),
        (workflow, WORKFLOW, "no_critical", "some", ":13: `act.exit_when` is `some`; allowed: all_approved"),
        (
            workflow,
            WORKFLOW,
            "parallel: true",
            "parallel: false",
            ":10: `phases.check.parallel` is `false`; allowed: true",
        ),
        (
            workflow,
            WORKFLOW,
            "[creator]",
            "[creator]\n    parallel: true",
            ":6: `phases.plan.parallel` is `true`; allowed: false",
        ),
        (
            workflow,
            WORKFLOW,
            "[diff]",
            "[research]",
            ":11: `phases.check.inputs` is `research`; allowed: what the archetypes of",
        ),
        (
            workflow,
            WORKFLOW,
            "[diff]",
            "[]",
            ":11: `phases.check.inputs` is `[]`; allowed: something that `sage` sees too",
        ),
        (
            workflow,
            WORKFLOW,
            "parallel: true",
            "order: 1",
            ":10: unknown key `phases.check.order`; known in `phases.check`: archety",
        ),
        (workflow, WORKFLOW, "act:", "acts:", ":12: unknown key `acts`; known here: name, description, like"),
        (lens, LENS, "[cve]", "[CVE!]", ":2: `finding_categories` is `CVE!`; allowed: words of a to z"),
        (
            lens,
            LENS,
            "docs/a.md",
            "../a.md",
            ":4: `context_inject.check` is `../a.md`; allowed: plain relative paths",
        ),
        (
            lens,
            LENS,
            "docs/a.md",
            "/etc/passwd",
            ":4: `context_inject.check` is `/etc/passwd`; allowed: plain relative",
        ),
        (
            lens,
            LENS,
            "docs/a.md",
            ".git/config",
            ":4: `context_inject.check` is `.git/config`; allowed: plain relative",
        ),
        (
            lens,
            LENS,
            "docs/a.md",
            ".archeflow/artifacts/x.md",
            ":4: `context_inject.check` is `.archeflow/artif",
        ),
        (
            lens,
            LENS,
            "check:",
            "do:",
            ":4: unknown key `context_inject.do`; known in `context_inject`: always, plan, check",
        ),
        (
            lens,
            LENS,
            "1.5",
            "heavy",
            ":7: `attention.guardian.weight` is `heavy`; allowed: a decimal from 0.1 to 10",
        ),
        (
            lens,
            LENS,
            "1.5",
            "10.01",
            ":7: `attention.guardian.weight` is `10.01`; allowed: a decimal from 0.1 to 10",
        ),
        (
            lens,
            LENS,
            "guardian",
            "guard",
            ":6: unknown key `attention.guard`; known in `attention`: explorer, creator",
        ),
        (
            lens,
            LENS,
            "[line]",
            "[oath]",
            ":11: `evidence_rules.requires` is `oath`; allowed: line, run, quote",
        ),
        (lens, LENS, "opus", "huge", ":13: `model_overrides.sage` is `huge`; allowed: haiku (cheap)"),
        (domain, DOMAIN, "[word_count]", "[Words]", ":4: `metrics` is `Words`; allowed: words of a to z"),
        (
            domain,
            DOMAIN,
            "sage: rhythm",
            "bard: rhythm",
            ":6: unknown key `review_focus.bard`; known in `review_focus`: expl",
        ),
        (
            domain,
            DOMAIN,
            "module: act",
            "module: [a]",
            ":3: `concepts.module` is `[a]`; allowed: one line of text",
        ),
        (domain, DOMAIN, "docs/a.md", "..", ":7: `context` is `..`; allowed: plain relative paths"),
        (
            ".archeflow/domains/law.yaml",
            DOMAIN,
            "name: writing",
            "",
            ": the domain is `law`; allowed: code, writing, research",
        ),
        (
            ".archeflow/workflows/fast.yaml",
            WORKFLOW,
            "name: slow",
            "",
            ": the workflow is `fast`; allowed: a name that is not",
        ),
        (
            ".archeflow/teams/night.yml",
            TEAM,
            "name: night",
            "",
            ": the file ends with `.yml`; allowed: `night.yaml`",
        ),
        (
            ".archeflow/teams/Night.yaml",
            TEAM,
            "name: night",
            "",
            ": the file's name is `Night`; allowed: a name begins",
        ),
        (poet, POET, "tier: cheap", "tier: huge", ": line 5: tier `huge` is not one of haiku (cheap)"),
        (
            poet,
            WARDEN,
            "warden",
            "poet",
            ": line 6: `combines` names `poet`; allowed: archetypes that are known and not",
        ),
        (
            config,
            "team: night\n",
            "night",
            "day",
            ":1: `team` is `day`; allowed: nothing, for there is no such file",
        ),
        (
            config,
            "lenses: [security]\n",
            "security",
            "glas",
            ":1: `lenses` is `glas`; allowed: compliance-gdpr, prose-voice, sec",
        ),
        (
            config,
            "workflow: fast\n",
            "fast",
            "slow",
            ":1: `workflow` is `slow`; allowed: fast, standard, thorough",
        ),
    ] {
        let text = good.replacen(from, to, 1);
        assert!(text != good, "{path}: {from}");
        let faults = approved(&[(path, &text)]).unwrap_err().to_string();
        assert!(faults.starts_with(&format!("{path}{fault}")), "{to}\nsays {faults}\nnot {path}{fault}");
    }
}

#[test]
fn d_08_files_of_a_repository_wait_for_approval() {
    let files = [
        part(".archeflow/config.yaml", "team: night\nlenses: [glass]\n"),
        part(".archeflow/teams/night.yaml", TEAM),
        part(".archeflow/lenses/glass.yaml", LENS),
        part(".archeflow/domains/writing.yaml", DOMAIN),
        part(".archeflow/workflows/slow.yaml", WORKFLOW),
        part(".archeflow/archetypes/poet.md", POET),
    ];
    let settings = resolve(&files, false, &Flags::default()).unwrap();
    let held: Vec<&str> = settings.withheld().iter().map(|held| held.key.as_str()).collect();
    assert_eq!(held, ["archetypes.poet", "teams.night", "lenses.glass", "domains.writing", "workflows.slow"]);
    assert!(settings.team().is_none() && settings.lenses().is_empty());
    assert_eq!(settings.shelf().domains["writing"].concepts["module"], "chapter");
    let settings = resolve(&files, true, &Flags::default()).unwrap();
    assert!(settings.withheld().is_empty() && settings.team().is_some());
    let offer = Offer {
        root: std::env::temp_dir(),
        folder: String::new(),
        files: files.to_vec(),
        instructions: Vec::new(),
    };
    assert_eq!(offer.guarded().unwrap().len(), 5);
}

#[test]
fn flags_ask_for_teams_and_lenses() {
    let files = [part(".archeflow/teams/night.yaml", TEAM)];
    let flags = |team: &str, lens: &str| Flags {
        team: (!team.is_empty()).then(|| team.to_owned()),
        lens: (!lens.is_empty()).then(|| lens.to_owned()),
        ..Flags::default()
    };
    let settings = resolve(&files, true, &flags("night", "security, compliance-gdpr")).unwrap();
    assert_eq!((settings.team().unwrap().name.as_str(), settings.lenses().len()), ("night", 2));
    for (flags, fault) in [
        (flags("day", ""), "--team: `team` is `day`; allowed: night"),
        (flags("", "security,x"), "--lens: `lenses` is `x`; allowed: compliance-gdpr"),
    ] {
        let faults = resolve(&files, true, &flags).unwrap_err().to_string();
        assert!(faults.starts_with(fault), "{faults}");
    }
    let both = [part(".archeflow/teams/night.yaml", TEAM), part(".archeflow/workflows/slow.yaml", WORKFLOW)];
    let flags = Flags { workflow: Some("slow".to_owned()), ..flags("night", "") };
    let faults = resolve(&both, true, &flags).unwrap_err().to_string();
    assert!(faults.contains("allowed: one of them, since both select the team"), "{faults}");
}

/// A lens's threshold stands under what somebody set; a key nobody knows is an error in the lens.
#[test]
fn bx_07_a_lens_changes_thresholds_by_the_table_of_keys() {
    let mut settings = approved(&[(".archeflow/config.yaml", "confidence_floor: 0.7\n")]).unwrap();
    settings.lay_under("confidence_floor", "0.9", "glass.yaml", 3).unwrap();
    settings.lay_under("retries.attempts", "2", "glass.yaml", 4).unwrap();
    let policy = settings.policy();
    assert_eq!((policy.confidence_floor.0, policy.retries.attempts), (700_000, 2));
    for (key, value, fault) in [
        (
            "retries.attempts",
            "many",
            "glass.yaml:5: `retries.attempts` is `many`; allowed: a whole number from 0",
        ),
        ("shadows.paranoid.nothing", "4", "glass.yaml:5: unknown key `shadows.paranoid.nothing`"),
    ] {
        let said = settings.lay_under(key, value, "glass.yaml", 5).unwrap_err().to_string();
        assert!(said.starts_with(fault), "{said}");
    }
}

#[test]
fn bx_19_bundles_are_written_as_a_run_reads_them() {
    let built_in = bundle::built_in();
    let names: Vec<&str> = built_in.iter().map(|bundle| bundle.name.as_str()).collect();
    assert_eq!(names, ["quick-fix", "backend-feature", "security-review", "writing", "research"]);
    for (bundle, budget) in built_in.iter().zip(["2", "5", "15", "5", "5"]) {
        let files = bundle.laid_out("").unwrap();
        let text = String::from_utf8(files[0].1.clone()).unwrap();
        assert!(text.contains(&format!("costs:\n  budget_usd: {budget}\n")), "{text}");
        assert!(resolve(&files, false, &Flags::default()).unwrap().withheld().is_empty());
    }
    let mut bundle = built_in[0].clone();
    for (key, value, fault) in [
        ("costs.budget_usd", "lots", "--set: `costs.budget_usd` is `lots`; allowed: dollars from 0"),
        ("budget", "2", "--set: unknown key `budget`"),
    ] {
        assert!(bundle.set("--set", key, value).unwrap_err().to_string().starts_with(fault));
    }
    bundle.set("--set", "models.archetypes.sage", "premium").unwrap();
    bundle.set("--set", "test_command", "sh -c 'it''s: # fine'").unwrap();
    let files = bundle.laid_out("# A comment.\n").unwrap();
    let settings = resolve(&files, true, &Flags::default()).unwrap();
    assert_eq!(settings.policy().test_command.as_deref(), Some("sh -c 'it''s: # fine'"));
}

#[test]
fn bx_25_a_project_is_saved_and_used_again() {
    let temp = TempDir::new().unwrap();
    let (root, bundles) = (temp.path().join("repo"), temp.path().join("bundles"));
    for (path, text) in [
        (".archeflow/config.yaml", "team: night\ntest_command: make\n"),
        (".archeflow/teams/night.yaml", TEAM),
        (".archeflow/archetypes/poet.md", POET),
        (".archeflow/events/x.jsonl", "not part of it\n"),
    ] {
        std::fs::create_dir_all(root.join(path).parent().unwrap()).unwrap();
        std::fs::write(root.join(path), text).unwrap();
    }
    let folder = Bundle::save("mine", &root, &bundles).unwrap();
    assert!(!folder.join("events").exists());
    assert!(Bundle::save("mine", &root, &bundles).unwrap_err().to_string().contains("exists already"));
    assert!(Bundle::save("../x", &root, &bundles).unwrap_err().to_string().contains("the name is `../x`"));
    let all = bundle::of_user(&bundles).unwrap();
    assert_eq!((all.len(), all[0].name.as_str()), (1, "mine"));
    let files = all[0].laid_out("").unwrap();
    let paths: Vec<&str> = files.iter().map(|(path, _)| path.as_str()).collect();
    assert_eq!(
        paths,
        [".archeflow/archetypes/poet.md", ".archeflow/config.yaml", ".archeflow/teams/night.yaml"]
    );
    let settings = resolve(&files, true, &Flags::default()).unwrap();
    assert_eq!(settings.policy().test_command.as_deref(), Some("make"));
    let manifest = folder.join("bundle.yaml");
    let good = std::fs::read_to_string(&manifest).unwrap();
    for (from, to, fault) in [
        ("name: mine", "nam: mine", ":1: unknown key `nam`; known here: name, description"),
        ("config: true", "config: yes", ":5: `config` is `yes`; allowed: true or false"),
        ("team: [night]", "team: [../x]", "; allowed: a list of names"),
        (
            "includes:",
            "variables:\n  costs.budget_usd: much\nincludes:",
            ":5: `costs.budget_usd` is `much`; allowed: dollars",
        ),
        (
            "includes:",
            "requires: Makefile\nincludes:",
            ":4: `requires` is `Makefile`; allowed: a list of files",
        ),
    ] {
        std::fs::write(&manifest, good.replacen(from, to, 1)).unwrap();
        let faults = Bundle::load(&folder).unwrap_err().to_string();
        assert!(faults.contains(fault), "{to}: {faults}");
    }
}
