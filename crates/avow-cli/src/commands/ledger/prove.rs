//! `avow ledger prove`.

use super::Chain;
use crate::args;
use crate::exit::Exit;
use crate::output::{Failure, Output};

/// Prints a proof as JSON.
pub fn prove(args: &args::LedgerProve, output: &Output) -> Result<Exit, Failure> {
    let chain = Chain::open(args.of.as_deref())?;
    let ledger = &chain.ledger;
    let entry = super::entry(ledger, &args.entry)?;
    let head = match &args.head {
        Some(digits) => super::entry(ledger, digits)?,
        None => super::only_head(ledger)?,
    };
    let proof = match args.growth {
        true => ledger.prove_consistency(entry, head),
        false => ledger.prove_inclusion(entry, head),
    };
    let Some(proof) = proof else {
        return Err(Failure::new(Exit::Usage, format!("{} does not cover {}", head.short(), entry.short()))
            .hint("they stand on two sides of a fork, or in the other order; `avow ledger log` shows it"));
    };
    output.json(&proof)?;
    Ok(super::log::damage(ledger, output))
}
