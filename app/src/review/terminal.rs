//! For people at a terminal: what counts like a compiler's diagnostics, what doesn't in a line each, and the sum.

use archeflow_core::model::Severity;
use archeflow_core::projections::view::Tone;
use archeflow_core::strategies::review::{Frame, Listed, Since};

use super::words::{self, Aside};
use super::{Look, Sheet, frame, most};
use archeflow_core::text::{fitted, log_line, padded, width, wrapped};

pub(super) fn draw(sheet: &Sheet<'_>, look: Look) -> String {
    if sheet.is_silent() {
        return String::new();
    }
    let mut page = Page { look, out: String::new() };
    if sheet.since_last {
        page.news(sheet);
    } else {
        page.findings(sheet.all().filter(|(found, _)| found.counts()));
        page.asides(sheet);
    }
    page.reviewers(sheet);
    page.closing(sheet);
    page.out
}

struct Page {
    look: Look,
    out: String,
}

impl Page {
    fn findings<'a>(&mut self, findings: impl Iterator<Item = (&'a Listed, Option<&'a Frame>)>) {
        for (number, (found, frame)) in findings.enumerate() {
            if number < most::FRAMED {
                self.finding(found, frame);
            } else {
                self.in_a_line(found, severity_of(found));
            }
        }
    }

    fn news(&mut self, sheet: &Sheet<'_>) {
        let reviewed = sheet.reviewed;
        if !reviewed.compared {
            self.put("No earlier review to compare with: everything is new.\n");
        }
        for (heading, since) in [("New", Since::New), ("Regressed", Since::Regressed)] {
            let those = || sheet.shown().filter(|(found, _)| found.since.unwrap_or(Since::New) == since);
            if those().next().is_some() {
                self.heading(&format!("{heading} ({})", those().count()));
                self.findings(those());
            }
        }
        if !reviewed.resolved.is_empty() {
            self.heading(&format!("Resolved ({})", reviewed.resolved.len()));
            for known in &reviewed.resolved {
                let place = if known.line > 0 {
                    format!("{}:{}", known.file, known.line)
                } else {
                    known.file.clone()
                };
                let mark = self.look.paint.tone(Tone::Good, "✓");
                self.row(&mark, 1, &place, &known.rule, &known.description);
            }
            self.put("");
        }
        let persistent = sheet.persistent();
        if persistent > 0 {
            self.put(&format!("{persistent} persistent\n"));
        }
    }

    /// The diagnostic.
    fn finding(&mut self, found: &Listed, frame: Option<&Frame>) {
        let word = words::severity(found.severity);
        let head = format!("{word}[{}]", log_line(&found.rule, 60));
        let paint = self.look.paint;
        let coloured = paint.bold(&paint.tone(tone(found.severity), &head));
        let text = log_line(&found.description, most::PARAGRAPH);
        let room = self.look.width.saturating_sub(1);
        let wrapped = wrapped(&text, room.saturating_sub(width(&head)), room.saturating_sub(4));
        for (number, part) in wrapped.iter().enumerate() {
            match number {
                0 => self.put(format!("{coloured} {}", paint.bold(part)).trim_end()),
                _ => self.put(&format!("    {}", paint.bold(part))),
            }
        }
        let gutter = frame.map_or(1, frame::gutter);
        let place = log_line(&found.place(), most::SENTENCE);
        if !place.is_empty() {
            let arrow = format!("{}{}", " ".repeat(gutter), paint.accent("-->"));
            self.put(&format!("{arrow} {}", fitted(&place, room.saturating_sub(gutter + 4))));
        }
        if let Some(frame) = frame.filter(|frame| !frame.lines.is_empty()) {
            self.frame(found, frame, gutter);
        }
        self.remarks(found, gutter);
        self.put("");
    }

    fn frame(&mut self, found: &Listed, frame: &Frame, gutter: usize) {
        let paint = self.look.paint;
        let room = self.look.width.saturating_sub(gutter + 4).max(8);
        let bar = paint.accent("|");
        let empty = " ".repeat(gutter);
        self.put(&format!("{empty} {bar}"));
        for row in frame::rows(found, frame, room) {
            let number = paint.accent(&format!("{:>gutter$}", row.number));
            self.put(format!("{number} {bar} {}", row.text).trim_end());
            if let Some((column, wide)) = row.mark {
                let mark = paint.tone(tone(found.severity), &"^".repeat(wide));
                self.put(&format!("{empty} {bar} {}{mark}", " ".repeat(column)));
            }
        }
        self.put(&format!("{empty} {bar}"));
    }

    fn remarks(&mut self, found: &Listed, gutter: usize) {
        let said = if found.said == found.severity {
            String::new()
        } else {
            format!(", who called it {}", words::severity(found.said))
        };
        self.remark(gutter, "by", &format!("{}{said}", words::sources(found)));
        if !found.evidence.is_empty() {
            self.remark(gutter, "evidence", &log_line(&found.evidence, most::PARAGRAPH));
        }
        if let Some(tried) = &found.trial {
            let told = words::trial(tried);
            let (word, rest) = told.split_once(": ").unwrap_or((&told, ""));
            self.remark(gutter, word, rest);
            let tail = log_line(&tried.tail, most::SENTENCE);
            if !tail.is_empty() {
                self.remark(gutter, "printed", &tail);
            }
        }
        for remark in found.also.iter().take(most::REMARKS) {
            let (who, what) = (log_line(&remark.source, 60), log_line(&remark.description, most::SENTENCE));
            self.remark(gutter, "also", &format!("{who} says {what}"));
        }
        if found.also.len() > most::REMARKS {
            self.remark(gutter, "also", &format!("… and {} more", found.also.len() - most::REMARKS));
        }
        if !found.fix.is_empty() {
            self.remark(gutter, "fix", &log_line(&found.fix, most::PARAGRAPH));
        }
        let since = found.since.map(|since| format!(" ({})", words::since(since))).unwrap_or_default();
        let known = self.look.paint.dim(&format!("= id: {}{since}", log_line(&found.fingerprint, 64)));
        self.put(&format!("{} {known}", " ".repeat(gutter)));
    }

    /// `= fix: …`, wrapped under itself.
    fn remark(&mut self, gutter: usize, name: &str, text: &str) {
        let paint = self.look.paint;
        let lead = if text.is_empty() { format!("= {name}") } else { format!("= {name}: ") };
        let indent = gutter + 1 + width(&lead);
        let room = self.look.width.saturating_sub(indent);
        for (number, part) in wrapped(text, room, room).iter().enumerate() {
            match number {
                0 => {
                    let lead = lead.replacen(name, &paint.bold(name), 1);
                    self.put(&format!(
                        "{} {}{part}",
                        " ".repeat(gutter),
                        lead.replacen('=', &paint.accent("="), 1)
                    ));
                }
                _ => self.put(&format!("{}{part}", " ".repeat(indent))),
            }
        }
    }

    fn asides(&mut self, sheet: &Sheet<'_>) {
        for aside in Aside::ALL {
            let mut those = sheet.reviewed.findings.iter().filter(|found| aside.holds(found)).peekable();
            if those.peek().is_none() {
                continue;
            }
            self.heading(aside.heading());
            for found in those {
                let why = words::why(found).map(|why| log_line(&why.replace('_', " "), most::SENTENCE));
                self.in_a_line(found, why.filter(|why| !why.is_empty()));
            }
            self.put("");
        }
    }

    /// `src/a.rs:12 security (why it does not count): the claim`.
    fn in_a_line(&mut self, found: &Listed, why: Option<String>) {
        let why = why.map(|why| format!(" ({why})")).unwrap_or_default();
        let rule = format!("{}{why}", log_line(&found.rule, 60));
        self.row("·", 1, &found.place(), &rule, &found.description);
    }

    fn row(&mut self, mark: &str, mark_width: usize, place: &str, rule: &str, text: &str) {
        let (place, rule) = (log_line(place, 100), log_line(rule, 160));
        let text = [place.as_str(), &format!("{rule}:"), &log_line(text, most::SENTENCE)].join(" ");
        let room = self.look.width.saturating_sub(mark_width + 3);
        self.put(&format!("  {mark} {}", fitted(text.trim_start(), room)));
    }

    fn reviewers(&mut self, sheet: &Sheet<'_>) {
        let reviewers = &sheet.reviewed.reviewers;
        if reviewers.is_empty() {
            return;
        }
        let head = ["reviewer", "verdict", "findings", "tokens", "cost"].map(str::to_owned);
        let rows = reviewers.iter().map(|reviewer| {
            let findings = reviewer.findings.to_string();
            let name = log_line(&reviewer.archetype, 24);
            let verdict = words::verdict(reviewer).to_owned();
            [name, verdict, findings, words::tokens(reviewer), words::cost(reviewer)]
        });
        let table: Vec<[String; 5]> = std::iter::once(head).chain(rows).collect();
        let widest = |column: usize| table.iter().map(|row| width(&row[column])).max().unwrap_or(0);
        let widths: [usize; 5] = std::array::from_fn(widest);
        for (number, row) in table.iter().enumerate() {
            let cells: Vec<String> = (0..5)
                .map(|column| match column {
                    0 | 1 => padded(&row[column], widths[column]),
                    _ => format!("{}{}", " ".repeat(widths[column] - width(&row[column])), row[column]),
                })
                .collect();
            let text = cells.join("  ").trim_end().to_owned();
            self.put(&if number == 0 { self.look.paint.dim(&text) } else { text });
        }
        self.put("");
    }

    fn closing(&mut self, sheet: &Sheet<'_>) {
        let reviewed = sheet.reviewed;
        let grave =
            [Severity::Critical, Severity::Warning].into_iter().find(|grave| reviewed.count(*grave) > 0);
        let unanswered = !reviewed.unanswered().is_empty();
        let tone = grave.map_or(if unanswered { Tone::Caution } else { Tone::Good }, tone);
        let paint = self.look.paint;
        let room = self.look.width;
        for part in wrapped(&words::counts(reviewed), room, room.saturating_sub(2)) {
            self.put(&paint.bold(&paint.tone(tone, &part)));
        }
        let about = format!(
            "{} ({}), base {}",
            words::subject(reviewed),
            words::size(reviewed),
            words::short(&reviewed.base)
        );
        self.paragraph(&about, Tone::Plain);
        let whole = if reviewed.is_whole() { Tone::Plain } else { Tone::Caution };
        for said in words::coverage(reviewed) {
            self.paragraph(&said, whole);
        }
        if !sheet.plan.is_empty() {
            self.paragraph(
                &format!("What was sent to whom: {}", log_line(sheet.plan, most::SENTENCE)),
                Tone::Plain,
            );
        }
        let run = self.look.paint.dim(&format!("run {}", log_line(sheet.run_id, 100)));
        self.put(&run);
    }

    fn paragraph(&mut self, text: &str, tone: Tone) {
        let room = self.look.width;
        for (number, part) in wrapped(text, room, room.saturating_sub(2)).iter().enumerate() {
            let indent = if number == 0 { "" } else { "  " };
            self.put(&format!("{indent}{}", self.look.paint.tone(tone, part)));
        }
    }

    fn heading(&mut self, text: &str) {
        let bold = self.look.paint.bold(text);
        self.put(&bold);
    }

    fn put(&mut self, text: &str) {
        // A line that begins like this is a command to a workflow that reads the log.
        let bare = text.trim_start();
        match bare.strip_prefix("::") {
            Some(rest) => self.out.extend([&text[..text.len() - bare.len()], ": :", rest]),
            None => self.out.push_str(text),
        }
        self.out.push('\n');
    }
}

fn tone(severity: Severity) -> Tone {
    match severity {
        Severity::Critical => Tone::Bad,
        Severity::Warning => Tone::Caution,
        Severity::Info => Tone::Plain,
    }
}

fn severity_of(found: &Listed) -> Option<String> {
    Some(words::severity(found.severity).to_owned())
}
