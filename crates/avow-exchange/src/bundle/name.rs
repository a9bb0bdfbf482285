//! The names that entries of a bundle may have.

use avow_model::digest::BlobDigest;

/// What an entry is, by its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Place<'a> {
    /// The manifest.
    Manifest,
    /// The ledger of an experiment.
    Ledger(&'a str),
    /// A proof: its path beside the ledgers.
    Proof(&'a str),
    /// The journal whose bytes have this digest.
    Journal(BlobDigest),
    /// Names of actions under an earlier encoding: the file's name.
    Aliases(&'a str),
    /// What was collected.
    Collected,
    /// A blob.
    Blob(BlobDigest),
}

/// The name of the manifest.
pub(crate) const MANIFEST: &str = "bundle.json";
/// The name of the list of what was collected.
pub(super) const COLLECTED: &str = "collected.jsonl";

/// What a name stands for; `None` where no entry may be called so. Names are judged as a whole, not cleaned.
pub(super) fn place(name: &str) -> Option<Place<'_>> {
    match name {
        MANIFEST => return Some(Place::Manifest),
        COLLECTED => return Some(Place::Collected),
        _ => {}
    }
    let (folder, rest) = name.split_once('/')?;
    match folder {
        "ledger" => rest.strip_suffix(".jsonl").filter(|name| is_plain(name)).map(Place::Ledger),
        "proofs" => {
            let (folder, file) = rest.split_once('/')?;
            (is_plain(folder) && is_plain(file)).then_some(Place::Proof(rest))
        }
        "journal" => digest(rest).map(Place::Journal),
        "aliases" => {
            let number = rest.strip_suffix(".jsonl")?;
            let plain = !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()) && number.len() < 9;
            plain.then_some(Place::Aliases(rest))
        }
        "blobs" => digest(rest).map(Place::Blob),
        _ => None,
    }
}

/// One component: `a-z0-9._-`, not hidden, of a length that every file system takes.
fn is_plain(name: &str) -> bool {
    let plain = |b: u8| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'.' | b'_' | b'-');
    !name.is_empty() && name.len() <= 200 && !name.starts_with('.') && name.bytes().all(plain)
}

/// A digest in the one spelling that names have: 64 lower-case digits.
fn digest(hex: &str) -> Option<BlobDigest> {
    let lower = hex.len() == 64 && hex.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    if lower { hex.parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::place;

    #[test]
    fn only_the_names_that_are_written_are_read() {
        let digest = "0123456789abcdef".repeat(4);
        for good in [
            "bundle.json".to_owned(),
            "collected.jsonl".to_owned(),
            "ledger/my-experiment.jsonl".to_owned(),
            "proofs/my-experiment.proofs/ab.head.json.sig".to_owned(),
            "aliases/1.jsonl".to_owned(),
            format!("journal/{digest}"),
            format!("blobs/{digest}"),
        ] {
            assert!(place(&good).is_some(), "{good}");
        }
        for bad in [
            String::new(),
            "/etc/passwd".to_owned(),
            "../evil".to_owned(),
            "ledger/../evil.jsonl".to_owned(),
            "ledger/.jsonl".to_owned(),
            "ledger/a/b.jsonl".to_owned(),
            "ledger/É.jsonl".to_owned(),
            "proofs/..".to_owned(),
            "proofs/a/../b".to_owned(),
            "proofs/a/b/c".to_owned(),
            "aliases/x.jsonl".to_owned(),
            "aliases/.jsonl".to_owned(),
            "blobs/".to_owned(),
            format!("blobs/{}", digest.to_uppercase()),
            format!("blobs/{digest}0"),
            format!("Blobs/{digest}"),
            "a\\b".to_owned(),
            "bundle.json/".to_owned(),
        ] {
            assert_eq!(place(&bad), None, "{bad}");
        }
    }
}
