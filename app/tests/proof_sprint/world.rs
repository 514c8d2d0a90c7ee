//! Twenty repositories, a queue of sixty items, agents that act by the item's name, and the program as a process.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::ops::Deref;
use std::path::PathBuf;
use std::process::{Child, Command};

use serde_json::{Value, json};

use crate::hub::{Projects, ROOM};
use crate::user::{PROGRAM, logs_in, printed, processes};

const CAST: &str = include_str!("cast.sh");
const ITEMS: &str = include_str!("items.txt");

/// Decides whether a tree is good: no red mark, rows in order, and every piece of work passes its test.
const CHECK: &str = r#"
[ ! -e src/red ] || exit 1
LC_ALL=C sort -c -u rows || exit 1
for file in src/*-*.txt; do
    [ ! -e "$file" ] || sh "tests/$(basename "$file" .txt)_test.sh" || exit 1
done
"#;
const FIRST_ROW: &str = "first\n";

/// One line of the table.
pub(crate) struct Row {
    pub(crate) id: String,
    pub(crate) project: String,
    priority: String,
    pub(crate) ends: String,
    after: Vec<String>,
}

impl Row {
    pub(crate) fn kind(&self) -> &str {
        self.id.split('-').next().unwrap()
    }

    /// Those that meet in one place say that they don't.
    fn files(&self) -> Vec<String> {
        if self.kind() == "row" { vec![format!("src/{}.txt", self.id)] } else { Vec::new() }
    }

    fn json(&self) -> Value {
        json!({
            "id": self.id, "project": self.project, "task": format!("Work on {}", self.id),
            "priority": self.priority, "estimate": "S", "status": "pending",
            "depends_on": self.after, "files": self.files(),
        })
    }
}

/// The sixty.
pub(crate) fn sixty() -> Vec<Row> {
    rows(ITEMS)
}

pub(crate) fn rows(table: &str) -> Vec<Row> {
    let lines = table.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let row = |line: &str| {
        let mut words = line.split_whitespace().map(str::to_owned);
        let mut next = || words.next().unwrap();
        let (id, project, priority, ends) = (next(), next(), next(), next());
        Row { id, project, priority, ends, after: words.collect() }
    };
    lines.map(row).collect()
}

/// What a project's tree must hold at the end, by path.
pub(crate) type Tree = BTreeMap<String, String>;

/// However many fail, and however busy the machine is: what is proved here is something else.
const SETTINGS: &str = "slots: 6, failures: 100, quality_percent: 0";

pub(crate) struct World {
    projects: Projects,
    pub(crate) rows: Vec<Row>,
}

impl Deref for World {
    type Target = Projects;

    fn deref(&self) -> &Projects {
        &self.projects
    }
}

impl World {
    pub(crate) fn new(rows: Vec<Row>) -> World {
        let world = World { projects: Projects::new(&[]), rows };
        for folder in ["stage", "watcher", "hub/docs/orchestra"] {
            fs::create_dir_all(world.base().join(folder)).unwrap();
        }
        world.write("cast.sh", CAST);
        world.open_base();
        world.configure(&format!("sprint: {{{SETTINGS}, {ROOM}}}\n"));
        world.projects().iter().for_each(|project| world.make(project));
        let items: Vec<Value> = world.rows.iter().map(Row::json).collect();
        let queue = serde_json::to_string_pretty(&json!({ "version": 1, "items": items })).unwrap();
        fs::write(world.queue_file(), queue).unwrap();
        world
    }

    fn make(&self, project: &str) {
        let tree = base_tree(project);
        let files: Vec<(&str, &str)> =
            tree.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
        self.own_repository(&self.repo(project), &files);
    }

    pub(crate) fn repo(&self, project: &str) -> PathBuf {
        self.hub().join(project)
    }

    pub(crate) fn stage(&self) -> PathBuf {
        self.base().join("stage")
    }

    pub(crate) fn projects(&self) -> BTreeSet<String> {
        self.rows.iter().map(|row| row.project.clone()).collect()
    }

    /// A command of the test's own, told from the sprint's by its home.
    pub(crate) fn own(&self, program: &str) -> Command {
        let mut command = self.command(program);
        command.env("HOME", self.base().join("watcher")).env("GIT_OPTIONAL_LOCKS", "0");
        command
    }

    pub(crate) fn git(&self, project: &str, arguments: &[&str]) -> String {
        let who = ["-c", "user.name=Jo", "-c", "user.email=jo@example.org"];
        let output = self.own("git").args(["-C", project]).args(who).args(arguments).output().unwrap();
        assert!(output.status.success(), "{project}: git {arguments:?}: {}", printed(&output));
        String::from_utf8(output.stdout).unwrap()
    }

    /// `archeflow sprint …` as a user would say it.
    pub(crate) fn sprint(&self, arguments: &[&str]) -> Command {
        let mut command = self.command(PROGRAM);
        command.env("ARCHEFLOW_FAILPOINT_LIMITS", self.stage().join("overdue"));
        command.arg("sprint").args(arguments);
        command
    }

    pub(crate) fn start(&self) -> Started {
        self.start_on(&std::env::var("PATH").unwrap())
    }

    /// With programs looked up along this path.
    pub(crate) fn start_on(&self, path: &str) -> Started {
        let log = fs::File::options().create(true).append(true).open(self.base().join("said")).unwrap();
        let mut command = self.sprint(&["run", "--autonomous"]);
        command.env("PATH", path);
        command.args(["--test-command", "sh check.sh"]);
        command.args(["--agent", &format!("cmd:sh {}", self.base().join("cast.sh").display())]);
        Started(command.stdout(log.try_clone().unwrap()).stderr(log).spawn().unwrap())
    }

    pub(crate) fn said(&self) -> String {
        let text = fs::read_to_string(self.base().join("said")).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(120)..].join("\n")
    }

    pub(crate) fn expected(&self) -> BTreeMap<String, String> {
        self.rows.iter().map(|row| (row.id.clone(), row.ends.clone())).collect()
    }

    /// What was ordered and not answered yet, by type, with its data as text.
    pub(crate) fn open_orders(&self) -> Vec<(String, String)> {
        let mut open = BTreeMap::new();
        for line in self.log() {
            let sprint = line["run_id"].as_str().unwrap().to_owned();
            let kind = line["type"].as_str().unwrap().to_owned();
            match line["data"]["start_seq"].as_u64() {
                Some(seq) => drop(open.remove(&(sprint, seq))),
                None => {
                    let seq = line["seq"].as_u64().unwrap();
                    open.insert((sprint, seq), (kind, line["data"].to_string()));
                }
            }
        }
        open.into_values().collect()
    }

    /// How much is written in all logs: of the sprint, and of the runs in it.
    pub(crate) fn progress(&self) -> u64 {
        let runs = self.rows.chunk_by(|one, two| one.project == two.project);
        let folders = runs.map(|rows| self.repo(&rows[0].project).join(".archeflow/events"));
        let all = folders.chain([self.hub().join(".archeflow/sprints")]);
        let size = |path: &PathBuf| fs::metadata(path).map_or(0, |found| found.len());
        all.flat_map(|folder| logs_in(&folder)).map(|path| size(&path)).sum()
    }

    /// What the target of a project must hold when all is over.
    pub(crate) fn tree_wanted(&self, project: &str) -> Tree {
        let mut tree = base_tree(project);
        let mut rows = vec![FIRST_ROW.to_owned()];
        for row in self.rows.iter().filter(|row| row.project == project && row.ends == "completed") {
            tree.insert(format!("src/{}.txt", row.id), "made\n".to_owned());
            tree.insert(format!("tests/{}_test.sh", row.id), format!("grep -q made src/{}.txt\n", row.id));
            if matches!(row.kind(), "row" | "moved") {
                rows.push(format!("{}\n", row.id));
            }
            if row.kind() == "moved" {
                rows.push(format!("{}\n", persons(&row.id)));
            }
        }
        rows.sort();
        tree.insert("rows".to_owned(), rows.concat());
        tree
    }

    /// What the target holds, read from the checkout, which is clean.
    pub(crate) fn tree(&self, project: &str) -> Tree {
        assert_eq!(self.git(project, &["status", "--porcelain", "--untracked-files=all"]), "", "{project}");
        let names = self.git(project, &["ls-tree", "-r", "--name-only", "main"]);
        let content = |path: &str| fs::read_to_string(self.repo(project).join(path)).unwrap();
        names.lines().map(|path| (path.to_owned(), content(path))).collect()
    }

    /// A person commits a row where an item is about to add one.
    pub(crate) fn commit_as_person(&self, row: &Row) {
        let path = self.repo(&row.project).join("rows");
        let text = fs::read_to_string(&path).unwrap();
        let mut rows: Vec<&str> = text.lines().collect();
        let mine = persons(&row.id);
        rows.push(&mine);
        rows.sort_unstable();
        fs::write(&path, rows.join("\n") + "\n").unwrap();
        self.git(&row.project, &["commit", "-q", "-m", "A row of mine", "rows"]);
        fs::write(self.stage().join(format!("{}.moved", row.id)), "").unwrap();
    }

    /// Processes that belong to the sprint, with their command lines.
    pub(crate) fn processes(&self) -> Vec<(i32, String)> {
        let home = format!("HOME={}", self.home().display());
        let ours = processes("environ").into_iter().filter(|(_, environment)| {
            // The private homes of a sandbox are below this one.
            environment.split(|byte| *byte == 0).any(|variable| variable.starts_with(home.as_bytes()))
        });
        ours.map(|(pid, _)| (pid, words(pid))).filter(|(_, words)| !words.is_empty()).collect()
    }

    /// The check of an item is running.
    pub(crate) fn is_checked(&self, row: &Row) -> bool {
        let test = format!("tests/{}_test.sh", row.id);
        self.processes().iter().any(|(_, words)| words.contains(&test))
    }

    /// This program among them, by number and command line.
    pub(crate) fn programs(&self) -> Vec<(i32, String)> {
        self.processes().into_iter().filter(|(_, words)| words.starts_with(PROGRAM)).collect()
    }
}

/// A sprint that does not outlive a test that fails.
pub(crate) struct Started(pub(crate) Child);

impl Drop for Started {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The row a person adds beside an item's.
fn persons(item: &str) -> String {
    format!("mine-beside-{item}")
}

fn base_tree(project: &str) -> Tree {
    let settings = match project {
        "r10" | "r11" => "limits:\n  silence_seconds: 1\n  tests_seconds: 1\n",
        "r12" => "costs:\n  budget_usd: 20\n",
        _ => "strategy: auto\n",
    };
    let files = [
        (".archeflow/config.yaml", settings),
        ("check.sh", CHECK),
        ("rows", FIRST_ROW),
        ("src/app.txt", "1\n"),
        ("tests/app_test.sh", "true\n"),
    ];
    files.map(|(path, text)| (path.to_owned(), text.to_owned())).into()
}

fn words(pid: i32) -> String {
    let bytes = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    String::from_utf8_lossy(&bytes).replace('\0', " ")
}
