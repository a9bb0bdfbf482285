//! The state machine itself.

mod admission;
mod reasons;
mod sanity;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::Arc;

use avow_model::action::Action;
use avow_model::attempt::Outcome;
use avow_model::bind::{self, BindError, Bound};
use avow_model::canonical::Record;
use avow_model::digest::{ActionDigest, Artifact, AttemptDigest};
use avow_model::expand::Member;
use avow_model::plan::{Plan, Terms};

use crate::edges::Edges;
use crate::graph::{Graph, GraphError};
use crate::members::Members;
use crate::reason::Miss;
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

/// Where a member is. Small, because there are as many as members: actions are not kept but bound again when one
/// runs, and what is larger than a number lies behind a pointer.
#[derive(Debug)]
enum State {
    Waiting { producers: u32 },
    Looking(Box<Sought>),
    SameAction { other: Box<(Member, ActionDigest)> },
    Queued(Box<Active>),
    Running(Box<Active>),
    Elsewhere(Box<Sought>),
    Reused(Box<(AttemptDigest, BTreeMap<String, Artifact>)>),
    Succeeded(Box<(Miss, BTreeMap<String, Artifact>)>),
    Ended(Box<(Miss, Outcome)>),
    Blocked { by: Box<Member> },
}

/// A member whose action is looked up, or executed by another run.
#[derive(Clone, Copy, Debug)]
struct Sought {
    digest: ActionDigest,
    tries: Tries,
}

/// A member that has to run.
#[derive(Clone, Debug)]
struct Active {
    digest: ActionDigest,
    miss: Miss,
    tries: Tries,
}

/// So many looks are owed at once; the next follow when these are answered. A sweep of a million members never
/// is a million actions in memory.
const WAVE: u64 = 10_000;

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
    edges: Edges,
    states: Members<State>,
    /// Who reads from whom, where only a few members are asked for: they are fewer than all that could read.
    consumers: Option<HashMap<Member, Vec<Member>>>,
    /// How many members of each stage this run is about.
    counts: Vec<u64>,
    /// Members whose inputs are there and whose look is not owed yet.
    ready: VecDeque<Member>,
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
            edges: Edges::new(&plan),
            states: if settings.only.is_empty() { Members::table(&plan) } else { Members::map() },
            consumers: (!settings.only.is_empty()).then(HashMap::new),
            counts: vec![0; plan.stages.len()],
            ready: VecDeque::new(),
            settings,
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

    fn consumers(&self, member: Member) -> Vec<Member> {
        match &self.consumers {
            Some(few) => few.get(&member).cloned().unwrap_or_default(),
            None => self.edges.consumers(member),
        }
    }

    /// The first stage whose declared resources this run can never give, with the reason.
    pub fn too_large(&self) -> Option<(&str, TooLarge)> {
        let stages = (0u32..).zip(&self.counts).filter(|(_, count)| **count > 0);
        stages.map(|(stage, _)| stage).find_map(|stage| {
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
            .map(|(member, _)| member)
            .collect();
        let mut out = Vec::new();
        self.ready.extend(ready);
        self.look_on(&mut out);
        self.fill_slots(&mut out);
        out
    }

    /// Takes an event in and answers with what is to be done now.
    pub fn handle(&mut self, event: Event) -> Vec<Command> {
        let mut out = Vec::new();
        match event {
            Event::Looked { member, found } => self.looked(member, found),
            Event::Finished { member, outcome, outputs } => self.finished(member, outcome, outputs),
            Event::Elsewhere { member } => self.elsewhere(member),
            Event::Free { member } => self.free(member, &mut out),
            Event::Stop => self.stopping = true,
        }
        self.look_on(&mut out);
        self.fill_slots(&mut out);
        out
    }

    /// Owes the looks of members that are ready, a wave at a time.
    fn look_on(&mut self, out: &mut Vec<Command>) {
        if self.stopping {
            self.ready.clear();
        }
        while self.looking < WAVE {
            let Some(member) = self.ready.pop_front() else { return };
            self.look(member, out);
        }
    }

    fn look(&mut self, member: Member, out: &mut Vec<Command>) {
        match self.bind(member) {
            Ok(bound) => {
                let digest = bound.action.digest();
                let sought = Box::new(Sought { digest, tries: Tries::default() });
                self.states.insert(member, State::Looking(sought));
                self.looking += 1;
                out.push(Command::Look {
                    member,
                    action: Box::new(bound.action),
                    digest,
                    blobs: bound.blobs,
                });
            }
            // A checked plan binds; one that was not checked fails here instead of panicking.
            Err(error) => self.unbindable(member, &error),
        }
    }

    fn bind(&self, member: Member) -> Result<Bound, BindError> {
        bind::bind(&self.plan, member, &|producer, output| self.made(producer, output))
    }

    fn unbindable(&mut self, member: Member, error: &BindError) {
        let failure = avow_model::attempt::Failure::Start(error.to_string());
        self.tally.waiting -= 1;
        self.ended(member, Miss::NeverRun, Outcome::Failed(failure));
    }

    fn made(&self, member: Member, output: &str) -> Option<Artifact> {
        match self.states.get(member)? {
            State::Reused(made) => made.1.get(output).copied(),
            State::Succeeded(made) => made.1.get(output).copied(),
            _ => None,
        }
    }

    fn looked(&mut self, member: Member, found: Found) {
        let Some(State::Looking(sought)) = self.states.get(member) else { return };
        let Sought { digest, tries } = **sought;
        self.looking -= 1;
        match found {
            Found::Hit { attempt, outputs } => {
                self.states.insert(member, State::Reused(Box::new((attempt, outputs))));
                self.tally.waiting -= 1;
                self.tally.reused += 1;
                self.release_consumers(member);
                if self.in_flight.get(&digest) == Some(&member) {
                    self.release_action(digest);
                }
            }
            Found::Miss(miss) => match self.in_flight.get(&digest) {
                Some(other) if *other != member => {
                    let other = Box::new((*other, digest));
                    self.followers.entry(digest).or_default().push(member);
                    self.states.insert(member, State::SameAction { other });
                }
                _ => {
                    self.in_flight.insert(digest, member);
                    self.enqueue(member, Box::new(Active { digest, miss, tries }));
                }
            },
        }
    }

    fn enqueue(&mut self, member: Member, active: Box<Active>) {
        self.queue.insert((Reverse(self.graph.rank(member.stage as usize)), member));
        self.states.insert(member, State::Queued(active));
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
        let Some(State::Queued(active)) = self.states.remove(member) else {
            unreachable!("only queued members are in the queue")
        };
        let (digest, tries) = (active.digest, active.tries);
        let bound = self.bind(member);
        self.states.insert(member, State::Running(active));
        self.tally.waiting -= 1;
        self.tally.running += 1;
        // It was bound for its look, and nothing that it was bound from can have changed.
        let action = Box::new(bound.expect("what was bound once binds again").action);
        out.push(Command::Run { member, action, digest, number: 1 + tries.lost + tries.failed });
    }

    fn finished(&mut self, member: Member, outcome: Outcome, outputs: BTreeMap<String, Artifact>) {
        let Some(State::Running(active)) = self.states.get(member) else { return };
        let Active { digest, miss, tries } = (**active).clone();
        self.slots.give_back(self.request(member.stage));
        self.tally.running -= 1;
        if let Some(tries) = self.tries_again(member, &outcome, tries) {
            self.tally.waiting += 1;
            self.enqueue(member, Box::new(Active { digest, miss, tries }));
            return;
        }
        if outcome.succeeded() {
            self.states.insert(member, State::Succeeded(Box::new((miss, outputs))));
            self.tally.succeeded += 1;
            self.release_consumers(member);
        } else {
            self.ended(member, miss, outcome);
        }
        self.release_action(digest);
    }

    /// Members of the same action look again: at a success they find it, at a failure they try themselves.
    fn release_action(&mut self, action: ActionDigest) {
        self.in_flight.remove(&action);
        for follower in self.followers.remove(&action).unwrap_or_default() {
            self.states.insert(follower, State::Waiting { producers: 0 });
            self.ready.push_back(follower);
        }
    }

    /// A member whose action another run executes waits without slots.
    fn elsewhere(&mut self, member: Member) {
        let Some(State::Running(active)) = self.states.get(member) else { return };
        let sought = Box::new(Sought { digest: active.digest, tries: active.tries });
        self.states.insert(member, State::Elsewhere(sought));
        self.slots.give_back(self.request(member.stage));
        self.tally.running -= 1;
        self.tally.waiting += 1;
    }

    fn free(&mut self, member: Member, out: &mut Vec<Command>) {
        let Some(State::Elsewhere(sought)) = self.states.get(member) else { return };
        let sought = *sought.clone();
        let Ok(bound) = self.bind(member) else { return };
        if self.stopping {
            return;
        }
        self.states.insert(member, State::Looking(Box::new(sought)));
        self.looking += 1;
        // The blobs that binding made were stored at the first look.
        let (action, digest) = (Box::new(bound.action), sought.digest);
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
        self.states.insert(member, State::Ended(Box::new((miss, outcome))));
        self.tally.failed += 1;
        self.failed = true;
        self.block_consumers(member);
    }

    fn release_consumers(&mut self, member: Member) {
        for consumer in self.consumers(member) {
            if let Some(State::Waiting { producers }) = self.states.get_mut(consumer) {
                *producers -= 1;
                if *producers == 0 {
                    self.ready.push_back(consumer);
                }
            }
        }
    }

    fn block_consumers(&mut self, failed: Member) {
        let mut pending = self.consumers(failed);
        while let Some(member) = pending.pop() {
            if let Some(State::Waiting { .. }) = self.states.get(member) {
                self.states.insert(member, State::Blocked { by: Box::new(failed) });
                self.tally.waiting -= 1;
                self.tally.blocked += 1;
                pending.extend(self.consumers(member));
            }
        }
    }

    /// Whether nothing more will come of this run: everything is decided, or it was told to stop (or a
    /// failure stopped it) and nothing is in flight.
    pub fn is_done(&self) -> bool {
        let idle = self.tally.running == 0 && self.looking == 0 && self.ready.is_empty();
        idle && (self.halted() || self.tally.waiting == 0)
    }

    /// Whether nothing more is started.
    fn halted(&self) -> bool {
        self.stopping || (self.failed && !self.settings.keep_going)
    }

    /// How many members this run is about, by stage.
    pub fn members_by_stage(&self) -> BTreeMap<String, u64> {
        let counts = self.plan.stages.iter().zip(&self.counts).filter(|(_, count)| **count > 0);
        counts.map(|(stage, count)| (stage.name.clone(), *count)).collect()
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
}
