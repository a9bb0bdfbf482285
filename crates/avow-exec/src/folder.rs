//! The private folder of an attempt: `run` (its working folder), `tmp`, and the two logs beside them.
//!
//! The logs are opened for appending, so that several processes may write them and `/dev/stderr` may be opened
//! again; a program that opens `/dev/stderr` *for truncation*, as `> /dev/stderr` in a shell does, empties what
//! was logged before, as with every log that is a file. `>&2` does not.
//!
//! Making and removing five inodes can cost more than starting a process. So [`Folders`] keeps a folder that an
//! attempt left empty, and renames it for the next one. It does so only if nothing of the attempt can be seen in
//! it: everything inside is removed, and modes, kinds and extended attributes are as they were made; the folder of
//! inputs stays only for an attempt that has inputs as well. Otherwise the folder is removed. What is kept bears the name of its last attempt until it is taken, and goes with the
//! executor. The rule set of its confinement holds for the inode, so it is kept with the folder.

use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use avow_model::attempt::AttemptId;
use rustix::fs::{OFlags, llistxattr_query};

use crate::confine::protection::Rules;

/// What the folder of a failed attempt that was kept on request is called: `kept-ATTEMPT`.
pub const KEPT: &str = "kept-";

/// The working folder in the folder of an attempt.
pub(crate) fn run_folder(attempt: &Path) -> PathBuf {
    attempt.join(RUN)
}

const RUN: &str = "run";
/// Where specs have inputs laid, in the working folder.
const INPUTS: &str = "inputs";
const TEMPORARY: &str = "tmp";
const LOGS: [&str; 2] = ["stdout", "stderr"];

/// Standard output and standard error of an attempt while it runs, below the folder of attempts.
pub fn logs(work: &Path, attempt: &AttemptId) -> [PathBuf; 2] {
    LOGS.map(|name| work.join(&attempt.0).join(name))
}

/// Makes the folders of attempts, or uses an empty one again.
#[derive(Debug)]
pub(crate) struct Folders {
    work: PathBuf,
    spare: Mutex<Vec<Spare>>,
}

/// An empty folder with the modes that it was made with.
#[derive(Debug)]
struct Spare {
    root: PathBuf,
    mode: u32,
    /// Whether it has an empty folder of inputs.
    inputs: bool,
    rules: Option<Rules>,
}

impl Folders {
    /// In this folder, which exists.
    pub(crate) fn new(work: PathBuf) -> Self {
        Self { work, spare: Mutex::default() }
    }

    /// A folder for an attempt, with `run` and `tmp`. `inputs`: something will be laid below `run/inputs`, so that an
    /// empty one may be there already.
    pub(crate) fn take(&self, attempt: &AttemptId, inputs: bool) -> io::Result<Folder<'_>> {
        let root = self.work.join(&attempt.0);
        let spare = self.spare.lock().unwrap_or_else(PoisonError::into_inner).pop();
        if let Some(Spare { root: old, mode, inputs: has, rules }) = spare
            && fs::rename(&old, &root).is_ok()
        {
            let folder = Folder { folders: self, root, mode, keep: false, rules };
            if has && !inputs {
                fs::remove_dir(folder.run().join(INPUTS))?;
            }
            return Ok(folder);
        }
        fs::create_dir(&root)?;
        let mode = fs::metadata(&root)?.mode();
        let folder = Folder { folders: self, mode, root, keep: false, rules: None };
        fs::create_dir(folder.run())?;
        fs::create_dir(folder.temporary())?;
        Ok(folder)
    }
}

impl Drop for Folders {
    fn drop(&mut self) {
        for spare in self.spare.get_mut().unwrap_or_else(PoisonError::into_inner) {
            if let Err(error) = remove(&spare.root) {
                tracing::warn!(folder = %spare.root.display(), %error, "the folder of an attempt stays behind");
            }
        }
    }
}

/// The folder of one attempt; given back empty, or removed with everything in it, when dropped.
#[derive(Debug)]
pub(crate) struct Folder<'a> {
    folders: &'a Folders,
    root: PathBuf,
    mode: u32,
    keep: bool,
    rules: Option<Rules>,
}

impl Folder<'_> {
    /// The whole of it: what the stage may write to.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// The rule set that its last attempt had, if any.
    pub(crate) fn take_rules(&mut self) -> Option<Rules> {
        self.rules.take()
    }

    /// Sets the rule set of this attempt.
    pub(crate) fn set_rules(&mut self, rules: Option<Rules>) {
        self.rules = rules;
    }

    /// The rule set of this attempt.
    pub(crate) fn rules(&self) -> Option<&Rules> {
        self.rules.as_ref()
    }

    /// The working folder.
    pub(crate) fn run(&self) -> PathBuf {
        run_folder(&self.root)
    }

    /// For temporary files.
    pub(crate) fn temporary(&self) -> PathBuf {
        self.root.join(TEMPORARY)
    }

    /// Standard output and standard error.
    pub(crate) fn logs(&self) -> [PathBuf; 2] {
        LOGS.map(|name| self.root.join(name))
    }

    /// An empty log.
    pub(crate) fn log(path: &Path) -> io::Result<File> {
        let flags = OFlags::NOFOLLOW.bits().cast_signed();
        OpenOptions::new().append(true).create(true).custom_flags(flags).open(path)
    }

    /// Bytes that its files occupy on disk, and the length of the longest file.
    pub(crate) fn occupied(&self) -> Occupied {
        let mut total = Occupied::default();
        measure(&self.root, &mut total);
        total
    }

    /// Leaves the folder on disk under another name instead of removing it.
    pub(crate) fn keep(&mut self) {
        self.keep = true;
    }

    fn kept(&self) -> PathBuf {
        let mut kept = std::ffi::OsString::from(KEPT);
        kept.push(self.root.file_name().expect("made from a name"));
        self.root.with_file_name(kept)
    }

    /// Removes what the attempt left; where the folder is as it was made, whether it has a folder of inputs.
    fn empty(&self) -> io::Result<Option<bool>> {
        for entry in fs::read_dir(&self.root)? {
            let entry = entry?;
            let name = entry.file_name();
            let is_folder = entry.file_type()?.is_dir();
            if is_folder && (name == RUN || name == TEMPORARY) {
                clear(&entry.path(), |inner| name == RUN && inner == INPUTS)?;
            } else if is_folder {
                remove(&entry.path())?;
            } else if !LOGS.iter().any(|log| name == *log) || !self.is_fresh_log(&entry.path())? {
                fs::remove_file(entry.path())?;
            }
        }
        let folders = [self.root.clone(), self.run(), self.temporary()];
        let fresh = folders
            .iter()
            .try_fold(true, |fresh, folder| Ok::<_, io::Error>(fresh && self.is_fresh(folder)?));
        if !fresh? {
            return Ok(None);
        }
        let inputs = self.run().join(INPUTS);
        if self.is_fresh(&inputs)? {
            clear(&inputs, |_| false)?;
            return Ok(Some(true));
        }
        match fs::symlink_metadata(&inputs) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            _ => remove(&inputs)?,
        }
        Ok(Some(false))
    }

    fn is_fresh(&self, folder: &Path) -> io::Result<bool> {
        match fs::symlink_metadata(folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            other => Ok(other?.mode() == self.mode && has_no_attributes(folder)),
        }
    }

    fn is_fresh_log(&self, log: &Path) -> io::Result<bool> {
        let about = fs::symlink_metadata(log)?;
        let mode = self.mode & 0o666;
        let plain = about.is_file() && about.len() == 0 && about.nlink() == 1;
        Ok(plain && about.mode() & 0o7777 == mode && has_no_attributes(log))
    }
}

fn has_no_attributes(path: &Path) -> bool {
    // A file system without extended attributes says so with an error.
    llistxattr_query(path).map_or(true, |length| length == 0)
}

/// Removes everything inside a folder but folders with a name that is to stay.
fn clear(folder: &Path, stays: impl Fn(&OsStr) -> bool) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if !entry.file_type()?.is_dir() {
            fs::remove_file(entry.path())?;
        } else if !stays(&entry.file_name()) {
            remove(&entry.path())?;
        }
    }
    Ok(())
}

impl Drop for Folder<'_> {
    fn drop(&mut self) {
        let done = if self.keep {
            fs::rename(&self.root, self.kept())
        } else if let Ok(Some(inputs)) = self.empty() {
            let spare = Spare { root: self.root.clone(), mode: self.mode, inputs, rules: self.rules.take() };
            self.folders.spare.lock().unwrap_or_else(PoisonError::into_inner).push(spare);
            Ok(())
        } else {
            remove(&self.root)
        };
        if let Err(error) = done {
            // Not fatal: the next run clears what is left in the folder of attempts.
            tracing::warn!(folder = %self.root.display(), %error, "the folder of an attempt stays behind");
        }
    }
}

/// What a folder holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Occupied {
    /// Bytes on disk.
    pub(crate) bytes: u64,
    /// The length of the longest file.
    pub(crate) longest: u64,
}

fn measure(folder: &Path, total: &mut Occupied) {
    // Files come and go while we look: what cannot be read occupies nothing.
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let Ok(about) = entry.metadata() else { continue };
        total.bytes += about.blocks() * 512;
        if about.is_dir() {
            measure(&entry.path(), total);
        } else if about.is_file() {
            total.longest = total.longest.max(about.len());
        }
    }
}

/// Removes a folder with everything in it, following no link, also where a program took away the right to do so.
pub(crate) fn remove(folder: &Path) -> io::Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            unlock(folder)?;
            fs::remove_dir_all(folder)
        }
        other => other,
    }
}

fn unlock(folder: &Path) -> io::Result<()> {
    fs::set_permissions(folder, PermissionsExt::from_mode(0o700))?;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            unlock(&entry.path())?;
        }
    }
    Ok(())
}

/// The attempts that have a folder in the folder of attempts, without those that were kept on request.
///
/// # Errors
/// Where the folder of attempts cannot be read.
pub fn attempt_folders(work: &Path) -> io::Result<Vec<AttemptId>> {
    let entries = match fs::read_dir(work) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        other => other?,
    };
    let mut attempts = Vec::new();
    for entry in entries {
        let entry = entry?;
        let name = entry.file_name();
        let Some(name) = name.to_str() else { continue };
        let attempt = name.len() == 32 && name.bytes().all(|b| b.is_ascii_hexdigit());
        if attempt && entry.file_type()?.is_dir() {
            attempts.push(AttemptId(name.to_owned()));
        }
    }
    Ok(attempts)
}

/// Removes the folders of these attempts, whose runs are dead; how many. One that resists is logged and left.
///
/// To be called after [`crate::end_survivors`], so that nobody writes into them any more.
pub fn clear_leftovers(work: &Path, attempts: impl IntoIterator<Item = AttemptId>) -> usize {
    let mut removed = 0;
    for attempt in attempts {
        let folder = work.join(&attempt.0);
        match remove(&folder) {
            Ok(()) => removed += 1,
            // Another run clears as well.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => tracing::warn!(folder = %folder.display(), %error, "a leftover stays behind"),
        }
    }
    removed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_folders_of_attempts_are_cleared() {
        let work = tempfile::tempdir().unwrap();
        let attempt = "0123456789abcdef0123456789abcdef";
        for name in [attempt, &format!("{KEPT}{attempt}"), "other"] {
            fs::create_dir_all(work.path().join(name).join("run/deep")).unwrap();
        }
        let found = attempt_folders(work.path()).unwrap();
        assert_eq!(found, [id(attempt)]);
        assert_eq!(clear_leftovers(work.path(), found), 1);
        assert_eq!(clear_leftovers(work.path(), [id(attempt)]), 0, "somebody else was faster");
        assert!(!work.path().join(attempt).exists());
        assert!(work.path().join("other").exists() && work.path().join(format!("{KEPT}{attempt}")).exists());
        assert_eq!(attempt_folders(&work.path().join("none")).unwrap(), []);
    }

    #[test]
    fn removal_leaves_what_a_link_points_to() {
        let outside = tempfile::tempdir().unwrap();
        fs::write(outside.path().join("precious"), "x").unwrap();
        let work = tempfile::tempdir().unwrap();
        let folders = Folders::new(work.path().to_owned());
        let folder = folders.take(&id("a"), false).unwrap();
        std::os::unix::fs::symlink(outside.path(), folder.run().join("link")).unwrap();
        fs::remove_dir(folder.temporary()).unwrap();
        std::os::unix::fs::symlink(outside.path(), folder.temporary()).unwrap();
        drop(folder);
        assert!(outside.path().join("precious").exists());
        assert_eq!(fs::read_dir(work.path()).unwrap().count(), 0, "it is not used again");
    }

    fn id(name: &str) -> AttemptId {
        AttemptId(name.to_owned())
    }

    #[test]
    fn an_emptied_folder_is_used_again_and_goes_with_the_executor() {
        let work = tempfile::tempdir().unwrap();
        let folders = Folders::new(work.path().to_owned());
        let folder = folders.take(&id("a"), false).unwrap();
        let inode = fs::metadata(folder.run()).unwrap().ino();
        fs::create_dir_all(folder.run().join("deep/er")).unwrap();
        fs::write(folder.temporary().join("t"), "x").unwrap();
        fs::write(folder.root().join("stray"), "x").unwrap();
        fs::write(&folder.logs()[0], "said").unwrap();
        Folder::log(&folder.logs()[1]).unwrap();
        drop(folder);
        let folder = folders.take(&id("b"), false).unwrap();
        assert_eq!(fs::metadata(folder.run()).unwrap().ino(), inode);
        let mut names: Vec<_> =
            fs::read_dir(folder.root()).unwrap().map(|e| e.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(names, ["run", "stderr", "tmp"]);
        assert_eq!(folder.occupied().longest, 0);
        drop(folder);
        drop(folders);
        assert_eq!(fs::read_dir(work.path()).unwrap().count(), 0);
    }

    #[test]
    fn the_folder_of_inputs_is_kept_for_attempts_with_inputs_alone() {
        let work = tempfile::tempdir().unwrap();
        let folders = Folders::new(work.path().to_owned());
        let folder = folders.take(&id("a"), true).unwrap();
        let inputs = folder.run().join(INPUTS);
        fs::create_dir_all(inputs.join("deep")).unwrap();
        std::os::unix::fs::symlink("/etc/hostname", inputs.join("link")).unwrap();
        let inode = fs::metadata(&inputs).unwrap().ino();
        drop(folder);
        let folder = folders.take(&id("b"), true).unwrap();
        let inputs = folder.run().join(INPUTS);
        assert_eq!(fs::metadata(&inputs).unwrap().ino(), inode);
        assert_eq!(fs::read_dir(&inputs).unwrap().count(), 0);
        drop(folder);
        let folder = folders.take(&id("c"), false).unwrap();
        let inputs = folder.run().join(INPUTS);
        assert!(!inputs.exists(), "who declared no inputs sees none");
        fs::create_dir(&inputs).unwrap();
        fs::set_permissions(&inputs, PermissionsExt::from_mode(0o700)).unwrap();
        drop(folder);
        let folder = folders.take(&id("d"), true).unwrap();
        assert!(!folder.run().join(INPUTS).exists(), "nor one that an attempt has changed");
        std::os::unix::fs::symlink("/etc", folder.run().join(INPUTS)).unwrap();
        drop(folder);
        let folder = folders.take(&id("e"), true).unwrap();
        assert!(folder.run().join(INPUTS).symlink_metadata().is_err());
    }

    #[test]
    fn a_folder_with_a_changed_mode_or_attribute_is_not_used_again() {
        let work = tempfile::tempdir().unwrap();
        let folders = Folders::new(work.path().to_owned());
        let folder = folders.take(&id("a"), false).unwrap();
        fs::set_permissions(folder.run(), PermissionsExt::from_mode(0o700)).unwrap();
        drop(folder);
        assert_eq!(fs::read_dir(work.path()).unwrap().count(), 0);
        let folder = folders.take(&id("b"), false).unwrap();
        let flags = rustix::fs::XattrFlags::empty();
        let supported = rustix::fs::setxattr(folder.temporary(), "user.mark", b"x", flags).is_ok();
        drop(folder);
        assert_eq!(fs::read_dir(work.path()).unwrap().count(), usize::from(!supported));
    }
}
