//! `avow init`: a project with one experiment that runs in seconds.

use std::fs;
use std::path::Path;

use crate::args::Init;
use crate::exit::Exit;
use crate::output::{Failure, Output};

const FILES: [(&str, &str); 4] = [
    (
        "avow.toml",
        "# This file marks the root of the project.\n# results = \"results\"   # keep a readable copy of numbers and verdicts here\n",
    ),
    ("experiment.yaml", include_str!("../../templates/experiment.yaml")),
    ("train.py", include_str!("../../../../experiments/smallest/train.py")),
    (".gitignore", ".avow/\n"),
];

/// Writes the files that are not there; refuses to touch an experiment that is.
pub fn init(args: &Init, output: &Output) -> Result<Exit, Failure> {
    let folder = &args.folder;
    if folder.join("experiment.yaml").exists() {
        return Err(Failure::new(Exit::Usage, format!("`{}` holds an experiment already", folder.display()))
            .hint("give another folder: `avow init my-project`"));
    }
    write(folder)?;
    let inside =
        if folder == Path::new(".") { String::new() } else { format!("cd {} && ", folder.display()) };
    output.say(format!("made a project in `{}`", folder.display()));
    output.say(format!("next: {inside}avow run experiment.yaml"));
    Ok(Exit::Done)
}

fn write(folder: &Path) -> Result<(), Failure> {
    let failed = |path: &Path, error| {
        Failure::new(Exit::Machine, format!("cannot write `{}`", path.display())).because(error)
    };
    fs::create_dir_all(folder).map_err(|error| failed(folder, error))?;
    for (name, text) in FILES {
        let path = folder.join(name);
        match fs::File::create_new(&path) {
            Ok(mut file) => {
                std::io::Write::write_all(&mut file, text.as_bytes())
                    .map_err(|error| failed(&path, error))?;
            }
            // What the user has stays; the experiment itself was checked before.
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(failed(&path, error)),
        }
    }
    Ok(())
}
