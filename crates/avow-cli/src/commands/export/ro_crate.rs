//! `avow export ro-crate`: a folder for a repository.

use std::path::PathBuf;

use avow_exchange::citation::OneOrMore;
use avow_exchange::ro_crate::{Edition, Form, Profile, Written, write};
use serde_json::json;

use super::account::Exported;
use crate::args::{CrateEdition, CrateProfile, ExportCrate};
use crate::exit::Exit;
use crate::failure;
use crate::output::{Failure, Output};
use crate::words;

/// Writes the folder.
pub fn export(args: &ExportCrate, output: &Output) -> Result<Exit, Failure> {
    let exported = Exported::open(args.spec.spec.as_deref(), output)?;
    let (mut account, exit) = exported.account(args.peek, "the whole experiment", output)?;
    if let Some(licence) = &args.licence {
        let citation = account.citation.get_or_insert_default();
        citation.license = OneOrMore::One(licence.clone());
        citation.license_url = None;
    }
    let licensed = account.citation.as_ref().is_some_and(|citation| !citation.licences().is_empty());
    let folder =
        args.output.clone().unwrap_or_else(|| PathBuf::from(format!("{}.crate", account.plan.experiment)));
    let written = write(&folder, &exported.reading.blobs, &account, form(args)).map_err(failure::exchange)?;
    if args.json {
        output.json(&json!({
            "crate": folder, "files": written.files, "bytes": written.bytes, "entities": written.entities,
            "without": written.without,
        }))?;
    } else {
        told(&folder, &written, output)?;
    }
    if !licensed {
        output.say("nothing says under which licence this may be used: `CITATION.cff` or `--licence` does");
    }
    Ok(exit)
}

fn form(args: &ExportCrate) -> Form {
    let profile = match args.profile {
        CrateProfile::Process => Profile::Process,
        CrateProfile::Workflow => Profile::Workflow,
        CrateProfile::Provenance => Profile::Provenance,
    };
    let edition = match args.edition {
        CrateEdition::Half => Edition::Half,
        CrateEdition::Six => Edition::Six,
    };
    Form { profile, edition }
}

fn told(folder: &std::path::Path, written: &Written, output: &Output) -> Result<(), Failure> {
    output.data(format!("wrote the crate `{}`", folder.display()))?;
    output.data(format!(
        "  holds    {} ({}), {} entities described",
        words::count(written.files as u64, "file"),
        words::bytes(written.bytes),
        written.entities
    ))?;
    for path in &written.without {
        output.data(format!("  without  `{path}`, which the store does not hold"))?;
    }
    Ok(())
}
