//! No spec, however large, deep or strange, may crash, hang or exhaust memory.
//!
//! Nothing here measures time: a product that was expanded, or a walk that was exponential, would simply not
//! come to an end within the memory and the patience of a test run.

mod fixture;

use avow_model::expand;
use avow_spec::{full, plain, read};
use fixture::{check, project, specs};
use proptest::prelude::*;

fn codes(text: &str) -> Vec<&'static str> {
    check(text, &project()).0.iter().map(|d| d.code).collect()
}

const HEAD: &str = "avow: 1\nexperiment: hostile\n";

#[test]
fn a_trillion_cells_are_three_axes() {
    let text = format!(
        "{HEAD}axes: {{a: {{range: [0, 10000]}}, b: {{range: [0, 10000]}}, c: {{range: [0, 1000]}}, seed: {{seeds: 10}}}}\n\
         exclude: [axes.a > axes.b && axes.c == 3]\n\
         stages:\n  s: {{run: \"python3 train.py ${{axes.a}} ${{axes.b}} ${{axes.c}} ${{axes.seed}}\", measurements: [r.json]}}\n\
         claims:\n  one: {{select: x, where: {{a: 1}}, per: [b, c], rule: {{kind: threshold, above: 0}}}}\n"
    );
    let (diagnostics, lowered) = check(&text, &project());
    let plan = lowered.unwrap().plan.unwrap_or_else(|| panic!("{}", plain(&diagnostics, &text)));
    assert_eq!(expand::span(&plan, &plan.stages[0]), 1_000_000_000_000);
}

#[test]
fn more_cells_than_numbers_are_refused() {
    let axes: Vec<String> = (0..8).map(|i| format!("a{i}: {{range: [0, 100000]}}")).collect();
    let uses: Vec<String> = (0..8).map(|i| format!("${{axes.a{i}}}")).collect();
    let text = format!(
        "{HEAD}axes: {{{}}}\nstages:\n  s: {{run: \"python3 train.py {}\", measurements: [r.json]}}\n",
        axes.join(", "),
        uses.join(" ")
    );
    assert_eq!(codes(&text), ["too-large"]);
}

#[test]
fn derived_axes_do_not_double_without_end() {
    let mut axes = String::from("axes:\n  d0: [1, 2]\n");
    for i in 1..60 {
        axes.push_str(&format!("  d{i}: {{derived: \"axes.d{0} + axes.d{0}\"}}\n", i - 1));
    }
    let text = format!(
        "{HEAD}{axes}exclude: [axes.d59 > 3]\nstages:\n  s: {{run: \"python3 train.py ${{axes.d59}}\", measurements: [r.json]}}\n"
    );
    assert!(codes(&text).contains(&"too-large"));
}

#[test]
fn a_long_chain_of_stages_is_not_walked_by_recursion() {
    let mut text = format!("{HEAD}stages:\n  s0: {{run: cat, outputs: {{o: o.txt}}}}\n");
    for i in 1..5_000 {
        text.push_str(&format!(
            "  s{i}: {{run: \"cat ${{inputs.x}}\", inputs: {{x: s{}.o}}, outputs: {{o: o.txt}}}}\n",
            i - 1
        ));
    }
    let (_, lowered) = check(&text, &project());
    assert_eq!(lowered.unwrap().plan.unwrap().stages.len(), 5_000);
    let closed = text.replace("s0: {run: cat,", "s0: {run: \"cat ${inputs.x}\", inputs: {x: s4999.o},");
    assert!(codes(&closed).contains(&"cycle"));
}

#[test]
fn complaints_are_bounded() {
    let names: Vec<String> =
        (0..10_000).map(|i| format!("  unknown{i}: {{rum: x, outptus: y, inptus: {{a: b}}}}\n")).collect();
    let text = format!("{HEAD}stages:\n{}", names.concat());
    let found = codes(&text);
    assert!(found.len() < 1_000);
    assert!(found.contains(&"too-many"));
}

#[test]
fn deep_and_long_formulas_are_refused() {
    let deep = format!("{}axes.a{}", "(".repeat(450), ")".repeat(450));
    let long = vec!["axes.a"; 100_000].join(" + ");
    let signs = format!("{}axes.a", "-".repeat(900));
    let chain = vec!["1"; 490].join("+");
    for formula in [deep, long, signs, format!("{chain} > axes.a")] {
        let text = format!(
            "{HEAD}axes: {{a: [1, 2]}}\nexclude: [\"{formula}\"]\nstages:\n  s: {{run: \"python3 train.py ${{axes.a}}\", measurements: [r.json]}}\n"
        );
        assert!(!codes(&text).is_empty());
    }
}

#[test]
fn large_texts_end() {
    for text in [
        "a".repeat(17 << 20),
        format!("{HEAD}title: \"{}\"\n", "x".repeat(2 << 20)),
        format!("{HEAD}axes: {{a: [{}]}}\n", vec!["1"; 200_000].join(", ")),
        format!("{HEAD}params: [{}\n", "{".repeat(100_000)),
        format!("{HEAD}params: {}\n", "- ".repeat(100_000)),
        format!("{HEAD}params: {}\n", "? ".repeat(100_000)),
        format!("{HEAD}stages: {{s: {{run: \"{}\"}}}}\n", "data/all.csv ".repeat(100_000)),
        format!("{HEAD}params: {{a: {}}}\n", "&a ".repeat(1_000)),
        "!".repeat(100_000),
        "%YAML 1.2\n%TAG ! x\n---\na: 1\n".to_owned(),
        "a: |\n".to_owned() + &" ".repeat(100_000),
    ] {
        assert!(!check(&text, &project()).0.is_empty());
    }
}

#[test]
fn aliases_in_a_whole_spec_are_bounded() {
    let mut text = format!("{HEAD}params:\n  a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
    for i in 1..40 {
        text.push_str(&format!("  a{i}: &a{i} [{}]\n", vec![format!("*a{}", i - 1); 10].join(", ")));
    }
    assert!(codes(&text).contains(&"alias"));
}

/// Pieces that are likely to hit something when put anywhere.
const PIECES: &[&str] = &[
    "{",
    "}",
    "[",
    "]",
    ": ",
    "- ",
    "\n",
    "\n  ",
    "${",
    "}",
    "$${",
    "axes.",
    "null",
    "~",
    "&a ",
    "*a",
    "<<: ",
    "!!str ",
    "'",
    "\"",
    "|\n",
    ">\n",
    "#",
    "---\n",
    "...\n",
    "\t",
    "\u{feff}",
    "ä",
    "\u{2028}",
    "1e999",
    "-0",
    "0x",
    ".nan",
    "%",
    "@",
    "`",
    ", ",
    "? ",
    "all: ",
    "per: ",
    "select: ",
    "range: ",
    "derived: ",
    "seeds: -1",
    "exclude: ",
    "(",
    ")",
    "^",
    "&&",
    "\r\n",
    "\\",
    "0",
];

fn mutated() -> impl Strategy<Value = String> {
    let texts: Vec<String> = specs("tests/specs/good").into_iter().map(|(_, text)| text).collect();
    let edit =
        (any::<prop::sample::Index>(), 0..4_u8, prop::sample::select(PIECES), any::<prop::sample::Index>());
    (prop::sample::select(texts), prop::collection::vec(edit, 1..6)).prop_map(|(mut text, edits)| {
        for (place, kind, piece, other) in edits {
            let boundaries: Vec<usize> = text.char_indices().map(|(at, _)| at).collect();
            if boundaries.is_empty() {
                break;
            }
            let at = boundaries[place.index(boundaries.len())];
            let end = boundaries[other.index(boundaries.len())].max(at);
            match kind {
                0 => text.insert_str(at, piece),
                1 => text.replace_range(
                    at..end.min(boundaries.iter().copied().find(|b| *b > at + 8).unwrap_or(end)),
                    "",
                ),
                2 => text.truncate(end.max(1)),
                _ => {
                    let copy: String = text[at..end].chars().take(200).collect();
                    text.insert_str(at, &copy);
                }
            }
        }
        text
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn mutated_specs_never_panic(text in mutated()) {
        let (diagnostics, lowered) = check(&text, &project());
        plain(&diagnostics, &text);
        for d in &diagnostics {
            prop_assert!(d.span.start <= d.span.end && d.span.end <= text.len());
            prop_assert!(text.is_char_boundary(d.span.start) && text.is_char_boundary(d.span.end));
        }
        let Some(lowered) = lowered else { return Ok(()) };
        // What became a plan can be written out and read again.
        if let Some(plan) = &lowered.plan {
            let completed = full(plan, &lowered.terms, &lowered.code);
            let (complaints, again) = check(&completed, &project());
            let again = again.and_then(|l| l.plan);
            prop_assert!(again.as_ref() == Some(plan), "{}\n{}", completed, plain(&complaints, &completed));
        }
    }

    #[test]
    fn any_text_is_read_without_panic(text in "\\PC{0,200}") {
        read(&text);
    }

    #[test]
    fn texts_survive_being_written_out(value in "[ -~äß\n]{0,20}") {
        let spec = format!(
            "{HEAD}params: {{p: {}}}\nstages:\n  s: {{run: \"cat ${{params.p}}\", outputs: {{o: o.txt}}}}\n",
            serde_json::to_string(&value).unwrap()
        );
        let (diagnostics, lowered) = check(&spec, &project());
        let lowered = lowered.unwrap();
        prop_assert!(lowered.plan.is_some(), "{}", plain(&diagnostics, &spec));
        let plan = lowered.plan.unwrap();
        let completed = full(&plan, &lowered.terms, &lowered.code);
        prop_assert_eq!(check(&completed, &project()).1.unwrap().plan, Some(plan));
    }
}
