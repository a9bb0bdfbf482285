//! Public programs that judge what avow exports, or set what it writes, installed from PyPI into a virtual environment of their own.
//!
//! `.ci/run` installs them and says where in `AVOW_VALIDATORS`: then a test that does not find them fails. Elsewhere they are
//! looked for in `.validators` (`just validators` puts them there), and a test without them says that it was
//! skipped.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::Sandbox;

/// The programs, in their environment.
#[derive(Clone, Debug)]
pub struct Validators {
    folder: PathBuf,
}

impl Validators {
    /// The programs, where they are installed; panics where they were promised and are not there.
    pub fn find() -> Option<Validators> {
        let promised = std::env::var_os("AVOW_VALIDATORS").map(PathBuf::from);
        let usual = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.validators");
        let folder = promised.clone().unwrap_or(usual);
        let there = folder.join("bin/python3").exists();
        assert!(
            there || promised.is_none(),
            "no validators in `{}`: `.ci/run` installs them",
            folder.display()
        );
        if !there {
            // A test that does nothing says so; whether anybody hears it changes nothing.
            let _ = writeln!(std::io::stderr(), "skipped: no validators; `just validators` installs them");
        }
        there.then_some(Validators { folder })
    }

    /// One of the programs, to be run in the folder of a project.
    pub fn command(&self, sandbox: &Sandbox, program: &str) -> Command {
        sandbox.command(self.folder.join("bin").join(program))
    }

    /// Runs a script of Python in the folder of a project; panics with what it printed where it fails.
    #[track_caller]
    pub fn python(&self, sandbox: &Sandbox, script: &str, args: &[&str]) -> String {
        let run = self.command(sandbox, "python3").arg("-c").arg(script).args(args).output();
        let Output { status, stdout, stderr } = run.expect("python starts");
        assert!(status.success(), "{}{}", String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
        String::from_utf8_lossy(&stdout).into_owned()
    }
}
