//! Lays out what an agent may be shown, from artifacts and git, and writes its brief.

use std::collections::BTreeSet;
use std::path::Path;

use archeflow_core::brief::{self, BriefSettings};
use archeflow_core::event::{AgentStart, Artifact};
use archeflow_core::feedback;
use archeflow_core::guide;
use archeflow_core::model::{Costs, Destination, Money, Participant, Purpose, Role, Seq, Sight};
use archeflow_core::persona::phase;
use archeflow_core::read;
use archeflow_core::rules::attention::{self, AgentContext, ContextSources};
use archeflow_core::rules::memory;
use archeflow_core::rules::pollution;
use archeflow_core::run::{Answered, Run};
use archeflow_core::split;

use super::looking::{self, WantedSigns};
use crate::backends::AgentBackend;
use crate::config::shown;
use crate::copies::NextCopies;
use crate::git::{ObjectId, change, runner, workspace};
use crate::nonce::nonce;
use crate::open::team::READING_AT_MOST;
use crate::store::files;
use crate::strategies::{self, Conversation, OwnBrief};
use crate::world::World;

/// Everything an agent's performer needs to know.
pub(super) struct AgentInputs {
    pub(super) seq: Seq,
    pub(super) start: AgentStart,
    pub(super) brief: String,
    /// What lines of the answer end with that are the agent's own; empty where the strategy reads them.
    pub(super) code: String,
    /// A reviewer's briefs, each with a part of the diff, if it is too long for one.
    pub(super) parts: Vec<String>,
    /// The prompt if a session is resumed.
    pub(super) correction: String,
    /// The commit the run began from, and the branch its work goes to.
    pub(super) base: String,
    pub(super) branch: String,
    pub(super) binary_bytes: u64,
    /// The run's test command, which a change may concern.
    pub(super) test_command: Option<String>,
    /// Odd things about the brief.
    pub(super) notes: Vec<String>,
    pub(super) costs: Costs,
    /// What it may cost at most as things are when it starts; nothing without a limit.
    pub(super) share: Option<Money>,
    /// Categories the lenses brought along.
    pub(super) categories: Vec<String>,
    /// The files of the change, for places that name one by its last part only.
    pub(super) changed: Vec<String>,
    /// What its client is given to answer in a form.
    pub(super) schema: Option<&'static str>,
    /// What is needed by those who come next.
    pub(super) next: NextCopies,
    /// Where the strategy reads the answer itself.
    pub(super) conversation: Option<Box<dyn Conversation>>,
}

impl AgentInputs {
    /// What is looked for in the work of this agent.
    pub(super) fn wanted_signs(&self) -> WantedSigns<'_> {
        WantedSigns { binary_bytes: self.binary_bytes, test_command: self.test_command.as_deref() }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("artifact {path} is missing or can't be read: {why}")]
    Missing { path: String, why: String },
    #[error(
        "artifact {path} is not what the run wrote there. Put it back, or start over with `--start-from`"
    )]
    Changed { path: String },
    #[error("no persona for the archetype '{0}'")]
    NoPersona(String),
    #[error("the {archetype} can't be briefed: there is no {what}")]
    Bare { archetype: String, what: String },
    #[error(transparent)]
    Git(#[from] runner::Error),
}

/// A longer diff is cut, the prompt says so (R17), and the change can't land (`not_shown`). A shorter one is shown whole,
/// in parts if it is too long for one brief.
pub(super) const DIFF_AT_MOST: usize = 5_000_000;
const SHOWN_OF_TOO_LONG: usize = 200_000;
const ARTIFACT_AT_MOST: u64 = 70_000_000;
/// The heading of the diff in a brief.
const DIFF: &str = "Diff";

/// The copies that will be needed when this agent is done.
fn next_copies(run: &Run, start: &AgentStart) -> NextCopies {
    let seats = run.seats();
    let count = |role: Role| seats.iter().filter(|seat| seat.role == role).count();
    let plans_only = run.request.as_ref().is_some_and(|request| request.dry_run);
    match start.role {
        Role::Explorer | Role::Creator => {
            NextCopies { maker: count(Role::Maker) > 0 && !plans_only, readers: 0 }
        }
        Role::Maker => NextCopies { maker: false, readers: count(Role::Gatekeeper).min(1) },
        // One of the reviewers gets the copy of the gatekeeper.
        Role::Gatekeeper => NextCopies { maker: false, readers: count(Role::Reviewer).saturating_sub(1) },
        Role::Reviewer => NextCopies::default(),
    }
}

pub(super) fn agent_inputs(
    world: &World,
    run: &Run,
    seq: Seq,
    start: &AgentStart,
) -> Result<AgentInputs, Error> {
    if let Some(own) = strategies::conversation(world, run, start)? {
        return Ok(conversed(run, (seq, start), own));
    }
    let persona =
        world.personas.get(&start.archetype).ok_or_else(|| Error::NoPersona(start.archetype.clone()))?;
    let sees = narrowed(run, start, &persona.archetype.sees);
    let too_long = too_long(run, start);
    let desk = lay_out(world, run, start, &sees)?;
    let mut seen = attention::look(start.role, &sees, &desk);
    if let Some(what) = seen.missing.first() {
        return Err(Error::Bare { archetype: start.archetype.clone(), what: what.to_lowercase() });
    }
    if let Some(earlier) = &start.earlier {
        seen.sections.push(("Your earlier answer", artifact_text(world, earlier)?));
    }
    let past = run.request.as_ref().map(|request| &request.past);
    let useless = &run.corrections.ineffective;
    let lessons = past.and_then(|past| memory::lessons_section(past, &start.archetype, useless));
    if let Some(lessons) = lessons.filter(|_| too_long.is_none()) {
        seen.sections.push(("Lessons from earlier runs", lessons));
    }
    let request = run.request.as_ref();
    let categories = request.map(|request| request.categories.clone()).unwrap_or_default();
    let seat = Participant { archetype: start.archetype.clone(), role: start.role };
    let schema = schema(run, start);
    let mut guide = guide::paragraphs(run.overlay(), &seat, phase(start.role), &categories);
    guide.extend(guide::of_review(run, start));
    guide.extend(verifies(run).then(|| guide::reproductions(run.policy().review.trial_ms)));
    let mut readings = readings(world, run, start, &persona.archetype.sees)?;
    let conventions = conventions(world, run)?;
    if !conventions.is_empty() {
        guide.push(guide::CONVENTIONS.to_owned());
        readings.splice(..0, conventions);
    }
    let folder = &run.policy().folder;
    if !folder.is_empty() {
        guide.push(guide::in_folder(&shown(folder)));
    }
    if let Some(list) = left_out(world, start)? {
        guide.push(guide::left_out(start.role));
        readings.push((guide::LEFT_OUT.to_owned(), list));
    }
    let nonce = nonce();
    let code = if answers_with_code(run, &start.agent) { nonce.as_str() } else { "" };
    let frame = BriefSettings {
        persona: &persona.prompt,
        run_id: &world.run_id,
        max_cycles: run.max_cycles,
        domain: run.request.as_ref().map(|request| request.domain).unwrap_or_default(),
        mini_reflect: run.reflects_first(),
        guide,
        readings,
        clarifications: run
            .clarifications
            .iter()
            .filter(|said| said.archetype.is_empty() || said.archetype == start.archetype)
            .collect(),
        form: schema.is_some(),
        nonce: &nonce,
        code,
    };
    let part = run.policy().review.splitting.part();
    let mut briefs = briefs_of(run, start, &seen, &frame, part);
    let mut notes = Vec::new();
    let (window, policy) = (window(run, start), &run.policy().boundaries);
    let longest = |briefs: &[String]| briefs.iter().map(String::len).max().unwrap_or(0);
    if pollution::fills(longest(&briefs), window, policy) || too_long.is_some() {
        let persona = pollution::without_examples(frame.persona);
        let frame = BriefSettings { persona: &persona, ..frame };
        briefs = briefs_of(run, start, &seen, &frame, part);
        match too_long {
            None => notes.push(
                "its brief takes more than half of its memory; examples were left out (AF-156)".to_owned(),
            ),
            Some(before) => {
                let room = pollution::room(before, window, policy);
                let over = briefs.iter().map(|brief| length(brief)).max().unwrap_or(0).saturating_sub(room);
                if over > 0 && run.review.is_some() {
                    cut_diff(&mut seen, over);
                    briefs = briefs_of(run, start, &seen, &frame, part);
                } else if over > 0 {
                    let part = part
                        .min(diff_bytes(&seen))
                        .saturating_sub(usize::try_from(over).unwrap_or(usize::MAX));
                    briefs = briefs_of(run, start, &seen, &frame, part);
                }
                let now = briefs.iter().map(|brief| length(brief)).max().unwrap_or(0);
                let diff = match briefs.len() {
                    1 => "findings and diff in short".to_owned(),
                    parts => format!("findings in short, the diff in {parts} parts"),
                };
                notes.push(format!(
                    "its brief of {before} characters did not fit into its memory; this one has {now}: without \
                     lessons and examples, {diff} (AF-156)"
                ));
            }
        }
    }
    Ok(AgentInputs {
        seq,
        start: start.clone(),
        brief: briefs.first().cloned().unwrap_or_default(),
        parts: if briefs.len() > 1 { briefs } else { Vec::new() },
        correction: brief::correction(start, &nonce, code, schema.is_some()),
        code: code.to_owned(),
        notes,
        base: request.map(|request| request.base.commit.clone()).unwrap_or_default(),
        branch: request.map(|request| request.branch.clone()).unwrap_or_default(),
        binary_bytes: run.policy().raised.binary_bytes,
        test_command: run.policy().test_command.clone(),
        costs: run.policy().costs.clone(),
        share: run.share_of(seq).map(|(share, _)| share),
        categories,
        changed: run.work.iter().flat_map(|work| &work.files).map(|file| file.path.clone()).collect(),
        schema,
        next: next_copies(run, start),
        conversation: None,
    })
}

/// One brief, or one for each part of a diff that is too long for one: what lands was shown to its reviewers, all of it
/// (S-03). A review of an existing change comes in parts anyway.
fn briefs_of(
    run: &Run,
    start: &AgentStart,
    seen: &AgentContext,
    frame: &BriefSettings<'_>,
    part: usize,
) -> Vec<String> {
    let diff = seen.sections.iter().find(|(heading, _)| *heading == DIFF);
    let Some((_, diff)) = diff.filter(|(_, diff)| run.review.is_none() && diff.len() > part) else {
        return vec![brief::write(start, seen, frame)];
    };
    let parts = split::whole_lines(diff, part);
    let count = parts.len();
    let mut briefs = Vec::with_capacity(count);
    for (n, text) in parts.into_iter().enumerate() {
        let mut seen = seen.clone();
        for (_, body) in seen.sections.iter_mut().filter(|(heading, _)| *heading == DIFF) {
            body.clone_from(&text);
        }
        let mut frame = frame.clone();
        if count > 1 {
            frame.guide.push(guide::diff_part(n + 1, count));
        }
        briefs.push(brief::write(start, &seen, &frame));
    }
    briefs
}

fn diff_bytes(seen: &AgentContext) -> usize {
    seen.sections.iter().filter(|(heading, _)| *heading == DIFF).map(|(_, diff)| diff.len()).sum()
}

/// Whether an agent can be held to the code of its brief: not one whose text is written before the run, nor one
/// that the user says can't.
fn answers_with_code(run: &Run, agent: &str) -> bool {
    let fixed = agent.starts_with("script:") || agent.starts_with("sim:");
    !fixed && !run.policy().agents.uncoded.iter().any(|listed| listed == agent)
}

/// The strategy wrote the brief and reads the answer.
fn conversed(
    run: &Run,
    (seq, start): (Seq, &AgentStart),
    OwnBrief { text: brief, conversation }: OwnBrief,
) -> AgentInputs {
    let request = run.request.as_ref();
    AgentInputs {
        seq,
        start: start.clone(),
        correction: brief.clone(),
        brief,
        code: String::new(),
        parts: Vec::new(),
        notes: Vec::new(),
        base: request.map(|request| request.base.commit.clone()).unwrap_or_default(),
        branch: request.map(|request| request.branch.clone()).unwrap_or_default(),
        binary_bytes: run.policy().raised.binary_bytes,
        test_command: run.policy().test_command.clone(),
        costs: run.policy().costs.clone(),
        share: run.share_of(seq).map(|(share, _)| share),
        categories: Vec::new(),
        changed: Vec::new(),
        schema: None,
        next: NextCopies::default(),
        conversation: Some(conversation),
    }
}

/// Whether a person allowed reviewers' reproductions to be run.
fn verifies(run: &Run) -> bool {
    run.review.as_ref().is_some_and(|opened| opened.verify)
}

/// Only for clients that take one, unless it is switched off.
fn schema(run: &Run, start: &AgentStart) -> Option<&'static str> {
    let takes_one = match AgentBackend::parse(&start.agent, Path::new("/")) {
        Ok(AgentBackend::Cli(client, _)) => client.takes_schema,
        Ok(AgentBackend::Cmd(_) | AgentBackend::Script(_) | AgentBackend::Sim(_)) | Err(_) => false,
    };
    let schema = match verifies(run) {
        true => read::schema_with_reproductions(start.role),
        false => read::schema_for(start.role),
    };
    schema.filter(|_| takes_one && run.policy().agents.structured)
}

/// The length of the brief that did not fit, if one of this archetype's didn't.
fn too_long(run: &Run, start: &AgentStart) -> Option<u64> {
    run.cycle()?.cramped.get(&start.archetype).map(|(_, chars)| *chars)
}

fn length(text: &str) -> u64 {
    u64::try_from(text.chars().count()).unwrap_or(u64::MAX)
}

/// The rest is in the checkout, which can be read piece by piece.
fn cut_diff(seen: &mut AgentContext, over: u64) {
    for (_, text) in seen.sections.iter_mut().filter(|(heading, _)| *heading == DIFF) {
        *text = pollution::cut(text, over, "read the rest in your checkout");
    }
}

/// Context size of the tier's models; a cautious value if not configured.
fn window(run: &Run, start: &AgentStart) -> u64 {
    const CAUTIOUS: u64 = 200_000;
    let price = run.policy().costs.prices.get(&start.model);
    price.map(|price| price.context_window).filter(|window| *window > 0).unwrap_or(CAUTIOUS)
}

/// A workflow file may show the archetypes of a phase less than they would see, never more.
fn narrowed(run: &Run, start: &AgentStart, sees: &BTreeSet<Sight>) -> BTreeSet<Sight> {
    match run.overlay().inputs.get(&phase(start.role)) {
        Some(inputs) => sees.intersection(inputs).copied().collect(),
        None => sees.clone(),
    }
}

/// Files of the base commit that lenses, the domain or a voice profile put before this agent.
fn readings(
    world: &World,
    run: &Run,
    start: &AgentStart,
    sees: &BTreeSet<Sight>,
) -> Result<Vec<(String, String)>, Error> {
    let overlay = run.overlay();
    let base = run.request.as_ref().map(|request| request.base.commit.clone()).unwrap_or_default();
    let Ok(base) = ObjectId::parse(base.as_bytes()) else { return Ok(Vec::new()) };
    let here = overlay.context.iter().filter(|(moment, _)| moment.holds_in(phase(start.role)));
    let context = here.flat_map(|(_, paths)| paths).map(|path| (format!("Context: {path}"), path));
    let hears = hears_the_voice(start.role, sees);
    let voice = overlay.voice.iter().filter(|_| hears).map(|path| (format!("Voice profile: {path}"), path));
    let mut readings = Vec::new();
    for (heading, path) in context.chain(voice) {
        let bytes = world.repo.read_blob(&base, path.as_bytes(), READING_AT_MOST)?;
        let missing = || Error::Missing { path: path.clone(), why: "not in the base commit".to_owned() };
        readings.push((heading, String::from_utf8_lossy(&bytes.ok_or_else(missing)?).into_owned()));
    }
    Ok(readings)
}

/// The approved files of `agents.instructions`, as the base commit has them: heading and content.
pub(crate) fn conventions(world: &World, run: &Run) -> Result<Vec<(String, String)>, Error> {
    let base = run.request.as_ref().map(|request| request.base.commit.clone()).unwrap_or_default();
    let Ok(base) = ObjectId::parse(base.as_bytes()) else { return Ok(Vec::new()) };
    let mut shown = Vec::new();
    for path in &run.policy().agents.instructions {
        let bytes = world.repo.read_blob(&base, path.as_bytes(), READING_AT_MOST)?;
        let missing = || Error::Missing { path: path.clone(), why: "not in the base commit".to_owned() };
        let text = String::from_utf8_lossy(&bytes.ok_or_else(missing)?).into_owned();
        shown.push((format!("Project conventions: {path}"), text));
    }
    Ok(shown)
}

/// The files of its commit that an agent does not find in its working copy, one on a line. Their names come from the
/// repository, so they are data.
pub(crate) fn left_out(world: &World, start: &AgentStart) -> Result<Option<String>, Error> {
    const LISTED: usize = 40;
    let Ok(at) = ObjectId::parse(start.at.as_bytes()) else { return Ok(None) };
    let paths = workspace::left_out(&world.repo, &at)?;
    let mut lines: Vec<String> = paths.iter().take(LISTED).map(|path| change::quote_path(path)).collect();
    if paths.len() > LISTED {
        lines.push(format!("and {} more", paths.len() - LISTED));
    }
    Ok((!lines.is_empty()).then(|| lines.join("\n")))
}

/// Those who write, and the reviewer who judges text and intention together, as the Sage does.
fn hears_the_voice(role: Role, sees: &BTreeSet<Sight>) -> bool {
    match role {
        Role::Creator | Role::Maker => true,
        Role::Reviewer => sees.contains(&Sight::Proposal) && sees.contains(&Sight::Diff),
        Role::Explorer | Role::Gatekeeper => false,
    }
}

/// Only what this agent may see is fetched at all.
fn lay_out(
    world: &World,
    run: &Run,
    start: &AgentStart,
    sees: &BTreeSet<Sight>,
) -> Result<ContextSources, Error> {
    // What a review is about has a description of its own.
    let unplanned = run.review.is_none() && !run.is_planned();
    let shown = attention::shown(start.role, sees, unplanned);
    let wants = |sight: Sight| shown.contains(&sight);
    let cycle = run.cycle();
    let answered = |role: Role| cycle.and_then(|cycle| cycle.answer_of(role));
    let mut desk = ContextSources { task: run.task(), unplanned, ..ContextSources::default() };
    if let Some(opened) = &run.review {
        // The change's own description is the only plan.
        if wants(Sight::Proposal) {
            desk.proposal = Some(artifact_text(world, &opened.about)?);
        }
        if wants(Sight::Diff) {
            let at = usize::try_from(start.cycle.saturating_sub(1)).unwrap_or(usize::MAX);
            desk.diff = opened.parts.get(at).map(|part| artifact_text(world, &part.artifact)).transpose()?;
        }
        return Ok(desk);
    }
    if start.purpose == Purpose::Research {
        let risks = text(world, answered(Role::Creator))?.and_then(|proposal| section(&proposal, "Risks"));
        desk.task = format!(
            "{}\n\nRisks to research:\n{}",
            desk.task,
            risks.unwrap_or_else(|| "(none named)".to_owned())
        );
        return Ok(desk);
    }
    if wants(Sight::Research) {
        desk.research = research(world, run)?;
    }
    if wants(Sight::Proposal) {
        desk.proposal = text(world, answered(Role::Creator))?;
    }
    if wants(Sight::Risks) {
        desk.risks = text(world, answered(Role::Creator))?.and_then(|proposal| section(&proposal, "Risks"));
    }
    if wants(Sight::Summary) {
        desk.summary = text(world, answered(Role::Maker))?;
    }
    if wants(Sight::Diff) {
        desk.diff = diff(world, run)?;
    }
    if wants(Sight::Feedback) {
        match start.role {
            Role::Creator => desk.creator_feedback = feedback_text(run, start, Destination::Creator),
            Role::Maker => desk.maker_feedback = feedback_text(run, start, Destination::Maker),
            Role::Explorer | Role::Gatekeeper | Role::Reviewer => {}
        }
    }
    Ok(desk)
}

fn feedback_text(run: &Run, start: &AgentStart, role: Destination) -> Option<String> {
    match too_long(run, start) {
        None => feedback::for_role(run, role),
        Some(_) => feedback::in_short(run, role),
    }
}

/// The Explorer's report of this cycle, with what a mini-Explorer found out in this or the last one.
fn research(world: &World, run: &Run) -> Result<Option<String>, Error> {
    let mut parts = Vec::new();
    if let Some(report) = text(world, run.cycle().and_then(|cycle| cycle.answer_of(Role::Explorer)))? {
        parts.push(report);
    }
    for cycle in run.cycles.iter().rev().take(2) {
        if let Some(report) = text(world, cycle.mini_explorer.as_deref())? {
            parts.push(report);
        }
    }
    Ok((!parts.is_empty()).then(|| parts.join("\n\n")))
}

fn diff(world: &World, run: &Run) -> Result<Option<String>, Error> {
    let (Some(request), Some(work)) = (&run.request, &run.work) else { return Ok(None) };
    diff_between(world, &request.base.commit, &work.commit)
}

pub(crate) fn diff_between(world: &World, from: &str, to: &str) -> Result<Option<String>, Error> {
    let (Ok(base), Ok(commit)) = (ObjectId::parse(from.as_bytes()), ObjectId::parse(to.as_bytes())) else {
        return Ok(None);
    };
    let diff = world.diff(format!("{from}..{to}"), || {
        let diff = change::diff_text(&world.repo, &base, &commit, DIFF_AT_MOST)?;
        // Such a change can't land: one look is enough.
        let shown = if diff.truncated_at.is_some() { SHOWN_OF_TOO_LONG } else { diff.bytes.len() };
        let bytes = diff.bytes.get(..shown).unwrap_or(&diff.bytes).to_vec();
        let shown = change::DiffText { bytes, truncated_at: None };
        let mut text = shown.text();
        if let Some(whole) = diff.truncated_at {
            text.push_str(&format!(
                "\n[the diff is cut here: {} of {whole} bytes are shown; read the rest in your checkout]\n",
                shown.bytes.len()
            ));
        }
        text.push_str(&looking::left_out_by_diff(&world.repo, &base, &commit)?);
        Ok(text)
    })?;
    Ok(Some(diff))
}

fn section(text: &str, heading: &str) -> Option<String> {
    read::section(text, heading).map(|section| section.trim().to_owned())
}

/// The text of an artifact, which must still be what the run wrote (M-B18).
fn text(world: &World, answered: Option<&Answered>) -> Result<Option<String>, Error> {
    answered.map(|answered| artifact_text(world, &answered.artifact)).transpose()
}

pub(crate) fn artifact_text(world: &World, Artifact { name, digest }: &Artifact) -> Result<String, Error> {
    let place = world.artifacts().join(name);
    // The artifacts of an earlier cycle were archived.
    let archived = || {
        let cycles = std::fs::read_dir(world.artifacts()).into_iter().flatten().flatten();
        cycles.map(|folder| folder.path().join(name)).find_map(|path| read_as(&path, digest))
    };
    match read_as(&place, digest).or_else(archived) {
        Some(text) => Ok(text),
        None if place.exists() => Err(Error::Changed { path: place.display().to_string() }),
        None => Err(Error::Missing { path: place.display().to_string(), why: "no such file".to_owned() }),
    }
}

/// Read once: what is used is what was checked.
fn read_as(path: &std::path::Path, digest: &str) -> Option<String> {
    let bytes = files::read_capped(path, ARTIFACT_AT_MOST).ok()?;
    (files::digest(&bytes) == digest).then(|| String::from_utf8_lossy(&bytes).into_owned())
}
