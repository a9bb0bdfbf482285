//! How the point of a member is written between brackets, and read again: `seed=3,term="a,b"`.
//!
//! A value that holds a comma, a bracket, a quote or a backslash, or that begins or ends with a space, stands in double quotes, in
//! which a quote and a backslash follow a backslash. Every other value stands as it is.

use std::borrow::Cow;

/// A value as it stands between brackets.
pub fn written(value: &str) -> Cow<'_, str> {
    let special = |c: char| matches!(c, ',' | '[' | ']' | '"' | '\\') || c.is_control();
    if !value.contains(special) && value.trim() == value && !value.is_empty() {
        return Cow::Borrowed(value);
    }
    let mut quoted = String::with_capacity(value.len() + 2);
    quoted.push('"');
    for character in value.chars() {
        if matches!(character, '"' | '\\') {
            quoted.push('\\');
        }
        quoted.push(character);
    }
    quoted.push('"');
    Cow::Owned(quoted)
}

/// Why a text between brackets is no point.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BadPoint {
    /// A quote that is not closed.
    Unmatched,
    /// Something that is not `name=value`.
    NotAPair(String),
}

/// The names and values of `name=value,…`, which is what [`written`] values make. Empty items are passed over.
///
/// # Errors
/// Where a quote is not closed, or an item has no `=` or no name.
pub fn pairs(inner: &str) -> Result<Vec<(String, String)>, BadPoint> {
    let (mut items, mut item) = (Vec::new(), Item::default());
    let (mut quoted, mut escaped) = (false, false);
    for character in inner.chars() {
        match character {
            _ if escaped => {
                item.push(character, true);
                escaped = false;
            }
            '\\' if quoted => escaped = true,
            '"' => {
                quoted = !quoted;
                item.quoted = true;
            }
            ',' if !quoted => items.push(std::mem::take(&mut item)),
            other => item.push(other, quoted),
        }
    }
    if quoted {
        return Err(BadPoint::Unmatched);
    }
    items.push(item);
    items.into_iter().filter(|item| !item.is_empty()).map(Item::pair).collect()
}

/// One item on the way: spaces around it are dropped, but not those in quotes.
#[derive(Default)]
struct Item {
    text: String,
    /// How much of the text stands before the end of the last quoted character.
    kept: usize,
    quoted: bool,
}

impl Item {
    fn push(&mut self, character: char, quoted: bool) {
        if self.text.is_empty() && character == ' ' && !quoted {
            return;
        }
        self.text.push(character);
        if quoted {
            self.kept = self.text.len();
        }
    }

    fn is_empty(&self) -> bool {
        self.text.is_empty() && !self.quoted
    }

    fn pair(self) -> Result<(String, String), BadPoint> {
        let end = self.text.trim_end_matches(' ').len().max(self.kept);
        let text = &self.text[..end];
        match text.split_once('=') {
            Some((name, value)) if !name.trim().is_empty() => {
                let value = if self.quoted { value } else { value.trim_start_matches(' ') };
                Ok((name.trim().to_owned(), value.to_owned()))
            }
            _ => Err(BadPoint::NotAPair(text.to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_that_is_written_is_read_again() {
        for value in [
            "3",
            "a=b",
            "a,b",
            "x]y",
            "[",
            "\"",
            "\\",
            "a \"b\", c]",
            " lead",
            "trail ",
            "",
            "=",
            ",,",
            "\\\"",
            "é,ü",
            "a=b,c=d",
            "tab\there",
            "two  spaces",
        ] {
            let text = format!("one={},two={},seed=3", written(value), written(value));
            let want = [("one", value), ("two", value), ("seed", "3")];
            let want: Vec<(String, String)> = want.map(|(n, v)| (n.to_owned(), v.to_owned())).to_vec();
            assert_eq!(pairs(&text).unwrap(), want, "{text}");
        }
        assert_eq!(pairs(" a = b , c=\"d, e\" ").unwrap()[1].1, "d, e");
        assert_eq!(pairs("").unwrap(), []);
        assert_eq!(pairs("a=\"b").unwrap_err(), BadPoint::Unmatched);
        assert_eq!(pairs("a").unwrap_err(), BadPoint::NotAPair("a".to_owned()));
        assert_eq!(pairs("=a").unwrap_err(), BadPoint::NotAPair("=a".to_owned()));
    }

    #[test]
    fn usual_values_stand_as_they_are() {
        for value in ["0.1", "true", "gpt-2", "a=b", "a b", "https://example.org/x?y=1"] {
            assert_eq!(written(value), value);
        }
    }
}
