//! Answers with the stamps of everything they were read from.
//!
//! An answer holds as long as each of those files and folders has the stamp it had. It is remembered only where
//! every stamp is old enough that a later change must show in it. The file may be deleted at any time; one that
//! cannot be read is as none.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use avow_model::digest::BlobDigest;
use avow_store::{FileStamp, stamp};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// The form of the file; another form is as none.
const FORM: u32 = 1;

type Stamp = Option<[i64; 5]>;

#[derive(Default, Serialize, Deserialize)]
struct Stored {
    form: u32,
    answers: BTreeMap<String, Answer>,
}

#[derive(Serialize, Deserialize)]
struct Answer {
    seen: BTreeMap<PathBuf, Stamp>,
    value: serde_json::Value,
}

/// What was found out.
pub(super) struct Memory {
    file: Option<PathBuf>,
    stored: RefCell<Stored>,
    changed: Cell<bool>,
}

/// What an answer is read from, as far as it was looked at.
pub(super) struct Witness {
    seen: BTreeMap<PathBuf, Stamp>,
    begun: i64,
    settled: bool,
}

impl Memory {
    pub(super) fn open(file: Option<PathBuf>) -> Memory {
        let bytes = file.as_ref().and_then(|file| std::fs::read(file).ok());
        let stored = bytes.and_then(|bytes| serde_json::from_slice::<Stored>(&bytes).ok());
        let stored = stored.filter(|stored| stored.form == FORM).unwrap_or_default();
        Memory { file, stored: RefCell::new(stored), changed: Cell::new(false) }
    }

    /// The remembered answer where it still holds, else the one that `find` gives.
    pub(super) fn answer<T: Serialize + DeserializeOwned>(
        &self,
        key: &str,
        find: impl FnOnce(&mut Witness) -> T,
    ) -> T {
        if let Some(known) = self.known(key) {
            return known;
        }
        let mut witness = Witness { seen: BTreeMap::new(), begun: stamp::now(), settled: true };
        let value = find(&mut witness);
        if witness.settled
            && let Ok(json) = serde_json::to_value(&value)
        {
            let answer = Answer { seen: witness.seen, value: json };
            self.stored.borrow_mut().answers.insert(key.to_owned(), answer);
            self.changed.set(true);
        }
        value
    }

    fn known<T: DeserializeOwned>(&self, key: &str) -> Option<T> {
        let stored = self.stored.borrow();
        let answer = stored.answers.get(key)?;
        let holds = answer.seen.iter().all(|(path, stamp)| stamp_of(path).map(numbers) == *stamp);
        holds.then(|| serde_json::from_value(answer.value.clone()).ok())?
    }

    /// Writes everything down. That it cannot be written only costs time.
    pub(super) fn save(&self) {
        let (Some(file), true) = (&self.file, self.changed.get()) else { return };
        let mut stored = self.stored.borrow_mut();
        stored.form = FORM;
        let written = serde_json::to_vec(&*stored).map_err(std::io::Error::other).and_then(|bytes| {
            let folder = file.parent().unwrap_or(Path::new("."));
            if folder.parent().is_some_and(Path::is_dir) && !folder.is_dir() {
                std::fs::create_dir(folder)?;
            }
            let mut temporary = tempfile::NamedTempFile::new_in(folder)?;
            std::io::Write::write_all(&mut temporary, &bytes)?;
            temporary.persist(file).map_err(|error| error.error)
        });
        match written {
            Ok(_) => self.changed.set(false),
            Err(error) => tracing::debug!(%error, "what programs load is not remembered"),
        }
    }
}

impl Witness {
    /// Notes that the answer depends on what is at a path, or that nothing is.
    pub(super) fn look(&mut self, path: &Path) -> bool {
        let stamp = stamp_of(path);
        self.settled &= stamp.is_none_or(|stamp| stamp.settled(self.begun));
        self.seen.insert(path.to_owned(), stamp.map(numbers));
        stamp.is_some()
    }

    /// The bytes of a file that the answer depends on.
    pub(super) fn read(&mut self, path: &Path) -> Option<Vec<u8>> {
        self.look(path);
        std::fs::read(path).ok()
    }

    /// The text of a file that the answer depends on.
    pub(super) fn text(&mut self, path: &Path) -> Option<String> {
        self.read(path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
    }

    /// The digest of a file that the answer depends on.
    pub(super) fn digest(&mut self, path: &Path) -> Option<BlobDigest> {
        self.look(path);
        let mut hasher = blake3::Hasher::new();
        hasher.update_mmap_rayon(path).ok()?;
        Some(BlobDigest::from_bytes(*hasher.finalize().as_bytes()))
    }

    /// The names in a folder that the answer depends on, sorted.
    pub(super) fn names(&mut self, folder: &Path) -> Vec<String> {
        self.look(folder);
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        let mut names: Vec<String> =
            entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.sort();
        names
    }
}

fn stamp_of(path: &Path) -> Option<FileStamp> {
    std::fs::metadata(path).ok().map(|metadata| FileStamp::of(&metadata))
}

#[expect(clippy::cast_possible_wrap, reason = "only compared for equality")]
fn numbers(stamp: FileStamp) -> [i64; 5] {
    let FileStamp { device, inode, size, modified, changed } = stamp;
    [device as i64, inode as i64, size as i64, modified, changed]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_holds_until_what_it_was_read_from_changes() {
        let folder = tempfile::tempdir().unwrap();
        let (file, memory) = (folder.path().join("a"), folder.path().join("memory.json"));
        std::fs::write(&file, "one").unwrap();
        let old = std::time::SystemTime::now() - std::time::Duration::from_secs(60);
        std::fs::File::options().append(true).open(&file).unwrap().set_modified(old).unwrap();
        let asked = Cell::new(0);
        let ask = |memory: &Memory| {
            memory.answer("a", |witness| {
                asked.set(asked.get() + 1);
                witness.text(&file)
            })
        };
        // The time of the change of the inode is now, so that nothing may be remembered yet.
        let first = Memory::open(Some(memory.clone()));
        assert_eq!(ask(&first).as_deref(), Some("one"));
        std::thread::sleep(std::time::Duration::from_millis(50));
        assert_eq!(ask(&first).as_deref(), Some("one"));
        first.save();
        let known = asked.get();
        let second = Memory::open(Some(memory));
        assert_eq!(ask(&second).as_deref(), Some("one"));
        assert_eq!(asked.get(), known, "it was remembered");
        std::fs::write(&file, "two").unwrap();
        assert_eq!(ask(&second).as_deref(), Some("two"));
    }
}
