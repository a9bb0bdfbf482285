//! Shell scripts of the project: what they call is code too.

use std::collections::BTreeSet;

use super::{Named, file};
use crate::command::{self, Word};
use crate::lower::Cx;
use crate::lower::stage::Draft;

/// Most scripts that are followed.
const MAX_SCRIPTS: usize = 1_000;

/// Follows the shell scripts among the named files: the project files that they name are named, and the programs
/// that they start are looked up, though one that is not there is no fault.
pub(super) fn follow(cx: &Cx<'_>, draft: &Draft<'_>, named: &mut Named) {
    let mut seen = BTreeSet::new();
    while let Some(script) = named.files.keys().find(|file| !seen.contains(*file)).cloned() {
        if seen.len() >= MAX_SCRIPTS {
            return;
        }
        seen.insert(script.clone());
        let text = match cx.world.text(&script) {
            Some(text) if is_shell(&script, &text) => text,
            _ => continue,
        };
        let at = named.files[&script].clone();
        let read = command::parse(&text);
        for words in &read.commands {
            for word in command::starters(words) {
                if !word.computed && !word.text.contains('/') && !read.functions.contains(&word.text) {
                    named.called.insert(word.text.clone());
                }
                if command::is_python(&word.text) {
                    named.python = true;
                    named.interpreters.insert(word.text.clone());
                }
            }
            for path in words.iter().filter_map(|word| called(cx, draft, &script, word)) {
                named.files.entry(path).or_insert_with(|| at.clone());
            }
        }
    }
}

fn is_shell(path: &str, text: &str) -> bool {
    let first = text.strip_prefix("#!").and_then(|rest| rest.lines().next());
    match first {
        Some(line) => {
            let words: Vec<&str> = line.split_whitespace().collect();
            let name = |word: &&str| word.rsplit('/').next().unwrap_or_default().to_owned();
            words.iter().any(|word| matches!(name(word).as_str(), "sh" | "bash" | "dash" | "ksh" | "zsh"))
        }
        None => path.ends_with(".sh") || path.ends_with(".bash"),
    }
}

/// The project file that a word of a script is: from the working folder, or, where a part of it is computed
/// (`"$(dirname "$0")/b.sh"`), beside the script.
fn called(cx: &Cx<'_>, draft: &Draft<'_>, script: &str, word: &Word) -> Option<String> {
    let is_file = |path: &String| cx.world.look(path).is_some_and(|found| !found.folder);
    if !word.computed {
        return file(cx, draft, &word.text).filter(is_file);
    }
    let folder = script.rsplit_once('/').map_or("", |(folder, _)| folder);
    let tail = word.text.strip_prefix('/')?;
    let beside = if folder.is_empty() { tail.to_owned() } else { format!("{folder}/{tail}") };
    file(cx, draft, &beside).filter(is_file)
}
