//! Chains and weights: fixed sequences inside a family, by the Bonferroni graph of Bretz, Maurer, Brannath and Posch
//! (2009).
//!
//! Heads of chains share α by weight. A Supported member hands its whole share to its successor; from the last member
//! of a chain any definite verdict hands it, in equal parts, to the remaining heads. A Refuted member before the end of a
//! chain spends its share: passing it on around an untested successor would break the bound. Chains of length one with
//! equal weights are Holm, one chain is a fixed sequence at full α. Absent: Hochberg, Hommel and false discovery rates in
//! chains, which have no proof.

use crate::level::Level;

/// One member of a family with chains.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Node {
    /// Its decision p-value; a Void member has 1.
    pub q: f64,
    /// Whether the estimate lies on the claim's side, so that rejection means Supported.
    pub supports: bool,
    /// The member before it in its chain, if any.
    pub after: Option<usize>,
    /// Its share among heads; positive. Ignored unless it is a head.
    pub weight: f64,
}

/// What became of a member.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tested {
    /// Whether it was rejected: Supported or Refuted by its side.
    pub definite: bool,
    /// The level it was tested at when it was decided, or at the end.
    pub level: f64,
    /// Whether it was never reached, because a member before it was not Supported.
    pub stopped: bool,
}

/// Why chains make no graph.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GraphError {
    /// `after` names no member.
    #[error("member `{member}` comes after one that does not exist")]
    Unknown {
        /// The member.
        member: usize,
    },
    /// Two members come after the same one.
    #[error("members `{first}` and `{second}` come after the same one")]
    Branch {
        /// The first of them.
        first: usize,
        /// The second.
        second: usize,
    },
    /// A chain that closes on itself.
    #[error("member `{member}` comes after itself")]
    Cycle {
        /// A member of the circle.
        member: usize,
    },
    /// A weight that is not a positive number.
    #[error("the weight of member `{member}` is not positive")]
    Weight {
        /// The member.
        member: usize,
    },
}

/// The smallest level at which each member is rejected, by halving; 1 where none does. A member is Supported or Refuted
/// at α exactly where this is at most α, because a larger α never takes a rejection away.
pub fn adjust(nodes: &[Node]) -> Result<Vec<f64>, GraphError> {
    const HALVINGS: u32 = 60;
    let successors = successors(nodes)?;
    let rejected = |member: usize, alpha: f64| run(nodes, &successors, alpha)[member].definite;
    let smallest = |member: usize| {
        if !rejected(member, 1.0) {
            return 1.0;
        }
        let (mut out, mut inside) = (0.0, 1.0);
        for _ in 0..HALVINGS {
            let middle = 0.5 * (out + inside);
            if rejected(member, middle) { inside = middle } else { out = middle }
        }
        inside
    };
    Ok((0..nodes.len()).map(smallest).collect())
}

/// Tests the members of a family at level `alpha`, in the order given.
pub fn test(nodes: &[Node], alpha: Level) -> Result<Vec<Tested>, GraphError> {
    Ok(run(nodes, &successors(nodes)?, alpha.to_f64()))
}

fn run(nodes: &[Node], successors: &[Option<usize>], alpha: f64) -> Vec<Tested> {
    let heads = || (0..nodes.len()).filter(|i| nodes[*i].after.is_none());
    let weights = crate::sum::sum(heads().map(|i| nodes[i].weight));
    let mut shares = vec![0.0; nodes.len()];
    let mut open = vec![false; nodes.len()];
    for head in heads() {
        shares[head] = alpha * nodes[head].weight / weights;
        open[head] = true;
    }
    let mut tested: Vec<Tested> =
        nodes.iter().map(|_| Tested { definite: false, level: 0.0, stopped: true }).collect();
    // Equal to the level counts as rejected, up to the rounding of shares.
    while let Some(next) = (0..nodes.len()).find(|i| open[*i] && nodes[*i].q <= shares[*i] * (1.0 + 1e-12)) {
        open[next] = false;
        tested[next] = Tested { definite: true, level: shares[next], stopped: false };
        let share = std::mem::take(&mut shares[next]);
        match successors[next] {
            Some(successor) if nodes[next].supports => {
                shares[successor] += share;
                open[successor] = true;
            }
            Some(_) => {}
            None => pass_on(share, &open, &mut shares),
        }
    }
    for (i, result) in tested.iter_mut().enumerate().filter(|(i, _)| open[*i]) {
        *result = Tested { definite: false, level: shares[i], stopped: false };
    }
    tested
}

/// The share of a finished chain, in equal parts to the members that are being tested in the others.
fn pass_on(share: f64, open: &[bool], shares: &mut [f64]) {
    let waiting: Vec<usize> = (0..open.len()).filter(|i| open[*i]).collect();
    for other in &waiting {
        shares[*other] += share / waiting.len() as f64;
    }
}

fn successors(nodes: &[Node]) -> Result<Vec<Option<usize>>, GraphError> {
    let mut successors: Vec<Option<usize>> = vec![None; nodes.len()];
    for (member, node) in nodes.iter().enumerate() {
        if node.after.is_none() && !(node.weight > 0.0 && node.weight.is_finite()) {
            return Err(GraphError::Weight { member });
        }
        let Some(before) = node.after else { continue };
        let slot = successors.get_mut(before).ok_or(GraphError::Unknown { member })?;
        if let Some(first) = slot.replace(member) {
            return Err(GraphError::Branch { first, second: member });
        }
    }
    for member in 0..nodes.len() {
        let mut at = member;
        for _ in 0..nodes.len() {
            match nodes[at].after {
                Some(before) if before == member => return Err(GraphError::Cycle { member }),
                Some(before) => at = before,
                None => break,
            }
        }
    }
    Ok(successors)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::family;

    fn node(q: f64, after: Option<usize>) -> Node {
        Node { q, supports: true, after, weight: 1.0 }
    }

    fn alpha() -> Level {
        "0.05".parse().unwrap()
    }

    #[test]
    fn chains_of_one_are_holm() {
        for q in [vec![0.001, 0.012, 0.02, 0.04, 0.2], vec![0.01, 0.02, 0.03], vec![0.0167, 0.0249, 0.05]] {
            let nodes: Vec<Node> = q.iter().map(|q| node(*q, None)).collect();
            let tested = test(&nodes, alpha()).unwrap();
            let holm = family::holm(&q);
            for (have, want) in adjust(&nodes).unwrap().iter().zip(&holm) {
                assert!((have - want).abs() < 1e-9, "{q:?} {have} {want}");
            }
            for (node, corrected) in tested.iter().zip(&holm) {
                assert_eq!(node.definite, alpha().admits(*corrected), "{q:?} {holm:?}");
            }
        }
    }

    #[test]
    fn one_chain_is_a_fixed_sequence_at_full_level() {
        let tested = test(
            &[node(0.04, None), node(0.049, Some(0)), node(0.2, Some(1)), node(0.001, Some(2))],
            alpha(),
        );
        let tested = tested.unwrap();
        assert_eq!(tested.iter().map(|t| t.definite).collect::<Vec<_>>(), [true, true, false, false]);
        assert!(tested[3].stopped && !tested[2].stopped && (tested[2].level - 0.05).abs() < 1e-15);
    }

    #[test]
    fn a_refuted_member_in_mid_chain_spends_its_share() {
        let refuted = Node { supports: false, ..node(0.001, None) };
        let tested = test(&[refuted, node(0.001, Some(0)), node(0.03, None)], alpha()).unwrap();
        assert!(tested[0].definite && tested[1].stopped && !tested[2].definite);
        // At the end of a chain the share goes to the other head.
        let tested = test(&[refuted, node(0.03, None)], alpha()).unwrap();
        assert!(tested[1].definite);
    }

    #[test]
    fn chains_that_are_none_are_refused() {
        assert_eq!(
            test(&[node(0.1, Some(1)), node(0.1, Some(0))], alpha()),
            Err(GraphError::Cycle { member: 0 })
        );
        assert_eq!(test(&[node(0.1, Some(7))], alpha()), Err(GraphError::Unknown { member: 0 }));
        let two = [node(0.1, None), node(0.1, Some(0)), node(0.1, Some(0))];
        assert_eq!(test(&two, alpha()), Err(GraphError::Branch { first: 1, second: 2 }));
    }
}
