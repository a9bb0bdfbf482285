//! How long a long paper takes against a large store: `cargo bench -p avow-manuscript`.
//!
//! Sixty pages with 2,000 numbers, half of which are stored, against 1,000,000 measurements and 60,000 summaries.
//! Budget: two seconds for everything that is timed here, which leaves out reading the store itself.
#![expect(clippy::print_stdout, clippy::disallowed_methods, reason = "a measurement prints times")]

use std::fmt::Write as _;
use std::time::Instant;

use avow_manuscript::class::{Resolved, class};
use avow_manuscript::{Format, Kind, Manuscript, Stock, Values};

struct Shelf;

impl Stock for Shelf {
    fn name(&self, _: Kind, _: usize) -> &str {
        "accuracy"
    }

    fn resolve(&self, _: &str) -> Resolved {
        Resolved::Unknown
    }
}

/// Numbers between 0 and 1 that look random and are the same in every run.
fn draws(count: usize) -> Vec<f64> {
    let mut state = 88_172_645_463_325_252u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) as f64 / (1u64 << 53) as f64
    };
    (0..count).map(|_| next()).collect()
}

fn paper(stored: &[f64]) -> String {
    let mut text = String::from("\\documentclass{article}\n\\begin{document}\n");
    for index in 0..1000 {
        let value = stored[index * 17 % stored.len()];
        // About three hundred characters for each pair of numbers: sixty pages.
        let filler = "The rest of this sentence stands for the prose that a paper has between its results and means nothing. ";
        let _ = writeln!(
            text,
            "{filler}{filler}With decay the accuracy was {value:.4}, against ${:.3} \\pm 0.01$ (see Section~{}).\n",
            value * 0.7,
            index % 9
        );
    }
    text.push_str("\\end{document}\n");
    text
}

fn main() {
    let measured = draws(1_000_000);
    let summaries = draws(60_000);
    let text = paper(&measured);
    let bytes = text.len();
    let start = Instant::now();
    let values = Values::new(|kind| match kind {
        Kind::Summary => &summaries,
        Kind::Measurement => &measured,
        Kind::Claim | Kind::Design => &[],
    });
    let indexed = start.elapsed();
    let manuscript = Manuscript::read("paper.tex", text, Format::Latex, &());
    let read = start.elapsed();
    let findings = class(&manuscript, &values, &Shelf);
    let classed = start.elapsed();
    let matched = findings.iter().filter(|f| f.class == avow_manuscript::Class::Matched).count();
    println!("{bytes} bytes, {} numbers, {matched} matched", findings.len());
    println!(
        "index {:.3} s, read {:.3} s, class {:.3} s, all {:.3} s",
        indexed.as_secs_f64(),
        (read - indexed).as_secs_f64(),
        (classed - read).as_secs_f64(),
        classed.as_secs_f64()
    );
}
