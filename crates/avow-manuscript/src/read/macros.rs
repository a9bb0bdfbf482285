//! `{{ avow KEY }}` and `{{ avow KEY = TEXT }}` in running text, and macro files.
//!
//! The shortcode `{{< avow KEY >}}` of Quarto is the same thing with other brackets.

use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

use crate::text::{By, Defined, Flat, Span};

/// What stands for a value that is not there yet. It ends words and is no digit.
pub(super) const LATER: &str = "\u{fffc}";

static BINDING: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(
        r"\{\{<?\s*avow\s+(?P<key>[^\s=}>](?:[^}>=\n]|=[^\s}])*?)(?:\s+=\s+(?P<typed>[^}\n]*?))?\s*>?\}\}",
    )
    .expect("a pattern of this file is sound")
});

/// A binding that stands in a text.
pub(crate) struct Binding<'t> {
    /// Where it stands.
    pub range: Range<usize>,
    /// Its key with its format.
    pub key: &'t str,
    /// What was typed beside it.
    pub typed: Option<Range<usize>>,
}

/// The bindings of a text, in order.
pub(crate) fn bindings(text: &str) -> impl Iterator<Item = Binding<'_>> {
    BINDING.captures_iter(text).filter_map(|found| {
        let key = found.name("key")?.as_str().trim();
        Some(Binding { range: found.get(0)?.range(), key, typed: found.name("typed").map(|m| m.range()) })
    })
}

/// Pushes a stretch of a file, its bindings read.
pub(super) fn with_bindings(flat: &mut Flat, file: usize, range: Range<usize>) {
    let text = flat.files[file].text[range.clone()].to_owned();
    let mut at = 0;
    for binding in bindings(&text) {
        flat.verbatim(file, range.start + at..range.start + binding.range.start);
        let span =
            Span { file, start: range.start + binding.range.start, end: range.start + binding.range.end };
        let from = flat.len();
        match &binding.typed {
            Some(typed) => {
                flat.verbatim(file, range.start + typed.start..range.start + typed.end);
                flat.bind(binding.key, By::Hand, from, span);
            }
            None => used(flat, binding.key, from, span),
        }
        at = binding.range.end;
    }
    flat.verbatim(file, range.start + at..range.end);
}

/// Pushes the value of a key as the macro file has it, or a mark that it comes later.
pub(super) fn used(flat: &mut Flat, key: &str, from: usize, span: Span) {
    let value = flat.defined.iter().rev().find(|d| d.key == key).map(|d| plain(&d.value));
    let by = match (&value, flat.macro_files.is_empty()) {
        (Some(_), _) => By::Macro,
        (None, true) => By::Later,
        (None, false) => By::Nothing,
    };
    flat.instead(span, value.as_deref().unwrap_or(LATER));
    flat.bind(key, by, from, span);
}

/// A value of a macro file without the marks of LaTeX.
pub(crate) fn plain(value: &str) -> String {
    let mut text = value.to_owned();
    for (mark, sign) in [
        (r"\ensuremath{-}", "−"),
        (r"\ensuremath{<}", "<"),
        (r"\%", "%"),
        (r"\,", "\u{2009}"),
        (r"\ensuremath{{}\times10^{", " × 10^{"),
    ] {
        text = text.replace(mark, sign);
    }
    text.replace("}}", "}")
}

/// The first line of every macro file that Avow writes, after the comment sign.
pub const HEAD: &str = "avow macros 1";

/// Whether a file is a macro file, by its first line.
pub(super) fn is_macro_file(text: &str) -> bool {
    text.lines().next().is_some_and(|line| line.trim_start_matches(['%', '/', '#', ' ']).starts_with(HEAD))
}

/// Reads what a macro file defines; its form is that which [`crate::macros`] writes.
pub(super) fn define(flat: &mut Flat, file: usize) {
    flat.macro_files.push(file);
    let found = definitions(&flat.files[file].text);
    flat.defined.extend(found.into_iter().map(|(key, value, range)| Defined {
        key,
        value,
        span: Span { file, start: range.start, end: range.end },
    }));
}

/// The definitions of a macro file: key, value, place.
pub fn definitions(text: &str) -> Vec<(String, String, Range<usize>)> {
    let mut found = Vec::new();
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let body = line.trim_end();
        if let Some((key, value)) = definition(body.trim()) {
            found.push((key, value, at..at + body.len()));
        }
        at += line.len();
    }
    found
}

/// `\avowdef{KEY}{VALUE}` of LaTeX, or `"KEY": "VALUE",` of Typst.
fn definition(line: &str) -> Option<(String, String)> {
    if let Some(rest) = line.strip_prefix(r"\avowdef{") {
        let (key, value) = rest.split_once("}{")?;
        return Some((key.replace("\\%", "%"), value.strip_suffix('}')?.to_owned()));
    }
    let line = line.strip_suffix(',').unwrap_or(line);
    // Both sides are JSON strings, which Typst reads as well.
    let mut parts = serde_json::Deserializer::from_str(line).into_iter::<String>();
    let key = parts.next()?.ok()?;
    let rest = line.get(parts.byte_offset()..)?.trim_start().strip_prefix(':')?;
    Some((key, serde_json::from_str(rest.trim()).ok()?))
}
