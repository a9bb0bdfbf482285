//! One attempt on a worker, from the first byte sent to the last one received.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use avow_model::action::Action;
use avow_model::attempt::{AttemptId, Failure, Outcome};
use avow_model::digest::BlobDigest;
use avow_model::plan::Terms;
use reqwest::{Method, Response};

use super::http::CallError;
use super::logs::Logs;
use super::receive::{self, Unreceived};
use super::{Health, Inner, Known, Misfit, RemoteError, lock, send};
use crate::cancel::{Cancel, Level};
use crate::worker::frame::{Frame, Frames};
use crate::worker::protocol::{Breakdown, Ending, Event, INLINE_LIMIT, Refusal, Submission, Values, encode};
use crate::{ExecError, Execution};

/// How often an action is sent again because the worker lacks something of it or was started again.
const TRIES: u32 = 4;
/// From one try to reach a worker to the next.
const PAUSE: Duration = Duration::from_millis(100);

/// See [`super::Remote::attempt`].
pub(super) async fn carry_out(
    inner: &Arc<Inner>,
    attempt: &AttemptId,
    action: &Action,
    terms: &Terms,
    cancel: &Cancel,
) -> Result<Execution, RemoteError> {
    let mut known = inner.known();
    let secrets = secrets(inner, terms)?;
    let mut tries = 0;
    loop {
        if cancel.level() != Level::Run {
            return Ok(inner.ended(&known, Outcome::Cancelled));
        }
        if let Health::Down(reason) = &*inner.health.borrow() {
            // A tunnel or a proxy takes connections whether or not there is a worker behind it. What is sent into it
            // may have been heard or not, so nothing is sent.
            let (url, reason) = (inner.http.url().to_owned(), reason.clone());
            return Err(RemoteError::Unreachable { url, reason });
        }
        tries += 1;
        let provided = tokio::select! {
            provided = send::provide(inner, &known, action) => provided,
            _ = cancel.cancelled() => continue,
        };
        provided.map_err(|error| send::not_sent(inner, error))?;
        let brought = Courier::new(inner, &known, attempt, action, terms, &secrets).bring(cancel).await;
        match brought {
            Ok(execution) => return Ok(execution),
            Err(Refused::Lacking(blobs)) if tries < TRIES => send::lacking(&known, &blobs),
            Err(Refused::Again) if tries < TRIES => known = inner.learn().await?,
            Err(Refused::Lacking(_)) => {
                let reason =
                    format!("the cache of the worker `{}` is too small for what it needs", inner.http.url());
                return Ok(inner.ended(&known, Outcome::Failed(Failure::Machine(reason))));
            }
            Err(Refused::Again) => {
                let (url, reason) = (inner.http.url().to_owned(), "it is started again and again".to_owned());
                return Err(RemoteError::Unreachable { url, reason });
            }
            Err(Refused::For(error)) => return Err(error),
        }
    }
}

/// The values that the terms name. They are not shown to a network.
fn secrets(inner: &Inner, terms: &Terms) -> Result<Values, RemoteError> {
    let value = |name: &String| Some((name.clone(), inner.secrets.reveal(name)?.to_owned()));
    let values = Values(terms.secrets.iter().filter_map(value).collect());
    if !values.0.is_empty() && !inner.http.is_private() {
        let reason =
            "secrets are not sent over plain HTTP to another machine; use a tunnel or `https`".to_owned();
        return Err(RemoteError::Refused { url: inner.http.url().to_owned(), reason });
    }
    Ok(values)
}

/// Why a submission started nothing.
enum Refused {
    /// The worker lacks these blobs.
    Lacking(Vec<BlobDigest>),
    /// The worker was started again before it had heard of the attempt.
    Again,
    /// For another reason.
    For(RemoteError),
}

/// What a stream came to.
enum Came {
    Event(Event),
    /// The connection broke, or was never there.
    Broken(CallError),
}

/// The state of one attempt on its way.
struct Courier<'a> {
    inner: &'a Arc<Inner>,
    known: &'a Arc<Known>,
    attempt: &'a AttemptId,
    action: &'a Action,
    submission: Submission,
    logs: Logs,
    small: HashMap<BlobDigest, Vec<u8>>,
    small_bytes: u64,
    /// Whether the worker may have heard of the attempt.
    sent: bool,
    /// What it was asked to do.
    asked: Level,
    over: bool,
}

impl<'a> Courier<'a> {
    fn new(
        inner: &'a Arc<Inner>,
        known: &'a Arc<Known>,
        attempt: &'a AttemptId,
        action: &'a Action,
        terms: &Terms,
        secrets: &Values,
    ) -> Self {
        let submission = Submission {
            session: inner.session.clone(),
            instance: known.description.instance.clone(),
            action: action.clone(),
            terms: terms.clone(),
            joins: false,
            have: [0; 2],
            done: Vec::new(),
            project: inner.project.clone(),
            secrets: secrets.clone(),
        };
        Courier {
            logs: Logs::new(&inner.work, attempt),
            inner,
            known,
            attempt,
            action,
            submission,
            small: HashMap::new(),
            small_bytes: 0,
            sent: false,
            asked: Level::Run,
            over: false,
        }
    }

    /// Submits the attempt until it has ended, joining it again as often as the connection breaks.
    async fn bring(&mut self, cancel: &Cancel) -> Result<Execution, Refused> {
        loop {
            match self.once(cancel).await? {
                Came::Event(Event::Finished(ending)) => return self.finish(*ending, cancel).await,
                Came::Event(Event::Broken(breakdown)) => return self.broken(breakdown),
                Came::Event(Event::Reset(_)) => {}
                Came::Broken(error) if !self.sent => {
                    self.inner.set(Health::Down(error.to_string()));
                    return Err(Refused::For(self.inner.http.failed(error)));
                }
                Came::Broken(error) => {
                    // Nothing more goes there until it is heard again.
                    self.inner.set(Health::Down(error.to_string()));
                    if self.asked == Level::Kill || self.inner.silent() > self.known.lease() {
                        tracing::warn!(worker = self.inner.http.url(), attempt = %self.attempt, %error, "lost");
                        return Ok(self.outcome(Outcome::Lost));
                    }
                    tokio::select! {
                        () = tokio::time::sleep(PAUSE) => {}
                        level = next(self.asked, cancel) => self.ask(level),
                    }
                }
            }
        }
    }

    /// One request and the stream that answers it.
    async fn once(&mut self, cancel: &Cancel) -> Result<Came, Refused> {
        self.submission.have = self.logs.have();
        self.submission.done = std::mem::take(&mut *lock(&self.inner.done));
        let path = format!("/attempts/{}", self.attempt);
        let inner = Arc::clone(self.inner);
        let opening = inner.http.open(Method::POST, &path, encode(&self.submission));
        tokio::pin!(opening);
        let response = loop {
            tokio::select! {
                biased;
                opened = &mut opening => break opened,
                level = next(self.asked, cancel) => {
                    self.sent = true;
                    self.ask(level);
                }
                // Sent again, it joins the attempt. Whether the worker lives is seen elsewhere.
                () = tokio::time::sleep(self.known.lease()) => {
                    self.sent = true;
                    break Err(CallError::Broken("it does not answer".to_owned()));
                }
            }
        };
        match response {
            Ok(response) => {
                (self.sent, self.submission.joins) = (true, true);
                self.inner.hear();
                Ok(self.read(response, cancel).await)
            }
            Err(CallError::Refused(refusal)) => self.refused(refusal),
            Err(error) => {
                self.sent |= !matches!(error, CallError::Connect(_));
                // Whether it heard that is not known.
                lock(&self.inner.done).append(&mut self.submission.done);
                Ok(Came::Broken(error))
            }
        }
    }

    fn refused(&mut self, refusal: Refusal) -> Result<Came, Refused> {
        let url = || self.inner.http.url().to_owned();
        match refusal {
            // It ended with an earlier instance, or because the worker had not heard of us for too long.
            Refusal::OtherInstance { .. } | Refusal::Stopping | Refusal::Unknown if self.sent => {
                let lost = Breakdown::Stopping;
                Ok(Came::Event(Event::Broken(lost)))
            }
            Refusal::OtherInstance { .. } => Err(Refused::Again),
            Refusal::Lacking { blobs } => Err(Refused::Lacking(blobs)),
            Refusal::Mismatch { differences } => {
                // What it said of its programs is true no longer.
                lock(&self.known.programs).clear();
                lock(&self.known.loads).clear();
                Err(Refused::For(RemoteError::Unsuitable(Misfit { url: url(), differences })))
            }
            Refusal::Machine { reason } => Ok(Came::Event(Event::Broken(Breakdown::Machine(reason)))),
            other => Err(Refused::For(self.inner.http.failed(CallError::Refused(other)))),
        }
    }

    async fn read(&mut self, mut response: Response, cancel: &Cancel) -> Came {
        let broken = |reason: String| Came::Broken(CallError::Broken(reason));
        let mut frames = Frames::default();
        loop {
            let piece = tokio::select! {
                biased;
                piece = response.chunk() => piece,
                level = next(self.asked, cancel) => {
                    self.ask(level);
                    continue;
                }
                () = tokio::time::sleep(self.known.lease()) => return broken("it is silent".to_owned()),
            };
            match piece {
                Ok(Some(piece)) => frames.push(&piece),
                Ok(None) => return broken("the stream ended too early".to_owned()),
                Err(error) => return broken(error.without_url().to_string()),
            }
            self.inner.hear();
            loop {
                match frames.pull() {
                    Ok(Some(frame)) => match self.take(frame).await {
                        Ok(Some(event)) => return Came::Event(event),
                        Ok(None) => {}
                        Err(error) => return Came::Event(self.no_disk(&error)),
                    },
                    Ok(None) => break,
                    Err(error) => return Came::Event(Event::Broken(Breakdown::Machine(error.to_string()))),
                }
            }
        }
    }

    /// Takes one frame in; the event that ends the attempt.
    async fn take(&mut self, frame: Frame) -> std::io::Result<Option<Event>> {
        match frame {
            Frame::Alive => {}
            Frame::Log(stream, bytes) => self.logs.write(stream, &bytes).await?,
            Frame::Event(Event::Reset(stream)) => self.logs.reset(stream).await?,
            Frame::Event(event) => return Ok(Some(event)),
            Frame::Blob(bytes) => {
                self.small_bytes += bytes.len() as u64;
                // More than was agreed is not kept; it is asked for by its name.
                if self.small_bytes <= INLINE_LIMIT {
                    self.small.insert(BlobDigest::of(&bytes), bytes);
                }
            }
        }
        Ok(None)
    }

    /// Asks the worker, once for each level.
    fn ask(&mut self, level: Level) {
        if level > self.asked {
            self.asked = level;
            self.inner.ask_to_stop(self.attempt, level);
        }
    }

    async fn finish(&mut self, ending: Ending, cancel: &Cancel) -> Result<Execution, Refused> {
        loop {
            let small = std::mem::take(&mut self.small);
            let taking =
                receive::take_over(self.inner, self.known, self.action, &ending, &mut self.logs, small);
            let taken = tokio::select! {
                taken = taking => taken,
                () = cancel.reached(Level::Kill) => return Ok(self.outcome(Outcome::Cancelled)),
            };
            match taken {
                Ok(()) => break,
                Err(Unreceived::Call(CallError::Connect(_) | CallError::Broken(_)))
                    if self.inner.silent() < self.known.lease() =>
                {
                    tokio::time::sleep(PAUSE).await;
                }
                Err(Unreceived::Call(CallError::Refused(Refusal::Unknown))) => {
                    return Ok(self.machine("it does not have what it wrote any more".to_owned()));
                }
                Err(Unreceived::Call(_)) => return Ok(self.outcome(Outcome::Lost)),
                Err(Unreceived::Wrong(reason)) => return Ok(self.machine(format!("it sent {reason}"))),
                Err(Unreceived::Ours(error)) => {
                    return match crate::fault::Fault::from(error) {
                        crate::fault::Fault::Outcome(outcome) => Ok(self.outcome(outcome)),
                        crate::fault::Fault::Ours(error) => Err(Refused::For(RemoteError::Exec(error))),
                    };
                }
            }
        }
        self.over();
        Ok(ending.into())
    }

    fn broken(&mut self, breakdown: Breakdown) -> Result<Execution, Refused> {
        match breakdown {
            Breakdown::Action(reason) => {
                self.over();
                Err(Refused::For(RemoteError::Exec(ExecError::Action { reason })))
            }
            Breakdown::Machine(reason) => Ok(self.machine(reason)),
            Breakdown::Stopping if self.asked > Level::Run => Ok(self.outcome(Outcome::Cancelled)),
            Breakdown::Stopping => Ok(self.outcome(Outcome::Lost)),
        }
    }

    fn machine(&mut self, reason: String) -> Execution {
        let reason = format!("the worker `{}`: {reason}", self.inner.http.url());
        self.outcome(Outcome::Failed(Failure::Machine(reason)))
    }

    fn no_disk(&self, error: &std::io::Error) -> Event {
        Event::Broken(Breakdown::Machine(format!("its log cannot be written here: {error}")))
    }

    /// An end without anything written. Whatever the worker still does is not wanted any more.
    fn outcome(&mut self, outcome: Outcome) -> Execution {
        self.over = true;
        self.inner.ask_to_stop(self.attempt, Level::Kill);
        self.inner.ended(self.known, outcome)
    }

    /// We have it whole: the worker may forget it.
    fn over(&mut self) {
        self.over = true;
        lock(&self.inner.done).push(self.attempt.0.clone());
    }
}

impl Drop for Courier<'_> {
    fn drop(&mut self) {
        // The future was dropped while the attempt ran.
        if self.sent && !self.over {
            self.inner.ask_to_stop(self.attempt, Level::Kill);
        }
    }
}

/// The next level that the worker was not asked for yet.
async fn next(asked: Level, cancel: &Cancel) -> Level {
    match asked {
        Level::Run => cancel.cancelled().await,
        Level::Stop => {
            cancel.reached(Level::Kill).await;
            Level::Kill
        }
        Level::Kill => std::future::pending().await,
    }
}
