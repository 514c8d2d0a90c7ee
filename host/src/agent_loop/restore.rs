//! The cycle file, rendered again from the journal (L-06). Our own blocks are there word for word; of what people wrote,
//! what was read.

use std::collections::BTreeMap;

use archeflow_core::event::{Event, LoopAppend, Order, Report};
use archeflow_core::model::{Seq, Speaker, Token};
use archeflow_core::strategies::agent_loop::cyclefile;
use archeflow_core::strategies::agent_loop::signal::{Block, render};

use super::cycle::CycleFile;
use super::orders::body;
use crate::log;
use crate::store::journal::Journal;
use crate::world::World;

const GONE: &str = "[This answer was replaced by a later one; its words are not kept.]";

/// The text of the file as it was before the order of this line; nothing where the journal or an artifact can't be read.
pub(crate) fn rendered(world: &World, before: Seq) -> Option<String> {
    let path = world.places.events().join(format!("{}.jsonl", world.run_id));
    let entries = log::entries(&Journal::read(&path).ok()?).ok()?;
    let mut ordered: BTreeMap<Seq, Box<LoopAppend>> = BTreeMap::new();
    let (mut text, mut theirs) = (String::new(), String::new());
    for entry in entries.into_iter().take_while(|entry| entry.seq < before) {
        let (seq, event) = (entry.seq, entry.event);
        if let Event::Order(Order::LoopAppend(append)) = event {
            ordered.insert(seq, append);
            continue;
        }
        let Event::Report(report) = event else { continue };
        if let Report::LoopOpened(opened) = &report
            && opened.in_file
        {
            theirs = render(Block {
                agent: Speaker::Human,
                result: Token::Init,
                summary: &opened.goal,
                next: Speaker::Planner,
                project: &opened.project,
                step: 0,
            });
        }
        if let Report::LoopHeard(heard) = &report
            && heard.spoken.is_some()
        {
            theirs.push_str(&format!("\n{}\n\n", heard.text.trim()));
        }
        let Report::LoopAppended(appended) = report else { continue };
        let Some(append) = ordered.remove(&appended.start_seq) else { continue };
        if !appended.theirs.is_empty() {
            theirs.push_str(&format!("\n{}\n\n", appended.theirs.trim()));
        }
        if !theirs.is_empty() {
            text.push_str(&cyclefile::harmless(&std::mem::take(&mut theirs)));
        }
        let past = cyclefile::parse(&text).ok()?;
        // An answer that another one of the same step replaced is not among the artifacts any more.
        let body = body(world, &append).unwrap_or_else(|_| format!("{GONE}\n\n{}", append.text));
        text = cyclefile::append(&text, &past, append.speaker, &body);
    }
    Some(text)
}

/// Writes the file again if it is gone. Gives the seal that it has, or would have, by the journal.
pub(crate) fn restore(world: &World, file: &CycleFile, before: Seq) -> Option<String> {
    let text = rendered(world, before)?;
    let seal = cyclefile::parse(&text).ok()?.seal;
    file.write_again(&text).ok()?;
    Some(seal)
}
