//! `cargo xtask test telemetry`: what others wrote for OpenTelemetry and Prometheus, in the versions the program was tried
//! with: packages of PyPI, each set in an environment of its own below `target/collectors`. About 900 MB, once.

use std::path::{Path, PathBuf};

use crate::targets::target_folder;
use crate::test::{self, Done, through};

/// A collector, the messages for Python, and the reader of Prometheus' text.
const ROTEL: [&str; 3] = ["rotel==0.0.1a15", "opentelemetry-proto==1.45.2", "prometheus_client==0.26.0"];
/// Draws traces of agents.
const PHOENIX: [&str; 1] = ["arize-phoenix==20.26.1"];

/// Where they are, as the tests want to know it.
pub(crate) fn fetch(root: &Path) -> Result<[(&'static str, String); 3], String> {
    let place = target_folder(root).join("collectors");
    let rotel = environment(root, &place.join("rotel"), &ROTEL)?;
    let phoenix = environment(root, &place.join("phoenix"), &PHOENIX)?;
    let agent = find(&rotel.join("lib"), "rotel-agent")
        .ok_or_else(|| format!("rotel came without its program, below {}", rotel.display()))?;
    let text = |path: PathBuf| path.display().to_string();
    Ok([
        ("ARCHEFLOW_ROTEL", text(agent)),
        ("ARCHEFLOW_OTEL_PYTHON", text(rotel.join("bin/python"))),
        ("ARCHEFLOW_PHOENIX", text(phoenix.join("bin/phoenix"))),
    ])
}

/// An environment with these packages. A mark is set when all of it is there.
fn environment(root: &Path, folder: &Path, packages: &[&str]) -> Result<PathBuf, String> {
    let mark = folder.join("fetched");
    let wanted = packages.join(" ");
    if std::fs::read_to_string(&mark).is_ok_and(|there| there == wanted) {
        println!("{wanted} is there");
        return Ok(folder.to_owned());
    }
    if !test::is_there("python3") {
        let why = "python3 is MISSING: install Python 3.10 or newer with venv, or leave it out with `cargo xtask test --without-clients`";
        return Err(why.to_owned());
    }
    let _ = std::fs::remove_dir_all(folder);
    let place = folder.display().to_string();
    let pip = folder.join("bin/pip").display().to_string();
    let made = through(root, &["python3", "-m", "venv", &place], &[]);
    let install = [&[pip.as_str(), "install", "--quiet", "--disable-pip-version-check"], packages].concat();
    let fetched = made.and_then(|_: Done| through(root, &install, &[]));
    fetched.map_err(|why| format!("{why}. Without PyPI: cargo xtask test --without-clients"))?;
    std::fs::write(&mark, wanted).map_err(|error| format!("{}: {error}", mark.display()))?;
    Ok(folder.to_owned())
}

fn find(folder: &Path, name: &str) -> Option<PathBuf> {
    let entries = std::fs::read_dir(folder).ok()?.flatten();
    entries.into_iter().find_map(|entry| {
        let path = entry.path();
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            find(&path, name)
        } else {
            (entry.file_name() == name).then_some(path)
        }
    })
}
