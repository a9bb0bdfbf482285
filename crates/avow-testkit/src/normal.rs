//! Output without what varies from run to run, so that the rest can be a snapshot.
//!
//! | in the output | becomes |
//! |---|---|
//! | 64 hexadecimal digits | `[DIGEST]` |
//! | 32 hexadecimal digits | `[ATTEMPT]` |
//! | exactly 8 hexadecimal digits, as a short digest has | `[SHORT]` |
//! | `2026-11-30T09:41:24.5Z`, `2026-11-30 09:41:24`, `09:41:24` | `[TIME]` |
//! | `12 ms`, `0.4s`, `1m 20s`, `1h 2m` | `[DURATION]` |
//! | `20261130-094124-3f2a`, a run's name | `[RUN]` |
//! | `12.3 KiB`, which depends on what the machine says of itself | `[SIZE]` |
//!
//! Recognised by form alone, so a number of eight digits is taken for a short digest. Columns that were
//! aligned to such text are no longer; [`squeezed`] helps there.

/// The text with digests, times, durations and run names replaced.
pub fn normalised(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    while let Some(first) = text[at..].chars().next() {
        let free = !text[..at].chars().next_back().is_some_and(char::is_alphanumeric);
        match if free { recognised(&text[at..]) } else { None } {
            Some((length, name)) => {
                out.push_str(name);
                at += length;
            }
            None => {
                out.push(first);
                at += first.len_utf8();
            }
        }
    }
    out
}

/// The text with every run of spaces inside a line as one, and none at a line's end.
pub fn squeezed(text: &str) -> String {
    let line = |line: &str| {
        let indent = line.len() - line.trim_start_matches(' ').len();
        format!("{}{}\n", &line[..indent], line.split_whitespace().collect::<Vec<_>>().join(" "))
    };
    text.lines().map(line).collect()
}

/// What begins here, if it is something that varies: its length and its name. It must end where a word ends.
fn recognised(text: &str) -> Option<(usize, &'static str)> {
    type Form = fn(&str) -> Option<usize>;
    let forms: [(Form, &'static str); 7] = [
        (run_name, "[RUN]"),
        (time, "[TIME]"),
        (|text| digits(text, 64), "[DIGEST]"),
        (|text| digits(text, 32), "[ATTEMPT]"),
        // Before durations: `1234567d` is a digest, not a number of days.
        (|text| digits(text, 8), "[SHORT]"),
        (durations, "[DURATION]"),
        (size, "[SIZE]"),
    ];
    forms.iter().find_map(|(form, name)| form(text).map(|length| (length, *name)))
}

/// Exactly this many lower-case hexadecimal digits and then no letter or digit.
fn digits(text: &str, count: usize) -> Option<usize> {
    let hex = text.bytes().take_while(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f')).count();
    (hex == count && ends_word(text, count)).then_some(count)
}

fn ends_word(text: &str, at: usize) -> bool {
    !text[at..].chars().next().is_some_and(char::is_alphanumeric)
}

/// Whether the text begins like the pattern: `0` is a digit, `x` a hexadecimal one.
fn like(text: &str, pattern: &str) -> Option<usize> {
    let fits = |(have, want): (u8, u8)| match want {
        b'0' => have.is_ascii_digit(),
        b'x' => matches!(have, b'0'..=b'9' | b'a'..=b'f'),
        other => have == other,
    };
    (text.len() >= pattern.len() && text.bytes().zip(pattern.bytes()).all(fits)).then_some(pattern.len())
}

fn run_name(text: &str) -> Option<usize> {
    like(text, "00000000-000000-xxxx").filter(|length| ends_word(text, *length))
}

fn time(text: &str) -> Option<usize> {
    let full = like(text, "0000-00-00T00:00:00").or_else(|| like(text, "0000-00-00 00:00:00"));
    let mut at = full.or_else(|| like(text, "00:00:00"))?;
    if text[at..].starts_with('.') {
        at += 1 + text[at + 1..].bytes().take_while(u8::is_ascii_digit).count();
    }
    if full.is_some() {
        let rest = &text[at..];
        at += if rest.starts_with('Z') {
            1
        } else {
            like(rest, "+00:00").or_else(|| like(rest, "-00:00")).unwrap_or(0)
        };
    }
    ends_word(text, at).then_some(at)
}

/// Kibibytes and more; a number of bytes is exact.
fn size(text: &str) -> Option<usize> {
    let number = text.bytes().take_while(|b| b.is_ascii_digit() || *b == b'.').count();
    let unit = ["KiB", "MiB", "GiB", "TiB"]
        .into_iter()
        .find(|unit| text[number..].strip_prefix(' ').is_some_and(|rest| rest.starts_with(unit)));
    let end = number + 1 + unit?.len();
    (number > 0 && ends_word(text, end)).then_some(end)
}

/// One duration, or several with a space between: `1m 20s`.
fn durations(text: &str) -> Option<usize> {
    let mut end = duration(text)?;
    while let Some(length) = text[end..].strip_prefix(' ').and_then(duration) {
        end += 1 + length;
    }
    Some(end)
}

fn duration(text: &str) -> Option<usize> {
    let whole = text.bytes().take_while(u8::is_ascii_digit).count();
    if whole == 0 {
        return None;
    }
    let mut at = whole;
    if let Some(rest) = text[at..].strip_prefix('.') {
        at += 1 + rest.bytes().take_while(u8::is_ascii_digit).count();
    }
    let spaced = ["ms", "us", "µs", "ns", "min", "s"].map(|unit| format!(" {unit}"));
    let close = ["ms", "us", "µs", "ns", "min", "s", "m", "h", "d"].map(str::to_owned);
    let unit = close
        .iter()
        .chain(&spaced)
        .find(|unit| text[at..].starts_with(unit.as_str()) && ends_word(text, at + unit.len()))?;
    Some(at + unit.len())
}

#[cfg(test)]
mod tests {
    use super::{normalised, squeezed};

    #[test]
    fn what_varies_is_replaced() {
        let hex = "0123456789abcdef";
        for (text, expected) in [
            (format!("blob:{}", hex.repeat(4)), "blob:[DIGEST]"),
            (hex.repeat(2), "[ATTEMPT]"),
            ("changed: 3f2a91bc -> 91bc3f2a".to_owned(), "changed: [SHORT] -> [SHORT]"),
            ("3f2a91bc…".to_owned(), "[SHORT]…"),
            ("registered as 1234567d (".to_owned(), "registered as [SHORT] ("),
            ("at 2026-11-30T09:41:24.123Z.".to_owned(), "at [TIME]."),
            ("2026-11-30 09:41:24+01:00 09:41:24".to_owned(), "[TIME] [TIME]"),
            (
                "took 1m 20s, then 12 ms and 0.4s".to_owned(),
                "took [DURATION], then [DURATION] and [DURATION]",
            ),
            ("run 20261130-094124-3f2a done".to_owned(), "run [RUN] done"),
            ("é 1.5 s".to_owned(), "é [DURATION]"),
        ] {
            assert_eq!(normalised(&text), expected);
        }
    }

    #[test]
    fn everything_else_stays() {
        for text in [
            "8 seeds, 3 members, n = 12",
            "train[seed=3,width=64] 0.05",
            "abc 1234567 123456789 deadbeefs x3f2a91bc",
            "2 samples, 5 minutes of talk, 3 sd",
            "9:41 a 09:41",
            "",
        ] {
            assert_eq!(normalised(text), text);
        }
    }

    #[test]
    fn columns_are_squeezed() {
        assert_eq!(squeezed("  a    b  \n\nc"), "  a b\n\nc\n");
    }
}
