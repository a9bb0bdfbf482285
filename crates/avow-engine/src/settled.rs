//! Keeping what a run settled, and running from it.
//!
//! A run that came to its end leaves a receipt (`avow_store::Receipt`). The next run of the same plan, members,
//! registration and host finds it, looks once at every promised blob, and journals one line that cites the same
//! hits. Nothing is bound, looked up or written anew; what is journalled is as complete as ever, because the
//! cited list of hits is a blob. Volatile stages, and attempts whose reads were observed and have to be compared
//! with what is there now, leave no receipt.

use std::collections::BTreeMap;

use avow_model::attempt::Attempt;
use avow_model::canonical::{self, Record};
use avow_model::digest::{Artifact, BlobDigest, PlanDigest};
use avow_model::journal::{Cited, Closing, Event, Hit, Opened, hit_line};
use avow_model::plan::{Keep, Plan, Reuse, Stage};
use avow_model::search::searches;
use avow_planner::Tally;
use avow_store::journal::latest;
use avow_store::{BlobStore, Receipt};

use crate::clock::{now, random_hex};
use crate::error::EngineError;
use crate::lookup::whole;
use crate::notice::{Notice, Report};
use crate::register::{current_registration, ledger_of};
use crate::run::{Options, create_journal};
use crate::session::Session;

/// With more members a receipt takes more memory than the time it saves is worth.
const LARGEST: u64 = 500_000;

/// What a run settles, as it goes.
pub(crate) struct Settled {
    name: Option<BlobDigest>,
    members: u64,
    hits: Vec<u8>,
    promised: Vec<Artifact>,
}

impl Settled {
    /// Nothing yet, to be kept under this name; nothing will be kept where there is none.
    pub(crate) fn new(name: Option<BlobDigest>, members: u64) -> Settled {
        let name = name.filter(|_| members <= LARGEST);
        Settled { name, members: 0, hits: Vec::new(), promised: Vec::new() }
    }

    /// One more member has an attempt that stands for it.
    pub(crate) fn add(&mut self, stage: &Stage, hit: &Hit, attempt: &Attempt) {
        if attempt.reads.is_some() {
            self.name = None;
        }
        if self.name.is_none() {
            return;
        }
        self.members += 1;
        self.hits.extend(hit_line(hit));
        let kept = |name: &String| stage.outputs.get(name).is_none_or(|output| output.keep == Keep::Content);
        let promised = attempt.outputs.iter().filter(|(name, _)| kept(name));
        self.promised.extend(promised.map(|(_, produced)| produced.artifact));
    }

    /// Keeps the receipt where every promised blob is known to be sound and durable. It spares work and is no
    /// evidence, so a fault is told to the log and to nobody else.
    pub(crate) fn keep(self, session: &Session, plan: PlanDigest, members: u64) {
        let Some(name) = self.name.filter(|_| self.members == members) else { return };
        if let Err(error) = self.write(session, plan, name) {
            tracing::warn!(%error, "what was settled could not be noted; the next run works it out again");
        }
    }

    fn write(mut self, session: &Session, plan: PlanDigest, name: BlobDigest) -> Result<(), EngineError> {
        let mut blobs: Vec<BlobDigest> = vec![plan.into()];
        self.promised.sort_unstable();
        self.promised.dedup();
        for artifact in &self.promised {
            match whole(&*session.blobs, *artifact)? {
                Ok(all) => blobs.extend(all),
                Err(_missing) => return Ok(()),
            }
        }
        let Some(blobs) = session.blobs.vouch(&blobs)? else { return Ok(()) };
        Receipt { members: self.members, hits: self.hits, blobs }.keep(&session.project, name);
        Ok(())
    }
}

/// The name of the receipt of a plan with these options: everything that decides which attempts stand. `None`
/// where some member has to run again anyway.
pub(crate) fn name(
    session: &Session,
    plan: &Plan,
    options: &Options,
) -> Result<Option<BlobDigest>, EngineError> {
    // What a search chose is judged anew each time.
    if searches(plan).next().is_some() || plan.stages.iter().any(|stage| stage.reuse == Reuse::Never) {
        return Ok(None);
    }
    let (_, ledger) = ledger_of(&session.project, &plan.experiment)?;
    let registration = current_registration(&ledger).map(|registration| registration.leaf);
    let only: Vec<String> = options.settings.only.iter().map(|target| format!("{target:?}")).collect();
    let key = ("avow/settled/1", &options.tool, plan.digest(), registration, &options.hosts, only);
    Ok(Some(BlobDigest::of(&canonical::bytes_of(&key))))
}

/// The receipt of this name, where it still stands.
pub(crate) fn standing(session: &Session, name: Option<BlobDigest>) -> Option<Receipt> {
    let receipt = Receipt::open(&session.project, name?)?;
    receipt.stands(&session.blobs).then_some(receipt)
}

/// A run in which everything is as the run before left it.
pub(crate) fn run(
    session: &Session,
    plan: &Plan,
    options: &Options,
    receipt: &Receipt,
    notify: &mut (dyn FnMut(Notice) + Send),
) -> Result<Report, EngineError> {
    let (_, ledger) = ledger_of(&session.project, &plan.experiment)?;
    let (began, digest) = (now().max(latest(&session.project)?.unwrap_or_default()), plan.digest());
    let opened = Opened {
        version: 1,
        run: String::new(),
        nonce: random_hex(32)?,
        experiment: plan.experiment.clone(),
        plan: digest,
        members: receipt.members,
        confirmatory: current_registration(&ledger).is_some_and(|r| r.plan == digest),
        ledger_heads: ledger.heads(),
        continues: None,
        spec: options.spec.clone(),
        tool: options.tool.clone(),
    };
    // The list of hits lasts before the line that cites it; after the first time it is there already.
    let record = session.blobs.put(&receipt.hits)?;
    session.blobs.sync()?;
    let mut journal = create_journal(session, began, opened)?;
    let name = journal.run().to_owned();
    notify(Notice::Opened { run: name.clone(), members: BTreeMap::new() });
    let cited = Cited { record, count: receipt.members };
    journal.append(now(), Event::Reused { hits: Vec::new(), cited: Some(cited) })?;
    let closing = if options.settings.only.is_empty() { Closing::Complete } else { Closing::Partial };
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
