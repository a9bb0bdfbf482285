//! A report as one HTML page that needs no network, no script and no other file.
//!
//! [`Document`] is what is to be said, in words and numbers that were chosen elsewhere; [`page()`] lays it out;
//! [`plot`] draws, and [`graph`] what rests on what. Text is escaped by the template library in every place, so that a spec, a log or a bundle of
//! somebody else can put no markup into the page. Absent: reading anything, clocks, the choice of what to show.

pub mod document;
pub mod graph;
pub mod page;
pub mod plot;

pub use document::Document;
pub use graph::Graph;
pub use page::page;
pub use plot::{Plot, PlotError};
