//! A folder that passes from an attempt to the next one of the same action.
//!
//! What an attempt that did not succeed leaves in its checkpoint folder is kept under the action's digest, in
//! the state in which the program left it, and moved into the working folder of the next attempt. Moving is one
//! `rename`, so there is never a copy that is half made. A note beside the folder says which attempts worked on
//! it; it is written before the folder moves, so that [`rescue_checkpoint`] finds what an attempt whose runner
//! was killed left in its working folder. After a success nothing is kept.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use avow_model::attempt::AttemptId;
use avow_model::digest::ActionDigest;

const NOTE: &str = "attempts";
const FOLDER: &str = "folder";

/// The checkpoint folder of one attempt.
#[derive(Debug)]
pub(crate) struct Checkpoint {
    /// Where it is in the working folder.
    inside: PathBuf,
    /// Where it is kept; `None` where nothing is kept.
    kept: Option<PathBuf>,
    /// The attempts that worked on it before, oldest first.
    pub(crate) before: Vec<AttemptId>,
}

impl Checkpoint {
    /// Puts what earlier attempts of `action` left at `place` in the working folder `run`, or makes an empty
    /// folder there.
    pub(crate) fn give(
        kept: Option<&Path>,
        action: ActionDigest,
        attempt: &AttemptId,
        run: &Path,
        place: &str,
    ) -> io::Result<Checkpoint> {
        let inside = run.join(place);
        if let Some(parent) = inside.parent() {
            fs::create_dir_all(parent)?;
        }
        let Some(kept) = kept.map(|root| root.join(action.to_string())) else {
            fs::create_dir(&inside)?;
            return Ok(Checkpoint { inside, kept: None, before: Vec::new() });
        };
        fs::create_dir_all(&kept)?;
        let folder = kept.join(FOLDER);
        let found = fs::symlink_metadata(&folder).is_ok_and(|about| about.is_dir());
        let before = if found { Note::read(&kept)?.attempts } else { Vec::new() };
        let attempts = before.iter().chain([attempt]).cloned().collect();
        Note { place: place.to_owned(), attempts }.write(&kept)?;
        if found {
            rename(&folder, &inside)?
        } else {
            fs::create_dir(&inside)?
        }
        Ok(Checkpoint { inside, kept: Some(kept), before })
    }

    /// Keeps what is there for the next attempt.
    pub(crate) fn keep(self) -> io::Result<()> {
        match &self.kept {
            Some(kept) if holds_something(&self.inside) => rename(&self.inside, &kept.join(FOLDER)),
            _ => self.forget(),
        }
    }

    /// Keeps nothing.
    pub(crate) fn forget(self) -> io::Result<()> {
        match &self.kept {
            Some(kept) => crate::folder::remove(kept),
            None => Ok(()),
        }
    }

    /// Where it is in the working folder.
    pub(crate) fn inside(&self) -> &Path {
        &self.inside
    }
}

fn holds_something(folder: &Path) -> bool {
    let is_folder = fs::symlink_metadata(folder).is_ok_and(|about| about.is_dir());
    // A folder that its program made unreadable may hold something.
    is_folder && fs::read_dir(folder).map_or(true, |mut entries| entries.next().is_some())
}

/// Moves a folder, also one whose program took away the right to do so.
fn rename(from: &Path, to: &Path) -> io::Result<()> {
    match fs::rename(from, to) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            fs::set_permissions(from, PermissionsExt::from_mode(0o700))?;
            fs::rename(from, to)
        }
        other => other,
    }
}

/// Which attempts worked on a checkpoint, oldest first, and where in its working folder the last of them has it.
/// One line each; the place first.
#[derive(Debug, Default)]
struct Note {
    place: String,
    attempts: Vec<AttemptId>,
}

impl Note {
    fn read(kept: &Path) -> io::Result<Note> {
        let text = match fs::read_to_string(kept.join(NOTE)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Note::default()),
            other => other?,
        };
        let mut lines = text.lines().map(str::to_owned);
        Ok(Note { place: lines.next().unwrap_or_default(), attempts: lines.map(AttemptId).collect() })
    }

    fn write(&self, kept: &Path) -> io::Result<()> {
        let ids = self.attempts.iter().map(|attempt| attempt.0.as_str());
        let lines: Vec<&str> = [self.place.as_str()].into_iter().chain(ids).collect();
        let draft = kept.join("attempts.new");
        fs::write(&draft, lines.join("\n") + "\n")?;
        fs::rename(draft, kept.join(NOTE))
    }
}

/// The checkpoint that waits for the next attempt at an action: its folder, and the attempts that worked on it.
///
/// # Errors
/// Where its note cannot be read.
pub fn waiting_checkpoint(
    checkpoints: &Path,
    action: ActionDigest,
) -> io::Result<Option<(PathBuf, Vec<AttemptId>)>> {
    let kept = checkpoints.join(action.to_string());
    let there = fs::symlink_metadata(kept.join(FOLDER)).is_ok_and(|about| about.is_dir());
    there.then(|| Note::read(&kept).map(|note| (kept, note.attempts))).transpose()
}

/// Takes back every checkpoint that lies in the working folder of an attempt whose runner died; how many. For
/// whoever is alone: another's attempt at work would lose its checkpoint.
///
/// # Errors
/// Where the folder of checkpoints cannot be read; a single one that resists is logged and lost.
pub fn rescue_checkpoints(checkpoints: &Path, work: &Path) -> io::Result<usize> {
    let entries = match fs::read_dir(checkpoints) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
        other => other?,
    };
    let mut rescued = 0;
    for entry in entries {
        let kept = entry?.path();
        let last = |note: Note| note.attempts.into_iter().next_back();
        let result = Note::read(&kept).map(last).and_then(|last| match last {
            Some(attempt) => rescue(&kept, work, &attempt),
            None => Ok(false),
        });
        match result {
            Ok(took) => rescued += usize::from(took),
            Err(error) => tracing::warn!(folder = %kept.display(), %error, "a checkpoint is lost"),
        }
    }
    Ok(rescued)
}

/// Takes back the checkpoint that lies in the working folder of an attempt whose runner died; whether there was
/// one.
///
/// To be called after [`crate::end_survivors`], and while nobody can start another attempt at the action.
///
/// # Errors
/// Where the note cannot be read or the folder cannot be moved; then it stays where it is.
pub fn rescue_checkpoint(
    checkpoints: &Path,
    work: &Path,
    action: ActionDigest,
    attempt: &AttemptId,
) -> io::Result<bool> {
    rescue(&checkpoints.join(action.to_string()), work, attempt)
}

fn rescue(kept: &Path, work: &Path, attempt: &AttemptId) -> io::Result<bool> {
    let note = Note::read(kept)?;
    let folder = kept.join(FOLDER);
    if note.attempts.last() != Some(attempt) || fs::symlink_metadata(&folder).is_ok() {
        return Ok(false);
    }
    let place = crate::folder::run_folder(&work.join(&attempt.0)).join(&note.place);
    if holds_something(&place) {
        rename(&place, &folder)?;
        return Ok(true);
    }
    crate::folder::remove(kept)?;
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(name: &str) -> AttemptId {
        AttemptId(name.to_owned())
    }

    struct Place {
        folder: tempfile::TempDir,
        action: ActionDigest,
    }

    impl Place {
        fn new() -> Place {
            Place { folder: tempfile::tempdir().unwrap(), action: ActionDigest::from_bytes([7; 32]) }
        }

        fn kept(&self) -> PathBuf {
            self.folder.path().join("checkpoints")
        }

        fn work(&self) -> PathBuf {
            self.folder.path().join("work")
        }

        fn give(&self, attempt: &str) -> Checkpoint {
            let run = crate::folder::run_folder(&self.work().join(attempt));
            fs::create_dir_all(&run).unwrap();
            Checkpoint::give(Some(&self.kept()), self.action, &id(attempt), &run, "deep/ckpt").unwrap()
        }
    }

    #[test]
    fn what_an_attempt_leaves_is_found_by_the_next_and_gone_after_a_success() {
        let place = Place::new();
        let first = place.give("a");
        assert!(first.before.is_empty());
        fs::write(first.inside().join("step"), "1").unwrap();
        first.keep().unwrap();
        let second = place.give("b");
        assert_eq!(second.before, [id("a")]);
        assert_eq!(fs::read(second.inside().join("step")).unwrap(), b"1");
        second.keep().unwrap();
        let third = place.give("c");
        assert_eq!(third.before, [id("a"), id("b")]);
        third.forget().unwrap();
        assert_eq!(fs::read_dir(place.kept()).unwrap().count(), 0);
    }

    #[test]
    fn an_empty_folder_is_no_checkpoint() {
        let place = Place::new();
        place.give("a").keep().unwrap();
        assert!(place.give("b").before.is_empty());
    }

    fn taken_back(place: &Place, attempt: &str) -> bool {
        rescue_checkpoint(&place.kept(), &place.work(), place.action, &id(attempt)).unwrap()
    }

    #[test]
    fn what_a_killed_runner_left_in_a_working_folder_is_taken_back() {
        let place = Place::new();
        let checkpoint = place.give("a");
        fs::write(checkpoint.inside().join("half"), "1").unwrap();
        drop(checkpoint);
        assert!(!taken_back(&place, "another"), "it is not that attempt's");
        assert!(taken_back(&place, "a"));
        assert!(!taken_back(&place, "a"), "it is there already");
        let again = place.give("b");
        assert_eq!(again.before, [id("a")]);
        assert_eq!(fs::read(again.inside().join("half")).unwrap(), b"1");
    }

    #[test]
    fn a_runner_killed_before_the_folder_moved_loses_nothing() {
        let place = Place::new();
        let first = place.give("a");
        fs::write(first.inside().join("step"), "1").unwrap();
        first.keep().unwrap();
        let kept = place.kept().join(place.action.to_string());
        Note { place: "deep/ckpt".to_owned(), attempts: vec![id("a"), id("b")] }.write(&kept).unwrap();
        assert!(!taken_back(&place, "b"));
        assert_eq!(place.give("c").before, [id("a"), id("b")]);
    }
}
