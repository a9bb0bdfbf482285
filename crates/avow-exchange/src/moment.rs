//! Moments in the one spelling of ISO 8601 that all the formats take.

use avow_model::attempt::Timestamp;

/// A moment in UTC, to the millisecond: `2026-11-30T08:00:00.123+00:00`.
pub(crate) fn moment(at: Timestamp) -> String {
    time(at).strftime("%Y-%m-%dT%H:%M:%S.%3f+00:00").to_string()
}

/// The day of a moment: `2026-11-30`.
pub(crate) fn day(at: Timestamp) -> String {
    time(at).strftime("%Y-%m-%d").to_string()
}

/// Beyond the years that a calendar has nothing was ever recorded; the epoch stands in for it.
fn time(at: Timestamp) -> jiff::Timestamp {
    jiff::Timestamp::from_millisecond(at).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_have_the_form_that_readers_ask_for() {
        assert_eq!(moment(1_764_489_600_123), "2025-11-30T08:00:00.123+00:00");
        assert_eq!(day(1_764_489_600_123), "2025-11-30");
        assert_eq!(day(i64::MAX), "1970-01-01");
    }
}
