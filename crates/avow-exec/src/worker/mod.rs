//! Attempts on another machine: the worker that serves them, and the executor that sends them there.
//!
//! [`Server`] is the worker: it takes actions over HTTP, keeps a cache of blobs, and carries each action out with
//! a [`crate::LocalExecutor`]. [`Remote`] is the other end: one worker as an executor of a run. `docs/worker.md`
//! describes the wire, [`protocol`] its messages.
//!
//! A worker is told an action, its terms and an opaque name. It never hears of experiments, stages or claims.

mod body;
mod cache;
mod closure;
mod demand;
pub mod frame;
pub mod pack;
pub mod protocol;
mod remote;
mod server;
mod token;

pub use remote::{Health, Misfit, Place, Remote, RemoteError};
pub use server::{Identify, Server, Setup, WorkerError};
pub use token::{Token, TokenError};
