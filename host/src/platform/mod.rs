//! Everything that only the operating system knows: processes, files beyond what `std` offers, terminals, randomness.
//!
//! No other module imports `rustix`, `std::os::unix` or reads `/proc`. The modules here are the same everywhere;
//! `linux.rs` and `macos.rs` answer one set of questions each in the system's own way, and `system` is the one that
//! was compiled. Systems that run neither are refused by the compiler rather than served badly.
//!
//! Deliberately absent: what is done with the answers. Supervision is in [`proc`](crate::proc), the journal in
//! [`store`](crate::store).

pub mod caveats;
pub mod children;
pub mod confine;
pub mod files;
pub mod folder_watch;
pub mod inherited;
pub(crate) mod kernel;
pub mod machine;
pub mod poll;
pub mod process;
pub mod removal;
pub mod session;
pub mod socket;
pub mod table;
pub mod terminal;
pub mod watcher;

#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "linux")]
use linux as system;

#[cfg(target_os = "macos")]
mod macos;
/// Pure, so it is tested wherever the tests run.
#[cfg(all(test, not(target_os = "macos")))]
#[path = "macos/arguments.rs"]
mod macos_arguments;
#[cfg(target_os = "macos")]
use macos as system;

#[cfg(not(any(target_os = "linux", target_os = "macos")))]
compile_error!("archeflow runs on Linux and macOS");

pub use rustix::io::Errno;
