//! Changes after a registration: what they changed, when, why, and what is behind a verdict's numbers.
#![expect(clippy::unwrap_used, reason = "tests")]

use avow_testkit::Sandbox;
use serde_json::{Value, json};

const SPEC: &str = "\
avow: 1
experiment: change
axes: {dose: [0, 1], seed: [1, 2, 3, 4, 5, 6, 7, 8]}
stages:
  measure:
    run: [sh, measure.sh, '${axes.dose}', '${axes.seed}', '${inputs.base}', '${outputs.raw}']
    inputs: {base: base.txt}
    outputs: {raw: raw.txt}
  score:
    run: [sh, score.sh, '${inputs.raw}', '${outputs.result}']
    inputs: {raw: measure.raw}
    measurements: {result: result.json}
claims:
  helps: {says: The dose raises the yield., select: score.yield, compare: {dose: [1, 0]}, rule: {kind: difference, above: 0}}
  level: {tier: secondary, requires: [helps], select: score.yield, where: {dose: 1}, rule: {kind: threshold, above: 1}}
";

const MEASURE: &str = "echo $(($1 + $2 + $(cat \"$3\"))).$(($1 * $2)) > \"$4\"\n";

fn project() -> Sandbox {
    let sandbox = Sandbox::new(env!("CARGO_BIN_EXE_avow"));
    sandbox.file("avow.toml", "").file("spec.yaml", SPEC).file("base.txt", "10\n");
    sandbox.file("measure.sh", MEASURE);
    sandbox.file("score.sh", "printf '{\"yield\": %s}\\n' \"$(cat \"$1\")\" > \"$2\"\n");
    sandbox
}

fn lines(sandbox: &Sandbox, kind: &str) -> Vec<Value> {
    let text = sandbox.read("registrations/change.jsonl");
    let all = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    all.filter(|line| line["kind"] == kind).collect()
}

fn report(sandbox: &Sandbox) -> Value {
    sandbox.avow(&["verdict", "spec.yaml", "--json"]).with_code(0).json()
}

fn deviations(sandbox: &Sandbox, class: &str) -> Vec<Value> {
    let report = report(sandbox);
    report["deviations"].as_array().unwrap().iter().filter(|d| d["class"] == class).cloned().collect()
}

#[test]
fn a_registration_says_what_it_found() {
    let sandbox = project();
    for args in [
        &["init", "-q"][..],
        &["config", "user.name", "Ada"],
        &["config", "user.email", "ada@example.org"],
        &["add", "spec.yaml", "measure.sh", "base.txt"],
        &["commit", "-q", "-m", "begin"],
    ] {
        assert!(sandbox.command("git").args(args).status().unwrap().success());
    }
    sandbox.replace("base.txt", "10", "20");
    sandbox.avow(&["run", "-q", "--only", "measure[dose=0,seed=1]"]).expect_code(0);
    sandbox.avow(&["register"]).expect_code(0);
    let line = &lines(&sandbox, "register")[0];
    let commit = sandbox.command("git").args(["rev-parse", "HEAD"]).output().unwrap().stdout;
    assert_eq!(line["git"]["commit"], String::from_utf8(commit).unwrap().trim());
    assert_eq!(line["git"]["tracked"], 1, "{line}");
    assert!(line["git"]["untracked"].as_u64().unwrap() >= 2, "{line}");
    assert_eq!(line["existed"], json!({"members": 32, "tried": 1, "succeeded": 1}));
    assert!(
        line["code"]["measure"].is_string()
            && line["data"]["base.txt"].as_str().unwrap().starts_with("blob:")
    );
    assert!(line["analysis"].as_str().unwrap().len() == 64 && line.get("environment").is_none());
}

#[test]
fn a_registration_is_not_replaced_but_amended_for_a_reason() {
    let sandbox = project();
    let none = sandbox.avow(&["amend", "--reason", "early"]).with_code(2);
    assert!(none.stderr.contains("avow register"), "{}", none.stderr);
    sandbox.avow(&["register"]).expect_code(0);
    sandbox.replace("spec.yaml", "above: 1}", "above: 2}");
    let refused = sandbox.avow(&["register"]).with_code(2);
    assert!(refused.stderr.contains("avow amend --reason"), "{}", refused.stderr);
    sandbox.avow(&["amend", "--reason", "  "]).expect_code(2);
    sandbox.avow(&["amend"]).expect_code(2);
    sandbox.avow(&["amend", "--reason", "a typing error in the bound"]).expect_code(0);
    let first = sandbox.avow(&["ledger", "log", "--json"]).json()[0]["leaf"].clone();
    assert_eq!(lines(&sandbox, "amend")[0]["amends"], first);
    sandbox.avow(&["amend", "--reason", "again"]).expect_code(2);
    sandbox.avow(&["run", "-q"]).expect_code(0);
    let changed = deviations(&sandbox, "amendment");
    assert!(!changed.is_empty());
    for change in &changed {
        assert_eq!(change["reason"], "a typing error in the bound");
        assert_eq!((&change["when"], &change["name"]), (&json!("before-first-attempt"), &json!("level")));
    }
    sandbox.avow(&["verdict", "--check"]).expect_code(0);
}

#[test]
fn what_was_dropped_before_any_value_was_read_is_told_apart() {
    let dropped = |peek: bool| {
        let sandbox = project();
        sandbox.avow(&["register"]).expect_code(0);
        sandbox.avow(&["run", "-q", "--only", "score[dose=0,seed=1]"]).expect_code(0);
        if peek {
            sandbox.avow(&["table", "--peek"]).expect_code(0);
        }
        sandbox.replace("spec.yaml", ", 8]", "]");
        sandbox.avow(&["amend", "--reason", "the eighth plant died"]).expect_code(0);
        sandbox.avow(&["run", "-q"]).expect_code(0);
        let found = deviations(&sandbox, "exclusion");
        assert_eq!((found.len(), &found[0]["reason"]), (1, &json!("the eighth plant died")));
        found[0]["when"].as_str().unwrap().to_owned()
    };
    assert_eq!(dropped(false), "before-values");
    assert_eq!(dropped(true), "after");
    // Once the plan was complete its values could be read.
    let sandbox = project();
    sandbox.avow(&["register"]).expect_code(0);
    sandbox.avow(&["run", "-q"]).expect_code(0);
    sandbox.replace("spec.yaml", ", 8]", "]");
    sandbox.avow(&["amend", "--reason", "the eighth was odd"]).expect_code(0);
    assert_eq!(deviations(&sandbox, "exclusion")[0]["when"], "after");
}

#[test]
fn a_reason_explains_what_it_was_given_for_and_nothing_later() {
    let sandbox = project();
    sandbox.avow(&["register"]).expect_code(0);
    sandbox.avow(&["run", "-q", "--only", "score[seed=1]"]).expect_code(0);
    sandbox.avow(&["table", "--peek"]).expect_code(0);
    sandbox.avow(&["run", "-q"]).expect_code(0);
    sandbox.avow(&["verdict", "--check"]).expect_code(7);
    let wrong = sandbox.avow(&["amend", "--reason", "x", "--explain", "incident"]).with_code(2);
    assert!(wrong.stderr.contains("exposure"), "{}", wrong.stderr);
    sandbox.avow(&["amend", "--reason", "to test the plotting", "--explain", "exposure"]).expect_code(0);
    let said = sandbox.avow(&["verdict", "--check"]).with_code(0).stdout;
    assert!(said.contains("exposure") && said.contains("to test the plotting"), "{said}");
    let report = report(&sandbox);
    assert_eq!(report["standing"], "confirmatory", "the plan is the same, and no attempt has aged");
    assert_eq!(report["deviations"].as_array().unwrap().len(), 1, "{report}");
}

#[test]
fn what_was_declared_wrong_stands_for_nothing_and_marks_what_rests_on_it() {
    let sandbox = project();
    // The first time the scale was off, and nobody noticed.
    let flag = sandbox.path("off");
    sandbox.file("off", "");
    sandbox.file("avow.toml", format!("[confine]\nallow = [\"{}\"]\n", flag.display()));
    sandbox.file("measure.sh", format!("[ -e {} ] && echo 999 > \"$4\" && exit\n{MEASURE}", flag.display()));
    sandbox.avow(&["register"]).expect_code(0);
    sandbox.avow(&["run", "-q", "--only", "measure[dose=0,seed=3]"]).expect_code(0);
    sandbox.remove("off");
    sandbox.avow(&["run", "-q"]).expect_code(0);
    let args = ["invalidate", "measure[dose=0,seed=3]", "--reason", "the scale was off", "--json"];
    let marked = sandbox.avow(&args).with_code(0).json();
    assert_eq!(marked["marked"][0]["members"], json!(["measure[dose=0,seed=3]"]));
    assert_eq!(marked["marked"][0]["downstream"], json!(["score[dose=0,seed=3]"]));
    assert_eq!(lines(&sandbox, "invalidate")[0]["reason"], "the scale was off");
    // It is not reused, and what rests on it is not there.
    assert_eq!(sandbox.avow(&["verdict", "--json"]).with_code(0).json()["completeness"]["open"], 2);
    let why = sandbox.avow(&["explain", "measure[dose=0,seed=3]"]).stdout;
    assert!(why.contains("declared wrong"), "{why}");
    assert_eq!(sandbox.executes(&["run", "-q"]), ["measure[dose=0,seed=3]", "score[dose=0,seed=3]"]);
    let found = deviations(&sandbox, "invalidation");
    assert_eq!((found.len(), &found[0]["reason"]), (1, &json!("the scale was off")));
    assert_eq!(deviations(&sandbox, "divergence"), [] as [Value; 0], "what is wrong is no second success");
    let report = report(&sandbox);
    assert_eq!(report["verdicts"][0]["word"], "supported");
    assert!(report["verdicts"][0]["deviations"].as_array().unwrap().contains(&json!(0)), "{report}");
    sandbox.avow(&["verdict", "--check"]).expect_code(0);
    for (args, hint) in [
        (["invalidate", "measure[dose=9,seed=3]", "--reason", "x"], "avow lineage"),
        (["invalidate", &"0".repeat(64), "--reason", "x"], "avow lineage"),
        (["invalidate", "measure[dose=0,seed=4]", "--reason", " "], "--reason"),
    ] {
        let refused = sandbox.avow(&args).with_code(2);
        assert!(refused.stderr.contains(hint), "{}", refused.stderr);
    }
}

#[test]
fn a_withdrawn_reading_takes_along_what_rests_on_it() {
    let sandbox = project();
    sandbox.avow(&["run", "-q"]).expect_code(0);
    let unknown = sandbox.avow(&["retract", "hepls", "--reason", "x"]).with_code(2);
    assert!(unknown.stderr.contains("helps"), "{}", unknown.stderr);
    sandbox.avow(&["retract", "helps", "--reason", "dose and batch were confounded"]).expect_code(0);
    let found = deviations(&sandbox, "retraction");
    assert_eq!((&found[0]["claim"], &found[0]["downstream"]), (&json!("helps"), &json!(["level"])));
    for verdict in report(&sandbox)["verdicts"].as_array().unwrap() {
        assert_eq!(verdict["deviations"], json!([0]), "{verdict}");
    }
    let said = sandbox.avow(&["verdict"]).with_code(0).stdout;
    assert!(said.contains("withdrawn") && said.contains("confounded"), "{said}");
}

#[test]
fn a_verdict_says_what_it_is_out_of() {
    let sandbox = project();
    // A rule was tried under another name, on the same data, and a run was made before the registration.
    let other = SPEC.replace("experiment: change", "experiment: earlier").replace("above: 0}", "above: 5}");
    sandbox.file("other.yaml", other);
    sandbox.avow(&["run", "-q", "other.yaml", "--only", "score[seed=1]"]).expect_code(0);
    sandbox.avow(&["register", "spec.yaml"]).expect_code(0);
    sandbox.avow(&["run", "-q", "spec.yaml"]).expect_code(0);
    let counts = report(&sandbox)["denominators"].clone();
    assert_eq!(counts["members"], 32, "{counts}");
    assert_eq!((&counts["before"]["all"], &counts["after"]["all"]), (&json!(4), &json!(28)), "{counts}");
    assert_eq!(counts["variants"][0]["experiment"], "earlier");
    assert_eq!(counts["variants"][0]["measured"], json!(["yield"]));
    let said = sandbox.avow(&["verdict", "spec.yaml"]).with_code(0).stdout;
    let line =
        "Out of 32 members: 28 attempts under the registration; 4 attempts before it; 1 variant (earlier).";
    assert!(said.contains(line), "{said}");
    // The same name on other data is another experiment.
    sandbox.file("apart.txt", "30\n");
    let apart = SPEC.replace("experiment: change", "experiment: apart").replace("base.txt", "apart.txt");
    sandbox.file("apart.yaml", apart);
    sandbox.avow(&["run", "-q", "apart.yaml", "--only", "score[seed=1]"]).expect_code(0);
    assert_eq!(report(&sandbox)["denominators"]["variants"].as_array().unwrap().len(), 1);
}

#[test]
fn differences_have_a_topic_a_class_and_the_reason_that_was_stated() {
    let sandbox = project();
    sandbox.avow(&["register"]).expect_code(0);
    sandbox.replace("spec.yaml", ", 8]", ", 8, 9]").replace("base.txt", "10", "11");
    sandbox.avow(&["amend", "--reason", "one more plant, a better scale"]).expect_code(0);
    sandbox.replace("spec.yaml", "above: 0}", "above: 0.5}").replace("spec.yaml", "raises", "lifts");
    sandbox.file("score.sh", sandbox.read("score.sh") + "# rounded\n");
    let log = sandbox.avow(&["ledger", "log", "--json"]).json();
    let leaf = |at: usize| log[at]["leaf"].as_str().unwrap().to_owned();
    let between = sandbox.avow(&["diff", &leaf(0)[..8], &leaf(1), "--json"]).with_code(0).json();
    let topics = |diff: &Value| -> Vec<(String, String)> {
        let changes = diff["changes"].as_array().unwrap().iter();
        let text = |change: &Value, key: &str| change[key].as_str().unwrap().to_owned();
        let mut all: Vec<_> = changes.map(|c| (text(c, "topic"), text(c, "class"))).collect();
        all.dedup();
        all
    };
    let pair = |a: &str, b: &str| (a.to_owned(), b.to_owned());
    assert_eq!(topics(&between), [pair("seeds", "addition"), pair("data", "amendment")]);
    assert!(
        between["changes"]
            .as_array()
            .unwrap()
            .iter()
            .all(|c| c["reason"] == "one more plant, a better scale")
    );
    assert_eq!(between["cells"]["extra"].as_array().unwrap().len(), 4, "two doses, two stages");
    let now = sandbox.avow(&["diff", "--json"]).with_code(0).json();
    assert_eq!(
        topics(&now),
        [pair("code", "amendment"), pair("words", "clarification"), pair("analysis", "amendment")]
    );
    assert!(now["changes"].as_array().unwrap().iter().all(|c| c["reason"].is_null()));
    assert!(now["done"].as_array().unwrap().iter().any(|d| d["class"] == "not-run"));
    let said = sandbox.avow(&["diff"]).with_code(0).stdout;
    assert!(said.contains("no reason stated") && said.contains("code"), "{said}");
    sandbox.avow(&["diff", "ffff"]).expect_code(2);
    assert!(sandbox.avow(&["diff", "spec.yaml", "spec.yaml"]).with_code(0).stdout.contains("no difference"));
}

#[test]
fn a_change_that_is_said_to_change_nothing_is_tried_on_a_drawn_sample() {
    let changed = |script: &str| {
        let sandbox = project();
        sandbox.avow(&["register", "-q"]).expect_code(0);
        sandbox.avow(&["run", "-q"]).expect_code(0);
        sandbox.file("measure.sh", script);
        sandbox
    };
    // The same, written otherwise.
    let sandbox = changed("total=$(($1 + $2 + $(cat \"$3\")))\necho \"$total.$(($1 * $2))\" > \"$4\"\n");
    let nothing = sandbox.avow(&["amend", "--reason", "x", "--same-as", "ffff"]).with_code(2);
    assert!(nothing.stderr.contains("avow ledger log"), "{}", nothing.stderr);
    let args = ["amend", "--reason", "easier to read", "--same-as", "registered", "--check", "5"];
    let done = sandbox.avow(&args).with_code(0);
    let line = "5 of 5 drawn of 16 members give the same as before the change";
    assert!(done.stdout.contains(line), "{}{}", done.stdout, done.stderr);
    let amended = &lines(&sandbox, "amend")[0];
    assert_eq!((&amended["check"], &amended["same_as"]), (&json!(5), &amended["amends"]));
    sandbox.avow(&["run", "-q"]).expect_code(0);
    let equal = deviations(&sandbox, "equivalence");
    assert_eq!(equal.len(), 2, "the change of the code, and the sample: {equal:?}");
    assert!(equal.iter().all(|d| d["reason"] == "easier to read" && d["when"] == "after"), "{equal:?}");
    assert_eq!(deviations(&sandbox, "amendment"), [] as [Value; 0]);
    sandbox.avow(&["verdict", "--check"]).expect_code(0);

    // It was not the same after all.
    let sandbox = changed("echo $(($1 + $2 + $(cat \"$3\"))).$(($1 * $2 + $2 / 8)) > \"$4\"\n");
    let args = ["amend", "--reason", "only tidied up", "--same-as", "registered", "--check", "16"];
    let done = sandbox.avow(&args).with_code(7);
    assert!(done.stdout.contains("14 of 16 drawn of 16 members give the same"), "{}", done.stdout);
    sandbox.avow(&["run", "-q"]).expect_code(0);
    assert_eq!(deviations(&sandbox, "equivalence"), [] as [Value; 0]);
    let told = deviations(&sandbox, "amendment");
    assert_eq!(told.len(), 2, "{told:?}");
    assert_eq!(told[1]["different"], json!(["measure[dose=0,seed=8]", "measure[dose=1,seed=8]"]));
    sandbox.avow(&["verdict", "--check"]).expect_code(7);
}

#[test]
fn a_change_that_mends_a_fault_says_so() {
    let sandbox = project();
    sandbox.avow(&["register", "-q"]).expect_code(0);
    sandbox.avow(&["run", "-q"]).expect_code(0);
    sandbox.replace("measure.sh", "$(($1 * $2))", "$(($1 * $2 + 1))").replace(
        "spec.yaml",
        "above: 1}",
        "above: 2}",
    );
    sandbox.avow(&["amend", "-q", "--reason", "one was lost", "--bug-fix"]).expect_code(0);
    let fixed = deviations(&sandbox, "bug-fix");
    assert_eq!((fixed.len(), &fixed[0]["name"]), (1, &json!("measure")), "{fixed:?}");
    assert!(deviations(&sandbox, "amendment").iter().all(|d| d["name"] == "level"), "a rule is no bug");
}

#[test]
fn whether_values_could_be_read_before_something_was_declared_wrong_is_computed() {
    let wrong = |sandbox: &Sandbox| {
        let args = ["invalidate", "measure[dose=0,seed=3]", "--reason", "the scale was off"];
        sandbox.avow(&args).expect_code(0);
        deviations(sandbox, "invalidation")[0]["when"].clone()
    };
    // The plan was complete, so every value could be read, though without this member it is complete no more.
    let sandbox = project();
    sandbox.avow(&["register", "-q"]).expect_code(0);
    sandbox.avow(&["run", "-q"]).expect_code(0);
    sandbox.avow(&["verdict"]).expect_code(0);
    assert_eq!(wrong(&sandbox), "after");
    sandbox.avow(&["run", "-q"]).expect_code(0);
    assert_eq!(deviations(&sandbox, "invalidation")[0]["when"], "after");
    // Nothing was complete, and nobody peeked.
    let sandbox = project();
    sandbox.avow(&["register", "-q"]).expect_code(0);
    sandbox.avow(&["run", "-q", "--only", "measure[dose=0,seed=3]"]).expect_code(0);
    assert_eq!(wrong(&sandbox), "before-values");
    // That stays so, whatever is read later.
    sandbox.avow(&["run", "-q"]).expect_code(0);
    assert_eq!(deviations(&sandbox, "invalidation")[0]["when"], "before-values");
    // Somebody peeked before.
    let sandbox = project();
    sandbox.avow(&["register", "-q"]).expect_code(0);
    sandbox.avow(&["run", "-q", "--only", "measure[dose=0,seed=3]"]).expect_code(0);
    sandbox.avow(&["verdict", "--peek", "-q"]).expect_code(0);
    assert_eq!(wrong(&sandbox), "after");
}

#[test]
fn what_is_declared_wrong_is_wrong_wherever_it_is_used() {
    let sandbox = project();
    sandbox.file("other.yaml", SPEC.replace("experiment: change", "experiment: other"));
    sandbox.avow(&["register", "-q", "other.yaml"]).expect_code(0);
    sandbox.avow(&["run", "-q", "other.yaml"]).expect_code(0);
    sandbox.avow(&["run", "-q", "spec.yaml"]).expect_code(0);
    sandbox
        .avow(&[
            "invalidate",
            "measure[dose=0,seed=3]",
            "--spec",
            "spec.yaml",
            "--reason",
            "the scale was off",
        ])
        .expect_code(0);
    // The other experiment never said so itself.
    let report = sandbox.avow(&["verdict", "other.yaml", "--json"]).with_code(0).json();
    let found: Vec<&Value> =
        report["deviations"].as_array().unwrap().iter().filter(|d| d["class"] == "invalidation").collect();
    assert_eq!(found.len(), 1, "{report}");
    assert_eq!(
        (&found[0]["members"], &found[0]["reason"]),
        (&json!(["measure[dose=0,seed=3]"]), &json!("the scale was off"))
    );
    assert_eq!(report["completeness"]["open"], 2);
    assert_eq!(
        sandbox.executes(&["run", "-q", "other.yaml"]),
        ["measure[dose=0,seed=3]"],
        "and it gave the same"
    );
    assert_eq!(sandbox.executes(&["run", "-q", "spec.yaml"]), [""; 0], "made anew once, for all");
}

#[test]
fn trying_again_is_told_apart_by_whether_values_could_be_read() {
    let incident = |between: &dyn Fn(&Sandbox), whole: bool| {
        let sandbox = project();
        let flag = sandbox.path("off");
        sandbox.file("off", "");
        sandbox.file("avow.toml", format!("[confine]\nallow = [\"{}\"]\n", flag.display()));
        let script = format!(
            "[ \"$1$2\" = 03 ] && [ -e {} ] && exit 1\necho $(($1 + $2)).$(($1 * $2)) > \"$4\"\n",
            flag.display()
        );
        sandbox.file("measure.sh", script);
        sandbox.avow(&["register", "-q"]).expect_code(0);
        let only = ["run", "-q", "-k", "--only", "measure[dose=0,seed=3]"];
        sandbox.avow(if whole { &only[..3] } else { &only[..] }).expect_code(1);
        between(&sandbox);
        sandbox.remove("off");
        sandbox.avow(&["run", "-q"]).expect_code(0);
        let found = deviations(&sandbox, "incident");
        assert_eq!(found.len(), 1, "{found:?}");
        found[0]["when"].as_str().unwrap().to_owned()
    };
    assert_eq!(incident(&|_| {}, false), "before-values");
    let peek = |sandbox: &Sandbox| sandbox.avow(&["table", "--peek"]).expect_code(0);
    assert_eq!(incident(&peek, false), "after");
    // A failure is an outcome: with it the plan was complete, and its values could be read before it was tried again.
    assert_eq!(incident(&|_| {}, true), "after");
}
