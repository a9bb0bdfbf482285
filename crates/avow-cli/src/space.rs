//! Warnings before the disk is full, while there is still time to do something.
//!
//! The store is measured once when a run begins, and only where a quota was set; after that what attempts write
//! is added up. The free space of the file system is asked for again from time to time, which costs one call.

use std::time::{Duration, Instant};

use avow_engine::Notice;
use avow_store::{Project, StoreError};

use crate::output::Output;
use crate::policy::Policy;
use crate::words;

/// How often the file system is asked.
const INTERVAL: Duration = Duration::from_secs(5);

/// A watch over the space of one run.
pub struct Space<'a> {
    project: &'a Project,
    output: Output,
    quota: Option<u64>,
    free: Option<u64>,
    used: u64,
    looked: Instant,
    /// What was told, each once.
    told: (bool, bool),
}

impl<'a> Space<'a> {
    /// Looks for the first time, and warns.
    pub fn watch(project: &'a Project, config: &Policy, output: Output) -> Result<Space<'a>, StoreError> {
        let used = match config.quota {
            Some(_) => avow_store::space::used(project)?,
            None => 0,
        };
        let (quota, free) = (config.quota, config.free);
        let mut space =
            Space { project, output, quota, free, used, looked: Instant::now(), told: (false, false) };
        space.look();
        Ok(space)
    }

    /// Takes in what a run tells. Equal bytes are stored once, so this is at most too much.
    pub fn notice(&mut self, notice: &Notice) {
        if let Notice::Finished { attempt, .. } = notice {
            self.used += attempt.outputs.values().map(|produced| produced.size).sum::<u64>();
            if self.looked.elapsed() >= INTERVAL {
                self.look();
            }
        }
    }

    fn look(&mut self) {
        self.looked = Instant::now();
        if let Some(quota) = self.quota.filter(|quota| self.used > *quota && !self.told.0) {
            self.told.0 = true;
            self.output.say(format!(
                "warning: the store holds {}, more than the quota of {} in `avow.toml`",
                words::bytes(self.used),
                words::bytes(quota)
            ));
            self.hint();
        }
        // A file system that cannot say is no reason to stop a run.
        let Ok(left) = avow_store::space::free(self.project) else { return };
        if self.free.is_some_and(|free| left < free) && !self.told.1 {
            self.told.1 = true;
            self.output
                .say(format!("warning: only {} are free on the disk of the store", words::bytes(left)));
            self.hint();
        }
    }

    fn hint(&self) {
        self.output.say("hint: `avow store collect --dry-run` shows what could go");
    }
}
