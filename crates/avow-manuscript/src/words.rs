//! Numbers written as words, and the words behind a number that say what it is.

use crate::number::{Number, Role, is_word};
use crate::printed::Printed;

const SMALL: [&str; 20] = [
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
    "seventeen",
    "eighteen",
    "nineteen",
];
const TENS: [&str; 8] = ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"];
const SCALES: [(&str, u64); 5] = [
    ("hundred", 100),
    ("dozen", 12),
    ("thousand", 1_000),
    ("million", 1_000_000),
    ("billion", 1_000_000_000),
];
/// Verbs and adverbs that are factors.
const FACTORS: [(&str, &str); 8] = [
    ("twice", "2"),
    ("thrice", "3"),
    ("doubles", "2"),
    ("doubled", "2"),
    ("triples", "3"),
    ("tripled", "3"),
    ("halves", "0.5"),
    ("halved", "0.5"),
];

/// What follows a number.
pub(crate) enum After {
    /// A sign or word for per cent, so many bytes with the space before it.
    Percent(usize),
    /// A word or sign for a factor.
    Factor(usize),
    /// Neither.
    Nothing,
}

/// Looks at what follows a number.
pub(crate) fn after(rest: &str) -> After {
    let trimmed = rest.trim_start_matches([' ', '\u{a0}', '\u{2009}', '\u{202f}', '-']);
    let space = rest.len() - trimmed.len();
    if space > 4 {
        return After::Nothing;
    }
    if let Some(behind) = trimmed.strip_prefix('×') {
        // `2 × 3` is a product, `224×224` a size.
        let product = behind.trim_start().starts_with(|c: char| c.is_ascii_digit() || c == '.');
        return if product { After::Nothing } else { After::Factor(space + '×'.len_utf8()) };
    }
    if trimmed.starts_with('%') {
        return After::Percent(space + 1);
    }
    for word in ["percentage points", "percentage point", "percent", "per cent", "pp"] {
        if trimmed.starts_with(word) && !trimmed[word.len()..].starts_with(is_word) {
            return After::Percent(space + word.len());
        }
    }
    for word in ["times", "fold"] {
        let ends = trimmed.starts_with(word) && !trimmed[word.len()..].starts_with(is_word);
        // `5-fold cross-validation` counts folds.
        if ends && !trimmed[word.len()..].trim_start().starts_with("cross") {
            return After::Factor(space + word.len());
        }
    }
    After::Nothing
}

/// The word at a place, in lower case, and where it ends.
fn word(text: &str, at: usize) -> (String, usize) {
    let rest = &text[at..];
    let length = rest.find(|c: char| !c.is_alphabetic()).unwrap_or(rest.len());
    (rest[..length].to_lowercase(), at + length)
}

/// Reads a number that is written as words; gives where reading goes on.
pub(crate) fn number(text: &str, at: usize, out: &mut Vec<Number>) -> Option<usize> {
    let (first, end) = word(text, at);
    if text[end..].starts_with(|c: char| c.is_ascii_digit() || c == '_') {
        return None;
    }
    if let Some((_, value)) = FACTORS.iter().find(|(name, _)| *name == first) {
        let (whole, fraction) = value.split_once('.').unwrap_or((value, ""));
        out.push(spelled(at..end, Printed::new(false, whole, fraction, 0)?.factor()));
        return Some(end);
    }
    if let Some(stem) = first.strip_suffix("fold")
        && let Some(value) = simple(stem)
    {
        out.push(spelled(at..end, Printed::new(false, &value.to_string(), "", 0)?.factor()));
        return Some(end);
    }
    let (value, end) = phrase(text, at)?;
    let printed = Printed::new(false, &value.to_string(), "", 0)?;
    let (printed, end) = match after(&text[end..]) {
        After::Percent(length) => (printed.percent(), end + length),
        After::Factor(length) => (printed.factor(), end + length),
        After::Nothing => (printed, end),
    };
    out.push(spelled(at..end, printed));
    Some(end)
}

fn spelled(range: std::ops::Range<usize>, printed: Printed) -> Number {
    Number { range, printed, role: Role::Single, aside: None, word: true }
}

/// A number of one word.
fn simple(word: &str) -> Option<u64> {
    let small = SMALL.iter().position(|w| *w == word).map(|value| value as u64);
    small.or_else(|| TENS.iter().position(|w| *w == word).map(|tens| 10 * (tens as u64 + 2)))
}

/// As many words as make one number: `twenty-one`, `two hundred and five`, `three million`.
fn phrase(text: &str, at: usize) -> Option<(u64, usize)> {
    let (first, mut end) = word(text, at);
    let (mut total, mut part) = (0u64, simple(&first)?);
    let mut tens = part >= 20 && part.is_multiple_of(10);
    loop {
        let gap = &text[end..];
        let mut from =
            end + if gap.starts_with([' ', '-', '\u{a0}']) { gap.chars().next()?.len_utf8() } else { break };
        let (mut next, mut to) = word(text, from);
        let and = next == "and" && (part >= 100 || total > 0) && text[to..].starts_with(' ');
        if and {
            from = to + 1;
            (next, to) = word(text, from);
        }
        match (SCALES.iter().find(|(name, _)| *name == next), simple(&next)) {
            (Some((_, scale)), _) if !and && *scale <= 100 => part = part.checked_mul(*scale)?,
            (Some((_, scale)), _) if !and => {
                total = total.checked_add(part.checked_mul(*scale)?)?;
                part = 0;
            }
            (None, Some(small)) if tens && small > 0 && small < 10 => part += small,
            (None, Some(small))
                if (part == 0 && total > 0) || (part >= 100 && part.is_multiple_of(100) && small < 100) =>
            {
                part += small
            }
            _ => break,
        }
        tens = simple(&next).is_some_and(|v| v >= 20 && v.is_multiple_of(10));
        end = to;
    }
    Some((total.checked_add(part)?, end))
}
