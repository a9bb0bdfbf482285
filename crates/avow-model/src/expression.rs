//! Formulas, predicates and derived values: a small total language.
//!
//! Numbers, text (for comparison only), names (`axes.width`, `params.n`), `+ - * / ^`, comparisons,
//! `&& || !`, `min max abs sqrt exp ln log2 floor ceil` and `pi`. No loops, no assignment; everything that
//! could be undefined (division by zero, a logarithm of nothing, overflow) is an error with its place.
//! `+ - *` of integers stay integers, `/` and `^` give floats, `floor` and `ceil` give integers. Roots,
//! powers, exponentials and logarithms come from a library of our own choice, not the machine's: a derived
//! value enters commands and therefore digests, which must not depend on a C library's last bit.
//!
//! A formula is a stranger's text. Nesting is bounded, and a run of operators of one strength is one flat
//! node, so that neither parsing, evaluating nor dropping a formula can exhaust the stack.

mod parse;

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::value::Value;
use parse::Parser;

/// A parsed expression together with its text.
#[derive(Clone, Debug, PartialEq)]
pub struct Expression {
    text: String,
    root: Node,
}

#[derive(Clone, Debug, PartialEq)]
struct Node {
    offset: usize,
    length: usize,
    what: What,
}

#[derive(Clone, Debug, PartialEq)]
enum What {
    Literal(Value),
    Name(Vec<String>),
    Unary(Unary, Box<Node>),
    /// `first op rest op rest …`, all operators of one strength, read from the left.
    Chain(Box<Node>, Vec<(Binary, Node)>),
    /// `base ^ exponent`, read from the right.
    Power(Box<Node>, Box<Node>),
    Call(Function, Vec<Node>),
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Unary {
    Negate,
    Not,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Binary {
    Or,
    And,
    Equal,
    Unequal,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    Add,
    Subtract,
    Multiply,
    Divide,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Function {
    Min,
    Max,
    Abs,
    Sqrt,
    Exp,
    Ln,
    Log2,
    Floor,
    Ceil,
}

/// What is wrong with an expression, and where in its text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct ExpressionError {
    /// Byte offset in the expression's text.
    pub offset: usize,
    /// Byte length of the offending part.
    pub length: usize,
    /// What is wrong.
    pub reason: String,
}

/// Where in the text something stands: byte offset and length.
#[derive(Clone, Copy)]
struct Place(usize, usize);

impl Node {
    fn place(&self) -> Place {
        Place(self.offset, self.length)
    }
}

fn error(place: Place, reason: impl Into<String>) -> ExpressionError {
    ExpressionError { offset: place.0, length: place.1, reason: reason.into() }
}

impl Expression {
    /// Parses a formula.
    pub fn parse(text: &str) -> Result<Expression, ExpressionError> {
        let trimmed = text.trim();
        match Parser::new(trimmed).whole() {
            Ok(root) => Ok(Expression { text: trimmed.to_owned(), root }),
            // The text is kept trimmed, but a complaint is about the text as given.
            Err(error) => {
                Err(ExpressionError { offset: error.offset + text.len() - text.trim_start().len(), ..error })
            }
        }
    }

    /// `name == value`, or a disjunction where there are several values.
    pub fn equals(name: &str, values: &[Value]) -> String {
        let one = |value: &Value| match value {
            Value::Text(t) => format!("{name} == \"{}\"", t.replace('\\', "\\\\").replace('"', "\\\"")),
            other => format!("{name} == {other}"),
        };
        let all: Vec<String> = values.iter().map(one).collect();
        format!("({})", all.join(" || "))
    }

    /// Its text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The names it uses with the byte range of each in its text, in order of appearance.
    pub fn names(&self) -> Vec<(&[String], std::ops::Range<usize>)> {
        fn walk<'a>(node: &'a Node, out: &mut Vec<(&'a [String], std::ops::Range<usize>)>) {
            match &node.what {
                What::Literal(_) => {}
                What::Name(path) => out.push((path, node.offset..node.offset + node.length)),
                What::Unary(_, inner) => walk(inner, out),
                What::Chain(first, rest) => {
                    walk(first, out);
                    rest.iter().for_each(|(_, operand)| walk(operand, out));
                }
                What::Power(base, exponent) => {
                    walk(base, out);
                    walk(exponent, out);
                }
                What::Call(_, arguments) => arguments.iter().for_each(|argument| walk(argument, out)),
            }
        }
        let mut out = Vec::new();
        walk(&self.root, &mut out);
        out
    }

    /// Its value, with names looked up by the caller (`None`: no such name).
    pub fn evaluate(&self, lookup: &dyn Fn(&[String]) -> Option<Value>) -> Result<Value, ExpressionError> {
        evaluate(&self.root, lookup)
    }

    /// Its value as a number.
    pub fn number(&self, lookup: &dyn Fn(&[String]) -> Option<Value>) -> Result<f64, ExpressionError> {
        let value = self.evaluate(lookup)?;
        value
            .as_f64()
            .ok_or_else(|| error(self.root.place(), format!("gives `{value}`, which is not a number")))
    }

    /// Its value as a truth.
    pub fn truth(&self, lookup: &dyn Fn(&[String]) -> Option<Value>) -> Result<bool, ExpressionError> {
        match self.evaluate(lookup)? {
            Value::Bool(truth) => Ok(truth),
            value => {
                Err(error(self.root.place(), format!("gives `{value}`, which is neither true nor false")))
            }
        }
    }
}

fn evaluate(node: &Node, lookup: &dyn Fn(&[String]) -> Option<Value>) -> Result<Value, ExpressionError> {
    match &node.what {
        What::Literal(value) => Ok(value.clone()),
        What::Name(path) => match path.as_slice() {
            [pi] if pi == "pi" => Ok(Value::Float(std::f64::consts::PI)),
            _ => lookup(path)
                .ok_or_else(|| error(node.place(), format!("no value is called `{}`", path.join(".")))),
        },
        What::Unary(Unary::Negate, inner) => match evaluate(inner, lookup)? {
            Value::Int(i) => i.checked_neg().map(Value::Int).ok_or_else(|| error(node.place(), OVERFLOW)),
            Value::Float(x) => finite(node.place(), -x),
            other => Err(error(inner.place(), format!("`{other}` is not a number"))),
        },
        What::Unary(Unary::Not, inner) => {
            truth(inner.place(), &evaluate(inner, lookup)?).map(|t| Value::Bool(!t))
        }
        What::Chain(first, rest) => chain(first, rest, lookup),
        What::Power(base, exponent) => {
            let x = number(base.place(), &evaluate(base, lookup)?)?;
            let y = number(exponent.place(), &evaluate(exponent, lookup)?)?;
            finite(node.place(), libm::pow(x, y))
        }
        What::Call(function, arguments) => call(node.place(), *function, arguments, lookup),
    }
}

const OVERFLOW: &str = "overflows 64 bits";

fn truth(place: Place, value: &Value) -> Result<bool, ExpressionError> {
    match value {
        Value::Bool(truth) => Ok(*truth),
        other => Err(error(place, format!("`{other}` is neither true nor false"))),
    }
}

fn number(place: Place, value: &Value) -> Result<f64, ExpressionError> {
    value.as_f64().ok_or_else(|| error(place, format!("`{value}` is not a number")))
}

fn finite(place: Place, x: f64) -> Result<Value, ExpressionError> {
    Value::float(x).ok_or_else(|| error(place, "is not a finite number"))
}

/// Folds a run of operators from the left. `&&` and `||` stop at the first operand that decides.
fn chain(
    first: &Node,
    rest: &[(Binary, Node)],
    lookup: &dyn Fn(&[String]) -> Option<Value>,
) -> Result<Value, ExpressionError> {
    let mut value = evaluate(first, lookup)?;
    let mut left = first.place();
    for (op, operand) in rest {
        if let Binary::And | Binary::Or = op {
            if truth(left, &value)? == (*op == Binary::Or) {
                return Ok(value);
            }
            value = evaluate(operand, lookup)?;
            truth(operand.place(), &value)?;
            left = operand.place();
        } else {
            let whole = Place(first.offset, operand.offset + operand.length - first.offset);
            value = binary(whole, *op, (left, value), (operand.place(), evaluate(operand, lookup)?))?;
            left = whole;
        }
    }
    Ok(value)
}

fn binary(
    whole: Place,
    op: Binary,
    (left, a): (Place, Value),
    (right, b): (Place, Value),
) -> Result<Value, ExpressionError> {
    if let Some(result) = compare(whole, op, &a, &b) {
        return result;
    }
    if let (Value::Int(i), Value::Int(j)) = (&a, &b) {
        let exact = match op {
            Binary::Add => Some(i.checked_add(*j)),
            Binary::Subtract => Some(i.checked_sub(*j)),
            Binary::Multiply => Some(i.checked_mul(*j)),
            _ => None,
        };
        if let Some(result) = exact {
            return result.map(Value::Int).ok_or_else(|| error(whole, OVERFLOW));
        }
    }
    let (x, y) = (number(left, &a)?, number(right, &b)?);
    match op {
        Binary::Add => finite(whole, x + y),
        Binary::Subtract => finite(whole, x - y),
        Binary::Multiply => finite(whole, x * y),
        Binary::Divide if y == 0.0 => Err(error(whole, "divides by zero")),
        Binary::Divide => finite(whole, x / y),
        _ => unreachable!("comparisons and connectives are handled before"),
    }
}

fn compare(whole: Place, op: Binary, a: &Value, b: &Value) -> Option<Result<Value, ExpressionError>> {
    let test: fn(std::cmp::Ordering) -> bool = match op {
        Binary::Equal => std::cmp::Ordering::is_eq,
        Binary::Unequal => std::cmp::Ordering::is_ne,
        Binary::Less => std::cmp::Ordering::is_lt,
        Binary::LessEqual => std::cmp::Ordering::is_le,
        Binary::Greater => std::cmp::Ordering::is_gt,
        Binary::GreaterEqual => std::cmp::Ordering::is_ge,
        _ => return None,
    };
    let order = match (a, b) {
        (Value::Text(s), Value::Text(t)) => s.cmp(t),
        (Value::Bool(s), Value::Bool(t)) => s.cmp(t),
        // Through floats, integers beyond 2^53 would equal their neighbours.
        (Value::Int(i), Value::Int(j)) => i.cmp(j),
        _ => match (a.as_f64(), b.as_f64()) {
            (Some(x), Some(y)) => x.total_cmp(&y),
            _ => return Some(Err(error(whole, format!("compares `{a}` with `{b}`, of another kind")))),
        },
    };
    Some(Ok(Value::Bool(test(order))))
}

fn call(
    place: Place,
    function: Function,
    arguments: &[Node],
    lookup: &dyn Fn(&[String]) -> Option<Value>,
) -> Result<Value, ExpressionError> {
    let mut values = Vec::with_capacity(arguments.len());
    for argument in arguments {
        let value = evaluate(argument, lookup)?;
        number(argument.place(), &value)?;
        values.push(value);
    }
    match function {
        Function::Min => Ok(values.into_iter().min_by(Value::order).expect("calls have arguments")),
        Function::Max => Ok(values.into_iter().max_by(Value::order).expect("calls have arguments")),
        _ => of_one(place, function, &values[0]),
    }
}

fn of_one(place: Place, function: Function, value: &Value) -> Result<Value, ExpressionError> {
    let x = number(place, value)?;
    let whole = |x: f64| {
        let fits = x.abs() < 9.2e18;
        fits.then_some(Value::Int(x as i64)).ok_or_else(|| error(place, "does not fit 64 bits"))
    };
    match (function, value) {
        (Function::Abs, Value::Int(i)) => {
            i.checked_abs().map(Value::Int).ok_or_else(|| error(place, OVERFLOW))
        }
        (Function::Floor | Function::Ceil, Value::Int(i)) => Ok(Value::Int(*i)),
        (Function::Abs, _) => finite(place, x.abs()),
        (Function::Sqrt, _) if x < 0.0 => Err(error(place, "takes the root of a negative number")),
        (Function::Sqrt, _) => finite(place, libm::sqrt(x)),
        (Function::Exp, _) => finite(place, libm::exp(x)),
        (Function::Ln | Function::Log2, _) if x <= 0.0 => {
            Err(error(place, "takes the logarithm of a number that is not positive"))
        }
        (Function::Ln, _) => finite(place, libm::log(x)),
        (Function::Log2, _) => finite(place, libm::log2(x)),
        (Function::Floor, _) => whole(x.floor()),
        (Function::Ceil, _) => whole(x.ceil()),
        (Function::Min | Function::Max, _) => unreachable!("functions of several values are handled before"),
    }
}

impl fmt::Display for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Serialize for Expression {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Expression {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Expression::parse(&String::deserialize(deserializer)?).map_err(serde::de::Error::custom)
    }
}
