//! Everything that is cached, compared with what it was made from. For tests.

use avow_model::expand::{self, Member};
use avow_model::plan::Plan;

use super::{Planner, State, Tally, WAVE};
use crate::slots::Slots;

impl Planner {
    /// Recomputes everything that is cached and compares. For tests; panics with what disagrees.
    pub fn sanity_check(&self) {
        let count = |test: fn(&State) -> bool| self.states.iter().filter(|(_, s)| test(s)).count() as u64;
        let tally = Tally {
            members: count(|_| true),
            waiting: count(|s| {
                matches!(
                    s,
                    State::Waiting { .. }
                        | State::Looking(_)
                        | State::SameAction { .. }
                        | State::Elsewhere(_)
                        | State::Queued(_)
                )
            }),
            running: count(|s| matches!(s, State::Running(_))),
            reused: count(|s| matches!(s, State::Reused(_))),
            succeeded: count(|s| matches!(s, State::Succeeded(_))),
            failed: count(|s| matches!(s, State::Ended(_))),
            blocked: count(|s| matches!(s, State::Blocked { .. })),
        };
        assert_eq!(tally, self.tally, "the tally disagrees with the states");
        let mut slots = Slots::new(self.settings.cpus, self.settings.memory);
        for (member, state) in self.states.iter() {
            self.check_member(member, state, &mut slots);
        }
        assert_eq!(slots, self.slots, "the slots in use are not those of running members");
        assert_eq!(self.queue.len() as u64, count(|s| matches!(s, State::Queued(_))), "queue");
        assert_eq!(self.looking, count(|s| matches!(s, State::Looking(_))), "looks under way");
        let active = tally.running
            + self.queue.len() as u64
            + count(|s| matches!(s, State::Looking(_) | State::Elsewhere(_)));
        assert!(self.is_done() || active > 0, "unfinished, yet nothing is owed, queued or in flight");
    }

    pub(super) fn check_member(&self, member: Member, state: &State, slots: &mut Slots) {
        match state {
            State::Elsewhere(sought) => {
                assert_eq!(self.in_flight.get(&sought.digest), Some(&member), "in flight");
            }
            State::Running(active) => {
                assert!(slots.take(self.request(member.stage)), "more runs than the slots allow");
                assert_eq!(self.in_flight.get(&active.digest), Some(&member), "in flight");
            }
            State::Queued(active) => {
                assert!(self.queue.iter().any(|(_, queued)| *queued == member), "queued");
                assert_eq!(self.in_flight.get(&active.digest), Some(&member), "in flight");
            }
            State::SameAction { other } => {
                let follows = self.followers.get(&other.1).is_some_and(|f| f.contains(&member));
                assert!(follows, "a member of the same action follows nobody");
            }
            State::Waiting { producers } => {
                let all = declared_producers(&self.plan, member);
                let done =
                    |p: &Member| matches!(self.states.get(*p), Some(State::Reused(_) | State::Succeeded(_)));
                assert_eq!(all.iter().filter(|p| !done(p)).count() as u32, *producers, "producers to come");
                let ready = self.looking >= WAVE || *producers > 0 || self.stopping;
                assert!(ready || self.ready.is_empty(), "a member that is ready is not looked up");
                for producer in all {
                    assert!(self.consumers(producer).contains(&member), "nobody would tell it");
                }
            }
            _ => {}
        }
    }
}

/// The distinct members a member reads from, by way of the members themselves: what [`Edges`] has to agree with.
fn declared_producers(plan: &Plan, member: Member) -> Vec<Member> {
    let cell = expand::cell(plan, member);
    let stage = &plan.stages[member.stage as usize];
    let mut all: Vec<Member> =
        stage.inputs.values().filter_map(|input| expand::producers(&cell, &input.from)).flatten().collect();
    all.sort_unstable();
    all.dedup();
    all
}
