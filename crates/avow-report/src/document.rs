//! What a report says.

use crate::plot::Plot;

/// A name and what there is to say under it.
pub type Pair = (String, String);

/// A report, top to bottom.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Document {
    /// The experiment's name.
    pub experiment: String,
    /// Its title or question, as its author wrote it.
    pub title: Option<String>,
    /// One sentence: confirmatory, exploratory, and what that rests on.
    pub standing: String,
    /// Whether it is confirmatory: the sentence above is set apart by it.
    pub confirmatory: bool,
    /// What is damaged; told before anything else.
    pub damage: Vec<String>,
    /// The registration: its name, its ledger, its proofs.
    pub registration: Vec<Pair>,
    /// Axes with their values.
    pub axes: Vec<Pair>,
    /// Stages.
    pub stages: Table,
    /// Claims in their order.
    pub claims: Vec<Claim>,
    /// Every selected measurement that a claim above does not already show.
    pub plots: Vec<Figure>,
    /// What differs from what was registered, in the order by which claims name it, from 1.
    pub deviations: Vec<String>,
    /// Cells, attempts, failures, other experiments on the same data.
    pub denominators: Vec<Pair>,
    /// The table of measurements; the first column holds what rows are linked by.
    pub measurements: Table,
    /// How many rows the whole table has, where it is longer than what is shown.
    pub of: usize,
    /// Machines, programs, packages.
    pub environment: Table,
    /// What it took.
    pub cost: Vec<Pair>,
    /// Where numbers come from: an anchor, a heading, and the chain as indented lines.
    pub lineage: Vec<Source>,
    /// Evidence of others, a line each.
    pub foreign: Vec<String>,
    /// Who wrote the page: the program and its version.
    pub made_by: String,
}

/// A claim and its verdicts.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Claim {
    /// Its name.
    pub name: String,
    /// Its tier.
    pub tier: String,
    /// What it says.
    pub says: Option<String>,
    /// A verdict per value of `per`.
    pub verdicts: Vec<Verdict>,
    /// Everything behind it, as lines of text.
    pub explained: String,
    /// Its plots.
    pub plots: Vec<Figure>,
}

/// One verdict.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Verdict {
    /// Which value of `per`, if any.
    pub member: String,
    /// `Supported`, `Refuted`, …; empty for a description.
    pub word: String,
    /// Estimate, interval, p, n and reason, as on the terminal.
    pub numbers: String,
    /// Deviations that concern it, counted from 1.
    pub deviations: Vec<usize>,
    /// Anchors in the lineage of the files it rests on, with what to call them.
    pub sources: Vec<Pair>,
}

/// A plot with its caption.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// What it shows.
    pub plot: Plot,
    /// One or two sentences: what a mark is, what lines mean, how many values.
    pub caption: String,
}

/// Rows of text under headings.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    /// The headings.
    pub header: Vec<String>,
    /// The rows, each as long as the headings.
    pub rows: Vec<Row>,
}

/// A row, and where its number comes from.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Row {
    /// The cells.
    pub cells: Vec<String>,
    /// The anchor of its lineage.
    pub anchor: Option<String>,
}

/// Where something comes from.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Source {
    /// The anchor by which it is linked.
    pub anchor: String,
    /// What it is.
    pub heading: String,
    /// The chain: depth and text.
    pub steps: Vec<(usize, String)>,
}
