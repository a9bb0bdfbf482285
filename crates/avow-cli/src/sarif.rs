//! SARIF 2.1.0 (OASIS), the form in which code hosts take findings and show them beside the lines.

use std::collections::BTreeSet;

use serde_json::{Value, json};

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Wrong.
    Error,
    /// Somebody should look.
    Warning,
    /// Worth knowing.
    Note,
}

impl Level {
    fn word(self) -> &'static str {
        match self {
            Level::Error => "error",
            Level::Warning => "warning",
            Level::Note => "note",
        }
    }
}

/// One finding at a place; lines and columns from 1.
pub struct Found {
    /// The rule that it breaks.
    pub rule: &'static str,
    /// How bad it is.
    pub level: Level,
    /// What it is.
    pub message: String,
    /// The file, as seen from here.
    pub file: String,
    /// Line and column of its first character.
    pub start: (usize, usize),
    /// Line and column behind its last character.
    pub end: (usize, usize),
}

/// What each rule means, for those who see only its name.
const RULES: &[(&str, &str)] = &[
    ("contradicted", "A number is bound to another value, or close to one that the text names"),
    ("stale", "A bound number is not what the store says by now"),
    ("stale-macro", "A macro file has a value that is not what the store says by now"),
    ("unknown-key", "A number is bound to a key that nothing has"),
    ("misrounded", "A number is a stored value with digits cut off or rounded the wrong way"),
    ("unbound", "Nothing stored is printed so"),
    ("chosen", "A number is the best of several comparable cells"),
    ("below-noise", "A claimed effect is smaller than the noise of what it measures"),
    ("matched", "A number is equal to a stored value"),
    ("current", "A bound number is what the store says"),
    ("hidden", "A bound number stays hidden until the registered plan is complete"),
    ("aside", "A number is no result"),
    ("unreadable", "A part of the manuscript could not be read"),
    ("p", "A p-value does not follow from its test statistic"),
    ("p-alone", "A p-value has no test statistic beside it"),
    ("interval", "An interval does not follow from r and n"),
    ("estimate", "An estimate does not lie in its interval"),
    ("percentage", "A percentage does not follow from its counts"),
    ("impossible-percentage", "No whole number gives such a percentage"),
    ("impossible-mean", "No whole numbers give such a mean"),
];

/// A log with one run.
pub fn log(found: &[Found]) -> Value {
    let used: BTreeSet<&str> = found.iter().map(|one| one.rule).collect();
    let used: Vec<&str> = used.into_iter().collect();
    let rule = |id: &&str| {
        let meaning = RULES.iter().find(|(name, _)| name == id).map_or(*id, |(_, meaning)| meaning);
        json!({"id": id, "shortDescription": {"text": meaning}})
    };
    let results: Vec<Value> = found
        .iter()
        .map(|one| {
            json!({
                "ruleId": one.rule,
                "ruleIndex": used.iter().position(|id| *id == one.rule),
                "level": one.level.word(),
                "message": {"text": one.message},
                "locations": [{"physicalLocation": {
                    "artifactLocation": {"uri": uri(&one.file)},
                    "region": {
                        "startLine": one.start.0, "startColumn": one.start.1,
                        "endLine": one.end.0, "endColumn": one.end.1.max(1),
                    },
                }}],
            })
        })
        .collect();
    json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {
                "name": "avow",
                "semanticVersion": env!("CARGO_PKG_VERSION"),
                "rules": used.iter().map(rule).collect::<Vec<_>>(),
            }},
            "columnKind": "unicodeCodePoints",
            "results": results,
        }],
    })
}

/// A path as a URI reference (RFC 3986): everything but unreserved signs and slashes is escaped.
fn uri(path: &str) -> String {
    let escape = |byte: u8| match byte {
        b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => {
            char::from(byte).to_string()
        }
        byte => format!("%{byte:02X}"),
    };
    path.bytes().map(escape).collect()
}
