//! Where the user's toolchains and package caches are, and the variables by which they work read-only and offline.
//!
//! Only what holds programs and packages is named: never a file with credentials, and never a whole home.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::bwrap::SYSTEM;
use super::npm_cache::{self, NpmCache};
use super::policy::{PrivateFolders, is_plain};

/// What of the user's a build needs.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Toolchains {
    pub(super) readable: Vec<PathBuf>,
    pub(super) env: Vec<(OsString, OsString)>,
    /// The user's cache of npm, which is not used as it is.
    pub(super) npm_cache: Option<NpmCache>,
}

/// The variable that moves npm's cache.
const NPM_CACHE: &str = "npm_config_cache";

/// A tool's folder: the variable that moves it, where it is otherwise below the home, and what in it may be read (an
/// empty name is all of it).
struct ToolFolder {
    variable: &'static str,
    usual: &'static str,
    parts: &'static [&'static str],
    /// Whether the variable is set, so that the tool finds its folder although its home is another.
    told: bool,
}

const fn folder(
    variable: &'static str,
    usual: &'static str,
    parts: &'static [&'static str],
    told: bool,
) -> ToolFolder {
    ToolFolder { variable, usual, parts, told }
}

const FOLDERS: [ToolFolder; 31] = [
    folder("CARGO_HOME", ".cargo", &["bin", "registry", "git"], true),
    folder("RUSTUP_HOME", ".rustup", &[""], true),
    folder(NPM_CACHE, ".npm", &[npm_cache::STORE, npm_cache::INSTALLED], false),
    folder("YARN_CACHE_FOLDER", ".cache/yarn", &[""], true),
    folder("", ".yarn", &["berry", "cache", "releases"], false),
    folder("PNPM_HOME", ".local/share/pnpm", &[""], true),
    folder("COREPACK_HOME", ".cache/node/corepack", &[""], true),
    folder("NVM_DIR", ".nvm", &["versions", "nvm.sh", "nvm-exec", "alias"], true),
    folder("FNM_DIR", ".local/share/fnm", &[""], true),
    folder("VOLTA_HOME", ".volta", &["bin", "tools"], true),
    folder("BUN_INSTALL", ".bun", &["bin", "install"], true),
    folder("DENO_DIR", ".cache/deno", &[""], true),
    folder("PIP_CACHE_DIR", ".cache/pip", &[""], true),
    folder("UV_CACHE_DIR", ".cache/uv", &[""], false),
    folder("UV_PYTHON_INSTALL_DIR", ".local/share/uv/python", &[""], true),
    folder("", ".local/share/uv/tools", &[""], false),
    folder("PYENV_ROOT", ".pyenv", &[""], true),
    folder("PYTHONUSERBASE", ".local", &["lib", "bin", "pipx"], true),
    folder("", ".local/share/virtualenvs", &[""], false),
    folder("MISE_DATA_DIR", ".local/share/mise", &["installs", "shims"], true),
    folder(
        "ASDF_DATA_DIR",
        ".asdf",
        &["installs", "shims", "bin", "lib", "libexec", "plugins", "asdf.sh"],
        true,
    ),
    folder("GOMODCACHE", "go/pkg/mod", &[""], true),
    folder("", "go/bin", &[""], false),
    folder("", "sdk", &[""], false),
    folder("RBENV_ROOT", ".rbenv", &["versions", "shims", "bin", "libexec"], true),
    folder("", ".gem/ruby", &[""], false),
    folder("", ".m2/repository", &[""], false),
    folder("SDKMAN_DIR", ".sdkman", &["candidates"], true),
    folder("", ".dotnet", &[""], false),
    folder("NUGET_PACKAGES", ".nuget/packages", &[""], true),
    folder("", ".ghcup", &["bin", "ghc"], false),
];

/// No tool tries the network, which would cost its time limit, and none writes to a cache it can only read.
const OFFLINE: [(&str, &str); 10] = [
    ("CARGO_NET_OFFLINE", "true"),
    ("npm_config_offline", "true"),
    ("npm_config_update_notifier", "false"),
    ("npm_config_audit", "false"),
    ("npm_config_fund", "false"),
    ("PIP_DISABLE_PIP_VERSION_CHECK", "1"),
    ("UV_OFFLINE", "1"),
    ("GOPROXY", "off"),
    ("GOTOOLCHAIN", "local"),
    ("YARN_ENABLE_NETWORK", "0"),
];

/// Whether a variable tells a tool that there is no network.
pub(super) fn is_offline(name: &OsString) -> bool {
    OFFLINE.iter().any(|(known, value)| name == known && *value != "false" && *known != "GOTOOLCHAIN")
}

/// What of the user's toolchains there is. `is_there` looks at the disk.
pub(super) fn found(
    env: &[(OsString, OsString)],
    private: &PrivateFolders,
    offline: bool,
    is_there: &dyn Fn(&Path) -> bool,
) -> Toolchains {
    let value = |wanted: &str| env.iter().rev().find(|(name, _)| name == wanted).map(|(_, value)| value);
    let home = value("HOME").map(PathBuf::from).filter(|home| is_plain(home));
    // Whatever a variable says, it opens neither the home nor what lies above it.
    let opens_home = |path: &Path| home.as_ref().is_some_and(|home| home.starts_with(path));
    let mut tools = Toolchains::default();
    for tool in &FOLDERS {
        let moved = Some(tool.variable).filter(|name| !name.is_empty()).and_then(value).map(PathBuf::from);
        let usual = home.as_ref().map(|home| home.join(tool.usual));
        let Some(place) = moved.or(usual).filter(|place| is_plain(place)) else { continue };
        let parts =
            tool.parts.iter().map(|part| if part.is_empty() { place.clone() } else { place.join(part) });
        let before = tools.readable.len();
        tools.readable.extend(parts.filter(|part| is_there(part)));
        if tools.readable.len() > before && tool.told {
            tools.env.push((tool.variable.into(), place.into_os_string()));
        } else if tools.readable.len() > before && tool.variable == NPM_CACHE {
            tools.npm_cache = Some(NpmCache { users: place, own: private.home.join(".npm") });
        }
    }
    let entries =
        value("PATH").map(|path| std::env::split_paths(path).collect::<Vec<_>>()).unwrap_or_default();
    for entry in entries.into_iter().filter(|entry| is_plain(entry) && is_there(entry)) {
        let covered = tools.readable.iter().any(|known| entry.starts_with(known));
        if !covered && !opens_home(&entry) && !SYSTEM.iter().any(|known| entry.starts_with(known)) {
            tools.readable.push(installation(&entry, is_there).unwrap_or(entry));
        }
    }
    tools.readable.retain(|path| !opens_home(path));
    for name in ["SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS", "PIP_CERT", "REQUESTS_CA_BUNDLE"] {
        tools.readable.extend(value(name).map(PathBuf::from).filter(|path| is_plain(path) && is_there(path)));
    }
    let told = OFFLINE.iter().filter(|_| offline);
    tools.env.extend(told.map(|(name, value)| ((*name).into(), (*value).into())));
    // Whatever the user's variable says: npm's cache is its own here.
    tools.env.push((NPM_CACHE.into(), private.home.join(".npm").into_os_string()));
    tools.env.push(("npm_config_logs_dir".into(), private.home.join(".npm-logs").into_os_string()));
    for (name, part) in
        [("XDG_CONFIG_HOME", ".config"), ("XDG_CACHE_HOME", ".cache"), ("XDG_DATA_HOME", ".local/share")]
    {
        tools.env.push((name.into(), private.home.join(part).into_os_string()));
    }
    tools
}

/// The folder of an installation that this folder of programs belongs to, for those that don't work without the rest.
fn installation(bin: &Path, is_there: &dyn Fn(&Path) -> bool) -> Option<PathBuf> {
    let above = bin.parent().filter(|above| bin.ends_with("bin") && is_plain(above))?;
    let marks = ["pyvenv.cfg", "conda-meta", "lib/node_modules"];
    marks.iter().any(|mark| is_there(&above.join(mark))).then(|| above.to_path_buf())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(env: &[(&str, &str)], there: &[&str]) -> (Vec<String>, Vec<String>) {
        let env: Vec<(OsString, OsString)> =
            env.iter().map(|(name, value)| (name.into(), value.into())).collect();
        let private = PrivateFolders { home: "/s/home".into(), tmp: "/s/tmp".into() };
        let tools = found(&env, &private, true, &|path| there.iter().any(|known| Path::new(known) == path));
        let readable = tools.readable.iter().map(|path| path.display().to_string()).collect();
        let env = tools.env.iter().map(|(name, value)| format!("{}={}", name.display(), value.display()));
        (readable, env.collect())
    }

    #[test]
    fn s_12_toolchains_are_found_without_what_lies_beside_them() {
        let there =
            ["/u/.cargo", "/u/.cargo/bin", "/u/.cargo/registry", "/u/.cargo/credentials.toml", "/u/.ssh"];
        let (readable, env) = names(&[("HOME", "/u")], &there);
        assert_eq!(readable, ["/u/.cargo/bin", "/u/.cargo/registry"]);
        assert!(env.contains(&"CARGO_HOME=/u/.cargo".to_owned()), "{env:?}");
        assert!(env.contains(&"CARGO_NET_OFFLINE=true".to_owned()), "{env:?}");
        assert!(!env.iter().any(|line| line.starts_with("RUSTUP_HOME")), "{env:?}");
    }

    #[test]
    fn s_12_a_variable_moves_a_toolchain_and_nonsense_is_ignored() {
        let there = ["/opt/cargo/registry", "/", "/u/go/pkg/mod"];
        let moved =
            [("HOME", "/u"), ("CARGO_HOME", "/opt/cargo"), ("RUSTUP_HOME", "/"), ("GOMODCACHE", "../x")];
        assert_eq!(names(&moved, &there).0, ["/opt/cargo/registry"]);
        assert!(names(&[("HOME", "relative")], &["relative/.cargo/bin"]).0.is_empty());
    }

    #[test]
    fn s_12_folders_of_programs_are_shown_and_never_the_home() {
        let there = ["/u", "/u/env/bin", "/u/env/pyvenv.cfg", "/u/tools/bin", "/srv/bin"];
        let path = [("HOME", "/u"), ("PATH", "/u:/u/env/bin:/u/tools/bin:/srv/bin:relative:/gone")];
        assert_eq!(names(&path, &there).0, ["/u/env", "/u/tools/bin", "/srv/bin"]);
        let there = ["/bin", "/lib/node_modules", "/u", "/u/bin", "/u/lib/node_modules", "/xbin"];
        let path = [("HOME", "/u"), ("PATH", "/bin:/u/bin:/xbin"), ("RUSTUP_HOME", "/u")];
        assert_eq!(names(&path, &there).0, ["/xbin"], "neither the root nor the home");
    }
}
