//! What a spec leaves out, and what the checker finds for it.

mod fixture;

use avow_model::plan::Environment;
use avow_spec::{Lowered, plain};
use fixture::{Project, check, folder, project};

const HEAD: &str = "avow: 1\nexperiment: defaults\naxes: {seed: {seeds: 8}}\n";

fn stage(body: &str, world: &Project) -> (Lowered, String) {
    let text =
        format!("{HEAD}stages:\n  one:\n    measurements: [r.json]\n    {}\n", body.replace('\n', "\n    "));
    let (diagnostics, lowered) = check(&text, world);
    (lowered.expect("a mapping"), plain(&diagnostics, &text))
}

fn environment(body: &str, world: &Project) -> Option<Environment> {
    let (lowered, words) = stage(body, world);
    lowered.plan.unwrap_or_else(|| panic!("{words}")).stages.remove(0).environment
}

#[test]
fn the_lock_file_beside_the_spec_is_the_environment_of_python_stages() {
    let mut world = project();
    let python = "run: python3 train.py ${axes.seed}";
    assert_eq!(environment(python, &world), None);
    world.files.insert("requirements.txt".to_owned(), "numpy==1\n".to_owned());
    assert_eq!(environment(python, &world).unwrap().path, "requirements.txt");
    world.beside = "env".to_owned();
    assert_eq!(environment(python, &world).unwrap().path, "env/uv.lock");
    assert_eq!(environment(python, &world).unwrap().manager, "uv");
    assert_eq!(environment("run: sort ${axes.seed}", &world), None);
    assert_eq!(environment("run: python3 train.py ${axes.seed}\nenvironment: none", &world), None);
    let given = environment("run: python3 train.py ${axes.seed}\nenvironment: {pip: env/pinned.txt}", &world);
    assert_eq!(given.unwrap().path, "env/pinned.txt");
}

#[test]
fn code_is_what_the_command_names_and_imports() {
    let world = project();
    let code = |body: &str| {
        let (lowered, words) = stage(body, &world);
        assert!(lowered.plan.is_some(), "{words}");
        lowered.code["one"].clone()
    };
    assert_eq!(
        code("run: python3 -m nets.model ${axes.seed}"),
        ["nets/__init__.py", "nets/layers.py", "nets/model.py"]
    );
    assert_eq!(code("run: python3 -c 'import score' ${axes.seed}"), ["score.py"]);
    assert_eq!(
        code("run: ./prepare.sh --config=env/pinned.txt ${axes.seed}"),
        ["env/pinned.txt", "prepare.sh"]
    );
    assert_eq!(code("run: cat data/all.csv ${axes.seed}\ninputs: {d: data/all.csv}"), Vec::<String>::new());
    assert_eq!(code("run: python3 -m pytest ${axes.seed}\ncode: []"), Vec::<String>::new());
    assert_eq!(
        code("run: [python3, score.py, \"${axes.seed}\"]\ncode: [nets/, score.py]"),
        ["nets", "score.py"]
    );
}

#[test]
fn programs_include_the_interpreters_of_scripts() {
    let (lowered, words) =
        stage("run: ./prepare.sh ${axes.seed} | sort && env A=1 python3 score.py", &project());
    let plan = lowered.plan.unwrap_or_else(|| panic!("{words}"));
    let programs: Vec<&String> = plan.stages[0].toolchain.keys().collect();
    assert_eq!(programs, ["/bin/sh", "env", "python3", "sort"]);
}

#[test]
fn excluded_pairs_are_not_planned() {
    let claim = "claims:\n  one: {select: acc, compare: {wd: [0, 1]}, rule: {kind: difference, above: 0}}\n";
    let spec = |exclude: &str| {
        format!(
            "avow: 1\nexperiment: e\naxes: {{wd: [0, 1], seed: [1, 2, 3, 4, 5, 6, 7, 8]}}\n{exclude}stages:\n  \
             one: {{run: \"python3 score.py ${{axes.wd}} ${{axes.seed}}\", measurements: [r.json]}}\n{claim}"
        )
    };
    let n = |exclude: &str| check(&spec(exclude), &project()).1.unwrap().reach[0].n;
    assert_eq!(n(""), Some(8));
    assert_eq!(n("exclude: [{seed: [1, 2]}]\n"), Some(6));
    assert_eq!(n("exclude: [{seed: 1, wd: 0}, axes.seed == 2 && axes.wd == 1]\n"), Some(6));
}

#[test]
fn an_error_anywhere_gives_no_plan_and_a_check_still_finds_the_rest() {
    let text = format!(
        "{HEAD}nonsense: 1\nstages:\n  one: {{run: \"python3 score.py ${{axes.sed}} ${{axes.seed}}\", measurements: [r.json]}}\n"
    );
    let (diagnostics, lowered) = check(&text, &project());
    assert!(lowered.unwrap().plan.is_none());
    let codes: Vec<&str> = diagnostics.iter().map(|d| d.code).collect();
    assert_eq!(codes, ["unknown-key", "unknown-axis"]);
}

#[test]
#[expect(clippy::disallowed_methods, reason = "a test reads the guide")]
fn the_examples_of_the_guide_are_specs() {
    let guide = std::fs::read_to_string(folder("docs/language.md")).unwrap();
    let examples: Vec<&str> =
        guide.split("```yaml\n").skip(1).map(|rest| rest.split("```").next().unwrap()).collect();
    assert!(examples.len() >= 4);
    for text in examples {
        let (diagnostics, lowered) = check(text, &project());
        assert!(lowered.unwrap().plan.is_some(), "{text}\n{}", plain(&diagnostics, text));
    }
}
