//! The options of `archeflow ui`.

use clap::Args;

#[derive(Debug, Args)]
pub(crate) struct UiArgs {
    /// Port on this machine; 0 for any that is free
    #[arg(long, value_name = "PORT", default_value_t = 7777)]
    pub(crate) port: u16,
    /// Open the pages in your browser
    #[arg(long)]
    pub(crate) open: bool,
    /// One more name the pages are reached by, through a tunnel of yours, e.g. box.tail1234.ts.net
    #[arg(long, value_name = "NAME")]
    pub(crate) host: Option<String>,
    /// Show only; decide nothing on the pages
    #[arg(long)]
    pub(crate) read_only: bool,
    /// End after N minutes without a request
    #[arg(long, value_name = "MINUTES")]
    pub(crate) idle_exit: Option<u64>,
}
