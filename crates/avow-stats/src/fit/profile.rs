//! A parameter of a least-squares model by the profile of the sum of squares.
//!
//! F = (S(θ) − S_min)(k − p)/S_min has one and k − p degrees of freedom, so its signed root is t: test and interval
//! are one inversion. The interval is the set around the optimum where S stays under S_min(1 + F/(k − p)).

use super::Model;
use crate::level::Level;
use crate::special::student;
use std::fmt;

pub(crate) struct Profile {
    /// The optimum θ̂.
    pub optimum: f64,
    /// S(θ̂) > 0.
    pub least: f64,
    /// k − p.
    pub df: f64,
    /// Where θ may lie.
    pub range: (f64, f64),
    /// S(θ), the other parameters at their best.
    pub squares: Box<dyn Fn(f64) -> f64 + Send + Sync>,
}

impl fmt::Debug for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Profile")
            .field("optimum", &self.optimum)
            .field("df", &self.df)
            .finish_non_exhaustive()
    }
}

impl Profile {
    /// √F at θ, with the sign of θ̂ − θ.
    fn t(&self, theta: f64) -> f64 {
        let f = ((self.squares)(theta) - self.least).max(0.0) * self.df / self.least;
        (self.optimum - theta).signum() * f.sqrt()
    }

    /// The point towards `limit` where |t| reaches `critical`; infinite where it never does.
    fn end(&self, limit: f64, critical: f64) -> f64 {
        let beyond = |theta: f64| self.t(theta).abs() > critical;
        let (mut inside, mut step) = (self.optimum, 1e-3 * (limit - self.optimum));
        let mut outside = inside + step;
        // Steps grow, so a profile that bends back far away does not hide a nearer end.
        while !beyond(outside) {
            inside = outside;
            step *= 1.5;
            outside = inside + step;
            if (limit - outside).signum() != step.signum() {
                return if step < 0.0 { f64::NEG_INFINITY } else { f64::INFINITY };
            }
        }
        for _ in 0..200 {
            let middle = 0.5 * (inside + outside);
            if middle == inside || middle == outside {
                break;
            }
            if beyond(middle) { outside = middle } else { inside = middle }
        }
        inside
    }
}

impl Model for Profile {
    fn p_at_most(&self, bound: f64, _: f64) -> f64 {
        student::above(self.t(bound.max(self.range.0)), self.df)
    }

    fn p_at_least(&self, bound: f64, _: f64) -> f64 {
        student::above(-self.t(bound.min(self.range.1)), self.df)
    }

    fn interval(&self, error: Level) -> (f64, f64) {
        let critical = student::upper_quantile(0.5 * error.to_f64(), self.df);
        (self.end(self.range.0, critical), self.end(self.range.1, critical))
    }
}
