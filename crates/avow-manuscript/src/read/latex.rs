//! LaTeX: what a reader of the printed page would see, as far as numbers are concerned.
//!
//! This is no TeX. Commands that print their arguments are looked through, those that do not are left out, symbols
//! become the signs that they print, and macros defined by `\newcommand` or `\def` are expanded where they are used.

mod commands;
mod environments;
mod numbers;
mod tables;

use std::collections::HashMap;
use std::ops::Range;

use super::{Files, macros};
use crate::text::{Flat, Problem, Span, Zone};

/// Reads the first file.
pub(super) fn read(flat: &mut Flat, files: &dyn Files) {
    let text = flat.files[0].text.clone();
    let mut reader =
        Reader { flat, files, defined: HashMap::new(), math: false, silent: false, depth: 0, expanded: 0 };
    // Before the document begins only definitions count.
    let body = text.find(r"\begin{document}").unwrap_or(0);
    reader.silent = true;
    reader.run(Input { text: &text[..body], origin: Origin::File { file: 0, base: 0 } });
    reader.silent = false;
    reader.math = false;
    reader.run(Input { text: &text[body..], origin: Origin::File { file: 0, base: body } });
}

/// Reads a formula that stands in a file of another format.
pub(super) fn formula(flat: &mut Flat, file: usize, range: Range<usize>) {
    let text = flat.files[file].text[range.clone()].to_owned();
    let from = flat.len();
    let mut reader = Reader {
        flat,
        files: &(),
        defined: HashMap::new(),
        math: true,
        silent: false,
        depth: 0,
        expanded: 0,
    };
    reader.run(Input { text: &text, origin: Origin::File { file, base: range.start } });
    flat.mark(Zone::Math, from);
}

/// A macro of the manuscript.
#[derive(Clone, Debug)]
struct Macro {
    /// How many arguments it takes.
    takes: usize,
    /// The default of its first argument, where that is optional.
    first: Option<String>,
    body: String,
}

/// Where the text under way comes from.
#[derive(Clone, Copy, Debug)]
enum Origin {
    /// A file; `base` is where the text begins in it.
    File { file: usize, base: usize },
    /// A macro's body, which stands for the place of its use.
    Use(Span),
}

#[derive(Clone, Copy, Debug)]
struct Input<'t> {
    text: &'t str,
    origin: Origin,
}

impl<'t> Input<'t> {
    fn span(&self, range: Range<usize>) -> Span {
        match self.origin {
            Origin::File { file, base } => Span { file, start: base + range.start, end: base + range.end },
            Origin::Use(span) => span,
        }
    }

    /// A part of it, with its place.
    fn part(&self, range: Range<usize>) -> Input<'t> {
        let origin = match self.origin {
            Origin::File { file, base } => Origin::File { file, base: base + range.start },
            of_use => of_use,
        };
        Input { text: &self.text[range], origin }
    }
}

/// So deep macros, includes and groups may nest.
const DEEPEST: usize = 40;
/// So many macros are expanded; two that call each other twice would make any number.
const MOST_EXPANDED: usize = 100_000;

struct Reader<'a> {
    flat: &'a mut Flat,
    files: &'a dyn Files,
    defined: HashMap<String, Macro>,
    math: bool,
    /// Whether nothing is printed: the preamble.
    silent: bool,
    depth: usize,
    /// How many macros were expanded.
    expanded: usize,
}

impl Reader<'_> {
    /// Goes through a text.
    fn run(&mut self, input: Input<'_>) {
        if self.depth >= DEEPEST || self.expanded > MOST_EXPANDED || self.flat.is_full() {
            let nested = "macros or includes are nested too deep";
            if self.flat.problems.iter().all(|p| p.what != nested) {
                self.flat.problems.push(Problem { what: nested.to_owned(), span: Some(input.span(0..0)) });
            }
            return;
        }
        self.depth += 1;
        let text = input.text;
        let mut at = 0;
        // What stands there exactly so is pushed in one piece.
        let mut from = 0;
        while let Some(c) = text[at..].chars().next() {
            let next = at + c.len_utf8();
            if !matches!(c, '\\' | '%' | '{' | '}' | '$' | '~' | '-' | '^' | '_' | '&' | '`' | '\'') {
                at = next;
                continue;
            }
            self.put(input, from..at);
            at = self.special(input, at, c);
            from = at;
        }
        self.put(input, from..text.len());
        self.depth -= 1;
    }

    fn special(&mut self, input: Input<'_>, at: usize, c: char) -> usize {
        let text = input.text;
        let next = at + c.len_utf8();
        match c {
            '\\' => self.command(input, at),
            '%' => text[at..].find('\n').map_or(text.len(), |end| at + end + 1),
            '{' | '}' => next,
            '$' => {
                let double = text[next..].starts_with('$');
                self.math = !self.math;
                next + usize::from(double)
            }
            '~' => self.instead(input, at..next, "\u{a0}"),
            '&' => self.instead(input, at..next, " | "),
            '-' if text[at..].starts_with("---") => self.instead(input, at..at + 3, "—"),
            '-' if text[at..].starts_with("--") => self.instead(input, at..at + 2, "–"),
            '`' | '\'' if text[next..].starts_with(c) => self.instead(input, at..next + 1, "\""),
            '^' | '_' if self.math => self.script(input, at, c),
            _ => {
                self.put(input, at..next);
                next
            }
        }
    }

    /// A superscript or subscript; an exponent stays legible for what finds numbers.
    fn script(&mut self, input: Input<'_>, at: usize, c: char) -> usize {
        let Some((argument, next)) = argument(input.text, at + 1) else { return at + 1 };
        let content = input.text[argument.clone()].trim();
        let exponent = c == '^'
            && content.strip_prefix(['-', '+', '−']).unwrap_or(content).bytes().all(|b| b.is_ascii_digit())
            && !content.is_empty();
        if exponent {
            let from = self.flat.len();
            self.instead(input, at..at + 1, "^{");
            self.put(input, argument.clone());
            self.instead(input, argument.end..argument.end, "}");
            self.flat.mark(Zone::Script, from);
            return next;
        }
        let from = self.flat.len();
        self.instead(input, at..at + 1, if c == '_' { "_" } else { "^" });
        self.run(input.part(argument));
        self.flat.mark(Zone::Script, from);
        next
    }

    /// Pushes text that stands there so.
    fn put(&mut self, input: Input<'_>, range: Range<usize>) {
        if self.silent || range.is_empty() {
            return;
        }
        match input.origin {
            Origin::File { file, base } => self.flat.verbatim(file, base + range.start..base + range.end),
            Origin::Use(span) => self.flat.instead(span, &input.text[range]),
        }
    }

    /// Pushes text for something else; gives where that ends.
    fn instead(&mut self, input: Input<'_>, range: Range<usize>, text: &str) -> usize {
        if !self.silent {
            self.flat.instead(input.span(range.clone()), text);
        }
        range.end
    }

    /// Goes through an argument and marks what it printed.
    fn zone(&mut self, input: Input<'_>, argument: Range<usize>, zone: Zone) {
        let from = self.flat.len();
        self.run(input.part(argument));
        self.flat.mark(zone, from);
    }

    fn include(&mut self, input: Input<'_>, argument: Range<usize>) {
        let name = input.text[argument.clone()].trim();
        let path = if name.rsplit('/').next().unwrap_or(name).contains('.') {
            name.to_owned()
        } else {
            format!("{name}.tex")
        };
        // A file that includes itself would go on for ever.
        if self.flat.files.len() > 500 {
            return;
        }
        let Some(file) = super::include(self.flat, self.files, &path, input.span(argument)) else { return };
        let text = self.flat.files[file].text.clone();
        if macros::is_macro_file(&text) {
            return macros::define(self.flat, file);
        }
        self.run(Input { text: &text, origin: Origin::File { file, base: 0 } });
    }

    /// Replaces a macro by its body; gives where reading goes on.
    fn expand(&mut self, input: Input<'_>, range: Range<usize>, of: &Macro) -> usize {
        let (mut at, mut given) = (range.end, Vec::new());
        self.expanded += 1;
        if let Some(default) = &of.first {
            match optional(input.text, at) {
                Some((argument, next)) => {
                    given.push(input.text[argument].to_owned());
                    at = next;
                }
                None => given.push(default.clone()),
            }
        }
        while given.len() < of.takes {
            let Some((found, next)) = argument(input.text, at) else { break };
            given.push(input.text[found].to_owned());
            at = next;
        }
        let mut body = of.body.clone();
        for (index, value) in given.iter().enumerate() {
            body = body.replace(&format!("#{}", index + 1), value);
            if body.len() > crate::text::MOST_TEXT / 64 {
                break;
            }
        }
        self.run(Input { text: &body, origin: Origin::Use(input.span(range.start..at)) });
        at
    }
}

/// The name of the command at a backslash, and where it ends.
fn name(text: &str, at: usize) -> (&str, usize) {
    let rest = &text[at + 1..];
    let letters = rest.find(|c: char| !c.is_ascii_alphabetic() && c != '@').unwrap_or(rest.len());
    let length = if letters == 0 { rest.chars().next().map_or(0, char::len_utf8) } else { letters };
    (&rest[..length], at + 1 + length)
}

fn blank(text: &str, at: usize) -> usize {
    at + (text[at..].len() - text[at..].trim_start_matches([' ', '\t', '\n', '\r']).len())
}

/// The argument at a place, without its braces, and where reading goes on: a group, a command or one character.
fn argument(text: &str, at: usize) -> Option<(Range<usize>, usize)> {
    let at = blank(text, at);
    match text[at..].chars().next()? {
        '{' => {
            let end = closing(text, at, '{', '}')?;
            Some((at + 1..end, end + 1))
        }
        '\\' => {
            let (_, end) = name(text, at);
            Some((at..end, end))
        }
        '}' => None,
        c => Some((at..at + c.len_utf8(), at + c.len_utf8())),
    }
}

/// An optional argument directly at a place.
fn optional(text: &str, at: usize) -> Option<(Range<usize>, usize)> {
    if !text[at..].starts_with('[') {
        return None;
    }
    let end = closing(text, at, '[', ']')?;
    Some((at + 1..end, end + 1))
}

/// Where the bracket that opens at a place is closed; escaped ones and those in comments do not count.
fn closing(text: &str, at: usize, open: char, close: char) -> Option<usize> {
    let (mut depth, mut braces) = (0usize, 0usize);
    let mut chars = text[at..].char_indices();
    while let Some((offset, c)) = chars.next() {
        match c {
            '\\' => drop(chars.next()),
            '%' => drop(chars.by_ref().find(|(_, c)| *c == '\n')),
            c if c == open => depth += 1,
            c if c == close && braces == 0 => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return Some(at + offset);
                }
            }
            '{' => braces += 1,
            '}' => braces = braces.saturating_sub(1),
            _ => {}
        }
    }
    None
}
