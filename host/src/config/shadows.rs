//! The thresholds of shadows, out of the settings into the policy.

use archeflow_core::model::{Policy, ScopeLevel};

use super::keys::Setting;
use super::layers::{Settings, narrow};

pub(super) fn read(settings: &Settings, policy: &mut Policy) {
    archetypes(settings, policy);
    system(settings, policy);
}

/// `None` is `off`.
fn limit(settings: &Settings, key: &str) -> Option<u32> {
    match settings.get(key) {
        Some(Setting::Whole(n)) => Some(narrow(n)),
        _ => None,
    }
}

fn archetypes(settings: &Settings, policy: &mut Policy) {
    let shadows = &mut policy.shadows;
    let limit = |name: &str| limit(settings, &format!("shadows.{name}"));
    let whole = |name: &str| narrow(settings.whole(&format!("shadows.{name}")));
    let switch = |name: &str| settings.switch(&format!("shadows.{name}"));
    shadows.enabled = switch("enabled");
    shadows.strikes_in_cycle = whole("strikes_in_cycle");
    shadows.distinct_in_cycle = whole("distinct_in_cycle");
    shadows.distinct_breaks = switch("distinct_breaks");
    shadows.consecutive_break = switch("consecutive_break");
    shadows.rabbit_hole.words = limit("rabbit_hole.words");
    shadows.rabbit_hole.tangents = limit("rabbit_hole.tangents");
    shadows.rabbit_hole.files = limit("rabbit_hole.files");
    shadows.rabbit_hole.synthesis = limit("rabbit_hole.synthesis");
    shadows.over_architect.abstractions = limit("over_architect.abstractions");
    shadows.over_architect.future_proof = limit("over_architect.future_proof");
    shadows.over_architect.scope = limit("over_architect.scope");
    shadows.over_architect.packages = limit("over_architect.packages");
    shadows.rogue.no_tests = limit("rogue.no_tests");
    shadows.rogue.outside_files = limit("rogue.outside_files");
    shadows.rogue.one_commit = limit("rogue.one_commit");
    shadows.rogue.no_test_run = limit("rogue.no_test_run");
    shadows.rogue.wiring_lines = whole("rogue.wiring_lines");
    shadows.paranoid.criticals = limit("paranoid.criticals");
    shadows.paranoid.ratio = whole("paranoid.ratio");
    shadows.paranoid.no_approvals = limit("paranoid.no_approvals");
    shadows.paranoid.fixes = limit("paranoid.fixes");
    shadows.paranoid.fixes_floor = whole("paranoid.fixes_floor");
    shadows.paranoid.compromised = limit("paranoid.compromised");
    shadows.paralytic.challenges = limit("paralytic.challenges");
    shadows.paralytic.alternatives = limit("paralytic.alternatives");
    shadows.paralytic.any = switch("paralytic.any");
    shadows.paralytic.alternatives_floor = whole("paralytic.alternatives_floor");
    shadows.paralytic.reworded = limit("paralytic.reworded");
    shadows.paralytic.out_of_scope = limit("paralytic.out_of_scope");
    shadows.false_alarm.untouched = limit("false_alarm.untouched");
    shadows.false_alarm.findings = limit("false_alarm.findings");
    shadows.false_alarm.few_files = whole("false_alarm.few_files");
    shadows.false_alarm.strict = switch("false_alarm.strict");
    shadows.false_alarm.impossible = limit("false_alarm.impossible");
    shadows.false_alarm.without_steps = limit("false_alarm.without_steps");
    shadows.bureaucrat.words = limit("bureaucrat.words");
    shadows.bureaucrat.words_floor = whole("bureaucrat.words_floor");
    shadows.bureaucrat.outside = limit("bureaucrat.outside");
    shadows.bureaucrat.considers = limit("bureaucrat.considers");
    shadows.bureaucrat.trivial_docs = limit("bureaucrat.trivial_docs");
}

fn system(settings: &Settings, policy: &mut Policy) {
    let shadows = &mut policy.system_shadows;
    let limit = |name: &str| limit(settings, &format!("system_shadows.{name}"));
    let whole = |name: &str| narrow(settings.whole(&format!("system_shadows.{name}")));
    shadows.tunnel_vision.files = limit("tunnel_vision.files");
    shadows.tunnel_vision.files_percent = whole("tunnel_vision.files_percent");
    shadows.tunnel_vision.findings_floor = whole("tunnel_vision.findings_floor");
    shadows.tunnel_vision.category = limit("tunnel_vision.category");
    shadows.tunnel_vision.reviewers = whole("tunnel_vision.reviewers");
    shadows.echo_chamber.duplicate_findings = limit("echo_chamber.duplicate_findings");
    shadows.echo_chamber.fast_consensus = limit("echo_chamber.fast_consensus");
    shadows.echo_chamber.reviewers = whole("echo_chamber.reviewers");
    shadows.gold_plating = limit("gold_plating");
    shadows.analysis_paralysis.plan_ratio = limit("analysis_paralysis.plan_ratio");
    shadows.analysis_paralysis.plan_floor_seconds = whole("analysis_paralysis.plan_floor_seconds");
    shadows.analysis_paralysis.explorer_starts = limit("analysis_paralysis.explorer_starts");
    shadows.cargo_cult = limit("cargo_cult");
    shadows.cargo_cult_percent = whole("cargo_cult_percent");
    shadows.broken_window = limit("broken_window");
    shadows.scope_creep.outside_files = limit("scope_creep.outside_files");
    shadows.scope_creep.double = limit("scope_creep.double");
    shadows.scope_creep.escalates = match settings.word("system_shadows.scope_creep.escalates") {
        Some("outside_files") => ScopeLevel::OutsideFiles,
        Some(_) | None => ScopeLevel::Double,
    };
}
