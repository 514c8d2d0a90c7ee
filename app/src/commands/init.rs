//! `archeflow init`: a first configuration, with a test command proposed from the project's files; plain, or from a
//! bundle.

use std::path::{Path, PathBuf};

use archeflow_host::config::bundle::{self, Bundle, quoted};
use archeflow_host::config::{self, ConfigFile};
use archeflow_host::open::Project;
use archeflow_host::store::files;

use crate::args::InitArgs;
use crate::commands::open_project;
use crate::failure::Failure;
use crate::output::CommandOutput;
use crate::render::text::{pad, safe_line};

pub(crate) fn run(args: &InitArgs) -> Result<CommandOutput, Failure> {
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
    let proposed = args.test_command.clone().map(|command| (command, "given")).or_else(|| propose(&root));
    let text = text(proposed.as_ref());
    let path = root.join(".archeflow/config.yaml");
    if path.exists() {
        let message = format!("{} exists already", path.display());
        return Err(Failure::usage(message, "Edit it; see what is in force with: archeflow config show"));
    }
    if !args.dry_run {
        project.places.make()?;
        files::write_new(&path, text.as_bytes())?;
    }
    if args.place.json {
        return Ok(CommandOutput::json(serde_json::json!({
            "path": path.to_string_lossy(), "test_command": proposed.as_ref().map(|(command, _)| command),
            "content": text, "written": !args.dry_run,
        })));
    }
    let mut out = String::new();
    if args.dry_run {
        put!(out, "{text}");
    } else {
        put!(out, "Wrote {}", path.display());
        match &proposed {
            Some((command, why)) => put!(out, "Test command: {command} ({why})"),
            None => put!(out, "No test command could be guessed: set test_command in that file."),
        }
        put!(out, "\nNext:\n  git add .archeflow/config.yaml && git commit -m 'Configure archeflow'");
        put!(
            out,
            "  archeflow trust          approve the command it names\n  archeflow run \"<task>\" --agent <spec>"
        );
    }
    Ok(CommandOutput::text(out))
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
    } else if !bundle.sets("test_command")
        && let Some((command, why)) = propose(root)
    {
        bundle.set(why, "test_command", &command).map_err(config::Faults::from)?;
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

fn text(proposed: Option<&(String, &str)>) -> String {
    let test = match proposed {
        Some((command, why)) => format!("# {why}\ntest_command: {}\n", quoted(command)),
        None => "# test_command: make test\n".to_owned(),
    };
    format!(
        "# archeflow's configuration for this repository. Read from the commit a run begins with.\n\
         # Every key and where its value comes from: archeflow config show\n\n\
         # The command that decides whether a tree is good. It runs on exactly the tree that lands.\n{test}\n\
         # fast, standard or thorough; chosen from the task if not set.\n# workflow: standard\n"
    )
}

/// What the project's own files suggest.
fn propose(root: &Path) -> Option<(String, &'static str)> {
    const KNOWN: [(&str, &str, &str); 11] = [
        ("Cargo.toml", "cargo test", "there is a Cargo.toml"),
        ("package.json", "npm test", "there is a package.json"),
        ("go.mod", "go test ./...", "there is a go.mod"),
        ("pyproject.toml", "python3 -m pytest", "there is a pyproject.toml"),
        ("setup.py", "python3 -m pytest", "there is a setup.py"),
        ("pom.xml", "mvn -q test", "there is a pom.xml"),
        ("build.gradle", "./gradlew test", "there is a build.gradle"),
        ("build.gradle.kts", "./gradlew test", "there is a build.gradle.kts"),
        ("Gemfile", "bundle exec rake test", "there is a Gemfile"),
        ("mix.exs", "mix test", "there is a mix.exs"),
        ("CMakeLists.txt", "ctest --test-dir build", "there is a CMakeLists.txt"),
    ];
    if let Some((_, command, why)) = KNOWN.iter().find(|(file, _, _)| root.join(file).is_file()) {
        return Some(((*command).to_owned(), why));
    }
    let makefile = std::fs::read_to_string(root.join("Makefile")).unwrap_or_default();
    makefile
        .lines()
        .any(|line| line.starts_with("test:"))
        .then(|| ("make test".to_owned(), "the Makefile has a test target"))
}
