//! Where a Python interpreter searches, asked of itself.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde::{Deserialize, Serialize};

use super::Identities;

/// What an interpreter says about itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Facts {
    /// `cpython 3.11.7`.
    pub version: String,
    /// The file that really runs.
    pub executable: PathBuf,
    /// The folder of the standard library.
    pub standard: PathBuf,
    /// Where it searches, in order.
    pub search: Vec<PathBuf>,
}

/// Only modules that are loaded in any case are used: it is asked often enough for its start to count.
const QUESTION: &str = "\
import os, sys
v = sys.implementation
out = [v.name + ' ' + '.'.join(map(str, v.version[:3])), os.path.realpath(sys.executable), \
os.path.dirname(os.path.realpath(os.__file__))] + [p for p in sys.path if p]
sys.stdout.write('\\0'.join(out))
";

impl Identities {
    /// What the interpreter that a word starts says about itself; `None` where it does not answer.
    pub fn interpreter(&self, word: &str) -> Option<Facts> {
        let file = self.find(word)?;
        self.memory.answer(&format!("facts {}", file.display()), |witness| {
            witness.look(&file);
            let facts = self.ask(&file);
            // A launcher chooses by files of its own; a virtual environment is told by one beside it.
            for name in [".python-version", "avow.toml"] {
                witness.look(&self.root.join(name));
            }
            if let Some(folder) = file.parent().and_then(Path::parent) {
                witness.look(&folder.join("pyvenv.cfg"));
                witness.look(&folder.join("version"));
            }
            for path in facts.iter().flat_map(|facts| facts.search.iter().chain([&facts.executable])) {
                witness.look(path);
            }
            facts
        })
    }

    fn ask(&self, file: &Path) -> Option<Facts> {
        let mut command = Command::new(file);
        command.args(["-c", QUESTION]).current_dir(&self.root).env_clear().envs(self.asking());
        let asked = command.stdin(Stdio::null()).stderr(Stdio::null()).output().ok()?;
        let text = String::from_utf8(asked.stdout).ok().filter(|_| asked.status.success())?;
        let mut parts = text.split('\0');
        Some(Facts {
            version: parts.next()?.to_owned(),
            executable: parts.next()?.into(),
            standard: parts.next()?.into(),
            search: parts.map(PathBuf::from).collect(),
        })
    }
}
