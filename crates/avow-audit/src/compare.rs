//! How two artifacts differ that should be the same.
//!
//! Bytes decide whether they do. Where both are text that is the same but for its numbers, the numbers are compared
//! too: so a loss in the last digit is told from another result, whatever the format (JSON, CSV, a log). A JSON
//! file is compared by its values, not by the order of its keys. Arrays, tables and images (`compare/binary.rs`) are compared
//! by the numbers in them. Absent: what is allowed, but for a tolerance that the caller gives.

mod binary;

use std::collections::{BTreeMap, BTreeSet};

use avow_model::claim::Tolerance;
use avow_model::digest::{Artifact, BlobDigest};
use avow_model::tree::{Entry, Tree};
use avow_stats::exact::{Equality, compare as numbers_within};
use serde::Serialize;

use crate::measure::{json, table};
use crate::source::{AuditError, Source};

/// Larger files are compared by their bytes alone.
const LARGEST: u64 = 64 << 20;

/// How one file of an artifact differs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Difference {
    /// Its path in a folder; empty where the artifact is a file.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub path: String,
    /// How.
    #[serde(flatten)]
    pub how: How,
}

/// How two files differ.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "differs")]
pub enum How {
    /// Only in spelling: the same values in another order, spacing, notation or compression.
    Spelling,
    /// In numbers alone.
    Numbers(Numbers),
    /// In bytes.
    Bytes {
        /// The sizes, the reference first.
        sizes: [u64; 2],
        /// The first byte that differs, from 0; absent where the files were not read.
        #[serde(skip_serializing_if = "Option::is_none")]
        at: Option<u64>,
    },
    /// Only the digests are known.
    Digest,
    /// Only one of the two has it: whether that is the reference.
    OnlyOne {
        /// Whether the reference has it.
        reference: bool,
    },
    /// One is a file and the other a folder or a link, or only one may be executed.
    Kind,
}

/// Two sequences of numbers.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Numbers {
    /// How many pairs there are.
    pub compared: usize,
    /// How many differ.
    pub unequal: usize,
    /// How many differ by more than the tolerance; all that differ where there is none.
    pub beyond: usize,
    /// The largest difference relative to the reference; infinite where that is zero, or one of them is no number.
    #[serde(serialize_with = "table::number")]
    pub relative: f64,
    /// The largest difference.
    #[serde(serialize_with = "table::number")]
    pub absolute: f64,
}

impl How {
    /// Whether what differs stays within the tolerance that was given.
    pub fn is_within(&self) -> bool {
        match self {
            How::Spelling => true,
            How::Numbers(numbers) => numbers.beyond == 0,
            _ => false,
        }
    }
}

/// Every difference between an artifact and the reference; none where they are the same bytes. Contents that are not
/// in the store are compared by digest.
///
/// # Errors
/// Where the store cannot be read.
pub fn artifacts(
    source: Source<'_>,
    reference: Option<Artifact>,
    other: Option<Artifact>,
    within: Option<Tolerance>,
) -> Result<Vec<Difference>, AuditError> {
    let lone = |reference| vec![Difference { path: String::new(), how: How::OnlyOne { reference } }];
    Ok(match (reference, other) {
        (a, b) if a == b => Vec::new(),
        (None, _) => lone(false),
        (_, None) => lone(true),
        (Some(Artifact::Blob(a)), Some(Artifact::Blob(b))) => {
            vec![Difference { path: String::new(), how: blobs(source, a, b, within)? }]
        }
        (Some(Artifact::Tree(a)), Some(Artifact::Tree(b))) => folders(source, a.into(), b.into(), within)?,
        (Some(_), Some(_)) => vec![Difference { path: String::new(), how: How::Kind }],
    })
}

fn folders(
    source: Source<'_>,
    reference: BlobDigest,
    other: BlobDigest,
    within: Option<Tolerance>,
) -> Result<Vec<Difference>, AuditError> {
    let (mut a, mut b) = (BTreeMap::new(), BTreeMap::new());
    if !flatten(source, reference, "", &mut a)? || !flatten(source, other, "", &mut b)? {
        return Ok(vec![Difference { path: String::new(), how: How::Digest }]);
    }
    let mut differences = Vec::new();
    let paths: BTreeSet<&String> = a.keys().chain(b.keys()).collect();
    for path in paths {
        let how = match (a.get(path), b.get(path)) {
            (a, b) if a == b => continue,
            (None, _) => How::OnlyOne { reference: false },
            (_, None) => How::OnlyOne { reference: true },
            (
                Some(Entry::File { digest: a, executable: x }),
                Some(Entry::File { digest: b, executable: y }),
            ) if x == y => blobs(source, *a, *b, within)?,
            (Some(_), Some(_)) => How::Kind,
        };
        differences.push(Difference { path: path.clone(), how });
    }
    Ok(differences)
}

/// Every entry of a folder and the folders in it; false where one of them is not in the store.
fn flatten(
    source: Source<'_>,
    folder: BlobDigest,
    prefix: &str,
    all: &mut BTreeMap<String, Entry>,
) -> Result<bool, AuditError> {
    let Ok(tree) = source.record::<Tree>(folder, "a folder")? else { return Ok(false) };
    for (name, entry) in tree.entries {
        let path = format!("{prefix}{name}");
        if let Entry::Tree { digest } = entry {
            if !flatten(source, digest.into(), &format!("{path}/"), all)? {
                return Ok(false);
            }
        } else {
            all.insert(path, entry);
        }
    }
    Ok(true)
}

fn blobs(
    source: Source<'_>,
    reference: BlobDigest,
    other: BlobDigest,
    within: Option<Tolerance>,
) -> Result<How, AuditError> {
    let (Some(a), Some(b)) = (source.size(reference)?, source.size(other)?) else { return Ok(How::Digest) };
    if a.max(b) > LARGEST {
        return Ok(How::Bytes { sizes: [a, b], at: None });
    }
    match (source.read(reference, "an output")?, source.read(other, "an output")?) {
        (Ok(reference), Ok(other)) => Ok(contents(&reference, &other, within)),
        _ => Ok(How::Digest),
    }
}

/// How two contents differ that are not the same.
pub fn contents(reference: &[u8], other: &[u8], within: Option<Tolerance>) -> How {
    if let (Ok(a), Ok(b)) = (std::str::from_utf8(reference), std::str::from_utf8(other))
        && let Some(how) = texts(a, b, within)
    {
        return how;
    }
    if let (Some(a), Some(b)) = (binary::read(reference), binary::read(other))
        && a.words == b.words
        && let Some(how) = pairs(&a.numbers, &b.numbers, within)
    {
        return how;
    }
    let same = reference.iter().zip(other).take_while(|(a, b)| a == b).count();
    How::Bytes { sizes: [reference.len() as u64, other.len() as u64], at: Some(same as u64) }
}

/// How two texts differ; `None` where more than numbers does.
fn texts(reference: &str, other: &str, within: Option<Tolerance>) -> Option<How> {
    let (a, b) = match (json::by_value(reference), json::by_value(other)) {
        (Some(a), Some(b)) => (Text::of(&a), Text::of(&b)),
        _ => (Text::of(reference), Text::of(other)),
    };
    if a.words != b.words || a.numbers.is_empty() {
        return (a.words == b.words).then_some(How::Spelling);
    }
    pairs(&a.numbers, &b.numbers, within)
}

/// How two sequences of numbers differ; `None` where one is longer.
fn pairs(reference: &[f64], other: &[f64], within: Option<Tolerance>) -> Option<How> {
    if reference.is_empty() && other.is_empty() {
        return Some(How::Spelling);
    }
    let equality = within
        .map(|t| Equality::Within { absolute: t.absolute, relative: t.relative })
        .unwrap_or(Equality::Within { absolute: 0.0, relative: 0.0 });
    let compared = numbers_within(other, reference, equality).ok()?;
    let differing = || reference.iter().zip(other).filter(|(a, b)| !same(**a, **b));
    let unequal = differing().count();
    if unequal == 0 {
        return Some(How::Spelling);
    }
    let relative = differing().map(|(a, b)| relative(*a, *b)).fold(0.0, f64::max);
    // The same NaN on both sides is no difference, whatever the tolerance says of it.
    let nan = reference.iter().zip(other).filter(|(a, b)| a.is_nan() && b.is_nan()).count();
    let beyond = compared.unequal.saturating_sub(nan);
    let (compared, absolute) = (compared.compared, compared.largest);
    Some(How::Numbers(Numbers { compared, unequal, beyond, relative, absolute }))
}

fn same(a: f64, b: f64) -> bool {
    a == b || (a.is_nan() && b.is_nan())
}

/// |b − a| / |a|.
fn relative(a: f64, b: f64) -> f64 {
    let ratio = (b - a).abs() / a.abs();
    if ratio.is_nan() { f64::INFINITY } else { ratio }
}

/// A text as what stands between its numbers, with spaces evened out, and the numbers.
#[derive(Debug, PartialEq)]
struct Text {
    words: Vec<String>,
    numbers: Vec<f64>,
}

impl Text {
    fn of(text: &str) -> Text {
        let (mut words, mut numbers) = (Vec::new(), Vec::new());
        let mut word = String::new();
        let mut rest = text;
        let mut before = ' ';
        while let Some(next) = rest.chars().next() {
            let length = if is_part_of_word(before) { 0 } else { number(rest) };
            if let Some(value) = (length > 0).then(|| rest[..length].parse::<f64>().ok()).flatten() {
                numbers.push(value);
                words.push(std::mem::take(&mut word));
                before = rest[..length].chars().next_back().unwrap_or(' ');
                rest = &rest[length..];
                continue;
            }
            match next.is_whitespace() {
                true if word.ends_with(' ') => {}
                true => word.push(' '),
                false => word.push(next),
            }
            before = next;
            rest = &rest[next.len_utf8()..];
        }
        words.push(word);
        words.iter_mut().for_each(|word| *word = word.trim().to_owned());
        Text { words, numbers }
    }
}

/// Digits behind such a character belong to a name, a version or a date.
fn is_part_of_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == '.'
}

/// The length of the number that a text begins with; 0 where it begins with none.
fn number(text: &str) -> usize {
    for word in ["NaN", "nan", "Infinity", "inf", "-Infinity", "-inf"] {
        if let Some(rest) = text.strip_prefix(word)
            && !rest.starts_with(is_part_of_word)
        {
            return word.len();
        }
    }
    let bytes = text.as_bytes();
    let digits = |from: usize| bytes[from..].iter().take_while(|b| b.is_ascii_digit()).count();
    let sign = usize::from(matches!(bytes.first(), Some(b'-' | b'+')));
    let whole = digits(sign);
    let mut end = sign + whole;
    let mut fraction = 0;
    if bytes.get(end) == Some(&b'.') {
        fraction = digits(end + 1);
        end += if whole + fraction > 0 { 1 + fraction } else { 0 };
    }
    if whole + fraction == 0 {
        return 0;
    }
    if matches!(bytes.get(end), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(bytes.get(end + 1), Some(b'-' | b'+')));
        let exponent = digits((end + 1 + sign).min(bytes.len()));
        end += if exponent > 0 { 1 + sign + exponent } else { 0 };
    }
    if text[end..].starts_with(|c: char| c.is_alphanumeric() || c == '_') { 0 } else { end }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn how(a: &str, b: &str) -> How {
        contents(a.as_bytes(), b.as_bytes(), None)
    }

    fn numbers(a: &str, b: &str) -> (usize, usize, f64) {
        match how(a, b) {
            How::Numbers(n) => (n.compared, n.unequal, n.relative),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn numbers_are_found_in_any_text() {
        assert_eq!(numbers("{\"a\": 1.0, \"b\": 2}", "{\"a\": 1.5, \"b\": 2}"), (2, 1, 0.5));
        assert_eq!(numbers("a,b\n1,2\n3,4\n", "a,b\n1,2\n3,8\n"), (4, 1, 1.0));
        assert_eq!(numbers("loss 1e-3 at step 5", "loss 2e-3 at step 5"), (2, 1, 1.0));
        assert_eq!(numbers("{\"x\": NaN, \"y\": 1}", "{\"x\": NaN, \"y\": 2}").1, 1);
        assert_eq!(numbers("x 0", "x 1").2, f64::INFINITY);
        assert_eq!(numbers("x NaN", "x 1").2, f64::INFINITY);
        assert_eq!(numbers("-1.5 .5 +2", "-3 .5 +2"), (3, 1, 1.0));
    }

    #[test]
    fn the_order_of_keys_and_spaces_is_spelling() {
        assert_eq!(how("{\"a\":1,\"b\":[2,3]}", "{\"b\": [2, 3.0], \"a\": 1}\n"), How::Spelling);
        assert_eq!(how("a  b\n1 2", "a b 1.0 2"), How::Spelling);
        assert_eq!(how("same", "same "), How::Spelling);
    }

    #[test]
    fn other_words_are_other_bytes() {
        assert_eq!(how("ab1", "ab2"), How::Bytes { sizes: [3, 3], at: Some(2) });
        assert_eq!(how("x 1", "y 1"), How::Bytes { sizes: [3, 3], at: Some(0) });
        assert_eq!(how("1 2", "1 2 3"), How::Bytes { sizes: [3, 5], at: Some(3) });
        assert_eq!(contents(b"\xff1", b"\xff2", None), How::Bytes { sizes: [2, 2], at: Some(1) });
        assert_eq!(how("v1.2.3", "v1.2.4"), How::Bytes { sizes: [6, 6], at: Some(5) });
    }

    #[test]
    fn a_tolerance_says_what_lies_beyond() {
        let within = |relative| Some(Tolerance { absolute: 0.0, relative });
        let how = |t| contents(b"[100, 200, NaN]", b"[101, 200, NaN]", t);
        assert!(how(within(0.02)).is_within());
        assert!(!how(within(0.005)).is_within());
        assert!(!how(None).is_within());
    }
}
