//! Training and capture: gradients are right, steps are right, and what is captured fits together.

use avow_ops::OpError;
use avow_ops::matrix::Matrix;
use avow_ops::random::Source;

use crate::support::{Bench, close, float, int, ints};

/// Twelve rows of three features in three classes, written as `data`.
fn small_data(bench: &Bench) {
    let x = Matrix::new(12, 3, Source::new("test data", 1).draw(0).normals(36));
    let y: Vec<i64> = (0..12).map(|i| i % 3).collect();
    bench.write_classified("data", &x, &y);
}

fn train(bench: &Bench, epochs: i64, batch: i64, decay: f64) {
    let with = [
        ("widths", ints(&[5, 4])),
        ("epochs", int(epochs)),
        ("checkpoints", ints(&[0, epochs])),
        ("batch", int(batch)),
        ("decay", float(decay)),
        ("init_seed", int(3)),
        ("order_seed", int(4)),
    ];
    bench.run("mlp/train", &with, &[("train", "data")], &[("model", "model")]);
}

fn capture(bench: &Bench, model: &str) -> f64 {
    let files = [("model", model), ("data", "data")];
    bench.run("mlp/capture", &[("epoch", int(0))], &files, &[("capture", "capture")]).get("loss", &[])
}

/// The gradient of the mean loss by the weights of a layer, from a capture.
fn by_weights(bench: &Bench, layer: usize) -> Matrix {
    let held = bench.read("capture");
    let (g_b, h_a) = (&held[&format!("g_b.{layer}")], &held[&format!("h_a.{layer}")]);
    g_b.transposed_times(h_a).map(|x| x / g_b.rows() as f64)
}

#[test]
fn captured_gradients_equal_finite_differences() {
    let bench = Bench::new();
    small_data(&bench);
    train(&bench, 1, 4, 0.0);
    let weights = bench.read("model");
    capture(&bench, "model");
    for layer in 1..=3 {
        let gradient = by_weights(&bench, layer);
        let name = format!("epoch.0.w{layer}");
        for entry in [0, 3, 7] {
            let nudged = |step: f64| {
                let mut copy = weights.clone();
                let mut values = copy[&name].values().to_vec();
                values[entry] += step;
                copy.insert(name.clone(), Matrix::new(gradient.rows(), gradient.columns(), values));
                let named: Vec<(&str, &Matrix)> = copy.iter().map(|(n, m)| (n.as_str(), m)).collect();
                bench.write("nudged", &named);
                let files = [("model", "nudged"), ("data", "data")];
                bench
                    .run("mlp/capture", &[("epoch", int(0))], &files, &[("capture", "other")])
                    .get("loss", &[])
            };
            let slope = (nudged(1e-6) - nudged(-1e-6)) / 2e-6;
            close(gradient.values()[entry], slope, 1e-7);
        }
    }
}

#[test]
fn one_step_follows_the_captured_gradient_and_the_decay() {
    let bench = Bench::new();
    small_data(&bench);
    // One epoch of one batch that holds every row: a single step.
    train(&bench, 1, 12, 0.25);
    capture(&bench, "model");
    let model = bench.read("model");
    for layer in 1..=3 {
        let (before, after) = (&model[&format!("epoch.0.w{layer}")], &model[&format!("epoch.1.w{layer}")]);
        let gradient = by_weights(&bench, layer);
        for i in 0..before.values().len() {
            let (w, g) = (before.values()[i], gradient.values()[i]);
            close(after.values()[i], w - 0.1 * (g + 0.25 * w), 1e-6);
        }
        assert_ne!(before.values(), after.values());
    }
}

#[test]
fn what_is_captured_fits_together() {
    let bench = Bench::new();
    small_data(&bench);
    train(&bench, 2, 5, 0.0);
    capture(&bench, "model");
    let held = bench.read("capture");
    for layer in 1..=3 {
        let get = |name: &str| held[&format!("{name}.{layer}")].clone();
        let h_b = get("h_a").times_transposed(&get("w"));
        assert_eq!(h_b.values(), get("h_b").values());
        assert_eq!(get("g_b").times(&get("w")).values(), get("g_a").values());
        if layer > 1 {
            let before = &held[&format!("h_b.{}", layer - 1)];
            assert_eq!(before.map(|z| z.max(0.0)).values(), get("h_a").values());
        }
    }
    let sums: Vec<f64> = held["g_b.3"].each_row().map(|row| row.iter().sum::<f64>()).collect();
    assert!(sums.iter().all(|s| s.abs() < 1e-15), "each gradient by the logits sums to zero: {sums:?}");
}

#[test]
fn seeds_have_separate_roles() {
    let bench = Bench::new();
    small_data(&bench);
    let model = |init: i64, order: i64| {
        let with = [
            ("widths", ints(&[4])),
            ("epochs", int(2)),
            ("checkpoints", ints(&[0, 2])),
            ("batch", int(4)),
            ("init_seed", int(init)),
            ("order_seed", int(order)),
        ];
        bench.run("mlp/train", &with, &[("train", "data")], &[("model", "model")]);
        bench.read("model")
    };
    let (base, init, order) = (model(1, 1), model(2, 1), model(1, 2));
    assert_ne!(base["epoch.0.w1"].values(), init["epoch.0.w1"].values());
    assert_eq!(base["epoch.0.w1"].values(), order["epoch.0.w1"].values());
    assert_ne!(base["epoch.2.w1"].values(), order["epoch.2.w1"].values());
}

#[test]
fn a_diverged_run_fails_and_says_where() {
    let bench = Bench::new();
    small_data(&bench);
    let with = [
        ("epochs", int(50)),
        ("checkpoints", ints(&[50])),
        ("batch", int(4)),
        ("rate", float(1e5)),
        ("init_seed", int(1)),
        ("order_seed", int(1)),
    ];
    let error = bench.refused("mlp/train", &with, &[("train", "data")], &[("model", "model")]);
    assert!(matches!(error, OpError::Numerical { .. }) && error.to_string().contains("in epoch"), "{error}");
    assert!(!bench.path("model").exists());
}

#[test]
fn history_holds_every_epoch_and_the_measurements_the_checkpoints() {
    let bench = Bench::new();
    small_data(&bench);
    let with = [
        ("epochs", int(4)),
        ("checkpoints", ints(&[0, 2, 4])),
        ("batch", int(4)),
        ("init_seed", int(1)),
        ("order_seed", int(1)),
    ];
    let outputs = [("model", "model"), ("history", "history")];
    let records = bench.run("mlp/train", &with, &[("train", "data")], &outputs);
    let history = std::fs::read_to_string(bench.path("history")).unwrap();
    assert_eq!((history.lines().count(), records.lines.len()), (4, 2));
    let first: serde_json::Value = serde_json::from_str(history.lines().nth(1).unwrap()).unwrap();
    assert_eq!(first, records.lines[0]);
}
