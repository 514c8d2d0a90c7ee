//! What agents need besides their working copy: their program, their login and settings, and the hosts of their model.
//! Everything else of the user's stays out of their sight.
//!
//! One line in `KNOWN` per client. Command lines (`cmd:` and `acp:`) are known by the names in them; what else they
//! need is named by the user in `sandbox.read`, `sandbox.write` and `sandbox.hosts`.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use super::cli::{LinkedFile, Rest};
use super::{AgentBackend, Invocation};
use crate::platform::files as os;
use crate::sandbox::policy::is_plain;
use crate::sandbox::proxy;

/// Names and values.
type Variables<'a> = &'a [(OsString, OsString)];

/// What one agent needs, all of it paths that are there.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AgentNeeds {
    pub readable: Vec<PathBuf>,
    /// Logins, which a client renews.
    pub writable: Vec<PathBuf>,
    /// Logins and settings that are linked into a home of its own: (the user's file, its name below a home).
    pub logins: Vec<(PathBuf, String)>,
    pub settings: Vec<(PathBuf, String)>,
    /// Hosts of its model in the internet.
    pub hosts: Vec<String>,
    /// Where the user says that its model is, which may be on this machine.
    pub configured: Vec<(String, u16)>,
    /// It builds a sandbox of its own.
    pub own_sandbox: bool,
}

/// What needs follow from.
#[derive(Debug, Clone, Copy)]
pub struct NeedsInputs<'a> {
    /// What the agent's environment holds, and what of the user's belongs to its client.
    pub variables: Variables<'a>,
    /// The logins that its client links.
    pub linked: &'a [LinkedFile],
    /// This program.
    pub me: &'a Path,
    pub checkout: &'a Path,
    pub state: &'a Path,
}

/// A client, by the word that its programs have in their names.
struct KnownAgent {
    name: &'static str,
    hosts: &'static [&'static str],
    /// Below the home. They are renewed.
    login: &'static [&'static str],
    /// Below the home, for a client that is started by a command line of the user's.
    settings: &'static [&'static str],
    own_sandbox: bool,
    /// It asks one of many providers.
    any_provider: bool,
}

const KNOWN: [KnownAgent; 5] = [
    KnownAgent {
        name: "claude",
        hosts: &["api.anthropic.com", "console.anthropic.com", "platform.claude.com", "claude.ai"],
        login: &[".claude/.credentials.json"],
        settings: &[".claude/settings.json"],
        own_sandbox: false,
        any_provider: false,
    },
    KnownAgent {
        name: "codex",
        hosts: &["api.openai.com", "chatgpt.com", "auth.openai.com"],
        login: &[".codex/auth.json"],
        settings: &[".codex/config.toml"],
        own_sandbox: true,
        any_provider: false,
    },
    KnownAgent {
        name: "gemini",
        hosts: &[
            "generativelanguage.googleapis.com",
            "cloudcode-pa.googleapis.com",
            "aiplatform.googleapis.com",
            "oauth2.googleapis.com",
            "www.googleapis.com",
        ],
        login: &[".gemini/oauth_creds.json", ".gemini/google_accounts.json"],
        settings: &[".gemini/settings.json"],
        own_sandbox: false,
        any_provider: false,
    },
    KnownAgent {
        name: "opencode",
        hosts: &[],
        login: &[".local/share/opencode/auth.json"],
        settings: &[
            ".config/opencode/opencode.json",
            ".config/opencode/opencode.jsonc",
            ".local/state/opencode/model.json",
        ],
        own_sandbox: false,
        any_provider: true,
    },
    KnownAgent {
        name: "goose",
        hosts: &[],
        login: &[".config/goose/secrets.yaml"],
        settings: &[".config/goose/config.yaml"],
        own_sandbox: false,
        any_provider: true,
    },
];

/// Providers by the name that stands before a model, and their hosts.
const PROVIDERS: [(&str, &[&str]); 12] = [
    ("anthropic", &["api.anthropic.com", "console.anthropic.com", "platform.claude.com"]),
    ("openai", &["api.openai.com", "auth.openai.com", "chatgpt.com"]),
    ("google", &["generativelanguage.googleapis.com", "oauth2.googleapis.com"]),
    ("gemini", &["generativelanguage.googleapis.com", "oauth2.googleapis.com"]),
    ("groq", &["api.groq.com"]),
    ("openrouter", &["openrouter.ai"]),
    ("xai", &["api.x.ai"]),
    ("deepseek", &["api.deepseek.com"]),
    ("mistral", &["api.mistral.ai"]),
    ("opencode", &["opencode.ai"]),
    ("github-copilot", &["api.github.com", "api.githubcopilot.com", "*.githubcopilot.com"]),
    ("ollama", &[]),
];

/// Ends of the names of variables that say where a model is.
const ADDRESSES: [&str; 4] = ["_BASE_URL", "_HOST", "_API_BASE", "_ENDPOINT"];

/// Words before an address in a settings file by which it is where a model is.
const ADDRESS_KEYS: [&str; 4] = ["base_url", "baseurl", "host", "endpoint"];

/// Files that hold credentials, by the variable that names them.
const CREDENTIAL_FILES: [&str; 2] = ["GOOGLE_APPLICATION_CREDENTIALS", "OPENCODE_CONFIG"];

/// Where Ollama is unless somebody says otherwise.
const OLLAMA: u16 = 11434;

/// Programs that are called by many names and do what the name says: they are not to be called by their own.
const SHIMS: [&str; 5] = ["volta-shim", "mise", "asdf", "proto-shim", "busybox"];

/// Scripts beside a script that are shown.
const SCRIPTS_AT_MOST: usize = 64;

/// Links that lead from one to the next; a circle has no end.
const LINKS_AT_MOST: usize = 40;

/// The longest settings file that is looked through.
const LONGEST: u64 = 1024 * 1024;

/// What an agent needs.
pub fn of(agent: &AgentBackend, inputs: NeedsInputs<'_>) -> AgentNeeds {
    let view = View::new(inputs);
    let mut needs = AgentNeeds { readable: vec![inputs.me.to_path_buf()], ..AgentNeeds::default() };
    match agent {
        AgentBackend::Script(path) | AgentBackend::Sim(path) => {
            needs.readable.push(path.clone());
            return needs;
        }
        AgentBackend::Cmd(command) => view.command(command, &mut needs),
        AgentBackend::Cli(client, command) if client.rest == Rest::Command => {
            view.command(command, &mut needs);
        }
        AgentBackend::Cli(client, model) => view.client(client.name, client.program, model, &mut needs),
    }
    if let Some(Ok(choice)) = agent.settled(inputs.variables) {
        needs.configured.extend(proxy::of_url(&choice.place.url));
    }
    view.variables(&mut needs);
    let there = |path: &PathBuf| is_plain(path) && path.exists();
    let linked = inputs.linked.iter().map(|linked| linked.from.clone());
    needs.writable.extend(linked.chain(needs.logins.iter().map(|(path, _)| path.clone())));
    needs.readable.extend(needs.settings.iter().map(|(path, _)| path.clone()));
    needs.readable.retain(there);
    needs.writable.retain(there);
    needs
}

/// The program by the path at which it is really found: links on the way there are not visible within.
pub fn by_its_path(invocation: &mut Invocation, variables: Variables<'_>) {
    let found = find_program(&invocation.program, variables);
    let Some(real) = found.and_then(|found| found.canonicalize().ok()) else { return };
    if !real.file_name().is_some_and(|name| SHIMS.iter().any(|shim| name == *shim)) {
        invocation.program = real.into_os_string();
    }
}

fn value<'a>(variables: Variables<'a>, wanted: &str) -> Option<&'a OsStr> {
    let found = variables.iter().rev().find(|(name, value)| name == wanted && !value.is_empty());
    found.map(|(_, value)| value.as_os_str())
}

fn find_program(program: &OsStr, variables: Variables<'_>) -> Option<PathBuf> {
    let path = Path::new(program);
    if path.is_absolute() {
        return Some(path.to_path_buf());
    }
    let folders = std::env::split_paths(value(variables, "PATH")?).filter(|folder| folder.is_absolute());
    folders.map(|folder| folder.join(path)).find(|program| program.is_file())
}

/// The user's side of things.
struct View<'a> {
    inputs: NeedsInputs<'a>,
    home: Option<PathBuf>,
}

impl<'a> View<'a> {
    fn new(inputs: NeedsInputs<'a>) -> View<'a> {
        let home = value(inputs.variables, "HOME").map(PathBuf::from).filter(|home| is_plain(home));
        View { inputs, home }
    }

    fn client(&self, name: &str, program: &str, model: &str, needs: &mut AgentNeeds) {
        if let Some(found) = find_program(OsStr::new(program), self.inputs.variables) {
            self.show(&found, needs);
        }
        if let Some(known) = KNOWN.iter().find(|known| known.name == name) {
            self.known(known, model, needs);
        }
    }

    fn known(&self, known: &KnownAgent, model: &str, needs: &mut AgentNeeds) {
        needs.own_sandbox |= known.own_sandbox;
        needs.hosts.extend(known.hosts.iter().map(|host| (*host).to_owned()));
        if known.any_provider {
            let set = value(self.inputs.variables, "GOOSE_PROVIDER").and_then(OsStr::to_str);
            let named = model.split_once('/').map(|(provider, _)| provider).or(set).unwrap_or_default();
            let is_named = |(provider, _): &&(&str, &[&str])| *provider == named;
            let known = PROVIDERS.iter().any(|row| is_named(&row));
            // A provider of the user's own has its address in the settings.
            let rows = PROVIDERS.iter().filter(|row| is_named(row) || (named.is_empty() && !known));
            needs.hosts.extend(rows.flat_map(|(_, hosts)| hosts.iter().map(|host| (*host).to_owned())));
            if named == "ollama" {
                needs.configured.push(("localhost".to_owned(), OLLAMA));
            }
        }
        if known.name == "gemini"
            && let Some(region) =
                value(self.inputs.variables, "GOOGLE_CLOUD_LOCATION").and_then(OsStr::to_str)
        {
            needs.hosts.push(format!("{region}-aiplatform.googleapis.com"));
        }
    }

    /// The files that a command line names, and the clients it starts.
    fn command(&self, command: &str, needs: &mut AgentNeeds) {
        needs.own_sandbox = true;
        let words = command.split_whitespace().map(|word| word.trim_matches(['"', '\'', ';', '(', ')']));
        let mut first = true;
        for word in words.filter(|word| !word.is_empty()) {
            let below = word.strip_prefix("~/").or_else(|| word.strip_prefix("$HOME/"));
            let path = match (below, &self.home) {
                (Some(below), Some(home)) => home.join(below),
                _ if first => find_program(OsStr::new(word), self.inputs.variables).unwrap_or_default(),
                _ => PathBuf::from(word),
            };
            first = false;
            if !path.is_absolute() || !path.exists() {
                continue;
            }
            self.show(&path, needs);
            if let Some(below) = below {
                needs.settings.push((path.clone(), below.to_owned()));
            }
            let real = path.canonicalize().unwrap_or_default();
            for known in &KNOWN {
                let named = |path: &Path| {
                    path.file_name().and_then(OsStr::to_str).is_some_and(|name| name.contains(known.name))
                };
                if named(&path) || named(&real) {
                    self.known(known, "", needs);
                    needs.logins.extend(known.login.iter().filter_map(|below| self.in_home(below)));
                    needs.settings.extend(known.settings.iter().filter_map(|below| self.in_home(below)));
                }
            }
        }
        for (path, _) in &needs.settings {
            let text = std::fs::metadata(path).is_ok_and(|meta| meta.is_file() && meta.len() <= LONGEST);
            let text = text.then(|| std::fs::read_to_string(path).unwrap_or_default());
            needs.configured.extend(text.iter().flat_map(|text| addresses(text)));
        }
    }

    /// A file of the user's home, where it is.
    fn in_home(&self, below: &str) -> Option<(PathBuf, String)> {
        let moved = [(".config/", "XDG_CONFIG_HOME"), (".local/share/", "XDG_DATA_HOME")];
        let moved = moved.iter().find_map(|(prefix, variable)| {
            let rest = below.strip_prefix(prefix)?;
            value(self.inputs.variables, variable).map(|folder| Path::new(folder).join(rest))
        });
        let path = moved.or_else(|| self.home.as_ref().map(|home| home.join(below)))?;
        path.is_file().then(|| (path, below.to_owned()))
    }

    /// Addresses and files that the user's variables name.
    fn variables(&self, needs: &mut AgentNeeds) {
        for (name, value) in self.inputs.variables {
            let (Some(name), Some(text)) = (name.to_str(), value.to_str()) else { continue };
            if ADDRESSES.iter().any(|end| name.ends_with(end)) {
                needs.configured.extend(proxy::of_url(text));
            }
            if name == "OPENCODE_CONFIG_CONTENT" {
                needs.configured.extend(addresses(text));
            }
            if CREDENTIAL_FILES.contains(&name) && Path::new(text).is_file() {
                needs.readable.push(text.into());
                let text = if name == "OPENCODE_CONFIG" { std::fs::read_to_string(text).ok() } else { None };
                needs.configured.extend(text.iter().flat_map(|text| addresses(text)));
            }
        }
        needs.configured.sort();
        needs.configured.dedup();
    }

    /// A program or file, with the folder it belongs to where that says nothing about the user.
    fn show(&self, path: &Path, needs: &mut AgentNeeds) {
        let mut links = vec![path.to_path_buf()];
        // A link inside of a folder that is shown is a link there, too: every step of the way has to be visible.
        while let Some(next) = links.last().filter(|_| links.len() < LINKS_AT_MOST).and_then(|link| {
            let target = std::fs::read_link(link).ok()?;
            Some(link.parent()?.join(target))
        }) {
            links.push(next);
        }
        links.push(path.canonicalize().unwrap_or_default());
        for link in links {
            // A target such as `../lib/x` is not written plainly.
            let folder = link.parent().and_then(|folder| folder.canonicalize().ok());
            let plain = folder.zip(link.file_name()).map(|(folder, name)| folder.join(name));
            for path in [Some(link.clone()), plain].into_iter().flatten().filter(|path| is_plain(path)) {
                let shown = self.whole(&path);
                if shown == path {
                    needs.readable.extend(self.beside(&path));
                }
                needs.readable.push(shown);
            }
        }
        needs.readable.sort();
        needs.readable.dedup();
    }

    fn whole(&self, path: &Path) -> PathBuf {
        let packages = path.ancestors().filter(|above| above.ends_with("node_modules")).last();
        let above = if path.is_dir() { Some(path) } else { packages.or_else(|| path.parent()) };
        above.filter(|folder| self.is_harmless(folder)).unwrap_or(path).to_path_buf()
    }

    /// The scripts beside a script, where the whole folder can't be shown: it may need them. Never those of the home, nor
    /// of a folder that everybody can write.
    fn beside(&self, script: &Path) -> Vec<PathBuf> {
        let (Some(folder), Some(kind)) = (script.parent(), script.extension()) else { return Vec::new() };
        let shared = std::fs::metadata(folder).map_or(true, |meta| os::mode(&meta) & 0o002 != 0);
        let NeedsInputs { checkout, state, .. } = self.inputs;
        let within = folder.starts_with(checkout) || folder.starts_with(state);
        if shared || within || self.home.as_deref() == Some(folder) {
            return Vec::new();
        }
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
        let same =
            entries.filter(|path| path.extension() == Some(kind) && path.is_file() && !path.is_symlink());
        same.take(SCRIPTS_AT_MOST).collect()
    }

    /// Neither the home nor the checkout, nor what is above them, nor a folder that everybody uses.
    fn is_harmless(&self, folder: &Path) -> bool {
        let NeedsInputs { checkout, state, .. } = self.inputs;
        let kept = [Some(checkout), Some(state), self.home.as_deref()];
        let opens = kept.iter().flatten().any(|kept| kept.starts_with(folder));
        let within = folder.starts_with(checkout) || folder.starts_with(state);
        let shared = [Path::new("/var/tmp"), Path::new("/dev/shm"), &std::env::temp_dir()].contains(&folder);
        is_plain(folder) && folder.components().count() > 2 && !opens && !within && !shared
    }
}

/// The addresses in the text of a settings file that are said to be those of a model.
fn addresses(text: &str) -> Vec<(String, u16)> {
    let begins = text.match_indices("http").map(|(at, _)| at);
    let found = begins.filter_map(|at| {
        let (before, rest) = text.split_at_checked(at)?;
        let url = rest.split(['"', '\'', ' ', '\n', ',', '}']).next().filter(|url| url.contains("://"))?;
        let line = before.rsplit(['\n', ',', '{']).next().unwrap_or_default().to_ascii_lowercase();
        ADDRESS_KEYS.iter().any(|key| line.contains(key)).then(|| proxy::of_url(url))?
    });
    found.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    type Result<T = ()> = std::result::Result<T, Box<dyn std::error::Error>>;

    /// A home with a client and its login, and the needs of an agent there.
    fn needs_of(
        spec: &str,
        make: impl Fn(&Path) -> std::io::Result<Vec<(&'static str, String)>>,
    ) -> Result<(PathBuf, AgentNeeds)> {
        let folder = tempfile::tempdir()?.keep();
        let home = folder.join("home");
        std::fs::create_dir_all(home.join("checkout"))?;
        let mut variables: Vec<(OsString, OsString)> =
            make(&home)?.into_iter().map(|(name, value)| (name.into(), value.into())).collect();
        variables.push(("HOME".into(), home.clone().into()));
        let agent =
            AgentBackend::parse(&spec.replace("{home}", &home.display().to_string()), Path::new("/"))?;
        let inputs = NeedsInputs {
            variables: &variables,
            linked: &[],
            me: Path::new("/bin/sh"),
            checkout: &home.join("checkout"),
            state: &home.join("state"),
        };
        let needs = of(&agent, inputs);
        std::fs::remove_dir_all(&folder)?;
        Ok((home, needs))
    }

    #[test]
    fn s_12_a_command_shows_the_folders_of_its_files_and_never_the_home() -> Result {
        let (home, needs) = needs_of("cmd:sh {home}/agent.sh ~/tools/more.py", |home| {
            std::fs::create_dir(home.join("tools"))?;
            std::fs::write(home.join("agent.sh"), "")?;
            std::fs::write(home.join("tools/more.py"), "")?;
            Ok(Vec::new())
        })?;
        let readable: Vec<_> = needs.readable.iter().filter(|path| path.starts_with(&home)).collect();
        assert!(readable.contains(&&home.join("agent.sh")), "{readable:?}");
        assert!(readable.contains(&&home.join("tools")), "{readable:?}");
        assert!(!readable.contains(&&home), "{readable:?}");
        assert_eq!(needs.settings, [(home.join("tools/more.py"), "tools/more.py".to_owned())]);
        assert_eq!((needs.hosts.len(), needs.configured.len()), (0, 0), "nobody to talk to");
        Ok(())
    }

    #[test]
    fn s_12_a_script_above_the_home_finds_the_scripts_beside_it() -> Result {
        let (home, needs) = needs_of("cmd:sh {home}/../agent.sh {home}/mine.sh", |home| {
            for name in ["../agent.sh", "../maker.sh", "../notes.txt", "mine.sh", "other.sh"] {
                std::fs::write(home.join(name), "")?;
            }
            Ok(Vec::new())
        })?;
        let shown = |name: &str| needs.readable.iter().any(|path| path.ends_with(name));
        assert!(shown("agent.sh") && shown("maker.sh") && shown("mine.sh"), "{:?}", needs.readable);
        assert!(!shown("notes.txt") && !shown("other.sh"), "{:?}", needs.readable);
        let above = home.parent().ok_or("no folder")?;
        assert!(!needs.readable.iter().any(|path| path == above || *path == home), "{:?}", needs.readable);
        Ok(())
    }

    #[test]
    fn s_12_every_link_on_the_way_to_a_file_is_shown() -> Result {
        let (home, needs) = needs_of("cmd:sh {home}/one/agent {home}/one/circle", |home| {
            for folder in ["one", "two", "three"] {
                std::fs::create_dir(home.join(folder))?;
            }
            os::symlink("../two/agent", home.join("one/agent"))?;
            os::symlink(home.join("three/agent.sh"), home.join("two/agent"))?;
            os::symlink("circle", home.join("one/circle"))?;
            std::fs::write(home.join("three/agent.sh"), "")?;
            Ok(Vec::new())
        })?;
        for folder in ["one", "two", "three"] {
            assert!(needs.readable.contains(&home.join(folder)), "{folder}: {:?}", needs.readable);
        }
        Ok(())
    }

    #[test]
    fn s_12_a_client_in_a_command_line_brings_its_login_and_hosts() -> Result {
        let (home, needs) = needs_of("acp:{home}/bin/codex-acp --fast", |home| {
            std::fs::create_dir_all(home.join("bin"))?;
            std::fs::create_dir_all(home.join(".codex"))?;
            std::fs::write(home.join("bin/codex-acp"), "")?;
            std::fs::write(home.join(".codex/auth.json"), "{}")?;
            std::fs::write(home.join(".codex/config.toml"), "base_url = \"http://127.0.0.1:99/v1\"\n")?;
            Ok(Vec::new())
        })?;
        assert_eq!(needs.writable, [home.join(".codex/auth.json")]);
        assert!(needs.hosts.contains(&"api.openai.com".to_owned()), "{:?}", needs.hosts);
        assert_eq!(needs.configured, [("127.0.0.1".to_owned(), 99)]);
        assert!(needs.own_sandbox);
        Ok(())
    }

    #[test]
    fn s_12_a_named_provider_is_the_only_one_and_an_address_is_the_users() -> Result {
        let address = |_: &Path| Ok(vec![("OPENAI_HOST", "http://10.0.0.7:8080".to_owned())]);
        let (_, needs) = needs_of("goose:groq/some-model", address)?;
        assert_eq!(needs.hosts, ["api.groq.com"]);
        assert_eq!(needs.configured, [("10.0.0.7".to_owned(), 8080)]);
        let (_, needs) = needs_of("opencode:local/scripted", |_| {
            let text = r#"{"$schema":"https://opencode.ai/x","provider":{"l":{"options":{"baseURL":"http://[::1]:7/v1"}}}}"#;
            Ok(vec![("OPENCODE_CONFIG_CONTENT", text.to_owned())])
        })?;
        assert_eq!((needs.hosts.len(), needs.configured), (0, vec![("::1".to_owned(), 7)]));
        Ok(())
    }
}
