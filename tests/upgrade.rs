//! A store that an earlier version wrote is read, and what it holds is reused: nobody recomputes for an upgrade.
//!
//! The stores under `tests/frozen/` were made by programs of their time (`tests/frozen/make.sh`, `make2.sh`) and are
//! never changed.

use avow_model::journal::Event;
use avow_testkit::Sandbox;

/// What of the frozen experiment must be reused: every member but `clock`, which is measured again each time.
const REUSED: [&str; 12] = [
    "draw[seed=1]",
    "draw[seed=2]",
    "draw[seed=3]",
    "halve[seed=1]",
    "halve[seed=2]",
    "halve[seed=3]",
    "score[seed=1]",
    "score[seed=2]",
    "score[seed=3]",
    "tidy[seed=1]",
    "tidy[seed=2]",
    "tidy[seed=3]",
];

/// A copy of a frozen project, with its store in place.
fn thawed(name: &str) -> Sandbox {
    let sandbox = Sandbox::new(env!("CARGO_BIN_EXE_avow"));
    let frozen = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/frozen/");
    for entry in std::fs::read_dir(format!("{frozen}{name}")).expect("the frozen project is there") {
        let entry = entry.expect("the folder is readable");
        let at = if entry.file_name() == "store" { ".avow".into() } else { entry.file_name() };
        sandbox.copy(entry.path(), at.to_str().expect("our names are UTF-8"));
    }
    for folder in ["work", "log"] {
        std::fs::create_dir_all(sandbox.path(".avow").join(folder)).expect("the store is ours");
    }
    sandbox
}

/// The members that the latest run reused, sorted.
fn reused(sandbox: &Sandbox) -> Vec<String> {
    let history = sandbox.history();
    let lines = history.latest().journal.lines.iter();
    let mut members: Vec<String> = lines
        .filter_map(|line| match &line.event {
            Event::Reused { hits, .. } => Some(hits.iter().map(|hit| hit.member.clone())),
            _ => None,
        })
        .flatten()
        .collect();
    members.sort();
    members
}

fn bytes(sandbox: &Sandbox, folder: &str) -> Vec<(String, Vec<u8>)> {
    let read = |name: String| {
        let bytes = std::fs::read(sandbox.path(folder).join(&name)).expect("it is a file");
        (name, bytes)
    };
    sandbox.list(folder).into_iter().map(read).collect()
}

#[test]
fn everything_in_a_store_of_encoding_1_is_reused() {
    let sandbox = thawed("v1");
    let journals = bytes(&sandbox, ".avow/journal");
    assert_eq!(sandbox.executes(&["run"]), ["clock"]);
    assert_eq!(reused(&sandbox), REUSED);
    // And again, from the index that is there now.
    assert_eq!(sandbox.executes(&["run"]), ["clock"]);
    assert_eq!(reused(&sandbox), REUSED);
    // What had been written down stands as it was written.
    let now = bytes(&sandbox, ".avow/journal");
    assert!(journals.iter().all(|journal| now.contains(journal)), "a journal was rewritten");
    sandbox.avow(&["store", "check"]).expect_code(0);
}

#[test]
fn a_registration_of_encoding_1_is_still_the_registration() {
    let sandbox = thawed("v1");
    let before = sandbox.avow(&["verdict", "--json"]).with_code(0).json();
    assert_eq!(before["verdicts"][0]["word"], "supported");
    assert!(before.to_string().contains("confirmatory"), "{before}");
    sandbox.avow(&["run"]).expect_code(0);
    let after = sandbox.avow(&["verdict", "--json"]).with_code(0).json();
    assert_eq!(after["verdicts"], before["verdicts"]);
    assert_eq!(after["standing"], before["standing"]);
    sandbox.avow(&["verdict", "--check"]).expect_code(0);
}

#[test]
fn every_reading_command_reads_a_store_of_encoding_1() {
    let sandbox = thawed("v1");
    let reads: &[(&[&str], &str)] = &[
        (&["status"], ""),
        (&["plan"], "draw"),
        (&["explain", "score[seed=2]"], "reuse"),
        (&["table"], "16"),
        (&["verdict"], "Supported"),
        (&["lineage", "score.score[seed=3]"], "draw[seed=3]"),
        (&["log", "draw[seed=1]"], "a line from the draw"),
        (&["get", "score.result[seed=1]", "-o", "copy.json"], ""),
        (&["store", "check"], ""),
    ];
    for (words, expected) in reads {
        let read = sandbox.avow(words).with_code(0);
        let printed = format!("{}{}", read.stdout, read.stderr);
        assert!(printed.contains(expected), "{words:?}: {printed}");
    }
    assert_eq!(sandbox.read("copy.json"), "{\"score\": 10}\n");
}

#[test]
fn what_is_taken_over_is_written_down_and_told() {
    let sandbox = thawed("v1");
    let run = sandbox.avow(&["run"]).with_code(0);
    assert!(run.stderr.contains("13 actions were recorded under encoding 1"), "{}", run.stderr);
    assert_eq!(sandbox.list(".avow/aliases"), ["1.jsonl"]);
    let aliases = sandbox.read(".avow/aliases/1.jsonl");
    assert_eq!(aliases.lines().count(), 13);
    let explained = sandbox.avow(&["explain", "score[seed=2]"]).with_code(0);
    assert!(explained.stdout.contains("recorded under encoding 1"), "{}", explained.stdout);
    // Nothing is taken over twice, and the index is not needed for it.
    sandbox.remove(".avow/index");
    let run = sandbox.avow(&["run"]).with_code(0);
    assert!(!run.stderr.contains("encoding 1"), "{}", run.stderr);
    assert_eq!(sandbox.read(".avow/aliases/1.jsonl"), aliases);
    assert_eq!(reused(&sandbox), REUSED);
}

/// Encoding 1 did not name the shell, so it cannot be known which one an old attempt was made with. The one that
/// is there at the upgrade is taken for it, and no other.
#[test]
fn an_old_attempt_stands_for_one_environment_only() {
    let sandbox = thawed("v1");
    sandbox.avow(&["run"]).expect_code(0);
    let bin = sandbox.root().with_file_name("bin");
    std::fs::create_dir(&bin).expect("it is ours");
    let mut shell = std::fs::read("/bin/sh").expect("it is readable");
    shell.extend_from_slice(b"another build");
    std::fs::write(bin.join("sh"), shell).expect("it is ours");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(bin.join("sh"), mode).expect("it is ours");
    let path = std::env::var("PATH").unwrap_or_default();
    let sandbox = sandbox.env("PATH", &format!("{}:{path}", bin.display()));
    let executed = sandbox.executes(&["run"]);
    assert!(executed.contains(&"draw[seed=1]".to_owned()), "{executed:?}");
    assert!(!executed.iter().any(|member| member.starts_with("halve")), "{executed:?}");
    let sandbox = sandbox.env("PATH", &path);
    assert_eq!(sandbox.executes(&["run"]), ["clock"]);
}

/// An alias is no way to make one attempt stand for another action: names are computed, not believed.
#[test]
fn a_forged_alias_is_not_believed() {
    let sandbox = thawed("v1");
    sandbox.avow(&["run"]).expect_code(0);
    let honest = sandbox.avow(&["verdict", "--json"]).with_code(0).json();
    let text = sandbox.read(".avow/aliases/1.jsonl");
    let lines: Vec<serde_json::Value> =
        text.lines().map(|line| serde_json::from_str(line).expect("a line is JSON")).collect();
    let mut forged: Vec<String> = Vec::new();
    for (line, other) in lines.iter().zip(lines.iter().cycle().skip(1)) {
        let mut line = line.clone();
        line["old"] = other["old"].clone();
        forged.push(line.to_string());
    }
    sandbox.file(".avow/aliases/1.jsonl", forged.join("\n") + "\n");
    let judged = sandbox.avow(&["verdict", "--json"]).with_code(0).json();
    assert_eq!(judged["completeness"]["open"], 12, "{judged}");
    sandbox.remove(".avow/aliases");
    let judged = sandbox.avow(&["verdict", "--json"]).with_code(0).json();
    assert_eq!(judged["verdicts"], honest["verdicts"]);
}

/// Encoding 2 named a lock file by its bytes, comments included.
#[test]
fn everything_in_a_store_of_encoding_2_is_reused_although_its_lock_has_comments() {
    let sandbox = thawed("v2");
    let run = sandbox.avow(&["run"]).with_code(0);
    assert!(run.stderr.contains("0 executed, 3 reused"), "{}", run.stderr);
    assert!(!run.stderr.contains("recorded under encoding"), "nothing of it is in doubt: {}", run.stderr);
    assert_eq!(reused(&sandbox), ["double[n=1]", "double[n=2]", "double[n=3]"]);
    assert_eq!(sandbox.list(".avow/aliases"), ["2.jsonl"]);
    // From now on it may be written as anybody likes.
    sandbox.file("requirements.txt", "first==1.0\nsecond == 2.0\n");
    assert_eq!(sandbox.executes(&["run"]), [""; 0]);
    sandbox.file("requirements.txt", "first==1.1\nsecond==2.0\n");
    assert_eq!(sandbox.executes(&["run"]), ["double[n=1]", "double[n=2]", "double[n=3]"]);
    sandbox.avow(&["store", "check"]).expect_code(0);
}

#[test]
fn a_registration_of_encoding_2_is_still_the_registration_whatever_comments_its_lock_has() {
    let sandbox = thawed("v2");
    let before = sandbox.avow(&["verdict", "--json"]).with_code(0).json();
    assert!(before.to_string().contains("confirmatory"), "{before}");
    sandbox.avow(&["run"]).expect_code(0);
    let after = sandbox.avow(&["verdict", "--json"]).with_code(0).json();
    assert_eq!(after["verdicts"], before["verdicts"]);
    assert_eq!(after["standing"], before["standing"]);
    sandbox.avow(&["lineage", "double.double[n=2]"]).expect_code(0);
    sandbox.avow(&["store", "check"]).expect_code(0);
}
