//! Keys of the spec itself: the top level, axes, families, analysis.

use super::claim::CLAIM;
use super::search::SEARCHES;
use super::stage::STAGE;
use super::{Form, Key, Names, Shape, Table, Word};
use super::{form, key, later, must, word};

/// How a family's p-values are corrected.
pub(crate) static CORRECTIONS: &[Word] = &[
    word("holm", "step-down; controls the chance of any wrong verdict in the family"),
    word("bonferroni", "every member at α/m"),
    word("none", "no correction; every output says so"),
    word("hochberg", "step-up, under positive dependence"),
    word("hommel", "step-up, under positive dependence"),
    word(
        "max",
        "one permutation for all members, which share their units: means against one bound, eight units or more",
    ),
    word("bh", "false discovery rate"),
    word("by", "false discovery rate, any dependence"),
];

static FAMILY_KEYS: &[Key] = &[
    key("alpha", Shape::Share, "`analysis.alpha`", "the level of the family, above 0 and below 0.5"),
    key("correct", Shape::Word(CORRECTIONS), "`analysis.correct`", "how the members are corrected"),
    key("design", Shape::Word(DESIGNS), "`analysis.design`", "whether the data may be looked at at any time"),
    key(
        "directions",
        Shape::Word(DIRECTIONS),
        "`analysis.directions`",
        "how errors of direction are controlled",
    ),
    key(
        "gate",
        Shape::Name,
        "none",
        "another family, all of whose claims must be Supported before this one is tested",
    ),
    key("assume", Shape::Word(DEPENDENCE), "nothing", "what `hochberg` and `hommel` need of the p-values"),
];

static DESIGNS: &[Word] = &[
    word("fixed", "judged once all planned units are in"),
    word(
        "sequential",
        "judged after every unit, in registered order; the level holds for all looks together",
    ),
];

static DIRECTIONS: &[Word] = &[
    word("usual", "a two-sided rejection is read with the sign of the estimate"),
    word("strict", "each side at α/(2m − r) after r rejections, whatever the dependence; for Holm"),
];

static DEPENDENCE: &[Word] =
    &[word("positive-dependence", "the p-values are independent or positively dependent")];

static FAMILY: Table = Table {
    name: "family",
    about: "One family of claims that share an error rate; its name is a tier's word or one that claims give under `family`.",
    keys: FAMILY_KEYS,
    with: &[],
};

/// The analysis defaults.
pub(crate) static ANALYSIS: Table = Table {
    name: "analysis",
    about: "Defaults of every family.",
    keys: &[
        key("alpha", Shape::Share, "0.05", "the level, above 0 and below 0.5"),
        key("correct", Shape::Word(CORRECTIONS), "holm", "how a family's members are corrected"),
        key(
            "design",
            Shape::Word(DESIGNS),
            "fixed",
            "whether the data may be looked at before all units are in",
        ),
        key("directions", Shape::Word(DIRECTIONS), "usual", "how errors of direction are controlled"),
    ],
    with: &[],
};

static RANGE: Table = Table {
    name: "axis: range",
    about: "Equally spaced numbers; the stop is left out, as in Python.",
    keys: &[must("range", Shape::Items(&Shape::Number, 2, 3), "`[start, stop]` or `[start, stop, step]`")],
    with: &[],
};

static LOG: Table = Table {
    name: "axis: log",
    about: "Numbers at equal ratios, both ends included.",
    keys: &[must("log", Shape::Items(&Shape::Positive, 3, 3), "`[low, high, count]`")],
    with: &[],
};

static SEEDS: Table = Table {
    name: "axis: seeds",
    about: "Seeds that nobody picks: derived from the axis' name and the index. `${axes.seed.init}`, `.order`, `.data` and `.eval` are independent streams of one seed.",
    keys: &[
        must("seeds", Shape::Int(1, 100_000), "how many"),
        key("salt", Shape::Text, "none", "separates experiments that must not share seeds"),
        key(
            "fresh",
            Shape::Bool,
            "false",
            "derives the seeds from the first registration, so that confirmatory cells are new by construction",
        ),
    ],
    with: &[],
};

static DERIVED: Table = Table {
    name: "axis: derived",
    about: "A value computed from other axes and parameters; it adds no cells.",
    keys: &[must("derived", Shape::Formula, "e.g. `axes.width * axes.depth`")],
    with: &[],
};

static AXIS_FORMS: &[Form] = &[
    form("range", &RANGE),
    form("log", &LOG),
    form("seeds", &SEEDS),
    form("derived", &DERIVED),
    form("from", &TABLE),
    form("pairs", &PAIRS),
];

static TABLE: Table = Table {
    name: "axis: table",
    about: "The rows of a committed table (`.csv`, `.tsv`): the first column holds the values, the others are attributes. The plan holds what the table held.",
    keys: &[must("from", Shape::Path, "the table, a file of the project")],
    with: &[],
};

static PAIRS: Table = Table {
    name: "axis: pairs",
    about: "Every two values of another axis: `${axes.pair.first}` and `${axes.pair.second}`, also under `at:`. One more value adds only its own pairs.",
    keys: &[
        must("pairs", Shape::Name, "the axis whose values are paired"),
        key("unordered", Shape::Bool, "true", "whether `a, b` and `b, a` are one pair"),
    ],
    with: &[],
};

/// A mapping axis: its keys are the values, each with attributes.
static POINTS: Shape = Shape::Named(Names::AxisValue, &Shape::Named(Names::Variable, &Shape::Scalar));

static AXIS: Shape = Shape::Either(&[Shape::List(&Shape::Scalar), Shape::Forms(AXIS_FORMS, &POINTS)]);

static SOURCE: Table = Table {
    name: "source",
    about: "A publication that the experiment is about. Never part of a digest.",
    keys: &[
        key("arxiv", Shape::Printable, "", "an arXiv identifier, in quotes"),
        key("doi", Shape::Text, "", "a DOI"),
        key("url", Shape::Text, "", "an address"),
        key("title", Shape::Text, "", "its title"),
        key("claim", Shape::Text, "", "what it says, in one sentence"),
    ],
    with: &[],
};

static ZIPPED: Shape = Shape::Either(&[Shape::Name, Shape::Items(&Shape::Name, 2, 64)]);
const SEEN_KEY: Shape = Shape::Either(&[Shape::Text, Shape::List(&Shape::Text)]);

static PILOT: Table = Table {
    name: "pilot",
    about: "Cells that are run like any other, that calibration and power may look at, and that no claim uses.",
    keys: &[must(
        "where",
        EXCLUDED_KEY,
        "values of axes, `{seed: [0, 1]}` (derived seeds are counted from 0), or a predicate such as `axes.depth > 8`",
    )],
    with: &[],
};
static STUDIES: &[Word] = &[
    word("experiment", "something is varied on purpose"),
    word("observational", "something is observed as it is"),
    word("meta-analysis", "results of others are put together"),
    word("other", "anything else"),
];

static EXISTING: &[Word] = &[
    word("none", "registered before any data were made"),
    word("not-observed", "data exist, and no person has seen them"),
    word("not-accessed", "data exist, and the authors cannot reach them"),
    word("not-analysed", "the authors have the data and have not analysed them as planned"),
    word("analysed", "registered after an analysis of the data"),
];

static REGISTRATION: Table = Table {
    name: "registration",
    about: "Answers to the questions of registration forms (OSF, AsPredicted) that no plan can answer.",
    keys: &[
        key("authors", Shape::Text, "", "who registers it"),
        key("study", Shape::Word(STUDIES), "experiment", "the kind of study"),
        key("blinding", Shape::Text, "", "who does not know what"),
        key("design", Shape::Text, "", "the design, beyond stages and axes"),
        key("randomisation", Shape::Text, "", "how units are assigned, beyond seeds"),
        key("existing_data", Shape::Word(EXISTING), "as the store says", "which data exist already"),
        key("existing_explanation", Shape::Text, "", "how they are known"),
        key("collection", Shape::Text, "", "how data are collected, beyond `capture` stages"),
        key("sample_rationale", Shape::Text, "", "why this many units"),
        key("stopping", Shape::Text, "", "when collection stops, beyond the plan"),
        key("indices", Shape::Text, "", "how measurements are combined"),
        key("transformations", Shape::Text, "", "what is done to values first"),
        key("exclusions", Shape::Text, "", "outliers and exclusions, beyond `exclude` and `missing`"),
        key("exploratory", Shape::Text, "", "what will be looked at without a claim"),
        key("other", Shape::Text, "", "anything else"),
    ],
    with: &[],
};

static EXCLUDED: Shape = EXCLUDED_KEY;
const EXCLUDED_KEY: Shape = Shape::Either(&[
    Shape::Formula,
    Shape::Named(Names::Dimension, &Shape::Either(&[Shape::Scalar, Shape::List(&Shape::Scalar)])),
]);

/// The top level.
pub(crate) static EXPERIMENT: Table = Table {
    name: "experiment",
    about: "A spec: what will be done, what will be measured and what would change our mind.",
    keys: &[
        must("avow", Shape::Exactly(1), "the version of the language"),
        must(
            "experiment",
            Shape::Text,
            "the experiment's name: lower-case letters, digits, `-`, `_` and `.`; it names the ledger",
        ),
        key("title", Shape::Text, "", "one line for people; in no digest"),
        key("description", Shape::Text, "", "more for people; in no digest"),
        key("sources", Shape::List(&Shape::Map(&SOURCE)), "", "publications; in no digest"),
        key(
            "params",
            Shape::Named(Names::Variable, &Shape::Value),
            "none",
            "named values, used as `${params.NAME}`",
        ),
        key(
            "axes",
            Shape::Named(Names::Variable, &AXIS),
            "none",
            "the dimensions of the sweep, used as `${axes.NAME}`",
        ),
        key(
            "exclude",
            Shape::List(&EXCLUDED),
            "none",
            "cells that do not exist: mappings from axes to values, or predicates such as `axes.depth > axes.width`",
        ),
        key(
            "search",
            Shape::Named(Names::Variable, &Shape::Tagged(SEARCHES)),
            "none",
            "searches that choose cells by what others gave; what one finds is `${axes.NAME}`",
        ),
        must("stages", Shape::Named(Names::Thing, &Shape::Map(&STAGE)), "what is done"),
        key("analysis", Shape::Map(&ANALYSIS), "α 0.05, Holm", "defaults of every family"),
        key(
            "families",
            Shape::Named(Names::Thing, &Shape::Map(&FAMILY)),
            "one per tier",
            "families with settings of their own",
        ),
        key(
            "claims",
            Shape::Named(Names::Thing, &Shape::Map(&CLAIM)),
            "none",
            "what is claimed, and what decides it",
        ),
        key(
            "zip",
            Shape::List(&ZIPPED),
            "none",
            "axes that move together, value by value: `[width, rate]`, or a list of such groups",
        ),
        key(
            "points",
            Shape::List(&Shape::Named(Names::Variable, &Shape::Scalar)),
            "every combination",
            "the only combinations of these axes that exist; axes not declared elsewhere are made of their values",
        ),
        key("pilot", Shape::Map(&PILOT), "none", "cells that calibration may look at and no claim may use"),
        key(
            "seen",
            SEEN_KEY,
            "nothing, as far as the author says",
            "results that were looked at before, in your words; registered and printed beside the verdicts",
        ),
        key(
            "registration",
            Shape::Map(&REGISTRATION),
            "",
            "what registration forms ask for beyond the plan; registered, and exported with it",
        ),
        later("order", "the order in which members run"),
    ],
    with: &[],
};
