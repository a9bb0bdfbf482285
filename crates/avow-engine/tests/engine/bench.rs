//! A project in a temporary folder with one plan, and what its journals say.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use avow_engine::{EngineError, Notice, Options, Report, Session, run};
use avow_exec::fake::{Act, Call, FakeExecutor};
use avow_exec::{Cancel, Executor};
use avow_model::action::Command;
use avow_model::attempt::{Attempt, Outcome};
use avow_model::canonical::Record;
use avow_model::digest::{Artifact, AttemptDigest, BlobDigest};
use avow_model::journal::{Damage, Event, MemberState, RunState};
use avow_model::plan::{Plan, Terms};
use avow_planner::Settings;
use avow_store::journal::{self, journals};
use avow_store::{LedgerFile, Project};
use tempfile::TempDir;

/// A project and how its plan is run.
pub struct Bench {
    _folder: TempDir,
    pub project: Project,
    pub plan: Plan,
    pub settings: Settings,
    pub host: &'static str,
}

/// One run, as its journal tells it.
pub struct Past {
    pub run: String,
    pub path: PathBuf,
    pub lines: Vec<Event>,
    pub state: RunState,
}

impl Bench {
    pub fn new(drawing: &str) -> Bench {
        Bench::of(avow_testkit::plan(drawing))
    }

    pub fn of(plan: Plan) -> Bench {
        let folder = TempDir::with_prefix("avow-engine-").unwrap();
        let project = Project::at(folder.path().join("project"));
        fs::create_dir(project.root()).unwrap();
        let terms = BTreeMap::new();
        let settings = Settings { cpus: 2, memory: 1 << 30, keep_going: false, only: Vec::new(), terms };
        Bench { _folder: folder, project, plan, settings, host: "fake" }
    }

    /// The same plan and settings, and a copy of everything on disk.
    pub fn copy(&self) -> Bench {
        let mut copy = Bench::of(self.plan.clone());
        copy.settings = self.settings.clone();
        copy.host = self.host;
        copy_folder(self.project.root(), copy.project.root());
        copy
    }

    pub fn terms(mut self, stage: &str, terms: Terms) -> Bench {
        self.settings.terms.insert(stage.to_owned(), terms);
        self
    }

    pub fn open(&self) -> Session {
        Session::open(self.project.clone(), |_| ControlFlow::Break(())).unwrap()
    }

    fn options(&self) -> Options {
        Options {
            here: String::new(),
            environments: Default::default(),
            settings: self.settings.clone(),
            spec: "spec.yaml".to_owned(),
            tool: "test".to_owned(),
            hosts: vec![self.host.to_owned()],
            output: None,
            verify: None,
        }
    }

    /// Carries the plan out with an executor, and hears every notice.
    pub fn drive<E: Executor + 'static>(
        &self,
        session: &Session,
        executor: E,
        cancel: Cancel,
        notify: &mut (dyn FnMut(Notice) + Send),
    ) -> Result<Report, EngineError> {
        let plan = Arc::new(self.plan.clone());
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(run(session, plan, self.options(), Arc::new(executor), cancel, notify))
    }

    /// Carries the plan out in a new session in which a script decides how attempts end.
    pub fn scripted(&self, script: impl Fn(&Call) -> Act + Send + Sync + 'static) -> Report {
        self.scripted_until(Cancel::new().unwrap(), script)
    }

    pub fn scripted_until(
        &self,
        cancel: Cancel,
        script: impl Fn(&Call) -> Act + Send + Sync + 'static,
    ) -> Report {
        let session = self.open();
        let executor = FakeExecutor::new(session.blobs.clone(), script);
        self.drive(&session, executor, cancel, &mut |_| {}).unwrap()
    }

    /// Carries the plan out in a new session in which every attempt succeeds.
    pub fn run(&self) -> Report {
        self.scripted(|_| succeed())
    }

    /// Like [`Bench::run`]; the members that were executed, sorted.
    pub fn executes(&self) -> Vec<String> {
        let report = self.run();
        self.past(&report.run).started()
    }

    /// All runs, in the order of their beginning.
    pub fn history(&self) -> Vec<Past> {
        let mut all: Vec<Past> = journals(&self.project)
            .unwrap()
            .into_iter()
            .map(|file| {
                let mut lines = file.read().unwrap().lines;
                let read = |digest| fs::read(self.project.blob(digest)).ok();
                assert_eq!(avow_model::journal::resolve(&mut lines, read), 0, "a list of hits is gone");
                let state = RunState::of(&lines);
                let lines = lines.into_iter().map(|line| line.event).collect();
                Past { run: file.run, path: file.path, lines, state }
            })
            .collect();
        all.sort_by_key(|past| past.state.since);
        all
    }

    pub fn past(&self, run: &str) -> Past {
        self.history().into_iter().find(|past| past.run == run).unwrap()
    }

    /// Every attempt of every run, with its member.
    pub fn attempts(&self) -> Vec<(String, Attempt)> {
        self.history().into_iter().flat_map(|past| past.state.attempts).collect()
    }

    /// What stands for each output of each member in a run.
    pub fn artifacts(&self, run: &str) -> BTreeMap<(String, String), Artifact> {
        let attempts: BTreeMap<AttemptDigest, Attempt> =
            self.attempts().into_iter().map(|(_, attempt)| (attempt.digest(), attempt)).collect();
        let mut artifacts = BTreeMap::new();
        for (member, state) in self.past(run).state.members {
            let attempt = match state {
                MemberState::Reused(hit) => attempts[&hit.attempt].clone(),
                MemberState::Done(attempt) => *attempt,
                MemberState::Running { .. } => panic!("`{member}` is still running"),
            };
            for (output, produced) in attempt.outputs {
                artifacts.insert((member.clone(), output), produced.artifact);
            }
        }
        artifacts
    }

    /// The blob of a member's output `out` in the only success that it has.
    pub fn blob(&self, member: &str) -> BlobDigest {
        let mut blobs = self.attempts().into_iter().filter(|(label, _)| label == member);
        blobs.find(|(_, a)| a.outcome.succeeded()).unwrap().1.outputs["out"].artifact.blob()
    }

    pub fn ledger(&self) -> LedgerFile {
        LedgerFile::of(&self.project, &self.plan.experiment).unwrap()
    }

    /// Removes what earlier runs left, so that the next works everything out again.
    pub fn forget_settled(&self) {
        let all = fs::read_dir(self.project.cache()).unwrap().map(|entry| entry.unwrap().path());
        let settled = all.filter(|path| path.file_name().unwrap().to_string_lossy().starts_with("settled-"));
        let removed = settled.map(|path| fs::remove_file(path).unwrap()).count();
        assert!(removed > 0, "nothing was settled");
    }

    pub fn delete_index(&self) {
        fs::remove_dir_all(self.project.index()).unwrap();
    }
}

impl Past {
    /// Members whose attempts were started, sorted, each as often as it was.
    pub fn started(&self) -> Vec<String> {
        let mut all: Vec<String> = self
            .lines
            .iter()
            .filter_map(|event| match event {
                Event::Started { member, .. } => Some(member.clone()),
                _ => None,
            })
            .collect();
        all.sort();
        all
    }

    /// Members whose attempts succeeded.
    pub fn succeeded(&self) -> BTreeSet<String> {
        let done = self.state.attempts.iter().filter(|(_, attempt)| attempt.outcome.succeeded());
        done.map(|(member, _)| member.clone()).collect()
    }

    /// The members of each line of hits, sorted.
    pub fn waves(&self) -> Vec<Vec<String>> {
        let wave = |event: &Event| match event {
            Event::Reused { hits, .. } => {
                let mut members: Vec<String> = hits.iter().map(|hit| hit.member.clone()).collect();
                members.sort();
                Some(members)
            }
            _ => None,
        };
        self.lines.iter().filter_map(wave).collect()
    }

    /// How the attempts at a member ended, in order.
    pub fn outcomes(&self, member: &str) -> Vec<(u32, Outcome)> {
        let of_member = self.state.attempts.iter().filter(|(label, _)| label == member);
        of_member.map(|(_, attempt)| (attempt.number, attempt.outcome.clone())).collect()
    }
}

pub fn succeed() -> Act {
    Act::Succeed(BTreeMap::new())
}

/// Whether a call is that of the member whose shell text begins like this: `echo STAGE VALUES`.
pub fn echoes(call: &Call, words: &str) -> bool {
    match &call.action.command {
        Command::Shell(text) => text.starts_with(&format!("echo {words} ")),
        _ => false,
    }
}

/// Keeps the first `length` bytes of a file.
pub fn cut(path: &Path, length: usize) {
    fs::OpenOptions::new().write(true).open(path).unwrap().set_len(length as u64).unwrap();
}

/// The length of a text up to the end of each of its lines.
pub fn line_ends(bytes: &[u8]) -> Vec<usize> {
    bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at + 1).collect()
}

/// The damage of a journal, if there is any.
pub fn damage(path: &Path) -> Option<Damage> {
    journal::read(path).unwrap().damage
}

fn copy_folder(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy_folder(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), &target).unwrap();
        }
    }
}
