//! Events of the YAML parser into a tree, within bounds.
//!
//! The parser counts places in characters and stops at its first error; everything else that YAML allows and
//! a spec may not have (duplicate keys, merge keys, tags, several documents) is collected, so one reading
//! shows them all.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use saphyr_parser::{Event, Parser, ScalarStyle, ScanError, Span, Tag};

use super::{Entry, Node, Scalar, What};
use crate::diagnostic::{Diagnostic, Diagnostics};

/// Largest spec, in bytes.
pub(crate) const MAX_BYTES: usize = 64 << 20;
/// Deepest nesting.
pub(crate) const MAX_DEPTH: usize = 64;
/// Most nodes that aliases may add to what the file spells out.
pub(crate) const MAX_ALIASED: usize = 100_000;

/// Reads a text into a tree. Without a tree there is at least one error.
pub(crate) fn build(text: &str, out: &mut Diagnostics) -> Option<Arc<Node>> {
    if text.len() > MAX_BYTES {
        let message = format!("the spec has {} bytes, more than the {MAX_BYTES} allowed", text.len());
        out.push(Diagnostic::error("too-large", 0..0, message).hint("keep data in files and name them"));
        return None;
    }
    // The parser takes NUL for the end of the text and would silently ignore what follows.
    if let Some((at, c)) =
        text.char_indices().find(|(at, c)| forbidden(*c) && !(*at == 0 && *c == '\u{feff}'))
    {
        let message = format!("the spec holds the character U+{:04X}, which is no text", u32::from(c));
        out.push(Diagnostic::error("control-character", at..at + c.len_utf8(), message));
        return None;
    }
    let mark = text.chars().next().filter(|c| *c == '\u{feff}').map_or(0, char::len_utf8);
    let mut builder = Builder::new(text, mark);
    builder.read(out);
    builder.root
}

/// Control characters, and those that some readers of YAML take for line breaks and others do not.
fn forbidden(c: char) -> bool {
    let control = c.is_control() && !matches!(c, '\n' | '\r' | '\t');
    control || matches!(c, '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}')
}

/// Bytes of every 64th character, so that a place is found without a table of all.
struct Places<'a> {
    text: &'a str,
    shift: usize,
    marks: Option<Vec<usize>>,
}

const STRIDE: usize = 64;

impl<'a> Places<'a> {
    fn new(text: &'a str, shift: usize) -> Self {
        let rest = &text[shift..];
        let marks = (!rest.is_ascii())
            .then(|| rest.char_indices().step_by(STRIDE).map(|(at, _)| at + shift).collect());
        Self { text, shift, marks }
    }

    fn byte(&self, character: usize) -> usize {
        let Some(marks) = &self.marks else { return (self.shift + character).min(self.text.len()) };
        let Some(start) = marks.get(character / STRIDE) else { return self.text.len() };
        let rest = &self.text[*start..];
        rest.char_indices().nth(character % STRIDE).map_or(self.text.len(), |(at, _)| start + at)
    }

    fn range(&self, span: Span) -> Range<usize> {
        let start = self.byte(span.start.index());
        start..self.byte(span.end.index()).max(start)
    }
}

enum Open {
    List(Vec<Arc<Node>>),
    Map(Vec<Entry>, HashMap<String, Range<usize>>, Option<Key>),
}

struct Key {
    text: String,
    at: Range<usize>,
    plain: bool,
}

struct Frame {
    open: Open,
    start: usize,
    anchor: usize,
    /// Where its last part ends; an alias counts where it stands itself.
    last: usize,
}

struct Builder<'a> {
    text: &'a str,
    shift: usize,
    places: Places<'a>,
    frames: Vec<Frame>,
    anchors: HashMap<usize, Arc<Node>>,
    aliased: usize,
    documents: usize,
    root: Option<Arc<Node>>,
}

/// The reading cannot go on.
struct Stop;

impl<'a> Builder<'a> {
    fn new(text: &'a str, shift: usize) -> Self {
        Self {
            text,
            shift,
            places: Places::new(text, shift),
            frames: Vec::new(),
            anchors: HashMap::new(),
            aliased: 0,
            documents: 0,
            root: None,
        }
    }

    fn read(&mut self, out: &mut Diagnostics) {
        let mut parser = Parser::new_from_str(&self.text[self.shift..]);
        while let Some(next) = parser.next_event() {
            let stopped = match next {
                Ok((event, span)) => self.event(event, span, out).is_err(),
                Err(error) => {
                    out.push(self.syntax(&error));
                    true
                }
            };
            if stopped {
                self.root = None;
                return;
            }
        }
        if self.root.is_none() {
            let hint =
                "a spec begins with `avow: 1` and `experiment: NAME`; `avow init` writes one that runs";
            out.push(Diagnostic::error("empty", 0..0, "the spec is empty").hint(hint));
        }
    }

    fn event(&mut self, event: Event<'_>, span: Span, out: &mut Diagnostics) -> Result<(), Stop> {
        let range = self.places.range(span);
        match event {
            Event::DocumentStart(_) => {
                self.documents += 1;
                if self.documents > 1 {
                    let message = "a second document begins here, and a spec is one document";
                    out.push(
                        Diagnostic::error("several-documents", range, message).hint("write one file each"),
                    );
                    return Err(Stop);
                }
            }
            Event::Alias(anchor) => self.alias(anchor, range, out)?,
            Event::Scalar(text, style, anchor, tag) => {
                let plain = style == ScalarStyle::Plain && !is_text(tag.as_deref());
                refuse_tag(tag.as_deref(), &range, out);
                let literal = style == ScalarStyle::Literal;
                let span = self.trimmed(range);
                let what = What::Scalar(Scalar { text: text.into_owned(), plain, literal });
                let end = span.end;
                self.add(Arc::new(Node { span, what, height: 1, weight: 1 }), anchor, end, out)?;
            }
            Event::SequenceStart(anchor, tag) => {
                refuse_tag(tag.as_deref(), &range, out);
                self.open(Open::List(Vec::new()), range.start, anchor, out)?;
            }
            Event::MappingStart(anchor, tag) => {
                refuse_tag(tag.as_deref(), &range, out);
                self.open(Open::Map(Vec::new(), HashMap::new(), None), range.start, anchor, out)?;
            }
            Event::SequenceEnd | Event::MappingEnd => self.close(range.end, out)?,
            Event::Nothing | Event::StreamStart | Event::StreamEnd | Event::DocumentEnd => {}
        }
        Ok(())
    }

    /// The parser's spans may reach over the white space behind a scalar.
    fn trimmed(&self, range: Range<usize>) -> Range<usize> {
        let kept = self.text[range.clone()].trim_end().len();
        range.start..range.start + kept
    }

    fn open(&mut self, open: Open, start: usize, anchor: usize, out: &mut Diagnostics) -> Result<(), Stop> {
        if self.frames.len() >= MAX_DEPTH {
            out.push(too_deep(start..start));
            return Err(Stop);
        }
        self.frames.push(Frame { open, start, anchor, last: start });
        Ok(())
    }

    fn close(&mut self, end: usize, out: &mut Diagnostics) -> Result<(), Stop> {
        let frame = self.frames.pop().expect("the parser closes what it opened");
        let stop = self.collection_end(&frame, end);
        let (what, height, weight) = match frame.open {
            Open::List(items) => {
                let (height, weight) = extent(items.iter());
                (What::List(items), height, weight)
            }
            Open::Map(entries, ..) => {
                let (height, weight) = extent(entries.iter().map(|e| &e.value));
                (What::Map(entries), height, weight)
            }
        };
        let node = Node { span: frame.start..stop.max(frame.start), what, height, weight };
        self.add(Arc::new(node), frame.anchor, stop, out)
    }

    /// A block collection ends with its last part, a flow collection with its bracket; the parser's own end
    /// may lie behind a comment.
    fn collection_end(&self, frame: &Frame, end: usize) -> usize {
        let last = frame.last.min(end.max(frame.start));
        if !matches!(self.text.as_bytes().get(frame.start), Some(b'{' | b'[')) {
            return last;
        }
        let mut at = last.max(frame.start + 1);
        while let Some(rest) = self.text.get(at..end) {
            match rest.bytes().next() {
                Some(b'}' | b']') => return at + 1,
                Some(b'#') => at += rest.find('\n').unwrap_or(rest.len()),
                Some(_) => at += rest.chars().next().map_or(1, char::len_utf8),
                None => break,
            }
        }
        end
    }

    fn alias(&mut self, anchor: usize, range: Range<usize>, out: &mut Diagnostics) -> Result<(), Stop> {
        let Some(node) = self.anchors.get(&anchor).cloned() else {
            out.push(Diagnostic::error("alias", range, "this alias stands inside its own anchor"));
            return Err(Stop);
        };
        self.aliased = self.aliased.saturating_add(node.weight);
        if self.aliased > MAX_ALIASED {
            let message = format!("the aliases of this spec stand for more than {MAX_ALIASED} values");
            out.push(Diagnostic::error("alias", range, message).hint("use an axis for what is repeated"));
            return Err(Stop);
        }
        if self.frames.len() + node.height > MAX_DEPTH {
            out.push(too_deep(range));
            return Err(Stop);
        }
        self.add(node, 0, range.end, out)
    }

    fn add(&mut self, node: Arc<Node>, anchor: usize, end: usize, out: &mut Diagnostics) -> Result<(), Stop> {
        if anchor > 0 {
            self.anchors.insert(anchor, node.clone());
        }
        let Some(frame) = self.frames.last_mut() else {
            self.root = Some(node);
            return Ok(());
        };
        frame.last = frame.last.max(end);
        match &mut frame.open {
            Open::List(items) => items.push(node),
            Open::Map(entries, seen, pending) => match pending.take() {
                None => *pending = Some(key_of(&node, out).ok_or(Stop)?),
                Some(key) => insert(entries, seen, key, node, out),
            },
        }
        Ok(())
    }

    fn syntax(&self, error: &ScanError) -> Diagnostic {
        let at = self.places.byte(error.marker().index());
        let mut start = at.min(self.text.len());
        // A plain scalar that runs into a tab is complained about where it begins, lines before the tab.
        if error.info().contains("found a tab")
            && let Some(tab) = self.text[start..].find('\t')
        {
            start += tab;
        }

        let line_start = self.text[..start].rfind('\n').map_or(0, |i| i + 1);
        let line_end = self.text[start..].find('\n').map_or(self.text.len(), |i| start + i);
        let line = &self.text[line_start..line_end];
        let length = self.text[start..].chars().next().filter(|c| *c != '\n').map_or(0, char::len_utf8);
        let message = format!("this is not YAML: {}", error.info());
        let mut diagnostic = Diagnostic::error("syntax", start..start + length, message);
        let open = self.frames.iter().rev().map(|frame| frame.start);
        let mut flow = open.filter(|at| matches!(self.text.as_bytes().get(*at), Some(b'{' | b'[')));
        if let Some(at) = flow.next().filter(|at| *at < line_start) {
            diagnostic = diagnostic.label(at..at + 1, "this bracket is still open here");
        }
        let previous = self.text[..line_start].trim_end().lines().next_back().unwrap_or_default();
        if line.contains('\t') {
            return diagnostic.hint("YAML indents with spaces, never with tabs");
        }
        // The brace of a reference itself opens nothing.
        let flow = |line: &str| line.contains("${") && line.replace("${", "").contains(['{', '[']);
        if flow(line) || flow(previous) {
            return diagnostic
                .hint("inside `{…}` and `[…]` YAML needs quotes around `${…}`: \"${axes.width}\"");
        }
        if error.info().contains("mapping values") && line.matches(": ").count() > 1 {
            return diagnostic.hint("put quotes around a text that contains `: `");
        }
        diagnostic
    }
}

/// Height and weight of a collection with these parts.
fn extent<'n>(parts: impl Iterator<Item = &'n Arc<Node>>) -> (usize, usize) {
    parts.fold((1, 1_usize), |(height, weight), part| {
        (height.max(part.height + 1), weight.saturating_add(part.weight))
    })
}

fn too_deep(range: Range<usize>) -> Diagnostic {
    Diagnostic::error("too-deep", range, format!("this is nested more than {MAX_DEPTH} levels deep"))
}

fn is_text(tag: Option<&Tag>) -> bool {
    tag.is_some_and(|tag| tag.is_yaml_core_schema() && tag.suffix == "str")
}

fn refuse_tag(tag: Option<&Tag>, range: &Range<usize>, out: &mut Diagnostics) {
    if let Some(tag) = tag.filter(|tag| !is_text(Some(tag))) {
        let message = format!("the tag `{tag}` means nothing in a spec");
        out.push(Diagnostic::error("tag", range.clone(), message).hint("leave it out"));
    }
}

/// A key must be a scalar; anything else ends the reading, since no later complaint could name its place.
fn key_of(node: &Node, out: &mut Diagnostics) -> Option<Key> {
    if let Some(scalar) = node.scalar() {
        return Some(Key { text: scalar.text.clone(), at: node.span.clone(), plain: scalar.plain });
    }
    let message = format!("a key must be a word, and this is {}", node.kind());
    let hint = "put quotes around a key with brackets; a value such as ${…} needs quotes in flow style";
    out.push(Diagnostic::error("key", node.span.clone(), message).hint(hint));
    None
}

fn insert(
    entries: &mut Vec<Entry>,
    seen: &mut HashMap<String, Range<usize>>,
    key: Key,
    value: Arc<Node>,
    out: &mut Diagnostics,
) {
    if key.text == "<<" && key.plain {
        let hint =
            "merge keys are not part of YAML 1.2; write the keys out, or use an alias for a whole value";
        out.push(Diagnostic::error("merge-key", key.at, "`<<` does not merge anything here").hint(hint));
        return;
    }
    if let Some(first) = seen.get(&key.text) {
        let diagnostic =
            Diagnostic::error("duplicate-key", key.at, format!("`{}` stands here twice", key.text));
        out.push(diagnostic.label(first.clone(), "it was first given here"));
        return;
    }
    seen.insert(key.text.clone(), key.at.clone());
    entries.push(Entry { key: key.text, at: key.at, plain: key.plain, value });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scalar::Meaning;

    fn tree(text: &str) -> Arc<Node> {
        let mut out = Diagnostics::default();
        let root = build(text, &mut out);
        assert_eq!(out.finish(), []);
        root.unwrap()
    }

    fn codes(text: &str) -> Vec<&'static str> {
        let mut out = Diagnostics::default();
        build(text, &mut out);
        out.finish().iter().map(|d| d.code).collect()
    }

    #[test]
    fn every_key_and_value_knows_its_bytes() {
        for text in [
            "ä: {ö: 'ü', list: [1, two]}\nlast: end\n",
            "\u{feff}ä: {ö: 'ü', list: [1, two]}\r\nlast: end\r\n",
            "# é\n\nä: {ö: 'ü', list: [1, two]} # ñ\nlast:   end   # é\n",
        ] {
            let root = tree(text);
            let first = root.get("ä").unwrap();
            assert_eq!(&text[first.span.clone()], "{ö: 'ü', list: [1, two]}");
            assert_eq!(&text[first.entry("ö").unwrap().at.clone()], "ö");
            assert_eq!(&text[first.get("ö").unwrap().span.clone()], "'ü'");
            assert_eq!(&text[first.get("list").unwrap().items().unwrap()[1].span.clone()], "two");
            assert_eq!(&text[root.get("last").unwrap().span.clone()], "end");
        }
    }

    #[test]
    fn block_collections_end_with_their_last_part() {
        let text = "a:\n  b: 1\n  c:\n    - x\n    - y\n\n# comment\nd: |\n  one\n  two\n";
        let root = tree(text);
        assert_eq!(&text[root.get("a").unwrap().span.clone()], "b: 1\n  c:\n    - x\n    - y");
        let block = root.get("d").unwrap();
        assert_eq!(&text[block.place(text, 4, 3)], "two");
    }

    #[test]
    fn what_a_spec_may_not_have_is_said() {
        assert_eq!(codes("a: 1\nb: 2\na: 3\nb: 4\n"), ["duplicate-key", "duplicate-key"]);
        assert_eq!(codes("x: &x {a: 1}\ny:\n  <<: *x\n"), ["merge-key"]);
        assert_eq!(codes("a: 1\n---\nb: 2\n"), ["several-documents"]);
        assert_eq!(codes(""), ["empty"]);
        assert_eq!(codes("a: !thing 1\n"), ["tag"]);
        assert_eq!(codes("a: [1\n"), ["syntax"]);
        assert_eq!(codes("a: &a [*a]\n"), ["alias"]);
        assert_eq!(codes("a: \u{0}\n"), ["control-character"]);
        assert_eq!(codes("{[a]: 1}\n"), ["key"]);
        assert_eq!(codes("a: {rows: ${params.n}}\n"), ["syntax"]);
    }

    #[test]
    fn aliases_and_nesting_are_bounded() {
        let mut bomb = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
        for i in 1..30 {
            let refs = vec![format!("*a{}", i - 1); 10].join(", ");
            bomb.push_str(&format!("a{i}: &a{i} [{refs}]\n"));
        }
        assert_eq!(codes(&bomb), ["alias"]);
        assert_eq!(codes(&format!("a: {}", "[".repeat(1_000_000))), ["syntax"]);
        assert_eq!(codes(&format!("a: {}1{}", "[".repeat(100), "]".repeat(100))), ["too-deep"]);
        let deep: String = (0..100).map(|i| format!("{}a:\n", " ".repeat(i))).collect();
        assert_eq!(codes(&deep), ["too-deep"]);
        let shared = "a: &a {b: 1}\nc: [*a, *a]\n";
        let root = tree(shared);
        assert_eq!(
            root.get("c").unwrap().items().unwrap()[1].get("b").unwrap().meaning(),
            Some(Meaning::Int(1))
        );
    }
}
