//! The one place where errors of the libraries become exit codes and hints.

use std::collections::BTreeSet;
use std::io::ErrorKind;

use avow_audit::AuditError;
use avow_engine::EngineError;
use avow_exchange::ExchangeError;
use avow_exchange::bundle::BundleError;
use avow_exchange::foreign::ForeignError;
use avow_exec::worker::protocol::{Difference, Part};
use avow_exec::{ExecError, Unplaceable};
use avow_store::lock::LockError;
use avow_store::{Fault, StoreError};

use crate::exit::Exit;
use crate::output::Failure;

/// A failure of the store.
pub fn store(error: StoreError) -> Failure {
    let (exit, message) = match error.fault() {
        Fault::Machine => (Exit::Machine, "the store could not be used"),
        Fault::Evidence => (Exit::Damaged, "evidence in the store is damaged"),
        Fault::Request => (Exit::Usage, "the store refused"),
    };
    if let StoreError::Origin { .. } = error {
        return Failure::new(exit, "data kept by reference are not what they were")
            .because(error)
            .hint("put back what was there; or give the command again: changed data are another input, and what reads them runs anew");
    }
    let hint = match (error.fault(), error.io_kind()) {
        (_, Some(ErrorKind::StorageFull | ErrorKind::QuotaExceeded)) => {
            Some("free some disk space and give the same command again; nothing recorded is lost")
        }
        (_, Some(ErrorKind::ReadOnlyFilesystem | ErrorKind::PermissionDenied)) => {
            Some("the project's folder `.avow` must be writable for you; `avow doctor` says more")
        }
        (Fault::Machine, _) if error.is_out_of_files() => {
            Some("raise the limit of open files (`ulimit -n 4096`), or run fewer stages at once with `-j`")
        }
        (Fault::Machine, _) => Some(
            "look at the disk and the system's log, then give the same command again; nothing recorded is lost",
        ),
        (Fault::Evidence, _) => Some("`avow store check` names every damaged file"),
        (Fault::Request, _) if matches!(error, StoreError::Format { .. }) => {
            Some("use the version of avow that wrote this store, or a newer one")
        }
        _ => None,
    };
    let failure = Failure::new(exit, message).because(error);
    match hint {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}

/// A failure to write a bundle, or a bundle that is refused.
pub fn bundle(error: BundleError) -> Failure {
    match error {
        BundleError::Store(error) => store(error),
        error @ BundleError::Identifying(_) => {
            Failure::new(Exit::Usage, "the bundle cannot be made anonymous").because(error).hint(
                "take the names out of these files and carry the experiment out again; or send a bundle with names",
            )
        }
        BundleError::Limit { what, .. } => {
            let hint = match what {
                "entries" => "if you trust where it came from, `--max-entries` raises the limit",
                "bytes of manifest" => {
                    "no bundle that `avow bundle` writes has so long a list; ask for it again"
                }
                _ => "if you trust where it came from, `--max-size` raises the limit",
            };
            Failure::new(Exit::Damaged, "the bundle is refused").because(error).hint(hint)
        }
        BundleError::Io { action: "create", ref source, .. } if source.kind() == ErrorKind::AlreadyExists => {
            Failure::new(Exit::Usage, "there is something already")
                .because(error)
                .hint("give another path with `-o`")
        }
        BundleError::Io { action: "create", ref source, .. } if source.kind() == ErrorKind::NotFound => {
            Failure::new(Exit::Usage, "there is no folder at this path")
                .because(error)
                .hint("give a path in a folder that exists with `-o`")
        }
        error if error.is_of_the_bundle() => Failure::new(Exit::Damaged, "the bundle is refused")
            .because(error)
            .hint("it is damaged, or was changed after it was written: ask for it again"),
        error => Failure::new(Exit::Machine, "the bundle could not be used").because(error),
    }
}

/// A bundle that somebody named and that could not be opened: one that is not there is a slip of the fingers.
pub fn opened(error: BundleError) -> Failure {
    match &error {
        BundleError::Io { source, .. } if source.kind() == ErrorKind::NotFound => {
            Failure::new(Exit::Usage, "there is nothing at this path")
                .because(error)
                .hint("give the path of a bundle; `avow bundle` writes one")
        }
        _ => bundle(error),
    }
}

/// A crate that is refused, or cannot be read.
pub fn foreign(error: ForeignError) -> Failure {
    let hint = match &error {
        ForeignError::Limit { what: "bytes", .. } => {
            "if you trust where it came from, `--max-size` raises the limit"
        }
        ForeignError::Limit { what: "entities" | "entries", .. } => {
            "if you trust where it came from, `--max-entries` raises the limit"
        }
        ForeignError::NoCrate | ForeignError::NoRun => {
            "`avow import` takes a bundle, or a Run Crate as a folder or a zip archive"
        }
        _ => "it is damaged, or was changed after it was written: ask for it again",
    };
    if error.is_of_the_crate() {
        Failure::new(Exit::Damaged, "the crate is refused").because(error).hint(hint)
    } else {
        Failure::new(Exit::Machine, "the crate could not be read").because(error)
    }
}

/// A failure to write evidence in a foreign form.
pub fn exchange(error: ExchangeError) -> Failure {
    match error {
        ExchangeError::Store(error) => store(error),
        ExchangeError::Bundle(error) => bundle(error),
        ExchangeError::Exists(_) => Failure::new(Exit::Usage, "there is something already")
            .because(error)
            .hint("give another path with `-o`"),
        ExchangeError::Citation(_) => Failure::new(Exit::Usage, "the citation cannot be used")
            .because(error)
            .hint("`cffconvert --validate` says what the format wants"),
        ExchangeError::Twice(_) => {
            Failure::new(Exit::Usage, "the files of the project cannot lie beside the results")
                .because(error)
                .hint("give the file or folder another name in the project")
        }
        ExchangeError::Changed { .. } => Failure::new(Exit::Damaged, "evidence in the store is damaged")
            .because(error)
            .hint("`avow store check` names every damaged file"),
        ExchangeError::Dangling { .. } => {
            Failure::new(Exit::Internal, "this is a fault of avow itself").because(error)
        }
        ExchangeError::Io { .. } | ExchangeError::Materialise(_) => {
            Failure::new(Exit::Machine, "the export could not be written").because(error)
        }
    }
}

/// A failure of the auditor.
pub fn audit(error: AuditError) -> Failure {
    Failure::new(Exit::Machine, "the evidence could not be read")
        .because(error)
        .hint("`avow store check` names every damaged file")
}

/// A failure of the engine.
pub fn engine(error: EngineError) -> Failure {
    match error {
        EngineError::Store(error) => store(error),
        EngineError::Lock(error) => lock(error),
        EngineError::TooLarge { .. } => {
            Failure::new(Exit::Machine, "a stage asks for more than this run has")
                .because(error)
                .hint("lower its `resources:`, or give more slots with `-j`")
        }
        EngineError::AlreadyRegistered => {
            Failure::new(Exit::Usage, "this plan is registered already").hint("carry it out with `avow run`")
        }
        EngineError::OtherRegistered => {
            Failure::new(Exit::Usage, "another plan of this experiment is registered")
                .hint("record the change openly: `avow amend --reason TEXT`; `avow diff` shows what differs")
        }
        EngineError::NotRegistered => Failure::new(Exit::Usage, "there is no registration to amend")
            .hint("freeze the plan with `avow register`"),
        EngineError::NoRival(_) => Failure::new(Exit::Usage, "there is nothing to decide")
            .because(error)
            .hint("`avow ledger log` lists the registrations"),
        EngineError::Begun => Failure::new(Exit::Usage, "an embargo would hide nothing").because(error).hint(
            "commit before the first run; or give the experiment another name, and with it another ledger",
        ),
        EngineError::NoCommitment => {
            Failure::new(Exit::Usage, "there is nothing to open").because(error).hint(
                "commitments are made with `avow register --embargo`; `avow ledger log` lists them",
            )
        }
        EngineError::Lost(_) => Failure::new(Exit::Usage, "the commitment cannot be opened here").because(error).hint(
            "give copies of them with `--opening FILE --body FILE`; without them nobody can ever open it, and it is \
             counted as unopened beside every verdict",
        ),
        EngineError::Mismatch(_) => Failure::new(Exit::Damaged, "the commitment was not opened")
            .because(error)
            .hint("openings are kept in `.avow/embargo/EXPERIMENT` where the commitment was made"),
        EngineError::Taken(_) => Failure::new(Exit::Usage, "the opened ledger has no place")
            .because(error)
            .hint("move the other file of `registrations/` away"),
        EngineError::Ledger(_) => Failure::new(Exit::Damaged, "the registration ledger cannot be written")
            .because(error)
            .hint("a line was changed by hand; restore the file from version control"),
        EngineError::Exec(ExecError::Confinement { .. }) => {
            Failure::new(Exit::Machine, "stages cannot be confined as asked").because(error).hint(
                "`avow doctor` says what this machine gives; without `--confine` and `level` the best of it is used",
            )
        }
        EngineError::Exec(error @ (ExecError::Worker { .. } | ExecError::NoWorker { .. })) => {
            Failure::new(Exit::Machine, "a worker failed").because(error).hint(
                "start it again, or leave it out of `--on`, and give the same command again; what is finished is reused",
            )
        }
        EngineError::Exec(ExecError::Unplaceable(why)) => {
            let hint = remedy(&why);
            Failure::new(Exit::Machine, "a stage cannot run anywhere")
                .because(ExecError::Unplaceable(why))
                .hint(hint)
        }
        EngineError::Exec(ExecError::Store(error)) => store(error),
        EngineError::Exec(_) | EngineError::Random(_) => {
            Failure::new(Exit::Machine, "the machine failed").because(error).hint("`avow doctor` says more")
        }
        EngineError::Judge(_) => {
            Failure::new(Exit::Machine, "a search could not go on")
                .because(error)
                .hint("`avow store check` names every damaged file")
        }
        EngineError::Graph(_) | EngineError::Panic(_) => {
            Failure::new(Exit::Internal, "this is a fault of avow itself")
                .because(error)
                .hint("please report it with the file in `.avow/log`")
        }
    }
}

/// What makes a worker fit for what it was refused for.
fn remedy(why: &Unplaceable) -> String {
    let misfits = match why {
        Unplaceable::TooLarge { .. } => {
            return "lower its `resources:`, or start a worker with more: `avow worker -j N --memory SIZE`"
                .to_owned();
        }
        Unplaceable::Unsuitable(misfits) => misfits,
    };
    let here = "or run that stage here with `--on local`";
    let differ = |part| move |found: &&Difference| found.what == part;
    let all = || misfits.iter().flat_map(|misfit| &misfit.differences);
    let programs = format!("install the same programs and the same avow on the worker, {here}");
    // What another program loads differs by that alone.
    if all().any(|found| differ(Part::Program)(&found) || differ(Part::Op)(&found)) {
        return programs;
    }
    let packages: BTreeSet<String> = all()
        .filter(differ(Part::Package))
        .map(|package| {
            // A version alone, or one with the digest of its build.
            let version = package.wanted.split(' ').next().unwrap_or_default();
            format!("{}=={version}", package.name)
        })
        .collect();
    if !packages.is_empty() {
        let packages = packages.into_iter().collect::<Vec<_>>().join(" ");
        return format!("on the worker: `python3 -m pip install --force-reinstall {packages}`; {here}");
    }
    if all().any(|found| differ(Part::Room)(&found)) {
        return format!("start the worker with more room, `avow worker --cache SIZE`, {here}");
    }
    if all().any(|found| differ(Part::Library)(&found)) {
        return format!(
            "give the worker the same release of the system's libraries (the same image is the surest way), {here}"
        );
    }
    programs
}

/// A lock that cannot be had.
pub fn lock(error: LockError) -> Failure {
    match error {
        LockError::Store(error) => store(error),
        LockError::GaveUp { .. } => Failure::quiet(Exit::Interrupted),
        LockError::Unsupported { .. } => Failure::new(Exit::Machine, "two runs could not be kept apart here")
            .because(error)
            .hint("move the project to a local file system; network file systems without locks are not supported"),
        LockError::Held { .. } => {
            Failure::new(Exit::Machine, "another command is running in this project").because(error)
        }
    }
}
