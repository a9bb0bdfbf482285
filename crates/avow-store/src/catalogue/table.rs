//! A sorted table in pages that verify each by itself.

use std::fs::File;
use std::os::unix::fs::FileExt;

use serde::{Deserialize, Serialize};

use crate::meter;

/// The tables of a catalogue, by position: attempts by their own digest, by their action's, by experiment and
/// member, by experiment and stage.
pub(super) const ATTEMPTS: usize = 0;
pub(super) const ACTIONS: usize = 1;
pub(super) const MEMBERS: usize = 2;
pub(super) const STAGES: usize = 3;
/// How many there are.
pub(super) const TABLES: usize = 4;

/// Entries of a full page; with its digest a page has about four kilobytes.
const PER_PAGE: usize = 145;
const ENTRY: usize = 28;
const DIGEST: usize = 32;

/// Where the line of an attempt stands. The order of the fields is the order of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Entry {
    /// The beginning of what it is looked up by.
    pub(super) key: u64,
    /// The row of its journal.
    pub(super) row: u32,
    /// The line, counted from 1.
    pub(super) line: u32,
    /// The byte at which the line begins.
    pub(super) offset: u64,
    /// The line's length in bytes.
    pub(super) length: u32,
}

/// The key of a digest.
pub(super) fn key_of(digest: &[u8; 32]) -> u64 {
    u64::from_be_bytes(digest[..8].try_into().expect("eight of 32 bytes"))
}

/// The key of a member or a stage.
pub(super) fn label_key(experiment: &str, label: &str) -> u64 {
    let mut hasher = blake3::Hasher::new();
    hasher.update(experiment.as_bytes()).update(&[0]).update(label.as_bytes());
    key_of(hasher.finalize().as_bytes())
}

/// Where a table lies in the file, with the first key of each page.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Head {
    offset: u64,
    entries: u64,
    fences: Vec<u64>,
}

impl Head {
    /// Appends a sorted table to the bytes of a file.
    pub(super) fn write(entries: &[Entry], out: &mut Vec<u8>) -> Head {
        let offset = out.len() as u64;
        let mut fences = Vec::new();
        for page in entries.chunks(PER_PAGE) {
            let start = out.len();
            fences.push(page[0].key);
            page.iter().for_each(|entry| entry.write(out));
            let digest = blake3::hash(&out[start..]);
            out.extend(digest.as_bytes());
        }
        Head { offset, entries: entries.len() as u64, fences }
    }

    /// How many pages it has.
    pub(super) fn pages(&self) -> usize {
        self.fences.len()
    }

    /// The pages that may hold a key.
    pub(super) fn pages_of(&self, key: u64) -> std::ops::Range<usize> {
        // A key may begin at the end of the page before the first fence that equals it.
        let first = self.fences.partition_point(|fence| *fence < key).saturating_sub(1);
        first..self.fences.partition_point(|fence| *fence <= key)
    }

    /// Reads a page; `None` where it does not verify.
    pub(super) fn page(&self, file: &File, base: u64, page: usize) -> Option<Vec<Entry>> {
        meter::page();
        let before = (page * PER_PAGE) as u64;
        let entries = self.entries.checked_sub(before)?.min(PER_PAGE as u64) as usize;
        let mut bytes = vec![0; entries * ENTRY + DIGEST];
        let place = base + self.offset + (page * (PER_PAGE * ENTRY + DIGEST)) as u64;
        file.read_exact_at(&mut bytes, place).ok()?;
        let (content, digest) = bytes.split_at(entries * ENTRY);
        if blake3::hash(content).as_bytes() != digest {
            return None;
        }
        Some(content.chunks_exact(ENTRY).map(Entry::read).collect())
    }
}

impl Entry {
    fn write(&self, out: &mut Vec<u8>) {
        out.extend(self.key.to_be_bytes());
        out.extend(self.row.to_be_bytes());
        out.extend(self.line.to_be_bytes());
        out.extend(self.offset.to_be_bytes());
        out.extend(self.length.to_be_bytes());
    }

    fn read(bytes: &[u8]) -> Entry {
        let four = |at: usize| u32::from_be_bytes(bytes[at..at + 4].try_into().expect("four bytes"));
        let eight = |at: usize| u64::from_be_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
        Entry { key: eight(0), row: four(8), line: four(12), offset: eight(16), length: four(24) }
    }
}
