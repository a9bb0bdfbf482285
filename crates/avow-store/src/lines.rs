//! Small files of JSON lines that grow: what was collected, what lies elsewhere, what was called otherwise.
//!
//! A line lasts before anything rests on it. A torn last line is none, and the next writer cuts it off; writers of
//! several processes come one after the other, by a lock on the file itself that dies with its holder. Absent: chains,
//! which journals and ledgers have.

use std::fs;
use std::path::Path;

use rustix::fs::FlockOperation;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::{Context, StoreError};
use crate::{disk, files};

/// Every whole line, in order; none where there is no file.
///
/// # Errors
/// [`StoreError::Journal`] with its place for a line that is no such value, and what the disk says.
pub(crate) fn read<T: DeserializeOwned>(path: &Path) -> Result<Vec<T>, StoreError> {
    let text = match fs::read_to_string(path) {
        Err(e) if files::absent(&e) => return Ok(Vec::new()),
        other => other.context("read", path)?,
    };
    let whole = text.rfind('\n').map_or("", |end| &text[..=end]);
    let parse = |(number, line): (usize, &str)| {
        serde_json::from_str(line).map_err(|error| StoreError::Journal {
            path: path.to_owned(),
            line: number + 1,
            reason: error.to_string(),
        })
    };
    whole.lines().enumerate().map(parse).collect()
}

/// Adds lines at the end; they survive a power cut when this returns.
pub(crate) fn append<T: Serialize>(path: &Path, values: &[T]) -> Result<(), StoreError> {
    let file = disk::open_or_create(path).context("open", path)?;
    rustix::fs::flock(&file, FlockOperation::LockExclusive).context("lock", path)?;
    let before = fs::read(path).context("read", path)?;
    let intact = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1) as u64;
    let mut text = String::new();
    for value in values {
        text += &serde_json::to_string(value).expect("a line holds only JSON values");
        text.push('\n');
    }
    if intact < before.len() as u64 {
        disk::shorten(&file, path, intact).context("shorten", path)?;
    }
    disk::write_at(&file, path, text.as_bytes(), intact).context("append to", path)?;
    disk::sync(&file, path, true).context("append to", path)?;
    match path.parent() {
        Some(folder) => files::sync_folder(folder),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_torn_line_is_none_and_is_cut_by_the_next_writer() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("numbers.jsonl");
        assert_eq!(read::<u32>(&path).unwrap(), [0; 0]);
        append(&path, &[1, 2]).unwrap();
        fs::write(&path, "1\n2\n3").unwrap();
        assert_eq!(read::<u32>(&path).unwrap(), [1, 2]);
        append(&path, &[4]).unwrap();
        assert_eq!(read::<u32>(&path).unwrap(), [1, 2, 4]);
        fs::write(&path, "1\nx\n").unwrap();
        assert!(matches!(read::<u32>(&path), Err(StoreError::Journal { line: 2, .. })));
    }

    #[test]
    fn writers_at_once_lose_no_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("numbers.jsonl");
        std::thread::scope(|scope| {
            for writer in 0..4_u32 {
                let path = &path;
                scope.spawn(move || (0..25).for_each(|i| append(path, &[writer * 100 + i]).unwrap()));
            }
        });
        let mut all = read::<u32>(&path).unwrap();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), 100);
    }
}
