//! Evidence of others in words. What it calls itself is somebody's text: it is shown with control characters escaped
//! and cut where it is long.

use avow_audit::beside::Beside;
use avow_store::foreign::{Act, Claimed, Foreign};

use crate::words;

/// The longest text of somebody else's that is shown in a line.
const LONGEST: usize = 120;

/// Somebody's text, fit to be printed in a line.
pub fn said(text: &str) -> String {
    let clean: String = text.chars().take(LONGEST).flat_map(escaped).collect();
    if text.chars().count() > LONGEST { format!("{clean}…") } else { clean }
}

/// Control characters and those that turn the direction of text are written out.
fn escaped(c: char) -> Vec<char> {
    let turns = matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    if c.is_control() || turns { c.escape_default().collect() } else { vec![c] }
}

/// The block beneath the verdicts; nothing where nothing is shown beside them.
pub fn block(all: &[Beside]) -> String {
    if all.is_empty() {
        return String::new();
    }
    let lines: Vec<String> = all.iter().map(|one| format!("  {}\n", line(one))).collect();
    format!("Foreign evidence, counted in none of the above\n{}", lines.concat())
}

/// One import in a line.
pub fn line(one: &Beside) -> String {
    let name = one.name.get(..8).unwrap_or(&one.name);
    let mut line = format!(
        "{} {name} `{}`, imported {}: {}",
        one.form.word(),
        said(&one.title),
        words::moment(one.imported),
        words::count(one.acts as u64, "act"),
    );
    if one.failed > 0 {
        line.push_str(&format!(", {} failed", one.failed));
    }
    for claimed in &one.verdicts {
        line.push_str(&format!("; {}", verdict(claimed)));
    }
    line
}

/// What a claim of a bundle came to.
pub fn verdict(claimed: &Claimed) -> String {
    let word = capital(claimed.word.as_deref().unwrap_or("hidden"));
    let standing = if claimed.confirmatory { "" } else { ", exploratory" };
    format!("{} {word} (n {}{standing})", said(&claimed.claim), claimed.units)
}

fn capital(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

/// What somebody says was done, in a line.
pub fn act(act: &Act) -> String {
    let list = |things: &[String]| {
        let shown: Vec<String> = things.iter().take(6).map(|thing| said(thing)).collect();
        let more = if things.len() > 6 { format!(" and {} more", things.len() - 6) } else { String::new() };
        format!("{}{more}", shown.join(", "))
    };
    let mut line = format!("`{}` by {}", said(&act.name), said(&act.tool));
    if !act.read.is_empty() {
        line.push_str(&format!(", from {}", list(&act.read)));
    }
    if let Some(ended) = &act.ended {
        line.push_str(&format!(", ended {}", said(ended)));
    }
    line
}

/// Whose something is.
pub fn whose(foreign: &Foreign) -> String {
    format!("foreign {} {} `{}`", foreign.form.word(), foreign.short(), said(&foreign.title))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn somebodys_text_cannot_steer_a_terminal() {
        assert_eq!(said("a\u{1b}[31mred\nline\u{202e}x"), "a\\u{1b}[31mred\\nline\\u{202e}x");
        assert_eq!(said(&"x".repeat(500)).chars().count(), LONGEST + 1);
    }
}
