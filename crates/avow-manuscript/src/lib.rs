//! Numbers in manuscripts: found, set aside by rules, classed against stored values, and recomputed where the text
//! itself says how.
//!
//! The way is one: a file becomes running text that knows its places ([`read`]), numbers are found in it ([`number`]),
//! those that are no results are set aside ([`rules`]), the rest is compared with what is stored ([`class`]), and
//! statistics are recomputed ([`check`]). What is stored is behind the trait [`Stock`]; bindings and macro files are
//! in [`binding`] and [`macros`]. Absent: files, stores, words for people.

pub mod binding;
pub mod check;
pub mod class;
pub mod index;
pub mod macros;
pub mod number;
pub mod printed;
pub mod read;
pub mod rules;
pub mod text;
mod words;

pub use check::Check;
pub use class::{Class, Finding, Stock};
pub use index::{Kind, Values};
pub use number::{Number, Role};
pub use printed::{Printed, Rounding};
pub use read::{Files, Format};
pub use rules::Rule;
pub use text::{Flat, Span};

/// A manuscript, its numbers and what the statistics in it come to.
#[derive(Clone, Debug)]
pub struct Manuscript {
    /// Its text.
    pub flat: Flat,
    /// Its numbers in order, those that are set aside included.
    pub numbers: Vec<Number>,
    /// Statistics that were recomputed.
    pub checks: Vec<Check>,
}

impl Manuscript {
    /// Reads a manuscript and finds its numbers.
    pub fn read(path: &str, text: String, format: Format, files: &dyn Files) -> Manuscript {
        let flat = read::read(path, text, format, files);
        let mut numbers = number::find(&flat.text);
        rules::apply(&flat, format.is_plain(), &mut numbers);
        let checks = check::checks(&flat, &mut numbers);
        Manuscript { flat, numbers, checks }
    }
}
