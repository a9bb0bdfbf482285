//! The page.

use maud::{DOCTYPE, Markup, PreEscaped, html};

use crate::document::{Claim, Document, Figure, Pair, Source, Table, Verdict};
use crate::plot::PlotError;

/// Black on white, one column, system fonts; marks of verdicts are words and shapes, not colours alone.
const STYLE: &str = include_str!("page.css");

/// Lays a report out as one HTML page. Errors: a plot that cannot be drawn.
pub fn page(document: &Document) -> Result<String, PlotError> {
    let title = document.title.as_deref().unwrap_or(&document.experiment);
    let markup = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; img-src data:";
                title { (title) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                header {
                    h1 { (title) }
                    p.experiment { code { (document.experiment) } }
                    p.standing.confirmatory[document.confirmatory] { (document.standing) }
                }
                @if !document.damage.is_empty() { (damage(&document.damage)) }
                main { (body(document)?) }
                footer { p { "Written by " (document.made_by) ". Every number above was computed anew from the bytes it names." } }
            }
        }
    };
    Ok(markup.into_string())
}

fn body(document: &Document) -> Result<Markup, PlotError> {
    let mut claims = Vec::new();
    for one in &document.claims {
        claims.push(claim(one)?);
    }
    let figures = figures(&document.plots)?;
    Ok(html! {
        section { h2 id="claims" { "Claims" }
            @if claims.is_empty() { p { "The spec makes no claims." } }
            @for claim in claims { (claim) }
        }
        (deviations(&document.deviations))
        @if !document.registration.is_empty() { section { h2 { "Registration" } (pairs(&document.registration)) } }
        section { h2 { "Design" } (pairs(&document.axes)) (table(&document.stages)) }
        section { h2 { "What was counted" } (pairs(&document.denominators)) }
        @if !document.plots.is_empty() { section { h2 { "Measurements" } (figures) } }
        (measurements(document))
        section { h2 { "Environment" } (table(&document.environment)) }
        section { h2 { "Cost" } (pairs(&document.cost)) }
        @if !document.foreign.is_empty() {
            section.foreign { h2 { "Foreign evidence" }
                p { "Imported from others; counted in none of the above." }
                ul { @for one in &document.foreign { li { (one) } } }
            }
        }
        @if !document.lineage.is_empty() {
            section.lineage { h2 id="lineage" { "Where the numbers come from" } @for source in &document.lineage { (lineage(source)) } }
        }
    })
}

fn damage(damage: &[String]) -> Markup {
    html! {
        section.damage role="alert" {
            h2 { "Damaged evidence" }
            p { "What follows rests on evidence that does not verify:" }
            ul { @for one in damage { li { (one) } } }
        }
    }
}

fn claim(claim: &Claim) -> Result<Markup, PlotError> {
    let figures = figures(&claim.plots)?;
    Ok(html! {
        article.claim id={ "claim-" (claim.name) } {
            h3 { (claim.name) " " span.tier { (claim.tier) } }
            @if let Some(says) = &claim.says { blockquote { (says) } }
            @for one in &claim.verdicts { (verdict(one)) }
            (figures)
            details { summary { "Everything behind it" } pre { (claim.explained) } }
        }
    })
}

fn verdict(verdict: &Verdict) -> Markup {
    html! {
        div.verdict {
            @if !verdict.word.is_empty() {
                span class={ "word " (verdict.word.to_lowercase()) } { (mark(&verdict.word)) " " (verdict.word) }
            }
            @if !verdict.member.is_empty() { " " code { (verdict.member) } }
            " " span.numbers { (verdict.numbers) }
            @for number in &verdict.deviations {
                " " a.deviation href={ "#deviation-" (number) } { "deviation " (number) }
            }
            @if !verdict.sources.is_empty() {
                p.sources { "rests on "
                    @for (position, (anchor, name)) in verdict.sources.iter().enumerate() {
                        @if position > 0 { ", " }
                        a href={ "#" (anchor) } { (name) }
                    }
                }
            }
        }
    }
}

/// A shape beside the word, for those who see no colours and for print.
fn mark(word: &str) -> &'static str {
    match word {
        "Supported" => "●",
        "Refuted" | "Reversed" => "✕",
        "Inconclusive" => "◐",
        _ => "○",
    }
}

fn figures(figures: &[Figure]) -> Result<Markup, PlotError> {
    let mut drawn = Vec::new();
    for figure in figures {
        drawn.push((figure.plot.svg()?, &figure.caption));
    }
    // The drawing is made of numbers and of text that the drawing library escapes.
    Ok(html! { @for (svg, caption) in drawn { figure { (PreEscaped(svg)) figcaption { (caption) } } } })
}

fn deviations(deviations: &[String]) -> Markup {
    html! {
        section { h2 { "Deviations" }
            @if deviations.is_empty() { p { "None." } }
            ol { @for (position, one) in deviations.iter().enumerate() {
                li id={ "deviation-" (position + 1) } { (one) }
            } }
        }
    }
}

fn measurements(document: &Document) -> Markup {
    let shown = document.measurements.rows.len();
    html! {
        section { h2 id="measurements" { "Table of measurements" }
            @if shown < document.of {
                p { "The first " (shown) " of " (document.of) " rows; " code { "avow table" } " prints all." }
            }
            (table(&document.measurements))
        }
    }
}

fn pairs(pairs: &[Pair]) -> Markup {
    html! { @if !pairs.is_empty() { dl { @for (name, text) in pairs { dt { (name) } dd { (text) } } } } }
}

fn table(table: &Table) -> Markup {
    html! {
        @if !table.rows.is_empty() {
            div.wide { table {
                thead { tr { @for name in &table.header { th scope="col" { (name) } } } }
                tbody { @for row in &table.rows { tr {
                    @for (position, cell) in row.cells.iter().enumerate() {
                        td { @match (&row.anchor, position + 1 == row.cells.len()) {
                            (Some(anchor), true) => a href={ "#" (anchor) } { (cell) },
                            _ => (cell),
                        } }
                    }
                } } }
            } }
        }
    }
}

fn lineage(source: &Source) -> Markup {
    html! {
        details id=(source.anchor) {
            summary { (source.heading) }
            ul.steps { @for (depth, text) in &source.steps {
                li style={ "margin-left:" (depth * 2) "ch" } { (text) }
            } }
        }
    }
}
