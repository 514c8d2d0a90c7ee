//! Keys of members: Ed25519 pairs as NATS writes them (nkeys). The server has the public halves only; a seed is in a join file
//! and nowhere else.

use std::fmt;
use std::io;
use std::sync::Arc;

use archeflow_host::platform::machine;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
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

    /// A signature that is valid for one purpose only, as text for a header.
    pub fn sign_for(&self, purpose: SignedAs, bytes: &[u8]) -> Option<String> {
        self.sign(&purpose.before(bytes)).map(|signature| URL_SAFE_NO_PAD.encode(signature))
    }
}

/// What a signature is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SignedAs {
    /// Of a person, for [`crate::approvals`].
    Approval,
    /// Of the fleet itself, for [`crate::members`].
    Members,
}

impl SignedAs {
    /// A member also signs what a server sends it to prove who it is. That is text, so that no server can get a signature
    /// over bytes that begin with one that no text has.
    fn before(self, bytes: &[u8]) -> Vec<u8> {
        let purpose: &[u8] = match self {
            SignedAs::Approval => b"\xffarcheflow approval\0",
            SignedAs::Members => b"\xffarcheflow members\0",
        };
        [purpose, bytes].concat()
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

/// Whether the holder of this public key signed these bytes for this purpose ([`FleetKey::sign_for`]).
pub fn is_signed_for(public: &str, purpose: SignedAs, bytes: &[u8], signature: &str) -> bool {
    let decoded = URL_SAFE_NO_PAD.decode(signature);
    decoded.is_ok_and(|signature| is_signed_by(public, &purpose.before(bytes), &signature))
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

    #[test]
    fn fl_90_a_signature_is_valid_for_its_purpose_only() {
        let key = FleetKey::generate().unwrap();
        let public = key.public();
        let signature = key.sign_for(SignedAs::Approval, b"shop").unwrap();
        assert!(is_signed_for(&public, SignedAs::Approval, b"shop", &signature));
        assert!(!is_signed_for(&public, SignedAs::Members, b"shop", &signature));
        assert!(!is_signed_for(&public, SignedAs::Approval, b"shoq", &signature));
        // Servers get signatures over any text they like.
        assert!(std::str::from_utf8(&SignedAs::Approval.before(b"shop")).is_err());
        assert!(std::str::from_utf8(&SignedAs::Members.before(b"shop")).is_err());
        let login = URL_SAFE_NO_PAD.encode(key.sign(b"shop").unwrap());
        assert!(!is_signed_for(&public, SignedAs::Approval, b"shop", &login));
        for wrong in ["", "=", "AAAA", &signature[1..]] {
            assert!(!is_signed_for(&public, SignedAs::Approval, b"shop", wrong), "{wrong}");
        }
    }
}
