//! Registrations under embargo: the published ledger shows a commitment and nothing else; whoever has the opening
//! shows later what it was, and anybody checks that with `sha256sum`.
#![expect(clippy::unwrap_used, reason = "tests")]

use std::os::unix::fs::PermissionsExt;

use avow_testkit::Sandbox;
use serde_json::{Value, json};

const SPEC: &str = "\
avow: 1
experiment: secretive
axes: {dose: [0, 1], seed: [1, 2, 3, 4, 5, 6, 7, 8]}
stages:
  measure:
    run: [sh, measure.sh, '${axes.dose}', '${axes.seed}', '${outputs.result}']
    measurements: {result: result.json}
claims:
  helps: {says: The dose raises the yield., select: measure.yield, compare: {dose: [1, 0]}, rule: {kind: difference, above: 0}}
";

fn project() -> Sandbox {
    let sandbox = Sandbox::new(env!("CARGO_BIN_EXE_avow"));
    sandbox.file("avow.toml", "").file("spec.yaml", SPEC);
    sandbox.file("measure.sh", "printf '{\"yield\": %d.%d}\\n' \"$(($1 + $2))\" \"$(($1 * $2))\" > \"$3\"\n");
    sandbox
}

/// The one ledger of the project, by its file name.
fn ledger(sandbox: &Sandbox) -> (String, Vec<Value>) {
    let names = sandbox.list("registrations");
    let files: Vec<&String> = names.iter().filter(|name| name.ends_with(".jsonl")).collect();
    let [one] = files.as_slice() else { panic!("{names:?}") };
    let text = sandbox.read(&format!("registrations/{one}"));
    ((*one).clone(), text.lines().map(|line| serde_json::from_str(line).unwrap()).collect())
}

/// Everything that may be published: what lies in `registrations`.
fn published(sandbox: &Sandbox) -> String {
    let (name, _) = ledger(sandbox);
    sandbox.list("registrations").join("\n") + &sandbox.read(&format!("registrations/{name}"))
}

/// What is kept privately, by suffix.
fn kept(sandbox: &Sandbox, suffix: &str) -> Vec<String> {
    let folder = ".avow/embargo/secretive";
    let names = sandbox.list(folder).into_iter().filter(|name| name.ends_with(suffix));
    names.map(|name| format!("{folder}/{}", name.rsplit('/').next().unwrap())).collect()
}

fn sha256(sandbox: &Sandbox, path: &str) -> String {
    let out = sandbox.command("sha256sum").arg(sandbox.path(path)).output().unwrap().stdout;
    String::from_utf8(out).unwrap().split(' ').next().unwrap().to_owned()
}

#[test]
fn a_closed_commitment_shows_nothing_and_opens_to_what_it_was() {
    let sandbox = project();
    let done = sandbox.avow(&["register", "--embargo"]).with_code(0);
    assert!(done.stderr.contains(".avow/embargo/secretive"), "{}", done.stderr);
    let (name, lines) = ledger(&sandbox);
    let keys: Vec<&String> = lines[0].as_object().unwrap().keys().collect();
    assert_eq!(keys, ["commitment", "kind", "nonce", "parents", "tree", "v"]);
    assert!(name.starts_with("embargo-") && name.len() == "embargo-01234567.jsonl".len(), "{name}");
    let (opening, body) = (kept(&sandbox, ".opening.json"), kept(&sandbox, ".body.json"));
    assert_eq!(lines[0]["commitment"], sha256(&sandbox, &opening[0]));
    let said: Value = serde_json::from_str(&sandbox.read(&opening[0])).unwrap();
    assert_eq!(said["body_sha256"], sha256(&sandbox, &body[0]));
    let mode = std::fs::metadata(sandbox.path(&opening[0])).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);

    // Carried out, peeked at and amended, it still shows nothing.
    sandbox.avow(&["run", "-q", "--only", "measure[seed=1]"]).expect_code(0);
    sandbox.avow(&["table", "--peek"]).expect_code(0);
    sandbox.replace("spec.yaml", "above: 0}", "above: 0.5}");
    sandbox.avow(&["amend", "-q", "--reason", "half is of no use"]).expect_code(0);
    sandbox.avow(&["run", "-q"]).expect_code(0);
    let plan = sandbox.avow(&["plan", "--json"]).with_code(0).json()["plan"].to_string();
    let shown = published(&sandbox);
    for word in ["secretive", "yield", "dose", "half is", "measure", "table", plan.trim_matches('"')] {
        assert!(!shown.contains(word), "{word} in {shown}");
    }
    let kinds: Vec<Value> = ledger(&sandbox).1.iter().map(|line| line["kind"].clone()).collect();
    assert_eq!(kinds, ["commit", "run-opened", "run-closed", "commit", "commit", "run-opened", "run-closed"]);
    assert!(ledger(&sandbox).1[1].get("run").is_none());

    // What is proved of a line is what stands in the file.
    let leaf = sandbox.avow(&["ledger", "log", "--json"]).with_code(0).json()[0]["leaf"].clone();
    let proof = sandbox.avow(&["ledger", "prove", leaf.as_str().unwrap()]).with_code(0).stdout;
    assert!(!proof.contains("secretive") && proof.contains("commitment"), "{proof}");
    sandbox.file("proof.json", proof);
    sandbox.avow(&["ledger", "verify", "--proof", "proof.json"]).expect_code(0);

    // Its author sees a registration, and that it is closed.
    let report = sandbox.avow(&["verdict", "--json"]).with_code(0).json();
    assert_eq!(
        (&report["standing"], &report["registration"]["embargo"]),
        (&json!("confirmatory"), &json!(true))
    );
    assert_eq!(report["denominators"]["unopened"], 3, "{report}");
    assert_eq!(report["findings"], json!([]));
    let exposed =
        report["deviations"].as_array().unwrap().iter().filter(|d| d["class"] == "exposure").count();
    assert_eq!(exposed, 1);
    let told = sandbox.avow(&["verdict"]).with_code(0).stdout;
    assert!(told.contains("Under embargo") && told.contains("3 unopened commitments"), "{told}");
    sandbox.avow(&["bundle"]).expect_code(2);
    sandbox.avow(&["store", "check"]).expect_code(0);

    let opened = sandbox.avow(&["ledger", "open", "--json"]).with_code(0).json();
    assert_eq!(
        (&opened["ledger"], opened["opened"].as_array().unwrap().len()),
        (&json!("registrations/secretive.jsonl"), 3)
    );
    let after = sandbox.avow(&["verdict", "--json"]).with_code(0).json();
    assert_eq!(after["registration"]["leaf"], report["registration"]["leaf"]);
    assert!(
        after["denominators"].get("unopened").is_none() && after["registration"].get("embargo").is_none()
    );
    // Without the private folder everybody sees the same.
    std::fs::remove_dir_all(sandbox.path(".avow/embargo")).unwrap();
    let others = sandbox.avow(&["verdict", "--json"]).with_code(0).json();
    assert_eq!(
        (&others["registration"], &others["deviations"]),
        (&after["registration"], &after["deviations"])
    );
    assert!(published(&sandbox).contains("half is of no use"));
    sandbox.avow(&["ledger", "open"]).expect_code(2);
    sandbox.avow(&["ledger", "verify"]).expect_code(0);
    sandbox.avow(&["bundle"]).expect_code(0);
}

#[test]
fn what_does_not_open_a_commitment_is_refused_with_the_reason() {
    let sandbox = project();
    sandbox.avow(&["register", "-q", "--embargo"]).expect_code(0);
    let before = published(&sandbox);
    let (opening, body) =
        (sandbox.read(&kept(&sandbox, ".opening.json")[0]), sandbox.read(&kept(&sandbox, ".body.json")[0]));
    let salt = serde_json::from_str::<Value>(&opening).unwrap()["nonce"].as_str().unwrap().to_owned();
    sandbox.file("salt.json", opening.replace(&salt, &"0".repeat(64)));
    sandbox.file("text.json", body.replace("\"claims\":1", "\"claims\":2"));
    sandbox.file("opening.json", &opening).file("body.json", &body);
    let open = |opening: &str, body: &str| {
        sandbox.avow(&["ledger", "open", "secretive", "--opening", opening, "--body", body])
    };
    let wrong_salt = open("salt.json", "body.json").with_code(6).stderr;
    assert!(wrong_salt.contains("opening is not the one that was committed to"), "{wrong_salt}");
    let wrong_text = open("opening.json", "text.json").with_code(6).stderr;
    assert!(wrong_text.contains("body is not the one that the opening names"), "{wrong_text}");
    assert_eq!(published(&sandbox), before, "nothing was written");
    // Somebody who got the files opens it without the author's store.
    let (name, _) = ledger(&sandbox);
    std::fs::remove_dir_all(sandbox.path(".avow/embargo")).unwrap();
    let chain = name.trim_end_matches(".jsonl");
    let lost = sandbox.avow(&["ledger", "open", chain]).with_code(2).stderr;
    assert!(lost.contains("the private files that open them are not here"), "{lost}");
    assert!(lost.contains("`--opening FILE --body FILE`"), "{lost}");
    sandbox
        .avow(&["ledger", "open", chain, "--opening", "opening.json", "--body", "body.json"])
        .expect_code(0);
    assert_eq!(ledger(&sandbox).0, "secretive.jsonl");
    sandbox.avow(&["run", "-q"]).expect_code(0);
    assert_eq!(sandbox.avow(&["verdict", "--json"]).json()["standing"], "confirmatory");
}

#[test]
fn a_forged_opening_in_the_ledger_is_named_and_registers_nothing() {
    let sandbox = project();
    sandbox.avow(&["register", "-q", "--embargo"]).expect_code(0);
    let (opening, body) =
        (kept(&sandbox, ".opening.json")[0].clone(), kept(&sandbox, ".body.json")[0].clone());
    sandbox.avow(&["ledger", "open", "-q"]).expect_code(0);
    // The line is honest but for what it claims to open.
    let text = sandbox.read("registrations/secretive.jsonl").replace("\\\"claims\\\":1", "\\\"claims\\\":2");
    sandbox.file("registrations/secretive.jsonl", text);
    sandbox.remove(&opening).remove(&body);
    sandbox.avow(&["run", "-q"]).expect_code(6);
    let report = sandbox.avow(&["verdict", "--json"]).with_code(6).json();
    let found: Vec<&Value> = report["findings"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|f| f["finding"] == "bad-registration")
        .collect();
    assert_eq!(found.len(), 1, "{report}");
    assert!(found[0]["reason"].as_str().unwrap().contains("body is not the one"), "{}", found[0]);
    assert_eq!((&report["registration"], &report["denominators"]["unopened"]), (&Value::Null, &json!(1)));
}

#[test]
fn commitments_are_counted_beside_the_verdicts_of_the_whole_project() {
    let sandbox = project();
    sandbox.avow(&["run", "-q", "spec.yaml", "--only", "measure[dose=0,seed=1]"]).expect_code(0);
    let late = sandbox.avow(&["register", "spec.yaml", "--embargo"]).with_code(2);
    assert!(late.stderr.contains("name what was run"), "{}", late.stderr);
    // Opposite predictions, of which only one would be shown.
    for (name, rule) in [("one", "above: 0}"), ("two", "below: 0}")] {
        sandbox.file(&format!("{name}.yaml"), SPEC.replace("secretive", name).replace("above: 0}", rule));
        sandbox.avow(&["register", "-q", "--embargo", &format!("{name}.yaml")]).expect_code(0);
    }
    sandbox.avow(&["run", "-q", "one.yaml"]).expect_code(0);
    sandbox.avow(&["ledger", "open", "-q", "one"]).expect_code(0);
    let report = sandbox.avow(&["verdict", "one.yaml", "--json"]).with_code(0).json();
    let counts = &report["denominators"];
    assert!(counts.get("unopened").is_none(), "{counts}");
    assert_eq!(counts["unopened_elsewhere"], 1);
    let told = sandbox.avow(&["verdict", "one.yaml"]).with_code(0).stdout;
    assert!(told.contains("1 unopened commitment in other chains"), "{told}");
    // Also where nothing is registered, and the other's opening is lost: it may be the verdict that did not come out.
    sandbox.file("three.yaml", SPEC.replace("secretive", "three"));
    sandbox.remove(".avow/embargo");
    sandbox.avow(&["run", "-q", "three.yaml"]).expect_code(0);
    let told = sandbox.avow(&["verdict", "three.yaml"]).with_code(0).stdout;
    assert!(told.contains("1 unopened commitment in other chains"), "{told}");
}

#[test]
fn nothing_made_for_others_shows_what_is_closed() {
    let sandbox = project();
    sandbox.avow(&["register", "--embargo"]).expect_code(0);
    sandbox.avow(&["run", "-q"]).expect_code(0);
    // Every export there is, as the program lists them itself.
    let help = sandbox.avow(&["export", "--help"]).with_code(0).stdout;
    let listed = help.split("Commands:").nth(1).unwrap().trim_start().lines();
    let kinds: Vec<&str> = listed
        .take_while(|line| line.starts_with(' ') || line.chars().next().is_some_and(char::is_lowercase))
        // A help text that goes on in the next line is further in.
        .filter(|line| line.len() - line.trim_start().len() <= 2)
        .filter_map(|line| line.split_whitespace().next())
        .filter(|word| *word != "help")
        .collect();
    assert!(kinds.len() >= 6 && kinds.contains(&"osf") && kinds.contains(&"ro-crate"), "{kinds:?}");
    let before = sandbox.list(".");
    let calls = kinds.iter().map(|kind| vec!["export", *kind]);
    for call in calls.chain([vec!["prml", "export"], vec!["bundle"]]) {
        let refused = sandbox.avow(&call).with_code(2);
        assert!(refused.stderr.contains("would show what is under embargo"), "{call:?}: {}", refused.stderr);
        assert!(refused.stderr.contains("avow ledger open"), "{call:?}: {}", refused.stderr);
        assert_eq!(refused.stdout, "", "{call:?}");
    }
    assert_eq!(sandbox.list("."), before);
    sandbox.avow(&["ledger", "open"]).expect_code(0);
    sandbox.avow(&["export", "osf"]).expect_code(0);
    sandbox.avow(&["prml", "export", "--producer", "me"]).expect_code(0);
}
