//! Asks the process that drives a loop to stop, as Ctrl-C would.

use crate::platform::process::{self, Signal, kill_process};
use crate::store::holder::Holder;

/// Whether the process was asked. Only one of this program on this machine is: its number alone proves nothing.
pub fn interrupt(holder: &Holder) -> bool {
    let ours = std::env::current_exe().ok();
    let pid = process::numbered(holder.pid);
    let theirs = pid.and_then(process::program);
    let same = holder.host == Holder::me().host && ours.is_some() && ours == theirs;
    pid.filter(|_| same).is_some_and(|pid| kill_process(pid, Signal::INT).is_ok())
}
