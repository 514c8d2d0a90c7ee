//! Tokens that clients send with every request.

use std::collections::HashMap;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claims {
    pub user: String,
    pub admin: bool,
}

#[derive(Debug, PartialEq, Eq)]
pub enum AuthError {
    Unknown,
    Expired { at: u64 },
}

struct Session {
    secret: Vec<u8>,
    expires: u64,
    claims: Claims,
}

#[derive(Default)]
pub struct Sessions {
    by_id: HashMap<String, Session>,
}

impl Sessions {
    pub fn insert(&mut self, id: &str, secret: &[u8], expires: u64, claims: Claims) {
        let session = Session { secret: secret.to_vec(), expires, claims };
        self.by_id.insert(id.to_owned(), session);
    }

    /// What the bearer of this secret may do.
    pub fn verify(&self, id: &str, secret: &[u8], now: u64) -> Result<&Claims, AuthError> {
        let session = self.by_id.get(id).ok_or(AuthError::Unknown)?;
        if !same_secret(&session.secret, secret) {
            return Err(AuthError::Unknown);
        }
        if session.expires <= now {
            return Err(AuthError::Expired { at: session.expires });
        }
        Ok(&session.claims)
    }
}

/// Takes as long for a wrong secret as for the right one.
fn same_secret(known: &[u8], given: &[u8]) -> bool {
    if known.len() != given.len() {
        return false;
    }
    known.iter().zip(given).fold(0, |differs, (a, b)| differs | (a ^ b)) == 0
}
