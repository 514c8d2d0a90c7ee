//! A glance at agents of a run that another process drives: the last thing each has done, read from the folder of its
//! attempt. The process that drives hears the same directly, as murmurs. Nothing is ever written.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use archeflow_core::event::AgentStart;
use archeflow_core::run::Run;
use archeflow_core::words::Seq;

use crate::backends::Agent;
use crate::backends::cli::{Client, Heard};
use crate::hands::{ANSWER, STREAM};

/// Of what was printed since the last glance, at most this much is read: the end of it.
const AT_MOST: u64 = 256 * 1024;

pub struct Glance {
    attempts: PathBuf,
    known: BTreeMap<Seq, Known>,
}

struct Known {
    client: Option<&'static Client>,
    file: PathBuf,
    read: u64,
    heard: Heard,
}

impl Glance {
    /// `artifacts` is the folder of the run.
    pub fn new(artifacts: &Path) -> Glance {
        Glance { attempts: artifacts.join("attempts"), known: BTreeMap::new() }
    }

    /// What agents that are out have done since the last time, the latest of each.
    pub fn look(&mut self, run: &Run) -> Vec<(Seq, String)> {
        let out: BTreeMap<Seq, &AgentStart> = run.open_agents().collect();
        self.known.retain(|seq, _| out.contains_key(seq));
        let mut seen = Vec::new();
        for (seq, start) in out {
            let attempts = &self.attempts;
            let known = self.known.entry(seq).or_insert_with(|| Known::new(attempts, seq, start));
            seen.extend(known.latest().map(|text| (seq, text)));
        }
        seen
    }
}

impl Known {
    fn new(attempts: &Path, seq: Seq, start: &AgentStart) -> Known {
        let client = match Agent::parse(&start.agent, Path::new("/")) {
            Ok(Agent::Cli(client, _)) => Some(client),
            Ok(Agent::Cmd(_) | Agent::Script(_)) | Err(_) => None,
        };
        let name = if client.is_some() { STREAM } else { ANSWER };
        let file = attempts.join(format!("{seq}-{}", start.archetype)).join(name);
        Known { client, file, read: 0, heard: Heard::default() }
    }

    fn latest(&mut self) -> Option<String> {
        let fresh = self.fresh()?;
        let text = String::from_utf8_lossy(&fresh);
        let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
        match self.client {
            Some(client) => lines.filter_map(|line| client.hear(line, &mut self.heard)).last(),
            None => lines.next_back().map(str::to_owned),
        }
    }

    /// Whole lines that were added. A client's line that is not finished yet would say nothing.
    fn fresh(&mut self) -> Option<Vec<u8>> {
        let file = File::open(&self.file).ok()?;
        let meta = file.metadata().ok().filter(std::fs::Metadata::is_file)?;
        if meta.len() <= self.read {
            return None;
        }
        let from = self.read.max(meta.len().saturating_sub(AT_MOST));
        let mut bytes = vec![0; usize::try_from(meta.len() - from).ok()?];
        let got = file.read_at(&mut bytes, from).ok()?;
        bytes.truncate(got);
        let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        bytes.truncate(whole);
        self.read = from + whole as u64;
        Some(bytes)
    }
}
