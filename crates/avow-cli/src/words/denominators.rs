//! What verdicts are out of, in words.

use avow_audit::denominators::{Attempts, Denominators};
use avow_audit::holdout::{Reads, Sealed};

/// Whether there is more than one attempt a member and nothing else.
pub fn is_notable(counts: &Denominators) -> bool {
    let all = counts.before.all + counts.after.all;
    let troubled = |attempts: &Attempts| attempts.failed + attempts.unfinished > 0;
    all > counts.members
        || troubled(&counts.before)
        || troubled(&counts.after)
        || counts.abandoned > 0
        || !counts.variants.is_empty()
        || counts.unopened + counts.unopened_elsewhere > 0
}

/// One line.
pub fn line(counts: &Denominators, registered: bool) -> String {
    let mut parts = Vec::new();
    if registered {
        parts.push(format!("{} under the registration", attempts(&counts.after)));
        if counts.before.all > 0 {
            parts.push(format!("{} before it", attempts(&counts.before)));
        }
    } else {
        parts.push(attempts(&counts.before));
    }
    if counts.abandoned > 0 {
        parts.push(some(counts.abandoned, "abandoned run"));
    }
    if !counts.variants.is_empty() {
        let mut names: Vec<&str> =
            counts.variants.iter().map(|variant| variant.experiment.as_str()).collect();
        names.dedup();
        names.truncate(3);
        parts.push(format!("{} ({})", some(counts.variants.len() as u64, "variant"), names.join(", ")));
    }
    if counts.unopened > 0 {
        parts.push(some(counts.unopened, "unopened commitment"));
    }
    if counts.unopened_elsewhere > 0 {
        parts.push(format!("{} in other chains", some(counts.unopened_elsewhere, "unopened commitment")));
    }
    format!("Out of {}: {}.\n", some(counts.members, "member"), parts.join("; "))
}

/// Who read a sealed output, before the registration and under it.
pub fn sealed(sealed: &Sealed, registered: bool) -> String {
    let before = if registered { "before the registration" } else { "" };
    let mut parts = vec![reads(&sealed.before, before)];
    if registered {
        parts.push(reads(&sealed.after, "under it"));
    }
    format!("The sealed `{}` was read {}.\n", sealed.output, parts.join(", "))
}

fn reads(reads: &Reads, when: &str) -> String {
    let attempts = reads.attempts.iter().map(|(stage, n)| format!("{} of {stage}", some(*n, "attempt")));
    let commands = reads.commands.iter().map(|(command, n)| format!("{command} ({})", some(*n, "time")));
    let by: Vec<String> = attempts.chain(commands).collect();
    match (by.as_slice(), when) {
        ([], "") => "by nobody".to_owned(),
        ([], when) => format!("by nobody {when}"),
        (by, "") => format!("by {}", by.join(" and ")),
        (by, when) => format!("{when} by {}", by.join(" and ")),
    }
}

fn attempts(attempts: &Attempts) -> String {
    let mut text = some(attempts.all, "attempt");
    let notes = [(attempts.failed, "failed"), (attempts.unfinished, "cancelled or lost")];
    let notes: Vec<String> =
        notes.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}")).collect();
    if !notes.is_empty() {
        text.push_str(&format!(" ({})", notes.join(", ")));
    }
    text
}

fn some(count: u64, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}
