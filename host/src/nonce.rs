//! Random names: for the fences of a brief, conversations and temporary folders.

/// Sixteen random hexadecimal digits.
pub(crate) fn nonce() -> String {
    let mut bytes = [0_u8; 8];
    if crate::platform::machine::random(&mut bytes).is_err() {
        bytes = crate::clock::now().to_le_bytes();
    }
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
