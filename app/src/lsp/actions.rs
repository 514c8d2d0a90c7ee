//! What a person can do about a finding in the editor: accept it, for a reason, and read what speaks for it.
//!
//! Accepting starts the command that a person would type. Clients that offer choices with a message ask for the reason;
//! with others every reason is an action of its own.

use std::io::{self, Write};
use std::path::PathBuf;

use archeflow_core::strategies::review::Listed;
use archeflow_core::text::{log_text, shell_word, short_line};
use archeflow_host::detached::Detached;
use archeflow_host::review::DEFAULT_BASELINE;
use archeflow_host::store::files;
use archeflow_host::store::places::Places;
use lsp_server::Response;
use lsp_types::{Diagnostic, MessageType, NumberOrString, Range, TextDocumentIdentifier};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::address::{path_of, uri_of};
use super::diagnostics::SOURCE;
use super::repository::ReviewedRepository;
use super::{LanguageServer, real};
use crate::review::evidence;

pub(super) const ACCEPT: &str = "archeflow.accept";
pub(super) const EVIDENCE: &str = "archeflow.evidence";

/// The kind of all actions.
const QUICKFIX: &str = "quickfix";
/// Reasons that can be chosen; any other is typed.
const REASONS: [&str; 3] = ["false positive", "intended", "known, to be fixed later"];
/// Characters of a finding in a question.
const SHORT: usize = 120;
const MOST_SAID: usize = 500;
const MOST_QUESTIONS: usize = 100;

/// The argument of both commands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Accepting {
    repository: PathBuf,
    run: String,
    finding: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

/// What a client wants actions for. Only what is needed is read.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct WantedActions {
    text_document: TextDocumentIdentifier,
    range: Range,
    #[serde(default)]
    context: Value,
}

/// A command of ours that a client sends back.
#[derive(Debug, Deserialize)]
pub(super) struct ChosenCommand {
    command: String,
    #[serde(default)]
    arguments: Vec<Value>,
}

/// A command that was started, and the finding it accepts.
pub(super) struct AcceptCommand {
    started: Detached,
    what: String,
}

impl<W: Write> LanguageServer<W> {
    /// The actions for a range, or for the diagnostics that the client names.
    pub(super) fn offer(&mut self, params: &WantedActions) -> io::Result<Result<Value, String>> {
        let only = params.context["only"].as_array();
        let wanted = only.is_none_or(|only| only.iter().any(|kind| kind == "" || kind == QUICKFIX));
        let path = path_of(params.text_document.uri.as_str()).map(|path| real(&path));
        let Some(path) = path.filter(|_| wanted) else { return Ok(Ok(json!([]))) };
        let Some((repository, _)) = self.home(&path) else { return Ok(Ok(json!([]))) };
        let shown = self.published.get(&path).map(|(_, shown)| shown.as_slice()).unwrap_or_default();
        let named = params.context["diagnostics"].as_array().into_iter().flatten();
        let named: Vec<&str> =
            named.filter(|one| one["source"] == SOURCE).filter_map(|one| one["code"].as_str()).collect();
        let mut actions = Vec::new();
        for diagnostic in shown.iter().filter(|shown| touches(&shown.range, &params.range)) {
            let Some(fingerprint) = code(diagnostic) else { continue };
            if !named.is_empty() && !named.contains(&fingerprint) {
                continue;
            }
            if let (Some(found), Some(review)) = (repository.finding(fingerprint), &repository.review) {
                let about = Accepting {
                    repository: repository.root.clone(),
                    run: review.run_id.clone(),
                    finding: fingerprint.to_owned(),
                    reason: None,
                };
                actions.extend(self.actions(&about, found, diagnostic));
            }
        }
        Ok(Ok(actions.into()))
    }

    fn actions(&self, about: &Accepting, found: &Listed, shown: &Diagnostic) -> Vec<Value> {
        let what = short_line(&found.description, 60);
        let mut offered = Vec::new();
        let mut offer = |title: String, name: &str, about: &Accepting| {
            let command = json!({ "title": title, "command": name, "arguments": [about] });
            offered.push(if self.client.literals {
                json!({ "title": title, "kind": QUICKFIX, "diagnostics": [shown], "command": command })
            } else {
                command
            });
        };
        offer(format!("Show evidence: {what}"), EVIDENCE, about);
        if self.client.offers_choices {
            offer(format!("Accept this finding…: {what}"), ACCEPT, about);
        } else {
            for reason in REASONS {
                let about = Accepting { reason: Some(reason.to_owned()), ..about.clone() };
                offer(format!("Accept this finding ({reason}): {what}"), ACCEPT, &about);
            }
        }
        offered
    }

    pub(super) fn execute(&mut self, params: ChosenCommand) -> io::Result<Result<Value, String>> {
        let about = params.arguments.into_iter().next().unwrap_or_default();
        let about: Accepting = match serde_json::from_value(about) {
            Ok(about) => about,
            Err(error) => return Ok(Err(format!("the argument can't be read: {error}"))),
        };
        let found = match self.found(&about) {
            Ok(found) => found.clone(),
            Err(why) => return Ok(Err(why)),
        };
        match params.command.as_str() {
            ACCEPT => self.accept(about, &found),
            EVIDENCE => self.show_evidence(&about, &found),
            other => Ok(Err(format!("there is no command {}", short_line(other, 80)))),
        }
    }

    /// The finding, as long as it is open.
    fn found(&self, about: &Accepting) -> Result<&Listed, String> {
        let gone = || "the finding is not open any more".to_owned();
        let repository = self.repository(about).ok_or_else(gone)?;
        let same = repository.review.as_ref().is_some_and(|review| review.run_id == about.run);
        repository.finding(&about.finding).filter(|_| same).ok_or_else(gone)
    }

    fn repository(&self, about: &Accepting) -> Option<&ReviewedRepository> {
        self.repositories.iter().find(|known| known.root == about.repository)
    }

    fn accept(&mut self, about: Accepting, found: &Listed) -> io::Result<Result<Value, String>> {
        match about.reason.as_deref().map(str::trim) {
            Some("") => Ok(Err("a finding is accepted for a reason".to_owned())),
            Some(reason) => Ok(self.start(&about, reason, found).map(|()| Value::Null)),
            None => self.ask_for_reason(about, found).map(|()| Ok(Value::Null)),
        }
    }

    fn ask_for_reason(&mut self, about: Accepting, found: &Listed) -> io::Result<()> {
        let (run, finding) = (shell_word(&about.run), shell_word(&about.finding));
        let message = format!(
            "Accept this finding at {}? {} It goes into {DEFAULT_BASELINE}. For a reason of your own: \
             archeflow review --run {run} --accept {finding} --reason '…'",
            short_line(&found.place(), SHORT),
            short_line(&found.description, SHORT),
        );
        if !self.client.offers_choices {
            return self.show(MessageType::INFO, &message);
        }
        let choices = REASONS.map(|title| json!({ "title": title }));
        let params = json!({ "type": MessageType::INFO, "message": message, "actions": choices });
        let id = self.ask("window/showMessageRequest", params)?;
        while self.asked.len() >= MOST_QUESTIONS {
            self.asked.pop_first();
        }
        self.asked.insert(id, about);
        Ok(())
    }

    /// The client's answer to a question of ours; whatever else it answers has no effect.
    pub(super) fn answered(&mut self, response: Response) -> io::Result<()> {
        let Some(about) = self.asked.remove(&response.id) else { return Ok(()) };
        let chosen = response.response_result.unwrap_or_default();
        let reason = REASONS.into_iter().find(|reason| chosen["title"] == **reason);
        let Some(reason) = reason else { return Ok(()) };
        let started = self.found(&about).cloned().and_then(|found| self.start(&about, reason, &found));
        match started {
            Ok(()) => Ok(()),
            Err(why) => self.show(MessageType::ERROR, &why),
        }
    }

    /// The command that a person would type. The reason is the value of an option, never one itself.
    fn start(&mut self, about: &Accepting, reason: &str, found: &Listed) -> Result<(), String> {
        let failed = |error: &dyn std::fmt::Display| format!("the finding was not accepted: {error}");
        let state = Places::state_dir_elsewhere(&self.env.places()).map_err(|error| failed(&error))?;
        let state = state.ok_or_else(|| failed(&"the state folder is missing"))?;
        let words = ["review", "--run", &about.run, "--accept", &about.finding].map(str::to_owned);
        let words = [&words[..], &[format!("--reason={reason}")]].concat();
        let started = Detached::start(&self.env.me, &words, &about.repository, &state);
        let started = started.map_err(|error| failed(&error))?;
        self.running.push(AcceptCommand { started, what: short_line(&found.description, SHORT) });
        Ok(())
    }

    /// Reports commands that have ended.
    pub(super) fn collect(&mut self) -> io::Result<()> {
        let mut ended = Vec::new();
        self.running.retain(|command| match command.started.ended() {
            Some(code) => {
                ended.push((code, log_text(&command.started.said(), MOST_SAID), command.what.clone()));
                false
            }
            None => true,
        });
        for (code, said, what) in ended {
            if code == Some(0) {
                self.look();
                self.show(
                    MessageType::INFO,
                    &format!("Accepted: {}. Commit {DEFAULT_BASELINE} to the base branch, so that reviews read it.", what.trim_end_matches('.')),
                )?;
            } else {
                self.show(MessageType::ERROR, &format!("The finding was not accepted: {}", said.trim()))?;
            }
        }
        Ok(())
    }

    /// Writes a page about the finding beside the artifacts of its run, where it stays as long as they do.
    fn show_evidence(&mut self, about: &Accepting, found: &Listed) -> io::Result<Result<Value, String>> {
        let Some(repository) = self.repository(about) else {
            return Ok(Err("no such repository".to_owned()));
        };
        let page = evidence(&about.run, found, repository.frame(&about.finding).as_ref());
        let name = format!("finding-{}.md", about.finding);
        let path = repository.root.join(".archeflow/artifacts").join(&about.run).join(name);
        if let Err(error) = files::write_atomic(&path, page.as_bytes()) {
            return Ok(Err(format!("the evidence was not written: {error}")));
        }
        let Some(uri) = uri_of(&path) else { return Ok(Err("the file has no address".to_owned())) };
        let result = json!({ "uri": uri });
        if self.client.shows_documents {
            self.ask("window/showDocument", json!({ "uri": uri, "takeFocus": true }))?;
        } else {
            self.show(
                MessageType::INFO,
                &format!("Evidence: {}", short_line(&path.display().to_string(), MOST_SAID)),
            )?;
        }
        Ok(Ok(result))
    }
}

/// The finding that a diagnostic of ours is about.
fn code(diagnostic: &Diagnostic) -> Option<&str> {
    match &diagnostic.code {
        Some(NumberOrString::String(code)) if diagnostic.source.as_deref() == Some(SOURCE) => Some(code),
        Some(_) | None => None,
    }
}

/// Actions are offered on the whole line.
fn touches(shown: &Range, wanted: &Range) -> bool {
    shown.start.line <= wanted.end.line && wanted.start.line <= shown.end.line
}
