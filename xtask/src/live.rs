//! The picture of the live view: the demo's run on a terminal of its own, caught in its second cycle. What the terminal
//! got is read by an emulator, and the cells it shows are drawn.

use std::fmt::Write;
use std::io::{self, Read};
use std::num::NonZero;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::pictures::STYLE;

const COLUMNS: NonZero<u16> = NonZero::new(124).expect("there are columns");
const ROWS: NonZero<u16> = NonZero::new(27).expect("there are rows");
/// In tenths of a pixel, so that columns stay columns whatever the font.
const WIDE_TENTHS: u32 = 79;
const TALL: u32 = 19;

pub(crate) fn take(program: &str, picture: &Path) -> Result<(), String> {
    let folder =
        tempfile::Builder::new().prefix("archeflow-").tempdir().map_err(|error| error.to_string())?;
    let demo = folder.path().join("demo");
    let line =
        format!("stty cols {COLUMNS} rows {ROWS}; exec '{program}' demo --tui --dir '{}'", demo.display());
    let mut child = Command::new("script")
        .args(["-qfec", &line, "/dev/null"])
        .env("TERM", "xterm-256color")
        .env_remove("NO_COLOR")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| format!("script: {error}"))?;
    let (output, keys) = (child.stdout.take(), child.stdin.take());
    let caught = output.zip(keys).and_then(|(output, keys)| catch(output, keys, is_worth_it));
    let ended = child.wait().map_err(|error| error.to_string())?;
    if !ended.success() {
        return Err(format!("the demo ended with {ended}"));
    }
    let screen = caught.ok_or("the demo never looked as it should in the picture")?;
    std::fs::write(picture, draw(&screen)).map_err(|error| error.to_string())?;
    println!("drew {}", picture.display());
    Ok(())
}

/// In the second cycle, with an agent running.
fn is_worth_it(text: &str) -> bool {
    text.contains("cycle 2 of 2") && text.contains("reviewing")
}

/// The first screen like this. Reads to the end and leaves the view there, so that the program can finish.
fn catch(
    mut output: impl Read,
    mut keys: impl io::Write,
    wanted: impl Fn(&str) -> bool,
) -> Option<vt100::Screen> {
    let mut parser = vt100::Parser::new(ROWS, COLUMNS, 0);
    let (mut caught, mut left) = (None, false);
    let mut bytes = [0; 65_536];
    while let Ok(n @ 1..) = output.read(&mut bytes) {
        parser.process(bytes.get(..n)?);
        if caught.is_none() && wanted(&parser.screen().contents()) {
            caught = Some(parser.screen().clone());
        }
        if !left && parser.screen().contents().contains("The run has ended") {
            left = keys.write_all(b"q").is_ok();
        }
    }
    caught
}

fn draw(screen: &vt100::Screen) -> String {
    let (rows, columns) = screen.size();
    let (rows, columns) = (rows.get(), columns.get());
    let width = u32::from(columns) * WIDE_TENTHS / 10 + 40;
    let height = u32::from(rows) * TALL + 60;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" role=\"img\">\n<title>The live view of a run</title>\n\
         <rect width=\"{width}\" height=\"{height}\" rx=\"10\" fill=\"#161b22\"/>\n\
         <circle cx=\"20\" cy=\"17\" r=\"6\" fill=\"#ff5f57\"/><circle cx=\"40\" cy=\"17\" r=\"6\" fill=\"#febc2e\"/>\
         <circle cx=\"60\" cy=\"17\" r=\"6\" fill=\"#28c840\"/>\n<style>{STYLE}.i{{fill:#161b22;font-weight:bold}}</style>\n"
    );
    for row in 0..rows {
        for piece in pieces(screen, row, columns) {
            piece.draw(&mut svg, u32::from(row));
        }
    }
    svg.push_str("</svg>\n");
    svg
}

/// Neighbours that look the same.
struct Piece {
    column: u32,
    cells: u32,
    class: String,
    /// The class of what is behind, where it is turned around.
    behind: Option<String>,
    text: String,
}

fn pieces(screen: &vt100::Screen, row: u16, columns: u16) -> Vec<Piece> {
    let mut pieces: Vec<Piece> = Vec::new();
    for column in 0..columns {
        let Some(cell) = screen.cell(row, column).filter(|cell| !cell.is_wide_continuation()) else {
            continue;
        };
        let text = if cell.has_contents() { cell.contents() } else { " " };
        let colour = match cell.fgcolor() {
            vt100::Color::Idx(n @ 1..=6) => format!("c{}", 30 + n),
            vt100::Color::Default | vt100::Color::Idx(_) | vt100::Color::Rgb(..) => String::new(),
        };
        let class = match (colour.is_empty(), cell.bold(), cell.dim()) {
            (false, true, _) => format!("{colour} w"),
            (false, false, _) => colour.clone(),
            (true, true, _) => "b".to_owned(),
            (true, false, true) => "d".to_owned(),
            (true, false, false) => "p".to_owned(),
        };
        let behind = cell.inverse().then(|| if colour.is_empty() { "p".to_owned() } else { colour });
        let cells = if cell.is_wide() { 2 } else { 1 };
        match pieces.last_mut() {
            Some(last) if last.class == class && last.behind == behind => {
                last.text.push_str(text);
                last.cells += cells;
            }
            _ => pieces.push(Piece { column: column.into(), cells, class, behind, text: text.to_owned() }),
        }
    }
    pieces
}

impl Piece {
    fn draw(&self, svg: &mut String, row: u32) {
        let (x, wide) = (20 + self.column * WIDE_TENTHS / 10, self.cells * WIDE_TENTHS / 10);
        let y = 58 + row * TALL;
        if let Some(class) = &self.behind {
            let _ = write!(
                svg,
                "<rect class=\"{class}\" x=\"{x}\" y=\"{}\" width=\"{wide}\" height=\"{TALL}\"/>",
                y - 14
            );
        }
        if self.text.trim().is_empty() {
            return;
        }
        let text = self.text.trim_end();
        let shown = u32::try_from(text.chars().count()).unwrap_or(self.cells).min(self.cells);
        let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
        let class = if self.behind.is_some() { "i" } else { &self.class };
        let _ = writeln!(
            svg,
            "<text class=\"{class}\" x=\"{x}\" y=\"{y}\" textLength=\"{}\" xml:space=\"preserve\">{text}</text>",
            shown * WIDE_TENTHS / 10
        );
    }
}

#[cfg(test)]
mod tests {
    use super::{catch, draw};

    #[test]
    fn the_first_screen_that_is_worth_it_is_drawn_with_its_looks() {
        let sent =
            "\u{1b}[2J\u{1b}[1;1Hone\u{1b}[2J\u{1b}[2;3H\u{1b}[0;34mtwo\u{1b}[0;7m <3 \u{1b}[0m\u{1b}[2J";
        assert!(catch(sent.as_bytes(), std::io::sink(), |text| text.contains("three")).is_none());
        let screen = catch(sent.as_bytes(), std::io::sink(), |text| text.contains("one") || text.is_empty());
        assert!(screen.is_some_and(|screen| !draw(&screen).contains("two")));
        let svg = catch("\u{1b}[2;3H\u{1b}[0;34mtwo\u{1b}[0;7m <3".as_bytes(), std::io::sink(), |_| true)
            .map(|screen| draw(&screen));
        let svg = svg.unwrap_or_default();
        assert!(svg.contains("class=\"c34\" x=\"35\" y=\"77\""), "{svg}");
        let mut keys = Vec::new();
        catch("The run has ended".as_bytes(), &mut keys, |_| true);
        assert_eq!(keys, b"q", "the view is left once");
        assert!(svg.contains("&lt;3") && svg.contains("<rect class=\"p\""), "{svg}");
    }
}
