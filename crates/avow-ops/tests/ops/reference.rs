//! Reference values: `tests/data/reference.json`, made by `make_reference.py` beside it with NumPy and SciPy.

use avow_ops::alignment::{Form, Layer, Relation, Statistic};
use avow_ops::calibration::{Calibration, Level};
use avow_ops::cka::{LinearCka, Pairs};
use avow_ops::matrix::Matrix;
use avow_ops::normal::quantile;
use avow_ops::spectrum::Spectrum;
use serde_json::Value as Json;

use crate::support::{Bench, close, int, reference, rows};

fn floats(json: &Json) -> Vec<f64> {
    serde_json::from_value(json.clone()).unwrap()
}

fn orders(json: &Json) -> Vec<Vec<usize>> {
    serde_json::from_value(json.clone()).unwrap()
}

#[test]
fn linear_cka_of_small_matrices() {
    let bench = Bench::new();
    for case in reference()["linear_cka"].as_array().unwrap() {
        bench.write("x", &[("x", &rows(&case["x"]))]);
        bench.write("y", &[("y", &rows(&case["y"]))]);
        let records = bench.run("representation/similarity", &[], &[("x", "x"), ("y", "y")], &[]);
        close(records.get("linear-cka", &[]), case["value"].as_f64().unwrap(), 1e-12);
    }
}

#[test]
fn row_permutation_null_of_one_pair_and_of_the_maximum_over_layers() {
    let all = reference();
    for name in ["single", "max"] {
        let case = &all[name];
        let layers = |side: &str| case[side].as_array().unwrap().iter().map(rows).collect::<Vec<Matrix>>();
        let cka = LinearCka::new(&layers("x"), &layers("y"), Pairs::Max, 199);
        close(cka.score(), case["score"].as_f64().unwrap(), 1e-12);
        let null: Vec<f64> = orders(&all["orders"]).iter().map(|order| cka.permuted(order)).collect();
        for (got, wanted) in null.iter().zip(floats(&case["null"])) {
            close(*got, wanted, 1e-12);
        }
        check_levels(case, cka.score(), &null);
    }
}

#[test]
fn features_and_gram_matrices_give_the_same_null() {
    // One column is cheaper as features; twelve beside twelve rows are not, when they are permuted often.
    let column: Vec<f64> = (0..12).map(|i| f64::from((i * 7) % 12) - 3.0).collect();
    let other: Vec<f64> = (0..12).map(|i| f64::from((i * 5) % 11)).collect();
    let wide = |c: &[f64]| {
        let row = |x: f64| std::iter::once(x).chain(std::iter::repeat_n(0.0, 11));
        Matrix::new(12, 12, c.iter().flat_map(|x| row(*x)).collect())
    };
    let narrow = |c: &[f64]| Matrix::new(12, 1, c.to_vec());
    let by_features = LinearCka::new(&[narrow(&column)], &[narrow(&other)], Pairs::Max, 199);
    let by_grams = LinearCka::new(&[wide(&column)], &[wide(&other)], Pairs::Max, 199);
    let order = [3, 1, 4, 0, 5, 9, 2, 6, 8, 7, 11, 10];
    close(by_features.permuted(&order), by_grams.permuted(&order), 1e-12);
    close(by_features.score(), by_grams.score(), 1e-12);
}

#[test]
fn calibration_of_a_spread_out_null() {
    let all = reference();
    check_levels(&all["spread"], 0.52, &floats(&all["spread"]["null"]));
}

fn check_levels(case: &Json, score: f64, null: &[f64]) {
    for level in case["levels"].as_array().unwrap() {
        let alpha = Level::new(level["alpha"].as_f64().unwrap()).unwrap();
        assert_eq!(alpha.rank(null.len()) as u64, level["rank"].as_u64().unwrap());
        let got = Calibration::new(score, null, alpha, 1.0);
        let wanted = |name: &str| level[name].as_f64().unwrap();
        close(got.p, wanted("p"), 1e-15);
        close(got.threshold, wanted("threshold"), 1e-12);
        close(got.calibrated, wanted("calibrated"), 1e-12);
        close(got.null_mean, wanted("null_mean"), 1e-12);
        close(got.excess, score - wanted("null_mean"), 1e-12);
    }
}

#[test]
fn six_alignments_in_both_forms_and_statistics() {
    let case = &reference()["alignment"];
    let get = |name: &str| rows(&case[name]);
    let layer = Layer { h_a: get("h_a"), h_b: get("h_b"), g_a: get("g_a"), g_b: get("g_b"), w: get("w") };
    for (form, word) in
        [(Form::SecondMoment, "second-moment"), (Form::NormalisedCovariance, "normalised-covariance")]
    {
        for (statistic, column) in [(Statistic::Pearson, "pearson"), (Statistic::Cosine, "cosine")] {
            for (name, relation) in layer.relations(form, statistic) {
                let wanted = case["forms"][word][name][column].as_f64().unwrap();
                close(relation.score(), wanted, 1e-12);
            }
        }
    }
}

#[test]
fn one_permuted_pairing_of_neurons() {
    let case = &reference()["alignment"];
    let h = Form::SecondMoment.moment(&rows(&case["h_a"]));
    let z = rows(&case["w"]).column_gram();
    let order: Vec<usize> = serde_json::from_value(case["permuted"]["order"].clone()).unwrap();
    let got = Relation::new(&h, &z, Statistic::Pearson).permuted(&order);
    close(got, case["permuted"]["second-moment ha-za pearson"].as_f64().unwrap(), 1e-12);
}

#[test]
fn the_alignment_operation_agrees_with_the_formulas() {
    let case = &reference()["alignment"];
    let bench = Bench::new();
    let tensors: Vec<(String, Matrix)> = ["h_a", "h_b", "g_a", "g_b", "w"]
        .iter()
        .map(|name| (format!("{name}.1"), rows(&case[*name])))
        .collect();
    let named: Vec<(&str, &Matrix)> = tensors.iter().map(|(n, m)| (n.as_str(), m)).collect();
    bench.write("capture", &named);
    let records = bench.run(
        "representation/alignment",
        &[("layers", crate::support::ints(&[1]))],
        &[("capture", "capture")],
        &[],
    );
    for (relation, wanted) in case["forms"]["normalised-covariance"].as_object().unwrap() {
        let got = records.get("alignment", &[("layer", 1.into()), ("relation", relation.as_str().into())]);
        close(got, wanted["pearson"].as_f64().unwrap(), 1e-12);
    }
    let null = bench.run(
        "representation/alignment-null",
        &[("layers", crate::support::ints(&[1])), ("seed", int(1))],
        &[("capture", "capture")],
        &[],
    );
    for line in &records.lines {
        let keys = [("layer", 1.into()), ("relation", line["relation"].clone())];
        assert_eq!(null.get("alignment-score", &keys).to_bits(), line["value"].as_f64().unwrap().to_bits());
        let excess = null.get("alignment-score", &keys) - null.get("alignment-null-mean", &keys);
        close(null.get("alignment-excess", &keys), excess, 1e-15);
    }
}

#[test]
fn spectra_and_their_readings() {
    for case in reference()["spectra"].as_array().unwrap() {
        let got = Spectrum::of(&rows(&case["matrix"])).unwrap();
        for (value, wanted) in got.values().iter().zip(floats(&case["singular_values"])) {
            close(*value, wanted, 1e-12);
        }
        let wanted = |name: &str| case[name].as_f64().unwrap();
        assert_eq!(got.exact_rank() as f64, wanted("rank"));
        assert_eq!(got.rank_above(0.2) as f64, wanted("rank_at_0.2"));
        close(got.participation(), wanted("participation"), 1e-12);
        close(got.effective_rank(), wanted("effective_rank"), 1e-12);
        close(got.effective_rank_of_energy(), wanted("effective_rank_of_energy"), 1e-12);
        close(got.stable_rank(), wanted("stable_rank"), 1e-12);
    }
}

#[test]
fn normal_quantiles() {
    for case in reference()["quantiles"].as_array().unwrap() {
        close(quantile(case["p"].as_f64().unwrap()), case["x"].as_f64().unwrap(), 1e-14);
    }
}
