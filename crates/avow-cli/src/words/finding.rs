//! Damage in words.

use avow_audit::Finding;
use avow_audit::finding::AttemptFault;
use avow_audit::measure::{Problem, Reason};

/// One finding as one line.
pub fn words(finding: &Finding) -> String {
    match finding {
        Finding::DamagedBlob { blob, found, used } => {
            format!("{used}: the stored file {} is damaged (its bytes are {})", blob.short(), found.short())
        }
        Finding::MissingBlob { blob, used } => format!("{used}: the stored file {} is missing", blob.short()),
        Finding::BadRecord { blob, used, reason } => format!("{used}: the record {} {reason}", blob.short()),
        Finding::WrongAttempt { action, attempt, fault } => format!(
            "attempt {} does not belong to action {}: {}",
            attempt.short(),
            action.short(),
            self::fault(fault)
        ),
        Finding::Unjournalled { attempt } => format!("attempt {} stands in no journal", attempt.short()),
        Finding::JournalLine { run, line, reason } => {
            format!("the journal of run {run}, line {line}: {reason}")
        }
        Finding::JournalTorn { run, bytes } => {
            format!("the journal of run {run} ends in {bytes} bytes of a write that was cut off")
        }
        Finding::MissingJournal { run } => format!("the ledger knows a run {run} whose journal is gone"),
        Finding::Unannounced { run } => {
            format!("the journal of run {run} tells of attempts, and the ledger was told of no such run")
        }
        Finding::JournalCut { run, .. } => {
            format!("the journal of run {run} lacks lines that the ledger saw")
        }
        Finding::LedgerLine { line, reason } => format!("the ledger, line {line}: {reason}"),
        Finding::LedgerTorn { bytes } => {
            format!("the ledger ends in {bytes} bytes of a write that was cut off")
        }
        Finding::MissingHead { head, cited_by } => {
            format!("the ledger lacks the line {}, which {cited_by} cites", head.short())
        }
        Finding::BadRegistration { entry, reason } => format!("the registration {}: {reason}", entry.short()),
        Finding::MissingPlan { plan } => format!("the registered plan {} is not in the store", plan.short()),
    }
}

fn fault(fault: &AttemptFault) -> String {
    match fault {
        AttemptFault::Absent => "it is named and nobody has it".to_owned(),
        AttemptFault::OtherDigest => "its record has another digest".to_owned(),
        AttemptFault::OtherAction => "it is an attempt at another action".to_owned(),
        AttemptFault::WithoutOutputs(names) => format!("it claims success without {}", names.join(", ")),
        AttemptFault::OtherKind(name) => format!("`{name}` is of another kind than declared"),
    }
}

/// A measurement that could not be read, as one line.
pub fn problem(problem: &Problem) -> String {
    let what = match &problem.reason {
        Reason::Folder => "is a folder, and measurements are files".to_owned(),
        Reason::NotText => "is not UTF-8 text; write JSON, or JSON Lines".to_owned(),
        Reason::Syntax { detail } => format!("does not parse: {detail}"),
        Reason::NotANumber { kind } => format!("holds a value that is {kind}, not a number"),
        Reason::Without { field } => format!("has a line, or is a table, without `{field}`"),
        Reason::NotThere { pointer } => format!("has nothing at `{pointer}`"),
        Reason::BadKey { key } => format!("has a record key `{key}` that is neither text nor a number"),
        Reason::ContradictsCell { key, record, cell } => {
            format!("says {key}={record} in the cell {key}={cell}")
        }
        Reason::Duplicate { first } => format!("repeats line {first}"),
    };
    let name = problem.name.as_deref().map(|name| format!(" ({name})")).unwrap_or_default();
    format!("{}.{}, line {}{name}: {what}", problem.member, problem.output, problem.line)
}

/// What to do about a measurement that could not be read.
pub fn mending(problem: &Problem) -> String {
    let (stage, cell) = problem.member.split_at(problem.member.find('[').unwrap_or(problem.member.len()));
    let file = format!("{stage}.{}{cell}", problem.output);
    let form = match &problem.reason {
        Reason::Folder | Reason::NotText | Reason::Syntax { .. } => {
            "a measurement file is a flat JSON map, JSON Lines or a table (docs/language.md)"
        }
        Reason::NotANumber { .. } => {
            "numbers are measurements; other words belong under `keys`, or elsewhere"
        }
        Reason::Without { .. } | Reason::NotThere { .. } => "`values` and `keys` say what a file holds",
        Reason::BadKey { .. } | Reason::ContradictsCell { .. } => "a record key is text, a number or a truth",
        Reason::Duplicate { .. } => "records of one name differ in a key that is declared",
    };
    format!("`avow get '{file}'` shows the file; {form}")
}
