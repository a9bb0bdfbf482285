//! What was done for an experiment, in the nouns that the exchange formats share.
//!
//! Whoever knows which attempt stands for which member (the auditor) fills this in; the formats only write it down.
//! It holds every attempt, failures included: an account of successes alone would be another experiment.

use avow_model::action::Action;
use avow_model::attempt::Attempt;
use avow_model::digest::{Artifact, AttemptDigest, PlanDigest};
use avow_model::expand::Member;
use avow_model::plan::{Input, Plan, Stage};

use crate::citation::Citation;

/// Everything that a format writes down.
#[derive(Debug)]
pub struct Account<'a> {
    /// The plan.
    pub plan: &'a Plan,
    /// Its digest.
    pub digest: PlanDigest,
    /// The spec.
    pub spec: SpecText<'a>,
    /// The experiment's title, where it has one.
    pub title: Option<&'a str>,
    /// The version of the program that writes.
    pub tool: &'a str,
    /// Every attempt at a member of the plan, in the order of members, then of time.
    pub executed: Vec<Executed>,
    /// Files that travel along: citation, licences, registrations, tables.
    pub papers: Vec<Paper>,
    /// What `CITATION.cff` says.
    pub citation: Option<Citation>,
}

/// A spec's path in the project and its text.
#[derive(Clone, Copy, Debug)]
pub struct SpecText<'a> {
    /// The path.
    pub path: &'a str,
    /// The text.
    pub text: &'a str,
}

/// One attempt, with the members it was made for or stands for.
#[derive(Debug)]
pub struct Executed {
    /// The members with their labels, at least one.
    pub members: Vec<(Member, String)>,
    /// The attempt's digest.
    pub digest: AttemptDigest,
    /// Its record.
    pub attempt: Attempt,
    /// What it carried out.
    pub action: Action,
    /// Whether it stands for a member.
    pub stands: bool,
}

/// A file that travels along.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Paper {
    /// Its path.
    pub path: String,
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// What it is, in one sentence.
    pub about: String,
}

impl<'a> Account<'a> {
    /// The attempts that stand for members.
    pub fn standing(&self) -> impl Iterator<Item = &Executed> {
        self.executed.iter().filter(|executed| executed.stands)
    }

    /// The stage of a member.
    pub fn stage(&self, member: Member) -> &'a Stage {
        &self.plan.stages[member.stage as usize]
    }

    /// Whether some attempt was made for a stage.
    pub fn was_tried(&self, stage: usize) -> bool {
        self.executed.iter().any(|executed| executed.members.iter().any(|(m, _)| m.stage as usize == stage))
    }
}

impl Executed {
    /// The first of its members.
    pub fn member(&self) -> Member {
        self.members[0].0
    }

    /// The labels of its members.
    pub fn label(&self) -> String {
        let labels: Vec<&str> = self.members.iter().map(|(_, label)| label.as_str()).collect();
        labels.join(", ")
    }

    /// What it read as the inputs of a stage: name, declaration and content.
    pub fn inputs<'s>(&'s self, stage: &'s Stage) -> impl Iterator<Item = (&'s str, &'s Input, Artifact)> {
        stage.inputs.iter().filter_map(|(name, input)| {
            let artifact = self.action.inputs.get(&input.mount)?;
            Some((name.as_str(), input, *artifact))
        })
    }
}
