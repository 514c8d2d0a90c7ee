//! The Creator: does it plan more than was asked for?
//!
//! What a plan rejects, fears, tests or leaves for later is not part of it.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use super::{Placed, each_own_line, files, number};
use crate::model::Traits;
use crate::read::sections::SectionedText;
use crate::read::table;
use crate::read::text::{between, bullet, spans};
use crate::rules::phrases::{Phrases, negated};

const FUTURE: u32 = 1;
const NEW: u32 = 2;
const PACKAGE: u32 = 4;
const BEYOND: u32 = 8;

const FUTURES: [&str; 12] = [
    "future-proof",
    "future proof",
    "futureproof",
    "for future requirements",
    "for future needs",
    "for future use",
    "in case we ever",
    "in case we later",
    "in case we one day",
    "if we ever want",
    "someday",
    "zukunftssicher",
];

/// Words that bring something into being.
const NEWNESS: [&str; 20] = [
    "new",
    "introduce",
    "introduces",
    "introducing",
    "add",
    "adds",
    "adding",
    "define",
    "defines",
    "create",
    "creates",
    "creating",
    "extract",
    "extracts",
    "build",
    "builds",
    "generic",
    "abstract",
    "pluggable",
    "plus",
];

const PACKAGES: [&str; 21] = [
    "new dependenc",
    "new crate",
    "new package",
    "new librar",
    "new npm",
    "new python package",
    "cargo add",
    "npm install",
    "npm i ",
    "pnpm add",
    "yarn add",
    "pip install",
    "poetry add",
    "uv add",
    "go get",
    "add dependenc",
    "adds a dependency",
    "add a dependency",
    "dependency on",
    "as dependencies",
    "as a dependency",
];

const BEYONDS: [&str; 18] = [
    "while we are here",
    "while we're here",
    "while at it",
    "while we are at it",
    "while we're at it",
    "bonus",
    "nice to have",
    "nice-to-have",
    "not required",
    "not strictly",
    "beyond the task",
    "beyond the request",
    "unrelated",
    "opportunistic",
    "drive-by",
    "as an extra",
    "not asked for",
    "also worth",
];

/// Sections whose content is not part of the plan.
const ASIDE: [&str; 22] = [
    "alternative",
    "risk",
    "test strategy",
    "test plan",
    "tests",
    "testing",
    "prior issue",
    "mini reflection",
    "out of scope",
    "not in scope",
    "non goal",
    "rejected",
    "confidence",
    "not doing",
    "deferred",
    "follow",
    "later",
    "what this does not",
    "mitigation",
    "open question",
    "considered",
    "assumption",
];

/// Sections whose items go beyond the task by their own account.
const EXTRAS: [&str; 9] = [
    "beyond",
    "bonus",
    "nice to have",
    "additional improvement",
    "further improvement",
    "extra",
    "while we",
    "stretch",
    "optional improvement",
];

/// Nouns for layers between the task and the code.
const ABSTRACTIONS: [&str; 26] = [
    "trait",
    "interface",
    "protocol",
    "factory",
    "registry",
    "adapter",
    "facade",
    "framework",
    "abstraction",
    "plugin",
    "plug-in",
    "strategy",
    "visitor",
    "orchestrator",
    "dispatcher",
    "provider",
    "mixin",
    "middleware",
    "engine",
    "dsl",
    "layer",
    "manager",
    "superclass",
    "wrapper",
    "bus",
    "class",
];

const SUFFIXES: [&str; 15] = [
    "Factory",
    "Registry",
    "Provider",
    "Manager",
    "Strategy",
    "Adapter",
    "Orchestrator",
    "Dispatcher",
    "Facade",
    "Builder",
    "Engine",
    "Visitor",
    "Plugin",
    "Wrapper",
    "Resolver",
];

/// Words after which an abstraction is one that is there already.
const OLD: [&str; 20] = [
    "the", "existing", "this", "its", "our", "in", "into", "from", "of", "to", "per", "each", "no",
    "without", "not", "any", "inside", "behind", "current", "for",
];

static PHRASES: LazyLock<Phrases> = LazyLock::new(|| {
    Phrases::new(&[(FUTURE, &FUTURES), (NEW, &NEWNESS), (PACKAGE, &PACKAGES), (BEYOND, &BEYONDS)])
});

pub(super) fn traits(page: &SectionedText<'_>) -> Traits {
    let mut traits = Traits::default();
    let mut abstractions: BTreeSet<String> = BTreeSet::new();
    let mut packages: BTreeSet<String> = BTreeSet::new();
    each_own_line(page, |placed| {
        if placed.is_heading || placed.is_under(&ASIDE) {
            return;
        }
        let text = placed.line.text;
        let mut bits = 0;
        PHRASES.each(text, |at, bit| {
            // A word in quotation marks is quoted, not used.
            let quoted = text.get(..at).is_some_and(|before| before.ends_with(['"', '“', '„', '\'']));
            let denied = (bit == FUTURE || bit == PACKAGE) && (quoted || negated(text, at));
            bits |= if denied { 0 } else { bit };
        });
        traits.future_proof += u32::from(bits & FUTURE != 0);
        count_items(placed, bits & BEYOND != 0, &mut traits);
        if bits & NEW != 0 {
            note_abstractions(text, &mut abstractions);
        }
        note_packages(text, bits, &mut packages);
    });
    traits.abstractions = number(abstractions.len());
    traits.packages = number(packages.len());
    traits
}

/// An item is a line of the list of files, or of a list of extras.
fn count_items(placed: &Placed<'_, '_>, beyond: bool, traits: &mut Traits) {
    let text = placed.line.text.trim();
    let extra = placed.is_under(&EXTRAS);
    let listed = bullet(text).is_some() || (table::is_row(text) && text.contains('`'));
    if listed && placed.line.indent < 2 && (extra || placed.is_under(&["file", "work", "items", "steps"])) {
        traits.items += 1;
        traits.items_beyond += u32::from(extra || beyond);
    }
}

/// A noun for an abstraction, or a name that ends in one, as long as what brought it into being is near.
fn note_abstractions(text: &str, found: &mut BTreeSet<String>) {
    const NEAR: u32 = 8;
    let mut fresh = 0_u32;
    let mut name: Option<&str> = None;
    for word in text.split_whitespace() {
        let bare = word.trim_matches(|c: char| !c.is_alphanumeric());
        let lower = bare.to_lowercase();
        let camel = bare.chars().skip(1).any(char::is_uppercase) && bare.chars().any(char::is_lowercase);
        let is_name = word.contains('`') || camel;
        if NEWNESS.contains(&lower.as_str()) {
            fresh = NEAR;
            name = None;
        } else if OLD.contains(&lower.as_str()) {
            fresh = 0;
        } else if fresh > 0 {
            let known = ABSTRACTIONS.contains(&lower.as_str());
            let singular = if known { &lower } else { lower.strip_suffix('s').unwrap_or(&lower) };
            let plain = ABSTRACTIONS.contains(&singular) && !(singular == "class" && name.is_none());
            if is_name && SUFFIXES.iter().any(|suffix| bare.ends_with(suffix)) {
                found.insert(bare.to_owned());
                (fresh, name) = (NEAR, Some(bare));
            } else if plain && !is_name {
                let known = name.is_some_and(|name| SUFFIXES.iter().any(|suffix| name.ends_with(suffix)));
                if !known {
                    found.insert(name.unwrap_or(singular).to_owned());
                }
                (fresh, name) = (NEAR, None);
            } else if is_name {
                name = Some(bare);
            }
        }
        fresh = if word.ends_with(['.', ';']) { 0 } else { fresh.saturating_sub(1) };
    }
}

/// Names in code marks beside a phrase for a package; the arguments of a command; a new manifest.
fn note_packages(text: &str, bits: u32, found: &mut BTreeSet<String>) {
    if bits & PACKAGE != 0 {
        let before = found.len();
        for span in spans(text).iter().take(20) {
            let code = between(text, span.start, span.end).trim();
            let mut words = code.split_whitespace();
            if words.clone().count() > 2 {
                found.extend(words.skip(2).filter(|word| !word.starts_with('-')).map(str::to_owned));
            } else if !code.contains(['/', '(', ':']) && !is_manifest(code) {
                found.extend(words.next().map(str::to_owned));
            }
        }
        if found.len() == before && spans(text).is_empty() {
            found.insert(text.trim().to_owned());
        }
    }
    let words = || text.split(|c: char| !c.is_alphanumeric());
    if bits & NEW != 0 && words().any(|word| word == "new" || word == "New") && !text.contains("no new") {
        files::each(text, |file| {
            if is_manifest(file) && file.contains('/') {
                found.insert(file.to_owned());
            }
        });
    }
}

fn is_manifest(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    ["Cargo.toml", "package.json", "pyproject.toml", "setup.py", "go.mod", "pom.xml", "build.gradle"]
        .contains(&name)
}
