//! `--why-not-registered`.

use avow_audit::lineage::{Lineage, Reason, Why, why_not_registered};
use avow_audit::{Audit, Evidence};

use super::asked::Opened;
use crate::args::LineageForm;
use crate::failure;
use crate::output::{Failure, Output};
use crate::words;

/// So many members and changes are named one by one.
const NAMED: usize = 6;

/// Says why what was found is not as registered.
pub(super) fn answer(
    opened: &Opened,
    audit: &Audit<'_>,
    found: &Lineage,
    form: LineageForm,
    output: &Output,
) -> Result<(), Failure> {
    let (reading, evidence) = (&opened.reading, audit.evidence());
    let registered = match audit.registered_plan() {
        Some(plan) => {
            Some(Evidence::gather(plan, reading.source(), &reading.ledger).map_err(failure::audit)?)
        }
        None => None,
    };
    let why = why_not_registered(found, evidence, registered.as_ref());
    if form == LineageForm::Json {
        return output.json(&why);
    }
    output.data(headline(&why))?;
    for reason in &why.reasons {
        for line in lines(reason) {
            output.data(format!("  {line}"))?;
        }
    }
    Ok(())
}

fn headline(why: &Why) -> String {
    let faults = why.reasons.iter().filter(|reason| reason.counts()).count();
    match (why.registration, faults) {
        (Some(entry), 0) => format!("it is as registered in {}", entry.short()),
        (Some(entry), _) => format!("it is not as registered in {}:", entry.short()),
        (None, _) => "it is not registered:".to_owned(),
    }
}

fn lines(reason: &Reason) -> Vec<String> {
    let named = |members: &[String]| {
        let shown = members.iter().take(NAMED).cloned().collect::<Vec<_>>().join(", ");
        let more = members.len().saturating_sub(NAMED);
        if more > 0 { format!("{shown} and {more} more") } else { shown }
    };
    match reason {
        Reason::NothingRegistered => {
            vec!["nothing of this experiment was ever registered; `avow register` freezes the plan for what comes".to_owned()]
        }
        Reason::OtherPlan { registered, judged, changes } => {
            let mut lines =
                vec![format!("another plan is registered: {} → {}", registered.short(), judged.short())];
            lines.extend(
                changes.iter().take(NAMED).map(|change| format!("  {}", words::deviation::change(change))),
            );
            if changes.len() > NAMED {
                lines.push(format!("  … and {} more; `avow diff` lists all", changes.len() - NAMED));
            }
            lines
        }
        Reason::Concurrent { entries } => {
            let entries: Vec<String> = entries.iter().map(|entry| entry.short()).collect();
            vec![format!(
                "registrations beside it, none of which is before the other: {}",
                entries.join(", ")
            )]
        }
        Reason::NotPlanned { members } => {
            vec![format!("the registered plan does not have {}", named(members))]
        }
        Reason::OtherWork { members } => {
            vec![format!("under the registered plan it is other work: {}", named(members))]
        }
        Reason::Older { members, preparation: false } => {
            vec![format!("started before the registration: {}", named(members))]
        }
        Reason::Older { members, .. } => {
            vec![format!("started before the registration, as preparation may be: {}", named(members))]
        }
        Reason::NoResult { members } => {
            let members: Vec<String> =
                members.iter().map(|(label, fate)| format!("{label} ({fate})")).collect();
            vec![format!("nothing stands for {}", named(&members))]
        }
    }
}
