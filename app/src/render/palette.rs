//! The colours on a terminal. There are few on purpose: nobody knows whether the background is light or dark, and each
//! of them has to be readable on both, whatever palette the terminal has. Yellow and cyan vanish on white and blue on
//! black, so what is neither good nor bad is bold instead. Colour never says something alone: there is always a word
//! or a mark.
//!
//! No other module names a colour.

use archeflow_core::model::Phase;
use archeflow_core::projections::view::Tone;
use crossterm::style::{self, Attribute, ContentStyle, Stylize};
use ratatui_core::style::{Color, Modifier, Style};

/// Colours of the terminal's own palette that are readable on white and on black.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hue {
    Red,
    Green,
    Magenta,
}

/// How a piece of text looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct TextStyle {
    hue: Option<Hue>,
    bold: bool,
}

const PLAIN: TextStyle = TextStyle { hue: None, bold: false };
const BOLD: TextStyle = TextStyle { hue: None, bold: true };
/// What can be typed or chosen, and places.
pub(crate) const ACCENT: TextStyle = TextStyle { hue: Some(Hue::Magenta), bold: false };
pub(crate) const ADDED: TextStyle = TextStyle { hue: Some(Hue::Green), bold: false };
pub(crate) const DELETED: TextStyle = TextStyle { hue: Some(Hue::Red), bold: false };

pub(crate) fn of_tone(tone: Tone) -> TextStyle {
    match tone {
        Tone::Plain => PLAIN,
        Tone::Good => TextStyle { hue: Some(Hue::Green), bold: false },
        Tone::Caution => BOLD,
        Tone::Bad => TextStyle { hue: Some(Hue::Red), bold: false },
    }
}

pub(crate) fn of_phase(phase: Phase) -> TextStyle {
    match phase {
        Phase::Plan => TextStyle { hue: Some(Hue::Magenta), bold: false },
        Phase::Do => TextStyle { hue: Some(Hue::Green), bold: false },
        Phase::Check => BOLD,
        Phase::Act => TextStyle { hue: Some(Hue::Magenta), bold: true },
    }
}

impl TextStyle {
    /// In the cells of the live view. Without colours what is bold stays bold.
    pub(crate) fn in_cells(self, colours: bool) -> Style {
        let style = if self.bold { Style::new().add_modifier(Modifier::BOLD) } else { Style::new() };
        match self.hue.filter(|_| colours) {
            None => style,
            Some(Hue::Red) => style.fg(Color::Red),
            Some(Hue::Green) => style.fg(Color::Green),
            Some(Hue::Magenta) => style.fg(Color::Magenta),
        }
    }

    /// In printed lines.
    pub(crate) fn in_lines(self) -> ContentStyle {
        let style = ContentStyle::new();
        let style = if self.bold { style.attribute(Attribute::Bold) } else { style };
        self.hue.map_or(style, |hue| style.with(hue.of_crossterm()))
    }
}

impl Hue {
    /// crossterm calls the colours that every terminal has the dark ones.
    fn of_crossterm(self) -> style::Color {
        match self {
            Hue::Red => style::Color::DarkRed,
            Hue::Green => style::Color::DarkGreen,
            Hue::Magenta => style::Color::DarkMagenta,
        }
    }
}

/// The colour of a cell for the terminal.
#[expect(clippy::wildcard_enum_match_arm, reason = "cells have the colours of this module")]
pub(crate) fn of_cell(colour: Color) -> Option<style::Color> {
    match colour {
        Color::Red => Some(Hue::Red.of_crossterm()),
        Color::Green => Some(Hue::Green.of_crossterm()),
        Color::Magenta => Some(Hue::Magenta.of_crossterm()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test that can't set up its world should stop at once")]

    use std::path::Path;

    use super::*;

    /// The six colours beside black and white as terminals define them: red, green, yellow, blue, magenta, cyan.
    const PALETTES: [(&str, [u32; 6]); 5] = [
        ("xterm", [0xcd_0000, 0x00_cd00, 0xcd_cd00, 0x00_00ee, 0xcd_00cd, 0x00_cdcd]),
        ("vga", [0xaa_0000, 0x00_aa00, 0xaa_5500, 0x00_00aa, 0xaa_00aa, 0x00_aaaa]),
        ("macos", [0x99_0000, 0x00_a600, 0x99_9900, 0x00_00b2, 0xb2_00b2, 0x00_a6b2]),
        ("windows", [0xc5_0f1f, 0x13_a10e, 0xc1_9c00, 0x00_37da, 0x88_1798, 0x3a_96dd]),
        ("tango", [0xcc_0000, 0x4e_9a06, 0xc4_a000, 0x34_65a4, 0x75_507b, 0x06_989a]),
    ];
    const ALL: [Hue; 3] = [Hue::Red, Hue::Green, Hue::Magenta];

    /// Contrast as WCAG defines it, in hundredths.
    fn contrast(a: u32, b: u32) -> u32 {
        let bright = |rgb: u32| {
            let part = |shift: u32, weight: f64| {
                let value = f64::from(rgb >> shift & 0xff) / 255.0;
                let linear =
                    if value <= 0.04045 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) };
                linear * weight
            };
            part(16, 0.2126) + part(8, 0.7152) + part(0, 0.0722)
        };
        let (a, b) = (bright(a), bright(b));
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 100 and 2100")]
        let hundredths = ((a.max(b) + 0.05) / (a.min(b) + 0.05) * 100.0) as u32;
        hundredths
    }

    /// The worst contrast of a colour in all palettes, on white or on black.
    fn worst(at: usize) -> u32 {
        let both = |rgb: u32| contrast(rgb, 0xff_ffff).min(contrast(rgb, 0));
        PALETTES.iter().map(|(_, colours)| both(colours[at])).min().unwrap()
    }

    #[test]
    fn u_17_every_colour_is_readable_on_white_and_on_black() {
        let used = |hue: Hue| match hue {
            Hue::Red => 0,
            Hue::Green => 1,
            Hue::Magenta => 4,
        };
        for hue in ALL {
            assert!(worst(used(hue)) >= 210, "{hue:?}: {}", worst(used(hue)));
        }
        for (left_out, at) in [("yellow", 2), ("blue", 3), ("cyan", 5)] {
            assert!(worst(at) < 210, "{left_out} would be as good: {}", worst(at));
        }
    }

    #[test]
    fn u_17_tones_and_phases_differ_and_need_no_background() {
        let tones = [Tone::Plain, Tone::Good, Tone::Caution, Tone::Bad].map(of_tone);
        let phases = [Phase::Plan, Phase::Do, Phase::Check, Phase::Act].map(of_phase);
        for some in [tones, phases] {
            for (n, one) in some.iter().enumerate() {
                assert!(!some[n + 1..].contains(one), "{one:?} twice");
                let style = one.in_cells(true);
                assert_eq!((style.bg, one.in_lines().background_color), (None, None));
                assert_eq!(style.fg.and_then(of_cell), one.in_lines().foreground_color, "both say the same");
                assert_eq!(one.in_cells(false).fg, None);
            }
        }
        assert_eq!(of_tone(Tone::Caution).in_cells(true), Style::new().add_modifier(Modifier::BOLD));
    }

    /// A colour that is named elsewhere was not looked at here.
    #[test]
    fn u_17_no_other_module_names_a_colour() {
        fn look(folder: &Path, found: &mut Vec<String>) {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    look(&path, found);
                } else if path.extension().is_some_and(|ending| ending == "rs")
                    && !path.ends_with("palette.rs")
                    && !path.ends_with("tests.rs")
                    && std::fs::read_to_string(&path).unwrap().contains("Color::")
                {
                    found.push(path.display().to_string());
                }
            }
        }
        let mut found = Vec::new();
        look(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut found);
        assert_eq!(found, Vec::<String>::new());
    }
}
