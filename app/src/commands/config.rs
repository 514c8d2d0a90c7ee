//! `archeflow config show`: the settings in effect and their sources.

use archeflow_host::config::Flags;

use crate::args::Listing;
use crate::commands::open_project_to_read;
use crate::failure::Failure;
use crate::output::CommandOutput;
use crate::render::text::{pad, safe_line};

pub(crate) fn show(args: &Listing) -> Result<CommandOutput, Failure> {
    let project = open_project_to_read(&args.place, false)?;
    let settings = project.settings(&Flags::default(), args.place.config.as_deref())?;
    let rows = settings.show();
    if args.place.json {
        let settings_json: Vec<_> = rows
            .iter()
            .map(|row| serde_json::json!({"key": row.key, "value": row.value, "source": row.source.to_string(), "note": row.note}))
            .collect();
        let withheld: Vec<_> = settings
            .withheld()
            .iter()
            .map(|w| serde_json::json!({"key": w.key, "value": w.value, "source": format!("{}:{}", w.path, w.line)}))
            .collect();
        return Ok(CommandOutput::json(
            serde_json::json!({ "settings": settings_json, "withheld": withheld, "approved": project.approved }),
        ));
    }
    let key = rows.iter().map(|row| row.key.chars().count()).max().unwrap_or(0);
    let value = rows.iter().map(|row| row.value.chars().count()).max().unwrap_or(0).min(40);
    let mut out = String::new();
    put!(out, "{}  {}  SOURCE", pad("KEY", key), pad("VALUE", value));
    for row in &rows {
        let note = if row.note.is_empty() { String::new() } else { format!("  ({})", safe_line(&row.note)) };
        put!(
            out,
            "{}  {}  {}{note}",
            pad(&row.key, key),
            pad(&safe_line(&row.value), value),
            safe_line(&row.source.to_string())
        );
    }
    if !settings.withheld().is_empty() {
        put!(out, "\nNot in effect until approved (archeflow trust):");
        for withheld in settings.withheld() {
            put!(
                out,
                "  {} = {}  ({}:{})",
                withheld.key,
                safe_line(&withheld.value),
                safe_line(&withheld.path),
                withheld.line
            );
        }
    }
    Ok(CommandOutput::text(out))
}
