//! What most commands begin with: the spec, its project, its plan, and a read-only view of the store.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use avow_audit::Source;
use avow_audit::integrity::RunJournal;
use avow_model::digest::{BlobDigest, TreeDigest};
use avow_model::ledger::Ledger;
use avow_model::plan::{Plan, Terms};
use avow_model::tree::Tree;
use avow_spec::{Diagnostic, Experiment, Lowered, World};
use avow_store::blob::read_record;
use avow_store::{Catalogue, FileBlobs, LedgerFile, MemoryStamps, Project, journal};

use crate::diagnostics;
use crate::exit::Exit;
use crate::failure;
use crate::output::{Failure, Output};
use crate::secrets;
use crate::world::{Depth, ProjectWorld};

/// A spec on disk, read.
pub struct Spec {
    /// The project it belongs to.
    pub project: Project,
    /// Its path as given.
    pub shown: String,
    /// Its path in the project.
    pub path: String,
    /// The folder it stands in, in the project.
    pub folder: String,
    /// Its text.
    pub text: String,
    /// What reading it found.
    pub diagnostics: Vec<Diagnostic>,
    /// The experiment, where the text is a mapping at all.
    pub experiment: Option<Experiment>,
}

/// A plan with what came beside it.
pub struct Planned {
    /// The plan.
    pub plan: Arc<Plan>,
    /// Terms by stage.
    pub terms: BTreeMap<String, Terms>,
    /// The code of its stages, which may not be in the store yet.
    pub trees: BTreeMap<TreeDigest, Tree>,
}

impl Spec {
    /// Reads a spec, given or found: where none is given, the one YAML file in this folder that begins like a
    /// spec.
    pub fn open(given: Option<&Path>) -> Result<Spec, Failure> {
        let path = match given {
            Some(path) => path.to_owned(),
            None => find_spec()?,
        };
        let shown = path.display().to_string();
        let bytes = std::fs::read(&path).map_err(|error| {
            Failure::new(Exit::Usage, format!("cannot read the spec `{shown}`"))
                .because(error)
                .hint("give the path of a YAML file, or make a project with `avow init`")
        })?;
        let text = String::from_utf8(bytes).map_err(|error| {
            Failure::new(Exit::SpecInvalid, format!("`{shown}` is not UTF-8")).because(error)
        })?;
        let absolute = path
            .canonicalize()
            .map_err(|error| Failure::new(Exit::Machine, format!("cannot find `{shown}`")).because(error))?;
        let folder = absolute.parent().unwrap_or(Path::new("/"));
        let project = Project::discover(folder).map_err(failure::store)?;
        let mut read = avow_spec::read(&text);
        let mut text = text;
        read.diagnostics.extend(secrets::literal(&project, read.experiment.as_ref(), &mut text));
        let inside =
            |path: &Path| path.strip_prefix(project.root()).unwrap_or(path).to_string_lossy().into_owned();
        Ok(Spec {
            shown,
            path: inside(&absolute),
            folder: inside(folder),
            text,
            diagnostics: read.diagnostics,
            experiment: read.experiment,
            project,
        })
    }

    /// Lowers it with a world of some depth. All diagnostics are returned with the result.
    pub fn lower(&self, world: &dyn World) -> (Option<Lowered>, Vec<Diagnostic>) {
        let mut all = self.diagnostics.clone();
        let lowered = self
            .experiment
            .as_ref()
            .map(|experiment| avow_spec::lower(experiment, world, avow_ops::signatures()));
        if let Some(lowered) = &lowered {
            all.extend(lowered.diagnostics.iter().cloned());
        }
        all.sort_by_key(|d| (d.span.start, d.span.end));
        (lowered, all)
    }

    /// Lowers it with digests of what is on disk, storing nothing.
    pub fn plan(&self, output: &Output) -> Result<Planned, Failure> {
        let blobs = FileBlobs::new(self.project.clone(), Arc::new(MemoryStamps::default()));
        let stamps = MemoryStamps::default();
        let world = ProjectWorld::new(self, Depth::Hash { blobs: &blobs, stamps: &stamps });
        self.plan_with(&world, output, false)
    }

    /// The same for commands that read results: programs are taken to be what they were when the latest run of
    /// the experiment used them.
    pub fn plan_as_run(&self, output: &Output) -> Result<Planned, Failure> {
        let blobs = FileBlobs::new(self.project.clone(), Arc::new(MemoryStamps::default()));
        let stamps = MemoryStamps::default();
        let world = ProjectWorld::new(self, Depth::Hash { blobs: &blobs, stamps: &stamps });
        self.plan_with(&world.recorded(self.programs_as_run(&blobs)?), output, false)
    }

    fn programs_as_run(&self, blobs: &FileBlobs) -> Result<BTreeMap<String, BlobDigest>, Failure> {
        let name = self.experiment.as_ref().and_then(Experiment::name);
        let Some(name) = name else { return Ok(BTreeMap::new()) };
        let catalogue = Catalogue::open(&self.project).map_err(failure::store)?;
        let Some(digest) = catalogue.latest(Some(name)).map(|run| run.plan) else {
            return Ok(BTreeMap::new());
        };
        // A plan record that is gone or damaged is named by the audit; the programs of today stand in for it.
        let plan: Option<Plan> = read_record(blobs, digest).ok();
        Ok(plan.into_iter().flat_map(|plan| plan.stages).flat_map(|stage| stage.toolchain).collect())
    }

    /// Lowers it with a given world; errors become a failure, warnings are printed where asked.
    pub fn plan_with(
        &self,
        world: &ProjectWorld<'_>,
        output: &Output,
        warnings: bool,
    ) -> Result<Planned, Failure> {
        let (lowered, all) = self.lower(world);
        if let Some(error) = world.failure() {
            return Err(failure::store(error));
        }
        if all.iter().any(Diagnostic::is_error) || lowered.as_ref().is_none_or(|l| l.plan.is_none()) {
            return Err(self.invalid(&all, output));
        }
        if warnings && !output.quiet && !all.is_empty() {
            output.always(diagnostics::render(&self.shown, &self.text, &all, output.colour).trim_end());
        }
        let lowered = lowered.expect("checked above");
        let plan = lowered.plan.expect("checked above");
        Ok(Planned { plan: Arc::new(plan), terms: lowered.terms, trees: world.trees() })
    }

    /// The failure that shows every problem.
    pub fn invalid(&self, all: &[Diagnostic], output: &Output) -> Failure {
        let errors = all.iter().filter(|d| d.is_error()).count();
        let rendered = diagnostics::render(&self.shown, &self.text, all, output.colour);
        let problems = if errors == 1 { "problem" } else { "problems" };
        Failure::new(Exit::SpecInvalid, format!("the spec `{}` has {errors} {problems}", self.shown))
            .after(rendered)
    }
}

fn find_spec() -> Result<PathBuf, Failure> {
    let unreadable = |error| Failure::new(Exit::Machine, "cannot list this folder").because(error);
    let mut found = Vec::new();
    for entry in std::fs::read_dir(".").map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        let yaml = path.extension().is_some_and(|e| e == "yaml" || e == "yml");
        if yaml && std::fs::read_to_string(&path).is_ok_and(|text| begins_like_a_spec(&text)) {
            found.push(path.strip_prefix(".").map(Path::to_owned).unwrap_or(path));
        }
    }
    found.sort();
    match found.as_slice() {
        [one] => Ok(one.clone()),
        [] => Err(Failure::new(Exit::Usage, "there is no spec in this folder")
            .hint("name one, e.g. `avow run experiment.yaml`, or make a project with `avow init`")),
        many => {
            let names: Vec<String> = many.iter().map(|p| format!("`{}`", p.display())).collect();
            Err(Failure::new(
                Exit::Usage,
                format!("there are several specs in this folder: {}", names.join(", ")),
            )
            .hint(format!("name one, e.g. `avow run {}`", many[0].display())))
        }
    }
}

fn begins_like_a_spec(text: &str) -> bool {
    text.lines().any(|line| line.starts_with("avow:"))
}

/// A read-only view of a project's store. Journals and the other experiments' ledgers are read by those who ask.
pub struct Reading {
    project: Project,
    experiment: String,
    /// Attempts.
    pub index: Catalogue,
    /// Blobs.
    pub blobs: FileBlobs,
    /// The experiment's ledger.
    pub ledger: Ledger,
}

impl Reading {
    /// Opens the store for an experiment. Works while another process runs.
    pub fn open(project: &Project, experiment: &str) -> Result<Reading, Failure> {
        project.check_format().map_err(failure::store)?;
        Ok(Reading {
            project: project.clone(),
            experiment: experiment.to_owned(),
            index: Catalogue::open(project).map_err(failure::store)?,
            blobs: FileBlobs::new(project.clone(), Arc::new(MemoryStamps::default())),
            ledger: LedgerFile::of(project, experiment)
                .and_then(|file| file.read())
                .map_err(failure::store)?,
        })
    }

    /// The ledgers of the project's other experiments.
    pub fn others(&self) -> Result<Vec<Ledger>, Failure> {
        let mut others = Vec::new();
        for name in avow_store::ledger::experiments(&self.project).map_err(failure::store)? {
            if name != self.experiment {
                let file = LedgerFile::of(&self.project, &name).map_err(failure::store)?;
                others.push(file.read().map_err(failure::store)?);
            }
        }
        Ok(others)
    }

    /// All journals, whole, as far as they can be read: for those who audit them.
    pub fn journals(&self) -> Result<Vec<RunJournal>, Failure> {
        let mut journals = Vec::new();
        for file in journal::journals(&self.project).map_err(failure::store)? {
            let journal = file.read().map_err(failure::store)?;
            journals.push(RunJournal { run: file.run, journal });
        }
        Ok(journals)
    }

    /// What the auditor reads from.
    pub fn source(&self) -> Source<'_> {
        Source::new(&self.blobs, &self.index)
    }
}
