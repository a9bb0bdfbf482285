//! Where boxes stand: layers by the longest way to what was asked for (Sugiyama, Tagawa and Toda 1981).
//!
//! Arrows that would close a circle are left out when layers are counted. An arrow over several layers gets a point
//! in each between, so that it passes beside boxes; the order within layers comes from sweeps by the mean place of
//! neighbours. Everything is computed in a fixed order: one graph, one drawing.

use super::{Graph, Node};

/// Width of a character at the size of the text, in a font whose characters are all as wide: 0.6 of 11.
pub(super) const ADVANCE: f64 = 6.62;
/// Height of a line.
pub(super) const LEADING: f64 = 15.0;
/// Room around the text of a box.
pub(super) const PADDING: f64 = 8.0;
/// Longer lines are cut in the middle.
pub(super) const MOST: usize = 46;
const BETWEEN_LAYERS: f64 = 96.0;
const BETWEEN_BOXES: f64 = 16.0;
const MARGIN: f64 = 12.0;
const SWEEPS: usize = 12;

/// A placed box, in pixels.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Placed {
    pub(super) x: f64,
    pub(super) y: f64,
    pub(super) width: f64,
    pub(super) height: f64,
}

/// A placed graph.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Layout {
    /// By position of the node.
    pub(super) boxes: Vec<Placed>,
    /// By position of the edge: the points between its ends, from left to right.
    pub(super) bends: Vec<Vec<Placed>>,
    pub(super) width: f64,
    pub(super) height: f64,
}

/// A line as it is drawn: cut in the middle where it is too long.
pub(super) fn cut(line: &str) -> String {
    let length = line.chars().count();
    if length <= MOST {
        return line.to_owned();
    }
    let (head, tail) = (MOST / 2, MOST - MOST / 2 - 1);
    let begin: String = line.chars().take(head).collect();
    let end: String = line.chars().skip(length - tail).collect();
    format!("{begin}…{end}")
}

fn size(node: &Node) -> (f64, f64) {
    let lines = std::iter::once(&node.title).chain(&node.lines);
    let longest = lines.map(|line| line.chars().count().min(MOST)).max().unwrap_or(0);
    let count = node.lines.len() + 1;
    (longest as f64 * ADVANCE + 2.0 * PADDING, count as f64 * LEADING + 2.0 * PADDING)
}

/// Places everything.
pub(super) fn layout(graph: &Graph) -> Layout {
    let layers = layers(graph);
    let mut points = Points::new(graph, &layers);
    points.sort();
    points.place();
    points.finish(graph)
}

/// The layer of each node, counted from the right: one more than that of everything that rests on it.
fn layers(graph: &Graph) -> Vec<usize> {
    let count = graph.nodes.len();
    let mut on = vec![Vec::new(); count];
    for edge in graph.edges.iter().filter(|edge| edge.from != edge.to) {
        on[edge.to].push(edge.from);
    }
    // Depth first, without recursion; an arrow back into the present path closes a circle and is passed over.
    let (mut layers, mut state) = (vec![0; count], vec![0u8; count]);
    let mut order = Vec::new();
    let mut forward = vec![Vec::new(); count];
    for start in 0..count {
        if state[start] != 0 {
            continue;
        }
        let mut path = vec![(start, 0)];
        state[start] = 1;
        while let Some((node, next)) = path.pop() {
            match on[node].get(next) {
                Some(&below) => {
                    path.push((node, next + 1));
                    if state[below] != 1 {
                        forward[node].push(below);
                    }
                    if state[below] == 0 {
                        state[below] = 1;
                        path.push((below, 0));
                    }
                }
                None => {
                    state[node] = 2;
                    order.push(node);
                }
            }
        }
    }
    for node in order.into_iter().rev() {
        for below in &forward[node] {
            layers[*below] = layers[*below].max(layers[node] + 1);
        }
    }
    layers
}

/// Boxes and the points by which long arrows pass, in layers from the left.
struct Points {
    /// Boxes first, then passing points.
    all: Vec<Placed>,
    columns: Vec<Vec<usize>>,
    /// Neighbours to the left and to the right.
    left: Vec<Vec<usize>>,
    right: Vec<Vec<usize>>,
    /// By edge.
    bends: Vec<Vec<usize>>,
}

impl Points {
    fn new(graph: &Graph, layers: &[usize]) -> Points {
        let deepest = layers.iter().copied().max().unwrap_or(0);
        let column = |node: usize| deepest - layers[node];
        let sized = graph.nodes.iter().map(|node| {
            let (width, height) = size(node);
            Placed { width, height, ..Placed::default() }
        });
        let mut points = Points {
            all: sized.collect(),
            columns: vec![Vec::new(); deepest + 1],
            left: vec![Vec::new(); graph.nodes.len()],
            right: vec![Vec::new(); graph.nodes.len()],
            bends: Vec::new(),
        };
        for node in 0..graph.nodes.len() {
            points.columns[column(node)].push(node);
        }
        for edge in &graph.edges {
            let mut bends = Vec::new();
            let (from, to) = (column(edge.from), column(edge.to));
            let mut before = edge.from;
            for between in from + 1..to {
                let point = points.all.len();
                points.all.push(Placed { height: 4.0, ..Placed::default() });
                points.left.push(Vec::new());
                points.right.push(Vec::new());
                points.columns[between].push(point);
                points.join(before, point);
                bends.push(point);
                before = point;
            }
            if from < to {
                points.join(before, edge.to);
            }
            points.bends.push(bends);
        }
        points
    }

    fn join(&mut self, left: usize, right: usize) {
        self.right[left].push(right);
        self.left[right].push(left);
    }

    /// Orders each layer by the mean position of neighbours, from the right and from the left in turn.
    fn sort(&mut self) {
        let mut position = vec![0.0; self.all.len()];
        let note = |column: &[usize], position: &mut Vec<f64>| {
            for (place, point) in column.iter().enumerate() {
                position[*point] = place as f64;
            }
        };
        self.columns.iter().for_each(|column| note(column, &mut position));
        for sweep in 0..SWEEPS {
            let count = self.columns.len();
            for step in 1..count {
                let (at, neighbours) =
                    if sweep % 2 == 0 { (count - 1 - step, &self.right) } else { (step, &self.left) };
                let key = |point: usize| mean(&neighbours[point], &position).unwrap_or(position[point]);
                let mut keyed: Vec<(f64, usize)> =
                    self.columns[at].iter().map(|point| (key(*point), *point)).collect();
                keyed.sort_by(|(a, _), (b, _)| a.total_cmp(b));
                self.columns[at] = keyed.into_iter().map(|(_, point)| point).collect();
                note(&self.columns[at], &mut position);
            }
        }
    }

    /// Gives each point its place: layers beside one another, boxes near the middle of their neighbours.
    fn place(&mut self) {
        let mut x = MARGIN;
        for column in &self.columns {
            let widest = column.iter().map(|point| self.all[*point].width).fold(0.0, f64::max);
            let mut y = MARGIN;
            for point in column {
                let placed = &mut self.all[*point];
                (placed.x, placed.y) = (x + (widest - placed.width) / 2.0, y);
                y += placed.height + BETWEEN_BOXES;
            }
            x += widest + BETWEEN_LAYERS;
        }
        for sweep in 0..SWEEPS {
            let count = self.columns.len();
            for step in 0..count {
                let at = if sweep % 2 == 0 { count - 1 - step } else { step };
                self.settle(at, sweep % 2 == 0);
            }
        }
        let top = self.all.iter().map(|placed| placed.y).fold(f64::INFINITY, f64::min);
        self.all.iter_mut().for_each(|placed| placed.y += MARGIN - top);
    }

    /// Moves the points of one layer towards their neighbours, in their order and without overlap.
    fn settle(&mut self, at: usize, from_right: bool) {
        let neighbours = if from_right { &self.right } else { &self.left };
        let centres: Vec<f64> = self.all.iter().map(|placed| placed.y + placed.height / 2.0).collect();
        let column = &self.columns[at];
        let wanted: Vec<f64> = column
            .iter()
            .map(|point| {
                let centre = mean(&neighbours[*point], &centres).unwrap_or(centres[*point]);
                centre - self.all[*point].height / 2.0
            })
            .collect();
        let mut placed: Vec<f64> = Vec::with_capacity(column.len());
        let mut free = f64::NEG_INFINITY;
        for (point, wanted) in column.iter().zip(&wanted) {
            let y = wanted.max(free);
            placed.push(y);
            free = y + self.all[*point].height + BETWEEN_BOXES;
        }
        // Pushing went downwards only; the layer as a whole goes back by what that was on average.
        let pushed: f64 = placed.iter().zip(&wanted).map(|(y, wanted)| y - wanted).sum();
        let back = pushed / column.len().max(1) as f64;
        for (point, y) in column.iter().zip(&placed) {
            self.all[*point].y = y - back;
        }
    }

    fn finish(self, graph: &Graph) -> Layout {
        let most = |of: fn(&Placed) -> f64| self.all.iter().map(of).fold(0.0, f64::max) + MARGIN;
        let (width, height) = (most(|p| p.x + p.width), most(|p| p.y + p.height));
        let bends = self.bends.iter().map(|bends| bends.iter().map(|point| self.all[*point]).collect());
        Layout { bends: bends.collect(), boxes: self.all[..graph.nodes.len()].to_vec(), width, height }
    }
}

fn mean(these: &[usize], of: &[f64]) -> Option<f64> {
    (!these.is_empty()).then(|| these.iter().map(|one| of[*one]).sum::<f64>() / these.len() as f64)
}
