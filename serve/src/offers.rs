//! What a person can decide about a run now, each with the command that does it. The list is made from the steps that the
//! program prints for the run in its present state, so a page can start nothing else.

use archeflow_core::event::{
    Event, LoopHeard, MergeRequested, QuestionAnswered, QuestionKind, RunContinued, RunDiscarded,
};
use archeflow_core::model::Money;
use archeflow_core::projections::view::{self, Tone, capital};
use archeflow_host::control::Requester;

use crate::run_model::{RunModel, Standing};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Offer {
    /// As a person would type it.
    pub(crate) command: String,
    /// What is wanted, in a few words.
    pub(crate) title: String,
    /// What follows.
    pub(crate) then: &'static str,
    pub(crate) cost: String,
    /// A text of the person's is part of it.
    pub(crate) needs_text: bool,
    /// That text is an amount in dollars.
    pub(crate) wants_amount: bool,
    /// It is asked once more on a page of its own.
    pub(crate) asks_again: bool,
    words: Vec<Word>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Word {
    Said(String),
    /// The person's text goes here.
    Text,
}

/// Options that have a value.
const VALUED: [&str; 5] = ["--ruling", "--rescope", "--accept", "--reason", "--budget"];

impl Offer {
    /// The arguments of the program, with these options and the person's text in its place. No text is taken for an option,
    /// whatever it begins with.
    pub(crate) fn arguments(&self, options: &[String], text: &str) -> Vec<String> {
        let said = |word: &Word| match word {
            Word::Said(word) => word.clone(),
            Word::Text => text.to_owned(),
        };
        let verbs = if self.words.get(1) == Some(&Word::Said("loop".to_owned())) { 2 } else { 1 };
        let mut arguments: Vec<String> = self.words.iter().skip(1).take(verbs).map(said).collect();
        arguments.extend(options.iter().cloned());
        let rest = self.words.get(1 + verbs..).unwrap_or(&[]);
        let is_valued = |word: &str| VALUED.contains(&word);
        for word in rest {
            match arguments.last_mut().filter(|last| is_valued(last)) {
                Some(flag) => flag.push_str(&format!("={}", said(word))),
                None => {
                    arguments.extend((*word == Word::Text).then(|| "--".to_owned()));
                    arguments.push(said(word));
                }
            }
        }
        arguments
    }

    /// Whether this line of a journal is the decision, with the person's text, that came by this way.
    pub(crate) fn is_made_by(&self, event: &Event, text: &str, by: Requester) -> bool {
        let verb = self.verb();
        let came = |line: &str| line == by.name();
        let has = |flag: &str| self.words.iter().any(|word| matches!(word, Word::Said(said) if said == flag));
        if let Some(line) = event.body::<QuestionAnswered>() {
            let said = match self.words.last() {
                Some(Word::Said(said)) => said,
                Some(Word::Text) | None => text,
            };
            return verb == "answer" && came(&line.by) && line.text.trim() == said.trim();
        }
        if let Some(line) = event.body::<RunContinued>() {
            let when = |flag: &str| if has(flag) { text.trim() } else { "" };
            let same = line.ruling.trim() == when("--ruling")
                && line.rescope.trim() == when("--rescope")
                && line.reason.trim() == when("--reason")
                && line.accept.is_empty() != has("--accept");
            return matches!(verb, "continue" | "resume") && came(&line.by) && same;
        }
        if let Some(line) = event.body::<LoopHeard>() {
            let same = text.is_empty() || line.text.is_empty() || line.text.trim() == text.trim();
            return verb == "loop" && came(&line.by) && same;
        }
        match verb {
            "merge" => event.body::<MergeRequested>().is_some_and(|line| came(&line.by)),
            "discard" => event.body::<RunDiscarded>().is_some_and(|line| came(&line.by)),
            // It does not matter which process resumed it.
            "resume" => true,
            _ => false,
        }
    }

    fn verb(&self) -> &str {
        match self.words.get(1) {
            Some(Word::Said(verb)) => verb,
            Some(Word::Text) | None => "",
        }
    }

    /// Why the person's text can't be passed on as the amount that it should be.
    pub(crate) fn wrong_amount(&self, text: &str) -> Option<&'static str> {
        let is_amount = || Money::parse(text.trim()).is_some_and(|amount| amount > Money::ZERO);
        (self.wants_amount && !is_amount()).then_some("This choice needs an amount in dollars, e.g. 5.")
    }

    /// The limit that it sets for the whole run.
    fn new_limit(&self) -> Option<Money> {
        let mut words = self.words.iter();
        words.find(|word| matches!(word, Word::Said(said) if said == "--budget"))?;
        match words.next()? {
            Word::Said(amount) => Money::parse(amount),
            Word::Text => None,
        }
    }

    /// Whether it makes something land.
    pub(crate) fn lands(&self) -> bool {
        self.command.starts_with("archeflow merge ") || self.command == "archeflow loop approve"
    }

    fn of(command: &str, title: &str, per_cycle: Option<Money>) -> Option<Offer> {
        let words = with_amount(split(command)?);
        let verb = match words.as_slice() {
            [Word::Said(program), Word::Said(verb), ..] if program == "archeflow" => verb.as_str(),
            _ => return None,
        };
        let has = |flag: &str| words.iter().any(|word| matches!(word, Word::Said(said) if said == flag));
        let again = has("--ruling") || has("--rescope") || has("--one-more-cycle");
        let (then, asks_again) = match verb {
            "answer" => ("The run continues with your answer.", false),
            "continue" if has("--budget") => {
                ("It goes on within the new limit of the whole run.", !words.contains(&Word::Text))
            }
            "continue" if has("--one-more-cycle") => ("One more cycle, as it is.", false),
            "continue" if again => ("One more cycle. All agents are given what you wrote.", false),
            "continue" => ("The rest is judged again; if nothing is open, it is tested and lands.", false),
            "merge" => {
                ("It is tested once more on the branch as it is now, and lands if the tests pass.", true)
            }
            "discard" => ("Nothing is deleted: the commits stay under refs/archeflow/keep/.", true),
            "resume" if has("--wait") => return None,
            "resume" => ("It goes on from where it stopped.", false),
            "stop" => ("Agents are ended and their work is saved; it can be resumed.", false),
            "pause" => ("Running agents finish, nothing new starts.", false),
            "loop" if has("approve") => ("The loop continues; a step lands if its tests pass.", true),
            "loop" if has("stop") || has("clear") => ("The loop ends; its work is kept.", true),
            "loop" if has("start") => return None,
            "loop" => ("The loop continues with your answer.", false),
            _ => return None,
        };
        let cost = match (verb, per_cycle) {
            ("continue", Some(cost)) if again => format!("about {}", cost.shown()),
            ("continue", _) if again => "one cycle".to_owned(),
            ("merge" | "discard" | "continue" | "stop" | "pause", _) => "costs nothing".to_owned(),
            _ => String::new(),
        };
        let needs_text = words.contains(&Word::Text);
        let wants_amount = needs_text && has("--budget");
        let (command, title) = (command.to_owned(), capital(title));
        Some(Offer { command, title, then, cost, needs_text, wants_amount, asks_again, words })
    }
}

/// What can be decided; empty while nothing waits. Nothing of a foreign run is ever executed.
pub(crate) fn decisions(run: &RunModel) -> Vec<Offer> {
    if run.foreign || run.damage.is_some() {
        return Vec::new();
    }
    let (id, state) = (&run.id, run.run());
    let listed: Vec<(String, &str)> = match (run.standing(), &state.outcome) {
        (Standing::Ended(_), Some(_)) if run.story.tone() == Tone::Good => Vec::new(),
        (Standing::Ended(_), Some(outcome)) => view::next_steps(id, state, outcome),
        (Standing::Interrupted, _) => {
            vec![(format!("archeflow resume {id}"), "go on from where it stopped"), discard(id)]
        }
        (Standing::Paused, _) => vec![(format!("archeflow resume {id}"), "go on from where it stopped")],
        (Standing::Asks, _) => answers(run),
        (Standing::Running | Standing::Ended(_), _) => Vec::new(),
    };
    let cycles = u64::from(state.number().max(1));
    let per_cycle = Some(Money(state.spent.0 / cycles)).filter(|cost| cost.0 > 0);
    let mut offers: Vec<Offer> =
        listed.iter().filter_map(|(command, title)| Offer::of(command, title, per_cycle)).collect();
    let now = state.limits().into_iter().find(|limit| limit.name == "run").map(|limit| limit.cap.shown());
    for offer in &mut offers {
        let from = now.as_deref().unwrap_or("no limit");
        if let Some(limit) = offer.new_limit() {
            offer.cost = format!("limit from {from} to {}", limit.shown());
        } else if offer.wants_amount {
            offer.cost = format!("limit now {from}, spent {}", state.spent.shown());
        }
    }
    offers
}

/// An amount that is still to come is named without quotes.
fn with_amount(mut words: Vec<Word>) -> Vec<Word> {
    let is = |word: Option<&Word>, text: &str| matches!(word, Some(Word::Said(said)) if said == text);
    for at in 1..words.len() {
        if is(words.get(at - 1), "--budget") && is(words.get(at), "<usd>") {
            words[at] = Word::Text;
        }
    }
    words
}

fn discard(id: &str) -> (String, &'static str) {
    (format!("archeflow discard {id}"), "give it up, keeping the work under a ref")
}

fn answers(run: &RunModel) -> Vec<(String, &'static str)> {
    let id = &run.id;
    let yes_or_no = run.run().question().is_some_and(|(_, question)| {
        matches!(question.kind, QuestionKind::Merge | QuestionKind::DryRun | QuestionKind::RedBase)
    });
    if yes_or_no {
        return vec![
            (format!("archeflow answer {id} yes"), "yes"),
            (format!("archeflow answer {id} no"), "no"),
        ];
    }
    vec![(format!("archeflow answer {id} \"…\""), "answer the question")]
}

/// What can be done to a run that is under way.
pub(crate) fn steering(run: &RunModel) -> Vec<Offer> {
    if run.foreign {
        return Vec::new();
    }
    let id = &run.id;
    let listed = match run.standing() {
        Standing::Running => {
            vec![(format!("archeflow pause {id}"), "pause"), (format!("archeflow stop {id}"), "stop the run")]
        }
        Standing::Asks | Standing::Paused => vec![(format!("archeflow stop {id}"), "stop the run")],
        Standing::Interrupted | Standing::Ended(_) => Vec::new(),
    };
    listed.iter().filter_map(|(command, title)| Offer::of(command, title, None)).collect()
}

/// Accepts one open finding, with the reason that the person gives.
pub(crate) fn accepting(run: &RunModel, finding: &str) -> Option<Offer> {
    let open = run.run().cycle().and_then(|cycle| cycle.boundary.as_ref())?;
    let stopped = decisions(run).iter().any(|offer| offer.command.starts_with("archeflow continue "));
    let known = open.open.iter().find(|found| found.id == finding).filter(|_| stopped)?;
    let id = archeflow_core::text::shell_word(&known.id);
    let command = format!("archeflow continue {} --accept {id} --reason \"…\"", run.id);
    Offer::of(&command, "accept it as it is", None)
}

/// The words of a command as the program prints it: blanks between them, quotes as a shell has them, and `"…"` or
/// `"<what to change>"` for a text that is still to come. Names and ids are in single quotes, if in any.
fn split(command: &str) -> Option<Vec<Word>> {
    let (mut words, mut word, mut begun, mut open) = (Vec::new(), String::new(), false, false);
    let mut chars = command.chars();
    while let Some(c) = chars.next() {
        match c {
            ' ' => {
                if begun {
                    words.push(finished(std::mem::take(&mut word), open));
                }
                (begun, open) = (false, false);
                continue;
            }
            '\'' | '"' => {
                open |= c == '"';
                loop {
                    match chars.next()? {
                        end if end == c => break,
                        inner => word.push(inner),
                    }
                }
            }
            '\\' => word.push(chars.next()?),
            c => word.push(c),
        }
        begun = true;
    }
    if begun {
        words.push(finished(word, open));
    }
    Some(words)
}

/// `open` if it stood in double quotes.
fn finished(word: String, open: bool) -> Word {
    let is_text = word == "…" || word.starts_with('<') && word.ends_with('>');
    if open && is_text { Word::Text } else { Word::Said(word) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn u_16_the_words_of_a_command_are_those_of_a_shell() {
        let words = |command: &str| {
            split(command).map(|words| {
                let said = |word: &Word| match word {
                    Word::Said(word) => word.clone(),
                    Word::Text => "<text>".to_owned(),
                };
                words.iter().map(said).collect::<Vec<_>>()
            })
        };
        let line = |command: &str| words(command).map(|words| words.join("|")).unwrap_or_default();
        assert_eq!(line("archeflow continue r --ruling \"…\""), "archeflow|continue|r|--ruling|<text>");
        let odd = archeflow_core::text::shell_word("it's a; `b` $(c)");
        assert_eq!(
            line(&format!("archeflow continue r --accept {odd}")),
            "archeflow|continue|r|--accept|it's a; `b` $(c)"
        );
        assert_eq!(line("a ''  b"), "a||b");
        assert_eq!(line("archeflow loop reject \"<what to change>\""), "archeflow|loop|reject|<text>");
        assert_eq!(line("archeflow continue r --accept '<a b>'"), "archeflow|continue|r|--accept|<a b>");
        assert_eq!(words("a 'b"), None);
    }

    #[test]
    fn u_16_a_text_is_never_an_option() {
        let line = |command: &str| {
            let offer = Offer::of(command, "x", None);
            let options = ["--by".to_owned(), "ui".to_owned()];
            offer.map(|offer| offer.arguments(&options, "--all yes").join("|")).unwrap_or_default()
        };
        assert_eq!(line("archeflow answer r \"…\""), "answer|--by|ui|r|--|--all yes");
        assert_eq!(line("archeflow answer r yes"), "answer|--by|ui|r|yes");
        assert_eq!(line("archeflow loop reject \"<what>\""), "loop|reject|--by|ui|--|--all yes");
        assert_eq!(line("archeflow loop approve"), "loop|approve|--by|ui");
        assert_eq!(line("archeflow continue r --ruling \"…\""), "continue|--by|ui|r|--ruling=--all yes");
        assert_eq!(
            line("archeflow continue r --accept '-a' --accept b --reason \"…\""),
            "continue|--by|ui|r|--accept=-a|--accept=b|--reason=--all yes"
        );
        assert_eq!(
            line("archeflow continue r --one-more-cycle --budget 4"),
            "continue|--by|ui|r|--one-more-cycle|--budget=4"
        );
        assert_eq!(
            line("archeflow continue r --one-more-cycle --budget <usd>"),
            "continue|--by|ui|r|--one-more-cycle|--budget=--all yes"
        );
    }

    #[test]
    fn u_16_an_amount_is_asked_for_and_read() {
        let offer = |command: &str| Offer::of(command, "x", None);
        let typed = offer("archeflow continue r --one-more-cycle --budget <usd>");
        assert!(
            typed.as_ref().is_some_and(|offer| offer.needs_text && offer.wants_amount && !offer.asks_again)
        );
        for (text, wrong) in
            [("5", false), (" 2.50 ", false), ("", true), ("0", true), ("<usd>", true), ("-3", true)]
        {
            let why = typed.as_ref().and_then(|offer| offer.wrong_amount(text));
            assert_eq!(why.is_some(), wrong, "{text}");
        }
        let fixed = offer("archeflow continue r --one-more-cycle --budget 4");
        assert!(fixed.is_some_and(|offer| {
            !offer.needs_text && offer.asks_again && offer.new_limit() == Some(Money(4_000_000))
        }));
        let named = offer("archeflow continue r --accept '<usd>' --reason \"…\"");
        assert!(named.is_some_and(|offer| !offer.wants_amount));
    }

    #[test]
    fn u_16_only_commands_of_the_program_are_offered() {
        for (command, offered) in [
            ("archeflow answer r \"…\"", true),
            ("archeflow merge r", true),
            ("archeflow discard r", true),
            ("archeflow loop approve", true),
            ("archeflow loop start \"<goal>\"", false),
            ("archeflow doctor", false),
            ("archeflow show r", false),
            ("archeflow resume r --wait", false),
            ("git diff HEAD...x", false),
            ("rm -rf /", false),
        ] {
            assert_eq!(Offer::of(command, "x", None).is_some(), offered, "{command}");
        }
    }
}
