//! Why each member is where it is.

use avow_model::action::Action;
use avow_model::attempt::Outcome;
use avow_model::expand::Member;

use super::{Planner, State};
use crate::reason::Reason;

impl Planner {
    /// Every member this run is about, with why it is where it is.
    pub fn reasons(&self) -> impl Iterator<Item = (Member, Reason)> + '_ {
        self.states.iter().map(|(member, state)| (member, self.worded(state)))
    }

    /// Why one member is where it is.
    pub fn reason(&self, member: Member) -> Option<Reason> {
        self.states.get(member).map(|state| self.worded(state))
    }

    /// The action of a member, once its inputs are known and while it is not done.
    pub fn action(&self, member: Member) -> Option<Action> {
        match self.states.get(member)? {
            State::Looking(_)
            | State::SameAction { .. }
            | State::Queued(_)
            | State::Running(_)
            | State::Elsewhere(_) => self.bind(member).ok().map(|bound| bound.action),
            _ => None,
        }
    }

    pub(super) fn worded(&self, state: &State) -> Reason {
        match state {
            State::Waiting { .. } if self.is_done() => Reason::NotReached,
            State::Waiting { producers } => Reason::Waits { producers: *producers },
            State::Looking(_) => Reason::Looking,
            State::SameAction { other } => Reason::SameAction { other: other.0 },
            State::Queued(active) => Reason::Queued(active.miss.clone()),
            State::Running(active) => Reason::Running(active.miss.clone()),
            State::Elsewhere(_) => Reason::Elsewhere,
            State::Reused(made) => Reason::Reused { attempt: made.0 },
            State::Succeeded(made) => Reason::Ran { miss: made.0.clone(), outcome: Outcome::Succeeded },
            State::Ended(end) => Reason::Ran { miss: end.0.clone(), outcome: end.1.clone() },
            State::Blocked { by } => Reason::Blocked { by: **by },
        }
    }
}
