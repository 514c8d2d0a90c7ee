//! `archeflow trust`: approve exactly the content this repository's configuration has now (D-08).

use std::io::{BufRead, IsTerminal, Write};

use archeflow_host::clock;
use archeflow_host::config::trust::{Guarded, Trust};
use archeflow_host::open;

use crate::args::TrustArgs;
use crate::commands::open_project;
use crate::failure::Failure;
use crate::output::CommandOutput;
use crate::render::text::safe;

pub(crate) fn run(args: &TrustArgs) -> Result<CommandOutput, Failure> {
    let project = open_project(&args.place, None, true)?;
    let mut trust = Trust::open(&project.state).map_err(open::Error::from)?;
    if args.revoke {
        let had = trust.revoke(&project.offer.root).map_err(open::Error::from)?;
        if args.place.json {
            return Ok(CommandOutput::json(serde_json::json!({ "approved": false, "revoked": had })));
        }
        let said = if had { "The approval is taken back.\n" } else { "Nothing was approved here.\n" };
        return Ok(CommandOutput::text(said.to_owned()));
    }
    let guarded = project.offer.guarded()?;
    if args.place.json {
        let rows: Vec<_> = guarded.iter().map(described).collect();
        if !args.show {
            trust.approve(&project.offer, &clock::written(clock::now())).map_err(open::Error::from)?;
        }
        return Ok(CommandOutput::json(
            serde_json::json!({ "approved": !args.show || project.approved, "guarded": rows }),
        ));
    }
    if guarded.is_empty() {
        let none = "This repository's configuration (as committed) names nothing that needs approval.\n";
        return Ok(CommandOutput::text(none.to_owned()));
    }
    let mut out = String::new();
    put!(
        out,
        "{} configures, as committed on the checked-out branch:",
        safe(&project.offer.root.display().to_string())
    );
    for row in &guarded {
        put!(out, "  {}", safe(&described(row)));
    }
    for change in project.offer.changes(trust.last(&project.offer.root))? {
        let (before, after) =
            (change.before.as_deref().unwrap_or("nothing"), change.after.as_deref().unwrap_or("nothing"));
        if trust.last(&project.offer.root).is_some() {
            put!(
                out,
                "  changed since you approved it: {} from {} to {}",
                safe(&change.key),
                safe(before),
                safe(after)
            );
        }
    }
    if project.approved {
        put!(out, "You approved exactly this already.");
        return Ok(CommandOutput::text(out));
    }
    if args.show {
        return Ok(CommandOutput::text(out));
    }
    let terminal = std::io::stdin().is_terminal();
    if terminal && !args.yes {
        // The person has to see what is asked about before the question.
        tell_part!("{}", std::mem::take(&mut out));
        if !confirmed() {
            return Ok(CommandOutput::text("Not approved.\n".to_owned()).with_code(20));
        }
    }
    trust.approve(&project.offer, &clock::written(clock::now())).map_err(open::Error::from)?;
    put!(out, "Approved. Any change to these files asks again.");
    Ok(CommandOutput::text(out))
}

fn described(row: &Guarded) -> String {
    format!("{} = {}  ({}:{})", row.key, row.value, row.path, row.line)
}

fn confirmed() -> bool {
    tell_part!("Approve exactly this? [y/N] ");
    let _ = std::io::stderr().flush();
    let mut line = String::new();
    std::io::stdin().lock().read_line(&mut line).is_ok() && archeflow_core::run::is_yes(&line)
}
