//! Specs under `tests/specs`: the good ones become plans, the bad ones become complaints.
//!
//! `AVOW_BLESS=1 cargo test -p avow-spec` rewrites every snapshot; read the difference before you commit it.

mod fixture;

use avow_model::canonical::Record;
use avow_model::plan::Plan;
use avow_spec::{full, plain};
use fixture::{check, folder, ops, project, snapshot, specs};

fn all_well(problems: Vec<String>) {
    assert!(problems.is_empty(), "{}", problems.join("\n\n"));
}

#[test]
fn good_specs_become_plans() {
    let mut problems = Vec::new();
    let found = specs("tests/specs/good");
    assert!(found.len() >= 8);
    for (path, text) in found {
        let (diagnostics, lowered) = check(&text, &project());
        let Some(plan) = lowered.and_then(|lowered| lowered.plan) else {
            problems.push(format!("{}:\n{}", path.display(), plain(&diagnostics, &text)));
            continue;
        };
        let warnings = plain(&diagnostics, &text);
        let shown = serde_json::json!({
            "digest": plan.digest(),
            "warnings": warnings.lines().collect::<Vec<_>>(),
            "plan": plan,
        });
        let json = serde_json::to_string_pretty(&shown).unwrap() + "\n";
        problems.extend(snapshot(&path.with_extension("plan.json"), &json).err());
    }
    all_well(problems);
}

#[test]
fn completed_specs_give_the_same_plan() {
    let mut problems = Vec::new();
    for (path, text) in specs("tests/specs/good") {
        let Some(lowered) = check(&text, &project()).1 else { continue };
        let Some(plan) = lowered.plan else { continue };
        let completed = full(&plan, &lowered.terms, &lowered.code);
        let (diagnostics, again) = check(&completed, &project());
        match again.as_ref().and_then(|l| l.plan.as_ref()) {
            Some(other) if *other == plan => {}
            Some(other) => {
                problems.push(format!("{}: another plan\n{completed}\n{other:#?}", path.display()))
            }
            None => problems.push(format!(
                "{}:\n{}\n{completed}",
                path.display(),
                plain(&diagnostics, &completed)
            )),
        }
        if again.is_some_and(|l| l.terms != lowered.terms) {
            problems.push(format!("{}: other terms\n{completed}", path.display()));
        }
    }
    all_well(problems);
}

#[test]
fn plans_are_records() {
    for (_, text) in specs("tests/specs/good") {
        let mut plan = check(&text, &project()).1.unwrap().plan.unwrap();
        // What a plan knows beside its record.
        plan.set_locks_as_written(&Default::default());
        assert_eq!(Plan::from_bytes(&plan.to_bytes()).unwrap(), plan);
    }
}

#[test]
fn bad_specs_become_complaints() {
    let mut problems = Vec::new();
    let found = specs("tests/specs/bad");
    assert!(found.len() >= 60, "{} bad specs", found.len());
    for (path, text) in found {
        let (diagnostics, lowered) = check(&text, &project());
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let planned = lowered.is_some_and(|l| l.plan.is_some());
        // Names that begin with `warn` are specs that can be planned and should be looked at.
        if diagnostics.is_empty() || planned != name.starts_with("warn") {
            problems.push(format!("{name}: planned {planned}\n{}", plain(&diagnostics, &text)));
        }
        problems.extend(snapshot(&path.with_extension("txt"), &plain(&diagnostics, &text)).err());
    }
    all_well(problems);
}

#[test]
fn the_key_reference_is_up_to_date() {
    let text = avow_spec::keys_markdown();
    all_well(snapshot(&folder("docs/keys.md"), &text).err().into_iter().collect());
}

#[test]
fn the_schema_knows_operations() {
    let schema = avow_spec::schema(&ops());
    let stage = &schema["$defs"]["stage"];
    let names = stage["properties"]["uses"]["enum"].as_array().unwrap();
    assert!(names.iter().any(|name| name == "mlp/train"));
    assert_eq!(stage["allOf"].as_array().unwrap().len(), ops().len());
}
