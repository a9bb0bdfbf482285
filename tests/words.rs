//! What the program says, to people and to programs: help, usage errors, spec errors, hints, JSON, exit codes.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Stdio;

use avow_testkit::{Run, Sandbox};

const SPEC: &str = "\
avow: 1
experiment: words
axes: {dose: [0, 1], seed: [1, 2, 3, 4, 5, 6, 7, 8]}
stages:
  measure:
    run: [sh, measure.sh, '${axes.dose}', '${axes.seed}', '${outputs.result}']
    measurements: {result: result.json}
claims:
  helps:
    says: The dose raises the yield.
    select: measure.yield
    compare: {dose: [1, 0]}
    rule: {kind: difference, above: 0}
";

const COMMANDS: [&str; 22] = [
    "init",
    "check",
    "plan",
    "register",
    "amend",
    "diff",
    "ledger",
    "run",
    "status",
    "log",
    "explain",
    "table",
    "get",
    "verdict",
    "invalidate",
    "retract",
    "lineage",
    "store",
    "doctor",
    "schema",
    "op",
    "completions",
];

fn empty() -> Sandbox {
    Sandbox::new(env!("CARGO_BIN_EXE_avow"))
}

fn project() -> Sandbox {
    let sandbox = empty();
    sandbox.file("avow.toml", "").file("spec.yaml", SPEC);
    sandbox.file("measure.sh", "printf '{\"yield\": %d.%d}\\n' \"$(($1 + $2))\" \"$(($1 * $2))\" > \"$3\"\n");
    sandbox
}

/// Neither a panic nor a fault of our own.
#[track_caller]
fn sane(run: &Run, args: &[&str]) {
    assert!(run.code != 70 && run.code != 101 && run.code < 128, "{args:?}: {run:?}");
    assert!(!run.stderr.contains("panicked"), "{args:?}: {}", run.stderr);
}

#[test]
fn every_command_has_help() {
    let sandbox = empty();
    let all = sandbox.avow(&["--help"]).with_code(0);
    assert!(all.stderr.is_empty(), "{}", all.stderr);
    for command in COMMANDS {
        assert!(all.stdout.contains(&format!("\n  {command} ")), "{command} is listed: {}", all.stdout);
        let help = sandbox.avow(&[command, "--help"]).with_code(0);
        assert!(help.stdout.contains("Usage: avow"), "{}", help.stdout);
    }
    for part in ["check", "rebuild"] {
        sandbox.avow(&["store", part, "--help"]).expect_code(0);
    }
    assert!(sandbox.avow(&["--version"]).with_code(0).stdout.starts_with("avow "));
    assert_eq!(sandbox.list("."), [""; 0], "help leaves no trace");
}

#[test]
fn a_wrong_command_line_is_a_usage_error() {
    let sandbox = project();
    for args in [
        &[][..],
        &["rum"],
        &["run", "--fast"],
        &["run", "-j", "many"],
        &["run", "spec.yaml", "other.yaml"],
        &["table", "--format", "pdf"],
        &["log"],
        &["store"],
        &["completions", "klingon"],
        &["run", "missing.yaml"],
        &["op", "no/such"],
    ] {
        let run = sandbox.avow(args).with_code(2);
        assert!(run.stdout.is_empty() && !run.stderr.is_empty(), "{args:?} talks to people: {run:?}");
    }
    // A slip of the finger gets the nearest word.
    assert!(sandbox.avow(&["rum"]).stderr.contains("run"));
}

#[test]
fn a_bad_spec_is_shown_with_its_lines_and_hints() {
    let sandbox = project();
    let spec = SPEC.replace("claims:", "clams:").replace("axes.seed", "axes.sed");
    sandbox.file("spec.yaml", spec);
    for command in ["check", "run", "plan", "register", "verdict"] {
        let run = sandbox.avow(&[command]).with_code(3);
        let lines: Vec<&str> = run.stderr.lines().collect();
        // Both problems, in one go, each with place, line, underline and hint.
        let sed = lines.iter().position(|line| line.starts_with("error") && line.contains("`sed`")).unwrap();
        assert_eq!(lines[sed + 1].trim_start(), "--> spec.yaml:6:44", "{}", run.stderr);
        assert!(lines[sed + 3].contains("run: [sh, measure.sh"), "{}", run.stderr);
        assert!(lines[sed + 4].contains("^^^"), "{}", run.stderr);
        assert!(
            lines[sed..].iter().any(|line| line.contains("hint: ") && line.contains("seed")),
            "{}",
            run.stderr
        );
        let clams =
            lines.iter().position(|line| line.starts_with("error") && line.contains("`clams`")).unwrap();
        assert!(
            lines[clams..].iter().any(|line| line.contains("hint: ") && line.contains("claims")),
            "{}",
            run.stderr
        );
        assert!(run.stdout.is_empty(), "{command}: words go to standard error: {}", run.stdout);
        assert!(!run.stderr.contains("panicked"));
    }
    assert!(!sandbox.has(".avow/blobs/") || sandbox.list(".avow/blobs").is_empty(), "nothing was stored");

    let json = sandbox.avow(&["check", "--json"]).with_code(3).json();
    let problems = json.as_array().unwrap();
    assert!(problems.len() >= 2);
    for problem in problems {
        assert!(problem.to_string().contains("spec.yaml"), "{problem}");
    }
}

#[test]
fn errors_have_one_layout() {
    let sandbox = project();
    sandbox.avow(&["run"]).expect_code(0);
    for args in [
        &["run", "missing.yaml"][..],
        &["log", "mesure"],
        &["explain", "mesure"],
        &["get", "mesure.result"],
        &["lineage", "mesure.result"],
        &["verdict", "--explain", "help"],
        &["table", "--select", "yeld"],
        &["run", "--only", "mesure"],
        &["op", "mlp/tain"],
        &["init"],
    ] {
        if args == ["init"] {
            sandbox.file("experiment.yaml", "");
        }
        let run = sandbox.avow(args).with_code(2);
        let lines: Vec<&str> = run.stderr.lines().collect();
        assert!(lines[0].starts_with("error: "), "{args:?}: {}", run.stderr);
        assert!(!lines[0].ends_with('.'), "no full stop: {}", lines[0]);
        let hint = lines.iter().position(|line| line.starts_with("hint: "));
        assert!(hint.is_some_and(|at| at > 0), "{args:?} says what to do: {}", run.stderr);
        assert!(
            lines[1..hint.unwrap()].iter().all(|line| line.starts_with("  caused by: ")),
            "{}",
            run.stderr
        );
    }
    sandbox.remove("experiment.yaml");
    // Names that exist are offered.
    for (args, offered) in [
        (&["explain", "mesure"][..], "measure"),
        (&["verdict", "--explain", "help"], "helps"),
        (&["table", "--select", "yeld"], "yield"),
        (&["run", "--only", "mesure"], "measure"),
    ] {
        let run = sandbox.avow(args);
        assert!(run.stderr.contains(offered), "{args:?}: {}", run.stderr);
    }
}

#[test]
fn every_command_works_before_the_first_run() {
    for sandbox in [project(), empty()] {
        for args in [
            &["check"][..],
            &["check", "--full"],
            &["check", "--json"],
            &["plan"],
            &["plan", "--json"],
            &["run", "-n"],
            &["status"],
            &["status", "--json"],
            &["log", "measure"],
            &["log", "measure", "--json"],
            &["explain", "measure"],
            &["explain", "measure", "--json"],
            &["table"],
            &["table", "--json"],
            &["table", "--format", "csv"],
            &["get", "measure.result"],
            &["verdict"],
            &["verdict", "--json"],
            &["verdict", "--check"],
            &["verdict", "--explain", "helps"],
            &["lineage", "helps"],
            &["lineage", "measure.sh", "--json"],
            &["store", "check"],
            &["store", "rebuild"],
            &["doctor"],
            &["schema"],
            &["op"],
        ] {
            sane(&sandbox.avow(args), args);
        }
        assert!(!sandbox.has(".avow"), "commands that read make no store: {:?}", sandbox.list("."));
    }
    let sandbox = project();
    assert!(sandbox.avow(&["status"]).with_code(0).stdout.contains("nothing has been run"));
    sandbox.avow(&["verdict", "--check"]).expect_code(5);
    sandbox.avow(&["store", "check"]).expect_code(2);
    // A registration is possible as the first thing.
    sandbox.avow(&["register"]).expect_code(0);
}

#[test]
fn json_is_json_and_nothing_else() {
    let sandbox = project();
    sandbox.avow(&["run", "--json"]).with_code(0).json();
    let commands: [&[&str]; 14] = [
        &["check", "--json"],
        &["plan", "--json"],
        &["run", "-n", "--json"],
        &["run", "--json"],
        &["status", "--json"],
        &["log", "measure", "--json"],
        &["explain", "measure", "--json"],
        &["get", "measure.result[dose=1,seed=2]", "-o", "copy.json", "--json"],
        &["verdict", "--json"],
        &["verdict", "--explain", "helps", "--json"],
        &["lineage", "helps", "--json"],
        &["store", "check", "--json"],
        &["doctor", "--json"],
        &["op", "--json"],
    ];
    for args in commands {
        let value = sandbox.avow(args).with_code(0).json();
        assert!(value.is_object() || value.is_array(), "{args:?}");
    }
    sandbox.avow(&["store", "rebuild", "--json"]).with_code(0).json();
    sandbox.avow(&["op", "representation/similarity", "--json"]).with_code(0).json();
    sandbox.avow(&["schema"]).with_code(0).json();
    assert_eq!(sandbox.read("copy.json"), "{\"yield\": 3.2}\n");
    // JSON Lines: one object a line; CSV: a header.
    let table = sandbox.avow(&["table", "--json"]).with_code(0);
    let rows: Vec<serde_json::Value> =
        table.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(rows.len(), 16);
    assert_eq!(rows[0]["name"], "yield");
    let csv = sandbox.avow(&["table", "--format", "csv"]).with_code(0);
    assert_eq!(csv.stdout.lines().count(), 17);
    sandbox.replace("spec.yaml", "experiment: words", "experiment: other");
    sandbox.avow(&["register", "--json"]).with_code(0).json();
}

#[test]
fn data_goes_to_standard_output_and_talk_to_standard_error() {
    let sandbox = project();
    let run = sandbox.avow(&["run", "-v"]).with_code(0);
    assert!(run.stdout.contains("Supported") && !run.stdout.contains("executed"), "{}", run.stdout);
    assert!(run.stderr.contains("16 executed, 0 reused"), "{}", run.stderr);
    assert!(run.stderr.contains("measure[dose=1,seed=4]"), "`-v` shows what is done: {}", run.stderr);
    let logs = sandbox.list(".avow/log");
    assert!(sandbox.read(&format!(".avow/log/{}", logs[0])).contains("measure[dose=1,seed=4]"));
    let quiet = sandbox.avow(&["run", "-q"]).with_code(0);
    assert_eq!(quiet.stderr, "");
    assert!(quiet.stdout.contains("Supported"));
    let plain = sandbox.avow(&["run"]).with_code(0);
    assert!(!plain.stderr.contains("measure[dose=1,seed=4]"), "{}", plain.stderr);
    assert_eq!(sandbox.list(".avow/log").len(), 3, "a log for each run");
}

#[test]
fn colour_is_only_for_terminals_that_want_it() {
    let sandbox = project();
    sandbox.file("bad.yaml", SPEC.replace("claims:", "clams:"));
    // Without `NO_COLOR`, into a file.
    for args in [
        &["run", "spec.yaml"][..],
        &["verdict", "spec.yaml"],
        &["check", "bad.yaml"],
        &["log", "nothing", "--spec", "spec.yaml"],
    ] {
        let output = sandbox
            .command(env!("CARGO_BIN_EXE_avow"))
            .args(args)
            .env_remove("NO_COLOR")
            .env("TERM", "xterm")
            .output()
            .unwrap();
        assert!(!output.stdout.contains(&0x1b) && !output.stderr.contains(&0x1b), "{args:?}");
    }
    // On a terminal: `script` gives the program one.
    let on_terminal = |no_colour: &str| {
        let mut command = sandbox.command("script");
        let line = format!("{} check bad.yaml", env!("CARGO_BIN_EXE_avow"));
        command
            .args(["-qec", &line, "/dev/null"])
            .env("TERM", "xterm")
            .env("NO_COLOR", no_colour)
            .stdin(Stdio::null());
        command.output().ok().map(|output| output.stdout)
    };
    if let Some(coloured) = on_terminal("") {
        assert!(coloured.contains(&0x1b), "{}", String::from_utf8_lossy(&coloured));
        let plain = on_terminal("1").unwrap();
        assert!(!plain.contains(&0x1b), "{}", String::from_utf8_lossy(&plain));
    }
}

#[test]
fn a_reader_that_has_seen_enough_is_no_failure() {
    let sandbox = project();
    sandbox.replace("spec.yaml", "[1, 2, 3, 4, 5, 6, 7, 8]", "{range: [0, 3000]}");
    let avow = env!("CARGO_BIN_EXE_avow");
    for command in [
        "plan --all",
        "plan --json",
        "schema",
        "op --json",
        "explain measure --json",
        "completions bash",
        "--help",
    ] {
        // Nobody reads at all. `sh` has no pipefail everywhere: the exit code goes through a file.
        let script = format!("{{ sleep 0.1; {avow} {command}; echo $? > code; }} | true");
        let output = sandbox.command("sh").args(["-c", &script]).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!said.contains("panicked") && !said.contains("error"), "{command}: {said}");
        assert_eq!(sandbox.read("code"), "0\n", "{command}");
    }
}

#[test]
fn a_new_project_runs_to_its_verdict() {
    let sandbox = empty();
    let init = sandbox.avow(&["init", "first"]).with_code(0);
    assert!(init.stderr.contains("avow run"), "it names the next step: {}", init.stderr);
    let inside = |args: &[&str]| {
        let mut command = sandbox.command(env!("CARGO_BIN_EXE_avow"));
        let output = command.args(args).current_dir(sandbox.path("first")).output().unwrap();
        (output.status.code().unwrap(), String::from_utf8(output.stdout).unwrap())
    };
    assert_eq!(inside(&["check"]).0, 0);
    let (code, said) = inside(&["run"]);
    assert_eq!(code, 0);
    assert!(said.contains("Supported"), "{said}");
    assert_eq!(inside(&["verdict", "--check"]).0, 0);
    // What is there is never overwritten.
    sandbox.avow(&["init", "first"]).expect_code(2);
}

#[test]
fn the_completed_spec_means_the_same() {
    let sandbox = project();
    let full = sandbox.avow(&["check", "--full"]).with_code(0).stdout;
    sandbox.avow(&["run"]).expect_code(0);
    sandbox.file("spec.yaml", full);
    sandbox.avow(&["check"]).expect_code(0);
    assert_eq!(sandbox.executes(&["run"]), [""; 0]);
}

/// The table `| code | … |` of the page, where the page exists.
#[test]
fn the_page_of_exit_codes_lists_those_there_are() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let source = fs::read_to_string(root.join("src/exit.rs")).unwrap();
    let body = source.split_once("pub enum Exit {").unwrap().1.split_once("\n}").unwrap().0;
    let in_source: BTreeMap<u8, &str> = body
        .lines()
        .filter_map(|line| line.trim().strip_suffix(',')?.split_once(" = "))
        .map(|(name, code)| (code.parse().unwrap(), name))
        .collect();
    assert_eq!(in_source.len(), 13, "{in_source:?}");
    let page = fs::read_to_string(root.join("../../docs/exit-codes.md")).expect("the page exists");
    let first = |line: &str| line.strip_prefix('|')?.split('|').next()?.replace('`', "").trim().parse().ok();
    let in_page: Vec<u8> = page.lines().filter_map(first).collect();
    assert_eq!(in_page, in_source.keys().copied().collect::<Vec<u8>>());
}

#[test]
fn where_there_are_several_specs_each_command_says_how_it_takes_one() {
    let sandbox = Sandbox::new(env!("CARGO_BIN_EXE_avow"));
    sandbox
        .file("avow.toml", "")
        .file("a.yaml", SPEC)
        .file("b.yaml", SPEC.replace("experiment: words", "experiment: other"));
    for (call, hint) in [
        (&["run"][..], "avow run a.yaml"),
        (&["plan"], "avow plan a.yaml"),
        (&["verdict", "--json"], "avow verdict a.yaml"),
        (&["table"], "avow table a.yaml"),
        (&["register"], "avow register a.yaml"),
        (&["amend", "--reason", "x"], "avow amend a.yaml"),
        (&["export", "osf"], "avow export osf a.yaml"),
        (&["prml", "export"], "avow prml export a.yaml"),
        (&["bundle"], "avow bundle a.yaml"),
        (&["power"], "avow power a.yaml"),
        (&["ledger", "log"], "avow ledger log a.yaml"),
        (&["invalidate", "measure[seed=1]", "--reason", "x"], "avow invalidate … --spec a.yaml"),
        (&["retract", "helps", "--reason", "x"], "avow retract … --spec a.yaml"),
        (&["explain", "measure"], "avow explain … --spec a.yaml"),
        (&["log", "measure"], "avow log … --spec a.yaml"),
        (&["get", "measure.result"], "avow get … --spec a.yaml"),
    ] {
        let run = sandbox.avow(call).with_code(2);
        assert!(run.stderr.contains(&format!("hint: name one, e.g. `{hint}`")), "{call:?}: {}", run.stderr);
    }
}

#[test]
fn a_broken_project_file_is_told_by_every_command_that_reads_a_spec() {
    let sandbox = Sandbox::new(env!("CARGO_BIN_EXE_avow"));
    sandbox.file("a.yaml", SPEC);
    for (text, said) in [
        ("[confine\n", "does not parse"),
        ("surprise = 1\n", "does not parse"),
        ("[confine]\nlevel = \"most\"\n", "asks for a confinement that does not exist"),
    ] {
        sandbox.file("avow.toml", text);
        for call in [
            &["check"][..],
            &["plan"],
            &["run"],
            &["verdict"],
            &["table"],
            &["register"],
            &["explain", "measure"],
        ] {
            let run = sandbox.avow(call).with_code(2);
            assert!(
                run.stderr.contains(said) && run.stderr.contains("avow.toml"),
                "{call:?}: {}",
                run.stderr
            );
        }
    }
}

#[test]
fn a_member_is_asked_for_by_the_name_that_it_is_told_by_whatever_its_values_hold() {
    let sandbox = Sandbox::new(env!("CARGO_BIN_EXE_avow"));
    let terms = ["plain", "a=b", "a,b", "x]y", "[z", "q\"r", "back\\slash", "a b", "é,ü=1]"];
    let listed: Vec<String> =
        terms.iter().map(|term| serde_json::to_string(term).unwrap_or_default()).collect();
    let spec = format!(
        "avow: 1\nexperiment: odd\naxes: {{term: [{}], seed: [1, 2]}}\nstages:\n  say:\n    run: [sh, say.sh, '${{axes.term}}', '${{axes.seed}}', '${{outputs.result}}']\n    measurements: {{result: result.json}}\n",
        listed.join(", ")
    );
    sandbox.file("avow.toml", "").file("spec.yaml", spec);
    sandbox.file("say.sh", "echo \"said $1\"; echo '{\"length\": '${#1}'}' > \"$3\"\n");
    sandbox.avow(&["run", "-q"]).expect_code(0);
    let explained = sandbox.avow(&["explain", "say", "--json"]).with_code(0).json();
    let names: Vec<String> = explained
        .as_array()
        .map(|rows| rows.iter().filter_map(|row| Some(row["member"].as_str()?.to_owned())).collect())
        .unwrap_or_default();
    assert_eq!(names.len(), 2 * terms.len(), "{explained}");
    for name in &names {
        let again = sandbox.avow(&["explain", name, "--json"]).with_code(0).json();
        assert_eq!(again.as_array().map(Vec::len), Some(1), "{name}: {again}");
        assert_eq!(again[0]["member"].as_str(), Some(name.as_str()));
        let log = sandbox.avow(&["log", name]).with_code(0);
        assert_eq!(log.stdout.matches("said ").count(), 1, "{name}: {}", log.stdout);
        let run = sandbox.avow(&["run", "--only", name]).with_code(0);
        assert!(run.stderr.contains("1 reused"), "{name}: {}", run.stderr);
        let (stage, cell) = name.split_at(name.find('[').unwrap_or(0));
        let path = format!("copy{}", names.iter().position(|other| other == name).unwrap_or(0));
        sandbox.avow(&["get", &format!("{stage}.result{cell}"), "-o", &path]).expect_code(0);
    }
}

/// A long spec says the same of many stages; what is wrong with it is said of each.
#[test]
fn warnings_of_one_kind_are_counted_and_errors_are_all_shown() {
    let stages = |command: &str| -> String {
        (0..30)
            .map(|n| {
                format!("  s{n}:\n    {command}: echo {n} > ${{outputs.out}}\n    outputs: {{out: out}}\n")
            })
            .collect()
    };
    let sandbox = empty();
    sandbox
        .file("avow.toml", "")
        .file("spec.yaml", format!("avow: 1\nexperiment: long\nstages:\n{}", stages("run")));
    let said = sandbox.avow(&["check"]).with_code(0).stderr;
    assert_eq!(said.matches("warning[unused]: nothing reads").count(), 5, "{said}");
    assert!(said.contains("warning[unused]: 25 more of this kind"), "{said}");
    let all = sandbox.avow(&["check", "--json"]).with_code(0).json();
    assert_eq!(all.as_array().map(Vec::len), Some(30), "{all}");
    sandbox.file("spec.yaml", format!("avow: 1\nexperiment: long\nstages:\n{}", stages("runs")));
    let said = sandbox.avow(&["check"]).with_code(3).stderr;
    assert_eq!(said.matches("`runs` is no key of a stage").count(), 30, "{said}");
}
