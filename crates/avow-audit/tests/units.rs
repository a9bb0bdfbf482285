//! How measurements become units: pairing, missing units, record keys, leftovers, values that are no numbers.

#![expect(clippy::unwrap_used, reason = "tests")]

mod common;

use avow_audit::join::{JoinError, join};
use avow_audit::judge::Reason;
use avow_audit::measure::{self, table::Table};
use avow_audit::{Verdict, Word};
use avow_model::claim::{Compare, Judge, Method, Missing, Part, Reduce, Reduction};
use avow_model::plan::MeasurementFormat;
use avow_model::value::Value;
use common::*;

fn helps(missing: Missing) -> Part {
    Part { compare: wd(), missing, ..part(difference(above(0.0), Method::T)) }
}

/// The standard data with one cell replaced.
fn lab_with(part: Part, odd: impl Fn(usize, u64) -> Option<Option<String>>) -> Lab {
    let axes = vec![seeds(8), axis("wd", &[0.0, 0.1])];
    let stages = vec![stage("train", &["seed", "wd"], MeasurementFormat::FlatJson)];
    let mut lab = Lab::new(plan(axes, stages, vec![claim("helps", one(part))]));
    lab.run("train", |cell| {
        let (seed, arm) = (cell.index("seed").unwrap() as usize, cell.index("wd").unwrap());
        odd(seed, arm).unwrap_or_else(|| Some(accuracy(standard_value(cell))))
    });
    lab
}

fn verdict(lab: &Lab) -> Verdict {
    lab.audit().verdicts.remove(0)
}

fn drop_above(share: &str) -> Missing {
    Missing::Drop { void_above: share.to_owned() }
}

#[test]
fn a_missing_unit_voids_or_is_dropped_from_both_arms() {
    let gone = |seed, arm| (seed == 3 && arm == 1).then_some(None);
    let void = verdict(&lab_with(helps(Missing::Void), gone));
    assert_eq!((void.word, void.reason.unwrap().word()), (Some(Word::Void), "missing-units"));
    assert_eq!((void.units.planned, void.units.used), (8, 7));
    assert_eq!((void.units.arms[0].missing, void.units.arms[1].missing), (1, 0));
    let dropped = verdict(&lab_with(helps(drop_above("0.125")), gone));
    assert_eq!((dropped.word, dropped.units.used), (Some(Word::Supported), 7));
    let mean = (0..8).filter(|i| *i != 3).map(|i| X[i] - Y[i]).sum::<f64>() / 7.0;
    assert!((dropped.estimate.unwrap() - mean).abs() < 1e-12);
    // One of eight is 12.5 %, strictly above 12 %.
    let strict = verdict(&lab_with(helps(drop_above("0.12")), gone));
    assert_eq!(strict.reason.unwrap().word(), "missing-units");
}

#[test]
fn unpaired_arms_drop_only_their_own() {
    let welch =
        Part { compare: wd(), missing: drop_above("0.2"), ..part(difference(above(0.0), Method::Welch)) };
    let gone = |seed, arm| (seed == 3 && arm == 1).then_some(None);
    let verdict = verdict(&lab_with(welch, gone));
    let first = (0..8).filter(|i| *i != 3).map(|i| X[i]).sum::<f64>() / 7.0;
    let second = Y.iter().sum::<f64>() / 8.0;
    assert!((verdict.estimate.unwrap() - (first - second)).abs() < 1e-12);
}

#[test]
fn values_that_are_not_finite_void_unless_dropped() {
    for (text, code) in [("NaN", "non-finite"), ("Infinity", "non-finite"), ("\"NaN\"", "non-finite")] {
        let odd = |seed, arm| (seed == 2 && arm == 0).then(|| Some(format!("{{\"accuracy\": {text}}}")));
        let void = verdict(&lab_with(helps(Missing::Void), odd));
        assert_eq!((void.word, void.reason.unwrap().word()), (Some(Word::Void), code));
        assert_eq!(void.units.arms[1].non_finite, 1);
        let dropped = verdict(&lab_with(helps(drop_above("20%")), odd));
        assert_eq!((dropped.word, dropped.units.used), (Some(Word::Supported), 7));
    }
}

#[test]
fn what_is_no_number_voids_only_the_claims_that_select_it() {
    for (text, code) in [("true", "not-a-number"), ("null", "not-a-number"), ("\"high\"", "not-a-number")] {
        let odd = |seed, arm| (seed == 2 && arm == 0).then(|| Some(format!("{{\"accuracy\": {text}}}")));
        let lab = lab_with(helps(drop_above("20%")), odd);
        let report = lab.audit();
        assert_eq!(report.verdicts[0].reason, Some(Reason::Unreadable));
        let problem = &report.problems[0];
        assert_eq!(
            (problem.reason.word(), problem.line, problem.name.as_deref()),
            (code, 1, Some("accuracy"))
        );
        assert_eq!(problem.member, "train[seed=2,wd=0]");
    }
    let odd =
        |seed, arm| (seed == 2 && arm == 0).then(|| Some(r#"{"accuracy": 0.909, "done": true}"#.to_owned()));
    let lab = lab_with(helps(Missing::Void), odd);
    assert_eq!(verdict(&lab).word, Some(Word::Supported));
}

#[test]
fn a_torn_file_is_a_problem_with_its_line() {
    let odd = |seed, arm| (seed == 2 && arm == 0).then(|| Some("{\"accuracy\": 0.9".to_owned()));
    let lab = lab_with(helps(Missing::Void), odd);
    let report = lab.audit();
    assert_eq!(report.verdicts[0].reason, Some(Reason::Unreadable));
    assert_eq!(report.problems[0].reason.word(), "syntax");
}

/// `probe[seed]` writes, for each of its layers, three tidy records.
fn layered(part: Part, text: impl Fn(u64) -> String) -> Lab {
    let stages = vec![stage("train", &["seed"], MeasurementFormat::TidyJsonLines)];
    let mut lab = Lab::new(plan(vec![seeds(8)], stages, vec![claim("layers", one(part))]));
    lab.run("train", |cell| Some(text(cell.index("seed").unwrap())));
    lab
}

fn lines(seed: u64, layers: &[u64]) -> String {
    let line = |layer: &u64| {
        let value = X[seed as usize] + *layer as f64;
        format!("{{\"name\": \"accuracy\", \"value\": {value}, \"layer\": {layer}, \"seed\": {seed}}}\n")
    };
    layers.iter().map(line).collect()
}

#[test]
fn record_keys_make_family_members() {
    let per_layer = Part { per: vec!["layer".to_owned()], ..part(mean(above(0.5), Method::T)) };
    let lab = layered(per_layer, |seed| lines(seed, &[0, 1, 2]));
    let verdicts = lab.audit().verdicts;
    assert_eq!(verdicts.len(), 3);
    for (layer, verdict) in verdicts.iter().enumerate() {
        assert_eq!(verdict.member, [("layer".to_owned(), Value::Int(layer as i64))]);
        assert_eq!((verdict.units.planned, verdict.family.members), (8, 3));
        let mean = X.iter().sum::<f64>() / 8.0 + layer as f64;
        assert!((verdict.estimate.unwrap() - mean).abs() < 1e-9);
    }
}

#[test]
fn a_record_that_one_seed_lacks_is_a_missing_unit() {
    let per_layer = Part { per: vec!["layer".to_owned()], ..part(mean(above(0.5), Method::T)) };
    let lab = layered(per_layer, |seed| lines(seed, if seed == 5 { &[0, 1] } else { &[0, 1, 2] }));
    let words: Vec<_> = lab.audit().verdicts.iter().map(|v| v.word.unwrap()).collect();
    assert_eq!(words, [Word::Supported, Word::Supported, Word::Void]);
}

#[test]
fn a_reduced_dimension_with_a_hole_is_a_missing_unit() {
    let reduce = vec![Reduce { dimension: "layer".to_owned(), by: Reduction::Max }];
    let part = |reduce| Part { reduce, ..part(mean(above(0.5), Method::T)) };
    let whole = layered(part(reduce.clone()), |seed| lines(seed, &[0, 1, 2]));
    let found = verdict(&whole).estimate.unwrap();
    assert!((found - (X.iter().sum::<f64>() / 8.0 + 2.0)).abs() < 1e-9);
    let holed = layered(part(reduce), |seed| lines(seed, if seed == 5 { &[0, 1] } else { &[0, 1, 2] }));
    assert_eq!(verdict(&holed).reason.unwrap().word(), "missing-units");
    // Without a role the layers are left over.
    let open = layered(part(vec![]), |seed| lines(seed, &[0, 1, 2]));
    let reason = verdict(&open).reason.unwrap();
    assert_eq!((reason.word(), reason.detail().as_deref()), ("leftover-dimension", Some("layer")));
}

#[test]
fn a_record_key_may_be_the_replicate_or_the_contrast() {
    let replicated = Part { replicate: Some("layer".to_owned()), ..part(mean(above(0.5), Method::T)) };
    let reason = verdict(&layered(replicated.clone(), |seed| lines(seed, &[0, 1]))).reason.unwrap();
    assert_eq!((reason.word(), reason.detail().as_deref()), ("leftover-dimension", Some("seed")));
    let reduce = vec![Reduce { dimension: "seed".to_owned(), by: Reduction::Mean }];
    let averaged = Part { reduce, ..replicated };
    assert_eq!(verdict(&layered(averaged, |seed| lines(seed, &[0, 1]))).units.planned, 2);
    let first = Compare { dimension: "layer".to_owned(), first: Value::Int(1), second: Value::Int(0) };
    let contrast = Part { compare: Some(first), ..part(difference(above(0.5), Method::T)) };
    let found = verdict(&layered(contrast, |seed| lines(seed, &[0, 1, 2])));
    assert!((found.estimate.unwrap() - 1.0).abs() < 1e-9);
    assert_eq!(
        (found.word, found.q),
        (Some(Word::Supported), Some(0.0078125)),
        "eight equal differences: 2^-7"
    );
}

#[test]
fn where_narrows_axes_and_record_keys() {
    let mut narrow = part(mean(above(0.5), Method::T));
    narrow.select.filter.insert("layer".to_owned(), vec![Value::Int(1)]);
    narrow.select.filter.insert("seed".to_owned(), (0..4).map(Value::Int).collect());
    let found = verdict(&layered(narrow, |seed| lines(seed, &[0, 1, 2])));
    assert_eq!((found.units.planned, found.units.used), (4, 4));
    assert!((found.estimate.unwrap() - (X[..4].iter().sum::<f64>() / 4.0 + 1.0)).abs() < 1e-9);
}

#[test]
fn tidy_lines_that_contradict_repeat_or_lack_something() {
    let bad = [
        ("{\"name\": \"accuracy\", \"value\": 1, \"seed\": 7}\n", "contradicts-cell"),
        ("{\"name\": \"accuracy\", \"value\": 1}\n\n{\"name\": \"accuracy\", \"value\": 2}\n", "duplicate"),
        ("{\"name\": \"accuracy\"}\n", "without"),
        ("{\"value\": 1}\n", "without"),
        ("{\"name\": \"accuracy\", \"value\": 1, \"at\": [1]}\n", "bad-key"),
    ];
    for (text, code) in bad {
        let lab = layered(part(mean(above(0.5), Method::T)), |seed| {
            if seed == 0 { text.to_owned() } else { "{\"name\": \"accuracy\", \"value\": 1}\n".to_owned() }
        });
        let report = lab.audit();
        assert_eq!(report.problems[0].reason.word(), code);
        assert_eq!(report.verdicts[0].reason, Some(Reason::Unreadable), "{code}");
    }
}

#[test]
fn an_axis_without_a_role_is_left_over() {
    let lab = standard(vec![claim("level", one(part(mean(above(0.9), Method::T))))]);
    let reason = verdict(&lab).reason.unwrap();
    assert_eq!((reason.word(), reason.detail().as_deref()), ("leftover-dimension", Some("wd")));
    let mut unknown = part(mean(above(0.9), Method::T));
    unknown.per = vec!["depth".to_owned()];
    let lab = standard(vec![claim("level", one(unknown))]);
    assert_eq!(verdict(&lab).reason.unwrap().word(), "unknown-dimension");
    let other = Compare { dimension: "wd".to_owned(), first: Value::Float(0.5), second: Value::Int(0) };
    let lab = standard(vec![claim(
        "level",
        one(Part { compare: Some(other), ..part(difference(above(0.0), Method::T)) }),
    )]);
    assert_eq!(verdict(&lab).reason.unwrap().detail().as_deref(), Some("wd=0.5"));
}

#[test]
fn an_excluded_cell_is_not_planned_and_cannot_pair() {
    let axes = vec![seeds(8), axis("wd", &[0.0, 0.1])];
    let stages = vec![stage("train", &["seed", "wd"], MeasurementFormat::FlatJson)];
    let mut plan = plan(axes, stages, vec![claim("helps", one(helps(Missing::Void)))]);
    plan.exclude = vec![avow_model::expression::Expression::parse("axes.seed == 3 && axes.wd > 0").unwrap()];
    let mut lab = Lab::new(plan);
    lab.run("train", |cell| Some(accuracy(standard_value(cell))));
    let found = verdict(&lab);
    assert_eq!((found.word, found.reason.unwrap().word()), (Some(Word::Void), "unpaired"));
    assert_eq!((found.units.arms[0].planned, found.units.arms[1].planned), (7, 8));
}

#[test]
fn units_come_in_planned_order_whatever_the_order_of_attempts() {
    let part = Part { compare: wd(), judge: Judge::Estimate, ..part(difference(above(0.0), Method::None)) };
    let axes = vec![axis("seed", &[5.0, 1.0, 3.0]), axis("wd", &[0.1, 0.0])];
    let stages = vec![stage("train", &["seed", "wd"], MeasurementFormat::FlatJson)];
    let mut lab = Lab::new(plan(axes, stages, vec![claim("helps", one(part.clone()))]));
    for cell in [4, 1, 5, 0, 3, 2] {
        let member = lab.member("train", cell);
        lab.succeed(member, &accuracy(cell as f64));
    }
    let evidence = lab.evidence();
    let readings = measure::read_all(&evidence, lab.source()).unwrap();
    let joined = join(&evidence, &readings, &part).unwrap();
    let ids: Vec<Value> = joined[0].units.iter().map(|unit| unit.id.clone().unwrap()).collect();
    assert_eq!(ids, [Value::Int(5), Value::Int(1), Value::Int(3)]);
    assert!(
        (verdict(&lab).estimate.unwrap() - -1.0).abs() < 1e-12,
        "0.1 comes first on the axis, cells 0, 2, 4"
    );
    let mut nowhere = part;
    nowhere.select.stage = "test".to_owned();
    let error = join(&evidence, &readings, &nowhere).unwrap_err();
    assert_eq!(error, JoinError::UnknownStage { stage: "test".to_owned() });
}

#[test]
fn the_table_is_flat_and_sorted() {
    let lab = layered(part(mean(above(0.5), Method::T)), |seed| lines(seed, &[1, 0]));
    let evidence = lab.evidence();
    let readings = measure::read_all(&evidence, lab.source()).unwrap();
    let table = Table::new(&lab.plan, &readings);
    let mut csv = Vec::new();
    table.write_csv(&mut csv).unwrap();
    let text = String::from_utf8(csv).unwrap();
    let head: Vec<&str> = text.lines().take(3).collect();
    assert_eq!(head, ["stage,seed,layer,name,value", "train,0,0,accuracy,0.912", "train,0,1,accuracy,1.912"]);
    let rows = serde_json::to_value(&table.rows[0]).unwrap();
    assert_eq!((rows["value"].as_f64(), rows["line"].as_u64()), (Some(0.912), Some(2)));
}

/// `train[model,seed]` over models with a width and a lab; accuracy is the model's position.
fn models(part: Part) -> Lab {
    use avow_model::axis::{Axis, NamedPoint, Points};
    use avow_model::expression::Expression;
    let point = |(name, width, lab): (&str, i64, &str)| NamedPoint {
        name: name.to_owned(),
        attributes: [("width".to_owned(), Value::Int(width)), ("lab".to_owned(), Value::from(lab))].into(),
    };
    let named = [("tiny", 8, "a"), ("small", 4, "b"), ("large", 2, "b")].map(point).to_vec();
    let model = Axis { name: "model".to_owned(), points: Points::Named(named) };
    let double = Expression::parse("2 * axes.model.width").unwrap();
    let derived = Axis { name: "double".to_owned(), points: Points::Derived(double) };
    let stages = vec![stage("train", &["model", "seed"], MeasurementFormat::FlatJson)];
    let mut lab = Lab::new(plan(vec![model, derived, seeds(4)], stages, vec![claim("c", one(part))]));
    lab.run("train", |cell| {
        let value = cell.index("model").unwrap() as f64 + cell.index("seed").unwrap() as f64 / 100.0;
        Some(accuracy(value))
    });
    lab
}

#[test]
fn attributes_group_and_derived_axes_order() {
    let per_lab = Part {
        per: vec!["model.lab".to_owned()],
        reduce: vec![Reduce { dimension: "model".to_owned(), by: Reduction::Mean }],
        ..part(mean(above(-1.0), Method::T))
    };
    let verdicts = models(per_lab.clone()).audit().verdicts;
    let found: Vec<(String, f64)> = verdicts
        .iter()
        .map(|v| (v.member[0].1.to_string(), (v.estimate.unwrap() * 1000.0).round()))
        .collect();
    assert_eq!(found, [("a".to_owned(), 15.0), ("b".to_owned(), 1515.0)]);
    // Without the reduction lab b holds two models; all members are void, and all of them count.
    let leftover = models(Part { reduce: vec![], ..per_lab }).audit().verdicts;
    let told: Vec<_> =
        leftover.iter().map(|v| (v.reason.as_ref().unwrap().detail(), v.family.members)).collect();
    assert_eq!(told, [(Some("model".to_owned()), 2), (Some("model".to_owned()), 2)]);
    let along = |name: &str| {
        let rule = avow_model::claim::Rule::Trend {
            along: name.to_owned(),
            statistic: avow_model::claim::RankStatistic::Spearman,
            of: avow_model::claim::TrendOf::Unit,
            bound: below(0.0),
            inference: by(Method::SignFlip),
        };
        verdict(&models(Part { judge: Judge::Estimate, ..part(rule) })).estimate.unwrap()
    };
    // Named models count in declared order, numbers by their size.
    assert_eq!((along("model"), along("model.width"), along("double")), (1.0, -1.0, -1.0));
}

#[test]
fn declared_keys_and_values_narrow_what_a_file_says() {
    let mut flat = stage("train", &["seed"], MeasurementFormat::FlatJson);
    flat.measurements[0].keys = vec!["epoch".to_owned()];
    flat.measurements[0].values = vec!["accuracy".to_owned()];
    let mut lab = Lab::new(plan(vec![seeds(2)], vec![flat], vec![]));
    lab.run("train", |_| Some(r#"{"accuracy": 0.5, "epoch": 3, "loss": "broken"}"#.to_owned()));
    let readings = measure::read_all(&lab.evidence(), lab.source()).unwrap();
    assert_eq!((readings.values.len(), readings.problems.len()), (2, 0));
    assert_eq!(*readings.values[0].keys, [("epoch".to_owned(), Value::Int(3))].into());
    let mut tidy = stage("train", &["seed"], MeasurementFormat::TidyJsonLines);
    tidy.measurements[0].keys = vec!["layer".to_owned()];
    let mut lab = Lab::new(plan(vec![seeds(1)], vec![tidy], vec![]));
    lab.run("train", |_| Some(r#"{"name": "a", "value": 1, "layer": 2, "note": [1, NaN]}"#.to_owned()));
    let readings = measure::read_all(&lab.evidence(), lab.source()).unwrap();
    assert_eq!(*readings.values[0].keys, [("layer".to_owned(), Value::Int(2))].into());
}
