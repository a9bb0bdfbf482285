//! Numbers that people write with a unit: sizes, durations, shares, exact decimals.
//!
//! Each reader gives `None` for what it does not understand; the caller knows the place and says what was
//! expected.

/// Bytes: `500MB` (powers of ten), `2GiB` (powers of two), `1.5GB`, or a plain number of bytes.
pub fn size(text: &str) -> Option<u64> {
    let (number, unit) = split(text)?;
    let factor: u64 = match unit {
        "" | "B" => 1,
        "kB" | "KB" => 1_000,
        "MB" => 1_000_000,
        "GB" => 1_000_000_000,
        "TB" => 1_000_000_000_000,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        "GiB" => 1 << 30,
        "TiB" => 1 << 40,
        _ => return None,
    };
    scaled(number, factor)
}

/// Milliseconds: `90s`, `30m`, `1h30m`, `250ms`, `2d`. A plain number is refused: of what?
pub fn duration(text: &str) -> Option<u64> {
    let mut rest = text.trim();
    let mut total: u64 = 0;
    let mut last = u64::MAX;
    while !rest.is_empty() {
        let number = rest.find(|c: char| !(c.is_ascii_digit() || c == '.')).filter(|at| *at > 0)?;
        let tail = &rest[number..];
        let end = tail.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(tail.len());
        let factor: u64 = match &tail[..end] {
            "ms" => 1,
            "s" => 1_000,
            "m" | "min" => 60_000,
            "h" => 3_600_000,
            "d" => 86_400_000,
            _ => return None,
        };
        // Larger units first, each once: `30m1h` is a slip.
        if factor >= last {
            return None;
        }
        last = factor;
        total = total.checked_add(scaled(&rest[..number], factor)?)?;
        rest = tail[end..].trim_start();
    }
    (total > 0).then_some(total)
}

/// A share between 0 and 1 as an exact decimal: `10%` and `0.1` are both `0.1`.
pub fn share(text: &str) -> Option<String> {
    let text = text.trim();
    let (digits, places) = match text.strip_suffix('%') {
        Some(number) => decimal(number.trim_end()).map(|(digits, places)| (digits, places + 2))?,
        None => decimal(text)?,
    };
    let one = 10_u128.checked_pow(places)?;
    (digits <= one).then(|| spell(digits, places))
}

/// The digits of a non-negative exact decimal, and how many of them stand behind the point. Exponents are
/// read too, because `1e-3` and `0.001` are one value.
pub fn decimal(text: &str) -> Option<(u128, u32)> {
    let (mantissa, exponent) = match text.find(['e', 'E']) {
        Some(at) => (&text[..at], text[at + 1..].parse::<i32>().ok()?),
        None => (text, 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let all_digits = |t: &str| t.bytes().all(|b| b.is_ascii_digit());
    if whole.len() + fraction.len() == 0 || whole.len() + fraction.len() > 30 || !all_digits(whole) {
        return None;
    }
    if !all_digits(fraction) || exponent.abs() > 30 {
        return None;
    }
    let digits: u128 = format!("{whole}{fraction}").parse().ok()?;
    let places = i32::try_from(fraction.len()).ok()? - exponent;
    if places < 0 {
        return Some((digits.checked_mul(10_u128.checked_pow(places.unsigned_abs())?)?, 0));
    }
    Some((digits, places.unsigned_abs()))
}

/// The one spelling of an exact decimal.
pub fn spell(digits: u128, places: u32) -> String {
    let places = places as usize;
    let text = format!("{digits:0>width$}", width = places + 1);
    let (whole, fraction) = text.split_at(text.len() - places);
    match fraction.trim_end_matches('0') {
        "" => whole.to_owned(),
        fraction => format!("{whole}.{fraction}"),
    }
}

/// A duration in the shortest form [`duration`] reads.
pub fn spell_duration(mut milliseconds: u64) -> String {
    let mut text = String::new();
    for (unit, factor) in [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)] {
        if milliseconds >= factor {
            text.push_str(&format!("{}{unit}", milliseconds / factor));
            milliseconds %= factor;
        }
    }
    text
}

/// A size in the largest unit that leaves it whole.
pub fn spell_size(bytes: u64) -> String {
    let units = [
        ("TiB", 1_u64 << 40),
        ("GiB", 1 << 30),
        ("MiB", 1 << 20),
        ("TB", 1_000_000_000_000),
        ("GB", 1_000_000_000),
        ("MB", 1_000_000),
        ("KiB", 1 << 10),
        ("kB", 1_000),
    ];
    let whole = units.iter().find(|(_, factor)| bytes > 0 && bytes.is_multiple_of(*factor));
    whole.map_or_else(|| format!("{bytes}B"), |(unit, factor)| format!("{}{unit}", bytes / factor))
}

fn split(text: &str) -> Option<(&str, &str)> {
    let text = text.trim();
    let end = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
    (end > 0).then(|| (&text[..end], text[end..].trim()))
}

/// `number × factor`, exact, where the result is whole.
fn scaled(number: &str, factor: u64) -> Option<u64> {
    let (digits, places) = decimal(number)?;
    let product = digits.checked_mul(u128::from(factor))?;
    let one = 10_u128.checked_pow(places)?;
    (product % one == 0).then(|| u64::try_from(product / one).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        assert_eq!(size("2GiB"), Some(2 << 30));
        assert_eq!(size("500 MB"), Some(500_000_000));
        assert_eq!(size("1.5kB"), Some(1500));
        assert_eq!(size("12"), Some(12));
        for wrong in ["", "GB", "2 gigs", "-1MB", "1.5", "1e9QB", "99999999999TiB", "0.3KiB"] {
            assert_eq!(size(wrong), None, "{wrong}");
        }
        assert_eq!(spell_size(2 << 30), "2GiB");
        assert_eq!(spell_size(1500), "1500B");
    }

    #[test]
    fn durations() {
        assert_eq!(duration("1h30m"), Some(5_400_000));
        assert_eq!(duration("90s"), Some(90_000));
        assert_eq!(duration("0.5s"), Some(500));
        for wrong in ["", "30", "30m1h", "1h1h", "s", "0s", "1y", "1..5s"] {
            assert_eq!(duration(wrong), None, "{wrong}");
        }
        assert_eq!(spell_duration(5_400_000), "1h30m");
        assert_eq!(duration(&spell_duration(93_784_005)), Some(93_784_005));
    }

    #[test]
    fn shares_are_exact_decimals() {
        assert_eq!(share("10%").as_deref(), Some("0.1"));
        assert_eq!(share("0.050").as_deref(), Some("0.05"));
        assert_eq!(share("5e-2").as_deref(), Some("0.05"));
        assert_eq!(share("100%").as_deref(), Some("1"));
        for wrong in ["", "-1", "101%", "1.5", "ten", "%", "."] {
            assert_eq!(share(wrong), None, "{wrong}");
        }
    }
}
