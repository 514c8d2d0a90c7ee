//! What a named client needs around it: a home, the user's login, a reader for its output.
//!
//! The home is outside of every repository and belongs to one archetype of one run. So the user's settings, hooks,
//! servers and conversations neither leak in nor change, and a correction finds the conversation it belongs to.

use std::io::{self, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use archeflow_core::event::{AgentStart, Failure, InterruptedSession, Player, Session};
use archeflow_core::model::{Money, Outcome, Purpose, Role, RunStatus};
use archeflow_core::read;
use archeflow_core::rules::ledger::Usage;

use super::Message;
use super::held_key::KeyHolding;
use super::meter::{CountedUsage, UsageMeter};
use crate::backends::AgentBackend;
use crate::backends::cli::{Client, CommandInputs, LinkedFile, Rest, Start, reopens};
use crate::backends::needs::{self, NeedsInputs};
use crate::client_output::usage_files::UsageFiles;
use crate::client_output::{ClientFault, ClientOutput, LINE_AT_MOST, read_line};
use crate::git::{ObjectId, runner};
use crate::platform::files::{make_private, open_beneath, with_mode, write_private};
use crate::platform::removal::remove_tree;
use crate::sandbox::policy::program_folders;
use crate::telemetry::tools::ToolLog;
use crate::world::{World, WorldSandbox};

/// The largest login that is taken back from an agent's home.
const LOGIN_AT_MOST: u64 = 1024 * 1024;

/// A client at work on one attempt.
pub(super) struct Seat<'a> {
    pub(super) client: &'static Client,
    pub(super) start: &'a AgentStart,
    model: String,
    schema: Option<&'static str>,
    share: Option<Money>,
    home: PathBuf,
    stream: PathBuf,
    heard: OnceLock<ClientOutput>,
}

impl<'a> Seat<'a> {
    pub(super) fn new(
        world: &World,
        (start, schema, share): (&'a AgentStart, Option<&'static str>, Option<Money>),
        (client, model): (&'static Client, String),
        folder: &Path,
    ) -> Seat<'a> {
        let home = homes(world).join(format!("{}-{}", client.name, start.archetype));
        let stream = folder.join("stream.jsonl");
        Seat { client, start, model, schema, share, home, stream, heard: OnceLock::new() }
    }

    /// The session to resume. If its home is gone it can't be, and the whole brief is sent.
    pub(super) fn resumes(&self) -> Option<&'a Session> {
        self.start.resumes.as_ref().filter(|_| self.home.is_dir())
    }

    /// Makes the home, links the login, and returns the command to start.
    pub(super) fn prepare_home(
        &self,
        world: &World,
        tree: &Path,
        held: Option<&KeyHolding>,
    ) -> io::Result<Start> {
        let resumes = self.resumes();
        make_private(&self.home)?;
        let readable = match world.sandbox {
            WorldSandbox::On { .. } => None,
            WorldSandbox::Off => Some(self.readable(world)),
        };
        let mut start = self.client.command(&CommandInputs {
            writes: self.start.role == Role::Maker,
            tier: self.start.model,
            model: &self.model,
            tree,
            home: &self.home,
            me: &world.me,
            resumes,
            schema: self.schema,
            share: self.share,
            variables: held.map_or(&world.own, |held| &held.variables),
            usual_provider: held.is_some_and(|held| held.usual),
            readable: readable.as_deref(),
        });
        let linked = start.linked.iter().map(|linked| &linked.to);
        for path in start.files.iter().map(|(path, _)| path).chain(linked) {
            clear_links(&self.home, path);
        }
        if held.is_some() {
            // A login is a key too.
            for linked in std::mem::take(&mut start.linked) {
                let _ = std::fs::remove_file(&linked.to);
            }
        }
        write_home(&self.home, &start)?;
        Ok(start)
    }

    /// What a reader is shown besides its working copy: the repository's objects, its own program, and toolchains.
    fn readable(&self, world: &World) -> Vec<PathBuf> {
        let inputs = NeedsInputs {
            variables: &world.env,
            linked: &[],
            me: &world.me,
            checkout: world.places.root(),
            state: &world.state,
        };
        let mut readable = needs::of(&AgentBackend::Cli(self.client, self.model.clone()), inputs).readable;
        readable.extend(world.repo.object_stores());
        readable.extend(program_folders(&world.env, &self.home));
        readable.sort();
        readable.dedup();
        readable
    }

    /// Its home, which it keeps from one attempt to the next.
    pub(super) fn home(&self) -> &Path {
        &self.home
    }

    /// Listens while it works.
    pub(super) fn ear<'e>(&'e self, tree: &Path, meter: UsageMeter<'e>) -> Ear<'e> {
        let files = UsageFiles::new(&self.home, self.client.usage_files().iter().copied());
        let (heard, rest) = (ClientOutput::default(), Vec::new());
        let tools = ToolLog::new(self.stream.parent().unwrap_or(Path::new("")));
        Ear { seat: self, tree: format!("{}/", tree.display()), heard, rest, files, meter, tools }
    }

    /// Its output, read once it is complete.
    pub(super) fn output(&self) -> &ClientOutput {
        self.heard.get_or_init(|| listen(self.client, &self.stream))
    }

    /// Its answer in Markdown, whichever way it was given.
    pub(super) fn spoken(&self) -> Spoken {
        let heard = self.output();
        let given = heard.form.as_ref().unwrap_or(&heard.answer);
        let rendered = self.schema.map(|_| read::render(self.start.role, given));
        let is_form = given.trim_start().starts_with('{');
        let form = given.as_str().to_owned();
        match rendered {
            Some(Ok(markdown)) => Spoken { markdown, form: Some(form), misfit: None },
            Some(Err(why)) if is_form => {
                Spoken { markdown: heard.answer.clone(), form: Some(form), misfit: Some(why) }
            }
            Some(Err(_)) | None => Spoken { markdown: heard.answer.clone(), form: None, misfit: None },
        }
    }

    /// What it used: by its output, and by what was counted while it ran.
    pub(super) fn usage(&self) -> Usage {
        let counted = CountedUsage::read(self.stream.parent().unwrap_or(Path::new("")));
        let usage = self.usage_by(self.output());
        let tokens = match (usage.tokens, counted.tokens) {
            (Some(printed), Some(counted)) => Some(printed.or_more(counted)),
            (printed, counted) => printed.or(counted),
        };
        let model = if self.output().model.is_empty() { counted.model } else { usage.model };
        Usage { tokens, model, ..usage }
    }

    /// The model is the one that the client names, else the one that it was asked for.
    fn usage_by(&self, heard: &ClientOutput) -> Usage {
        let usage = self.client.usage(heard, self.start.resumes.as_ref());
        let names_model = self.client.rest != Rest::Command;
        let asked = self.model.split('@').next().filter(|_| names_model).unwrap_or_default();
        let model = if usage.model.is_empty() { asked.to_owned() } else { usage.model };
        Usage { model, ..usage }
    }

    pub(super) fn session(&self) -> Option<Session> {
        self.client.session(self.output())
    }

    /// The session to resume after its provider cut it short in the middle of its work (C-09), or after an answer that
    /// can't be used, for which it is asked once more.
    pub(super) fn interrupted(&self, kind: Failure) -> Option<InterruptedSession> {
        let cut = kind.is_busy() || matches!(kind, Failure::Network | Failure::Garbled | Failure::NoWork);
        let resumed = self.resumes();
        if !cut || !(self.client.can_resume(self.output()) || resumed.is_some()) {
            return None;
        }
        let session = self.session().or_else(|| resumed.cloned())?;
        let counted = session.counted.or_else(|| resumed.and_then(|resumed| resumed.counted));
        let session = Session { counted, ..session };
        Some(InterruptedSession { agent: self.start.agent.clone(), session })
    }

    /// What went wrong by the client's own account, or what it was struggling with when it was cut short.
    pub(super) fn fault(&self) -> Option<(Failure, String)> {
        let ClientFault { kind, said, .. } = self.trouble()?;
        let said: String = said.chars().take(500).collect();
        Some((*kind, fault_message(self.client, *kind, &said)))
    }

    /// It ended before its closing line was there.
    pub(super) fn cut_short(&self, code: i32, words: &str) -> (Failure, String) {
        let kind = Client::cut_short(words);
        let reason = if kind == Failure::Auth {
            fault_message(self.client, kind, words)
        } else {
            format!("it ended with exit code {code} before it was done: {words}")
        };
        (kind, reason)
    }

    fn trouble(&self) -> Option<&ClientFault> {
        let heard = self.output();
        let hitch = || heard.hitch.as_ref().filter(|_| !heard.finished);
        heard.fault.as_ref().or_else(hitch)
    }

    /// Seconds until the provider serves again, if it reports them.
    pub(super) fn reopens(&self) -> Option<u64> {
        let fault = self.trouble().filter(|fault| fault.kind.is_busy())?;
        fault.reopens.or_else(|| reopens::read(&fault.said))
    }

    /// Client and model, as far as known. A client that does not print its version is asked for it, once per run.
    pub(super) fn player(&self, world: &World, asks: bool) -> Player {
        let heard = self.output();
        let version = match heard.version.as_str() {
            "" if asks && !self.client.program.is_empty() => world.version_of(self.client),
            said => said.to_owned(),
        };
        Player { vendor: self.client.vendor.to_owned(), model: heard.model.clone(), version }
    }

    /// Nothing was started, or the provider refused the request before the model answered: nothing was used. A line that
    /// broke proves no such thing.
    pub(super) fn never_began(&self) -> bool {
        use Failure::{Auth, ContextTooLong, NotStarted, Quota, RateLimit, Refused};
        let turned_away =
            |kind| matches!(kind, Auth | Quota | RateLimit | ContextTooLong | Refused | NotStarted);
        !self.output().worked && self.output().fault.as_ref().is_some_and(|fault| turned_away(fault.kind))
    }

    /// A Maker that was refused one of its tools has not done its work, whatever it reports.
    pub(super) fn refused(&self) -> Option<(Failure, String)> {
        let denied = &self.output().denied;
        let needed = denied.iter().find(|tool| self.client.needs(tool))?;
        (self.start.role == Role::Maker)
            .then(|| (Failure::PermissionDenied, format!("{} was refused {needed}", self.client.name)))
    }
}

/// The commit a Maker's copy shows: where its conversation is resumed after a fault, the work of the attempt that was
/// cut short, which is kept under that ref.
pub(super) fn continued_from(
    world: &World,
    seat: Option<&Seat<'_>>,
    at: ObjectId,
    cut_short: &str,
) -> Result<ObjectId, runner::Error> {
    let resumes = seat.is_some_and(|seat| seat.start.purpose == Purpose::Retry && seat.resumes().is_some());
    let kept = if resumes { world.repo.resolve(cut_short)? } else { None };
    match kept {
        Some(kept) if world.repo.is_ancestor(&at, &kept)? => Ok(kept),
        Some(_) | None => Ok(at),
    }
}

/// What went wrong, in words that say what to do about it.
pub(crate) fn fault_message(client: &Client, kind: Failure, said: &str) -> String {
    let name = client.name;
    match kind {
        Failure::Auth => {
            let said = said.trim_end_matches('.');
            format!("{name} is not signed in: {said}. To sign in, {}", client.sign_in)
        }
        Failure::Quota => format!("the quota of the account {name} uses is used up: {said}"),
        Failure::Network => format!("{name} can't reach its provider: {said}"),
        Failure::RateLimit | Failure::Overload => {
            format!("the provider of {name} is overloaded or limits requests: {said}")
        }
        Failure::ContextTooLong => format!("the prompt is too long for its context: {said}"),
        Failure::Refused => format!("the provider of {name} refused: {said}"),
        Failure::NotStarted
        | Failure::Exit
        | Failure::Signal
        | Failure::Empty
        | Failure::Garbled
        | Failure::NoWork
        | Failure::Busy
        | Failure::Silence
        | Failure::TooLong
        | Failure::WorkspaceGone
        | Failure::PermissionDenied
        | Failure::Budget => format!("{name} gave up: {said}"),
    }
}

/// An answer as its client gave it.
#[derive(Debug, Default)]
pub(super) struct Spoken {
    pub(super) markdown: String,
    /// The JSON, where it came in a form.
    pub(super) form: Option<String>,
    /// Why the form could not be used.
    pub(super) misfit: Option<String>,
}

/// Removes the homes of clients; a run that waits for an answer may still need them.
pub(crate) fn remove_homes(world: &World, outcome: &Outcome) {
    if outcome.status != RunStatus::AwaitingAnswer {
        let _ = remove_tree(&homes(world));
    }
}

/// The homes of a run's clients.
fn homes(world: &World) -> PathBuf {
    homes_of_all(&world.state).join(&world.run_id)
}

/// The homes of all runs, a folder each.
pub(crate) fn homes_of_all(state: &Path) -> PathBuf {
    state.join("homes")
}

/// Lends the login and writes the settings of its own.
pub(crate) fn write_home(home: &Path, start: &Start) -> io::Result<()> {
    start.linked.iter().try_for_each(|linked| link_file(home, linked))?;
    for (path, text) in &start.files {
        path.parent().map_or(Ok(()), make_private)?;
        // Not written into: an earlier attempt may have left a FIFO there.
        if std::fs::symlink_metadata(path).is_ok_and(|meta| !meta.is_dir()) {
            std::fs::remove_file(path)?;
        }
        write_private(path, text)?;
    }
    Ok(())
}

/// Takes away links that an agent left in its home where we are about to write: they could lead anywhere.
pub(super) fn clear_links(home: &Path, path: &Path) {
    let Ok(below) = path.strip_prefix(home) else { return };
    let mut at = home.to_path_buf();
    for part in below {
        at.push(part);
        if at != path && std::fs::symlink_metadata(&at).is_ok_and(|meta| meta.is_symlink()) {
            let _ = std::fs::remove_file(&at);
        }
    }
    // A login is put back as a link, and settings are written anew.
    if std::fs::symlink_metadata(path).is_ok_and(|meta| meta.is_symlink()) {
        let _ = std::fs::remove_file(path);
    }
}

/// What the lines in a file say.
pub(crate) fn listen(client: &Client, stream: &Path) -> ClientOutput {
    let mut heard = ClientOutput::default();
    let Ok(file) = std::fs::File::open(stream) else { return heard };
    let mut lines = BufReader::new(file);
    let mut line = Vec::new();
    while read_line(&mut lines, &mut line).is_ok_and(|read| read > 0) {
        client.hear(&String::from_utf8_lossy(&line), &mut heard);
    }
    heard
}

/// A link, so that a login the client renews is the user's. Nothing is linked where there is none.
pub(super) fn link_file(home: &Path, linked: &LinkedFile) -> io::Result<()> {
    unlink_file(home, linked);
    let _ = std::fs::remove_file(&linked.to);
    if linked.from.is_file() {
        linked.to.parent().map_or(Ok(()), std::fs::create_dir_all)?;
        crate::platform::files::symlink(&linked.from, &linked.to)?;
    }
    Ok(())
}

/// Clients that replace a file instead of writing into it leave a file where the link was. It is the newer login: the old one
/// may not be valid any more, so it replaces the user's file, with the same permissions.
///
/// The agent can write in this home: a link on the way there could lead to a login of another client (C-08).
pub(crate) fn unlink_file(home: &Path, linked: &LinkedFile) {
    let Ok(below) = linked.to.strip_prefix(home) else { return };
    let Ok(renewed) = open_beneath(home, below) else { return };
    let Ok(users) = std::fs::metadata(&linked.from) else { return };
    let mut bytes = Vec::new();
    let read = renewed.take(LOGIN_AT_MOST + 1).read_to_end(&mut bytes);
    if read.is_err() || bytes.is_empty() || bytes.len() as u64 > LOGIN_AT_MOST {
        return;
    }
    let beside = linked.from.with_extension("archeflow-new");
    let mut options = std::fs::File::options();
    options.write(true).create(true).truncate(true);
    let moved = with_mode(&mut options, 0o600)
        .open(&beside)
        .and_then(|mut file| file.write_all(&bytes))
        .and_then(|()| std::fs::set_permissions(&beside, users.permissions()))
        .and_then(|()| std::fs::rename(&beside, &linked.from));
    if moved.is_err() {
        let _ = std::fs::remove_file(&beside);
    }
}

/// Tells people who watch what a client is doing, and the meter what it uses.
pub(super) struct Ear<'a> {
    seat: &'a Seat<'a>,
    tree: String,
    heard: ClientOutput,
    rest: Vec<u8>,
    files: UsageFiles,
    meter: UsageMeter<'a>,
    tools: ToolLog,
}

impl Ear<'_> {
    pub(super) fn hear(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            if byte != b'\n' {
                if (self.rest.len() as u64) < LINE_AT_MOST {
                    self.rest.push(byte);
                }
                continue;
            }
            let line = std::mem::take(&mut self.rest);
            let note = self.seat.client.hear(&String::from_utf8_lossy(&line), &mut self.heard);
            self.tools.hear(self.seat.client.name, &line);
            if let Some(note) = note {
                let text = note.replace(&self.tree, "");
                let _ = self.meter.send.send(Message::AgentLine { order: self.meter.order, text });
            }
        }
        self.look(true);
    }

    /// Counts what the client has noted in its files. Once it has closed the conversation nothing more is used: its
    /// cost is then reported with its end.
    pub(super) fn look(&mut self, running: bool) {
        let (client, heard) = (self.seat.client, &mut self.heard);
        if !self.files.is_empty() {
            self.files.look(&mut |line| client.count(line, heard));
        }
        let running = running && !self.heard.finished;
        self.meter.note(self.seat.usage_by(&self.heard), running);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Result<T = ()> = std::result::Result<T, Box<dyn std::error::Error>>;

    #[test]
    fn issue_4_a_login_that_is_renewed_is_renewed_for_the_user() -> Result {
        let folder = tempfile::tempdir()?;
        let linked =
            LinkedFile { from: folder.path().join("users"), to: folder.path().join("its/own/linked") };
        link_file(folder.path(), &linked)?;
        assert!(!linked.to.exists(), "nothing is linked where there is none");
        std::fs::write(&linked.from, "old")?;
        link_file(folder.path(), &linked)?;
        assert_eq!(std::fs::read_to_string(&linked.to)?, "old");
        std::fs::write(&linked.to, "written over")?;
        unlink_file(folder.path(), &linked);
        assert_eq!(std::fs::read_to_string(&linked.from)?, "written over");
        std::fs::remove_file(&linked.to)?;
        std::fs::write(&linked.to, "written anew")?;
        unlink_file(folder.path(), &linked);
        assert_eq!(std::fs::read_to_string(&linked.from)?, "written anew");
        link_file(folder.path(), &linked)?;
        assert!(linked.to.is_symlink(), "linked again as a link");
        Ok(())
    }

    #[test]
    fn c_08_a_link_in_an_agents_home_brings_no_other_login() -> Result {
        let folder = tempfile::tempdir()?;
        let home = folder.path().join("home");
        let linked = LinkedFile { from: folder.path().join("auth.json"), to: home.join("share/auth.json") };
        std::fs::write(&linked.from, "its own")?;
        std::fs::create_dir(folder.path().join("other"))?;
        std::fs::write(folder.path().join("other/auth.json"), "of another client")?;
        std::fs::create_dir(&home)?;
        link_file(&home, &linked)?;
        std::fs::remove_dir_all(home.join("share"))?;
        crate::platform::files::symlink(folder.path().join("other"), home.join("share"))?;
        unlink_file(&home, &linked);
        assert_eq!(std::fs::read_to_string(&linked.from)?, "its own");
        std::fs::remove_file(home.join("share"))?;
        std::fs::create_dir(home.join("share"))?;
        assert!(std::process::Command::new("mkfifo").arg(&linked.to).status()?.success());
        unlink_file(&home, &linked);
        std::fs::remove_file(&linked.to)?;
        std::fs::File::create(&linked.to)?.set_len(1 << 40)?;
        unlink_file(&home, &linked);
        assert_eq!(std::fs::read_to_string(&linked.from)?, "its own");
        Ok(())
    }

    #[test]
    fn s_06_settings_replace_whatever_an_agent_left_in_their_place() -> Result {
        let folder = tempfile::tempdir()?;
        let (home, path) = (folder.path(), folder.path().join("settings.json"));
        assert!(std::process::Command::new("mkfifo").arg(&path).status()?.success());
        let invocation = crate::backends::Invocation { program: "client".into(), args: Vec::new() };
        let files = vec![(path.clone(), "{}".to_owned())];
        write_home(home, &Start { invocation, env: Vec::new(), linked: Vec::new(), files })?;
        assert_eq!(std::fs::read_to_string(&path)?, "{}");
        Ok(())
    }

    #[test]
    fn i11_a_line_without_end_takes_no_more_than_its_share() -> Result {
        let long = vec![b'x'; usize::try_from(LINE_AT_MOST)? + 5];
        let text = [long.as_slice(), b"\n{}\n"].concat();
        let (mut lines, mut line) = (BufReader::new(text.as_slice()), Vec::new());
        read_line(&mut lines, &mut line)?;
        assert_eq!(line.len() as u64, LINE_AT_MOST);
        read_line(&mut lines, &mut line)?;
        assert_eq!(line, b"{}\n");
        Ok(())
    }
}
