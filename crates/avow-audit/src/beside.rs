//! Evidence of others beside an experiment's own: shown with the verdicts, counted in none of them.

use avow_model::attempt::Timestamp;
use avow_store::foreign::{Claimed, Foreign, Form};
use serde::Serialize;

/// One import, in short.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Beside {
    /// Always true: whoever reads this alone must not take it for own evidence.
    pub foreign: bool,
    /// What it was.
    pub form: Form,
    /// Its name: SHA-256 of what describes it.
    pub name: String,
    /// What it calls itself.
    pub title: String,
    /// When it was imported.
    pub imported: Timestamp,
    /// What its claims came to when it was imported.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub verdicts: Vec<Claimed>,
    /// How many things it says were done.
    pub acts: usize,
    /// How many of them failed.
    pub failed: usize,
}

/// What is to be shown beside an experiment.
pub fn beside(all: &[Foreign], experiment: &str) -> Vec<Beside> {
    let of_it = all.iter().filter(|foreign| foreign.experiment.as_deref() == Some(experiment));
    let short = |foreign: &Foreign| Beside {
        foreign: true,
        form: foreign.form,
        name: foreign.name.clone(),
        title: foreign.title.clone(),
        imported: foreign.at,
        verdicts: foreign.verdicts.clone(),
        acts: foreign.acts.len(),
        failed: foreign.failed(),
    };
    of_it.map(short).collect()
}
