//! The walk itself.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use avow_model::action::{Action, Command};
use avow_model::attempt::Attempt;
use avow_model::bind::bind;
use avow_model::canonical::Record;
use avow_model::digest::{Artifact, AttemptDigest, TreeDigest};
use avow_model::expand::{self, Member};
use avow_model::plan::{Input, Program, Source as From, Stage};
use avow_model::present::Present;
use avow_model::tree::{Entry, Tree};

use super::address::is_written;
use super::{Address, Edge, Lineage, Machine, Node, Thing};
use crate::deviation;
use crate::evidence::{Evidence, Fate, Tried};
use crate::join;
use crate::measure::{self, Measurement};
use crate::source::{AuditError, Source};

/// The lineage of whatever an address names; empty where nothing is called like that.
pub fn lineage(
    evidence: &Evidence<'_>,
    source: Source<'_>,
    address: &Address,
) -> Result<Lineage, AuditError> {
    let (open, named) = (VecDeque::new(), BTreeSet::new());
    let mut builder = Builder { evidence, source, out: Lineage::default(), open, named };
    builder.roots(address)?;
    while let Some(member) = builder.open.pop_front() {
        builder.member(member)?;
    }
    builder.out.prune();
    Ok(builder.out)
}

struct Builder<'a> {
    evidence: &'a Evidence<'a>,
    source: Source<'a>,
    out: Lineage,
    /// Members whose node is named by an edge and not yet written.
    open: VecDeque<Member>,
    /// Members whose node is named by an edge.
    named: BTreeSet<Member>,
}

/// Folders within folders are looked through so far: as deep as a tree may be.
const DEPTH: usize = 64;

fn edge(relation: &'static str, name: Option<String>, to: String) -> Edge {
    Edge { relation, name, to }
}

impl Builder<'_> {
    fn roots(&mut self, address: &Address) -> Result<(), AuditError> {
        match address {
            Address::Named { stage, name, at } => self.named(stage, name, at),
            Address::Stage { stage, at } => {
                for member in self.members(stage, at) {
                    let id = self.link(member);
                    self.out.roots.push(id);
                }
                Ok(())
            }
            Address::Claim(name) => self.claim(name),
            Address::Digest(digits) => {
                self.by_content(&|artifact, _| artifact.blob().to_string().starts_with(digits))
            }
            Address::Path(path) => self.by_content(&|_, here| here == Some(path)),
        }
    }

    /// The members of a stage at a point; pairs that name no axis are record keys and narrow nothing here.
    fn members(&self, stage: &str, at: &[(String, String)]) -> Vec<Member> {
        let plan = self.evidence.plan;
        let Some(index) = plan.stage_index(stage) else { return Vec::new() };
        let scope = &plan.stages[index].scope;
        let fits = |member: &Member| {
            let cell = expand::cell(plan, *member);
            let axes = at.iter().filter(|(axis, _)| scope.contains(axis));
            axes.into_iter()
                .all(|(axis, text)| cell.values().any(|(name, v)| name == axis && is_written(&v, text)))
        };
        self.evidence.stages[index].iter().map(|m| m.member).filter(fits).collect()
    }

    /// Measurements of that name, or else the output, or else (`train.py` beside a stage `train`) the file.
    fn named(&mut self, stage: &str, name: &str, at: &[(String, String)]) -> Result<(), AuditError> {
        let Some(index) = self.evidence.plan.stage_index(stage) else { return Ok(()) };
        let readings = measure::read_stage(self.evidence, self.source, index)?;
        self.out.findings.extend(readings.findings);
        let fits = |m: &&Measurement| {
            m.name == name
                && at.iter().all(|(key, text)| {
                    m.axes.get(key).or_else(|| m.keys.get(key)).is_some_and(|value| is_written(value, text))
                })
        };
        for number in readings.values.iter().filter(fits) {
            self.number(stage, number);
        }
        if self.out.roots.is_empty() {
            for member in self.members(stage, at) {
                let made = self.evidence.member(member).map(|m| &m.fate);
                if let Some(Fate::Stands(stands)) = made
                    && let Some(artifact) = stands.outputs.get(name)
                {
                    let root = self.artifact(*artifact, Some(member));
                    self.root(root);
                }
            }
        }
        if self.out.roots.is_empty() && at.is_empty() {
            let path = format!("{stage}.{name}");
            self.by_content(&|_, here| here == Some(&path))?;
        }
        Ok(())
    }

    fn number(&mut self, stage: &str, number: &Measurement) {
        let label = self.evidence.label(number.member);
        let keys: Vec<String> = number.keys.iter().map(|(k, v)| format!("{k}={v}")).collect();
        let id = format!("number:{label}.{}[{}]", number.name, keys.join(","));
        let what = Thing::Number {
            name: format!("{stage}.{}", number.name),
            member: label,
            value: number.value,
            keys: (*number.keys).clone(),
            line: number.origin.line,
        };
        let file = self.artifact(Artifact::Blob(number.origin.artifact), Some(number.member));
        self.put(&id, what, vec![edge("written-by", Some(number.origin.output.clone()), file)]);
        self.root(id);
    }

    /// A claim rests on every member that its parts select, and through them on all else.
    fn claim(&mut self, name: &str) -> Result<(), AuditError> {
        let Some(claim) = self.evidence.plan.claim(name) else { return Ok(()) };
        let mut on = Vec::new();
        for part in deviation::parts(&claim.test) {
            let stage = self.evidence.plan.stage_index(&part.select.stage);
            let readings = match stage {
                Some(index) => measure::read_stage(self.evidence, self.source, index)?,
                None => continue,
            };
            let members: Vec<Member> = join::join(self.evidence, &readings, part)
                .map(|joined| {
                    joined.iter().flat_map(|j| &j.points).flat_map(|p| &p.members).copied().collect()
                })
                .unwrap_or_default();
            for member in members {
                let to = self.link(member);
                if !on.iter().any(|edge: &Edge| edge.to == to) {
                    on.push(edge("selects", None, to));
                }
            }
        }
        let id = format!("claim:{name}");
        self.put(&id, Thing::Claim { name: name.to_owned() }, on);
        self.root(id);
        Ok(())
    }

    /// Whatever has this content or path: outputs of members, inputs, code, lock files.
    fn by_content(&mut self, fits: &dyn Fn(Artifact, Option<&String>) -> bool) -> Result<(), AuditError> {
        let evidence = self.evidence;
        for member in evidence.members() {
            let Fate::Stands(stands) = &member.fate else { continue };
            let stage = &evidence.plan.stages[member.member.stage as usize];
            for (name, artifact) in &stands.outputs {
                if fits(*artifact, stage.outputs.get(name).map(|o| &o.path)) {
                    let id = self.artifact(*artifact, Some(member.member));
                    self.root(id);
                } else if let Artifact::Tree(tree) = artifact {
                    self.inside(*tree, "", &[], &|file| fits(file, None), member.member)?;
                }
            }
        }
        for stage in &evidence.plan.stages {
            self.files_of(stage, fits)?;
        }
        Ok(())
    }

    /// Files within a folder that a member wrote. `outer` are the trees above, the written one first.
    fn inside(
        &mut self,
        tree: TreeDigest,
        at: &str,
        outer: &[TreeDigest],
        fits: &dyn Fn(Artifact) -> bool,
        by: Member,
    ) -> Result<(), AuditError> {
        let record = match self.source.record::<Tree>(tree.into(), "a folder that a stage wrote")? {
            Ok(record) => record,
            Err(finding) => {
                self.out.findings.insert(finding);
                return Ok(());
            }
        };
        let trees = [outer, &[tree]].concat();
        for (path, entry) in &record.entries {
            let path = if at.is_empty() { path.clone() } else { format!("{at}/{path}") };
            let artifact = match entry {
                Entry::File { digest, .. } => Artifact::Blob(*digest),
                Entry::Tree { digest } => Artifact::Tree(*digest),
                Entry::Link { .. } | Entry::Empty => continue,
            };
            if fits(artifact) {
                let folder = self.artifact(Artifact::Tree(trees[0]), Some(by));
                let id = format!("artifact:{artifact}");
                let node = self.out.nodes.entry(id.clone());
                let node =
                    node.or_insert_with(|| Node { what: Thing::Artifact { artifact }, on: Vec::new() });
                let within = edge("in", Some(path.clone()), folder);
                if !node.on.contains(&within) {
                    node.on.push(within);
                }
                self.root(id);
            } else if let (Artifact::Tree(inner), true) = (artifact, trees.len() < DEPTH) {
                self.inside(inner, &path, &trees, fits, by)?;
            }
        }
        Ok(())
    }

    fn files_of(
        &mut self,
        stage: &Stage,
        fits: &dyn Fn(Artifact, Option<&String>) -> bool,
    ) -> Result<(), AuditError> {
        for input in stage.inputs.values() {
            if let From::Path { path, artifact } = &input.from
                && fits(*artifact, Some(path))
            {
                let id = self.file(path, *artifact);
                self.root(id);
            }
        }
        if let Some(environment) = &stage.environment
            && fits(Artifact::Blob(environment.lock), Some(&environment.path))
        {
            let id = self.environment(environment);
            self.root(id);
        }
        if let Some(code) = stage.code {
            let id = self.code(code)?;
            if fits(Artifact::Tree(code), None) {
                self.root(id.clone());
            }
            let files = self.out.nodes.get(&id).map(|node| node.on.clone()).unwrap_or_default();
            for to in files.into_iter().map(|edge| edge.to) {
                let file = match self.out.nodes.get(&to).map(|node| &node.what) {
                    Some(Thing::File { path, artifact }) => fits(*artifact, Some(path)),
                    _ => false,
                };
                if file {
                    self.root(to);
                }
            }
        }
        Ok(())
    }

    fn root(&mut self, id: String) {
        if !self.out.roots.contains(&id) {
            self.out.roots.push(id);
        }
    }

    fn put(&mut self, id: &str, what: Thing, on: Vec<Edge>) {
        self.out.nodes.insert(id.to_owned(), Node { what, on });
    }

    /// The name of a member's node, which is written later if it is not yet.
    fn link(&mut self, member: Member) -> String {
        let id = format!("member:{}", self.evidence.label(member));
        if self.named.insert(member) {
            self.open.push_back(member);
        }
        id
    }

    fn artifact(&mut self, artifact: Artifact, by: Option<Member>) -> String {
        let id = format!("artifact:{artifact}");
        let made = by.map(|member| edge("made-by", None, self.link(member)));
        let node = self.out.nodes.entry(id.clone());
        let node = node.or_insert_with(|| Node { what: Thing::Artifact { artifact }, on: Vec::new() });
        // Several members may have made the same bytes; each is named.
        if let Some(made) = made
            && !node.on.contains(&made)
        {
            node.on.push(made);
        }
        id
    }

    fn member(&mut self, member: Member) -> Result<(), AuditError> {
        let Some(evidence) = self.evidence.member(member) else { return Ok(()) };
        let label = self.evidence.label(member);
        let attempt = match &evidence.fate {
            Fate::Stands(stands) => {
                Some((stands.attempt, self.evidence.registration.as_ref().map(|_| stands.covered)))
            }
            Fate::Failed { attempt, .. }
            | Fate::Unfinished { attempt, .. }
            | Fate::Invalidated { attempt } => Some((*attempt, None)),
            _ => None,
        };
        let mut on = Vec::new();
        if let Some((digest, covered)) = attempt {
            on.push(edge("stands", None, self.attempt(member, digest, covered)?));
        }
        for other in evidence.diverged() {
            let other = self.diverged(other)?;
            on.push(edge("diverged", None, other));
        }
        let what = Thing::Member { label: label.clone(), fate: evidence.fate.word() };
        self.put(&format!("member:{label}"), what, on);
        Ok(())
    }

    fn attempt(
        &mut self,
        member: Member,
        digest: AttemptDigest,
        under_registration: Option<bool>,
    ) -> Result<String, AuditError> {
        let id = format!("attempt:{digest}");
        let Some(attempt) = self.source.attempt(digest)? else { return Ok(id) };
        let what = thing(digest, &attempt, under_registration);
        let mut on = Vec::new();
        if let Some(action) = self.action(member)? {
            on.push(edge("attempted", None, action));
        }
        on.push(edge("ran-on", None, self.machine(&attempt)?));
        on.extend(self.registration(under_registration));
        for (path, digest) in self.source.undeclared(&attempt)? {
            let to = format!("read:{path}@{digest}");
            self.put(&to, Thing::File { path, artifact: Artifact::Blob(digest) }, Vec::new());
            on.push(edge("was seen to read", None, to));
        }
        self.put(&id, what, on);
        Ok(id)
    }

    /// A success beside the one that stands, with what it wrote in other bytes.
    fn diverged(&mut self, other: &Tried) -> Result<String, AuditError> {
        let id = format!("attempt:{}", other.attempt);
        let Some(attempt) = self.source.attempt(other.attempt)? else { return Ok(id) };
        let mut on = Vec::new();
        for (name, artifact) in &other.outputs {
            let to = format!("artifact:{artifact}");
            let node = || Node { what: Thing::Artifact { artifact: *artifact }, on: Vec::new() };
            self.out.nodes.entry(to.clone()).or_insert_with(node);
            on.push(edge("wrote", Some(name.clone()), to));
        }
        on.push(edge("ran-on", None, self.machine(&attempt)?));
        let covered = self.evidence.registration.as_ref().map(|_| other.covered);
        on.extend(self.registration(covered));
        self.put(&id, thing(other.attempt, &attempt, covered), on);
        Ok(id)
    }

    /// The machine of an attempt, with what was present on it where that is recorded.
    fn machine(&mut self, attempt: &Attempt) -> Result<String, AuditError> {
        let host = &attempt.host;
        let id = match attempt.environment {
            Some(record) => format!("machine:{}@{record}", host.name),
            None => format!("machine:{}@{}/{}", host.name, host.system, host.cpu),
        };
        if self.out.nodes.contains_key(&id) {
            return Ok(id);
        }
        let mut machine = Machine {
            name: host.name.clone(),
            system: host.system.clone(),
            cpu: host.cpu.clone(),
            record: attempt.environment,
            ..Machine::default()
        };
        if let Some(record) = attempt.environment {
            match self.source.record::<Present>(record, "what was present where an attempt ran")? {
                Ok(present) => {
                    let known = present.interpreters.into_iter();
                    machine.interpreters =
                        known.map(|(word, one)| (word, (one.version, one.packages.len()))).collect();
                    machine.gpus = present.gpus;
                    machine.disagreements = present.disagreements;
                }
                Err(finding) => drop(self.out.findings.insert(finding)),
            }
        }
        self.put(&id, Thing::Machine(machine), Vec::new());
        Ok(id)
    }

    /// How an attempt stands to the registration in force, where there is one.
    fn registration(&mut self, under: Option<bool>) -> Option<Edge> {
        let (under, registration) = (under?, self.evidence.registration.as_ref()?);
        let id = format!("registration:{}", registration.leaf);
        let judged = self.evidence.plan.is_named(registration.plan);
        let (entry, kind, plan) = (registration.leaf, registration.kind.clone(), registration.plan);
        self.put(&id, Thing::Registration { entry, kind, plan, judged }, Vec::new());
        Some(edge(if under { "under" } else { "older-than" }, None, id))
    }

    /// The action, bound anew from the plan.
    fn action(&mut self, member: Member) -> Result<Option<String>, AuditError> {
        let evidence = self.evidence;
        let Some(action) = action_of(evidence, member) else { return Ok(None) };
        let digest = action.digest();
        let id = format!("action:{digest}");
        let mut on = self.inputs(member, &action);
        let stage = &evidence.plan.stages[member.stage as usize];
        if let Some(code) = stage.code {
            on.push(edge("code", None, self.code(code)?));
        }
        for (word, program) in &stage.toolchain {
            let to = format!("program:{program}");
            self.put(&to, Thing::Program { word: word.clone(), digest: *program }, Vec::new());
            on.push(edge("program", Some(word.clone()), to));
        }
        if let Some(environment) = &stage.environment {
            on.push(edge("environment", None, self.environment(environment)));
        }
        if let Some(image) = &stage.image {
            let (to, name, identity) =
                (format!("image:{}", image.identity), image.name.clone(), image.identity.clone());
            self.put(&to, Thing::Image { name, identity }, Vec::new());
            on.push(edge("image", None, to));
        }
        if let Program::Op { name, identity, .. } = &stage.program {
            let to = format!("operation:{name}@{identity}");
            self.put(&to, Thing::Operation { name: name.clone(), identity: identity.clone() }, Vec::new());
            on.push(edge("operation", None, to));
        }
        let what =
            Thing::Action { digest: digest.to_string(), command: command(&action), env: action.env.clone() };
        self.put(&id, what, on);
        Ok(Some(id))
    }

    fn inputs(&mut self, member: Member, action: &Action) -> Vec<Edge> {
        let plan = self.evidence.plan;
        let stage = &plan.stages[member.stage as usize];
        let mut on = Vec::new();
        for input in stage.inputs.values() {
            if let Some(artifact) = action.inputs.get(&input.mount) {
                let to = self.input(member, input, *artifact);
                on.push(edge("input", Some(input.mount.clone()), to));
            }
        }
        on
    }

    fn input(&mut self, member: Member, input: &Input, artifact: Artifact) -> String {
        match &input.from {
            From::Path { path, artifact } => self.file(path, *artifact),
            From::Url { url, digest } => {
                let id = format!("url:{url}@{digest}");
                self.put(&id, Thing::Url { url: url.clone(), digest: *digest }, Vec::new());
                id
            }
            // A text that follows from the measurements at the probes; the journal's decisions name their attempts.
            From::Probes { .. } => self.artifact(artifact, None),
            From::Output { .. } => {
                let cell = expand::cell(self.evidence.plan, member);
                let id = self.artifact(artifact, None);
                for producer in expand::producers(&cell, &input.from).unwrap_or_default() {
                    self.artifact(artifact, Some(producer));
                }
                id
            }
        }
    }

    fn file(&mut self, path: &str, artifact: Artifact) -> String {
        let id = format!("file:{path}@{artifact}");
        self.put(&id, Thing::File { path: path.to_owned(), artifact }, Vec::new());
        id
    }

    fn environment(&mut self, environment: &avow_model::plan::Environment) -> String {
        let id = format!("environment:{}", environment.lock);
        let (manager, path) = (environment.manager.clone(), environment.path.clone());
        self.put(&id, Thing::Environment { manager, path, lock: environment.lock }, Vec::new());
        id
    }

    /// A code folder with its files.
    fn code(&mut self, tree: TreeDigest) -> Result<String, AuditError> {
        let id = format!("code:{tree}");
        if self.out.nodes.contains_key(&id) {
            return Ok(id);
        }
        let mut on = Vec::new();
        match self.source.record::<Tree>(tree.into(), "code")? {
            Ok(record) => {
                for (path, entry) in &record.entries {
                    let artifact = match entry {
                        Entry::File { digest, .. } => Artifact::Blob(*digest),
                        Entry::Tree { digest } => Artifact::Tree(*digest),
                        Entry::Link { .. } | Entry::Empty => continue,
                    };
                    on.push(edge("file", Some(path.clone()), self.file(path, artifact)));
                }
            }
            Err(finding) => {
                self.out.findings.insert(finding);
            }
        }
        self.put(&id, Thing::Code { tree: Artifact::Tree(tree) }, on);
        Ok(id)
    }
}

/// The action of a member, bound anew from the plan and from what stands for its producers.
pub(super) fn action_of(evidence: &Evidence<'_>, member: Member) -> Option<Action> {
    let made = |producer: Member, output: &str| match &evidence.member(producer)?.fate {
        Fate::Stands(stands) => stands.outputs.get(output).copied(),
        _ => None,
    };
    bind(evidence.plan, member, &made).ok().map(|bound| bound.action)
}

fn thing(digest: AttemptDigest, attempt: &Attempt, under_registration: Option<bool>) -> Thing {
    Thing::Attempt {
        digest: digest.to_string(),
        outcome: attempt.outcome.word(),
        run: attempt.run.clone(),
        started: attempt.started,
        host: attempt.host.name.clone(),
        confinement: attempt.host.confinement.clone(),
        wall: attempt.usage.wall,
        under_registration,
        verification: attempt.verification,
        continues: attempt.continues.iter().map(ToString::to_string).collect(),
        reused: Vec::new(),
    }
}

/// The command in one line; an operation with its parameters.
fn command(action: &Action) -> String {
    match &action.command {
        Command::Op { name, with, .. } if !with.is_empty() => {
            let with: BTreeMap<&str, String> =
                with.iter().map(|(k, v)| (k.as_str(), v.to_string())).collect();
            let pairs: Vec<String> = with.into_iter().map(|(key, value)| format!("{key}={value}")).collect();
            format!("avow op {name} {}", pairs.join(" "))
        }
        other => other.to_string(),
    }
}
