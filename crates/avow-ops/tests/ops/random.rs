//! Draws: the same stream as a second implementation, unbiased, and free of each other.

use avow_ops::random::Source;

use crate::support::{close, mean, reference};

#[test]
fn draws_equal_an_independent_implementation() {
    for case in reference()["draws"].as_array().unwrap() {
        let source = Source::new(
            case["domain"].as_str().unwrap(),
            u32::try_from(case["seed"].as_u64().unwrap()).unwrap(),
        );
        let draw = || source.draw(case["stream"].as_u64().unwrap());
        let order: Vec<usize> = serde_json::from_value(case["permutation"].clone()).unwrap();
        assert_eq!(draw().permutation(12), order);
        let normals: Vec<f64> = serde_json::from_value(case["normals"].clone()).unwrap();
        for (got, wanted) in draw().normals(20).into_iter().zip(normals) {
            close(got, wanted, 1e-14);
        }
    }
}

#[test]
fn domain_seed_and_number_each_change_the_stream() {
    let first = |domain, seed, draw| Source::new(domain, seed).draw(draw).permutation(40);
    let base = first("a", 1, 1);
    assert_eq!(base, first("a", 1, 1));
    for other in [first("b", 1, 1), first("a", 2, 1), first("a", 1, 2)] {
        assert_ne!(base, other);
    }
}

#[test]
fn permutations_of_three_are_equally_frequent() {
    let source = Source::new("frequencies", 3);
    let mut counts = std::collections::BTreeMap::new();
    for draw in 0..6000 {
        *counts.entry(source.draw(draw).permutation(3)).or_insert(0) += 1;
    }
    assert_eq!(counts.len(), 6);
    // Five standard deviations of a count around 1,000.
    assert!(counts.values().all(|c| (850..=1150).contains(c)), "{counts:?}");
}

#[test]
fn normals_have_mean_zero_and_variance_one() {
    let values = Source::new("moments", 4).draw(0).normals(20_000);
    let squares: Vec<f64> = values.iter().map(|x| x * x).collect();
    assert!(mean(&values).abs() < 0.03, "{}", mean(&values));
    assert!((mean(&squares) - 1.0).abs() < 0.05, "{}", mean(&squares));
}
