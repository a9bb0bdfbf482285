//! The one form that every kind of manuscript is read into: running text, each stretch of which knows the bytes of
//! the file that it came from.
//!
//! A reader of a format pushes what a person would read and marks zones in it: a heading, code, a reference. What
//! finds numbers looks only at this form, so it is the same for all formats. Absent: formats, numbers.

use std::cell::OnceCell;
use std::ops::Range;

use serde::Serialize;

/// One file of a manuscript: the one that was named, or one that it includes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// Its path as given, or as the including file writes it.
    pub path: String,
    /// Its text.
    pub text: String,
}

/// A stretch of bytes of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Span {
    /// The position of the file in [`Flat::files`].
    pub file: usize,
    /// The first byte.
    pub start: usize,
    /// One after the last byte.
    pub end: usize,
}

/// What a stretch of the running text is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Zone {
    /// A heading.
    Heading,
    /// Code and other text that is shown as it is.
    Code,
    /// A citation, a cross-reference, a label or a link's address.
    Reference,
    /// The list of references.
    Bibliography,
    /// A formula.
    Math,
    /// A superscript or subscript that is no exponent of ten.
    Script,
    /// A table.
    Table,
    /// The caption of a table or figure.
    Caption,
    /// The mark before an item of a list.
    Marker,
}

/// A place where the manuscript names a stored value instead of typing it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Use {
    /// The key, with its format: `helps.estimate:.3`.
    pub key: String,
    /// How its text came to stand there.
    pub by: By,
    /// Its text in the running text.
    pub range: Range<usize>,
    /// Where it is written.
    pub span: Span,
}

/// How the text of a binding came to stand where it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum By {
    /// From the macro file that the manuscript reads.
    Macro,
    /// Typed by hand beside the key.
    Hand,
    /// It is filled in when the manuscript is made, and does not stand there yet.
    Later,
    /// The macro file that the manuscript reads lacks the key.
    Nothing,
}

/// A value that a macro file defines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Defined {
    /// The key, with its format.
    pub key: String,
    /// The text it stands for, as the format writes it.
    pub value: String,
    /// Where it is defined.
    pub span: Span,
}

#[derive(Clone, Copy, Debug)]
struct Piece {
    /// Where it begins in the running text.
    at: usize,
    span: Span,
    /// Whether its bytes are those of the file.
    verbatim: bool,
}

/// A manuscript as running text.
#[derive(Clone, Debug, Default)]
pub struct Flat {
    /// The files, the one that was named first.
    pub files: Vec<File>,
    /// The running text.
    pub text: String,
    /// Where stored values are named.
    pub uses: Vec<Use>,
    /// What macro files define.
    pub defined: Vec<Defined>,
    /// Macro files that were read, by their position in `files`.
    pub macro_files: Vec<usize>,
    /// What could not be read: a file that is not there, a macro that never ends.
    pub problems: Vec<Problem>,
    pieces: Vec<Piece>,
    zones: Vec<(Zone, Range<usize>)>,
    /// Where the lines of each file begin, once a place was asked for.
    lines: OnceCell<Vec<Vec<usize>>>,
}

/// Something that kept a part of the manuscript from being read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// What, as a lower-case fragment.
    pub what: String,
    /// Where, if at one place.
    pub span: Option<Span>,
}

/// The most text that a manuscript may expand to; macros that call each other could otherwise make any amount.
pub const MOST_TEXT: usize = 64 << 20;

impl Flat {
    /// Adds text that stands in a file exactly so.
    pub fn verbatim(&mut self, file: usize, range: Range<usize>) {
        let Some(text) = self.files.get(file).and_then(|f| f.text.get(range.clone())) else { return };
        if text.is_empty() || self.is_full() {
            return;
        }
        let piece = Piece {
            at: self.text.len(),
            span: Span { file, start: range.start, end: range.end },
            verbatim: true,
        };
        self.text.push_str(text);
        self.pieces.push(piece);
    }

    /// Adds text that stands for something else in a file.
    pub fn instead(&mut self, span: Span, text: &str) {
        if text.is_empty() || self.is_full() {
            return;
        }
        self.pieces.push(Piece { at: self.text.len(), span, verbatim: false });
        self.text.push_str(text);
    }

    /// Whether no more text is taken.
    pub fn is_full(&self) -> bool {
        self.text.len() > MOST_TEXT
    }

    /// The length so far.
    pub fn len(&self) -> usize {
        self.text.len()
    }

    /// Whether there is no text.
    pub fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// Marks what was added since `from`.
    pub fn mark(&mut self, zone: Zone, from: usize) {
        if from < self.text.len() {
            self.zones.push((zone, from..self.text.len()));
        }
    }

    /// Notes that what was added since `from` stands for a stored value.
    pub fn bind(&mut self, key: &str, by: By, from: usize, span: Span) {
        self.uses.push(Use { key: key.to_owned(), by, range: from..self.text.len(), span });
    }

    /// Whether a place lies in such a zone.
    pub fn is_in(&self, zone: Zone, at: usize) -> bool {
        self.zones.iter().any(|(z, range)| *z == zone && range.contains(&at))
    }

    /// The zones as a list sorted by where they begin.
    pub fn zones(&self) -> Vec<(Zone, Range<usize>)> {
        let mut zones = self.zones.clone();
        zones.sort_by_key(|(_, range)| (range.start, range.end));
        zones
    }

    /// The stretch of a file that a stretch of the running text came from. Where it came from several files, the
    /// part in the first.
    pub fn span(&self, range: &Range<usize>) -> Span {
        let first = self.pieces.partition_point(|p| p.at <= range.start).saturating_sub(1);
        let last = self.pieces.partition_point(|p| p.at < range.end.max(range.start + 1)).saturating_sub(1);
        let Some(start) = self.pieces.get(first) else { return Span { file: 0, start: 0, end: 0 } };
        let end = self.pieces.get(last).filter(|p| p.span.file == start.span.file).unwrap_or(start);
        let within = |piece: &Piece, at: usize| piece.span.start + at.saturating_sub(piece.at);
        let from = if start.verbatim { within(start, range.start) } else { start.span.start };
        let to = if end.verbatim { within(end, range.end) } else { end.span.end };
        Span {
            file: start.span.file,
            start: from,
            end: to.clamp(from, self.files[start.span.file].text.len()),
        }
    }

    /// The line and column of a byte of a file, both from 1, columns in characters. Files are complete when this is
    /// first asked.
    pub fn place(&self, file: usize, at: usize) -> (usize, usize) {
        let starts = |file: &File| -> Vec<usize> {
            std::iter::once(0).chain(file.text.match_indices('\n').map(|(at, _)| at + 1)).collect()
        };
        let lines = self.lines.get_or_init(|| self.files.iter().map(starts).collect());
        let (Some(lines), Some(file)) = (lines.get(file), self.files.get(file)) else { return (1, 1) };
        let line = lines.partition_point(|start| *start <= at).max(1);
        let start = lines.get(line - 1).copied().unwrap_or(0);
        let before = file.text.get(start..at.min(file.text.len())).unwrap_or_default();
        (line, before.chars().count() + 1)
    }
}

impl Flat {
    /// Marks a stretch of the running text.
    pub fn zone(&mut self, zone: Zone, range: Range<usize>) {
        self.zones.push((zone, range));
    }

    /// Adds what was read from a part that has bytes of its own; `place` says where those came from.
    pub fn append(&mut self, other: &Flat, place: impl Fn(Span) -> Span) {
        let base = self.text.len();
        for (index, piece) in other.pieces.iter().enumerate() {
            let end = other.pieces.get(index + 1).map_or(other.text.len(), |next| next.at);
            let text = &other.text[piece.at..end];
            if !piece.verbatim {
                self.instead(place(piece.span), text);
                continue;
            }
            for (at, c) in text.char_indices() {
                let start = piece.span.start + at;
                let span = Span { file: piece.span.file, start, end: start + c.len_utf8() };
                let mut buffer = [0u8; 4];
                self.instead(place(span), c.encode_utf8(&mut buffer));
            }
        }
        let moved = |range: &Range<usize>| base + range.start..base + range.end;
        self.zones.extend(other.zones.iter().map(|(zone, range)| (*zone, moved(range))));
        self.uses.extend(other.uses.iter().map(|used| Use {
            range: moved(&used.range),
            span: place(used.span),
            ..used.clone()
        }));
    }
}
