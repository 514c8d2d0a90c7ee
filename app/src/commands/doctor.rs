//! `archeflow doctor`: is everything a run needs in place? With `--try`, does the agent answer?

use archeflow_core::event::Failure as Fault;
use archeflow_core::model::ARCHETYPES;
use archeflow_host::backends::{AgentBackend, forms};
use archeflow_host::config::{self, Flags, Settings};
use archeflow_host::git::runner;
use archeflow_host::open::Project;
use archeflow_host::platform::{caveats, files};
use archeflow_host::probe::{self, DefaultAgent, InstalledClient};
use archeflow_host::sandbox::{SandboxLevel, probe as probe_sandbox};
use archeflow_host::trial::{self, Around, Trial};
use archeflow_host::world::{allowed_env, client_env};
use archeflow_host::{open, proc};

use crate::args::DoctorArgs;
use crate::commands::{open_project, open_project_to_read};
use crate::failure::Failure;
use crate::output::CommandOutput;
use crate::render::text::{pad, safe_line};

struct Check {
    what: &'static str,
    ok: bool,
    said: String,
    /// Keeps nothing from running, but somebody should know.
    note: bool,
}

pub(crate) fn run(args: &DoctorArgs) -> Result<CommandOutput, Failure> {
    let mut checks = Vec::new();
    let mut check = |what, result: Result<String, String>| {
        let (ok, said) = match result {
            Ok(said) => (true, said),
            Err(said) => (false, said),
        };
        checks.push(Check { what, ok, said, note: false });
    };
    check(
        "git",
        runner::check_version().map(|()| "recent enough".to_owned()).map_err(|error| error.to_string()),
    );
    check("platform", Ok(platform(caveats::SYSTEM)));
    check("sandbox", sandbox());
    let (mut configured, mut untested) = (false, false);
    match open_project_to_read(&args.place, true) {
        Err(failure) => check("repository", Err(format!("{} {}", failure.message, failure.hint))),
        Ok(project) => {
            let target = project.target.as_ref().map(|target| target.branch.clone()).unwrap_or_default();
            check("repository", Ok(format!("{}, on {target}", project.places.root().display())));
            check("state folder", Ok(project.state.display().to_string()));
            check("working copies", self_test(&project.state));
            if files::ignores_case(project.places.root()) {
                check("file names", Ok(IGNORES_CASE.to_owned()));
            }
            if let Some(target) = &project.target {
                let busy = project.repo.operations(target).unwrap_or_default();
                check(
                    "checkout",
                    match busy.first() {
                        None => Ok("no operation under way".to_owned()),
                        Some(operation) => {
                            Err(format!("{} is under way; finish it before landing", operation.what))
                        }
                    },
                );
            }
            let settings = project.settings(&Flags::default(), args.place.config.as_deref());
            match settings {
                Err(error) => check("configuration", Err(error.to_string())),
                Ok(settings) => {
                    let withheld: Vec<&str> = settings.withheld().iter().map(|w| w.key.as_str()).collect();
                    check(
                        "configuration",
                        if withheld.is_empty() {
                            Ok("read and in force".to_owned())
                        } else {
                            Err(format!("not approved: {}; run: archeflow trust", withheld.join(", ")))
                        },
                    );
                    let policy = settings.policy();
                    untested = policy.test_command.is_none();
                    check("test command", test_command(&project, policy.test_command.as_deref()));
                    let ready = project.check_git(&settings);
                    check(
                        "git identity",
                        ready.map(|()| "commits are made in your name".to_owned()).map_err(|error| {
                            let failure = Failure::from(error);
                            format!("{} {}", failure.message, failure.hint)
                        }),
                    );
                    let specs =
                        std::iter::once(&policy.agents.default).chain(policy.agents.by_archetype.values());
                    let specs: Vec<&String> = specs.filter(|spec| !spec.is_empty()).collect();
                    if !specs.is_empty() {
                        configured = true;
                        let startable: Result<Vec<_>, _> =
                            specs.iter().map(|spec| project.checked(spec, &settings)).collect();
                        let said = startable.map(|specs| specs.join(", ")).map_err(|error| error.to_string());
                        check("your agents", said);
                    }
                }
            }
            let file = args.place.config.as_deref();
            let personas: Result<Vec<_>, _> =
                ARCHETYPES.iter().map(|(name, _)| project.persona(name, file)).collect();
            check(
                "personas",
                personas.map(|all| format!("{} readable", all.len())).map_err(|error| error.to_string()),
            );
        }
    }
    checks
        .iter_mut()
        .filter(|check| untested && check.what == "test command")
        .for_each(|check| check.note = true);
    let mut check = |what, said: String| checks.push(Check { what, ok: true, said, note: false });
    let known: Vec<&str> = forms().into_iter().map(|(form, _)| form).collect();
    check("agents", format!("this version drives {}", known.join(", ")));
    let (env, own) = (allowed_env(std::env::vars_os(), &[]), client_env(std::env::vars_os()));
    let found: Vec<InstalledClient> = probe::clients(&env, &own).collect();
    let agents: Vec<Check> = found.iter().map(row).collect();
    let chosen = probe::choose(&found);
    if let Some(choice) = &chosen {
        check("without --agent", format!("run takes {}: {}", choice.spec, choice.why));
    }
    let tried = args.tried.as_deref().map(|spec| try_it(args, spec, chosen.as_ref())).transpose()?;
    let answered = tried.as_ref().is_some_and(|(_, trial)| trial.answer.is_ok());
    let startable = configured || answered || agents.iter().any(|row| row.ok);
    if agents.is_empty() && !startable {
        let said = NOTHING_TO_RUN.to_owned();
        checks.push(Check { what: "clients", ok: false, said, note: false });
    }
    let sound = startable && checks.iter().all(|check| check.ok);
    let code = match &tried {
        Some((_, trial)) if trial.answer.is_err() => trial.exit_code(),
        _ if sound => 0,
        _ => 30,
    };
    if args.place.json {
        let checks: Vec<_> = checks.iter().chain(&agents).map(object).collect();
        let tried = tried.as_ref().map(|(spec, trial)| tried_object(spec, trial));
        let object =
            serde_json::json!({"ok": code == 0, "exit_code": code, "checks": checks, "tried": tried});
        return Ok(CommandOutput::json(object).with_code(code));
    }
    let mut out = String::new();
    checks.iter().for_each(|check| show(&mut out, check, "BAD "));
    // One that can be used is enough.
    let mark = if startable { "note" } else { "BAD " };
    agents.iter().for_each(|row| show(&mut out, row, mark));
    tried.iter().for_each(|(spec, trial)| show(&mut out, &tried_check(spec, trial), "BAD "));
    Ok(CommandOutput::text(out).with_code(code))
}

/// What decides whether a tree may land. Without one a run still works, but lands only on somebody's word.
fn test_command(project: &Project, known: Option<&str>) -> Result<String, String> {
    let config = config::folder::below(&project.standing, config::REPOSITORY_CONFIG);
    let of_root = config::REPOSITORY_CONFIG.to_owned();
    let root = project.places.root();
    let is_read = |path: &String| project.offer.files.iter().any(|(read, _)| read == path);
    // What `init` wrote counts once it is committed.
    if let Some(path) = [config, of_root].into_iter().find(|path| root.join(path).exists() && !is_read(path))
    {
        let add = archeflow_core::text::shell_word(&path);
        return Err(format!(
            "{path} is not committed, and runs read it from the last commit; git add {add} && git commit"
        ));
    }
    match known {
        Some(command) => Ok(command.to_owned()),
        None => {
            Ok("none: a change lands only if you pass --no-tests; set one with archeflow init".to_owned())
        }
    }
}

/// What commands are kept in. Less than there could be is no fault; nothing at all is one.
fn sandbox() -> Result<String, String> {
    let me = std::env::current_exe().map_err(|error| error.to_string())?;
    let level = probe_sandbox(&me);
    let told = level.line();
    let told = told.strip_prefix("sandbox: ").unwrap_or(&told).to_owned();
    match level {
        SandboxLevel::Absent { .. } => Err(told),
        SandboxLevel::Bubblewrap { .. } | SandboxLevel::Landlock { .. } | SandboxLevel::Seatbelt => Ok(told),
    }
}

fn show(out: &mut String, check: &Check, bad: &str) {
    let mark = match (check.ok, check.note) {
        (true, false) => "ok  ",
        (true, true) => "note",
        (false, _) => bad,
    };
    put!(out, "{mark} {} {}", pad(check.what, 16), safe_line(&check.said));
}

fn object(check: &Check) -> serde_json::Value {
    serde_json::json!({"check": check.what, "ok": check.ok, "said": check.said})
}

fn row(found: &InstalledClient) -> Check {
    let (told, wrong) = (found.describe(), found.wrong());
    let said = wrong.as_ref().map_or_else(|| told.clone(), |wrong| format!("{told}: {wrong}"));
    Check { what: found.client.name, ok: wrong.is_none(), said, note: false }
}

/// Asks an agent one question, only on request.
fn try_it(args: &DoctorArgs, spec: &str, chosen: Option<&DefaultAgent>) -> Result<(String, Trial), Failure> {
    let project = open_project(&args.place, None, false)?;
    let none =
        || Failure::usage("no agent is installed", "Name one: archeflow doctor --try 'cmd:./my-agent.sh'");
    let spec = if spec.is_empty() { chosen.ok_or_else(none)?.spec.as_str() } else { spec };
    let settings = project.settings(&Flags::default(), args.place.config.as_deref())?;
    proc::become_subreaper();
    tried(&project, &settings, spec)
}

fn tried(project: &Project, settings: &Settings, spec: &str) -> Result<(String, Trial), Failure> {
    let agent = AgentBackend::parse(spec, &project.env.cwd).map_err(open::Error::from)?;
    let env = allowed_env(std::env::vars_os(), &settings.variables());
    let own = client_env(std::env::vars_os());
    let (policy, me) = (settings.policy(), &project.env.me);
    let around = Around { state: &project.state, me, env: &env, own: &own, policy: &policy };
    let trial = trial::ask(&agent, &around);
    let trial = trial.map_err(|error| Failure::new(30, "environment", error.to_string(), ""))?;
    Ok((agent.spec(), trial))
}

/// The same for the wizard: what it said, or why it can't work.
pub(crate) fn ask_agent(project: &Project, settings: &Settings, spec: &str) -> Result<String, String> {
    let (spec, trial) = tried(project, settings, spec).map_err(|failure| failure.message)?;
    let check = tried_check(&spec, &trial);
    if check.ok { Ok(check.said) } else { Err(check.said) }
}

fn tried_check(spec: &str, trial: &Trial) -> Check {
    let took = seconds(trial);
    let cost = trial.cost.map(|cost| format!(" for {}", cost.shown())).unwrap_or_default();
    let model = if trial.model.is_empty() { String::new() } else { format!(", model {}", trial.model) };
    let said = match &trial.answer {
        Ok(said) => format!("{spec} answered after {took} s{cost}{model}: {said}"),
        Err((kind, why)) => format!("{spec} did not answer ({}, after {took} s{cost}): {why}", name(*kind)),
    };
    Check { what: "tried", ok: trial.answer.is_ok(), said, note: false }
}

fn tried_object(spec: &str, trial: &Trial) -> serde_json::Value {
    let (fault, why) = match &trial.answer {
        Ok(_) => (serde_json::Value::Null, serde_json::Value::Null),
        Err((kind, why)) => (name(*kind).into(), why.as_str().into()),
    };
    serde_json::json!({
        "agent": spec, "answered": trial.answer.is_ok(), "said": trial.answer.as_ref().ok(), "fault": fault,
        "detail": why, "duration_ms": u64::try_from(trial.took.as_millis()).unwrap_or(u64::MAX),
        "cost_usd": trial.cost, "model": trial.model,
    })
}

fn seconds(trial: &Trial) -> String {
    format!("{:.1}", trial.took.as_secs_f64())
}

/// The word the journal has for it.
fn name(kind: Fault) -> String {
    serde_json::to_value(kind).ok().and_then(|name| name.as_str().map(str::to_owned)).unwrap_or_default()
}

const NOTHING_TO_RUN: &str = "none is installed and no agent is configured: install one, or name an agent with --agent \
     or agents.default";

const IGNORES_CASE: &str =
    "this file system ignores case: a change with names that differ only in case is not landed";

/// The system and everything that is weaker there than on Linux.
fn platform(system: &str) -> String {
    let caveats = caveats::of(system);
    if caveats.is_empty() { system.to_owned() } else { format!("{system}; {}", caveats.join("; ")) }
}

/// M-B14: locks, renames and syncs must work where we keep our state.
fn self_test(state: &std::path::Path) -> Result<String, String> {
    let text = |error: std::io::Error| {
        let folder = state.display();
        format!(
            "{folder} can't be used: {error}; make it writable for you, or name another one: export XDG_STATE_HOME=<folder>"
        )
    };
    let path = state.join(format!("self-test-{}", std::process::id()));
    let other = path.with_extension("moved");
    let result = (|| {
        let file = std::fs::File::create(&path).map_err(text)?;
        file.lock().map_err(text)?;
        file.sync_all().map_err(text)?;
        std::fs::rename(&path, &other).map_err(text)?;
        Ok("locks, renames and syncs work".to_owned())
    })();
    let _ = std::fs::remove_file(&path);
    let _ = std::fs::remove_file(&other);
    result
}

#[cfg(test)]
mod tests {
    use super::platform;

    #[test]
    fn the_platform_is_listed_with_what_is_weaker_there() {
        assert_eq!(platform("linux"), "linux");
        let macos = platform("macos");
        assert!(macos.starts_with("macos; ") && macos.contains("not run on a Mac"), "{macos}");
        assert!(macos.contains("no subreaper") && macos.contains("watcher process"), "{macos}");
    }
}
