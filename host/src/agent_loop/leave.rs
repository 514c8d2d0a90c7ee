//! Asks whoever drives a loop to leave it, as Ctrl-C would.

use rustix::process::{Pid, Signal, kill_process};

use crate::store::holder::Holder;

/// Whether the process was asked. Only one of this program on this machine is: its number alone proves nothing.
pub fn interrupt(holder: &Holder) -> bool {
    let ours = std::env::current_exe().ok();
    let theirs = std::fs::read_link(format!("/proc/{}/exe", holder.pid)).ok();
    let same = holder.host == Holder::me().host && ours.is_some() && ours == theirs;
    let pid = i32::try_from(holder.pid).ok().and_then(Pid::from_raw);
    pid.filter(|_| same).is_some_and(|pid| kill_process(pid, Signal::INT).is_ok())
}
