//! Random draws that depend on a key and a number, and on nothing else.
//!
//! Draw `b` of a purpose is the ChaCha20 key stream (RFC 8439) of the purpose's 32-byte key, block counter 0
//! and nonce `b`. Draw 7 is the same bytes whether or not draws 0 to 6 were made, on one thread or eight, in
//! this release or the next. How a key comes from a registration is the caller's affair: no seed, clock or
//! entropy enters here.
//!
//! ```
//! use avow_stats::rng::{Draw, Key};
//! let mut draw = Draw::new(&Key([7; 32]), 3);
//! let order = draw.permutation(5);
//! assert_eq!(order, Draw::new(&Key([7; 32]), 3).permutation(5));
//! ```

use crate::special::normal;
use chacha20::ChaCha20;
use chacha20::cipher::{KeyIvInit, StreamCipher};

/// The 32-byte key of one purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Key(pub [u8; 32]);

/// How many random draws a Monte Carlo method makes, and from which key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Draws {
    /// The key of the draws.
    pub key: Key,
    /// Their number, B; draws 0 … B − 1 are made. Fixed in advance and never extended after a look.
    pub count: u32,
}

impl Draws {
    /// B for means, ranks and other statistics of linear cost.
    pub const STANDARD: u32 = 999_999;
    /// B where a model is refitted for each draw.
    pub const REFITTED: u32 = 9_999;

    /// The standard number of draws from `key`.
    pub fn standard(key: Key) -> Draws {
        Draws { key, count: Self::STANDARD }
    }

    /// The draws, in order.
    pub fn each(self) -> impl Iterator<Item = Draw> {
        (0..self.count).map(move |index| Draw::new(&self.key, index.into()))
    }
}

const BLOCK: usize = 64;

/// The stream of one draw: words, integers, flips, permutations and normals taken from it in order.
pub struct Draw {
    cipher: ChaCha20,
    block: [u8; BLOCK],
    used: usize,
    bits: u64,
    bits_left: u32,
}

impl Draw {
    /// Draw number `index` of `key`. The nonce is `index` as 96 bits, little endian.
    pub fn new(key: &Key, index: u64) -> Draw {
        let mut nonce = [0; 12];
        nonce[..8].copy_from_slice(&index.to_le_bytes());
        let cipher = ChaCha20::new(&key.0.into(), &nonce.into());
        Draw { cipher, block: [0; BLOCK], used: BLOCK, bits: 0, bits_left: 0 }
    }

    /// The next 64 bits of the key stream, little endian.
    pub fn word(&mut self) -> u64 {
        if self.used == BLOCK {
            self.block = [0; BLOCK];
            self.cipher.apply_keystream(&mut self.block);
            self.used = 0;
        }
        let bytes = self.block[self.used..self.used + 8].try_into().expect("eight bytes");
        self.used += 8;
        u64::from_le_bytes(bytes)
    }

    /// A fair flip: the lowest unused bit of the current flip word; a fresh word is taken when all 64 are used.
    pub fn flip(&mut self) -> bool {
        if self.bits_left == 0 {
            self.bits = self.word();
            self.bits_left = 64;
        }
        let bit = self.bits & 1 == 1;
        self.bits >>= 1;
        self.bits_left -= 1;
        bit
    }

    /// A uniform integer below `bound`: the high half of the 128-bit product of a word and the bound, with
    /// rejection (Lemire 2019). `bound` 0 gives 0 and takes no word.
    pub fn below(&mut self, bound: u64) -> u64 {
        if bound == 0 {
            return 0;
        }
        // Words whose product has a low half under this are one too many for an even share.
        let surplus = bound.wrapping_neg() % bound;
        loop {
            let product = u128::from(self.word()) * u128::from(bound);
            if product as u64 >= surplus {
                return (product >> 64) as u64;
            }
        }
    }

    /// Shuffles in place: Fisher–Yates from the last index down, each swapped with one at or below it.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            let other = self.below(last as u64 + 1) as usize;
            items.swap(last, other);
        }
    }

    /// A uniform permutation of 0 … `count` − 1.
    pub fn permutation(&mut self, count: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..count).collect();
        self.shuffle(&mut order);
        order
    }

    /// (w + ½)/2⁵³ for the top 53 bits w of a word: uniform, never 0 or 1.
    pub fn uniform(&mut self) -> f64 {
        const SCALE: f64 = 1.0 / (1_u64 << 53) as f64;
        // For w of 53 bits w + ½ may round up to 2⁵³; the value just below 1 stands for it.
        (((self.word() >> 11) as f64 + 0.5) * SCALE).min(1.0 - f64::EPSILON / 2.0)
    }

    /// A standard normal by the inverse distribution function of [`Draw::uniform`].
    pub fn normal(&mut self) -> f64 {
        normal::quantile(self.uniform())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stream_is_rfc_8439() {
        // Test vector 1 of appendix A.1: all-zero key and nonce, block counter 0.
        let mut draw = Draw::new(&Key([0; 32]), 0);
        let bytes: Vec<u8> = (0..8).flat_map(|_| draw.word().to_le_bytes()).collect();
        assert_eq!(
            bytes[..16],
            [0x76, 0xb8, 0xe0, 0xad, 0xa0, 0xf1, 0x3d, 0x90, 0x40, 0x5d, 0x6a, 0xe5, 0x53, 0x86, 0xbd, 0x28]
        );
        // Test vector 2 is the second block, which the same draw reaches next.
        assert_eq!(draw.word().to_le_bytes(), [0x9f, 0x07, 0xe7, 0xbe, 0x55, 0x51, 0x38, 0x7a]);
    }

    #[test]
    fn flips_are_the_bits_from_the_lowest() {
        let word = Draw::new(&Key([9; 32]), 1).word();
        let mut draw = Draw::new(&Key([9; 32]), 1);
        let read = (0..64).fold(0, |bits, place| bits | (u64::from(draw.flip()) << place));
        assert_eq!(read, word);
    }

    #[test]
    fn integers_are_even_and_permutations_whole() {
        let mut draw = Draw::new(&Key([1; 32]), 0);
        let mut seen = [0_u32; 5];
        for _ in 0..50_000 {
            seen[draw.below(5) as usize] += 1;
        }
        // Six standard deviations of a binomial count.
        assert!(seen.iter().all(|c| c.abs_diff(10_000) < 540), "{seen:?}");
        let mut order = draw.permutation(40);
        order.sort_unstable();
        assert!(order.into_iter().eq(0..40));
        assert_eq!((draw.below(0), draw.below(1)), (0, 0));
    }

    #[test]
    fn normals_have_their_moments() {
        let values: Vec<f64> = (0..200)
            .flat_map(|b| {
                let mut draw = Draw::new(&Key([3; 32]), b);
                (0..500).map(move |_| draw.normal()).collect::<Vec<_>>()
            })
            .collect();
        assert!(crate::sum::mean(&values).abs() < 0.02);
        assert!((crate::sum::deviation(&values) - 1.0).abs() < 0.015);
    }

    #[test]
    fn draws_do_not_depend_on_each_other() {
        let draws = Draws { key: Key([5; 32]), count: 4 };
        let all: Vec<u64> = draws.each().map(|mut d| d.word()).collect();
        assert_eq!(all[3], Draw::new(&draws.key, 3).word());
        assert_ne!(all[0], all[1]);
    }
}
