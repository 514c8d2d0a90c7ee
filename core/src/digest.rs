//! SHA-256, for two things that others check as well: a Content-Security-Policy names a page's own style sheet by its
//! hash, and findings are known again by a fingerprint that nobody can aim at. Digests of files are BLAKE3, in the host.

use std::sync::LazyLock;

/// `sha256-…` as a policy writes it.
pub fn source(text: &str) -> String {
    format!("sha256-{}", base64(&sha256(text.as_bytes())))
}

pub fn sha256(message: &[u8]) -> [u8; 32] {
    static CONSTANTS: LazyLock<([u32; 8], [u32; 64])> = LazyLock::new(constants);
    let (mut state, rounds) = *CONSTANTS;
    let mut padded = message.to_vec();
    padded.push(0x80);
    padded.resize(padded.len().next_multiple_of(64), 0);
    if padded.len() - message.len() < 9 {
        padded.resize(padded.len() + 64, 0);
    }
    let at = padded.len() - 8;
    padded[at..].copy_from_slice(&(message.len() as u64 * 8).to_be_bytes());
    for block in padded.chunks_exact(64) {
        compress(&mut state, block, &rounds);
    }
    let mut digest = [0; 32];
    for (four, word) in digest.chunks_exact_mut(4).zip(state) {
        four.copy_from_slice(&word.to_be_bytes());
    }
    digest
}

fn compress(state: &mut [u32; 8], block: &[u8], rounds: &[u32; 64]) {
    let mut w = [0_u32; 64];
    for (word, four) in w.iter_mut().zip(block.chunks_exact(4)) {
        *word = four.iter().fold(0, |word, byte| word << 8 | u32::from(*byte));
    }
    for i in 16..64 {
        let small = |x: u32, a: u32, b: u32, c: u32| x.rotate_right(a) ^ x.rotate_right(b) ^ (x >> c);
        w[i] = w[i - 16].wrapping_add(small(w[i - 15], 7, 18, 3)).wrapping_add(w[i - 7]).wrapping_add(small(
            w[i - 2],
            17,
            19,
            10,
        ));
    }
    let large = |x: u32, a: u32, b: u32, c: u32| x.rotate_right(a) ^ x.rotate_right(b) ^ x.rotate_right(c);
    let [mut a, mut b, mut c, mut d, mut e, mut f, mut g, mut h] = *state;
    for (word, constant) in w.iter().zip(rounds) {
        let choice = (e & f) ^ (!e & g);
        let one = h
            .wrapping_add(large(e, 6, 11, 25))
            .wrapping_add(choice)
            .wrapping_add(*constant)
            .wrapping_add(*word);
        let two = large(a, 2, 13, 22).wrapping_add((a & b) ^ (a & c) ^ (b & c));
        (h, g, f, e, d, c, b, a) = (g, f, e, d.wrapping_add(one), c, b, a, one.wrapping_add(two));
    }
    for (old, new) in state.iter_mut().zip([a, b, c, d, e, f, g, h]) {
        *old = old.wrapping_add(new);
    }
}

/// The first bits after the point of square and cube roots of the first primes, found by whole numbers.
fn constants() -> ([u32; 8], [u32; 64]) {
    let primes: Vec<u128> = (2..312).filter(|n| (2..*n).all(|d| n % d != 0)).collect();
    let bits = |root: u128| u32::try_from(root & 0xffff_ffff).unwrap_or(0);
    let mut state = [0; 8];
    let mut rounds = [0; 64];
    for (slot, prime) in state.iter_mut().zip(&primes) {
        *slot = bits(root(*prime << 64, |x| x * x));
    }
    for (slot, prime) in rounds.iter_mut().zip(&primes) {
        *slot = bits(root(*prime << 96, |x| x * x * x));
    }
    (state, rounds)
}

/// The greatest whole number whose power is not above.
fn root(of: u128, power: fn(u128) -> u128) -> u128 {
    let (mut low, mut high) = (0_u128, 1 << 37);
    while high - low > 1 {
        let middle = low.midpoint(high);
        if power(middle) <= of { low = middle } else { high = middle }
    }
    low
}

fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::new();
    for three in bytes.chunks(3) {
        let word =
            three.iter().fold(0_u32, |word, byte| word << 8 | u32::from(*byte)) << (8 * (3 - three.len()));
        for n in 0..4 {
            let letter = LETTERS[(word >> (18 - 6 * n) & 63) as usize];
            out.push(if n <= three.len() { char::from(letter) } else { '=' });
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_answers() {
        let hex = |bytes: [u8; 32]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        for (text, hash) in [
            ("", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
            ("abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
            (
                "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
                "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1",
            ),
        ] {
            assert_eq!(hex(sha256(text.as_bytes())), hash);
        }
        // One block exactly, one byte less and one more: where padding goes wrong if it does.
        for length in [55, 56, 63, 64, 65, 119, 120] {
            assert_ne!(sha256(&vec![b'a'; length]), sha256(&vec![b'a'; length + 1]));
        }
        assert_eq!(
            hex(sha256(&[b'a'; 1_000_000])),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"
        );
        assert_eq!(["", "f", "fo", "foo"].map(|text| base64(text.as_bytes())), ["", "Zg==", "Zm8=", "Zm9v"]);
    }
}
