//! Custom archetypes, teams, workflow files, lenses, domains and bundles, through whole runs.

use std::fs;

use crate::harness::{TASK, Test, each, proposal, review, says};

/// An archetype file of this role.
fn archetype(name: &str, role: &str, phase: &str, sees: &str) -> String {
    format!(
        "---\nname: {name}\nrole: {role}\nphase: {phase}\ntier: cheap\nvirtue: care\nshadow: none\nsees: {sees}\n\
         summary: A stand-in.\n---\n\nPERSONA-OF-{name}\n"
    )
}

const SEATS: [(&str, &str, &str, &str, &str); 5] = [
    ("scout", "explorer", "plan", "task", "[scout, creator]"),
    ("architect", "creator", "plan", "task, research, feedback", "[explorer, architect]"),
    ("builder", "maker", "do", "task, proposal, feedback", "[builder]"),
    ("warden", "gatekeeper", "check", "diff, risks", "[warden, sage]"),
    ("poet", "reviewer", "check", "proposal, diff, summary", "[guardian, poet]"),
];

const MAKES: &str =
    "sh printf 'made\\n' >> src/app.txt\nsh printf 'case\\n' >> tests/check_test.sh\ncommit Add it\n";

/// The scenes of a stand-in, which are those of the built-in archetype of its role.
fn scenes(name: &str, role: &str) -> String {
    match role {
        "explorer" => says(name, "## Findings\n\nSCOUTED\n\n## Recommendation\n\nGo.\n\nSTATUS: DONE"),
        "creator" => proposal(name, ["0.9", "0.9", "0.9"]),
        "maker" => format!("== {name} ==\n{MAKES}say <<END\n## Summary\n\nBUILT\n\nSTATUS: DONE\nEND\n\n"),
        _ => review(name, "APPROVED", &[]),
    }
}

fn team(plan: &str, make: &str, check: &str, more: &str) -> String {
    format!("plan: {plan}\ndo: {make}\ncheck: {check}\n{more}")
}

/// A repository with these files committed and approved.
fn approved(test: Test, files: &[(&str, &str)]) -> Test {
    for (path, text) in files {
        test.file(path, text);
    }
    test.commit("Configure");
    assert_eq!(test.run(&["trust", "--yes"]).code, 0);
    test
}

#[test]
fn m_06_a_shadow_nobody_would_watch_is_refused() {
    let haste = archetype("poet", "reviewer", "check", "diff").replace("shadow: none", "shadow: haste");
    let path = ".archeflow/archetypes/poet.md";
    let test = approved(Test::new().play(""), &[(path, &haste)]);
    test.go(&[]).refused(2, &[path, "line 7", "`shadow` is `haste`", "bureaucrat", "none"]);
    let test = approved(Test::new().play(""), &[(path, &haste.replace("haste", "none"))]);
    test.go(&["--auto-merge"]).ended("merged", "approved", 0);
}

#[test]
fn bx_26_own_archetypes_in_each_role_drive_a_run_to_landing() {
    each(SEATS, |(name, role, phase, sees, seats)| {
        let lists = match phase {
            "plan" => team(seats, "[maker]", "[guardian, sage]", ""),
            "do" => team("[explorer, creator]", seats, "[guardian, sage]", ""),
            _ => team("[explorer, creator]", "[maker]", seats, ""),
        };
        // One finding, so that nobody is spared and the research, the proposal and the change reach their readers.
        let first = if name == "warden" { "warden" } else { "guardian" };
        let info = review(
            first,
            "APPROVED",
            &["src/app.txt:1 | WARNING | quality | Could be clearer | Say more | `line 1`"],
        );
        let test = Test::new().play(&(info + &scenes(name, role)));
        let test = approved(
            test,
            &[
                (&format!(".archeflow/archetypes/{name}.md"), &archetype(name, role, phase, sees)),
                (".archeflow/teams/own.yaml", &lists),
            ],
        );
        let merged = test.go(&["--team", "own", "--workflow", "standard", "--auto-merge"]);
        let merged = merged.ended("merged", "approved", 0);
        assert!(merged.briefs(name)[0].contains(&format!("PERSONA-OF-{name}")), "{merged}");
        assert_eq!(merged.times(name), 1, "{merged}");
        let artifact = match role {
            "explorer" => "plan-explorer.md".to_owned(),
            "creator" => "plan-creator.md".to_owned(),
            "maker" => "do-maker.md".to_owned(),
            _ => format!("check-{name}.md"),
        };
        assert!(!merged.artifact(&artifact).is_empty(), "{artifact} is missing\n{merged}");
        match role {
            "explorer" => assert!(merged.briefs("creator")[0].contains("SCOUTED")),
            "creator" => assert!(merged.briefs("maker")[0].contains("RISK-NAMED")),
            "maker" => assert!(merged.briefs("sage")[0].contains("BUILT")),
            "gatekeeper" => assert!(merged.briefs("warden")[0].contains("RISKED")),
            _ => {}
        }
        let explained = test.run(&["explain", name]);
        assert!(explained.code == 0 && explained.stdout.contains("this repository"), "{explained}");
    });
}

#[test]
fn bx_26_a_combined_archetype_of_the_user_speaks_for_both() {
    let test = Test::new().play(&review("warden", "APPROVED", &[]));
    let folder = test.home().join(".config/archeflow");
    for folder in ["archetypes", "teams"] {
        fs::create_dir_all(test.home().join(".config/archeflow").join(folder)).unwrap();
    }
    let warden = "---\nname: warden\nrole: gatekeeper\nphase: check\nsummary: Both.\ncombines: guardian, sage\n---\n\nOWN-WORDS\n";
    fs::write(folder.join("archetypes/warden.md"), warden).unwrap();
    fs::write(folder.join("teams/own.yaml"), team("[creator]", "[maker]", "[warden]", "")).unwrap();
    let merged = test.go(&["--team", "own", "--auto-merge"]).ended("merged", "approved", 0);
    let brief = &merged.briefs("warden")[0];
    assert!(
        brief.contains("# As the guardian") && brief.contains("# As the sage") && brief.contains("OWN-WORDS")
    );
    // A gatekeeper never sees the whole proposal, whoever it is made of.
    assert!(brief.contains("RISKED") && !brief.contains("PROPOSED"), "{brief}");
    assert_eq!(merged.events("agent.start")[2]["model"], "sonnet");
    fs::write(
        folder.join("archetypes/warden.md"),
        warden.replace("guardian, sage", "guardian, sage, skeptic"),
    )
    .unwrap();
    test.go(&["--team", "own"]).refused(2, &["warden.md", "line 6", "`skeptic` is the third"]);
}

const WARNS: &str = "src/app.txt:1 | WARNING | quality | The line is dull | Say more | `line 1`";

#[test]
fn bx_26_a_workflow_file_says_who_sits_and_when_it_is_good_enough() {
    let workflow = |exit: &str| {
        format!(
            "like: fast\nphases:\n  plan:\n    archetypes: [creator]\n  do:\n    archetypes: [maker]\n    \
             description: WORKED-LIKE-THIS.\n  check:\n    archetypes: [guardian, sage]\n    inputs: [diff]\n\
             act:\n  exit_when: {exit}\n  max_cycles: 1\n"
        )
    };
    let critical = "src/app.txt:1 | CRITICAL | quality | The line is wrong | Say more | `line 1`";
    for (exit, finding, status, reason, code) in [
        ("all_approved", WARNS, "stopped", "max_cycles", 14),
        ("no_critical", WARNS, "merged", "approved", 0),
        ("convergence", WARNS, "stopped", "max_cycles", 14),
        ("no_critical", critical, "stopped", "max_cycles", 14),
        ("always", critical, "merged", "approved", 0),
    ] {
        let guardian = review("guardian", "REJECTED", &[WARNS]);
        let test = Test::new().unshadowed().play(&(guardian + &review("sage", "REJECTED", &[finding])));
        let test = approved(test, &[(".archeflow/workflows/own.yaml", &workflow(exit))]);
        let ended = test.go(&["--workflow", "own", "--auto-merge"]).ended(status, reason, code);
        assert_eq!(ended.sent(), ["creator/work", "maker/work", "guardian/work", "sage/work"], "{exit}");
        assert_eq!(ended.events("run.start")[0]["max_cycles"], 1);
        assert!(ended.briefs("maker")[0].contains("WORKED-LIKE-THIS."));
        // The Sage would see the proposal too; this workflow shows it the diff alone.
        let brief = &ended.briefs("sage")[0];
        assert!(
            brief.contains("DIFFED") && !brief.contains("PROPOSED") && !brief.contains("SUMMED"),
            "{brief}"
        );
    }
    let test = approved(
        Test::new().unshadowed().play(""),
        &[(".archeflow/workflows/own.yaml", &workflow("always"))],
    );
    test.go(&["--workflow", "own", "--strategy", "pipeline"]).refused(2, &["own.yaml", "pdca"]);
}

#[test]
fn af_023_a_team_without_a_gatekeeper_needs_every_reviewer() {
    let lists = team("[creator]", "[maker]", "[sage, skeptic]", "max_cycles: 3\n");
    let test = approved(Test::new().play(""), &[(".archeflow/teams/own.yaml", &lists)]);
    let merged = test.go(&["--team", "own", "--auto-merge"]).ended("merged", "approved", 0);
    assert_eq!((merged.times("sage"), merged.times("skeptic"), merged.times("guardian")), (1, 1, 0));
    assert_eq!(merged.events("run.start")[0]["max_cycles"], 3);
    let failing = Test::new().play("== sage ==\nexit 3\n\n");
    let failing = approved(failing, &[(".archeflow/teams/own.yaml", &lists)]);
    failing.go(&["--team", "own", "--auto-merge"]).ended("failed", "agent_failures", 30);
}

#[test]
fn bx_07_a_lens_brings_categories_focus_context_evidence_and_tiers() {
    let lens = "finding_categories: [moat-breach]\ncontext_inject:\n  check: [docs/castle.md]\nattention:\n  guardian:\n    \
                weight: 1.5\n    extra_focus: LOOK-AT-THE-MOAT\nevidence_rules:\n  - category: moat-breach\n    \
                requires: [run]\nmodel_overrides:\n  guardian: opus\n";
    let breach = "src/app.txt:1 | CRITICAL | moat-breach | The moat is dry | Fill it | `line 1`";
    let shown = "src/app.txt:1 | CRITICAL | moat-breach | The moat is dry | Fill it | Output: no water";
    let files = [(".archeflow/lenses/castle.yaml", lens), ("docs/castle.md", "THE-CASTLE-STANDS\n")];
    // The evidence the lens asks for is missing: the finding is advice.
    let test = approved(Test::new().play(&review("guardian attempt=1", "REJECTED", &[breach])), &files);
    let merged = test.go(&["--lens", "castle", "--auto-merge"]).ended("merged", "approved", 0);
    assert_eq!(merged.events("evidence.downgrade")[0]["reason"], "required_evidence_missing");
    let brief = &merged.briefs("guardian")[0];
    for words in ["LOOK-AT-THE-MOAT", "weight 1.5", "moat-breach", "THE-CASTLE-STANDS"] {
        assert!(brief.contains(words), "{words}\n{brief}");
    }
    assert!(!merged.briefs("maker")[0].contains("THE-CASTLE-STANDS"));
    let start = merged.events("run.start")[0];
    assert_eq!((&start["lenses"][0], &start["categories"][0]), (&"castle".into(), &"moat-breach".into()));
    assert_eq!(merged.events("agent.start")[2]["model"], "opus");
    // With it, the finding counts and goes to the Creator.
    let test = approved(Test::new().play(&review("guardian cycle=1", "REJECTED", &[shown])), &files);
    let merged = test
        .go(&["--lens", "castle", "--workflow", "standard", "--auto-merge"])
        .ended("merged", "approved", 0);
    let open = &merged.events("cycle.boundary")[0]["open"][0];
    assert_eq!(
        (&open["category"], &open["routes_to"]),
        (&"moat-breach".into(), &"creator".into()),
        "{merged}"
    );
    // What it wants to show has to be there.
    test.git(["rm", "-q", "docs/castle.md"]);
    test.commit("Tear it down");
    test.go(&["--lens", "castle"]).refused(2, &[".archeflow/lenses/castle.yaml:3", "docs/castle.md"]);
    let shadow = "shadow_overrides:\n  guardian:\n    nothing: 4\n";
    let test = approved(Test::new().play(""), &[(".archeflow/lenses/castle.yaml", shadow)]);
    let words =
        [".archeflow/lenses/castle.yaml:3", "shadow_overrides.guardian.nothing", "shadows.paranoid.nothing"];
    test.go(&["--lens", "castle"]).refused(2, &words);
    test.go(&["--lens", "glass"]).refused(2, &["--lens", "`glass`", "castle, compliance-gdpr"]);
}

#[test]
fn af_004_the_domain_is_detected_from_files_and_a_voice_reaches_the_writers() {
    let test = Test::new().play(&review("guardian", "REJECTED", &[WARNS]));
    test.file("voice.md", "The narrator never says MOIST.\n");
    test.commit("A voice");
    let ended = test.go(&["--workflow", "standard", "--auto-merge"]);
    let start = ended.events("run.start")[0];
    assert_eq!(
        (&start["domain"], &start["chosen"]["domain_by"]),
        (&"writing".into(), &"there is a voice.md".into())
    );
    assert_eq!(ended.decided("AF-004")["decision"], "domain writing");
    for (who, hears) in [
        ("explorer", false),
        ("creator", true),
        ("maker", true),
        ("guardian", false),
        ("skeptic", false),
        ("sage", true),
    ] {
        let brief = &ended.briefs(who)[0];
        assert_eq!(brief.contains("MOIST"), hears, "{who}\n{brief}");
        assert!(brief.contains("module: chapter"), "{who}\n{brief}");
    }
    assert!(ended.briefs("sage")[0].contains("voice consistency"));
    // Said otherwise, and a project's own words.
    let files = [(
        ".archeflow/domains/research.yaml",
        "concepts:\n  module: volume\nreview_focus:\n  maker: OWN-FOCUS\n",
    )];
    let test = approved(Test::new().play(""), &files);
    test.file("voice.md", "The narrator never says MOIST.\n");
    test.commit("A voice");
    let merged = test.go(&["--domain", "research", "--auto-merge"]).ended("merged", "approved", 0);
    let brief = &merged.briefs("maker")[0];
    assert!(
        brief.contains("module: volume") && brief.contains("OWN-FOCUS") && !brief.contains("MOIST"),
        "{brief}"
    );
    assert_eq!(merged.decided("AF-004")["input"], "flag");
    for (what, words) in
        [("research", "module: volume"), ("writing", "module: chapter"), ("security", "auth-bypass")]
    {
        let explained = test.run(&["explain", what]);
        assert!(explained.code == 0 && explained.stdout.contains(words), "{explained}");
    }
    let planned = test.go(&["--dry-run"]).ended("dry_run", "dry_run", 0);
    let asked = planned.events("question.asked")[0]["details"].to_string();
    assert!(asked.contains("domain writing (there is a voice.md)"), "{asked}");
}

#[test]
fn d_08_archetypes_lenses_teams_workflows_and_domains_need_approval() {
    let workflow = "phases:\n  plan:\n    archetypes: [creator]\n  do:\n    archetypes: [maker]\n  check:\n    archetypes: [guardian]\n";
    let rows = [
        (".archeflow/archetypes/poet.md", archetype("poet", "reviewer", "check", "diff"), "archetypes.poet"),
        (".archeflow/lenses/own.yaml", "finding_categories: [own]\n".to_owned(), "lenses.own"),
        (".archeflow/teams/own.yaml", team("[creator]", "[maker]", "[guardian]", ""), "teams.own"),
        (".archeflow/workflows/own.yaml", workflow.to_owned(), "workflows.own"),
        (".archeflow/domains/code.yaml", "metrics: [lines]\n".to_owned(), "domains.code"),
    ];
    each(rows, |(path, text, key)| {
        let test = Test::new().play("");
        test.file(path, &text);
        test.commit("Configure");
        let refused = test.go(&["--auto-merge"]).refused(20, &[key, "archeflow trust"]);
        assert!(refused.sent().is_empty());
        assert!(test.run(&["trust", "--show"]).stdout.contains(key));
        assert_eq!(test.run(&["trust", "--yes"]).code, 0);
        test.go(&["--auto-merge"]).ended("merged", "approved", 0);
        // A file that can't be read can't be approved either.
        test.file(path, "wrong: [\n");
        test.commit("Break it");
        test.go(&["--auto-merge"]).refused(2, &[path]);
    });
}

#[test]
fn bx_19_bundles_are_written_accepted_and_used() {
    let listed = Test::new().run(&["init", "--list"]).stdout;
    for words in ["quick-fix", "$2", "backend-feature", "$5", "security-review", "$15", "writing", "research"]
    {
        assert!(listed.contains(words), "{listed}");
    }
    each(["quick-fix", "backend-feature", "security-review", "writing", "research"], |name| {
        let test = Test::new().play("").without_tests();
        let tests = ["--test-command", "sh tests/check.sh"];
        assert_eq!(test.run(&["init", name, tests[0], tests[1]]).code, 0);
        test.run(&["init", name]).refused(2, &["not overwritten", ".archeflow/config.yaml"]);
        test.commit("Configure");
        assert_eq!(test.run(&["trust", "--yes"]).code, 0);
        let shown = test.run(&["config", "show"]);
        assert!(shown.code == 0 && shown.stdout.contains(name), "{shown}");
        let arguments = test.arguments(TASK, &["--auto-merge"]);
        let given = arguments.iter().map(String::as_str);
        let given: Vec<&str> = given.filter(|word| !matches!(*word, "--workflow" | "fast")).collect();
        let merged = test.run(&given).ended("merged", "approved", 0);
        if name == "security-review" {
            assert!(merged.briefs("guardian")[0].contains("auth-bypass"));
        }
        if name == "writing" {
            assert_eq!(merged.events("run.start")[0]["domain"], "writing");
        }
    });
}

#[test]
fn bx_25_a_saved_bundle_begins_another_project() {
    // Saving is the one thing that writes to the user's own configuration.
    let test = Test::new().play("").meanwhile(&["home:.config/archeflow/bundles"]);
    test.run(&["init", "--save", "mine"]).refused(2, &["nothing to save"]);
    test.file(".archeflow/config.yaml", "team: own\ntest_command: sh tests/check.sh\n");
    test.file(".archeflow/teams/own.yaml", team("[creator]", "[maker]", "[guardian]", ""));
    assert_eq!(test.run(&["init", "--save", "mine"]).code, 0);
    assert!(test.run(&["init", "--list"]).stdout.contains("mine"));
    test.run(&["init", "--from", "mine"]).refused(2, &["config.yaml", "own.yaml"]);
    fs::remove_dir_all(test.repo.join(".archeflow")).unwrap();
    test.run(&["init", "--from", "mine", "--set", "confidence_floor=2"])
        .refused(2, &["--set", "confidence_floor", "0 to 1"]);
    assert_eq!(test.run(&["init", "--from", "mine", "--set", "confidence_floor=0.6"]).code, 0);
    let config = test.read(".archeflow/config.yaml");
    assert!(config.contains("confidence_floor: 0.6\n") && config.contains("team: own\n"), "{config}");
    test.commit("Configure");
    assert_eq!(test.run(&["trust", "--yes"]).code, 0);
    test.go(&["--auto-merge"]).ended("merged", "approved", 0);
}

/// What a person says, and where a run is entered again, concerns the seat and not the name.
#[test]
fn bx_26_a_team_of_strangers_is_asked_answered_and_entered_again() {
    let names = ["scout", "architect", "builder", "warden"];
    let files: Vec<(String, String)> = SEATS
        .iter()
        .filter(|(name, ..)| names.contains(name))
        .map(|(name, role, phase, sees, _)| {
            (format!(".archeflow/archetypes/{name}.md"), archetype(name, role, phase, sees))
        })
        .chain([(
            ".archeflow/teams/own.yaml".to_owned(),
            team("[scout, architect]", "[builder]", "[warden]", "max_cycles: 1\n"),
        )])
        .collect();
    let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    let rest = scenes("scout", "explorer") + &scenes("builder", "maker");
    let play = proposal("architect attempt=1", ["0.2", "0.9", "0.2"])
        + &proposal("architect", ["0.9", "0.9", "0.2"])
        + &rest
        + &review("warden", "REJECTED", &[WARNS]);
    let test = approved(Test::new().play(&play), &files);
    let asked = test.go(&["--team", "own", "--workflow", "standard", "--unattended", "--auto-merge"]);
    let asked = asked.ended("awaiting_answer", "low_confidence", 10);
    assert_eq!(asked.events("question.asked")[0]["archetype"], "architect");
    let stopped = test.run(&["answer", &asked.id, "It is about the line", "--unattended", "--auto-merge"]);
    let stopped = stopped.ended("stopped", "max_cycles", 14);
    assert_eq!(
        stopped.sent(),
        ["scout/work", "architect/work", "architect/work", "scout/research", "builder/work", "warden/work"],
        "{stopped}"
    );
    assert!(stopped.briefs("architect")[1].contains("It is about the line"));
    let test = test.play(&(rest + &review("warden", "APPROVED", &[])));
    let agent = format!("script:{}/agents/agents.play", test.base().display());
    fs::remove_file(stopped.artifacts.join("check-warden.md")).unwrap();
    let again = |phase: &str| {
        test.run(&["run", "--start-from", phase, "--run", &stopped.id, "--agent", &agent, "--auto-merge"])
    };
    again("act").refused(2, &["check-warden.md"]);
    let merged = again("check").ended("merged", "approved", 0);
    assert_eq!(merged.times("warden"), 2, "{merged}");
    assert!(merged.briefs("warden")[1].contains("RISK-NAMED"));
    let other = ["run", "--start-from", "check", "--run", &stopped.id, "--agent", &agent, "--team", "other"];
    test.run(&other).refused(2, &["--team"]);
}
