//! What tests share: a project folder to run the real program in, and plans drawn in one line.
//!
//! [`Sandbox`] is for end-to-end tests: a temporary project, the program started with an environment that
//! holds nothing of the caller's but the search path, and its output with everything that varies
//! ([`normal`]) replaced, ready for a snapshot. [`plan()`] is for planner tests: `a, b -> c` instead of thirty
//! lines of records. [`History`] is what the journals of a sandbox say was done.
//! [`Machine`] is another machine with workers, [`Venv`] a virtual environment of Python, [`Image`] a container image of
//! programs of this machine, [`Validators`] the public programs that judge exports.
//!
//! A dev-dependency only; it panics where a test cannot go on, with the reason. Deliberately absent: fakes of
//! stores and executors, which live beside the traits they stand for, and any assertion: a test says itself
//! what it expects.

pub mod authority;
mod history;
mod image;
mod machine;
pub mod normal;
mod notation;
mod sandbox;
mod validators;
mod venv;

pub use history::{History, Past};
pub use image::Image;
pub use machine::Machine;
pub use notation::plan;
pub use sandbox::{Run, Running, Sandbox};
pub use validators::Validators;
pub use venv::Venv;
