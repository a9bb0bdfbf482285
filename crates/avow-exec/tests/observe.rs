//! What an observed attempt is seen to read, and that observing changes nothing else.
#![expect(clippy::unwrap_used, reason = "tests")]

mod support;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use avow_exec::{Base, Confinement, Executor, Watch};
use avow_model::action::Action;
use avow_model::attempt::{Failure, Outcome};
use avow_model::digest::BlobDigest;
use avow_model::plan::Terms;
use avow_model::reads::{Reads, Seen, names_digest};
use avow_store::blob::read_record;
use support::{Bench, alive, attempt, eventually, reads, sh, slot, words, writes};

struct Place {
    bench: Bench,
    _home: tempfile::TempDir,
    home: PathBuf,
}

impl Place {
    fn new(level: Confinement) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path().canonicalize().unwrap();
        let bench = Bench::with(|config| {
            config.confinement = Some(level);
            config.bounds.project = config.work.ancestors().nth(2).map(Path::to_owned);
            config.base = Base { path: config.base.path.clone(), home: home.clone().into(), within: None };
        });
        Self { bench, _home: folder, home }
    }

    fn observed() -> Self {
        Self::new(Confinement::Observe)
    }

    fn root(&self) -> PathBuf {
        self.bench.folder.path().canonicalize().unwrap()
    }

    fn project(&self, name: &str, text: &str) -> PathBuf {
        write(&self.root().join(name), text)
    }

    /// What a stage prints and reads, besides installed software.
    async fn run(&self, action: &Action) -> (String, BTreeMap<String, Seen>) {
        let done = self.bench.run(action).await;
        assert_eq!(done.outcome, Outcome::Succeeded, "{}", self.bench.text(done.stderr));
        let reads: Reads = read_record(self.bench.blobs.as_ref(), done.reads.unwrap()).unwrap();
        (self.bench.text(done.stdout), reads.seen)
    }
}

fn write(path: &Path, text: &str) -> PathBuf {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
    path.canonicalize().unwrap()
}

fn file(text: &str) -> Seen {
    Seen::File(BlobDigest::of(text.as_bytes()))
}

fn seen<const N: usize>(pairs: [(&str, Seen); N]) -> BTreeMap<String, Seen> {
    pairs.map(|(path, seen)| (path.to_owned(), seen)).into()
}

#[tokio::test]
async fn a_shell_script_reads_exactly_what_is_recorded() {
    let place = Place::observed();
    let (helper, notes) =
        (place.project("data/helper.csv", "1,2\n"), write(&place.home.join("notes"), "n\n"));
    place.project("data/untouched.csv", "3\n");
    let folder = place.project("many/b", "b");
    place.project("many/a", "a");
    let missing = place.root().join("absent.txt");
    let text = format!(
        "cat in; cat {}; cat {}; ls {}; test -e {} || echo none; echo mine > own; cat own",
        helper.display(),
        notes.display(),
        folder.parent().unwrap().display(),
        missing.display()
    );
    let action = reads(sh(&text), "in", place.bench.put(b"declared\n"));
    let (out, found) = place.run(&action).await;
    assert_eq!(out, "declared\n1,2\nn\na\nb\nnone\nmine\n");
    let names = Seen::Names(names_digest(vec![b"a".to_vec(), b"b".to_vec()]));
    let expected = [
        ("data/helper.csv", file("1,2\n")),
        ("~/notes", file("n\n")),
        ("many", names),
        ("absent.txt", Seen::Absent),
    ];
    assert_eq!(found, seen(expected));
}

#[tokio::test]
async fn installed_software_is_a_record_of_its_own_that_attempts_share() {
    let place = Place::observed();
    let mut records = Vec::new();
    for _ in 0..2 {
        let done = place.bench.run(&words(&["python3", "-c", "import json, ssl"])).await;
        let all: Reads = read_record(place.bench.blobs.as_ref(), done.reads.unwrap()).unwrap();
        // Version managers and the interpreter look for files that may be there one day.
        assert!(all.seen.values().all(|seen| *seen == Seen::Absent), "{:?}", all.seen);
        records.push(all.installed.unwrap());
    }
    assert_eq!(records[0], records[1]);
    let installed: Reads = read_record(place.bench.blobs.as_ref(), records[0]).unwrap();
    let is_file =
        |end: &str| installed.seen.iter().any(|(p, s)| p.ends_with(end) && matches!(s, Seen::File(_)));
    assert!(is_file("/json/__init__.py") && is_file("/ssl.py"), "{:?}", installed.seen.keys());
    assert!(!installed.seen.keys().any(|path| path.starts_with("/proc") || path.ends_with(".pyc")));
}

#[tokio::test]
async fn python_modules_of_the_project_are_recorded_by_their_source() {
    let place = Place::observed();
    place.project("lib/helper.py", "value = 7\n");
    let lib = place.root().join("lib");
    let compiled = std::process::Command::new("python3")
        .args(["-c", "import compileall, sys; compileall.compile_dir(sys.argv[1], quiet=2)"])
        .arg(&lib)
        .status()
        .unwrap();
    assert!(compiled.success() && lib.join("__pycache__").is_dir());
    let text = "import sys; sys.path.insert(0, sys.argv[1]); import helper; print(helper.value)";
    let (out, found) = place.run(&words(&["python3", "-c", text, lib.to_str().unwrap()])).await;
    assert_eq!(out, "7\n");
    assert_eq!(found.get("lib/helper.py"), Some(&file("value = 7\n")));
    assert!(!found.keys().any(|path| path.contains("__pycache__")), "{found:?}");
}

#[tokio::test]
async fn a_path_that_climbs_out_of_the_attempt_is_followed() {
    let place = Place::observed();
    place.project("data/up.csv", "up\n");
    let text = "cat ../../../../data/up.csv; test -e ../../../../data/none || echo none; ln -s ../../../../data d; cat d/up.csv";
    let (out, found) = place.run(&sh(text)).await;
    assert_eq!(out, "up\nnone\nup\n");
    assert_eq!(found, seen([("data/up.csv", file("up\n")), ("data/none", Seen::Absent)]));
}

/// Opens, forks, executes, starts threads: every way a program reads.
const PROGRAM: &str = r#"
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
static void show(const char *path) {
  char text[64]; int file = open(path, O_RDONLY); if (file < 0) exit(9);
  ssize_t n = read(file, text, sizeof text); write(1, text, n); close(file);
}
static void *threaded(void *path) { show(path); return NULL; }
int main(int argc, char **argv) {
  pthread_t thread; int status;
  pthread_create(&thread, NULL, threaded, argv[1]); pthread_join(thread, NULL);
  if (fork() == 0) { show(argv[2]); _exit(0); }
  wait(&status);
  if (vfork() == 0) { execl("/bin/cat", "cat", argv[3], NULL); _exit(1); }
  wait(&status);
  int folder = open(argv[4], O_RDONLY | O_DIRECTORY);
  int file = openat(folder, "../four", O_RDONLY); char c; read(file, &c, 1); putchar(c);
  fflush(stdout);
  return 0;
}
"#;

#[tokio::test]
async fn threads_forks_vforks_and_static_programs_are_observed() {
    let place = Place::observed();
    let code = place.bench.tree(&[("prog.c", place.bench.file(PROGRAM.as_bytes(), false))]);
    let paths: Vec<String> = ["one", "two", "three", "four"]
        .iter()
        .map(|name| place.project(name, &format!("{name}\n")).display().to_string())
        .collect();
    let folder = place.root().join("sub");
    fs::create_dir(&folder).unwrap();
    for link in ["-static", "-Wall"] {
        let text = format!(
            "cc {link} -pthread -o prog prog.c 2>/dev/null; exec ./prog {} {} {} {}",
            paths[0],
            paths[1],
            paths[2],
            folder.display()
        );
        let mut action = sh(&text);
        action.code = Some(code);
        let (out, found) = place.run(&action).await;
        assert_eq!(out, "one\ntwo\nthree\nf");
        let expected = [
            ("one", file("one\n")),
            ("two", file("two\n")),
            ("three", file("three\n")),
            ("four", file("four\n")),
            ("sub", Seen::Names(names_digest(Vec::new()))),
        ];
        assert_eq!(found, seen(expected));
    }
}

#[tokio::test]
async fn an_executed_script_is_recorded_with_its_interpreter() {
    use std::os::unix::fs::PermissionsExt;
    let place = Place::observed();
    let inner = place.project("inner", "#!/bin/sh\necho \"inner $1\"\n");
    let outer = place.project("outer", &format!("#!{}\n", inner.display()));
    for script in [&inner, &outer] {
        fs::set_permissions(script, fs::Permissions::from_mode(0o755)).unwrap();
    }
    let (out, found) = place.run(&sh(outer.to_str().unwrap())).await;
    assert_eq!(out, format!("inner {}\n", outer.display()));
    assert_eq!(found.keys().collect::<Vec<_>>(), ["inner", "outer"]);
}

#[tokio::test]
async fn the_content_is_that_of_the_time_of_reading() {
    let place = Place::new(Confinement::Observe);
    let data = place.project("data", "before");
    let go = place.bench.folder.path().join("go");
    let text =
        format!("cat {0}; while ! test -e {1}; do sleep 0.01; done; cat {0}", data.display(), go.display());
    let action = sh(&text);
    let (id, terms) = (attempt(), Terms::default());
    let watch = Watch::new(place.bench.cancel.clone());
    let running = place.bench.executor.run(&id, &action, &terms, watch);
    let change = async {
        tokio::time::sleep(Duration::from_millis(300)).await;
        fs::write(&data, "after").unwrap();
        fs::write(&go, "").unwrap();
    };
    let (done, ()) = tokio::join!(running, change);
    let done = done.unwrap();
    let reads: Reads = read_record(place.bench.blobs.as_ref(), done.reads.unwrap()).unwrap();
    assert_eq!(reads.seen["data"], file("before"));
}

#[tokio::test]
async fn ends_are_what_they_are_without_an_observer() {
    let place = Place::observed();
    let outcome = async |text: &str| place.bench.run(&sh(text)).await.outcome;
    assert_eq!(outcome("cat /etc/hostname > /dev/null; exit 3").await, Outcome::Failed(Failure::Exit(3)));
    assert_eq!(outcome("kill -SEGV $$").await, Outcome::Failed(Failure::Signal(11)));
    assert_eq!(
        outcome("trap 'exit 5' USR1; kill -USR1 $$; sleep 5").await,
        Outcome::Failed(Failure::Exit(5))
    );
    let missing = place.bench.run(&words(&["/nonexistent/program"])).await.outcome;
    assert!(matches!(missing, Outcome::Failed(Failure::Start(_))), "{missing:?}");
    let terms = Terms { timeout: Some(200), ..Terms::default() };
    let slow = place.bench.under(&sh("sleep 60 & sleep 60"), &terms).await;
    assert_eq!(slow.outcome, Outcome::TimedOut);
    assert!(slow.reads.is_some());
}

#[tokio::test]
async fn cancelling_an_observed_attempt_leaves_no_process() {
    let place = Place::observed();
    let pids = place.bench.folder.path().join("pids");
    fs::write(&pids, "").unwrap();
    let text = "(setsid sh -c 'echo $$ > pid2; exec sleep 300') & echo $$ > pid1; \
                while :; do cat /etc/os-release > /dev/null; done";
    let action = sh(text);
    let work = place.bench.project.work();
    let (id, terms) = (attempt(), Terms::default());
    let watch = Watch::new(place.bench.cancel.clone());
    let running = place.bench.executor.run(&id, &action, &terms, watch);
    let found = |name: &str| {
        let entries = fs::read_dir(&work).unwrap().flatten();
        entries
            .filter_map(|e| fs::read_to_string(e.path().join("run").join(name)).ok())
            .find(|t| t.ends_with('\n'))
    };
    let stop = async {
        let mut known = None;
        while known.is_none() {
            tokio::time::sleep(Duration::from_millis(10)).await;
            known = found("pid1").zip(found("pid2"));
        }
        place.bench.cancel.stop();
        known.unwrap()
    };
    let (done, (first, second)) = tokio::join!(running, stop);
    assert_eq!(done.unwrap().outcome, Outcome::Cancelled);
    eventually("both are gone", || !alive(&first) && !alive(&second));
}

#[tokio::test]
async fn an_observed_attempt_is_protected_and_offline_as_its_record_says() {
    let place = Place::observed();
    let outside = place.root().join("outside");
    let done = place.bench.run(&sh(&format!("(echo x > {}) || echo no", outside.display()))).await;
    let words = &done.host.confinement;
    assert!(words.starts_with("observe"), "{words}");
    assert_eq!(words.contains("+landlock"), !outside.exists());
}

#[tokio::test]
async fn what_a_stage_wrote_itself_is_not_read_from_elsewhere() {
    let place = Place::new(Confinement::Observe);
    let (out, found) = place.run(&sh("echo a > $TMPDIR/a; cat $TMPDIR/a; echo b > /dev/shm/avow-$$; cat /dev/shm/avow-$$; rm /dev/shm/avow-$$")).await;
    assert_eq!((out.as_str(), found), ("a\nb\n", BTreeMap::new()));
}

#[tokio::test]
async fn denied_files_are_named_on_request_and_nothing_is_kept() {
    let place = Place::new(Confinement::Deny);
    if !avow_exec::probe().write_protection {
        return;
    }
    let data = place.project("data/extra.csv", "x");
    let text = format!("import json; open('out', 'w').write('o'); open({:?})", data.to_str().unwrap());
    let action = writes(words(&["python3", "-c", &text]), "out", slot("out"));
    let watch = || Watch::new(place.bench.cancel.clone());
    let done = place.bench.run(&action).await;
    assert_eq!(done.outcome, Outcome::Failed(Failure::Exit(1)));
    let before = fs::read_dir(place.bench.project.blobs()).unwrap().count();
    let executor = &place.bench.executor;
    let (outcome, denied) =
        executor.explain_denials(&attempt(), &action, &Terms::default(), watch()).unwrap();
    assert_eq!((outcome, denied), (Outcome::Failed(Failure::Exit(1)), vec![data]));
    assert_eq!(fs::read_dir(place.bench.project.blobs()).unwrap().count(), before);
    assert_eq!(place.bench.leftovers(), Vec::<PathBuf>::new());
}

#[tokio::test]
async fn a_32_bit_program_is_refused_with_the_reason() {
    use std::os::unix::fs::PermissionsExt;
    let place = Place::observed();
    // An ELF header of a 32-bit program; it need not run anywhere.
    let mut header = b"\x7fELF\x01\x01\x01".to_vec();
    header.resize(64, 0);
    let program = place.root().join("old");
    fs::write(&program, header).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let done = place.bench.run(&words(&[program.to_str().unwrap()])).await;
    let Outcome::Failed(Failure::Start(reason)) = done.outcome else { panic!("{:?}", done.outcome) };
    assert!(reason.contains("32-bit") && reason.contains("--confine deny"), "{reason}");
}

#[tokio::test]
async fn many_observed_attempts_at_once_keep_their_reads_apart() {
    let place = Place::observed();
    let files: Vec<PathBuf> = (0..12).map(|i| place.project(&format!("f{i}"), &format!("{i}\n"))).collect();
    let mut tasks = Vec::new();
    for file in &files {
        let (executor, cancel) = (place.bench.executor.clone(), place.bench.cancel.clone());
        let action = sh(&format!("cat {}; cat {0}", file.display()));
        tasks.push(tokio::spawn(async move {
            executor.run(&attempt(), &action, &Terms::default(), Watch::new(cancel)).await.unwrap()
        }));
    }
    for (i, task) in tasks.into_iter().enumerate() {
        let done = task.await.unwrap();
        let reads: Reads = read_record(place.bench.blobs.as_ref(), done.reads.unwrap()).unwrap();
        assert_eq!(reads.seen, seen([(format!("f{i}").as_str(), file(&format!("{i}\n")))]));
    }
}
