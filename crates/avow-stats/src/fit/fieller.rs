//! The ratio of two means of paired values (Fieller 1954): t of x̄ − ρȳ.

use super::Model;
use crate::level::Level;
use crate::special::student;

#[derive(Clone, Debug)]
pub(crate) struct Fieller {
    pub first: f64,
    pub second: f64,
    /// Variances of the means and their covariance.
    pub first_variance: f64,
    pub second_variance: f64,
    pub covariance: f64,
    pub df: f64,
}

impl Fieller {
    /// t of x̄ − ρȳ, with the sign of ȳ taken out so that larger means a larger ratio.
    fn t(&self, ratio: f64) -> f64 {
        let variance =
            self.first_variance - 2.0 * ratio * self.covariance + ratio * ratio * self.second_variance;
        (self.first - ratio * self.second) * self.second.signum() / variance.max(0.0).sqrt()
    }
}

impl Model for Fieller {
    fn p_at_most(&self, bound: f64, _: f64) -> f64 {
        student::above(self.t(bound), self.df)
    }

    fn p_at_least(&self, bound: f64, _: f64) -> f64 {
        student::above(-self.t(bound), self.df)
    }

    /// The roots of (ȳ² − t²v_yy)ρ² − 2(x̄ȳ − t²v_xy)ρ + (x̄² − t²v_xx); unbounded where ȳ is not away from 0.
    fn interval(&self, error: Level) -> (f64, f64) {
        let t = student::upper_quantile(0.5 * error.to_f64(), self.df);
        let square = t * t;
        let lead = self.second * self.second - square * self.second_variance;
        let middle = self.first * self.second - square * self.covariance;
        let last = self.first * self.first - square * self.first_variance;
        let inside = middle * middle - lead * last;
        if lead <= 0.0 || inside < 0.0 {
            return (f64::NEG_INFINITY, f64::INFINITY);
        }
        let root = inside.sqrt();
        ((middle - root) / lead, (middle + root) / lead)
    }
}
