//! `avow op`: one built-in stage, by hand or as the executor starts it.

use std::collections::BTreeMap;
use std::path::PathBuf;

use avow_model::op::{OpSignature, ParameterType};
use avow_model::value::Value;
use avow_ops::{Call, OpError};
use serde::Deserialize;
use serde_json::json;

use crate::args;
use crate::exit::Exit;
use crate::output::{Failure, Output};

/// The call as the executor writes it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct JsonCall {
    #[serde(default)]
    with: BTreeMap<String, Value>,
    #[serde(default)]
    inputs: BTreeMap<String, PathBuf>,
    #[serde(default)]
    outputs: BTreeMap<String, PathBuf>,
    #[serde(default)]
    measurements: Option<PathBuf>,
}

/// Runs, describes or lists operations.
pub fn op(args: &args::Op, output: &Output) -> Result<Exit, Failure> {
    let Some(name) = &args.name else { return list(args.json, output) };
    let signature = find(name)?;
    if let Some(text) = &args.call {
        return execute(signature, called(text)?, output);
    }
    let nothing = args.with.is_empty() && args.input.is_empty() && args.output.is_empty();
    if nothing
        && (args.json
            || !signature.inputs.is_empty()
            || signature.parameters.iter().any(|p| p.default.is_none()))
    {
        return describe(signature, args.json, output);
    }
    let by_hand = by_hand(args)?;
    let printed = args.measurements.is_none() && !signature.measurements.is_empty();
    let folder = tempfile::tempdir()
        .map_err(|error| Failure::new(Exit::Machine, "no temporary folder could be made").because(error))?;
    let file = args.measurements.clone().unwrap_or_else(|| folder.path().join("measurements.jsonl"));
    let exit = execute(signature, Call { measurements: Some(file.clone()), ..by_hand }, output)?;
    if printed && exit == Exit::Done {
        let text = std::fs::read_to_string(&file).map_err(|error| {
            Failure::new(Exit::Internal, "the measurements were not written").because(error)
        })?;
        output.data(text.trim_end())?;
    }
    Ok(exit)
}

fn find(name: &str) -> Result<&'static OpSignature, Failure> {
    avow_ops::signatures().iter().find(|s| s.name == name).ok_or_else(|| {
        Failure::new(Exit::Usage, format!("no operation is called `{name}`")).hint("`avow op` lists them all")
    })
}

fn called(text: &str) -> Result<Call, Failure> {
    let call: JsonCall = serde_json::from_str(text).map_err(|error| {
        Failure::new(Exit::Usage, "the call is not what the executor writes").because(error)
    })?;
    Ok(Call { with: call.with, inputs: call.inputs, outputs: call.outputs, measurements: call.measurements })
}

fn by_hand(args: &args::Op) -> Result<Call, Failure> {
    let paths = |pairs: &[String]| -> Result<BTreeMap<String, PathBuf>, Failure> {
        pairs.iter().map(|pair| split(pair).map(|(name, path)| (name, PathBuf::from(path)))).collect()
    };
    let with = args.with.iter().map(|pair| {
        let (key, text) = split(pair)?;
        let value = serde_json::from_str(&text).unwrap_or(Value::Text(text));
        Ok((key, value))
    });
    Ok(Call {
        with: with.collect::<Result<_, Failure>>()?,
        inputs: paths(&args.input)?,
        outputs: paths(&args.output)?,
        measurements: None,
    })
}

fn split(pair: &str) -> Result<(String, String), Failure> {
    let (key, value) = pair
        .split_once('=')
        .ok_or_else(|| Failure::new(Exit::Usage, format!("`{pair}` is not of the form `name=value`")))?;
    Ok((key.to_owned(), value.to_owned()))
}

fn execute(signature: &OpSignature, call: Call, _output: &Output) -> Result<Exit, Failure> {
    match avow_ops::run(signature.name, &call) {
        Ok(()) => Ok(Exit::Done),
        Err(error) => {
            let exit = match &error {
                OpError::Io { .. } => Exit::Machine,
                OpError::Parameter { .. } | OpError::Port { .. } | OpError::UnknownOp { .. } => Exit::Usage,
                _ => Exit::StageFailed,
            };
            Err(Failure::new(exit, format!("`{}` failed", signature.name)).because(error))
        }
    }
}

fn list(json: bool, output: &Output) -> Result<Exit, Failure> {
    if json {
        let all: Vec<_> = avow_ops::signatures().iter().map(as_json).collect();
        output.json(&all)?;
        return Ok(Exit::Done);
    }
    let rows: Vec<Vec<String>> =
        avow_ops::signatures().iter().map(|s| vec![s.name.to_owned(), s.about.to_owned()]).collect();
    output.data(crate::words::columns(&rows).trim_end())?;
    output.say("`avow op NAME` describes one");
    Ok(Exit::Done)
}

fn describe(signature: &OpSignature, json: bool, output: &Output) -> Result<Exit, Failure> {
    if json {
        output.json(&as_json(signature))?;
        return Ok(Exit::Done);
    }
    let kind = signature.kind.map_or("plain step", |kind| kind.word());
    output.data(format!("{} ({kind}): {}", signature.name, signature.about))?;
    let mut rows = Vec::new();
    for port in &signature.inputs {
        rows.push(vec![
            "input".to_owned(),
            port.name.to_owned(),
            optional(port.optional),
            port.about.to_owned(),
        ]);
    }
    for parameter in &signature.parameters {
        let default = match &parameter.default {
            Some(value) => format!("{} = {value}", accepts(&parameter.accepts)),
            None => format!("{}, required", accepts(&parameter.accepts)),
        };
        rows.push(vec!["with".to_owned(), parameter.name.to_owned(), default, parameter.about.to_owned()]);
    }
    for port in &signature.outputs {
        rows.push(vec![
            "output".to_owned(),
            port.name.to_owned(),
            optional(port.optional),
            port.about.to_owned(),
        ]);
    }
    for measurement in &signature.measurements {
        let keys = if measurement.keys.is_empty() {
            String::new()
        } else {
            format!("per {}", measurement.keys.join(", "))
        };
        rows.push(vec![
            "measures".to_owned(),
            measurement.name.to_owned(),
            keys,
            measurement.about.to_owned(),
        ]);
    }
    output.data(crate::words::columns(&rows).trim_end())?;
    Ok(Exit::Done)
}

fn optional(optional: bool) -> String {
    if optional { "optional".to_owned() } else { String::new() }
}

fn accepts(accepts: &ParameterType) -> String {
    match accepts {
        ParameterType::Int { low, high } => format!("integer {low} to {high}"),
        ParameterType::Number { low, high } => format!("number {low} to {high}"),
        ParameterType::Bool => "true or false".to_owned(),
        ParameterType::Choice(words) => words.join(" or "),
        ParameterType::Ints { low, high } => format!("integers {low} to {high}"),
        ParameterType::Seed => "seed".to_owned(),
    }
}

fn as_json(signature: &OpSignature) -> serde_json::Value {
    let ports = |ports: &[avow_model::op::Port]| -> Vec<serde_json::Value> {
        ports
            .iter()
            .map(|p| json!({"name": p.name, "optional": p.optional, "file": p.file, "about": p.about}))
            .collect()
    };
    let parameters: Vec<_> = signature
        .parameters
        .iter()
        .map(|p| json!({"name": p.name, "accepts": accepts(&p.accepts), "default": p.default, "about": p.about}))
        .collect();
    let measurements: Vec<_> = signature
        .measurements
        .iter()
        .map(|m| json!({"name": m.name, "keys": m.keys, "about": m.about}))
        .collect();
    json!({
        "name": signature.name, "kind": signature.kind, "about": signature.about, "identity": signature.identity,
        "inputs": ports(&signature.inputs), "outputs": ports(&signature.outputs),
        "parameters": parameters, "measurements": measurements,
    })
}
