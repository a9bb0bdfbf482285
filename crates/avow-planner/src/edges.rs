//! Who reads from whom, by arithmetic on mixed-radix indices.
//!
//! A member's producers follow from its own index and the declaration of its inputs, and its consumers from the
//! same declarations read backwards. So no edge between members is ever stored: a plan of a million members has
//! as many edges here as it has declared inputs.

use std::collections::BTreeMap;

use avow_model::expand::{self, Member};
use avow_model::plan::{Plan, Source};

/// An axis as digits of two indices: how many values it has, and what one step of it adds.
#[derive(Clone, Copy, Debug)]
struct Digit {
    len: u64,
    step: u64,
}

impl Digit {
    fn of(self, cell: u64) -> u64 {
        cell / self.step % self.len.max(1)
    }
}

/// One declared input from another stage.
#[derive(Clone, Debug)]
struct Edge {
    producer: u32,
    consumer: u32,
    /// Axes that both have at the same value: in the consumer, in the producer.
    shared: Vec<(Digit, Digit)>,
    /// Axes of the producer at a fixed value.
    fixed: Vec<(Digit, u64)>,
    /// Axes of the producer fixed to what an axis of the consumer says.
    referred: Vec<Referred>,
    /// Axes of the producer that are gathered.
    gathered: Vec<Digit>,
    /// Axes of the consumer that the producer does not follow.
    free: Vec<Digit>,
}

/// An axis of the producer that stands where an axis of the consumer says.
#[derive(Clone, Debug)]
struct Referred {
    own: Digit,
    other: Digit,
    /// By the index of the consumer's axis: the index of the producer's.
    indices: Vec<u64>,
}

/// All declared inputs from stages.
#[derive(Clone, Debug)]
pub(crate) struct Edges {
    edges: Vec<Edge>,
    /// Edges by consumer, and by producer.
    inputs: Vec<Vec<usize>>,
    outputs: Vec<Vec<usize>>,
}

impl Edges {
    /// The edges of a plan. An input that can lead nowhere (a fixed value that its axis does not have) is none.
    pub(crate) fn new(plan: &Plan) -> Edges {
        let none = vec![Vec::new(); plan.stages.len()];
        let mut all = Edges { edges: Vec::new(), inputs: none.clone(), outputs: none };
        for (consumer, stage) in plan.stages.iter().enumerate() {
            for input in stage.inputs.values() {
                if let Some(edge) = edge(plan, consumer, &input.from) {
                    all.inputs[consumer].push(all.edges.len());
                    all.outputs[edge.producer as usize].push(all.edges.len());
                    all.edges.push(edge);
                }
            }
        }
        all
    }

    /// The members that a member reads from, sorted, each once; excluded ones are among them.
    pub(crate) fn producers(&self, member: Member) -> Vec<Member> {
        let mut found = Vec::new();
        for edge in self.inputs[member.stage as usize].iter().map(|at| &self.edges[*at]) {
            let shared = edge.shared.iter().map(|(own, other)| own.of(member.cell) * other.step);
            let fixed = edge.fixed.iter().map(|(digit, index)| index * digit.step);
            let referred = edge.referred.iter().map(|r| r.index(member.cell) * r.other.step);
            let base = shared.chain(fixed).chain(referred).sum();
            combine(&edge.gathered, base, &mut |cell| found.push(Member { stage: edge.producer, cell }));
        }
        distinct(found, self.inputs[member.stage as usize].len())
    }

    /// The members that read from a member, sorted, each once; excluded ones are among them.
    pub(crate) fn consumers(&self, member: Member) -> Vec<Member> {
        let mut found = Vec::new();
        for edge in self.outputs[member.stage as usize].iter().map(|at| &self.edges[*at]) {
            if edge.fixed.iter().any(|(digit, index)| digit.of(member.cell) != *index) {
                continue;
            }
            let base = edge.shared.iter().map(|(own, other)| other.of(member.cell) * own.step).sum();
            let reads = |cell: u64| edge.referred.iter().all(|r| r.index(cell) == r.other.of(member.cell));
            combine(&edge.free, base, &mut |cell| {
                if reads(cell) {
                    found.push(Member { stage: edge.consumer, cell });
                }
            });
        }
        distinct(found, self.outputs[member.stage as usize].len())
    }
}

fn distinct(mut members: Vec<Member>, edges: usize) -> Vec<Member> {
    members.sort_unstable();
    if edges > 1 {
        members.dedup();
    }
    members
}

/// Every sum of `base` and one multiple of each digit's step.
fn combine(digits: &[Digit], base: u64, found: &mut impl FnMut(u64)) {
    match digits.split_first() {
        None => found(base),
        Some((first, rest)) => {
            for index in 0..first.len {
                combine(rest, base + index * first.step, found);
            }
        }
    }
}

/// The axes of a stage as digits of its index.
fn digits(plan: &Plan, stage: usize) -> BTreeMap<&str, Digit> {
    let mut step = 1u64;
    let mut digits = BTreeMap::new();
    for name in plan.stages[stage].scope.iter().rev() {
        let len = plan.axis(name).map_or(1, |axis| axis.len());
        digits.insert(name.as_str(), Digit { len, step });
        step = step.saturating_mul(len.max(1));
    }
    digits
}

fn edge(plan: &Plan, consumer: usize, source: &Source) -> Option<Edge> {
    let Source::Output { stage, at, gather, .. } = source else { return None };
    let producer = plan.stage_index(stage)?;
    let (mut own, others) = (digits(plan, consumer), digits(plan, producer));
    let (mut shared, mut fixed, mut gathered) = (Vec::new(), Vec::new(), Vec::new());
    let mut referred = Vec::new();
    for (name, digit) in others {
        if gather.iter().any(|axis| axis == name) {
            gathered.push(digit);
        } else if let Some(path) = at.get(name).and_then(expand::referred) {
            referred.push(Referred::new(plan, &path, &own, (name, digit))?);
        } else if let Some(value) = at.get(name) {
            fixed.push((digit, plan.axis(name)?.index_of(value)?));
        } else {
            shared.push((own.remove(name)?, digit));
        }
    }
    let free = own.into_values().collect();
    let (producer, consumer) = (u32::try_from(producer).ok()?, u32::try_from(consumer).ok()?);
    Some(Edge { producer, consumer, shared, fixed, referred, gathered, free })
}

impl Referred {
    fn new(
        plan: &Plan,
        path: &[String],
        own: &BTreeMap<&str, Digit>,
        (name, other): (&str, Digit),
    ) -> Option<Referred> {
        let (own_axis, axis) = (plan.axis(path.get(1)?)?, plan.axis(name)?);
        let value = |i: u64| match path.get(2) {
            Some(attribute) => own_axis.attribute(i, attribute),
            None => own_axis.value(i),
        };
        let indices = (0..own_axis.len()).map(|i| axis.index_of(&value(i)?)).collect::<Option<_>>()?;
        Some(Referred { own: *own.get(own_axis.name.as_str())?, other, indices })
    }

    /// Where the producer's axis stands for a cell of the consumer.
    fn index(&self, cell: u64) -> u64 {
        self.indices.get(self.own.of(cell) as usize).copied().unwrap_or_default()
    }
}
