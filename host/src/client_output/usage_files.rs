//! Files in which a client notes what it uses while it works, for the clients that print it only at their end.
//!
//! They are read as they grow. A file is known by its number on the disk, not by its name: some clients rename theirs
//! with every request.
//!
//! The agent can write there too: links are not followed, only regular files are opened, and one look reads a bounded
//! part of them (S-06).

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::LINE_AT_MOST;
use crate::platform::files::{identity, open_beneath};

/// The most that one look reads of one file; the next look reads on from there.
const READ_AT_ONCE: u64 = 4 * LINE_AT_MOST;

/// The files of one attempt, and how much of each was read.
#[derive(Debug)]
pub(crate) struct UsageFiles {
    root: PathBuf,
    patterns: Vec<String>,
    read: BTreeMap<(u64, u64), u64>,
}

impl UsageFiles {
    /// `patterns` are paths below `root` whose names may contain one `*`. What is in the files now is of earlier
    /// attempts.
    pub(crate) fn new(root: &Path, patterns: impl IntoIterator<Item = impl Into<String>>) -> UsageFiles {
        let patterns = patterns.into_iter().map(Into::into).collect();
        let mut files = UsageFiles { root: root.to_owned(), patterns, read: BTreeMap::new() };
        for path in files.found() {
            if let Ok(meta) = std::fs::symlink_metadata(&path) {
                files.read.insert(identity(&meta), meta.len());
            }
        }
        files
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.patterns.is_empty()
    }

    /// Hands on every line that was completed since the last look.
    pub(crate) fn look(&mut self, each: &mut dyn FnMut(&Value)) {
        for path in self.found() {
            // A file that can't be read now is read with the next look.
            let _ = self.read_on(&path, each);
        }
    }

    fn read_on(&mut self, path: &Path, each: &mut dyn FnMut(&Value)) -> std::io::Result<()> {
        let below = path.strip_prefix(&self.root).unwrap_or(path);
        let file = open_beneath(&self.root, below)?;
        let meta = file.metadata()?;
        let read = self.read.entry(identity(&meta)).or_default();
        if meta.len() < *read {
            // Another file with the number of one that is gone.
            *read = 0;
        }
        if meta.len() == *read {
            return Ok(());
        }
        let mut lines = BufReader::new(file);
        lines.seek(SeekFrom::Start(*read))?;
        let mut line = Vec::new();
        let most = *read + READ_AT_ONCE;
        while *read < most {
            line.clear();
            let length = std::io::Read::take(&mut lines, LINE_AT_MOST).read_until(b'\n', &mut line)?;
            if line.last() != Some(&b'\n') && (length as u64) < LINE_AT_MOST {
                return Ok(());
            }
            *read += length as u64;
            if let Ok(value) = serde_json::from_slice(&line) {
                each(&value);
            }
        }
        Ok(())
    }

    fn found(&self) -> Vec<PathBuf> {
        let mut found = Vec::new();
        for pattern in &self.patterns {
            let mut places = vec![self.root.clone()];
            for name in pattern.split('/') {
                places = places.iter().flat_map(|place| below(place, name)).collect();
            }
            found.append(&mut places);
        }
        found
    }
}

fn below(place: &Path, name: &str) -> Vec<PathBuf> {
    let Some((before, after)) = name.split_once('*') else { return vec![place.join(name)] };
    let is_folder = std::fs::symlink_metadata(place).is_ok_and(|meta| meta.is_dir());
    let Some(Ok(entries)) = is_folder.then(|| std::fs::read_dir(place)) else { return Vec::new() };
    let fits = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.len() >= before.len() + after.len() && name.starts_with(before) && name.ends_with(after)
    };
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).filter(fits).collect();
    paths.sort();
    paths
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::Write;

    use super::*;

    type Result<T = ()> = std::result::Result<T, Box<dyn std::error::Error>>;

    fn seen(files: &mut UsageFiles) -> Vec<String> {
        let mut seen = Vec::new();
        files.look(&mut |value| seen.push(value.to_string()));
        seen
    }

    #[test]
    fn c_03_lines_are_read_once_when_they_are_complete() -> Result {
        let folder = tempfile::tempdir()?;
        let day = folder.path().join("sessions/2026");
        std::fs::create_dir_all(&day)?;
        std::fs::write(day.join("log.old.jsonl"), "1\n")?;
        let mut files = UsageFiles::new(folder.path(), ["sessions/*/log.*.jsonl"]);
        assert_eq!(seen(&mut files), Vec::<String>::new(), "of an earlier attempt");
        let mut log = File::create(day.join("log.a.jsonl"))?;
        std::fs::write(day.join("other.jsonl"), "9\n")?;
        write!(log, "2\n{{\"n\"")?;
        assert_eq!(seen(&mut files), ["2"]);
        std::fs::rename(day.join("log.a.jsonl"), day.join("log.b.jsonl"))?;
        writeln!(log, ":3}}\nno json\n4")?;
        assert_eq!(seen(&mut files), ["{\"n\":3}", "4"], "also under another name");
        assert_eq!(seen(&mut files), Vec::<String>::new());
        Ok(())
    }

    #[test]
    fn s_06_what_an_agent_puts_there_is_neither_waited_for_nor_followed() -> Result {
        let folder = tempfile::tempdir()?;
        let home = folder.path().join("home");
        let logs = home.join("logs");
        std::fs::create_dir_all(&logs)?;
        std::fs::create_dir(folder.path().join("outside"))?;
        std::fs::write(folder.path().join("outside/log.x.jsonl"), "1\n")?;
        let mut files = UsageFiles::new(&home, ["logs/log.*.jsonl", "linked/log.*.jsonl"]);
        let made = std::process::Command::new("mkfifo").arg(logs.join("log.fifo.jsonl")).status()?;
        assert!(made.success());
        crate::platform::files::symlink("/dev/zero", logs.join("log.zero.jsonl"))?;
        crate::platform::files::symlink(
            folder.path().join("outside/log.x.jsonl"),
            logs.join("log.link.jsonl"),
        )?;
        crate::platform::files::symlink(folder.path().join("outside"), home.join("linked"))?;
        std::fs::write(logs.join("log.real.jsonl"), "2\n")?;
        assert_eq!(seen(&mut files), ["2"]);
        let huge = File::create(logs.join("log.huge.jsonl"))?;
        huge.set_len(1 << 40)?;
        assert_eq!(seen(&mut files), Vec::<String>::new(), "one look is bounded");
        Ok(())
    }
}
