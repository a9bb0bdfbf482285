//! The walk with what is alike told once: of many members of one stage the first is written out, the others counted.

use std::collections::{BTreeMap, BTreeSet};

use super::{Edge, Lineage, Node, Step, Thing};

/// One line of the folded walk.
#[derive(Clone, Debug, PartialEq)]
pub enum Folded<'a> {
    /// A node, as in [`Lineage::steps`].
    Step(Step<'a>),
    /// Nodes of the same kind that are not written out.
    Rest(Rest<'a>),
}

/// Nodes that are counted and not written out.
#[derive(Clone, Debug, PartialEq)]
pub struct Rest<'a> {
    /// How deep, from 0.
    pub depth: usize,
    /// The relation to the node above; none for roots.
    pub relation: Option<&'static str>,
    /// What they have in common: a stage, or a measurement.
    pub of: &'a str,
    /// How many.
    pub count: usize,
    /// Members by the code of their fate, where they are members.
    pub fates: BTreeMap<&'static str, usize>,
}

/// A node to write, or a count.
enum Open<'a> {
    Node(usize, Option<&'a Edge>, &'a str),
    Rest(Rest<'a>),
}

impl Lineage {
    /// The walk in which more than `most` alike are folded: edges of one relation that lead to members of one stage,
    /// or to what they made. The first of them is written out with everything it rests on.
    pub fn folded(&self, most: usize) -> Vec<Folded<'_>> {
        let (mut lines, mut seen) = (Vec::new(), BTreeSet::new());
        let roots: Vec<(Option<&Edge>, &str)> = self.roots.iter().map(|id| (None, id.as_str())).collect();
        let mut open = self.alike(0, &roots, most);
        open.reverse();
        while let Some(next) = open.pop() {
            let (depth, edge, id) = match next {
                Open::Rest(rest) => {
                    lines.push(Folded::Rest(rest));
                    continue;
                }
                Open::Node(depth, edge, id) => (depth, edge, id),
            };
            let Some(node) = self.nodes.get(id) else { continue };
            let repeated = !seen.insert(id);
            lines.push(Folded::Step(Step { depth, edge, id, node, repeated }));
            if !repeated {
                let below: Vec<_> = node.on.iter().map(|edge| (Some(edge), edge.to.as_str())).collect();
                open.extend(self.alike(depth + 1, &below, most).into_iter().rev());
            }
        }
        lines
    }

    /// The same nodes in the same order, with those folded that are more than `most` of a kind.
    fn alike<'a>(
        &'a self,
        depth: usize,
        these: &[(Option<&'a Edge>, &'a str)],
        most: usize,
    ) -> Vec<Open<'a>> {
        let kind = |(edge, id): &(Option<&'a Edge>, &'a str)| {
            Some((edge.map(|edge| edge.relation), self.kind(self.nodes.get(*id)?)?))
        };
        let mut counts: BTreeMap<_, usize> = BTreeMap::new();
        for one in these {
            *counts.entry(kind(one)).or_default() += 1;
        }
        let mut rests: BTreeMap<_, usize> = BTreeMap::new();
        let mut open = Vec::new();
        for one @ (edge, id) in these {
            let kind = kind(one);
            let (Some((relation, of)), true) = (kind, counts[&kind] > most) else {
                open.push(Open::Node(depth, *edge, id));
                continue;
            };
            match rests.get(&kind) {
                None => {
                    open.push(Open::Node(depth, *edge, id));
                    rests.insert(kind, open.len());
                    open.push(Open::Rest(Rest { depth, relation, of, count: 0, fates: BTreeMap::new() }));
                }
                Some(place) => {
                    if let Open::Rest(rest) = &mut open[*place] {
                        rest.count += 1;
                        if let Some(Thing::Member { fate, .. }) = self.nodes.get(*id).map(|node| &node.what) {
                            *rest.fates.entry(fate).or_default() += 1;
                        }
                    }
                }
            }
        }
        open
    }

    /// What a node has in common with others: the stage of a member or of who made it, the name of a number.
    pub(super) fn kind<'a>(&'a self, node: &'a Node) -> Option<&'a str> {
        match &node.what {
            Thing::Member { .. } => node.what.stage(),
            Thing::Number { name, .. } => Some(name),
            Thing::Artifact { .. } => {
                let made = node.on.iter().find(|edge| edge.relation == "made-by")?;
                self.nodes.get(&made.to)?.what.stage()
            }
            _ => None,
        }
    }
}
