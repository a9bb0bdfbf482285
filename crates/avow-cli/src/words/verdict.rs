//! Verdicts in words: one line a claim, and everything behind one.

use avow_audit::judge::{Culprit, DecidedBy, Interval, Piece, Qualifier, Reason, Units, Verdict};
use avow_audit::{Report, Standing, Word};
use avow_model::claim::{Correction, Tier};
use avow_model::label;
use avow_model::plan::Plan;
use avow_model::value::Value;

use crate::output::Output;
use crate::words::{columns, denominators, deviation, number, witness};

/// The most members of one claim that are listed one by one in the short form.
const LISTED: usize = 6;

/// The verdicts of a report, a line a claim (or a line a family member), exploratory ones apart.
pub fn lines(plan: &Plan, report: &Report, output: &Output) -> String {
    let mut out = crate::search::lines(plan);
    for tier in [Tier::Primary, Tier::Secondary, Tier::Descriptive, Tier::Exploratory] {
        let of_tier: Vec<&Verdict> = report.verdicts.iter().filter(|v| v.tier == tier).collect();
        if !of_tier.is_empty() {
            out.push_str(&format!("{} claims\n", capital(tier.word())));
            out.push_str(&claims(plan, &of_tier, output));
        }
    }
    out.push_str(&standing(report, false));
    out.push_str(&seen(plan));
    out.push_str(&super::foreign::block(&report.foreign));
    out
}

/// What the author says was looked at before.
fn seen(plan: &Plan) -> String {
    plan.seen.iter().map(|text| format!("Seen before: {text}\n")).collect()
}

fn claims(plan: &Plan, verdicts: &[&Verdict], output: &Output) -> String {
    let mut blocks: Vec<(&str, Vec<&Verdict>)> = Vec::new();
    for verdict in verdicts {
        match blocks.last_mut() {
            Some((name, members)) if *name == verdict.claim => members.push(verdict),
            _ => blocks.push((&verdict.claim, vec![verdict])),
        }
    }
    let rows: Vec<Vec<Vec<String>>> = blocks.iter().map(|(name, members)| block(name, members)).collect();
    let table = columns(&rows.concat());
    let mut lines = table.lines();
    let mut out = String::new();
    for ((name, members), rows) in blocks.iter().zip(&rows) {
        for (line, row) in lines.by_ref().take(rows.len()).zip(rows) {
            out.push_str(&format!("  {}\n", painted(line, &row[0], output)));
        }
        out.push_str(&note(plan, name, members));
    }
    out
}

/// A line a member; a large family is one line, and the members that differ from most of it.
fn block(name: &str, members: &[&Verdict]) -> Vec<Vec<String>> {
    if members.len() <= LISTED {
        return members.iter().map(|verdict| row(verdict)).collect();
    }
    let words: Vec<String> = members.iter().map(|verdict| spelled(verdict)).collect();
    let count = |word: &String| words.iter().filter(|w| *w == word).count();
    let most = words.iter().max_by_key(|word| count(word)).cloned().unwrap_or_default();
    let common: Vec<&&Verdict> =
        members.iter().zip(&words).filter(|(_, w)| **w == most).map(|(m, _)| m).collect();
    let mut rows = vec![summary(name, &most, &common, members.len())];
    rows.extend(members.iter().zip(&words).filter(|(_, w)| **w != most).map(|(m, _)| row(m)));
    rows
}

fn summary(name: &str, word: &str, common: &[&&Verdict], all: usize) -> Vec<String> {
    let keys: Vec<&str> =
        common.first().map(|v| v.member.iter().map(|(key, _)| key.as_str()).collect()).unwrap_or_default();
    let estimates = common.iter().filter_map(|v| v.estimate);
    let (low, high) = estimates.fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), e| (l.min(e), h.max(e)));
    let q = common.iter().filter_map(|v| v.q_corrected).fold(f64::NEG_INFINITY, f64::max);
    let units = common.iter().map(|v| v.units.used).min().unwrap_or(0);
    let planned = common.iter().map(|v| v.units.planned).max().unwrap_or(0);
    vec![
        word.to_owned(),
        format!("{name} per {}: {} of {all}", keys.join(", "), common.len()),
        if low <= high { format!("{} to {}", number(low), number(high)) } else { String::new() },
        if q >= 0.0 { format!("q ≤ {}", number(q)) } else { String::new() },
        format!("n {units}/{planned}"),
        format!("`--explain {name}` lists them"),
    ]
}

fn painted(line: &str, word: &str, output: &Output) -> String {
    let colour = match word {
        "Supported" => 32,
        "Refuted" | "Reversed" => 31,
        "Inconclusive" | "Void" => 33,
        _ => return line.to_owned(),
    };
    match line.strip_prefix(word) {
        Some(rest) => format!("{}{rest}", output.coloured(word, colour)),
        None => line.to_owned(),
    }
}

fn spelled(verdict: &Verdict) -> String {
    verdict.word.map_or_else(|| "Estimate".to_owned(), |word| capital(word.word()))
}

fn row(verdict: &Verdict) -> Vec<String> {
    vec![
        spelled(verdict),
        format!("{}{}", verdict.claim, place(&verdict.member)),
        figures(verdict),
        // A void member counts in its family with q = 1, which says nothing to a reader.
        verdict
            .q_corrected
            .filter(|_| verdict.word != Some(Word::Void))
            .map(|q| format!("q {}", number(q)))
            .unwrap_or_default(),
        format!("n {}/{}{}", verdict.units.used, verdict.units.planned, clusters(&verdict.units)),
        why(verdict),
    ]
}

/// The numbers of one verdict and the reason for its word, as one line.
pub fn numbers(verdict: &Verdict) -> String {
    let parts = row(verdict).into_iter().skip(2).filter(|part| !part.is_empty());
    parts.collect::<Vec<_>>().join("  ")
}

fn note(plan: &Plan, name: &str, members: &[&Verdict]) -> String {
    let Some(claim) = plan.claim(name) else { return String::new() };
    let mut text = String::new();
    if let Some(diverged) = members.iter().map(|verdict| &verdict.diverged).find(|names| !names.is_empty()) {
        text.push_str(&format!("      note: {}\n", diverged_words(diverged)));
    }
    if let Some(says) = &claim.says {
        text.push_str(&format!("      {}\n", says.trim()));
    }
    let words: std::collections::BTreeSet<Word> = members.iter().filter_map(|v| v.word).collect();
    for word in &words {
        let Some(means) = claim.means.get(word.word()) else { continue };
        let which = if words.len() > 1 { format!("where {}: ", word.word()) } else { String::new() };
        text.push_str(&format!("      ({which}{})\n", means.trim()));
    }
    if let Some(silent) = &claim.silent_on {
        text.push_str(&format!("      (silent on {})\n", silent.trim()));
    }
    text
}

/// Members whose attempts diverged, under a verdict that rests on them.
fn diverged_words(members: &[String]) -> String {
    let shown: Vec<&str> = members.iter().take(3).map(String::as_str).collect();
    let more = if members.len() > 3 { format!(" and {} more", members.len() - 3) } else { String::new() };
    format!(
        "rests on {}{more}, which did not give the same bytes when executed again; the first counts",
        shown.join(", ")
    )
}

/// `0.0245 [0.006, 0.045] 95 %`
fn figures(verdict: &Verdict) -> String {
    let estimate = verdict.estimate.map(number).unwrap_or_default();
    match verdict.interval {
        Some(interval) => format!("{estimate} {}", span(interval)),
        None => estimate,
    }
}

fn span(interval: Interval) -> String {
    let level = number((interval.level * 1e4).round() / 1e2);
    format!("[{}, {}] {level} %", number(interval.low), number(interval.high))
}

/// The shortest true reason for the word.
fn why(verdict: &Verdict) -> String {
    let mut parts = Vec::new();
    if let Some(reason) = &verdict.reason {
        parts.push(reason_of(verdict, reason));
    }
    if let Some(culprit) = verdict.refuted_by.first() {
        let more = match verdict.refuted_by.len() {
            1 => String::new(),
            n => format!(" and {} more", n - 1),
        };
        parts.push(format!("{}{more}", culprit_words(culprit)));
    }
    if verdict.decided_by == DecidedBy::Estimate {
        parts.push("by the estimate, no inference".to_owned());
    }
    let constant = verdict.interval.is_some_and(|i| i.low == i.high) && verdict.units.used > 1;
    if constant && verdict.decided_by == DecidedBy::Inference {
        parts.push(format!("all {} units are equal: does the program use its seed?", verdict.units.used));
    }
    if verdict.decided_by == DecidedBy::Position {
        parts.push("no variation, by position".to_owned());
    }
    parts.extend(verdict.qualifiers.iter().filter(|q| is_short(q)).map(qualifier));
    parts.join("; ")
}

fn is_short(qualifier: &Qualifier) -> bool {
    !matches!(
        qualifier,
        Qualifier::TheseUnits { .. }
            | Qualifier::EquivalenceAtFewUnits { .. }
            | Qualifier::Matched { .. }
            | Qualifier::Noise { below: false, .. }
    )
}

fn culprit_words(culprit: &Culprit) -> String {
    let place: Vec<String> = culprit.at.iter().map(|(name, value)| format!("{name} {value}")).collect();
    let place = if place.is_empty() { String::new() } else { format!("at {}: ", place.join(", ")) };
    match (culprit.found, culprit.expected, culprit.margin) {
        (Some(found), Some(expected), Some(margin)) => {
            format!("{place}{} against {} ± {}", number(found), number(expected), number(margin))
        }
        (Some(found), Some(expected), None) => {
            format!("{place}{} against {}", number(found), number(expected))
        }
        (Some(found), None, _) => format!("{place}{}", number(found)),
        _ => format!("{place}differs"),
    }
}

/// ` in 8 clusters`, where units are not drawn one by one.
pub fn clusters(units: &Units) -> String {
    units.clusters.map(|n| format!(" in {}", super::count(n as u64, "cluster"))).unwrap_or_default()
}

/// The reason for a verdict: a test that has no interval decides without one.
pub fn reason_of(verdict: &Verdict, reason: &Reason) -> String {
    match (reason.word(), verdict.interval) {
        (word @ "crosses-bound", None) if verdict.method.is_some() => {
            format!("{word}: the test, which has no interval, decides nothing")
        }
        _ => reason_words(reason),
    }
}

/// A reason code with what it means.
pub fn reason_words(reason: &Reason) -> String {
    let meaning = match reason.word() {
        "crosses-bound" => "the interval contains the bound",
        "n-below-reach" => "so few units cannot decide it",
        "no-variation" => "all units are equal, and too few for that to decide",
        "correction" => "decided alone, not after correction in its family",
        "void-part" => "a part of it is void and could decide it",
        "missing-units" => "planned units are missing",
        "unknown-measurement" => "no measurement has the name that it selects",
        "non-finite" => "a value is not finite",
        "below-minimum-n" => "the method needs more units",
        "no-units" => "nothing was measured",
        "requires-unmet" => "a claim it requires is not supported",
        "not-measured" => "nothing measures it",
        "domain" => "a value lies outside the rule's domain",
        "unpaired" => "units do not pair",
        "undefined" => "the statistic is undefined",
        "damaged-evidence" => "evidence is damaged",
        "concurrent-amendment" => "two registrations disagree about it, and none is adopted",
        "unreadable" => "a measurement file cannot be read",
        "not-deterministic" => "registered as deterministic, and it varies",
        "censored" => {
            "values were cut off in a way that this rule cannot take; see `method: restricted-mean`"
        }
        "unmatched-control" => "its arms are no matched controls",
        "leftover-dimension" => "a dimension is left over; name it under `per`, `where` or `reduce`",
        _ => "",
    };
    let detail = reason.detail().map(|detail| format!(" ({detail})")).unwrap_or_default();
    match meaning {
        "" => format!("{}{detail}", reason.word()),
        meaning => format!("{}: {meaning}{detail}", reason.word()),
    }
}

fn qualifier(qualifier: &Qualifier) -> String {
    match qualifier {
        Qualifier::SmallestNotShown { smallest } => format!("not shown to reach {}", number(*smallest)),
        Qualifier::BelowSmallest { smallest } => format!("but below {}", number(*smallest)),
        Qualifier::IntervalContainsBound { step, of } => {
            format!("Holm, step {step} of {of}; its simultaneous interval still contains the bound")
        }
        Qualifier::CloseToLevel { error } => format!("close to the level, ± {}", number(*error)),
        Qualifier::Curvature { t, p } => format!("curvature check: t {}, p {}", number(*t), number(*p)),
        Qualifier::EquivalenceAtFewUnits { units } => {
            format!("with {units} units a skewed or failing unit can mislead an equivalence")
        }
        Qualifier::TheseUnits { units, share } => {
            format!("about these {units} units; at least {} of future units would pass", number(*share))
        }
        Qualifier::Compared { values, unequal, largest } => {
            let largest = largest.map(|x| format!(", largest difference {}", number(x))).unwrap_or_default();
            format!("{values} compared, {unequal} unequal{largest}")
        }
        Qualifier::Censored { units, budget: Some(budget) } => {
            format!("{units} cut off at {}, and counted there", number(*budget))
        }
        Qualifier::Censored { units, budget: None } => format!("{units} cut off"),
        Qualifier::OverUnits { over } => format!("decided by its units `{over}`, the harder of the two"),
        Qualifier::Forecasts { brier, log_score } => {
            format!("Brier score {}, log score {}", number(*brier), number(*log_score))
        }
        Qualifier::Matched { of, except, pairs } => {
            format!("{pairs} pairs of `{of}` proved equal but for {}", except.join(", "))
        }
        Qualifier::Noise { sd, low, high, repetitions, effect, below } => {
            let again = super::count(*repetitions as u64, "repeated attempt");
            if *sd == 0.0 && !below {
                return format!("{again} gave the same numbers");
            }
            let floor = format!("{} [{}, {}] by {again}", number(*sd), number(*low), number(*high));
            match below {
                true => format!("below its own noise: an effect of {} against {floor}", number(*effect)),
                false => format!("its own noise is {floor}"),
            }
        }
    }
}

/// What the verdicts rest on: registration, deviations.
pub fn standing(report: &Report, always: bool) -> String {
    let mut out = match (report.standing, &report.registration) {
        (Standing::Confirmatory, Some(registration))
            if report.verdicts.iter().all(|v| v.standing == Standing::Exploratory)
                && !report.verdicts.is_empty() =>
        {
            format!(
                "Exploratory: the plan is the one registered as {}, but what these claims rest on was not made \
                 under it; see the deviations.\n",
                registration.leaf.short()
            )
        }
        (Standing::Confirmatory, Some(registration)) => format!(
            "Confirmatory: the plan is the one registered as {} ({}).\n",
            registration.leaf.short(),
            witness::vouched(report.witness.as_ref())
        ),
        (_, Some(registration)) => format!(
            "Exploratory: the plan is not the one registered as {}; see the deviations.\n",
            registration.leaf.short()
        ),
        (_, None) => {
            "Exploratory: nothing was registered before. `avow register` freezes a plan.\n".to_owned()
        }
    };
    if report.registration.as_ref().is_some_and(|registration| registration.embargo) {
        out.push_str(
            "Under embargo: the ledger shows a commitment and nothing else until `avow ledger open`.\n",
        );
    }
    if let Some(counts) = report.denominators.as_ref().filter(|counts| {
        let unopened = counts.unopened + counts.unopened_elsewhere > 0;
        always || unopened || report.registration.is_some() && denominators::is_notable(counts)
    }) {
        out.push_str(&denominators::line(counts, report.registration.is_some()));
    }
    for sealed in &report.sealed {
        out.push_str(&denominators::sealed(sealed, report.registration.is_some()));
    }
    for file in &report.uncompared {
        out.push_str(&format!("Not searched for shared rows: {file}.\n"));
    }
    let mixed = report.standing == Standing::Confirmatory;
    let older: Vec<&str> = report
        .verdicts
        .iter()
        .filter(|v| mixed && v.standing == Standing::Exploratory)
        .map(|v| v.claim.as_str())
        .collect();
    if !older.is_empty() && older.len() < report.verdicts.len() {
        let mut names = older;
        names.dedup();
        out.push_str(&format!(
            "Exploratory all the same, for they rest on older attempts: {}.\n",
            names.join(", ")
        ));
    }
    for proof in report.proofs.iter().filter(|proof| witness::is_refused(proof)) {
        out.push_str(&format!("  {}\n", witness::line(proof)));
    }
    let mut first = 1;
    for alike in report.deviations.chunk_by(deviation::are_alike) {
        out.push_str(&format!("  {}\n", deviation::numbered(first, alike)));
        first += alike.len();
    }
    out
}

/// Everything behind one claim.
pub fn explained(plan: &Plan, report: &Report, claim: &str) -> Option<String> {
    let members: Vec<&Verdict> = report.verdicts.iter().filter(|v| v.claim == claim).collect();
    let declared = plan.claim(claim)?;
    let mut out = format!("{claim}\n");
    if let Some(says) = &declared.says {
        out.push_str(&format!("  says         {}\n", says.trim()));
    }
    for verdict in members {
        out.push_str(&one(verdict, report));
        for (name, text) in crate::words::steps::of(declared, verdict, report) {
            out.push_str(&format!("  {name:<12} {text}\n"));
        }
        for units in crate::words::steps::seeds(plan, declared) {
            out.push_str(&format!("  {:<12} {units}\n", "seeds"));
        }
        out.push('\n');
    }
    for (word, means) in &declared.means {
        out.push_str(&format!("  {:<12} {}\n", format!("if {word}"), means.trim()));
    }
    if let Some(silent) = &declared.silent_on {
        out.push_str(&format!("  {:<12} {}\n", "silent on", silent.trim()));
    }
    out.push_str(&standing(report, true));
    out.push_str(&seen(plan));
    Some(out)
}

fn one(verdict: &Verdict, report: &Report) -> String {
    let mut rows: Vec<(&str, String)> = Vec::new();
    let word = verdict.word.map_or_else(|| "no verdict in this tier".to_owned(), |w| capital(w.word()));
    rows.push(("verdict", format!("{word}{}", place(&verdict.member))));
    if let Some(reason) = &verdict.reason {
        rows.push(("reason", reason_of(verdict, reason)));
    }
    rows.push(("rule", verdict.rule.to_owned()));
    if let Some(estimate) = verdict.estimate {
        rows.push(("estimate", number(estimate)));
    }
    for (name, interval) in [
        ("interval", verdict.interval),
        ("refuting", verdict.refuting_interval),
        ("alone", verdict.marginal_interval),
    ] {
        if let Some(interval) = interval {
            rows.push((name, span(interval)));
        }
    }
    if let Some(method) = verdict.method {
        rows.push(("method", method.to_owned()));
    }
    if let Some(p) = verdict.p {
        rows.push(("p", format!("{} for, {} against", number(p.support), number(p.refute))));
    }
    if let (Some(q), Some(corrected)) = (verdict.q, verdict.q_corrected) {
        rows.push(("q", format!("{}, corrected {} (α {})", number(q), number(corrected), verdict.alpha)));
    }
    rows.push(("family", family(verdict)));
    if let Some(smallest) = verdict.smallest_q {
        rows.push(("reach", format!("smallest possible q {}", number(smallest))));
    }
    rows.push(("units", units(verdict)));
    if let Some(draws) = &verdict.monte_carlo {
        rows.push(("draws", format!("{} random, error ± {}", draws.draws, number(draws.error))));
    }
    rows.extend(verdict.qualifiers.iter().map(|q| ("note", qualifier(q))));
    rows.extend(verdict.refuted_by.iter().map(|culprit| ("refuted by", culprit_words(culprit))));
    rows.extend(verdict.parts.iter().map(|part| ("part", piece(part))));
    let indices = verdict.deviations.iter();
    rows.extend(indices.filter_map(|i| Some(("deviation", deviation::words(report.deviations.get(*i)?)))));
    if !verdict.evidence.is_empty() {
        rows.push(("evidence", evidence(verdict)));
    }
    rows.into_iter().map(|(name, text)| format!("  {name:<12} {text}\n")).collect::<String>()
}

fn family(verdict: &Verdict) -> String {
    let family = &verdict.family;
    let correction = match family.correct {
        Correction::Holm => "Holm",
        Correction::Bonferroni => "Bonferroni",
        Correction::Hochberg => "Hochberg",
        Correction::Hommel => "Hommel",
        Correction::Bh => "Benjamini–Hochberg, a false discovery rate",
        Correction::By => "Benjamini–Yekutieli, a false discovery rate",
        Correction::HolmStrict => "Holm, strict about directions",
        Correction::Max => "the largest statistic under one permutation for all members",
        Correction::None => "not corrected",
    };
    let step = family.step_level.map(|l| format!(", step {} at level {}", family.step, number(l)));
    if family.members == 0 {
        return format!("{} (outside: no inference)", family.name);
    }
    let members = if family.members == 1 { "member" } else { "members" };
    format!("{} ({correction}, {} {members}{})", family.name, family.members, step.unwrap_or_default())
}

fn units(verdict: &Verdict) -> String {
    let units = &verdict.units;
    let arms: Vec<String> = units
        .arms
        .iter()
        .enumerate()
        .filter(|(_, arm)| arm.missing + arm.non_finite > 0)
        .map(|(i, arm)| format!("arm {}: {} missing, {} not finite", i + 1, arm.missing, arm.non_finite))
        .collect();
    let missing = if arms.is_empty() { String::new() } else { format!(" ({})", arms.join("; ")) };
    format!("{} used of {} planned{}{missing}", units.used, units.planned, clusters(units))
}

fn piece(piece: &Piece) -> String {
    let place = if piece.at.is_empty() { piece.rule.to_owned() } else { place(&piece.at) };
    let estimate = piece.estimate.map(|e| format!(" {}", number(e))).unwrap_or_default();
    let interval = piece.interval.map(|i| format!(" {}", span(i))).unwrap_or_default();
    let expected = match (piece.expected, piece.margin) {
        (Some(expected), Some(margin)) => format!(" against {} ± {}", number(expected), number(margin)),
        _ => String::new(),
    };
    let reason = piece.reason.as_ref().map(|r| format!(" ({})", r.word())).unwrap_or_default();
    format!("{} {place}{estimate}{interval}{expected}{reason}", capital(piece.word.word()))
}

fn evidence(verdict: &Verdict) -> String {
    let mut artifacts: Vec<String> = verdict.evidence.iter().map(|origin| origin.artifact.short()).collect();
    artifacts.sort();
    artifacts.dedup();
    let shown: Vec<&str> = artifacts.iter().take(6).map(String::as_str).collect();
    let more = if artifacts.len() > 6 { format!(" and {} more", artifacts.len() - 6) } else { String::new() };
    format!("{} files: {}{more}", artifacts.len(), shown.join(" "))
}

/// `[width=4]`: which member of a family it is.
pub fn place(pairs: &[(String, Value)]) -> String {
    if pairs.is_empty() {
        return String::new();
    }
    let text: Vec<String> =
        pairs.iter().map(|(name, value)| format!("{name}={}", label::written(&value.to_string()))).collect();
    format!("[{}]", text.join(","))
}

/// With a capital letter.
pub fn capital(word: &str) -> String {
    let mut letters = word.chars();
    letters
        .next()
        .map(|first| first.to_uppercase().collect::<String>() + letters.as_str())
        .unwrap_or_default()
}
