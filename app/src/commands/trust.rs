//! `archeflow trust`: approve exactly the content this repository's configuration has now (D-08).

use std::io::{BufRead, IsTerminal, Write};
use std::process::ExitCode;

use archeflow_host::clock;
use archeflow_host::config::trust::{Guarded, Trust};
use archeflow_host::open;

use crate::args::TrustArgs;
use crate::commands::{house, print_json};
use crate::failure::Failure;
use crate::render::text::safe;

pub(crate) fn run(args: &TrustArgs) -> Result<ExitCode, Failure> {
    let house = house(&args.place, None, true)?;
    let mut trust = Trust::open(&house.state).map_err(open::Error::from)?;
    if args.revoke {
        let had = trust.revoke(&house.offer.root).map_err(open::Error::from)?;
        if args.place.json {
            print_json(&serde_json::json!({ "approved": false, "revoked": had }));
            return Ok(ExitCode::SUCCESS);
        }
        out!("{}", if had { "The approval is taken back." } else { "Nothing was approved here." });
        return Ok(ExitCode::SUCCESS);
    }
    let guarded = house.offer.guarded()?;
    if args.place.json {
        let rows: Vec<_> = guarded.iter().map(described).collect();
        if !args.show {
            trust.approve(&house.offer, &clock::written(clock::now())).map_err(open::Error::from)?;
        }
        print_json(&serde_json::json!({ "approved": !args.show || house.approved, "guarded": rows }));
        return Ok(ExitCode::SUCCESS);
    }
    if guarded.is_empty() {
        out!("This repository's configuration (as committed) names nothing that needs approval.");
        return Ok(ExitCode::SUCCESS);
    }
    out!("{} wants, as committed on the checked-out branch:", safe(&house.offer.root.display().to_string()));
    for row in &guarded {
        out!("  {}", safe(&described(row)));
    }
    for change in house.offer.changes(trust.last(&house.offer.root))? {
        let (before, after) =
            (change.before.as_deref().unwrap_or("nothing"), change.after.as_deref().unwrap_or("nothing"));
        if trust.last(&house.offer.root).is_some() {
            out!(
                "  changed since you approved it: {} from {} to {}",
                safe(&change.key),
                safe(before),
                safe(after)
            );
        }
    }
    if house.approved {
        out!("You approved exactly this already.");
        return Ok(ExitCode::SUCCESS);
    }
    if args.show {
        return Ok(ExitCode::SUCCESS);
    }
    let terminal = std::io::stdin().is_terminal();
    if terminal && !args.yes && !confirmed() {
        out!("Not approved.");
        return Ok(ExitCode::from(20));
    }
    trust.approve(&house.offer, &clock::written(clock::now())).map_err(open::Error::from)?;
    out!("Approved. Any change to these files asks again.");
    Ok(ExitCode::SUCCESS)
}

fn described(row: &Guarded) -> String {
    format!("{} = {}  ({}:{})", row.key, row.value, row.path, row.line)
}

fn confirmed() -> bool {
    out_part!("Approve exactly this? [y/N] ");
    let _ = std::io::stdout().flush();
    let mut line = String::new();
    std::io::stdin().lock().read_line(&mut line).is_ok() && archeflow_core::run::is_yes(&line)
}
