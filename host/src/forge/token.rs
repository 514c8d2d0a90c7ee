//! The token for a forge: from the environment, or from the client that the user is logged in with. It is never printed,
//! written, or given to a process.

use std::ffi::OsString;

use super::remote::{ForgeAddress, ForgeKind};
use crate::git::Repo;
use crate::git::subject::forge_client;

#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    #[error("there is no token for {host}: {names} is not set{client}")]
    Missing { host: String, names: String, client: &'static str },
    #[error("the token in {name} can't be sent: it is more than one line of plain text")]
    Odd { name: String },
}

/// A secret: it can't be shown.
pub(super) struct Token(String);

impl Token {
    pub(super) fn find(
        repo: &Repo,
        address: &ForgeAddress,
        variables: &[(OsString, OsString)],
    ) -> Result<Token, TokenError> {
        let names = names(address);
        let set = |name: &str| {
            variables.iter().find(|(known, value)| known == name && !value.is_empty()).map(|(_, value)| value)
        };
        let server = set("GITHUB_SERVER_URL").map(|url| url.to_string_lossy().into_owned());
        for name in names.iter().filter(|name| belongs(name, address, server.as_deref())) {
            if let Some(value) = set(name) {
                let text = value.to_str().map(str::trim).filter(|text| is_plain(text));
                let token = text.map(|text| Token(text.to_owned()));
                return token.ok_or_else(|| TokenError::Odd { name: (*name).to_owned() });
            }
        }
        let (program, args, client) = match address.kind {
            ForgeKind::Github => {
                ("gh", vec!["auth", "token", "--hostname", &address.host], ", and `gh auth token` gives none")
            }
            ForgeKind::Gitlab => (
                "glab",
                vec!["config", "get", "token", "--host", &address.host],
                ", and `glab config get token` gives none",
            ),
            ForgeKind::Gitea | ForgeKind::Forgejo => ("", Vec::new(), ""),
        };
        let printed = if program.is_empty() { None } else { forge_client(repo, program, &args) };
        let token = printed.map(|text| text.trim().to_owned()).filter(|text| is_plain(text)).map(Token);
        token.ok_or_else(|| TokenError::Missing {
            host: address.host.clone(),
            names: names.join(" or "),
            client,
        })
    }

    pub(super) fn header(&self, kind: ForgeKind) -> String {
        match kind {
            ForgeKind::Github | ForgeKind::Gitlab => format!("Bearer {}", self.0),
            ForgeKind::Gitea | ForgeKind::Forgejo => format!("token {}", self.0),
        }
    }
}

/// The variables that may hold it, the first that is set counts.
fn names(address: &ForgeAddress) -> &'static [&'static str] {
    match address.kind {
        ForgeKind::Github if address.host == "github.com" => &["GH_TOKEN", "GITHUB_TOKEN"],
        ForgeKind::Github => &["GH_ENTERPRISE_TOKEN", "GITHUB_ENTERPRISE_TOKEN", "GITHUB_TOKEN"],
        ForgeKind::Gitlab => &["GITLAB_TOKEN"],
        ForgeKind::Gitea => &["GITEA_TOKEN"],
        ForgeKind::Forgejo => &["FORGEJO_TOKEN"],
    }
}

/// In a workflow `GITHUB_TOKEN` is for the server that runs it, and elsewhere for github.com. It goes to no other.
fn belongs(name: &str, address: &ForgeAddress, server: Option<&str>) -> bool {
    let host =
        server.map_or("github.com", |url| url.split("://").last().unwrap_or(url).trim_end_matches('/'));
    name != "GITHUB_TOKEN" || host.eq_ignore_ascii_case(&address.host)
}

fn is_plain(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_graphic())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn f_29_a_token_of_a_workflow_goes_to_its_own_server() {
        let address = |host: &str| ForgeAddress {
            kind: ForgeKind::Github,
            host: host.to_owned(),
            origin: String::new(),
            prefix: String::new(),
            owner: String::new(),
            name: String::new(),
        };
        let rows = [
            ("github.com", None, true),
            ("github.com", Some("https://github.com"), true),
            ("github.com", Some("https://git.example.org"), false),
            ("git.example.org", None, false),
            ("git.example.org", Some("https://github.com"), false),
            ("git.example.org", Some("https://git.example.org/"), true),
            ("git.example.org:8443", Some("https://git.example.org:8443"), true),
        ];
        for (host, server, expected) in rows {
            assert_eq!(belongs("GITHUB_TOKEN", &address(host), server), expected, "{host} {server:?}");
            assert!(belongs("GH_ENTERPRISE_TOKEN", &address(host), server));
        }
    }
}
