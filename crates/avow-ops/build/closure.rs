//! Which source files and which external packages an operation reaches.
//!
//! A file reaches the modules that its paths name (`crate::a::b::C`, `super::x`, `avow_model::value::Value`),
//! with the modules passed on the way, and every `mod child;` it declares. A path that names an item of a
//! crate's root reaches the root and so the whole crate: coarse, and safe. A package is reached when its name
//! begins a path. Rust is read as tokens, not parsed: comments and literals are skipped, macros are read as
//! they are written.

use std::collections::BTreeSet;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

/// One source file of a workspace crate.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SourceFile {
    /// The crate, as in code: `avow_ops`.
    pub krate: String,
    /// The module path, empty for the root.
    pub module: Vec<String>,
    /// The file.
    pub path: PathBuf,
}

/// Everything an operation is made of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reached {
    /// Source files of workspace crates.
    pub files: BTreeSet<SourceFile>,
    /// The first segment of every path that is not a workspace crate, with the crate that wrote it:
    /// candidates for external packages, to be matched with that crate's dependencies.
    pub outside: BTreeSet<(String, String)>,
}

/// A source file could not be read, or a module has no file.
#[derive(Debug)]
pub struct Unreadable(String);

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Unreadable {}

/// The workspace crates, found as `FOLDER/avow-x/src`.
#[derive(Clone, Debug)]
pub struct Sources {
    folder: PathBuf,
}

impl Sources {
    /// The crates in a folder.
    pub fn new(folder: &Path) -> Sources {
        Sources { folder: folder.to_owned() }
    }

    /// Everything reached from one module of a crate. The modules above it are not reached by being above.
    pub fn reached_from(&self, krate: &str, module: &[&str]) -> Result<Reached, Unreadable> {
        let module: Vec<String> = module.iter().map(|s| (*s).to_owned()).collect();
        let start = self
            .file(krate, &module)
            .ok_or_else(|| Unreadable(format!("`{krate}` has no module {}", module.join("::"))))?;
        let mut reached = Reached::default();
        let mut open = vec![start];
        while let Some(file) = open.pop() {
            if reached.files.contains(&file) {
                continue;
            }
            let text = fs::read_to_string(&file.path)
                .map_err(|e| Unreadable(format!("{}: {e}", file.path.display())))?;
            for path in paths(&tokens(&text), &file.module) {
                self.follow(&file.krate, path, &mut open, &mut reached);
            }
            reached.files.insert(file);
        }
        Ok(reached)
    }

    fn follow(&self, krate: &str, path: Named, open: &mut Vec<SourceFile>, reached: &mut Reached) {
        match path {
            Named::Inside(segments) => open.extend(self.along(krate, &segments)),
            Named::Outside(segments) if self.root(&segments[0]).is_some() => {
                open.extend(self.along(&segments[0], &segments[1..]));
            }
            Named::Outside(segments) => {
                reached.outside.insert((krate.to_owned(), segments[0].clone()));
            }
        }
    }

    /// The modules along a path; the root where its first segment is no module.
    fn along(&self, krate: &str, segments: &[String]) -> Vec<SourceFile> {
        let modules: Vec<SourceFile> =
            (1..=segments.len()).map_while(|n| self.file(krate, &segments[..n])).collect();
        if modules.is_empty() { self.root(krate).into_iter().collect() } else { modules }
    }

    fn root(&self, krate: &str) -> Option<SourceFile> {
        self.file(krate, &[])
    }

    fn file(&self, krate: &str, module: &[String]) -> Option<SourceFile> {
        let src = self.folder.join(krate.replace('_', "-")).join("src");
        let inner: PathBuf = module.iter().collect();
        let candidates = if module.is_empty() {
            vec![src.join("lib.rs")]
        } else {
            vec![src.join(&inner).with_extension("rs"), src.join(&inner).join("mod.rs")]
        };
        let path = candidates.into_iter().find(|p| p.is_file())?;
        Some(SourceFile { krate: krate.to_owned(), module: module.to_vec(), path })
    }
}

/// A path found in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Named {
    /// From the root of the file's own crate.
    Inside(Vec<String>),
    /// Beginning with a crate's name, or with a local name that looks like one.
    Outside(Vec<String>),
}

/// All paths that a file names, and the children it declares.
fn paths(tokens: &[String], module: &[String]) -> Vec<Named> {
    let mut found = Vec::new();
    let mut inline: Vec<(String, usize)> = Vec::new();
    let mut depth = 0_usize;
    for (i, token) in tokens.iter().enumerate() {
        let next = |n: usize| tokens.get(i + n).map_or("", String::as_str);
        let here = || {
            let mut path = module.to_vec();
            path.extend(inline.iter().map(|(name, _)| name.clone()));
            path
        };
        let begins_path = i == 0 || tokens[i - 1] != "::";
        match token.as_str() {
            "{" => depth += 1,
            "}" => {
                depth = depth.saturating_sub(1);
                inline.retain(|(_, opened)| *opened < depth);
            }
            "mod" if next(2) == ";" => {
                let mut child = here();
                child.push(next(1).to_owned());
                found.push(Named::Inside(child));
            }
            "mod" if next(2) == "{" => inline.push((next(1).to_owned(), depth)),
            "crate" if next(1) == "::" => {
                found.extend(tree(tokens, i + 2, &[]).into_iter().map(Named::Inside));
            }
            "self" | "super" if next(1) == "::" && begins_path => {
                found.extend(relative(tokens, i, here()).into_iter().map(Named::Inside));
            }
            name if begins_path && is_name(name) && next(1) == "::" => {
                let rest = tree(tokens, i + 2, &[name.to_owned()]);
                found.extend(rest.into_iter().map(Named::Outside));
            }
            name if i > 0 && tokens[i - 1] == "use" && is_name(name) => {
                found.push(Named::Outside(vec![name.to_owned()]));
            }
            _ => {}
        }
    }
    found
}

/// A path that begins with `self` or `super`, as a path from the root.
fn relative(tokens: &[String], mut at: usize, mut base: Vec<String>) -> Vec<Vec<String>> {
    while matches!(tokens.get(at).map(String::as_str), Some("self" | "super")) {
        if tokens[at] == "super" {
            base.pop();
        }
        at += 1;
        if tokens.get(at).map(String::as_str) != Some("::") {
            break;
        }
        at += 1;
    }
    tree(tokens, at, &base)
}

/// The paths of a use tree that begins at a token: `a::{b, c::d}` names two.
fn tree(tokens: &[String], mut at: usize, before: &[String]) -> Vec<Vec<String>> {
    let mut path = before.to_vec();
    loop {
        let Some(token) = tokens.get(at) else { return vec![path] };
        if token == "{" {
            return group(tokens, at + 1, &path);
        }
        if is_name(token) && token != "self" {
            path.push(token.clone());
        }
        if tokens.get(at + 1).map(String::as_str) != Some("::") {
            return vec![path];
        }
        at += 2;
    }
}

fn group(tokens: &[String], mut at: usize, before: &[String]) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    let mut depth = 0_usize;
    let mut fresh = true;
    while let Some(token) = tokens.get(at) {
        match token.as_str() {
            "}" if depth == 0 => break,
            "}" => depth -= 1,
            "{" => depth += 1,
            "," if depth == 0 => fresh = true,
            _ if fresh && depth == 0 => {
                found.extend(tree(tokens, at, before));
                fresh = false;
            }
            _ => {}
        }
        at += 1;
    }
    found
}

fn is_name(token: &str) -> bool {
    token.starts_with(|c: char| c.is_alphabetic() || c == '_')
}

/// The tokens of Rust text that matter here: names, `::` and single characters; no comments, no literals.
fn tokens(text: &str) -> Vec<String> {
    let chars: Vec<char> = text.chars().collect();
    let mut out = Vec::new();
    let mut i = 0;
    while i < chars.len() {
        let rest = &chars[i..];
        let skipped = comment(rest).or_else(|| literal(rest));
        if let Some(length) = skipped {
            i += length;
        } else if rest.starts_with(&[':', ':']) {
            out.push("::".to_owned());
            i += 2;
        } else if chars[i].is_alphanumeric() || chars[i] == '_' {
            let word: String = rest.iter().take_while(|c| c.is_alphanumeric() || **c == '_').collect();
            i += word.chars().count();
            out.push(word);
        } else {
            if !chars[i].is_whitespace() {
                out.push(chars[i].to_string());
            }
            i += 1;
        }
    }
    out
}

/// The length of a comment at the start of `rest`.
fn comment(rest: &[char]) -> Option<usize> {
    if rest.starts_with(&['/', '/']) {
        return Some(rest.iter().position(|c| *c == '\n').unwrap_or(rest.len()));
    }
    if !rest.starts_with(&['/', '*']) {
        return None;
    }
    let (mut depth, mut i) = (1, 2);
    while i < rest.len() && depth > 0 {
        match &rest[i..] {
            ['/', '*', ..] => (depth, i) = (depth + 1, i + 2),
            ['*', '/', ..] => (depth, i) = (depth - 1, i + 2),
            _ => i += 1,
        }
    }
    Some(i)
}

/// The length of a string or character literal at the start of `rest`; a lifetime is not one.
fn literal(rest: &[char]) -> Option<usize> {
    match rest {
        ['"', ..] => Some(quoted(rest, '"')),
        ['\'', '\\', ..] => Some(quoted(rest, '\'')),
        ['\'', _, '\'', ..] => Some(3),
        ['r', '"' | '#', ..] => raw(rest, 1),
        ['b' | 'c', 'r', '"' | '#', ..] => raw(rest, 2),
        ['b' | 'c', '"', ..] => Some(1 + quoted(&rest[1..], '"')),
        ['b', '\'', ..] => Some(1 + quoted(&rest[1..], '\'')),
        _ => None,
    }
}

fn quoted(rest: &[char], end: char) -> usize {
    let mut i = 1;
    while i < rest.len() && rest[i] != end {
        i += if rest[i] == '\\' { 2 } else { 1 };
    }
    (i + 1).min(rest.len())
}

/// A raw string after `prefix` letters; `None` for a raw identifier such as `r#type`.
fn raw(rest: &[char], prefix: usize) -> Option<usize> {
    let hashes = rest[prefix..].iter().take_while(|c| **c == '#').count();
    if rest.get(prefix + hashes) != Some(&'"') {
        return None;
    }
    let mut end = vec!['"'];
    end.resize(1 + hashes, '#');
    let body = prefix + hashes + 1;
    let close = rest[body..].windows(end.len()).position(|w| w == end.as_slice());
    Some(close.map_or(rest.len(), |at| body + at + end.len()))
}
