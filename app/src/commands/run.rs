//! `archeflow run`: a new run, or one re-entered with `--start-from`.

use archeflow_core::event::RunStart;
use archeflow_core::model::{Agents, Money, Phase, counted};
use archeflow_core::rules::estimate;
use archeflow_core::strategies;
use archeflow_host::config::Flags;
use archeflow_host::open::{self, RunRequest};
use archeflow_host::probe::DefaultAgent;

use crate::args::RunArgs;
use crate::commands::session::{attended, drive, join_replica, with_given_approval};
use crate::commands::{naming, open_project, trust};
use crate::failure::Failure;
use crate::output::CommandOutput;
use crate::render::text::{pad, safe_line};

pub(crate) fn run(args: &RunArgs) -> Result<CommandOutput, Failure> {
    let flags = flags(args)?;
    let mut project = open_project(&args.session.place, args.target.as_deref(), true)?;
    if attended(&args.session) && !args.session.place.json && trust::offer(&project)? {
        project = open_project(&args.session.place, args.target.as_deref(), true)?;
    }
    project = with_given_approval(project, &args.session)?;
    if let Some(remote) = &args.remote {
        project = project.onto_remote(remote, args.target.as_deref())?;
    }
    if let Some(phase) = &args.start_from {
        return reenter(args, &flags, project, phase);
    }
    let task = args.task.clone().unwrap_or_default();
    notice_dirty(&project);
    let settings = project.settings(&flags, args.session.place.config.as_deref())?;
    let auto_merge = args.session.auto_merge || settings.auto_merge();
    for note in project.git_notes(&settings)? {
        tell!("note: {}", safe_line(&note));
    }
    notice_agent(&project, &settings.policy().agents);
    for place in project.elsewhere(&settings.policy().agents, &settings) {
        tell!("note: a model is asked at {}", safe_line(&place));
    }
    let wanted = RunRequest {
        task,
        flags,
        config_file: args.session.place.config.clone(),
        dry_run: args.dry_run,
        attended: attended(&args.session),
        id: args.named.clone(),
    };
    if args.estimate {
        return estimate(&project.would_start(&wanted)?, args.session.place.json);
    }
    let mut opened = project.new_run(&wanted)?;
    join_replica(&mut opened.driver, &args.session)?;
    drive(opened.driver, "run", &args.session, auto_merge, opened.before, opened.after)
}

/// What a run would be, without one (U-16).
fn estimate(start: &RunStart, json: bool) -> Result<CommandOutput, Failure> {
    let policy = &start.config;
    let key = strategies::seats_key(start.strategy, start.workflow);
    let seats = start.seats.get(key).map_or(&[][..], Vec::as_slice);
    let estimate = estimate::before(policy, seats, &start.tiers, start.workflow, start.max_cycles);
    if json {
        let agents = estimate.agents.iter().map(|(archetype, tier, cost)| {
            let agent = policy.agents.of(archetype);
            serde_json::json!({ "archetype": archetype, "agent": agent, "model": tier, "cost_usd": cost })
        });
        return Ok(CommandOutput::json(serde_json::json!({
            "workflow": start.workflow, "strategy": start.strategy, "cycles": start.max_cycles,
            "agents": agents.collect::<Vec<_>>(), "cycle_usd": estimate.cycle, "most_usd": estimate.most,
            "budget_usd": policy.costs.budget_usd, "setup_command": policy.setup_command,
            "test_command": policy.test_command, "base": start.base.commit,
        })));
    }
    let mut out = String::new();
    put!(out, "Workflow {}, at most {}", start.workflow.name(), counted(start.max_cycles, "cycle"));
    let width = estimate.agents.iter().map(|(name, _, _)| policy.agents.of(name).len()).max().unwrap_or(0);
    for (name, tier, cost) in &estimate.agents {
        let agent = pad(&safe_line(policy.agents.of(name)), width.min(40));
        put!(out, "  {} {agent}  {} {}", pad(&safe_line(name), 10), pad(tier.name(), 7), cost.shown());
    }
    let (cycle, most) = (estimate.cycle.shown(), estimate.most.shown());
    put!(out, "Expected: about {cycle} a cycle, {most} for all of them (usual token counts)");
    put!(out, "Budget:   {}", policy.costs.budget_usd.map_or_else(|| "none".to_owned(), Money::shown));
    let command = |command: &Option<String>| command.as_deref().map_or_else(|| "none".to_owned(), safe_line);
    put!(out, "Setup:    {}", command(&policy.setup_command));
    put!(out, "Tests:    {}", command(&policy.test_command));
    put!(
        out,
        "\nNothing was started. --dry-run also makes the plan, for which Explorer and Creator are paid."
    );
    Ok(CommandOutput::text(out))
}

fn reenter(
    args: &RunArgs,
    flags: &Flags,
    project: open::Project,
    phase: &str,
) -> Result<CommandOutput, Failure> {
    let phase = Phase::parse(phase).ok_or_else(|| {
        Failure::usage(format!("'{phase}' is no phase to start from"), "Known: plan, do, check, act")
    })?;
    let id = naming::named(&project, args.run.as_deref().unwrap_or_default())?;
    let file = args.session.place.config.as_deref();
    let auto_merge = args.session.auto_merge || project.settings(flags, file)?.auto_merge();
    let mut entry = project.reenter(&id, phase, args.task.as_deref(), flags, file)?;
    join_replica(&mut entry.driver, &args.session)?;
    drive(
        entry.driver,
        &format!("start-from {}", phase.name()),
        &args.session,
        auto_merge,
        entry.before,
        entry.after,
    )
}

/// Without a named agent the installed one is used, and a note is printed.
fn notice_agent(project: &open::Project, agents: &Agents) {
    if agents.default.is_empty()
        && agents.by_archetype.is_empty()
        && let Some(choice) = project.default_client()
    {
        notice_choice(choice);
    }
}

pub(crate) fn notice_choice(choice: &DefaultAgent) {
    let (who, why) = (&choice.spec, safe_line(&choice.why));
    tell!("note: no agent was named; using {who} for all archetypes: {why} (change with --agent)");
}

/// M-E9: the run works from the commit, and a note says so.
fn notice_dirty(project: &open::Project) {
    let dirty = match project.repo.dirty_summary() {
        Ok(dirty) => dirty,
        Err(error) => {
            let error = safe_line(&error.to_string());
            tell!("note: your uncommitted work is not part of this run; it can't be listed: {error}");
            return;
        }
    };
    let parts: Vec<String> =
        [(dirty.staged, "staged"), (dirty.modified, "modified"), (dirty.untracked, "untracked")]
            .into_iter()
            .filter(|(n, _)| *n > 0)
            .map(|(n, what)| format!("{n} {what}"))
            .collect();
    if !parts.is_empty() {
        tell!(
            "note: your uncommitted work ({}) is not part of this run and will not be touched",
            parts.join(", ")
        );
    }
}

/// `archetype=spec`, as often as it was given.
pub(crate) fn pairs(given: &[String]) -> Result<Vec<(String, String)>, Failure> {
    let mut pairs = Vec::new();
    for pair in given {
        let (name, spec) = pair.split_once('=').ok_or_else(|| {
            Failure::usage(
                format!("--agent-for '{pair}' has no '='"),
                "Write --agent-for guardian=cmd:./my-agent.sh",
            )
        })?;
        pairs.push((name.to_owned(), spec.to_owned()));
    }
    Ok(pairs)
}

fn flags(args: &RunArgs) -> Result<Flags, Failure> {
    let agent_for = pairs(&args.agent_for)?;
    Ok(Flags {
        workflow: args.workflow.clone(),
        strategy: args.strategy.clone(),
        domain: args.domain.clone(),
        team: args.team.clone(),
        lens: args.lens.clone(),
        agent: args.agent.clone(),
        agent_for,
        test_command: args.test_command.clone(),
        no_tests: args.no_tests.then_some(true),
        setup_command: args.setup_command.clone(),
        allow_red_base: args.allow_red_base.then_some(true),
        auto_merge: args.session.auto_merge.then_some(true),
        budget: args.budget.clone(),
        extra_cycles: args.extra_cycles.clone(),
        ..Flags::default()
    })
}
