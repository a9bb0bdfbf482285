//! The language of formulas, predicates and derived values: total, exact where it can be, and safe to feed.

#![expect(clippy::unwrap_used, reason = "tests")]

mod common;

use avow_model::expression::{Expression, ExpressionError};
use avow_model::value::Value;
use common::path;
use proptest::prelude::*;

fn lookup(name: &[String]) -> Option<Value> {
    match name.join(".").as_str() {
        "axes.width" => Some(Value::Int(64)),
        "axes.wd" => Some(Value::Float(0.1)),
        "axes.model" => Some(Value::Text("small".to_owned())),
        "params.on" => Some(Value::Bool(true)),
        "axes.list" => Some(Value::List(vec![])),
        _ => None,
    }
}

fn value(text: &str) -> Value {
    Expression::parse(text).unwrap().evaluate(&lookup).unwrap()
}

/// The complaint and the part of the text it points at.
fn complaint(text: &str) -> (String, &str) {
    let error = match Expression::parse(text) {
        Err(error) => error,
        Ok(expression) => expression.evaluate(&lookup).unwrap_err(),
    };
    let ExpressionError { offset, length, reason } = error;
    (reason, &text[offset..offset + length])
}

#[test]
fn arithmetic_of_integers_is_exact() {
    for (text, expected) in [
        ("1 + 2 * 3", 7),
        ("(1 + 2) * 3", 9),
        ("10 - 2 - 3", 5),
        ("-2 * -3", 6),
        ("9007199254740993 - 1", 9_007_199_254_740_992),
        ("max(9007199254740992, 9007199254740993)", 9_007_199_254_740_993),
        ("floor(9007199254740993)", 9_007_199_254_740_993),
        ("abs(-5)", 5),
        ("min(3, 2, 4)", 2),
        ("floor(-1.5)", -2),
        ("ceil(-1.5)", -1),
        ("axes.width * 2", 128),
    ] {
        assert_eq!(value(text), Value::Int(expected), "{text}");
    }
    assert_eq!(value("9007199254740993 == 9007199254740992"), Value::Bool(false));
    assert_eq!(value("9007199254740993 > 9007199254740992"), Value::Bool(true));
}

#[test]
fn floats_come_of_floats_division_and_powers() {
    for (text, expected) in [
        ("7 / 2", 3.5),
        ("4 / 2", 2.0),
        ("100 / 10 / 5", 2.0),
        ("2 ^ 10", 1024.0),
        ("2 ^ 3 ^ 2", 512.0),
        ("-2 ^ 2", -4.0),
        ("2 ^ -1", 0.5),
        ("1 + 0.5", 1.5),
        ("1e-3 * 2", 0.002),
        ("sqrt(2)", std::f64::consts::SQRT_2),
        ("log2(8)", 3.0),
        ("exp(0)", 1.0),
        ("ln(1)", 0.0),
        ("pi", std::f64::consts::PI),
        (".5 + 2.", 2.5),
    ] {
        assert_eq!(value(text), Value::Float(expected), "{text}");
    }
    // Zero has one sign.
    let Value::Float(zero) = value("-0.0 * 1") else { panic!() };
    assert!(zero.is_sign_positive());
}

#[test]
fn connectives_and_comparisons() {
    for (text, expected) in [
        ("1 < 2 && 2 <= 2", true),
        ("1 == 1.0", true),
        ("axes.model == \"small\"", true),
        ("axes.model != 'large'", true),
        ("'a' < 'b'", true),
        ("!params.on", false),
        ("!(1 > 2)", true),
        ("false || params.on", true),
        ("true || false && false", true),
        ("1 + 1 == 2", true),
        ("\"q\\\"q\" == 'q\"q'", true),
    ] {
        assert_eq!(value(text), Value::Bool(expected), "{text}");
    }
}

#[test]
fn connectives_stop_at_the_side_that_decides() {
    assert_eq!(value("false && 1 / 0 == 1"), Value::Bool(false));
    assert_eq!(value("true || 1 / 0 == 1"), Value::Bool(true));
    assert_eq!(complaint("true && 1"), ("`1` is neither true nor false".to_owned(), "1"));
    assert_eq!(complaint("1 || true"), ("`1` is neither true nor false".to_owned(), "1"));
}

#[test]
fn whatever_is_undefined_is_an_error_with_its_place() {
    for (text, reason, place) in [
        ("1 + 2 / 0", "divides by zero", "2 / 0"),
        ("1 / (2 - 2) + 1", "divides by zero", "1 / (2 - 2)"),
        ("ln(0)", "takes the logarithm of a number that is not positive", "ln(0)"),
        ("sqrt(-1)", "takes the root of a negative number", "sqrt(-1)"),
        ("exp(1000)", "is not a finite number", "exp(1000)"),
        ("(-8) ^ 0.5", "is not a finite number", "(-8) ^ 0.5"),
        ("0 ^ -1", "is not a finite number", "0 ^ -1"),
        ("1 + 9223372036854775807", "overflows 64 bits", "1 + 9223372036854775807"),
        ("1 + axes.gone", "no value is called `axes.gone`", "axes.gone"),
        ("axes.model + 1", "`small` is not a number", "axes.model"),
        ("axes.model == 1", "compares `small` with `1`, of another kind", "axes.model == 1"),
        ("axes.list == axes.list", "compares `[]` with `[]`, of another kind", "axes.list == axes.list"),
        ("-axes.model", "`small` is not a number", "axes.model"),
        ("floor(1e19)", "does not fit 64 bits", "floor(1e19)"),
        ("min(1, 'a')", "`a` is not a number", "'a'"),
        ("  1 / 0", "divides by zero", ""),
    ] {
        let (found, at) = complaint(text);
        assert_eq!(found, reason, "{text}");
        if !text.starts_with(' ') {
            assert_eq!(at, place, "{text}");
        }
    }
}

#[test]
fn what_does_not_parse_is_placed() {
    for (text, reason, place) in [
        ("", "expected a number, a name or `(`", ""),
        ("1 +", "expected a number, a name or `(`", ""),
        ("1 2", "expected an operator or the end", "2"),
        ("(1", "expected `)`", ""),
        ("1)", "expected an operator or the end", ")"),
        ("1 < 2 < 3", "comparisons cannot be chained; join them with `&&`", " "),
        ("a = 1", "expected an operator or the end", "="),
        ("'open", "is never closed", "'open"),
        ("1.2.3", "`1.2.3` is not a number", "1.2.3"),
        ("1e999", "`1e999` is not a number", "1e999"),
        ("a..b", "`a..b` is no name", "a..b"),
        ("min(1)", "`min` takes two or more values", "min(1)"),
        ("ln(1, 2)", "`ln` takes one value", "ln(1, 2)"),
        ("ln()", "expected a number, a name or `(`", ")"),
        ("größe + €", "expected a number, a name or `(`", "€"),
        ("   1 + €", "expected a number, a name or `(`", "€"),
    ] {
        let Err(error) = Expression::parse(text) else { panic!("{text}") };
        assert_eq!(error.reason, reason, "{text}");
        assert_eq!(&text[error.offset..error.offset + error.length], place, "{text}");
    }
    let Err(error) = Expression::parse("sin(1)") else { panic!() };
    assert_eq!(
        error.reason,
        "`sin` is not one of the functions min, max, abs, sqrt, exp, ln, log2, floor, ceil"
    );
}

#[test]
fn names_are_listed_with_their_places_in_the_trimmed_text() {
    let expression = Expression::parse("  axes.a + min(params.b, -axes.a) ^ pi && !x").unwrap();
    let names: Vec<(String, &str)> = expression
        .names()
        .into_iter()
        .map(|(name, range)| (name.join("."), &expression.text()[range]))
        .collect();
    let expected = ["axes.a", "params.b", "axes.a", "pi", "x"].map(|n| (n.to_owned(), n));
    assert_eq!(names, expected);
}

#[test]
fn a_predicate_over_values_reads_back() {
    let values = [Value::Text("a \"quoted\" \\ ü".to_owned()), Value::Text(String::new())];
    for hidden in &values {
        let predicate = Expression::parse(&Expression::equals("axes.x", &values)).unwrap();
        assert!(predicate.truth(&|_| Some(hidden.clone())).unwrap());
        assert!(!predicate.truth(&|_| Some(Value::Text("other".to_owned()))).unwrap());
    }
    let numbers = [Value::Int(-3), Value::Float(1e-7), Value::Float(2.0)];
    let predicate = Expression::parse(&Expression::equals("axes.x", &numbers)).unwrap();
    for number in &numbers {
        assert!(predicate.truth(&|_| Some(number.clone())).unwrap(), "{number:?}");
    }
    assert!(!predicate.truth(&|_| Some(Value::Int(3))).unwrap());
}

// --- Hostile texts --------------------------------------------------------------------------------------

fn too_deep(text: &str) -> bool {
    Expression::parse(text).is_err_and(|error| error.reason == "is nested too deeply")
}

#[test]
fn nesting_is_bounded_on_every_path() {
    let many = 100_000;
    for text in [
        "(".repeat(many),
        "!".repeat(many) + "true",
        "-".repeat(many) + "1",
        "-(".repeat(many),
        "abs(".repeat(many),
        "max(1,".repeat(many),
        "2^".repeat(many) + "2",
        "(1+".repeat(many),
        "1 + (2 * (3 ^ -".repeat(many),
    ] {
        assert!(too_deep(&text), "{}", &text[..20]);
    }
    let deep = |levels: usize| format!("{}1{}", "(".repeat(levels), ")".repeat(levels));
    assert!(Expression::parse(&deep(63)).is_ok());
    assert!(too_deep(&deep(64)));
}

#[test]
fn nesting_ends_where_its_bracket_closes() {
    let many: Vec<String> = (0..200).map(|i| format!("(({i}))")).collect();
    assert_eq!(value(&many.join(" + ")), Value::Int((0..200).sum()));
}

#[test]
fn long_runs_do_not_use_the_stack() {
    let terms = 60_000;
    let long = vec!["1"; terms].join("+");
    let expression = Expression::parse(&long).unwrap();
    assert_eq!(expression.evaluate(&lookup).unwrap(), Value::Int(terms as i64));
    // Copying, comparing and printing walk it too.
    let copy = expression.clone();
    assert_eq!(copy, expression);
    assert!(format!("{copy:?}").len() > terms);
    drop(copy);
    assert_eq!(value(&vec!["true"; terms].join("&&")), Value::Bool(true));
    assert_eq!(value(&vec!["false"; terms].join("||")), Value::Bool(false));
    assert_eq!(value(&vec!["1"; terms].join("/")), Value::Float(1.0));
}

#[test]
fn the_number_of_parts_is_bounded() {
    let text = vec!["a"; 100_001].join("+");
    assert_eq!(Expression::parse(&text).unwrap_err().reason, "has too many parts");
    let text = format!("max({})", vec!["1"; 100_001].join(","));
    assert_eq!(Expression::parse(&text).unwrap_err().reason, "has too many parts");
}

#[test]
fn the_deepest_formula_evaluates_on_a_small_stack() {
    // Each level holds every strength of operator, on the right, so that nothing folds before the end.
    let level = "false || true && 1 == 1 + 1 * 1 ^ -abs(";
    let text = format!("{}1{}", level.repeat(15), ")".repeat(15));
    let evaluated = std::thread::Builder::new()
        .stack_size(1 << 20)
        .spawn(move || Expression::parse(&text).map(|e| e.evaluate(&lookup).is_err()));
    assert!(evaluated.unwrap().join().unwrap().is_ok());
}

proptest! {
    #[test]
    fn no_text_makes_it_panic(text in any::<String>()) {
        if let Ok(expression) = Expression::parse(&text) {
            let _ = expression.evaluate(&lookup);
        }
    }

    #[test]
    fn no_formula_makes_it_panic(text in "([-+*/^()!<>=&|, .ae\"'0-9]|axes[.]wd|max[(]|é){0,40}") {
        match Expression::parse(&text) {
            Ok(expression) => {
                let _ = expression.evaluate(&|_| Some(Value::Int(2)));
                let again = Expression::parse(expression.text()).unwrap();
                prop_assert_eq!(again, expression);
            }
            // Places lie in the text, on boundaries of characters.
            Err(error) => prop_assert!(text.get(error.offset..error.offset + error.length).is_some()),
        }
    }

    #[test]
    fn integers_behave_as_in_rust(a in -1000i64..1000, b in -1000i64..1000, c in 1i64..50) {
        let text = format!("({a} + {b}) * {c} - {b} * {b}");
        prop_assert_eq!(value(&text), Value::Int((a + b) * c - b * b));
        prop_assert_eq!(value(&format!("{a} < {b} || {a} >= {b}")), Value::Bool(true));
        prop_assert_eq!(value(&format!("{a} / {c}")), Value::float(a as f64 / c as f64).unwrap());
    }
}

#[test]
fn a_lookup_gets_the_whole_name() {
    let seen = std::cell::RefCell::new(Vec::new());
    let expression = Expression::parse("axes.model.width + params.n").unwrap();
    let result = expression.number(&|name| {
        seen.borrow_mut().push(name.to_vec());
        Some(Value::Int(1))
    });
    assert_eq!(result, Ok(2.0));
    assert_eq!(seen.into_inner(), [path("axes.model.width"), path("params.n")]);
}
