//! What became of a spec, kept for the next command: it is read and lowered once, as long as its text and every
//! answer it asked of the world stay the same.
//!
//! A compiled spec is found by the digest of its text, its place, the depth at which the world was asked and this
//! program file. It holds the questions with their answers; each is asked again before anything of it is used, at the
//! cost of a look at metadata where the content was digested before. Warnings and errors are kept with it, so that a
//! person reads the same words either way. The plan itself lies behind them and is decoded only where it is wanted.
//! Where nothing but the content of inputs is another, the plan is the same with other digests in it: it is mended
//! instead of lowered.

use std::collections::BTreeMap;
use std::ops::Range;
use std::os::unix::fs::MetadataExt;
use std::sync::Arc;

use avow_engine::can_settle;
use avow_model::canonical::Record;
use avow_model::digest::{Artifact, BlobDigest, PlanDigest};
use avow_model::plan::{Plan, Source, Terms};
use avow_spec::{Diagnostic, Lowered, Severity};
use avow_store::{Project, cache};
use serde::{Deserialize, Serialize};

use crate::asking::{Asked, Asking};
use crate::context::Spec;
use crate::world::ProjectWorld;

/// Compiled specs that a project keeps.
const KEPT: usize = 12;
/// Texts from this size on, in bytes, and those that ask this much, are worth keeping.
const TEXT: usize = 8 << 10;
const QUESTIONS: usize = 64;

/// A spec after reading and lowering.
#[derive(Debug)]
pub struct Compiled {
    /// The plan; `None` where anything is wrong, or where it was not wanted.
    pub plan: Option<Arc<Plan>>,
    /// Whether there is one.
    pub good: bool,
    /// Limits and resources by stage.
    pub terms: BTreeMap<String, Terms>,
    /// Everything that is wrong or worth a warning, by place.
    pub diagnostics: Vec<Diagnostic>,
    /// What the planned numbers of units cannot show, or only just, in words by claim.
    pub reach: Vec<String>,
    /// The code files and folders of each stage.
    pub code: BTreeMap<String, Vec<String>>,
    /// What a run in which nothing changed needs of the plan; `None` where it needs the plan, or nothing was kept.
    pub brief: Option<Brief>,
}

/// A plan, as far as it concerns a run in which nothing changed.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Brief {
    /// The plan.
    pub plan: PlanDigest,
    /// The experiment.
    pub experiment: String,
    /// Whether there is anything to judge.
    pub claims: bool,
}

impl Brief {
    fn of(plan: &Plan) -> Option<Brief> {
        let fetched = |source: &Source| matches!(source, Source::Url { .. });
        let inputs = || plan.stages.iter().flat_map(|stage| stage.inputs.values());
        let enough = can_settle(plan) && !inputs().any(|input| fetched(&input.from));
        let claims = !plan.claims.is_empty();
        enough.then(|| Brief { plan: plan.digest(), experiment: plan.experiment.clone(), claims })
    }
}

/// What lies before the plan in the file.
#[derive(Serialize, Deserialize)]
struct Head {
    key: BlobDigest,
    asked: Asked,
    good: bool,
    diagnostics: Vec<Kept>,
    reach: Vec<String>,
    terms: BTreeMap<String, Terms>,
    code: BTreeMap<String, Vec<String>>,
    brief: Option<Brief>,
    /// What a plan knows of its lock files beside its record.
    locks: BTreeMap<String, BlobDigest>,
}

/// A diagnostic in the file.
#[derive(Serialize, Deserialize)]
struct Kept {
    error: bool,
    code: String,
    message: String,
    span: Range<usize>,
    labels: Vec<(Range<usize>, String)>,
    hint: Option<String>,
}

/// Reads and lowers a spec, or finds what became of it before.
pub fn compile(spec: &Spec, world: &ProjectWorld<'_>, want_plan: bool) -> Compiled {
    let key = key(spec, world);
    if let Some(found) = key.and_then(|key| find(&spec.project, key, world, want_plan)) {
        return found;
    }
    let asking = Asking::new(world);
    let (lowered, diagnostics) = spec.lower(&asking);
    let asked = asking.finish();
    let compiled = assemble(lowered, diagnostics);
    let worth = spec.text.len() >= TEXT || asked.len() >= QUESTIONS;
    if let Some(key) = key.filter(|_| worth && !world.has_failed()) {
        keep(&spec.project, key, asked, &compiled);
    }
    compiled
}

fn assemble(lowered: Option<Lowered>, diagnostics: Vec<Diagnostic>) -> Compiled {
    let Some(Lowered { plan, terms, reach, code, diagnostics: _ }) = lowered else {
        let (terms, code) = (BTreeMap::new(), BTreeMap::new());
        let reach = Vec::new();
        return Compiled { plan: None, good: false, terms, diagnostics, reach, code, brief: None };
    };
    // A method without a smallest p says nothing about what n can show.
    let telling = reach.iter().filter(|reach| !reach.reachable || reach.smallest_q != Some(0.0));
    Compiled {
        good: plan.is_some(),
        reach: telling.map(|reach| format!("{}: {reach}", reach.claim)).collect(),
        plan: plan.map(Arc::new),
        terms,
        diagnostics,
        code,
        brief: None,
    }
}

/// What a compiled spec is found by; `None` where nothing may be kept of it, or this program cannot tell
/// which it is.
fn key(spec: &Spec, world: &ProjectWorld<'_>) -> Option<BlobDigest> {
    if !spec.lasting {
        return None;
    }
    let program = std::fs::metadata(std::env::current_exe().ok()?).ok()?;
    let program = (program.ino(), program.size(), program.mtime(), program.mtime_nsec());
    let parts = (
        env!("CARGO_PKG_VERSION"),
        program,
        &spec.folder,
        world.kind(),
        BlobDigest::of(spec.text.as_bytes()),
    );
    Some(BlobDigest::of(&rmp_serde::to_vec(&parts).ok()?))
}

fn name(key: BlobDigest) -> String {
    format!("plan-{}", &key.to_string()[..16])
}

fn find(project: &Project, key: BlobDigest, world: &ProjectWorld<'_>, want_plan: bool) -> Option<Compiled> {
    let bytes = cache::get(project, &name(key))?;
    let (length, rest) = bytes.split_at_checked(8)?;
    let length = u64::from_be_bytes(length.try_into().ok()?);
    let (head, plan) = rest.split_at_checked(usize::try_from(length).ok()?)?;
    let head: Head = rmp_serde::from_slice(head).ok()?;
    if head.key != key {
        return None;
    }
    let changed = head.asked.changed(world)?;
    let mut decoded = match head.good && (want_plan || !changed.is_empty()) {
        true => {
            let mut plan: Plan = rmp_serde::from_slice(plan).ok()?;
            plan.set_locks_as_written(&head.locks);
            Some(plan)
        }
        false => None,
    };
    let mended = !changed.is_empty();
    if mended {
        mend(decoded.as_mut()?, &changed)?;
        tracing::debug!(changed = changed.len(), "the compiled spec is mended");
    } else {
        tracing::debug!("the compiled spec holds");
    }
    let compiled = Compiled {
        plan: decoded.map(Arc::new),
        good: head.good,
        terms: head.terms,
        diagnostics: head.diagnostics.into_iter().map(Kept::diagnostic).collect(),
        reach: head.reach,
        code: head.code,
        brief: head.brief.filter(|_| !mended),
    };
    if mended && !world.has_failed() {
        keep(project, key, head.asked.with(changed), &compiled);
    }
    Some(compiled)
}

/// Puts what the inputs at these paths hold now into a plan; `None` where that is not all that the answers decided.
fn mend(plan: &mut Plan, changed: &[(String, Artifact)]) -> Option<()> {
    let changed: BTreeMap<&str, Artifact> = changed.iter().map(|(path, now)| (path.as_str(), *now)).collect();
    let locks = plan.stages.iter().filter_map(|stage| stage.environment.as_ref());
    if locks.into_iter().any(|lock| changed.contains_key(lock.path.as_str())) {
        return None;
    }
    for input in plan.stages.iter_mut().flat_map(|stage| stage.inputs.values_mut()) {
        if let Source::Path { path, artifact } = &mut input.from
            && let Some(now) = changed.get(path.as_str())
        {
            *artifact = *now;
        }
    }
    Some(())
}

fn keep(project: &Project, key: BlobDigest, asked: Asked, compiled: &Compiled) {
    let head = Head {
        key,
        asked,
        good: compiled.good,
        diagnostics: compiled.diagnostics.iter().map(Kept::of).collect(),
        reach: compiled.reach.clone(),
        terms: compiled.terms.clone(),
        code: compiled.code.clone(),
        brief: compiled.plan.as_deref().and_then(Brief::of),
        locks: compiled.plan.as_deref().map(Plan::locks_as_written).unwrap_or_default(),
    };
    let plan = compiled.plan.as_deref().map(rmp_serde::to_vec_named).transpose();
    let (Ok(head), Ok(plan)) = (rmp_serde::to_vec_named(&head), plan) else {
        return tracing::debug!("a compiled spec has no form to be kept in");
    };
    let mut bytes = (head.len() as u64).to_be_bytes().to_vec();
    bytes.extend(head);
    bytes.extend(plan.unwrap_or_default());
    cache::put(project, &name(key), bytes);
    cache::trim(project, "plan-", KEPT);
}

impl Kept {
    fn of(diagnostic: &Diagnostic) -> Kept {
        Kept {
            error: diagnostic.is_error(),
            code: diagnostic.code.to_owned(),
            message: diagnostic.message.clone(),
            span: diagnostic.span.clone(),
            labels: diagnostic.labels.clone(),
            hint: diagnostic.hint.clone(),
        }
    }

    fn diagnostic(self) -> Diagnostic {
        Diagnostic {
            severity: if self.error { Severity::Error } else { Severity::Warning },
            // A few words that last as long as this process, as those of the checker do.
            code: Box::leak(self.code.into_boxed_str()),
            message: self.message,
            span: self.span,
            labels: self.labels,
            hint: self.hint,
        }
    }
}
