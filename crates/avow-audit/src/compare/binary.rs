//! What files that are no text hold: numbers, and everything about them that must be the same.
//!
//! NumPy arrays, `safetensors`, Parquet tables (uncompressed, Snappy or gzip), PNG and JPEG images. The first bytes say what a
//! file is, never its name. Whatever cannot be read as what it seems to be is compared by its bytes. An image is its
//! pixels, each channel a number from 0 to 255 (PNG with 16 bits: to 65535). Absent: archives of arrays and pickles.

mod image;
mod parquet;
mod tensors;

/// So many numbers of one file are compared; a larger file is compared by its bytes.
const MOST: usize = 1 << 26;

/// What a file holds.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Content {
    /// Shapes, names, kinds of number, texts: what is no matter of tolerance.
    pub words: Vec<String>,
    /// The numbers, in the order of the file.
    pub numbers: Vec<f64>,
}

/// Reads a file by what it begins with; `None` where it is none of these, or not sound, or too large.
pub(super) fn read(bytes: &[u8]) -> Option<Content> {
    let content = match bytes {
        [0x93, b'N', b'U', b'M', b'P', b'Y', ..] => tensors::npy(bytes)?,
        [b'P', b'A', b'R', b'1', ..] => parquet::read(bytes)?,
        [0x89, b'P', b'N', b'G', ..] => image::png(bytes)?,
        [0xff, 0xd8, 0xff, ..] => image::jpeg(bytes)?,
        [_, _, _, _, _, _, _, 0, b'{', ..] => tensors::safetensors(bytes)?,
        _ => return None,
    };
    (content.numbers.len() <= MOST).then_some(content)
}

/// Numbers of one kind from their bytes; `None` for a kind that is none, or where a number is cut off. `swapped` says that
/// the high byte comes first.
fn numbers(kind: &str, bytes: &[u8], swapped: bool) -> Option<Vec<f64>> {
    let width: usize = match kind {
        "b1" | "u1" | "i1" => 1,
        "u2" | "i2" | "f2" | "bf2" => 2,
        "u4" | "i4" | "f4" => 4,
        "u8" | "i8" | "f8" => 8,
        _ => return None,
    };
    if !bytes.len().is_multiple_of(width) || bytes.len() / width > MOST {
        return None;
    }
    let one = |chunk: &[u8]| {
        let mut low = [0; 8];
        low[..width].copy_from_slice(chunk);
        if swapped {
            low[..width].reverse();
        }
        let bits = u64::from_le_bytes(low);
        number(kind, bits)
    };
    Some(bytes.chunks_exact(width).map(one).collect())
}

/// A number from its bits, the lowest first.
fn number(kind: &str, bits: u64) -> f64 {
    match kind {
        "i1" => f64::from(bits as u8 as i8),
        "i2" => f64::from(bits as u16 as i16),
        "i4" => f64::from(bits as u32 as i32),
        "i8" => bits as i64 as f64,
        "f2" => half(bits as u16),
        // The upper half of a float of 32 bits.
        "bf2" => f64::from(f32::from_bits((bits as u32) << 16)),
        "f4" => f64::from(f32::from_bits(bits as u32)),
        "f8" => f64::from_bits(bits),
        _ => bits as f64,
    }
}

/// A float of 16 bits (IEEE 754): sign, five bits of exponent, ten of fraction.
fn half(bits: u16) -> f64 {
    let fraction = f64::from(bits & 0x3ff);
    let size = match bits >> 10 & 0x1f {
        0 => fraction * 2f64.powi(-24),
        31 if fraction == 0.0 => f64::INFINITY,
        31 => f64::NAN,
        exponent => (1.0 + fraction / 1024.0) * 2f64.powi(i32::from(exponent) - 15),
    };
    if bits & 0x8000 == 0 { size } else { -size }
}

#[cfg(test)]
mod tests {
    use super::{half, numbers};

    #[test]
    fn halves_are_read_by_the_standard() {
        let table = [
            (0x3c00, 1.0),
            (0xc000, -2.0),
            (0x7bff, 65504.0),
            (0x0001, 2f64.powi(-24)),
            (0x3555, 0.333251953125),
            (0x7c00, f64::INFINITY),
        ];
        for (bits, value) in table {
            assert_eq!(half(bits), value, "{bits:#x}");
        }
        assert!(half(0x7e01).is_nan());
    }

    #[test]
    fn numbers_are_read_from_either_end() {
        assert_eq!(numbers("i2", &[1, 0, 0xff, 0xff], false), Some(vec![1.0, -1.0]));
        assert_eq!(numbers("i2", &[0, 1], true), Some(vec![1.0]));
        assert_eq!(numbers("f4", &1.5f32.to_be_bytes(), true), Some(vec![1.5]));
        assert_eq!(numbers("bf2", &[0x80, 0x3f], false), Some(vec![1.0]));
        assert_eq!(numbers("f8", &[0; 9], false), None);
        assert_eq!(numbers("c8", &[0; 8], false), None);
    }
}
