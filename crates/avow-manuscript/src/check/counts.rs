//! Percentages from counts, and percentages and means that no counts can give.

use std::sync::LazyLock;

use regex::Regex;

use super::interval::count;
use super::{Check, Code, NUMBER, Outcome, overlap, paragraph, parse, spread};

static OF: LazyLock<Regex> = LazyLock::new(|| {
    let n = NUMBER;
    Regex::new(&format!(
        r"(?:^|[^\d.,/])(?P<k>\d[\d,]*)\s*(?:out of|of|/)\s*(?:the\s+|all\s+)?(?P<n>\d[\d,]*)\s*(?:\p{{L}}+\s*){{0,3}}[(,]\s*(?P<p>{n})\s*%"
    ))
    .expect("a pattern of this file is sound")
});
static BEHIND: LazyLock<Regex> = LazyLock::new(|| {
    let n = NUMBER;
    Regex::new(&format!(
        r"(?P<p>{n})\s*%\s*\(\s*(?:[nN]\s*=\s*)?(?P<k>\d[\d,]*)\s*(?:/|out of|of)\s*(?:the\s+)?(?P<n>\d[\d,]*)\s*(?:\p{{L}}+\s*){{0,3}}\)"
    ))
    .expect("a pattern of this file is sound")
});
static SHARE: LazyLock<Regex> = LazyLock::new(|| {
    let n = NUMBER;
    Regex::new(&format!(
        r"(?:^|[^\d.])(?P<p>{n})\s*%\s+of\s+(?:the\s+|all\s+|our\s+|these\s+)?(?P<n>\d[\d,]*)\s+\p{{L}}"
    ))
    .expect("a pattern of this file is sound")
});
static MEAN: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(&format!(r"(?:^|[^\p{{L}}])M\s*=\s*(?P<m>{NUMBER})")).expect("a pattern of this file is sound")
});
static WHOLE: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(?i)likert|integer|whole[- ]number|whole numbers").expect("a pattern of this file is sound")
});

fn whole(text: &str) -> Option<f64> {
    text.replace(',', "").parse().ok()
}

/// `14 of 20 runs (70 %)` and `70 % (14/20)`.
pub(super) fn percentages(text: &str, found: &mut Vec<Check>) {
    for captures in OF.captures_iter(text).chain(BEHIND.captures_iter(text)) {
        let (Some(k), Some(n), Some(p)) = (captures.name("k"), captures.name("n"), captures.name("p")) else {
            continue;
        };
        let (Some(count), Some(total), Some(printed)) =
            (whole(k.as_str()), whole(n.as_str()), parse(p.as_str()))
        else {
            continue;
        };
        if total == 0.0 || count > total {
            continue;
        }
        let exact = 100.0 * count / total;
        let right = overlap((exact, exact), spread(&printed));
        found.push(Check {
            code: Code::Percentage,
            range: k.start().min(p.start())..k.end().max(n.end()).max(p.end()),
            outcome: if right { Outcome::Consistent } else { Outcome::Inconsistent },
            stated: format!("{} %", p.as_str()),
            recomputed: Some((exact, exact)),
        });
    }
}

/// `33 % of 10 runs`: no whole number of ten is a third.
pub(super) fn impossible(text: &str, found: &mut Vec<Check>) {
    for captures in SHARE.captures_iter(text) {
        let (Some(p), Some(n)) = (captures.name("p"), captures.name("n")) else { continue };
        let (Some(printed), Some(total)) = (parse(p.as_str()), whole(n.as_str())) else { continue };
        // Beyond so many every percentage is the share of some whole number.
        let fine = total * 2.0 * printed.half() / 100.0 >= 1.0;
        if total < 1.0 || printed.value > 100.0 {
            continue;
        }
        let nearest = (printed.value / 100.0 * total).round();
        let exact = 100.0 * nearest / total;
        let right = fine || overlap((exact, exact), spread(&printed));
        found.push(Check {
            code: Code::ImpossiblePercentage,
            range: p.start()..n.end(),
            outcome: if right { Outcome::Consistent } else { Outcome::Inconsistent },
            stated: format!("{} % of {}", p.as_str(), n.as_str()),
            recomputed: Some((exact, exact)),
        });
    }
}

/// `M = 3.47, n = 20` where the paragraph says that the answers are whole numbers (GRIM).
pub(super) fn means(text: &str, found: &mut Vec<Check>) {
    for captures in MEAN.captures_iter(text) {
        let Some(m) = captures.name("m") else { continue };
        let (start, near) = paragraph(text, m.start());
        let (Some(printed), Some(n)) = (parse(m.as_str()), count(near, m.start() - start)) else { continue };
        if !WHOLE.is_match(near) || n < 1.0 || n * 2.0 * printed.half() >= 1.0 {
            continue;
        }
        let nearest = (printed.value * n).round() / n;
        let right = overlap((nearest, nearest), spread(&printed));
        found.push(Check {
            code: Code::ImpossibleMean,
            range: m.range(),
            outcome: if right { Outcome::Consistent } else { Outcome::Inconsistent },
            stated: format!("M = {}", m.as_str()),
            recomputed: Some((nearest, nearest)),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts() {
        let of = |text: &str| {
            let mut found = Vec::new();
            percentages(text, &mut found);
            impossible(text, &mut found);
            means(text, &mut found);
            found.iter().map(|check| (check.code.word(), !check.is_wrong())).collect::<Vec<_>>()
        };
        assert_eq!(of("14 of 20 runs (70%) passed"), [("percentage", true)]);
        assert_eq!(of("14 out of 20 (75 %)"), [("percentage", false)]);
        assert_eq!(of("66.7% (2/3)"), [("percentage", true)]);
        assert_eq!(of("1,000 of 3,000 (33.3 %)"), [("percentage", true)]);
        assert_eq!(of("33% of 10 runs"), [("impossible-percentage", false)]);
        assert_eq!(of("33% of 12 runs"), [("impossible-percentage", true)]);
        assert_eq!(of("33% of 1,200 runs"), [("impossible-percentage", true)]);
        assert_eq!(of("on a Likert scale (M = 3.47, n = 20)"), [("impossible-mean", false)]);
        assert_eq!(of("on a Likert scale (M = 3.45, n = 20)"), [("impossible-mean", true)]);
        assert_eq!(of("seconds (M = 3.47, n = 20)"), []);
    }
}
