//! Whether stated probabilities come true: calibration error, Brier and log score.
//!
//! The plain expected calibration error is biased up (0.089 for perfect forecasts at N = 100 and 15 bins), so a claim names
//! its estimator, bins and norm. The debiased square (Bröcker 2012; Kumar, Liang and Ma 2019) may be negative and stays so.
//! "Calibrated" is a claim against the null of labels drawn from the forecasts themselves. Absent: multi-class forms.

use crate::fit::{Fit, Unbounded};
use crate::method::{Method, Sample};
use crate::reason::Void;
use crate::rng::Draws;
use crate::sum;

/// The fewest forecasts of which a claim is judged.
pub const LEAST_FORECASTS: usize = 10;

/// Forecast probabilities of success with what happened.
#[derive(Clone, Debug)]
pub struct Forecasts {
    stated: Vec<f64>,
    happened: Vec<bool>,
}

/// One bin of forecasts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bin {
    /// Forecasts in it.
    pub count: usize,
    /// Their mean.
    pub stated: f64,
    /// The share that came true.
    pub came_true: f64,
}

impl Forecasts {
    /// Probabilities from 0 to 1, at least one, one outcome each.
    pub fn new(stated: &[f64], happened: &[bool]) -> Result<Forecasts, Void> {
        if stated.len() != happened.len() {
            return Err(Void::Unpaired);
        }
        crate::units::require(stated, 1)?;
        if stated.iter().any(|p| !(0.0..=1.0).contains(p)) {
            return Err(Void::Domain);
        }
        Ok(Forecasts { stated: stated.to_vec(), happened: happened.to_vec() })
    }

    /// Equal-width bins, empty ones included. The right edge of a bin belongs to the next, but 1 to the last.
    pub fn bins(&self, bins: usize) -> Vec<Bin> {
        self.binned(&self.happened, bins.max(1))
    }

    fn binned(&self, happened: &[bool], bins: usize) -> Vec<Bin> {
        let mut sums = vec![(0_usize, 0.0, 0_usize); bins];
        for (stated, happened) in self.stated.iter().zip(happened) {
            let place = ((stated * bins as f64) as usize).min(bins - 1);
            let (count, total, hits) = &mut sums[place];
            *count += 1;
            *total += stated;
            *hits += usize::from(*happened);
        }
        let bin = |(count, total, hits): (usize, f64, usize)| match count {
            0 => Bin { count, stated: 0.0, came_true: 0.0 },
            _ => Bin { count, stated: total / count as f64, came_true: hits as f64 / count as f64 },
        };
        sums.into_iter().map(bin).collect()
    }

    /// Σ(k/N)|ȳ − c̄|, the plain expected calibration error.
    pub fn expected_error(&self, bins: usize) -> f64 {
        self.weighted(&self.bins(bins), |bin| (bin.came_true - bin.stated).abs())
    }

    /// √Σ(k/N)(ȳ − c̄)².
    pub fn root_mean_square_error(&self, bins: usize) -> f64 {
        self.weighted(&self.bins(bins), |bin| (bin.came_true - bin.stated).powi(2)).sqrt()
    }

    /// Σ(k/N)[(ȳ − c̄)² − ȳ(1 − ȳ)/(k − 1)], the debiased square; bins of fewer than two add nothing.
    pub fn debiased_square(&self, bins: usize) -> f64 {
        self.weighted(&self.bins(bins), |bin| {
            if bin.count < 2 {
                return 0.0;
            }
            let noise = bin.came_true * (1.0 - bin.came_true) / (bin.count - 1) as f64;
            (bin.came_true - bin.stated).powi(2) - noise
        })
    }

    fn weighted(&self, bins: &[Bin], of: impl Fn(&Bin) -> f64) -> f64 {
        let all = self.stated.len() as f64;
        sum::sum(bins.iter().filter(|b| b.count > 0).map(|b| b.count as f64 / all * of(b)))
    }

    /// Mean (c − y)².
    pub fn brier(&self) -> f64 {
        let squares =
            self.stated.iter().zip(&self.happened).map(|(c, y)| (c - f64::from(u8::from(*y))).powi(2));
        sum::sum(squares) / self.stated.len() as f64
    }

    /// Mean −ln of the probability given to what happened; infinite where that was 0.
    pub fn log_score(&self) -> f64 {
        let parts =
            self.stated.iter().zip(&self.happened).map(|(c, y)| if *y { -c.ln() } else { -(-c).ln_1p() });
        sum::sum(parts) / self.stated.len() as f64
    }

    /// The debiased square as a fit that knows one question: whether it is above 0, by [`Forecasts::consistency`]. It has no
    /// interval, and no data speak against "at least 0".
    pub fn fit(&self, bins: usize, draws: Draws) -> Result<Fit, Void> {
        let count = self.stated.len();
        if count < LEAST_FORECASTS {
            return Err(Void::BelowMinimumN);
        }
        let (estimate, sample) = (self.debiased_square(bins), Sample::One(count));
        let fit = Fit::new(estimate, Method::Consistency, sample, 1e-12, Unbounded);
        Ok(fit.with_test_at(0.0, self.consistency(bins, draws), 1.0, Some(draws.count)))
    }

    /// The add-one p-value of the debiased square against labels drawn from the forecasts: small when the forecasts do
    /// not come true as stated.
    pub fn consistency(&self, bins: usize, draws: Draws) -> f64 {
        let observed = self.debiased_square(bins);
        let mut beaten = 1_u64;
        let mut copy = self.clone();
        for mut draw in draws.each() {
            for (label, stated) in copy.happened.iter_mut().zip(&self.stated) {
                *label = draw.uniform() < *stated;
            }
            beaten += u64::from(copy.debiased_square(bins) >= observed - 1e-12);
        }
        beaten as f64 / (f64::from(draws.count) + 1.0)
    }
}
