//! Ledgers and journals written anew, line by line, each once everything that it cites is.

use std::collections::{BTreeMap, HashMap, HashSet};

use avow_model::canonical::Record;
use avow_model::digest::{BlobDigest, LineDigest, RegistrationDigest};
use avow_model::journal::{Event, Journal, Line, hit_line, hits_of};
use avow_model::ledger::{Entry, Ledger};
use avow_store::{BlobStore, FileBlobs};
use serde_json::{Map, Value};

use super::super::contents::Contents;
use super::super::error::BundleError;
use super::texts::{Texts, stand_in};
use super::{Withheld, salted, withheld};

/// The fields of a ledger line that the ledger fills in itself.
const OWN: [&str; 4] = ["kind", "parents", "tree", "v"];

pub(super) struct History<'a> {
    nonce: &'a str,
    texts: &'a Texts,
    /// Blobs that hold one of the texts.
    found: &'a HashSet<BlobDigest>,
    /// Digests of lines and attempts that will have new ones.
    old: HashSet<String>,
    /// The new ones so far.
    new: HashMap<String, String>,
    pub(super) withheld: Vec<Withheld>,
}

/// A ledger on its way.
struct Chain<'l> {
    experiment: &'l str,
    ledger: &'l Ledger,
    entries: Vec<&'l Entry>,
    next: usize,
    /// The new lines, by the leaf of the old one.
    lines: HashMap<RegistrationDigest, String>,
    bytes: Vec<u8>,
}

/// A journal on its way.
struct Run<'j> {
    run: &'j str,
    journal: &'j Journal,
    next: usize,
    previous: Option<LineDigest>,
    bytes: Vec<u8>,
}

impl<'a> History<'a> {
    pub(super) fn new(nonce: &'a str, texts: &'a Texts, found: &'a HashSet<BlobDigest>) -> History<'a> {
        let (old, new, withheld) = (HashSet::new(), HashMap::new(), Vec::new());
        History { nonce, texts, found, old, new, withheld }
    }

    /// Writes everything anew into `contents`.
    pub(super) fn rewrite(
        &mut self,
        contents: &mut Contents,
        journals: &BTreeMap<String, Journal>,
        blobs: &FileBlobs,
    ) -> Result<(), BundleError> {
        let ledgers: BTreeMap<String, Ledger> =
            contents.ledgers.iter().map(|(name, bytes)| (name.clone(), Ledger::read(bytes))).collect();
        self.survey(&ledgers, journals)?;
        let mut chains: Vec<Chain<'_>> =
            ledgers.iter().map(|(name, ledger)| Chain::new(name, ledger)).collect();
        let mut runs: Vec<Run<'_>> = journals.iter().map(|(run, journal)| Run::new(run, journal)).collect();
        loop {
            let mut moved = false;
            for chain in &mut chains {
                while self.ledger_line(chain)? {
                    moved = true;
                }
            }
            for run in &mut runs {
                while self.journal_line(run, contents, blobs)? {
                    moved = true;
                }
            }
            if !moved {
                break;
            }
        }
        let waiting =
            chains.iter().find(|chain| chain.next < chain.entries.len()).map(|chain| chain.experiment);
        let waiting =
            waiting.or(runs.iter().find(|run| run.next < run.journal.lines.len()).map(|run| run.run));
        if let Some(waiting) = waiting {
            return Err(BundleError::History(waiting.to_owned()));
        }
        contents.heads.clear();
        for chain in chains {
            contents.heads.extend(Ledger::read(&chain.bytes).heads());
            contents.ledgers.insert(chain.experiment.to_owned(), chain.bytes);
        }
        for run in runs {
            contents.journals.insert(run.run.to_owned(), run.bytes);
        }
        self.collected(contents)
    }

    /// Notes every digest that will change; what is damaged is not written anew.
    fn survey(
        &mut self,
        ledgers: &BTreeMap<String, Ledger>,
        journals: &BTreeMap<String, Journal>,
    ) -> Result<(), BundleError> {
        for (name, ledger) in ledgers {
            ledger.sound().map_err(|_| BundleError::History(name.clone()))?;
            self.old.extend(ledger.entries().iter().map(|entry| entry.leaf.to_string()));
        }
        for (run, journal) in journals {
            if journal.damage.is_some() {
                return Err(BundleError::History(run.clone()));
            }
            let previous = journal.lines.iter().filter_map(|line| line.previous).chain(journal.head);
            self.old.extend(previous.map(|digest| digest.to_string()));
            for line in &journal.lines {
                if let Event::Finished { attempt, .. } = &line.event {
                    self.old.insert(attempt.digest().to_string());
                }
            }
        }
        Ok(())
    }

    /// Whether everything that a value cites has its new form.
    fn is_ready(&self, value: &Value) -> bool {
        match value {
            Value::String(text) => {
                let (_, digest) = named(text);
                !self.old.contains(digest) || self.new.contains_key(digest)
            }
            Value::Array(items) => items.iter().all(|item| self.is_ready(item)),
            Value::Object(fields) => fields.values().all(|field| self.is_ready(field)),
            _ => true,
        }
    }

    /// Digests by their new ones, and the texts by what stands for them.
    fn renewed(&self, value: &mut Value) {
        match value {
            Value::String(text) => match named(text) {
                (kind, digest) if self.new.contains_key(digest) => {
                    *text = format!("{kind}{}", self.new[digest])
                }
                _ if self.texts.find(text.as_bytes()).is_some() => {
                    *text = self.texts.replaced(text, self.nonce);
                }
                _ => {}
            },
            Value::Array(items) => items.iter_mut().for_each(|item| self.renewed(item)),
            Value::Object(fields) => fields.values_mut().for_each(|field| self.renewed(field)),
            _ => {}
        }
    }

    fn ledger_line(&mut self, chain: &mut Chain<'_>) -> Result<bool, BundleError> {
        let Some(entry) = chain.entries.get(chain.next) else { return Ok(false) };
        if !self.is_ready(&Value::Object(entry.fields.clone())) {
            return Ok(false);
        }
        let mut fields: Map<String, Value> = entry.fields.clone();
        OWN.iter().for_each(|own| drop(fields.remove(*own)));
        if let Some(git) = fields.remove("git") {
            let place = format!("{}/git", entry.leaf);
            self.withheld.push(withheld(self.nonce, "git", &place, git.to_string().as_bytes())?);
        }
        let beginning = fields.get("nonce").and_then(Value::as_str).map(str::to_owned);
        let mut value = Value::Object(fields);
        self.renewed(&mut value);
        let Value::Object(mut fields) = value else { return Ok(false) };
        if let Some(old) = beginning {
            fields.insert("nonce".to_owned(), salted(self.nonce, "chain", old.as_bytes()).into());
        }
        // The ledger as its writer had it: everything before this line.
        let before = chain.before(entry);
        let line = Ledger::read(before.as_bytes())
            .line(&entry.kind, fields)
            .map_err(|error| BundleError::Opening(error.to_string()))?;
        self.new.insert(entry.leaf.to_string(), avow_model::ledger::leaf(line.as_bytes()).to_string());
        chain.bytes.extend_from_slice(line.as_bytes());
        chain.bytes.push(b'\n');
        chain.lines.insert(entry.leaf, line);
        chain.next += 1;
        Ok(true)
    }

    fn journal_line(
        &mut self,
        run: &mut Run<'_>,
        contents: &mut Contents,
        blobs: &FileBlobs,
    ) -> Result<bool, BundleError> {
        let Some(line) = run.journal.lines.get(run.next) else { return Ok(false) };
        let invalid = |error: serde_json::Error| BundleError::Opening(error.to_string());
        let mut line = line.clone();
        line.previous = None;
        let hits = match &line.event {
            Event::Reused { cited: Some(cited), .. } => {
                Some(hits_of(&blobs.read(cited.record)?).map_err(invalid)?)
            }
            _ => None,
        };
        let cited = serde_json::to_value(&hits).map_err(invalid)?;
        let mut value = serde_json::to_value(&line).map_err(invalid)?;
        if !self.is_ready(&value) || !self.is_ready(&cited) {
            return Ok(false);
        }
        let attempt = match &line.event {
            Event::Finished { attempt, .. } => Some(attempt.digest().to_string()),
            _ => None,
        };
        self.renewed(&mut value);
        let mut new: Line = serde_json::from_value(value).map_err(invalid)?;
        new.previous = run.previous;
        self.event(&mut new.event, &line.event, run.run)?;
        if let (Event::Reused { cited: Some(to), .. }, Some(hits)) = (&mut new.event, hits) {
            let mut bytes = Vec::new();
            for hit in hits {
                let mut value = serde_json::to_value(hit).map_err(invalid)?;
                self.renewed(&mut value);
                bytes.extend(hit_line(&serde_json::from_value(value).map_err(invalid)?));
            }
            contents.blobs.remove(&to.record);
            to.record = BlobDigest::of(&bytes);
            contents.made.insert(to.record, bytes);
        }
        if let (Some(old), Event::Finished { attempt, .. }) = (attempt, &new.event) {
            self.new.insert(old, attempt.digest().to_string());
        }
        let text = new.to_text();
        let digest = LineDigest::of(text.as_bytes());
        if let Some(old) = run.old_digest() {
            self.new.insert(old.to_string(), digest.to_string());
        }
        run.previous = Some(digest);
        run.bytes.extend_from_slice(text.as_bytes());
        run.bytes.push(b'\n');
        run.next += 1;
        Ok(true)
    }

    /// What an event says of people and machines beyond texts.
    fn event(&mut self, new: &mut Event, old: &Event, run: &str) -> Result<(), BundleError> {
        match (new, old) {
            (Event::Opened(opened), _) => {
                opened.nonce = salted(self.nonce, "journal", opened.nonce.as_bytes());
            }
            (Event::Finished { attempt, .. }, Event::Finished { attempt: before, .. }) => {
                attempt.host.name = stand_in("host", &before.host.name, self.nonce);
                let place = |what: &str| format!("{run}/{}/{what}", before.id);
                for (what, digest) in [("stdout", &mut attempt.stdout), ("stderr", &mut attempt.stderr)] {
                    if let Some(log) = digest.filter(|log| self.found.contains(log)) {
                        self.withheld.push(withheld(self.nonce, "log", &place(what), log.as_bytes())?);
                        *digest = None;
                    }
                }
                if let Some(record) = attempt.environment.filter(|record| self.found.contains(record)) {
                    let piece = withheld(self.nonce, "environment", &place("environment"), record.as_bytes());
                    self.withheld.push(piece?);
                    attempt.environment = None;
                }
                if let Some(reads) =
                    attempt.reads.filter(|reads| self.found.contains(&BlobDigest::from(*reads)))
                {
                    self.withheld.push(withheld(self.nonce, "reads", &place("reads"), reads.as_bytes())?);
                    attempt.reads = None;
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// The list of collections names attempts.
    fn collected(&self, contents: &mut Contents) -> Result<(), BundleError> {
        let Some(bytes) = contents.files.get_mut(super::super::name::COLLECTED) else { return Ok(()) };
        let mut renewed = Vec::new();
        for line in bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            // A line that was cut off noted no collection.
            let Ok(mut value) = serde_json::from_slice::<Value>(line) else { continue };
            self.renewed(&mut value);
            renewed.extend_from_slice(value.to_string().as_bytes());
            renewed.push(b'\n');
        }
        *bytes = renewed;
        Ok(())
    }
}

/// A digest with what it is of: `attempt:…`.
fn named(text: &str) -> (&str, &str) {
    let at = text.rfind(':').map_or(0, |at| at + 1);
    text.split_at(at)
}

impl<'l> Chain<'l> {
    fn new(experiment: &'l str, ledger: &'l Ledger) -> Chain<'l> {
        let (entries, lines, bytes) = (ledger.entries(), HashMap::new(), Vec::new());
        Chain { experiment, ledger, entries, next: 0, lines, bytes }
    }

    /// The new lines of everything before an entry.
    fn before(&self, entry: &Entry) -> String {
        let is_before =
            |other: &&&Entry| entry.parents.iter().any(|parent| self.ledger.precedes(other.leaf, *parent));
        let before = self.entries[..self.next].iter().filter(is_before);
        before.filter_map(|other| Some(format!("{}\n", self.lines.get(&other.leaf)?))).collect()
    }
}

impl<'j> Run<'j> {
    fn new(run: &'j str, journal: &'j Journal) -> Run<'j> {
        Run { run, journal, next: 0, previous: None, bytes: Vec::new() }
    }

    /// The digest that the present line has: its successor states it.
    fn old_digest(&self) -> Option<LineDigest> {
        match self.journal.lines.get(self.next + 1) {
            Some(successor) => successor.previous,
            None => self.journal.head,
        }
    }
}
