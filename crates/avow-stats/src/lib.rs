//! Estimators, intervals, tests, corrections and power: numbers in, numbers out.
//!
//! A rule turns one number per unit ([`Units`]) into a [`Fit`], an estimate together with the test of every bound. A
//! [`Claim`] questions the fit and gives an [`Inference`]: two one-sided p-values, the decision p-value q, and
//! intervals at any level. A family corrects q ([`family::adjust`]) and [`decide()`] gives the verdict.
//!
//! ```
//! use avow_stats::{Claim, Correction, Decision, Level, Region, Units, decide, family};
//!
//! let with = [0.912, 0.905, 0.921, 0.899, 0.917, 0.908, 0.915, 0.910];
//! let without = [0.901, 0.903, 0.909, 0.897, 0.905, 0.909, 0.902, 0.904];
//! let alpha: Level = "0.05".parse()?;
//!
//! let fit = Units::paired(&with, &without)?.t()?;
//! let test = Claim::new(Region::above(0.0)).with_null(0.0).test(fit);
//! let family = family::adjust(&[test.q, 0.3], Correction::Holm);
//!
//! assert_eq!(decide(&test.evidence(), &family[0], alpha), Decision::Supported);
//! let shown = test.interval(test.claim.interval_error(alpha, 2));
//! assert!(shown.above(0.0) && shown.contains(test.fit.estimate()));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! One decision shapes the crate: test and interval are one inversion, so they cannot disagree. Exact counts
//! use integer arithmetic ([`Level`]), equal numbers are equal under one margin ([`ties`]), sums run in planned
//! order ([`sum`]), and randomness is a function of a key and a draw number ([`rng`]).
//!
//! Invariants of absence: no input or output, clock, environment, thread or global state; no other crate of
//! the workspace; nothing looks at data to choose a method; nothing formats a sentence for a person.

pub mod agreement;
pub mod bootstrap;
pub mod calibration;
pub mod claim;
pub mod clusters;
pub mod combine;
pub mod correlation;
pub mod curve;
pub mod decide;
pub mod difference;
pub mod exact;
pub mod exchange;
pub mod family;
pub mod fit;
pub mod graph;
pub mod interval;
pub mod level;
pub mod max_statistic;
pub mod method;
pub mod noise;
pub mod null;
pub mod power;
pub mod power_law;
pub mod proportion;
pub mod ranks;
pub mod ratio;
pub mod reach;
pub mod reason;
pub mod reference;
pub mod region;
pub mod reported;
pub mod rng;
pub mod sequential;
pub mod slope;
pub mod special;
pub mod sum;
pub mod survival;
pub mod threshold;
pub mod ties;
pub mod trend;
pub mod units;
pub mod worst;

pub use claim::{Claim, Evidence, Inference, MonteCarlo, Side};
pub use combine::{Combination, Part};
pub use decide::{Decision, Qualifier, by_position, decide, qualify};
pub use family::{Adjusted, Correction};
pub use fit::Fit;
pub use interval::Interval;
pub use level::{Level, LevelError};
pub use method::{Design, Method, Sample};
pub use reason::{Inconclusive, Void};
pub use reference::Reference;
pub use region::{Pair, Region, RegionError};
pub use units::Units;
