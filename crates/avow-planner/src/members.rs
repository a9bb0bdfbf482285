//! Something for each member of a run: a plain table where the run is about the whole plan, a map where it is
//! about a few members of a large one.

use std::collections::BTreeMap;

use avow_model::expand::{self, Member};
use avow_model::plan::Plan;

/// A table of more cells than this (most of them excluded, or the plan would not run) is a map.
const LARGEST: u64 = 1 << 26;

/// Values by member.
#[derive(Debug)]
pub(crate) enum Members<T> {
    /// One place for each cell; excluded cells stay empty.
    Table {
        /// Where each stage begins.
        first: Vec<usize>,
        /// Stage by stage, cell by cell.
        cells: Vec<Option<T>>,
    },
    /// Only those that there are.
    Map(BTreeMap<Member, T>),
}

impl<T> Members<T> {
    /// Empty, for all members of a plan.
    pub(crate) fn table(plan: &Plan) -> Members<T> {
        let spans = plan.stages.iter().map(|stage| expand::span(plan, stage));
        let total = spans.clone().fold(0, u64::saturating_add);
        if total > LARGEST {
            return Members::map();
        }
        let mut first = Vec::with_capacity(plan.stages.len() + 1);
        let mut begin = 0;
        for span in spans {
            first.push(begin);
            begin += span as usize;
        }
        first.push(begin);
        let mut cells = Vec::new();
        cells.resize_with(begin, || None);
        Members::Table { first, cells }
    }

    /// Empty, for a few.
    pub(crate) fn map() -> Members<T> {
        Members::Map(BTreeMap::new())
    }

    fn at(first: &[usize], member: Member) -> Option<usize> {
        let stage = member.stage as usize;
        let at = first.get(stage)?.checked_add(usize::try_from(member.cell).ok()?)?;
        (at < *first.get(stage + 1)?).then_some(at)
    }

    /// The value of a member.
    pub(crate) fn get(&self, member: Member) -> Option<&T> {
        match self {
            Members::Table { first, cells } => cells.get(Self::at(first, member)?)?.as_ref(),
            Members::Map(map) => map.get(&member),
        }
    }

    /// The value of a member, to change.
    pub(crate) fn get_mut(&mut self, member: Member) -> Option<&mut T> {
        match self {
            Members::Table { first, cells } => cells.get_mut(Self::at(first, member)?)?.as_mut(),
            Members::Map(map) => map.get_mut(&member),
        }
    }

    /// Gives a member a value. A member that the plan does not have gets none.
    pub(crate) fn insert(&mut self, member: Member, value: T) {
        match self {
            Members::Table { first, cells } => {
                if let Some(place) = Self::at(first, member).and_then(|at| cells.get_mut(at)) {
                    *place = Some(value);
                }
            }
            Members::Map(map) => {
                map.insert(member, value);
            }
        }
    }

    /// Takes a member's value away.
    pub(crate) fn remove(&mut self, member: Member) -> Option<T> {
        match self {
            Members::Table { first, cells } => cells.get_mut(Self::at(first, member)?)?.take(),
            Members::Map(map) => map.remove(&member),
        }
    }

    /// Whether a member has a value.
    pub(crate) fn contains(&self, member: Member) -> bool {
        self.get(member).is_some()
    }

    /// All values, sorted by member.
    pub(crate) fn iter(&self) -> Box<dyn Iterator<Item = (Member, &T)> + '_> {
        match self {
            Members::Table { first, cells } => {
                Box::new((0u32..).zip(first.windows(2)).flat_map(move |(stage, bounds)| {
                    (0u64..)
                        .zip(&cells[bounds[0]..bounds[1]])
                        .filter_map(move |(cell, value)| Some((Member { stage, cell }, value.as_ref()?)))
                }))
            }
            Members::Map(map) => Box::new(map.iter().map(|(member, value)| (*member, value))),
        }
    }
}
