//! Files that lines of journals name, kept on the server in parts that are named by the file's content. A part that is there
//! already is as good as put.
//!
//! Which file a line names is a small message of its own. A session that has lost its run may still put one for a line of
//! which another session's counts, so a reader chooses by the digest in the journal.

use archeflow_core::model::Seq;
use archeflow_host::replica::parts::NamedArtifact;
use serde::{Deserialize, Serialize};

use crate::bus::{Bus, BusError, Expect, Put, PutEnd};
use crate::message::FORMAT;
use crate::names;

const PART: usize = 512 * 1024;
/// In place of a line, for what an order brings along.
const ORDER: Seq = 0;
/// In bytes, of one file.
const LARGEST: u64 = 512 << 20;

/// A file that a line names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FleetFile {
    pub line: Seq,
    pub name: String,
    hash: String,
    bytes: u64,
    parts: usize,
}

impl FleetFile {
    /// Whether this is the file with a digest that a journal names.
    pub fn is(&self, digest: &str) -> bool {
        !digest.is_empty() && self.hash.starts_with(digest)
    }

    /// Whether these bytes are its content.
    pub fn has(&self, bytes: &[u8]) -> bool {
        blake3::hash(bytes).to_hex().as_str() == self.hash
    }
}

#[derive(Serialize, Deserialize)]
struct Written {
    v: u32,
    name: String,
    hash: String,
    bytes: u64,
    parts: usize,
}

/// Puts a file that a line of a run names. It can be repeated.
pub fn put(bus: &dyn Bus, run: &str, line: Seq, name: &str, bytes: &[u8]) -> Result<(), BusError> {
    let hash = blake3::hash(bytes).to_hex().to_string();
    let mut parts = 0;
    for part in bytes.chunks(PART) {
        let subject = names::file_part(&hash, parts);
        let put = Put { subject: &subject, expect: Expect::Last(0), id: None, headers: &[], bytes: part };
        match bus.put(put)? {
            PutEnd::Kept(_) | PutEnd::Refused => parts += 1,
        }
    }
    let id = format!("{run}:{line}:{name}:{hash}");
    let written = Written { v: FORMAT, name: name.to_owned(), hash, bytes: bytes.len() as u64, parts };
    let text = serde_json::to_vec(&written).map_err(|error| BusError::Wrong(error.to_string()))?;
    let subject = names::named_file(run, line, name);
    let put = Put { subject: &subject, expect: Expect::Anything, id: Some(&id), headers: &[], bytes: &text };
    bus.put(put).map(drop)
}

/// All that lines of a run name, in the order in which it was put.
pub fn list(bus: &dyn Bus, run: &str) -> Result<Vec<FleetFile>, BusError> {
    let (subject, mut next, mut found) = (names::named_files(run), 1, Vec::new());
    while let Some(kept) = bus.next_from(names::FILES, &subject, next)? {
        next = kept.seq + 1;
        let line = kept.subject.rsplit('.').nth(1).and_then(|line| line.parse().ok());
        let written = serde_json::from_slice::<Written>(&kept.bytes).ok().filter(|file| file.v <= FORMAT);
        found.extend(written.zip(line).map(|(Written { name, hash, bytes, parts, .. }, line)| FleetFile {
            line,
            name,
            hash,
            bytes,
            parts,
        }));
    }
    Ok(found)
}

/// The file that a journal means. A session that had lost its run may have put another one for the same line.
pub fn find<'a>(all: &'a [FleetFile], named: &NamedArtifact) -> Option<&'a FleetFile> {
    let is_it = |file: &&FleetFile| {
        let digest = named.digest.as_deref();
        (file.line, &file.name) == (named.line, &named.name) && digest.is_none_or(|digest| file.is(digest))
    };
    all.iter().rev().find(is_it)
}

/// What an order brings along: it is kept with the run's files, before its first line. Returns the hash of its content.
pub fn put_for_order(bus: &dyn Bus, run: &str, name: &str, bytes: &[u8]) -> Result<String, BusError> {
    put(bus, run, ORDER, name, bytes)?;
    Ok(blake3::hash(bytes).to_hex().to_string())
}

/// What an order brought along; nothing if the server does not have it.
pub fn get_for_order(bus: &dyn Bus, run: &str, hash: &str) -> Result<Option<Vec<u8>>, BusError> {
    let all = list(bus, run)?;
    let file = all.iter().find(|file| file.line == ORDER && file.hash == hash);
    file.map_or(Ok(None), |file| get(bus, file))
}

/// The content of a file; nothing if the server has lost a part of it.
pub fn get(bus: &dyn Bus, file: &FleetFile) -> Result<Option<Vec<u8>>, BusError> {
    let mut content = Vec::new();
    if file.bytes > LARGEST {
        return Ok(None);
    }
    for n in 0..file.parts {
        let Some(part) = bus.last(&names::file_part(&file.hash, n))? else { return Ok(None) };
        content.extend_from_slice(&part.bytes);
        if content.len() as u64 > file.bytes {
            return Ok(None);
        }
    }
    Ok(file.has(&content).then_some(content))
}
