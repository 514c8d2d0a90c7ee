//! The step `packages`: the files of a release are made and used. Installed from a server, installed and removed as a
//! Debian package, and made a second time with the same checksums. The program in them is not optimised.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::archive::sum;
use super::{Release, files, output, run_in, sbom};
use crate::targets;
use crate::test::{Done, is_there, version};

pub(crate) fn step(root: &Path) -> Result<Done, String> {
    let target = targets::musl_target();
    let program = targets::static_program(root, &target, "dev")?;
    let scratch = tempfile::tempdir().map_err(|error| error.to_string())?;
    let release = Release {
        out: scratch.path().join("dist"),
        url: Some("https://releases.example/v1".to_owned()),
        ..Release::new(root, &target)?
    };
    release.make(&[], &program)?;
    contents(&release)?;
    again(&release, &program, scratch.path())?;
    bill(&release)?;
    formula(&release)?;
    dockerfile(&release)?;
    binstall(&release)?;
    installs(&release, scratch.path())?;
    package(&release, scratch.path())
}

fn holds(is: bool, what: impl Into<String>) -> Result<(), String> {
    if is { Ok(()) } else { Err(what.into()) }
}

/// Every command has a page, and every shell a script.
fn contents(release: &Release) -> Result<(), String> {
    let archive = release.archive().display().to_string();
    let listing = output(&release.out, &["tar", "-tvzf", &archive])?;
    let pages = listing.lines().filter(|line| line.ends_with(".1")).count();
    holds(pages > 50, format!("only {pages} manual pages:\n{listing}"))?;
    for name in ["/archeflow", "/man/archeflow-sprint-run.1", "/completions/_archeflow", "/LICENSE"] {
        holds(listing.lines().any(|line| line.ends_with(name)), format!("{name} is not in the archive"))?;
    }
    let page = std::fs::read_to_string(release.folder().join("man/archeflow-run.1")).unwrap_or_default();
    holds(page.contains("Cost limit of the run") && page.starts_with(".ie"), "archeflow-run.1 is no page")?;
    if is_there("man") {
        let path = release.folder().join("man/archeflow-run.1").display().to_string();
        let shown = output(&release.out, &["man", "--warnings", "-l", &path])?;
        holds(shown.contains("SYNOPSIS"), "man shows no page")?;
    }
    for (shell, path, _) in files::COMPLETIONS {
        let script = release.folder().join(path).display().to_string();
        if is_there(shell) {
            output(&release.out, &[shell, "-n", &script])?;
        }
    }
    Ok(())
}

/// Other folder, other umask, other time: the same bytes.
fn again(release: &Release, program: &Path, scratch: &Path) -> Result<(), String> {
    let before = rustix::process::umask(rustix::fs::Mode::from_bits_truncate(0o077));
    let second = Release { out: scratch.join("second"), ..release.clone() };
    let made = second.make(&[], program);
    rustix::process::umask(before);
    made?;
    let read = |one: &Release| std::fs::read_to_string(one.out.join("SHA256SUMS")).unwrap_or_default();
    let (first, second) = (read(release), read(&second));
    holds(first.lines().count() == 4, format!("SHA256SUMS lists other files than expected:\n{first}"))?;
    holds(first == second, format!("made twice, it differs:\n{first}{second}"))?;
    output(&release.out, &["sha256sum", "-c", "SHA256SUMS"]).map(drop)
}

fn bill(release: &Release) -> Result<(), String> {
    let path = release.out.join(format!("{}.cdx.json", release.name()));
    let text = std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let bom: Value = serde_json::from_str(&text).map_err(|error| format!("{}: {error}", path.display()))?;
    sbom::check(&bom)
}

fn formula(release: &Release) -> Result<(), String> {
    let text = std::fs::read_to_string(release.out.join("archeflow.rb")).unwrap_or_default();
    let url = format!("url \"https://releases.example/v1/{}.tar.gz\"", release.name());
    holds(text.contains(&url), format!("the formula names another archive:\n{text}"))?;
    holds(text.contains(&sum(&release.archive())?), format!("the formula has another checksum:\n{text}"))?;
    if is_there("ruby") {
        output(&release.out, &["ruby", "-c", "archeflow.rb"])?;
    }
    Ok(())
}

/// Built where there is a daemon; else every file that is copied has to be in the archive.
fn dockerfile(release: &Release) -> Result<(), String> {
    let path = release.root.join("packaging/Dockerfile");
    let text = std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let copies = text.lines().filter_map(|line| line.strip_prefix("COPY "));
    let sources: Vec<&str> = copies.filter_map(|line| line.split_whitespace().next()).collect();
    holds(sources.contains(&"archeflow"), "the image has no program")?;
    for source in sources {
        holds(release.folder().join(source).exists(), format!("{source} is not in the archive"))?;
    }
    if version(&["docker", "info"]).is_some() {
        let (path, folder) = (path.display().to_string(), release.folder().display().to_string());
        let tag = "archeflow-xtask-check";
        output(&release.out, &["docker", "build", "--quiet", "--tag", tag, "--file", &path, &folder])?;
        output(&release.out, &["docker", "run", "--rm", tag, "--version"])?;
    }
    Ok(())
}

/// The names in `app/Cargo.toml` are those of the archive.
fn binstall(release: &Release) -> Result<(), String> {
    let words = ["cargo", "metadata", "--no-deps", "--offline", "--format-version", "1"];
    let metadata: Value =
        serde_json::from_str(&output(&release.root, &words)?).map_err(|error| error.to_string())?;
    let packages = metadata["packages"].as_array().cloned().unwrap_or_default();
    let app = packages.iter().find(|one| one["name"] == "archeflow").cloned().unwrap_or_default();
    let filled = |key: &str| {
        let mut text = app["metadata"]["binstall"][key].as_str().unwrap_or_default().to_owned();
        for (name, value) in [
            ("name", "archeflow"),
            ("bin", "archeflow"),
            ("version", release.version.as_str()),
            ("target", release.target.as_str()),
            ("archive-suffix", ".tar.gz"),
            ("binary-ext", ""),
        ] {
            text = text.replace(&format!("{{ {name} }}"), value);
        }
        text
    };
    let (url, inside) = (filled("pkg-url"), filled("bin-dir"));
    holds(url.ends_with(&format!("/{}.tar.gz", release.name())), format!("binstall would ask for {url}"))?;
    holds(release.out.join(&inside).is_file(), format!("binstall would look for {inside}"))
}

/// From a server on this machine: a good release, one whose archive was changed, and none.
fn installs(release: &Release, scratch: &Path) -> Result<(), String> {
    let home = scratch.join("home");
    let script = release.out.join("install.sh").display().to_string();
    let install = |url: &str, dir: &str| {
        let (home, dir) = (home.display().to_string(), home.join(dir).display().to_string());
        let env = [("ARCHEFLOW_URL", url), ("HOME", &home), ("ARCHEFLOW_DIR", &dir), ("TMPDIR", &home)];
        run_in(scratch, &["sh", &script], &env)
    };
    std::fs::create_dir_all(&home).map_err(|error| error.to_string())?;
    let good = serve(release.out.clone())?;
    let said = install(&good, "bin")?;
    holds(said.contains(&format!("archeflow {}", release.version)), format!("install.sh said: {said}"))?;
    let installed = home.join("bin/archeflow");
    holds(sum(&installed)? == sum(&release.folder().join("archeflow"))?, "another program was installed")?;
    let bad = scratch.join("bad");
    files::copy(&release.out.join("SHA256SUMS"), &bad.join("SHA256SUMS"), 0o644)?;
    files::write(&bad.join(format!("{}.tar.gz", release.name())), "not what was released")?;
    for (url, why) in
        [(serve(bad)?, "checksum"), (serve(scratch.join("nothing"))?, "could not be downloaded")]
    {
        let said = install(&url, "other").err().unwrap_or_default();
        holds(said.contains(why), format!("install.sh took {why}: {said}"))?;
        holds(!home.join("other/archeflow").exists(), "something was installed from a bad release")?;
    }
    let left: Vec<String> = files::names(&home)?.into_iter().filter(|name| name.starts_with("tmp")).collect();
    holds(left.is_empty(), format!("install.sh left {left:?}"))
}

/// Serves the files of a folder until the end of the program; gives the address.
fn serve(folder: PathBuf) -> Result<String, String> {
    let listener = TcpListener::bind("127.0.0.1:0").map_err(|error| error.to_string())?;
    let address = listener.local_addr().map_err(|error| error.to_string())?;
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let _ = answer(&stream, &folder);
        }
    });
    Ok(format!("http://{address}"))
}

fn answer(mut stream: &TcpStream, folder: &Path) -> std::io::Result<()> {
    let mut lines = BufReader::new(stream).lines();
    let first = lines.next().unwrap_or(Ok(String::new()))?;
    lines.map_while(Result::ok).find(String::is_empty);
    let name = first.split(' ').nth(1).unwrap_or("/").trim_start_matches('/');
    match std::fs::read(folder.join(name)) {
        Ok(bytes) => {
            write!(
                stream,
                "HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
                bytes.len()
            )?;
            stream.write_all(&bytes)
        }
        Err(_) => write!(stream, "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"),
    }
}

/// Installed into a folder of its own, started there, and removed without a trace.
fn package(release: &Release, scratch: &Path) -> Result<Done, String> {
    let name = format!("archeflow_{}_{}.deb", release.version, release.debian_architecture()?);
    let package = release.out.join(name).display().to_string();
    let system = scratch.join("system");
    for folder in ["var/lib/dpkg/info", "var/lib/dpkg/updates", "var/log"] {
        std::fs::create_dir_all(system.join(folder)).map_err(|error| error.to_string())?;
    }
    files::write(&system.join("var/lib/dpkg/status"), "")?;
    let place = format!("--root={}", system.display());
    let dpkg = |words: &[&str]| {
        let fixed = ["dpkg", &place, "--force-not-root", "--force-depends", "--force-bad-path"];
        output(scratch, &[&fixed, words].concat())
    };
    dpkg(&["--install", &package])?;
    let program = system.join("usr/bin/archeflow").display().to_string();
    let said = output(scratch, &[&program, "--version"])?;
    holds(said.trim() == format!("archeflow {}", release.version), said)?;
    for (_, _, path) in files::COMPLETIONS {
        holds(system.join(path).is_file(), format!("{path} is not in the package"))?;
    }
    holds(system.join("usr/share/man/man1/archeflow-run.1.gz").is_file(), "the package has no manual pages")?;
    dpkg(&["--purge", "archeflow"])?;
    let left = output(&system, &["find", ".", "-name", "*archeflow*"])?;
    holds(left.is_empty(), format!("after removing the package there is still:\n{left}"))?;
    Ok(Done::Well)
}
