//! A worker carries out only what it has byte for byte: its programs, and whatever these load.
#![expect(clippy::unwrap_used, reason = "tests")]

use std::fs;
use std::path::Path;

use avow_testkit::{Machine, Sandbox, Venv};

const IMPORTER: &str = "import sys, upper\nopen(sys.argv[1], 'w').write(str(upper.VALUE))\n";

fn sandbox() -> Sandbox {
    Sandbox::new(env!("CARGO_BIN_EXE_avow"))
}

/// A project whose one stage runs a command and writes `out.txt`.
fn project(command: &str) -> Sandbox {
    let spec = format!(
        "avow: 1\nexperiment: fit\nstages:\n  make:\n    run: {command}\n    outputs: {{out: out.txt}}\n"
    );
    let sandbox = sandbox();
    sandbox.file("avow.toml", "").file("spec.yaml", spec).file("main.py", IMPORTER);
    sandbox
}

/// A project and a machine, each with a virtual environment of its own.
fn environments() -> (Sandbox, Venv, Machine, Venv) {
    let (here, there) = (project("python3 main.py ${outputs.out}"), sandbox());
    let (ours, theirs) = (Venv::new(&here, "venv"), Venv::new(&there, "venv"));
    let (here, there) = (here.env("PATH", &ours.path), there.env("PATH", &theirs.path));
    (here, ours, Machine::of(there), theirs)
}

fn run_on<'a>(url: &str, machine: &'a Machine, on: &'a mut String) -> Vec<&'a str> {
    *on = format!("worker:{url}");
    vec!["run", "--on", on, "--token-file", machine.token()]
}

#[test]
fn another_version_of_a_package_is_refused_before_anything_starts() {
    let (here, ours, machine, theirs) = environments();
    ours.install("upper", "1.0", "VALUE = 1\n", "");
    theirs.install("upper", "1.1", "VALUE = 11\n", "");
    let (_worker, url) = machine.worker("w", "127.0.0.1:0");
    let mut on = String::new();
    let args = run_on(&url, &machine, &mut on);
    let run = here.avow(&args).with_code(8);
    assert!(run.stderr.contains("the stage `make` finds no place"), "{}", run.stderr);
    let told = format!("the worker `{url}`: the package `upper` is 1.1 there, and 1.0 is demanded");
    assert!(run.stderr.contains(&told), "{}", run.stderr);
    assert!(run.stderr.contains("pip install --force-reinstall upper==1.0"), "{}", run.stderr);
    assert!(here.history().attempts().next().is_none(), "nothing was started");

    // The same version with other bytes is another package; one that is not there at all is told so.
    theirs.install("upper", "1.0", "VALUE = 12\n", "");
    let run = here.avow(&args).with_code(8);
    assert!(
        run.stderr.contains("the package `upper` is 1.0 (") && run.stderr.contains("and 1.0 ("),
        "{}",
        run.stderr
    );
    fs::remove_dir_all(theirs.site.join("upper-1.0.dist-info")).unwrap();
    fs::remove_file(theirs.site.join("upper.py")).unwrap();
    let run = here.avow(&args).with_code(8);
    assert!(run.stderr.contains("there is no package `upper` there"), "{}", run.stderr);

    // With another place the attempt goes there, and the result is what it would have been.
    theirs.install("upper", "1.1", "VALUE = 11\n", "");
    let run = here.avow(&[&args[..], &["--on", "local"]].concat()).with_code(0);
    assert!(run.stderr.contains("the package `upper` is 1.1 there"), "{}", run.stderr);
    assert!(run.stderr.contains("it gets no attempts of make"), "{}", run.stderr);
    here.avow(&["get", "make.out", "-o", "out.txt"]).expect_code(0);
    assert_eq!(here.read("out.txt"), "1");
}

#[test]
fn equal_packages_elsewhere_are_equal() {
    let (here, ours, machine, theirs) = environments();
    for venv in [&ours, &theirs] {
        let requires = "Requires-Dist: lower>=1\n";
        venv.install("lower", "1.0", "VALUE = 7\n", "");
        venv.install("upper", "1.0", "from lower import VALUE\n", requires);
    }
    theirs.install("unused", "1.0", "VALUE = 1\n", "");
    let (_worker, url) = machine.worker("w", "127.0.0.1:0");
    let mut on = String::new();
    here.avow(&run_on(&url, &machine, &mut on)).expect_code(0);
    here.avow(&["get", "make.out", "-o", "out.txt"]).expect_code(0);
    assert_eq!(here.read("out.txt"), "7");
    // Also one that is only required by another, and one that no installer knows.
    theirs.install("lower", "1.1", "VALUE = 8\n", "");
    here.file("main.py", format!("# anew\n{IMPORTER}"));
    let run = here.avow(&run_on(&url, &machine, &mut on)).with_code(8);
    assert!(run.stderr.contains("the package `lower` is 1.1 there"), "{}", run.stderr);
    for (venv, value) in [(&ours, 1), (&theirs, 2)] {
        fs::write(venv.site.join("loose.py"), format!("VALUE = {value}\n")).unwrap();
    }
    here.file("main.py", IMPORTER.replace("upper", "loose"));
    let run = here.avow(&run_on(&url, &machine, &mut on)).with_code(8);
    assert!(run.stderr.contains("the module `loose` is"), "{}", run.stderr);
}

#[test]
fn a_package_that_changes_in_mid_run_ends_it_and_nothing_wrong_is_made() {
    let (here, ours, machine, theirs) = environments();
    let go = here.root().with_file_name("go");
    here.file(
        "spec.yaml",
        "avow: 1\nexperiment: fit\nstages:\n  first:\n    run: sh wait.sh ${outputs.out}\n    outputs: {out: a.txt}\n  \
         second:\n    run: python3 main.py ${outputs.out} ${inputs.a}\n    inputs: {a: first.out}\n    outputs: {out: b.txt}\n",
    );
    here.file(
        "wait.sh",
        format!("echo began\nwhile ! [ -e {} ]; do sleep 0.02; done\necho 1 > $1\n", go.display()),
    );
    for venv in [&ours, &theirs] {
        venv.install("upper", "1.0", "VALUE = 1\n", "");
    }
    let (_worker, url) = machine.worker("w", "127.0.0.1:0");
    let mut on = String::new();
    let args = run_on(&url, &machine, &mut on);
    let mut running = here.start(&args);
    running.wait_until(|sandbox| {
        let logs = sandbox.list(".avow/work");
        logs.iter().any(|log| {
            fs::read_to_string(sandbox.path(&format!(".avow/work/{log}/stdout")))
                .is_ok_and(|t| t == "began\n")
        })
    });
    theirs.install("upper", "1.1", "VALUE = 2\n", "");
    // What was looked at a moment ago is believed for a moment.
    std::thread::sleep(std::time::Duration::from_millis(1_500));
    fs::write(&go, "").unwrap();
    let run = running.wait().with_code(8);
    assert!(run.stderr.contains("the package `upper` is 1.1 there, and 1.0 is demanded"), "{}", run.stderr);
    assert_eq!(here.history().successes().keys().filter(|name| name.contains("second")).count(), 0);
    theirs.install("upper", "1.0", "VALUE = 1\n", "");
    let run = here.avow(&args).with_code(0);
    assert!(!run.stderr.contains("no place"), "{}", run.stderr);
    assert_eq!(here.history().latest().started(), ["second"], "what was finished is reused");
}

const MAIN: &str = "\
#include <stdio.h>
int level(void);
int main(int count, char **words) {
    FILE *out = fopen(words[1], \"w\");
    fprintf(out, \"%d\\n\", level());
    return fclose(out);
}
";

fn compile(sandbox: &Sandbox, words: &[&str]) {
    let done = sandbox.command("cc").args(words).output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
}

/// A library `liblevel.so` in a folder `lib`.
fn library(sandbox: &Sandbox, prefix: &Path, level: u32) {
    fs::create_dir_all(prefix.join("lib")).unwrap();
    sandbox.file("level.c", format!("int level(void) {{ return {level}; }}\n"));
    let library = prefix.join("lib/liblevel.so");
    compile(sandbox, &["-shared", "-fPIC", "-o", library.to_str().unwrap(), "level.c"]);
}

#[test]
fn another_shared_library_is_refused_though_the_program_is_the_same() {
    let (here, there) = (project("tool ${outputs.out}"), sandbox());
    let prefix = |sandbox: &Sandbox| sandbox.root().with_file_name("prefix");
    let path = |sandbox: &Sandbox| {
        format!("{}:{}", prefix(sandbox).join("bin").display(), std::env::var("PATH").unwrap())
    };
    library(&here, &prefix(&here), 1);
    library(&there, &prefix(&there), 2);
    here.file("main.c", MAIN);
    let (lib, tool) = (prefix(&here).join("lib"), prefix(&here).join("bin/tool"));
    fs::create_dir_all(tool.parent().unwrap()).unwrap();
    let search = format!("-L{}", lib.display());
    compile(
        &here,
        &["-o", tool.to_str().unwrap(), "main.c", &search, "-llevel", "-Wl,-rpath,$ORIGIN/../lib"],
    );
    fs::create_dir_all(prefix(&there).join("bin")).unwrap();
    fs::copy(&tool, prefix(&there).join("bin/tool")).unwrap();
    let (ours, theirs) = (path(&here), path(&there));
    let (here, machine) = (here.env("PATH", &ours), Machine::of(there.env("PATH", &theirs)));
    let (_worker, url) = machine.worker("w", "127.0.0.1:0");
    let mut on = String::new();
    let args = run_on(&url, &machine, &mut on);
    let run = here.avow(&args).with_code(8);
    assert!(run.stderr.contains("the library `liblevel.so` is "), "{}", run.stderr);
    assert!(run.stderr.contains("the system's libraries"), "{}", run.stderr);
    assert!(here.history().attempts().next().is_none());
    fs::copy(lib.join("liblevel.so"), prefix(&machine.sandbox).join("lib/liblevel.so")).unwrap();
    here.avow(&args).expect_code(0);
    here.avow(&["get", "make.out", "-o", "out.txt"]).expect_code(0);
    assert_eq!(here.read("out.txt"), "1\n");
}

#[test]
fn libraries_of_the_projects_own_programs_travel_or_are_looked_for_where_these_look() {
    let here = project("./bin/tool ${outputs.out}");
    let machine = Machine::of(sandbox());
    let elsewhere = here.root().with_file_name("elsewhere");
    library(&here, &elsewhere, 3);
    here.file("main.c", MAIN).file("bin/.keep", "");
    let lib = elsewhere.join("lib");
    fs::copy(lib.join("liblevel.so"), here.path("bin/liblevel.so")).unwrap();
    compile(&here, &["-o", "bin/tool", "main.c", "-Lbin", "-llevel", "-Wl,-rpath,$ORIGIN"]);
    let allow = elsewhere.to_str().unwrap();
    let (_worker, url) = machine.worker_with("w", "127.0.0.1:0", &["-j", "2", "--allow", allow]);
    let mut on = String::new();
    here.avow(&run_on(&url, &machine, &mut on)).expect_code(0);
    // The program itself is of the project, its library is not: it lies where the program says.
    fs::remove_file(here.path("bin/liblevel.so")).unwrap();
    let (search, run) = (format!("-L{}", lib.display()), format!("-Wl,-rpath,{}", lib.display()));
    compile(&here, &["-o", "bin/tool", "main.c", &search, "-llevel", &run]);
    here.avow(&run_on(&url, &machine, &mut on)).expect_code(0);
    assert_eq!(here.history().latest().started(), ["make"]);
}
