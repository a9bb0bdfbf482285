//! A project that was damaged one thing at a time: what each command names, and what it cannot see.
//!
//! `avow store check` and `avow audit` read the damaged project. `avow verify` reads the bundle that its author makes
//! of it afterwards, with digests that fit. Where a command cannot see a damage the row says so, and the test insists
//! on it: docs/threat-model.md repeats the table.
#![expect(clippy::unwrap_used, reason = "tests")]

use std::fs;

use avow_testkit::{Run, Sandbox};

const SPEC: &str = "\
avow: 1
experiment: golden
axes: {dose: [0, 1], seed: [1, 2, 3, 4, 5, 6, 7, 8]}
stages:
  prepare:
    run: [sh, prepare.sh, '${outputs.base}']
    outputs: {base: base.txt}
  measure:
    run: [sh, measure.sh, '${axes.dose}', '${axes.seed}', '${inputs.base}', '${outputs.result}']
    inputs: {base: prepare.base}
    measurements: {result: result.json}
  ranked:
    uses: synthetic/relu-rank
    with: {seed: '${axes.seed}'}
claims:
  helps:
    says: The dose raises the yield.
    select: measure.yield
    compare: {dose: [1, 0]}
    rule: {kind: difference, above: 0}
";

/// The yield is 10 + seed without the dose; with it 1 + seed/10 more: 1.45 on average.
const MEASURE: &str =
    "printf '{\"yield\": %d.%d}\\n' \"$(($1 + $2 + $(cat \"$3\")))\" \"$(($1 * $2))\" > \"$4\"\n";

/// Registered, failed once, carried out, with a copy of the verdicts and a macro file.
fn golden() -> Sandbox {
    let sandbox = Sandbox::new(env!("CARGO_BIN_EXE_avow"));
    sandbox.file("avow.toml", "results = \"results\"\n").file("spec.yaml", SPEC);
    sandbox.file("prepare.sh", "echo 10 > \"$1\"\n");
    let fails =
        format!("if [ $2 = 3 ] && [ ! -e {}/fixed ]; then exit 1; fi\n{MEASURE}", sandbox.root().display());
    sandbox.file("measure.sh", fails);
    sandbox.avow(&["register", "--accept-warnings"]).expect_code(0);
    sandbox.avow(&["run", "-q", "-k", "--confine", "none"]).expect_code(1);
    sandbox.file("fixed", "");
    sandbox.avow(&["run", "-q", "--confine", "none"]).expect_code(0);
    sandbox.avow(&["report", "--macros", "numbers.tex", "-q"]).expect_code(0);
    sandbox
}

/// What a command does about a damage.
enum Sees {
    /// Ends with 6 and says each of these; `@` stands for the place, `#` for the run of a journal.
    Names(&'static [&'static str]),
    /// The bundle cannot be made; `avow bundle` ends with 6 and says each of these.
    Unmade(&'static [&'static str]),
    /// Ends with 0: it cannot know.
    Cannot,
}

/// A damage: what is done, giving its place, and what each command does about it.
struct Row {
    name: &'static str,
    damage: fn(&Sandbox) -> String,
    check: Sees,
    audit: Sees,
    verify: Sees,
}

use Sees::{Cannot, Names, Unmade};

fn journals(sandbox: &Sandbox) -> Vec<String> {
    let mut names: Vec<String> = sandbox.list(".avow/journal");
    names.retain(|name| name.ends_with(".jsonl"));
    names.into_iter().map(|name| format!(".avow/journal/{name}")).collect()
}

/// The journal in which a member failed first, and the other.
fn journal_with(sandbox: &Sandbox, part: &str) -> String {
    journals(sandbox).into_iter().find(|path| sandbox.read(path).contains(part)).unwrap()
}

/// Replaces the first text in a file that holds it; the file may be read-only.
fn edit(sandbox: &Sandbox, path: &str, old: &str, new: &str) {
    let text = sandbox.read(path);
    assert!(text.contains(old), "`{path}` does not hold `{old}`:\n{text}");
    overwrite(sandbox, path, text.replacen(old, new, 1).as_bytes());
}

fn overwrite(sandbox: &Sandbox, path: &str, bytes: &[u8]) {
    fs::remove_file(sandbox.path(path)).unwrap();
    sandbox.file(path, bytes);
}

/// The one blob that holds some bytes, and nothing that was measured beside it.
fn blob_with(sandbox: &Sandbox, part: &[u8]) -> String {
    let folders = sandbox.list(".avow/blobs");
    let files = folders.iter().flat_map(|folder| {
        let files = sandbox.list(&format!(".avow/blobs/{folder}")).into_iter();
        files.map(move |file| format!(".avow/blobs/{folder}/{file}"))
    });
    let holds = |file: &String| fs::read(sandbox.path(file)).unwrap().windows(part.len()).any(|w| w == part);
    files.into_iter().find(holds).unwrap_or_else(|| panic!("no blob holds {}", String::from_utf8_lossy(part)))
}

/// The last part of a journal's path, without its ending: the run.
fn run_of(journal: &str) -> String {
    journal.rsplit('/').next().unwrap().trim_end_matches(".jsonl").to_owned()
}

/// Changes one line of a journal, gives every later line the digest of the one before it, and returns how it was.
fn rechained(sandbox: &Sandbox, path: &str, change: impl Fn(&str) -> Option<String>) {
    let mut lines: Vec<String> = Vec::new();
    for line in sandbox.read(path).lines() {
        let Some(line) = change(line) else { continue };
        let mut value: serde_json::Value = serde_json::from_str(&line).unwrap();
        if let (Some(before), Some(object)) = (lines.last(), value.as_object_mut()) {
            object["previous"] = blake3::hash(before.as_bytes()).to_hex().as_str().into();
        }
        lines.push(value.to_string());
    }
    overwrite(sandbox, path, (lines.join("\n") + "\n").as_bytes());
    assert_eq!(
        avow_model::journal::read(sandbox.read(path).as_bytes()).damage,
        None,
        "the chain is whole again"
    );
}

fn is_failure(line: &str) -> bool {
    line.contains("\"kind\":\"finished\"") && line.contains("\"failed\"")
}

const ROWS: [Row; 19] = [
    Row {
        name: "changed blob",
        damage: |sandbox| {
            let blob = blob_with(sandbox, b"19.8");
            overwrite(sandbox, &blob, b"{\"yield\": 29.8}\n");
            blob
        },
        check: Names(&["damaged: @: the blob is damaged"]),
        audit: Names(&["damaged: @: the blob is damaged", "measure[dose=1,seed=8].result"]),
        verify: Unmade(&["@"]),
    },
    Row {
        name: "blob taken away",
        damage: |sandbox| {
            let blob = blob_with(sandbox, b"19.8");
            fs::remove_file(sandbox.path(&blob)).unwrap();
            blob
        },
        check: Names(&["measure[dose=1,seed=8]"]),
        audit: Names(&["measure[dose=1,seed=8].result"]),
        verify: Names(&["measure[dose=1,seed=8].result"]),
    },
    Row {
        name: "edited journal",
        damage: |sandbox| {
            let path = journal_with(sandbox, "\"failed\"");
            edit(sandbox, &path, "measure[dose=1,seed=8]", "measure[dose=1,seed=9]");
            path
        },
        check: Names(&["damaged: @: line ", "does not follow the line before it"]),
        audit: Names(&["damaged: @: line ", "does not follow the line before it"]),
        // A bundle holds the intact lines alone; the ledger knows that there were more.
        verify: Names(&["the journal of run # lacks lines", "registrations/golden.jsonl"]),
    },
    Row {
        name: "journal edited and chained anew",
        damage: |sandbox| {
            let path = journal_with(sandbox, "\"failed\"");
            rechained(sandbox, &path, |line| Some(line.replace("\"exit\":1", "\"exit\":2")));
            run_of(&path)
        },
        check: Names(&["@", "registrations/golden.jsonl"]),
        audit: Names(&["@"]),
        verify: Names(&["@"]),
    },
    Row {
        name: "forged verdict",
        damage: |sandbox| {
            edit(sandbox, "results/golden.verdicts.json", "\"supported\"", "\"refuted\"");
            "results/golden.verdicts.json".to_owned()
        },
        check: Cannot,
        audit: Names(&["damaged: @: these verdicts are not what the evidence gives"]),
        verify: Cannot,
    },
    Row {
        name: "stale macro file",
        damage: |sandbox| {
            edit(
                sandbox,
                "numbers.tex",
                "\\avowdef{helps.estimate:.2}{1.45}",
                "\\avowdef{helps.estimate:.2}{2.45}",
            );
            let line = sandbox.read("numbers.tex").lines().position(|line| line.contains("{2.45}")).unwrap();
            format!("numbers.tex:{}", line + 1)
        },
        check: Cannot,
        audit: Names(&["damaged: @: `helps.estimate:.2` is 1.45 now"]),
        verify: Cannot,
    },
    Row {
        name: "edited registration",
        damage: |sandbox| {
            edit(sandbox, "registrations/golden.jsonl", "\"claims\":1", "\"claims\":2");
            "registrations/golden.jsonl".to_owned()
        },
        check: Names(&["damaged: @: line 2", "unknown parent"]),
        audit: Names(&["damaged: @: line 2", "unknown parent"]),
        verify: Names(&["line 2", "unknown parent"]),
    },
    Row {
        name: "swapped registration",
        damage: |sandbox| {
            // Another threshold, registered elsewhere by the same tool: a line that is sound in itself.
            let other = Sandbox::new(env!("CARGO_BIN_EXE_avow"));
            other.copy(sandbox.root(), ".");
            other.remove(".avow").remove("registrations").replace("spec.yaml", "above: 0}", "above: 1}");
            other.avow(&["register", "--accept-warnings"]).expect_code(0);
            let line = other.read("registrations/golden.jsonl");
            let text = sandbox.read("registrations/golden.jsonl");
            let rest = text.split_once('\n').unwrap().1;
            overwrite(sandbox, "registrations/golden.jsonl", (line + rest).as_bytes());
            "registrations/golden.jsonl".to_owned()
        },
        check: Names(&["damaged: @: line 2", "unknown parent", "cited by"]),
        audit: Names(&["damaged: @: line 2", "unknown parent", "cited by"]),
        verify: Names(&["line 2", "unknown parent", "cited by"]),
    },
    Row {
        name: "deleted ledger",
        damage: |sandbox| {
            sandbox.remove("registrations/golden.jsonl");
            "registrations/golden.jsonl".to_owned()
        },
        check: Names(&["cited by"]),
        audit: Names(&["cited by"]),
        verify: Names(&["cited by"]),
    },
    Row {
        name: "end of the ledger cut off",
        damage: |sandbox| {
            let text = sandbox.read("registrations/golden.jsonl");
            let kept: Vec<&str> = text.lines().take(2).collect();
            overwrite(sandbox, "registrations/golden.jsonl", (kept.join("\n") + "\n").as_bytes());
            run_of(&journals(sandbox)[1])
        },
        check: Names(&["cited by"]),
        audit: Names(&["cited by"]),
        verify: Names(&["cited by"]),
    },
    Row {
        name: "re-dated attempt",
        damage: |sandbox| {
            let path = journal_with(sandbox, "\"failed\"");
            let text = sandbox.read(&path);
            let line = text.lines().find(|line| line.contains("\"kind\":\"finished\"")).unwrap();
            let started = line.split("\"started\":").nth(1).unwrap().split(',').next().unwrap();
            let earlier = (started.parse::<i64>().unwrap() - 86_400_000).to_string();
            edit(sandbox, &path, &format!("\"started\":{started}"), &format!("\"started\":{earlier}"));
            path
        },
        check: Names(&["damaged: @: line ", "does not follow the line before it"]),
        audit: Names(&["damaged: @: line ", "does not follow the line before it"]),
        // A bundle holds the intact lines alone; the ledger knows that there were more.
        verify: Names(&["the journal of run # lacks lines", "registrations/golden.jsonl"]),
    },
    Row {
        name: "dropped failure",
        damage: |sandbox| {
            let path = journal_with(sandbox, "\"failed\"");
            let text = sandbox.read(&path);
            let kept: Vec<&str> = text.lines().filter(|line| !is_failure(line)).collect();
            overwrite(sandbox, &path, (kept.join("\n") + "\n").as_bytes());
            path
        },
        check: Names(&["damaged: @: line ", "does not follow the line before it"]),
        audit: Names(&["damaged: @: line ", "does not follow the line before it"]),
        // A bundle holds the intact lines alone; the ledger knows that there were more.
        verify: Names(&["the journal of run # lacks lines", "registrations/golden.jsonl"]),
    },
    Row {
        name: "dropped failure, chained anew",
        damage: |sandbox| {
            let path = journal_with(sandbox, "\"failed\"");
            rechained(sandbox, &path, |line| (!is_failure(line)).then(|| line.to_owned()));
            run_of(&path)
        },
        check: Names(&["@", "registrations/golden.jsonl"]),
        audit: Names(&["@"]),
        verify: Names(&["@"]),
    },
    Row {
        name: "end of a journal cut off",
        damage: |sandbox| {
            let path = journal_with(sandbox, "\"failed\"");
            let text = sandbox.read(&path);
            let kept: Vec<&str> = text.lines().take(6).collect();
            overwrite(sandbox, &path, (kept.join("\n") + "\n").as_bytes());
            run_of(&path)
        },
        check: Names(&["@", "registrations/golden.jsonl"]),
        audit: Names(&["@"]),
        verify: Names(&["@"]),
    },
    Row {
        name: "deleted journal",
        damage: |sandbox| {
            let path = journal_with(sandbox, "\"failed\"");
            sandbox.remove(&path);
            run_of(&path)
        },
        check: Names(&["registrations/golden.jsonl", "@"]),
        audit: Names(&["registrations/golden.jsonl", "@"]),
        verify: Names(&["@"]),
    },
    Row {
        name: "wrong op identity in the record",
        damage: |sandbox| {
            let path = action_of_op(sandbox).unwrap();
            let bytes = fs::read(sandbox.path(&path)).unwrap();
            overwrite(sandbox, &path, &other_identity(&bytes));
            path
        },
        check: Names(&["damaged: @: the blob is damaged"]),
        audit: Names(&["damaged: @: the blob is damaged"]),
        verify: Unmade(&["@"]),
    },
    Row {
        name: "wrong op identity, with digests that fit",
        damage: |sandbox| {
            // An action of another identity under its own name, and the attempt moved to it.
            let path = action_of_op(sandbox).unwrap();
            let bytes = other_identity(&fs::read(sandbox.path(&path)).unwrap());
            let (old, new) =
                (path.replace(".avow/blobs/", "").replace('/', ""), blake3::hash(&bytes).to_hex());
            sandbox.file(&format!(".avow/blobs/{}/{}", &new[..2], &new[2..]), &bytes);
            for journal in journals(sandbox) {
                rechained(sandbox, &journal, |line| Some(line.replace(&old, &new)));
            }
            // The index would still say what was so before.
            sandbox.remove(".avow/index").remove(".avow/cache");
            run_of(&journal_with(sandbox, &new))
        },
        check: Names(&["@", "registrations/golden.jsonl"]),
        audit: Names(&["@", "of `ranked` not run"]),
        verify: Names(&["@"]),
    },
    Row {
        name: "added variant",
        damage: |sandbox| {
            sandbox.copy(sandbox.path("spec.yaml"), "kept.txt");
            sandbox.replace(
                "spec.yaml",
                "seed: [1, 2, 3, 4, 5, 6, 7, 8]",
                "seed: [1, 2, 3, 4, 5, 6, 7, 8, 9]",
            );
            sandbox.avow(&["run", "-q", "--confine", "none"]).expect_code(0);
            sandbox.copy(sandbox.path("kept.txt"), "spec.yaml");
            sandbox.remove("kept.txt").remove("results").remove("numbers.tex");
            String::new()
        },
        check: Cannot,
        audit: Cannot,
        verify: Cannot,
    },
    Row {
        name: "planted attempt in a journal of its own",
        damage: |sandbox| {
            // A copy of a journal under the name of a run that never was.
            // (The copies of verdicts, which count attempts, would not agree.)
            sandbox.remove("results");
            let path = journal_with(sandbox, "\"failed\"");
            let run = run_of(&path);
            let planted = sandbox.read(&path).replace(&run, "never-was");
            sandbox.file(".avow/journal/never-was.jsonl", planted);
            let path = ".avow/journal/never-was.jsonl".to_owned();
            rechained(sandbox, &path, |line| Some(line.to_owned()));
            run_of(&path)
        },
        check: Names(&["damaged: ", "@.jsonl", "the ledger was told of no such run"]),
        audit: Names(&["@", "the ledger was told of no such run"]),
        verify: Names(&["@", "the ledger was told of no such run"]),
    },
];

/// The action record of one member of the stage with an operation.
fn action_of_op(sandbox: &Sandbox) -> Option<String> {
    let folders = sandbox.list(".avow/blobs");
    let all = folders.iter().flat_map(|folder| {
        let files = sandbox.list(&format!(".avow/blobs/{folder}")).into_iter();
        files.map(move |file| format!(".avow/blobs/{folder}/{file}"))
    });
    let is = |path: &String| {
        use avow_model::canonical::Record;
        let action = avow_model::action::Action::from_bytes(&fs::read(sandbox.path(path)).unwrap());
        matches!(action.map(|action| action.command), Ok(avow_model::action::Command::Op { .. }))
    };
    all.into_iter().find(is)
}

/// The record with one digit of the operation's identity changed.
fn other_identity(bytes: &[u8]) -> Vec<u8> {
    use avow_model::action::{Action, Command};
    use avow_model::canonical::Record;
    let mut action = Action::from_bytes(bytes).unwrap();
    if let Command::Op { identity, .. } = &mut action.command {
        let other = if identity.starts_with('0') { "1" } else { "0" };
        identity.replace_range(..1, other);
    }
    let changed = action.to_bytes();
    assert_ne!(changed, bytes);
    changed
}

fn insist(row: &Row, command: &str, sees: &Sees, run: &Run, place: &str) {
    let said = format!("{}{}", run.stdout, run.stderr);
    let told = |words: &[&str]| {
        assert_eq!(run.code, 6, "{}, {command}:\n{said}", row.name);
        for word in words {
            let word = word.replace('@', place).replace('#', &run_of(place));
            assert!(said.contains(&word), "{}, {command} does not say `{word}`:\n{said}", row.name);
        }
    };
    match sees {
        Names(words) | Unmade(words) => told(words),
        Cannot => assert_eq!(run.code, 0, "{}, {command} sees it after all:\n{said}", row.name),
    }
}

#[test]
fn every_damage_is_named_with_its_place_by_each_command_that_can_see_it() {
    let sound = golden();
    for command in [&["store", "check"][..], &["audit"]] {
        let run = sound.avow(command).with_code(0);
        assert!(
            run.stdout.contains("all sound") || run.stdout.contains("nothing is damaged"),
            "{}",
            run.stdout
        );
    }
    let mut failures = Vec::new();
    for row in &ROWS {
        let sandbox = Sandbox::new(env!("CARGO_BIN_EXE_avow"));
        sandbox.copy(sound.root(), ".");
        let place = (row.damage)(&sandbox);
        let insisted = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            insist(row, "store check", &row.check, &sandbox.avow(&["store", "check"]), &place);
            insist(row, "audit", &row.audit, &sandbox.avow(&["audit"]), &place);
            let bundled = sandbox.avow(&["bundle", "--peek", "-o", "b.zip"]);
            if matches!(row.verify, Unmade(_)) {
                let digest = place.replace(".avow/blobs/", "").replace('/', "");
                insist(row, "bundle", &row.verify, &bundled, &digest[..8]);
            } else {
                assert!(sandbox.has("b.zip"), "{}, bundle:\n{}", row.name, bundled.stderr);
                insist(row, "verify", &row.verify, &sandbox.avow(&["verify", "b.zip"]), &place);
            }
        }));
        failures.extend(insisted.err().map(|_| row.name));
    }
    assert_eq!(failures, Vec::<&str>::new(), "the reasons stand above");
}

/// What a variant is said to be, by each command: no damage, but nothing that is passed over.
#[test]
fn a_variant_is_counted_beside_the_verdict_and_named_where_it_is_judged() {
    let sandbox = golden();
    sandbox.replace("spec.yaml", "seed: [1, 2, 3, 4, 5, 6, 7, 8]", "seed: [1, 2, 3, 4, 5, 6, 7, 8, 9]");
    sandbox.remove("numbers.tex").avow(&["run", "-q", "--confine", "none"]).expect_code(0);
    let audit = sandbox.avow(&["audit", "--check"]).with_code(7);
    assert!(audit.stdout.contains("this is not the registered plan but a variant of it"), "{}", audit.stdout);
    assert!(audit.stdout.contains("axis `seed`"), "{}", audit.stdout);
    // The author goes back to the registered plan and says nothing of the other.
    sandbox.replace("spec.yaml", ", 9]", "]");
    sandbox.avow(&["bundle", "-o", "b.zip", "-q"]).expect_code(0);
    let verified = sandbox.avow(&["verify", "b.zip", "--json"]).with_code(0).json();
    let variants = &verified["report"]["denominators"]["variants"];
    assert_eq!(variants.as_array().map(Vec::len), Some(1), "{verified:#}");
}

/// A bundle changed after it was made.
#[test]
fn an_altered_bundle_is_refused_with_the_entry_that_differs() {
    let sandbox = golden();
    sandbox.avow(&["bundle", "-o", "b.zip", "-q"]).expect_code(0);
    let script = "\
import sys, zipfile
which, how = sys.argv[1:]
source = zipfile.ZipFile('b.zip')
target = zipfile.ZipFile('changed.zip', 'w', zipfile.ZIP_DEFLATED)
for info in source.infolist():
    data = source.read(info)
    if info.filename.startswith(which):
        which = '\\0'
        print(info.filename)
        if how == 'left out':
            continue
        data = data[:-2] + b'0\\n' if how == 'changed' else data + b'\\n'
    info.external_attr = 0o100644 << 16
    target.writestr(info, data)
target.close()
";
    sandbox.file("alter.py", script);
    for which in ["blobs/", "journal/", "ledger/"] {
        for how in ["changed", "longer", "left out"] {
            let ran = sandbox.command("python3").args(["alter.py", which, how]).output().unwrap();
            assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
            let entry = String::from_utf8(ran.stdout).unwrap().trim().to_owned();
            let said = sandbox.avow(&["verify", "changed.zip"]).with_code(6);
            assert!(said.stderr.contains(&entry), "{which} {how}: {entry} is not in\n{}", said.stderr);
            assert_eq!(said.stdout, "", "nothing is said of a bundle that is refused");
        }
    }
}
