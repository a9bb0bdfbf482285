//! A manifest as a claim of a spec.

use avow_exchange::prml::Manifest;
use avow_exchange::prml::value::Node;

use crate::exit::Exit;
use crate::output::{Failure, Output};

/// Prints the claim that a manifest makes, to be put into a spec: judged by the estimate, as the format judges it.
pub fn import(manifest: &Manifest, output: &Output) -> Result<Exit, Failure> {
    let (metric, threshold) = (manifest.metric(), manifest.threshold());
    let text = |key: &str| manifest.values().get(key).and_then(Node::text).unwrap_or_default();
    let name: String = metric
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' })
        .collect();
    let name = format!("prml-{}", name.trim_matches('-'));
    let dataset = manifest.values().get("dataset").and_then(|d| d.get("id")).and_then(Node::text);
    let says = format!(
        "{metric} {} {threshold} on {}, as committed to in {}.",
        manifest.comparator(),
        dataset.unwrap_or_default(),
        text("claim_id")
    );
    let (rule, remark) = match manifest.comparator() {
        ">" => (format!("{{kind: threshold, above: {threshold}}}"), None),
        "<" => (format!("{{kind: threshold, below: {threshold}}}"), None),
        ">=" => (
            format!("{{kind: threshold, above: {threshold}}}"),
            Some("the manifest says >=; a bound here is strict, and equality is inconclusive"),
        ),
        "<=" => (
            format!("{{kind: threshold, below: {threshold}}}"),
            Some("the manifest says <=; a bound here is strict, and equality is inconclusive"),
        ),
        _ => {
            let args = manifest.values().get("metric_args");
            let named = args.and_then(|args| args.get("tolerance")).and_then(Node::number);
            let margin = named.unwrap_or(avow_exchange::prml::TOLERANCE);
            (format!("{{kind: equivalence, about: {threshold}, margin: {margin}}}"), None)
        }
    };
    let quoted = |text: &str| serde_json::Value::from(text).to_string();
    output.data(format!("# from the PRML manifest {}", manifest.digest()))?;
    if let Some(remark) = remark {
        output.data(format!("# {remark}"))?;
    }
    output.data(format!(
        "claims:\n  {name}:\n    says: {}\n    select: {}\n    judge: estimate\n    rule: {rule}",
        quoted(&says),
        quoted(metric)
    ))?;
    if let Some(hash) = Some(manifest.dataset_hash()).filter(|hash| !hash.is_empty()) {
        output.say(format!("the manifest's data have the SHA-256 {hash}: compare them with `sha256sum`"));
    }
    Ok(Exit::Done)
}
