//! Which rows of a sealed output the models judged on it were trained with.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::rc::Rc;

use avow_model::digest::{Artifact, BlobDigest};
use avow_model::expand::{self, Member};
use avow_model::op::Kind;
use avow_model::plan::{Input, Source as From};
use avow_model::tree::{self, Tree};

use super::rows::{Overlap, Rows, Unread};
use super::seals;
use crate::deviation::{Class, Deviation, What, When};
use crate::evidence::{Evidence, Fate};
use crate::source::{AuditError, Source};

/// Larger files are not compared, and that is told.
const LARGEST: u64 = 1 << 30;

/// What the comparison of sealed rows with training rows gave.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Leaks {
    /// One for each sealed output and training data that share rows.
    pub deviations: Vec<Deviation>,
    /// Sealed files and training files whose rows could not be compared, with why.
    pub uncompared: BTreeSet<String>,
}

/// Some data by name and content; the path says its format.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Data {
    /// `stage.output`, a path or an address.
    name: String,
    path: String,
    artifact: Artifact,
}

/// Compares every sealed output with what the models that are judged on it were trained with.
pub fn leaks(evidence: &Evidence<'_>, source: Source<'_>) -> Result<Leaks, AuditError> {
    if !seals(evidence.plan) {
        return Ok(Leaks::default());
    }
    let mut pairs: BTreeMap<(Data, Data), String> = BTreeMap::new();
    for member in evidence.members().map(|found| found.member) {
        meetings(evidence, member, &mut pairs);
    }
    let mut comparer =
        Comparer { source, rows: HashMap::new(), files: HashMap::new(), out: Leaks::default() };
    let mut worst: BTreeMap<(String, String), What> = BTreeMap::new();
    for ((sealed, training), stage) in pairs {
        let found = comparer.compare(&sealed, &training)?;
        if found.shared == 0 {
            continue;
        }
        let key = (sealed.name.clone(), training.name.clone());
        let more = !matches!(worst.get(&key), Some(What::Leaked { shared, .. }) if *shared >= found.shared);
        if more {
            let (rows, shared, first) = (found.rows, found.shared, found.first);
            let (holdout, training) = key.clone();
            worst.insert(key, What::Leaked { stage, holdout, training, rows, shared, first });
        }
    }
    let when = if evidence.registration.is_some() { When::After } else { When::Unregistered };
    let deviation = |what| Deviation::new(Class::Leakage, when, what);
    comparer.out.deviations = worst.into_values().map(deviation).collect();
    Ok(comparer.out)
}

/// The pairs of sealed output and training data that meet in a member, with the stage that trained: those sealed outputs
/// that it rests on, and what everything that it rests on was fitted to. A folder gathered over an axis of the sealed
/// output (the folds of a cross-validation) brings together what was never judged together, and is not followed.
fn meetings(evidence: &Evidence<'_>, member: Member, pairs: &mut BTreeMap<(Data, Data), String>) {
    let plan = evidence.plan;
    for sealing in plan.stages.iter().filter(|stage| stage.outputs.values().any(|output| output.holdout)) {
        let apart = |input: &Input| match &input.from {
            From::Output { gather, .. } => gather.iter().any(|axis| sealing.scope.contains(axis)),
            _ => false,
        };
        let together = upstream(evidence, member, &apart);
        let fitted =
            |m: &&Member| matches!(plan.stages[m.stage as usize].kind, Some(Kind::Train | Kind::Calibrate));
        let fitting: Vec<&Member> = together.iter().filter(fitted).collect();
        if fitting.is_empty() {
            continue;
        }
        let read = together.iter().flat_map(|m| inputs(evidence, *m, &apart));
        let own = |producer: &Member| plan.stages[producer.stage as usize].name == sealing.name;
        let sealed: BTreeSet<(Member, Data)> = read
            .filter(|(_, _, sealed)| *sealed)
            .filter_map(|(producer, data, _)| Some((producer.filter(own)?, data)))
            .collect();
        for (producer, data) in sealed {
            // What it was made from holds its rows.
            let origin = lineage(evidence, producer);
            for member in &fitting {
                for training in lineage(evidence, **member) {
                    if training.artifact != data.artifact && !origin.contains(&training) {
                        let stage = plan.stages[member.stage as usize].name.clone();
                        pairs.entry((data.clone(), training)).or_insert(stage);
                    }
                }
            }
        }
    }
}

/// What a member reads: who made it, the data, and whether it is sealed. Inputs that are `apart` are left out.
fn inputs(
    evidence: &Evidence<'_>,
    member: Member,
    apart: &dyn Fn(&Input) -> bool,
) -> Vec<(Option<Member>, Data, bool)> {
    let stage = &evidence.plan.stages[member.stage as usize];
    let followed = stage.inputs.values().filter(|input| !apart(input));
    followed.flat_map(|input| input_data(evidence, member, input)).collect()
}

fn input_data(evidence: &Evidence<'_>, member: Member, input: &Input) -> Vec<(Option<Member>, Data, bool)> {
    let outside = |path: &String, artifact| {
        vec![(None, Data { name: path.clone(), path: path.clone(), artifact }, false)]
    };
    match &input.from {
        From::Path { path, artifact } => outside(path, *artifact),
        From::Url { url, digest } => outside(url, Artifact::Blob(*digest)),
        From::Probes { .. } => Vec::new(),
        From::Output { stage, output, .. } => {
            let cell = expand::cell(evidence.plan, member);
            let declared = evidence.plan.stage(stage).and_then(|stage| stage.outputs.get(output));
            let Some(declared) = declared else { return Vec::new() };
            let producers = expand::producers(&cell, &input.from).unwrap_or_default();
            let made = producers.into_iter().filter_map(|producer| {
                let Fate::Stands(stands) = &evidence.member(producer)?.fate else { return None };
                let (name, path) = (format!("{stage}.{output}"), declared.path.clone());
                let artifact = *stands.outputs.get(output)?;
                Some((Some(producer), Data { name, path, artifact }, declared.holdout))
            });
            made.collect()
        }
    }
}

/// A member and every member that it rests on, through inputs that are not `apart`.
fn upstream(evidence: &Evidence<'_>, member: Member, apart: &dyn Fn(&Input) -> bool) -> BTreeSet<Member> {
    let (mut seen, mut open) = (BTreeSet::from([member]), vec![member]);
    while let Some(member) = open.pop() {
        for producer in inputs(evidence, member, apart).into_iter().filter_map(|(producer, ..)| producer) {
            if seen.insert(producer) {
                open.push(producer);
            }
        }
    }
    seen
}

/// All data that a member rests on, sealed ones left out: a train stage may score itself on those.
fn lineage(evidence: &Evidence<'_>, member: Member) -> BTreeSet<Data> {
    let members = upstream(evidence, member, &|_| false).into_iter();
    let all =
        members.flat_map(|member| inputs(evidence, member, &|_| false)).filter(|(_, _, sealed)| !sealed);
    all.map(|(_, data, _)| data).collect()
}

/// Files of one artifact: path and content.
type Files = Rc<Vec<(String, BlobDigest)>>;

struct Comparer<'a> {
    source: Source<'a>,
    /// The rows of a file; nothing where they are not known.
    rows: HashMap<(String, BlobDigest), Option<Rc<Rows>>>,
    files: HashMap<Artifact, Files>,
    out: Leaks,
}

impl Comparer<'_> {
    /// Every file of the one with every file of the other.
    fn compare(&mut self, sealed: &Data, training: &Data) -> Result<Overlap, AuditError> {
        let (held, trained) = (self.files(sealed)?, self.files(training)?);
        let several = held.len() > 1 || matches!(sealed.artifact, Artifact::Tree(_));
        let mut all = Overlap::default();
        for (path, blob) in held.iter() {
            let Some(rows) = self.rows((&sealed.name, true), path, *blob)? else { continue };
            let mut best = Overlap { rows: rows.shared_with(&Rows::default()).rows, ..Overlap::default() };
            for (other_path, other) in trained.iter() {
                let Some(other) = self.rows((&training.name, false), other_path, *other)? else { continue };
                let found = rows.shared_with(&other);
                if found.shared > best.shared {
                    best = found;
                }
            }
            if several {
                best.first
                    .iter_mut()
                    .for_each(|shared| shared.holdout = format!("{path} {}", shared.holdout));
            }
            all.rows += best.rows;
            all.shared += best.shared;
            all.first.extend(best.first);
            all.first.truncate(3);
        }
        Ok(all)
    }

    fn files(&mut self, data: &Data) -> Result<Files, AuditError> {
        if let Some(known) = self.files.get(&data.artifact) {
            return Ok(Rc::clone(known));
        }
        let mut files = Vec::new();
        let mut open = vec![(data.path.clone(), data.artifact)];
        while let Some((path, artifact)) = open.pop() {
            let digest = match artifact {
                Artifact::Blob(blob) => {
                    files.push((path, blob));
                    continue;
                }
                Artifact::Tree(digest) => digest,
            };
            let Ok(tree) = self.source.record::<Tree>(BlobDigest::from(digest), &data.name)? else {
                continue;
            };
            for (name, entry) in tree.entries {
                match entry {
                    tree::Entry::File { digest, .. } => files.push((name, digest)),
                    tree::Entry::Tree { digest } => open.push((name, Artifact::Tree(digest))),
                    tree::Entry::Link { .. } | tree::Entry::Empty => {}
                }
            }
        }
        files.sort();
        let files = Rc::new(files);
        self.files.insert(data.artifact, Rc::clone(&files));
        Ok(files)
    }

    /// The rows of a file. A sealed one without rows is told; what else a stage trains from may well be no data.
    fn rows(
        &mut self,
        (name, sealed): (&str, bool),
        path: &str,
        blob: BlobDigest,
    ) -> Result<Option<Rc<Rows>>, AuditError> {
        let key = (path.to_owned(), blob);
        if let Some(known) = self.rows.get(&key) {
            return Ok(known.clone());
        }
        let rows = match self.source.size(blob)? {
            // What is gone or was never kept is named elsewhere, where it matters.
            None => Err(Some("not in the store".to_owned())),
            Some(size) if size > LARGEST => Err(Some("larger than 1 GiB".to_owned())),
            Some(_) => match self.source.read(blob, name)? {
                Err(_) => Err(Some("damaged".to_owned())),
                Ok(bytes) => Rows::read(path, &bytes).map_err(|unread| match unread {
                    Unread::Format => sealed.then(|| unread.to_string()),
                    Unread::Syntax(why) => Some(format!("it does not parse: {why}")),
                }),
            },
        };
        let rows = match rows {
            Ok(rows) => Some(Rc::new(rows)),
            Err(why) => {
                let file = if path == name { name.to_owned() } else { format!("{name} ({path})") };
                self.out.uncompared.extend(why.map(|why| format!("{file}: {why}")));
                None
            }
        };
        self.rows.insert(key, rows.clone());
        Ok(rows)
    }
}
