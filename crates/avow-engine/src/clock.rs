//! Time and chance, which only this layer may ask for.

use std::time::{SystemTime, UNIX_EPOCH};

use avow_model::attempt::{AttemptId, Timestamp};
use rustix::rand::{GetRandomFlags, getrandom};

use crate::error::EngineError;

/// Milliseconds since 1970. A clock before that reads as zero.
pub fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let now = i64::try_from(since.as_millis()).unwrap_or(i64::MAX);
    #[cfg(debug_assertions)]
    let now = now.saturating_add(SHIFT.load(std::sync::atomic::Ordering::Relaxed)).max(0);
    now
}

#[cfg(debug_assertions)]
static SHIFT: std::sync::atomic::AtomicI64 = std::sync::atomic::AtomicI64::new(0);

/// Sets the clock of this process apart from the machine's by so many milliseconds, for tests; release builds have
/// no such thing.
#[cfg(debug_assertions)]
pub fn shift(milliseconds: i64) {
    SHIFT.store(milliseconds, std::sync::atomic::Ordering::Relaxed);
}

/// `bytes` random bytes from the operating system, in hexadecimal.
///
/// # Errors
/// [`EngineError::Random`] where the system has none to give.
pub fn random_hex(bytes: usize) -> Result<String, EngineError> {
    let mut buffer = vec![0u8; bytes];
    let mut filled = 0;
    while filled < bytes {
        let read = getrandom(&mut buffer[filled..], GetRandomFlags::empty())
            .map_err(|error| EngineError::Random(error.into()))?;
        filled += read;
    }
    Ok(buffer.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// A new attempt's name.
pub(crate) fn attempt_id() -> Result<AttemptId, EngineError> {
    random_hex(16).map(AttemptId)
}

/// A new run's name: when it began in UTC, and four random digits, e.g. `20261130-094124-3f2a`.
pub(crate) fn run_name(at: Timestamp) -> Result<String, EngineError> {
    let time = jiff::Timestamp::from_millisecond(at).unwrap_or(jiff::Timestamp::UNIX_EPOCH);
    Ok(format!("{}-{}", time.strftime("%Y%m%d-%H%M%S"), random_hex(2)?))
}
