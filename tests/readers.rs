//! Results can be read without the programs that made them.

use avow_testkit::Sandbox;

const SPEC: &str = "\
avow: 1
experiment: readable
axes: {seed: [1, 2, 3, 4, 5, 6, 7, 8]}
stages:
  measure:
    run: measuring-tool ${axes.seed} ${outputs.result}
    measurements: {result: result.json}
claims:
  positive: {select: yield, rule: {kind: threshold, above: 0}}
";

const TOOL: &str = "#!/bin/sh\nprintf '{\"yield\": %d}\\n' \"$1\" > \"$2\"\n";

#[test]
fn a_reader_needs_none_of_the_programs() {
    let sandbox = Sandbox::new(env!("CARGO_BIN_EXE_avow"));
    sandbox.file("avow.toml", "").file("spec.yaml", SPEC).file("bin/measuring-tool", TOOL);
    let tool = sandbox.path("bin/measuring-tool");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&tool, mode).expect("the tool is there");
    let path = format!("{}:/usr/bin:/bin", sandbox.path("bin").display());
    let sandbox = sandbox.env("PATH", &path);
    sandbox.avow(&["run"]).expect_code(0);
    let before = sandbox.avow(&["verdict", "--json"]).with_code(0).json();
    assert_eq!(before["verdicts"][0]["word"], "supported");

    // Another version: it would run again, and what was measured is still there to be read.
    sandbox.file("bin/measuring-tool", format!("{TOOL}# version 2\n"));
    assert_eq!(sandbox.avow(&["verdict", "--json"]).with_code(0).json(), before);
    let explained = sandbox.avow(&["explain", "measure[seed=1]"]).with_code(0);
    assert!(explained.stdout.contains("program `measuring-tool` changed"), "{}", explained.stdout);

    // None at all.
    std::fs::remove_file(&tool).expect("the tool is there");
    assert_eq!(sandbox.avow(&["verdict", "--json"]).with_code(0).json(), before);
    assert_eq!(sandbox.avow(&["table", "--json"]).with_code(0).stdout.lines().count(), 8);
    sandbox.avow(&["lineage", "measure.yield[seed=1]"]).expect_code(0);
    sandbox.avow(&["get", "measure.result[seed=1]", "-o", "copy.json"]).expect_code(0);
    let run = sandbox.avow(&["run"]).with_code(3);
    assert!(run.stderr.contains("there is no program `measuring-tool`"), "{}", run.stderr);
}
