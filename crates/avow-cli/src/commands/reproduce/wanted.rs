//! What is to be made again, and what that costs.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::path::Path;

use avow_audit::Evidence;
use avow_audit::evidence::{Fate, MemberEvidence};
use avow_audit::lineage::{Address, Thing, lineage};
use avow_exchange::bundle::{Bundle, Limits, unpack};
use avow_store::RecordStore;

use crate::args;
use crate::context::{Reading, Spec};
use crate::exit::Exit;
use crate::failure;
use crate::output::Failure;
use crate::words;

/// Where the record lies that is put to the test.
pub(super) struct Original {
    spec: Spec,
    /// What of it: an address; everything where there is none.
    address: Option<String>,
    /// A bundle's name and its project, for as long as it is needed.
    unpacked: Option<(String, tempfile::TempDir)>,
}

impl Original {
    /// Opens a bundle, a spec, or the spec beside an address.
    pub(super) fn open(args: &args::Reproduce) -> Result<Original, Failure> {
        let target = args.target.as_deref();
        if let Some(path) = target.map(Path::new).filter(|path| is_archive(path)) {
            return Original::bundle(path);
        }
        let named = target.map(Path::new).filter(|path| path.is_file() && args.spec.is_none());
        let spec = Spec::open(named.or(args.spec.as_deref()))?;
        let address = target.filter(|_| named.is_none()).map(str::to_owned);
        Ok(Original { spec, address, unpacked: None })
    }

    fn bundle(path: &Path) -> Result<Original, Failure> {
        let machine =
            |error| Failure::new(Exit::Machine, "no folder could be made to unpack in").because(error);
        let folder = tempfile::Builder::new().prefix("avow-reproduce-").tempdir().map_err(machine)?;
        let bundle = Bundle::open(path, Limits::default()).map_err(failure::opened)?;
        let unpacked = unpack(&bundle, folder.path()).map_err(failure::bundle)?;
        let name = bundle.manifest().name().map_err(failure::bundle)?;
        let spec = Spec::open(Some(&unpacked.spec))?;
        Ok(Original { spec, address: None, unpacked: Some((name, folder)) })
    }

    /// The name of the bundle, where it is one.
    pub(super) fn name(&self) -> Option<&str> {
        self.unpacked.as_ref().map(|(name, _)| name.as_str())
    }

    pub(super) fn spec(&self) -> &Spec {
        &self.spec
    }

    /// What was asked for, in words.
    pub(super) fn target(&self) -> &str {
        self.address.as_deref().unwrap_or("the whole experiment")
    }
}

/// Whether a file begins as zip archives do.
pub(in crate::commands) fn is_archive(path: &Path) -> bool {
    let mut begin = [0; 4];
    std::fs::File::open(path).and_then(|mut file| file.read_exact(&mut begin)).is_ok()
        && begin == *b"PK\x03\x04"
}

/// The members to make again.
pub(super) struct Wanted {
    /// Their labels.
    pub(super) labels: BTreeSet<String>,
    /// Whether that is everything that stands.
    pub(super) whole: bool,
    /// What `--only` is given; nothing where everything is wanted.
    pub(super) only: Vec<String>,
    /// Processor time that they took, in microseconds.
    cpu: u64,
    /// Of members without a success, how many there are.
    without: usize,
}

impl Wanted {
    /// What the arguments ask for.
    pub(super) fn of(
        args: &args::Reproduce,
        original: &Original,
        evidence: &Evidence<'_>,
        reading: &Reading,
    ) -> Result<Wanted, Failure> {
        let standing: Vec<&MemberEvidence> =
            evidence.members().filter(|member| matches!(member.fate, Fate::Stands(_))).collect();
        if standing.is_empty() {
            return Err(Failure::new(Exit::Usage, "there is nothing to make again: no member has succeeded")
                .hint("`avow run` carries the experiment out"));
        }
        let mut costs = BTreeMap::new();
        for member in &standing {
            costs.insert(evidence.label(member.member), cost(member, reading)?);
        }
        let named = match &original.address {
            Some(address) => Some(rests_on(address, evidence, reading)?),
            None => None,
        };
        let sampled = match args.sample {
            Some(count) => Some(sample(&costs, count.get(), args.nonce.as_deref().unwrap_or_default())),
            None => named,
        };
        let all: BTreeSet<String> = costs.keys().cloned().collect();
        let labels = match sampled {
            Some(some) => some.intersection(&all).cloned().collect(),
            None => all.clone(),
        };
        let whole = labels == all;
        let only = if whole { Vec::new() } else { shortest(&labels, evidence) };
        let cpu = costs.iter().filter(|(label, _)| labels.contains(*label)).map(|(_, cost)| cost).sum();
        let without = evidence.members().count() - standing.len();
        Ok(Wanted { labels, whole, only, cpu, without })
    }

    /// What it will take.
    pub(super) fn price(&self) -> String {
        let without = match self.without {
            0 => String::new(),
            n => format!("; {} without a success left out", words::count(n as u64, "member")),
        };
        format!(
            "{} to make again, which took {} of processor time{without}",
            words::count(self.labels.len() as u64, "member"),
            words::seconds(self.cpu as f64 / 1e6)
        )
    }
}

fn cost(member: &MemberEvidence, reading: &Reading) -> Result<u64, Failure> {
    let Fate::Stands(stands) = &member.fate else { return Ok(0) };
    let recorded = reading.index.attempt(stands.attempt).map_err(failure::store)?;
    Ok(recorded.map_or(0, |recorded| recorded.attempt.usage.cpu))
}

/// The members that an address rests on.
fn rests_on(text: &str, evidence: &Evidence<'_>, reading: &Reading) -> Result<BTreeSet<String>, Failure> {
    const FORM: &str =
        "name a number (`stage.name[seed=3]`), a claim, an output or a stage; or give a spec or a bundle";
    let address = Address::parse(evidence.plan, text)
        .map_err(|error| Failure::new(Exit::Usage, error.to_string()).hint(FORM))?;
    let found = lineage(evidence, reading.source(), &address).map_err(failure::audit)?;
    let label = |node: &avow_audit::lineage::Node| match &node.what {
        Thing::Member { label, .. } => Some(label.clone()),
        _ => None,
    };
    let labels: BTreeSet<String> = found.nodes.values().filter_map(label).collect();
    if labels.is_empty() {
        return Err(Failure::new(
            Exit::Usage,
            format!("nothing that could be made again is called `{text}`"),
        )
        .hint(FORM));
    }
    Ok(labels)
}

/// Stages as a whole where every member of them is wanted, members otherwise: what a command line can hold.
fn shortest(labels: &BTreeSet<String>, evidence: &Evidence<'_>) -> Vec<String> {
    let mut only = Vec::new();
    for (stage, members) in evidence.plan.stages.iter().zip(&evidence.stages) {
        let named: Vec<String> =
            members.iter().map(|m| evidence.label(m.member)).filter(|label| labels.contains(label)).collect();
        if named.len() == members.len() && !named.is_empty() {
            only.push(stage.name.clone());
        } else {
            only.extend(named);
        }
    }
    only
}

/// So many members, drawn by the reader's nonce: nobody who made the record could know them. A member is drawn in
/// proportion to what it cost (Efraimidis and Spirakis 2006: the largest u^(1/w), u from BLAKE3 over nonce and label).
fn sample(costs: &BTreeMap<String, u64>, count: usize, nonce: &str) -> BTreeSet<String> {
    let mut keyed: Vec<(f64, &String)> = costs
        .iter()
        .map(|(label, cost)| {
            let mut hasher = blake3::Hasher::new();
            hasher
                .update(&(nonce.len() as u64).to_le_bytes())
                .update(nonce.as_bytes())
                .update(label.as_bytes());
            let mut first = [0; 8];
            first.copy_from_slice(&hasher.finalize().as_bytes()[..8]);
            // 53 bits, never 0 and never 1.
            let uniform = ((u64::from_le_bytes(first) >> 11) as f64 + 0.5) / (1u64 << 53) as f64;
            // The smallest -ln(u)/w is the largest u^(1/w) without its underflow.
            (-uniform.ln() / (*cost).max(1) as f64, label)
        })
        .collect();
    keyed.sort_by(|(a, x), (b, y)| a.total_cmp(b).then(x.cmp(y)));
    keyed.into_iter().take(count).map(|(_, label)| label.clone()).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::sample;

    #[test]
    fn a_sample_is_fixed_by_its_nonce_and_prefers_what_was_dear() {
        let costs: BTreeMap<String, u64> =
            (0..20).map(|i| (format!("m{i}"), if i == 7 { 1_000_000 } else { 1000 })).collect();
        assert_eq!(sample(&costs, 3, "a"), sample(&costs, 3, "a"));
        let drawn = (0..200).map(|nonce| sample(&costs, 1, &nonce.to_string()));
        let dear = drawn.filter(|sample| sample.contains("m7")).count();
        // It has 98 % of the cost.
        assert!((185..=200).contains(&dear), "{dear}");
        assert_eq!(sample(&costs, 50, "a").len(), 20);
    }
}
