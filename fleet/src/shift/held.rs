//! Orders that this worker holds, on disk: a worker that is started again within the lease continues with the same delivery.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use archeflow_host::clock;
use archeflow_host::store::files;
use serde::{Deserialize, Serialize};

use crate::bus::Delivery;
use crate::hold::Hold;
use crate::message::{self, FleetOrder};
use crate::worker;

const LARGEST: u64 = 16 << 20;

#[derive(Serialize, Deserialize)]
struct Written {
    subject: String,
    seq: u64,
    times: u64,
    token: String,
    order: String,
    lease_ms: u64,
    /// By this machine's clock, which alone reads it again.
    extended_at: u64,
}

/// An order and the file that keeps its latest delivery.
#[derive(Clone)]
pub(super) struct HeldOrder {
    pub(super) hold: Arc<Hold>,
    /// Nothing if it can't be read.
    pub(super) order: Option<Arc<FleetOrder>>,
    pub(super) lease: Duration,
    path: PathBuf,
}

impl HeldOrder {
    pub(super) fn new(folder: &Path, delivery: Delivery, lease: Duration) -> HeldOrder {
        let name = blake3::hash(delivery.token.as_bytes()).to_hex();
        let path = folder.join(format!("{}.json", name.get(..16).unwrap_or_default()));
        HeldOrder::at(path, delivery, lease)
    }

    fn at(path: PathBuf, delivery: Delivery, lease: Duration) -> HeldOrder {
        let order = message::read_order(&delivery.bytes).ok().map(Arc::new);
        let hold = Arc::new(Hold::new(order.as_deref().map(worker::held), delivery));
        HeldOrder { hold, order, lease, path }
    }

    /// Writes down that the lease has just begun.
    pub(super) fn keep(&self) -> Result<(), String> {
        let Delivery { subject, seq, times, token, bytes, .. } = self.hold.latest();
        let order = String::from_utf8_lossy(&bytes).into_owned();
        let lease_ms = u64::try_from(self.lease.as_millis()).unwrap_or(u64::MAX);
        let written = Written { subject, seq, times, token, order, lease_ms, extended_at: clock::now() };
        let text = serde_json::to_vec(&written).map_err(|error| error.to_string())?;
        files::write_atomic(&self.path, &text).map_err(|error| error.to_string())
    }

    pub(super) fn forget(&self) {
        // One that is left is too old the next time.
        let _ = std::fs::remove_file(&self.path);
    }
}

/// What a worker held when it ended, as far as the leases still hold.
pub(super) fn left(folder: &Path) -> Vec<HeldOrder> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        let read = files::read_capped(&path, LARGEST).ok();
        let written = read.and_then(|bytes| serde_json::from_slice::<Written>(&bytes).ok());
        let holds = |written: &Written| {
            let age = clock::now().checked_sub(written.extended_at);
            age.is_some_and(|age| age < written.lease_ms)
        };
        match written.filter(holds) {
            Some(Written { subject, seq, times, token, order, lease_ms, .. }) => {
                let bytes = order.into_bytes();
                let delivery = Delivery { subject, seq, times, headers: Vec::new(), bytes, token };
                found.push(HeldOrder::at(path, delivery, Duration::from_millis(lease_ms)));
            }
            // Somebody else has it by now.
            None => drop(std::fs::remove_file(&path)),
        }
    }
    found
}
