//! Searches: followed with the auditor, and told in words.

use std::sync::Arc;

use avow_audit::{AuditError, Source, search};
use avow_engine::{Followed, Judge, ledger_of};
use avow_model::plan::Plan;
use avow_model::search::{Decision, Search, State, Step, Void, searches};
use avow_store::{FileBlobs, Observed, Project, SharedIndex};

use crate::context::Reading;
use crate::failure;
use crate::output::Failure;

/// Whether a plan has any.
pub fn any(plan: &Plan) -> bool {
    searches(plan).next().is_some()
}

/// A plan with what its searches have asked for and found so far.
pub fn followed(project: &Project, plan: Arc<Plan>) -> Result<Arc<Plan>, Failure> {
    if !any(&plan) && !avow_model::seed::is_fresh(&plan) {
        return Ok(plan);
    }
    let reading = Reading::open(project, &plan.experiment)?;
    let followed = search::follow(&plan, reading.source(), &reading.ledger).map_err(failure::audit)?;
    Ok(Arc::new(followed.plan))
}

/// The engine's judge: the auditor, reading what the run has recorded.
pub struct Auditor {
    /// The project.
    pub project: Project,
    /// Its blobs.
    pub blobs: Arc<FileBlobs>,
    /// Its index.
    pub index: Arc<SharedIndex>,
}

impl Judge for Auditor {
    fn follow(&mut self, plan: &Plan) -> Result<Followed, Box<dyn std::error::Error + Send + Sync>> {
        let (_, ledger) = ledger_of(&self.project, &plan.experiment)?;
        let observed = Observed::here(&self.project);
        let source = Source::new(&*self.blobs, &*self.index).observing(&observed, &*self.index);
        let followed: Result<_, AuditError> = search::follow(plan, source, &ledger);
        let followed = followed?;
        Ok(Followed { plan: followed.plan, decisions: followed.decisions })
    }
}

/// A decision without the numbers behind it, so that it may be told while values are hidden.
pub fn step(decision: &Decision) -> String {
    let at: Vec<String> = decision.at.iter().map(ToString::to_string).collect();
    let name = match at.as_slice() {
        [] => decision.search.clone(),
        at => format!("{} at {}", decision.search, at.join(", ")),
    };
    match &decision.answer {
        Step::Ask(points) => {
            let probes = if points.len() == 1 { "probe" } else { "probes" };
            format!("search {name}: {} more {probes}", points.len())
        }
        Step::Consult(asked) => format!("search {name}: asks its program, round {}", asked.round + 1),
        Step::Found(found) => format!("search {name}: over after {} probes", found.probes),
        Step::Void(reason) => format!("search {name}: void, {}", why(reason)),
    }
}

/// A line for each search of a plan.
pub fn lines(plan: &Plan) -> String {
    let of_one = |(name, search): (&str, &Search)| {
        let mut told = Vec::new();
        for (at, state) in &search.ended {
            let pairs: Vec<String> =
                search.per.iter().zip(at).map(|(axis, value)| format!("{axis}={value}")).collect();
            told.push(format!("search {name}[{}]: {}\n", pairs.join(","), line(search, state)));
        }
        if search.per.is_empty() || !search.state.is_over() {
            told.push(format!("search {name}: {}\n", line(search, &search.state)));
        }
        told.concat()
    };
    searches(plan).map(of_one).collect()
}

fn line(search: &Search, state: &State) -> String {
    match state {
        State::Open if search.asked.is_empty() => "not begun".to_owned(),
        State::Open => format!("not over; {} probes so far", search.asked.len()),
        State::Void { reason } => format!("void, {}", why(reason)),
        State::Found(found) => {
            let within = found.within.as_ref();
            let within = within.map(|(low, high)| format!(", between {low} and {high}")).unwrap_or_default();
            let place = match found.point.as_slice() {
                [] => format!("{} = {}", search.over, found.value),
                point => {
                    let pairs = search.own_axes().into_iter().zip(point);
                    pairs.map(|(axis, value)| format!("{axis} = {value}")).collect::<Vec<_>>().join(", ")
                }
            };
            format!("{place}{within} ({} probes)", found.probes)
        }
    }
}

fn why(reason: &Void) -> String {
    match reason {
        Void::NoCrossing => "both ends of the interval are on one side of the goal".to_owned(),
        Void::Exhausted => "the probes it may ask for were not enough".to_owned(),
        Void::Failed { member } => format!("the probe {member} failed"),
        Void::NoNumber { at } => format!("the probe at {at} gave no finite number"),
        Void::BadAnswer { round, reason } => {
            format!("the answer of its program in round {} cannot be used: {reason}", round + 1)
        }
        Void::NothingNew { round } => {
            format!("its program asked in round {} for nothing that was not probed before", round + 1)
        }
        Void::RestsOn { search } => format!("the search {search} that it rests on found nothing"),
    }
}
