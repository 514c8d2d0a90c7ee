//! `archeflow ui`: all runs in a browser of this machine.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use archeflow_host::detached::Detached;
use archeflow_host::proc;
use archeflow_host::store::places::Places;
use archeflow_host::store::{files, metrics_key};
use archeflow_serve::{Limits, ServeError, ServeOptions, Server, ShownFleet};

use crate::args::UiArgs;
use crate::commands::process_env;
use crate::commands::trust::only_from_outside;
use crate::commands::views::FleetView;
use crate::failure::Failure;
use crate::output::CommandOutput;
use crate::render::text::safe_line;

pub(crate) fn run(args: &UiArgs) -> Result<CommandOutput, Failure> {
    // The address is a key to all runs of the user.
    only_from_outside("serve pages")?;
    let env = process_env()?;
    // The first run may be started while the pages are open already.
    let state = Places::state_dir_made_elsewhere(&env.places())?;
    let fleet = args.fleet.as_deref().map(|file| FleetView::open(&env.cwd.join(file), false)).transpose()?;
    let fleet = fleet.map(Arc::new);
    let shown = fleet.as_ref().map_or_else(|| state.clone(), |fleet| fleet.mirror.folder().to_owned());
    let cwd = fleet.as_ref().map_or_else(|| env.cwd.clone(), |fleet| fleet.mirror.projects());
    let metrics = args.prometheus.then(|| metrics_key::open(&state)).transpose()?;
    let server = Server::bind(ServeOptions {
        port: args.port,
        host: args.host.clone(),
        idle_exit: args.idle_exit.map(|minutes| Duration::from_secs(minutes.saturating_mul(60))),
        read_only: args.read_only,
        program: env.me.clone(),
        cwd,
        fleet: fleet.as_ref().map(shown_fleet),
        state: Some(shown),
        metrics_key: metrics.as_ref().map(|metrics| metrics.key),
        version: env.version,
        limits: Limits::default(),
    })?;
    let stopper = server.stopper();
    let listening = proc::signals::listen(move |_| stopper.stop());
    listening.map_err(|error| Failure::new(30, "environment", error.to_string(), ""))?;
    tell!("Open this address in a browser of this machine; it is the key, so share it with nobody:");
    tell!("  {}", server.address());
    if let Some(metrics) = &metrics {
        let file = safe_line(&metrics.file.display().to_string());
        tell!("Prometheus: http://127.0.0.1:{}/metrics, with the key in {file}", server.port());
    }
    tell!("Ctrl-C ends it. Runs are not affected.");
    if args.open {
        open(&server.address(), &state);
    }
    if let Some(fleet) = fleet {
        std::thread::spawn(move || fleet.follow());
    }
    server.run()?;
    Ok(CommandOutput::done())
}

fn shown_fleet(fleet: &Arc<FleetView>) -> ShownFleet {
    let here = Arc::clone(fleet);
    ShownFleet { file: fleet.file().to_owned(), bring: Arc::new(move |run| here.bring_artifacts(run)) }
}

/// The arguments of a process can be read by every user of the machine, so the browser is given a file in the user's own
/// folder that leads to the address.
fn open(address: &str, state: &Path) {
    let page = state.join("ui.html");
    let text = format!(
        "<!doctype html><meta charset=utf-8><title>archeflow</title>\
         <meta http-equiv=refresh content=\"0; url={address}\"><a href=\"{address}\">archeflow</a>\n"
    );
    let opener = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    let opened =
        files::write_atomic(&page, text.as_bytes()).map_err(|error| error.to_string()).and_then(|()| {
            let words = [page.display().to_string()];
            Detached::start(Path::new(opener), &words, state, state).map_err(|error| error.to_string())
        });
    if let Err(error) = opened {
        tell!("note: no browser could be opened ({opener}: {error}); open the address yourself");
    }
}

impl From<ServeError> for Failure {
    fn from(error: ServeError) -> Failure {
        let hint = match &error {
            ServeError::PortInUse { .. } => {
                "Is another `archeflow ui` running? Choose another port: --port 0"
            }
            ServeError::Port { .. } => "Choose another port: --port 0",
            ServeError::Random(_) | ServeError::Runtime(_) => "",
        };
        Failure::new(30, "environment", error.to_string(), hint)
    }
}
