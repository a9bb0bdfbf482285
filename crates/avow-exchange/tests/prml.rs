//! Manifests as the published package reads and writes them: `prml/reference.py` made `prml/reference.json` with it.
#![expect(clippy::unwrap_used, reason = "tests")]

use avow_exchange::prml::Manifest;
use serde_json::Value;

/// Every case of the reference file.
fn cases() -> Vec<Value> {
    let all: Value = serde_json::from_str(include_str!("prml/reference.json")).unwrap();
    assert_eq!(all["package"], "falsify 0.4.0");
    all["cases"].as_array().unwrap().clone()
}

fn text<'c>(case: &'c Value, key: &str) -> &'c str {
    case[key].as_str().unwrap()
}

#[test]
fn the_same_files_are_manifests_with_the_same_bytes_and_digests() {
    let cases = cases();
    assert!(cases.len() > 400);
    let mut wrong = Vec::new();
    for case in &cases {
        let read = Manifest::read(text(case, "name"), text(case, "text"));
        match (read, case.get("sha256")) {
            (Ok(manifest), Some(digest)) => {
                if manifest.canonical() != text(case, "canonical")
                    || manifest.digest() != digest.as_str().unwrap()
                {
                    wrong.push(format!("{}\nwrites\n{}", text(case, "canonical"), manifest.canonical()));
                }
            }
            (Err(_), None) => {}
            (Ok(_), None) => wrong.push(format!("{} was accepted", text(case, "text"))),
            (Err(error), Some(_)) => wrong.push(format!("{} was refused: {error}", text(case, "text"))),
        }
    }
    assert!(
        wrong.is_empty(),
        "{} of {}:\n{}",
        wrong.len(),
        cases.len(),
        wrong[..wrong.len().min(5)].join("\n")
    );
}

#[test]
fn canonical_text_reads_back_as_the_same_manifest() {
    let (mut read, mut ambiguous) = (0, 0);
    for case in cases().iter().filter(|case| case.get("sha256").is_some()) {
        match Manifest::read("m.yaml", text(case, "canonical")) {
            Ok(manifest) => {
                assert_eq!(manifest.digest(), text(case, "sha256"), "{}", text(case, "canonical"));
                read += 1;
            }
            // The format writes a text such as `1e5` without quotes, which other readers take for a number.
            Err(error) => {
                assert!(error.to_string().contains("two ways"), "{error}");
                ambiguous += 1;
            }
        }
    }
    assert!(read > 400 && ambiguous < 12, "{read} {ambiguous}");
}

#[test]
fn observed_values_pass_and_fail_alike() {
    let mut compared = 0;
    for case in cases().iter().filter(|case| case.get("sha256").is_some()) {
        let manifest = Manifest::read(text(case, "name"), text(case, "text")).unwrap();
        for pair in case["observed"].as_array().unwrap() {
            let observed: f64 = pair[0].as_str().unwrap().parse().unwrap();
            let code = if manifest.holds(observed) { 0 } else { 10 };
            assert_eq!(pair[1], code, "{observed} against {}", text(case, "canonical"));
            compared += 1;
        }
    }
    assert!(compared > 1000, "{compared}");
}
