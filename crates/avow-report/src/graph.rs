//! A graph of boxes: what something rests on, as Mermaid, DOT or SVG.
//!
//! Arrows go from what is rested on to what rests on it, left to right. Kinds of boxes differ in their first line, in
//! the form of their border and in lightness, so that neither colour nor a legend is needed.

mod dot;
mod layout;
mod mermaid;
mod svg;

/// Boxes and arrows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Graph {
    /// The boxes.
    pub nodes: Vec<Node>,
    /// The arrows.
    pub edges: Vec<Edge>,
}

/// A box.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// What it is.
    pub kind: Kind,
    /// Its first line.
    pub title: String,
    /// The lines below.
    pub lines: Vec<String>,
}

/// What a box is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// What was asked for: a number, a claim.
    Result,
    /// Work: members with their attempts.
    Work,
    /// Bytes that work made or read.
    Data,
    /// Code, programs, lock files, operations: what work is done with.
    Means,
    /// Machines.
    Machine,
    /// The registration.
    Registration,
    /// What differs from what was registered, and what is damaged.
    Fault,
    /// Evidence of others.
    Foreign,
}

/// An arrow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edge {
    /// The box that is rested on, by position.
    pub from: usize,
    /// The box that rests on it.
    pub to: usize,
    /// A word or a path.
    pub label: String,
    /// Whether it says something about the box and is no part of its making.
    pub aside: bool,
}

impl Graph {
    /// Adds a box; its position.
    pub fn node(&mut self, kind: Kind, title: impl Into<String>, lines: Vec<String>) -> usize {
        self.nodes.push(Node { kind, title: title.into(), lines });
        self.nodes.len() - 1
    }

    /// Adds an arrow, unless it is there already.
    pub fn edge(&mut self, from: usize, to: usize, label: impl Into<String>, aside: bool) {
        let edge = Edge { from, to, label: label.into(), aside };
        if from < self.nodes.len() && to < self.nodes.len() && !self.edges.contains(&edge) {
            self.edges.push(edge);
        }
    }
}

impl Kind {
    /// Its word, for classes.
    fn word(self) -> &'static str {
        match self {
            Kind::Result => "result",
            Kind::Work => "work",
            Kind::Data => "data",
            Kind::Means => "means",
            Kind::Machine => "machine",
            Kind::Registration => "registration",
            Kind::Fault => "fault",
            Kind::Foreign => "foreign",
        }
    }

    /// Fill and border: tints of the palette of Okabe and Ito, which differ in lightness as well.
    fn colours(self) -> (&'static str, &'static str) {
        match self {
            Kind::Result => ("#fff3c4", "#8a6d00"),
            Kind::Work => ("#d8ebf7", "#0072b2"),
            Kind::Data => ("#ffffff", "#555555"),
            Kind::Means => ("#e3f4ee", "#007a59"),
            Kind::Machine => ("#eeeeee", "#777777"),
            Kind::Registration => ("#f3e1ec", "#97467a"),
            Kind::Fault => ("#fde3d3", "#d55e00"),
            Kind::Foreign => ("#f7f2e6", "#222222"),
        }
    }
}

/// The text without what no drawing can hold: control characters, and directions that turn text around.
fn clean(text: &str) -> String {
    let unfit = |c: char| c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    text.chars().map(|c| if unfit(c) { '\u{fffd}' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::{Graph, Kind};

    fn graph() -> Graph {
        let mut graph = Graph::default();
        let data = graph.node(Kind::Data, "data.csv", vec!["1f2e".to_owned()]);
        let work = graph.node(Kind::Work, "train[name=\"a<b\"]", vec!["a\nb & c".to_owned()]);
        let result = graph.node(Kind::Result, "claim", vec![]);
        graph.edge(data, work, "in|put", false);
        graph.edge(work, result, "", false);
        graph.edge(data, result, "", true);
        graph
    }

    #[test]
    fn text_is_escaped_in_every_form() {
        let graph = graph();
        let svg = graph.svg();
        assert!(
            svg.contains("train[name=&quot;a&lt;b&quot;]") && svg.contains("a\u{fffd}b &amp; c"),
            "{svg}"
        );
        let dot = graph.dot();
        assert!(dot.contains(r#"train[name=\"a<b\"]"#) && dot.contains("n0 -> n1"), "{dot}");
        let mermaid = graph.mermaid();
        assert!(mermaid.contains("train[name=#quot;a#lt;b#quot;]"), "{mermaid}");
        assert!(mermaid.contains("n0 -->|\"in#124;put\"| n1"), "{mermaid}");
    }

    #[test]
    fn boxes_of_one_drawing_do_not_overlap_and_arrows_go_right() {
        let mut graph = graph();
        for number in 0..30 {
            let file = graph.node(Kind::Data, format!("file {number}"), vec!["x".repeat(number)]);
            graph.edge(file, 1, "", false);
        }
        let placed = super::layout::layout(&graph);
        for (i, a) in placed.boxes.iter().enumerate() {
            for b in &placed.boxes[i + 1..] {
                let apart = a.x + a.width <= b.x
                    || b.x + b.width <= a.x
                    || a.y + a.height <= b.y
                    || b.y + b.height <= a.y;
                assert!(apart, "{a:?} {b:?}");
            }
            assert!(
                a.x >= 0.0 && a.y >= 0.0 && a.x + a.width <= placed.width && a.y + a.height <= placed.height
            );
        }
        for edge in &graph.edges {
            assert!(placed.boxes[edge.from].x + placed.boxes[edge.from].width < placed.boxes[edge.to].x);
        }
    }

    #[test]
    fn a_circle_is_drawn_as_well_and_so_is_nothing() {
        // A stage that copies its input makes the bytes that it reads.
        let mut graph = Graph::default();
        let bytes = graph.node(Kind::Data, "bytes", vec![]);
        let copy = graph.node(Kind::Work, "copy", vec![]);
        graph.edge(bytes, copy, "", false);
        graph.edge(copy, bytes, "", false);
        graph.edge(copy, copy, "", false);
        assert!(graph.svg().contains("copy"));
        assert!(Graph::default().svg().starts_with("<svg"));
    }
}
