//! What most commands begin with: the spec, its project, its plan, and a read-only view of the store.

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use avow_audit::Source;
use avow_audit::integrity::RunJournal;
use avow_exec::identity::Identities;
use avow_model::digest::{BlobDigest, LineDigest, RegistrationDigest, TreeDigest};
use avow_model::journal::{Damage, Event};
use avow_model::ledger::Ledger;
use avow_model::loads::Loads;
use avow_model::plan::{Plan, Terms};
use avow_model::tree::Tree;
use avow_spec::{Diagnostic, Lowered, Read, World};
use avow_store::blob::read_record;
use avow_store::{
    Aliases, Catalogue, FileBlobs, FileStamps, LedgerFile, MemoryStamps, Observed, Project, cache, journal,
};

use crate::args;
use crate::compiled::{Compiled, compile};
use crate::diagnostics;
use crate::exit::Exit;
use crate::failure;
use crate::output::{Failure, Output};
use crate::search;
use crate::secrets;
use crate::settings::Settings;
use crate::stamps::Remembered;
use crate::world::{AsRun, Depth, ProjectWorld};

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
    /// Whether what became of it may be kept: not where it holds what nobody should keep.
    pub lasting: bool,
    /// What reading it found; a compiled spec need not be read.
    read: OnceCell<Read>,
    identities: OnceCell<Identities>,
}

/// A plan with what came beside it.
pub struct Planned {
    /// The plan.
    pub plan: Arc<Plan>,
    /// Terms by stage.
    pub terms: BTreeMap<String, Terms>,
    /// The code of its stages, which may not be in the store yet.
    pub trees: BTreeMap<TreeDigest, Tree>,
    /// What its programs load, which may not be in the store yet.
    pub loads: BTreeMap<BlobDigest, Loads>,
    /// The files of shared libraries that they load from outside the project.
    pub libraries: Vec<PathBuf>,
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
        // Whatever is wrong with it is told by every command, also by those that need nothing of it.
        Settings::of(&project)?.confine.level(None)?;
        let (mut text, read) = (text, OnceCell::new());
        // A key may be spelled with escapes. Most specs have neither, and need not be read for it.
        let mut literal = Vec::new();
        if text.contains("secrets") || text.contains('\\') {
            let mut found = avow_spec::read(&text);
            literal = secrets::literal(&project, found.experiment.as_ref(), &mut text);
            found.diagnostics.extend(literal.iter().cloned());
            read.get_or_init(|| found);
        }
        let inside =
            |path: &Path| path.strip_prefix(project.root()).unwrap_or(path).to_string_lossy().into_owned();
        Ok(Spec {
            shown,
            path: inside(&absolute),
            folder: inside(folder),
            text,
            read,
            lasting: literal.is_empty(),
            identities: OnceCell::new(),
            project,
        })
    }

    fn read(&self) -> &Read {
        self.read.get_or_init(|| avow_spec::read(&self.text))
    }

    /// The experiment's name as written, if it has one.
    pub fn name(&self) -> Option<&str> {
        plain_name(&self.text).or_else(|| self.read().experiment.as_ref()?.name())
    }

    /// The title as written, if it has one.
    pub fn title(&self) -> Option<&str> {
        self.read().experiment.as_ref()?.title()
    }

    /// The tables that its axes are read from: paths in the project, with what they hold.
    pub fn tables(&self) -> Result<Vec<(String, Vec<u8>)>, Failure> {
        let paths = self.read().experiment.as_ref().map(avow_spec::Experiment::tables).unwrap_or_default();
        let read = |path: String| {
            let bytes = std::fs::read(self.project.root().join(&path)).map_err(|error| {
                Failure::new(Exit::Machine, format!("cannot read the table `{path}`")).because(error)
            })?;
            Ok((path, bytes))
        };
        paths.into_iter().map(read).collect()
    }

    /// What identifies programs and packages; what it finds out is remembered beside the store.
    pub fn identities(&self) -> &Identities {
        self.identities.get_or_init(|| {
            let memory = self.project.cache().join("loads.json");
            Identities::new(self.project.root(), Some(memory))
        })
    }

    /// Lowers it with a world of some depth. All diagnostics are returned with the result.
    pub fn lower(&self, world: &dyn World) -> (Option<Lowered>, Vec<Diagnostic>) {
        let mut all = self.read().diagnostics.clone();
        let lowered = self
            .read()
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
        self.plan_hashed(None, output)
    }

    /// The same for commands that read results: programs are taken to be what they were when the latest run of
    /// the experiment used them.
    pub fn plan_as_run(&self, output: &Output) -> Result<Planned, Failure> {
        self.plan_hashed(self.programs_as_run()?, output)
    }

    fn plan_hashed(&self, recorded: Option<AsRun>, output: &Output) -> Result<Planned, Failure> {
        let blobs = FileBlobs::new(self.project.clone(), Arc::new(MemoryStamps::default()));
        let stamps = FileStamps::open(&self.project);
        let world = ProjectWorld::new(self, Depth::Hash { blobs: &blobs, stamps: &stamps });
        let planned = self.plan_with(&world.recorded(recorded), output);
        stamps.save();
        planned
    }

    fn programs_as_run(&self) -> Result<Option<AsRun>, Failure> {
        let Some(name) = self.name() else { return Ok(None) };
        let catalogue = Catalogue::open(&self.project).map_err(failure::store)?;
        let Some(digest) = catalogue.latest(Some(name)).map(|run| run.plan) else {
            return Ok(None);
        };
        let kept = format!("programs-{digest}");
        if let Some(bytes) = cache::get(&self.project, &kept)
            && let Ok(programs) = serde_json::from_slice(&bytes)
        {
            return Ok(Some(programs));
        }
        // A plan record that is gone or damaged is named by the audit; the programs of today stand in for it.
        let blobs = FileBlobs::new(self.project.clone(), Arc::new(MemoryStamps::default()));
        let Ok(plan) = read_record::<Plan>(&blobs, digest) else { return Ok(None) };
        let programs = AsRun::of(&plan);
        if let Ok(bytes) = serde_json::to_vec(&programs) {
            cache::put(&self.project, &kept, bytes);
            cache::trim(&self.project, "programs-", KEPT);
        }
        Ok(Some(programs))
    }

    /// Lowers it with a given world; errors become a failure.
    pub fn plan_with(&self, world: &ProjectWorld<'_>, output: &Output) -> Result<Planned, Failure> {
        let compiled = compile(self, world, true);
        self.sound(&compiled, world, output)?;
        self.planned(world, compiled)
    }

    /// Lowers it without its plan, where that is known to be as it was; [`Spec::plan_of`] gets it where it turns out
    /// to be wanted.
    pub fn compile_with(&self, world: &ProjectWorld<'_>, output: &Output) -> Result<Compiled, Failure> {
        let compiled = compile(self, world, false);
        self.sound(&compiled, world, output)?;
        Ok(compiled)
    }

    /// The plan of what [`Spec::compile_with`] gave.
    pub fn plan_of(
        &self,
        world: &ProjectWorld<'_>,
        compiled: Compiled,
        output: &Output,
    ) -> Result<Planned, Failure> {
        if compiled.plan.is_some() { self.planned(world, compiled) } else { self.plan_with(world, output) }
    }

    fn planned(&self, world: &ProjectWorld<'_>, compiled: Compiled) -> Result<Planned, Failure> {
        let mut plan = compiled.plan.expect("a sound spec has a plan");
        world.as_run(&mut plan);
        // What is kept of a spec is the plan as declared; what searches have found is worked out each time.
        let plan = search::followed(&self.project, plan)?;
        let (trees, loads, libraries) = (world.trees(), world.loads_asked(), world.library_files());
        Ok(Planned { plan, terms: compiled.terms, trees, loads, libraries })
    }

    /// Finds the problems of a spec before anything is waited for or stored: errors become a failure. What is
    /// returned has warnings and terms, and no plan.
    pub fn problems(&self, output: &Output) -> Result<Compiled, Failure> {
        let world = ProjectWorld::new(self, Depth::Look);
        let compiled = compile(self, &world, false);
        self.sound(&compiled, &world, output)?;
        Ok(compiled)
    }

    fn sound(&self, compiled: &Compiled, world: &ProjectWorld<'_>, output: &Output) -> Result<(), Failure> {
        if let Some(error) = world.failure() {
            return Err(failure::store(error));
        }
        if !compiled.good || compiled.diagnostics.iter().any(Diagnostic::is_error) {
            return Err(self.invalid(&compiled.diagnostics, output));
        }
        Ok(())
    }

    /// The failure that shows every problem.
    pub fn invalid(&self, all: &[Diagnostic], output: &Output) -> Failure {
        let errors = all.iter().filter(|d| d.is_error()).count();
        let rendered = diagnostics::render_spec(&self.shown, &self.text, all, output.colour);
        let problems = if errors == 1 { "problem" } else { "problems" };
        Failure::new(Exit::SpecInvalid, format!("the spec `{}` has {errors} {problems}", self.shown))
            .after(rendered)
    }
}

/// Every YAML file in this folder that begins like a spec, sorted.
pub fn find_specs() -> Result<Vec<PathBuf>, Failure> {
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
    Ok(found)
}

fn find_spec() -> Result<PathBuf, Failure> {
    let found = find_specs()?;
    match found.as_slice() {
        [one] => Ok(one.clone()),
        [] => Err(Failure::new(Exit::Usage, "there is no spec in this folder").hint(format!(
            "name one, e.g. `{}`, or make a project with `avow init`",
            args::naming(std::env::args_os(), "experiment.yaml")
        ))),
        many => {
            let names: Vec<String> = many.iter().map(|p| format!("`{}`", p.display())).collect();
            Err(Failure::new(
                Exit::Usage,
                format!("there are several specs in this folder: {}", names.join(", ")),
            )
            .hint(format!(
                "name one, e.g. `{}`",
                args::naming(std::env::args_os(), &many[0].display().to_string())
            )))
        }
    }
}

/// Plans whose programs are kept.
const KEPT: usize = 12;

/// The name on the one line that begins with `experiment:`, where it is a plain word. Whatever else a valid spec
/// holds is indented or begins with another key, so the whole text need not be read for it.
fn plain_name(text: &str) -> Option<&str> {
    let mut lines = text.lines().filter_map(|line| line.strip_prefix("experiment:"));
    let (rest, None) = (lines.next()?, lines.next()) else { return None };
    let name = rest.strip_prefix(' ')?.trim();
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '_' | '.');
    // What reads as a number or a truth is no text.
    let begins = name.starts_with(|c: char| c.is_ascii_lowercase());
    let meaning = matches!(name, "true" | "false" | "null");
    (begins && !meaning && name.chars().all(plain)).then_some(name)
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
    /// The names that actions had under earlier encodings.
    pub aliases: Aliases,
    /// Blobs.
    pub blobs: FileBlobs,
    /// The experiment's ledger.
    pub ledger: Ledger,
    /// Whether what observed attempts read is still so.
    pub observed: Observed,
    /// Digests of files that were looked at.
    pub stamps: Remembered,
}

impl Reading {
    /// Opens the store for an experiment. Works while another process runs.
    pub fn open(project: &Project, experiment: &str) -> Result<Reading, Failure> {
        project.check_format().map_err(failure::store)?;
        Ok(Reading {
            project: project.clone(),
            experiment: experiment.to_owned(),
            index: Catalogue::open(project).map_err(failure::store)?,
            aliases: Aliases::read(project).map_err(failure::store)?,
            blobs: FileBlobs::new(project.clone(), Arc::new(MemoryStamps::default())),
            observed: Observed::here(project),
            stamps: Remembered::of(project),
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

    /// All journals, whole, as far as they can be read: for those who audit them. What other runs do meanwhile must
    /// not look like damage: a line that is being written is not torn, and a run that began after the ledger was
    /// read is left out, since the ledger cannot have what it cites.
    pub fn journals(&self) -> Result<Vec<RunJournal>, Failure> {
        let mut journals = Vec::new();
        for file in journal::journals(&self.project).map_err(failure::store)? {
            let mut journal = file.read().map_err(failure::store)?;
            if matches!(journal.damage, Some(Damage::Torn { .. }))
                && file.is_live().map_err(failure::store)?
            {
                journal.damage = None;
            }
            journals.push(RunJournal { run: file.run, journal });
        }
        let ledger = LedgerFile::of(&self.project, &self.experiment).and_then(|file| file.read());
        let ledger = ledger.map_err(failure::store)?;
        let newer =
            |head: &RegistrationDigest| self.ledger.entry(*head).is_none() && ledger.entry(*head).is_some();
        let (announced, since) = (self.ledger.announced(), ledger.announced());
        let only_since = |line: &LineDigest| since.contains(line) && !announced.contains(line);
        journals.retain(|run| match run.journal.lines.first().map(|line| &line.event) {
            // It may have begun before, and have been announced only after.
            Some(Event::Opened(opened)) => {
                !opened.ledger_heads.iter().any(newer)
                    && !run.journal.before_attempts().into_iter().flatten().any(|line| only_since(&line))
            }
            _ => true,
        });
        Ok(journals)
    }

    /// What the auditor reads from.
    pub fn source(&self) -> Source<'_> {
        Source::new(&self.blobs, &self.index)
            .observing(&self.observed, &self.stamps)
            .with_aliases(&self.aliases)
    }
}
