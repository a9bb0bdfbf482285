//! Damage one thing at a time: the auditor must name it.

#![expect(clippy::unwrap_used, reason = "tests")]

mod common;

use avow_audit::finding::AttemptFault;
use avow_audit::{Finding, Report, Word, audit};
use avow_model::attempt::Outcome;
use avow_model::canonical::Record;
use avow_model::claim::{Method, Part};
use avow_model::plan::Plan;
use avow_store::{BlobStore, MemoryBlobs, MemoryIndex, Position, RecordStore, Recorded};
use common::*;

/// A registered experiment, carried out as planned, its journal's head noted in the ledger.
fn sound() -> Lab {
    let claims = vec![claim("helps", one(Part { compare: wd(), ..part(difference(above(0.0), Method::T)) }))];
    let mut lab = Lab::new(standard(claims).plan);
    let plan = lab.plan.clone();
    lab.register(&plan);
    lab.run("train", |cell| Some(accuracy(standard_value(cell))));
    lab.note_head();
    lab
}

fn found(report: &Report) -> Vec<&'static str> {
    report.findings.iter().map(Finding::word).collect()
}

fn voided(report: &Report, code: &str) {
    assert!(report.is_damaged());
    let verdict = &report.verdicts[0];
    assert_eq!(verdict.word, Some(Word::Void));
    assert_eq!(verdict.reason.as_ref().unwrap().word(), code);
}

#[test]
fn nothing_is_found_where_nothing_is_wrong() {
    let report = sound().audit();
    assert_eq!((report.findings.as_slice(), report.is_damaged()), ([].as_slice(), false));
    assert_eq!(report.verdicts[0].word, Some(Word::Supported));
}

#[test]
fn a_flipped_byte_of_a_result() {
    let lab = sound();
    let member = lab.member("train", 5);
    let blob = lab.result(member);
    let mut bytes = lab.blobs.read(blob).unwrap();
    for at in 0..bytes.len() {
        bytes[at] ^= 1;
        lab.blobs.damage(blob, &bytes);
        let report = lab.audit();
        let [Finding::DamagedBlob { blob: named, used, .. }] = report.findings.as_slice() else { panic!() };
        assert_eq!((*named, used.as_str()), (blob, "train[seed=2,wd=0.1].result"));
        voided(&report, "damaged-evidence");
        bytes[at] ^= 1;
    }
}

#[test]
fn a_store_that_hands_out_wrong_bytes_is_not_believed() {
    /// A store whose reader forgot to compare.
    struct Careless(MemoryBlobs, avow_model::digest::BlobDigest);
    impl BlobStore for Careless {
        fn contains(&self, digest: avow_model::digest::BlobDigest) -> Result<bool, avow_store::StoreError> {
            self.0.contains(digest)
        }
        fn read(&self, digest: avow_model::digest::BlobDigest) -> Result<Vec<u8>, avow_store::StoreError> {
            if digest == self.1 { Ok(accuracy(0.999).into_bytes()) } else { self.0.read(digest) }
        }
        fn open_path(
            &self,
            digest: avow_model::digest::BlobDigest,
        ) -> Result<Option<std::path::PathBuf>, avow_store::StoreError> {
            self.0.open_path(digest)
        }
        fn put(&self, bytes: &[u8]) -> Result<avow_model::digest::BlobDigest, avow_store::StoreError> {
            self.0.put(bytes)
        }
        fn put_file(
            &self,
            path: &std::path::Path,
            how: avow_store::Intake,
        ) -> Result<(avow_model::digest::BlobDigest, u64), avow_store::StoreError> {
            self.0.put_file(path, how)
        }
        fn sync(&self) -> Result<(), avow_store::StoreError> {
            self.0.sync()
        }
        fn size(
            &self,
            digest: avow_model::digest::BlobDigest,
        ) -> Result<Option<u64>, avow_store::StoreError> {
            self.0.size(digest)
        }
        fn list(&self) -> Result<Vec<avow_model::digest::BlobDigest>, avow_store::StoreError> {
            self.0.list()
        }
        fn quarantine(
            &self,
            digest: avow_model::digest::BlobDigest,
        ) -> Result<Option<std::path::PathBuf>, avow_store::StoreError> {
            self.0.quarantine(digest)
        }
    }
    let mut lab = sound();
    let blob = lab.result(lab.member("train", 5));
    let careless = Careless(std::mem::take(&mut lab.blobs), blob);
    let source = avow_audit::Source::new(&careless, &lab.index);
    let report = audit(&lab.plan, source, &lab.announced(), Some(&lab.journals())).unwrap();
    assert_eq!(found(&report), ["damaged-blob"]);
    voided(&report, "damaged-evidence");
}

#[test]
fn a_missing_result() {
    let lab = sound();
    let gone = lab.result(lab.member("train", 5));
    let kept = MemoryBlobs::new();
    for blob in lab.blobs.list().unwrap().into_iter().filter(|blob| *blob != gone) {
        kept.put(&lab.blobs.read(blob).unwrap()).unwrap();
    }
    let source = avow_audit::Source::new(&kept, &lab.index);
    let report = audit(&lab.plan, source, &lab.announced(), Some(&lab.journals())).unwrap();
    assert_eq!(found(&report), ["missing-blob"]);
    voided(&report, "damaged-evidence");
}

#[test]
fn a_changed_removed_or_cut_journal_line() {
    let lab = sound();
    let lines = lab.lines.len();
    for at in 0..lines {
        let mut changed = sound();
        changed.lines[at] = changed.lines[at].replace("\"at\":", "\"at\": ");
        let words = found(&changed.audit());
        // The line after it no longer follows; the last line is known to the ledger.
        let expected = if at + 1 < lines { "journal-line" } else { "journal-cut" };
        assert!(words.contains(&expected), "line {at}: {words:?}");
        let mut removed = sound();
        removed.lines.remove(at);
        let words = found(&removed.audit());
        let expected = if at + 1 < lines { "journal-line" } else { "journal-cut" };
        assert!(words.contains(&expected), "line {at}: {words:?}");
    }
    let mut cut = sound();
    cut.lines.truncate(4);
    let report = cut.audit();
    assert!(found(&report).contains(&"journal-cut") && found(&report).contains(&"unjournalled"));
    // Nobody has any journal, which is not the same as nobody asking.
    let none = audit(&lab.plan, lab.source(), &lab.announced(), Some(&[])).unwrap();
    assert!(found(&none).contains(&"missing-journal") && found(&none).contains(&"unjournalled"));
    let unasked = audit(&lab.plan, lab.source(), &lab.read_ledger(), None).unwrap();
    assert_eq!(unasked.findings, []);
}

#[test]
fn a_torn_tail_is_reported_and_is_no_damage() {
    let mut lab = sound();
    let mut journals = lab.journals();
    let bytes = [lab.journal_bytes(), b"{\"prev".to_vec()].concat();
    journals[0].journal = avow_model::journal::read(&bytes);
    let report = audit(&lab.plan, lab.source(), &lab.announced(), Some(&journals)).unwrap();
    assert_eq!((found(&report), report.is_damaged()), (vec!["journal-torn"], false));
    lab.ledger.extend(b"{\"kind\":");
    let report = lab.audit();
    assert_eq!((found(&report), report.is_damaged()), (vec!["ledger-torn"], false));
}

#[test]
fn a_changed_or_cut_ledger_line() {
    let mut changed = sound();
    let text = String::from_utf8(changed.ledger.clone()).unwrap();
    changed.ledger = text.replacen("\"claims\":1", "\"claims\":2", 1).into_bytes();
    let words = found(&changed.audit());
    // The next line names a parent that is gone, and attempts cite a head that is gone.
    assert!(words.contains(&"ledger-line") && words.contains(&"missing-head"), "{words:?}");
    let mut cut = sound();
    cut.ledger.clear();
    let report = cut.audit();
    // Sixteen attempts, and the run whose journal holds them.
    assert_eq!(found(&report).iter().filter(|word| **word == "missing-head").count(), 17);
}

#[test]
fn a_registration_that_names_no_plan_freezes_nothing() {
    let mut lab = Lab::new(standard(vec![]).plan);
    lab.note("register", serde_json::json!({"experiment": "lab", "claims": 0}));
    let report = lab.audit();
    assert_eq!((found(&report), report.registration), (vec!["bad-registration"], None));
    let mut other = lab.plan.clone();
    other.params.clear();
    lab.note("register", serde_json::json!({"plan": other.digest().to_string()}));
    assert!(found(&lab.audit()).contains(&"missing-plan"));
    lab.blobs.damage(other.digest().into(), b"no plan");
    assert!(found(&lab.audit()).contains(&"damaged-blob"));
    let plan: Plan = other;
    lab.blobs.put(&plan.to_bytes()).unwrap();
    assert_eq!(found(&lab.audit()), ["bad-registration"]);
}

/// The sound experiment with one attempt replaced in the index by what `forge` makes of it.
fn forged(forge: impl Fn(Recorded, &[Recorded]) -> Recorded) -> Report {
    let lab = sound();
    let entries = lab.index.entries().unwrap();
    let index =
        Forged { sound: &lab.index, from: entries[5].digest(), to: forge(entries[5].clone(), &entries) };
    let source = avow_audit::Source::new(&lab.blobs, &index);
    audit(&lab.plan, source, &lab.announced(), Some(&lab.journals())).unwrap()
}

/// An index that answers one question wrongly.
struct Forged<'a> {
    sound: &'a MemoryIndex,
    from: avow_model::digest::AttemptDigest,
    to: Recorded,
}

impl RecordStore for Forged<'_> {
    fn insert(
        &self,
        recorded: &Recorded,
    ) -> Result<avow_model::digest::AttemptDigest, avow_store::StoreError> {
        self.sound.insert(recorded)
    }
    fn attempt(
        &self,
        digest: avow_model::digest::AttemptDigest,
    ) -> Result<Option<Recorded>, avow_store::StoreError> {
        if digest == self.from { Ok(Some(self.to.clone())) } else { self.sound.attempt(digest) }
    }
    fn trace(
        &self,
        action: avow_model::digest::ActionDigest,
    ) -> Result<Vec<avow_model::digest::AttemptDigest>, avow_store::StoreError> {
        self.sound.trace(action)
    }
    fn history(
        &self,
        experiment: &str,
        member: &str,
    ) -> Result<Vec<avow_model::digest::AttemptDigest>, avow_store::StoreError> {
        self.sound.history(experiment, member)
    }
    fn stage_history(
        &self,
        experiment: &str,
        stage: &str,
    ) -> Result<Vec<(String, avow_model::digest::AttemptDigest)>, avow_store::StoreError> {
        self.sound.stage_history(experiment, stage)
    }
    fn entries(&self) -> Result<Vec<Recorded>, avow_store::StoreError> {
        self.sound.entries()
    }
}

fn fault(report: &Report) -> AttemptFault {
    let fault =
        |f: &Finding| if let Finding::WrongAttempt { fault, .. } = f { Some(fault.clone()) } else { None };
    report.findings.iter().find_map(fault).expect("a wrong attempt")
}

#[test]
fn an_attempt_whose_record_was_changed() {
    let report = forged(|mut recorded, _| {
        recorded.attempt.outcome = Outcome::Lost;
        recorded
    });
    assert_eq!(fault(&report), AttemptFault::OtherDigest);
    // The member has no other attempt, so the registered plan is open and no value is shown.
    assert!(report.hidden && report.verdicts.is_empty() && report.is_damaged());
    let other = forged(|_, all| all[6].clone());
    assert_eq!(fault(&other), AttemptFault::OtherDigest);
}

#[test]
fn an_attempt_that_no_journal_holds() {
    let lab = sound();
    let mut invented = lab.index.entries().unwrap()[5].clone();
    invented.attempt.number = 2;
    invented.position = Position { opened: 0, run: "r1".to_owned(), line: 1 };
    let digest = lab.index.insert(&invented).unwrap();
    assert_eq!(lab.audit().findings, [Finding::Unjournalled { attempt: digest }]);
}

#[test]
fn a_success_without_its_outputs() {
    let mut lab = sound();
    let member = lab.member("train", 5);
    let mut attempt = lab.made_attempt(member, Outcome::Succeeded, None);
    attempt.number = 3;
    lab.record(member, &attempt);
    lab.note_head();
    assert_eq!(fault(&lab.audit()), AttemptFault::WithoutOutputs(vec!["result".to_owned()]));
}

#[test]
fn an_index_that_mixes_traces_up() {
    let mut lab = sound();
    let (here, there) = (lab.member("train", 5), lab.member("train", 6));
    // An honest attempt at another action, filed under this one: the digest is right, the action is not.
    let stray = lab.made_attempt(there, Outcome::Succeeded, Some("{\"accuracy\": 0.999}"));
    let asked = lab.evidence().member(here).unwrap().action.unwrap();
    struct Mixed<'a>(&'a MemoryIndex, avow_model::digest::ActionDigest, Recorded);
    impl RecordStore for Mixed<'_> {
        fn insert(&self, r: &Recorded) -> Result<avow_model::digest::AttemptDigest, avow_store::StoreError> {
            self.0.insert(r)
        }
        fn attempt(
            &self,
            d: avow_model::digest::AttemptDigest,
        ) -> Result<Option<Recorded>, avow_store::StoreError> {
            if d == self.2.digest() { Ok(Some(self.2.clone())) } else { self.0.attempt(d) }
        }
        fn trace(
            &self,
            action: avow_model::digest::ActionDigest,
        ) -> Result<Vec<avow_model::digest::AttemptDigest>, avow_store::StoreError> {
            if action == self.1 { Ok(vec![self.2.digest()]) } else { self.0.trace(action) }
        }
        fn history(
            &self,
            e: &str,
            m: &str,
        ) -> Result<Vec<avow_model::digest::AttemptDigest>, avow_store::StoreError> {
            self.0.history(e, m)
        }
        fn stage_history(
            &self,
            e: &str,
            s: &str,
        ) -> Result<Vec<(String, avow_model::digest::AttemptDigest)>, avow_store::StoreError> {
            self.0.stage_history(e, s)
        }
        fn entries(&self) -> Result<Vec<Recorded>, avow_store::StoreError> {
            self.0.entries()
        }
    }
    let position = Position { opened: 0, run: "r1".to_owned(), line: 1 };
    let recorded =
        Recorded { position, experiment: "lab".to_owned(), member: "train".to_owned(), attempt: stray };
    let mixed = Mixed(&lab.index, asked, recorded);
    let source = avow_audit::Source::new(&lab.blobs, &mixed);
    let report = audit(&lab.plan, source, &lab.announced(), Some(&lab.journals())).unwrap();
    assert_eq!(fault(&report), AttemptFault::OtherAction);
}

#[test]
fn damage_that_no_number_reads_is_found_by_a_thorough_look() {
    use avow_model::plan::{Input, MeasurementFormat, Source};
    let mut split = stage("split", &[], MeasurementFormat::FlatJson);
    split.measurements.clear();
    let from = Source::Output {
        stage: "split".to_owned(),
        output: "result".to_owned(),
        at: Default::default(),
        gather: vec![],
    };
    let mut train = stage("train", &["seed"], MeasurementFormat::FlatJson);
    train.inputs.insert(
        "data".to_owned(),
        Input { from, mount: "data.csv".to_owned(), scoring: false, licence: None },
    );
    let claims = vec![claim("high", one(part(mean(above(0.5), Method::T))))];
    let mut lab = Lab::new(plan(vec![seeds(8)], vec![split, train], claims));
    lab.run("split", |_| Some("split".to_owned()));
    lab.run("train", |cell| Some(accuracy(X[cell.index("seed").unwrap() as usize])));
    let blob = lab.result(lab.member("split", 0));
    lab.blobs.damage(blob, b"spilt");
    assert_eq!(found(&lab.audit()), [""; 0]);
    let report = audit(&lab.plan, lab.source().thorough(), &lab.announced(), Some(&lab.journals())).unwrap();
    let [Finding::DamagedBlob { used, .. }] = report.findings.as_slice() else { panic!() };
    assert_eq!((used.as_str(), report.is_damaged()), ("split.result", true));
}
