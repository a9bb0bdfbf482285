//! Small manuscripts in every format with the right answer for each of their numbers.
//!
//! `tests/manuscripts/NAME` is read against the store below, and every line of `NAME.expected` is one answer in the
//! order of the text: what is printed, its class, then the rule or the key; after the numbers what was recomputed
//! and what could not be read.
#![expect(clippy::unwrap_used, clippy::disallowed_methods, reason = "the tests read manuscripts from files")]

use std::fs;
use std::path::PathBuf;

use avow_manuscript::class::{Resolved, Stock, class};
use avow_manuscript::{Class, Files, Format, Kind, Manuscript, Values};

/// A store with two settings of weight decay, eight seeds each.
struct Shelf(Vec<(Kind, &'static str, &'static str, f64)>);

const PLAIN: [f64; 8] = [0.8711, 0.8764, 0.8829, 0.8852, 0.8894, 0.8937, 0.8968, 0.9029];
const DECAY: [f64; 8] = [0.8956, 0.9009, 0.9074, 0.9097, 0.9139, 0.9182, 0.9213, 0.9274];

fn shelf() -> Shelf {
    let mut all = vec![
        (Kind::Claim, "helps.estimate", "helps", 0.0245),
        (Kind::Claim, "helps.low", "helps", 0.007333),
        (Kind::Claim, "helps.high", "helps", 0.04333),
        (Kind::Claim, "helps.p", "helps", 0.0078125),
        (Kind::Claim, "helps.n", "helps", 8.0),
        (Kind::Claim, "drops.estimate", "drops", -0.1234),
        (Kind::Design, "axes.wd[0]", "wd", 0.0),
        (Kind::Design, "axes.wd[0.1]", "wd", 0.1),
        (Kind::Design, "params.probes", "probes", 100.0),
        (Kind::Summary, "mean(train.accuracy[wd=0])", "accuracy", 0.8873),
        (Kind::Summary, "sd(train.accuracy[wd=0])", "accuracy", 0.0106),
        (Kind::Summary, "mean(train.accuracy[wd=0.1])", "accuracy", 0.9118),
        (Kind::Summary, "mean(train.loss)", "loss", 0.3127),
        (Kind::Summary, "mean(train.time)", "time", 12.345),
        (Kind::Summary, "mean(train.tokens)", "tokens", 1_234_567.0),
        (Kind::Summary, "mean(train.rate)", "rate", 0.000315),
    ];
    for value in PLAIN.into_iter().chain(DECAY) {
        all.push((Kind::Measurement, "", "accuracy", value));
    }
    Shelf(all)
}

impl Shelf {
    fn of(&self, kind: Kind) -> Vec<f64> {
        self.0.iter().filter(|(k, ..)| *k == kind).map(|(.., value)| *value).collect()
    }

    fn values(&self) -> Values {
        let all = Kind::ALL.map(|kind| self.of(kind));
        Values::new(|kind| &all[kind as usize])
    }
}

impl Stock for Shelf {
    fn name(&self, kind: Kind, id: usize) -> &str {
        self.0.iter().filter(|(k, ..)| *k == kind).nth(id).unwrap().2
    }

    fn resolve(&self, key: &str) -> Resolved {
        if let Some((.., value)) = self.0.iter().find(|(_, name, ..)| *name == key && !name.is_empty()) {
            return Resolved::Values(vec![*value]);
        }
        match key {
            "helps.interval" => Resolved::Values(vec![0.007333, 0.04333]),
            "helps.verdict" => Resolved::Words("supported".to_owned()),
            "secret.estimate" => Resolved::Hidden { experiment: "sealed".to_owned() },
            _ => Resolved::Unknown,
        }
    }
}

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/manuscripts")
}

struct Folder;

impl Files for Folder {
    fn read(&self, path: &str) -> Option<String> {
        fs::read_to_string(folder().join(path)).ok()
    }
}

fn answers(name: &str) -> Vec<String> {
    let text = fs::read_to_string(folder().join(name)).unwrap();
    let manuscript = Manuscript::read(name, text, Format::of(name).unwrap(), &Folder);
    let shelf = shelf();
    let findings = class(&manuscript, &shelf.values(), &shelf);
    let flat = &manuscript.flat;
    let mut lines: Vec<String> = Vec::new();
    for finding in findings {
        let printed = flat.text[finding.range.clone()].trim().replace(['\u{a0}', '\u{2009}'], " ");
        let more = finding.rule.map(|rule| rule.word().to_owned()).or(finding.key).unwrap_or_default();
        lines.push(format!("{printed} {} {more}", finding.class.word()).trim_end().to_owned());
        // The place that is underlined holds what is printed, or what stands for it.
        let span = flat.span(&finding.range);
        assert!(flat.files[span.file].text.get(span.start..span.end).is_some(), "{name}: {printed}");
    }
    let checks = manuscript.checks.iter().map(|check| {
        let outcome = serde_json::to_value(check.outcome).unwrap();
        format!("check {} {}", check.code.word(), outcome.as_str().unwrap())
    });
    lines.extend(checks);
    lines.extend(flat.problems.iter().map(|problem| format!("problem {}", problem.what)));
    lines
}

#[test]
fn every_number_of_every_manuscript_has_the_right_answer() {
    let mut names: Vec<String> = fs::read_dir(folder())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter_map(|name| name.strip_suffix(".expected").map(str::to_owned))
        .collect();
    names.sort();
    assert!(names.len() >= 40, "only {} manuscripts", names.len());
    let mut wrong = String::new();
    for name in &names {
        let expected = fs::read_to_string(folder().join(format!("{name}.expected"))).unwrap();
        let expected: Vec<&str> = expected.lines().filter(|line| !line.is_empty()).collect();
        let found = answers(name);
        if found != expected {
            wrong.push_str(&format!(
                "\n== {name}\n-- expected\n{}\n-- found\n{}\n",
                expected.join("\n"),
                found.join("\n")
            ));
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn the_place_of_a_number_is_its_own() {
    let name = "decimals.tex";
    let text = fs::read_to_string(folder().join(name)).unwrap();
    let manuscript = Manuscript::read(name, text, Format::Latex, &());
    let places: Vec<_> = manuscript
        .numbers
        .iter()
        .map(|number| {
            let span = manuscript.flat.span(&number.range);
            let (line, column) = manuscript.flat.place(span.file, span.start);
            (&manuscript.flat.files[span.file].text[span.start..span.end], line, column)
        })
        .collect();
    assert_eq!(places, [("0.912", 4, 35), ("0.887", 4, 50), ("8", 6, 6), ("0.0245", 6, 33)]);
}

#[test]
fn a_number_in_a_notebook_is_found_in_its_json() {
    let text = fs::read_to_string(folder().join("notes.ipynb")).unwrap();
    let manuscript = Manuscript::read("notes.ipynb", text, Format::Notebook, &());
    let of = |printed: &str| {
        let number =
            manuscript.numbers.iter().find(|n| &manuscript.flat.text[n.range.clone()] == printed).unwrap();
        let span = manuscript.flat.span(&number.range);
        &manuscript.flat.files[0].text[span.start..span.end]
    };
    assert_eq!((of("0.912"), of("0.021"), of("0.025")), ("0.912", "0.021", "0.025"));
}

#[test]
fn many_values_make_a_match_of_two_digits_coarse() {
    let many: Vec<f64> = (0..1000).map(|i| f64::from(i) / 1000.0 + 1e-5).collect();
    let values = Values::new(|kind| if kind == Kind::Measurement { &many } else { &[] });
    let manuscript = Manuscript::read("a.txt", "It is 0.50, and 0.50001.".to_owned(), Format::Plain, &());
    let found = class(&manuscript, &values, &Shelf(Vec::new()));
    assert_eq!((found[0].class, found[0].coarse, found[0].total), (Class::Matched, true, 10));
    assert_eq!((found[1].class, found[1].coarse, found[1].total), (Class::Matched, false, 1));
}

mod hostile {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Whatever stands in a file, reading it ends, and every place lies in the file.
        #[test]
        fn nothing_panics(text in "[-a-z0-9\\\\{}$%&~^_#*`'.,:;()\\[\\]<>=@!/|\"\n ×±−é–]{0,200}", format in 0usize..6) {
            let format = [Format::Latex, Format::Markdown, Format::Typst, Format::Notebook, Format::Html, Format::Plain][format];
            check(text, format);
        }

        #[test]
        fn nor_do_commands(parts in prop::collection::vec(0usize..28, 0..40), format in 0usize..6) {
            const PIECES: [&str; 28] = [
                "\\newcommand{\\a}[2]{#1\\a}", "\\a", "\\avow{", "\\avowas{k}{", "}", "{", "\\begin{tabular}{l}", "\\end{tabular}",
                "\\num{1e", "\\SI{2}{\\", "$", "#let a = [", "#table(", ")", "]", "#avow(\"", "\"", "<sup>", "</sup>", "&#x", "1.2",
                "{{ avow k", "}}", "t(3) = 2, p", "= .05", "\u{e9}", "\\frac", "±",
            ];
            let format = [Format::Latex, Format::Markdown, Format::Typst, Format::Notebook, Format::Html, Format::Plain][format];
            check(parts.into_iter().map(|part| PIECES[part]).collect(), format);
        }
    }

    fn check(text: String, format: Format) {
        let manuscript = Manuscript::read("file", text, format, &());
        let shelf = shelf();
        for finding in class(&manuscript, &shelf.values(), &shelf) {
            let span = manuscript.flat.span(&finding.range);
            assert!(span.start <= span.end && span.end <= manuscript.flat.files[span.file].text.len());
            assert!(manuscript.flat.text.get(finding.range).is_some());
        }
    }
}
