//! A claim of an experiment as a manifest.
//!
//! The format says less than a claim: one number against one threshold. What it cannot say (the units, the interval that
//! decides, the family) stands under `notes`, with the registration that says it.

use std::collections::BTreeMap;
use std::path::Path;

use avow_exchange::prml::Manifest;
use avow_exchange::prml::value::Node;
use avow_model::axis::Points;
use avow_model::claim::{Bound, Claim, Part, Selected, Test};
use avow_model::digest::{Artifact, BlobDigest};
use avow_model::plan::{Plan, Source};
use jiff::Timestamp;

use super::{give, sha256};
use crate::args;
use crate::context::{Reading, Spec};
use crate::embargo;
use crate::exit::Exit;
use crate::git;
use crate::output::{Failure, Output};

/// Prints or writes the manifest of a claim.
pub fn export(args: &args::PrmlExport, output: &Output) -> Result<Exit, Failure> {
    let spec = Spec::open(args.spec.spec.as_deref())?;
    let plan = spec.plan_as_run(output)?.plan;
    embargo::closed_to(&spec.project, &plan.experiment, "a manifest")?;
    let claim = chosen(&plan, args.claim.as_deref())?;
    let reading = Reading::open(&spec.project, &plan.experiment)?;
    let registration = reading.ledger.in_force().0.map(|force| force.registered.leaf.to_string());
    let created = match &args.created_at {
        Some(text) => text
            .parse::<Timestamp>()
            .map_err(|error| Failure::new(Exit::Usage, format!("`{text}` is no time")).because(error))?,
        None => Timestamp::now(),
    };
    let producer = args
        .producer
        .clone()
        .or_else(|| git::ask(spec.project.root(), &["config", "user.email"]).filter(|who| !who.is_empty()))
        .ok_or_else(|| {
            Failure::new(Exit::Usage, "a manifest names its producer").hint("give `--producer WHO`")
        })?;
    let (comparator, threshold, metric) = predicate(claim)?;
    let (id, hash) = data(&plan, spec.project.root())?;
    let text = |text: &str| Node::Text(text.to_owned());
    let map = |entries: &[(&str, Node)]| {
        Node::Map(entries.iter().map(|(key, value)| ((*key).to_owned(), value.clone())).collect())
    };
    let manifest = Manifest::of(map(&[
        ("version", text("prml/0.1")),
        ("claim_id", text(&uuid(created, &plan, claim))),
        ("created_at", text(&second(created).to_string())),
        ("metric", text(&metric)),
        ("comparator", text(comparator)),
        ("threshold", Node::Float(threshold)),
        ("dataset", map(&[("id", text(&id)), ("hash", text(&hash))])),
        ("seed", seed(&plan, claim)),
        ("producer", map(&[("id", text(&producer))])),
        ("notes", text(&notes(&plan, claim, registration.as_deref()))),
    ]));
    let manifest = manifest.map_err(|error| {
        Failure::new(Exit::Usage, format!("the claim `{}` makes no PRML manifest", claim.name)).because(error)
    })?;
    give(&manifest, args.output.as_deref(), args.json, output)
}

fn chosen<'p>(plan: &'p Plan, named: Option<&str>) -> Result<&'p Claim, Failure> {
    let names = || plan.claims.iter().map(|claim| claim.name.as_str()).collect::<Vec<_>>().join(", ");
    match (named, plan.claims.as_slice()) {
        (Some(name), _) => plan.claim(name).ok_or_else(|| {
            Failure::new(Exit::Usage, format!("no claim is called `{name}`"))
                .hint(format!("the claims are {}", names()))
        }),
        (None, [one]) => Ok(one),
        (None, _) => Err(Failure::new(Exit::Usage, "a manifest is about one claim")
            .hint(format!("name it with `--claim`: {}", names()))),
    }
}

/// Comparator, threshold and what is compared.
fn predicate(claim: &Claim) -> Result<(&'static str, f64, String), Failure> {
    let refused = |why: &str| {
        Failure::new(Exit::Usage, format!("the claim `{}` makes no PRML manifest", claim.name))
            .hint(format!("{why}; the format has one number and one threshold"))
    };
    let Test::One(part) = &claim.test else { return Err(refused("it has several parts")) };
    let Some(bound) = part.rule.bound() else {
        return Err(refused(&format!("`{}` has no threshold", part.rule.word())));
    };
    let (comparator, threshold) = match bound {
        Bound::Above { bound, .. } => (">", bound),
        Bound::Below { bound, .. } => ("<", bound),
        Bound::Between { .. } => return Err(refused("it has two bounds")),
    };
    Ok((comparator, threshold, metric(part)))
}

/// What is compared, in one line.
fn metric(part: &Part) -> String {
    let (Selected::Measurement(name) | Selected::Output(name)) = &part.select.of;
    let arms = part.compare.as_ref().map(|c| format!(", {} {} minus {}", c.dimension, c.first, c.second));
    let over = part.replicate.as_ref().map(|unit| format!(" over {unit}"));
    let whole =
        format!("{name} ({}{}{})", part.rule.word(), arms.unwrap_or_default(), over.unwrap_or_default());
    whole.chars().take(256).collect()
}

/// A name for what comes from outside, and the SHA-256 of it: of the file's bytes where it is one file, else of a list of
/// its parts.
fn data(plan: &Plan, root: &Path) -> Result<(String, String), Failure> {
    let mut parts: BTreeMap<String, Artifact> = BTreeMap::new();
    for input in plan.stages.iter().flat_map(|stage| stage.inputs.values()) {
        match &input.from {
            Source::Path { path, artifact } => parts.insert(path.clone(), *artifact),
            Source::Url { url, digest } => parts.insert(url.clone(), Artifact::Blob(*digest)),
            Source::Output { .. } | Source::Probes { .. } => None,
        };
    }
    if let [(path, Artifact::Blob(blob))] = parts.iter().collect::<Vec<_>>().as_slice() {
        let bytes = std::fs::read(root.join(path));
        if let Ok(bytes) = bytes
            && BlobDigest::of(&bytes) == *blob
        {
            return Ok(((*path).clone(), sha256(&bytes)));
        }
    }
    let list: String = parts.iter().map(|(path, artifact)| format!("{path} {artifact}\n")).collect();
    let id = match parts.len() {
        0 => format!("{}: nothing from outside", plan.experiment),
        n => format!("{}: list of {n} inputs, each as `PATH DIGEST` in a line (BLAKE3)", plan.experiment),
    };
    Ok((id, sha256(list.as_bytes())))
}

/// The one seed there is, or none where there are several.
fn seed(plan: &Plan, claim: &Claim) -> Node {
    let parts = claim.test.parts();
    let axis = parts.iter().find_map(|part| plan.axis(part.replicate.as_deref().unwrap_or("seed")));
    let only = axis.filter(|axis| axis.len() == 1 && !matches!(axis.points, Points::Derived(_)));
    match only.and_then(|axis| axis.value(0)?.as_i64()) {
        Some(seed) => Node::Int(seed.into()),
        None => Node::Null,
    }
}

fn notes(plan: &Plan, claim: &Claim, registration: Option<&str>) -> String {
    let mut notes = Vec::new();
    notes.extend(claim.says.as_deref().map(|says| says.split_whitespace().collect::<Vec<_>>().join(" ")));
    notes.push(format!(
        "Claim {} of the experiment {}, plan {}.",
        claim.name,
        plan.experiment,
        plan_digest(plan)
    ));
    notes.push(match registration {
        Some(leaf) => {
            format!("Registered with avow as {leaf}, where an interval decides at level {}.", claim.alpha)
        }
        None => "Not registered with avow.".to_owned(),
    });
    notes.join(" ").chars().take(4096).collect()
}

fn plan_digest(plan: &Plan) -> String {
    use avow_model::canonical::Record;
    plan.digest().to_string()
}

/// Whole seconds, as the format's other tools write times.
fn second(time: Timestamp) -> Timestamp {
    Timestamp::from_second(time.as_second()).unwrap_or(time)
}

/// A UUID of version 7: the time, and bits that the plan and the claim give, so that one time gives one name.
fn uuid(time: Timestamp, plan: &Plan, claim: &Claim) -> String {
    let milliseconds = second(time).as_millisecond().max(0) as u64 & 0xffff_ffff_ffff;
    let drawn = BlobDigest::of(format!("avow/prml/1 {} {}", plan_digest(plan), claim.name).as_bytes());
    let drawn = drawn.as_bytes();
    let tail: String = drawn[4..10].iter().map(|byte| format!("{byte:02x}")).collect();
    format!(
        "{:08x}-{:04x}-7{:03x}-{:04x}-{tail}",
        milliseconds >> 16,
        milliseconds & 0xffff,
        (u16::from(drawn[0]) << 8 | u16::from(drawn[1])) & 0xfff,
        ((u16::from(drawn[2]) << 8 | u16::from(drawn[3])) & 0x3fff) | 0x8000,
    )
}
