//! PRML manifests: a claim about a measurement (metric, comparator, threshold, data, seed, producer), fixed by the SHA-256
//! of its canonical text before the measurement is made.
//!
//! Format: PRML 0.1 and 0.2 (<https://spec.falsify.dev/v0.1>), as the package `falsify` 0.4.0 reads and writes it, by which
//! this is tested. Here are reading, the rules of the format, canonical text, digest, and the comparison with an observed
//! value. Absent: files, words for people, and what of an experiment becomes a manifest, which are the tool's.

pub mod canonical;
pub mod value;

use std::sync::LazyLock;

use regex::Regex;
use sha2::{Digest, Sha256};
use unicode_normalization::is_nfc;

use value::Node;

/// The versions of the format.
pub const VERSIONS: [&str; 2] = ["prml/0.1", "prml/0.2"];
/// How an observed value is compared with the threshold.
pub const COMPARATORS: [&str; 5] = [">=", "<=", ">", "<", "=="];
/// The distance below which values count as equal, where the manifest names none.
pub const TOLERANCE: f64 = 1e-9;

const REQUIRED: [&str; 9] =
    ["version", "claim_id", "created_at", "metric", "comparator", "threshold", "dataset", "seed", "producer"];
const OPTIONAL: [&str; 5] = ["model", "compute_envelope", "prior_hash", "notes", "metric_args"];
/// Whole numbers from here on may be spelled otherwise as floats.
const EXACT: i128 = 1 << 53;

/// A manifest that keeps the rules of the format.
#[derive(Clone, Debug, PartialEq)]
pub struct Manifest(Node);

/// Why something is no manifest.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Invalid {
    /// The file does not parse, or parses in two ways.
    #[error("{0}")]
    Syntax(String),
    /// It breaks rules: one line each.
    #[error("{}", .0.join("; "))]
    Rules(Vec<String>),
}

impl Manifest {
    /// Reads a file: JSON where its name ends in `.json`, else YAML.
    ///
    /// # Errors
    /// [`Invalid`] says everything that is wrong.
    pub fn read(name: &str, text: &str) -> Result<Manifest, Invalid> {
        let read = if name.ends_with(".json") { value::json(text) } else { value::yaml(text) };
        Manifest::of(read.map_err(Invalid::Syntax)?)
    }

    /// The manifest that these values are.
    ///
    /// # Errors
    /// [`Invalid::Rules`] with every rule that is broken.
    pub fn of(node: Node) -> Result<Manifest, Invalid> {
        let mut wrong = Vec::new();
        check(&node, &mut wrong);
        if wrong.is_empty() { Ok(Manifest(node)) } else { Err(Invalid::Rules(wrong)) }
    }

    /// The values.
    pub fn values(&self) -> &Node {
        &self.0
    }

    fn text_of(&self, key: &str) -> &str {
        self.0.get(key).and_then(Node::text).unwrap_or_default()
    }

    /// What is measured.
    pub fn metric(&self) -> &str {
        self.text_of("metric")
    }

    /// How it is compared: one of [`COMPARATORS`].
    pub fn comparator(&self) -> &str {
        self.text_of("comparator")
    }

    /// With what.
    pub fn threshold(&self) -> f64 {
        self.0.get("threshold").and_then(Node::number).unwrap_or(f64::NAN)
    }

    /// The digest that the data must have, where they are one file: its SHA-256.
    pub fn dataset_hash(&self) -> &str {
        self.0.get("dataset").and_then(|d| d.get("hash")).and_then(Node::text).unwrap_or_default()
    }

    /// The canonical text, which is what is hashed. Thresholds are written by value: as a float in 0.1, in 0.2 as a whole
    /// number where they are one below 2^53.
    pub fn canonical(&self) -> String {
        let mut node = self.0.clone();
        let first = self.text_of("version") == VERSIONS[0];
        if let Node::Map(map) = &mut node
            && let Some(threshold) = map.get_mut("threshold")
        {
            *threshold = match *threshold {
                Node::Int(i) if first || i.abs() >= EXACT => Node::Float(i as f64),
                Node::Float(x) if !first && x.fract() == 0.0 && x.abs() < EXACT as f64 => {
                    Node::Int(x as i128)
                }
                ref other => other.clone(),
            };
        }
        canonical::text(&node)
    }

    /// The SHA-256 of the canonical text, in hexadecimal digits.
    pub fn digest(&self) -> String {
        Sha256::digest(self.canonical().as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// Whether an observed value keeps what the manifest says.
    pub fn holds(&self, observed: f64) -> bool {
        let threshold = self.threshold();
        match self.comparator() {
            ">=" => observed >= threshold,
            "<=" => observed <= threshold,
            ">" => observed > threshold,
            "<" => observed < threshold,
            _ => {
                let named = self.0.get("metric_args").and_then(|args| args.get("tolerance"));
                let tolerance = named.and_then(Node::number).unwrap_or(TOLERANCE);
                (observed - threshold).abs() < tolerance
            }
        }
    }
}

fn check(node: &Node, wrong: &mut Vec<String>) {
    let Node::Map(map) = node else {
        wrong.push("a manifest is a mapping".to_owned());
        return;
    };
    wrong.extend(
        REQUIRED.iter().filter(|key| !map.contains_key(**key)).map(|key| format!("`{key}` is missing")),
    );
    let known = |key: &&String| REQUIRED.contains(&key.as_str()) || OPTIONAL.contains(&key.as_str());
    wrong
        .extend(map.keys().filter(|key| !known(key)).map(|key| format!("`{key}` is no field of a manifest")));
    texts(node, "", wrong);
    let mut field = |key: &str, fine: &dyn Fn(&Node) -> bool, rule: &str| {
        if map.get(key).is_some_and(|value| !fine(value)) {
            wrong.push(format!("`{key}` {rule}"));
        }
    };
    field("version", &|v| v.text().is_some_and(|t| VERSIONS.contains(&t)), "is `prml/0.1` or `prml/0.2`");
    field("claim_id", &|v| matches(&UUID, v), "is a UUID of version 7");
    field("created_at", &|v| matches(&TIME, v), "is a time as RFC 3339 has it, in quotes");
    let length = |v: &Node, least: usize, most: usize| {
        v.text().is_some_and(|t| (least..=most).contains(&t.chars().count()))
    };
    field("metric", &|v| length(v, 1, 256), "is a text of 1 to 256 characters");
    field("comparator", &|v| v.text().is_some_and(|t| COMPARATORS.contains(&t)), "is one of >= <= > < ==");
    field("threshold", &|v| v.number().is_some_and(f64::is_finite), "is a finite number");
    field("seed", &|v| matches!(v, Node::Int(_) | Node::Null), "is a whole number or null");
    field("prior_hash", &|v| matches!(v, Node::Null) || matches(&HASH, v), "is 64 hexadecimal digits");
    field(
        "notes",
        &|v| matches!(v, Node::Null) || length(v, 0, 4096),
        "is a text of at most 4096 characters",
    );
    named(map.get("dataset"), "dataset", &["id", "hash"], &["uri"], wrong);
    named(map.get("producer"), "producer", &["id"], &["signature"], wrong);
    if let Some(hash) = map.get("dataset").and_then(|dataset| dataset.get("hash"))
        && !matches(&LOWER_HASH, hash)
    {
        wrong.push("`dataset.hash` is 64 lower-case hexadecimal digits".to_owned());
    }
}

/// A part of the manifest with keys of its own and an id.
fn named(part: Option<&Node>, name: &str, required: &[&str], optional: &[&str], wrong: &mut Vec<String>) {
    let Some(part) = part else { return };
    let Node::Map(map) = part else {
        wrong.push(format!("`{name}` is a mapping"));
        return;
    };
    let absent = required.iter().filter(|key| !map.contains_key(**key));
    wrong.extend(absent.map(|key| format!("`{name}.{key}` is missing")));
    let known = |key: &&String| required.contains(&key.as_str()) || optional.contains(&key.as_str());
    wrong.extend(
        map.keys().filter(|key| !known(key)).map(|key| format!("`{name}.{key}` is no field of a manifest")),
    );
    if map.get("id").is_some_and(|id| id.text().is_none_or(str::is_empty)) {
        wrong.push(format!("`{name}.id` is a text that is not empty"));
    }
}

/// Every text, key or value, is such that all readers write the same bytes.
fn texts(node: &Node, path: &str, wrong: &mut Vec<String>) {
    match node {
        Node::Text(text) => {
            let forbidden = |c: char| c.is_control() || matches!(c, '\u{2028}' | '\u{2029}' | '\u{feff}');
            if text.chars().any(forbidden) {
                wrong.push(format!(
                    "`{path}` holds a control character, or one that readers write differently"
                ));
            }
            if !is_nfc(text) {
                wrong.push(format!(
                    "`{path}` is not in Unicode's form NFC: the same text would have two digests"
                ));
            }
        }
        Node::Map(map) => {
            for (key, value) in map {
                let at = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                texts(&Node::Text(key.clone()), &at, wrong);
                if key.chars().count() > canonical::LONGEST_KEY {
                    wrong.push(format!("a key below `{path}` is longer than {}", canonical::LONGEST_KEY));
                }
                texts(value, &at, wrong);
            }
        }
        Node::List(items) => {
            items.iter().enumerate().for_each(|(at, item)| texts(item, &format!("{path}[{at}]"), wrong));
        }
        // A whole number that JSON readers turn into a float is not the number that was written.
        Node::Float(x) if path != "threshold" && x.fract() == 0.0 && x.abs() >= 1.8e19 => {
            wrong.push(format!("`{path}` is too large to be read alike"));
        }
        _ => {}
    }
}

fn matches(form: &Regex, node: &Node) -> bool {
    node.text().is_some_and(|text| form.is_match(text))
}

fn form(text: &str) -> Regex {
    Regex::new(text).expect("the form is an expression")
}

static UUID: LazyLock<Regex> = LazyLock::new(|| {
    form("^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-7[0-9a-fA-F]{3}-[89abAB][0-9a-fA-F]{3}-[0-9a-fA-F]{12}$")
});
static TIME: LazyLock<Regex> = LazyLock::new(|| {
    form(r"^[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]+)?([Zz]|[+-][0-9]{2}:[0-9]{2})$")
});
static HASH: LazyLock<Regex> = LazyLock::new(|| form("^[0-9a-fA-F]{64}$"));
static LOWER_HASH: LazyLock<Regex> = LazyLock::new(|| form("^[0-9a-f]{64}$"));
