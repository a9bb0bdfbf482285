//! An executor that follows a script, for tests of what stands above: no process, no clock that matters.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use avow_model::action::Action;
use avow_model::attempt::{AttemptId, Host, Outcome, Produced, Usage};
use avow_model::canonical::Record;
use avow_model::digest::{Artifact, BlobDigest};
use avow_model::plan::Terms;
use avow_model::tree::{Entry, Tree};
use avow_store::{BlobStore, StoreError};

use crate::cancel::Level;
use crate::fault::ExecError;
use crate::{Execution, Executor, Watch};

/// What a fake attempt does.
#[derive(Clone, Debug, PartialEq)]
pub enum Act {
    /// Succeeds; outputs that are not named here get bytes that depend on the action and the output's name.
    Succeed(BTreeMap<String, Vec<u8>>),
    /// Ends like this, without outputs.
    End(Outcome),
    /// Runs until it is cancelled.
    Hang,
}

type Script = dyn Fn(&Call) -> Act + Send + Sync;

/// One call of [`Executor::run`].
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// The attempt.
    pub attempt: AttemptId,
    /// The action.
    pub action: Action,
    /// The terms.
    pub terms: Terms,
    /// How many calls there were before.
    pub number: usize,
}

/// Follows a script and remembers every call.
#[derive(Clone)]
pub struct FakeExecutor(Arc<Inner>);

struct Inner {
    blobs: Arc<dyn BlobStore>,
    script: Box<Script>,
    calls: Mutex<Vec<Call>>,
    running: AtomicUsize,
    most: AtomicUsize,
}

impl FakeExecutor {
    /// Asks `script` what each attempt does.
    pub fn new(blobs: Arc<dyn BlobStore>, script: impl Fn(&Call) -> Act + Send + Sync + 'static) -> Self {
        let (running, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
        Self(Arc::new(Inner { blobs, script: Box::new(script), calls: Mutex::default(), running, most }))
    }

    /// Every attempt succeeds.
    pub fn succeeding(blobs: Arc<dyn BlobStore>) -> Self {
        Self::new(blobs, |_| Act::Succeed(BTreeMap::new()))
    }

    /// All calls so far, in order.
    pub fn calls(&self) -> Vec<Call> {
        self.0.calls.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The largest number of attempts that ran at the same time.
    pub fn most_at_once(&self) -> usize {
        self.0.most.load(Ordering::SeqCst)
    }
}

struct Running<'a>(&'a AtomicUsize);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Inner {
    fn record(&self, attempt: &AttemptId, action: &Action, terms: &Terms) -> Call {
        let mut calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        let (attempt, action, terms) = (attempt.clone(), action.clone(), terms.clone());
        let call = Call { attempt, action, terms, number: calls.len() };
        calls.push(call.clone());
        call
    }

    fn write(
        &self,
        call: &Call,
        given: &BTreeMap<String, Vec<u8>>,
    ) -> Result<BTreeMap<String, Produced>, StoreError> {
        let mut outputs = BTreeMap::new();
        for (name, slot) in &call.action.outputs {
            let usual = || format!("{name} of {}\n", call.action.digest()).into_bytes();
            let bytes = given.get(name).cloned().unwrap_or_else(usual);
            let size = bytes.len() as u64;
            let digest =
                if slot.keep.is_content() { self.blobs.put(&bytes)? } else { BlobDigest::of(&bytes) };
            let artifact = if slot.folder { self.folder(digest)? } else { Artifact::Blob(digest) };
            outputs.insert(name.clone(), Produced { artifact, size });
        }
        Ok(outputs)
    }

    fn folder(&self, digest: BlobDigest) -> Result<Artifact, StoreError> {
        let entries = [("file".to_owned(), Entry::File { digest, executable: false })].into();
        let tree = Tree { entries };
        self.blobs.put(&tree.to_bytes())?;
        Ok(Artifact::Tree(tree.digest()))
    }
}

impl Executor for FakeExecutor {
    async fn run(
        &self,
        attempt: &AttemptId,
        action: &Action,
        terms: &Terms,
        watch: Watch,
    ) -> Result<Execution, ExecError> {
        let inner = &self.0;
        if watch.cancel.level() != Level::Run {
            return Ok(execution(Outcome::Cancelled, BTreeMap::new(), 0));
        }
        let call = inner.record(attempt, action, terms);
        let now = inner.running.fetch_add(1, Ordering::SeqCst) + 1;
        let _running = Running(&inner.running);
        inner.most.fetch_max(now, Ordering::SeqCst);
        // Others get their turn, so that attempts overlap as real ones do.
        tokio::task::yield_now().await;
        let (outcome, outputs) = match (inner.script)(&call) {
            Act::Succeed(given) => {
                (Outcome::Succeeded, inner.write(&call, &given).map_err(ExecError::Store)?)
            }
            Act::End(outcome) => (outcome, BTreeMap::new()),
            Act::Hang => {
                watch.cancel.cancelled().await;
                (Outcome::Cancelled, BTreeMap::new())
            }
        };
        Ok(execution(outcome, outputs, call.number))
    }
}

fn execution(outcome: Outcome, outputs: BTreeMap<String, Produced>, number: usize) -> Execution {
    let host = Host { name: "fake".to_owned(), confinement: "none".to_owned(), ..Host::default() };
    let (usage, at) = (Usage::default(), i64::try_from(number).unwrap_or(i64::MAX));
    let ended = Execution::ended(outcome, host);
    Execution { outputs, usage, started: at, finished: at, ..ended }
}
