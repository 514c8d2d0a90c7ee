//! Temporary files and folders of programs that were killed.

use std::path::{Path, PathBuf};

use archeflow_core::rules::keeping::{self, RunFate};

use super::{CleanedKind, Cleaner, disk};
use crate::platform::Errno;
use crate::platform::files as os;
use crate::platform::process::{self, acting_user};

const SCRATCH: &str = "tmp";
const TRIAL: &str = "try.";
const SELF_TEST: &str = "self-test-";
const PROBE: &str = "archeflow-probe-";

impl Cleaner<'_> {
    pub(super) fn leftovers(&mut self) {
        let scratch = self.state.join(SCRATCH);
        self.finish_earlier(&scratch);
        let folders: Vec<PathBuf> = disk::entries(&scratch).filter(|path| !disk::is_trash(path)).collect();
        self.fates.listed();
        for path in folders {
            let name = disk::name(&path);
            let alive = match name.strip_prefix(TRIAL) {
                Some(number) => is_alive(number),
                None => match run_of(&name) {
                    Some(run_id) => self.fates.of_id(run_id).fate == RunFate::Driven,
                    // Not one of ours.
                    None => true,
                },
            };
            self.settle(CleanedKind::Temporary, &path, keeping::temporary(alive), || {
                disk::remove_whole(&path)
            });
        }
        self.of_processes(self.state.to_path_buf().as_path(), SELF_TEST);
        self.of_processes(&std::env::temp_dir(), PROBE);
    }

    /// Those that are named after the process that made them. Other people can write into the folder.
    fn of_processes(&mut self, folder: &Path, prefix: &str) {
        let ours = |path: &PathBuf| {
            std::fs::symlink_metadata(path)
                .is_ok_and(|meta| os::owner(&meta) == acting_user() && (meta.is_dir() || meta.is_file()))
        };
        for path in disk::entries(folder).collect::<Vec<_>>() {
            let name = disk::name(&path);
            let Some(rest) = name.strip_prefix(prefix).filter(|_| ours(&path)) else { continue };
            let number: String = rest.chars().take_while(char::is_ascii_digit).collect();
            let decided = keeping::temporary(is_alive(&number));
            self.settle(CleanedKind::Temporary, &path, decided, || disk::remove(&path));
        }
    }
}

/// `<run>.<nonce>.<line>`, and with a word after it for a setup. Ids may have dots of their own.
fn run_of(name: &str) -> Option<&str> {
    let name = name.strip_suffix(".setup").unwrap_or(name);
    let (name, line) = name.rsplit_once('.')?;
    let (run_id, _nonce) = name.rsplit_once('.')?;
    line.parse::<u64>().ok().map(|_| run_id)
}

fn is_alive(number: &str) -> bool {
    let pid = number.parse().ok().and_then(process::numbered);
    // Not allowed to signal it: it is there.
    pid.is_some_and(|pid| !matches!(process::test(pid), Err(Errno::SRCH)))
}

#[cfg(test)]
mod tests {
    use super::run_of;

    #[test]
    fn u_14_a_temporary_folder_names_its_run() {
        for (name, expected) in [
            ("2026-04-08-fix-it.a1b2.17", Some("2026-04-08-fix-it")),
            ("sprint.item.1.a1b2.17.setup", Some("sprint.item.1")),
            ("2026-04-08-fix-it.a1b2.x", None),
            ("something", None),
        ] {
            assert_eq!(run_of(name), expected, "{name}");
        }
    }
}
