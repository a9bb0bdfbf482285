//! `\begin` and `\end`.

use super::commands::drop_arguments;
use super::{Input, Reader, argument, optional};
use crate::text::Zone;

/// Environments that show their text as it is.
const CODE: &[&str] = &["verbatim", "verbatim*", "Verbatim", "lstlisting", "minted", "alltt"];
/// Environments that print no text.
const HIDDEN: &[&str] = &["comment", "tikzpicture", "filecontents", "filecontents*", "pgfpicture"];
/// Environments with arguments that print nothing, and how many.
const ARGUMENTS: &[(&str, usize)] = &[
    ("tabular", 1),
    ("array", 1),
    ("tabular*", 2),
    ("tabularx", 2),
    ("tabulary", 2),
    ("longtable", 1),
    ("tblr", 1),
    ("minipage", 1),
    ("multicols", 1),
    ("wrapfigure", 2),
    ("wraptable", 2),
    ("adjustbox", 1),
    ("subfigure", 1),
    ("subtable", 1),
    ("list", 2),
    ("thebibliography", 1),
    ("spacing", 1),
];
const MATH: &[&str] =
    &["equation", "align", "gather", "multline", "eqnarray", "displaymath", "math", "alignat", "flalign"];

impl Reader<'_> {
    pub(super) fn begin(&mut self, input: Input<'_>, at: usize, end: usize) -> usize {
        let Some((found, next)) = argument(input.text, end) else { return end };
        let name = &input.text[found];
        if CODE.contains(&name) || HIDDEN.contains(&name) {
            let close = format!("\\end{{{name}}}");
            let to = input.text[next..].find(&close).map_or(input.text.len(), |to| next + to);
            if CODE.contains(&name) {
                let from = self.flat.len();
                self.put(input, next..to);
                self.flat.mark(Zone::Code, from);
            }
            return (to + close.len()).min(input.text.len());
        }
        let end = match ARGUMENTS.iter().find(|(environment, _)| *environment == name) {
            Some((_, count)) => drop_arguments(input.text, next, *count),
            None => optional(input.text, next).map_or(next, |(_, next)| next),
        };
        self.instead(input, at..next, "\n");
        if MATH.contains(&name.trim_end_matches('*')) {
            self.math = true;
        }
        match name {
            "thebibliography" => self.whole(input, name, end, Zone::Bibliography),
            "tabular" | "tabular*" | "tabularx" | "tabulary" | "longtable" | "array" | "tblr" => {
                self.whole(input, name, end, Zone::Table)
            }
            _ => end,
        }
    }

    /// Goes through an environment to its end and marks what it printed.
    fn whole(&mut self, input: Input<'_>, name: &str, from: usize, zone: Zone) -> usize {
        let (open, close) = (format!("\\begin{{{name}}}"), format!("\\end{{{name}}}"));
        let (mut depth, mut at) = (1usize, from);
        let end = loop {
            let Some(to) = input.text[at..].find(&close).map(|to| at + to) else { break input.text.len() };
            depth += input.text[at..to].matches(&open).count();
            depth -= 1;
            if depth == 0 {
                break to;
            }
            at = to + close.len();
        };
        self.zone(input, from..end, zone);
        (end + close.len()).min(input.text.len())
    }

    pub(super) fn end(&mut self, input: Input<'_>, end: usize) -> usize {
        let Some((found, next)) = argument(input.text, end) else { return end };
        if MATH.contains(&input.text[found].trim_end_matches('*')) {
            self.math = false;
        }
        self.instead(input, end..next, "\n");
        next
    }
}
