//! U-01: the files of `docs/ci` do what they say. Their own commands run here, in a fresh clone, with stand-ins for what
//! only a CI service has: the download, the package manager and the model.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde_json::Value;

use crate::harness::{Test, review};
use crate::models::{Reply, Server};

const FINDING: &str =
    "src/app.txt:2 | CRITICAL | reliability | The second line is wrong. | Put it right. | `line two`";

/// A repository whose own configuration names commands that a review never runs, and a clone as CI makes it.
struct Job {
    test: Test,
    clone: PathBuf,
    server: Server,
    variables: BTreeMap<String, String>,
}

impl Job {
    fn new(answer: &str) -> Job {
        let test = Test::new().unaudited();
        test.file(".archeflow/config.yaml", "test_command: make everything\ngit:\n  auto_merge: true\n");
        test.file(".archeflow/hooks.yaml", "pre-merge:\n  command: ./deploy.sh\n");
        let base = test.commit("Configure").trim().to_owned();
        test.file("src/app.txt", test.read("src/app.txt").replace("line 2\n", "line two\n"));
        let head = test.commit("Change the second line").trim().to_owned();
        let clone = test.base().join("clone");
        let (from, to) = (test.repo.display().to_string(), clone.display().to_string());
        test.git(["clone", "--quiet", "--no-hardlinks", &from, &to]);
        test.git(["-C", &to, "checkout", "--quiet", "--detach", &head]);
        let server = Server::new(&[("guardian", &[Reply::Say(answer.to_owned())])]);
        test.configure("models:\n  keys: [\"127.0.0.1=ANTHROPIC_API_KEY\"]\n");
        let bin = test.base().join("bin");
        fs::create_dir(&bin).unwrap();
        let install =
            "d=${ARCHEFLOW_DIR:-$HOME/.local/bin}; mkdir -p \"$d\"; ln -sf {program} \"$d/archeflow\"";
        let install = install.replace("{program}", env!("CARGO_BIN_EXE_archeflow"));
        for (name, script) in [
            ("curl", format!("[ \"$2\" = {URL}/install.sh ] || exit 22\ncat <<'END'\n{install}\nEND\n")),
            ("sudo", "echo \"$@\" >> \"$HOME/sudo\"\n".to_owned()),
            ("apt-get", "echo \"$@\" >> \"$HOME/apt-get\"\n".to_owned()),
        ] {
            let path = bin.join(name);
            fs::write(&path, format!("#!/bin/sh\n{script}")).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        }
        let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
        let variables = [
            ("PATH", path),
            ("ANTHROPIC_BASE_URL", server.address.clone()),
            ("GITHUB_STEP_SUMMARY", test.base().join("summary.md").display().to_string()),
            ("CI_COMMIT_SHA", head),
            ("CI_MERGE_REQUEST_DIFF_BASE_SHA", base),
            ("ARCHEFLOW_URL", URL.to_owned()),
            ("ANTHROPIC_API_KEY", "a key".to_owned()),
        ];
        let variables = variables.map(|(name, value)| (name.to_owned(), value)).into();
        Job { test, clone, server, variables }
    }

    /// Runs a script as the service's shell does.
    fn run(&self, script: &str, more: &BTreeMap<String, String>) -> (i32, String) {
        let mut shell = self.test.command("sh");
        shell.args(["-e", "-c", script]).envs(&self.variables).envs(more).current_dir(&self.clone);
        let output = shell.stdin(Stdio::null()).output().unwrap();
        let text = [output.stdout.as_slice(), &output.stderr].concat();
        (output.status.code().unwrap_or(-1), String::from_utf8_lossy(&text).into_owned())
    }

    fn json(&self, name: &str) -> Value {
        serde_json::from_slice(&fs::read(self.clone.join(name)).unwrap()).unwrap()
    }
}

const URL: &str = "https://example.org/archeflow";

fn yaml(name: &str) -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/ci").join(name);
    serde_saphyr::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

/// `${{ … }}`, as far as the workflow uses it. An expression that is not listed is a mistake in the file.
fn filled(text: &str, job: &Job) -> String {
    let mut out = text.to_owned();
    for (expression, name) in [
        ("github.event.pull_request.head.sha", "CI_COMMIT_SHA"),
        ("github.event.pull_request.base.sha", "CI_MERGE_REQUEST_DIFF_BASE_SHA"),
        ("vars.ARCHEFLOW_URL", "ARCHEFLOW_URL"),
        ("secrets.ANTHROPIC_API_KEY", "ANTHROPIC_API_KEY"),
    ] {
        out = out.replace(&format!("${{{{ {expression} }}}}"), &job.variables[name]);
    }
    assert!(!out.contains("${{"), "{out}");
    out
}

/// The steps of the workflow, one after the other; gives the exit code and output of each that runs something.
fn github(job: &Job) -> Vec<(String, i32, String)> {
    let workflow = yaml("archeflow-review.yml");
    let steps = workflow["jobs"]["review"]["steps"].as_array().unwrap().clone();
    let ran = steps.iter().filter_map(|step| {
        let script = step["run"].as_str()?;
        assert!(!script.contains("${{"), "other people's text comes in by the environment: {script}");
        let none = serde_json::Map::new();
        let env = step["env"].as_object().unwrap_or(&none);
        let env = env.iter().map(|(name, value)| (name.clone(), filled(value.as_str().unwrap(), job)));
        let (code, text) = job.run(script, &env.collect());
        Some((step["name"].as_str().unwrap_or_default().to_owned(), code, text))
    });
    ran.collect()
}

#[test]
fn u_01_the_github_workflow_reviews_and_fails_on_a_critical_finding() {
    let job = Job::new(&answer("REJECTED", &[FINDING]));
    for (name, code, text) in github(&job) {
        let wanted = if name == "Review" { 14 } else { 0 };
        assert_eq!(code, wanted, "{name}: {text}");
        if name == "Review" {
            assert!(text.contains("::error file=src/app.txt,line=2"), "{text}");
        }
    }
    let sarif = job.json("review.sarif");
    assert_eq!(
        (&sarif["version"], &sarif["runs"][0]["results"][0]["level"]),
        (&"2.1.0".into(), &"error".into())
    );
    let summary = fs::read_to_string(job.test.base().join("summary.md")).unwrap();
    assert!(summary.contains("The second line is wrong."), "{summary}");
    let sudo = fs::read_to_string(job.test.home().join("sudo")).unwrap();
    assert!(sudo.contains("apparmor_restrict_unprivileged_userns=0"), "{sudo}");
    assert!(!job.server.asked_by("guardian").is_empty());
    // What is uploaded is what was written.
    let workflow = yaml("archeflow-review.yml");
    let steps = workflow["jobs"]["review"]["steps"].as_array().unwrap();
    let upload = steps.iter().find_map(|step| step["with"]["sarif_file"].as_str()).unwrap();
    assert!(job.clone.join(upload).is_file(), "{upload}");
}

#[test]
fn u_01_the_github_workflow_passes_without_findings() {
    let job = Job::new(&answer("APPROVED", &[]));
    for (name, code, text) in github(&job) {
        assert_eq!(code, 0, "{name}: {text}");
    }
    assert_eq!(job.json("review.sarif")["runs"][0]["results"], serde_json::json!([]));
}

#[test]
fn u_01_the_gitlab_job_reviews_and_fails_on_a_critical_finding() {
    let job = Job::new(&answer("REJECTED", &[FINDING]));
    let file = yaml("archeflow-review.gitlab-ci.yml");
    let lines = |name: &str| {
        let lines = file["archeflow-review"][name].as_array().unwrap().iter();
        lines.map(|line| line.as_str().unwrap().to_owned()).collect::<Vec<_>>().join("\n")
    };
    let none = BTreeMap::new();
    let (code, text) = job.run(&lines("before_script"), &none);
    assert_eq!(code, 0, "{text}");
    let (code, text) = job.run(&lines("script"), &none);
    assert_eq!(code, 14, "{text}");
    assert!(text.contains("critical[reliability]"), "{text}");
    for path in file["archeflow-review"]["artifacts"]["paths"].as_array().unwrap() {
        assert!(job.clone.join(path.as_str().unwrap()).is_file(), "{path}");
    }
    assert_eq!(job.json("review.json")["findings"][0]["severity"], "CRITICAL", "{}", job.json("review.json"));
}

/// A reviewer's answer without the scene around it.
fn answer(verdict: &str, findings: &[&str]) -> String {
    let scene = review("guardian", verdict, findings);
    let (_, text) = scene.split_once("say <<END\n").unwrap();
    text.split_once("\nEND\n").unwrap().0.to_owned()
}

#[test]
fn u_01_a_review_refuses_unapproved_commands_that_it_would_run() {
    let test = Test::new().play(&review("guardian", "APPROVED", &[]));
    test.file(".archeflow/hooks.yaml", "run-complete:\n  command: ./tell.sh\n");
    test.file(".archeflow/config.yaml", "test_command: make\n");
    test.commit("Configure");
    test.file("src/app.txt", "line one\n");
    let refused = test.look(&[]).refused(20, &["hooks.run-complete.command"]);
    assert!(!refused.stderr.contains("test_command"), "{refused}");
}

#[test]
fn u_01_several_formats_are_written_by_one_review() {
    let test = Test::new().play(&review("guardian", "REJECTED", &[FINDING]));
    test.file("src/app.txt", test.read("src/app.txt").replace("line 2\n", "line two\n"));
    let (sarif, page) = (test.base().join("a.sarif"), test.base().join("a.md"));
    let (sarif, page) = (sarif.to_str().unwrap(), page.to_str().unwrap());
    let outcome = test
        .look(&["--format", "sarif", "-o", sarif, "--format", "json", "--format", "markdown", "-o", page]);
    let json: Value =
        serde_json::from_str(&outcome.stdout).unwrap_or_else(|error| panic!("{error}\n{outcome}"));
    assert_eq!(json["findings"].as_array().map(Vec::len), Some(1), "{outcome}");
    let written: Value = serde_json::from_slice(&fs::read(sarif).unwrap()).unwrap();
    assert_eq!(written["version"], "2.1.0");
    assert!(fs::read_to_string(page).unwrap().starts_with("## Review of"), "{outcome}");
    for (arguments, words) in [
        (&["--format", "json", "--format", "sarif"][..], "two formats for standard output"),
        (&["--format", "json", "-o", "x", "--format", "sarif", "-o", "x"], "two formats for x"),
        (&["-o", "x", "-o", "y"], "--output y has no --format before it"),
    ] {
        test.look(arguments).refused(2, &[words]);
    }
}
