//! What an agent uses while it works, from the transcript that it or the client inside it keeps: the protocol reports it
//! only when a turn is over, and often only of the last request.

use std::path::PathBuf;

use super::talk::Talk;
use crate::backends::cli::{self, Client};
use crate::client_output::ClientOutput;
use crate::client_output::own::OwnRecord;
use crate::client_output::usage_files::UsageFiles;

/// Where the transcripts of one client are kept.
#[derive(Debug, Clone)]
pub struct TranscriptFolder {
    /// The client, as its spec calls it.
    pub client: &'static str,
    /// The folder it uses as its home.
    pub home: PathBuf,
}

/// The transcripts of one session, as they grow.
pub(super) struct Transcripts {
    files: Vec<(&'static Client, UsageFiles)>,
    heard: ClientOutput,
}

impl Transcripts {
    /// What is written before this belongs to earlier attempts.
    pub(super) fn open(folders: &[TranscriptFolder], session: &str) -> Transcripts {
        let plain = session.chars().all(|c| c.is_ascii_alphanumeric() || "-_".contains(c));
        let known = folders.iter().filter(|_| plain).filter_map(|folder| {
            let client = cli::find(folder.client)?;
            let name = pattern(folder.client, session)?;
            Some((client, UsageFiles::new(&folder.home, [name])))
        });
        Transcripts { files: known.collect(), heard: ClientOutput::default() }
    }

    /// What there is to report since the last look.
    pub(super) fn look(&mut self, talk: &Talk) -> Vec<OwnRecord> {
        let (before, model) = (self.heard.seen, self.heard.model.clone());
        let heard = &mut self.heard;
        for (client, files) in &mut self.files {
            files.look(&mut |line| client.count(line, heard));
        }
        let mut records = Vec::new();
        if self.heard.model != model {
            let (model, version) = (self.heard.model.clone(), talk.version().to_owned());
            records.push(OwnRecord::Player { model, version });
        }
        if let Some(tokens) = self.heard.seen.filter(|seen| before != Some(*seen)) {
            records.push(OwnRecord::Used { tokens, cost_usd: None });
        }
        records
    }
}

/// The transcript of a session, below the home of its client. Gemini names only the beginning of the session.
fn pattern(client: &str, session: &str) -> Option<String> {
    match client {
        "claude" => Some(format!("projects/*/{session}.jsonl")),
        "codex" => Some(format!("sessions/*/*/*/*{session}.jsonl")),
        "gemini" => Some(format!(".gemini/tmp/*/chats/*{}.jsonl", session.get(..8)?)),
        _ => None,
    }
}
