//! The options of `archeflow eval`.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use archeflow_core::eval::EvalMeasure;
use clap::builder::{PossibleValuesParser, TypedValueParser};
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
    /// Show what an evaluation found: outcomes, cost, and each arm compared with a baseline
    Report(EvalReportArgs),
    /// Compare two evaluations of the same tasks, such as of two models or dates: B minus A
    Compare(EvalCompareArgs),
    /// Run each task of a suite in each arm, and measure what came of it
    Run(EvalRunArgs),
}

impl EvalSubcommand {
    pub(crate) fn json(&self) -> bool {
        match self {
            EvalSubcommand::Check(args) => args.json,
            EvalSubcommand::Report(args) => args.format.json,
            EvalSubcommand::Compare(args) => args.format.json,
            EvalSubcommand::Run(args) => args.json,
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct SuiteSource {
    /// Folder with suite.yaml, or a .jsonl file in the shape of SWE-bench
    #[arg(value_name = "SUITE")]
    pub(crate) suite: PathBuf,
    /// Clones of the repositories that a .jsonl file names, as DIR/OWNER__NAME or DIR/NAME
    #[arg(long, value_name = "DIR")]
    pub(crate) clones: Option<PathBuf>,
    /// Test command for a .jsonl file, with {tests} in place of the test names
    #[arg(long, value_name = "CMD")]
    pub(crate) test_command: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct EvalCheckArgs {
    #[command(flatten)]
    pub(crate) source: SuiteSource,
    /// Tasks checked at a time [default: the number of cores]
    #[arg(long, value_name = "N")]
    pub(crate) jobs: Option<NonZeroUsize>,
    /// Configuration file or folder for this command; overrides your own configuration
    #[arg(long, value_name = "PATH")]
    pub(crate) config: Option<PathBuf>,
    /// Print the result as one JSON object
    #[arg(long)]
    pub(crate) json: bool,
    /// Start the commands of the suite without a sandbox; only for suites that you wrote or read
    #[arg(long)]
    pub(crate) unsafe_no_sandbox: bool,
}

#[derive(Debug, Args)]
pub(crate) struct EvalReportArgs {
    /// Folder of the evaluation
    #[arg(value_name = "FOLDER")]
    pub(crate) folder: PathBuf,
    /// Arm that the others are compared with [default: single, else the first arm]
    #[arg(long, value_name = "ARM")]
    pub(crate) baseline: Option<String>,
    #[command(flatten)]
    pub(crate) format: EvalFormatArgs,
}

#[derive(Debug, Args)]
pub(crate) struct EvalCompareArgs {
    /// Folder of the first evaluation
    #[arg(value_name = "A")]
    pub(crate) first: PathBuf,
    /// Folder of the second evaluation
    #[arg(value_name = "B")]
    pub(crate) second: PathBuf,
    /// Arm to compare [default: all that both have]
    #[arg(long, value_name = "ARM")]
    pub(crate) arm: Option<String>,
    #[command(flatten)]
    pub(crate) format: EvalFormatArgs,
}

/// How figures are computed and written.
#[derive(Debug, Args)]
pub(crate) struct EvalFormatArgs {
    /// Measure that decides; the others are shown as hints
    #[arg(long, value_name = "MEASURE", default_value = "solved", value_parser = measures())]
    pub(crate) measure: EvalMeasure,
    /// Confidence of intervals and tests, from 0.5 to 0.9999
    #[arg(long, value_name = "SHARE", default_value = "0.95", value_parser = confidence)]
    pub(crate) confidence: f64,
    /// Write one HTML page with pictures instead of Markdown
    #[arg(long, conflicts_with = "json")]
    pub(crate) html: bool,
    /// Print the result as one JSON object
    #[arg(long)]
    pub(crate) json: bool,
    /// Write it to this file instead of standard output
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

fn measures() -> impl TypedValueParser<Value = EvalMeasure> {
    PossibleValuesParser::new(EvalMeasure::ALL.map(EvalMeasure::name)).try_map(|name| {
        EvalMeasure::ALL.into_iter().find(|measure| measure.name() == name).ok_or("no such measure")
    })
}

fn confidence(text: &str) -> Result<f64, String> {
    let found: f64 = text.parse().map_err(|_| "not a number".to_owned())?;
    if (0.5..=0.999_9).contains(&found) { Ok(found) } else { Err("not from 0.5 to 0.9999".to_owned()) }
}

#[derive(Debug, Args)]
pub(crate) struct EvalRunArgs {
    #[command(flatten)]
    pub(crate) source: SuiteSource,
    /// Arms to compare: built-in names, or files or folders with a configuration
    #[arg(long, value_name = "ARM,…", value_delimiter = ',', required = true)]
    pub(crate) arms: Vec<String>,
    /// Agent for all archetypes of all arms; sim:NAME or sim:FILE for simulated agents
    #[arg(long, value_name = "AGENT")]
    pub(crate) agent: String,
    /// Trials of each task in each arm
    #[arg(long, value_name = "N", default_value_t = 3)]
    pub(crate) repeat: u32,
    /// Tasks to run [default: all]
    #[arg(long, value_name = "TASK,…", value_delimiter = ',')]
    pub(crate) tasks: Vec<String>,
    /// Folder of the evaluation; an evaluation that is there is resumed or extended [default: eval-SUITE]
    #[arg(short, long, value_name = "DIR")]
    pub(crate) output: Option<PathBuf>,
    /// Most dollars for all trials together
    #[arg(long, value_name = "USD")]
    pub(crate) budget: Option<String>,
    /// Trials at a time [default: the number of cores; with --fleet, the slots of its workers]
    #[arg(long, value_name = "N")]
    pub(crate) jobs: Option<NonZeroUsize>,
    /// Have the workers of a fleet run the trials: join file of a conductor
    #[arg(long, value_name = "FILE", requires = "remotes")]
    pub(crate) fleet: Option<PathBuf>,
    /// Folder for the repositories of trials, which all workers see at the same path; also as file:// address
    #[arg(long, value_name = "DIR", requires = "fleet")]
    pub(crate) remotes: Option<String>,
    /// Use only workers that offer this, e.g. agent:claude, os:linux, label:gpu; repeatable
    #[arg(long, value_name = "NEED", requires = "fleet")]
    pub(crate) need: Vec<String>,
    /// Time a worker may be silent before others get its order
    #[arg(long, value_name = "N", requires = "fleet", hide = true, value_parser = clap::value_parser!(u64).range(1..=900))]
    pub(crate) lease_seconds: Option<u64>,
    /// Seed of simulated agents
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Run only the rules, in memory: no repositories, tests or processes. For simulated agents, thousands of trials a minute
    #[arg(long, conflicts_with_all = ["keep", "unsafe_no_sandbox", "budget", "fleet"])]
    pub(crate) rules_only: bool,
    /// Keep the repositories of trials that are over
    #[arg(long)]
    pub(crate) keep: bool,
    /// Start without asking about the cost
    #[arg(long)]
    pub(crate) yes: bool,
    /// Print no line for each trial
    #[arg(short, long)]
    pub(crate) quiet: bool,
    /// Print the result as one JSON object
    #[arg(long)]
    pub(crate) json: bool,
    /// Start agents and tests without a sandbox; agents can then read the hidden tests. Workers of a fleet have their own
    #[arg(long)]
    pub(crate) unsafe_no_sandbox: bool,
}
