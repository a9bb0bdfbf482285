//! The significance level as an exact rational number.
//!
//! A level is written in decimal (`0.05`) and compared with probabilities that are fractions of whole numbers:
//! floor(α·2ⁿ/2) decides which order statistic ends an interval. In binary floating point 0.05 is not 0.05 and
//! the floor can fall one short, so a level keeps numerator and denominator and these counts are integer
//! arithmetic. Dividing α by a family size stays exact too.
//!
//! Absent: levels of one half and above, at which neither a test nor an interval means anything.

use std::fmt;
use std::str::FromStr;

/// An error probability, 0 < α < ½, exact.
///
/// ```
/// use avow_stats::Level;
/// let alpha: Level = "0.05".parse()?;
/// assert_eq!(alpha.half_floor(256), 6); // floor(0.05 · 256 / 2)
/// assert_eq!(alpha.split(4).to_f64(), 0.0125);
/// # Ok::<(), avow_stats::LevelError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Level {
    numerator: u128,
    denominator: u128,
}

/// Why a text is not a level.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LevelError {
    /// Not a plain or scientific decimal of at most 18 significant digits.
    #[error("`{text}` is not a decimal number of at most 18 digits")]
    NotDecimal {
        /// The text as given.
        text: String,
    },
    /// A number, but not strictly between 0 and 0.5.
    #[error("level `{text}` is not between 0 and 0.5, ends excluded")]
    OutOfRange {
        /// The text as given.
        text: String,
    },
}

impl Level {
    /// The level `numerator / denominator`; `None` unless 0 < α < ½ and the denominator is at most 10¹⁸.
    pub fn ratio(numerator: u64, denominator: u64) -> Option<Level> {
        const LARGEST: u64 = 1_000_000_000_000_000_000;
        let inside = numerator > 0 && denominator <= LARGEST && numerator < denominator.div_ceil(2);
        inside.then(|| Level::reduced(numerator.into(), denominator.into()))
    }

    fn reduced(numerator: u128, denominator: u128) -> Level {
        let divisor = gcd(numerator, denominator);
        Level { numerator: numerator / divisor, denominator: denominator / divisor }
    }

    /// α/m, the level of one member in a Bonferroni family of `members` (0 counts as 1).
    #[must_use]
    pub fn split(self, members: u32) -> Level {
        let denominator = self.denominator.checked_mul(members.max(1).into());
        Level::reduced(self.numerator, denominator.expect("a level is split at most three times"))
    }

    /// 2α, the complement of the confidence level of a one-sided or equivalence interval. May be ½ or more.
    #[must_use]
    pub fn doubled(self) -> Level {
        Level::reduced(2 * self.numerator, self.denominator)
    }

    /// The nearest double.
    pub fn to_f64(self) -> f64 {
        self.numerator as f64 / self.denominator as f64
    }

    /// Whether a p-value is at or below the level.
    ///
    /// Equality counts, as the law says, and is meant for the exact fractions: a p-value that differs from α in
    /// the last digits only (relative 1e-12) is equal to it.
    pub fn admits(self, p: f64) -> bool {
        p <= self.to_f64() * (1.0 + 1e-12)
    }

    /// floor(α·total/2): how many values of a reference set may lie beyond one end of a two-sided interval.
    pub fn half_floor(self, total: u64) -> u64 {
        let count = self.numerator * u128::from(total) / (2 * self.denominator);
        u64::try_from(count).expect("at most half of `total`")
    }

    /// floor(α·total).
    pub fn floor(self, total: u64) -> u64 {
        let count = self.numerator * u128::from(total) / self.denominator;
        u64::try_from(count).expect("at most `total`")
    }

    /// ceil((1 − α)·total), the rank of an upper critical value among `total` values.
    pub fn upper_rank(self, total: u64) -> u64 {
        total - self.floor(total)
    }

    /// 2^(1−n) ≤ α/(2m): whether an exact sign-flip over n units can be decided with room to spare in a
    /// family of `members` (the rule by which `auto` chooses it).
    pub fn leaves_room_for_signs(self, units: usize, members: u32) -> bool {
        let needed = 4 * u128::from(members.max(1)) * self.denominator;
        // 2^n is compared as a shift; 127 bits exceed every denominator that can occur.
        let doublings = u32::try_from(units).unwrap_or(u32::MAX);
        match self.numerator.checked_shl(doublings) {
            Some(shifted) if doublings < self.numerator.leading_zeros() => needed <= shifted,
            _ => true,
        }
    }
}

impl FromStr for Level {
    type Err = LevelError;

    /// Reads `0.05`, `.05`, `5e-2`.
    fn from_str(text: &str) -> Result<Level, LevelError> {
        let (numerator, denominator) =
            decimal(text).ok_or_else(|| LevelError::NotDecimal { text: text.to_owned() })?;
        Level::ratio(numerator, denominator).ok_or_else(|| LevelError::OutOfRange { text: text.to_owned() })
    }
}

impl fmt::Display for Level {
    /// The nearest double in its shortest form; exact for every level that was written as a short decimal.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.to_f64())
    }
}

/// A decimal text as a fraction over a power of ten of at most 10¹⁸; negative numbers are not decimals here.
fn decimal(text: &str) -> Option<(u64, u64)> {
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().ok()?),
        None => (text, 0),
    };
    let (whole, part) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits: String = [whole, part].concat();
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let places = i32::try_from(part.len()).ok()?.checked_sub(exponent)?;
    let trailing = digits.len() - digits.trim_end_matches('0').len();
    let (digits, places) = if trailing == digits.len() {
        ("0", 0)
    } else {
        (&digits[..digits.len() - trailing], places.checked_sub(i32::try_from(trailing).ok()?)?)
    };
    let number: u64 = digits.parse().ok()?;
    let power = 10_u64.pow(Some(places.unsigned_abs()).filter(|p| *p <= 18)?);
    if places >= 0 { Some((number, power)) } else { Some((number.checked_mul(power)?, 1)) }
}

fn gcd(a: u128, b: u128) -> u128 {
    if b == 0 { a } else { gcd(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn level(text: &str) -> Level {
        text.parse().unwrap()
    }

    #[test]
    fn spellings_of_one_level_are_equal() {
        for text in ["0.05", ".05", "5e-2", "0.0500", "0.5E-1", "00.05"] {
            assert_eq!(level(text), level("0.05"), "{text}");
        }
        assert_eq!(level("0.05").to_string(), "0.05");
    }

    #[test]
    fn what_is_no_level_is_refused() {
        for text in
            ["", ".", "abc", "-0.05", "+0.05", "0,05", "1e999", "0.05x", "nan", "0.0000000000000000000001"]
        {
            assert!(matches!(text.parse::<Level>(), Err(LevelError::NotDecimal { .. })), "{text}");
        }
        for text in ["0", "0.0", "0.5", "1", "5e3", "0.500000000001"] {
            assert!(matches!(text.parse::<Level>(), Err(LevelError::OutOfRange { .. })), "{text}");
        }
    }

    #[test]
    fn counts_are_exact_where_doubles_fall_short() {
        // 0.29 · 100 is 28.999999999999996 in doubles.
        assert_eq!(level("0.29").floor(100), 29);
        assert_eq!(level("0.05").half_floor(40), 1);
        assert_eq!(level("0.05").upper_rank(200), 190);
        assert_eq!(level("0.07").upper_rank(100), 93);
    }

    #[test]
    fn signs_have_room_from_the_documented_sizes() {
        let alpha = level("0.05");
        let first = |m| (1..99).find(|n| alpha.leaves_room_for_signs(*n, m)).unwrap();
        assert_eq!((first(1), first(4)), (7, 9));
        assert!(alpha.leaves_room_for_signs(1000, u32::MAX));
        assert!(!alpha.leaves_room_for_signs(0, 1));
    }

    #[test]
    fn equality_with_the_level_counts() {
        assert!(level("0.05").admits(2.0 * (25.0 / 1000.0)));
        assert!(level("0.05").admits(3.0 * (1.0 / 60.0)));
        assert!(!level("0.05").admits(0.050_000_001));
    }
}
