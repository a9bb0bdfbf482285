//! `docs/keys.md`, written from the key tables.

use std::fmt::Write as _;

use crate::keys::{EXPERIMENT, Shape, Since, Table};
use crate::shape::words;

/// Every table that can be reached from the top level, each once, in the order a reader meets them.
pub(crate) fn tables() -> Vec<&'static Table> {
    let mut found: Vec<&'static Table> = Vec::new();
    let mut open: Vec<&'static Table> = vec![&EXPERIMENT];
    while let Some(table) = open.pop() {
        if found.iter().any(|t| std::ptr::eq(*t, table)) {
            continue;
        }
        found.push(table);
        let mut inner = Vec::new();
        for key in table.keys {
            mapped(&key.shape, &mut inner);
        }
        inner.extend(table.with.iter().copied());
        open.extend(inner.into_iter().rev());
    }
    found.retain(|table| table.keys.iter().len() > 0);
    found
}

fn mapped(shape: &'static Shape, out: &mut Vec<&'static Table>) {
    match shape {
        Shape::Map(table) => out.push(table),
        Shape::Again(table) => out.push(table()),
        Shape::List(item) | Shape::Items(item, ..) | Shape::Named(_, item) => mapped(item, out),
        Shape::Forms(forms, other) => {
            out.extend(forms.iter().map(|form| form.table));
            mapped(other, out);
        }
        Shape::Tagged(forms) => out.extend(forms.iter().map(|form| form.table)),
        Shape::Either(shapes) => shapes.iter().for_each(|shape| mapped(shape, out)),
        _ => {}
    }
}

/// The reference of all keys as Markdown.
pub fn keys_markdown() -> String {
    let mut out = String::from(HEAD);
    for table in tables() {
        section(table, &mut out);
    }
    out
}

const HEAD: &str = "\
# The keys of a spec

Every key of the language: what it takes, what leaving it out means, and whether this version knows it.
`language.md` explains how they work together. This page is generated from the tables that the checker
reads (`AVOW_BLESS=1 cargo test -p avow-spec` rewrites it); do not edit it by hand.

YAML is read as YAML 1.2: only `true` and `false` are truths, `no` is text. Anchors and aliases may be used;
merge keys (`<<`), tags and several documents may not. A key marked *later* is part of the language, but this
version does not carry it out and says so.
";

fn section(table: &Table, out: &mut String) {
    write!(out, "\n## {}\n\n{}\n", table.name, table.about).expect("text grows");
    if !table.with.is_empty() {
        let names: Vec<String> =
            table.with.iter().map(|t| format!("[{}](#{})", t.name, anchor(t.name))).collect();
        writeln!(out, "Also the keys of {}.", names.join(" and ")).expect("text grows");
    }
    out.push_str("\n| key | takes | left out | what it says |\n|---|---|---|---|\n");
    for key in table.keys {
        let takes = if key.since == Since::Later { "*later*".to_owned() } else { cell(&words(&key.shape)) };
        let default = if key.required { "**required**".to_owned() } else { cell(key.default) };
        let help = cell(&format!("{}{}", key.help, choices(&key.shape)));
        writeln!(out, "| `{}` | {takes} | {default} | {help} |", key.name).expect("text grows");
    }
}

/// The words of a closed list with what each means.
fn choices(shape: &Shape) -> String {
    let known = match shape {
        Shape::Word(known) => known,
        Shape::Either(shapes) => {
            return shapes.iter().map(choices).find(|t| !t.is_empty()).unwrap_or_default();
        }
        _ => return String::new(),
    };
    let one = |w: &crate::keys::Word| match w.since {
        Since::Now => format!("`{}`: {}", w.word, w.help),
        Since::Later => format!("`{}` (*later*): {}", w.word, w.help),
    };
    format!(" — {}", known.iter().map(one).collect::<Vec<_>>().join("; "))
}

fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

fn anchor(name: &str) -> String {
    name.to_lowercase().replace(' ', "-").replace(|c: char| !(c.is_alphanumeric() || c == '-'), "")
}
