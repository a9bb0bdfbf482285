//! Sequential designs: intervals that hold at every n at once, so that looking at any time is allowed.
//!
//! Units come in registered order. [`Mixture`] is the default for unbounded values: Lai's (1976) t-mixture, valid for
//! normal values of unknown spread. [`betting`] needs values in a declared range and nothing else (Waudby-Smith and
//! Ramdas 2024). [`sub_gaussian`] needs a declared σ (Robbins 1970). Over time intervals are intersected, and an e-value
//! of 1/α or more excludes. Absent: group-sequential spending.

use crate::sum;

/// The prior variance of (θ − θ₀)/σ in the t-mixture, g.
pub const PRIOR: f64 = 1.0;

/// The t-mixture at one look.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mixture {
    /// Units so far.
    pub n: usize,
    /// Their mean.
    pub mean: f64,
    /// s/√n.
    pub standard_error: f64,
}

impl Mixture {
    /// The look after these units; `None` below two units or without spread, when nothing is excluded.
    pub fn of(values: &[f64]) -> Option<Mixture> {
        let spread = sum::deviation(values);
        (values.len() >= 2 && spread > 0.0 && spread.is_finite()).then(|| Mixture {
            n: values.len(),
            mean: sum::mean(values),
            standard_error: spread / (values.len() as f64).sqrt(),
        })
    }

    /// ln of the e-value against θ₀: (1 + ng)^(−½)·[(1 + t²/(n−1))/(1 + t²/((n−1)(1+ng)))]^(n/2).
    pub fn log_e_value(&self, theta: f64) -> f64 {
        let (n, a) = (self.n as f64, 1.0 + self.n as f64 * PRIOR);
        let t = (self.mean - theta) / self.standard_error;
        let square = t * t / (n - 1.0);
        // For a huge t the quotient tends to a, which must not become ∞/∞.
        let quotient = if square.is_finite() { (1.0 + square) / (1.0 + square / a) } else { a };
        0.5 * n * quotient.ln() - 0.5 * a.ln()
    }

    /// The half-width of the interval at confidence 1 − `error`; ∞ while nothing can be excluded.
    pub fn half_width(&self, error: f64) -> f64 {
        let (n, a) = (self.n as f64, 1.0 + self.n as f64 * PRIOR);
        let ratio = (a.sqrt() / error).powf(2.0 / n);
        if ratio >= a {
            return f64::INFINITY;
        }
        self.standard_error * ((n - 1.0) * (ratio - 1.0) / (1.0 - ratio / a)).sqrt()
    }
}

/// One look of a confidence sequence: the interval so far, all earlier ones intersected.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Look {
    /// Units so far.
    pub n: usize,
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

impl Look {
    /// Nothing excluded.
    fn nothing(n: usize, range: (f64, f64)) -> Look {
        Look { n, low: range.0, high: range.1 }
    }

    /// The intersection with a later interval. Where the two do not meet, the model is refuted rather than the bound:
    /// the ends cross and the caller sees low > high.
    fn and(self, later: Look) -> Look {
        Look { n: later.n, low: self.low.max(later.low), high: self.high.min(later.high) }
    }
}

/// The t-mixture after each unit, intersected over time.
pub fn mixture(values: &[f64], error: f64) -> Vec<Look> {
    let everything = (f64::NEG_INFINITY, f64::INFINITY);
    running(values.len(), everything, |n| match Mixture::of(&values[..n]) {
        None => Look::nothing(n, everything),
        Some(look) => {
            let reach = look.half_width(error);
            Look { n, low: look.mean - reach, high: look.mean + reach }
        }
    })
}

fn running(looks: usize, range: (f64, f64), at: impl Fn(usize) -> Look) -> Vec<Look> {
    let mut so_far = Look::nothing(0, range);
    (1..=looks)
        .map(|n| {
            so_far = so_far.and(at(n));
            so_far
        })
        .collect()
}

/// The anytime p-value of θ = θ₀ by the t-mixture: the least of 1/e over the looks, at most 1.
pub fn anytime_p(values: &[f64], theta: f64) -> f64 {
    let looks = (2..=values.len()).filter_map(|n| Mixture::of(&values[..n]));
    let best = looks.map(|look| look.log_e_value(theta)).fold(0.0, f64::max);
    (-best).exp()
}

/// The half-width of Robbins' interval for a mean of n values with σ known or bounding (sub-Gaussian):
/// σ√(2(nρ² + 1)/(n²ρ²)·ln(√(nρ² + 1)/α)).
pub fn sub_gaussian(n: usize, sigma: f64, rho: f64, error: f64) -> f64 {
    let n = n as f64;
    let grown = n * rho * rho + 1.0;
    sigma * (2.0 * grown / (n * n * rho * rho) * (grown.sqrt() / error).ln()).sqrt()
}

/// Points of the grid of possible means.
const GRID: usize = 10_000;

/// The hedged betting sequence for values in `range`, after each unit and intersected over time; on the scale of the
/// values. A value outside the range gives `None`: the range was not true.
pub fn betting(values: &[f64], range: (f64, f64), error: f64) -> Option<Vec<Look>> {
    let (low, high) = range;
    let width = high - low;
    if !(width > 0.0 && width.is_finite()) || values.iter().any(|v| !(*v >= low && *v <= high)) {
        return None;
    }
    let scaled: Vec<f64> = values.iter().map(|v| (v - low) / width).collect();
    let bets = bets(&scaled, error);
    let wealth = Wealth { values: &scaled, bets: &bets };
    let looks = running(scaled.len(), (0.0, 1.0), |n| wealth.interval(n, error));
    Some(
        looks.iter().map(|l| Look { n: l.n, low: low + width * l.low, high: low + width * l.high }).collect(),
    )
}

/// Whether betting excludes θ = `bound`, strictly inside `range`, at any look with error `error`. One pass over the units.
pub(crate) fn betting_excludes(values: &[f64], range: (f64, f64), bound: f64, error: f64) -> bool {
    let scaled = scaled(values, range);
    let (low, high) = range;
    Stakes { bets: &bets(&scaled, error), values: &scaled }.excludes((bound - low) / (high - low), error)
}

/// The values that betting keeps at every look: the last interval of [`betting`], in one pass per candidate.
pub(crate) fn betting_interval(values: &[f64], range: (f64, f64), error: f64) -> (f64, f64) {
    let scaled = scaled(values, range);
    let stakes = Stakes { bets: &bets(&scaled, error), values: &scaled };
    let kept = |m: f64| !stakes.excludes(m, error);
    let at = |i: usize| (i as f64 + 0.5) / GRID as f64;
    let back = |m: f64| range.0 + (range.1 - range.0) * m;
    let (Some(first), Some(last)) =
        ((0..GRID).find(|i| kept(at(*i))), (0..GRID).rev().find(|i| kept(at(*i))))
    else {
        let mean = sum::mean(values);
        return (mean, mean);
    };
    let bisect = |mut inside: f64, mut outside: f64| {
        while (inside - outside).abs() > 1e-10 {
            let middle = 0.5 * (inside + outside);
            if kept(middle) { inside = middle } else { outside = middle }
        }
        inside
    };
    let low = if first == 0 { 0.0 } else { bisect(at(first), at(first - 1)) };
    let high = if last == GRID - 1 { 1.0 } else { bisect(at(last), at(last + 1)) };
    (back(low), back(high))
}

fn scaled(values: &[f64], (low, high): (f64, f64)) -> Vec<f64> {
    values.iter().map(|v| (v - low) / (high - low)).collect()
}

/// Bets beside the values they are made on.
struct Stakes<'a> {
    bets: &'a [f64],
    values: &'a [f64],
}

impl Stakes<'_> {
    /// Whether ln max(½K⁺, ½K⁻) for the candidate mean m reaches ln 1/α at any look.
    fn excludes(&self, m: f64, error: f64) -> bool {
        let limit = -error.ln() - 0.5_f64.ln();
        let (mut up, mut down) = (0.0, 0.0);
        self.values.iter().zip(self.bets).any(|(value, bet)| {
            let gap = value - m;
            up += (bet.min(0.5 / m) * gap).ln_1p();
            down += (-bet.min(0.5 / (1.0 - m)) * gap).ln_1p();
            up.max(down) >= limit
        })
    }
}

/// λ_t = √(2 ln(2/α)/(σ̂²_{t−1} t ln(t + 1))), the predictable mixture of running variances.
fn bets(values: &[f64], error: f64) -> Vec<f64> {
    let (mut total, mut squares) = (0.5, 0.25);
    let mut bets = Vec::with_capacity(values.len());
    for (i, value) in values.iter().enumerate() {
        let t = (i + 1) as f64;
        let variance = squares / t;
        bets.push((2.0 * (2.0 / error).ln() / (variance * t * (t + 1.0).ln())).sqrt());
        total += value;
        let mean = total / (t + 1.0);
        squares += (value - mean) * (value - mean);
    }
    bets
}

struct Wealth<'a> {
    values: &'a [f64],
    bets: &'a [f64],
}

impl Wealth<'_> {
    /// ln max(½K⁺, ½K⁻) after n units for the candidate mean m, with bets cut at ½/m and ½/(1 − m).
    fn log(&self, n: usize, m: f64) -> f64 {
        let (mut up, mut down) = (0.0, 0.0);
        for (value, bet) in self.values[..n].iter().zip(self.bets) {
            let gap = value - m;
            up += (bet.min(0.5 / m) * gap).ln_1p();
            down += (-bet.min(0.5 / (1.0 - m)) * gap).ln_1p();
        }
        0.5_f64.ln() + up.max(down)
    }

    /// The means that are kept: from the grid's midpoints, the ends by bisection to 1e-10.
    fn interval(&self, n: usize, error: f64) -> Look {
        let limit = -error.ln();
        let kept = |m: f64| self.log(n, m) < limit;
        let at = |i: usize| (i as f64 + 0.5) / GRID as f64;
        let Some(first) = (0..GRID).find(|i| kept(at(*i))) else {
            // Every mean is excluded: the ends cross at the sample mean.
            let mean = sum::mean(&self.values[..n]);
            return Look { n, low: mean, high: mean };
        };
        let last = (0..GRID).rev().find(|i| kept(at(*i))).unwrap_or(first);
        let bisect = |mut inside: f64, mut outside: f64| {
            while (inside - outside).abs() > 1e-10 {
                let middle = 0.5 * (inside + outside);
                if kept(middle) { inside = middle } else { outside = middle }
            }
            inside
        };
        let low = if first == 0 { 0.0 } else { bisect(at(first), at(first - 1)) };
        let high = if last == GRID - 1 { 1.0 } else { bisect(at(last), at(last + 1)) };
        Look { n, low, high }
    }
}
