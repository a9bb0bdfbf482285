//! Everything that a number, a claim or a file rests on, in each form; and the questions about it.
#![expect(clippy::unwrap_used, reason = "tests")]

use avow_testkit::Sandbox;
use serde_json::Value;

const SPEC: &str = "\
avow: 1
experiment: roots
axes: {wd: [0, 0.1], seed: [1, 2, 3, 4]}
stages:
  split:
    run: [sh, code/split.sh, '${inputs.words}', '${outputs.half}']
    inputs: {words: data/words.txt}
    outputs: {half: half.txt}
  train:
    run: [sh, code/train.sh, '${axes.wd}', '${axes.seed}', '${inputs.half}', '${outputs.result}']
    inputs: {half: split.half}
    env: {FLAVOUR: plain}
    measurements: {result: result.json}
  draw:
    run: [sh, code/draw.sh, '${axes.wd}', '${outputs.plots}']
    inputs: {half: split.half}
    outputs: {plots: plots/}
claims:
  helps:
    says: Decay raises the score.
    select: score
    compare: {wd: [0.1, 0]}
    rule: {kind: difference, above: 0}
";

fn project() -> Sandbox {
    let sandbox = Sandbox::new(env!("CARGO_BIN_EXE_avow"));
    sandbox.file("avow.toml", "").file("spec.yaml", SPEC).file("data/words.txt", "one two\n");
    sandbox.file("code/split.sh", "head -c 3 \"$1\" > \"$2\"\n");
    sandbox.file(
        "code/train.sh",
        "printf '{\"score\": %s.%s}\\n' \"$2\" \"$(echo \"$1\" | tr -d .)\" > \"$4\"\n",
    );
    sandbox.file("code/draw.sh", "mkdir -p \"$2/inner\"; echo \"a figure at $1\" > \"$2/inner/fig.svg\"\n");
    sandbox
}

/// Registered, carried out, and carried out again.
fn done() -> Sandbox {
    let sandbox = project();
    sandbox.avow(&["register", "--accept-warnings"]).expect_code(0);
    sandbox.avow(&["run", "-q"]).expect_code(0);
    sandbox.avow(&["run", "-q"]).expect_code(0);
    sandbox
}

const NUMBER: &str = "train.score[seed=3,wd=0.1]";

/// The one node of a kind for which something holds.
fn node<'a>(lineage: &'a Value, kind: &str, holds: impl Fn(&Value) -> bool) -> &'a Value {
    let nodes = lineage["nodes"].as_object().unwrap().values();
    nodes
        .filter(|node| node["node"] == kind)
        .find(|node| holds(node))
        .unwrap_or_else(|| panic!("no {kind}: {lineage:#}"))
}

#[test]
fn a_number_shows_all_that_it_rests_on() {
    let sandbox = done();
    let said = sandbox.avow(&["lineage", NUMBER, "--json"]).with_code(0).json();
    assert_eq!(said["roots"].as_array().unwrap().len(), 1);
    let number = node(&said, "number", |_| true);
    assert_eq!((&number["value"], &number["member"]), (&3.01.into(), &"train[seed=3,wd=0.1]".into()));
    node(&said, "file", |file| file["path"] == "data/words.txt");
    node(&said, "file", |file| file["path"] == "code/train.sh");
    node(&said, "program", |program| program["word"] == "sh");
    let action = node(&said, "action", |action| action["command"].as_str().unwrap().contains("train.sh"));
    assert_eq!(action["env"]["FLAVOUR"], "plain");
    let machine = node(&said, "machine", |_| true);
    assert!(
        ["name", "system", "cpu"].iter().all(|part| !machine[part].as_str().unwrap().is_empty()),
        "{machine}"
    );
    let registration = node(&said, "registration", |_| true);
    let ledger = sandbox.read("registrations/roots.jsonl");
    assert!(ledger.contains("\"kind\":\"register\"") && registration["kind"] == "register");
    assert_eq!(registration["judged"], true);
    let attempt = node(&said, "attempt", |attempt| attempt["under_registration"] == true);
    let reused = &attempt["reused"][0];
    let runs: Vec<String> = sandbox.history().runs.iter().map(|run| run.name.clone()).collect();
    assert_eq!(runs.len(), 2);
    assert!(
        runs.contains(&reused["run"].as_str().unwrap().to_owned()) && reused["run"] != attempt["run"],
        "{attempt}"
    );
    assert_eq!(reused["experiment"], "roots");
    assert!(said.get("deviations").is_none(), "there are none: {said:#}");
    let text = sandbox.avow(&["lineage", NUMBER]).with_code(0).stdout;
    for part in [
        "train.score = 3.01 (line 1)",
        "under the registration, reused in 1 later run, last in ",
        "ran on: machine ",
        "under: registration ",
        "input `inputs/half.txt`",
        "with FLAVOUR=plain",
        "data/words.txt (",
    ] {
        assert!(text.contains(part), "no `{part}` in\n{text}");
    }
}

#[test]
fn deviations_stand_beside_what_they_concern() {
    let sandbox = done();
    // Another threshold for the claim; and the code of one stage.
    sandbox.replace("spec.yaml", "above: 0}", "above: 0.001}");
    let claim = sandbox.avow(&["lineage", "helps"]).with_code(0).stdout;
    assert!(claim.contains("deviation 1: amendment") && claim.contains("claim `helps`"), "{claim}");
    // A number of the claim, as an audit or a macro file calls it, rests on what the claim rests on.
    for key in ["helps.estimate", "helps.interval", "helps.p"] {
        assert_eq!(sandbox.avow(&["lineage", key]).with_code(0).stdout, claim, "{key}");
    }
    sandbox.avow(&["lineage", "helps.nothing"]).expect_code(2);
    let number = sandbox.avow(&["lineage", NUMBER, "--json"]).with_code(0).json();
    assert!(number.get("deviations").is_none(), "the rule of a claim is no matter of a number: {number:#}");
    sandbox.file("code/draw.sh", "mkdir -p \"$2\"; echo \"another figure at $1\" > \"$2/fig.svg\"\n");
    sandbox.avow(&["run", "-q"]).expect_code(0);
    let figure = sandbox.avow(&["lineage", "draw.plots[wd=0]", "--json"]).with_code(0).json();
    let told = figure["deviations"].as_array().unwrap();
    let of_code =
        told.iter().find(|one| one.to_string().contains("\"code\"")).unwrap_or_else(|| panic!("{figure:#}"));
    assert_eq!(of_code["name"], "draw", "{of_code}");
    // The number by which verdicts refer to it.
    let verdict = sandbox.avow(&["verdict", "--json"]).with_code(0).json();
    let mut same = of_code.clone();
    let number = same.as_object_mut().unwrap().remove("number").unwrap().as_u64().unwrap() as usize;
    assert_eq!(verdict["deviations"][number - 1], same);
}

#[test]
fn any_file_is_found_by_its_content_wherever_it_lies() {
    let sandbox = done();
    sandbox.avow(&["get", "draw.plots[wd=0.1]", "-o", "copied"]).expect_code(0);
    // From within a written folder, under another name, in another place.
    sandbox.copy(sandbox.path("copied/inner/fig.svg"), "paper/figure-3.svg");
    let text = sandbox.avow(&["lineage", "paper/figure-3.svg"]).with_code(0).stdout;
    assert!(text.contains("in `inner/fig.svg`: tree:") && text.contains("draw[wd=0.1] (stands)"), "{text}");
    assert!(!text.contains("draw[wd=0]"), "the other figure has other bytes: {text}");
    let absolute = sandbox.path("paper/figure-3.svg").display().to_string();
    assert_eq!(sandbox.avow(&["lineage", &absolute]).with_code(0).stdout, text);
    let folder = sandbox.avow(&["lineage", "copied"]).with_code(0).stdout;
    assert!(folder.contains("made by: draw[wd=0.1]"), "{folder}");
    // An input is found as well, and one that was changed since says so.
    let input = sandbox.avow(&["lineage", "data/words.txt"]).with_code(0);
    assert!(
        input.stdout.starts_with("data/words.txt (") && input.stderr.is_empty(),
        "{}{}",
        input.stdout,
        input.stderr
    );
    sandbox.file("paper/figure-3.svg", "drawn by hand\n");
    let unknown = sandbox.avow(&["lineage", "paper/figure-3.svg"]).with_code(2);
    assert!(unknown.stderr.contains("nothing in the store has the content of"), "{}", unknown.stderr);
    // With several specs in the folder nobody needs to say which one wrote it.
    sandbox.file("other.yaml", "avow: 1\nexperiment: other\nstages:\n  say:\n    run: [sh, say.sh, '${outputs.out}']\n    outputs: {out: out.txt}\n");
    sandbox.file("say.sh", "echo said > \"$1\"\n");
    sandbox.avow(&["run", "other.yaml", "-q"]).expect_code(0);
    sandbox.avow(&["get", "say.out", "--spec", "other.yaml", "-o", "said.txt"]).expect_code(0);
    let said = sandbox.avow(&["lineage", "said.txt"]).with_code(0).stdout;
    assert!(said.contains("made by: say (stands)"), "{said}");
    let named = sandbox.avow(&["lineage", "other/say.out"]).with_code(0).stdout;
    assert_eq!(named, said);
}

#[test]
fn every_form_says_the_same() {
    let sandbox = done();
    let form = |form: &str| sandbox.avow(&["lineage", "helps", "--format", form]).with_code(0).stdout;
    let (mermaid, dot, svg) = (form("mermaid"), form("dot"), form("svg"));
    assert!(
        mermaid.starts_with("flowchart LR\n")
            && dot.starts_with("digraph lineage {\n")
            && svg.starts_with("<svg ")
    );
    for picture in [&mermaid, &dot, &svg] {
        for part in
            ["claim helps", "8 members", "split", "words.txt", "code/train.sh", "registration ", "machine "]
        {
            // Mermaid spells an underscore and the like as entities; none of these has any.
            assert!(picture.contains(part), "no `{part}` in\n{picture}");
        }
    }
    well_formed(&sandbox, &svg);
    drawn_by_graphviz(&sandbox, &dot);
    // A drawing refers to nothing elsewhere.
    assert!(!svg.replace("http://www.w3.org/2000/svg", "").contains("://"), "{svg}");
    let refused = sandbox.avow(&["lineage", NUMBER, "--why-not-registered", "--format", "svg"]).with_code(2);
    assert!(refused.stderr.contains("hint:"), "{}", refused.stderr);
}

fn well_formed(sandbox: &Sandbox, svg: &str) {
    sandbox.file("picture.svg", svg);
    let script = "import xml.dom.minidom; xml.dom.minidom.parse('picture.svg')";
    let parsed = sandbox.command("python3").args(["-c", script]).output().unwrap();
    assert!(parsed.status.success(), "{}", String::from_utf8_lossy(&parsed.stderr));
}

/// Graphviz reads what is written for it; where CI runs, it must be there.
fn drawn_by_graphviz(sandbox: &Sandbox, dot: &str) {
    sandbox.file("picture.dot", dot);
    let Ok(ran) = sandbox.command("dot").args(["-Tplain", "picture.dot"]).output() else {
        assert!(std::env::var_os("CI").is_none(), "CI needs the program `dot` (graphviz)");
        return;
    };
    let (said, complaints) = (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
    assert!(ran.status.success() && complaints.is_empty(), "{complaints}");
    let count = |word: &str| said.lines().filter(|line| line.starts_with(word)).count();
    assert_eq!(
        count("node "),
        dot.lines().filter(|line| line.contains("[label=") && !line.contains("->")).count()
    );
    assert_eq!(count("edge "), dot.lines().filter(|line| line.contains("->")).count());
}

#[test]
fn of_many_members_the_first_is_written_out_and_the_others_are_counted() {
    let sandbox = project();
    let seeds: Vec<String> = (1..=60).map(|seed| seed.to_string()).collect();
    sandbox.replace("spec.yaml", "[1, 2, 3, 4]", &format!("[{}]", seeds.join(", ")));
    // One of them fails: that is not lost among those alike.
    sandbox.file("code/train.sh", "test \"$2\" != 17 || exit 3\nprintf '{\"score\": %s.%s}\\n' \"$2\" \"$(echo \"$1\" | tr -d .)\" > \"$4\"\n");
    sandbox.avow(&["run", "-q", "-k"]).expect_code(1);
    let lines = |args: &[&str]| sandbox.avow(&[&["lineage", "train"], args].concat()).with_code(0).stdout;
    let folded = lines(&[]);
    assert!(folded.contains("… and 119 more of train (2 failed); `--all` writes them out"), "{folded}");
    assert!(folded.lines().count() < 30, "{folded}");
    let all = lines(&["--all"]);
    assert_eq!(all.lines().filter(|line| line.starts_with("train[seed=")).count(), 120, "{all}");
    let boxes = |svg: String| svg.matches("<rect ").count();
    let (few, every) = (boxes(lines(&["--format", "svg"])), boxes(lines(&["--format", "svg", "--all"])));
    assert!(few < 15 && every > 120, "{few} {every}");
    let json = sandbox.avow(&["lineage", "train", "--json"]).with_code(0).json();
    assert_eq!(json["roots"].as_array().unwrap().len(), 120, "JSON leaves nothing out");
}

#[test]
fn why_something_is_not_registered_is_said_with_the_members_concerned() {
    let sandbox = project();
    sandbox.avow(&["run", "-q", "--only", "train[seed=3,wd=0.1]"]).expect_code(0);
    let why = |what: &str| sandbox.avow(&["lineage", what, "--why-not-registered"]).with_code(0).stdout;
    assert!(why(NUMBER).contains("nothing of this experiment was ever registered"), "{}", why(NUMBER));
    sandbox.avow(&["register", "--accept-warnings"]).expect_code(0);
    sandbox.avow(&["run", "-q"]).expect_code(0);
    let older = why(NUMBER);
    assert!(
        older.contains("it is not as registered in")
            && older.contains("started before the registration: train[seed=3,wd=0.1]"),
        "{older}"
    );
    assert!(older.contains("as preparation may be: split"), "{older}");
    let sound = why("train.score[seed=4,wd=0]");
    assert!(sound.starts_with("it is as registered in "), "{sound}");
    // Another plan: a new seed is not in the registered one, an old one is the same work in it.
    sandbox.replace("spec.yaml", "[1, 2, 3, 4]", "[1, 2, 3, 4, 5]");
    sandbox.avow(&["run", "-q"]).expect_code(0);
    let added = why("train.score[seed=5,wd=0]");
    assert!(added.contains("another plan is registered") && added.contains("axis `seed`"), "{added}");
    assert!(added.contains("the registered plan does not have train[seed=5,wd=0]"), "{added}");
    assert!(!why("train.score[seed=4,wd=0]").contains("does not have"));
    sandbox.replace("spec.yaml", "FLAVOUR: plain", "FLAVOUR: sweet");
    sandbox.avow(&["run", "-q"]).expect_code(0);
    let other = why("train.score[seed=4,wd=0]");
    assert!(other.contains("under the registered plan it is other work: train[seed=4,wd=0]"), "{other}");
    let json = sandbox
        .avow(&["lineage", "train.score[seed=4,wd=0]", "--why-not-registered", "--json"])
        .with_code(0)
        .json();
    let reasons: Vec<&str> =
        json["reasons"].as_array().unwrap().iter().map(|r| r["reason"].as_str().unwrap()).collect();
    assert!(reasons.contains(&"other-plan") && reasons.contains(&"other-work"), "{reasons:?}");
}

#[test]
fn two_numbers_are_equal_except_for_what_differs() {
    let sandbox = done();
    let diff = |a: &str, b: &str| sandbox.avow(&["lineage", "--diff", a, b]).with_code(0).stdout;
    let decay = diff("train.score[seed=3,wd=0]", "train.score[seed=3,wd=0.1]");
    assert!(
        decay.starts_with("train[seed=3,wd=0] and train[seed=3,wd=0.1] are equal except `wd`: 0 → 0.1\n"),
        "{decay}"
    );
    assert!(!decay.contains("command"), "the command follows from the axis: {decay}");
    let both = diff("train.score[seed=1,wd=0]", "train.score[seed=2,wd=0.1]");
    assert!(both.contains("equal except `seed`: 1 → 2, `wd`: 0 → 0.1"), "{both}");
    assert!(diff(NUMBER, NUMBER).contains("are the same work"), "{}", diff(NUMBER, NUMBER));
    // Another plan beside this one, which differs in code and in an input.
    sandbox.copy(sandbox.path("spec.yaml"), "other.yaml");
    sandbox.replace("other.yaml", "experiment: roots", "experiment: other");
    sandbox.replace("other.yaml", "data/words.txt", "data/more.txt").file("data/more.txt", "two one\n");
    sandbox.replace("other.yaml", "FLAVOUR: plain", "FLAVOUR: sweet");
    sandbox.avow(&["run", "other.yaml", "-q"]).expect_code(0);
    let plans = diff("roots/train.score[seed=3,wd=0]", "other/train.score[seed=3,wd=0]");
    assert!(plans.contains("env `FLAVOUR`: plain → sweet"), "{plans}");
    assert!(
        plans.contains("split: input `words`: data/words.txt (") && plans.contains("data/more.txt ("),
        "{plans}"
    );
    assert!(plans.contains("through split, train"), "{plans}");
    let json = sandbox
        .avow(&[
            "lineage",
            "--diff",
            "roots/train.score[seed=3,wd=0]",
            "roots/train.score[seed=3,wd=0.1]",
            "--json",
        ])
        .with_code(0)
        .json();
    assert_eq!(json["difference"]["axes"], serde_json::json!([{"axis": "wd", "a": "0", "b": "0.1"}]));
    assert_eq!(json["difference"]["work"], serde_json::json!([]));
    let many = sandbox.avow(&["lineage", "--diff", "roots/train.score", "roots/train.score"]).with_code(2);
    assert!(many.stderr.contains("of 8 members"), "{}", many.stderr);
}
