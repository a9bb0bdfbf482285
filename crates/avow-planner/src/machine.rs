//! The state machine itself.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::Arc;

use avow_model::action::Action;
use avow_model::attempt::Outcome;
use avow_model::bind::{self, BindError};
use avow_model::canonical::Record;
use avow_model::digest::{ActionDigest, Artifact, AttemptDigest};
use avow_model::expand::{self, Member};
use avow_model::plan::{Plan, Terms};

use crate::graph::{Graph, GraphError};
use crate::reason::{Miss, Reason};
use crate::slots::{Request, Slots, TooLarge};
use crate::target::Target;

/// How often an attempt that was lost is made again within one run.
const LOST_RETRIES: u32 = 3;

/// How a run is to be done.
#[derive(Clone, Debug)]
pub struct Settings {
    /// CPU slots.
    pub cpus: u32,
    /// Bytes of memory that declared requests share.
    pub memory: u64,
    /// Whether members that do not depend on a failed one go on.
    pub keep_going: bool,
    /// What to do; empty: everything.
    pub only: Vec<Target>,
    /// Terms by stage name.
    pub terms: BTreeMap<String, Terms>,
}

/// What the planner asks for.
#[derive(Clone, Debug, PartialEq)]
pub enum Command {
    /// Store these blobs, look the action up, and answer with [`Event::Looked`].
    Look {
        /// The member.
        member: Member,
        /// Its action.
        action: Box<Action>,
        /// The action's digest.
        digest: ActionDigest,
        /// Blobs that binding made.
        blobs: Vec<Vec<u8>>,
    },
    /// Execute the action, and answer with [`Event::Finished`].
    Run {
        /// The member.
        member: Member,
        /// Its action.
        action: Box<Action>,
        /// The action's digest.
        digest: ActionDigest,
        /// Which attempt at it within this run, from 1.
        number: u32,
    },
}

/// What the planner is told.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// The answer to [`Command::Look`].
    Looked {
        /// The member.
        member: Member,
        /// What was found.
        found: Found,
    },
    /// The answer to [`Command::Run`].
    Finished {
        /// The member.
        member: Member,
        /// How it ended.
        outcome: Outcome,
        /// What it wrote.
        outputs: BTreeMap<String, Artifact>,
    },
    /// Instead of an end: another run executes the action of [`Command::Run`] now.
    Elsewhere {
        /// The member.
        member: Member,
    },
    /// That run is done with it, or is gone: the member can be looked at again.
    Free {
        /// The member.
        member: Member,
    },
    /// Start nothing more; what runs may end.
    Stop,
}

/// What a look-up found.
#[derive(Clone, Debug, PartialEq)]
pub enum Found {
    /// An attempt that stands for the member.
    Hit {
        /// The attempt.
        attempt: AttemptDigest,
        /// What it wrote.
        outputs: BTreeMap<String, Artifact>,
    },
    /// None, and why.
    Miss(Miss),
}

#[derive(Clone, Debug)]
enum State {
    Waiting { producers: u32 },
    Looking { bound: Box<(Action, ActionDigest)>, tries: Tries },
    SameAction { other: Member, bound: Box<(Action, ActionDigest)> },
    Queued { bound: Box<(Action, ActionDigest)>, miss: Miss, tries: Tries },
    Running { bound: Box<(Action, ActionDigest)>, miss: Miss, tries: Tries },
    Elsewhere { bound: Box<(Action, ActionDigest)>, tries: Tries },
    Reused { attempt: AttemptDigest, outputs: BTreeMap<String, Artifact> },
    Succeeded { miss: Miss, outputs: BTreeMap<String, Artifact> },
    Ended { miss: Miss, outcome: Outcome },
    Blocked { by: Member },
}

/// How the earlier attempts of a member in this run ended. They are counted apart, so that a lost attempt does
/// not use up a declared retry.
#[derive(Clone, Copy, Debug, Default)]
struct Tries {
    lost: u32,
    failed: u32,
}

/// How many members are in which state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// All members this run is about.
    pub members: u64,
    /// Waiting, being looked up or queued.
    pub waiting: u64,
    /// Running.
    pub running: u64,
    /// Reused.
    pub reused: u64,
    /// Executed with success.
    pub succeeded: u64,
    /// Executed without.
    pub failed: u64,
    /// Not reached because a producer failed.
    pub blocked: u64,
}

/// The planner of one run.
#[derive(Debug)]
pub struct Planner {
    plan: Arc<Plan>,
    graph: Graph,
    settings: Settings,
    states: BTreeMap<Member, State>,
    consumers: HashMap<Member, Vec<Member>>,
    queue: BTreeSet<(Reverse<u32>, Member)>,
    in_flight: HashMap<ActionDigest, Member>,
    followers: HashMap<ActionDigest, Vec<Member>>,
    slots: Slots,
    stopping: bool,
    failed: bool,
    looking: u64,
    tally: Tally,
}

impl Planner {
    /// A planner for a plan; nothing is owed before [`Planner::owed`] is asked.
    pub fn new(plan: Arc<Plan>, settings: Settings) -> Result<Planner, GraphError> {
        let graph = Graph::new(&plan)?;
        let mut planner = Planner {
            slots: Slots::new(settings.cpus, settings.memory),
            graph,
            settings,
            states: BTreeMap::new(),
            consumers: HashMap::new(),
            queue: BTreeSet::new(),
            in_flight: HashMap::new(),
            followers: HashMap::new(),
            stopping: false,
            failed: false,
            looking: 0,
            tally: Tally::default(),
            plan,
        };
        planner.admit();
        Ok(planner)
    }

    /// Takes in the members asked for and everything they read from.
    fn admit(&mut self) {
        let plan = Arc::clone(&self.plan);
        let mut pending: VecDeque<Member> = match self.settings.only.as_slice() {
            [] => (0..plan.stages.len()).flat_map(|stage| expand::members(&plan, stage)).collect(),
            targets => targets.iter().flat_map(|target| target.members(&plan)).collect(),
        };
        while let Some(member) = pending.pop_front() {
            if self.states.contains_key(&member) {
                continue;
            }
            let producers = producers(&plan, member);
            for producer in &producers {
                self.consumers.entry(*producer).or_default().push(member);
            }
            let count = u32::try_from(producers.len()).unwrap_or(u32::MAX);
            self.states.insert(member, State::Waiting { producers: count });
            pending.extend(producers);
        }
        self.tally = Tally {
            members: self.states.len() as u64,
            waiting: self.states.len() as u64,
            ..Tally::default()
        };
    }

    /// The first stage whose declared resources this run can never give, with the reason.
    pub fn too_large(&self) -> Option<(&str, TooLarge)> {
        let stages: BTreeSet<u32> = self.states.keys().map(|member| member.stage).collect();
        stages.into_iter().find_map(|stage| {
            let name = self.plan.stages[stage as usize].name.as_str();
            self.slots.admits(self.request(stage)).err().map(|error| (name, error))
        })
    }

    /// What can be done at the start: looks at every member without producers.
    pub fn owed(&mut self) -> Vec<Command> {
        let ready: Vec<Member> = self
            .states
            .iter()
            .filter(|(_, state)| matches!(state, State::Waiting { producers: 0 }))
            .map(|(member, _)| *member)
            .collect();
        let mut out = Vec::new();
        ready.into_iter().for_each(|member| self.look(member, &mut out));
        self.fill_slots(&mut out);
        out
    }

    /// Takes an event in and answers with what is to be done now.
    pub fn handle(&mut self, event: Event) -> Vec<Command> {
        let mut out = Vec::new();
        match event {
            Event::Looked { member, found } => self.looked(member, found, &mut out),
            Event::Finished { member, outcome, outputs } => self.finished(member, outcome, outputs, &mut out),
            Event::Elsewhere { member } => self.elsewhere(member),
            Event::Free { member } => self.free(member, &mut out),
            Event::Stop => self.stopping = true,
        }
        self.fill_slots(&mut out);
        out
    }

    fn look(&mut self, member: Member, out: &mut Vec<Command>) {
        if self.stopping {
            return;
        }
        let made = |producer: Member, output: &str| self.made(producer, output);
        match bind::bind(&self.plan, member, &made) {
            Ok(bound) => {
                let digest = bound.action.digest();
                let action = Box::new(bound.action);
                let bound_to = Box::new(((*action).clone(), digest));
                let state = State::Looking { bound: bound_to, tries: Tries::default() };
                self.states.insert(member, state);
                self.looking += 1;
                out.push(Command::Look { member, action, digest, blobs: bound.blobs });
            }
            // A checked plan binds; one that was not checked fails here instead of panicking.
            Err(error) => self.unbindable(member, &error),
        }
    }

    fn unbindable(&mut self, member: Member, error: &BindError) {
        let failure = avow_model::attempt::Failure::Start(error.to_string());
        self.tally.waiting -= 1;
        self.ended(member, Miss::NeverRun, Outcome::Failed(failure));
    }

    fn made(&self, member: Member, output: &str) -> Option<Artifact> {
        match self.states.get(&member)? {
            State::Reused { outputs, .. } | State::Succeeded { outputs, .. } => outputs.get(output).copied(),
            _ => None,
        }
    }

    fn looked(&mut self, member: Member, found: Found, out: &mut Vec<Command>) {
        let Some(State::Looking { bound, tries }) = self.states.get(&member) else { return };
        let (bound, tries) = (bound.clone(), *tries);
        self.looking -= 1;
        match found {
            Found::Hit { attempt, outputs } => {
                self.states.insert(member, State::Reused { attempt, outputs });
                self.tally.waiting -= 1;
                self.tally.reused += 1;
                self.release_consumers(member, out);
                if self.in_flight.get(&bound.1) == Some(&member) {
                    self.release_action(bound.1, out);
                }
            }
            Found::Miss(miss) => match self.in_flight.get(&bound.1) {
                Some(other) if *other != member => {
                    let other = *other;
                    self.followers.entry(bound.1).or_default().push(member);
                    self.states.insert(member, State::SameAction { other, bound });
                }
                _ => {
                    self.in_flight.insert(bound.1, member);
                    self.enqueue(member, bound, miss, tries);
                }
            },
        }
    }

    fn enqueue(&mut self, member: Member, bound: Box<(Action, ActionDigest)>, miss: Miss, tries: Tries) {
        self.queue.insert((Reverse(self.graph.rank(member.stage as usize)), member));
        self.states.insert(member, State::Queued { bound, miss, tries });
    }

    fn request(&self, stage: u32) -> Request {
        let terms = self.settings.terms.get(&self.plan.stages[stage as usize].name);
        Request {
            cpus: terms.map_or(1, |t| t.cpus.max(1)),
            memory: terms.and_then(|t| t.memory).unwrap_or(0),
        }
    }

    /// Starts queued members, those furthest down the graph first, while slots are free.
    fn fill_slots(&mut self, out: &mut Vec<Command>) {
        if self.halted() {
            return;
        }
        let mut started = Vec::new();
        for key in &self.queue {
            if self.slots.exhausted() {
                break;
            }
            if self.slots.take(self.request(key.1.stage)) {
                started.push(*key);
            }
        }
        for key in started {
            self.queue.remove(&key);
            self.start(key.1, out);
        }
    }

    fn start(&mut self, member: Member, out: &mut Vec<Command>) {
        let Some(State::Queued { bound, miss, tries }) = self.states.remove(&member) else {
            unreachable!("only queued members are in the queue")
        };
        let (action, digest) = (Box::new(bound.0.clone()), bound.1);
        self.states.insert(member, State::Running { bound, miss, tries });
        self.tally.waiting -= 1;
        self.tally.running += 1;
        out.push(Command::Run { member, action, digest, number: 1 + tries.lost + tries.failed });
    }

    fn finished(
        &mut self,
        member: Member,
        outcome: Outcome,
        outputs: BTreeMap<String, Artifact>,
        out: &mut Vec<Command>,
    ) {
        let Some(State::Running { bound, miss, tries }) = self.states.get(&member).cloned() else {
            return;
        };
        self.slots.give_back(self.request(member.stage));
        self.tally.running -= 1;
        if let Some(tries) = self.tries_again(member, &outcome, tries) {
            self.tally.waiting += 1;
            self.enqueue(member, bound, miss, tries);
            return;
        }
        if outcome.succeeded() {
            self.states.insert(member, State::Succeeded { miss, outputs });
            self.tally.succeeded += 1;
            self.release_consumers(member, out);
        } else {
            self.ended(member, miss, outcome);
        }
        self.release_action(bound.1, out);
    }

    /// Members of the same action look again: at a success they find it, at a failure they try themselves.
    fn release_action(&mut self, action: ActionDigest, out: &mut Vec<Command>) {
        self.in_flight.remove(&action);
        for follower in self.followers.remove(&action).unwrap_or_default() {
            self.states.insert(follower, State::Waiting { producers: 0 });
            self.look(follower, out);
        }
    }

    /// A member whose action another run executes waits without slots.
    fn elsewhere(&mut self, member: Member) {
        let Some(State::Running { bound, tries, .. }) = self.states.get(&member) else { return };
        let state = State::Elsewhere { bound: bound.clone(), tries: *tries };
        self.states.insert(member, state);
        self.slots.give_back(self.request(member.stage));
        self.tally.running -= 1;
        self.tally.waiting += 1;
    }

    fn free(&mut self, member: Member, out: &mut Vec<Command>) {
        let Some(State::Elsewhere { bound, tries }) = self.states.get(&member) else { return };
        if self.stopping {
            return;
        }
        let (bound, tries) = (bound.clone(), *tries);
        let (action, digest) = (Box::new(bound.0.clone()), bound.1);
        self.states.insert(member, State::Looking { bound, tries });
        self.looking += 1;
        // The blobs that binding made were stored at the first look.
        out.push(Command::Look { member, action, digest, blobs: Vec::new() });
    }

    /// The count for the next attempt, where there is to be one.
    fn tries_again(&self, member: Member, outcome: &Outcome, tries: Tries) -> Option<Tries> {
        let terms = self.settings.terms.get(&self.plan.stages[member.stage as usize].name);
        let (before, allowed, next) = match outcome {
            Outcome::Succeeded | Outcome::Cancelled => return None,
            Outcome::Lost => (tries.lost, LOST_RETRIES, Tries { lost: tries.lost + 1, ..tries }),
            _ => {
                let retries = terms.map_or(0, |t| t.retries);
                (tries.failed, retries, Tries { failed: tries.failed + 1, ..tries })
            }
        };
        (before < allowed && !self.halted()).then_some(next)
    }

    fn ended(&mut self, member: Member, miss: Miss, outcome: Outcome) {
        self.states.insert(member, State::Ended { miss, outcome });
        self.tally.failed += 1;
        self.failed = true;
        self.block_consumers(member);
    }

    fn release_consumers(&mut self, member: Member, out: &mut Vec<Command>) {
        let consumers = self.consumers.get(&member).cloned().unwrap_or_default();
        for consumer in consumers {
            if let Some(State::Waiting { producers }) = self.states.get_mut(&consumer) {
                *producers -= 1;
                if *producers == 0 {
                    self.look(consumer, out);
                }
            }
        }
    }

    fn block_consumers(&mut self, failed: Member) {
        let mut pending = self.consumers.get(&failed).cloned().unwrap_or_default();
        while let Some(member) = pending.pop() {
            if let Some(State::Waiting { .. }) = self.states.get(&member) {
                self.states.insert(member, State::Blocked { by: failed });
                self.tally.waiting -= 1;
                self.tally.blocked += 1;
                pending.extend(self.consumers.get(&member).into_iter().flatten());
            }
        }
    }

    /// Whether nothing more will come of this run: everything is decided, or it was told to stop (or a
    /// failure stopped it) and nothing is in flight.
    pub fn is_done(&self) -> bool {
        self.tally.running == 0 && self.looking == 0 && (self.halted() || self.tally.waiting == 0)
    }

    /// Whether nothing more is started.
    fn halted(&self) -> bool {
        self.stopping || (self.failed && !self.settings.keep_going)
    }

    /// How many members this run is about, by stage.
    pub fn members_by_stage(&self) -> BTreeMap<String, u64> {
        let mut counts = BTreeMap::new();
        for member in self.states.keys() {
            *counts.entry(self.plan.stages[member.stage as usize].name.clone()).or_default() += 1;
        }
        counts
    }

    /// How many members are in which state.
    pub fn tally(&self) -> Tally {
        self.tally
    }

    /// The plan.
    pub fn plan(&self) -> &Arc<Plan> {
        &self.plan
    }

    /// The graph of its stages.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// Every member this run is about, with why it is where it is.
    pub fn reasons(&self) -> impl Iterator<Item = (Member, Reason)> + '_ {
        self.states.iter().map(|(member, state)| (*member, self.worded(state)))
    }

    /// Why one member is where it is.
    pub fn reason(&self, member: Member) -> Option<Reason> {
        self.states.get(&member).map(|state| self.worded(state))
    }

    /// The action of a member, once its inputs are known and while it is not done.
    pub fn action(&self, member: Member) -> Option<&Action> {
        match self.states.get(&member)? {
            State::Looking { bound, .. }
            | State::Elsewhere { bound, .. }
            | State::SameAction { bound, .. }
            | State::Queued { bound, .. }
            | State::Running { bound, .. } => Some(&bound.0),
            _ => None,
        }
    }

    fn worded(&self, state: &State) -> Reason {
        match state {
            State::Waiting { .. } if self.is_done() => Reason::NotReached,
            State::Waiting { producers } => Reason::Waits { producers: *producers },
            State::Looking { .. } => Reason::Looking,
            State::SameAction { other, .. } => Reason::SameAction { other: *other },
            State::Queued { miss, .. } => Reason::Queued(miss.clone()),
            State::Running { miss, .. } => Reason::Running(miss.clone()),
            State::Elsewhere { .. } => Reason::Elsewhere,
            State::Reused { attempt, .. } => Reason::Reused { attempt: *attempt },
            State::Succeeded { miss, .. } => Reason::Ran { miss: miss.clone(), outcome: Outcome::Succeeded },
            State::Ended { miss, outcome } => Reason::Ran { miss: miss.clone(), outcome: outcome.clone() },
            State::Blocked { by } => Reason::Blocked { by: *by },
        }
    }

    /// Recomputes everything that is cached and compares. For tests; panics with what disagrees.
    pub fn sanity_check(&self) {
        let count = |test: fn(&State) -> bool| self.states.values().filter(|s| test(s)).count() as u64;
        let tally = Tally {
            members: self.states.len() as u64,
            waiting: count(|s| {
                matches!(
                    s,
                    State::Waiting { .. }
                        | State::Looking { .. }
                        | State::SameAction { .. }
                        | State::Elsewhere { .. }
                        | State::Queued { .. }
                )
            }),
            running: count(|s| matches!(s, State::Running { .. })),
            reused: count(|s| matches!(s, State::Reused { .. })),
            succeeded: count(|s| matches!(s, State::Succeeded { .. })),
            failed: count(|s| matches!(s, State::Ended { .. })),
            blocked: count(|s| matches!(s, State::Blocked { .. })),
        };
        assert_eq!(tally, self.tally, "the tally disagrees with the states");
        let mut slots = Slots::new(self.settings.cpus, self.settings.memory);
        for (member, state) in &self.states {
            self.check_member(*member, state, &mut slots);
        }
        assert_eq!(slots, self.slots, "the slots in use are not those of running members");
        assert_eq!(self.queue.len() as u64, count(|s| matches!(s, State::Queued { .. })), "queue");
        assert_eq!(self.looking, count(|s| matches!(s, State::Looking { .. })), "looks under way");
        let active = tally.running
            + self.queue.len() as u64
            + count(|s| matches!(s, State::Looking { .. } | State::Elsewhere { .. }));
        assert!(self.is_done() || active > 0, "unfinished, yet nothing is owed, queued or in flight");
    }

    fn check_member(&self, member: Member, state: &State, slots: &mut Slots) {
        match state {
            State::Running { bound, .. } => {
                assert!(slots.take(self.request(member.stage)), "more runs than the slots allow");
                assert_eq!(self.in_flight.get(&bound.1), Some(&member), "in flight");
            }
            State::Elsewhere { bound, .. } => {
                assert_eq!(self.in_flight.get(&bound.1), Some(&member), "in flight");
            }
            State::Queued { bound, .. } => {
                assert!(self.queue.iter().any(|(_, queued)| *queued == member), "queued");
                assert_eq!(self.in_flight.get(&bound.1), Some(&member), "in flight");
            }
            State::SameAction { bound, .. } => {
                let follows = self.followers.get(&bound.1).is_some_and(|f| f.contains(&member));
                assert!(follows, "a member of the same action follows nobody");
            }
            State::Waiting { producers } => {
                let undone = crate::machine::producers(&self.plan, member)
                    .into_iter()
                    .filter(|p| !matches!(self.states[p], State::Reused { .. } | State::Succeeded { .. }))
                    .count();
                assert_eq!(undone as u32, *producers, "producers still to come");
            }
            _ => {}
        }
    }
}

/// The distinct members a member reads from.
fn producers(plan: &Plan, member: Member) -> Vec<Member> {
    let cell = expand::cell(plan, member);
    let stage = &plan.stages[member.stage as usize];
    let mut all: Vec<Member> =
        stage.inputs.values().filter_map(|input| expand::producers(&cell, &input.from)).flatten().collect();
    all.sort_unstable();
    all.dedup();
    all
}
