//! Comparing the catalogue with the journals, and reading what it lacks.

use std::collections::HashMap;
use std::fs::File;
use std::os::unix::fs::FileExt;

use avow_model::canonical::Record;
use avow_model::digest::LineDigest;
use avow_model::journal::{self, Event, Line, Walked};
use avow_model::summary::RunSummary;

use super::file::{self, CatalogueFile, Contents, Covered};
use super::table::{Entry, Head, TABLES, key_of, label_key};
use crate::error::{Context, StoreError};
use crate::journal::{JournalFile, journals};
use crate::meter;
use crate::project::Project;
use crate::record::stage_of;
use crate::stamp::{self, FileStamp};

/// Bytes of journals that a command may have to read itself before the catalogue is written again.
const WORTH: u64 = 256 << 10;
/// Beyond that, this share of what is catalogued.
const SHARE: u64 = 64;
/// Journals that a command may have to open itself.
const OPENED: usize = 16;

/// A journal as known now.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) covered: Covered,
    /// Where it stands; `None`: as the catalogue has it.
    summary: Option<RunSummary>,
}

/// The catalogue and what the journals hold beyond it.
#[derive(Debug)]
pub(super) struct Scan {
    pub(super) file: Option<CatalogueFile>,
    /// In the order in which the runs began.
    pub(super) rows: Vec<Row>,
    /// For each row of the file, where it is now; `None` for one that no longer holds.
    pub(super) moved: Vec<Option<u32>>,
    /// What the file lacks, sorted.
    pub(super) fresh: [Vec<Entry>; TABLES],
    pages: HashMap<(usize, usize), Vec<Entry>>,
    read: u64,
    opened: usize,
    dropped: bool,
}

/// What reading one journal gave; `row` of its entries is filled in later.
struct Found {
    row: Row,
    entries: [Vec<Entry>; TABLES],
    /// The row of the file that still holds.
    kept: Option<usize>,
}

impl Scan {
    /// Compares a catalogue with the journals, and reads what it lacks.
    pub(super) fn of(project: &Project, file: Option<CatalogueFile>) -> Result<Scan, StoreError> {
        let mut scan = Scan {
            file,
            rows: Vec::new(),
            moved: Vec::new(),
            fresh: Default::default(),
            pages: HashMap::new(),
            read: 0,
            opened: 0,
            dropped: false,
        };
        let known: HashMap<String, usize> = scan.file.as_ref().map_or_else(HashMap::new, |file| {
            file.contents.journals.iter().enumerate().map(|(i, row)| (row.run.clone(), i)).collect()
        });
        let mut found = Vec::new();
        for journal in journals(project)? {
            found.push(scan.journal(&journal, known.get(&journal.run).copied())?);
        }
        found.sort_by(|a, b| {
            let place = |f: &Found| (f.row.covered.at, f.row.covered.run.clone());
            place(a).cmp(&place(b))
        });
        scan.moved = vec![None; known.len()];
        for (row, found) in found.into_iter().enumerate() {
            scan.take(row as u32, found);
        }
        scan.dropped |= scan.moved.contains(&None);
        scan.fresh.iter_mut().for_each(|entries| entries.sort_unstable());
        Ok(scan)
    }

    fn take(&mut self, row: u32, found: Found) {
        if let Some(kept) = found.kept {
            self.moved[kept] = Some(row);
        }
        for (table, entries) in self.fresh.iter_mut().zip(found.entries) {
            table.extend(entries.into_iter().map(|entry| Entry { row, ..entry }));
        }
        self.rows.push(found.row);
    }

    /// What is known of one journal, after reading what is not.
    fn journal(&mut self, journal: &JournalFile, known: Option<usize>) -> Result<Found, StoreError> {
        let covered = known.and_then(|i| Some((i, self.file.as_ref()?.contents.journals.get(i)?.clone())));
        if let Some((i, covered)) = &covered
            && covered.settled
            && covered.stamp == Some(journal.stamp)
        {
            let row = Row { covered: covered.clone(), summary: None };
            return Ok(Found { row, entries: Default::default(), kept: Some(*i) });
        }
        self.opened += 1;
        let begun = stamp::now();
        let handle = File::open(&journal.path).context("open", &journal.path)?;
        meter::journal(0);
        let after = handle.metadata().context("look at", &journal.path)?;
        let (after, size) = (FileStamp::of(&after), after.len());
        let settled = after.settled(begun);
        let holds = covered.filter(|(_, covered)| {
            // One that was written to without becoming longer was changed where nobody appends.
            let rewritten = covered.stamp != Some(after) && size <= covered.length;
            !rewritten && size >= covered.length && ends_with(&handle, covered)
        });
        let (kept, mut row) = match holds {
            Some((i, covered)) => (Some(i), Row { covered, summary: None }),
            None => (None, Row { covered: nothing(&journal.run), summary: Some(RunSummary::default()) }),
        };
        let mut entries: [Vec<Entry>; TABLES] = Default::default();
        if size > row.covered.length {
            let bytes = read_from(&handle, row.covered.length, size).context("read", &journal.path)?;
            if row.summary.is_none() {
                let known = kept.and_then(|_| self.file.as_ref()?.summary(&row.covered));
                let Some(known) = known else {
                    // Without the summary there is nothing to go on from.
                    self.dropped = true;
                    return self.journal(journal, None);
                };
                row.summary = Some(known);
            }
            self.read += bytes.len() as u64;
            row.read_on(&bytes, &mut entries);
        }
        (row.covered.stamp, row.covered.settled) = (Some(after), settled);
        Ok(Found { row, entries, kept })
    }

    /// Where the run of a row stands; `None` where the catalogue is damaged.
    pub(super) fn summary(&self, row: usize) -> Result<Option<RunSummary>, StoreError> {
        let row = &self.rows[row];
        Ok(row.summary.clone().or_else(|| self.file.as_ref()?.summary(&row.covered)))
    }

    /// The entries with a key, in order; `None` where the catalogue is damaged.
    pub(super) fn entries(&mut self, table: usize, key: u64) -> Option<Vec<Entry>> {
        let mut found = Vec::new();
        let pages = self.file.as_ref().map_or(0..0, |file| file.contents.tables[table].pages_of(key));
        for page in pages {
            let with_key = self.page(table, page)?.iter().filter(|entry| entry.key == key).copied();
            let with_key: Vec<Entry> = with_key.collect();
            found.extend(with_key.into_iter().filter_map(|entry| self.now(entry)));
        }
        let fresh = &self.fresh[table];
        let start = fresh.partition_point(|entry| entry.key < key);
        found.extend(fresh[start..].iter().take_while(|entry| entry.key == key));
        found.sort_unstable();
        Some(found)
    }

    /// All entries of a table, in order; `None` where the catalogue is damaged.
    pub(super) fn all(&mut self, table: usize) -> Option<Vec<Entry>> {
        let mut all = Vec::new();
        let pages = self.file.as_ref().map_or(0, |file| file.contents.tables[table].pages());
        for page in 0..pages {
            let file = self.file.as_ref()?;
            let entries = file.contents.tables[table].page(&file.file, file.base, page)?;
            all.extend(entries.into_iter().filter_map(|entry| self.now(entry)));
        }
        all.extend(&self.fresh[table]);
        all.sort_unstable();
        Some(all)
    }

    fn page(&mut self, table: usize, page: usize) -> Option<&[Entry]> {
        let file = self.file.as_ref()?;
        let entry = match self.pages.entry((table, page)) {
            std::collections::hash_map::Entry::Occupied(known) => known.into_mut(),
            std::collections::hash_map::Entry::Vacant(new) => {
                new.insert(file.contents.tables[table].page(&file.file, file.base, page)?)
            }
        };
        Some(entry)
    }

    /// An entry of the file with its journal's present row; `None` where that no longer holds.
    fn now(&self, entry: Entry) -> Option<Entry> {
        let row = (*self.moved.get(entry.row as usize)?)?;
        Some(Entry { row, ..entry })
    }

    /// Writes the catalogue again where that spares the next command more than it costs this one.
    pub(super) fn save_if_worth_it(&mut self, project: &Project) {
        let total: u64 = self.rows.iter().map(|row| row.covered.length).sum();
        let absent = self.file.is_none() && !self.rows.is_empty();
        if absent || self.dropped || self.opened > OPENED || self.read > WORTH.max(total / SHARE) {
            self.save(project);
        }
    }

    /// Writes the catalogue. It is a cache: where it cannot be written, the next command reads as much as this one.
    pub(super) fn save(&mut self, project: &Project) {
        let Some((contents, behind)) = self.contents() else { return file::forget(project) };
        if let Err(error) = file::write(project, &contents, &behind) {
            tracing::debug!(%error, "the catalogue of the journals could not be written");
        }
    }

    /// Everything as one file; `None` where a part of the old one is damaged.
    fn contents(&mut self) -> Option<(Contents, Vec<u8>)> {
        let mut behind = Vec::new();
        let mut tables: [Head; TABLES] = Default::default();
        for (table, head) in tables.iter_mut().enumerate() {
            *head = Head::write(&self.all(table)?, &mut behind);
        }
        let mut journals = Vec::with_capacity(self.rows.len());
        for row in 0..self.rows.len() {
            let summary = self.summary(row).ok()??;
            let bytes = serde_json::to_vec(&summary).expect("summaries hold only JSON values");
            let mut covered = self.rows[row].covered.clone();
            covered.summary = (behind.len() as u64, bytes.len() as u64);
            covered.sealed = Some(LineDigest::of(&bytes));
            behind.extend(bytes);
            journals.push(covered);
        }
        Some((Contents { journals, tables }, behind))
    }
}

impl Row {
    /// Takes in bytes that stand behind what is covered.
    fn read_on(&mut self, bytes: &[u8], entries: &mut [Vec<Entry>; TABLES]) {
        let Row { covered, summary } = self;
        let summary = summary.get_or_insert_default();
        let from = Walked { lines: covered.lines, intact: covered.length, head: covered.head, damage: None };
        let (mut number, mut last) = (covered.lines, covered.last);
        let read = journal::walk(bytes, from, &mut |place, line| {
            number += 1;
            last = place.start;
            if let Event::Opened(opened) = &line.event {
                covered.at = line.at;
                covered.experiment.clone_from(&opened.experiment);
                covered.plan = Some(opened.plan);
            }
            summary.apply(&line);
            let length = place.end - place.start;
            let entry = Entry {
                key: 0,
                row: 0,
                line: u32::try_from(number).unwrap_or(u32::MAX),
                offset: place.start,
                length: u32::try_from(length).unwrap_or(u32::MAX),
            };
            enter(&covered.experiment, &line, entry, entries);
        });
        meter::line(read.lines - covered.lines);
        (covered.lines, covered.length, covered.head, covered.last) =
            (read.lines, read.intact, read.head, last);
    }
}

/// The four entries of an attempt.
fn enter(experiment: &str, line: &Line, entry: Entry, entries: &mut [Vec<Entry>; TABLES]) {
    let Event::Finished { member, attempt } = &line.event else { return };
    let keys: [u64; TABLES] = [
        key_of(attempt.digest().as_bytes()),
        key_of(attempt.action.as_bytes()),
        label_key(experiment, member),
        label_key(experiment, stage_of(member)),
    ];
    for (table, key) in entries.iter_mut().zip(keys) {
        table.push(Entry { key, ..entry });
    }
}

fn nothing(run: &str) -> Covered {
    Covered {
        run: run.to_owned(),
        at: 0,
        experiment: String::new(),
        plan: None,
        lines: 0,
        length: 0,
        last: 0,
        head: None,
        stamp: None,
        settled: false,
        summary: (0, 0),
        sealed: None,
    }
}

/// Whether the last line that is covered still stands where it stood.
fn ends_with(file: &File, covered: &Covered) -> bool {
    let Some(head) = covered.head else { return covered.length == 0 };
    let Some(length) = covered.length.checked_sub(covered.last + 1) else { return false };
    let mut line = vec![0; length as usize + 1];
    let read = file.read_exact_at(&mut line, covered.last);
    read.is_ok() && line.pop() == Some(b'\n') && LineDigest::of(&line) == head
}

fn read_from(file: &File, from: u64, to: u64) -> std::io::Result<Vec<u8>> {
    let mut bytes = vec![0; usize::try_from(to - from).map_err(std::io::Error::other)?];
    let mut filled = 0;
    while filled < bytes.len() {
        match file.read_at(&mut bytes[filled..], from + filled as u64) {
            // It became shorter meanwhile: a torn tail was cut.
            Ok(0) => break,
            Ok(n) => filled += n,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    bytes.truncate(filled);
    Ok(bytes)
}
