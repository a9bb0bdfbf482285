//! A number as printed: decimal digits with the place of the last one, and which stored values it can stand for.
//!
//! Everything is decimal. A stored value is taken as the shortest decimal that reads back as the same float, as
//! every tool prints it, so that 0.285 is a tie at two places although its binary value lies just below.

use std::cmp::Ordering;

use serde::Serialize;

/// A decimal number: digits without leading zeros, times a power of ten.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Decimal {
    negative: bool,
    /// Most significant first; empty for zero.
    digits: Vec<u8>,
    /// The power of ten of the last digit.
    place: i32,
}

/// A number as a manuscript prints it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Printed {
    /// Its value as written, before the sign of per cent is obeyed.
    pub value: f64,
    /// The power of ten of its last digit: −2 for `0.91`, 0 for `12`, −6 for `3.1e-5`.
    pub place: i32,
    /// Whether a sign or word for per cent follows.
    pub percent: bool,
    /// Whether it is a factor: `2.1×`, `twofold`.
    pub factor: bool,
    /// How many significant digits it has.
    pub significant: usize,
    #[serde(skip)]
    decimal: Vec<u8>,
    #[serde(skip)]
    negative: bool,
}

/// How a stored value becomes the printed one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rounding {
    /// No digit was dropped.
    Exact,
    /// The nearest number of so many digits.
    Nearest,
    /// A tie, and the even neighbour was taken.
    HalfEven,
    /// A tie, and the neighbour further from zero was taken.
    HalfUp,
    /// A tie, and the odd neighbour nearer to zero was taken, as binary floats do by accident.
    HalfDown,
    /// Not the nearest: digits were cut off.
    Truncated,
    /// Not the nearest: rounded away from zero.
    Up,
}

impl Rounding {
    /// Whether it is what rounding should give; ties may go either way.
    pub fn is_right(self) -> bool {
        !matches!(self, Rounding::Truncated | Rounding::Up)
    }

    /// The code of the rounding.
    pub fn word(self) -> &'static str {
        match self {
            Rounding::Exact => "exact",
            Rounding::Nearest => "nearest",
            Rounding::HalfEven => "half-even",
            Rounding::HalfUp => "half-up",
            Rounding::HalfDown => "half-down",
            Rounding::Truncated => "truncated",
            Rounding::Up => "up",
        }
    }
}

impl Decimal {
    /// The shortest decimal of a finite float.
    fn of(value: f64) -> Decimal {
        let text = format!("{:e}", value.abs());
        let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let exponent: i32 = exponent.parse().unwrap_or(0);
        let fraction = mantissa.split_once('.').map_or(0, |(_, f)| f.len() as i32);
        let digits = mantissa.bytes().filter(u8::is_ascii_digit).map(|b| b - b'0').collect();
        Decimal { negative: value < 0.0, digits, place: exponent - fraction }.trimmed()
    }

    /// Without zeros at either end.
    fn trimmed(mut self) -> Decimal {
        let zeros = self.digits.iter().take_while(|d| **d == 0).count();
        self.digits.drain(..zeros);
        while self.digits.last() == Some(&0) {
            self.digits.pop();
            self.place += 1;
        }
        if self.digits.is_empty() {
            (self.place, self.negative) = (0, false);
        }
        self
    }

    /// Times a power of ten.
    fn shifted(mut self, by: i32) -> Decimal {
        if !self.digits.is_empty() {
            self.place += by;
        }
        self
    }

    /// Without the digits below a place, and how what was dropped compares with half of that place; `None` where
    /// nothing was dropped.
    fn cut(&self, place: i32) -> (Decimal, Option<Ordering>) {
        if self.place >= place || self.digits.is_empty() {
            return (self.clone(), None);
        }
        let dropped = (place - self.place) as usize;
        let kept = self.digits.len().saturating_sub(dropped);
        // Leading zeros below the place are dropped digits too.
        let half = match dropped.cmp(&self.digits.len()) {
            Ordering::Greater => Ordering::Less,
            _ => {
                let tail = &self.digits[kept..];
                let rest = tail[1..].iter().any(|d| *d != 0);
                tail[0].cmp(&5).then(if rest { Ordering::Greater } else { Ordering::Equal })
            }
        };
        let digits = self.digits[..kept].to_vec();
        (Decimal { negative: self.negative, digits, place }, Some(half))
    }

    /// One more in the last place, away from zero. `place` is where that is.
    fn up(mut self, place: i32) -> Decimal {
        if self.digits.is_empty() {
            return Decimal { negative: self.negative, digits: vec![1], place };
        }
        for digit in self.digits.iter_mut().rev() {
            if *digit < 9 {
                *digit += 1;
                return self;
            }
            *digit = 0;
        }
        self.digits.insert(0, 1);
        self
    }
}

impl Printed {
    /// From the digits before and after the point and a power of ten, e.g. `("12", "5", -3)` for 12.5e-3.
    pub fn new(negative: bool, whole: &str, fraction: &str, exponent: i32) -> Option<Printed> {
        // No quantity of a paper has more digits, and powers beyond the range of a float are none.
        if whole.len() + fraction.len() > 400 || exponent.abs() > 400 {
            return None;
        }
        let digits: Vec<u8> =
            whole.bytes().chain(fraction.bytes()).filter(u8::is_ascii_digit).map(|b| b - b'0').collect();
        let place = exponent - fraction.len() as i32;
        let text: String = digits.iter().map(|d| char::from(b'0' + d)).collect();
        let value: f64 = format!("{}{text}e{place}", if negative { "-" } else { "" }).parse().ok()?;
        let leading = digits.iter().take_while(|d| **d == 0).count();
        let significant = (digits.len() - leading).max(1);
        let zero = leading == digits.len();
        let negative = negative && !zero;
        let value = if zero { 0.0 } else { value };
        value.is_finite().then_some(Printed {
            value,
            place,
            percent: false,
            factor: false,
            significant,
            decimal: digits,
            negative,
        })
    }

    /// With a sign or word for per cent.
    pub fn percent(mut self) -> Printed {
        self.percent = true;
        self
    }

    /// As a factor.
    pub fn factor(mut self) -> Printed {
        self.factor = true;
        self
    }

    /// Half of one unit of the last digit.
    pub fn half(&self) -> f64 {
        0.5 * 10f64.powi(self.place)
    }

    /// How far from the printed value the stored one may lie without anything but rounding, in any mode.
    pub fn unit(&self) -> f64 {
        10f64.powi(self.place)
    }

    fn decimal(&self) -> Decimal {
        Decimal { negative: self.negative, digits: self.decimal.clone(), place: self.place }.trimmed()
    }

    /// How `stored` times ten to the `shift` becomes this, or `None` where it does not: with per cent, a fraction is
    /// shifted by 2.
    pub fn rounds(&self, stored: f64, shift: i32) -> Option<Rounding> {
        if !stored.is_finite() {
            return None;
        }
        let exact = Decimal::of(stored).shifted(shift);
        let (down, half) = exact.cut(self.place);
        let wanted = self.decimal();
        let Some(half) = half else { return (exact == wanted).then_some(Rounding::Exact) };
        let odd = down.digits.last().is_some_and(|d| d % 2 == 1);
        let up = down.clone().up(self.place).trimmed();
        let is_down = same(&down.trimmed(), &wanted);
        let is_up = same(&up, &wanted);
        match half {
            Ordering::Less if is_down => Some(Rounding::Nearest),
            Ordering::Greater if is_up => Some(Rounding::Nearest),
            Ordering::Equal if is_up && odd => Some(Rounding::HalfEven),
            Ordering::Equal if is_up => Some(Rounding::HalfUp),
            Ordering::Equal if is_down && !odd => Some(Rounding::HalfEven),
            Ordering::Equal if is_down => Some(Rounding::HalfDown),
            Ordering::Greater if is_down => Some(Rounding::Truncated),
            Ordering::Less if is_up => Some(Rounding::Up),
            _ => None,
        }
    }
}

/// Equal, where zero has no sign: −0.004 is printed as 0.00 and as −0.00.
fn same(a: &Decimal, b: &Decimal) -> bool {
    a.digits == b.digits && (a.digits.is_empty() || (a.place == b.place && a.negative == b.negative))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn printed(text: &str) -> Printed {
        let (negative, text) = text.strip_prefix('-').map_or((false, text), |rest| (true, rest));
        let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
        Printed::new(negative, whole, fraction, 0).expect("a number")
    }

    #[test]
    fn every_mode_of_rounding_has_its_name() {
        use Rounding::*;
        let cases = [
            ("0.91", 0.91, Some(Exact)),
            ("0.910", 0.91, Some(Exact)),
            ("0.91", 0.914, Some(Nearest)),
            ("0.91", 0.9149999, Some(Nearest)),
            ("0.92", 0.915, Some(HalfEven)),
            ("0.91", 0.915, Some(HalfDown)),
            ("0.92", 0.925, Some(HalfEven)),
            ("0.93", 0.925, Some(HalfUp)),
            ("0.91", 0.916, Some(Truncated)),
            ("0.92", 0.911, Some(Up)),
            ("0.92", 0.909, None),
            ("0.28", 0.285, Some(HalfEven)),
            ("-0.3", -0.25, Some(HalfUp)),
            ("-0.2", -0.25, Some(HalfEven)),
            ("0.3", -0.3, None),
            ("0.00", -0.004, Some(Nearest)),
            ("-0.00", -0.004, Some(Nearest)),
            ("1.00", 0.999, Some(Nearest)),
            ("10.0", 9.96, Some(Nearest)),
            ("0", 0.4, Some(Nearest)),
            ("1", 0.5, Some(HalfUp)),
            ("0", 0.5, Some(HalfEven)),
            ("0.0", 1e-300, Some(Nearest)),
            ("0.1", 1e-300, Some(Up)),
            ("5", 5.0, Some(Exact)),
            ("5", f64::NAN, None),
        ];
        for (text, stored, expected) in cases {
            assert_eq!(printed(text).rounds(stored, 0), expected, "{stored} as {text}");
        }
    }

    #[test]
    fn a_fraction_is_shifted_for_per_cent() {
        assert_eq!(printed("91.2").rounds(0.9123, 2), Some(Rounding::Nearest));
        assert_eq!(printed("91.2").rounds(91.23, 0), Some(Rounding::Nearest));
        assert_eq!(printed("0.6").rounds(0.00574, 2), Some(Rounding::Nearest));
    }

    #[test]
    fn places_and_digits() {
        let number = Printed::new(true, "3", "10", -4).expect("a number");
        assert_eq!((number.value, number.place, number.significant), (-3.1e-4, -6, 3));
        assert_eq!(Printed::new(false, "9", "", 500), None);
        assert_eq!(Printed::new(false, "000", "", 0).map(|p| (p.value, p.significant)), Some((0.0, 1)));
    }

    proptest::proptest! {
        #[test]
        fn what_is_formatted_is_recognised(value in -1e6f64..1e6, places in 0usize..8) {
            let text = format!("{value:.places$}");
            // The formatter rounds the binary value, so it is right or a tie that went the other way.
            let how = printed(&text).rounds(value, 0);
            proptest::prop_assert!(how.is_some_and(Rounding::is_right), "{value} as {text}: {how:?}");
        }

        #[test]
        fn nothing_else_is(value in -1e3f64..1e3, places in 0usize..6, off in 2i64..50) {
            let unit = 10f64.powi(-(places as i32));
            let text = format!("{:.places$}", value + off as f64 * unit);
            proptest::prop_assert_eq!(printed(&text).rounds(value, 0), None);
        }
    }
}
