//! Why a member runs, waits or was reused, in words.

use avow_model::expand;
use avow_model::plan::Plan;
use avow_model::reads::{Drift, Drifted};
use avow_planner::{Miss, Reason};

use crate::words;

/// A reason as the end of a sentence that begins with the member.
pub fn reason(plan: &Plan, reason: &Reason) -> String {
    match reason {
        Reason::Waits { producers: 1 } => "waits for one input".to_owned(),
        Reason::Waits { producers } => format!("waits for {producers} inputs"),
        Reason::Looking => "is being looked up".to_owned(),
        Reason::SameAction { other } => {
            format!("waits for {}, which does exactly the same", expand::label(plan, *other))
        }
        Reason::Queued(miss) => format!("will run: {}", self::miss(miss)),
        Reason::Running(miss) => format!("is running: {}", self::miss(miss)),
        Reason::Elsewhere => "waits for another run, which makes exactly the same".to_owned(),
        Reason::Reused { attempt } => format!("is reused from attempt {}", attempt.short()),
        Reason::Ran { miss, outcome } => format!("ran ({outcome}): {}", self::miss(miss)),
        Reason::Blocked { by } => {
            format!("cannot run: {} failed, which it needs", expand::label(plan, *by))
        }
        Reason::NotReached => "was not reached: the run stopped before".to_owned(),
    }
}

/// Why no earlier attempt can stand for a member.
pub fn miss(miss: &Miss) -> String {
    match miss {
        Miss::NeverRun => "exactly this was never executed".to_owned(),
        Miss::OnlyFailures { last } => format!("it was executed before without success ({last})"),
        Miss::BlobMissing { blob } => {
            format!("it was executed before, but its output {} is missing or damaged", blob.short())
        }
        Miss::Collected { at } => {
            format!("it was executed before, but what it made was collected on {}", words::moment(*at))
        }
        Miss::ReadDrifted(Drift { path, how }) => match how {
            Drifted::Changed => format!("it read {path}, which has changed"),
            Drifted::Gone => format!("it read {path}, which is gone"),
            Drifted::Appeared => format!("it looked for {path}, which was not there and is now"),
            Drifted::Unknown => format!("it read {path}, and nobody can say whether that is as it was"),
        },
        Miss::Invalidated => {
            "it was executed before, and that was declared wrong (`avow invalidate`)".to_owned()
        }
        Miss::Volatile => "its stage declares `reuse: never`".to_owned(),
        Miss::OtherHost { host } => format!("its stage declares `reuse: same-host`, and it ran on `{host}`"),
    }
}
