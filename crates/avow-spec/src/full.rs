//! The completed spec: a plan written back as YAML, every default spelled out.
//!
//! What `check --full` prints is itself a spec, and lowering it gives the same plan digest. Limits and
//! resources, which are in no digest, are written too.

use std::collections::BTreeMap;

use avow_model::axis::{Axis, Points};
use avow_model::claim::{
    Bound, CalibrationError, Claim, Coefficient, Compare, Condition, Correction, Inference, Judge, Method,
    Missing, Part, RankStatistic, Reduction, Rule, Scale, Selected, Side, Statistic, Test, Tolerance,
    TrendOf, Weighting,
};
use avow_model::op::MEASUREMENTS_FILE;
use avow_model::plan::{
    Determinism, Image, Input, Keep, MeasurementFile, Output, Plan, Program, Reuse, Source, Stage, Terms,
};
use avow_model::search::{self, Choice, Dimension, Extreme, Gather, Goal, Method as Way, Search, Until};
use avow_model::value::Value;
use serde_yaml::{Mapping, Value as Yaml};

use crate::lower::{REPEAT, limits};
use crate::reach;
use crate::units;

/// The completed spec. `code` says which files each stage's code was made of, as the lowering found them.
pub fn full(plan: &Plan, terms: &BTreeMap<String, Terms>, code: &BTreeMap<String, Vec<String>>) -> String {
    let mut root = Map::default();
    root.put("avow", 1);
    root.put("experiment", plan.experiment.as_str());
    root.map("params", plan.params.iter().map(|(name, value)| (name.clone(), yaml(value))));
    let made = |axis: &Axis| matches!(axis.points, Points::Probed(_) | Points::Search(_));
    let axes = plan.axes.iter().filter(|axis| axis.name != REPEAT && !made(axis));
    root.map("axes", axes.map(|axis| (axis.name.clone(), points(axis))));
    root.map("search", search::searches(plan).map(|(name, search)| (name.to_owned(), self::search(search))));
    root.list("exclude", plan.exclude.iter().map(|e| Yaml::from(e.text())));
    root.maybe("pilot", pilot(plan));
    root.list("seen", texts(&plan.seen));
    root.map("registration", plan.registration.iter().map(|(k, v)| (k.clone(), Yaml::from(v.as_str()))));
    let repeat = plan.axis(REPEAT).map(Axis::len);
    let stages = plan.stages.iter().map(|stage| {
        let code = code.get(&stage.name).map(Vec::as_slice).unwrap_or_default();
        (stage.name.clone(), self::stage(stage, terms.get(&stage.name), code, repeat))
    });
    root.map("stages", stages);
    let mut families: BTreeMap<&str, &Claim> = BTreeMap::new();
    for claim in &plan.claims {
        families.entry(&claim.family).or_insert(claim);
    }
    root.map("families", families.into_iter().map(|(name, claim)| (name.to_owned(), family(claim))));
    root.map("claims", plan.claims.iter().map(|claim| (claim.name.clone(), self::claim(claim))));
    serde_yaml::to_string(&root.done()).expect("texts, numbers and collections are YAML")
}

/// The pilot cells, as a predicate.
fn pilot(plan: &Plan) -> Option<Yaml> {
    let all: Vec<String> = plan.pilot.iter().map(|e| e.text().to_owned()).collect();
    let mut map = Map::default();
    map.put("where", all.first()?.as_str());
    Some(map.done())
}

/// A mapping under construction; keys keep their order.
#[derive(Default)]
struct Map(Mapping);

impl Map {
    fn put(&mut self, key: &str, value: impl Into<Yaml>) {
        self.0.insert(Yaml::from(key), value.into());
    }

    fn maybe(&mut self, key: &str, value: Option<impl Into<Yaml>>) {
        if let Some(value) = value {
            self.put(key, value);
        }
    }

    fn list(&mut self, key: &str, items: impl Iterator<Item = Yaml>) {
        let items: Vec<Yaml> = items.collect();
        if !items.is_empty() {
            self.put(key, Yaml::Sequence(items));
        }
    }

    fn map(&mut self, key: &str, entries: impl Iterator<Item = (String, Yaml)>) {
        let map: Mapping = entries.map(|(key, value)| (Yaml::from(key), value)).collect();
        if !map.is_empty() {
            self.put(key, Yaml::Mapping(map));
        }
    }

    fn done(self) -> Yaml {
        Yaml::Mapping(self.0)
    }
}

fn yaml(value: &Value) -> Yaml {
    match value {
        Value::Bool(b) => Yaml::from(*b),
        Value::Int(i) => Yaml::from(*i),
        Value::Float(x) => Yaml::from(*x),
        Value::Text(text) => Yaml::from(text.as_str()),
        Value::List(items) => Yaml::Sequence(items.iter().map(yaml).collect()),
        Value::Map(map) => {
            Yaml::Mapping(map.iter().map(|(k, v)| (Yaml::from(k.as_str()), yaml(v))).collect())
        }
    }
}

fn texts(items: &[String]) -> impl Iterator<Item = Yaml> + '_ {
    items.iter().map(|item| Yaml::from(item.as_str()))
}

fn points(axis: &Axis) -> Yaml {
    let mut map = Map::default();
    match &axis.points {
        Points::List(values) => return Yaml::Sequence(values.iter().map(yaml).collect()),
        Points::Named(points) => {
            for point in points {
                let attributes = point.attributes.iter().map(|(k, v)| (Yaml::from(k.as_str()), yaml(v)));
                map.put(&point.name, Yaml::Mapping(attributes.collect()));
            }
        }
        Points::Range { start, stop, step } => map.list("range", [start, stop, step].into_iter().map(yaml)),
        Points::Log { low, high, count } => {
            map.list("log", [Yaml::from(*low), Yaml::from(*high), Yaml::from(*count)].into_iter());
        }
        Points::Seeds { count, salt, fresh, .. } => {
            map.put("seeds", *count);
            map.maybe("salt", salt.as_deref());
            map.maybe("fresh", fresh.then_some(true));
        }
        Points::Derived(formula) => map.put("derived", formula.text()),
        // Written under `search`.
        Points::Probed(_) | Points::Search(_) => {}
    }
    map.done()
}

fn interval(from: &Value, to: &Value, log: bool) -> Yaml {
    let mut interval = Map::default();
    interval.put("from", yaml(from));
    interval.put("to", yaml(to));
    interval.put("scale", if log { "log" } else { "linear" });
    interval.done()
}

fn choice(choice: &Choice) -> Yaml {
    match choice {
        Choice::Between { from, to, log } => interval(from, to, *log),
        Choice::Among(values) => Yaml::Sequence(values.iter().map(yaml).collect()),
    }
}

fn search(search: &Search) -> Yaml {
    let mut map = Map::default();
    let extreme = |goal: &Extreme| match goal {
        Extreme::Smallest => "smallest",
        Extreme::Largest => "largest",
    };
    let one = |key: &str, value: f64| -> Yaml {
        let mut one = Map::default();
        one.put(key, value);
        one.done()
    };
    match &search.method {
        Way::Bisection { from, to, log, goal, until } => {
            map.put("kind", "bisection");
            map.map("over", [(search.over.clone(), interval(from, to, *log))].into_iter());
            map.put(
                "goal",
                match goal {
                    Goal::Above(bound) => one("above", *bound),
                    Goal::Below(bound) => one("below", *bound),
                },
            );
            map.put(
                "until",
                match until {
                    Until::Width(width) => one("width", *width),
                    Until::Ratio(ratio) => one("ratio", *ratio),
                },
            );
        }
        Way::Best { goal } => {
            map.put("kind", if *goal == Extreme::Smallest { "argmin" } else { "argmax" });
            map.put("over", search.over.as_str());
        }
        Way::Halving { goal, budget, one_in } => {
            map.put("kind", "halving");
            map.put("over", search.over.as_str());
            map.put("budget", budget.as_str());
            map.put("goal", extreme(goal));
            map.put("one_in", *one_in);
        }
        Way::Ask(ask) => {
            map.put("kind", "ask");
            map.put("program", format!("{}.{}", ask.program, ask.output));
            let one = |dimension: &Dimension| (dimension.axis.clone(), choice(&dimension.choice));
            map.map("over", ask.space.iter().map(one));
            map.put("goal", extreme(&ask.goal));
        }
    }
    map.list("per", search.per.iter().map(|axis| Yaml::from(axis.as_str())));
    map.put("measure", format!("{}.{}", search.stage, search.measure));
    map.put(
        "reduce",
        match search.reduce {
            Gather::Mean => "mean",
            Gather::Median => "median",
            Gather::Min => "min",
            Gather::Max => "max",
        },
    );
    map.put("at_most", search.at_most);
    map.done()
}

fn stage(stage: &Stage, terms: Option<&Terms>, code: &[String], repeat: Option<u64>) -> Yaml {
    let mut map = Map::default();
    map.maybe("kind", stage.kind.map(avow_model::op::Kind::word));
    match &stage.program {
        Program::Shell(template) => map.put("run", template.to_string()),
        Program::Arguments(arguments) => map.list("run", arguments.iter().map(|a| Yaml::from(a.to_string()))),
        Program::Op { name, with, .. } => {
            map.put("uses", name.as_str());
            map.map("with", with.iter().map(|(k, v)| (k.clone(), yaml(v))));
        }
    }
    let operation = matches!(stage.program, Program::Op { .. });
    if !operation {
        map.put("code", Yaml::Sequence(texts(code).collect()));
        let image = |image: &Image| [("image".to_owned(), Yaml::from(image.name.as_str()))].into_iter();
        match &stage.environment {
            None if stage.image.is_some() => map.map("environment", stage.image.iter().flat_map(image)),
            Some(environment) => map.map(
                "environment",
                [(environment.manager.clone(), Yaml::from(environment.path.as_str()))].into_iter(),
            ),
            None => map.put("environment", "none"),
        }
        map.map("env", stage.env.iter().map(|(k, v)| (k.clone(), Yaml::from(v.to_string()))));
    }
    map.map("inputs", stage.inputs.iter().map(|(name, input)| (name.clone(), self::input(input))));
    outputs(stage, operation, &mut map);
    if stage.repeats {
        map.maybe("repeat", repeat);
    }
    map.put(
        "reuse",
        match stage.reuse {
            Reuse::Always => "always",
            Reuse::SameHost => "same-host",
            Reuse::Never => "never",
        },
    );
    map.put("determinism", determinism(&stage.determinism));
    map.maybe("hardware", stage.hardware.as_deref());
    if let Some(terms) = terms {
        self::terms(terms, &mut map);
    }
    map.done()
}

fn input(input: &Input) -> Yaml {
    let mut map = Map::default();
    match &input.from {
        Source::Path { path, .. } => {
            map.put("path", path.as_str());
            map.maybe("at", (input.mount != *path).then_some(input.mount.as_str()));
            // Whether files of the project are copied is no part of a plan; others never are.
            map.maybe("keep", path.starts_with('/').then_some("reference"));
        }
        Source::Url { url, digest } => {
            map.put("url", url.as_str());
            map.put("digest", digest.to_string());
            map.put("at", input.mount.as_str());
        }
        Source::Probes { search } => map.put("from", format!("{search}.probes")),
        Source::Output { stage, output, at, gather } => {
            map.put("from", format!("{stage}.{output}"));
            map.map("at", at.iter().map(|(k, v)| (k.clone(), yaml(v))));
            map.list("gather", texts(gather));
            map.maybe("for", input.scoring.then_some("scoring"));
        }
    }
    map.maybe("licence", input.licence.as_deref());
    map.done()
}

fn outputs(stage: &Stage, operation: bool, map: &mut Map) {
    let measured = |name: &str| stage.measurements.iter().any(|file| file.output == name);
    let plain = |output: &Output| !output.optional && !output.holdout;
    let listed = stage.outputs.iter().filter(|(name, output)| {
        let implied = operation && output.path == MEASUREMENTS_FILE && measured(name);
        !(implied || measured(name) && plain(output))
    });
    map.map("outputs", listed.map(|(name, output)| (name.clone(), self::output(output))));
    if !operation {
        let files = stage.measurements.iter().filter_map(|file| {
            let output = stage.outputs.get(&file.output)?;
            Some((file.output.clone(), measurement(file, output)))
        });
        map.map("measurements", files);
    }
}

fn output(output: &Output) -> Yaml {
    let mut map = Map::default();
    map.put("path", if output.folder { format!("{}/", output.path) } else { output.path.clone() });
    map.maybe("optional", output.optional.then_some(true));
    map.maybe("keep", (output.keep == Keep::Digest).then_some("digest"));
    map.maybe("holdout", output.holdout.then_some(true));
    map.done()
}

fn measurement(file: &MeasurementFile, output: &Output) -> Yaml {
    let mut map = Map::default();
    map.put("file", output.path.as_str());
    map.list("values", texts(&file.values));
    map.map("values", file.pointers.iter().map(|(k, v)| (k.clone(), Yaml::from(v.as_str()))));
    map.list("keys", texts(&file.keys));
    map.done()
}

fn determinism(determinism: &Determinism) -> Yaml {
    match determinism {
        Determinism::Bytes => Yaml::from("bytes"),
        Determinism::Distribution => Yaml::from("distribution"),
        Determinism::Unrepeatable => Yaml::from("unrepeatable"),
        Determinism::Tolerance(tolerance) => {
            let mut map = Map::default();
            map.put("class", "tolerance");
            self::tolerance(tolerance, &mut map);
            map.done()
        }
    }
}

fn tolerance(tolerance: &Tolerance, map: &mut Map) {
    map.maybe("absolute", (tolerance.absolute > 0.0).then_some(tolerance.absolute));
    map.maybe("relative", (tolerance.relative > 0.0).then_some(tolerance.relative));
}

fn terms(terms: &Terms, map: &mut Map) {
    let mut resources = Map::default();
    resources.put("cpus", terms.cpus);
    resources.maybe("memory", terms.memory.map(units::spell_size));
    resources.maybe("disk", terms.disk.map(units::spell_size));
    resources.maybe("gpus", (terms.gpus > 0).then_some(terms.gpus));
    map.put("resources", resources.done());
    map.maybe("timeout", terms.timeout.map(units::spell_duration));
    map.maybe("retries", (terms.retries > 0).then_some(terms.retries));
    map.maybe("checkpoint", terms.checkpoint.as_ref().map(|folder| format!("{folder}/")));
    map.list("secrets", texts(&terms.secrets));
}

fn family(claim: &Claim) -> Yaml {
    let mut map = Map::default();
    map.put("alpha", decimal(&claim.alpha));
    map.put(
        "correct",
        match claim.correct {
            Correction::Holm | Correction::HolmStrict => "holm",
            Correction::Max => "max",
            Correction::Bonferroni => "bonferroni",
            Correction::Hochberg => "hochberg",
            Correction::Hommel => "hommel",
            Correction::Bh => "bh",
            Correction::By => "by",
            Correction::None => "none",
        },
    );
    let dependent = matches!(claim.correct, Correction::Hochberg | Correction::Hommel);
    map.maybe("assume", dependent.then_some("positive-dependence"));
    map.maybe("directions", (claim.correct == Correction::HolmStrict).then_some("strict"));
    map.maybe("design", claim.sequential.then_some("sequential"));
    map.maybe("gate", claim.gate.as_deref());
    map.done()
}

/// An exact decimal as a number where that reads back as the same, else as text.
fn decimal(text: &str) -> Yaml {
    text.parse::<f64>().map_or_else(|_| Yaml::from(text), Yaml::from)
}

fn claim(claim: &Claim) -> Yaml {
    let mut map = Map::default();
    map.maybe("says", claim.says.as_deref());
    map.put("tier", claim.tier.word());
    map.put("family", claim.family.as_str());
    map.list("requires", texts(&claim.requires));
    map.maybe("after", claim.after.as_deref());
    map.maybe("weight", claim.weight.as_deref().map(decimal));
    test(&claim.test, &mut map, 0);
    map.map("means", claim.means.iter().map(|(k, v)| (k.clone(), Yaml::from(v.as_str()))));
    map.maybe("silent_on", claim.silent_on.as_deref());
    map.done()
}

fn test(test: &Test, map: &mut Map, depth: usize) {
    match test {
        Test::One(part) => self::part(part, map),
        Test::All(parts) | Test::Any(parts) if depth < limits::AXES => {
            let word = if matches!(test, Test::Any(_)) { "any" } else { "all" };
            let each = parts.iter().map(|part| {
                let mut map = Map::default();
                self::test(part, &mut map, depth + 1);
                map.done()
            });
            map.list(word, each);
        }
        Test::Count(count) if depth < limits::AXES => {
            let (mut own, mut of) = (Map::default(), Map::default());
            own.put("over", count.over.as_str());
            own.put("at_least", count.at_least);
            self::test(&count.of, &mut of, depth + 1);
            own.put("of", of.done());
            map.put("count", own.done());
        }
        Test::All(_) | Test::Any(_) | Test::Count(_) | Test::Unmeasured => {}
    }
}

fn part(part: &Part, map: &mut Map) {
    let name = match &part.select.of {
        Selected::Measurement(name) | Selected::Output(name) => name,
    };
    map.put("select", format!("{}.{name}", part.select.stage));
    let filter = part.select.filter.iter();
    map.map("where", filter.map(|(k, v)| (k.clone(), Yaml::Sequence(v.iter().map(yaml).collect()))));
    let arms = |c: &Compare| (c.dimension.clone(), Yaml::Sequence(vec![yaml(&c.first), yaml(&c.second)]));
    map.map("compare", part.compare.iter().chain(&part.crossed).map(arms));
    map.list(
        "reduce",
        part.reduce.iter().map(|reduce| {
            let mut one = Map::default();
            one.put(&reduce.dimension, reduction(reduce.by));
            one.done()
        }),
    );
    map.list("per", texts(&part.per));
    match (&part.replicate, &part.also) {
        (Some(unit), Some(also)) => map.list("replicate", texts(&[unit.clone(), also.clone()])),
        (unit, _) => map.maybe("replicate", unit.as_deref()),
    }
    map.maybe("strata", part.strata.as_deref());
    match (&part.clusters, part.by_units) {
        (Some(by), true) => {
            let mut own = Map::default();
            own.put("by", by.as_str());
            own.put("weight", "units");
            map.put("clusters", own.done());
        }
        (clusters, _) => map.maybe("clusters", clusters.as_deref()),
    }
    if let Some(control) = &part.control {
        let mut own = Map::default();
        own.put("of", control.of.as_str());
        own.list("equal_except", texts(&control.equal_except));
        map.put("control", own.done());
    }
    if let (Missing::Drop { void_above }, Some(unit)) = (&part.missing, &part.replicate) {
        let mut missing = Map::default();
        missing.put("drop", unit.as_str());
        missing.put("void_above", decimal(void_above));
        map.put("missing", missing.done());
    }
    map.maybe("judge", (part.judge == Judge::Estimate).then_some("estimate"));
    map.put("rule", rule(&part.rule, part.crossed.is_some()));
}

fn reduction(by: Reduction) -> &'static str {
    match by {
        Reduction::Mean => "mean",
        Reduction::Median => "median",
        Reduction::Min => "min",
        Reduction::Max => "max",
        Reduction::Sum => "sum",
    }
}

fn rule(rule: &Rule, crossed: bool) -> Yaml {
    let mut map = Map::default();
    map.put("kind", if crossed { "interaction" } else { rule.word() });
    map.maybe("along", rule.along());
    match rule {
        Rule::Threshold { statistic, bound, .. } => {
            map.put(
                "statistic",
                match statistic {
                    Statistic::Mean => "mean",
                    Statistic::Median => "median",
                    Statistic::Every => "every",
                },
            );
            self::bound(bound, &mut map);
        }
        Rule::Difference { bound, .. } | Rule::Ratio { bound, .. } => self::bound(bound, &mut map),
        Rule::Correlation { with, statistic, bound, .. } => {
            let (Selected::Measurement(name) | Selected::Output(name)) = &with.of;
            map.put("with", format!("{}.{name}", with.stage));
            map.put(
                "statistic",
                match statistic {
                    Coefficient::Spearman => "spearman",
                    Coefficient::Kendall => "kendall",
                    Coefficient::Pearson => "pearson",
                },
            );
            self::bound(bound, &mut map);
        }
        Rule::Worst { along, take, bound, .. } => {
            map.put("along", along.as_str());
            map.put("take", if *take == avow_model::claim::Extreme::Lowest { "lowest" } else { "highest" });
            self::bound(bound, &mut map);
        }
        Rule::Calibration { with, bins, estimator, bound, .. } => {
            let (Selected::Measurement(name) | Selected::Output(name)) = &with.of;
            map.put("with", format!("{}.{name}", with.stage));
            map.put("bins", u64::from(*bins));
            let word = match estimator {
                CalibrationError::DebiasedSquare => "debiased-square",
                CalibrationError::Expected => "expected",
                CalibrationError::RootMeanSquare => "root-mean-square",
            };
            map.put("estimator", word);
            self::bound(bound, &mut map);
        }
        Rule::Agreement { weights, bound, .. } => {
            map.put(
                "weights",
                match weights {
                    Weighting::None => "none",
                    Weighting::Linear => "linear",
                    Weighting::Quadratic => "quadratic",
                },
            );
            self::bound(bound, &mut map);
        }
        Rule::Reported { read, bound, skewed } => {
            map.maybe("low", read.low.as_deref());
            map.maybe("high", read.high.as_deref());
            map.maybe("level", read.level.as_deref().map(decimal));
            map.maybe("p", read.p.as_deref());
            map.maybe("n", read.n.as_deref());
            map.maybe("skewed", skewed.then_some(true));
            self::bound(bound, &mut map);
        }
        Rule::Equivalence { about, margin, .. } => {
            map.put("about", *about);
            map.put("margin", *margin);
        }
        Rule::Proportion { success, bound, .. } => {
            let (key, x) = match success {
                Condition::Above(x) => ("above", *x),
                Condition::AtLeast(x) => ("at_least", *x),
                Condition::Below(x) => ("below", *x),
                Condition::AtMost(x) => ("at_most", *x),
            };
            map.map("success", [(key.to_owned(), Yaml::from(x))].into_iter());
            self::bound(bound, &mut map);
        }
        Rule::Trend { statistic, of, bound, .. } => {
            map.put(
                "statistic",
                match statistic {
                    RankStatistic::Spearman => "spearman",
                    RankStatistic::Kendall => "kendall",
                },
            );
            map.put(
                "of",
                match of {
                    TrendOf::Unit => "unit",
                    TrendOf::Pooled => "pooled",
                },
            );
            self::bound(bound, &mut map);
        }
        Rule::Curve { formula, within, .. } => {
            map.put("formula", formula.text());
            map.put("within", self::within(within));
        }
        Rule::Slope { scale, bound, .. } => {
            map.put(
                "scale",
                match scale {
                    Scale::Linear => "linear",
                    Scale::LogLog => "log-log",
                },
            );
            self::bound(bound, &mut map);
        }
        Rule::Exact { within, .. } => map.maybe("within", within.as_ref().map(self::within)),
    }
    if let Some(inference) = rule.inference() {
        self::inference(rule, inference, &mut map);
    }
    map.done()
}

fn within(tolerance: &Tolerance) -> Yaml {
    let mut map = Map::default();
    self::tolerance(tolerance, &mut map);
    map.done()
}

fn bound(bound: &Bound, map: &mut Map) {
    let mut gap = |key: &str, opposite: &str, bound: f64, refute: f64| {
        map.put(key, bound);
        if refute != bound {
            map.map("refute", [(opposite.to_owned(), Yaml::from(refute))].into_iter());
        }
    };
    match bound {
        Bound::Above { bound, refute } => gap("above", "below", *bound, *refute),
        Bound::Below { bound, refute } => gap("below", "above", *bound, *refute),
        Bound::Between { low, high } => map.list("between", [*low, *high].into_iter().map(Yaml::from)),
    }
}

fn inference(rule: &Rule, inference: &Inference, map: &mut Map) {
    map.maybe("method", (inference.method != Method::None).then(|| reach::word(inference.method)));
    let sided = !matches!(rule, Rule::Curve { .. });
    map.maybe(
        "side",
        sided.then_some(match inference.side {
            Side::Two => "two",
            Side::One => "one",
        }),
    );
    map.maybe("variation", inference.deterministic.then_some("none"));
    map.maybe("smallest", inference.smallest);
    map.maybe("assume", inference.equal_spread.then_some("equal-spread"));
    map.maybe("scale", inference.log.then_some("log"));
    map.maybe("until", inference.until);
    if let Some((low, high)) = inference.range {
        map.list("range", [low, high].into_iter().map(Yaml::from));
    }
}
