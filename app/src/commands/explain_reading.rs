//! `archeflow explain answer` and `archeflow explain same`: what would be read in an answer, and whether two findings
//! are one. No journal, no effects.

use std::io::Read;
use std::path::Path;

use archeflow_core::accept;
use archeflow_core::model::{ARCHETYPES, AnswerBody, Finding, Review, Role, Severity, Verdict};
use archeflow_core::persona;
use archeflow_core::read;
use archeflow_core::rules::evidence;
use archeflow_core::rules::identity::{FindingClaim, Likeness};
use archeflow_host::executors::look_up_in_folder;
use serde_json::{Value, json};

use crate::args::ExplainArgs;
use crate::failure::Failure;
use crate::output::CommandOutput;
use crate::render::text::safe;

/// More is no answer.
const LONGEST: u64 = 64_000_000;

pub(crate) fn answer(args: &ExplainArgs) -> Result<CommandOutput, Failure> {
    let [file] = args.files.as_slice() else {
        return Err(Failure::usage(
            "explain answer reads one answer",
            "archeflow explain answer <file> --role guardian; - reads standard input",
        ));
    };
    let name = args.role.as_deref().unwrap_or("guardian").to_lowercase();
    let Some(role) = persona::built_in(&name).map(|persona| persona.archetype.role) else {
        let known: Vec<&str> = ARCHETYPES.iter().map(|(known, _)| *known).collect();
        return Err(Failure::usage(
            format!("no role is called '{name}'"),
            format!("One of: {}", known.join(", ")),
        ));
    };
    let bytes = bytes(file)?;
    let mut answer = read::answer(role, &name, &bytes);
    if let (AnswerBody::Review(review), Some(folder)) = (&mut answer.said, &args.place.repo) {
        if !folder.is_dir() {
            return Err(Failure::usage(format!("{} is not a folder", folder.display()), ""));
        }
        look_up_in_folder(folder, &mut review.findings)
            .map_err(|error| Failure::usage(format!("{}: {error}", folder.display()), ""))?;
    }
    let refused = accept::accept(role, &answer, true, false).err().map(|(_, why)| why);
    let none = Review::default();
    let review = match &answer.said {
        AnswerBody::Review(review) => review,
        AnswerBody::Prose | AnswerBody::Proposal(_) => &none,
    };
    if args.place.json {
        return Ok(CommandOutput::json(json!({
            "role": name,
            "accepted": refused.is_none(),
            "refused": refused,
            "status": answer.status.name(),
            "verdict": review.verdict.map(verdict),
            "findings": review.findings.iter().map(finding).collect::<Vec<_>>(),
            "problems": answer.problems,
        })));
    }
    Ok(CommandOutput::text(told(role, refused.as_deref(), review, &answer.problems)))
}

fn told(role: Role, refused: Option<&str>, review: &Review, problems: &[String]) -> String {
    let mut text = match refused {
        None => "The answer can be read.\n".to_owned(),
        Some(why) => format!("The answer is refused and asked for again: {why}\n"),
    };
    if matches!(role, Role::Gatekeeper | Role::Reviewer) {
        text.push_str(&format!("verdict: {}\n", review.verdict.map_or("none", verdict)));
    }
    for found in &review.findings {
        let weighed = evidence::weigh(found);
        let counts = weighed.map_or(found.severity, |why| found.severity.min(why.counts_as()));
        let place = if found.location.is_empty() { "no place" } else { &found.location };
        text.push_str(&format!("{} {place}: {}\n", found.severity.name(), found.description));
        if let Some(why) = weighed {
            text.push_str(&format!("  counts as {} ({})\n", counts.name(), why.name()));
        }
    }
    for problem in problems {
        text.push_str(&format!("not understood: {problem}\n"));
    }
    safe(&text)
}

fn finding(found: &Finding) -> Value {
    let weighed = evidence::weigh(found);
    let severity = weighed.map_or(found.severity, |why| found.severity.min(why.counts_as()));
    let advice = severity == Severity::Info && found.severity > Severity::Info;
    let filled = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    json!({
        "severity": severity.name(),
        "said": found.severity.name(),
        "standing": if advice { "advice" } else { "counts" },
        "why": weighed.map(archeflow_core::event::Unfounded::name),
        "category": found.category,
        "file": filled(&found.file),
        "line": (found.line > 0).then_some(found.line),
        "location": found.location,
        "description": found.description,
        "fix": filled(&found.fix),
        "evidence": filled(&found.evidence),
        "sources": [found.source],
        "citations": found.citations,
    })
}

fn verdict(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Approved => "APPROVED",
        Verdict::Rejected => "REJECTED",
    }
}

pub(crate) fn same(args: &ExplainArgs) -> Result<CommandOutput, Failure> {
    let [one, other] = args.files.as_slice() else {
        return Err(Failure::usage(
            "explain same compares two findings",
            "archeflow explain same a.json b.json; each has file, line, category, severity, description and source",
        ));
    };
    let (one, other) = (Given::read(one)?, Given::read(other)?);
    let likeness = one.claim().compare(&other.claim());
    if args.place.json {
        return Ok(CommandOutput::json(object(&likeness)));
    }
    let verdict = if likeness.is_same() { "same" } else { "different" };
    Ok(CommandOutput::text(format!("{verdict}: {likeness}\n")))
}

fn object(likeness: &Likeness) -> Value {
    json!({
        "same": likeness.is_same(),
        "points": likeness.points,
        // Nothing where it is ruled out, whatever the points.
        "needed": (likeness.needed != i32::MAX).then_some(likeness.needed),
        "reasons": likeness.reasons.iter().map(|(reason, points)| json!({
            "reason": reason.name(), "points": points,
        })).collect::<Vec<_>>(),
    })
}

/// A finding from a file.
struct Given {
    file: String,
    line: u32,
    category: String,
    description: String,
    sources: Vec<String>,
    /// The first code it quotes as evidence: two findings that quote the same are about the same code.
    quote: String,
}

impl Given {
    fn read(path: &Path) -> Result<Given, Failure> {
        let bytes = bytes(path)?;
        let wrong = |what: String| {
            let hint = "A finding is an object with file, line, category, severity, description and source";
            Failure::usage(format!("{}: {what}", path.display()), hint)
        };
        let value: Value = serde_json::from_slice(&bytes).map_err(|error| wrong(error.to_string()))?;
        let Value::Object(fields) = &value else { return Err(wrong("not an object".to_owned())) };
        let text = |key: &str| match fields.get(key) {
            None | Some(Value::Null) => Ok(String::new()),
            Some(Value::String(text)) => Ok(text.clone()),
            Some(_) => Err(wrong(format!("'{key}' is not a text"))),
        };
        let description = text("description")?;
        if description.trim().is_empty() {
            return Err(wrong("there is no description".to_owned()));
        }
        let line = match fields.get("line") {
            None | Some(Value::Null) => 0,
            Some(Value::Number(number)) => number
                .as_u64()
                .and_then(|number| u32::try_from(number).ok())
                .ok_or_else(|| wrong("'line' is not a line number".to_owned()))?,
            Some(_) => return Err(wrong("'line' is not a number".to_owned())),
        };
        let sources = match (fields.get("source"), fields.get("sources")) {
            (Some(Value::String(source)), _) => vec![source.clone()],
            (_, Some(Value::Array(all))) => all.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
            _ => Vec::new(),
        };
        let evidence = text("evidence")?;
        let quote = evidence.split('`').nth(1).map(str::trim).filter(|quote| quote.len() >= 8);
        let quote = quote.unwrap_or_default().to_owned();
        Ok(Given { file: text("file")?, line, category: text("category")?, description, sources, quote })
    }

    fn claim(&self) -> FindingClaim<'_> {
        FindingClaim::new(&self.file, self.line, &self.category, &self.description)
            .by(self.sources.iter().map(String::as_str))
            .about(&self.quote)
    }
}

fn bytes(path: &Path) -> Result<Vec<u8>, Failure> {
    let unread =
        |error: std::io::Error| Failure::usage(format!("{} can't be read: {error}", path.display()), "");
    let mut bytes = Vec::new();
    if path == Path::new("-") {
        std::io::stdin().lock().take(LONGEST).read_to_end(&mut bytes).map_err(unread)?;
    } else {
        let file = std::fs::File::open(path).map_err(unread)?;
        file.take(LONGEST).read_to_end(&mut bytes).map_err(unread)?;
    }
    Ok(bytes)
}
