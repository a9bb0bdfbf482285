//! How an executor of this machine works.

use std::path::PathBuf;
use std::time::Duration;

use crate::confine::{Bounds, Confinement};
use crate::environment::Base;
use crate::secret::Secrets;

/// How a [`LocalExecutor`](super::LocalExecutor) works.
#[derive(Clone, Debug)]
pub struct Config {
    /// The folder of attempt folders, on the file system of the blobs. Made if absent.
    pub work: PathBuf,
    /// The program `avow`, which executes built-in operations.
    pub avow: PathBuf,
    /// What the environment of stages takes from the caller.
    pub base: Base,
    /// How stages are confined; `None` is the best that this machine gives.
    pub confinement: Option<Confinement>,
    /// Where the boundaries of confinement lie.
    pub bounds: Bounds,
    /// The folder of the blobs that inputs are linked to.
    pub blobs: PathBuf,
    /// From SIGTERM to SIGKILL.
    pub grace: Duration,
    /// Whether the folders of failed attempts stay, as `kept-ATTEMPT`; never those of attempts with secrets.
    pub keep_failed: bool,
    /// Where checkpoint folders are kept between attempts, on the file system of `work`; `None`: nowhere, so
    /// that every attempt begins from nothing.
    pub checkpoints: Option<PathBuf>,
    /// The values of secrets that terms may name.
    pub secrets: Secrets,
}

impl Config {
    /// The usual way: the caller's `PATH` and `HOME`, the best confinement, two seconds of grace, and blobs in
    /// the folder `blobs` beside `work`, as a store has them.
    pub fn new(work: impl Into<PathBuf>, avow: impl Into<PathBuf>) -> Self {
        let work = work.into();
        Self {
            blobs: work.with_file_name("blobs"),
            work,
            avow: avow.into(),
            base: Base::inherited(),
            confinement: None,
            bounds: Bounds::default(),
            grace: Duration::from_secs(2),
            keep_failed: false,
            checkpoints: None,
            secrets: Secrets::default(),
        }
    }
}
