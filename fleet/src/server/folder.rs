//! The folder of a fleet's server, and who belongs to the fleet.

use std::io;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use archeflow_host::platform::files as os;
use archeflow_host::platform::process::{Signal, numbered, program};
use archeflow_host::platform::table::Process;
use archeflow_host::store::files;
use archeflow_host::store::lock::{self, Lock};

use super::configuration::{FleetMember, FleetSettings, ServerFiles, configuration};
use crate::bus::Bus;
use crate::join::{FleetRole, JoinError, JoinFile, is_member_name};
use crate::keys::FleetKey;
use crate::members::{self, ListedMember, MembersFault};
use crate::nats::{NatsBus, NatsOptions};

const SETTINGS: &str = "fleet.json";
/// The member that `fleet serve` is.
const SERVE: &str = "serve";
const LONGEST: u64 = 4 * 1024 * 1024;
/// How long a server that runs may take until it keeps messages, and how often it is asked.
const STARTING: Duration = Duration::from_secs(30);
const LOOK: Duration = Duration::from_millis(200);
/// How long a command waits for another that changes the fleet.
const WAIT: Duration = Duration::from_secs(30);

#[derive(Debug, thiserror::Error)]
pub enum ServerFault {
    #[error("no fleet is in {}", folder.display())]
    NoFleet { folder: PathBuf },
    #[error("{} can't be used: {why}", path.display())]
    Settings { path: PathBuf, why: String },
    #[error("'{name}' can't name a member: letters, digits and '-', at most 40")]
    BadName { name: String },
    #[error("{name} is a {role} of this fleet already")]
    Known { name: String, role: FleetRole },
    #[error("nobody called '{name}' belongs to this fleet; known: {known}")]
    Unknown { name: String, known: String },
    #[error("{name} is what `fleet serve` needs itself")]
    Needed { name: String },
    #[error("the file {} can't be used: {why}", path.display())]
    Tls { path: PathBuf, why: String },
    #[error("{} has no server {number}; it has {known}", folder.display())]
    NoNode { folder: PathBuf, number: String, known: String },
    #[error("no nats-server was found")]
    NoServer,
    #[error("{} is no nats-server: {why}", path.display())]
    NotAServer { path: PathBuf, why: String },
    #[error("{} is {version}", path.display())]
    ServerVersion { path: PathBuf, version: String },
    #[error("nats-server ended before it was ready:\n{said}")]
    NotReady { said: String },
    #[error("nats-server ended by itself:\n{said}")]
    Died { said: String },
    #[error("it was stopped before it was ready")]
    Stopped,
    #[error("the server can't be set up: {0}")]
    LayOut(String),
    #[error(transparent)]
    Join(#[from] JoinError),
    #[error(transparent)]
    Members(#[from] MembersFault),
    #[error(transparent)]
    Files(#[from] files::Error),
    #[error(transparent)]
    Lock(#[from] lock::Error),
    #[error("{doing}: {source}")]
    Io { doing: String, source: io::Error },
}

impl ServerFault {
    /// What to do about it.
    pub fn remedy(&self) -> String {
        match self {
            ServerFault::NoFleet { .. } => "Make one: archeflow fleet init --folder <folder>".to_owned(),
            ServerFault::Settings { .. } => {
                "Restore it from a backup. Keys are in it and in join files only.".to_owned()
            }
            ServerFault::BadName { .. } => "Example: archeflow fleet add worker w7".to_owned(),
            ServerFault::Known { name, .. } => {
                format!("For a new key, remove it first: archeflow fleet remove {name}")
            }
            ServerFault::Tls { .. } => {
                "Name files in PEM format: --tls-cert server.pem --tls-key server.key --tls-ca ca.pem"
                    .to_owned()
            }
            ServerFault::NoServer | ServerFault::NotAServer { .. } | ServerFault::ServerVersion { .. } => {
                format!(
                    "Install nats-server, {}, and name it if it is not on the PATH: --nats-server <path>",
                    crate::join::wanted()
                )
            }
            ServerFault::Died { .. } => "Start it again: archeflow fleet serve".to_owned(),
            ServerFault::NotReady { .. } => {
                "Is the address in use, or the disk full? It is written down in server.log.".to_owned()
            }
            ServerFault::NoNode { .. } => "Name one: archeflow fleet serve --node 1".to_owned(),
            ServerFault::Join(error) => error.remedy(),
            ServerFault::Members(fault) => fault.remedy(),
            ServerFault::Stopped
            | ServerFault::Unknown { .. }
            | ServerFault::Needed { .. }
            | ServerFault::LayOut(_)
            | ServerFault::Files(_)
            | ServerFault::Lock(_)
            | ServerFault::Io { .. } => String::new(),
        }
    }
}

/// A folder with a fleet in it.
#[derive(Debug, Clone)]
pub struct FleetFolder {
    folder: PathBuf,
}

impl FleetFolder {
    /// Makes a fleet, or says that there is one: then nothing is changed. Keys are never overwritten.
    pub fn init(folder: &Path, settings: &FleetSettings) -> Result<(FleetFolder, bool), ServerFault> {
        os::private_directory()
            .recursive(true)
            .create(folder)
            .map_err(|source| ServerFault::Io { doing: format!("make {}", folder.display()), source })?;
        let fleet = FleetFolder { folder: folder.to_owned() };
        let _lock = fleet.lock()?;
        let path = folder.join(SETTINGS);
        let is_new = !path.exists();
        if is_new {
            if let Some(tls) = &settings.tls {
                for path in [&tls.cert, &tls.key, &tls.ca] {
                    let wrong =
                        |error: files::Error| ServerFault::Tls { path: path.clone(), why: error.to_string() };
                    files::read_capped(path, LONGEST).map_err(wrong)?;
                }
            }
            fleet.save(settings)?;
        }
        members::make_fleet_key(folder)?;
        // A fleet whose making was interrupted has no key to serve with.
        let known = fleet.settings()?;
        if !known.members.iter().any(|member| member.role == FleetRole::Serve) {
            let path = fleet.join_path(SERVE);
            if path.exists() {
                fleet.enter(known, &JoinFile::read(&path)?)?;
            } else {
                fleet.make_member(known, FleetRole::Serve, SERVE, &path)?;
            }
        } else {
            fleet.save(&known)?;
        }
        Ok((fleet, is_new))
    }

    pub fn open(folder: &Path) -> Result<FleetFolder, ServerFault> {
        let fleet = FleetFolder { folder: folder.to_owned() };
        fleet.settings()?;
        Ok(fleet)
    }

    pub fn path(&self) -> &Path {
        &self.folder
    }

    pub fn settings(&self) -> Result<FleetSettings, ServerFault> {
        let path = self.folder.join(SETTINGS);
        if !path.exists() {
            return Err(ServerFault::NoFleet { folder: self.folder.clone() });
        }
        let bytes = files::read_capped(&path, LONGEST)?;
        let read = serde_json::from_slice::<FleetSettings>(&bytes);
        let settings = read.map_err(|error| error.to_string()).and_then(|settings| match settings.v {
            1 => Ok(settings),
            v => Err(format!("it has format {v}; this program knows 1")),
        });
        settings.map_err(|why| ServerFault::Settings { path, why })
    }

    /// Adds a member: its public key for the server, its join file for the member itself.
    pub fn add(&self, role: FleetRole, name: &str, out: Option<&Path>) -> Result<PathBuf, ServerFault> {
        if !is_member_name(name) {
            return Err(ServerFault::BadName { name: name.to_owned() });
        }
        let _lock = self.lock()?;
        let settings = self.settings()?;
        if let Some(known) = settings.members.iter().find(|member| member.name == name) {
            return Err(ServerFault::Known { name: name.to_owned(), role: known.role });
        }
        let path = out.map_or_else(|| self.join_path(name), Path::to_owned);
        self.make_member(settings, role, name, &path)?;
        self.publish_if_running()?;
        Ok(path)
    }

    /// Removes a member. The server closes its connections when it reads its configuration again.
    pub fn remove(&self, name: &str) -> Result<(), ServerFault> {
        let _lock = self.lock()?;
        let mut settings = self.settings()?;
        let Some(at) = settings.members.iter().position(|member| member.name == name) else {
            let known: Vec<&str> = settings.members.iter().map(|member| member.name.as_str()).collect();
            return Err(ServerFault::Unknown { name: name.to_owned(), known: known.join(", ") });
        };
        if settings.members.remove(at).role == FleetRole::Serve {
            return Err(ServerFault::Needed { name: name.to_owned() });
        }
        self.save(&settings)?;
        // The key in it opens nothing any more.
        match std::fs::remove_file(self.join_path(name)) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(source) => {
                return Err(ServerFault::Io { doing: format!("remove the join file of {name}"), source });
            }
        }
        self.publish_if_running()
    }

    /// Tells the servers that run on this machine to read their configuration again; whether there is one.
    pub fn reload(&self) -> bool {
        let running = self.numbers().into_iter().filter_map(|number| self.running(number));
        running.inspect(|server| server.signal(Signal::HUP)).count() > 0
    }

    fn numbers(&self) -> Vec<Option<u8>> {
        self.settings().map(|settings| settings.numbers()).unwrap_or_default()
    }

    /// Publishes the signed list of members.
    pub(super) fn publish_members(&self, bus: &dyn Bus) -> Result<(), ServerFault> {
        let _lock = self.lock()?;
        self.publish(bus)
    }

    /// While no server runs there is nobody to mislead, and the next one begins with publishing.
    fn publish_if_running(&self) -> Result<(), ServerFault> {
        let Some(number) = self.numbers().into_iter().find(|number| self.running(*number).is_some()) else {
            return Ok(());
        };
        let join = self.own_join(number)?;
        let begun = Instant::now();
        loop {
            let bus = NatsBus::connect(&join, NatsOptions::default());
            let unpublished = |error: JoinError| MembersFault::Unpublished(error.to_string());
            match bus.map_err(|error| unpublished(error).into()).and_then(|bus| self.publish(&bus)) {
                // It may just have been started, and have no streams yet.
                Err(ServerFault::Members(MembersFault::Unpublished(_))) if begun.elapsed() < STARTING => {
                    thread::sleep(LOOK);
                }
                ended => return ended,
            }
        }
    }

    fn publish(&self, bus: &dyn Bus) -> Result<(), ServerFault> {
        let listed =
            |known: FleetMember| ListedMember { name: known.name, role: known.role, public: known.key };
        let members = self.settings()?.members.into_iter().map(listed).collect();
        Ok(members::publish(&self.folder, members, bus)?)
    }

    /// The server of this number, if it runs on this machine.
    fn running(&self, number: Option<u8>) -> Option<Process> {
        let text =
            files::read_capped(&self.folder.join(&ServerFiles::of(number).pid), 64).unwrap_or_default();
        let number = String::from_utf8_lossy(&text).trim().parse().ok();
        let process = number.and_then(numbered).and_then(Process::read)?;
        // The number may have been given away since.
        let is_server = program(process.pid).is_some_and(|program| {
            program.file_name().is_some_and(|name| name.to_string_lossy().contains("nats"))
        });
        (is_server && !process.dead).then_some(process)
    }

    /// The files of one server, if there is one of this number.
    pub(super) fn files_of(&self, number: Option<u8>) -> Result<ServerFiles, ServerFault> {
        let numbers = self.settings()?.numbers();
        if numbers.contains(&number) {
            return Ok(ServerFiles::of(number));
        }
        let words =
            |number: &Option<u8>| number.map_or_else(|| "without a number".to_owned(), |n| n.to_string());
        let known: Vec<String> = numbers.iter().map(words).collect();
        let (folder, known) = (self.folder.clone(), known.join(", "));
        Err(ServerFault::NoNode { folder, number: words(&number), known })
    }

    /// With the address on this machine first.
    pub(super) fn own_join(&self, number: Option<u8>) -> Result<JoinFile, ServerFault> {
        let mut join = JoinFile::read(&self.join_path(SERVE))?;
        let settings = self.settings()?;
        if let Some(node) = settings.node(number) {
            // Its own and no other: it is this one that is to be ready.
            join.servers = vec![node.address()];
            return Ok(join);
        }
        if settings.cluster.is_some() {
            return Ok(join);
        }
        let (host, port) = settings.listen.rsplit_once(':').unwrap_or((&settings.listen, "4222"));
        let host = if matches!(host, "0.0.0.0" | "[::]" | "") { "127.0.0.1" } else { host };
        join.servers.insert(0, format!("nats://{host}:{port}"));
        Ok(join)
    }

    /// The end of what a server wrote down.
    pub(super) fn said(&self, files: &ServerFiles) -> String {
        let bytes = std::fs::read(self.folder.join(&files.log)).unwrap_or_default();
        let text = String::from_utf8_lossy(&bytes);
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(5)..].join("\n")
    }

    fn lock(&self) -> Result<Lock, ServerFault> {
        Ok(Lock::take(&self.folder, "fleet", WAIT)?)
    }

    fn join_path(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{name}.join"))
    }

    /// First the file, then the server's half: a key that nobody has is of no use to anybody.
    fn make_member(
        &self,
        settings: FleetSettings,
        role: FleetRole,
        name: &str,
        path: &Path,
    ) -> Result<(), ServerFault> {
        let key = FleetKey::generate()
            .map_err(|source| ServerFault::Io { doing: "make a key".to_owned(), source })?;
        let ca = settings.tls.as_ref().map(|tls| files::read_capped(&self.folder.join(&tls.ca), LONGEST));
        let ca = ca.transpose()?.map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        let join = JoinFile {
            path: path.to_owned(),
            servers: settings.servers.clone(),
            ca,
            name: name.to_owned(),
            role,
            key,
            fleet: Some(members::fleet_key(&self.folder)?.public()),
        };
        join.write()?;
        self.enter(settings, &join)
    }

    fn enter(&self, mut settings: FleetSettings, join: &JoinFile) -> Result<(), ServerFault> {
        let (name, role, key) = (join.name.clone(), join.role, join.key.public());
        settings.members.push(FleetMember { name, role, key });
        self.save(&settings)
    }

    fn save(&self, settings: &FleetSettings) -> Result<(), ServerFault> {
        let lost =
            |error: serde_json::Error| ServerFault::Io { doing: "write".to_owned(), source: error.into() };
        let text = serde_json::to_vec_pretty(settings).map_err(lost)?;
        files::write_atomic(&self.folder.join(SETTINGS), &text)?;
        for number in settings.numbers() {
            let text = serde_json::to_vec_pretty(&configuration(settings, number)).map_err(lost)?;
            files::write_atomic(&self.folder.join(ServerFiles::of(number).configuration), &text)?;
        }
        Ok(())
    }
}
