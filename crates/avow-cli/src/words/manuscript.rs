//! What an audit of a manuscript found, in words, in JSON and as results for code hosts.

mod as_json;

use std::collections::BTreeMap;

use avow_audit::measure::table;
use avow_audit::stock::{Selection, Stocked};
use avow_manuscript::check::{Check, Outcome};
use avow_manuscript::class::{Candidate, Resolved};
use avow_manuscript::text::{By, Span};
use avow_manuscript::{Class, Finding, Kind, Manuscript, Rounding, Stock, binding, macros};
use avow_spec::Diagnostic;

use crate::diagnostics;
use crate::sarif::{self, Level};
use crate::words;

/// Everything that was found, with what words need.
pub struct Told<'a> {
    manuscript: &'a Manuscript,
    findings: &'a [Finding],
    stocked: &'a Stocked,
    /// Definitions of macro files that are not what the store says now: position, what it should be.
    stale: Vec<(usize, String)>,
}

/// One thing to tell about a place.
struct Point {
    span: Span,
    level: Level,
    code: &'static str,
    message: String,
    hint: Option<String>,
}

/// What a defined value should be where it is not what the store says: `1.45 now`, `gone`.
pub fn now(stocked: &Stocked, written: &str, value: &str) -> Option<String> {
    let (key, format) = binding::split(written);
    let now = stocked.resolve(key);
    match (&now, binding::render(&now, key, format)) {
        (Resolved::Hidden { .. }, _) => None,
        (Resolved::Unknown, _) | (_, Err(_)) => Some("gone".to_owned()),
        (_, Ok(text)) if binding::same_text(&macros::shown(value), &text) => None,
        (_, Ok(text)) => Some(format!("{text} now")),
    }
}

impl<'a> Told<'a> {
    /// Compares macro files as well.
    pub fn new(manuscript: &'a Manuscript, findings: &'a [Finding], stocked: &'a Stocked) -> Told<'a> {
        let defined = manuscript.flat.defined.iter().enumerate();
        let stale = defined.filter_map(|(index, defined)| {
            now(stocked, &defined.key, &defined.value).map(|now| (index, now))
        });
        Told { manuscript, findings, stocked, stale: stale.collect() }
    }

    /// Whether a macro file is stale.
    pub fn is_stale(&self) -> bool {
        let lacking = self.manuscript.flat.uses.iter().any(|used| used.by == By::Nothing);
        !self.stale.is_empty() || lacking
    }

    /// Whether a statistic does not follow from its parts.
    pub fn is_wrong(&self) -> bool {
        self.manuscript.checks.iter().any(Check::is_wrong)
    }

    fn points(&self, all: bool) -> Vec<Point> {
        let mut points: Vec<Point> =
            self.findings.iter().filter_map(|finding| self.number(finding, all)).collect();
        points.extend(self.manuscript.checks.iter().filter_map(|check| self.check(check, all)));
        // One change of the store makes hundreds of definitions stale; so many are told one by one.
        let told = if all { self.stale.len() } else { 5 };
        for (position, (index, now)) in self.stale.iter().enumerate().take(told + 1) {
            let defined = &self.manuscript.flat.defined[*index];
            let message = match position < told {
                true => format!("`{}` is {now}", defined.key),
                false => {
                    let further = (self.stale.len() - told) as u64;
                    format!(
                        "{} of this file: not what the store says either",
                        words::count(further, "further value")
                    )
                }
            };
            points.push(Point {
                span: defined.span,
                level: Level::Error,
                code: "stale-macro",
                message,
                hint: None,
            });
        }
        for problem in &self.manuscript.flat.problems {
            points.push(Point {
                span: problem.span.unwrap_or(Span { file: 0, start: 0, end: 0 }),
                level: Level::Warning,
                code: "unreadable",
                message: problem.what.clone(),
                hint: None,
            });
        }
        points.sort_by_key(|point| (point.span, point.level));
        points
    }

    fn printed(&self, finding: &Finding) -> String {
        self.manuscript.flat.text.get(finding.range.clone()).unwrap_or_default().trim().to_owned()
    }

    fn number(&self, finding: &Finding, all: bool) -> Option<Point> {
        let chosen = finding.candidates.first().and_then(|c| self.chosen(finding, c));
        let noisy = self.noisy(finding);
        let (level, message, hint) = match finding.class {
            Class::Contradicted => (Level::Error, self.contradicted(finding), None),
            Class::Stale => {
                let expected = finding.expected.clone().unwrap_or_default();
                let key = finding.key.as_deref().unwrap_or_default();
                (Level::Error, format!("`{key}` is {expected} by now"), None)
            }
            Class::UnknownKey => {
                let key = finding.key.as_deref().unwrap_or_default();
                let format = binding::Format::parse(binding::split(key).1).err();
                let message = match format {
                    Some(bad) => bad.to_string(),
                    None => format!("nothing stored is called `{key}`"),
                };
                (
                    Level::Error,
                    message,
                    Some("`avow report --macros FILE` lists the keys of claims".to_owned()),
                )
            }
            Class::Misrounded => (Level::Warning, self.misrounded(finding), None),
            Class::Unbound => (Level::Note, "nothing stored is printed so".to_owned(), None),
            Class::Matched if chosen.is_some() => {
                (Level::Note, self.matched(finding) + &chosen.unwrap_or_default(), None)
            }
            Class::Matched if noisy.is_some() => {
                (Level::Note, self.matched(finding) + &noisy.clone().unwrap_or_default(), None)
            }
            Class::Matched if all => (Level::Note, self.matched(finding), None),
            Class::Hidden if all => {
                (Level::Note, "its value stays hidden until the registered plan is complete".to_owned(), None)
            }
            Class::Current if all || noisy.is_some() => {
                let key = finding.key.as_deref().unwrap_or_default();
                (Level::Note, format!("bound to `{key}`, current{}", noisy.clone().unwrap_or_default()), None)
            }
            Class::Aside if all => {
                (Level::Note, format!("set aside: {}", finding.rule.map_or("", |rule| rule.word())), None)
            }
            Class::Matched | Class::Current | Class::Hidden | Class::Aside => return None,
        };
        let code = if noisy.is_some() && matches!(finding.class, Class::Matched | Class::Current) {
            "below-noise"
        } else if finding.class == Class::Matched && level == Level::Note && !all {
            "chosen"
        } else {
            finding.class.word()
        };
        Some(Point { span: self.span(finding), level, code, message, hint })
    }

    fn span(&self, finding: &Finding) -> Span {
        match finding.used {
            Some(index) => self.manuscript.flat.uses[index].span,
            None => self.manuscript.flat.span(&finding.range),
        }
    }

    fn contradicted(&self, finding: &Finding) -> String {
        let printed = self.printed(finding);
        match (&finding.key, finding.candidates.first()) {
            (Some(key), _) => {
                format!(
                    "{printed} is bound to `{key}`, which is {}",
                    finding.expected.as_deref().unwrap_or("something else")
                )
            }
            (None, Some(candidate)) => {
                format!("{printed} is close to {}, which the text names", self.candidate(candidate))
            }
            (None, None) => format!("{printed} is something else"),
        }
    }

    fn misrounded(&self, finding: &Finding) -> String {
        let printed = self.printed(finding);
        match (&finding.key, finding.candidates.first()) {
            (Some(key), _) => format!(
                "{printed} is not `{key}` rounded, which is {}",
                finding.expected.as_deref().unwrap_or_default()
            ),
            (None, Some(candidate)) => {
                let how = match candidate.rounding {
                    Some(Rounding::Truncated) => "cut off",
                    _ => "rounded the wrong way",
                };
                format!("{printed} is {} {how}", self.candidate(candidate))
            }
            (None, None) => format!("{printed} is rounded wrongly"),
        }
    }

    fn matched(&self, finding: &Finding) -> String {
        let Some(first) = finding.candidates.first() else { return String::new() };
        let more = match finding.total {
            0 | 1 => String::new(),
            total => format!(", or {} more", total - 1),
        };
        let coarse = if finding.coarse { "; so few digits say little" } else { "" };
        format!("equal to {}{more}{coarse}", self.candidate(first))
    }

    /// A stored value with its key and what was done to it.
    fn candidate(&self, candidate: &Candidate) -> String {
        let over = match self.stocked.over(candidate.kind, candidate.id) {
            Some((over, n)) => format!(" over {n} values of `{over}`"),
            None => String::new(),
        };
        let scale = if candidate.percent { ", times a hundred" } else { "" };
        let sign = if candidate.negated { ", without its sign" } else { "" };
        let key = self.stocked.key(candidate.kind, candidate.id);
        format!("`{key}` = {}{over}{scale}{sign}", spelled(candidate.value))
    }

    fn selection(&self, finding: &Finding, candidate: &Candidate) -> Option<Selection> {
        // A value that any number of others may stand for was not chosen.
        if finding.coarse || !matches!(candidate.kind, Kind::Summary | Kind::Measurement) {
            return None;
        }
        self.stocked.selection(candidate.kind, candidate.id)
    }

    /// What to say of an estimate that is smaller than the noise of what it measures.
    fn noisy(&self, finding: &Finding) -> Option<String> {
        let claims = finding.candidates.iter().filter(|candidate| candidate.kind == Kind::Claim);
        let keys = match &finding.key {
            Some(key) => vec![binding::split(key).0.to_owned()],
            None => claims.map(|candidate| self.stocked.key(candidate.kind, candidate.id)).collect(),
        };
        let (effect, noise) = keys.iter().find_map(|key| self.stocked.below_noise(key))?;
        Some(format!("; an effect of {} below its own noise, {}", spelled(effect), words::number(noise)))
    }

    fn chosen(&self, finding: &Finding, candidate: &Candidate) -> Option<String> {
        let selection = self.selection(finding, candidate)?;
        let over: Vec<String> = selection.over.iter().map(|axis| format!("`{axis}`")).collect();
        Some(format!("; {} of {} cells over {}", selection.best.word(), selection.of, over.join(", ")))
    }

    fn check(&self, check: &Check, all: bool) -> Option<Point> {
        let range = check.recomputed.map(|(low, high)| between(low, high)).unwrap_or_default();
        let (level, message) = match check.outcome {
            Outcome::Decision => (
                Level::Error,
                format!("{} does not follow: it should be {range}, on the other side of 0.05", check.stated),
            ),
            Outcome::Inconsistent => (Level::Error, wrong(check, &range)),
            Outcome::OneSided => (
                Level::Warning,
                format!("{} follows only for a one-sided test; two-sided it is {range}", check.stated),
            ),
            Outcome::Unknown if all => {
                (Level::Note, "p without its statistic cannot be recomputed".to_owned())
            }
            Outcome::Consistent if all => (Level::Note, format!("{} follows from its parts", check.stated)),
            Outcome::Unknown | Outcome::Consistent => return None,
        };
        let span = self.manuscript.flat.span(&check.range);
        Some(Point { span, level, code: check.code.word(), message, hint: None })
    }

    /// The points as people read them, each with its line underlined.
    pub fn text(&self, all: bool, colour: bool) -> String {
        let mut by_file: BTreeMap<usize, Vec<Diagnostic>> = BTreeMap::new();
        for point in self.points(all) {
            let span = point.span.start..point.span.end;
            let diagnostic = match point.level {
                Level::Error => Diagnostic::error(point.code, span, point.message),
                Level::Warning => Diagnostic::warning(point.code, span, point.message),
                Level::Note => Diagnostic::note(point.code, span, point.message),
            };
            by_file.entry(point.span.file).or_default().push(diagnostic.maybe_hint(point.hint));
        }
        let files = &self.manuscript.flat.files;
        by_file
            .iter()
            .map(|(file, all)| diagnostics::render(&files[*file].path, &files[*file].text, all, colour))
            .collect()
    }

    /// One line that counts.
    pub fn summary(&self) -> String {
        let count = |class: Class| self.findings.iter().filter(|f| f.class == class).count();
        let numbers = self.findings.iter().filter(|f| f.class != Class::Aside).count();
        let mut parts = Vec::new();
        for (class, word) in [
            (Class::Current, "bound and current"),
            (Class::Stale, "stale"),
            (Class::Contradicted, "contradicted"),
            (Class::Misrounded, "misrounded"),
            (Class::UnknownKey, "bound to nothing"),
            (Class::Matched, "equal to something stored"),
            (Class::Unbound, "unexplained"),
            (Class::Hidden, "hidden"),
        ] {
            if count(class) > 0 {
                parts.push(format!("{} {word}", count(class)));
            }
        }
        let wrong = self.manuscript.checks.iter().filter(|check| check.is_wrong()).count();
        let statistics = match wrong {
            0 => String::new(),
            _ => format!("; {} that cannot be so", words::count(wrong as u64, "statistic")),
        };
        format!(
            "{}: {}, {} set aside{statistics}",
            words::count(numbers as u64, "number"),
            if parts.is_empty() { "nothing to compare".to_owned() } else { parts.join(", ") },
            count(Class::Aside),
        )
    }

    /// What a code host shows beside the lines.
    pub fn results(&self, all: bool) -> Vec<sarif::Found> {
        let flat = &self.manuscript.flat;
        let points = self.points(all).into_iter();
        points
            .map(|point| sarif::Found {
                rule: point.code,
                level: point.level,
                message: point.message,
                file: flat.files.get(point.span.file).map(|file| file.path.clone()).unwrap_or_default(),
                start: flat.place(point.span.file, point.span.start),
                end: flat.place(point.span.file, point.span.end),
            })
            .collect()
    }
}

fn wrong(check: &Check, range: &str) -> String {
    use avow_manuscript::check::Code;
    match check.code {
        Code::Estimate => format!("{} does not lie in its interval {range}", check.stated),
        Code::ImpossiblePercentage => {
            format!("{} is no whole number; the nearest is {range} %", check.stated)
        }
        Code::ImpossibleMean => {
            format!("{} is no mean of so many whole numbers; the nearest is {range}", check.stated)
        }
        Code::Percentage => {
            format!("{} does not follow from its counts: it should be {range} %", check.stated)
        }
        Code::Interval => format!("{} does not follow from r and n: it should be {range}", check.stated),
        Code::P | Code::PAlone => {
            format!("{} does not follow from its statistic: it should be {range}", check.stated)
        }
    }
}

/// Ten digits: what a sum of floats has behind them is nobody's.
fn spelled(value: f64) -> String {
    table::spell(format!("{value:.9e}").parse().unwrap_or(value))
}

fn between(low: f64, high: f64) -> String {
    let short = |value: f64| words::number(format!("{value:.3e}").parse().unwrap_or(value));
    if short(low) == short(high) { short(low) } else { format!("{} to {}", short(low), short(high)) }
}
