//! Values that are typed for one run, or set in the environment.

use super::{Fault, KeyMatch, KindText, Source, SourcedValue, keys, shown, whole_file};

/// What was typed for this run.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Flags {
    pub workflow: Option<String>,
    pub strategy: Option<String>,
    pub domain: Option<String>,
    pub team: Option<String>,
    /// Names with commas between them.
    pub lens: Option<String>,
    pub agent: Option<String>,
    /// Archetype and agent.
    pub agent_for: Vec<(String, String)>,
    pub test_command: Option<String>,
    pub no_tests: Option<bool>,
    pub setup_command: Option<String>,
    pub allow_red_base: Option<bool>,
    pub auto_merge: Option<bool>,
    /// Dollars.
    pub budget: Option<String>,
    /// Cycles beyond the limit for a run that is converging.
    pub extra_cycles: Option<String>,
    /// The environment variable [`SHADOWS`].
    pub shadows: Option<String>,
    /// The environment variable [`PROVIDER`].
    pub provider: Option<String>,
}

/// `off` switches the detection of shadows off (BX-34).
pub const SHADOWS: &str = "ARCHEFLOW_SHADOWS";

/// Who is asked where no agent is named.
pub const PROVIDER: &str = "ARCHEFLOW_MODEL_PROVIDER";

pub(super) fn read(
    flags: &Flags,
    archetypes: &[String],
    found: &mut Vec<SourcedValue>,
    faults: &mut Vec<Fault>,
) {
    let mut typed: Vec<(&'static str, String, String)> = Vec::new();
    for (flag, key, value) in [
        ("--workflow", "workflow", &flags.workflow),
        ("--strategy", "strategy", &flags.strategy),
        ("--domain", "domain", &flags.domain),
        ("--team", "team", &flags.team),
        ("--lens", "lenses", &flags.lens),
        ("--agent", "agents.default", &flags.agent),
        ("--test-command", "test_command", &flags.test_command),
        ("--setup-command", "setup_command", &flags.setup_command),
        ("--budget", "costs.budget_usd", &flags.budget),
        ("--extra-cycles", "extra_cycles", &flags.extra_cycles),
        (PROVIDER, "models.provider", &flags.provider),
    ] {
        typed.extend(value.iter().map(|value| (flag, key.to_owned(), value.clone())));
    }
    typed.extend(
        flags.auto_merge.iter().map(|on| ("--auto-merge", "git.auto_merge".to_owned(), on.to_string())),
    );
    typed.extend(
        flags
            .allow_red_base
            .iter()
            .map(|on| ("--allow-red-base", "allow_red_base".to_owned(), on.to_string())),
    );
    if let Some(text) = &flags.shadows {
        let on = match text.as_str() {
            "on" => Some("true"),
            "off" => Some("false"),
            _ => None,
        };
        match on {
            Some(on) => typed.push((SHADOWS, "shadows.enabled".to_owned(), on.to_owned())),
            None => {
                let text = format!("`{}` is not allowed; allowed: on, off", shown(text));
                faults.push(whole_file(SHADOWS, &text));
            }
        }
    }
    for (name, spec) in &flags.agent_for {
        match keys::find(&["agents", name], archetypes) {
            KeyMatch::Setting(key) if key.path == "agents.<archetype>" => {
                typed.push(("--agent-for", format!("agents.{name}"), spec.clone()));
            }
            KeyMatch::Setting(_) | KeyMatch::Section | KeyMatch::Later | KeyMatch::Unknown => {
                let mut known = keys::siblings(&["agents"], archetypes);
                known.retain(|name| !super::NO_ARCHETYPES.contains(&name.as_str()));
                let text = format!("unknown archetype `{}`; known: {}", shown(name), known.join(", "));
                faults.push(whole_file("--agent-for", &text));
            }
        }
    }
    for (flag, key, text) in typed {
        let Some(row) = keys::known(&key) else { continue };
        match row.kind.read_text(&text) {
            Some(value) => found.push(SourcedValue { key, value, source: Source::Flag(flag) }),
            None => {
                let text =
                    format!("`{}` is not allowed for `{key}`; allowed: {}", shown(&text), row.kind.allowed());
                faults.push(whole_file(flag, &text));
            }
        }
    }
    if flags.no_tests == Some(true) && flags.test_command.is_some() {
        faults.push(whole_file("--no-tests", "can't be given together with --test-command"));
    }
}
