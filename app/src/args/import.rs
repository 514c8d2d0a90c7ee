//! The options of `archeflow import`.

use std::path::PathBuf;

use clap::Args;

use super::CommonArgs;

#[derive(Debug, Args)]
pub(crate) struct ImportArgs {
    /// File that `archeflow export run` wrote
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) place: CommonArgs,
}
