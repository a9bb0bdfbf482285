//! What a planned number of units can show at all: default methods and the smallest reachable p.
//!
//! Everything here is arithmetic on n, m and α, done before any value exists, and it is the arithmetic of
//! `avow-stats`, which the judgement after the run uses as well. This module only translates: the vocabulary
//! of a registered claim into that of statistics.

use std::fmt;

use avow_model::claim::{Bound, Method, Rule, Side};
use avow_stats::power::{Arms, Tails, t_power};
use avow_stats::reach::{Planned, Warning, at_registration};
use avow_stats::{Claim, Design, Level, Method as Tested, Region, Sample};

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
            _ if matches!(
                self.method,
                Method::LeastSquares | Method::Hc3 | Method::TheilSen | Method::PowerOffset
            ) =>
            {
                "points"
            }
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

/// Two or three significant digits: plain down to a millionth, then in scientific form.
pub(crate) fn rounded(q: f64) -> String {
    if q >= 0.1 {
        return format!("{}", (q * 1000.0).round() / 1000.0);
    }
    if q < 1e-6 {
        return format!("{q:.1e}");
    }
    let digits = (1.0 - q.log10().floor()).max(2.0) as usize;
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
        Method::Wilcoxon => "wilcoxon",
        Method::Percentile => "percentile",
        Method::Bca => "bca",
        Method::BootstrapT => "bootstrap-t",
        Method::Permutation => "permutation",
        Method::Student => "student",
        Method::MannWhitney => "mann-whitney",
        Method::Wilson => "wilson",
        Method::Newcombe => "newcombe",
        Method::Mcnemar => "mcnemar",
        Method::Fieller => "fieller",
        Method::Hc3 => "hc3",
        Method::TheilSen => "theil-sen",
        Method::PowerOffset => "power-offset",
        Method::Kappa => "kappa",
        Method::Page => "page",
        Method::Bounded => "bounded",
        Method::Sequential => "sequential",
        Method::RestrictedMean => "restricted-mean",
        Method::LogRank => "log-rank",
        Method::WorstGroup => "worst-group",
        Method::Consistency => "consistency",
        Method::None => "none",
    }
}

/// The default for paired differences and unit trends: sign-flip where it can decide with half a step to
/// spare, `2^(1−n) ≤ α/(2m)`, otherwise t.
pub(crate) fn paired_method(n: Option<u64>, level: Level, members: u64) -> Method {
    match n.map(|n| Design::Paired.auto(count(n), narrow(members), level)) {
        Some(Tested::SignFlip) => Method::SignFlip,
        _ => Method::T,
    }
}

fn count(n: u64) -> usize {
    usize::try_from(n).unwrap_or(usize::MAX)
}

fn narrow(members: u64) -> u32 {
    u32::try_from(members).unwrap_or(u32::MAX)
}

/// What is planned for one part of a claim.
pub(crate) struct Plan<'a> {
    pub rule: &'a Rule,
    pub method: Method,
    pub n: u64,
    /// Whether each unit belongs to one of two arms.
    pub two_arms: bool,
    /// Members that the correction counts.
    pub members: u64,
    pub level: Level,
}

/// What a plan can show.
pub(crate) struct Answer {
    pub smallest_q: f64,
    pub first_step_level: f64,
    pub reachable: bool,
    /// The least n that would do, where the plan is short of it, and a method that would work.
    pub short: Option<(usize, Option<&'static str>)>,
    /// Whether t has few units, and then its power at one standard deviation.
    pub few: Option<f64>,
}

/// The smallest possible q, whether it is within α/m, and what else to warn of.
pub(crate) fn answer(plan: &Plan<'_>) -> Option<Answer> {
    let n = count(plan.n);
    let planned = Planned {
        claim: claim(plan.rule)?,
        method: tested(plan.rule, plan.method)?,
        sample: if plan.two_arms { Sample::Two(n, n) } else { Sample::One(n) },
        members: narrow(plan.members),
        alpha: plan.level,
        pilot_sd: None,
    };
    let reach = at_registration(&planned);
    let mut answer = Answer {
        smallest_q: reach.smallest_q,
        first_step_level: reach.first_level.to_f64(),
        reachable: reach.reachable,
        short: None,
        few: None,
    };
    for warning in reach.warnings {
        match warning {
            Warning::BelowMinimumN { least, instead, .. } => {
                answer.short = Some((least, instead.map(Tested::word)));
            }
            Warning::FewUnits { .. } => {
                let arms = if plan.two_arms { Arms::Two } else { Arms::One };
                answer.few = Some(t_power(arms, 1.0, plan.n as f64, plan.level, Tails::Either));
            }
            // A pilot is not part of a spec yet, and most claims have no gap.
            Warning::RegionTooNarrow { .. } | Warning::NoGap => {}
        }
    }
    Some(answer)
}

fn tested(rule: &Rule, method: Method) -> Option<Tested> {
    Some(match method {
        Method::Permutation if matches!(rule, Rule::Correlation { .. }) => Tested::CorrelationPermutation,
        Method::Wilcoxon => Tested::Wilcoxon,
        Method::Percentile => Tested::Percentile,
        Method::Bca => Tested::Bca,
        Method::BootstrapT => Tested::BootstrapT,
        Method::Permutation => Tested::Permutation,
        Method::Student => Tested::Student,
        Method::MannWhitney => Tested::MannWhitney,
        Method::Wilson => Tested::Wilson,
        Method::Newcombe => Tested::Newcombe,
        Method::Mcnemar => Tested::McNemar,
        Method::Fieller => Tested::Fieller,
        Method::Hc3 => Tested::Hc3,
        Method::TheilSen => Tested::TheilSen,
        Method::PowerOffset => Tested::PowerOffset,
        Method::Kappa => Tested::Kappa,
        Method::Page => Tested::Page,
        Method::Bounded => Tested::Bounded,
        Method::Sequential => Tested::Sequential,
        Method::RestrictedMean => Tested::RestrictedMean,
        Method::LogRank => Tested::LogRank,
        Method::WorstGroup => Tested::WorstGroup,
        Method::Consistency => Tested::Consistency,
        Method::T => Tested::T,
        Method::SignFlip => Tested::SignFlip,
        Method::Welch => Tested::Welch,
        Method::OrderStatistics => Tested::OrderStatistics,
        Method::ClopperPearson => Tested::ClopperPearson,
        Method::Jackknife => Tested::UnitJackknife,
        Method::LeastSquares => Tested::LeastSquares,
        Method::None => return None,
    })
}

fn claim(rule: &Rule) -> Option<Claim> {
    let region = match rule {
        Rule::Threshold { bound, .. }
        | Rule::Difference { bound, .. }
        | Rule::Proportion { bound, .. }
        | Rule::Trend { bound, .. }
        | Rule::Slope { bound, .. }
        | Rule::Ratio { bound, .. }
        | Rule::Correlation { bound, .. }
        | Rule::Worst { bound, .. }
        | Rule::Calibration { bound, .. }
        | Rule::Agreement { bound, .. } => match *bound {
            Bound::Above { bound, refute } => Region::Above { bound, refute },
            Bound::Below { bound, refute } => Region::Below { bound, refute },
            Bound::Between { low, high } => Region::Between { low, high },
        },
        Rule::Equivalence { about, margin, .. } => Region::Equivalence { target: *about, margin: *margin },
        // Each point of a curve is an equivalence about the formula's value there.
        Rule::Curve { within, .. } => {
            Region::Equivalence { target: 0.0, margin: within.absolute + within.relative }
        }
        Rule::Exact { .. } | Rule::Reported { .. } => return None,
    };
    let side = match rule.inference()?.side {
        Side::Two => avow_stats::Side::Two,
        Side::One => avow_stats::Side::One,
    };
    Some(Claim::new(region.checked().ok()?).with_side(side))
}

/// The highest pooled rank correlation of `levels` equally filled levels with `n` distinct values each: ties
/// of the level keep it below 1.
pub(crate) fn pooled_ceiling(levels: u64, n: u64) -> f64 {
    let (total, tied) = ((levels as f64) * (n as f64), n as f64);
    ((total * total - tied * tied) / (total * total - 1.0)).sqrt()
}

#[cfg(test)]
mod tests {
    use avow_model::claim::{Condition, Inference};

    use super::*;

    fn alpha() -> Level {
        "0.05".parse().unwrap()
    }

    fn inference(method: Method, side: Side) -> Inference {
        Inference {
            method,
            side,
            deterministic: false,
            smallest: None,
            unpaired: false,
            equal_spread: false,
            log: false,
            until: None,
            range: None,
        }
    }

    fn smallest(rule: &Rule, method: Method, n: u64) -> (f64, bool) {
        let plan = Plan { rule, method, n, two_arms: false, members: 1, level: alpha() };
        let answer = answer(&plan).unwrap();
        (answer.smallest_q, answer.reachable)
    }

    #[test]
    fn the_default_for_pairs_turns_to_sign_flip_where_it_can_decide() {
        for (n, m, method) in [
            (3, 1, Method::T),
            (6, 1, Method::T),
            (7, 1, Method::SignFlip),
            (8, 4, Method::T),
            (9, 4, Method::SignFlip),
            (500, 1, Method::SignFlip),
        ] {
            assert_eq!(paired_method(Some(n), alpha(), m), method, "n {n}, m {m}");
        }
        assert_eq!(paired_method(None, alpha(), 1), Method::T);
    }

    #[test]
    fn the_smallest_q_of_eight_pairs() {
        let bound = Bound::Above { bound: 0.0, refute: 0.0 };
        let rule = |method, side| Rule::Difference { bound, inference: inference(method, side) };
        assert_eq!(smallest(&rule(Method::SignFlip, Side::Two), Method::SignFlip, 8), (0.0078125, true));
        assert_eq!(smallest(&rule(Method::SignFlip, Side::Two), Method::SignFlip, 5), (0.0625, false));
        assert_eq!(smallest(&rule(Method::SignFlip, Side::One), Method::SignFlip, 5), (0.03125, true));
        assert_eq!(smallest(&rule(Method::T, Side::Two), Method::T, 3), (0.0, true));
    }

    #[test]
    fn three_units_have_the_power_of_the_design() {
        let bound = Bound::Above { bound: 0.0, refute: 0.0 };
        let rule = Rule::Difference { bound, inference: inference(Method::T, Side::Two) };
        let plan = Plan { rule: &rule, method: Method::T, n: 3, two_arms: false, members: 1, level: alpha() };
        let power = answer(&plan).unwrap().few.unwrap();
        assert!((power - 0.179).abs() < 5e-4, "{power}");
    }

    #[test]
    fn a_proportion_reaches_a_power_of_its_bound() {
        let rule = Rule::Proportion {
            success: Condition::AtLeast(1.0),
            bound: Bound::Above { bound: 0.5, refute: 0.5 },
            inference: inference(Method::ClopperPearson, Side::Two),
        };
        let (five, six) =
            (smallest(&rule, Method::ClopperPearson, 5), smallest(&rule, Method::ClopperPearson, 6));
        assert!((five.0 - 0.0625).abs() < 1e-12 && !five.1);
        assert!((six.0 - 0.03125).abs() < 1e-12 && six.1);
    }

    #[test]
    fn four_levels_have_the_ceiling_of_the_design() {
        assert!((pooled_ceiling(4, 1_000_000) - 0.9682458366).abs() < 1e-9);
        assert!((pooled_ceiling(4, 1) - 1.0).abs() < 1e-12);
    }

    #[test]
    fn probabilities_are_rounded_for_people() {
        let shown = [1.0, 0.25, 0.0125, 0.0078125, 4.882e-4, 3e-15].map(rounded);
        assert_eq!(shown, ["1", "0.25", "0.013", "0.0078", "0.00049", "3.0e-15"]);
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
