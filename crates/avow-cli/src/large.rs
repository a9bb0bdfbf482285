//! What a run of very many members would do, without a state for each of them.
//!
//! A planner holds every member that a run is about. A forecast need not: stage by stage in topological order it
//! counts, and remembers only the members that would be reused, because only they have outputs that others read.
//! Where no earlier attempt could stand for a stage's members at all, they are counted by arithmetic. What it says is
//! what the planner would, but for two members of one action, which it counts as two.

use std::collections::{BTreeMap, HashMap};

use avow_engine::Lookup;
use avow_model::bind::bind;
use avow_model::canonical::Record;
use avow_model::digest::Artifact;
use avow_model::expand::{self, Member};
use avow_model::plan::{Plan, Source};
use avow_planner::{Found, Graph, Miss, Reason};
use avow_store::catalogue::Actions;
use avow_store::meter;
use indexmap::IndexMap;
use rayon::prelude::*;

use crate::failure;
use crate::output::Failure;
use crate::words;

/// From so many members on a forecast keeps no state for each.
pub const LARGE: u64 = 100_000;

/// How many members a plan has, at most; excluded ones are counted where that is cheap.
pub fn members(plan: &Plan) -> u64 {
    (0..plan.stages.len()).map(|stage| stage_members(plan, stage)).fold(0, u64::saturating_add)
}

/// The same of one stage. Excluded cells of a very large sweep are not counted out one by one.
pub fn stage_members(plan: &Plan, stage: usize) -> u64 {
    let span = expand::span(plan, &plan.stages[stage]);
    if span <= LARGE { expand::count(plan, stage) } else { span }
}

/// What would become of the members of one stage.
#[derive(Debug, Default)]
pub struct Outlook {
    /// How many there are.
    pub members: u64,
    /// How many would be reused.
    pub reused: u64,
    /// Why the others would not be, with the first of each kind and how many there are.
    pub groups: IndexMap<String, (Member, u64)>,
}

impl Outlook {
    fn add(&mut self, reason: String, first: Member, count: u64) {
        self.members += count;
        self.groups.entry(reason).or_insert((first, 0)).1 += count;
    }
}

/// The members that would be reused, with their outputs.
type Hits = HashMap<Member, BTreeMap<String, Artifact>>;

struct Forecast<'a> {
    lookup: &'a Lookup<'a>,
    sight: Sight<'a>,
}

/// What can be known of a member without reading an attempt.
struct Sight<'a> {
    plan: &'a Plan,
    actions: &'a Actions,
    hits: Hits,
}

/// What would become of each stage, in topological order.
pub fn forecast(
    plan: &Plan,
    graph: &Graph,
    lookup: &Lookup<'_>,
    actions: &Actions,
) -> Result<Vec<(usize, Outlook)>, Failure> {
    let mut forecast = Forecast { lookup, sight: Sight { plan, actions, hits: Hits::new() } };
    graph.order().iter().map(|stage| Ok((*stage, forecast.stage(*stage)?))).collect()
}

impl Forecast<'_> {
    fn stage(&mut self, stage: usize) -> Result<Outlook, Failure> {
        let mut outlook = Outlook::default();
        let Some(first) = expand::members(self.sight.plan, stage).next() else { return Ok(outlook) };
        if let Some(waiting) = self.sight.all_wait(stage, first) {
            outlook.add(self.sight.waits(waiting), first, expand::count(self.sight.plan, stage));
            return Ok(outlook);
        }
        let reads = self.sight.plan.stages[stage].producers().next().is_some();
        if self.sight.actions.is_empty() && !reads {
            let never = words::reason::reason(self.sight.plan, &Reason::Queued(Miss::NeverRun));
            outlook.add(never, first, expand::count(self.sight.plan, stage));
            return Ok(outlook);
        }
        let Looked { waiting, mut bound, never } = self.sight.look(stage);
        for (producers, (first, count)) in waiting {
            outlook.add(self.sight.waits(producers), first, count);
        }
        if let Some((first, count)) = never {
            let never = words::reason::reason(self.sight.plan, &Reason::Queued(Miss::NeverRun));
            outlook.add(never, first, count);
        }
        bound.sort_unstable();
        for member in bound {
            self.find(member, &mut outlook)?;
        }
        Ok(outlook)
    }

    fn find(&mut self, member: Member, outlook: &mut Outlook) -> Result<(), Failure> {
        let made = |producer: Member, output: &str| self.sight.hits.get(&producer)?.get(output).copied();
        let miss = match bind(self.sight.plan, member, &made) {
            Err(_) => Miss::NeverRun,
            Ok(bound) => {
                let stage = &self.sight.plan.stages[member.stage as usize];
                let digest = bound.action.digest();
                match self.lookup.find(stage, &bound.action, digest).map(|sought| sought.found) {
                    Ok(Found::Hit { outputs, .. }) => {
                        self.sight.hits.insert(member, outputs);
                        outlook.members += 1;
                        outlook.reused += 1;
                        return Ok(());
                    }
                    Ok(Found::Miss(miss)) => miss,
                    // Damage is a miss here as in a run; `store check` is where it is named.
                    Err(error) if error.is_unusable_blob() => Miss::NeverRun,
                    Err(error) => return Err(failure::store(error)),
                }
            }
        };
        outlook.add(words::reason::reason(self.sight.plan, &Reason::Queued(miss)), member, 1);
        Ok(())
    }
}

impl Sight<'_> {
    fn waits(&self, producers: u32) -> String {
        words::reason::reason(self.plan, &Reason::Waits { producers })
    }

    /// For how many inputs each member of a stage waits, where all wait for equally many because nothing of what
    /// they read would be reused.
    fn all_wait(&self, stage: usize, first: Member) -> Option<u32> {
        let mut inputs = self.plan.stages[stage].producers();
        let (_, input, producer) = inputs.next()?;
        let simple =
            matches!(&input.from, Source::Output { at, gather, .. } if at.is_empty() && gather.is_empty());
        let producer = self.plan.stage_index(producer)? as u32;
        let none = self.hits.keys().all(|hit| hit.stage != producer);
        (simple && none && inputs.next().is_none()).then(|| self.open(first))
    }

    /// The producers of a member that would not be reused.
    fn open(&self, member: Member) -> u32 {
        let cell = expand::cell(self.plan, member);
        let inputs = self.plan.stages[member.stage as usize].inputs.values();
        let mut open: Vec<Member> =
            inputs.filter_map(|input| expand::producers(&cell, &input.from)).flatten().collect();
        open.retain(|producer| !self.hits.contains_key(producer));
        open.sort_unstable();
        open.dedup();
        u32::try_from(open.len()).unwrap_or(u32::MAX)
    }

    /// Sorts the members of a stage by what can be known of each without reading an attempt.
    fn look(&self, stage: usize) -> Looked {
        let span = expand::span(self.plan, &self.plan.stages[stage]);
        meter::members(span);
        let one = |cell| {
            let member = Member { stage: stage as u32, cell };
            if !expand::exists(self.plan, member) {
                return Looked::default();
            }
            match self.open(member) {
                0 if self.may_be_known(member) => Looked { bound: vec![member], ..Looked::default() },
                0 => Looked { never: Some((member, 1)), ..Looked::default() },
                open => Looked { waiting: BTreeMap::from([(open, (member, 1))]), ..Looked::default() },
            }
        };
        (0..span).into_par_iter().map(one).reduce(Looked::default, Looked::with)
    }

    fn may_be_known(&self, member: Member) -> bool {
        let made = |producer: Member, output: &str| self.hits.get(&producer)?.get(output).copied();
        // One that cannot be bound is told by the look that follows.
        let Ok(bound) = bind(self.plan, member, &made) else { return true };
        let earlier = || bound.action.earlier().into_iter().any(|(_, name)| self.actions.may_hold(name));
        self.actions.may_hold(bound.action.digest()) || earlier()
    }
}

/// Members of a stage by what is known of them.
#[derive(Default)]
struct Looked {
    /// By how many producers they wait for: the first, and how many there are.
    waiting: BTreeMap<u32, (Member, u64)>,
    /// Those for whose action there may be an attempt.
    bound: Vec<Member>,
    /// Those for whose action there is none: the first, and how many there are.
    never: Option<(Member, u64)>,
}

fn both(a: (Member, u64), b: (Member, u64)) -> (Member, u64) {
    (a.0.min(b.0), a.1 + b.1)
}

impl Looked {
    fn with(mut self, other: Looked) -> Looked {
        for (producers, found) in other.waiting {
            self.waiting.entry(producers).and_modify(|known| *known = both(*known, found)).or_insert(found);
        }
        self.bound.extend(other.bound);
        self.never = match (self.never, other.never) {
            (Some(a), Some(b)) => Some(both(a, b)),
            (a, b) => a.or(b),
        };
        self
    }
}
