//! `avow audit`: every number of a manuscript beside what is stored; without one, the whole project.

mod macro_files;
mod paper;
mod project;

pub(crate) use paper::{open, text_of};

use avow_manuscript::class::class;
use avow_manuscript::{Class, Finding};

use crate::args::{self, AuditForm};
use crate::commands::verdict::damage_of;
use crate::exit::Exit;
use crate::output::{Failure, Output};
use crate::words::manuscript::Told;
use crate::{sarif, stocks};

/// Audits a manuscript or the project.
pub fn audit(args: &args::Audit, output: &Output) -> Result<Exit, Failure> {
    let form = if args.json { AuditForm::Json } else { args.format };
    let Some(path) = &args.paper else { return project::audit(args, form, output) };
    let manuscript = open(path)?;
    let stocks = stocks::gather(&args.specs, None, output)?;
    let findings = class(&manuscript, &stocks.values, &stocks.stocked);
    let told = Told::new(&manuscript, &findings, &stocks.stocked);
    match form {
        AuditForm::Text => {
            let text = told.text(args.all, output.colour);
            if !text.trim_end().is_empty() {
                output.data(format!("{}\n", text.trim_end()))?;
            }
            output.data(told.summary())?;
        }
        AuditForm::Json => output.json(&told.json())?,
        AuditForm::Sarif => output.json(&sarif::log(&told.results(args.all)))?,
    }
    for experiment in stocks.stocked.hidden() {
        output.say(format!(
            "the values of `{experiment}` stay hidden until its registered plan is complete; nothing was compared with them"
        ));
    }
    let damage = damage_of(&stocks.findings, &stocks.problems, output);
    let stale = if told.is_stale() {
        output.say("hint: write the macro file again with `avow report --macros FILE --for PAPER`");
        // What a generated file says is no longer what the evidence gives, whoever asks.
        Exit::Damaged
    } else {
        Exit::Done
    };
    let exit = damage.worse(stale);
    Ok(if args.check { exit.worse(checked(args, &findings, &told)) } else { exit })
}

/// The exit code under `--check`.
fn checked(args: &args::Audit, findings: &[Finding], told: &Told<'_>) -> Exit {
    let mut exit = if told.is_wrong() { Exit::Refuted } else { Exit::Done };
    for finding in findings {
        exit = exit.worse(match finding.class {
            Class::Contradicted => Exit::Refuted,
            Class::Stale | Class::UnknownKey | Class::Misrounded => Exit::Deviation,
            Class::Unbound if args.strict => Exit::Deviation,
            Class::Hidden => Exit::Undecided,
            Class::Unbound | Class::Matched | Class::Current | Class::Aside => Exit::Done,
        });
    }
    exit
}
