//! `avow prml`: the exit codes of the format, and claims as manifests and back.

use avow_testkit::Sandbox;
use serde_json::Value;

fn sandbox() -> Sandbox {
    Sandbox::new(env!("CARGO_BIN_EXE_avow"))
}

#[test]
fn exit_codes_are_those_of_the_format() {
    let all: Value =
        serde_json::from_str(include_str!("../crates/avow-exchange/tests/prml/reference.json")).unwrap();
    let cases = all["cases"].as_array().unwrap();
    let sound = |case: &&Value| case.get("sha256").is_some();
    // Some of each kind; the library's own tests go through all.
    let some = cases.iter().filter(sound).step_by(60).chain(cases.iter().filter(|c| !sound(c)).step_by(9));
    let (mut manifests, mut others) = (0, 0);
    for case in some {
        let sandbox = sandbox();
        let name = case["name"].as_str().unwrap();
        sandbox.file(name, case["text"].as_str().unwrap());
        let code = |key: &str| i32::try_from(case[key].as_i64().unwrap()).unwrap();
        sandbox.avow(&["prml", "verify", name]).expect_code(code("unlocked"));
        sandbox.avow(&["prml", "lock", name]).expect_code(code("lock"));
        let Some(digest) = case.get("sha256") else {
            others += 1;
            sandbox.avow(&["prml", "hash", name]).expect_code(2);
            continue;
        };
        manifests += 1;
        let hash = sandbox.avow(&["prml", "hash", name]).with_code(0);
        assert_eq!(hash.stdout.trim(), digest.as_str().unwrap());
        assert_eq!(sandbox.read("m.prml.sha256").trim(), digest.as_str().unwrap());
        sandbox.avow(&["prml", "verify", name]).expect_code(0);
        for pair in case["observed"].as_array().unwrap() {
            let observed = format!("--observed={}", pair[0].as_str().unwrap());
            let wanted = i32::try_from(pair[1].as_i64().unwrap()).unwrap();
            sandbox.avow(&["prml", "verify", name, &observed]).expect_code(wanted);
        }
        let zeros = "0".repeat(64);
        sandbox.avow(&["prml", "verify", name, "--expected-hash", &zeros]).expect_code(code("other"));
    }
    assert!(manifests >= 7 && others >= 3, "{manifests} {others}");
    sandbox().avow(&["prml", "verify", "nothing.yaml"]).expect_code(2);
}

#[test]
fn what_readers_of_yaml_read_differently_is_refused_with_the_remedy() {
    let sandbox = sandbox();
    let all: Value =
        serde_json::from_str(include_str!("../crates/avow-exchange/tests/prml/reference.json")).unwrap();
    let canonical = all["cases"][0]["canonical"].as_str().unwrap();
    sandbox.file("m.yaml", canonical.replace("'2026-05-01T12:00:00Z'", "2026-05-01T12:00:00Z"));
    let refused = sandbox.avow(&["prml", "hash", "m.yaml"]).with_code(2);
    assert!(refused.stderr.contains("two ways") && refused.stderr.contains("quotes"), "{}", refused.stderr);
}

const SPEC: &str = "\
avow: 1
experiment: exported
axes: {dose: [0, 1], seed: [1, 2, 3, 4, 5, 6, 7, 8]}
stages:
  measure:
    run: [sh, measure.sh, '${axes.dose}', '${axes.seed}', '${inputs.base}', '${outputs.result}']
    inputs: {base: base.txt}
    measurements: {result: result.json}
claims:
  helps: {says: The dose raises the yield., select: measure.yield, compare: {dose: [1, 0]}, rule: {kind: difference, above: 0.5}}
  same: {select: measure.yield, compare: {dose: [1, 0]}, rule: {kind: equivalence, margin: 2}}
";

#[test]
fn a_claim_becomes_a_manifest_that_names_its_registration_and_data() {
    let sandbox = sandbox();
    sandbox.file("avow.toml", "").file("spec.yaml", SPEC).file("base.txt", "10\n");
    sandbox.file("measure.sh", "printf '{\"yield\": %d}\\n' $(($1 + $2 + $(cat \"$3\"))) > \"$4\"\n");
    sandbox.avow(&["register", "-q", "--accept-warnings"]).expect_code(0);
    let args = ["prml", "export", "spec.yaml", "--claim", "helps", "--producer", "lab.example.org"];
    let with = |more: &[&'static str]| [&args[..], more].concat();
    let time = ["--created-at", "2026-11-30T20:00:00Z"];
    let one = sandbox.avow(&with(&[&time[..], &["--json"]].concat())).with_code(0).json();
    let two = sandbox.avow(&with(&[&time[..], &["--json"]].concat())).with_code(0).json();
    assert_eq!(one, two, "one time gives one manifest");
    sandbox.avow(&with(&[&time[..], &["-o", "helps.yaml"]].concat())).expect_code(0);
    sandbox
        .avow(&["prml", "verify", "helps.yaml", "--observed", "1", "--dataset", "base.txt"])
        .expect_code(0);
    sandbox.avow(&["prml", "verify", "helps.yaml", "--observed", "0.5"]).expect_code(10);
    sandbox.avow(&["prml", "verify", "helps.yaml", "--dataset", "spec.yaml"]).expect_code(11);
    let text = sandbox.read("helps.yaml");
    let registration =
        sandbox.avow(&["ledger", "log", "--json"]).json()[0]["leaf"].as_str().unwrap().to_owned();
    for part in [
        "comparator: '>'\n",
        "threshold: 0.5\n",
        "id: base.txt\n",
        "seed: null\n",
        &registration,
        "dose 1 minus 0",
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
    sandbox.file("helps.yaml", text.replace("threshold: 0.5", "threshold: 0.4"));
    sandbox.avow(&["prml", "verify", "helps.yaml"]).expect_code(3);
    let refused =
        sandbox.avow(&["prml", "export", "spec.yaml", "--claim", "same", "--producer", "x"]).with_code(2);
    assert!(refused.stderr.contains("one threshold"), "{}", refused.stderr);
}

#[test]
fn a_manifest_becomes_a_claim_that_can_be_checked() {
    let sandbox = sandbox();
    sandbox.file("avow.toml", "").file("base.txt", "10\n");
    sandbox.file("measure.sh", "printf '{\"accuracy\": 0.9}\\n' > \"$1\"\n");
    let all: Value =
        serde_json::from_str(include_str!("../crates/avow-exchange/tests/prml/reference.json")).unwrap();
    sandbox.file("m.yaml", all["cases"][0]["canonical"].as_str().unwrap());
    let claim = sandbox.avow(&["prml", "import", "m.yaml"]).with_code(0).stdout;
    assert!(claim.contains(all["cases"][0]["sha256"].as_str().unwrap()), "{claim}");
    let stages = "avow: 1\nexperiment: imported\nstages:\n  measure:\n    run: [sh, measure.sh, '${outputs.result}']\n    measurements: {result: result.json}\n";
    sandbox.file("spec.yaml", format!("{stages}{claim}"));
    sandbox.avow(&["run", "-q"]).expect_code(0);
    let report = sandbox.avow(&["verdict", "--json"]).with_code(0).json();
    assert_eq!(
        (&report["verdicts"][0]["word"], &report["verdicts"][0]["decided_by"]),
        (&"supported".into(), &"estimate".into()),
        "{report}"
    );
}
