//! Which project files a Python program is made of, by its import statements.
//!
//! Sources are read as text and never run: strings and comments are dropped, import statements are found
//! wherever they stand, and each is looked up beside the script, then from the project's root. What an
//! `importlib` call computes is not found; `code:` names it.

use std::collections::{BTreeSet, VecDeque};

use crate::world::World;

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

/// Follows the imports of some scripts; `texts` are programs given on a command line.
pub(crate) fn closure(world: &dyn World, scripts: &[String], texts: &[String]) -> Closure {
    let mut found = Closure::default();
    let mut open: VecDeque<(String, String)> =
        scripts.iter().map(|script| (script.clone(), folder(script).to_owned())).collect();
    for text in texts {
        follow(world, text, "", "", &mut found, &mut open);
    }
    while let Some((file, home)) = open.pop_front() {
        if found.files.len() >= MAX_FILES || !found.files.insert(file.clone()) {
            continue;
        }
        if let Some(text) = world.text(&file) {
            follow(world, &text, &file, &home, &mut found, &mut open);
        }
    }
    found
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

fn follow(
    world: &dyn World,
    text: &str,
    file: &str,
    home: &str,
    found: &mut Closure,
    open: &mut VecDeque<(String, String)>,
) {
    for import in imports(text) {
        let files = match import.level {
            0 => absolute(world, &import, home, found),
            level => relative(world, &import, file, level),
        };
        open.extend(files.into_iter().map(|file| (file, home.to_owned())));
    }
}

fn absolute(world: &dyn World, import: &Import, home: &str, found: &mut Closure) -> Vec<String> {
    let bases: &[&str] = if home.is_empty() { &[""] } else { &[home, ""] };
    for base in bases {
        let files = resolve(world, base, &import.module, &import.names);
        if !files.is_empty() {
            return files;
        }
    }
    let top = import.module.split('.').next().unwrap_or_default();
    if !top.is_empty() && STANDARD.binary_search(&top).is_err() && !top.starts_with('_') {
        found.foreign.insert(top.to_owned());
    }
    Vec::new()
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

/// One import statement.
#[derive(Debug, PartialEq, Eq)]
struct Import {
    /// Leading dots.
    level: usize,
    /// The dotted name; may be empty after dots.
    module: String,
    /// Names after `from … import`.
    names: Vec<String>,
}

/// The import statements of a source text, wherever they stand.
fn imports(text: &str) -> Vec<Import> {
    let mut found = Vec::new();
    for statement in statements(text) {
        let mut words = statement.as_str();
        // `try: import x` and `if a: from b import c` stand on one line.
        while let Some((_, tail)) = words.split_once(':').filter(|_| !starts(words)) {
            words = tail.trim_start();
        }
        let words = words.trim();
        if let Some(rest) = words.strip_prefix("import ") {
            for module in rest.split(',') {
                let module = module.split_whitespace().next().unwrap_or_default().to_owned();
                found.push(Import { level: 0, module, names: Vec::new() });
            }
        } else if let Some(rest) = words.strip_prefix("from").filter(|r| r.starts_with([' ', '.'])) {
            found.extend(from(rest.trim_start()));
        }
    }
    found
}

fn starts(words: &str) -> bool {
    let words = words.trim_start();
    words.starts_with("import ") || words.starts_with("from ") || words.starts_with("from.")
}

fn from(rest: &str) -> Option<Import> {
    // The keyword stands by itself: ` import ` or, after dots, `.import `.
    let at = rest.match_indices("import").map(|(at, _)| at).find(|at| {
        let before = rest[..*at].chars().next_back();
        let after = rest[at + "import".len()..].chars().next();
        before.is_some_and(|c| c.is_whitespace() || c == '.')
            && after.is_some_and(|c| c.is_whitespace() || c == '(' || c == '*')
    })?;
    let module: String = rest[..at].chars().filter(|c| !c.is_whitespace()).collect();
    let level = module.len() - module.trim_start_matches('.').len();
    let names = rest[at + "import".len()..].replace(['(', ')'], " ");
    let names =
        names.split(',').filter_map(|name| name.split_whitespace().next()).map(str::to_owned).collect();
    Some(Import { level, module: module[level..].to_owned(), names })
}

/// Logical lines without strings and comments, split at semicolons; brackets and backslashes join lines.
fn statements(text: &str) -> Vec<String> {
    let mut all = Vec::new();
    let mut now = String::new();
    let mut depth = 0_usize;
    let mut at = 0;
    while let Some(c) = text[at..].chars().next() {
        let rest = &text[at..];
        match c {
            '#' => at += rest.find('\n').unwrap_or(rest.len()),
            '\'' | '"' => {
                at += string_length(rest, c);
                now.push('s');
            }
            '\\' if rest.starts_with("\\\n") => {
                now.push(' ');
                at += 2;
            }
            '\n' | ';' if depth == 0 => {
                all.push(std::mem::take(&mut now));
                at += 1;
            }
            _ => {
                match c {
                    '(' | '[' | '{' => depth += 1,
                    ')' | ']' | '}' => depth = depth.saturating_sub(1),
                    _ => {}
                }
                now.push(if c == '\n' { ' ' } else { c });
                at += c.len_utf8();
            }
        }
    }
    all.push(now);
    all.retain(|statement| !statement.trim().is_empty());
    all
}

/// The bytes of a string literal that begins here, its quotes included.
fn string_length(rest: &str, quote: char) -> usize {
    let triple: String = std::iter::repeat_n(quote, 3).collect();
    let long = rest.starts_with(&triple);
    let close = if long { triple.as_str() } else { &triple[..1] };
    let mut at = close.len();
    while let Some(c) = rest[at..].chars().next() {
        if rest[at..].starts_with(close) {
            return at + close.len();
        }
        if !long && c == '\n' {
            return at;
        }
        at += c.len_utf8();
        if c == '\\' {
            at += rest[at..].chars().next().map_or(0, char::len_utf8);
        }
    }
    rest.len()
}

/// The standard library's top-level modules, sorted.
const STANDARD: &[&str] = &[
    "__future__",
    "__main__",
    "_thread",
    "abc",
    "aifc",
    "annotationlib",
    "antigravity",
    "argparse",
    "array",
    "ast",
    "asynchat",
    "asyncio",
    "asyncore",
    "atexit",
    "audioop",
    "base64",
    "bdb",
    "binascii",
    "bisect",
    "builtins",
    "bz2",
    "cProfile",
    "calendar",
    "cgi",
    "cgitb",
    "chunk",
    "cmath",
    "cmd",
    "code",
    "codecs",
    "codeop",
    "collections",
    "colorsys",
    "compileall",
    "concurrent",
    "configparser",
    "contextlib",
    "contextvars",
    "copy",
    "copyreg",
    "crypt",
    "csv",
    "ctypes",
    "curses",
    "dataclasses",
    "datetime",
    "dbm",
    "decimal",
    "difflib",
    "dis",
    "distutils",
    "doctest",
    "email",
    "encodings",
    "ensurepip",
    "enum",
    "errno",
    "faulthandler",
    "fcntl",
    "filecmp",
    "fileinput",
    "fnmatch",
    "fractions",
    "ftplib",
    "functools",
    "gc",
    "genericpath",
    "getopt",
    "getpass",
    "gettext",
    "glob",
    "graphlib",
    "grp",
    "gzip",
    "hashlib",
    "heapq",
    "hmac",
    "html",
    "http",
    "idlelib",
    "imaplib",
    "imghdr",
    "imp",
    "importlib",
    "inspect",
    "io",
    "ipaddress",
    "itertools",
    "json",
    "keyword",
    "lib2to3",
    "linecache",
    "locale",
    "logging",
    "lzma",
    "mailbox",
    "mailcap",
    "marshal",
    "math",
    "mimetypes",
    "mmap",
    "modulefinder",
    "msilib",
    "msvcrt",
    "multiprocessing",
    "netrc",
    "nis",
    "nntplib",
    "nt",
    "ntpath",
    "nturl2path",
    "numbers",
    "opcode",
    "operator",
    "optparse",
    "os",
    "ossaudiodev",
    "pathlib",
    "pdb",
    "pickle",
    "pickletools",
    "pipes",
    "pkgutil",
    "platform",
    "plistlib",
    "poplib",
    "posix",
    "posixpath",
    "pprint",
    "profile",
    "pstats",
    "pty",
    "pwd",
    "py_compile",
    "pyclbr",
    "pydoc",
    "pydoc_data",
    "pyexpat",
    "queue",
    "quopri",
    "random",
    "re",
    "readline",
    "reprlib",
    "resource",
    "rlcompleter",
    "runpy",
    "sched",
    "secrets",
    "select",
    "selectors",
    "shelve",
    "shlex",
    "shutil",
    "signal",
    "site",
    "smtpd",
    "smtplib",
    "sndhdr",
    "socket",
    "socketserver",
    "spwd",
    "sqlite3",
    "sre_compile",
    "sre_constants",
    "sre_parse",
    "ssl",
    "stat",
    "statistics",
    "string",
    "stringprep",
    "struct",
    "subprocess",
    "sunau",
    "symtable",
    "sys",
    "sysconfig",
    "syslog",
    "tabnanny",
    "tarfile",
    "telnetlib",
    "tempfile",
    "termios",
    "textwrap",
    "this",
    "threading",
    "time",
    "timeit",
    "tkinter",
    "token",
    "tokenize",
    "tomllib",
    "trace",
    "traceback",
    "tracemalloc",
    "tty",
    "turtle",
    "turtledemo",
    "types",
    "typing",
    "unicodedata",
    "unittest",
    "urllib",
    "uu",
    "uuid",
    "venv",
    "warnings",
    "wave",
    "weakref",
    "webbrowser",
    "winreg",
    "winsound",
    "wsgiref",
    "xdrlib",
    "xml",
    "xmlrpc",
    "zipapp",
    "zipfile",
    "zipimport",
    "zlib",
    "zoneinfo",
];

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
    }

    fn found(files: &[(&'static str, &'static str)], script: &str) -> (Vec<String>, Vec<String>) {
        let world = Files(files.iter().copied().collect());
        let closure = closure(&world, &[script.to_owned()], &[]);
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
