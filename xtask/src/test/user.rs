//! The sandbox tests as an ordinary user.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use super::{Count, Done, counted};

/// Starts a test program as the user that owns nothing, from a folder that it can read: a checkout below `/root` can't be.
const AS_USER: &str = "#!/bin/sh
set -e
cd \"$(dirname \"$0\")\"
cp \"$1\" tests && cp \"$(dirname \"$1\")/../archeflow\" archeflow && shift
exec setpriv --reuid=65534 --regid=65534 --clear-groups env HOME=\"$PWD/home\" TMPDIR=\"$PWD/tmp\" ./tests \"$@\"
";

/// What root may do is not what its users may do. The other steps run as whoever started them, which is root in most containers.
pub(super) fn run(root: &Path, count: &mut Count) -> Result<Done, String> {
    if !cfg!(target_os = "linux") || !rustix::process::getuid().is_root() {
        return Ok(Done::Skipped("the step `tests` ran as an ordinary user".to_owned()));
    }
    let folder = tempfile::Builder::new().prefix("archeflow-user-").tempdir_in("/tmp");
    let folder = folder.map_err(|error| format!("a folder for the user's tests: {error}"))?;
    let script = folder.path().join("as-user");
    let open = |path: &Path, mode| std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode));
    let made = std::fs::write(&script, AS_USER)
        .and_then(|()| open(&script, 0o755))
        .and_then(|()| open(folder.path(), 0o755))
        .and_then(|()| {
            ["home", "tmp"].iter().try_for_each(|name| {
                let path = folder.path().join(name);
                std::fs::create_dir(&path).and_then(|()| open(&path, 0o777))
            })
        });
    made.map_err(|error| format!("{}: {error}", folder.path().display()))?;
    let runner = format!("target.'cfg(unix)'.runner='{}'", script.display());
    let words =
        ["cargo", "test", "--config", &runner, "-p", "archeflow", "--test", "sandbox", "--no-fail-fast"];
    counted(root, &words, &[], count)
}
