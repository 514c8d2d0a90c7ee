//! The archive, the Debian package and the list of checksums. Order, owners, modes and dates are fixed, so the same
//! content gives the same bytes.

use std::fs;
use std::path::Path;

use archeflow_core::digest::sha256;

use super::files::{COMPLETIONS, copy, names, write};
use super::{Release, run_in};

pub(super) fn tar(release: &Release) -> Result<(), String> {
    let (date, name) = (format!("--mtime=@{}", release.date), release.name());
    let packed = release.out.join(format!("{name}.tar"));
    let packed = packed.display().to_string();
    let fixed =
        ["--sort=name", "--owner=0", "--group=0", "--numeric-owner", "--mode=u=rwX,go=rX", "--format=gnu"];
    let words = [&["tar"], &fixed[..], &[&date, "-cf", &packed, &name]].concat();
    run_in(&release.out, &words, &[])?;
    // Without the name and the date of the file.
    run_in(&release.out, &["gzip", "-9", "--no-name", "--force", &packed], &[])?;
    Ok(())
}

/// By `dpkg-deb`, from the folder of the archive.
pub(super) fn deb(release: &Release) -> Result<(), String> {
    let (from, architecture) = (release.folder(), release.debian_architecture()?);
    let tree = release.out.join("deb");
    let _ = fs::remove_dir_all(&tree);
    let place = |path: &str| tree.join(path);
    copy(&from.join("archeflow"), &place("usr/bin/archeflow"), 0o755)?;
    copy(&from.join("LICENSE"), &place("usr/share/doc/archeflow/copyright"), 0o644)?;
    copy(&from.join("CHANGELOG.md"), &place("usr/share/doc/archeflow/changelog"), 0o644)?;
    for (_, path, installed) in COMPLETIONS {
        copy(&from.join(path), &place(installed), 0o644)?;
    }
    for name in names(&from.join("man"))? {
        copy(&from.join("man").join(&name), &place("usr/share/man/man1").join(&name), 0o644)?;
    }
    compress(release, &tree)?;
    write(&place("DEBIAN/control"), &control(release, architecture))?;
    // Folders take their mode from the user's umask.
    run_in(&tree, &["find", ".", "-type", "d", "-exec", "chmod", "755", "{}", "+"], &[])?;
    let package = release.out.join(format!("archeflow_{}_{architecture}.deb", release.version));
    let (tree_name, package) = (tree.display().to_string(), package.display().to_string());
    let date = release.date.to_string();
    let words = ["dpkg-deb", "--root-owner-group", "-Zxz", "--build", &tree_name, &package];
    run_in(&release.out, &words, &[("SOURCE_DATE_EPOCH", &date)])?;
    fs::remove_dir_all(&tree).map_err(|error| format!("{}: {error}", tree.display()))
}

/// Manual pages and the changelog are compressed in a Debian system.
fn compress(release: &Release, tree: &Path) -> Result<(), String> {
    let mut paths = vec![tree.join("usr/share/doc/archeflow/changelog")];
    let man = tree.join("usr/share/man/man1");
    paths.extend(names(&man)?.into_iter().map(|name| man.join(name)));
    for path in paths {
        run_in(&release.out, &["gzip", "-9", "--no-name", &path.display().to_string()], &[])?;
    }
    Ok(())
}

fn control(release: &Release, architecture: &str) -> String {
    let version = &release.version;
    format!(
        "Package: archeflow\nVersion: {version}\nSection: devel\nPriority: optional\nArchitecture: {architecture}\n\
         Maintainer: the archeflow authors\nDepends: git (>= 1:2.38)\nRecommends: bubblewrap, ca-certificates\n\
         Description: run coding agents through Plan-Do-Check-Act\n \
         Runs coding agents on a task in a git repository and merges the result\n only if it was reviewed and tested. \
         The program is static.\n"
    )
}

/// `SHA256SUMS`, as `sha256sum -c` reads it, over what is downloaded of this version, for every processor that is there.
pub(super) fn sums(release: &Release) -> Result<(), String> {
    let mut text = String::new();
    let marks = [format!("archeflow-{}-", release.version), format!("archeflow_{}_", release.version)];
    for name in names(&release.out)? {
        let path = release.out.join(&name);
        let is_ours = name == "install.sh" || marks.iter().any(|mark| name.starts_with(mark));
        if path.is_file() && is_ours {
            text += &format!("{}  {name}\n", sum(&path)?);
        }
    }
    write(&release.out.join("SHA256SUMS"), &text)
}

pub(super) fn sum(path: &Path) -> Result<String, String> {
    let bytes = fs::read(path).map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(sha256(&bytes).iter().map(|byte| format!("{byte:02x}")).collect())
}
