//! What was asked for: which spec, and what in it.
//!
//! A file on the disk is looked for by its content, in every spec of the folder where none is named: nobody needs to
//! know which experiment wrote a figure. `EXPERIMENT/` before an address names the experiment.

use std::path::{Path, PathBuf};

use avow_audit::Audit;
use avow_audit::lineage::{Address, Lineage, lineage};
use avow_store::{Ingest, MemoryStamps};

use super::FORM;
use crate::args;
use crate::context::{Planned, Reading, Spec, find_specs};
use crate::exit::Exit;
use crate::failure;
use crate::output::{Failure, Output};
use crate::words;

/// A spec with its store.
pub(super) struct Opened {
    pub(super) spec: Spec,
    pub(super) planned: Planned,
    pub(super) reading: Reading,
}

impl Opened {
    fn open(path: Option<&Path>, output: &Output) -> Result<Opened, Failure> {
        let spec = Spec::open(path)?;
        let planned = spec.plan_as_run(output)?;
        let reading = Reading::open(&spec.project, &planned.plan.experiment)?;
        Ok(Opened { spec, planned, reading })
    }
}

/// Finds what an address names, and does something with it; `None` where no spec here has anything of the kind.
pub(super) fn with<R>(
    args: &args::Lineage,
    written: &str,
    output: &Output,
    then: impl FnOnce(&Opened, &Audit<'_>, Lineage) -> Result<R, Failure>,
) -> Result<Option<R>, Failure> {
    let (specs, text) = candidates(args, written)?;
    let mut refused = None;
    for path in &specs {
        let opened = Opened::open(path.as_deref(), output)?;
        let (plan, reading) = (&opened.planned.plan, &opened.reading);
        let audit = Audit::gather(plan, reading.source(), &reading.ledger).map_err(failure::audit)?;
        let guarded =
            crate::commands::verdict::guard(&opened.spec, reading, &audit, args.peek, ("lineage", written));
        match guarded {
            // Another spec may have it.
            Err(failure) if specs.len() > 1 => {
                refused.get_or_insert(failure);
                continue;
            }
            guarded => guarded?,
        }
        let found = find(&opened, &audit, text, output)?;
        if !found.roots.is_empty() {
            return then(&opened, &audit, found).map(Some);
        }
    }
    refused.map_or(Ok(None), Err)
}

/// That nothing is called so.
pub(super) fn nothing(written: &str) -> Failure {
    if Path::new(written).exists() {
        return Failure::new(Exit::Usage, format!("nothing in the store has the content of `{written}`"))
            .hint(
                "it was changed since, or no stage wrote it; `avow get STAGE.OUTPUT` copies what one wrote",
            );
    }
    Failure::new(Exit::Usage, format!("nothing is called `{written}`")).hint(FORM)
}

/// The specs in which to look, and the address without the experiment's name.
fn candidates<'a>(
    args: &args::Lineage,
    written: &'a str,
) -> Result<(Vec<Option<PathBuf>>, &'a str), Failure> {
    if let Some(spec) = &args.spec {
        return Ok((vec![Some(spec.clone())], written));
    }
    let specs = find_specs()?;
    if specs.len() < 2 {
        return Ok((vec![None], written));
    }
    if let Some((experiment, rest)) = written.split_once('/')
        && !Path::new(written).exists()
    {
        for path in &specs {
            if Spec::open(Some(path))?.name() == Some(experiment) {
                return Ok((vec![Some(path.clone())], rest));
            }
        }
    }
    let digits = written.strip_prefix("blob:").or_else(|| written.strip_prefix("tree:")).unwrap_or(written);
    let anywhere =
        Path::new(written).exists() || (digits.len() >= 6 && digits.bytes().all(|b| b.is_ascii_hexdigit()));
    // Where a name could mean several things, which spec is asked for as everywhere.
    let all = if anywhere { specs.into_iter().map(Some).collect() } else { vec![None] };
    Ok((all, written))
}

/// What an address names; of a file on the disk first whatever has its content.
fn find(opened: &Opened, audit: &Audit<'_>, text: &str, output: &Output) -> Result<Lineage, Failure> {
    let (evidence, source) = (audit.evidence(), opened.reading.source());
    let address = Address::parse(&opened.planned.plan, text)
        .map_err(|error| Failure::new(Exit::Usage, error.to_string()).hint(FORM))?;
    let file = Path::new(text);
    let on_disk = !matches!(address, Address::Claim(_) | Address::Stage { .. }) && file.exists();
    let walk = |address: &Address| lineage(evidence, source, address).map_err(failure::audit);
    if !on_disk {
        return walk(&address);
    }
    let stamps = MemoryStamps::default();
    let content = Ingest::new(&opened.reading.blobs, &stamps).hash(file).map_err(|error| {
        Failure::new(Exit::Usage, format!("`{text}` cannot be read for its content")).because(error)
    })?;
    let found = walk(&Address::Digest(content.blob().to_string()))?;
    if !found.roots.is_empty() {
        return Ok(found);
    }
    let found = walk(&address)?;
    if !found.roots.is_empty() {
        output.always(words::plain(&format!(
            "note: `{text}` now holds {content}, which nothing here was made from or made; what follows is the lineage of \
             what was recorded under its name"
        )));
    }
    Ok(found)
}
