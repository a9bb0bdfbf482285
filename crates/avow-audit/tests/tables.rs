//! Measurements as people have them: tables, nested JSON.

#![expect(clippy::unwrap_used, reason = "tests")]

mod common;

use std::collections::BTreeMap;

use avow_audit::measure::{self, Readings};
use avow_model::plan::{MeasurementFormat, Plan};
use avow_model::value::Value;
use common::*;

fn read(format: MeasurementFormat, path: &str, values: &[&str], keys: &[&str], text: &str) -> Readings {
    let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    let mut plan: Plan = plan(vec![seeds(1)], vec![stage("train", &["seed"], format)], vec![]);
    let file = &mut plan.stages[0].measurements[0];
    file.values = owned(values);
    file.keys = owned(keys);
    file.pointers = match format {
        MeasurementFormat::NestedJson => {
            let pairs = values.iter().map(|pair| pair.split_once(' ').unwrap());
            pairs.map(|(name, pointer)| (name.to_owned(), pointer.to_owned())).collect()
        }
        _ => BTreeMap::new(),
    };
    if format == MeasurementFormat::NestedJson {
        file.values.clear();
    }
    plan.stages[0].outputs.get_mut("result").unwrap().path = path.to_owned();
    let mut lab = Lab::new(plan);
    lab.run("train", |_| Some(text.to_owned()));
    measure::read_all(&lab.evidence(), lab.source()).unwrap()
}

fn numbers(readings: &Readings) -> Vec<(String, String, f64, usize)> {
    let keys = |keys: &BTreeMap<String, Value>| {
        keys.iter().map(|(k, v)| format!("{k}={v:?}")).collect::<Vec<_>>().join(",")
    };
    readings.values.iter().map(|m| (m.name.clone(), keys(&m.keys), m.value, m.origin.line)).collect()
}

#[test]
fn a_wide_table_has_a_column_per_measurement() {
    let text = "term,auroc,note,auprc\nalpha,0.9,x,0.5\n\"beta, gamma\",nan,y,\n007,1e-3,z,-inf\n";
    let readings = read(MeasurementFormat::WideTable, "a.csv", &["auroc", "auprc"], &["term"], text);
    assert_eq!(readings.problems, []);
    let found = numbers(&readings);
    assert_eq!(found[0], ("auroc".to_owned(), "term=Text(\"alpha\")".to_owned(), 0.9, 2));
    assert_eq!(found[1].2, 0.5);
    assert!(found[2].2.is_nan() && found[3].2.is_nan(), "an empty cell is NaN, as data frames write it");
    assert_eq!(found[2].1, "term=Text(\"beta, gamma\")");
    assert_eq!(
        (found[4].1.as_str(), found[4].2, found[5].2),
        ("term=Text(\"007\")", 0.001, f64::NEG_INFINITY)
    );
    let tabs = read(MeasurementFormat::WideTable, "a.tsv", &[], &["epoch"], "epoch\tloss\n1\t0.5\n2\t0.25\n");
    assert_eq!(numbers(&tabs)[1], ("loss".to_owned(), "epoch=Int(2)".to_owned(), 0.25, 3));
}

#[test]
fn a_tidy_table_has_names_and_values() {
    let text = "layer,name,value\n3,cka,0.4\n3,loss,0.1\n4,cka,NA\n";
    let all = numbers(&read(MeasurementFormat::TidyTable, "a.csv", &[], &[], text));
    assert_eq!(all[0], ("cka".to_owned(), "layer=Int(3)".to_owned(), 0.4, 2));
    assert_eq!(all.len(), 3);
    assert!(all[2].2.is_nan());
    let some = numbers(&read(MeasurementFormat::TidyTable, "a.csv", &["loss"], &[], text));
    assert_eq!(some, [("loss".to_owned(), "layer=Int(3)".to_owned(), 0.1, 3)]);
}

#[test]
fn what_is_wrong_with_a_table_is_told_with_its_line() {
    let wide = |text: &str| read(MeasurementFormat::WideTable, "a.csv", &["x"], &["k"], text);
    for (text, code, line) in [
        ("k,y\n1,2\n", "without", 1),
        ("", "without", 1),
        ("k,x,x\n1,2,3\n", "syntax", 1),
        ("k,x\n1,2\n1,2,3\n", "syntax", 3),
        ("k,x\na,high\n", "not-a-number", 2),
        ("k,x\na,1\na,2\n", "duplicate", 3),
        ("k,x\na,\"1,5\"\n", "not-a-number", 2),
    ] {
        let readings = wide(text);
        let problem = readings.problems.first().unwrap_or_else(|| panic!("{text:?}"));
        assert_eq!((problem.reason.word(), problem.line), (code, line), "{text:?}");
    }
}

#[test]
fn pointers_find_numbers_in_nested_json() {
    let values = ["knn /probe/knn", "first /layers/0/loss", "lost /layers/9/loss", "deep /probe"];
    let text = r#"{"probe": {"knn": 0.75}, "layers": [{"loss": NaN}, {"loss": 2}]}"#;
    let readings = read(MeasurementFormat::NestedJson, "a.json", &values, &[], text);
    let found = numbers(&readings);
    assert_eq!((found[1].0.as_str(), found[1].2), ("knn", 0.75));
    assert!(found[0].2.is_nan());
    let problems: Vec<(&str, &str)> =
        readings.problems.iter().map(|p| (p.name.as_deref().unwrap(), p.reason.word())).collect();
    assert_eq!(problems, [("deep", "not-a-number"), ("lost", "not-there")]);
}
