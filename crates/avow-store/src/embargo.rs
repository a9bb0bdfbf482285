//! What is private about a chain under embargo: its openings, and which file of `registrations/` is whose.
//!
//! `.avow/embargo/EXPERIMENT/` lies in the store folder, which nobody publishes: `chain` holds the name of the ledger's
//! file, `DIGITS.opening.json` and `DIGITS.body.json` what opens the commitment that begins with these digits. They are
//! readable by their owner alone. Without them nobody can ever open the commitment.

use std::fs;
use std::path::PathBuf;

use avow_model::ledger::Ledger;
use avow_model::ledger::embargo::Opening;

use crate::disk;
use crate::error::{Context, StoreError};
use crate::files;
use crate::project::Project;

/// What names of ledgers under embargo begin with.
const PREFIX: &str = "embargo-";
/// Digits of a commitment in the names of its files.
const DIGITS: usize = 16;

fn folder(project: &Project, experiment: &str) -> PathBuf {
    project.store().join("embargo").join(experiment)
}

/// The name that a chain under embargo has as a file, from the digest of its first line.
pub(crate) fn name_of(chain: &str) -> String {
    format!("{PREFIX}{}", chain.get(..8).unwrap_or(chain))
}

/// Whether a name is that of a chain under embargo, whoever's.
pub(crate) fn is_name(name: &str) -> bool {
    name.strip_prefix(PREFIX)
        .is_some_and(|digits| digits.len() == 8 && digits.bytes().all(|b| b.is_ascii_hexdigit()))
}

/// The name of the file that an experiment's ledger has in the project while it is under embargo.
pub(crate) fn chain(project: &Project, experiment: &str) -> Result<Option<String>, StoreError> {
    let path = folder(project, experiment).join("chain");
    match fs::read_to_string(&path) {
        Err(error) if files::absent(&error) => Ok(None),
        other => Ok(Some(other.context("read", &path)?.trim().to_owned()).filter(|name| is_name(name))),
    }
}

/// The experiments that are under embargo here, with the names of their files.
pub(crate) fn all(project: &Project) -> Result<Vec<(String, String)>, StoreError> {
    let path = project.store().join("embargo");
    let list = match fs::read_dir(&path) {
        Err(error) if files::absent(&error) => return Ok(Vec::new()),
        other => other.context("list", &path)?,
    };
    let mut all = Vec::new();
    for entry in list {
        if let Ok(experiment) = entry.context("list", &path)?.file_name().into_string()
            && let Some(name) = chain(project, &experiment)?
        {
            all.push((experiment, name));
        }
    }
    all.sort();
    Ok(all)
}

/// Puts an experiment under embargo, or ends that.
pub(crate) fn set_chain(project: &Project, experiment: &str, name: Option<&str>) -> Result<(), StoreError> {
    let folder = folder(project, experiment);
    let path = folder.join("chain");
    match name {
        Some(name) => {
            disk::create_folders(&folder).context("create", &folder)?;
            files::write_whole(&path, format!("{name}\n").as_bytes())
        }
        None => match disk::remove_file(&path) {
            // Whoever opens with files from elsewhere has no such folder.
            Err(error) if files::absent(&error) => Ok(()),
            removed => {
                removed.context("remove", &path)?;
                files::sync_folder(&folder)
            }
        },
    }
}

/// Keeps what opens a commitment, before its line is written.
pub(crate) fn keep(project: &Project, experiment: &str, opening: &Opening) -> Result<(), StoreError> {
    let folder = folder(project, experiment);
    disk::create_folders(&folder).context("create", &folder)?;
    let commitment = opening.commitment();
    for (suffix, text) in [("body", &opening.body), ("opening", &opening.opening)] {
        let path = folder.join(format!("{}.{suffix}.json", &commitment[..DIGITS]));
        let file = disk::create_private(&path).context("create", &path)?;
        disk::write(&file, &path, text.as_bytes())
            .and_then(|()| disk::sync(&file, &path, true))
            .context("write", &path)?;
    }
    files::sync_folder(&folder)
}

/// Everything that was kept for an experiment.
pub(crate) fn kept(project: &Project, experiment: &str) -> Result<Vec<Opening>, StoreError> {
    let folder = folder(project, experiment);
    let list = match fs::read_dir(&folder) {
        Err(error) if files::absent(&error) => return Ok(Vec::new()),
        other => other.context("list", &folder)?,
    };
    let mut names = Vec::new();
    for entry in list {
        names.extend(entry.context("list", &folder)?.file_name().into_string());
    }
    names.sort();
    let mut all = Vec::new();
    for digits in names.iter().filter_map(|name| name.strip_suffix(".opening.json")) {
        let read = |suffix: &str| {
            let path = folder.join(format!("{digits}.{suffix}.json"));
            fs::read_to_string(&path).context("read", &path)
        };
        all.push(Opening { opening: read("opening")?, body: read("body")? });
    }
    Ok(all)
}

/// Reads what the kept openings fit as what it is. One that fits nothing was kept for a line that was never written.
pub(crate) fn attach(project: &Project, experiment: &str, ledger: &mut Ledger) -> Result<(), StoreError> {
    for opening in kept(project, experiment)? {
        let _ = ledger.attach(&opening);
    }
    Ok(())
}
