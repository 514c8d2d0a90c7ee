//! Credentials in a line: private keys, tokens by their prefix, and values that are assigned to a secret's name. All of a
//! change is looked at, so a line that can't hold one must cost little.

/// The kind of credential in a line. Nearly every line has none, and one pass over its bytes shows it.
pub fn credential(line: &str) -> Option<&'static str> {
    let marks = LineMarks::of(line);
    if marks.longest_word >= MARK && line.contains("-----BEGIN") && line.contains("PRIVATE KEY") {
        return Some("private key");
    }
    if marks.longest_word >= SHORTEST_TOKEN
        && let Some(kind) = token(line)
    {
        return Some(kind);
    }
    (marks.quote && marks.assigns && assigned_secret(line)).then_some("secret value")
}

/// Bytes of `-----BEGIN`, which are all bytes of a word.
const MARK: usize = 10;
/// The shortest prefix of a token with the least that follows it.
const SHORTEST_TOKEN: usize = 20;

/// What a line must have to hold a credential.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct LineMarks {
    /// Bytes of the longest run of letters, digits, `_` and `-`.
    longest_word: usize,
    quote: bool,
    assigns: bool,
}

impl LineMarks {
    fn of(line: &str) -> LineMarks {
        let (mut marks, mut word) = (LineMarks::default(), 0);
        for byte in line.bytes() {
            if byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-') {
                word += 1;
                continue;
            }
            marks.longest_word = marks.longest_word.max(word);
            word = 0;
            marks.quote |= matches!(byte, b'"' | b'\'');
            marks.assigns |= matches!(byte, b'=' | b':');
        }
        marks.longest_word = marks.longest_word.max(word);
        marks
    }
}

/// How tokens begin, how many characters follow at least, and their kind.
const PREFIXES: [(&str, usize, &str); 12] = [
    ("AKIA", 16, "cloud access key"),
    ("ASIA", 16, "cloud access key"),
    ("ghp_", 30, "forge token"),
    ("gho_", 30, "forge token"),
    ("ghs_", 30, "forge token"),
    ("github_pat_", 30, "forge token"),
    ("glpat-", 18, "forge token"),
    ("sk-ant-", 20, "model API key"),
    ("sk-proj-", 20, "model API key"),
    ("AIza", 30, "API key"),
    ("xoxb-", 20, "chat token"),
    ("npm_", 30, "registry token"),
];

/// In place of a credential.
const MASK: &str = "***";

/// A message of another program without the credentials in it, for somebody who is not to have them: tokens by their prefix,
/// what follows `Bearer`, the name and password in an address, and what is assigned to a secret's name.
pub fn without_credentials(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut before = "";
    for piece in text.split_inclusive(char::is_whitespace) {
        let word = piece.trim_end();
        let after_bearer = before.trim_end_matches(':').eq_ignore_ascii_case("bearer");
        if after_bearer && (word.len() >= 20 || word.bytes().any(|byte| byte.is_ascii_digit())) {
            out.push_str(MASK);
        } else {
            out.push_str(&masked_word(word));
        }
        out.push_str(&piece[word.len()..]);
        before = if word.is_empty() { before } else { word };
    }
    out
}

/// What a reviewer wrote about code, without the credentials it quotes: only what [`credential`] takes for one, and logins in
/// addresses. Names and values of code stay, for a finding has to be understood.
pub fn masked(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut in_key = false;
    for line in text.split_inclusive('\n') {
        let begins = line.contains("-----BEGIN") && line.contains("PRIVATE KEY");
        if begins || in_key {
            // A key may be on one line with what is said about it.
            let kept = if begins { line.split("-----BEGIN").next().unwrap_or_default() } else { "" };
            out.push_str(kept);
            out.push_str(MASK);
            out.push_str(if line.ends_with('\n') { "\n" } else { "" });
            in_key = !line.contains("-----END");
            continue;
        }
        let mut line: String = line.split_inclusive(char::is_whitespace).map(without_login).collect();
        while let Some((from, to)) = token_in(&line) {
            line.replace_range(from..to, MASK);
        }
        if assigned_secret(&line) {
            line = without_values(&line);
        }
        out.push_str(&line);
    }
    out
}

/// Without what is quoted and looks made by a machine.
fn without_values(line: &str) -> String {
    let made = |value: &str| {
        value.len() >= 16 && !value.contains(' ') && value.contains(|c: char| c.is_ascii_digit())
    };
    let mut out = String::with_capacity(line.len());
    for piece in line.split_inclusive(['"', '\'']) {
        let value = piece.trim_end_matches(['"', '\'']);
        out.push_str(if made(value) && value.len() < piece.len() { MASK } else { value });
        out.push_str(&piece[value.len()..]);
    }
    out
}

fn without_login(word: &str) -> String {
    if let Some((scheme, rest)) = word.split_once("://")
        && let Some((login, place)) = rest.split_once('@')
        && !login.contains('/')
    {
        return format!("{scheme}://{MASK}@{place}");
    }
    word.to_owned()
}

fn masked_word(word: &str) -> String {
    let mut word = without_login(word);
    if let Some(at) = word.find(['=', ':'])
        && is_secret_name(&word[..at])
        && word.len() > at + 1
    {
        word.truncate(at + 1);
        word.push_str(MASK);
    }
    while let Some((from, to)) = token_in(&word) {
        word.replace_range(from..to, MASK);
    }
    word
}

fn is_secret_name(name: &str) -> bool {
    const ENDS: [&str; 7] = ["password", "passwd", "secret", "api_key", "apikey", "token", "private_key"];
    let name = name.to_ascii_lowercase().replace('-', "_");
    ENDS.iter().any(|end| name.ends_with(end))
}

/// Where the first token is, by its prefix.
fn token_in(line: &str) -> Option<(usize, usize)> {
    let places = PREFIXES.iter().flat_map(|(prefix, least, _)| {
        line.match_indices(prefix).filter_map(|(at, _)| {
            let starts_a_word = !line[..at].ends_with(|c: char| c.is_ascii_alphanumeric() || c == '_');
            let rest = line[at + prefix.len()..].bytes();
            let run = rest.take_while(|c| c.is_ascii_alphanumeric() || matches!(c, b'_' | b'-')).count();
            (starts_a_word && run >= *least).then_some((at, at + prefix.len() + run))
        })
    });
    places.min()
}

/// The kind of the token in a line, by its prefix.
fn token(line: &str) -> Option<&'static str> {
    for (prefix, least, kind) in PREFIXES {
        for (at, _) in line.match_indices(prefix) {
            let starts_a_word = !line[..at].ends_with(|c: char| c.is_ascii_alphanumeric() || c == '_');
            let rest = &line[at + prefix.len()..];
            let run =
                rest.chars().take_while(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-')).count();
            if starts_a_word && run >= least {
                return Some(kind);
            }
        }
    }
    None
}

/// `password = "…"` with a value that looks made by a machine.
fn assigned_secret(line: &str) -> bool {
    const NAMES: [&str; 8] =
        ["password", "passwd", "secret", "api_key", "apikey", "access_token", "auth_token", "private_key"];
    const PLACEHOLDERS: [&str; 11] =
        ["example", "changeme", "placeholder", "xxxx", "your", "dummy", "test", "fake", "${", "<", "env"];
    let lower = if line.is_ascii() { line.to_ascii_lowercase() } else { line.to_lowercase() };
    let Some(after) = NAMES.iter().filter_map(|name| lower.find(name).map(|at| at + name.len())).min() else {
        return false;
    };
    let Some(tail) = lower.get(after..) else { return false };
    let Some(assigned) = tail.find(['=', ':']).and_then(|at| tail.get(at + 1..)) else { return false };
    let mut quoted = assigned.split(['"', '\'']).skip(1);
    let Some(value) = quoted.next() else { return false };
    let letters = value.chars().any(|c| c.is_ascii_alphabetic());
    let digits = value.chars().any(|c| c.is_ascii_digit());
    let mut distinct: Vec<char> = value.chars().collect();
    distinct.sort_unstable();
    distinct.dedup();
    value.len() >= 16
        && letters
        && digits
        && distinct.len() >= 10
        && !value.contains(' ')
        && !PLACEHOLDERS.iter().any(|word| value.contains(word))
}

#[cfg(test)]
mod tests {
    use super::{
        LineMarks, MARK, SHORTEST_TOKEN, assigned_secret, credential, masked, token, without_credentials,
    };

    #[test]
    fn d_07_a_finding_is_told_without_the_keys_it_quotes() {
        for (said, told) in [
            ("The key AKIAABCDEFGHIJKLMNOP is in the code", "The key *** is in the code"),
            ("`password = \"a8Kq0zR4mW1pX7vB2n\"` is committed", "`password = \"***\"` is committed"),
            ("It logs in to postgres://u:p4ss@db/x", "It logs in to postgres://***@db/x"),
            (
                "x\n-----BEGIN RSA PRIVATE KEY-----\nMIIEow\n-----END RSA PRIVATE KEY-----\ny",
                "x\n***\n***\n***\ny",
            ),
            (
                "`token=None` and `api_key=os.environ[\"KEY\"]`",
                "`token=None` and `api_key=os.environ[\"KEY\"]`",
            ),
            ("`password = \"changeme\"` is a default", "`password = \"changeme\"` is a default"),
        ] {
            assert_eq!(masked(said), told);
            assert_eq!(masked(told), told, "once is enough");
        }
    }

    #[test]
    fn mc_36_a_message_is_passed_on_without_its_credentials() {
        let token = format!("ghp_{}", "a1".repeat(18));
        for (said, passed) in [
            (format!("no {token}, sorry\nnext"), "no ***, sorry\nnext".to_owned()),
            (
                format!("https://bob:{token}@example.org/x failed"),
                "https://***@example.org/x failed".to_owned(),
            ),
            (format!("(GH_TOKEN={token})"), "(GH_TOKEN=***".to_owned()),
            ("Authorization: Bearer abc123 rest".to_owned(), "Authorization: Bearer *** rest".to_owned()),
            ("password=hunter2 x".to_owned(), "password=*** x".to_owned()),
        ] {
            assert_eq!(without_credentials(&said), passed);
        }
        for plain in
            ["the bearer of news", "tokens: 12, cost=3", "see https://example.org/a@b", "  a\tb\n", ""]
        {
            assert_eq!(without_credentials(plain), plain);
        }
    }

    /// Without a look at what the line has at all.
    fn in_every_line(line: &str) -> Option<&'static str> {
        if line.contains("-----BEGIN") && line.contains("PRIVATE KEY") {
            return Some("private key");
        }
        token(line).or_else(|| assigned_secret(line).then_some("secret value"))
    }

    #[test]
    fn d_07_a_quick_look_at_a_line_misses_no_credential() {
        let tokens = [
            "AKIA",
            "ASIA",
            "ghp_",
            "gho_",
            "github_pat_",
            "glpat-",
            "sk-ant-",
            "sk-proj-",
            "AIza",
            "xoxb-",
            "npm_",
        ];
        let values = ["0123456789abcdef", "a1b2c3d4e5f6g7h8", "aB3-_x9Qw7Zr5Tk2Lm8P", "short"];
        let mut found = 0;
        for prefix in tokens {
            for least in [15, 16, 17, 18, 19, 20, 29, 30, 31] {
                let run: String = "a1B_-".chars().cycle().take(least).collect();
                for line in
                    [format!("{prefix}{run}"), format!("key = {prefix}{run};"), format!("ä{prefix}{run}\"")]
                {
                    assert_eq!(credential(&line), in_every_line(&line), "{line}");
                    found += usize::from(credential(&line).is_some());
                }
            }
        }
        for name in [
            "password",
            "PassWd",
            "SECRET",
            "api_key",
            "apikey",
            "access_token",
            "auth_token",
            "pri\u{212a}vate_key",
        ] {
            for value in values {
                for line in [
                    format!("{name} = \"{value}\""),
                    format!("{name}: '{value}'"),
                    format!("{name} \"{value}\""),
                    format!("{name} = {value}"),
                    format!("ü{name}=\"{value}\""),
                ] {
                    assert_eq!(credential(&line), in_every_line(&line), "{line}");
                    found += usize::from(credential(&line).is_some());
                }
            }
        }
        for line in
            ["-----BEGIN RSA PRIVATE KEY-----", "-----BEGIN PRIVATE KEY", "-----BEGIN CERTIFICATE-----"]
        {
            assert_eq!(credential(line), in_every_line(line), "{line}");
            found += usize::from(credential(line).is_some());
        }
        assert!(found > 100, "{found}");
        assert_eq!(MARK, "-----BEGIN".len());
        assert_eq!(LineMarks::of("AKIA0123456789abcdef").longest_word, SHORTEST_TOKEN);
    }
}
