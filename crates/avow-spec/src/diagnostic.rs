//! Complaints with their place, and the nearest known word.
//!
//! A diagnostic is a value: what is wrong, where (in bytes of the spec), what else to look at, and what to do
//! about it. Turning it into coloured, underlined text is the command line's work; [`plain`] is the stable
//! form that tests compare.

use std::fmt::Write as _;
use std::ops::Range;

/// Whether a spec with this problem can be planned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// It cannot.
    Error,
    /// It can; a person should look.
    Warning,
    /// Nothing is wrong; it is worth knowing.
    Note,
}

impl Severity {
    /// `error`, `warning` or `note`.
    pub fn word(self) -> &'static str {
        match self {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Note => "note",
        }
    }
}

/// One problem of a spec.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// How bad it is.
    pub severity: Severity,
    /// A stable word for the kind of problem, e.g. `unknown-key`.
    pub code: &'static str,
    /// What is wrong: a lower-case sentence without a full stop.
    pub message: String,
    /// Where, in bytes of the spec's text.
    pub span: Range<usize>,
    /// Other places that matter, each with a few words.
    pub labels: Vec<(Range<usize>, String)>,
    /// What to do about it.
    pub hint: Option<String>,
}

impl Diagnostic {
    /// An error.
    pub fn error(code: &'static str, span: Range<usize>, message: impl Into<String>) -> Self {
        let (message, labels) = (message.into(), Vec::new());
        Self { severity: Severity::Error, code, message, span, labels, hint: None }
    }

    /// A warning.
    pub fn warning(code: &'static str, span: Range<usize>, message: impl Into<String>) -> Self {
        Self { severity: Severity::Warning, ..Self::error(code, span, message) }
    }

    /// Something worth knowing.
    pub fn note(code: &'static str, span: Range<usize>, message: impl Into<String>) -> Self {
        Self { severity: Severity::Note, ..Self::error(code, span, message) }
    }

    /// The same with another place to look at.
    #[must_use]
    pub fn label(mut self, span: Range<usize>, words: impl Into<String>) -> Self {
        self.labels.push((span, words.into()));
        self
    }

    /// The same with advice.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// The same with advice where there is some.
    #[must_use]
    pub fn maybe_hint(mut self, hint: Option<String>) -> Self {
        self.hint = hint.or(self.hint);
        self
    }

    /// Whether it is an error.
    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }
}

/// How many diagnostics are kept; a spec with more has one cause, not two hundred.
const MOST: usize = 200;

/// A bounded collection that says nothing twice.
#[derive(Debug, Default)]
pub(crate) struct Diagnostics {
    list: Vec<Diagnostic>,
    left_out: usize,
}

impl Diagnostics {
    pub(crate) fn push(&mut self, diagnostic: Diagnostic) {
        let known = |d: &Diagnostic| d.span == diagnostic.span && d.code == diagnostic.code;
        if self.list.iter().any(|d| known(d) && d.message == diagnostic.message) {
            return;
        }
        // Warnings must not push errors out, so each kind has its own share.
        let same = self.list.iter().filter(|d| d.severity == diagnostic.severity).count();
        if same < MOST {
            self.list.push(diagnostic);
        } else {
            self.left_out += 1;
        }
    }

    /// Whether no further error would be kept, so that its hint and place need not be worked out.
    pub(crate) fn full(&self) -> bool {
        self.list.len() >= MOST && self.list.iter().filter(|d| d.is_error()).count() >= MOST
    }

    /// Errors so far, those that are not kept included.
    pub(crate) fn errors(&self) -> usize {
        self.left_out + self.list.iter().filter(|d| d.is_error()).count()
    }

    pub(crate) fn any_error(&self) -> bool {
        self.list.iter().any(Diagnostic::is_error)
    }

    /// The diagnostics by place; the last says how many were left out.
    pub(crate) fn finish(mut self) -> Vec<Diagnostic> {
        self.list.sort_by_key(|d| (d.span.start, d.span.end));
        if self.left_out > 0 {
            let message = format!("{} more problems are not shown", self.left_out);
            self.list.push(Diagnostic::warning("too-many", 0..0, message));
        }
        self.list
    }
}

/// Longest word for which a near one is looked for, and most candidates that are compared with it: hints
/// must not make a hostile spec slow.
const LONGEST: usize = 64;
const CANDIDATES: usize = 500;

/// The known word that was probably meant.
pub(crate) fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if word.len() > LONGEST {
        return None;
    }
    let lower = word.to_lowercase();
    let scored = known.into_iter().take(CANDIDATES).filter(|k| k.len() <= LONGEST).map(|candidate| {
        let other = candidate.to_lowercase();
        (strsim::damerau_levenshtein(&lower, &other), strsim::jaro_winkler(&lower, &other), candidate)
    });
    let (distance, likeness, best) =
        scored.min_by(|a, b| a.0.cmp(&b.0).then(b.1.total_cmp(&a.1)).then(a.2.cmp(b.2)))?;
    let allowed = (word.chars().count().max(best.chars().count()) / 3).max(1);
    (distance <= allowed || (likeness > 0.9 && distance <= allowed + 2)).then_some(best)
}

/// `did you mean …` for the nearest word, if one is near.
pub(crate) fn did_you_mean<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<String> {
    nearest(word, known).map(|near| format!("did you mean `{near}`?"))
}

/// A few names in backticks for a message: `` `a`, `b` and 3 more ``.
pub(crate) fn listed<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    const SHOWN: usize = 8;
    let all: Vec<&str> = names.into_iter().collect();
    let shown: Vec<String> = all.iter().take(SHOWN).map(|name| format!("`{name}`")).collect();
    match (all.len(), shown.split_last()) {
        (_, None) => "none".to_owned(),
        (n, _) if n > SHOWN => format!("{} and {} more", shown.join(", "), n - SHOWN),
        (1, Some((last, _))) => last.clone(),
        (_, Some((last, others))) => format!("{} and {last}", others.join(", ")),
    }
}

/// Line and column, both from 1 and the column in characters, of a byte.
pub fn line_and_column(text: &str, byte: usize) -> (usize, usize) {
    let mut at = byte.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    let before = &text[..at];
    let start = before.rfind('\n').map_or(0, |i| i + 1);
    (before.matches('\n').count() + 1, before[start..].chars().count() + 1)
}

/// All diagnostics as plain, stable text, one block each.
pub fn plain(diagnostics: &[Diagnostic], text: &str) -> String {
    let mut out = String::new();
    for d in diagnostics {
        let (line, column) = line_and_column(text, d.span.start);
        let (severity, code) = (d.severity.word(), d.code);
        writeln!(out, "{severity}[{code}] {line}:{column}: {}", d.message).expect("text grows");
        if let Some(under) = text.get(d.span.clone()).filter(|t| !t.is_empty()) {
            let mut shown: String = under.lines().next().unwrap_or_default().chars().take(60).collect();
            if shown.len() < under.len() {
                shown.push('…');
            }
            writeln!(out, "  at: {shown}").expect("text grows");
        }
        for (span, words) in &d.labels {
            let (line, column) = line_and_column(text, span.start);
            writeln!(out, "  see {line}:{column}: {words}").expect("text grows");
        }
        if let Some(hint) = &d.hint {
            writeln!(out, "  hint: {hint}").expect("text grows");
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelt_word_has_a_neighbour_and_a_strange_one_has_none() {
        let known = ["stages", "claims", "axes", "params"];
        assert_eq!(nearest("stags", known), Some("stages"));
        assert_eq!(nearest("claim", known), Some("claims"));
        assert_eq!(nearest("weather", known), None);
        assert_eq!(nearest("a", []), None);
    }

    #[test]
    fn columns_count_characters() {
        assert_eq!(line_and_column("ä: b\nc: d", 3), (1, 3));
        assert_eq!(line_and_column("ä: b\nc: d", 6), (2, 1));
    }

    #[test]
    fn names_are_listed_as_a_person_would() {
        assert_eq!(listed(["a"]), "`a`");
        assert_eq!(listed(["a", "b", "c"]), "`a`, `b` and `c`");
        assert_eq!(listed([]), "none");
    }
}
