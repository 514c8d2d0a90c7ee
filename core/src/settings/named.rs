//! Rows with a name in their path, and rows that fill an entry of a map instead of a field.

use super::{Home, Preset, Read, SettingClass, SettingField, SettingKind, SettingRow, SettingValue, Write};
use crate::model::{
    FailAction, Hook, HookPoint, Money, Policy, Price, Severity, Sign, Tier, Workflow, WorkflowModels,
};

/// What is the same for all rows of one kind of map.
const fn row(
    path: &'static str,
    (kind, class): (SettingKind, SettingClass),
    preset: Preset,
    help: &'static str,
    (home, read, write): (Home, Read, Write),
) -> SettingRow {
    SettingRow { path, kind, class, preset, help, home, read, write }
}

const TIER: (SettingKind, SettingClass) = (SettingKind::Tier, SettingClass::Inert);

/// A map holds only what differs from the workflow's own number.
macro_rules! cycles {
    ($path:literal, $workflow:expr, $help:literal) => {
        row(
            $path,
            (SettingKind::Whole(1, 10), SettingClass::GuardedAbove),
            Preset::Field,
            $help,
            (
                Home::Run,
                |all, _| all.run.cycles($workflow).read(),
                |all, _, value| {
                    let mut cycles = 0;
                    let taken = cycles.write(value);
                    if taken && cycles == $workflow.max_cycles() {
                        all.run.max_cycles.remove(&$workflow);
                    } else if taken {
                        all.run.max_cycles.insert($workflow, cycles);
                    }
                    taken
                },
            ),
        )
    };
}

pub(super) static MAX_CYCLES: &[SettingRow] = &[
    cycles!("max_cycles.fast", Workflow::Fast, "Most cycles of the workflow `fast`."),
    cycles!("max_cycles.standard", Workflow::Standard, "Most cycles of the workflow `standard`."),
    cycles!("max_cycles.thorough", Workflow::Thorough, "Most cycles of the workflow `thorough`."),
];

pub(super) static AGENTS: &[SettingRow] = &[row(
    "agents.<archetype>",
    (SettingKind::Agent, SettingClass::Guarded),
    Preset::Unset("as `agents.default`"),
    "Agent for this archetype.",
    (
        Home::Run,
        |all, names| all.run.agents.by_archetype.get(*names.first()?)?.read(),
        |all, names, value| {
            let Some(name) = names.first() else { return false };
            all.run.agents.by_archetype.entry((*name).to_owned()).or_default().write(value)
        },
    ),
)];

pub(super) static MODELS: &[SettingRow] = &[
    row(
        "models.archetypes.<archetype>",
        TIER,
        Preset::Unset("by the archetype"),
        "Tier of this archetype.",
        (
            Home::Run,
            |all, names| all.run.models.archetypes.get(*names.first()?).copied().read(),
            |all, names, value| match (names.first(), tier(value)) {
                (Some(name), Some(tier)) => {
                    all.run.models.archetypes.insert((*name).to_owned(), tier);
                    true
                }
                _ => false,
            },
        ),
    ),
    row(
        "models.workflows.<workflow>.default",
        TIER,
        Preset::Unset("none"),
        "Tier of all archetypes in this workflow.",
        (
            Home::Run,
            |all, names| all.run.models.workflows.get(&Workflow::parse(names.first()?)?)?.default.read(),
            |all, names, value| {
                models_of(&mut all.run, names).is_some_and(|models| models.default.write(value))
            },
        ),
    ),
    row(
        "models.workflows.<workflow>.archetypes.<archetype>",
        TIER,
        Preset::Unset("none"),
        "Tier of this archetype in this workflow; overrides the other three.",
        (
            Home::Run,
            |all, names| {
                let models = all.run.models.workflows.get(&Workflow::parse(names.first()?)?)?;
                models.archetypes.get(*names.get(1)?).copied().read()
            },
            |all, names, value| match (names.get(1), tier(value), models_of(&mut all.run, names)) {
                (Some(name), Some(tier), Some(models)) => {
                    models.archetypes.insert((*name).to_owned(), tier);
                    true
                }
                _ => false,
            },
        ),
    ),
    row(
        "models.mapping.<tier>",
        (SettingKind::Model, SettingClass::Guarded),
        Preset::Unset("`qwen3:8b` for haiku, else `qwen3:14b`"),
        "Ollama model for this tier.",
        (
            Home::Program,
            |all, names| all.program.models.mapping.get(&Tier::parse(names.first()?)?)?.read(),
            |all, names, value| {
                let tier = names.first().and_then(|name| Tier::parse(name));
                tier.is_some_and(|tier| all.program.models.mapping.entry(tier).or_default().write(value))
            },
        ),
    ),
    row(
        "models.prices.<tier>.input",
        (SettingKind::RATE, SettingClass::Guarded),
        Preset::Unset("the built-in page of prices"),
        "Dollars per million input tokens.",
        (
            Home::Run,
            |all, names| price(&all.run, names)?.input.read(),
            |all, names, value| {
                // Whoever names the price of an input token and not of cached ones means the usual tenth.
                let Some(price) = price_mut(&mut all.run, names) else { return false };
                let taken = price.input.write(value);
                price.cache_read = Money(price.input.0.div_ceil(10));
                price.cache_write = price.input;
                taken
            },
        ),
    ),
    row(
        "models.prices.<tier>.output",
        (SettingKind::RATE, SettingClass::Guarded),
        Preset::Unset("the built-in page of prices"),
        "Dollars per million output tokens.",
        (
            Home::Run,
            |all, names| price(&all.run, names)?.output.read(),
            |all, names, value| price_mut(&mut all.run, names).is_some_and(|price| price.output.write(value)),
        ),
    ),
    row(
        "models.prices.<tier>.cache_read",
        (SettingKind::RATE, SettingClass::Guarded),
        Preset::Unset("a tenth of `input`"),
        "Dollars per million tokens read from a cache.",
        (
            Home::Run,
            |all, names| price(&all.run, names)?.cache_read.read(),
            |all, names, value| {
                price_mut(&mut all.run, names).is_some_and(|price| price.cache_read.write(value))
            },
        ),
    ),
    row(
        "models.prices.<tier>.cache_write",
        (SettingKind::RATE, SettingClass::Guarded),
        Preset::Unset("the built-in page of prices, or `input`"),
        "Dollars per million tokens written to a cache.",
        (
            Home::Run,
            |all, names| price(&all.run, names)?.cache_write.read(),
            |all, names, value| {
                price_mut(&mut all.run, names).is_some_and(|price| price.cache_write.write(value))
            },
        ),
    ),
    row(
        "models.prices.<tier>.context_window",
        (SettingKind::Whole(1_000, 100_000_000), SettingClass::Guarded),
        Preset::Unset("the built-in page of prices"),
        "Context window in tokens, for prompt and answer together.",
        (
            Home::Run,
            |all, names| price(&all.run, names)?.context_window.read(),
            |all, names, value| {
                price_mut(&mut all.run, names).is_some_and(|price| price.context_window.write(value))
            },
        ),
    ),
];

fn tier(value: &SettingValue) -> Option<Tier> {
    let mut tier = None;
    tier.write(value);
    tier
}

fn models_of<'a>(policy: &'a mut Policy, names: &[&str]) -> Option<&'a mut WorkflowModels> {
    Some(policy.models.workflows.entry(Workflow::parse(names.first()?)?).or_default())
}

fn price<'a>(policy: &'a Policy, names: &[&str]) -> Option<&'a Price> {
    policy.costs.prices.get(&Tier::parse(names.first()?)?)
}

fn price_mut<'a>(policy: &'a mut Policy, names: &[&str]) -> Option<&'a mut Price> {
    Some(policy.costs.prices.entry(Tier::parse(names.first()?)?).or_default())
}

pub(super) static RAISED: &[SettingRow] = &[row(
    "raised.severity.<sign>",
    (SettingKind::SEVERITY, SettingClass::GuardedBelow),
    Preset::Text("CRITICAL"),
    "Severity when the program itself detects this in a change.",
    (
        Home::Run,
        |all, names| all.run.raised.severity.get(&sign(names)?).copied().read(),
        |all, names, value| {
            let Some(sign) = sign(names) else { return false };
            let mut severity = Severity::Critical;
            let taken = severity.write(value);
            all.run.raised.severity.insert(sign, severity);
            taken
        },
    ),
)];

fn sign(names: &[&str]) -> Option<Sign> {
    Sign::ALL.into_iter().find(|sign| names.first() == Some(&sign.name()))
}

pub(super) static HOOKS: &[SettingRow] = &[
    row(
        "hooks.<point>.command",
        (SettingKind::Command, SettingClass::Guarded),
        Preset::Unset("none"),
        "Command to run at this point of a run. In `hooks.yaml`, without the leading `hooks.`.",
        (
            Home::Run,
            |all, names| hook(&all.run.hooks, names)?.command.read(),
            |all, names, value| {
                let Some(point) = point(names) else { return false };
                if hook(&all.run.hooks, names).is_none() {
                    let fail_action = point.fail_action();
                    all.run.hooks.push(Hook { point, command: String::new(), fail_action });
                    all.run.hooks.sort_by_key(|hook| hook.point);
                }
                hook_mut(&mut all.run.hooks, names).is_some_and(|hook| hook.command.write(value))
            },
        ),
    ),
    row(
        "hooks.<point>.fail_action",
        (SettingKind::Words(&["warn", "abort"]), SettingClass::Guarded),
        Preset::Unset("abort for pre-merge, else warn"),
        "What to do when the hook's command fails.",
        (
            Home::Run,
            |all, names| hook(&all.run.hooks, names)?.fail_action.read(),
            |all, names, value| {
                hook_mut(&mut all.run.hooks, names).is_some_and(|hook| hook.fail_action.write(value))
            },
        ),
    ),
];

fn point(names: &[&str]) -> Option<HookPoint> {
    HookPoint::ALL.into_iter().find(|point| names.first() == Some(&point.name()))
}

fn hook<'a>(hooks: &'a [Hook], names: &[&str]) -> Option<&'a Hook> {
    let point = point(names)?;
    hooks.iter().find(|hook| hook.point == point)
}

fn hook_mut<'a>(hooks: &'a mut [Hook], names: &[&str]) -> Option<&'a mut Hook> {
    let point = point(names)?;
    hooks.iter_mut().find(|hook| hook.point == point)
}

impl HookPoint {
    /// A failing hook stops a run only where something is about to land.
    pub fn fail_action(self) -> FailAction {
        match self {
            HookPoint::PreMerge => FailAction::Abort,
            HookPoint::RunStart | HookPoint::PostMerge | HookPoint::RunComplete => FailAction::Warn,
        }
    }
}
