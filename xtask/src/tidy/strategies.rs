//! Decisions depend on roles and on data, never on the name of an archetype or of a strategy.

use super::{Complaint, Tree, complaint};

/// Where something is decided or remembered.
const DECIDES: [&str; 5] =
    ["core/src/decide.rs", "core/src/steps/", "core/src/strategies/", "core/src/run/", "core/src/rules/"];

/// The file of every agent that the program brings along; its name is the agent's.
const AGENTS: [&str; 2] = ["core/archetypes/", "core/src/strategies/agent_loop/prompts/"];

/// What is the same for all strategies, and asks the rules of the one at hand where they differ.
const SHARED: [&str; 4] =
    ["core/src/decide.rs", "core/src/steps/", "core/src/run/fold.rs", "host/src/drive.rs"];

/// How code asks which strategy it has before it.
const ASKS: [&str; 7] = [
    "Strategy::",
    ".strategy()",
    "agent_loop",
    "loop_state",
    ".review.is_",
    "strategies::review",
    "strategies::p",
];

/// Users can replace archetypes and add their own, so a name means nothing.
pub(super) fn archetypes(tree: &Tree) -> Vec<Complaint> {
    let names: Vec<&str> = tree
        .under(&AGENTS, ".md")
        .filter_map(|(path, _)| path.rsplit('/').next()?.strip_suffix(".md"))
        .collect();
    let mut found = Vec::new();
    for (path, lines) in tree.sources(&DECIDES) {
        for line in lines {
            // A shadow says whose it is: that is its row, and nothing compares it with a run.
            if path.starts_with("core/src/rules/shadows/") && line.code.trim().starts_with("archetype:") {
                continue;
            }
            let named = line.strings.iter().find(|text| names.contains(&text.as_str()));
            found.extend(named.map(|name| {
                complaint(path, line.number, format!("\"{name}\": use a role, or a table in core/src/model"))
            }));
        }
    }
    found
}

pub(super) fn shared(tree: &Tree) -> Vec<Complaint> {
    let mut found = Vec::new();
    for (path, lines) in tree.sources(&SHARED) {
        for line in lines {
            // A name in words for people decides nothing.
            let asks = ASKS.iter().find(|ask| line.code.replace(".strategy().name()", "").contains(*ask));
            found.extend(asks.map(|ask| {
                complaint(path, line.number, format!("{ask}: ask `run.rules()` instead of the strategy"))
            }));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::tests::complains;
    use super::*;

    #[test]
    fn an_archetype_in_a_decision_is_noticed() {
        let files = [
            ("core/archetypes/skeptic.md", ""),
            ("core/src/strategies/agent_loop/prompts/judge.md", ""),
            ("core/src/model/workflow.rs", "const SKEPTIC: &str = \"skeptic\";\n"),
            ("core/src/rules/routing.rs", "// the \"skeptic\"\nmatch name { \"skeptic\" => 1 }\n"),
            ("core/src/rules/shadows/paralytic.rs", "    archetype: \"skeptic\",\nname == \"skeptic\";\n"),
            (
                "core/src/steps/check.rs",
                "skip(\"judge\");\nsay(\"the skeptic\");\n#[cfg(test)]\nmod tests {\n    \"skeptic\";\n}\n",
            ),
        ];
        let expected = [
            "core/src/rules/routing.rs:2",
            "core/src/rules/shadows/paralytic.rs:2",
            "core/src/steps/check.rs:1",
        ];
        complains(archetypes, &files, &expected);
    }

    #[test]
    fn a_shared_step_that_looks_at_the_strategy_is_noticed() {
        let files = [
            ("core/src/steps/act.rs", "if run.strategy() == x {}\nformat!(\"\", run.strategy().name())\n"),
            ("core/src/strategies/pdca/decide.rs", "Strategy::Pdca\n"),
            ("host/src/drive.rs", "// agent_loop\nif run.agent_loop.is_some() {}\nrun.rules()\n"),
        ];
        complains(shared, &files, &["core/src/steps/act.rs:1", "host/src/drive.rs:2"]);
    }
}
