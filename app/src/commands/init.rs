//! `archeflow init`: a first configuration, with a test command proposed from the project's files.

use std::path::Path;
use std::process::ExitCode;

use archeflow_host::store::files;

use crate::args::InitArgs;
use crate::commands::{house, print_json};
use crate::failure::Failure;

pub(crate) fn run(args: &InitArgs) -> Result<ExitCode, Failure> {
    let house = house(&args.place, None, false)?;
    let root = house.places.root().to_path_buf();
    let proposed = args.test_command.clone().map(|command| (command, "given")).or_else(|| propose(&root));
    let text = text(proposed.as_ref());
    let path = root.join(".archeflow/config.yaml");
    if path.exists() {
        let message = format!("{} exists already", path.display());
        return Err(Failure::usage(message, "Edit it; see what is in force with: archeflow config show"));
    }
    if !args.dry_run {
        house.places.make()?;
        files::write_new(&path, text.as_bytes())?;
    }
    if args.place.json {
        print_json(&serde_json::json!({
            "path": path.to_string_lossy(), "test_command": proposed.as_ref().map(|(command, _)| command),
            "content": text, "written": !args.dry_run,
        }));
    } else if args.dry_run {
        out!("{text}");
    } else {
        out!("Wrote {}", path.display());
        match &proposed {
            Some((command, why)) => out!("Test command: {command} ({why})"),
            None => out!("No test command could be guessed: set test_command in that file."),
        }
        out!("\nNext:\n  git add .archeflow/config.yaml && git commit -m 'Configure archeflow'");
        out!(
            "  archeflow trust          approve the command it names\n  archeflow run \"<task>\" --agent <spec>"
        );
    }
    Ok(ExitCode::SUCCESS)
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

fn quoted(command: &str) -> String {
    let plain = command.chars().all(|c| c.is_ascii_alphanumeric() || " ./_-".contains(c));
    if plain { command.to_owned() } else { format!("'{}'", command.replace('\'', "''")) }
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
