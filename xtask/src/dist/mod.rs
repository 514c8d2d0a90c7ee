//! `cargo xtask dist`: the files of a release, in `target/dist`. One list of files ([`files`]) goes into the archive and
//! the Debian package; names, versions and dates come from the workspace and its last commit, so the same commit and
//! program give the same bytes.
//!
//! The program is static (musl), built by cargo-zigbuild as in the step `musl`.

mod archive;
mod check;
mod files;
mod formula;
mod sbom;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use crate::{targets, test};

pub(crate) use check::step;

/// What can be made, in this order.
const KINDS: [&str; 5] = ["archive", "deb", "sbom", "scripts", "formula"];

/// One release of one target.
#[derive(Debug, Clone)]
struct Release {
    root: PathBuf,
    out: PathBuf,
    version: String,
    target: String,
    /// Seconds since 1970: the date of the last commit, or `SOURCE_DATE_EPOCH`.
    date: u64,
    /// Where the files will be downloaded from; the formula needs it.
    url: Option<String>,
}

impl Release {
    fn new(root: &Path, target: &str) -> Result<Release, String> {
        let given = std::env::var("SOURCE_DATE_EPOCH").ok();
        let date = match given {
            Some(date) => date,
            None => output(root, &["git", "log", "-1", "--format=%ct"])?,
        };
        let date = date.trim().parse().map_err(|_| format!("'{}' is no date in seconds", date.trim()))?;
        Ok(Release {
            root: root.to_path_buf(),
            out: targets::target_folder(root).join("dist"),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            target: target.to_owned(),
            date,
            url: None,
        })
    }

    /// The name of the archive without its ending, and of the folder in it.
    fn name(&self) -> String {
        format!("archeflow-{}-{}", self.version, self.target)
    }

    fn archive(&self) -> PathBuf {
        self.out.join(format!("{}.tar.gz", self.name()))
    }

    /// The folder whose content is the archive's.
    fn folder(&self) -> PathBuf {
        self.out.join(self.name())
    }

    /// Debian's word for the processor.
    fn debian_architecture(&self) -> Result<&'static str, String> {
        match self.target.split('-').next() {
            Some("x86_64") => Ok("amd64"),
            Some("aarch64") => Ok("arm64"),
            _ => Err(format!("no Debian architecture is known for {}", self.target)),
        }
    }

    /// Makes what is named, or everything.
    fn make(&self, kinds: &[&str], program: &Path) -> Result<(), String> {
        std::fs::create_dir_all(&self.out).map_err(|error| format!("{}: {error}", self.out.display()))?;
        let wants = |kind: &str| kinds.is_empty() || kinds.contains(&kind);
        if wants("archive") || wants("deb") {
            files::fill(self, program)?;
        }
        if wants("archive") {
            archive::tar(self)?;
        }
        if wants("deb") {
            archive::deb(self)?;
        }
        if wants("sbom") {
            sbom::write(self)?;
        }
        if wants("scripts") {
            files::copy(&self.root.join("packaging/install.sh"), &self.out.join("install.sh"), 0o755)?;
        }
        archive::sums(self)?;
        // It names the checksum of the archive.
        if wants("formula") {
            formula::write(self)?;
        }
        Ok(())
    }
}

pub(crate) fn run(root: &Path, args: &[&str]) -> ExitCode {
    match read(root, args).and_then(|(release, kinds)| {
        let program = targets::static_program(root, &release.target, "dist")?;
        small_enough(&program)?;
        release.make(&kinds, &program)?;
        println!("{} has the files of {}", release.out.display(), release.name());
        Ok(())
    }) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("xtask dist: {why}");
            ExitCode::FAILURE
        }
    }
}

/// In bytes.
const LARGEST_PROGRAM: u64 = 20_000_000;

fn small_enough(program: &Path) -> Result<(), String> {
    let bytes = std::fs::metadata(program).map_err(|error| format!("{}: {error}", program.display()))?.len();
    println!("{} has {bytes} bytes, and may have {LARGEST_PROGRAM}.", program.display());
    if bytes > LARGEST_PROGRAM {
        return Err("the program is too large: see the profile `dist` in Cargo.toml".to_owned());
    }
    Ok(())
}

fn read<'a>(root: &Path, args: &[&'a str]) -> Result<(Release, Vec<&'a str>), String> {
    let mut release = Release::new(root, &targets::musl_target())?;
    let (mut kinds, mut rest) = (Vec::new(), args.iter());
    while let Some(word) = rest.next() {
        let mut value =
            || rest.next().map(|value| (*value).to_owned()).ok_or(format!("{word} needs a value"));
        match *word {
            "--target" => release.target = value()?,
            "--url" => release.url = Some(value()?.trim_end_matches('/').to_owned()),
            kind if KINDS.contains(&kind) => kinds.push(kind),
            other => {
                return Err(format!("'{other}' can't be made. Known: {}, --target, --url", KINDS.join(", ")));
            }
        }
    }
    Ok((release, kinds))
}

/// Runs a command and gives what it prints; its end has to be a good one.
fn output(folder: &Path, words: &[&str]) -> Result<String, String> {
    run_in(folder, words, &[])
}

fn run_in(folder: &Path, words: &[&str], env: &[(&str, &str)]) -> Result<String, String> {
    let mut command: Command = test::command(words);
    let output = command.current_dir(folder).envs(env.iter().copied()).output();
    let output = output.map_err(|error| format!("`{}` could not be started: {error}", words.join(" ")))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(format!("`{}` ended with {}: {}", words.join(" "), output.status, said.trim()));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn u_19_unknown_words_are_answered_with_the_known_ones() {
        let root = crate::root();
        let (release, kinds) =
            read(&root, &["sbom", "--target", "aarch64-unknown-linux-musl", "--url", "https://e.example/"])
                .unwrap_or_else(|why| panic!("{why}"));
        assert_eq!((kinds, release.debian_architecture()), (vec!["sbom"], Ok("arm64")));
        assert_eq!(release.url.as_deref(), Some("https://e.example"));
        for (words, wanted) in [(&["rpm"][..], "archive, deb"), (&["--url"], "needs a value")] {
            let why = read(&root, words).err().unwrap_or_default();
            assert!(why.contains(wanted), "{why}");
        }
    }
}
