//! `avow power`: how likely a claim is to be supported at its number of units, and how many it would take.

use avow_audit::Audit;
use avow_audit::judge::power::{
    Assumed, Power, Question, TRUSTED, at, has_formula, is_known, questions, spread, units_for,
};
use serde::Serialize;

use crate::args;
use crate::context::{Reading, Spec};
use crate::exit::Exit;
use crate::failure;
use crate::output::{Failure, Output};
use crate::words::{columns, number};

/// What is printed of one claim.
#[derive(Serialize)]
struct Answer {
    claim: String,
    rule: &'static str,
    effect: f64,
    deviation: Option<f64>,
    by: &'static str,
    pilot_units: usize,
    members: u32,
    wanted: f64,
    units_alone: Option<usize>,
    units_in_family: Option<usize>,
    largest_tried: usize,
    at: Vec<Power>,
}

/// Prints the power of the claims.
pub fn power(args: &args::Power, output: &Output) -> Result<Exit, Failure> {
    let spec = Spec::open(args.spec.spec.as_deref())?;
    let planned = spec.plan_as_run(output)?;
    let plan = &planned.plan;
    checked(args)?;
    let reading = Reading::open(&spec.project, &plan.experiment)?;
    let audit = Audit::gather(plan, reading.source(), &reading.ledger).map_err(failure::audit)?;
    if !plan.pilot.is_empty() {
        super::verdict::guard(&spec, &reading, &audit, args.peek, ("power", "the pilot"))?;
    }
    let all = questions(audit.evidence(), reading.source(), &reading.ledger).map_err(failure::audit)?;
    let wanted = |q: &&Question<'_>| args.claim.as_ref().is_none_or(|name| q.claim.name == *name);
    let asked: Vec<&Question<'_>> = all.iter().filter(wanted).collect();
    if asked.is_empty() {
        let names: Vec<&str> = all.iter().map(|q| q.claim.name.as_str()).collect();
        let message = "no such claim rests on one rule with an inference";
        let hint = match names.is_empty() {
            true => "power is asked of claims with one rule; combinations have the power of their parts"
                .to_owned(),
            false => format!("the claims are {}", names.join(", ")),
        };
        return Err(Failure::new(Exit::Usage, message).hint(hint));
    }
    let mut answers = Vec::new();
    for question in asked {
        match answer(args, question, output) {
            Ok(answer) => answers.push(answer),
            Err((message, hint)) if args.claim.is_some() => {
                return Err(Failure::new(Exit::Usage, message).hint(hint));
            }
            Err((message, hint)) => output.say(format!("{}: {message}; {hint}", question.claim.name)),
        }
    }
    if args.json {
        output.json(&answers)?;
    } else {
        for answer in &answers {
            output.data(text(answer).trim_end())?;
        }
    }
    if answers.is_empty() {
        return Err(Failure::new(Exit::Usage, "no claim's power can be told with what is given")
            .hint("say what to assume: `--effect X --sd S`"));
    }
    Ok(Exit::Done)
}

fn checked(args: &args::Power) -> Result<(), Failure> {
    let share = |x: f64| x > 0.0 && x < 1.0;
    if !share(args.power) || !share(args.base) {
        return Err(Failure::new(Exit::Usage, "`--power` and `--base` are shares between 0 and 1"));
    }
    if args.sd.is_some_and(|sd| !(sd > 0.0 && sd.is_finite())) || args.effect.is_some_and(|x| !x.is_finite())
    {
        return Err(Failure::new(Exit::Usage, "`--sd` is above zero, and `--effect` a number"));
    }
    if args.units.iter().any(|n| *n == 0 || *n > 100_000) {
        return Err(Failure::new(Exit::Usage, "`--units` are numbers from 1 to 100000"));
    }
    Ok(())
}

/// Why a claim has no answer, and what to do about it.
type Unanswered = (String, String);

fn answer(args: &args::Power, question: &Question<'_>, output: &Output) -> Result<Answer, Unanswered> {
    let usage = |message: &str, hint: &str| (message.to_owned(), hint.to_owned());
    let rule = question.part.rule.word();
    if !is_known(question.part) {
        let message = format!("the power of a {rule} is not known by formula or simulation");
        return Err(usage(&message, "ask about thresholds, differences, equivalences and proportions"));
    }
    let smallest = question.part.rule.inference().and_then(|inference| inference.smallest);
    let Some(effect) = args.effect.or(smallest) else {
        return Err(usage(
            "nothing says how large the effect is",
            "give `--effect X`, or `smallest:` in the rule",
        ));
    };
    let share = rule == "proportion";
    let deviation = if share { None } else { Some(deviation(args, question)?) };
    let residuals = match args.residuals {
        true if question.pilot.len() >= TRUSTED => question.pilot.clone(),
        true => {
            let message = format!("{} pilot units are too few to draw from", question.pilot.len());
            return Err(usage(&message, "leave `--residuals` out, or plan ten pilot units"));
        }
        false => Vec::new(),
    };
    let assumed = Assumed { effect, deviation: deviation.unwrap_or(1.0), residuals, base: args.base };
    let failed = |reason: avow_audit::judge::Reason| {
        usage(
            &format!("this rule has no power: {}", reason.detail().unwrap_or_default()),
            "see `avow check --full`",
        )
    };
    let planned = if args.units.is_empty() { vec![question.n] } else { args.units.clone() };
    let of = |n: &usize| at(question.part, &assumed, *n, question.alpha, question.members);
    let powers = planned.iter().map(of).collect::<Result<Vec<Power>, _>>().map_err(failed)?;
    let family = (question.alpha, question.members);
    let simulated = !has_formula(question.part) || !assumed.residuals.is_empty();
    let mut told = 0;
    let mut tell = |n: usize| {
        // Twice as many units cost twice as much or more: what came before is over by the time that it is worth a word.
        if simulated && n >= 64 && n > told {
            output.say(format!("{}: carrying the rule out on {n} units", question.claim.name));
            told = n;
        }
    };
    let needed = units_for(question.part, &assumed, args.power, family, &mut tell).map_err(failed)?;
    let by = match (has_formula(question.part), assumed.residuals.is_empty()) {
        (true, true) => "formula",
        (_, true) => "simulation, normal units",
        (_, false) => "simulation, the pilot's deviations",
    };
    Ok(Answer {
        claim: question.claim.name.clone(),
        rule,
        effect,
        deviation,
        by: if share { "simulation" } else { by },
        pilot_units: question.pilot.len(),
        members: question.members,
        wanted: args.power,
        units_alone: needed.alone,
        units_in_family: needed.in_family,
        largest_tried: needed.largest,
        at: powers,
    })
}

/// The standard deviation: given, or the pilot's.
fn deviation(args: &args::Power, question: &Question<'_>) -> Result<f64, Unanswered> {
    let missing = || {
        let hint = "give `--sd S`, or declare and run `pilot:` cells";
        ("nothing says how much units vary".to_owned(), hint.to_owned())
    };
    args.sd.or_else(|| spread(&question.pilot)).ok_or_else(missing)
}

fn text(answer: &Answer) -> String {
    let spread = answer.deviation.map(|s| format!(", standard deviation {}", number(s))).unwrap_or_default();
    let pilot = match answer.pilot_units {
        0 => String::new(),
        n if n < TRUSTED => format!(" (upper 80 % end of {n} pilot units)"),
        n => format!(" ({n} pilot units)"),
    };
    let mut out = format!(
        "{}: {}, effect {}{spread}{pilot}, by {}\n",
        answer.claim,
        answer.rule,
        number(answer.effect),
        answer.by
    );
    let percent = |p: f64| format!("{:.1} %", 100.0 * p);
    let rows: Vec<Vec<String>> = answer
        .at
        .iter()
        .map(|p| {
            let error = if p.error > 0.0 { format!("± {}", percent(p.error)) } else { String::new() };
            let family = if answer.members > 1 {
                format!("{} at the first step of {}", percent(p.in_family), answer.members)
            } else {
                String::new()
            };
            vec![format!("  {} units", p.n), format!("{} alone", percent(p.alone)), family, error]
        })
        .collect();
    out.push_str(&columns(&rows));
    let units =
        |n: Option<usize>| n.map_or_else(|| format!("more than {}", answer.largest_tried), |n| n.to_string());
    let family = match answer.members {
        0 | 1 => String::new(),
        m => format!(", {} at the first step of {m}", units(answer.units_in_family)),
    };
    let open = answer.units_alone.is_none() || answer.members > 1 && answer.units_in_family.is_none();
    let end = if open { "; no more were tried" } else { "" };
    out.push_str(&format!(
        "  for {}: {} units alone{family}{end}\n",
        percent(answer.wanted),
        units(answer.units_alone)
    ));
    out
}
