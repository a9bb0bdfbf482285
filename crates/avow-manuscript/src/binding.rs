//! Keys and formats: what `helps.estimate:.3` is printed as.
//!
//! A format follows the last colon outside brackets: `.3` decimals, `.3s` significant digits, `.1%` per cent, `.2e`
//! powers of ten, a `+` in front for a sign also where it is positive, and a unit behind a space: `:.2 ms`. Without
//! one a value has four significant digits, a p-value as many as it needs and `< 0.001` below, a count all.

use crate::class::Resolved;

/// How a value is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Format<'k> {
    style: Style,
    plus: bool,
    unit: Option<&'k str>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Style {
    Default,
    Decimals(usize),
    Significant(usize),
    Percent(usize),
    Power(usize),
}

/// A key and its format, as written.
pub fn split(text: &str) -> (&str, Option<&str>) {
    let from = text.rfind([']', ')']).map_or(0, |at| at + 1);
    match text[from..].find(':') {
        Some(at) => (text[..from + at].trim(), Some(text[from + at + 1..].trim_end())),
        None => (text.trim(), None),
    }
}

/// A format that is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadFormat(pub String);

impl std::fmt::Display for BadFormat {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "`{}` is no format; write `.3`, `.3s`, `.1%` or `.2e`, then a unit behind a space", self.0)
    }
}

impl std::error::Error for BadFormat {}

impl<'k> Format<'k> {
    /// Reads a format.
    pub fn parse(text: Option<&'k str>) -> Result<Format<'k>, BadFormat> {
        let text = text.unwrap_or_default();
        let bad = || BadFormat(text.to_owned());
        let (number, unit) =
            text.split_once(' ').map_or((text, None), |(number, unit)| (number, Some(unit.trim())));
        let (plus, number) = number.strip_prefix('+').map_or((false, number), |rest| (true, rest));
        let style = match number.strip_prefix('.') {
            None if number.is_empty() => Style::Default,
            None => return Err(bad()),
            Some(rest) => {
                let digits = rest.trim_end_matches(['s', '%', 'e']);
                let count: usize = digits.parse().map_err(|_| bad())?;
                let kind = &rest[digits.len()..];
                if count > 17 || (kind == "s" && count == 0) {
                    return Err(bad());
                }
                match kind {
                    "" => Style::Decimals(count),
                    "s" => Style::Significant(count),
                    "%" => Style::Percent(count),
                    "e" => Style::Power(count),
                    _ => return Err(bad()),
                }
            }
        };
        Ok(Format { style, plus, unit: unit.filter(|unit| !unit.is_empty()) })
    }
}

/// What a key is printed as; words and hidden values have no format.
pub fn render(resolved: &Resolved, key: &str, format: Option<&str>) -> Result<String, BadFormat> {
    let format = Format::parse(format)?;
    let unit = format.unit.map(|unit| format!("\u{2009}{unit}")).unwrap_or_default();
    Ok(match resolved {
        Resolved::Values(values) => match values.as_slice() {
            [value] => number(*value, what(key), format) + &unit,
            [low, high] => {
                format!(
                    "[{}, {}]{unit}",
                    number(*low, What::Value, format),
                    number(*high, What::Value, format)
                )
            }
            _ => String::new(),
        },
        Resolved::Words(words) => words.clone(),
        Resolved::Hidden { .. } | Resolved::Unknown => String::new(),
    })
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum What {
    Value,
    P,
}

/// What a key's last part says about its value.
fn what(key: &str) -> What {
    match key.rsplit('.').next() {
        Some("p" | "q" | "q-corrected") => What::P,
        _ => What::Value,
    }
}

fn number(value: f64, what: What, format: Format<'_>) -> String {
    if !value.is_finite() {
        return format!("{value}");
    }
    let text = match format.style {
        Style::Default if what == What::P && value < 0.001 => return "< 0.001".to_owned(),
        Style::Default if what == What::P => significant(value, 2),
        Style::Default => shortest(value),
        Style::Decimals(places) if what == What::P && value < 0.5 * 10f64.powi(-(places as i32)) => {
            return format!("< {:.places$}", 10f64.powi(-(places as i32)));
        }
        Style::Decimals(places) => format!("{value:.places$}"),
        Style::Significant(digits) => significant(value, digits),
        Style::Percent(places) => format!("{:.places$}\u{2009}%", value * 100.0),
        Style::Power(places) => power(value, places),
    };
    // A zero has no sign.
    let text = if text.starts_with('-') && !text.contains(|c: char| ('1'..='9').contains(&c)) {
        text[1..].to_owned()
    } else {
        text
    };
    match text.strip_prefix('-') {
        Some(rest) => format!("−{rest}"),
        None if format.plus => format!("+{text}"),
        None => text,
    }
}

/// Four significant digits at most, and no zeros behind them; whole numbers whole.
fn shortest(value: f64) -> String {
    if value.fract() == 0.0 && value.abs() < 1e15 {
        return format!("{value}");
    }
    let text = significant(value, 4);
    match text.split_once('.') {
        Some((_, fraction)) if !fraction.contains('e') && !fraction.contains('×') => {
            text.trim_end_matches('0').trim_end_matches('.').to_owned()
        }
        _ => text,
    }
}

fn significant(value: f64, digits: usize) -> String {
    if value == 0.0 {
        return format!("{:.*}", digits - 1, 0.0);
    }
    // The exponent after rounding: 0.9996 at three digits is 1.00.
    let rounded = format!("{value:.*e}", digits - 1);
    let exponent: i32 = rounded.rsplit('e').next().and_then(|e| e.parse().ok()).unwrap_or(0);
    if !(-5..15).contains(&exponent) {
        return power(value, digits - 1);
    }
    let places = (digits as i32 - 1 - exponent).max(0) as usize;
    // Digits before the point beyond those asked for are kept: 12345 has no shorter form.
    format!("{value:.places$}")
}

fn power(value: f64, places: usize) -> String {
    let text = format!("{value:.places$e}");
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    format!("{mantissa} × 10^{{{}}}", exponent.replace('-', "−"))
}

/// Equal for a reader: signs for minus, ways to raise a power and widths of spaces do not count.
pub fn same_text(a: &str, b: &str) -> bool {
    const RAISED: &str = "⁰¹²³⁴⁵⁶⁷⁸⁹";
    let sign = |c: char| match RAISED.chars().position(|raised| raised == c) {
        Some(digit) => char::from(b'0' + digit as u8),
        None if matches!(c, '−' | '\u{2010}' | '–' | '⁻') => '-',
        None => c,
    };
    let plain = |text: &str| -> String {
        text.chars().filter(|c| !c.is_whitespace() && !matches!(c, '{' | '}' | '^')).map(sign).collect()
    };
    plain(a) == plain(b)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(value: f64, key: &str) -> String {
        let (name, format) = split(key);
        render(&Resolved::Values(vec![value]), name, format).expect("a format")
    }

    #[test]
    fn formats() {
        let cases = [
            (0.0245, "a.estimate", "0.0245"),
            (0.024512, "a.estimate", "0.02451"),
            (8.0, "a.n", "8"),
            (0.5, "a.estimate:.2", "0.50"),
            (0.9996, "a.estimate:.3s", "1.00"),
            (-0.0004, "a.estimate:.2", "0.00"),
            (-0.25, "a.estimate:.1", "−0.2"),
            (0.5, "a.estimate:+.2", "+0.50"),
            (0.9123, "a.estimate:.1%", "91.2\u{2009}%"),
            (1.25e-4, "a.estimate:.2e", "1.25 × 10^{−4}"),
            (12.5, "a.estimate:.1 ms", "12.5\u{2009}ms"),
            (0.0078125, "a.p", "0.0078"),
            (1e-6, "a.p", "< 0.001"),
            (1e-6, "a.p:.2", "< 0.01"),
            (1e-9, "a.estimate", "1.000 × 10^{−9}"),
            (0.1, "m.x[wd=0.1]", "0.1"),
        ];
        for (value, key, expected) in cases {
            assert_eq!(shown(value, key), expected, "{key}");
        }
        let interval = Resolved::Values(vec![-0.01, 0.043]);
        assert_eq!(render(&interval, "a.interval", Some(".2")), Ok("[−0.01, 0.04]".to_owned()));
        for bad in [".", "x", ".3q", ".99", ".0s", "3"] {
            assert!(Format::parse(Some(bad)).is_err(), "{bad}");
        }
        assert_eq!(split("train.acc[model=a:b].x:.2"), ("train.acc[model=a:b].x", Some(".2")));
        assert!(same_text("-0.5 ", "−0.5"));
    }
}
