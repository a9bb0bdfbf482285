//! Claims as registered: which numbers, reduced how, decided by which rule.
//!
//! A claim here is complete: every default has been filled in, every `auto` method resolved from the planned
//! number of units. The analysis only carries it out.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::expression::Expression;
use crate::value::Value;

/// A statement with the rule that decides it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Claim {
    /// Its name in the spec.
    pub name: String,
    /// What it says, in the author's words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub says: Option<String>,
    /// Its tier.
    pub tier: Tier,
    /// The family whose error rate it shares; by default the tier's word.
    pub family: String,
    /// How the family is corrected (the same for every member).
    pub correct: Correction,
    /// The level, as an exact decimal, e.g. `0.05`.
    pub alpha: String,
    /// Claims that must be Supported, else this one is Void.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub requires: Vec<String>,
    /// Registered text printed under a verdict, by the verdict's word in lower case.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub means: BTreeMap<String, String>,
    /// What the claim does not speak about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub silent_on: Option<String>,
    /// The claim before it in a fixed sequence: tested only once that one is Supported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
    /// Its share of α among the heads of sequences, as an exact decimal; absent: 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weight: Option<String>,
    /// A family all of whose claims must be Supported before this one is tested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gate: Option<String>,
    /// Whether it may be looked at after every unit, in registered order.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub sequential: bool,
    /// How it is tested.
    pub test: Test,
}

/// The tier of a claim; families never cross tiers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Tier {
    /// Decides; corrected together.
    Primary,
    /// Decides; corrected apart from the primary ones.
    Secondary,
    /// Estimates and unadjusted intervals, no verdict words.
    Descriptive,
    /// Shown apart, never a verdict.
    Exploratory,
}

impl Tier {
    /// The word used in a spec.
    pub fn word(self) -> &'static str {
        match self {
            Tier::Primary => "primary",
            Tier::Secondary => "secondary",
            Tier::Descriptive => "descriptive",
            Tier::Exploratory => "exploratory",
        }
    }
}

/// How a family's p-values are corrected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Correction {
    /// Holm 1979.
    Holm,
    /// Bonferroni.
    Bonferroni,
    /// Hochberg 1988, under independence or positive dependence.
    Hochberg,
    /// Hommel 1988, under independence or positive dependence.
    Hommel,
    /// Benjamini and Hochberg 1995: the false discovery rate.
    Bh,
    /// Benjamini and Yekutieli 2001: the false discovery rate under any dependence.
    By,
    /// Holm with α/(2m − r) for each side after r rejections: errors of direction are controlled under any dependence.
    HolmStrict,
    /// The largest statistic under one permutation for all members (Westfall and Young 1993).
    Max,
    /// None, and every output says so.
    None,
}

/// A test: one part, or a combination of tests.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Test {
    /// One rule on one selection; `per` makes one family member per value.
    One(Box<Part>),
    /// All of these (a part with `per` counts once per value); one family member.
    All(Vec<Test>),
    /// At least one of these; one family member.
    Any(Vec<Test>),
    /// How many values of a dimension hold, without inference: arithmetic about these units.
    Count(Box<Count>),
    /// Nothing measures it (a theorem): Void.
    Unmeasured,
}

/// At least so many values of a dimension hold.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Count {
    /// The dimension whose values are counted.
    pub over: String,
    /// How many must hold.
    pub at_least: u64,
    /// What must hold at a value: parts are judged by their estimates there.
    pub of: Test,
}

/// One selection and its rule.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Part {
    /// Which numbers.
    pub select: Selection,
    /// A contrast over one axis or record key: first minus second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compare: Option<Compare>,
    /// A second contrast, crossed with the first: the difference of differences.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub crossed: Option<Compare>,
    /// Dimensions folded away, in this order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reduce: Vec<Reduce>,
    /// Dimensions whose every value makes a member of its own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub per: Vec<String>,
    /// The dimension whose values are the units.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replicate: Option<String>,
    /// The dimension that names what is sampled independently: units of one cluster become one number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clusters: Option<String>,
    /// The dimension within whose values units are drawn, each keeping its number of units; for resampling.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strata: Option<String>,
    /// Whether clusters count by their units (θ is the mean of all units) instead of equally.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub by_units: bool,
    /// A second dimension that is sampled as well and crosses the units: the claim is about both, and the larger p of the
    /// two decides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub also: Option<String>,
    /// What must be equal between the arms of the contrast, but for what is named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control: Option<Control>,
    /// What happens to units that are missing or not finite.
    pub missing: Missing,
    /// Whether the interval or the estimate alone decides.
    pub judge: Judge,
    /// The rule.
    pub rule: Rule,
}

impl Test {
    /// Every part, however nested, in order.
    pub fn parts(&self) -> Vec<&Part> {
        match self {
            Test::One(part) => vec![part],
            Test::All(tests) | Test::Any(tests) => tests.iter().flat_map(Test::parts).collect(),
            Test::Count(count) => count.of.parts(),
            Test::Unmeasured => Vec::new(),
        }
    }
}

impl Part {
    /// Every selection the part reads.
    pub fn selections(&self) -> impl Iterator<Item = &Selection> {
        let other = match &self.rule {
            Rule::Correlation { with, .. } | Rule::Calibration { with, .. } => Some(with),
            _ => None,
        };
        std::iter::once(&self.select).chain(other)
    }
}

/// Which numbers a part reads.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Selection {
    /// The stage.
    pub stage: String,
    /// What of it.
    pub of: Selected,
    /// Only records whose dimension has one of these values (axes, attributes such as `model.lab`, record
    /// keys).
    #[serde(default, rename = "where", skip_serializing_if = "BTreeMap::is_empty")]
    pub filter: BTreeMap<String, Vec<Value>>,
}

/// A measurement by name, or an output by its bytes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Selected {
    /// A measurement.
    Measurement(String),
    /// The digest of an output (for `exact` only).
    Output(String),
}

/// First minus second, over one dimension.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Compare {
    /// The axis or record key.
    pub dimension: String,
    /// The value of the first arm.
    pub first: Value,
    /// The value of the second arm.
    pub second: Value,
}

/// A matched control: the arms of the contrast are equal but for what is named.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Control {
    /// The stage whose members must match, with everything upstream of them.
    pub of: String,
    /// Axes, or attributes of an axis (`arm.decay`), that may differ; sorted.
    pub equal_except: Vec<String>,
}

/// Folds one dimension away.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Reduce {
    /// The axis or record key.
    pub dimension: String,
    /// How.
    pub by: Reduction,
}

/// How several numbers become one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reduction {
    /// The arithmetic mean.
    Mean,
    /// The median (the mean of the middle two where even).
    Median,
    /// The smallest.
    Min,
    /// The largest.
    Max,
    /// The sum.
    Sum,
}

/// What missing and non-finite units do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Missing {
    /// Any of them voids the claim.
    Void,
    /// They are dropped and counted; above this share (an exact decimal) the claim is void.
    Drop {
        /// Share of planned units, strictly above which the claim is void.
        void_above: String,
    },
}

/// What decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Judge {
    /// The interval (or its p-value).
    Interval,
    /// The estimate alone; printed as such, outside families.
    Estimate,
}

/// Two-sided by default.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Side {
    /// q is twice the smaller one-sided p.
    Two,
    /// q is the smaller one-sided p.
    One,
}

/// The region a claim is about, and its opposite.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Bound {
    /// θ > bound; opposite θ < refute.
    Above {
        /// The bound.
        bound: f64,
        /// Where the opposite begins; the bound itself by default.
        refute: f64,
    },
    /// θ < bound; opposite θ > refute.
    Below {
        /// The bound.
        bound: f64,
        /// Where the opposite begins; the bound itself by default.
        refute: f64,
    },
    /// low < θ < high; outside.
    Between {
        /// Lower bound.
        low: f64,
        /// Upper bound.
        high: f64,
    },
}

/// A tolerance: absolute, or relative to the reference's size.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Tolerance {
    /// In units of the value.
    #[serde(default)]
    pub absolute: f64,
    /// As a share of the reference.
    #[serde(default)]
    pub relative: f64,
}

/// A resolved method; `statistics.md` names and defines each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    /// Student's t on unit values or paired differences.
    T,
    /// Sign flips of paired differences (Hartigan's typical values).
    SignFlip,
    /// Welch's t for two independent arms.
    Welch,
    /// Order statistics for a median.
    OrderStatistics,
    /// Clopper and Pearson's exact interval.
    ClopperPearson,
    /// Jackknife over units on Fisher's z.
    Jackknife,
    /// Ordinary least squares over the points, without units.
    LeastSquares,
    /// Wilcoxon's signed ranks.
    Wilcoxon,
    /// The percentile bootstrap.
    Percentile,
    /// The bias-corrected and accelerated bootstrap.
    Bca,
    /// The studentised bootstrap.
    BootstrapT,
    /// Permutation of labels: of two arms, or of one side of a correlation or agreement at bound 0.
    Permutation,
    /// Student's t of two arms with pooled variance.
    Student,
    /// Mann and Whitney's rank sum.
    MannWhitney,
    /// Wilson's score interval.
    Wilson,
    /// Two shares: Fisher's exact test at 0, Newcombe's interval elsewhere.
    Newcombe,
    /// Pairs of outcomes: McNemar's exact test.
    Mcnemar,
    /// Fieller's interval of a ratio of arithmetic means.
    Fieller,
    /// Least squares with standard errors that allow unequal spread (HC3).
    Hc3,
    /// The median of pairwise slopes.
    TheilSen,
    /// A power law with an offset, by the profile of the sum of squares.
    PowerOffset,
    /// κ with its large-sample standard error.
    Kappa,
    /// Page's L.
    Page,
    /// Betting on values in a declared range.
    Bounded,
    /// The t-mixture, valid at every look.
    Sequential,
    /// The mean time up to τ by the survival curve.
    RestrictedMean,
    /// The log-rank test of two arms.
    LogRank,
    /// The lowest or highest of several means, re-selected in each draw.
    WorstGroup,
    /// Labels drawn from the forecasts themselves.
    Consistency,
    /// No inference.
    None,
}

/// What a threshold is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Statistic {
    /// The mean over units.
    Mean,
    /// The median over units.
    Median,
    /// Every unit.
    Every,
}

/// Which rank correlation a trend uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RankStatistic {
    /// Spearman's ρ.
    Spearman,
    /// Kendall's τ-b.
    Kendall,
}

/// What a trend is a property of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TrendOf {
    /// The mean over units of the correlation within a unit.
    Unit,
    /// The correlation over all cells.
    Pooled,
}

/// How far apart two categories of raters are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Weighting {
    /// Any disagreement counts the same.
    None,
    /// Disagreement grows with the distance.
    Linear,
    /// Disagreement grows with its square.
    Quadratic,
}

/// Which correlation of two selections.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Coefficient {
    /// Spearman's ρ.
    Spearman,
    /// Kendall's τ-b.
    Kendall,
    /// The product-moment correlation.
    Pearson,
}

/// Which of several groups is the worst.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Extreme {
    /// That with the lowest mean.
    Lowest,
    /// That with the highest mean.
    Highest,
}

/// How a calibration error is estimated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CalibrationError {
    /// Σ(k/N)[(ȳ − c̄)² − ȳ(1 − ȳ)/(k − 1)].
    DebiasedSquare,
    /// Σ(k/N)|ȳ − c̄|, which is biased up.
    Expected,
    /// √Σ(k/N)(ȳ − c̄)², which is biased up.
    RootMeanSquare,
}

/// Whether a slope is of values or of their logarithms.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scale {
    /// As they are.
    Linear,
    /// Natural logarithms of both.
    LogLog,
}

/// When a unit counts as a success.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Condition {
    /// value > x
    Above(f64),
    /// value ≥ x
    AtLeast(f64),
    /// value < x
    Below(f64),
    /// value ≤ x
    AtMost(f64),
}

/// Settings that the inferential rules share.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Inference {
    /// The resolved method.
    pub method: Method,
    /// One or two sides.
    pub side: Side,
    /// Registered as `variation: none`: the quantity is deterministic, so position decides.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub deterministic: bool,
    /// The smallest effect of interest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub smallest: Option<f64>,
    /// Whether the units of two arms do not pair, where the method alone does not say it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unpaired: bool,
    /// Registered as `assume: equal-spread`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub equal_spread: bool,
    /// Whether values are taken on the logarithmic scale, so that θ is a geometric mean.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub log: bool,
    /// τ, up to which the restricted mean is taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<f64>,
    /// The range in which all values lie, for `bounded`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub range: Option<(f64, f64)>,
}

impl Inference {
    /// Whether two arms are compared as independent samples.
    pub fn is_unpaired(&self) -> bool {
        let by_method = matches!(
            self.method,
            Method::Welch | Method::Student | Method::MannWhitney | Method::Newcombe | Method::LogRank
        );
        self.unpaired || by_method
    }
}

/// The rule that decides.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Rule {
    /// A level against one or two bounds.
    Threshold {
        /// Of what.
        statistic: Statistic,
        /// The claim's region.
        bound: Bound,
        /// How it is inferred.
        inference: Inference,
    },
    /// A contrast of two arms against bounds.
    Difference {
        /// The claim's region.
        bound: Bound,
        /// How it is inferred.
        inference: Inference,
    },
    /// A level or contrast within a margin.
    Equivalence {
        /// The centre τ.
        about: f64,
        /// The margin δ.
        margin: f64,
        /// How it is inferred.
        inference: Inference,
    },
    /// The share of units that succeed.
    Proportion {
        /// What success is.
        success: Condition,
        /// The claim's region.
        bound: Bound,
        /// How it is inferred.
        inference: Inference,
    },
    /// A monotone relation along a dimension.
    Trend {
        /// The dimension, with three or more levels.
        along: String,
        /// The correlation.
        statistic: RankStatistic,
        /// Of units, or pooled.
        of: TrendOf,
        /// The claim's region.
        bound: Bound,
        /// How it is inferred.
        inference: Inference,
    },
    /// The mean follows a formula along a dimension.
    Curve {
        /// The dimension.
        along: String,
        /// The formula, over `axes.…` and `params.…` (record keys as `keys.…`).
        formula: Expression,
        /// How near.
        within: Tolerance,
        /// How it is inferred.
        inference: Inference,
    },
    /// A least-squares slope along a dimension.
    Slope {
        /// The dimension.
        along: String,
        /// Linear or log-log.
        scale: Scale,
        /// The claim's region.
        bound: Bound,
        /// How it is inferred.
        inference: Inference,
    },
    /// A ratio of two arms against bounds.
    Ratio {
        /// The claim's region.
        bound: Bound,
        /// How it is inferred.
        inference: Inference,
    },
    /// A correlation of two selections, joined per unit.
    Correlation {
        /// The other selection.
        with: Selection,
        /// Which correlation.
        statistic: Coefficient,
        /// The claim's region.
        bound: Bound,
        /// How it is inferred.
        inference: Inference,
    },
    /// The agreement of two raters (the arms of the contrast) on categories, as κ.
    Agreement {
        /// How far apart categories are.
        weights: Weighting,
        /// The claim's region.
        bound: Bound,
        /// How it is inferred.
        inference: Inference,
    },
    /// The lowest or highest of the means of several groups.
    Worst {
        /// The dimension whose values are the groups.
        along: String,
        /// Which of them is the worst.
        take: Extreme,
        /// The claim's region.
        bound: Bound,
        /// How it is inferred.
        inference: Inference,
    },
    /// How far stated probabilities are from what came true, joined per unit.
    Calibration {
        /// What happened: 0 or 1.
        with: Selection,
        /// How many equal-width bins.
        bins: u32,
        /// The estimator.
        estimator: CalibrationError,
        /// The claim's region.
        bound: Bound,
        /// How it is inferred.
        inference: Inference,
    },
    /// A result that the experiment's own analysis computes: the selected measurement is its estimate.
    Reported {
        /// The measurements of the same stage that hold the rest.
        read: Reported,
        /// The claim's region.
        bound: Bound,
        /// Whether the interval need not hold the estimate.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        skewed: bool,
    },
    /// All values equal, along a dimension or between two arms.
    Exact {
        /// The dimension whose values must agree; absent with a `compare`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        along: Option<String>,
        /// How near; absent: bytes.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        within: Option<Tolerance>,
    },
}

/// Where the numbers of a reported result are, each a measurement of the selected stage.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Reported {
    /// The lower end of the interval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub low: Option<String>,
    /// Its upper end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub high: Option<String>,
    /// The confidence level of the interval, as an exact decimal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub level: Option<String>,
    /// The two-sided p-value against the bound.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p: Option<String>,
    /// The units it rests on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub n: Option<String>,
}

impl Reported {
    /// Every measurement that is read beside the estimate.
    pub fn all(&self) -> impl Iterator<Item = &str> {
        [&self.low, &self.high, &self.p, &self.n].into_iter().filter_map(|name| name.as_deref())
    }
}

impl Rule {
    /// The word used in a spec.
    pub fn word(&self) -> &'static str {
        match self {
            Rule::Threshold { .. } => "threshold",
            Rule::Difference { .. } => "difference",
            Rule::Equivalence { .. } => "equivalence",
            Rule::Proportion { .. } => "proportion",
            Rule::Trend { .. } => "trend",
            Rule::Curve { .. } => "curve",
            Rule::Slope { .. } => "slope",
            Rule::Ratio { .. } => "ratio",
            Rule::Correlation { .. } => "correlation",
            Rule::Agreement { .. } => "agreement",
            Rule::Worst { .. } => "worst",
            Rule::Calibration { .. } => "calibration",
            Rule::Reported { .. } => "reported",
            Rule::Exact { .. } => "exact",
        }
    }

    /// The dimension the rule runs along.
    pub fn along(&self) -> Option<&str> {
        match self {
            Rule::Trend { along, .. }
            | Rule::Curve { along, .. }
            | Rule::Slope { along, .. }
            | Rule::Worst { along, .. } => Some(along),
            Rule::Exact { along, .. } => along.as_deref(),
            _ => None,
        }
    }

    /// How it is inferred; `None` for rules that make no inference by nature.
    pub fn inference(&self) -> Option<&Inference> {
        match self {
            Rule::Threshold { statistic: Statistic::Every, .. }
            | Rule::Exact { .. }
            | Rule::Reported { .. } => None,
            Rule::Threshold { inference, .. }
            | Rule::Difference { inference, .. }
            | Rule::Equivalence { inference, .. }
            | Rule::Proportion { inference, .. }
            | Rule::Trend { inference, .. }
            | Rule::Curve { inference, .. }
            | Rule::Slope { inference, .. }
            | Rule::Ratio { inference, .. }
            | Rule::Correlation { inference, .. }
            | Rule::Worst { inference, .. }
            | Rule::Calibration { inference, .. }
            | Rule::Agreement { inference, .. } => Some(inference),
        }
    }

    /// Its bounds; `None` for rules that have a margin, a tolerance or nothing instead.
    pub fn bound(&self) -> Option<Bound> {
        match self {
            Rule::Threshold { bound, .. }
            | Rule::Difference { bound, .. }
            | Rule::Proportion { bound, .. }
            | Rule::Trend { bound, .. }
            | Rule::Slope { bound, .. }
            | Rule::Ratio { bound, .. }
            | Rule::Correlation { bound, .. }
            | Rule::Agreement { bound, .. }
            | Rule::Worst { bound, .. }
            | Rule::Calibration { bound, .. }
            | Rule::Reported { bound, .. } => Some(*bound),
            Rule::Equivalence { .. } | Rule::Curve { .. } | Rule::Exact { .. } => None,
        }
    }
}
