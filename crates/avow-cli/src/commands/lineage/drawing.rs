//! A lineage as a graph of boxes. A member, the attempt that stands for it and its action are one box; of a stage with
//! many members all are, and so is what they wrote.

use std::collections::{BTreeMap, BTreeSet};

use avow_audit::lineage::{Edge, Lineage, Node, Thing};
use avow_report::graph::{Graph, Kind};

use super::text::{MOST, again, short};
use crate::words;
use crate::words::foreign::said;

/// So many files of a code folder, and so many faults, are named.
const NAMED: usize = 6;

/// The drawing of a lineage; with `all` every member has its own box.
pub(super) fn graph(lineage: &Lineage, all: bool) -> Graph {
    let mut drawing = Drawing {
        lineage,
        graph: Graph::default(),
        places: BTreeMap::new(),
        names: names(lineage),
        grouped: if all { BTreeMap::new() } else { grouped(lineage) },
    };
    for (id, node) in &lineage.nodes {
        drawing.node(id, node);
    }
    drawing.faults();
    drawing.elsewhere();
    drawing.graph
}

struct Drawing<'a> {
    lineage: &'a Lineage,
    graph: Graph,
    /// The box of each key.
    places: BTreeMap<String, usize>,
    /// What artifacts are called by those that read or wrote them.
    names: BTreeMap<&'a str, &'a str>,
    /// Stages and measurements with many members or values, and how many.
    grouped: BTreeMap<(&'static str, &'a str), Vec<&'a Node>>,
}

fn names(lineage: &Lineage) -> BTreeMap<&str, &str> {
    let edges = lineage.nodes.values().flat_map(|node| &node.on);
    let named = edges.filter_map(|edge| Some((edge.to.as_str(), edge.name.as_deref()?)));
    named.filter(|(to, _)| to.starts_with("artifact:")).collect()
}

fn grouped(lineage: &Lineage) -> BTreeMap<(&'static str, &str), Vec<&Node>> {
    let mut all: BTreeMap<(&'static str, &str), Vec<&Node>> = BTreeMap::new();
    for node in lineage.nodes.values() {
        match &node.what {
            Thing::Member { label, .. } => {
                all.entry(("members", words::stage_of(label))).or_default().push(node)
            }
            Thing::Number { name, .. } => all.entry(("values", name)).or_default().push(node),
            _ => {}
        }
    }
    all.retain(|_, nodes| nodes.len() > MOST);
    all
}

impl<'a> Drawing<'a> {
    /// Draws a node with its arrows. What belongs to a member's box is drawn with the member.
    fn node(&mut self, id: &'a str, node: &'a Node) {
        match &node.what {
            Thing::Claim { .. } | Thing::Number { .. } | Thing::Artifact { .. } => {
                let Some(to) = self.place(id) else { return };
                for edge in &node.on {
                    self.arrow(edge, to);
                }
            }
            Thing::Member { .. } => self.member(id, node),
            _ => {}
        }
    }

    fn arrow(&mut self, edge: &'a Edge, to: usize) {
        if let Some(from) = self.place(&edge.to) {
            let label = match edge.relation {
                "input" | "in" | "was seen to read" => edge.name.clone().unwrap_or_default(),
                _ => String::new(),
            };
            let aside = matches!(edge.relation, "ran-on" | "under" | "older-than" | "diverged");
            let label = match edge.relation {
                "older-than" => "older than".to_owned(),
                "diverged" => "diverged".to_owned(),
                _ => label,
            };
            // Many files of one stage have many names.
            let several = edge.to.starts_with("artifact:") && self.stage_of(&edge.to).is_some();
            self.graph.edge(from, to, if several { String::new() } else { label }, aside);
        }
    }

    fn member(&mut self, id: &'a str, node: &'a Node) {
        let Some(to) = self.place(id) else { return };
        let mut open: Vec<&'a Edge> = node.on.iter().collect();
        while let Some(edge) = open.pop() {
            let Some(below) = self.lineage.nodes.get(&edge.to) else { continue };
            match (&below.what, edge.relation) {
                (Thing::Attempt { .. }, "stands") | (Thing::Action { .. }, _) => open.extend(&below.on),
                _ => self.arrow(edge, to),
            }
        }
    }

    /// The group that an artifact belongs to: a stage with many members, one of which made it.
    fn stage_of(&self, id: &str) -> Option<&'a str> {
        let node = self.lineage.nodes.get(id)?;
        let made = node.on.iter().find(|edge| edge.relation == "made-by")?;
        let Thing::Member { label, .. } = &self.lineage.nodes.get(&made.to)?.what else { return None };
        let stage = words::stage_of(label);
        self.grouped.contains_key(&("members", stage)).then_some(stage)
    }

    /// The box of a node, drawn where it is not yet.
    fn place(&mut self, id: &str) -> Option<usize> {
        let (id, node) = self.lineage.nodes.get_key_value(id)?;
        let (key, group) = match &node.what {
            Thing::Member { label, .. } => self.group("members", words::stage_of(label), id),
            Thing::Number { name, .. } => self.group("values", name, id),
            Thing::Artifact { .. } => match self.stage_of(id) {
                Some(stage) => (format!("files:{stage}"), Some(stage)),
                None => (id.clone(), None),
            },
            _ => (id.clone(), None),
        };
        if let Some(place) = self.places.get(&key) {
            return Some(*place);
        }
        let (kind, title, lines) = match group {
            Some(group) => self.many(&node.what, group),
            None => self.single(id, node),
        };
        let place = self.graph.node(kind, title, lines);
        self.places.insert(key, place);
        Some(place)
    }

    fn group(&self, what: &'static str, name: &'a str, id: &str) -> (String, Option<&'a str>) {
        match self.grouped.contains_key(&(what, name)) {
            true => (format!("{what}:{name}"), Some(name)),
            false => (id.to_owned(), None),
        }
    }

    fn many(&self, what: &Thing, group: &'a str) -> (Kind, String, Vec<String>) {
        let nodes = |what: &'static str| self.grouped.get(&(what, group)).cloned().unwrap_or_default();
        match what {
            Thing::Number { .. } => {
                let nodes = nodes("values");
                let values = nodes.iter().filter_map(|node| match &node.what {
                    Thing::Number { value, .. } => Some(*value),
                    _ => None,
                });
                let (low, high) =
                    values.fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), v| (l.min(v), h.max(v)));
                let range = format!("{} to {}", words::number(low), words::number(high));
                (Kind::Result, group.to_owned(), vec![words::count(nodes.len() as u64, "value"), range])
            }
            Thing::Member { .. } => {
                let nodes = nodes("members");
                let mut lines = vec![words::count(nodes.len() as u64, "member")];
                lines.extend(nodes.first().map(|node| format!("e.g. {}", label(node))));
                lines.extend(fates(&nodes));
                lines.extend(nodes.first().and_then(|node| self.command(node)));
                (Kind::Work, group.to_owned(), lines)
            }
            _ => {
                let made = self.lineage.nodes.keys().filter(|id| self.stage_of(id) == Some(group)).count();
                (Kind::Data, format!("what {group} wrote"), vec![words::count(made as u64, "artifact")])
            }
        }
    }

    fn command(&self, member: &Node) -> Option<String> {
        let follow = |node: &Node, relation: &str| {
            let edge = node.on.iter().find(|edge| edge.relation == relation)?;
            self.lineage.nodes.get(&edge.to)
        };
        match &follow(follow(member, "stands")?, "attempted")?.what {
            Thing::Action { command, .. } => Some(command.clone()),
            _ => None,
        }
    }

    fn single(&self, id: &str, node: &Node) -> (Kind, String, Vec<String>) {
        match &node.what {
            Thing::Claim { name } => (Kind::Result, format!("claim {name}"), Vec::new()),
            Thing::Number { name, value, member, line, .. } => {
                let of = vec![format!("of {member}, line {line}")];
                (Kind::Result, format!("{name} = {}", words::number(*value)), of)
            }
            Thing::Member { label, fate } => (Kind::Work, label.clone(), self.work(node, fate)),
            Thing::Artifact { artifact } => {
                let name = self.names.get(id).map_or("an artifact", |name| *name);
                (Kind::Data, name.to_owned(), vec![artifact.short()])
            }
            Thing::File { path, artifact } => (Kind::Data, path.clone(), vec![artifact.short()]),
            Thing::Url { url, digest } => (Kind::Data, url.clone(), vec![digest.short()]),
            Thing::Code { tree } => {
                let files = node.on.iter().filter_map(|edge| edge.name.clone());
                (Kind::Means, format!("code {}", tree.short()), named(files.collect()))
            }
            Thing::Program { word, digest } => (Kind::Means, format!("program {word}"), vec![digest.short()]),
            Thing::Image { name, identity } => {
                (Kind::Means, format!("image {name}"), vec![short(identity).to_owned()])
            }
            Thing::Environment { manager, path, lock } => {
                (Kind::Means, format!("environment {path}"), vec![format!("{manager}, {}", lock.short())])
            }
            Thing::Operation { name, identity } => {
                (Kind::Means, format!("operation {name}"), vec![short(identity).to_owned()])
            }
            Thing::Machine(machine) => {
                let mut lines = vec![machine.system.clone(), machine.cpu.clone()];
                lines.extend(machine.interpreters.iter().map(|(word, (version, packages))| {
                    format!("{word}: {version}, {}", words::count(*packages as u64, "package"))
                }));
                (Kind::Machine, format!("machine {}", machine.name), lines)
            }
            Thing::Registration { entry, kind, judged, .. } => {
                let judged = if *judged { "this plan" } else { "another plan" };
                (
                    Kind::Registration,
                    format!("registration {}", entry.short()),
                    vec![format!("{kind}, {judged}")],
                )
            }
            Thing::Attempt { digest, outcome, .. } => {
                let title = format!("attempt {}", short(digest));
                (Kind::Fault, title, vec![format!("{outcome}, with other bytes")])
            }
            Thing::Action { digest, command, .. } => {
                (Kind::Work, format!("action {}", short(digest)), vec![command.clone()])
            }
        }
    }

    /// What stands in the box of a member besides its label.
    fn work(&self, node: &Node, fate: &str) -> Vec<String> {
        let mut lines = Vec::new();
        lines.extend(self.command(node));
        let stands = node.on.iter().find(|edge| edge.relation == "stands");
        match stands.and_then(|edge| self.lineage.nodes.get(&edge.to)).map(|node| &node.what) {
            Some(Thing::Attempt { digest, started, wall, confinement, reused, outcome, .. }) => {
                let took = words::seconds(*wall as f64 / 1e6);
                lines.push(format!("attempt {} {outcome}", short(digest)));
                lines.push(format!("{}, {took}, {confinement}", words::moment(*started)));
                if !reused.is_empty() {
                    lines.push(again(reused).trim_start_matches(", ").to_owned());
                }
            }
            _ => lines.push(fate.to_owned()),
        }
        lines
    }

    /// Where others have the same bytes, beside what has them here. No arrow is part of the making: what they say of it
    /// is their word.
    fn elsewhere(&mut self) {
        let (lineage, mut imports) = (self.lineage, BTreeMap::<&str, usize>::new());
        for same in &lineage.foreign {
            let Some(to) = self.place(&same.node) else { continue };
            let from = *imports.entry(&same.import).or_insert_with(|| {
                let title = format!("foreign {} {}", same.form.word(), short(&same.import));
                self.graph.node(Kind::Foreign, title, wrapped(&said(&same.title)))
            });
            self.graph.edge(from, to, "the same bytes", true);
        }
    }

    /// What differs from what was registered, and what is damaged, beside what was asked for.
    fn faults(&mut self) {
        let deviations = self.lineage.deviations.iter().map(|one| {
            let title = format!("deviation {}", one.number);
            (title, words::deviation::words(&one.deviation))
        });
        let damage =
            self.lineage.findings.iter().map(|one| ("damaged".to_owned(), words::finding::words(one)));
        let all: Vec<(String, String)> = deviations.chain(damage).collect();
        let roots: BTreeSet<usize> =
            self.lineage.roots.clone().iter().filter_map(|root| self.place(root)).collect();
        let more = all.len().saturating_sub(NAMED);
        for (title, text) in all.into_iter().take(NAMED) {
            let place = self.graph.node(Kind::Fault, title, wrapped(&text));
            roots.iter().take(1).for_each(|root| self.graph.edge(place, *root, "", true));
        }
        if more > 0 {
            let place = self.graph.node(Kind::Fault, format!("… and {more} more"), Vec::new());
            roots.iter().take(1).for_each(|root| self.graph.edge(place, *root, "", true));
        }
    }
}

fn label(node: &Node) -> &str {
    match &node.what {
        Thing::Member { label, .. } => label,
        _ => "",
    }
}

/// How many of a stage's members stand otherwise than by a success.
fn fates(nodes: &[&Node]) -> Option<String> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for node in nodes {
        if let Thing::Member { fate, .. } = &node.what
            && *fate != "stands"
        {
            *counts.entry(fate).or_default() += 1;
        }
    }
    let parts: Vec<String> = counts.into_iter().map(|(fate, count)| format!("{count} {fate}")).collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

fn named(mut all: Vec<String>) -> Vec<String> {
    let more = all.len().saturating_sub(NAMED);
    all.truncate(NAMED);
    if more > 0 {
        all.push(format!("… and {more} more"));
    }
    all
}

/// A sentence in lines that fit into a box.
fn wrapped(text: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + word.chars().count() < 44 => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines.truncate(NAMED);
    lines
}
