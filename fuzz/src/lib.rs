//! What is fuzzed: everything that reads bytes which somebody else may have written.
//!
//! Each function takes any bytes, and panics where a promise is broken. The fuzz targets call them with what the
//! fuzzer makes up, `tests/seeds.rs` with the committed seeds on any compiler.

mod measured;
mod wire;
mod world;

use avow_model::action::Action;
use avow_model::attempt::Attempt;
use avow_model::canonical::Record;
use avow_model::expand;
use avow_model::expression::Expression;
use avow_model::journal::{self, RunState};
use avow_model::ledger::Ledger;
use avow_model::plan::Plan;
use avow_model::search;
use avow_model::template::Template;
use avow_model::tree::Tree;

pub use measured::measurement;
pub use wire::wire;

/// Every target by name.
pub const TARGETS: &[(&str, fn(&[u8]))] = &[
    ("spec", spec),
    ("record", record),
    ("journal", journal),
    ("measurement", measurement),
    ("ledger", ledger),
    ("text", text),
    ("wire", wire),
    ("lock", lock),
];

/// A spec is refused with places inside its text, or becomes a plan whose completed spec is the same plan.
pub fn spec(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let read = avow_spec::read(text);
    for diagnostic in &read.diagnostics {
        assert!(diagnostic.span.start <= diagnostic.span.end && diagnostic.span.end <= text.len());
    }
    let Some(experiment) = read.experiment else { return };
    let lowered = avow_spec::lower(&experiment, &world::Project, &[]);
    for diagnostic in &lowered.diagnostics {
        assert!(diagnostic.span.start <= diagnostic.span.end && diagnostic.span.end <= text.len());
    }
    let Some(plan) = lowered.plan else { return };
    plan.check().expect("a lowered plan is sound");
    assert_eq!(Plan::from_bytes(&plan.to_bytes()).expect("a plan reads back").digest(), plan.digest());
    let full = avow_spec::full(&plan, &lowered.terms, &lowered.code);
    let again = avow_spec::read(&full).experiment.expect("a completed spec is a mapping");
    let again = avow_spec::lower(&again, &world::Project, &[]);
    let again = again.plan.unwrap_or_else(|| panic!("no plan comes of\n{full}\n{:?}", again.diagnostics));
    assert_eq!(again.digest(), plan.digest(), "{full}");
}

/// A record is refused, or is the canonical form of what was read from it.
pub fn record(bytes: &[u8]) {
    if let Ok(tree) = Tree::from_bytes(bytes) {
        assert_eq!(tree.to_bytes(), bytes);
    }
    if let Ok(action) = Action::from_bytes(bytes) {
        assert_eq!(action.to_bytes(), bytes);
    }
    if let Ok(attempt) = Attempt::from_bytes(bytes) {
        assert_eq!(attempt.to_bytes(), bytes);
    }
    if let Ok(plan) = Plan::from_bytes(bytes) {
        assert_eq!(plan.to_bytes(), bytes);
        if plan.check().is_ok() {
            walk(&plan);
        }
    }
}

/// Looks at the first members of every stage of a plan that came from elsewhere.
fn walk(plan: &Plan) {
    for stage in 0..plan.stages.len() {
        let first = (0..expand::span(plan, &plan.stages[stage]).min(8))
            .map(|cell| expand::Member { stage: stage as u32, cell });
        for member in first.filter(|member| expand::exists(plan, *member)) {
            let label = expand::label(plan, member);
            assert!(label.starts_with(&plan.stages[stage].name));
            // An input that was not made is an error like any other.
            let _ = avow_model::bind::bind(plan, member, &|_, _| None);
        }
    }
    for (_, search) in search::searches(plan) {
        let _ = search.step(&[], &|_| Vec::new(), &[]);
    }
}

/// A journal is read up to its first damage, and what is intact can be read again.
pub fn journal(bytes: &[u8]) {
    let read = journal::read(bytes);
    assert!(read.intact <= bytes.len());
    assert_eq!(read.damage.is_none(), read.intact == bytes.len());
    let again = journal::read(&bytes[..read.intact]);
    assert_eq!((again.damage, again.head, again.lines.len()), (None, read.head, read.lines.len()));
    let state = RunState::of(&read.lines);
    let _ = (state.counts(), state.orphans().count());
}

/// A ledger is read with findings, and every entry can be found by its leaf.
pub fn ledger(bytes: &[u8]) {
    let ledger = Ledger::read(bytes);
    assert!(ledger.intact() <= bytes.len());
    for entry in ledger.entries() {
        assert!(ledger.entry(entry.leaf).is_some());
    }
    let _ = (ledger.heads(), ledger.chain());
    let _ = avow_audit::registration::Registration::latest(&ledger);
}

/// A lock file has no plain form, or one that is its own plain form and says the same.
pub fn lock(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    for manager in ["uv", "pip", "conda"] {
        let _ = avow_spec::lock::open(manager, text);
        if let Some(plain) = avow_spec::lock::plain(manager, text) {
            assert_eq!(avow_spec::lock::plain(manager, &plain).as_deref(), Some(plain.as_str()), "{manager}");
            assert_eq!(avow_spec::lock::Lock::read(manager, &plain), avow_spec::lock::Lock::read(manager, text));
        }
    }
}

/// Formulas and texts with references are refused, or print as something that reads back the same.
pub fn text(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if let Ok(template) = Template::parse(text) {
        assert_eq!(Template::parse(&template.to_string()).expect("it reads back"), template);
    }
    // The checker refuses longer ones.
    if text.len() <= 1000
        && let Ok(expression) = Expression::parse(text)
    {
        let _ = expression.evaluate(&|_| Some(1_i64.into()));
        assert_eq!(Expression::parse(expression.text()).expect("it reads back"), expression);
    }
}
