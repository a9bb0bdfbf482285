//! What a stage's programs are made of is found without anybody listing it: a change of it makes the stage run
//! again, and a change beside it does not.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use avow_testkit::{Sandbox, Venv};

/// A project with one stage that runs `command` and writes `out.txt`.
fn project(command: &str) -> Sandbox {
    let sandbox = Sandbox::new(env!("CARGO_BIN_EXE_avow"));
    let spec = format!(
        "avow: 1\nexperiment: closure\nstages:\n  make:\n    run: {command}\n    \
         outputs: {{out: out.txt}}\n"
    );
    sandbox.file("avow.toml", "").file("spec.yaml", spec);
    sandbox
}

#[track_caller]
fn runs_again(sandbox: &Sandbox) {
    assert_eq!(sandbox.executes(&["run"]), ["make"]);
}

#[track_caller]
fn is_reused(sandbox: &Sandbox) {
    assert_eq!(sandbox.executes(&["run"]), [""; 0]);
}

#[track_caller]
fn explains(sandbox: &Sandbox, expected: &str) {
    let explained = sandbox.avow(&["explain", "make"]).with_code(0);
    assert!(explained.stdout.contains(expected), "no `{expected}` in: {}", explained.stdout);
}

fn executable(path: &Path) {
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("the file is there");
}

#[test]
fn code_that_is_a_link_out_of_the_project_is_refused_before_it_is_read() {
    let sandbox = project("sh make.sh ${outputs.out}");
    let outside = sandbox.root().with_file_name("outside.sh");
    fs::write(&outside, "echo secret > \"$1\"\n").expect("it is written");
    std::os::unix::fs::symlink(&outside, sandbox.path("make.sh")).expect("it is linked");
    for command in ["check", "plan", "run"] {
        let said = sandbox.avow(&[command]).with_code(3);
        assert!(said.stderr.contains("`make.sh` is a link that leads out of the project"), "{}", said.stderr);
    }
    // A link that stays inside is code like any other.
    sandbox.remove("make.sh").file("lib/real.sh", "echo made > \"$1\"\n");
    std::os::unix::fs::symlink("lib/real.sh", sandbox.path("make.sh")).expect("it is linked");
    sandbox.avow(&["check"]).expect_code(0);
    runs_again(&sandbox);
    sandbox.file("lib/real.sh", "echo other > \"$1\"\n");
    runs_again(&sandbox);
}

// --- Python ------------------------------------------------------------------------------------------------

#[test]
fn modules_are_found_however_they_are_imported() {
    let sandbox = project("python3 jobs/main.py ${outputs.out}");
    let main = "\
import importlib, os, sys
sys.path.insert(0, os.path.join(os.path.dirname(__file__), '..', 'src'))
import beside
import whole.part
from space.inner import VALUE
late = importlib.import_module('late')
open(sys.argv[1], 'w').write(f'{beside.VALUE} {whole.VALUE} {whole.part.VALUE} {VALUE} {late.VALUE}')
";
    sandbox.file("jobs/main.py", main).file("jobs/beside.py", "VALUE = 1\n");
    sandbox
        .file("jobs/whole/__init__.py", "from .own import VALUE\n")
        .file("jobs/whole/own.py", "VALUE = 1\n");
    sandbox
        .file("jobs/whole/part.py", "from .. import whole\nVALUE = 1\n")
        .file("jobs/whole/other.py", "VALUE = 1\n");
    sandbox.file("src/space/inner.py", "VALUE = 1\n").file("src/late.py", "VALUE = 1\n");
    sandbox.replace("jobs/whole/part.py", "from .. import whole\n", "from . import own\n");
    runs_again(&sandbox);
    is_reused(&sandbox);
    for part in
        ["jobs/beside.py", "jobs/whole/own.py", "jobs/whole/part.py", "src/space/inner.py", "src/late.py"]
    {
        sandbox.replace(part, "VALUE = 1", "VALUE = 2");
        explains(&sandbox, &format!("code `{part}` changed"));
        runs_again(&sandbox);
    }
    sandbox.replace("jobs/whole/__init__.py", "VALUE", "VALUE  # again");
    runs_again(&sandbox);
    sandbox.replace("jobs/whole/other.py", "VALUE = 1", "VALUE = 2");
    is_reused(&sandbox);
}

#[test]
fn a_module_of_the_standard_library_can_be_started() {
    let sandbox = project("python3 -m json.tool --compact ${inputs.data} ${outputs.out}");
    sandbox.replace("spec.yaml", "    outputs:", "    inputs: {data: data.json}\n    outputs:");
    sandbox.file("data.json", "{\"a\": 1}\n");
    runs_again(&sandbox);
    sandbox.replace("spec.yaml", "json.tool", "no_such_module_anywhere");
    let run = sandbox.avow(&["run"]).with_code(3);
    assert!(run.stderr.contains("neither a module of the project nor installed"), "{}", run.stderr);
}

/// Packages that a person installed for themselves are found like all others.
#[test]
fn a_package_in_the_home_runs_again_when_it_is_upgraded() {
    let sandbox = project("python3 main.py ${outputs.out}");
    sandbox.file("main.py", IMPORTER);
    let home = sandbox.root().with_file_name("own-home");
    let mut asked = Command::new("python3");
    asked.args(["-c", "import site; print(site.getusersitepackages())"]).env("HOME", &home);
    let asked = asked.output().expect("python3 starts");
    let site = PathBuf::from(String::from_utf8(asked.stdout).expect("it is a path").trim());
    fs::create_dir_all(&site).expect("it is ours");
    let sandbox = sandbox.env("HOME", home.to_str().expect("our names are UTF-8"));
    fs::write(site.join("upper.py"), "VALUE = 1\n").expect("it is ours");
    runs_again(&sandbox);
    is_reused(&sandbox);
    fs::write(site.join("upper.py"), "VALUE = 2\n").expect("it is ours");
    runs_again(&sandbox);
    is_reused(&sandbox);
}

const IMPORTER: &str = "import sys, upper\nopen(sys.argv[1], 'w').write(str(upper.VALUE))\n";

#[test]
fn an_upgraded_package_runs_again_also_one_that_another_requires() {
    let sandbox = project("python3 main.py ${outputs.out}");
    sandbox.file("main.py", IMPORTER);
    let venv = Venv::new(&sandbox, "venv");
    let sandbox = sandbox.env("PATH", &venv.path);
    let requires = "Requires-Dist: lower>=1\nRequires-Dist: absent; extra == \"never\"\n";
    venv.install("lower", "1.0", "VALUE = 1\n", "");
    venv.install("upper", "1.0", "from lower import VALUE\n", requires);
    venv.install("unused", "1.0", "VALUE = 1\n", "");
    runs_again(&sandbox);
    is_reused(&sandbox);

    venv.install("upper", "1.1", "from lower import VALUE\n", requires);
    explains(&sandbox, "package `upper` changed: 1.0 → 1.1");
    runs_again(&sandbox);
    venv.install("lower", "2.0", "VALUE = 2\n", "");
    explains(&sandbox, "package `lower` changed: 1.0 → 2.0");
    runs_again(&sandbox);
    // The same version built anew is another package.
    venv.install("lower", "2.0", "VALUE = 3\n", "");
    runs_again(&sandbox);
    venv.install("unused", "2.0", "VALUE = 2\n", "");
    is_reused(&sandbox);
    // Back to what was there before: it is known.
    venv.install("lower", "1.0", "VALUE = 1\n", "");
    is_reused(&sandbox);
}

#[test]
fn where_an_environment_lies_changes_nothing() {
    let sandbox = project("python3 main.py ${outputs.out}");
    sandbox.file("main.py", IMPORTER);
    let (one, other) = (Venv::new(&sandbox, "one"), Venv::new(&sandbox, "other"));
    for venv in [&one, &other] {
        venv.install("upper", "1.0", "VALUE = 1\n", "");
    }
    let sandbox = sandbox.env("PATH", &one.path);
    runs_again(&sandbox);
    let sandbox = sandbox.env("PATH", &other.path);
    is_reused(&sandbox);
}

#[test]
fn a_module_that_nobody_installed_is_its_bytes() {
    let sandbox = project("python3 main.py ${outputs.out}");
    sandbox.file("main.py", IMPORTER);
    let venv = Venv::new(&sandbox, "venv");
    let sandbox = sandbox.env("PATH", &venv.path);
    fs::create_dir(venv.site.join("upper")).expect("it is ours");
    let file = venv.site.join("upper/__init__.py");
    fs::write(&file, "VALUE = 1\n").expect("it is ours");
    runs_again(&sandbox);
    is_reused(&sandbox);
    fs::write(&file, "VALUE = 2\n").expect("it is ours");
    explains(&sandbox, "module `upper` changed");
    runs_again(&sandbox);
}

#[test]
fn the_users_own_packages_are_seen() {
    let sandbox = project("python3 main.py ${outputs.out}");
    sandbox.file("main.py", IMPORTER);
    let asked = sandbox
        .command("python3")
        .args(["-c", "import site, sys; sys.stdout.write(site.getusersitepackages())"])
        .output()
        .expect("python3 answers");
    let site = PathBuf::from(String::from_utf8(asked.stdout).expect("a path in UTF-8"));
    fs::create_dir_all(&site).expect("the home is ours");
    fs::write(site.join("upper.py"), "VALUE = 1\n").expect("the home is ours");
    runs_again(&sandbox);
    fs::write(site.join("upper.py"), "VALUE = 2\n").expect("the home is ours");
    runs_again(&sandbox);
    is_reused(&sandbox);
}

#[test]
fn another_interpreter_runs_again() {
    let sandbox = project("python3 main.py ${outputs.out}");
    sandbox.file("main.py", "import sys\nopen(sys.argv[1], 'w').write('1')\n");
    runs_again(&sandbox);
    // A launcher that ends in another interpreter, here a copy with other bytes.
    let question = "import os, sys; print(os.path.realpath(sys.executable))";
    let real = Command::new("python3").args(["-c", question]).output().expect("python3 answers").stdout;
    let real = PathBuf::from(String::from_utf8(real).expect("a path in UTF-8").trim());
    let other = sandbox.root().with_file_name("other");
    let bin = other.join("bin");
    fs::create_dir_all(&bin).expect("it is ours");
    let mut bytes = fs::read(&real).expect("it is readable");
    bytes.extend_from_slice(b"another build");
    fs::write(bin.join("python3"), bytes).expect("it is ours");
    executable(&bin.join("python3"));
    let home = real.parent().and_then(Path::parent).expect("it lies in PREFIX/bin");
    let base = format!("home = {}\n", home.join("bin").display());
    fs::write(other.join("pyvenv.cfg"), base).expect("it is ours");
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap_or_default());
    let sandbox = sandbox.env("PATH", &path);
    explains(&sandbox, "program `python3` changed");
    runs_again(&sandbox);
    is_reused(&sandbox);
}

// --- Compiled programs ---------------------------------------------------------------------------------------

fn compile(sandbox: &Sandbox, words: &[&str]) {
    let done = sandbox.command("cc").args(words).output().expect("there is a C compiler");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
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

#[test]
fn a_library_of_the_project_is_part_of_a_compiled_program() {
    let sandbox = project("./bin/tool ${outputs.out}");
    sandbox.file("main.c", MAIN).file("bin/.keep", "");
    let build = |level: &str| {
        sandbox.file("level.c", format!("int level(void) {{ return {level}; }}\n"));
        compile(&sandbox, &["-shared", "-fPIC", "-o", "bin/liblevel.so", "level.c"]);
    };
    build("1");
    compile(&sandbox, &["-o", "bin/tool", "main.c", "-Lbin", "-llevel", "-Wl,-rpath,$ORIGIN"]);
    runs_again(&sandbox);
    is_reused(&sandbox);
    build("2");
    explains(&sandbox, "code `bin/liblevel.so` changed");
    runs_again(&sandbox);
    sandbox.avow(&["get", "make.out", "-o", "copy.txt"]).expect_code(0);
    assert_eq!(sandbox.read("copy.txt"), "2\n");
}

#[test]
fn a_library_elsewhere_is_part_of_what_a_program_loads() {
    let sandbox = project("./tool ${outputs.out}");
    let elsewhere = sandbox.root().with_file_name("elsewhere");
    fs::create_dir(&elsewhere).expect("it is ours");
    let library = elsewhere.join("liblevel.so").display().to_string();
    sandbox.file("main.c", MAIN);
    let build = |level: &str| {
        sandbox.file("level.c", format!("int level(void) {{ return {level}; }}\n"));
        compile(&sandbox, &["-shared", "-fPIC", "-o", &library, "level.c"]);
    };
    build("1");
    let (search, run) = (format!("-L{}", elsewhere.display()), format!("-Wl,-rpath,{}", elsewhere.display()));
    compile(&sandbox, &["-o", "tool", "main.c", &search, "-llevel", &run]);
    runs_again(&sandbox);
    is_reused(&sandbox);
    build("2");
    explains(&sandbox, "library `liblevel.so` changed");
    runs_again(&sandbox);
    is_reused(&sandbox);
}

// --- Shell -----------------------------------------------------------------------------------------------------

#[test]
fn scripts_that_a_script_calls_are_code() {
    let sandbox = project("sh steps/all.sh ${outputs.out}");
    sandbox.file("steps/all.sh", "set -e\n. steps/common.sh\nsh \"$(dirname \"$0\")/last.sh\" \"$1\"\n");
    sandbox.file("steps/common.sh", "export LEVEL=1\n");
    sandbox.file("steps/last.sh", "python3 steps/write.py \"$1\"\n");
    sandbox.file("steps/write.py", "import os, sys\nopen(sys.argv[1], 'w').write(os.environ['LEVEL'])\n");
    sandbox.file("steps/other.sh", "echo nothing\n");
    runs_again(&sandbox);
    is_reused(&sandbox);
    sandbox.replace("steps/common.sh", "1", "2");
    runs_again(&sandbox);
    sandbox.replace("steps/last.sh", "python3", "# why\npython3");
    runs_again(&sandbox);
    sandbox.replace("steps/write.py", "LEVEL'])", "LEVEL'] + '!')");
    runs_again(&sandbox);
    sandbox.replace("steps/other.sh", "nothing", "something");
    is_reused(&sandbox);
}

#[test]
fn another_shell_runs_again() {
    let sandbox = project("echo 1 > ${outputs.out}");
    runs_again(&sandbox);
    is_reused(&sandbox);
    let bin = sandbox.root().with_file_name("bin");
    fs::create_dir(&bin).expect("it is ours");
    let mut shell = fs::read("/bin/sh").expect("it is readable");
    shell.extend_from_slice(b"another build");
    fs::write(bin.join("sh"), shell).expect("it is ours");
    executable(&bin.join("sh"));
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap_or_default());
    let sandbox = sandbox.env("PATH", &path);
    explains(&sandbox, "program `sh` changed");
    runs_again(&sandbox);
    is_reused(&sandbox);
}

// --- What was present --------------------------------------------------------------------------------------------

#[test]
fn what_was_present_is_recorded_once_and_compared() {
    let sandbox = project("python3 main.py ${outputs.out}");
    sandbox.file("main.py", IMPORTER);
    let venv = Venv::new(&sandbox, "venv");
    let sandbox = sandbox.env("PATH", &venv.path);
    venv.install("upper", "1.0", "VALUE = 1\n", "");
    venv.install("unused", "1.0", "VALUE = 1\n", "");
    runs_again(&sandbox);
    let attempt = sandbox.history().latest().attempt("make").clone();
    let first = attempt.environment.expect("the environment is recorded");
    assert!(sandbox.blob(first).exists());
    // A package that the program does not use changes no identity, but it is told.
    venv.install("unused", "2.0", "VALUE = 2\n", "");
    is_reused(&sandbox);
    explains(&sandbox, "made with unused 1.0, now 2.0");
    // The same environment is the same record.
    venv.install("unused", "1.0", "VALUE = 1\n", "");
    sandbox.replace("main.py", "import sys", "import os, sys");
    runs_again(&sandbox);
    assert_eq!(sandbox.history().latest().attempt("make").environment, Some(first));
}

// --- Lock files ----------------------------------------------------------------------------------------------------

/// A stage with `upper` 1.0 installed, and a lock file that wants `wanted`.
fn locked(environment: &str, wanted: &str) -> (Sandbox, Venv) {
    let sandbox = project("python3 main.py ${outputs.out}");
    sandbox.file("main.py", IMPORTER).file("requirements.txt", format!("upper=={wanted}\n"));
    sandbox.replace("spec.yaml", "    outputs:", &format!("{environment}    outputs:"));
    let venv = Venv::new(&sandbox, "venv");
    let sandbox = sandbox.env("PATH", &venv.path);
    venv.install("upper", "1.0", "VALUE = 1\n", "");
    (sandbox, venv)
}

#[test]
fn a_stage_does_not_run_in_an_environment_that_is_not_its_lock() {
    let (sandbox, venv) = locked("    environment: {pip: requirements.txt}\n", "1.2");
    let run = sandbox.avow(&["run"]).with_code(3);
    for part in ["it wants upper 1.2, and `python3` has 1.0", "python3 -m pip install -r requirements.txt"] {
        assert!(run.stderr.contains(part), "no `{part}` in: {}", run.stderr);
    }
    assert_eq!(sandbox.history().runs.len(), 0);
    venv.install("upper", "1.2", "VALUE = 2\n", "");
    runs_again(&sandbox);
    // A package of the lock that is not installed at all.
    sandbox.file("requirements.txt", "upper==1.2\nabsent==3.0\n");
    let run = sandbox.avow(&["run"]).with_code(3);
    assert!(run.stderr.contains("it wants absent 3.0, and `python3` has none"), "{}", run.stderr);
    // Results are read all the same.
    sandbox.file("requirements.txt", "upper==1.2\n");
    venv.install("upper", "1.3", "VALUE = 2\n", "");
    sandbox.avow(&["run"]).expect_code(3);
    sandbox.avow(&["lineage", "make.out"]).expect_code(0);
    sandbox.avow(&["get", "make.out", "-o", "copy.txt"]).expect_code(0);
}

#[test]
fn a_lock_beside_the_spec_that_is_not_installed_is_told_and_recorded() {
    let (sandbox, venv) = locked("", "1.2");
    let run = sandbox.avow(&["run"]).with_code(0);
    assert!(run.stderr.contains("it wants upper 1.2, and `python3` has 1.0"), "{}", run.stderr);
    sandbox.replace("requirements.txt", "1.2", "1.0");
    explains(&sandbox, "upper 1.0 where requirements.txt wants 1.2");
    venv.install("upper", "1.0.0", "VALUE = 1\n", "");
    let run = sandbox.avow(&["run"]).with_code(0);
    assert!(!run.stderr.contains("it wants"), "{}", run.stderr);
}
