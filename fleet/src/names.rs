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
        }
    }
}
