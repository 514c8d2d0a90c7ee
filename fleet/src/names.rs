//! Streams, subjects and headers. Subjects begin with the version of their format: another format would be `af2` beside it.

use std::fmt::Write;

pub const ORDERS: &str = "AF_ORDERS";
pub const REPORTS: &str = "AF_REPORTS";
pub const JOURNALS: &str = "AF_JOURNAL";
pub const FILES: &str = "AF_FILES";
/// What people submit.
pub const SUBMITTED: &str = "AF_SUBMIT";

/// Which session wrote a piece of a journal.
pub const SESSION: &str = "Af-Session";
/// The number of the first line of a piece, and how many it holds.
pub const FIRST: &str = "Af-First";
pub const LINES: &str = "Af-Lines";

/// The signature of what a person or the fleet itself says; see `keys.rs`.
pub const SIGNATURE: &str = "Af-Signature";

/// The signed list of members.
pub const MEMBERS: &str = "$KV.AF_TRUST.members";
/// The streams of shared state: by key, with a few revisions of each.
pub const TRUST: &str = "KV_AF_TRUST";
pub const LEDGERS: &str = "KV_AF_LEDGER";
pub const ACCOUNTS: &str = "KV_AF_ACCOUNT";

/// Orders for workers that satisfy a class.
pub fn orders(class: &str) -> String {
    format!("af1.o.{class}")
}

/// What workers report to a sprint.
pub fn reports(sprint: &str) -> String {
    format!("af1.r.{}", token(sprint))
}

pub fn run_journal(run: &str) -> String {
    format!("af1.j.run.{}", token(run))
}

pub fn sprint_journal(sprint: &str) -> String {
    format!("af1.j.sprint.{}", token(sprint))
}

/// One part of a file, named by the file's content.
pub fn file_part(hash: &str, n: usize) -> String {
    format!("af1.f.{hash}.{n}")
}

/// A file that a line of a run's journal names.
pub fn named_file(run: &str, line: u64, name: &str) -> String {
    format!("af1.f.n.{}.{line}.{}", token(run), token(name))
}

/// Everything that the lines of a run name.
pub fn named_files(run: &str) -> String {
    format!("af1.f.n.{}.>", token(run))
}

pub fn heartbeat(worker: &str) -> String {
    format!("af1.hb.{}", token(worker))
}

/// What one worker is asked to do.
pub fn control(worker: &str) -> String {
    format!("af1.c.{}", token(worker))
}

/// The approval of a repository's configuration by a person; `*` for anybody.
pub fn approval(who: &str, repository: &str, digest: &str) -> String {
    let who = if who == "*" { who.to_owned() } else { token(who) };
    format!("af1.a.{who}.{}.{}", token(repository), token(digest))
}

/// A budget that all who spend from it share.
pub fn ledger(name: &str) -> String {
    format!("$KV.AF_LEDGER.{}", token(name))
}

/// What a run has spent from a ledger that no longer lists it.
pub fn ledger_run(name: &str, run: &str) -> String {
    format!("{}.{}", ledger(name), token(run))
}

/// An account of a provider.
pub fn account(account: &str) -> String {
    format!("$KV.AF_ACCOUNT.{}", token(account))
}

/// A name as one part of a subject. Dots part a subject, and names of runs have them.
pub fn token(name: &str) -> String {
    let mut token = String::with_capacity(name.len());
    for c in name.chars() {
        match c {
            'a'..='z' | 'A'..='Z' | '0'..='9' | '-' => token.push(c),
            '.' => token.push('_'),
            other => {
                let mut bytes = [0; 4];
                for byte in other.encode_utf8(&mut bytes).bytes() {
                    let _ = write!(token, "={byte:02x}");
                }
            }
        }
    }
    token
}

/// The name that a part of a subject stands for; nothing if [`token`] makes no such part.
pub fn name_of(part: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(part.len());
    let mut rest = part.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'_' => b'.',
            b'=' => {
                let digits = [rest.next()?, rest.next()?];
                u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()?
            }
            other => other,
        });
    }
    String::from_utf8(bytes).ok().filter(|name| token(name) == part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fl_30_names_become_one_part_of_a_subject_and_stay_apart() {
        for (name, expected) in [
            ("2026-11-18-sprint.shop-tax.1", "2026-11-18-sprint_shop-tax_1"),
            ("a_b", "a=5fb"),
            ("a b*>.", "a=20b=2a=3e_"),
            ("ä", "=c3=a4"),
            ("=", "=3d"),
        ] {
            assert_eq!(token(name), expected);
            assert_eq!(name_of(expected).as_deref(), Some(name));
        }
        for no_part in ["a.b", "=", "=c", "=zz", "=41", "=ff", "a b"] {
            assert_eq!(name_of(no_part), None, "{no_part}");
        }
    }
}
