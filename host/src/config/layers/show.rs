//! `archeflow config show`: every setting, its value and where that came from.

use archeflow_core::settings::{self, SettingRow};

use super::{KindText, Settings, Source, Withheld, keys};

/// One line of `archeflow config show`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    pub key: String,
    /// Safe to print; empty when nothing is set.
    pub value: String,
    pub source: Source,
    pub note: String,
}

impl Settings {
    /// Every setting in force, in the order of the manual, and what was withheld.
    pub fn show(&self) -> Vec<Row> {
        let mut rows = Vec::new();
        for key in settings::rows() {
            if !key.path.contains('<') {
                rows.push(self.row(key.path, key));
                continue;
            }
            let names = self.values.keys().chain(self.withheld.iter().map(|held| &held.key));
            let mut names: Vec<&String> =
                names.filter(|name| keys::known(name).is_some_and(|known| known.path == key.path)).collect();
            names.sort();
            names.dedup();
            rows.extend(names.into_iter().map(|name| self.row(name, key)));
        }
        for held in self.withheld.iter().filter(|held| keys::known(&held.key).is_none()) {
            let note = not_in_force(held);
            rows.push(Row { key: held.key.clone(), value: String::new(), source: Source::BuiltIn, note });
        }
        rows
    }

    fn row(&self, name: &str, key: &SettingRow) -> Row {
        let mut notes: Vec<String> =
            self.withheld.iter().filter(|held| held.key == name).map(not_in_force).collect();
        let Some(set) = self.values.get(name) else {
            let (value, note) = match key.default() {
                Ok(value) => (value, None),
                Err(why) => (String::new(), Some(why.to_owned())),
            };
            notes.splice(0..0, note);
            let note = notes.join("; ");
            return Row { key: name.to_owned(), value, source: Source::BuiltIn, note };
        };
        if name == "test_command" && self.no_tests {
            notes.insert(0, "not run: --no-tests".to_owned());
        }
        notes.extend(set.beaten.iter().rev().map(|beaten| format!("also set at {beaten}")));
        Row {
            key: name.to_owned(),
            value: key.kind.shown(&set.value.to_string()),
            source: set.source.clone(),
            note: notes.join("; "),
        }
    }
}

fn not_in_force(held: &Withheld) -> String {
    format!("`{}` from {}:{} is not in force: not approved", held.value, held.path, held.line)
}
