//! What each command does.

use super::tables::{DROPPED, HEADINGS, REFERENCES, SIGNS};
use super::{Input, Macro, Reader, argument, blank, closing, name, optional};
use crate::read::macros;
use crate::text::{By, File, Zone};

impl Reader<'_> {
    /// Obeys the command at a backslash; gives where reading goes on.
    pub(super) fn command(&mut self, input: Input<'_>, at: usize) -> usize {
        let text = input.text;
        let (name, mut end) = name(text, at);
        if let Some(of) = self.defined.get(name).cloned() {
            return self.expand(input, at..end, &of);
        }
        if text[end..].starts_with('*') {
            end += 1;
        }
        match name {
            "\\" => {
                let next = optional(text, end).map_or(end, |(_, next)| next);
                self.instead(input, at..end, "\n");
                next
            }
            "(" | "[" | ")" | "]" => {
                self.math = matches!(name, "(" | "[");
                end
            }
            "begin" => self.begin(input, at, end),
            "end" => self.end(input, end),
            "newcommand"
            | "renewcommand"
            | "providecommand"
            | "def"
            | "gdef"
            | "edef"
            | "NewDocumentCommand"
            | "RenewDocumentCommand" => self.define(input, name, end),
            "input" | "include" | "subfile" | "InputIfFileExists" => {
                let Some((file, next)) = argument(text, end) else { return end };
                self.include(input, file);
                next
            }
            "usepackage" | "RequirePackage" => self.package(input, end),
            "avow" | "avowas" => self.bound(input, at, name, end),
            "verb" | "lstinline" | "mintinline" => self.verb(input, name, end),
            "iffalse" => text[end..].find("\\fi").map_or(text.len(), |to| end + to + 3),
            "caption" | "captionof" | "subcaption" => self.caption(input, name, end),
            "frac" | "tfrac" | "dfrac" | "nicefrac" | "sfrac" => self.fraction(input, end),
            "href" => self.link(input, end),
            _ if HEADINGS.contains(&name) => self.heading(input, at, end),
            _ if REFERENCES.contains(&name) => self.reference(input, end),
            _ => self.simple(input, name, at, end),
        }
    }

    /// Signs, quantities, commands with arguments that print nothing, and all others.
    fn simple(&mut self, input: Input<'_>, name: &str, at: usize, end: usize) -> usize {
        if let Some((_, sign)) = SIGNS.iter().find(|(command, _)| *command == name) {
            self.instead(input, at..end, sign);
            let word = name.starts_with(|c: char| c.is_ascii_alphabetic());
            // TeX swallows the space behind a word. A line end keeps paragraphs apart.
            return if word && input.text[end..].starts_with(' ') && !sign.is_empty() && !sign.contains('\n') {
                end + 1
            } else {
                end
            };
        }
        if let Some(next) = self.quantity(input, name, at, end) {
            return next;
        }
        if let Some((_, count)) = DROPPED.iter().find(|(command, _)| *command == name) {
            return drop_arguments(input.text, end, *count);
        }
        // An option of an unknown command prints nothing.
        match optional(input.text, end) {
            Some((_, next)) if !self.math => next,
            _ => end,
        }
    }

    /// A package that lies beside the manuscript and is a macro file; of all others nothing is read.
    fn package(&mut self, input: Input<'_>, end: usize) -> usize {
        let end = optional(input.text, end).map_or(end, |(_, next)| next);
        let Some((names, next)) = argument(input.text, end) else { return end };
        for name in input.text[names].split(',') {
            let path = format!("{}.sty", name.trim());
            if let Some(text) = self.files.read(&path).filter(|text| macros::is_macro_file(text)) {
                self.flat.files.push(File { path, text });
                macros::define(self.flat, self.flat.files.len() - 1);
            }
        }
        next
    }

    fn heading(&mut self, input: Input<'_>, at: usize, end: usize) -> usize {
        let end = optional(input.text, end).map_or(end, |(_, next)| next);
        let Some((title, next)) = argument(input.text, end) else { return end };
        self.instead(input, at..at, "\n\n");
        // The printed number is LaTeX's own; a number that begins the title is the author's.
        let from = self.flat.len();
        self.instead(input, at..at, "¶ ");
        self.run(input.part(title));
        self.flat.mark(Zone::Heading, from);
        self.instead(input, next..next, "\n\n");
        next
    }

    fn reference(&mut self, input: Input<'_>, mut end: usize) -> usize {
        let from = self.flat.len();
        while let Some((note, next)) = optional(input.text, end) {
            self.run(input.part(note));
            self.instead(input, next..next, " ");
            end = next;
        }
        if let Some((label, next)) =
            argument(input.text, end).filter(|_| input.text[blank(input.text, end)..].starts_with('{'))
        {
            self.put(input, label);
            end = next;
        }
        self.flat.mark(Zone::Reference, from);
        end
    }

    fn link(&mut self, input: Input<'_>, end: usize) -> usize {
        let end = optional(input.text, end).map_or(end, |(_, next)| next);
        argument(input.text, end).map_or(end, |(_, next)| next)
    }

    fn caption(&mut self, input: Input<'_>, name: &str, end: usize) -> usize {
        let end = if name == "captionof" { drop_arguments(input.text, end, 1) } else { end };
        let end = optional(input.text, end).map_or(end, |(_, next)| next);
        let Some((text, next)) = argument(input.text, end) else { return end };
        self.instead(input, end..end, "\n\n");
        self.zone(input, text, Zone::Caption);
        self.instead(input, next..next, "\n\n");
        next
    }

    fn fraction(&mut self, input: Input<'_>, end: usize) -> usize {
        let Some((above, next)) = argument(input.text, end) else { return end };
        let Some((below, after)) = argument(input.text, next) else { return end };
        self.run(input.part(above));
        self.instead(input, next..next, "/");
        self.run(input.part(below));
        after
    }

    fn verb(&mut self, input: Input<'_>, name: &str, end: usize) -> usize {
        let text = input.text;
        let end = optional(text, end).map_or(end, |(_, next)| next);
        let end = if name == "mintinline" { drop_arguments(text, end, 1) } else { end };
        let Some(open) = text[end..].chars().next() else { return end };
        let close = if open == '{' {
            closing(text, end, '{', '}')
        } else {
            text[end + open.len_utf8()..].find(open).map(|to| end + open.len_utf8() + to)
        };
        let Some(close) = close else { return end };
        let from = self.flat.len();
        self.put(input, end + open.len_utf8()..close);
        self.flat.mark(Zone::Code, from);
        close + open.len_utf8()
    }

    /// `\avow{KEY}` and `\avowas{KEY}{TEXT}`.
    fn bound(&mut self, input: Input<'_>, at: usize, name: &str, end: usize) -> usize {
        let Some((key, next)) = argument(input.text, end) else { return end };
        if self.silent {
            return next;
        }
        let key = input.text[key].trim().replace("\\%", "%");
        let from = self.flat.len();
        if name == "avow" {
            macros::used(self.flat, &key, from, input.span(at..next));
            return next;
        }
        let Some((typed, after)) = argument(input.text, next) else { return next };
        self.run(input.part(typed));
        self.flat.bind(&key, By::Hand, from, input.span(at..after));
        after
    }

    /// `\newcommand{\name}[n][default]{body}` and `\def\name#1{body}`.
    fn define(&mut self, input: Input<'_>, command: &str, end: usize) -> usize {
        let text = input.text;
        let Some((found, mut at)) = argument(text, end) else { return end };
        let name = text[found].trim().trim_start_matches('\\').to_owned();
        let mut of = Macro { takes: 0, first: None, body: String::new() };
        if command.ends_with("def") {
            let Some(open) = text[at..].find('{') else { return at };
            of.takes = text[at..at + open].matches('#').count().min(9);
            at += open;
        } else if command.ends_with("DocumentCommand") {
            let Some((takes, next)) = argument(text, at) else { return at };
            of.takes = text[takes].matches('m').count().min(9);
            at = next;
        } else {
            if let Some((takes, next)) = optional(text, blank(text, at)) {
                of.takes = text[takes].trim().parse().unwrap_or(0usize).min(9);
                at = next;
            }
            if let Some((first, next)) = optional(text, blank(text, at)) {
                (of.first, at) = (Some(text[first].to_owned()), next);
            }
        }
        let Some((body, next)) = argument(text, at) else { return at };
        of.body = text[body].to_owned();
        // The commands of the style are read, not expanded.
        if !matches!(name.as_str(), "avow" | "avowas" | "avowdef") && !name.is_empty() {
            self.defined.insert(name, of);
        }
        next
    }
}

/// Behind options and so many arguments.
pub(super) fn drop_arguments(text: &str, mut end: usize, count: usize) -> usize {
    let options = |mut end: usize| {
        while let Some((_, next)) = optional(text, end) {
            end = next;
        }
        if text[end..].starts_with('(') { closing(text, end, '(', ')').map_or(end, |to| to + 1) } else { end }
    };
    for _ in 0..count {
        end = options(end);
        if !text[blank(text, end)..].starts_with('{') {
            return end;
        }
        let Some((_, next)) = argument(text, end) else { return end };
        end = next;
    }
    if count == 0 { end } else { optional(text, end).map_or(end, |(_, next)| next) }
}
