//! `avow ledger witness`.

use avow_store::Proofs;

use super::Chain;
use crate::args;
use crate::exit::Exit;
use crate::failure;
use crate::output::{Failure, Output};
use crate::settings::Settings;
use crate::witnesses::{self, Wanted};

/// Has the head signed, stamped or tagged, or keeps what others made about it.
pub fn witness(args: &args::LedgerWitness, output: &Output) -> Result<Exit, Failure> {
    let chain = Chain::open(args.experiment.as_deref())?;
    let wanted = Wanted::of(&args.witnesses, &Settings::of(&chain.project)?);
    if wanted.is_empty() && args.attach.is_empty() {
        return Err(Failure::new(Exit::Usage, "no witness is named")
            .hint("`--sign`, `--tsa URL`, `--git-tag`, `--attach FILE`, or `[witness]` in avow.toml"));
    }
    if !chain.file.is_registered() {
        return Err(Failure::new(Exit::Usage, "nothing is registered yet that could be vouched for")
            .hint("`avow register` takes the same options"));
    }
    let ledger = &chain.ledger;
    ledger.sound().map_err(|error| failure::engine(error.into()))?;
    let head = super::only_head(ledger)?;
    output.data(format!("{} at {head}", chain.experiment))?;
    witnesses::obtain(&chain.project, &chain.experiment, ledger, head, &wanted, true, output)?;
    let proofs = Proofs::of(&chain.project, &chain.experiment).map_err(failure::store)?;
    for file in &args.attach {
        let bytes = std::fs::read(file).map_err(|error| {
            Failure::new(Exit::Usage, format!("cannot read `{}`", file.display())).because(error)
        })?;
        let suffix = file.extension().and_then(|suffix| suffix.to_str()).filter(|suffix| plain(suffix));
        let statement = ledger.head_statement(head).unwrap_or_default();
        proofs.state(head, &statement).map_err(failure::store)?;
        proofs.add(head, &[(suffix.unwrap_or("attached"), &bytes)]).map_err(failure::store)?;
        output.data(format!("  kept {}", file.display()))?;
    }
    Ok(Exit::Done)
}

/// What may stand after the last dot of a name in the folder of proofs, and does not mean something else there.
fn plain(suffix: &str) -> bool {
    suffix.bytes().all(|byte| byte.is_ascii_alphanumeric()) && !suffix.is_empty()
}
