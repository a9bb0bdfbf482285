//! Finding secrets in bytes, and taking them out of a stream before it reaches a disk.
//!
//! Looked for are the value itself, its Base64 forms (at each of the three alignments, so also inside
//! `user:token`), its percent-encoded, JSON-escaped and hexadecimal forms, and each long line of a value with
//! several. A value that a program transforms in any other way is not recognised.

use std::io::{self, Read, Write};
use std::ops::Range;

use data_encoding::{BASE64_NOPAD, BASE64URL_NOPAD, HEXLOWER, HEXUPPER};
use memchr::memmem;
use zeroize::Zeroizing;

use crate::secret::Secrets;

const CHUNK: usize = 64 << 10;
/// A line of a value with several is looked for by itself from this length on, in bytes.
const LINE: usize = 16;

/// Knows some secrets in all their forms.
pub(crate) struct Scrubber {
    names: Vec<String>,
    forms: Vec<Form>,
    longest: usize,
}

struct Form {
    bytes: Zeroizing<Vec<u8>>,
    name: usize,
}

impl Scrubber {
    /// For the secrets of these names; names without a value are passed over.
    pub(crate) fn new(secrets: &Secrets, names: &[String]) -> Scrubber {
        let mut all: Vec<Form> = Vec::new();
        for (name, value) in names.iter().enumerate().filter_map(|(i, n)| Some((i, secrets.reveal(n)?))) {
            let mut forms = forms(value);
            forms.sort_by(|a, b| a.as_slice().cmp(b.as_slice()));
            forms.dedup_by(|a, b| a.as_slice() == b.as_slice());
            all.extend(forms.into_iter().map(|bytes| Form { bytes, name }));
        }
        let longest = all.iter().map(|form| form.bytes.len()).max().unwrap_or(0);
        Scrubber { names: names.to_vec(), forms: all, longest }
    }

    /// A text with every secret replaced by its name.
    pub(crate) fn text(&self, text: &str) -> String {
        let mut clean = Vec::with_capacity(text.len());
        // Writing to memory does not fail.
        match self.stream(text.as_bytes(), &mut clean) {
            Ok(()) => String::from_utf8_lossy(&clean).into_owned(),
            Err(_) => "(withheld)".to_owned(),
        }
    }

    /// Copies `from` to `to`, with every secret replaced by its name. No more is held back than what may be the
    /// beginning of a secret.
    pub(crate) fn stream(&self, mut from: impl Read, to: &mut impl Write) -> io::Result<()> {
        let mut window = Window::default();
        let mut chunk = Zeroizing::new(vec![0; CHUNK]);
        loop {
            match from.read(&mut chunk) {
                Ok(0) => break,
                Ok(length) => window.bytes.extend_from_slice(&chunk[..length]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            }
            let keep = self.beginning(&window.bytes);
            self.emit(&mut window, keep, to)?;
        }
        self.emit(&mut window, 0, to)?;
        to.flush()
    }

    /// Writes all but the last `keep` bytes of the window.
    fn emit(&self, window: &mut Window, keep: usize, to: &mut impl Write) -> io::Result<()> {
        let until = window.bytes.len() - keep;
        let mut at = window.told.min(until);
        let mut told = window.told;
        for (mark, name) in self.marks(&window.bytes) {
            if mark.start >= until {
                break;
            }
            // A mark that overlaps what was told already is part of it.
            if mark.start >= told {
                to.write_all(&window.bytes[at..mark.start])?;
                write!(to, "[secret {}]", self.names[name])?;
            }
            told = told.max(mark.end);
            at = told.min(until);
        }
        to.write_all(&window.bytes[at..until])?;
        window.told = told.saturating_sub(until);
        window.bytes.drain(..until);
        Ok(())
    }

    /// Where forms stand, by start.
    fn marks(&self, bytes: &[u8]) -> Vec<(Range<usize>, usize)> {
        let mut marks: Vec<(Range<usize>, usize)> = Vec::new();
        for form in &self.forms {
            let length = form.bytes.len();
            marks.extend(memmem::find_iter(bytes, &*form.bytes).map(|at| (at..at + length, form.name)));
        }
        marks.sort_by_key(|(mark, _)| (mark.start, std::cmp::Reverse(mark.end)));
        marks
    }

    /// The length of the longest end of `bytes` with which a form begins.
    fn beginning(&self, bytes: &[u8]) -> usize {
        let most = self.longest.saturating_sub(1).min(bytes.len());
        let begins = |length: &usize| {
            let end = &bytes[bytes.len() - length..];
            self.forms.iter().any(|form| form.bytes.len() > *length && form.bytes.starts_with(end))
        };
        (1..=most).rev().find(begins).unwrap_or(0)
    }

    /// The name of the first secret that a stream holds.
    pub(crate) fn find(&self, mut from: impl Read) -> io::Result<Option<&str>> {
        let mut window = Zeroizing::new(Vec::new());
        let mut chunk = Zeroizing::new(vec![0; CHUNK]);
        loop {
            match from.read(&mut chunk) {
                Ok(0) => return Ok(None),
                Ok(length) => window.extend_from_slice(&chunk[..length]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            }
            let held = |form: &&Form| memmem::find(&window, &form.bytes).is_some();
            if let Some(form) = self.forms.iter().find(held) {
                return Ok(Some(&self.names[form.name]));
            }
            let keep = self.longest.saturating_sub(1).min(window.len());
            let start = window.len() - keep;
            window.drain(..start);
        }
    }
}

/// What was read and not yet written.
#[derive(Default)]
struct Window {
    bytes: Zeroizing<Vec<u8>>,
    /// How many bytes at its start belong to a secret whose name was written already.
    told: usize,
}

fn forms(value: &str) -> Vec<Zeroizing<Vec<u8>>> {
    let mut plain = vec![value, value.trim()];
    plain.extend(value.lines().map(str::trim).filter(|line| value.contains('\n') && line.len() >= LINE));
    let mut all: Vec<Zeroizing<Vec<u8>>> =
        plain.iter().map(|text| Zeroizing::new(text.as_bytes().to_vec())).collect();
    for text in [value, value.trim()] {
        let bytes = text.as_bytes();
        for (unreserved, plus) in [(true, false), (false, false), (true, true)] {
            all.push(percent(bytes, b"0123456789ABCDEF", unreserved, plus));
            all.push(percent(bytes, b"0123456789abcdef", unreserved, plus));
        }
        all.push(Zeroizing::new(HEXLOWER.encode(bytes).into_bytes()));
        all.push(Zeroizing::new(HEXUPPER.encode(bytes).into_bytes()));
        if let Ok(quoted) = serde_json::to_string(text).map(Zeroizing::new) {
            all.push(Zeroizing::new(quoted.as_bytes()[1..quoted.len() - 1].to_vec()));
        }
        for shift in 0..3 {
            all.extend([&BASE64_NOPAD, &BASE64URL_NOPAD].map(|base| base64(base, bytes, shift)));
        }
    }
    all
}

/// The characters of a Base64 text that depend on `bytes` alone where they stand `shift` bytes after a group's
/// beginning.
fn base64(base: &data_encoding::Encoding, bytes: &[u8], shift: usize) -> Zeroizing<Vec<u8>> {
    let mut padded = Zeroizing::new(vec![0; shift]);
    padded.extend_from_slice(bytes);
    let encoded = Zeroizing::new(base.encode(&padded).into_bytes());
    // The first characters hold bits of what stands before, the last one bits of what follows.
    let first = [0, 2, 3][shift];
    let last = padded.len() * 8 / 6;
    Zeroizing::new(encoded[first..last].to_vec())
}

fn percent(bytes: &[u8], digits: &[u8; 16], marks: bool, plus: bool) -> Zeroizing<Vec<u8>> {
    let mut encoded = Zeroizing::new(Vec::with_capacity(bytes.len() * 3));
    for byte in bytes {
        match byte {
            b' ' if plus => encoded.push(b'+'),
            b if b.is_ascii_alphanumeric() || marks && b"-_.~".contains(b) => encoded.push(*b),
            b => encoded.extend([b'%', digits[usize::from(b >> 4)], digits[usize::from(b & 15)]]),
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    const VALUE: &str = "s3cr3t/With+Sp ace";

    fn scrubber(values: &[(&str, &str)]) -> Scrubber {
        let values = values.iter().map(|(n, v)| ((*n).to_owned(), Zeroizing::new((*v).to_owned())));
        let values: std::collections::BTreeMap<_, _> = values.collect();
        let names: Vec<String> = values.keys().cloned().collect();
        Scrubber::new(&Secrets::new(values).unwrap(), &names)
    }

    /// Gives `bytes` in pieces of `size`.
    struct Pieces<'a>(&'a [u8], usize);

    impl Read for Pieces<'_> {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            let length = self.1.min(self.0.len()).min(into.len());
            into[..length].copy_from_slice(&self.0[..length]);
            self.0 = &self.0[length..];
            Ok(length)
        }
    }

    fn streamed(scrubber: &Scrubber, text: &[u8], size: usize) -> String {
        let mut clean = Vec::new();
        scrubber.stream(Pieces(text, size), &mut clean).unwrap();
        String::from_utf8(clean).unwrap()
    }

    #[test]
    fn a_value_is_found_wherever_the_pieces_are_cut() {
        let scrubber = scrubber(&[("TOKEN", VALUE)]);
        let text = format!("a {VALUE}{VALUE} b s3cr3t/With {VALUE}");
        for size in 1..=text.len() {
            let clean = streamed(&scrubber, text.as_bytes(), size);
            assert_eq!(
                clean, "a [secret TOKEN][secret TOKEN] b s3cr3t/With [secret TOKEN]",
                "in pieces of {size}"
            );
        }
    }

    #[test]
    fn encoded_values_are_found_at_every_alignment() {
        let scrubber = scrubber(&[("TOKEN", VALUE)]);
        for before in ["", "u", "us", "use", "user:"] {
            let whole = format!("{before}{VALUE}!");
            for base in [BASE64_NOPAD, BASE64URL_NOPAD] {
                let clean = scrubber.text(&base.encode(whole.as_bytes()));
                assert!(clean.contains("[secret TOKEN]") && clean.len() < 24, "{clean}");
            }
        }
        for text in ["s3cr3t%2FWith%2BSp%20ace", "s3cr3t%2fWith%2bSp%20ace", "s3cr3t%2FWith%2BSp+ace"] {
            assert_eq!(scrubber.text(text), "[secret TOKEN]");
        }
        assert_eq!(scrubber.text(&HEXLOWER.encode(VALUE.as_bytes())), "[secret TOKEN]");
    }

    #[test]
    fn overlapping_secrets_leave_nothing_of_each_other() {
        let scrubber =
            scrubber(&[("LONG", "abcdefgh12345678"), ("SHORT", "12345678zz"), ("START", "abcdefgh")]);
        for size in 1..20 {
            let clean = streamed(&scrubber, b"<abcdefgh12345678zz>", size);
            assert!(clean.starts_with("<[secret ") && clean.ends_with("]>"), "{clean}");
            assert!(!clean.contains("abc") && !clean.contains("123") && !clean.contains("zz"), "{clean}");
        }
    }

    #[test]
    fn lines_of_a_long_value_are_found_by_themselves() {
        let key = "-----BEGIN KEY-----\nAAAABBBBCCCCDDDDEEEE\nshort\n-----END KEY-----\n";
        let scrubber = scrubber(&[("KEY", key)]);
        assert_eq!(scrubber.text("x AAAABBBBCCCCDDDDEEEE y"), "x [secret KEY] y");
        assert_eq!(scrubber.text(&serde_json::to_string(key).unwrap()), "\"[secret KEY]\"");
    }

    #[test]
    fn text_without_secrets_passes_as_it_is() {
        let scrubber = scrubber(&[("TOKEN", VALUE)]);
        let text = "s3cr3t s3cr3t/ s3cr3t/With+Sp s";
        for size in [1, 3, 1000] {
            assert_eq!(streamed(&scrubber, text.as_bytes(), size), text);
        }
    }

    #[test]
    fn a_secret_in_a_file_is_named() {
        let scrubber = scrubber(&[("OTHER", "other value"), ("TOKEN", VALUE)]);
        let mut bytes = vec![b'x'; CHUNK - 3];
        bytes.extend_from_slice(VALUE.as_bytes());
        assert_eq!(scrubber.find(Pieces(&bytes, 1000)).unwrap(), Some("TOKEN"));
        assert_eq!(scrubber.find(&bytes[..CHUNK]).unwrap(), None);
    }
}
