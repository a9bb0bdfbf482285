//! Macro files are set by the programs for which they are written: what a reader sees is what the store has.
//!
//! `.ci/run` installs a small TeX, and Typst's compiler among the validators; elsewhere a test without them says that it
//! was skipped.
#![expect(clippy::unwrap_used, reason = "tests")]

use std::io::Write;

use avow_testkit::{Sandbox, Validators};

const SPEC: &str = "\
avow: 1
experiment: set
axes: {dose: [0, 1], seed: [1, 2, 3, 4, 5, 6, 7, 8]}
stages:
  measure:
    run: [sh, measure.sh, '${axes.dose}', '${axes.seed}', '${outputs.result}']
    measurements: {result: result.json}
claims:
  helps: {says: The dose raises the yield., select: yield, compare: {dose: [1, 0]}, rule: {kind: difference, above: 0}}
  harms: {says: It lowers the loss., select: loss_1, compare: {dose: [1, 0]}, rule: {kind: difference, below: 0}}
";
const MEASURE: &str = "printf '{\"yield\": %d.%d, \"loss_1\": %d.%de-6}\\n' $((10 + $2 + $1)) $(($1 * $2)) $((9 - $1)) $2 > \"$3\"\n";

/// Each key with what is to stand on paper, as `pdftotext` prints it.
const KEYS: [(&str, &str); 9] = [
    ("helps.estimate:.2", "1.45"),
    ("helps.interval:.1", "[1.2, 1.7]"),
    ("helps.estimate:+.1", "+1.5"),
    ("helps.estimate:.1%", "145.0 %"),
    ("helps.n", "8"),
    ("harms.estimate:.1e", "−1.0 × 10−6"),
    ("harms.interval:.1e", "[−1.0 × 10−6, −1.0 × 10−6]"),
    ("mean(measure.yield[dose=1]):.3s", "15.9"),
    ("mean(measure.loss_1[dose=0]):.2 kg", "0.00 kg"),
];

fn carried_out() -> Sandbox {
    let sandbox = Sandbox::new(env!("CARGO_BIN_EXE_avow"));
    sandbox.file("avow.toml", "").file("spec.yaml", SPEC).file("measure.sh", MEASURE);
    sandbox.avow(&["run", "-q"]).expect_code(0);
    sandbox
}

/// The text of a PDF file in one line; spaces of any kind are one.
fn text(sandbox: &Sandbox, pdf: &str) -> String {
    let read = sandbox.command("pdftotext").args(["-layout", pdf, "-"]).output().unwrap();
    assert!(read.status.success(), "{}", String::from_utf8_lossy(&read.stderr));
    let text = String::from_utf8_lossy(&read.stdout).replace("-1.0", "−1.0").replace("10-6", "10−6");
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A manuscript that prints every key between brackets with its number, by a command of its language.
fn manuscript(print: impl Fn(&str) -> String) -> String {
    let line = |(number, (key, _)): (usize, &(&str, &str))| format!("({number}: {})\n\n", print(key));
    KEYS.iter().enumerate().map(line).collect()
}

fn insist(text: &str) {
    for (number, (key, value)) in KEYS.iter().enumerate() {
        let wanted = format!("({number}: {value})");
        let plain = |text: &str| text.replace(' ', "");
        assert!(plain(text).contains(&plain(&wanted)), "{key}: no `{wanted}` in\n{text}");
    }
}

#[test]
fn latex_sets_what_the_store_has_from_a_file_and_from_a_style() {
    let sandbox = carried_out();
    if sandbox.command("pdflatex").arg("--version").output().is_err() {
        assert!(std::env::var_os("CI").is_none(), "CI needs the program `pdflatex` (texlive-latex-base)");
        let _ = writeln!(std::io::stderr(), "skipped: no `pdflatex`; Debian's texlive-latex-base has it");
        return;
    }
    let keys = manuscript(|key| format!("\\avow{{{}}}", key.replace('%', "\\%")));
    for (file, load) in [("numbers.tex", "\\input{numbers}"), ("values.sty", "\\usepackage{values}")] {
        let paper = format!(
            "\\documentclass{{article}}\n{load}\n\\begin{{document}}\n{keys}typed: \\avowas{{helps.n}}{{8}}\n\
             in a formula: $x = \\avow{{harms.estimate:.1e}}$\n\\end{{document}}\n"
        );
        sandbox.file("paper.tex", paper);
        sandbox.avow(&["report", "--macros", file, "--for", "paper.tex", "-q"]).expect_code(0);
        let args = ["-interaction=nonstopmode", "-halt-on-error", "paper.tex"];
        let set = sandbox.command("pdflatex").args(args).output().unwrap();
        let log = String::from_utf8_lossy(&set.stdout).into_owned();
        assert!(set.status.success(), "{file}: {log}");
        assert!(!log.contains("avow has no value"), "{file}: {log}");
        let read = text(&sandbox, "paper.pdf");
        insist(&read);
        assert!(read.contains("typed: 8"), "{read}");
        // What was set is found again in the PDF, and none of it is contradicted.
        let audit = sandbox.avow(&["audit", "paper.tex", "--json", "--check"]).with_code(0).json();
        assert!(audit["numbers"].as_array().is_some_and(|numbers| numbers.len() >= KEYS.len()), "{audit:#}");
    }
    // A key that the file lacks shows in the log and on paper.
    sandbox.file("paper.tex", "\\documentclass{article}\n\\input{numbers}\n\\begin{document}\nx \\avow{no.such} y\n\\end{document}\n");
    let set = sandbox.command("pdflatex").args(["-interaction=nonstopmode", "paper.tex"]).output().unwrap();
    assert!(String::from_utf8_lossy(&set.stdout).contains("avow has no value for `no.such'"));
    assert!(text(&sandbox, "paper.pdf").contains("x ?? y"));
}

#[test]
fn typst_sets_what_the_store_has() {
    let sandbox = carried_out();
    let Some(validators) = Validators::find() else { return };
    let keys = manuscript(|key| format!("#avow(\"{key}\")"));
    sandbox.file("paper.typ", format!("#import \"numbers.typ\": *\n{keys}typed: #avow-as(\"helps.n\")[8]\n"));
    sandbox.avow(&["report", "--macros", "numbers.typ", "--for", "paper.typ", "-q"]).expect_code(0);
    let compile = "import typst; typst.compile('paper.typ', output='paper.pdf')";
    validators.python(&sandbox, compile, &[]);
    let read = text(&sandbox, "paper.pdf").replace("10⁻⁶", "10−6");
    insist(&read);
    assert!(read.contains("typed: 8"), "{read}");
    sandbox.avow(&["audit", "paper.typ", "--check"]).expect_code(0);
    // A key that the file lacks is an error of the compiler, not an empty place.
    sandbox.file("paper.typ", "#import \"numbers.typ\": *\n#avow(\"no.such\")\n");
    let fails = "import typst\ntry:\n    typst.compile('paper.typ', output='other.pdf')\n    print('set')\nexcept typst.TypstError as e:\n    print('refused')";
    assert_eq!(validators.python(&sandbox, fails, &[]).trim(), "refused");
}
