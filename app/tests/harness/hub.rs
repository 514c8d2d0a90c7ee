//! A user with a folder of projects and a queue, for tests of sprints.

use std::collections::BTreeMap;
use std::fs;
use std::ops::Deref;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;

use crate::user::{PROGRAM, TestUser, logs_in, printed, whole_lines};

/// Scenes of a Creator that plans, for play files.
pub(crate) const PLANS: &str = r#"
== creator ==
say <<END
## Files
- `src/work.txt`
- `tests/work_test.sh`
## Alternatives
- Another file: rejected, one is enough.
- A database: rejected, too much.
## Test strategy
- it is there
## Confidence
| Axis | Score |
|---|---|
| Task understanding | 0.9 |
| Solution completeness | 0.9 |
| Risk coverage | 0.9 |
## Risks
- None that matter. Mitigation: none.

STATUS: DONE
END
"#;

/// What a Maker says at the end, and reviewers that approve.
pub(crate) const ENDS: &str = r#"
commit Work
say <<END
## Summary

It is done.

## Tests

all pass

STATUS: DONE
END

== * ==
say <<END
VERDICT: APPROVED
FINDINGS: 0

STATUS: DONE
END
"#;

/// What the machine is busy with besides is none of a test's business.
pub(crate) const ROOM: &str = "load_percent: 100000, memory_mb: 0";

pub(crate) struct Projects {
    user: TestUser,
}

impl Deref for Projects {
    type Target = TestUser;

    fn deref(&self) -> &TestUser {
        &self.user
    }
}

impl Projects {
    pub(crate) fn new(names: &[&str]) -> Projects {
        let projects = Projects { user: TestUser::new() };
        fs::create_dir_all(projects.hub()).unwrap();
        projects.configure(&format!("sprint: {{{ROOM}}}\n"));
        for name in names {
            projects.own_repository(&projects.hub().join(name), &[("src/app.txt", "1\n")]);
        }
        projects
    }

    pub(crate) fn hub(&self) -> PathBuf {
        self.base().join("hub")
    }

    pub(crate) fn command(&self, program: &str) -> Command {
        let mut command = self.user.command(program);
        command.env("ARCHEFLOW_SHADOWS", "off").current_dir(self.hub());
        command
    }

    pub(crate) fn git(&self, project: &str, arguments: &[&str]) -> String {
        self.git_in(&self.hub().join(project), arguments)
    }

    /// `archeflow sprint …` as a user would type it.
    pub(crate) fn sprint(&self, arguments: &[&str]) -> Output {
        self.command(PROGRAM).arg("sprint").args(arguments).output().unwrap()
    }

    pub(crate) fn add(&self, id: &str, project: &str, more: &[&str]) {
        let mut arguments = vec!["add", project, id, "--id", id, "--estimate", "S"];
        arguments.extend(more);
        let output = self.sprint(&arguments);
        assert!(output.status.success(), "{}", printed(&output));
    }

    /// An autonomous sprint with the agents of `agents.play`.
    pub(crate) fn begin(&self, test: &str, variables: &[(&str, &str)], more: &[&str]) -> Child {
        let agent = format!("script:{}", self.base().join("agents.play").display());
        self.open_base();
        self.command(PROGRAM)
            .args(["sprint", "run", "--autonomous", "--json", "--agent", &agent, "--test-command", test])
            .args(more)
            // Such tests leave their marks beside the projects.
            .args(test.contains(&self.base().display().to_string()).then_some("--unsafe-no-sandbox"))
            .envs(variables.iter().copied())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    }

    pub(crate) fn queue_file(&self) -> PathBuf {
        self.hub().join("docs/orchestra/queue.json")
    }

    /// The queue as it is, or what is wrong with it.
    pub(crate) fn queue(&self) -> Result<Value, String> {
        let text = fs::read(self.queue_file()).map_err(|error| error.to_string())?;
        serde_json::from_slice(&text).map_err(|error| error.to_string())
    }

    /// A field of every item.
    pub(crate) fn fields(&self, name: &str) -> BTreeMap<String, String> {
        let queue = self.queue().unwrap();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let items = queue["items"].as_array().unwrap().iter();
        items.map(|item| (text(&item["id"]), text(&item[name]))).collect()
    }

    pub(crate) fn statuses(&self) -> BTreeMap<String, String> {
        self.fields("status")
    }

    /// The lines of every log of a sprint.
    pub(crate) fn log(&self) -> Vec<Value> {
        let files = logs_in(&self.hub().join(".archeflow/sprints"));
        files.iter().flat_map(|path| whole_lines(&fs::read_to_string(path).unwrap_or_default())).collect()
    }
}
