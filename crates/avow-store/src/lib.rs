//! Every file under the store folder `.avow/`, and nothing else.
//!
//! The crate keeps evidence: bytes under the names that their digests give them ([`blob`]), what each run did
//! ([`journal`]), what was registered ([`ledger`]), and a fast index over all that ([`record`]), which can be
//! deleted at any time ([`index`]). It brings users' files in ([`ingest`]) and lays trees out on disk again
//! ([`materialise`]), and it can look at everything anew and say what is wrong ([`check`]).
//!
//! Three rules hold everywhere. *Truth is plain files*: blobs, journals and ledgers, readable with other tools;
//! nothing has to be believed because the index says so. *A name appears only when its content is whole*: bytes
//! are written under a temporary name and renamed, so that a crash leaves either the old state or the new one,
//! or a torn last line, which the next writer cuts. *Nothing is deleted silently*: a blob that does not verify
//! is moved aside, by a call that says so.
//!
//! Deliberately absent: async, networks, processes, the order in which two effects happen (the engine's), any
//! judgement of what a number means, any sentence for a person beyond the text of an error.

mod action_lock;
mod disk;
mod embargo;
mod error;
mod files;
mod kernel;
mod lines;
mod mount;

pub mod aliases;
pub mod blob;
pub mod cache;
pub mod catalogue;
pub mod check;
pub mod collect;
pub mod collected;
#[cfg(debug_assertions)]
pub mod faults;
pub mod foreign;
pub mod hits;
pub mod index;
pub mod ingest;
pub mod journal;
pub mod ledger;
pub mod lock;
pub mod materialise;
pub mod meter;
pub mod observed;
pub mod pins;
pub mod presence;
pub mod probe;
pub mod project;
pub mod proofs;
pub mod receipt;
pub mod record;
pub mod reference;
pub mod shared_index;
pub mod space;
pub mod stamp;

pub use action_lock::ActionLocks;
pub use aliases::{Alias, Aliases};
pub use blob::{BlobStore, FileBlobs, Intake, MemoryBlobs};
pub use cache::FileStamps;
pub use catalogue::Catalogue;
pub use error::{Fault, StoreError};
pub use files::nonce;
pub use hits::{Hits, Stood};
pub use ingest::{Ingest, IngestError};
pub use journal::JournalWriter;
pub use ledger::LedgerFile;
pub use lock::RunLock;
pub use observed::Observed;
pub use presence::{Presence, PresenceFile};
pub use project::Project;
pub use proofs::Proofs;
pub use receipt::Receipt;
pub use record::{MemoryIndex, Position, RecordStore, Recorded, SledIndex};
pub use shared_index::SharedIndex;
pub use stamp::{FileStamp, MemoryStamps, StampCache};
