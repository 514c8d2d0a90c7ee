//! Cutting large diffs: the table of kinds, and one promise tried on many random diffs: nothing is dropped silently.

mod common {
    #[expect(dead_code, reason = "this page needs only some of the reader")]
    pub(crate) mod page;
}

use std::collections::BTreeMap;

use archeflow_core::model::Splitting;
use archeflow_core::rules::filekind::{FileKind, HEAD, Treatment, kind, treatment};
use archeflow_core::split::{
    DiffPart, FileCoverage, FileSummary, LineChunker, SplitFile, SplitOutput, Splitter,
};

use common::page::Page;

#[test]
fn issue_5_kinds_of_files() {
    let mut page = Page::open("filekinds");
    page.check("Kinds", |row| {
        let mut head = row.get("head").replace('⏎', "\n").replace('␀', "\0");
        for letters in [200, 1200] {
            head = head.replace(&format!("{{{letters}}}"), &"x".repeat(letters));
        }
        assert!(head.len() <= HEAD);
        row.expect("kind", kind(row.get("path"), &head).name());
    });
    page.check("Treatment", |row| {
        let kind = row.word("kind", |name| FileKind::ALL.into_iter().find(|kind| kind.name() == name));
        let shown = match treatment(kind, row.number("changed lines").into(), &Splitting::default()) {
            Treatment::Whole => "whole".to_owned(),
            Treatment::Head(lines) => format!("first {lines}"),
            Treatment::Summary => "summary".to_owned(),
        };
        row.expect("shown", shown);
    });
    page.close();
}

const SMALL: Splitting =
    Splitting { bytes_per_part: 8_192, shown_lock_lines: 3, summarise_above_lines: 10, longest_line: 300 };

fn split(diff: &[u8], chunk: usize, known: BTreeMap<String, FileSummary>) -> (Vec<DiffPart>, Vec<SplitFile>) {
    let mut splitter = Splitter::new(&SMALL, known);
    let mut out: Vec<SplitOutput> = diff.chunks(chunk).flat_map(|bytes| splitter.feed(bytes)).collect();
    out.extend(splitter.finish());
    let (mut parts, mut files) = (Vec::new(), Vec::new());
    for one in out {
        match one {
            SplitOutput::Part(part) => parts.push(part),
            SplitOutput::File(told) => files.push(told),
        }
    }
    (parts, files)
}

/// Diffs as git prints them, in the forms that are easily misread: path, what is shown, and counts.
#[test]
fn issue_5_every_form_of_a_file_is_mentioned() {
    let hunk = "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n";
    let rows = [
        (
            "diff --git a/x b/x\nindex 1..2 100644\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n",
            "x",
            1,
            1,
            "whole",
        ),
        ("diff --git a/a b b/a b\nold mode 100644\nnew mode 100755\n", "a b", 0, 0, "whole"),
        ("diff --git a/x b/y z\nsimilarity index 90%\nrename from x\nrename to y z\n", "y z", 0, 0, "whole"),
        ("diff --git \"a/\\303\\274\" \"b/\\303\\274\"\nnew file mode 100644\n", "ü", 0, 0, "whole"),
        (
            "diff --git a/x b/\"y\nsimilarity index 100%\nrename from x\nrename to \"\\\"y\"\n",
            "\"\\\"y\"",
            0,
            0,
            "whole",
        ),
        ("diff --git a/p b/p\nindex 1..2 100644\nBinary files a/p and b/p differ\n", "p", 0, 0, "summary"),
        (
            "diff --git a/s b/s\nindex 1..2 160000\n--- a/s\n+++ b/s\n@@ -1 +1 @@\n-Subproject commit 1\n+Subproject commit 2\n",
            "s",
            1,
            1,
            "whole",
        ),
        (
            "diff --git a/e b/e\ndeleted file mode 100644\n--- a/e\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n\\ No newline at end of file\n",
            "e",
            0,
            1,
            "whole",
        ),
        (
            "diff --git a/h b/h\n--- a/h\n+++ b/h\n@@ -1,3 +1,4 @@\n diff --git a/q b/q\n--- a/q\n-@@ -1 +1 @@\n+++ b/q\n+@@ -1 +1 @@\n+diff --git a/q b/q\n",
            "h",
            3,
            2,
            "whole",
        ),
        ("diff --git a/c b/c\n--- a/c\n+++ b/c\n@@ -1,2 +1,2 @@\n a\r\n-b\r\n+c\r\n", "c", 1, 1, "whole"),
        ("diff --git a/n b/n\n--- a/n\n+++ b/n\n@@ -1,3 +1,3 @@\n a\n\n-b\n+c\n", "n", 1, 1, "whole"),
    ];
    for (diff, path, added, deleted, shown) in rows {
        let after = format!("diff --git a/x b/x\n{hunk}");
        for chunk in [1, 7, 10_000] {
            let (parts, files) = split(format!("{diff}{after}").as_bytes(), chunk, BTreeMap::new());
            let [first, last] = &files[..] else { panic!("{path}: {files:?}") };
            assert_eq!((first.path.as_str(), first.added, first.deleted), (path, added, deleted));
            assert_eq!(matches!(first.shown, FileCoverage::Summary { .. }), shown == "summary", "{path}");
            assert_eq!((last.path.as_str(), last.added, last.deleted), ("x", 1, 1), "after {path}");
            let text = &parts[0].text;
            let body = text.strip_prefix("Part 1.\n\n").unwrap();
            let body = body.replace("[archeflow: binary file; its content is not shown]\n", "");
            // Ranges are written out in full.
            let expected = format!("{diff}{after}").replace("@@ -1 +1 @@\n-", "@@ -1,1 +1,1 @@\n-");
            assert_eq!(body, expected.replace("@@ -1 +0,0 @@", "@@ -1,1 +0,0 @@"), "{path}");
            assert_eq!((parts.len(), parts[0].files), (1, 2));
        }
    }
}

#[test]
fn issue_5_m_e26_a_line_longer_than_memory_is_cut_and_noted() {
    let mut diff = b"diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -0,0 +1,2 @@\n+".to_vec();
    diff.extend(b"y".repeat(1_000_000));
    diff.extend(b"\n+");
    diff.extend([0xff; 1_000]);
    diff.push(b'\n');
    let (parts, files) = split(&diff, 4_096, BTreeMap::new());
    assert_eq!((parts.len(), files[0].cut_lines, files[0].added), (1, 2, 2));
    assert!(
        parts[0]
            .text
            .contains(&format!("+{}[archeflow: 999701 bytes of this line are not shown]\n", "y".repeat(299)))
    );
    // Each byte that is no text takes three to show.
    assert!(parts[0].text.contains("\u{fffd}[archeflow: 901 bytes of this line are not shown]\n"));
}

#[test]
fn issue_5_pieces_of_a_line_overlap() {
    let mut seen = Vec::new();
    let mut lines = LineChunker::new(6, 2);
    let mut give = |piece: archeflow_core::split::LineChunk<'_>| {
        seen.push((String::from_utf8_lossy(piece.bytes).into_owned(), piece.again, piece.first, piece.last));
    };
    lines.feed(b"ab\nabcd", &mut give);
    lines.feed(b"efghij\n\nz", &mut give);
    lines.finish(&mut give);
    let expected = [
        ("ab", 0, true, true),
        ("abcdef", 0, true, false),
        ("efghij", 2, false, true),
        ("", 0, true, true),
        ("z", 0, true, true),
    ];
    assert_eq!(seen, expected.map(|(text, again, first, last)| (text.to_owned(), again, first, last)));
}

/// A small generator of our own; the same seed gives the same diff.
struct Chance(u64);

impl Chance {
    fn below(&mut self, most: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % most
    }
}

/// A line of a hunk as it was: its number in the file it is from, and its text.
type Numbered = (u64, Vec<u8>);

#[derive(Default, Debug, PartialEq)]
struct Truth {
    added: Vec<Numbered>,
    deleted: Vec<Numbered>,
    context: Vec<Numbered>,
    remarks: usize,
}

fn random_file(chance: &mut Chance, n: usize, diff: &mut Vec<u8>) -> (String, FileSummary, Truth) {
    let mut truth = Truth::default();
    let path = ["src/f", "vendor/f", "a b/f", "f"][chance.below(4) as usize].to_owned() + &n.to_string();
    let kinds = [FileKind::Plain, FileKind::Plain, FileKind::Plain, FileKind::Lock, FileKind::Vendored];
    let kind = kinds[chance.below(5) as usize];
    diff.extend(
        format!("diff --git a/{path} b/{path}\nindex 1..2 100644\n--- a/{path}\n+++ b/{path}\n").bytes(),
    );
    let (mut old, mut new) = (1, 1);
    for _ in 0..chance.below(5) {
        let (skip, mut body) = (chance.below(50) + 1, Vec::new());
        (old, new) = (old + skip, new + skip);
        let (from_old, from_new) = (old, new);
        let many = if chance.below(6) == 0 { 400 } else { 30 };
        for _ in 0..=chance.below(many) {
            let text = random_text(chance);
            match chance.below(3) {
                0 => {
                    body.push(b'+');
                    truth.added.push((new, text.clone()));
                    new += 1;
                }
                1 => {
                    body.push(b'-');
                    truth.deleted.push((old, text.clone()));
                    old += 1;
                }
                _ => {
                    body.push(b' ');
                    truth.context.push((new, text.clone()));
                    (old, new) = (old + 1, new + 1);
                }
            }
            body.extend(text);
            body.push(b'\n');
            if chance.below(40) == 0 {
                body.extend(b"\\ No newline at end of file\n");
                truth.remarks += 1;
            }
        }
        let range =
            |from: u64, to: u64| format!("{},{}", if from == to { from - 1 } else { from }, to - from);
        let header = format!("@@ -{} +{} @@ fn x\n", range(from_old, old), range(from_new, new));
        diff.extend(header.bytes());
        diff.extend(body);
    }
    let known = FileSummary { kind, added: truth.added.len() as u64, deleted: truth.deleted.len() as u64 };
    (path, known, truth)
}

/// Also lines that look like headers.
fn random_text(chance: &mut Chance) -> Vec<u8> {
    let odd: [&[u8]; 6] = [
        b"",
        b"-- a/x",
        b"++ b/x",
        b"@@ -1,9 +1,9 @@",
        b"diff --git a/x b/x",
        b"\\ No newline at end of file",
    ];
    match chance.below(12) {
        n @ 0..6 => odd[n as usize].to_vec(),
        6 => vec![b'z'; chance.below(700) as usize],
        7 => vec![0xfe; chance.below(120) as usize],
        _ => format!("text {}", chance.below(1_000_000)).into_bytes(),
    }
}

/// Reads parts as a reviewer would: by headers and counts.
fn read_back(parts: &[DiffPart]) -> (BTreeMap<String, Truth>, Vec<u32>) {
    let mut files: BTreeMap<String, Truth> = BTreeMap::new();
    let mut counts = Vec::new();
    for part in parts {
        let (mut path, mut headers) = (String::new(), 0);
        let (mut old, mut new, mut old_end, mut new_end) = (0, 0, 0, 0);
        for line in part.text.lines() {
            let truth = files.entry(path.clone()).or_default();
            let text = line.as_bytes().get(1..).unwrap_or_default().to_vec();
            if line == "\\ No newline at end of file" {
                truth.remarks += 1;
            } else if old < old_end || new < new_end {
                match line.as_bytes()[0] {
                    b'+' => {
                        truth.added.push((new, text));
                        new += 1;
                    }
                    b'-' => {
                        truth.deleted.push((old, text));
                        old += 1;
                    }
                    b' ' => {
                        truth.context.push((new, text));
                        (old, new) = (old + 1, new + 1);
                    }
                    other => panic!("part {}: '{other}' in a hunk", part.number),
                }
                assert!(
                    old <= old_end && new <= new_end,
                    "part {}: the counts of a hunk are wrong",
                    part.number
                );
            } else if let Some(ranges) = line.strip_prefix("@@ -") {
                let numbers: Vec<u64> = ranges
                    .split(" @@")
                    .next()
                    .unwrap_or_default()
                    .split([',', ' ', '+'])
                    .filter_map(|n| n.parse().ok())
                    .collect();
                let begin = |start: u64, count: u64| if count == 0 { start + 1 } else { start };
                (old, new) = (begin(numbers[0], numbers[1]), begin(numbers[2], numbers[3]));
                (old_end, new_end) = (old + numbers[1], new + numbers[3]);
            } else if let Some(name) = line.strip_prefix("+++ b/") {
                name.clone_into(&mut path);
                files.entry(path.clone()).or_default();
                headers += 1;
            }
        }
        counts.push(headers);
    }
    files.remove("");
    (files, counts)
}

/// A line of the input as it is shown.
fn as_shown(text: &[u8]) -> Vec<u8> {
    let text = String::from_utf8_lossy(text);
    // The sign before the line counts, too.
    if text.len() < 300 {
        return text.into_owned().into_bytes();
    }
    let mut end = 299;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let shown = text[..end].chars().count();
    let all = if text.contains('\u{fffd}') { text.chars().count() } else { text.len() };
    format!("{}[archeflow: {} bytes of this line are not shown]", &text[..end], all - shown).into_bytes()
}

#[test]
fn issue_5_nothing_is_dropped_silently() {
    let (mut many_parts, mut splits, mut heads, mut summaries, mut cut) = (0, 0, 0, 0, 0);
    for seed in 0..300 {
        let mut chance = Chance(seed);
        let mut diff = Vec::new();
        let mut truth = Vec::new();
        for n in 0..=chance.below(30) as usize {
            truth.push(random_file(&mut chance, n, &mut diff));
        }
        let known = truth.iter().map(|(path, known, _)| (path.clone(), *known)).collect();
        let (parts, files) = split(&diff, 1 + chance.below(5_000) as usize, known);
        let (shown, headers) = read_back(&parts);
        assert_eq!(files.len(), truth.len(), "seed {seed}");
        for (n, part) in parts.iter().enumerate() {
            assert!(part.text.len() <= SMALL.part(), "seed {seed}: part {} has {}", n + 1, part.text.len());
            assert_eq!(part.number as usize, n + 1, "seed {seed}");
            let only_header = part.lines == 0 && part.text.contains("(continued)");
            assert!(
                !only_header || part.text.contains("[archeflow: "),
                "seed {seed}: part {} is empty",
                n + 1
            );
            assert_eq!(part.files, headers[n], "seed {seed} part {}", n + 1);
            assert!(part.text.starts_with(&format!("Part {}.\n", n + 1)), "seed {seed}");
        }
        let lines: u64 = parts.iter().map(|part| part.lines).sum();
        let back: usize =
            shown.values().map(|one| one.added.len() + one.deleted.len() + one.context.len()).sum();
        assert_eq!(lines, back as u64, "seed {seed}: lines of the parts");
        for ((path, known, truth), told) in truth.iter().zip(&files) {
            let place = format!("seed {seed}, {path}");
            assert_eq!((&told.path, told.added, told.deleted), (path, known.added, known.deleted), "{place}");
            let seen = &shown[path];
            let changed = known.added + known.deleted;
            let as_shown = |lines: &[Numbered]| -> Vec<Numbered> {
                lines.iter().map(|(number, text)| (*number, as_shown(text))).collect()
            };
            match (treatment(known.kind, changed, &SMALL), &told.shown) {
                (Treatment::Whole, FileCoverage::Whole { .. } | FileCoverage::Split { .. }) => {
                    let whole = Truth {
                        added: as_shown(&truth.added),
                        deleted: as_shown(&truth.deleted),
                        context: as_shown(&truth.context),
                        remarks: truth.remarks,
                    };
                    assert_eq!(seen, &whole, "{place}");
                    splits += u32::from(matches!(told.shown, FileCoverage::Split { .. }));
                }
                (Treatment::Head(lines), FileCoverage::Head { lines: told_lines, .. }) => {
                    assert_eq!(
                        (seen.added.len() + seen.deleted.len(), lines),
                        (lines as usize, *told_lines),
                        "{place}"
                    );
                    assert!(as_shown(&truth.added).starts_with(&seen.added), "{place}");
                    assert!(as_shown(&truth.deleted).starts_with(&seen.deleted), "{place}");
                    let rest = changed - u64::from(lines);
                    let words = format!(
                        "+{} -{} lines; the first {lines} changed lines are shown, {rest} are not]",
                        known.added, known.deleted
                    );
                    assert!(parts.iter().any(|part| part.text.contains(&words)), "{place}");
                    heads += 1;
                }
                (Treatment::Summary, FileCoverage::Summary { part }) => {
                    assert_eq!(seen.added.len() + seen.deleted.len(), 0, "{place}");
                    let words =
                        format!("vendored file, +{} -{} lines; summarised", known.added, known.deleted);
                    assert!(parts[*part as usize - 1].text.contains(&words), "{place}");
                    let first = format!("  {path} (vendored, +{} -{})\n", known.added, known.deleted);
                    assert!(
                        parts[0].text.contains(&first) || parts[0].text.contains(" more: see the plan"),
                        "{place}"
                    );
                    summaries += 1;
                }
                (treatment, shown) => panic!("{place}: {treatment:?} is told as {shown:?}"),
            }
            cut += told.cut_lines;
        }
        many_parts += u32::from(parts.len() > 3);
    }
    assert!(
        many_parts > 100 && splits > 100 && heads > 100 && summaries > 100 && cut > 100,
        "too tame: {many_parts} {splits} {heads} {summaries} {cut}"
    );
}

/// S-03: reviewers of a run see every line whole, whatever file it is in and however long it is.
#[test]
fn s_03_m_e26_parts_of_whole_lines_leave_nothing_out() {
    let mut several = 0;
    for seed in 1_000..1_200 {
        let mut chance = Chance(seed);
        let mut diff = Vec::new();
        let truth: Vec<_> =
            (0..=chance.below(30) as usize).map(|n| random_file(&mut chance, n, &mut diff)).collect();
        let diff = String::from_utf8_lossy(&diff).into_owned();
        let texts = archeflow_core::split::whole_lines(&diff, 8_192);
        several += u32::from(texts.len() > 1);
        let part = |(n, text): (usize, String)| DiffPart { number: n as u32 + 1, text, files: 0, lines: 0 };
        let parts: Vec<DiffPart> = texts.into_iter().enumerate().map(part).collect();
        assert!(
            parts.iter().all(|part| !part.text.contains("bytes of this line are not shown")),
            "seed {seed}"
        );
        let (shown, _) = read_back(&parts);
        let readable = |lines: &[Numbered]| -> Vec<Numbered> {
            let text = |text: &[u8]| String::from_utf8_lossy(text).into_owned().into_bytes();
            lines.iter().map(|(number, line)| (*number, text(line))).collect()
        };
        for (path, _, truth) in &truth {
            let whole = Truth {
                added: readable(&truth.added),
                deleted: readable(&truth.deleted),
                context: readable(&truth.context),
                remarks: truth.remarks,
            };
            assert_eq!(shown[path], whole, "seed {seed}, {path}");
        }
    }
    assert!(several > 50, "{several}");
}
