//! Adaptive designs: a run in phases.
//!
//! The loop knows nothing of searches. Before each phase the [`Judge`] is asked how far the searches have come; its
//! new decisions are journalled, and the loop carries out the plan as it is then: as long as a search is open only
//! what the searches measure, at the end everything. What a phase has done is a hit in the next, so a run that was
//! interrupted goes on by asking again, and nothing is remembered that could be wrong.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use avow_model::plan::Plan;
use avow_model::search::{Decision, searches, wanted};
use avow_planner::{Settings, Tally, Target};

use crate::error::EngineError;

/// Reads measurements in mid-run. The engine defines it, because it needs the answers; it is implemented with the
/// auditor, which the engine does not know.
pub trait Judge: Send {
    /// The plan with everything that its searches have asked for and found, and every decision so far.
    ///
    /// # Errors
    /// Where the evidence cannot be read.
    fn follow(&mut self, plan: &Plan) -> Result<Followed, Box<dyn std::error::Error + Send + Sync>>;
}

/// How far the searches of a plan have come.
#[derive(Clone, Debug, PartialEq)]
pub struct Followed {
    /// The plan; its digest is that of the declared one.
    pub plan: Plan,
    /// Every decision so far, in order.
    pub decisions: Vec<Decision>,
}

/// What a run remembers from one phase to the next; nothing where the plan has no searches.
#[derive(Default)]
pub(crate) struct Phases<'s> {
    judge: Option<&'s mut (dyn Judge + 'static)>,
    decided: Vec<Decision>,
    /// The members that this run has dealt with, and whether it executed them.
    done: HashMap<String, bool>,
    /// Members of the present phase that an earlier phase executed.
    again: HashSet<String>,
    /// Whether a search is open although nothing more can be done about it now.
    pub(crate) unsettled: bool,
}

impl<'s> Phases<'s> {
    /// For a plan with searches, unless only some members are asked for.
    pub(crate) fn new(
        plan: &Plan,
        settings: &Settings,
        judge: Option<&'s mut (dyn Judge + 'static)>,
    ) -> Phases<'s> {
        let adaptive = settings.only.is_empty() && searches(plan).next().is_some();
        Phases { judge: judge.filter(|_| adaptive), ..Phases::default() }
    }

    /// Whether there is more than one phase.
    pub(crate) fn adaptive(&self) -> bool {
        self.judge.is_some()
    }

    /// The plan as it is now, and the decisions that are new.
    pub(crate) fn follow(&mut self, plan: &Plan) -> Result<(Arc<Plan>, Vec<Decision>), EngineError> {
        let Some(judge) = &mut self.judge else { return Ok((Arc::new(plan.clone()), Vec::new())) };
        let followed = judge.follow(plan).map_err(EngineError::Judge)?;
        let new: Vec<Decision> =
            followed.decisions.into_iter().filter(|decision| !self.decided.contains(decision)).collect();
        self.decided.extend(new.iter().cloned());
        Ok((Arc::new(followed.plan), new))
    }

    /// What the next phase is to do.
    pub(crate) fn enter(&mut self, plan: &Plan, settings: &Settings) -> Settings {
        self.again.clear();
        let targets = wanted(plan).into_iter().filter_map(|stage| Target::parse(plan, stage).ok());
        Settings { only: targets.collect(), ..settings.clone() }
    }

    /// Notes a member that was reused or executed with success; whether this run had dealt with it before.
    pub(crate) fn done(&mut self, member: &str, executed: bool) -> bool {
        if !self.adaptive() {
            return false;
        }
        match self.done.get(member) {
            None => {
                self.done.insert(member.to_owned(), executed);
                false
            }
            Some(before) => {
                if *before {
                    self.again.insert(member.to_owned());
                }
                true
            }
        }
    }

    /// What this run has executed counts as executed in every phase.
    pub(crate) fn tally(&self, tally: Tally) -> Tally {
        let again = self.again.len() as u64;
        Tally { reused: tally.reused.saturating_sub(again), succeeded: tally.succeeded + again, ..tally }
    }
}
