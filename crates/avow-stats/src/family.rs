//! Families of claims: corrected p-values and the level at which each member was decided.
//!
//! m counts the *registered* inferential members; a Void member has q = 1 and still counts, so losing a run can
//! never make the others easier. Holm is the default. The max-statistic is in [`crate::max_statistic`], chains and
//! unequal weights are in [`crate::graph`]. Absent: simultaneous intervals that match a step-down, which end at the bound.

use crate::level::Level;

/// How q is corrected for the number of members.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Correction {
    /// Holm's step-down: q̃_(i) = max over j ≤ i of min(1, (m − j + 1) q_(j)).
    #[default]
    Holm,
    /// Hochberg's step-up (1988): q̃_(i) = min over j ≥ i of (m − j + 1) q_(j). Needs independent or positively
    /// dependent p-values.
    Hochberg,
    /// Hommel's (1988), a little sharper than Hochberg under the same condition.
    Hommel,
    /// q̃ = min(1, m·q).
    Bonferroni,
    /// Benjamini and Hochberg (1995): controls the false discovery rate, not the family-wise error.
    BenjaminiHochberg,
    /// Benjamini and Yekutieli (2001): the same under any dependence.
    BenjaminiYekutieli,
    /// Holm with the level halved for direction: α/(2m − r) for each side after r rejections (Shaffer 1986), so that
    /// the chance of any wrong direction is at most α whatever the dependence. For two-sided members.
    HolmStrict,
    /// q̃ = q; the printed line says that nothing was corrected.
    None,
}

impl Correction {
    /// Every correction, for lists and messages.
    pub const ALL: [Correction; 8] = [
        Correction::Holm,
        Correction::HolmStrict,
        Correction::Hochberg,
        Correction::Hommel,
        Correction::Bonferroni,
        Correction::BenjaminiHochberg,
        Correction::BenjaminiYekutieli,
        Correction::None,
    ];

    /// The word of the correction in specs and outputs.
    pub fn word(self) -> &'static str {
        match self {
            Correction::Holm => "holm",
            Correction::HolmStrict => "holm-strict",
            Correction::Hochberg => "hochberg",
            Correction::Hommel => "hommel",
            Correction::Bonferroni => "bonferroni",
            Correction::BenjaminiHochberg => "bh",
            Correction::BenjaminiYekutieli => "by",
            Correction::None => "none",
        }
    }

    /// Whether the correction needs independent or positively dependent p-values.
    pub fn needs_positive_dependence(self) -> bool {
        matches!(self, Correction::Hochberg | Correction::Hommel)
    }

    /// Whether the false discovery rate is controlled rather than the family-wise error.
    pub fn is_false_discovery_rate(self) -> bool {
        matches!(self, Correction::BenjaminiHochberg | Correction::BenjaminiYekutieli)
    }
}

/// A member's corrected p-value and where it came in the family.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Adjusted {
    /// The decision p-value before correction.
    pub q: f64,
    /// The corrected p-value, which decides against α.
    pub q_tilde: f64,
    /// The step of the correction, from 1: the rank of q in the family, 1 for Bonferroni and no correction.
    pub step: u32,
    /// The members of the family, m.
    pub members: u32,
    /// The factor on q at that step: m − step + 1 under Holm and Hochberg, m under Bonferroni, 1 without correction; for
    /// the others q̃/q rounded up, as their steps have no single factor.
    pub factor: u32,
}

impl Adjusted {
    /// A claim that is its own family.
    pub fn alone(q: f64) -> Adjusted {
        Adjusted { q, q_tilde: q, step: 1, members: 1, factor: 1 }
    }

    /// A member of a family with chains or weights, whose steps have no single factor.
    pub fn of_graph(q: f64, q_tilde: f64, members: u32) -> Adjusted {
        let factor = if q > 0.0 { (q_tilde / q - 1e-9).ceil().clamp(1.0, 4e9) as u32 } else { members };
        Adjusted { q, q_tilde, step: 1, members, factor }
    }

    /// A member of a family that another correction adjusted as a whole, such as one permutation for all.
    pub fn of_whole(q: f64, q_tilde: f64, members: u32) -> Adjusted {
        Adjusted::of_graph(q, q_tilde, members)
    }

    /// The level at which the member was compared: α over the factor of its step.
    pub fn level(&self, alpha: Level) -> Level {
        alpha.split(self.factor)
    }
}

/// Corrects the decision p-values of a family, in the order given. A Void member enters with q = 1.
///
/// Equal q keep the order given, which changes their step but not their q̃.
pub fn adjust(q: &[f64], correction: Correction) -> Vec<Adjusted> {
    let members = u32::try_from(q.len()).expect("a family has fewer than 2³² members");
    let adjusted =
        |q: f64, q_tilde: f64, step: u32, factor: u32| Adjusted { q, q_tilde, step, members, factor };
    match correction {
        Correction::None => q.iter().map(|q| adjusted(*q, *q, 1, 1)).collect(),
        Correction::Bonferroni => {
            q.iter().map(|q| adjusted(*q, (f64::from(members) * q).min(1.0), 1, members)).collect()
        }
        _ => {
            let mut order: Vec<usize> = (0..q.len()).collect();
            order.sort_by(|a, b| q[*a].total_cmp(&q[*b]));
            let sorted: Vec<f64> = order.iter().map(|i| q[*i]).collect();
            let corrected = stepwise(&sorted, correction);
            let mut result = vec![Adjusted::alone(1.0); q.len()];
            for (step, (index, q_tilde)) in (1..=members).zip(order.into_iter().zip(corrected)) {
                let factor = match correction {
                    Correction::Holm | Correction::Hochberg => members - step + 1,
                    _ if q[index] > 0.0 => (q_tilde / q[index] - 1e-9).ceil().clamp(1.0, 4e9) as u32,
                    _ => members,
                };
                result[index] = adjusted(q[index], q_tilde, step, factor);
            }
            result
        }
    }
}

/// Corrected p-values of ascending q.
fn stepwise(sorted: &[f64], correction: Correction) -> Vec<f64> {
    let m = sorted.len();
    let left = |i: usize| (m - i) as f64;
    let rank = |i: usize| (i + 1) as f64;
    match correction {
        Correction::Holm => rising(sorted.iter().enumerate().map(|(i, q)| left(i) * q)),
        // q is twice the one-sided p, which is held against α/(2m − r).
        Correction::HolmStrict => {
            rising(sorted.iter().enumerate().map(|(i, q)| 0.5 * (2 * m - i) as f64 * q))
        }
        Correction::Hochberg => falling(sorted.iter().enumerate().map(|(i, q)| left(i) * q).collect()),
        Correction::Hommel => hommel(sorted),
        Correction::BenjaminiHochberg => {
            falling(sorted.iter().enumerate().map(|(i, q)| m as f64 / rank(i) * q).collect())
        }
        Correction::BenjaminiYekutieli => {
            let harmonic = crate::sum::sum((1..=m).map(|i| 1.0 / i as f64));
            falling(sorted.iter().enumerate().map(|(i, q)| harmonic * m as f64 / rank(i) * q).collect())
        }
        Correction::Bonferroni => sorted.iter().map(|q| (m as f64 * q).min(1.0)).collect(),
        Correction::None => sorted.to_vec(),
    }
}

/// The running maximum, at most 1.
fn rising(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut largest: f64 = 0.0;
    values
        .map(|v| {
            largest = largest.max(v.min(1.0));
            largest
        })
        .collect()
}

/// The running minimum from the end, at most 1.
fn falling(mut values: Vec<f64>) -> Vec<f64> {
    let mut least: f64 = 1.0;
    for value in values.iter_mut().rev() {
        least = least.min(*value);
        *value = least;
    }
    values
}

/// Hommel's corrected p-values of ascending q, by the algorithm of Wright (1992): for each j from m down to 2 the members
/// above the last j−1 get the least of j·q over what Simes' inequality compares them with.
fn hommel(sorted: &[f64]) -> Vec<f64> {
    let m = sorted.len();
    let mut adjusted = sorted.to_vec();
    for j in (2..=m).rev() {
        // The last j − 1 members, ranks m − j + 2 … m, are compared with 2 … j.
        let start = m - j + 1;
        let least =
            (start..m).map(|i| j as f64 * sorted[i] / (i + 1 + j - m) as f64).fold(f64::INFINITY, f64::min);
        for (value, q) in adjusted[start..].iter_mut().zip(&sorted[start..]) {
            *value = value.max(least.min(j as f64 * q));
        }
        for i in 0..start {
            adjusted[i] = adjusted[i].max(least.min(j as f64 * sorted[i]));
        }
    }
    adjusted.iter().map(|v| v.min(1.0)).collect()
}

/// Holm's corrected p-values, in the order given.
pub fn holm(q: &[f64]) -> Vec<f64> {
    adjust(q, Correction::Holm).into_iter().map(|a| a.q_tilde).collect()
}

/// Bonferroni's corrected p-values, in the order given.
pub fn bonferroni(q: &[f64]) -> Vec<f64> {
    adjust(q, Correction::Bonferroni).into_iter().map(|a| a.q_tilde).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_follow_the_ranks() {
        let family = adjust(&[0.04, 0.001, 0.2], Correction::Holm);
        let steps: Vec<(u32, u32)> = family.iter().map(|a| (a.step, a.factor)).collect();
        assert_eq!(steps, [(2, 2), (1, 3), (3, 1)]);
        let alpha: Level = "0.05".parse().unwrap();
        assert_eq!(family[0].level(alpha).to_f64(), 0.025);
    }

    #[test]
    fn nothing_to_correct() {
        assert!(holm(&[]).is_empty());
        assert_eq!(holm(&[0.03]), [0.03]);
        assert_eq!(adjust(&[0.03, 0.9], Correction::None)[0].q_tilde, 0.03);
        assert_eq!(bonferroni(&[0.03, 0.9]), [0.06, 1.0]);
    }
}
