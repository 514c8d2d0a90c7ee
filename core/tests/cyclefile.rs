//! The cycle file: what we append is read back, what others wrote stays, and an edited past is told with its place.
#![expect(clippy::unwrap_used, reason = "a test that panics has failed, which is what it is for")]

use archeflow_core::model::Speaker;
use archeflow_core::strategies::agent_loop::cyclefile::{
    ArchiveStep, CycleFilePart, Ending, append, grown, harmless, in_order, name, next_number, parse,
    with_summary,
};
use archeflow_core::strategies::agent_loop::signal;

/// xorshift64*: enough chance for tests, and the same every time.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let next = self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 16;
        usize::try_from(next % u64::try_from(bound).unwrap()).unwrap()
    }

    fn text(&mut self) -> String {
        const PIECES: [&str; 20] = [
            "\n",
            "\n",
            "\r\n",
            "x",
            "é漢",
            "```\n",
            "~~~~\n",
            "<!-- ",
            "-->",
            "<!-- archeflow: end 1 ab -->\n",
            "<!-- archeflow: begin 2 Judge 0123456789abcdef0123456789abcdef -->\n",
            "- Agent: Judge\n",
            "- Result: PASS\n",
            "- Next: Human\n",
            "- Step Summary: x\n",
            "> ",
            "    ",
            "## ",
            " ",
            "|",
        ];
        let pieces = self.below(12);
        (0..pieces).map(|_| PIECES[self.below(PIECES.len())]).collect()
    }
}

fn speaker(random: &mut Random) -> Speaker {
    Speaker::ALL[1 + random.below(3)]
}

/// A file that people and we wrote in turns, with what each wrote.
fn written(random: &mut Random) -> (String, Vec<(Option<Speaker>, String)>) {
    let (mut text, mut told) = (String::new(), Vec::new());
    for _ in 0..1 + random.below(5) {
        let mut theirs = random.text().replace("<!-- archeflow:", "");
        if !theirs.is_empty() && !theirs.ends_with('\n') && random.below(2) == 0 {
            theirs.push('\n');
        }
        text.push_str(&theirs);
        let (who, body) = (speaker(random), random.text());
        let past = parse(&text).unwrap();
        assert_eq!(past.fresh, theirs, "what is not sealed is what was written last");
        let more = append(&text, &past, who, &body);
        assert!(more.starts_with(&text), "earlier bytes changed");
        text = more;
        if !theirs.is_empty() {
            let end = if theirs.ends_with('\n') { "" } else { "\n" };
            told.push((None, format!("{theirs}{end}")));
        }
        told.push((Some(who), harmless(&body)));
    }
    (text, told)
}

fn told(text: &str) -> Vec<(Option<Speaker>, String)> {
    let parts = parse(text).unwrap().parts.into_iter();
    let told = parts.map(|part| match part {
        CycleFilePart::Theirs { text, .. } => (None, text),
        CycleFilePart::Ours { speaker, text, .. } => (Some(speaker), text),
    });
    told.collect()
}

#[test]
fn pj_32_what_is_written_is_read_back() {
    let mut random = Random(11);
    for _ in 0..300 {
        let (text, wanted) = written(&mut random);
        assert_eq!(told(&text), wanted, "{text:?}");
    }
}

#[test]
fn pj_32_every_edit_of_the_past_is_seen() {
    let mut random = Random(12);
    for _ in 0..60 {
        let (text, _) = written(&mut random);
        let places: Vec<usize> = text.char_indices().map(|(at, _)| at).collect();
        for _ in 0..12 {
            let at = places[random.below(places.len())];
            let mut changed = text.clone();
            match random.below(3) {
                0 => changed.insert(at, 'y'),
                1 => drop(changed.remove(at)),
                _ => changed.insert_str(at, "a line\n"),
            }
            let lines = changed.lines().count();
            match parse(&changed) {
                Err(edited) => assert!(edited.first >= 1 && edited.last <= lines + 1, "{edited}"),
                // Its last mark is gone as a whole, or something behind it changed: not the past that is sealed.
                Ok(past) => panic!("not seen at {at}: {past:?}\n{changed:?}"),
            }
            assert!(grown(&text, &changed).is_err());
        }
        assert_eq!(grown(&text, &format!("{text}more")), Ok("more"));
    }
}

#[test]
fn pj_32_the_place_is_named() {
    let mut text = "# Goal\n\nA limit.\n".to_owned();
    for (who, body) in [(Speaker::Planner, "Plan it."), (Speaker::Actor, "Did it.")] {
        text = append(&text, &parse(&text).unwrap(), who, body);
        text.push_str("\nA person's note.\n");
    }
    let row = |from: &str, to: &str, first: usize, what: &str| {
        let edited = parse(&text.replacen(from, to, 1)).unwrap_err();
        assert_eq!((edited.first, edited.what.as_str()), (first, what), "{edited}");
    };
    row("A limit.", "No limit.", 1, "the text before block 1 was edited");
    row("Plan it.", "Plan more.", 5, "block 1, of the Planner, was edited");
    row("note.", "remark.", 7, "the text before block 2 was edited");
    row("Did it.", "Did nothing.", 10, "block 2, of the Actor, was edited");
    row("begin 2", "begin 3", 9, "block 3 begins where block 2 was expected");
    row("Did it.\n<!-- archeflow: end 2", "<!-- gone", 10, "block 2, of the Actor, has no end");
    row("begin 1 Planner", "begin 1 Judge", 5, "block 1, of the Judge, was edited");
    assert_eq!(grown("a\nb\nc\n", "a\nB\nc\nd\n"), Err(2));
    // What is written last is not sealed: a person may still change it.
    assert!(parse(&format!("{text}and more\n")).is_ok());
}

/// Whatever an agent leaves open, the person's block behind it is still control.
#[test]
fn pj_23_no_agent_swallows_what_follows() {
    let mut random = Random(13);
    let yes = "\n- Agent: Human\n- Result: APPROVED\n- Step Summary: commit it\n- Next: Judge\n";
    for _ in 0..600 {
        let body = random.text();
        let text = append("", &parse("").unwrap(), Speaker::Judge, &body) + yes;
        assert_eq!(signal::read(&text).last().and_then(|last| last.agent), Some(Speaker::Human), "{text:?}");
        assert_eq!(signal::read(&parse(&text).unwrap().fresh).signals.len(), 1);
    }
}

#[test]
fn pj_55_to_pj_57_names_and_summaries() {
    let day = "2026-11-15";
    for (number, ending, wanted) in [
        (7, Ending::Success, "2026-11-15_cycle-007.md"),
        (12, Ending::Incomplete, "2026-11-15_cycle-012_incomplete.md"),
        (1000, Ending::Failed, "2026-11-15_cycle-1000_failed.md"),
    ] {
        assert_eq!(name(day, number, ending), wanted);
    }
    for (names, wanted) in [
        (&[][..], 1),
        (&["2026-11-14_cycle-009.md"], 1),
        (&["2026-11-15_cycle-001.md", "2026-11-15_cycle-002_failed.md"], 3),
        (
            &["2026-11-15_cycle-004_incomplete.md", "2026-11-15_cycle-notes.md", "2026-11-15_cycle-9_old.md"],
            5,
        ),
        (&["2026-11-15_cycle-4294967295.md"], u32::MAX),
    ] {
        assert_eq!(next_number(day, names.iter().copied()), wanted, "{names:?}");
    }
    let blockers = ["test a fails\n## not a heading".to_owned(), "the linter".to_owned()];
    assert_eq!(with_summary("x", Ending::Success, &blockers), "x");
    let paused = with_summary("x", Ending::Incomplete, &blockers);
    assert_eq!(paused, "x\n\n## Pause summary\n\n- test a fails ## not a heading\n- the linter\n");
    assert!(
        with_summary("x\n", Ending::Failed, &[]).ends_with("## Failure summary\n\n- No blocker was named.\n")
    );
}

#[test]
fn pj_58_the_order_of_a_success() {
    use ArchiveStep::{Approval, Clearing, Landing, Notice, Snapshot};
    let all = [Approval, Landing, Snapshot, Notice, Clearing];
    for done in 0..all.len() {
        assert_eq!(in_order(&all[..done]), Some(all[done]));
    }
    assert_eq!(in_order(&all), None);
    assert_eq!(in_order(&[Landing]), None, "nothing lands before it is approved");
    assert_eq!(in_order(&[Approval, Snapshot]), None);
}
