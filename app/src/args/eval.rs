//! The options of `archeflow eval`.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::{Args, Subcommand};

#[derive(Debug, Args)]
pub(crate) struct EvalArgs {
    #[command(subcommand)]
    pub(crate) what: EvalSubcommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum EvalSubcommand {
    /// Prove that each task of a suite measures what it says: run its tests on base, reference and trap
    Check(EvalCheckArgs),
}

impl EvalSubcommand {
    pub(crate) fn json(&self) -> bool {
        match self {
            EvalSubcommand::Check(args) => args.json,
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct EvalCheckArgs {
    /// Folder with suite.yaml, or a .jsonl file in the shape of SWE-bench
    #[arg(value_name = "SUITE")]
    pub(crate) suite: PathBuf,
    /// Clones of the repositories that a .jsonl file names, as DIR/OWNER__NAME or DIR/NAME
    #[arg(long, value_name = "DIR")]
    pub(crate) clones: Option<PathBuf>,
    /// Test command for a .jsonl file, with {tests} in place of the test names
    #[arg(long, value_name = "CMD")]
    pub(crate) test_command: Option<String>,
    /// Tasks checked at a time [default: the number of cores]
    #[arg(long, value_name = "N")]
    pub(crate) jobs: Option<NonZeroUsize>,
    /// Configuration file for this command; overrides your own configuration
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Print the result as one JSON object
    #[arg(long)]
    pub(crate) json: bool,
    /// Start the commands of the suite without a sandbox; only for suites that you wrote or read
    #[arg(long)]
    pub(crate) unsafe_no_sandbox: bool,
}
