//! Proves that the tasks of a suite measure what they say, before anybody pays for a run.
//!
//! | Solution | visible command | hidden command | traps |
//! |---|---|---|---|
//! | base | passes | fails | fell into none |
//! | reference | passes | passes | fell into none |
//! | trap | passes | fails | |
//!
//! Each command for tests runs in a copy of its own, so that nothing is left of another one. All of git's work on a copy is
//! done before a command of the suite runs in it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::confined::{CommandPlace, CommandWorld, last_lines, machine, short};
use super::copy::{self, CopyFault, ScratchFolder};
use super::run::SetWhenDropped;
use super::{EvalCommand, EvalSuite, EvalTask, RepositoryPlace, SuiteFault, TaskFiles, TaskOrigin};
use crate::git::fresh::{CommitSource, FreshError};
use crate::git::remove_beneath;
use crate::nonce::nonce;
use crate::platform::{children, files as os};
use crate::proc::{Cause, JobEnd, Watch};

#[derive(Debug, Clone, Copy)]
pub struct CheckOptions<'a> {
    /// Tasks at a time.
    pub jobs: usize,
    pub world: &'a CommandWorld,
}

/// How far the check is.
#[derive(Debug, Clone, Copy)]
pub struct CheckProgress<'a> {
    /// The task that begins or has ended.
    pub task: &'a str,
    pub done: usize,
    pub tasks: usize,
}

#[derive(Debug, thiserror::Error)]
pub enum CheckError {
    #[error("stopped")]
    Stopped,
    /// Something about this machine, not about the suite.
    #[error("{0}")]
    Machine(String),
}

/// Whose files are in a copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Solution {
    Base,
    Reference,
    Trap,
}

impl Solution {
    fn name(self) -> &'static str {
        match self {
            Solution::Base => "the base",
            Solution::Reference => "the reference",
            Solution::Trap => "the trap solution",
        }
    }
}

/// What the commands said about a solution.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SolutionCheck {
    /// As it must be.
    Right,
    Wrong,
    /// The task has no such solution.
    Absent,
    /// Something else is wrong that has to be corrected first.
    NotRun,
}

impl SolutionCheck {
    pub fn name(self) -> &'static str {
        match self {
            SolutionCheck::Right => "ok",
            SolutionCheck::Wrong => "wrong",
            SolutionCheck::Absent => "none",
            SolutionCheck::NotRun => "not run",
        }
    }
}

/// What the check found about one task.
#[derive(Debug)]
pub struct TaskCheck {
    pub name: String,
    pub language: Option<String>,
    pub base: SolutionCheck,
    pub reference: SolutionCheck,
    pub trap: SolutionCheck,
    pub took: Duration,
    pub faults: Vec<SuiteFault>,
}

/// Checks all tasks that could be read, several at a time, in the order of the suite.
///
/// # Errors
/// When the machine gives no copy or starts no command, or the watch asks for the end.
pub fn check(
    suite: &EvalSuite,
    options: &CheckOptions<'_>,
    on_progress: &(dyn Fn(CheckProgress<'_>) + Sync),
) -> Result<Vec<TaskCheck>, CheckError> {
    let scratch = ScratchFolder::new(&format!("archeflow-eval-{}", nonce()))
        .map_err(|error| CheckError::Machine(format!("no temporary folder: {error}")))?;
    let sources = sources(suite, options.world, scratch.path())?;
    let none = scratch.path().join("none");
    let seal = suite.root.as_deref().unwrap_or(&none);
    let (next, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let found = Mutex::new(Vec::new());
    let tasks = suite.tasks.len();
    let work = || {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let Some(task) = suite.tasks.get(number) else { return };
            on_progress(CheckProgress { task: &task.name, done: done.load(Ordering::Relaxed), tasks });
            let folder = scratch.path().join(number.to_string());
            let result = TaskRun::of(task, options, &sources, folder, seal).and_then(TaskRun::all);
            if result.is_err() {
                // Nothing more is begun.
                next.store(tasks, Ordering::Relaxed);
            }
            let done = done.fetch_add(1, Ordering::Relaxed) + 1;
            on_progress(CheckProgress { task: &task.name, done, tasks });
            found.lock().unwrap_or_else(PoisonError::into_inner).push((number, result));
        }
    };
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| end_git_when_stopping(&options.world.watch, &is_over));
        let _ends = SetWhenDropped(&is_over);
        std::thread::scope(|scope| {
            for _ in 0..options.jobs.clamp(1, tasks.max(1)) {
                scope.spawn(work);
            }
        });
    });
    let mut found = found.into_inner().unwrap_or_else(PoisonError::into_inner);
    found.sort_by_key(|(number, _)| *number);
    if options.world.watch.is_stopping() {
        return Err(CheckError::Stopped);
    }
    found.into_iter().map(|(_, result)| result).collect()
}

const LOOK: Duration = Duration::from_millis(50);

/// Git hears of no watch, and works for minutes on a large repository.
fn end_git_when_stopping(watch: &Watch, is_over: &AtomicBool) {
    while !is_over.load(Ordering::SeqCst) {
        if watch.is_stopping() {
            children::ask_all_to_end();
        }
        std::thread::sleep(LOOK);
    }
}

/// The objects of a repository, or why there are none.
pub(super) type Sources = BTreeMap<RepositoryPlace, Result<CommitSource, String>>;

/// Each repository is looked at once.
pub(super) fn sources(
    suite: &EvalSuite,
    world: &CommandWorld,
    scratch: &Path,
) -> Result<Sources, CheckError> {
    let mut sources = Sources::new();
    for task in &suite.tasks {
        let TaskOrigin::Commit { place, .. } = &task.origin else { continue };
        if sources.contains_key(place) {
            continue;
        }
        if world.watch.is_stopping() {
            return Err(CheckError::Stopped);
        }
        let source = match place {
            RepositoryPlace::OfSuite(folder) => {
                CommitSource::of_folder(folder, &world.git, suite.root.as_deref())
            }
            RepositoryPlace::Clone(folder) => CommitSource::of_folder(folder, &world.git, None),
            RepositoryPlace::Bundle(file) => {
                CommitSource::of_bundle(file, &scratch.join(format!("bundle-{}.git", sources.len())))
            }
        };
        let source = source.map_err(|error: FreshError| short(&error.to_string()));
        sources.insert(place.clone(), source);
    }
    Ok(sources)
}

/// What became of a command.
enum CommandResult {
    Passed,
    /// How it ended, and its last lines.
    Failed(String, Vec<String>),
    /// It says nothing about the solution; the fault is noted.
    Unusable,
    /// It could not be run for another solution either.
    Skipped,
}

/// One task in the making.
struct TaskRun<'a> {
    task: &'a EvalTask,
    options: &'a CheckOptions<'a>,
    source: Option<&'a CommitSource>,
    /// For everything that belongs to this task.
    folder: PathBuf,
    /// What commands are shown empty.
    seal: &'a Path,
    faults: Vec<SuiteFault>,
    /// Names of commands that were not found.
    missing: Vec<String>,
    commands: usize,
    begun: Instant,
}

impl<'a> TaskRun<'a> {
    fn of(
        task: &'a EvalTask,
        options: &'a CheckOptions<'a>,
        sources: &'a Sources,
        folder: PathBuf,
        seal: &'a Path,
    ) -> Result<TaskRun<'a>, CheckError> {
        let mut run = TaskRun {
            task,
            options,
            source: None,
            folder,
            seal,
            faults: Vec::new(),
            missing: Vec::new(),
            commands: 0,
            begun: Instant::now(),
        };
        if let TaskOrigin::Commit { place, line, .. } = &task.origin {
            match sources.get(place) {
                Some(Ok(source)) => run.source = Some(source),
                Some(Err(why)) => {
                    let text = format!("the repository {} can't be used: {why}", place.path().display());
                    run.fault(*line, text, "Put a git repository or a bundle there.", Vec::new());
                }
                None => return Err(CheckError::Machine("a repository was not looked at".to_owned())),
            }
        }
        os::private_directory().recursive(true).create(&run.folder).map_err(machine)?;
        Ok(run)
    }

    /// Looks at all solutions. Without a base that can be copied nothing can be said about the others.
    fn all(mut self) -> Result<TaskCheck, CheckError> {
        let task = self.task;
        let base = if self.faults.is_empty() { self.solution(Solution::Base, None)? } else { None };
        let not_run = |files: &Option<TaskFiles>| match files {
            Some(_) => SolutionCheck::NotRun,
            None => SolutionCheck::Absent,
        };
        let (reference, trap) = match base {
            Some(_) => {
                let reference = self.other(Solution::Reference, task.reference.as_ref())?;
                (reference, self.other(Solution::Trap, task.trap.as_ref())?)
            }
            None => (not_run(&task.reference), not_run(&task.trap)),
        };
        let _ = remove_beneath(&self.folder);
        Ok(TaskCheck {
            name: task.name.clone(),
            language: task.language.clone(),
            base: base.unwrap_or(SolutionCheck::Wrong),
            reference,
            trap,
            took: self.begun.elapsed(),
            faults: self.faults,
        })
    }

    fn other(&mut self, solution: Solution, files: Option<&TaskFiles>) -> Result<SolutionCheck, CheckError> {
        match files {
            Some(files) => Ok(self.solution(solution, Some(files))?.unwrap_or(SolutionCheck::Wrong)),
            None => Ok(SolutionCheck::Absent),
        }
    }

    /// Runs the task's commands on a solution. `None` if there is no copy of it; the fault is noted.
    fn solution(
        &mut self,
        solution: Solution,
        files: Option<&TaskFiles>,
    ) -> Result<Option<SolutionCheck>, CheckError> {
        let before = self.faults.len();
        let mut skipped = false;
        let task = self.task;
        if let Some(visible) = &task.visible {
            // Tests that a patch adds or changes are named among those that pass before, too.
            let is_patch = matches!(task.hidden_files, TaskFiles::Patch { .. });
            let Some(tree) = self.copy(files, is_patch)? else { return Ok(None) };
            match self.run("visible command", visible, &tree, solution)? {
                CommandResult::Passed | CommandResult::Unusable => {}
                CommandResult::Failed(how, output) => {
                    self.visible_fails(solution, visible.line, &how, output);
                }
                CommandResult::Skipped => skipped = true,
            }
            remove_beneath(&tree).map_err(machine)?;
        }
        let Some(tree) = self.copy(files, true)? else { return Ok(None) };
        match self.run("hidden command", &task.hidden, &tree, solution)? {
            CommandResult::Passed => self.hidden_passes(solution),
            CommandResult::Failed(how, output) => self.hidden_fails(solution, &how, output),
            CommandResult::Unusable => {}
            CommandResult::Skipped => skipped = true,
        }
        if solution != Solution::Trap {
            for trap in &task.traps {
                let name = format!("command of the trap `{}`", trap.name);
                match self.run(&name, &trap.fallen, &tree, solution)? {
                    CommandResult::Passed => {
                        let text = format!("{} fell into the trap `{}`", solution.name(), trap.name);
                        let remedy = "Let `fallen` exit with 0 only if a solution fell into it.";
                        self.fault(trap.fallen.line, text, remedy, Vec::new());
                    }
                    CommandResult::Failed(..) | CommandResult::Unusable => {}
                    CommandResult::Skipped => skipped = true,
                }
            }
        }
        remove_beneath(&tree).map_err(machine)?;
        Ok(Some(match (self.faults.len() > before, skipped) {
            (true, _) => SolutionCheck::Wrong,
            (false, true) => SolutionCheck::NotRun,
            (false, false) => SolutionCheck::Right,
        }))
    }

    fn visible_fails(&mut self, solution: Solution, line: u32, how: &str, output: Vec<String>) {
        let text = format!("{} fails the visible command ({how})", solution.name());
        let remedy = match solution {
            Solution::Base => "Correct base/ or `visible`: agents begin with tests that pass.",
            Solution::Reference => "Correct reference/ or `visible`.",
            Solution::Trap => "Correct trap/: nobody is tempted by a solution that the visible tests fail.",
        };
        self.fault(line, text, remedy, output);
    }

    fn hidden_passes(&mut self, solution: Solution) {
        let (text, remedy) = match solution {
            Solution::Base => (
                "the base passes the hidden command, so doing nothing would count as solved",
                "Add a hidden test for what the task asks for.",
            ),
            Solution::Trap => (
                "the trap solution passes the hidden command, so it would count as solved",
                "Add a hidden test that it fails, or correct trap/.",
            ),
            Solution::Reference => return,
        };
        self.fault(self.task.hidden.line, text.to_owned(), remedy, Vec::new());
    }

    fn hidden_fails(&mut self, solution: Solution, how: &str, output: Vec<String>) {
        if solution == Solution::Reference {
            let text = format!("the reference fails the hidden command ({how})");
            self.fault(self.task.hidden.line, text, "Correct reference/ or the hidden tests.", output);
        }
    }

    /// A fresh copy. `None` with a fault noted if the suite is to blame.
    fn copy(&mut self, files: Option<&TaskFiles>, with_hidden: bool) -> Result<Option<PathBuf>, CheckError> {
        if self.options.world.watch.is_stopping() {
            return Err(CheckError::Stopped);
        }
        self.commands += 1;
        let tree = self.folder.join(format!("tree-{}", self.commands));
        let stops = || self.options.world.watch.is_stopping();
        let made = copy::make(&tree, self.task, self.source, files, &stops);
        let hidden = |()| if with_hidden { copy::add_hidden(&tree, self.task, &stops) } else { Ok(()) };
        let made = made.and_then(hidden);
        let Err(fault) = made else { return Ok(Some(tree)) };
        let line = match &self.task.origin {
            TaskOrigin::Commit { line, .. } => *line,
            TaskOrigin::Files(_) => self.task.line,
        };
        match fault {
            CopyFault::NoCommit => {
                let text = "the commit is not in the repository".to_owned();
                self.fault(line, text, "Fetch it there, or correct the commit.", Vec::new());
            }
            CopyFault::Patch(field, why) => {
                let text = format!("{field} can't be applied");
                let lines = last_lines(why.as_bytes());
                self.fault(self.task.line, text, "Correct the patch, or the commit it is for.", lines);
            }
            CopyFault::HiddenThere => {
                let text = "the repository has a folder hidden/ already".to_owned();
                let remedy = "Choose a commit without it: agents would see the files, and the hidden ones belong there.";
                self.fault(line, text, remedy, Vec::new());
            }
            CopyFault::Machine(why) => {
                return Err(CheckError::Machine(format!("no copy of {}: {why}", self.task.name)));
            }
        }
        Ok(None)
    }

    fn run(
        &mut self,
        name: &str,
        command: &EvalCommand,
        tree: &Path,
        solution: Solution,
    ) -> Result<CommandResult, CheckError> {
        if self.missing.iter().any(|missing| missing == name) {
            return Ok(CommandResult::Skipped);
        }
        self.commands += 1;
        let ended = self.shell(&command.command, tree)?;
        let output = last_lines(&ended.stdout.bytes);
        let (text, remedy) = match ended.cause {
            Cause::Exited(0) => return Ok(CommandResult::Passed),
            Cause::Exited(code @ (126 | 127)) => {
                self.missing.push(name.to_owned());
                let what = if code == 127 { "was not found" } else { "can't be executed" };
                let text = format!("a program of the {name} {what} (exit {code})");
                let remedy = "Install the program or correct the command. In the sandbox there are programs of the system \
                              and your toolchains only.";
                (text, remedy)
            }
            Cause::Exited(code) => return Ok(CommandResult::Failed(format!("exit {code}"), output)),
            Cause::Signaled(signal) => {
                return Ok(CommandResult::Failed(format!("killed by signal {signal}"), output));
            }
            Cause::Silent | Cause::TooLong => {
                let seconds = self.task.limit.as_secs_f64();
                let text = format!("the {name} did not end within {seconds} s with {}", solution.name());
                (text, "Make it faster, or raise `minutes`.")
            }
            Cause::OverLimit(what) => {
                let text = format!("the {name} was stopped with {}: {what}", solution.name());
                (text, "Let it use less, or raise the limit in your configuration.")
            }
            Cause::Stopped => return Err(CheckError::Stopped),
            Cause::NotStarted(why) => {
                return Err(CheckError::Machine(format!("the {name} can't be started: {why}")));
            }
        };
        self.fault(command.line, text, remedy, output);
        Ok(CommandResult::Unusable)
    }

    fn shell(&self, command: &str, tree: &Path) -> Result<JobEnd, CheckError> {
        let own = self.folder.join(format!("own-{}", self.commands));
        let objects = self.source.map(|source| source.stores.clone()).unwrap_or_default();
        let place = CommandPlace { tree, own: &own, objects: &objects, seal: self.seal };
        self.options.world.shell(command, place, self.task.limit)
    }

    fn fault(&mut self, line: u32, text: String, remedy: &str, output: Vec<String>) {
        self.faults.push(SuiteFault {
            task: self.task.name.clone(),
            place: self.task.file.clone(),
            line,
            text,
            remedy: remedy.to_owned(),
            output,
        });
    }
}
