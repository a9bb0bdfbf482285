//! Cost grows with what is asked for, not with what exists: the same commands in a project of 1,000 and of 10,000
//! stages open as many files, read as many lines of journals and look at as many members.
//!
//! The projects were not run, which would take minutes: their journals are written through the library, as a run
//! would have written them. What is counted are acts, never time.

#![expect(clippy::unwrap_used, reason = "tests")]

use std::collections::HashMap;
use std::fmt::Write as _;
use std::process::Command;

use avow_model::attempt::{Attempt, AttemptId, Host, Outcome, Produced, Usage};
use avow_model::bind::bind;
use avow_model::canonical::Record;
use avow_model::digest::{Artifact, PlanDigest};
use avow_model::expand::Member;
use avow_model::journal::{Closing, Event, Opened};
use avow_model::plan::{Plan, Terms};
use avow_store::blob::{put_record, read_record};
use avow_store::{BlobStore, FileBlobs, JournalWriter, MemoryStamps, Project};
use avow_testkit::Sandbox;
use serde_json::Value;

/// Pairs of stages, the second of which reads what the first writes.
fn spec(stages: usize) -> String {
    let mut text = String::from("avow: 1\nexperiment: many\nstages:\n");
    for pair in 0..stages / 2 {
        writeln!(text, "  a{pair}: {{run: 'echo {pair} > ${{outputs.out}}', outputs: {{out: out.txt}}}}")
            .unwrap();
        writeln!(text, "  b{pair}:\n    run: cat ${{inputs.a}} > ${{outputs.out}}; echo {pair}").unwrap();
        writeln!(
            text,
            "    inputs: {{a: a{pair}.out}}\n    outputs: {{out: {{path: out.txt, optional: true}}}}"
        )
        .unwrap();
    }
    text
}

/// A project in which everything has been run.
fn project(stages: usize) -> Sandbox {
    let sandbox = Sandbox::new(env!("CARGO_BIN_EXE_avow"));
    sandbox.file("avow.toml", "").file("spec.yaml", spec(stages));
    sandbox.avow(&["run", "-q", "--only", "a0"]).expect_code(0);
    let opened = sandbox.avow(&["status", "--json"]).with_code(0).json()["opened"].clone();
    let plan: PlanDigest = opened["plan"].as_str().unwrap().parse().unwrap();
    let project = Project::at(sandbox.root().canonicalize().unwrap());
    let blobs = FileBlobs::new(project.clone(), std::sync::Arc::new(MemoryStamps::default()));
    let opened = Opened {
        version: 1,
        run: "29990101-000000-long".to_owned(),
        nonce: avow_store::nonce().unwrap(),
        experiment: "many".to_owned(),
        plan,
        members: stages as u64,
        confirmatory: false,
        ledger_heads: Vec::new(),
        continues: None,
        spec: "spec.yaml".to_owned(),
        tool: "test".to_owned(),
    };
    let mut journal = JournalWriter::create(&project, i64::MAX / 4, opened).unwrap();
    carry_out(&read_record(&blobs, plan).unwrap(), &blobs, &mut journal);
    journal.append(i64::MAX / 4, Event::Closed { how: Closing::Complete }).unwrap();
    sandbox
}

/// Writes down what carrying a plan out would have: every stage wrote `x`.
fn carry_out(plan: &Plan, blobs: &FileBlobs, journal: &mut JournalWriter) {
    let artifact = Artifact::Blob(blobs.put(b"x").unwrap());
    let made = |_: Member, _: &str| Some(artifact);
    for stage in 0..plan.stages.len() as u32 {
        let action = bind(plan, Member { stage, cell: 0 }, &made).unwrap().action;
        let member = plan.stages[stage as usize].name.clone();
        // Only what the test reads again is stored.
        if member == "b77" {
            put_record(blobs, &action).unwrap();
        }
        let id = AttemptId(format!("attempt-{stage}"));
        let action = action.digest();
        journal
            .append(
                1,
                Event::Started { member: member.clone(), action, attempt: id.clone(), verification: false },
            )
            .unwrap();
        let attempt = Attempt {
            id,
            action,
            run: journal.run().to_owned(),
            outcome: Outcome::Succeeded,
            outputs: [("out".to_owned(), Produced { artifact, size: 1 })].into(),
            stdout: None,
            stderr: None,
            started: 1,
            finished: 2,
            usage: Usage::default(),
            host: Host::default(),
            environment: None,
            encoding: avow_model::action::ENCODING,
            terms: Terms::default(),
            ledger_heads: Vec::new(),
            number: 1,
            continues: Default::default(),
            verification: false,
            reads: Default::default(),
        };
        journal.append(2, Event::Finished { member, attempt: Box::new(attempt) }).unwrap();
    }
}

/// `get` writes over nothing, so what it wrote before goes.
fn again(sandbox: &Sandbox) {
    if sandbox.has("out.txt") {
        sandbox.remove("out.txt");
    }
}

/// What a command read.
fn counts(sandbox: &Sandbox, command: &[&str]) -> HashMap<String, u64> {
    counts_and_words(sandbox, command).0
}

fn counts_and_words(sandbox: &Sandbox, command: &[&str]) -> (HashMap<String, u64>, String) {
    let file = sandbox.root().with_file_name("counts");
    again(sandbox);
    let run = sandbox.avow_with("AVOW_COUNTS", &file.display().to_string(), command);
    assert_eq!(run.code, 0, "{command:?}\n{}", run.stderr);
    (serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap(), run.stderr)
}

/// How many files a command opens, where there is a program that can tell.
fn opened(sandbox: &Sandbox, command: &[&str]) -> Option<usize> {
    let trace = sandbox.root().with_file_name("opened");
    again(sandbox);
    let mut strace = Command::new("strace");
    strace.args(["-f", "-e", "trace=open,openat,openat2", "-o"]).arg(&trace).arg(env!("CARGO_BIN_EXE_avow"));
    let run = strace.args(command).current_dir(sandbox.root()).output().ok()?;
    let text = std::fs::read_to_string(trace).ok()?;
    run.status.success().then(|| text.lines().filter(|line| line.contains("open")).count())
}

#[test]
fn asking_about_one_member_costs_the_same_in_a_large_project() {
    let (small, large) = (project(1_000), project(10_000));
    let commands: [&[&str]; 5] = [
        &["status"],
        &["explain", "b77"],
        &["log", "b77"],
        &["plan", "--only", "b77"],
        &["get", "b77.out", "--json"],
    ];
    for command in commands {
        // The first command after a run reads its journal, once.
        for sandbox in [&small, &large] {
            counts(sandbox, command);
        }
        let (few, many) = (counts(&small, command), counts(&large, command));
        for (what, count) in &few {
            let more = many[what];
            assert!(
                more <= count + 4,
                "{command:?}: {count} {what} in the small project, {more} in the large"
            );
            assert!(more <= 24, "{command:?}: {more} {what}");
        }
        if let (Some(few), Some(many)) = (opened(&small, command), opened(&large, command)) {
            assert!(
                many <= few + 4,
                "{command:?}: {few} files opened in the small project, {many} in the large"
            );
        }
    }
    a_run_after_one_change_reads_what_changed(&small, &large);
}

/// One member is another one now. It is carried out; of all others nothing is read again, and every file that they
/// promised is looked at once.
fn a_run_after_one_change_reads_what_changed(small: &Sandbox, large: &Sandbox) {
    let counted = [(small, 1_000), (large, 10_000)].map(|(sandbox, stages)| {
        // What was written through the library is taken in, once.
        sandbox.avow(&["run", "-q"]).expect_code(0);
        let text = spec(stages).replace("; echo 77\n", "; echo changed\n");
        sandbox.file("spec.yaml", text);
        let (counts, said) = counts_and_words(sandbox, &["run"]);
        assert!(said.contains(&format!("1 executed, {} reused", stages - 1)), "{said}");
        assert!(counts["looks"] <= stages as u64 + 40, "{counts:?}");
        counts
    });
    let [few, many] = &counted;
    for what in ["journals", "lines", "pages", "blobs"] {
        assert!(many[what] <= few[what] + 4, "{what}: {few:?} in the small project, {many:?} in the large");
        assert!(many[what] <= 40, "{what}: {many:?}");
    }
}

#[test]
fn a_lost_catalogue_costs_one_reading_of_the_journals() {
    let sandbox = project(1_000);
    sandbox.avow(&["status"]).expect_code(0);
    std::fs::remove_dir_all(sandbox.path(".avow/cache")).unwrap();
    assert!(counts(&sandbox, &["status"])["lines"] > 2_000);
    assert!(counts(&sandbox, &["status"])["lines"] < 20);
    let status = sandbox.avow(&["status", "--json"]).with_code(0).json();
    assert_eq!(
        (&status["counts"]["succeeded"], &status["closed"]),
        (&Value::from(1_000), &Value::from("complete"))
    );
}

/// So that a test of everything stands beside those of little.
#[test]
fn a_reused_project_is_still_read_as_a_whole_where_the_whole_is_asked_for() {
    let sandbox = project(100);
    let plan = sandbox.avow(&["plan"]).with_code(0).stdout;
    // The one reads what was really written, and nobody wrote down an attempt at that.
    assert!(plan.starts_with("many: 100 members, 99 reused, 1 to run"), "{plan}");
}
