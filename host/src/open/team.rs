//! Selects the archetypes of a new run, and what is applied to them: domain, team or workflow file, lenses, voices.
//!
//! Everything is checked here before a run is claimed; what comes out is frozen into its first line.

use std::collections::BTreeMap;

use archeflow_core::event::Chosen;
use archeflow_core::model::{
    Attention, Domain, FileTiming, Lens, Overlay, Participant, Persona, Policy, ShadowSet, Strategy, Tier,
    Workflow, pipeline_team, team,
};
use archeflow_core::rules::domain::{self, Signals};
use archeflow_core::rules::lens;
use archeflow_core::rules::selection::{self, Wishes};
use archeflow_core::settings::rows;
use archeflow_core::strategies;

use super::{Error, Project};
use crate::config::shelf::{DomainFile, LensFile, Team};
use crate::config::{Fault, Faults, Flags, Settings};
use crate::git::{ObjectId, Repo};

/// A longer file is refused when the run begins: a brief must fit more than one.
pub(crate) const READING_AT_MOST: u64 = 64 * 1024;

pub(crate) struct SelectedTeam {
    pub(crate) strategy: Strategy,
    pub(crate) workflow: Workflow,
    pub(crate) chosen: Chosen,
    pub(crate) domain: Domain,
    pub(crate) seats: BTreeMap<String, Vec<Participant>>,
    pub(crate) max_cycles: u32,
    pub(crate) overlay: Overlay,
    pub(crate) lenses: Vec<String>,
    pub(crate) categories: Vec<String>,
    pub(crate) tiers: BTreeMap<String, Tier>,
}

impl SelectedTeam {
    /// The team of the workflow the run begins with.
    pub(crate) fn participants(&self) -> &[Participant] {
        let key = strategies::seats_key(self.strategy, self.workflow);
        self.seats.get(key).map_or(&[], Vec::as_slice)
    }
}

/// Puts the lenses' thresholds under the settings, so that the policy knows them.
pub(crate) fn apply_shadow_overrides(
    settings: &mut Settings,
    shadows: &BTreeMap<String, ShadowSet>,
) -> Result<(), Faults> {
    let files: Vec<LensFile> = settings.lenses().into_iter().cloned().collect();
    // The last lens has precedence: a value that is set is not replaced.
    for file in files.iter().rev() {
        for ((archetype, param), text) in &file.lens.shadow_overrides {
            let line = file.shadow_lines.get(&(archetype.clone(), param.clone())).copied().unwrap_or(0);
            let name = if archetype == "gatekeeper" { "guardian" } else { archetype };
            let Some(ShadowSet(set)) = shadows.get(name) else {
                let known: Vec<&str> = shadows.keys().map(String::as_str).collect();
                let text = format!(
                    "`shadow_overrides.{archetype}` names no known shadow; allowed: {}",
                    known.join(", ")
                );
                return Err(Fault { path: file.path.clone(), line, column: 0, text }.into());
            };
            let keys = || set.iter().map(|shadow| format!("shadows.{}.{param}", shadow.name()));
            let key = keys().find(|key| rows().any(|row| row.path == key)).or_else(|| keys().next());
            let key = key.unwrap_or_default();
            settings.lay_under(&key, text, &file.path, line).map_err(|fault| {
                let text = format!("`shadow_overrides.{archetype}.{param}`: {}", fault.text);
                Fault { text, ..fault }
            })?;
        }
    }
    Ok(())
}

pub(crate) fn select(
    settings: &Settings,
    flags: &Flags,
    task: &str,
    policy: &Policy,
    personas: &BTreeMap<String, Persona>,
    tree: (&Repo, &ObjectId),
) -> Result<SelectedTeam, Error> {
    let file = settings.workflow_file().or_else(|| settings.team());
    let wishes = Wishes {
        workflow_flag: flags.workflow.as_deref().and_then(Workflow::parse),
        workflow_config: settings.workflow(),
        strategy_flag: strategy(flags.strategy.as_deref()),
        strategy_config: settings.strategy(),
    };
    let (mut strategy, mut workflow, mut chosen) = selection::select(task, &wishes);
    if let Some(file) = file {
        if wishes.strategy_flag.or(wishes.strategy_config) == Some(Strategy::Pipeline) {
            let text = format!(
                "`{}` selects the team of every cycle; allowed only with the strategy pdca, or without a strategy",
                file.name
            );
            return Err(Faults(vec![Fault { path: file.path.clone(), line: 0, column: 0, text }]).into());
        }
        strategy = Strategy::Pdca;
        chosen.strategy_by = format!("{} selects the team", file.path);
        chosen.against.clear();
        if settings.workflow().is_none() {
            workflow = file.like.unwrap_or_default();
            chosen.workflow_by = format!("{}, like {}", file.path, workflow.name());
        }
    }
    let paths = paths(tree)?;
    let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
    let (domain, domain_by) = detected(settings, flags, &paths);
    chosen.domain_by = domain_by;
    let of_domain = settings.shelf().domains.get(domain.name()).cloned().unwrap_or_default();
    let lenses = settings.lenses();
    let lens = lens::stack(lenses.iter().map(|file| file.lens.clone()));
    let voice = if domain == Domain::Writing { domain::voices(&paths) } else { Vec::new() };
    readable(tree, &lenses, &of_domain, &voice)?;
    let seats = seats(file);
    let of_workflow = file.and_then(|file| file.max_cycles).unwrap_or_else(|| policy.cycles(workflow));
    let max_cycles = strategies::max_cycles(strategy, of_workflow);
    let tiers = tiers(personas, &of_domain, &lens);
    let (lenses, categories) = (lens.names.clone(), lens::categories(&lens));
    let overlay = overlay(settings, file, of_domain, lens, voice);
    Ok(SelectedTeam {
        strategy,
        workflow,
        chosen,
        domain,
        seats,
        max_cycles,
        overlay,
        lenses,
        categories,
        tiers,
    })
}

/// The domain, and why.
fn detected(settings: &Settings, flags: &Flags, paths: &[&str]) -> (Domain, String) {
    let file = settings.workflow_file().or_else(|| settings.team());
    domain::detect(&Signals {
        flag: flags.domain.as_ref().and(settings.domain()),
        team: file.and_then(|file| file.domain),
        config: settings.domain(),
        files: paths.to_vec(),
    })
}

impl Project {
    /// The domain that a run would have; nothing without a commit to begin with.
    pub fn domain(&self) -> Result<Option<Domain>, Error> {
        let Some(target) = &self.target else { return Ok(None) };
        let flags = Flags::default();
        let settings = self.settings(&flags, None)?;
        let paths = paths((&self.repo, &target.oid))?;
        let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
        Ok(Some(detected(&settings, &flags, &paths).0))
    }
}

fn strategy(word: Option<&str>) -> Option<Strategy> {
    [Strategy::Pdca, Strategy::Pipeline].into_iter().find(|strategy| Some(strategy.name()) == word)
}

/// A team is the same in every workflow: an escalation adds cycles, not archetypes.
fn seats(file: Option<&Team>) -> BTreeMap<String, Vec<Participant>> {
    let own = |built_in: Vec<Participant>| file.map_or(built_in, |file| file.seats.clone());
    Workflow::ALL
        .into_iter()
        .map(|workflow| (workflow.name().to_owned(), own(team(workflow))))
        .chain([(Strategy::Pipeline.name().to_owned(), own(pipeline_team()))])
        .collect()
}

/// The archetypes' own tiers, unless the domain or a lens sets others. Settings override all three.
fn tiers(personas: &BTreeMap<String, Persona>, domain: &DomainFile, lens: &Lens) -> BTreeMap<String, Tier> {
    let tier = |persona: &Persona| {
        let archetype = &persona.archetype;
        let seat = Participant { archetype: archetype.name.clone(), role: archetype.role };
        lens::tier_of(&lens.model_overrides, &seat)
            .or_else(|| lens::tier_of(&domain.model_overrides, &seat))
            .unwrap_or(archetype.tier)
    };
    personas.iter().map(|(name, persona)| (name.clone(), tier(persona))).collect()
}

fn overlay(
    settings: &Settings,
    file: Option<&Team>,
    domain: DomainFile,
    lens: Lens,
    voice: Vec<String>,
) -> Overlay {
    let mut attention: BTreeMap<String, Attention> = domain
        .review_focus
        .into_iter()
        .map(|(name, extra_focus)| (name, Attention { extra_focus, ..Attention::default() }))
        .collect();
    for (name, above) in lens.attention {
        lens::add(attention.entry(name).or_default(), above);
    }
    let mut context = lens.context;
    if !domain.context.is_empty() {
        lens::unite(context.entry(FileTiming::Always).or_default(), domain.context);
    }
    let named = |found: Option<&Team>| found.map(|file| file.name.clone()).unwrap_or_default();
    Overlay {
        team: named(settings.team()),
        workflow: named(settings.workflow_file()),
        exit: file.map(|file| file.exit).unwrap_or_default(),
        phases: file.map(|file| file.phases.clone()).unwrap_or_default(),
        inputs: file.map(|file| file.inputs.clone()).unwrap_or_default(),
        concepts: domain.concepts,
        metrics: domain.metrics,
        attention,
        context,
        voice,
        evidence: lens.evidence,
    }
}

/// Every path of the base commit. Only names are looked at; nothing of the project is executed.
fn paths((repo, commit): (&Repo, &ObjectId)) -> Result<Vec<String>, Error> {
    let entries = repo.list_dir(commit, b"")?;
    Ok(entries.into_iter().map(|entry| String::from_utf8_lossy(&entry.path).into_owned()).collect())
}

/// What is to be put before agents has to be there, as text, and short enough.
fn readable(
    (repo, commit): (&Repo, &ObjectId),
    lenses: &[&LensFile],
    domain: &DomainFile,
    voice: &[String],
) -> Result<(), Error> {
    let of_lenses = lenses.iter().flat_map(|file| {
        file.context_lines.iter().map(|(path, line)| (path.clone(), (file.path.clone(), *line)))
    });
    let of_domain = domain.context_lines.iter().map(|(path, at)| (path.clone(), at.clone()));
    let of_voice = voice.iter().map(|path| (path.clone(), (path.clone(), 0)));
    let mut faults = Vec::new();
    for (path, (named_in, line)) in of_lenses.chain(of_domain).chain(of_voice) {
        let text = repo.read_blob(commit, path.as_bytes(), READING_AT_MOST)?.map(String::from_utf8);
        if !matches!(text, Some(Ok(_))) {
            let text = format!(
                "`{path}` can't be put before agents; allowed: a text file of the base commit, at most \
                 {READING_AT_MOST} bytes"
            );
            faults.push(Fault { path: named_in, line, column: 0, text });
        }
    }
    if faults.is_empty() { Ok(()) } else { Err(Faults(faults).into()) }
}
