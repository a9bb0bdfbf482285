//! Every rule and method at the edges: no unit, one, two; ties; equal values; NaN and infinity; separated arms; the
//! largest and smallest numbers. Never a panic, never a number that is none, never a word that the estimate denies.

#![expect(clippy::unwrap_used, reason = "tests")]

mod common;

use avow_audit::Word;
use avow_audit::judge::{DecidedBy, Verdict};
use avow_model::claim::{
    Bound, Claim, Coefficient, Compare, Condition, Correction, Inference, Judge, Method, Part, RankStatistic,
    Rule, Scale, Selected, Selection, Statistic, Tolerance, TrendOf, Weighting,
};
use avow_model::expression::Expression;
use avow_model::plan::MeasurementFormat;
use avow_model::value::Value;
use common::*;

/// A value by arm or level, and unit.
type Shape = fn(usize, usize) -> f64;

/// What the values look like.
const SHAPES: [(&str, Shape); 12] = [
    ("plain", |arm, unit| 0.6 + 0.1 * arm as f64 + 0.013 * ((unit * 7) % 5) as f64),
    ("equal", |_, _| 0.7),
    ("zero", |_, _| 0.0),
    ("two values", |arm, unit| ((unit + arm) % 2) as f64),
    ("one differs", |arm, unit| if unit == 0 && arm == 0 { 1.0 } else { 0.0 }),
    ("separated", |arm, unit| 1000.0 * arm as f64 + unit as f64),
    ("huge", |arm, unit| if (unit + arm).is_multiple_of(2) { 1.7e308 } else { -1.7e308 }),
    ("large", |arm, unit| 1e300 * (1.0 + 0.01 * (unit + 3 * arm) as f64)),
    ("tiny", |arm, unit| 5e-324 * ((unit + arm) % 3) as f64),
    ("negative", |arm, unit| -1.0 - 0.1 * (unit + arm) as f64),
    ("not a number", |arm, unit| if unit == 0 && arm == 0 { f64::NAN } else { 0.5 + 0.1 * unit as f64 }),
    ("infinite", |arm, unit| if unit == 0 && arm == 0 { f64::INFINITY } else { 0.5 + 0.1 * unit as f64 }),
];

/// How units, arms and levels are laid out.
#[derive(Clone, Copy, PartialEq)]
enum Layout {
    /// Units only.
    Units,
    /// Two arms of units.
    Arms,
    /// Six levels of units.
    Levels,
    /// Levels without units.
    Points,
}

struct Case {
    name: String,
    layout: Layout,
    part: Part,
}

fn case(name: &str, layout: Layout, rule: Rule) -> Case {
    let word = rule.inference().map_or("none".to_owned(), |inference| format!("{:?}", inference.method));
    let mut part = part(rule);
    if layout == Layout::Arms {
        part.compare =
            Some(Compare { dimension: "level".to_owned(), first: Value::Int(1), second: Value::Int(0) });
    }
    if layout == Layout::Points {
        part.replicate = None;
    }
    Case { name: format!("{name}/{word}"), layout, part }
}

fn unpaired(method: Method) -> Inference {
    Inference { unpaired: true, equal_spread: true, ..by(method) }
}

fn cases() -> Vec<Case> {
    let mut all = Vec::new();
    let threshold = |statistic, method| {
        let range = (method == Method::Bounded).then_some((0.0, 1.0));
        Rule::Threshold { statistic, bound: above(0.5), inference: Inference { range, ..by(method) } }
    };
    let one_sample = [
        Method::T,
        Method::SignFlip,
        Method::Wilcoxon,
        Method::Percentile,
        Method::Bca,
        Method::BootstrapT,
        Method::Sequential,
    ];
    for method in one_sample.into_iter().chain([Method::Bounded]) {
        all.push(case("mean", Layout::Units, threshold(Statistic::Mean, method)));
    }
    let log = Inference { log: true, ..by(Method::T) };
    all.push(case(
        "log",
        Layout::Units,
        Rule::Threshold { statistic: Statistic::Mean, bound: above(0.5), inference: log },
    ));
    for method in [Method::OrderStatistics, Method::Bca] {
        all.push(case("median", Layout::Units, threshold(Statistic::Median, method)));
    }
    all.push(case("every", Layout::Units, threshold(Statistic::Every, Method::None)));
    for method in one_sample {
        all.push(case("paired", Layout::Arms, difference(above(0.0), method)));
    }
    for method in [Method::Welch, Method::Student, Method::Permutation, Method::MannWhitney, Method::Bca] {
        let inference = unpaired(method);
        all.push(case("unpaired", Layout::Arms, Rule::Difference { bound: above(0.0), inference }));
    }
    for method in [Method::T, Method::Fieller, Method::Welch] {
        let inference = if method == Method::Welch { unpaired(method) } else { by(method) };
        all.push(case("ratio", Layout::Arms, Rule::Ratio { bound: above(1.0), inference }));
    }
    for method in [Method::T, Method::SignFlip] {
        let rule = Rule::Equivalence { about: 0.0, margin: 0.05, inference: by(method) };
        all.push(case("equivalence", Layout::Arms, rule));
    }
    for method in [Method::ClopperPearson, Method::Wilson] {
        let rule =
            Rule::Proportion { success: Condition::Above(0.5), bound: above(0.5), inference: by(method) };
        all.push(case("share", Layout::Units, rule));
    }
    for method in [Method::Newcombe, Method::Mcnemar] {
        let rule =
            Rule::Proportion { success: Condition::Above(0.5), bound: above(0.0), inference: by(method) };
        all.push(case("shares", Layout::Arms, rule));
    }
    for (of, method, statistic) in [
        (TrendOf::Unit, Method::T, RankStatistic::Spearman),
        (TrendOf::Unit, Method::SignFlip, RankStatistic::Kendall),
        (TrendOf::Unit, Method::Page, RankStatistic::Spearman),
        (TrendOf::Pooled, Method::Jackknife, RankStatistic::Spearman),
        (TrendOf::Pooled, Method::Jackknife, RankStatistic::Kendall),
    ] {
        let along = "level".to_owned();
        let rule = Rule::Trend { along, statistic, of, bound: above(0.0), inference: by(method) };
        all.push(case("trend", Layout::Levels, rule));
    }
    let slope = |scale, method| {
        let along = "level".to_owned();
        Rule::Slope { along, scale, bound: above(0.0), inference: by(method) }
    };
    all.push(case("slopes", Layout::Levels, slope(Scale::Linear, Method::T)));
    all.push(case("slopes", Layout::Levels, slope(Scale::LogLog, Method::SignFlip)));
    for method in [Method::LeastSquares, Method::Hc3, Method::TheilSen, Method::PowerOffset] {
        all.push(case("slope", Layout::Points, slope(Scale::Linear, method)));
    }
    all.push(case(
        "curve",
        Layout::Levels,
        Rule::Curve {
            along: "level".to_owned(),
            formula: Expression::parse("axes.level / 10").unwrap(),
            within: Tolerance { absolute: 0.1, relative: 0.0 },
            inference: by(Method::T),
        },
    ));
    all.push(case(
        "exact",
        Layout::Arms,
        Rule::Exact { along: None, within: Some(Tolerance { absolute: 0.1, relative: 0.0 }) },
    ));
    for statistic in [Coefficient::Spearman, Coefficient::Kendall, Coefficient::Pearson] {
        for bound in [above(0.0), above(0.3)] {
            let with = Selection {
                stage: "train".to_owned(),
                of: Selected::Measurement("other".to_owned()),
                filter: Default::default(),
            };
            let inference = by(Method::Permutation);
            all.push(case(
                "correlation",
                Layout::Units,
                Rule::Correlation { with, statistic, bound, inference },
            ));
        }
    }
    for weights in [Weighting::None, Weighting::Quadratic] {
        let rule = Rule::Agreement { weights, bound: above(0.0), inference: by(Method::Kappa) };
        all.push(case("agreement", Layout::Arms, rule));
    }
    all
}

/// Every case of one layout over the same data, as claims of one plan: by the registered method, then by the estimate.
fn judged(
    cases: &[&Case],
    layout: Layout,
    shape: fn(usize, usize) -> f64,
    units: usize,
) -> Vec<(usize, Verdict)> {
    let levels: &[f64] = match layout {
        Layout::Units => &[1.0],
        Layout::Arms => &[0.0, 1.0],
        Layout::Levels | Layout::Points => &[1.0, 2.0, 3.0, 5.0, 7.0, 11.0],
    };
    let (mut axes, mut scope) = (Vec::new(), Vec::new());
    if layout != Layout::Units {
        axes.push(axis(
            "level",
            &levels[..if layout == Layout::Points { units.min(6) } else { levels.len() }],
        ));
        scope.push("level");
    }
    if layout != Layout::Points {
        axes.push(seeds(units));
        scope.push("seed");
    }
    let stages = vec![stage("train", &scope, MeasurementFormat::FlatJson)];
    let claims = cases.iter().enumerate().flat_map(|(index, case)| {
        let estimate = Part { judge: Judge::Estimate, ..case.part.clone() };
        [("a", case.part.clone()), ("b", estimate)].map(|(kind, part)| Claim {
            correct: Correction::None,
            ..claim(&format!("{kind}{index:03}"), one(part))
        })
    });
    let mut lab = Lab::new(plan(axes, stages, claims.collect()));
    let spelled = |x: f64| match x {
        x if x.is_nan() => "NaN".to_owned(),
        x if x.is_infinite() => "Infinity".to_owned(),
        x => format!("{x:e}"),
    };
    lab.run("train", |cell| {
        let (level, unit) =
            (cell.index("level").unwrap_or(0) as usize, cell.index("seed").unwrap_or(0) as usize);
        let value = if layout == Layout::Points { shape(level % 2, level) } else { shape(level, unit) };
        let other = shape(unit % 2, unit + 1);
        Some(format!("{{\"accuracy\": {}, \"other\": {}}}", spelled(value), spelled(other)))
    });
    let verdicts = lab.audit().verdicts.into_iter();
    verdicts.map(|verdict| (verdict.claim[1..].parse().unwrap(), verdict)).collect()
}

/// What must hold of every verdict, whatever the data.
fn sound(verdict: &Verdict) -> Result<(), String> {
    let word = verdict.word.ok_or("no word")?;
    let probability = |name: &str, p: f64| match (0.0..=1.0).contains(&p) {
        true => Ok(()),
        false => Err(format!("{name} = {p}")),
    };
    for (name, p) in [("q", verdict.q), ("q̃", verdict.q_corrected)] {
        p.map_or(Ok(()), |p| probability(name, p))?;
    }
    if let Some(pair) = verdict.p {
        probability("p for", pair.support)?;
        probability("p against", pair.refute)?;
    }
    if verdict.estimate.is_some_and(|estimate| !estimate.is_finite()) {
        return Err(format!("estimate {:?}", verdict.estimate));
    }
    for interval in
        [verdict.interval, verdict.marginal_interval, verdict.refuting_interval].into_iter().flatten()
    {
        if interval.low.partial_cmp(&interval.high).is_none_or(|order| order.is_gt()) {
            return Err(format!("interval {interval:?}"));
        }
    }
    let explained = verdict.reason.is_some();
    match word {
        Word::Void | Word::Inconclusive if !explained => Err(format!("{word:?} without a reason")),
        Word::Supported | Word::Refuted | Word::Reversed if explained => {
            Err(format!("{word:?} with a reason"))
        }
        _ => Ok(()),
    }
}

/// The bound of a claim's region, where there is one number below which the claim says nothing.
fn bound(rule: &Rule) -> Option<f64> {
    match rule {
        Rule::Threshold { bound: Bound::Above { bound, .. }, .. }
        | Rule::Difference { bound: Bound::Above { bound, .. }, .. }
        | Rule::Ratio { bound: Bound::Above { bound, .. }, .. }
        | Rule::Slope { bound: Bound::Above { bound, .. }, .. } => Some(*bound),
        _ => None,
    }
}

/// Whether the word can be true of the estimate.
fn agrees(rule: &Rule, verdict: &Verdict) -> Result<(), String> {
    let (Some(bound), Some(estimate), Some(word)) = (bound(rule), verdict.estimate, verdict.word) else {
        return Ok(());
    };
    let slack = 1e-9 * estimate.abs().max(bound.abs());
    match word {
        Word::Supported if estimate < bound - slack => Err(format!("supported at {estimate}, bound {bound}")),
        Word::Refuted | Word::Reversed if estimate > bound + slack => {
            Err(format!("refuted at {estimate}, bound {bound}"))
        }
        _ => Ok(()),
    }
}

fn is_resampled(case: &Case) -> bool {
    let method = case.part.rule.inference().map(|i| i.method);
    matches!(method, Some(Method::Percentile | Method::Bca | Method::BootstrapT))
}

/// What is wrong with one verdict.
fn problem(case: &Case, verdict: &Verdict, shape: &str, units: usize) -> Option<String> {
    let definite = !matches!(verdict.word, Some(Word::Void | Word::Inconclusive));
    let spoilt = matches!(shape, "not a number" | "infinite") && case.layout != Layout::Points;
    let inferred = verdict.decided_by == DecidedBy::Inference && case.layout == Layout::Units;
    if let Err(problem) = sound(verdict).and_then(|()| agrees(&case.part.rule, verdict)) {
        return Some(problem);
    }
    if units == 0 && verdict.word != Some(Word::Void) {
        return Some("there is nothing".to_owned());
    }
    // A curve is three-valued where no inference is made: a level outside refutes it whatever another one is.
    let by_others = case.name.starts_with("curve") && verdict.decided_by != DecidedBy::Inference;
    if spoilt && units > 0 && definite && !case.name.starts_with("exact") && !by_others {
        return Some("a value is not finite".to_owned());
    }
    let lone = units == 1 && definite && inferred && !case.name.starts_with("share");
    lone.then(|| "one unit decides nothing".to_owned())
}

#[test]
fn no_rule_breaks_at_the_edges() {
    let all = cases();
    let (mut wrong, mut seen) = (Vec::new(), 0);
    for layout in [Layout::Units, Layout::Arms, Layout::Levels, Layout::Points] {
        for (shape, value) in SHAPES {
            for units in [0, 1, 2, 3, 5, 10] {
                // Ten units are for what needs ten, and for few shapes: a great deal is drawn and enumerated there.
                let many = |case: &Case| is_resampled(case) && matches!(shape, "plain" | "equal");
                let asked = |case: &&Case| case.layout == layout && (units < 10 || many(case));
                let some: Vec<&Case> = all.iter().filter(asked).collect();
                for (index, verdict) in judged(&some, layout, value, units) {
                    seen += 1;
                    if let Some(problem) = problem(some[index], &verdict, shape, units) {
                        let (name, by, word) = (&some[index].name, verdict.decided_by, verdict.word);
                        wrong.push(format!("{name} of {shape}, {units} units, {by:?}: {word:?}: {problem}"));
                    }
                }
            }
        }
    }
    assert!(seen > 1500, "{seen}");
    assert!(wrong.is_empty(), "{} of {seen}\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn below_its_least_number_a_method_names_one_that_would_work() {
    let plain = SHAPES[0].1;
    for (method, words) in [
        (Method::Bca, "bca needs 10; t would work"),
        (Method::Percentile, "percentile needs 10; t would work"),
        (Method::BootstrapT, "bootstrap-t needs 10; t would work"),
    ] {
        let rule = Rule::Threshold { statistic: Statistic::Mean, bound: above(0.5), inference: by(method) };
        let verdict = judged(&[&case("mean", Layout::Units, rule)], Layout::Units, plain, 8).remove(0).1;
        assert_eq!(verdict.reason.as_ref().unwrap().word(), "below-minimum-n");
        assert_eq!(verdict.reason.unwrap().detail().unwrap(), words);
    }
    let rule = Rule::Difference { bound: above(0.0), inference: unpaired(Method::Bca) };
    let verdict = judged(&[&case("unpaired", Layout::Arms, rule)], Layout::Arms, plain, 8).remove(0).1;
    assert_eq!(verdict.reason.unwrap().detail().unwrap(), "bca needs 10; welch would work");
}
