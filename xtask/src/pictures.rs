//! `cargo xtask pictures`: draws the recordings in `docs/pictures` as SVG. A recording is what a terminal got, with the
//! lines that were redrawn still in it; it may be cut, but nothing in it is written by hand except the prompts.

use std::fmt::Write;
use std::path::Path;
use std::process::ExitCode;

use crate::portrait;

const LINE: usize = 19;
const CHARACTER_TENTHS: usize = 79;
pub(crate) const STYLE: &str = "text{font:13px ui-monospace,SFMono-Regular,Menlo,Consolas,\"DejaVu Sans Mono\",monospace;white-space:pre}\
    .p{fill:#d5d9e0}.b{fill:#fff;font-weight:bold}.d{fill:#7d8590}.c31{fill:#ff7b72}.c32{fill:#57c785}.c33{fill:#e3b341}\
    .c34{fill:#6cb6ff}.c35{fill:#d2a8ff}.c36{fill:#56d4dd}.w{font-weight:bold}";

pub(crate) fn draw(root: &Path) -> ExitCode {
    let folder = root.join("docs/pictures");
    let entries = std::fs::read_dir(&folder).into_iter().flatten().flatten().map(|entry| entry.path());
    for path in entries.filter(|path| path.extension().is_some_and(|ending| ending == "ansi")) {
        let drawn = std::fs::read_to_string(&path)
            .and_then(|recording| std::fs::write(path.with_extension("svg"), picture(&recording)));
        if let Err(error) = drawn {
            eprintln!("{}: {error}", path.display());
            return ExitCode::FAILURE;
        }
        println!("drew {}", path.with_extension("svg").display());
    }
    portrait::make(root)
}

/// A run of characters in one style.
type Piece = (&'static str, String);

/// As much of a terminal as our own output uses: styles, going up, and clearing what is below.
#[derive(Default)]
struct Screen {
    lines: Vec<Vec<Piece>>,
    row: usize,
}

impl Screen {
    fn put(&mut self, style: &'static str, c: char) {
        while self.lines.len() <= self.row {
            self.lines.push(Vec::new());
        }
        let Some(line) = self.lines.get_mut(self.row) else { return };
        match line.last_mut() {
            Some((last, text)) if *last == style => text.push(c),
            _ => line.push((style, c.to_string())),
        }
    }
}

fn screen(recording: &str) -> Screen {
    let mut screen = Screen::default();
    let mut style = "p";
    let mut rest = recording;
    while let Some(c) = rest.chars().next() {
        rest = rest.get(c.len_utf8()..).unwrap_or_default();
        match c {
            '\n' => screen.row += 1,
            '\r' => {}
            '\u{1b}' => {
                let body = rest.strip_prefix('[').unwrap_or(rest);
                let end = body.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(body.len());
                let (number, after) = body.split_at(end);
                match after.chars().next() {
                    Some('m') => style = styled(number),
                    Some('A') => screen.row = screen.row.saturating_sub(number.parse().unwrap_or(1)),
                    Some('J') => screen.lines.truncate(screen.row),
                    _ => {}
                }
                rest = after.get(1..).unwrap_or_default();
            }
            c => screen.put(style, c),
        }
    }
    screen
}

fn styled(number: &str) -> &'static str {
    match number {
        "1" => "b",
        "2" => "d",
        "31" | "38;5;1" => "c31",
        "32" | "38;5;2" => "c32",
        "33" | "38;5;3" => "c33",
        "34" | "38;5;4" => "c34",
        "35" | "38;5;5" => "c35",
        "36" | "38;5;6" => "c36",
        _ => "p",
    }
}

fn picture(recording: &str) -> String {
    let lines = screen(recording).lines;
    let widest = lines.iter().map(|line| line.iter().map(|(_, text)| text.chars().count()).sum::<usize>());
    let width = widest.max().unwrap_or(0) * CHARACTER_TENTHS / 10 + 40;
    let height = lines.len() * LINE + 60;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" role=\"img\">\n<title>A recording of a terminal</title>\n\
         <rect width=\"{width}\" height=\"{height}\" rx=\"10\" fill=\"#161b22\"/>\n\
         <circle cx=\"20\" cy=\"17\" r=\"6\" fill=\"#ff5f57\"/><circle cx=\"40\" cy=\"17\" r=\"6\" fill=\"#febc2e\"/>\
         <circle cx=\"60\" cy=\"17\" r=\"6\" fill=\"#28c840\"/>\n<style>{STYLE}</style>\n"
    );
    for (row, line) in lines.iter().enumerate().filter(|(_, line)| !line.is_empty()) {
        let _ = write!(svg, "<text x=\"20\" y=\"{}\" xml:space=\"preserve\">", 58 + row * LINE);
        for (style, text) in line {
            let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
            let _ = write!(svg, "<tspan class=\"{style}\">{text}</tspan>");
        }
        svg.push_str("</text>\n");
    }
    svg.push_str("</svg>\n");
    svg
}

#[cfg(test)]
mod tests {
    use super::screen;

    #[test]
    fn a_line_that_was_redrawn_is_seen_once() {
        let seen =
            screen("one\r\n\u{1b}[34mtwo\u{1b}[0m a\r\n\u{1b}[1A\u{1b}[Jthree\r\n\u{1b}[2mfour\u{1b}[0m");
        let text =
            |line: &Vec<(&str, String)>| line.iter().map(|(_, text)| text.as_str()).collect::<String>();
        assert_eq!(seen.lines.iter().map(text).collect::<Vec<_>>(), ["one", "three", "four"]);
    }
}
