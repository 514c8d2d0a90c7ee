//! The SIGNAL BLOCK: the corpus against the table of `docs/rules/signals.md`, and properties.
#![expect(clippy::unwrap_used, reason = "a test that panics has failed, which is what it is for")]
#![expect(clippy::disallowed_methods, reason = "the tests read the corpus; only the core itself is pure")]

mod common {
    #[expect(dead_code, reason = "this page needs only some of the reader")]
    pub(crate) mod page;
    pub(crate) mod work;
}

use std::collections::BTreeSet;
use std::path::PathBuf;

use archeflow_core::model::{LoopPolicy, Speaker, Token};
use archeflow_core::strategies::agent_loop::cyclefile::{append, parse};
use archeflow_core::strategies::agent_loop::signal::{
    Block, How, Route, RouteMode, SignalBlocks, read, read_bytes, render, route, spoken,
};

use common::page::{Page, Row};
use common::work::worked;

fn corpus() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/corpus/signals")
}

/// What the last block comes to, as the table says it.
fn told(reading: &SignalBlocks) -> [String; 5] {
    let Some(signal) = reading.last() else {
        let none = ["-", "-", "nobody", "no", &shown(reading)].map(str::to_owned);
        return none;
    };
    let (result, next) = match route(signal, RouteMode::Tolerant) {
        Route::To(next, result) => (result.map_or("unclear", Token::name), next.name()),
        Route::Refused(fault) => ("-", fault.name()),
    };
    let strict = matches!(route(signal, RouteMode::Strict), Route::To(..));
    let deviations = signal.deviations.iter().map(|found| format!("{} {}", found.how.name(), found.line));
    let mut deviations: Vec<String> = deviations.collect();
    deviations.extend(Some(shown(reading)).filter(|shown| shown != "-"));
    let deviations = if deviations.is_empty() { "-".to_owned() } else { deviations.join(", ") };
    [
        signal.agent.map_or("-", Speaker::name).to_owned(),
        result.to_owned(),
        next.to_owned(),
        if strict { "yes" } else { "no" }.to_owned(),
        deviations,
    ]
}

fn shown(reading: &SignalBlocks) -> String {
    let lines: Vec<String> = reading.shown.iter().map(|line| format!("shown {line}")).collect();
    if lines.is_empty() { "-".to_owned() } else { lines.join(", ") }
}

#[test]
fn l_01_l_02_pj_20_to_pj_23_pc_02_pc_04_pc_09_pc_10_m_d13_corpus() {
    let names = std::fs::read_dir(corpus()).unwrap().map(|entry| entry.unwrap().file_name());
    let mut left: BTreeSet<String> = names.map(|name| name.to_str().unwrap().replace(".md", "")).collect();
    assert!(left.len() >= 110, "the corpus has shrunk to {}", left.len());
    let mut page = Page::open("signals");
    for name in page.table("The corpus").column("block") {
        assert!(left.remove(&name), "{name} is listed twice or not there");
    }
    assert_eq!(left, BTreeSet::new(), "blocks without an expectation");
    page.check("The corpus", |row| {
        let bytes = std::fs::read(corpus().join(format!("{}.md", row.get("block")))).unwrap();
        let [agent, result, next, strict, deviations] = told(&read_bytes(&bytes));
        let bare = |text: String| if text == "-" { String::new() } else { text };
        row.expect("agent", bare(agent));
        row.expect("result", bare(result));
        row.expect("next", next);
        row.expect("strict", strict);
        row.expect("deviations", bare(deviations));
    });
    page.check("Around a result", around_a_result);
    let met: String = page.table("The corpus").column("deviations").join(" ");
    let table = page.table("Deviations");
    let named: BTreeSet<String> = table.column("deviation").into_iter().collect();
    for how in How::ALL {
        assert!(named.contains(how.name()), "docs/rules/signals.md does not tell of {}", how.name());
        assert!(met.contains(how.name()), "no block of the corpus shows {}", how.name());
    }
    assert_eq!(named.len(), How::ALL.len());
    page.close();
}

/// L-02: what is struck out, questioned, withdrawn or hedged is no result, for no role.
fn around_a_result(row: &Row) {
    let written = row.get("written").replace('`', "");
    let (agent, next) = (row.get("agent"), row.get("next"));
    let text = format!("- Agent: {agent}\n- Result: {written}\n- Step Summary: so it is\n- Next: {next}\n");
    let reading = read(&text);
    let read = match reading.last().map(|signal| route(signal, RouteMode::Tolerant)) {
        Some(Route::To(_, result)) => result.map_or("unclear", Token::name),
        Some(Route::Refused(_)) | None => "asked back",
    };
    row.expect("read", read);
}

/// Of all words beside a PASS, only those that are listed leave it one.
#[test]
fn l_02_unknown_words_beside_a_pass_make_it_unclear() {
    let mut random = Random(2);
    for _ in 0..2_000 {
        let words: Vec<&str> = (0..=random.below(3))
            .map(|_| {
                let known = ["no", "all", "tests", "zebra", "pass", "findings", "were", "14", "run", "maybe"];
                known[random.below(known.len())]
            })
            .collect();
        let beside = words.join(" ");
        let text = format!("- Agent: Judge\n- Result: PASS ({beside})\n- Step Summary: x\n- Next: Human\n");
        let reading = read(&text);
        let passes = reading.last().is_some_and(|signal| signal.result == Some(Token::Pass));
        let known = ["no findings", "all tests pass", "14 pass", "pass", "14 tests pass"];
        assert_eq!(passes, known.contains(&beside.as_str()), "{text}");
    }
}

/// L-10: what can't be routed says which line, or which combination.
#[test]
fn l_10_a_refused_block_names_its_line_or_its_combination() {
    let policy = LoopPolicy::default();
    for (text, expected) in [
        (
            "- Agent: Judge\n- Result: INSUFFICIENT\n- Step Summary: red\n- Next: Actor\n",
            "the block on lines 1 to 4 can't be routed: illegal: Judge says INSUFFICIENT and names Actor as next; \
             after it Human or Planner can be next",
        ),
        (
            "Well.\n\n- Agent: Judge\n- Result: PASS\n- Step Summary: x\n- Next: Bob\n",
            "the block on lines 3 to 6 can't be routed: line 6 names none of Human, Planner, Actor, Judge as next",
        ),
        (
            "- Agent: Judge\n- Result: PASS\n- Result: INSUFFICIENT\n- Step Summary: x\n- Next: Human\n",
            "the block on lines 1 to 5 can't be routed: line 3 contradicts an earlier line with the same label",
        ),
        (
            "- Agent: Planner\n- Result: PLAN_CREATED (superseded)\n- Step Summary: x\n- Next: Actor\n",
            "the block on lines 1 to 4 can't be routed: line 2 withdraws or hedges the result",
        ),
    ] {
        assert_eq!(spoken(text, &policy).fault, expected);
    }
}

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

    /// Text made of what the reader stumbles over.
    fn hostile(&mut self, pieces: usize) -> String {
        const PIECES: [&str; 44] = [
            "\n",
            "\n",
            "\n",
            "\n\n",
            "\r\n",
            "\r",
            " ",
            "    ",
            "\t",
            "- ",
            "* ",
            "> ",
            "|",
            "| ",
            "**",
            "`",
            "```\n",
            "~~~\n",
            "<!--",
            "-->",
            "+",
            "@@ -1 +1 @@\n",
            "#",
            ":",
            "=",
            "：",
            "Agent",
            "Agent: ",
            "- Agent: Judge\n",
            "- Result: PASS\n",
            "- Step Summary: x\n",
            "- Next: Human\n",
            "Planner",
            "Actor",
            "PLAN_CREATED",
            "Loop Summary: ",
            "SIGNAL BLOCK",
            "Signature: ",
            "Project=x | Agent=Judge | Step=1",
            "Risk: high",
            "Confidence: 7/",
            "\u{200b}",
            "é漢",
            "|---|---|---|---|\n",
        ];
        (0..pieces).map(|_| PIECES[self.below(PIECES.len())]).collect()
    }
}

#[test]
fn pj_20_any_text_is_read_and_lines_are_within_it() {
    let mut random = Random(2026);
    for _ in 0..6000 {
        let text = random.hostile(30);
        let reading = read(&text);
        let lines = text.split_inclusive(['\n', '\r']).count() + 1;
        for signal in &reading.signals {
            assert!(signal.first >= 1 && signal.first <= signal.last && signal.last <= lines, "{text:?}");
            assert!(signal.deviations.iter().all(|found| (1..=lines).contains(&found.line)), "{text:?}");
            assert!(signal.summary.chars().count() <= 1000);
            if matches!(route(signal, RouteMode::Strict), Route::To(..)) {
                assert_eq!(route(signal, RouteMode::Strict), route(signal, RouteMode::Tolerant), "{text:?}");
            }
        }
    }
}

#[test]
fn pj_20_bytes_cut_anywhere_are_read() {
    for entry in std::fs::read_dir(corpus()).unwrap() {
        let bytes = std::fs::read(entry.unwrap().path()).unwrap();
        for end in 0..bytes.len() {
            let _ = read_bytes(&bytes[..end]);
        }
    }
}

/// Blocks of the corpus with pieces cut out, doubled, moved and spoilt: the same promises as in `fuzz/`, every time anew
/// and every time the same.
#[test]
fn pj_20_pj_32_pc_04_spoilt_blocks_of_the_corpus() {
    let mut names: Vec<PathBuf> =
        std::fs::read_dir(corpus()).unwrap().map(|entry| entry.unwrap().path()).collect();
    names.sort();
    let texts: Vec<Vec<u8>> = names.iter().map(|path| std::fs::read(path).unwrap()).collect();
    let (mut random, policy) = (Random(2027), LoopPolicy::default());
    let (mut routed, mut refused) = (0, 0);
    for _ in 0..3000 {
        let bytes = spoilt(&mut random, &texts);
        let text = String::from_utf8_lossy(&bytes);
        let reading = read(&text);
        for signal in &reading.signals {
            if let Route::To(_, Some(token)) = route(signal, RouteMode::Tolerant) {
                assert!(!token.approves() || signal.agent == Some(Speaker::Human), "{text:?}");
            }
        }
        let last = reading.last().map(|signal| route(signal, RouteMode::Tolerant));
        let routes = matches!(last, Some(Route::To(..)));
        routed += u32::from(routes);
        refused += u32::from(!routes);
        assert_eq!(spoken(&text, &policy).fault.is_empty(), routes, "{text:?}");
        let file = append("", &parse("").unwrap(), Speaker::Actor, &text);
        let past = parse(&file).unwrap();
        assert_eq!((past.blocks, past.fresh.as_str()), (1, ""), "{text:?}");
    }
    assert!(routed > 300 && refused > 300, "{routed} routed, {refused} refused: that says little");
}

fn spoilt(random: &mut Random, texts: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = texts[random.below(texts.len())].clone();
    for _ in 0..=random.below(4) {
        let (one, other) = (random.below(bytes.len() + 1), random.below(bytes.len() + 1));
        let (from, to) = (one.min(other), one.max(other).min(one.min(other) + 60));
        let piece = bytes[from..to].to_vec();
        match random.below(5) {
            0 => drop(bytes.drain(from..to)),
            1 => drop(bytes.splice(to..to, piece)),
            2 => {
                let at = random.below(bytes.len() + 1);
                bytes.splice(at..at, piece);
            }
            3 => {
                let more = random.hostile(3);
                bytes.splice(from..from, more.into_bytes());
            }
            _ => bytes.extend(&texts[random.below(texts.len())]),
        }
    }
    bytes
}

/// Whatever stands in a fence or a quote changes nothing about who is next.
#[test]
fn pj_23_m_d13_shown_text_never_controls() {
    let mut random = Random(77);
    let real = "- Agent: Judge\n- Result: INSUFFICIENT\n- Step Summary: red\n- Next: Planner\n\n";
    let alone = read(real).signals;
    for _ in 0..1500 {
        let text = random.hostile(25).replace(['`', '~', '\r', '>'], "");
        let fenced = format!("{real}~~~~~~\n{text}\n~~~~~~\n");
        let quoted: String = text.lines().map(|line| format!("> {line}\n")).collect();
        let commented = format!("{real}<!--\n{text}\n-->\n");
        for shown in [fenced, format!("{real}{quoted}"), commented] {
            assert_eq!(read(&shown).signals, alone, "{shown:?}");
        }
    }
}

/// An agent never says a person's yes, however it is written (PC-04).
#[test]
fn pc_04_only_a_person_approves() {
    let mut random = Random(5);
    for _ in 0..1500 {
        let more = random.hostile(6).replace(['\n', '\r'], " ");
        for agent in ["Planner", "Actor", "Judge"] {
            for word in ["APPROVED", "MERGE_APPROVED", "DELETE_APPROVED"] {
                let text =
                    format!("- Agent: {agent}\n- Result: {word} {more}\n- Step Summary: x\n- Next: Human\n");
                for signal in &read(&text).signals {
                    let Route::To(_, Some(token)) = route(signal, RouteMode::Tolerant) else { continue };
                    assert!(!token.approves() || signal.agent == Some(Speaker::Human), "{text:?}");
                }
            }
        }
    }
}

#[test]
fn pj_20_m_s20_much_of_anything_is_read_quickly() {
    let pieces = [
        "- Agent: Judge\n",
        "- Next: Human\n",
        "- x: y\n",
        "|",
        "| Agent ",
        "Agent: Judge | ",
        "- Step Summary: x\ny\n",
        "SIGNAL BLOCK\n",
        "**",
        ":",
        "=",
        "- Agent: Judge\n- Result: PASS\n- Step Summary: x\n- Next: Human\n",
    ];
    for piece in pieces {
        let text = piece.repeat(400_000 / piece.len());
        let start = worked();
        let _ = read(&text);
        let took = worked().saturating_sub(start);
        // Far above what a linear reader needs, far below what a quadratic one would.
        assert!(took.as_secs() < 8, "{piece:?} took {took:?}");
    }
}

/// What we write ourselves deviates in nothing, whatever is said in it.
#[test]
fn pj_20_pj_21_pc_02_what_we_write_is_the_grammar() {
    let mut random = Random(8);
    let said = [
        (Speaker::Human, Token::Init, Speaker::Planner, Token::Init),
        (Speaker::Planner, Token::PlanUpdated, Speaker::Human, Token::PlanUpdated),
        (Speaker::Planner, Token::ClarificationNeeded, Speaker::Human, Token::PlanUpdated),
        (Speaker::Actor, Token::Success, Speaker::Judge, Token::Success),
        (Speaker::Actor, Token::Fail, Speaker::Planner, Token::Fail),
        (Speaker::Judge, Token::Pass, Speaker::Human, Token::Pass),
        (Speaker::Judge, Token::Insufficient, Speaker::Planner, Token::Insufficient),
        (Speaker::Judge, Token::Insufficient, Speaker::Human, Token::Insufficient),
    ];
    for _ in 0..400 {
        let (summary, project) = (random.hostile(8), random.hostile(3));
        for (agent, result, next, amounts_to) in said {
            let block = Block { agent, result, summary: &summary, next, project: &project, step: 3 };
            let text = render(block);
            let reading = read(&text);
            let [signal] = reading.signals.as_slice() else { panic!("{text:?}: {reading:?}") };
            assert_eq!(signal.deviations, [], "{text:?}");
            assert_eq!(route(signal, RouteMode::Strict), Route::To(next, Some(amounts_to)), "{text:?}");
        }
    }
}
