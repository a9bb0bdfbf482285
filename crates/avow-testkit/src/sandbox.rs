//! A temporary project in which the real program runs.
//!
//! What the program prints goes to files beside the project, not to pipes: a killed program may leave stages
//! behind that hold its output open, and a test must not wait for them.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::normal;

/// How long a condition may take to come true before the test fails.
const PATIENCE: Duration = Duration::from_secs(120);

/// A temporary project folder and the program to run in it; both go with the value.
#[derive(Debug)]
pub struct Sandbox {
    folder: TempDir,
    root: PathBuf,
    program: PathBuf,
    env: Vec<(String, String)>,
    started: AtomicU32,
}

/// What one run of the program gave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// Its exit code; 128 plus the signal's number where a signal ended it, as a shell reports it.
    pub code: i32,
    /// What it printed on standard output.
    pub stdout: String,
    /// What it printed on standard error.
    pub stderr: String,
}

/// The program under way. It is killed where a test lets go of it.
#[derive(Debug)]
pub struct Running<'a> {
    sandbox: &'a Sandbox,
    child: Child,
    printed: PathBuf,
}

impl Sandbox {
    /// An empty project for this program, e.g. `Sandbox::new(env!("CARGO_BIN_EXE_avow"))`.
    pub fn new(program: impl Into<PathBuf>) -> Sandbox {
        let folder = TempDir::with_prefix("avow-test-").expect("a temporary folder can be made");
        // A link on the way (as `/tmp` is on some systems) would give the folder a second name in outputs.
        let base = folder.path().canonicalize().expect("the folder was just made");
        for name in ["project", "home", "printed"] {
            fs::create_dir(base.join(name)).expect("the folder is ours");
        }
        let program = program.into();
        Sandbox { folder, root: base.join("project"), program, env: Vec::new(), started: AtomicU32::new(0) }
    }

    /// Sets a variable for every run from here on.
    #[must_use]
    pub fn env(mut self, name: &str, value: &str) -> Sandbox {
        self.env.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Writes a file of the project, its folders included.
    pub fn file(&self, path: &str, text: impl AsRef<[u8]>) -> &Sandbox {
        let at = self.path(path);
        let parent = at.parent().expect("a file lies in a folder");
        fs::create_dir_all(parent).unwrap_or_else(|e| panic!("cannot make `{}`: {e}", parent.display()));
        fs::write(&at, text).unwrap_or_else(|e| panic!("cannot write `{path}`: {e}"));
        self
    }

    /// Copies a file or folder from elsewhere into the project.
    pub fn copy(&self, from: impl AsRef<Path>, path: &str) -> &Sandbox {
        copy(from.as_ref(), &self.path(path));
        self
    }

    /// Removes a file or folder of the project, where it exists.
    pub fn remove(&self, path: &str) -> &Sandbox {
        let at = self.path(path);
        let removed = if at.is_dir() { fs::remove_dir_all(&at) } else { fs::remove_file(&at) };
        assert!(removed.is_ok() || !at.exists(), "cannot remove `{path}`: {removed:?}");
        self
    }

    /// Replaces text in a file of the project; panics where it is not there.
    pub fn replace(&self, path: &str, old: &str, new: &str) -> &Sandbox {
        let text = self.read(path);
        assert!(text.contains(old), "`{path}` does not hold `{old}`");
        self.file(path, text.replace(old, new))
    }

    /// Sets a file's modification time to now and leaves its bytes alone.
    pub fn touch(&self, path: &str) -> &Sandbox {
        let file = File::options().append(true).open(self.path(path));
        let now = std::time::SystemTime::now();
        file.and_then(|f| f.set_modified(now)).unwrap_or_else(|e| panic!("cannot touch `{path}`: {e}"));
        self
    }

    /// The project folder.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// A path in the project.
    pub fn path(&self, path: &str) -> PathBuf {
        self.root.join(path)
    }

    /// Whether the project has something at this path.
    pub fn has(&self, path: &str) -> bool {
        self.path(path).exists()
    }

    /// A file of the project, as text.
    pub fn read(&self, path: &str) -> String {
        fs::read_to_string(self.path(path)).unwrap_or_else(|e| panic!("cannot read `{path}`: {e}"))
    }

    /// The names in a folder of the project, sorted; none where there is no such folder.
    pub fn list(&self, path: &str) -> Vec<String> {
        let entries = fs::read_dir(self.path(path)).into_iter().flatten();
        let name = |entry: std::io::Result<fs::DirEntry>| entry.expect("the folder is readable").file_name();
        let mut names: Vec<String> =
            entries.map(|entry| name(entry).to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    /// Runs the program in the project folder and waits for its end.
    pub fn avow(&self, args: &[&str]) -> Run {
        self.start(args).wait()
    }

    /// Runs the program once with a variable that no other run has.
    pub fn avow_with(&self, name: &str, value: &str, args: &[&str]) -> Run {
        self.start_with(&[(name, value)], args).wait()
    }

    /// Starts the program and does not wait.
    pub fn start(&self, args: &[&str]) -> Running<'_> {
        self.start_with(&[], args)
    }

    fn start_with(&self, variables: &[(&str, &str)], args: &[&str]) -> Running<'_> {
        let number = self.started.fetch_add(1, Ordering::Relaxed);
        let printed = self.folder.path().join(format!("printed/{number}"));
        let file = |suffix| File::create(printed.with_extension(suffix)).expect("the folder is ours");
        let child = self
            .command(&self.program)
            .args(args)
            .envs(variables.iter().copied())
            .stdin(Stdio::null())
            .stdout(file("out"))
            .stderr(file("err"))
            .spawn()
            .unwrap_or_else(|e| panic!("cannot start `{}`: {e}", self.program.display()));
        Running { sandbox: self, child, printed }
    }

    /// Starts the program, ends it as `kill -9` does after this time, and gives what it had printed. It may
    /// have ended by itself before; then its own exit code is given.
    pub fn kill_after(&self, time: Duration, args: &[&str]) -> Run {
        let mut running = self.start(args);
        let end = Instant::now() + time;
        while running.is_running() && Instant::now() < end {
            sleep(Duration::from_millis(1).min(time));
        }
        running.kill()
    }

    /// Starts the program and ends it as `kill -9` does as soon as the condition holds. A condition on files
    /// gives a chosen moment where a time would give any.
    pub fn kill_when(&self, condition: impl FnMut(&Sandbox) -> bool, args: &[&str]) -> Run {
        let mut running = self.start(args);
        running.wait_until(condition);
        running.kill()
    }

    /// The text with this sandbox' folders as `[PROJECT]` and `[HOME]`, and everything that
    /// [`normal::normalised`] replaces.
    pub fn normalised(&self, text: &str) -> String {
        let text = text.replace(&self.root.display().to_string(), "[PROJECT]");
        let text = text.replace(&self.home().display().to_string(), "[HOME]");
        normal::normalised(&text)
    }

    /// A run as one text for a snapshot: exit code, standard output, standard error, all normalised.
    pub fn snapshot(&self, run: &Run) -> String {
        let part = |name: &str, text: &str| {
            let text = self.normalised(text);
            let end = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
            format!("--- {name}\n{text}{end}")
        };
        format!("exit code {}\n{}{}", run.code, part("stdout", &run.stdout), part("stderr", &run.stderr))
    }

    fn home(&self) -> PathBuf {
        self.root.with_file_name("home")
    }

    /// A command in the project folder with the environment that every run has: the caller's search path, a
    /// home of its own, English, UTC, 100 columns and no colour.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        // A test that was started in the background passes on that signals are ignored; a person's program is not
        // started so.
        let mut command = Command::new("/usr/bin/env");
        command.arg("--default-signal").arg(program);
        command.current_dir(&self.root).env_clear();
        command.envs(std::env::var_os("PATH").map(|path| ("PATH", path)));
        command.env("HOME", self.home());
        let fixed =
            [("LANG", "C.UTF-8"), ("TZ", "UTC"), ("TERM", "dumb"), ("NO_COLOR", "1"), ("COLUMNS", "100")];
        command.envs(fixed).envs(self.env.iter().map(|(name, value)| (name, value)));
        command
    }
}

impl Running<'_> {
    /// Its process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Whether it has not ended.
    pub fn is_running(&mut self) -> bool {
        self.child.try_wait().expect("the process is our child").is_none()
    }

    /// Waits until the condition holds or the program has ended; panics where neither comes within two
    /// minutes.
    pub fn wait_until(&mut self, mut condition: impl FnMut(&Sandbox) -> bool) {
        let end = Instant::now() + PATIENCE;
        while self.is_running() && !condition(self.sandbox) {
            assert!(Instant::now() < end, "the condition did not come true: {:?}", self.printed());
            sleep(Duration::from_millis(2));
        }
    }

    /// Sends a signal by its name, e.g. `INT`.
    pub fn signal(&self, name: &str) {
        let sent = Command::new("kill").args(["-s", name, &self.id().to_string()]).status();
        assert!(sent.is_ok_and(|status| status.success()), "cannot send {name} to process {}", self.id());
    }

    /// What it has printed so far on standard output and standard error.
    pub fn printed(&self) -> (String, String) {
        let read = |suffix| {
            let bytes =
                fs::read(self.printed.with_extension(suffix)).expect("the file was made at the start");
            String::from_utf8_lossy(&bytes).into_owned()
        };
        (read("out"), read("err"))
    }

    /// Ends it as `kill -9` does, its children left alone, and gives what it had printed.
    pub fn kill(mut self) -> Run {
        self.child.kill().expect("the process is our child");
        self.wait()
    }

    /// Waits for its end.
    pub fn wait(mut self) -> Run {
        let status = self.child.wait().expect("the process is our child");
        let signal = std::os::unix::process::ExitStatusExt::signal(&status);
        let code =
            status.code().or(signal.map(|number| 128 + number)).expect("a process ends in one of two ways");
        let (stdout, stderr) = self.printed();
        Run { code, stdout, stderr }
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        // A process that has ended already is no failure.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Run {
    /// This run, after a check of its exit code; panics with everything it printed where it has another.
    #[track_caller]
    #[must_use = "or use `expect_code` for the check alone"]
    pub fn with_code(self, code: i32) -> Run {
        self.expect_code(code);
        self
    }

    /// Panics with everything it printed where it has another exit code.
    #[track_caller]
    pub fn expect_code(&self, code: i32) {
        let Run { code: found, stdout, stderr } = self;
        assert!(*found == code, "exit code {found}, not {code}\n--- stdout\n{stdout}\n--- stderr\n{stderr}");
    }

    /// Its standard output as JSON, for runs with `--json`.
    #[track_caller]
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.stdout)
            .unwrap_or_else(|e| panic!("no JSON: {e}\n{}\n{}", self.stdout, self.stderr))
    }
}

fn copy(from: &Path, to: &Path) {
    let fail = |e: std::io::Error| -> ! { panic!("cannot copy `{}`: {e}", from.display()) };
    if from.is_dir() {
        fs::create_dir_all(to).unwrap_or_else(|e| fail(e));
        for entry in fs::read_dir(from).unwrap_or_else(|e| fail(e)) {
            let entry = entry.unwrap_or_else(|e| fail(e));
            copy(&entry.path(), &to.join(entry.file_name()));
        }
    } else {
        let parent = to.parent().expect("a file lies in a folder");
        fs::create_dir_all(parent).unwrap_or_else(|e| fail(e));
        fs::copy(from, to).unwrap_or_else(|e| fail(e));
    }
}
