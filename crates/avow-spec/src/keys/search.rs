//! Keys of an adaptive search.

use super::{Form, Key, Names, Shape, Table, Word};
use super::{form, key, must, word, word_later};

static SCALES: &[Word] = &[
    word("linear", "the middle of an interval is the mean of its ends"),
    word("log", "it is their geometric mean; both ends are above zero"),
];

static GATHERS: &[Word] = &[
    word("mean", "their mean"),
    word("median", "their median"),
    word("min", "the smallest"),
    word("max", "the largest"),
    word_later("sum", "their sum"),
];

static EXTREMES: &[Word] = &[word("smallest", "less is better"), word("largest", "more is better")];

static INTERVAL: Table = Table {
    name: "search: interval",
    about: "Where to look. Two integers make a search among integers.",
    keys: &[
        must("from", Shape::Number, "the lower end; it is probed"),
        must("to", Shape::Number, "the upper end; it is probed too"),
        key("scale", Shape::Word(SCALES), "linear", "how the middle is found"),
    ],
    with: &[],
};

static GOAL: Table = Table {
    name: "search: goal",
    about: "When the measured value at a probe meets the goal: one of these.",
    keys: &[
        key("above", Shape::Number, "", "when it is above this"),
        key("below", Shape::Number, "", "when it is below this"),
    ],
    with: &[],
};

static UNTIL: Table = Table {
    name: "search: until",
    about: "When it is close enough: one of these.",
    keys: &[
        key("width", Shape::Number, "", "when the ends of the interval differ by no more than this"),
        key("ratio", Shape::Number, "", "when the upper end is no more than this many times the lower"),
    ],
    with: &[],
};

static COMMON: Table = Table {
    name: "search",
    about: "Keys of every search.",
    keys: &[
        must("measure", Shape::Selector, "`stage.name`: the measurement that it reads"),
        key(
            "reduce",
            Shape::Word(GATHERS),
            "mean",
            "how the values at one probe (over seeds and all other axes) become one number",
        ),
        key(
            "at_most",
            Shape::Int(1, 100_000),
            "1000",
            "the most probes; with no answer by then it is void, and `ask` takes the best of them",
        ),
    ],
    with: &[],
};

static EACH: Table = Table {
    name: "search: per",
    about: "One search for each value of an axis, each with an answer of its own.",
    keys: &[key(
        "per",
        Shape::Either(&[Shape::Name, Shape::List(&Shape::Name)]),
        "one search",
        "a declared axis, or several: one search for each of its values; `at_most` holds for each",
    )],
    with: &[],
};

const KIND: Key = must("kind", Shape::Text, "how it looks");

static BISECTION: Table = Table {
    name: "search: bisection",
    about: "Halves an interval until the place where the goal begins or ceases to hold is known closely enough. What it finds is the last probe on the side where the goal is met.",
    keys: &[
        KIND,
        must(
            "over",
            Shape::Named(Names::Variable, &Shape::Map(&INTERVAL)),
            "the axis that it makes, and where to look",
        ),
        must("goal", Shape::Map(&GOAL), "when a probe meets the goal"),
        must("until", Shape::Map(&UNTIL), "when it is close enough"),
    ],
    with: &[&COMMON, &EACH],
};

static BEST: Table = Table {
    name: "search: argmin, argmax",
    about: "Takes the value of a declared axis at which the measurement is smallest (largest); of equal ones the first.",
    keys: &[KIND, must("over", Shape::Name, "a declared axis")],
    with: &[&COMMON, &EACH],
};

static HALVING: Table = Table {
    name: "search: halving",
    about: "Successive halving: all values of a declared axis at the smallest budget, the best of them at the next, and so on.",
    keys: &[
        KIND,
        must("over", Shape::Name, "a declared axis"),
        must(
            "budget",
            Shape::Name,
            "a declared axis of numbers: what each round may spend, e.g. epochs; it is sorted",
        ),
        must("goal", Shape::Word(EXTREMES), "which is best"),
        key(
            "one_in",
            Shape::Int(2, 1000),
            "2",
            "one in this many, rounded up, is kept from one budget to the next",
        ),
    ],
    with: &[&COMMON, &EACH],
};

static ASK: Table = Table {
    name: "search: ask",
    about: "Asks a program of your own what to probe next, until it says `stop` or the probes are used up; finds the best probe. The program is a stage that reads `SEARCH.probes` and writes its answer.",
    keys: &[
        KIND,
        must(
            "over",
            Shape::Named(
                Names::Variable,
                &Shape::Either(&[Shape::List(&Shape::Scalar), Shape::Map(&INTERVAL)]),
            ),
            "the axes that it makes, and where on each the program may choose: an interval or a list",
        ),
        must("program", Shape::Selector, "`stage.output`: the file in which the stage gives its answer"),
        must("goal", Shape::Word(EXTREMES), "which probe is best"),
    ],
    with: &[&COMMON],
};

/// The searches by the word under `kind`.
pub(crate) static SEARCHES: &[Form] = &[
    form("bisection", &BISECTION),
    form("argmin", &BEST),
    form("argmax", &BEST),
    form("halving", &HALVING),
    form("ask", &ASK),
];
