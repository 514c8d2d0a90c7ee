//! The live output of agents of a run that another process drives: the last thing each has done, read from the folder of its
//! attempt. The driving process gets the same directly, as live output. Nothing is ever written.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};

use archeflow_core::event::AgentStart;
use archeflow_core::model::Seq;
use archeflow_core::run::Run;

use crate::backends::AgentBackend;
use crate::backends::cli::Client;
use crate::client_output::ClientOutput;
use crate::executors::{ANSWER, STREAM};
use crate::platform::files::{self as os, Mode, OFlags};

/// The most that is read of the output since the last look: the end of it.
const AT_MOST: u64 = 256 * 1024;

pub struct Tail {
    attempts: PathBuf,
    known: BTreeMap<Seq, TailedAgent>,
}

struct TailedAgent {
    client: Option<&'static Client>,
    file: PathBuf,
    read: u64,
    heard: ClientOutput,
}

impl Tail {
    /// `artifacts` is the folder of the run.
    pub fn new(artifacts: &Path) -> Tail {
        Tail { attempts: artifacts.join("attempts"), known: BTreeMap::new() }
    }

    /// What running agents have done since the last call, the latest of each.
    pub fn look(&mut self, run: &Run) -> Vec<(Seq, String)> {
        let out: BTreeMap<Seq, &AgentStart> = run.open_agents().collect();
        self.known.retain(|seq, _| out.contains_key(seq));
        let mut seen = Vec::new();
        for (seq, start) in out {
            let attempts = &self.attempts;
            let known = self.known.entry(seq).or_insert_with(|| TailedAgent::new(attempts, seq, start));
            seen.extend(known.latest().map(|text| (seq, text)));
        }
        seen
    }
}

impl TailedAgent {
    fn new(attempts: &Path, seq: Seq, start: &AgentStart) -> TailedAgent {
        let client = match AgentBackend::parse(&start.agent, Path::new("/")) {
            Ok(AgentBackend::Cli(client, _)) => Some(client),
            Ok(AgentBackend::Cmd(_) | AgentBackend::Script(_) | AgentBackend::Sim(_)) | Err(_) => None,
        };
        let name = if client.is_some() { STREAM } else { ANSWER };
        let file = attempts.join(format!("{seq}-{}", start.archetype)).join(name);
        TailedAgent { client, file, read: 0, heard: ClientOutput::default() }
    }

    fn latest(&mut self) -> Option<String> {
        let fresh = self.fresh()?;
        let text = String::from_utf8_lossy(&fresh);
        let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
        match self.client {
            Some(client) => {
                let notes = lines.filter_map(|line| client.hear(line, &mut self.heard));
                notes.last().map(|note| without_copy(&note))
            }
            None => lines.next_back().map(str::to_owned),
        }
    }

    /// Whole lines that were added. A client's line that is not finished yet can't be parsed.
    fn fresh(&mut self) -> Option<Vec<u8>> {
        // The file, whatever its kind, must not keep a viewer waiting.
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = File::from(os::open(&self.file, flags, Mode::empty()).ok()?);
        let meta = file.metadata().ok().filter(std::fs::Metadata::is_file)?;
        if meta.len() <= self.read {
            return None;
        }
        let from = self.read.max(meta.len().saturating_sub(AT_MOST));
        let mut bytes = vec![0; usize::try_from(meta.len() - from).ok()?];
        let got = os::read_at(&file, &mut bytes, from).ok()?;
        bytes.truncate(got);
        let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        bytes.truncate(whole);
        self.read = from + whole as u64;
        Some(bytes)
    }
}

/// Which working copy an agent has is no part of the journal; a path in one is shown relative to it.
fn without_copy(note: &str) -> String {
    let place = || {
        let inside = note.find("/workspaces/")?;
        let start = note.get(..inside)?.rfind(' ').map_or(0, |blank| blank + 1);
        let end = inside + note.get(inside..)?.find(TREE)? + TREE.len();
        Some(format!("{}{}", note.get(..start)?, note.get(end..)?))
    };
    place().unwrap_or_else(|| note.to_owned())
}

const TREE: &str = "/tree/";

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

    use archeflow_core::model::{Purpose, Role, Tier};

    use super::*;

    fn start(archetype: &str, agent: &str) -> AgentStart {
        AgentStart {
            archetype: archetype.to_owned(),
            role: Role::Maker,
            model: Tier::Sonnet,
            prompt_summary: String::new(),
            purpose: Purpose::Work,
            attempt: 1,
            cycle: 1,
            agent: agent.to_owned(),
            account: String::new(),
            at: archeflow_core::model::Oid::default(),
            silence_ms: 0,
            total_ms: 0,
            wait_ms: 0,
            note: String::new(),
            earlier: None,
            reserved_usd: archeflow_core::model::Money::ZERO,
            resumes: None,
        }
    }

    #[test]
    fn af_122_the_latest_whole_line_of_every_running_agent() {
        let temp = tempfile::tempdir().unwrap();
        let mut run = Run::default();
        run.open.insert(7, start("maker", "cmd:x").into());
        run.open.insert(8, start("guardian", "claude").into());
        let mut glance = Tail::new(temp.path());
        assert_eq!(glance.look(&run), []);

        let [maker, guardian] = ["7-maker", "8-guardian"].map(|name| temp.path().join("attempts").join(name));
        std::fs::create_dir_all(&maker).unwrap();
        std::fs::create_dir_all(&guardian).unwrap();
        std::fs::write(maker.join(ANSWER), "one\ntwo\nthr").unwrap();
        let path = "/state/archeflow/workspaces/ed95/reader-0/tree/src/app.rs";
        let line = format!(
            "{{\"type\":\"assistant\",\"message\":{{\"content\":[{{\"type\":\"tool_use\",\"name\":\"Read\",\"input\":{{\"file_path\":\"{path}\"}}}}]}}}}\n"
        );
        std::fs::write(guardian.join(STREAM), &line).unwrap();
        assert_eq!(glance.look(&run), [(7, "two".to_owned()), (8, "reads src/app.rs".to_owned())]);
        assert_eq!(glance.look(&run), [], "nothing is listed twice");

        std::fs::write(maker.join(ANSWER), "one\ntwo\nthree\n").unwrap();
        assert_eq!(glance.look(&run), [(7, "three".to_owned())]);
        run.open.remove(&7);
        std::fs::write(maker.join(ANSWER), "one\ntwo\nthree\nfour\n").unwrap();
        assert_eq!(glance.look(&run), []);
    }
}
