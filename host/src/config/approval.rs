//! The built-in value of a setting, whether another one needs approval, and the table of the manual.

use archeflow_core::settings::{SettingClass, SettingKind, SettingRow, SettingValue, rows};

use super::kinds::KindText;

/// Default and approval of a setting.
pub trait BuiltIn {
    /// The built-in value.
    fn built_in(&self) -> Option<SettingValue>;
    /// Whether this value, set by a repository, has to be approved first.
    fn needs_approval(&self, value: &SettingValue) -> bool;
}

impl BuiltIn for SettingRow {
    fn built_in(&self) -> Option<SettingValue> {
        let text = self.default().ok()?;
        let Some(items) = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')) else {
            return self.kind.read_text(&text);
        };
        let items: Vec<&str> = items.split(", ").filter(|item| !item.is_empty()).collect();
        self.kind.read_items(&items)
    }

    fn needs_approval(&self, value: &SettingValue) -> bool {
        let built_in = self.built_in();
        match self.class {
            SettingClass::Inert => false,
            SettingClass::Own => true,
            SettingClass::Guarded => built_in.as_ref() != Some(value),
            SettingClass::GuardedAbove => {
                built_in.is_none_or(|built_in| exceeds(self.kind, value, &built_in))
            }
            SettingClass::GuardedBelow => {
                built_in.is_none_or(|built_in| exceeds(self.kind, &built_in, value))
            }
        }
    }
}

fn exceeds(kind: SettingKind, a: &SettingValue, b: &SettingValue) -> bool {
    match (a, b) {
        (SettingValue::Whole(a), SettingValue::Whole(b)) => a > b,
        (SettingValue::Millionths(a), SettingValue::Millionths(b)) => a > b,
        (SettingValue::Money(a), SettingValue::Money(b)) => a > b,
        (SettingValue::Wholes(a), SettingValue::Wholes(b)) => {
            a.len() > b.len() || a.iter().sum::<u64>() > b.iter().sum::<u64>()
        }
        (SettingValue::Word(a), SettingValue::Word(b)) => kind.rank(a) > kind.rank(b),
        _ => a != b,
    }
}

/// The page of the manual with its table written again between the two marks; `None` without them.
pub fn in_manual(page: &str) -> Option<String> {
    const BEGIN: &str = "<!-- settings: written by `cargo xtask docs` -->\n";
    const END: &str = "<!-- end of settings -->\n";
    let (before, rest) = page.split_once(BEGIN)?;
    let (_, after) = rest.split_once(END)?;
    Some(format!("{before}{BEGIN}{}{END}{after}", table()))
}

fn table() -> String {
    let mut text =
        "| Key | Allowed | Default | Set by a repository | Meaning |\n|---|---|---|---|---|\n".to_owned();
    for key in rows() {
        let default = match key.default() {
            Ok(value) => format!("`{value}`"),
            Err(why) => why.to_owned(),
        };
        let class = match (key.class, key.default()) {
            (SettingClass::Inert, _) => "used",
            (SettingClass::Guarded, Ok(_)) => "needs approval, except the default",
            (SettingClass::Guarded, Err(_)) => "needs approval",
            (SettingClass::GuardedAbove, _) => "needs approval above the default",
            (SettingClass::GuardedBelow, _) => "needs approval below the default",
            (SettingClass::Own, _) => "never",
        };
        // The list of agents is on another page. Elsewhere angle brackets would be taken for HTML.
        let allowed = if key.kind == SettingKind::Agent {
            "an [agent](agents.md#naming-agents)".to_owned()
        } else if let SettingKind::Agents(most) = key.kind {
            format!("a list of at most {most} [agents](agents.md#naming-agents)")
        } else {
            key.kind.allowed().replace('<', "\\<")
        };
        text += &format!("| `{}` | {allowed} | {default} | {class} | {} |\n", key.path, key.help);
    }
    text
}
