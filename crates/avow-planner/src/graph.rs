//! The graph of declared stages.

use avow_model::plan::Plan;
use petgraph::algo::toposort;
use petgraph::graph::{DiGraph, NodeIndex};

/// A plan whose stages do not form an acyclic graph.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GraphError {
    /// A stage that depends on itself, through others or directly.
    #[error("the stage `{0}` depends on itself")]
    Cycle(String),
    /// An input from a stage that does not exist.
    #[error("the stage `{stage}` reads from `{producer}`, which does not exist")]
    Unknown {
        /// The reader.
        stage: String,
        /// The missing stage.
        producer: String,
    },
}

/// Declared stages and the order in which they can be done.
#[derive(Clone, Debug)]
pub struct Graph {
    order: Vec<usize>,
    rank: Vec<u32>,
    edges: DiGraph<usize, ()>,
}

impl Graph {
    /// The graph of a plan's stages.
    pub fn new(plan: &Plan) -> Result<Graph, GraphError> {
        let mut edges = DiGraph::new();
        let nodes: Vec<NodeIndex> = (0..plan.stages.len()).map(|i| edges.add_node(i)).collect();
        for (index, stage) in plan.stages.iter().enumerate() {
            for (_, _, producer) in stage.producers() {
                let unknown =
                    || GraphError::Unknown { stage: stage.name.clone(), producer: producer.to_owned() };
                let from = plan.stage_index(producer).ok_or_else(unknown)?;
                edges.update_edge(nodes[from], nodes[index], ());
            }
        }
        let sorted = toposort(&edges, None)
            .map_err(|cycle| GraphError::Cycle(plan.stages[edges[cycle.node_id()]].name.clone()))?;
        let order: Vec<usize> = sorted.into_iter().map(|node| edges[node]).collect();
        let mut rank = vec![0; order.len()];
        for stage in &order {
            let above = edges.neighbors_directed(nodes[*stage], petgraph::Direction::Incoming);
            rank[*stage] = above.map(|node| rank[edges[node]] + 1).max().unwrap_or(0);
        }
        Ok(Graph { order, rank, edges })
    }

    /// Stages, producers before consumers.
    pub fn order(&self) -> &[usize] {
        &self.order
    }

    /// The longest way from a stage without inputs.
    pub fn rank(&self, stage: usize) -> u32 {
        self.rank[stage]
    }

    /// The stages that read from this one.
    pub fn consumers(&self, stage: usize) -> impl Iterator<Item = usize> + '_ {
        self.edges.neighbors(NodeIndex::new(stage)).map(|node| self.edges[node])
    }
}
