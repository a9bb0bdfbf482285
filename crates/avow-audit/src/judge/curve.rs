//! The rule `curve`: the mean at every level within a tolerance of a formula.

use avow_model::claim::{Inference as Settings, Tolerance};
use avow_model::expand;
use avow_model::expression::Expression;
use avow_model::value::Value;
use avow_stats::curve::{self, Point};
use avow_stats::{Claim, Decision, Inconclusive, Level, Region, Void, by_position, sum, ties};

use super::reason::Reason;
use super::rule::{Setting, checked};
use super::sample::{Whole, sample};
use super::tested::{Body, Tested, centre};
use super::verdict::{Culprit, DecidedBy, Interval, Piece, Units, Word};
use crate::join::{Joined, Point as Place};

/// One level: what is expected there and what was found.
struct Here {
    at: Vec<(String, Value)>,
    region: Result<Region, Reason>,
    values: Result<Vec<f64>, Reason>,
    units: Units,
}

pub(super) fn test(
    setting: Setting<'_>,
    joined: &Joined,
    (formula, within): (&Expression, Tolerance),
    settings: &Settings,
) -> Tested {
    let along = setting.part.rule.along().unwrap_or_default();
    let here = |index: usize| {
        let level = &joined.points[index];
        let (numbers, units) = sample(joined, &[index], Whole::Unit, &setting.part.missing);
        Here {
            at: level.value.iter().map(|value| (along.to_owned(), value.clone())).collect(),
            region: expected(setting, joined, level, formula).and_then(|f| margin(f, within)),
            values: numbers.map(|numbers| numbers.rows().concat()),
            units,
        }
    };
    let levels: Vec<Here> = (0..joined.points.len()).map(here).collect();
    let mut tested = match setting.without_inference(settings) {
        Some(by) => by_points(setting, &levels, by),
        None => by_tests(setting, &levels),
    };
    tested.units = Units::scarcest(levels.iter().map(|level| &level.units));
    tested
}

/// The formula's value at a level; it must be one value over everything there.
fn expected(
    setting: Setting<'_>,
    joined: &Joined,
    level: &Place,
    formula: &Expression,
) -> Result<f64, Reason> {
    let along = setting.part.rule.along().unwrap_or_default();
    let key = |name: &String| {
        let per = joined.per.iter().find(|(dimension, _)| dimension == name).map(|(_, value)| value.clone());
        per.or_else(|| level.value.clone().filter(|_| name == along))
    };
    let mut value = None;
    for member in &level.members {
        let cell = expand::cell(setting.evidence.plan, *member);
        let lookup = |path: &[String]| match path {
            [root, name] if root == "keys" => key(name),
            _ => cell.lookup(path),
        };
        let here = formula.number(&lookup).map_err(|e| Reason::BadClaim(e.to_string()))?;
        if value.is_some_and(|other: f64| other != here) {
            return Err(Reason::BadClaim(format!("`{}` has several values at one level", formula.text())));
        }
        value = Some(here);
    }
    value.ok_or(Reason::Void(Void::NoUnits))
}

fn margin(expected: f64, within: Tolerance) -> Result<Region, Reason> {
    let margin = within.absolute + within.relative * expected.abs();
    checked(Region::Equivalence { target: expected, margin })
}

/// Every level tested, joined as an intersection. A level that is Void voids the rule: it is one rule over all
/// its levels, and what the others say is no answer to it.
fn by_tests(setting: Setting<'_>, levels: &[Here]) -> Tested {
    let word = setting.part.rule.word();
    let points: Result<Vec<Point>, Reason> = levels.iter().map(Here::point).collect();
    let curve = points.and_then(|points| Ok(curve::curve(&points)?));
    let count = u32::try_from(levels.len()).unwrap_or(u32::MAX);
    let mut curve = match curve {
        Ok(curve) => curve,
        Err(reason) => {
            return Tested {
                pieces: silent(levels, setting.alpha),
                ..Tested::new(word, Vec::new(), Body::Void(reason))
            };
        }
    };
    let tests = std::mem::take(&mut curve.points);
    let void = tests.iter().find_map(|test| test.as_ref().err().copied());
    let body = void.map_or(Body::Combined(curve.whole), |void| Body::Void(Reason::Void(void)));
    let mut tested = Tested::new(word, Vec::new(), body);
    for (level, test) in levels.iter().zip(tests) {
        let shown = test.as_ref().ok().map(|t| t.interval(t.claim.interval_error(setting.alpha, count)));
        let body = test.map_or_else(|void| Body::Void(void.into()), |t| Body::Inferred(Box::new(t)));
        let piece = Tested::new("point", level.at.clone(), body).piece(setting.alpha);
        tested.pieces.push(Piece {
            interval: shown.map(Interval::from),
            units: level.units.clone(),
            ..piece
        });
    }
    if void.is_none() {
        tested.culprits = culprits(setting, &tested.pieces);
    }
    tested
}

impl Here {
    fn point(&self) -> Result<Point, Reason> {
        Ok(Point { region: self.region.clone()?, values: self.values.clone()? })
    }
}

/// Every level by the position of its mean: `judge: estimate` or `variation: none`.
fn by_points(setting: Setting<'_>, levels: &[Here], by: DecidedBy) -> Tested {
    let word = setting.part.rule.word();
    let mut pieces = Vec::with_capacity(levels.len());
    for level in levels {
        let body = match point(level, by) {
            Ok((decision, estimate)) => Body::Decided { decision, estimate: Some(estimate), by },
            Err(reason) => Body::Void(reason),
        };
        let (expected, margin) = level.region.as_ref().map_or((None, None), |region| centre(*region));
        let piece = Tested::new("point", level.at.clone(), body).piece(setting.alpha);
        pieces.push(Piece { expected, margin, units: level.units.clone(), ..piece });
    }
    // Three-valued: one level outside refutes whatever the others are.
    let first = |word: Word| pieces.iter().find(|piece| piece.word == word);
    let decision = |decision| Body::Decided { decision, estimate: None, by };
    let body = if pieces.is_empty() {
        Body::Void(Reason::Void(Void::NoUnits))
    } else if first(Word::Refuted).is_some() {
        decision(Decision::Refuted)
    } else if let Some(void) = first(Word::Void) {
        Body::Void(void.reason.clone().unwrap_or(Reason::Void(Void::NoUnits)))
    } else if first(Word::Inconclusive).is_some() {
        decision(Decision::Inconclusive(Inconclusive::CrossesBound))
    } else {
        decision(Decision::Supported)
    };
    let mut tested = Tested::new(word, Vec::new(), body);
    tested.culprits = culprits(setting, &pieces);
    tested.pieces = pieces;
    tested
}

fn point(level: &Here, by: DecidedBy) -> Result<(Decision, f64), Reason> {
    let region = level.region.clone()?;
    let values = level.values.as_ref().map_err(Clone::clone)?;
    let tie = ties::margin(values.iter().copied());
    if by == DecidedBy::Position && !ties::all_equal(values, tie) {
        return Err(Reason::NotDeterministic);
    }
    if values.is_empty() {
        return Err(Reason::Void(Void::NoUnits));
    }
    let estimate = sum::mean(values);
    Ok((by_position(&Claim::new(region), estimate, tie), estimate))
}

/// The levels that have no sample, by name.
fn silent(levels: &[Here], alpha: Level) -> Vec<Piece> {
    let reason = |level: &Here| level.region.as_ref().err().or(level.values.as_ref().err()).cloned();
    let void = levels.iter().filter_map(|level| Some((level, reason(level)?)));
    let piece = |(level, reason): (&Here, Reason)| {
        let piece = Tested::new("point", level.at.clone(), Body::Void(reason)).piece(alpha);
        Piece { units: level.units.clone(), ..piece }
    };
    void.map(piece).collect()
}

/// The levels outside; where each alone is undecided, the one that speaks most against the claim.
fn culprits(setting: Setting<'_>, pieces: &[Piece]) -> Vec<Culprit> {
    let culprit = |piece: &Piece| Culprit {
        part: setting.path.to_vec(),
        at: piece.at.clone(),
        found: piece.estimate,
        expected: piece.expected,
        margin: piece.margin,
    };
    let against: Vec<Culprit> = pieces.iter().filter(|p| p.word.is_against()).map(culprit).collect();
    if !against.is_empty() {
        return against;
    }
    super::strongest_against(pieces).map(|i| culprit(&pieces[i])).into_iter().collect()
}
