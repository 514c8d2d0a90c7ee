//! The few functions of probability that the tests and intervals need. Each is good to about ten digits, which tests
//! check against published tables.

/// The standard normal distribution: the chance of a value of at most `x`.
///
/// A series that adds only positive terms; beyond 8 the rest is less than the last digit.
pub(super) fn normal_cdf(x: f64) -> f64 {
    if x.abs() > 8.0 {
        return if x > 0.0 { 1.0 } else { 0.0 };
    }
    let (mut term, mut sum, mut odd) = (x, x, 1.0);
    while term.abs() > 1e-17 * sum.abs() && odd < 1_000.0 {
        odd += 2.0;
        term *= x * x / odd;
        sum += term;
    }
    let density = (-0.5 * x * x).exp() / (2.0 * std::f64::consts::PI).sqrt();
    (0.5 + density * sum).clamp(0.0, 1.0)
}

/// The value below which a share `p` of a standard normal distribution is.
#[cfg(test)]
pub(super) fn normal_quantile(p: f64) -> f64 {
    bisect(-8.0, 8.0, |x| normal_cdf(x) < p)
}

/// Student's t: the value below which a share `p` is, for `freedom` degrees of freedom (at least 1).
pub(super) fn t_quantile(p: f64, freedom: f64) -> f64 {
    if p < 0.5 {
        return -t_quantile(1.0 - p, freedom);
    }
    // The chance of more than t is half of I_y(freedom / 2, 1 / 2), where y = freedom / (freedom + t^2).
    let y = beta_quantile(2.0 * (1.0 - p), 0.5 * freedom, 0.5);
    if y <= 0.0 { f64::MAX.sqrt() } else { (freedom * (1.0 - y) / y).sqrt() }
}

/// The value below which a share `p` of a beta distribution is.
pub(super) fn beta_quantile(p: f64, a: f64, b: f64) -> f64 {
    bisect(0.0, 1.0, |x| incomplete_beta(x, a, b) < p)
}

/// The chance of at most `hits` in `draws` with chance `p` each.
pub(super) fn binomial_at_most(hits: u64, draws: u64, p: f64) -> f64 {
    if hits >= draws {
        return 1.0;
    }
    incomplete_beta(1.0 - p, (draws - hits) as f64, hits as f64 + 1.0)
}

/// The regularised incomplete beta function I_x(a, b): the beta distribution's chance of at most `x`.
pub(super) fn incomplete_beta(x: f64, a: f64, b: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    if x >= 1.0 {
        return 1.0;
    }
    // The fraction converges fast on this side of the mean; the other side is its mirror.
    if x > (a + 1.0) / (a + b + 2.0) {
        return 1.0 - incomplete_beta(1.0 - x, b, a);
    }
    let front = ln_gamma(a + b) - ln_gamma(a) - ln_gamma(b) + a * x.ln() + b * (-x).ln_1p();
    (front.exp() / (a * beta_fraction(x, a, b))).clamp(0.0, 1.0)
}

/// The continued fraction `1 + d1 / (1 + d2 / (1 + …))` of the incomplete beta function, evaluated from the front
/// (Lentz's method): `ratio_up` and `ratio_down` are the quotients of successive numerators and denominators.
fn beta_fraction(x: f64, a: f64, b: f64) -> f64 {
    const NOT_ZERO: f64 = 1e-300;
    let away_from_zero = |value: f64| if value.abs() < NOT_ZERO { NOT_ZERO } else { value };
    let (mut value, mut ratio_up, mut ratio_down) = (1.0_f64, 1.0_f64, 0.0_f64);
    for step in 1..20_000_u32 {
        let m = f64::from(step / 2);
        let d = if step % 2 == 1 {
            -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0))
        } else {
            m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m))
        };
        ratio_up = away_from_zero(1.0 + d / ratio_up);
        ratio_down = 1.0 / away_from_zero(1.0 + d * ratio_down);
        let change = ratio_up * ratio_down;
        value *= change;
        if (change - 1.0).abs() < 1e-15 {
            break;
        }
    }
    value
}

/// The logarithm of the gamma function for positive numbers: Stirling's series, after moving up to where it is exact.
fn ln_gamma(x: f64) -> f64 {
    let (mut up, mut factors) = (x, 0.0);
    while up < 12.0 {
        factors += up.ln();
        up += 1.0;
    }
    let square = 1.0 / (up * up);
    let series = (1.0 / 12.0
        - square * (1.0 / 360.0 - square * (1.0 / 1260.0 - square * (1.0 / 1680.0 - square / 1188.0))))
        / up;
    (up - 0.5) * up.ln() - up + 0.5 * (2.0 * std::f64::consts::PI).ln() + series - factors
}

/// Where `is_below` changes from true to false.
fn bisect(mut low: f64, mut high: f64, is_below: impl Fn(f64) -> bool) -> f64 {
    for _ in 0..200 {
        let middle = 0.5 * (low + high);
        if middle <= low || middle >= high {
            break;
        }
        if is_below(middle) { low = middle } else { high = middle }
    }
    0.5 * (low + high)
}
