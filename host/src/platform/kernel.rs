//! Settings of the kernel. A program that may change them has the machine.

use std::fs::OpenOptions;
use std::path::Path;

/// Some that only root may change, and that every machine with Linux has.
pub(crate) const SETTINGS: [&str; 4] = [
    "/proc/sys/kernel/core_pattern",
    "/proc/sys/kernel/panic",
    "/proc/sys/vm/swappiness",
    "/proc/sysrq-trigger",
];

/// It is opened, and nothing is written.
pub(crate) fn can_change(setting: &Path) -> bool {
    OpenOptions::new().write(true).open(setting).is_ok()
}
