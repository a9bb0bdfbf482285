//! Keys of a stage: what is started, what it reads and writes, what it gets.

use super::{Form, Key, Names, Shape, Table, Word};
use super::{form, key, later, must, word};

/// The kinds of a stage.
pub(crate) static KINDS: &[Word] = &[
    word("capture", "brings evidence in, or takes it from a model; alone may use the network"),
    word("train", "fits a model; names its seeds; must not descend from a holdout"),
    word("measure", "turns artifacts into measurements"),
    word("calibrate", "fits a null, a threshold, a temperature; must not descend from a holdout"),
];

/// When an earlier attempt may stand for a member.
pub(crate) static REUSE: &[Word] = &[
    word("always", "whenever the action is the same"),
    word("same-host", "only on the machine that made it"),
    word("never", "never: timings, energy; give `repeat` as well"),
];

/// What a second execution is promised to give.
pub(crate) static DETERMINISM: &[Word] = &[
    word("bytes", "the same bytes"),
    word("tolerance", "the same numbers, nearly"),
    word("distribution", "the same distribution"),
    word("unrepeatable", "nothing: a person, an online service, an instrument; `capture` only"),
];

static ENVIRONMENT: Table = Table {
    name: "environment",
    about: "The lock file that a stage's environment was made from, or the image that it runs in: one of these.",
    keys: &[
        key("uv", Shape::Path, "", "a `uv.lock`"),
        key("pip", Shape::Path, "", "a requirements file with every version pinned"),
        key("conda", Shape::Path, "", "an `environment.yml` or conda lock file"),
        key(
            "image",
            Shape::Text,
            "",
            "an image that the command runs in: `name@sha256:…`, or an OCI layout or archive in the project",
        ),
        later("nix", "a `flake.lock`"),
    ],
    with: &[],
};

static PURPOSE: &[Word] =
    &[word("scoring", "a train stage scores itself on a holdout; shown as asserted, not proved")];

/// Keys that every form of an input has.
static INPUT_LATER: Table = Table {
    name: "input",
    about: "Keys of every input.",
    keys: &[
        key(
            "licence",
            Shape::Text,
            "",
            "the licence of data from outside: an SPDX identifier, an address, or words; exports carry it along",
        ),
        later("share", "`no`: a bundle carries digest, size and origin only"),
        later("pairs", "one instance per pair of members"),
    ],
    with: &[],
};

static INPUT_FROM: Table = Table {
    name: "input: from a stage",
    about: "An output of another stage, or a path.",
    keys: &[
        must("from", Shape::Text, "`stage.output`; a name whose first segment is no stage is a path"),
        key(
            "at",
            AT_OR_PATH,
            "the reader's own point",
            "axes of the producer fixed to one value: `{split: all}`; for a path: where to mount it",
        ),
        key(
            "gather",
            GATHER_KEY,
            "none",
            "an axis, or several, gathered into one folder with an `index.json`",
        ),
        key("for", Shape::Word(PURPOSE), "", "why a train stage may read a holdout"),
    ],
    with: &[&INPUT_LATER],
};
const AT_OR_PATH: Shape = Shape::Either(&[Shape::Path, Shape::Named(Names::Variable, &Shape::Scalar)]);
const GATHER_KEY: Shape = Shape::Either(&[Shape::Name, Shape::List(&Shape::Name)]);

static KEPT: &[Word] =
    &[word("reference", "hashed, recorded and left where it is; checked again before and after every use")];

static INPUT_PATH: Table = Table {
    name: "input: a path",
    about: "A file or folder of the project, or with `keep: reference` of this machine.",
    keys: &[
        must("path", Shape::Path, "the path in the project; absolute only with `keep: reference`"),
        key("at", Shape::Path, "the same path; of an absolute one its last name", "where the stage finds it"),
        key("keep", Shape::Word(KEPT), "a copy in the store", "what is kept of the data"),
    ],
    with: &[&INPUT_LATER],
};

static INPUT_URL: Table = Table {
    name: "input: an address",
    about: "Bytes from elsewhere, known by their digest.",
    keys: &[
        must("url", Shape::Text, "an `https://` address"),
        must("digest", Shape::Digest, "the expected BLAKE3 digest, 64 hexadecimal digits"),
        key("at", Shape::Path, "`inputs/NAME` and the address' suffix", "where the stage finds it"),
    ],
    with: &[&INPUT_LATER],
};

static INPUT_FORMS: &[Form] =
    &[form("from", &INPUT_FROM), form("path", &INPUT_PATH), form("url", &INPUT_URL)];
static NO_OTHER: Shape = Shape::Text;
static INPUT: Shape = Shape::Either(&[Shape::Text, Shape::Forms(INPUT_FORMS, &NO_OTHER)]);

static KEEP: &[Word] = &[word("content", "its bytes"), word("digest", "its digest and size only")];

static OUTPUT_TABLE: Table = Table {
    name: "output",
    about: "One file or folder that a stage writes.",
    keys: &[
        must("path", Shape::Path, "relative to the working folder; a trailing `/` makes it a folder"),
        key("optional", Shape::Bool, "false", "whether the stage may leave it out"),
        key("keep", Shape::Word(KEEP), "content", "what is kept of it"),
        key("holdout", Shape::Bool, "false", "seals it: no train or calibrate stage may descend from it"),
        later("reduce", "a streaming reducer instead of raw rows"),
        later("share", "`no`: a bundle carries digest, size and origin only"),
    ],
    with: &[],
};
static OUTPUT: Shape = Shape::Either(&[Shape::Path, Shape::Map(&OUTPUT_TABLE)]);

static MEASUREMENT_TABLE: Table = Table {
    name: "measurement file",
    about: "A file of measurements: a flat JSON map (`.json`), nested JSON with pointers, tidy JSON Lines (`.jsonl`), or a table (`.csv`, `.tsv`): wide where `values` or `keys` name its columns, else with the columns `name` and `value`.",
    keys: &[
        must("file", Shape::Path, "relative to the working folder"),
        key(
            "values",
            VALUES,
            "all there are",
            "the names that are read; of nested JSON a mapping from names to pointers: `{knn: /probe/knn}`",
        ),
        key(
            "keys",
            Shape::List(&Shape::Name),
            "every other field of a line",
            "the record keys that each value carries",
        ),
        key("name", Shape::Name, "the file's name without its suffix", "the output's name, in the list form"),
    ],
    with: &[],
};
const VALUES: Shape = Shape::Either(&[Shape::List(&Shape::Text), Shape::Named(Names::Thing, &Shape::Text)]);
static MEASUREMENT: Shape = Shape::Either(&[Shape::Path, Shape::Map(&MEASUREMENT_TABLE)]);

static RESOURCES: Table = Table {
    name: "resources",
    about: "What a stage gets. How fast, not what: part of no digest.",
    keys: &[
        key("cpus", Shape::Int(1, 65_536), "1", "CPU slots reserved"),
        key("memory", Shape::Size, "no limit", "memory limit, e.g. `2GiB`"),
        key("disk", Shape::Size, "no limit", "limit of its working folder, e.g. `5GiB`"),
        key("gpus", Shape::Int(0, 1024), "0", "GPUs reserved"),
    ],
    with: &[],
};

static DETERMINISM_TABLE: Table = Table {
    name: "determinism",
    about: "What a second execution is promised to give.",
    keys: &[
        must("class", Shape::Word(DETERMINISM), "the class"),
        key("absolute", Shape::Number, "0", "for `tolerance`: in units of the value"),
        key("relative", Shape::Number, "0", "for `tolerance`: as a share of the value"),
    ],
    with: &[],
};

/// The keys of a stage.
pub(crate) static STAGE: Table = Table {
    name: "stage",
    about: "A step: a command of your own (`run`) or a built-in operation (`uses`). It exists once per distinct value of the axes it uses, directly or through its inputs.",
    keys: STAGE_KEYS,
    with: &[],
};

static STAGE_KEYS: &[Key] = &[
    key("description", Shape::Text, "", "for people; in no digest"),
    key(
        "kind",
        Shape::Word(KINDS),
        "a plain step; an operation's own kind",
        "a promise that the checker enforces",
    ),
    key("run", RUN, "", "a command: a text for `sh -eu -c`, or a list that is started as it is"),
    key("uses", Shape::Text, "", "a built-in operation, e.g. `representation/similarity`"),
    key(
        "with",
        Shape::Named(Names::Parameter, &Shape::Value),
        "the operation's defaults",
        "parameters of the operation",
    ),
    key(
        "code",
        Shape::List(&Shape::Path),
        "the files the command names and the project modules they import",
        "exactly these files and folders",
    ),
    key(
        "environment",
        ENVIRONMENT_KEY,
        "the lock file beside the spec, for Python",
        "the lock file of its environment, the image that it runs in, or `none`",
    ),
    key(
        "env",
        Shape::Named(Names::Environment, &Shape::Printable),
        "none",
        "environment variables; nothing else of the caller's environment gets in",
    ),
    key(
        "inputs",
        Shape::Named(Names::Thing, &INPUT),
        "none",
        "what it reads: `stage.output`, a path, or a mapping",
    ),
    key("outputs", Shape::Named(Names::Thing, &OUTPUT), "those of the operation", "what it writes"),
    key(
        "measurements",
        MEASUREMENTS,
        "those of the operation",
        "measurement files it writes; they need no entry under `outputs`",
    ),
    key(
        "repeat",
        Shape::Int(1, 100_000),
        "once",
        "how often each member is carried out; adds the axis `repeat`",
    ),
    key("reuse", Shape::Word(REUSE), "always", "when an earlier attempt may stand for a member"),
    key("determinism", DETERMINISM_KEY, "bytes", "what a second execution is promised to give"),
    key("hardware", Shape::Text, "none", "a hardware class that the result depends on; enters the digest"),
    key("resources", Shape::Map(&RESOURCES), "one CPU", "what it gets; in no digest"),
    key("timeout", Shape::Duration, "none", "wall time after which it is stopped, e.g. `30m`; in no digest"),
    key(
        "retries",
        Shape::Int(0, 100),
        "0",
        "how often a failure is tried again within one run; in no digest",
    ),
    key(
        "checkpoint",
        Shape::Path,
        "none",
        "a folder kept from an attempt to the next one of the same action, `${checkpoint}` in `run`; never an output, in no digest",
    ),
    key(
        "secrets",
        Shape::List(&Shape::Text),
        "none",
        "environment variables whose values are never stored, logged or hashed; `capture` only",
    ),
    later("requires", "claims that must be Supported before it runs"),
    later("warmup", "repetitions that are not measured"),
    later("confine", "what it may reach"),
];
const RUN: Shape = Shape::Either(&[Shape::Text, Shape::Items(&Shape::Printable, 1, 10_000)]);
const ENVIRONMENT_KEY: Shape = Shape::Either(&[Shape::Word(NO_ENVIRONMENT), Shape::Map(&ENVIRONMENT)]);
static NO_ENVIRONMENT: &[Word] = &[word("none", "no lock file")];
const MEASUREMENTS: Shape =
    Shape::Either(&[Shape::List(&MEASUREMENT), Shape::Named(Names::Thing, &MEASUREMENT)]);
const DETERMINISM_KEY: Shape = Shape::Either(&[Shape::Word(DETERMINISM), Shape::Map(&DETERMINISM_TABLE)]);
