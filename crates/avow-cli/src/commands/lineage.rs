//! `avow lineage`: everything that a number, an artifact or a file rests on.

mod asked;
mod compared;
mod drawing;
mod foreign;
mod text;
mod unregistered;

use avow_audit::Audit;
use avow_audit::lineage::Lineage;

use crate::args::{self, LineageForm};
use crate::exit::Exit;
use crate::failure;
use crate::output::{Failure, Output};
use crate::words;

use asked::Opened;
pub use text::line;

/// What may be named.
const FORM: &str =
    "name a number (`stage.name[seed=3]`, `claim.estimate`), a claim, an output, a digest, or a file";

/// Prints the walk, or what was asked about it.
pub fn lineage(args: &args::Lineage, output: &Output) -> Result<Exit, Failure> {
    let form = if args.json { LineageForm::Json } else { args.format };
    let words_only = !args.diff.is_empty() || args.why_not_registered;
    if words_only && !matches!(form, LineageForm::Text | LineageForm::Json) {
        return Err(Failure::new(Exit::Usage, "an answer in words has no drawing")
            .hint("give `--format text` or `--format json`, or ask for the lineage alone"));
    }
    if let [a, b] = args.diff.as_slice() {
        return compared::compared(args, a, b, form, output);
    }
    let address = args.address.as_deref().unwrap_or_default();
    let answered = asked::with(args, address, output, |opened, audit, mut found| {
        around(&mut found, audit, opened)?;
        if args.why_not_registered {
            unregistered::answer(opened, audit, &found, form, output)?;
        } else {
            print(args, &found, form, output)?;
        }
        let findings: Vec<_> = found.findings.iter().cloned().collect();
        Ok(super::verdict::damage_of(&findings, &[], output))
    });
    match answered? {
        Some(exit) => Ok(exit),
        None if foreign::told(address, form, output)? => Ok(Exit::Done),
        None => Err(asked::nothing(address)),
    }
}

/// Adds what stands around the walk: reuse, deviations, and where others have the same bytes.
fn around(found: &mut Lineage, audit: &Audit<'_>, opened: &Opened) -> Result<(), Failure> {
    let reading = &opened.reading;
    found.elsewhere(&avow_store::foreign::list(&opened.spec.project).map_err(failure::store)?);
    let mut journals = reading.journals()?;
    for run in &mut journals {
        // A list of hits that is gone is damage of its own, which the check of the store names.
        avow_model::journal::resolve(&mut run.journal.lines, |digest| {
            avow_store::BlobStore::read(&reading.blobs, digest).ok()
        });
    }
    found.reused(&journals);
    found.deviating(audit.evidence(), audit.deviations().map_err(failure::audit)?);
    Ok(())
}

fn print(args: &args::Lineage, found: &Lineage, form: LineageForm, output: &Output) -> Result<(), Failure> {
    match form {
        LineageForm::Json => return output.json(found),
        LineageForm::Text => {}
        LineageForm::Mermaid => return output.data(drawing::graph(found, args.all).mermaid().trim_end()),
        LineageForm::Dot => return output.data(drawing::graph(found, args.all).dot().trim_end()),
        LineageForm::Svg => return output.data(drawing::graph(found, args.all).svg()),
    }
    if args.all {
        found.steps().iter().try_for_each(|step| output.data(line(step)))?;
    } else {
        found.folded(text::MOST).iter().try_for_each(|folded| output.data(text::folded(folded)))?;
    }
    for one in &found.deviations {
        output.data(format!("deviation {}: {}", one.number, words::deviation::words(&one.deviation)))?;
    }
    found.foreign.iter().try_for_each(|same| output.data(foreign::line(same)))
}
