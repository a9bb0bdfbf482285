//! Claims: parts, units, families, methods.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::ops::Range;

use avow_model::claim::{
    Claim, Compare, Correction, Judge, Method, Missing, Part, Reduce, Reduction, Rule, Selected, Selection,
    Statistic, Tier,
};
use avow_model::expression::Expression;
use avow_model::value::Value;

use super::axes::{Axes, Known};
use super::control;
use super::exclude::{self, Grid};
use super::family::{self, Resolver};
use super::rule::{self, Arms, Choice, Context};
use super::scope::Stages;
use super::selection::{self, Chosen, Dimension};
use super::sequence;
use super::{Cx, limits};
use crate::diagnostic::{Diagnostic, did_you_mean, listed};
use crate::keys::Names;
use crate::reach::Reach;
use crate::tree::{Entry, Node};
use crate::units;

/// All claims with what their plan can show.
pub(super) struct Claims {
    pub(super) claims: Vec<Claim>,
    pub(super) reach: Vec<Reach>,
    /// Outputs that claims compare.
    pub(super) selected: HashSet<(String, String)>,
}

/// A part whose method may still depend on the family.
pub(super) struct PartDraft {
    pub(super) part: Part,
    pub(super) choice: Choice,
    /// Planned units, or points; `None` where they are not known.
    pub(super) n: Option<u64>,
    pub(super) arms: Arms,
    /// How many family members it makes; at least one.
    pub(super) members: u64,
    /// Where its rule stands.
    pub(super) at: Range<usize>,
    /// Where its method is named, if it is.
    pub(super) named: Option<Range<usize>>,
}

/// A test whose methods are still open.
pub(super) enum TestDraft {
    One(Box<PartDraft>),
    All(Vec<TestDraft>),
    Any(Vec<TestDraft>),
    Count { over: String, at_least: u64, of: Box<TestDraft> },
    Unmeasured,
}

/// A claim whose methods are still open.
pub(super) struct ClaimDraft<'e> {
    pub(super) entry: &'e Entry,
    pub(super) tier: Tier,
    pub(super) family: String,
    pub(super) test: TestDraft,
}

/// Reads all claims.
pub(super) fn read(cx: &Cx<'_>, axes: &Axes, stages: &Stages<'_, '_>, exclude: &[Expression]) -> Claims {
    let entries = cx.spec.root().get("claims").map(|n| n.entries()).unwrap_or_default();
    if entries.len() > limits::CLAIMS {
        let message = format!("more than {} claims", limits::CLAIMS);
        cx.push(Diagnostic::error("too-large", entries[limits::CLAIMS].at.clone(), message));
    }
    let named = |e: &&Entry| e.value.is_map() && !e.is_value() && Names::Thing.allows(&e.key);
    let mut entries: Vec<&Entry> = entries.iter().take(limits::CLAIMS).filter(named).collect();
    entries.sort_by(|a, b| a.key.cmp(&b.key));
    let mut selected = HashSet::new();
    let reader = Reader {
        cx,
        axes,
        stages,
        exclude,
        budget: std::cell::Cell::new(limits::EVALUATIONS),
        counted: std::cell::RefCell::default(),
    };
    let drafts: Vec<ClaimDraft<'_>> =
        entries.iter().map(|entry| reader.claim(entry, &mut selected)).collect();
    requires(cx, &entries);
    sequence::check(cx, &drafts);
    let families = family::families(cx, &drafts);
    let members = family::members(&drafts);
    let mut found = Claims { claims: Vec::new(), reach: Vec::new(), selected };
    for draft in drafts {
        let family = families.get(&draft.family).cloned().unwrap_or_else(|| family::settings(cx, None));
        let count = members.get(&draft.family).copied().unwrap_or(1).max(1);
        let decided = matches!(draft.tier, Tier::Primary | Tier::Secondary);
        let resolver = Resolver {
            cx,
            claim: &draft.entry.key,
            family: &family,
            members: if decided { count } else { 1 },
        };
        let test = resolver.test(draft.test, &mut found.reach);
        found.claims.push(Claim {
            name: draft.entry.key.clone(),
            says: text(&draft.entry.value, "says"),
            tier: draft.tier,
            family: draft.family,
            correct: if decided { family.correct } else { Correction::None },
            alpha: family.alpha.clone(),
            requires: required(&draft.entry.value),
            means: means(&draft.entry.value),
            silent_on: text(&draft.entry.value, "silent_on"),
            after: text(&draft.entry.value, "after"),
            weight: draft.entry.value.get("weight").and_then(|n| n.number()).map(|x| x.to_string()),
            gate: family.gate.clone().filter(|_| decided),
            sequential: family.sequential && decided,
            test,
        });
    }
    found
}

fn text(node: &Node, key: &str) -> Option<String> {
    node.get(key).and_then(|n| n.text()).map(str::to_owned)
}

fn means(node: &Node) -> BTreeMap<String, String> {
    let entries = node.get("means").map(|n| n.entries()).unwrap_or_default();
    entries.iter().filter_map(|e| Some((e.key.clone(), e.value.text()?.to_owned()))).collect()
}

fn required(node: &Node) -> Vec<String> {
    let Some(node) = node.get("requires") else { return Vec::new() };
    let mut names: Vec<String> =
        node.one_or_more().iter().filter_map(|n| n.text().map(str::to_owned)).collect();
    names.sort();
    names.dedup();
    names
}

/// Names under `requires`, and cycles among them.
fn requires(cx: &Cx<'_>, entries: &[&Entry]) {
    let index: HashMap<&str, usize> = entries.iter().enumerate().map(|(i, e)| (e.key.as_str(), i)).collect();
    let mut edges: Vec<Vec<usize>> = vec![Vec::new(); entries.len()];
    for (i, entry) in entries.iter().enumerate() {
        let Some(node) = entry.value.get("requires") else { continue };
        for item in node.one_or_more() {
            let Some(name) = item.text() else { continue };
            match index.get(name) {
                Some(j) => edges[i].push(*j),
                None => {
                    let message = format!("there is no claim `{name}`");
                    let near = did_you_mean(name, entries.iter().map(|e| e.key.as_str()));
                    cx.push(Diagnostic::error("unknown-claim", item.span.clone(), message).maybe_hint(near));
                }
            }
        }
    }
    // Claims without open requirements are taken away until nothing moves; what stays is on or behind a cycle.
    let mut open: Vec<usize> = edges.iter().map(Vec::len).collect();
    let mut dependents: Vec<Vec<usize>> = vec![Vec::new(); entries.len()];
    for (i, targets) in edges.iter().enumerate() {
        targets.iter().for_each(|j| dependents[*j].push(i));
    }
    let mut free: Vec<usize> = (0..entries.len()).filter(|i| open[*i] == 0).collect();
    while let Some(i) = free.pop() {
        for dependent in &dependents[i] {
            open[*dependent] -= 1;
            if open[*dependent] == 0 {
                free.push(*dependent);
            }
        }
    }
    let Some(start) = open.iter().position(|n| *n > 0) else { return };
    let mut path = vec![start];
    while let Some(next) = path.last().and_then(|i| edges[*i].iter().find(|j| open[**j] > 0)) {
        if let Some(at) = path.iter().position(|i| i == next) {
            let names: Vec<String> =
                path[at..].iter().chain([next]).map(|i| format!("`{}`", entries[*i].key)).collect();
            let message = format!("these claims require each other: {}", names.join(" → "));
            cx.push(Diagnostic::error("cycle", entries[*next].at.clone(), message));
            return;
        }
        path.push(*next);
    }
}

fn tier(node: &Node) -> Tier {
    match node.get("tier").and_then(|n| n.text()) {
        Some("secondary") => Tier::Secondary,
        Some("descriptive") => Tier::Descriptive,
        Some("exploratory") => Tier::Exploratory,
        _ => Tier::Primary,
    }
}

struct Reader<'r, 'd, 'a> {
    cx: &'r Cx<'a>,
    axes: &'r Axes,
    stages: &'r Stages<'d, 'a>,
    exclude: &'r [Expression],
    /// Names that may still be looked up to count the units that exclusions leave.
    budget: std::cell::Cell<u64>,
    /// Dimensions that the counts around a part count over, outermost first.
    counted: std::cell::RefCell<Vec<String>>,
}

impl Reader<'_, '_, '_> {
    fn claim<'e>(&self, entry: &'e Entry, selected: &mut HashSet<(String, String)>) -> ClaimDraft<'e> {
        let tier = tier(&entry.value);
        let family = text(&entry.value, "family").unwrap_or_else(|| tier.word().to_owned());
        let words = [Tier::Primary, Tier::Secondary, Tier::Descriptive, Tier::Exploratory].map(Tier::word);
        if words.contains(&family.as_str()) && family != tier.word() {
            let at = entry.value.get("family").map_or(entry.at.clone(), |n| n.span.clone());
            let message = format!("the family `{family}` is that of the {family} tier");
            self.cx.push(Diagnostic::error("family", at, message).hint(format!("write `tier: {family}`")));
        }
        let bare = ["select", "all", "any", "count"].iter().all(|key| entry.value.entry(key).is_none());
        if bare && entry.value.entry("says").is_none() {
            let message = format!("the claim `{}` says nothing and selects nothing", entry.key);
            let hint = "give it `says:`, and `select:` with a `rule:`";
            self.cx.push(Diagnostic::error("missing-key", entry.at.clone(), message).hint(hint));
        }
        let test = self.test(&entry.value, &entry.at, selected).unwrap_or(TestDraft::Unmeasured);
        ClaimDraft { entry, tier, family, test }
    }

    /// Reads one part or an `all` of parts. Nesting is bounded by the tree's depth.
    fn test(
        &self,
        node: &Node,
        at: &Range<usize>,
        selected: &mut HashSet<(String, String)>,
    ) -> Option<TestDraft> {
        const OWN: [&str; 12] = [
            "select",
            "where",
            "compare",
            "reduce",
            "per",
            "replicate",
            "clusters",
            "strata",
            "control",
            "missing",
            "judge",
            "rule",
        ];
        let joined: Vec<&str> =
            ["all", "any", "count"].into_iter().filter(|key| node.get(key).is_some()).collect();
        if let [word, others @ ..] = joined.as_slice() {
            let beside = OWN.iter().chain(others);
            for entry in beside.filter_map(|key| node.entry(key)) {
                let message = format!("`{}` belongs to the parts of the `{word}`, not beside it", entry.key);
                self.cx
                    .push(Diagnostic::error("key", entry.at.clone(), message).hint("move it into each part"));
            }
            let mut read = |part: &Node| {
                let start = part.span.start..part.span.start;
                self.test(part, &start, selected)
            };
            let body = node.get(word)?;
            if *word == "count" {
                let over = body.get("over")?.text()?.to_owned();
                let at_least = body.get("at_least")?.scalar()?.text.parse().ok()?;
                self.counted.borrow_mut().push(over.clone());
                let of = read(body.get("of")?).map(Box::new);
                self.counted.borrow_mut().pop();
                let of = of?;
                return Some(TestDraft::Count { over, at_least, of });
            }
            let parts = body.one_or_more().iter().filter_map(|part| read(part)).collect();
            return Some(if *word == "any" { TestDraft::Any(parts) } else { TestDraft::All(parts) });
        }
        if node.entry("select").is_none() {
            for entry in OWN.iter().filter_map(|key| node.entry(key)).take(1) {
                let message = format!("`{}` needs a `select` beside it", entry.key);
                self.cx.push(Diagnostic::error("missing-key", entry.at.clone(), message));
            }
            return None;
        }
        if node.entry("rule").is_none() {
            let hint = "e.g. `rule: {kind: threshold, above: 0.9}`";
            let message = "nothing says what supports or refutes this";
            self.cx.push(Diagnostic::error("missing-key", at.clone(), message).hint(hint));
            return None;
        }
        if let Some(steps) = self.steps(node) {
            let parts = steps.into_iter().filter_map(|step| self.part(node, Some(step)));
            return Some(TestDraft::All(parts.map(|part| TestDraft::One(Box::new(part))).collect()));
        }
        let part = self.part(node, None)?;
        if let Selected::Output(output) = &part.part.select.of {
            selected.insert((part.part.select.stage.clone(), output.clone()));
        }
        Some(TestDraft::One(Box::new(part)))
    }

    /// The comparisons that a ranking, or a trend of means, consists of; `None` for other rules.
    fn steps(&self, node: &Node) -> Option<Vec<Compare>> {
        let rule = node.get("rule")?;
        let kind = rule.get("kind")?.text()?;
        let means = kind == "trend" && rule.get("of").and_then(|n| n.text()) == Some("means");
        if kind != "ranking" && !means {
            return None;
        }
        let at = rule.get(if means { "along" } else { "over" })?;
        let dimension = at.text()?;
        let error = |message: &str, hint: &str| {
            self.cx.push(Diagnostic::error("levels", rule.span.clone(), message.to_owned()).hint(hint));
            Some(Vec::new())
        };
        if let Some(entry) = node.entry("compare") {
            let message = format!("a {kind} names what it compares by itself");
            self.cx.push(Diagnostic::error("compare", entry.at.clone(), message).hint("leave `compare` out"));
        }
        let step = |first: Value, second: Value| Compare { dimension: dimension.to_owned(), first, second };
        let values: Vec<Value> = match self.axes.get(dimension).filter(|known| !known.axis.is_derived()) {
            Some(known) if known.len() <= limits::STEPS => {
                (0..known.len()).filter_map(|i| known.axis.value(i)).collect()
            }
            Some(_) => return error("there are too many values to compare one by one", "narrow the axis"),
            None => Vec::new(),
        };
        if means {
            let falls = rule.entry("below").is_some();
            if values.len() < 3 {
                return error(
                    "a trend of means runs along an axis with three or more values",
                    "use `of: pooled`",
                );
            }
            let pair = |pair: &[Value]| match falls {
                true => step(pair[0].clone(), pair[1].clone()),
                false => step(pair[1].clone(), pair[0].clone()),
            };
            return Some(values.windows(2).map(pair).collect());
        }
        let own = |n: &Node| n.value();
        match (rule.get("order"), rule.get("best")) {
            (Some(order), None) => {
                let order: Vec<Value> = order.items()?.iter().filter_map(|item| own(item)).collect();
                Some(order.windows(2).map(|pair| step(pair[0].clone(), pair[1].clone())).collect())
            }
            (None, Some(best)) => {
                let best = own(best)?;
                let key = super::axes::key(&best);
                let others: Vec<Value> =
                    values.into_iter().filter(|value| super::axes::key(value) != key).collect();
                if others.is_empty() {
                    return error("`best` needs an axis with other values to exceed", "or give an `order`");
                }
                Some(others.into_iter().map(|other| step(best.clone(), other)).collect())
            }
            _ => error(
                "a ranking has an `order` or a `best`, one of them",
                "e.g. `order: [large, base, small]`",
            ),
        }
    }

    fn part(&self, node: &Node, step: Option<Compare>) -> Option<PartDraft> {
        let (cx, axes) = (self.cx, self.axes);
        let before = cx.errors();
        let rule_node = node.get("rule")?;
        let exact = rule_node.get("kind").and_then(|n| n.text()) == Some("exact");
        let bytes = exact && rule_node.get("within").is_none();
        let mut chosen = selection::choose(cx, self.stages, node.get("select")?, bytes)?;
        if let Some(filter) = node.get("where") {
            chosen.filter(cx, axes, filter);
        }
        let mut used = BTreeSet::new();
        let (compare, crossed) = match &step {
            Some(step) => (self.checked_step(rule_node, step, &chosen, &mut used), None),
            None => {
                node.get("compare").map_or((None, None), |n| self.compare(n, rule_node, &chosen, &mut used))
            }
        };
        for counted in self.counted.borrow().iter() {
            let at = node.get("select").map_or(node.span.clone(), |n| n.span.clone());
            if chosen.dimension(cx, axes, counted, at).is_some() {
                used.insert(counted.clone());
            }
        }
        let reduce = node.get("reduce").map(|n| self.reduce(n, &chosen, &mut used)).unwrap_or_default();
        let (per, members) = self.per(node, &chosen, &mut used);
        if step.is_none()
            && let Some((at, along)) = rule::along(node)
            && chosen.dimension(cx, axes, along, at.span.clone()).is_some()
        {
            self.claim_dimension(along, at, &mut used);
        }
        let replicate = self.replicate(node, &chosen, &mut used);
        let also = self.also(node, &chosen, &mut used);
        let strata = self.strata(node, &chosen, &mut used);
        let (clusters, by_units) = self.clusters(node, &chosen, &mut used);
        let mut leftover = chosen.leftover(axes, &used);
        // A dimension that is folded away fixes no other one.
        let folded = |name: &String| reduce.iter().any(|fold| fold.dimension == *name);
        let kept: BTreeSet<String> = used.iter().filter(|name| !folded(name)).cloned().collect();
        leftover.retain(|name| !self.determined(&chosen, &kept, name));
        let lost = rule_node.get("kind").and_then(|n| n.text()).is_some_and(rule::runs_along)
            && rule_node.get("along").is_none();
        // A dimension that was dealt with wrongly is complained about already.
        if !leftover.is_empty() && cx.errors() == before && !lost {
            self.leftover(node, &chosen, &leftover);
        }
        let faulty = cx.errors() > before;
        let (arms, mut n) = self.units(node, &chosen, compare.as_ref(), replicate.as_deref());
        if let Some(also) = &also {
            let other = self.units(node, &chosen, compare.as_ref(), Some(also)).1;
            n = n.zip(other).map(|(one, other)| one.min(other));
        }
        let judge = match node.get("judge").and_then(|n| n.text()) {
            Some("estimate") => Judge::Estimate,
            // What a count counts is judged where there is one unit at most.
            _ if !self.counted.borrow().is_empty() => Judge::Estimate,
            _ => Judge::Interval,
        };
        if n == Some(0) && !faulty {
            let message = "no unit is left: all cells of what is selected are excluded, or pilots";
            cx.push(Diagnostic::error("no-cell", node.get("select")?.span.clone(), message));
        }
        let context =
            Context { cx, axes, chosen: &chosen, arms, replicate: replicate.clone(), n, per: &per, judge };
        let draft = if step.is_some() {
            context.step(rule_node)?
        } else {
            match rule_node.get("kind").and_then(|n| n.text()) {
                Some("correlation") => context.correlation(rule_node, self.other(node, rule_node)?)?,
                Some("calibration") => context.calibration(rule_node, self.other(node, rule_node)?)?,
                _ => {
                    context.check_along(rule_node);
                    rule::read(&context, rule_node)?
                }
            }
        };
        let mut draft = draft;
        if judge == Judge::Interval
            && let Some(choice) = self.of_units(node, (&draft.rule, arms), by_units, also.is_some())
        {
            draft.choice = choice;
        }
        let missing = self.missing(node, replicate.as_deref());
        let control = control::read(cx, axes, self.stages, node, &chosen, compare.as_ref().or(step.as_ref()));
        let select = chosen.selection;
        let part = Part {
            select,
            compare,
            crossed,
            reduce,
            per,
            replicate,
            clusters,
            strata,
            by_units,
            also,
            control,
            missing,
            judge,
            rule: draft.rule,
        };
        // Points stand for units where there are none.
        let n = draft.points.or(n).filter(|_| !faulty);
        let method = rule_node.get("method").filter(|n| n.text() != Some("auto"));
        let named = method.map(|n| n.span.clone());
        Some(PartDraft { part, choice: draft.choice, n, arms, members, at: rule_node.span.clone(), named })
    }

    /// Marks a dimension as dealt with; twice is a contradiction.
    fn claim_dimension(&self, name: &str, at: &Node, used: &mut BTreeSet<String>) {
        if !used.insert(name.to_owned()) {
            let message = format!("`{name}` is used in two ways here");
            let hint =
                "a dimension is compared, reduced, split by `per`, run along, or replicated: one of them";
            self.cx.push(Diagnostic::error("dimension", at.span.clone(), message).hint(hint));
        }
    }

    /// The other selection of a correlation, with the claim's `where`.
    fn other(&self, node: &Node, rule: &Node) -> Option<Selection> {
        let mut other = selection::choose(self.cx, self.stages, rule.get("with")?, false)?;
        if let Some(filter) = node.get("where") {
            other.filter(self.cx, self.axes, filter);
        }
        Some(other.selection)
    }

    /// What is sampled independently: an axis, an attribute or a record key that every unit has one value of.
    /// And whether clusters count by their units.
    fn clusters(
        &self,
        node: &Node,
        chosen: &Chosen<'_, '_>,
        used: &mut BTreeSet<String>,
    ) -> (Option<String>, bool) {
        let Some(given) = node.get("clusters") else { return (None, false) };
        let by_units = given.get("weight").and_then(|n| n.text()) == Some("units");
        let at = if given.is_map() { given.get("by") } else { Some(given) };
        let Some(at) = at else { return (None, false) };
        let Some(name) = at.text() else { return (None, false) };
        if chosen.dimension(self.cx, self.axes, name, at.span.clone()).is_none() {
            return (None, false);
        }
        used.insert(name.to_owned());
        (Some(name.to_owned()), by_units)
    }

    /// The dimension within whose values units are drawn.
    fn strata(&self, node: &Node, chosen: &Chosen<'_, '_>, used: &mut BTreeSet<String>) -> Option<String> {
        let at = node.get("strata")?;
        let name = at.text()?;
        chosen.dimension(self.cx, self.axes, name, at.span.clone())?;
        used.insert(name.to_owned());
        let rule = node.get("rule");
        let of = |key: &str| rule.and_then(|n| n.get(key)).and_then(|n| n.text());
        let mean = of("statistic").is_none_or(|word| word == "mean") && of("scale") != Some("log");
        let suits = matches!(of("kind"), Some("threshold" | "difference" | "equivalence")) && mean;
        if !suits || of("method") != Some("percentile") {
            let message = "units are drawn within strata for a mean, a paired difference or an equivalence by `method: percentile`";
            self.cx.push(
                Diagnostic::error("method", at.span.clone(), message).hint("name the method in the rule"),
            );
        }
        if let Some(entry) = node.entry("clusters") {
            let message = "units are drawn within strata or folded into clusters, not both";
            self.cx.push(Diagnostic::error("key", entry.at.clone(), message));
        }
        Some(name.to_owned())
    }

    /// The second of two dimensions that are sampled both.
    fn also(&self, node: &Node, chosen: &Chosen<'_, '_>, used: &mut BTreeSet<String>) -> Option<String> {
        let [_, second] = node.get("replicate")?.items()? else { return None };
        let name = second.text()?;
        chosen.dimension(self.cx, self.axes, name, second.span.clone())?;
        self.claim_dimension(name, second, used);
        for key in ["clusters", "strata", "missing"] {
            if let Some(entry) = node.entry(key) {
                let message = format!("`{key}` is for one kind of units, and these are two that cross");
                self.cx.push(Diagnostic::error("key", entry.at.clone(), message).hint("leave it out"));
            }
        }
        Some(name.to_owned())
    }

    /// What clusters that count by their units, and units of two kinds, ask of the rule: the method, where it is no longer
    /// open.
    fn of_units(
        &self,
        node: &Node,
        (rule, arms): (&Rule, Arms),
        by_units: bool,
        two: bool,
    ) -> Option<Choice> {
        let mean = match rule {
            Rule::Threshold { statistic, inference, .. } => *statistic == Statistic::Mean && !inference.log,
            Rule::Difference { .. } | Rule::Equivalence { .. } => arms != Arms::Unpaired,
            _ => false,
        };
        let at = node.get("rule").map_or(node.span.clone(), |n| n.span.clone());
        let named = node.get("rule").and_then(|n| n.get("method")).and_then(|n| n.text());
        if by_units && (!mean || named.is_some_and(|word| word != "sign-flip" && word != "auto")) {
            let message = "clusters count by their units for a mean or a paired difference, by sign-flip";
            let hint = "leave `weight: units` out, or the method";
            self.cx.push(Diagnostic::error("method", at.clone(), message).hint(hint));
        }
        let crossing = mean
            || matches!(
                rule,
                Rule::Threshold { statistic: Statistic::Median, .. }
                    | Rule::Ratio { .. }
                    | Rule::Slope { .. }
            );
        if two && !crossing {
            let message = "two kinds of units at once are for a mean, a median, a paired difference, an equivalence, a ratio or a slope";
            self.cx.push(Diagnostic::error("units", at, message).hint("name one of them under `replicate`"));
        }
        (by_units && mean && rule.inference().is_some_and(|i| !i.deterministic))
            .then_some(Choice::Fixed(Method::SignFlip))
    }

    /// One step of a ranking, its values checked like those of a `compare`.
    fn checked_step(
        &self,
        rule: &Node,
        step: &Compare,
        chosen: &Chosen<'_, '_>,
        used: &mut BTreeSet<String>,
    ) -> Option<Compare> {
        used.insert(step.dimension.clone());
        let dimension = chosen.dimension(self.cx, self.axes, &step.dimension, rule.span.clone())?;
        let own =
            |value: &Value| chosen.own_value(self.cx, self.axes, (&step.dimension, &dimension), value, rule);
        let (first, second) = (own(&step.first)?, own(&step.second)?);
        Some(Compare { dimension: step.dimension.clone(), first, second })
    }

    /// A contrast, and for an interaction a second one crossed with it.
    fn compare(
        &self,
        node: &Node,
        rule: &Node,
        chosen: &Chosen<'_, '_>,
        used: &mut BTreeSet<String>,
    ) -> (Option<Compare>, Option<Compare>) {
        // However wrong the rest is, these dimensions are spoken for.
        used.extend(node.entries().iter().map(|entry| entry.key.clone()));
        let crosses = rule.get("kind").and_then(|n| n.text()) == Some("interaction");
        match (node.entries(), crosses) {
            ([one], false) => (self.contrast(one, chosen), None),
            ([first, second], true) => (self.contrast(first, chosen), self.contrast(second, chosen)),
            (entries, _) => {
                if node.is_map() {
                    let wanted = if crosses {
                        "an interaction is over two dimensions"
                    } else {
                        "a contrast is over one dimension"
                    };
                    let message = format!("{wanted}, not {}", entries.len());
                    self.cx.push(Diagnostic::error("compare", node.span.clone(), message));
                }
                (None, None)
            }
        }
    }

    fn contrast(&self, entry: &Entry, chosen: &Chosen<'_, '_>) -> Option<Compare> {
        let dimension = chosen.dimension(self.cx, self.axes, &entry.key, entry.at.clone())?;
        let [first, second] = entry.value.items()? else { return None };
        let mut values = Vec::new();
        for item in [first, second] {
            let value = item.value()?;
            values.extend(chosen.own_value(self.cx, self.axes, (&entry.key, &dimension), &value, item));
        }
        let [first, second] = <[Value; 2]>::try_from(values).ok()?;
        if super::axes::key(&first) == super::axes::key(&second) {
            let message = format!("`{first}` is compared with itself");
            self.cx.push(Diagnostic::error("compare", entry.value.span.clone(), message));
        }
        Some(Compare { dimension: entry.key.clone(), first, second })
    }

    /// `{layer: mean}`, or a list where the order of folding matters.
    fn reduce(&self, node: &Node, chosen: &Chosen<'_, '_>, used: &mut BTreeSet<String>) -> Vec<Reduce> {
        let mut found = Vec::new();
        let maps: Vec<&Node> = match node.items() {
            Some(items) => items.iter().map(|item| &**item).collect(),
            None => vec![node],
        };
        for map in &maps {
            let mut entries: Vec<&Entry> = map.entries().iter().collect();
            entries.sort_by(|a, b| a.key.cmp(&b.key));
            let kinds: BTreeSet<&str> = entries.iter().filter_map(|e| e.value.text()).collect();
            if entries.len() > 1 && (kinds.len() > 1 || kinds.contains("median")) {
                let message = "the order of these reductions changes the result, and keys have no order";
                let hint = "write a list, the first reduction first: `reduce: [{layer: max}, {level: mean}]`";
                self.cx.push(Diagnostic::error("reduce", map.span.clone(), message).hint(hint));
            }
            for entry in entries {
                if chosen.dimension(self.cx, self.axes, &entry.key, entry.at.clone()).is_none() {
                    continue;
                }
                self.claim_dimension(&entry.key, &entry.value, used);
                let Some(by) = entry.value.text().and_then(reduction) else { continue };
                found.push(Reduce { dimension: entry.key.clone(), by });
            }
        }
        found
    }

    /// The dimensions under `per`, sorted, and how many members they make.
    fn per(&self, node: &Node, chosen: &Chosen<'_, '_>, used: &mut BTreeSet<String>) -> (Vec<String>, u64) {
        let mut names: Vec<String> = Vec::new();
        let mut members: u64 = 1;
        for item in node.get("per").map(|n| n.one_or_more()).unwrap_or_default() {
            let Some(name) = item.text() else { continue };
            let Some(dimension) = chosen.dimension(self.cx, self.axes, name, item.span.clone()) else {
                continue;
            };
            self.claim_dimension(name, item, used);
            let values = match dimension {
                Dimension::Axis(known) if known.axis.is_derived() => None,
                Dimension::Axis(known) => Some(chosen.left(known)),
                Dimension::Attribute(known, attribute) => {
                    let filtered = chosen.selection.filter.get(name).map(|v| v.len() as u64);
                    Some(filtered.unwrap_or_else(|| known.attribute(&attribute).values.len() as u64))
                }
                Dimension::Repeat(count) => Some(count),
                Dimension::Key => chosen.selection.filter.get(name).map(|values| values.len() as u64),
            };
            if values.is_none() {
                let message = format!("how many values `{name}` has is not known before the run");
                let hint =
                    "the family is counted with one; list the values with `where:` to plan with them all";
                self.cx.push(Diagnostic::warning("family", item.span.clone(), message).hint(hint));
            }
            let before: BTreeSet<String> = names.iter().cloned().collect();
            let implied = !before.is_empty() && self.determined(chosen, &before, name);
            members = members.saturating_mul(if implied { 1 } else { values.unwrap_or(1).max(1) });
            names.push(name.to_owned());
        }
        names.sort();
        (names, members)
    }

    /// The units: as said, else the axis `seed` where it is free.
    fn replicate(&self, node: &Node, chosen: &Chosen<'_, '_>, used: &mut BTreeSet<String>) -> Option<String> {
        if let Some(given) = node.get("replicate") {
            let at = match given.items() {
                Some(items) => items.first()?,
                None => given,
            };
            let name = at.text()?;
            chosen.dimension(self.cx, self.axes, name, at.span.clone())?;
            self.claim_dimension(name, at, used);
            return Some(name.to_owned());
        }
        const DEFAULT: &str = "seed";
        let known = self.axes.get(DEFAULT).filter(|k| !k.axis.is_derived())?;
        let free = chosen.draft.scope.contains(DEFAULT) && !used.contains(DEFAULT) && chosen.left(known) > 1;
        free.then(|| {
            used.insert(DEFAULT.to_owned());
            DEFAULT.to_owned()
        })
    }

    fn leftover(&self, node: &Node, chosen: &Chosen<'_, '_>, open: &[String]) {
        let names = listed(open.iter().map(String::as_str));
        let (first, several) = (&open[0], open.len() > 1);
        let message = format!(
            "{names} of `{}` {} open: each unit would have several values",
            chosen.draft.name,
            if several { "stay" } else { "stays" }
        );
        let hint = format!(
            "fold it with `reduce: {{{first}: mean}}`, split with `per: {first}`, fix it with `where: {{{first}: …}}`, or make it the unit with `replicate: {first}`"
        );
        let at = node.get("select").map_or(node.span.clone(), |n| n.span.clone());
        self.cx.push(Diagnostic::error("leftover", at, message).hint(hint));
    }

    /// Whether the arms pair, and how many units are planned.
    fn units(
        &self,
        node: &Node,
        chosen: &Chosen<'_, '_>,
        compare: Option<&Compare>,
        replicate: Option<&str>,
    ) -> (Arms, Option<u64>) {
        let named = node.get("rule").and_then(|r| r.get("method")).and_then(|n| n.text());
        let kind = node.get("rule").and_then(|r| r.get("kind")).and_then(|n| n.text());
        let unpaired = named.is_some_and(rule::names_two_samples) && kind != Some("correlation");
        let attempted = node.get("compare").is_some() || compare.is_some();
        let Some(replicate) = replicate else {
            return (if attempted { Arms::Paired } else { Arms::None }, Some(1));
        };
        let axis = self.axes.get(replicate.split('.').next().unwrap_or_default());
        let all = match axis {
            Some(known) if !replicate.contains('.') => {
                Some(self.surviving(chosen, known, compare).unwrap_or_else(|| chosen.left(known)))
            }
            Some(known) => replicate.split_once('.').map(|(_, a)| known.attribute(a).values.len() as u64),
            None if replicate == super::axes::REPEAT => chosen.draft.repeat,
            None => chosen.selection.filter.get(replicate).map(|values| values.len() as u64),
        };
        let Some(compare) = compare else {
            return (if attempted { Arms::Paired } else { Arms::None }, all);
        };
        // Units that carry the compared attribute belong to one arm each.
        let own = compare.dimension.strip_prefix(&format!("{replicate}."));
        if let (Some(attribute), Some(known)) = (own, axis) {
            let counts = known.attribute(attribute);
            let of = |value: &Value| counts.get(value).map_or(0, |(_, n)| *n);
            return (Arms::Unpaired, Some(of(&compare.first).min(of(&compare.second))));
        }
        (if unpaired { Arms::Unpaired } else { Arms::Paired }, all)
    }

    /// Whether the cells that exist give an axis one value only for each combination of some others, as where axes move
    /// together. `false` where it would cost too much to tell.
    fn determined(&self, chosen: &Chosen<'_, '_>, others: &BTreeSet<String>, name: &str) -> bool {
        let names = exclude::mentioned(self.axes, self.exclude);
        if !names.contains(name) || !others.iter().any(|other| names.contains(other.as_str())) {
            return false;
        }
        let grid = Grid::new(self.cx, self.axes, names);
        let cost = grid.cells.saturating_mul(exclude::cost(self.axes, self.exclude));
        let Some(left) = self.budget.get().checked_sub(cost) else { return false };
        self.budget.set(left);
        let mut seen: HashMap<Vec<u64>, u64> = HashMap::new();
        (0..grid.cells).all(|cell| {
            let point = grid.indices(cell);
            if !self.selected(chosen, &point) || grid.excluded(cell, self.exclude) != Ok(false) {
                return true;
            }
            let index = |(known, i): &(&Known, u64)| others.contains(&known.axis.name).then_some(*i);
            let at: Vec<u64> = point.iter().filter_map(index).collect();
            let own = point.iter().find(|(known, _)| known.axis.name == name).map_or(0, |(_, i)| *i);
            *seen.entry(at).or_insert(own) == own
        })
    }

    /// Whether `where` leaves a point.
    fn selected(&self, chosen: &Chosen<'_, '_>, point: &[(&Known, u64)]) -> bool {
        point.iter().all(|(known, i)| {
            let filter = chosen.selection.filter.get(&known.axis.name);
            filter.is_none_or(|values| known.axis.value(*i).is_some_and(|v| values.contains(&v)))
        })
    }

    /// How many values of the replicate axis have a cell (in both arms) that is not excluded. Groups under
    /// `per` may have fewer each; the audit counts those. `None` where it would cost too much.
    fn surviving(&self, chosen: &Chosen<'_, '_>, units: &Known, compare: Option<&Compare>) -> Option<u64> {
        let mut names: BTreeSet<&str> = exclude::mentioned(self.axes, self.exclude);
        if !names.contains(units.axis.name.as_str()) {
            return None;
        }
        names.extend(compare.map(|c| c.dimension.as_str()).filter(|name| self.axes.get(name).is_some()));
        let grid = Grid::new(self.cx, self.axes, names);
        let cost = grid.cells.saturating_mul(exclude::cost(self.axes, self.exclude));
        self.budget.set(self.budget.get().checked_sub(cost)?);
        let mut arms: [BTreeSet<u64>; 2] = Default::default();
        for cell in 0..grid.cells {
            let point = grid.indices(cell);
            let selected = self.selected(chosen, &point);
            let unit = point.iter().find(|(known, _)| known.axis.name == units.axis.name).map(|(_, i)| *i)?;
            if !selected || grid.excluded(cell, self.exclude) != Ok(false) {
                continue;
            }
            let arm =
                compare.and_then(|c| Some((c, point.iter().find(|(k, _)| k.axis.name == c.dimension)?)));
            let value = arm.and_then(|(c, (known, i))| Some((c, known.axis.value(*i)?)));
            match value {
                Some((c, value)) => {
                    arms[0].extend((value == c.first).then_some(unit));
                    arms[1].extend((value == c.second).then_some(unit));
                }
                None => arms.iter_mut().for_each(|arm| arm.extend([unit])),
            }
        }
        Some(arms[0].intersection(&arms[1]).count() as u64)
    }

    fn missing(&self, node: &Node, replicate: Option<&str>) -> Missing {
        let Some(given) = node.get("missing").filter(|n| n.is_map()) else { return Missing::Void };
        let share = given.get("void_above").and_then(|n| units::share(&n.scalar()?.text));
        if let Some(at) = given.get("drop")
            && at.text() != replicate
        {
            let message = match replicate {
                Some(unit) => format!("the units are `{unit}`, so that is what can be dropped"),
                None => "there are no units that could be dropped".to_owned(),
            };
            let hint = replicate.map(|unit| format!("write `drop: {unit}`"));
            self.cx.push(Diagnostic::error("missing-units", at.span.clone(), message).maybe_hint(hint));
        }
        share.map_or(Missing::Void, |void_above| Missing::Drop { void_above })
    }
}

fn reduction(word: &str) -> Option<Reduction> {
    Some(match word {
        "mean" => Reduction::Mean,
        "median" => Reduction::Median,
        "min" => Reduction::Min,
        "max" => Reduction::Max,
        "sum" => Reduction::Sum,
        _ => return None,
    })
}
