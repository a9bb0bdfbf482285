//! From YAML text to a plan, with a place in every complaint.
//!
//! A spec is read twice as one thing: as it was typed and as it is meant. [`read`] builds a located tree and
//! checks its form against the key tables; [`lower()`] resolves names, fills in defaults and gives a
//! [`avow_model::plan::Plan`]. Both collect every problem they find, each with its place, so that a person
//! mends a spec once and not ten times. [`full()`] writes the plan back with every default spelled out, and
//! [`schema()`] and [`keys_markdown`] write the tables for editors and readers.
//!
//! Deliberately absent: files, environment, processes, clocks, threads. What must be known of the world
//! ([`World`]: which files exist, what they contain, which programs there are) the caller answers, with
//! digests of zeros where only a check is wanted. Absent too: words for a terminal; a [`Diagnostic`] is a
//! value and the command line renders it.
//!
//! No spec may crash, hang or exhaust memory. Nesting, aliases and sizes are bounded while the tree is built
//! ([`tree`](mod@tree)), recursion never goes deeper than the tree, and no step expands a product of axes.
//!
//! ```
//! let text = "avow: 1\nexperiment: hello\nstages:\n  one: {run: echo hi}\n";
//! let read = avow_spec::read(text);
//! assert!(read.diagnostics.is_empty());
//! assert_eq!(read.experiment.unwrap().name(), Some("hello"));
//! ```

mod command;
pub mod diagnostic;
mod document;
pub mod experiment;
mod full;
mod keys;
pub mod lock;
pub mod lower;
mod python;
pub mod reach;
pub mod scalar;
mod schema;
mod secrets;
mod shape;
pub mod tree;
pub mod units;
pub mod world;

pub use diagnostic::{Diagnostic, Severity, plain};
pub use document::keys_markdown;
pub use experiment::{Experiment, Read, read};
pub use full::full;
pub use lower::{Lowered, lower};
pub use reach::Reach;
pub use schema::schema;
pub use world::{Answered, Asked, Found, World};
