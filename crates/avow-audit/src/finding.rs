//! What is damaged: evidence that is not what its digest, chain or record says.
//!
//! A finding is never an error and never a verdict. Reading goes on around it, the claims that needed the
//! damaged bytes become Void, and the tool as a whole answers with the exit code for damaged evidence. Absent:
//! sentences. A finding carries a code and the digests and names that a sentence needs.

use avow_model::digest::{ActionDigest, AttemptDigest, BlobDigest, PlanDigest, RegistrationDigest};
use serde::Serialize;

/// One thing that does not verify.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case", tag = "finding")]
pub enum Finding {
    /// A stored blob whose bytes have another digest.
    DamagedBlob {
        /// The digest it is stored under.
        blob: BlobDigest,
        /// The digest of the bytes found.
        found: BlobDigest,
        /// Where it belongs, e.g. `train[seed=1].result`.
        used: String,
    },
    /// A blob that a record promises and the store lacks.
    MissingBlob {
        /// Its digest.
        blob: BlobDigest,
        /// Where it belongs.
        used: String,
    },
    /// Bytes that should be a record and are none.
    BadRecord {
        /// The digest of the bytes.
        blob: BlobDigest,
        /// Where it belongs.
        used: String,
        /// What the reader said.
        reason: String,
    },
    /// A trace names an attempt that is not a sound record of this action.
    WrongAttempt {
        /// The action asked for.
        action: ActionDigest,
        /// The attempt named.
        attempt: AttemptDigest,
        /// What does not fit.
        fault: AttemptFault,
    },
    /// An attempt that no journal holds.
    Unjournalled {
        /// The attempt.
        attempt: AttemptDigest,
    },
    /// A damaged line of a journal.
    JournalLine {
        /// The run.
        run: String,
        /// The line, from 1.
        line: usize,
        /// Why.
        reason: String,
    },
    /// Bytes after the last complete line of a journal: a write that was cut off. Harmless on its own.
    JournalTorn {
        /// The run.
        run: String,
        /// How many bytes.
        bytes: usize,
    },
    /// A journal that the ledger mentions and nobody has.
    MissingJournal {
        /// The run.
        run: String,
    },
    /// A journal with attempts that the ledger was not told of before they were made.
    Unannounced {
        /// The run.
        run: String,
    },
    /// A journal that lacks the line which the ledger saw.
    JournalCut {
        /// The run.
        run: String,
        /// The digest of the line that is gone.
        line: String,
    },
    /// A damaged line of the ledger.
    LedgerLine {
        /// The line, from 1.
        line: usize,
        /// Why.
        reason: String,
    },
    /// Bytes after the last complete line of the ledger. Harmless on its own.
    LedgerTorn {
        /// How many bytes.
        bytes: usize,
    },
    /// A ledger head that something cites and the ledger lacks: lines were cut from its end.
    MissingHead {
        /// The head.
        head: RegistrationDigest,
        /// Who cites it: an attempt's digest, or a run.
        cited_by: String,
    },
    /// A registration that names no plan.
    BadRegistration {
        /// The ledger line.
        entry: RegistrationDigest,
        /// What is wrong with it.
        reason: String,
    },
    /// A registered plan whose record is not in the store.
    MissingPlan {
        /// The plan.
        plan: PlanDigest,
    },
}

/// What is wrong with an attempt's record.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum AttemptFault {
    /// The trace names it and nobody has it.
    Absent,
    /// The record found has another digest.
    OtherDigest,
    /// It is an attempt at another action.
    OtherAction,
    /// It claims success without these required outputs.
    WithoutOutputs(Vec<String>),
    /// It wrote a folder where a file was declared, or the reverse.
    OtherKind(String),
}

impl Finding {
    /// The code of the finding, one kebab-case word of the interface.
    pub fn word(&self) -> &'static str {
        match self {
            Finding::DamagedBlob { .. } => "damaged-blob",
            Finding::MissingBlob { .. } => "missing-blob",
            Finding::BadRecord { .. } => "bad-record",
            Finding::WrongAttempt { .. } => "wrong-attempt",
            Finding::Unjournalled { .. } => "unjournalled",
            Finding::JournalLine { .. } => "journal-line",
            Finding::JournalTorn { .. } => "journal-torn",
            Finding::MissingJournal { .. } => "missing-journal",
            Finding::Unannounced { .. } => "unannounced",
            Finding::JournalCut { .. } => "journal-cut",
            Finding::LedgerLine { .. } => "ledger-line",
            Finding::LedgerTorn { .. } => "ledger-torn",
            Finding::MissingHead { .. } => "missing-head",
            Finding::BadRegistration { .. } => "bad-registration",
            Finding::MissingPlan { .. } => "missing-plan",
        }
    }

    /// Whether evidence is damaged. A torn last line is not damage: the next writer cuts it.
    pub fn is_damage(&self) -> bool {
        !matches!(self, Finding::JournalTorn { .. } | Finding::LedgerTorn { .. })
    }
}
