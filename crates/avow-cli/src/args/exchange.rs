//! The arguments of the verbs that exchange evidence with other programs.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use super::SpecArg;

/// `avow export`
#[derive(Debug, Subcommand)]
pub enum Export {
    /// A folder with everything that was done, as an RO-Crate with the Run Crate profiles.
    RoCrate(ExportCrate),
    /// One document of PROV-JSON: entities, activities, agents.
    Prov(ExportProv),
    /// Signed in-toto Statements with SLSA provenance, a DSSE envelope a line for each result that stands.
    InToto(ExportInToto),
    /// The answers of the OSF Preregistration, by question.
    Osf(ExportForm),
    /// The answers of AsPredicted.
    Aspredicted(ExportForm),
    /// The items of the NeurIPS checklist that the store answers.
    Neurips(ExportForm),
}

/// `avow export osf`, `aspredicted`, `neurips`
#[derive(Debug, Args)]
pub struct ExportForm {
    /// The spec; where there is only one in the folder, it need not be named.
    pub spec: Option<PathBuf>,
    /// Export although the registered plan is not complete; this is recorded.
    #[arg(long)]
    pub peek: bool,
}

/// `avow import`
#[derive(Debug, Args)]
pub struct Import {
    /// A bundle, or a Run Crate as a folder or a zip archive; without one, what was imported is listed.
    pub path: Option<PathBuf>,
    /// The experiment beside whose verdicts it is shown; a bundle is shown beside its own.
    #[arg(long = "for", value_name = "EXPERIMENT", requires = "path")]
    pub experiment: Option<String>,
    /// Read up to so many entries.
    #[arg(long, value_name = "N")]
    pub max_entries: Option<u64>,
    /// Read up to so many bytes.
    #[arg(long, value_name = "BYTES")]
    pub max_size: Option<u64>,
    /// Print as JSON.
    #[arg(long)]
    pub json: bool,
}

/// `avow export ro-crate`
#[derive(Debug, Args)]
pub struct ExportCrate {
    #[command(flatten)]
    pub spec: SpecArg,
    /// The folder to make; by default the experiment's name with `.crate` in this folder.
    #[arg(short, long, value_name = "FOLDER")]
    pub output: Option<PathBuf>,
    /// How much is said: attempts, the workflow too, or its steps and runs as well.
    #[arg(long, value_enum, default_value = "provenance")]
    pub profile: CrateProfile,
    /// The edition of the Run Crate profiles: 0.5 on RO-Crate 1.1, or 0.6 on RO-Crate 1.3.
    #[arg(long, value_enum, default_value = "0.5")]
    pub edition: CrateEdition,
    /// The licence of the whole, as an SPDX identifier or an address; by default what `CITATION.cff` says.
    #[arg(long, value_name = "LICENCE")]
    pub licence: Option<String>,
    /// Export although the registered plan is not complete; this is recorded.
    #[arg(long)]
    pub peek: bool,
    /// Print as JSON what was written.
    #[arg(long)]
    pub json: bool,
}

/// `avow export prov`
#[derive(Debug, Args)]
pub struct ExportProv {
    #[command(flatten)]
    pub spec: SpecArg,
    /// The file to make; by default it is printed.
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Export although the registered plan is not complete; this is recorded.
    #[arg(long)]
    pub peek: bool,
}

/// `avow export in-toto`
#[derive(Debug, Args)]
pub struct ExportInToto {
    #[command(flatten)]
    pub spec: SpecArg,
    /// The file to make; by default the experiment's name with `.intoto.jsonl` in this folder. The public key goes beside
    /// it, with `.pem` added.
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// The Ed25519 key of SSH to sign with, by default as for registrations; its public half will do where the agent
    /// holds it.
    #[arg(long, value_name = "FILE")]
    pub key: Option<PathBuf>,
    /// Write plain statements, signed by nobody.
    #[arg(long, conflicts_with = "key")]
    pub unsigned: bool,
    /// Export although the registered plan is not complete; this is recorded.
    #[arg(long)]
    pub peek: bool,
    /// Print as JSON what was written.
    #[arg(long)]
    pub json: bool,
}

/// The profiles of Run Crates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum CrateProfile {
    /// Attempts with what they read and wrote.
    Process,
    /// The spec as a workflow, too.
    Workflow,
    /// Steps and runs, too.
    Provenance,
}

/// The editions of Run Crates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum CrateEdition {
    /// Run Crate 0.5 on RO-Crate 1.1.
    #[value(name = "0.5")]
    Half,
    /// Run Crate 0.6 on RO-Crate 1.3.
    #[value(name = "0.6")]
    Six,
}
