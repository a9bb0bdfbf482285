//! From claims to verdicts.
//!
//! 1. Each claim becomes its family members: one per value of `per`, one for a combination.
//! 2. Each member is tested by the registered rule and method, alone.
//! 3. Families are corrected. m counts the registered inferential members, Void ones with q = 1.
//! 4. Each member is decided by its corrected p-value, and a claim whose `requires` are not all Supported is
//!    Void. A claim voided in this way enters its family again with q = 1, and the families are decided again,
//!    until nothing changes; q only grows, so this ends, and it only takes rejections away from a correction
//!    that was valid without.
//!
//! Descriptive and exploratory claims have estimates and marginal intervals, no word and no family. Absent: how
//! a number was made, and every sentence.

mod absent;
mod censoring;
mod control;
mod count;
mod curve;
mod exact;
mod fit;
pub mod power;
mod reason;
mod reported;
mod rule;
mod sample;
mod tested;
mod verdict;
mod worst;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use avow_model::claim::{Claim, Correction, Part, Reduce, Reduction, Rule, Selected, Selection, Test, Tier};
use avow_stats::{Adjusted, Combination, Level, Void, decide, family, graph, max_statistic, qualify};

use crate::evidence::Evidence;
use crate::join::{self, JoinError, Joined};
use crate::measure::Readings;
pub use reason::Reason;
use rule::Setting;
use tested::{Body, Tested};
pub use verdict::{
    ArmUnits, Behind, Culprit, DecidedBy, Family, Interval, MonteCarlo, Pair, Piece, Qualifier, Units,
    Verdict, Word,
};

/// One family member with its test.
struct Member<'a> {
    claim: &'a Claim,
    alpha: Result<Level, Reason>,
    tested: Tested,
    /// Set once a claim it requires was not met.
    unmet: bool,
    /// Whether the claim before it in its sequence is not Supported.
    stopped: bool,
    adjusted: Adjusted,
    /// The correction that was used because the registered one could not be.
    instead: Option<Correction>,
}

/// Judges every claim of the plan. Verdicts come in the plan's order of claims, members of one claim in the
/// planned order of `per`. The lists of deviations are left empty.
pub fn judge(evidence: &Evidence<'_>, readings: &Readings) -> Vec<Verdict> {
    let mut members: Vec<Member<'_>> =
        evidence.plan.claims.iter().flat_map(|claim| expand(evidence, readings, claim)).collect();
    loop {
        correct(evidence, &mut members);
        let supported = supported(&members);
        let open = gates(&members);
        let unmet = |m: &Member<'_>| {
            m.claim.requires.iter().any(|name| !supported.get(name.as_str()).unwrap_or(&false))
                || m.claim.gate.as_ref().is_some_and(|gate| !open.get(gate.as_str()).unwrap_or(&false))
        };
        let fresh: Vec<usize> =
            (0..members.len()).filter(|i| !members[*i].unmet && unmet(&members[*i])).collect();
        let stopped = |m: &Member<'_>| {
            m.claim.after.as_ref().is_some_and(|name| !supported.get(name.as_str()).unwrap_or(&false))
        };
        let stops: Vec<bool> = members.iter().map(stopped).collect();
        let same = members.iter().zip(&stops).all(|(member, stops)| member.stopped == *stops);
        if fresh.is_empty() && same {
            break;
        }
        for (member, stops) in members.iter_mut().zip(stops) {
            member.stopped = stops;
        }
        for index in fresh {
            members[index].unmet = true;
        }
    }
    members.iter().map(|member| member.verdict(evidence)).collect()
}

/// A claim's family members, tested alone.
fn expand<'a>(evidence: &'a Evidence<'a>, readings: &Readings, claim: &'a Claim) -> Vec<Member<'a>> {
    let alpha: Result<Level, Reason> =
        claim.alpha.parse().map_err(|e: avow_stats::LevelError| Reason::BadClaim(e.to_string()));
    let member = |tested| Member {
        claim,
        alpha: alpha.clone(),
        tested,
        unmet: false,
        stopped: false,
        adjusted: Adjusted::alone(1.0),
        instead: None,
    };
    let level = match &alpha {
        Ok(level) => *level,
        Err(reason) => return vec![member(Tested::new("none", Vec::new(), Body::Void(reason.clone())))],
    };
    let context = Context { evidence, readings, claim, alpha: level };
    let tests = match &claim.test {
        Test::All(_) | Test::Any(_) => vec![context.combination(&claim.test, &[])],
        Test::Count(count) => vec![count::test(context, count, &[])],
        other => context.each(other, &[]),
    };
    tests.into_iter().map(member).collect()
}

/// What the parts of one claim share.
#[derive(Clone, Copy)]
struct Context<'a> {
    evidence: &'a Evidence<'a>,
    readings: &'a Readings,
    claim: &'a Claim,
    alpha: Level,
}

impl Context<'_> {
    /// A test as the members it makes: one per value of `per`.
    fn each(&self, test: &Test, path: &[usize]) -> Vec<Tested> {
        let part = match test {
            Test::One(part) if part.also.is_some() => return self.crossed(part, path),
            Test::One(part) => part,
            Test::All(_) | Test::Any(_) => return vec![self.combination(test, path)],
            Test::Count(count) => return vec![count::test(*self, count, path)],
            Test::Unmeasured => {
                return vec![Tested::new("none", Vec::new(), Body::Void(Reason::Void(Void::NotMeasured)))];
            }
        };
        let setting = Setting { evidence: self.evidence, claim: self.claim, part, alpha: self.alpha, path };
        let void = |reason: Reason| {
            let inferential = rule::is_inferential(part);
            let mut members = join::planned_members(self.evidence, part);
            if members.is_empty() {
                members.push(Vec::new());
            }
            let member =
                |at| Tested { inferential, ..Tested::new(part.rule.word(), at, Body::Void(reason.clone())) };
            members.into_iter().map(member).collect()
        };
        let matched = match control::proof(self.evidence, part) {
            Ok(matched) => matched,
            Err(reason) => return void(reason),
        };
        let with = |mut tested: Tested, joined: &Joined| {
            tested.qualifiers.extend(matched.clone());
            if let Body::Void(reason) = tested.body {
                let reason = absent::placed(reason, self.evidence, self.readings, (part, joined));
                tested.body = Body::Void(reason);
            }
            tested
        };
        if let Some(reason) = absent::unknown(self.evidence, self.readings, part) {
            return void(reason);
        }
        match self.arranged(part) {
            Ok(joined) if joined.is_empty() => void(Reason::Void(Void::NoUnits)),
            Ok(joined) => joined.iter().map(|one| with(self.tested(setting, one), one)).collect(),
            Err(error) => void(error.into()),
        }
    }

    /// A claim about two kinds of sampled units at once: one number per value of each, the other averaged, and the larger
    /// p of the two. Cells are never pooled.
    fn crossed(&self, part: &Part, path: &[usize]) -> Vec<Tested> {
        let Some((unit, also)) = part.replicate.clone().zip(part.also.clone()) else { return Vec::new() };
        let of = |unit: &String, other: &String| {
            let fold = Reduce { dimension: other.clone(), by: Reduction::Mean };
            let reduce = part.reduce.iter().cloned().chain([fold]).collect();
            let own = Part { replicate: Some(unit.clone()), also: None, reduce, ..part.clone() };
            self.each(&Test::One(Box::new(own)), path)
        };
        let (first, second) = (of(&unit, &also), of(&also, &unit));
        let both = |one: Tested| {
            let other = second.iter().position(|other| other.at == one.at);
            match other {
                Some(index) => tested::larger((unit.clone(), one), (also.clone(), &second[index])),
                None => one,
            }
        };
        first.into_iter().map(both).collect()
    }

    /// The selection of a part; for a correlation both selections, as two arms.
    fn arranged(&self, part: &Part) -> Result<Vec<Joined>, JoinError> {
        let first = join::join(self.evidence, self.readings, part)?;
        let (Rule::Correlation { with, .. } | Rule::Calibration { with, .. }) = &part.rule else {
            return Ok(first);
        };
        let other = Part { select: with.clone(), ..part.clone() };
        let second = join::join(self.evidence, self.readings, &other)?;
        let beside = |one: Joined| {
            let same = second.iter().find(|other| other.per == one.per);
            let empty = Joined { units: Vec::new(), origins: BTreeSet::new(), ..one.clone() };
            join::beside(one, same.unwrap_or(&empty))
        };
        Ok(first.into_iter().map(beside).collect())
    }

    fn tested(&self, setting: Setting<'_>, joined: &Joined) -> Tested {
        match &setting.part.rule {
            Rule::Reported { read, bound, skewed } => {
                let other = |name: &str| {
                    let of = Selected::Measurement(name.to_owned());
                    let part = Part {
                        select: Selection { of, ..setting.part.select.clone() },
                        ..setting.part.clone()
                    };
                    let found = join::join(self.evidence, self.readings, &part)?;
                    Ok(found.into_iter().find(|other| other.per == joined.per))
                };
                reported::test(setting, joined, (read, *bound, *skewed), &other)
            }
            _ => rule::test(setting, joined),
        }
    }

    /// A combination as one member.
    fn combination(&self, test: &Test, path: &[usize]) -> Tested {
        let (word, tests): (&'static str, &[Test]) = match test {
            Test::All(tests) => ("all", tests),
            Test::Any(tests) => ("any", tests),
            _ => ("all", std::slice::from_ref(test)),
        };
        let mut parts = Vec::new();
        for (index, test) in tests.iter().enumerate() {
            let path: Vec<usize> = path.iter().copied().chain([index]).collect();
            parts.extend(self.each(test, &path).into_iter().map(|tested| (path.clone(), tested)));
        }
        let one_sided = parts.iter().filter_map(|(_, part)| part.one_sided()).all(|one_sided| one_sided);
        let combined: Vec<_> = parts.iter().map(|(_, part)| part.part()).collect();
        let damaged = parts.iter().find_map(|(_, part)| part.damage());
        let combine = if word == "any" { Combination::any } else { Combination::all };
        let body = match (damaged, combine(&combined, one_sided)) {
            // Logic could do without the part; nobody should rest anything on a damaged store.
            (Some(damage), _) => Body::Void(damage),
            (None, Ok(combination)) => Body::Combined(combination),
            (None, Err(void)) => Body::Void(void.into()),
        };
        let mut tested = Tested::new(word, Vec::new(), body);
        tested.parts_one_sided = one_sided;
        tested.pieces = parts.iter().map(|(_, part)| part.piece(self.alpha)).collect();
        tested.units = Units::scarcest(parts.iter().map(|(_, part)| &part.units));
        tested.inferential = parts.iter().any(|(_, part)| part.inferential);
        tested.culprits = self.culprits(&parts, &tested.pieces);
        tested.origins = parts.into_iter().flat_map(|(_, part)| part.origins).collect();
        tested
    }

    /// What refutes a combination: the parts that are against it, with their own culprits where they have any.
    fn culprits(&self, parts: &[(Vec<usize>, Tested)], pieces: &[Piece]) -> Vec<Culprit> {
        let mut against: Vec<usize> = (0..pieces.len()).filter(|i| pieces[*i].word.is_against()).collect();
        if against.is_empty() {
            against.extend(strongest_against(pieces));
        }
        let mut culprits = Vec::new();
        for index in against {
            let ((path, part), piece) = (&parts[index], &pieces[index]);
            if part.culprits.is_empty() {
                let (at, found) = (piece.at.clone(), piece.estimate);
                let (expected, margin) = (piece.expected, piece.margin);
                culprits.push(Culprit { part: path.clone(), at, found, expected, margin });
            }
            for culprit in &part.culprits {
                let at = part.at.iter().chain(&culprit.at).cloned().collect();
                culprits.push(Culprit { at, ..culprit.clone() });
            }
        }
        culprits
    }
}

/// The piece with the smallest p against the claim.
fn strongest_against(pieces: &[Piece]) -> Option<usize> {
    let p = |i: usize| pieces[i].p.map_or(1.0, |pair| pair.refute);
    (0..pieces.len()).filter(|i| p(*i) < 1.0).min_by(|a, b| p(*a).total_cmp(&p(*b)))
}

/// Corrects every family.
fn correct(evidence: &Evidence<'_>, members: &mut [Member<'_>]) {
    let mut families: BTreeMap<(Tier, &str), Vec<usize>> = BTreeMap::new();
    for (index, member) in members.iter().enumerate() {
        if member.tested.inferential && has_verdicts(member.claim.tier) {
            families.entry((member.claim.tier, &member.claim.family)).or_default().push(index);
        }
    }
    let families: Vec<Vec<usize>> = families.into_values().collect();
    for family in families {
        let q: Vec<f64> = family.iter().map(|index| members[*index].q()).collect();
        let correction = match members[family[0]].claim.correct {
            Correction::Holm => avow_stats::Correction::Holm,
            Correction::Bonferroni => avow_stats::Correction::Bonferroni,
            Correction::Hochberg => avow_stats::Correction::Hochberg,
            Correction::Hommel => avow_stats::Correction::Hommel,
            Correction::Bh => avow_stats::Correction::BenjaminiHochberg,
            Correction::By => avow_stats::Correction::BenjaminiYekutieli,
            Correction::HolmStrict => avow_stats::Correction::HolmStrict,
            // Where one permutation cannot be had for all members, Holm is right as well.
            Correction::Max => avow_stats::Correction::Holm,
            Correction::None => avow_stats::Correction::None,
        };
        let of_whole = chained(members, &family, &q).or_else(|| largest(evidence, members, &family, &q));
        let fell_back = of_whole.is_none() && members[family[0]].claim.correct == Correction::Max;
        let adjusted = of_whole.unwrap_or_else(|| family::adjust(&q, correction));
        for (index, adjusted) in family.into_iter().zip(adjusted) {
            members[index].adjusted = adjusted;
            members[index].instead = fell_back.then_some(Correction::Holm);
        }
    }
}

/// The corrected p-values of a family with sequences or weights; `None` where it has neither, or where they make no
/// graph, which a checked spec cannot say.
fn chained(members: &[Member<'_>], family: &[usize], q: &[f64]) -> Option<Vec<Adjusted>> {
    let claim = |index: &usize| members[*index].claim;
    if !family.iter().any(|i| claim(i).after.is_some() || claim(i).weight.is_some()) {
        return None;
    }
    let place = |name: &String| family.iter().position(|i| claim(i).name == *name);
    let nodes: Vec<graph::Node> = family
        .iter()
        .zip(q)
        .map(|(index, q)| graph::Node {
            q: *q,
            supports: members[*index].leans_to_support(),
            after: claim(index).after.as_ref().and_then(place),
            weight: claim(index).weight.as_ref().and_then(|w| w.parse().ok()).unwrap_or(1.0),
        })
        .collect();
    let count = u32::try_from(family.len()).unwrap_or(u32::MAX);
    let tilde = graph::adjust(&nodes).ok()?;
    Some(q.iter().zip(tilde).map(|(q, tilde)| Adjusted::of_graph(*q, tilde, count)).collect())
}

/// The corrected p-values of a family by one permutation of all its members. `None` where the family is corrected
/// otherwise, or where some member has no value for each of the same units.
fn largest(
    evidence: &Evidence<'_>,
    members: &[Member<'_>],
    family: &[usize],
    q: &[f64],
) -> Option<Vec<Adjusted>> {
    let claim = members[family[0]].claim;
    if claim.correct != Correction::Max || family.iter().any(|i| members[*i].unmet) {
        return None;
    }
    let columns = family.iter().map(|i| members[*i].tested.column.as_ref()).collect::<Option<Vec<_>>>()?;
    let first = columns[0];
    if columns.iter().any(|column| column.units != first.units) {
        return None;
    }
    let rows: Vec<Vec<f64>> =
        (0..first.units.len()).map(|unit| columns.iter().map(|c| c.deviations[unit]).collect()).collect();
    let draws = rule::family_draws(evidence, &claim.family);
    let adjusted = max_statistic::adjust(&rows, draws).ok()?;
    let count = u32::try_from(family.len()).unwrap_or(u32::MAX);
    Some(q.iter().zip(adjusted).map(|(q, one)| Adjusted::of_whole(*q, one.step_down, count)).collect())
}

/// Whether claims of a tier have verdict words.
fn has_verdicts(tier: Tier) -> bool {
    matches!(tier, Tier::Primary | Tier::Secondary)
}

/// Claims all of whose members are Supported.
fn supported<'a>(members: &[Member<'a>]) -> BTreeMap<&'a str, bool> {
    let mut supported = BTreeMap::new();
    for member in members {
        let one = member.decide().0 == Word::Supported;
        supported.entry(member.claim.name.as_str()).and_modify(|all| *all &= one).or_insert(one);
    }
    supported
}

/// Families all of whose members are Supported, which open the families that they are the gate of.
fn gates<'a>(members: &[Member<'a>]) -> BTreeMap<&'a str, bool> {
    let mut open = BTreeMap::new();
    for member in members.iter().filter(|member| has_verdicts(member.claim.tier)) {
        let one = member.decide().0 == Word::Supported;
        open.entry(member.claim.family.as_str()).and_modify(|all| *all &= one).or_insert(one);
    }
    open
}

impl Member<'_> {
    fn q(&self) -> f64 {
        if self.unmet { 1.0 } else { self.tested.q() }
    }

    /// Whether a rejection would be a Supported.
    fn leans_to_support(&self) -> bool {
        match &self.tested.body {
            Body::Inferred(inference) => inference.pair.support < inference.pair.refute,
            Body::Combined(combination) => combination.pair.support < combination.pair.refute,
            Body::Decided { .. } | Body::Void(_) => false,
        }
    }

    /// Its place: in its family, or alone.
    fn place(&self) -> Adjusted {
        let in_family = self.tested.inferential && has_verdicts(self.claim.tier);
        if in_family { self.adjusted } else { Adjusted::alone(self.q()) }
    }

    fn decide(&self) -> (Word, Option<Reason>) {
        if self.unmet {
            return (Word::Void, Some(Reason::Void(Void::RequiresUnmet)));
        }
        if self.stopped {
            return (Word::Void, Some(Reason::Void(Void::SequenceStopped)));
        }
        let alpha = match &self.alpha {
            Ok(alpha) => *alpha,
            Err(reason) => return (Word::Void, Some(reason.clone())),
        };
        match &self.tested.body {
            Body::Inferred(inference) => Word::of(decide(&inference.evidence(), &self.place(), alpha)),
            Body::Combined(combination) => match combination.decide(&self.place(), alpha) {
                Ok(decision) => Word::of(decision),
                Err(void) => (Word::Void, Some(self.tested.void_reason().unwrap_or(Reason::Void(void)))),
            },
            Body::Decided { decision, .. } => Word::of(*decision),
            Body::Void(reason) => (Word::Void, Some(reason.clone())),
        }
    }

    fn verdict(&self, evidence: &Evidence<'_>) -> Verdict {
        let (word, reason) = self.decide();
        let (claim, tested) = (self.claim, &self.tested);
        let worded = has_verdicts(claim.tier);
        let refuted_by = if word.is_against() { tested.culprits.clone() } else { Vec::new() };
        let mut verdict = Verdict {
            claim: claim.name.clone(),
            member: tested.at.clone(),
            rule: tested.rule,
            tier: claim.tier,
            word: (worded || word == Word::Void).then_some(word),
            reason: reason.filter(|_| worded || word == Word::Void),
            decided_by: DecidedBy::Nothing,
            estimate: None,
            interval: None,
            refuting_interval: None,
            marginal_interval: None,
            q: None,
            q_corrected: None,
            p: None,
            smallest_q: None,
            method: None,
            alpha: claim.alpha.clone(),
            family: self.family(),
            units: tested.units.clone(),
            monte_carlo: None,
            qualifiers: Vec::new(),
            parts: tested.pieces.clone(),
            refuted_by: if worded { refuted_by } else { Vec::new() },
            deviations: Vec::new(),
            diverged: Vec::new(),
            evidence: tested.origins.iter().cloned().collect(),
            standing: evidence.standing(),
            means: claim.means.get(word.word()).cloned().filter(|_| worded),
            silent_on: claim.silent_on.clone(),
            behind: Behind::default(),
        };
        self.numbers(&mut verdict, worded);
        verdict.qualifiers.extend(tested.qualifiers.iter().cloned());
        if verdict.has_no_interval() {
            self.undefine(&mut verdict);
        }
        verdict.drop_unbounded();
        verdict
    }

    /// Takes back what rests on an interval that could not be computed.
    fn undefine(&self, verdict: &mut Verdict) {
        let reason = Reason::Void(Void::Undefined);
        (verdict.word, verdict.reason) = (Some(Word::Void), Some(reason));
        (verdict.interval, verdict.refuting_interval, verdict.marginal_interval) = (None, None, None);
        verdict.means =
            self.claim.means.get(Word::Void.word()).cloned().filter(|_| has_verdicts(self.claim.tier));
        verdict.refuted_by.clear();
        verdict.qualifiers.clear();
    }

    fn family(&self) -> Family {
        let place = self.place();
        let inside = self.tested.inferential && has_verdicts(self.claim.tier);
        let alpha = self.alpha.as_ref().ok();
        Family {
            name: self.claim.family.clone(),
            correct: self.claim.correct,
            instead: self.instead,
            members: if inside { place.members } else { 0 },
            step: place.step,
            step_level: alpha.filter(|_| inside).map(|alpha| place.level(*alpha).to_f64()),
        }
    }

    /// Fills in what the test computed. A claim voided by an unmet requirement keeps its estimate.
    fn numbers(&self, verdict: &mut Verdict, worded: bool) {
        let Ok(alpha) = &self.alpha else { return };
        let place = self.place();
        match &self.tested.body {
            Body::Inferred(inference) => {
                let members = match self.claim.correct {
                    Correction::None => 1,
                    _ => place.members,
                };
                let at = |members| {
                    Interval::from(inference.interval(inference.claim.interval_error(*alpha, members)))
                };
                let equivalence = matches!(inference.claim.region, avow_stats::Region::Equivalence { .. });
                verdict.estimate = Some(inference.fit.estimate());
                verdict.behind = Behind(Some(Arc::new(avow_stats::Inference::clone(inference))));
                verdict.interval = Some(at(members));
                verdict.marginal_interval = Some(at(1));
                verdict.refuting_interval =
                    equivalence.then(|| Interval::from(inference.interval(alpha.split(members))));
                verdict.method = Some(inference.fit.method().word());
                verdict.smallest_q = Some(inference.reach);
                verdict.p = Some(inference.pair.into());
                verdict.monte_carlo =
                    inference.monte_carlo.map(|m| MonteCarlo { draws: m.draws, error: m.error });
                self.probabilities(verdict, inference.q, worded);
                if worded && !self.unmet && !self.stopped {
                    let decision = decide(&inference.evidence(), &place, *alpha);
                    let qualifiers = qualify(inference, decision, &place, *alpha);
                    verdict.qualifiers = qualifiers.into_iter().map(Qualifier::from).collect();
                }
            }
            Body::Combined(combination) => {
                verdict.p = Some(combination.pair.into());
                verdict.smallest_q = Some(combination.reach);
                self.probabilities(verdict, combination.q, worded);
            }
            Body::Decided { estimate, by, .. } => {
                verdict.estimate = *estimate;
                verdict.decided_by = *by;
            }
            Body::Void(_) => {
                let counted = self.tested.inferential && worded;
                verdict.q = counted.then_some(1.0);
                verdict.q_corrected = counted.then_some(1.0);
            }
        }
    }

    fn probabilities(&self, verdict: &mut Verdict, q: f64, worded: bool) {
        verdict.decided_by = DecidedBy::Inference;
        if worded {
            verdict.q = Some(if self.unmet { 1.0 } else { q });
            verdict.q_corrected = Some(self.place().q_tilde);
        }
    }
}
