//! Reading a manuscript from disk, with the files that it includes.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use avow_manuscript::{Files, Format, Manuscript};

use crate::exit::Exit;
use crate::output::Failure;

/// Files beside a manuscript; paths are as it writes them.
struct Folder(PathBuf);

impl Folder {
    /// The folder of a file.
    fn of(path: &Path) -> Folder {
        Folder(path.parent().unwrap_or(Path::new("")).to_owned())
    }
}

impl Files for Folder {
    fn read(&self, path: &str) -> Option<String> {
        // What cannot be read is told by the reader, with the place that names it.
        std::fs::read_to_string(self.0.join(path)).ok()
    }
}

/// Reads a manuscript and finds its numbers.
pub(crate) fn open(path: &Path) -> Result<Manuscript, Failure> {
    let shown = path.display().to_string();
    let format = Format::of(&shown).ok_or_else(|| {
        Failure::new(Exit::Usage, format!("`{shown}` is no manuscript that can be read"))
            .hint("the forms are .tex, .md, .qmd, .typ, .ipynb, .html, .txt and .pdf")
    })?;
    let pdf = path.extension().is_some_and(|e| e.eq_ignore_ascii_case("pdf"));
    let text = if pdf { text_of_pdf(path)? } else { text_of(path)? };
    Ok(Manuscript::read(&shown, text, format, &Folder::of(path)))
}

/// A text file of a person, read whole.
pub(crate) fn text_of(path: &Path) -> Result<String, Failure> {
    let shown = path.display();
    let bytes = std::fs::read(path)
        .map_err(|error| Failure::new(Exit::Usage, format!("cannot read `{shown}`")).because(error))?;
    String::from_utf8(bytes).map_err(|error| {
        Failure::new(Exit::Usage, format!("`{shown}` is not UTF-8"))
            .because(error.utf8_error())
            .hint("write it again as UTF-8, e.g. with `iconv -f LATIN1 -t UTF-8`")
    })
}

/// The text of a PDF file, by the program that knows how.
fn text_of_pdf(path: &Path) -> Result<String, Failure> {
    let shown = path.display();
    // Whatever the name begins with, it is no option.
    let file = if path.is_absolute() { path.to_owned() } else { Path::new(".").join(path) };
    if !file.is_file() {
        return Err(Failure::new(Exit::Usage, format!("cannot read `{shown}`")).hint("there is no such file"));
    }
    let ran =
        Command::new("pdftotext").args(["-enc", "UTF-8"]).arg(&file).arg("-").stdin(Stdio::null()).output();
    let ran = ran.map_err(|error| {
        Failure::new(
            Exit::Machine,
            "the text of a PDF file is read with `pdftotext`, which cannot be started",
        )
        .because(error)
        .hint("install poppler-utils, or give the source of the manuscript")
    })?;
    if !ran.status.success() {
        let said = String::from_utf8_lossy(&ran.stderr);
        let said = said.lines().next().unwrap_or("it said nothing").to_owned();
        return Err(Failure::new(Exit::Usage, format!("`pdftotext` cannot read `{shown}`: {said}")));
    }
    Ok(String::from_utf8_lossy(&ran.stdout).into_owned())
}
