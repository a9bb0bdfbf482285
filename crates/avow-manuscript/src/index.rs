//! Stored values by size, so that the ones which a printed number can stand for are found without going through all.

use serde::Serialize;

/// What a stored value is; those that are named by their author's claims come first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// A number of a verdict: an estimate, an end of an interval, p, n.
    Claim,
    /// A number of the plan: a value of an axis, a parameter, how many values an axis has.
    Design,
    /// A mean, median or other summary over replicates.
    Summary,
    /// One measurement.
    Measurement,
}

impl Kind {
    /// All kinds, those that are looked through first before the others.
    pub const ALL: [Kind; 4] = [Kind::Claim, Kind::Design, Kind::Summary, Kind::Measurement];

    /// The code of the kind.
    pub fn word(self) -> &'static str {
        match self {
            Kind::Claim => "claim",
            Kind::Design => "design",
            Kind::Summary => "summary",
            Kind::Measurement => "measurement",
        }
    }
}

/// Values of one kind, sorted.
#[derive(Clone, Debug, Default)]
struct Sorted(Vec<(f64, u32)>);

/// Stored values of all kinds.
#[derive(Clone, Debug, Default)]
pub struct Values([Sorted; 4]);

impl Sorted {
    fn new(values: &[f64]) -> Sorted {
        let finite = values.iter().enumerate().filter(|(_, value)| value.is_finite());
        // A store has fewer than four milliards of values; what is beyond cannot be cited and is left out.
        let mut sorted: Vec<(f64, u32)> =
            finite.filter_map(|(id, value)| Some((*value, u32::try_from(id).ok()?))).collect();
        sorted.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        Sorted(sorted)
    }

    fn range(&self, low: f64, high: f64) -> std::ops::Range<usize> {
        let from = self.0.partition_point(|(value, _)| *value < low);
        let to = self.0.partition_point(|(value, _)| *value <= high);
        from..to.max(from)
    }
}

impl Values {
    /// The values of each kind; a value is named by its position.
    pub fn new<'v>(of: impl Fn(Kind) -> &'v [f64]) -> Values {
        Values(Kind::ALL.map(|kind| Sorted::new(of(kind))))
    }

    fn of(&self, kind: Kind) -> &Sorted {
        &self.0[kind as usize]
    }

    /// How many values of a kind lie between two numbers, both included.
    pub fn count(&self, kind: Kind, low: f64, high: f64) -> usize {
        self.of(kind).range(low, high).len()
    }

    /// Values of a kind between two numbers with their positions, at most so many: the nearest to `centre`, nearest
    /// first.
    pub fn nearest(&self, kind: Kind, low: f64, high: f64, centre: f64, most: usize) -> Vec<(f64, usize)> {
        let sorted = &self.of(kind).0;
        let range = self.of(kind).range(low, high);
        let middle = sorted.partition_point(|(value, _)| *value < centre).clamp(range.start, range.end);
        let (mut left, mut right) = (middle, middle);
        let mut found = Vec::new();
        while found.len() < most && (left > range.start || right < range.end) {
            let below = (left > range.start).then(|| centre - sorted[left - 1].0);
            let above = (right < range.end).then(|| sorted[right].0 - centre);
            let take_above = match (below, above) {
                (Some(below), Some(above)) => above <= below,
                (None, above) => above.is_some(),
                (Some(_), None) => false,
            };
            let (value, id) = if take_above {
                right += 1;
                sorted[right - 1]
            } else {
                left -= 1;
                sorted[left]
            };
            found.push((value, id as usize));
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_come_first_and_nothing_outside() {
        let stored = [0.5, f64::NAN, 0.1, 0.3, 0.2, 0.4, f64::INFINITY];
        let values = Values::new(|kind| if kind == Kind::Measurement { &stored } else { &[] });
        let found = values.nearest(Kind::Measurement, 0.15, 0.45, 0.31, 10);
        assert_eq!(found, [(0.3, 3), (0.4, 5), (0.2, 4)]);
        assert_eq!(values.nearest(Kind::Measurement, 0.0, 1.0, 0.31, 2).len(), 2);
        assert_eq!(values.count(Kind::Measurement, 0.1, 0.3), 3);
        assert_eq!(values.count(Kind::Claim, 0.0, 1.0), 0);
    }
}
