//! Matched controls: the arms of a contrast are equal but for what is named, or the claim says what else differs.

use avow_testkit::Sandbox;

const SPEC: &str = "\
avow: 1
experiment: matched
axes:
  arm:
    treated: {decay: 1, rate: 5}
    plain: {decay: 0, rate: 5}
  seed: [1, 2, 3, 4, 5, 6, 7, 8]
stages:
  train:
    run: [sh, train.sh, '${axes.arm.decay}', '${axes.arm.rate}', '${axes.seed}', '${outputs.model}']
    outputs: {model: model.txt}
  score:
    run: [sh, score.sh, '${inputs.model}', '${outputs.result}']
    inputs: {model: train.model}
    measurements: {result: result.json}
claims:
  helps:
    says: Decay raises the yield.
    select: score.yield
    compare: {arm: [treated, plain]}
    control: {of: train, equal_except: [arm.decay]}
    rule: {kind: difference, above: 0}
";

fn project() -> Sandbox {
    let sandbox = Sandbox::new(env!("CARGO_BIN_EXE_avow"));
    sandbox.file("avow.toml", "").file("spec.yaml", SPEC);
    sandbox.file("train.sh", "echo $((10 * $1 + $2 + $3)) > \"$4\"\n");
    sandbox.file("score.sh", "printf '{\"yield\": %s}\\n' \"$(cat \"$1\")\" > \"$2\"\n");
    sandbox
}

#[test]
fn arms_that_are_equal_but_for_what_is_named_are_proved_so() {
    let sandbox = project();
    sandbox.avow(&["register", "-q"]).expect_code(0);
    sandbox.avow(&["run", "-q"]).expect_code(0);
    let report = sandbox.avow(&["verdict", "--json"]).with_code(0).json();
    let verdict = &report["verdicts"][0];
    assert_eq!(verdict["word"], "supported", "{verdict}");
    let matched = verdict["qualifiers"].as_array().unwrap().iter().find(|q| q["code"] == "matched");
    let matched = matched.unwrap_or_else(|| panic!("{verdict}"));
    assert_eq!((&matched["of"], &matched["pairs"]), (&"train".into(), &8.into()), "{matched}");
    let told = sandbox.avow(&["verdict", "--explain", "helps"]).with_code(0).stdout;
    assert!(told.contains("8 pairs of `train` proved equal but for arm.decay"), "{told}");
}

#[test]
fn what_else_differs_is_named_before_anything_runs() {
    let sandbox = project();
    sandbox.replace("spec.yaml", "plain: {decay: 0, rate: 5}", "plain: {decay: 0, rate: 6}");
    let refused = sandbox.avow(&["check"]).with_code(3);
    let said = refused.stdout + &refused.stderr;
    assert!(said.contains("also differ in axes.arm.rate: 5 and 6"), "{said}");
    assert!(said.contains("equal_except"), "{said}");
    sandbox.replace("spec.yaml", "[arm.decay]", "[arm.decay, arm.rate]");
    sandbox.avow(&["check"]).expect_code(0);
}

#[test]
fn arms_that_were_seen_to_read_other_things_are_no_controls() {
    let sandbox = project();
    // Both read a file that nobody declares, and it is changed between the arms.
    sandbox.file("aside.txt", "1\n");
    sandbox.file("train.sh", "echo $((10 * $1 + $3 + $(cat ../../../../aside.txt))) > \"$4\"\n");
    sandbox.avow(&["run", "-q", "--confine", "observe", "--only", "train[arm=treated]"]).expect_code(0);
    sandbox.file("aside.txt", "2\n");
    sandbox.avow(&["run", "-q", "--confine", "observe", "--only", "train[arm=plain]"]).expect_code(0);
    let report = sandbox.avow(&["verdict", "--json"]).with_code(0).json();
    let reason = &report["verdicts"][0]["reason"];
    assert_eq!(reason["code"], "unmatched-control", "{report}");
    assert!(reason["detail"].as_str().unwrap().contains("aside.txt"), "{reason}");
}
