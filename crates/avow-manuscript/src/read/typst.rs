//! Typst: the markup that is printed, formulas, and as much of its code as holds prose: content blocks, calls of
//! `table` and `figure`, names bound by `#let`.

mod code;

use std::collections::HashMap;
use std::ops::Range;

use super::{Files, macros};
use crate::text::{Flat, Span, Zone};

/// Reads the first file.
pub(super) fn read(flat: &mut Flat, files: &dyn Files) {
    let text = flat.files[0].text.clone();
    let mut reader = Reader { flat, files, defined: HashMap::new(), depth: 0, expanded: 0 };
    reader.markup(&text, Place::File { file: 0, base: 0 });
}

/// Where the text under way comes from.
#[derive(Clone, Copy, Debug)]
enum Place {
    File {
        file: usize,
        base: usize,
    },
    /// A name that `#let` bound, where it is used.
    Use(Span),
}

impl Place {
    fn at(self, by: usize) -> Place {
        match self {
            Place::File { file, base } => Place::File { file, base: base + by },
            of_use => of_use,
        }
    }

    fn span(self, range: &Range<usize>) -> Span {
        match self {
            Place::File { file, base } => Span { file, start: base + range.start, end: base + range.end },
            Place::Use(span) => span,
        }
    }
}

struct Reader<'a> {
    flat: &'a mut Flat,
    files: &'a dyn Files,
    defined: HashMap<String, String>,
    depth: usize,
    /// How many names were replaced by what `#let` bound them to.
    expanded: usize,
}

/// So many names are replaced; two that call each other twice would make any number.
const MOST_EXPANDED: usize = 100_000;

/// Words of formulas and the signs they print.
const SIGNS: [(&str, &str); 18] = [
    ("times", "×"),
    ("plus.minus", "±"),
    ("dot", "·"),
    ("approx", "≈"),
    ("alpha", "α"),
    ("beta", "β"),
    ("chi", "χ"),
    ("eta", "η"),
    ("rho", "ρ"),
    ("mu", "μ"),
    ("sigma", "σ"),
    ("kappa", "κ"),
    ("delta", "δ"),
    ("Delta", "Δ"),
    ("lambda", "λ"),
    ("in", "∈"),
    ("minus", "−"),
    ("percent", "%"),
];

impl Reader<'_> {
    fn put(&mut self, text: &str, place: Place, range: Range<usize>) {
        match place {
            Place::File { file, base } => self.flat.verbatim(file, base + range.start..base + range.end),
            Place::Use(span) => self.flat.instead(span, &text[range]),
        }
    }

    fn sign(&mut self, place: Place, range: Range<usize>, sign: &str) -> usize {
        self.flat.instead(place.span(&range), sign);
        range.end
    }

    /// Goes through markup.
    fn markup(&mut self, text: &str, place: Place) {
        if self.depth >= super::DEEPEST || self.expanded > MOST_EXPANDED || self.flat.is_full() {
            return;
        }
        self.depth += 1;
        let (mut at, mut from, mut line_start) = (0, 0, true);
        while let Some(c) = text[at..].chars().next() {
            let next = at + c.len_utf8();
            let rest = &text[at..];
            let special =
                matches!(c, '#' | '$' | '`' | '\\' | '~' | '@' | '<' | '*' | '_' | '-' | '/' | '=' | '+')
                    && (!matches!(c, '=' | '+') || line_start)
                    || (line_start && c.is_ascii_digit());
            if special {
                self.put(text, place, from..at);
                let end = self.special(text, place, at, c, line_start).filter(|end| *end > at);
                from = end.unwrap_or(at);
                at = end.unwrap_or(next);
            } else {
                at = next;
            }
            line_start = match c {
                '\n' => true,
                ' ' | '\t' => line_start,
                _ => rest.starts_with('\n') || (line_start && text[..at].ends_with('\n')),
            };
        }
        self.put(text, place, from..text.len());
        self.depth -= 1;
    }

    /// Obeys a sign of the markup; `None` where it is only itself.
    fn special(&mut self, text: &str, place: Place, at: usize, c: char, line_start: bool) -> Option<usize> {
        let rest = &text[at..];
        match c {
            '#' => self.code(text, place, at),
            '$' => self.math(text, place, at),
            '`' => self.raw(text, place, at),
            '\\' => {
                let escaped = rest[1..].chars().next()?;
                let end = at + 1 + escaped.len_utf8();
                if escaped == '\n' {
                    return Some(self.sign(place, at..end, "\n"));
                }
                self.put(text, place, at + 1..end);
                Some(end)
            }
            '~' => Some(self.sign(place, at..at + 1, "\u{a0}")),
            '@' => {
                self.reference(text, place, at, |c| c.is_alphanumeric() || matches!(c, '_' | '-' | ':' | '.'))
            }
            '<' => {
                let end = rest.find('>').filter(|end| {
                    *end > 1
                        && rest[1..*end]
                            .chars()
                            .all(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | ':' | '.'))
                })?;
                let from = self.flat.len();
                self.put(text, place, at + 1..at + end);
                self.flat.mark(Zone::Reference, from);
                Some(at + end + 1)
            }
            '*' | '_' => {
                let before = text[..at].chars().next_back().is_some_and(char::is_alphanumeric);
                let after = rest[1..].chars().next().is_some_and(char::is_alphanumeric);
                (!(before && after)).then_some(at + 1)
            }
            '-' if rest.starts_with("---") => Some(self.sign(place, at..at + 3, "—")),
            '-' if rest.starts_with("--") => Some(self.sign(place, at..at + 2, "–")),
            '-' | '+' if line_start && rest[1..].starts_with(' ') => Some(at + 1),
            '/' if rest.starts_with("//") && !text[..at].ends_with(':') => {
                Some(at + rest.find('\n').unwrap_or(rest.len()))
            }
            '/' if rest.starts_with("/*") => Some(at + rest.find("*/").map_or(rest.len(), |end| end + 2)),
            '=' => self.heading(text, place, at),
            c if c.is_ascii_digit() => {
                let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
                let item = rest[digits..].starts_with(". ");
                if !item {
                    return None;
                }
                let from = self.flat.len();
                self.put(text, place, at..at + digits + 1);
                self.flat.mark(Zone::Marker, from);
                Some(at + digits + 1)
            }
            _ => None,
        }
    }

    fn reference(&mut self, text: &str, place: Place, at: usize, is_name: fn(char) -> bool) -> Option<usize> {
        let name = &text[at + 1..];
        let length = name.find(|c: char| !is_name(c)).unwrap_or(name.len());
        let length = name[..length].trim_end_matches(['.', ':']).len();
        if length == 0 {
            return None;
        }
        let from = self.flat.len();
        self.put(text, place, at + 1..at + 1 + length);
        self.flat.mark(Zone::Reference, from);
        Some(at + 1 + length)
    }

    fn heading(&mut self, text: &str, place: Place, at: usize) -> Option<usize> {
        let rest = &text[at..];
        let signs = rest.len() - rest.trim_start_matches('=').len();
        if !rest[signs..].starts_with(' ') {
            return None;
        }
        let end = rest.find('\n').unwrap_or(rest.len());
        let from = self.flat.len();
        self.markup(&rest[signs + 1..end], place.at(at + signs + 1));
        self.flat.mark(Zone::Heading, from);
        Some(self.sign(place, at + end..at + end, "\n"))
    }

    fn raw(&mut self, text: &str, place: Place, at: usize) -> Option<usize> {
        let rest = &text[at..];
        let ticks = rest.len() - rest.trim_start_matches('`').len();
        let fence = if ticks >= 3 { &rest[..ticks] } else { "`" };
        let to = rest[fence.len()..].find(fence)? + fence.len();
        let from = self.flat.len();
        self.put(text, place, at + fence.len()..at + to);
        self.flat.mark(Zone::Code, from);
        Some(at + to + fence.len())
    }

    fn math(&mut self, text: &str, place: Place, at: usize) -> Option<usize> {
        let mut end = at + 1;
        loop {
            match text[end..].chars().next()? {
                '$' => break,
                '\\' => end += 1 + text[end + 1..].chars().next().map_or(0, char::len_utf8),
                c => end += c.len_utf8(),
            }
        }
        let from = self.flat.len();
        self.formula(text, place, at + 1..end);
        self.flat.mark(Zone::Math, from);
        Some(end + 1)
    }

    fn formula(&mut self, text: &str, place: Place, range: Range<usize>) {
        let (mut at, mut from) = (range.start, range.start);
        while at < range.end {
            let Some(c) = text[at..range.end].chars().next() else { break };
            let next = at + c.len_utf8();
            let end = if c.is_alphabetic() {
                let rest = &text[at..range.end];
                let length = rest.find(|c: char| !c.is_alphabetic() && c != '.').unwrap_or(rest.len());
                let word = rest[..length].trim_end_matches('.');
                match SIGNS.iter().find(|(name, _)| *name == word) {
                    Some((_, sign)) => Some((at + word.len(), *sign)),
                    None => {
                        at += word.len().max(c.len_utf8());
                        continue;
                    }
                }
            } else {
                match c {
                    '\\' | '"' => Some((next, "")),
                    '#' => {
                        self.put(text, place, from..at);
                        let end = self.code(text, place, at).filter(|end| *end > at).unwrap_or(next);
                        (from, at) = (end, end);
                        continue;
                    }
                    '_' | '^' => {
                        self.put(text, place, from..at);
                        at = self.script(text, place, at, range.end);
                        from = at;
                        continue;
                    }
                    _ => None,
                }
            };
            if let Some((end, sign)) = end {
                self.put(text, place, from..at);
                self.sign(place, at..end, sign);
                (from, at) = (end, end);
            } else {
                at = next;
            }
        }
        self.put(text, place, from.min(range.end)..range.end);
    }

    /// A superscript or subscript of a formula.
    fn script(&mut self, text: &str, place: Place, at: usize, end: usize) -> usize {
        let inner = &text[at + 1..end];
        let length = if inner.starts_with('(') {
            inner.find(')').map_or(inner.len(), |close| close + 1)
        } else {
            let sign = usize::from(inner.starts_with('-'));
            let word = inner[sign..].find(|c: char| !c.is_alphanumeric()).unwrap_or(inner.len() - sign);
            (sign + word).max(inner.chars().next().map_or(0, char::len_utf8))
        };
        let from = self.flat.len();
        self.put(text, place, at..at + 1 + length);
        self.flat.mark(Zone::Script, from);
        at + 1 + length
    }

    /// The file that `#include` and `#import` name.
    fn include(&mut self, path: &str, at: Span, only_values: bool) {
        if path.starts_with('@') || self.depth >= super::DEEPEST {
            return;
        }
        let Some(file) = super::include(self.flat, self.files, path, at) else { return };
        let text = self.flat.files[file].text.clone();
        if macros::is_macro_file(&text) {
            macros::define(self.flat, file);
        } else if !only_values {
            self.markup(&text, Place::File { file, base: 0 });
        }
    }
}
