//! Git directories of our own making: laid out by hand, without templates, with a configuration that names no
//! program. Making one costs a few small files and no process.

use std::io;
use std::path::Path;

use super::{change, files};
use crate::platform::files as os;

/// What a git directory of ours looks like.
pub(super) struct Layout<'a> {
    pub(super) bare: bool,
    /// `sha1` or `sha256`.
    pub(super) format: &'a str,
    /// Object stores to borrow from.
    pub(super) borrows: &'a [&'a Path],
    /// The content of `HEAD`, without the newline.
    pub(super) head: &'a str,
    /// More lines of configuration.
    pub(super) config: &'a str,
    /// The content of `info/exclude`.
    pub(super) exclude: &'a [u8],
    /// The user's list of shallow commits, if there is one.
    pub(super) shallow: Option<&'a [u8]>,
}

/// No conversion of any kind between objects and files: a working copy holds exactly the committed bytes.
const ATTRIBUTES: &[u8] = b"* -text -filter -ident !eol !working-tree-encoding\n";

/// Makes or refreshes a git directory that other processes may be using.
pub(super) fn lay_out(dir: &Path, layout: &Layout<'_>) -> io::Result<()> {
    write_all(dir, layout, files::write)?;
    if layout.shallow.is_none() {
        files::remove(&dir.join("shallow"))?;
    }
    Ok(())
}

/// Makes a git directory where none is, for nobody else: a file that a crash left half-written is not used again.
pub(super) fn lay_out_new(dir: &Path, layout: &Layout<'_>) -> io::Result<()> {
    write_all(dir, layout, |file, bytes| files::write_new(file, bytes, 0o600))
}

fn write_all(
    dir: &Path,
    layout: &Layout<'_>,
    write: impl Fn(&Path, &[u8]) -> io::Result<()>,
) -> io::Result<()> {
    for sub in ["objects/info", "objects/pack", "refs/heads", "info"] {
        files::make_private_dir(&dir.join(sub))?;
    }
    write(&dir.join("config"), config(layout).as_bytes())?;
    write(&dir.join("info/attributes"), ATTRIBUTES)?;
    write(&dir.join("info/exclude"), layout.exclude)?;
    if !layout.borrows.is_empty() {
        let lines: String = layout.borrows.iter().map(|store| borrowed(store) + "\n").collect();
        write(&dir.join("objects/info/alternates"), lines.as_bytes())?;
    }
    if let Some(commits) = layout.shallow {
        write(&dir.join("shallow"), commits)?;
    }
    write(&dir.join("HEAD"), format!("{}\n", layout.head).as_bytes())
}

fn config(layout: &Layout<'_>) -> String {
    let version = u8::from(layout.format != "sha1");
    let mut text = format!(
        "[core]\n\trepositoryformatversion = {version}\n\tbare = {}\n\tfilemode = true\n\tsymlinks = true\n\
         \tignorecase = false\n\tautocrlf = false\n\tsafecrlf = false\n\tlogallrefupdates = true\n",
        layout.bare
    );
    if layout.format != "sha1" {
        text.push_str(&format!("[extensions]\n\tobjectformat = {}\n", layout.format));
    }
    text.push_str(layout.config);
    text
}

/// An object store as git wants it named in a list: quoted, for the name may hold any byte.
pub(super) fn borrowed(store: &Path) -> String {
    let quoted = change::quote_path(os::bytes(store));
    if quoted.starts_with('"') { quoted } else { format!("\"{quoted}\"") }
}
