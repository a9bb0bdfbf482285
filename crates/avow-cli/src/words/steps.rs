//! The steps of a test in plain words: from the numbers to the word, one sentence a step.

use avow_audit::judge::{DecidedBy, Verdict};
use avow_audit::{Report, Word};
use avow_model::axis::{Axis, Points};
use avow_model::claim::{Bound, Claim, Correction, Extreme, Part, Rule, Side, Statistic, Test};
use avow_model::plan::Plan;

use super::{deviation, number};

/// The word of a step and what it says.
pub type Step = (&'static str, String);

/// What was asked, what was found, how it was tested, corrected and decided, and what deviates.
pub fn of(claim: &Claim, verdict: &Verdict, report: &Report) -> Vec<Step> {
    let mut steps = Vec::new();
    let part = match &claim.test {
        Test::One(part) => Some(&**part),
        _ => None,
    };
    match (&claim.test, part) {
        (_, Some(part)) => steps.push(("asked", asked(part))),
        (Test::All(_), _) => {
            steps.push(("asked", "whether every part holds; a part in doubt leaves it in doubt".to_owned()))
        }
        (Test::Any(_), _) => steps.push(("asked", "whether at least one part holds".to_owned())),
        (Test::Count(count), _) => {
            let (over, enough) = (&count.over, count.at_least);
            let text = format!(
                "at how many values of `{over}` the part's estimate holds, {enough} being enough; no test"
            );
            steps.push(("asked", text));
        }
        _ => {}
    }
    steps.extend(numbers(verdict).map(|text| ("found", text)));
    steps.extend(tested(claim, part, verdict).map(|text| ("tested", text)));
    steps.extend(corrected(verdict).map(|text| ("corrected", text)));
    steps.push(("decided", decided(verdict)));
    let told = verdict.deviations.iter().filter_map(|i| report.deviations.get(*i));
    let deviations: Vec<String> = told.map(deviation::words).collect();
    let deviating = match deviations.as_slice() {
        [] => "none that concern this claim".to_owned(),
        some => some.join("; "),
    };
    steps.push(("deviations", deviating));
    steps
}

fn asked(part: &Part) -> String {
    let what = what(part);
    let region = match &part.rule {
        Rule::Equivalence { about, margin, .. } => {
            format!("lies within {} of {}", number(*margin), number(*about))
        }
        Rule::Curve { formula, .. } => format!("follows `{}` at every point", formula.text()),
        Rule::Exact { .. } => "are equal".to_owned(),
        rule => rule.bound().map(region).unwrap_or_default(),
    };
    format!("whether {what} {region}")
}

fn what(part: &Part) -> String {
    let arms = part.compare.as_ref().map(|c| format!("{} {} minus {}", c.dimension, c.first, c.second));
    let difference =
        arms.map_or_else(|| "the difference".to_owned(), |arms| format!("the mean difference ({arms})"));
    match &part.rule {
        Rule::Threshold { statistic: Statistic::Median, .. } => "the median".to_owned(),
        Rule::Threshold { statistic: Statistic::Every, .. } => "every unit".to_owned(),
        Rule::Threshold { inference, .. } if inference.log => "the geometric mean".to_owned(),
        Rule::Threshold { .. } => "the mean".to_owned(),
        Rule::Difference { .. } | Rule::Equivalence { .. } if part.compare.is_some() => difference,
        Rule::Equivalence { .. } => "the mean".to_owned(),
        Rule::Proportion { .. } => "the share of units that succeed".to_owned(),
        Rule::Trend { along, .. } => format!("the rank correlation with `{along}`"),
        Rule::Slope { along, .. } => format!("the slope along `{along}`"),
        Rule::Ratio { .. } => "the ratio of the two arms".to_owned(),
        Rule::Correlation { .. } => "the correlation of the two selections".to_owned(),
        Rule::Agreement { .. } => "the agreement beyond chance (κ)".to_owned(),
        Rule::Worst { along, take, .. } => {
            let which = if *take == Extreme::Lowest { "lowest" } else { "highest" };
            format!("the {which} mean along `{along}`")
        }
        Rule::Calibration { bins, .. } => format!("the calibration error in {bins} bins"),
        Rule::Reported { .. } => "the reported estimate".to_owned(),
        Rule::Curve { .. } => "the mean".to_owned(),
        Rule::Exact { .. } => "the values".to_owned(),
        Rule::Difference { .. } => difference,
    }
}

fn region(bound: Bound) -> String {
    let gap = |word: &str, bound: f64, refute: f64| match bound == refute {
        true => String::new(),
        false => format!("; refuted only {word} {}", number(refute)),
    };
    match bound {
        Bound::Above { bound, refute } => {
            format!("lies above {}{}", number(bound), gap("below", bound, refute))
        }
        Bound::Below { bound, refute } => {
            format!("lies below {}{}", number(bound), gap("above", bound, refute))
        }
        Bound::Between { low, high } => format!("lies between {} and {}", number(low), number(high)),
    }
}

fn numbers(verdict: &Verdict) -> Option<String> {
    let units = &verdict.units;
    let estimate = verdict.estimate?;
    let lost = units.planned.saturating_sub(units.used);
    let lost =
        if lost > 0 { format!(", {lost} of {} planned are missing", units.planned) } else { String::new() };
    let clusters = super::verdict::clusters(units);
    Some(format!("{} over {} units{clusters}{lost}", number(estimate), units.used))
}

fn tested(claim: &Claim, part: Option<&Part>, verdict: &Verdict) -> Option<String> {
    let pair = verdict.p?;
    let method = verdict.method.map(|method| format!("by {method}: ")).unwrap_or_default();
    let one = part.and_then(|p| p.rule.inference()).is_some_and(|i| i.side == Side::One);
    let equivalence = part.is_some_and(|p| matches!(p.rule, Rule::Equivalence { .. }));
    let law = match (one, equivalence) {
        (_, true) => "q is the larger of the two one-sided p for it, or twice the one against it",
        (true, _) => "q is the smaller of the two (one-sided, as registered)",
        _ => "q is twice the smaller of the two",
    };
    let q = verdict.q.map(|q| format!(" = {}", number(q))).unwrap_or_default();
    let looks = if claim.sequential { "; valid at every look" } else { "" };
    Some(format!(
        "{method}data this far on the claim's side have p {} where the claim is false, data this far on the other side p \
         {} where the opposite is; {law}{q}{looks}",
        number(pair.support),
        number(pair.refute)
    ))
}

fn corrected(verdict: &Verdict) -> Option<String> {
    let (q, corrected) = (verdict.q?, verdict.q_corrected?);
    let family = &verdict.family;
    if family.members <= 1 {
        return Some("nothing, it is the only member of its family".to_owned());
    }
    let how = match family.instead.unwrap_or(family.correct) {
        Correction::Holm | Correction::HolmStrict | Correction::Hochberg => {
            let level =
                family.step_level.map(|l| format!(", where the level is {}", number(l))).unwrap_or_default();
            format!("it came at step {} of {}{level}", family.step, family.members)
        }
        Correction::Bonferroni => format!("each of {} members has its share of the level", family.members),
        Correction::Max => format!("one permutation of all {} members", family.members),
        Correction::None => "nothing, as registered".to_owned(),
        Correction::Hommel | Correction::Bh | Correction::By => format!("over {} members", family.members),
    };
    let instead = match family.instead {
        Some(_) => "one permutation of all members needs the same units in each, so by Holm's method: ",
        None => "",
    };
    Some(format!("{instead}{how}; q {} becomes {}", number(q), number(corrected)))
}

fn decided(verdict: &Verdict) -> String {
    let word = verdict.word.map_or("an estimate without a verdict", Word::word);
    let reason = verdict
        .reason
        .as_ref()
        .map(|r| format!(", {}", super::verdict::reason_of(verdict, r)))
        .unwrap_or_default();
    match (verdict.decided_by, verdict.q_corrected) {
        (DecidedBy::Inference, Some(q)) if verdict.reason.is_none() => {
            let side = match verdict.p {
                Some(pair) if pair.support < pair.refute => "the data are on the claim's side",
                _ => "the data are on the other side",
            };
            format!("{} is at most α = {}, and {side}: {word}", number(q), verdict.alpha)
        }
        (DecidedBy::Estimate, _) => format!("by the estimate alone, as registered: {word}{reason}"),
        (DecidedBy::Position, _) => {
            format!("by position, for the quantity is registered as deterministic: {word}{reason}")
        }
        (DecidedBy::Units, _) => format!("by counting these units: {word}{reason}"),
        _ => format!("{word}{reason}"),
    }
}

/// Where the values of the claim's unit axes come from: derived, from a registration, or picked by hand.
pub fn seeds(plan: &Plan, claim: &Claim) -> Vec<String> {
    let parts = claim.test.parts();
    let mut names: Vec<&str> = parts.iter().filter_map(|part| part.replicate.as_deref()).collect();
    names.sort_unstable();
    names.dedup();
    names.iter().filter_map(|name| Some((*name, plan.axis(name)?))).filter_map(origin).collect()
}

fn origin((name, axis): (&str, &Axis)) -> Option<String> {
    let how = match &axis.points {
        Points::Seeds { fresh: true, root: Some(first), .. } => {
            format!(
                "derived from the first registration {}; no outside value came after it",
                &first[..first.len().min(8)]
            )
        }
        Points::Seeds { fresh: true, root: None, .. } => {
            "derived before any registration; registered ones will be others".to_owned()
        }
        Points::Seeds { .. } => "derived from the axis' name; nobody picked them".to_owned(),
        Points::List(values) if values.iter().all(|value| value.as_i64().is_some()) => {
            const SHOWN: usize = 8;
            let shown: Vec<String> = values.iter().take(SHOWN).map(ToString::to_string).collect();
            let more = if values.len() > SHOWN { ", …" } else { "" };
            format!("picked by hand: {}{more}", shown.join(", "))
        }
        _ => return None,
    };
    Some(format!("`{name}` {how}"))
}
