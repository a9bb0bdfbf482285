//! What a built-in stage promises: its inputs, outputs, parameters and the measurements it writes.
//!
//! `ops` publishes these, `cli` hands them to `spec`, which checks a stage's `with:`, `inputs:` and
//! `outputs:` against them without knowing any operation.

use crate::value::Value;

/// The promise an operation makes to a scientist (see the spec language, "Kinds of stage").
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Brings evidence in, or takes it from a model.
    Capture,
    /// Fits a model.
    Train,
    /// Turns artifacts into measurements.
    Measure,
    /// Fits what makes a measurement interpretable.
    Calibrate,
}

impl Kind {
    /// The word used in a spec.
    pub fn word(self) -> &'static str {
        match self {
            Kind::Capture => "capture",
            Kind::Train => "train",
            Kind::Measure => "measure",
            Kind::Calibrate => "calibrate",
        }
    }
}

/// The type of an operation's parameter, with the range that makes sense.
#[derive(Clone, Debug, PartialEq)]
pub enum ParameterType {
    /// An integer between two bounds, both included.
    Int {
        /// The smallest.
        low: i64,
        /// The largest.
        high: i64,
    },
    /// A number from `low` to `high`, both included.
    Number {
        /// The smallest.
        low: f64,
        /// The largest.
        high: f64,
    },
    /// True or false.
    Bool,
    /// One of these words.
    Choice(&'static [&'static str]),
    /// A list of integers between two bounds.
    Ints {
        /// The smallest.
        low: i64,
        /// The largest.
        high: i64,
    },
    /// A 31-bit seed.
    Seed,
}

/// One entry of a stage's `with:`.
#[derive(Clone, Debug, PartialEq)]
pub struct Parameter {
    /// The key.
    pub name: &'static str,
    /// What it accepts.
    pub accepts: ParameterType,
    /// What an absent key means; `None` where it must be given.
    pub default: Option<Value>,
    /// One line for `avow op NAME --help` and the schema.
    pub about: &'static str,
}

/// One named input or output file.
#[derive(Clone, Debug, PartialEq)]
pub struct Port {
    /// The name under `inputs:` or `outputs:`.
    pub name: &'static str,
    /// Whether it may be left out.
    pub optional: bool,
    /// For an output: the file name it gets where the spec does not say one, e.g. `x.safetensors`.
    pub file: &'static str,
    /// One line: tensors with shapes and units.
    pub about: &'static str,
}

/// One measurement an operation writes to its tidy JSON Lines file.
#[derive(Clone, Debug, PartialEq)]
pub struct MeasurementName {
    /// The name; `{metric}` stands for the value of the parameter `metric`.
    pub name: &'static str,
    /// The record keys each line carries besides the cell's axes, e.g. `["layer", "relation"]`.
    pub keys: &'static [&'static str],
    /// The range its values lie in, where it is bounded.
    pub range: Option<(f64, f64)>,
    /// One line.
    pub about: &'static str,
}

/// Everything `spec` must know of a built-in stage.
#[derive(Clone, Debug, PartialEq)]
pub struct OpSignature {
    /// The name after `uses:`, e.g. `representation/similarity`.
    pub name: &'static str,
    /// The kind of stage it is; a spec may repeat it but not contradict it. `None`: a plain step.
    pub kind: Option<Kind>,
    /// One line.
    pub about: &'static str,
    /// The inputs it reads.
    pub inputs: Vec<Port>,
    /// The outputs it writes, measurements excluded.
    pub outputs: Vec<Port>,
    /// The parameters under `with:`.
    pub parameters: Vec<Parameter>,
    /// The measurements it writes to [`MEASUREMENTS_FILE`]; empty where it writes none.
    pub measurements: Vec<MeasurementName>,
    /// Hex digest of everything the operation is compiled from.
    pub identity: &'static str,
}

/// Where a built-in stage writes its measurements, relative to its working folder.
pub const MEASUREMENTS_FILE: &str = "measurements.jsonl";
