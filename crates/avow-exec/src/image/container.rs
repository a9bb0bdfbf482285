//! Running a command inside an image, with the runtime that this machine has: `podman`, else `docker`.
//!
//! The working folder and the temporary one are mounted at their own paths, inputs read-only at theirs, and nothing
//! else of this machine is there. There is no network unless the action may use it. Variables are passed by name, so
//! that no value stands on a command line; `PATH` and `HOME` are the image's own. What confines the stage is the
//! runtime, so no Landlock rules are put on top of it.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::{Command as Process, Stdio};
use std::sync::{Mutex, PoisonError};

use avow_model::action::Command;
use avow_model::attempt::AttemptId;

use crate::program::{self, Program};

/// The runtimes, in the order in which they are looked for. They take the same words, but for what is said here.
const RUNTIMES: [&str; 2] = ["podman", "docker"];

/// Why a path cannot be handed to a runtime.
const NO_TEXT: &str = "its path is no text in UTF-8";

/// Variables of this machine that mean nothing inside.
const OWN: [&str; 2] = ["PATH", "HOME"];

/// Variables of the caller by which a runtime finds its own files and its service.
const RUNTIMES_OWN: [&str; 8] = [
    "XDG_RUNTIME_DIR",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "DBUS_SESSION_BUS_ADDRESS",
    "CONTAINERS_CONF",
    "CONTAINERS_STORAGE_CONF",
    "DOCKER_HOST",
    "DOCKER_CONFIG",
];

/// What passes from an attempt into its container.
pub(crate) struct Inside<'a> {
    /// The working folder and the temporary one, which it may write to.
    pub(crate) folders: [&'a Path; 2],
    /// What it may read besides.
    pub(crate) reads: Vec<&'a Path>,
    /// The names of the variables that it is given.
    pub(crate) variables: Vec<OsString>,
    /// Whether it may use the network.
    pub(crate) network: bool,
}

/// The images that are known to be here, by identity: the name under which the runtime knows each.
#[derive(Debug, Default)]
pub(crate) struct Images(Mutex<BTreeMap<String, String>>);

/// An image, and the program that runs it here.
#[derive(Debug)]
pub(crate) struct Container {
    runtime: Runtime,
    image: String,
    name: String,
}

#[derive(Clone, Debug)]
struct Runtime {
    kind: &'static str,
    file: PathBuf,
}

impl Images {
    /// Brings an image in where the runtime has not got it. `source` says where it is had from, a path being one in the
    /// project; the error is in words.
    pub(crate) fn container(
        &self,
        identity: &str,
        source: Option<&str>,
        project: Option<&Path>,
        path: &OsStr,
        attempt: &AttemptId,
    ) -> Result<Container, String> {
        let source = source.ok_or_else(|| format!("nobody says where the image `{identity}` is had from"))?;
        let found = RUNTIMES.into_iter().find_map(|kind| Some((kind, program::search(path, kind).ok()?)));
        let Some((kind, file)) = found else {
            return Err(format!(
                "it runs in the image `{source}`, and neither `podman` nor `docker` was found on PATH; install one, or \
                 run it on a worker that has one"
            ));
        };
        let runtime = Runtime { kind, file };
        // Held while an image comes in, so that it comes once.
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let image = match known.get(identity) {
            Some(image) => image.clone(),
            None => {
                let image = runtime
                    .obtain(identity, source, project)
                    .map_err(|reason| format!("the image `{source}` cannot be had: {reason}"))?;
                known.entry(identity.to_owned()).or_insert(image).clone()
            }
        };
        Ok(Container { runtime, image, name: format!("avow-{attempt}") })
    }
}

impl Runtime {
    /// The name under which the runtime has an image, after it was brought in if need be.
    fn obtain(&self, identity: &str, source: &str, project: Option<&Path>) -> Result<String, String> {
        let named = source == identity || source.ends_with(&format!("@{identity}"));
        if named {
            if self.ask(&["image", "inspect", "--format", "{{.Id}}", source]).is_err() {
                self.ask(&["pull", "--quiet", source])?;
            }
            return Ok(source.to_owned());
        }
        let Some(project) = project else {
            return Err(
                "it lies in a project on another machine; push it to a registry, and name it by digest"
                    .to_owned(),
            );
        };
        if self.kind != "podman" {
            return Err("an image in a file is run by `podman`, which was not found on PATH".to_owned());
        }
        let path = project.join(source);
        let said = match path.is_dir() {
            true => self.pull_layout(identity, &path)?,
            false => self.ask(&["load", "--quiet", "--input", path.to_str().ok_or(NO_TEXT)?])?,
        };
        // `Loaded image: NAME`, or the name alone.
        let image =
            said.lines().last().and_then(|line| line.split(' ').next_back()).unwrap_or_default().to_owned();
        let digest = self.ask(&["image", "inspect", "--format", "{{.Digest}}", &image])?;
        match digest.trim() == identity {
            true => Ok(image),
            false => Err(format!("it is {} now, and was {identity}", digest.trim())),
        }
    }

    /// Takes a layout in. Its place becomes a name for `podman`, which allows few characters in one, so it is given a place
    /// that has no others.
    fn pull_layout(&self, identity: &str, folder: &Path) -> Result<String, String> {
        let digits: String = identity.chars().rev().take(16).collect();
        let link = PathBuf::from("/tmp").join(format!("avow-{}-{digits}", std::process::id()));
        let failed = |error: std::io::Error| format!("`{}` cannot be made: {error}", link.display());
        match std::fs::remove_file(&link) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(failed(error)),
            _ => std::os::unix::fs::symlink(folder, &link).map_err(failed)?,
        }
        let pulled = self.ask(&["pull", "--quiet", &format!("oci:{}", link.display())]);
        if let Err(error) = std::fs::remove_file(&link) {
            tracing::warn!(link = %link.display(), %error, "a link to an image stays");
        }
        pulled
    }

    /// What the runtime prints; the last line of what it complains of where it fails.
    fn ask(&self, words: &[&str]) -> Result<String, String> {
        let mut process = Process::new(&self.file);
        process.args(words).stdin(Stdio::null());
        let output =
            process.output().map_err(|error| format!("`{}` cannot be started: {error}", self.kind))?;
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        let said = String::from_utf8_lossy(&output.stderr);
        let said =
            said.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("it failed without a word");
        Err(format!("{}: {}", self.kind, said.trim()))
    }
}

impl Container {
    /// How the runtime is recorded with the attempt.
    pub(crate) fn words(&self, network: bool) -> String {
        format!("image+{}{}", self.runtime.kind, if network { "" } else { "+offline" })
    }

    /// Variables of the caller that the runtime itself needs, beside those of the stage.
    pub(crate) fn variables() -> impl Iterator<Item = (&'static str, OsString)> {
        RUNTIMES_OWN.into_iter().filter_map(|name| Some((name, std::env::var_os(name)?)))
    }

    /// The command as the runtime is to be started.
    pub(crate) fn program(&self, command: &Command, inside: Inside<'_>) -> Result<Program, String> {
        let mut arguments: Vec<OsString> =
            [self.runtime.kind, "run", "--rm", "--pull=never", "--name"].map(OsString::from).into();
        arguments.push(self.name.clone().into());
        // Its output is taken by us.
        arguments.extend(["--log-driver=none", "--security-opt=label=disable"].map(OsString::from));
        if !inside.network {
            arguments.push("--network=none".into());
        }
        for folder in inside.folders {
            arguments.push(mount(folder, "")?);
        }
        for path in inside.reads {
            arguments.push(mount(path, ",ro")?);
        }
        let mut folder = OsString::from("--workdir=");
        folder.push(inside.folders[0]);
        arguments.push(folder);
        arguments.extend(self.user());
        for name in inside.variables {
            arguments.extend(["--env".into(), name]);
        }
        arguments.extend(["--entrypoint=".into(), self.image.clone().into()]);
        arguments.extend(words(command)?);
        Ok(Program { file: self.runtime.file.clone(), arguments })
    }

    /// What is written belongs to the caller.
    fn user(&self) -> Vec<OsString> {
        let (user, group) = (rustix::process::getuid().as_raw(), rustix::process::getgid().as_raw());
        match self.runtime.kind {
            "podman" if user != 0 => vec!["--userns=keep-id".into()],
            _ => vec![format!("--user={user}:{group}").into()],
        }
    }

    /// Ends what the runtime may have left elsewhere than below us. It may be gone already.
    pub(crate) fn remove(&self, path: &OsStr) {
        let mut process = Process::new(&self.runtime.file);
        process.args(["rm", "--force", &self.name]).env("PATH", path);
        process.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        if let Err(error) = process.status() {
            tracing::warn!(container = self.name, %error, "a container could not be removed");
        }
    }
}

/// The variables that pass into a container: those of the stage, without the places of this machine's programs and home
/// unless the stage declares its own.
pub(crate) fn passed(
    all: impl Iterator<Item = OsString>,
    declared: &BTreeMap<String, String>,
) -> Vec<OsString> {
    all.filter(|name| {
        let own = OWN.iter().any(|own| name.as_os_str() == *own);
        !own || name.to_str().is_some_and(|name| declared.contains_key(name))
    })
    .collect()
}

fn mount(path: &Path, options: &str) -> Result<OsString, String> {
    let text = path.to_str().filter(|text| !text.contains([',', '"', '\n']));
    let text = text.ok_or_else(|| {
        format!("`{}` cannot be mounted: its name holds a comma or a quote", path.display())
    })?;
    Ok(format!("--mount=type=bind,source={text},destination={text}{options}").into())
}

/// The words that are started inside.
fn words(command: &Command) -> Result<Vec<OsString>, String> {
    match command {
        // Whether the image's shell knows `pipefail` is asked there.
        Command::Shell(text) => {
            let text = format!("(set -o pipefail) 2>/dev/null && set -o pipefail\n{text}");
            Ok(["sh", "-eu", "-c", &text].map(OsString::from).into())
        }
        Command::Arguments(words) if words.is_empty() => Err("the command is an empty list".to_owned()),
        Command::Arguments(words) => Ok(words.iter().map(OsString::from).collect()),
        Command::Op { name, .. } => Err(format!("`{name}` is built in, and runs in no image")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn container(kind: &'static str) -> Container {
        let runtime = Runtime { kind, file: format!("/usr/bin/{kind}").into() };
        Container { runtime, image: "python@sha256:1".to_owned(), name: "avow-7".to_owned() }
    }

    fn started(kind: &'static str, network: bool) -> Vec<String> {
        let inside = Inside {
            folders: [Path::new("/w/run"), Path::new("/w/tmp")],
            reads: vec![Path::new("/w/blobs")],
            variables: vec!["SEED".into()],
            network,
        };
        let program = container(kind)
            .program(&Command::Arguments(vec!["python".into(), "a.py".into()]), inside)
            .unwrap();
        program.arguments.into_iter().map(|word| word.into_string().unwrap()).collect()
    }

    #[test]
    fn nothing_of_the_machine_is_inside_but_what_was_given() {
        for kind in RUNTIMES {
            let words = started(kind, false);
            let mounts: Vec<&String> = words.iter().filter(|word| word.starts_with("--mount")).collect();
            assert_eq!(mounts.len(), 3, "{words:?}");
            assert!(mounts[2].ends_with("destination=/w/blobs,ro"), "{words:?}");
            assert!(
                words.contains(&"--network=none".to_owned())
                    && words.contains(&"--workdir=/w/run".to_owned())
            );
            assert!(
                words.ends_with(&["--entrypoint=", "python@sha256:1", "python", "a.py"].map(str::to_owned))
            );
            assert!(!started(kind, true).contains(&"--network=none".to_owned()));
        }
    }

    #[test]
    fn a_name_that_would_mean_more_than_itself_is_refused() {
        assert!(mount(Path::new("/a,destination=/"), "").is_err());
        assert!(words(&Command::Arguments(Vec::new())).is_err());
    }

    #[test]
    fn variables_pass_but_the_places_of_this_machine() {
        let declared = BTreeMap::from([("HOME".to_owned(), "/h".to_owned())]);
        let all = || ["PATH", "HOME", "LANG"].map(OsString::from).into_iter();
        assert_eq!(passed(all(), &BTreeMap::new()), ["LANG"]);
        assert_eq!(passed(all(), &declared), ["HOME", "LANG"]);
    }
}
