//! `archeflow doctor`: is everything a run needs in place?

use std::process::ExitCode;

use archeflow_core::words::ARCHETYPES;
use archeflow_host::backends::KNOWN;
use archeflow_host::config::Flags;
use archeflow_host::git::runner;
use archeflow_host::probe::{self, Found};
use archeflow_host::world::allowed_env;

use crate::args::Listing;
use crate::commands::{house, print_json};
use crate::faces::text::{pad, safe_line};
use crate::failure::Failure;

struct Check {
    what: &'static str,
    ok: bool,
    said: String,
}

pub(crate) fn run(args: &Listing) -> Result<ExitCode, Failure> {
    let mut checks = Vec::new();
    let mut check = |what, result: Result<String, String>| {
        let (ok, said) = match result {
            Ok(said) => (true, said),
            Err(said) => (false, said),
        };
        checks.push(Check { what, ok, said });
    };
    check(
        "git",
        runner::check_version().map(|()| "recent enough".to_owned()).map_err(|error| error.to_string()),
    );
    match house(&args.place, None, true) {
        Err(failure) => check("repository", Err(format!("{} {}", failure.message, failure.hint))),
        Ok(house) => {
            let target = house.target.as_ref().map(|target| target.branch.clone()).unwrap_or_default();
            check("repository", Ok(format!("{}, on {target}", house.places.root().display())));
            check("state folder", Ok(house.state.display().to_string()));
            check("working copies", self_test(&house.state));
            if let Some(target) = &house.target {
                let busy = house.repo.operations(target).unwrap_or_default();
                check(
                    "checkout",
                    match busy.first() {
                        None => Ok("no operation under way".to_owned()),
                        Some(operation) => {
                            Err(format!("{} is under way; finish it before landing", operation.what))
                        }
                    },
                );
            }
            let settings = house.settings(&Flags::default(), args.place.config.as_deref());
            match settings {
                Err(error) => check("configuration", Err(error.to_string())),
                Ok(settings) => {
                    let withheld: Vec<&str> = settings.withheld().iter().map(|w| w.key.as_str()).collect();
                    check(
                        "configuration",
                        if withheld.is_empty() {
                            Ok("read and in force".to_owned())
                        } else {
                            Err(format!("not approved: {}; run: archeflow trust", withheld.join(", ")))
                        },
                    );
                    let policy = settings.policy();
                    let none = || "none yet: set one with archeflow init, or --test-command".to_owned();
                    check("test command", Ok(policy.test_command.unwrap_or_else(none)));
                }
            }
            let personas: Result<Vec<_>, _> =
                ARCHETYPES.iter().map(|(name, _)| house.persona(name)).collect();
            check(
                "personas",
                personas.map(|all| format!("{} readable", all.len())).map_err(|error| error.to_string()),
            );
        }
    }
    let known: Vec<&str> = KNOWN.iter().map(|(form, _)| *form).collect();
    check("agents", Ok(format!("this version drives {}", known.join(", "))));
    let env = allowed_env(std::env::vars_os(), &[]);
    for found in probe::clients(&env) {
        check(found.client.name, told(&found));
    }
    let good = checks.iter().all(|check| check.ok);
    if args.place.json {
        let rows: Vec<_> = checks
            .iter()
            .map(|check| serde_json::json!({"check": check.what, "ok": check.ok, "said": check.said}))
            .collect();
        print_json(&serde_json::json!({ "ok": good, "checks": rows }));
    } else {
        for check in &checks {
            out!(
                "{} {} {}",
                if check.ok { "ok  " } else { "BAD " },
                pad(check.what, 16),
                safe_line(&check.said)
            );
        }
    }
    Ok(if good { ExitCode::SUCCESS } else { ExitCode::from(30) })
}

fn told(found: &Found) -> Result<String, String> {
    let dotted = |[a, b, c]: [u32; 3]| format!("{a}.{b}.{c}");
    let place = found.place.display();
    let version = dotted(found.version.clone().map_err(|why| format!("{place}: {why}"))?);
    let tried = dotted(found.client.tried);
    if found.is_tried() {
        Ok(format!("{version} at {place}, supported"))
    } else {
        Err(format!("{version} at {place} is older than {tried}, the oldest that was tried; update it"))
    }
}

/// M-B14: locks, renames and syncs must work where we keep our state.
fn self_test(state: &std::path::Path) -> Result<String, String> {
    let text = |error: std::io::Error| error.to_string();
    let path = state.join(format!("self-test-{}", std::process::id()));
    let other = path.with_extension("moved");
    let result = (|| {
        let file = std::fs::File::create(&path).map_err(text)?;
        file.lock().map_err(text)?;
        file.sync_all().map_err(text)?;
        std::fs::rename(&path, &other).map_err(text)?;
        Ok("locks, renames and syncs work".to_owned())
    })();
    let _ = std::fs::remove_file(&path);
    let _ = std::fs::remove_file(&other);
    result
}
