//! From text to a tree of nodes.

use crate::value::Value;

use super::{Binary, ExpressionError, Function, Node, Unary, What, error};

/// The deepest nesting a formula may have: brackets, signs, `!`, `^` and calls together.
const MAX_DEPTH: usize = 64;

/// The most numbers, names, operators and calls a formula may have.
const MAX_PARTS: usize = 100_000;

const FUNCTIONS: [(&str, Function); 9] = [
    ("min", Function::Min),
    ("max", Function::Max),
    ("abs", Function::Abs),
    ("sqrt", Function::Sqrt),
    ("exp", Function::Exp),
    ("ln", Function::Ln),
    ("log2", Function::Log2),
    ("floor", Function::Floor),
    ("ceil", Function::Ceil),
];

pub(super) struct Parser<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
    parts: usize,
}

/// Operators by rising strength; longer spellings first.
const LEVELS: [&[(&str, Binary)]; 5] = [
    &[("||", Binary::Or)],
    &[("&&", Binary::And)],
    &[
        ("==", Binary::Equal),
        ("!=", Binary::Unequal),
        ("<=", Binary::LessEqual),
        (">=", Binary::GreaterEqual),
        ("<", Binary::Less),
        (">", Binary::Greater),
    ],
    &[("+", Binary::Add), ("-", Binary::Subtract)],
    &[("*", Binary::Multiply), ("/", Binary::Divide)],
];
const COMPARISONS: usize = 2;

impl<'a> Parser<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Parser { text, at: 0, depth: 0, parts: 0 }
    }

    pub(super) fn whole(&mut self) -> Result<Node, ExpressionError> {
        let root = self.chain(0)?;
        self.skip_space();
        if self.at < self.text.len() {
            return Err(self.here("expected an operator or the end"));
        }
        Ok(root)
    }

    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn skip_space(&mut self) {
        self.at += self.rest().len() - self.rest().trim_start().len();
    }

    fn here(&self, reason: &str) -> ExpressionError {
        let length = self.rest().chars().next().map_or(0, char::len_utf8);
        ExpressionError { offset: self.at, length, reason: reason.to_owned() }
    }

    fn eat(&mut self, token: &str) -> bool {
        self.skip_space();
        let found = self.rest().starts_with(token);
        if found {
            self.at += token.len();
        }
        found
    }

    fn node(&self, offset: usize, what: What) -> Node {
        Node { offset, length: self.at - offset, what }
    }

    /// Operators of one strength, and of all higher ones within their operands.
    fn chain(&mut self, level: usize) -> Result<Node, ExpressionError> {
        let Some(operators) = LEVELS.get(level) else { return self.power() };
        let first = self.chain(level + 1)?;
        let mut rest = Vec::new();
        while let Some((_, op)) = operators.iter().find(|(token, _)| self.eat(token)) {
            // `a < b < c` means nothing here; better refused than read as `(a < b) < c`.
            if level == COMPARISONS && !rest.is_empty() {
                return Err(self.here("comparisons cannot be chained; join them with `&&`"));
            }
            rest.push((*op, self.chain(level + 1)?));
        }
        Ok(match rest.last() {
            None => first,
            Some((_, last)) => Node {
                offset: first.offset,
                length: last.offset + last.length - first.offset,
                what: What::Chain(Box::new(first), rest),
            },
        })
    }

    fn power(&mut self) -> Result<Node, ExpressionError> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(self.here("is nested too deeply"));
        }
        self.parts += 1;
        if self.parts > MAX_PARTS {
            return Err(self.here("has too many parts"));
        }
        self.skip_space();
        let start = self.at;
        let node = if self.eat("-") {
            let inner = self.power()?;
            self.node(start, What::Unary(Unary::Negate, Box::new(inner)))
        } else if !self.rest().starts_with("!=") && self.eat("!") {
            let inner = self.power()?;
            self.node(start, What::Unary(Unary::Not, Box::new(inner)))
        } else {
            let base = self.atom()?;
            if self.eat("^") {
                let exponent = self.power()?;
                self.node(start, What::Power(Box::new(base), Box::new(exponent)))
            } else {
                base
            }
        };
        self.depth -= 1;
        Ok(node)
    }

    fn atom(&mut self) -> Result<Node, ExpressionError> {
        self.skip_space();
        let start = self.at;
        match self.rest().chars().next() {
            Some('(') => {
                self.at += 1;
                let inner = self.chain(0)?;
                if !self.eat(")") {
                    return Err(self.here("expected `)`"));
                }
                Ok(Node { offset: start, length: self.at - start, what: inner.what })
            }
            Some('"' | '\'') => self.quoted(),
            Some(c) if c.is_ascii_digit() || c == '.' => self.literal_number(),
            Some(c) if c.is_alphabetic() || c == '_' => self.name_or_call(),
            _ => Err(self.here("expected a number, a name or `(`")),
        }
    }

    fn quoted(&mut self) -> Result<Node, ExpressionError> {
        let start = self.at;
        let quote = self.rest().chars().next().expect("called at a quote");
        self.at += 1;
        let mut text = String::new();
        let mut escaped = false;
        while let Some(c) = self.rest().chars().next() {
            self.at += c.len_utf8();
            match c {
                c if escaped => {
                    text.push(c);
                    escaped = false;
                }
                '\\' => escaped = true,
                c if c == quote => return Ok(self.node(start, What::Literal(Value::Text(text)))),
                c => text.push(c),
            }
        }
        Err(ExpressionError { offset: start, length: self.at - start, reason: "is never closed".to_owned() })
    }

    fn literal_number(&mut self) -> Result<Node, ExpressionError> {
        let start = self.at;
        let bytes = self.text.as_bytes();
        let mut end = start;
        while end < bytes.len() {
            let sign = matches!(bytes[end], b'+' | b'-') && matches!(bytes[end - 1], b'e' | b'E');
            if !(bytes[end].is_ascii_digit()
                || matches!(bytes[end], b'.' | b'e' | b'E')
                || (sign && end > start))
            {
                break;
            }
            end += 1;
        }
        self.at = end;
        let text = &self.text[start..end];
        let value = match text.parse::<i64>() {
            Ok(i) => Some(Value::Int(i)),
            Err(_) => text.parse::<f64>().ok().and_then(Value::float),
        };
        value.map(|v| self.node(start, What::Literal(v))).ok_or_else(|| ExpressionError {
            offset: start,
            length: end - start,
            reason: format!("`{text}` is not a number"),
        })
    }

    fn name_or_call(&mut self) -> Result<Node, ExpressionError> {
        let start = self.at;
        let length = self
            .rest()
            .find(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | '.')))
            .unwrap_or(self.rest().len());
        self.at += length;
        let name = &self.text[start..start + length];
        if matches!(name, "true" | "false") {
            return Ok(self.node(start, What::Literal(Value::Bool(name == "true"))));
        }
        self.skip_space();
        if !self.rest().starts_with('(') {
            let path: Vec<String> = name.split('.').map(str::to_owned).collect();
            if path.iter().any(String::is_empty) {
                return Err(ExpressionError {
                    offset: start,
                    length,
                    reason: format!("`{name}` is no name"),
                });
            }
            return Ok(Node { offset: start, length, what: What::Name(path) });
        }
        let found = FUNCTIONS.iter().find(|(word, _)| *word == name);
        let unknown = || ExpressionError {
            offset: start,
            length,
            reason: format!("`{name}` is not one of the functions {}", FUNCTIONS.map(|(w, _)| w).join(", ")),
        };
        let (_, function) = *found.ok_or_else(unknown)?;
        let arguments = self.arguments()?;
        let node = self.node(start, What::Call(function, arguments));
        check_arity(&node, name)?;
        Ok(node)
    }

    fn arguments(&mut self) -> Result<Vec<Node>, ExpressionError> {
        self.at += 1;
        let mut arguments = vec![self.chain(0)?];
        while self.eat(",") {
            arguments.push(self.chain(0)?);
        }
        if self.eat(")") { Ok(arguments) } else { Err(self.here("expected `,` or `)`")) }
    }
}

fn check_arity(node: &Node, name: &str) -> Result<(), ExpressionError> {
    let What::Call(function, arguments) = &node.what else { return Ok(()) };
    let several = matches!(function, Function::Min | Function::Max);
    match (several, arguments.len()) {
        (true, 0 | 1) => Err(error(node.place(), format!("`{name}` takes two or more values"))),
        (false, n) if n != 1 => Err(error(node.place(), format!("`{name}` takes one value"))),
        _ => Ok(()),
    }
}
