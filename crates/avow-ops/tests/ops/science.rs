//! The set-ups of the first gallery in small: what came out in pilots comes out here.

use avow_model::value::Value;
use serde_json::Value as Json;

use crate::support::{Bench, Records, digits, float, int, ints, mean};

fn gaussian(bench: &Bench, rows: i64, columns: i64, layers: i64, shared: f64, seed: i64) {
    let with = [
        ("rows", int(rows)),
        ("columns", int(columns)),
        ("layers", int(layers)),
        ("shared", float(shared)),
        ("seed", int(seed)),
    ];
    bench.run("synthetic/gaussian", &with, &[], &[("x", "x"), ("y", "y")]);
}

fn null(bench: &Bench, permutations: i64, pairs: &str, seed: i64) -> Records {
    let with = [("permutations", int(permutations)), ("pairs", Value::from(pairs)), ("seed", int(seed))];
    bench.run("representation/permutation-null", &with, &[("x", "x"), ("y", "y")], &[])
}

fn similarity(bench: &Bench, pairs: &str) -> f64 {
    let with = [("pairs", Value::from(pairs))];
    bench.run("representation/similarity", &with, &[("x", "x"), ("y", "y")], &[]).get("linear-cka", &[])
}

#[test]
fn raw_cka_of_unrelated_features_follows_width_and_the_calibrated_score_is_flat() {
    let bench = Bench::new();
    for width in [4, 64, 256] {
        let (mut raw, mut calibrated) = (Vec::new(), Vec::new());
        for seed in 0..8 {
            gaussian(&bench, 100, width, 1, 0.0, seed);
            let records = null(&bench, 99, "single", seed);
            raw.push(records.get("linear-cka-score", &[]));
            calibrated.push(records.get("linear-cka-calibrated", &[]));
        }
        let wanted = width as f64 / (100.0 + width as f64);
        assert!((mean(&raw) - wanted).abs() < 0.03, "width {width}: {} is not {wanted}", mean(&raw));
        assert!(mean(&calibrated) < 0.02, "width {width}: {calibrated:?}");
    }
}

#[test]
fn shared_variance_is_detected_at_the_pilots_size() {
    let bench = Bench::new();
    let scores: Vec<f64> = (0..8)
        .map(|seed| {
            gaussian(&bench, 100, 64, 1, 0.3, seed);
            null(&bench, 199, "single", seed).get("linear-cka-calibrated", &[])
        })
        .collect();
    assert!(scores.iter().all(|s| *s > 0.0), "{scores:?}");
    assert!((mean(&scores) - 0.065).abs() < 0.025, "{scores:?}");
}

#[test]
fn a_shared_latent_has_the_stated_part_of_the_variance() {
    let bench = Bench::new();
    gaussian(&bench, 4000, 3, 2, 0.6, 5);
    let (x, y) = (bench.read("x"), bench.read("y"));
    for layer in ["layer.01", "layer.02"] {
        let covariance = x[layer].transposed_times(&y[layer]).map(|v| v / 4000.0);
        for i in 0..3 {
            for j in 0..3 {
                let wanted = if i == j { 0.6 } else { 0.0 };
                assert!((covariance.at(i, j) - wanted).abs() < 0.08, "{i} {j}: {}", covariance.at(i, j));
            }
        }
    }
    assert_ne!(x["layer.01"].values(), x["layer.02"].values());
}

#[test]
fn searching_layer_pairs_inflates_the_maximum_and_depth_of_a_stack_does_not() {
    let bench = Bench::new();
    let (mut one, mut eight, mut shallow, mut deep, mut last) =
        (Vec::new(), Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for seed in 0..6 {
        gaussian(&bench, 100, 64, 1, 0.0, seed);
        one.push(similarity(&bench, "max"));
        gaussian(&bench, 100, 64, 8, 0.0, seed);
        eight.push(similarity(&bench, "max"));
        for depth in [1, 8] {
            let with = [("rows", int(100)), ("depth", int(depth)), ("seed", int(seed))];
            bench.run("synthetic/relu-stack", &with, &[], &[("x", "x"), ("y", "y")]);
            if depth == 1 {
                shallow.push(similarity(&bench, "max"));
            } else {
                deep.push(similarity(&bench, "max"));
                last.push(similarity(&bench, "last"));
            }
        }
    }
    assert!(mean(&eight) - mean(&one) > 0.01, "{one:?} {eight:?}");
    assert!((mean(&deep) - mean(&shallow)).abs() < 0.01, "{shallow:?} {deep:?}");
    assert!(mean(&last) < 0.5 * mean(&shallow), "{last:?}");
}

#[test]
fn exact_rank_is_the_number_of_inputs_at_depth_one_and_falls_in_narrow_stacks() {
    let bench = Bench::new();
    let mut deepest = Vec::new();
    for seed in 0..5 {
        let records = bench.run("synthetic/relu-rank", &[("seed", int(seed))], &[], &[]);
        let at = |name: &str, depth: i64| records.get(name, &[("depth", Json::from(depth))]);
        assert_eq!(at("rank-exact", 1), 64.0);
        assert!((at("effective-rank-energy", 1) - 18.3).abs() < 2.5);
        assert!((at("participation", 1) - 7.4).abs() < 1.2);
        assert!(at("rank-relative", 6) < at("rank-relative", 1));
        deepest.push(at("rank-exact", 6));
        let wide = bench.run("synthetic/relu-rank", &[("width", int(128)), ("seed", int(seed))], &[], &[]);
        assert_eq!(wide.get("rank-exact", &[("depth", Json::from(6))]), 64.0);
    }
    assert!(mean(&deepest) < 62.0, "{deepest:?}");
}

#[test]
fn digits_are_split_centred_and_complete() {
    let bench = Bench::new();
    std::fs::copy(digits(), bench.path("digits.csv")).unwrap();
    let outputs = [("train", "train"), ("test", "test")];
    bench.run("digits/split", &[("seed", int(1))], &[("data", "digits.csv")], &outputs);
    let (train, test) = (&bench.read("train")["x"], &bench.read("test")["x"]);
    assert_eq!((train.rows(), test.rows(), train.columns()), (1437, 360, 64));
    for j in 0..64 {
        let column: Vec<f64> = train.each_row().map(|row| row[j]).collect();
        assert!(mean(&column).abs() < 1e-14);
        let span =
            column.iter().copied().fold(f64::MIN, f64::max) - column.iter().copied().fold(f64::MAX, f64::min);
        assert!(span <= 1.0);
    }
}

/// Trains one network as the gallery does (slower than the rest: a second or two).
#[test]
fn a_trained_network_reads_digits_and_its_relations_stand_above_their_null() {
    let bench = Bench::new();
    std::fs::copy(digits(), bench.path("digits.csv")).unwrap();
    let parts = [("train", "train"), ("test", "test")];
    bench.run("digits/split", &[("seed", int(1))], &[("data", "digits.csv")], &parts);
    let with = [
        ("epochs", int(150)),
        ("checkpoints", ints(&[0, 150])),
        ("decay", float(3e-3)),
        ("init_seed", int(11)),
        ("order_seed", int(12)),
    ];
    bench.run("mlp/train", &with, &[("train", "train")], &[("model", "model")]);
    let capture = |epoch: i64| {
        let files = [("model", "model"), ("data", "test")];
        bench.run("mlp/capture", &[("epoch", int(epoch))], &files, &[("capture", "capture")])
    };
    let alignment = || {
        let input = [("capture", "capture")];
        bench.run("representation/alignment-null", &[("seed", int(13))], &input, &[])
    };
    assert!(capture(0).get("accuracy", &[]) < 0.3);
    let before = alignment();
    let trained = capture(150);
    assert!(trained.get("accuracy", &[]) > 0.95, "{}", trained.get("accuracy", &[]));
    let after = alignment();
    for line in after.lines.iter().filter(|l| l["name"] == "alignment-score") {
        let keys = [("layer", line["layer"].clone()), ("relation", line["relation"].clone())];
        let at = |records: &Records, name: &str| records.get(name, &keys);
        assert_eq!(at(&after, "alignment-p"), 0.01, "{line}");
        assert!(at(&after, "alignment-excess") > 0.2, "{line}");
        assert!(at(&after, "alignment-score") > at(&before, "alignment-score") + 0.05, "{line}");
        assert!(at(&after, "alignment-control").abs() < 0.15, "{line}");
    }
}
