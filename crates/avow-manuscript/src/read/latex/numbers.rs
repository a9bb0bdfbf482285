//! The commands of siunitx, by their documentation: `\num`, `\qty` (once `\SI`), ranges and lists.

use super::{Input, Reader, argument, name, optional};

/// What a unit's commands print.
const UNITS: &[(&str, &str)] = &[
    ("percent", "%"),
    ("second", "s"),
    ("minute", "min"),
    ("hour", "h"),
    ("metre", "m"),
    ("meter", "m"),
    ("gram", "g"),
    ("byte", "B"),
    ("bit", "bit"),
    ("hertz", "Hz"),
    ("watt", "W"),
    ("joule", "J"),
    ("kelvin", "K"),
    ("volt", "V"),
    ("milli", "m"),
    ("micro", "µ"),
    ("nano", "n"),
    ("kilo", "k"),
    ("mega", "M"),
    ("giga", "G"),
    ("tera", "T"),
    ("centi", "c"),
    ("per", "/"),
    ("mebi", "Mi"),
    ("gibi", "Gi"),
    ("kibi", "Ki"),
    ("degree", "°"),
    ("degreeCelsius", "°C"),
];

impl Reader<'_> {
    /// Obeys a command of siunitx; `None` where it is none.
    pub(super) fn quantity(
        &mut self,
        input: Input<'_>,
        command: &str,
        at: usize,
        end: usize,
    ) -> Option<usize> {
        let (count, unit, joint) = match command {
            "num" | "ang" => (1, false, ""),
            "SI" | "qty" => (1, true, ""),
            "numrange" => (2, false, "–"),
            "SIrange" | "qtyrange" => (2, true, "–"),
            "numlist" => (1, false, ""),
            "SIlist" | "qtylist" => (1, true, ""),
            "si" | "unit" => (0, true, ""),
            _ => return None,
        };
        let mut end = optional(input.text, end).map_or(end, |(_, next)| next);
        for part in 0..count {
            let (found, next) = argument(input.text, end)?;
            if part > 0 {
                self.instead(input, end..end, joint);
            }
            let text = &input.text[found.clone()];
            let text = if command.ends_with("list") { text.replace(';', "; ") } else { normal(text) };
            // Macros may stand for the number.
            if text.contains('\\') {
                self.run(input.part(found));
            } else {
                self.instead(input, found, &text);
            }
            end = next;
        }
        if unit {
            let (found, next) = argument(input.text, end)?;
            let unit = printed(&input.text[found.clone()]);
            if count > 0 {
                self.instead(input, at..at, "\u{a0}");
            }
            self.instead(input, found, &unit);
            end = next;
        }
        Some(end)
    }
}

/// A number of siunitx as people write it: its comma is a decimal point, spaces group, `+-` and `\pm` are ±.
fn normal(text: &str) -> String {
    let text = text.replace("\\pm", "±").replace("+-", "±");
    let text: String = text.chars().filter(|c| !c.is_whitespace() && *c != '~').collect();
    let text = text.replace(',', ".").replace(['d', 'D'], "e");
    match text.strip_prefix(['e', 'E']) {
        // `\num{e-4}` is a power of ten alone.
        Some(power) => format!("10^{{{power}}}"),
        None => text,
    }
}

fn printed(unit: &str) -> String {
    let mut out = String::new();
    let mut at = 0;
    while let Some(c) = unit[at..].chars().next() {
        if c == '\\' {
            let (word, end) = name(unit, at);
            out.push_str(UNITS.iter().find(|(command, _)| *command == word).map_or(word, |(_, sign)| sign));
            at = end;
        } else {
            out.push(c);
            at += c.len_utf8();
        }
    }
    out.trim().to_owned()
}
