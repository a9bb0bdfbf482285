//! What a planned number of units can show at all: default methods and the smallest reachable p.
//!
//! Everything here is arithmetic on n, m and α, done before any value exists. Powers of two are compared with
//! α as an exact decimal, never in floating point. The definitions are those of the statistics design
//! (sections 1, 2 and 14): sign-flip and medians reach q = 2^(1−n) at best, Clopper–Pearson 2·bⁿ.

use std::fmt;

use avow_model::claim::{Bound, Method, Side};

use crate::units;

/// What the plan of one inferential part can show.
#[derive(Clone, Debug, PartialEq)]
pub struct Reach {
    /// The claim.
    pub claim: String,
    /// The rule's word.
    pub rule: &'static str,
    /// The resolved method.
    pub method: Method,
    /// Planned units (of the smaller arm, where two arms do not pair); `None` where a record key's values
    /// are not known beforehand.
    pub n: Option<u64>,
    /// Whether the units are pairs.
    pub paired: bool,
    /// One or two sides.
    pub side: Side,
    /// The smallest possible decision p-value; 0 for a method that knows no limit, `None` for unknown n.
    pub smallest_q: Option<f64>,
    /// The level of the family's first step, α/m.
    pub first_step_level: f64,
    /// Members of the family.
    pub members: u64,
    /// Whether the claim can be decided at all.
    pub reachable: bool,
}

impl fmt::Display for Reach {
    /// `8 pairs: smallest possible two-sided p is 0.0078`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unit = match (self.paired, self.n) {
            _ if self.method == Method::LeastSquares => "points",
            (true, Some(1)) => "pair",
            (true, _) => "pairs",
            (false, Some(1)) => "unit",
            (false, _) => "units",
        };
        match self.n {
            Some(n) => write!(f, "{n} {unit}: ")?,
            None => write!(f, "an unknown number of {unit}: ")?,
        }
        let side = match self.side {
            Side::Two => "two-sided",
            Side::One => "one-sided",
        };
        match self.smallest_q {
            Some(q) if q > 0.0 => write!(f, "smallest possible {side} p is {}", rounded(q)),
            Some(_) => write!(f, "{} has no smallest p", word(self.method)),
            None => write!(f, "the smallest possible p is not known"),
        }
    }
}

/// Two significant digits, plain.
pub(crate) fn rounded(q: f64) -> String {
    if q >= 0.1 {
        return format!("{}", (q * 1000.0).round() / 1000.0);
    }
    let digits = (1.0 - q.log10().floor()).clamp(2.0, 12.0) as usize;
    let text = format!("{q:.digits$}");
    text.trim_end_matches('0').to_owned()
}

/// The word of a method in specs.
pub(crate) fn word(method: Method) -> &'static str {
    match method {
        Method::T => "t",
        Method::SignFlip => "sign-flip",
        Method::Welch => "welch",
        Method::OrderStatistics => "order-statistics",
        Method::ClopperPearson => "clopper-pearson",
        Method::Jackknife => "jackknife",
        Method::LeastSquares => "least-squares",
        Method::None => "none",
    }
}

/// A level as an exact decimal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Level {
    pub digits: u128,
    pub places: u32,
}

impl Level {
    /// Reads a share such as `0.05` or `5%`.
    pub(crate) fn parse(text: &str) -> Option<Level> {
        let spelled = units::share(text)?;
        units::decimal(&spelled).map(|(digits, places)| Level { digits, places })
    }

    /// Its one spelling.
    pub(crate) fn spelled(&self) -> String {
        units::spell(self.digits, self.places)
    }

    /// Whether `1/2^k ≤ α/divisor`, exactly.
    fn allows_power(&self, k: u64, divisor: u64) -> bool {
        let Some(one) = 10_u128.checked_pow(self.places).and_then(|one| one.checked_mul(u128::from(divisor))) else {
            return false;
        };
        match u32::try_from(k).ok().and_then(|k| self.digits.checked_shl(k).filter(|x| x >> k == self.digits)) {
            Some(scaled) if k < 128 => one <= scaled,
            // Beyond 2^128 the power is smaller than any level that can be written.
            _ => self.digits > 0,
        }
    }

    /// As a float, for display and for limits that are no powers of two.
    pub(crate) fn number(&self) -> f64 {
        self.spelled().parse().unwrap_or(f64::NAN)
    }
}

/// The default for paired differences and unit trends: sign-flip where it can decide with half a step to
/// spare, `2^(1−n) ≤ α/(2m)`, otherwise t.
pub(crate) fn paired_method(n: Option<u64>, level: &Level, members: u64) -> Method {
    let enough = n.is_some_and(|n| n >= 1 && level.allows_power(n - 1, members.max(1).saturating_mul(2)));
    if enough { Method::SignFlip } else { Method::T }
}

/// The fewest units with which a method says anything.
pub(crate) fn least(method: Method) -> u64 {
    match method {
        Method::T | Method::Welch => 2,
        Method::SignFlip | Method::OrderStatistics => 2,
        Method::Jackknife => 5,
        Method::LeastSquares => 4,
        Method::ClopperPearson | Method::None => 1,
    }
}

/// The question that a reach answers.
pub(crate) struct Question<'a> {
    pub method: Method,
    pub n: Option<u64>,
    pub side: Side,
    /// Whether the decision p is that of an equivalence (the larger of two one-sided ones, not doubled).
    pub equivalence: bool,
    /// The bound of a proportion.
    pub share: Option<&'a Bound>,
    pub level: &'a Level,
    pub members: u64,
}

/// The smallest possible q, and whether it is within α/m.
pub(crate) fn answer(question: &Question<'_>) -> (Option<f64>, bool) {
    let Some(n) = question.n else { return (None, true) };
    if n < least(question.method) {
        return (Some(1.0), false);
    }
    let single = question.equivalence || question.side == Side::One;
    match question.method {
        Method::SignFlip | Method::OrderStatistics => {
            let k = if single { n } else { n - 1 };
            let q = 0.5_f64.powi(i32::try_from(k).unwrap_or(i32::MAX));
            (Some(q), question.level.allows_power(k, question.members.max(1)))
        }
        Method::ClopperPearson => {
            let power = |base: f64| base.powi(i32::try_from(n).unwrap_or(i32::MAX));
            let one = match question.share {
                Some(Bound::Above { bound, .. }) => power(*bound),
                Some(Bound::Below { bound, .. }) => power(1.0 - bound),
                _ => 0.0,
            };
            let q = if single { one } else { (2.0 * one).min(1.0) };
            (Some(q), q <= question.level.number() / question.members.max(1) as f64)
        }
        _ => (Some(0.0), true),
    }
}

/// The highest pooled rank correlation of `levels` equally filled levels with `n` distinct values each: ties
/// of the level keep it below 1.
pub(crate) fn pooled_ceiling(levels: u64, n: u64) -> f64 {
    let (total, tied) = ((levels as f64) * (n as f64), n as f64);
    ((total * total - tied * tied) / (total * total - 1.0)).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn level(text: &str) -> Level {
        Level::parse(text).unwrap()
    }

    #[test]
    fn the_default_for_pairs_turns_to_sign_flip_where_it_can_decide() {
        let alpha = level("0.05");
        for (n, m, method) in [
            (3, 1, Method::T),
            (6, 1, Method::T),
            (7, 1, Method::SignFlip),
            (8, 4, Method::T),
            (9, 4, Method::SignFlip),
            (500, 1, Method::SignFlip),
        ] {
            assert_eq!(paired_method(Some(n), &alpha, m), method, "n {n}, m {m}");
        }
        assert_eq!(paired_method(None, &alpha, 1), Method::T);
    }

    #[test]
    fn the_smallest_q_of_eight_pairs() {
        let alpha = level("5%");
        let question = |n, method, side| Question {
            method,
            n: Some(n),
            side,
            equivalence: false,
            share: None,
            level: &alpha,
            members: 1,
        };
        assert_eq!(answer(&question(8, Method::SignFlip, Side::Two)), (Some(0.0078125), true));
        assert_eq!(answer(&question(5, Method::SignFlip, Side::Two)), (Some(0.0625), false));
        assert_eq!(answer(&question(5, Method::SignFlip, Side::One)), (Some(0.03125), true));
        assert_eq!(answer(&question(6, Method::OrderStatistics, Side::Two)), (Some(0.03125), true));
        assert_eq!(answer(&question(4, Method::Jackknife, Side::Two)), (Some(1.0), false));
    }

    #[test]
    fn a_proportion_reaches_a_power_of_its_bound() {
        let alpha = level("0.05");
        let bound = Bound::Above { bound: 0.5, refute: 0.5 };
        let question = |n| Question {
            method: Method::ClopperPearson,
            n: Some(n),
            side: Side::Two,
            equivalence: false,
            share: Some(&bound),
            level: &alpha,
            members: 1,
        };
        assert_eq!(answer(&question(5)), (Some(0.0625), false));
        assert_eq!(answer(&question(6)), (Some(0.03125), true));
    }

    #[test]
    fn four_levels_have_the_ceiling_of_the_design() {
        assert!((pooled_ceiling(4, 1_000_000) - 0.9682458366).abs() < 1e-9);
        assert!((pooled_ceiling(4, 1) - 1.0).abs() < 1e-12);
    }

    #[test]
    fn the_sentence_of_check() {
        let reach = Reach {
            claim: "helps".to_owned(),
            rule: "difference",
            method: Method::SignFlip,
            n: Some(8),
            paired: true,
            side: Side::Two,
            smallest_q: Some(0.0078125),
            first_step_level: 0.05,
            members: 1,
            reachable: true,
        };
        assert_eq!(reach.to_string(), "8 pairs: smallest possible two-sided p is 0.0078");
    }
}
