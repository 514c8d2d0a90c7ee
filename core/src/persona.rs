//! Reads an archetype's Markdown file: a header of plain `key: value` lines between two `---`, then the prompt.
//!
//! What an archetype may be shown is limited by its role, regardless of the author of the file: no file can let a
//! reviewer see the research or another review (AF-030 to AF-037).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use crate::model::{ARCHETYPES, Archetype, PROGRAM, Persona, Phase, Role, Shadow, Sight, Tier};
use crate::text::is_unsafe;

/// Every key of the header; each occurs exactly once, except the last.
pub const KEYS: [&str; 9] =
    ["name", "role", "phase", "tier", "virtue", "shadow", "sees", "summary", "combines"];

/// Names two archetypes to combine (BX-26). Optional.
const COMBINES: &str = "combines";

/// Keys inherited from the two that are combined, which may not be given again.
const FOLLOWS: [&str; 3] = ["tier", "shadow", "sees"];

/// Names that mean something else wherever an archetype's name is written.
pub const RESERVED: [&str; 6] = ["default", "env", "mini-explorer", PROGRAM, "system", "user"];

pub const LONGEST_NAME: usize = 32;

/// The built-in archetype of that name. Each page is read once: their checks are the dearest part of a configuration.
pub fn built_in(name: &str) -> Option<Persona> {
    static PAGES: LazyLock<Vec<Option<Persona>>> =
        LazyLock::new(|| ARCHETYPES.iter().map(|(_, text)| parse(text).ok()).collect());
    let n = ARCHETYPES.iter().position(|(known, _)| *known == name)?;
    PAGES.get(n)?.clone()
}

/// Reads a whole file that combines nothing. The faults name their lines, counted from 1.
pub fn parse(text: &str) -> Result<Persona, Vec<String>> {
    parse_with(text, &|_| None)
}

/// The same for a file that may combine two others, which `find` knows by name.
pub fn parse_with(text: &str, find: &dyn Fn(&str) -> Option<Persona>) -> Result<Persona, Vec<String>> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let lines: Vec<&str> = text.split('\n').map(|line| line.strip_suffix('\r').unwrap_or(line)).collect();
    let mut faults = unseen(&lines);
    if lines.first() != Some(&"---") {
        faults.push("line 1: expected `---`, then the header".to_owned());
        return Err(faults);
    }
    let Some(end) = lines.iter().skip(1).position(|line| *line == "---").map(|n| n + 1) else {
        faults.push("line 1: the header has no closing `---`".to_owned());
        return Err(faults);
    };
    let header = Header::read(lines.get(1..end).unwrap_or_default(), &mut faults);
    let prompt = lines.get(end + 1..).unwrap_or_default().join("\n").trim().to_owned() + "\n";
    let parts = header.parts(find, &mut faults);
    if prompt.trim().is_empty() && parts.is_none() {
        faults.push(format!("line {}: there is no prompt after the header", end + 1));
    }
    match header.archetype(parts.as_deref(), &mut faults) {
        Some(archetype) if faults.is_empty() => {
            Ok(Persona { prompt: parts.map_or(prompt.clone(), |parts| together(&parts, &prompt)), archetype })
        }
        Some(_) | None => Err(faults),
    }
}

/// The text of a combined archetype: both prompts under headings, then what the file itself adds.
fn together(parts: &[Persona; 2], own: &str) -> String {
    let mut text = String::new();
    for part in parts {
        text += &format!("# As the {}\n\n{}\n\n", part.archetype.name, part.prompt.trim());
    }
    text += "# Both together\n\nGive one answer, in one format, that does justice to both.\n";
    if !own.trim().is_empty() {
        text += &format!("\n{}\n", own.trim());
    }
    text
}

/// Stands for no shadow beside those of the role.
pub const NO_SHADOW: &str = "none";

/// The shadows that a file's header names and the program does not know, so that no answer would ever be checked for
/// them (M-06). Each fault names its line. Only new runs are refused: one that began with such a file can be resumed.
pub fn unwatched(text: &str) -> Vec<String> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let lines: Vec<&str> = text.lines().skip(1).take_while(|line| *line != "---").collect();
    let header = Header::read(&lines, &mut Vec::new());
    let Some((n, words)) = header.get("shadow") else { return Vec::new() };
    let unknown = |word: &&str| *word != NO_SHADOW && Shadow::parse(word).is_none();
    let known: Vec<&str> = Shadow::ALL.iter().map(|shadow| shadow.name()).collect();
    let fault = |word: &str| {
        format!(
            "line {n}: `shadow` is `{}`, which the program can't detect and would never watch; allowed: {}, or \
             `{NO_SHADOW}` for those of the role only. Describe others in the prompt",
            short(word),
            known.join(", ")
        )
    };
    words.split(',').map(str::trim).filter(unknown).map(fault).collect()
}

/// Whether two roles do the same kind of work, so that one agent can do both at once.
fn same_kind(a: Role, b: Role) -> bool {
    let reviews = |role| matches!(role, Role::Gatekeeper | Role::Reviewer);
    a == b || (reviews(a) && reviews(b))
}

/// Whether a name can be used in file names, environment variables, tables and logs without further thought.
pub fn check_name(name: &str) -> Result<(), String> {
    let fits = |(n, c): (usize, char)| {
        c.is_ascii_lowercase() || c.is_ascii_digit() || (n > 0 && matches!(c, '-' | '_'))
    };
    if name.is_empty() || name.len() > LONGEST_NAME || !name.chars().enumerate().all(fits) {
        return Err(format!(
            "a name begins with a to z or 0 to 9, goes on with these, `-` or `_`, and has at most {LONGEST_NAME} \
             characters"
        ));
    }
    if RESERVED.contains(&name) {
        return Err(format!("these names are taken: {}", RESERVED.join(", ")));
    }
    Ok(())
}

/// The most a role may be shown.
pub fn sights(role: Role) -> &'static [Sight] {
    match role {
        Role::Explorer => &[Sight::Task],
        Role::Creator => &[Sight::Task, Sight::Research, Sight::Feedback],
        Role::Maker => &[Sight::Task, Sight::Proposal, Sight::Feedback],
        Role::Gatekeeper => &[Sight::Risks, Sight::Diff],
        Role::Reviewer => &[Sight::Proposal, Sight::Risks, Sight::Diff, Sight::Summary],
    }
}

pub fn phase(role: Role) -> Phase {
    match role {
        Role::Explorer | Role::Creator => Phase::Plan,
        Role::Maker => Phase::Do,
        Role::Gatekeeper | Role::Reviewer => Phase::Check,
    }
}

pub(crate) const ROLES: [(&str, Role); 5] = [
    ("explorer", Role::Explorer),
    ("creator", Role::Creator),
    ("maker", Role::Maker),
    ("gatekeeper", Role::Gatekeeper),
    ("reviewer", Role::Reviewer),
];

pub fn role_name(role: Role) -> &'static str {
    match role {
        Role::Explorer => "explorer",
        Role::Creator => "creator",
        Role::Maker => "maker",
        Role::Gatekeeper => "gatekeeper",
        Role::Reviewer => "reviewer",
    }
}

/// The built-in archetype of a role where no team selects one.
pub fn first_of(role: Role) -> &'static str {
    match role {
        Role::Explorer => "explorer",
        Role::Creator => "creator",
        Role::Maker => "maker",
        Role::Gatekeeper => "guardian",
        Role::Reviewer => "sage",
    }
}

/// Known keys with their line.
struct Header<'a>(BTreeMap<&'a str, (usize, &'a str)>);

impl<'a> Header<'a> {
    fn read(lines: &[&'a str], faults: &mut Vec<String>) -> Self {
        let mut found = BTreeMap::new();
        for (n, line) in lines.iter().enumerate() {
            let n = n + 2;
            let Some((key, value)) = line.split_once(':') else {
                faults.push(format!("line {n}: expected `key: value`; the keys are {}", KEYS.join(", ")));
                continue;
            };
            let (key, value) = (key.trim_end(), value.trim());
            if !KEYS.contains(&key) {
                let key: String = key.chars().take(40).collect();
                faults.push(format!("line {n}: unknown key `{key}`; the keys are {}", KEYS.join(", ")));
            } else if let Some((first, _)) = found.insert(key, (n, value)) {
                faults.push(format!("line {n}: the key `{key}` is already set in line {first}"));
            } else if value.is_empty() {
                faults.push(format!("line {n}: the key `{key}` has no value"));
            }
        }
        let combined = found.contains_key(COMBINES);
        for key in FOLLOWS {
            if let Some((n, _)) = found.get(key).filter(|_| combined) {
                faults.push(format!("line {n}: `{key}` follows from what is combined; take the line out"));
            }
        }
        let optional =
            |key: &str| key == COMBINES || (combined && (key == "virtue" || FOLLOWS.contains(&key)));
        for key in KEYS {
            if !found.contains_key(key) && !optional(key) {
                faults.push(format!("line 1: the key `{key}` is missing; the keys are {}", KEYS.join(", ")));
            }
        }
        Header(found)
    }

    /// The two archetypes a combined one is made of.
    fn parts(
        &self,
        find: &dyn Fn(&str) -> Option<Persona>,
        faults: &mut Vec<String>,
    ) -> Option<Box<[Persona; 2]>> {
        let (n, words) = self.get(COMBINES)?;
        let names: Vec<&str> = words.split(',').map(str::trim).collect();
        let &[one, two] = names.as_slice() else {
            let text = format!("line {n}: `combines` is `{}`; allowed: exactly two archetypes", short(words));
            faults.push(
                names
                    .get(2)
                    .map_or(text.clone(), |third| format!("{text}, and `{}` is the third", short(third))),
            );
            return None;
        };
        if one == two {
            faults.push(format!("line {n}: `combines` names `{}` twice", short(one)));
            return None;
        }
        let mut known = |name: &str| {
            let found = find(name);
            if found.is_none() {
                faults.push(format!(
                    "line {n}: `combines` names `{}`; allowed: archetypes that are known and not combined themselves",
                    short(name)
                ));
            }
            found
        };
        let parts = [known(one), known(two)];
        let [Some(one), Some(two)] = parts else { return None };
        let role = self.get("role").and_then(|(_, word)| ROLES.iter().find(|(known, _)| *known == word));
        for part in [&one, &two] {
            if let Some((word, role)) = role
                && !same_kind(*role, part.archetype.role)
            {
                faults.push(format!(
                    "line {n}: `combines` names `{}`, which is a {}; allowed in a {word}: archetypes that do the same \
                     kind of work",
                    part.archetype.name,
                    role_name(part.archetype.role)
                ));
            }
        }
        Some(Box::new([one, two]))
    }

    /// `None` after a fault that leaves nothing to build from; smaller faults are only noted.
    fn archetype(&self, parts: Option<&[Persona; 2]>, faults: &mut Vec<String>) -> Option<Archetype> {
        let role = self.one_of("role", faults, &ROLES);
        let phase = self.one_of("phase", faults, &PHASES);
        let tier = self.get("tier").and_then(|(n, word)| {
            let tier = Tier::parse(word);
            if tier.is_none() {
                faults.push(format!("line {n}: tier `{}` is not one of {}", short(word), Tier::NAMES));
            }
            tier
        });
        if let Some((n, name)) = self.get("name")
            && let Err(why) = check_name(name)
        {
            faults.push(format!("line {n}: name `{}`: {why}", short(name)));
        }
        let (role, phase) = (role?, phase?);
        if phase != self::phase(role) {
            let (n, _) = self.get("phase")?;
            let wanted = self::phase(role).name();
            faults.push(format!("line {n}: the phase of a {} is {wanted}", role_name(role)));
        }
        if let Some([one, two]) = parts {
            let (one, two) = (&one.archetype, &two.archetype);
            let virtue = || format!("{}, {}", one.virtue, two.virtue);
            let allowed = sights(role);
            return Some(Archetype {
                name: self.text("name")?,
                role,
                phase,
                tier: one.tier.max(two.tier),
                virtue: self.text("virtue").unwrap_or_else(virtue),
                shadow: one.shadow.clone(),
                sees: one.sees.union(&two.sees).copied().filter(|sight| allowed.contains(sight)).collect(),
                summary: self.text("summary")?,
            });
        }
        Some(Archetype {
            name: self.text("name")?,
            role,
            phase,
            tier: tier?,
            virtue: self.text("virtue")?,
            shadow: self.text("shadow")?,
            sees: self.sees(role, faults),
            summary: self.text("summary")?,
        })
    }

    fn sees(&self, role: Role, faults: &mut Vec<String>) -> BTreeSet<Sight> {
        let mut sees = BTreeSet::new();
        let Some((n, words)) = self.get("sees") else { return sees };
        let allowed = sights(role);
        let names: Vec<&str> = allowed.iter().map(|sight| sight.name()).collect();
        for word in words.split(',').map(str::trim) {
            match Sight::ALL.into_iter().find(|sight| sight.name() == word) {
                Some(sight) if allowed.contains(&sight) => {
                    if !sees.insert(sight) {
                        faults.push(format!("line {n}: sees `{word}` twice"));
                    }
                }
                Some(_) => faults.push(format!(
                    "line {n}: a {} never sees `{word}`; it may see {}",
                    role_name(role),
                    names.join(", ")
                )),
                None => faults.push(format!(
                    "line {n}: sees `{}` is unknown; a {} may see {}",
                    short(word),
                    role_name(role),
                    names.join(", ")
                )),
            }
        }
        sees
    }

    fn one_of<T: Copy>(&self, key: &str, faults: &mut Vec<String>, words: &[(&str, T)]) -> Option<T> {
        let (n, word) = self.get(key)?;
        let found = words.iter().find(|(known, _)| *known == word);
        if found.is_none() {
            let known: Vec<&str> = words.iter().map(|(known, _)| *known).collect();
            faults.push(format!("line {n}: {key} `{}` is not one of {}", short(word), known.join(", ")));
        }
        found.map(|(_, value)| *value)
    }

    /// Empty values were reported when the header was read.
    fn get(&self, key: &str) -> Option<(usize, &'a str)> {
        self.0.get(key).copied().filter(|(_, value)| !value.is_empty())
    }

    fn text(&self, key: &str) -> Option<String> {
        self.get(key).map(|(_, value)| value.to_owned())
    }
}

/// No archetype acts: the program does.
const PHASES: [(&str, Phase); 3] = [("plan", Phase::Plan), ("do", Phase::Do), ("check", Phase::Check)];

fn unseen(lines: &[&str]) -> Vec<String> {
    const ENOUGH: usize = 5;
    let mut faults = Vec::new();
    for (n, line) in lines.iter().enumerate() {
        if let Some(c) = line.chars().find(|c| *c != '\t' && is_unsafe(*c)) {
            faults.push(format!("line {}: the character U+{:04X} is not accepted", n + 1, u32::from(c)));
        }
        if faults.len() >= ENOUGH {
            break;
        }
    }
    faults
}

fn short(word: &str) -> String {
    word.chars().take(40).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// AF-001 and AF-030 to AF-036.
    #[test]
    fn the_seven_are_as_the_specification_has_them() {
        let rows = [
            ("explorer", "explorer", "plan", "contextual clarity", "rabbit hole", "haiku", "task"),
            (
                "creator",
                "creator",
                "plan",
                "decisive framing",
                "over-architect",
                "sonnet",
                "task research feedback",
            ),
            ("maker", "maker", "do", "execution discipline", "rogue", "sonnet", "task proposal feedback"),
            ("guardian", "gatekeeper", "check", "threat intuition", "paranoid", "sonnet", "risks diff"),
            ("skeptic", "reviewer", "check", "assumption surfacing", "paralytic", "haiku", "proposal"),
            (
                "sage",
                "reviewer",
                "check",
                "maintainability judgment",
                "bureaucrat",
                "haiku",
                "proposal diff summary",
            ),
            ("trickster", "reviewer", "check", "adversarial creativity", "false alarm", "haiku", "diff"),
        ];
        assert_eq!(rows.len(), ARCHETYPES.len());
        for (name, role, phase, virtue, shadow, tier, sees) in rows {
            let Archetype { name: n, role: r, phase: p, tier: t, virtue: v, shadow: s, sees: e, summary } =
                built_in(name).unwrap().archetype;
            let e: Vec<&str> = e.into_iter().map(Sight::name).collect();
            assert_eq!(
                (n.as_str(), role_name(r), p.name(), v.as_str(), s.as_str(), t.name(), e.join(" ").as_str()),
                (name, role, phase, virtue, shadow, tier, sees)
            );
            assert!(!summary.is_empty());
        }
        assert_eq!(built_in("nobody"), None);
    }

    #[test]
    fn prompt_is_the_text_after_the_header() {
        let persona = built_in("guardian").unwrap();
        assert!(persona.prompt.starts_with("## Lens\n"));
        assert!(persona.prompt.ends_with('\n') && !persona.prompt.ends_with("\n\n"));
        let crlf = ARCHETYPES[3].1.replace('\n', "\r\n");
        assert_eq!(parse(&crlf).unwrap(), persona);
    }

    const GOOD: &str = "---\nname: poet\nrole: reviewer\nphase: check\ntier: cheap\nvirtue: ear\nshadow: purple\n\
                        sees: proposal, diff\nsummary: Hears the text.\n---\n\nRead aloud.\n";

    #[test]
    fn faults_name_line_and_what_is_known() {
        assert_eq!(parse(GOOD).unwrap().archetype.tier, Tier::Haiku);
        for (from, to, faults) in [
            ("---\nname", "name", &["line 1: expected `---`"] as &[&str]),
            ("Hears the text.\n---\n", "Hears\n", &["no closing `---`"]),
            ("Read aloud.\n", "", &["line 10: there is no prompt"]),
            (
                "virtue: ear",
                "virtues: ear",
                &["line 6: unknown key `virtues`; the keys are name, role", "`virtue` is missing"],
            ),
            ("virtue: ear\n", "", &["line 1: the key `virtue` is missing; the keys are name, role"]),
            ("virtue: ear", "virtue:", &["line 6: the key `virtue` has no value"]),
            (
                "virtue: ear",
                "tier: opus",
                &["line 6: the key `tier` is already set in line 5", "`virtue` is missing"],
            ),
            ("virtue: ear", "virtue", &["line 6: expected `key: value`", "`virtue` is missing"]),
            ("role: reviewer", "role: judge", &["line 3: role `judge` is not one of explorer, creator"]),
            ("phase: check", "phase: act", &["line 4: phase `act` is not one of plan, do, check"]),
            ("phase: check", "phase: do", &["line 4: the phase of a reviewer is check"]),
            ("tier: cheap", "tier: huge", &["line 5: tier `huge` is not one of haiku (cheap)"]),
            ("name: poet", "name: ../poet", &["line 2: name `../poet`: a name begins with"]),
            ("name: poet", "name: program", &["line 2: name `program`: these names are taken"]),
            (
                "proposal, diff",
                "proposal, research",
                &["line 8: a reviewer never sees `research`; it may see proposal, risks"],
            ),
            ("proposal, diff", "feedback, task", &["never sees `feedback`", "never sees `task`"]),
            ("proposal, diff", "diff, diff", &["line 8: sees `diff` twice"]),
            ("proposal, diff", "diff, reviews", &["line 8: sees `reviews` is unknown"]),
            ("Read aloud", "Read\u{202e}aloud", &["line 12: the character U+202E is not accepted"]),
        ] {
            let text = GOOD.replacen(from, to, 1);
            assert_ne!(text, GOOD);
            let found = parse(&text).unwrap_err();
            assert_eq!(found.len(), faults.len(), "{to}: {found:?}");
            for (found, wanted) in found.iter().zip(faults) {
                assert!(found.contains(wanted), "{to}: {found:?}");
            }
        }
    }

    #[test]
    fn m_06_a_shadow_that_is_never_watched_is_a_fault() {
        for (shadow, unknown) in [
            ("purple", &["purple"] as &[&str]),
            ("bureaucrat", &[]),
            ("none", &[]),
            ("Bureaucrat, over-architect", &[]),
            ("bureaucrat, purple, haste", &["purple", "haste"]),
        ] {
            let text = GOOD.replacen("purple", shadow, 1);
            for text in [text.replace('\n', "\r\n"), text] {
                let faults = unwatched(&text);
                assert_eq!(faults.len(), unknown.len(), "{shadow}: {faults:?}");
                for (fault, word) in faults.iter().zip(unknown) {
                    let begins = format!("line 7: `shadow` is `{word}`, ");
                    assert!(fault.starts_with(&begins) && fault.contains("paranoid"), "{fault}");
                }
            }
        }
        assert_eq!(unwatched(BOTH), Vec::<String>::new(), "a combination has those of its parts");
        for (_, text) in ARCHETYPES {
            assert_eq!(unwatched(text), Vec::<String>::new());
        }
    }

    const BOTH: &str = "---\nname: warden\nrole: gatekeeper\nphase: check\nsummary: Guards and tends.\n\
                        combines: guardian, sage\n---\n\nMind the moat.\n";

    #[test]
    fn bx_26_two_archetypes_play_as_one() {
        let persona = parse_with(BOTH, &built_in).unwrap();
        let Archetype { role, tier, shadow, sees, virtue, .. } = &persona.archetype;
        assert_eq!((*role, *tier, shadow.as_str()), (Role::Gatekeeper, Tier::Sonnet, "paranoid"));
        assert_eq!(virtue, "threat intuition, maintainability judgment");
        // The union is diff, risks, proposal and summary; a gatekeeper may see two of them.
        assert_eq!(sees.iter().map(|sight| sight.name()).collect::<Vec<_>>(), ["risks", "diff"]);
        let at = |text: &str| persona.prompt.find(text).unwrap();
        assert!(at("# As the guardian") < at("# As the sage") && at("# As the sage") < at("Mind the moat."));
        let reviewer = BOTH.replace("gatekeeper", "reviewer").replace("guardian, sage", "trickster, skeptic");
        let persona = parse_with(&reviewer.replace("\nMind the moat.\n", ""), &built_in).unwrap();
        let sees: Vec<&str> = persona.archetype.sees.iter().map(|sight| sight.name()).collect();
        assert_eq!((sees.as_slice(), persona.archetype.tier), (&["proposal", "diff"][..], Tier::Haiku));
        for (from, to, fault) in [
            (
                "guardian, sage",
                "guardian, sage, skeptic",
                "line 6: `combines` is `guardian, sage, skeptic`; allowed: exactly two archetypes, and `skeptic` is the \
                 third",
            ),
            (
                "guardian, sage",
                "guardian",
                "line 6: `combines` is `guardian`; allowed: exactly two archetypes",
            ),
            ("guardian, sage", "sage, sage", "line 6: `combines` names `sage` twice"),
            (
                "guardian, sage",
                "sage, nobody",
                "line 6: `combines` names `nobody`; allowed: archetypes that are known",
            ),
            (
                "guardian, sage",
                "sage, maker",
                "line 6: `combines` names `maker`, which is a maker; allowed in a gatekeeper",
            ),
            ("phase: check", "phase: check\ntier: opus", "line 5: `tier` follows from what is combined"),
            ("phase: check", "phase: check\nsees: diff", "line 5: `sees` follows from what is combined"),
        ] {
            let found = parse_with(&BOTH.replacen(from, to, 1), &built_in).unwrap_err();
            assert!(found.len() == 1 && found[0].starts_with(fault), "{to}: {found:?}");
        }
    }

    #[test]
    fn a_gatekeeper_never_sees_the_whole_proposal() {
        let text = GOOD.replace("role: reviewer", "role: gatekeeper");
        assert_eq!(
            parse(&text).unwrap_err(),
            ["line 8: a gatekeeper never sees `proposal`; it may see risks, diff"]
        );
    }

    #[test]
    fn any_cut_and_any_flip_is_read_without_panic() {
        for end in 0..GOOD.len() {
            let _ = parse(&GOOD[..end]);
            let mut bytes = GOOD.as_bytes().to_vec();
            bytes[end] = b'\n';
            let _ = parse(str::from_utf8(&bytes).unwrap());
        }
    }
}
