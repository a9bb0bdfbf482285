//! Plans drawn as text.
//!
//! ```text
//! data -> train -> table          each reads the one before
//! a, b -> c                       `c` reads both
//! train[seed:3] -> score          `train` has an axis of three values, and so has `score`
//! train[seed:3] => table          `table` gathers all of them, and has no axis
//! lone                            a stage that nothing reads
//! ```
//!
//! Lines may also be separated by `;`. A stage may appear many times; its axes are written once. Each is a
//! shell program with one output `out`, whose text names its axes, so that members differ.

use std::collections::{BTreeMap, BTreeSet};

use avow_model::axis::{Axis, Points};
use avow_model::plan::{Determinism, Input, Keep, Output, Plan, Program, Reuse, Source, Stage};
use avow_model::template::Template;
use avow_model::value::Value;

/// The plan that a drawing shows. Panics where the drawing is none, where an axis has two sizes, or where
/// stages read each other in a circle.
///
/// ```
/// let plan = avow_testkit::plan("data -> train[seed:3] => table");
/// assert_eq!(plan.stage("train").unwrap().scope, ["seed"]);
/// assert_eq!(plan.stage("table").unwrap().scope, [""; 0]);
/// ```
pub fn plan(drawing: &str) -> Plan {
    let mut graph = Graph::default();
    drawing
        .split(['\n', ';'])
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .for_each(|line| graph.line(line));
    graph.plan()
}

#[derive(Default)]
struct Graph {
    axes: BTreeMap<String, i64>,
    /// Each stage's own axes.
    own: BTreeMap<String, BTreeSet<String>>,
    /// What each stage reads, and whether it gathers it.
    reads: BTreeMap<String, BTreeMap<String, bool>>,
}

impl Graph {
    fn line(&mut self, line: &str) {
        let mut rest = line;
        let mut before: Vec<String> = Vec::new();
        let mut gathers = false;
        loop {
            let arrow = [("->", false), ("=>", true)]
                .into_iter()
                .filter_map(|(arrow, gathers)| Some((rest.find(arrow)?, gathers)))
                .min();
            let group = arrow.map_or(rest, |(at, _)| &rest[..at]);
            let here: Vec<String> = split_outside_brackets(group).map(|text| self.stage(text)).collect();
            for (reader, read) in here.iter().flat_map(|r| before.iter().map(move |b| (r, b))) {
                self.reads.entry(reader.clone()).or_default().insert(read.clone(), gathers);
            }
            let Some((at, next)) = arrow else { return };
            (before, gathers, rest) = (here, next, &rest[at + 2..]);
        }
    }

    /// `name` or `name[axis:size,…]`.
    fn stage(&mut self, text: &str) -> String {
        let text = text.trim();
        let (name, axes) = text.split_once('[').unwrap_or((text, "]"));
        let name = name.trim();
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_".contains(c);
        assert!(!name.is_empty() && name.chars().all(plain), "`{text}` is no stage");
        let axes = axes.strip_suffix(']').unwrap_or_else(|| panic!("`{text}` has no closing `]`"));
        let own = self.own.entry(name.to_owned()).or_default();
        for axis in axes.split(',').map(str::trim).filter(|axis| !axis.is_empty()) {
            let (axis, size) = axis.split_once(':').unwrap_or_else(|| panic!("`{axis}` is not `axis:size`"));
            let size = size.trim().parse().unwrap_or_else(|_| panic!("`{size}` is no number of values"));
            let known = *self.axes.entry(axis.to_owned()).or_insert(size);
            assert_eq!(known, size, "the axis `{axis}` has two sizes");
            own.insert(axis.to_owned());
        }
        name.to_owned()
    }

    fn plan(&self) -> Plan {
        let mut scopes = BTreeMap::new();
        for name in self.own.keys() {
            self.scope(name, &mut scopes, &mut Vec::new());
        }
        let points =
            |size| Points::Range { start: Value::Int(0), stop: Value::Int(size), step: Value::Int(1) };
        Plan {
            experiment: "drawn".to_owned(),
            params: BTreeMap::new(),
            axes: self
                .axes
                .iter()
                .map(|(name, size)| Axis { name: name.clone(), points: points(*size) })
                .collect(),
            exclude: Vec::new(),
            pilot: Vec::new(),
            seen: Vec::new(),
            registration: BTreeMap::new(),
            stages: scopes.iter().map(|(name, scope)| self.drawn(name, scope, &scopes)).collect(),
            claims: Vec::new(),
        }
    }

    /// A stage's own axes and those of what it reads without gathering.
    fn scope(
        &self,
        name: &str,
        scopes: &mut BTreeMap<String, BTreeSet<String>>,
        path: &mut Vec<String>,
    ) -> BTreeSet<String> {
        if let Some(known) = scopes.get(name) {
            return known.clone();
        }
        assert!(!path.iter().any(|above| above == name), "`{name}` reads itself: {path:?}");
        path.push(name.to_owned());
        let mut scope = self.own[name].clone();
        for (read, gathers) in self.reads.get(name).into_iter().flatten() {
            let axes = self.scope(read, scopes, path);
            scope.extend(axes.into_iter().filter(|_| !gathers));
        }
        path.pop();
        scopes.insert(name.to_owned(), scope.clone());
        scope
    }

    fn drawn(
        &self,
        name: &str,
        scope: &BTreeSet<String>,
        scopes: &BTreeMap<String, BTreeSet<String>>,
    ) -> Stage {
        let input = |(read, gathers): (&String, &bool)| {
            let gather = if *gathers { scopes[read].iter().cloned().collect() } else { Vec::new() };
            let from =
                Source::Output { stage: read.clone(), output: "out".to_owned(), at: BTreeMap::new(), gather };
            (read.clone(), Input { from, mount: format!("inputs/{read}"), scoring: false, licence: None })
        };
        let words: String = scope.iter().map(|axis| format!(" ${{axes.{axis}}}")).collect();
        let text = format!("echo {name}{words} > ${{outputs.out}}");
        let out = Output {
            path: "out".to_owned(),
            folder: false,
            optional: false,
            keep: Keep::Content,
            holdout: false,
        };
        Stage {
            name: name.to_owned(),
            kind: None,
            program: Program::Shell(Template::parse(&text).expect("the text is ours")),
            scope: scope.iter().cloned().collect(),
            code: None,
            environment: None,
            toolchain: BTreeMap::new(),
            loads: None,
            env: BTreeMap::new(),
            inputs: self.reads.get(name).into_iter().flatten().map(input).collect(),
            outputs: BTreeMap::from([("out".to_owned(), out)]),
            measurements: Vec::new(),
            reuse: Reuse::Always,
            repeats: false,
            determinism: Determinism::Bytes,
            hardware: None,
            image: None,
        }
    }
}

fn split_outside_brackets(group: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0;
    group.split(move |c| {
        match c {
            '[' => depth += 1,
            ']' => depth -= 1,
            _ => {}
        }
        c == ',' && depth == 0
    })
}
