//! The ledger in two clones: forks, merges by the real git, decisions, and copies of heads that are looked for.
#![expect(clippy::unwrap_used, reason = "tests")]

use std::path::Path;

use avow_testkit::Sandbox;
use serde_json::{Value, json};

const SPEC: &str = "\
avow: 1
experiment: fork
axes: {dose: [0, 1], seed: [1, 2, 3, 4, 5, 6, 7, 8]}
stages:
  measure:
    run: [sh, measure.sh, '${axes.dose}', '${axes.seed}', '${outputs.result}']
    measurements: {result: result.json}
claims:
  helps: {says: The dose raises the yield., select: measure.yield, compare: {dose: [1, 0]}, rule: {kind: difference, above: 0}}
  level: {tier: secondary, select: measure.yield, where: {dose: 1}, rule: {kind: threshold, above: 1}}
";

const MEASURE: &str = "printf '{\"yield\": %d.%d}\\n' \"$(($1 + $2))\" \"$(($1 * $2))\" > \"$3\"\n";

const LEDGER: &str = "registrations/fork.jsonl";

fn git(sandbox: &Sandbox, folder: &str, args: &[&str]) -> String {
    let run = sandbox
        .command("git")
        .current_dir(sandbox.path(folder))
        .args(["-c", "user.name=Ada", "-c", "user.email=ada@example.org", "-c", "init.defaultBranch=main"])
        .args(args)
        .output()
        .unwrap();
    assert!(run.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&run.stderr));
    String::from_utf8(run.stdout).unwrap()
}

/// Runs avow in a folder of the sandbox; exit code and both outputs.
fn avow(sandbox: &Sandbox, folder: &str, args: &[&str]) -> (i32, String, String) {
    let run = sandbox
        .command(env!("CARGO_BIN_EXE_avow"))
        .current_dir(sandbox.path(folder))
        .args(args)
        .output()
        .unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (run.status.code().unwrap(), text(run.stdout), text(run.stderr))
}

fn good(sandbox: &Sandbox, folder: &str, args: &[&str]) -> String {
    let (code, out, err) = avow(sandbox, folder, args);
    assert_eq!(code, 0, "{args:?}\n{out}\n{err}");
    out
}

fn json_of(sandbox: &Sandbox, folder: &str, args: &[&str]) -> Value {
    serde_json::from_str(&good(sandbox, folder, args)).unwrap()
}

/// A project under git, registered and committed.
fn project() -> Sandbox {
    let sandbox = Sandbox::new(env!("CARGO_BIN_EXE_avow"));
    sandbox.file("ada/avow.toml", "").file("ada/spec.yaml", SPEC).file("ada/measure.sh", MEASURE);
    sandbox.file("ada/.gitignore", ".avow/\n");
    git(&sandbox, "ada", &["init", "-q"]);
    good(&sandbox, "ada", &["register"]);
    commit(&sandbox, "ada", "register");
    sandbox
}

fn commit(sandbox: &Sandbox, folder: &str, message: &str) {
    git(sandbox, folder, &["add", "-A"]);
    git(sandbox, folder, &["commit", "-q", "-m", message]);
}

/// Two clones, each with an amendment of its own, merged by git in the first; the second is `bob`.
fn forked() -> Sandbox {
    let sandbox = project();
    git(&sandbox, ".", &["clone", "-q", "ada", "bob"]);
    for (who, bound) in [("ada", "0.25"), ("bob", "0.5")] {
        sandbox.replace(&format!("{who}/spec.yaml"), "above: 0}", &format!("above: {bound}}}"));
        good(&sandbox, who, &["amend", "--reason", &format!("{who} wants {bound}")]);
        commit(&sandbox, who, "amend");
    }
    git(&sandbox, "ada", &["tag", "side"]);
    git(&sandbox, "ada", &["fetch", "-q", "../bob", "main:refs/remotes/bob/main"]);
    // The spec itself conflicts, as it must; the ledger does not.
    git(&sandbox, "ada", &["merge", "-q", "-X", "ours", "-m", "merge", "bob/main"]);
    sandbox
}

fn bobs_plan(sandbox: &Sandbox) -> String {
    let log = json_of(sandbox, "bob", &["ledger", "log", "--json"]);
    log[1]["line"]["plan"].as_str().unwrap().to_owned()
}

#[test]
fn git_merges_two_sides_and_neither_wins_silently() {
    let sandbox = forked();
    let text = sandbox.read(&format!("ada/{LEDGER}"));
    assert_eq!(text.lines().count(), 3, "{text}");
    assert!(!text.contains("<<<<"), "{text}");
    let log = good(&sandbox, "ada", &["ledger", "log"]);
    assert!(log.contains("concurrent amendments") && log.contains("ada wants 0.25"), "{log}");
    assert!(log.contains("bob wants 0.5") && log.contains("--adopt"), "{log}");
    assert_eq!(good(&sandbox, "ada", &["ledger", "heads"]).lines().count(), 2);
    good(&sandbox, "ada", &["ledger", "verify"]);

    good(&sandbox, "ada", &["run", "-q"]);
    let report = json_of(&sandbox, "ada", &["verdict", "--json"]);
    // Bob's plan lies in bob's store: nobody here can say about which claims it disagrees.
    for verdict in report["verdicts"].as_array().unwrap() {
        assert_eq!(
            (&verdict["word"], &verdict["reason"]["code"]),
            (&json!("void"), &json!("concurrent-amendment"))
        );
    }
    let plan = bobs_plan(&sandbox);
    let [from, to] = ["bob", "ada"].map(|who| sandbox.path(&format!("{who}/.avow/blobs/{}", &plan[..2])));
    std::fs::create_dir_all(&to).unwrap();
    std::fs::copy(from.join(&plan[2..]), to.join(&plan[2..])).unwrap();
    let report = json_of(&sandbox, "ada", &["verdict", "--json"]);
    assert_eq!(report["verdicts"][0]["word"], "void");
    assert_eq!(report["verdicts"][1]["word"], "supported", "they agree about the other claim");
    assert!(report["deviations"].as_array().unwrap().iter().any(|d| d["class"] == "concurrent-amendment"));
    assert_eq!(avow(&sandbox, "ada", &["verdict", "--check"]).0, 7);
}

#[test]
fn a_decision_with_a_reason_ends_a_fork() {
    let sandbox = forked();
    let log = json_of(&sandbox, "ada", &["ledger", "log", "--json"]);
    let of = |who: &str| {
        let entries = log.as_array().unwrap();
        let found = entries.iter().find(|e| e["line"]["reason"].as_str().unwrap_or("").starts_with(who));
        found.unwrap()["leaf"].as_str().unwrap().to_owned()
    };
    let (code, _, err) = avow(&sandbox, "ada", &["amend", "--adopt", "ffffffff", "--reason", "x"]);
    assert!(code == 2 && err.contains("ledger log"), "{err}");
    let first = log[0]["leaf"].as_str().unwrap();
    assert_eq!(avow(&sandbox, "ada", &["amend", "--adopt", first, "--reason", "x"]).0, 2, "no rival");
    good(&sandbox, "ada", &["amend", "--adopt", &of("ada")[..12], "--reason", "agreed on the phone"]);
    assert_eq!(good(&sandbox, "ada", &["ledger", "heads"]).lines().count(), 1);
    assert!(!good(&sandbox, "ada", &["ledger", "log"]).contains("concurrent"));
    good(&sandbox, "ada", &["run", "-q"]);
    let report = json_of(&sandbox, "ada", &["verdict", "--json"]);
    assert_eq!(report["registration"]["leaf"], of("ada"));
    assert_eq!(
        (&report["standing"], &report["verdicts"][0]["word"]),
        (&json!("confirmatory"), &json!("supported"))
    );
    // The amendment itself stays visible, with its reason and its time, and is explained.
    let deviations = report["deviations"].as_array().unwrap();
    assert!(!deviations.is_empty());
    for deviation in deviations {
        assert_eq!(
            (&deviation["class"], &deviation["reason"]),
            (&json!("amendment"), &json!("ada wants 0.25"))
        );
        assert_eq!(
            (&deviation["when"], &deviation["entry"]),
            (&json!("before-first-attempt"), &json!(of("ada")))
        );
    }
    good(&sandbox, "ada", &["verdict", "--check"]);
}

#[test]
fn both_clones_merge_and_the_merges_merge() {
    let sandbox = forked();
    git(&sandbox, "bob", &["fetch", "-q", "../ada", "refs/tags/side:refs/tags/side"]);
    git(&sandbox, "bob", &["merge", "-q", "-X", "ours", "-m", "merge", "side"]);
    let at = |who: &str| sandbox.read(&format!("{who}/{LEDGER}"));
    assert_ne!(at("ada"), at("bob"), "each clone has its own order of lines");
    let canonical = |who: &str| json_of(&sandbox, who, &["ledger", "log", "--json"]);
    assert_eq!(canonical("ada"), canonical("bob"), "and both read the same");
    // A decision in each is an entry that names both heads; merged again, they are one ledger without damage.
    let log = canonical("ada");
    let amendments: Vec<&Value> =
        log.as_array().unwrap().iter().filter(|e| e["line"]["kind"] == "amend").collect();
    let chosen = amendments[0]["leaf"].as_str().unwrap();
    for who in ["ada", "bob"] {
        good(&sandbox, who, &["amend", "--adopt", chosen, "--reason", &format!("{who} agrees")]);
        commit(&sandbox, who, "adopt");
    }
    git(&sandbox, "ada", &["fetch", "-q", "../bob", "+main:refs/remotes/bob/main"]);
    git(&sandbox, "ada", &["merge", "-q", "-X", "ours", "-m", "merge", "bob/main"]);
    assert_eq!(good(&sandbox, "ada", &["ledger", "heads"]).lines().count(), 2);
    let verified = json_of(&sandbox, "ada", &["ledger", "verify", "--json"]);
    assert_eq!((&verified["lines"], &verified["findings"]), (&json!(5), &json!([])));
    assert!(!good(&sandbox, "ada", &["ledger", "log"]).contains("concurrent"), "both chose the same");
}

#[test]
fn a_line_that_git_knows_and_the_ledger_lacks_is_missed() {
    let sandbox = project();
    sandbox.replace("ada/spec.yaml", "above: 0}", "above: 0.25}");
    good(&sandbox, "ada", &["amend", "--reason", "a larger effect"]);
    commit(&sandbox, "ada", "amend");
    good(&sandbox, "ada", &["ledger", "verify"]);
    let text = sandbox.read(&format!("ada/{LEDGER}"));
    let first = text.split_inclusive('\n').next().unwrap();
    sandbox.file(&format!("ada/{LEDGER}"), first);
    let (code, _, err) = avow(&sandbox, "ada", &["ledger", "verify"]);
    assert!(code == 6 && err.contains("commit ") && err.contains("lacks the line"), "{code} {err}");
    // Where no copy is left, nothing can show it.
    std::fs::remove_dir_all(sandbox.path("ada/.git")).unwrap();
    good(&sandbox, "ada", &["ledger", "verify"]);
}

#[test]
fn a_head_that_an_attempt_cites_is_missed_when_its_line_is_cut() {
    let sandbox = project();
    good(&sandbox, "ada", &["run", "-q"]);
    std::fs::remove_dir_all(sandbox.path("ada/.git")).unwrap();
    let text = sandbox.read(&format!("ada/{LEDGER}"));
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    assert_eq!(lines.len(), 3);
    sandbox.file(&format!("ada/{LEDGER}"), lines[..2].concat());
    good(&sandbox, "ada", &["ledger", "verify"]);
    sandbox.file(&format!("ada/{LEDGER}"), lines[..1].concat());
    let (code, _, err) = avow(&sandbox, "ada", &["ledger", "verify"]);
    assert!(code == 6 && err.contains("run "), "{err}");
}

#[test]
fn proofs_stand_without_the_ledger() {
    let sandbox = project();
    good(&sandbox, "ada", &["run", "-q"]);
    let log = json_of(&sandbox, "ada", &["ledger", "log", "--json"]);
    let leaf = |at: usize| log[at]["leaf"].as_str().unwrap().to_owned();
    let elsewhere = |name: &str, text: &str| {
        let path = sandbox.root().join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let statement = elsewhere("head.json", &good(&sandbox, "ada", &["ledger", "heads"]));
    for args in [
        vec!["ledger", "prove", &leaf(0)[..10]],
        vec!["ledger", "prove", &leaf(1), "--growth"],
        vec!["ledger", "prove", &leaf(2)],
    ] {
        let proof = good(&sandbox, "ada", &args);
        let path = elsewhere("proof.json", &proof);
        let out = good(&sandbox, ".", &["ledger", "verify", "--proof", &path, "--statement", &statement]);
        assert!(out.contains("the proof holds"), "{out}");
        let mut forged: Value = serde_json::from_str(&proof).unwrap();
        let root = if forged.get("head").is_some() { "/head/root" } else { "/old/root" };
        *forged.pointer_mut(root).unwrap() = json!("0".repeat(64));
        let path = elsewhere("forged.json", &forged.to_string());
        let (code, out, _) = avow(&sandbox, ".", &["ledger", "verify", "--proof", &path]);
        assert!(code == 6 && out.contains("does not hold"), "{out}");
    }
    // A proof that leads to another head than the one somebody holds proves nothing to them.
    let proof =
        elsewhere("proof.json", &good(&sandbox, "ada", &["ledger", "prove", &leaf(0), "--head", &leaf(1)]));
    let (code, out, _) =
        avow(&sandbox, ".", &["ledger", "verify", "--proof", &proof, "--statement", &statement]);
    assert!(code == 6 && out.contains("not the one stated"), "{out}");
    let (code, _, err) = avow(&sandbox, "ada", &["ledger", "prove", &leaf(2), "--head", &leaf(0)]);
    assert!(code == 2 && err.contains("does not cover"), "{err}");
    assert!(!Path::new(&sandbox.path("registrations")).exists());
}
