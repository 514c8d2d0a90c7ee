//! The other systems the program is built for: macOS, linted and linked, and Linux without any library.
//!
//! Both are built by cargo-zigbuild, whose compiler and linker (`ziglang`) need no SDK. They come from PyPI into
//! `target/zig`, about 90 MB once, and Rust's own library for the target comes from rustup. Without one of them the
//! step fails and says which. Neither build is optimised: what is checked is that there is one.

use std::env::consts::ARCH;
use std::path::{Path, PathBuf};

use crate::test::{Done, is_there, through};

const MACOS: &str = "aarch64-apple-darwin";
const PACKAGES: [&str; 2] = ["cargo-zigbuild==0.24.0", "ziglang==0.17.0"];

/// Compiles, lints and links for macOS. Nothing is run: there is no Mac here.
pub(crate) fn macos(root: &Path) -> Result<Done, String> {
    let zig = ready(root, MACOS)?;
    let crates = [
        "-p",
        "archeflow",
        "-p",
        "archeflow-serve",
        "-p",
        "archeflow-fleet",
        "-p",
        "archeflow-host",
        "-p",
        "archeflow-core",
    ];
    zig.cargo(root, &[&["clippy", "--target", MACOS], &crates[..], &["--", "-D", "warnings"]].concat())?;
    zig.cargo(root, &["zigbuild", "--target", MACOS, "-p", "archeflow", "--bin", "archeflow"])?;
    let program = std::fs::read(built(root, MACOS)).map_err(|error| error.to_string())?;
    if !program.starts_with(&MACH_O_64) {
        return Err(format!("what was linked for {MACOS} is no program of macOS"));
    }
    Ok(Done::Well)
}

/// The first bytes of a 64-bit program of macOS.
const MACH_O_64: [u8; 4] = [0xcf, 0xfa, 0xed, 0xfe];

/// Builds a program that needs no library, and lets it play a whole run.
pub(crate) fn musl(root: &Path) -> Result<Done, String> {
    let program = static_program(root, &musl_target(), "dev")?;
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let place = folder.path().join("demo").display().to_string();
    through(root, &[&program.display().to_string(), "demo", "--quick", "--dir", &place], &[])
}

/// The static target of this machine.
pub(crate) fn musl_target() -> String {
    format!("{ARCH}-unknown-linux-musl")
}

/// Builds the program for this target with this profile, and checks that it needs no library.
pub(crate) fn static_program(root: &Path, target: &str, profile: &str) -> Result<PathBuf, String> {
    let zig = ready(root, target)?;
    let words =
        ["zigbuild", "--target", target, "--profile", profile, "-p", "archeflow", "--bin", "archeflow"];
    zig.cargo(root, &words)?;
    // Cargo's word for the folder of this one profile is another.
    let folder = if profile == "dev" { "debug" } else { profile };
    let program = target_folder(root).join(target).join(folder).join("archeflow");
    let bytes = std::fs::read(&program).map_err(|error| format!("{}: {error}", program.display()))?;
    if let Some(loader) = LOADERS.iter().find(|loader| contains(&bytes, loader.as_bytes())) {
        return Err(format!("{} is not static: it asks for {loader}…", program.display()));
    }
    Ok(program)
}

/// What a program names that needs libraries to be loaded.
const LOADERS: [&str; 2] = ["/lib64/ld-linux-", "/lib/ld-musl-"];

fn contains(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

/// Where zigbuild and zig are.
struct Zig {
    folder: PathBuf,
}

impl Zig {
    fn cargo(&self, root: &Path, words: &[&str]) -> Result<Done, String> {
        let program = self.folder.join("bin/cargo-zigbuild").display().to_string();
        let zig = self.folder.join("ziglang/zig").display().to_string();
        let env = [("CARGO_ZIGBUILD_ZIG_PATH", zig.as_str())];
        through(root, &[&[program.as_str()], words].concat(), &env)
    }
}

/// Fetches what is missing.
fn ready(root: &Path, target: &str) -> Result<Zig, String> {
    let installed = |target: &str| {
        let list = crate::test::version(&["rustup", "target", "list", "--installed"]).unwrap_or_default();
        list.lines().any(|line| line == target)
    };
    if !installed(target) {
        println!("MISSING: Rust's library for {target}; trying `rustup target add {target}`");
        let _ = through(root, &["rustup", "target", "add", target], &[]);
    }
    if !installed(target) {
        return Err(format!(
            "Rust's library for {target} is MISSING and could not be installed: rustup target add {target}"
        ));
    }
    let folder = target_folder(root).join("zig");
    let is_complete = || folder.join("bin/cargo-zigbuild").is_file() && folder.join("ziglang/zig").is_file();
    if !is_complete() {
        println!("MISSING: cargo-zigbuild and ziglang; trying PyPI");
        if !is_there("python3") {
            return Err("python3 is MISSING: cargo-zigbuild and ziglang are fetched with its pip".to_owned());
        }
        let place = folder.display().to_string();
        let pip = ["python3", "-m", "pip", "install", "--quiet", "--target", &place];
        let _ = through(root, &[&pip[..], &PACKAGES].concat(), &[]);
    }
    if is_complete() {
        Ok(Zig { folder })
    } else {
        Err(format!("{} are MISSING and could not be installed by pip", PACKAGES.join(" and ")))
    }
}

/// Where a debug build for this target puts the program.
fn built(root: &Path, target: &str) -> PathBuf {
    target_folder(root).join(target).join("debug/archeflow")
}

pub(crate) fn target_folder(root: &Path) -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), Into::into)
}
