//! Running a command inside an OCI image, with whatever runtime this machine has.
//!
//! The environment of such an action is a record of one line that names the image (`avow_model::image`). The
//! command is handed to `podman` or `docker`: the working folder and the temporary one are mounted at
//! their own paths and nothing else of this machine is, inputs are copies, there is no network unless the
//! action may use it, and variables are passed by name, so that no value stands on a command line. `PATH` and `HOME` are
//! the image's own. What confines the stage is the runtime, so no Landlock rules are put on top of it.
//!
//! The runtime brings the image in where it has not got it; a reference by digest it verifies itself.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::{Command as Process, Stdio};

use avow_model::action::{Action, Command};
use avow_model::attempt::AttemptId;
use avow_model::image;
use avow_store::blob::BlobStore;

use crate::fault::ExecError;
use crate::program::{self, Program};

/// The runtimes, in the order in which they are looked for. They take the same words.
const RUNTIMES: [&str; 2] = ["podman", "docker"];

/// Variables of this machine that mean nothing inside.
const OWN: [&str; 2] = ["PATH", "HOME"];

/// An image, and the program that runs it here.
#[derive(Debug)]
pub(crate) struct Container {
    reference: String,
    runtime: PathBuf,
    kind: &'static str,
    name: String,
}

/// The image that an action runs in, as its environment says; `None` where it runs on this machine itself.
pub(crate) fn image_of(action: &Action, blobs: &dyn BlobStore) -> Result<Option<String>, ExecError> {
    let Some(lock) = action.environment else { return Ok(None) };
    match blobs.size(lock)? {
        Some(size) if size <= image::LONGEST as u64 => Ok(image::reference(&blobs.read(lock)?)),
        _ => Ok(None),
    }
}

impl Container {
    /// Finds a runtime on `path`; the reason in words where there is none.
    pub(crate) fn find(reference: String, path: &OsStr, attempt: &AttemptId) -> Result<Container, String> {
        let found = RUNTIMES.into_iter().find_map(|kind| Some((kind, program::search(path, kind).ok()?)));
        let Some((kind, runtime)) = found else {
            return Err(format!(
                "it runs in the image `{reference}`, and neither `podman` nor `docker` was found on PATH; install one, \
                 or run it on a worker that has one"
            ));
        };
        Ok(Container { reference, runtime, kind, name: format!("avow-{attempt}") })
    }

    /// How the runtime is recorded with the attempt.
    pub(crate) fn words(&self, offline: bool) -> String {
        format!("image+{}{}", self.kind, if offline { "+offline" } else { "" })
    }

    /// The command as the runtime is to be started.
    pub(crate) fn program(
        &self,
        action: &Action,
        folders: [&Path; 2],
        variables: &BTreeSet<OsString>,
        network: bool,
    ) -> Result<Program, String> {
        let inside = inside(&action.command)?;
        let passed = variables.iter().filter(|name| !OWN.iter().any(|own| name.as_os_str() == *own));
        let mut arguments: Vec<OsString> = [self.kind, "run", "--rm", "--name"].map(OsString::from).into();
        arguments.push(self.name.clone().into());
        if !network {
            arguments.extend(["--network", "none"].map(OsString::from));
        }
        for folder in folders {
            let mut mount = folder.as_os_str().to_owned();
            mount.push(":");
            mount.push(folder);
            arguments.extend(["--volume".into(), mount]);
        }
        arguments.extend(["--workdir".into(), folders[0].into()]);
        arguments.extend(self.user());
        for name in passed {
            arguments.extend(["--env".into(), name.clone()]);
        }
        arguments.extend(["--entrypoint=".into(), self.reference.clone().into()]);
        arguments.extend(inside);
        Ok(Program { file: self.runtime.clone(), arguments })
    }

    /// What is written belongs to the caller.
    fn user(&self) -> Vec<OsString> {
        let (user, group) = (rustix::process::getuid().as_raw(), rustix::process::getgid().as_raw());
        match self.kind {
            "podman" if user != 0 => vec!["--userns".into(), "keep-id".into()],
            _ => vec!["--user".into(), format!("{user}:{group}").into()],
        }
    }

    /// Ends what the runtime may have left running elsewhere than below us. Best effort: it may be gone already.
    pub(crate) fn remove(&self, path: &OsStr) {
        let mut process = Process::new(&self.runtime);
        process.args(["rm", "--force", &self.name]).env("PATH", path);
        process.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        if let Err(error) = process.status() {
            tracing::warn!(container = self.name, %error, "a container could not be removed");
        }
    }
}

/// The words that are started inside.
fn inside(command: &Command) -> Result<Vec<OsString>, String> {
    Ok(match command {
        // Whether the image's shell knows `pipefail` is asked there.
        Command::Shell(text) => {
            let text = format!("(set -o pipefail) 2>/dev/null && set -o pipefail\n{text}");
            ["sh", "-eu", "-c", &text].map(OsString::from).into()
        }
        Command::Arguments(words) if words.is_empty() => return Err("the command is an empty list".to_owned()),
        Command::Arguments(words) => words.iter().map(OsString::from).collect(),
        Command::Op { name, .. } => return Err(format!("`{name}` is built in, and runs in no image")),
    })
}
