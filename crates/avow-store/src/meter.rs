//! How much was read: counters that prove that cost grows with what is asked for.
//!
//! They count acts, not time, so that a test can compare a small project with a large one. One process, one set of
//! counters; whoever prints them does so at its end.

use std::sync::atomic::{AtomicU64, Ordering};

use serde::Serialize;

static JOURNALS: AtomicU64 = AtomicU64::new(0);
static LINES: AtomicU64 = AtomicU64::new(0);
static PAGES: AtomicU64 = AtomicU64::new(0);
static LOOKS: AtomicU64 = AtomicU64::new(0);
static BLOBS: AtomicU64 = AtomicU64::new(0);
static MEMBERS: AtomicU64 = AtomicU64::new(0);

/// What this process has read so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Journal files opened.
    pub journals: u64,
    /// Journal lines parsed.
    pub lines: u64,
    /// Pages of the catalogue read.
    pub pages: u64,
    /// Blobs whose metadata were looked at.
    pub looks: u64,
    /// Blobs read or hashed.
    pub blobs: u64,
    /// Members whose state was worked out.
    pub members: u64,
}

/// The counters as they stand.
pub fn counts() -> Counts {
    let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    Counts {
        journals: of(&JOURNALS),
        lines: of(&LINES),
        pages: of(&PAGES),
        looks: of(&LOOKS),
        blobs: of(&BLOBS),
        members: of(&MEMBERS),
    }
}

/// Notes that the state of so many members was worked out. For the layers above, which know what a member is.
pub fn members(members: u64) {
    MEMBERS.fetch_add(members, Ordering::Relaxed);
}

pub(crate) fn journal(lines: u64) {
    JOURNALS.fetch_add(1, Ordering::Relaxed);
    line(lines);
}

pub(crate) fn line(lines: u64) {
    LINES.fetch_add(lines, Ordering::Relaxed);
}

pub(crate) fn page() {
    PAGES.fetch_add(1, Ordering::Relaxed);
}

pub(crate) fn look() {
    LOOKS.fetch_add(1, Ordering::Relaxed);
}

pub(crate) fn blob() {
    BLOBS.fetch_add(1, Ordering::Relaxed);
}
