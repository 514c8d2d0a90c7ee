//! `archeflow demo`: a whole run on a small real repository, with scripted agents and everything else real.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use archeflow_core::settings::{NotifySettings, TelemetrySettings};
use archeflow_host::config::Flags;
use archeflow_host::open::{ProcessEnv, Project, RunRequest};
use archeflow_host::platform::children;

use crate::args::{CommonArgs, DemoArgs, Session};
use crate::commands::process_env;
use crate::commands::session::drive;
use crate::failure::Failure;
use crate::output::CommandOutput;
use crate::render::text::Paint;

/// The sample: a shop's till in shell, with a bug at exactly 100 euros, and tests that do not cover it.
const FILES: [(&str, &str); 3] = [
    ("till.sh", include_str!("../../demo/till.sh")),
    ("tests/run.sh", include_str!("../../demo/tests.sh")),
    ("README.md", include_str!("../../demo/README.md")),
];
const PLAY: &str = include_str!("../../demo/demo.play");
const TASK: &str = "Give the discount from 100 euros on";

pub(crate) fn run(args: &DemoArgs) -> Result<CommandOutput, Failure> {
    let paint = Paint::for_stderr();
    let folder = folder(args)?;
    let shop = folder.join("shop");
    make(&shop).map_err(|error| {
        Failure::new(30, "environment", format!("the sample could not be made: {error}"), "")
    })?;
    let play = folder.join("demo.play");
    let text = if args.quick {
        PLAY.lines().filter(|line| !line.starts_with("sleep ")).collect::<Vec<_>>().join("\n")
    } else {
        PLAY.to_owned()
    };
    std::fs::write(&play, text)
        .map_err(|error| Failure::new(30, "environment", format!("{}: {error}", play.display()), ""))?;

    tell!(
        "{}",
        paint.bold("A whole run, live. The agents are scripted: no model is called, no account is needed.")
    );
    tell!(
        "Everything else is real: the git repository, the processes, the tests, the review rules, the landing."
    );
    tell!("Sample: {}\n", shop.display());

    let unsafe_no_sandbox = args.unsafe_no_sandbox;
    let mut env = ProcessEnv { no_sandbox: unsafe_no_sandbox, ..process_env()? };
    env.variables.retain(|(name, _)| name != "XDG_STATE_HOME" && name != "XDG_CONFIG_HOME");
    env.variables.push(("XDG_STATE_HOME".into(), folder.join("state").into()));
    env.variables.push(("XDG_CONFIG_HOME".into(), folder.join("config").into()));
    let project = Project::open(env, &shop, None, true)?;
    let wanted = RunRequest {
        task: TASK.to_owned(),
        flags: Flags {
            workflow: Some("standard".to_owned()),
            strategy: Some("pdca".to_owned()),
            agent: Some(format!("script:{}", play.display())),
            test_command: Some("sh tests/run.sh".to_owned()),
            ..Flags::default()
        },
        ..RunRequest::default()
    };
    let mut opened = project.new_run(&wanted)?;
    // A demonstration calls nobody.
    opened.driver.notify = NotifySettings::default();
    opened.driver.telemetry = TelemetrySettings::default();
    let run_id = opened.driver.world.run_id.clone();
    let place = CommonArgs { repo: Some(shop.clone()), config: None, json: args.json, unsafe_no_sandbox };
    let session = Session { auto_merge: true, ..Session::of(&place, true, args.tui) };
    let output = drive(opened.driver, "demo", &session, true, opened.before, opened.after)?;
    look_around(&shop, &run_id, paint);
    Ok(output)
}

fn look_around(shop: &Path, run_id: &str, paint: Paint) {
    let place = shop.display();
    let me = std::env::current_exe().map_or_else(|_| "archeflow".to_owned(), |me| me.display().to_string());
    tell!("\n{}", paint.bold("Look at what happened:"));
    for (command, meaning) in [
        (format!("git -C {place} log --graph --oneline"), "the landed merge"),
        (format!("git -C {place} diff HEAD^1"), "the change"),
        (
            format!("cat {place}/.archeflow/artifacts/{run_id}/cycle-1/check-guardian.md"),
            "the review that sent it back",
        ),
        (
            format!("cat {place}/.archeflow/artifacts/{run_id}/convergence-cycle-2.md"),
            "how the findings moved",
        ),
        (format!("{me} show {run_id} --why --repo {place}"), "every decision and its rule"),
        (format!("{me} report {run_id} --html -o report.html --repo {place}"), "the whole run on one page"),
    ] {
        tell!("  {}\n      {}", paint.accent(&command), paint.dim(meaning));
    }
    tell!("\n{}", paint.bold("On a repository of your own, with any program that reads a brief on stdin:"));
    tell!(
        "  {}",
        paint
            .accent(&format!("{me} run \"<task>\" --agent 'cmd:<your agent>' --test-command '<your tests>'"))
    );
}

fn folder(args: &DemoArgs) -> Result<PathBuf, Failure> {
    let fail = |path: &Path, error: std::io::Error| {
        Failure::new(30, "environment", format!("{}: {error}", path.display()), "")
    };
    if let Some(dir) = &args.dir {
        let inside = dir.read_dir().is_ok_and(|mut entries| entries.next().is_some());
        if inside {
            return Err(Failure::usage(
                format!("{} is not empty", dir.display()),
                "Name a new or empty folder.",
            ));
        }
        std::fs::create_dir_all(dir).map_err(|error| fail(dir, error))?;
        return dir.canonicalize().map_err(|error| fail(dir, error));
    }
    let base = std::env::temp_dir();
    for n in 0..1_000_u32 {
        let path = base.join(format!("archeflow-demo-{}-{n}", std::process::id()));
        match std::fs::create_dir(&path) {
            Ok(()) => return path.canonicalize().map_err(|error| fail(&path, error)),
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(fail(&path, error)),
        }
    }
    Err(Failure::new(
        30,
        "environment",
        "no free folder for the sample",
        "Name one: archeflow demo --dir <dir>",
    ))
}

fn make(shop: &Path) -> std::io::Result<()> {
    for (name, text) in FILES {
        let path = shop.join(name);
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent)?;
        }
        std::fs::write(path, text)?;
    }
    git(shop, &["init", "-q", "-b", "main"])?;
    git(shop, &["config", "user.name", "Demo User"])?;
    git(shop, &["config", "user.email", "demo@example.invalid"])?;
    git(shop, &["config", "commit.gpgsign", "false"])?;
    git(shop, &["add", "-A"])?;
    git(shop, &["commit", "-q", "-m", "A small till"])
}

fn git(dir: &Path, args: &[&str]) -> std::io::Result<()> {
    let mut command = Command::new("git");
    command
        .arg("-C")
        .arg(dir)
        .args(args)
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CONFIG_GLOBAL", "/dev/null");
    for name in ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"] {
        command.env_remove(name);
    }
    let mut child = children::spawn(command.stdin(Stdio::null()))?;
    let status = children::wait(&mut child)?;
    if status.success() {
        Ok(())
    } else {
        Err(std::io::Error::other(format!("git {args:?} ended with {status}")))
    }
}
