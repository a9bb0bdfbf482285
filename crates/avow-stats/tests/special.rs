//! Special functions against fifty-digit values, in the body and in tails down to 1e-300.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use avow_stats::special::{Tail, beta_quantile, binomial, chi_square, noncentral, normal, student};
use common::{Reference, close};

/// 1e-12 in the body, 1e-9 in the tails.
fn accuracy(value: f64) -> f64 {
    if value > 1e-6 { 1e-12 } else { 1e-9 }
}

fn table(name: &str, function: impl Fn(&[f64]) -> f64) {
    for row in Reference::load().rows(name) {
        let (want, arguments) = row.split_last().unwrap();
        close(function(arguments), *want, accuracy(*want), &format!("{name} {arguments:?}"));
    }
}

#[test]
fn probabilities_keep_their_digits() {
    table("normal-below", |a| normal::below(a[0]));
    table("student-above", |a| student::above(a[0], a[1]));
    table("chi-square-above", |a| chi_square::tails(a[0], a[1]).1);
    table("chi-square-below", |a| chi_square::tails(a[0], a[1]).0);
    table("binomial-at-least", |a| binomial::at_least(a[0] as u64, a[1] as u64, a[2]));
    table("noncentral-above", |a| noncentral::above(a[0], a[1], a[2]));
}

#[test]
fn quantiles_invert_exact_probabilities() {
    table("student-upper-quantile", |a| student::upper_quantile(a[0], a[1]));
    table("beta-quantile", |a| beta_quantile(a[1], a[2], Tail::Lower(a[0])).0);
    table("chi-square-upper-quantile", |a| chi_square::quantile(Tail::Upper(a[0]), a[1]));
}

#[test]
fn quantiles_come_back_through_their_tails() {
    for p in [1e-300, 1e-100, 1e-12, 0.001, 0.025, 0.2, 0.4, 0.499] {
        close(normal::below(normal::quantile(p)), p, accuracy(p), "normal");
        for df in [1.5, 2.0, 7.3, 60.0, 1e4] {
            close(student::above(student::upper_quantile(p, df), df), p, accuracy(p), "student");
            // Below two degrees of freedom the lower quantile of 1e-300 is no double.
            if p > 1e-200 || df >= 2.0 {
                let lower = chi_square::quantile(Tail::Lower(p), df);
                close(chi_square::tails(lower, df).0, p, accuracy(p), "χ² lower");
            }
            close(
                chi_square::tails(chi_square::quantile(Tail::Upper(p), df), df).1,
                p,
                accuracy(p),
                "χ² upper",
            );
        }
    }
}

#[test]
fn tails_are_complements() {
    for (k, n, p) in [(0, 5, 0.3), (3, 5, 0.3), (5, 5, 0.3), (40, 100, 0.37), (1, 5, 0.0), (5, 5, 1.0)] {
        let sum = binomial::at_least(k, n, p) + binomial::at_most(k, n, p);
        let both = binomial::at_least(k, n, p) - binomial::at_least(k + 1, n, p);
        close(sum, 1.0 + both, 1e-13, "binomial");
    }
    close(student::above(-1.3, 4.0), student::below(1.3, 4.0), 0.0, "student");
    assert_eq!(student::above(f64::INFINITY, 3.0), 0.0);
    assert_eq!(student::upper_quantile(0.5, 3.0), 0.0);
    assert_eq!(normal::quantile(0.5), 0.0);
}
