//! Folders named by `--config`, teams without a plan or a review, and the arms of an evaluation.

#![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use archeflow_core::model::{ExitWhen, Policy};
use archeflow_host::config::user;
use archeflow_host::config::{ConfigFile, Faults, Flags, Inputs, NamedConfig, Settings, personas};
use archeflow_host::eval::arms::{self, EvalArm};
use tempfile::TempDir;

fn archetype(name: &str, words: &str) -> String {
    format!(
        "---\nname: {name}\nrole: reviewer\nphase: check\ntier: cheap\nvirtue: care\nshadow: none\nsees: diff\n\
         summary: A stand-in.\n---\n\n{words}\n"
    )
}

/// A folder with these files.
fn folder(files: &[(&str, &str)]) -> TempDir {
    let place = TempDir::new().unwrap();
    for (path, text) in files {
        let path = place.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    place
}

fn part(path: &str, text: &str) -> ConfigFile {
    (path.to_owned(), text.as_bytes().to_vec())
}

fn resolve(repository: &[ConfigFile], user: &[ConfigFile], named: &NamedConfig) -> Result<Settings, Faults> {
    let flags = Flags::default();
    Settings::resolve(&Inputs { repository, approved: true, user, file: Some(named), flags: &flags })
}

const TEAM: &str = "plan: [creator]\ndo: [maker]\ncheck: [sage]\nmax_cycles: 3\n";

#[test]
fn ev_70_a_folder_named_by_config_wins_over_all_other_files() {
    let place = folder(&[
        ("config.yaml", "team: own\nworkflow: fast\n"),
        ("hooks.yaml", "pre-merge: {command: make lint}\n"),
        ("teams/own.yaml", &TEAM.replace('3', "7")),
        ("lenses/glass.yaml", "finding_categories: [moat]\n"),
        ("archetypes/sage.md", &archetype("sage", "NAMED")),
        ("archetypes/poet.md", &archetype("poet", "NEW")),
        ("notes.txt", "takes no part"),
        (".hidden.yaml", "nor does this"),
    ]);
    let named = user::read_named(place.path()).unwrap();
    let repository = [
        part(".archeflow/teams/own.yaml", TEAM),
        part(".archeflow/archetypes/sage.md", &archetype("sage", "REPOSITORY")),
        part(".archeflow/archetypes/bard.md", &archetype("bard", "REPOSITORY")),
    ];
    let own = [
        part("/home/me/.config/archeflow/config.yaml", "workflow: thorough\n"),
        part("/home/me/.config/archeflow/teams/own.yaml", &TEAM.replace('3', "5")),
        part("/home/me/.config/archeflow/archetypes/sage.md", &archetype("sage", "USER")),
    ];
    let settings = resolve(&repository, &own, &named).unwrap();
    assert_eq!(settings.team().unwrap().max_cycles, Some(7));
    assert_eq!(settings.workflow().unwrap().name(), "fast");
    assert!(settings.shelf().lenses.contains_key("glass"));
    assert_eq!(settings.policy().hooks.len(), 1);

    let (theirs, ours) = personas::under(&named.others, &repository, &own);
    let prompt = |name: &str| personas::find(name, &theirs, true, &ours).unwrap().persona.prompt;
    assert_eq!(prompt("sage").trim(), "NAMED");
    assert_eq!(prompt("poet").trim(), "NEW");
    assert_eq!(prompt("bard").trim(), "REPOSITORY");
    assert_eq!(personas::names(&theirs, &ours), ["bard", "poet"]);

    // Every byte of the folder counts for the digest of a run's settings.
    let before = settings.hash().to_owned();
    fs::write(place.path().join("archetypes/poet.md"), archetype("poet", "CHANGED")).unwrap();
    let named = user::read_named(place.path()).unwrap();
    assert_ne!(resolve(&repository, &own, &named).unwrap().hash(), before);
}

#[test]
fn ev_71_a_bad_folder_is_refused_with_its_place_and_a_remedy() {
    for (files, words) in [
        (&[("teams/own.yaml", TEAM)][..], &["has no config.yaml", "create it"][..]),
        (
            &[("config.yaml", ""), ("team/own.yaml", TEAM)],
            &["/team:", "allowed here", "teams", "Rename or move it"],
        ),
        (
            &[("config.yaml", ""), ("confg.yaml", "")],
            &["/confg.yaml:", "allowed here", "config.yaml, hooks.yaml"],
        ),
        (&[("config.yaml", ""), ("hooks.yml", "")], &["/hooks.yml:", "allowed here"]),
        (&[("config.yaml/x", "")], &["config.yaml: is not a file"]),
    ] {
        let place = folder(files);
        let faults = user::read_named(place.path()).unwrap_err().to_string();
        assert!(faults.contains(&place.path().display().to_string()), "{faults}");
        for word in words {
            assert!(faults.contains(word), "{word}\n{faults}");
        }
    }
    for (file, text, words) in [
        ("teams/own.yml", TEAM, &["teams/own.yml", "ends with `.yml`"][..]),
        ("teams/own.yaml", "do: maker\n", &["teams/own.yaml:1", "`do`"]),
        ("archetypes/sage.md", "no header", &["archetypes/sage.md", "line 1"]),
    ] {
        let place = folder(&[("config.yaml", ""), (file, text)]);
        let faults = resolve(&[], &[], &user::read_named(place.path()).unwrap()).unwrap_err().to_string();
        for word in words {
            assert!(faults.contains(word), "{word}\n{faults}");
        }
    }
    // A single file is a single file, whatever lies around it.
    let place = folder(&[("config.yaml", "workflow: fast\n"), ("teams/own.yaml", "nonsense")]);
    let named = user::read_named(&place.path().join("config.yaml")).unwrap();
    assert_eq!(named.others, []);
    assert!(resolve(&[], &[], &named).is_ok());
}

#[test]
fn ev_72_only_a_team_that_says_so_does_without_plan_or_review() {
    let read = |team: &str| {
        let place = folder(&[("config.yaml", "team: own\n"), ("teams/own.yaml", team)]);
        resolve(&[], &[], &user::read_named(place.path()).unwrap())
    };
    for (team, seats, exit) in [
        ("plan: []\ndo: [maker]\ncheck: []\nexit: always\n", 1, ExitWhen::Always),
        ("plan: []\ndo: [maker]\ncheck: [sage]\n", 2, ExitWhen::AllApproved),
        ("plan: [creator]\ndo: [maker]\ncheck: []\nexit: always\n", 2, ExitWhen::Always),
    ] {
        let settings = read(team).unwrap_or_else(|faults| panic!("{team}{faults}"));
        let team = settings.team().unwrap();
        assert_eq!((team.seats.len(), team.exit), (seats, exit));
    }
    for (team, words) in [
        ("do: [maker]\ncheck: [sage]\n", &["`plan` names no creator", "`[]`"][..]),
        ("plan: [explorer]\ndo: [maker]\ncheck: [sage]\n", &["`plan` names no creator"]),
        ("plan: []\ndo: [maker]\ncheck: []\n", &["`check` is empty", "`always`"]),
        ("plan: []\ndo: [maker]\ncheck: []\nexit: no_critical\n", &["`check` is empty", "`always`"]),
        ("plan: []\ndo: [maker]\nexit: always\n", &["`check` is empty", "`[]`"]),
        ("plan: []\ndo: []\ncheck: [sage]\n", &["`do` names no maker"]),
    ] {
        let faults = read(team).unwrap_err().to_string();
        for word in words {
            assert!(faults.contains(word), "{team}{word}\n{faults}");
        }
    }
    let workflow = |check: &str, exit: &str| {
        let text = format!(
            "phases:\n  plan:\n    archetypes: []\n  do:\n    archetypes: [maker]\n  check:\n    archetypes: {check}\n\
             act:\n  exit_when: {exit}\n"
        );
        let place = folder(&[("config.yaml", "workflow: own\n"), ("workflows/own.yaml", &text)]);
        resolve(&[], &[], &user::read_named(place.path()).unwrap())
    };
    assert_eq!(workflow("[]", "always").unwrap().workflow_file().unwrap().seats.len(), 1);
    assert!(workflow("[]", "all_approved").unwrap_err().to_string().contains("`check` is empty"));
}

#[test]
fn ev_73_switches_for_ablations_need_approval_in_a_repository() {
    for key in ["evidence", "convergence", "shadows"] {
        let file = part(".archeflow/config.yaml", &format!("{key}: {{enabled: false}}\n"));
        let flags = Flags::default();
        let read = |approved: bool| {
            let repository = std::slice::from_ref(&file);
            Settings::resolve(&Inputs { repository, approved, user: &[], file: None, flags: &flags }).unwrap()
        };
        let on = |policy: &Policy| match key {
            "evidence" => policy.evidence.enabled,
            "convergence" => policy.convergence.enabled,
            _ => policy.shadows.enabled,
        };
        let held = read(false);
        assert!(on(&held.policy()), "{key}");
        assert_eq!(held.withheld().first().unwrap().key, format!("{key}.enabled"));
        assert!(!on(&read(true).policy()), "{key}");
    }
    // A journal says nothing of the switches unless they are off, as it did before there were any.
    let policy = serde_json::to_value(Policy::default()).unwrap();
    assert!(policy.get("evidence").is_none() && policy["convergence"].get("enabled").is_none(), "{policy}");
    let mut off = Policy::default();
    (off.evidence.enabled, off.convergence.enabled) = (false, false);
    assert_eq!(serde_json::from_value::<Policy>(serde_json::to_value(&off).unwrap()).unwrap(), off);
    assert_eq!(serde_json::from_value::<Policy>(policy).unwrap(), Policy::default());
}

/// The arm in a folder, as a trial gets it.
fn laid_out(arm: &EvalArm) -> TempDir {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    let files: Vec<(String, String)> =
        arm.files.iter().map(|(path, bytes)| (path.clone(), text(bytes))).collect();
    let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    folder(&files)
}

fn settings_of(arm: &EvalArm) -> Settings {
    let place = laid_out(arm);
    let named = user::read_named(place.path()).unwrap();
    resolve(&[], &[], &named).unwrap_or_else(|faults| panic!("{}: {faults}", arm.name))
}

#[test]
fn ev_80_every_built_in_arm_is_a_configuration_that_a_run_can_start_with() {
    let arms = arms::built_in();
    let names: Vec<&str> = arms.iter().map(|arm| arm.name.as_str()).collect();
    assert_eq!(
        names,
        [
            "single",
            "self-review",
            "reviewers-only",
            "pdca-generic",
            "no-shadows",
            "no-evidence",
            "no-convergence",
            "full"
        ]
    );
    let seats = |arm: &str| {
        let arm = arms.iter().find(|known| known.name == arm).unwrap();
        let settings = settings_of(arm);
        let team = settings.team().unwrap();
        let names: Vec<String> = team.seats.iter().map(|seat| seat.archetype.clone()).collect();
        (names.join(" "), team.max_cycles)
    };
    assert_eq!(seats("single"), ("maker".to_owned(), Some(1)));
    assert_eq!(seats("self-review"), ("maker self-reviewer".to_owned(), Some(2)));
    assert_eq!(seats("reviewers-only"), ("maker guardian skeptic sage trickster".to_owned(), Some(3)));
    assert_eq!(seats("pdca-generic"), ("planner builder reviewer-one reviewer-two".to_owned(), Some(3)));
    for arm in &arms {
        assert!(!arm.about.is_empty() && arm.about.ends_with('.'), "{}: {}", arm.name, arm.about);
        assert_eq!(&arms::find(&arm.name).unwrap(), arm);
        // The files pass what arms of a user's own have to pass.
        let place = laid_out(arm);
        let own = place.path().join("copy");
        fs::create_dir(&own).unwrap();
        for (path, bytes) in &arm.files {
            fs::create_dir_all(own.join(path).parent().unwrap()).unwrap();
            fs::write(own.join(path), bytes).unwrap();
        }
        let found = arms::find(own.to_str().unwrap()).unwrap_or_else(|fault| panic!("{fault}"));
        assert_eq!((found.name.as_str(), &found.about), ("copy", &arm.about));
        let by_path = |arm: &EvalArm| arm.files.iter().cloned().collect::<BTreeMap<_, _>>();
        assert_eq!(by_path(&found), by_path(arm));
        let named = user::read_named(&own).unwrap();
        assert_eq!(personas_unwatched(&named), Vec::<String>::new(), "{}", arm.name);
    }
}

/// Shadows that an arm's archetypes name and no answer would be checked for.
fn personas_unwatched(named: &NamedConfig) -> Vec<String> {
    let texts = named.others.iter().filter(|(path, _)| path.ends_with(".md"));
    texts.flat_map(|(_, bytes)| archeflow_core::persona::unwatched(&String::from_utf8_lossy(bytes))).collect()
}

#[test]
fn ev_81_each_ablation_differs_from_full_in_exactly_one_setting() {
    let full = settings_of(&arms::find("full").unwrap());
    let policy = full.policy();
    assert!(policy.shadows.enabled && policy.evidence.enabled && policy.convergence.enabled);
    for (name, key) in [
        ("no-shadows", "shadows.enabled"),
        ("no-evidence", "evidence.enabled"),
        ("no-convergence", "convergence.enabled"),
    ] {
        let settings = settings_of(&arms::find(name).unwrap());
        let shown = |settings: &Settings| {
            settings.show().into_iter().map(|row| (row.key, row.value)).collect::<Vec<(String, String)>>()
        };
        let differs: Vec<String> = shown(&full)
            .into_iter()
            .zip(shown(&settings))
            .filter(|(one, other)| one != other)
            .map(|((key, _), (_, value))| format!("{key} {value}"))
            .collect();
        assert_eq!(differs, [format!("{key} false")], "{name}");
        assert_eq!(arms::find(name).unwrap().files.len(), 1);
    }
}

#[test]
fn ev_82_the_folder_of_arms_and_the_program_have_the_same_files() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../evals/arms");
    let mut on_disk = Vec::new();
    let mut folders = vec![root.clone()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let name = path.strip_prefix(&root).unwrap().to_str().unwrap().to_owned();
                on_disk.push((name, fs::read(path).unwrap()));
            }
        }
    }
    on_disk.sort();
    let mut embedded: Vec<(String, Vec<u8>)> = arms::built_in()
        .into_iter()
        .flat_map(|arm| {
            arm.files.into_iter().map(move |(path, bytes)| (format!("{}/{path}", arm.name), bytes))
        })
        .collect();
    embedded.sort();
    assert_eq!(embedded, on_disk);
}

#[test]
fn ev_83_an_arm_of_ones_own_is_a_file_or_a_folder() {
    let place = folder(&[
        ("quick.yaml", "\n# Only the fast workflow.\nworkflow: fast\n"),
        ("plain.yaml", "workflow: fast\n"),
        ("guarded/config.yaml", "# One reviewer.\nteam: own\n"),
        ("guarded/teams/own.yaml", TEAM),
    ]);
    let at = |name: &str| place.path().join(name).to_str().unwrap().to_owned();
    let quick = arms::find(&at("quick.yaml")).unwrap();
    assert_eq!((quick.name.as_str(), quick.about.as_str()), ("quick", "Only the fast workflow."));
    assert_eq!(quick.files.len(), 1);
    assert_eq!(quick.files[0].0, "config.yaml");
    assert_eq!(arms::find(&at("plain.yaml")).unwrap().about, "");
    let guarded = arms::find(&at("guarded/")).unwrap();
    assert_eq!((guarded.name.as_str(), guarded.about.as_str()), ("guarded", "One reviewer."));
    let paths: Vec<&str> = guarded.files.iter().map(|(path, _)| path.as_str()).collect();
    assert_eq!(paths, ["config.yaml", "teams/own.yaml"]);
}

#[test]
fn ev_84_a_bad_arm_is_refused_with_its_place_and_a_remedy() {
    let place = folder(&[
        ("agent.yaml", "# x\nworkflow: fast\nagents: {default: claude}\ncosts: {budget_usd: 3}\n"),
        ("model.yaml", "models: {default: opus}\n"),
        ("lensed/config.yaml", ""),
        ("lensed/lenses/glass.yaml", "model_overrides: {guardian: opus}\n"),
        ("typo.yaml", "workflow: fast\nworkflw: fast\nshadow: x\n"),
        ("absent.yaml", "team: nobody\n"),
        ("broken.yaml", "a: [\n"),
        ("empty/x.txt", ""),
        ("notes.txt", ""),
        ("single/config.yaml", ""),
        ("two words.yaml", ""),
    ]);
    for (word, words) in [
        ("fll", &["no such arm", "`full`", "single", "pdca-generic", ".yaml file or a folder"][..]),
        ("nothing-like-it", &["no such arm", "Known arms"]),
        ("agent.yaml", &["agent.yaml:3:", "can't set `agents`", "agent.yaml:4: `costs` too", "Remove it"]),
        ("model.yaml", &["model.yaml:1:", "can't set `models`", "Remove it"]),
        ("lensed", &["glass.yaml:1:", "can't set `model_overrides`"]),
        ("typo.yaml", &["typo.yaml:2:", "workflw", "typo.yaml:3", "Correct it"]),
        ("absent.yaml", &["absent.yaml:1:", "nobody", "in its folder"]),
        ("broken.yaml", &["broken.yaml:", "Correct it"]),
        ("empty", &["has no config.yaml"]),
        ("notes.txt", &["ends in .yaml"]),
        ("single", &["name of a built-in arm", "Rename"]),
        ("two words.yaml", &["the name is not made of", "Rename"]),
    ] {
        let path = place.path().join(word);
        let word = if path.exists() { path.to_str().unwrap() } else { word };
        let fault = arms::find(word).unwrap_err().to_string();
        for word in words {
            assert!(fault.contains(word), "{word}\n{fault}");
        }
    }
}
