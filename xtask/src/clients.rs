//! `cargo xtask clients`: the agents people use, in the versions the program was tried with, in a folder of their own
//! below `target/clients`. About 2 GB, once; what is there is left alone.
//!
//! They are packages of npm. Some need a newer Node than machines often have: one is fetched the same way and put
//! first on the path, here and by the tests that start them.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use crate::test;

/// A package in a folder of its own. `{arch}` and `{triple}` stand for the machine's, as npm and Rust call them.
struct Client {
    name: &'static str,
    package: &'static str,
    version: &'static str,
    /// What must be there afterwards, below `node_modules`.
    program: &'static str,
    megabytes: u32,
}

/// Node comes first: it installs the others.
const CLIENTS: [Client; 10] = [
    Client { name: "node22", package: "node", version: "22.23.3", program: "node/bin/node", megabytes: 185 },
    Client {
        name: "claude",
        package: "@anthropic-ai/claude-code",
        version: "2.1.325",
        program: "@anthropic-ai/claude-code-linux-{arch}/claude",
        megabytes: 350,
    },
    Client {
        name: "codex",
        package: "@openai/codex",
        version: "0.166.0",
        program: "@openai/codex-linux-{arch}/vendor/{triple}-unknown-linux-musl/bin/codex",
        megabytes: 440,
    },
    Client {
        name: "gemini",
        package: "@google/gemini-cli",
        version: "0.61.0",
        program: "@google/gemini-cli/bundle/gemini.js",
        megabytes: 100,
    },
    Client {
        name: "opencode",
        package: "opencode-ai",
        version: "1.18.33",
        program: "opencode-linux-{arch}/bin/opencode",
        megabytes: 350,
    },
    // The binary alone: the package it usually comes with is a screen for it. It calls itself 1.34.0.
    Client {
        name: "goose",
        package: "@aaif/goose-binary-linux-{arch}",
        version: "0.20.1",
        program: "@aaif/goose-binary-linux-{arch}/bin/goose",
        megabytes: 280,
    },
    Client {
        name: "claude-agent-acp",
        package: "@agentclientprotocol/claude-agent-acp",
        version: "0.99.0",
        program: ".bin/claude-agent-acp",
        megabytes: 360,
    },
    Client {
        name: "codex-acp",
        package: "@agentclientprotocol/codex-acp",
        version: "2.6.0",
        program: ".bin/codex-acp",
        megabytes: 460,
    },
    // No agents: they are to get along with `archeflow mcp`.
    Client {
        name: "mcp-client",
        package: "@modelcontextprotocol/client",
        version: "2.4.0",
        program: "@modelcontextprotocol/client/dist/index.mjs",
        megabytes: 18,
    },
    Client {
        name: "mcp-inspector",
        package: "@modelcontextprotocol/inspector",
        version: "2.12.0",
        program: ".bin/mcp-inspector",
        megabytes: 110,
    },
];

/// The longest one package may take. The largest takes a minute on a good line.
const LONGEST: Duration = Duration::from_secs(10 * 60);
/// How often a sign of progress is printed.
const TOLD_EVERY: Duration = Duration::from_secs(30);

pub(crate) fn run(root: &Path) -> ExitCode {
    match fetch(root) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("xtask clients: {why}");
            ExitCode::FAILURE
        }
    }
}

/// All of them, or the reason why not.
pub(crate) fn fetch(root: &Path) -> Result<(), String> {
    let place = root.join("target/clients");
    for client in &CLIENTS {
        let folder = place.join(client.name);
        if client.is_in(&folder) {
            println!("{} {} is there", client.name, client.version);
            continue;
        }
        if !test::is_there("npm") {
            return Err(format!(
                "npm is MISSING, and {} is a package of it: install Node.js 20 or newer. Without it, `cargo xtask \
                 test --without-clients` leaves the real clients out",
                client.name
            ));
        }
        println!("fetching {} {} (about {} MB)", client.name, client.version, client.megabytes);
        let first = client.install(&folder, &place);
        if let Err(why) = first {
            println!("{why}; once more");
            client.install(&folder, &place).map_err(|why| format!("{why}. {REMEDY}"))?;
        }
    }
    Ok(())
}

const REMEDY: &str = "npm's own words stand above. Without its registry, or on a machine the package is not made for, \
                      `cargo xtask test --without-clients` leaves the real clients out";

/// The path with the Node that was fetched before the machine's own.
pub(crate) fn path(place: &Path) -> OsString {
    let ours = place.join("node22/node_modules/node/bin");
    let machines = std::env::var_os("PATH").unwrap_or_default();
    let all = std::iter::once(ours).chain(std::env::split_paths(&machines));
    std::env::join_paths(all).unwrap_or(machines)
}

/// Where Claude Code is, if it was fetched.
pub(crate) fn claude(root: &Path) -> PathBuf {
    let client = CLIENTS.iter().find(|client| client.name == "claude");
    client.map(|client| client.program(&root.join("target/clients/claude"))).unwrap_or_default()
}

impl Client {
    fn package(&self) -> String {
        format!("{}@{}", filled(self.package), self.version)
    }

    /// A mark is set when all of it is there: a download that broke off looks much like one that did not.
    fn is_in(&self, folder: &Path) -> bool {
        let marked = std::fs::read_to_string(folder.join(MARK));
        self.program(folder).exists() && marked.is_ok_and(|text| text == self.package())
    }

    fn program(&self, folder: &Path) -> PathBuf {
        folder.join("node_modules").join(filled(self.program))
    }

    fn install(&self, folder: &Path, place: &Path) -> Result<(), String> {
        let fault = |error: std::io::Error| format!("{}: {error}", folder.display());
        let _ = std::fs::remove_dir_all(folder);
        std::fs::create_dir_all(folder).map_err(fault)?;
        // A version by number: without one, an older Node silently gets an older client.
        let mut npm = Command::new("npm");
        npm.args(["install", "--no-audit", "--no-fund", "--no-save", "--no-update-notifier"])
            .args(["--fetch-retries=1", "--fetch-timeout=60000", "--prefix"])
            .arg(folder)
            .arg(self.package())
            .env("PATH", path(place))
            .stdin(Stdio::null());
        wait(npm.spawn().map_err(|error| format!("npm can't be started: {error}"))?, self.name)?;
        if !self.program(folder).exists() {
            return Err(format!("{} came without {}", self.name, self.program(folder).display()));
        }
        std::fs::write(folder.join(MARK), self.package()).map_err(fault)
    }
}

/// The file that records what a folder holds.
const MARK: &str = "fetched";

fn wait(mut child: Child, name: &str) -> Result<(), String> {
    let begun = Instant::now();
    let mut told = Duration::ZERO;
    loop {
        match child.try_wait() {
            Ok(Some(status)) if status.success() => return Ok(()),
            Ok(Some(status)) => return Err(format!("{name} could not be fetched: npm ended with {status}")),
            Ok(None) if begun.elapsed() > LONGEST => {
                let _ = child.kill();
                let _ = child.wait();
                return Err(format!("{name} could not be fetched within {} minutes", LONGEST.as_secs() / 60));
            }
            Ok(None) => std::thread::sleep(Duration::from_millis(100)),
            Err(error) => return Err(format!("{name}: npm is lost: {error}")),
        }
        if begun.elapsed() > told + TOLD_EVERY {
            told = begun.elapsed();
            println!("still fetching {name}, {} s", told.as_secs());
        }
    }
}

/// The machine, as npm and as Rust call it.
fn filled(text: &str) -> String {
    let (arch, triple) = match std::env::consts::ARCH {
        "x86_64" => ("x64", "x86_64"),
        "aarch64" => ("arm64", "aarch64"),
        other => (other, other),
    };
    text.replace("{arch}", arch).replace("{triple}", triple)
}
