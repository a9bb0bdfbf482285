//! The command line.

use std::path::PathBuf;

use clap::builder::TypedValueParser as _;
use clap::{Args, Parser, Subcommand, ValueEnum};

mod exchange;
mod naming;
mod prml;
mod registration;

pub use exchange::{
    CrateEdition, CrateProfile, Export, ExportCrate, ExportForm, ExportInToto, ExportProv, Import,
};
pub use naming::naming;
pub use prml::{Prml, PrmlExport, PrmlVerify};
pub use registration::{
    Accepting, Amend, Diff, Invalidate, Ledger, LedgerArg, LedgerOpen, LedgerProve, LedgerVerify,
    LedgerWitness, Register, Retract, Trust, Witnesses,
};

/// Experiments that can be checked: declared before, run with provenance, judged by the registered rule.
#[derive(Debug, Parser)]
#[command(name = "avow", version, disable_help_subcommand = true, max_term_width = 100)]
#[command(
    after_help = "Start with `avow init`. Exit codes: 0 done, 1 a stage failed, 2 usage, 3 spec invalid, \
                        6 evidence damaged, 8 machine or network failed, 70 internal, 130 interrupted; with \
                        --check also 4 a claim refuted, 5 undecided, 7 an unexplained deviation."
)]
pub struct Cli {
    /// Show what the engine does on the terminal; twice for more.
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    pub verbose: u8,
    /// Say less: no progress, no hints.
    #[arg(short, long, global = true)]
    pub quiet: bool,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The verbs.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Make a project with one experiment that runs in seconds.
    Init(Init),
    /// Report every problem of a spec; run nothing.
    Check(Check),
    /// Show what would run, what is reused, and why.
    Plan(Plan),
    /// Freeze plan, claims and analysis in the ledger.
    Register(Register),
    /// Register a changed plan in place of the registered one, for a stated reason.
    Amend(Amend),
    /// Compare two registrations or specs, or what was registered with what was done.
    Diff(Diff),
    /// Look into the ledger of registrations, prove and verify what it holds.
    #[command(subcommand)]
    Ledger(Ledger),
    /// Carry the experiment out and judge its claims.
    Run(Run),
    /// Carry out attempts of runs elsewhere, over HTTP.
    Worker(Worker),
    /// Show where the latest run stands.
    Status(Status),
    /// Print what a stage wrote to its standard output and error.
    Log(Log),
    /// Ask a run to stop, and wait until it has.
    Cancel(Cancel),
    /// Say why a stage ran, was reused or waits.
    Explain(Explain),
    /// Print the measurements.
    Table(Table),
    /// Copy an artifact out of the store.
    Get(Get),
    /// Judge the claims.
    Verdict(Verdict),
    /// Declare wrong what succeeded: it stands for nothing from here on, and everything downstream is marked.
    Invalidate(Invalidate),
    /// Withdraw the reading of a claim.
    Retract(Retract),
    /// Say how likely the claims are to be supported, and how many units that would take.
    Power(Power),
    /// Write evidence in a form that other programs read, or a plan as the answers of a registration form.
    #[command(subcommand)]
    Export(Export),
    /// Read, write and check manifests of the PRML format.
    #[command(subcommand)]
    Prml(Prml),
    /// Keep somebody else's evidence beside one's own, marked as foreign.
    Import(Import),
    /// Show everything a number, an artifact or a file rests on.
    Lineage(Lineage),
    /// Draw the plots of an experiment, of a claim or of a measurement.
    Plot(Plot),
    /// Write a page about an experiment, or the values that a manuscript prints.
    Report(Report),
    /// Compare every number of a manuscript with what is stored; without one, look at the whole project.
    Audit(Audit),
    /// Make results again where nothing of them exists, and compare.
    Reproduce(Reproduce),
    /// Write an experiment's evidence into one file for a reader.
    Bundle(Bundle),
    /// Check a bundle, and judge its claims anew, without running anything.
    Verify(Verify),
    /// Look after the store.
    #[command(subcommand)]
    Store(Store),
    /// Say what this machine offers and what is wrong with it.
    Doctor(Doctor),
    /// Print the JSON Schema of a spec.
    Schema(Schema),
    /// Run one built-in stage by hand, or list them.
    Op(Op),
    /// Print a completion script for a shell.
    Completions(Completions),
}

/// `avow init`
#[derive(Debug, Args)]
pub struct Init {
    /// The folder to make it in.
    #[arg(default_value = ".")]
    pub folder: PathBuf,
}

/// A spec, given or found.
#[derive(Debug, Args)]
pub struct SpecArg {
    /// The spec; where there is only one in the folder, it need not be named.
    pub spec: Option<PathBuf>,
}

/// `avow check`
#[derive(Debug, Args)]
pub struct Check {
    /// The specs.
    pub specs: Vec<PathBuf>,
    /// Print the completed spec, with every default filled in.
    #[arg(long)]
    pub full: bool,
    /// Warnings are errors.
    #[arg(long)]
    pub strict: bool,
    /// Print the problems as JSON.
    #[arg(long)]
    pub json: bool,
}

/// `avow plan`
#[derive(Debug, Args)]
pub struct Plan {
    #[command(flatten)]
    pub spec: SpecArg,
    /// Only this stage or member (`train`, `train[seed=3]`) and what it needs.
    #[arg(long, value_name = "STAGE")]
    pub only: Vec<String>,
    /// List every member.
    #[arg(long)]
    pub all: bool,
    /// Print as JSON.
    #[arg(long)]
    pub json: bool,
}

/// `avow run`
#[derive(Debug, Args)]
pub struct Run {
    #[command(flatten)]
    pub spec: SpecArg,
    /// CPU slots; all cores where nothing is said.
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub jobs: Option<u32>,
    /// Go on with what does not depend on a failed stage.
    #[arg(short, long)]
    pub keep_going: bool,
    /// Only this stage or member (`train`, `train[seed=3]`) and what it needs.
    #[arg(long, value_name = "STAGE")]
    pub only: Vec<String>,
    /// Where to run: `local`, `worker:URL`, or `worker:NAME` of avow.toml; may be given several times.
    #[arg(long, value_name = "PLACE")]
    pub on: Vec<String>,
    /// The file with the token of the workers.
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
    /// Show what would run and stop.
    #[arg(short = 'n', long)]
    pub dry_run: bool,
    /// Go on in the background, also when the terminal is closed.
    #[arg(long, conflicts_with = "dry_run")]
    pub detach: bool,
    /// Where a run in the background writes; given by the one that started it.
    #[arg(long, hide = true, value_name = "PATH", conflicts_with = "detach")]
    pub detached: Option<String>,
    /// How stages are confined; by default as `avow.toml` says, else the best that this machine gives.
    #[arg(long, value_name = "LEVEL", value_parser = clap::builder::PossibleValuesParser::new(
        ["none", "declared", "deny", "observe"]).try_map(|word| word.parse::<avow_exec::Confinement>()))]
    pub confine: Option<avow_exec::Confinement>,
    /// Keep the working folders of failed attempts; never those with secrets.
    #[arg(long)]
    pub keep_failed: bool,
    /// Carry a share of what is reused out again and compare, e.g. `0.05` or `5%`; at least one action.
    #[arg(long, value_name = "SHARE", value_parser = share, conflicts_with = "dry_run")]
    pub verify: Option<f64>,
    /// A file outside the project with the values of secrets, `NAME = "value"` a line.
    #[arg(long, value_name = "FILE")]
    pub secrets_file: Option<PathBuf>,
    /// Show values although the registered plan is not complete; this is recorded.
    #[arg(long)]
    pub peek: bool,
    /// Print the verdicts as JSON.
    #[arg(long)]
    pub json: bool,
}

/// A share above nothing.
fn share(text: &str) -> Result<f64, String> {
    let read = avow_spec::units::share(text).and_then(|decimal| decimal.parse::<f64>().ok());
    read.filter(|share| *share > 0.0 && *share <= 1.0)
        .ok_or_else(|| "a share above 0 and at most 1, as `0.05` or `5%`".to_owned())
}

/// `avow worker`
#[derive(Debug, Args)]
pub struct Worker {
    /// The address to listen on.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:7468")]
    pub listen: std::net::SocketAddr,
    /// The file with the token that every request must carry; made with a new one if absent.
    #[arg(long, value_name = "FILE")]
    pub token_file: PathBuf,
    /// Listen on an address that other machines can reach, although the traffic is plain HTTP.
    #[arg(long)]
    pub plain_network: bool,
    /// CPU slots; all cores where nothing is said.
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub jobs: Option<u32>,
    /// Memory that declared requests share, e.g. `16GiB`; all there is where nothing is said.
    #[arg(long, value_name = "SIZE")]
    pub memory: Option<String>,
    /// How stages are confined; the best that this machine gives where nothing is said.
    #[arg(long, value_name = "LEVEL", value_parser = clap::builder::PossibleValuesParser::new(
        ["none", "declared", "deny", "observe"]).try_map(|word| word.parse::<avow_exec::Confinement>()))]
    pub confine: Option<avow_exec::Confinement>,
    /// What every stage may read although it does not declare it.
    #[arg(long, value_name = "PATH")]
    pub allow: Vec<PathBuf>,
    /// The worker's own folder; `avow/worker` in the user's cache folder where nothing is said.
    #[arg(long, value_name = "FOLDER")]
    pub folder: Option<PathBuf>,
    /// The most bytes of blobs that are kept for later.
    #[arg(long, value_name = "SIZE", default_value = "20GiB")]
    pub cache: String,
    /// After this time without a word from a run its stages are ended.
    #[arg(long, value_name = "DURATION", default_value = "30s")]
    pub lease: String,
}

/// `avow status`
#[derive(Debug, Args)]
pub struct Status {
    #[command(flatten)]
    pub spec: SpecArg,
    /// Print as JSON.
    #[arg(long)]
    pub json: bool,
}

/// `avow cancel`
#[derive(Debug, Args)]
pub struct Cancel {
    /// The run; where only one lives in this project, it need not be named.
    pub run: Option<String>,
    /// Do not let its stages end themselves.
    #[arg(long)]
    pub kill: bool,
    /// Print as JSON.
    #[arg(long)]
    pub json: bool,
}

/// `avow log`
#[derive(Debug, Args)]
pub struct Log {
    /// A stage or member, e.g. `train` or `train[seed=3]`.
    pub member: String,
    /// Show what it prints now as it prints it, and end with it.
    #[arg(short, long, conflicts_with = "json")]
    pub follow: bool,
    /// The spec.
    #[arg(long)]
    pub spec: Option<PathBuf>,
    /// Show what succeeded stages printed although the registered plan is not complete; this is recorded.
    #[arg(long)]
    pub peek: bool,
    /// Print as JSON: the attempts with their logs.
    #[arg(long)]
    pub json: bool,
}

/// `avow explain`
#[derive(Debug, Args)]
pub struct Explain {
    /// A stage or member, e.g. `train` or `train[seed=3]`.
    pub member: String,
    /// The spec.
    #[arg(long)]
    pub spec: Option<PathBuf>,
    /// Run a member that failed once more, keep nothing of it, and name every file that it is denied.
    #[arg(long)]
    pub trace: bool,
    /// Print as JSON.
    #[arg(long)]
    pub json: bool,
}

/// The forms of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Form {
    /// Aligned columns.
    Text,
    /// Comma-separated values.
    Csv,
    /// One JSON object a line.
    Jsonl,
}

/// `avow table`
#[derive(Debug, Args)]
pub struct Table {
    #[command(flatten)]
    pub spec: SpecArg,
    /// Only this measurement, `name` or `stage.name`.
    #[arg(long)]
    pub select: Option<String>,
    /// The form.
    #[arg(long, value_enum, default_value = "text")]
    pub format: Form,
    /// The same as `--format jsonl`.
    #[arg(long)]
    pub json: bool,
    /// Show values although the registered plan is not complete; this is recorded.
    #[arg(long)]
    pub peek: bool,
}

/// `avow get`
#[derive(Debug, Args)]
pub struct Get {
    /// `STAGE.OUTPUT`, `STAGE.OUTPUT[axis=value]` or a digest.
    pub artifact: String,
    /// The spec.
    #[arg(long)]
    pub spec: Option<PathBuf>,
    /// Where to copy it; by default its own name in this folder.
    #[arg(short, long)]
    pub output: Option<PathBuf>,
    /// Read although the registered plan is not complete; this is recorded.
    #[arg(long)]
    pub peek: bool,
    /// Print as JSON what was copied.
    #[arg(long)]
    pub json: bool,
}

/// `avow verdict`
#[derive(Debug, Args)]
pub struct Verdict {
    #[command(flatten)]
    pub spec: SpecArg,
    /// Show all that is behind one claim.
    #[arg(long, value_name = "CLAIM")]
    pub explain: Option<String>,
    /// Set the exit code by the verdicts.
    #[arg(long)]
    pub check: bool,
    /// Judge although the registered plan is not complete; this is recorded.
    #[arg(long)]
    pub peek: bool,
    /// The form.
    #[arg(long, value_enum, default_value = "text", conflicts_with = "explain")]
    pub format: VerdictForm,
    /// The same as `--format json`.
    #[arg(long)]
    pub json: bool,
}

/// The form of verdicts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum VerdictForm {
    /// One line a claim.
    Text,
    /// A table for a document or an issue.
    Markdown,
    /// A `tabular` for a paper.
    Latex,
    /// Everything.
    Json,
}

/// `avow power`
#[derive(Debug, Args)]
pub struct Power {
    #[command(flatten)]
    pub spec: SpecArg,
    /// Only this claim.
    #[arg(long, value_name = "CLAIM")]
    pub claim: Option<String>,
    /// The true value of what is claimed about; by default the `smallest` effect of the rule.
    #[arg(long, value_name = "X", allow_negative_numbers = true)]
    pub effect: Option<f64>,
    /// The standard deviation of a unit (of a pair's difference); by default that of the pilot cells.
    #[arg(long, value_name = "S")]
    pub sd: Option<f64>,
    /// Draw made-up units from the pilot's deviations instead of a normal distribution.
    #[arg(long)]
    pub residuals: bool,
    /// The share of the second arm, for a difference of two shares.
    #[arg(long, value_name = "P", default_value_t = 0.5)]
    pub base: f64,
    /// The power that is wanted.
    #[arg(long, value_name = "P", default_value_t = 0.8)]
    pub power: f64,
    /// Numbers of units to answer for; by default the planned one.
    #[arg(long, value_name = "N", value_delimiter = ',')]
    pub units: Vec<usize>,
    /// Read the pilot although the registered plan is not complete; this is recorded.
    #[arg(long)]
    pub peek: bool,
    /// Print as JSON.
    #[arg(long)]
    pub json: bool,
}

/// `avow reproduce`
#[derive(Debug, Args)]
pub struct Reproduce {
    /// A bundle, a spec, or what a spec has: a number (`stage.name[seed=3]`), a claim, an output, a stage.
    pub target: Option<String>,
    /// The spec, where the target is something in it.
    #[arg(long)]
    pub spec: Option<PathBuf>,
    /// Only so many members, drawn by `--nonce` in proportion to what they cost, with what they need.
    #[arg(long, value_name = "K", requires = "nonce")]
    pub sample: Option<std::num::NonZeroUsize>,
    /// A text of the reader's choice, which whoever made the record could not know.
    #[arg(long, value_name = "TEXT", requires = "sample")]
    pub nonce: Option<String>,
    /// CPU slots; all cores where nothing is said.
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub jobs: Option<u32>,
    /// Where to run: `local`, `worker:URL`; may be given several times.
    #[arg(long, value_name = "PLACE")]
    pub on: Vec<String>,
    /// Write what came of it as a record into this file, to be handed on; `avow verify` checks it.
    #[arg(long, value_name = "FILE", conflicts_with = "dry_run")]
    pub record: Option<PathBuf>,
    /// Sign the record with your SSH key: the signature lies beside it, with `.sig` behind its name.
    #[arg(long, requires = "record")]
    pub sign: bool,
    /// The SSH key to sign with; its public half will do where the agent holds it.
    #[arg(long, value_name = "FILE", requires = "record")]
    pub key: Option<PathBuf>,
    /// Keep the project in which it was made, as this new folder.
    #[arg(long, value_name = "FOLDER")]
    pub keep: Option<PathBuf>,
    /// Say what it would take and stop.
    #[arg(short = 'n', long)]
    pub dry_run: bool,
    /// Compare although the registered plan is not complete; this is recorded.
    #[arg(long)]
    pub peek: bool,
    /// Print as JSON.
    #[arg(long)]
    pub json: bool,
}

/// `avow bundle`
#[derive(Debug, Args)]
pub struct Bundle {
    #[command(flatten)]
    pub spec: SpecArg,
    /// Where to write it; by default the experiment's name with `.avow.zip` in this folder.
    #[arg(short, long)]
    pub output: Option<PathBuf>,
    /// Leave out outputs that can be made again and on which no claim rests directly.
    #[arg(long)]
    pub thin: bool,
    /// For blind review: without names, hosts, paths, signatures and git's identities. Beside it are written the bundle
    /// with names and the opening, which prove after the review whose it was: keep both.
    #[arg(long)]
    pub anonymous: bool,
    /// A further text to take out, e.g. of an institution; may be given several times.
    #[arg(long, value_name = "TEXT", requires = "anonymous")]
    pub without: Vec<String>,
    /// Write it although the registered plan is not complete; this is recorded.
    #[arg(long)]
    pub peek: bool,
    /// Print as JSON what was written.
    #[arg(long)]
    pub json: bool,
}

/// `avow verify`
#[derive(Debug, Args)]
pub struct Verify {
    /// A bundle, or the record of a reproduction.
    pub bundle: PathBuf,
    /// Keep what was unpacked, as a project in this new folder.
    #[arg(long, value_name = "FOLDER")]
    pub unpack: Option<PathBuf>,
    /// Set the exit code by the verdicts.
    #[arg(long)]
    pub check: bool,
    /// The opening of an anonymous bundle: with `--named`, proves what it was made from.
    #[arg(long, value_name = "FILE", requires = "named")]
    pub opening: Option<PathBuf>,
    /// The bundle with names that an anonymous one was made from.
    #[arg(long, value_name = "BUNDLE", requires = "opening")]
    pub named: Option<PathBuf>,
    /// Read up to so many entries.
    #[arg(long, value_name = "N")]
    pub max_entries: Option<u64>,
    /// Unpack up to so many bytes.
    #[arg(long, value_name = "BYTES")]
    pub max_size: Option<u64>,
    #[command(flatten)]
    pub trust: Trust,
    /// Print as JSON.
    #[arg(long)]
    pub json: bool,
}

/// The forms of a lineage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LineageForm {
    /// Indented lines.
    Text,
    /// Every node with what it rests on.
    Json,
    /// A flowchart for Markdown.
    Mermaid,
    /// For Graphviz.
    Dot,
    /// A picture.
    Svg,
}

/// `avow lineage`
#[derive(Debug, Args)]
pub struct Lineage {
    /// A number (`stage.name[seed=3]`), a claim, a digest, or any file on the disk, found by its content.
    #[arg(required_unless_present = "diff")]
    pub address: Option<String>,
    /// Say in what two numbers or members differ by what they rest on.
    #[arg(long, num_args = 2, value_names = ["A", "B"], conflicts_with_all = ["address", "why_not_registered"])]
    pub diff: Vec<String>,
    /// Say why it is not as registered.
    #[arg(long)]
    pub why_not_registered: bool,
    /// Write out every member, also many alike.
    #[arg(long)]
    pub all: bool,
    /// The form.
    #[arg(long, value_enum, default_value = "text")]
    pub format: LineageForm,
    /// The spec.
    #[arg(long)]
    pub spec: Option<PathBuf>,
    /// Read although the registered plan is not complete; this is recorded.
    #[arg(long)]
    pub peek: bool,
    /// The same as `--format json`.
    #[arg(long)]
    pub json: bool,
}

/// The forms of a plot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum PlotForm {
    /// For web pages; text in the reader's font.
    Svg,
    /// An image.
    Png,
    /// For papers; text that can be searched.
    Pdf,
}

/// `avow plot`
#[derive(Debug, Args)]
pub struct Plot {
    /// A claim or a measurement (`name` or `stage.name`); everything where nothing is named.
    pub what: Option<String>,
    /// The spec.
    #[arg(long)]
    pub spec: Option<PathBuf>,
    /// The file, or an existing folder; by default named by what it shows. Further plots get a number.
    #[arg(short, long, value_name = "PATH")]
    pub output: Option<PathBuf>,
    /// The form; by default that of the file's name, else SVG.
    #[arg(long, value_enum)]
    pub format: Option<PlotForm>,
    /// Dots per inch of an image.
    #[arg(long, value_name = "DPI", default_value_t = 300, value_parser = clap::value_parser!(u16).range(24..=2400))]
    pub dpi: u16,
    /// Draw although the registered plan is not complete; this is recorded.
    #[arg(long)]
    pub peek: bool,
    /// Print as JSON what was drawn.
    #[arg(long)]
    pub json: bool,
}

/// `avow report`
#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("what").args(["macros", "fill", "html"]))]
pub struct Report {
    /// The specs; all of this folder where none is named.
    pub specs: Vec<PathBuf>,
    /// Write the page about one experiment to this file; without any option, to its name with `.html`.
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Write a macro file for LaTeX (`.tex`, `.sty`) or Typst (`.typ`).
    #[arg(long, value_name = "FILE")]
    pub macros: Option<PathBuf>,
    /// With the keys and formats that this manuscript uses; may be given several times.
    #[arg(long = "for", value_name = "PAPER", requires = "macros")]
    pub papers: Vec<PathBuf>,
    /// Replace `{{ avow KEY }}` in this file by values.
    #[arg(long, value_name = "FILE", requires = "output")]
    pub fill: Option<PathBuf>,
    /// Where the filled file goes.
    #[arg(short, long, value_name = "FILE", requires = "fill")]
    pub output: Option<PathBuf>,
    /// Write values although a registered plan is not complete; this is recorded.
    #[arg(long)]
    pub peek: bool,
}

/// The forms of an audit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum AuditForm {
    /// Lines underlined, for people.
    Text,
    /// One JSON object.
    Json,
    /// SARIF 2.1.0, for code hosts.
    Sarif,
}

/// `avow audit`
#[derive(Debug, Args)]
pub struct Audit {
    /// The manuscript: .tex, .md, .qmd, .typ, .ipynb, .html, .txt or .pdf.
    pub paper: Option<PathBuf>,
    /// The specs whose values it may print; all of this folder where none is named.
    #[arg(long = "spec", value_name = "SPEC")]
    pub specs: Vec<PathBuf>,
    /// Show every number: also those that agree and those that are set aside, with the rule.
    #[arg(long)]
    pub all: bool,
    /// Set the exit code by what was found.
    #[arg(long)]
    pub check: bool,
    /// With --check: numbers that nothing stored explains count too.
    #[arg(long, requires = "check")]
    pub strict: bool,
    /// The form.
    #[arg(long, value_enum, default_value = "text")]
    pub format: AuditForm,
    /// The same as `--format json`.
    #[arg(long)]
    pub json: bool,
}

/// `avow store`
#[derive(Debug, Subcommand)]
pub enum Store {
    /// Read every byte again and name every problem.
    Check(StoreCheck),
    /// Make the index again from the journals.
    Rebuild(StoreArg),
    /// Remove what nothing holds: old attempts of no registered plan, no latest run and no pin.
    Collect(StoreCollect),
    /// Keep something whatever the policy says; without arguments, list what is kept.
    Pin(StorePin),
    /// Let a pin go.
    Unpin(StoreUnpin),
}

/// `avow store check`
#[derive(Debug, Args)]
pub struct StoreCheck {
    #[command(flatten)]
    pub store: StoreArg,
    /// Hash only this share of the blobs, drawn anew each time, e.g. `5%`; everything else is still compared.
    #[arg(long, value_name = "SHARE")]
    pub sample: Option<String>,
}

/// `avow store collect`
#[derive(Debug, Args)]
pub struct StoreCollect {
    #[command(flatten)]
    pub store: StoreArg,
    /// Show what would go and stop.
    #[arg(short = 'n', long)]
    pub dry_run: bool,
    /// Keep what is younger than this, e.g. `90d`; by default what `avow.toml` says, else `30d`.
    #[arg(long, value_name = "AGE")]
    pub keep: Option<String>,
}

/// `avow store pin`
#[derive(Debug, Args)]
pub struct StorePin {
    /// The pin's name.
    #[arg(requires = "what")]
    pub name: Option<String>,
    /// A member (`train[seed=3]`, its latest success) or a digest of 64 digits.
    pub what: Option<String>,
    /// Print as JSON.
    #[arg(long)]
    pub json: bool,
}

/// `avow store unpin`
#[derive(Debug, Args)]
pub struct StoreUnpin {
    /// The pin's name.
    pub name: String,
}

/// A project folder.
#[derive(Debug, Args)]
pub struct StoreArg {
    /// Any folder of the project.
    #[arg(default_value = ".")]
    pub folder: PathBuf,
    /// Print as JSON.
    #[arg(long)]
    pub json: bool,
}

/// `avow doctor`
#[derive(Debug, Args)]
pub struct Doctor {
    /// Print as JSON.
    #[arg(long)]
    pub json: bool,
}

/// `avow schema`
#[derive(Debug, Args)]
pub struct Schema {
    /// Print the table of keys as Markdown instead.
    #[arg(long)]
    pub keys: bool,
}

/// `avow op`
#[derive(Debug, Args)]
pub struct Op {
    /// The operation; without one, all are listed.
    pub name: Option<String>,
    /// A parameter, `key=value`; the value is JSON, or else text.
    #[arg(long, value_name = "KEY=VALUE")]
    pub with: Vec<String>,
    /// An input, `name=path`.
    #[arg(long, value_name = "NAME=PATH")]
    pub input: Vec<String>,
    /// An output, `name=path`.
    #[arg(long, value_name = "NAME=PATH")]
    pub output: Vec<String>,
    /// Where measurements go; by default they are printed.
    #[arg(long, value_name = "PATH")]
    pub measurements: Option<PathBuf>,
    /// The whole call as JSON, as the executor makes it.
    #[arg(long, value_name = "JSON", conflicts_with_all = ["with", "input", "output", "measurements"])]
    pub call: Option<String>,
    /// Print the signatures as JSON.
    #[arg(long)]
    pub json: bool,
}

/// `avow completions`
#[derive(Debug, Args)]
pub struct Completions {
    /// The shell.
    pub shell: clap_complete::Shell,
}
