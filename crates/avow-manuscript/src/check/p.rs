//! p-values from test statistics and their degrees of freedom.

use std::ops::Range;
use std::sync::LazyLock;

use avow_stats::special::{chi_square, incomplete_beta, normal, student};
use regex::{Captures, Regex};

use super::{Check, Code, NUMBER, Outcome, overlap, parse, spread};
use crate::number::Number;
use crate::printed::Printed;
use crate::rules::Rule;

/// A test whose p-value can be recomputed.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Test {
    T(f64),
    F(f64, f64),
    ChiSquare(f64),
    R(f64),
    Z,
}

impl Test {
    /// The two-sided p-value of a statistic; of F and χ² the upper tail, which is what is reported.
    fn p(self, value: f64) -> f64 {
        match self {
            Test::T(df) => 2.0 * student::above(value.abs(), df),
            Test::Z => 2.0 * normal::above(value.abs()),
            Test::ChiSquare(df) if value > 0.0 => chi_square::tails(value, df).1,
            Test::ChiSquare(_) => 1.0,
            Test::F(a, b) if value > 0.0 => {
                let scale = b + a * value;
                incomplete_beta(0.5 * b, 0.5 * a, b / scale, a * value / scale).0
            }
            Test::F(..) => 1.0,
            Test::R(_) if value.abs() >= 1.0 => 0.0,
            Test::R(df) => 2.0 * student::above(value.abs() * (df / (1.0 - value * value)).sqrt(), df),
        }
    }

    fn has_sides(self) -> bool {
        matches!(self, Test::T(_) | Test::R(_) | Test::Z)
    }
}

static PATTERN: LazyLock<Regex> = LazyLock::new(|| {
    let n = NUMBER;
    let df = r"\d+(?:\.\d+)?";
    Regex::new(&format!(
        r"(?x)
        (?: (?:^|[^\p{{L}}\d_\\]) (?:
            (?P<t>t) (?:_?\s*[({{]\s*|_)(?P<tdf>{df})\s*[)}}]?
          | (?P<f>F) (?:_?\s*[({{]\s*|_)(?P<fa>{df})\s*[,;]\s*(?P<fb>{df})\s*[)}}]?
          | (?P<c>χ|chi|X) (?:²|\^?\{{?2\}}?)? (?:_?\s*[({{]\s*|_)(?P<cdf>{df})\s*(?:,\s*[nN]\s*=\s*[\d,]+\s*)?[)}}]?
          | (?P<r>r|ρ|rho) (?:\s*\(\s*)(?P<rdf>{df})\s*\)
          | (?P<z>[zZ])
        ) \s*=\s* (?P<value>{n}) )
        (?: \s*[,;)]\s* [^\n;]{{0,60}}? )?? \s*[,;(]?\s* (?:and\s+)?
        (?:^|[^\p{{L}}]) [pP] \s* (?P<sign>[<>=≤≥]) \s* (?P<p>{n})"
    ))
    .expect("a pattern of this file is sound")
});

static ANY: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(&format!(r"(?:^|[^\p{{L}}\d_])[pP]\s*=\s*(?P<p>{NUMBER})"))
        .expect("a pattern of this file is sound")
});

/// Finds tests, recomputes their p-values and sets their degrees of freedom aside.
pub(super) fn tests(text: &str, numbers: &mut [Number], found: &mut Vec<Check>) {
    let mut covered: Vec<Range<usize>> = Vec::new();
    for captures in PATTERN.captures_iter(text) {
        let Some(check) = test(&captures) else { continue };
        for name in ["tdf", "fa", "fb", "cdf", "rdf"] {
            if let Some(df) = captures.name(name) {
                set_aside(numbers, df.range());
            }
        }
        covered.extend(captures.name("p").map(|p| p.range()));
        found.push(check);
    }
    for captures in ANY.captures_iter(text) {
        let Some(p) = captures.name("p") else { continue };
        let known = covered.iter().any(|range| range.start <= p.start() && p.start() < range.end);
        if !known {
            found.push(Check {
                code: Code::PAlone,
                range: p.range(),
                outcome: Outcome::Unknown,
                stated: p.as_str().to_owned(),
                recomputed: None,
            });
        }
    }
}

fn set_aside(numbers: &mut [Number], range: Range<usize>) {
    for number in numbers.iter_mut().filter(|n| n.range.start < range.end && range.start < n.range.end) {
        number.aside = Some(Rule::DegreesOfFreedom);
    }
}

fn test(captures: &Captures<'_>) -> Option<Check> {
    let df =
        |name: &str| captures.name(name).and_then(|m| m.as_str().parse::<f64>().ok()).filter(|df| *df > 0.0);
    let test = if captures.name("t").is_some() {
        Test::T(df("tdf")?)
    } else if captures.name("f").is_some() {
        Test::F(df("fa")?, df("fb")?)
    } else if captures.name("c").is_some() {
        Test::ChiSquare(df("cdf")?)
    } else if captures.name("r").is_some() {
        Test::R(df("rdf")?)
    } else {
        Test::Z
    };
    let value = parse(captures.name("value")?.as_str())?;
    let sign = captures.name("sign")?.as_str();
    let stated = captures.name("p")?;
    let p = parse(stated.as_str())?;
    if !(0.0..=1.0).contains(&p.value) {
        return Some(check(captures, Outcome::Inconsistent, sign, stated.as_str(), range(test, &value)));
    }
    let possible = range(test, &value);
    let outcome = outcome(test, possible, sign, &p);
    Some(check(captures, outcome, sign, stated.as_str(), possible))
}

fn check(captures: &Captures<'_>, outcome: Outcome, sign: &str, p: &str, recomputed: (f64, f64)) -> Check {
    let whole = captures.get(0).map_or(0..0, |m| m.range());
    // The match begins with the sign before the statistic.
    let first = ["t", "f", "c", "r", "z"].iter().find_map(|name| captures.name(name));
    let start = first.map_or(whole.start, |m| m.start());
    Check {
        code: Code::P,
        range: start..whole.end,
        outcome,
        stated: format!("p {sign} {p}"),
        recomputed: Some(recomputed),
    }
}

/// The p-values of all statistics that round to the printed one.
fn range(test: Test, value: &Printed) -> (f64, f64) {
    let (low, high) = spread(value);
    let (a, b) = (test.p(low), test.p(high));
    // A statistic that may be zero may have any p above.
    let most = if test.has_sides() && low <= 0.0 && high >= 0.0 { 1.0 } else { a.max(b) };
    (a.min(b), most)
}

fn outcome(test: Test, possible: (f64, f64), sign: &str, p: &Printed) -> Outcome {
    let stated = match sign {
        "<" | "≤" => (0.0, p.value),
        ">" | "≥" => (p.value, 1.0),
        _ => spread(p),
    };
    if overlap(possible, stated) {
        return Outcome::Consistent;
    }
    if test.has_sides() && overlap((possible.0 / 2.0, possible.1 / 2.0), stated) {
        return Outcome::OneSided;
    }
    let says = match sign {
        ">" | "≥" => p.value < 0.05,
        _ => p.value <= 0.05,
    };
    let other_side = if says && !matches!(sign, ">" | "≥") { possible.0 > 0.05 } else { possible.1 < 0.05 };
    if other_side { Outcome::Decision } else { Outcome::Inconsistent }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Vec<(Outcome, String)> {
        let mut numbers = crate::number::find(text);
        let mut found = Vec::new();
        tests(text, &mut numbers, &mut found);
        found.into_iter().map(|check| (check.outcome, check.stated)).collect()
    }

    fn one(text: &str) -> Outcome {
        let all = of(text);
        assert_eq!(all.len(), 1, "{text}: {all:?}");
        all[0].0
    }

    #[test]
    fn known_tests() {
        // Values from R: 2*pt(-2.31, 14), pf(4.12, 2, 27, lower=FALSE), pchisq(9.21, 2, lower=FALSE), and so on.
        let consistent = [
            "t(14) = 2.31, p = .037",
            "F(2, 27) = 4.12, p = .027",
            "χ²(2) = 9.21, p = .010",
            "χ^{2}(2, N = 40) = 9.21, p = .01",
            "r(38) = .35, p = .027",
            "z = 1.96, p = .05",
            "t(14) = 2.31, d = 0.6, p < .05",
            "t(28) = −2.31, p = .028",
            "t_{14} = 2.31, p = .037",
            "(t(14) = 2.3, p = .04)",
        ];
        for text in consistent {
            assert_eq!(one(text), Outcome::Consistent, "{text}");
        }
        assert_eq!(one("t(14) = 2.31, p = .018"), Outcome::OneSided);
        assert_eq!(one("t(14) = 2.31, p = .002"), Outcome::Inconsistent);
        assert_eq!(one("t(14) = 1.50, p = .03"), Outcome::Decision);
        assert_eq!(one("t(14) = 3.50, p = .30"), Outcome::Decision);
        assert_eq!(one("z = 1.20, p < .05"), Outcome::Decision);
        assert_eq!(one("the effect was clear (p = .03)"), Outcome::Unknown);
        assert_eq!(of("t(0) = 1, p = 1"), [(Outcome::Unknown, "1".to_owned())]);
    }
}
