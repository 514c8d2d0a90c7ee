//! Leaks in an added line (PJ-44): credentials, and ways around authentication. Both are tables; a
//! pattern is there if it is rarely wrong, since a finding blocks the step. What was found is shown masked.

use crate::model::named::named;
use crate::rules::signs;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leak {
    pub class: LeakKind,
    pub kind: &'static str,
    /// The beginning of the value and its length, or the words that gave it away. Never the value.
    pub shown: String,
}

named! {
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum LeakKind {
        Credential = "credential",
        Bypass = "authorization bypass",
    }
}

/// The beginning of a token, how many more characters it has at least, and what it is.
const TOKENS: [(&str, usize, &str); 26] = [
    ("AKIA", 16, "cloud access key"),
    ("ASIA", 16, "cloud access key"),
    ("AIza", 30, "API key"),
    ("ya29.", 30, "cloud access token"),
    ("AccountKey=", 40, "storage account key"),
    ("ghp_", 30, "forge token"),
    ("gho_", 30, "forge token"),
    ("ghs_", 30, "forge token"),
    ("ghu_", 30, "forge token"),
    ("ghr_", 30, "forge token"),
    ("github_pat_", 30, "forge token"),
    ("glpat-", 18, "forge token"),
    ("sk-ant-", 20, "model API key"),
    ("sk-proj-", 20, "model API key"),
    ("hf_", 30, "model API key"),
    ("sk_live_", 16, "payment key"),
    ("rk_live_", 16, "payment key"),
    ("xoxb-", 20, "chat token"),
    ("xoxp-", 20, "chat token"),
    ("xapp-", 20, "chat token"),
    ("npm_", 30, "registry token"),
    ("pypi-", 40, "registry token"),
    ("dop_v1_", 40, "cloud access token"),
    ("shpat_", 30, "shop token"),
    ("SG.", 40, "mail key"),
    ("eyJ", 60, "signed token"),
];

/// Words that must all be in a line, in lower case and without spaces, and what it is then.
const BYPASSES: [(&[&str], &str); 16] = [
    (&["insecureskipverify:true"], "certificates are not checked"),
    (&["insecureskipverify=true"], "certificates are not checked"),
    (&["rejectunauthorized:false"], "certificates are not checked"),
    (&["node_tls_reject_unauthorized", "0"], "certificates are not checked"),
    (&["danger_accept_invalid_certs(true)"], "certificates are not checked"),
    (&["verify=false"], "certificates or signatures are not checked"),
    (&["curlopt_ssl_verifypeer", "false"], "certificates are not checked"),
    (&["stricthostkeychecking", "no"], "hosts are not checked"),
    (&["@csrf_exempt"], "requests from elsewhere are let in"),
    (&["csrf().disable()"], "requests from elsewhere are let in"),
    (&["anyrequest().permitall()"], "everybody is let in"),
    (&["[allowanonymous]"], "everybody is let in"),
    (&["skip_before_action:authenticat"], "a check of the user is left out"),
    (&["skip_before_action:authoriz"], "a check of the user is left out"),
    (&["skip_before_action:require_login"], "a check of the user is left out"),
    (&["algorithm", "[\"none\"]"], "unsigned tokens are taken"),
];

/// Names that switch a check of the user off.
const SWITCHES: [&str; 6] =
    ["skip_auth", "disable_auth", "bypass_auth", "no_auth", "auth_disabled", "skipauth"];

const SECRETS: [&str; 10] = [
    "password",
    "passwd",
    "secret",
    "secret_key",
    "api_key",
    "apikey",
    "access_token",
    "auth_token",
    "private_key",
    "passphrase",
];

/// Parts of a value that show that it is no secret.
const PLACEHOLDERS: [&str; 15] = [
    "example",
    "changeme",
    "change_me",
    "placeholder",
    "xxx",
    "your",
    "dummy",
    "test",
    "fake",
    "sample",
    "redacted",
    "***",
    "secret",
    "password",
    "env",
];

/// The leaks in one added line of a file; at most one of each class.
pub fn leaks_in(path: &str, line: &str) -> Vec<Leak> {
    let is_test = signs::is_test_path(path);
    let credential = token(line)
        .or_else(|| in_address(line))
        .or_else(|| machine_made(line))
        .or_else(|| literal(line).filter(|_| !is_test));
    let bypass = bypass(line).filter(|_| !is_test && !is_prose(path));
    let leak = |class| move |(kind, shown): (&'static str, String)| Leak { class, kind, shown };
    credential.map(leak(LeakKind::Credential)).into_iter().chain(bypass.map(leak(LeakKind::Bypass))).collect()
}

fn is_prose(path: &str) -> bool {
    let path = path.trim_matches('"').to_lowercase();
    [".md", ".txt", ".rst", ".adoc", ".markdown"].iter().any(|ending| path.ends_with(ending))
}

fn token(line: &str) -> Option<(&'static str, String)> {
    if line.contains("-----BEGIN") && line.contains("PRIVATE KEY") {
        return Some(("private key", "not shown".to_owned()));
    }
    TOKENS.iter().find_map(|(start, least, kind)| {
        line.match_indices(start).find_map(|(at, _)| {
            let begins = !line[..at].ends_with(|c: char| c.is_ascii_alphanumeric() || c == '_');
            let rest = &line[at + start.len()..];
            let value: String = rest.chars().take_while(|c| is_of_token(*c)).collect();
            let varied = distinct(&value) >= 6 && !is_placeholder(&value);
            let whole = !start.starts_with("eyJ") || value.matches('.').count() == 2;
            (begins && value.len() >= *least && varied && whole)
                .then(|| (*kind, masked(&format!("{start}{value}"))))
        })
    })
}

fn is_of_token(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '+' | '/' | '=')
}

/// `postgres://user:password@host`.
fn in_address(line: &str) -> Option<(&'static str, String)> {
    let (_, rest) = line.split_once("://")?;
    let end = rest.find(|c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '`' | '/' | '<' | '>'));
    let authority = rest.get(..end.unwrap_or(rest.len()))?;
    let (user, _host) = authority.rsplit_once('@')?;
    let (_, password) = user.split_once(':')?;
    let real = password.len() >= 6 && is_value(password);
    real.then(|| ("password in an address", masked(password)))
}

/// `password = "…"`: a name that ends with one of ours, right before what is assigned to it.
fn literal(line: &str) -> Option<(&'static str, String)> {
    let at = line.find(['=', ':'])?;
    let (before, after) = (line.get(..at)?, line.get(at + 1..)?);
    let name: String = before
        .trim_end()
        .trim_end_matches(['"', '\''])
        .chars()
        .rev()
        .take_while(|c| c.is_alphanumeric() || matches!(c, '_' | '-'))
        .collect::<Vec<_>>()
        .into_iter()
        .rev()
        .collect::<String>()
        .to_lowercase()
        .replace('-', "_");
    if !SECRETS.iter().any(|secret| name.ends_with(secret)) {
        return None;
    }
    let mut parts = after.splitn(3, ['"', '\'']);
    let (between, value) = (parts.next()?, parts.next()?);
    let _closed = parts.next()?;
    let near = between.chars().all(|c| c.is_whitespace() || matches!(c, '=' | ':' | 'b' | 'r' | '(' | '&'));
    let mixed = value.chars().any(|c| c.is_ascii_digit()) && value.chars().any(char::is_alphabetic);
    let real = near && mixed && value.len() >= 8 && !value.contains(' ') && is_value(value);
    real.then(|| ("password", masked(value)))
}

/// A value that looks made by a machine, under a telling name; in tests too.
fn machine_made(line: &str) -> Option<(&'static str, String)> {
    let kind = signs::credential(line).filter(|kind| *kind == "secret value");
    kind.map(|kind| (kind, "not shown".to_owned()))
}

/// Neither a template nor a placeholder.
fn is_value(value: &str) -> bool {
    !value.starts_with(['$', '{', '<', '%', '#', '@'])
        && !value.contains("${")
        && !is_placeholder(value)
        && distinct(value) >= 4
}

fn is_placeholder(value: &str) -> bool {
    let lower = value.to_lowercase();
    PLACEHOLDERS.iter().any(|word| lower.contains(word))
}

fn bypass(line: &str) -> Option<(&'static str, String)> {
    let dense: String = line.to_lowercase().chars().filter(|c| !c.is_whitespace()).collect();
    let row = BYPASSES.iter().find(|(words, _)| words.iter().all(|word| dense.contains(word)));
    if let Some((words, kind)) = row {
        return Some((kind, words.join(" ")));
    }
    let on = |name: &&&str| {
        ["=true", ":true", "=1", "=\"1\"", "=\"true\""]
            .iter()
            .any(|on| dense.contains(&format!("{name}{on}")))
    };
    let switch = SWITCHES.iter().find(on);
    if let Some(name) = switch {
        return Some(("a check of the user is switched off", (*name).to_owned()));
    }
    let checks =
        ["is_admin", "isadmin", "authoriz", "authenticat", "has_permission", "haspermission", "can_access"];
    let always = dense.contains("||true") || line.to_lowercase().contains(" or true");
    let word = checks.iter().find(|word| dense.contains(**word)).filter(|_| always)?;
    Some(("a check of the user is always true", format!("{word} … true")))
}

fn distinct(value: &str) -> usize {
    let mut seen: Vec<char> = value.chars().collect();
    seen.sort_unstable();
    seen.dedup();
    seen.len()
}

/// Enough to find it by, not enough to use it.
fn masked(value: &str) -> String {
    const SHOWN: usize = 4;
    let shown: String = value.chars().take(SHOWN.min(value.chars().count() / 4)).collect();
    format!("{shown}… ({} characters)", value.chars().count())
}
