//! The key that was sent, kept out of whatever is printed: a provider or a proxy may echo it in an error.

use archeflow_core::rules::signs::without_credentials;

use crate::client_output::own::OwnRecord;
use crate::secrets::Secrets;

/// The same without the key. What is said about a failure loses everything else that looks like a credential, too.
pub(super) fn unkeyed(record: &OwnRecord, key: &str) -> OwnRecord {
    let secrets = Secrets::of(key);
    let plain = |text: &str| secrets.mask(text);
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
            assert!(!printed.contains(&key[..8]) && printed.contains("***"), "{said}: {printed}");
        }
        for said in ["no such model", "a key is missing", "sk-"] {
            let note = OwnRecord::Note { text: said.to_owned() };
            assert_eq!(unkeyed(&note, key), note);
            assert_eq!(unkeyed(&note, ""), note);
        }
    }
}
