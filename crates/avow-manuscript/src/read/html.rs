//! HTML: the text between tags, tokens by html5gum, which follows the WHATWG's specification.

use std::ops::Range;
use std::sync::LazyLock;

use html5gum::Tokenizer;
use html5gum::emitters::default::{DefaultEmitter, StartTag, Token};
use regex::Regex;

use super::macros;
use crate::text::{By, Flat, Span, Zone};

/// Reads the first file.
pub(super) fn read(flat: &mut Flat) {
    let length = flat.files[0].text.len();
    part(flat, 0, 0..length, &mut Elements::default());
}

/// The elements that are open, which Markdown hands from tag to tag.
#[derive(Default)]
pub(super) struct Elements(Vec<Open>);

/// Elements that print nothing.
const HIDDEN: [&str; 8] = ["script", "style", "head", "title", "template", "nav", "svg", "noscript"];
/// Elements that begin a new line.
const BLOCKS: [&str; 24] = [
    "p",
    "div",
    "li",
    "tr",
    "table",
    "caption",
    "figcaption",
    "figure",
    "section",
    "article",
    "blockquote",
    "ul",
    "ol",
    "dl",
    "dt",
    "dd",
    "br",
    "hr",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
];

fn zone(name: &str) -> Option<Zone> {
    Some(match name {
        "h1" | "h2" | "h3" | "h4" | "h5" | "h6" => Zone::Heading,
        "code" | "pre" | "kbd" | "samp" => Zone::Code,
        "cite" => Zone::Reference,
        "table" => Zone::Table,
        "caption" | "figcaption" => Zone::Caption,
        "sup" | "sub" => Zone::Script,
        _ => return None,
    })
}

/// An element that is open.
struct Open {
    name: String,
    from: usize,
    /// The key that its text is bound to, and where it begins in the file.
    key: Option<(String, usize)>,
}

/// Reads a part of a file.
pub(super) fn part(flat: &mut Flat, file: usize, range: Range<usize>, elements: &mut Elements) {
    let text = flat.files[file].text[range.clone()].to_owned();
    let mut emitter = DefaultEmitter::<usize>::new_with_span();
    emitter.naively_switch_states(true);
    let open = &mut elements.0;
    for token in Tokenizer::new_with_emitter(&text, emitter) {
        let Ok(token) = token;
        match token {
            Token::StartTag(tag) => start(flat, file, &range, open, &tag),
            Token::EndTag(tag) => {
                let name = String::from_utf8_lossy(&tag.name).into_owned();
                let at = range.start + tag.span.end.min(text.len());
                end(flat, file, open, &name, at);
            }
            Token::String(found) => {
                if !open.iter().any(|element| HIDDEN.contains(&element.name.as_str())) {
                    let span = found.span.start.min(text.len())..found.span.end.min(text.len());
                    string(flat, file, range.start, &text, span);
                }
            }
            Token::Comment(_) | Token::Doctype(_) | Token::Error(_) => {}
        }
    }
}

fn start(flat: &mut Flat, file: usize, range: &Range<usize>, open: &mut Vec<Open>, tag: &StartTag<usize>) {
    let name = String::from_utf8_lossy(&tag.name).into_owned();
    let at = Span { file, start: range.start + tag.span.start, end: range.start + tag.span.end };
    if BLOCKS.contains(&name.as_str()) {
        flat.instead(at, "\n\n");
    }
    let from = flat.len();
    match name.as_str() {
        "td" | "th" => flat.instead(at, " | "),
        "sup" => flat.instead(at, "^{"),
        "sub" => flat.instead(at, "_"),
        _ => {}
    }
    const VOID: [&str; 8] = ["br", "hr", "img", "meta", "link", "input", "col", "wbr"];
    if tag.self_closing || VOID.contains(&name.as_str()) {
        return;
    }
    let key =
        tag.attributes.get("data-avow".as_bytes()).map(|value| String::from_utf8_lossy(value).into_owned());
    // Elements that nobody closes would only make the list long.
    if key.is_some() || zone(&name).is_some() || HIDDEN.contains(&name.as_str()) {
        open.push(Open { name, from, key: key.map(|key| (key, at.start)) });
    } else if matches!(name.as_str(), "span" | "b" | "strong" | "em" | "i" | "data" | "output" | "var") {
        open.push(Open { name, from, key: None });
    }
}

fn end(flat: &mut Flat, file: usize, open: &mut Vec<Open>, name: &str, at: usize) {
    let Some(index) = open.iter().rposition(|element| element.name == name) else { return };
    let span = Span { file, start: at, end: at };
    if name == "sup" {
        flat.instead(span, "}");
    }
    for element in open.drain(index..) {
        if let Some((key, start)) = element.key {
            flat.bind(&key, By::Hand, element.from, Span { file, start, end: at });
        }
        if let Some(zone) = zone(&element.name) {
            flat.mark(zone, element.from);
        }
    }
    if BLOCKS.contains(&name) {
        flat.instead(span, "\n\n");
    }
}

static ENTITY: LazyLock<Regex> =
    LazyLock::new(|| Regex::new("&#?[A-Za-z0-9]{1,32};").expect("a pattern of this file is sound"));

/// Text with entities, each of which stands for its signs.
fn string(flat: &mut Flat, file: usize, base: usize, text: &str, span: Range<usize>) {
    let Some(part) = text.get(span.clone()) else { return };
    let mut at = 0;
    for entity in ENTITY.find_iter(part) {
        macros::with_bindings(flat, file, base + span.start + at..base + span.start + entity.start());
        let place =
            Span { file, start: base + span.start + entity.start(), end: base + span.start + entity.end() };
        flat.instead(place, &decoded(entity.as_str()));
        at = entity.end();
    }
    macros::with_bindings(flat, file, base + span.start + at..base + span.end);
}

/// What an entity stands for; itself where it is none.
pub(super) fn decoded(entity: &str) -> String {
    let mut text = String::new();
    for token in Tokenizer::new(entity) {
        let Ok(token) = token;
        if let Token::String(found) = token {
            text.push_str(&String::from_utf8_lossy(&found));
        }
    }
    text
}
