//! The ways a message takes. Each has a limit, and none lets text of an agent become a command, an option or markup.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::time::Duration;

use archeflow_core::projections::notice::{Notice, NoticeEvent};
use archeflow_core::settings::{NotifySettings, TerminalMessages};
use archeflow_core::text;
use ring::hmac;

use super::program;
use crate::config::kinds::host_only;
use crate::model_agent::http::Http;
use crate::platform::files as os;
use crate::sandbox::policy::below_home;
use crate::store::files;
use crate::{clock, failpoint};

/// The longest a channel may take for one message.
const LIMIT: Duration = Duration::from_secs(5);
/// The longest key for signatures.
const KEY_AT_MOST: u64 = 4_096;
const MAC: bool = cfg!(target_os = "macos");

/// What the channels need of the process they are in.
#[derive(Debug, Clone)]
pub struct NotifyEnv {
    pub variables: Vec<(OsString, OsString)>,
    /// Where programs are started: a folder that no repository can prepare.
    pub dir: PathBuf,
    /// Writes to the terminal; nothing if standard error is none.
    pub terminal: Option<fn(&str)>,
}

impl NotifyEnv {
    fn variable(&self, name: &str) -> Option<&OsStr> {
        let found = self.variables.iter().find(|(known, value)| known == name && !value.is_empty());
        found.map(|(_, value)| value.as_os_str())
    }
}

/// A way that is configured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Channel {
    Desktop,
    Terminal(TerminalMessages),
    Webhook { url: String, secret: Option<String> },
    Ntfy { url: String },
    Command(String),
}

/// A message as it leaves.
#[derive(Debug, Clone)]
pub(super) struct Message {
    notice: Notice,
    json: Vec<u8>,
    link: Option<String>,
}

impl Message {
    pub(super) fn new(notice: Notice, link: Option<String>, now: u64) -> Message {
        let mut object = serde_json::json!(notice);
        object["at"] = clock::written(now).into();
        if let Some(link) = &link {
            object["link"] = link.as_str().into();
        }
        Message { json: object.to_string().into_bytes(), notice, link }
    }
}

impl Channel {
    pub(super) fn all(settings: &NotifySettings) -> Vec<Channel> {
        let terminal = (settings.terminal != TerminalMessages::Off).then_some(settings.terminal);
        let webhook = settings.webhook.clone().map(|url| {
            let secret = settings.webhook_secret.clone();
            Channel::Webhook { url, secret }
        });
        let ntfy = settings.ntfy.clone().map(|url| Channel::Ntfy { url });
        let all = [
            settings.desktop.then_some(Channel::Desktop),
            terminal.map(Channel::Terminal),
            webhook,
            ntfy,
            settings.command.clone().map(Channel::Command),
        ];
        all.into_iter().flatten().collect()
    }

    pub(super) fn name(&self) -> &'static str {
        match self {
            Channel::Desktop => "desktop",
            Channel::Terminal(_) => "terminal",
            Channel::Webhook { .. } => "webhook",
            Channel::Ntfy { .. } => "ntfy",
            Channel::Command(_) => "command",
        }
    }

    /// Sends a message. An error is for a person and holds no secret.
    pub(super) fn send(&self, message: &Message, env: &NotifyEnv) -> Result<(), String> {
        match self {
            Channel::Desktop => desktop(&message.notice, MAC, &env.dir),
            Channel::Terminal(kind) => {
                let write = env.terminal.ok_or("standard error is no terminal")?;
                write(&escape(*kind, &message.notice, env.variable("TMUX").is_some()));
                Ok(())
            }
            Channel::Webhook { url, secret } => {
                let mut headers = vec![("content-type", "application/json".to_owned())];
                if let Some(secret) = secret {
                    headers.push(("x-archeflow-signature", signature(&key(secret, env)?, &message.json)));
                }
                post(url, &headers, &message.json, env)
            }
            Channel::Ntfy { url } => post(url, &ntfy_headers(message), message.notice.body().as_bytes(), env),
            Channel::Command(command) => {
                program::run("/bin/sh", &["-c", command], &message.json, &env.dir, limit())
            }
        }
    }
}

fn post(url: &str, headers: &[(&str, String)], body: &[u8], env: &NotifyEnv) -> Result<(), String> {
    let roots = env.variable("SSL_CERT_FILE").map(Path::new);
    let at = |why: String| format!("{}: {why}", host_only(url));
    let limit = limit();
    let http = Http::new(limit, roots, None).map_err(at)?;
    match http.post(url, headers, body, limit).map_err(at)? {
        200..=299 => Ok(()),
        300..=399 => Err(at("it redirects elsewhere, which is not followed".to_owned())),
        status => Err(at(format!("it answers with status {status}"))),
    }
}

fn limit() -> Duration {
    failpoint::notification_limit(LIMIT)
}

/// `sha256=` and the HMAC-SHA256 of what is sent, in hexadecimal.
fn signature(key: &[u8], body: &[u8]) -> String {
    let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), body);
    let hex: String = tag.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256={hex}")
}

/// The key that signs, from a variable or a file of the user's alone.
fn key(secret: &str, env: &NotifyEnv) -> Result<Vec<u8>, String> {
    let wrong = |why: &str| format!("`{secret}` (notify.webhook_secret) {why}");
    if !secret.starts_with(['/', '~']) {
        let value = env.variable(secret).ok_or_else(|| wrong("is not set in the environment"))?;
        return Ok(value.as_encoded_bytes().to_vec());
    }
    let path = below_home(secret, env.variable("HOME").map(Path::new));
    let found = std::fs::metadata(&path).map_err(|error| wrong(&format!("can't be read: {error}")))?;
    if os::mode(&found) & 0o077 != 0 {
        return Err(wrong("can be read by others; change that with chmod 600"));
    }
    let bytes = files::read_capped(&path, KEY_AT_MOST).map_err(|error| wrong(&error.to_string()))?;
    let bytes = bytes.trim_ascii().to_vec();
    if bytes.is_empty() { Err(wrong("is empty")) } else { Ok(bytes) }
}

fn ntfy_headers(message: &Message) -> Vec<(&'static str, String)> {
    let (priority, tags) = match message.notice.event {
        NoticeEvent::Decision => ("4", "question"),
        NoticeEvent::Break => ("4", "octagonal_sign"),
        NoticeEvent::Budget => ("4", "moneybag"),
        NoticeEvent::SprintDone => ("3", "white_check_mark"),
        NoticeEvent::Test => ("3", "test_tube"),
    };
    let ascii = |text: &str| text.chars().map(|c| if c.is_ascii() { c } else { '?' }).collect::<String>();
    let mut headers = vec![
        ("title", ascii(&message.notice.title)),
        ("priority", priority.to_owned()),
        ("tags", tags.to_owned()),
    ];
    headers.extend(message.link.clone().map(|link| ("click", link)));
    headers
}

/// OSC 9 has one text, OSC 777 a title and a text. tmux passes on only what is marked as meant for the terminal outside.
fn escape(kind: TerminalMessages, notice: &Notice, in_tmux: bool) -> String {
    let body = format!("{} {}", notice.question, notice.command);
    let written = match kind {
        TerminalMessages::Off => return String::new(),
        TerminalMessages::Osc9 => format!("\x1b]9;{}: {body}\x07", notice.title),
        TerminalMessages::Osc777 => {
            format!("\x1b]777;notify;{};{body}\x07", notice.title.replace(';', ","))
        }
    };
    if in_tmux { format!("\x1bPtmux;{}\x1b\\", written.replace('\x1b', "\x1b\x1b")) } else { written }
}

fn desktop(notice: &Notice, mac: bool, dir: &Path) -> Result<(), String> {
    let (program, args) = desktop_command(notice, mac);
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    program::run(program, &args, b"", dir, limit())
}

/// Text is an argument after the options, never a part of a script.
fn desktop_command(notice: &Notice, mac: bool) -> (&'static str, Vec<String>) {
    if mac {
        let script = [
            "on run words",
            "display notification (item 2 of words) with title (item 1 of words)",
            "end run",
        ];
        let script = script.into_iter().flat_map(|line| ["-e".to_owned(), line.to_owned()]);
        return ("osascript", script.chain([notice.title.clone(), notice.body()]).collect());
    }
    let urgency = match notice.event {
        NoticeEvent::SprintDone | NoticeEvent::Test => "normal",
        NoticeEvent::Decision | NoticeEvent::Break | NoticeEvent::Budget => "critical",
    };
    // The body is markup, and notify-send reads escapes such as \n in it first.
    let body = text::html(&notice.body()).replace('\\', "\\\\");
    let options = ["--app-name=archeflow".to_owned(), format!("--urgency={urgency}"), "--".to_owned()];
    ("notify-send", options.into_iter().chain([notice.title.clone(), body]).collect())
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn notice(question: &str) -> Notice {
        let mut notice = Notice::test();
        (notice.question, notice.command) = (question.to_owned(), "archeflow show r".to_owned());
        notice
    }

    fn env(variables: &[(&str, &str)]) -> NotifyEnv {
        let variables = variables.iter().map(|(name, value)| (name.into(), value.into())).collect();
        NotifyEnv { variables, dir: PathBuf::from("/"), terminal: None }
    }

    #[test]
    fn notify_the_signature_is_the_one_of_rfc_4231() {
        let signed = signature(b"Jefe", b"what do ya want for nothing?");
        assert_eq!(signed, "sha256=5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
    }

    #[test]
    fn notify_a_key_is_the_users_alone() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("key");
        std::fs::write(&file, "s3cret\n").unwrap();
        let mode = |mode| std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).unwrap();
        let known = env(&[("HOOK", "s3cret"), ("HOME", dir.path().to_str().unwrap()), ("EMPTY", "")]);
        mode(0o600);
        for right in ["HOOK", "~/key", file.to_str().unwrap()] {
            assert_eq!(key(right, &known), Ok(b"s3cret".to_vec()), "{right}");
        }
        mode(0o640);
        for (wrong, why) in [("OTHER", "is not set"), ("EMPTY", "is not set"), ("~/key", "chmod 600")] {
            let error = key(wrong, &known).unwrap_err();
            assert!(error.contains(why) && !error.contains("s3cret"), "{error}");
        }
        assert!(key("~/none", &known).unwrap_err().contains("can't be read"));
    }

    #[test]
    fn notify_hostile_text_stays_text() {
        let hostile = r#"<b>&"); do shell script "x" \033[2J -- --help"#;
        let (program, args) = desktop_command(&notice(hostile), false);
        assert_eq!(program, "notify-send");
        assert_eq!(args[..3], ["--app-name=archeflow", "--urgency=normal", "--"]);
        let body = &args[4];
        assert!(
            !body.contains('<') && body.contains("&lt;b&gt;&amp;") && body.contains(r"\\033[2J"),
            "{body}"
        );
        let (program, args) = desktop_command(&notice(hostile), true);
        assert_eq!((program, args.len()), ("osascript", 8));
        let script: String = args[..6].concat();
        assert!(!script.contains("shell script") && args[7].starts_with(hostile), "{args:?}");
        assert!(!args[6].starts_with('-'), "no option");
    }

    #[test]
    fn notify_terminals_get_one_sequence() {
        let notice = notice("Which; one?");
        let title = "archeflow: test message";
        let text = "Which; one? archeflow show r";
        let nine = format!("\x1b]9;{title}: {text}\x07");
        let rows = [
            (TerminalMessages::Osc9, false, nine.clone()),
            (TerminalMessages::Osc777, false, format!("\x1b]777;notify;{title};{text}\x07")),
            (TerminalMessages::Osc9, true, format!("\x1bPtmux;\x1b{nine}\x1b\\")),
        ];
        for (kind, in_tmux, expected) in rows {
            assert_eq!(escape(kind, &notice, in_tmux), expected);
        }
    }
}
