//! Claims with their verdicts.

use std::collections::BTreeSet;

use avow_audit::judge::Verdict as Judged;
use avow_report::document::{Claim, Verdict};

use super::{Page, anchor, figures};
use crate::words;

/// Files of a verdict that are linked one by one.
const LINKED: usize = 8;

/// Every claim of the plan, in its order.
pub(super) fn claims(page: &Page<'_>) -> Vec<Claim> {
    let chained = page.chained();
    let claim = |claim: &avow_model::claim::Claim| {
        let judged: Vec<&Judged> = page.report.verdicts.iter().filter(|v| v.claim == claim.name).collect();
        Claim {
            name: claim.name.clone(),
            tier: claim.tier.word().to_owned(),
            says: claim.says.as_deref().map(|says| says.trim().to_owned()),
            verdicts: judged.iter().map(|one| verdict(one, &chained)).collect(),
            explained: words::verdict::explained(page.plan, page.report, &claim.name).unwrap_or_default(),
            plots: figures::of_claim(claim, &judged, page.table),
        }
    };
    page.plan.claims.iter().map(claim).collect()
}

fn verdict(judged: &Judged, chained: &BTreeSet<String>) -> Verdict {
    let attempts: BTreeSet<String> =
        judged.evidence.iter().map(|origin| origin.attempt.to_string()).collect();
    let linked = attempts.iter().filter(|attempt| chained.contains(*attempt)).take(LINKED);
    let link =
        |attempt: &String| (anchor(attempt), format!("attempt {}", attempt.get(..8).unwrap_or(attempt)));
    let mut sources: Vec<_> = linked.map(link).collect();
    if attempts.len() > sources.len() && !sources.is_empty() {
        sources.push(("measurements".to_owned(), format!("and {} more", attempts.len() - sources.len())));
    }
    let at: Vec<String> = judged.member.iter().map(|(key, value)| format!("{key}={value}")).collect();
    Verdict {
        member: at.join(", "),
        word: judged.word.map(|word| words::verdict::capital(word.word())).unwrap_or_default(),
        numbers: words::verdict::numbers(judged),
        deviations: judged.deviations.iter().map(|position| position + 1).collect(),
        sources,
    }
}
