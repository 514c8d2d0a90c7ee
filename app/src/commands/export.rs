//! `archeflow export`: a run as one file (see [`super::transfer`]), or as spans, log records and metrics, sent to a collector or written as JSON.

use archeflow_core::rules::run_names::RunUse;
use archeflow_host::log;
use archeflow_host::open::users_settings;
use archeflow_host::telemetry::{self, OtlpTarget, SentSignal, TelemetryError};
use serde_json::{Value, json};

use crate::args::{ExportCommand, ExportOtlp};
use crate::commands::trust::only_from_outside;
use crate::commands::{list, naming, open_project, transfer};
use crate::failure::Failure;
use crate::output::{CommandOutput, to_file};
use crate::render::text::{safe_json, safe_line};

pub(crate) fn run(what: &ExportCommand) -> Result<CommandOutput, Failure> {
    match what {
        ExportCommand::Otlp(args) => otlp(args),
        ExportCommand::Run(args) => transfer::export_run(args),
    }
}

fn otlp(args: &ExportOtlp) -> Result<CommandOutput, Failure> {
    let project = open_project(&args.place, None, false)?;
    let id = naming::run_id(&project, args.id.as_deref(), RunUse::Show)?;
    let entries = log::entries(&list::text(&project, &id)?)?;
    // These settings are the user's alone.
    let config = args.place.config.as_deref();
    let settings = users_settings(&project.env, project.places.root(), config)?.telemetry();
    let artifacts = project.places.artifacts().join(&id);
    let telemetry = telemetry::of_run(&id, &entries, &artifacts, args.content || settings.content);
    let variables = &project.env.variables;
    if args.dry_run || args.output.is_some() {
        let resource = telemetry::resource(variables)?;
        let json = telemetry::as_json(&telemetry, &resource).map_err(|error| {
            Failure::new(30, "environment", format!("it can't be written as JSON: {error}"), "")
        })?;
        let text = format!("{}\n", safe_json(&json));
        return match &args.output {
            Some(path) => {
                let path = project.env.cwd.join(path);
                to_file(&path, text.as_bytes(), &format!("archeflow export otlp {id}"))?;
                tell!("Telemetry: {}", safe_line(&path.display().to_string()));
                Ok(CommandOutput::done())
            }
            None => Ok(CommandOutput::text(text)),
        };
    }
    only_from_outside("send telemetry")?;
    let target = OtlpTarget::of(args.to.as_deref(), &settings, variables)?;
    let sent = telemetry::export(&telemetry, &target, None)?;
    let trace = telemetry.trace_text();
    if args.place.json {
        let counts: serde_json::Map<String, Value> = sent
            .signals
            .iter()
            .map(|(signal, state)| {
                let count = match state {
                    SentSignal::Taken(count) => json!(count),
                    SentSignal::NotTaken => Value::Null,
                    SentSignal::Nothing => json!(0),
                };
                (signal.name().to_owned(), count)
            })
            .collect();
        return Ok(CommandOutput::json(json!({
            "run_id": id, "trace_id": trace, "address": sent.address, "sent": counts, "open_spans": telemetry.open,
        })));
    }
    let mut out = String::new();
    put!(out, "Sent {id} to {} as trace {trace}", safe_line(&sent.address));
    for (signal, state) in &sent.signals {
        let words = match state {
            SentSignal::Taken(count) => count.to_string(),
            SentSignal::NotTaken => "none: this address takes no such data".to_owned(),
            SentSignal::Nothing => "0".to_owned(),
        };
        put!(out, "  {:<8} {words}", signal.name());
    }
    if telemetry.open > 0 {
        put!(
            out,
            "The run has not ended. Spans that are not over are sent later: {} of them.",
            telemetry.open
        );
    }
    Ok(CommandOutput::text(out))
}

impl From<TelemetryError> for Failure {
    fn from(error: TelemetryError) -> Failure {
        let (message, remedy) = (error.to_string(), error.remedy());
        match error {
            TelemetryError::NoAddress
            | TelemetryError::Address { .. }
            | TelemetryError::Headers { .. }
            | TelemetryError::Protocol { .. } => Failure::usage(message, remedy),
            TelemetryError::Unreachable { .. }
            | TelemetryError::Refused { .. }
            | TelemetryError::Nonsense { .. }
            | TelemetryError::Partial { .. }
            | TelemetryError::Certificates(_) => Failure::new(30, "telemetry", message, remedy),
        }
    }
}
