//! Numerical traps: each test fails on the obvious way to write the code.

use avow_ops::OpError;
use avow_ops::alignment::{Form, Relation, Statistic};
use avow_ops::calibration::{Calibration, Level};
use avow_ops::cka::{LinearCka, Pairs};
use avow_ops::matrix::Matrix;
use avow_ops::spectrum::Spectrum;

use crate::support::{Bench, close, float, int, reference};

#[test]
fn order_statistics_are_exact() {
    for case in reference()["order_statistics"].as_array().unwrap() {
        let level = Level::new(case["alpha"].as_f64().unwrap()).unwrap();
        let count = usize::try_from(case["count"].as_u64().unwrap()).unwrap();
        assert_eq!(level.rank(count) as u64, case["rank"].as_u64().unwrap(), "{case}");
    }
}

#[test]
fn levels_are_read_from_their_decimal_text() {
    let small = Level::new(1e-6).unwrap();
    assert_eq!((small.fewest(), small.rank(999_999)), (999_999, 999_999));
    assert_eq!(Level::new(0.05).unwrap().fewest(), 19);
    assert_eq!(Level::new(0.3).unwrap().fewest(), 3);
    assert!(Level::new(0.0).is_none() && Level::new(1.0).is_none() && Level::new(f64::NAN).is_none());
}

#[test]
fn too_few_permutations_are_refused_with_the_number_that_is_enough() {
    let bench = Bench::new();
    let x = Matrix::new(6, 1, (0..6).map(f64::from).collect());
    bench.write("x", &[("x", &x)]);
    let with = |k| [("permutations", int(k)), ("alpha", float(0.05)), ("seed", int(1))];
    let files = [("x", "x"), ("y", "x")];
    let error = bench.refused("representation/permutation-null", &with(18), &files, &[]);
    assert!(matches!(&error, OpError::Parameter { name, .. } if name == "permutations"));
    assert!(error.to_string().contains("at least 1/alpha - 1 = 19"), "{error}");
    bench.run("representation/permutation-null", &with(19), &files, &[]);
}

#[test]
fn an_exact_tie_counts_as_reached() {
    // All permutations of a representation with two distinct rows in equal numbers give few distinct values.
    let x = Matrix::new(4, 2, vec![0.1, 0.7, 0.1, 0.7, 0.3, -0.9, 0.3, -0.9]);
    let wide = Matrix::new(4, 8, x.each_row().flat_map(|row| row.repeat(4)).collect());
    for (form, side) in [("features", &x), ("Gram matrices", &wide)] {
        let cka = LinearCka::new(std::slice::from_ref(side), std::slice::from_ref(side), Pairs::Max, 99);
        assert_eq!(cka.score(), 1.0, "{form}");
        for order in [[1, 0, 2, 3], [0, 1, 3, 2], [1, 0, 3, 2]] {
            assert_eq!(cka.permuted(&order).to_bits(), cka.score().to_bits(), "{form}");
        }
    }
}

#[test]
fn a_constant_side_is_undefined_not_noise() {
    // The mean of seven times 0.1 is not 0.1 in floating point: centring alone would leave 1e-17.
    let constant = Matrix::new(7, 2, vec![0.1; 14]);
    let other = Matrix::new(7, 2, (0..14).map(|i| f64::from(i * i % 5)).collect());
    let bench = Bench::new();
    bench.write("x", &[("x", &constant)]);
    bench.write("y", &[("y", &other)]);
    let files = [("x", "x"), ("y", "y")];
    let records = bench.run("representation/similarity", &[], &files, &[]);
    assert_eq!(records.lines[0]["value"], "NaN");
    let null = bench.run("representation/permutation-null", &[("seed", int(1))], &files, &[]);
    assert!(null.lines.len() == 6 && null.lines.iter().all(|l| l["value"] == "NaN"), "{:?}", null.lines);
}

#[test]
fn a_constant_matrix_has_no_correlation() {
    let constant = Matrix::new(3, 3, vec![0.1; 9]);
    let other = Matrix::new(3, 3, vec![2.0, 1.0, 0.0, 1.0, 3.0, 1.0, 0.0, 1.0, 1.0]);
    assert!(Relation::new(&constant, &other, Statistic::Pearson).score().is_nan());
    assert!(Relation::new(&other, &constant, Statistic::Pearson).score().is_nan());
    assert!(Relation::new(&constant, &other, Statistic::Cosine).score() > 0.5);
}

#[test]
fn a_nan_anywhere_makes_the_whole_calibration_undefined() {
    let level = Level::new(0.5).unwrap();
    for (score, null) in [(f64::NAN, [0.1, 0.2]), (0.3, [0.1, f64::NAN])] {
        let got = Calibration::new(score, &null, level, 1.0);
        assert!([got.p, got.threshold, got.calibrated, got.null_mean].iter().all(|v| v.is_nan()));
    }
}

#[test]
fn zero_rows_stay_zero_and_tiny_rows_keep_their_direction() {
    let samples = Matrix::new(3, 2, vec![0.0, 0.0, 3e-200, 4e-200, 0.0, 2.0]);
    let got = Form::NormalisedCovariance.moment(&samples);
    let units = Matrix::new(3, 2, vec![0.0, 0.0, 0.6, 0.8, 0.0, 1.0]);
    let wanted = units.centred_columns().column_gram().map(|x| x / 3.0);
    for (a, b) in got.values().iter().zip(wanted.values()) {
        close(*a, *b, 1e-15);
    }
}

#[test]
fn similarity_does_not_depend_on_scale_however_extreme() {
    let x = Matrix::new(5, 2, vec![1.0, 2.0, 0.5, -1.0, 3.0, 0.0, -2.0, 1.0, 0.0, 1.5]);
    let y = Matrix::new(5, 1, vec![1.0, -1.0, 2.0, 0.0, 0.5]);
    let score =
        |x: &Matrix| LinearCka::new(std::slice::from_ref(x), std::slice::from_ref(&y), Pairs::Max, 0).score();
    for factor in [2.0_f64.powi(-400), 2.0_f64.powi(400)] {
        assert_eq!(score(&x.map(|v| v * factor)).to_bits(), score(&x).to_bits());
    }
}

#[test]
fn a_zero_matrix_has_rank_zero_and_undefined_ratios() {
    let spectrum = Spectrum::of(&Matrix::new(3, 2, vec![0.0; 6])).unwrap();
    assert_eq!((spectrum.exact_rank(), spectrum.rank_above(0.01)), (0, 0));
    assert!(spectrum.participation().is_nan() && spectrum.effective_rank().is_nan());
    assert!(Spectrum::of(&Matrix::new(2, 2, vec![1.0, f64::NAN, 0.0, 1.0])).is_none());
}

#[test]
fn gradients_of_fitted_rows_keep_their_digits() {
    // Logits 40 apart: p_y is one to the last bit, so p_y - 1 as written would be zero.
    let bench = Bench::new();
    bench.write("model", &[("epoch.5.w1", &Matrix::new(3, 1, vec![40.0, 0.0, -1.0]))]);
    bench.write_classified("data", &Matrix::new(1, 1, vec![1.0]), &[0]);
    let files = [("model", "model"), ("data", "data")];
    let records = bench.run("mlp/capture", &[("epoch", int(5))], &files, &[("capture", "capture")]);
    let others = (-40.0_f64).exp() + (-41.0_f64).exp();
    let g = bench.read("capture")["g_b.1"].clone();
    assert!((g.at(0, 0) / -others - 1.0).abs() < 1e-14, "{}", g.at(0, 0));
    assert!((records.get("loss", &[]) / others - 1.0).abs() < 1e-14);
    // A row that is badly wrong has a large loss and a gradient of one, without overflow.
    bench.write_classified("data", &Matrix::new(1, 1, vec![-1000.0]), &[0]);
    let records = bench.run("mlp/capture", &[("epoch", int(5))], &files, &[("capture", "capture")]);
    close(records.get("loss", &[]), 41_000.0, 1e-12);
    close(bench.read("capture")["g_b.1"].at(0, 0), -1.0, 1e-15);
}
