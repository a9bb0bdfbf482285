//! Reading what SSH writes: big-endian numbers, and strings with their length before them.

use crate::Refusal;

/// Bytes not read yet.
#[derive(Clone, Copy, Debug)]
pub struct Wire<'a>(pub &'a [u8]);

impl<'a> Wire<'a> {
    /// So many bytes.
    pub fn take(&mut self, length: usize) -> Result<&'a [u8], Refusal> {
        let (head, rest) = self
            .0
            .split_at_checked(length)
            .ok_or_else(|| Refusal::Malformed("it ends too early".to_owned()))?;
        self.0 = rest;
        Ok(head)
    }

    /// A number of four bytes.
    pub fn number(&mut self) -> Result<u32, Refusal> {
        let bytes = self.take(4)?;
        Ok(bytes.iter().fold(0, |number, byte| number << 8 | u32::from(*byte)))
    }

    /// A string.
    pub fn string(&mut self) -> Result<&'a [u8], Refusal> {
        let length = self.number()?;
        self.take(usize::try_from(length).unwrap_or(usize::MAX))
    }

    /// A whole number that is not negative, in this many bytes.
    pub fn positive(&mut self, length: usize) -> Result<Vec<u8>, Refusal> {
        let bytes = self.string()?;
        let start = bytes.iter().position(|byte| *byte != 0).unwrap_or(bytes.len());
        let significant = &bytes[start..];
        if significant.len() > length || bytes.first().is_some_and(|byte| *byte >= 0x80) {
            return Err(Refusal::Malformed("a number is too large".to_owned()));
        }
        Ok([vec![0; length - significant.len()], significant.to_vec()].concat())
    }

    /// Whether everything was read.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
