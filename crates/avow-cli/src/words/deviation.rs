//! Deviations in words.
//!
//! Many members of one stage that deviate alike are one line in a list of them.

use avow_audit::deviation::{Deviation, What, When};
use avow_audit::planned::Change;
use avow_audit::same::Sampled;

/// One deviation as one line.
pub fn words(deviation: &Deviation) -> String {
    let when = match deviation.when {
        When::BeforeRegistration => ", before registration",
        When::BeforeFirstAttempt => ", before the first attempt under it",
        When::BeforeValues => ", before any value was read through avow",
        When::After => ", after the first attempt",
        When::Unregistered => "",
    };
    let reason = match (&deviation.reason, deviation.entry) {
        (Some(reason), Some(entry)) => format!(" (reason in {}: {})", entry.short(), reason.trim()),
        (Some(reason), None) => format!(" (reason: {})", reason.trim()),
        (None, Some(entry)) => format!(" ({}, no reason stated)", entry.short()),
        (None, None) => String::new(),
    };
    format!("{}{when}: {}{reason}", deviation.class.word(), what(deviation))
}

/// Whether two deviations say the same of different members of a stage.
pub fn are_alike(a: &Deviation, b: &Deviation) -> bool {
    let said = |one: &Deviation| (one.class, one.when, one.reason.clone(), one.entry);
    match (&a.what, &b.what) {
        (
            What::Outputs { stage, output, promised, .. },
            What::Outputs { stage: s, output: o, promised: p, .. },
        ) => said(a) == said(b) && (stage, output, promised) == (s, o, p),
        _ => false,
    }
}

/// Deviations that are alike as one line, by their numbers in the list; `--json` has each by itself.
pub fn numbered(first: usize, alike: &[Deviation]) -> String {
    match alike {
        [one] => format!("deviation {first}: {}", words(one)),
        [one, .., last] => {
            let member = |one: &Deviation| match &one.what {
                What::Outputs { member, .. } => member.clone(),
                _ => String::new(),
            };
            let (count, end) = (alike.len(), first + alike.len() - 1);
            let more = count as u64 - 1;
            format!(
                "deviations {first} to {end}: {}; and so on for {}, to {}",
                words(one),
                super::count(more, "more member"),
                member(last)
            )
        }
        [] => String::new(),
    }
}

fn what(deviation: &Deviation) -> String {
    match &deviation.what {
        What::Plan(change) => self::change(change),
        What::OlderAttempts { stage, members } => {
            format!(
                "{} of `{stage}` not made under the registration {}",
                listed(members),
                stand(members.len())
            )
        }
        What::Members { stage, fate, members } => {
            let fate = match *fate {
                "not-run" => "not run",
                "blocked" => "not reachable, for an input was not made",
                "unfinished" => "cancelled or lost",
                "invalidated" => "declared wrong, and not made again",
                other => other,
            };
            format!("{} of `{stage}` {fate}", listed(members))
        }
        What::FailedAttempts { stage, members } => {
            let attempts: usize = members.values().sum();
            let tries = if attempts == 1 { "attempt" } else { "attempts" };
            format!("{attempts} {tries} at members of `{stage}` failed before one succeeded")
        }
        What::Outputs { member, output, promised, artifacts, .. } => format!(
            "{member} wrote {} different `{output}`{}; the first under the registration counts",
            artifacts.len(),
            if *promised { "" } else { ", as its stage declares" }
        ),
        What::Observed { stage, files } => {
            let names: Vec<&str> = files.iter().take(5).map(String::as_str).collect();
            let more = if files.len() > 5 { ", …" } else { "" };
            format!("`{stage}` was seen to read {}{more}, which it does not declare", names.join(", "))
        }
        What::Read { commands } => {
            let read: Vec<String> = commands.iter().map(|(command, n)| times(command, *n)).collect();
            format!("values were read before the plan was complete, by {}", read.join(", "))
        }
        What::Copied { output, commands } => {
            let read: Vec<String> = commands.iter().map(|(command, n)| times(command, *n)).collect();
            format!("the sealed `{output}` was copied out by {}", read.join(", "))
        }
        What::Leaked { holdout, training, rows, shared, first, .. } => {
            let named: Vec<String> =
                first.iter().map(|one| format!("{} = {}", one.holdout, one.training)).collect();
            let more = if *shared > first.len() as u64 { ", …" } else { "" };
            format!(
                "{shared} of {rows} rows of the sealed `{holdout}` are rows of `{training}` too ({}{more})",
                named.join(", ")
            )
        }
        What::Invalidated { wrong, members, downstream, .. } => {
            let rest = if downstream.is_empty() {
                String::new()
            } else {
                format!(", and what rests on it: {}", listed(downstream))
            };
            let wrong = wrong.split_once(':').map_or(wrong.clone(), |(kind, digest)| {
                format!("{kind} {}", digest.get(..8).unwrap_or(digest))
            });
            format!("{wrong} was declared wrong: {}{rest}", listed(members))
        }
        What::Retracted { claim, downstream } => {
            let rest = match downstream.as_slice() {
                [] => String::new(),
                names => format!(", and with it what rests on it: {}", names.join(", ")),
            };
            format!("the reading of `{claim}` is withdrawn{rest}")
        }
        What::Sampled { sampled, .. } => self::sampled(sampled),
        What::Elsewhere { entry } => {
            format!(
                "what {} changed is not known: its plan was registered elsewhere and is not in this store",
                entry.short()
            )
        }
        What::Registrations { entries } => {
            let names: Vec<String> = entries.iter().map(|entry| entry.short()).collect();
            format!("registered on two sides of a fork: {}", names.join(", "))
        }
    }
}

fn sampled(sampled: &Sampled) -> String {
    let of = format!("{} drawn of {} members", sampled.drawn, sampled.of);
    let mut parts = vec![format!("{} of {of} give the same as before the change", sampled.same.len())];
    if !sampled.different.is_empty() {
        parts.push(format!("{} do not", listed(&sampled.different)));
    }
    if !sampled.open.is_empty() {
        parts.push(format!("{} not carried out", listed(&sampled.open)));
    }
    parts.join(", ")
}

fn times(command: &str, count: usize) -> String {
    if count == 1 { format!("{command} (once)") } else { format!("{command} ({count} times)") }
}

fn stand(count: usize) -> &'static str {
    if count == 1 { "stands" } else { "stand" }
}

fn listed(members: &[String]) -> String {
    match members {
        [one] => format!("1 member ({one})"),
        [first, ..] => format!("{} members ({first}, …)", members.len()),
        [] => "no member".to_owned(),
    }
}

/// A change of a plan, in short.
pub fn change(change: &Change) -> String {
    let name = change.name.as_deref().map(|name| format!(" `{name}`")).unwrap_or_default();
    // The words of the record's own layers say nothing to a reader of the spec.
    let path: Vec<&str> =
        change.path.iter().map(String::as_str).filter(|part| !matches!(*part, "test" | "one")).collect();
    let path = if path.is_empty() { String::new() } else { format!(", {}", path.join(".")) };
    let subject = format!("{}{name}{path}", change.subject.word());
    match (&change.old, &change.new) {
        (Some(old), Some(new)) => format!("{subject}: {} → {}", short(old), short(new)),
        (None, Some(_)) => format!("{subject} was added"),
        (Some(_), None) => format!("{subject} was left out"),
        (None, None) => subject,
    }
}

fn short(value: &serde_json::Value) -> String {
    let text = match value {
        serde_json::Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let hex = |t: &str| t.len() == 64 && t.chars().all(|c| c.is_ascii_hexdigit());
    match text.strip_prefix("blob:").or(text.strip_prefix("tree:")).unwrap_or(&text) {
        digest if hex(digest) => format!("{}…", &digest[..8]),
        _ if text.chars().count() > 60 => text.chars().take(57).collect::<String>() + "…",
        _ => text,
    }
}
