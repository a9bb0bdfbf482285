//! Families: their settings, their size, and the methods that follow from both.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use avow_model::claim::{
    Bound, Correction, Count, Judge, Method, Part, Rule, Selected, Side, Statistic, Test, Tier,
};
use avow_stats::Level;

use super::Cx;
use super::claims::{ClaimDraft, PartDraft, TestDraft};
use super::rule::{self, Arms, Choice};
use crate::diagnostic::{Diagnostic, did_you_mean};
use crate::reach::{self, Reach};
use crate::tree::Node;
use crate::units;

/// A family's settings.
#[derive(Clone)]
pub(super) struct Family {
    pub(super) level: Level,
    /// The level as the one spelling of its decimal.
    pub(super) alpha: String,
    pub(super) correct: Correction,
    /// Whether it may be looked at after every unit.
    pub(super) sequential: bool,
    /// A family all of whose claims must be Supported first.
    pub(super) gate: Option<String>,
}

/// The level where nothing is said.
const DEFAULT: &str = "0.05";

/// The settings of a family: its own, then those of `analysis`, then the defaults.
pub(super) fn settings(cx: &Cx<'_>, own: Option<&Node>) -> Family {
    let analysis = cx.spec.root().get("analysis");
    let find = |key: &str| own.and_then(|n| n.get(key)).or_else(|| analysis.and_then(|n| n.get(key)));
    let alpha = find("alpha").and_then(|node| {
        let alpha = units::share(&node.scalar()?.text)?;
        match alpha.parse() {
            Ok(level) => Some((level, alpha)),
            Err(_) => {
                let message =
                    format!("the level {alpha} is not above 0 and below 0.5, with at most 18 digits");
                cx.push(Diagnostic::error("level", node.span.clone(), message));
                None
            }
        }
    });
    let (level, alpha) = alpha.unwrap_or_else(|| (DEFAULT.parse().expect("a level"), DEFAULT.to_owned()));
    let correct = match find("correct").and_then(|n| n.text()) {
        Some("bonferroni") => Correction::Bonferroni,
        Some("none") => Correction::None,
        Some("hochberg") => Correction::Hochberg,
        Some("hommel") => Correction::Hommel,
        Some("bh") => Correction::Bh,
        Some("by") => Correction::By,
        Some("max") => Correction::Max,
        _ => Correction::Holm,
    };
    let correct = strict(cx, correct, find("directions"));
    let sequential = find("design").and_then(|n| n.text()) == Some("sequential");
    let correct = match correct {
        // The looks of a sequential design leave each member its own share of the level.
        Correction::Holm if sequential && find("correct").is_none() => Correction::Bonferroni,
        Correction::Bonferroni | Correction::None => correct,
        _ if sequential => {
            let at = find("correct").or_else(|| find("design")).map_or(0..0, |n| n.span.clone());
            let message = "a sequential design is corrected by `bonferroni`";
            cx.push(Diagnostic::error("design", at, message).hint("leave `correct` out"));
            correct
        }
        _ => correct,
    };
    let gate = own.and_then(|n| n.get("gate")).and_then(|n| n.text()).map(str::to_owned);
    let assumed = own.and_then(|n| n.get("assume")).is_some();
    if matches!(correct, Correction::Hochberg | Correction::Hommel) && !assumed {
        let at = find("correct").map_or(0..0, |n| n.span.clone());
        let message = "this correction holds only if the p-values are independent or positively dependent";
        let hint = "claim that in the family, `families: {NAME: {correct: …, assume: positive-dependence}}`, or use `holm`";
        cx.push(Diagnostic::error("dependence", at, message).hint(hint));
    }
    Family { level, alpha, correct, sequential, gate }
}

/// `directions: strict` is a stricter Holm.
fn strict(cx: &Cx<'_>, correct: Correction, directions: Option<&Arc<Node>>) -> Correction {
    let Some(at) = directions.filter(|n| n.text() == Some("strict")) else { return correct };
    if correct != Correction::Holm {
        let message = "`directions: strict` is a way to correct by `holm`";
        cx.push(Diagnostic::error("directions", at.span.clone(), message).hint("leave `correct` out"));
    }
    Correction::HolmStrict
}

pub(super) fn families(cx: &Cx<'_>, drafts: &[ClaimDraft<'_>]) -> BTreeMap<String, Family> {
    let declared = cx.spec.root().get("families").map(|n| n.entries()).unwrap_or_default();
    let by_name: HashMap<&str, &Node> = declared.iter().map(|e| (e.key.as_str(), &*e.value)).collect();
    let mut found: BTreeMap<String, Family> = BTreeMap::new();
    let mut tiers: HashMap<&str, &ClaimDraft<'_>> = HashMap::new();
    for draft in drafts {
        let first = tiers.entry(&draft.family).or_insert(draft);
        if first.tier != draft.tier {
            let at = draft.entry.value.get("family").map_or(draft.entry.at.clone(), |n| n.span.clone());
            let message = format!(
                "the family `{}` has a {} and a {} claim, and families never cross tiers",
                draft.family,
                first.tier.word(),
                draft.tier.word()
            );
            let diagnostic = Diagnostic::error("family", at, message);
            cx.push(diagnostic.label(first.entry.at.clone(), "the other claim"));
        }
        let own = by_name.get(draft.family.as_str()).copied();
        found.entry(draft.family.clone()).or_insert_with(|| settings(cx, own));
    }
    gates(cx, &found, &by_name);
    for entry in declared.iter().filter(|e| !found.contains_key(&e.key)) {
        let message = format!("no claim belongs to the family `{}`", entry.key);
        let near = did_you_mean(&entry.key, found.keys().map(String::as_str));
        cx.push(Diagnostic::warning("unused", entry.at.clone(), message).maybe_hint(near));
    }
    found
}

/// A gate is another family that decides, and gates do not go in circles.
fn gates(cx: &Cx<'_>, found: &BTreeMap<String, Family>, declared: &HashMap<&str, &Node>) {
    for (name, family) in found {
        let (Some(gate), Some(at)) =
            (family.gate.as_deref(), declared.get(name.as_str()).and_then(|node| node.get("gate")))
        else {
            continue;
        };
        let error = |message: String| Diagnostic::error("gate", at.span.clone(), message);
        let undecided = [Tier::Descriptive, Tier::Exploratory].map(Tier::word);
        if !found.contains_key(gate) {
            let near = did_you_mean(gate, found.keys().map(String::as_str));
            cx.push(error(format!("no claim belongs to the family `{gate}`")).maybe_hint(near));
        } else if undecided.contains(&gate) {
            let message = format!("claims of the family `{gate}` have no verdicts");
            cx.push(error(message).hint("a gate is a family that decides"));
        }
        let mut here = gate;
        for _ in 0..found.len() {
            if here == name {
                cx.push(error(format!("`{name}` waits for itself")).hint("gates go one way"));
                break;
            }
            match found.get(here).and_then(|family| family.gate.as_deref()) {
                Some(next) => here = next,
                None => break,
            }
        }
    }
}

/// Inferential members of each family.
pub(super) fn members(drafts: &[ClaimDraft<'_>]) -> HashMap<String, u64> {
    let mut count: HashMap<String, u64> = HashMap::new();
    for draft in drafts {
        let own = match &draft.test {
            TestDraft::One(part) if infers(&part.part) => part.members,
            TestDraft::All(parts) | TestDraft::Any(parts) if parts.iter().any(any_infers) => 1,
            _ => 0,
        };
        let slot = count.entry(draft.family.clone()).or_default();
        *slot = slot.saturating_add(own);
    }
    count
}

fn any_infers(test: &TestDraft) -> bool {
    match test {
        TestDraft::One(part) => infers(&part.part),
        TestDraft::All(parts) | TestDraft::Any(parts) => parts.iter().any(any_infers),
        TestDraft::Count { .. } | TestDraft::Unmeasured => false,
    }
}

fn infers(part: &Part) -> bool {
    if matches!(part.rule, Rule::Reported { .. }) {
        return true;
    }
    part.judge == Judge::Interval && part.rule.inference().is_some_and(|inference| !inference.deterministic)
}

/// Sets the methods of one claim, and says what they can show.
pub(super) struct Resolver<'r, 'a> {
    pub(super) cx: &'r Cx<'a>,
    pub(super) claim: &'r str,
    pub(super) family: &'r Family,
    /// How many members the family has; 1 outside the deciding tiers.
    pub(super) members: u64,
}

impl Resolver<'_, '_> {
    pub(super) fn test(&self, draft: TestDraft, out: &mut Vec<Reach>) -> Test {
        match draft {
            TestDraft::One(part) => Test::One(Box::new(self.part(*part, out))),
            TestDraft::All(parts) => Test::All(parts.into_iter().map(|part| self.test(part, out)).collect()),
            TestDraft::Any(parts) => Test::Any(parts.into_iter().map(|part| self.test(part, out)).collect()),
            TestDraft::Count { over, at_least, of } => {
                // Parts under a count are judged by their estimates, so nothing is said of their reach.
                let of = self.test(*of, &mut Vec::new());
                Test::Count(Box::new(Count { over, at_least, of }))
            }
            TestDraft::Unmeasured => Test::Unmeasured,
        }
    }

    fn part(&self, mut draft: PartDraft, out: &mut Vec<Reach>) -> Part {
        let method = match draft.choice {
            Choice::Fixed(method) => method,
            Choice::Paired => reach::paired_method(draft.n, self.family.level, self.members),
        };
        let method = self.designed(&draft, method);
        rule::set_method(&mut draft.part.rule, method);
        self.permuted(&draft);
        if infers(&draft.part) && method != Method::None {
            self.reach(&draft, method, out);
        }
        draft.part
    }

    /// Under a sequential design the method is one that holds at every look; elsewhere it is as it was.
    fn designed(&self, draft: &PartDraft, method: Method) -> Method {
        let inferential = infers(&draft.part) && method != Method::None;
        if !self.family.sequential || !inferential {
            if method == Method::Sequential {
                let message = "`sequential` belongs to a sequential design";
                let hint = "write `design: sequential` under `analysis` or the family";
                self.cx.push(Diagnostic::error("design", draft.at.clone(), message).hint(hint));
            }
            return method;
        }
        let mean = match &draft.part.rule {
            Rule::Threshold { statistic: Statistic::Mean, .. } => true,
            Rule::Difference { .. } | Rule::Equivalence { .. } => draft.arms != Arms::Unpaired,
            _ => false,
        };
        if !mean || draft.part.clusters.is_some() {
            let message = "a sequential design is for a mean or a difference over units that pair";
            let hint = "put this claim into a family with `design: fixed`";
            self.cx.push(Diagnostic::error("design", draft.at.clone(), message).hint(hint));
        }
        if matches!(method, Method::Bounded | Method::Sequential) {
            return method;
        }
        if let Some(at) = &draft.named {
            let message =
                format!("`{}` does not hold at every look of a sequential design", reach::word(method));
            let hint =
                "leave `method` out, name `bounded` with a `range`, or use a family with `design: fixed`";
            self.cx.push(Diagnostic::error("design", at.clone(), message).hint(hint));
        }
        Method::Sequential
    }

    /// One permutation for all needs means against one bound over units that pair.
    fn permuted(&self, draft: &PartDraft) {
        if self.family.correct != Correction::Max || !infers(&draft.part) {
            return;
        }
        let one_bound = |bound: &Bound| !matches!(bound, Bound::Between { .. });
        let fine = match &draft.part.rule {
            Rule::Threshold { statistic: Statistic::Mean, bound, inference } => {
                one_bound(bound) && !inference.log
            }
            Rule::Difference { bound, .. } => one_bound(bound) && draft.arms == Arms::Paired,
            _ => false,
        };
        if !fine {
            let message = "`max` corrects means against one bound, over units that all members share";
            let hint = "put this claim into another family, or correct by `holm`";
            self.cx.push(Diagnostic::error("max", draft.at.clone(), message).hint(hint));
        } else if draft.n.is_some_and(|n| n < 8) {
            let message = "`max` needs eight units or more";
            self.cx.push(Diagnostic::error("max", draft.at.clone(), message).hint("correct by `holm`"));
        }
    }

    fn reach(&self, draft: &PartDraft, method: Method, out: &mut Vec<Reach>) {
        let rule = &draft.part.rule;
        let members = if self.family.correct == Correction::None { 1 } else { self.members };
        let (level, two_arms) = (self.family.level, draft.arms == Arms::Unpaired);
        let plan = |n| reach::Plan { rule, method, n, two_arms, members, level };
        let answer = draft.n.and_then(|n| reach::answer(&plan(n)));
        let reach = Reach {
            claim: self.claim.to_owned(),
            rule: rule.word(),
            method,
            n: draft.n,
            paired: draft.arms == Arms::Paired,
            side: rule.inference().map_or(Side::Two, |inference| inference.side),
            smallest_q: answer.as_ref().map(|a| a.smallest_q),
            first_step_level: level.to_f64() / members as f64,
            members: self.members,
            reachable: answer.as_ref().is_none_or(|a| a.reachable && a.short.is_none()),
        };
        if let Some(answer) = &answer {
            self.warn(draft, &reach, answer);
        }
        out.push(reach);
    }

    fn warn(&self, draft: &PartDraft, reach: &Reach, answer: &reach::Answer) {
        let (claim, n, word) = (self.claim, reach.n.unwrap_or(0), reach::word(reach.method));
        let unit = if reach.paired { "pairs" } else { "units" };
        if !answer.reachable {
            let level = reach::rounded(answer.first_step_level);
            let message = format!("`{claim}` cannot be decided: {reach}, above the level {level}");
            self.push(draft, "undecidable", message, &wayout(answer));
        } else if let Some((least, _)) = answer.short {
            let message =
                format!("`{claim}` has {n} {unit}, and {word} needs {least} or more: it would be Void");
            self.push(draft, "undecidable", message, &wayout(answer));
        } else if let Some(power) = answer.few {
            let flip = 0.5_f64.powi(i32::try_from(n).unwrap_or(i32::MAX) - 1);
            let percent = (power * 100.0).round();
            let message = format!(
                "`{claim}` rests on {n} {unit}: an exact sign-flip could reach only {flip}, and t has {percent} % power at one standard deviation"
            );
            self.push(draft, "few-units", message, "plan eight or more");
        }
        if let Rule::Threshold { statistic: Statistic::Mean, .. } = &draft.part.rule
            && let Selected::Measurement(name) = &draft.part.select.of
            && n < 20
            && name.split(['-', '_']).any(|part| SKEWED.contains(&part))
        {
            let message =
                format!("`{claim}` tests the mean of `{name}`, which tends to be skewed, with {n} units");
            self.push(draft, "skewed", message, "consider `statistic: median`");
        }
    }

    fn push(&self, draft: &PartDraft, code: &'static str, message: String, hint: &str) {
        self.cx.push(Diagnostic::warning(code, draft.at.clone(), message).hint(hint));
    }
}

/// Parts of a name that tell a quantity whose values are often skewed.
const SKEWED: [&str; 5] = ["loss", "time", "seconds", "perplexity", "duration"];

/// What would make a plan decidable.
fn wayout(answer: &reach::Answer) -> String {
    match answer.short {
        Some((least, Some(method))) => format!("plan {least} units or more, or name `method: {method}`"),
        Some((least, None)) => format!("plan {least} units or more"),
        None => "plan more units, or fewer claims in the family".to_owned(),
    }
}
