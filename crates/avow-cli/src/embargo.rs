//! What an embargo keeps from files that are given to others.

use avow_store::{LedgerFile, Project};

use crate::exit::Exit;
use crate::failure;
use crate::output::Failure;

/// Refuses to write something for others while the experiment's registration is a closed commitment: `what` ("a bundle")
/// would show what the ledger does not.
pub fn closed_to(project: &Project, experiment: &str, what: &str) -> Result<(), Failure> {
    if LedgerFile::of(project, experiment).map_err(failure::store)?.is_embargoed() {
        let said = format!("{what} would show what is under embargo");
        return Err(Failure::new(Exit::Usage, said).hint("open it first: `avow ledger open`"));
    }
    Ok(())
}
