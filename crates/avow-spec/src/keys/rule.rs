//! Keys of the rules.

use super::{Form, Key, Shape, Table, Word};
use super::{form, key, must, word};

static SIDES: &[Word] =
    &[word("two", "q is twice the smaller one-sided p"), word("one", "q is the smaller one-sided p")];

static METHODS: &[Word] = &[
    word("auto", "resolved before registration from the planned number of units and the family"),
    word("t", "Student's t"),
    word("sign-flip", "exact under symmetry"),
    word("welch", "two independent arms; says that units do not pair"),
    word("order-statistics", "for a median"),
    word("clopper-pearson", "exact, for a proportion"),
    word("jackknife", "over units, for a pooled trend"),
    word("least-squares", "for a slope without units"),
    word("wilcoxon", "signed ranks"),
    word("permutation", "relabelling of two arms"),
    word("student", "two arms of equal spread"),
    word("mann-whitney", "ranks of two arms"),
    word("bca", "bootstrap, ten units or more"),
    word("percentile", "bootstrap, ten units or more"),
    word("bootstrap-t", "bootstrap, ten units or more"),
    word("bounded", "for values in a declared `range`: betting, with no assumption about their distribution"),
    word("sequential", "the t-mixture; what `design: sequential` means"),
    word(
        "restricted-mean",
        "the mean up to `until` by the survival curve, for values that were cut off; twenty units or more",
    ),
    word("log-rank", "two arms of values that were cut off, against the bound 0"),
    word("wilson", "for a proportion"),
    word("newcombe", "for two proportions"),
    word("mcnemar", "for two paired proportions: McNemar's test at 0, Newcombe's paired interval elsewhere"),
    word("page", "Page's L, for a trend over units and the bound 0"),
    word("hc3", "for a slope"),
    word("theil-sen", "for a slope"),
    word("power-offset", "for a slope"),
    word("fieller", "for a ratio of arithmetic means"),
    word("kappa", "for an agreement"),
    word("worst-group", "for the worst group: it is picked anew in each draw; twenty units or more"),
    word("consistency", "for calibration: labels drawn from the forecasts themselves"),
];
static ASSUMPTIONS: &[Word] =
    &[word("equal-spread", "both arms vary alike: permutation of arms of unequal size")];
static COEFFICIENTS: &[Word] = &[
    word("spearman", "Spearman's ρ"),
    word("kendall", "Kendall's τ-b"),
    word("pearson", "the product-moment correlation"),
];
static WEIGHTS: &[Word] = &[
    word("none", "any disagreement counts the same"),
    word("linear", "disagreement grows with the distance of the categories"),
    word("quadratic", "disagreement grows with its square"),
];
static VARIATION: &[Word] = &[word("none", "the quantity is deterministic: position decides")];
static STATISTICS: &[Word] = &[
    word("mean", "the mean over units"),
    word("median", "the median over units"),
    word("every", "every single unit; no inference"),
];
static RANKS: &[Word] = &[word("spearman", "Spearman's ρ"), word("kendall", "Kendall's τ-b")];
static TREND_OF: &[Word] = &[
    word("unit", "the mean over units of the correlation within a unit"),
    word("pooled", "the correlation over all cells"),
    word("means", "every adjacent step by itself, all of which must hold"),
];
static LEVEL_SCALES: &[Word] = &[
    word("linear", "values as they are"),
    word("log", "logarithms: the mean is geometric, bounds are in units of the values"),
];
static SCALES: &[Word] =
    &[word("linear", "values as they are"), word("log-log", "natural logarithms of both")];

static REFUTE: Table = Table {
    name: "refute",
    about: "Where the opposite region begins, if not at the bound itself.",
    keys: &[
        key("below", Shape::Quantity, "the bound", "with `above`: the opposite is below this"),
        key("above", Shape::Quantity, "the bound", "with `below`: the opposite is above this"),
    ],
    with: &[],
};

static TOLERANCE: Table = Table {
    name: "within",
    about: "A tolerance: |a − b| ≤ absolute + relative · |b|.",
    keys: &[
        key("absolute", Shape::Quantity, "0", "in units of the value"),
        key("relative", Shape::Quantity, "0", "as a share of the reference"),
    ],
    with: &[],
};

static SUCCESS: Table = Table {
    name: "success",
    about: "When a unit counts as a success: one of these.",
    keys: &[
        key("above", Shape::Quantity, "", "value > x"),
        key("at_least", Shape::Quantity, "", "value ≥ x"),
        key("below", Shape::Quantity, "", "value < x"),
        key("at_most", Shape::Quantity, "", "value ≤ x"),
    ],
    with: &[],
};

/// The claim's region.
static BOUNDS: Table = Table {
    name: "bounds of a rule",
    about: "The claim's region: `above`, `below`, or both bounds.",
    keys: &[
        key("above", Shape::Quantity, "", "the claim is: greater than this"),
        key("below", Shape::Quantity, "", "the claim is: smaller than this"),
        key("between", Shape::Items(&Shape::Quantity, 2, 2), "", "`[low, high]`: strictly inside"),
        key("refute", Shape::Map(&REFUTE), "the bound", "opens a gap between support and refutation"),
    ],
    with: &[],
};

/// Settings that inferential rules share.
static INFERENCE: Table = Table {
    name: "inference of a rule",
    about: "How it is inferred.",
    keys: &[
        key("method", Shape::Word(METHODS), "auto", "the method"),
        key("side", Shape::Word(SIDES), "two", "one or two sides"),
        key("variation", Shape::Word(VARIATION), "", "`none`: the quantity is deterministic"),
        key("smallest", Shape::Quantity, "none", "the smallest effect of interest"),
        key("assume", Shape::Word(ASSUMPTIONS), "nothing", "an assumption that a method needs"),
        key(
            "range",
            Shape::Items(&Shape::Quantity, 2, 2),
            "",
            "`[low, high]`: where every value lies, for `bounded`",
        ),
        key("until", Shape::Quantity, "", "τ, up to which `restricted-mean` counts"),
    ],
    with: &[],
};

const KIND: Key = must("kind", Shape::Text, "the rule");
const ALONG: Key = must("along", Shape::Dimension, "the axis or record key it runs along");

static THRESHOLD: Table = Table {
    name: "rule: threshold",
    about: "A level against one or two bounds.",
    keys: &[
        KIND,
        key("statistic", Shape::Word(STATISTICS), "mean", "of what"),
        key("scale", Shape::Word(LEVEL_SCALES), "linear", "the scale of which the mean is taken"),
    ],
    with: &[&BOUNDS, &INFERENCE],
};
static DIFFERENCE: Table = Table {
    name: "rule: difference",
    about: "The contrast that `compare` names, against one or two bounds; paired where units pair.",
    keys: &[KIND],
    with: &[&BOUNDS, &INFERENCE],
};
static EQUIVALENCE: Table = Table {
    name: "rule: equivalence",
    about: "A level, or the contrast that `compare` names, within a margin.",
    keys: &[
        KIND,
        must("margin", Shape::Quantity, "δ: the claim is τ − δ < θ < τ + δ"),
        key("about", Shape::Quantity, "0 with `compare`, else required", "τ, the centre"),
    ],
    with: &[&INFERENCE],
};
static PROPORTION: Table = Table {
    name: "rule: proportion",
    about: "The share of units that succeed.",
    keys: &[KIND, must("success", Shape::Map(&SUCCESS), "when a unit succeeds")],
    with: &[&BOUNDS, &INFERENCE],
};
static TREND: Table = Table {
    name: "rule: trend",
    about: "A monotone relation along a dimension with three or more levels.",
    keys: &[
        KIND,
        ALONG,
        key("statistic", Shape::Word(RANKS), "spearman", "the rank correlation"),
        key(
            "of",
            Shape::Word(TREND_OF),
            "unit for bound 0, else pooled",
            "what the correlation is a property of",
        ),
    ],
    with: &[&BOUNDS, &INFERENCE],
};
static CURVE: Table = Table {
    name: "rule: curve",
    about: "The mean follows a formula along a dimension, at every point.",
    keys: &[
        KIND,
        ALONG,
        must("formula", Shape::Formula, "over `axes.…`, `params.…`, and record keys as `keys.…`"),
        must("within", Shape::Map(&TOLERANCE), "how near"),
    ],
    with: &[&INFERENCE],
};
static SLOPE: Table = Table {
    name: "rule: slope",
    about: "A least-squares slope along a dimension.",
    keys: &[KIND, ALONG, key("scale", Shape::Word(SCALES), "linear", "of values or of logarithms")],
    with: &[&BOUNDS, &INFERENCE],
};
static EXACT: Table = Table {
    name: "rule: exact",
    about: "All values equal along a dimension, or between the two arms of `compare`: bytes, or within a tolerance.",
    keys: &[
        KIND,
        key("along", Shape::Dimension, "needed without `compare`", "the dimension whose values must agree"),
        key("within", Shape::Map(&TOLERANCE), "equal bytes", "how near"),
    ],
    with: &[],
};

static RATIO: Table = Table {
    name: "rule: ratio",
    about: "The ratio of the two arms that `compare` names: of geometric means, or with `fieller` of arithmetic ones.",
    keys: &[KIND],
    with: &[&BOUNDS, &INFERENCE],
};
static INTERACTION: Table = Table {
    name: "rule: interaction",
    about: "The difference of differences that a `compare` over two dimensions names.",
    keys: &[KIND],
    with: &[&BOUNDS, &INFERENCE],
};
static CORRELATION: Table = Table {
    name: "rule: correlation",
    about: "The correlation of two selections over the units.",
    keys: &[
        KIND,
        must("with", Shape::Selector, "the other selection, `stage.name`"),
        key("statistic", Shape::Word(COEFFICIENTS), "spearman", "which correlation"),
    ],
    with: &[&BOUNDS, &INFERENCE],
};
static AGREEMENT: Table = Table {
    name: "rule: agreement",
    about: "The agreement beyond chance (κ) of the two raters that `compare` names, on the same items.",
    keys: &[KIND, key("weights", Shape::Word(WEIGHTS), "none", "how far apart categories are")],
    with: &[&BOUNDS, &INFERENCE],
};
static WORST: Table = Table {
    name: "rule: worst",
    about: "The lowest or highest mean of the values of a dimension. Its interval re-selects the group in each draw; twenty units or more in each group, either the same in all or units of their own.",
    keys: &[
        KIND,
        must("along", Shape::Dimension, "the dimension whose values are the groups"),
        must("take", Shape::Word(EXTREMES), "which of the groups is the worst"),
    ],
    with: &[&BOUNDS, &INFERENCE],
};
static EXTREMES: &[Word] =
    &[word("lowest", "that with the lowest mean"), word("highest", "that with the highest mean")];
static CALIBRATION: Table = Table {
    name: "rule: calibration",
    about: "How far stated probabilities are from what came true. `above: 0` claims that they are miscalibrated, by labels drawn from the forecasts; any other bound, and any other estimator, is for `judge: estimate`.",
    keys: &[
        KIND,
        must("with", Shape::Selector, "`stage.name`: what happened, 0 or 1"),
        must("bins", Shape::Int(1, 10_000), "how many bins of equal width"),
        key("estimator", Shape::Word(CALIBRATION_ERRORS), "debiased-square", "how the error is estimated"),
    ],
    with: &[&BOUNDS, &INFERENCE],
};
static CALIBRATION_ERRORS: &[Word] = &[
    word("debiased-square", "the mean squared gap less its noise; may be negative"),
    word("expected", "the mean gap (ECE), which is biased up"),
    word("root-mean-square", "the root of the mean squared gap, which is biased up"),
];
static RANKING: Table = Table {
    name: "rule: ranking",
    about: "An order of the values of a dimension: every earlier one is larger than the next. Or one that is the largest.",
    keys: &[
        KIND,
        must("over", Shape::Dimension, "the dimension whose values are ranked"),
        key("order", Shape::Items(&Shape::Scalar, 2, 100), "", "the values, the largest first"),
        key("best", Shape::Scalar, "", "one value that exceeds all others"),
    ],
    with: &[&INFERENCE],
};
static REPORTED: Table = Table {
    name: "rule: reported",
    about: "A result that the experiment's own analysis computes: the selection is its estimate, the rest are measurements of the same stage. Shown as computed by the experiment's code.",
    keys: &[
        KIND,
        key("low", Shape::Name, "", "the measurement with the lower end of the interval"),
        key("high", Shape::Name, "", "the measurement with its upper end"),
        key("level", Shape::Share, "0.95", "the confidence level of the interval"),
        key("p", Shape::Name, "", "the measurement with the two-sided p-value against the bound"),
        key("n", Shape::Name, "", "the measurement with the number of units"),
        key("skewed", Shape::Bool, "false", "the interval need not hold the estimate"),
    ],
    with: &[&BOUNDS],
};

/// The rules by the word under `kind`.
pub(crate) static RULES: &[Form] = &[
    form("threshold", &THRESHOLD),
    form("difference", &DIFFERENCE),
    form("equivalence", &EQUIVALENCE),
    form("proportion", &PROPORTION),
    form("trend", &TREND),
    form("curve", &CURVE),
    form("slope", &SLOPE),
    form("exact", &EXACT),
    form("correlation", &CORRELATION),
    form("ratio", &RATIO),
    form("ranking", &RANKING),
    form("agreement", &AGREEMENT),
    form("interaction", &INTERACTION),
    form("worst", &WORST),
    form("calibration", &CALIBRATION),
    form("reported", &REPORTED),
];
