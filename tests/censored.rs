//! Values at which watching ended: not missing, and not more than they say.
#![expect(clippy::unwrap_used, reason = "tests")]

use avow_testkit::Sandbox;
use serde_json::{Value, json};

/// A run grows until it generalises, or is stopped: the dose makes it faster. Budgets by seed come from a table.
fn project(seeds: usize, claims: &str) -> Sandbox {
    let sandbox = Sandbox::new(env!("CARGO_BIN_EXE_avow"));
    let spec = format!(
        "avow: 1
experiment: grok
axes: {{dose: [0, 1], seed: {{range: [1, {}]}}}}
stages:
  train:
    run: [sh, train.sh, '${{axes.dose}}', '${{axes.seed}}', '${{outputs.result}}']
    measurements: {{result: result.jsonl}}
claims:
{claims}",
        seeds + 1
    );
    sandbox.file("avow.toml", "").file("spec.yaml", spec);
    sandbox
}

/// Time 100·seed − 60·dose, stopped at the budget that a shell formula gives.
fn train(sandbox: &Sandbox, budget: &str) {
    sandbox.file(
        "train.sh",
        format!(
            "t=$((100 * $2 - 60 * $1)); b={budget}; c=false\n\
             if [ $t -gt $b ]; then t=$b; c=true; fi\n\
             echo \"{{\\\"name\\\": \\\"steps\\\", \\\"value\\\": $t, \\\"censored\\\": $c}}\" > \"$3\"\n"
        ),
    );
}

fn verdicts(sandbox: &Sandbox) -> Vec<Value> {
    sandbox.avow(&["run", "-q"]).expect_code(0);
    sandbox.avow(&["verdict", "--json"]).with_code(0).json()["verdicts"].as_array().unwrap().clone()
}

fn close(have: &Value, want: f64) {
    let have = have.as_f64().unwrap();
    assert!((have - want).abs() <= 1e-9 * want.abs(), "{have} against {want}");
}

#[test]
fn with_one_budget_a_cut_off_value_counts_at_the_budget() {
    let claims = "  \
  faster: {select: train.steps, compare: {dose: [1, 0]}, rule: {kind: difference, below: 0}}
  half: {select: train.steps, where: {dose: 1}, rule: {kind: threshold, statistic: median, below: 600}}
  late: {select: train.steps, where: {dose: 1}, rule: {kind: threshold, statistic: median, below: 900}}
  reached: {select: train.steps, where: {dose: 1}, rule: {kind: proportion, success: {at_most: 700}, above: 0.1}}
";
    let sandbox = project(10, claims);
    train(&sandbox, "800");
    let verdicts = verdicts(&sandbox);
    let of = |name: &str| verdicts.iter().find(|v| v["claim"] == name).unwrap();
    // Differences are -60 for seeds 1 to 8, and 0 where both were cut off at 800.
    close(&of("faster")["estimate"], -48.0);
    assert_eq!(of("faster")["word"], "supported");
    let said =
        of("faster")["qualifiers"].as_array().unwrap().iter().find(|q| q["code"] == "censored").unwrap();
    assert_eq!((&said["units"], &said["budget"]), (&json!(4), &json!(800.0)), "{said}");
    // Median of 40, 140, …, 740 and two cut-off values: the fifth and sixth are 440 and 540.
    close(&of("half")["estimate"], 490.0);
    // Whether the median is below 900 cannot be told where watching ended at 800.
    assert_eq!((&of("late")["word"], &of("late")["reason"]["code"]), (&json!("void"), &json!("censored")));
    close(&of("reached")["estimate"], 0.7);
    let table = sandbox.avow(&["table", "--json"]).with_code(0).stdout;
    let cut = table.lines().filter(|line| line.contains("\"censored\":true")).count();
    assert_eq!(cut, 4, "{table}");
    assert!(!table.contains("\"keys\""), "it is no record key: {table}");
}

#[test]
fn unequal_budgets_need_a_method_that_takes_them() {
    let claims = "  \
  plain: {tier: secondary, select: train.steps, compare: {dose: [1, 0]}, rule: {kind: difference, below: 0, method: welch}}
  area: {select: train.steps, compare: {dose: [1, 0]}, rule: {kind: difference, below: 0, method: restricted-mean, until: 1000}}
  level: {select: train.steps, where: {dose: 0}, rule: {kind: threshold, above: 500, method: restricted-mean, until: 1000}}
  beyond: {select: train.steps, where: {dose: 0}, rule: {kind: threshold, above: 500, method: restricted-mean, until: 5000}}
  ranks: {select: train.steps, compare: {dose: [0, 1]}, rule: {kind: difference, above: 0, method: log-rank}}
";
    let sandbox = project(20, claims);
    // Every third seed is watched for a shorter time.
    train(&sandbox, "$(( $2 % 3 == 0 ? 70 * $2 : 1500 ))");
    let verdicts = verdicts(&sandbox);
    let of = |name: &str| verdicts.iter().find(|v| v["claim"] == name).unwrap();
    assert_eq!(of("plain")["reason"]["code"], "censored");
    assert!(of("plain")["reason"]["detail"].as_str().unwrap().contains("unequal"), "{}", of("plain"));
    // By a script of the definitions: restricted mean to 1000 with its error, the difference, and −z of log-rank.
    let reference =
        [824.592_760_180_995_4, 65.783_855_595_263_93, -23.876_199_095_022_57, 0.116_880_533_545_892_41];
    let level = of("level");
    assert_eq!(level["method"], "restricted-mean");
    close(&level["estimate"], reference[0]);
    let half = level["marginal_interval"]["high"].as_f64().unwrap() - reference[0];
    assert!((half / 1.959_963_984_540_054 - reference[1]).abs() < 1e-6 * reference[1], "{half}");
    close(&of("area")["estimate"], reference[2]);
    close(&of("ranks")["estimate"], reference[3]);
    assert_eq!((&of("beyond")["word"], &of("beyond")["reason"]["code"]), (&json!("void"), &json!("domain")));
}

#[test]
fn what_a_restricted_mean_needs_is_asked_for_before_anything_runs() {
    let claims = "  \
  a: {select: train.steps, where: {dose: 0}, rule: {kind: threshold, above: 500, method: restricted-mean}}
  b: {select: train.steps, where: {dose: 0}, rule: {kind: threshold, above: 500, until: 100}}
  c: {select: train.steps, compare: {dose: [0, 1]}, rule: {kind: difference, above: 5, method: log-rank}}
  d: {select: train.steps, where: {dose: 0}, rule: {kind: threshold, above: 5, method: restricted-mean, until: 100}}
";
    let sandbox = project(8, claims);
    train(&sandbox, "800");
    let said = sandbox.avow(&["check"]).with_code(3);
    let said = said.stdout + &said.stderr;
    for part in ["needs `until`", "only `method: restricted-mean` uses `until`", "for a difference against 0"]
    {
        assert!(said.contains(part), "{part} in {said}");
    }
    assert!(said.contains("restricted-mean needs 20"), "{said}");
}
