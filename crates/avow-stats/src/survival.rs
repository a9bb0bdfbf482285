//! Values cut off by a budget: "it never generalised within 5,000 steps" is not missing.
//!
//! Where every unit has one common budget τ, min(T, τ) is an ordinary value: its mean is the restricted mean survival
//! time, and medians and ranks take a censored unit as +∞ ([`at_common_budget`]). Unequal censoring needs Kaplan and
//! Meier (1958), with events before censorings at ties. Absent: left and interval censoring, regression.

use crate::fit::{Fit, Scale, StudentPart};
use crate::interval::Interval;
use crate::level::Level;
use crate::method::{Method, Sample};
use crate::reason::Void;
use crate::special::normal;
use crate::sum;

/// A time and whether the event happened then.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Time {
    /// When it happened, or when watching ended.
    pub at: f64,
    /// Whether the event happened.
    pub event: bool,
}

/// The fewest units of an arm for the restricted mean by its asymptotic variance.
pub const LEAST_UNITS: usize = 20;

/// The times as ordinary values if every censored one was cut at the same budget and no event came after it.
pub fn at_common_budget(times: &[Time]) -> Option<Vec<f64>> {
    let mut budget = None;
    for time in times.iter().filter(|t| !t.event) {
        if *budget.get_or_insert(time.at) != time.at {
            return None;
        }
    }
    let fits = |t: &Time| budget.is_none_or(|budget| t.at <= budget);
    times.iter().all(fits).then(|| times.iter().map(|t| t.at).collect())
}

/// One step of a survival curve.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    /// The time of the events.
    pub at: f64,
    /// Units watched just before.
    pub at_risk: u64,
    /// Events.
    pub events: u64,
    /// S just after.
    pub survival: f64,
    /// Σd/(n(n − d)) up to here (Greenwood).
    pub greenwood: f64,
}

/// A survival curve by Kaplan and Meier.
#[derive(Clone, Debug, PartialEq)]
pub struct Curve {
    /// One step for each time with an event, ascending.
    pub steps: Vec<Step>,
    /// The longest time watched.
    pub follow_up: f64,
    /// Units.
    pub n: usize,
}

impl Curve {
    /// Times ≥ 0 and finite, at least one.
    pub fn of(times: &[Time]) -> Result<Curve, Void> {
        if times.is_empty() {
            return Err(Void::NoUnits);
        }
        if times.iter().any(|t| !t.at.is_finite()) {
            return Err(Void::NonFinite);
        }
        if times.iter().any(|t| t.at < 0.0) {
            return Err(Void::Domain);
        }
        let mut sorted = times.to_vec();
        sorted.sort_by(|a, b| a.at.total_cmp(&b.at));
        let mut steps: Vec<Step> = Vec::new();
        let (mut at_risk, mut survival, mut greenwood) = (times.len() as u64, 1.0, 0.0);
        for group in sorted.chunk_by(|a, b| a.at == b.at) {
            let events = group.iter().filter(|t| t.event).count() as u64;
            if events > 0 {
                let (n, d) = (at_risk as f64, events as f64);
                survival *= 1.0 - d / n;
                greenwood += d / (n * (n - d));
                steps.push(Step { at: group[0].at, at_risk, events, survival, greenwood });
            }
            at_risk -= group.len() as u64;
        }
        let follow_up = sorted.last().map_or(0.0, |t| t.at);
        Ok(Curve { steps, follow_up, n: times.len() })
    }

    /// S at a time; 1 before the first event.
    pub fn survival(&self, at: f64) -> f64 {
        self.steps.iter().rev().find(|s| s.at <= at).map_or(1.0, |s| s.survival)
    }

    /// The log-log Greenwood interval of S at a time. `None` before the first event and after S has reached 0.
    pub fn interval(&self, at: f64, error: Level) -> Option<Interval> {
        let step = self.steps.iter().rev().find(|s| s.at <= at)?;
        if step.survival <= 0.0 {
            return None;
        }
        let log = step.survival.ln();
        let reach = -normal::quantile(0.5 * error.to_f64()) * step.greenwood.sqrt() / log.abs();
        let end = |exponent: f64| step.survival.powf(exponent.exp());
        Some(Interval { low: end(reach), high: end(-reach), error, tie: 1e-12 })
    }

    /// The restricted mean survival time to τ with its standard error: the area under S, and
    /// √Σ A² d/(n(n − d)), A the area from the step to τ. τ beyond the follow-up: [`Void::Domain`].
    pub fn restricted_mean(&self, tau: f64) -> Result<(f64, f64), Void> {
        if !(tau > 0.0 && tau <= self.follow_up) {
            return Err(Void::Domain);
        }
        let steps: Vec<&Step> = self.steps.iter().filter(|s| s.at <= tau).collect();
        let width = |i: usize| steps.get(i + 1).map_or(tau, |next| next.at) - steps[i].at;
        let first = steps.first().map_or(tau, |s| s.at);
        let pieces: Vec<f64> = (0..steps.len()).map(|i| steps[i].survival * width(i)).collect();
        let area = first + sum::sum(pieces.iter().copied());
        let variance = (0..steps.len()).map(|i| {
            let (n, d) = (steps[i].at_risk as f64, steps[i].events as f64);
            let later = sum::sum(pieces[i..].iter().copied());
            // Once nobody is left, the area that follows is 0 and so is its part.
            if n > d { later * later * d / (n * (n - d)) } else { 0.0 }
        });
        Ok((area, sum::sum(variance).sqrt()))
    }
}

/// The restricted mean of one arm as a fit (normal); n ≥ 20.
pub fn restricted_mean(times: &[Time], tau: f64) -> Result<Fit, Void> {
    let curve = Curve::of(times)?;
    if curve.n < LEAST_UNITS {
        return Err(Void::BelowMinimumN);
    }
    let (mean, error) = curve.restricted_mean(tau)?;
    Ok(normal_fit(Method::RestrictedMean, Sample::One(curve.n), mean, error))
}

/// The difference of the restricted means of two arms (normal); n ≥ 20 in each, τ at most the shorter follow-up.
pub fn restricted_difference(first: &[Time], second: &[Time], tau: f64) -> Result<Fit, Void> {
    let (a, b) = (Curve::of(first)?, Curve::of(second)?);
    if a.n.min(b.n) < LEAST_UNITS {
        return Err(Void::BelowMinimumN);
    }
    let ((x, s), (y, t)) = (a.restricted_mean(tau)?, b.restricted_mean(tau)?);
    Ok(normal_fit(Method::RestrictedMean, Sample::Two(a.n, b.n), x - y, s.hypot(t)))
}

fn normal_fit(method: Method, sample: Sample, centre: f64, error: f64) -> Fit {
    Fit::student(StudentPart {
        method,
        sample,
        centre,
        error: if error > 0.0 { error } else { f64::INFINITY },
        df: f64::INFINITY,
        scale: Scale::Identity,
        tie: 1e-12 * centre.abs(),
    })
}

/// The log-rank test as a fit for the bound 0: its estimate is −z, above 0 where the first arm's events come later, with
/// the interval of a standard normal about it. Only the p at 0 means anything.
pub fn log_rank_fit(first: &[Time], second: &[Time]) -> Result<Fit, Void> {
    let test = log_rank(first, second)?;
    Ok(normal_fit(Method::LogRank, Sample::Two(first.len(), second.len()), -test.z, 1.0))
}

/// The log-rank test of two arms.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LogRank {
    /// z; negative where the first arm has fewer events than expected.
    pub z: f64,
    /// The two-sided p-value.
    pub p: f64,
}

/// Compares two survival curves by log-rank, a p-value without an interval. No event: [`Void::Undefined`].
pub fn log_rank(first: &[Time], second: &[Time]) -> Result<LogRank, Void> {
    let all: Vec<Time> = first.iter().chain(second).copied().collect();
    let pooled = Curve::of(&all)?;
    if first.is_empty() || second.is_empty() {
        return Err(Void::NoUnits);
    }
    let at_risk = |arm: &[Time], at: f64| arm.iter().filter(|t| t.at >= at).count() as f64;
    let (mut surplus, mut variance) = (Vec::new(), Vec::new());
    for step in &pooled.steps {
        let (n, d, one) = (step.at_risk as f64, step.events as f64, at_risk(first, step.at));
        let seen = first.iter().filter(|t| t.event && t.at == step.at).count() as f64;
        surplus.push(seen - d * one / n);
        if n > 1.0 {
            variance.push(d * (one / n) * (1.0 - one / n) * (n - d) / (n - 1.0));
        }
    }
    let variance = sum::sum(variance);
    if variance <= 0.0 {
        return Err(Void::Undefined);
    }
    let z = sum::sum(surplus) / variance.sqrt();
    Ok(LogRank { z, p: (2.0 * normal::above(z.abs())).min(1.0) })
}
