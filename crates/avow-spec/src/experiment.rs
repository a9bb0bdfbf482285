//! The experiment as written: a located tree that the key tables have checked.
//!
//! There is deliberately no second set of structs that mirrors the keys. The tables say what a spec may hold,
//! [`read`] checks it, and the lowering reads the tree; the typed form of an experiment is its
//! [`avow_model::plan::Plan`].

use std::sync::Arc;

use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::tree::{self, Node};
use crate::{secrets, shape};

/// A spec after reading.
#[derive(Debug, Clone)]
pub struct Experiment {
    text: Arc<str>,
    root: Arc<Node>,
    faulty: bool,
}

impl Experiment {
    /// The spec's text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The whole tree.
    pub fn root(&self) -> &Node {
        &self.root
    }

    /// The experiment's name as written, if it has one.
    pub fn name(&self) -> Option<&str> {
        self.root.get("experiment")?.text()
    }

    /// The title, if it has one.
    pub fn title(&self) -> Option<&str> {
        self.root.get("title")?.text()
    }

    /// The tables that axes are read from, by their paths in the project.
    pub fn tables(&self) -> Vec<String> {
        let axes = self.root.get("axes").map(|axes| axes.entries()).unwrap_or_default();
        let from = axes.iter().filter_map(|axis| axis.value.get("from")?.text());
        let plain = |path: &str| {
            let mut path = path;
            while let Some(rest) = path.strip_prefix("./") {
                path = rest.trim_start_matches('/');
            }
            path.to_owned()
        };
        from.map(plain).collect::<std::collections::BTreeSet<_>>().into_iter().collect()
    }

    /// Whether reading found errors, so that no plan can come of it.
    pub fn is_faulty(&self) -> bool {
        self.faulty
    }
}

/// What reading a text gives.
#[derive(Debug)]
pub struct Read {
    /// The experiment; `None` where the text is no YAML mapping at all. It may still be faulty, so that the
    /// lowering can add what else is wrong.
    pub experiment: Option<Experiment>,
    /// Everything that is wrong with its form, by place.
    pub diagnostics: Vec<Diagnostic>,
}

/// Reads a spec: syntax and shape, all problems in one go.
pub fn read(text: &str) -> Read {
    let mut out = Diagnostics::default();
    let root = tree::build(text, &mut out);
    if let Some(root) = &root {
        if root.is_map() {
            shape::check(root, &mut out);
        } else {
            let message = format!("a spec is a mapping of keys, and this is {}", root.kind());
            out.push(Diagnostic::error("type", root.span.clone(), message));
        }
        secrets::check(root, &mut out);
    }
    let faulty = out.any_error();
    let experiment =
        root.filter(|root| root.is_map()).map(|root| Experiment { text: text.into(), root, faulty });
    Read { experiment, diagnostics: out.finish() }
}
