//! Keys of members: Ed25519 pairs as NATS writes them (nkeys). The server has the public halves only; a seed is in a join file
//! and nowhere else.

use std::fmt;
use std::io;
use std::sync::Arc;

use archeflow_host::platform::machine;
use nkeys::{KeyPair, KeyPairType};

/// The key of a member. Neither its seed nor anything that gives it away is ever printed.
#[derive(Clone)]
pub struct FleetKey(Arc<KeyPair>);

impl FleetKey {
    pub fn generate() -> io::Result<FleetKey> {
        let mut random = [0; 32];
        machine::random(&mut random)?;
        let pair = KeyPair::new_from_raw(KeyPairType::User, random);
        pair.map(|pair| FleetKey(Arc::new(pair))).map_err(|error| io::Error::other(error.to_string()))
    }

    /// Nothing if the text is no seed of a user.
    pub fn from_seed(seed: &str) -> Option<FleetKey> {
        let pair = seed.starts_with("SU").then(|| KeyPair::from_seed(seed).ok())??;
        Some(FleetKey(Arc::new(pair)))
    }

    /// For a join file.
    pub fn seed(&self) -> Option<String> {
        self.0.seed().ok()
    }

    pub fn public(&self) -> String {
        self.0.public_key()
    }

    pub fn sign(&self, bytes: &[u8]) -> Option<Vec<u8>> {
        self.0.sign(bytes).ok()
    }
}

impl fmt::Debug for FleetKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.public())
    }
}

/// Whether the holder of this public key signed these bytes.
pub fn is_signed_by(public: &str, bytes: &[u8], signature: &[u8]) -> bool {
    KeyPair::from_public_key(public).is_ok_and(|key| key.verify(bytes, signature).is_ok())
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

    use super::*;

    #[test]
    fn fl_45_keys_are_kept_as_seeds_and_sign() {
        let key = FleetKey::generate().unwrap();
        let seed = key.seed().unwrap();
        assert!(seed.starts_with("SU") && key.public().starts_with('U'));
        assert!(!format!("{key:?}").contains(&seed), "a key prints its seed");
        let again = FleetKey::from_seed(&seed).unwrap();
        assert_eq!(again.public(), key.public());
        let signature = again.sign(b"task").unwrap();
        assert!(is_signed_by(&key.public(), b"task", &signature));
        assert!(!is_signed_by(&key.public(), b"tusk", &signature));
        assert!(!is_signed_by(&FleetKey::generate().unwrap().public(), b"task", &signature));
        for wrong in ["", "SU", "nonsense", &key.public(), &seed[..seed.len() - 1]] {
            assert!(FleetKey::from_seed(wrong).is_none(), "{wrong}");
            assert!(!is_signed_by(wrong, b"task", &signature) || wrong == key.public());
        }
        let short = is_signed_by(&key.public(), b"task", &signature[1..]);
        assert!(!short);
    }
}
