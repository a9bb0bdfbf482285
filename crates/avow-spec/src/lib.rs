//! From YAML text to a plan, with a place in every complaint.
pub mod diagnostic;
mod command;
mod document;
mod full;
pub mod experiment;
mod keys;
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
pub use full::full;
pub use schema::schema;
pub use experiment::{Experiment, Read, read};
pub use lower::{Lowered, lower};
pub use reach::Reach;
pub use world::{Found, World};
