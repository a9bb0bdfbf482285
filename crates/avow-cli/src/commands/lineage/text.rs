//! A lineage as indented lines.

use avow_audit::lineage::{Folded, Machine, Rest, Reuse, Step, Thing};

use crate::words;

/// More alike than this are folded into one line.
pub(super) const MOST: usize = 4;

/// One step of a walk in words, indented by its depth.
pub fn line(step: &Step<'_>) -> String {
    let indent = "  ".repeat(step.depth);
    let edge = match step.edge {
        None => String::new(),
        Some(edge) => match &edge.name {
            Some(name) => format!("{} `{name}`: ", relation(edge.relation)),
            None => format!("{}: ", relation(edge.relation)),
        },
    };
    let again = if step.repeated { " (see above)" } else { "" };
    format!("{indent}{edge}{}{again}", thing(&step.node.what))
}

/// One line of a folded walk.
pub(super) fn folded(folded: &Folded<'_>) -> String {
    match folded {
        Folded::Step(step) => line(step),
        Folded::Rest(Rest { depth, relation: code, of, count, fates }) => {
            let indent = "  ".repeat(*depth);
            let code = code.map(|code| format!("{}: ", relation(code))).unwrap_or_default();
            let odd: Vec<String> = fates
                .iter()
                .filter(|(fate, _)| **fate != "stands")
                .map(|(fate, count)| format!("{count} {fate}"))
                .collect();
            let odd = if odd.is_empty() { String::new() } else { format!(" ({})", odd.join(", ")) };
            format!("{indent}{code}… and {count} more of {of}{odd}; `--all` writes them out")
        }
    }
}

fn relation(code: &str) -> &str {
    match code {
        "written-by" => "written by",
        "made-by" => "made by",
        "attempted" => "executed",
        "diverged" => "diverged, does not stand",
        "ran-on" => "ran on",
        "older-than" => "older than",
        other => other,
    }
}

fn thing(what: &Thing) -> String {
    match what {
        Thing::Claim { name } => format!("claim {name}"),
        Thing::Number { name, value, keys, line, .. } => {
            let keys: Vec<String> = keys.iter().map(|(k, v)| format!("{k}={v}")).collect();
            let keys = if keys.is_empty() { String::new() } else { format!("[{}]", keys.join(",")) };
            format!("{name}{keys} = {} (line {line})", words::number(*value))
        }
        Thing::Member { label, fate } => format!("{label} ({fate})"),
        Thing::Attempt { .. } => attempt(what),
        Thing::Machine(machine) => self::machine(machine),
        Thing::Registration { entry, kind, plan, judged } => {
            let judged = if *judged { "the plan of this lineage" } else { "another plan" };
            format!("registration {} ({kind}), {judged}, {}", entry.short(), plan.short())
        }
        Thing::Action { digest, command, env } => {
            let set: Vec<String> = env.iter().map(|(name, value)| format!(" {name}={value}")).collect();
            let set = if set.is_empty() { String::new() } else { format!(" with{}", set.concat()) };
            format!("action {}: {command}{set}", short(digest))
        }
        Thing::Artifact { artifact } => artifact.to_string(),
        Thing::File { path, artifact } => format!("{path} ({})", artifact.short()),
        Thing::Url { url, digest } => format!("{url} ({})", digest.short()),
        Thing::Code { tree } => tree.to_string(),
        Thing::Program { word, digest } => format!("{word} ({})", digest.short()),
        Thing::Image { name, identity } if name.ends_with(identity) => format!("image {name}"),
        Thing::Image { name, identity } => format!("image {name} ({identity})"),
        Thing::Environment { manager, path, lock } => format!("{manager} {path} ({})", lock.short()),
        Thing::Operation { name, identity } => format!("{name} ({})", short(identity)),
    }
}

fn attempt(what: &Thing) -> String {
    let Thing::Attempt {
        digest,
        outcome,
        run,
        started,
        host,
        confinement,
        wall,
        under_registration,
        verification,
        continues,
        reused,
    } = what
    else {
        return String::new();
    };
    let registered = match under_registration {
        Some(true) => ", under the registration",
        Some(false) => ", older than the registration",
        None => "",
    };
    let purpose = if *verification { ", made to verify" } else { "" };
    format!(
        "attempt {} {outcome} at {} on {host} ({confinement}) in run {run}, {}{registered}{purpose}{}{}",
        short(digest),
        words::moment(*started),
        words::seconds(*wall as f64 / 1e6),
        words::continued(continues),
        again(reused),
    )
}

/// In which later runs it stood.
pub(super) fn again(reused: &[Reuse]) -> String {
    let runs: std::collections::BTreeSet<&str> = reused.iter().map(|one| one.run.as_str()).collect();
    match reused.last() {
        None => String::new(),
        Some(last) => format!(
            ", reused in {}, last in {} at {}",
            words::count(runs.len() as u64, "later run"),
            last.run,
            words::moment(last.at)
        ),
    }
}

fn machine(machine: &Machine) -> String {
    let mut text = format!("machine {}: {}, {}", machine.name, machine.system, machine.cpu);
    for gpu in &machine.gpus {
        text.push_str(&format!(", {gpu}"));
    }
    for (word, (version, packages)) in &machine.interpreters {
        text.push_str(&format!("; {word}: {version}, {}", words::count(*packages as u64, "package")));
    }
    for disagreement in &machine.disagreements {
        text.push_str(&format!("; not as locked: {disagreement}"));
    }
    if let Some(record) = machine.record {
        text.push_str(&format!(" ({})", record.short()));
    }
    text
}

pub(super) fn short(hex: &str) -> &str {
    hex.get(..8).unwrap_or(hex)
}
