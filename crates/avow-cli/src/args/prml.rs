//! The arguments of `avow prml`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::SpecArg;

/// `avow prml`
#[derive(Debug, Subcommand)]
pub enum Prml {
    /// Print the digest of a manifest: the SHA-256 of its canonical text.
    Hash {
        /// The manifest, YAML or JSON.
        manifest: PathBuf,
    },
    /// Record the digest of a manifest beside it.
    Lock {
        /// The manifest, YAML or JSON.
        manifest: PathBuf,
    },
    /// Check a manifest against its recorded digest, and an observed value against its threshold.
    Verify(PrmlVerify),
    /// Print a claim of a spec as a manifest.
    Export(PrmlExport),
    /// Print a manifest as a claim of a spec.
    Import {
        /// The manifest, YAML or JSON.
        manifest: PathBuf,
    },
}

/// `avow prml verify`
#[derive(Debug, Args)]
pub struct PrmlVerify {
    /// The manifest, YAML or JSON.
    pub manifest: PathBuf,
    /// What was measured.
    #[arg(long, value_name = "X", allow_negative_numbers = true)]
    pub observed: Option<f64>,
    /// The digest that it must have; by default the one recorded beside it.
    #[arg(long, value_name = "DIGEST")]
    pub expected_hash: Option<String>,
    /// The data, where they are one file: its SHA-256 is compared.
    #[arg(long, value_name = "FILE")]
    pub dataset: Option<PathBuf>,
}

/// `avow prml export`
#[derive(Debug, Args)]
pub struct PrmlExport {
    #[command(flatten)]
    pub spec: SpecArg,
    /// The claim; where there is only one, it need not be named.
    #[arg(long, value_name = "CLAIM")]
    pub claim: Option<String>,
    /// Who makes the claim; by default git's `user.email`.
    #[arg(long, value_name = "WHO")]
    pub producer: Option<String>,
    /// When, as RFC 3339 has it; by default now.
    #[arg(long, value_name = "TIME")]
    pub created_at: Option<String>,
    /// Write it here, and its digest beside it.
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Print the canonical text and its digest as JSON.
    #[arg(long)]
    pub json: bool,
}
