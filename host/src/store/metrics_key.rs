//! The key of `archeflow ui --prometheus`: a file of the user's alone that stays the same, so that it can be named in the
//! configuration of Prometheus.

use std::io;
use std::path::{Path, PathBuf};

use super::files::{self, Error};
use crate::platform::files as os;
use crate::platform::machine;

const NAME: &str = "metrics-key";
/// Hexadecimal digits, and perhaps an end of line.
const LONGEST: u64 = 80;

pub struct MetricsKey {
    pub key: [u8; 32],
    pub file: PathBuf,
}

/// The key that is there, or a new one. A file that others can read, or that holds something else, is replaced.
pub fn open(state: &Path) -> Result<MetricsKey, Error> {
    let file = state.join(NAME);
    if let Some(key) = read(&file) {
        return Ok(MetricsKey { key, file });
    }
    let mut key = [0; 32];
    machine::random(&mut key).map_err(|error| Error::io("make a key for", &file, error))?;
    let text: String = key.iter().map(|byte| format!("{byte:02x}")).collect();
    files::write_atomic(&file, text.as_bytes())?;
    let private = std::fs::metadata(&file).is_ok_and(|found| os::mode(&found) & 0o077 == 0);
    if !private {
        let error = io::Error::new(io::ErrorKind::PermissionDenied, "others could read it");
        return Err(Error::io("keep a key in", &file, error));
    }
    Ok(MetricsKey { key, file })
}

fn read(file: &Path) -> Option<[u8; 32]> {
    let found = std::fs::symlink_metadata(file).ok().filter(std::fs::Metadata::is_file)?;
    (os::mode(&found) & 0o077 == 0).then_some(())?;
    let bytes = files::read_capped(file, LONGEST).ok()?;
    let text =
        std::str::from_utf8(bytes.trim_ascii()).ok().filter(|text| text.len() == 64 && text.is_ascii())?;
    let mut key = [0; 32];
    for (n, byte) in key.iter_mut().enumerate() {
        *byte = u8::from_str_radix(text.get(2 * n..2 * n + 2)?, 16).ok()?;
    }
    Some(key)
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn otel_the_key_for_prometheus_stays_and_is_the_users_alone() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join(NAME);
        let mode = |mode| std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).unwrap();
        std::fs::write(&file, "something else").unwrap();
        mode(0o600);
        let first = read(&file);
        assert_eq!(first, None);
        let text: String = [7_u8; 32].iter().map(|byte| format!("{byte:02x}")).collect();
        std::fs::write(&file, format!("{text}\n")).unwrap();
        assert_eq!(open(dir.path()).unwrap().key, [7; 32]);
        mode(0o644);
        assert_eq!(read(&file), None, "others could have read it");
    }
}
