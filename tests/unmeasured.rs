//! What a claim lacks is told by name: the measurement that no file holds, the member whose number is not finite, the
//! file that cannot be read.

use avow_testkit::Sandbox;

/// A project whose stage writes what `result` says in each of four members.
fn project(select: &str, result: &str) -> Sandbox {
    let sandbox = Sandbox::new(env!("CARGO_BIN_EXE_avow"));
    sandbox.file("avow.toml", "");
    sandbox.file(
        "spec.yaml",
        format!(
            "avow: 1
experiment: unmeasured
axes: {{seed: [1, 2, 3, 4]}}
stages:
  train:
    run: [sh, train.sh, '${{axes.seed}}', '${{outputs.result}}']
    measurements: {{result: result.json}}
claims:
  good: {{says: It is good., select: {select}, rule: {{kind: threshold, above: 0}}}}
"
        ),
    );
    sandbox.file("train.sh", format!("s=$1\n{result} > \"$2\"\n"));
    sandbox
}

#[test]
fn a_name_that_no_file_holds_is_told_with_the_names_that_they_hold_the_nearest_first() {
    let printed = "printf '{\"loss\": 0.%d, \"accuracy\": 0.%d, \"f1\": 0.5}\\n' \"$s\" \"$s\"";
    let sandbox = project("train.acuracy", printed);
    let run = sandbox.avow(&["run"]).with_code(0);
    let wanted = "unknown-measurement: no measurement has the name that it selects \
                  (`acuracy`; the files of `train` hold `accuracy`, `f1`, `loss`)";
    assert!(run.stdout.contains(wanted), "{}", run.stdout);
    for call in [&["verdict"][..], &["verdict", "--explain", "good"]] {
        let told = sandbox.avow(call).with_code(0).stdout;
        assert!(told.contains(wanted), "{call:?}: {told}");
    }
    let json = sandbox.avow(&["verdict", "--json"]).with_code(0).json();
    assert_eq!(json["verdicts"][0]["reason"]["code"], "unknown-measurement");
    sandbox.avow(&["verdict", "--check"]).expect_code(5);
    // A claim is no member, and its own explanation is named.
    let told = sandbox.avow(&["explain", "good"]).with_code(2).stderr;
    assert!(told.contains("`avow verdict --explain good`"), "{told}");
}

#[test]
fn a_number_that_is_not_finite_and_one_that_is_not_there_are_told_with_their_members() {
    let nan = project(
        "accuracy",
        "if [ $s = 3 ]; then echo '{\"accuracy\": NaN}'; else echo '{\"accuracy\": 0.5}'; fi",
    );
    let told = nan.avow(&["run"]).with_code(0).stdout;
    assert!(
        told.contains("non-finite: a value is not finite (NaN in train[seed=3].result, line 1)"),
        "{told}"
    );
    let failing = project("accuracy", "[ $s != 2 ] || exit 3; echo '{\"accuracy\": 0.5}'");
    let told = failing.avow(&["run", "-k"]).with_code(1).stdout;
    assert!(told.contains("missing-units: planned units are missing (train[seed=2] "), "{told}");
    let lacking = project(
        "accuracy",
        "if [ $s = 4 ]; then echo '{\"loss\": 1}'; else echo '{\"accuracy\": 0.5, \"loss\": 1}'; fi",
    );
    let told = lacking.avow(&["run"]).with_code(0).stdout;
    assert!(told.contains("(train[seed=4] wrote none)"), "{told}");
}

#[test]
fn a_measurement_file_that_cannot_be_read_is_the_fault_of_its_program() {
    for (written, said) in [
        ("echo '{\"accuracy\": 0.5'", "does not parse"),
        ("printf '\\377\\376'", "is not UTF-8 text"),
        ("echo '{\"accuracy\": \"high\"}'", "holds a value that is text"),
    ] {
        let sandbox = project("accuracy", written);
        let run = sandbox.avow(&["run"]).with_code(1);
        assert!(
            run.stderr.contains(said) && run.stderr.contains("hint: `avow get 'train.result[seed=1]'`"),
            "{}",
            run.stderr
        );
        assert!(run.stdout.contains("unreadable"), "{}", run.stdout);
        // Nothing was executed now, and the files are as unreadable as before.
        sandbox.avow(&["run"]).expect_code(1);
        sandbox.avow(&["get", "train.result[seed=1]", "-o", "there"]).expect_code(0);
    }
    // A word beside the numbers that nobody selects is no fault.
    let sandbox = project("accuracy", "echo '{\"accuracy\": 0.5, \"model\": \"small\"}'");
    sandbox.avow(&["run"]).expect_code(0);
}
