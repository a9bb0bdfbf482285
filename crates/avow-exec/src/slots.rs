//! Processors, memory and graphics cards as a number of slots that attempts reserve before they start.
//!
//! Strictly first come, first served: a large request at the head of the queue waits until enough is free, and
//! nothing overtakes it, so it cannot starve. Slots reserve; they pin nothing and limit nothing.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use avow_model::plan::Terms;
use tokio::sync::oneshot;

/// An amount of each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Amount {
    /// Processors.
    pub cpus: u32,
    /// Memory in bytes.
    pub memory: u64,
    /// Graphics cards.
    pub gpus: u32,
}

impl Amount {
    /// What the terms of a stage reserve; at least one processor.
    pub fn of(terms: &Terms) -> Self {
        Self { cpus: terms.cpus.max(1), memory: terms.memory.unwrap_or(0), gpus: terms.gpus }
    }

    fn fits(&self, free: &Amount) -> bool {
        self.cpus <= free.cpus && self.memory <= free.memory && self.gpus <= free.gpus
    }

    fn minus(&self, other: &Amount) -> Self {
        Self {
            cpus: self.cpus - other.cpus,
            memory: self.memory - other.memory,
            gpus: self.gpus - other.gpus,
        }
    }

    fn plus(&self, other: &Amount) -> Self {
        Self {
            cpus: self.cpus + other.cpus,
            memory: self.memory + other.memory,
            gpus: self.gpus + other.gpus,
        }
    }
}

/// A request that can never be met here.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TooLarge {
    /// More processors than slots.
    #[error(
        "needs {wanted} processor slots and this run has {all}; run with `-j {wanted}` or lower `resources.cpus`"
    )]
    Cpus {
        /// Asked for.
        wanted: u32,
        /// There are.
        all: u32,
    },
    /// More memory than the machine has.
    #[error(
        "needs {wanted} bytes of memory and this machine offers {all}; lower `resources.memory` or use a larger machine"
    )]
    Memory {
        /// Asked for.
        wanted: u64,
        /// There are.
        all: u64,
    },
    /// More graphics cards than there are.
    #[error(
        "needs {wanted} graphics cards and this machine has {all}; lower `resources.gpus` or use another machine"
    )]
    Gpus {
        /// Asked for.
        wanted: u32,
        /// There are.
        all: u32,
    },
}

/// The slots of one run; clones share them.
#[derive(Clone, Debug)]
pub struct Slots {
    all: Amount,
    state: Arc<Mutex<State>>,
}

#[derive(Debug)]
struct State {
    free: Amount,
    waiting: VecDeque<(Amount, oneshot::Sender<Reserved>)>,
}

/// Reserved slots, given back when dropped.
#[derive(Debug)]
pub struct Reserved {
    amount: Amount,
    state: Arc<Mutex<State>>,
}

impl Slots {
    /// This many slots.
    pub fn new(all: Amount) -> Self {
        Self { all, state: Arc::new(Mutex::new(State { free: all, waiting: VecDeque::new() })) }
    }

    /// `cpus` slots and this machine's memory. Graphics cards are counted by their device files.
    pub fn of_this_machine(cpus: u32) -> Self {
        Self::new(Amount { cpus, memory: crate::host::total_memory(), gpus: graphics_cards() })
    }

    /// Whether a request can ever be met.
    ///
    /// # Errors
    /// With the remedy, where it cannot.
    pub fn check(&self, wanted: &Amount) -> Result<(), TooLarge> {
        let all = self.all;
        if wanted.cpus > all.cpus {
            return Err(TooLarge::Cpus { wanted: wanted.cpus, all: all.cpus });
        }
        if wanted.memory > all.memory {
            return Err(TooLarge::Memory { wanted: wanted.memory, all: all.memory });
        }
        if wanted.gpus > all.gpus {
            return Err(TooLarge::Gpus { wanted: wanted.gpus, all: all.gpus });
        }
        Ok(())
    }

    /// Waits for its turn and reserves. Dropping the future gives up the place in the queue.
    ///
    /// # Errors
    /// At once, where the request can never be met.
    pub async fn acquire(&self, wanted: Amount) -> Result<Reserved, TooLarge> {
        self.check(&wanted)?;
        let (sender, receiver) = oneshot::channel();
        self.lock().waiting.push_back((wanted, sender));
        serve(&self.state);
        Ok(receiver.await.expect("a waiting request is answered before the slots are gone"))
    }

    /// Reserves at once, or not at all: `None` where something is waiting already or too little is free.
    ///
    /// # Errors
    /// Where the request can never be met.
    pub fn try_acquire(&self, wanted: Amount) -> Result<Option<Reserved>, TooLarge> {
        self.check(&wanted)?;
        let mut state = self.lock();
        if !state.waiting.is_empty() || !wanted.fits(&state.free) {
            return Ok(None);
        }
        state.free = state.free.minus(&wanted);
        Ok(Some(Reserved { amount: wanted, state: Arc::clone(&self.state) }))
    }

    /// What is free now.
    pub fn free(&self) -> Amount {
        self.lock().free
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Answers requests from the head of the queue while they fit.
fn serve(shared: &Arc<Mutex<State>>) {
    loop {
        let mut state = lock(shared);
        let Some((wanted, _)) = state.waiting.front() else { return };
        let wanted = *wanted;
        let given_up = state.waiting.front().is_some_and(|(_, sender)| sender.is_closed());
        if !given_up && !wanted.fits(&state.free) {
            return;
        }
        let Some((_, sender)) = state.waiting.pop_front() else { return };
        if given_up {
            continue;
        }
        state.free = state.free.minus(&wanted);
        drop(state);
        // Refused where the request was given up in this moment: what comes back is dropped, and so given back.
        drop(sender.send(Reserved { amount: wanted, state: Arc::clone(shared) }));
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        let mut state = lock(&self.state);
        state.free = state.free.plus(&self.amount);
        drop(state);
        serve(&self.state);
    }
}

fn graphics_cards() -> u32 {
    let entries = std::fs::read_dir("/dev").into_iter().flatten().flatten();
    let card = |name: &str| {
        name.strip_prefix("nvidia").is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
    };
    let count = entries.filter(|entry| entry.file_name().to_str().is_some_and(card)).count();
    u32::try_from(count).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slots() -> Slots {
        Slots::new(Amount { cpus: 2, memory: 100, gpus: 0 })
    }

    fn cpus(cpus: u32) -> Amount {
        Amount { cpus, ..Amount::default() }
    }

    #[tokio::test]
    async fn a_request_larger_than_the_machine_is_refused_with_the_remedy() {
        let error = slots().acquire(cpus(3)).await.unwrap_err();
        assert!(error.to_string().contains("-j 3"), "{error}");
        let memory = Amount { memory: 101, ..cpus(1) };
        assert_eq!(slots().acquire(memory).await.unwrap_err(), TooLarge::Memory { wanted: 101, all: 100 });
    }

    #[tokio::test]
    async fn a_large_request_is_not_overtaken() {
        let slots = slots();
        let first = slots.acquire(cpus(1)).await.unwrap();
        let large = tokio::spawn({
            let slots = slots.clone();
            async move { slots.acquire(cpus(2)).await.unwrap() }
        });
        tokio::task::yield_now().await;
        assert!(slots.try_acquire(cpus(1)).unwrap().is_none(), "one is free, but somebody waits");
        drop(first);
        assert_eq!(large.await.unwrap().amount, cpus(2));
        assert_eq!(slots.free(), Amount { cpus: 2, memory: 100, gpus: 0 });
    }

    #[tokio::test]
    async fn a_request_that_was_given_up_blocks_nobody() {
        let slots = slots();
        let held = slots.acquire(cpus(1)).await.unwrap();
        let large = tokio::spawn({
            let slots = slots.clone();
            async move { slots.acquire(cpus(2)).await.unwrap() }
        });
        tokio::task::yield_now().await;
        large.abort();
        assert!(large.await.unwrap_err().is_cancelled());
        let second = slots.acquire(cpus(1)).await.unwrap();
        drop((held, second));
        assert_eq!(slots.free().cpus, 2);
    }

    #[test]
    fn declared_memory_is_reserved_and_at_least_one_processor() {
        let terms = Terms { memory: Some(7), ..Terms::default() };
        assert_eq!(Amount::of(&terms), Amount { cpus: 1, memory: 7, gpus: 0 });
    }
}
