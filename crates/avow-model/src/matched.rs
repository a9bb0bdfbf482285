//! Whether two arms of a contrast are equal but for what their claim names.
//!
//! The arms of a contrast read members of one stage at two values of an axis. They are matched where everything that
//! these members rest on is the same but for the named things: what a stage's command, environment and parameters
//! refer to has one value in both, its repetition is the same, and so are, in turn, the members whose outputs it
//! reads. Code, programs and files of the project belong to a stage and are the same in both arms by construction.
//! So the proof walks the two lineages side by side and needs no result. Absent: what attempts were seen to read,
//! which the auditor adds.

use std::collections::BTreeSet;

use crate::claim::{Compare, Part};
use crate::expand::{self, Cell, Member};
use crate::plan::{Plan, Program, Source, Stage};
use crate::template::{Template, TemplateError, fill_value};
use crate::value::Value;

/// What a thing is in the first arm and in the second, where it is there at all.
type Values = (Option<Value>, Option<Value>);

/// The first thing that differs between two members of one stage.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// The member of the first arm.
    pub first: Member,
    /// The member of the second arm.
    pub second: Member,
    /// What differs: a name as a spec has it (`axes.arm.lr`, `repeat`), or an input.
    pub what: String,
    /// Its value in the first arm, where it is a value.
    pub here: Option<Value>,
    /// Its value in the second arm.
    pub there: Option<Value>,
}

/// How often a part has something to compare, and what was found first.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Matching {
    /// Pairs of members of the stage that were compared, up to the first that differ.
    pub pairs: usize,
    /// The first difference.
    pub difference: Option<Difference>,
}

/// Compares the arms of a part under its `control`; nothing where it has none. At most `limit` members of the selected
/// stage are followed. `also` is asked about every two members that are compared, and may name what differs between
/// them beyond what the plan says.
pub fn arms(
    plan: &Plan,
    part: &Part,
    limit: usize,
    also: &mut dyn FnMut(Member, Member) -> Option<String>,
) -> Option<Matching> {
    let control = part.control.as_ref()?;
    let stage = plan.stage_index(&part.select.stage)?;
    let (of, except) = (plan.stage_index(&control.of)?, control.equal_except.as_slice());
    let mut walk =
        Walk { plan, of: of as u32, except, seen: BTreeSet::new(), found: Matching::default(), also };
    for compare in part.compare.iter().chain(&part.crossed) {
        for (first, second) in pairs(plan, stage, part, compare).take(limit) {
            walk.descend(first, second);
            if walk.found.difference.is_some() {
                return Some(walk.found);
            }
        }
    }
    Some(walk.found)
}

/// The members of the selected stage in the first arm, each with its partner in the second.
fn pairs<'a>(
    plan: &'a Plan,
    stage: usize,
    part: &'a Part,
    compare: &'a Compare,
) -> impl Iterator<Item = (Member, Member)> + 'a {
    let axis = plan.axis(&compare.dimension);
    let index = |value: &Value| axis.and_then(|axis| axis.index_of(value));
    let (first, second) = (index(&compare.first), index(&compare.second));
    expand::members(plan, stage).filter_map(move |member| {
        let cell = expand::cell(plan, member);
        let filtered = |(name, value): (&str, Value)| {
            part.select.filter.get(name).is_none_or(|values| values.contains(&value))
        };
        let selected =
            first.is_some() && cell.index(&compare.dimension) == first && cell.values().all(filtered);
        let index = |name: &str| if name == compare.dimension { second } else { cell.index(name) };
        let partner = expand::member_at(plan, stage, index).filter(|partner| expand::exists(plan, *partner));
        partner.filter(|partner| selected && *partner != member).map(|partner| (member, partner))
    })
}

struct Walk<'a> {
    plan: &'a Plan,
    /// The stage whose members must match.
    of: u32,
    except: &'a [String],
    /// What was compared, or passed on the way, already.
    seen: BTreeSet<(Member, Member)>,
    found: Matching,
    also: &'a mut dyn FnMut(Member, Member) -> Option<String>,
}

impl Walk<'_> {
    /// Goes from what a claim selects down to the stage that must match.
    fn descend(&mut self, first: Member, second: Member) {
        let mut open = vec![(first, second)];
        while let Some((first, second)) = open.pop() {
            if first == second || self.found.difference.is_some() || !self.seen.insert((first, second)) {
                continue;
            }
            if first.stage == self.of {
                self.found.pairs += 1;
                self.compare(first, second);
                continue;
            }
            match producers(self.plan, first, second) {
                Ok(producers) => open.extend(producers),
                // What lies between the stage and the claim need not match, but the way must be the same.
                Err(input) => self.differ(first, second, input, (None, None)),
            }
        }
    }

    /// Compares two members of one stage, and everything upstream of them.
    fn compare(&mut self, first: Member, second: Member) {
        let mut open = vec![(first, second)];
        let mut compared = BTreeSet::new();
        while let Some((first, second)) = open.pop() {
            if first == second || !compared.insert((first, second)) {
                continue;
            }
            if let Some((what, values)) = self.own(first, second) {
                return self.differ(first, second, what, values);
            }
            if let Some(what) = (self.also)(first, second) {
                return self.differ(first, second, what, (None, None));
            }
            match producers(self.plan, first, second) {
                Ok(producers) => open.extend(producers),
                Err(input) => return self.differ(first, second, input, (None, None)),
            }
        }
    }

    fn differ(&mut self, first: Member, second: Member, what: String, values: Values) {
        let (here, there) = values;
        self.found.difference = Some(Difference { first, second, what, here, there });
    }

    /// What the stage itself refers to and that has another value in the second arm.
    fn own(&self, first: Member, second: Member) -> Option<(String, Values)> {
        let stage = &self.plan.stages[first.stage as usize];
        let (here, there) = (expand::cell(self.plan, first), expand::cell(self.plan, second));
        let mut equalised = there.clone();
        for name in self.except {
            if let Some(index) = here.index(name) {
                equalised = equalised.at(name, index);
            }
        }
        for path in references(stage) {
            let (a, b) = (here.lookup(&path), equalised.lookup(&path));
            if a != b && !self.is_excepted(&path) {
                return Some((path.join("."), (a, b)));
            }
        }
        let repeats = |cell: &Cell<'_>| cell.index("repeat").filter(|_| stage.repeats);
        let (a, b) = (repeats(&here), repeats(&equalised));
        (a != b).then(|| ("repeat".to_owned(), (a.map(number), b.map(number))))
    }

    /// An attribute that is named by itself (`arm.wd`).
    fn is_excepted(&self, path: &[String]) -> bool {
        let [root, rest @ ..] = path else { return false };
        root == "axes" && self.except.contains(&rest.join("."))
    }
}

fn number(index: u64) -> Value {
    Value::Int(i64::try_from(index).unwrap_or(i64::MAX))
}

/// What a stage refers to that may vary from cell to cell.
fn references(stage: &Stage) -> BTreeSet<Vec<String>> {
    let mut all: BTreeSet<Vec<String>> = BTreeSet::new();
    let templates: Vec<&Template> = match &stage.program {
        Program::Shell(template) => vec![template],
        Program::Arguments(templates) => templates.iter().collect(),
        Program::Op { with, .. } => {
            let mut note = |path: &[String]| {
                all.insert(path.to_vec());
                Ok::<Value, TemplateError>(Value::Bool(false))
            };
            for value in with.values() {
                // A text that is no template is refused where the plan is bound; it refers to nothing.
                let _ = fill_value(value, &mut note);
            }
            Vec::new()
        }
    };
    let templates = templates.into_iter().chain(stage.env.values());
    all.extend(templates.flat_map(Template::references).map(<[String]>::to_vec));
    all.retain(|path| path.first().is_some_and(|root| root == "axes"));
    all
}

/// The members that two members of one stage read, side by side; `Err` names an input for which they are not as many.
fn producers(plan: &Plan, first: Member, second: Member) -> Result<Vec<(Member, Member)>, String> {
    let stage = &plan.stages[first.stage as usize];
    let (here, there) = (expand::cell(plan, first), expand::cell(plan, second));
    let mut all = Vec::new();
    for (name, input) in &stage.inputs {
        if !matches!(input.from, Source::Output { .. }) {
            continue;
        }
        let of = |cell: &Cell<'_>| expand::producers(cell, &input.from).unwrap_or_default();
        let (a, b) = (of(&here), of(&there));
        if a.len() != b.len() {
            return Err(format!("the input `{name}`"));
        }
        all.extend(a.into_iter().zip(b));
    }
    Ok(all)
}
