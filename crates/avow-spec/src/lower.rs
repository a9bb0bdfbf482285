//! From the tree to the plan: what every name refers to, what every default is, what cannot work.
//!
//! The steps run in order and each collects its own complaints, so that a wrong axis does not hide a wrong
//! claim: `axes`, then stages (`outputs`, `inputs`, `stage`), their graph (`scope`), their files
//! (`files`), then `claims`. A step that cannot make sense of a part leaves it out and goes on; a plan
//! comes only of a spec without any error. Nothing here expands a product of axes.

mod axes;
mod bound;
mod claims;
mod control;
mod exclude;
mod family;
mod files;
mod holdout;
mod inputs;
mod kept;
mod operation;
mod outputs;
mod reference;
mod rows;
mod rule;
mod scope;
mod search;
mod selection;
mod sequence;
mod stage;

pub(crate) use axes::REPEAT;

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use std::ops::Range;

use avow_model::op::OpSignature;
use avow_model::plan::{Plan, Terms};
use avow_model::value::Value;

use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::experiment::Experiment;
use crate::reach::Reach;
use crate::tree::Node;
use crate::world::World;

/// What lowering gives.
#[derive(Debug)]
pub struct Lowered {
    /// The plan; `None` where anything is wrong.
    pub plan: Option<Plan>,
    /// Limits and resources by stage.
    pub terms: BTreeMap<String, Terms>,
    /// Everything that is wrong beyond the form, by place.
    pub diagnostics: Vec<Diagnostic>,
    /// What the planned number of units can show, for each inferential part of a claim.
    pub reach: Vec<Reach>,
    /// The code files and folders of each stage.
    pub code: BTreeMap<String, Vec<String>>,
}

/// Bounds that keep any spec cheap to check.
pub(crate) mod limits {
    /// Most axes.
    pub(crate) const AXES: usize = 64;
    /// Most stages.
    pub(crate) const STAGES: usize = 200_000;
    /// Most claims.
    pub(crate) const CLAIMS: usize = 10_000;
    /// Values that a ranking or a trend of means compares one by one.
    pub(crate) const STEPS: u64 = 100;
    /// Most values of a range.
    pub(crate) const POINTS: u64 = 1_000_000;
    /// Most values of a list or a mapping axis.
    pub(crate) const LISTED: usize = 100_000;
    /// Most inputs, outputs and measurements of one stage.
    pub(crate) const PORTS: usize = 1_000;
    /// Longest text with references, in bytes: what the kernel lets a program have as one argument.
    pub(crate) const TEXT: usize = 128 << 10;
    /// Longest formula, in bytes: its tree is walked recursively.
    pub(crate) const FORMULA: usize = 1_000;
    /// Most values that one derived value may read, directly or through others.
    pub(crate) const DERIVED: u64 = 1_000;
    /// Most names that are looked up while exclusions are evaluated.
    pub(crate) const EVALUATIONS: u64 = 1_000_000;
}

/// What every step shares.
struct Cx<'a> {
    spec: &'a Experiment,
    world: &'a dyn World,
    ops: &'a [OpSignature],
    params: BTreeMap<String, Value>,
    out: RefCell<Diagnostics>,
    /// Parameters that something refers to.
    used_params: RefCell<BTreeSet<String>>,
    /// Derived axes that something refers to.
    used_derived: RefCell<BTreeSet<String>>,
}

impl Cx<'_> {
    fn push(&self, diagnostic: Diagnostic) {
        self.out.borrow_mut().push(diagnostic);
    }

    /// Whether no further error would be kept.
    fn full(&self) -> bool {
        self.out.borrow().full()
    }

    /// The place of a part of a scalar; the whole scalar where no one would see it.
    fn place(&self, node: &Node, offset: usize, length: usize) -> Range<usize> {
        if self.full() { node.span.clone() } else { node.place(self.source(), offset, length) }
    }

    /// How many errors there are so far.
    fn errors(&self) -> usize {
        self.out.borrow().errors()
    }

    fn source(&self) -> &str {
        self.spec.text()
    }
}

/// Lowers an experiment to its plan. All problems beyond the form are collected; none comes twice.
pub fn lower(experiment: &Experiment, world: &dyn World, ops: &[OpSignature]) -> Lowered {
    let mut cx = Cx {
        spec: experiment,
        world,
        ops,
        params: BTreeMap::new(),
        out: RefCell::default(),
        used_params: RefCell::default(),
        used_derived: RefCell::default(),
    };
    cx.params = axes::params(&cx);
    let root = experiment.root();
    let axes = axes::read(&cx);
    let exclude = exclude::read(&cx, &axes);
    let pilot = exclude::pilot(&cx, &axes);
    let mut drafts = stage::read(&cx, &axes);
    let order = scope::order(&cx, &drafts);
    scope::fill(&cx, &axes, &mut drafts, &order);
    holdout::check(&cx, &drafts, &order);
    files::fill(&cx, &mut drafts);
    let by_name: HashMap<&str, usize> =
        drafts.iter().enumerate().map(|(i, d)| (d.name.as_str(), i)).collect();
    let stages = scope::Stages::new(&drafts, by_name);
    // Claims count the cells that exist and are no pilots.
    let unclaimed: Vec<_> = exclude.iter().chain(&pilot).cloned().collect();
    let claims = claims::read(&cx, &axes, &stages, &unclaimed);
    search::check(&cx, &axes, &stages);
    scope::unused(&cx, &axes, &stages, &claims.selected);
    axes::unused_params(&cx);
    let code = drafts.iter().filter(|d| d.op.is_none()).map(|d| (d.name.clone(), d.code.clone())).collect();
    let terms = drafts.iter().map(|d| (d.name.clone(), d.terms.clone())).collect();
    let name = root.get("experiment").and_then(|node| axes::experiment_name(&cx, node));
    let faulty = experiment.is_faulty() || cx.out.borrow().any_error();
    let plan = name.filter(|_| !faulty).map(|experiment| Plan {
        experiment,
        params: cx.params.clone(),
        axes: scope::planned_axes(&axes, &drafts),
        exclude,
        pilot,
        seen: seen(root),
        registration: registration(root),
        stages: drafts.into_iter().filter_map(stage::Draft::finish).collect(),
        claims: claims.claims,
    });
    let plan = plan.map(|mut plan| {
        avow_model::search::forget(&mut plan);
        plan
    });
    let plan = plan.filter(|plan| {
        control::check(&cx, plan);
        !cx.out.borrow().any_error()
    });
    Lowered { plan, terms, diagnostics: cx.out.into_inner().finish(), reach: claims.reach, code }
}

/// What was looked at before: one text or several.
fn seen(root: &Node) -> Vec<String> {
    let items = root.get("seen").map(|n| n.one_or_more()).unwrap_or_default();
    items.iter().filter_map(|n| n.text().map(|text| text.trim().to_owned())).collect()
}

/// Answers to the questions of registration forms.
fn registration(root: &Node) -> BTreeMap<String, String> {
    let entries = root.get("registration").map(|n| n.entries()).unwrap_or_default();
    entries.iter().filter_map(|e| Some((e.key.clone(), e.value.text()?.trim().to_owned()))).collect()
}
