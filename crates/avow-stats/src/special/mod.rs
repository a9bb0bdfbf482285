//! Special functions: normal, Student's t, χ², binomial and beta probabilities, their inverses, and the
//! noncentral t.
//!
//! Accuracy is part of the contract: relative 1e-12 in the body and 1e-9 in tails down to 1e-300, checked
//! against fifty-digit values in `tests/special.rs`. A p-value of 1e-40 is printed, corrected and compared, so
//! a tail must not be `1 - cdf`. Every function therefore computes the *smaller* of the two complementary
//! probabilities directly, and callers name the tail they want.
//!
//! `statrs` is used where it reaches that, which is the first guess of the normal quantile: its error function
//! is good to ten digits, and its incomplete beta and gamma lose digits for large shapes (they subtract large
//! log-gammas). Those are written here on Loader's saddle-point form of the prefactor, in which the large terms
//! cancel on paper rather than in floating point.
//!
//! Absent on purpose: everything no rule asks for (F, hypergeometric, noncentral χ²).

pub(crate) mod beta;
pub(crate) mod gamma;
mod root;

pub mod binomial;
pub mod chi_square;
pub mod noncentral;
pub mod normal;
pub mod student;

pub use beta::{Tail, beta_quantile, incomplete_beta};
