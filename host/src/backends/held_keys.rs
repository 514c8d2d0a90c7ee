//! Which clients can do without their key (`sandbox.keys: proxy`): those that take it from a variable and can be sent to
//! another address by one, and OpenCode, which has both in its settings. They get a placeholder and the address of our
//! proxy, which has the key.

use std::ffi::{OsStr, OsString};

use serde_json::{Value, json};

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
    pub way: KeyWay,
}

/// How a client is led to our proxy.
pub enum KeyWay {
    /// By the variables of its key and its address.
    Variables { key: &'static str, address: &'static str },
    /// By the settings of OpenCode, without the key and the address of this provider.
    Settings { provider: String, settings: Value },
}

/// Providers that OpenCode knows without settings: their key, their address, and that address if it is not set.
const OF_OPENCODE: [(&str, &str, &str, &str); 2] = [
    ("anthropic", "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "https://api.anthropic.com/v1"),
    ("openai", "OPENAI_API_KEY", "OPENAI_BASE_URL", "https://api.openai.com/v1"),
];

/// Options of a provider that hold no secret. Others, such as headers, may.
const OPTIONS: [&str; 4] = ["apiKey", "baseURL", "timeout", "setCacheKey"];

/// The variable with OpenCode's settings.
const SETTINGS: &str = "OPENCODE_CONFIG_CONTENT";

const REMEDY: &str = "set sandbox.keys to agent to give it its key or login";

/// Whether a variable may hold a secret. Those that set git's options are ours.
pub fn is_secret(name: &OsStr) -> bool {
    let is_one = |name: &str| SECRETS.iter().any(|part| name.to_ascii_uppercase().contains(part));
    name.to_str().is_none_or(|name| is_one(name) && !name.starts_with("GIT_CONFIG_"))
}

impl HeldKey {
    /// The key of a client, or why our proxy can't hold it, in words for the report.
    pub fn find(client: &Client, model: &str, variables: &[(OsString, OsString)]) -> Result<HeldKey, String> {
        let value = |wanted: &str| {
            let found = variables.iter().find(|(name, value)| name == wanted && !value.is_empty());
            found.and_then(|(_, value)| value.to_str())
        };
        if client.name == "opencode" {
            return of_opencode(model, &value);
        }
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
            return Err(format!("sandbox.keys is proxy, which does not work {which}; {REMEDY}"));
        };
        if client.name == "gemini" && value("GOOGLE_GENAI_USE_VERTEXAI").is_some() {
            return Err(format!("sandbox.keys is proxy, which does not work with Vertex AI; {REMEDY}"));
        }
        let Some((key, secret)) = row.keys.iter().find_map(|name| Some((*name, value(name)?))) else {
            let wanted = row.keys.join(" or ");
            return Err(format!("sandbox.keys is proxy, which needs a key in {wanted}; set it, or {REMEDY}"));
        };
        let own = value(row.address);
        let url = own.unwrap_or(row.usual).to_owned();
        let target = KeyTarget { key: secret.to_owned(), url };
        Ok(HeldKey { target, usual: own.is_none(), way: KeyWay::Variables { key, address: row.address } })
    }
}

impl KeyWay {
    /// The variables with a placeholder in place of the key and another address, and without any other secret.
    pub fn replaced(
        &self,
        variables: &[(OsString, OsString)],
        placeholder: &str,
        url: &str,
    ) -> Vec<(OsString, OsString)> {
        let ours: Vec<(OsString, OsString)> = match self {
            Self::Variables { key, address } => {
                vec![(key.into(), placeholder.into()), (address.into(), url.into())]
            }
            Self::Settings { provider, settings } => {
                let mut settings = settings.clone();
                let options = &mut settings["provider"][provider]["options"];
                options["apiKey"] = placeholder.into();
                options["baseURL"] = url.into();
                vec![(SETTINGS.into(), settings.to_string().into())]
            }
        };
        let kept = |name: &OsStr| !is_secret(name) && ours.iter().all(|(known, _)| known != name);
        let kept: Vec<(OsString, OsString)> =
            variables.iter().filter(|(name, _)| kept(name)).cloned().collect();
        kept.into_iter().chain(ours).collect()
    }

    /// Where the user has the key and the address.
    pub fn source(&self) -> String {
        match self {
            Self::Variables { key, address } => format!("{key}, {address}"),
            Self::Settings { provider, .. } => format!("provider {provider} of {SETTINGS}"),
        }
    }
}

/// The key of OpenCode's provider: in its settings, or in the variable that they or its provider name.
fn of_opencode<'a>(model: &str, value: &dyn Fn(&str) -> Option<&'a str>) -> Result<HeldKey, String> {
    let no = |why: &str| Err(format!("sandbox.keys is proxy, which {why}; {REMEDY}"));
    if value("OPENCODE_CONFIG").is_some() {
        return no("does not work with OPENCODE_CONFIG (use OPENCODE_CONFIG_CONTENT)");
    }
    let all = serde_json::from_str::<Value>(value(SETTINGS).unwrap_or("{}")).unwrap_or_default();
    if !all.is_object() {
        return no("can't read OPENCODE_CONFIG_CONTENT as JSON");
    }
    let named = if model.is_empty() { all["model"].as_str().unwrap_or_default() } else { model };
    let provider = named.split('/').next().unwrap_or_default();
    let known = OF_OPENCODE.iter().find(|(name, ..)| *name == provider);
    let row = Some(&all["provider"][provider]).filter(|row| !row.is_null());
    let row = row.cloned().unwrap_or_else(|| json!({}));
    let is_settings = |value: &Value| value.is_null() || value.is_object();
    if !row.is_object() || !is_settings(&row["options"]) {
        return no(&format!("can't read the settings of provider {provider} in OPENCODE_CONFIG_CONTENT"));
    }
    let options = row["options"].as_object().cloned().unwrap_or_default();
    if let Some(other) = options.keys().find(|name| !OPTIONS.contains(&name.as_str())) {
        return no(&format!("does not work with the option {other} of provider {provider}"));
    }
    let written = options.get("apiKey").and_then(Value::as_str);
    let variable = written.and_then(|text| text.strip_prefix("{env:")?.strip_suffix('}'));
    let written = written.filter(|text| !text.contains('{'));
    let key = match (variable, written) {
        (Some(name), _) => value(name),
        (None, Some(text)) => Some(text),
        (None, None) => known.and_then(|(_, key, ..)| value(key)),
    };
    let Some(key) = key else {
        return no("needs the key of opencode's provider in ANTHROPIC_API_KEY, OPENAI_API_KEY or \
                   OPENCODE_CONFIG_CONTENT, and its name before the model (opencode:<provider>/<model>)");
    };
    let own = options.get("baseURL").and_then(Value::as_str);
    let own = own.or_else(|| known.and_then(|(_, _, address, _)| value(address)));
    let Some(url) = own.or(known.map(|(.., usual)| *usual)) else {
        return no(&format!("needs the baseURL of provider {provider} in OPENCODE_CONFIG_CONTENT"));
    };
    // Other providers and tools may have secrets of their own there.
    let mut settings = json!({"provider": {provider: row}});
    for name in ["model", "small_model"] {
        if let Some(text) = all[name].as_str() {
            settings[name] = text.into();
        }
    }
    let target = KeyTarget { key: key.to_owned(), url: url.to_owned() };
    let way = KeyWay::Settings { provider: provider.to_owned(), settings };
    Ok(HeldKey { target, usual: own.is_none(), way })
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
                "opencode",
                "anthropic/x",
                &[("ANTHROPIC_API_KEY", "k")],
                right("https://api.anthropic.com/v1", true),
            ),
            (
                "opencode",
                "",
                &[
                    ("OWN", "k"),
                    (
                        "OPENCODE_CONFIG_CONTENT",
                        r#"{"model":"own/x","provider":{"own":{"options":{"apiKey":"{env:OWN}","baseURL":"http://[::1]:7/v1"}}}}"#,
                    ),
                ],
                right("http://[::1]:7/v1", false),
            ),
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
            ("opencode", "groq/x", &[("GROQ_API_KEY", "k")], "needs the key of opencode's provider"),
            (
                "opencode",
                "openai/x",
                &[("OPENCODE_CONFIG", "/u/c.json")],
                "does not work with OPENCODE_CONFIG",
            ),
            (
                "opencode",
                "own/x",
                &[("OPENCODE_CONFIG_CONTENT", r#"{"provider":{"own":{"options":{"headers":{"a":"b"}}}}}"#)],
                "does not work with the option headers",
            ),
            (
                "opencode",
                "own/x",
                &[("OPENCODE_CONFIG_CONTENT", r#"{"provider":{"own":{"options":"x"}}}"#)],
                "can't read the settings of provider own",
            ),
            ("opencode", "own/x", &[("OPENCODE_CONFIG_CONTENT", "[")], "can't read OPENCODE_CONFIG_CONTENT"),
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
        let way = KeyWay::Variables { key: "ANTHROPIC_API_KEY", address: "ANTHROPIC_BASE_URL" };
        let replaced = way.replaced(&variables, "ours", "http://127.0.0.1:9");
        let shown: Vec<String> =
            replaced.iter().map(|(name, value)| format!("{}={}", name.display(), value.display())).collect();
        assert_eq!(shown, ["HOME=/u", "ANTHROPIC_API_KEY=ours", "ANTHROPIC_BASE_URL=http://127.0.0.1:9"]);
    }

    #[test]
    fn s_12_what_every_command_gets_is_no_secret() {
        for (name, _) in crate::world::allowed_env([], &[]) {
            assert!(!is_secret(&name), "{}", name.display());
        }
        assert!(is_secret(OsStr::new("GITHUB_TOKEN")) && !is_secret(OsStr::new("PATH")));
    }

    #[test]
    fn s_12_settings_of_opencode_keep_one_provider_and_no_secret() -> Result<(), String> {
        let settings = json!({
            "small_model": "own/x",
            "mcp": {"m": {"headers": {"a": "real"}}},
            "provider": {
                "own": {"npm": "n", "options": {"apiKey": "real", "baseURL": "http://[::1]:7/v1"}},
                "other": {"options": {"apiKey": "real"}},
            },
        });
        let variables = [(OsString::from(SETTINGS), OsString::from(settings.to_string()))];
        let client = cli::find("opencode").ok_or("no such client")?;
        let held = HeldKey::find(client, "own/x", &variables)?;
        let replaced = held.way.replaced(&variables, "ours", "http://127.0.0.1:9/v1");
        let [(name, value)] = replaced.as_slice() else { return Err(format!("{replaced:?}")) };
        assert_eq!(name, SETTINGS);
        let value: Value =
            serde_json::from_str(&value.to_string_lossy()).map_err(|error| error.to_string())?;
        let options = json!({"apiKey": "ours", "baseURL": "http://127.0.0.1:9/v1"});
        let wanted = json!({"small_model": "own/x", "provider": {"own": {"npm": "n", "options": options}}});
        assert_eq!(value, wanted);
        Ok(())
    }
}
