//! Populations of simulated agents: by name, or from a file in YAML or JSON.

use std::path::Path;

use archeflow_core::eval::sim::{SimPopulation, built_in_populations};
use serde_json::{Map, Number, Value};

use crate::config::yaml::{self, Value as YamlValue, YamlNode};
use crate::store::files;

/// A larger file is no population.
const LARGEST: u64 = 1 << 20;

/// The population that `spec` means: a built-in name, else the path of a file, seen from `from`. A fault names the place
/// and the remedy.
pub fn population(spec: &str, from: &Path) -> Result<SimPopulation, String> {
    if let Some(population) = SimPopulation::named(spec) {
        return Ok(population);
    }
    let path = from.join(spec);
    let bytes = files::read_capped(&path, LARGEST).map_err(|error| {
        let names: Vec<&str> = built_in_populations().iter().map(|(name, _)| *name).collect();
        format!(
            "no population '{spec}': {error}. Give the path of a population file, or one of: {}",
            names.join(", ")
        )
    })?;
    // JSON is YAML in another style.
    let entries = yaml::read(spec, &bytes).map_err(|fault| fault.to_string())?;
    let node = YamlNode { value: YamlValue::Map(entries), line: 1, column: 1 };
    SimPopulation::from_value(value(node)).map_err(|fault| format!("{spec}: {fault}"))
}

/// All scalars of a population are numbers. What is none is refused later, with its place.
fn value(node: YamlNode) -> Value {
    match node.value {
        YamlValue::Nothing => Value::Object(Map::new()),
        YamlValue::Scalar(text) => text
            .parse::<u64>()
            .map(Number::from)
            .ok()
            .or_else(|| text.parse().ok().and_then(Number::from_f64))
            .map_or(Value::String(text), Value::Number),
        YamlValue::List(nodes) => nodes.into_iter().map(value).collect(),
        YamlValue::Map(entries) => {
            entries.into_iter().map(|entry| (entry.key, value(entry.value))).collect::<Map<_, _>>().into()
        }
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

    use super::population;
    use archeflow_core::eval::sim::{SimMaker, SimPopulation, SimReviewer};

    #[test]
    fn ev_101_a_population_is_a_name_or_a_file_in_either_style() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
        assert_eq!(population("noisy", folder.path()).ok(), SimPopulation::named("noisy"));
        let wanted = SimPopulation {
            maker: SimMaker { wrong: 1.0, fixes: 0.25, ..SimMaker::default() },
            archetypes: [("sage".to_owned(), SimReviewer { recall: 0.0, ..SimReviewer::default() })].into(),
            ..SimPopulation::default()
        };
        write("own.yaml", "# mine\nmaker:\n  wrong: 1\n  fixes: 0.25\narchetypes:\n  sage:\n    recall: 0\n");
        write("own.json", r#"{"maker": {"wrong": 1, "fixes": 0.25}, "archetypes": {"sage": {"recall": 0}}}"#);
        write("empty.yaml", "maker:\n");
        assert_eq!(population("own.yaml", folder.path()).as_ref(), Ok(&wanted));
        assert_eq!(population("own.json", folder.path()).as_ref(), Ok(&wanted));
        assert_eq!(population("empty.yaml", folder.path()), Ok(SimPopulation::default()));

        write("high.yaml", "maker:\n  wrong: 1.5\n");
        write("unknown.yaml", "maker:\n  wrongs: 1\n");
        write("text.yaml", "maker:\n  wrong: often\n");
        write("twice.yaml", "maker:\n  wrong: 1\n  wrong: 0\n");
        for (name, parts) in [
            ("nowhere", ["no population 'nowhere'", "fair, careless, noisy, blind, restless, shadowed"]),
            ("high.yaml", ["high.yaml: maker.wrong is 1.5", "from 0 to 1"]),
            ("unknown.yaml", ["unknown.yaml: ", "unknown field `wrongs`"]),
            ("text.yaml", ["text.yaml: ", "often"]),
            ("twice.yaml", ["twice.yaml:3", "wrong"]),
        ] {
            let fault = population(name, folder.path()).err().unwrap_or_default();
            assert!(parts.iter().all(|part| fault.contains(part)), "{name}: {fault}");
        }
    }
}
