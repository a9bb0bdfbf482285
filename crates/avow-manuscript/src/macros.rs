//! Macro files: the values of a project as LaTeX or Typst commands, and manuscripts filled in.

use std::fmt::Write as _;

pub use crate::read::{HEAD, definitions};
use crate::read::{bindings, plain};

/// The languages of macro files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    /// `\avow{KEY}`.
    Latex,
    /// `#avow("KEY")`.
    Typst,
}

impl Language {
    /// The language of a file by the end of its name.
    pub fn of(path: &str) -> Option<Language> {
        match path.rsplit_once('.')?.1 {
            "tex" | "sty" => Some(Language::Latex),
            "typ" => Some(Language::Typst),
            _ => None,
        }
    }
}

/// The text of a macro file: what it was made from, and the value of each key.
pub fn write(language: Language, about: &[String], values: &[(String, String)]) -> String {
    let mut out = String::new();
    let comment = match language {
        Language::Latex => "%",
        Language::Typst => "//",
    };
    // Writing to a string cannot fail.
    let _ = writeln!(out, "{comment} {HEAD}");
    for line in about {
        let _ = writeln!(out, "{comment} {}", line.replace('\n', " "));
    }
    match language {
        Language::Latex => {
            out.push_str(LATEX);
            for (key, value) in values {
                // A bare sign for per cent would begin a comment.
                let _ = writeln!(out, "\\avowdef{{{}}}{{{}}}", key.replace('%', "\\%"), latex(value));
            }
            out.push_str("\\endinput\n");
        }
        Language::Typst => {
            out.push_str("#let avow-values = (\n");
            for (key, value) in values {
                let _ = writeln!(out, "{}: {},", json(key), json(&typst(value)));
            }
            out.push_str(TYPST);
        }
    }
    out
}

/// The commands of the style. A key that the file lacks is printed in bold, and TeX warns of it.
const LATEX: &str = r"\makeatletter
\providecommand\avowdef[2]{\expandafter\gdef\csname avow@\detokenize{#1}\endcsname{#2}}
\providecommand\avow[1]{\ifcsname avow@\detokenize{#1}\endcsname\csname avow@\detokenize{#1}\endcsname\else
  \textbf{??}\@latex@warning{avow has no value for `\detokenize{#1}'}\fi}
\providecommand\avowas[2]{#2}
\makeatother
";

const TYPST: &str = r#")
#let avow(key) = avow-values.at(key)
#let avow-as(key, body) = body
"#;

/// What stands before the exponent of a power of ten in a printed value; a closing brace stands behind it.
const POWER: &str = " × 10^{";

/// A value with each power of ten written by `raised`, and what stands between them by `plain`: an interval has two.
fn with_powers(value: &str, plain: impl Fn(&str) -> String, raised: impl Fn(&str) -> String) -> String {
    let mut out = String::new();
    let mut rest = value;
    while let Some((before, after)) = rest.split_once(POWER) {
        let (exponent, behind) = after.split_once('}').unwrap_or((after, ""));
        out.push_str(&plain(before));
        out.push_str(&raised(exponent));
        rest = behind;
    }
    out.push_str(&plain(rest));
    out
}

/// A value as LaTeX writes it.
fn latex(value: &str) -> String {
    let raised = |exponent: &str| format!("\\ensuremath{{{{}}\\times10^{{{}}}}}", exponent.replace('−', "-"));
    let plain = |text: &str| {
        let mut out = String::new();
        for c in text.chars() {
            match c {
                '−' => out.push_str("\\ensuremath{-}"),
                '<' => out.push_str("\\ensuremath{<}"),
                '\u{2009}' => out.push_str("\\,"),
                '%' | '&' | '#' | '_' | '$' => {
                    out.push('\\');
                    out.push(c);
                }
                '\\' | '{' | '}' | '^' | '~' => {}
                c => out.push(c),
            }
        }
        out
    };
    with_powers(value, plain, raised)
}

/// A value as a Typst string; powers of ten with superscript digits.
fn typst(value: &str) -> String {
    const DIGITS: [char; 10] = ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'];
    let raised = |exponent: &str| {
        let digit = |c: char| c.to_digit(10).map_or('⁻', |digit| DIGITS[digit as usize]);
        format!(" × 10{}", exponent.chars().map(digit).collect::<String>())
    };
    with_powers(value, str::to_owned, raised)
}

fn json(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// A value of a macro file, as a reader sees it.
pub fn shown(value: &str) -> String {
    plain(value)
}

/// Every key that a manuscript of any format names, in the order of the text.
pub fn keys(flat: &crate::Flat) -> Vec<String> {
    flat.uses.iter().map(|used| used.key.clone()).collect()
}

/// A text with its `{{ avow KEY }}` replaced; `value` gives the text for a key, which begins at that byte of the text. A typed
/// value is kept as it is.
pub fn fill<E>(text: &str, mut value: impl FnMut(&str, usize) -> Result<String, E>) -> Result<String, E> {
    let mut out = String::new();
    let mut at = 0;
    for binding in bindings(text) {
        out.push_str(&text[at..binding.range.start]);
        match binding.typed {
            Some(typed) => out.push_str(&text[typed]),
            None => {
                let within = text[binding.range.clone()].find(binding.key).unwrap_or(0);
                out.push_str(&value(binding.key, binding.range.start + within)?);
            }
        }
        at = binding.range.end;
    }
    out.push_str(&text[at..]);
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_again() {
        let values: Vec<(String, String)> = [
            ("helps.estimate:.2e", "−1.25 × 10^{−4}"),
            ("helps.p", "< 0.001"),
            ("mean(train.a_b[wd=0.1]):.1%", "91.2\u{2009}%"),
            ("helps.interval", "[−0.01, 0.04]"),
            ("harms.interval", "[−1.5 × 10^{−6}, −2 × 10^{−6}]"),
        ]
        .map(|(k, v)| (k.to_owned(), v.to_owned()))
        .to_vec();
        for language in [Language::Latex, Language::Typst] {
            let text = write(language, &["experiment x".to_owned()], &values);
            let read = definitions(&text);
            assert_eq!(read.len(), values.len(), "{text}");
            for ((key, value), (read_key, read_value, _)) in values.iter().zip(&read) {
                assert_eq!(key, read_key);
                let shown = shown(read_value).replace("10⁻⁴", "10^{-4}").replace("10⁻⁶", "10^{-6}");
                assert!(crate::binding::same_text(&shown, value), "{shown} is not {value}");
            }
        }
    }

    #[test]
    fn a_text_is_filled_in() {
        let text =
            "a {{ avow helps.estimate:.2 }}, b {{< avow helps.p >}}, c {{ avow helps.n = 8 }}, {{ other }}";
        let filled = fill::<()>(text, |key, at| {
            assert!(text[at..].starts_with(key));
            Ok(format!("<{key}>"))
        });
        assert_eq!(filled, Ok("a <helps.estimate:.2>, b <helps.p>, c 8, {{ other }}".to_owned()));
    }
}
