//! Families: their settings, their size, and the methods that follow from both.

use std::collections::{BTreeMap, HashMap};

use avow_model::claim::{Correction, Count, Judge, Method, Part, Rule, Selected, Side, Statistic, Test};
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
        _ => Correction::Holm,
    };
    let assumed = own.and_then(|n| n.get("assume")).is_some();
    if matches!(correct, Correction::Hochberg | Correction::Hommel) && !assumed {
        let at = find("correct").map_or(0..0, |n| n.span.clone());
        let message = "this correction holds only if the p-values are independent or positively dependent";
        let hint = "claim that in the family, `families: {NAME: {correct: …, assume: positive-dependence}}`, or use `holm`";
        cx.push(Diagnostic::error("dependence", at, message).hint(hint));
    }
    Family { level, alpha, correct }
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
    for entry in declared.iter().filter(|e| !found.contains_key(&e.key)) {
        let message = format!("no claim belongs to the family `{}`", entry.key);
        let near = did_you_mean(&entry.key, found.keys().map(String::as_str));
        cx.push(Diagnostic::warning("unused", entry.at.clone(), message).maybe_hint(near));
    }
    found
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
        rule::set_method(&mut draft.part.rule, method);
        if infers(&draft.part) && method != Method::None {
            self.reach(&draft, method, out);
        }
        draft.part
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
