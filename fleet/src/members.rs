//! Who belongs to a fleet, as everybody can verify it: a list of members with their public keys, signed with the fleet's own
//! key. That key is in the folder of the server (`fleet.key`) and never leaves it; join files name its public half. What is on
//! the server alone proves nothing: members can make messages appear on subjects that they may not write to.
//!
//! Each list has a greater counter than the one before. A reader never accepts a smaller counter than one that this process
//! has seen, so that a list with a member that was removed can't be put back.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use archeflow_host::clock;
use archeflow_host::platform::files as os;
use archeflow_host::store::files;
use serde::{Deserialize, Serialize};

use crate::bus::{Bus, BusError, Expect, Kept, Put};
use crate::join::{FleetRole, JoinFile, write_private};
use crate::keys::{FleetKey, SignedAs, is_signed_for};
use crate::names;

const KEY: &str = "fleet.key";
/// The list that was signed last.
const LIST: &str = "members.json";
const FORMAT: u32 = 1;
const LONGEST: u64 = 4 * 1024 * 1024;
/// The server keeps fewer; more would be a flood.
const MOST_REVISIONS: usize = 100;
/// How often a message that gets no answer is sent.
const TRIES: usize = 3;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListedMember {
    pub name: String,
    pub role: FleetRole,
    /// The public half of its key.
    pub public: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct MemberList {
    v: u32,
    n: u64,
    members: Vec<ListedMember>,
}

#[derive(Debug, thiserror::Error)]
pub enum MembersFault {
    #[error("the fleet's own key {} is not there", path.display())]
    NoKey { path: PathBuf },
    #[error("the fleet's own key {} can't be used: {why}", path.display())]
    BadKey { path: PathBuf, why: String },
    #[error("the list of members can't be kept: {0}")]
    Files(#[from] files::Error),
    #[error("the list of members can't be signed")]
    Unsigned,
    #[error("the list of members can't be published: {0}")]
    Unpublished(String),
}

impl MembersFault {
    /// What to do about it.
    pub fn remedy(&self) -> String {
        match self {
            MembersFault::NoKey { path } => format!(
                "Restore it from a backup, or make a new one (archeflow fleet init --folder {}) and new join files.",
                path.parent().unwrap_or(path).display()
            ),
            MembersFault::BadKey { path, .. } => {
                format!("Restore it from a backup, for its owner only: chmod 600 {}", path.display())
            }
            MembersFault::Unpublished(_) => {
                "Start the server again, it publishes the list: archeflow fleet serve. Until then the one before is valid."
                    .to_owned()
            }
            MembersFault::Files(_) | MembersFault::Unsigned => String::new(),
        }
    }
}

/// The fleet's own key.
pub fn fleet_key(folder: &Path) -> Result<FleetKey, MembersFault> {
    let path = folder.join(KEY);
    let bad = |why: String| MembersFault::BadKey { path: path.clone(), why };
    let meta = match std::fs::metadata(&path) {
        Ok(meta) => meta,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(MembersFault::NoKey { path }),
        Err(error) => return Err(bad(error.to_string())),
    };
    let mode = os::mode(&meta) & 0o777;
    if mode & 0o077 != 0 {
        return Err(bad(format!("it can be read by others (mode {mode:o})")));
    }
    let bytes = files::read_capped(&path, 1024).map_err(|error| bad(error.to_string()))?;
    FleetKey::from_seed(String::from_utf8_lossy(&bytes).trim()).ok_or_else(|| bad("it is no seed".to_owned()))
}

/// Makes the fleet's own key where there is none.
pub fn make_fleet_key(folder: &Path) -> Result<FleetKey, MembersFault> {
    match fleet_key(folder) {
        Err(MembersFault::NoKey { path }) => {
            let bad = |why: String| MembersFault::BadKey { path: path.clone(), why };
            let key = FleetKey::generate().map_err(|error| bad(error.to_string()))?;
            let seed = key.seed().ok_or(MembersFault::Unsigned)?;
            write_private(&path, format!("{seed}\n").as_bytes()).map_err(|error| bad(error.to_string()))?;
            Ok(key)
        }
        known => known,
    }
}

/// Signs these members as the fleet's list and publishes it. The caller holds the folder's lock.
pub(crate) fn publish(folder: &Path, members: Vec<ListedMember>, bus: &dyn Bus) -> Result<(), MembersFault> {
    let (key, path) = (fleet_key(folder)?, folder.join(LIST));
    let before = files::read_capped(&path, LONGEST).ok();
    let before = before.and_then(|bytes| serde_json::from_slice::<MemberList>(&bytes).ok());
    // By the clock, the counter also rises in a folder that was restored from a backup.
    let n = before.map_or(0, |list| list.n.saturating_add(1)).max(clock::now());
    let list = MemberList { v: FORMAT, n, members };
    let bytes = serde_json::to_vec(&list).map_err(|_| MembersFault::Unsigned)?;
    let signature = key.sign_for(SignedAs::Members, &bytes).ok_or(MembersFault::Unsigned)?;
    files::write_atomic(&path, &bytes)?;
    let headers = [(names::SIGNATURE, signature.as_str())];
    put_again(
        bus,
        Put { subject: names::MEMBERS, expect: Expect::Anything, id: None, headers: &headers, bytes: &bytes },
    )
    .map_err(|error| MembersFault::Unpublished(error.to_string()))
}

/// Sends what may arrive twice, until it is kept.
pub(crate) fn put_again(bus: &dyn Bus, put: Put<'_>) -> Result<(), BusError> {
    let mut tries = 1;
    loop {
        match bus.put(put) {
            Ok(_) => return Ok(()),
            Err(BusError::NoAnswer(_)) if tries < TRIES => tries += 1,
            Err(error) => return Err(error),
        }
    }
}

/// The greatest counter that this process has seen, by the key of the fleet.
static SEEN: Mutex<BTreeMap<String, u64>> = Mutex::new(BTreeMap::new());

/// The members of the fleet of this join file.
pub fn read(bus: &dyn Bus, join: &JoinFile) -> Result<Vec<ListedMember>, BusError> {
    let Some(fleet) = &join.fleet else {
        return Err(BusError::Wrong(format!(
            "the join file {} is from before fleets had a key of their own, so nothing that people approve can be \
             verified with it; make a new one where the server is: archeflow fleet remove {name}, archeflow fleet add \
             {role} {name}",
            join.path.display(),
            name = join.name,
            role = join.role,
        )));
    };
    let (mut newest, mut seq) = (None::<MemberList>, 0);
    // Not only the last revision: a member can put an older list, or nonsense, on top of it.
    for _ in 0..MOST_REVISIONS {
        let Some(kept) = bus.next_from(names::TRUST, names::MEMBERS, seq)? else { break };
        seq = kept.seq + 1;
        let Some(list) = verified(&kept, fleet)? else { continue };
        if newest.as_ref().is_none_or(|known| known.n < list.n) {
            newest = Some(list);
        }
    }
    let none = "the server has no list of members that is signed by this fleet; start it again to publish one: \
                archeflow fleet serve";
    let list = newest.ok_or_else(|| BusError::Wrong(none.to_owned()))?;
    let mut seen = SEEN.lock().unwrap_or_else(PoisonError::into_inner);
    let seen = seen.entry(fleet.clone()).or_default();
    if list.n < *seen {
        return Err(BusError::Wrong(
            "the list of members on the server is older than one that it had before; start it again to publish the \
             newest: archeflow fleet serve"
                .to_owned(),
        ));
    }
    *seen = list.n;
    Ok(list.members)
}

fn verified(kept: &Kept, fleet: &str) -> Result<Option<MemberList>, BusError> {
    let signature = kept.header(names::SIGNATURE).unwrap_or_default();
    if !is_signed_for(fleet, SignedAs::Members, &kept.bytes, signature) {
        return Ok(None);
    }
    match serde_json::from_slice::<MemberList>(&kept.bytes) {
        Ok(list) if list.v == FORMAT => Ok(Some(list)),
        Ok(_) | Err(_) => Err(BusError::Wrong(
            "the list of members has a format that this program does not know; update archeflow on this machine"
                .to_owned(),
        )),
    }
}
