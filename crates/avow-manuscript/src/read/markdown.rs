//! Markdown and Quarto, by pulldown-cmark; formulas by the reader of LaTeX, raw HTML by that of HTML.

use std::ops::Range;
use std::sync::LazyLock;

use pulldown_cmark::{Event, LinkType, Options, Parser, Tag, TagEnd};
use regex::Regex;

use super::{Files, html, latex, macros};
use crate::text::{By, Flat, Span, Zone};

/// Reads the first file.
pub(super) fn read(flat: &mut Flat, files: &dyn Files) {
    let length = flat.files[0].text.len();
    part(flat, 0, 0..length, files, 0);
}

static INCLUDE: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"\{\{<\s*include\s+([^\s>]+)\s*>\}\}").expect("a pattern of this file is sound")
});
static ATTRIBUTES: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"\{[#.][^}\n]*\}").expect("a pattern of this file is sound"));
static CITATION: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"\[[^\]\n]*@[\w:.-]+[^\]\n]*\]").expect("a pattern of this file is sound"));

/// Reads a part of a file; of the notebook as well, whose cells are files of their own.
pub(super) fn part(flat: &mut Flat, file: usize, range: Range<usize>, files: &dyn Files, depth: usize) {
    let text = flat.files[file].text[range.clone()].to_owned();
    let first = flat.len();
    let mut reader = Reader {
        flat,
        file,
        base: range.start,
        text: &text,
        stops: stops(&text),
        next: 0,
        files,
        depth,
        open: Vec::new(),
        elements: html::Elements::default(),
    };
    let options = Options::ENABLE_TABLES
        | Options::ENABLE_FOOTNOTES
        | Options::ENABLE_MATH
        | Options::ENABLE_STRIKETHROUGH
        | Options::ENABLE_TASKLISTS
        | Options::ENABLE_HEADING_ATTRIBUTES
        | Options::ENABLE_YAML_STYLE_METADATA_BLOCKS;
    for (event, span) in Parser::new_ext(&text, options).into_offset_iter() {
        reader.event(event, span);
    }
    for pattern in [&ATTRIBUTES, &CITATION] {
        let found: Vec<Range<usize>> = pattern.find_iter(&flat.text[first..]).map(|m| m.range()).collect();
        for range in found {
            flat.zone(Zone::Reference, first + range.start..first + range.end);
        }
    }
}

/// Something that Markdown knows nothing of and must not take apart.
enum Stop {
    Binding { key: String, typed: Option<Range<usize>> },
    Include(String),
}

fn stops(text: &str) -> Vec<(Range<usize>, Stop)> {
    let bindings = macros::bindings(text)
        .map(|binding| (binding.range, Stop::Binding { key: binding.key.to_owned(), typed: binding.typed }));
    let includes = INCLUDE
        .captures_iter(text)
        .filter_map(|found| Some((found.get(0)?.range(), Stop::Include(found.get(1)?.as_str().to_owned()))));
    let mut stops: Vec<_> = bindings.chain(includes).collect();
    stops.sort_by_key(|(range, _)| range.start);
    stops
}

struct Reader<'a> {
    flat: &'a mut Flat,
    file: usize,
    base: usize,
    text: &'a str,
    stops: Vec<(Range<usize>, Stop)>,
    /// The first stop that was not met.
    next: usize,
    files: &'a dyn Files,
    depth: usize,
    /// Zones that are open, with where they began.
    open: Vec<(Option<Zone>, usize)>,
    /// Elements of raw HTML that are open.
    elements: html::Elements,
}

impl Reader<'_> {
    fn span(&self, range: &Range<usize>) -> Span {
        Span { file: self.file, start: self.base + range.start, end: self.base + range.end }
    }

    fn instead(&mut self, range: &Range<usize>, text: &str) {
        let span = self.span(range);
        self.flat.instead(span, text);
    }

    fn event(&mut self, event: Event<'_>, range: Range<usize>) {
        match event {
            Event::Text(text) => self.words(&text, range),
            Event::Code(text) => {
                let from = self.flat.len();
                // A binding between backticks is one all the same where the code is Quarto's.
                self.words(&text, range);
                self.flat.mark(Zone::Code, from);
            }
            Event::InlineMath(math) | Event::DisplayMath(math) => {
                let inner = self.text[range.clone()].find(&*math).map(|at| range.start + at);
                if let Some(at) = inner {
                    latex::formula(self.flat, self.file, self.base + at..self.base + at + math.len());
                }
            }
            Event::Html(_) | Event::InlineHtml(_) => {
                html::part(
                    self.flat,
                    self.file,
                    self.base + range.start..self.base + range.end,
                    &mut self.elements,
                );
            }
            Event::SoftBreak | Event::HardBreak => self.instead(&range, "\n"),
            Event::Rule => self.instead(&range, "\n\n"),
            Event::FootnoteReference(_) | Event::TaskListMarker(_) => {}
            Event::Start(tag) => self.start(&tag, &range),
            Event::End(tag) => self.end(&tag, &range),
        }
    }

    fn start(&mut self, tag: &Tag<'_>, range: &Range<usize>) {
        if matches!(tag, Tag::TableCell) {
            self.instead(&(range.start..range.start), " | ");
        }
        let zone = match tag {
            Tag::Heading { .. } => Some(Zone::Heading),
            Tag::CodeBlock(_) | Tag::MetadataBlock(_) => Some(Zone::Code),
            Tag::Image { .. } => Some(Zone::Caption),
            Tag::Table(_) => Some(Zone::Table),
            Tag::Link { link_type: LinkType::Autolink | LinkType::Email, .. } => Some(Zone::Reference),
            _ => None,
        };
        self.open.push((zone, self.flat.len()));
    }

    fn end(&mut self, tag: &TagEnd, range: &Range<usize>) {
        if let Some((Some(zone), from)) = self.open.pop() {
            self.flat.mark(zone, from);
        }
        let block = !matches!(
            tag,
            TagEnd::Emphasis | TagEnd::Strong | TagEnd::Strikethrough | TagEnd::Link | TagEnd::TableCell
        );
        if block {
            self.instead(&(range.end..range.end), "\n\n");
        }
    }

    /// Text of the file, with what must not be taken apart obeyed where it begins.
    fn words(&mut self, text: &str, range: Range<usize>) {
        let mut at = range.start;
        // What a stop covers was pushed with it.
        if let Some((last, _)) = self.next.checked_sub(1).and_then(|index| self.stops.get(index)) {
            at = at.max(last.end);
        }
        if self.stops.get(self.next).is_none_or(|(stop, _)| stop.start >= range.end) && at == range.start {
            return self.plain(text, range);
        }
        while let Some((stop, _)) = self.stops.get(self.next).filter(|(stop, _)| stop.start < range.end) {
            let stop = stop.clone();
            if stop.start > at {
                self.verbatim(at..stop.start);
            }
            self.obey(self.next, &stop);
            self.next += 1;
            at = at.max(stop.end);
        }
        if at < range.end {
            self.verbatim(at..range.end);
        }
    }

    /// Text that is what the file has, or a sign that an entity stands for.
    fn plain(&mut self, text: &str, range: Range<usize>) {
        let raw = &self.text[range.clone()];
        if raw == text {
            self.verbatim(range);
        } else if let Some(at) = raw.find(text) {
            self.verbatim(range.start + at..range.start + at + text.len());
        } else {
            self.instead(&range, text);
        }
    }

    fn verbatim(&mut self, range: Range<usize>) {
        self.flat.verbatim(self.file, self.base + range.start..self.base + range.end);
    }

    fn obey(&mut self, index: usize, range: &Range<usize>) {
        let span = self.span(range);
        match &self.stops[index].1 {
            Stop::Binding { key, typed } => {
                let (key, typed, from) = (key.clone(), typed.clone(), self.flat.len());
                match typed {
                    Some(typed) => {
                        self.verbatim(typed);
                        self.flat.bind(&key, By::Hand, from, span);
                    }
                    None => macros::used(self.flat, &key, from, span),
                }
            }
            Stop::Include(path) => {
                let path = path.clone();
                if self.depth >= super::DEEPEST {
                    return;
                }
                let Some(file) = super::include(self.flat, self.files, &path, span) else { return };
                let length = self.flat.files[file].text.len();
                part(self.flat, file, 0..length, self.files, self.depth + 1);
            }
        }
    }
}
