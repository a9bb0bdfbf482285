//! What follows a `#`.

use std::ops::Range;

use super::{Place, Reader};
use crate::read::macros;
use crate::text::{By, Zone};

/// Calls whose strings are printed.
const PRINTED: [&str; 16] = [
    "table", "figure", "grid", "caption", "align", "text", "box", "block", "emph", "strong", "footnote",
    "list", "enum", "quote", "num", "qty",
];

/// Calls whose arguments name something.
const NAMES: [&str; 5] = ["cite", "ref", "label", "bibliography", "image"];

fn name(text: &str, at: usize) -> &str {
    let rest = &text[at..];
    let length = rest.find(|c: char| !(c.is_alphanumeric() || c == '_' || c == '-')).unwrap_or(rest.len());
    rest[..length].trim_end_matches('-')
}

/// Where the bracket that opens at a place is closed; strings are skipped.
fn closing(text: &str, at: usize) -> Option<usize> {
    let mut depth = 0usize;
    let mut chars = text[at..].char_indices();
    let mut string = false;
    while let Some((offset, c)) = chars.next() {
        match c {
            '\\' => drop(chars.next()),
            // A quote in prose opens no string.
            '"' if !text[at..].starts_with('[') => string = !string,
            '(' | '[' | '{' if !string => depth += 1,
            ')' | ']' | '}' if !string => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return Some(at + offset);
                }
            }
            _ => {}
        }
    }
    None
}

/// The string literal at a place, without its quotes.
fn literal(text: &str, at: usize) -> Option<Range<usize>> {
    let rest = text.get(at..)?.strip_prefix('"')?;
    let mut escaped = false;
    for (offset, c) in rest.char_indices() {
        match c {
            '"' if !escaped => return Some(at + 1..at + 1 + offset),
            _ => escaped = c == '\\' && !escaped,
        }
    }
    None
}

fn blank(text: &str, at: usize) -> usize {
    at + (text[at..].len() - text[at..].trim_start_matches([' ', '\t']).len())
}

/// The end of a statement: the line's end outside all brackets.
fn statement(text: &str, at: usize) -> usize {
    let mut to = at;
    while let Some(c) = text[to..].chars().next() {
        match c {
            '\n' => return to,
            '(' | '[' | '{' => to = closing(text, to).map_or(text.len(), |end| end + 1),
            c => to += c.len_utf8(),
        }
    }
    to
}

impl Reader<'_> {
    /// Obeys code; gives where the markup goes on.
    pub(super) fn code(&mut self, text: &str, place: Place, at: usize) -> Option<usize> {
        let word = name(text, at + 1);
        let end = at + 1 + word.len();
        match word {
            "" if text[at + 1..].starts_with(['{', '(', '[']) => self.blocks(text, place, at + 1, false),
            "" => None,
            "include" | "import" => {
                let file = literal(text, blank(text, end))?;
                self.include(&text[file.clone()], place.span(&file), word == "import");
                Some(statement(text, end))
            }
            "let" => Some(self.bind_name(text, end)),
            "set" | "show" | "context" => Some(statement(text, end)),
            "avow" | "avow-as" => self.bound(text, place, at, word),
            _ => match self.defined.get(word).cloned() {
                Some(body) => {
                    let span = place.span(&(at..end));
                    self.expanded += 1;
                    self.markup(&body, Place::Use(span));
                    Some(end)
                }
                None => self.call(text, place, at, word),
            },
        }
    }

    /// `#let name = value`, where the value is a number, a string or content.
    fn bind_name(&mut self, text: &str, end: usize) -> usize {
        let at = blank(text, end);
        let word = name(text, at).to_owned();
        let to = statement(text, at);
        if let Some(value) = text[at + word.len()..to].trim_start().strip_prefix('=') {
            let value = value.trim();
            let inner =
                |open: char, close: char| value.strip_prefix(open).and_then(|v| v.strip_suffix(close));
            let literal =
                inner('[', ']').or_else(|| inner('"', '"')).or_else(|| inner('$', '$').map(|_| value));
            let number = value.starts_with(|c: char| c.is_ascii_digit() || c == '-').then_some(value);
            if let Some(value) = literal.or(number) {
                self.defined.insert(word, value.to_owned());
            }
        }
        to
    }

    fn bound(&mut self, text: &str, place: Place, at: usize, word: &str) -> Option<usize> {
        let open = at + 1 + word.len();
        let key = literal(text, blank(text, open + 1)).filter(|_| text[open..].starts_with('('))?;
        let close = closing(text, open)?;
        let from = self.flat.len();
        let key = text[key].to_owned();
        if word == "avow" {
            macros::used(self.flat, &key, from, place.span(&(at..close + 1)));
            return Some(close + 1);
        }
        let inner = close + 1;
        let end = closing(text, inner).filter(|_| text[inner..].starts_with('['))?;
        self.markup(&text[inner + 1..end], place.at(inner + 1));
        self.flat.bind(&key, By::Hand, from, place.span(&(at..end + 1)));
        Some(end + 1)
    }

    fn call(&mut self, text: &str, place: Place, at: usize, word: &str) -> Option<usize> {
        let mut end = at + 1 + word.len();
        // A field or a method: `calc.round(…)`.
        while text[end..].starts_with('.') && !name(text, end + 1).is_empty() {
            end += 1 + name(text, end + 1).len();
        }
        if word == "table" {
            let from = self.flat.len();
            let next = self.blocks(text, place, end, true);
            self.flat.mark(Zone::Table, from);
            return next;
        }
        if NAMES.contains(&word) && text[end..].starts_with('(') {
            return Some(closing(text, end)? + 1);
        }
        let printed = PRINTED.contains(&word);
        if matches!(word, "num" | "qty") && text[end..].starts_with('(') {
            let close = closing(text, end)?;
            let argument = text[end + 1..close].split(',').next().unwrap_or_default();
            let from = end + 1 + argument.find(|c: char| c != '"' && c != ' ').unwrap_or(0);
            self.put(text, place, from..end + 1 + argument.trim_end_matches(['"', ' ']).len());
            return Some(close + 1);
        }
        self.blocks(text, place, end, printed)
    }

    /// The arguments and content blocks behind a call.
    fn blocks(&mut self, text: &str, place: Place, mut end: usize, strings: bool) -> Option<usize> {
        while text[end..].starts_with(['(', '[', '{']) {
            let close = closing(text, end)?;
            if text[end..].starts_with('[') {
                self.markup(&text[end + 1..close], place.at(end + 1));
            } else {
                self.arguments(text, place, end + 1..close, strings);
            }
            end = close + 1;
        }
        Some(end)
    }

    /// The prose in a call's arguments: content blocks, inner calls, and strings where the call prints them.
    fn arguments(&mut self, text: &str, place: Place, range: Range<usize>, strings: bool) {
        let mut at = range.start;
        let mut named = false;
        while at < range.end {
            let Some(c) = text[at..range.end].chars().next() else { return };
            let mut next = at + c.len_utf8();
            match c {
                '[' | '{' | '(' => {
                    let Some(close) = closing(text, at).filter(|close| *close < range.end) else { return };
                    self.sign(place, at..at, " | ");
                    if c == '[' {
                        self.markup(&text[at + 1..close], place.at(at + 1));
                    } else {
                        self.arguments(text, place, at + 1..close, strings);
                    }
                    next = close + 1;
                }
                '$' => {
                    self.sign(place, at..at, " | ");
                    next = self.special(text, place, at, '$', false).unwrap_or(next);
                }
                '"' => {
                    let Some(found) = literal(text, at).filter(|found| found.end < range.end) else { return };
                    if strings && !named {
                        self.sign(place, at..at, " | ");
                        self.put(text, place, found.clone());
                    }
                    next = found.end + 1;
                }
                ':' => named = true,
                ',' => named = false,
                c if c.is_alphabetic() => {
                    let word = name(text, at);
                    let end = at + word.len().max(c.len_utf8());
                    let caption = word == "caption" && text[end..].starts_with(':');
                    next = self.inner(text, place, at, word).unwrap_or(end);
                    if caption {
                        next = self.caption(text, place, end + 1, range.end);
                    }
                }
                _ => {}
            }
            at = next.max(at + c.len_utf8());
        }
    }

    /// A call among the arguments of another, which needs no `#`.
    fn inner(&mut self, text: &str, place: Place, at: usize, word: &str) -> Option<usize> {
        let open = at + word.len();
        if !text[open..].starts_with(['(', '[']) {
            return None;
        }
        // The call is read as if the sign stood before it.
        match word {
            "avow" | "avow-as" => self.bound(text, place, at.checked_sub(1)?, word),
            _ => self.call(text, place, at.checked_sub(1)?, word),
        }
    }

    fn caption(&mut self, text: &str, place: Place, at: usize, end: usize) -> usize {
        let at = blank(text, at);
        let Some(close) = closing(text, at).filter(|close| *close < end && text[at..].starts_with('['))
        else {
            return at;
        };
        self.sign(place, at..at, "\n\n");
        let from = self.flat.len();
        self.markup(&text[at + 1..close], place.at(at + 1));
        self.flat.mark(Zone::Caption, from);
        self.sign(place, close..close, "\n\n");
        close + 1
    }
}
