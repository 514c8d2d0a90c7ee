//! The store against interrupted writes, damage, rivals and prepared places. Names begin with the rule they prove.

#![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]
#![expect(clippy::wildcard_enum_match_arm, reason = "every other answer is a failed test")]

use std::fs::{self, File, Permissions};
use std::io::ErrorKind;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use archeflow_host::store::journal::{Error, Journal, JournalLine, LONGEST, LineFault, Opened, Text};
use archeflow_host::store::lock::{self, Lock};
use archeflow_host::store::places::{Env, Places};
use archeflow_host::store::{files, index, names};
use serde_json::value::RawValue;
use tempfile::TempDir;

const RUN: &str = "2026-04-08-add-rate-limiting";

// ---------------------------------------------------------------------------------------------- the one door

struct Desk {
    temp: TempDir,
}

impl Desk {
    fn new() -> Desk {
        Desk { temp: tempfile::tempdir().unwrap() }
    }

    fn with(bytes: &[u8]) -> Desk {
        let desk = Desk::new();
        fs::write(desk.file(), bytes).unwrap();
        desk
    }

    fn dir(&self) -> &Path {
        self.temp.path()
    }

    fn file(&self) -> PathBuf {
        self.dir().join(format!("{RUN}.jsonl"))
    }

    fn open(&self) -> Result<Opened, Error> {
        Journal::open(self.dir(), RUN)
    }

    fn read(&self) -> Result<Text, Error> {
        Journal::read(&self.file())
    }

    fn bytes(&self) -> Vec<u8> {
        fs::read(self.file()).unwrap()
    }
}

fn raw(json: &str) -> Box<RawValue> {
    RawValue::from_string(json.to_owned()).unwrap()
}

fn add(journal: &mut Journal, data: &str) -> Result<(), Error> {
    add_as(journal, RUN, data)
}

fn add_as(journal: &mut Journal, run_id: &str, data: &str) -> Result<(), Error> {
    let seq = journal.next_seq();
    let parent = if seq == 1 { vec![] } else { vec![seq - 1, 1] };
    let line = JournalLine {
        ts: "2026-04-08T10:00:00Z",
        ms: Some(7),
        run_id,
        seq,
        parent: &parent,
        kind: "agent.complete",
        phase: "do",
        agent: seq.is_multiple_of(2).then_some("maker"),
        data: &raw(data),
    };
    journal.append(&[line])
}

fn sample(lines: usize) -> Vec<u8> {
    sample_of(RUN, lines)
}

fn sample_of(run_id: &str, lines: usize) -> Vec<u8> {
    let temp = tempfile::tempdir().unwrap();
    let mut journal = Journal::create(temp.path(), run_id).unwrap();
    for n in 0..lines {
        add_as(&mut journal, run_id, &format!(r#"{{"n":{n},"text":"héé 漢字 \u2028 \"}}\n"}}"#)).unwrap();
    }
    fs::read(journal.path()).unwrap()
}

fn split(bytes: &[u8]) -> Vec<Vec<u8>> {
    bytes.split_inclusive(|b| *b == b'\n').map(<[u8]>::to_vec).collect()
}

/// Both doors must name the same damage, and neither may touch the file.
fn damage(bytes: &[u8]) -> (u64, u64, LineFault) {
    let desk = Desk::with(bytes);
    let opened = desk.open().expect_err("damage must be noticed");
    assert!(desk.read().is_err());
    assert_eq!(desk.bytes(), bytes, "a damaged journal is left as it is");
    match opened {
        Error::Damaged { line, byte, why, file } => {
            assert_eq!(file, desk.file());
            (line, byte, why)
        }
        other => panic!("not reported as damage: {other}"),
    }
}

// ------------------------------------------------------------------------------------------------- writing

#[test]
fn envelope_round_trip() {
    let desk = Desk::new();
    let mut journal = Journal::create(desk.dir(), RUN).unwrap();
    add(&mut journal, "{\"a\": [1,\n 2]}").unwrap();
    add(&mut journal, r#"{"b":"\n\"}"}"#).unwrap();
    let text = desk.read().unwrap();
    let lines: Vec<_> = text.iter().collect();
    assert_eq!(lines.len(), 2);
    assert_eq!((lines[0].seq, lines[0].agent, lines[0].data), (1, None, "{\"a\": [1,  2]}"));
    assert_eq!((lines[1].seq, lines[1].agent, lines[1].data), (2, Some("maker"), r#"{"b":"\n\"}"}"#));
    assert_eq!(lines[1].parents().collect::<Vec<_>>(), [1, 1]);
    assert_eq!((lines[1].kind, lines[1].phase, lines[1].run_id), ("agent.complete", "do", RUN));
    assert_eq!(text.get(1), Some(lines[1]));
    assert_eq!(text.get(2), None);
    for line in split(&desk.bytes()) {
        let value: serde_json::Value = serde_json::from_slice(&line).unwrap();
        assert_eq!(value["prev"].as_str().unwrap().len(), 16);
    }
    assert!(desk.bytes().windows(28).any(|w| w == b",\"prev\":\"0000000000000000\",\""));
    assert_eq!(fs::metadata(desk.file()).unwrap().permissions().mode() & 0o777, 0o600);
    assert!(matches!(Journal::create(desk.dir(), RUN), Err(Error::Exists { .. })));
}

#[test]
fn i3_a_batch_is_chained() {
    let desk = Desk::new();
    let mut journal = Journal::create(desk.dir(), RUN).unwrap();
    let data = raw("{}");
    let line = |seq| JournalLine {
        ts: "2026-04-08T10:00:00Z",
        ms: Some(7),
        run_id: RUN,
        seq,
        parent: &[],
        kind: "decision",
        phase: "act",
        agent: None,
        data: &data,
    };
    journal.append(&[line(1), line(2), line(3)]).unwrap();
    journal.append(&[]).unwrap();
    journal.append(&[line(4)]).unwrap();
    assert_eq!(desk.read().unwrap().len(), 4);

    // A wrong number is our own bug: refused, and nothing is accepted afterwards.
    assert!(matches!(
        journal.append(&[line(5), line(7)]),
        Err(Error::OutOfTurn { expected: 6, found: 7, .. })
    ));
    assert!(matches!(journal.append(&[line(5)]), Err(Error::Poisoned { .. })));
    assert_eq!(desk.read().unwrap().len(), 4);
}

#[test]
fn i3_another_run_is_not_accepted() {
    let desk = Desk::new();
    let mut journal = Journal::create(desk.dir(), RUN).unwrap();
    assert!(matches!(add_as(&mut journal, "other", "{}"), Err(Error::OutOfTurn { .. })));
    assert_eq!(desk.bytes(), b"");
}

#[test]
fn r17_too_large_is_refused_and_the_journal_stays_usable() {
    let desk = Desk::new();
    let mut journal = Journal::create(desk.dir(), RUN).unwrap();
    let big = format!(r#"{{"x":"{}"}}"#, "x".repeat(LONGEST));
    assert!(matches!(add(&mut journal, &big), Err(Error::TooLarge { .. })));
    assert!(matches!(add(&mut journal, "[]"), Err(Error::Unwritable { field: "data" })));
    add(&mut journal, "{}").unwrap();
    assert_eq!(desk.read().unwrap().len(), 1);
}

#[test]
fn i7_a_journal_changed_by_another_hand_stops_the_run() {
    type Hand = fn(&Desk);
    let hands: [Hand; 3] = [
        |desk| fs::write(desk.file(), b"").unwrap(),
        |desk| fs::write(desk.file(), [desk.bytes(), b"x".to_vec()].concat()).unwrap(),
        |desk| fs::remove_file(desk.file()).unwrap(),
    ];
    for hand in hands {
        let desk = Desk::new();
        let mut journal = Journal::create(desk.dir(), RUN).unwrap();
        add(&mut journal, "{}").unwrap();
        hand(&desk);
        assert!(matches!(add(&mut journal, "{}"), Err(Error::Changed { .. })));
        assert!(matches!(add(&mut journal, "{}"), Err(Error::Poisoned { .. })));
    }
}

// ------------------------------------------------------------------------------------------- torn writes

/// M-B1: whatever the cut, the next record is readable and the torn bytes are kept.
#[test]
fn m_a5_m_b1_cut_at_every_byte() {
    let bytes = sample(40);
    let ends: Vec<usize> =
        bytes.iter().enumerate().filter(|(_, b)| **b == b'\n').map(|(at, _)| at + 1).collect();
    let careful = ends[36];
    for cut in 0..=bytes.len() {
        let whole = ends.iter().filter(|end| **end <= cut).count();
        let good = if whole == 0 { 0 } else { ends[whole - 1] };
        let desk = Desk::with(&bytes[..cut]);
        let seen = desk.read().unwrap();
        assert_eq!((seen.len(), seen.torn()), (whole, cut - good), "cut at {cut}");
        // Every cut for the viewer; for the writer every cut of the last three lines, and a sample of the others.
        if cut < careful && cut % 23 != 0 && cut != good {
            continue;
        }
        let Opened { mut journal, lines, repaired } = desk.open().unwrap();
        assert_eq!(lines.len(), whole);
        match repaired {
            None => assert_eq!(cut, good),
            Some(repair) => {
                assert_eq!(repair.bytes, cut - good);
                assert_eq!(fs::read(repair.saved_as).unwrap(), &bytes[good..cut]);
            }
        }
        add(&mut journal, r#"{"after":"the crash"}"#).unwrap();
        let after = desk.read().unwrap();
        assert_eq!(after.len(), whole + 1);
        assert_eq!(after.iter().next_back().unwrap().data, r#"{"after":"the crash"}"#);
        assert!(desk.bytes().starts_with(&bytes[..good]));
    }
}

#[test]
fn m_b1_torn_again_and_again_keeps_every_fragment() {
    let bytes = sample(2);
    let desk = Desk::with(&bytes[..bytes.len() - 5]);
    for n in 1..=5 {
        let repair = desk.open().unwrap().repaired.unwrap();
        assert_eq!(repair.saved_as, desk.dir().join(format!("{RUN}.torn-{n}")));
        fs::write(desk.file(), [desk.bytes(), b"{\"ts\":".to_vec()].concat()).unwrap();
    }
    assert_eq!(fs::read(desk.dir().join(format!("{RUN}.torn-3"))).unwrap(), b"{\"ts\":");
}

/// M-B1: three kinds of nothing.
#[test]
fn m_b1_missing_empty_and_only_torn() {
    let desk = Desk::new();
    assert!(matches!(desk.open(), Err(Error::Missing { .. })));
    assert!(matches!(desk.read(), Err(Error::Missing { .. })));
    assert!(matches!(Journal::open(&desk.dir().join("no"), RUN), Err(Error::Missing { .. })));

    let desk = Desk::with(b"");
    let opened = desk.open().unwrap();
    assert!(opened.lines.is_empty() && opened.repaired.is_none());

    let desk = Desk::with(&sample(1)[..20]);
    let mut opened = desk.open().unwrap();
    assert!(opened.lines.is_empty() && opened.repaired.unwrap().bytes == 20);
    add(&mut opened.journal, "{}").unwrap();
    assert_eq!(desk.read().unwrap().len(), 1);
}

/// A power loss can leave the length of the last write without its bytes.
#[test]
fn m_b1_nuls_at_the_end_are_a_torn_write() {
    let bytes = sample(3);
    for tail in [&[0; 512][..], &[0; 5000], b"\0\0\0\n"] {
        let desk = Desk::with(&[&bytes, tail].concat());
        let opened = desk.open().unwrap();
        assert_eq!((opened.lines.len(), opened.repaired.unwrap().bytes), (3, tail.len()));
    }
}

// ------------------------------------------------------------------------------------------------- damage

/// M-B3: no changed byte passes. In the last line it counts as torn, before that it is damage.
#[test]
fn m_b3_every_flipped_byte_is_noticed() {
    let bytes = sample(4);
    let last = bytes.len() - split(&bytes)[3].len();
    for at in 0..bytes.len() {
        for flip in [0x01, 0x04, 0x20, 0x80, 0xff] {
            let mut bad = bytes.clone();
            bad[at] ^= flip;
            let desk = Desk::with(&bad);
            match desk.open() {
                Err(Error::Damaged { byte, .. }) => {
                    assert!(byte <= at as u64);
                    assert_eq!(desk.bytes(), bad);
                }
                Err(other) => panic!("byte {at}: {other}"),
                Ok(opened) => {
                    assert!(at >= last, "byte {at} ^ {flip:#x} passed as torn");
                    assert_eq!(opened.lines.len(), 3);
                    assert_eq!(fs::read(opened.repaired.unwrap().saved_as).unwrap(), &bad[last..]);
                }
            }
        }
    }
}

#[test]
fn m_b3_rows_of_damage() {
    let bytes = sample(6);
    let l = split(&bytes);
    let other = split(&sample_of("other", 6));
    let nul = [vec![0; 200], b"\n".to_vec()].concat();
    let start = |n: usize| l[..n].iter().map(Vec::len).sum::<usize>() as u64;

    let rows: Vec<(&str, Vec<&[u8]>, u64, LineFault)> = vec![
        ("swapped", vec![&l[0], &l[2], &l[1], &l[3]], 2, LineFault::Seq { expected: 2, found: 3 }),
        ("missing", vec![&l[0], &l[1], &l[3]], 3, LineFault::Seq { expected: 3, found: 4 }),
        ("missing first", vec![&l[1], &l[2]], 1, LineFault::Seq { expected: 1, found: 2 }),
        ("old line again", vec![&l[0], &l[1], &l[2], &l[1]], 4, LineFault::Seq { expected: 4, found: 2 }),
        ("NUL block", vec![&l[0], &nul, &l[1]], 2, LineFault::Nul),
        ("wrong run", vec![&other[0]], 1, LineFault::OtherRun("other".to_owned())),
        ("wrong run later", vec![&l[0], &other[1]], 2, LineFault::OtherRun("other".to_owned())),
        ("twice the journal", vec![&bytes, &bytes], 7, LineFault::Seq { expected: 7, found: 1 }),
        ("two journals", vec![&l[0], &l[1], &other[0]], 3, LineFault::OtherRun("other".to_owned())),
        ("not JSON", vec![&l[0], b"hello\n", &l[1]], 2, LineFault::NotARecord),
        ("blank line", vec![&l[0], b"\n", &l[1]], 2, LineFault::NotARecord),
        ("two blank lines at the end", vec![&l[0], b"\n", b"\n"], 2, LineFault::NotARecord),
        ("byte order mark", vec![b"\xef\xbb\xbf", &l[0], &l[1]], 1, LineFault::NotJson(String::new())),
        ("torn, then more", vec![&l[0], &l[1][..30], b"\n", &l[2]], 2, LineFault::NotARecord),
        ("torn, then glued", vec![&l[0], &l[1][..30], &l[2], &l[3]], 2, LineFault::NotARecord),
        ("lost line break", vec![&l[0], &l[1][..l[1].len() - 1], &l[2]], 2, LineFault::Glued),
        ("garbage after the last", vec![&l[0], &l[1][..l[1].len() - 1], b"x\n"], 2, LineFault::Glued),
    ];
    for (name, parts, line, why) in rows {
        let (at, byte, found) = damage(&parts.concat());
        assert_eq!(at, line, "{name}");
        // What exactly is wrong with broken bytes may be said in several ways.
        let vague =
            |why: &LineFault| matches!(why, LineFault::NotARecord | LineFault::Crc | LineFault::NotJson(_));
        assert!(found == why || (vague(&found) && vague(&why)), "{name}: {found:?}");
        if name != "twice the journal" && line == 2 {
            assert_eq!(byte, start(1), "{name}");
        }
    }
}

/// I3: same number, same place, other content and a right checksum; only the chain can tell.
#[test]
fn i3_a_rewritten_past_is_noticed() {
    let desk = Desk::new();
    let mut journal = Journal::create(desk.dir(), RUN).unwrap();
    add(&mut journal, r#"{"verdict":"REJECTED"}"#).unwrap();
    let forged = desk.bytes();
    drop(journal);
    let real = sample(3);
    let lines = split(&real);
    let (line, _, why) = damage(&[forged, lines[1].clone(), lines[2].clone()].concat());
    assert_eq!((line, why), (2, LineFault::Prev));
    // The same as a conflicting duplicate (M-B4).
    let mut conflict = split(&real);
    conflict.insert(1, desk.bytes());
    assert_eq!(damage(&conflict.concat()).2, LineFault::Seq { expected: 2, found: 1 });
}

/// M-B4: the same bytes twice are one record; noted, and the journal goes on.
#[test]
fn m_b4_an_exact_duplicate_is_ignored_with_a_note() {
    let bytes = sample(5);
    for at in 0..5 {
        let mut lines = split(&bytes);
        lines.insert(at, lines[at].clone());
        let desk = Desk::with(&lines.concat());
        let Opened { mut journal, lines, repaired } = desk.open().unwrap();
        assert_eq!((lines.len(), lines.repeated(), repaired), (5, &[at as u64 + 2][..], None));
        add(&mut journal, "{}").unwrap();
        assert_eq!(desk.read().unwrap().len(), 6);
    }
}

#[test]
fn m_s24_forged_records_inside_strings_stay_strings() {
    let desk = Desk::new();
    let mut journal = Journal::create(desk.dir(), RUN).unwrap();
    let fake = String::from_utf8(split(&sample(2))[1].clone()).unwrap();
    let data = serde_json::json!({ "task": format!("x\"}}\n{fake}") }).to_string();
    add(&mut journal, &data).unwrap();
    let text = desk.read().unwrap();
    assert_eq!(text.len(), 1);
    assert_eq!(text.get(0).unwrap().data, data);
    let line = JournalLine {
        ts: "2026-04-08T10:00:00Z",
        ms: Some(7),
        run_id: RUN,
        seq: 2,
        parent: &[],
        kind: "x\"}\n{",
        phase: "do",
        agent: None,
        data: &raw("{}"),
    };
    assert!(matches!(journal.append(&[line]), Err(Error::Unwritable { field: "type" })));
}

/// Another writer's order and spacing, with fields we do not know.
#[test]
fn foreign_layout_is_read_and_continued() {
    let seal = |body: &str| format!("{body}, \"crc\": \"{:08x}\" }}\n", crc32fast::hash(body.as_bytes()));
    let first = split(&sample(1))[0].clone();
    let prev = &blake3::hash(&first[..first.len() - 1]).to_hex()[..16];
    let body = format!(
        r#"{{ "v": 2, "prev": "{prev}", "seq": 2, "type": "decision", "data": {{ "a": "}}" }}, "agent": null,
           "parent": [ 1, 1 ], "phase": "act", "run_id": "{RUN}", "ts": "2026-04-08T10:00:01Z""#
    )
    .replace('\n', " ");
    let bytes = [first.clone(), seal(&body).into_bytes()].concat();
    let desk = Desk::with(&bytes);
    let Opened { mut journal, lines, repaired } = desk.open().unwrap();
    assert_eq!(repaired, None);
    let read = lines.get(1).unwrap();
    assert_eq!((read.kind, read.data, read.agent), ("decision", r#"{ "a": "}" }"#, None));
    assert_eq!(read.parents().collect::<Vec<_>>(), [1, 1]);
    add(&mut journal, "{}").unwrap();
    assert_eq!(desk.read().unwrap().len(), 3);
    drop(journal);

    // The seal is required all the same, and a sealed line that is no record is not taken for a torn one.
    for wrong in ["\"seq\": -2", "\"seq\": 2.0", "\"seq\": 2, \"seq\": 2"] {
        let bad = [first.clone(), seal(&body.replace("\"seq\": 2", wrong)).into_bytes()].concat();
        assert!(matches!(damage(&bad).2, LineFault::NotJson(_)), "{wrong}");
    }
    let unsealed = format!("{body}}}\n{body}}}\n");
    assert_eq!(damage(&[first, unsealed.into_bytes()].concat()).2, LineFault::NotARecord);
}

#[test]
fn r17_lines_are_read_up_to_a_megabyte() {
    let line = |size: usize| {
        let body = format!(
            "{{\"ts\":\"t\",\"run_id\":\"{RUN}\",\"seq\":1,\"parent\":[],\"type\":\"x\",\"phase\":\"do\",\
             \"agent\":null,\"data\":{{\"x\":\"{}\"}},\"prev\":\"0000000000000000\"",
            "x".repeat(size)
        );
        format!("{body},\"crc\":\"{:08x}\"}}\n", crc32fast::hash(body.as_bytes()))
    };
    assert_eq!(Desk::with(line(1_000_000).as_bytes()).open().unwrap().lines.len(), 1);
    assert_eq!(damage(line(1 << 20).as_bytes()).2, LineFault::TooLong);
}

/// A journal large enough to be checked on several threads gives the same answers, wherever the flaw lies.
#[test]
fn i3_large_journals_are_judged_alike() {
    let desk = Desk::new();
    let mut journal = Journal::create(desk.dir(), RUN).unwrap();
    let data = raw(&format!(r#"{{"x":"{}"}}"#, "y".repeat(700)));
    for batch in 0..10 {
        let lines: Vec<JournalLine<'_>> = (1..=600)
            .map(|n| JournalLine {
                ts: "2026-04-08T10:00:00Z",
                ms: Some(7),
                run_id: RUN,
                seq: batch * 600 + n,
                parent: &[],
                kind: "decision",
                phase: "do",
                agent: None,
                data: &data,
            })
            .collect();
        journal.append(&lines).unwrap();
    }
    drop(journal);
    let bytes = desk.bytes();
    let lines = split(&bytes);
    assert!(bytes.len() > 4 << 20);
    assert_eq!(desk.read().unwrap().iter().filter(|line| line.data == data.get()).count(), 6000);

    let step = bytes.len() / 16;
    let middle = bytes.len() / 2;
    for at in (0..16).map(|i| i * step).chain((middle - 900..middle + 900).step_by(97)) {
        let mut bad = bytes.clone();
        bad[at] ^= 0x10;
        fs::write(desk.file(), &bad).unwrap();
        let flawed = bytes[..at].iter().filter(|b| **b == b'\n').count() as u64 + 1;
        match desk.read() {
            Err(Error::Damaged { line, .. }) => assert_eq!(line, flawed),
            other => panic!("byte {at}: {other:?}"),
        }
        let (prefix, damage) = Journal::read_prefix(&desk.file()).unwrap();
        assert_eq!((prefix.len() as u64, damage.unwrap().line), (flawed - 1, flawed));
    }
    for at in [1, 2999, 3000, 3001, 5998] {
        let mut repeated = lines.clone();
        repeated.insert(at, lines[at].clone());
        fs::write(desk.file(), repeated.concat()).unwrap();
        let text = desk.read().unwrap();
        assert_eq!((text.len(), text.repeated()), (6000, &[at as u64 + 2][..]));
        let mut missing = lines.clone();
        missing.remove(at);
        fs::write(desk.file(), missing.concat()).unwrap();
        assert!(matches!(desk.read(), Err(Error::Damaged { line, .. }) if line == at as u64 + 1));
    }
}

/// Files in a foreign framing: never a panic, never a line, and the bytes still exist afterwards.
#[test]
fn m_b3_strange_files_never_panic() {
    let record = r#"{"crc":484516892,"ev":{"seq": 0, "type": "run.start", "task": "x"}}"#;
    let mut files: Vec<Vec<u8>> = [
        "",
        "\n\n",
        "{\"crc\":484516892,\"ev",
        "{\"crc\":1,\"crc\":2,\"ev\":{}}\n",
        "{\"crc\":0,\"ev\":{\"a\":\"\\ud800\"}}\n",
        "\u{feff}{}\n",
        ",\"crc\":\"00000000\"}\n",
        "\"}",
        ",\"crc\":\"\"}",
    ]
    .map(|text| text.as_bytes().to_vec())
    .into();
    files.push(format!("{record}\r\n{record}\r\n").into_bytes());
    files.push(format!("{record}\n{}\n", "\0".repeat(500)).into_bytes());
    files.push([b"\xc3".to_vec(), record.as_bytes().to_vec()].concat());
    files.push("[".repeat(100_000).into_bytes());
    let body = format!("{{\"data\":{}", "[".repeat(100_000));
    files.push(format!("{body},\"crc\":\"{:08x}\"}}\n", crc32fast::hash(body.as_bytes())).into_bytes());
    if let Ok(corpus) = std::env::var("ARCHEFLOW_CORPUS") {
        for entry in fs::read_dir(Path::new(&corpus).join("events")).unwrap() {
            files.push(fs::read(entry.unwrap().path()).unwrap());
        }
    }
    for bytes in files {
        let desk = Desk::with(&bytes);
        if let Ok(text) = desk.read() {
            assert_eq!(text.len(), 0);
        }
        match desk.open() {
            Ok(Opened { repaired: Some(repair), .. }) => {
                assert_eq!(fs::read(repair.saved_as).unwrap(), bytes);
            }
            Ok(Opened { .. }) => assert!(bytes.is_empty()),
            Err(Error::Damaged { .. }) => assert_eq!(desk.bytes(), bytes),
            Err(other) => panic!("{other}"),
        }
    }
}

// -------------------------------------------------------------------------------------------------- rivals

/// M-N3: what a killed holder had just forked keeps the lock for a moment; it is waited for.
#[test]
fn m_n3_a_lock_whose_holder_is_dead_is_waited_for() {
    let desk = Desk::with(&sample(2));
    let first = desk.open().unwrap().journal;
    let mut dead = Command::new("true").spawn().unwrap();
    dead.wait().unwrap();
    let holder = desk.dir().join(format!("{}.holder", first.run_id()));
    let text = fs::read_to_string(&holder).unwrap();
    let text = text.replace(&format!("pid {}\n", std::process::id()), &format!("pid {}\n", dead.id()));
    fs::write(&holder, text).unwrap();
    thread::scope(|scope| {
        let second = scope.spawn(|| desk.open());
        thread::sleep(Duration::from_millis(100));
        drop(first);
        second.join().unwrap().unwrap();
    });
}

/// M-N2: the second is told who holds it.
#[test]
fn m_n2_two_openers() {
    let desk = Desk::with(&sample(2));
    let first = desk.open().unwrap();
    match desk.open() {
        Err(Error::Held { holder: Some(holder), .. }) => assert_eq!(holder.pid, std::process::id()),
        other => panic!("{other:?}"),
    }
    let text = desk.open().unwrap_err().to_string();
    assert!(
        text.contains("held by pid ") && text.contains(" on host ") && text.contains(" since "),
        "{text}"
    );
    assert_eq!(desk.read().unwrap().len(), 2, "viewers need no lock");
    drop(first);
    assert!(!desk.dir().join(format!("{RUN}.holder")).exists());
    desk.open().unwrap();
}

const DIR_OF_THE_HOLDER: &str = "STORE_TEST_HOLDER_DIR";

/// Not a test of its own: the process that the next one kills.
#[test]
fn helper_that_holds_until_killed() {
    let Ok(dir) = std::env::var(DIR_OF_THE_HOLDER) else { return };
    let _journal = Journal::open(Path::new(&dir), RUN).unwrap();
    let _lock = Lock::take(Path::new(&dir), "target", Duration::ZERO).unwrap();
    fs::write(Path::new(&dir).join("ready"), "").unwrap();
    thread::sleep(Duration::from_secs(3_600));
}

/// M-N3: the kernel frees the locks of a killed holder at once.
#[test]
fn m_n3_killed_holder_frees_its_locks() {
    let desk = Desk::with(&sample(2));
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "helper_that_holds_until_killed"])
        .env(DIR_OF_THE_HOLDER, desk.dir())
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let start = Instant::now();
    while !desk.dir().join("ready").exists() {
        assert!(start.elapsed() < Duration::from_secs(300), "the helper did not start");
        thread::sleep(Duration::from_millis(5));
    }
    match desk.open() {
        Err(Error::Held { holder: Some(holder), .. }) => assert_eq!(holder.pid, child.id()),
        other => panic!("{other:?}"),
    }
    match Lock::take(desk.dir(), "target", Duration::from_millis(30)) {
        Err(lock::Error::Held { holder: Some(holder), .. }) => assert_eq!(holder.pid, child.id()),
        other => panic!("{other:?}"),
    }
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(desk.open().unwrap().lines.len(), 2);
    Lock::take(desk.dir(), "target", Duration::ZERO).unwrap();
}

#[test]
fn i7_locks_wait_and_are_named() {
    let desk = Desk::new();
    let first = Lock::take(desk.dir(), "a", Duration::ZERO).unwrap();
    Lock::take(desk.dir(), "b", Duration::ZERO).unwrap();
    assert!(matches!(Lock::take(desk.dir(), "a", Duration::ZERO), Err(lock::Error::Held { .. })));
    assert!(matches!(Lock::take(desk.dir(), "../a", Duration::ZERO), Err(lock::Error::BadName { .. })));
    thread::scope(|scope| {
        let waiting = scope.spawn(|| Lock::take(desk.dir(), "a", Duration::from_secs(300)));
        thread::sleep(Duration::from_millis(50));
        drop(first);
        waiting.join().unwrap().unwrap();
    });
    let name = lock::name_for(Path::new("/r"), "main");
    assert!(names::valid_name(&name) && name != lock::name_for(Path::new("/r"), "dev"));
}

/// Nobody's line is lost or mixed with another's.
#[test]
fn eight_writers_of_one_file() {
    let desk = Desk::new();
    let path = desk.dir().join("shared.jsonl");
    fs::write(&path, "{\"torn\":").unwrap();
    thread::scope(|scope| {
        for who in 0..8 {
            let path = &path;
            scope.spawn(move || {
                for n in 0..200 {
                    files::append_line_locked(path, &format!("{who}-{n}")).unwrap();
                }
            });
        }
    });
    let text = fs::read_to_string(&path).unwrap();
    let mut lines: Vec<_> = text.lines().collect();
    assert_eq!(lines.remove(0), "{\"torn\":");
    lines.sort_unstable();
    lines.dedup();
    assert_eq!(lines.len(), 1600);
    assert!(files::append_line_locked(&path, "a\nb").is_err());
}

/// I7: claiming an id is atomic.
#[test]
fn d_06_m_n4_sixteen_claims_of_one_id() {
    let temp = tempfile::tempdir().unwrap();
    let places = Places::open(temp.path()).unwrap();
    fs::create_dir(places.artifacts().join("2026-04-08-fix-login-3")).unwrap();
    let barrier = Barrier::new(16);
    let mut ids: Vec<String> = thread::scope(|scope| {
        let claims: Vec<_> = (0..16)
            .map(|_| {
                scope.spawn(|| {
                    barrier.wait();
                    names::free_run_id(&places.events(), &places.artifacts(), "2026-04-08", "Fix login")
                        .unwrap()
                })
            })
            .collect();
        claims.into_iter().map(|claim| claim.join().unwrap().run_id().to_owned()).collect()
    });
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), 16);
    assert!(ids.contains(&"2026-04-08-fix-login".to_owned()));
    assert!(!ids.contains(&"2026-04-08-fix-login-3".to_owned()));
    assert!(ids.iter().all(|id| places.artifacts().join(id).is_dir()), "AF-011");
}

// --------------------------------------------------------------------------------------------------- names

#[test]
fn d_06_m_d16_u12_slugs() {
    let long = "implement the new rate limiting middleware for public endpoints";
    for (task, slug) in [
        ("Add rate limiting", "add-rate-limiting"),
        ("  Fix: the LOGIN!! (again) ", "fix-the-login-again"),
        ("", "task"),
        ("漢字 ✓", "task"),
        ("Größe ändern", "groesse-aendern"),
        ("o\u{308}l", "oel"),
        ("Café déjà vu", "cafe-deja-vu"),
        ("Łódź, Ærø", "lodz-aeroe"),
        ("Привет, мир", "privet-mir"),
        ("Ελλάδα", "ellada"),
        ("ﬁx 漢字 it", "fix-it"),
        (&"ш".repeat(40), &"sh".repeat(24)),
        ("../../etc/passwd", "etc-passwd"),
        ("a\0b\nc", "a-b-c"),
        (long, "implement-the-new-rate-limiting-middleware-for"),
        (&"x".repeat(200), &"x".repeat(48)),
        (&format!("{} tail", "x".repeat(48)), &"x".repeat(48)),
        (&format!("{}-yy", "x".repeat(46)), &"x".repeat(46)),
        (&format!("{}-y", "x".repeat(46)), &format!("{}-y", "x".repeat(46))),
    ] {
        let id = names::run_id("2026-04-08", task);
        assert_eq!(id, format!("2026-04-08-{slug}"), "{task:?}");
        assert!(names::valid_name(&id));
    }
}

#[test]
fn m_s10_names() {
    let good = ["2026-04-08-fix-login", "a", "A_b.c-d", "CON", "con.txt", "a.", "0"];
    let bad = [
        "",
        "..",
        "../x",
        "a..b",
        "%2e%2e%2f",
        "..%252f",
        "....//",
        "a/b",
        "a\\b",
        "a\0b",
        "C:x",
        "a ",
        "-rf",
        ".git",
        "~",
        "a\u{2215}b",
        "\u{202e}gnp.exe",
        "/etc/passwd",
        "a\nb",
        "a\n",
        "*",
        "$(id)",
        "`id`",
        "é",
        "e\u{301}",
    ];
    for name in good {
        assert!(names::valid_name(name), "{name:?}");
    }
    let temp = tempfile::tempdir().unwrap();
    let long = "x".repeat(129);
    for name in bad.into_iter().chain([long.as_str()]) {
        assert!(!names::valid_name(name), "{name:?}");
        assert!(matches!(Journal::create(temp.path(), name), Err(Error::BadName { .. })));
        assert!(matches!(Journal::open(temp.path(), name), Err(Error::BadName { .. })));
    }
    assert!(names::valid_name(&"x".repeat(128)));
    assert!(matches!(Journal::open(temp.path(), "index"), Err(Error::BadName { .. })));
    if let Ok(corpus) = std::env::var("ARCHEFLOW_CORPUS") {
        for entry in fs::read_dir(Path::new(&corpus).join("paths")).unwrap() {
            let bytes = fs::read(entry.unwrap().path()).unwrap();
            let name = String::from_utf8_lossy(&bytes);
            assert_eq!(names::valid_name(&name), good.contains(&name.as_ref()), "{name:?}");
        }
    }
}

// -------------------------------------------------------------------------------------------------- places

fn refused(result: Result<impl std::fmt::Debug, files::Error>, path: &Path) {
    match result {
        Err(files::Error::Refused { path: named, .. }) => assert_eq!(named, path),
        other => panic!("not refused: {other:?}"),
    }
}

#[test]
fn places_are_made_and_ignored() {
    let temp = tempfile::tempdir().unwrap();
    let places = Places::open(temp.path()).unwrap();
    for dir in [places.events(), places.artifacts(), places.runs()] {
        assert!(dir.is_dir());
    }
    let ignore = temp.path().join(".archeflow/.gitignore");
    for word in
        ["/events/", "/artifacts/", "/runs/", "/memory/", "/costs/", "/progress.md", "/.gitignore", "/.*.tmp"]
    {
        assert!(fs::read_to_string(&ignore).unwrap().lines().any(|line| line == word));
    }
    fs::write(&ignore, "mine").unwrap();
    Places::open(temp.path()).unwrap();
    assert_eq!(fs::read_to_string(&ignore).unwrap(), "mine");
}

/// R19, M-S11: a prepared repository sends us nowhere.
#[test]
fn m_s11_links_and_files_in_the_way_are_refused() {
    for place in ["", "events", "artifacts", "runs"] {
        for link in [true, false] {
            let temp = tempfile::tempdir().unwrap();
            let root = fs::canonicalize(temp.path()).unwrap();
            let victim = tempfile::tempdir().unwrap();
            let at =
                if place.is_empty() { root.join(".archeflow") } else { root.join(".archeflow").join(place) };
            fs::create_dir_all(at.parent().unwrap()).unwrap();
            if link {
                symlink(victim.path(), &at).unwrap();
            } else {
                fs::write(&at, "").unwrap();
            }
            refused(Places::open(&root), &at);
            assert_eq!(fs::read_dir(victim.path()).unwrap().count(), 0);
        }
    }
}

/// M-S11: the swap after the check. No link below `.archeflow` is followed when a file is used, either.
#[test]
fn m_s11_links_that_appear_later_are_refused() {
    let temp = tempfile::tempdir().unwrap();
    let victim = tempfile::tempdir().unwrap();
    let places = Places::open(temp.path()).unwrap();
    let state = places.root().join(".archeflow");
    fs::rename(&state, places.root().join("aside")).unwrap();
    fs::create_dir(victim.path().join("events")).unwrap();
    symlink(victim.path(), &state).unwrap();

    let file = places.events().join("index.jsonl");
    match Journal::create(&places.events(), RUN) {
        Err(Error::File(error)) => refused(Err::<(), _>(error), &state),
        other => panic!("{other:?}"),
    }
    refused(files::write_atomic(&file, b"x"), &state);
    refused(files::write_new(&file, b"x"), &state);
    refused(files::append_line_locked(&file, "x"), &state);
    refused(files::read_capped(&file, 10), &state);
    assert_eq!(fs::read_dir(victim.path().join("events")).unwrap().count(), 0);
}

#[test]
fn r19_a_file_that_is_a_link_is_refused() {
    let desk = Desk::new();
    let victim = desk.dir().join("victim");
    fs::write(&victim, "precious").unwrap();
    symlink(&victim, desk.file()).unwrap();
    let link = desk.file();
    for result in [desk.open().map(drop), desk.read().map(drop)] {
        assert!(matches!(result, Err(Error::File(files::Error::Refused { .. }))), "{result:?}");
    }
    refused(files::write_atomic(&link, b"x"), &link);
    refused(files::append_line_locked(&link, "x"), &link);
    assert!(files::write_new(&link, b"x").is_err());
    assert!(matches!(Journal::create(desk.dir(), RUN), Err(Error::Exists { .. })));
    assert_eq!(fs::read_to_string(&victim).unwrap(), "precious");

    // A pipe would make us wait for ever.
    let pipe = desk.dir().join("pipe.jsonl");
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
    assert!(Journal::read(&pipe).is_err());
    refused(files::read_capped(&pipe, 10), &pipe);
    refused(files::write_atomic(&pipe, b"x"), &pipe);
}

#[test]
fn m_b15_s_13_state_in_a_repository_that_everybody_can_write_is_refused() {
    let temp = tempfile::tempdir().unwrap();
    let repo = fs::canonicalize(temp.path()).unwrap();
    let places = Places::open(&repo).unwrap();
    for folder in [repo.join(".archeflow"), places.events(), places.artifacts(), places.runs()] {
        let mode = fs::metadata(&folder).unwrap().permissions();
        // A group may share a repository.
        fs::set_permissions(&folder, Permissions::from_mode(0o775)).unwrap();
        Places::open(&repo).unwrap();
        fs::set_permissions(&folder, Permissions::from_mode(0o777)).unwrap();
        refused(Places::open(&repo), &folder);
        fs::set_permissions(&folder, mode).unwrap();
    }
    Places::open(&repo).unwrap();
}

#[test]
fn m_b15_the_state_directory_is_ours_alone() {
    let temp = tempfile::tempdir().unwrap();
    let home = fs::canonicalize(temp.path()).unwrap();
    let repo = home.join("repo");
    fs::create_dir(&repo).unwrap();
    let places = Places::open(&repo).unwrap();
    let env = Env { home: Some(home.clone().into()), ..Env::default() };

    let state = places.state_dir(&env).unwrap();
    assert_eq!(state, home.join(".local/state/archeflow"));
    assert_eq!(fs::metadata(&state).unwrap().permissions().mode() & 0o777, 0o700);
    assert_eq!(places.config_dir(&env).unwrap(), home.join(".config/archeflow"));

    for mode in [0o770, 0o707, 0o777] {
        fs::set_permissions(&state, Permissions::from_mode(mode)).unwrap();
        refused(places.state_dir(&env), &state);
    }
    fs::remove_dir(&state).unwrap();
    symlink(&repo, &state).unwrap();
    refused(places.state_dir(&env), &state);
    fs::remove_file(&state).unwrap();
    symlink("/", &state).unwrap();
    refused(places.state_dir(&env), &state);

    let xdg = |path: &Path| Env {
        xdg_state_home: Some(path.into()),
        xdg_config_home: Some(path.into()),
        ..env.clone()
    };
    let other = home.join("other");
    assert_eq!(places.state_dir(&xdg(&other)).unwrap(), other.join("archeflow"));
    refused(places.state_dir(&xdg(&repo.join("x"))), &repo.join("x"));
    refused(places.config_dir(&xdg(&repo)), &repo.join("archeflow"));
    assert!(!repo.join("x").exists());
    symlink(&repo, home.join("detour")).unwrap();
    refused(places.state_dir(&xdg(&home.join("detour"))), &home.join("detour"));
    // A relative value is ignored; without any value there is no place.
    assert_eq!(places.config_dir(&xdg(Path::new("rel"))).unwrap(), home.join(".config/archeflow"));
    refused(places.state_dir(&Env::default()), Path::new("$HOME"));

    let open = home.join("open");
    fs::create_dir(&open).unwrap();
    fs::set_permissions(&open, Permissions::from_mode(0o777)).unwrap();
    refused(places.state_dir(&xdg(&open)), &open);
    fs::set_permissions(&open, Permissions::from_mode(0o1777)).unwrap();
    places.state_dir(&xdg(&open)).unwrap();
}

// --------------------------------------------------------------------------------------------------- files

#[test]
fn files_change_in_one_step() {
    let desk = Desk::new();
    let path = desk.dir().join("f");
    files::write_new(&path, b"one").unwrap();
    assert_eq!(files::write_new(&path, b"two").unwrap_err().io_kind(), Some(ErrorKind::AlreadyExists));
    assert_eq!(files::read_capped(&path, 3).unwrap(), b"one");
    files::write_atomic(&path, b"three").unwrap();
    assert_eq!(files::read_capped(&path, 5).unwrap(), b"three");
    assert!(matches!(files::read_capped(&path, 4), Err(files::Error::TooLarge { max: 4, .. })));
    refused(files::write_atomic(desk.dir(), b"x"), desk.dir());
    assert_eq!(fs::read_dir(desk.dir()).unwrap().count(), 1, "no temporary file is left");
    assert_eq!(files::digest(b""), "af1349b9f5f9a1a6a0404dea36dcc949");
}

#[test]
fn a_reader_sees_old_or_new() {
    let desk = Desk::new();
    let path = desk.dir().join("f");
    files::write_atomic(&path, &[b'a'; 50_000]).unwrap();
    thread::scope(|scope| {
        for byte in [b'a', b'b'] {
            let path = &path;
            scope.spawn(move || (0..50).for_each(|_| files::write_atomic(path, &[byte; 50_000]).unwrap()));
        }
        for _ in 0..200 {
            let seen = files::read_capped(&path, 60_000).unwrap();
            assert!(seen.len() == 50_000 && seen.iter().all(|b| *b == seen[0]));
        }
    });
}

#[test]
fn index_last_line_of_a_run_wins() {
    let desk = Desk::new();
    assert_eq!(index::read(desk.dir()).unwrap(), index::Index::default());
    let entry = |run: &str, status: &str| index::IndexEntry {
        run_id: run.to_owned(),
        status: status.to_owned(),
        task: "line\nbreak".to_owned(),
        ts: "2026-04-08T10:00:00Z".to_owned(),
        reopens_at: None,
        reverted_at: None,
    };
    index::append(desk.dir(), &entry("a", "running")).unwrap();
    index::append(desk.dir(), &entry("b", "running")).unwrap();
    let file = desk.dir().join("index.jsonl");
    fs::write(&file, [fs::read(&file).unwrap(), b"{\"run_id\":\"c\"".to_vec()].concat()).unwrap();
    index::append(desk.dir(), &entry("a", "merged")).unwrap();
    let read = index::read(desk.dir()).unwrap();
    assert_eq!(read, index::Index { runs: vec![entry("a", "merged"), entry("b", "running")], skipped: 1 });
}

// ---------------------------------------------------------------------------------------------- measurement

/// `cargo test --release -p archeflow-host --test store -- --ignored --nocapture measure`
#[test]
#[ignore = "a measurement, not a proof"]
#[expect(clippy::print_stderr, reason = "it is there to be read")]
fn measure() {
    let desk = Desk::new();
    let mut journal = Journal::create(desk.dir(), RUN).unwrap();
    let data = raw(&format!(r#"{{"archetype":"maker","summary":"{}"}}"#, "s".repeat(98)));
    for batch in 0..100 {
        let lines: Vec<JournalLine<'_>> = (1..=10_000)
            .map(|n| JournalLine {
                ts: "2026-04-08T10:00:00Z",
                ms: Some(7),
                run_id: RUN,
                seq: batch * 10_000 + n,
                parent: &[1],
                kind: "agent.complete",
                phase: "do",
                agent: Some("maker"),
                data: &data,
            })
            .collect();
        journal.append(&lines).unwrap();
    }
    drop(journal);
    let length = fs::metadata(desk.file()).unwrap().len();
    eprintln!("{length} bytes, {} per line", length / 1_000_000);
    for _ in 0..10 {
        let start = Instant::now();
        let text = desk.read().unwrap();
        let verified = start.elapsed();
        let sum: usize = text.iter().map(|line| line.data.len() + line.kind.len()).sum();
        eprintln!("read and verify {verified:?}, then iterate {:?} ({sum})", start.elapsed() - verified);
    }

    let temp = Desk::new();
    let mut journal = Journal::create(temp.dir(), RUN).unwrap();
    let start = Instant::now();
    (0..2000).for_each(|_| add(&mut journal, data.get()).unwrap());
    eprintln!("append and sync: {:?} each", start.elapsed() / 2000);
    // In turns, so that a busy moment of the disk hits both alike.
    let shelf =
        [false, true].map(|ahead| (ahead, File::create_new(temp.dir().join(ahead.to_string())).unwrap()));
    let mut took = [vec![], vec![]];
    for n in 0..6000 {
        for (took, (ahead, file)) in took.iter_mut().zip(&shelf) {
            took.push(sync_one(file, n, *ahead));
        }
    }
    for (mut took, (ahead, _)) in took.into_iter().zip(&shelf) {
        took.sort_unstable();
        let mean = took.iter().sum::<Duration>() / 6000;
        eprintln!("allocated ahead {ahead}: mean {mean:?}, median {:?}, p99 {:?}", took[3000], took[5940]);
    }
}

fn sync_one(mut file: &File, n: u64, ahead: bool) -> Duration {
    const CHUNK: u64 = 256 * 1024;
    let start = Instant::now();
    let at = n * 350;
    if ahead && at / CHUNK != at.wrapping_sub(350) / CHUNK {
        let flags = rustix::fs::FallocateFlags::KEEP_SIZE;
        rustix::fs::fallocate(file, flags, at, CHUNK * 2).unwrap();
    }
    std::io::Write::write_all(&mut file, &[b'x'; 350]).unwrap();
    file.sync_data().unwrap();
    start.elapsed()
}
