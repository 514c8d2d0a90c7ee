//! The view drawn at several sizes, compared with snapshots; what keys do; and hostile
//! text, which must be nothing but text in every cell. `UPDATE=1` writes the snapshots again.

#![expect(clippy::unwrap_used, reason = "a test that can't set up its world should stop at once")]

use std::path::PathBuf;

use archeflow_core::event::{Entry, Event, QuestionAsked, QuestionKind};
use archeflow_core::model::{Outcome, Phase, Reason, RunStatus};
use archeflow_core::projections::live::Driven;
use archeflow_core::projections::usual_time::{PastRun, UsualTime};
use archeflow_core::text::{cells, is_unsafe};
use ratatui_core::backend::TestBackend;
use ratatui_core::buffer::Buffer;
use ratatui_core::style::{Color, Modifier};
use ratatui_core::terminal::Terminal;
use unicode_width::UnicodeWidthStr;

use super::View;
use super::act::{OpenedStart, Wish, act};
use super::draw::draw;
use super::keys::{KEYS, Key};
use super::view::{Over, Pane};
use crate::report::tests::{BREAK, DEMO, entries, poison, values};

const SIZES: [(u16, u16); 7] = [(80, 24), (120, 40), (200, 60), (40, 10), (10, 3), (1, 1), (300, 100)];

/// The view after these lines, some seconds later.
fn view(log: &[Entry]) -> View {
    let mut view = View::new("2026-11-15-the-run", Driven::Here, true);
    log.iter().for_each(|entry| view.live.take(entry));
    view.live.now = view.live.run.last + 12_000;
    view
}

fn demo(lines: usize) -> View {
    let log = entries(&values(DEMO));
    let mut view = view(&log[..lines.min(log.len())]);
    let out: Vec<u64> = view.live.run.open_agents().map(|(seq, _)| seq).collect();
    for (seq, text) in out.into_iter().zip(["reads till.sh", "runs sh tests/run.sh"]) {
        view.live.heard(seq, text);
    }
    view
}

/// The demo's first cycle with a budget, and agents that say what they used.
fn with_costs() -> Vec<serde_json::Value> {
    let mut lines = values(DEMO);
    lines.truncate(26);
    for line in &mut lines {
        if line["type"] == "run.start" {
            line["data"]["config"]["costs"]["budget_usd"] = 2.0.into();
        }
        if line["type"] == "agent.complete" {
            line["data"]["tokens"] = serde_json::json!({ "input": 41_250, "output": 2_310 });
            line["data"]["estimated_cost_usd"] = 0.21.into();
        }
    }
    lines
}

fn drawn(view: &mut View, (wide, tall): (u16, u16)) -> Buffer {
    view.size = (wide, tall);
    if let Over::Page(page) = &mut view.over {
        page.fit(usize::from(wide));
    }
    let mut terminal = Terminal::new(TestBackend::new(wide, tall)).unwrap();
    terminal.draw(|frame| draw(frame, view)).unwrap();
    terminal.backend().buffer().clone()
}

fn rows(buffer: &Buffer) -> Vec<String> {
    let area = buffer.area();
    let row = |y: u16| {
        let mut text = String::new();
        let mut hidden = 0;
        for x in 0..area.width {
            let symbol = buffer[(x, y)].symbol();
            if hidden == 0 {
                text.push_str(symbol);
            }
            hidden = symbol.width().max(hidden).saturating_sub(1);
        }
        text.trim_end().to_owned()
    };
    (0..area.height).map(row).collect()
}

fn looks_as_it_did(name: &str, buffer: &Buffer) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("tests/snapshots/tui-{name}.txt"));
    let text = rows(buffer).join("\n") + "\n";
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&path, &text).unwrap();
    }
    let known = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(known == text, "{} is now, UPDATE=1 if that is meant:\n{text}", path.display());
}

fn press(view: &mut View, keys: &[Key]) -> Vec<Wish> {
    keys.iter().filter_map(|key| act(key, view)).collect()
}

fn typed(text: &str) -> Vec<Key> {
    text.chars().map(Key::Char).collect()
}

/// A question as the next line of a run.
fn asked(view: &mut View, kind: QuestionKind) {
    let detail = "landing needs a yes".to_owned();
    let unanswered =
        Outcome { status: RunStatus::AwaitingAnswer, reason: Reason::LowConfidence, detail: detail.clone() };
    let details = vec!["main: 72af12059d -> 44e38b6cf3".to_owned(), "2 files changed".to_owned()];
    let question = "Land this change on main?".to_owned();
    let event: Event = QuestionAsked { kind, archetype: String::new(), question, details, unanswered }.into();
    let (seq, at) = (view.live.run.lines + 1, view.live.run.last);
    view.live.take(&Entry { seq, at, parent: Vec::new(), phase: Phase::Act, agent: None, event });
    view.asked = true;
}

#[test]
fn af_122_a_run_under_way_looks_as_it_did_at_every_size() {
    for size in SIZES {
        let buffer = drawn(&mut demo(26), size);
        looks_as_it_did(&format!("{}x{}", size.0, size.1), &buffer);
    }
    looks_as_it_did("out", &drawn(&mut demo(21), (120, 30)));
    looks_as_it_did("ended", &drawn(&mut demo(usize::MAX), (120, 30)));
    looks_as_it_did("break", &drawn(&mut view(&entries(&values(BREAK))), (120, 40)));
    looks_as_it_did("budget", &drawn(&mut view(&entries(&with_costs())), (120, 30)));
    looks_as_it_did("nothing", &drawn(&mut view(&[]), (80, 24)));
}

#[test]
fn af_122_what_lies_over_the_panes_looks_as_it_did() {
    let mut view = demo(21);
    asked(&mut view, QuestionKind::Merge);
    looks_as_it_did("waits", &drawn(&mut view, (80, 24)));
    press(&mut view, &[Key::Char('a')]);
    looks_as_it_did("answer", &drawn(&mut view, (80, 24)));
    press(&mut view, &[Key::Esc, Key::Char('q')]);
    looks_as_it_did("leave", &drawn(&mut view, (80, 24)));
    press(&mut view, &[Key::Esc, Key::Char('?')]);
    looks_as_it_did("help", &drawn(&mut view, (120, 30)));
}

#[test]
fn af_122_m_h9_no_size_is_too_odd() {
    let mut view = demo(26);
    asked(&mut view, QuestionKind::Shadow);
    for keys in [vec![], typed("a"), typed("q"), typed("s"), typed("?"), vec![Key::Esc]] {
        press(&mut view, &keys);
        for wide in [0, 1, 2, 39, 40, 41, 99, 100, 101, 500] {
            for tall in [0, 1, 2, 9, 10, 11, 15, 16, 17, 250] {
                drawn(&mut view, (wide, tall));
            }
        }
        press(&mut view, &[Key::Esc]);
    }
}

#[test]
fn af_122_m_h9_colours_follow_no_color_and_doubt_is_dim() {
    let mut view = demo(26);
    let coloured = drawn(&mut view, (120, 40));
    assert!(coloured.content().iter().any(|cell| cell.fg != Color::Reset));
    view.colour = false;
    let plain = drawn(&mut view, (120, 40));
    assert!(plain.content().iter().all(|cell| cell.fg == Color::Reset && cell.bg == Color::Reset));
    assert_eq!(rows(&plain), rows(&coloured));

    let rows = rows(&plain);
    let y = rows.iter().position(|row| row.contains("INFO (was WARNING)")).unwrap();
    let x = rows[y].split("INFO (was").next().unwrap().width();
    let (x, y) = (u16::try_from(x).unwrap(), u16::try_from(y).unwrap());
    assert!(plain[(x, y)].modifier.contains(Modifier::DIM), "a finding that does not count stands back");
}

#[test]
fn r20_only_a_clear_word_answers_stops_or_leaves() {
    let stop = |keys: &str| press(&mut demo(21), &typed(keys));
    assert_eq!(stop("sy"), [Wish::Stop]);
    assert_eq!(stop("sn"), []);
    assert_eq!(stop("sxxn"), []);
    assert_eq!(stop("q"), [], "a run of this process is not left without a word");
    assert_eq!(stop("qp"), [Wish::Plain]);
    assert_eq!(stop("qs"), [Wish::Stop]);
    assert_eq!(stop("qqq"), []);
    assert_eq!(press(&mut demo(21), &[Key::Paste("sy".to_owned())]), []);
    assert_eq!(press(&mut demo(usize::MAX), &typed("q")), [Wish::Leave]);

    let answer = |kind: QuestionKind, keys: &[Key]| {
        let mut view = demo(21);
        asked(&mut view, kind);
        press(&mut view, &[&[Key::Char('a')], keys].concat())
    };
    let said = |text: &str| vec![Wish::Answer(text.to_owned())];
    assert_eq!(answer(QuestionKind::Merge, &[Key::Enter]), [], "nothing chosen, nothing said");
    assert_eq!(answer(QuestionKind::Merge, &[Key::Up, Key::Enter]), said("no"));
    assert_eq!(answer(QuestionKind::Merge, &[Key::Up, Key::Up, Key::Enter]), said("yes"));
    let words = [typed("use  sy"), vec![Key::Backspace, Key::Enter]].concat();
    assert_eq!(answer(QuestionKind::NeedsContext, &words), said("use  s"));
    let pasted = [Key::Paste("two\nlines".to_owned()), Key::Enter];
    assert_eq!(answer(QuestionKind::NeedsContext, &pasted), said("two lines"));
    assert_eq!(
        answer(QuestionKind::Merge, &[Key::Esc, Key::Enter]).len(),
        1,
        "after Esc it is a key of the panes"
    );
}

#[test]
fn af_122_a_run_of_another_process_is_steered_and_one_of_none_is_resumed_by_command() {
    let elsewhere = || Driven::Elsewhere { pid: 4_711, host: "box".to_owned() };
    let in_fleet = || Driven::Fleet { worker: "w7".to_owned(), repository: "acme/shop".to_owned() };
    for (driven, keys, words) in [
        (elsewhere(), "s", "Stop the run?"),
        (elsewhere(), "a", "or your words"),
        (Driven::Nobody, "s", "archeflow resume 2026-11-15-the-run"),
        (Driven::Nobody, "p", "archeflow resume 2026-11-15-the-run"),
        (in_fleet(), "s", "typed on w7"),
        (in_fleet(), "p", "typed on w7"),
        (in_fleet(), "a", "its clone of acme/shop"),
    ] {
        let mut view = demo(21);
        asked(&mut view, QuestionKind::Merge);
        view.live.driven = driven;
        assert_eq!(press(&mut view, &typed(keys)), []);
        let text = rows(&drawn(&mut view, (80, 24))).join("\n");
        assert!(text.contains(words), "{keys}: {text}");
    }
    let mut view = demo(21);
    view.live.driven = elsewhere();
    assert_eq!(press(&mut view, &typed("p")), [Wish::Pause]);
    view.live.run.paused = Some("control".to_owned());
    assert_eq!(press(&mut view, &typed("p")), [Wish::Resume]);
    assert_eq!(press(&mut view, &typed("sy")), [Wish::Stop]);
    assert_eq!(press(&mut view, &typed("q")), [Wish::Leave]);
    asked(&mut view, QuestionKind::Merge);
    view.live.driven = Driven::Nobody;
    let keys = [typed("a"), vec![Key::Up, Key::Enter]].concat();
    assert_eq!(press(&mut view, &keys), [Wish::Answer("no".to_owned())], "a parked run can be answered here");
}

#[test]
fn af_122_one_moves_between_panes_and_lines_and_opens_what_is_there() {
    let mut view = demo(usize::MAX);
    assert_eq!((view.pane, view.row(Pane::Agents)), (Pane::Agents, view.live.agents.len() - 1));
    let opened = press(&mut view, &[Key::Home, Key::Down, Key::Down, Key::Enter]);
    let Some(Wish::Open(OpenedStart { cycle: 1, archetype, artifact: Some(name), .. })) = opened.first()
    else {
        panic!("{opened:?}")
    };
    assert_eq!((archetype.as_str(), name.as_str()), ("maker", "do-maker.md"));
    let opened = press(&mut view, &[Key::Tab, Key::Home, Key::Enter]);
    assert!(
        matches!(&opened[..], [Wish::Open(OpenedStart { artifact: Some(name), .. })] if name == "check-guardian.md")
    );
    press(&mut view, &[Key::Tab, Key::Up, Key::Up]);
    assert_eq!((view.pane, view.at[2]), (Pane::Decisions, Some(view.live.decisions.len() - 3)));
    press(&mut view, &[Key::PageDown]);
    assert_eq!(view.at[2], None, "at the end again, it follows");
    press(&mut view, &[Key::Tab, Key::BackTab, Key::Right, Key::Left]);
    assert_eq!(view.pane, Pane::Decisions);
    assert!(matches!(&press(&mut view, &typed("d"))[..], [Wish::Diff { .. }]));
    assert_eq!(press(&mut self::view(&[]), &typed("d")), []);
}

/// The demo with every place written as reviewers do.
fn in_backticks() -> Vec<serde_json::Value> {
    let mut lines = values(DEMO);
    for line in &mut lines {
        for path in ["/data/findings", "/data/answer/said/review/findings"] {
            let found = line.pointer_mut(path).and_then(serde_json::Value::as_array_mut);
            for one in found.into_iter().flatten() {
                one["location"] = format!("`{}`", one["location"].as_str().unwrap()).into();
            }
        }
    }
    lines
}

#[test]
fn u_08_a_finding_is_ticked_off_however_its_place_is_written() {
    let plain = demo(usize::MAX);
    let marked = view(&entries(&in_backticks()));
    let ticks = |view: &View| -> Vec<(String, bool)> {
        view.live.findings.iter().map(|found| (found.place.clone(), found.resolved)).collect()
    };
    assert_eq!(ticks(&plain), ticks(&marked));
    assert_eq!(marked.live.findings.iter().filter(|found| found.resolved).count(), 2);
}

/// Two findings of one category in one file: only the one that is gone is ticked off.
#[test]
fn u_08_only_what_was_resolved_is_ticked_off() {
    let mut lines = values(DEMO);
    let words = "The other one is still there.";
    for line in &mut lines {
        let first = line["seq"].as_u64().unwrap() < 30;
        let data = &mut line["data"];
        if first && data["archetype"] == "guardian" && data["findings"].is_array() {
            let mut other = data["findings"][0].clone();
            other["description"] = words.into();
            other["location"] = "`till.sh:80`".into();
            data["findings"].as_array_mut().unwrap().push(other);
        }
        if first && data["open"].is_array() {
            let mut other =
                data["open"].as_array().unwrap().iter().find(|one| one["file"] == "till.sh").unwrap().clone();
            other["id"] = "till.sh:reliability:2".into();
            other["line"] = 80.into();
            other["description"] = words.into();
            data["open"].as_array_mut().unwrap().push(other);
        }
    }
    let view = view(&entries(&lines));
    let of = |text: &str| view.live.findings.iter().find(|found| found.description == text).unwrap().resolved;
    assert!(!of(words), "it persists");
    assert_eq!(view.live.findings.iter().filter(|found| found.resolved).count(), 2);
}

#[test]
fn u_08_a_first_attempt_is_the_first() {
    let mut view = demo(usize::MAX);
    let opened = press(&mut view, &[Key::Home, Key::Down, Key::Enter]);
    let [Wish::Open(start)] = &opened[..] else { panic!("{opened:?}") };
    assert_eq!((start.seq, start.attempt), (9, 1));
}

/// Text is cut only where there is no room left to show it.
#[test]
fn u_17_no_text_is_cut_beside_empty_space() {
    for log in [DEMO, BREAK] {
        for pane in Pane::ALL {
            let mut view = view(&entries(&values(log)));
            view.pane = pane;
            let shown = rows(&drawn(&mut view, (200, 60))).join("\n");
            // A command may ask for words of one's own.
            assert!(!shown.replace("\"…\"", "").contains('…'), "{shown}");
        }
    }
    // Many long findings: lines that are free are used, and what is not shown is marked.
    let mut view = demo(26);
    let one = view.live.findings[0].clone();
    for n in 0..6 {
        let mut more = one.clone();
        more.description = format!("{n} {}end{n}", "a long sentence that goes on ".repeat(8));
        view.live.findings.push(more);
    }
    let wide = rows(&drawn(&mut view, (200, 60))).join("\n");
    assert!((0..6).all(|n| wide.contains(&format!("end{n}"))), "{wide}");
    let narrow = rows(&drawn(&mut view, (80, 24)));
    assert!(narrow.iter().any(|row| row.contains('…')), "{}", narrow.join("\n"));
    // However the screen is divided, no row is lost.
    for size in [(100, 20), (130, 26), (99, 60), (200, 24), (500, 250)] {
        for rows in 0..30 {
            view.live.findings.truncate(30 - rows);
            drawn(&mut view, size);
        }
    }
}

#[test]
fn u_17_the_live_view_uses_the_palette_only() {
    let mut seen = std::collections::BTreeSet::new();
    for log in [DEMO, BREAK] {
        let log = entries(&values(log));
        for end in 0..=log.len() {
            let mut view = view(&log[..end]);
            for keys in [typed(""), typed("?"), typed("s")] {
                press(&mut view, &keys);
                for cell in drawn(&mut view, (120, 40)).content() {
                    assert_eq!(cell.bg, Color::Reset);
                    let known = cell.fg == Color::Reset || crate::render::palette::of_cell(cell.fg).is_some();
                    assert!(known, "{:?}", cell.fg);
                    seen.insert(format!("{:?}", cell.fg));
                }
                press(&mut view, &[Key::Esc]);
            }
        }
    }
    assert_eq!(seen.into_iter().collect::<Vec<_>>(), ["Green", "Magenta", "Red", "Reset"]);
}

#[test]
fn u_16_the_view_stays_at_the_end_until_it_was_read() {
    let ended = || {
        let mut view = demo(usize::MAX);
        view.stay();
        view
    };
    looks_as_it_did("stays", &drawn(&mut ended(), (80, 24)));
    for key in [Key::Char('q'), Key::Esc, Key::Enter] {
        assert_eq!(press(&mut ended(), std::slice::from_ref(&key)), [Wish::Leave], "{key:?}");
    }
    // Looking around first; Enter opens again, and Esc leaves from the panes.
    let mut view = ended();
    assert_eq!(press(&mut view, &[Key::Tab, Key::Up]), []);
    assert!(matches!(&press(&mut view, &[Key::Enter])[..], [Wish::Open(_)]));
    assert_eq!(press(&mut view, &typed("?q")), [], "the first q closes the help");
    assert_eq!(press(&mut view, &[Key::Esc]), [Wish::Leave]);
    // A page that is being read is not taken away; its end is shown behind it.
    let mut view = demo(usize::MAX);
    press(&mut view, &typed("?"));
    view.stay();
    assert!(matches!(view.over, Over::Page(_)));
    assert_eq!(press(&mut view, &[Key::Down, Key::Esc]), []);
    assert!(matches!(view.over, Over::End));
    // Nothing can be stopped or paused any more.
    for keys in ["s", "p"] {
        let mut view = ended();
        assert_eq!(press(&mut view, &typed(keys)), []);
        assert!(rows(&drawn(&mut view, (80, 24))).join("\n").contains("ended already"));
    }
    let mut view = demo(21);
    asked(&mut view, QuestionKind::Merge);
    view.stay();
    press(&mut view, &typed("a"));
    assert!(rows(&drawn(&mut view, (80, 24))).join("\n").contains("archeflow answer 2026-11-15-the-run"));
}

#[test]
fn u_16_the_time_is_counted_against_what_is_usual() {
    let mut view = demo(21);
    let header = |view: &mut View| rows(&drawn(view, (120, 30)))[0].clone();
    assert!(!header(&mut view).contains("usual"));
    view.live.usual = Some(UsualTime { low_ms: 360_000, high_ms: 540_000, runs: 5 });
    assert!(header(&mut view).ends_with("running · 0:12 of usually 6 to 9 min"), "{}", header(&mut view));
    view.live.now += 600_000;
    assert!(header(&mut view).ends_with("longer than usual (6 to 9 min)"), "{}", header(&mut view));
    let mut ended = demo(usize::MAX);
    ended.live.usual = view.live.usual;
    assert!(!header(&mut ended).contains("usual"), "what has ended needs no forecast");
}

/// Neither a night between two sessions nor a question that waits is time a run takes.
#[test]
fn u_16_only_work_counts_as_time() {
    const DAY: u64 = 86_400_000;
    let log = entries(&values(DEMO));
    let usual = PastRun::of(&log).unwrap();
    assert!(usual.worked_ms <= log.last().unwrap().at - log[0].at);
    assert!(usual.is_like(&usual.request) && PastRun::of(&log[..20]).is_none());
    for at in 8..40 {
        let mut later = log.clone();
        later[at..].iter_mut().for_each(|entry| entry.at += DAY);
        let session = Entry { at: later[at].at, seq: 1_000, ..log[1].clone() };
        later.insert(at, session);
        let worked = PastRun::of(&later).unwrap().worked_ms;
        assert!(worked <= usual.worked_ms + 1_000, "{at}: {worked}");
    }
    let mut asks = demo(21);
    asks.live.usual = Some(UsualTime { low_ms: 1_000, high_ms: 60_000, runs: 3 });
    let out: Vec<u64> = asks.live.run.open_agents().map(|(seq, _)| seq).collect();
    let done = log.iter().filter(|entry| entry.event.answers().is_some_and(|order| out.contains(&order)));
    done.for_each(|entry| asks.live.take(entry));
    asked(&mut asks, QuestionKind::Merge);
    asks.live.now += DAY;
    assert!(asks.live.against_usual().unwrap().starts_with("of usually"));
}

/// R14: whatever the journal holds and agents print, cells hold plain characters without effect.
#[test]
fn r14_hostile_text_is_text_in_every_cell() {
    let flood = format!("e{} end", "\u{301}".repeat(10_000));
    for hostile in
        ["\u{1b}]0;x\u{7}\u{1b}[2J", "\u{9b}31m\u{202e}abc", "漢字\u{200d}\u{fe0f}👩\u{200d}👩", &flood]
    {
        let text = cells(hostile);
        assert!(!text.chars().any(is_unsafe), "{text:?}");
    }
    assert_eq!(cells(&flood), "e\u{301}\u{301} end");
    for log in [DEMO, BREAK] {
        let mut lines = values(log);
        lines.iter_mut().for_each(|line| poison(&mut line["data"], ""));
        let mut view = view(&entries(&lines));
        for seq in 0..40 {
            view.live.heard(
                seq,
                &format!("\u{1b}[2J\u{9b}31m{}", "x\u{301}\u{301}\u{301}\u{202e}".repeat(50_000)),
            );
        }
        view.warning = Some((view.live.now, "\u{1b}[2J".to_owned()));
        for keys in [vec![], vec![Key::Tab], vec![Key::Tab], vec![Key::Enter]] {
            press(&mut view, &keys);
            for size in SIZES {
                for cell in drawn(&mut view, size).content() {
                    let symbol = cell.symbol();
                    assert!(!symbol.chars().any(is_unsafe), "{symbol:?} at {size:?}");
                    assert!(symbol.chars().count() <= 3, "{symbol:?} piles up");
                }
            }
        }
    }
}

/// The page for people has the keys the code has.
#[test]
fn the_keys_of_the_page_are_the_keys_of_the_code() {
    let page =
        std::fs::read_to_string(PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../docs/watch.md")).unwrap();
    let told: Vec<(String, String)> = page
        .lines()
        .skip_while(|line| !line.starts_with("| Key |"))
        .skip(2)
        .take_while(|line| line.starts_with('|'))
        .filter_map(|line| {
            let mut cells = line.trim_matches('|').split(" | ").map(str::trim);
            Some((cells.next()?.replace('`', ""), cells.next()?.to_owned()))
        })
        .collect();
    let known: Vec<(String, String)> =
        KEYS.iter().map(|(key, what)| ((*key).to_owned(), (*what).to_owned())).collect();
    assert_eq!(told, known);
}
