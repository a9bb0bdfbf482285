//! Which members a run is about, and how many producers each waits for.

use std::collections::VecDeque;
use std::sync::Arc;

use avow_model::expand::{self, Member};

use super::{Planner, State, Tally};

impl Planner {
    /// Takes in the members asked for and everything they read from.
    pub(super) fn admit(&mut self) {
        if self.settings.only.is_empty() {
            self.admit_all()
        } else {
            self.admit_some()
        }
        let members = self.counts.iter().sum();
        self.tally = Tally { members, waiting: members, ..Tally::default() };
    }

    pub(super) fn admit_all(&mut self) {
        let plan = Arc::clone(&self.plan);
        for stage in 0..plan.stages.len() {
            for member in expand::members(&plan, stage) {
                self.states.insert(member, State::Waiting { producers: 0 });
                self.counts[stage] += 1;
            }
        }
        for stage in (0..plan.stages.len()).filter(|stage| plan.stages[*stage].producers().next().is_some()) {
            for member in expand::members(&plan, stage) {
                let all = self.edges.producers(member);
                let count = all.into_iter().filter(|producer| self.states.contains(*producer)).count();
                let producers = u32::try_from(count).unwrap_or(u32::MAX);
                self.states.insert(member, State::Waiting { producers });
            }
        }
    }

    pub(super) fn admit_some(&mut self) {
        let plan = Arc::clone(&self.plan);
        let targets = std::mem::take(&mut self.settings.only);
        let mut pending: VecDeque<Member> = targets.iter().flat_map(|target| target.members(&plan)).collect();
        self.settings.only = targets;
        while let Some(member) = pending.pop_front() {
            if self.states.contains(member) {
                continue;
            }
            let mut producers = self.edges.producers(member);
            producers.retain(|producer| expand::exists(&plan, *producer));
            for producer in &producers {
                self.consumers.get_or_insert_default().entry(*producer).or_default().push(member);
            }
            let count = u32::try_from(producers.len()).unwrap_or(u32::MAX);
            self.states.insert(member, State::Waiting { producers: count });
            self.counts[member.stage as usize] += 1;
            pending.extend(producers);
        }
    }
}
