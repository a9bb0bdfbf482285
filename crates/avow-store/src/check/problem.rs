//! The problems that a check can find, each with a file and a remedy.

use std::path::{Path, PathBuf};

use avow_model::digest::{BlobDigest, LineDigest, RegistrationDigest};

/// One thing that is wrong. Its text says what; [`Problem::file`] where; [`Problem::remedy`] what to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// Something among the blobs that is no blob.
    #[error("no blob, yet among the blobs")]
    Foreign {
        /// Where.
        file: PathBuf,
    },
    /// A blob whose bytes are not its name's.
    #[error("the blob is damaged: its bytes have the digest `{found}`")]
    CorruptBlob {
        /// Where.
        file: PathBuf,
        /// Its name.
        digest: BlobDigest,
        /// The digest of its bytes.
        found: BlobDigest,
    },
    /// A file that cannot be read.
    #[error("cannot be read: {reason}")]
    Unreadable {
        /// Where.
        file: PathBuf,
        /// Why.
        reason: String,
    },
    /// A blob that is not there.
    #[error("the blob is missing; it is {what} of {who}")]
    MissingBlob {
        /// Where it should be.
        file: PathBuf,
        /// Its name.
        digest: BlobDigest,
        /// What it is, e.g. "output `model`".
        what: String,
        /// Who needs it.
        who: String,
    },
    /// A blob that should hold a record and does not.
    #[error("the blob does not hold {what} of {who}: {reason}")]
    BadRecord {
        /// Where.
        file: PathBuf,
        /// What it should be.
        what: String,
        /// Who needs it.
        who: String,
        /// Why it is none.
        reason: String,
    },
    /// Data kept by reference that is gone or changed.
    #[error("kept by reference, and it {how}")]
    Origin {
        /// Where it lies.
        file: PathBuf,
        /// What happened to it.
        how: &'static str,
    },
    /// A journal that ends in a torn line.
    #[error("the last {bytes} bytes are a line that was cut off")]
    TornJournal {
        /// Where.
        file: PathBuf,
        /// How many bytes.
        bytes: usize,
    },
    /// A journal whose chain is broken.
    #[error("line {line} {reason}; nothing after it can be believed")]
    BrokenJournal {
        /// Where.
        file: PathBuf,
        /// The line, counted from 1.
        line: usize,
        /// What is wrong with it.
        reason: String,
    },
    /// A journal under another run's name.
    #[error("the journal is of run `{run}`, not of the one that its name says")]
    RenamedJournal {
        /// Where.
        file: PathBuf,
        /// Whose it is.
        run: String,
    },
    /// A journal that a ledger names and that is not here.
    #[error("the ledger names run `{run}`, whose journal is not in this store")]
    MissingJournal {
        /// The ledger.
        file: PathBuf,
        /// The run.
        run: String,
    },
    /// A journal with attempts of a run that no ledger was told of.
    #[error("it tells of attempts, and the ledger was told of no such run before they were made")]
    UnannouncedJournal {
        /// Where.
        file: PathBuf,
    },
    /// A journal that lacks a line that a ledger names.
    #[error("the ledger names line `{line}` of run `{run}`, which its journal does not hold")]
    CutJournal {
        /// The ledger.
        file: PathBuf,
        /// The run.
        run: String,
        /// The line.
        line: LineDigest,
    },
    /// A ledger that ends in a torn line.
    #[error("the last {bytes} bytes are a line that was cut off")]
    TornLedger {
        /// Where.
        file: PathBuf,
        /// How many bytes.
        bytes: usize,
    },
    /// A complete ledger line that does not verify.
    #[error("line {line} does not verify: {reason}")]
    LedgerLine {
        /// Where.
        file: PathBuf,
        /// The line, counted from 1.
        line: usize,
        /// What is wrong with it.
        reason: String,
    },
    /// A second chain of an experiment, in the store folder.
    #[error("this store holds another chain of the experiment, with {entries} entries")]
    StrayLedger {
        /// The ledger in the project.
        file: PathBuf,
        /// How many entries the other has.
        entries: usize,
    },
    /// A ledger line that somebody cites and that is not there.
    #[error("missing: head {head}, cited by {cited_by}")]
    MissingHead {
        /// Where it is cited.
        file: PathBuf,
        /// The line.
        head: RegistrationDigest,
        /// Who cites it first.
        cited_by: String,
    },
    /// An index that does not equal the journals.
    #[error("the index lacks {lacking} and has {surplus} more than the journals say")]
    IndexDiffers {
        /// The index.
        file: PathBuf,
        /// Attempts it lacks or has wrong.
        lacking: usize,
        /// Attempts that no journal has in this form.
        surplus: usize,
    },
}

impl Problem {
    /// The file or folder it is about.
    pub fn file(&self) -> &Path {
        match self {
            Problem::Foreign { file }
            | Problem::CorruptBlob { file, .. }
            | Problem::Unreadable { file, .. }
            | Problem::MissingBlob { file, .. }
            | Problem::BadRecord { file, .. }
            | Problem::Origin { file, .. }
            | Problem::TornJournal { file, .. }
            | Problem::BrokenJournal { file, .. }
            | Problem::RenamedJournal { file, .. }
            | Problem::MissingJournal { file, .. }
            | Problem::UnannouncedJournal { file }
            | Problem::CutJournal { file, .. }
            | Problem::TornLedger { file, .. }
            | Problem::LedgerLine { file, .. }
            | Problem::StrayLedger { file, .. }
            | Problem::MissingHead { file, .. }
            | Problem::IndexDiffers { file, .. } => file,
        }
    }

    /// Whether evidence is damaged or missing; the rest is litter, or heals with the next command.
    pub fn is_damage(&self) -> bool {
        !matches!(
            self,
            Problem::Foreign { .. }
                | Problem::Origin { .. }
                | Problem::TornJournal { .. }
                | Problem::TornLedger { .. }
                | Problem::StrayLedger { .. }
                | Problem::IndexDiffers { .. }
        )
    }

    /// What to do about it.
    pub fn remedy(&self) -> &'static str {
        match self {
            Problem::Foreign { .. } => "move the file out of the store",
            Problem::CorruptBlob { .. } | Problem::BadRecord { .. } => {
                "the next run moves it aside and makes it again; or restore it from a copy of the store"
            }
            Problem::Unreadable { .. } => "check the permissions and the disk, then check again",
            Problem::MissingBlob { .. } => {
                "restore it from a copy of the store, or run the experiment again: what needs it counts as not made"
            }
            Problem::Origin { .. } => {
                "put back what was there; or run the experiment again: changed data are another input"
            }
            Problem::TornJournal { .. } => {
                "run the experiment again: it goes on with the run and cuts the torn line"
            }
            Problem::BrokenJournal { .. } | Problem::CutJournal { .. } => {
                "restore the journal from a copy; without one, its run is no evidence"
            }
            Problem::RenamedJournal { .. } => "give the file its run's name again",
            Problem::MissingJournal { .. } => {
                "restore the journal from a copy, or from the store where the run was made"
            }
            Problem::UnannouncedJournal { .. } => {
                "find out who put it there: a run writes to the ledger before it carries anything out; or restore the ledger"
            }
            Problem::TornLedger { .. } => "nothing: the next entry replaces the torn line",
            Problem::LedgerLine { .. } | Problem::MissingHead { .. } => {
                "restore the ledger from version control or a copy"
            }
            Problem::StrayLedger { .. } => {
                "keep both: runs made here before the registration came stay counted beside it"
            }
            Problem::IndexDiffers { .. } => "rebuild the index: `avow store rebuild`",
        }
    }
}
