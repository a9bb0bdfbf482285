//! The rule of a claim: its region, its settings, and which methods make sense for it.

use std::collections::BTreeSet;

use avow_model::axis::Points;
use avow_model::claim::{
    Bound, CalibrationError, Coefficient, Extreme, Inference, Judge, Method, RankStatistic, Reported, Rule,
    Scale, Selection, Side, Statistic, Tolerance, TrendOf, Weighting,
};
use avow_model::expression::Expression;
use avow_model::value::Value;

use super::Cx;
use super::axes::{Axes, Known};
use super::reference::{self, Owner};
use super::selection::{Chosen, Dimension};
use crate::diagnostic::{Diagnostic, listed};
use crate::reach;
use crate::tree::Node;
use crate::units;

/// What a rule must know of the part it belongs to.
pub(super) struct Context<'c, 'd, 'a> {
    pub(super) cx: &'c Cx<'a>,
    pub(super) axes: &'c Axes,
    pub(super) chosen: &'c Chosen<'d, 'a>,
    /// Whether two arms are compared, and whether their units pair.
    pub(super) arms: Arms,
    pub(super) replicate: Option<String>,
    pub(super) n: Option<u64>,
    pub(super) per: &'c [String],
    pub(super) judge: Judge,
}

/// The arms of a contrast.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arms {
    /// No contrast.
    None,
    /// Every unit has a value in both.
    Paired,
    /// Each unit belongs to one of them.
    Unpaired,
}

/// How the method is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Choice {
    /// Named, or the only one.
    Fixed(Method),
    /// Sign-flip or t, by the number of units and the family.
    Paired,
}

/// A rule whose method may still depend on the family.
pub(super) struct Draft {
    pub(super) rule: Rule,
    pub(super) choice: Choice,
    /// The points that a fit without units has.
    pub(super) points: Option<u64>,
}

impl Draft {
    fn new(rule: Rule, choice: Choice) -> Draft {
        Draft { rule, choice, points: None }
    }
}

/// Whether rules of this word need `along`.
pub(super) fn runs_along(word: &str) -> bool {
    matches!(word, "trend" | "curve" | "slope" | "worst")
}

/// Sets the method of a rule.
pub(super) fn set_method(rule: &mut Rule, method: Method) {
    match rule {
        Rule::Threshold { inference, .. }
        | Rule::Difference { inference, .. }
        | Rule::Equivalence { inference, .. }
        | Rule::Proportion { inference, .. }
        | Rule::Trend { inference, .. }
        | Rule::Curve { inference, .. }
        | Rule::Slope { inference, .. }
        | Rule::Ratio { inference, .. }
        | Rule::Correlation { inference, .. }
        | Rule::Worst { inference, .. }
        | Rule::Calibration { inference, .. }
        | Rule::Agreement { inference, .. } => inference.method = method,
        Rule::Exact { .. } | Rule::Reported { .. } => {}
    }
}

/// The dimension a rule runs along, as written.
pub(super) fn along(node: &Node) -> Option<(&Node, &str)> {
    let along = node.get("rule")?.get("along")?;
    Some((along, along.text()?))
}

/// Reads the rule of a part.
pub(super) fn read(context: &Context<'_, '_, '_>, node: &Node) -> Option<Draft> {
    match node.get("kind")?.text()? {
        "threshold" => context.threshold(node),
        "difference" => context.difference(node),
        "equivalence" => context.equivalence(node),
        "proportion" => context.proportion(node),
        "trend" => context.trend(node),
        "curve" => context.curve(node),
        "slope" => context.slope(node),
        "exact" => context.exact(node),
        "ratio" => context.ratio(node),
        "interaction" => context.interaction(node),
        "agreement" => context.agreement(node),
        "worst" => context.worst(node),
        "reported" => context.reported(node),
        _ => None,
    }
}

impl Context<'_, '_, '_> {
    pub(super) fn push(&self, diagnostic: Diagnostic) {
        self.cx.push(diagnostic);
    }

    pub(super) fn error(&self, code: &'static str, node: &Node, message: impl Into<String>, hint: &str) {
        let diagnostic = Diagnostic::error(code, node.span.clone(), message);
        self.push(if hint.is_empty() { diagnostic } else { diagnostic.hint(hint) });
    }

    /// Settings of an inferential rule; `allowed` begins with the default, `None` in it means sign-flip or t.
    fn inference(&self, node: &Node, default: Choice, allowed: &[Method]) -> (Inference, Choice) {
        let mut choice = default;
        let named = node.get("method").and_then(|n| Some((n, n.text()?))).filter(|(_, word)| *word != "auto");
        if let Some((at, word)) = named
            && let Some(method) = method_of(word)
        {
            if allowed.is_empty() || allowed.contains(&method) {
                choice = if allowed.is_empty() { default } else { Choice::Fixed(method) };
            } else {
                let words = allowed.iter().map(|m| reach::word(*m));
                let message = format!("`{word}` is no method for this rule and design");
                self.error("method", at, message, &format!("it takes {}", listed(words)));
            }
        }
        let deterministic = node.get("variation").is_some();
        let lone = self.replicate.is_none() && deterministic && choice == default;
        if self.judge == Judge::Estimate || lone {
            choice = Choice::Fixed(Method::None);
        }
        let side = match node.get("side").and_then(|n| n.text()) {
            Some("one") => Side::One,
            _ => Side::Two,
        };
        let smallest = node.get("smallest").and_then(|n| self.quantity(n));
        let resampled = matches!(
            choice,
            Choice::Fixed(Method::Percentile | Method::Bca | Method::BootstrapT | Method::Permutation)
        );
        let unpaired = self.arms == Arms::Unpaired && (resampled || choice == Choice::Fixed(Method::None));
        let equal_spread = node.get("assume").and_then(|n| n.text()) == Some("equal-spread");
        let range = self.range(node, choice);
        let until = self.until(node);
        let unpaired =
            unpaired || self.arms == Arms::Unpaired && choice == Choice::Fixed(Method::RestrictedMean);
        let (method, log) = (Method::None, false);
        let inference =
            Inference { method, side, deterministic, smallest, unpaired, equal_spread, log, until, range };
        (inference, choice)
    }

    /// The time up to which a restricted mean is taken, which it needs.
    fn until(&self, node: &Node) -> Option<f64> {
        let restricted = node.get("method").and_then(|n| n.text()) == Some("restricted-mean");
        let Some(given) = node.get("until") else {
            if restricted {
                let hint = "say up to when it is taken: `until: 5000`, at most the shortest time that an arm was watched";
                self.error("missing-key", node, "`restricted-mean` needs `until`", hint);
            }
            return None;
        };
        let until = self.quantity(given)?;
        if until <= 0.0 {
            self.error("bound", given, "the time up to which a mean is taken is above zero", "");
        }
        if !restricted {
            let hint = "leave it out, or name the method";
            self.error("key", given, "only `method: restricted-mean` uses `until`", hint);
        }
        Some(until)
    }

    /// The declared range of `bounded`, which needs one.
    fn range(&self, node: &Node, choice: Choice) -> Option<(f64, f64)> {
        let bounded = choice == Choice::Fixed(Method::Bounded);
        let Some(given) = node.get("range") else {
            if bounded {
                let hint = "say where every value lies: `range: [0, 1]`";
                self.error("missing-key", node, "`bounded` needs a range", hint);
            }
            return None;
        };
        let [low, high] = given.items()? else { return None };
        let (low, high) = (self.quantity(low)?, self.quantity(high)?);
        if low >= high {
            self.error("bound", given, "the lower end of a range comes first", "");
            return None;
        }
        if !bounded {
            self.error(
                "key",
                given,
                "only `method: bounded` uses a range",
                "leave it out, or name the method",
            );
        }
        Some((low, high))
    }

    fn units_needed(&self, node: &Node, inference: &Inference) -> bool {
        let fine = self.replicate.is_some() || inference.deterministic || self.judge == Judge::Estimate;
        if !fine {
            let kind = node.get("kind").and_then(|n| n.text()).unwrap_or_default();
            let message = format!("`{kind}` needs units, and nothing says what they are");
            let hint = "name them with `replicate:`, or add an axis `seed: {seeds: 8}` that the stage uses";
            self.error("no-units", node, message, hint);
        }
        fine
    }

    fn no_arms(&self, node: &Node) {
        if self.arms != Arms::None {
            let kind = node.get("kind").and_then(|n| n.text()).unwrap_or_default();
            let hint = if kind == "threshold" { "use `kind: difference`" } else { "leave `compare` out" };
            self.error("compare", node, format!("`{kind}` does not take `compare` in this version"), hint);
        }
    }

    fn threshold(&self, node: &Node) -> Option<Draft> {
        self.no_arms(node);
        let bound = self.bound(node)?;
        let statistic = match node.get("statistic").and_then(|n| n.text()) {
            Some("median") => Statistic::Median,
            Some("every") => Statistic::Every,
            _ => Statistic::Mean,
        };
        let (default, allowed): (Method, &[Method]) = match statistic {
            Statistic::Mean => (Method::T, LEVEL),
            Statistic::Median => (Method::OrderStatistics, &[Method::OrderStatistics, Method::Bca]),
            Statistic::Every => (Method::None, &[]),
        };
        if statistic == Statistic::Every {
            for key in ["method", "side", "variation", "smallest"] {
                if let Some(entry) = node.entry(key) {
                    let message = format!("`every` makes no inference, so `{key}` says nothing");
                    self.push(Diagnostic::error("key", entry.at.clone(), message).hint("leave it out"));
                }
            }
        }
        let (mut inference, choice) = self.inference(node, Choice::Fixed(default), allowed);
        inference.log = self.logarithmic(node, &bound, statistic, choice);
        if statistic != Statistic::Every && !self.units_needed(node, &inference) {
            return None;
        }
        self.in_range(node, &bound, statistic);
        Some(Draft::new(Rule::Threshold { statistic, bound, inference }, choice))
    }

    /// Whether the mean is taken of logarithms, which makes it a geometric mean.
    fn logarithmic(&self, node: &Node, bound: &Bound, statistic: Statistic, choice: Choice) -> bool {
        let Some(at) = node.get("scale").filter(|n| n.text() == Some("log")) else { return false };
        if statistic != Statistic::Mean {
            let hint = "leave `scale` out: the order of values is the same on both scales";
            self.error("key", at, "`scale: log` is for a mean", hint);
        }
        if matches!(choice, Choice::Fixed(Method::Bounded | Method::RestrictedMean)) {
            self.error("key", at, "this method takes values as they are", "leave `scale` out");
        }
        let positive = match *bound {
            Bound::Above { bound, refute } | Bound::Below { bound, refute } => bound > 0.0 && refute > 0.0,
            Bound::Between { low, .. } => low > 0.0,
        };
        if !positive {
            self.error("bound", at, "a geometric mean is above zero, and so are its bounds", "");
        }
        true
    }

    fn difference(&self, node: &Node) -> Option<Draft> {
        let bound = self.bound(node)?;
        if self.arms == Arms::None {
            let hint = "write `compare: {AXIS: [FIRST, SECOND]}` beside the rule; it is first minus second";
            self.error("compare", node, "a difference needs the two arms it compares", hint);
            return None;
        }
        let (inference, choice) = self.paired_inference(node);
        self.ranks_only_at_zero(node, choice, Some(&bound));
        self.units_needed(node, &inference)
            .then_some(Draft::new(Rule::Difference { bound, inference }, choice))
    }

    /// The log-rank test says whether one arm lasts longer, and not by how much.
    fn ranks_only_at_zero(&self, node: &Node, choice: Choice, bound: Option<&Bound>) {
        let zero = match bound {
            Some(Bound::Above { bound, refute } | Bound::Below { bound, refute }) => {
                *bound == 0.0 && *refute == 0.0
            }
            Some(Bound::Between { .. }) | None => false,
        };
        if choice == Choice::Fixed(Method::LogRank) && !zero {
            let hint = "write `above: 0` or `below: 0`, or use `method: restricted-mean`";
            self.error("bound", node, "`log-rank` is for a difference against 0", hint);
        }
    }

    fn paired_inference(&self, node: &Node) -> (Inference, Choice) {
        match self.arms {
            Arms::Unpaired => self.inference(node, Choice::Fixed(Method::Welch), TWO_SAMPLES),
            Arms::Paired => self.inference(node, Choice::Paired, ONE_SAMPLE),
            Arms::None => self.inference(node, Choice::Fixed(Method::T), ONE_SAMPLE),
        }
    }

    fn equivalence(&self, node: &Node) -> Option<Draft> {
        let margin = self.quantity(node.get("margin")?)?;
        if margin <= 0.0 {
            self.error("bound", node.get("margin")?, "a margin is above zero", "");
            return None;
        }
        let about = node.get("about").and_then(|n| self.quantity(n));
        if node.entry("about").is_none() && self.arms == Arms::None {
            let hint = "give `about: VALUE`, or `compare:` two arms";
            self.error("missing-key", node, "an equivalence of a level needs the value it is about", hint);
            return None;
        }
        let (inference, choice) = self.paired_inference(node);
        self.ranks_only_at_zero(node, choice, None);
        if let Some(at) = node.get("smallest") {
            self.error(
                "key",
                at,
                "an equivalence has its margin; `smallest` says nothing here",
                "leave it out",
            );
        }
        let rule = Rule::Equivalence { about: about.unwrap_or(0.0), margin, inference };
        let fine = self.units_needed(node, rule.inference()?);
        fine.then_some(Draft::new(rule, choice))
    }

    fn proportion(&self, node: &Node) -> Option<Draft> {
        let success = self.success(node.get("success")?)?;
        let bound = self.bound(node)?;
        let least = if self.arms == Arms::None { 0.0 } else { -1.0 };
        let edges = match bound {
            Bound::Above { bound, .. } => (least..1.0).contains(&bound),
            Bound::Below { bound, .. } => bound > least && bound <= 1.0,
            Bound::Between { low, high } => (least..1.0).contains(&low) && high > least && high <= 1.0,
        };
        if !edges {
            let what = if self.arms == Arms::None { "a proportion" } else { "a difference of proportions" };
            self.error("bound", node, format!("{what} lies between {least} and 1"), "");
            return None;
        }
        let (default, allowed): (Method, &[Method]) = match self.arms {
            Arms::None => (Method::ClopperPearson, &[Method::ClopperPearson, Method::Wilson]),
            Arms::Paired => (Method::Mcnemar, &[Method::Mcnemar]),
            Arms::Unpaired => (Method::Newcombe, &[Method::Newcombe]),
        };
        let (inference, choice) = self.inference(node, Choice::Fixed(default), allowed);
        let fine = self.units_needed(node, &inference);
        fine.then_some(Draft::new(Rule::Proportion { success, bound, inference }, choice))
    }

    fn trend(&self, node: &Node) -> Option<Draft> {
        self.no_arms(node);
        let (along_node, along) = self.along(node)?;
        let bound = self.bound(node)?;
        self.ordered(along_node, along);
        if let Some(levels) = self.levels(along)
            && levels < 3
        {
            let message = format!("a trend needs three or more levels, and `{along}` has {levels}");
            self.error("levels", along_node, message, "with two levels use `difference`");
        }
        let inside = |x: f64| x > -1.0 && x < 1.0;
        let (fine, zero) = match bound {
            Bound::Above { bound, .. } | Bound::Below { bound, .. } => (inside(bound), bound == 0.0),
            Bound::Between { low, high } => (inside(low) && inside(high), false),
        };
        if !fine {
            self.error("bound", node, "a rank correlation lies between -1 and 1", "");
            return None;
        }
        let of = match node.get("of").and_then(|n| n.text()) {
            Some("unit") => TrendOf::Unit,
            Some("pooled") => TrendOf::Pooled,
            _ if zero => TrendOf::Unit,
            _ => TrendOf::Pooled,
        };
        if of == TrendOf::Unit && !zero {
            let hint = "use `of: pooled`; a t-test of correlations against another bound misleads";
            self.error("bound", node, "`of: unit` is for the bound 0", hint);
        }
        let statistic = match node.get("statistic").and_then(|n| n.text()) {
            Some("kendall") => RankStatistic::Kendall,
            _ => RankStatistic::Spearman,
        };
        self.ceiling(node, &bound, of, statistic, along);
        let (inference, choice) = match of {
            TrendOf::Unit => {
                self.inference(node, Choice::Paired, &[Method::SignFlip, Method::T, Method::Page])
            }
            TrendOf::Pooled => self.inference(node, Choice::Fixed(Method::Jackknife), &[Method::Jackknife]),
        };
        if !self.units_needed(node, &inference) {
            return None;
        }
        let along = along.to_owned();
        Some(Draft::new(Rule::Trend { along, statistic, of, bound, inference }, choice))
    }

    /// A pooled correlation cannot reach 1 where many values share a level.
    fn ceiling(&self, node: &Node, bound: &Bound, of: TrendOf, statistic: RankStatistic, along: &str) {
        let (Some(levels), Some(n)) = (self.levels(along), self.n) else { return };
        if of != TrendOf::Pooled || statistic != RankStatistic::Spearman || levels < 2 {
            return;
        }
        let ceiling = reach::pooled_ceiling(levels, n);
        let beyond = match bound {
            Bound::Above { bound, .. } => *bound >= ceiling,
            Bound::Below { bound, .. } => *bound <= -ceiling,
            Bound::Between { .. } => false,
        };
        if beyond {
            let message = format!(
                "with {levels} levels and {n} units a pooled Spearman correlation cannot exceed {ceiling:.4}"
            );
            self.error("bound", node, message, "choose a bound below that");
        }
    }

    fn curve(&self, node: &Node) -> Option<Draft> {
        self.no_arms(node);
        let (along_node, along) = self.along(node)?;
        let formula_node = node.get("formula")?;
        let formula = reference::formula(self.cx, formula_node)?;
        let mut used = BTreeSet::new();
        reference::check_formula(self.cx, self.axes, formula_node, &formula, Owner::Curve, &mut used);
        self.formula_names(formula_node, &formula, along);
        let within = self.tolerance(node.get("within")?)?;
        let (inference, choice) = self.inference(node, Choice::Fixed(Method::T), &[Method::T]);
        if self.replicate.is_none() && !inference.deterministic && self.judge == Judge::Interval {
            let hint = "name the units with `replicate:`, or say `variation: none` or `judge: estimate`";
            self.error("no-units", node, "a curve with one value per point has nothing to infer from", hint);
            return None;
        }
        if let Some(at) = node.get("smallest").or(node.get("side")) {
            self.error("key", at, "a curve is an equivalence at every point", "leave this key out");
        }
        self.evaluated(formula_node, &formula, &within, along);
        let _ = along_node;
        Some(Draft::new(Rule::Curve { along: along.to_owned(), formula, within, inference }, choice))
    }

    /// Every name of the formula must have one value at each point.
    fn formula_names(&self, node: &Node, formula: &Expression, along: &str) {
        for (path, range) in formula.names() {
            let name = match path {
                [root, rest @ ..] if root == "axes" || root == "keys" => rest.join("."),
                _ => continue,
            };
            let axis = name.split('.').next().unwrap_or_default();
            let real = self.axes.get(axis).map(|k| k.real.clone()).unwrap_or_default();
            let has = |wanted: &str| {
                along == wanted
                    || along.split('.').next() == Some(wanted)
                    || self.per.iter().any(|p| p == wanted || p.split('.').next() == Some(wanted))
                    || self.chosen.selection.filter.get(wanted).is_some_and(|values| values.len() == 1)
            };
            let fixed = has(&name) || has(axis) || (!real.is_empty() && real.iter().all(|r| has(r)));
            if !fixed {
                let place = self.cx.place(node, range.start, range.len());
                let message = format!("`{}` has no single value at a point along `{along}`", path.join("."));
                let hint =
                    "the formula may use the dimension it runs along, those under `per`, and parameters";
                self.push(Diagnostic::error("formula", place, message).hint(hint));
            }
        }
    }

    /// Evaluates the formula along its axis, where nothing else is in it.
    fn evaluated(&self, node: &Node, formula: &Expression, within: &Tolerance, along: &str) {
        const LOOKED_AT: u64 = 100;
        let Some(known) = self.axes.get(along) else { return };
        let only = formula.names().iter().all(|(path, _)| match path {
            [root, name, ..] if root == "axes" => name == along,
            [root, ..] => root == "params" || root == "pi",
            [] => true,
        });
        if !only {
            return;
        }
        for index in 0..known.len().min(LOOKED_AT) {
            let lookup = |path: &[String]| match path {
                [root, name] if root == "params" => self.cx.params.get(name).cloned(),
                [_, _] => known.axis.value(index),
                [_, _, attribute] => known.axis.attribute(index, attribute),
                _ => None,
            };
            let point = known.axis.value(index).unwrap_or(Value::Int(0));
            match formula.number(&lookup) {
                Ok(y) if y == 0.0 && within.relative > 0.0 && within.absolute == 0.0 => {
                    let message =
                        format!("the formula is 0 at `{along}` {point}, where a relative tolerance is 0");
                    self.error("formula", node, message, "give an `absolute` tolerance as well");
                    return;
                }
                Ok(_) => {}
                Err(error) => {
                    let place = self.cx.place(node, error.offset, error.length);
                    let message = format!("at `{along}` {point} this {}", error.reason);
                    self.push(Diagnostic::error("formula", place, message));
                    return;
                }
            }
        }
    }

    fn slope(&self, node: &Node) -> Option<Draft> {
        self.no_arms(node);
        let (along_node, along) = self.along(node)?;
        let bound = self.bound(node)?;
        let scale = match node.get("scale").and_then(|n| n.text()) {
            Some("log-log") => Scale::LogLog,
            _ => Scale::Linear,
        };
        self.numeric(along_node, along, scale == Scale::LogLog);
        let (default, allowed, least): (_, &[Method], u64) = match self.replicate {
            Some(_) => (Method::T, ONE_SAMPLE, 2),
            None => {
                let named = node.get("method").and_then(|n| n.text());
                let least = match named {
                    Some("theil-sen") => 6,
                    Some("power-offset") => 5,
                    _ => 4,
                };
                (Method::LeastSquares, POINTS, least)
            }
        };
        if node.get("method").and_then(|n| n.text()) == Some("power-offset") {
            self.numeric(along_node, along, true);
            if scale == Scale::LogLog {
                let hint = "leave `scale` out: the exponent is that of the values themselves";
                self.error("key", node, "`power-offset` fits y = a·x^−α + c on the linear scale", hint);
            }
        }
        if let Some(levels) = self.levels(along)
            && levels < least
        {
            let message = format!("this slope needs {least} or more points, and `{along}` has {levels}");
            self.error("levels", along_node, message, "");
        }
        let (inference, choice) = self.inference(node, Choice::Fixed(default), allowed);
        let points = if self.replicate.is_none() { self.levels(along) } else { None };
        let rule = Rule::Slope { along: along.to_owned(), scale, bound, inference };
        Some(Draft { rule, choice, points })
    }

    fn two_arms(&self, node: &Node, what: &str) -> bool {
        if self.arms == Arms::None {
            let hint = "write `compare: {AXIS: [FIRST, SECOND]}` beside the rule";
            self.error("compare", node, format!("{what} needs the two arms it compares"), hint);
        }
        self.arms != Arms::None
    }

    fn ratio(&self, node: &Node) -> Option<Draft> {
        let bound = self.bound(node)?;
        if !self.two_arms(node, "a ratio") {
            return None;
        }
        let positive = match bound {
            Bound::Above { bound, refute } | Bound::Below { bound, refute } => bound > 0.0 && refute > 0.0,
            Bound::Between { low, .. } => low > 0.0,
        };
        if !positive {
            self.error(
                "bound",
                node,
                "a ratio of positive values is above zero",
                "1 says that nothing differs",
            );
            return None;
        }
        let (default, allowed): (Method, &[Method]) = match self.arms {
            Arms::Unpaired => (Method::Welch, &[Method::Welch]),
            _ => (Method::T, &[Method::T, Method::Fieller]),
        };
        let (inference, choice) = self.inference(node, Choice::Fixed(default), allowed);
        let fine = self.units_needed(node, &inference);
        fine.then_some(Draft::new(Rule::Ratio { bound, inference }, choice))
    }

    /// The contrast of two crossed comparisons is a difference like any other.
    fn interaction(&self, node: &Node) -> Option<Draft> {
        let bound = self.bound(node)?;
        if !self.two_arms(node, "an interaction") {
            return None;
        }
        let (inference, choice) = match self.arms {
            Arms::Unpaired => self.inference(node, Choice::Fixed(Method::Welch), &[Method::Welch]),
            _ => self.inference(node, Choice::Paired, ONE_SAMPLE),
        };
        let fine = self.units_needed(node, &inference);
        fine.then_some(Draft::new(Rule::Difference { bound, inference }, choice))
    }

    /// The rule of one step of a ranking: the first exceeds the second.
    pub(super) fn step(&self, node: &Node) -> Option<Draft> {
        let bound = Bound::Above { bound: 0.0, refute: 0.0 };
        let (inference, choice) = self.paired_inference(node);
        let fine = self.units_needed(node, &inference);
        fine.then_some(Draft::new(Rule::Difference { bound, inference }, choice))
    }

    /// A correlation with another selection, which the caller has found.
    pub(super) fn correlation(&self, node: &Node, with: Selection) -> Option<Draft> {
        self.no_arms(node);
        let bound = self.inside_one(node, "a correlation")?;
        let statistic = match node.get("statistic").and_then(|n| n.text()) {
            Some("kendall") => Coefficient::Kendall,
            Some("pearson") => Coefficient::Pearson,
            _ => Coefficient::Spearman,
        };
        let only = Method::Permutation;
        let (inference, choice) = self.inference(node, Choice::Fixed(only), &[only]);
        let fine = self.units_needed(node, &inference);
        fine.then_some(Draft::new(Rule::Correlation { with, statistic, bound, inference }, choice))
    }

    fn agreement(&self, node: &Node) -> Option<Draft> {
        let bound = self.inside_one(node, "κ")?;
        if !self.two_arms(node, "an agreement") {
            return None;
        }
        let weights = match node.get("weights").and_then(|n| n.text()) {
            Some("linear") => Weighting::Linear,
            Some("quadratic") => Weighting::Quadratic,
            _ => Weighting::None,
        };
        let only = Method::Kappa;
        let (inference, choice) = self.inference(node, Choice::Fixed(only), &[only]);
        let fine = self.units_needed(node, &inference);
        fine.then_some(Draft::new(Rule::Agreement { weights, bound, inference }, choice))
    }

    /// The worst of several groups, which are the values of a dimension.
    fn worst(&self, node: &Node) -> Option<Draft> {
        self.no_arms(node);
        let bound = self.bound(node)?;
        let (along_node, along) = self.along(node)?;
        let take = match node.get("take")?.text()? {
            "highest" => Extreme::Highest,
            _ => Extreme::Lowest,
        };
        if self.levels(along) == Some(1) {
            self.error(
                "levels",
                along_node,
                format!("`{along}` has one value, which is no worst of several"),
                "use `kind: threshold`",
            );
        }
        let only = Method::WorstGroup;
        let (inference, choice) = self.inference(node, Choice::Fixed(only), &[only]);
        let fine = self.units_needed(node, &inference);
        let along = along.to_owned();
        fine.then_some(Draft::new(Rule::Worst { along, take, bound, inference }, choice))
    }

    /// How stated probabilities compare with another selection, which the caller has found.
    pub(super) fn calibration(&self, node: &Node, with: Selection) -> Option<Draft> {
        self.no_arms(node);
        let bound = self.bound(node)?;
        let bins = node.get("bins")?.scalar()?.text.parse().ok()?;
        let estimator = match node.get("estimator").and_then(|n| n.text()) {
            Some("expected") => CalibrationError::Expected,
            Some("root-mean-square") => CalibrationError::RootMeanSquare,
            _ => CalibrationError::DebiasedSquare,
        };
        let asked = matches!(bound, Bound::Above { bound, refute } if bound == 0.0 && refute == 0.0);
        if self.judge == Judge::Interval && !(asked && estimator == CalibrationError::DebiasedSquare) {
            let message =
                "a test of calibration asks whether the debiased square is above 0, and nothing else";
            let hint =
                "claim miscalibration (`above: 0`), or let the estimate alone decide: `judge: estimate`";
            self.error("bound", node, message, hint);
            return None;
        }
        let only = Method::Consistency;
        let (inference, choice) = self.inference(node, Choice::Fixed(only), &[only]);
        let fine = self.units_needed(node, &inference);
        let rule = Rule::Calibration { with, bins, estimator, bound, inference };
        fine.then_some(Draft::new(rule, choice))
    }

    fn inside_one(&self, node: &Node, what: &str) -> Option<Bound> {
        let bound = self.bound(node)?;
        let ends = match bound {
            Bound::Above { bound, refute } | Bound::Below { bound, refute } => [bound, refute],
            Bound::Between { low, high } => [low, high],
        };
        if ends.iter().any(|x| *x <= -1.0 || *x >= 1.0) {
            self.error("bound", node, format!("{what} lies between -1 and 1"), "");
            return None;
        }
        Some(bound)
    }

    fn reported(&self, node: &Node) -> Option<Draft> {
        self.no_arms(node);
        let bound = self.bound(node)?;
        if matches!(bound, Bound::Between { .. }) {
            let hint = "claim each bound by itself, joined by `all:`";
            self.error("bound", node, "a reported result is held against one bound", hint);
            return None;
        }
        let name = |key: &str| node.get(key).and_then(|n| n.text()).map(str::to_owned);
        let level = node.get("level").and_then(|n| units::share(&n.scalar()?.text));
        let read = Reported { low: name("low"), high: name("high"), level, p: name("p"), n: name("n") };
        if read.low.is_some() != read.high.is_some() {
            self.error("missing-key", node, "an interval has two ends", "give both `low` and `high`");
        }
        if read.p.is_none() && read.low.is_none() {
            let hint = "name the measurement with the p-value (`p:`) or the interval (`low:`, `high:`)";
            self.error("missing-key", node, "nothing reported could decide this", hint);
            return None;
        }
        if self.replicate.is_some() {
            let hint = "let one stage read all units and write one result, e.g. with `gather`";
            self.error("units", node, "a reported result is one number, not one per unit", hint);
        }
        let skewed = node.get("skewed").and_then(|n| n.scalar()).is_some_and(|s| s.text == "true");
        Some(Draft::new(Rule::Reported { read, bound, skewed }, Choice::Fixed(Method::None)))
    }

    fn exact(&self, node: &Node) -> Option<Draft> {
        let along = node.get("along").and_then(|n| Some((n, n.text()?)));
        let within = match node.get("within") {
            Some(at) => Some(self.tolerance(at)?),
            None => None,
        };
        match (along, self.arms) {
            (None, Arms::None) => {
                let hint =
                    "give `along: DIMENSION` (for repetitions `along: repeat`), or `compare:` two arms";
                self.error("missing-key", node, "nothing says which values must be equal", hint);
                return None;
            }
            (Some((at, _)), Arms::Paired | Arms::Unpaired) => {
                self.error("key", at, "`exact` takes `along` or `compare`, not both", "");
            }
            _ => {}
        }
        if self.judge == Judge::Estimate {
            self.error(
                "judge",
                node,
                "`exact` makes no inference, so `judge: estimate` says nothing",
                "leave it out",
            );
        }
        let along = along.map(|(_, along)| along.to_owned());
        Some(Draft::new(Rule::Exact { along, within }, Choice::Fixed(Method::None)))
    }

    fn along<'n>(&self, node: &'n Node) -> Option<(&'n Node, &'n str)> {
        let along = node.get("along")?;
        Some((along, along.text()?))
    }

    /// How many levels a dimension has, where that is known.
    fn levels(&self, dimension: &str) -> Option<u64> {
        let (axis, attribute) = dimension.split_once('.').map_or((dimension, None), |(a, b)| (a, Some(b)));
        if let Some(known) = self.axes.get(axis) {
            return match attribute {
                _ if known.axis.is_derived() => None,
                None => Some(self.chosen.left(known)),
                Some(name) => Some(known.attribute(name).values.len() as u64),
            };
        }
        self.chosen.selection.filter.get(dimension).map(|values| values.len() as u64)
    }

    fn known_axis(&self, along: &str) -> Option<&Known> {
        self.axes.get(along.split('.').next().unwrap_or_default())
    }

    /// A trend needs an order: numbers, or a list as declared.
    fn ordered(&self, node: &Node, along: &str) {
        let named = self.known_axis(along).filter(|k| matches!(k.axis.points, Points::Named(_)));
        if let Some(known) = named.filter(|_| !along.contains('.')) {
            let message = format!("the values of the mapping axis `{along}` have no order");
            self.error("levels", node, message, &attributes_hint(known));
        }
    }

    /// A slope needs numbers, positive ones on a logarithmic scale.
    fn numeric(&self, node: &Node, along: &str, positive: bool) {
        const LOOKED_AT: u64 = 100;
        let Some(known) = self.known_axis(along).filter(|k| !k.axis.is_derived()) else { return };
        let attribute = along.split_once('.').map(|(_, attribute)| attribute);
        let one = |i| match attribute {
            None => known.axis.value(i),
            Some(attribute) => known.axis.attribute(i, attribute),
        };
        for value in (0..known.len().min(LOOKED_AT)).filter_map(one) {
            match value.as_f64() {
                None => {
                    let hint = attributes_hint(known);
                    self.error(
                        "levels",
                        node,
                        format!("a slope needs numbers, and `{along}` has `{value}`"),
                        &hint,
                    );
                    return;
                }
                Some(x) if positive && x <= 0.0 => {
                    let message =
                        format!("a log-log slope needs numbers above zero, and `{along}` has `{value}`");
                    self.error("levels", node, message, "use `where:` to leave it out");
                    return;
                }
                Some(_) => {}
            }
        }
    }

    /// The kind of a dimension a rule runs along, after a check that it exists.
    pub(super) fn check_along(&self, node: &Node) -> Option<Dimension<'_>> {
        let (at, along) = self.along(node)?;
        self.chosen.dimension(self.cx, self.axes, along, at.span.clone())
    }
}

/// What to run along instead of a mapping axis.
fn attributes_hint(known: &Known) -> String {
    let name = &known.axis.name;
    let all: Vec<String> = known.attributes().map(|attribute| format!("{name}.{attribute}")).collect();
    match all.is_empty() {
        true => "use a list of numbers".to_owned(),
        false => format!("run along an attribute: {}", listed(all.iter().map(String::as_str))),
    }
}

/// The methods for one number per unit.
const ONE_SAMPLE: &[Method] = &[
    Method::T,
    Method::SignFlip,
    Method::Wilcoxon,
    Method::Percentile,
    Method::Bca,
    Method::BootstrapT,
    Method::Bounded,
    Method::Sequential,
];

/// Of a level, also what takes values that were cut off.
const LEVEL: &[Method] = &[
    Method::T,
    Method::SignFlip,
    Method::Wilcoxon,
    Method::Percentile,
    Method::Bca,
    Method::BootstrapT,
    Method::Bounded,
    Method::Sequential,
    Method::RestrictedMean,
];

/// The methods for two independent arms.
const TWO_SAMPLES: &[Method] = &[
    Method::Welch,
    Method::Student,
    Method::Permutation,
    Method::MannWhitney,
    Method::Percentile,
    Method::Bca,
    Method::BootstrapT,
    Method::RestrictedMean,
    Method::LogRank,
];

/// The methods for points without units.
const POINTS: &[Method] = &[Method::LeastSquares, Method::Hc3, Method::TheilSen, Method::PowerOffset];

/// Whether naming this method says that the units of two arms do not pair.
pub(super) fn names_two_samples(word: &str) -> bool {
    matches!(
        word,
        "welch" | "student" | "permutation" | "mann-whitney" | "newcombe" | "restricted-mean" | "log-rank"
    )
}

/// The method of a word.
fn method_of(word: &str) -> Option<Method> {
    const ALL: [Method; 29] = [
        Method::WorstGroup,
        Method::Consistency,
        Method::RestrictedMean,
        Method::LogRank,
        Method::Page,
        Method::Bounded,
        Method::Sequential,
        Method::Kappa,
        Method::Wilcoxon,
        Method::Percentile,
        Method::Bca,
        Method::BootstrapT,
        Method::Permutation,
        Method::Student,
        Method::MannWhitney,
        Method::Wilson,
        Method::Newcombe,
        Method::Mcnemar,
        Method::Fieller,
        Method::Hc3,
        Method::TheilSen,
        Method::PowerOffset,
        Method::T,
        Method::SignFlip,
        Method::Welch,
        Method::OrderStatistics,
        Method::ClopperPearson,
        Method::Jackknife,
        Method::LeastSquares,
    ];
    ALL.into_iter().find(|method| reach::word(*method) == word)
}
