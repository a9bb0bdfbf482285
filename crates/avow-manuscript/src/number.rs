//! Finding numbers in running text: digits with separators, decimals, powers of ten, uncertainties, and what
//! follows them.
//!
//! `1,234.5`, `1 234` with a thin or unbreakable space, `.05`, `3e-4`, `3 × 10⁻⁴`, `10^{-4}`, `1.23(4)`, `12 %`,
//! `2.1×`, `10k`; words are in `words.rs`. Decimal commas are not read: `0,91` cannot be told from a list.

use std::ops::Range;

use serde::Serialize;

use crate::printed::Printed;
use crate::rules::Rule;
use crate::words;

/// A number in the running text.
#[derive(Clone, Debug, PartialEq)]
pub struct Number {
    /// Where it stands, its sign and per-cent mark included.
    pub range: Range<usize>,
    /// The number.
    pub printed: Printed,
    /// What it is beside its neighbour.
    pub role: Role,
    /// Why it is no result, where it is none.
    pub aside: Option<Rule>,
    /// Whether it is written as a word.
    pub word: bool,
}

/// What a number is beside its neighbour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// It stands alone.
    Single,
    /// The lower end of a range or interval.
    Low,
    /// The upper end of the range or interval that the number before begins.
    High,
    /// What ± follows.
    Centre,
    /// What follows ±, or stands in parentheses behind the last digits.
    Spread,
}

/// All numbers in the order of the text, with the rules that the token itself decides; [`crate::rules`] looks at
/// what stands around it.
pub fn find(text: &str) -> Vec<Number> {
    let mut numbers = Vec::new();
    let mut at = 0;
    while let Some(c) = text[at..].chars().next() {
        let fresh = at == 0 || !text[..at].ends_with(is_word);
        let next = if c.is_ascii_digit() || (c == '.' && fresh && digit_at(text, at + 1)) {
            digits(text, at, &mut numbers)
        } else if c.is_alphabetic() && fresh {
            words::number(text, at, &mut numbers)
        } else {
            None
        };
        at = next.filter(|next| *next > at).unwrap_or(at + c.len_utf8());
    }
    join(text, &mut numbers);
    numbers
}

/// Whether a letter, digit or underscore makes one word with what follows.
pub(crate) fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

fn digit_at(text: &str, at: usize) -> bool {
    text.as_bytes().get(at).is_some_and(u8::is_ascii_digit)
}

fn run(text: &str, from: usize) -> usize {
    from + text.as_bytes()[from..].iter().take_while(|b| b.is_ascii_digit()).count()
}

/// Spaces that group digits; an ordinary one separates.
const GROUPING: [char; 6] = [',', '\u{2009}', '\u{202f}', '\u{a0}', '\'', '’'];
const MINUS: [char; 3] = ['-', '−', '\u{2010}'];

/// The digits before and behind the point, and where they end.
struct Mantissa {
    whole: String,
    fraction: String,
    end: usize,
}

fn mantissa(text: &str, at: usize) -> Mantissa {
    let mut end = run(text, at);
    let mut whole = text[at..end].to_owned();
    if (1..=3).contains(&whole.len()) && !whole.starts_with('0') {
        while let Some(sep) = text[end..].chars().next().filter(|c| GROUPING.contains(c)) {
            let from = end + sep.len_utf8();
            let to = run(text, from);
            if to - from != 3 {
                break;
            }
            whole.push_str(&text[from..to]);
            end = to;
        }
    }
    let mut fraction = String::new();
    if text[end..].starts_with('.') && digit_at(text, end + 1) {
        let to = run(text, end + 1);
        fraction = text[end + 1..to].to_owned();
        end = to;
    }
    Mantissa { whole, fraction, end }
}

/// Reads one number that begins at a digit or point; gives where reading goes on.
fn digits(text: &str, at: usize, out: &mut Vec<Number>) -> Option<usize> {
    let Mantissa { whole, fraction, mut end } = mantissa(text, at);
    if let Some((aside, end)) = glued_before(text, at, end) {
        out.extend(set_aside(at..end, &whole, &fraction, aside));
        return Some(end);
    }
    let (negative, start) = sign(text, at);
    if let Some((aside, end)) = several_points(text, at, end, &fraction) {
        out.extend(set_aside(at..end, &whole, &fraction, aside));
        return Some(end);
    }
    let spread = uncertainty(text, end, &fraction);
    let after = spread.as_ref().map_or(end, |(_, range)| range.end);
    let mut exponent = 0;
    let (mut whole, mut fraction) = (whole, fraction);
    if let Some((power, to)) = exponent_at(text, after) {
        (exponent, end) = (power, to);
    } else if let Some((power, to)) = power_at(text, after) {
        if whole != "10" || !fraction.is_empty() {
            out.extend(set_aside(start..to, &whole, &fraction, Rule::Power));
            return Some(to);
        }
        (whole, fraction, exponent, end) = ("1".to_owned(), String::new(), power, to);
    } else if let Some((scale, to)) = scale_at(text, after) {
        (exponent, end) = (scale, to);
    }
    let printed = Printed::new(negative, &whole, &fraction, exponent)?;
    let main_end = end.max(after);
    let (printed, end, aside) = suffix(text, main_end, printed);
    let role = if spread.is_some() { Role::Centre } else { Role::Single };
    // The uncertainty is a number of its own, unless a power of ten holds for both.
    let shown = spread.as_ref().map_or(end, |(_, range)| if end > range.end { end } else { range.start });
    out.push(Number { range: start..shown, printed: printed.clone(), role, aside, word: false });
    if let Some((digits, range)) = spread {
        let place = exponent - fraction.len() as i32;
        let value = Printed::new(false, &digits, "", place)?;
        let value = if printed.percent { value.percent() } else { value };
        out.push(Number { range, printed: value, role: Role::Spread, aside, word: false });
    }
    Some(end)
}

fn set_aside(range: Range<usize>, whole: &str, fraction: &str, rule: Rule) -> Option<Number> {
    let printed = Printed::new(false, whole, fraction, 0)?;
    Some(Number { range, printed, role: Role::Single, aside: Some(rule), word: false })
}

/// A digit that belongs to a word: `ResNet50`, `CIFAR-10`, `x_1`, `v1.2`, `#3`.
fn glued_before(text: &str, at: usize, end: usize) -> Option<(Rule, usize)> {
    let before = &text[..at];
    let last = before.chars().next_back()?;
    let word_end =
        || at + text[at..].find(|c: char| !(is_word(c) || c == '-' || c == '.')).unwrap_or(text.len() - at);
    let trimmed = |to: usize| at + text[at..to].trim_end_matches(['.', '-']).len();
    if is_word(last) && !last.is_ascii_digit() {
        // A factor sign and Greek letters of formulas end no name: `2×3`, but `β1` is one.
        let version = before.ends_with('v') && !before[..at - 1].ends_with(is_word);
        return Some((if version { Rule::Version } else { Rule::Identifier }, trimmed(word_end())));
    }
    if last == '#' || last == '@' {
        return Some((Rule::Identifier, end));
    }
    let stem = before.strip_suffix(MINUS).or_else(|| before.strip_suffix('+'))?;
    let letters = stem.chars().next_back().is_some_and(char::is_alphabetic);
    letters.then(|| (Rule::Identifier, trimmed(word_end())))
}

/// A sign in front, unless it joins the number to something: `3-5`, `x−1`.
fn sign(text: &str, at: usize) -> (bool, usize) {
    let before = &text[..at];
    let Some(c) = before.chars().next_back().filter(|c| MINUS.contains(c) || *c == '+') else {
        return (false, at);
    };
    let start = at - c.len_utf8();
    let joined = text[..start]
        .chars()
        .next_back()
        .is_some_and(|c| is_word(c) || matches!(c, ')' | ']' | '%' | '/' | '+' | '-'));
    if joined { (false, at) } else { (c != '+', start) }
}

/// `1.2.3`, `192.168.0.1`: no quantity has two points; `2024-05-01` and `12:30` are dates and times.
fn several_points(text: &str, at: usize, end: usize, fraction: &str) -> Option<(Rule, usize)> {
    let more = |end: usize| text[end..].starts_with('.') && digit_at(text, end + 1);
    if !fraction.is_empty() && more(end) {
        let to =
            end + text[end..].find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len() - end);
        return Some((Rule::Version, at + text[at..to].trim_end_matches('.').len()));
    }
    let bytes = text.as_bytes();
    let date = end == at + 4
        && bytes.get(end) == Some(&b'-')
        && run(text, end + 1) == end + 3
        && bytes.get(end + 3) == Some(&b'-')
        && digit_at(text, end + 4);
    if date {
        return Some((Rule::Date, run(text, end + 4)));
    }
    let time =
        end - at <= 2 && bytes.get(end) == Some(&b':') && run(text, (end + 1).min(text.len())) == end + 3;
    time.then_some((Rule::Time, end + 3))
}

/// `1.23(4)`: the uncertainty in units of the last digit.
fn uncertainty(text: &str, end: usize, fraction: &str) -> Option<(String, Range<usize>)> {
    if fraction.is_empty() || !text[end..].starts_with('(') {
        return None;
    }
    let to = run(text, end + 1);
    let digits = &text[end + 1..to];
    let fits = (1..=2).contains(&digits.len()) && text[to..].starts_with(')');
    fits.then(|| (digits.to_owned(), end..to + 1))
}

fn signed_integer(text: &str, at: usize) -> Option<(i32, usize)> {
    let (negative, from) = match text[at..].chars().next()? {
        c if MINUS.contains(&c) => (true, at + c.len_utf8()),
        '+' => (false, at + 1),
        _ => (false, at),
    };
    let to = run(text, from);
    let value: i32 = text[from..to].parse().ok()?;
    Some((if negative { -value } else { value }, to))
}

/// `e-4`, or ` × 10^-4` in any of its spellings.
fn exponent_at(text: &str, at: usize) -> Option<(i32, usize)> {
    if text[at..].starts_with(['e', 'E']) {
        let (value, to) = signed_integer(text, at + 1)?;
        return (!text[to..].starts_with(is_word)).then_some((value, to));
    }
    let rest = text[at..].trim_start();
    let sign = rest.chars().next().filter(|c| matches!(c, '×' | '·' | '⋅' | '*' | 'x' | '∙'))?;
    let ten = rest[sign.len_utf8()..].trim_start().strip_prefix("10")?;
    power_at(text, text.len() - ten.len())
}

/// `^{-4}`, `^(-4)`, `^-4` or superscript digits.
fn power_at(text: &str, at: usize) -> Option<(i32, usize)> {
    if let Some(rest) = text[at..].strip_prefix('^') {
        let open = rest.starts_with(['{', '(']);
        let (value, to) = signed_integer(text, at + 1 + usize::from(open))?;
        return Some((value, if open && text[to..].starts_with(['}', ')']) { to + 1 } else { to }));
    }
    const SUPERSCRIPT: &str = "⁰¹²³⁴⁵⁶⁷⁸⁹";
    let mut value = String::new();
    let mut to = at;
    for c in text[at..].chars() {
        match (c, SUPERSCRIPT.chars().position(|s| s == c)) {
            ('⁻', _) if value.is_empty() => value.push('-'),
            ('⁺', _) if value.is_empty() => {}
            (_, Some(digit)) => value.push_str(&digit.to_string()),
            _ => break,
        }
        to += c.len_utf8();
    }
    Some((value.parse().ok()?, to))
}

/// `10k`, `1.5M`, `7B`: thousand, million, milliard.
fn scale_at(text: &str, at: usize) -> Option<(i32, usize)> {
    let scale = match text[at..].chars().next()? {
        'k' | 'K' => 3,
        'M' => 6,
        'B' => 9,
        _ => return None,
    };
    (!text[at + 1..].starts_with(is_word)).then_some((scale, at + 1))
}

/// Units that may stand directly behind a number.
const UNITS: [&str; 40] = [
    "s", "ms", "us", "µs", "μs", "ns", "min", "h", "d", "m", "mm", "cm", "km", "nm", "µm", "μm", "g", "kg",
    "mg", "Hz", "kHz", "MHz", "GHz", "V", "W", "kW", "J", "K", "Pa", "eV", "GB", "MB", "KB", "kB", "TB",
    "GiB", "MiB", "KiB", "px", "pt",
];

/// What stands behind a number: per cent, a factor sign, an ordinal, a unit, or the rest of a name.
fn suffix(text: &str, end: usize, printed: Printed) -> (Printed, usize, Option<Rule>) {
    let rest = &text[end..];
    let letters = rest.len() - rest.trim_start_matches(char::is_alphabetic).len();
    let glued = &rest[..letters];
    if matches!(glued, "st" | "nd" | "rd" | "th") {
        return (printed, end + letters, Some(Rule::Ordinal));
    }
    if matches!(glued, "x" | "fold") && !rest[letters..].starts_with(is_word) {
        return (printed.factor(), end + letters, None);
    }
    if !glued.is_empty() && !UNITS.contains(&glued) {
        let token = rest.find(|c: char| !is_word(c)).unwrap_or(rest.len());
        return (printed, end + token, Some(Rule::Identifier));
    }
    match words::after(rest) {
        words::After::Percent(length) => (printed.percent(), end + length, None),
        words::After::Factor(length) => (printed.factor(), end + length, None),
        words::After::Nothing => (printed, end, None),
    }
}

/// Joins neighbours to ranges, intervals and ± pairs, which share a per-cent sign.
fn join(text: &str, numbers: &mut [Number]) {
    for k in 1..numbers.len() {
        let (first, second) = numbers.split_at_mut(k);
        let (a, b) = (&mut first[k - 1], &mut second[0]);
        if a.aside.is_some() || b.aside.is_some() || b.range.start < a.range.end || b.role != Role::Single {
            continue;
        }
        let between = text[a.range.end..b.range.start].trim();
        let before = text[..a.range.start].trim_end();
        let after = text[b.range.end..].trim_start();
        let bracketed = before.ends_with('[') && after.starts_with(']')
            || before.ends_with('(') && after.starts_with(')') && names_an_interval(before);
        match between {
            "±" | "+/-" | "+-" | "+/−" if a.role == Role::Single => {
                (a.role, b.role) = (Role::Centre, Role::Spread)
            }
            "–" | "—" | "--" | "-" | "−" | "to" | "through" if a.role == Role::Single => {
                (a.role, b.role) = (Role::Low, Role::High);
            }
            "," | ";" if bracketed && a.role == Role::Single => (a.role, b.role) = (Role::Low, Role::High),
            _ => continue,
        }
        let behind = after.trim_start_matches([')', ']']).trim_start();
        let percent = b.printed.percent || behind.starts_with('%');
        if percent {
            a.printed = a.printed.clone().percent();
            b.printed = b.printed.clone().percent();
        }
    }
}

fn names_an_interval(before: &str) -> bool {
    let from = before.char_indices().rev().nth(40).map_or(0, |(at, _)| at);
    let near = before[from..].to_ascii_lowercase();
    near.contains("ci") || near.contains("interval")
}
