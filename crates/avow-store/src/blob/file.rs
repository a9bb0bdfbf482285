//! Blobs as plain read-only files.
//!
//! A blob is written under a temporary name and renamed into place. Its durability is grouped: one
//! [`BlobStore::sync`] makes everything put so far last, by `syncfs`, which flushes the whole file system. Even
//! for one blob that took a quarter of the time of `fsync` on its file and the two folders above it, each of
//! which waits for a commit of its own, and for thirty blobs a thirtieth; its price is that it also waits for what
//! others have just written to the same disk.
//!
//! What a power cut before the sync costs: a name whose content is short or empty. It does not verify, and the
//! next put of the same bytes heals it. So that such a name is never trusted, the digest of a blob is
//! remembered for its stamp only after the sync: a remembered blob is a sound *and* a durable one.

use std::collections::HashMap;
use std::fs::{self, File, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use avow_model::digest::BlobDigest;

use super::temporary::TemporaryFolder;
use super::{BlobStore, Intake, copy};
use crate::disk;
use crate::error::{Context, StoreError};
use crate::files;
use crate::kernel;
use crate::meter;
use crate::project::Project;
use crate::reference::Places;
use crate::stamp::{self, FileStamp, StampCache};

/// Files up to this size are read into memory and written anew where they cannot be moved, or where somebody still
/// has them open for writing: the new file has never been open for writing anywhere else.
const SMALL: u64 = 256 << 10;

/// The most blobs of which a stamp is kept at hand; of others it is looked up again.
const VOUCHED: usize = 500_000;

/// Blobs of a project.
pub struct FileBlobs {
    project: Project,
    stamps: Arc<dyn StampCache>,
    /// Sound but not yet durable; the stamp is kept where it may be remembered.
    fresh: Mutex<HashMap<BlobDigest, Option<FileStamp>>>,
    /// Sound, durable, and remembered: what it was when it was last looked at. Not of more blobs than fit.
    vouched: Mutex<HashMap<BlobDigest, FileStamp>>,
    temporary: OnceLock<TemporaryFolder>,
    /// The device that the blobs lie on.
    device: OnceLock<u64>,
    /// Where files lie that are kept by reference.
    places: Places,
}

impl FileBlobs {
    /// The blobs of a project, with a memory of which were verified before: the sled index, or
    /// [`crate::MemoryStamps`] for a process that does not own it. Touches nothing yet.
    pub fn new(project: Project, stamps: Arc<dyn StampCache>) -> FileBlobs {
        FileBlobs {
            project,
            stamps,
            fresh: Mutex::default(),
            vouched: Mutex::default(),
            temporary: OnceLock::new(),
            device: OnceLock::new(),
            places: Places::default(),
        }
    }

    /// Where a blob lies, whether or not it is there.
    pub fn path(&self, digest: BlobDigest) -> PathBuf {
        self.project.blob(digest)
    }

    /// Compares a blob's bytes with its name, whatever is remembered; its size in bytes.
    pub fn verify(&self, digest: BlobDigest) -> Result<u64, StoreError> {
        let path = self.path(digest);
        let metadata = look(&path)?.ok_or(StoreError::Missing { digest })?;
        self.compare(digest, &path, &metadata)?;
        Ok(metadata.len())
    }

    /// The stamps of blobs that are known to be sound and durable, sorted and each once; `None` where that is not
    /// known of all of them without reading one.
    pub fn vouch(&self, digests: &[BlobDigest]) -> Result<Option<Vec<(BlobDigest, FileStamp)>>, StoreError> {
        let mut digests = digests.to_vec();
        digests.sort_unstable();
        digests.dedup();
        let mut vouched = Vec::with_capacity(digests.len());
        for digest in digests {
            if let Some(stamp) = self.vouched().get(&digest) {
                vouched.push((digest, *stamp));
                continue;
            }
            let Some(metadata) = look(&self.path(digest))? else { return Ok(None) };
            let stamp = FileStamp::of(&metadata);
            if self.stamps.cached_digest(stamp)? != Some(digest) {
                return Ok(None);
            }
            vouched.push((digest, stamp));
        }
        Ok(Some(vouched))
    }

    fn fresh(&self) -> MutexGuard<'_, HashMap<BlobDigest, Option<FileStamp>>> {
        // Every change is one call on the map, so a panic elsewhere cannot leave it half changed.
        self.fresh.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn vouched(&self) -> MutexGuard<'_, HashMap<BlobDigest, FileStamp>> {
        // As above.
        self.vouched.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that a blob with this stamp is sound and durable.
    fn note_vouched(&self, blobs: impl IntoIterator<Item = (BlobDigest, FileStamp)>) {
        let mut vouched = self.vouched();
        for (digest, stamp) in blobs {
            if vouched.len() < VOUCHED {
                vouched.insert(digest, stamp);
            }
        }
    }

    fn temporary(&self) -> Result<&TemporaryFolder, StoreError> {
        if let Some(folder) = self.temporary.get() {
            return Ok(folder);
        }
        // Two threads may both make one; the loser's is removed when it is dropped.
        let made = TemporaryFolder::create(&self.project.temporary())?;
        Ok(self.temporary.get_or_init(|| made))
    }

    /// Whether a sound blob of our own is there, trusting what was verified before.
    fn sound(&self, digest: BlobDigest) -> Result<bool, StoreError> {
        let path = self.path(digest);
        let Some(metadata) = look(&path)? else { return Ok(false) };
        let stamp = FileStamp::of(&metadata);
        if self.stamps.cached_digest(stamp)? == Some(digest) {
            self.note_vouched([(digest, stamp)]);
            return Ok(true);
        }
        if self.fresh().get(&digest) == Some(&Some(stamp)) {
            return Ok(true);
        }
        self.compare(digest, &path, &metadata).map(|()| true)
    }

    /// The file outside that holds a blob we do not hold ourselves; it is checked as a blob of our own is.
    fn origin(&self, digest: BlobDigest) -> Result<Option<PathBuf>, StoreError> {
        let Some(path) = self.places.find(&self.project, digest)? else { return Ok(None) };
        let changed = |how| StoreError::Origin { path: path.clone(), digest, how };
        let metadata = match fs::metadata(&path) {
            Err(e) if files::absent(&e) => return Err(changed("is gone")),
            other => other.context("look at", &path)?,
        };
        let stamp = FileStamp::of(&metadata);
        if self.stamps.cached_digest(stamp)? == Some(digest)
            || self.fresh().get(&digest) == Some(&Some(stamp))
        {
            return Ok(Some(path));
        }
        match self.compare(digest, &path, &metadata) {
            Ok(()) => Ok(Some(path)),
            Err(StoreError::Corrupt { .. }) => Err(changed("was changed since it was recorded")),
            Err(error) => Err(error),
        }
    }

    fn compare(&self, digest: BlobDigest, path: &Path, metadata: &Metadata) -> Result<(), StoreError> {
        let begun = stamp::now();
        meter::blob();
        let found = files::hash(path, metadata.len())?;
        if found != digest {
            return Err(StoreError::Corrupt { digest, found });
        }
        let stamp = FileStamp::of(metadata);
        self.fresh().insert(digest, stamp.settled(begun).then_some(stamp));
        Ok(())
    }

    /// Makes room for a blob: false where a sound one is there already, else any damaged one is moved aside.
    fn wanted(&self, digest: BlobDigest) -> Result<bool, StoreError> {
        match self.sound(digest) {
            Ok(there) => Ok(!there),
            Err(e) if e.is_unusable_blob() => {
                tracing::warn!(%digest, "a damaged blob is replaced");
                self.quarantine(digest).map(|_| true)
            }
            Err(e) => Err(e),
        }
    }

    /// Renames a finished file into place.
    fn place(&self, temporary: &Path, digest: BlobDigest) -> Result<PathBuf, StoreError> {
        let path = self.path(digest);
        let renamed = match disk::rename(temporary, &path) {
            Err(e) if files::absent(&e) => {
                let folder = files::folder_of(&path);
                disk::create_folders(folder).context("create", folder)?;
                disk::rename(temporary, &path)
            }
            other => other,
        };
        renamed.context("name", &path)?;
        Ok(path)
    }

    /// Writes a temporary file with `fill`, which returns the digest, and names it; where `fill` has to see the
    /// bytes to know the digest, the blob may turn out to be there already.
    fn write<T>(
        &self,
        fill: impl FnOnce(&mut File, &Path) -> Result<(BlobDigest, T), StoreError>,
        wanted: impl FnOnce(BlobDigest) -> Result<bool, StoreError>,
    ) -> Result<(BlobDigest, T), StoreError> {
        let (mut file, temporary) = self.temporary()?.file()?;
        let placed = fill(&mut file, &temporary).and_then(|(digest, extra)| {
            if wanted(digest)? {
                let path = self.place(&temporary, digest)?;
                // The rename changed the inode's times, so the stamp is taken after it.
                let stamp = FileStamp::of(&file.metadata().context("look at", &path)?);
                self.fresh().insert(digest, Some(stamp));
            } else {
                disk::remove_file(&temporary).context("remove", &temporary)?;
            }
            Ok((digest, extra))
        });
        if placed.is_err() {
            // The first error is the one to tell; what is left is cleared with the folder.
            let _ = disk::remove_file(&temporary);
        }
        placed
    }

    fn copy_in(&self, source: &File, path: &Path, size: u64) -> Result<(BlobDigest, u64), StoreError> {
        if size <= SMALL {
            let bytes = files::read_open(source, path, size)?;
            return Ok((self.put(&bytes)?, bytes.len() as u64));
        }
        let fill = |file: &mut File, at: &Path| copy::copy_and_hash(source, file, at);
        self.write(fill, |digest| self.wanted(digest))
    }

    /// Takes a file over by renaming it: first away from the folder of whoever wrote it, then, once its bytes are
    /// known, to its name. The caller made sure that it has one name, on our device.
    fn move_in(
        &self,
        source: &File,
        path: &Path,
        before: &Metadata,
    ) -> Result<(BlobDigest, u64), StoreError> {
        let apart = self.temporary()?.name();
        disk::rename(path, &apart).context("move", path)?;
        let taken = self.take_over(source, &apart, before);
        if taken.is_err() {
            // The first error is the one to tell; what is left is cleared with the folder.
            let _ = disk::remove_file(&apart);
        }
        taken
    }

    fn take_over(
        &self,
        source: &File,
        path: &Path,
        before: &Metadata,
    ) -> Result<(BlobDigest, u64), StoreError> {
        // Nobody finds it any more; a program that escaped its supervisor may have it open.
        let alone = kernel::nobody_writes(source);
        if !alone && before.len() <= SMALL {
            let stored = self.copy_in(source, path, before.len())?;
            unchanged(source, path, before)?;
            disk::remove_file(path).context("remove", path)?;
            return Ok(stored);
        }
        disk::protect(source, path).context("protect", path)?;
        let begun = stamp::now();
        let digest = files::hash_open(source, path, before.len())?;
        unchanged(source, path, before)?;
        if !self.wanted(digest)? {
            disk::remove_file(path).context("remove", path)?;
            return Ok((digest, before.len()));
        }
        let placed = self.place(path, digest)?;
        let stamp = FileStamp::of(&source.metadata().context("look at", &placed)?);
        // A program that has it open could have written in the tick in which we hashed it.
        let sure = alone || FileStamp::of(before).settled(begun);
        self.fresh().insert(digest, sure.then_some(stamp));
        Ok((digest, before.len()))
    }
}

/// The metadata of a regular file; `None` where nothing is there.
fn look(path: &Path) -> Result<Option<Metadata>, StoreError> {
    meter::look();
    match fs::symlink_metadata(path) {
        Ok(metadata) if metadata.is_file() => Ok(Some(metadata)),
        Ok(_) => Err(StoreError::NotAFile { path: path.to_owned() }),
        Err(e) if files::absent(&e) => Ok(None),
        Err(e) => Err(e).context("look at", path),
    }
}

/// Checks that size and modification time of an open file are what they were.
fn unchanged(file: &File, path: &Path, before: &Metadata) -> Result<(), StoreError> {
    let (old, new) = (FileStamp::of(before), FileStamp::of(&file.metadata().context("look at", path)?));
    if (old.size, old.modified) == (new.size, new.modified) {
        Ok(())
    } else {
        Err(StoreError::Changed { path: path.to_owned() })
    }
}

impl BlobStore for FileBlobs {
    fn contains(&self, digest: BlobDigest) -> Result<bool, StoreError> {
        Ok(self.sound(digest)? || self.origin(digest)?.is_some())
    }

    fn read(&self, digest: BlobDigest) -> Result<Vec<u8>, StoreError> {
        let mut path = self.path(digest);
        if look(&path)?.is_none() {
            path = self.origin(digest)?.ok_or(StoreError::Missing { digest })?;
        }
        meter::blob();
        let bytes = fs::read(&path).context("read", &path)?;
        let found = BlobDigest::of(&bytes);
        if found == digest { Ok(bytes) } else { Err(StoreError::Corrupt { digest, found }) }
    }

    fn open_path(&self, digest: BlobDigest) -> Result<Option<PathBuf>, StoreError> {
        if self.sound(digest)? {
            return Ok(Some(self.path(digest)));
        }
        self.origin(digest)?.map(Some).ok_or(StoreError::Missing { digest })
    }

    fn put(&self, bytes: &[u8]) -> Result<BlobDigest, StoreError> {
        let digest = BlobDigest::of(bytes);
        if self.wanted(digest)? {
            let fill = |file: &mut File, at: &Path| {
                disk::write(file, at, bytes).context("write", at)?;
                Ok((digest, ()))
            };
            self.write(fill, |_| Ok(true))?;
        }
        Ok(digest)
    }

    fn put_file(&self, path: &Path, how: Intake) -> Result<(BlobDigest, u64), StoreError> {
        let (source, before) = files::open_looked_at(path)?;
        if how == Intake::Move && before.nlink() == 1 && self.same_device(&before)? {
            return self.move_in(&source, path, &before);
        }
        let stored = self.copy_in(&source, path, before.len())?;
        unchanged(&source, path, &before)?;
        if how == Intake::Move {
            disk::remove_file(path).context("remove", path)?;
        }
        Ok(stored)
    }

    fn sync(&self) -> Result<(), StoreError> {
        let batch = self.fresh().clone();
        if batch.is_empty() {
            return Ok(());
        }
        self.temporary()?.sync()?;
        let remembered: Vec<_> = batch.iter().filter_map(|(d, stamp)| stamp.map(|s| (s, *d))).collect();
        self.stamps.remember_digests(&remembered)?;
        self.note_vouched(remembered.into_iter().map(|(stamp, digest)| (digest, stamp)));
        // What was put again meanwhile has another stamp and stays.
        self.fresh().retain(|digest, stamp| batch.get(digest) != Some(stamp));
        Ok(())
    }

    fn size(&self, digest: BlobDigest) -> Result<Option<u64>, StoreError> {
        if let Some(metadata) = look(&self.path(digest))? {
            return Ok(Some(metadata.len()));
        }
        let origin = self.places.find(&self.project, digest)?;
        Ok(origin.and_then(|path| path.metadata().ok()).map(|metadata| metadata.len()))
    }

    fn list(&self) -> Result<Vec<BlobDigest>, StoreError> {
        Ok(self.survey()?.0)
    }

    fn quarantine(&self, digest: BlobDigest) -> Result<Option<PathBuf>, StoreError> {
        let (path, folder) = (self.path(digest), self.project.quarantine());
        disk::create_folders(&folder).context("create", &folder)?;
        let target = folder.join(format!("{digest}.{}", &files::nonce()?[..8]));
        self.fresh().remove(&digest);
        self.vouched().remove(&digest);
        match disk::rename(&path, &target) {
            Err(e) if files::absent(&e) => Ok(None),
            moved => moved.map(|()| Some(target)).context("move aside", &path),
        }
    }
}

impl FileBlobs {
    fn same_device(&self, metadata: &Metadata) -> Result<bool, StoreError> {
        if let Some(device) = self.device.get() {
            return Ok(*device == metadata.dev());
        }
        let root = self.project.blobs();
        let device = fs::metadata(&root).context("look at", &root)?.dev();
        Ok(*self.device.get_or_init(|| device) == metadata.dev())
    }

    /// All blobs by name, sorted, and every path among them that is none.
    pub(crate) fn survey(&self) -> Result<(Vec<BlobDigest>, Vec<PathBuf>), StoreError> {
        let (mut digests, mut foreign) = (Vec::new(), Vec::new());
        for folder in entries(&self.project.blobs())? {
            if !folder.is_dir() || folder.is_symlink() {
                foreign.push(folder);
                continue;
            }
            for path in entries(&folder)? {
                let hex =
                    [&folder, &path].map(|p| p.file_name().unwrap_or_default().to_string_lossy()).concat();
                match hex.parse() {
                    Ok(digest) if self.path(digest) == path => digests.push(digest),
                    _ => foreign.push(path),
                }
            }
        }
        digests.sort_unstable();
        foreign.sort_unstable();
        Ok((digests, foreign))
    }
}

/// The paths in a folder; none where it does not exist.
fn entries(folder: &Path) -> Result<Vec<PathBuf>, StoreError> {
    let list = match fs::read_dir(folder) {
        Err(e) if files::absent(&e) => return Ok(Vec::new()),
        other => other.context("list", folder)?,
    };
    list.map(|entry| Ok(entry.context("list", folder)?.path())).collect()
}
