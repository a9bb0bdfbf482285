//! Journals on disk: created by one run, appended line by line, read by anybody.
//!
//! Lines, chain and reading are [`avow_model::journal`]'s. Here is what a file adds: that two runs cannot share
//! a name, that a write that failed half-way is taken back before the next, that only a torn tail is ever cut
//! and only by the holder of the run's lock, and that syncs are grouped: append many, sync once.

use std::fs::{self, File, OpenOptions};
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use avow_model::attempt::Timestamp;
use avow_model::digest::LineDigest;
use avow_model::journal::{self, Closing, Damage, Event, Journal, Line, Opened};
use rustix::fs::FlockOperation;
use rustix::io::Errno;

use crate::disk;
use crate::error::{Context, StoreError};
use crate::files;
use crate::meter;
use crate::project::Project;
use crate::record::Position;
use crate::stamp::FileStamp;

/// The one writer of a run's journal.
#[derive(Debug)]
pub struct JournalWriter {
    file: Arc<File>,
    path: PathBuf,
    run: String,
    opened: Timestamp,
    /// When the last line was written; no line is older than the one before it.
    last: Timestamp,
    head: Option<LineDigest>,
    lines: u64,
    length: u64,
    unsynced: bool,
    poisoned: bool,
}

impl JournalWriter {
    /// Creates the journal of a new run with its first line. A file that exists is an error of kind
    /// `AlreadyExists`. Survives a power cut when this returns.
    pub fn create(project: &Project, at: Timestamp, opened: Opened) -> Result<JournalWriter, StoreError> {
        files::check_name(&opened.run)?;
        let path = project.journal(&opened.run);
        let file = disk::create_new(&path).context("create", &path)?;
        hold(&file, &path)?;
        if file.metadata().context("look at", &path)?.nlink() == 0 {
            // Taken for the empty journal of a dead run before it was held.
            return JournalWriter::create(project, at, opened);
        }
        let run = opened.run.clone();
        let mut writer = JournalWriter {
            file: Arc::new(file),
            path,
            run,
            opened: at,
            last: at,
            head: None,
            lines: 0,
            length: 0,
            unsynced: true,
            poisoned: false,
        };
        writer.append(at, Event::Opened(Box::new(opened)))?;
        writer.sync()?;
        files::sync_folder(&project.journals())?;
        Ok(writer)
    }

    /// Goes on with a journal whose writer is gone ([`JournalFile::is_live`]), after cutting a torn tail. A journal that is damaged in any
    /// other way takes no more lines. Also returns what was read.
    pub fn open_existing(project: &Project, run: &str) -> Result<(JournalWriter, Journal), StoreError> {
        files::check_name(run)?;
        let path = project.journal(run);
        let mut file = OpenOptions::new().read(true).write(true).open(&path).context("open", &path)?;
        let bytes = fs::read(&path).context("read", &path)?;
        let journal = journal::read(&bytes);
        if let Some(Damage::Broken { line, reason }) = &journal.damage {
            return Err(StoreError::Journal { path, line: *line, reason: reason.clone() });
        }
        let length = journal.intact as u64;
        if (bytes.len() as u64) > length {
            tracing::warn!(run, bytes = bytes.len() as u64 - length, "a torn tail is cut off the journal");
            disk::shorten(&file, &path, length).context("shorten", &path)?;
        }
        file.seek(SeekFrom::Start(length)).context("write", &path)?;
        let opened = journal.lines.first().map_or(0, |line| line.at);
        let writer = JournalWriter {
            file: Arc::new(file),
            path,
            run: run.to_owned(),
            opened,
            last: journal.lines.last().map_or(0, |line| line.at),
            head: journal.head,
            lines: journal.lines.len() as u64,
            length,
            unsynced: true,
            poisoned: false,
        };
        Ok((writer, journal))
    }

    /// Appends an event; returns its place. A time before that of the last line is raised to it. It survives a crash of this process at once, and a power cut after
    /// the next [`JournalWriter::sync`].
    pub fn append(&mut self, at: Timestamp, event: Event) -> Result<Position, StoreError> {
        self.append_line(at, event).map(|(_, position)| position)
    }

    /// Like [`JournalWriter::append`], and also returns the line, for the fold.
    pub fn append_line(&mut self, at: Timestamp, event: Event) -> Result<(Line, Position), StoreError> {
        // A clock that was set back must not turn the order of events around.
        let at = at.max(self.last);
        let line = Line { previous: self.head, at, event };
        let mut text = line.to_text().into_bytes();
        let head = LineDigest::of(&text);
        text.push(b'\n');
        self.write(&text, Some(head), 1)?;
        self.last = at;
        Ok((line, self.position(self.lines)))
    }

    /// Appends many events by one write; returns their places. Either all of them are written or none.
    pub fn append_all(
        &mut self,
        at: Timestamp,
        events: impl IntoIterator<Item = Event>,
    ) -> Result<Vec<Position>, StoreError> {
        let (mut text, mut head, mut count) = (Vec::new(), self.head, 0);
        let at = at.max(self.last);
        for event in events {
            let start = text.len();
            text.extend(Line { previous: head, at, event }.to_text().into_bytes());
            head = Some(LineDigest::of(&text[start..]));
            text.push(b'\n');
            count += 1;
        }
        let before = self.lines;
        self.write(&text, head, count)?;
        self.last = at;
        Ok((before + 1..=self.lines).map(|line| self.position(line)).collect())
    }

    fn write(&mut self, text: &[u8], head: Option<LineDigest>, lines: u64) -> Result<(), StoreError> {
        if self.poisoned {
            return Err(StoreError::Poisoned { path: self.path.clone() });
        }
        if let Err(error) = disk::write(&self.file, &self.path, text) {
            self.take_back();
            return Err(error).context("append to", &self.path);
        }
        self.head = head;
        self.lines += lines;
        self.length += text.len() as u64;
        self.unsynced = true;
        Ok(())
    }

    /// Removes the bytes of a write that failed half-way; the next line would be glued to them.
    fn take_back(&mut self) {
        let restored = disk::shorten(&self.file, &self.path, self.length)
            .and_then(|()| (&*self.file).seek(SeekFrom::Start(self.length)));
        self.poisoned = restored.is_err();
    }

    fn position(&self, line: u64) -> Position {
        Position { opened: self.opened, run: self.run.clone(), line }
    }

    /// What makes the lines appended so far survive a power cut, for another thread.
    pub fn syncer(&self) -> JournalSync {
        JournalSync { file: Arc::clone(&self.file), path: self.path.clone() }
    }

    /// Makes everything appended so far survive a power cut.
    pub fn sync(&mut self) -> Result<(), StoreError> {
        if self.unsynced {
            disk::sync(&self.file, &self.path, false).context("sync", &self.path)?;
            self.unsynced = false;
        }
        Ok(())
    }

    /// The digest of the last line, for the ledger's `run-head`.
    pub fn head(&self) -> Option<LineDigest> {
        self.head
    }

    /// The run.
    pub fn run(&self) -> &str {
        &self.run
    }

    /// Length in bytes, for [`crate::SledIndex::caught_up`].
    pub fn length(&self) -> u64 {
        self.length
    }
}

/// Says with a lock, for as long as the file is open, that the journal's run lives. Others look with a lock that
/// they share and give back at once, so the wait is short.
fn hold(file: &File, path: &Path) -> Result<(), StoreError> {
    loop {
        match rustix::fs::flock(file, FlockOperation::LockExclusive) {
            Err(Errno::INTR) => {}
            held => return held.context("lock", path),
        }
    }
}

/// The flushing of a journal, apart from its writing.
#[derive(Debug)]
pub struct JournalSync {
    file: Arc<File>,
    path: PathBuf,
}

impl JournalSync {
    /// Makes every line that was appended before this call survive a power cut.
    pub fn sync(&self) -> Result<(), StoreError> {
        disk::sync(&self.file, &self.path, false).context("sync", &self.path)
    }
}

/// A journal that exists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JournalFile {
    /// The run.
    pub run: String,
    /// Where it lies.
    pub path: PathBuf,
    /// Its length in bytes.
    pub length: u64,
    /// The file's stamp when it was listed.
    pub stamp: FileStamp,
}

impl JournalFile {
    /// Removes a journal whose writer died before its first line was whole: nothing was recorded, and no ledger
    /// names it. Any other is left alone. Whether it went.
    pub fn discard_unbegun(&self) -> Result<bool, StoreError> {
        let file = match File::open(&self.path) {
            Err(e) if files::absent(&e) => return Ok(true),
            other => other.context("open", &self.path)?,
        };
        match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            // It has only just begun.
            Err(Errno::WOULDBLOCK) => return Ok(false),
            Err(error) => return Err(error).context("lock", &self.path),
        }
        let journal = self.read()?;
        if !journal.lines.is_empty() || matches!(journal.damage, Some(Damage::Broken { .. })) {
            return Ok(false);
        }
        disk::remove_file(&self.path).context("remove", &self.path)?;
        Ok(true)
    }

    /// Reads the whole journal and checks its chain. One that was discarded since it was found is empty.
    pub fn read(&self) -> Result<Journal, StoreError> {
        match fs::read(&self.path) {
            Err(e) if files::absent(&e) => Ok(journal::read(&[])),
            other => Ok(journal::read(&other.context("read", &self.path)?)),
        }
    }

    /// Whether the process that writes it is alive. One that is gone, and one that never was, is not.
    pub fn is_live(&self) -> Result<bool, StoreError> {
        let file = match File::open(&self.path) {
            Err(error) if files::absent(&error) => return Ok(false),
            other => other.context("open", &self.path)?,
        };
        match rustix::fs::flock(&file, FlockOperation::NonBlockingLockShared) {
            Ok(()) => Ok(false),
            Err(Errno::WOULDBLOCK) => Ok(true),
            Err(error) => Err(error).context("lock", &self.path),
        }
    }

    /// Its bytes as they are now.
    pub fn bytes(&self) -> Result<Vec<u8>, StoreError> {
        fs::read(&self.path).context("read", &self.path)
    }

    /// How the run ended, from the last line alone; `None` where it was never closed. The chain is not checked:
    /// that is what reading it whole is for.
    pub fn closing(&self) -> Result<Option<Closing>, StoreError> {
        // A closing line has about 150 bytes.
        meter::journal(1);
        const TAIL: u64 = 512;
        let mut file = match File::open(&self.path) {
            Err(e) if files::absent(&e) => return Ok(None),
            other => other.context("open", &self.path)?,
        };
        let length = file.metadata().context("look at", &self.path)?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(TAIL))).context("read", &self.path)?;
        let mut tail = Vec::new();
        file.read_to_end(&mut tail).context("read", &self.path)?;
        let Some(lines) = tail.strip_suffix(b"\n") else { return Ok(None) };
        let last = lines.rsplit(|byte| *byte == b'\n').next().unwrap_or_default();
        Ok(match serde_json::from_slice::<Line>(last) {
            Ok(Line { event: Event::Closed { how }, .. }) => Some(how),
            _ => None,
        })
    }

    /// The first line alone: when the run began, and what it set out to do. `None` where it is torn or damaged.
    pub fn opening(&self) -> Result<Option<(Timestamp, Opened)>, StoreError> {
        let mut raw = Vec::new();
        meter::journal(1);
        let file = match File::open(&self.path) {
            Err(e) if files::absent(&e) => return Ok(None),
            other => other.context("open", &self.path)?,
        };
        BufReader::new(file).read_until(b'\n', &mut raw).context("read", &self.path)?;
        let first = journal::read(&raw).lines.into_iter().next();
        Ok(first.and_then(|line| match line.event {
            Event::Opened(opened) => Some((line.at, *opened)),
            _ => None,
        }))
    }
}

/// When the last line of the latest run's journal was written, whatever the clock says now; `None` where nothing was
/// run, or where that line is torn.
pub fn latest(project: &Project) -> Result<Option<Timestamp>, StoreError> {
    let Some(file) = journals(project)?.pop() else { return Ok(None) };
    let last = last_line(&file.path).context("read", &file.path)?;
    Ok(serde_json::from_slice::<Line>(&last).ok().map(|line| line.at))
}

/// The last whole line of a file. A long journal is not read for it.
fn last_line(path: &Path) -> std::io::Result<Vec<u8>> {
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    let mut part = 4 << 10;
    loop {
        let start = length.saturating_sub(part);
        file.seek(SeekFrom::Start(start))?;
        let mut tail = Vec::new();
        (&mut file).take(length - start).read_to_end(&mut tail)?;
        let whole = tail.iter().rposition(|byte| *byte == b'\n').map_or(&[][..], |end| &tail[..end]);
        let before = whole.iter().rposition(|byte| *byte == b'\n');
        match before {
            Some(before) => return Ok(whole[before + 1..].to_vec()),
            None if start == 0 => return Ok(whole.to_vec()),
            None => part *= 8,
        }
    }
}

/// Reads a journal, changing nothing.
pub fn read(path: &Path) -> Result<Journal, StoreError> {
    let journal = journal::read(&fs::read(path).context("read", path)?);
    meter::journal(journal.lines.len() as u64);
    Ok(journal)
}

/// The journal of one run, where there is one.
pub fn journal(project: &Project, run: &str) -> Result<Option<JournalFile>, StoreError> {
    files::check_name(run)?;
    let path = project.journal(run);
    match fs::metadata(&path) {
        Err(error) if files::absent(&error) => Ok(None),
        other => {
            let metadata = other.context("look at", &path)?;
            let (length, stamp) = (metadata.len(), FileStamp::of(&metadata));
            Ok(Some(JournalFile { run: run.to_owned(), path, length, stamp }))
        }
    }
}

/// All journals, by run. None where there is no store.
pub fn journals(project: &Project) -> Result<Vec<JournalFile>, StoreError> {
    let folder = project.journals();
    let list = match fs::read_dir(&folder) {
        Err(e) if files::absent(&e) => return Ok(Vec::new()),
        other => other.context("list", &folder)?,
    };
    let mut found = Vec::new();
    for entry in list {
        let entry = entry.context("list", &folder)?;
        let path = entry.path();
        if path.extension().is_none_or(|e| e != "jsonl") {
            continue;
        }
        // A pipe here would make every reader wait for ever.
        if !entry.file_type().context("look at", &path)?.is_file() {
            return Err(StoreError::NotAFile { path });
        }
        if let Some(run) = path.file_stem().and_then(|stem| stem.to_str()) {
            match fs::metadata(&path) {
                Err(e) if files::absent(&e) => {}
                other => {
                    let metadata = other.context("look at", &path)?;
                    let (length, stamp) = (metadata.len(), FileStamp::of(&metadata));
                    found.push(JournalFile { run: run.to_owned(), length, stamp, path: path.clone() });
                }
            }
        }
    }
    found.sort_by(|a, b| a.run.cmp(&b.run));
    Ok(found)
}
