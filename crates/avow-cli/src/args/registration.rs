//! The arguments of the verbs around a registration.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::SpecArg;

/// Outside witnesses of a registration.
#[derive(Clone, Debug, Default, Args)]
pub struct Witnesses {
    /// Sign the ledger's head with your SSH key: as `avow.toml` or git says, else the usual file; the agent is asked
    /// first.
    #[arg(long)]
    pub sign: bool,
    /// The SSH key to sign with; its public half will do where the agent holds it.
    #[arg(long, value_name = "FILE")]
    pub key: Option<PathBuf>,
    /// Have the head time-stamped by this authority (RFC 3161); may be given several times.
    #[arg(long, value_name = "URL")]
    pub tsa: Vec<String>,
    /// Make a signed git tag that names the head.
    #[arg(long)]
    pub git_tag: bool,
}

/// Whom a reader trusts; by default what `[trust]` in `avow.toml` says.
#[derive(Clone, Debug, Default, Args)]
pub struct Trust {
    /// Whose keys are known: a file in the form of `ssh-keygen`'s `allowed_signers`.
    #[arg(long, value_name = "FILE")]
    pub signers: Option<PathBuf>,
    /// Keys that are no longer trusted: public keys, or a list as `ssh-keygen -k` writes it.
    #[arg(long, value_name = "FILE")]
    pub revoked: Option<PathBuf>,
    /// Only signatures of this one count.
    #[arg(long, value_name = "WHO")]
    pub principal: Option<String>,
    /// Root certificates of time stamping authorities, PEM or DER.
    #[arg(long, value_name = "FILE")]
    pub authority: Vec<PathBuf>,
}

/// What a spec may be registered with although it is a warning.
#[derive(Clone, Copy, Debug, Default, Args)]
pub struct Accepting {
    /// Accept an environment that no lock file pins, or one that leaves versions open; the ledger says so.
    #[arg(long)]
    pub accept_unpinned: bool,
    /// Accept every warning, e.g. also a claim that cannot be decided; the ledger says which.
    #[arg(long)]
    pub accept_warnings: bool,
}

/// `avow register`
#[derive(Debug, Args)]
pub struct Register {
    #[command(flatten)]
    pub spec: SpecArg,
    #[command(flatten)]
    pub witnesses: Witnesses,
    /// Show nothing but a commitment until `avow ledger open`: not the plan, the claims, nor the experiment's name.
    #[arg(long)]
    pub embargo: bool,
    #[command(flatten)]
    pub accepting: Accepting,
    /// Print as JSON.
    #[arg(long)]
    pub json: bool,
}

/// `avow amend`
#[derive(Debug, Args)]
pub struct Amend {
    #[command(flatten)]
    pub spec: SpecArg,
    #[command(flatten)]
    pub witnesses: Witnesses,
    /// Why the registered plan is changed; stands in the ledger for ever.
    #[arg(long, value_name = "TEXT")]
    pub reason: String,
    /// Say that the stages changed give the same as under this registration (its first digits, or `registered`), and
    /// prove it: members are drawn, carried out under the new plan, and compared.
    #[arg(long, value_name = "OLD", conflicts_with_all = ["explain", "adopt"])]
    pub same_as: Option<String>,
    /// How many members are drawn.
    #[arg(long, value_name = "N", default_value_t = 20, requires = "same_as",
          value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub check: u64,
    /// Say that the stages changed were wrong before.
    #[arg(long, conflicts_with_all = ["same_as", "explain", "adopt"])]
    pub bug_fix: bool,
    /// Leave the plan as it is, and state the reason of a deviation: its class, or `CLASS:STAGE`.
    #[arg(long, value_name = "DEVIATION")]
    pub explain: Vec<String>,
    /// Leave the plan as it is, and decide between registrations on two sides of a fork: this one counts.
    #[arg(long, value_name = "ENTRY", conflicts_with = "explain")]
    pub adopt: Option<String>,
    #[command(flatten)]
    pub accepting: Accepting,
    /// Print as JSON.
    #[arg(long)]
    pub json: bool,
}

/// `avow invalidate`
#[derive(Debug, Args)]
pub struct Invalidate {
    /// An attempt or an output by its digest, or a member (`train[seed=3]`): the attempt that stands for it.
    pub what: String,
    /// Why it is wrong; stands in the ledger for ever.
    #[arg(long, value_name = "TEXT")]
    pub reason: String,
    /// The spec.
    #[arg(long)]
    pub spec: Option<PathBuf>,
    /// Print as JSON.
    #[arg(long)]
    pub json: bool,
}

/// `avow retract`
#[derive(Debug, Args)]
pub struct Retract {
    /// The claim.
    pub claim: String,
    /// Why its reading is withdrawn; stands in the ledger for ever.
    #[arg(long, value_name = "TEXT")]
    pub reason: String,
    /// The spec.
    #[arg(long)]
    pub spec: Option<PathBuf>,
    /// Print as JSON.
    #[arg(long)]
    pub json: bool,
}

/// `avow diff`
#[derive(Debug, Args)]
pub struct Diff {
    /// A registration by the first digits of its ledger line, `registered` for the one in force, or a spec; without
    /// anything, the registration in force against the spec at hand and what was done.
    pub old: Option<String>,
    /// The same; by default the spec at hand.
    pub new: Option<String>,
    /// The spec.
    #[arg(long)]
    pub spec: Option<PathBuf>,
    /// Print as JSON.
    #[arg(long)]
    pub json: bool,
}

/// `avow ledger`
#[derive(Debug, Subcommand)]
pub enum Ledger {
    /// List what was recorded, in order, with forks.
    Log(LedgerArg),
    /// Print the statement about each head: what is signed and stamped.
    Heads(LedgerArg),
    /// Prove that a line is covered by a head, or that a head covers an earlier one; the proof stands alone.
    Prove(LedgerProve),
    /// Have the head as it is signed, stamped or tagged; or lay another proof beside it.
    Witness(LedgerWitness),
    /// Show what was committed to under an embargo.
    Open(LedgerOpen),
    /// Check a ledger against every copy of a later head that can be found, or check a proof.
    Verify(LedgerVerify),
}

/// A ledger, given or found.
#[derive(Debug, Args)]
pub struct LedgerArg {
    /// An experiment's name, or its spec; where the project has only one ledger, it need not be named.
    pub experiment: Option<String>,
    /// Print as JSON.
    #[arg(long)]
    pub json: bool,
}

/// `avow ledger open`
#[derive(Debug, Args)]
pub struct LedgerOpen {
    /// An experiment's name, or its spec, or the name of the ledger under embargo.
    pub experiment: Option<String>,
    /// The opening of one commitment, where it is not kept here.
    #[arg(long, value_name = "FILE", requires = "body")]
    pub opening: Option<PathBuf>,
    /// The body that the opening names.
    #[arg(long, value_name = "FILE", requires = "opening")]
    pub body: Option<PathBuf>,
    /// Print as JSON.
    #[arg(long)]
    pub json: bool,
}

/// `avow ledger prove`
#[derive(Debug, Args)]
pub struct LedgerProve {
    /// The line or the earlier head, by the first digits of its name.
    pub entry: String,
    /// The head that covers it; the only head where there is one.
    #[arg(long, value_name = "ENTRY")]
    pub head: Option<String>,
    /// Prove that everything up to the entry is covered in the same order, not the line alone.
    #[arg(long)]
    pub growth: bool,
    /// An experiment's name, or its spec.
    #[arg(long, value_name = "EXPERIMENT")]
    pub of: Option<String>,
}

/// `avow ledger witness`
#[derive(Debug, Args)]
pub struct LedgerWitness {
    /// An experiment's name, or its spec; where the project has only one ledger, it need not be named.
    pub experiment: Option<String>,
    #[command(flatten)]
    pub witnesses: Witnesses,
    /// A file about the head that other tools made, such as an OpenTimestamps proof of its statement; kept and shown.
    #[arg(long, value_name = "FILE")]
    pub attach: Vec<PathBuf>,
}

/// `avow ledger verify`
#[derive(Debug, Args)]
pub struct LedgerVerify {
    #[command(flatten)]
    pub ledger: LedgerArg,
    #[command(flatten)]
    pub trust: Trust,
    /// Check this proof instead; no project is needed.
    #[arg(long, value_name = "FILE")]
    pub proof: Option<PathBuf>,
    /// The head statement that the proof must lead to.
    #[arg(long, value_name = "FILE", requires = "proof")]
    pub statement: Option<PathBuf>,
}
