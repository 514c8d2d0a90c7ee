//! `--start-from`: earlier artifacts replace the phases before (AF-186).

use std::path::{Path, PathBuf};

use archeflow_core::event::{Artifact, Imported, Report, RunReentered};
use archeflow_core::model::{Answer, Participant, Phase, Reason, Role};
use archeflow_core::read;

use super::{Error, OpenedRun, Project, RunRequest};
use crate::config::Flags;
use crate::drive::Driver;
use crate::executors::{WantedSigns, change_of};
use crate::git::ObjectId;
use crate::store::{files, names};

impl Project {
    /// Re-enters a run at a phase. Everything it needs is looked for first; nothing is started when a piece is
    /// missing.
    pub fn reenter(
        self,
        id: &str,
        phase: Phase,
        task: Option<&str>,
        flags: &Flags,
        file: Option<&Path>,
    ) -> Result<OpenedRun, Error> {
        if !names::valid_name(id) {
            return Err(Error::BadId { id: id.to_owned() });
        }
        let folder = self.places.artifacts().join(id);
        if !folder.is_dir() {
            return Err(Error::NoRun { id: id.to_owned() });
        }
        let known = self.places.events().join(format!("{id}.jsonl")).exists();
        let (driver, before) = if known {
            let (driver, _) = self.existing_with(id, file, flags)?;
            require(&folder, phase, &driver.run.seats())?;
            let landing = &driver.run.landing;
            let by_a_person =
                driver.run.outcome.as_ref().is_some_and(|outcome| outcome.reason == Reason::Reverted);
            if landing.merged.is_some() && (landing.reverted.is_none() || by_a_person) {
                return Err(Error::Merged { id: id.to_owned() });
            }
            (driver, Vec::new())
        } else {
            let task = task.unwrap_or_default().to_owned();
            let request = RunRequest {
                task,
                flags: flags.clone(),
                config_file: file.map(PathBuf::from),
                ..RunRequest::default()
            };
            require(&folder, phase, &self.seats_of(&request)?)?;
            let opened = self.run_for_artifacts(&request, id)?;
            (opened.driver, opened.before)
        };
        let report = gather(&driver, &before, &folder, phase)?;
        Ok(OpenedRun { driver, before, after: vec![report.into()], default_agent: None })
    }
}

fn require(folder: &Path, phase: Phase, seats: &[Participant]) -> Result<(), Error> {
    let needed: &[&str] = match phase {
        Phase::Plan => &[],
        Phase::Do => &["plan-creator.md"],
        Phase::Check => &["plan-creator.md", "do-maker.md", "do-maker-files.txt"],
        Phase::Act => &["plan-creator.md", "do-maker.md", "do-maker-files.txt"],
    };
    let is_planned = seats.iter().any(|seat| seat.role == Role::Creator);
    let needed = needed.iter().filter(|name| is_planned || **name != "plan-creator.md");
    let gatekeeper = seats.iter().find(|seat| seat.role == Role::Gatekeeper);
    let first = gatekeeper.filter(|_| phase == Phase::Act).map(|seat| format!("check-{}.md", seat.archetype));
    let mut needed = needed.map(|name| (*name).to_owned()).chain(first);
    match needed.find(|name| !folder.join(name).is_file()) {
        Some(name) => {
            Err(Error::NoArtifact { path: folder.join(name).display().to_string(), phase: phase.name() })
        }
        None => Ok(()),
    }
}

fn gather(driver: &Driver, before: &[Report], folder: &Path, phase: Phase) -> Result<RunReentered, Error> {
    let mut report = RunReentered { phase, proposal: None, making: None, change: None, reviews: Vec::new() };
    let mut run = driver.run.clone();
    for event in before {
        run.hear(0, event.clone());
    }
    if phase >= Phase::Do && run.is_planned() {
        let creator = run.sitting(Role::Creator);
        report.proposal = Some(import(folder, "plan-creator.md", &creator, Role::Creator, &[])?);
    }
    if phase >= Phase::Check {
        report.making = Some(import(folder, "do-maker.md", &run.sitting(Role::Maker), Role::Maker, &[])?);
        let Some(request) = run.request.as_deref() else { return Ok(report) };
        let branch = format!("refs/heads/{}", request.branch);
        let Some(commit) = driver.world.repo.resolve(&branch)? else {
            return Err(Error::NoArtifact { path: branch, phase: phase.name() });
        };
        let base = ObjectId::parse(request.base.commit.as_bytes())
            .map_err(|error| Error::NoArtifact { path: error.to_string(), phase: phase.name() })?;
        let binary_bytes = request.config.raised.binary_bytes;
        let test_command = request.config.test_command.as_deref();
        let wanted = WantedSigns { binary_bytes, test_command };
        report.change = Some(change_of(&driver.world.repo, &base, &commit, &branch, wanted)?);
    }
    if phase == Phase::Act {
        let mut names: Vec<String> = std::fs::read_dir(folder)
            .into_iter()
            .flatten()
            .flatten()
            .map(|entry| entry.file_name().to_string_lossy().into_owned())
            .filter(|name| name.starts_with("check-") && name.ends_with(".md"))
            .collect();
        names.sort();
        let categories = run.request.as_ref().map(|request| request.categories.clone()).unwrap_or_default();
        for name in names {
            let archetype = name.trim_start_matches("check-").trim_end_matches(".md").to_owned();
            let first = run.sitting(Role::Gatekeeper) == archetype;
            let role = if first { Role::Gatekeeper } else { Role::Reviewer };
            let mut imported = import(folder, &name, &archetype, role, &categories)?;
            if let Some(change) = &report.change {
                let changed: Vec<String> = change.files.iter().map(|file| file.path.clone()).collect();
                let repo = &driver.world.repo;
                crate::executors::resolve_citations(repo, &change.commit, &changed, &mut imported.answer)?;
            }
            report.reviews.push(imported);
        }
    }
    Ok(report)
}

fn import(
    folder: &Path,
    name: &str,
    archetype: &str,
    role: Role,
    categories: &[String],
) -> Result<Imported, Error> {
    let bytes = files::read_capped(&folder.join(name), 70_000_000)?;
    let answer: Answer = read::answer_in(role, archetype, &bytes, categories, "");
    let artifact = Artifact { name: name.to_owned(), digest: files::digest(&bytes) };
    if let Err((_, why)) = archeflow_core::accept::accept(role, &answer, true, false) {
        return Err(Error::BadArtifact { path: folder.join(name).display().to_string(), why });
    }
    Ok(Imported { archetype: archetype.to_owned(), artifact, answer })
}
