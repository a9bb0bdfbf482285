//! `avow ledger`: what was recorded, the statements about its heads, and proofs that stand without it.

mod log;
mod open;
mod prove;
mod verify;
mod witness;

use std::path::Path;

use avow_audit::heads::Cited;
use avow_model::digest::RegistrationDigest;
use avow_model::ledger::Ledger;
use avow_store::{LedgerFile, Project, ledger};

use crate::args;
use crate::context::{Reading, Spec};
use crate::exit::Exit;
use crate::failure;
use crate::output::{Failure, Output};
use crate::words::finding;

/// Carries one of its verbs out.
pub fn ledger(args: &args::Ledger, output: &Output) -> Result<Exit, Failure> {
    match args {
        args::Ledger::Log(args) => log::log(args, output),
        args::Ledger::Heads(args) => log::heads(args, output),
        args::Ledger::Open(args) => open::open(args, output),
        args::Ledger::Prove(args) => prove::prove(args, output),
        args::Ledger::Witness(args) => witness::witness(args, output),
        args::Ledger::Verify(args) => verify::verify(args, output),
    }
}

/// The ledger of an experiment.
struct Chain {
    project: Project,
    experiment: String,
    file: LedgerFile,
    ledger: Ledger,
}

impl Chain {
    /// The ledger of the experiment or spec that is named; of the only one, where none is.
    fn open(named: Option<&str>) -> Result<Chain, Failure> {
        let chain = Chain::even_if_gone(named)?;
        match chain.is_empty() {
            true => Err(lost(&chain.project, &chain.experiment)?.unwrap_or_else(|| none(&chain.experiment))),
            false => Ok(chain),
        }
    }

    /// The same where nothing is left of the ledger but what cites it.
    fn even_if_gone(named: Option<&str>) -> Result<Chain, Failure> {
        let (project, experiment) = chosen(named)?;
        let file = LedgerFile::of(&project, &experiment).map_err(failure::store)?;
        let ledger = file.read().map_err(failure::store)?;
        let chain = Chain { project, experiment, file, ledger };
        if chain.is_empty() && lost(&chain.project, &chain.experiment)?.is_none() {
            return Err(none(&chain.experiment));
        }
        Ok(chain)
    }

    fn is_empty(&self) -> bool {
        self.ledger.chain().is_none() && self.ledger.findings().is_empty()
    }
}

fn none(experiment: &str) -> Failure {
    Failure::new(Exit::Usage, format!("`{experiment}` has no ledger yet"))
        .hint("freeze its plan with `avow register`")
}

/// The failure that says that lines of an experiment's ledger are gone which its runs cite; `None` where all are there.
pub fn lost(project: &Project, experiment: &str) -> Result<Option<Failure>, Failure> {
    let reading = Reading::open(project, experiment)?;
    let mut cited = Cited::default();
    cited.by_journals(experiment, &reading.journals()?);
    let missing = cited.missing(&reading.ledger);
    Ok(missing.first().map(|first| {
        let what = match reading.ledger.chain() {
            Some(_) => format!("the ledger of `{experiment}` lacks lines"),
            None => format!("the ledger of `{experiment}` is gone"),
        };
        Failure::new(Exit::Damaged, format!("{what}: {}", finding::words(first))).hint(
            "restore `registrations/` from version control or a copy; what is registered anew would be another \
             chain, which knows nothing of what this project has seen",
        )
    }))
}

fn chosen(named: Option<&str>) -> Result<(Project, String), Failure> {
    let is_spec = |name: &&str| name.ends_with(".yaml") || name.ends_with(".yml");
    if let Some(name) = named.filter(|name| !is_spec(name)) {
        let project = Project::discover(Path::new(".")).map_err(failure::store)?;
        let known = ledger::experiments(&project).map_err(failure::store)?;
        let known_to_runs = || lost(&project, name).map(|lost| lost.is_some());
        if known.iter().any(|experiment| experiment == name) || known_to_runs()? {
            return Ok((project, name.to_owned()));
        }
        return Err(Failure::new(Exit::Usage, format!("there is no ledger of `{name}` here")).hint(
            if known.is_empty() {
                "nothing was registered or run in this project yet".to_owned()
            } else {
                format!("the experiments with a ledger are {}", known.join(", "))
            },
        ));
    }
    if named.is_none() {
        let project = Project::discover(Path::new(".")).map_err(failure::store)?;
        if let [one] = ledger::experiments(&project).map_err(failure::store)?.as_slice() {
            return Ok((project, one.clone()));
        }
    }
    let spec = Spec::open(named.map(Path::new))?;
    match spec.name() {
        Some(name) => Ok((spec.project.clone(), name.to_owned())),
        None => Err(Failure::new(Exit::SpecInvalid, format!("`{}` names no experiment", spec.shown))
            .hint("`avow check` says what is wrong with it")),
    }
}

/// The entry whose name begins with these digits.
pub fn entry(ledger: &Ledger, digits: &str) -> Result<RegistrationDigest, Failure> {
    let named = |entry: &&avow_model::ledger::Entry| entry.leaf.to_string().starts_with(digits);
    let found: Vec<RegistrationDigest> =
        ledger.entries().iter().filter(|entry| !digits.is_empty() && named(entry)).map(|e| e.leaf).collect();
    match found.as_slice() {
        [one] => Ok(*one),
        [] => Err(Failure::new(Exit::Usage, format!("no line of the ledger is called `{digits}`"))
            .hint("`avow ledger log` lists them")),
        many => Err(Failure::new(
            Exit::Usage,
            format!("`{digits}` is the beginning of {} names in the ledger", many.len()),
        )
        .hint("give more digits")),
    }
}

/// The head that is meant where none is named.
fn only_head(ledger: &Ledger) -> Result<RegistrationDigest, Failure> {
    match ledger.heads().as_slice() {
        [one] => Ok(*one),
        heads => {
            let names: Vec<String> = heads.iter().map(RegistrationDigest::short).collect();
            Err(Failure::new(Exit::Usage, format!("the ledger has {} heads", heads.len()))
                .hint(format!("name one with `--head`: {}", names.join(", "))))
        }
    }
}
