//! `avow reproduce`: results made again where nothing of them exists, and compared with what is recorded.

mod distributions;
mod fresh;
pub(super) mod record;
mod told;
mod wanted;

use avow_audit::{Audit, Evidence};

use crate::args;
use crate::context::{Reading, Spec};
use crate::exit::Exit;
use crate::failure;
use crate::output::{Failure, Output};
use crate::words;

use fresh::Fresh;
pub(super) use wanted::is_archive;
use wanted::{Original, Wanted};

/// Makes results again.
pub fn reproduce(args: &args::Reproduce, output: &Output) -> Result<Exit, Failure> {
    let original = Original::open(args)?;
    let spec = original.spec();
    let planned = spec.plan_as_run(output)?;
    let plan = &planned.plan;
    // Where nothing is registered, they come from nothing, and every member would be another one.
    if avow_model::seed::is_fresh(plan) {
        return Err(Failure::new(
            Exit::Usage,
            "fresh seeds come from a registration, and an empty store has none",
        )
        .hint("`avow run --verify 1` carries out again, in this project, everything that is reused"));
    }
    let reading = Reading::open(&spec.project, &plan.experiment)?;
    let audit = Audit::gather(plan, reading.source(), &reading.ledger).map_err(failure::audit)?;
    super::verdict::guard(spec, &reading, &audit, args.peek, ("reproduce", original.target()))?;
    let evidence = audit.evidence();
    let wanted = Wanted::of(args, &original, evidence, &reading)?;
    output.say(wanted.price());
    if args.dry_run {
        return Ok(Exit::Done);
    }
    let fresh = Fresh::make(args, spec, plan, &reading)?;
    fresh.run(&wanted, args, output)?;
    let again = Spec::open(Some(&fresh.spec))?;
    let replanned = again.plan_as_run(output)?;
    let rereading = Reading::open(&again.project, &replanned.plan.experiment)?;
    let remade =
        Evidence::gather(&replanned.plan, rereading.source(), &rereading.ledger).map_err(failure::audit)?;
    let result = told::compare(&wanted, evidence, &remade, &reading, &rereading)?;
    result.tell(args.json, output)?;
    record::write(args, &original, plan, &reading, &wanted, &result, output)?;
    if let Some(folder) = fresh.keep(args)? {
        output.say(words::plain(&format!("what was made lies in `{}`", folder.display())));
    }
    Ok(result.exit())
}
