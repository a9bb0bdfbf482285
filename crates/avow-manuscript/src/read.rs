//! From a file to running text, one reader a format.

mod html;
mod latex;
mod macros;
mod markdown;
mod notebook;
mod plain;
mod typst;

pub use macros::{HEAD, definitions};
pub(crate) use macros::{bindings, plain};

use crate::text::{File, Flat, Problem, Span};

/// The formats that are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// LaTeX.
    Latex,
    /// Markdown, Quarto's included.
    Markdown,
    /// Typst.
    Typst,
    /// A Jupyter notebook.
    Notebook,
    /// HTML.
    Html,
    /// Text, a PDF file's included.
    Plain,
}

impl Format {
    /// The format of a file by the end of its name.
    pub fn of(path: &str) -> Option<Format> {
        let (_, extension) = path.rsplit_once('.')?;
        Some(match extension.to_ascii_lowercase().as_str() {
            "tex" | "ltx" | "latex" => Format::Latex,
            "md" | "qmd" | "markdown" | "rmd" => Format::Markdown,
            "typ" => Format::Typst,
            "ipynb" => Format::Notebook,
            "html" | "htm" | "xhtml" => Format::Html,
            "txt" | "text" | "pdf" => Format::Plain,
            _ => return None,
        })
    }

    /// Whether headings and lists are only lines.
    pub fn is_plain(self) -> bool {
        self == Format::Plain
    }
}

/// Where the files that a manuscript names are read from. Paths are as the manuscript writes them.
pub trait Files {
    /// The text of a file; `None` where there is none.
    fn read(&self, path: &str) -> Option<String>;
}

/// No file but the manuscript itself.
impl Files for () {
    fn read(&self, _: &str) -> Option<String> {
        None
    }
}

/// So deep includes may nest.
const DEEPEST: usize = 16;

/// Reads a manuscript.
pub fn read(path: &str, text: String, format: Format, files: &dyn Files) -> Flat {
    let mut flat = Flat::default();
    flat.files.push(File { path: path.to_owned(), text });
    match format {
        Format::Latex => latex::read(&mut flat, files),
        Format::Markdown => markdown::read(&mut flat, files),
        Format::Typst => typst::read(&mut flat, files),
        Format::Notebook => notebook::read(&mut flat),
        Format::Html => html::read(&mut flat),
        Format::Plain => plain::read(&mut flat),
    }
    if flat.is_full() {
        flat.problems.push(Problem {
            what: "the text grows without end where its macros are expanded".to_owned(),
            span: None,
        });
    }
    flat
}

/// Opens an included file; a problem where it is not there.
fn include(flat: &mut Flat, files: &dyn Files, path: &str, at: Span) -> Option<usize> {
    let Some(text) = files.read(path) else {
        flat.problems
            .push(Problem { what: format!("the included file `{path}` cannot be read"), span: Some(at) });
        return None;
    };
    flat.files.push(File { path: path.to_owned(), text });
    Some(flat.files.len() - 1)
}
