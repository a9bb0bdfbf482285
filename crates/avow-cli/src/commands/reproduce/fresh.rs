//! A project with an empty store, and the run in it.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use avow_exchange::bundle::lay_out;
use avow_model::plan::Plan;

use super::Wanted;
use crate::args;
use crate::context::{Reading, Spec};
use crate::exit::Exit;
use crate::failure;
use crate::output::{Failure, Output};

/// The project in which everything is made again.
pub(super) struct Fresh {
    folder: tempfile::TempDir,
    /// The spec in it.
    pub(super) spec: PathBuf,
}

impl Fresh {
    /// Lays out spec, code and inputs as the store has them: not as the working tree has them now.
    pub(super) fn make(
        args: &args::Reproduce,
        spec: &Spec,
        plan: &Plan,
        reading: &Reading,
    ) -> Result<Fresh, Failure> {
        let machine = |error| Failure::new(Exit::Machine, "no folder could be made to run in").because(error);
        let mut builder = tempfile::Builder::new();
        builder.prefix("avow-reproduce-");
        let folder = match args.keep.as_deref().and_then(Path::parent) {
            Some(beside) if !beside.as_os_str().is_empty() => builder.tempdir_in(beside),
            Some(_) => builder.tempdir_in("."),
            None => builder.tempdir(),
        };
        let folder = folder.map_err(machine)?;
        let settings = spec.project.root().join("avow.toml");
        if settings.is_file() {
            std::fs::copy(&settings, folder.path().join("avow.toml")).map_err(machine)?;
        }
        let without = lay_out(&reading.blobs, plan, folder.path()).map_err(failure::bundle)?;
        if let Some(path) = without.first() {
            return Err(Failure::new(
                Exit::Damaged,
                format!("`{path}` is not in the store, so nothing can be made from it"),
            )
            .hint("a bundle that holds it, or the project itself, can be reproduced"));
        }
        for (path, bytes) in spec.tables()? {
            let target = folder.path().join(path);
            if !target.exists() {
                let parent = target.parent().unwrap_or(folder.path());
                std::fs::create_dir_all(parent)
                    .and_then(|()| std::fs::write(&target, &bytes))
                    .map_err(machine)?;
            }
        }
        let target = folder.path().join(&spec.path);
        let parent = target.parent().unwrap_or(folder.path());
        std::fs::create_dir_all(parent)
            .and_then(|()| std::fs::write(&target, &spec.text))
            .map_err(machine)?;
        Ok(Fresh { spec: target, folder })
    }

    /// Runs it with this same program; what stages print goes into the store there, progress to the terminal.
    pub(super) fn run(
        &self,
        wanted: &Wanted,
        args: &args::Reproduce,
        output: &Output,
    ) -> Result<(), Failure> {
        let program = std::env::current_exe().map_err(|error| {
            Failure::new(Exit::Machine, "this program cannot be found again").because(error)
        })?;
        let mut command = Command::new(program);
        command.arg("run").arg(&self.spec).arg("--keep-going").current_dir(self.folder.path());
        command.args(wanted.only.iter().flat_map(|only| ["--only", only]));
        command.args(args.jobs.iter().flat_map(|jobs| ["--jobs".to_owned(), jobs.to_string()]));
        command.args(args.on.iter().flat_map(|place| ["--on", place]));
        if output.quiet {
            command.arg("--quiet");
        }
        let status = command.stdin(Stdio::null()).stdout(Stdio::null()).status().map_err(|error| {
            Failure::new(Exit::Machine, "this program could not be started again").because(error)
        })?;
        match status.code() {
            // A stage that fails is a result of the comparison.
            Some(0 | 1) => Ok(()),
            Some(130) => Err(Failure::new(Exit::Interrupted, "stopped on request")),
            Some(8) => Err(Failure::new(Exit::Machine, "the run was not carried out; it says why above")),
            _ => Err(Failure::new(
                Exit::Damaged,
                "the record cannot be carried out again; the run says why above",
            )),
        }
    }

    /// Keeps what was made where that was asked for.
    pub(super) fn keep(self, args: &args::Reproduce) -> Result<Option<PathBuf>, Failure> {
        let Some(target) = args.keep.clone() else { return Ok(None) };
        std::fs::rename(self.folder.keep(), &target).map_err(|error| {
            Failure::new(Exit::Machine, format!("`{}` could not be named", target.display())).because(error)
        })?;
        Ok(Some(target))
    }
}
