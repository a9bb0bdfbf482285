//! The page stands alone, and nothing that it is told can become markup.

use avow_report::document::{Claim, Figure, Row, Source, Table, Verdict};
use avow_report::plot::{Forest, Group, Line, Series, Strip, Trend};
use avow_report::{Document, Plot, page};

const EVIL: &str = "<script>alert(1)</script>\"'&</svg><img src=http://x>";

fn figure(plot: Plot) -> Figure {
    Figure { plot, caption: EVIL.to_owned() }
}

fn plots() -> Vec<Plot> {
    let line = |estimate, interval| Line { name: EVIL.to_owned(), estimate, interval };
    vec![
        Plot::Forest(Forest {
            scale: EVIL.to_owned(),
            bounds: vec![0.0, f64::NAN],
            lines: vec![
                line(0.5, Some((0.1, 0.9))),
                line(0.2, Some((f64::NEG_INFINITY, 0.4))),
                line(f64::NAN, None),
            ],
        }),
        Plot::Strip(Strip {
            measure: EVIL.to_owned(),
            grouping: EVIL.to_owned(),
            groups: vec![
                Group { name: EVIL.to_owned(), values: vec![1.0, 1.0, 2.0, f64::INFINITY] },
                Group { name: "empty".to_owned(), values: vec![] },
            ],
            bounds: vec![1.5],
        }),
        Plot::Trend(Trend {
            measure: EVIL.to_owned(),
            along: EVIL.to_owned(),
            series: vec![Series {
                name: EVIL.to_owned(),
                points: vec![(1.0, 2.0), (2.0, 3.0), (2.0, f64::NAN)],
            }],
            formula: vec![(1.0, 1.0), (2.0, 4.0)],
        }),
        Plot::Forest(Forest::default()),
        Plot::Strip(Strip::default()),
        Plot::Trend(Trend::default()),
    ]
}

fn document() -> Document {
    let evil = || EVIL.to_owned();
    let pair = || vec![(evil(), evil())];
    let table = || Table {
        header: vec![evil(), evil()],
        rows: vec![Row { cells: vec![evil(), evil()], anchor: Some("source-1".to_owned()) }],
    };
    let verdict = Verdict {
        member: evil(),
        word: "Supported".to_owned(),
        numbers: evil(),
        deviations: vec![1],
        sources: vec![("source-1".to_owned(), evil())],
    };
    Document {
        experiment: evil(),
        title: Some(evil()),
        standing: evil(),
        confirmatory: true,
        damage: vec![evil()],
        registration: pair(),
        axes: pair(),
        stages: table(),
        claims: vec![Claim {
            name: "helps".to_owned(),
            tier: evil(),
            says: Some(evil()),
            verdicts: vec![verdict],
            explained: evil(),
            plots: plots().into_iter().map(figure).collect(),
        }],
        plots: Vec::new(),
        deviations: vec![evil()],
        denominators: pair(),
        measurements: table(),
        of: 7,
        environment: table(),
        cost: pair(),
        lineage: vec![Source { anchor: "source-1".to_owned(), heading: evil(), steps: vec![(1, evil())] }],
        foreign: vec!["bundle 5b7c1f02 `<theirs>`: 8 acts".to_owned()],
        made_by: evil(),
    }
}

#[test]
fn nothing_that_it_is_told_becomes_markup_or_leads_outside() {
    let text = page(&document()).expect("the page is laid out");
    assert!(!text.contains("<script"), "a script came through");
    assert!(!text.contains("<img"), "an image came through");
    let links = text.match_indices("http").map(|(at, _)| &text[at..text.len().min(at + 40)]);
    let outside: Vec<&str> = links
        .filter(|link| !link.starts_with("http://www.w3.org/2000/svg") && !link.starts_with("http-equiv"))
        .filter(|link| !link.starts_with("http://x&gt;"))
        .collect();
    assert_eq!(outside, Vec::<&str>::new());
    assert_eq!(text.matches("<svg").count(), plots().len());
    assert_eq!(text.matches("</svg>").count(), plots().len());
}

#[test]
fn every_link_of_the_page_has_its_place_in_it() {
    let text = page(&document()).expect("the page is laid out");
    for (at, _) in text.match_indices("href=\"#") {
        let anchor = text[at + 7..].split('"').next().expect("a quoted anchor");
        assert!(text.contains(&format!("id=\"{anchor}\"")), "{anchor} leads nowhere");
    }
}

#[test]
fn evidence_of_others_stands_apart() {
    let text = page(&document()).expect("the page is laid out");
    let (own, foreign) = text.split_once("Foreign evidence").expect("it has a section of its own");
    assert!(foreign.contains("counted in none of the above") && foreign.contains("`&lt;theirs&gt;`: 8 acts"));
    assert!(!own.contains("8 acts"));
    assert!(!page(&Document::default()).expect("a page").contains("Foreign evidence"));
}

#[test]
fn an_empty_report_is_a_page_too() {
    let text = page(&Document { experiment: "e".to_owned(), ..Document::default() }).expect("a page");
    assert!(text.contains("The spec makes no claims."));
}

#[test]
fn any_numbers_can_be_drawn() {
    let hard =
        [0.0, -0.0, 1e-320, 1e308, -1e308, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1.0, 1.0 + 1e-16];
    for a in hard {
        for b in hard {
            let points = vec![(a, b), (b, a)];
            let strip =
                Strip { groups: vec![Group { name: String::new(), values: vec![a, b] }], ..Strip::default() };
            let trend = Trend { series: vec![Series { name: String::new(), points }], ..Trend::default() };
            let line = Line { name: String::new(), estimate: a, interval: Some((a.min(b), a.max(b))) };
            let forest = Forest { lines: vec![line], bounds: vec![b], ..Forest::default() };
            for plot in [Plot::Strip(strip), Plot::Trend(trend), Plot::Forest(forest)] {
                let svg = plot.svg().unwrap_or_else(|error| panic!("{a} {b}: {error}"));
                assert!(!svg.contains("NaN") && !svg.contains("inf"), "{a} {b}: {svg}");
            }
        }
    }
}
