//! The process of the server: found, checked, started, set up, and ended with us.

use std::ffi::OsString;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use archeflow_host::platform::children;
use archeflow_host::platform::files as os;
use archeflow_host::platform::process::{Pid, Signal, kill_process, numbered, own_session};
use archeflow_host::store::lock::Lock;

use super::configuration::ServerFiles;
use super::folder::{FleetFolder, ServerFault};
use crate::join::{JoinError, check_version};
use crate::nats::{NatsBus, NatsOptions};

/// Names the server where it is not on the PATH.
const VARIABLE: &str = "ARCHEFLOW_NATS_SERVER";
/// A server with much to read from its disk takes minutes.
const READY: Duration = Duration::from_secs(600);
const LOOK: Duration = Duration::from_millis(50);
/// A server of a cluster may be started an hour before the others.
const TOGETHER: Duration = Duration::from_secs(3600);
/// Between two looks whether the others are there.
const APART: Duration = Duration::from_secs(1);
/// Between two looks at its configuration, and at whether it is to end.
const STAY: Duration = Duration::from_millis(500);
/// Of the disk, in hundredths: the server needs some of its own beside what it keeps.
const KEPT: u64 = 95;

/// The server that was named, or the one on the PATH, and its version.
pub fn find_server(
    named: Option<&Path>,
    variable: impl Fn(&str) -> Option<OsString>,
) -> Result<(PathBuf, String), ServerFault> {
    let named = named
        .map(Path::to_owned)
        .or_else(|| variable(VARIABLE).filter(|path| !path.is_empty()).map(PathBuf::from));
    let found = named.or_else(|| {
        let path = variable("PATH").unwrap_or_default();
        let mut places = std::env::split_paths(&path).map(|folder| folder.join("nats-server"));
        places.find(|place| place.is_file() && os::is_executable(place))
    });
    let path = found.ok_or(ServerFault::NoServer)?;
    let said = version(&path).map_err(|why| ServerFault::NotAServer { path: path.clone(), why })?;
    let Some(version) = said.trim().strip_prefix("nats-server: v").map(str::to_owned) else {
        let why = format!("it says {:?}", said.chars().take(200).collect::<String>());
        return Err(ServerFault::NotAServer { path, why });
    };
    match check_version(&version, "") {
        Ok(()) => Ok((path, version)),
        Err(_) => Err(ServerFault::ServerVersion { path, version: format!("nats-server {version}") }),
    }
}

fn version(path: &Path) -> Result<String, String> {
    let mut command = Command::new(path);
    command.arg("--version").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = children::spawn(&mut command).map_err(|error| error.to_string())?;
    let mut text = String::new();
    let read = child.stdout.take().map(|output| output.take(4096).read_to_string(&mut text)).transpose();
    let ended = children::wait(&mut child);
    read.and(ended).map_err(|error| error.to_string())?;
    Ok(text)
}

/// A running server. It ends when this is dropped, and when this process dies.
pub struct FleetServer {
    pid: Pid,
    ended: Receiver<()>,
    over: bool,
    files: ServerFiles,
    /// Two servers on one folder would spoil each other's data.
    _alone: Lock,
}

/// How waiting for the server ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServerEnd {
    Ended,
    StillRunning,
}

impl FleetServer {
    /// Starts it and makes its streams. When this returns, members can join.
    pub fn start(fleet: &FleetFolder, program: &Path) -> Result<FleetServer, ServerFault> {
        FleetServer::start_node(fleet, program, None, &AtomicBool::new(false))
    }

    /// The same for one server of a cluster. It returns when the cluster has its streams: for the first time, when all have been
    /// started; later, when most of them run. `stop` ends the waiting.
    pub fn start_node(
        fleet: &FleetFolder,
        program: &Path,
        number: Option<u8>,
        stop: &AtomicBool,
    ) -> Result<FleetServer, ServerFault> {
        let settings = fleet.settings()?;
        let files = fleet.files_of(number)?;
        let alone = Lock::take(fleet.path(), &files.lock, Duration::ZERO)?;
        let mut command = Command::new(program);
        command.args(["-c", &files.configuration]).current_dir(fleet.path());
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        own_session(&mut command);
        let failed = |source| ServerFault::Io { doing: format!("start {}", program.display()), source };
        let (child, ended) = spawn(command).map_err(failed)?;
        let mut server = FleetServer { pid: child, ended, over: false, files, _alone: alone };
        let bus = server.ready(fleet, number, stop)?;
        let begun = Instant::now();
        loop {
            match bus.lay_out(settings.disk / 100 * KEPT, settings.copies()) {
                Ok(()) => break,
                // The others of the cluster may not be there yet.
                Err(_) if number.is_some() && begun.elapsed() < TOGETHER => {}
                Err(error) => return Err(ServerFault::LayOut(error.to_string())),
            }
            server.still_there(fleet, APART, stop)?;
        }
        fleet.publish_members(&bus)?;
        Ok(server)
    }

    fn ready(
        &mut self,
        fleet: &FleetFolder,
        number: Option<u8>,
        stop: &AtomicBool,
    ) -> Result<NatsBus, ServerFault> {
        let join = fleet.own_join(number)?;
        let begun = Instant::now();
        loop {
            self.still_there(fleet, LOOK, stop)?;
            match NatsBus::connect(&join, NatsOptions::default()) {
                Ok(bus) => return Ok(bus),
                Err(JoinError::Unreachable { .. }) if begun.elapsed() < READY => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn still_there(
        &mut self,
        fleet: &FleetFolder,
        nap: Duration,
        stop: &AtomicBool,
    ) -> Result<(), ServerFault> {
        match self.wait(nap) {
            ServerEnd::Ended => Err(ServerFault::NotReady { said: fleet.said(&self.files) }),
            ServerEnd::StillRunning if stop.load(Ordering::SeqCst) => Err(ServerFault::Stopped),
            ServerEnd::StillRunning => Ok(()),
        }
    }

    /// Stays with it until it ends or `stop` is set. A configuration that was changed in between, e.g. copied here from another
    /// machine of the cluster, takes effect.
    pub fn stay(&mut self, fleet: &FleetFolder, stop: &AtomicBool) -> Result<(), ServerFault> {
        let path = fleet.path().join(&self.files.configuration);
        let mut known = std::fs::read(&path).ok();
        loop {
            match self.wait(STAY) {
                ServerEnd::Ended if stop.load(Ordering::SeqCst) => return Ok(()),
                ServerEnd::Ended => return Err(ServerFault::Died { said: fleet.said(&self.files) }),
                ServerEnd::StillRunning if stop.load(Ordering::SeqCst) => return Ok(()),
                ServerEnd::StillRunning => {}
            }
            let found = std::fs::read(&path).ok();
            if found.is_some() && found != known {
                known = found;
                let _ = kill_process(self.pid, Signal::HUP);
            }
        }
    }

    /// Waits for its end.
    pub fn wait(&mut self, limit: Duration) -> ServerEnd {
        if !self.over {
            self.over = self.ended.recv_timeout(limit) != Err(RecvTimeoutError::Timeout);
        }
        if self.over { ServerEnd::Ended } else { ServerEnd::StillRunning }
    }

    /// Asks it to end, as the system would. May be called from a signal's thread.
    pub fn stopper(&self) -> impl Fn() + Send + 'static {
        let pid = self.pid;
        move || {
            let _ = kill_process(pid, Signal::TERM);
        }
    }

    pub fn id(&self) -> i32 {
        self.pid.as_raw_nonzero().get()
    }
}

impl Drop for FleetServer {
    fn drop(&mut self) {
        if self.wait(Duration::ZERO) == ServerEnd::StillRunning {
            self.stopper()();
            self.wait(Duration::from_secs(60));
        }
    }
}

/// A child that asked to die with its parent dies with the thread that started it, so that thread waits for it.
fn spawn(mut command: Command) -> std::io::Result<(Pid, Receiver<()>)> {
    let (started, start) = channel();
    let (tell, ended) = channel();
    let work = move || {
        let mut child: Child = match children::spawn(&mut command) {
            Ok(child) => child,
            Err(error) => {
                let _ = started.send(Err(error));
                return;
            }
        };
        let _ = started.send(Ok(child.id()));
        let _ = children::wait(&mut child);
        let _ = tell.send(());
    };
    std::thread::Builder::new().name("server".into()).stack_size(128 * 1024).spawn(work)?;
    let lost = || std::io::Error::other("the thread that starts it ended");
    let id = start.recv().map_err(|_| lost())??;
    Ok((numbered(id).ok_or_else(lost)?, ended))
}
