//! `avow export`: what was done in forms that other programs read, and plans as answers of forms.

pub mod account;
mod forms;
mod in_toto;
mod prov;
mod ro_crate;

use std::fs::File;
use std::io::Write as _;
use std::path::Path;

use crate::args::Export;
use crate::exit::Exit;
use crate::output::{Failure, Output};

/// Exports.
pub fn export(args: &Export, output: &Output) -> Result<Exit, Failure> {
    match args {
        Export::RoCrate(args) => ro_crate::export(args, output),
        Export::Prov(args) => prov::export(args, output),
        Export::InToto(args) => in_toto::export(args, output),
        Export::Osf(args) => forms::print(forms::Form::Osf, args, output),
        Export::Aspredicted(args) => forms::print(forms::Form::Aspredicted, args, output),
        Export::Neurips(args) => forms::print(forms::Form::Neurips, args, output),
    }
}

/// Writes a file at which nothing is.
fn put(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    let written = File::create_new(path).and_then(|mut file| file.write_all(bytes));
    written.map_err(|error| match error.kind() {
        std::io::ErrorKind::AlreadyExists => {
            Failure::new(Exit::Usage, format!("`{}` exists already", path.display()))
                .hint("give another path with `-o`")
        }
        _ => Failure::new(Exit::Machine, format!("`{}` cannot be written", path.display())).because(error),
    })
}
