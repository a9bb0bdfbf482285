//! The program `avow`: arguments, words and exit codes around the libraries that do the work.
//!
//! Every verb is one file under `commands`. Libraries are silent; all sentences for a person are here, and
//! errors become words in one place ([`failure`], [`output`]).

mod agent;
mod args;
mod asking;
mod circumstances;
mod commands;
mod compiled;
mod context;
mod diagnostics;
mod divergence;
mod embargo;
mod exit;
mod failure;
mod git;
mod large;
mod logging;
mod output;
mod page;
mod places;
mod policy;
mod present;
mod progress;
mod results;
mod sarif;
mod search;
mod secrets;
mod settings;
mod space;
mod stamps;
mod stocks;
mod undeclared;
mod verification;
mod witnesses;
mod words;
mod world;

use std::process::ExitCode;

use clap::{CommandFactory, Parser};

use crate::args::{Cli, Command};
use crate::exit::Exit;
use crate::output::{Failure, Output};

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            // `--help` and `--version` are data; everything else is a usage error.
            let exit = if error.use_stderr() { Exit::Usage } else { Exit::Done };
            // A closed stream leaves nobody to tell.
            let _ = error.print();
            return exit.into();
        }
    };
    let output = Output::new(cli.quiet);
    // A run logs to a file in its project's store, once it knows that there is something to run.
    if !matches!(cli.command, Command::Run(_)) {
        logging::start(cli.verbose, None);
    }
    #[cfg(debug_assertions)]
    if let Err(failure) = faults() {
        return output.failure(&failure).into();
    }
    let exit =
        dispatch(&cli.command, cli.verbose, &output).unwrap_or_else(|failure| output.failure(&failure));
    logging::counts();
    exit.into()
}

/// A fault that a test asks for, which release builds know nothing of.
#[cfg(debug_assertions)]
fn faults() -> Result<(), Failure> {
    let shift = std::env::var("AVOW_CLOCK").ok().and_then(|text| text.parse().ok());
    shift.into_iter().for_each(avow_engine::shift);
    match std::env::var("AVOW_FAULTS") {
        Ok(text) => avow_store::faults::install(&text).map_err(|error| {
            Failure::new(Exit::Usage, "the variable `AVOW_FAULTS` asks for no fault that there is")
                .because(error)
        }),
        Err(_) => Ok(()),
    }
}

fn dispatch(command: &Command, verbose: u8, output: &Output) -> Result<Exit, Failure> {
    match command {
        Command::Init(args) => commands::init::init(args, output),
        Command::Check(args) => commands::check::check(args, output),
        Command::Plan(args) => commands::plan::plan(args, output),
        Command::Register(args) => commands::register::register(args, output),
        Command::Amend(args) => commands::register::amend(args, output),
        Command::Diff(args) => commands::diff::diff(args, output),
        Command::Ledger(args) => commands::ledger::ledger(args, output),
        Command::Run(args) => commands::run::run(args, verbose, output),
        Command::Worker(args) => commands::worker::worker(args, output),
        Command::Status(args) => commands::status::status(args, output),
        Command::Cancel(args) => commands::cancel::cancel(args, output),
        Command::Log(args) => commands::log::log(args, output),
        Command::Explain(args) => commands::explain::explain(args, output),
        Command::Table(args) => commands::table::table(args, output),
        Command::Get(args) => commands::get::get(args, output),
        Command::Verdict(args) => commands::verdict::verdict(args, output),
        Command::Invalidate(args) => commands::withdraw::invalidate(args, output),
        Command::Retract(args) => commands::withdraw::retract(args, output),
        Command::Export(args) => commands::export::export(args, output),
        Command::Prml(args) => commands::prml::prml(args, output),
        Command::Import(args) => commands::import::import(args, output),
        Command::Power(args) => commands::power::power(args, output),
        Command::Lineage(args) => commands::lineage::lineage(args, output),
        Command::Plot(args) => commands::plot::plot(args, output),
        Command::Report(args) => commands::report::report(args, output),
        Command::Audit(args) => commands::audit::audit(args, output),
        Command::Reproduce(args) => commands::reproduce::reproduce(args, output),
        Command::Bundle(args) => commands::bundle::bundle(args, output),
        Command::Verify(args) => commands::verify::verify(args, output),
        Command::Store(args) => commands::store::store(args, output),
        Command::Doctor(args) => commands::doctor::doctor(args, output),
        Command::Schema(args) => commands::schema::schema(args, output),
        Command::Op(args) => commands::op::op(args, output),
        Command::Completions(args) => {
            let mut script = Vec::new();
            clap_complete::generate(args.shell, &mut Cli::command(), "avow", &mut script);
            output.data(String::from_utf8_lossy(&script).trim_end())?;
            Ok(Exit::Done)
        }
    }
}
