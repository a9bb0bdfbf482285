//! The numbers of a rule: bounds, gaps, margins, tolerances, conditions of success.

use std::collections::BTreeSet;

use avow_model::claim::{Bound, Condition, Judge, Statistic, Tolerance};

use super::reference::{self, Owner};
use super::rule::Context;
use crate::diagnostic::Diagnostic;
use crate::tree::Node;

impl Context<'_, '_, '_> {
    /// A number, or a formula over parameters, which is evaluated here.
    pub(super) fn quantity(&self, node: &Node) -> Option<f64> {
        if node.number().is_some() || node.text().is_none() {
            return node.number();
        }
        let formula = reference::formula(self.cx, node)?;
        let mut used = BTreeSet::new();
        reference::check_formula(self.cx, self.axes, node, &formula, Owner::Constant, &mut used);
        let lookup = |path: &[String]| match path {
            [root, name] if root == "params" => self.cx.params.get(name).cloned(),
            _ => None,
        };
        match formula.number(&lookup) {
            Ok(x) => Some(x),
            Err(error) => {
                let unknown =
                    formula.names().iter().any(|(path, _)| lookup(path).is_none() && path.join(".") != "pi");
                if !unknown {
                    let place = self.cx.place(node, error.offset, error.length);
                    self.push(Diagnostic::error("formula", place, format!("this {}", error.reason)));
                }
                None
            }
        }
    }

    pub(super) fn success(&self, node: &Node) -> Option<Condition> {
        let number = |key: &str| node.get(key).and_then(|n| self.quantity(n));
        let forms = [
            number("above").map(Condition::Above),
            number("at_least").map(Condition::AtLeast),
            number("below").map(Condition::Below),
            number("at_most").map(Condition::AtMost),
        ];
        let given: Vec<Condition> = forms.into_iter().flatten().collect();
        if given.len() != 1 && node.is_map() {
            self.error("success", node, "a success is one condition", "e.g. `success: {at_most: 0.05}`");
        }
        given.into_iter().next()
    }

    pub(super) fn tolerance(&self, node: &Node) -> Option<Tolerance> {
        let number = |key: &str| node.get(key).and_then(|n| self.quantity(n)).unwrap_or(0.0);
        let tolerance = Tolerance { absolute: number("absolute"), relative: number("relative") };
        if !node.is_map() {
            return None;
        }
        if tolerance.absolute < 0.0
            || tolerance.relative < 0.0
            || tolerance.absolute + tolerance.relative == 0.0
        {
            let hint = "e.g. `within: {absolute: 0.03}`";
            self.error("tolerance", node, "a tolerance needs `absolute` or `relative` above zero", hint);
            return None;
        }
        Some(tolerance)
    }

    /// The region: `above`, `below`, `between`, or both bounds.
    pub(super) fn bound(&self, node: &Node) -> Option<Bound> {
        let number = |key: &str| node.get(key).and_then(|n| self.quantity(n));
        let pair = node.get("between").and_then(|n| n.items()).and_then(|items| match items {
            [low, high] => Some((self.quantity(low)?, self.quantity(high)?)),
            _ => None,
        });
        let present = |key: &str| node.entry(key).is_some();
        let (above, below) = (number("above"), number("below"));
        if present("between") && (present("above") || present("below")) {
            self.error("bound", node, "`between` stands for both bounds", "leave `above` and `below` out");
            return None;
        }
        let both = pair.or(above.zip(below));
        if let Some((low, high)) = both {
            if low >= high {
                self.error(
                    "bound",
                    node,
                    format!("the lower bound {low} is not below the upper bound {high}"),
                    "",
                );
                return None;
            }
            if let Some(refute) = node.get("refute") {
                self.error("bound", refute, "`refute` goes with one bound", "leave it out");
            }
            return Some(Bound::Between { low, high });
        }
        let refuted = |key: &str| node.get("refute").and_then(|r| r.get(key)).and_then(|n| self.quantity(n));
        let wrong_side = |key: &str| node.get("refute").and_then(|r| r.entry(key));
        let bound = match (above, below) {
            (Some(bound), None) => {
                let refute = refuted("below").unwrap_or(bound);
                (Bound::Above { bound, refute }, refute <= bound, wrong_side("above"))
            }
            (None, Some(bound)) => {
                let refute = refuted("above").unwrap_or(bound);
                (Bound::Below { bound, refute }, refute >= bound, wrong_side("below"))
            }
            _ => {
                let attempted = ["above", "below", "between"].iter().any(|key| present(key));
                if !attempted {
                    let hint = "e.g. `above: 0`, `below: 0.05` or `between: [-1.2, -0.8]`";
                    self.error("missing-key", node, "the rule has no bound", hint);
                }
                return None;
            }
        };
        let (bound, ordered, wrong) = bound;
        if let Some(entry) = wrong {
            let message = "the opposite lies on the other side of the bound";
            let hint = "with `above` write `refute: {below: …}`, with `below` write `refute: {above: …}`";
            self.push(Diagnostic::error("bound", entry.at.clone(), message).hint(hint));
        } else if !ordered && let Some(refute) = node.get("refute") {
            self.error(
                "bound",
                refute,
                "the two regions overlap",
                "`refute` opens a gap, it does not close it",
            );
        }
        self.smallest(node, &bound);
        Some(bound)
    }

    fn smallest(&self, node: &Node, bound: &Bound) {
        let Some((at, smallest)) = node.get("smallest").and_then(|n| Some((n, self.quantity(n)?))) else {
            return;
        };
        let short = match bound {
            Bound::Above { bound, .. } => smallest < *bound,
            Bound::Below { bound, .. } => smallest > *bound,
            Bound::Between { .. } => true,
        };
        if short {
            let message = "the smallest effect of interest lies outside the claim's region";
            self.error("bound", at, message, "it is a stricter bound, on the claim's side");
        }
    }

    /// A bound that values with a known range cannot reach, or nearly touch.
    pub(super) fn in_range(&self, node: &Node, bound: &Bound, statistic: Statistic) {
        let Some((low, high)) = self.chosen.range else { return };
        let bounds: Vec<f64> = match bound {
            Bound::Above { bound, .. } | Bound::Below { bound, .. } => vec![*bound],
            Bound::Between { low, high } => vec![*low, *high],
        };
        let unreachable = match bound {
            Bound::Above { bound, .. } => *bound >= high,
            Bound::Below { bound, .. } => *bound <= low,
            Bound::Between { low: l, high: h } => *l >= high || *h <= low,
        };
        if unreachable {
            let message = format!("the values lie between {low} and {high}, so this cannot be Supported");
            self.push(Diagnostic::warning("undecidable", node.span.clone(), message));
            return;
        }
        let width = high - low;
        let near = |b: &f64| {
            width.is_finite() && ((b - low).abs() < 0.05 * width || (high - b).abs() < 0.05 * width)
        };
        if statistic == Statistic::Mean && self.judge == Judge::Interval && bounds.iter().any(near) {
            let message = format!("the values lie between {low} and {high}, and the bound is near an end");
            let hint = "means near an end are skewed; consider `statistic: median` or `kind: proportion`";
            self.push(Diagnostic::warning("near-end", node.span.clone(), message).hint(hint));
        }
    }
}
