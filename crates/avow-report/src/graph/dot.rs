//! As DOT, for Graphviz.

use super::{Graph, Kind, clean};

impl Graph {
    /// The graph as DOT.
    pub fn dot(&self) -> String {
        let mut text =
            "digraph lineage {\n  rankdir=LR;\n  node [shape=box, style=filled, fontname=\"monospace\", \
                        fontsize=10];\n  edge [fontname=\"monospace\", fontsize=9, color=\"#555555\"];\n"
                .to_owned();
        for (position, node) in self.nodes.iter().enumerate() {
            let lines = std::iter::once(&node.title).chain(&node.lines);
            // `\l` ends a line and sets it to the left.
            let label: String = lines.map(|line| format!("{}\\l", escaped(line))).collect();
            let (fill, stroke) = node.kind.colours();
            let form = match node.kind {
                Kind::Result => ", style=\"filled,rounded,bold\"",
                Kind::Registration => ", peripheries=2",
                Kind::Fault => ", style=\"filled,dashed\"",
                Kind::Foreign => ", style=\"filled,dotted\"",
                Kind::Data => ", shape=note",
                _ => "",
            };
            text.push_str(&format!(
                "  n{position} [label=\"{label}\", fillcolor=\"{fill}\", color=\"{stroke}\"{form}];\n"
            ));
        }
        for edge in &self.edges {
            let style = if edge.aside { ", style=dashed" } else { "" };
            text.push_str(&format!(
                "  n{} -> n{} [label=\"{}\"{style}];\n",
                edge.from,
                edge.to,
                escaped(&edge.label)
            ));
        }
        text.push_str("}\n");
        text
    }
}

fn escaped(text: &str) -> String {
    clean(text).replace('\\', "\\\\").replace('"', "\\\"")
}
