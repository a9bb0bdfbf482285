//! Checks a located tree against the key tables and collects every mismatch.
//!
//! Only form is checked here: keys, types, units, words, names. What names refer to is the lowering's
//! business. Depth is bounded by the tree's own bound, work by its size.

use std::ops::Range;

use crate::diagnostic::{Diagnostic, Diagnostics, did_you_mean, listed, nearest};
use crate::document;
use crate::keys::{Form, Names, Shape, Since, Table, Word};
use crate::scalar::Meaning;
use crate::tree::{Entry, Node};
use crate::units;

/// Checks the whole spec.
pub(crate) fn check(root: &Node, out: &mut Diagnostics) {
    Checker { out }.map(root, &crate::keys::EXPERIMENT, &(root.span.start..root.span.start));
}

struct Checker<'a> {
    out: &'a mut Diagnostics,
}

impl Checker<'_> {
    /// `owner` is the key under which the node stands: where a missing key is reported.
    fn shape(&mut self, node: &Node, shape: &'static Shape, owner: &Range<usize>) {
        match shape {
            Shape::Either(shapes) => self.either(node, shapes, owner),
            Shape::List(item) => self.items(node, item, (0, usize::MAX), shape, owner),
            Shape::Items(item, low, high) => self.items(node, item, (*low, *high), shape, owner),
            Shape::Map(table) if node.is_map() => self.map(node, table, owner),
            Shape::Again(table) if node.is_map() => self.map(node, table(), owner),
            Shape::Named(names, item) if node.is_map() => self.named(node, *names, item),
            Shape::Forms(forms, other) if node.is_map() => self.forms(node, forms, other, owner),
            Shape::Tagged(forms) if node.is_map() => self.tagged(node, forms, owner),
            Shape::Value => self.value(node),
            _ => self.scalar(node, shape),
        }
    }

    fn either(&mut self, node: &Node, shapes: &'static [Shape], owner: &Range<usize>) {
        let fitting: Vec<&'static Shape> = shapes.iter().filter(|shape| takes(shape, node)).collect();
        match fitting.as_slice() {
            [] => self.mismatch(node, &either_words(shapes)),
            [only] => self.shape(node, only, owner),
            several if several.iter().any(|shape| scalar_problem(node, shape).is_none()) => {}
            _ => self.mismatch(node, &either_words(shapes)),
        }
    }

    fn items(
        &mut self,
        node: &Node,
        item: &'static Shape,
        (low, high): (usize, usize),
        shape: &'static Shape,
        owner: &Range<usize>,
    ) {
        let Some(items) = node.items() else { return self.mismatch(node, &words(shape)) };
        if items.len() < low || items.len() > high {
            let message = format!("expected {}, found {} items", words(shape), items.len());
            self.out.push(Diagnostic::error("length", node.span.clone(), message));
        }
        for node in items {
            self.shape(node, item, owner);
        }
    }

    fn map(&mut self, node: &Node, table: &'static Table, owner: &Range<usize>) {
        if !node.is_map() {
            return self.mismatch(node, &format!("a mapping with the keys of {}", article(table.name)));
        }
        for entry in node.entries() {
            match table.key(&entry.key) {
                None => self.unknown_key(entry, table),
                Some(key) if key.since == Since::Later => {
                    self.later(&entry.at, &format!("the key `{}`", key.name))
                }
                Some(key) if nothing(&entry.value) => self.no_value(entry, key.required),
                Some(key) => self.shape(&entry.value, &key.shape, &entry.at),
            }
        }
        for key in table.all().filter(|key| key.required && node.entry(key.name).is_none()) {
            let message = format!("{} needs the key `{}`: {}", article(table.name), key.name, key.help);
            self.out.push(Diagnostic::error("missing-key", owner.clone(), message));
        }
    }

    fn unknown_key(&mut self, entry: &Entry, table: &'static Table) {
        let key = &entry.key;
        if self.out.full() {
            let message = format!("`{key}` is unknown");
            return self.out.push(Diagnostic::error("unknown-key", entry.at.clone(), message));
        }
        let known = || table.all().map(|k| k.name);
        let hint = did_you_mean(key, known()).or_else(|| {
            let elsewhere = document::tables().into_iter().filter(|t| t.keys.iter().any(|k| k.name == key));
            let names: Vec<&str> = elsewhere.map(|t| t.name).collect();
            (!names.is_empty()).then(|| format!("`{key}` is a key of {}", listed(names)))
        });
        let message = format!("`{key}` is no key of {}", article(table.name));
        let hint = hint.unwrap_or_else(|| format!("its keys are {}", listed(known())));
        self.out.push(Diagnostic::error("unknown-key", entry.at.clone(), message).hint(hint));
    }

    fn no_value(&mut self, entry: &Entry, required: bool) {
        let message = format!("`{}` has no value", entry.key);
        let hint = if required { "give it one" } else { "give it one, or leave the key out" };
        self.out.push(Diagnostic::error("no-value", entry.at.clone(), message).hint(hint));
    }

    fn later(&mut self, at: &Range<usize>, what: &str) {
        let message = format!("{what} is not yet supported by this version");
        self.out.push(Diagnostic::error("not-yet", at.clone(), message));
    }

    fn named(&mut self, node: &Node, names: Names, item: &'static Shape) {
        for entry in node.entries() {
            if entry.is_value() {
                let shown = if entry.key.is_empty() { "nothing" } else { &entry.key };
                let message = format!("`{shown}` cannot be a name: YAML reads it as a value of its own");
                let hint = "choose another name";
                self.out.push(Diagnostic::error("name", entry.at.clone(), message).hint(hint));
            } else if !names.allows(&entry.key) {
                let message = format!("`{}` cannot be a name here", entry.key.escape_debug());
                let hint = format!("a name is {}", names.words());
                self.out.push(Diagnostic::error("name", entry.at.clone(), message).hint(hint));
            }
            if nothing(&entry.value) {
                self.no_value(entry, true);
            } else {
                self.shape(&entry.value, item, &entry.at);
            }
        }
    }

    fn forms(&mut self, node: &Node, forms: &'static [Form], other: &'static Shape, owner: &Range<usize>) {
        let found = forms.iter().find(|form| node.entry(form.word).is_some());
        match (found, other) {
            (Some(form), _) if form.since == Since::Later => {
                let at = node.entry(form.word).map_or(node.span.clone(), |entry| entry.at.clone());
                self.later(&at, &format!("the key `{}`", form.word));
            }
            (Some(form), _) => self.map(node, form.table, owner),
            (None, Shape::Named(..)) => {
                let keys = node.entries().iter().filter(|e| !e.value.is_map());
                for entry in keys {
                    let hint = did_you_mean(&entry.key, forms.iter().map(|form| form.word));
                    let message = format!(
                        "the value `{}` of a mapping axis needs a mapping of attributes, found {}",
                        entry.key,
                        entry.value.kind()
                    );
                    let others = format!("other forms of an axis have the key {}", form_words(forms));
                    let hint = hint.unwrap_or(others);
                    self.out.push(Diagnostic::error("type", entry.at.clone(), message).hint(hint));
                }
                if node.entries().iter().all(|e| e.value.is_map()) {
                    self.shape(node, other, owner);
                }
            }
            (None, _) => {
                let message = format!("this mapping needs one of the keys {}", form_words(forms));
                let known = forms.iter().map(|form| form.word);
                let near = node.entries().iter().find_map(|e| did_you_mean(&e.key, known.clone()));
                self.out.push(Diagnostic::error("missing-key", node.span.clone(), message).maybe_hint(near));
            }
        }
    }

    fn tagged(&mut self, node: &Node, forms: &'static [Form], owner: &Range<usize>) {
        let Some(tag) = node.get("kind") else {
            let message = format!("this needs the key `kind`: {}", form_words(forms));
            self.out.push(Diagnostic::error("missing-key", owner.clone(), message));
            return;
        };
        let word = tag.text().unwrap_or_default();
        match forms.iter().find(|form| form.word == word) {
            Some(form) if form.since == Since::Later => self.later(&tag.span, &format!("the kind `{word}`")),
            Some(form) => self.map(node, form.table, owner),
            None => {
                let known = || forms.iter().map(|form| form.word);
                let message =
                    format!("`{}` is no kind that is known here", tag.scalar().map_or("this", |s| &s.text));
                let hint = nearest(word, known()).map(|near| format!("did you mean `{near}`?"));
                let all = format!("the kinds are {}", form_words(forms));
                let hint = hint.unwrap_or(all);
                self.out.push(Diagnostic::error("unknown-word", tag.span.clone(), message).hint(hint));
            }
        }
    }

    fn value(&mut self, node: &Node) {
        for entry in node.entries() {
            self.value(&entry.value);
        }
        for item in node.items().unwrap_or_default() {
            self.value(item);
        }
        if node.scalar().is_some() && node.value().is_none() {
            self.mismatch(node, "a value");
        }
    }

    fn scalar(&mut self, node: &Node, shape: &'static Shape) {
        if let (Shape::Word(known), Some(text)) = (shape, node.text()) {
            return self.word(node, text, known);
        }
        match scalar_problem(node, shape) {
            None => {}
            Some(Problem::Type) => self.mismatch(node, &words(shape)),
            Some(Problem::Form(reason, hint)) => {
                let diagnostic = Diagnostic::error("value", node.span.clone(), reason);
                self.out.push(diagnostic.maybe_hint(hint));
            }
        }
    }

    fn word(&mut self, node: &Node, text: &str, known: &'static [Word]) {
        match known.iter().find(|word| word.word == text) {
            Some(word) if word.since == Since::Later => self.later(&node.span, &format!("`{text}`")),
            Some(_) => {}
            None => {
                let now = || known.iter().filter(|w| w.since == Since::Now).map(|w| w.word);
                let message = format!("`{text}` is none of {}", listed(now()));
                let hint = did_you_mean(text, now());
                self.out.push(Diagnostic::error("unknown-word", node.span.clone(), message).maybe_hint(hint));
            }
        }
    }

    fn mismatch(&mut self, node: &Node, expected: &str) {
        let message = format!("expected {expected}, found {}", node.kind());
        let plain_word = node.scalar().is_some_and(|s| s.plain && !s.text.is_empty());
        let hint = (plain_word && expected.starts_with("text") && node.text().is_none())
            .then(|| "put quotes around it to make it text".to_owned());
        self.out.push(Diagnostic::error("type", node.span.clone(), message).maybe_hint(hint));
    }
}

fn nothing(node: &Node) -> bool {
    node.meaning() == Some(Meaning::Null)
}

/// Whether a node is of the broad kind (scalar, list, mapping) that a shape takes.
fn takes(shape: &Shape, node: &Node) -> bool {
    match shape {
        Shape::Either(shapes) => shapes.iter().any(|shape| takes(shape, node)),
        Shape::List(_) | Shape::Items(..) => node.items().is_some(),
        Shape::Map(_) | Shape::Again(_) | Shape::Named(..) | Shape::Forms(..) | Shape::Tagged(_) => {
            node.is_map()
        }
        Shape::Value => true,
        _ => node.scalar().is_some(),
    }
}

enum Problem {
    /// Not the kind of scalar that is wanted.
    Type,
    /// The right kind, wrongly formed.
    Form(String, Option<String>),
}

fn problem(ok: bool, reason: impl FnOnce() -> String) -> Option<Problem> {
    (!ok).then(|| Problem::Form(reason(), None))
}

/// What is wrong with a scalar; collections are never right here.
fn scalar_problem(node: &Node, shape: &Shape) -> Option<Problem> {
    let (Some(scalar), Some(meaning)) = (node.scalar(), node.meaning()) else { return Some(Problem::Type) };
    let text = scalar.text.as_str();
    let is_text = meaning == Meaning::Text;
    let is_number = matches!(meaning, Meaning::Int(_) | Meaning::Float(_));
    match shape {
        Shape::Printable | Shape::Scalar => {
            let fine = is_text || is_number || matches!(meaning, Meaning::Bool(_));
            (!fine).then_some(Problem::Type)
        }
        Shape::Bool => (!matches!(meaning, Meaning::Bool(_))).then(|| yes_or_no(text)),
        Shape::Int(low, high) => match meaning {
            Meaning::Int(i) => problem((*low..=*high).contains(&i), || between(i, *low, *high)),
            _ => Some(Problem::Type),
        },
        Shape::Exactly(wanted) => match meaning {
            Meaning::Int(i) => problem(i == *wanted, || format!("this version reads `avow: {wanted}` only")),
            _ => Some(Problem::Type),
        },
        Shape::Number => (!is_number).then_some(Problem::Type),
        Shape::Quantity => (!is_number && !is_text).then_some(Problem::Type),
        Shape::Positive if !is_number => Some(Problem::Type),
        Shape::Positive => problem(node.number() > Some(0.0), || format!("`{text}` is not above zero")),
        Shape::Share => problem(units::share(text).is_some(), || format!("`{text}` is no share: 0.05 or 5%")),
        Shape::Size => problem(units::size(text).is_some(), || {
            format!("`{text}` is no size: a number with B, kB, MB, GB, KiB, MiB or GiB")
        }),
        Shape::Duration => problem(units::duration(text).is_some(), || {
            format!("`{text}` is no duration: a number with ms, s, m, h or d, as in `1h30m`")
        }),
        _ if !is_text => Some(Problem::Type),
        Shape::Name => problem(Names::Thing.allows(text), || bad_name(text, Names::Thing)),
        Shape::Dimension => problem(Names::Dimension.allows(text), || bad_name(text, Names::Dimension)),
        Shape::Digest => problem(digest(text), || format!("`{text}` is no digest of 64 hexadecimal digits")),
        Shape::Selector | Shape::Path | Shape::Formula => {
            problem(!text.is_empty(), || "this is empty".to_owned())
        }
        Shape::Text => None,
        Shape::Word(known) => {
            problem(known.iter().any(|w| w.word == text), || format!("`{text}` is unknown"))
        }
        _ => Some(Problem::Type),
    }
}

fn yes_or_no(text: &str) -> Problem {
    let truth = match text {
        "yes" | "on" | "y" | "Yes" | "YES" | "On" => "true",
        "no" | "off" | "n" | "No" | "NO" | "Off" => "false",
        _ => return Problem::Type,
    };
    let reason = format!("`{text}` is text in YAML 1.2, not a truth");
    Problem::Form(reason, Some(format!("write `{truth}`")))
}

fn between(i: i64, low: i64, high: i64) -> String {
    format!("{i} is not between {low} and {high}")
}

fn bad_name(text: &str, names: Names) -> String {
    format!("`{}` is no name: {}", text.escape_debug(), names.words())
}

/// 64 hexadecimal digits, with or without the name of the hash before them.
fn digest(text: &str) -> bool {
    let hex = text.strip_prefix("blake3:").or_else(|| text.strip_prefix("blob:")).unwrap_or(text);
    hex.parse::<avow_model::digest::BlobDigest>().is_ok()
}

fn form_words(forms: &'static [Form]) -> String {
    listed(forms.iter().filter(|form| form.since == Since::Now).map(|form| form.word))
}

/// `a stage`, `an axis`.
fn article(name: &str) -> String {
    let vowel = name.starts_with(['a', 'e', 'i', 'o', 'u']);
    format!("{} {name}", if vowel { "an" } else { "a" })
}

fn either_words(shapes: &[Shape]) -> String {
    let all: Vec<String> = shapes.iter().map(words).collect();
    all.join(" or ")
}

/// What a shape is, for "expected …".
pub(crate) fn words(shape: &Shape) -> String {
    match shape {
        Shape::Text => "text".to_owned(),
        Shape::Printable => "text or a number".to_owned(),
        Shape::Name => "a name".to_owned(),
        Shape::Dimension => "an axis, attribute or record key".to_owned(),
        Shape::Selector => "a selector `stage.name`".to_owned(),
        Shape::Bool => "`true` or `false`".to_owned(),
        Shape::Int(low, high) => format!("an integer from {low} to {high}"),
        Shape::Exactly(i) => format!("`{i}`"),
        Shape::Number => "a number".to_owned(),
        Shape::Positive => "a number above zero".to_owned(),
        Shape::Quantity => "a number, or a formula over parameters".to_owned(),
        Shape::Share => "a share such as `0.05` or `5%`".to_owned(),
        Shape::Size => "a size such as `2GiB`".to_owned(),
        Shape::Duration => "a duration such as `1h30m`".to_owned(),
        Shape::Digest => "a digest".to_owned(),
        Shape::Path => "a path".to_owned(),
        Shape::Formula => "a formula".to_owned(),
        Shape::Scalar => "a number, a truth or text".to_owned(),
        Shape::Value => "a value".to_owned(),
        Shape::Word(known) => {
            let now = known.iter().filter(|w| w.since == Since::Now).map(|w| format!("`{}`", w.word));
            now.collect::<Vec<_>>().join(", ")
        }
        Shape::List(item) => format!("a list of {}", plural(item)),
        Shape::Items(item, low, high) if low == high => format!("a list of {low} ({})", words(item)),
        Shape::Items(item, low, usize::MAX) => format!("a list of {low} or more ({})", words(item)),
        Shape::Items(item, low, high) => format!("a list of {low} to {high} ({})", words(item)),
        Shape::Map(table) => format!("a mapping ({})", table.name),
        Shape::Again(table) => format!("a mapping ({})", table().name),
        Shape::Named(_, item) => format!("a mapping of names to {}", plural(item)),
        Shape::Forms(forms, _) => format!("a mapping with {}", form_words(forms)),
        Shape::Tagged(_) => "a mapping with the key `kind`".to_owned(),
        Shape::Either(shapes) => either_words(shapes),
    }
}

fn plural(shape: &Shape) -> String {
    match shape {
        Shape::Text => "texts".to_owned(),
        Shape::Name => "names".to_owned(),
        Shape::Path => "paths".to_owned(),
        Shape::Number => "numbers".to_owned(),
        Shape::Scalar => "numbers, truths or texts".to_owned(),
        Shape::Value => "values".to_owned(),
        Shape::Dimension => "axes, attributes or record keys".to_owned(),
        other => format!("({})", words(other)),
    }
}
