//! Which numbers are no results: years, references, section numbers, versions, identifiers.
//!
//! Each rule has a name that `avow audit --all` shows and `docs/manuscripts.md` explains. A rule looks at the token,
//! at the zone it stands in, or at a few words beside it; it never looks at the store, so what is set aside does not
//! depend on what is stored.

use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;
use serde::Serialize;

use crate::number::{Number, Role};
use crate::text::{Flat, Zone};

/// Why a number is no result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rule {
    /// It is part of a name: `ResNet50`, `CIFAR-10`, `3D`, `#12`.
    Identifier,
    /// `1.2.3`, `v2`, `Python 3.11`.
    Version,
    /// `2024-05-01`, `May 12`.
    Date,
    /// `12:30`.
    Time,
    /// `1st`, `4th`.
    Ordinal,
    /// A power of something else than ten: `2^10`.
    Power,
    /// A superscript or subscript.
    Script,
    /// It stands in code.
    Code,
    /// It stands in a citation, a label, a link or a cross-reference.
    Reference,
    /// `Section 3`, `Fig. 2`, `Eq. (4)`.
    CrossReference,
    /// `[12]`, `[3, 4]`.
    Citation,
    /// It stands in the list of references.
    Bibliography,
    /// `in 2019`, `(Smith et al., 2019)`.
    Year,
    /// The number of a heading.
    HeadingNumber,
    /// The mark before an item of a list.
    ListMarker,
    /// The number of a page, alone on its line.
    PageNumber,
    /// `95 %` before `confidence interval`.
    ConfidenceLevel,
    /// What follows `α =` or `significance level`.
    SignificanceLevel,
    /// A bound that is no value: `p < 0.05`, `≥ 8`.
    Bound,
    /// Degrees of freedom of a test: `t(14)`, `F(2, 27)`.
    DegreesOfFreedom,
    /// A word for a number up to twelve that counts nothing: `one of the`.
    SmallWord,
}

impl Rule {
    /// Every rule.
    pub const ALL: [Rule; 21] = [
        Rule::Identifier,
        Rule::Version,
        Rule::Date,
        Rule::Time,
        Rule::Ordinal,
        Rule::Power,
        Rule::Script,
        Rule::Code,
        Rule::Reference,
        Rule::CrossReference,
        Rule::Citation,
        Rule::Bibliography,
        Rule::Year,
        Rule::HeadingNumber,
        Rule::ListMarker,
        Rule::PageNumber,
        Rule::ConfidenceLevel,
        Rule::SignificanceLevel,
        Rule::Bound,
        Rule::DegreesOfFreedom,
        Rule::SmallWord,
    ];

    /// The name of the rule.
    pub fn word(self) -> &'static str {
        match self {
            Rule::Identifier => "identifier",
            Rule::Version => "version",
            Rule::Date => "date",
            Rule::Time => "time",
            Rule::Ordinal => "ordinal",
            Rule::Power => "power",
            Rule::Script => "script",
            Rule::Code => "code",
            Rule::Reference => "reference",
            Rule::CrossReference => "cross-reference",
            Rule::Citation => "citation",
            Rule::Bibliography => "bibliography",
            Rule::Year => "year",
            Rule::HeadingNumber => "heading-number",
            Rule::ListMarker => "list-marker",
            Rule::PageNumber => "page-number",
            Rule::ConfidenceLevel => "confidence-level",
            Rule::SignificanceLevel => "significance-level",
            Rule::Bound => "bound",
            Rule::DegreesOfFreedom => "degrees-of-freedom",
            Rule::SmallWord => "small-word",
        }
    }
}

/// A pattern of this file. Each is compiled by the tests.
macro_rules! pattern {
    ($name:ident, $text:expr) => {
        static $name: LazyLock<Regex> =
            LazyLock::new(|| Regex::new($text).expect("a pattern of this file is sound"));
    };
}

const MONTHS: &str = "jan(uary)?|feb(ruary)?|mar(ch)?|apr(il)?|may|june?|july?|aug(ust)?|sep(t(ember)?)?|oct(ober)?|nov(ember)?|dec(ember)?";

pattern!(
    CROSS,
    r"(?i)(^|[^\p{L}])(sections?|sec\.|secs\.|§{1,2}|figures?|figs?\.?|tables?|tabs?\.|equations?|eqs?\.?|eqn\.|appendix|app\.|theorems?|thm\.|lemmas?|propositions?|prop\.|definitions?|def\.|corollary|algorithms?|alg\.|chapters?|chap\.|pages?|pp?\.|footnote|supplement|panel|volume|vol\.|issue|no\.|experiment|study|listing)[\s\x{a0}\x{2009}]*\(?$"
);
pattern!(LIST, r"(?i)^[\s\x{a0})]*(,|and|&|–|-|to|or|, and)[\s\x{a0}(]*$");
pattern!(
    SOFTWARE,
    r"(?i)(^|[^\p{L}])(version|release|v\.|python|pytorch|tensorflow|jax|cuda|cudnn|numpy|scipy|pandas|ubuntu|debian|fedora|macos|windows|linux|kernel|gcc|clang|rust|julia|matlab|java|go|scikit-learn|sklearn|transformers|docker|llama|gpt|claude|gemini|qwen|phi)[\s\x{a0}-]*$"
);
static YEAR_BEFORE: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(&format!(
        r"(?i)((^|[^\p{{L}}])(in|since|of|by|from|until|during|before|after|early|late|year|years|and|to|al\.?|©|copyright|({MONTHS})\.?)[\s\x{{a0}},]*|[\[(,;–’'][\s\x{{a0}}]*)$"
    ))
    .expect("a pattern of this file is sound")
});
static MONTH_BEFORE: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(&format!(r"(?i)(^|[^\p{{L}}])({MONTHS})\.?[\s\x{{a0}}]+$"))
        .expect("a pattern of this file is sound")
});
static MONTH_AFTER: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(&format!(r"(?i)^[\s\x{{a0}}]+({MONTHS})([^\p{{L}}]|$)"))
        .expect("a pattern of this file is sound")
});
pattern!(
    COUNTED,
    r"(?i)^[\s\x{a0}-]*(\p{L}+[\s\x{a0}-]+)?(seeds?|runs?|replicates?|repeats?|repetitions|trials?|samples?|examples?|points?|subjects?|participants?|cells?|models?|layers?|epochs?|steps?|iterations|datasets?|tasks?|units?|pairs?|folds?|workers?|conditions?|values?|images?|tokens?|documents?|words?|parameters|hours?|minutes?|seconds?|days?|weeks?|percent|clusters?|groups?|classes|features|heads|neurons?|draws?|permutations?|probes?|widths?|doses?)([^\p{L}]|$)"
);
pattern!(OUT_OF, r"(?i)^[\s\x{a0}]*(out of|of the|of)[\s\x{a0}]*$");
pattern!(
    LEVEL_AFTER,
    r"(?i)^[\s\x{a0}-]*(simultaneous |bootstrap |two-sided |pointwise |exact )?(CI|CIs|confidence|credible|credibility|prediction|HDI|quantile|interval|bootstrap)([^\p{L}]|$)"
);
pattern!(ALPHA, r"(?i)(α|alpha|significance level( of)?|level of|at level|at the)[\s\x{a0}]*=?[\s\x{a0}]*$");
pattern!(
    COMPARED,
    r"([<>≤≥≲≳]|\\le|\\ge|(?i:at least|at most|more than|less than|fewer than|up to|below|above))[\s\x{a0}=]*$"
);
pattern!(BRACKETS, r"^\[[\d\s\x{a0},;–-]+\]");
pattern!(INTERVAL_BEFORE, r"(?i)(in|∈|range|interval|CI|=|between)[\s\x{a0}]*$");
pattern!(NUMBERED, r"^[\s\x{a0}]*(\d+(\.\d+)*|[A-Z]\.\d+(\.\d+)*)\.?[\s\x{a0}]+\p{Lu}");
pattern!(ITEM, r"^[\s\x{a0}]*[(\[]?\d{1,2}[.)\]][\s\x{a0}]");
pattern!(ALONE, r"^[\s\x{a0}\x{c}]*\d{1,4}[\s\x{a0}\x{c}]*$");
pattern!(
    REFERENCES,
    r"(?im)^[\s\x{a0}\x{c}#=*]*(\d+\.?[\s\x{a0}]+)?(references|bibliography|literature cited)[\s\x{a0}*:]*$"
);

/// So many characters beside a number are looked at.
const NEAR: usize = 60;

/// Sets aside what is no result. `plain` is a text without marked headings and lists, whose lines say what they are.
pub fn apply(flat: &Flat, plain: bool, numbers: &mut [Number]) {
    let zones = flat.zones();
    let references = references(flat, plain);
    let mut last: Option<(usize, Rule)> = None;
    for index in 0..numbers.len() {
        let number = &numbers[index];
        if let Some(token) = number.aside {
            // A name in a citation is part of the citation.
            let context = Context { text: &flat.text, range: number.range.clone() };
            numbers[index].aside = by_zone(&zones, &context, number).or(Some(token));
            continue;
        }
        let context = Context { text: &flat.text, range: number.range.clone() };
        let carried = last.filter(|(_, rule)| carries(*rule)).and_then(|(before, rule)| {
            let between = flat.text.get(numbers[before].range.end..number.range.start)?;
            LIST.is_match(between).then_some(rule)
        });
        let bound = flat.uses.iter().any(|used| overlaps(&used.range, &number.range));
        let rule = match bound {
            // What is bound is a result by its author's word.
            true => None,
            false => by_zone(&zones, &context, number)
                .or_else(|| references.filter(|at| number.range.start > *at).map(|_| Rule::Bibliography))
                .or_else(|| by_line(&context, plain, number))
                .or(carried)
                .or_else(|| by_words(&context, number)),
        };
        if let Some(rule) = rule {
            last = Some((index, rule));
        }
        numbers[index].aside = rule;
    }
    // Both ends of a range or interval are of one kind, unless the rule is about the token alone.
    for k in 1..numbers.len() {
        if numbers[k].role == Role::High && numbers[k].aside.is_none() {
            numbers[k].aside = numbers[k - 1].aside.filter(|rule| carries(*rule));
        }
    }
}

fn overlaps(a: &Range<usize>, b: &Range<usize>) -> bool {
    a.start < b.end && b.start < a.end
}

/// Rules that go on through `2, 3 and 4`.
fn carries(rule: Rule) -> bool {
    matches!(rule, Rule::CrossReference | Rule::Citation | Rule::Year)
}

struct Context<'a> {
    text: &'a str,
    range: Range<usize>,
}

impl<'a> Context<'a> {
    fn before(&self) -> &'a str {
        let all = &self.text[..self.range.start];
        let from = all.char_indices().rev().nth(NEAR - 1).map_or(0, |(at, _)| at);
        let near = &all[from..];
        near.rfind("\n\n").map_or(near, |at| &near[at..])
    }

    fn after(&self) -> &'a str {
        let all = &self.text[self.range.end..];
        all.char_indices().nth(NEAR).map_or(all, |(at, _)| &all[..at])
    }

    fn line(&self) -> (&'a str, usize) {
        let start = self.text[..self.range.start].rfind('\n').map_or(0, |at| at + 1);
        let rest = &self.text[start..];
        (rest.find('\n').map_or(rest, |end| &rest[..end]), start)
    }
}

fn by_zone(zones: &[(Zone, Range<usize>)], context: &Context<'_>, number: &Number) -> Option<Rule> {
    let at = number.range.start;
    let inside =
        zones.iter().take_while(|(_, range)| range.start <= at).filter(|(_, range)| range.contains(&at));
    inside
        .filter_map(|(zone, range)| match zone {
            Zone::Code => Some(Rule::Code),
            Zone::Reference => Some(Rule::Reference),
            Zone::Bibliography => Some(Rule::Bibliography),
            Zone::Script => Some(Rule::Script),
            Zone::Marker => Some(Rule::ListMarker),
            Zone::Heading => {
                let first = context.text[range.start..at].trim().is_empty();
                first.then_some(Rule::HeadingNumber)
            }
            Zone::Math | Zone::Table | Zone::Caption => None,
        })
        .next()
}

/// Where the list of references begins, in texts whose headings are lines.
fn references(flat: &Flat, plain: bool) -> Option<usize> {
    let last = REFERENCES.find_iter(&flat.text).last()?;
    let word = last.start()
        + (last.as_str().len() - last.as_str().trim_start_matches(|c: char| !c.is_alphabetic()).len());
    (plain || flat.is_in(Zone::Heading, word)).then(|| last.end())
}

fn by_line(context: &Context<'_>, plain: bool, number: &Number) -> Option<Rule> {
    if !plain {
        return None;
    }
    let (line, start) = context.line();
    let leads = context.text[start..context.range.start]
        .trim_matches(|c: char| c.is_whitespace() || c == '[' || c == '(')
        .is_empty();
    if !leads || number.word {
        return None;
    }
    if ALONE.is_match(line) {
        let isolated = |text: &str| {
            text.trim_matches(' ').is_empty() || text.ends_with("\n\n") || text.ends_with("\n\u{c}")
        };
        let before = &context.text[..start];
        return isolated(before).then_some(Rule::PageNumber);
    }
    if ITEM.is_match(line) {
        return Some(Rule::ListMarker);
    }
    // A table's row begins with a number as well, but no capital follows it alone on a short line.
    let heading = NUMBERED.is_match(line) && line.len() < 80 && !line.trim_end().ends_with(['.', ',', ';']);
    let more_numbers =
        line[(context.range.end - start).min(line.len())..].contains(|c: char| c.is_ascii_digit());
    (heading && !more_numbers).then_some(Rule::HeadingNumber)
}

fn by_words(context: &Context<'_>, number: &Number) -> Option<Rule> {
    let (before, after) = (context.before(), context.after());
    if number.word {
        return small_word(before, after, number);
    }
    let whole = number.printed.place == 0 && !number.printed.percent && !number.printed.factor;
    if CROSS.is_match(before) && !number.printed.percent {
        return Some(Rule::CrossReference);
    }
    if whole && bracketed(context) {
        return Some(Rule::Citation);
    }
    let token = &context.text[context.range.clone()];
    let four = token.len() == 4 && token.bytes().all(|b| b.is_ascii_digit());
    let year = four && (1900.0..2100.0).contains(&number.printed.value);
    if year && YEAR_BEFORE.is_match(before) && !COUNTED.is_match(after) {
        return Some(Rule::Year);
    }
    if whole && number.printed.value <= 31.0 && (MONTH_BEFORE.is_match(before) || MONTH_AFTER.is_match(after))
    {
        return Some(Rule::Date);
    }
    if SOFTWARE.is_match(before)
        && !number.printed.percent
        && number.role == Role::Single
        && !COUNTED.is_match(after)
    {
        return Some(Rule::Version);
    }
    if LEVEL_AFTER.is_match(after) && number.printed.percent {
        return Some(Rule::ConfidenceLevel);
    }
    let level = number.printed.value <= 0.2 || (number.printed.percent && number.printed.value <= 20.0);
    if level
        && number.printed.value > 0.0
        && ALPHA.is_match(before)
        && (before.trim_end().ends_with('=')
            || after.trim_start().starts_with("level")
            || !before.trim_end().ends_with("the"))
    {
        return Some(Rule::SignificanceLevel);
    }
    COMPARED.is_match(before).then_some(Rule::Bound)
}

fn small_word(before: &str, after: &str, number: &Number) -> Option<Rule> {
    let printed = &number.printed;
    let counts = printed.factor
        || printed.percent
        || printed.value > 12.0
        || COUNTED.is_match(after)
        || OUT_OF.is_match(before)
        || after.trim_start().starts_with("out of");
    (!counts).then_some(Rule::SmallWord)
}

/// Whether the number stands in brackets with whole numbers alone, which is how citations look.
fn bracketed(context: &Context<'_>) -> bool {
    let before = context.before();
    let Some(open) = before.rfind('[') else { return false };
    let start = context.range.start - (before.len() - open);
    let inside =
        BRACKETS.find(&context.text[start..]).is_some_and(|found| start + found.end() >= context.range.end);
    inside && !INTERVAL_BEFORE.is_match(&before[..open])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pattern_compiles_and_every_rule_has_a_name_of_its_own() {
        let patterns = [
            &CROSS,
            &LIST,
            &SOFTWARE,
            &YEAR_BEFORE,
            &MONTH_BEFORE,
            &MONTH_AFTER,
            &COUNTED,
            &OUT_OF,
            &LEVEL_AFTER,
            &ALPHA,
            &COMPARED,
            &BRACKETS,
            &INTERVAL_BEFORE,
            &NUMBERED,
            &ITEM,
            &ALONE,
            &REFERENCES,
        ];
        assert!(patterns.iter().all(|pattern| !pattern.as_str().is_empty()));
        let names: std::collections::BTreeSet<&str> = Rule::ALL.iter().map(|rule| rule.word()).collect();
        assert_eq!(names.len(), Rule::ALL.len());
        for rule in Rule::ALL {
            assert_eq!(serde_json::to_value(rule).expect("a word"), rule.word());
        }
    }
}
