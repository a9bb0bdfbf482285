//! The record of an environment that is an OCI image: one line of a fixed form, kept as a blob whose digest takes
//! the place of a lock file's.

/// The longest record that is looked at, in bytes.
pub const LONGEST: usize = 1024;

const HEAD: &str = "avow/image/1 ";

/// The record of an image.
pub fn record(reference: &str) -> Vec<u8> {
    format!("{HEAD}{reference}\n").into_bytes()
}

/// The image that a record names; `None` where the bytes are no such record.
pub fn reference(bytes: &[u8]) -> Option<String> {
    let line = std::str::from_utf8(bytes).ok()?.strip_prefix(HEAD)?.strip_suffix('\n')?;
    check(line).is_ok().then(|| line.to_owned())
}

/// Whether a reference names an image: `name@sha256:…`, pinned, or `name:tag`, not pinned. The name is given to a
/// program as an argument of its own, and must not pass for an option there.
pub fn check(reference: &str) -> Result<Pinning, &'static str> {
    let (name, digest) = match reference.split_once('@') {
        Some((name, digest)) => (name, Some(digest)),
        None => (reference, None),
    };
    let plain = |c: char| c.is_ascii_alphanumeric() || "._-/:".contains(c);
    let begins = name.starts_with(|c: char| c.is_ascii_alphanumeric());
    if !begins || !name.chars().all(plain) || reference.len() > LONGEST - HEAD.len() - 1 {
        return Err("an image is named `registry/name@sha256:…`");
    }
    match digest {
        None => Ok(Pinning::Open),
        Some(digest) => {
            let hex = digest.strip_prefix("sha256:").unwrap_or_default();
            let is_hex = hex.len() == 64 && hex.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
            if is_hex { Ok(Pinning::Digest) } else { Err("a digest is `sha256:` and 64 hexadecimal digits") }
        }
    }
}

/// How an image is named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pinning {
    /// By its content.
    Digest,
    /// By a tag, which may come to mean another image.
    Open,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_is_pinned_by_a_whole_digest() {
        let digest = "a".repeat(64);
        assert_eq!(check(&format!("docker.io/library/python@sha256:{digest}")), Ok(Pinning::Digest));
        assert_eq!(check("python:3.12-slim"), Ok(Pinning::Open));
        for wrong in ["", "--privileged", "a b", "x@sha256:12", "x@md5:1", "-x", "x;y", &"a".repeat(2000)] {
            assert!(check(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_record_is_read_back_and_a_lock_file_is_none() {
        assert_eq!(reference(&record("a/b:1")).as_deref(), Some("a/b:1"));
        for other in [&b"numpy==1.0\n"[..], b"avow/image/1 --x\n", b"avow/image/1 a", b""] {
            assert_eq!(reference(other), None);
        }
    }
}
