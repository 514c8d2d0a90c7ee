//! What people approve for a fleet: the configuration of a repository, by its name and digest (`Offer::named_digest`).
//!
//! An approval is a message of a person in the stream of submissions, which nobody can remove. It counts if it says the
//! repository and the digest that are asked for, and if it is signed by somebody who is a person in the signed list of
//! members ([`crate::members`]). Neither the subject nor the order on the server proves anything: a member can copy a message
//! to any subject. So the newest by its own signed time decides, and each is later than all that were there before.

use archeflow_host::clock;
use serde::{Deserialize, Serialize};

use crate::bus::{Bus, BusError, Expect, Put};
use crate::join::{FleetRole, JoinFile};
use crate::keys::{SignedAs, is_signed_for};
use crate::members::{self, ListedMember};
use crate::names;

const FORMAT: u32 = 1;
const DAY: u64 = 86_400_000;
/// How long an approval counts. It must end before the server drops what revoked it, which is after 366 days: a copy of the
/// approval may have been kept for longer.
const VALID: u64 = 300 * DAY;
/// More about one digest would be a flood.
const MOST: usize = 1_000;

/// An approval that counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Approved {
    pub by: String,
    /// In milliseconds since 1970, by the clock of the person's machine.
    pub at: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Statement {
    v: u32,
    repository: String,
    digest: String,
    by: String,
    at: u64,
    revoked: bool,
}

/// Approves a configuration for all workers of the fleet, as the person of this join file.
pub fn approve(bus: &dyn Bus, join: &JoinFile, repository: &str, digest: &str) -> Result<Approved, BusError> {
    say(bus, join, repository, digest, false)?;
    find(bus, join, repository, digest)?.ok_or_else(|| {
        BusError::Wrong(format!(
            "the approval was published but does not count; is the clock of this machine right, and {} still a person \
             of this fleet?",
            join.name
        ))
    })
}

/// Takes the approval of anybody back. Returns the one that counted until now.
pub fn revoke(
    bus: &dyn Bus,
    join: &JoinFile,
    repository: &str,
    digest: &str,
) -> Result<Option<Approved>, BusError> {
    let before = find(bus, join, repository, digest)?;
    say(bus, join, repository, digest, true)?;
    Ok(before)
}

/// Whether somebody has approved exactly this content, and nobody revoked it since.
pub fn find(
    bus: &dyn Bus,
    join: &JoinFile,
    repository: &str,
    digest: &str,
) -> Result<Option<Approved>, BusError> {
    let (newest, now) = (newest(bus, join, repository, digest)?, clock::now());
    let counts = |said: &Statement| {
        !said.revoked && said.at < now.saturating_add(DAY) && now < said.at.saturating_add(VALID)
    };
    Ok(newest.filter(counts).map(|said| Approved { by: said.by, at: said.at }))
}

fn say(
    bus: &dyn Bus,
    join: &JoinFile,
    repository: &str,
    digest: &str,
    revoked: bool,
) -> Result<(), BusError> {
    if join.role != FleetRole::Person {
        return Err(BusError::Wrong(format!("only people approve; {} is a {}", join.name, join.role)));
    }
    // Later than what is there, also if clocks differ.
    let after = newest(bus, join, repository, digest)?.map_or(0, |said| said.at.saturating_add(1));
    let said = Statement {
        v: FORMAT,
        repository: repository.to_owned(),
        digest: digest.to_owned(),
        by: join.name.clone(),
        at: clock::now().max(after),
        revoked,
    };
    let failed = |why: String| BusError::Wrong(format!("an approval can't be signed: {why}"));
    let bytes = serde_json::to_vec(&said).map_err(|error| failed(error.to_string()))?;
    let signature = join.key.sign_for(SignedAs::Approval, &bytes);
    let signature = signature.ok_or_else(|| failed("the key has no seed".to_owned()))?;
    let subject = names::approval(&join.name, repository, digest);
    let headers = [(names::SIGNATURE, signature.as_str())];
    let put = Put { subject: &subject, expect: Expect::Anything, id: None, headers: &headers, bytes: &bytes };
    members::put_again(bus, put)
}

/// What was said last about this content. Of two at the same time, the revocation.
fn newest(
    bus: &dyn Bus,
    join: &JoinFile,
    repository: &str,
    digest: &str,
) -> Result<Option<Statement>, BusError> {
    let members = members::read(bus, join)?;
    let subject = names::approval("*", repository, digest);
    let (mut newest, mut seq) = (None::<Statement>, 0);
    for _ in 0..MOST {
        let Some(kept) = bus.next_from(names::SUBMITTED, &subject, seq)? else { return Ok(newest) };
        seq = kept.seq + 1;
        let signature = kept.header(names::SIGNATURE).unwrap_or_default();
        let Some(said) = verified(&members, &kept.bytes, signature)? else { continue };
        let is_asked_for = said.repository == repository && said.digest == digest;
        let is_later = |known: &Statement| (known.at, known.revoked) < (said.at, said.revoked);
        if is_asked_for && newest.as_ref().is_none_or(is_later) {
            newest = Some(said);
        }
    }
    Err(BusError::Wrong(format!(
        "more than {MOST} messages approve or revoke this configuration of {repository}"
    )))
}

/// What a person of the fleet said; nothing if nobody of them signed this.
fn verified(members: &[ListedMember], bytes: &[u8], signature: &str) -> Result<Option<Statement>, BusError> {
    let Ok(said) = serde_json::from_slice::<Statement>(bytes) else { return Ok(None) };
    let by = members.iter().find(|member| member.name == said.by && member.role == FleetRole::Person);
    if !by.is_some_and(|by| is_signed_for(&by.public, SignedAs::Approval, bytes, signature)) {
        return Ok(None);
    }
    if said.v != FORMAT {
        // It may revoke.
        return Err(BusError::Wrong(format!(
            "{} approved or revoked this with format {}; update archeflow on this machine",
            said.by, said.v
        )));
    }
    Ok(Some(said))
}
