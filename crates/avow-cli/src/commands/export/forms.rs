//! A plan as the answers of registration forms, and what the store can answer of a checklist.
//!
//! What can be computed is computed from the plan and the store; the rest is the author's text under `registration:`.
//! An answer that neither gives is left out, and what a form requires is named.

use std::collections::BTreeMap;

use avow_audit::{Audit, Report};
use avow_engine::current_registration;
use avow_model::claim::{Claim, Missing, Test, Tier};
use avow_model::expand;
use avow_model::plan::{Plan, Program};
use serde_json::{Map, Value, json};

use crate::args;
use crate::context::{Reading, Spec};
use crate::embargo;
use crate::exit::Exit;
use crate::failure;
use crate::output::{Failure, Output};

/// What a plan is printed as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// The answers of the OSF Preregistration, by question.
    Osf,
    /// The answers of AsPredicted.
    Aspredicted,
    /// The items of the NeurIPS checklist that the store answers.
    Neurips,
}

/// Prints a plan in the form that was asked for.
pub fn print(form: Form, args: &args::ExportForm, output: &Output) -> Result<Exit, Failure> {
    let spec = Spec::open(args.spec.as_deref())?;
    let planned = spec.plan_as_run(output)?;
    let plan = &planned.plan;
    embargo::closed_to(&spec.project, &plan.experiment, "a form")?;
    let reading = Reading::open(&spec.project, &plan.experiment)?;
    let audit = Audit::gather(plan, reading.source(), &reading.ledger).map_err(failure::audit)?;
    let existing = had_data(&reading).unwrap_or_else(|| audit.evidence().completeness().done > 0);
    let (answers, required): (Map<String, Value>, &[&str]) = match form {
        Form::Osf => (osf(plan, existing), &["q2", "q3", "q4", "q8", "q11"]),
        Form::Aspredicted => (as_predicted(plan, existing), &["hypothesis", "name"]),
        Form::Neurips => {
            crate::commands::verdict::guard(&spec, &reading, &audit, args.peek, ("export", "the checklist"))?;
            let report = audit.report(Some(&reading.journals()?), args.peek).map_err(failure::audit)?;
            (checklist(plan, &report), &[])
        }
    };
    let open: Vec<&str> = required.iter().filter(|id| !answers.contains_key(**id)).copied().collect();
    output.json(&Value::Object(answers))?;
    if !open.is_empty() {
        output.say(format!(
            "the form requires what nothing here answers: {}; see `registration:`",
            open.join(", ")
        ));
    }
    Ok(Exit::Done)
}

fn text<'p>(plan: &'p Plan, key: &str) -> Option<&'p str> {
    plan.registration.get(key).map(String::as_str)
}

/// Answers, each left out where it is empty.
struct Answers(Map<String, Value>);

impl Answers {
    fn put(&mut self, id: &str, parts: &[Option<String>]) {
        let said: Vec<&str> =
            parts.iter().flatten().map(|part| part.trim()).filter(|part| !part.is_empty()).collect();
        if !said.is_empty() {
            self.0.insert(id.to_owned(), Value::from(said.join("\n")));
        }
    }
}

/// The answers of the OSF Preregistration, by its question ids (version 3).
fn osf(plan: &Plan, existing: bool) -> Map<String, Value> {
    let own = |key: &str| text(plan, key).map(str::to_owned);
    let mut answers = Answers(Map::new());
    answers.put("q2", &[Some(hypotheses(plan))]);
    let study = match text(plan, "study") {
        Some("observational") => "Observational Study",
        Some("meta-analysis") => "Meta-Analysis",
        Some("other") => "Other",
        _ => "Experiment",
    };
    answers.put("q3", &[Some(study.to_owned())]);
    answers.put("q4", &[own("blinding")]);
    answers.put("q6", &[own("design"), Some(design(plan))]);
    answers.put("q7", &[own("randomisation"), seeds(plan)]);
    answers.put("q8", &[Some(data_state(plan, existing))]);
    answers.put("q9", &[own("existing_explanation"), seen(plan)]);
    answers.put("q10", &[own("collection"), Some(stages(plan))]);
    answers.put("q11", &[Some(sample_size(plan))]);
    answers.put("q12", &[own("sample_rationale")]);
    answers.put("q13", &[own("stopping"), stopping(plan)]);
    answers.put("q14", &[Some(axes(plan))]);
    answers.put("q15", &[Some(measured(plan))]);
    answers.put("q16", &[own("indices")]);
    answers.put("q17", &[Some(analyses(plan))]);
    answers.put("q18", &[own("transformations")]);
    answers.put("q19", &[Some(criteria(plan))]);
    answers.put("q20", &[own("exclusions"), exclusions(plan)]);
    answers.put("q21", &[Some(missing(plan))]);
    answers.put("q22", &[own("exploratory"), exploratory(plan)]);
    answers.put(
        "q23",
        &[own("other"), Some(format!("Plan {} of the experiment {}.", digest(plan), plan.experiment))],
    );
    answers.0
}

/// The answers of AsPredicted, by what it asks.
fn as_predicted(plan: &Plan, existing: bool) -> Map<String, Value> {
    let own = |key: &str| text(plan, key).map(str::to_owned);
    let mut answers = Answers(Map::new());
    let collected = match (existing, plan.seen.is_empty()) {
        (false, true) => "No, no data have been collected for this study yet.",
        (true, true) => "It's complicated: attempts of this plan are in the store.",
        (_, false) => "It's complicated: see below.",
    };
    answers.put("data", &[Some(collected.to_owned()), seen(plan)]);
    answers.put("hypothesis", &[Some(hypotheses(plan))]);
    answers.put("dependent", &[Some(measured(plan))]);
    answers.put("conditions", &[Some(axes(plan)), own("design")]);
    answers.put("analyses", &[Some(analyses(plan)), Some(criteria(plan))]);
    answers.put("outliers", &[own("exclusions"), exclusions(plan), Some(missing(plan))]);
    answers.put("sample", &[Some(sample_size(plan)), own("sample_rationale"), stopping(plan)]);
    answers.put("other", &[own("other"), exploratory(plan), seeds(plan)]);
    answers.put("name", &[Some(plan.experiment.clone())]);
    let study = text(plan, "study").unwrap_or("experiment");
    answers.put("study_type", &[Some(study.to_owned())]);
    answers.0
}

fn digest(plan: &Plan) -> String {
    use avow_model::canonical::Record as _;
    plan.digest().to_string()
}

fn deciding(plan: &Plan) -> impl Iterator<Item = &Claim> {
    plan.claims.iter().filter(|claim| matches!(claim.tier, Tier::Primary | Tier::Secondary))
}

fn hypotheses(plan: &Plan) -> String {
    let line = |claim: &Claim| {
        let says = claim.says.as_deref().unwrap_or("").trim();
        format!("{} ({}): {says}", claim.name, claim.tier.word())
    };
    deciding(plan).map(line).collect::<Vec<_>>().join("\n")
}

fn exploratory(plan: &Plan) -> Option<String> {
    let names = plan.claims.iter().filter(|c| matches!(c.tier, Tier::Exploratory | Tier::Descriptive));
    let names: Vec<String> =
        names.map(|c| format!("{}: {}", c.name, c.says.as_deref().unwrap_or("").trim())).collect();
    (!names.is_empty()).then(|| names.join("\n"))
}

fn seen(plan: &Plan) -> Option<String> {
    (!plan.seen.is_empty()).then(|| format!("Looked at before: {}", plan.seen.join("; ")))
}

/// Whether anything had been tried when the plan in force was registered: the forms ask about then, not about now.
fn had_data(reading: &Reading) -> Option<bool> {
    let registration = current_registration(&reading.ledger)?;
    let line = reading.ledger.entry(registration.leaf)?.line();
    Some(line.get("existed")?.get("tried")?.as_u64()? > 0)
}

fn data_state(plan: &Plan, existing: bool) -> String {
    match text(plan, "existing_data") {
        Some("none") => "Registration prior to creation of data",
        Some("not-observed") => "Registration prior to any human observation of the data",
        Some("not-accessed") => "Registration prior to accessing the data",
        Some("not-analysed") => "Registration prior to analysis of the data",
        Some(_) => "Registration following analysis of the data",
        None if existing => "Registration following analysis of the data",
        None => "Registration prior to creation of data",
    }
    .to_owned()
}

fn design(plan: &Plan) -> String {
    let cells: u64 =
        (0..plan.stages.len()).map(|stage| expand::count(plan, stage)).fold(0, u64::saturating_add);
    let pilot = if plan.pilot.is_empty() { "" } else { " Pilot cells enter no claim." };
    format!("{} stages over the axes {}; {cells} members in all.{pilot}", plan.stages.len(), axes(plan))
}

fn axes(plan: &Plan) -> String {
    let one = |axis: &avow_model::axis::Axis| {
        const SHOWN: u64 = 12;
        let values: Vec<String> =
            (0..axis.len().min(SHOWN)).filter_map(|i| axis.value(i)).map(|v| v.to_string()).collect();
        let more =
            if axis.len() > SHOWN { format!(" and {} more", axis.len() - SHOWN) } else { String::new() };
        format!("{} ({}{more})", axis.name, values.join(", "))
    };
    plan.axes.iter().map(one).collect::<Vec<_>>().join(", ")
}

fn seeds(plan: &Plan) -> Option<String> {
    use avow_model::axis::Points;
    let one = |axis: &avow_model::axis::Axis| match &axis.points {
        Points::Seeds { count, fresh, .. } => {
            let from = if *fresh { "from the first registration" } else { "from the axis' name" };
            Some(format!("{count} seeds of `{}` are derived {from}; nobody picks them.", axis.name))
        }
        _ => None,
    };
    let all: Vec<String> = plan.axes.iter().filter_map(one).collect();
    (!all.is_empty()).then(|| all.join(" "))
}

fn stages(plan: &Plan) -> String {
    let one = |stage: &avow_model::plan::Stage| {
        let how = match &stage.program {
            Program::Op { name, .. } => format!("built-in {name}"),
            Program::Shell(template) => template.to_string(),
            Program::Arguments(arguments) => {
                arguments.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
            }
        };
        format!("{}: {how}", stage.name)
    };
    plan.stages.iter().map(one).collect::<Vec<_>>().join("\n")
}

fn sample_size(plan: &Plan) -> String {
    let units = |claim: &Claim| {
        let part = claim.test.parts().first().copied()?.replicate.clone()?;
        let count = plan.axis(&part).map(avow_model::axis::Axis::len);
        Some((part, count))
    };
    let all: BTreeMap<String, Option<u64>> = deciding(plan).filter_map(units).collect();
    let one = |(unit, count): (&String, &Option<u64>)| match count {
        Some(count) => format!("{count} units: the values of `{unit}`"),
        None => format!("units are the values of the record key `{unit}`"),
    };
    all.iter().map(one).collect::<Vec<_>>().join("; ")
}

fn stopping(plan: &Plan) -> Option<String> {
    let sequential: Vec<&str> = deciding(plan).filter(|c| c.sequential).map(|c| c.name.as_str()).collect();
    Some(match sequential.as_slice() {
        [] => "All planned cells are run; values are hidden until they are, and looking earlier is recorded."
            .to_owned(),
        some => {
            format!("Sequential, decided at the first look that excludes the bound: {}.", some.join(", "))
        }
    })
}

fn measured(plan: &Plan) -> String {
    let parts = plan.claims.iter().flat_map(|claim| claim.test.parts());
    let mut names: Vec<String> = parts
        .map(|part| {
            let (avow_model::claim::Selected::Measurement(name) | avow_model::claim::Selected::Output(name)) =
                &part.select.of;
            format!("{}.{name}", part.select.stage)
        })
        .collect();
    names.sort();
    names.dedup();
    names.join(", ")
}

fn analyses(plan: &Plan) -> String {
    let one = |claim: &Claim| {
        let rules: Vec<String> = claim
            .test
            .parts()
            .iter()
            .map(|part| {
                let method = part.rule.inference().map(|i| format!(" by {:?}", i.method).to_lowercase());
                format!("{}{}", part.rule.word(), method.unwrap_or_default())
            })
            .collect();
        let joined = match claim.test {
            Test::All(_) => "all of: ",
            Test::Any(_) => "any of: ",
            _ => "",
        };
        format!("{}: {joined}{}", claim.name, rules.join(", "))
    };
    deciding(plan).map(one).collect::<Vec<_>>().join("\n")
}

fn criteria(plan: &Plan) -> String {
    let families: BTreeMap<&str, &Claim> = deciding(plan).map(|c| (c.family.as_str(), c)).collect();
    let one = |(name, claim): (&&str, &&Claim)| {
        format!("{name}: α = {}, corrected by {:?}", claim.alpha, claim.correct)
    };
    let lines: Vec<String> = families.iter().map(one).collect();
    format!(
        "Supported where the corrected p-value is at most α and the data are on the claim's side, Refuted where on the \
         other, else Inconclusive. {}",
        lines.join("; ")
    )
}

fn exclusions(plan: &Plan) -> Option<String> {
    let all: Vec<&str> = plan.exclude.iter().map(|e| e.text()).collect();
    (!all.is_empty()).then(|| format!("Cells that do not exist: {}", all.join("; ")))
}

fn missing(plan: &Plan) -> String {
    let mut lines = vec!["A missing or non-finite unit voids the claim".to_owned()];
    for claim in deciding(plan) {
        for part in claim.test.parts() {
            if let Missing::Drop { void_above } = &part.missing {
                lines
                    .push(format!("{}: dropped and counted, void above a share of {void_above}", claim.name));
            }
        }
    }
    lines.join("; ")
}

/// The items of the NeurIPS checklist that the store answers, by their numbers.
fn checklist(plan: &Plan, report: &Report) -> Map<String, Value> {
    let mut answers = Map::new();
    let verdicts: Vec<Value> = report
        .verdicts
        .iter()
        .map(|v| json!({"claim": v.claim, "verdict": v.word.map(avow_audit::Word::word)}))
        .collect();
    answers.insert("1".to_owned(), json!({"claims": verdicts}));
    let commands: BTreeMap<&str, String> = plan
        .stages
        .iter()
        .map(|stage| (stage.name.as_str(), stages(&Plan { stages: vec![stage.clone()], ..plan.clone() })))
        .collect();
    let environments: BTreeMap<&str, Option<&str>> = plan
        .stages
        .iter()
        .map(|s| (s.name.as_str(), s.environment.as_ref().map(|e| e.path.as_str())))
        .collect();
    answers.insert("4".to_owned(), json!({"reproduce": "avow run", "plan": digest(plan)}));
    answers.insert("5".to_owned(), json!({"commands": commands, "environments": environments}));
    answers.insert("6".to_owned(), json!({"parameters": plan.params, "axes": axes(plan)}));
    let intervals: Vec<Value> = report
        .verdicts
        .iter()
        .map(|v| {
            json!({
                "claim": v.claim, "n": v.units.used, "planned": v.units.planned, "method": v.method,
                "interval": v.interval.map(|i| json!({"low": i.low, "high": i.high, "level": i.level})),
            })
        })
        .collect();
    answers.insert("7".to_owned(), json!({"units": sample_size(plan), "claims": intervals}));
    answers
}
