//! Which clients can do without their key (`sandbox.keys: proxy`): those that take it from a variable and can be sent to
//! another address by one. They get a placeholder and the address of our proxy, which has the key.

use std::ffi::{OsStr, OsString};

use super::cli::Client;
use crate::sandbox::proxy::KeyTarget;

/// A client, or one provider of a client that has many.
struct HoldableKey {
    client: &'static str,
    /// Empty for a client of one provider.
    provider: &'static str,
    /// Variables with the key, the first that is set counts.
    keys: &'static [&'static str],
    /// The variable with the provider's address, and that address if it is not set.
    address: &'static str,
    usual: &'static str,
}

const HOLDABLE: [HoldableKey; 5] = [
    HoldableKey {
        client: "claude",
        provider: "",
        keys: &["ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"],
        address: "ANTHROPIC_BASE_URL",
        usual: "https://api.anthropic.com",
    },
    HoldableKey {
        client: "codex",
        provider: "",
        keys: &["CODEX_API_KEY", "OPENAI_API_KEY"],
        address: "OPENAI_BASE_URL",
        usual: "https://api.openai.com/v1",
    },
    HoldableKey {
        client: "gemini",
        provider: "",
        keys: &["GEMINI_API_KEY"],
        address: "GOOGLE_GEMINI_BASE_URL",
        usual: "https://generativelanguage.googleapis.com",
    },
    HoldableKey {
        client: "goose",
        provider: "openai",
        keys: &["OPENAI_API_KEY"],
        address: "OPENAI_HOST",
        usual: "https://api.openai.com",
    },
    HoldableKey {
        client: "goose",
        provider: "anthropic",
        keys: &["ANTHROPIC_API_KEY"],
        address: "ANTHROPIC_HOST",
        usual: "https://api.anthropic.com",
    },
];

/// Parts of the names of variables that hold secrets, or lead to them.
const SECRETS: [&str; 7] =
    ["KEY", "TOKEN", "SECRET", "CREDENTIALS", "PASSWORD", "CONFIG_CONTENT", "DBUS_SESSION"];

/// A key that was taken out of a client's variables.
pub struct HeldKey {
    pub target: KeyTarget,
    /// Whether it belongs to the address that its client asks without being told another.
    pub usual: bool,
    key: &'static str,
    address: &'static str,
}

/// Whether a variable may hold a secret.
pub fn is_secret(name: &OsStr) -> bool {
    name.to_str().is_none_or(|name| SECRETS.iter().any(|part| name.to_ascii_uppercase().contains(part)))
}

impl HeldKey {
    /// The key of a client, or why our proxy can't hold it, in words for the report.
    pub fn find(client: &Client, model: &str, variables: &[(OsString, OsString)]) -> Result<HeldKey, String> {
        let value = |wanted: &str| {
            let found = variables.iter().find(|(name, value)| name == wanted && !value.is_empty());
            found.and_then(|(_, value)| value.to_str())
        };
        let remedy = "set sandbox.keys to agent to give it its key or login";
        let named = model.split_once('/').map(|(provider, _)| provider).or_else(|| value("GOOSE_PROVIDER"));
        let provider = named.filter(|_| client.name == "goose").unwrap_or_default();
        let rows: Vec<&HoldableKey> = HOLDABLE.iter().filter(|row| row.client == client.name).collect();
        let Some(row) = rows.iter().find(|row| row.provider == provider) else {
            let which = if rows.is_empty() {
                format!("with {}", client.name)
            } else {
                let known: Vec<&str> = rows.iter().map(|row| row.provider).collect();
                format!("with {} for other providers than {}", client.name, known.join(" and "))
            };
            return Err(format!("sandbox.keys is proxy, which does not work {which}; {remedy}"));
        };
        if client.name == "gemini" && value("GOOGLE_GENAI_USE_VERTEXAI").is_some() {
            return Err(format!("sandbox.keys is proxy, which does not work with Vertex AI; {remedy}"));
        }
        let Some((key, secret)) = row.keys.iter().find_map(|name| Some((*name, value(name)?))) else {
            let wanted = row.keys.join(" or ");
            return Err(format!("sandbox.keys is proxy, which needs a key in {wanted}; set it, or {remedy}"));
        };
        let own = value(row.address);
        let url = own.unwrap_or(row.usual).to_owned();
        let target = KeyTarget { key: secret.to_owned(), url };
        Ok(HeldKey { target, usual: own.is_none(), key, address: row.address })
    }

    /// The variables with a placeholder in place of the key and another address, and without any other secret.
    pub fn replaced(
        (key, address): (&'static str, &'static str),
        variables: &[(OsString, OsString)],
        placeholder: &str,
        url: &str,
    ) -> Vec<(OsString, OsString)> {
        let kept = variables.iter().filter(|(name, _)| !is_secret(name) && name != address);
        let ours = [(key.into(), placeholder.into()), (address.into(), url.into())];
        kept.cloned().chain(ours).collect()
    }

    /// The names of the variables with the key and the address.
    pub fn names(&self) -> (&'static str, &'static str) {
        (self.key, self.address)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backends::cli;

    fn found(client: &str, model: &str, set: &[(&str, &str)]) -> Result<(String, String, bool), String> {
        let variables: Vec<(OsString, OsString)> =
            set.iter().map(|(name, value)| (name.into(), value.into())).collect();
        let client = cli::find(client).ok_or("no such client")?;
        let held = HeldKey::find(client, model, &variables)?;
        Ok((held.target.key, held.target.url, held.usual))
    }

    #[test]
    fn s_12_a_key_in_a_variable_can_be_held_and_a_login_can_not() {
        let right = |url: &str, usual| Ok(("k".to_owned(), url.to_owned(), usual));
        for (client, model, set, wanted) in [
            ("claude", "", &[("ANTHROPIC_API_KEY", "k")][..], right("https://api.anthropic.com", true)),
            (
                "claude",
                "opus",
                &[("ANTHROPIC_AUTH_TOKEN", "k"), ("ANTHROPIC_BASE_URL", "http://127.0.0.1:1")],
                right("http://127.0.0.1:1", false),
            ),
            (
                "codex",
                "",
                &[("OPENAI_API_KEY", "k"), ("CODEX_API_KEY", "")],
                right("https://api.openai.com/v1", true),
            ),
            ("goose", "anthropic/x", &[("ANTHROPIC_API_KEY", "k")], right("https://api.anthropic.com", true)),
            (
                "goose",
                "",
                &[("OPENAI_API_KEY", "k"), ("GOOSE_PROVIDER", "openai")],
                right("https://api.openai.com", true),
            ),
        ] {
            assert_eq!(found(client, model, set), wanted, "{client} {set:?}");
        }
        for (client, model, set, words) in [
            ("claude", "", &[("CLAUDE_CODE_OAUTH_TOKEN", "k")][..], "needs a key in ANTHROPIC_API_KEY"),
            ("goose", "groq/x", &[("GROQ_API_KEY", "k")], "other providers than openai and anthropic"),
            ("opencode", "anthropic/x", &[("ANTHROPIC_API_KEY", "k")], "does not work with opencode"),
            (
                "gemini",
                "",
                &[("GEMINI_API_KEY", "k"), ("GOOGLE_GENAI_USE_VERTEXAI", "true")],
                "does not work with Vertex AI",
            ),
        ] {
            let why = found(client, model, set).err().unwrap_or_default();
            assert!(why.contains(words) && why.contains("set sandbox.keys to agent"), "{client}: {why}");
        }
    }

    #[test]
    fn s_12_no_secret_is_left_among_the_variables() {
        let variables: Vec<(OsString, OsString)> = [
            ("HOME", "/u"),
            ("ANTHROPIC_API_KEY", "real"),
            ("CLAUDE_CODE_OAUTH_TOKEN", "real"),
            ("ANTHROPIC_BASE_URL", "https://example.org"),
            ("OPENCODE_CONFIG_CONTENT", "real"),
        ]
        .iter()
        .map(|(name, value)| (name.into(), value.into()))
        .collect();
        let names = ("ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL");
        let replaced = HeldKey::replaced(names, &variables, "ours", "http://127.0.0.1:9");
        let shown: Vec<String> =
            replaced.iter().map(|(name, value)| format!("{}={}", name.display(), value.display())).collect();
        assert_eq!(shown, ["HOME=/u", "ANTHROPIC_API_KEY=ours", "ANTHROPIC_BASE_URL=http://127.0.0.1:9"]);
    }
}
