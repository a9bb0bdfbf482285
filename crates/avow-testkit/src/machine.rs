//! Another machine, on which workers run.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::{Running, Sandbox};

/// How long a worker may take to be ready.
const PATIENCE: Duration = Duration::from_secs(60);

/// A machine on which workers run: a folder of its own, and nothing of the project's.
#[derive(Debug)]
pub struct Machine {
    /// Its files, and the environment of its workers.
    pub sandbox: Sandbox,
    token: PathBuf,
}

impl Machine {
    /// With this program and the usual environment.
    pub fn new(program: impl Into<PathBuf>) -> Machine {
        Machine::of(Sandbox::new(program))
    }

    /// With the environment of a sandbox.
    pub fn of(sandbox: Sandbox) -> Machine {
        let token = sandbox.path("token");
        Machine { sandbox, token }
    }

    /// Starts a worker with a folder of this name, and gives its address.
    pub fn worker(&self, name: &str, listen: &str) -> (Running<'_>, String) {
        self.worker_with(name, listen, &["-j", "2"])
    }

    /// The same with other arguments.
    pub fn worker_with(&self, name: &str, listen: &str, more: &[&str]) -> (Running<'_>, String) {
        let args = ["worker", "--listen", listen, "--token-file", "token", "--folder", name, "--lease", "3s"];
        let mut running = self.sandbox.start(&[&args[..], more].concat());
        let until = Instant::now() + PATIENCE;
        loop {
            let (out, err) = running.printed();
            if err.contains("worker ready") {
                return (running, out.trim().to_owned());
            }
            assert!(running.is_running() && Instant::now() < until, "{out}{err}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// The file with the token of its workers.
    pub fn token(&self) -> &str {
        self.token.to_str().expect("temporary folders have plain names")
    }

    /// The folder in which its project lies.
    pub fn folder(&self) -> &Path {
        self.sandbox.root()
    }
}
