//! Looks at the branches of runs that are under way in one project: do two of them change the same files? Git answers
//! without a working copy, and long before either of them lands.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::crew::{BranchOverlap, UnlandedRun};
use super::local_crew::LocalRuns;
use crate::git::change::{changed, quote_path};
use crate::git::land;
use crate::git::{GitEnv, ObjectId, Repo};
use crate::log;
use crate::store::journal::Journal;
use crate::store::places::{self, Places};

/// The most files that are named in the log.
const NAMED: usize = 20;

#[derive(Debug, Default)]
pub(super) struct Lookout {
    repos: BTreeMap<String, Option<Repo>>,
    branches: BTreeMap<String, Branch>,
}

/// What a run works on.
#[derive(Debug)]
struct Branch {
    name: String,
    base: ObjectId,
    tip: Option<ObjectId>,
    /// What it changes since its base.
    paths: BTreeSet<Vec<u8>>,
    /// It was looked at after its run had ended.
    is_last: bool,
}

impl Lookout {
    /// What pairs of runs of a project both change, where one of the two moved.
    pub(super) fn look(
        &mut self,
        runs: &LocalRuns,
        project: &str,
        live: &[UnlandedRun],
    ) -> Vec<BranchOverlap> {
        let mut found = Vec::new();
        let repo = self.repos.entry(project.to_owned()).or_insert_with(|| open(runs, project));
        let Some(repo) = repo else { return found };
        let moved = moved(&mut self.branches, repo, &runs.projects.join(project), live);
        for (n, one) in live.iter().enumerate().filter(|_| !moved.is_empty()) {
            for other in &live[n + 1..] {
                if moved.contains(&one.run_id) || moved.contains(&other.run_id) {
                    found.extend(compare(&self.branches, repo, one, other));
                }
            }
        }
        found
    }
}

fn open(runs: &LocalRuns, project: &str) -> Option<Repo> {
    let dir = runs.projects.join(project);
    let state = Places::at(&dir).ok()?.state_dir(&places(runs)).ok()?;
    Repo::open(&dir, &state, &GitEnv::new(runs.env.clone())).ok()
}

fn places(runs: &LocalRuns) -> places::Env {
    let variable =
        |wanted: &str| runs.env.iter().find(|(name, _)| name == wanted).map(|(_, value)| value.clone());
    places::Env {
        home: variable("HOME"),
        xdg_state_home: variable("XDG_STATE_HOME"),
        xdg_config_home: variable("XDG_CONFIG_HOME"),
    }
}

/// The runs whose branches are elsewhere than when last looked at. What can't be looked at stays where it was.
fn moved(
    branches: &mut BTreeMap<String, Branch>,
    repo: &Repo,
    dir: &Path,
    live: &[UnlandedRun],
) -> BTreeSet<String> {
    for one in live {
        if !branches.contains_key(&one.run_id)
            && let Some(branch) = branch_of(dir, &one.run_id)
        {
            branches.insert(one.run_id.clone(), branch);
        }
    }
    let may_move = |one: &&UnlandedRun| branches.get(&one.run_id).is_some_and(|branch| !branch.is_last);
    let asked: Vec<&UnlandedRun> = live.iter().filter(may_move).collect();
    let names: Vec<&str> =
        asked.iter().filter_map(|one| branches.get(&one.run_id)).map(|branch| &*branch.name).collect();
    // One question for all of them: there may be many.
    let Ok(tips) = repo.resolve_all(&names) else { return BTreeSet::new() };
    let mut moved = BTreeSet::new();
    for one in asked {
        let Some(branch) = branches.get_mut(&one.run_id) else { continue };
        branch.is_last = !one.moves;
        let tip =
            tips.get(&branch.name).filter(|tip| **tip != branch.base && Some(*tip) != branch.tip.as_ref());
        let Some(tip) = tip else { continue };
        let Ok(paths) = changed(repo, &branch.base, tip) else { continue };
        branch.paths = paths.into_iter().map(|one| one.path).collect();
        branch.tip = Some(tip.clone());
        moved.insert(one.run_id.clone());
    }
    moved
}

fn branch_of(dir: &Path, run_id: &str) -> Option<Branch> {
    let path = dir.join(".archeflow/events").join(format!("{run_id}.jsonl"));
    let run = log::fold(&Journal::read(&path).ok()?).ok()?;
    let request = run.request.as_ref()?;
    let base = ObjectId::parse(request.base.commit.as_bytes()).ok()?;
    Some(Branch {
        name: format!("refs/heads/{}", request.branch),
        base,
        tip: None,
        paths: BTreeSet::new(),
        is_last: false,
    })
}

fn compare(
    branches: &BTreeMap<String, Branch>,
    repo: &Repo,
    one: &UnlandedRun,
    other: &UnlandedRun,
) -> Option<BranchOverlap> {
    let (a, b) = (branches.get(&one.run_id)?, branches.get(&other.run_id)?);
    let files = both_change(repo, a, b)?;
    Some(BranchOverlap { a: one.item.clone(), b: other.item.clone(), files })
}

/// The files two runs themselves change in ways that do not go together. What only the target has changed since one of
/// them began does not matter.
fn both_change(repo: &Repo, a: &Branch, b: &Branch) -> Option<Vec<String>> {
    let (a_tip, b_tip) = (a.tip.as_ref()?, b.tip.as_ref()?);
    if a.paths.is_disjoint(&b.paths) {
        return Some(Vec::new());
    }
    let conflicts = land::conflicts(repo, a_tip, b_tip).ok()?;
    let both = conflicts.iter().filter(|path| a.paths.contains(*path) && b.paths.contains(*path));
    Some(both.take(NAMED).map(|path| quote_path(path)).collect())
}
