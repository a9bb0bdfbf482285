//! Ranges and labels of axes.

/// Whether a value has a place on paper: it is a number, and a width can be computed from it.
pub(super) fn is_drawable(value: f64) -> bool {
    value.abs() <= 1e300
}

/// A range that holds all drawable values with a little room; never empty.
pub(super) fn range(values: impl IntoIterator<Item = f64>) -> (f64, f64) {
    let drawable = values.into_iter().filter(|value| is_drawable(*value));
    let (low, high) = drawable.fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), v| (l.min(v), h.max(v)));
    if low > high {
        return (0.0, 1.0);
    }
    let width = high - low;
    // A constant is drawn in the middle of something that can be told from it.
    let room = if width > 0.0 { width * 0.06 } else { low.abs().max(1e-300) * 0.1 };
    let (low, high) = (low - room, high + room);
    // Two numbers so close that nothing lies between them get the room that a constant gets.
    if low < high {
        (low, high)
    } else {
        (low - low.abs().max(1e-300) * 0.1, high + high.abs().max(1e-300) * 0.1)
    }
}

/// A number as a label: short, and without a tail of zeros.
pub(super) fn label(value: f64) -> String {
    let size = value.abs();
    if value == 0.0 {
        return "0".to_owned();
    }
    if !(1e-3..1e5).contains(&size) {
        return format!("{value:.1e}");
    }
    let digits = (3 - size.log10().floor() as i32).clamp(0, 6) as usize;
    let text = format!("{value:.digits$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

/// A place on an axis of this width as a label: what is nothing beside the width is 0, whatever rounding made of it.
pub(super) fn place(value: f64, width: f64) -> String {
    label(if value.abs() < width * 1e-9 { 0.0 } else { value })
}

/// A text that fits into so many characters.
pub(super) fn fitted(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    let kept: String = text.chars().take(most.saturating_sub(1)).collect();
    format!("{kept}…")
}

#[cfg(test)]
mod tests {
    use super::{fitted, is_drawable, label, place, range};

    #[test]
    fn ranges_hold_their_values_and_are_never_empty() {
        for values in [
            vec![],
            vec![0.0],
            vec![-3.5],
            vec![f64::NAN, f64::INFINITY],
            vec![1e308, -1e308],
            vec![1e-320],
            vec![1.0, 2.0, f64::NAN],
        ] {
            let (low, high) = range(values.iter().copied());
            assert!(low < high && low.is_finite() && high.is_finite(), "{values:?}: {low} {high}");
            assert!(
                values.iter().filter(|v| is_drawable(**v)).all(|v| low <= *v && *v <= high),
                "{values:?}"
            );
        }
    }

    #[test]
    fn labels_are_short() {
        for (value, expected) in [
            (0.0, "0"),
            (0.5, "0.5"),
            (-0.0245, "-0.0245"),
            (12.0, "12"),
            (1234.5, "1234"),
            (123456.0, "1.2e5"),
            (0.00001, "1.0e-5"),
        ] {
            assert_eq!(label(value), expected);
        }
    }

    #[test]
    fn what_rounding_leaves_of_zero_is_zero() {
        assert_eq!(place(-2.2e-16, 2.0), "0");
        assert_eq!(place(2.2e-16, 1e-15), "2.2e-16");
        assert_eq!(place(0.5, 2.0), "0.5");
    }

    #[test]
    fn a_long_text_is_cut_at_a_character() {
        assert_eq!(fitted("ééééé", 3), "éé…");
        assert_eq!(fitted("abc", 3), "abc");
    }
}
