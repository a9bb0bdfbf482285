//! A project in a temporary folder, and records to put into it.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use avow_model::action::{Action, Command, Slot};
use avow_model::attempt::{Attempt, AttemptId, Host, Outcome, Produced, Usage};
use avow_model::canonical::Record;
use avow_model::digest::{ActionDigest, Artifact, BlobDigest, PlanDigest};
use avow_model::journal::{Event, Opened};
use avow_model::plan::{Keep, Terms};
use avow_store::blob::put_record;
use avow_store::stamp::MemoryStamps;
use avow_store::{BlobStore, FileBlobs, JournalWriter, Position, Project, Recorded};

pub struct Fixture {
    _folder: tempfile::TempDir,
    pub project: Project,
}

impl Fixture {
    pub fn new() -> Fixture {
        let folder = tempfile::tempdir().unwrap();
        let project = Project::at(folder.path().canonicalize().unwrap());
        project.create().unwrap();
        Fixture { _folder: folder, project }
    }

    pub fn blobs(&self) -> FileBlobs {
        FileBlobs::new(self.project.clone(), Arc::new(MemoryStamps::default()))
    }

    /// Writes a file into the project.
    pub fn write(&self, path: &str, bytes: &[u8]) -> PathBuf {
        let path = self.project.root().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, bytes).unwrap();
        path
    }
}

/// Overwrites a read-only file in place, as a careless program would.
pub fn overwrite(path: &Path, bytes: &[u8]) {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(path, fs::Permissions::from_mode(0o644)).unwrap();
    fs::write(path, bytes).unwrap();
}

pub fn action(command: &str) -> Action {
    let slot = |keep| Slot { path: "out.txt".to_owned(), folder: false, optional: false, keep };
    Action {
        command: Command::Shell(command.to_owned()),
        env: Default::default(),
        inputs: Default::default(),
        code: None,
        environment: None,
        lock_as_written: None,
        toolchain: Default::default(),
        loads: None,
        outputs: [("out".to_owned(), slot(Keep::Content)), ("big".to_owned(), slot(Keep::Digest))].into(),
        hardware: None,
        image: None,
        repetition: None,
        network: false,
    }
}

pub fn attempt(action: ActionDigest, run: &str, id: &str) -> Attempt {
    let produced = |bytes: &str| Produced {
        artifact: Artifact::Blob(BlobDigest::of(bytes.as_bytes())),
        size: bytes.len() as u64,
    };
    Attempt {
        id: AttemptId(id.to_owned()),
        action,
        run: run.to_owned(),
        outcome: Outcome::Succeeded,
        outputs: [("out".to_owned(), produced("output")), ("big".to_owned(), produced("not kept"))].into(),
        stdout: None,
        stderr: None,
        reads: None,
        started: 1,
        finished: 2,
        usage: Usage::default(),
        host: Host::default(),
        environment: None,
        encoding: 1,
        terms: Terms::default(),
        ledger_heads: Vec::new(),
        number: 1,
        continues: Vec::new(),
        verification: false,
    }
}

pub fn opened(run: &str) -> Opened {
    Opened {
        version: 1,
        run: run.to_owned(),
        nonce: avow_store::nonce().unwrap(),
        experiment: "exp".to_owned(),
        plan: PlanDigest::from_bytes([7; 32]),
        members: 2,
        confirmatory: false,
        ledger_heads: Vec::new(),
        continues: None,
        spec: "exp.yaml".to_owned(),
        tool: "test".to_owned(),
    }
}

/// An attempt with its place, outside any journal.
pub fn recorded(run: &str, opened: i64, line: u64, member: &str, command: &str) -> Recorded {
    let action = action(command).digest();
    Recorded {
        position: Position { opened, run: run.to_owned(), line },
        experiment: "exp".to_owned(),
        member: member.to_owned(),
        attempt: attempt(action, run, &format!("{run}-{line}")),
    }
}

/// Carries out one member for the records' sake: blobs, journal lines; returns what an index is told.
pub fn carry_out(
    blobs: &dyn BlobStore,
    journal: &mut JournalWriter,
    member: &str,
    command: &str,
) -> Recorded {
    let action = put_record(blobs, &action(command)).unwrap();
    blobs.put(b"output").unwrap();
    let id = format!("{}-{member}", journal.run());
    let attempt = attempt(action, journal.run(), &id);
    let started = Event::Started {
        member: member.to_owned(),
        action,
        attempt: attempt.id.clone(),
        verification: false,
    };
    journal.append(1, started).unwrap();
    let finished = Event::Finished { member: member.to_owned(), attempt: Box::new(attempt.clone()) };
    let position = journal.append(2, finished).unwrap();
    Recorded { position, experiment: "exp".to_owned(), member: member.to_owned(), attempt }
}
