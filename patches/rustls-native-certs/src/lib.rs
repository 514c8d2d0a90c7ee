//! Stands in for `rustls-native-certs` below `async-nats`, which loads the system's certificates even where it is given
//! others, and fails where there are none. A fleet trusts the certificate in its join files and no other, so there is nothing
//! to load; and on macOS nothing of the system's has to be linked for it.

use std::convert::Infallible;

use rustls_pki_types::CertificateDer;

/// As the crate of this name has it.
#[derive(Debug, Default)]
pub struct CertificateResult {
    pub certs: Vec<CertificateDer<'static>>,
    pub errors: Vec<Infallible>,
}

/// None.
pub fn load_native_certs() -> CertificateResult {
    CertificateResult::default()
}
