//! Text with references.

#![expect(clippy::unwrap_used, reason = "tests")]

mod common;

use avow_model::template::{Piece, Template, TemplateError, fill_value};
use avow_model::value::Value;
use common::{path, template};
use proptest::prelude::*;

fn pieces(text: &str) -> Vec<String> {
    template(text)
        .pieces
        .iter()
        .map(|piece| match piece {
            Piece::Text(text) => format!("'{text}'"),
            Piece::Reference(path) => path.join("."),
        })
        .collect()
}

#[test]
fn references_are_found() {
    assert_eq!(pieces("--lr=${axes.lr} ${params.n}"), ["'--lr='", "axes.lr", "' '", "params.n"]);
    assert_eq!(pieces("${axes.model.width}${axes.seed.init}"), ["axes.model.width", "axes.seed.init"]);
    assert_eq!(pieces("${ axes.x }"), ["axes.x"]);
    assert_eq!(pieces(""), [""; 0]);
    assert_eq!(pieces("größe ${axes.x} €"), ["'größe '", "axes.x", "' €'"]);
}

#[test]
fn a_doubled_dollar_makes_a_brace_literal() {
    assert_eq!(pieces("$${HOME}"), ["'${HOME}'"]);
    assert_eq!(pieces("$HOME $$ $5"), ["'$HOME $$ $5'"]);
    assert_eq!(pieces("$$${axes.x}"), ["'$${axes.x}'"]);
}

#[test]
fn mistakes_are_placed() {
    let error = |text: &str| Template::parse(text).unwrap_err();
    assert_eq!((error("é ${axes.x").offset, error("é ${axes.x").length), (3, 8));
    for bad in
        ["${}", "${x}", "${axes}", "${axes.}", "${.x}", "${a..b}", "${axes x.y}", "${axes.${x}}", "${a.\n}"]
    {
        let TemplateError { offset, length, reason } = error(&format!("ab{bad}"));
        assert_eq!(offset, 2, "{bad}");
        assert!(length <= bad.len() && reason.contains("is not a name such as"), "{bad}: {reason}");
    }
}

#[test]
fn a_sole_reference_keeps_its_type() {
    let lookup = |found: &[String]| -> Result<Value, TemplateError> {
        Ok(if found == path("params.n") { Value::Int(3) } else { Value::Float(0.5) })
    };
    let fill = |value: &Value| fill_value(value, &mut { lookup }).unwrap();
    let text = |text: &str| fill(&Value::Text(text.to_owned()));
    assert_eq!(text("${params.n}"), Value::Int(3));
    assert_eq!(text("n=${params.n}"), Value::Text("n=3".to_owned()));
    assert_eq!(text("$${params.n}"), Value::Text("${params.n}".to_owned()));
    let list = Value::List(vec![Value::Text("${axes.x}".to_owned()), Value::Bool(true)]);
    assert_eq!(fill(&list), Value::List(vec![Value::Float(0.5), Value::Bool(true)]));
}

#[test]
fn a_literal_equals_its_parsed_text() {
    for text in ["", "plain", "$${not.this}", "${"] {
        let literal = Template::literal(text);
        assert_eq!(Template::parse(&literal.to_string()).unwrap(), literal, "{text}");
    }
}

proptest! {
    #[test]
    fn printing_and_parsing_agree(text in "([$][{]a[.]b[}]|[$]|[{]|[}]|x|é){0,12}") {
        if let Ok(parsed) = Template::parse(&text) {
            prop_assert_eq!(parsed.to_string(), text);
        }
    }

    #[test]
    fn no_text_makes_the_parser_panic(text in any::<String>()) {
        let _ = Template::parse(&text);
    }
}
