//! What `avow.toml` says: how this project is run, nothing about what is run.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use avow_exec::{Bounds, Config, Confinement};
use avow_store::Project;
use serde::Deserialize;

use crate::exit::Exit;
use crate::output::Failure;
use crate::policy::Policy;

/// The settings of a project.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// Where a readable copy of numbers and verdicts goes.
    pub results: Option<PathBuf>,
    /// How stages are confined.
    pub confine: Confine,
    /// What the store may take, and for how long it keeps what nothing holds.
    pub store: Policy,
    /// Who vouches for registrations, beside what the command line asks for.
    pub witness: WitnessSettings,
    /// Whose vouching is believed.
    pub trust: TrustSettings,
    /// Where secrets come from.
    pub secrets: Secrets,
    /// Where a run carries its stages out, as with `--on`.
    pub on: Vec<String>,
    /// Workers by name.
    pub workers: BTreeMap<String, Worker>,
}

/// `[witness]`.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case", default, deny_unknown_fields)]
pub struct WitnessSettings {
    /// Whether heads are signed.
    pub sign: bool,
    /// The SSH key; from the home where it begins with `~/`.
    pub key: Option<PathBuf>,
    /// Time stamping authorities.
    pub tsa: Vec<String>,
    /// Whether heads are tagged in git.
    pub git_tag: bool,
}

/// `[trust]`; paths are from the project's root, or from the home (`~/…`).
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TrustSettings {
    /// A file in the form of `ssh-keygen`'s `allowed_signers`.
    pub signers: Option<PathBuf>,
    /// Revoked keys.
    pub revoked: Option<PathBuf>,
    /// Root certificates of time stamping authorities.
    pub authorities: Vec<PathBuf>,
}

/// `[secrets]`.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Secrets {
    /// A file outside the project, `NAME = "value"` a line; `~/` is the home folder.
    pub file: Option<PathBuf>,
}

/// `[workers.NAME]`.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Worker {
    /// Its address.
    pub url: String,
    /// The file with its token; from the project's root, or from the home (`~/…`).
    pub token_file: Option<PathBuf>,
}

/// `[confine]`.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Confine {
    /// The level; by default the best that the machine gives.
    pub level: Option<String>,
    /// What every stage may read although it does not declare it: absolute, from the home (`~/…`), or from the
    /// project's root.
    pub allow: Vec<PathBuf>,
    /// Whether every stage may use the network.
    pub network: bool,
}

impl Settings {
    /// Reads them; the usual ones where there is no `avow.toml`.
    pub fn of(project: &Project) -> Result<Settings, Failure> {
        let path = project.root().join("avow.toml");
        let text = match fs::read_to_string(&path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Settings::default()),
            other => other.map_err(|error| {
                Failure::new(Exit::Machine, format!("cannot read `{}`", path.display())).because(error)
            })?,
        };
        toml::from_str(&text).map_err(|error| {
            Failure::new(Exit::Usage, format!("`{}` does not parse", path.display()))
                .because(error)
                .hint(
                    "it may hold `results = \"DIR\"`, `on = [\"PLACE\"]` (docs/worker.md), and the tables `[confine]` \
                     (docs/confinement.md), `[witness]` and `[trust]` (docs/registration.md), `[store]` (docs/store.md), `[secrets]` (docs/stages.md) and `[workers.NAME]`",
                )
        })
    }
}

impl Confine {
    /// The level that is asked for: the option wins over the file.
    pub fn level(&self, option: Option<Confinement>) -> Result<Option<Confinement>, Failure> {
        let parse = |word: &String| {
            word.parse().map_err(|error| {
                Failure::new(Exit::Usage, "`avow.toml` asks for a confinement that does not exist")
                    .because(error)
                    .hint("leave `level` out for the best that the machine gives")
            })
        };
        match option {
            Some(level) => Ok(Some(level)),
            None => self.level.as_ref().map(parse).transpose(),
        }
    }

    /// The boundaries for stages of a project.
    pub fn bounds(&self, project: &Project) -> Bounds {
        let home = std::env::var_os("HOME").map(PathBuf::from);
        let place = |path: &PathBuf| match (path.strip_prefix("~"), &home) {
            (Ok(inside), Some(home)) => home.join(inside),
            _ => project.root().join(path),
        };
        Bounds {
            project: Some(project.root().to_owned()),
            allow: self.allow.iter().map(place).collect(),
            network: self.network,
        }
    }
}

/// How stages of a project are executed; `option` is the level asked for on the command line.
pub fn executor(project: &Project, option: Option<Confinement>) -> Result<Config, Failure> {
    let this = std::env::current_exe().map_err(|error| {
        Failure::new(Exit::Machine, "avow cannot find its own program file").because(error)
    })?;
    let confine = Settings::of(project)?.confine;
    let mut config = Config::new(project.work(), this);
    config.confinement = confine.level(option)?;
    config.bounds = confine.bounds(project);
    Ok(config)
}

/// A path as it would stand in `allow`: from the project's root, from the home, or as it is.
pub fn spelled(path: &Path, project: &Project) -> String {
    if let Ok(inside) = path.strip_prefix(project.root()) {
        return inside.display().to_string();
    }
    let home = std::env::var_os("HOME").map(PathBuf::from).filter(|home| home.parent().is_some());
    match home.and_then(|home| path.strip_prefix(home).ok().map(Path::to_owned)) {
        Some(inside) => format!("~/{}", inside.display()),
        None => path.display().to_string(),
    }
}
