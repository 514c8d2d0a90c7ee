//! The key that was sent, kept out of whatever is printed: a provider or a proxy may echo it in an error.

use archeflow_core::rules::signs::without_credentials;

use crate::client_output::own::OwnRecord;

/// In place of the key.
const MASK: &str = "***";

/// A piece of a key with at least so many characters is one; errors are cut off somewhere.
const SHORTEST_PIECE: usize = 8;

/// The same without the key. What is said about a failure loses everything else that looks like a credential, too.
pub(super) fn unkeyed(record: &OwnRecord, key: &str) -> OwnRecord {
    let plain = |text: &str| without_key(text, key);
    let failure = |said: &str| without_credentials(&plain(said));
    match record {
        OwnRecord::Note { text } => OwnRecord::Note { text: plain(text) },
        OwnRecord::Answer { text } => OwnRecord::Answer { text: plain(text) },
        OwnRecord::Player { model, version } => {
            OwnRecord::Player { model: plain(model), version: plain(version) }
        }
        OwnRecord::Hitch { kind, said, reopens } => {
            OwnRecord::Hitch { kind: *kind, said: failure(said), reopens: *reopens }
        }
        OwnRecord::Fault { kind, said, reopens } => {
            OwnRecord::Fault { kind: *kind, said: failure(said), reopens: *reopens }
        }
        OwnRecord::Session { .. } | OwnRecord::Worked | OwnRecord::Used { .. } | OwnRecord::Denied { .. } => {
            record.clone()
        }
    }
}

fn without_key(text: &str, key: &str) -> String {
    let key = key.trim();
    if key.len() < SHORTEST_PIECE {
        return text.to_owned();
    }
    let mut text = text.replace(key, MASK);
    // A beginning of it that is followed by something else: the rest was cut off, or left out by whoever echoed it.
    let pieces = (SHORTEST_PIECE..key.len()).rev().filter_map(|length| key.get(..length));
    for piece in pieces {
        if text.contains(piece) {
            text = text.replace(piece, MASK);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use archeflow_core::event::Failure;

    #[test]
    fn r_11_a_key_that_is_echoed_is_masked_whole_or_cut_off() {
        let key = "sk-proj-Ab3Ab3Ab3Ab3Ab3Ab3Ab3Ab3Ab3Ab3Ab3";
        for said in [
            format!("invalid key {key}"),
            format!("invalid key '{key}', {key}{key}"),
            format!("invalid key {}", &key[..30]),
            format!("invalid key {}…{}", &key[..9], &key[37..]),
            format!("header authorization: Bearer {key}"),
            format!("{{\"x-api-key\":\"{key}\"}}"),
        ] {
            let fault = OwnRecord::Fault { kind: Failure::Auth, said: said.clone(), reopens: None };
            let printed = unkeyed(&fault, key).print();
            assert!(!printed.contains(&key[..8]) && printed.contains(MASK), "{said}: {printed}");
        }
        for said in ["no such model", "a key is missing", "sk-"] {
            let note = OwnRecord::Note { text: said.to_owned() };
            assert_eq!(unkeyed(&note, key), note);
            assert_eq!(unkeyed(&note, ""), note);
        }
    }
}
