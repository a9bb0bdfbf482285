//! What the tests of this crate share: the reference file, close comparison, and the standard data.

#![expect(dead_code, reason = "each test target uses a part")]

use avow_stats::rng::{Draws, Key};
use avow_stats::{Fit, Level, Units};
use serde_json::Value;

/// The standard data of the definition: first arm.
pub const X: [f64; 8] = [0.912, 0.905, 0.921, 0.899, 0.917, 0.908, 0.915, 0.910];
/// The standard data of the definition: second arm.
pub const Y: [f64; 8] = [0.901, 0.903, 0.909, 0.897, 0.905, 0.909, 0.902, 0.904];

/// `tests/data/reference.json`, written by `reference.py` beside it.
pub struct Reference(Value);

impl Reference {
    pub fn load() -> Reference {
        Reference(serde_json::from_str(include_str!("../data/reference.json")).unwrap())
    }

    /// The numbers of one entry.
    pub fn get(&self, name: &str) -> Vec<f64> {
        numbers(self.0["values"].get(name).unwrap_or_else(|| panic!("no entry `{name}`")))
    }

    /// Asserts that `have` is the entry, to 1e-9 relative.
    pub fn check(&self, name: &str, have: &[f64]) {
        let want = self.get(name);
        assert_eq!(have.len(), want.len(), "{name}");
        for (have, want) in have.iter().zip(want) {
            close(*have, want, 1e-9, name);
        }
    }

    /// The rows of a special function: arguments, then value.
    pub fn rows(&self, name: &str) -> Vec<Vec<f64>> {
        let rows = self.0["special"][name].as_array().unwrap_or_else(|| panic!("no table `{name}`"));
        rows.iter().map(numbers).collect()
    }
}

fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(|v| v.as_f64().unwrap()).collect()
}

/// Asserts |have − want| ≤ relative·|want| (1e-15 absolute for a zero).
#[track_caller]
pub fn close(have: f64, want: f64, relative: f64, name: &str) {
    let allowed = relative * want.abs() + if want == 0.0 { 1e-15 } else { 0.0 };
    assert!((have - want).abs() <= allowed, "{name}: have {have:e}, want {want:e}");
}

pub fn level(text: &str) -> Level {
    text.parse().unwrap()
}

pub fn alpha() -> Level {
    level("0.05")
}

/// Draws for tests: a fixed key.
pub fn draws(count: u32) -> Draws {
    Draws { key: Key([42; 32]), count }
}

/// The paired differences of the standard data.
pub fn d() -> Units {
    Units::paired(&X, &Y).unwrap()
}

/// The ends of the interval at 1 − `error`.
pub fn ends(fit: &Fit, error: Level) -> [f64; 2] {
    let interval = fit.interval(error);
    [interval.low, interval.high]
}

/// Asserts that `hits` of `repetitions` agree with `percent`, itself counted over `tabulated` repetitions: within a 99.9 %
/// two-sample binomial band, plus half a unit of the table's last digit.
#[track_caller]
pub fn agrees(hits: u32, repetitions: u32, percent: f64, tabulated: u32, what: &str) {
    let (ours, theirs) = (f64::from(repetitions), f64::from(tabulated));
    let (rate, table) = (f64::from(hits) / ours, percent / 100.0);
    // One hit more than observed keeps the band open where both rates are near 0.
    let shared = (rate * ours + table * theirs + 1.0) / (ours + theirs);
    let band = 3.290_526_731 * (shared * (1.0 - shared) * (1.0 / ours + 1.0 / theirs)).sqrt();
    assert!((rate - table).abs() <= band + 0.0005, "{what}: {rate} against {table} ± {band}");
}
