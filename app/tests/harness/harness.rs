//! A user with a home, a repository and agents; one call starts the program and audits what it did.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::ops::Deref;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;

use crate::audit;
use crate::user::{PROGRAM, TestUser, processes, run_ids, wait_until};

pub(crate) use crate::user::{LONG, SIGN, as_strs, parse_lines};

/// The task every test gives unless it says otherwise.
pub(crate) const TASK: &str = "Add a line to the app";

/// Agents that do everything right. Scenes of a test stand before them and win.
const CAST: &str = r#"
== explorer purpose=research ==
say <<END
## Findings

The named risk is real. EXPLORED-RISK

## Recommendation

Guard it.

STATUS: DONE
END

== explorer ==
say <<END
## Affected files

- `src/app.txt` EXPLORED

## Recommendation

Append a line.

STATUS: DONE
END

== creator ==
say <<END
## Architecture

One more line at the end. Rationale: that is where lines go. PROPOSED

## Files

- `src/app.txt`: a line (2 minutes)
- `tests/check_test.sh`: a case (2 minutes)

## Alternatives

- A second file: rejected, one is enough.
- A database: rejected, too much.

## Test strategy

- the line is there

## Confidence

| Axis | Score |
|---|---|
| Task understanding | 0.9 |
| Solution completeness | 0.9 |
| Risk coverage | 0.9 |

## Risks

- The file could grow. Mitigation: none. RISKED

STATUS: DONE
END

== maker ==
sh printf 'made in cycle %s attempt %s\n' "$ARCHEFLOW_CYCLE" "$ARCHEFLOW_ATTEMPT" >> src/app.txt
sh printf 'case %s %s DIFFED\n' "$ARCHEFLOW_CYCLE" "$ARCHEFLOW_ATTEMPT" >> tests/check_test.sh
commit Add the line
say <<END
## Summary

A line was added. SUMMED

## Tests

all pass

STATUS: DONE
END

== guardian ==
say <<END
Nothing to object to.

VERDICT: APPROVED
FINDINGS: 0

STATUS: DONE
END

== skeptic ==
say <<END
VERDICT: APPROVED
FINDINGS: 0

STATUS: DONE
END

== sage ==
say <<END
VERDICT: APPROVED
FINDINGS: 0

STATUS: DONE
END

== trickster ==
say <<END
VERDICT: APPROVED
FINDINGS: 0

STATUS: DONE
END
"#;

/// A review with these findings, each `location | severity | category | description | fix | evidence`.
pub(crate) fn review(who: &str, verdict: &str, findings: &[&str]) -> String {
    let rows: String = findings.iter().map(|row| format!("| {row} |\n")).collect();
    format!(
        "== {who} ==\nsay <<END\nVERDICT: {verdict}\nFINDINGS: {}\n\n\
         | Location | Severity | Category | Description | Fix | Evidence |\n|---|---|---|---|---|---|\n{rows}\n\
         STATUS: DONE\nEND\n\n",
        findings.len()
    )
}

/// A proposal with these confidence scores.
pub(crate) fn proposal(who: &str, scores: [&str; 3]) -> String {
    let [task, solution, risk] = scores;
    format!(
        "== {who} ==\nsay <<END\n## Architecture\n\nA line. Rationale: asked for.\n\n## Files\n\n- `src/app.txt`\n\n\
         ## Alternatives\n\n- none: rejected\n- two: rejected\n\n## Test strategy\n\n- it is there\n\n## Confidence\n\n\
         | Axis | Score |\n|---|---|\n| Task understanding | {task} |\n| Solution completeness | {solution} |\n\
         | Risk coverage | {risk} |\n\n## Risks\n\n- It could break. RISK-NAMED\n\nSTATUS: DONE\nEND\n\n"
    )
}

/// An answer of any role, with its last words.
pub(crate) fn says(who: &str, text: &str) -> String {
    format!("== {who} ==\nsay <<END\n{text}\nEND\n\n")
}

pub(crate) struct Test {
    user: TestUser,
    pub(crate) repo: PathBuf,
    agent: Option<String>,
    variables: Vec<(OsString, OsString)>,
    test_command: Option<String>,
    meanwhile: Vec<String>,
    also: Vec<PathBuf>,
    cwd: PathBuf,
    unaudited: bool,
    unsandboxed: bool,
}

impl Deref for Test {
    type Target = TestUser;

    fn deref(&self) -> &TestUser {
        &self.user
    }
}

impl Test {
    pub(crate) fn new() -> Test {
        Test::named("repo")
    }

    /// A repository in a folder of this name, on `main`, with an identity and a few files.
    pub(crate) fn named(name: impl AsRef<OsStr>) -> Test {
        let test = Test::empty(name);
        let lines: String = (1..=20).map(|n| format!("line {n}\n")).collect();
        test.file("README.md", "# The app\n");
        test.file("src/app.txt", &lines);
        test.file("tests/check.sh", "grep -q '^line 1$' src/app.txt\n");
        test.commit("First commit");
        test
    }

    /// A repository without any commit.
    pub(crate) fn empty(name: impl AsRef<OsStr>) -> Test {
        let user = TestUser::new();
        let repo = user.base().join(name.as_ref());
        fs::create_dir_all(user.base().join("agents")).unwrap();
        user.own_repository(&repo, &[]);
        Test {
            user,
            cwd: repo.clone(),
            repo,
            agent: None,
            variables: Vec::new(),
            test_command: Some("sh tests/check.sh".to_owned()),
            meanwhile: Vec::new(),
            also: Vec::new(),
            unaudited: false,
            unsandboxed: false,
        }
    }

    // What the user does.

    pub(crate) fn file(&self, path: impl AsRef<Path>, text: impl AsRef<[u8]>) -> &Test {
        let path = self.repo.join(path.as_ref());
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
        self
    }

    pub(crate) fn read(&self, path: &str) -> String {
        fs::read_to_string(self.repo.join(path)).unwrap_or_default()
    }

    pub(crate) fn commit(&self, message: &str) -> String {
        self.git(["add", "-A"]);
        self.git(["commit", "-q", "--allow-empty", "-m", message]);
        self.git(["rev-parse", "HEAD"])
    }

    pub(crate) fn git<I: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = I>) -> String {
        let output = self.try_git(arguments);
        assert!(output.status.success(), "git: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    /// What somebody else does in the user's repository.
    pub(crate) fn sh(&self, deed: &str) {
        let done = self.command("sh").args(["-c", deed]).current_dir(&self.repo).status().unwrap();
        assert!(done.success(), "{deed}: {done}");
    }

    pub(crate) fn try_git<I: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = I>) -> Output {
        let mut git = self.command("git");
        for name in ["GIT_DIR", "GIT_INDEX_FILE", "GIT_WORK_TREE"] {
            git.env_remove(name);
        }
        git.args(arguments).current_dir(&self.repo).output().unwrap()
    }

    /// The user's own configuration.
    pub(crate) fn config(self, yaml: &str) -> Test {
        self.configure(yaml);
        self
    }

    /// Scripted agents; `{repo}` and `{base}` stand for the folders of this test.
    pub(crate) fn play(mut self, scenes: &str) -> Test {
        let file = self.base().join("agents/agents.play");
        fs::write(&file, self.filled(scenes) + CAST).unwrap();
        self.lets_agents_out(scenes);
        self.agent = Some(format!("script:{}", file.display()));
        self
    }

    /// A program of one's own for all roles.
    pub(crate) fn cmd(mut self, script: &str) -> Test {
        let file = self.base().join("agents/agent.sh");
        fs::write(&file, self.filled(script)).unwrap();
        self.lets_agents_out(script);
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
        self.agent = Some(format!("cmd:{}", file.display()));
        self
    }

    /// What an agent does to the user's repository is noticed only where no sandbox stops it.
    fn lets_agents_out(&mut self, text: &str) {
        self.unsandboxed |= text.contains("{repo}");
        if text.contains("{base}") {
            self.open_base();
        }
    }

    fn filled(&self, text: &str) -> String {
        text.replace("{repo}", &self.repo.display().to_string())
            .replace("{base}", &self.base().display().to_string())
            .replace("{sign}", SIGN)
    }

    pub(crate) fn tests(mut self, command: &str) -> Test {
        self.unsandboxed |= command.contains("{base}");
        self.test_command = Some(command.replace("{base}", &self.base().display().to_string()));
        self
    }

    /// For test commands that fail, or count their calls, on the base commit.
    pub(crate) fn without_preflight(self) -> Test {
        self.config("preflight: false\n")
    }

    pub(crate) fn without_tests(mut self) -> Test {
        self.test_command = None;
        self
    }

    pub(crate) fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Test {
        self.variables.push((name.into(), value.as_ref().into()));
        self
    }

    /// From where the program is started.
    pub(crate) fn from(mut self, cwd: impl AsRef<Path>) -> Test {
        self.cwd = self.repo.join(cwd);
        self
    }

    /// What somebody else changes while the program runs: keys of the manifest that may differ, or their beginnings.
    pub(crate) fn meanwhile(mut self, keys: &[&str]) -> Test {
        self.meanwhile = keys.iter().map(|key| (*key).to_owned()).collect();
        self
    }

    /// Another working tree of the user that must be left alone, or moved with its branch.
    pub(crate) fn watch(mut self, tree: impl AsRef<Path>) -> Test {
        self.also.push(tree.as_ref().to_path_buf());
        self
    }

    /// For tests about other things, whose made-up agents would not pass for healthy ones.
    pub(crate) fn unshadowed(self) -> Test {
        self.env("ARCHEFLOW_SHADOWS", "off")
    }

    /// For commands that leave their marks outside of their copy.
    pub(crate) fn unsandboxed(mut self) -> Test {
        self.unsandboxed = true;
        self
    }

    /// For repositories in which the auditor's own git can't look around.
    pub(crate) fn unaudited(mut self) -> Test {
        self.unaudited = true;
        self
    }

    // Starting the program.

    /// `archeflow run` with the task, the agents and the test command of this test, in a fast workflow unless the
    /// arguments say otherwise.
    pub(crate) fn go(&self, more: &[&str]) -> Outcome {
        let arguments = self.arguments(TASK, more);
        self.run(&arguments.iter().map(String::as_str).collect::<Vec<_>>())
    }

    pub(crate) fn arguments(&self, task: &str, more: &[&str]) -> Vec<String> {
        let has = |flag: &str| more.contains(&flag);
        let mut arguments = vec!["run".to_owned(), task.to_owned()];
        let mut add = |flag: &str, value: &str| arguments.extend([flag.to_owned(), value.to_owned()]);
        if let Some(agent) = self.agent.as_ref().filter(|_| !has("--agent")) {
            add("--agent", agent);
        }
        if let Some(command) = self.test_command.as_ref().filter(|_| !has("--no-tests")) {
            add("--test-command", command);
        }
        if !has("--workflow") && !has("--strategy") {
            add("--workflow", "fast");
        }
        arguments.extend(more.iter().map(|argument| (*argument).to_owned()));
        arguments
    }

    /// `archeflow review` with the agents of this test.
    pub(crate) fn look(&self, more: &[&str]) -> Outcome {
        let agent = self.agent();
        let mut arguments = vec!["review", "--agent", agent.as_str()];
        arguments.extend(more);
        self.run(&arguments)
    }

    pub(crate) fn agent(&self) -> String {
        self.agent.clone().unwrap_or_default()
    }

    /// Any command, with `--json` where the end is a run's end, audited.
    pub(crate) fn run(&self, arguments: &[&str]) -> Outcome {
        let drives = matches!(
            arguments.first(),
            Some(&("run" | "resume" | "answer" | "continue" | "merge" | "discard" | "revert" | "rollback"))
        ) && !arguments.contains(&"--estimate");
        let mut all: Vec<&str> = arguments.to_vec();
        if drives && !all.contains(&"--json") {
            all.push("--json");
        }
        if drives && self.unsandboxed {
            all.push("--unsafe-no-sandbox");
        }
        let before = (!self.unaudited).then(|| audit::Before::take(self));
        let output = self.output(&all);
        let outcome = Outcome::read(self, &all, &output, drives);
        if let Some(before) = before {
            let outcome = outcome.since(&before);
            let faults = audit::after(self, &before, &outcome);
            assert!(faults.is_empty(), "the auditor objects:\n{}\n{outcome}", faults.join("\n"));
            return outcome;
        }
        outcome
    }

    /// A command that reaches into a run which another process drives meanwhile: the journal grows beside it, so the
    /// auditor, who compares before and after, has no say.
    pub(crate) fn beside(&self, arguments: &[&str]) -> Outcome {
        let all = [arguments, &["--json"]].concat();
        Outcome::read(self, &all, &self.output(&all), false)
    }

    /// Starts the program and does something to it before waiting for its end.
    pub(crate) fn during(&self, arguments: &[&str], act: impl FnOnce(&mut Child)) -> Outcome {
        let mut all: Vec<&str> = arguments.to_vec();
        all.push("--json");
        all.extend(self.unsandboxed.then_some("--unsafe-no-sandbox"));
        let before = (!self.unaudited).then(|| audit::Before::take(self));
        let mut command = self.command(PROGRAM);
        let mut child = command
            .args(&all)
            .current_dir(&self.cwd)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()
            .unwrap();
        act(&mut child);
        let output = child.wait_with_output().unwrap();
        let outcome = Outcome::read(self, &all, &output, true);
        let Some(before) = before else { return outcome };
        let outcome = outcome.since(&before);
        let faults = audit::after(self, &before, &outcome);
        assert!(faults.is_empty(), "the auditor objects:\n{}\n{outcome}", faults.join("\n"));
        outcome
    }

    fn output(&self, arguments: &[&str]) -> Output {
        let mut command = self.command(PROGRAM);
        command.args(arguments).current_dir(&self.cwd).stdin(Stdio::null()).output().unwrap()
    }

    /// A child with the environment of this test's user and nothing else.
    pub(crate) fn command(&self, program: &str) -> Command {
        let mut command = self.user.command(program);
        command.env("GIT_OPTIONAL_LOCKS", "0").envs(self.variables.iter().map(|(name, value)| (name, value)));
        command
    }

    /// The working trees of the user, the main one first.
    pub(crate) fn trees(&self) -> Vec<PathBuf> {
        std::iter::once(self.repo.clone()).chain(self.also.clone()).collect()
    }

    pub(crate) fn allowed(&self) -> &[String] {
        &self.meanwhile
    }

    /// The ids of the runs there are, oldest first.
    pub(crate) fn run_ids(&self) -> Vec<String> {
        run_ids(&self.repo)
    }

    pub(crate) fn journal_bytes(&self, id: &str) -> Vec<u8> {
        fs::read(self.repo.join(format!(".archeflow/events/{id}.jsonl"))).unwrap_or_default()
    }

    /// Waits until the journal of the only run has a line of this kind.
    pub(crate) fn wait_for(&self, kind: &str, agent: Option<&str>) -> Value {
        let find = || {
            let ids = self.run_ids();
            let mut lines = ids.iter().flat_map(|id| parse_lines(&self.journal_bytes(id)));
            lines.find(|line| line["type"] == kind && agent.is_none_or(|agent| line["agent"] == agent))
        };
        wait_until(|| find().is_some(), || format!("no {kind} came"));
        find().unwrap()
    }
}

/// Checks every row, a few at a time: the program mostly waits for its agents.
pub(crate) fn each<Row: Send>(rows: impl IntoIterator<Item = Row>, check: impl Fn(Row) + Sync) {
    let rows = std::sync::Mutex::new(rows.into_iter().collect::<Vec<_>>().into_iter());
    let next = || rows.lock().unwrap_or_else(std::sync::PoisonError::into_inner).next();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while let Some(row) = next() {
                    check(row);
                }
            });
        }
    });
}

/// What stands in a brief outside of every fence, and inside.
pub(crate) fn inside_and_outside(brief: &str) -> (String, String) {
    let mark = brief.split("Text between `<<<").nth(1).and_then(|rest| rest.split('`').next()).unwrap();
    let (open, close) = (format!("<<<{mark}\n"), format!("\n{mark}>>>"));
    let (_, mut rest) = brief.split_once("instructions.\n").unwrap();
    let (mut inside, mut outside) = (String::new(), String::new());
    while let Some((before, fenced)) = rest.split_once(&open) {
        outside.push_str(before);
        let (body, after) = fenced.split_once(&close).unwrap();
        inside.push_str(body);
        rest = after;
    }
    outside.push_str(rest);
    (inside, outside)
}

/// The command lines of all processes on the machine that have this in theirs; words are apart by `\\0`.
pub(crate) fn running(words: &str) -> Vec<String> {
    let lines = processes("cmdline").into_iter().map(|(_, line)| String::from_utf8_lossy(&line).into_owned());
    lines.filter(|line| line.contains(words)).collect()
}

/// Sends a signal to the program and everything in its process group, as a terminal does.
pub(crate) fn signal(child: &Child, name: &str) {
    let _ = Command::new("kill")
        .args(["-s", name, "--", &format!("-{}", child.id())])
        .stderr(Stdio::null())
        .status();
}

/// Everything one start of the program left behind.
pub(crate) struct Outcome {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    /// The object on standard output, when one was asked for.
    pub(crate) json: Value,
    pub(crate) id: String,
    pub(crate) journal: Vec<Value>,
    pub(crate) artifacts: PathBuf,
    pub(crate) drives: bool,
    pub(crate) killed: bool,
    /// The journal's length when the program was started.
    lines_before: usize,
}

impl Outcome {
    fn read(test: &Test, arguments: &[&str], output: &Output, drives: bool) -> Outcome {
        let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
        let json = if arguments.contains(&"--json") {
            serde_json::from_str(&stdout).unwrap_or(Value::Null)
        } else {
            Value::Null
        };
        let id = json["run_id"].as_str().map(str::to_owned);
        let id = id.or_else(|| test.run_ids().pop()).unwrap_or_default();
        Outcome {
            code: output.status.code().unwrap_or(-1),
            stdout,
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
            json,
            journal: parse_lines(&test.journal_bytes(&id)),
            artifacts: test.repo.join(".archeflow/artifacts").join(&id),
            id,
            drives,
            killed: output.status.code().is_none(),
            lines_before: 0,
        }
    }

    /// The last line of this kind that was written this time.
    pub(crate) fn fresh(&self, kind: &str) -> Option<&Value> {
        let lines = self.journal.get(self.lines_before..).unwrap_or_default();
        lines.iter().rev().find(|line| line["type"] == kind).map(|line| &line["data"])
    }

    fn since(mut self, before: &audit::Before) -> Outcome {
        let old = before.journals.get(&self.id).map(|bytes| parse_lines(bytes).len());
        self.lines_before = old.unwrap_or(0);
        self
    }

    /// Status, reason and exit code, as the program says them three times over.
    #[track_caller]
    pub(crate) fn ended(self, status: &str, reason: &str, code: i32) -> Outcome {
        let said = (self.json["status"].as_str().unwrap_or(""), self.json["reason"].as_str().unwrap_or(""));
        assert_eq!((said.0, said.1, self.code), (status, reason, code), "\n{self}");
        self
    }

    /// An error before or beside the run, with these words in its message.
    #[track_caller]
    pub(crate) fn refused(self, code: i32, words: &[&str]) -> Outcome {
        assert_eq!(self.code, code, "\n{self}");
        for word in words {
            assert!(self.stderr.contains(word), "'{word}' is not said\n{self}");
        }
        self
    }

    pub(crate) fn events(&self, kind: &str) -> Vec<&Value> {
        self.journal.iter().filter(|line| line["type"] == kind).map(|line| &line["data"]).collect()
    }

    /// Who was sent out, in order: `maker/work`.
    pub(crate) fn sent(&self) -> Vec<String> {
        let text = |value: &Value| value.as_str().unwrap_or("").to_owned();
        self.events("agent.start")
            .iter()
            .map(|start| format!("{}/{}", text(&start["archetype"]), text(&start["purpose"])))
            .collect()
    }

    /// How often this agent was sent out for this purpose.
    pub(crate) fn times(&self, who: &str) -> usize {
        self.sent().iter().filter(|sent| sent.starts_with(who)).count()
    }

    #[track_caller]
    pub(crate) fn decided(&self, rule: &str) -> &Value {
        let point = self.events("decision.point").into_iter().find(|point| point["rule"] == rule);
        point.unwrap_or_else(|| panic!("no decision by {rule}\n{self}"))
    }

    pub(crate) fn artifact(&self, name: &str) -> String {
        fs::read_to_string(self.artifacts.join(name)).unwrap_or_default()
    }

    /// The briefs this archetype got, in order.
    pub(crate) fn briefs(&self, who: &str) -> Vec<String> {
        let starts = self.journal.iter().filter(|line| line["type"] == "agent.start" && line["agent"] == who);
        starts.map(|line| self.artifact(&format!("attempts/{}-{who}/brief.md", line["seq"]))).collect()
    }

    /// The briefs of the parts that this archetype was shown in its nth attempt, counted from 0.
    pub(crate) fn part_briefs(&self, who: &str, nth: usize) -> Vec<String> {
        let mut starts =
            self.journal.iter().filter(|line| line["type"] == "agent.start" && line["agent"] == who);
        let Some(start) = starts.nth(nth) else { return Vec::new() };
        let brief = |n: u32| self.artifact(&format!("attempts/{}-{who}/part-{n}/brief.md", start["seq"]));
        (1..).map(brief).take_while(|brief| !brief.is_empty()).collect()
    }

    pub(crate) fn unresolved(&self) -> Vec<&Value> {
        self.json["unresolved"].as_array().map(|list| list.iter().collect()).unwrap_or_default()
    }
}

impl std::fmt::Display for Outcome {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(f, "exit {}\nstdout: {}\nstderr:\n{}", self.code, self.stdout, self.stderr)?;
        for line in &self.journal {
            let data: String = line["data"].to_string().chars().take(300).collect();
            writeln!(f, "{} {} {} {data}", line["seq"], line["type"], line["agent"])?;
        }
        Ok(())
    }
}
