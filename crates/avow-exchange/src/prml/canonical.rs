//! The canonical text of a manifest: YAML in block style, keys sorted, one line feed at the end.
//!
//! The format fixes its bytes by what the block emitter of PyYAML writes for sorted keys, unlimited width and Unicode
//! left as it is; this is that emitter for values without line breaks. A text is plain where YAML 1.1 reads it back as
//! text, else in single quotes, and in double quotes where it holds what cannot be printed.

use std::sync::LazyLock;

use regex::Regex;

use super::value::Node;

/// The longest key that stands on one line with its value.
pub const LONGEST_KEY: usize = 127;

/// The canonical text of a mapping.
pub fn text(map: &Node) -> String {
    let mut out = String::new();
    block(map, 0, &mut out);
    if !out.ends_with('\n') {
        out.push('\n');
    }
    out
}

/// Writes a collection that begins on a line of its own, or a scalar.
fn block(node: &Node, indent: usize, out: &mut String) {
    match node {
        Node::Map(map) if !map.is_empty() => {
            for (position, (key, value)) in map.iter().enumerate() {
                // The first entry of an item stands behind its dash.
                if position > 0 || out.ends_with('\n') {
                    out.push_str(&" ".repeat(indent));
                }
                out.push_str(&scalar_text(key));
                out.push(':');
                under(value, indent, out);
            }
        }
        Node::List(items) if !items.is_empty() => {
            for (position, item) in items.iter().enumerate() {
                if position > 0 || out.ends_with('\n') {
                    out.push_str(&" ".repeat(indent));
                }
                out.push('-');
                out.push(' ');
                if is_block(item) {
                    block(item, indent + 2, out);
                } else {
                    out.push_str(&scalar(item));
                    out.push('\n');
                }
            }
        }
        other => {
            out.push_str(&scalar(other));
            out.push('\n');
        }
    }
}

/// Writes the value of a key. Lists are not indented below their key, mappings are.
fn under(value: &Node, indent: usize, out: &mut String) {
    if !is_block(value) {
        out.push(' ');
        out.push_str(&scalar(value));
        out.push('\n');
        return;
    }
    out.push('\n');
    block(value, if matches!(value, Node::Map(_)) { indent + 2 } else { indent }, out);
}

fn is_block(node: &Node) -> bool {
    match node {
        Node::Map(map) => !map.is_empty(),
        Node::List(items) => !items.is_empty(),
        _ => false,
    }
}

fn scalar(node: &Node) -> String {
    match node {
        Node::Null => "null".to_owned(),
        Node::Bool(truth) => truth.to_string(),
        Node::Int(number) => number.to_string(),
        Node::Float(number) => float(*number),
        Node::Text(text) => scalar_text(text),
        Node::List(_) => "[]".to_owned(),
        Node::Map(_) => "{}".to_owned(),
    }
}

/// A number as Python's `repr` spells it, with a point before an exponent.
fn float(x: f64) -> String {
    if x.is_nan() {
        return ".nan".to_owned();
    }
    if x.is_infinite() {
        return if x > 0.0 { ".inf" } else { "-.inf" }.to_owned();
    }
    // Shortest digits that read back, and where the point is.
    let spelled = format!("{x:e}");
    let (mantissa, exponent) = spelled.split_once('e').unwrap_or((&spelled, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..16).contains(&exponent) {
        let plain = format!("{x}");
        return if plain.contains('.') { plain } else { format!("{plain}.0") };
    }
    let mantissa = if mantissa.contains('.') { mantissa.to_owned() } else { format!("{mantissa}.0") };
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{mantissa}e{sign}{:02}", exponent.unsigned_abs())
}

fn scalar_text(text: &str) -> String {
    let looks = Looks::of(text);
    if looks.unprintable {
        return double_quoted(text);
    }
    if text.is_empty() || looks.spaced || looks.indicators || resolves(text) {
        return format!("'{}'", text.replace('\'', "''"));
    }
    text.to_owned()
}

/// What of a text forbids to write it plainly.
#[derive(Default)]
struct Looks {
    /// Characters that mean something in a block.
    indicators: bool,
    /// A space at either end.
    spaced: bool,
    /// Characters that YAML does not print.
    unprintable: bool,
}

impl Looks {
    fn of(text: &str) -> Looks {
        let mut looks = Looks {
            indicators: text.starts_with("---") || text.starts_with("..."),
            spaced: text.starts_with(' ') || text.ends_with(' '),
            unprintable: !text.chars().all(is_printable),
        };
        let chars: Vec<char> = text.chars().collect();
        let space_after = |at: usize| chars.get(at + 1).is_none_or(|next| *next == ' ');
        for (at, c) in chars.iter().enumerate() {
            looks.indicators |= match (at, c) {
                (
                    0,
                    '#' | ',' | '[' | ']' | '{' | '}' | '&' | '*' | '!' | '|' | '>' | '\'' | '"' | '%' | '@'
                    | '`',
                ) => true,
                (0, '?' | ':' | '-') => space_after(0),
                (_, ':') => space_after(at),
                (_, '#') => chars[at - 1] == ' ',
                _ => false,
            };
        }
        looks
    }
}

fn is_printable(c: char) -> bool {
    matches!(c, '\x20'..='\x7e' | '\u{a0}'..='\u{d7ff}' | '\u{e000}'..='\u{fffd}') && c != '\u{feff}'
        || ('\u{10000}'..'\u{10ffff}').contains(&c)
}

fn double_quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        let plain = matches!(c, '\x20'..='\x7e' | '\u{a0}'..='\u{d7ff}' | '\u{e000}'..='\u{fffd}');
        match c {
            '"' | '\\' => {
                out.push('\\');
                out.push(c);
            }
            c if plain && c != '\u{feff}' => out.push(c),
            c if u32::from(c) <= 0xff => out.push_str(&format!("\\x{:02X}", u32::from(c))),
            c if u32::from(c) <= 0xffff => out.push_str(&format!("\\u{:04X}", u32::from(c))),
            c => out.push_str(&format!("\\U{:08X}", u32::from(c))),
        }
    }
    out.push('"');
    out
}

/// Whether YAML 1.1 reads an unquoted text as something else than text (its types for bool, float, int, merge, null,
/// timestamp and value).
pub fn resolves(text: &str) -> bool {
    static OTHER: LazyLock<Regex> = LazyLock::new(|| {
        let kinds = [
            "yes|Yes|YES|no|No|NO|true|True|TRUE|false|False|FALSE|on|On|ON|off|Off|OFF",
            r"[-+]?(?:[0-9][0-9_]*)\.[0-9_]*(?:[eE][-+][0-9]+)?",
            r"\.[0-9][0-9_]*(?:[eE][-+][0-9]+)?",
            r"[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+\.[0-9_]*",
            r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)",
            r"[-+]?0b[0-1_]+|[-+]?0[0-7_]+|[-+]?(?:0|[1-9][0-9_]*)|[-+]?0x[0-9a-fA-F_]+",
            r"[-+]?[1-9][0-9_]*(?::[0-5]?[0-9])+",
            "<<|=|~|null|Null|NULL|",
            r"[0-9]{4}-[0-9]{2}-[0-9]{2}",
            r"[0-9]{4}-[0-9][0-9]?-[0-9][0-9]?(?:[Tt]|[ \t]+)[0-9][0-9]?:[0-9]{2}:[0-9]{2}(?:\.[0-9]*)?(?:[ \t]*(?:Z|[-+][0-9][0-9]?(?::[0-9][0-9])?))?",
        ];
        Regex::new(&format!("^(?:{})$", kinds.join("|"))).expect("the types of YAML 1.1 are an expression")
    });
    OTHER.is_match(text)
}
