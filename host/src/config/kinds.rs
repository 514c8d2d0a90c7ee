//! What the text of a setting means, by the kind of the setting; and the message if it is invalid.

use archeflow_core::model::{Tier, Workflow};
use archeflow_core::persona::check_name;
use archeflow_core::settings::{SettingKind as Kind, SettingValue, share_of, whole_number};

use crate::backends::{self, cli::Rest};
use crate::model_agent::place::ModelEndpoint;

use super::yaml::{self, YamlNode};
use super::{in_full, shown};

/// Reading values of a kind.
pub trait KindText: Sized {
    /// What may be written, for errors and the manual.
    fn allowed(self) -> String;
    /// The value of a node, or nothing when it isn't one of this kind.
    fn read(self, node: &YamlNode) -> Option<SettingValue>;
    fn read_text(self, text: &str) -> Option<SettingValue>;
    fn read_items(self, items: &[&str]) -> Option<SettingValue>;
    /// The place of a word among those of its kind.
    fn rank(self, word: &str) -> Option<usize>;
    /// A value of this kind as it may be printed: safe, and without a secret.
    fn shown(self, text: &str) -> String;
    /// Whether a value of this kind decides which host is asked.
    fn names_a_host(self, value: &SettingValue) -> bool;
}

impl KindText for Kind {
    fn allowed(self) -> String {
        match self {
            Kind::Switch => "true or false".to_owned(),
            Kind::Off(why) => format!("only false: {why}"),
            Kind::Whole(least, most) | Kind::Seconds(least, most) | Kind::Minutes(least, most) => {
                format!("a whole number from {least} to {most}")
            }
            Kind::Limit(least, most) => format!("a whole number from {least} to {most}, or off"),
            Kind::Waits(longest, least, most) => {
                format!("a list of at most {longest} whole numbers from {least} to {most}")
            }
            Kind::Share => "a decimal from 0 to 1 with at most six places".to_owned(),
            Kind::Dollars(most) => format!("dollars from 0 to {most} with at most six places"),
            Kind::Words(words) => words.join(", "),
            Kind::Tier => Tier::NAMES.to_owned(),
            Kind::Release => "a release number of at most 32 characters".to_owned(),
            Kind::Prefix => "begins with `archeflow/`, ends with `/`, holds only letters, \
                             digits, `-`, `_` and single `.` and `/`, at most 64 characters"
                .to_owned(),
            Kind::Command => format!("a command on one line, at most {LONGEST_COMMAND} bytes"),
            Kind::Agent => agents(),
            Kind::Agents(most) => format!("a list of at most {most}, each {}", agents()),
            Kind::Workflow => "fast, standard, thorough, or the name of a workflow file".to_owned(),
            Kind::Name => NAMED.to_owned(),
            Kind::Names(most) => format!("a list of at most {most} names"),
            Kind::Phrases(most) => {
                format!(
                    "a list of at most {most} texts without commas, each on one line of at most {LONGEST_PHRASE} bytes"
                )
            }
            Kind::Folders(most) => format!(
                "a list of at most {most} folders of the working copy such as `target`, without `.`, `..` and `.git`, none in another"
            ),
            Kind::Model => "the name of a model".to_owned(),
            Kind::Url => "https://host[:port], or http:// on this machine".to_owned(),
            Kind::WordList(words) => format!("a list of {}, each once", words.join(", ")),
            Kind::SecretUrl => {
                "https://host[:port][/path][?query], or http:// on this machine, without a name and password"
                    .to_owned()
            }
            Kind::SecretName => {
                "the name of an environment variable, or a file: absolute, or below `~/`".to_owned()
            }
            Kind::HostKeys(most) => {
                format!("a list of at most {most} entries host=VARIABLE, the host with or without its port")
            }
            Kind::Shares(most) => {
                format!("a list of at most {most} entries project=percent, from 0 to 100, each project once")
            }
            Kind::Variables => format!(
                "a list of at most {MOST_VARIABLES} names of environment variables, none beginning with ARCHEFLOW_"
            ),
        }
    }

    fn read(self, node: &YamlNode) -> Option<SettingValue> {
        match &node.value {
            yaml::Value::Scalar(text) => self.read_text(text),
            yaml::Value::List(items) => {
                let items: Option<Vec<&str>> = items.iter().map(scalar).collect();
                self.read_items(&items?)
            }
            yaml::Value::Nothing | yaml::Value::Map(_) => None,
        }
    }

    fn read_text(self, text: &str) -> Option<SettingValue> {
        match self {
            Kind::Switch => switch(text).map(SettingValue::Switch),
            Kind::Off(_) => switch(text).filter(|on| !on).map(SettingValue::Switch),
            Kind::Whole(least, most) | Kind::Seconds(least, most) | Kind::Minutes(least, most) => {
                whole_number(text, least, most).map(SettingValue::Whole)
            }
            Kind::Limit(least, most) => match text {
                "off" => Some(SettingValue::Word("off")),
                _ => whole_number(text, least, most).map(SettingValue::Whole),
            },
            Kind::Share => share(text).map(SettingValue::Millionths),
            Kind::Dollars(most) => dollars(text, most).map(SettingValue::Money),
            Kind::Words(words) => {
                words.iter().find(|word| **word == text).map(|word| SettingValue::Word(word))
            }
            Kind::Tier => Tier::parse(text).map(|tier| SettingValue::Word(tier.name())),
            Kind::Release => release(text).then(|| SettingValue::Text(text.to_owned())),
            Kind::Prefix => prefix(text).then(|| SettingValue::Text(text.to_owned())),
            Kind::Command => command(text),
            Kind::Agent => command(text).filter(|_| agent(text.trim())),
            Kind::Workflow => match Workflow::parse(text) {
                Some(workflow) => Some(SettingValue::Word(workflow.name())),
                None => Kind::Name.read_text(text),
            },
            Kind::Name => check_name(text).is_ok().then(|| SettingValue::Text(text.to_owned())),
            Kind::Names(_) | Kind::Folders(_) => {
                self.read_items(&text.split(',').map(str::trim).collect::<Vec<_>>())
            }
            Kind::Model => {
                let fits = !text.is_empty() && text.len() <= 200 && Rest::Model.takes(text);
                fits.then(|| SettingValue::Text(text.to_owned()))
            }
            Kind::Url => ModelEndpoint::read(text, "").ok().map(|place| SettingValue::Text(place.url)),
            Kind::SecretUrl => secret_url(text).then(|| SettingValue::Text(text.to_owned())),
            Kind::SecretName => secret_name(text).then(|| SettingValue::Text(text.to_owned())),
            Kind::Waits(..)
            | Kind::Variables
            | Kind::Agents(_)
            | Kind::HostKeys(_)
            | Kind::Shares(_)
            | Kind::WordList(_)
            | Kind::Phrases(_) => None,
        }
    }

    fn read_items(self, items: &[&str]) -> Option<SettingValue> {
        match self {
            Kind::Waits(longest, least, most) if items.len() <= longest => items
                .iter()
                .map(|item| whole_number(item, least, most))
                .collect::<Option<_>>()
                .map(SettingValue::Wholes),
            Kind::Variables if items.len() <= MOST_VARIABLES && items.iter().all(|item| variable(item)) => {
                let mut names: Vec<String> = items.iter().map(|item| (*item).to_owned()).collect();
                names.sort();
                names.dedup();
                Some(SettingValue::Names(names))
            }
            Kind::Agents(most) if items.len() <= most => {
                let specs = items.iter().map(|item| match Kind::Agent.read_text(item) {
                    Some(SettingValue::Text(spec)) => Some(spec),
                    _ => None,
                });
                specs.collect::<Option<_>>().map(SettingValue::Names)
            }
            Kind::Names(most) => {
                let names: Vec<String> = items.iter().map(|item| (*item).to_owned()).collect();
                let fits = |name: &String| check_name(name).is_ok();
                let once = |(n, name): (usize, &String)| !names.iter().take(n).any(|other| other == name);
                let good =
                    names.len() <= most && names.iter().all(fits) && names.iter().enumerate().all(once);
                good.then_some(SettingValue::Names(names))
            }
            Kind::Phrases(most) if items.len() <= most && items.iter().all(|item| phrase(item)) => {
                Some(SettingValue::Names(items.iter().map(|item| item.trim().to_owned()).collect()))
            }
            Kind::Folders(most) if items.len() <= most => folders(items).map(SettingValue::Names),
            Kind::WordList(words) => {
                let once = |(n, item): (usize, &&str)| {
                    words.contains(item) && !items.iter().take(n).any(|other| other == item)
                };
                let fits = items.iter().enumerate().all(once);
                fits.then(|| SettingValue::Names(items.iter().map(|item| (*item).to_owned()).collect()))
            }
            Kind::HostKeys(most) if items.len() <= most && items.iter().all(|item| host_key(item)) => {
                Some(SettingValue::Names(items.iter().map(|item| (*item).to_owned()).collect()))
            }
            Kind::Shares(most) if items.len() <= most => {
                let shares: Option<Vec<(String, u64)>> = items.iter().map(|item| share_of(item)).collect();
                let mut names: Vec<String> = shares?.into_iter().map(|(project, _)| project).collect();
                names.sort_unstable();
                let once = names.windows(2).all(|pair| pair[0] != pair[1]);
                once.then(|| SettingValue::Names(items.iter().map(|item| (*item).to_owned()).collect()))
            }
            Kind::Waits(..)
            | Kind::Agents(_)
            | Kind::Shares(_)
            | Kind::Model
            | Kind::Url
            | Kind::SecretUrl
            | Kind::SecretName
            | Kind::HostKeys(_)
            | Kind::Phrases(_)
            | Kind::Folders(_)
            | Kind::Variables
            | Kind::Workflow
            | Kind::Dollars(_)
            | Kind::Name
            | Kind::Switch
            | Kind::Off(_)
            | Kind::Whole(..)
            | Kind::Seconds(..)
            | Kind::Minutes(..)
            | Kind::Limit(..)
            | Kind::Share
            | Kind::Words(_)
            | Kind::Tier
            | Kind::Release
            | Kind::Prefix
            | Kind::Command
            | Kind::Agent => None,
        }
    }

    fn rank(self, word: &str) -> Option<usize> {
        match self {
            Kind::Words(words) => words.iter().position(|known| *known == word),
            Kind::Switch
            | Kind::Off(_)
            | Kind::Whole(..)
            | Kind::Seconds(..)
            | Kind::Minutes(..)
            | Kind::Limit(..)
            | Kind::Waits(..)
            | Kind::Share
            | Kind::Dollars(_)
            | Kind::Tier
            | Kind::Release
            | Kind::Prefix
            | Kind::Command
            | Kind::Agent
            | Kind::Agents(_)
            | Kind::Variables
            | Kind::Model
            | Kind::Url
            | Kind::HostKeys(_)
            | Kind::Shares(_)
            | Kind::Workflow
            | Kind::Name
            | Kind::Names(_)
            | Kind::Phrases(_)
            | Kind::Folders(_)
            | Kind::WordList(_)
            | Kind::SecretUrl
            | Kind::SecretName => None,
        }
    }

    fn shown(self, text: &str) -> String {
        if self == Kind::SecretUrl { host_only(text) } else { in_full(text) }
    }

    fn names_a_host(self, value: &SettingValue) -> bool {
        let SettingValue::Text(text) = value else { return self == Kind::Url };
        let head = text.split([':', '@']).next().unwrap_or_default();
        let places = crate::backends::cli::find(head).is_some_and(|client| client.rest == Rest::ModelAt);
        self == Kind::Url || self == Kind::Agent && places && text.contains('@')
    }
}

fn scalar(node: &YamlNode) -> Option<&str> {
    match &node.value {
        yaml::Value::Scalar(text) => Some(text),
        yaml::Value::Nothing | yaml::Value::List(_) | yaml::Value::Map(_) => None,
    }
}

fn switch(text: &str) -> Option<bool> {
    match text {
        "true" => Some(true),
        "false" => Some(false),
        _ => None,
    }
}

fn share(text: &str) -> Option<u32> {
    const PLACES: usize = 6;
    let (whole, rest) = text.split_once('.').unwrap_or((text, "0"));
    let digits = !rest.is_empty() && rest.len() <= PLACES && rest.bytes().all(|byte| byte.is_ascii_digit());
    let rest: u32 = format!("{rest:0<PLACES$}").parse().ok().filter(|_| digits)?;
    match (whole, rest) {
        ("0", rest) => Some(rest),
        ("1", 0) => Some(1_000_000),
        _ => None,
    }
}

/// Written plainly: no sign, no exponent, no leading zero.
fn dollars(text: &str, most: u64) -> Option<u64> {
    const PLACES: usize = 6;
    let (digits, rest) = text.split_once('.').unwrap_or((text, "0"));
    let plain = !rest.is_empty() && rest.len() <= PLACES && rest.bytes().all(|byte| byte.is_ascii_digit());
    let micro = whole_number(digits, 0, most)? * 1_000_000;
    let rest: u64 = format!("{rest:0<PLACES$}").parse().ok().filter(|_| plain)?;
    Some(micro + rest).filter(|micro| *micro <= most * 1_000_000)
}

fn release(text: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '+' | '_');
    (1..=32).contains(&text.len()) && text.chars().all(fits)
}

fn prefix(text: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    let part = |part: &str| {
        part.starts_with(|c: char| c.is_ascii_alphanumeric())
            && part.chars().all(fits)
            && !part.contains("..")
            && !part.ends_with('.')
            && !part.to_ascii_lowercase().ends_with(".lock")
    };
    text.len() <= 64
        && text.starts_with("archeflow/")
        && text.strip_suffix('/').is_some_and(|text| text.split('/').all(part))
}

const LONGEST_COMMAND: usize = 4_096;
const LONGEST_PHRASE: usize = 200;
const MOST_VARIABLES: usize = 64;
const NAMED: &str = "the name of a file: a to z, 0 to 9, `-` and `_`, at most 32 characters";

fn phrase(text: &str) -> bool {
    !text.trim().is_empty()
        && text.len() <= LONGEST_PHRASE
        && !text.contains([',', '[', ']'])
        && !text.contains(char::is_control)
}

/// Paths of folders below the top of a working copy. A slash at the end is left out.
fn folders(items: &[&str]) -> Option<Vec<String>> {
    let fits = |folder: &str| phrase(folder) && folder.split('/').all(folder_name);
    let found: Vec<String> = items.iter().map(|item| item.trim_end_matches('/').to_owned()).collect();
    let is_in = |one: &String, other: &String| format!("{one}/").starts_with(&format!("{other}/"));
    let is_apart = |at: usize, one: &String| {
        found.iter().enumerate().all(|(other, folder)| at == other || !is_in(one, folder))
    };
    let good = found.iter().enumerate().all(|(at, one)| fits(one) && is_apart(at, one));
    good.then_some(found)
}

fn folder_name(part: &str) -> bool {
    !part.is_empty()
        && part.trim() == part
        && !matches!(part, "." | "..")
        && !part.eq_ignore_ascii_case(".git")
}

fn command(text: &str) -> Option<SettingValue> {
    let text = text.trim();
    let fits = !text.is_empty() && text.len() <= LONGEST_COMMAND && !text.contains(char::is_control);
    fits.then(|| SettingValue::Text(text.to_owned()))
}

/// The specs of all agents, the last one with an "or".
fn agents() -> String {
    let forms: Vec<&str> = backends::forms().into_iter().map(|(form, _)| form).collect();
    forms.split_last().map_or_else(String::new, |(last, others)| format!("{} or {last}", others.join(", ")))
}

/// The shape only; whether the program is there is found out when it is started.
fn agent(text: &str) -> bool {
    let end = text.find([':', '@']).unwrap_or(text.len());
    let (head, rest) = text.split_at(end);
    match head {
        "acp" | "cmd" | "script" | "sim" => {
            rest.strip_prefix(':').is_some_and(|rest| !rest.trim().is_empty())
        }
        name => crate::backends::cli::find(name).is_some(),
    }
}

/// `host=VARIABLE`.
fn host_key(text: &str) -> bool {
    let Some((host, name)) = text.split_once('=') else { return false };
    let place = ModelEndpoint::read(&format!("https://{host}"), "");
    place.is_ok_and(|place| place.url == format!("https://{}", host.to_lowercase()) && !host.contains('/'))
        && variable(name)
}

fn variable(text: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let start = |c: char| c.is_ascii_alphabetic() || c == '_';
    text.len() <= 128 && text.starts_with(start) && text.chars().all(fits) && !text.starts_with("ARCHEFLOW_")
}

const LONGEST_ADDRESS: usize = 2_048;

/// An address with a path and a query, which are sent as they are written.
fn secret_url(text: &str) -> bool {
    let Some((scheme, rest)) = text.split_once("://") else { return false };
    let (authority, rest) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    let plain = |c: char| c.is_ascii_graphic() && !"\"#<>\\^`{|}".contains(c);
    text.len() <= LONGEST_ADDRESS
        && ModelEndpoint::read(&format!("{scheme}://{authority}"), "").is_ok()
        && (rest.is_empty() || rest.starts_with('/'))
        && rest.chars().all(plain)
}

/// Scheme and host of an address; what comes after may be a secret.
pub fn host_only(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return "…".to_owned() };
    let (authority, rest) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    let host = authority.rsplit('@').next().unwrap_or_default();
    let more = if rest.len() > 1 { "/…" } else { "" };
    in_full(&format!("{scheme}://{host}{more}"))
}

fn secret_name(text: &str) -> bool {
    let is_file = text.starts_with('/') || text.starts_with("~/");
    variable(text) || is_file && text.len() <= LONGEST_COMMAND && !text.contains(char::is_control)
}

/// A value as its file has it, for an error.
pub fn written(node: &YamlNode) -> String {
    match &node.value {
        yaml::Value::Nothing => "nothing".to_owned(),
        yaml::Value::Scalar(text) => format!("`{}`", shown(text)),
        yaml::Value::List(items) => {
            const MOST: usize = 8;
            let mut texts: Vec<String> =
                items.iter().take(MOST).map(|item| scalar(item).map_or("…".to_owned(), shown)).collect();
            if items.len() > MOST {
                texts.push("…".to_owned());
            }
            format!("`[{}]`", texts.join(", "))
        }
        yaml::Value::Map(_) => "a section of keys".to_owned(),
    }
}
