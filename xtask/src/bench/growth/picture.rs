//! Curves as a picture: both axes logarithmic, so that what grows in proportion is a line as steep as the dashed one.

use std::fmt::Write;

use super::Curve;

const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 440.0;
const LEFT: f64 = 70.0;
const RIGHT: f64 = 20.0;
/// For numbers that are longer than the space beside an axis.
const MARGIN: f64 = 30.0;
const TOP: f64 = 30.0;
/// Below the axis are its numbers, and a line for each curve.
const BOTTOM: f64 = 50.0;
const LEGEND_LINE: f64 = 20.0;

/// Colours that can be told apart, and read on white and on black.
const COLOURS: [&str; 6] = ["#2f81f7", "#d9730d", "#1a9a5a", "#b04ad8", "#c9453b", "#8a8200"];
const STYLE: &str = "text{font:13px system-ui,sans-serif;fill:#24292f}.grid{stroke:#d0d7de}.axis{stroke:#57606a}\
    .guide{stroke:#57606a;stroke-dasharray:5 5}.back{fill:#fff}\
    @media (prefers-color-scheme:dark){text{fill:#e6edf3}.grid{stroke:#30363d}.axis,.guide{stroke:#8b949e}.back{fill:#0d1117}}";

/// Whole powers of ten around some values.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Decades {
    first: f64,
    last: f64,
}

impl Decades {
    fn around(values: impl Iterator<Item = f64>) -> Option<Decades> {
        let logs: Vec<f64> = values.filter(|value| *value > 0.0).map(f64::log10).collect();
        let first = logs.iter().copied().reduce(f64::min)?.floor();
        let last = logs.iter().copied().reduce(f64::max)?.ceil();
        Some(Decades { first, last: last.max(first + 1.0) })
    }

    /// From 0 to 1.
    fn place(self, value: f64) -> f64 {
        (value.log10() - self.first) / (self.last - self.first)
    }

    fn ticks(self) -> impl Iterator<Item = f64> {
        let count = self.last - self.first;
        (0_u8..).map(f64::from).take_while(move |n| *n <= count).map(move |n| 10_f64.powf(self.first + n))
    }
}

/// Nothing, if there is nothing to draw.
pub(super) fn draw(curves: &[Curve]) -> Option<String> {
    let points = || curves.iter().flat_map(|curve| curve.points.iter().copied());
    let across = Decades::around(points().map(|(x, _)| x))?;
    let up = Decades::around(points().map(|(_, y)| y))?;
    let legend = LEGEND_LINE * f64::from(u8::try_from(curves.len() + 1).ok()?);
    let height = HEIGHT + legend;
    let floor = HEIGHT - BOTTOM;
    let x = |value: f64| LEFT + across.place(value) * (WIDTH - LEFT - RIGHT);
    let y = |value: f64| floor - up.place(value) * (floor - TOP);
    let width = WIDTH + 2.0 * MARGIN;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"-{MARGIN} 0 {width} {height}\" width=\"{width}\" height=\"{height}\" role=\"img\">\n\
         <title>How the time of a command grows with its input</title>\n<style>{STYLE}</style>\n\
         <rect class=\"back\" x=\"-{MARGIN}\" width=\"{width}\" height=\"{height}\" rx=\"8\"/>\n"
    );
    for tick in across.ticks() {
        let at = x(tick);
        let _ = writeln!(svg, "<path class=\"grid\" d=\"M{at:.1} {TOP}V{floor}\"/>");
        let _ = writeln!(
            svg,
            "<text x=\"{at:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
            floor + 20.0,
            number(tick)
        );
    }
    for tick in up.ticks() {
        let at = y(tick);
        let _ = writeln!(svg, "<path class=\"grid\" d=\"M{LEFT} {at:.1}H{:.1}\"/>", WIDTH - RIGHT);
        let _ = writeln!(
            svg,
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{} ms</text>",
            LEFT - 8.0,
            at + 4.0,
            number(tick)
        );
    }
    let _ = writeln!(
        svg,
        "<path class=\"axis\" fill=\"none\" d=\"M{LEFT} {TOP}V{floor}H{:.1}\"/>",
        WIDTH - RIGHT
    );
    // As steep as what grows in proportion, from the lower left corner as far as the picture reaches.
    let reach = (across.last - across.first).min(up.last - up.first);
    let (from, to) = ((across.first, up.first), (across.first + reach, up.first + reach));
    let _ = writeln!(
        svg,
        "<path class=\"guide\" d=\"M{:.1} {:.1}L{:.1} {:.1}\"/>",
        x(10_f64.powf(from.0)),
        y(10_f64.powf(from.1)),
        x(10_f64.powf(to.0)),
        y(10_f64.powf(to.1))
    );
    let mut line = HEIGHT + 8.0;
    for (curve, colour) in curves.iter().zip(COLOURS.iter().cycle()) {
        let places: Vec<String> = curve
            .points
            .iter()
            .filter(|(a, b)| *a > 0.0 && *b > 0.0)
            .map(|(a, b)| format!("{:.1} {:.1}", x(*a), y(*b)))
            .collect();
        let _ = writeln!(
            svg,
            "<polyline fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\" points=\"{}\"/>",
            places.join(" ")
        );
        for place in &places {
            if let Some((a, b)) = place.split_once(' ') {
                let _ = writeln!(svg, "<circle cx=\"{a}\" cy=\"{b}\" r=\"3.5\" fill=\"{colour}\"/>");
            }
        }
        let _ = writeln!(svg, "<path stroke=\"{colour}\" stroke-width=\"3\" d=\"M{LEFT} {line}h24\"/>");
        let name = curve.name.replace('&', "&amp;").replace('<', "&lt;");
        let _ = writeln!(svg, "<text x=\"{:.1}\" y=\"{:.1}\">{name}</text>", LEFT + 32.0, line + 4.0);
        line += LEGEND_LINE;
    }
    let _ = writeln!(svg, "<path class=\"guide\" d=\"M{LEFT} {line}h24\"/>");
    let _ = writeln!(svg, "<text x=\"{:.1}\" y=\"{:.1}\">in proportion</text>", LEFT + 32.0, line + 4.0);
    svg.push_str("</svg>\n");
    Some(svg)
}

/// `10,000`, or `0.1`.
fn number(value: f64) -> String {
    let digits = if value < 1.0 { format!("{value}") } else { format!("{value:.0}") };
    let Some(whole) = digits.bytes().all(|digit| digit.is_ascii_digit()).then_some(digits.len()) else {
        return digits;
    };
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (whole - at) % 3 == 0 {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::super::Curve;
    use super::{draw, number};

    #[test]
    fn what_grows_in_proportion_is_as_steep_as_the_dashed_line() {
        let points = vec![(10.0, 1.0), (100.0, 10.0), (1_000.0, 100.0)];
        let curve = Curve { name: "a < b & c".to_owned(), unit: "ms", points };
        let svg = draw(&[curve]).unwrap_or_default();
        let ends = |text: &str| {
            text.split_once("points=\"").map(|(_, rest)| rest.split('"').next().unwrap_or("").to_owned())
        };
        let line = ends(&svg).unwrap_or_default();
        let guide =
            svg.split_once("class=\"guide\" d=\"M").map(|(_, rest)| rest.split('"').next().unwrap_or(""));
        let (from, to) = guide.and_then(|guide| guide.split_once('L')).unwrap_or_default();
        assert!(line.starts_with(from) && line.ends_with(to), "{line} against {guide:?}");
        assert!(svg.contains("a &lt; b &amp; c"), "{svg}");
        assert!(svg.contains("prefers-color-scheme:dark"));
    }

    #[test]
    fn nothing_is_drawn_of_nothing() {
        assert_eq!(draw(&[]), None);
        assert_eq!(draw(&[Curve { name: String::new(), unit: "ms", points: vec![(0.0, 0.0)] }]), None);
    }

    #[test]
    fn numbers_are_grouped() {
        for (value, text) in [(1.0, "1"), (10_000.0, "10,000"), (1_000_000.0, "1,000,000"), (0.1, "0.1")] {
            assert_eq!(number(value), text);
        }
    }
}
