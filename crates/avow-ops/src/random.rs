//! Random draws that are the same on every machine, in every order and on any number of threads.
//!
//! A [`Source`] is a key: BLAKE3 over a domain text and a 31-bit seed. A domain names the operation and the
//! purpose ("synthetic/gaussian shared"), so one seed given to two operations gives unrelated numbers.
//! [`Source::draw`] opens an independent ChaCha20 stream for a draw's number, so draws do not depend on each
//! other's order or count. There is deliberately no global generator and no way to seed from the clock or the
//! system.

use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

use crate::normal::quantile;

/// Everything random in one operation with one purpose and one seed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    key: [u8; 32],
}

impl Source {
    /// The source of a domain and a seed.
    pub fn new(domain: &str, seed: u32) -> Source {
        let mut hasher = blake3::Hasher::new();
        hasher.update(b"avow-ops/random/1\0");
        hasher.update(domain.as_bytes());
        hasher.update(b"\0");
        hasher.update(&seed.to_le_bytes());
        Source { key: *hasher.finalize().as_bytes() }
    }

    /// The stream of draw number `index`.
    pub fn draw(&self, index: u64) -> Draw {
        let mut words = ChaCha20Rng::from_seed(self.key);
        words.set_stream(index);
        Draw { words }
    }
}

/// One stream of random numbers.
#[derive(Clone, Debug)]
pub struct Draw {
    words: ChaCha20Rng,
}

impl Draw {
    /// A uniform integer below `bound`, unbiased: the high half of a 128-bit product with rejection (Lemire
    /// 2019).
    ///
    /// # Panics
    /// Where `bound` is zero.
    pub fn below(&mut self, bound: u64) -> u64 {
        assert!(bound > 0, "there is no integer below zero");
        let rejected_below = bound.wrapping_neg() % bound;
        loop {
            let product = u128::from(self.words.next_u64()) * u128::from(bound);
            let low = product as u64;
            if low >= rejected_below {
                return (product >> 64) as u64;
            }
        }
    }

    /// A uniform permutation of `0..count`: Fisher and Yates from the last index down.
    pub fn permutation(&mut self, count: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..count).collect();
        for last in (1..count).rev() {
            let chosen = self.below(last as u64 + 1) as usize;
            order.swap(last, chosen);
        }
        order
    }

    /// A standard normal number: the quantile of (w + 1/2) / 2^53, w the top 53 bits of a word.
    pub fn normal(&mut self) -> f64 {
        let top = (self.words.next_u64() >> 11) as f64;
        quantile((top + 0.5) / 9_007_199_254_740_992.0)
    }

    /// `count` standard normal numbers.
    pub fn normals(&mut self, count: usize) -> Vec<f64> {
        (0..count).map(|_| self.normal()).collect()
    }
}
