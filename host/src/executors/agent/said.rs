//! The text of an answer, as it is told to others.

use archeflow_core::text::one_line;

/// Of an answer without a closing line.
const LAST_LINES: usize = 3;

/// How an answer without a closing line ends, for whoever has to find out why: a refusal, a question, half a sentence.
pub(super) fn last_lines(said: &[u8]) -> String {
    let text = String::from_utf8_lossy(said);
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let last = lines.get(lines.len().saturating_sub(LAST_LINES)..).unwrap_or_default();
    let told: Vec<String> = last.iter().map(|line| one_line(line)).collect();
    format!("it ends: \u{201c}{}\u{201d}", told.join(" / "))
}

/// What others are shown of an answer. Nobody else learns the code, and none is left where the answer is read again.
pub(super) fn without_code(said: Vec<u8>, code: &str) -> Vec<u8> {
    match String::from_utf8(said) {
        Ok(text) if !code.is_empty() && text.contains(code) => {
            text.replace(&format!(" {code}"), "").replace(code, "").into_bytes()
        }
        Ok(text) => text.into_bytes(),
        Err(bytes) => bytes.into_bytes(),
    }
}
