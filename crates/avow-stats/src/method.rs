//! The methods that exist, the designs they serve, and how `auto` picks one.
//!
//! `auto` is resolved at registration from the planned number of units, the family size and the design. It
//! never looks at data, and an amendment that changes n does not resolve it again. The list of methods is
//! closed to what works.

use crate::level::Level;
use std::fmt;

/// A way to get p-values and intervals.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Method {
    /// Student's t over one number per unit.
    T,
    /// Exact (n ≤ 20) or Monte Carlo sign-flip of one number per unit.
    SignFlip,
    /// Welch's t for two independent arms.
    Welch,
    /// Order statistics, for a median.
    OrderStatistics,
    /// The exact binomial interval of a share.
    ClopperPearson,
    /// t on the z scale with a standard error by deleting one unit, for a pooled rank correlation.
    UnitJackknife,
    /// Ordinary least squares over points, t with k − 2 degrees of freedom.
    LeastSquares,
    /// Wilcoxon's signed ranks: order statistics of the Walsh averages.
    Wilcoxon,
    /// The percentile bootstrap.
    Percentile,
    /// The bias-corrected and accelerated bootstrap.
    Bca,
    /// The studentised bootstrap.
    BootstrapT,
    /// Permutation of the labels of two arms.
    Permutation,
    /// Student's t with pooled variance.
    Student,
    /// Mann and Whitney's rank sum: order statistics of the pairwise differences.
    MannWhitney,
    /// Wilson's score interval of a share.
    Wilson,
    /// Two shares: Fisher's exact test at 0, Newcombe's interval elsewhere.
    Newcombe,
    /// Pairs of outcomes: McNemar's exact test.
    McNemar,
    /// Fieller's interval of a ratio of means.
    Fieller,
    /// A correlation: permutation at 0, z elsewhere.
    CorrelationPermutation,
    /// Least squares with standard errors that allow unequal spread.
    Hc3,
    /// The median of pairwise slopes.
    TheilSen,
    /// A power law with an offset, by the profile of the sum of squares.
    PowerOffset,
    /// κ with the large-sample standard error of Fleiss, Cohen and Everitt.
    Kappa,
    /// A statistic with the standard error of leaving one item out.
    Jackknife,
    /// Betting on a bounded value.
    Bounded,
    /// The t-mixture confidence sequence.
    Sequential,
    /// Page's L for a trend over complete units.
    Page,
    /// The mean time up to τ by the survival curve, for values that were cut off.
    RestrictedMean,
    /// The log-rank test of two arms of values that were cut off.
    LogRank,
    /// The lowest or highest of several means, re-selected in each draw.
    WorstGroup,
    /// Labels drawn from the forecasts themselves.
    Consistency,
}

impl Method {
    /// Every method, for lists and messages.
    pub const ALL: [Method; 31] = [
        Method::T,
        Method::SignFlip,
        Method::Welch,
        Method::OrderStatistics,
        Method::ClopperPearson,
        Method::UnitJackknife,
        Method::LeastSquares,
        Method::Wilcoxon,
        Method::Percentile,
        Method::Bca,
        Method::BootstrapT,
        Method::Permutation,
        Method::Student,
        Method::MannWhitney,
        Method::Wilson,
        Method::Newcombe,
        Method::McNemar,
        Method::Fieller,
        Method::CorrelationPermutation,
        Method::Hc3,
        Method::TheilSen,
        Method::PowerOffset,
        Method::Kappa,
        Method::Jackknife,
        Method::Bounded,
        Method::Sequential,
        Method::Page,
        Method::RestrictedMean,
        Method::LogRank,
        Method::WorstGroup,
        Method::Consistency,
    ];

    /// The word of the method in specs and outputs.
    pub fn word(self) -> &'static str {
        match self {
            Method::T => "t",
            Method::SignFlip => "sign-flip",
            Method::Welch => "welch",
            Method::OrderStatistics => "order-statistics",
            Method::ClopperPearson => "clopper-pearson",
            Method::UnitJackknife => "jackknife",
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
            Method::McNemar => "mcnemar",
            Method::Fieller => "fieller",
            Method::CorrelationPermutation => "correlation-permutation",
            Method::Hc3 => "hc3",
            Method::TheilSen => "theil-sen",
            Method::PowerOffset => "power-offset",
            Method::Kappa => "kappa",
            Method::Jackknife => "item-jackknife",
            Method::Bounded => "bounded",
            Method::Sequential => "sequential",
            Method::Page => "page",
            Method::RestrictedMean => "restricted-mean",
            Method::LogRank => "log-rank",
            Method::WorstGroup => "worst-group",
            Method::Consistency => "consistency",
        }
    }

    /// The method of that word.
    pub fn from_word(word: &str) -> Option<Method> {
        Method::ALL.into_iter().find(|m| m.word() == word)
    }

    /// The smallest number of units (each arm's, for two) at which the method can be of use: where it is
    /// defined, or, for the exact methods, where it can decide one two-sided claim at 5 %.
    pub fn minimum_n(self) -> usize {
        match self {
            Method::T
            | Method::Welch
            | Method::Student
            | Method::ClopperPearson
            | Method::Wilson
            | Method::Newcombe
            | Method::Fieller
            | Method::Page
            | Method::Bounded
            | Method::LogRank => 2,
            Method::Permutation | Method::MannWhitney | Method::LeastSquares | Method::Hc3 => 4,
            Method::UnitJackknife
            | Method::CorrelationPermutation
            | Method::PowerOffset
            | Method::Sequential
            | Method::Jackknife => 5,
            Method::SignFlip
            | Method::OrderStatistics
            | Method::Wilcoxon
            | Method::McNemar
            | Method::TheilSen => 6,
            Method::Percentile | Method::Bca | Method::BootstrapT => 10,
            Method::RestrictedMean => crate::survival::LEAST_UNITS,
            Method::WorstGroup => crate::bootstrap::LEAST_CLUSTERS,
            Method::Consistency => crate::calibration::LEAST_FORECASTS,
            Method::Kappa => 30,
        }
    }
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// What is compared, for the choice of a method.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Design {
    /// A mean over units against a bound.
    Mean,
    /// A median over units against a bound.
    Median,
    /// A difference of two arms over units that pair.
    Paired,
    /// A difference of two independent arms.
    Unpaired,
    /// A share of successes in one arm.
    Proportion,
    /// A trend as the mean of within-unit rank correlations, bound 0.
    TrendOfUnits,
    /// A trend as one rank correlation over all cells.
    TrendPooled,
    /// A slope per unit, averaged.
    SlopeOfUnits,
    /// A slope over points without units.
    SlopeOfPoints,
    /// A ratio of two arms over units that pair.
    RatioPaired,
    /// A ratio of two independent arms.
    RatioUnpaired,
    /// A difference of two independent shares.
    TwoShares,
    /// A difference of shares over pairs of outcomes.
    PairedShares,
    /// A correlation of two selections.
    Correlation,
    /// A contrast of independent arms.
    Contrast,
    /// The agreement of two raters.
    Agreement,
}

impl Design {
    /// What `method: auto` means for `units` planned units in a family of `members` at level `alpha`.
    pub fn auto(self, units: usize, members: u32, alpha: Level) -> Method {
        match self {
            Design::Mean | Design::SlopeOfUnits => Method::T,
            Design::Median => Method::OrderStatistics,
            Design::Paired | Design::TrendOfUnits => {
                if alpha.leaves_room_for_signs(units, members) {
                    Method::SignFlip
                } else {
                    Method::T
                }
            }
            Design::Unpaired | Design::RatioUnpaired | Design::Contrast => Method::Welch,
            Design::RatioPaired => Method::T,
            Design::TwoShares => Method::Newcombe,
            Design::PairedShares => Method::McNemar,
            Design::Correlation => Method::CorrelationPermutation,
            Design::Agreement => Method::Kappa,
            Design::Proportion => Method::ClopperPearson,
            Design::TrendPooled => Method::UnitJackknife,
            Design::SlopeOfPoints => Method::LeastSquares,
        }
    }

    /// The methods that may be named for this design, the defaults included.
    pub fn methods(self) -> &'static [Method] {
        match self {
            Design::Mean | Design::Paired => &[
                Method::T,
                Method::SignFlip,
                Method::Wilcoxon,
                Method::Percentile,
                Method::Bca,
                Method::BootstrapT,
            ],
            Design::TrendOfUnits => &[Method::T, Method::SignFlip, Method::Page],
            Design::SlopeOfUnits => &[
                Method::T,
                Method::SignFlip,
                Method::Wilcoxon,
                Method::Percentile,
                Method::Bca,
                Method::BootstrapT,
            ],
            Design::Median => &[Method::OrderStatistics, Method::Bca],
            Design::Unpaired => &[
                Method::Welch,
                Method::Permutation,
                Method::Student,
                Method::MannWhitney,
                Method::Percentile,
                Method::Bca,
                Method::BootstrapT,
            ],
            Design::Proportion => &[Method::ClopperPearson, Method::Wilson],
            Design::TrendPooled => &[Method::UnitJackknife],
            Design::SlopeOfPoints => {
                &[Method::LeastSquares, Method::Hc3, Method::TheilSen, Method::PowerOffset]
            }
            Design::RatioPaired => &[Method::T, Method::Fieller],
            Design::RatioUnpaired | Design::Contrast => &[Method::Welch],
            Design::TwoShares => &[Method::Newcombe],
            Design::PairedShares => &[Method::McNemar],
            Design::Correlation => &[Method::CorrelationPermutation],
            Design::Agreement => &[Method::Kappa, Method::Jackknife],
        }
    }
}

/// How many units a result rests on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Sample {
    /// Units, pairs, trials or points of one group.
    One(usize),
    /// Units of two independent arms.
    Two(usize, usize),
}

impl Sample {
    /// All units together.
    pub fn total(self) -> usize {
        match self {
            Sample::One(n) => n,
            Sample::Two(first, second) => first + second,
        }
    }

    /// The units of the smaller arm.
    pub fn smallest(self) -> usize {
        match self {
            Sample::One(n) => n,
            Sample::Two(first, second) => first.min(second),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_come_back() {
        for method in Method::ALL {
            assert_eq!(Method::from_word(method.word()), Some(method));
        }
        assert_eq!(Method::from_word("anova"), None);
    }

    #[test]
    fn auto_follows_planned_n_and_family() {
        let alpha: Level = "0.05".parse().unwrap();
        assert_eq!(Design::Paired.auto(6, 1, alpha), Method::T);
        assert_eq!(Design::Paired.auto(7, 1, alpha), Method::SignFlip);
        assert_eq!(Design::Paired.auto(8, 4, alpha), Method::T);
        assert_eq!(Design::Paired.auto(9, 4, alpha), Method::SignFlip);
        assert_eq!(Design::TrendOfUnits.auto(20, 1, alpha), Method::SignFlip);
        assert_eq!(Design::Mean.auto(50, 1, alpha), Method::T);
        assert_eq!(Design::Unpaired.auto(50, 1, alpha), Method::Welch);
    }
}
