//! Secrets of the user that an agent works with, kept out of what it prints (R-11): a provider or a proxy may echo a key in
//! an error. They are masked before anything is written, shown or read.
//!
//! Masked is what is known to be a secret, and nothing that only looks like one: answers quote code.

use std::borrow::Cow;
use std::ffi::{OsStr, OsString};

use serde_json::Value;

use crate::backends::cli::LinkedFile;
use crate::backends::held_keys::is_secret;
use crate::platform::files as os;
use crate::store::files;

const MASK: &[u8] = b"***";

/// Secrets have at least so many bytes. In an error, a piece of so many is one as well: errors are cut off somewhere.
const SHORTEST: usize = 8;
/// In answers, which quote code: a beginning that all keys of a provider have (`sk-ant-api03-`) is no piece of one.
const SHORTEST_IN_ANSWERS: usize = 16;
const LOGIN_AT_MOST: u64 = 1024 * 1024;
/// A value of so many bytes is no word that has another meaning, even without a digit.
const LONG: usize = 20;

/// Values that nobody is to read.
#[derive(Debug, Clone, Default)]
pub struct Secrets {
    secrets: Vec<Vec<u8>>,
    /// The least bytes of a piece, if more than [`SHORTEST`].
    piece: usize,
}

impl Secrets {
    /// The one that a provider may echo in an error.
    pub fn of(key: &str) -> Secrets {
        let mut secrets = Secrets::default();
        secrets.add(key);
        secrets
    }

    /// What an agent must not repeat: the user's keys, those it is given, and its login.
    pub fn of_agent(variables: &[&[(OsString, OsString)]], logins: &[LinkedFile]) -> Secrets {
        let mut secrets = Secrets { piece: SHORTEST_IN_ANSWERS, ..Secrets::default() };
        variables.iter().for_each(|some| secrets.add_variables(some));
        let logins = logins.iter().filter_map(|login| files::read_capped(&login.from, LOGIN_AT_MOST).ok());
        logins.for_each(|login| secrets.add_login(&login));
        secrets
    }

    /// What variables of such names hold; one may hold settings with keys in them.
    fn add_variables(&mut self, variables: &[(OsString, OsString)]) {
        for (_, value) in variables.iter().filter(|(name, _)| is_secret(name)) {
            let text = String::from_utf8_lossy(os::bytes(value));
            match serde_json::from_str::<Value>(&text) {
                Ok(settings @ (Value::Object(_) | Value::Array(_))) => self.add_settings(&settings, false),
                Ok(_) | Err(_) => self.add_if_made(&text, SHORTEST),
            }
        }
    }

    /// The tokens in a client's login, whatever they are called there.
    fn add_login(&mut self, login: &[u8]) {
        if let Ok(login) = serde_json::from_slice(login) {
            self.add_settings(&login, true);
        }
    }

    fn add_settings(&mut self, settings: &Value, is_login: bool) {
        match settings {
            Value::String(text) if is_login => self.add_if_made(text, LONG),
            Value::Array(all) => all.iter().for_each(|one| self.add_settings(one, is_login)),
            Value::Object(all) => all.iter().for_each(|(name, one)| self.add_setting(name, one, is_login)),
            Value::String(_) | Value::Number(_) | Value::Bool(_) | Value::Null => {}
        }
    }

    fn add_setting(&mut self, name: &str, setting: &Value, is_login: bool) {
        if let Some(text) = setting.as_str().filter(|_| is_secret(OsStr::new(name))) {
            self.add_if_made(text, SHORTEST);
        } else if let Some(headers) = setting.as_object().filter(|_| name == "headers") {
            let words = headers.values().filter_map(Value::as_str).flat_map(str::split_whitespace);
            words.for_each(|word| self.add_if_made(word, SHORTEST));
        } else {
            self.add_settings(setting, is_login);
        }
    }

    /// A path, an address, a date or a word may be in the place of a secret, and is in many answers.
    fn add_if_made(&mut self, text: &str, least: usize) {
        let text = text.trim();
        let is_place = text.starts_with(['/', '~', '.']) || text.starts_with("unix:") || text.contains("://");
        let is_date = text.get(..4).is_some_and(|year| year.bytes().all(|byte| byte.is_ascii_digit()))
            && text.get(4..).is_some_and(|rest| rest.starts_with('-'));
        let is_word = text.len() < LONG && !text.bytes().any(|byte| byte.is_ascii_digit());
        let is_made = !(is_place || is_date || is_word || text.contains(char::is_whitespace));
        if text.len() >= least && is_made {
            self.add(text);
        }
    }

    fn add(&mut self, secret: &str) {
        let secret = secret.trim().as_bytes().to_vec();
        if secret.len() >= SHORTEST && !self.secrets.contains(&secret) {
            self.secrets.push(secret);
        }
    }

    pub fn mask(&self, text: &str) -> String {
        let mut masked = SecretsMask::new(self.clone());
        let mut bytes = masked.next(text.as_bytes()).into_owned();
        bytes.extend(masked.rest());
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// How many bytes at the beginning of these are a secret or a piece of one, and whether more could follow.
    fn piece_at(&self, bytes: &[u8]) -> (usize, bool) {
        let common =
            |secret: &Vec<u8>| secret.iter().zip(bytes).take_while(|(one, other)| one == other).count();
        self.secrets.iter().fold((0, false), |(longest, is_open), secret| {
            let common = common(secret);
            let piece = if common >= self.piece.max(SHORTEST).min(secret.len()) { common } else { 0 };
            (longest.max(piece), is_open || (common == bytes.len() && common < secret.len()))
        })
    }
}

/// Masks a stream that comes in pieces.
pub struct SecretsMask {
    secrets: Secrets,
    /// The beginning of what may be a secret.
    held: Vec<u8>,
}

impl SecretsMask {
    pub fn new(secrets: Secrets) -> SecretsMask {
        SecretsMask { secrets, held: Vec::new() }
    }

    /// The next piece, as far as it is known to be harmless.
    pub fn next<'a>(&mut self, chunk: &'a [u8]) -> Cow<'a, [u8]> {
        if self.secrets.secrets.is_empty() {
            return Cow::Borrowed(chunk);
        }
        let mut bytes = std::mem::take(&mut self.held);
        bytes.extend_from_slice(chunk);
        Cow::Owned(self.masked(&bytes, true))
    }

    /// What was held back when no more comes.
    pub fn rest(&mut self) -> Vec<u8> {
        let bytes = std::mem::take(&mut self.held);
        self.masked(&bytes, false)
    }

    fn masked(&mut self, bytes: &[u8], more_comes: bool) -> Vec<u8> {
        let (mut out, mut at) = (Vec::with_capacity(bytes.len()), 0);
        while let Some(left @ [first, ..]) = bytes.get(at..) {
            let (piece, is_open) = self.secrets.piece_at(left);
            if is_open && more_comes {
                self.held = left.to_vec();
                break;
            }
            if piece > 0 {
                out.extend_from_slice(MASK);
                at += piece;
            } else {
                out.push(*first);
                at += 1;
            }
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "sk-proj-Ab3Ab3Ab3Ab3Ab3Ab3Ab3Ab3Ab3Ab3Ab3";

    #[test]
    fn r_11_a_secret_is_masked_wherever_a_stream_is_cut() {
        let secrets = Secrets::of(KEY);
        let rows = [
            (format!("no {KEY}\n"), "no ***\n".to_owned()),
            (format!("{KEY}{KEY}{}", &KEY[..12]), "*********".to_owned()),
            (format!("{{\"said\":\"{}…\"}}\n", &KEY[..20]), "{\"said\":\"***…\"}\n".to_owned()),
            (format!("sk-pro {} sk-sk-sk", &KEY[..7]), format!("sk-pro {} sk-sk-sk", &KEY[..7])),
            (format!("sk-{KEY}"), "sk-***".to_owned()),
        ];
        for (said, kept) in rows {
            assert_eq!(secrets.mask(&said), kept);
            for size in 1..=said.len() {
                let mut mask = SecretsMask::new(secrets.clone());
                let mut out: Vec<u8> =
                    said.as_bytes().chunks(size).flat_map(|chunk| mask.next(chunk).into_owned()).collect();
                out.extend(mask.rest());
                assert_eq!(String::from_utf8_lossy(&out), kept, "in pieces of {size}");
            }
        }
    }

    #[test]
    fn r_11_a_line_without_a_secret_is_not_held_back() {
        let mut mask = SecretsMask::new(Secrets::of(KEY));
        assert_eq!(mask.next(b"{\"type\":\"done\"}\n").as_ref(), b"{\"type\":\"done\"}\n");
        let nothing = &mut SecretsMask::new(Secrets::default());
        assert!(matches!(nothing.next(KEY.as_bytes()), Cow::Borrowed(_)));
    }

    /// Its beginning is in the code of whoever works with such keys.
    #[test]
    fn r_11_what_all_keys_of_a_provider_begin_with_is_no_secret() {
        let variables = [("ANTHROPIC_API_KEY".into(), "sk-ant-api03-Ab3Ab3Ab3Ab3Ab3".into())];
        let secrets = Secrets::of_agent(&[&variables], &[]);
        for plain in ["`if key.startswith(\"sk-ant-api03-\"):`", "`prefix = 'sk-ant-'`"] {
            assert_eq!(secrets.mask(plain), plain);
        }
        assert_eq!(secrets.mask("no sk-ant-api03-Ab3Ab…"), "no ***…");
    }

    #[test]
    fn r_11_secrets_are_found_in_variables_settings_and_logins() {
        let settings = format!(
            r#"{{"provider":{{"own":{{"npm":"some-model-of-30b-size","apiKey":"own-key-17","headers":{{"a":"Bearer {KEY}"}}}}}}}}"#
        );
        let variables = [
            ("PATH", "/usr/bin-0123456789"),
            ("SOME_API_KEY", "a1b2c3d4e5"),
            ("GOOGLE_APPLICATION_CREDENTIALS", "/etc/credentials-1.json"),
            ("MODE_TOKEN", "required"),
            ("PIN_SECRET", "1234"),
            ("OPENCODE_CONFIG_CONTENT", &settings),
        ];
        let variables: Vec<(OsString, OsString)> =
            variables.iter().map(|(name, value)| (name.into(), value.into())).collect();
        let mut secrets = Secrets::default();
        secrets.add_variables(&variables);
        let login = r#"{"tokens": {"access": "at-0123456789abcdefghij", "account": "jo"},
            "last": "2026-11-19T17:00:00.000Z", "scopes": ["https://example.org/auth/all"]}"#;
        secrets.add_login(login.as_bytes());
        for plain in
            ["/usr/bin-0123456789", "/etc/credentials-1.json", "required", "1234", "some-model-of-30b-size"]
        {
            assert_eq!(secrets.mask(plain), plain);
        }
        for plain in ["jo", "2026-11-19T17:00:00.000Z", "https://example.org/auth/all"] {
            assert_eq!(secrets.mask(plain), plain);
        }
        for secret in ["a1b2c3d4e5", "own-key-17", KEY, "at-0123456789abcdefghij"] {
            assert_eq!(secrets.mask(secret), "***");
        }
    }
}
