//! Files in the formats that people keep numbers in, as other programs write them (`formats/make.py`): what differs in
//! numbers is told from what differs otherwise.
#![expect(clippy::unwrap_used, reason = "tests")]

use std::path::Path;

use avow_audit::compare::{How, contents};
use avow_model::claim::Tolerance;

fn file(name: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/formats").join(name);
    std::fs::read(path).unwrap()
}

fn how(a: &str, b: &str, within: Option<Tolerance>) -> How {
    contents(&file(a), &file(b), within)
}

#[test]
fn numbers_are_compared_in_every_format() {
    // Two files; how many numbers there are, how many differ, the largest difference.
    let rows = [
        ("a.npy", "b.npy", 6, 1, 0.003),
        ("half-a.npy", "half-b.npy", 6, 6, 0.5),
        ("columns-a.npy", "columns-b.npy", 6, 1, 0.003),
        ("a.safetensors", "b.safetensors", 9, 1, 0.003),
        ("a.parquet", "b.parquet", 9, 1, 0.0001),
        ("gzip.parquet", "b.parquet", 9, 1, 0.0001),
        ("a.png", "b.png", 48, 1, 1.0),
        ("deep-a.png", "deep-b.png", 16, 16, 1.0),
    ];
    for (a, b, compared, unequal, absolute) in rows {
        let How::Numbers(found) = how(a, b, None) else { panic!("{a} {b}: {:?}", how(a, b, None)) };
        assert_eq!((found.compared, found.unequal, found.beyond), (compared, unequal, unequal), "{a} {b}");
        assert!((found.absolute - absolute).abs() < 0.01 * absolute, "{a} {b}: {found:?}");
        let within = |absolute| how(a, b, Some(Tolerance { absolute, relative: 0.0 })).is_within();
        assert!(within(1.02 * absolute), "{a} {b}");
        assert!(!within(0.9 * absolute), "{a} {b}");
    }
    let How::Numbers(lossy) = how("a.jpg", "b.jpg", None) else { panic!("two images") };
    assert!(
        lossy.compared == 32 * 32 * 3 && lossy.unequal >= 64 && (30.0..60.0).contains(&lossy.absolute),
        "{lossy:?}"
    );
}

#[test]
fn how_a_file_is_written_is_no_difference_of_what_it_holds() {
    for (a, b) in [
        ("a.safetensors", "order.safetensors"),
        ("a.parquet", "gzip.parquet"),
        ("a.png", "said.png"),
        ("a.png", "palette.png"),
        ("a.jpg", "said.jpg"),
    ] {
        assert_ne!(file(a), file(b));
        assert_eq!(how(a, b, None), How::Spelling, "{a} {b}");
    }
}

#[test]
fn what_is_no_matter_of_numbers_is_a_difference_in_bytes() {
    let generous = Some(Tolerance { absolute: 1e9, relative: 1e9 });
    for (a, b) in [
        ("a.npy", "shape.npy"),
        ("a.npy", "kind.npy"),
        ("a.npy", "columns-a.npy"),
        ("complex-a.npy", "complex-b.npy"),
        ("a.parquet", "words.parquet"),
        // No codec for it is built in: bytes decide.
        ("a.parquet", "zstd.parquet"),
        ("a.png", "small.png"),
        ("a.png", "a.jpg"),
        ("a.npy", "a.parquet"),
    ] {
        assert!(matches!(how(a, b, generous), How::Bytes { .. }), "{a} {b}: {:?}", how(a, b, generous));
    }
}

#[test]
fn nothing_that_is_cut_off_or_changed_stops_the_comparison() {
    for name in ["a.npy", "a.safetensors", "a.parquet", "gzip.parquet", "a.png", "palette.png", "a.jpg"] {
        let whole = file(name);
        let step = (whole.len() / 150).max(1);
        for at in (0..whole.len()).step_by(step) {
            let mut changed = whole.clone();
            changed[at] ^= 0xff;
            contents(&whole, &changed, None);
            contents(&changed, &changed[..at], None);
            let same = matches!(contents(&whole, &whole[..at], None), How::Numbers(_));
            assert!(!same, "{name} cut at {at} has not the same shape");
        }
    }
}
