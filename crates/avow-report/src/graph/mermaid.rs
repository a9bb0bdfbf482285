//! As Mermaid's `flowchart`.

use super::{Graph, Kind, clean};

impl Graph {
    /// The graph as Mermaid.
    pub fn mermaid(&self) -> String {
        let mut text = "flowchart LR\n".to_owned();
        for (position, node) in self.nodes.iter().enumerate() {
            let lines = std::iter::once(&node.title).chain(&node.lines);
            let lines: Vec<String> = lines.map(|line| escaped(line)).collect();
            let (open, close) = match node.kind {
                Kind::Result => ("([", "])"),
                Kind::Data => ("[/", "/]"),
                Kind::Registration => ("[[", "]]"),
                Kind::Fault => ("{{", "}}"),
                Kind::Foreign => ("[\\", "\\]"),
                _ => ("[", "]"),
            };
            let label = lines.join("<br/>");
            text.push_str(&format!("  n{position}{open}\"{label}\"{close}:::{}\n", node.kind.word()));
        }
        for edge in &self.edges {
            let arrow = if edge.aside { "-.->" } else { "-->" };
            let label =
                if edge.label.is_empty() { String::new() } else { format!("|\"{}\"|", escaped(&edge.label)) };
            text.push_str(&format!("  n{} {arrow}{label} n{}\n", edge.from, edge.to));
        }
        for kind in Kind::ALL {
            let (fill, stroke) = kind.colours();
            text.push_str(&format!("  classDef {} fill:{fill},stroke:{stroke},color:#111\n", kind.word()));
        }
        text
    }
}

impl Kind {
    const ALL: [Kind; 8] = [
        Kind::Result,
        Kind::Work,
        Kind::Data,
        Kind::Means,
        Kind::Machine,
        Kind::Registration,
        Kind::Fault,
        Kind::Foreign,
    ];
}

/// In Mermaid's quoted text a number sign begins an entity, and everything that marks text up is one.
fn escaped(text: &str) -> String {
    let mut out = String::new();
    for character in clean(text).chars() {
        match character {
            '"' => out.push_str("#quot;"),
            '<' => out.push_str("#lt;"),
            '>' => out.push_str("#gt;"),
            '&' => out.push_str("#amp;"),
            '#' | '`' | '|' | '*' | '_' | '\\' => out.push_str(&format!("#{};", u32::from(character))),
            other => out.push(other),
        }
    }
    out
}
