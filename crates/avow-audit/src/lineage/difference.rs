//! In what two things differ, by what they rest on.
//!
//! Both are walked from their members towards files. Members of one stage of one plan differ in their actions through
//! the values of axes alone, so those are named and the commands that follow from them are not. Members of different
//! stages or plans are compared action by action. Inputs are paired by name, and those that a stage made are walked
//! into; bytes that differ because of something named already are no difference of their own. Where it was made and
//! by whose machine is told apart: it is part of no action. Absent: the numbers themselves.

use std::collections::BTreeSet;

use avow_model::action::{Action, changes};
use avow_model::canonical::Record;
use avow_model::digest::{Artifact, TreeDigest};
use avow_model::expand::{self, Member};
use avow_model::plan::{Input, Source as From};
use avow_model::present::Present;
use avow_model::tree::{Entry, Tree};
use serde::Serialize;

use super::build::action_of;
use crate::evidence::{Evidence, Fate};
use crate::source::{AuditError, Source};

/// One of the two: a member with where it is read from.
#[derive(Clone, Copy, Debug)]
pub struct Side<'a> {
    /// What exists for its plan.
    pub evidence: &'a Evidence<'a>,
    /// The store.
    pub source: Source<'a>,
    /// The member.
    pub member: Member,
}

/// In what two members differ.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Difference {
    /// Axes whose values differ, of the members themselves and of what they rest on.
    pub axes: Vec<AxisChange>,
    /// Parts of the work that differ, and that no axis explains.
    pub work: Vec<WorkChange>,
    /// Stages whose outputs differ because of the above.
    pub through: BTreeSet<String>,
    /// What differs and is part of no action: machines and what was present on them.
    pub circumstances: Vec<Circumstance>,
}

/// An axis that differs.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct AxisChange {
    /// The axis.
    pub axis: String,
    /// Its value on the first side; nothing where that has no such axis.
    pub a: Option<String>,
    /// Its value on the second.
    pub b: Option<String>,
}

/// A part of the work that differs.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct WorkChange {
    /// The members compared, by label.
    pub members: (String, String),
    /// The part of the action: `command`, `env`, `code`, `program`, `input`, `environment lock`, …
    pub part: String,
    /// Which one, where there are several.
    pub name: Option<String>,
    /// On the first side.
    pub a: Option<String>,
    /// On the second.
    pub b: Option<String>,
}

/// Something around an attempt that differs.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Circumstance {
    /// What: `host`, `system`, `cpu`, `confinement`, a package.
    pub what: String,
    /// On the first side.
    pub a: Option<String>,
    /// On the second.
    pub b: Option<String>,
}

impl Difference {
    /// Whether both are the same work.
    pub fn is_none(&self) -> bool {
        self.axes.is_empty() && self.work.is_empty()
    }
}

/// Compares two members with all that they rest on.
pub fn difference(a: Side<'_>, b: Side<'_>) -> Result<Difference, AuditError> {
    let mut walk = Walk { a, b, out: Difference::default(), seen: BTreeSet::new() };
    walk.members(a.member, b.member)?;
    walk.circumstances()?;
    walk.out.axes.sort();
    walk.out.axes.dedup();
    walk.out.work.sort();
    walk.out.work.dedup();
    Ok(walk.out)
}

struct Walk<'a> {
    a: Side<'a>,
    b: Side<'a>,
    out: Difference,
    seen: BTreeSet<(Member, Member)>,
}

impl Walk<'_> {
    fn members(&mut self, first: Member, second: Member) -> Result<(), AuditError> {
        let mut open = vec![(first, second)];
        while let Some((a, b)) = open.pop() {
            if self.seen.insert((a, b)) {
                open.extend(self.pair(a, b)?);
            }
        }
        Ok(())
    }

    /// Compares two members; returns the producers that are to be compared as well.
    fn pair(&mut self, a: Member, b: Member) -> Result<Vec<(Member, Member)>, AuditError> {
        let (left, right) = (action_of(self.a.evidence, a), action_of(self.b.evidence, b));
        if left == right && left.is_some() {
            return Ok(Vec::new());
        }
        let same_stage = a.stage == b.stage && self.a.evidence.digest == self.b.evidence.digest;
        let axes = self.axes(a, b, same_stage);
        if let (Some(left), Some(right)) = (&left, &right)
            && !same_stage
        {
            self.work(a, b, left, right)?;
        }
        if !axes.is_empty() || left.as_ref().map(Record::digest) != right.as_ref().map(Record::digest) {
            self.out.through.insert(self.stage(a).name.clone());
        }
        self.out.axes.extend(axes);
        self.inputs(a, b, left.as_ref(), right.as_ref())
    }

    fn stage(&self, a: Member) -> &avow_model::plan::Stage {
        &self.a.evidence.plan.stages[a.stage as usize]
    }

    /// Axes on which the two stand at different values. Of different stages those that both have.
    fn axes(&self, a: Member, b: Member, same_stage: bool) -> Vec<AxisChange> {
        let values = |side: Side<'_>, member: Member| -> Vec<(String, String)> {
            let scope = &side.evidence.plan.stages[member.stage as usize].scope;
            let cell = expand::cell(side.evidence.plan, member);
            let own = cell.values().filter(|(name, _)| scope.iter().any(|axis| axis == name));
            own.map(|(name, value)| (name.to_owned(), value.to_string())).collect()
        };
        let (left, right) = (values(self.a, a), values(self.b, b));
        let find = |those: &[(String, String)], axis: &str| {
            those.iter().find(|(name, _)| name == axis).map(|(_, value)| value.clone())
        };
        let names: BTreeSet<&String> = left.iter().chain(&right).map(|(name, _)| name).collect();
        let change = |axis: &String| {
            let (a, b) = (find(&left, axis), find(&right, axis));
            let both = same_stage || (a.is_some() && b.is_some());
            (a != b && both).then(|| AxisChange { axis: axis.clone(), a, b })
        };
        names.into_iter().filter_map(change).collect()
    }

    /// What differs in the actions of members that are not of one stage.
    fn work(&mut self, a: Member, b: Member, left: &Action, right: &Action) -> Result<(), AuditError> {
        let members = (self.a.evidence.label(a), self.b.evidence.label(b));
        for change in changes(left, right).into_iter().filter(|change| change.part != "input") {
            if let ("code", Some(old), Some(new)) = (change.part, left.code, right.code) {
                self.code(&members, old, new)?;
                continue;
            }
            self.out.work.push(WorkChange {
                members: members.clone(),
                part: change.part.to_owned(),
                name: change.name,
                a: change.old,
                b: change.new,
            });
        }
        Ok(())
    }

    /// The code files that differ.
    fn code(
        &mut self,
        members: &(String, String),
        old: TreeDigest,
        new: TreeDigest,
    ) -> Result<(), AuditError> {
        let whole = |a: TreeDigest, b: TreeDigest| WorkChange {
            members: members.clone(),
            part: "code".to_owned(),
            name: None,
            a: Some(Artifact::Tree(a).short()),
            b: Some(Artifact::Tree(b).short()),
        };
        let left = self.a.source.record::<Tree>(old.into(), "code")?;
        let right = self.b.source.record::<Tree>(new.into(), "code")?;
        let (Ok(left), Ok(right)) = (left, right) else {
            self.out.work.push(whole(old, new));
            return Ok(());
        };
        let paths: BTreeSet<&String> = left.entries.keys().chain(right.entries.keys()).collect();
        for path in paths {
            let (a, b) = (left.entries.get(path), right.entries.get(path));
            if a != b {
                let (a, b) = (a.map(entry), b.map(entry));
                let (part, name) = ("code".to_owned(), Some(path.clone()));
                self.out.work.push(WorkChange { members: members.clone(), part, name, a, b });
            }
        }
        Ok(())
    }

    /// Inputs by name; returns the members that made those whose bytes differ.
    fn inputs(
        &mut self,
        a: Member,
        b: Member,
        left: Option<&Action>,
        right: Option<&Action>,
    ) -> Result<Vec<(Member, Member)>, AuditError> {
        let of =
            |side: Side<'_>, member: Member| side.evidence.plan.stages[member.stage as usize].inputs.clone();
        let (theirs, others) = (of(self.a, a), of(self.b, b));
        let members = (self.a.evidence.label(a), self.b.evidence.label(b));
        let mut open = Vec::new();
        let names: BTreeSet<&String> = theirs.keys().chain(others.keys()).collect();
        for name in names {
            let (x, y) = (theirs.get(name), others.get(name));
            let content = |action: Option<&Action>, input: Option<&Input>| {
                action.and_then(|action| action.inputs.get(&input?.mount)).copied()
            };
            let (p, q) = (content(left, x), content(right, y));
            if p.is_some() && p == q {
                continue;
            }
            let producers = |side: Side<'_>, member: Member, input: Option<&Input>| {
                let cell = expand::cell(side.evidence.plan, member);
                input.and_then(|input| expand::producers(&cell, &input.from)).unwrap_or_default()
            };
            let (made, other) = (producers(self.a, a, x), producers(self.b, b, y));
            if !made.is_empty() && made.len() == other.len() {
                open.extend(made.into_iter().zip(other));
                continue;
            }
            let told = |input: Option<&Input>, content: Option<Artifact>, made: usize| {
                input.map(|input| told(&input.from, content, made))
            };
            self.out.work.push(WorkChange {
                members: members.clone(),
                part: "input".to_owned(),
                name: Some(name.clone()),
                a: told(x, p, made.len()),
                b: told(y, q, other.len()),
            });
        }
        Ok(open)
    }

    /// The machines of the two members themselves.
    fn circumstances(&mut self) -> Result<(), AuditError> {
        let attempt = |side: Side<'_>| match side.evidence.member(side.member).map(|m| &m.fate) {
            Some(Fate::Stands(stands)) => side.source.attempt(stands.attempt),
            _ => Ok(None),
        };
        let (Some(a), Some(b)) = (attempt(self.a)?, attempt(self.b)?) else { return Ok(()) };
        let pairs = [
            ("host", &a.host.name, &b.host.name),
            ("system", &a.host.system, &b.host.system),
            ("processor", &a.host.cpu, &b.host.cpu),
            ("confinement", &a.host.confinement, &b.host.confinement),
        ];
        for (what, a, b) in pairs.into_iter().filter(|(_, a, b)| a != b) {
            let (a, b) = (Some(a.clone()), Some(b.clone()));
            self.out.circumstances.push(Circumstance { what: what.to_owned(), a, b });
        }
        let (Some(x), Some(y)) = (a.environment, b.environment) else { return Ok(()) };
        if x == y {
            return Ok(());
        }
        let what = "what was present where an attempt ran";
        let then = self.a.source.record::<Present>(x, what)?;
        let now = self.b.source.record::<Present>(y, what)?;
        if let (Ok(then), Ok(now)) = (then, now) {
            let told = now.since(&then).into_iter().map(|one| Circumstance {
                what: one.what,
                a: one.then,
                b: one.now,
            });
            self.out.circumstances.extend(told);
        }
        Ok(())
    }
}

/// An entry of a code folder in short.
fn entry(entry: &Entry) -> String {
    match entry {
        Entry::File { digest, executable } => {
            format!("{}{}", digest.short(), if *executable { ", executable" } else { "" })
        }
        Entry::Tree { digest } => Artifact::Tree(*digest).short(),
        Entry::Link { target } => format!("a link to {target}"),
        Entry::Empty => "an empty folder".to_owned(),
    }
}

/// Where an input comes from, with its content.
fn told(from: &From, content: Option<Artifact>, made: usize) -> String {
    let content = content.map(|content| format!(" ({})", content.short())).unwrap_or_default();
    match from {
        From::Path { path, .. } => format!("{path}{content}"),
        From::Url { url, .. } => format!("{url}{content}"),
        From::Output { stage, output, .. } if made > 1 => format!("{stage}.{output} of {made} members"),
        From::Output { stage, output, .. } => format!("{stage}.{output}{content}"),
        From::Probes { search } => format!("the probes of {search}{content}"),
    }
}
