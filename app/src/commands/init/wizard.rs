//! Set up in one go (U-13): agent, setup, tests and trust in four questions, each with a proposal, each tried at once.
//!
//! No configuration is written before the last answer. Trying the commands leaves their logs in `.archeflow/artifacts/init`.

use std::io::BufRead;
use std::sync::{Arc, Mutex, PoisonError};

use archeflow_core::event::{PreflightDone, Tested};
use archeflow_core::projections::view;
use archeflow_core::rules::proposals::{ProposedCommand, ProposedCommands};
use archeflow_core::text::shell_word;
use archeflow_host::backends::AgentBackend;
use archeflow_host::config::{self, Flags, Settings, bundle};
use archeflow_host::open::{Project, TriedCommands};
use archeflow_host::probe::{self, InstalledClient};
use archeflow_host::proc;
use archeflow_host::world::{World, allowed_env, client_env};

use super::text;
use crate::args::CommonArgs;
use crate::commands::{doctor, open_project, trust};
use crate::failure::Failure;
use crate::output::CommandOutput;
use crate::render::text::{safe, safe_line};

/// Answers to one question before it is left as it is.
const TRIES: usize = 4;

pub(super) fn run(
    project: Project,
    place: &CommonArgs,
    folder: &str,
    proposed: ProposedCommands,
) -> Result<CommandOutput, Failure> {
    trust::only_from_outside("configure anything")?;
    proc::become_subreaper();
    stop_on_signals()?;
    let root = project.places.root().to_path_buf();
    let settings = project.settings(&Flags::default(), place.config.as_deref())?;
    tell!(
        "Four questions. Enter takes what is in brackets, '-' leaves it out, Ctrl-C leaves everything as it is."
    );

    let agent = agent(&project, &settings)?;
    let commands = commands(project, place, folder, proposed, &settings)?;

    tell!("\n4/4  Trust");
    let config = config::folder::below(folder, config::REPOSITORY_CONFIG);
    let content = text(agent.as_deref(), &commands);
    bundle::check_config(&config, &content)?;
    tell!("     {} will be written, with what was answered:\n", safe_line(&config));
    for line in content.lines().filter(|line| !line.starts_with('#') && !line.is_empty()) {
        tell!("       {}", safe(line));
    }
    tell!(
        "\n     It names what archeflow may start here, so it counts only once it is committed and you approved it."
    );
    let answer = ask("     Write it, commit it and approve it? [Y/n, w to write it only]", "y")?;
    let is_no = ["n", "no", "-"].contains(&answer.to_lowercase().as_str());
    if is_no {
        return Ok(CommandOutput::text("No configuration was written.\n".to_owned()));
    }
    let project = open_project(place, None, false)?;
    project.places.make()?;
    bundle::lay_down(&root, &[(config.clone(), content.into_bytes())])?;
    let by_hand =
        format!("git add {0} && git commit -m 'Configure archeflow'\n  archeflow trust", shell_word(&config));
    if answer.eq_ignore_ascii_case("w") {
        return Ok(CommandOutput::text(format!("Wrote {config}. Next:\n  {by_hand}\n")));
    }
    if let Err(said) = project.repo.commit_for_user(&config, "Configure archeflow") {
        let said = safe_line(&said.to_string());
        let message = format!("{config} is written, but git did not commit it: {said}");
        return Err(Failure::new(
            30,
            "not_committed",
            message,
            format!("Commit and approve it yourself:\n  {by_hand}"),
        ));
    }
    trust::approve_now(&open_project(place, None, true)?)?;
    let mut out = String::new();
    put!(out, "Wrote, committed and approved {config}.\n\nReady. The command to type:");
    let named = if agent.is_some() { "" } else { " --agent <spec>" };
    put!(out, "  archeflow run \"<what is to be done>\"{named}");
    Ok(CommandOutput::text(out))
}

/// Asks which agent to use, and asks that agent one short question.
fn agent(project: &Project, settings: &Settings) -> Result<Option<String>, Failure> {
    let (env, own) =
        (allowed_env(std::env::vars_os(), &settings.variables()), client_env(std::env::vars_os()));
    let found: Vec<InstalledClient> = probe::clients(&env, &own).collect();
    tell!("\n1/4  Agent: the client or command that does the work");
    for client in &found {
        let wrong = client.wrong().map(|wrong| format!(": {wrong}")).unwrap_or_default();
        tell!("     {} {}{}", client.client.name, safe_line(&client.describe()), safe_line(&wrong));
    }
    if found.is_empty() {
        tell!(
            "     No known client is installed. Any command that reads a task can be one: cmd:./my-agent.sh"
        );
    }
    let own = settings.policy().agents.default;
    let mut proposal = if own.is_empty() {
        probe::choose(&found).map(|choice| choice.spec).unwrap_or_default()
    } else {
        own
    };
    let mut failed = None;
    for _ in 0..TRIES {
        let answer = ask("     Agent (it is asked one short question, to see that it answers)", &proposal)?;
        if answer.is_empty() || answer == "-" {
            return Ok(None);
        }
        if failed.as_ref() == Some(&answer) {
            break;
        }
        if let Err(error) = AgentBackend::parse(&answer, &project.env.cwd) {
            tell!("     {}", safe_line(&error.to_string()));
            continue;
        }
        match doctor::ask_agent(project, settings, &answer) {
            Ok(said) => {
                tell!("     {}", safe_line(&said));
                return Ok(Some(answer));
            }
            Err(why) => {
                tell!("     {}\n     Enter keeps it all the same.", safe_line(&why));
                proposal.clone_from(&answer);
                failed = Some(answer);
            }
        }
    }
    Ok(failed)
}

/// The two commands, tried together on the last commit.
fn commands(
    project: Project,
    place: &CommonArgs,
    folder: &str,
    proposed: ProposedCommands,
    settings: &Settings,
) -> Result<ProposedCommands, Failure> {
    let mut asked = proposed;
    let mut project = Some(project);
    for round in 0..TRIES {
        tell!("\n2/4  Setup: the command that installs what the tests need, once per tree");
        asked.setup = command(asked.setup.as_ref(), "setup_command")?;
        tell!("\n3/4  Tests: the command that decides whether a tree is good");
        asked.tests = command(asked.tests.as_ref(), "test_command")?;
        if asked.setup.is_none() && asked.tests.is_none() {
            return Ok(asked);
        }
        let opened = match project.take() {
            Some(project) => project,
            None => open_project(place, None, false)?,
        };
        let Some(tried) = try_them(opened, folder, &asked, settings)? else {
            tell!("     Nothing is committed here yet, so they can't be tried.");
            return Ok(asked);
        };
        tell!(" {}", safe_line(&view::preflight::outcome(&tried.done)));
        if tried.done.is_passed() {
            return Ok(asked);
        }
        explain(&tried);
        if round + 1 == TRIES || !is_yes("     Change the commands? [Y/n]")? {
            break;
        }
    }
    Ok(asked)
}

fn command(proposed: Option<&ProposedCommand>, key: &str) -> Result<Option<ProposedCommand>, Failure> {
    let known = proposed.map(|found| found.command.as_str()).unwrap_or_default();
    if let Some(found) = proposed {
        tell!("     {}", safe_line(&found.why));
    }
    for _ in 0..TRIES {
        let answer = ask("     Command", known)?;
        if answer.is_empty() || answer == "-" {
            return Ok(None);
        }
        if let Err(fault) = bundle::Bundle::default().set("answer", key, &answer) {
            tell!("     {}", safe_line(&fault.text));
            continue;
        }
        let why = match proposed {
            Some(found) if found.command == answer => found.why.clone(),
            Some(_) | None => "typed".to_owned(),
        };
        return Ok(Some(ProposedCommand { command: answer, why }));
    }
    Ok(None)
}

fn try_them(
    project: Project,
    folder: &str,
    asked: &ProposedCommands,
    settings: &Settings,
) -> Result<Option<TriedCommands>, Failure> {
    let Some(trial) = project.command_trial(settings)? else { return Ok(None) };
    tell_part!("     Trying on the last commit, in a copy of it...");
    let stopping = Interrupt::during(&trial.world);
    let here = |found: &Option<ProposedCommand>| {
        found.as_ref().map(|found| config::folder::command_in(folder, &found.command))
    };
    let tried = trial.run(here(&asked.setup), here(&asked.tests), &settings.policy());
    proc::finish_all();
    drop(stopping);
    let tried = tried.map_err(|error| Failure::new(30, "environment", error.to_string(), ""))?;
    Ok(Some(tried))
}

fn explain(tried: &TriedCommands) {
    let PreflightDone { setup, tests, .. } = &tried.done;
    let failed = setup.as_ref().filter(|setup| setup.result != Tested::Passed);
    let (lines, log) = match (failed, tests) {
        (Some(setup), _) => (&setup.lines, &setup.artifact),
        (None, Some(tests)) => (&tests.lines, &tests.artifact),
        (None, None) => return,
    };
    lines.iter().for_each(|line| tell!("       {}", safe_line(line)));
    if !log.is_empty() {
        tell!("     All of it: {}", safe(&tried.logs.join(log).display().to_string()));
    }
}

/// A line from the terminal; what is in brackets if it is empty. The end of input is no answer to anything.
fn ask(question: &str, proposal: &str) -> Result<String, Failure> {
    if question.contains('[') || proposal.is_empty() {
        tell_part!("{question}: ");
    } else {
        tell_part!("{question} [{}]: ", safe_line(proposal));
    }
    let mut line = String::new();
    let read = std::io::stdin().lock().read_line(&mut line);
    match read {
        Ok(0) | Err(_) => {
            tell!("");
            Err(Failure::new(
                130,
                "left",
                "no answer: no configuration was written",
                "Start again with: archeflow init",
            ))
        }
        Ok(_) if line.trim().is_empty() => Ok(proposal.to_owned()),
        Ok(_) => Ok(line.trim().to_owned()),
    }
}

fn is_yes(question: &str) -> Result<bool, Failure> {
    Ok(archeflow_core::run::is_yes(&ask(question, "y")?))
}

/// What is stopped by a signal. While nothing is tried the program simply ends: nothing was written yet.
static INTERRUPT: Mutex<Option<Arc<World>>> = Mutex::new(None);

struct Interrupt;

impl Interrupt {
    fn during(world: &Arc<World>) -> Interrupt {
        *INTERRUPT.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(world));
        Interrupt
    }
}

impl Drop for Interrupt {
    fn drop(&mut self) {
        let world = INTERRUPT.lock().unwrap_or_else(PoisonError::into_inner).take();
        if world.is_some_and(|world| world.watch.is_stopping()) {
            std::process::exit(STOPPED);
        }
    }
}

/// As the shell has it for Ctrl-C.
const STOPPED: i32 = 130;

fn stop_on_signals() -> Result<(), Failure> {
    proc::signals::listen(|_| {
        tell!("\nstopped; no configuration was written");
        match &*INTERRUPT.lock().unwrap_or_else(PoisonError::into_inner) {
            // Ends as soon as what it waits for has ended.
            Some(world) => world.kill_now(),
            None => std::process::exit(STOPPED),
        }
    })
    .map_err(|error| Failure::new(30, "environment", format!("signals can't be heard: {error}"), ""))
}
