//! Numbers in manuscripts against a real store, and macro files. Damage of a whole project is in `damages.rs`.
#![expect(clippy::unwrap_used, reason = "tests")]

use std::process::Command;

use avow_testkit::Sandbox;
use serde_json::Value;

const SPEC: &str = "\
avow: 1
experiment: promise
axes: {dose: [0, 1], seed: [1, 2, 3, 4, 5, 6, 7, 8]}
stages:
  prepare:
    run: [sh, prepare.sh, '${outputs.base}']
    outputs: {base: base.txt}
  measure:
    run: [sh, measure.sh, '${axes.dose}', '${axes.seed}', '${inputs.base}', '${outputs.result}']
    inputs: {base: prepare.base}
    measurements: {result: result.json}
claims:
  helps:
    says: The dose raises the yield.
    select: measure.yield
    compare: {dose: [1, 0]}
    rule: {kind: difference, above: 0}
";

/// The yield is 10 + seed without the dose; with it 1 + seed/10 more: 1.45 on average.
const MEASURE: &str =
    "printf '{\"yield\": %d.%d}\\n' \"$(($1 + $2 + $(cat \"$3\")))\" \"$(($1 * $2))\" > \"$4\"\n";

fn project() -> Sandbox {
    let sandbox = Sandbox::new(env!("CARGO_BIN_EXE_avow"));
    sandbox.file("avow.toml", "results = \"results\"\n").file("spec.yaml", SPEC);
    sandbox.file("prepare.sh", "echo 10 > \"$1\"\n").file("measure.sh", MEASURE);
    sandbox
}

fn carried_out() -> Sandbox {
    let sandbox = project();
    sandbox.avow(&["run", "-q"]).expect_code(0);
    sandbox
}

const PAPER: &str = r"\documentclass{article}
\begin{document}
The yield rose by 1.45 on average over 8 seeds, from 14.50 to 15.95.

With the dose the yield was 15.90. The least was 1.44.

We saw a yield of 19.8 once, $t(14) = 2.31$, $p = .002$.
\end{document}
";

/// Printed text and class of every number.
fn classes(audit: &Value) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    audit["numbers"].as_array().unwrap().iter().map(|n| (text(&n["printed"]), text(&n["class"]))).collect()
}

#[test]
fn every_number_of_a_paper_is_classed() {
    let sandbox = carried_out();
    sandbox.file("paper.tex", PAPER);
    let audit = sandbox.avow(&["audit", "paper.tex", "--json"]).with_code(0).json();
    let expected = [
        ("1.45", "matched"),
        ("8", "matched"),
        ("14.50", "matched"),
        ("15.95", "matched"),
        ("15.90", "contradicted"),
        ("1.44", "unbound"),
        ("19.8", "matched"),
        ("14", "aside"),
        ("2.31", "unbound"),
        (".002", "unbound"),
    ];
    let expected: Vec<(String, String)> = expected.map(|(a, b)| (a.to_owned(), b.to_owned())).to_vec();
    assert_eq!(classes(&audit), expected);
    let first = &audit["numbers"][0];
    assert_eq!((&first["line"], &first["column"], &first["end_column"]), (&3.into(), &19.into(), &23.into()));
    assert_eq!(first["candidates"][0]["key"], "helps.estimate");
    assert_eq!(audit["numbers"][4]["candidates"][0]["key"], "mean(measure.yield[dose=1])");
    assert_eq!(audit["checks"][0]["outcome"], "inconsistent");
    // The greatest of sixteen cells.
    let chosen = &audit["numbers"][6]["candidates"][0];
    let selection = chosen.get("selection").unwrap_or_else(|| panic!("{audit:#}"));
    assert_eq!((&selection["best"], &selection["of"]), (&"maximum".into(), &16.into()));
    assert_eq!(selection["over"], serde_json::json!(["dose", "seed"]));
}

#[test]
fn people_see_the_line_underlined() {
    let sandbox = carried_out();
    sandbox.file("paper.tex", PAPER);
    let run = sandbox.avow(&["audit", "paper.tex"]).with_code(0);
    for part in [
        "error[contradicted]: 15.90 is close to `mean(measure.yield[dose=1])` = 15.95 over 8 values of `seed`, which the text names",
        "--> paper.tex:5:29",
        "5 | With the dose the yield was 15.90. The least was 1.44.",
        "  |                             ^^^^^",
        "error[p]: p = .002 does not follow from its statistic: it should be 0.03",
        "note[chosen]: equal to `measure.yield[dose=1,seed=8]` = 19.8; maximum of 16 cells over `dose`, `seed`",
        "9 numbers: 1 contradicted, 5 equal to something stored, 3 unexplained, 1 set aside; 1 statistic that cannot be so",
    ] {
        assert!(run.stdout.contains(part), "no `{part}` in\n{}", run.stdout);
    }
    assert!(!run.stdout.contains("set aside:"), "{}", run.stdout);
    let all = sandbox.avow(&["audit", "paper.tex", "--all"]).with_code(0).stdout;
    assert!(
        all.contains("set aside: degrees-of-freedom") && all.contains("equal to `helps.estimate` = 1.45"),
        "{all}"
    );
    sandbox.avow(&["audit", "paper.tex", "--check"]).expect_code(4);
    sandbox.file("good.md", "The yield rose by 1.45; the rest is 1.444.\n");
    sandbox.avow(&["audit", "good.md", "--check"]).expect_code(0);
    sandbox.avow(&["audit", "good.md", "--check", "--strict"]).expect_code(7);
    sandbox.avow(&["audit", "absent.md"]).expect_code(2);
    sandbox.avow(&["audit", "spec.yaml"]).expect_code(2);
    sandbox.file("latin.txt", b"caf\xe9 1.45".as_slice()).avow(&["audit", "latin.txt"]).expect_code(2);
}

/// What SARIF 2.1.0 asks of a log, as far as this one uses it.
fn is_sarif(log: &Value) {
    assert_eq!(log["version"], "2.1.0");
    let run = &log["runs"][0];
    let driver = &run["tool"]["driver"];
    assert_eq!(driver["name"], "avow");
    let rules = driver["rules"].as_array().unwrap();
    let results = run["results"].as_array().unwrap();
    assert!(!results.is_empty());
    for result in results {
        let index = result["ruleIndex"].as_u64().unwrap() as usize;
        assert_eq!(rules[index]["id"], result["ruleId"]);
        assert!(rules[index]["shortDescription"]["text"].as_str().unwrap() != result["ruleId"]);
        assert!(["error", "warning", "note", "none"].contains(&result["level"].as_str().unwrap()));
        assert!(!result["message"]["text"].as_str().unwrap().is_empty());
        let place = &result["locations"][0]["physicalLocation"];
        let uri = place["artifactLocation"]["uri"].as_str().unwrap();
        assert!(uri.is_ascii() && !uri.contains([' ', '\\']), "{uri}");
        let number = |key: &str| place["region"][key].as_u64().unwrap();
        assert!(number("startLine") >= 1 && number("startColumn") >= 1);
        assert!((number("endLine"), number("endColumn")) >= (number("startLine"), number("startColumn")));
    }
}

#[test]
fn code_hosts_get_sarif() {
    let sandbox = carried_out();
    sandbox.file("a paper.tex", PAPER);
    let log = sandbox.avow(&["audit", "a paper.tex", "--format", "sarif"]).with_code(0).json();
    is_sarif(&log);
    let first = &log["runs"][0]["results"][0];
    assert_eq!((&first["ruleId"], &first["level"]), (&"contradicted".into(), &"error".into()));
    assert_eq!(first["locations"][0]["physicalLocation"]["artifactLocation"]["uri"], "a%20paper.tex");
}

#[test]
fn a_macro_file_is_bound_and_grows_stale() {
    let sandbox = carried_out();
    let paper = "\\input{numbers}\n\\begin{document}\nA rise of \\avow{helps.estimate:.2} \\avow{helps.interval:.1}, $p = \\avow{helps.p}$,\n\
                 to \\avow{mean(measure.yield[dose=1]):.3s}.\n\\end{document}\n";
    sandbox.file("paper.tex", paper);
    sandbox.avow(&["report", "--macros", "numbers.tex", "--for", "paper.tex"]).expect_code(0);
    let text = sandbox.read("numbers.tex");
    assert!(
        text.contains("\\avowdef{helps.estimate:.2}{1.45}")
            && text.contains("\\avowdef{mean(measure.yield[dose=1]):.3s}{15.9}"),
        "{text}"
    );
    let audit = sandbox.avow(&["audit", "paper.tex", "--json", "--check"]).with_code(0).json();
    assert!(classes(&audit).iter().all(|(_, class)| class == "current"), "{audit:#}");
    // Another measurement: the file says what no longer is so.
    sandbox.replace("measure.sh", "%d.%d", "1%d.%d").avow(&["run", "-q"]).expect_code(0);
    let stale = sandbox.avow(&["audit", "paper.tex"]).with_code(6);
    assert!(
        stale.stdout.contains("error[stale-macro]: `mean(measure.yield[dose=0])` is 114.5 now"),
        "{}",
        stale.stdout
    );
    assert!(stale.stderr.contains("avow report --macros"), "{}", stale.stderr);
    sandbox.avow(&["report", "--macros", "numbers.tex", "--for", "paper.tex"]).expect_code(0);
    sandbox.avow(&["audit", "paper.tex", "--check"]).expect_code(0);
    // Edited by hand.
    sandbox.replace(
        "numbers.tex",
        "\\avowdef{helps.estimate:.2}{1.45}",
        "\\avowdef{helps.estimate:.2}{2.45}",
    );
    let edited = sandbox.avow(&["audit", "paper.tex"]).with_code(6);
    assert!(edited.stdout.contains("`helps.estimate:.2` is 1.45 now"), "{}", edited.stdout);
    assert!(edited.stdout.contains("error[stale]"), "{}", edited.stdout);
}

#[test]
fn the_audit_of_the_project_finds_stale_macro_files_wherever_they_lie() {
    let sandbox = carried_out();
    sandbox.file("paper/sections/keep", "");
    sandbox.avow(&["report", "--macros", "paper/sections/numbers.typ", "-q"]).expect_code(0);
    sandbox.avow(&["report", "--macros", "numbers.sty", "-q"]).expect_code(0);
    // Neither a file of somebody else nor one about another experiment says anything about this one.
    sandbox.file("other.tex", "\\def\\avowdef#1#2{}\n\\avowdef{helps.estimate}{9}\n");
    let foreign = sandbox.read("numbers.sty").replace("experiment promise,", "experiment elsewhere,");
    sandbox.file("foreign.sty", foreign);
    let sound = sandbox.avow(&["audit"]).with_code(0);
    assert!(sound.stdout.contains("nothing is damaged"), "{}", sound.stdout);
    sandbox.replace("measure.sh", "%d.%d", "1%d.%d").avow(&["run", "-q"]).expect_code(0);
    let stale = sandbox.avow(&["audit"]).with_code(6).stdout;
    for file in ["numbers.sty", "paper/sections/numbers.typ"] {
        assert!(stale.contains(&format!("damaged: {file}:")), "{stale}");
    }
    assert!(
        stale.contains("`mean(measure.yield[dose=0])` is 114.5 now") && !stale.contains("other.tex"),
        "{stale}"
    );
    assert!(!stale.contains("foreign.sty"), "{stale}");
    let json = sandbox.avow(&["audit", "--json"]).with_code(6).json();
    assert!(
        json["stale_macros"].as_array().unwrap().iter().all(|one| one["line"].as_u64().unwrap() > 1),
        "{json:#}"
    );
}

#[test]
fn latex_prints_what_the_macro_file_says() {
    let Ok(version) = Command::new("pdflatex").arg("--version").output() else {
        eprintln!("no TeX here: nothing was compiled");
        return;
    };
    assert!(version.status.success());
    let sandbox = carried_out();
    sandbox.file("paper.tex", "\\documentclass{article}\\input{numbers}\\begin{document}\nA\\avow{helps.estimate:.2}B \\avow{no.such}\n\\end{document}\n");
    sandbox.avow(&["report", "--macros", "numbers.tex"]).expect_code(0);
    let ran = sandbox.command("pdflatex").args(["-interaction=nonstopmode", "paper.tex"]).output().unwrap();
    let said = String::from_utf8_lossy(&ran.stdout).into_owned();
    assert!(ran.status.success() && said.contains("avow has no value for"), "{said}");
}

#[test]
fn typst_and_markdown_are_bound_as_well() {
    let sandbox = carried_out();
    sandbox.avow(&["report", "--macros", "numbers.typ"]).expect_code(0);
    sandbox.file("paper.typ", "#import \"numbers.typ\": *\nA rise of #avow(\"helps.estimate:.2\").\n");
    let audit = sandbox.avow(&["audit", "paper.typ", "--json", "--check"]).with_code(0).json();
    assert_eq!(classes(&audit), [("1.45".to_owned(), "current".to_owned())]);
    sandbox.file("paper.md", "A rise of {{ avow helps.estimate:.2 }} in {{ avow helps.n = 8 }} pairs.\n");
    sandbox.avow(&["report", "--fill", "paper.md", "-o", "filled.md"]).expect_code(0);
    assert_eq!(sandbox.read("filled.md"), "A rise of 1.45 in 8 pairs.\n");
    sandbox.file("wrong.md", "Größe:\nof {{ avow helps.nothing }}");
    let run = sandbox.avow(&["report", "--fill", "wrong.md", "-o", "out.md"]).with_code(2);
    assert!(
        run.stderr.contains("wrong.md:2:12: nothing stored is called `helps.nothing`")
            && !sandbox.has("out.md"),
        "{}",
        run.stderr
    );
    sandbox.avow(&["report", "--macros", "numbers.doc"]).expect_code(2);
}

#[test]
fn hidden_values_stay_hidden() {
    let sandbox = project();
    sandbox.avow(&["register", "--accept-warnings"]).expect_code(0);
    sandbox.avow(&["run", "-q", "--only", "measure[dose=1,seed=8]"]).expect_code(0);
    sandbox.file("paper.md", "The yield was 19.8, at dose 1: {{ avow helps.estimate = 19.7 }}, {{ avow measure.yield[dose=1,seed=8] }}.\n");
    let run = sandbox.avow(&["audit", "paper.md", "--json"]).with_code(0);
    assert_eq!(run.json()["hidden"], serde_json::json!(["promise"]));
    let classes: Vec<String> = classes(&run.json()).into_iter().map(|(_, class)| class).collect();
    // Equal and unequal look alike.
    assert_eq!(classes, ["unbound", "unbound", "hidden", "hidden"]);
    assert!(!run.stdout.contains("candidates"), "{}", run.stdout);
    sandbox.avow(&["audit", "paper.md", "--check"]).expect_code(5);
    sandbox.avow(&["report", "--macros", "numbers.tex"]).expect_code(5);
    sandbox.avow(&["report", "--fill", "paper.md", "-o", "out.md"]).expect_code(5);
    assert!(!sandbox.has("numbers.tex") && !sandbox.has("out.md"));
    let project = sandbox.avow(&["audit", "--json"]).with_code(0);
    assert!(
        !project.stdout.contains("19.8") && project.json()["reports"][0]["hidden"] == true,
        "{}",
        project.stdout
    );
    // Whoever looks is written down.
    sandbox.avow(&["report", "--macros", "numbers.tex", "--peek"]).expect_code(0);
    assert!(sandbox.read("registrations/promise.jsonl").contains("exposure"));
}

#[test]
fn the_text_of_a_pdf_file_is_read_where_a_program_for_it_is() {
    let sandbox = carried_out();
    sandbox.file("paper.pdf", pdf("The yield rose by 1.45 over 8 seeds."));
    let run = sandbox.avow(&["audit", "paper.pdf", "--json"]);
    if Command::new("pdftotext").arg("-v").output().is_err() {
        assert_eq!(run.code, 8);
        assert!(run.stderr.contains("poppler-utils"), "{}", run.stderr);
        return;
    }
    let audit = run.with_code(0).json();
    let expected = [("1.45", "matched"), ("8", "matched")].map(|(a, b)| (a.to_owned(), b.to_owned()));
    assert_eq!(classes(&audit), expected);
    sandbox.file("broken.pdf", "no pdf").avow(&["audit", "broken.pdf"]).expect_code(2);
}

/// The smallest PDF file with one line of text.
fn pdf(text: &str) -> Vec<u8> {
    let stream = format!("BT /F1 12 Tf 40 700 Td ({text}) Tj ET");
    let objects = [
        "<< /Type /Catalog /Pages 2 0 R >>".to_owned(),
        "<< /Type /Pages /Kids [3 0 R] /Count 1 >>".to_owned(),
        "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R /Resources << /Font << /F1 5 0 R >> >> >>".to_owned(),
        format!("<< /Length {} >>\nstream\n{stream}\nendstream", stream.len()),
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>".to_owned(),
    ];
    let mut out = "%PDF-1.4\n".to_owned();
    let mut places = Vec::new();
    for (index, object) in objects.iter().enumerate() {
        places.push(out.len());
        out.push_str(&format!("{} 0 obj\n{object}\nendobj\n", index + 1));
    }
    let start = out.len();
    out.push_str("xref\n0 6\n0000000000 65535 f \n");
    for place in places {
        out.push_str(&format!("{place:010} 00000 n \n"));
    }
    out.push_str(&format!("trailer << /Size 6 /Root 1 0 R >>\nstartxref\n{start}\n%%EOF\n"));
    out.into_bytes()
}
