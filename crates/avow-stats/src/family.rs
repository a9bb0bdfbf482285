//! Families of claims: corrected p-values and the level at which each member was decided.
//!
//! m counts the *registered* inferential members; a Void member has q = 1 and still counts, so losing a run can
//! never make the others easier. Holm is the default. Absent: Hochberg, Hommel, false discovery rates, the
//! max-statistic, chains and weights, which come with their rules.

use crate::level::Level;

/// How q is corrected for the number of members.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Correction {
    /// Holm's step-down: q̃_(i) = max over j ≤ i of min(1, (m − j + 1) q_(j)).
    #[default]
    Holm,
    /// q̃ = min(1, m·q).
    Bonferroni,
    /// q̃ = q; the printed line says that nothing was corrected.
    None,
}

/// A member's corrected p-value and where it came in the family.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Adjusted {
    /// The decision p-value before correction.
    pub q: f64,
    /// The corrected p-value, which decides against α.
    pub q_tilde: f64,
    /// The step of the correction, from 1: the rank of q in the family under Holm, otherwise 1.
    pub step: u32,
    /// The members of the family, m.
    pub members: u32,
    /// The factor on q at that step: m − step + 1 under Holm, m under Bonferroni, 1 without correction.
    pub factor: u32,
}

impl Adjusted {
    /// A claim that is its own family.
    pub fn alone(q: f64) -> Adjusted {
        Adjusted { q, q_tilde: q, step: 1, members: 1, factor: 1 }
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
        Correction::Holm => {
            let mut order: Vec<usize> = (0..q.len()).collect();
            order.sort_by(|a, b| q[*a].total_cmp(&q[*b]));
            let mut result = vec![Adjusted::alone(1.0); q.len()];
            let mut largest: f64 = 0.0;
            for (step, index) in (1..=members).zip(order) {
                let factor = members - step + 1;
                largest = largest.max((f64::from(factor) * q[index]).min(1.0));
                result[index] = adjusted(q[index], largest, step, factor);
            }
            result
        }
    }
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
