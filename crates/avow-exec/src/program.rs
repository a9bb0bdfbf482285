//! From a command to the file that is executed and its arguments.
//!
//! - Text goes to `sh -eu -c`, with `-o pipefail` where `sh` has it. Debian's `dash` lacked it for long, and a
//!   pipeline whose first program fails would then pass for a success; so a text that holds a `|` is given to
//!   `bash --posix -eu -o pipefail -c` there, if there is a bash. Text without a pipe never needs it.
//! - A list is executed as it is. A name with a `/` is a file in the working folder; any other is looked for on
//!   `PATH`, where only absolute folders count.
//! - A built-in operation is this very program: `avow op NAME --call JSON`.
//!
//! What cannot be found or executed is the user's failure, with the reason in words.

use std::ffi::{CString, OsStr, OsString};
use std::fs;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use avow_model::action::{Action, Command};
use avow_model::op::MEASUREMENTS_FILE;
use rustix::fs::{Access, access};
use serde_json::json;

/// A file to execute with its arguments.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Program {
    /// The file.
    pub(crate) file: PathBuf,
    /// `argv`, the name included.
    pub(crate) arguments: Vec<OsString>,
}

/// The shells of this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shells {
    /// `sh`.
    pub sh: Option<PathBuf>,
    /// Whether it has `set -o pipefail`.
    pub pipefail: bool,
    /// `bash`, looked for only where `sh` lacks it.
    pub bash: Option<PathBuf>,
}

impl Shells {
    /// Finds them on `path` and tries `pipefail` once.
    pub fn probe(path: &OsStr) -> Self {
        let sh = search(path, "sh").ok();
        let pipefail = sh.as_deref().is_some_and(has_pipefail);
        let bash = if pipefail { None } else { search(path, "bash").ok() };
        Self { sh, pipefail, bash }
    }

    fn program(&self, text: &str) -> Result<Program, String> {
        let piped = text.replace("||", "").contains('|');
        let (file, options): (_, &[&str]) = match (&self.sh, &self.bash) {
            (Some(sh), _) if self.pipefail => (sh, &["sh", "-eu", "-o", "pipefail", "-c"]),
            (_, Some(bash)) if piped => (bash, &["bash", "--posix", "-eu", "-o", "pipefail", "-c"]),
            (Some(sh), _) => (sh, &["sh", "-eu", "-c"]),
            (None, _) => return Err("`sh` was not found on PATH".to_owned()),
        };
        let arguments = options.iter().map(OsString::from).chain([text.into()]).collect();
        Ok(Program { file: file.clone(), arguments })
    }
}

fn has_pipefail(sh: &Path) -> bool {
    let mut probe = std::process::Command::new(sh);
    probe.args(["-c", "set -o pipefail"]).stdin(std::process::Stdio::null());
    probe.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null());
    probe.status().is_ok_and(|status| status.success())
}

/// The program of an action; the reason in words where there is none.
pub(crate) fn resolve(
    action: &Action,
    folder: &Path,
    path: &OsStr,
    shells: &Shells,
    avow: &Path,
) -> Result<Program, String> {
    match &action.command {
        Command::Shell(text) => shells.program(text),
        Command::Arguments(words) => {
            let name = words.first().ok_or("the command is an empty list")?;
            let file = if name.contains('/') { local(folder, name)? } else { search(path, name)? };
            Ok(Program { file, arguments: words.iter().map(OsString::from).collect() })
        }
        Command::Op { name, .. } => {
            let call = call(action).expect("guarded by the match").into();
            let arguments = ["avow".into(), "op".into(), name.into(), "--call".into(), call];
            Ok(Program { file: avow.to_owned(), arguments: arguments.into() })
        }
    }
}

/// What a built-in operation is told: values and file names, nothing else. `None` for other commands.
pub(crate) fn call(action: &Action) -> Option<String> {
    let Command::Op { with, inputs, .. } = &action.command else { return None };
    let others = action.outputs.iter().filter(|(_, slot)| slot.path != MEASUREMENTS_FILE);
    let outputs: std::collections::BTreeMap<_, _> = others.map(|(name, slot)| (name, &slot.path)).collect();
    let value =
        json!({"with": with, "inputs": inputs, "outputs": outputs, "measurements": MEASUREMENTS_FILE});
    Some(value.to_string())
}

fn local(folder: &Path, name: &str) -> Result<PathBuf, String> {
    let file = folder.join(name);
    match fs::metadata(&file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Err(format!("`{name}` is not in the working folder; list it under `code:`"))
        }
        Err(error) => Err(format!("`{name}` cannot be looked at: {error}")),
        Ok(about) if !about.is_file() => Err(format!("`{name}` is not a file")),
        Ok(about) if about.permissions().mode() & 0o111 == 0 => {
            Err(format!("`{name}` is not executable; `chmod +x {name}` makes it so"))
        }
        Ok(_) => Ok(file),
    }
}

/// The first executable file `name` in the absolute folders of `path`.
pub(crate) fn search(path: &OsStr, name: &str) -> Result<PathBuf, String> {
    let mut refused = None;
    for folder in std::env::split_paths(path).filter(|folder| folder.is_absolute()) {
        let file = folder.join(name);
        if !file.is_file() {
            continue;
        }
        if access(&file, Access::EXEC_OK).is_ok() {
            return Ok(file);
        }
        refused.get_or_insert(file);
    }
    match refused {
        Some(file) => Err(format!("`{}` is not executable", file.display())),
        None => Err(format!("`{name}` was not found on PATH")),
    }
}

/// What the kernel's refusal to execute a program means for its author.
pub(crate) fn refusal(program: &Program, error: &io::Error) -> Option<String> {
    let name = program.file.display();
    match error.raw_os_error() {
        Some(libc::ENOENT) => Some(format!(
            "`{name}` names an interpreter, in its first line or its header, that does not exist"
        )),
        Some(libc::ENOEXEC) => {
            Some(format!("`{name}` is neither a program of this machine nor a script with a `#!` line"))
        }
        Some(libc::EACCES | libc::EPERM) => Some(format!("`{name}` may not be executed: {error}")),
        Some(libc::E2BIG) => Some(format!(
            "the command line or the environment of `{name}` is too long for this system; hand large values over in a file"
        )),
        Some(libc::ELOOP | libc::ENAMETOOLONG | libc::ENOTDIR | libc::EISDIR) => {
            Some(format!("`{name}` cannot be executed: {error}"))
        }
        _ => None,
    }
}

/// The arguments for the C library; the reason in words where one holds a NUL byte.
pub(crate) fn strings(arguments: &[OsString]) -> Result<Vec<CString>, String> {
    let convert = |a: &OsString| CString::new(a.clone().into_vec());
    let all: Result<Vec<_>, _> = arguments.iter().map(convert).collect();
    all.map_err(|_| "an argument holds a NUL byte".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shells(pipefail: bool, bash: bool) -> Shells {
        Shells { sh: Some("/bin/sh".into()), pipefail, bash: bash.then(|| "/bin/bash".into()) }
    }

    #[test]
    fn bash_is_used_only_for_a_pipe_that_sh_cannot_check() {
        let file = |shells: Shells, text| shells.program(text).unwrap().file;
        assert_eq!(file(shells(false, true), "a | b"), Path::new("/bin/bash"));
        assert_eq!(file(shells(false, true), "a || b"), Path::new("/bin/sh"));
        assert_eq!(file(shells(false, false), "a | b"), Path::new("/bin/sh"));
        assert_eq!(file(shells(true, true), "a | b"), Path::new("/bin/sh"));
    }

    #[test]
    fn every_shell_stops_at_the_first_error_and_at_an_undefined_variable() {
        for (shells, text) in
            [(shells(true, false), "a"), (shells(false, true), "a|b"), (shells(false, false), "a")]
        {
            assert!(shells.program(text).unwrap().arguments.contains(&"-eu".into()));
        }
    }
}
