//! Which project files a Python program is made of, by its import statements.
//!
//! Sources are read as text and never run: strings and comments are dropped, import statements are found
//! wherever they stand, and each is looked up beside the script, then from the project's root, then in folders
//! that sources put on their search path by a literal name. So are modules that a call imports by a literal name;
//! what a call computes is not found, and `code:` names it.

mod standard;
mod text;

use std::collections::{BTreeSet, VecDeque};

use self::standard::STANDARD;
use self::text::{Import, imports, search_folders};
use crate::world::World;

/// Most folders on the search path.
const MAX_BASES: usize = 100;

/// Most files that are followed.
const MAX_FILES: usize = 10_000;

/// A program's project files, and the packages from elsewhere that they import.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Closure {
    /// Project files, the scripts themselves included.
    pub files: BTreeSet<String>,
    /// Top-level names that are neither in the project nor in the standard library.
    pub foreign: BTreeSet<String>,
}

/// Follows the imports of some scripts; `texts` are programs given on a command line, `bases` folders that are
/// searched besides the script's own and the root.
pub(crate) fn closure(world: &dyn World, scripts: &[String], texts: &[String], bases: &[String]) -> Closure {
    let mut bases = bases.to_vec();
    loop {
        let mut walk =
            Walk { world, bases: &bases, found: Closure::default(), open: VecDeque::new(), more: Vec::new() };
        walk.all(scripts, texts);
        let Walk { found, more, .. } = walk;
        if more.is_empty() || bases.len() > MAX_BASES {
            return found;
        }
        // A folder that one file adds serves the imports of all.
        bases.extend(more);
    }
}

/// One walk over all sources with a fixed search path.
struct Walk<'a> {
    world: &'a dyn World,
    bases: &'a [String],
    found: Closure,
    /// Files to be read, with the folder of the script that led to them.
    open: VecDeque<(String, String)>,
    /// Folders that sources add to the search path, as far as they are new.
    more: Vec<String>,
}

impl Walk<'_> {
    fn all(&mut self, scripts: &[String], texts: &[String]) {
        self.open = scripts.iter().map(|script| (script.clone(), folder(script).to_owned())).collect();
        for text in texts {
            self.follow(text, "", "");
        }
        while let Some((file, home)) = self.open.pop_front() {
            if self.found.files.len() >= MAX_FILES || !self.found.files.insert(file.clone()) {
                continue;
            }
            if let Some(text) = self.world.text(&file) {
                self.follow(&text, &file, &home);
            }
        }
    }

    fn follow(&mut self, text: &str, file: &str, home: &str) {
        for added in search_folders(text) {
            let start = if added.beside { folder(file) } else { "" };
            let from = (0..added.up).fold(start, |at, _| folder(at));
            let base = join(from, &added.path);
            let known = self.bases.contains(&base) || self.more.contains(&base) || base.is_empty();
            if !known && self.world.look(&base).is_some_and(|found| found.folder) {
                self.more.push(base);
            }
        }
        for import in imports(text) {
            let files = match import.level {
                0 => self.absolute(&import, home),
                level => relative(self.world, &import, file, level),
            };
            self.open.extend(files.into_iter().map(|file| (file, home.to_owned())));
        }
    }

    fn absolute(&mut self, import: &Import, home: &str) -> Vec<String> {
        let first = [home, ""];
        let first = if home.is_empty() { &first[1..] } else { &first[..] };
        for base in first.iter().copied().chain(self.bases.iter().map(String::as_str)) {
            let files = resolve(self.world, base, &import.module, &import.names);
            if !files.is_empty() {
                return files;
            }
        }
        let top = import.module.split('.').next().unwrap_or_default();
        if !top.is_empty() && !is_standard(top) && !top.starts_with('_') {
            self.found.foreign.insert(top.to_owned());
        }
        Vec::new()
    }
}

/// Whether a module, by its top-level name, is part of the standard library.
pub(crate) fn is_standard(module: &str) -> bool {
    STANDARD.binary_search(&module.split('.').next().unwrap_or_default()).is_ok()
}

/// The files of `python -m NAME`, if it is a module or package of the project.
pub(crate) fn module(world: &dyn World, name: &str) -> Option<Vec<String>> {
    let path = name.replace('.', "/");
    let file = format!("{path}.py");
    let mut files = parents(world, &path);
    if is_file(world, &file) {
        files.push(file);
        return Some(files);
    }
    let main = format!("{path}/__main__.py");
    if !is_file(world, &main) {
        return None;
    }
    files.extend(Some(format!("{path}/__init__.py")).filter(|init| is_file(world, init)));
    files.push(main);
    Some(files)
}

/// A compiled module: `part.so`, `part.abi3.so`, `part.cpython-311-….so`.
fn extension(world: &dyn World, folder: &str, part: &str) -> Option<String> {
    let is_it = |name: &String| {
        let rest = name.strip_prefix(part).and_then(|rest| rest.strip_suffix(".so"));
        rest.is_some_and(|tag| tag.is_empty() || tag.starts_with('.'))
    };
    world.names(folder).into_iter().find(is_it).map(|name| join(folder, &name))
}

/// The `__init__.py` files of the packages that a module lies in.
fn parents(world: &dyn World, path: &str) -> Vec<String> {
    let folders = path.match_indices('/').map(|(at, _)| &path[..at]);
    folders.map(|folder| format!("{folder}/__init__.py")).filter(|init| is_file(world, init)).collect()
}

fn is_file(world: &dyn World, path: &str) -> bool {
    world.look(path).is_some_and(|found| !found.folder)
}

fn folder(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(folder, _)| folder)
}

fn join(folder: &str, path: &str) -> String {
    match (folder, path) {
        ("", path) => path.to_owned(),
        (folder, "") => folder.to_owned(),
        _ => format!("{folder}/{path}"),
    }
}

/// One dot is the file's own package, each further dot the one above it.
fn relative(world: &dyn World, import: &Import, file: &str, level: usize) -> Vec<String> {
    let mut base = folder(file);
    for _ in 1..level {
        base = folder(base);
    }
    resolve(world, base, &import.module, &import.names)
}

/// The files of `import MODULE` or `from MODULE import NAMES` under a folder.
fn resolve(world: &dyn World, base: &str, module: &str, names: &[String]) -> Vec<String> {
    let mut files = Vec::new();
    let mut here = base.to_owned();
    for part in module.split('.').filter(|part| !part.is_empty()) {
        let inner = join(&here, part);
        let (file, init) = (format!("{inner}.py"), format!("{inner}/__init__.py"));
        // A package wins over a module of its name, as in the interpreter.
        if is_file(world, &init) {
            files.push(init);
        } else if is_file(world, &file) {
            files.push(file);
        } else if let Some(compiled) = extension(world, &here, part) {
            files.push(compiled);
            return files;
        } else if !world.look(&inner).is_some_and(|found| found.folder) {
            return files;
        }
        here = inner;
    }
    if module.is_empty() {
        files.extend(Some(join(&here, "__init__.py")).filter(|init| is_file(world, init)));
    }
    for name in names {
        let inner = join(&here, name);
        let candidates = [format!("{inner}.py"), format!("{inner}/__init__.py")];
        files.extend(candidates.into_iter().filter(|file| is_file(world, file)));
    }
    files
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use avow_model::digest::{Artifact, BlobDigest, TreeDigest};

    use super::*;
    use crate::world::Found;

    struct Files(BTreeMap<&'static str, &'static str>);

    impl World for Files {
        fn look(&self, path: &str) -> Option<Found> {
            let folder = self.0.keys().any(|key| key.starts_with(&format!("{path}/")));
            (folder || self.0.contains_key(path)).then_some(Found { folder, executable: false })
        }
        fn text(&self, path: &str) -> Option<String> {
            self.0.get(path).map(|text| (*text).to_owned())
        }
        fn program(&self, _: &str) -> Option<BlobDigest> {
            None
        }
        fn artifact(&self, path: &str) -> Result<Artifact, String> {
            Err(path.to_owned())
        }
        fn code(&self, _: &[String]) -> Result<TreeDigest, String> {
            Err(String::new())
        }
        fn names(&self, folder: &str) -> Vec<String> {
            let prefix = join(folder, "x");
            let prefix = &prefix[..prefix.len() - 1];
            let inside = self.0.keys().filter_map(|path| path.strip_prefix(prefix));
            inside.filter_map(|rest| rest.split('/').next()).map(str::to_owned).collect()
        }
    }

    fn found(files: &[(&'static str, &'static str)], script: &str) -> (Vec<String>, Vec<String>) {
        let world = Files(files.iter().copied().collect());
        let closure = closure(&world, &[script.to_owned()], &[], &[]);
        (closure.files.into_iter().collect(), closure.foreign.into_iter().collect())
    }

    #[test]
    fn imports_are_followed_through_packages() {
        let train =
            "import os, helper\nfrom nets.deep import (\n  layer as l, # x\n  other)\nimport numpy as np";
        let helper = "try: import json\nexcept ImportError: import simplejson\n'''import never'''";
        let files = [
            ("src/train.py", train),
            ("src/helper.py", helper),
            ("nets/__init__.py", ""),
            ("nets/deep/__init__.py", "from .layer import Layer\nfrom .. import common"),
            ("nets/deep/layer.py", "from ..util \\\n  import *"),
            ("nets/deep/unused.py", ""),
            ("nets/common.py", "x = 'import never'; import helper"),
            ("nets/util.py", "def f():\n    import lazy\n"),
            ("lazy.py", ""),
        ];
        let (code, foreign) = found(&files, "src/train.py");
        let wanted = [
            "lazy.py",
            "nets/__init__.py",
            "nets/common.py",
            "nets/deep/__init__.py",
            "nets/deep/layer.py",
            "nets/util.py",
            "src/helper.py",
            "src/train.py",
        ];
        assert_eq!(code, wanted);
        assert_eq!(foreign, ["numpy", "simplejson"]);
    }

    #[test]
    fn folders_that_a_source_adds_are_searched() {
        let main = "import os, sys\nsys.path.insert(0, os.path.join(os.path.dirname(__file__), '../src'))\nimport inner\n";
        let files = [
            ("runs/main.py", main),
            ("src/inner/__init__.py", "import importlib\nimportlib.import_module('.part', __name__)"),
            ("src/inner/part.py", "import space.deep"),
            ("src/space/deep.py", "import fast"),
            ("src/fast.cpython-311-x86_64-linux-gnu.so", ""),
        ];
        let (code, foreign) = found(&files, "runs/main.py");
        assert_eq!(
            code,
            [
                "runs/main.py",
                "src/fast.cpython-311-x86_64-linux-gnu.so",
                "src/inner/__init__.py",
                "src/inner/part.py",
                "src/space/deep.py",
            ]
        );
        assert!(foreign.is_empty(), "{foreign:?}");
    }

    #[test]
    fn a_cycle_of_imports_ends() {
        let files = [("a.py", "import b"), ("b.py", "import a")];
        assert_eq!(found(&files, "a.py").0, ["a.py", "b.py"]);
    }

    #[test]
    fn python_m_finds_modules_and_packages() {
        let world =
            Files(BTreeMap::from([("pkg/__init__.py", ""), ("pkg/__main__.py", ""), ("pkg/tool.py", "")]));
        assert_eq!(module(&world, "pkg").unwrap(), ["pkg/__init__.py", "pkg/__main__.py"]);
        assert_eq!(module(&world, "pkg.tool").unwrap(), ["pkg/__init__.py", "pkg/tool.py"]);
        assert_eq!(module(&world, "pytest"), None);
    }

    #[test]
    fn the_standard_library_is_sorted() {
        assert!(STANDARD.is_sorted());
    }
}
