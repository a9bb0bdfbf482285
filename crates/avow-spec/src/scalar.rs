//! What a plain scalar means: the core schema of YAML 1.2 and nothing else.
//!
//! `no`, `yes`, `on`, `off` and `12:30` are text. Quoted scalars are text always.

/// The meaning of a scalar.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Meaning {
    /// Nothing, `~` or `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// An integer of 64 bits.
    Int(i64),
    /// An integer that needs more than 64 bits.
    Huge,
    /// A finite float.
    Float(f64),
    /// `.inf`, `.nan`, or a float too large for 64 bits.
    NotFinite,
    /// Anything else.
    Text,
}

/// The meaning of a plain scalar.
pub fn meaning(text: &str) -> Meaning {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => Meaning::Null,
        "true" | "True" | "TRUE" => Meaning::Bool(true),
        "false" | "False" | "FALSE" => Meaning::Bool(false),
        _ if integer(text) => text.parse().map_or(Meaning::Huge, Meaning::Int),
        _ if text.starts_with("0x") => radix(&text[2..], 16),
        _ if text.starts_with("0o") => radix(&text[2..], 8),
        _ if special(text) => Meaning::NotFinite,
        _ if float(text) => match text.parse::<f64>() {
            Ok(x) if x.is_finite() => Meaning::Float(if x == 0.0 { 0.0 } else { x }),
            _ => Meaning::NotFinite,
        },
        _ => Meaning::Text,
    }
}

fn unsigned(text: &str) -> &str {
    text.strip_prefix(['+', '-']).unwrap_or(text)
}

fn digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
}

fn integer(text: &str) -> bool {
    digits(unsigned(text))
}

fn radix(text: &str, radix: u32) -> Meaning {
    if text.is_empty() || !text.chars().all(|c| c.is_digit(radix)) {
        return Meaning::Text;
    }
    i64::from_str_radix(text, radix).map_or(Meaning::Huge, Meaning::Int)
}

fn special(text: &str) -> bool {
    matches!(unsigned(text), ".inf" | ".Inf" | ".INF") || matches!(text, ".nan" | ".NaN" | ".NAN")
}

/// `[-+]? ( \. [0-9]+ | [0-9]+ ( \. [0-9]* )? ) ( [eE] [-+]? [0-9]+ )?`
fn float(text: &str) -> bool {
    let text = unsigned(text);
    let (mantissa, exponent) = match text.find(['e', 'E']) {
        Some(at) => (&text[..at], Some(&text[at + 1..])),
        None => (text, None),
    };
    let whole = match mantissa.split_once('.') {
        Some(("", fraction)) => digits(fraction),
        Some((whole, fraction)) => digits(whole) && (fraction.is_empty() || digits(fraction)),
        None => digits(mantissa),
    };
    whole && exponent.is_none_or(|e| digits(unsigned(e)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_core_schema_of_yaml_1_2_is_read() {
        for text in ["no", "yes", "on", "off", "y", "12:30", "1_000", "0b1", "1.2.3", "e5", ".", "-", "+.e1"]
        {
            assert_eq!(meaning(text), Meaning::Text, "{text}");
        }
        assert_eq!(meaning("True"), Meaning::Bool(true));
        assert_eq!(meaning("~"), Meaning::Null);
        assert_eq!(meaning("007"), Meaning::Int(7));
        assert_eq!(meaning("0o17"), Meaning::Int(15));
        assert_eq!(meaning("0xff"), Meaning::Int(255));
        assert_eq!(meaning("-12"), Meaning::Int(-12));
        assert_eq!(meaning("1e-4"), Meaning::Float(1e-4));
        assert_eq!(meaning(".5"), Meaning::Float(0.5));
        assert_eq!(meaning("-0.0"), Meaning::Float(0.0));
        assert_eq!(meaning("9223372036854775808"), Meaning::Huge);
        assert_eq!(meaning("1e999"), Meaning::NotFinite);
        assert_eq!(meaning("-.inf"), Meaning::NotFinite);
    }
}
