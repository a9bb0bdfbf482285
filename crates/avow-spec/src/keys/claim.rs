//! Keys of a claim and of its parts.

use super::rule::RULES;
use super::{Key, Names, Shape, Table, Word};
use super::{key, must, word};

/// The tiers.
pub(crate) static TIERS: &[Word] = &[
    word("primary", "decides; corrected together"),
    word("secondary", "decides; corrected apart from the primary ones"),
    word("descriptive", "estimates and unadjusted intervals, no verdict words"),
    word("exploratory", "shown apart, never a verdict"),
];

/// What decides.
pub(crate) static JUDGE: &[Word] = &[
    word("interval", "the interval, or its p-value"),
    word("estimate", "the estimate alone; printed as such, outside families"),
];

static REDUCTIONS: &[Word] = &[
    word("mean", "the arithmetic mean"),
    word("median", "the median"),
    word("min", "the smallest"),
    word("max", "the largest"),
    word("sum", "the sum"),
];

/// Verdicts that `means` may explain.
pub(crate) static VERDICTS: Table = Table {
    name: "means",
    about: "Registered text printed under a verdict.",
    keys: &[
        key("supported", Shape::Text, "", "what it would mean"),
        key("refuted", Shape::Text, "", "what it would mean"),
        key("reversed", Shape::Text, "", "what it would mean"),
        key("inconclusive", Shape::Text, "", "what it would mean"),
        key("void", Shape::Text, "", "what it would mean"),
    ],
    with: &[],
};

static MISSING: Table = Table {
    name: "missing",
    about: "What missing and non-finite units do. Without it any of them voids the claim.",
    keys: &[
        must("drop", Shape::Dimension, "the replicate: its missing units are dropped and counted"),
        must(
            "void_above",
            Shape::Share,
            "the share of planned units, strictly above which the claim is void",
        ),
    ],
    with: &[],
};

static CONTROL: Table = Table {
    name: "control",
    about: "The arms of `compare` are matched: everything that they rest on from a stage upwards is equal but for what is named. Proved from the two lineages; the claim is Void where something else differs.",
    keys: &[
        must("of", Shape::Name, "the stage whose members must match, with everything upstream of them"),
        must(
            "equal_except",
            Shape::Items(&Shape::Dimension, 1, 64),
            "axes, or attributes of an axis (`arm.decay`), that may differ",
        ),
    ],
    with: &[],
};

static COUNT: Table = Table {
    name: "count",
    about: "At least so many values of a dimension hold, each judged by its estimate. It describes these units.",
    keys: &[
        must("over", Shape::Dimension, "the dimension whose values are counted"),
        must("at_least", Shape::Int(1, 1_000_000), "how many must hold"),
        must("of", Shape::Again(part), "what must hold at a value; counts nest"),
    ],
    with: &[],
};

static REDUCTION: Shape = Shape::Named(Names::Dimension, &Shape::Word(REDUCTIONS));

/// The keys that select numbers and decide on them; a claim has them, and so has each part of an `all`.
pub(crate) static PART: Table = Table {
    name: "part of a claim",
    about: "One selection and its rule, or an `all` of further parts.",
    keys: PART_KEYS,
    with: &[],
};

static PART_KEYS: &[Key] = &[
    key(
        "select",
        Shape::Selector,
        "",
        "`stage.name`: a measurement, or for `exact` an output; a bare name where one stage writes it",
    ),
    key(
        "where",
        FILTER_KEY,
        "everything",
        "only records with these values of an axis, attribute or record key",
    ),
    key(
        "compare",
        ARMS_KEY,
        "",
        "a contrast, first minus second: `{wd: [0.1, 0]}`; over two dimensions for an interaction",
    ),
    key(
        "reduce",
        REDUCE_KEY,
        "",
        "dimensions folded away: `{layer: mean}`; a list where their order matters",
    ),
    key("per", DIMENSIONS_KEY, "", "dimensions whose every value makes a member of its own"),
    key(
        "replicate",
        REPLICATE_KEY,
        "the axis `seed`, if the stage depends on it",
        "the dimension whose values are the units; two where both are sampled and cross: the harder of the two decides",
    ),
    key(
        "missing",
        Shape::Map(&MISSING),
        "any missing unit voids the claim",
        "what missing and non-finite units do",
    ),
    key("control", Shape::Map(&CONTROL), "", "the arms of `compare` are equal but for what is named"),
    key("judge", Shape::Word(JUDGE), "interval", "what decides"),
    key("rule", Shape::Tagged(RULES), "", "what supports or refutes the claim"),
    key("all", ALL_KEY, "", "parts that must all hold; needs no correction to be Supported"),
    key("any", ALL_KEY, "", "parts of which one must hold; needs no correction to be Refuted"),
    key("count", Shape::Map(&COUNT), "", "how many values of a dimension must hold; arithmetic, no test"),
    key(
        "strata",
        Shape::Dimension,
        "units are drawn from all",
        "for `method: percentile`: units are drawn within the values of this dimension, each of which keeps its number of units",
    ),
    key(
        "clusters",
        CLUSTERS_KEY,
        "units are independent",
        "what is sampled independently: the units of one cluster become one number; `{by: base, weight: units}` where clusters count by their units",
    ),
];
static CLUSTERS: Table = Table {
    name: "clusters",
    about: "What is sampled independently, and how much each counts.",
    keys: &[
        must("by", Shape::Dimension, "the dimension that names the cluster of a unit"),
        key("weight", Shape::Word(CLUSTER_WEIGHTS), "equal", "what a cluster counts"),
    ],
    with: &[],
};
static CLUSTER_WEIGHTS: &[Word] = &[
    word("equal", "each cluster as much"),
    word("units", "as many as its units, so that the claim is about the mean of all units; by sign-flip"),
];
const CLUSTERS_KEY: Shape = Shape::Either(&[Shape::Dimension, Shape::Map(&CLUSTERS)]);
const REPLICATE_KEY: Shape = Shape::Either(&[Shape::Dimension, Shape::Items(&Shape::Dimension, 2, 2)]);
const FILTER_KEY: Shape =
    Shape::Named(Names::Dimension, &Shape::Either(&[Shape::Scalar, Shape::List(&Shape::Scalar)]));
const ARMS_KEY: Shape = Shape::Named(Names::Dimension, &Shape::Items(&Shape::Scalar, 2, 2));
const REDUCE_KEY: Shape =
    Shape::Either(&[Shape::Named(Names::Dimension, &Shape::Word(REDUCTIONS)), Shape::List(&REDUCTION)]);
const DIMENSIONS_KEY: Shape = Shape::Either(&[Shape::Dimension, Shape::List(&Shape::Dimension)]);
const CLAIMS_KEY: Shape = Shape::Either(&[Shape::Name, Shape::List(&Shape::Name)]);
/// A part may hold parts, so the table is named by a function.
const ALL_KEY: Shape = Shape::Either(&[Shape::Again(part), Shape::Items(&Shape::Again(part), 1, 1_000)]);

fn part() -> &'static Table {
    &PART
}

/// The keys of a claim.
pub(crate) static CLAIM: Table = Table {
    name: "claim",
    about: "A statement, the numbers it is about and the rule that decides it. A claim without `select` and `all` (a theorem) is Void until something measures it.",
    keys: &[
        key("says", Shape::Text, "", "the statement, in your words; registered"),
        key("tier", Shape::Word(TIERS), "primary", "which claims decide"),
        key("family", Shape::Name, "the tier's word", "the claims that share an error rate"),
        key("requires", CLAIMS_KEY, "none", "claims that must be Supported, else this one is Void"),
        key("means", Shape::Map(&VERDICTS), "", "registered text printed under a verdict"),
        key("silent_on", Shape::Text, "", "what the claim does not speak about; registered"),
        key("after", Shape::Name, "", "a fixed sequence: tested only once that claim is Supported"),
        key("weight", Shape::Positive, "1", "its share of α among the first claims of sequences"),
    ],
    with: &[&PART],
};
