//! Verdicts as tables for manuscripts: Markdown and LaTeX.

use avow_audit::judge::Verdict;
use avow_audit::{Report, Standing};

use super::number;
use super::verdict::{capital, place};

const HEADER: [&str; 6] = ["Claim", "Verdict", "Estimate", "Interval", "q", "n"];

/// A table with a line a member, as Markdown.
pub fn markdown(report: &Report) -> String {
    let escaped = |text: &str| text.replace('\\', "\\\\").replace('|', "\\|").replace('\n', " ");
    let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
    let mut out = line(HEADER.map(str::to_owned).to_vec());
    out.push_str(&line(vec!["---".to_owned(); HEADER.len()]));
    for verdict in &report.verdicts {
        out.push_str(&line(cells(verdict).iter().map(|cell| escaped(cell)).collect()));
    }
    format!("{out}\n{}\n", standing(report))
}

/// The same as a LaTeX `tabular`; numbers are set in mathematics.
pub fn latex(report: &Report) -> String {
    let mut out = "\\begin{tabular}{llrrrr}\n\\hline\n".to_owned();
    out.push_str(&format!("{} \\\\\n\\hline\n", HEADER.join(" & ")));
    for verdict in &report.verdicts {
        let cells: Vec<String> = cells(verdict).iter().map(|cell| escaped(cell)).collect();
        out.push_str(&format!("{} \\\\\n", cells.join(" & ")));
    }
    out.push_str("\\hline\n\\end{tabular}\n");
    format!("{out}% {}\n", standing(report))
}

/// Text in which nothing means anything to LaTeX.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' | '%' | '$' | '#' | '_' | '{' | '}' => out.extend(['\\', c]),
            '\\' => out.push_str("\\textbackslash{}"),
            '~' => out.push_str("\\textasciitilde{}"),
            '^' => out.push_str("\\textasciicircum{}"),
            '<' | '>' => out.extend(['$', c, '$']),
            '\n' => out.push(' '),
            _ => out.push(c),
        }
    }
    out
}

fn cells(verdict: &Verdict) -> Vec<String> {
    let word = verdict.word.map_or_else(|| "Estimate".to_owned(), |word| capital(word.word()));
    let reason = verdict.reason.as_ref().map(|r| format!(" ({})", r.word())).unwrap_or_default();
    let interval = verdict.interval.map(|i| {
        let level = number((i.level * 1e4).round() / 1e2);
        format!("[{}, {}] ({level} %)", number(i.low), number(i.high))
    });
    vec![
        format!("{}{}", verdict.claim, place(&verdict.member)),
        format!("{word}{reason}"),
        verdict.estimate.map(number).unwrap_or_default(),
        interval.unwrap_or_default(),
        verdict.q_corrected.map(number).unwrap_or_default(),
        format!(
            "{}/{}{}",
            verdict.units.used,
            verdict.units.planned,
            super::verdict::clusters(&verdict.units)
        ),
    ]
}

fn standing(report: &Report) -> String {
    let registered = report.registration.as_ref().map(|r| r.leaf.short());
    match (report.standing, registered) {
        (Standing::Confirmatory, Some(leaf)) => {
            format!("Confirmatory: registered as {leaf}; {}.", deviations(report))
        }
        (_, Some(leaf)) => {
            format!("Exploratory: another plan is registered as {leaf}; {}.", deviations(report))
        }
        (_, None) => "Exploratory: nothing was registered before.".to_owned(),
    }
}

fn deviations(report: &Report) -> String {
    match report.deviations.len() {
        0 => "no deviation".to_owned(),
        1 => "1 deviation".to_owned(),
        n => format!("{n} deviations"),
    }
}

#[cfg(test)]
mod tests {
    use super::escaped;

    #[test]
    fn nothing_in_a_name_is_a_command_of_latex() {
        let text = escaped("a_b[x=10%] \\input{x} $1 & ~^# <2>");
        let plain = "a\\_b[x=10\\%] \\textbackslash{}input\\{x\\} \\$1 \\& \\textasciitilde{}\\textasciicircum{}\\# $<$2$>$";
        assert_eq!(text, plain);
    }
}
