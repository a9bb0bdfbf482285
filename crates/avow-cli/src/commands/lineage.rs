//! `avow lineage`: everything that a number, an artifact or a file rests on.

use avow_audit::Audit;
use avow_audit::lineage::{Address, Step, Thing, lineage as walk};

use crate::args;
use crate::context::{Reading, Spec};
use crate::exit::Exit;
use crate::failure;
use crate::output::{Failure, Output};
use crate::words;

/// Prints the walk.
pub fn lineage(args: &args::Lineage, output: &Output) -> Result<Exit, Failure> {
    let spec = Spec::open(args.spec.as_deref())?;
    let planned = spec.plan_as_run(output)?;
    let reading = Reading::open(&spec.project, &planned.plan.experiment)?;
    let audit = Audit::gather(&planned.plan, reading.source(), &reading.ledger).map_err(failure::audit)?;
    super::verdict::guard(&spec, &reading, &audit, args.peek, ("lineage", &args.address))?;
    let evidence = audit.evidence();
    let address = Address::parse(&planned.plan, &args.address)
        .map_err(|error| Failure::new(Exit::Usage, error.to_string()).hint(FORM))?;
    let found = walk(evidence, reading.source(), &address).map_err(failure::audit)?;
    if found.roots.is_empty() {
        return Err(Failure::new(Exit::Usage, format!("nothing is called `{}`", args.address)).hint(FORM));
    }
    if args.json {
        output.json(&found)?;
    } else {
        for step in found.steps() {
            output.data(line(&step))?;
        }
    }
    let findings: Vec<_> = found.findings.iter().cloned().collect();
    Ok(super::verdict::damage_of(&findings, &[], output))
}

const FORM: &str = "name a number (`stage.name[seed=3]`), a claim, an output, a digest, or a project file";

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

fn relation(code: &str) -> &str {
    match code {
        "written-by" => "written by",
        "made-by" => "made by",
        "attempted" => "executed",
        "diverged" => "diverged, does not stand",
        other => other,
    }
}

fn thing(what: &Thing) -> String {
    match what {
        Thing::Claim { name } => format!("claim {name}"),
        Thing::Number { name, value, keys, line } => {
            let keys: Vec<String> = keys.iter().map(|(k, v)| format!("{k}={v}")).collect();
            let keys = if keys.is_empty() { String::new() } else { format!("[{}]", keys.join(",")) };
            format!("{name}{keys} = {} (line {line})", words::number(*value))
        }
        Thing::Member { label, fate } => format!("{label} ({fate})"),
        Thing::Attempt {
            digest,
            outcome,
            started,
            host,
            confinement,
            wall,
            under_registration,
            verification,
            continues,
        } => {
            let registered = match under_registration {
                Some(true) => ", under the registration",
                Some(false) => ", older than the registration",
                None => "",
            };
            let purpose = if *verification { ", made to verify" } else { "" };
            format!(
                "attempt {} {outcome} at {} on {host} ({confinement}), {}{registered}{purpose}{}",
                short(digest),
                words::moment(*started),
                words::seconds(*wall as f64 / 1e6),
                words::continued(continues)
            )
        }
        Thing::Action { digest, command, .. } => format!("action {}: {command}", short(digest)),
        Thing::Artifact { artifact } => artifact.to_string(),
        Thing::File { path, artifact } => format!("{path} ({})", artifact.short()),
        Thing::Url { url, digest } => format!("{url} ({})", digest.short()),
        Thing::Code { tree } => tree.to_string(),
        Thing::Program { word, digest } => format!("{word} ({})", digest.short()),
        Thing::Environment { manager, path, lock } => format!("{manager} {path} ({})", lock.short()),
        Thing::Operation { name, identity } => format!("{name} ({})", short(identity)),
    }
}

fn short(hex: &str) -> &str {
    hex.get(..8).unwrap_or(hex)
}
