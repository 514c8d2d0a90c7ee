//! Which commands a project's own files suggest: to install what its tests need, and to test it (U-13). The rows are in
//! `docs/rules/init.md`.

use serde_json::Value;

/// The files of a project's top folder, as far as they say something here.
pub struct ProjectFiles<'a> {
    pub has: &'a dyn Fn(&str) -> bool,
    pub read: &'a dyn Fn(&str) -> String,
}

/// A command, and the reason for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProposedCommand {
    pub command: String,
    pub why: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ProposedCommands {
    pub setup: Option<ProposedCommand>,
    pub tests: Option<ProposedCommand>,
    /// Folders of `cache`.
    pub cache: &'static [&'static str],
}

/// One kind of project: the file that shows it, and what it suggests.
struct ProjectKind {
    file: &'static str,
    setup: fn(&ProjectFiles<'_>) -> Option<ProposedCommand>,
    tests: fn(&ProjectFiles<'_>) -> Option<ProposedCommand>,
}

/// The first whose file is there decides about both commands.
const KINDS: [ProjectKind; 11] = [
    ProjectKind { file: "Cargo.toml", setup: cargo, tests: |_| because("cargo test", "Cargo.toml") },
    ProjectKind { file: "package.json", setup: node, tests: node_tests },
    ProjectKind {
        file: "go.mod",
        setup: |files| one_of(files, &[("go.sum", "go mod download")]),
        tests: |_| because("go test ./...", "go.mod"),
    },
    ProjectKind { file: "pyproject.toml", setup: python, tests: python_tests },
    ProjectKind { file: "setup.py", setup: python, tests: python_tests },
    ProjectKind { file: "requirements.txt", setup: python, tests: python_tests },
    ProjectKind { file: "pom.xml", setup: |_| None, tests: |_| because("mvn -q test", "pom.xml") },
    ProjectKind {
        file: "build.gradle",
        setup: |_| None,
        tests: |_| because("./gradlew test", "build.gradle"),
    },
    ProjectKind {
        file: "build.gradle.kts",
        setup: |_| None,
        tests: |_| because("./gradlew test", "build.gradle.kts"),
    },
    ProjectKind {
        file: "Gemfile",
        setup: |files| one_of(files, &[("Gemfile.lock", "bundle install")]),
        tests: |files| match (files.has)("spec") {
            true => because("bundle exec rspec", "spec"),
            false => because("bundle exec rake test", "Gemfile"),
        },
    },
    ProjectKind {
        file: "mix.exs",
        setup: |files| one_of(files, &[("mix.lock", "mix deps.get")]),
        tests: |_| because("mix test", "mix.exs"),
    },
];

pub fn propose(files: &ProjectFiles<'_>) -> ProposedCommands {
    let known = KINDS.iter().find(|kind| (files.has)(kind.file));
    let proposed = known.map_or_else(ProposedCommands::default, |kind| ProposedCommands {
        setup: (kind.setup)(files),
        tests: (kind.tests)(files),
        cache: &[],
    });
    let tests = proposed.tests.or_else(|| makefile(files));
    let cache: &[&str] =
        if (files.has)("Cargo.toml") && (files.has)("Cargo.lock") { &["target"] } else { &[] };
    ProposedCommands { tests, cache, ..proposed }
}

fn because(command: &str, file: &str) -> Option<ProposedCommand> {
    Some(ProposedCommand { command: command.to_owned(), why: format!("there is a {file}") })
}

fn one_of(files: &ProjectFiles<'_>, rows: &[(&str, &str)]) -> Option<ProposedCommand> {
    let (file, command) = rows.iter().find(|(file, _)| (files.has)(file))?;
    because(command, file)
}

fn cargo(files: &ProjectFiles<'_>) -> Option<ProposedCommand> {
    one_of(files, &[("Cargo.lock", "cargo fetch --locked"), ("Cargo.toml", "cargo fetch")])
}

fn node(files: &ProjectFiles<'_>) -> Option<ProposedCommand> {
    let yarn = match (files.has)(".yarnrc.yml") {
        true => "yarn install --immutable",
        false => "yarn install --frozen-lockfile",
    };
    let rows = [
        ("package-lock.json", "npm ci"),
        ("npm-shrinkwrap.json", "npm ci"),
        ("pnpm-lock.yaml", "pnpm install --frozen-lockfile"),
        ("yarn.lock", yarn),
        ("bun.lock", "bun install --frozen-lockfile"),
        ("bun.lockb", "bun install --frozen-lockfile"),
    ];
    one_of(files, &rows).or_else(|| {
        let package = package(files);
        let depends = |key: &str| package[key].as_object().is_some_and(|names| !names.is_empty());
        let needs = depends("dependencies") || depends("devDependencies");
        needs.then(|| because("npm install", "package.json")).flatten()
    })
}

/// A package whose scripts have no test has none, and what `npm init` writes there is none. One without scripts may get
/// some.
fn node_tests(files: &ProjectFiles<'_>) -> Option<ProposedCommand> {
    let package = package(files);
    let script = package["scripts"]["test"].as_str();
    if package["scripts"].is_object() && script.is_none_or(|script| script.contains("no test specified")) {
        return None;
    }
    let manager = match () {
        () if (files.has)("pnpm-lock.yaml") => "pnpm",
        () if (files.has)("yarn.lock") => "yarn",
        () if (files.has)("bun.lock") || (files.has)("bun.lockb") => "bun run",
        () => "npm",
    };
    let why = match script {
        Some(_) => "package.json has a test script".to_owned(),
        None => "there is a package.json".to_owned(),
    };
    Some(ProposedCommand { command: format!("{manager} test"), why })
}

fn package(files: &ProjectFiles<'_>) -> Value {
    serde_json::from_str(&(files.read)("package.json")).unwrap_or_default()
}

fn python(files: &ProjectFiles<'_>) -> Option<ProposedCommand> {
    let managed =
        [("uv.lock", "uv sync"), ("poetry.lock", "poetry install"), ("Pipfile.lock", "pipenv sync --dev")];
    if let Some(found) = one_of(files, &managed) {
        return Some(found);
    }
    let listed: Vec<&str> =
        ["requirements.txt", "requirements-dev.txt"].into_iter().filter(|file| (files.has)(file)).collect();
    let mut parts: Vec<String> = listed.iter().map(|file| format!("-r {file}")).collect();
    let installable = ["pyproject.toml", "setup.py"].into_iter().find(|file| (files.has)(file));
    if installable.is_some() {
        parts.push("-e .".to_owned());
    }
    let why = listed.first().copied().or(installable)?;
    because(&format!("python3 -m venv .venv && .venv/bin/pip install {} pytest", parts.join(" ")), why)
}

fn python_tests(files: &ProjectFiles<'_>) -> Option<ProposedCommand> {
    let managed = [
        ("uv.lock", "uv run pytest"),
        ("poetry.lock", "poetry run pytest"),
        ("Pipfile.lock", "pipenv run pytest"),
    ];
    one_of(files, &managed).or_else(|| {
        let file =
            ["pyproject.toml", "setup.py", "requirements.txt"].into_iter().find(|file| (files.has)(file))?;
        because(".venv/bin/python -m pytest", file)
    })
}

fn makefile(files: &ProjectFiles<'_>) -> Option<ProposedCommand> {
    let text = (files.read)("Makefile");
    let why = "the Makefile has a test target".to_owned();
    let has_target = text.lines().any(|line| line.starts_with("test:"));
    has_target.then(|| ProposedCommand { command: "make test".to_owned(), why })
}
