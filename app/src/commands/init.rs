//! `archeflow init`: a first configuration, with commands proposed from the project's files; by four questions in a
//! terminal, plain without one, or from a bundle.

mod client;
mod wizard;

use std::path::{Path, PathBuf};

use archeflow_core::rules::proposals::{self, ProjectFiles, ProposedCommand, ProposedCommands};
use archeflow_core::text::shell_word;
use archeflow_host::config::bundle::{self, Bundle, quoted};
use archeflow_host::config::{self, ConfigFile};
use archeflow_host::open::Project;
use archeflow_host::store::files;

use crate::args::InitArgs;
use crate::commands::{open_project, session};
use crate::failure::Failure;
use crate::output::CommandOutput;
use crate::render::text::{pad, safe_line};

pub(crate) fn run(args: &InitArgs) -> Result<CommandOutput, Failure> {
    if let Some(client) = args.client {
        return client::run(args, client);
    }
    let project = open_project(&args.place, None, false)?;
    let root = project.places.root().to_path_buf();
    let bundles = user_bundles(&project);
    if args.list {
        return list(args, bundles.as_deref());
    }
    if let Some(name) = &args.save {
        return save(args, name, &root, bundles.as_deref());
    }
    if args.bundle.is_some() || args.from.is_some() || !args.set.is_empty() {
        return from_bundle(args, &project, bundles.as_deref());
    }
    let folder = folder(&project, args);
    let proposed = proposed(&root.join(&folder), args);
    let config = config::folder::below(&folder, config::REPOSITORY_CONFIG);
    let path = root.join(&config);
    if path.exists() {
        let message = format!("{} exists already", path.display());
        return Err(Failure::usage(message, "Edit it; see what is in force with: archeflow config show"));
    }
    let given = args.test_command.is_some() || args.setup_command.is_some();
    if !args.dry_run && !args.place.json && !given && !args.yes && session::talks() {
        return wizard::run(project, &args.place, &folder, proposed);
    }
    for (flag, key, command) in [
        ("--test-command", "test_command", &args.test_command),
        ("--setup-command", "setup_command", &args.setup_command),
    ] {
        if let Some(command) = command {
            Bundle::default().set(flag, key, command).map_err(config::Faults::from)?;
        }
    }
    let text = text(None, &proposed);
    if !args.dry_run {
        project.places.make()?;
        bundle::lay_down(&root, &[(config.clone(), text.clone().into_bytes())])?;
    }
    let command = |proposed: &Option<ProposedCommand>| proposed.as_ref().map(|found| found.command.clone());
    if args.place.json {
        return Ok(CommandOutput::json(serde_json::json!({
            "path": path.to_string_lossy(), "test_command": command(&proposed.tests),
            "setup_command": command(&proposed.setup), "content": text, "written": !args.dry_run,
        })));
    }
    let mut out = String::new();
    if args.dry_run {
        put!(out, "{text}");
        return Ok(CommandOutput::text(out));
    }
    put!(out, "Wrote {}", path.display());
    if let Some(ProposedCommand { command, why }) = &proposed.setup {
        put!(out, "Setup command: {} ({why})", safe_line(command));
    }
    match &proposed.tests {
        Some(ProposedCommand { command, why }) => {
            put!(out, "Test command: {} ({why})", safe_line(command));
        }
        None => put!(out, "No test command could be guessed: set test_command in that file."),
    }
    if !folder.is_empty() {
        put!(out, "It is used for commands that are typed in {folder}; they run there.");
    }
    put!(out, "\nNext:\n  git add {} && git commit -m 'Configure archeflow'", shell_word(&config));
    put!(
        out,
        "  archeflow trust          approve the commands it names\n  archeflow run \"<task>\" --agent <spec>"
    );
    Ok(CommandOutput::text(out))
}

/// Where the user stands, if that is a project of its own within the repository (U-16); else the root.
fn folder(project: &Project, args: &InitArgs) -> String {
    let root = project.places.root();
    let here = root.join(&project.standing);
    let found = proposed(&here, args);
    let is_project = found.setup.is_some() || found.tests.is_some();
    if is_project { project.standing.clone() } else { String::new() }
}

/// What was given, and otherwise what the files of the folder suggest.
fn proposed(folder: &Path, args: &InitArgs) -> ProposedCommands {
    const AT_MOST: u64 = 1024 * 1024;
    let read = |name: &str| {
        let bytes = files::read_capped(&folder.join(name), AT_MOST).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    };
    let found = proposals::propose(&ProjectFiles { has: &|name| folder.join(name).exists(), read: &read });
    let given = |command: &Option<String>| {
        command.clone().map(|command| ProposedCommand { command, why: "given".to_owned() })
    };
    ProposedCommands {
        setup: given(&args.setup_command).or(found.setup),
        tests: given(&args.test_command).or(found.tests),
        cache: found.cache,
    }
}

/// The folder of the user's own bundles.
fn user_bundles(project: &Project) -> Option<PathBuf> {
    let variable = |name: &str| {
        let found = project.env.variables.iter().find(|(known, value)| known == name && !value.is_empty());
        found.map(|(_, value)| PathBuf::from(value))
    };
    let folder = config::user::folder(variable("XDG_CONFIG_HOME").as_deref(), variable("HOME").as_deref());
    folder.map(|folder| folder.join("bundles"))
}

fn list(args: &InitArgs, bundles: Option<&Path>) -> Result<CommandOutput, Failure> {
    let own = bundles.map_or(Ok(Vec::new()), bundle::of_user)?;
    let rows = bundle::built_in().into_iter().map(|bundle| (bundle, "built in"));
    let rows: Vec<_> = rows.chain(own.into_iter().map(|bundle| (bundle, "your own"))).collect();
    let value =
        |bundle: &Bundle, key: &str| bundle.values.get(key).map(ToString::to_string).unwrap_or_default();
    if args.place.json {
        let rows: Vec<_> = rows
            .iter()
            .map(|(bundle, origin)| {
                serde_json::json!({
                    "name": bundle.name, "description": bundle.description, "origin": origin,
                    "workflow": value(bundle, "workflow"), "budget_usd": value(bundle, "costs.budget_usd"),
                })
            })
            .collect();
        return Ok(CommandOutput::json(serde_json::json!({ "bundles": rows })));
    }
    let mut out = String::new();
    put!(
        out,
        "{}  {}  {}  {}  FOR",
        pad("BUNDLE", 16),
        pad("WORKFLOW", 8),
        pad("BUDGET", 6),
        pad("ORIGIN", 8)
    );
    for (bundle, origin) in &rows {
        let budget = value(bundle, "costs.budget_usd");
        let budget = if budget.is_empty() { budget } else { format!("${budget}") };
        put!(
            out,
            "{}  {}  {}  {}  {}",
            pad(&safe_line(&bundle.name), 16),
            pad(&safe_line(&value(bundle, "workflow")), 8),
            pad(&budget, 6),
            pad(origin, 8),
            safe_line(&bundle.description)
        );
    }
    Ok(CommandOutput::text(out))
}

fn save(args: &InitArgs, name: &str, root: &Path, bundles: Option<&Path>) -> Result<CommandOutput, Failure> {
    let bundles = bundles.ok_or_else(|| {
        Failure::usage("there is no folder for your own configuration", "Set HOME or XDG_CONFIG_HOME.")
    })?;
    let folder = Bundle::save(name, root, bundles)?;
    Ok(if args.place.json {
        CommandOutput::json(
            serde_json::json!({ "bundle": name, "path": folder.to_string_lossy(), "written": true }),
        )
    } else {
        CommandOutput::text(format!(
            "Saved as {}. Use it with: archeflow init --from {name}\n",
            folder.display()
        ))
    })
}

fn from_bundle(args: &InitArgs, project: &Project, bundles: Option<&Path>) -> Result<CommandOutput, Failure> {
    let root = project.places.root();
    let mut bundle = wanted(args, bundles)?;
    if let Some(missing) = bundle.requires.iter().find(|file| !root.join(file).exists()) {
        return Err(Failure::usage(
            format!("the bundle {} requires {missing}, which this project does not have", bundle.name),
            "See the others with: archeflow init --list",
        ));
    }
    for pair in &args.set {
        let (key, value) = pair.split_once('=').ok_or_else(|| {
            Failure::usage(format!("--set '{pair}' has no '='"), "Write --set costs.budget_usd=3")
        })?;
        bundle.set("--set", key.trim(), value.trim()).map_err(config::Faults::from)?;
    }
    if let Some(command) = &args.test_command {
        bundle.set("--test-command", "test_command", command).map_err(config::Faults::from)?;
    }
    if let Some(command) = &args.setup_command {
        bundle.set("--setup-command", "setup_command", command).map_err(config::Faults::from)?;
    }
    let found = proposed(root, args);
    for (key, found) in [("test_command", found.tests), ("setup_command", found.setup)] {
        if let Some(ProposedCommand { command, why }) = found.filter(|_| !bundle.sets(key)) {
            bundle.set(&why, key, &command).map_err(config::Faults::from)?;
        }
    }
    if !found.cache.is_empty() && !bundle.sets("cache") {
        bundle.set("Cargo.lock", "cache", &found.cache.join(",")).map_err(config::Faults::from)?;
    }
    let laid_out = bundle.laid_out(
        "# archeflow's configuration for this repository. Read from the commit a run begins with.\n\
         # Every key and where its value comes from: archeflow config show\n\n",
    )?;
    let there: Vec<String> =
        laid_out.iter().map(|(path, _)| path.clone()).filter(|path| root.join(path).exists()).collect();
    if !there.is_empty() {
        return Err(Failure::usage(
            format!("these exist already and are not overwritten: {}", there.join(", ")),
            "Edit them, or move them away; see what is in force with: archeflow config show",
        ));
    }
    if !args.dry_run {
        write_all(project, &laid_out)?;
    }
    Ok(described(args, &bundle, &laid_out))
}

/// The bundle that was asked for; an empty one where only keys are set.
fn wanted(args: &InitArgs, bundles: Option<&Path>) -> Result<Bundle, Failure> {
    if let Some(from) = &args.from {
        let own = bundles.map(|bundles| bundles.join(from)).filter(|own| !from.contains('/') && own.is_dir());
        return Ok(Bundle::load(&own.unwrap_or_else(|| PathBuf::from(from)))?);
    }
    let Some(name) = &args.bundle else { return Ok(Bundle::default()) };
    let known = bundle::built_in();
    let names: Vec<String> = known.iter().map(|bundle| bundle.name.clone()).collect();
    known.into_iter().find(|bundle| bundle.name == *name).ok_or_else(|| {
        Failure::usage(
            format!("there is no bundle '{name}'; known: {}", names.join(", ")),
            "Your own ones are used with --from; see all with: archeflow init --list",
        )
    })
}

fn write_all(project: &Project, laid_out: &[ConfigFile]) -> Result<(), Failure> {
    project.places.make()?;
    Ok(bundle::lay_down(project.places.root(), laid_out)?)
}

fn described(args: &InitArgs, bundle: &Bundle, laid_out: &[ConfigFile]) -> CommandOutput {
    let content = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    if args.place.json {
        let files: serde_json::Map<String, serde_json::Value> =
            laid_out.iter().map(|(path, bytes)| (path.clone(), content(bytes).into())).collect();
        return CommandOutput::json(
            serde_json::json!({ "bundle": bundle.name, "files": files, "written": !args.dry_run }),
        );
    }
    let mut out = String::new();
    for (path, bytes) in laid_out {
        if args.dry_run {
            put!(out, "# {path}\n{}", crate::render::text::safe(&content(bytes)));
        } else {
            put!(out, "Wrote {path}");
        }
    }
    if !bundle.sets("test_command") {
        put!(out, "No test command could be guessed: set test_command in .archeflow/config.yaml.");
    }
    if !args.dry_run {
        put!(out, "\nNext:\n  git add .archeflow && git commit -m 'Configure archeflow'");
        put!(
            out,
            "  archeflow trust          approve what it names\n  archeflow run \"<task>\" --agent <spec>"
        );
    }
    CommandOutput::text(out)
}

fn text(agent: Option<&str>, proposed: &ProposedCommands) -> String {
    let line = |key: &str, command: &Option<ProposedCommand>, example: &str| match command {
        Some(ProposedCommand { command, why }) => format!("# {why}\n{key}: {}\n", quoted(command)),
        None => format!("# {key}: {example}\n"),
    };
    let agent = match agent {
        Some(agent) => format!("agents:\n  default: {}\n", quoted(agent)),
        None => "# agents:\n#   default: claude\n".to_owned(),
    };
    let cache = match proposed.cache {
        [] => "# cache: [target]\n".to_owned(),
        folders => format!("cache: [{}]\n", folders.join(", ")),
    };
    format!(
        "# archeflow's configuration for this repository. Read from the commit a run begins with.\n\
         # Every key and where its value comes from: archeflow config show\n\n\
         # The command that decides whether a tree is good. It runs on exactly the tree that lands.\n{}\n\
         # The command that installs what the tests need. It runs once for each tree that is tested.\n{}\n\
         # Folders of build results that come back in later tests, as far as that is safe.\n{cache}\n\
         # Who works, unless --agent or your own configuration names another.\n{agent}\n\
         # fast, standard or thorough; chosen from the task if not set.\n# workflow: standard\n",
        line("test_command", &proposed.tests, "make test"),
        line("setup_command", &proposed.setup, "npm ci"),
    )
}
