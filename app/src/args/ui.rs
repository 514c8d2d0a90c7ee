//! The options of `archeflow ui`.

use std::path::PathBuf;

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
    #[arg(long, value_name = "NAME", value_parser = host_name)]
    pub(crate) host: Option<String>,
    /// Show only; decide nothing on the pages
    #[arg(long)]
    pub(crate) read_only: bool,
    /// Join file of a fleet: show its runs instead of those of this machine; nothing is decided on the pages
    #[arg(long, value_name = "FILE", conflicts_with = "prometheus")]
    pub(crate) fleet: Option<PathBuf>,
    /// Also serve numbers for Prometheus at /metrics, to who has the key in the file that is printed
    #[arg(long)]
    pub(crate) prometheus: bool,
    /// End after N minutes without a request
    #[arg(long, value_name = "MINUTES", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) idle_exit: Option<u64>,
}

/// As a browser writes it in `Host`: a name, and a port if it is not the usual one.
fn host_name(text: &str) -> Result<String, String> {
    let (name, port) = text.rsplit_once(':').map_or((text, None), |(name, port)| (name, Some(port)));
    let is_name =
        !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-'));
    let is_port = port.is_none_or(|port| port.parse::<u16>().is_ok());
    if is_name && is_port {
        return Ok(text.to_ascii_lowercase());
    }
    Err("a name such as box.tail1234.ts.net is needed, without https:// and without a path".to_owned())
}
