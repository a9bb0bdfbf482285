//! `avow export prov`: a document of PROV-JSON.

use super::account::Exported;
use crate::args::ExportProv;
use crate::exit::Exit;
use crate::failure;
use crate::output::{Failure, Output};

/// Prints or writes it.
pub fn export(args: &ExportProv, output: &Output) -> Result<Exit, Failure> {
    let exported = Exported::open(args.spec.spec.as_deref(), output)?;
    let (account, exit) = exported.account(args.peek, "provenance", output)?;
    let document =
        avow_exchange::prov::document(&exported.reading.blobs, &account).map_err(failure::exchange)?;
    match &args.output {
        None => output.json(&document)?,
        Some(path) => {
            super::put(path, format!("{document:#}\n").as_bytes())?;
            output.data(format!("wrote `{}`", path.display()))?;
        }
    }
    Ok(exit)
}
