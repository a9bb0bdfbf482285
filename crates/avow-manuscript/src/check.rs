//! Statistics whose parts the text gives, recomputed: p from a test statistic and its degrees of freedom, intervals
//! from r and n, percentages from counts, means and percentages that no such counts can give.
//!
//! Every part is taken with the rounding it is printed with: what is stated is consistent if *some* values that
//! round to the printed ones give it (Nuijten et al. 2016 for p; Brown and Heathers 2017 for means).

mod counts;
mod interval;
mod p;

use std::ops::Range;

use serde::Serialize;

use crate::number::{self, Number};
use crate::printed::Printed;
use crate::text::{Flat, Zone};

/// What was recomputed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Code {
    /// A p-value from a test statistic.
    P,
    /// A p-value with no test statistic beside it, which nobody can recompute.
    PAlone,
    /// An interval of a correlation from r and n.
    Interval,
    /// An interval that does not hold its estimate, or whose ends are swapped.
    Estimate,
    /// A percentage from two counts.
    Percentage,
    /// A percentage of so many that no whole number gives.
    ImpossiblePercentage,
    /// A mean of so many whole numbers that no sum gives.
    ImpossibleMean,
}

impl Code {
    /// The name of the check.
    pub fn word(self) -> &'static str {
        match self {
            Code::P => "p",
            Code::PAlone => "p-alone",
            Code::Interval => "interval",
            Code::Estimate => "estimate",
            Code::Percentage => "percentage",
            Code::ImpossiblePercentage => "impossible-percentage",
            Code::ImpossibleMean => "impossible-mean",
        }
    }
}

/// What a recomputation came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// What is stated follows from the parts.
    Consistent,
    /// It follows only for a one-sided test.
    OneSided,
    /// It cannot be recomputed.
    Unknown,
    /// It does not follow.
    Inconsistent,
    /// It does not follow, and what is stated lies on the other side of 0.05.
    Decision,
}

/// One recomputation.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Check {
    /// What was recomputed.
    pub code: Code,
    /// Where it stands in the running text.
    #[serde(skip)]
    pub range: Range<usize>,
    /// What came of it.
    pub outcome: Outcome,
    /// The part that was recomputed, as printed.
    pub stated: String,
    /// What it should be, from the least to the most that rounding allows.
    pub recomputed: Option<(f64, f64)>,
}

impl Check {
    /// Whether it is a mistake of the manuscript.
    pub fn is_wrong(&self) -> bool {
        matches!(self.outcome, Outcome::Inconsistent | Outcome::Decision)
    }
}

/// A number of the patterns below: with a sign, a power of ten, or none before its point.
const NUMBER: &str = r"[-−]?(?:\d[\d,]*)?\.?\d+(?:\s*[×·]\s*10\^?\{?[-−]?\d+\}?|[eE][-−]?\d+)?";

/// Recomputes what can be, and sets degrees of freedom aside.
pub fn checks(flat: &Flat, numbers: &mut [Number]) -> Vec<Check> {
    let mut found = Vec::new();
    p::tests(&flat.text, numbers, &mut found);
    interval::correlations(&flat.text, &mut found);
    interval::estimates(&flat.text, &mut found);
    counts::percentages(&flat.text, &mut found);
    counts::impossible(&flat.text, &mut found);
    counts::means(&flat.text, &mut found);
    let zones = flat.zones();
    let hidden = |at: usize| {
        let mut zones = zones.iter().take_while(|(_, range)| range.start <= at);
        zones.any(|(zone, range)| matches!(zone, Zone::Code | Zone::Bibliography) && range.contains(&at))
    };
    found.retain(|check| !hidden(check.range.start));
    found.sort_by_key(|check| (check.range.start, check.code));
    found
}

/// The one number of a text.
fn parse(text: &str) -> Option<Printed> {
    number::find(text.trim()).into_iter().next().map(|number| number.printed)
}

/// The least and the most that a printed number may stand for.
fn spread(printed: &Printed) -> (f64, f64) {
    (printed.value - printed.half(), printed.value + printed.half())
}

fn overlap(a: (f64, f64), b: (f64, f64)) -> bool {
    // What lies on the border of a float belongs to both.
    let slack = 1e-12 * (1.0 + a.0.abs().max(b.0.abs()));
    a.0 <= b.1 + slack && b.0 <= a.1 + slack
}

/// The paragraph about a place: where it begins, and its text.
fn paragraph(text: &str, at: usize) -> (usize, &str) {
    let start = text[..at].rfind("\n\n").map_or(0, |start| start + 2);
    let end = text[at..].find("\n\n").map_or(text.len(), |end| at + end);
    (start, &text[start..end])
}
