//! What a measurement varies by itself, from repeated attempts, and effects that are smaller than that.

use avow_testkit::Sandbox;
use serde_json::Value;

/// The score is the seed and what the run counter says: the same action gives another number each time.
const SPEC: &str = "\
avow: 1
experiment: shaky
axes: {dose: [0, 1], seed: [1, 2, 3, 4]}
stages:
  measure:
    run: [sh, measure.sh, '${axes.dose}', '${axes.seed}', '${outputs.result}']
    determinism: distribution
    measurements: {result: result.json}
claims:
  helps:
    says: The dose raises the score.
    select: score
    compare: {dose: [1, 0]}
    rule: {kind: difference, above: 0}
";

/// A score of seed + dose / `divisor`, and in another shaking an offset of 0 or 1 by whether it ran before.
fn project(divisor: u32) -> Sandbox {
    let sandbox = Sandbox::new(env!("CARGO_BIN_EXE_avow"));
    let root = sandbox.root().display().to_string();
    sandbox.file("avow.toml", "results = \"results\"\n[confine]\nlevel = \"none\"\n").file("spec.yaml", SPEC);
    let script = format!(
        "again=0; test ! -e {root}/ran-$1-$2 || again=1\ntouch {root}/ran-$1-$2\n\
         awk -v d=$1 -v s=$2 -v a=$again 'BEGIN {{ printf \"{{\\\"score\\\": %.4f}}\\n\", s + d / {divisor} + a }}' > \"$3\"\n"
    );
    sandbox.file("measure.sh", script);
    sandbox
}

/// The remark about noise beside the one verdict.
fn noise(sandbox: &Sandbox) -> Option<Value> {
    let report = sandbox.avow(&["verdict", "--json"]).with_code(0).json();
    let remarks = report["verdicts"][0]["qualifiers"].as_array().cloned().unwrap_or_default();
    remarks.into_iter().find(|remark| remark["code"] == "noise")
}

#[test]
fn an_effect_below_the_noise_of_its_measurement_is_said_to_be_so_everywhere() {
    let sandbox = project(10);
    sandbox.avow(&["run", "-q"]).expect_code(0);
    assert_eq!(noise(&sandbox), None, "nothing was repeated");
    assert!(!sandbox.avow(&["verdict"]).with_code(0).stdout.contains("noise"));
    sandbox.avow(&["run", "-q", "--verify", "1"]).expect_code(0);
    // Eight pairs of x and x + 1: each has a variance of 1/2.
    let found = noise(&sandbox).expect("eight actions were carried out twice");
    let near = |key: &str, value: f64| {
        let found = found[key].as_f64().unwrap_or(f64::NAN);
        assert!((found - value).abs() < 1e-9, "{key}: {found} is not {value}");
    };
    near("sd", 0.5f64.sqrt());
    near("effect", 0.1);
    assert_eq!((&found["repetitions"], &found["below"]), (&8.into(), &true.into()));
    // s·√(df/χ²) with χ²(8) = 17.5345 and 2.17973.
    assert!((found["low"].as_f64().unwrap_or(0.0) - 0.477622).abs() < 1e-5, "{found}");
    assert!((found["high"].as_f64().unwrap_or(0.0) - 1.354650).abs() < 1e-5, "{found}");
    let said = "below its own noise: an effect of 0.1 against 0.7071 [0.4776, 1.355] by 8 repeated attempts";
    let verdict = sandbox.avow(&["verdict"]).with_code(0).stdout;
    assert!(verdict.contains(said), "{verdict}");
    // Eight members that differ in the same way are one line; each has its number, and is by itself in the JSON form.
    let lines: Vec<&str> =
        verdict.lines().filter(|line| line.trim_start().starts_with("deviation")).collect();
    assert_eq!(lines.len(), 1, "{verdict}");
    assert!(
        lines[0].contains("deviations 1 to 8: ")
            && lines[0].contains("and so on for 7 more members, to measure[dose=1,seed=4]"),
        "{verdict}"
    );
    let json = sandbox.avow(&["verdict", "--json"]).with_code(0).json();
    assert_eq!(json["deviations"].as_array().map(Vec::len), Some(8), "{json:#}");
    assert!(verdict.contains("Inconclusive  helps  0.1 [0.1, 0.1]"), "noise changes no verdict: {verdict}");
    sandbox.avow(&["report"]).expect_code(0);
    assert!(sandbox.read("shaky.html").contains(said));
    let project = sandbox.avow(&["audit"]).with_code(0).stdout;
    assert!(project.contains("helps: an effect of 0.1 below its own noise, 0.7071"), "{project}");
    // In a manuscript, bound or typed.
    sandbox.file(
        "paper.md",
        "The score rose by {{ avow helps.estimate = 0.1 }}.\n\nIt rose by 0.1 in 4 pairs.\n",
    );
    let paper = sandbox.avow(&["audit", "paper.md"]).with_code(0).stdout;
    assert_eq!(paper.matches("note[below-noise]").count(), 2, "{paper}");
    let log = sandbox.avow(&["audit", "paper.md", "--format", "sarif"]).with_code(0).json();
    assert!(log["runs"][0]["results"].to_string().contains("below-noise"), "{log:#}");
}

#[test]
fn an_effect_above_its_noise_is_not_flagged_and_the_noise_is_told_on_request() {
    let sandbox = project(1);
    sandbox.replace("measure.sh", "d / 1 + a", "d / 1 + a / 100");
    sandbox.avow(&["run", "-q"]).expect_code(0);
    sandbox.avow(&["run", "-q", "--verify", "1"]).expect_code(0);
    let found = noise(&sandbox);
    assert_eq!(found.as_ref().map(|found| &found["below"]), Some(&false.into()), "{found:?}");
    assert!(!sandbox.avow(&["verdict"]).with_code(0).stdout.contains("noise"));
    let explained = sandbox.avow(&["verdict", "--explain", "helps"]).with_code(0).stdout;
    assert!(explained.contains("its own noise is 0.007071"), "{explained}");
    sandbox.file("paper.md", "It rose by 1.0 in 4 pairs.\n");
    assert!(!sandbox.avow(&["audit", "paper.md", "--all"]).with_code(0).stdout.contains("noise"));
}

#[test]
fn repetitions_by_an_axis_count_as_well() {
    let sandbox = project(10);
    sandbox.replace(
        "spec.yaml",
        "    determinism: distribution\n",
        "    determinism: distribution\n    repeat: 3\n",
    );
    sandbox.replace("spec.yaml", "    compare:", "    reduce: {repeat: mean}\n    compare:");
    sandbox.avow(&["run", "-q", "-j", "1"]).expect_code(0);
    // Of three repetitions the first says x, the others x + 1: a variance of 1/3 by 8 groups.
    let found = noise(&sandbox).expect("each cell was repeated");
    assert_eq!(found["repetitions"], 16);
    assert!((found["sd"].as_f64().unwrap_or(0.0) - (1.0f64 / 3.0).sqrt()).abs() < 1e-9, "{found}");
}

#[test]
fn what_is_made_again_elsewhere_shows_the_noise_as_well() {
    let sandbox = project(10);
    sandbox.avow(&["run", "-q"]).expect_code(0);
    let said = sandbox.avow(&["reproduce", "--json", "-q"]).with_code(0).json();
    let noise = &said["noise"][0];
    assert_eq!(
        (&noise["claim"], &noise["below"], &noise["noise"]["repetitions"]),
        (&"helps".into(), &true.into(), &8.into())
    );
    let told = sandbox.avow(&["reproduce", "-q"]).with_code(0).stdout;
    assert!(told.contains("beside an effect of 0.1; the claimed effect is below it"), "{told}");
}
