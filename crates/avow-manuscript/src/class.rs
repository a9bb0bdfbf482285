//! What each number of a manuscript is beside what is stored.
//!
//! A number that is bound is judged by its key. One that is not is compared with everything that is stored, under
//! the rounding with which it is printed: equal, equal but rounded wrongly, close to something that the text beside
//! it names, or nothing. Digits are weighed: two digits equal something in any large store by accident, and a match
//! that says nothing is marked as coarse.

use serde::Serialize;

use crate::index::{Kind, Values};
use crate::number::{Number, Role};
use crate::printed::{Printed, Rounding};
use crate::text::{By, Flat, Use};
use crate::{Manuscript, Rule, binding};

/// What numbers are compared with.
pub trait Stock {
    /// The word that a text would use for a value: the name of its measurement or claim.
    fn name(&self, kind: Kind, id: usize) -> &str;
    /// What a key without its format stands for.
    fn resolve(&self, key: &str) -> Resolved;
}

/// What a key stands for.
#[derive(Clone, Debug, PartialEq)]
pub enum Resolved {
    /// One value, or the two ends of an interval.
    Values(Vec<f64>),
    /// Words, such as a verdict.
    Words(String),
    /// A value that stays hidden until a registered plan is complete.
    Hidden {
        /// The experiment.
        experiment: String,
    },
    /// Nothing is called so.
    Unknown,
}

/// What a number is beside what is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Class {
    /// Bound to another value than the one beside it, or close to a stored value that the text names.
    Contradicted,
    /// Bound, and the store has another value by now.
    Stale,
    /// Bound to a key that nothing has.
    UnknownKey,
    /// A stored value is printed so only by cutting off digits or rounding the wrong way.
    Misrounded,
    /// Equal to nothing that is stored.
    Unbound,
    /// Not bound, and equal to a stored value under its printed rounding.
    Matched,
    /// Bound, and what the store says.
    Current,
    /// Bound to a value that stays hidden.
    Hidden,
    /// No result.
    Aside,
}

impl Class {
    /// The code of the class.
    pub fn word(self) -> &'static str {
        match self {
            Class::Contradicted => "contradicted",
            Class::Stale => "stale",
            Class::UnknownKey => "unknown-key",
            Class::Misrounded => "misrounded",
            Class::Unbound => "unbound",
            Class::Matched => "matched",
            Class::Current => "current",
            Class::Hidden => "hidden",
            Class::Aside => "aside",
        }
    }
}

/// A stored value that a number may stand for.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Candidate {
    /// Its kind.
    pub kind: Kind,
    /// Its position among the values of its kind.
    #[serde(skip)]
    pub id: usize,
    /// The value.
    pub value: f64,
    /// How it becomes the printed number; absent where it does not.
    pub rounding: Option<Rounding>,
    /// Whether the manuscript prints a hundred times the value.
    pub percent: bool,
    /// Whether the manuscript prints it without its sign, as in `falls by`.
    pub negated: bool,
}

/// What one number, or one binding, came to.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// What it is.
    pub class: Class,
    /// Where it stands in the running text.
    pub range: std::ops::Range<usize>,
    /// The number; absent for a binding whose text is not there yet.
    pub number: Option<Printed>,
    /// What it is beside its neighbour.
    pub role: Role,
    /// Why it is set aside.
    pub rule: Option<Rule>,
    /// The key it is bound to, with its format.
    pub key: Option<String>,
    /// What the key stands for now, as the manuscript should print it.
    pub expected: Option<String>,
    /// Stored values that it may stand for, the likeliest first.
    pub candidates: Vec<Candidate>,
    /// How many stored values it may stand for.
    pub total: usize,
    /// Whether so many values are stored near it that equality says nothing.
    pub coarse: bool,
    /// Its position in [`Flat::uses`], where it is bound.
    pub used: Option<usize>,
}

/// So many candidates are kept.
const KEPT: usize = 5;
/// So many values about a number are looked at; further ones are only counted.
const LOOKED: usize = 64;

/// Classes every number and binding of a manuscript, in the order of the text.
pub fn class(manuscript: &Manuscript, values: &Values, stock: &dyn Stock) -> Vec<Finding> {
    let flat = &manuscript.flat;
    let mut findings: Vec<Finding> = Vec::new();
    let mut uses = flat.uses.iter().enumerate().collect::<Vec<_>>();
    uses.sort_by_key(|(_, used)| used.range.start);
    let mut inside = vec![false; manuscript.numbers.len()];
    for (index, used) in uses {
        let first = manuscript.numbers.partition_point(|n| n.range.end <= used.range.start);
        let count = manuscript.numbers[first..].iter().take_while(|n| n.range.start < used.range.end).count();
        inside[first..first + count].fill(true);
        findings.push(Finding {
            used: Some(index),
            ..bound(flat, used, &manuscript.numbers[first..first + count], stock)
        });
    }
    for (number, _) in manuscript.numbers.iter().zip(&inside).filter(|(_, inside)| !**inside) {
        findings.push(free(flat, number, values, stock));
    }
    findings.sort_by_key(|finding| (finding.range.start, finding.range.end));
    findings
}

fn blank(range: std::ops::Range<usize>, class: Class) -> Finding {
    Finding {
        class,
        range,
        number: None,
        role: Role::Single,
        rule: None,
        key: None,
        expected: None,
        candidates: Vec::new(),
        total: 0,
        coarse: false,
        used: None,
    }
}

/// Judges a binding by its key.
fn bound(flat: &Flat, used: &Use, numbers: &[Number], stock: &dyn Stock) -> Finding {
    let (key, format) = binding::split(&used.key);
    let printed = flat.text.get(used.range.clone()).unwrap_or_default();
    let resolved = stock.resolve(key);
    let expected = binding::render(&resolved, key, format);
    let (class, expected) = match (&resolved, expected) {
        (Resolved::Hidden { .. }, _) => (Class::Hidden, None),
        (Resolved::Unknown, _) => (Class::UnknownKey, None),
        (_, Err(_)) => (Class::UnknownKey, None),
        (_, Ok(expected)) => {
            let class = match used.by {
                By::Later => Class::Current,
                By::Nothing => Class::Stale,
                By::Macro if binding::same_text(printed, &expected) => Class::Current,
                By::Macro => Class::Stale,
                By::Hand => by_hand(printed, numbers, &resolved),
            };
            (class, Some(expected))
        }
    };
    Finding {
        number: numbers.first().map(|n| n.printed.clone()),
        key: Some(used.key.clone()),
        expected,
        ..blank(used.range.clone(), class)
    }
}

/// What was typed beside a key.
fn by_hand(printed: &str, numbers: &[Number], resolved: &Resolved) -> Class {
    let values = match resolved {
        Resolved::Values(values) => values,
        Resolved::Words(words) if printed.trim().eq_ignore_ascii_case(words) => return Class::Current,
        _ => return Class::Contradicted,
    };
    if numbers.len() != values.len() {
        return Class::Contradicted;
    }
    if let ([number], [value]) = (numbers, values.as_slice())
        && let Some(bound) = printed.trim_start().strip_prefix(['<', '≤'])
        && bound.trim_start().starts_with(|c: char| c.is_ascii_digit() || c == '.')
    {
        return if *value < number.printed.value { Class::Current } else { Class::Contradicted };
    }
    let how = numbers.iter().zip(values).map(|(number, value)| best(&number.printed, *value));
    how.map(|rounding| match rounding {
        Some(rounding) if rounding.is_right() => Class::Current,
        Some(_) => Class::Misrounded,
        None => Class::Contradicted,
    })
    .min()
    .unwrap_or(Class::Contradicted)
}

fn best(printed: &Printed, value: f64) -> Option<Rounding> {
    let percent = printed.percent.then(|| printed.rounds(value, 2)).flatten();
    percent.or_else(|| printed.rounds(value, 0))
}

/// Compares a number that is not bound with everything.
fn free(flat: &Flat, number: &Number, values: &Values, stock: &dyn Stock) -> Finding {
    let mut finding = blank(number.range.clone(), Class::Aside);
    finding.number = Some(number.printed.clone());
    finding.role = number.role;
    finding.rule = number.aside;
    if number.aside.is_some() {
        return finding;
    }
    let mut search = Search {
        printed: &number.printed,
        values,
        right: Vec::new(),
        wrong: Vec::new(),
        total: 0,
        chance: 0.0,
    };
    search.everything();
    let Search { right, wrong, total, chance, .. } = search;
    if !right.is_empty() {
        finding.class = Class::Matched;
        finding.coarse =
            chance > 0.5 && right.iter().all(|c| matches!(c.kind, Kind::Summary | Kind::Measurement));
        (finding.candidates, finding.total) = (right, total);
    } else if let Some(close) = close(flat, number, values, stock) {
        // What is named beside the number is likelier meant than what merely has the same digits.
        let named_wrong = wrong.iter().find(|w| w.kind == close.kind && w.id == close.id).copied();
        finding.class = if named_wrong.is_some() { Class::Misrounded } else { Class::Contradicted };
        (finding.candidates, finding.total) = (vec![named_wrong.unwrap_or(close)], 1);
    } else if !wrong.is_empty() && (chance < 0.1 || wrong.iter().any(|c| c.kind == Kind::Claim)) {
        finding.class = Class::Misrounded;
        (finding.total, finding.candidates) = (wrong.len(), wrong);
    } else {
        finding.class = Class::Unbound;
    }
    finding.candidates.truncate(KEPT);
    finding
}

struct Search<'a> {
    printed: &'a Printed,
    values: &'a Values,
    /// Candidates under right rounding.
    right: Vec<Candidate>,
    /// Candidates under wrong rounding.
    wrong: Vec<Candidate>,
    total: usize,
    /// How many values would be met by accident.
    chance: f64,
}

impl Search<'_> {
    /// As printed first; then as a fraction of what is printed; then without its sign.
    fn everything(&mut self) {
        let percent = self.printed.percent;
        self.scale(if percent { 2 } else { 0 }, false);
        if self.right.is_empty() && percent {
            self.scale(0, false);
        }
        let digits = self.printed.significant >= 3;
        if self.right.is_empty()
            && !percent
            && digits
            && self.printed.value.abs() <= 100.0
            && self.printed.place >= -3
        {
            self.scale(2, false);
        }
        if self.right.is_empty() && digits {
            self.scale(if percent { 2 } else { 0 }, true);
        }
    }

    /// Looks for stored values that ten to the `shift` times them, or less nothing, print so.
    fn scale(&mut self, shift: i32, negated: bool) {
        let scale = 10f64.powi(-shift);
        let unit = self.printed.unit() * scale;
        let sign = if negated { -1.0 } else { 1.0 };
        let centre = sign * self.printed.value * scale;
        // A little more than one unit: what lies on the border is decided in decimal.
        let reach = unit * (1.0 + 1e-9);
        for kind in Kind::ALL {
            let inner = 0.5 * unit * (1.0 + 1e-9);
            let hits = self.values.count(kind, centre - inner, centre + inner);
            let near =
                self.values.count(kind, centre - 20.0 * unit, centre + 20.0 * unit).saturating_sub(hits);
            self.chance += near as f64 / 39.0;
            let before = self.right.len();
            for (value, id) in self.values.nearest(kind, centre - reach, centre + reach, centre, LOOKED) {
                let Some(rounding) = self.printed.rounds(sign * value, shift) else { continue };
                let candidate =
                    Candidate { kind, id, value, rounding: Some(rounding), percent: shift == 2, negated };
                if rounding.is_right() { self.right.push(candidate) } else { self.wrong.push(candidate) }
            }
            let found = self.right.len() - before;
            self.total += if found < LOOKED { found } else { hits.max(found) };
        }
    }
}

/// A number of a claim, or a summary, that the text beside the number names and that is nearly equal to it.
fn close(flat: &Flat, number: &Number, values: &Values, stock: &dyn Stock) -> Option<Candidate> {
    let printed = &number.printed;
    if printed.significant < 2 || printed.value == 0.0 || number.role == Role::Spread {
        return None;
    }
    let near = beside(flat, number);
    let shifts: &[i32] = if printed.percent { &[2, 0] } else { &[0] };
    for (shift, kind) in shifts.iter().flat_map(|s| [Kind::Claim, Kind::Summary].map(|k| (*s, k))) {
        let scale = 10f64.powi(-shift);
        let centre = printed.value * scale;
        let reach = (0.05 * centre.abs()).max(3.0 * printed.unit() * scale).min(0.5 * centre.abs());
        let found = values.nearest(kind, centre - reach, centre + reach, centre, LOOKED);
        let named = found.into_iter().find(|(_, id)| mentions(&near, stock.name(kind, *id)));
        if let Some((value, id)) = named {
            return Some(Candidate { kind, id, value, rounding: None, percent: shift == 2, negated: false });
        }
    }
    None
}

/// The sentence or row about a number, in lower case, with one space between words.
fn beside(flat: &Flat, number: &Number) -> String {
    const BEFORE: usize = 160;
    const AFTER: usize = 60;
    let before = &flat.text[..number.range.start];
    let from = before.char_indices().rev().nth(BEFORE - 1).map_or(0, |(at, _)| at);
    let before = &before[from..];
    let before = before.rfind("\n\n").or_else(|| before.rfind(". ")).map_or(before, |at| &before[at..]);
    let after = &flat.text[number.range.end..];
    let after = after.char_indices().nth(AFTER).map_or(after, |(at, _)| &after[..at]);
    let after = after.find("\n\n").or_else(|| after.find(". ")).map_or(after, |at| &after[..at]);
    words(&format!("{before} {after}"))
}

fn words(text: &str) -> String {
    let spaced = text.chars().map(|c| if c.is_alphanumeric() { c } else { ' ' }).collect::<String>();
    let words = spaced.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase();
    format!(" {words} ")
}

fn mentions(near: &str, name: &str) -> bool {
    // Without letters a name is no word of a sentence.
    name.chars().any(char::is_alphabetic) && near.contains(&words(name))
}
