//! Diagnostics of a spec as a person reads them: the line, underlined, with a hint.

use std::collections::BTreeMap;
use std::ops::Range;

use annotate_snippets::renderer::DecorStyle;
use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};
use avow_spec::{Diagnostic, Severity};
use serde::Serialize;

/// So many warnings of one kind are shown of a spec. More of them say the same about more stages.
const SHOWN: usize = 5;

/// The diagnostics of a spec: every error, and of each kind of warning the first few and how many there are.
pub fn render_spec(path: &str, text: &str, diagnostics: &[Diagnostic], colour: bool) -> String {
    let mut counts: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    let shown = diagnostics.iter().filter(|diagnostic| {
        let count = counts.entry((diagnostic.severity.word(), diagnostic.code)).or_default();
        *count += 1;
        diagnostic.is_error() || *count <= SHOWN
    });
    let mut out = render(path, text, shown, colour);
    for ((word, code), count) in counts.into_iter().filter(|((word, _), _)| *word != Severity::Error.word()) {
        if let Some(more @ 1..) = count.checked_sub(SHOWN) {
            let hint = format!("`avow check {path} --json` lists all");
            out.push_str(&format!("{word}[{code}]: {more} more of this kind\n  = hint: {hint}\n\n"));
        }
    }
    out
}

/// All diagnostics of one file, rendered one after the other.
pub fn render<'a>(
    path: &str,
    text: &str,
    diagnostics: impl IntoIterator<Item = &'a Diagnostic>,
    colour: bool,
) -> String {
    let renderer = if colour { Renderer::styled() } else { Renderer::plain() };
    let renderer = renderer.decor_style(DecorStyle::Ascii);
    let lines: Vec<usize> =
        std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect();
    let mut out = String::new();
    for diagnostic in diagnostics {
        let window = Window::of(text, &lines, diagnostic);
        out.push_str(&renderer.render(&[group(path, &window, diagnostic)]));
        out.push_str("\n\n");
    }
    out
}

/// The lines of a text that a diagnostic is about. The renderer goes through all it is given, and a long text may
/// have hundreds of diagnostics.
struct Window<'a> {
    text: &'a str,
    /// Where it begins in the whole text.
    start: usize,
    /// The number of its first line, from 1.
    line: usize,
}

impl<'a> Window<'a> {
    /// `lines` are the places at which the lines of the text begin.
    fn of(text: &'a str, lines: &[usize], diagnostic: &Diagnostic) -> Window<'a> {
        let spans =
            || std::iter::once(&diagnostic.span).chain(diagnostic.labels.iter().map(|(span, _)| span));
        let first = spans().map(|span| clamped(text, span).start).min().unwrap_or(0);
        let last = spans().map(|span| clamped(text, span).end).max().unwrap_or(0);
        let line = lines.partition_point(|start| *start <= first).max(1);
        let end = lines.get(lines.partition_point(|start| *start <= last)).copied().unwrap_or(text.len());
        let start = lines[line - 1];
        Window { text: &text[start..end], start, line }
    }

    fn place(&self, span: &Range<usize>) -> Range<usize> {
        clamped(self.text, &(span.start.saturating_sub(self.start)..span.end.saturating_sub(self.start)))
    }
}

fn group<'a>(path: &'a str, window: &Window<'a>, diagnostic: &'a Diagnostic) -> Group<'a> {
    let level = match diagnostic.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
        Severity::Note => Level::NOTE,
    };
    let mut snippet = Snippet::source(window.text)
        .path(path)
        .line_start(window.line)
        .fold(true)
        .annotation(AnnotationKind::Primary.span(window.place(&diagnostic.span)));
    for (span, label) in &diagnostic.labels {
        snippet = snippet.annotation(AnnotationKind::Context.span(window.place(span)).label(label.as_str()));
    }
    let mut group = level.primary_title(diagnostic.message.as_str()).id(diagnostic.code).element(snippet);
    if let Some(hint) = &diagnostic.hint {
        group = group.element(Level::HELP.with_name("hint").message(hint.as_str()));
    }
    group
}

/// A span inside the text and at character borders, whatever was handed in.
fn clamped(text: &str, span: &Range<usize>) -> Range<usize> {
    let floor = |mut at: usize| {
        at = at.min(text.len());
        while !text.is_char_boundary(at) {
            at -= 1;
        }
        at
    };
    let start = floor(span.start);
    start..floor(span.end).max(start)
}

/// A diagnostic for `--json`.
#[derive(Debug, Serialize)]
pub struct JsonDiagnostic<'a> {
    file: &'a str,
    severity: &'static str,
    code: &'a str,
    message: &'a str,
    line: usize,
    column: usize,
    end_line: usize,
    end_column: usize,
    hint: Option<&'a str>,
}

/// The JSON form of a diagnostic; lines and columns count from 1, columns in characters.
pub fn json<'a>(path: &'a str, text: &str, diagnostic: &'a Diagnostic) -> JsonDiagnostic<'a> {
    let span = clamped(text, &diagnostic.span);
    let ((line, column), (end_line, end_column)) = (place(text, span.start), place(text, span.end));
    JsonDiagnostic {
        file: path,
        severity: diagnostic.severity.word(),
        code: diagnostic.code,
        message: &diagnostic.message,
        line,
        column,
        end_line,
        end_column,
        hint: diagnostic.hint.as_deref(),
    }
}

fn place(text: &str, offset: usize) -> (usize, usize) {
    let before = &text[..offset];
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().map_or(0, |last| last.chars().count()) + 1;
    (line, column)
}
