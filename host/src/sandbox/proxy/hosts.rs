//! Which hosts an agent may reach.

use std::net::IpAddr;

/// Ports of an entry that names none.
const USUAL: [u16; 2] = [443, 80];

/// The allowed hosts: `name`, `*.suffix` or an address, each with `:port` if it is another than 443 and 80.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct HostList {
    /// Of the client: they lie in the internet.
    model: Vec<HostPattern>,
    /// Of the user, who may mean a machine of their own network.
    user: Vec<HostPattern>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct HostPattern {
    name: String,
    /// Whether the name is what the host ends with.
    suffix: bool,
    port: Option<u16>,
}

/// What the list says of a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Admission {
    Refused,
    /// As long as its address is one of the internet.
    Public,
    /// At whatever address.
    Anywhere,
}

impl HostList {
    /// Whether a text can be an entry: a host and perhaps a port, and nothing of an address around them.
    pub fn is_entry(text: &str) -> bool {
        let (name, _) = split_port(text.trim());
        let name = name.strip_prefix("*.").unwrap_or(name);
        let plain = |c: char| c.is_ascii_alphanumeric() || "-._:".contains(c);
        let address = !name.contains(':') || name.parse::<IpAddr>().is_ok();
        !name.is_empty() && address && name.chars().all(plain)
    }

    pub fn new(model: &[&str], user: &[String]) -> Self {
        Self {
            model: model.iter().map(|entry| HostPattern::read(entry)).collect(),
            user: user.iter().map(|entry| HostPattern::read(entry)).collect(),
        }
    }

    pub(super) fn admits(&self, host: &str, port: u16) -> Admission {
        let host = host.trim_end_matches('.').to_ascii_lowercase();
        let allowed = |entry: &&HostPattern| entry.matches(&host, port);
        match (self.user.iter().find(allowed), self.model.iter().find(allowed)) {
            // A suffix covers hosts that nobody has looked at, so it opens nothing inside.
            (Some(entry), _) if !entry.suffix => Admission::Anywhere,
            (None, None) => Admission::Refused,
            (Some(_), _) | (None, Some(_)) => Admission::Public,
        }
    }
}

impl HostPattern {
    fn read(entry: &str) -> Self {
        let (name, port) = split_port(entry.trim());
        let (name, suffix) = name.strip_prefix("*.").map_or((name, false), |rest| (rest, true));
        Self { name: name.trim_end_matches('.').to_ascii_lowercase(), suffix, port }
    }

    fn matches(&self, host: &str, port: u16) -> bool {
        let named = if self.suffix {
            host.strip_suffix(&self.name).is_some_and(|rest| rest.len() > 1 && rest.ends_with('.'))
        } else {
            host == self.name
        };
        named && self.port.map_or(USUAL.contains(&port), |wanted| wanted == port)
    }
}

/// A host and its port, if it has one. An address of IPv6 stands in brackets, which are taken off.
pub(super) fn split_port(text: &str) -> (&str, Option<u16>) {
    if let Some((host, rest)) = text.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        return (host, rest.strip_prefix(':').and_then(|port| port.parse().ok()));
    }
    match text.rsplit_once(':') {
        Some((host, port)) if !host.contains(':') => match port.parse() {
            Ok(port) => (host, Some(port)),
            Err(_) => (text, None),
        },
        Some(_) | None => (text, None),
    }
}

/// The host and port that an address leads to; without a scheme it is read as `host` or `host:port`.
pub fn of_url(url: &str) -> Option<(String, u16)> {
    let (scheme, rest) = url.trim().split_once("://").unwrap_or(("http", url.trim()));
    let usual = match scheme {
        "http" | "ws" => 80,
        "https" | "wss" => 443,
        _ => return None,
    };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let authority = authority.rsplit('@').next().unwrap_or_default();
    let (host, port) = split_port(authority);
    HostList::is_entry(authority).then(|| (host.to_ascii_lowercase(), port.unwrap_or(usual)))
}

/// Whether a name means this machine itself.
pub fn is_loopback(host: &str) -> bool {
    host.eq_ignore_ascii_case("localhost")
        || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// An address of the internet: not of this machine, its network, or the one that tells a cloud machine its secrets.
pub(super) fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(four) => {
            let [first, second, ..] = four.octets();
            !(four.is_loopback()
                || four.is_private()
                || four.is_link_local()
                || four.is_unspecified()
                || four.is_broadcast()
                || four.is_multicast()
                || first == 0
                || (first == 100 && (64..128).contains(&second)))
        }
        IpAddr::V6(six) => match six.to_ipv4() {
            Some(four) => is_public(four.into()),
            None => {
                !(six.is_loopback()
                    || six.is_unspecified()
                    || six.is_multicast()
                    || six.is_unique_local()
                    || six.is_unicast_link_local())
            }
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s_12_only_listed_hosts_are_admitted() {
        let user = ["*.corp.example".to_owned(), "gateway.lan:8443".to_owned(), "10.0.0.7".to_owned()];
        let list = HostList::new(&["api.anthropic.com", "*.openai.com"], &user);
        for (host, port, admission) in [
            ("api.anthropic.com", 443, Admission::Public),
            ("API.Anthropic.com.", 443, Admission::Public),
            ("api.anthropic.com", 22, Admission::Refused),
            ("evil-api.anthropic.com", 443, Admission::Refused),
            ("api.anthropic.com.evil.example", 443, Admission::Refused),
            ("a.openai.com", 443, Admission::Public),
            ("openai.com", 443, Admission::Refused),
            ("notopenai.com", 443, Admission::Refused),
            (".openai.com", 443, Admission::Refused),
            ("git.corp.example", 80, Admission::Public),
            ("gateway.lan", 8443, Admission::Anywhere),
            ("gateway.lan", 443, Admission::Refused),
            ("10.0.0.7", 443, Admission::Anywhere),
            ("10.0.0.8", 443, Admission::Refused),
            ("", 443, Admission::Refused),
        ] {
            assert_eq!(list.admits(host, port), admission, "{host}:{port}");
        }
        assert_eq!(HostList::default().admits("api.anthropic.com", 443), Admission::Refused);
    }

    #[test]
    fn s_12_m_s9_addresses_inside_are_not_public() {
        for (address, public) in [
            ("127.0.0.1", false),
            ("10.1.2.3", false),
            ("192.168.0.1", false),
            ("172.16.0.1", false),
            ("169.254.169.254", false),
            ("100.64.0.1", false),
            ("0.0.0.0", false),
            ("::1", false),
            ("fd00::1", false),
            ("fe80::1", false),
            ("::ffff:127.0.0.1", false),
            ("::ffff:8.8.8.8", true),
            ("8.8.8.8", true),
            ("2606:4700::1111", true),
        ] {
            assert_eq!(address.parse().map(is_public), Ok(public), "{address}");
        }
    }

    #[test]
    fn s_12_an_address_names_its_host_and_port() {
        for (url, expected) in [
            ("http://127.0.0.1:8080/v1", Some(("127.0.0.1", 8080))),
            ("https://API.example.org/v1?x", Some(("api.example.org", 443))),
            ("http://me:secret@gateway.lan", Some(("gateway.lan", 80))),
            ("http://[::1]:11434", Some(("::1", 11434))),
            ("127.0.0.1:11434", Some(("127.0.0.1", 11434))),
            ("file:///etc/passwd", None),
            ("https://", None),
            ("not a host", None),
        ] {
            let found = of_url(url);
            assert_eq!(found.as_ref().map(|(host, port)| (host.as_str(), *port)), expected, "{url}");
        }
        for (host, local) in [("localhost", true), ("127.0.0.2", true), ("::1", true), ("10.0.0.1", false)] {
            assert_eq!(is_loopback(host), local, "{host}");
        }
    }

    #[test]
    fn s_12_an_entry_is_a_host_and_nothing_around_it() {
        for (text, right) in [
            ("api.example.org", true),
            ("*.example.org:8443", true),
            ("[::1]:80", true),
            ("::1", true),
            ("https://api.example.org", false),
            ("api.example.org/v1", false),
            ("a:b:c", false),
            ("*.", false),
            ("", false),
        ] {
            assert_eq!(HostList::is_entry(text), right, "{text}");
        }
    }

    #[test]
    fn hosts_and_ports_are_told_apart() {
        for (text, parts) in [
            ("a.b:443", ("a.b", Some(443))),
            ("a.b", ("a.b", None)),
            ("[::1]:80", ("::1", Some(80))),
            ("[::1]", ("::1", None)),
            ("::1", ("::1", None)),
            ("a:99999", ("a:99999", None)),
        ] {
            assert_eq!(split_port(text), parts, "{text}");
        }
    }
}
