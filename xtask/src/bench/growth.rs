//! How time and memory grow with the size of the work: curves over three decades.
//!
//! A curve that is straight on paper with two logarithmic axes has a slope; a slope of 1 is growth in proportion.

mod journal;
mod picture;
mod queue;

use super::{Bench, Goal, Row, Rows};

/// More than in proportion, with room for noise; twice the work for twice the size is 1.
const STEEPEST: f64 = 1.15;

/// What a size costs, for several sizes.
pub(super) struct Curve {
    /// What grows, and what is measured.
    pub(super) name: String,
    /// Of the measured value.
    pub(super) unit: &'static str,
    /// Size and value, smallest size first.
    pub(super) points: Vec<(f64, f64)>,
}

type Curves = Result<Vec<Curve>, Box<dyn std::error::Error>>;

/// Every family of curves. Each is measured by itself, so that one that fails names itself.
const FAMILIES: [fn(&Bench) -> Curves; 2] = [journal::curves, queue::curves];

/// Also draws them anew, in `docs/pictures/growth.svg`.
pub(super) fn measure(bench: &Bench) -> Rows {
    let mut curves = Vec::new();
    for family in FAMILIES {
        curves.extend(family(bench)?);
    }
    if let Some(svg) = picture::draw(&curves) {
        std::fs::write(bench.root.join("docs/pictures/growth.svg"), svg)?;
    }
    Ok(curves.iter().flat_map(Curve::rows).collect())
}

impl Curve {
    /// A row for each point, then the slope.
    fn rows(&self) -> Vec<Row> {
        let point = |(size, value): &(f64, f64)| Row {
            what: format!("{}, {size}", self.name),
            floor: None,
            ours: *value,
            unit: self.unit,
            goal: Goal::None,
        };
        let slope = self.slope().map(|slope| Row {
            what: format!("{}, slope", self.name),
            floor: None,
            ours: slope,
            unit: "",
            goal: Goal::AtMost(STEEPEST),
        });
        self.points.iter().map(point).chain(slope).collect()
    }

    /// From the second point to the last: the first one is mostly what a start costs.
    pub(super) fn slope(&self) -> Option<f64> {
        let [_, from, .., to] = self.points.as_slice() else { return None };
        let slope = (to.1 / from.1).log10() / (to.0 / from.0).log10();
        slope.is_finite().then_some(slope)
    }
}
