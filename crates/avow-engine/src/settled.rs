//! Keeping what a run settled, and running from it.
//!
//! A run that came to its end leaves a receipt (`avow_store::Receipt`). The next run of the same plan, members,
//! registration and host finds it, looks once at every promised blob, and journals one line that cites the same
//! hits. Nothing is bound, looked up or written anew; what is journalled is as complete as ever, because the
//! cited list of hits is a blob. Volatile stages, and attempts whose reads were observed and have to be compared
//! with what is there now, leave no receipt.

use std::collections::BTreeMap;

use avow_model::canonical;
use avow_model::digest::{ActionDigest, Artifact, AttemptDigest, BlobDigest, PlanDigest};
use avow_model::journal::{Cited, Closing, Event, Hit, Opened, hit_line};
use avow_model::ledger::Ledger;
use avow_model::plan::{Keep, Plan, Reuse, Stage};
use avow_model::search::searches;
use avow_planner::{Found, Tally, Target};
use avow_store::journal::latest;
use avow_store::{BlobStore, FileBlobs, FileStamp, Hits, Project, Receipt, Stood};

use crate::clock::{now, random_hex};
use crate::error::EngineError;
use crate::lookup::whole;
use crate::notice::{Notice, Report};
use crate::register::{current_registration, ledger_of};
use crate::run::{Options, create_journal};
use crate::session::Session;

/// With more members a receipt takes more memory than the time it saves is worth.
const LARGEST: u64 = 500_000;

/// With more members, looking each up is left to the index.
const LARGEST_HITS: u64 = 200_000;

/// An action, the attempt that stands for it, and the files that it wrote, by output.
type Written = (ActionDigest, AttemptDigest, Vec<(String, BlobDigest)>);

/// What a run settles, as it goes.
pub(crate) struct Settled {
    names: Option<Names>,
    members: u64,
    hits: Vec<u8>,
    promised: Vec<Artifact>,
    /// What stood in the last run of the experiment, whatever its plan was.
    before: Hits,
    stood: Vec<Written>,
}

/// What is kept of a run is kept under these.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Names {
    receipt: BlobDigest,
    hits: BlobDigest,
}

impl Settled {
    /// Nothing yet, to be kept under these names; nothing will be kept where there are none.
    pub(crate) fn new(project: &Project, names: Option<Names>, members: u64) -> Settled {
        let names = names.filter(|_| members <= LARGEST);
        let known = names.filter(|_| members <= LARGEST_HITS);
        let before = known.map_or_else(Hits::default, |names| Hits::open(project, names.hits));
        Settled { names, members: 0, hits: Vec::new(), promised: Vec::new(), before, stood: Vec::new() }
    }

    /// The attempt that stands for an action as it did in the last run, where everything it promised is as it was.
    pub(crate) fn known(&self, blobs: &FileBlobs, stage: &Stage, action: ActionDigest) -> Option<Found> {
        if stage.reuse != Reuse::Always {
            return None;
        }
        let stood = self.before.standing(blobs, action, |name| is_kept(stage, name))?;
        let outputs = stood.outputs.iter().map(|(name, blob, _)| (name.clone(), Artifact::Blob(*blob)));
        Some(Found::Hit { attempt: stood.attempt, outputs: outputs.collect() })
    }

    /// One more member has an attempt that stands for it, with these outputs. `observed`: what it read has to be
    /// compared each time.
    pub(crate) fn add(
        &mut self,
        stage: &Stage,
        hit: &Hit,
        outputs: &BTreeMap<String, Artifact>,
        observed: bool,
    ) {
        if observed {
            self.names = None;
        }
        if self.names.is_none() {
            return;
        }
        self.members += 1;
        self.hits.extend(hit_line(hit));
        self.promised.extend(outputs.iter().filter(|(name, _)| is_kept(stage, name)).map(|(_, made)| *made));
        // Folders take a walk, and what is not kept is not there to be looked at.
        let files = outputs.iter().map(|(name, made)| match made {
            Artifact::Blob(blob) if is_kept(stage, name) => Some((name.clone(), *blob)),
            _ => None,
        });
        if let Some(files) = files.collect::<Option<_>>().filter(|_| self.members <= LARGEST_HITS) {
            self.stood.push((hit.action, hit.attempt, files));
        }
    }

    /// Keeps the receipt where every promised blob is known to be sound and durable. It spares work and is no
    /// evidence, so a fault is told to the log and to nobody else.
    pub(crate) fn keep(self, session: &Session, plan: PlanDigest, members: u64) {
        let Some(names) = self.names.filter(|_| self.members == members) else { return };
        if let Err(error) = self.write(session, plan, names) {
            tracing::warn!(%error, "what was settled could not be noted; the next run works it out again");
        }
    }

    fn write(mut self, session: &Session, plan: PlanDigest, names: Names) -> Result<(), EngineError> {
        let mut blobs: Vec<BlobDigest> = vec![plan.into()];
        self.promised.sort_unstable();
        self.promised.dedup();
        for artifact in &self.promised {
            match artifact {
                Artifact::Blob(blob) => blobs.push(*blob),
                Artifact::Tree(_) => match whole(&*session.blobs, *artifact)? {
                    Ok(all) => blobs.extend(all),
                    Err(_missing) => return Ok(()),
                },
            }
        }
        let Some(blobs) = session.blobs.vouch(&blobs)? else { return Ok(()) };
        self.keep_hits(session, &blobs, names);
        Receipt { members: self.members, hits: self.hits, blobs }.keep(&session.project, names.receipt);
        Ok(())
    }

    /// A run of a few members does not replace what is known of many.
    fn keep_hits(&self, session: &Session, blobs: &[(BlobDigest, FileStamp)], names: Names) {
        if self.stood.len() < self.before.len() / 2 {
            return;
        }
        let stamped = |(name, blob): &(String, BlobDigest)| {
            let at = blobs.binary_search_by_key(blob, |(digest, _)| *digest).ok()?;
            Some((name.clone(), *blob, blobs[at].1))
        };
        let mut hits = Hits::default();
        for (action, attempt, files) in &self.stood {
            if let Some(outputs) = files.iter().map(stamped).collect() {
                hits.insert(*action, Stood { attempt: *attempt, outputs });
            }
        }
        hits.keep(&session.project, names.hits);
    }
}

fn is_kept(stage: &Stage, name: &str) -> bool {
    stage.outputs.get(name).is_none_or(|output| output.keep == Keep::Content)
}

/// A run by what a receipt needs of it: the plan itself need not be read for it.
#[derive(Clone, Copy, Debug)]
pub struct Settling<'a> {
    /// The experiment.
    pub experiment: &'a str,
    /// The plan. None of its stages is volatile, and it has no searches.
    pub plan: PlanDigest,
    /// The members asked for; all where there are none.
    pub only: &'a [Target],
    /// The spec's path in the project, for people.
    pub spec: &'a str,
    /// This program's version.
    pub tool: &'a str,
    /// The names of the hosts on which attempts are made.
    pub hosts: &'a [String],
}

impl<'a> Settling<'a> {
    /// Of a plan; `None` where some member has to run again anyway, or be chosen anew.
    pub(crate) fn of(plan: &'a Plan, digest: PlanDigest, options: &'a Options) -> Option<Settling<'a>> {
        let settles = can_settle(plan);
        settles.then(|| Settling {
            experiment: &plan.experiment,
            plan: digest,
            only: &options.settings.only,
            spec: &options.spec,
            tool: &options.tool,
            hosts: &options.hosts,
        })
    }

    /// The names of what is kept of it: everything that decides which attempts stand, and everything but the plan.
    fn names(&self, ledger: &Ledger) -> Names {
        let registration = current_registration(ledger).map(|registration| registration.leaf);
        let only: Vec<String> = self.only.iter().map(|target| format!("{target:?}")).collect();
        // What was declared wrong stands for nothing, so what was settled before is looked up again.
        let wrong: Vec<_> = ledger.invalids().0.iter().map(|invalid| invalid.entry).collect();
        let receipt = ("avow/settled/2", self.tool, self.plan, registration, &wrong, self.hosts, only);
        let hits = ("avow/hits/2", self.tool, self.experiment, registration, &wrong, self.hosts);
        let name = |key: &[u8]| BlobDigest::of(key);
        Names { receipt: name(&canonical::bytes_of(&receipt)), hits: name(&canonical::bytes_of(&hits)) }
    }
}

/// Whether the next run of a plan can find everything as it was: what a search chose is judged anew each time, and
/// volatile members run again.
pub fn can_settle(plan: &Plan) -> bool {
    searches(plan).next().is_none() && plan.stages.iter().all(|stage| stage.reuse != Reuse::Never)
}

/// The names of what is kept of a run, and its receipt where that still stands.
pub(crate) fn standing(
    session: &Session,
    settling: &Settling<'_>,
) -> Result<(Names, Option<Receipt>), EngineError> {
    let (_, ledger) = ledger_of(&session.project, settling.experiment)?;
    let names = settling.names(&ledger);
    let receipt = Receipt::open(&session.project, names.receipt);
    Ok((names, receipt.filter(|receipt| receipt.stands(&session.blobs))))
}

/// Carries a run out where everything is as the run before left it; `None`, and nothing done, where it is not.
///
/// # Errors
/// The faults of store and ledger.
pub fn run_unchanged(
    session: &Session,
    settling: &Settling<'_>,
    notify: &mut (dyn FnMut(Notice) + Send),
) -> Result<Option<Report>, EngineError> {
    let (_, receipt) = standing(session, settling)?;
    receipt.map(|receipt| run(session, settling, &receipt, notify)).transpose()
}

/// A run in which everything is as the run before left it.
pub(crate) fn run(
    session: &Session,
    settling: &Settling<'_>,
    receipt: &Receipt,
    notify: &mut (dyn FnMut(Notice) + Send),
) -> Result<Report, EngineError> {
    let (_, ledger) = ledger_of(&session.project, settling.experiment)?;
    let (began, digest) = (now().max(latest(&session.project)?.unwrap_or_default()), settling.plan);
    let opened = Opened {
        version: 1,
        run: String::new(),
        nonce: random_hex(32)?,
        experiment: settling.experiment.to_owned(),
        plan: digest,
        members: receipt.members,
        confirmatory: current_registration(&ledger).is_some_and(|r| r.plan == digest),
        ledger_heads: ledger.heads(),
        continues: None,
        spec: settling.spec.to_owned(),
        tool: settling.tool.to_owned(),
    };
    // The list of hits lasts before the line that cites it; after the first time it is there already.
    let record = session.blobs.put(&receipt.hits)?;
    session.blobs.sync()?;
    let mut journal = create_journal(session, began, opened)?;
    let name = journal.run().to_owned();
    notify(Notice::Opened { run: name.clone(), members: BTreeMap::new() });
    let cited = Cited { record, count: receipt.members };
    journal.append(now(), Event::Reused { hits: Vec::new(), cited: Some(cited) })?;
    let closing = if settling.only.is_empty() { Closing::Complete } else { Closing::Partial };
    journal.append(now(), Event::Closed { how: closing })?;
    journal.sync()?;
    session.index.caught_up(journal.run(), journal.length())?;
    let tally = Tally { members: receipt.members, reused: receipt.members, ..Tally::default() };
    notify(Notice::Tally(tally));
    let wall = now() - began;
    let failures = Vec::new();
    Ok(Report {
        run: name,
        closing,
        tally,
        failures,
        migrated: 0,
        wall,
        cpu: 0,
        unchanged: true,
        verification: None,
    })
}
