//! `archeflow trust --fleet`: approve the configuration for the workers of a fleet, by the repository's name.

use std::path::Path;

use archeflow_fleet::approvals::{self, Approved};
use archeflow_fleet::join::{FleetRole, JoinFile};
use archeflow_fleet::nats::{NatsBus, NatsOptions};
use archeflow_host::clock;
use archeflow_host::open::Project;
use serde_json::json;

use super::{APPROVE, NOT_APPROVED, agreed, described, listed, refused};
use crate::args::TrustArgs;
use crate::failure::Failure;
use crate::output::CommandOutput;
use crate::render::text::safe;

pub(super) fn run(args: &TrustArgs, project: &Project, join: &Path) -> Result<CommandOutput, Failure> {
    let join = JoinFile::read(join)?;
    if join.role != FleetRole::Person {
        return Err(Failure::new(
            21,
            "not_a_person",
            format!("only people approve, and {} is the join file of a {}", join.path.display(), join.role),
            "Use your own. Where the server is: archeflow fleet add person <name>",
        ));
    }
    let repository = match &args.name {
        Some(name) => name.clone(),
        None => folder_name(project)?,
    };
    let digest = project.offer.named_digest(&repository);
    let bus = NatsBus::connect(&join, NatsOptions::default())?;
    if args.revoke {
        let had = approvals::revoke(&bus, &join, &repository, &digest)?;
        let answer =
            json!({"approved": false, "revoked": had.is_some(), "repository": repository, "digest": digest});
        return Ok(answered(args, answer, || match &had {
            Some(had) => {
                format!("The approval of {} by {} is taken back.\n", safe(&repository), safe(&had.by))
            }
            None => format!("This configuration of {} was not approved.\n", safe(&repository)),
        }));
    }
    let guarded = project.offer.guarded()?;
    if guarded.is_empty() {
        let answer = json!({"approved": true, "guarded": [], "repository": repository, "digest": digest});
        return Ok(answered(args, answer, || {
            "This repository's configuration (as committed) names nothing that needs approval.\n".to_owned()
        }));
    }
    let known = approvals::find(&bus, &join, &repository, &digest)?;
    let approve = || approvals::approve(&bus, &join, &repository, &digest).map_err(Failure::from);
    if args.place.json {
        let now = if known.is_none() && args.yes && !args.show { Some(approve()?) } else { known };
        let code = if now.is_some() || args.show { 0 } else { NOT_APPROVED };
        let rows: Vec<String> = guarded.iter().map(described).collect();
        let mut answer =
            json!({"approved": now.is_some(), "guarded": rows, "repository": repository, "digest": digest});
        if let Some(Approved { by, at }) = now {
            answer["by"] = by.into();
            answer["at"] = clock::written(at).into();
        }
        return Ok(CommandOutput::json(answer).with_code(code));
    }
    let mut out = listed(project, &guarded);
    put!(out, "For the fleet it is {}, digest {}.", safe(&repository), digest);
    if let Some(known) = known {
        put!(out, "{} approved exactly this on {}.", safe(&known.by), clock::written(known.at));
        return Ok(CommandOutput::text(out));
    }
    if args.show {
        return Ok(CommandOutput::text(out));
    }
    if !agreed(args.yes, &mut out, APPROVE) {
        return Ok(refused(out));
    }
    approve()?;
    put!(out, "Approved for all workers of the fleet. Any change to these files asks again.");
    Ok(CommandOutput::text(out))
}

fn answered(args: &TrustArgs, answer: serde_json::Value, text: impl FnOnce() -> String) -> CommandOutput {
    if args.place.json { CommandOutput::json(answer) } else { CommandOutput::text(text()) }
}

/// As the queue of a sprint calls the project.
fn folder_name(project: &Project) -> Result<String, Failure> {
    let name = project.offer.root.file_name().and_then(|name| name.to_str()).map(str::to_owned);
    name.ok_or_else(|| {
        Failure::usage("the repository's folder has no name that can be used", "Name it: --name <repository>")
    })
}
