//! Intervals: of a correlation from r and n, and any that should hold the estimate beside it.

use std::sync::LazyLock;

use avow_stats::special::normal;
use regex::Regex;

use super::{Check, Code, NUMBER, Outcome, overlap, paragraph, parse, spread};

static CORRELATION: LazyLock<Regex> = LazyLock::new(|| {
    let n = NUMBER;
    Regex::new(&format!(
        r"(?:^|[^\p{{L}}\d_])r\s*(?:\(\s*(?P<df>\d+)\s*\))?\s*=\s*(?P<r>{n})[^\n\[]{{0,60}}?(?P<level>\d+(?:\.\d+)?)\s*%\s*(?:CI|confidence interval)[\s:=,]*[\[(]\s*(?P<low>{n})\s*(?:,|;|–|to)\s*(?P<high>{n})\s*[\])]"
    ))
    .expect("a pattern of this file is sound")
});

static COUNT: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(?:^|[^\p{L}])[nN]\s*=\s*(\d[\d,]*)").expect("a pattern of this file is sound")
});

static ESTIMATE: LazyLock<Regex> = LazyLock::new(|| {
    let n = NUMBER;
    Regex::new(&format!(
        r"(?:=\s*|(?:is|was|of|by)\s+|^|\(|\|\s*)(?P<e>{n})\s*%?\s*[,;(]?\s*(?:\(?\s*\d+(?:\.\d+)?\s*%\s*(?:CI|confidence interval)[\s:=,]*)[\[(]?\s*(?P<low>{n})\s*%?\s*(?:,|;|–|to)\s*(?P<high>{n})\s*%?\s*[\])]"
    ))
    .expect("a pattern of this file is sound")
});

/// Intervals of correlations by Fisher's z: tanh(atanh r ± z / √(n − 3)).
pub(super) fn correlations(text: &str, found: &mut Vec<Check>) {
    for captures in CORRELATION.captures_iter(text) {
        let part = |name: &str| captures.name(name).and_then(|m| parse(m.as_str()));
        let (Some(r), Some(level), Some(low), Some(high)) =
            (part("r"), part("level"), part("low"), part("high"))
        else {
            continue;
        };
        let Some(whole) = captures.get(0) else { continue };
        let (start, near) = paragraph(text, whole.start());
        let df = captures.name("df").and_then(|m| m.as_str().parse::<f64>().ok());
        let n = df.map(|df| df + 2.0).or_else(|| count(near, whole.start() - start));
        let Some(n) = n.filter(|n| *n > 3.0) else { continue };
        let error = 1.0 - level.value / 100.0;
        if !(0.0..1.0).contains(&error) || error == 0.0 || r.value.abs() >= 1.0 {
            continue;
        }
        let half = normal::quantile(1.0 - error / 2.0) / (n - 3.0).sqrt();
        let end = |r: f64, by: f64| (r.clamp(-0.999_999_9, 0.999_999_9).atanh() + by).tanh();
        let (least, most) = spread(&r);
        let lower = (end(least, -half), end(most, -half));
        let upper = (end(least, half), end(most, half));
        let right = overlap(lower, spread(&low)) && overlap(upper, spread(&high));
        found.push(Check {
            code: Code::Interval,
            range: whole.range(),
            outcome: if right { Outcome::Consistent } else { Outcome::Inconsistent },
            stated: text
                [captures.name("low").map_or(0, |m| m.start())..captures.name("high").map_or(0, |m| m.end())]
                .to_owned(),
            recomputed: Some((end(r.value, -half), end(r.value, half))),
        });
    }
}

/// The `n = …` nearest to a place.
pub(super) fn count(near: &str, at: usize) -> Option<f64> {
    let all = COUNT.captures_iter(near).filter_map(|found| found.get(1));
    let nearest = all.min_by_key(|m| m.start().abs_diff(at))?;
    nearest.as_str().replace(',', "").parse().ok()
}

/// Intervals that do not hold the estimate beside them.
pub(super) fn estimates(text: &str, found: &mut Vec<Check>) {
    for captures in ESTIMATE.captures_iter(text) {
        let part = |name: &str| captures.name(name).and_then(|m| parse(m.as_str()));
        let (Some(estimate), Some(low), Some(high)) = (part("e"), part("low"), part("high")) else {
            continue;
        };
        let Some(first) = captures.name("e") else { continue };
        // `n = 40, 95 % CI […]`: the count is no estimate.
        if text[..first.start()].trim_end_matches(['=', ' ']).ends_with(['n', 'N'])
            && text[..first.start()].trim_end().ends_with('=')
        {
            continue;
        }
        let end = captures.get(0).map_or(first.end(), |m| m.end());
        let inside = (spread(&low).0, spread(&high).1);
        let right = low.value <= high.value && overlap(inside, spread(&estimate));
        found.push(Check {
            code: Code::Estimate,
            range: first.start()..end,
            outcome: if right { Outcome::Consistent } else { Outcome::Inconsistent },
            stated: first.as_str().to_owned(),
            recomputed: Some((low.value, high.value)),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn correlations_and_estimates() {
        let of = |text: &str| {
            let mut found = Vec::new();
            correlations(text, &mut found);
            estimates(text, &mut found);
            found.iter().map(|check| (check.code, check.outcome)).collect::<Vec<_>>()
        };
        // psych::r.con(.35, 40): 0.043 to 0.597.
        let right = (Code::Interval, Outcome::Consistent);
        assert!(of("r = .35, n = 40, 95% CI [.04, .60]").contains(&right));
        assert!(of("r(38) = .35, 95 % CI [.04, .60]").contains(&right));
        assert!(of("r = .35, n = 40, 95% CI [.14, .50]").contains(&(Code::Interval, Outcome::Inconsistent)));
        assert_eq!(
            of("r = .35, 95% CI [.04, .60]").iter().filter(|(code, _)| *code == Code::Interval).count(),
            0
        );
        assert!(of("a gain of 0.02 (95% CI [0.01, 0.04])").contains(&(Code::Estimate, Outcome::Consistent)));
        assert!(
            of("a gain of 0.06 (95% CI [0.01, 0.04])").contains(&(Code::Estimate, Outcome::Inconsistent))
        );
        assert!(
            of("a gain of 0.02 (95% CI [0.04, 0.01])").contains(&(Code::Estimate, Outcome::Inconsistent))
        );
    }
}
