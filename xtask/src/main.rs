//! Developer tools: `cargo xtask test`, `tidy`, `docs`, `judge`, `dist`, `soak`, `bench`,
//! `instructions`, `pictures`, `clients`.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a tool for developers talks to them directly"
)]

mod bench;
mod clients;
mod collectors;
mod dist;
mod docs;
mod instructions;
mod judge;
mod live;
#[path = "../../app/tests/e2e/model.rs"]
#[expect(
    dead_code,
    clippy::unwrap_used,
    reason = "the scripted model of the tests, of which a measurement needs a part"
)]
mod model;
mod nats_server;
mod pictures;
mod portrait;
mod schemas;
mod scratch;
mod soak;
mod targets;
mod test;
mod tidy;
#[path = "../../app/tests/e2e/wire.rs"]
mod wire;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

const USAGE: &str = "\
usage: cargo xtask <command>

  test [<flag>...] [<step>...]   run the test suite, or only the named steps; each test runs once.
                                 --quick: skip the steps that take minutes (crash, sprint, simulation,
                                 release builds), the real clients, the browser and
                                 the fleet's server
                                 --without-clients: skip the real clients (2 GB to download)
                                 --without-browser: skip the step that needs chromium
                                 --without-server: skip the step that needs nats-server (19 MB to download)
  clients                        download the clients that tests drive into target/clients
  pictures                       draw docs/pictures again: recordings, report and live view (needs chromium)
  docs                           write the generated tables: settings in configuration.md, agents in agents.md,
                                 tests in faults.md
  tidy                           check conventions that no compiler checks
  judge [<folder>] [--mistakes]  measure judgement on labelled review histories, beside trivial rules
  soak [--seed N] [--count N]    simulate crashes and restarts, one million unless N says otherwise; prints its
                                 seed, and a failure repeats with the seed it names
  dist [<what>...]               make the files of a release in target/dist: archive, deb, sbom, scripts, formula
                                 --target <triple>: for another processor [default: this one, static]
                                 --url <address>: where the files will be; the formula needs it
  bench [<flag>...] [<name>...]  measure the performance goals on a release build, or only the named ones
                                 --save <file>: also write the figures to a file, as JSON
                                 --compare <file>: print the change of each figure against such a file
  instructions [--renew]         count the instructions of work that is always the same, and compare them with
                                 xtask/instructions.txt, or write that file again
";

/// As in the program, which is measured here.
#[cfg(target_os = "linux")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    // When started under the name of a client it acts as that client, for a measurement.
    if let Some(code) = bench::relay() {
        return code;
    }
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["test", rest @ ..] => test::run(&root(), rest),
        ["pictures"] => pictures::draw(&root()),
        ["clients"] => clients::run(&root()),
        ["docs"] => docs::write(&root()),
        ["soak", rest @ ..] => soak::run(&root(), rest),
        ["judge", rest @ ..] => judge::run(&root(), rest),
        ["tidy"] => tidy::run(&root()),
        ["dist", rest @ ..] => dist::run(&root(), rest),
        ["bench", rest @ ..] => bench::build_and_run(&root(), rest),
        ["instructions", rest @ ..] => instructions::run(&root(), rest),
        ["__counted", name, folder] => instructions::work(name, folder),
        ["__bench", rest @ ..] => bench::run(&root(), rest),
        ["__noop-agent", folder] => bench::play(folder),
        ["help" | "--help" | "-h"] => {
            print!("{USAGE}");
            ExitCode::SUCCESS
        }
        _ => {
            eprint!("{USAGE}");
            ExitCode::from(2)
        }
    }
}

/// The folder of the workspace.
fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_path_buf()
}
