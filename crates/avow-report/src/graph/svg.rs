//! As SVG.

use maud::{Markup, html};

use super::layout::{self, LEADING, Layout, PADDING, Placed};
use super::{Edge, Graph, Kind, Node, clean};

/// Labels of arrows are cut at so many characters.
const LABEL: usize = 16;

impl Graph {
    /// The graph as one `<svg>` element, which needs nothing else.
    pub fn svg(&self) -> String {
        let placed = layout::layout(self);
        let (width, height) = (placed.width.ceil(), placed.height.ceil());
        let picture = html! {
            svg xmlns="http://www.w3.org/2000/svg" width=(width) height=(height) viewBox={ "0 0 " (width) " " (height) }
                font-family="'DejaVu Sans Mono', 'Liberation Mono', Menlo, Consolas, monospace" font-size="11" role="img" {
                defs {
                    marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto" {
                        path d="M0 0.5 L8 4 L0 7.5 z" fill="#555" {}
                    }
                }
                rect width="100%" height="100%" fill="#fff" {}
                @for (position, edge) in self.edges.iter().enumerate() { (arrow(edge, &placed, &placed.bends[position])) }
                @for (node, place) in self.nodes.iter().zip(&placed.boxes) { (boxed(node, *place)) }
                @for (position, edge) in self.edges.iter().enumerate() { (label(edge, &placed, &placed.bends[position])) }
            }
        };
        picture.into_string()
    }
}

fn boxed(node: &Node, at: Placed) -> Markup {
    let (fill, stroke) = node.kind.colours();
    let round = match node.kind {
        Kind::Result => 12,
        Kind::Work => 5,
        _ => 0,
    };
    let width = if node.kind == Kind::Result { 2.2 } else { 1.2 };
    let dashes = match node.kind {
        Kind::Fault => "5 3",
        Kind::Foreign => "2 3",
        _ => "none",
    };
    html! {
        g {
            title { (clean(&node.title)) @for line in &node.lines { "\n" (clean(line)) } }
            rect x=(at.x) y=(at.y) width=(at.width) height=(at.height) rx=(round) fill=(fill) stroke=(stroke)
                stroke-width=(width) stroke-dasharray=(dashes) {}
            @if node.kind == Kind::Registration {
                rect x=(at.x + 3.0) y=(at.y + 3.0) width=(at.width - 6.0) height=(at.height - 6.0) fill="none"
                    stroke=(stroke) stroke-width="0.8" {}
            }
            (line(&node.title, at, 0, true))
            @for (position, text) in node.lines.iter().enumerate() { (line(text, at, position + 1, false)) }
        }
    }
}

fn line(text: &str, at: Placed, position: usize, bold: bool) -> Markup {
    let y = at.y + PADDING + LEADING * position as f64 + 11.0;
    html! {
        text x=(at.x + PADDING) y=(y) fill="#111" font-weight=(if bold { "bold" } else { "normal" }) {
            (layout::cut(&clean(text)))
        }
    }
}

/// From the right side of a box to the left side of another; over a circle closed, to its right side.
fn ends(edge: &Edge, placed: &Layout) -> ((f64, f64), (f64, f64)) {
    let (from, to) = (placed.boxes[edge.from], placed.boxes[edge.to]);
    let start = (from.x + from.width, from.y + from.height / 2.0);
    let end = if from.x < to.x { to.x } else { to.x + to.width };
    (start, (end, to.y + to.height / 2.0))
}

fn arrow(edge: &Edge, placed: &Layout, bends: &[Placed]) -> Markup {
    let (start, end) = ends(edge, placed);
    let mut points = vec![start];
    points.extend(bends.iter().map(|bend| (bend.x, bend.y + bend.height / 2.0)));
    points.push(end);
    let mut path = format!("M{:.1} {:.1}", start.0, start.1);
    for pair in points.windows(2) {
        let ((x, y), (u, v)) = (pair[0], pair[1]);
        let half = (u - x).abs() / 2.0;
        path.push_str(&format!(" C{:.1} {y:.1} {:.1} {v:.1} {u:.1} {v:.1}", x + half, u - half));
    }
    let dashes = if edge.aside { "4 3" } else { "none" };
    html! { path d=(path) fill="none" stroke="#777" stroke-dasharray=(dashes) marker-end="url(#arrow)" {} }
}

fn label(edge: &Edge, placed: &Layout, bends: &[Placed]) -> Markup {
    if edge.label.is_empty() {
        return html! {};
    }
    let ((x, y), end) = ends(edge, placed);
    let (u, v) = bends.first().map_or(end, |bend| (bend.x, bend.y + bend.height / 2.0));
    let text = clean(&edge.label);
    let short = if text.chars().count() > LABEL {
        let kept: String = text.chars().take(LABEL - 1).collect();
        format!("{kept}…")
    } else {
        text
    };
    html! {
        text x=((x + u) / 2.0) y=((y + v) / 2.0 - 3.0) font-size="9.5" fill="#444" text-anchor="middle" stroke="#fff"
            stroke-width="3" paint-order="stroke" { (short) }
    }
}
