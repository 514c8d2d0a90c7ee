//! Which forge a repository is on: from the address of its remote `origin`, and for self-hosted ones from the user's own
//! settings. A token goes to no other host.

use archeflow_core::settings::{ForgeChoice, ForgeSettings};

use super::connection::ForgeError;
use crate::git::Repo;
use crate::git::runner::GitCommand;

/// The software of a forge.
pub type ForgeKind = ForgeChoice;

/// A repository on a forge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForgeAddress {
    pub kind: ForgeKind,
    /// The host of the remote, with its port if it has one.
    pub host: String,
    /// Scheme and host of the API.
    pub origin: String,
    /// Path before all others of the API.
    pub prefix: String,
    /// Everything before the name: an account, or groups.
    pub owner: String,
    pub name: String,
}

/// Forges that need no settings.
const KNOWN: [(&str, ForgeKind, &str); 4] = [
    ("github.com", ForgeKind::Github, "https://api.github.com"),
    ("gitlab.com", ForgeKind::Gitlab, "https://gitlab.com"),
    ("codeberg.org", ForgeKind::Forgejo, "https://codeberg.org"),
    ("gitea.com", ForgeKind::Gitea, "https://gitea.com"),
];

/// The remote that requests are made on.
pub(super) const REMOTE: &str = "origin";

impl ForgeAddress {
    pub fn of(repo: &Repo, settings: &ForgeSettings) -> Result<ForgeAddress, ForgeError> {
        let url = remote_url(repo)?;
        ForgeAddress::read(&url, settings)
    }

    fn read(url: &str, settings: &ForgeSettings) -> Result<ForgeAddress, ForgeError> {
        let (host, owner, name) = parse(url).ok_or(ForgeError::NoForge)?;
        let known = KNOWN.into_iter().find(|(known, ..)| *known == host);
        let (kind, base) = match (known, settings.kind, &settings.url) {
            (Some((_, kind, origin)), ..) => (kind, origin.to_owned()),
            (None, Some(kind), Some(base)) if is_on(&host, base) => (kind, base.clone()),
            (None, ..) => return Err(ForgeError::UnknownHost { host }),
        };
        let (origin, below) = split(&base);
        let api = match kind {
            ForgeKind::Github if origin == "https://api.github.com" => "",
            ForgeKind::Github => "/api/v3",
            ForgeKind::Gitlab => "/api/v4",
            ForgeKind::Gitea | ForgeKind::Forgejo => "/api/v1",
        };
        let owner = match below.trim_matches('/') {
            "" => owner,
            // The forge is below a path of its host, which is no part of the repository's name.
            below => owner
                .strip_prefix(below)
                .map(|owner| owner.trim_start_matches('/').to_owned())
                .unwrap_or(owner),
        };
        if owner.is_empty() || (kind != ForgeKind::Gitlab && owner.contains('/')) {
            return Err(ForgeError::NoForge);
        }
        Ok(ForgeAddress {
            kind,
            host,
            origin: origin.to_owned(),
            prefix: format!("{below}{api}"),
            owner,
            name,
        })
    }

    /// Requests there can be read with GitHub's own client, without a token of ours.
    pub fn is_read_by_client(&self) -> bool {
        self.kind == ForgeKind::Github
    }

    /// `host/owner/name`.
    pub fn label(&self) -> String {
        format!("{}/{}/{}", self.host, self.owner, self.name)
    }
}

/// `https://host:port/path` at the beginning of its path.
fn split(url: &str) -> (&str, &str) {
    let after = url.find("://").map_or(0, |at| at + 3);
    let at = url[after..].find('/').map_or(url.len(), |at| after + at);
    (&url[..at], url[at..].trim_end_matches('/'))
}

/// Whether an address of the API is on the host of a remote. A remote by ssh has a port of its own.
fn is_on(host: &str, base: &str) -> bool {
    let (origin, _) = split(base);
    let authority = origin.rsplit("://").next().unwrap_or_default();
    authority == host || authority.split(':').next() == Some(host)
}

/// Host, owner and name of `https://host/owner/name.git`, `ssh://git@host:22/owner/name` or `git@host:owner/name`.
fn parse(url: &str) -> Option<(String, String, String)> {
    let (authority, path, with_port) = match url.split_once("://") {
        Some((scheme @ ("https" | "http" | "ssh"), rest)) => {
            let (authority, path) = rest.split_once('/')?;
            (authority, path, scheme != "ssh")
        }
        Some(_) => return None,
        None => {
            let (authority, path) = url.split_once(':')?;
            (authority, path, false)
        }
    };
    let host = authority.rsplit('@').next()?;
    let host = if with_port { host } else { host.split(':').next()? };
    let path = path.trim_matches('/');
    let (owner, name) = path.strip_suffix(".git").unwrap_or(path).rsplit_once('/')?;
    let plain = |text: &str, more: &str| {
        !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || more.contains(c))
    };
    let is_name = |text: &str| plain(text, "._-~") && text != "." && text != "..";
    let fits = plain(host, ".-:") && is_name(name) && owner.split('/').all(is_name);
    fits.then(|| (host.to_ascii_lowercase(), owner.to_owned(), name.to_owned()))
}

fn remote_url(repo: &Repo) -> Result<String, ForgeError> {
    // Short forms that the user has for addresses (`insteadOf`) are replaced. Without such a remote it is its name.
    let args = ["ls-remote", "--get-url", REMOTE];
    let output = GitCommand::new(repo.git_dir()).and_then(|git| git.args(args).run());
    let output = output.map_err(|error| ForgeError::Git(error.to_string()))?;
    let url = String::from_utf8_lossy(output.line()).into_owned();
    if output.status.success() && !url.is_empty() { Ok(url) } else { Err(ForgeError::NoForge) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(kind: ForgeKind, url: &str) -> ForgeSettings {
        ForgeSettings { kind: Some(kind), url: Some(url.to_owned()) }
    }

    #[test]
    fn f_21_the_forge_follows_from_the_remote() {
        let none = ForgeSettings::default();
        let rows = [
            ("https://github.com/o/r.git", ForgeKind::Github, "https://api.github.com", "", "o", "r"),
            ("git@github.com:o/r.git", ForgeKind::Github, "https://api.github.com", "", "o", "r"),
            ("ssh://git@GitHub.com:22/o/r", ForgeKind::Github, "https://api.github.com", "", "o", "r"),
            (
                "https://me:pw@gitlab.com/a/b/c/r.git",
                ForgeKind::Gitlab,
                "https://gitlab.com",
                "/api/v4",
                "a/b/c",
                "r",
            ),
            ("https://codeberg.org/o/r", ForgeKind::Forgejo, "https://codeberg.org", "/api/v1", "o", "r"),
            ("https://gitea.com/o/r/", ForgeKind::Gitea, "https://gitea.com", "/api/v1", "o", "r"),
        ];
        for (url, kind, origin, prefix, owner, name) in rows {
            let address = ForgeAddress::read(url, &none).map_err(|error| error.to_string());
            let host = address.as_ref().map(|address| address.host.clone()).unwrap_or_default();
            let (origin, prefix) = (origin.to_owned(), prefix.to_owned());
            let (owner, name) = (owner.to_owned(), name.to_owned());
            assert_eq!(address, Ok(ForgeAddress { kind, host, origin, prefix, owner, name }), "{url}");
        }
        for url in [
            "",
            "/srv/r.git",
            "../r",
            "file:///srv/o/r",
            "https://github.com/r",
            "https://github.com/o/../r",
            "git@github.com:o/r r",
        ] {
            assert!(ForgeAddress::read(url, &none).is_err(), "{url}");
        }
    }

    #[test]
    fn f_22_a_token_goes_to_the_host_of_the_remote_only() {
        let own = settings(ForgeKind::Gitlab, "https://git.example.org/code");
        let address =
            ForgeAddress::read("git@git.example.org:code/a/r.git", &own).map_err(|error| error.to_string());
        let address = address.map(|it| (it.origin, it.prefix, it.owner));
        let wanted = ("https://git.example.org".to_owned(), "/code/api/v4".to_owned(), "a".to_owned());
        assert_eq!(address, Ok(wanted));
        for (url, own) in [
            ("https://other.example.org/o/r", own),
            ("https://git.example.org/o/r", ForgeSettings::default()),
            ("https://git.example.org:8443/o/r", settings(ForgeKind::Gitea, "https://git.example.org:9/x")),
        ] {
            let refused = ForgeAddress::read(url, &own);
            assert!(matches!(refused, Err(ForgeError::UnknownHost { .. })), "{url}");
        }
        // A setting can't redirect a known host.
        let elsewhere = settings(ForgeKind::Gitea, "https://evil.example.org");
        let address = ForgeAddress::read("https://github.com/o/r", &elsewhere).map(|it| it.origin);
        assert_eq!(address.ok().as_deref(), Some("https://api.github.com"));
    }
}
